//! What emulated links carried, lost and queued: a table below that of the figures.

use weir_results::{Case, LinkDirection};

use crate::group::{Group, Point};
use crate::table::{Column, drawn, text};

/// Returns the rates of both streams of a group's cases that shared a link; empty without any.
pub(crate) fn beside_table(group: &Group<'_>) -> String {
    if group.key.beside.is_none() {
        return String::new();
    }
    let row = |point: &Point<'_>| {
        let mut cells = vec![point.engine.clone(), point.size_bytes.to_string()];
        cells.extend(BESIDE.iter().map(|column| text(&point.repeats, *column)));
        cells
    };
    let headings = ["Engine", "Size (B)"].into_iter().chain(BESIDE.iter().map(|column| column.0));
    let rows: Vec<_> = group.points.iter().map(row).collect();
    let table = drawn(headings.collect::<Vec<_>>(), rows, |column| column > 0);
    format!("\nPayload received over the shared link\n\n{table}\n")
}

const BESIDE: &[Column] = &[
    ("Mbit/s", 1, |case| Some(case.figures.throughput?.mbps)),
    ("Beside it Mbit/s", 1, |case| case.figures.beside_mbps),
];

/// Returns the traffic of a group's cases on an emulated link, two rows for each; empty without
/// one.
pub(crate) fn link_table(group: &Group<'_>) -> String {
    let points = group.points.iter();
    traffic_table(points.map(|point| (point.engine.as_str(), point.repeats.as_slice())))
}

/// Returns the traffic of measurements, each with the name and the repeats.
pub(crate) fn traffic_table<'a>(points: impl Iterator<Item = (&'a str, &'a [&'a Case])>) -> String {
    let mut rows = Vec::new();
    let points: Vec<_> = points.filter(|(_, repeats)| repeats.iter().any(|case| has_link(case))).collect();
    let shown = columns(points.iter().flat_map(|(_, repeats)| repeats.iter().copied()));
    for (name, repeats) in points {
        for (to, columns) in ["subscribers", "publishers"].into_iter().zip(shown) {
            let size = repeats.first().map_or(0, |case| case.point.size_bytes);
            let mut cells = vec![name.to_owned(), size.to_string(), to.to_owned()];
            cells.extend(columns.iter().map(|column| text(repeats, *column)));
            rows.push(cells);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let headings = ["Engine", "Size (B)", "To"].into_iter().chain(shown[0].iter().map(|column| column.0));
    let table = drawn(headings.collect::<Vec<_>>(), rows, |column| column == 1 || column > 2);
    format!("\nTraffic on the link\n\n{table}\n\n{NOTE}\n")
}

/// Returns the columns for the traffic to the subscribers and to the publishers; that of the marks only if something
/// was marked.
pub(crate) fn columns<'a>(cases: impl Iterator<Item = &'a Case>) -> [&'static [Column]; 2] {
    let mut directions = cases.flat_map(|case| [down(case), up(case)]).flatten();
    let has_marks = directions.any(|it| it.marked_packets > 0);
    [TO_SUBSCRIBERS, TO_PUBLISHERS].map(|all| if has_marks { all } else { &all[..all.len() - 1] })
}

fn has_link(case: &Case) -> bool {
    case.figures.link.is_some()
}

fn down(case: &Case) -> Option<&LinkDirection> {
    case.figures.link.as_ref().map(|link| &link.to_subscribers)
}

fn up(case: &Case) -> Option<&LinkDirection> {
    case.figures.link.as_ref().map(|link| &link.to_publishers)
}

const TO_SUBSCRIBERS: &[Column] = &[
    ("Packets", 0, |case| Some(down(case)?.offered_packets as f64)),
    ("MB", 3, |case| Some(down(case)?.offered_bytes as f64 / 1e6)),
    ("Bytes/byte", 3, |case| case.figures.link.as_ref()?.offered_per_payload_byte),
    ("Queue full", 0, |case| Some(down(case)?.queue_full_packets as f64)),
    ("Lost", 0, |case| Some(down(case)?.lost_packets as f64)),
    ("Queue ms", 2, |case| Some(down(case)?.queue_mean_ms)),
    ("Queue max ms", 2, |case| Some(down(case)?.queue_max_ms)),
    ("Marked", 0, |case| Some(down(case)?.marked_packets as f64)),
];

const TO_PUBLISHERS: &[Column] = &[
    ("Packets", 0, |case| Some(up(case)?.offered_packets as f64)),
    ("MB", 3, |case| Some(up(case)?.offered_bytes as f64 / 1e6)),
    ("Bytes/byte", 3, |_| None),
    ("Queue full", 0, |case| Some(up(case)?.queue_full_packets as f64)),
    ("Lost", 0, |case| Some(up(case)?.lost_packets as f64)),
    ("Queue ms", 2, |case| Some(up(case)?.queue_mean_ms)),
    ("Queue max ms", 2, |case| Some(up(case)?.queue_max_ms)),
    ("Marked", 0, |case| Some(up(case)?.marked_packets as f64)),
];

pub(crate) const NOTE: &str = "packets, MB: sent into the link, IP headers included, from the meeting of the ends on, warm-up \
                    included; bytes/byte: sent into the link per byte of samples received; queue full, lost: packets \
                    dropped; queue: wait that a packet found, mean over the packets";

#[cfg(test)]
mod tests {
    use weir_results::{LinkFigures, Reliability, Test};

    use super::*;

    fn case(link: Option<LinkFigures>) -> Case {
        Case::new("weir", Test::Throughput, Reliability::Reliable, 1024).with(|it| it.figures.link = link)
    }

    #[test]
    fn a_case_on_an_emulated_link_has_a_row_for_each_direction() {
        let to_subscribers = LinkDirection {
            offered_packets: 1000,
            offered_bytes: 1_126_000,
            queue_full_packets: 7,
            lost_packets: 5,
            queue_mean_ms: 3.456,
            queue_max_ms: 10.5,
            ..LinkDirection::default()
        };
        let to_publishers =
            LinkDirection { offered_packets: 31, offered_bytes: 3100, ..LinkDirection::default() };
        let mut link = LinkFigures { to_subscribers, to_publishers, ..LinkFigures::default() };
        link.enter_payload(1_024_000);
        let case = case(Some(link));
        let table = traffic_table([("weir", &[&case][..])].into_iter());
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| line.starts_with("| weir"))
            .map(|line| line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(
            rows,
            [
                ["weir", "1024", "subscribers", "1000", "1.126", "1.100", "7", "5", "3.46", "10.50"],
                ["weir", "1024", "publishers", "31", "0.003", "-", "0", "0", "0.00", "0.00"],
            ],
            "{table}"
        );
    }

    #[test]
    fn marks_have_a_column_if_there_are_any() {
        let shown = |marked_packets| {
            let to_publishers = LinkDirection { marked_packets, ..LinkDirection::default() };
            let case = case(Some(LinkFigures { to_publishers, ..LinkFigures::default() }));
            traffic_table([("weir", &[&case][..])].into_iter())
        };
        assert!(!shown(0).contains("Marked"));
        let table = shown(31);
        let last = |line: &str| {
            line.trim_end_matches(['|', ' ']).rsplit('|').next().map(str::trim).map(str::to_owned)
        };
        let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| weir")).filter_map(last).collect();
        assert!(table.contains("Marked") && rows == ["0", "31"], "{table}");
    }

    #[test]
    fn there_is_no_table_without_an_emulated_link() {
        assert_eq!(traffic_table([("weir", &[&case(None)][..])].into_iter()), "");
    }
}
