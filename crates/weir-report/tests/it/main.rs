//! The example results file in every format, compared with committed texts.

mod html;
mod large;

use std::path::Path;

use weir_report::ReportOptions;
use weir_results::{Environment, Run};

fn example() -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-results/tests/data/example-v1.jsonl");
    Run::load(path).expect("the committed example can be read")
}

fn empty() -> Run {
    Run::new(Environment::default())
}

#[test]
fn tables_of_the_example() {
    insta::assert_snapshot!(weir_report::tables(&example(), &ReportOptions::default()));
}

#[test]
fn csv_of_the_example() {
    insta::assert_snapshot!(weir_report::csv(&example(), &ReportOptions::default()));
}

#[test]
fn notes_of_the_example() {
    let run = example();
    insta::assert_snapshot!(format!(
        "{}\n{}",
        weir_report::environment(&run.environment),
        weir_report::warnings(&run)
    ));
}

#[test]
fn plots_of_the_example() {
    for plot in weir_report::plots(&example()) {
        insta::assert_snapshot!(plot.name.clone(), plot.svg);
    }
}

#[test]
fn plots_have_names_of_their_own() {
    let mut names: Vec<String> = weir_report::plots(&example()).into_iter().map(|plot| plot.name).collect();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn json_reads_back_as_the_same_run() {
    let run = example();
    let text = weir_report::json(&run, &ReportOptions::default());
    assert_eq!(Run::parse(&text, Path::new("printed")).unwrap(), run);
}

#[test]
fn csv_has_the_same_cells_in_every_line() {
    let text = weir_report::csv(&example(), &ReportOptions::default());
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let columns = reader.headers().unwrap().len();
    let lines: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(lines.len(), example().cases.len());
    assert!(lines.iter().all(|line| line.len() == columns));
}

#[test]
fn a_run_without_cases_reports_nothing_but_headers() {
    let run = empty();
    assert_eq!(weir_report::tables(&run, &ReportOptions::default()), "");
    assert_eq!(weir_report::warnings(&run), "");
    assert!(weir_report::plots(&run).is_empty());
    assert_eq!(weir_report::csv(&run, &ReportOptions::default()).lines().count(), 1);
    assert_eq!(
        Run::parse(&weir_report::json(&run, &ReportOptions::default()), Path::new("printed")).unwrap(),
        run
    );
}
