//! Published tables as a report shows them beside a run.

use weir_report::{Published, PublishedRow};
use weir_results::{
    Case, Direction, LatencyKind, LatencySummary, Reliability, Test, ThroughputSummary, UdpFigures, UdpMode,
};

use super::run::message_bytes;
use super::tables::{Document, Row, Table, all, documents, find};

/// The tables of this name or prefix; empty if there are none.
pub(crate) fn beside(name: &str) -> Vec<Published> {
    let of_document = documents().iter().filter(|document| document.name.eq_ignore_ascii_case(name));
    let of_document: Vec<Published> = of_document.map(document).filter(|it| !it.rows.is_empty()).collect();
    if of_document.is_empty() { find(name).iter().map(table).collect() } else { of_document }
}

/// The tables that the command of a run names, such as `weir run pro-latency-1g-unkeyed-reliable`.
pub(crate) fn named_in(command: &[String]) -> Vec<Published> {
    let is_named = |name: &str| command.iter().skip(1).any(|word| word == name);
    let tables = all().into_iter().filter(|table| is_named(&table.name));
    let documents = documents().iter().filter(|document| is_named(document.name));
    tables.map(|it| table(&it)).chain(documents.map(document)).filter(|it| !it.rows.is_empty()).collect()
}

fn table(table: &Table) -> Published {
    let source = table.source;
    let row = |row: &Row| PublishedRow { case: case(table, row), is_doubtful: row.is_doubtful };
    Published {
        name: table.name.clone(),
        label: format!("{}, {} Gbit/s (published)", source.label, table.link_gbps),
        source: format!("{}; {}; {}", source.title, source.hosts, source.path),
        rows: table.rows.iter().map(row).collect(),
    }
}

fn case(table: &Table, row: &Row) -> Case {
    let reliability = if table.reliable { Reliability::Reliable } else { Reliability::BestEffort };
    let figure = |at: usize| row.figures.get(at).copied().unwrap_or(0.0);
    Case::new("", table.test, reliability, row.size).with(|case| {
        case.point.keyed = table.keyed;
        // Sizes of which a batch does not hold two were sent one by one.
        case.point.batch_bytes = row_batch_bytes(table, row);
        match table.test {
            Test::Latency => {
                case.figures.latency_us = Some(LatencySummary {
                    kind: LatencyKind::HalfRtt,
                    // How many there were is not published, but all percentiles are.
                    count: COUNT,
                    mean: figure(0),
                    std: figure(1),
                    min: figure(2),
                    max: figure(3),
                    p50: figure(4),
                    p90: figure(5),
                    p99: figure(6),
                    p99_99: figure(7),
                    p99_9999: figure(8),
                    lost: 0,
                    p99_of_intervals: None,
                });
            }
            Test::Throughput | Test::Workload => {
                case.figures.throughput = Some(ThroughputSummary {
                    total_samples: figure(0) as u64,
                    samples_per_s: figure(1),
                    mbps: figure(2),
                    lost: figure(3) as u64,
                    lost_percent: figure(4),
                    ..ThroughputSummary::default()
                });
            }
        }
    })
}

/// The batch of a row: none where two samples with their headers do not fit, so that `weir bench` has none either.
pub(crate) fn row_batch_bytes(table: &Table, row: &Row) -> u64 {
    let batch_bytes = table.batch_bytes.map_or(0, u64::from);
    if message_bytes(row.size, batch_bytes) == batch_bytes { batch_bytes } else { 0 }
}

/// Enough for all published percentiles.
const COUNT: u64 = 1_000_000;

/// The figures of hpcbench that a report has a place for; without rows for its other files.
fn document(document: &Document) -> Published {
    let mut lines = document.text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let cells: Vec<&str> = line.split(',').collect();
        let line = Line { names: &names, cells: &cells };
        let cases = match document.name {
            "hpcbench-udp-unidirectional" => vec![line.stream(line.size())],
            "hpcbench-udp-exponential" => vec![line.stream(line.number("size_bytes") as u64)],
            "hpcbench-udp-bidirectional" => line.both_ways(),
            "hpcbench-udp-roundtrip" => vec![line.round_trip()],
            _ => Vec::new(),
        };
        let numbered = |case: Case| case.with(|it| it.conditions.repeat = number);
        rows.extend(cases.into_iter().map(|case| PublishedRow { case: numbered(case), is_doubtful: false }));
    }
    let means = if document.name == "hpcbench-udp-roundtrip" {
        ", means of its trials, which plots show as medians"
    } else {
        ""
    };
    Published {
        name: document.name.to_owned(),
        label: "hpcbench, 1 Gbit/s (published)".to_owned(),
        source: format!(
            "hpcbench's page on UDP tests; two hosts of the mk cluster (2004), 1 Gbit/s Ethernet{means}"
        ),
        rows,
    }
}

/// A line of a file of hpcbench's figures.
struct Line<'a> {
    names: &'a [&'a str],
    cells: &'a [&'a str],
}

impl Line<'_> {
    fn cell(&self, name: &str) -> &str {
        let at = self.names.iter().position(|it| *it == name);
        at.and_then(|at| self.cells.get(at)).copied().unwrap_or_default()
    }

    /// The number in a column; 0 without one.
    fn number(&self, name: &str) -> f64 {
        self.cell(name).parse().unwrap_or(0.0)
    }

    /// The size of datagrams by the options of the command.
    fn size(&self) -> u64 {
        let command = self.cell("command");
        let has = |option: &str| command.contains(option);
        if has("-d 500") {
            500
        } else if has("-l 8k") {
            8192
        } else {
            1460
        }
    }

    fn stream(&self, size: u64) -> Case {
        let prefix = if self.names.contains(&"server_recv_packets") { "server_" } else { "" };
        let of = |name: &str| self.number(&format!("{prefix}{name}"));
        let (received, lost) = (of("recv_packets"), of("lost_packets"));
        stream(size, self.number("network_mbps"), of("recv_bytes"), received, lost, UdpFigures::default())
    }

    /// Both directions, which share the published rate by what each of them received.
    fn both_ways(&self) -> Vec<Case> {
        let bytes = |end: &str| self.number(&format!("{end}_recv_bytes"));
        let all = bytes("server") + bytes("client");
        let one = |direction, sender: &str, receiver: &str| {
            let received = self.number(&format!("{receiver}_recv_packets"));
            // The last datagram of a test is not in the count of the receiver.
            let lost = (self.number(&format!("{sender}_sent_packets")) - received).max(0.0);
            let mbps = self.number("network_mbps") * bytes(receiver) / all;
            let udp = UdpFigures { direction, duplex: true, ..UdpFigures::default() };
            stream(1460, mbps, bytes(receiver), received, lost, udp)
        };
        vec![one(Direction::Forward, "client", "server"), one(Direction::Reverse, "server", "client")]
    }

    /// The mean of a trial.
    fn round_trip(&self) -> Case {
        let size = if self.cell("command").contains("-A 1k") { 1024 } else { 64 };
        let mean = self.number("rtt_us");
        Case::new("", Test::Latency, Reliability::None, size).with(|case| {
            let kind = LatencyKind::Rtt;
            case.figures.latency_us =
                Some(LatencySummary { kind, count: 1, mean, p50: mean, ..LatencySummary::default() });
            case.figures.udp = Some(UdpFigures { mode: UdpMode::Send, ..UdpFigures::default() });
        })
    }
}

fn stream(size: u64, mbps: f64, bytes: f64, received: f64, lost: f64, udp: UdpFigures) -> Case {
    let seconds = bytes * 8.0 / 1e6 / mbps;
    Case::new("", Test::Throughput, Reliability::None, size).with(|case| {
        case.figures.throughput = Some(ThroughputSummary {
            total_samples: received as u64,
            samples_per_s: received / seconds,
            mbps,
            lost: lost as u64,
            lost_percent: 100.0 * lost / (received + lost),
            ..ThroughputSummary::default()
        });
        case.figures.udp = Some(udp);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Published {
        beside(name).remove(0)
    }

    #[test]
    fn the_rows_of_a_table_have_its_conditions_and_figures() {
        let latency = one("pro-latency-1g-unkeyed-reliable");
        let row = &latency.rows.last().unwrap().case;
        assert_eq!((row.point.size_bytes, row.figures.latency_us.unwrap().std), (10_485_760, 531.4));
        assert_eq!(latency.label, "Connext Professional, 1 Gbit/s (published)");
        let batched = one("pro-throughput-10g-unkeyed-best-effort-batch");
        let batch = |size| {
            let row = batched.rows.iter().find(|row| row.case.point.size_bytes == size).unwrap();
            (row.case.point.batch_bytes, row.is_doubtful)
        };
        assert_eq!((batch(32), batch(4096), batch(8192)), ((8192, false), (0, true), (0, false)));
    }

    #[test]
    fn runs_of_hpcbench_are_repeats_and_directions_are_apart() {
        let streams = one("hpcbench-udp-unidirectional").rows;
        let sizes = |size| streams.iter().filter(|row| row.case.point.size_bytes == size).count();
        assert_eq!((sizes(1460), sizes(8192), sizes(500)), (11, 5, 10));
        let first = streams[0].case.figures.throughput.unwrap();
        assert!((first.samples_per_s - 409_357.0 / 5.0).abs() < 100.0 && first.lost == 0, "{first:?}");
        let both = one("hpcbench-udp-bidirectional").rows;
        assert_eq!(both.len(), 12);
        let mbps: f64 = both[..2].iter().map(|row| row.case.figures.throughput.unwrap().mbps).sum();
        assert!((mbps - 1601.172).abs() < 1e-6, "{mbps}");
        assert_eq!(one("hpcbench-udp-exponential").rows[11].case.figures.throughput.unwrap().lost, 90);
        let trips = one("hpcbench-udp-roundtrip").rows;
        assert_eq!((trips.len(), trips[14].case.point.size_bytes), (15, 1024));
        // Figures without a place in a report.
        assert!(beside("hpcbench-udp-process").is_empty());
    }

    #[test]
    fn a_command_names_its_tables() {
        let named = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            named_in(&words).into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        let table = "micro-latency-pi-1g-keyed-reliable";
        assert_eq!(named(&format!("weir run {table} --brief")), [table]);
        assert_eq!(named("weir run hpcbench-udp-roundtrip"), ["hpcbench-udp-roundtrip"]);
        assert!(
            named("weir run plan.toml").is_empty() && named("micro-latency-pi-1g-keyed-reliable").is_empty()
        );
    }
}
