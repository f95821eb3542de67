//! Engines that seem to be faster than raw UDP.
//!
//! The baseline sends the same bytes by the same system calls as Weir, and waits in the same way; what an engine adds
//! is its protocol. So a median latency below the baseline's says something about the machine, not about the engine:
//! most often, that processors which sleep longer wake up later.
//!
//! This holds for latencies in ping-pong only. A rate beyond the baseline's can be true: batches and segmented sends
//! save system calls, and flow control avoids losses.

use weir_results::{Case, Comparison, LatencyKind, Test, WaitStrategy, Warning};

use crate::compare::{compare, headline};
use crate::group::{FLOOR, Group, Point};
use crate::json::rounded;

/// Returns the warning about a point that is faster than raw UDP of the same size, if it is beyond doubt: the interval
/// of the ratio is below 1, or without an interval, each ratio of at least two repeats is below [`SURE`].
pub(crate) fn beaten_baseline(group: &Group<'_>, point: &Point<'_>) -> Option<Warning> {
    let (found, base) = with_baseline(group, point)?;
    let is_beaten = match found.interval {
        Some(interval) => interval.high < 1.0,
        None => found.pairs >= PAIRS_MIN && ratios(point, base).all(|ratio| ratio < SURE),
    };
    let idle = group.key.wait != WaitStrategy::Spin && !group.key.kept_awake;
    let interval = found.interval.map(|interval| [interval.low, interval.high].map(rounded));
    is_beaten.then(|| Warning::FasterThanBaseline {
        baseline: FLOOR.to_owned(),
        ratio: rounded(found.ratio),
        interval,
        idle,
    })
}

/// Returns whether the ratio of a point to raw UDP needs a note: it is clearly below 1, with or without enough repeats.
pub(crate) fn seems_faster(group: &Group<'_>, point: &Point<'_>) -> bool {
    let is_low = with_baseline(group, point).is_some_and(|(found, _)| found.ratio < SURE);
    is_low || beaten_baseline(group, point).is_some()
}

/// The comparison of a point with raw UDP of the same size, where raw UDP is a lower bound.
fn with_baseline<'g, 'a>(group: &'g Group<'a>, point: &Point<'a>) -> Option<(Comparison, &'g Point<'a>)> {
    let key = &group.key;
    if key.test != Test::Latency || key.kind == LatencyKind::OneWay || point.engine == FLOOR || key.apart {
        return None;
    }
    let base = group.base(point, FLOOR)?;
    // An engine that fits its packets to the path may send the first while it encodes the rest; raw UDP leaves that
    // to IP.
    let is_fragmented = |case: &&Case| {
        case.evidence.warnings.iter().any(|warning| matches!(warning, Warning::MtuSmallerThan { .. }))
    };
    if base.repeats.iter().any(is_fragmented) {
        return None;
    }
    Some((compare(group, point, FLOOR)?, base))
}

/// Returns one warning about all such points of a group, with the ratio of the fastest, and their cases.
pub(crate) fn beaten_baselines<'a>(group: &Group<'a>) -> Option<(String, Vec<&'a Case>)> {
    let found = group.points.iter().filter_map(|point| Some((beaten_baseline(group, point)?, point)));
    let found: Vec<(Warning, &Point<'a>)> = found.collect();
    let ratio = |warning: &Warning| match warning {
        Warning::FasterThanBaseline { ratio, .. } => *ratio,
        _ => f64::INFINITY,
    };
    let (worst, _) = found.iter().min_by(|(one, _), (other, _)| ratio(one).total_cmp(&ratio(other)))?;
    Some((worst.to_string(), found.iter().flat_map(|(_, point)| point.repeats.iter().copied()).collect()))
}

/// The ratios of the repeats that both have.
fn ratios(point: &Point<'_>, base: &Point<'_>) -> impl Iterator<Item = f64> {
    point.repeats.iter().filter_map(|case| {
        let of_base = base.repeats.iter().find(|it| it.conditions.repeat == case.conditions.repeat)?;
        Some(headline(case)? / headline(of_base)?)
    })
}

/// Without an interval, so many pairs have to agree.
const PAIRS_MIN: usize = 2;

/// Without an interval, each ratio has to be below this.
pub(crate) const SURE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use weir_results::{Environment, LatencySummary, Reliability, Run};

    use super::*;
    use crate::group::groups;

    fn case(engine: &str, reliability: Reliability, repeat: u32, p50: f64) -> Case {
        Case::new(engine, Test::Latency, reliability, 32).with(|it| {
            it.conditions.repeat = repeat;
            it.figures.latency_us = Some(LatencySummary { count: 1, p50, ..LatencySummary::default() });
        })
    }

    /// The warning of a run with these ratios of weir to udp, one for each repeat.
    fn warned(ratios: &[f64], change: impl Fn(&mut Case)) -> Option<(String, usize)> {
        let of = |(repeat, ratio): (u32, &f64)| {
            let pace = 30.0 + f64::from(repeat);
            let base = case(FLOOR, Reliability::None, repeat, pace);
            [base, case("weir", Reliability::Reliable, repeat, pace * ratio)].map(|case| case.with(&change))
        };
        let cases = (1..).zip(ratios).flat_map(of).collect();
        let run = Run { cases, ..Run::new(Environment::default()) };
        let groups = groups(&run);
        let found: Vec<_> = groups.iter().filter_map(beaten_baselines).collect();
        assert!(found.len() <= 1);
        found.into_iter().next().map(|(text, cases)| (text, cases.len()))
    }

    #[test]
    fn an_engine_below_its_baseline_beyond_the_interval_is_warned_about() {
        let (text, cases) = warned(&[0.86, 0.84, 0.88, 0.85, 0.86, 0.87, 0.86, 0.85], |_| {}).unwrap();
        assert_eq!(cases, 8);
        let expected = "the median latency is 0.86 times that of udp (95 % interval 0.8";
        assert!(text.starts_with(expected) && text.contains("--keep-awake=both"), "{text}");
        assert_eq!(warned(&[0.86, 1.02, 0.88, 1.01, 0.99, 1.03, 0.98, 1.02], |_| {}), None);
        assert_eq!(warned(&[1.2; 8], |_| {}), None);
    }

    #[test]
    fn few_repeats_have_to_agree() {
        assert!(warned(&[0.86, 0.9], |_| {}).unwrap().0.contains("(in every repeat)"));
        assert_eq!(warned(&[0.86, 0.97], |_| {}), None);
        assert_eq!(warned(&[0.5], |_| {}), None, "one repeat proves nothing");
    }

    #[test]
    fn the_advice_is_another_one_where_the_processors_did_not_sleep() {
        let awake = warned(&[0.8; 6], |case| case.conditions.kept_awake = true).unwrap().0;
        assert!(awake.contains("something slowed the baseline down"), "{awake}");
        let spinning = warned(&[0.8; 6], |case| case.conditions.wait = WaitStrategy::Spin).unwrap().0;
        assert!(spinning.contains("end other programs"), "{spinning}");
    }

    #[test]
    fn datagrams_in_fragments_are_no_baseline() {
        let mtu = |case: &mut Case| {
            case.evidence.warnings.push(Warning::MtuSmallerThan { mtu: 1500, needed: 8220 });
        };
        assert_eq!(warned(&[0.8; 6], mtu), None);
    }
}
