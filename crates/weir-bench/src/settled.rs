//! Ends the repeats of a test and size once they have decided.
//!
//! All engines of a size get the same number of repeats, so that each repeat stays a pair. Whether a repeat is measured
//! follows from the repeats before it alone, so a continued run decides as the interrupted one would have.

use std::collections::BTreeMap;

use weir_results::{Case, Interval, Spread, Test};

use crate::case::CaseSpec;
use crate::plan::Plan;

/// The figures of a plan's cases so far.
#[derive(Debug)]
pub(crate) struct Settled<'a> {
    plan: &'a Plan,
    /// The number of each step's point: what its repeats have in common. Empty if all repeats are measured.
    points: Vec<usize>,
    sizes: BTreeMap<(Test, usize), Size>,
}

/// All cases of a test and size.
#[derive(Debug, Default)]
struct Size {
    /// Headline figures by point; empty for a point without any.
    figures: BTreeMap<usize, Vec<f64>>,
    /// The last repeat that was decided on, and whether it and the later ones are left out.
    decided: (u32, bool),
}

impl<'a> Settled<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let points = if plan.until_width.is_some() { points(plan) } else { Vec::new() };
        Self { plan, points, sizes: BTreeMap::new() }
    }

    /// Whether this step is left out: the repeats before it have decided.
    pub(crate) fn is_over(&mut self, index: usize) -> bool {
        let Some(width) = self.plan.until_width else { return false };
        let case = &self.plan.steps[index].case;
        let size = self.sizes.entry((case.test, case.size_bytes)).or_default();
        if size.decided.0 < case.repeat && !size.decided.1 {
            size.decided = (case.repeat, size.is_narrow(width));
        }
        size.decided.1
    }

    /// Adds the result of a step.
    pub(crate) fn heed(&mut self, index: usize, result: &Case) {
        let Some(&point) = self.points.get(index) else { return };
        let case = &self.plan.steps[index].case;
        let size = self.sizes.entry((case.test, case.size_bytes)).or_default();
        size.figures.entry(point).or_default().extend(result.headline());
    }
}

impl Size {
    /// Whether the interval of every point is narrow. Points that were never measured do not count.
    fn is_narrow(&self, width: f64) -> bool {
        let mut measured = self.figures.values().filter(|figures| !figures.is_empty()).peekable();
        measured.peek().is_some()
            && measured.all(|figures| {
                let middle = Spread::of(figures.iter().copied()).map_or(0.0, |spread| spread.median);
                let interval = Interval::of_median(figures);
                interval.is_some_and(|interval| interval.high - interval.low < width * middle)
            })
    }
}

/// Numbers the points of a plan in order of appearance.
fn points(plan: &Plan) -> Vec<usize> {
    let mut known = Vec::new();
    let number = |case: &CaseSpec| {
        let point = CaseSpec { repeat: 0, ..case.clone() };
        known.iter().position(|other| *other == point).unwrap_or_else(|| {
            known.push(point);
            known.len() - 1
        })
    };
    plan.steps.iter().map(|step| &step.case).map(number).collect()
}

#[cfg(test)]
mod tests {
    use weir_results::{LatencySummary, Reliability};

    use super::*;
    use crate::case::tests::case;
    use crate::plan::{Action, Step};

    /// A latency test of two engines with this many repeats.
    fn plan(repeats: u32) -> Plan {
        let step = |engine: &str, repeat: u32| Step {
            case: case(engine, Test::Latency).with(|case| case.repeat = repeat),
            action: Action::Measure,
        };
        let steps = (1..=repeats).flat_map(|repeat| ["udp", "weir"].map(|engine| step(engine, repeat)));
        Plan { steps: steps.collect(), until_width: Some(0.05) }
    }

    /// The steps that are measured, if a repeat of an engine has this figure.
    fn measured(plan: &Plan, figure: impl Fn(&str, u32) -> Option<f64>) -> usize {
        let mut settled = Settled::new(plan);
        let mut count = 0;
        for (index, step) in plan.steps.iter().enumerate() {
            if settled.is_over(index) {
                continue;
            }
            count += 1;
            let figure = figure(&step.case.engine, step.case.repeat);
            let result = Case::new("", Test::Latency, Reliability::BestEffort, 32);
            let summary = |p50| LatencySummary { count: 9, p50, ..LatencySummary::default() };
            settled.heed(index, &result.with(|case| case.figures.latency_us = figure.map(summary)));
        }
        count
    }

    #[test]
    fn repeats_end_for_all_engines_once_every_interval_is_narrow() {
        assert_eq!(measured(&plan(20), |_, _| Some(10.0)), 2 * 6);
        let one_varies = |engine: &str, repeat: u32| {
            let varies = engine == "weir" && repeat.is_multiple_of(2);
            Some(if varies { 20.0 } else { 10.0 })
        };
        assert_eq!(measured(&plan(20), one_varies), 2 * 20);
    }

    #[test]
    fn an_engine_without_any_figure_does_not_prolong_the_others() {
        assert_eq!(measured(&plan(20), |engine, _| (engine == "udp").then_some(10.0)), 2 * 6);
        assert_eq!(measured(&plan(8), |_, _| None), 2 * 8);
    }

    #[test]
    fn without_a_width_all_repeats_are_measured() {
        let plan = Plan { until_width: None, ..plan(9) };
        assert_eq!(measured(&plan, |_, _| Some(10.0)), 2 * 9);
    }
}
