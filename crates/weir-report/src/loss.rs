//! Where lost samples went, a line for each case that lost any.

use crate::group::Group;

/// `lost: udp 32 B: 120 (20 in the warm-up): 100 dropped at the receiver's full socket buffer, 20 lost on the
/// path between` for each case of the group with a loss.
pub(crate) fn loss_lines(group: &Group<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for point in &group.points {
        for case in &point.repeats {
            let Some(loss) = case.loss_attribution.as_ref().filter(|loss| loss.lost > 0) else { continue };
            let repeat =
                if point.repeats.len() > 1 { format!(" (repeat {})", case.repeat) } else { String::new() };
            let measured = match (&case.throughput, &case.latency_us) {
                (Some(throughput), _) => throughput.lost,
                (None, Some(latency)) => latency.lost,
                (None, None) => loss.lost,
            };
            let warmup = match loss.lost.saturating_sub(measured) {
                0 => String::new(),
                count => format!(" ({count} in the warm-up)"),
            };
            lines.push(format!(
                "lost: {} {} B{repeat}: {}{warmup}: {}",
                point.engine,
                point.size_bytes,
                loss.lost,
                loss.explanation()
            ));
        }
    }
    lines
}
