//! One row per case and second.

use super::{Cell, ExportTable, ExportType, keys, with_keys};
use crate::html::NamedRun;

const COLUMNS: [(&str, ExportType); 9] = [
    ("start_s", ExportType::Float),
    ("step_s", ExportType::Float),
    ("received_samples", ExportType::Integer),
    ("missing_samples", ExportType::Integer),
    ("p50_us", ExportType::Float),
    ("p99_us", ExportType::Float),
    ("max_us", ExportType::Float),
    ("publisher_cpu_percent", ExportType::Float),
    ("subscriber_cpu_percent", ExportType::Float),
];

pub(super) fn table(run: &NamedRun<'_>) -> ExportTable {
    let mut table = ExportTable::empty(with_keys(&COLUMNS));
    for (number, case) in (1_u64..).zip(&run.run.cases) {
        let Some(series) = &case.figures.series else { continue };
        let step_s = series.step_ms / 1e3;
        let at = |values: &[Option<f64>], step: usize| -> Cell { values.get(step).copied().flatten().into() };
        for (step, received) in series.received.iter().enumerate() {
            let own: [Cell; COLUMNS.len()] = [
                (step as f64 * step_s).into(),
                step_s.into(),
                (*received).into(),
                series.missing.get(step).copied().into(),
                at(&series.p50_us, step),
                at(&series.p99_us, step),
                at(&series.max_us, step),
                at(&series.publisher_cpu_percent, step),
                at(&series.subscriber_cpu_percent, step),
            ];
            table.push(keys(run.name, number, case).into_iter().chain(own));
        }
    }
    table
}
