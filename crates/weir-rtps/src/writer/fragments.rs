//! State of samples that are too long for one datagram.

use alloc::collections::VecDeque;

use weir_wire::{SequenceNumber, Timestamp};

use crate::config;
use crate::history::{Entry, History};
use crate::time::Time;

/// How much of the first unsent sample has been sent, if it is a large one.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// Fragments handed out.
    pub(super) sent: u32,
    /// Bytes charged for fragments since the last HEARTBEAT_FRAG.
    pub(super) since_heartbeat: u64,
    pub(super) count: u32,
    /// When readers that do not report their progress are sent more, or when a pause ends.
    pub(super) paced_at: Option<Time>,
    /// No application thread waits to continue the sample, so the timer has to.
    pub(super) is_left: bool,
    /// A quarter of the smallest receive buffer of all readers, as the kernel charges it.
    pub(super) quarter: u64,
    /// Bytes that a paced path allows to send now.
    pub(super) allowed: u64,
}

impl Fragments {
    /// Sets the receive buffers announced by readers, in bytes as their kernels charge them.
    pub(super) fn set_receive_buffers(&mut self, announced: impl Iterator<Item = Option<u32>>) {
        let bytes =
            announced.map(|bytes| bytes.map_or(config::RECEIVE_BUFFER_UNKNOWN_BYTES, u64::from)).min();
        // The lower bound keeps a reader from slowing the writer down by announcing a tiny buffer.
        self.quarter = bytes.unwrap_or(0).max(config::WINDOW_MIN_BYTES) / 4;
    }

    /// Resets the state: the sample was sent or abandoned.
    pub(super) fn end(&mut self) {
        (self.sent, self.since_heartbeat, self.paced_at, self.is_left) = (0, 0, None, false);
    }

    /// Returns whether a pause between two parts of the sample continues.
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
    /// Bytes filled so far.
    pub(super) filled: usize,
}

/// The large samples in a history, with their timestamps. Their headers are made when they are
/// sent.
#[derive(Debug)]
pub(super) struct LargeSamples {
    samples: VecDeque<(SequenceNumber, Timestamp)>,
    /// At this length, removed samples are dropped from the list.
    max: usize,
}

/// Entries kept in addition to twice the surviving samples.
const SPARE: usize = 16;

impl Default for LargeSamples {
    fn default() -> Self {
        Self { samples: VecDeque::new(), max: SPARE }
    }
}

impl LargeSamples {
    /// Reserves room for so many samples.
    pub(super) fn fixed(samples: usize) -> Self {
        Self { samples: VecDeque::with_capacity(Self::room_for(samples)), max: SPARE }
    }

    fn room_for(samples: usize) -> usize {
        samples.saturating_mul(2).saturating_add(2 * SPARE)
    }

    /// Returns the memory of a list for so many samples, in bytes.
    pub(super) fn bytes(samples: usize) -> usize {
        Self::room_for(samples).saturating_mul(size_of::<(SequenceNumber, Timestamp)>())
    }

    /// Returns its memory in bytes.
    pub(super) fn allocated(&self) -> usize {
        self.samples.capacity() * size_of::<(SequenceNumber, Timestamp)>()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Records the timestamp of a sample.
    pub(super) fn note(&mut self, sn: SequenceNumber, timestamp: Timestamp, history: &History) {
        if self.samples.len() >= self.max {
            self.samples.retain(|(sn, _)| history.entry(*sn).as_ref().is_some_and(Entry::is_alive));
            self.max = 2 * self.samples.len() + SPARE;
        }
        self.samples.push_back((sn, timestamp));
    }

    /// Drops samples before `first`.
    pub(super) fn release(&mut self, first: SequenceNumber) {
        while self.samples.front().is_some_and(|(sn, _)| *sn < first) {
            self.samples.pop_front();
        }
    }

    /// Returns the first large sample from `sn` on.
    pub(super) fn next_from(&self, sn: SequenceNumber) -> Option<SequenceNumber> {
        let index = self.samples.partition_point(|(large, _)| *large < sn);
        self.samples.get(index).map(|(large, _)| *large)
    }

    /// Returns the timestamp of a sample.
    pub(super) fn timestamp_of(&self, sn: SequenceNumber) -> Timestamp {
        let found = self.samples.binary_search_by_key(&sn, |(large, _)| *large);
        found.map_or(Timestamp::INVALID, |index| self.samples[index].1)
    }
}
