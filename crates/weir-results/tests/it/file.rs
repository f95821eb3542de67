//! Results on disk: what survives, what is refused, and the error texts.

use std::fs;
use std::path::Path;

use weir_results::{
    Case, Environment, RESULTS_FILE_NAME, Reliability, ResultsError, ResultsWriter, Run, Test,
    is_being_written,
};

fn environment() -> Environment {
    Environment { kernel: "6.1".into(), ..Environment::default() }
}

fn case(size_bytes: u64) -> Case {
    Case::new("weir", Test::Latency, Reliability::Reliable, size_bytes)
}

fn sizes(run: &Run) -> Vec<u64> {
    run.cases.iter().map(|case| case.point.size_bytes).collect()
}

#[test]
fn every_appended_case_is_on_disk_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("new").join("folder");
    let mut writer = ResultsWriter::create(&folder, &environment(), None).unwrap();
    assert_eq!(writer.path(), folder.join(RESULTS_FILE_NAME));
    assert_eq!(Run::load(&folder).unwrap(), Run::new(environment()));
    for size in [32, 64] {
        writer.append(&case(size)).unwrap();
        assert_eq!(Run::load(writer.path()).unwrap().cases.last(), Some(&case(size)));
    }
    let text = fs::read_to_string(writer.path()).unwrap();
    assert!(text.starts_with("{\"schema\":1,\"environment\":{"));
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn a_line_cut_short_by_a_kill_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ResultsWriter::create(dir.path(), &environment(), None).unwrap();
    writer.append(&case(32)).unwrap();
    writer.append(&case(64)).unwrap();
    let text = fs::read_to_string(writer.path()).unwrap();
    fs::write(writer.path(), &text[..text.len() - 10]).unwrap();
    assert_eq!(sizes(&Run::load(dir.path()).unwrap()), [32]);
}

#[test]
fn a_run_that_was_cut_anywhere_in_its_last_line_goes_on_with_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ResultsWriter::create(dir.path(), &environment(), None).unwrap();
    writer.append(&case(32)).unwrap();
    let begin = fs::metadata(writer.path()).unwrap().len() as usize;
    // The name is cut within a character, too.
    writer.append(&Case::new("wéir", Test::Latency, Reliability::Reliable, 64)).unwrap();
    let (path, bytes) = (writer.path().to_owned(), fs::read(writer.path()).unwrap());
    drop(writer);
    for cut in begin..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let before = sizes(&Run::load(dir.path()).unwrap());
        // Only the end of the line is missing, or nothing.
        assert_eq!(before.len(), if cut + 1 >= bytes.len() { 2 } else { 1 }, "{cut}");
        let (mut writer, run) = ResultsWriter::resume(dir.path()).unwrap();
        assert_eq!(sizes(&run), before, "{cut}");
        writer.append(&case(128)).unwrap();
        let after = [before, vec![128]].concat();
        assert_eq!(sizes(&Run::load(dir.path()).unwrap()), after, "{cut}");
    }
}

#[test]
fn a_second_run_is_not_written_over_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ResultsWriter::create(dir.path(), &environment(), None).unwrap();
    writer.append(&case(32)).unwrap();
    let error = ResultsWriter::create(dir.path(), &environment(), None).unwrap_err();
    assert!(matches!(error, ResultsError::AlreadyExists { .. }));
    assert!(
        error.to_string().ends_with("already contains a run; choose another folder, or move the file away")
    );
    assert_eq!(sizes(&Run::load(dir.path()).unwrap()), [32]);
}

#[test]
fn a_run_is_written_by_one_process_at_a_time_and_others_see_that() {
    let dir = tempfile::tempdir().unwrap();
    let writer = ResultsWriter::create(dir.path(), &environment(), None).unwrap();
    let path = writer.path().to_owned();
    assert!(is_being_written(&path));
    let error = ResultsWriter::resume(dir.path()).unwrap_err();
    assert!(matches!(error, ResultsError::InUse { .. }), "{error}");
    drop(writer);
    assert!(!is_being_written(&path) && !is_being_written(dir.path().join("missing")));
    let (_writer, _) = ResultsWriter::resume(dir.path()).unwrap();
    assert!(is_being_written(path));
}

#[test]
fn a_folder_that_cannot_be_made_fails_at_once_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = ResultsWriter::create(file.join("results"), &environment(), None).unwrap_err().to_string();
    assert!(error.starts_with("cannot create the results folder"), "{error}");
    assert!(error.ends_with("choose another folder or make it writable"), "{error}");
}

#[test]
fn damage_is_named_by_its_line() {
    let text = "{\"schema\":1,\"environment\":{}}\n\n{\"engine\":3}\n";
    let error = Run::parse(text, Path::new("some.jsonl")).unwrap_err();
    assert!(matches!(error, ResultsError::Parse { line: 3, .. }), "{error}");
    assert!(error.to_string().starts_with("some.jsonl, line 3: not a line of results: "), "{error}");
    for text in ["", "\n", "[]", "{}", "nonsense", "{\"schema\":1}"] {
        let error = Run::parse(text, Path::new("x")).unwrap_err();
        assert!(matches!(error, ResultsError::Parse { line: 1, .. }), "{text:?}: {error}");
    }
}

#[test]
fn a_later_version_is_named_as_that() {
    for text in ["{\"schema\":2,\"environment\":{}}\n", "{\"schema\":2,\"cases\":[{\"new\":1}]}"] {
        let error = Run::parse(text, Path::new("x")).unwrap_err();
        assert!(matches!(error, ResultsError::Schema { found: 2, .. }), "{error}");
        assert!(error.to_string().contains("schema 2, but this version of Weir reads schema 1"), "{error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Run::load("/nonexistent/results.jsonl").unwrap_err().to_string();
    assert!(error.starts_with("can't read /nonexistent/results.jsonl: "), "{error}");
}
