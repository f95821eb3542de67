//! Counts of messages between two endpoints: a count that is not higher than the last one marks a repetition.

use crate::config;
use crate::time::Time;

/// Returns whether a message with this count is neither a repetition nor older than one before. `last`: the last count
/// that was taken, and when. Counts may wrap.
///
/// Copies of a message, and messages that others have overtaken, are a little behind. A count that is far behind shows
/// that the last one was false, or that the peer has started again.
pub(crate) fn is_newer(now: Time, count: u32, last: Option<(u32, Time)>) -> bool {
    last.is_none_or(|(last, at)| {
        let ahead = count.wrapping_sub(last).cast_signed();
        !(-config::COUNT_WINDOW..=0).contains(&ahead) || now.since(at) >= config::COUNT_TRUST
    })
}
