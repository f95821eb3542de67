//! What engines get beside other traffic on the same link: a table for each kind of it, with a row for each link.

use std::fmt::Write as _;

use weir_bench::path::PathSpec;
use weir_results::{Case, Run, Test};

use super::{emulated, engines_of, link_name, shown_median, why_without_figures};

/// The kinds of tables, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A stream beside another one of the same engine with samples of the same size.
    Twice,
    /// A stream beside one with other samples.
    Other,
    /// A stream beside TCP.
    Tcp,
    /// Samples by a schedule, alone and beside something.
    Ages,
}

/// A row: a link, a size, and for ages what was beside them.
struct Row<'a> {
    spec: PathSpec,
    size: u64,
    beside: Option<&'a str>,
    cases: Vec<&'a Case>,
}

/// Returns the tables of a run, as Markdown; empty without any.
pub(super) fn tables(run: &Run) -> String {
    let table = |kind: &Kind| kind.table(&run.cases.iter().filter(|case| kind.has(case)).collect::<Vec<_>>());
    [Kind::Twice, Kind::Other, Kind::Tcp, Kind::Ages].iter().map(table).collect()
}

impl Kind {
    fn has(self, case: &Case) -> bool {
        let beside = case.conditions.beside.as_deref();
        let is_scheduled = case.conditions.rate_samples_per_s.is_some();
        let kind = match (case.point.test, beside) {
            (Test::Latency, _) => is_scheduled.then_some(Self::Ages),
            (Test::Throughput | Test::Workload, None) => None,
            (Test::Throughput, Some("tcp")) => Some(Self::Tcp),
            (Test::Throughput, Some(size)) if size == case.point.size_bytes.to_string() => Some(Self::Twice),
            (Test::Throughput | Test::Workload, Some(_)) => Some(Self::Other),
        };
        kind == Some(self) && emulated(case).is_some()
    }

    fn table(self, cases: &[&Case]) -> String {
        if cases.is_empty() {
            return String::new();
        }
        let (title, note) = match self {
            Self::Twice => ("Two streams of an engine", TWICE),
            Self::Other => ("Two streams with different samples", OTHER),
            Self::Tcp => ("Beside TCP", TCP),
            Self::Ages => ("Age of a scheduled topic", AGES),
        };
        let engines = engines_of(cases);
        let mut text =
            format!("\n## {title}\n\n{note}\n\n| Link | Size (B) | Beside | {} |\n", engines.join(" | "));
        _ = writeln!(text, "|---|---:|---|{}", "---:|".repeat(engines.len()));
        for row in rows(cases) {
            let cells: Vec<String> = engines.iter().map(|engine| self.cell(&row, engine)).collect();
            let (link, beside) = (link_name(&row.spec), beside_name(row.beside));
            _ = writeln!(text, "| {link} | {} | {beside} | {} |", row.size, cells.join(" | "));
        }
        text + &failures(cases)
    }

    fn cell(self, row: &Row<'_>, engine: &str) -> String {
        let repeats: Vec<&Case> =
            row.cases.iter().copied().filter(|case| case.point.engine == engine).collect();
        if repeats.is_empty() {
            return "-".to_owned();
        }
        if let Some(why) = why_without_figures(&repeats) {
            return why;
        }
        let median =
            |of: &dyn Fn(&Case) -> Option<f64>, decimals: usize| shown_median(&repeats, of, decimals);
        if self == Self::Ages {
            let ms = |of: fn(&weir_results::LatencySummary) -> f64| {
                median(&|case| Some(of(case.figures.latency_us.as_ref()?) / 1e3), 1)
            };
            return format!("{} / {} / {}", ms(|us| us.p50), ms(|us| us.p99), ms(|us| us.max));
        }
        let percent = |of: fn(&Case) -> Option<f64>| {
            median(&|case| Some(of(case)? * 100.0 / (row.spec.rate_bps()? as f64 / 1e6)), 0)
        };
        let own = percent(|case| Some(case.figures.throughput?.mbps));
        let other = percent(|case| case.figures.beside_mbps);
        match self {
            Self::Twice => format!("{own} + {other} / {}", median(&jain, 3)),
            _ => format!("{own} + {other}"),
        }
    }
}

/// Jain's index of the rates of two streams: 1 if they are equal, 0.5 if one has everything.
fn jain(case: &Case) -> Option<f64> {
    let (one, other) = (case.figures.throughput?.mbps, case.figures.beside_mbps?);
    let squares = 2.0 * (one * one + other * other);
    (squares > 0.0).then(|| (one + other).powi(2) / squares)
}

/// In the order of measuring.
fn rows<'a>(cases: &[&'a Case]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for case in cases {
        let Some(spec) = emulated(case) else { continue };
        let (size, beside) = (case.point.size_bytes, case.conditions.beside.as_deref());
        match rows.iter_mut().find(|row| row.spec == spec && row.size == size && row.beside == beside) {
            Some(row) => row.cases.push(case),
            None => rows.push(Row { spec, size, beside, cases: vec![case] }),
        }
    }
    rows
}

fn beside_name(beside: Option<&str>) -> String {
    match beside {
        None => "nothing".to_owned(),
        Some("tcp") => "TCP (CUBIC)".to_owned(),
        Some(size) => format!("{size} B"),
    }
}

/// Why cells have no figures.
fn failures(cases: &[&Case]) -> String {
    let mut text = String::new();
    for case in cases {
        if let (Some(why), Some(spec)) = (&case.evidence.not_measured, emulated(case)) {
            let blank = if text.is_empty() { "\n" } else { "" };
            let beside = beside_name(case.conditions.beside.as_deref());
            let (engine, link) = (&case.point.engine, link_name(&spec));
            _ = writeln!(text, "{blank}- {engine}, {link}, beside {beside}: {}", why.reason());
        }
    }
    text
}

const TWICE: &str = "\
Two pairs of processes of the same engine send as fast as they can, from the same time on. Cells: payload received of
both, each in percent of the link's rate / Jain's fairness index, 1 if they are equal and 0.5 if one gets everything.";

const OTHER: &str = "\
Two pairs of processes of the same engine send as fast as they can, from the same time on. Cells: payload received of
the first and of the one beside it, each in percent of the link's rate.";

const TCP: &str = "\
A TCP connection with CUBIC (`iperf3`) starts together with the stream. Cells: payload received of the engine and of
TCP, each in percent of the link's rate.";

const AGES: &str = "\
Samples of a small topic are sent by a schedule, alone and beside a saturating stream of the same engine between two
other processes. Cells: age on arrival from the time at which the sample was due, median / 99th percentile / maximum,
in ms.";

#[cfg(test)]
mod tests {
    use weir_results::{Environment, LatencySummary, NotMeasured, Reliability, ThroughputSummary};

    use super::super::page;
    use super::*;

    fn case(engine: &str, test: Test, beside: Option<&str>, mbps: (f64, f64)) -> Case {
        Case::new(engine, test, Reliability::Reliable, 8192).with(|case| {
            case.conditions.path = Some("lte".parse::<PathSpec>().unwrap().to_string());
            case.conditions.beside = beside.map(str::to_owned);
            case.figures.throughput =
                Some(ThroughputSummary { mbps: mbps.0, ..ThroughputSummary::default() });
            case.figures.beside_mbps = beside.map(|_| mbps.1);
        })
    }

    fn page_of(cases: Vec<Case>) -> String {
        page(&Run { cases, ..Run::new(Environment::default()) }).unwrap()
    }

    #[test]
    fn two_streams_have_shares_and_jains_index() {
        let page = page_of(vec![
            case("weir", Test::Throughput, Some("8192"), (9.0, 9.0)),
            case("other", Test::Throughput, Some("8192"), (2.0, 14.0)),
            case("other", Test::Throughput, Some("1024"), (2.0, 14.0)),
        ]);
        assert!(page.contains("\n## Two streams of an engine\n"), "{page}");
        assert!(page.contains("| lte | 8192 | 8192 B | 45 + 45 / 1.000 | 10 + 70 / 0.640 |\n"), "{page}");
        assert!(page.contains("\n## Two streams with different samples\n"), "{page}");
        assert!(page.contains("| lte | 8192 | 1024 B | 10 + 70 |\n"), "{page}");
    }

    #[test]
    fn a_failure_beside_tcp_is_explained() {
        let failed = case("other", Test::Throughput, Some("tcp"), (0.0, 0.0)).with(|case| {
            case.evidence.not_measured = Some(NotMeasured::Failed { reason: "it hung".to_owned() });
        });
        let page = page_of(vec![case("weir", Test::Throughput, Some("tcp"), (12.0, 5.0)), failed]);
        assert!(page.contains("| lte | 8192 | TCP (CUBIC) | 60 + 25 | failed |\n"), "{page}");
        assert!(page.contains("\n- other, lte, beside TCP (CUBIC): it hung\n"), "{page}");
    }

    #[test]
    fn ages_are_shown_alone_and_beside_bulk() {
        let aged = |beside, p99: f64| {
            case("weir", Test::Latency, beside, (0.8, 14.0)).with(|case| {
                case.conditions.rate_samples_per_s = Some(100.0);
                let summary =
                    LatencySummary { p50: 40_000.0, p99, max: 90_000.0, ..LatencySummary::default() };
                case.figures.latency_us = Some(summary);
            })
        };
        let page = page_of(vec![aged(None, 60_000.0), aged(Some("1048576"), 75_250.0)]);
        assert!(page.contains("| lte | 8192 | nothing | 40.0 / 60.0 / 90.0 |\n"), "{page}");
        assert!(page.contains("| lte | 8192 | 1048576 B | 40.0 / 75.2 / 90.0 |\n"), "{page}");
    }
}
