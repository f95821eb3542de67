//! `weir run`: the studies of a plan, its requirements, and going on after an interruption.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::Scene;

const PLAN: &str = r#"
[defaults]
engines = "mock"
duration = "50ms"
warmup = "20ms"
reliability = "reliable"

[[study]]
name = "times"
tests = "latency"
sizes = [32, "1k"]

[[study.require]]
engine = "mock"
max_p50_us = 100
no_loss = true

[[study]]
name = "rates"
tests = "throughput"
sizes = 64
batch = 0

[[study.require]]
min_samples_per_s = 1000
"#;

/// A scene with this plan.
fn with_plan(plan: &str) -> Scene {
    let scene = Scene::new();
    std::fs::write(scene.path("plan.toml"), plan).unwrap();
    scene
}

/// The cases in the results of a study.
fn cases(scene: &Scene, study: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scene.results().join(study).join("results.jsonl")).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_study_is_measured_into_a_folder_of_its_own_and_requirements_are_judged() {
    let scene = with_plan(PLAN);
    let finished = scene.weir("run plan.toml --output results").expect_code(0);
    assert_eq!((cases(&scene, "times").len(), cases(&scene, "rates").len()), (2, 1));
    let out = &finished.stdout;
    let places = ["## times", "| mock ", "## rates", "## Requirements", "3 met, 0 missed, 0 not measured"];
    let places = places.map(|text| out.find(text).unwrap_or_else(|| panic!("no `{text}` in {out}")));
    assert!(places.is_sorted(), "{out}");
    assert!(out.contains("mock 1024 B latency, reliable (worst of 2)"), "{out}");
    assert!(finished.stderr.contains("study rates (2 of 2)"), "{}", finished.stderr);
    let verdicts = std::fs::read_to_string(scene.results().join("requirements.json")).unwrap();
    let verdicts: Value = serde_json::from_str(&verdicts).unwrap();
    assert_eq!(verdicts[2]["verdict"], "met");
    // Each study is a run as of `weir bench`.
    scene.weir("report results/times").expect_code(0);
}

#[test]
fn a_requirement_that_is_missed_exits_with_1() {
    let scene = with_plan(&PLAN.replace("max_p50_us = 100", "max_p50_us = 1"));
    let finished = scene.weir("run plan.toml --output results").expect_code(1);
    assert!(finished.stdout.contains("2 met, 2 missed, 0 not measured"), "{}", finished.stdout);
    // The other study is measured nevertheless.
    assert_eq!(cases(&scene, "rates").len(), 1);
    let stopping = format!("on_failure = 'stop'\n{}", PLAN.replace("max_p50_us = 100", "max_p50_us = 1"));
    let scene = with_plan(&stopping);
    let finished = scene.weir("run plan.toml --output results").expect_code(1);
    assert!(finished.stdout.contains("left out after a failure"), "{}", finished.stdout);
    assert!(!scene.results().join("rates").exists());
}

#[test]
fn ratios_are_to_another_engine_or_a_stored_run() {
    let require = "[[study.require]]\nmax_ratio = 1.01\nrelative_to_run = 'old/times'";
    let scene = with_plan(&format!("{}\n", PLAN.split("[[study.require]]").next().unwrap()));
    scene.weir("run plan.toml --output old").expect_code(0);
    let plan = PLAN.split("[[study.require]]").next().unwrap();
    std::fs::write(scene.path("plan.toml"), format!("{plan}{require}")).unwrap();
    let finished = scene.weir("run plan.toml --output results").expect_code(0);
    assert!(finished.stdout.contains("ratio to old/times <= 1.01"), "{}", finished.stdout);
    let plan = plan.replace("\"mock\"", "['mock', 'mock-clock']");
    let require = "[[study.require]]\nmin_ratio = 2\nrelative_to = 'mock'";
    std::fs::write(scene.path("plan.toml"), format!("{plan}{require}")).unwrap();
    let finished = scene.weir("run plan.toml --output two").expect_code(1);
    assert!(finished.stdout.contains("mock-clock 32 B latency, reliable"), "{}", finished.stdout);
}

#[test]
fn a_dry_run_prints_the_cases_and_runs_nothing() {
    let scene = with_plan(PLAN);
    let finished = scene.weir("run plan.toml --dry-run --output results").expect_code(0);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(lines[0], "times: 2 cases, about 0 s");
    assert!(lines[1].starts_with("  weir bench --engines=mock --duration=50ms"), "{}", lines[1]);
    assert_eq!(lines[3], "     2  mock 1024 B latency, reliable, repeat 1");
    assert!(lines.last().unwrap().starts_with("2 studies, 3 cases, about "), "{lines:?}");
    assert!(!scene.results().exists());
    // Nor does it look at what else is here.
    std::fs::create_dir(scene.path("times")).unwrap();
    std::fs::write(scene.path("times/results.jsonl"), "nothing\n").unwrap();
    let there = scene.weir("run plan.toml --dry-run").expect_code(0);
    assert_eq!(there.stdout, finished.stdout);
}

#[test]
fn a_run_goes_on_with_what_is_not_complete() {
    let scene = with_plan(PLAN);
    scene.weir("run plan.toml --output results").expect_code(0);
    let before = cases(&scene, "times");
    std::fs::remove_dir_all(scene.results().join("rates")).unwrap();
    let finished = scene.weir("run plan.toml --output results").expect_code(0);
    assert!(
        finished.stderr.contains("study times (1 of 2): finished before, 2 cases"),
        "{}",
        finished.stderr
    );
    assert!(finished.stdout.contains("3 met"), "{}", finished.stdout);
    assert_eq!((cases(&scene, "times"), cases(&scene, "rates").len()), (before, 1));
}

#[test]
fn a_study_goes_on_within_and_a_line_that_was_cut_is_measured_again() {
    let scene = with_plan(PLAN);
    scene.weir("run plan.toml --output results").expect_code(0);
    let path = scene.results().join("times/results.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 10]).unwrap();
    let finished = scene.weir("run plan.toml --output results --verbose").expect_code(0);
    assert!(finished.stderr.contains("goes on after 1 case\n"), "{}", finished.stderr);
    assert!(finished.stderr.contains("[2/2] mock latency reliable 1 KiB: started"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("[1/2]"), "{}", finished.stderr);
    // The table has both.
    assert!(finished.stdout.contains("| mock   |       32 |"), "{}", finished.stdout);
    assert_eq!(cases(&scene, "times").len(), 2);
    // A file that was killed while it was created is begun anew.
    std::fs::write(&path, &text[..20]).unwrap();
    scene.weir("run plan.toml --output results").expect_code(0);
    assert_eq!(cases(&scene, "times").len(), 2);
}

#[test]
fn a_run_that_found_the_disk_full_goes_on_when_there_is_room() {
    let sizes: Vec<String> = (32..132).map(|size| size.to_string()).collect();
    let scene = with_plan(&PLAN.replace("[32, \"1k\"]", &format!("[{}]", sizes.join(", "))));
    let finished = scene.weir_with_room(64, "run plan.toml --output results").expect_code(3);
    finished.expect_stderr("cannot write results/times/results.jsonl").expect_stderr("make room there");
    let path = scene.results().join("times/results.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let whole = &text[..=text.rfind('\n').unwrap()];
    assert!((6..100).contains(&whole.lines().count()), "{}", whole.lines().count());
    scene.weir("run plan.toml --output results").expect_code(0);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(whole));
    assert_eq!((cases(&scene, "times").len(), cases(&scene, "rates").len()), (100, 1));
}

#[test]
fn a_changed_plan_is_not_continued_but_its_requirements_may_change() {
    let scene = with_plan(PLAN);
    scene.weir("run plan.toml --output results").expect_code(0);
    std::fs::write(scene.path("plan.toml"), PLAN.replace("max_p50_us = 100", "max_p50_us = 1")).unwrap();
    scene.weir("run plan.toml --output results").expect_code(1);
    std::fs::write(scene.path("plan.toml"), PLAN.replace("sizes = 64", "sizes = 128")).unwrap();
    let finished = scene.weir("run plan.toml --output results").expect_code(2);
    finished.expect_stderr("the plan has changed since results was begun: `sizes` of the study `rates`");
    std::fs::create_dir(scene.path("other")).unwrap();
    std::fs::write(scene.path("other/file"), "").unwrap();
    scene.weir("run plan.toml --output other").expect_code(2).expect_stderr("holds something else");
}

#[test]
fn ctrl_c_keeps_finished_cases_and_says_how_to_go_on() {
    let plan = "[[study]]\nname = 'a'\nengines = ['mock', 'mock-hang']\ntests = 'throughput'\nbatch = 0\n\
                sizes = 32\nreliability = 'reliable'\nduration = '50ms'\nwarmup = '20ms'\n\
                [[study.require]]\nengine = 'mock'\nno_loss = true";
    let scene = with_plan(plan);
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", "plan.toml", "--output", "results", "--verbose"])
        .current_dir(scene.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("mock-hang throughput reliable 32 B: started")));
    // Two runs in the same folder.
    scene.weir("run plan.toml --output results").expect_code(3).expect_stderr("is another run in it?");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let advice = "weir: interrupted: `weir run plan.toml --output results` goes on";
    assert!(lines.any(|line| line == advice));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(cases(&scene, "a").len(), 1);
    let verdicts = std::fs::read_to_string(scene.results().join("requirements.json")).unwrap();
    assert!(verdicts.contains("interrupted"), "{verdicts}");
}

#[test]
fn a_case_that_fails_exits_with_3_and_its_requirement_is_not_measured() {
    let scene = with_plan(
        &PLAN
            .replace("\"mock\"\nduration", "\"mock-crash\"\nduration")
            .replace("engine = \"mock\"\nmax_p50", "max_p50"),
    );
    let finished = scene.weir("run plan.toml --output results").expect_code(3);
    assert!(finished.stdout.contains("not measured: rates: mock-crash 64 B throughput, reliable: failed: "));
    // As after the first time.
    scene.weir("run plan.toml --output results").expect_code(3);
}

#[test]
fn repeats_end_when_the_intervals_are_narrow_and_a_finished_study_stays_finished() {
    let scene = with_plan(&PLAN.replace("sizes = 64", "sizes = 64\nrepeat = 30\nuntil_width = '5%'"));
    let dry = scene.weir("run plan.toml --dry-run").expect_code(0).stdout;
    assert!(dry.contains("rates: at most 30 cases"), "{dry}");
    scene.weir("run plan.toml --output results").expect_code(0);
    assert_eq!(cases(&scene, "rates").len(), 6);
    let again = scene.weir("run plan.toml --output results").expect_code(0);
    assert!(again.stderr.contains("rates (2 of 2): finished before, 6 cases"), "{}", again.stderr);
}

#[test]
fn errors_of_a_plan_name_its_file_and_line() {
    let check = |from: &str, to: &str, expected: &str| {
        let scene = with_plan(&PLAN.replace(from, to));
        scene.weir("run plan.toml --output results").expect_code(2).expect_stderr(expected);
        assert!(!scene.results().exists());
    };
    check(
        "sizes = 64",
        "sizse = 64",
        "weir: plan.toml, line 21: unknown key `sizse`; did you mean `sizes`?\n",
    );
    check("sizes = 64", "sizes = 'x'", "weir: plan.toml, line 21: invalid value 'x' for '--sizes <LIST>'");
    // What the plan of cases refuses.
    check("sizes = 64", "sizes = 4", "weir: plan.toml, line 21: a sample of 4 bytes is impossible");
    check("engines = \"mock\"", "engines = \"mork\"", "weir: plan.toml, line 3: `mork` is not an engine");
    check(
        "engine = \"mock\"",
        "engine = \"weir\"",
        "line 15: the study `times` has no case that this is about (weir)",
    );
    Scene::new().weir("run nowhere.toml").expect_code(2).expect_stderr("a ready-made plan (smoke, udp, ");
}

#[test]
fn ready_made_plans_are_listed_shown_and_complete() {
    let scene = Scene::new();
    let list = scene.weir("run --list").expect_code(0).stdout;
    for name in ["smoke", "udp", "dds-latency", "dds-throughput"] {
        assert!(list.contains(&format!("  {name} ")), "{list}");
        let shown = scene.weir(&format!("run --show {name}")).expect_code(0).stdout;
        std::fs::write(scene.path("shown.toml"), &shown).unwrap();
        // Whether idle states matter is measured, and may differ from run to run.
        let dry = |plan: &str| {
            scene.weir(&format!("run {plan} --dry-run --set keep_awake=no")).expect_code(0).stdout
        };
        assert_eq!(dry(name), dry("shown.toml"));
        let brief = scene.weir(&format!("run {name} --brief --dry-run --set keep_awake=no"));
        let brief = brief.expect_code(0).stdout;
        assert!(!brief.contains("repeat 2"), "{brief}");
    }
    scene.weir("run --show nothing").expect_code(2).expect_stderr("--list");
}

#[test]
fn a_dry_run_for_other_hosts_names_the_most_cases() {
    let scene = Scene::new();
    let plan = "[[study]]\nname = \"lat\"\ntests = \"latency\"\nsizes = 32\nreliability = \"reliable\"\n";
    std::fs::write(scene.path("plan.toml"), plan).unwrap();
    let dry = |words: &str| scene.weir(&format!("run plan.toml --dry-run {words}")).expect_code(0).stdout;
    let most = dry("--hosts pub=alpha,sub=beta");
    assert!(most.contains("lat: at most ") && most.contains(", kept awake, repeat 1"), "{most}");
    let once = dry("--hosts pub=alpha,sub=beta --set keep_awake=no");
    assert!(!once.contains("at most") && !once.contains("kept awake"), "{once}");
}

#[test]
fn a_workload_is_not_measured_on_other_hosts() {
    let plan = "[[study]]\nname = \"load\"\nworkload = \"robot\"\nengines = \"mock\"\n";
    let scene = with_plan(plan);
    scene.weir("run plan.toml --dry-run").expect_code(0);
    let refused = scene.weir("run plan.toml --dry-run --hosts pub=alpha,sub=beta");
    refused
        .expect_code(2)
        .expect_stderr("plan.toml, line 3")
        .expect_stderr("--hosts cannot be used with --workload");
}

/// A study that cannot be measured, which is found only when its turn comes.
const WITHOUT_SECRET: &str = r#"
[[study]]
name = "udp"
command = "udp"
to = "127.0.0.1"
secret_file = "nowhere"
tests = "latency"
sizes = 32
"#;

#[test]
fn a_study_that_cannot_be_measured_does_not_keep_the_others_from_their_verdicts() {
    let (before, after) = PLAN.split_once("[[study]]\nname = \"rates\"").unwrap();
    let plan = format!("{before}{WITHOUT_SECRET}[[study]]\nname = \"rates\"{after}");
    let scene = with_plan(&plan);
    let finished = scene.weir("run plan.toml --output results").expect_code(3);
    assert!(finished.stderr.contains("study udp: "), "{}", finished.stderr);
    assert!(finished.stdout.contains("3 met, 0 missed, 0 not measured"), "{}", finished.stdout);
    assert!(scene.results().join("requirements.json").exists());
}

#[test]
fn verdicts_of_an_earlier_run_are_removed_when_a_plan_ends_without_any() {
    let scene = with_plan(WITHOUT_SECRET);
    scene.weir("run plan.toml --output results").expect_code(2);
    let verdicts = scene.results().join("requirements.json");
    std::fs::write(&verdicts, "[]").unwrap();
    scene.weir("run plan.toml --output results").expect_code(2);
    assert!(!verdicts.exists());
}
