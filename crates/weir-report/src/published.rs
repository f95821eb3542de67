//! Published figures of another machine, shown beside those of a run and compared with nothing.

use weir_results::{Case, Direction, LatencyKind, Test};

use crate::group::{Group, GroupKey, Point};

/// A published table.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Its name, such as `pro-latency-1g-keyed-reliable`.
    pub name: String,
    /// Its name in tables and legends, such as `Connext Professional (published)`.
    pub label: String,
    /// Where it was published, and the machines that it was measured on.
    pub source: String,
    /// Its rows.
    pub rows: Vec<PublishedRow>,
}

/// A row of a published table.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedRow {
    /// The conditions and the figures. The engine has no meaning.
    pub case: Case,
    /// Whether its figures contradict each other.
    pub is_doubtful: bool,
}

/// A published row beside the points of a group.
#[derive(Debug, Clone)]
pub(crate) struct PublishedPoint<'a> {
    /// Its engine is the table's label.
    pub(crate) point: Point<'a>,
    pub(crate) table: &'a Published,
    pub(crate) is_doubtful: bool,
}

/// What the marks of doubtful rows mean.
pub(crate) const DOUBTFUL: &str = "? The published figures of this row contradict each other.";

/// Adds to each group the published rows that were measured under its conditions, apart from hosts and link.
pub(crate) fn put_beside<'a>(groups: &mut [Group<'a>], published: &'a [Published]) {
    for group in groups {
        let first = group.points.iter().find_map(|point| point.repeats.first().copied());
        let Some(first) = first else { continue };
        let rows = published.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        let mut published: Vec<PublishedPoint<'a>> = Vec::new();
        for (table, row) in rows.filter(|(_, row)| is_like(&group.key, first, &row.case)) {
            let (engine, size_bytes) = (label(table, &row.case), row.case.point.size_bytes);
            let is_same = |it: &&mut PublishedPoint<'_>| {
                it.table.name == table.name && it.point.engine == engine && it.point.size_bytes == size_bytes
            };
            // Published runs of the same size are repeats.
            if let Some(known) = published.iter_mut().find(is_same) {
                known.point.repeats.push(&row.case);
                continue;
            }
            let point = Point { engine, size_bytes, load: None, repeats: vec![&row.case] };
            published.push(PublishedPoint { point, table, is_doubtful: row.is_doubtful });
        }
        group.published = published;
    }
}

/// The label of a table, with the direction of a stream.
fn label(table: &Published, row: &Case) -> String {
    match &row.figures.udp {
        Some(udp) if udp.direction == Direction::Reverse => format!("{}, reverse", table.label),
        _ => table.label.clone(),
    }
}

/// Whether a published row has the conditions of a group, whose first case is `first`.
fn is_like(key: &GroupKey, first: &Case, row: &Case) -> bool {
    let is_duplex = |case: &Case| case.figures.udp.as_ref().is_some_and(|udp| udp.duplex);
    let own = GroupKey::of(row, LatencyKind::HalfRtt);
    key.test == own.test
        && (key.test == Test::Throughput || key.kind == own.kind)
        && key.keyed == own.keyed
        && key.reliability == own.reliability
        && (key.batch_bytes > 0) == (own.batch_bytes > 0)
        && (key.publishers, key.subscribers) == (1, 1)
        && !key.multicast
        && !key.apart
        && key.beside.is_none()
        && key.has_rate() == own.has_rate()
        && first.figures.udp.is_some() == row.figures.udp.is_some()
        && is_duplex(first) == is_duplex(row)
}

/// Says whose figures are beside those of a group; nothing without any.
pub(crate) fn notes(group: &Group<'_>) -> Vec<String> {
    let mut tables: Vec<&Published> = Vec::new();
    for it in &group.published {
        if !tables.iter().any(|table| table.name == it.table.name) {
            tables.push(it.table);
        }
    }
    let mut notes: Vec<String> = tables
        .iter()
        .map(|table| {
            let Published { name, label, source, .. } = table;
            format!("{label}: the vendor's figures of another machine, from {name}: {source}.")
        })
        .collect();
    notes.extend(group.published.iter().any(|it| it.is_doubtful).then(|| DOUBTFUL.to_owned()));
    notes
}

#[cfg(test)]
mod tests {
    use weir_results::{Environment, LatencySummary, Reliability, Run, UdpFigures};

    use super::*;
    use crate::group::groups;

    fn row(case: Case) -> PublishedRow {
        PublishedRow { case, is_doubtful: false }
    }

    fn latency(reliability: Reliability, size: u64) -> Case {
        Case::new("", Test::Latency, reliability, size).with(|it| {
            it.figures.latency_us = Some(LatencySummary { p50: 20.0, ..LatencySummary::default() });
        })
    }

    fn table(rows: Vec<PublishedRow>) -> Published {
        Published { name: "t".into(), label: "them (published)".into(), source: "a page".into(), rows }
    }

    #[test]
    fn rows_are_beside_what_was_measured_under_the_same_conditions() {
        let (reliable, best_effort) = (Reliability::Reliable, Reliability::BestEffort);
        let keyed = latency(reliable, 32).with(|it| it.point.keyed = true);
        let udp = latency(reliable, 32).with(|it| it.figures.udp = Some(UdpFigures::default()));
        let others = [latency(best_effort, 32), keyed, udp];
        let rows = [latency(reliable, 32), latency(reliable, 64)].into_iter().chain(others).map(row);
        let tables = [table(rows.collect())];
        let measured = latency(reliable, 32).with(|it| {
            it.point.engine = "weir".to_owned();
            it.conditions.path = Some("veth".to_owned());
        });
        let run = Run { cases: vec![measured], ..Run::new(Environment::default()) };
        let mut groups = groups(&run);
        put_beside(&mut groups, &tables);
        let sizes: Vec<u64> = groups[0].published.iter().map(|it| it.point.size_bytes).collect();
        assert_eq!(sizes, [32, 64]);
        let notes = notes(&groups[0]);
        assert_eq!(notes, ["them (published): the vendor's figures of another machine, from t: a page."]);
    }
}
