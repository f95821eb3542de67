//! Histories of folders: growing, damaged, cut, used by several processes.

#![expect(clippy::unwrap_used, reason = "a helper of tests that can't go on fails the test")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use weir_history::{Filter, History, IndexState, RunName, RunState};
use weir_results::{
    Case, Environment, LatencySummary, Reliability, ResultsWriter, Run, Test, ThroughputSummary,
};

const INDEX: &str = ".weir-index.sqlite";

fn environment(date: &str, host: &str) -> Environment {
    Environment {
        date: date.to_owned(),
        hostname: Some(host.to_owned()),
        weir_version: "0.1.0".to_owned(),
        ..Environment::default()
    }
}

fn latency(engine: &str, size: u64, repeat: u32, p50: f64) -> Case {
    Case::new(engine, Test::Latency, Reliability::Reliable, size).with(|it| {
        it.conditions.repeat = repeat;
        it.figures.latency_us =
            Some(LatencySummary { count: 1_000, p50, lost: 1, ..LatencySummary::default() });
    })
}

/// A run of eight repeats around a median.
fn run(date: &str, host: &str, p50: f64) -> Run {
    let mut run = Run::new(environment(date, host));
    run.cases = (1..=8).map(|repeat| latency("weir", 32, repeat, p50 + f64::from(repeat) / 100.0)).collect();
    let summary = ThroughputSummary { samples_per_s: 1e6, ..ThroughputSummary::default() };
    let throughput = Case::new("udp", Test::Throughput, Reliability::None, 1024)
        .with(|it| it.figures.throughput = Some(summary));
    run.cases.extend([throughput, Case::new("other", Test::Latency, Reliability::Reliable, 32)]);
    run
}

fn put(folder: &Path, name: &str, run: &Run) {
    fs::create_dir_all(folder.join(name)).unwrap();
    fs::write(folder.join(name).join("results.jsonl"), run.to_lines()).unwrap();
}

/// Two runs of one host, and a plan with two studies on another.
fn scene() -> TempDir {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "one", &run("2026-11-23T10:00:00Z", "lab7", 10.0));
    put(folder.path(), "two", &run("2026-11-24T10:00:00Z", "lab7", 12.0));
    put(folder.path(), "plan/latency", &run("2026-11-24T11:00:00Z", "lab8", 20.0));
    put(folder.path(), "plan/rates", &run("2026-11-24T11:05:00Z", "lab8", 21.0));
    folder
}

fn names(history: &History, filter: &Filter) -> Vec<String> {
    history.runs(filter).unwrap().into_iter().map(|run| run.name).collect()
}

#[test]
fn runs_are_listed_in_order_of_time_and_chosen_by_filters() {
    let folder = scene();
    let history = History::open(folder.path()).unwrap();
    assert_eq!(names(&history, &Filter::default()), ["one", "two", "latency", "rates"]);
    let check =
        |filter: Filter, expected: &[&str]| assert_eq!(names(&history, &filter), expected, "{filter:?}");
    check(Filter { hosts: vec!["lab8".into()], ..Filter::default() }, &["latency", "rates"]);
    check(Filter { names: vec!["two".into()], ..Filter::default() }, &["two"]);
    check(Filter { engines: vec!["nobody".into()], ..Filter::default() }, &[]);
    let both = Filter { engines: vec!["weir".into()], sizes: vec![1024], ..Filter::default() };
    check(both, &[]);
    let run = &history.runs(&Filter::default()).unwrap()[0];
    assert_eq!((run.engines.as_str(), run.cases, run.not_measured), ("other udp weir", 10, 1));
}

#[test]
fn a_case_over_time_has_the_repeats_of_each_run() {
    let folder = scene();
    let history = History::open(folder.path()).unwrap();
    let filter = Filter { engines: vec!["weir".into()], ..Filter::default() };
    let points = history.points(&filter).unwrap();
    let hosts: Vec<&str> = points.iter().map(|point| point.key.host.as_str()).collect();
    assert_eq!(hosts, ["lab7", "lab8"]);
    let [first, second] = points[0].runs.as_slice() else { panic!("{points:?}") };
    assert_eq!((first.run.name.as_str(), first.values.len(), first.lost), ("one", 8, 8));
    let interval = second.interval().unwrap();
    assert!(interval.contains(second.median().unwrap()) && interval.low > 12.0, "{interval:?}");
    let (ratio, interval) = second.ratio(first).unwrap();
    assert!((ratio - 1.2).abs() < 0.01 && !interval.unwrap().contains(1.0), "{ratio} {interval:?}");
    assert_eq!(
        history.points(&Filter { tests: vec!["throughput".into()], ..Filter::default() }).unwrap().len(),
        2
    );
}

#[test]
fn names_are_those_of_one_run() {
    let folder = scene();
    let history = History::open(folder.path()).unwrap();
    let find = |name: &str| history.find(&name.parse::<RunName>().unwrap()).map(|run| run.name);
    assert_eq!(find("@latest").unwrap(), "rates");
    assert_eq!(find("@latest~2").unwrap(), "two");
    assert_eq!(find("@latest:one").unwrap(), "one");
    assert_eq!(find("@2026-11-24T10:00").unwrap(), "two");
    assert_eq!(find("@20261124T1105").unwrap(), "rates");
    assert_eq!(find("@2026-11-24T11:latency").unwrap(), "latency");
    let run = &history.runs(&Filter::default()).unwrap()[1];
    assert_eq!(find(&format!("@{}", run.id)).unwrap(), "two");
    assert_eq!(find(&format!("@{}", run.id[..6].to_uppercase())).unwrap(), "two");
    let error = find("@2026-11-24").unwrap_err().to_string();
    assert!(
        error.contains("names 3 runs") && error.contains(&format!("@{} (two/results.jsonl)", run.id)),
        "{error}"
    );
    assert!(find("@latest~4").unwrap_err().to_string().contains("no run in"));
    for bad in ["latest", "@", "@latest~", "@latest~x", "@latest:", "@a b"] {
        assert!(bad.parse::<RunName>().is_err(), "{bad}");
    }
}

#[test]
fn only_what_changed_is_read_again_and_what_is_gone_is_forgotten() {
    let folder = scene();
    assert_eq!(History::open(folder.path()).unwrap().state(), IndexState::Built);
    let unchanged = History::open(folder.path()).unwrap();
    assert_eq!((unchanged.state(), names(&unchanged, &Filter::default()).len()), (IndexState::Kept, 4));
    drop(unchanged);
    fs::remove_dir_all(folder.path().join("plan")).unwrap();
    put(folder.path(), "two", &run("2026-11-24T12:00:00Z", "lab9", 12.0));
    let history = History::open(folder.path()).unwrap();
    let runs = history.runs(&Filter::default()).unwrap();
    let hosts: Vec<&str> = runs.iter().map(|run| run.host.as_str()).collect();
    assert_eq!((history.state(), hosts), (IndexState::Kept, vec!["lab7", "lab9"]));
    assert_eq!(history.points(&Filter { hosts: vec!["lab8".into()], ..Filter::default() }).unwrap(), []);
}

#[test]
fn an_index_that_is_damaged_older_or_something_else_is_built_again() {
    let folder = scene();
    let index = folder.path().join(INDEX);
    drop(History::open(folder.path()).unwrap());
    let good = fs::read(&index).unwrap();
    let mut hole = good.clone();
    hole[4096..].fill(0x5a);
    let mut older = good.clone();
    // The user version of an SQLite file.
    older[60..64].copy_from_slice(&0_u32.to_be_bytes());
    for damaged in [&b""[..], b"not a database", &good[..good.len() / 2], &hole, &older] {
        fs::write(&index, damaged).unwrap();
        fs::write(folder.path().join(format!("{INDEX}-journal")), b"left behind").unwrap();
        let history = History::open(folder.path()).unwrap();
        assert_eq!((history.state(), names(&history, &Filter::default()).len()), (IndexState::Built, 4));
    }
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    let history = History::open(folder.path()).unwrap();
    assert_eq!((history.state(), names(&history, &Filter::default()).len()), (IndexState::InMemory, 4));
}

#[test]
fn damaged_files_are_read_as_far_as_they_go() {
    let folder = scene();
    let text = run("2026-11-25T10:00:00Z", "lab7", 10.0).to_lines();
    let put = |name: &str, text: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("results.jsonl"), text).unwrap();
    };
    put("cut", &text[..text.len() - 40]);
    put("damaged", &text.replacen("\"engine\":\"weir\"", "\"engine\":", 1));
    put("empty", "");
    put("newer", "{\"schema\":99}\n");
    let history = History::open(folder.path()).unwrap();
    let runs = history.runs(&Filter::default()).unwrap();
    let state = |name: &str| {
        let run = runs.iter().find(|run| run.name == name).unwrap();
        (run.state.clone(), run.cases)
    };
    assert_eq!(state("cut"), (RunState::Cut, 9));
    assert_eq!(state("damaged"), (RunState::Damaged(1), 9));
    assert!(matches!(state("empty"), (RunState::Unreadable(_), 0)));
    assert!(matches!(state("newer"), (RunState::Unreadable(reason), 0) if reason.contains("schema 99")));
    // What cannot be read has no name.
    let latest = history.find(&"@latest".parse().unwrap()).unwrap().name;
    assert_eq!(latest, "damaged");
}

#[test]
fn two_coordinators_and_two_readers_at_the_same_time_do_no_harm() {
    let folder = scene();
    let mut writers: Vec<ResultsWriter> = ["a", "b"]
        .map(|name| {
            let environment = environment("2026-11-25T10:00:00Z", name);
            ResultsWriter::create(folder.path().join(name), &environment, None).unwrap()
        })
        .into();
    let first = History::open(folder.path()).unwrap();
    for repeat in 1..=20 {
        for writer in &mut writers {
            writer.append(&latency("weir", 64, repeat, 10.0)).unwrap();
        }
        // The first one has the index, so that this one reads the files.
        let second = History::open(folder.path()).unwrap();
        assert_eq!(second.state(), IndexState::InMemory);
        let points = second.points(&Filter { sizes: vec![64], ..Filter::default() }).unwrap();
        let repeats: Vec<usize> = points.iter().map(|point| point.runs[0].values.len()).collect();
        assert_eq!(repeats, [repeat as usize; 2]);
    }
    assert_eq!(names(&first, &Filter::default()).len(), 6);
    drop(first);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let folder = folder.path().to_owned();
            std::thread::spawn(move || names(&History::open(folder).unwrap(), &Filter::default()).len())
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 6));
    let last = History::open(folder.path()).unwrap();
    let points = last.points(&Filter { sizes: vec![64], ..Filter::default() }).unwrap();
    assert_eq!((last.state(), points.len()), (IndexState::Kept, 2));
}

#[test]
fn an_identifier_stays_when_the_folder_moves() {
    let folder = scene();
    let ids = |folder: &Path| -> Vec<String> {
        let runs = History::open(folder).unwrap().runs(&Filter::default()).unwrap();
        runs.into_iter().map(|run| run.id).collect()
    };
    let before = ids(folder.path());
    let moved = folder.path().with_extension("moved");
    fs::rename(folder.path(), &moved).unwrap();
    let after = ids(&moved);
    fs::rename(&moved, folder.path()).unwrap();
    assert_eq!(before, after);
    assert!(before.iter().all(|id| id.len() == 8));
}

#[test]
fn a_folder_that_is_missing_is_an_error_that_says_what_to_do() {
    let folder = TempDir::new().unwrap();
    let Err(error) = History::open(folder.path().join("nowhere")) else { panic!() };
    assert!(error.to_string().contains("measure with `weir bench`"), "{error}");
    assert!(History::open(folder.path()).unwrap().runs(&Filter::default()).unwrap().is_empty());
}
