//! The figure by which engines are compared, and the result of the comparison.

use weir_results::{Better, Case, Comparison, Interval, LatencySummary, Spread, Test};

use crate::group::{FLOOR, Group, Load, Point};

/// Options of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// The engine that all others are compared with.
    pub relative_to: String,
    /// Shows the costs of both ends: processor time, context switches, system calls, memory.
    pub costs: bool,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { relative_to: FLOOR.to_owned(), costs: false }
    }
}

/// Returns the latency of a case; `None` if no round trip completed, which leaves counts but no times.
pub(crate) fn times(case: &Case) -> Option<LatencySummary> {
    case.figures.latency_us.filter(|latency| latency.count > 0)
}

/// Returns the figure that decides: the median latency, or the received rate.
pub(crate) fn headline(case: &Case) -> Option<f64> {
    case.headline()
}

/// Returns the name of [`headline`] in the results format.
pub(crate) fn headline_name(test: Test) -> &'static str {
    match test {
        Test::Latency => "p50_us",
        Test::Throughput => "samples_per_s",
        Test::Workload => "cpu_percent",
    }
}

impl Point<'_> {
    /// Returns the interval of the true median of [`headline`].
    pub(crate) fn interval(&self) -> Option<Interval> {
        let figures: Vec<f64> = self.repeats.iter().filter_map(|case| headline(case)).collect();
        Interval::of_median(&figures)
    }

    /// Returns the median and range of [`headline`].
    pub(crate) fn headline(&self) -> Option<Spread> {
        self.spread(headline)
    }
}

/// Compares a point with that of the engine `relative_to` with the same size, repeat by repeat. A load in percent is
/// another rate for each engine, so there is no ratio.
pub(crate) fn compare(group: &Group<'_>, point: &Point<'_>, relative_to: &str) -> Option<Comparison> {
    if matches!(point.load, Some(Load::Percent(_))) {
        return None;
    }
    compare_repeats(&point.repeats, &group.base(point, relative_to)?.repeats)
}

/// Compares the figure that decides of the repeats that both have.
pub(crate) fn compare_repeats(own: &[&Case], others: &[&Case]) -> Option<Comparison> {
    compare_figure(own, others, headline)
}

/// Compares a figure of the same direction as the one that decides.
pub(crate) fn compare_figure(
    own: &[&Case],
    others: &[&Case],
    figure: impl Fn(&Case) -> Option<f64>,
) -> Option<Comparison> {
    let better = match own.first()?.point.test {
        Test::Latency | Test::Workload => Better::Less,
        Test::Throughput => Better::More,
    };
    let pair = |case: &&Case| {
        let other = others.iter().find(|other| other.conditions.repeat == case.conditions.repeat)?;
        Some((figure(case)?, figure(other)?))
    };
    let pairs: Vec<(f64, f64)> = own.iter().filter_map(pair).collect();
    Comparison::of(&pairs, better)
}

#[cfg(test)]
mod tests {
    use weir_results::{Environment, Reliability, Run, Verdict};

    use super::*;
    use crate::group::groups;

    fn case(engine: &str, repeat: u32, p50: f64) -> Case {
        let latency_us = Some(LatencySummary { count: 1, p50, ..LatencySummary::default() });
        Case::new(engine, Test::Latency, Reliability::Reliable, 32).with(|it| {
            it.conditions.repeat = repeat;
            it.figures.latency_us = latency_us;
        })
    }

    #[test]
    fn repeats_are_paired_by_their_number_and_not_by_their_place() {
        let mut cases = Vec::new();
        for repeat in 1..=8 {
            // The machine slows down from repeat to repeat.
            let pace = f64::from(repeat);
            cases.push(case("one", repeat, 10.0 * pace));
            cases.push(case("other", 9 - repeat, 20.0 * (9.0 - pace)));
        }
        cases.push(case("other", 9, 1000.0));
        let run = Run { cases, ..Run::new(Environment::default()) };
        let groups = groups(&run);
        let find = |name: &str| groups[0].points.iter().find(|point| point.engine == name).unwrap();
        let found = compare(&groups[0], find("one"), "other").unwrap();
        assert_eq!((found.ratio, found.pairs, found.verdict), (0.5, 8, Verdict::Better));
        let back = compare(&groups[0], find("other"), "one").unwrap();
        assert_eq!((back.ratio, back.pairs, back.verdict), (2.0, 8, Verdict::Worse));
        assert_eq!(compare(&groups[0], find("one"), "udp"), None);
    }

    #[test]
    fn loads_in_percent_have_no_ratio_and_rates_have() {
        let with = |percent: Option<f64>, rate: Option<f64>| {
            let of = |engine| {
                case(engine, 1, 10.0).with(|it| {
                    it.conditions.load_percent = percent;
                    it.conditions.rate_samples_per_s = rate;
                    it.figures.latency_us.as_mut().unwrap().kind = weir_results::LatencyKind::OneWay;
                })
            };
            Run { cases: ["udp", "weir"].map(of).to_vec(), ..Run::new(Environment::default()) }
        };
        let ratio = |run: &Run| {
            let groups = groups(run);
            let point = groups[0].points.iter().find(|point| point.engine == "weir").unwrap();
            compare(&groups[0], point, FLOOR).map(|found| found.ratio)
        };
        assert_eq!(ratio(&with(None, Some(1000.0))), Some(1.0));
        assert_eq!(ratio(&with(Some(50.0), Some(1000.0))), None);
    }
}
