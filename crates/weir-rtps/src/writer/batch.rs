//! Collecting samples in one message (the BATCH policy): many standard DATA submessages, readable by every
//! vendor, with one time stamp, that of the first sample.

use core::time::Duration;

use weir_wire::SequenceNumber;

use crate::time::Time;

/// When a batch is full or has waited long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPolicy {
    /// Largest message, headers included, in bytes.
    pub max_bytes: usize,
    /// Most samples in a message.
    pub max_samples: u32,
    /// Longest time that a sample waits for others.
    pub max_delay: Duration,
}

/// The message that is being filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenBatch {
    /// Its first sample.
    pub(super) first: SequenceNumber,
    /// Its length so far, in bytes.
    pub(super) len: usize,
    /// Its samples so far.
    pub(super) samples: u32,
    /// When its first sample was written.
    pub(super) since: Time,
}

impl OpenBatch {
    /// Whether `extra` more bytes, one more sample, are still within the policy.
    #[inline]
    pub(super) fn takes(&self, policy: &BatchPolicy, extra: usize) -> bool {
        self.len + extra <= policy.max_bytes && self.samples < policy.max_samples
    }
}
