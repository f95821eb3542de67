//! Requirements on the figures of a run, each met, missed or not measured.
//!
//! Figures are medians over the repeats; losses are of all repeats together. `place`: the cases of a run.

mod place;

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use weir_results::{Case, Percentile, Reliability, Run, Test};

use self::place::{Place, Places};
use crate::compact::three_digits;
use crate::compare::{compare_figure, headline, times};
use crate::group::{FLOOR, is_raw_udp};
use crate::table::{dash, drawn, is_not_supported};

/// A limit for the cases that a selector names.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// The cases.
    pub selector: Selector,
    /// Their limit.
    pub limit: Limit,
}

/// Names cases by what it sets; an empty one names all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// The engine.
    pub engine: Option<String>,
    /// The test.
    pub test: Option<Test>,
    /// Size of a sample in bytes.
    pub size_bytes: Option<u64>,
    /// Delivery guarantee, which the baselines lack.
    pub reliability: Option<Reliability>,
    /// Size of a batch in bytes, which the baselines lack.
    pub batch_bytes: Option<u64>,
}

/// A limit of a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// Median latency in microseconds, at most.
    MaxP50(f64),
    /// 99th percentile of the latency in microseconds, at most.
    MaxP99(f64),
    /// Received samples per second, at least.
    MinRate(f64),
    /// Lost samples in percent, at most.
    MaxLostPercent(f64),
    /// No sample may be lost.
    NoLoss,
    /// The figure divided by that of the reference, at most.
    MaxRatio(f64, RatioOf, Reference),
    /// The figure divided by that of the reference, at least.
    MinRatio(f64, RatioOf, Reference),
}

/// The figure of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioOf {
    /// The figure that decides: the median latency, or the received rate.
    Headline,
    /// The 99th percentile of the latency.
    P99,
}

/// What a ratio is relative to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// Another engine of the same run, repeat by repeat.
    Engine(String),
    /// The same case of a stored run, by the medians.
    Run {
        /// Its name in tables.
        name: String,
        /// The run.
        run: Box<Run>,
    },
}

/// The verdict on a requirement, for one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequirementRow {
    /// The study, as the caller names it.
    pub study: String,
    /// The case, and of how many it is the worst.
    pub case: String,
    /// The limit.
    pub requirement: String,
    /// The figure.
    pub measured: Option<f64>,
    /// The verdict.
    pub verdict: RequirementVerdict,
    /// Why there is no figure.
    pub reason: Option<String>,
    /// Why the figure is doubtful: it is a ratio to raw UDP that cannot be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Whether a requirement is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequirementVerdict {
    /// The figure is within the limit.
    Met,
    /// It is not.
    Missed,
    /// There is no figure.
    NotMeasured,
    /// The figure is within the limit, but it cannot be true.
    Inconclusive,
}

impl RequirementVerdict {
    /// The words in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotMeasured => "not measured",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl Requirement {
    /// Returns whether it is about a case of this kind.
    #[must_use]
    pub fn is_about(&self, engine: &str, test: Test, size_bytes: u64, reliability: Reliability) -> bool {
        let Selector { engine: of, reliability: with, batch_bytes, .. } = &self.selector;
        let is_baseline = is_raw_udp(engine);
        let is_reference = self.limit.engine() == Some(engine);
        self.test().is_none_or(|of| of == test)
            && of.as_ref().is_none_or(|of| of == engine)
            && self.selector.size_bytes.is_none_or(|of| of == size_bytes)
            && with.is_none_or(|with| with == reliability && !is_baseline)
            && batch_bytes.is_none_or(|_| !is_baseline && test == Test::Throughput)
            && !is_reference
    }

    /// The test of the selector, or the only one that has the figure.
    #[must_use]
    pub const fn test(&self) -> Option<Test> {
        match self.limit {
            Limit::MaxP50(_)
            | Limit::MaxP99(_)
            | Limit::MaxRatio(_, RatioOf::P99, _)
            | Limit::MinRatio(_, RatioOf::P99, _) => Some(Test::Latency),
            Limit::MinRate(_) => Some(Test::Throughput),
            _ => self.selector.test,
        }
    }

    fn is_about_place(&self, place: &Place<'_, '_>) -> bool {
        place.case().is_some_and(|case| {
            let of = &case.point;
            self.is_about(&of.engine, of.test, of.size_bytes, of.reliability)
                && self.selector.batch_bytes.is_none_or(|bytes| bytes == of.batch_bytes)
        })
    }

    /// Judges the cases of `run`: every one that misses the limit, or else those without a figure, or else the worst.
    #[must_use]
    pub fn judge(&self, study: &str, run: &Run) -> Vec<RequirementRow> {
        let own = Places::of(run);
        let stored = self.limit.stored().map(Places::of);
        let paths: BTreeSet<_> = run.cases.iter().map(|case| &case.conditions.path).collect();
        let mut seen = Vec::new();
        let mut judged: Vec<(RequirementRow, bool, f64)> = Vec::new();
        for place in own.all() {
            // A baseline is in several groups. Relative to an engine it is compared once, too.
            let first: Option<*const Case> = place.case().map(std::ptr::from_ref);
            if !self.is_about_place(&place) || seen.contains(&first) {
                continue;
            }
            seen.push(first);
            let figure = self.limit.figure(&own, &place, stored.as_ref());
            let badness = figure.as_ref().map_or(0.0, |figure| self.limit.badness(*figure));
            let row = self.row(study, place.name(paths.len() > 1), figure);
            judged.push((row.doubted(self.limit.doubt(&place)), is_not_supported(place.point), badness));
        }
        // What an engine lacks says nothing about the others.
        if judged.iter().any(|(_, lacks, _)| !lacks) {
            judged.retain(|(_, lacks, _)| !lacks);
        }
        if judged.is_empty() {
            return vec![self.without_figure(study, "no case of it was measured")];
        }
        use RequirementVerdict::{Inconclusive, Missed, NotMeasured};
        for verdict in [Missed, NotMeasured, Inconclusive] {
            let found: Vec<RequirementRow> =
                judged.iter().map(|(row, ..)| row).filter(|row| row.verdict == verdict).cloned().collect();
            if !found.is_empty() {
                return found;
            }
        }
        let count = judged.len();
        let worst = judged.into_iter().max_by(|(.., one), (.., other)| one.total_cmp(other));
        let worst = worst.map(|(row, ..)| row).into_iter();
        let counted = |row: RequirementRow| match count {
            1 => row,
            _ => RequirementRow { case: format!("{} (worst of {count})", row.case), ..row },
        };
        worst.map(counted).collect()
    }

    /// The verdict where nothing was measured.
    #[must_use]
    pub fn without_figure(&self, study: &str, reason: &str) -> RequirementRow {
        self.row(study, self.selector.to_string(), Err(reason.to_owned()))
    }

    fn row(&self, study: &str, case: String, figure: Result<f64, String>) -> RequirementRow {
        let verdict = match &figure {
            Ok(figure) if self.limit.is_met(*figure) => RequirementVerdict::Met,
            Ok(_) => RequirementVerdict::Missed,
            Err(_) => RequirementVerdict::NotMeasured,
        };
        RequirementRow {
            study: study.to_owned(),
            case,
            requirement: self.limit.to_string(),
            measured: figure.as_ref().ok().copied(),
            verdict,
            reason: figure.err(),
            warning: None,
        }
    }
}

impl RequirementRow {
    /// With this warning, a limit is not met.
    fn doubted(self, warning: Option<String>) -> Self {
        let verdict = match self.verdict {
            RequirementVerdict::Met if warning.is_some() => RequirementVerdict::Inconclusive,
            verdict => verdict,
        };
        Self { verdict, warning, ..self }
    }
}

impl Limit {
    fn is_met(&self, figure: f64) -> bool {
        match self {
            Self::MaxP50(limit)
            | Self::MaxP99(limit)
            | Self::MaxLostPercent(limit)
            | Self::MaxRatio(limit, ..) => figure <= *limit,
            Self::MinRate(limit) | Self::MinRatio(limit, ..) => figure >= *limit,
            Self::NoLoss => figure == 0.0,
        }
    }

    /// Larger is worse.
    fn badness(&self, figure: f64) -> f64 {
        if matches!(self, Self::MinRate(_) | Self::MinRatio(..)) { -figure } else { figure }
    }

    /// The engine of the same run that a ratio is relative to.
    #[must_use]
    pub fn engine(&self) -> Option<&str> {
        match self.reference()? {
            (_, Reference::Engine(name)) => Some(name),
            (_, Reference::Run { .. }) => None,
        }
    }

    /// What a ratio is of, and what it is relative to.
    const fn reference(&self) -> Option<(RatioOf, &Reference)> {
        match self {
            Self::MaxRatio(_, of, reference) | Self::MinRatio(_, of, reference) => Some((*of, reference)),
            _ => None,
        }
    }

    /// Why a ratio to the baseline is doubtful.
    fn doubt(&self, place: &Place<'_, '_>) -> Option<String> {
        let is_to_baseline = self.engine() == Some(FLOOR);
        is_to_baseline.then(|| place.doubt()).flatten()
    }

    fn stored(&self) -> Option<&Run> {
        match self.reference()? {
            (_, Reference::Run { run, .. }) => Some(run),
            (_, Reference::Engine(_)) => None,
        }
    }

    /// The losses of a case. A failed repeat may have lost more, so only those that exceed the limit are sure.
    fn losses(&self, place: &Place<'_, '_>, figure: fn(u64, u64) -> f64) -> Result<f64, String> {
        let (lost, received) = place.losses().ok_or_else(|| place.why_not())?;
        let figure = figure(lost, received);
        if self.is_met(figure) && place.has_failed_repeat() { Err(place.why_not()) } else { Ok(figure) }
    }

    /// The figure of a case, or why there is none.
    fn figure<'r>(
        &self,
        own: &Places<'r>,
        place: &Place<'_, 'r>,
        stored: Option<&Places<'_>>,
    ) -> Result<f64, String> {
        let median = |of: fn(&Case) -> Option<f64>| {
            place.point.spread(of).map(|spread| spread.median).ok_or_else(|| place.why_not())
        };
        match self {
            Self::MaxP50(_) => median(|case| Some(times(case)?.p50)),
            Self::MaxP99(_) => RatioOf::P99.median(place),
            Self::MinRate(_) => median(|case| Some(case.figures.throughput?.samples_per_s)),
            Self::MaxLostPercent(_) => self.losses(place, |lost, received| {
                lost as f64 / lost.saturating_add(received).max(1) as f64 * 100.0
            }),
            Self::NoLoss => self.losses(place, |lost, _| lost as f64),
            Self::MaxRatio(_, of, reference) | Self::MinRatio(_, of, reference) => {
                of.ratio(reference, own, place, stored)
            }
        }
    }
}

impl RatioOf {
    fn of(self, case: &Case) -> Option<f64> {
        match self {
            Self::Headline => headline(case),
            Self::P99 => Some(times(case).filter(|it| it.supports(Percentile::P99))?.p99),
        }
    }

    fn median(self, place: &Place<'_, '_>) -> Result<f64, String> {
        if place.point.headline().is_none() {
            return Err(place.why_not());
        }
        let none = || "too few samples for a 99th percentile: set a longer duration".to_owned();
        place.point.spread(|case| self.of(case)).map(|spread| spread.median).ok_or_else(none)
    }

    fn ratio<'r>(
        self,
        reference: &Reference,
        run: &Places<'r>,
        place: &Place<'_, 'r>,
        stored: Option<&Places<'_>>,
    ) -> Result<f64, String> {
        let own = self.median(place)?;
        match reference {
            Reference::Engine(_) if place.is_at_share() => {
                Err("a load in percent is another rate for each engine: set rates in samples/s".to_owned())
            }
            Reference::Engine(name) => {
                let comparison = run
                    .base(place, name)
                    .and_then(|base| compare_figure(&place.point.repeats, &base.repeats, |it| self.of(it)));
                let none = || format!("{name} has no figure of the same kind, size and load");
                comparison.map(|comparison| comparison.ratio).ok_or_else(none)
            }
            Reference::Run { name, .. } => {
                let same = stored.and_then(|stored| stored.stored(place)?.point.spread(|case| self.of(case)));
                let same = same.filter(|spread| spread.median > 0.0);
                let same = same.ok_or_else(|| format!("{name} has no figure of the same case"))?;
                Ok(own / same.median)
            }
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.engine.clone(),
            self.size_bytes.map(|bytes| format!("{bytes} B")),
            self.test.map(|test| test.to_string()),
            self.reliability.map(|reliability| reliability.to_string()),
            self.batch_bytes.map(|bytes| format!("batches of {bytes} B")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(if words.is_empty() { "all" } else { "" })?;
        f.write_str(&words.join(" "))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxP50(limit) => write!(f, "p50 <= {limit} us"),
            Self::MaxP99(limit) => write!(f, "p99 <= {limit} us"),
            Self::MinRate(limit) => write!(f, ">= {limit} samples/s"),
            Self::MaxLostPercent(limit) => write!(f, "lost <= {limit} %"),
            Self::NoLoss => write!(f, "no loss"),
            Self::MaxRatio(limit, of, reference) => write!(f, "{of} to {reference} <= {limit}"),
            Self::MinRatio(limit, of, reference) => write!(f, "{of} to {reference} >= {limit}"),
        }
    }
}

impl fmt::Display for RatioOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Headline => "ratio",
            Self::P99 => "ratio of p99",
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(name) | Self::Run { name, .. } => f.write_str(name),
        }
    }
}

/// Formats verdicts as a table, with the reasons of missing figures and a summary below.
#[must_use]
pub fn requirements_table(rows: &[RequirementRow]) -> String {
    let cells = |row: &RequirementRow| {
        [
            row.study.clone(),
            row.case.clone(),
            row.requirement.clone(),
            row.measured.map_or_else(dash, three_digits),
            row.verdict.name().to_owned(),
        ]
    };
    let headings = ["Study", "Case", "Requirement", "Measured", "Verdict"].map(str::to_owned);
    let table = drawn(headings.to_vec(), rows.iter().map(cells), |column| column == 3);
    let mut text = format!("{table}\n\n");
    for row in rows {
        if let Some(reason) = &row.reason {
            text.push_str(&format!("not measured: {}: {}: {reason}\n", row.study, row.case));
        }
        if let Some(warning) = &row.warning {
            text.push_str(&format!("warning: {}: {}: {warning}\n", row.study, row.case));
        }
    }
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    use RequirementVerdict::{Inconclusive, Met, Missed, NotMeasured};
    let is_shown = |verdict: &RequirementVerdict| *verdict != Inconclusive || count(*verdict) > 0;
    let verdicts = [Met, Missed, NotMeasured, Inconclusive].into_iter().filter(is_shown);
    let counted: Vec<String> =
        verdicts.map(|verdict| format!("{} {}", count(verdict), verdict.name())).collect();
    text.push_str(&format!("{}\n", counted.join(", ")));
    text
}

#[cfg(test)]
mod tests {
    use weir_results::{
        Environment, LatencySummary, NotMeasured, ThroughputSummary, UdpFigures, UdpMode, Warning,
    };

    use super::*;

    fn latency(engine: &str, size: u64, repeat: u32, p50: f64) -> Case {
        Case::new(engine, Test::Latency, Reliability::Reliable, size).with(|case| {
            case.conditions.repeat = repeat;
            case.figures.latency_us =
                Some(LatencySummary { count: 1000, p50, p99: 2.0 * p50, ..LatencySummary::default() });
        })
    }

    fn rate(engine: &str, samples_per_s: f64, lost: u64) -> Case {
        Case::new(engine, Test::Throughput, Reliability::Reliable, 32).with(|case| {
            case.figures.throughput = Some(ThroughputSummary {
                samples_per_s,
                lost,
                total_samples: 1000 - lost,
                ..ThroughputSummary::default()
            });
        })
    }

    fn run(cases: impl IntoIterator<Item = Case>) -> Run {
        Run { cases: cases.into_iter().collect(), ..Run::new(Environment::default()) }
    }

    fn weir(limit: Limit) -> Requirement {
        Requirement { selector: Selector { engine: Some("weir".to_owned()), ..Selector::default() }, limit }
    }

    /// Case, figure and verdict of each row.
    fn judged(requirement: &Requirement, run: &Run) -> Vec<(String, Option<f64>, &'static str)> {
        let rows = requirement.judge("study", run);
        rows.into_iter().map(|row| (row.case, row.measured, row.verdict.name())).collect()
    }

    #[test]
    fn the_worst_case_stands_for_those_that_meet_a_limit_and_each_that_misses_it_is_listed() {
        let run = run([32, 64, 128].map(|size| latency("weir", size, 1, size as f64)));
        let worst = ("weir 128 B latency, reliable (worst of 3)".to_owned(), Some(128.0), "met");
        assert_eq!(judged(&weir(Limit::MaxP50(200.0)), &run), [worst]);
        let missed =
            |size: u64| (format!("weir {size} B latency, reliable"), Some(2.0 * size as f64), "missed");
        assert_eq!(judged(&weir(Limit::MaxP99(100.0)), &run), [missed(64), missed(128)]);
    }

    #[test]
    fn figures_are_medians_over_the_repeats() {
        let run = run((1..).zip([10.0, 12.0, 90.0]).map(|(repeat, p50)| latency("weir", 32, repeat, p50)));
        assert_eq!(judged(&weir(Limit::MaxP50(12.0)), &run)[0].1, Some(12.0));
    }

    #[test]
    fn losses_are_of_all_repeats_together() {
        let run = run([rate("weir", 1e6, 0), rate("weir", 1e6, 10).with(|case| case.conditions.repeat = 2)]);
        assert_eq!(judged(&weir(Limit::MaxLostPercent(1.0)), &run)[0].1, Some(0.5));
        assert_eq!(judged(&weir(Limit::NoLoss), &run)[0].2, "missed");
        assert_eq!(judged(&weir(Limit::MinRate(1e6)), &run)[0].2, "met");
    }

    #[test]
    fn a_ratio_is_to_another_engine_or_to_the_same_case_of_another_run() {
        let now = run([latency("weir", 32, 1, 12.0), latency("udp", 32, 1, 10.0)]);
        let to_udp = weir(Limit::MaxRatio(1.1, RatioOf::Headline, Reference::Engine("udp".to_owned())));
        assert_eq!(judged(&to_udp, &now)[0].1, Some(1.2));
        let before = |cases: Vec<Case>| {
            let reference = Reference::Run { name: "old".to_owned(), run: Box::new(run(cases)) };
            judged(&weir(Limit::MaxRatio(1.1, RatioOf::Headline, reference)), &now)[0].clone()
        };
        assert_eq!(before(vec![latency("weir", 32, 1, 12.0)]).2, "met");
        assert_eq!(before(vec![latency("weir", 32, 1, 6.0)]).1, Some(2.0));
        assert_eq!(before(vec![latency("weir", 64, 1, 6.0)]).2, "not measured");
    }

    #[test]
    fn loads_in_percent_have_no_ratio_to_another_engine() {
        let with = |percent: Option<f64>| {
            let of = |engine| {
                latency(engine, 32, 1, 10.0).with(|it| {
                    it.conditions.load_percent = percent;
                    it.conditions.rate_samples_per_s = Some(1000.0);
                })
            };
            run(["other", "weir"].map(of))
        };
        let other = || Reference::Engine("other".to_owned());
        for (of, limit) in [(RatioOf::Headline, 1.0), (RatioOf::P99, 1.0)] {
            let requirement = weir(Limit::MaxRatio(limit, of, other()));
            assert_eq!(judged(&requirement, &with(None))[0].2, "met");
            let rows = requirement.judge("study", &with(Some(50.0)));
            assert_eq!(rows[0].verdict, RequirementVerdict::NotMeasured);
            assert!(rows[0].reason.as_ref().unwrap().contains("another rate for each engine"), "{rows:?}");
        }
    }

    #[test]
    fn a_ratio_of_99th_percentiles_is_by_pairs_too() {
        let with_tail = |engine: &str, repeat, p99: f64| {
            latency(engine, 32, repeat, 10.0).with(|it| it.figures.latency_us.as_mut().unwrap().p99 = p99)
        };
        let tails = [(1, 20.0, 10.0), (2, 60.0, 20.0), (3, 160.0, 80.0)];
        let pair = |(repeat, own, other)| [with_tail("weir", repeat, own), with_tail("other", repeat, other)];
        let run = run(tails.into_iter().flat_map(pair));
        let other = || Reference::Engine("other".to_owned());
        assert_eq!(judged(&weir(Limit::MaxRatio(1.5, RatioOf::P99, other())), &run)[0].1, Some(2.0));
        assert_eq!(judged(&weir(Limit::MinRatio(1.5, RatioOf::P99, other())), &run)[0].2, "met");
        assert_eq!(judged(&weir(Limit::MaxRatio(1.5, RatioOf::Headline, other())), &run)[0].1, Some(1.0));
        let few = |case: Case| case.with(|it| it.figures.latency_us.as_mut().unwrap().count = 9);
        let few = Run { cases: run.cases.into_iter().map(few).collect(), ..Run::new(Environment::default()) };
        let rows = weir(Limit::MaxRatio(1.5, RatioOf::P99, other())).judge("study", &few);
        assert!(rows[0].reason.as_ref().unwrap().contains("longer duration"), "{rows:?}");
    }

    #[test]
    fn a_ratio_that_beats_the_baseline_is_inconclusive_with_a_warning() {
        let of = |repeat| [latency("weir", 32, repeat, 8.0), latency("udp", 32, repeat, 10.0)];
        let run = run((1..=6).flat_map(of));
        let to_udp = Limit::MaxRatio(1.1, RatioOf::Headline, Reference::Engine("udp".to_owned()));
        let table = requirements_table(&weir(to_udp).judge("study", &run));
        assert!(table.contains("| inconclusive") && table.contains(", 1 inconclusive"), "{table}");
        let warning =
            "warning: study: weir 32 B latency, reliable: the median latency is 0.80 times that of udp";
        assert!(table.contains(warning), "{table}");
        assert!(!requirements_table(&weir(Limit::MaxP50(9.0)).judge("study", &run)).contains("warning"));
    }

    /// A stream of `weir udp`.
    fn stream(mode: UdpMode, flows: u32, samples_per_s: f64, lost: u64) -> Case {
        rate(mode.engine(), samples_per_s, lost).with(|it| {
            it.point.reliability = Reliability::None;
            it.figures.udp = Some(UdpFigures { mode, flows, ip_version: 4, ..UdpFigures::default() });
        })
    }

    #[test]
    fn udp_tests_are_judged_and_each_stream_is_compared_with_the_same_one_of_another_engine() {
        let (send, gso) = (UdpMode::Send, UdpMode::Gso);
        let round_trips = latency("udp", 32, 1, 10.0).with(|it| {
            it.point.reliability = Reliability::None;
            it.figures.udp = Some(UdpFigures::default());
        });
        let streams = [(send, 1, 1e6), (send, 4, 2e6), (gso, 1, 3e6), (gso, 4, 5e6)];
        let streams = streams.map(|(mode, flows, rate)| stream(mode, flows, rate, 0));
        let run = run(streams.into_iter().chain([round_trips, stream(send, 2, 9e6, 10)]));
        let of = |engine: &str, limit| Requirement {
            selector: Selector { engine: Some(engine.to_owned()), ..Selector::default() },
            limit,
        };
        let name =
            "send, 2 flows 32 B throughput (UDP streams at full speed, IPv4, wait: block, not connected)";
        let lossy = (name.to_owned(), Some(1.0), "missed");
        assert_eq!(judged(&of("udp", Limit::MaxLostPercent(0.5)), &run), [lossy]);
        let found = judged(&of("udp", Limit::MaxP50(9.0)), &run);
        assert_eq!((found.len(), found[0].1, found[0].2), (1, Some(10.0), "missed"), "{found:?}");
        assert_eq!(judged(&of("udp-gso", Limit::MinRate(3e6)), &run)[0].2, "met");
        let to_udp = Limit::MinRatio(2.9, RatioOf::Headline, Reference::Engine("udp".to_owned()));
        let found = judged(&of("udp-gso", to_udp), &run);
        assert_eq!((found.len(), found[0].1, found[0].2), (1, Some(2.5), "missed"), "{found:?}");
        let reference = Reference::Run { name: "old".to_owned(), run: Box::new(run.clone()) };
        let to_old = Limit::MinRatio(1.0, RatioOf::Headline, reference);
        assert_eq!(judged(&of("udp-gso", to_old), &run)[0].1, Some(1.0));
    }

    #[test]
    fn workloads_are_judged_by_losses_and_by_what_they_cost() {
        let of = |engine, cpu| crate::workload::tests::case(engine, 1, cpu, 100);
        let run = run([of("weir", 12.0), of("other", 10.0)]);
        let lost: u64 = run.cases[0].figures.workload.as_ref().unwrap().sum(|it| it.lost);
        let name = "weir workload (robot, contents 0123456789abcdef)".to_owned();
        assert_eq!(judged(&weir(Limit::NoLoss), &run), [(name.clone(), Some(lost as f64), "missed")]);
        let to_other = Limit::MaxRatio(1.1, RatioOf::Headline, Reference::Engine("other".to_owned()));
        assert_eq!(judged(&weir(to_other), &run), [(name, Some(1.2), "missed")]);
    }

    #[test]
    fn reliable_samples_that_were_lost_in_the_warm_up_are_losses() {
        let forbidden = Warning::LostSamples { lost: 5, permitted: false };
        let early = run([rate("weir", 1e6, 0).with(|it| it.evidence.warnings.push(forbidden))]);
        assert_eq!(judged(&weir(Limit::NoLoss), &early)[0].1, Some(5.0));
        assert_eq!(judged(&weir(Limit::MaxLostPercent(0.1)), &early)[0].2, "missed");
        let permitted = Warning::LostSamples { lost: 5, permitted: true };
        let late = run([rate("weir", 1e6, 0).with(|it| it.evidence.warnings.push(permitted))]);
        assert_eq!(judged(&weir(Limit::NoLoss), &late)[0].2, "met");
    }

    #[test]
    fn a_failed_repeat_leaves_open_whether_samples_were_lost() {
        let failed = Case::new("weir", Test::Throughput, Reliability::Reliable, 32).with(|case| {
            case.conditions.repeat = 2;
            case.evidence.not_measured = Some(NotMeasured::Failed { reason: "no echo".to_owned() });
        });
        for limit in [Limit::NoLoss, Limit::MaxLostPercent(1.0)] {
            let rows = weir(limit.clone()).judge("study", &run([rate("weir", 1e6, 0), failed.clone()]));
            assert_eq!(rows[0].verdict, RequirementVerdict::NotMeasured, "{rows:?}");
            assert!(rows[0].reason.as_ref().unwrap().contains("no echo"), "{rows:?}");
            // What the others lost is too much already.
            let lossy = run([rate("weir", 1e6, 100), failed.clone()]);
            assert_eq!(judged(&weir(limit), &lossy)[0].2, "missed");
        }
    }

    #[test]
    fn cases_with_idle_processors_and_kept_awake_have_names_of_their_own() {
        let awake = latency("weir", 32, 1, 12.0).with(|case| case.conditions.kept_awake = true);
        let rows = weir(Limit::MaxP50(9.0)).judge("study", &run([latency("weir", 32, 1, 15.0), awake]));
        let cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
        let idle = "weir 32 B latency, reliable";
        assert_eq!(cases, [idle, &format!("{idle}, processors kept awake")]);
    }

    #[test]
    fn what_an_engine_lacks_is_left_out_unless_there_is_nothing_else() {
        let lacking = |engine: &str| {
            Case::new(engine, Test::Latency, Reliability::Reliable, 32).with(|case| {
                case.evidence.not_measured = Some(NotMeasured::NotSupported { reason: "no".to_owned() });
            })
        };
        let all = Requirement { selector: Selector::default(), limit: Limit::MaxP50(9.0) };
        assert_eq!(judged(&all, &run([latency("weir", 32, 1, 1.0), lacking("zeromq")]))[0].2, "met");
        assert_eq!(judged(&all, &run([lacking("zeromq")]))[0].2, "not measured");
    }

    #[test]
    fn what_was_not_measured_is_not_met_and_the_reason_is_given() {
        let failed = Case::new("weir", Test::Latency, Reliability::Reliable, 64).with(|case| {
            case.evidence.not_measured = Some(NotMeasured::Failed { reason: "it hung".to_owned() });
        });
        let run = run([latency("weir", 32, 1, 1.0), failed]);
        let rows = weir(Limit::MaxP50(9.0)).judge("study", &run);
        assert_eq!((rows.len(), rows[0].verdict), (1, RequirementVerdict::NotMeasured));
        let table = requirements_table(&rows);
        assert!(
            table.contains("not measured: study: weir 64 B latency, reliable: failed: it hung"),
            "{table}"
        );
        assert!(table.ends_with("0 met, 0 missed, 1 not measured\n"), "{table}");
        assert_eq!(judged(&weir(Limit::MinRate(1.0)), &run)[0].0, "weir");
    }
}
