//! Engines on emulated links: what they use of each link, what they send for it, and the queue that they keep.
//!
//! - `beside`: what they get beside other traffic, and what that gets
//! - `over_time`: plots of rate, queue and age

mod beside;
mod over_time;

use std::fmt::Write as _;

use weir_bench::path::PathSpec;
use weir_report::Plot;
use weir_results::{Case, NotMeasured, Reliability, Run, Spread, Test};

/// What was measured on one link, in one way.
struct Study<'a> {
    spec: PathSpec,
    reliability: Reliability,
    batch_bytes: u64,
    cases: Vec<&'a Case>,
}

/// Returns a table for each emulated link of a run, as Markdown: a row for each size, a column for each engine; and
/// tables of what was measured beside other traffic. `None` without emulated links.
pub(crate) fn page(run: &Run) -> Option<String> {
    let studies = studies(run);
    let tables: String = studies.iter().map(Study::table).collect();
    let alone = if studies.is_empty() { String::new() } else { format!("{INTRODUCTION}{tables}") };
    let page = alone + &beside::tables(run);
    (!page.is_empty()).then_some(page)
}

/// Returns a plot for each emulated link of a run: rate, queue and age over time, of the first engine and the best of
/// the others.
pub(crate) fn plots(run: &Run) -> Vec<Plot> {
    studies(run).iter().filter_map(over_time::plot).collect()
}

/// The link of a case, if it is an emulated one.
fn emulated(case: &Case) -> Option<PathSpec> {
    let spec = case.conditions.path.as_ref()?.parse().ok()?;
    matches!(spec, PathSpec::Tun(_)).then_some(spec)
}

/// A link's preset, or all of its options.
fn link_name(spec: &PathSpec) -> String {
    spec.preset().unwrap_or_else(|| spec.to_string())
}

/// Whether a repeat failed.
fn has_failed(case: &Case) -> bool {
    matches!(case.evidence.not_measured, Some(NotMeasured::Failed { .. }))
}

/// Percent of samples lost by the worst repeat of a reliable stream, if any: its rate is no result.
fn loss_percent(repeats: &[&Case]) -> Option<f64> {
    let reliable = repeats.iter().filter(|case| case.point.reliability == Reliability::Reliable);
    let lost = reliable.filter_map(|case| Some(case.figures.throughput?.lost_percent)).fold(0.0, f64::max);
    (lost > 0.0).then_some(lost)
}

/// What a cell shows in place of figures, if any repeat failed or lost samples.
fn why_without_figures(repeats: &[&Case]) -> Option<String> {
    if repeats.iter().any(|case| has_failed(case)) {
        return Some("failed".to_owned());
    }
    loss_percent(repeats).map(|lost| format!("{lost:.1} % lost"))
}

/// The median of a figure of the repeats, as a cell shows it.
fn shown_median(repeats: &[&Case], of: &dyn Fn(&Case) -> Option<f64>, decimals: usize) -> String {
    let spread = Spread::of(repeats.iter().filter_map(|case| of(case)));
    spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.decimals$}", spread.median))
}

/// The engines of cases, in the order of measuring.
fn engines_of<'a>(cases: &[&'a Case]) -> Vec<&'a str> {
    let mut engines = Vec::new();
    for case in cases {
        if !engines.contains(&&*case.point.engine) {
            engines.push(&*case.point.engine);
        }
    }
    engines
}

/// The throughput on each emulated link without other traffic, in the order of measuring.
fn studies(run: &Run) -> Vec<Study<'_>> {
    let mut studies: Vec<Study<'_>> = Vec::new();
    let is_alone = |case: &&Case| case.point.test == Test::Throughput && case.conditions.beside.is_none();
    for case in run.cases.iter().filter(is_alone) {
        let Some(spec) = emulated(case) else { continue };
        let (reliability, batch_bytes) = (case.point.reliability, case.point.batch_bytes);
        let key = (&spec, reliability, batch_bytes);
        match studies.iter_mut().find(|study| (&study.spec, study.reliability, study.batch_bytes) == key) {
            Some(study) => study.cases.push(case),
            None => studies.push(Study { spec, reliability, batch_bytes, cases: vec![case] }),
        }
    }
    studies
}

impl<'a> Study<'a> {
    fn title(&self) -> String {
        let mut title = link_name(&self.spec);
        _ = write!(title, ", {}", self.reliability);
        if self.batch_bytes > 0 {
            _ = write!(title, ", batches of {} B", self.batch_bytes);
        }
        title
    }

    fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.cases.iter().map(|case| case.point.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// In the order of measuring.
    fn engines(&self) -> Vec<&'a str> {
        engines_of(&self.cases)
    }

    /// The repeats of a point.
    fn repeats(&self, engine: &str, size: u64) -> Vec<&'a Case> {
        let is_it = |case: &&&Case| case.point.engine == engine && case.point.size_bytes == size;
        self.cases.iter().filter(is_it).copied().collect()
    }

    fn table(&self) -> String {
        let engines = self.engines();
        let mut table = format!("\n## {}\n\n`{}`\n\n", self.title(), self.spec);
        _ = write!(
            table,
            "| Size (B) | {} |\n|---:|{}\n",
            engines.join(" | "),
            "---:|".repeat(engines.len())
        );
        for size in self.sizes() {
            let cells: Vec<String> = engines.iter().map(|engine| self.cell(engine, size)).collect();
            _ = writeln!(table, "| {size} | {} |", cells.join(" | "));
        }
        table + &self.failures()
    }

    /// Why cells have no figures.
    fn failures(&self) -> String {
        let mut text = String::new();
        for case in &self.cases {
            if let Some(why) = &case.evidence.not_measured {
                let blank = if text.is_empty() { "\n" } else { "" };
                let point = &case.point;
                _ = writeln!(text, "{blank}- {}, {} B: {}", point.engine, point.size_bytes, why.reason());
            }
        }
        text
    }

    /// Share of what is possible, bytes per byte, and queue: medians of the repeats.
    fn cell(&self, engine: &str, size: u64) -> String {
        let repeats = self.repeats(engine, size);
        if let Some(why) = why_without_figures(&repeats) {
            return why;
        }
        let median =
            |of: &dyn Fn(&Case) -> Option<f64>, decimals: usize| shown_median(&repeats, of, decimals);
        let possible = self.spec.capacity().map(|link| link.mbps(size, self.batch_bytes));
        let share = median(&|case| Some(case.figures.throughput?.mbps * 100.0 / possible?), 0);
        let ratio = median(&|case| case.figures.link.as_ref()?.offered_per_payload_byte, 2);
        let queue = median(&|case| Some(case.figures.link.as_ref()?.to_subscribers.queue_mean_ms), 1);
        format!("{share} / {ratio} / {queue}")
    }
}

const INTRODUCTION: &str = "\
Each cell has three figures: payload received, in percent of what the link carries without losses / bytes of IP packets
sent towards the subscriber per byte received / mean queue in ms. With several repeats, they are medians.

- What a link carries is its rate without the headers of IP, UDP and RTPS, for one sample per packet, or for pieces of
  samples that fill packets. Lost packets are not subtracted: with 2 % loss, 98 is possible.
- The least possible bytes per byte are about 1.09 for samples of 1 KiB and 1.07 for large ones, plus the share of loss.
- The queue is what packets found on arrival, on the link to the subscribers.
- Best effort: what does not arrive is lost, and counts as sent. Engines that send faster than the link fill its queue.
- \"failed\", or a share lost: the engine did not deliver the stream reliably.
";

#[cfg(test)]
mod tests {
    use weir_results::{Environment, LinkDirection, LinkFigures, ThroughputSummary};

    use super::*;

    fn case(engine: &str, link: &str) -> Case {
        let spec: PathSpec = link.parse().unwrap();
        Case::new(engine, Test::Throughput, Reliability::Reliable, 8192).with(|case| {
            case.conditions.path = Some(spec.to_string());
            case.figures.throughput = Some(ThroughputSummary { mbps: 15.0, ..ThroughputSummary::default() });
            let to_subscribers = LinkDirection { queue_mean_ms: 3.44, ..LinkDirection::default() };
            let offered_per_payload_byte = Some(1.09);
            case.figures.link =
                Some(LinkFigures { to_subscribers, offered_per_payload_byte, ..LinkFigures::default() });
        })
    }

    fn run(cases: Vec<Case>) -> Run {
        Run { cases, ..Run::new(Environment::default()) }
    }

    #[test]
    fn a_link_has_a_table_with_a_column_for_each_engine() {
        let failed = case("cyclonedds", "lte").with(|case| {
            case.evidence.not_measured = Some(NotMeasured::Failed { reason: "it hung".to_owned() });
        });
        let page = page(&run(vec![case("weir", "lte"), failed, case("weir", "wan,loss=1%")])).unwrap();
        assert!(page.contains("\n## lte, reliable\n\n`tun,mtu=1500,down-rate=20M,"), "{page}");
        assert!(page.contains("| Size (B) | weir | cyclonedds |\n|---:|---:|---:|\n"), "{page}");
        // Of 8196 bytes with their encapsulation, pieces of 1400 bytes pay for 96 of headers.
        let share = (1500.0 / 20.0) * (8196.0 + 6.0 * 96.0) / 8192.0;
        assert!(page.contains(&format!("| 8192 | {share:.0} / 1.09 / 3.4 | failed |")), "{page}");
        assert!(page.contains("|\n\n- cyclonedds, 8192 B: it hung\n"), "{page}");
        assert!(
            page.contains("\n## tun,mtu=1500,rate=200M,delay=40ms,queue=2097152,loss=1%,seed=1, reliable\n")
        );
    }

    #[test]
    fn a_reliable_stream_with_losses_has_no_rate() {
        let lossy = case("other", "wifi").with(|case| {
            let figures =
                ThroughputSummary { mbps: 900.0, lost_percent: 99.9, ..ThroughputSummary::default() };
            case.figures.throughput = Some(figures);
        });
        let page = page(&run(vec![lossy])).unwrap();
        assert!(page.contains("| 8192 | 99.9 % lost |"), "{page}");
    }

    #[test]
    fn results_without_emulated_links_have_neither() {
        let run = run(vec![case("weir", "veth")]);
        assert_eq!(page(&run), None);
        assert!(plots(&run).is_empty());
    }
}
