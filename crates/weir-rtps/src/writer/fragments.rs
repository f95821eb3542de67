//! What a writer knows about samples that are too long for a datagram.

use std::collections::VecDeque;

use weir_wire::{SequenceNumber, Timestamp};

use crate::config;
use crate::history::{Entry, History};
use crate::time::Time;

/// How far the first sample that was not handed out yet has left, when it is a large one.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// Its fragments that were handed out.
    pub(super) sent: u32,
    /// What was handed out since the last HEARTBEAT_FRAG, charged.
    pub(super) since_heartbeat: u64,
    pub(super) count: u32,
    /// When readers that do not report how far they are get more.
    pub(super) paced_at: Option<Time>,
    /// No thread waits to go on with it.
    pub(super) is_left: bool,
    /// A quarter of the smallest receive buffer of all readers, charged.
    pub(super) quarter: u64,
}

impl Fragments {
    /// Takes in the receive buffers that readers announced, in bytes as their kernels charge them.
    pub(super) fn set_receive_buffers(&mut self, announced: impl Iterator<Item = Option<u32>>) {
        let bytes =
            announced.map(|bytes| bytes.map_or(config::RECEIVE_BUFFER_UNKNOWN_BYTES, u64::from)).min();
        // No reader slows a writer down to nothing by announcing next to nothing.
        self.quarter = bytes.unwrap_or(0).max(config::WINDOW_MIN_BYTES) / 4;
    }

    /// The sample was sent, or is given up.
    pub(super) fn end(&mut self) {
        (self.sent, self.since_heartbeat, self.paced_at, self.is_left) = (0, 0, None, false);
    }

    /// Whether a pause between two parts of a sample lasts.
    pub(super) fn is_pausing(&self, now: Time) -> bool {
        self.paced_at.is_some_and(|at| at > now)
    }
}

/// A large sample that is being filled piece by piece.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) sn: SequenceNumber,
    pub(super) payload_len: usize,
    pub(super) fragment_size: u32,
    /// Bytes that are filled.
    pub(super) filled: usize,
}

/// The samples of a history that are too long for a datagram, and when they were written: their headers are made when
/// they leave.
#[derive(Debug)]
pub(super) struct LargeSamples {
    samples: VecDeque<(SequenceNumber, Timestamp)>,
    /// At this many, those that are gone are forgotten.
    max: usize,
}

/// Samples that are remembered beyond those that are there.
const SPARE: usize = 16;

impl Default for LargeSamples {
    fn default() -> Self {
        Self { samples: VecDeque::new(), max: SPARE }
    }
}

impl LargeSamples {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Remembers when a sample was written.
    pub(super) fn note(&mut self, sn: SequenceNumber, timestamp: Timestamp, history: &History) {
        if self.samples.len() >= self.max {
            self.samples.retain(|(sn, _)| history.entry(*sn).as_ref().is_some_and(Entry::is_alive));
            self.max = 2 * self.samples.len() + SPARE;
        }
        self.samples.push_back((sn, timestamp));
    }

    /// Forgets samples before `first`.
    pub(super) fn release(&mut self, first: SequenceNumber) {
        while self.samples.front().is_some_and(|(sn, _)| *sn < first) {
            self.samples.pop_front();
        }
    }

    /// The first sample from `sn` on.
    pub(super) fn next_from(&self, sn: SequenceNumber) -> Option<SequenceNumber> {
        let index = self.samples.partition_point(|(large, _)| *large < sn);
        self.samples.get(index).map(|(large, _)| *large)
    }

    /// When a sample was written.
    pub(super) fn timestamp_of(&self, sn: SequenceNumber) -> Timestamp {
        let found = self.samples.binary_search_by_key(&sn, |(large, _)| *large);
        found.map_or(Timestamp::INVALID, |index| self.samples[index].1)
    }
}
