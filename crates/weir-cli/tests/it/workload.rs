//! `weir bench --workload`: many topics at fixed rates.

use serde_json::Value;

use crate::support::{Domain, Scene};

const SMALL: &str = "\
processes = 2

[[node]]
name = \"arm\"
processes = [1]

[[node]]
name = \"brain\"
processes = [2]

[[topic]]
name = \"state\"
count = 2
size = 200
rate = 100
from = \"arm\"
to = \"brain\"

[[topic]]
name = \"command\"
size = \"8k\"
rate = 20
burst = 2
instances = 3
reliability = \"best-effort\"
history = 5
from = \"brain\"
to = \"arm\"
";

#[test]
fn a_small_workload_is_measured_with_each_engine_and_printed_in_every_form() {
    let (scene, domain) = (Scene::new(), Domain::claim());
    std::fs::write(scene.path("small.toml"), SMALL).unwrap();
    let words = format!(
        "bench --workload small.toml --engines udp,weir --duration 300ms --warmup 100ms --domain {domain} \
         --output results --format json"
    );
    let document = scene.weir(&words).expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    let engines: Vec<&Value> = cases.iter().map(|case| &case["engine"]).collect();
    assert_eq!(engines, ["udp", "weir"]);
    for case in cases {
        assert_eq!((&case["test"], &case["workload_name"]), (&"workload".into(), &"small".into()), "{case}");
        let workload = &case["workload"];
        let count = |name: &str| workload[name].as_u64().unwrap();
        assert_eq!(["nodes", "topics", "writers", "readers"].map(count), [2, 3, 3, 3]);
        assert_eq!(workload["processes"].as_array().unwrap().len(), 2);
        assert_eq!(workload["processes"][1]["nodes"], "brain 1");
        let groups = workload["groups"].as_array().unwrap();
        assert_eq!((groups.len(), &groups[1]["burst"]), (2, &Value::from(2)));
        // A host that stops its processes for long makes the writers late, but something arrives.
        assert!(groups.iter().all(|it| it["received"].as_u64() > Some(0)), "{case}");
        assert!(groups.iter().all(|it| it["age_us"]["p99"].as_f64() > Some(0.0)), "{case}");
    }
    // Reliable topics that keep all samples lose nothing, or the exit code would be another one.
    assert_eq!(cases[1]["workload"]["groups"][0]["lost"], 0);
    assert!(cases[1]["workload"]["discovery"].is_object() && cases[0]["workload"]["discovery"].is_null());

    let tables = scene.weir("report results").expect_code(0).stdout;
    for text in
        ["Workload small, 2 nodes in 2 processes", "By topics", "By processes", "best-effort, last 5, keyed"]
    {
        assert!(tables.contains(text), "no `{text}` in {tables}");
    }
    let csv = scene.weir("report results --format csv").expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 1 + 2 * 2, "{csv}");
    scene.weir("report results -o report.html").expect_code(0);
    let page = std::fs::read_to_string(scene.path("report.html")).unwrap();
    for text in
        ["Workload small, 2 nodes in 2 processes", "By topics", "of a processor, and 1 % of its samples"]
    {
        assert!(page.contains(text), "no `{text}` in the page");
    }
}

#[test]
fn udp_sends_samples_that_fit_no_datagram_as_several() {
    let scene = Scene::new();
    std::fs::write(scene.path("large.toml"), SMALL.replace("\"8k\"", "\"1M\"")).unwrap();
    let words = "bench --workload large.toml --engines udp --duration 300ms --warmup 100ms --output results --format \
                 json";
    let document = scene.weir(words).expect_code(0).json();
    let group = &document["cases"][0]["workload"]["groups"][1];
    assert_eq!(group["size_bytes"], 1 << 20, "{document}");
    // A host that stops its processes for long loses many, but something arrives.
    assert!(group["received"].as_u64() > Some(0), "{document}");
}

#[test]
fn a_run_without_a_case_that_its_engine_supports_fails_and_says_why() {
    let scene = Scene::new();
    std::fs::write(scene.path("small.toml"), SMALL).unwrap();
    // The engine says so when a case begins.
    let words =
        "bench --workload small.toml --engines udp-gso --duration 50ms --output results --format json";
    let finished = scene.weir(words).expect_code(3);
    let said = "weir: nothing was measured: not supported: udp-gso does not support workloads";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
    let document = finished.json();
    let reason = document["cases"][0]["not_measured"]["reason"].as_str().unwrap();
    assert!(reason.contains("udp-gso does not support workloads"), "{document}");
    // Cases of other engines are figures.
    let both = words.replace("udp-gso", "udp,udp-gso").replace("results", "both");
    scene.weir(&both).expect_code(0);
}

#[test]
fn a_study_of_a_plan_that_measures_nothing_fails_whenever_it_is_asked_for() {
    let scene = Scene::new();
    std::fs::write(scene.path("small.toml"), SMALL).unwrap();
    let plan = "[[study]]\nname = 'none'\nworkload = 'small.toml'\nengines = 'udp-gso'\nduration = '50ms'\n\
                [[study]]\nname = 'some'\nengines = 'mock'\ntests = 'latency'\nsizes = 32\nduration = '50ms'\n";
    std::fs::write(scene.path("plan.toml"), plan).unwrap();
    let run = || scene.weir("run plan.toml --output results");
    let said = "weir: nothing was measured: not supported: udp-gso";
    run().expect_code(3).expect_stderr(said);
    assert!(scene.results().join("some/results.jsonl").exists());
    let again = run().expect_code(3).expect_stderr(said);
    assert!(again.stderr.contains("study none (1 of 2): finished before"), "{}", again.stderr);
}

#[test]
fn errors_name_the_file_and_the_line_and_options_that_do_not_apply() {
    let scene = Scene::new();
    std::fs::write(scene.path("bad.toml"), SMALL.replace("rate = 20", "rate = -1")).unwrap();
    let expected = "bad.toml:22: `rate` is -1: use more than 0 and at most 1000000 per second";
    scene.weir("bench --workload bad.toml").expect_code(2).expect_stderr(expected);
    scene
        .weir("bench --workload nowhere")
        .expect_code(2)
        .expect_stderr("a ready-made workload (robot, trading");
    for option in ["--sizes 32", "--seed 2", "--telemetry-period 1s"] {
        let name = option.split(' ').next().unwrap();
        scene.weir(&format!("bench --workload robot {option}")).expect_code(2).expect_stderr(name);
    }
    scene.weir("bench --tests workload").expect_code(2).expect_stderr("--workload instead");
    scene
        .weir("bench --workload robot --engines weir --duration 500000s")
        .expect_code(2)
        .expect_stderr("use a shorter --duration");
}

#[test]
fn bad_files_are_refused_with_file_line_and_what_is_allowed() {
    let scene = Scene::new();
    for (before, after, expected) in [
        ("processes = 2\n", "processes = 65\n", "bad.toml:1: `processes` is 65: use 1 to 64"),
        ("count = 2", "count = 0", "bad.toml:13: `count` is 0: use 1 to 20000"),
        ("burst = 2", "burst = 100001", "bad.toml:23: `burst` is 100001: use 1 to 100000"),
        (
            "history = 5",
            "history = 0",
            "bad.toml:26: `history` is 0: use \"all\", or 1 to 1000000 samples to keep",
        ),
        ("size = 200", "size = 27", "bad.toml:14: `size` is 27: use 28 to 1073741824 bytes, header included"),
        (
            "from = \"arm\"",
            "from = \"leg\"",
            "bad.toml:16: `from` names `leg`, which is no [[node]]: use one of arm, brain",
        ),
    ] {
        assert!(SMALL.contains(before), "{before}");
        std::fs::write(scene.path("bad.toml"), SMALL.replacen(before, after, 1)).unwrap();
        let words = "bench --workload bad.toml --engines mock --output results";
        scene.weir(words).expect_code(2).expect_stderr(expected);
        assert!(!scene.results().exists());
    }
}

#[test]
fn engines_without_threads_are_marked_and_the_run_goes_on() {
    let (scene, domain) = (Scene::new(), Domain::claim());
    std::fs::write(scene.path("small.toml"), SMALL).unwrap();
    std::fs::write(scene.path("settings.toml"), "[weir]\nthreads = \"no\"\n").unwrap();
    let words = format!(
        "bench --workload small.toml --engines weir,weir-small,mock --settings settings.toml --duration 50ms \
         --domain {domain} --output results --format json"
    );
    // The mock has no workloads either.
    let document = scene.weir(&words).expect_code(3).json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3, "{document}");
    for case in cases.iter().filter(|case| case["engine"] != "mock") {
        let reason = case["not_measured"]["reason"].as_str().unwrap();
        let expected = "does not support workloads without threads";
        assert!(reason.contains(expected), "{case}");
    }
}

#[test]
fn the_small_profile_takes_no_settings_of_the_engine_that_it_replaces() {
    let scene = Scene::new();
    let write = |text: &str| std::fs::write(scene.path("settings.toml"), text).unwrap();
    let words = "bench --engines weir --profile small --settings settings.toml";
    for what in ["--workload robot", "--tests latency --sizes 32"] {
        write("[weir]\nhistory = \"64k\"\n");
        let expected =
            "--settings settings.toml has settings of [weir], and --profile small measures weir-small";
        scene.weir(&format!("{words} {what}")).expect_code(2).expect_stderr(expected);
    }
    write("[weir]\nhistory = \"64k\"\n[weir-small]\nhistory = \"32k\"\n");
    scene.weir(&format!("{words} --show-settings")).expect_code(0);
}

#[test]
fn a_file_of_the_same_name_with_other_contents_is_another_workload() {
    let scene = Scene::new();
    let write = |text: &str| std::fs::write(scene.path("mine.toml"), text).unwrap();
    let plan =
        "[[study]]\nname = 'a'\nengines = ['udp', 'udp-gso']\nworkload = 'mine.toml'\nduration = '50ms'\n";
    std::fs::write(scene.path("plan.toml"), plan).unwrap();
    write(SMALL);
    scene.weir("run plan.toml --output results").expect_code(0);
    let results = || std::fs::read_to_string(scene.results().join("a/results.jsonl")).unwrap();
    let of =
        |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let before = results();
    // The engines of a run have the same workload, whatever they cannot do.
    let digests: Vec<String> =
        of(&before)[1..].iter().map(|case| case["workload_digest"].to_string()).collect();
    assert_eq!(digests.len(), 2);
    assert!(digests[0] == digests[1] && digests[0].len() == 16 + 2, "{digests:?}");
    // Another rate: the run does not go on.
    write(&SMALL.replace("rate = 100", "rate = 50"));
    let refused = scene.weir("run plan.toml --output results").expect_code(2);
    refused.expect_stderr("results of another plan (first different case: udp workload mine");
    assert_eq!(results(), before);
    // A comment changes nothing.
    write(&format!("# The same\n{SMALL}"));
    scene.weir("run plan.toml --output results").expect_code(0).expect_stderr("finished before, 2 cases");
}

#[test]
fn a_ready_made_workload_can_be_copied_and_planned() {
    let scene = Scene::new();
    let shown = scene.weir("bench --show-workload telemetry").expect_code(0).stdout;
    assert!(shown.starts_with("# Telemetry") && shown.contains("writers = 1000"), "{shown}");
    scene.weir("bench --show-workload robto").expect_code(2).expect_stderr("robot, trading, telemetry");
    std::fs::create_dir(scene.path("plans")).unwrap();
    std::fs::write(scene.path("plans/mine.toml"), shown).unwrap();
    // Files are relative to the plan.
    let plan = "[defaults]\nengines = 'weir'\nduration = '3s'\n\
                [[study]]\nname = 'mine'\nworkload = 'mine.toml'\n[[study]]\nname = 'robot'\nworkload = 'robot'\n";
    std::fs::write(scene.path("plans/plan.toml"), plan).unwrap();
    let dry = scene.weir("run plans/plan.toml --dry-run").expect_code(0).stdout;
    assert!(
        dry.contains("weir workload mine, repeat 1") && dry.contains("weir workload robot, repeat 1"),
        "{dry}"
    );
}
