//! `weir history`, `weir export`, `weir redact`, names of runs, and `--redact`.

use std::fs;

use weir_results::{
    Case, CaseSeries, Environment, Figures, LatencyKind, LatencyRecorder, NotMeasured, Reliability, Run, Test,
};

use crate::support::Scene;

/// Names that identify someone or something, and that no output may contain.
const ORIGINALS: [&str; 9] = [
    "lab7",
    "corp.example.org",
    "alice",
    "secret-drone",
    "10.1.2.3",
    "falcon",
    "52:54:00",
    "build9",
    "profile.xml",
];

/// Two runs in `weir-results`, with names in many places.
fn scene() -> Scene {
    let scene = Scene::new();
    for (folder, date) in
        [("secret-drone", "2026-11-23T10:00:00Z"), ("20261124T100000Z", "2026-11-24T10:00:00Z")]
    {
        let folder = scene.path("weir-results").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("results.jsonl"), run(date).to_lines()).unwrap();
    }
    scene
}

/// Eight repeats of a case, one of which has no figures.
fn run(date: &str) -> Run {
    let home = |rest: &str| ["", "home", "alice", rest].join("/");
    let command = [home("bin/weir"), "bench".into(), "--to".into(), "build9".into(), home("secret-drone")];
    let environment = Environment {
        date: date.into(),
        hostname: Some("lab7.corp.example.org".into()),
        command: command.to_vec(),
        ..Environment::default()
    };
    let case = |repeat: u32| {
        let mut recorder = LatencyRecorder::new();
        (1..=1_000_u64).for_each(|n| recorder.record(20_000 + n * u64::from(repeat)));
        Case::new("mock", Test::Latency, Reliability::Reliable, 32).with(|it| {
            it.conditions.repeat = repeat;
            it.figures.latency_us = Some(recorder.summary(LatencyKind::HalfRtt));
            it.figures.histogram = recorder.histogram(LatencyKind::HalfRtt);
            let (received, missing) = (vec![600, 400], vec![0, 0]);
            it.figures.series =
                Some(CaseSeries { step_ms: 1_000.0, received, missing, ..CaseSeries::default() });
        })
    };
    let mut cases: Vec<Case> = (1..=8).map(case).collect();
    let settings = [("profile".into(), home("profile.xml")), ("project".into(), "falcon".into())];
    cases[0].conditions.settings = settings.into();
    let reason =
        "build9 (10.1.2.3:7400, 52:54:00:12:34:56) does not answer alice@LAB7: see profile.xml".into();
    cases[1].figures = Figures::default();
    cases[1].evidence.not_measured = Some(NotMeasured::Failed { reason });
    Run { cases, ..Run::new(environment) }
}

#[test]
fn runs_are_listed_and_have_names_that_other_commands_take() {
    let scene = scene();
    let list = scene.weir("history").expect_code(0).stdout;
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| @")).collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert!(rows[0].contains("2026-11-23 10:00:00") && rows[0].contains("lab7.corp.example.org"), "{list}");
    assert!(rows[1].contains("1 case without figures"), "{list}");
    let id = rows[0].split_whitespace().nth(1).unwrap();
    let report = scene.weir(&format!("report {id} --format json")).expect_code(0).json();
    assert_eq!(report["environment"]["date"], "2026-11-23T10:00:00Z");
    scene.weir("report @latest:secret-drone").expect_code(0);
    scene.weir("compare @latest~1 @latest").expect_code(0);
    scene.weir("compare @2026-11-23 @2026-11-24T10:00").expect_code(0);
    scene.weir("report @latest~2").expect_code(2).expect_stderr("no run in weir-results is @latest~2");
    scene.weir("report @202611").expect_code(2).expect_stderr("names 2 runs: choose one by its id");
    scene.weir("report @latest --results nowhere").expect_code(2).expect_stderr("nowhere is not a folder");
    scene.weir("report @latest --results weir-results").expect_code(0);
}

#[test]
fn a_case_over_time_has_intervals_and_a_plot() {
    let scene = scene();
    let shown = scene.weir("history weir-results --cases --plot over-time.svg").expect_code(0);
    assert!(shown.stdout.contains("mock latency 32 B") && shown.stdout.contains("| @"), "{}", shown.stdout);
    let svg = fs::read_to_string(scene.path("over-time.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("2026-11-23 10:00"), "{svg}");
    let points = scene.weir("history --cases --format json").expect_code(0).json();
    let runs = points[0]["runs"].as_array().unwrap();
    assert_eq!((runs.len(), runs[0]["values"].as_array().unwrap().len()), (2, 7));
    assert!(runs[0]["interval_95"].is_array(), "{points}");
    let last = scene.weir("history --cases --last 1 --format csv").expect_code(0).stdout;
    assert_eq!(last.lines().count(), 2, "{last}");
    scene
        .weir("history --engines weir")
        .expect_code(2)
        .expect_stderr("no run in weir-results has such cases");
    scene.weir("history --plot over-time.png").expect_code(2).expect_stderr("end the name in .svg");
}

#[test]
fn exports_are_csv_or_parquet_with_a_row_per_case_second_or_bucket() {
    let scene = scene();
    let export = |options: &str, name: &str| {
        scene.weir(&format!("export @latest {options} -o {name}")).expect_code(0);
        fs::read(scene.path(name)).unwrap()
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let cases = text(export("", "cases.csv"));
    let runs = scene.weir("history --format json").expect_code(0).json();
    let id = runs.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let ids: Vec<&str> = cases.lines().filter_map(|row| row.rsplit(',').next()).collect();
    assert_eq!((ids[0], ids[1]), ("run_id", id.as_str()), "{cases}");
    assert!(cases.starts_with("run,case,date,hostname,") && cases.lines().count() == 9, "{cases}");
    assert!(text(export("--series", "series.csv")).lines().count() == 15);
    assert!(text(export("--histogram", "histogram.csv")).lines().count() > 100);
    for options in ["", "--series", "--histogram"] {
        let file = export(options, "table.parquet");
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    }
    scene.weir("export @latest -o table.xlsx").expect_code(2).expect_stderr("in .csv or .parquet");
    scene
        .weir("export @latest -o no/such/folder.csv")
        .expect_code(3)
        .expect_stderr("cannot write no/such/folder.csv");
    let left: Vec<_> = fs::read_dir(scene.path(".")).unwrap().flatten().map(|it| it.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("partial")), "{left:?}");
}

#[test]
fn nothing_that_identifies_is_left_in_any_output() {
    let scene = scene();
    let both = "weir-results/secret-drone weir-results/20261124T100000Z";
    let mut outputs = Vec::new();
    for command in [
        "report @latest --redact --also falcon",
        "report @latest --redact --also falcon --format csv",
        "report @latest --redact --also falcon --format json",
        "report @latest --redact --also falcon --resources",
        "compare @latest~1 @latest --redact --also falcon",
        "compare @latest~1 @latest --also falcon --format json",
    ] {
        outputs.push((command.to_owned(), scene.weir(command).expect_code(0).stdout.into_bytes()));
    }
    for (command, file) in [
        (format!("report {both} --redact --also falcon -o report.html"), "report.html"),
        (format!("export {both} --redact --also falcon -o cases.csv"), "cases.csv"),
        (format!("export {both} --redact --also falcon -o cases.parquet"), "cases.parquet"),
        (format!("export {both} --redact --also falcon --series -o series.csv"), "series.csv"),
        (format!("export {both} --redact --also falcon --histogram -o h.csv"), "h.csv"),
        (format!("redact {both} --also falcon -o published"), "published/run-1.jsonl"),
        ("redact @latest --also falcon -o one.jsonl".to_owned(), "one.jsonl"),
    ] {
        scene.weir(&command).expect_code(0);
        outputs.push((command, fs::read(scene.path(file)).unwrap()));
    }
    for (command, bytes) in &outputs {
        let text = String::from_utf8_lossy(bytes).to_lowercase();
        for name in ORIGINALS {
            assert!(!text.contains(name), "{command} left {name}: {text}");
        }
        assert!(text.contains("mock"), "{command}");
    }
}

#[test]
fn redacted_results_are_results_and_never_replace_a_file() {
    let scene = scene();
    scene.weir("redact @latest -o one.jsonl").expect_code(0);
    let compared = scene.weir("compare @latest one.jsonl").expect_code(0).stdout;
    assert!(compared.contains("0 worse, 0 better"), "{compared}");
    scene.weir("redact @latest -o one.jsonl").expect_code(3).expect_stderr("choose another file");
    let both = "redact @latest @latest~1 -o two.jsonl";
    scene.weir(both).expect_code(2).expect_stderr("name a folder");
}
