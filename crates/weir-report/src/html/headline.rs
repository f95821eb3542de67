//! What decides about each point of a group: its figure, interval, comparison and losses.

use weir_results::{Case, Comparison, Interval, Reliability, Spread};

use crate::compact::lost_percent;
use crate::compare::compare;
use crate::group::{Group, Point};
use crate::html::table::RowMark;
use crate::loss;
use crate::plot::HEAVY_LOSS_PERCENT;

/// A point with what decides about it, computed once for all tables, plots and sentences.
pub(crate) struct Headline<'g> {
    pub(crate) point: &'g Point<'g>,
    pub(crate) spread: Option<Spread>,
    pub(crate) interval: Option<Interval>,
    /// With the engine that all others are compared with.
    pub(crate) comparison: Option<Comparison>,
    pub(crate) lost: u64,
    pub(crate) lost_percent: f64,
}

/// Returns the headlines of a group's points.
pub(crate) fn headlines<'g>(group: &'g Group<'g>, relative_to: &str) -> Vec<Headline<'g>> {
    let of = |point: &'g Point<'g>| Headline {
        point,
        spread: point.headline(),
        interval: point.interval(),
        comparison: compare(group, point, relative_to),
        lost: lost(point),
        lost_percent: lost_percent(point),
    };
    group.points.iter().map(of).collect()
}

impl Headline<'_> {
    /// Returns whether samples were lost although delivery is reliable.
    pub(crate) fn broke_its_promise(&self) -> bool {
        let is_reliable = |case: &Case| case.point.reliability == Reliability::Reliable;
        self.lost > 0 && self.point.repeats.iter().any(|case| is_reliable(case))
    }

    /// Returns how a row with this point is marked.
    pub(crate) fn row_mark(&self) -> RowMark {
        if self.spread.is_none() {
            RowMark::Failed
        } else if self.broke_its_promise() || self.lost_percent >= HEAVY_LOSS_PERCENT {
            RowMark::Lossy
        } else {
            RowMark::Plain
        }
    }
}

/// Returns how many samples or round trips a point lost, over all repeats.
pub(crate) fn lost(point: &Point<'_>) -> u64 {
    point.repeats.iter().map(|case| loss::lost(case)).fold(0, u64::saturating_add)
}
