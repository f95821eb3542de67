//! What an engine measured of its paths to other hosts: a table below that of the figures.

use weir_results::{Case, PathFigures};

use crate::group::{Group, Point};
use crate::table::{Column, drawn, text};

/// Returns the first path of a group's points, a row for each; empty if no engine reported one.
pub(crate) fn path_table(group: &Group<'_>) -> String {
    let has_path = |point: &&Point<'_>| point.repeats.iter().any(|case| path(case).is_some());
    let shown = columns(group);
    let rows = group.points.iter().filter(has_path).map(|point| {
        let mut cells = vec![point.engine.clone(), point.size_bytes.to_string()];
        cells.extend(shown.iter().map(|column| text(&point.repeats, *column)));
        cells
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let headings = ["Engine", "Size (B)"].into_iter().chain(shown.iter().map(|column| column.0));
    let table = drawn(headings.collect::<Vec<_>>(), rows, |column| column > 0);
    format!("\nPath to the subscribers, by the engine\n\n{table}\n\n{NOTE}\n")
}

pub(crate) fn path(case: &Case) -> Option<&PathFigures> {
    case.figures.paths.first()
}

/// Returns the columns; that of the marks only if some path uses ECN.
pub(crate) fn columns(group: &Group<'_>) -> &'static [Column] {
    let mut cases = group.points.iter().flat_map(|point| point.repeats.iter());
    let uses_ecn = cases.any(|case| path(case).is_some_and(|path| path.ecn_datagrams > 0));
    if uses_ecn { COLUMNS } else { &COLUMNS[..COLUMNS.len() - 1] }
}

const COLUMNS: &[Column] = &[
    ("RTT min ms", 3, |case| path(case)?.round_trip_min_ms),
    ("RTT ms", 3, |case| path(case)?.round_trip_ms),
    ("Queue ms", 3, |case| path(case)?.queue_ms),
    ("Rate Mbit/s", 2, |case| path(case)?.rate_mbps),
    ("In flight kB", 1, |case| Some(path(case)?.in_flight_bytes / 1e3)),
    ("Sent MB", 3, |case| Some(path(case)?.sent_bytes as f64 / 1e6)),
    ("Lost MB", 3, |case| Some(path(case)?.lost_bytes as f64 / 1e6)),
    ("Repaired MB", 3, |case| Some(path(case)?.repaired_bytes as f64 / 1e6)),
    ("Waits", 0, |case| Some(path(case)?.waits as f64)),
    ("Marked", 0, |case| Some(path(case)?.marked_datagrams as f64)),
];

pub(crate) const NOTE: &str = "what the publisher's engine measured; RTT, queue, rate, in flight: means over the case; rate: - if the path \
                    is not paced; lost: reported by readers; repaired: sent again; waits: times that a writer had to wait";

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use weir_results::{Environment, PathReading, Reliability, Run, Test};

    use super::*;
    use crate::group::groups;

    fn table(paths: Vec<PathFigures>) -> String {
        let case = Case::new("weir", Test::Throughput, Reliability::Reliable, 1024);
        let run =
            Run { cases: vec![case.with(|it| it.figures.paths = paths)], ..Run::new(Environment::default()) };
        path_table(&groups(&run)[0])
    }

    #[test]
    fn a_point_with_a_path_has_a_row() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let reading = PathReading {
            round_trip_min: ms(60),
            round_trip: ms(75),
            queue: ms(15),
            rate_bps: None,
            in_flight_bytes: 30_000,
            sent_bytes: 2_000_000,
            lost_bytes: 10_000,
            repaired_bytes: 12_000,
            waits: 7,
            ..PathReading::default()
        };
        let path = PathFigures::new(Ipv4Addr::LOCALHOST, Duration::from_millis(25), &[reading], &reading);
        let table = table(vec![path]);
        let row = table.lines().find(|line| line.starts_with("| weir")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let expected =
            ["weir", "1024", "60.000", "75.000", "15.000", "-", "30.0", "2.000", "0.010", "0.012", "7"];
        assert_eq!(cells, expected, "{table}");
    }

    #[test]
    fn there_is_no_table_without_a_path() {
        assert_eq!(table(Vec::new()), "");
    }
}
