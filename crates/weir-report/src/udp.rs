//! Tables of UDP tests: round trips, streams at full speed, scheduled streams. `verdict`:
//! comparisons and bottlenecks.

mod verdict;

use comfy_table::Cell;
use weir_results::{Case, Direction, Run, Test, UdpFigures};

use crate::group::Point as GroupPoint;
use crate::link::traffic_table;
use crate::loss::loss_line;
use crate::table::{Column, drawn, marked_text, number_cell, text, unsupported_note};

/// Returns a table for each kind and set of conditions of a run's UDP tests, as text.
pub(crate) fn udp_tables(run: &Run) -> Vec<String> {
    udp_groups(run).iter().map(UdpGroup::text).collect()
}

/// UDP tests of one kind under the same conditions.
pub(crate) struct UdpGroup<'a> {
    kind: Kind,
    /// E.g. `UDP streams at full speed, IPv4, wait: block`.
    pub(crate) title: String,
    pub(crate) headings: Vec<&'static str>,
    /// The cells of each measurement, and whether they hold numbers.
    pub(crate) rows: Vec<Vec<(String, bool)>>,
    pub(crate) notes: Vec<String>,
    /// What was measured, with names that differ within a size.
    pub(crate) points: Vec<GroupPoint<'a>>,
    /// What emulated links carried, as text.
    traffic: String,
}

/// Returns the UDP tests of a run by kind and conditions.
pub(crate) fn udp_groups(run: &Run) -> Vec<UdpGroup<'_>> {
    let groups = grouped(run);
    groups.iter().map(|(kind, conditions, points)| UdpGroup::new(*kind, conditions, points)).collect()
}

/// A measurement with its kind and conditions.
pub(crate) struct UdpPoint<'a> {
    /// Whether it sends by a schedule, and has delays.
    pub(crate) is_scheduled: bool,
    pub(crate) title: String,
    pub(crate) point: GroupPoint<'a>,
}

/// Returns all measurements of a run, also those that failed.
pub(crate) fn udp_points<'r>(run: &'r Run) -> Vec<UdpPoint<'r>> {
    let of_group = |(kind, conditions, points): (Kind, String, Vec<Point<'r>>)| {
        points.into_iter().map(move |point| UdpPoint {
            is_scheduled: kind == Kind::Scheduled,
            title: format!("{}, {conditions}", kind.short_title()),
            point: point.shown(),
        })
    };
    grouped(run).into_iter().flat_map(of_group).collect()
}

fn grouped(run: &Run) -> Vec<(Kind, String, Vec<Point<'_>>)> {
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
    groups
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
            (Test::Throughput | Test::Workload, None) => Self::Fast,
            (Test::Throughput | Test::Workload, Some(_)) => Self::Scheduled,
        }
    }

    fn columns(self) -> &'static [Column] {
        match self {
            Self::RoundTrip => ROUND_TRIP,
            Self::Fast => FAST,
            Self::Scheduled => SCHEDULED,
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

impl Kind {
    /// The title without units.
    fn short_title(self) -> &'static str {
        match self {
            Self::RoundTrip => "UDP round trips",
            Self::Fast => "UDP streams at full speed",
            Self::Scheduled => "UDP streams by a schedule",
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

impl<'a> Point<'a> {
    /// Returns it with a name that differs from those of other measurements of the same size.
    fn shown(&self) -> GroupPoint<'a> {
        GroupPoint {
            engine: self.name_with_rate(),
            size_bytes: self.repeats[0].point.size_bytes,
            load: None,
            repeats: self.repeats.clone(),
        }
    }

    /// Returns the name of the sender and its mode: `gso`, `iperf3`, `round trips`.
    fn name(&self) -> &str {
        match self.repeats[0] {
            case if is_outside(case, self.udp) => &case.point.engine,
            case if case.point.test == Test::Latency => "round trips",
            _ => self.udp.mode.name(),
        }
    }

    /// Returns the cells that name the measurement, and whether they hold numbers.
    fn names(&self, kind: Kind) -> Vec<(String, bool)> {
        let (udp, size) = (self.udp, (self.repeats[0].point.size_bytes.to_string(), true));
        match kind {
            Kind::RoundTrip if is_outside(self.repeats[0], udp) => {
                vec![(self.name().to_owned(), false), size]
            }
            Kind::RoundTrip => vec![("weir udp".to_owned(), false), size],
            _ => {
                let mode = format!("{}{}", self.name(), if udp.gro { "+gro" } else { "" });
                vec![(mode, false), size, (udp.flows.to_string(), true), (udp.direction.to_string(), false)]
            }
        }
    }

    /// Returns a name that differs from those of other measurements of the same size.
    fn name_with_rate(&self) -> String {
        let udp = self.udp;
        let gro = if udp.gro { "+gro" } else { "" };
        let flows = if udp.flows > 1 { format!(", {} flows", udp.flows) } else { String::new() };
        let is_forward = udp.direction == Direction::default();
        let direction = if is_forward { String::new() } else { format!(", {}", udp.direction) };
        // The maximum that a share refers to differs from run to run.
        let rate = match (self.repeats[0].conditions.load_percent, udp.asked_mbps) {
            (Some(percent), _) => format!(", {percent} % of the maximum"),
            (None, Some(asked)) => format!(", {asked} Mbit/s"),
            (None, None) => String::new(),
        };
        format!("{}{gro}{flows}{direction}{rate}", self.name())
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

/// What a published table of UDP tests has.
const PUBLISHED_TIMES: &[&str] = &["Mean", "Min", "50%", "Max"];
const PUBLISHED_RATES: &[&str] = &["Received Mbit/s", "Datagrams/s", "Lost", "Lost %"];

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

impl<'a> UdpGroup<'a> {
    fn new(kind: Kind, conditions: &str, points: &[Point<'a>]) -> Self {
        let columns = kind.columns();
        let first: &[&str] = if kind == Kind::RoundTrip {
            &["By", "Size (B)"]
        } else {
            &["Mode", "Size (B)", "Flows", "Direction"]
        };
        let (measured, missing): (Vec<_>, Vec<_>) = points
            .iter()
            .partition(|point| point.repeats.iter().any(|case| case.evidence.not_measured.is_none()));
        let row = |point: &&Point<'_>| {
            let mut cells = point.names(kind);
            let shown = point.shown();
            cells.extend(columns.iter().map(|column| (marked_text(&shown, *column), true)));
            cells
        };
        Self {
            kind,
            title: format!("{}, {conditions}", kind.title()),
            headings: first.iter().copied().chain(columns.iter().map(|(heading, ..)| *heading)).collect(),
            rows: measured.iter().map(row).collect(),
            notes: notes(kind, points, &missing),
            points: measured.iter().map(|point| point.shown()).collect(),
            traffic: traffic_table(measured.iter().map(|point| (point.name(), point.repeats.as_slice()))),
        }
    }

    /// The cells of published figures; `-` for what was not published.
    pub(crate) fn published_cells(&self, point: &GroupPoint<'_>) -> Vec<String> {
        let names = self.headings.len() - self.kind.columns().len();
        let name = |(number, heading): (usize, &&str)| match *heading {
            _ if number == 0 => point.engine.clone(),
            "Size (B)" => point.size_bytes.to_string(),
            _ => "-".to_owned(),
        };
        let is_known = |heading: &str| match self.kind {
            Kind::RoundTrip => PUBLISHED_TIMES.contains(&heading),
            _ => PUBLISHED_RATES.contains(&heading),
        };
        let figure = |column: &Column| {
            if is_known(column.0) { text(&point.repeats, *column) } else { "-".to_owned() }
        };
        let names = self.headings.iter().take(names).enumerate().map(name);
        names.chain(self.kind.columns().iter().map(figure)).collect()
    }

    fn text(&self) -> String {
        let cell = |(text, is_number): &(String, bool)| {
            if *is_number { number_cell(text) } else { Cell::new(text) }
        };
        let rows = self.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>());
        let first = self.headings.len() - self.kind.columns().len();
        let table = drawn(self.headings.clone(), rows, |column| column >= first);
        let mut page = format!("{}\n", self.title);
        if !self.rows.is_empty() {
            page.push_str(&format!("\n{table}\n"));
        }
        if !self.notes.is_empty() {
            page.push_str(&format!("\n{}\n", self.notes.join("\n")));
        }
        page.push_str(&self.traffic);
        page
    }
}

fn notes(kind: Kind, points: &[Point<'_>], missing: &[&Point<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let shown: Vec<GroupPoint<'_>> = points.iter().map(Point::shown).collect();
    notes.extend(unsupported_note(&shown, kind.columns()));
    if points.iter().any(|point| point.repeats.len() > 1) {
        notes.push("median over the repeats, smallest..largest below".to_owned());
    }
    match kind {
        Kind::RoundTrip => {}
        Kind::Fast => notes.push(
            "gap: longest run of missing datagrams; extent: how many numbers the latest reordered one was \
             behind"
                .to_owned(),
        ),
        Kind::Scheduled => {
            notes.push(
                "lag: how late datagrams were sent, which is part of the delay; jitter: RFC 3550; extent: how many \
                 numbers the latest reordered one was behind"
                    .to_owned(),
            );
            let clocks = || {
                points
                    .iter()
                    .flat_map(|point| &point.repeats)
                    .filter_map(|case| case.figures.udp.as_ref()?.clocks)
            };
            notes.push(if clocks().all(|clocks| clocks.shared) {
                "both ends read the same clock".to_owned()
            } else {
                "the ends have separate clocks: delays are corrected by the measured offset, with at most the clock \
                 error left"
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
        ClockRelation, Environment, LatencySummary, Reliability, ScheduleLag, ThroughputSummary, UdpMode,
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
    fn percentiles_of_too_few_samples_are_marked() {
        let of = |count| {
            let case = Case::new("udp", Test::Latency, Reliability::None, 32).with(|it| {
                it.figures.latency_us =
                    Some(LatencySummary { count, p99: 7.5, p99_99: 9.25, ..LatencySummary::default() });
                it.figures.udp = Some(UdpFigures::default());
            });
            udp_tables(&Run { cases: vec![case], ..Run::new(Environment::default()) }).concat()
        };
        let few = of(99);
        assert!(few.contains("~7.50") && few.contains("~9.25") && few.contains("\n~ fewer samples"), "{few}");
        let more = of(9_999);
        assert!(more.contains(" 7.50") && more.contains("~9.25"), "{more}");
        assert!(!of(10_000).contains('~'));
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
