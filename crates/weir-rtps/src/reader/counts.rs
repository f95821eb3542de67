//! Counts of the messages exchanged with one writer. A lower count than before marks a repetition.

use crate::count::is_newer;
use crate::time::{OptionTime, Time};

/// The last counts, received and sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// When the last HEARTBEAT arrived, and its count.
    heard_at: OptionTime,
    heartbeat: u32,
    acknack: u32,
    nack_frag: u32,
}

impl Counts {
    /// Records a HEARTBEAT. Returns whether it is neither a repetition nor older than one received
    /// before. Counts may wrap.
    pub(super) fn is_new_heartbeat(&mut self, now: Time, count: u32) -> bool {
        let is_new = is_newer(now, count, self.last_heartbeat());
        if is_new {
            (self.heartbeat, self.heard_at) = (count, OptionTime::some(now));
        }
        is_new
    }

    /// The count of the last HEARTBEAT, and when it arrived.
    pub(super) fn last_heartbeat(&self) -> Option<(u32, Time)> {
        self.heard_at.get().map(|at| (self.heartbeat, at))
    }

    /// When it arrived.
    pub(super) fn heard_at(&self) -> Option<Time> {
        self.heard_at.get()
    }

    /// The count of the next ACKNACK.
    pub(super) fn next_acknack(&mut self) -> u32 {
        self.acknack = self.acknack.wrapping_add(1);
        self.acknack
    }

    /// The count of the next NACK_FRAG.
    pub(super) fn next_nack_frag(&mut self) -> u32 {
        self.nack_frag = self.nack_frag.wrapping_add(1);
        self.nack_frag
    }
}
