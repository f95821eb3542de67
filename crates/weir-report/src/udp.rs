//! Tables of UDP tests: round trips, streams at full speed, scheduled streams. `verdict`:
//! comparisons and bottlenecks.

mod verdict;

use comfy_table::Cell;
use weir_results::{Case, Run, Test, UdpFigures};

use crate::link::traffic_table;
use crate::loss::loss_line;
use crate::table::{Column, drawn, number_cell, text};

/// Returns a table for each kind and set of conditions of a run's UDP tests.
pub(crate) fn udp_tables(run: &Run) -> Vec<String> {
    let mut groups: Vec<(Kind, String, Vec<Point<'_>>)> = Vec::new();
    let cases = || run.cases.iter().filter_map(|case| Some((case, case.figures.udp.as_ref()?)));
    // External programs are shown next to what they were interleaved with, however they wait.
    let ours = cases().filter(|(case, udp)| !is_outside(case, udp));
    for (case, udp) in ours.chain(cases().filter(|(case, udp)| is_outside(case, udp))) {
        let (kind, conditions) = (Kind::of(case), conditions(case, udp));
        let at = groups.iter().position(|(k, c, points)| {
            let is_beside =
                || is_outside(case, udp) && points.iter().any(|point| point.is_measured_beside(case));
            *k == kind && (*c == conditions || is_beside())
        });
        let at = at.unwrap_or_else(|| {
            groups.push((kind, conditions, Vec::new()));
            groups.len() - 1
        });
        let points = &mut groups[at].2;
        match points.iter_mut().find(|point| point.repeats[0].same_point(case)) {
            Some(point) => point.repeats.push(case),
            None => points.push(Point { udp, repeats: vec![case] }),
        }
    }
    groups.sort_by_key(|(kind, _, _)| *kind);
    groups.iter().map(|(kind, conditions, points)| table(*kind, conditions, points)).collect()
}

/// Formats one measurement in a line: `gso 1460 B forward: 7053.2 Mbit/s of 7100.1 sent, lost 0.66
/// %`.
#[must_use]
pub fn udp_line(case: &Case) -> String {
    let what = case.figures.udp.as_ref().map_or_else(String::new, |udp| {
        let asked = udp.asked_mbps.map_or_else(String::new, |asked| format!(" at {asked} Mbit/s"));
        let who = if is_outside(case, udp) { &case.point.engine } else { udp.mode.name() };
        format!("{who} {} B {}{asked}: ", case.point.size_bytes, udp.direction)
    });
    if let Some(why) = &case.evidence.not_measured {
        return format!("{what}{why}");
    }
    if let (Some(stream), Some(udp)) = (&case.figures.throughput, &case.figures.udp) {
        let delay = case
            .figures
            .latency_us
            .map_or_else(String::new, |delay| format!(", one way p50 {:.1} us", delay.p50));
        return format!(
            "{what}{:.1} Mbit/s of {:.1} sent, lost {:.2} %{delay}",
            stream.mbps, udp.offered_mbps, stream.lost_percent
        );
    }
    case.figures.latency_us.map_or_else(
        || format!("{what}no figures"),
        |rtt| format!("{what}round trip p50 {:.2} us, p99 {:.2} us, lost {}", rtt.p50, rtt.p99, rtt.lost),
    )
}

/// The kinds of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    RoundTrip,
    Fast,
    Scheduled,
}

impl Kind {
    fn of(case: &Case) -> Self {
        match (case.point.test, case.conditions.rate_samples_per_s) {
            (Test::Latency, _) => Self::RoundTrip,
            (Test::Throughput, None) => Self::Fast,
            (Test::Throughput, Some(_)) => Self::Scheduled,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::RoundTrip => "UDP round trips (microseconds)",
            Self::Fast => "UDP streams at full speed",
            Self::Scheduled => {
                "UDP streams by a schedule (one-way delays from the intended send time, microseconds)"
            }
        }
    }
}

/// Returns whether an external program measured.
fn is_outside(case: &Case, udp: &UdpFigures) -> bool {
    case.point.engine != udp.mode.engine()
}

/// All repeats of one measurement.
struct Point<'a> {
    udp: &'a UdpFigures,
    repeats: Vec<&'a Case>,
}

impl Point<'_> {
    /// Returns the name of the sender and its mode: `gso`, `iperf3`, `round trips`.
    fn name(&self) -> &str {
        match self.repeats[0] {
            case if is_outside(case, self.udp) => &case.point.engine,
            case if case.point.test == Test::Latency => "round trips",
            _ => self.udp.mode.name(),
        }
    }

    /// Returns whether the two differ only in the measuring program and how that waits.
    fn is_measured_beside(&self, outside: &Case) -> bool {
        let own = self.repeats[0];
        own.point.test == outside.point.test
            && own.conditions.path == outside.conditions.path
            && own.conditions.kept_awake == outside.conditions.kept_awake
            && own.conditions.settings.get("cpus") == outside.conditions.settings.get("cpus")
    }
}

/// Returns the conditions that are not in the rows.
fn conditions(case: &Case, udp: &UdpFigures) -> String {
    let mut words = vec![format!("IPv{}", udp.ip_version), format!("wait: {}", case.conditions.wait)];
    words.extend((!udp.connected).then(|| "not connected".to_owned()));
    words.extend(udp.duplex.then(|| "both directions at once".to_owned()));
    words.extend(udp.dscp.map(|dscp| format!("DSCP {dscp}")));
    words.extend(udp.multicast.as_ref().map(|group| format!("to {group}")));
    words.extend(case.conditions.kept_awake.then(|| "processors kept awake".to_owned()));
    words.extend(
        case.conditions
            .settings
            .get("cpus")
            .filter(|cpus| *cpus != "none")
            .map(|cpus| format!("cpus {cpus}")),
    );
    words.extend(case.conditions.path.as_ref().map(|path| format!("path: {path}")));
    words.join(", ")
}

const ROUND_TRIP: &[Column] = &[
    ("Mean", 2, |case| Some(case.figures.latency_us?.mean)),
    ("Std", 2, |case| Some(case.figures.latency_us?.std)),
    ("Min", 2, |case| Some(case.figures.latency_us?.min)),
    ("50%", 2, |case| Some(case.figures.latency_us?.p50)),
    ("90%", 2, |case| Some(case.figures.latency_us?.p90)),
    ("99%", 2, |case| Some(case.figures.latency_us?.p99)),
    ("99.99%", 2, |case| Some(case.figures.latency_us?.p99_99)),
    ("Max", 2, |case| Some(case.figures.latency_us?.max)),
    ("Count", 0, |case| Some(case.figures.latency_us?.count as f64)),
    ("Lost", 0, |case| Some(case.figures.latency_us?.lost as f64)),
];

const FAST: &[Column] = &[
    ("Sent Mbit/s", 1, |case| Some(case.figures.udp.as_ref()?.offered_mbps)),
    ("Received Mbit/s", 1, |case| Some(case.figures.throughput?.mbps)),
    ("Datagrams/s", 0, |case| Some(case.figures.throughput?.samples_per_s)),
    ("Lost", 0, |case| Some(case.figures.throughput?.lost as f64)),
    ("Lost %", 2, |case| Some(case.figures.throughput?.lost_percent)),
    ("Gap", 0, |case| Some(case.figures.udp.as_ref()?.longest_gap as f64)),
    ("Dup", 0, |case| Some(case.figures.throughput?.duplicates as f64)),
    ("Reord", 0, |case| Some(case.figures.throughput?.reordered as f64)),
    ("Extent", 0, |case| Some(case.figures.udp.as_ref()?.reorder_extent_max as f64)),
    ("Per send", 1, |case| case.figures.throughput?.datagrams_per_send),
    ("Per receive", 1, |case| case.figures.udp.as_ref()?.datagrams_per_receive),
];

const SCHEDULED: &[Column] = &[
    ("Asked Mbit/s", 3, |case| case.figures.udp.as_ref()?.asked_mbps),
    ("Sent Mbit/s", 3, |case| Some(case.figures.udp.as_ref()?.offered_mbps)),
    ("Received Mbit/s", 3, |case| Some(case.figures.throughput?.mbps)),
    ("Lost", 0, |case| Some(case.figures.throughput?.lost as f64)),
    ("Lost %", 2, |case| Some(case.figures.throughput?.lost_percent)),
    ("Dup", 0, |case| Some(case.figures.throughput?.duplicates as f64)),
    ("Reord", 0, |case| Some(case.figures.throughput?.reordered as f64)),
    ("Extent", 0, |case| Some(case.figures.udp.as_ref()?.reorder_extent_max as f64)),
    ("Jitter", 2, |case| case.figures.udp.as_ref()?.jitter_us),
    ("50%", 2, |case| Some(case.figures.latency_us?.p50)),
    ("99%", 2, |case| Some(case.figures.latency_us?.p99)),
    ("99.9%", 2, |case| case.figures.udp.as_ref()?.one_way_p99_9_us),
    ("Max", 2, |case| Some(case.figures.latency_us?.max)),
    ("Lag 50%", 2, |case| Some(case.figures.schedule_lag_us?.p50)),
    ("Lag 99.9%", 2, |case| case.figures.schedule_lag_us?.p99_9),
    ("Clock error", 2, |case| Some(case.figures.udp.as_ref()?.clocks?.error_us)),
];

fn table(kind: Kind, conditions: &str, points: &[Point<'_>]) -> String {
    let columns = match kind {
        Kind::RoundTrip => ROUND_TRIP,
        Kind::Fast => FAST,
        Kind::Scheduled => SCHEDULED,
    };
    let first: &[&str] = if kind == Kind::RoundTrip {
        &["By", "Size (B)"]
    } else {
        &["Mode", "Size (B)", "Flows", "Direction"]
    };
    let headings: Vec<&str> =
        first.iter().copied().chain(columns.iter().map(|(heading, ..)| *heading)).collect();
    let (measured, missing): (Vec<_>, Vec<_>) = points
        .iter()
        .partition(|point| point.repeats.iter().any(|case| case.evidence.not_measured.is_none()));
    let rows = measured.iter().map(|point| {
        let udp = point.udp;
        let size = number_cell(point.repeats[0].point.size_bytes);
        let mut cells = match kind {
            Kind::RoundTrip if is_outside(point.repeats[0], udp) => vec![Cell::new(point.name()), size],
            Kind::RoundTrip => vec![Cell::new("weir udp"), size],
            _ => {
                let mode = format!("{}{}", point.name(), if udp.gro { "+gro" } else { "" });
                vec![Cell::new(mode), size, number_cell(udp.flows), Cell::new(udp.direction)]
            }
        };
        cells.extend(columns.iter().map(|column| number_cell(text(&point.repeats, *column))));
        cells
    });
    let table = drawn(headings, rows, |column| column >= first.len());
    let mut page = format!("{}, {conditions}\n", kind.title());
    if !measured.is_empty() {
        page.push_str(&format!("\n{table}\n"));
    }
    let notes = notes(kind, points, &missing);
    if !notes.is_empty() {
        page.push_str(&format!("\n{}\n", notes.join("\n")));
    }
    page.push_str(&traffic_table(measured.iter().map(|point| (point.name(), point.repeats.as_slice()))));
    page
}

fn notes(kind: Kind, points: &[Point<'_>], missing: &[&Point<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    if points.iter().any(|point| point.repeats.len() > 1) {
        notes.push("median over the repeats, smallest..largest below".to_owned());
    }
    match kind {
        Kind::RoundTrip => {}
        Kind::Fast => notes.push(
            "gap: longest run of missing datagrams; extent: how many numbers the latest reordered one was behind".to_owned(),
        ),
        Kind::Scheduled => {
            notes.push(
                "lag: how late datagrams were sent, which is part of the delay; jitter: RFC 3550; extent: how many numbers \
                 the latest reordered one was behind"
                    .to_owned(),
            );
            let clocks = || points.iter().flat_map(|point| &point.repeats).filter_map(|case| case.figures.udp.as_ref()?.clocks);
            notes.push(if clocks().all(|clocks| clocks.shared) {
                "both ends read the same clock".to_owned()
            } else {
                "the ends have separate clocks: delays are corrected by the measured offset, with at most the clock error \
                 left"
                    .to_owned()
            });
        }
    }
    for point in points {
        let name = match kind {
            Kind::RoundTrip => point.name().to_owned(),
            _ => format!("{} {}", point.name(), point.udp.direction),
        };
        let is_repeated = point.repeats.len() > 1;
        notes.extend(point.repeats.iter().filter_map(|case| loss_line(case, &name, is_repeated)));
    }
    notes.extend(verdict::lines(points));
    for case in missing.iter().map(|point| point.repeats[0]) {
        notes.push(udp_line(case));
    }
    notes
}

#[cfg(test)]
mod tests {
    use weir_results::{
        ClockRelation, Direction, Environment, LatencySummary, Reliability, ScheduleLag, ThroughputSummary,
        UdpMode,
    };

    use super::*;

    fn case(mode: UdpMode, asked_mbps: Option<f64>) -> Case {
        let mut case = Case::new(mode.engine(), Test::Throughput, Reliability::None, 1000);
        case.conditions.rate_samples_per_s = asked_mbps.map(|asked| asked * 125.0);
        case.figures.throughput =
            Some(ThroughputSummary { mbps: 99.5, lost: 3, ..ThroughputSummary::default() });
        case.figures.udp = Some(UdpFigures {
            mode,
            flows: 1,
            ip_version: 4,
            connected: true,
            asked_mbps,
            ..UdpFigures::default()
        });
        case
    }

    #[test]
    fn each_kind_has_a_table_and_repeats_share_a_row() {
        let mut run = Run::new(Environment::default());
        let mut again = case(UdpMode::Send, None);
        again.conditions.repeat = 2;
        again.figures.throughput = Some(ThroughputSummary { mbps: 101.5, ..ThroughputSummary::default() });
        let mut scheduled = case(UdpMode::Gso, Some(10.0));
        scheduled.figures.latency_us = Some(LatencySummary { p50: 12.25, ..LatencySummary::default() });
        scheduled.figures.schedule_lag_us = Some(ScheduleLag { p99_9: Some(3.5), ..ScheduleLag::default() });
        if let Some(udp) = &mut scheduled.figures.udp {
            udp.clocks = Some(ClockRelation { error_us: 8.5, ..ClockRelation::default() });
        }
        let mut round_trip = Case::new("udp", Test::Latency, Reliability::None, 32);
        round_trip.figures.latency_us = Some(LatencySummary { p50: 7.77, ..LatencySummary::default() });
        round_trip.figures.udp = Some(UdpFigures { ip_version: 6, ..UdpFigures::default() });
        run.cases = vec![case(UdpMode::Send, None), again, scheduled, round_trip];
        let tables = udp_tables(&run);
        assert_eq!(tables.len(), 3);
        assert!(tables[0].starts_with("UDP round trips") && tables[0].contains("7.77"), "{}", tables[0]);
        assert!(tables[0].contains("IPv6, wait: block, not connected"), "{}", tables[0]);
        assert!(tables[1].contains("99.5..101.5") && tables[1].contains("at full speed"), "{}", tables[1]);
        let scheduled = &tables[2];
        for text in ["10.000", "12.25", "3.50", "8.50", "at most the clock error left"] {
            assert!(scheduled.contains(text), "{text}: {scheduled}");
        }
    }

    #[test]
    fn a_line_says_what_came_of_it() {
        let mut case = case(UdpMode::Gso, Some(10.0));
        assert_eq!(udp_line(&case), "gso 1000 B forward at 10 Mbit/s: 99.5 Mbit/s of 0.0 sent, lost 0.00 %");
        case.evidence.not_measured = Some(weir_results::NotMeasured::Failed { reason: "no peer".to_owned() });
        let alone = Run { cases: vec![case.clone()], ..Run::new(Environment::default()) };
        let text = &udp_tables(&alone)[0];
        assert!(
            text.contains("\ngso 1000 B forward at 10 Mbit/s: failed: no peer") && !text.contains('|'),
            "{text}"
        );
        if let Some(udp) = &mut case.figures.udp {
            udp.direction = Direction::Reverse;
        }
        assert_eq!(udp_line(&case), "gso 1000 B reverse at 10 Mbit/s: failed: no peer");
    }
}
