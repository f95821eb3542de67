//! Counts of the messages exchanged with one writer. A lower count than before marks a repetition.

use crate::count::is_newer;
use crate::time::Time;

/// The last counts, received and sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Count of the last HEARTBEAT, and when it arrived.
    heartbeat: Option<(u32, Time)>,
    acknack: u32,
    nack_frag: u32,
}

impl Counts {
    /// Records a HEARTBEAT. Returns whether it is neither a repetition nor older than one received
    /// before. Counts may wrap.
    pub(super) fn is_new_heartbeat(&mut self, now: Time, count: u32) -> bool {
        let is_new = is_newer(now, count, self.heartbeat);
        if is_new {
            self.heartbeat = Some((count, now));
        }
        is_new
    }

    /// The count of the last HEARTBEAT, and when it arrived.
    pub(super) fn last_heartbeat(&self) -> Option<(u32, Time)> {
        self.heartbeat
    }

    /// When it arrived.
    pub(super) fn heard_at(&self) -> Option<Time> {
        self.heartbeat.map(|(_, at)| at)
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
