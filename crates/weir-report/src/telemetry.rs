//! The hosts' activity during the cases of a run, for spreadsheets and scripts.

use std::collections::BTreeSet;

use weir_results::{Case, Run, Telemetry};

use crate::csv::written;

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
    let header = FIRST.into_iter().chain(names.iter().copied()).map(str::to_owned).collect();
    let mut records = vec![header];
    for (number, case) in (1..).zip(&run.cases) {
        for (end, telemetry) in ends(case) {
            records.extend((0..telemetry.rows()).map(|row| {
                let first: [&dyn ToString; 8] = [
                    &number,
                    &case.point.engine,
                    &case.point.test,
                    &case.point.reliability,
                    &case.point.size_bytes,
                    &case.conditions.repeat,
                    &end,
                    &telemetry.at_ms(row).unwrap_or_default(),
                ];
                let figures = names.iter().map(|name| telemetry.value(name, row));
                let figures = figures.map(|value| value.map_or_else(String::new, |value| value.to_string()));
                first.into_iter().map(ToString::to_string).chain(figures).collect()
            }));
        }
    }
    written(records)
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

fn ends(case: &Case) -> impl Iterator<Item = (&'static str, &Telemetry)> {
    [("publisher", &case.evidence.publisher_telemetry), ("subscriber", &case.evidence.subscriber_telemetry)]
        .into_iter()
        .filter_map(|(end, telemetry)| Some((end, telemetry.as_ref()?)))
}
