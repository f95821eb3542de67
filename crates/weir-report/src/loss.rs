//! Losses: how many there were, and their attribution, a line for each case.

use weir_results::{Case, NotMeasured, Warning};

use crate::group::Group;

/// Returns how many samples or round trips a case lost. A reliable one may lose none, so those of its warm-up count.
pub(crate) fn lost(case: &Case) -> u64 {
    let figures = &case.figures;
    let measured = match (&figures.workload, figures.throughput, figures.latency_us) {
        (Some(workload), ..) => workload.sum(|it| it.lost),
        (None, Some(throughput), _) => throughput.lost,
        (None, None, Some(latency)) => latency.lost,
        (None, None, None) => 0,
    };
    let forbidden = case.evidence.warnings.iter().filter_map(|warning| match warning {
        Warning::LostSamples { lost, permitted: false } => Some(*lost),
        _ => None,
    });
    forbidden.fold(measured, u64::max)
}

/// Returns whether a case failed, so that what it lost is not known.
pub(crate) fn has_failed(case: &Case) -> bool {
    matches!(case.evidence.not_measured, Some(NotMeasured::Failed { .. }))
}

/// Returns a line for each case of the group with losses.
///
/// `lost: udp 32 B: 120 (20 in the warm-up): 100 dropped at the receiver's full socket buffer, 20
/// lost on the path`
pub(crate) fn loss_lines(group: &Group<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for point in &group.points {
        let is_repeated = point.repeats.len() > 1;
        lines.extend(point.repeats.iter().filter_map(|case| loss_line(case, &point.engine, is_repeated)));
    }
    lines
}

/// Returns the line of one case, called `name`; `None` without a loss.
pub(crate) fn loss_line(case: &Case, name: &str, is_repeated: bool) -> Option<String> {
    let loss = case.evidence.loss_attribution.as_ref().filter(|loss| loss.lost > 0)?;
    let repeat = if is_repeated { format!(" (repeat {})", case.conditions.repeat) } else { String::new() };
    let measured = match (&case.figures.throughput, &case.figures.latency_us) {
        (Some(throughput), _) => throughput.lost,
        (None, Some(latency)) => latency.lost,
        (None, None) => loss.lost,
    };
    let warmup = match loss.lost.saturating_sub(measured) {
        0 => String::new(),
        count => format!(" ({count} in the warm-up)"),
    };
    let (size, lost) = (case.point.size_bytes, loss.lost);
    Some(format!("lost: {name} {size} B{repeat}: {lost}{warmup}: {}", loss.explanation()))
}
