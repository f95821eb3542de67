//! One row per case and bucket of its latency histogram.

use super::{Cell, ExportTable, ExportType, keys, with_keys};
use crate::html::NamedRun;

const COLUMNS: [(&str, ExportType); 3] = [
    ("up_to_us", ExportType::Float),
    ("count", ExportType::Integer),
    ("cumulative_count", ExportType::Integer),
];

/// Returns the table, and the number of histograms that cannot be decoded.
pub(super) fn table(run: &NamedRun<'_>) -> (ExportTable, usize) {
    let mut table = ExportTable::empty(with_keys(&COLUMNS));
    let mut damaged = 0;
    for (number, case) in (1_u64..).zip(&run.run.cases) {
        let Some(histogram) = &case.figures.histogram else { continue };
        let Ok(distribution) = histogram.decode() else {
            damaged += 1;
            continue;
        };
        let keys = keys(run.name, number, case);
        let mut cumulative = 0_u64;
        for (up_to_us, count) in distribution.bins() {
            cumulative = cumulative.saturating_add(count);
            let own: [Cell; COLUMNS.len()] = [up_to_us.into(), count.into(), cumulative.into()];
            table.push(keys.iter().cloned().chain(own));
        }
    }
    (table, damaged)
}
