//! The hosts' activity during the cases of a run, for spreadsheets and scripts.

use std::collections::BTreeSet;

use weir_results::{Case, Run, Telemetry};

/// Returns the telemetry of all cases as CSV, one line for each row of each end, in the order of
/// measuring.
///
/// Columns: `case` (its number from 1), `engine, test, reliability, size_bytes, repeat, end`
/// (publisher or subscriber), `at_ms` (since the end started), then a column for each figure that
/// any end has, sorted by name. Cells of figures that a row does not have are empty.
///
/// # Panics
/// Never: writing into memory does not fail.
#[must_use]
pub fn telemetry_csv(run: &Run) -> String {
    let names: BTreeSet<&str> =
        run.cases.iter().flat_map(ends).flat_map(|(_, telemetry)| telemetry.names()).collect();
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let header = FIRST.into_iter().chain(names.iter().copied());
    writer.write_record(header).expect("writing into memory does not fail");
    for (number, case) in (1..).zip(&run.cases) {
        for (end, telemetry) in ends(case) {
            for row in 0..telemetry.rows() {
                let mut record = first_cells(number, case, end);
                record.push(telemetry.at_ms(row).unwrap_or_default().to_string());
                let figure = |name: &&str| telemetry.value(name, row);
                record.extend(
                    names.iter().map(|name| figure(name).map_or_else(String::new, |value| value.to_string())),
                );
                writer.write_record(record).expect("every row has the cells of the header");
            }
        }
    }
    let bytes = writer.into_inner().expect("writing into memory does not fail");
    String::from_utf8(bytes).expect("all cells are text")
}

/// Returns the telemetry of all cases in the format of hpcbench's system log, one log after the
/// other, each with a heading that names its case and end.
#[must_use]
pub fn telemetry_log(run: &Run) -> String {
    let host = run.environment.hostname.as_deref().unwrap_or("unnamed");
    let mut text = String::new();
    for (number, case) in (1..).zip(&run.cases) {
        for (end, telemetry) in ends(case) {
            let between = if text.is_empty() { "" } else { "\n" };
            text += &format!(
                "{between}# Case {number}: {} {} {} {} B, {end}\n{}",
                case.point.engine,
                case.point.test,
                case.point.reliability,
                case.point.size_bytes,
                telemetry.hpcbench_log(host, &run.environment.date)
            );
        }
    }
    text
}

/// The columns that identify a row.
const FIRST: [&str; 8] = ["case", "engine", "test", "reliability", "size_bytes", "repeat", "end", "at_ms"];

fn first_cells(number: usize, case: &Case, end: &str) -> Vec<String> {
    vec![
        number.to_string(),
        case.point.engine.clone(),
        case.point.test.to_string(),
        case.point.reliability.to_string(),
        case.point.size_bytes.to_string(),
        case.conditions.repeat.to_string(),
        end.to_owned(),
    ]
}

fn ends(case: &Case) -> impl Iterator<Item = (&'static str, &Telemetry)> {
    [("publisher", &case.evidence.publisher_telemetry), ("subscriber", &case.evidence.subscriber_telemetry)]
        .into_iter()
        .filter_map(|(end, telemetry)| Some((end, telemetry.as_ref()?)))
}
