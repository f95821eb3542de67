//! Cases with idle processors, and with processors kept awake.

use weir_results::Test;

use super::{Action, Step};

/// A step with each of these. Both are for latency: a processor of a stream hardly sleeps, so that one is as it is.
pub(super) fn each(step: Step, values: &[bool]) -> Vec<Step> {
    let with = |&keep_awake: &bool| {
        let mut step = step.clone();
        step.case.method.keep_awake = keep_awake;
        step
    };
    let is_latency = step.action == Action::Measure && step.case.test == Test::Latency;
    if values.len() == 1 || is_latency { values.iter().map(with).collect() } else { vec![step] }
}
