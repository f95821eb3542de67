//! What a writer is told: its configuration, and what belongs to one sample.

use core::time::Duration;

use weir_wire::{Guid, Timestamp, VendorId};

use crate::config;
use crate::qos::{Durability, History, Reliability};

/// The configuration of a writer.
#[derive(Debug, Clone)]
pub struct WriterConfig {
    /// Its GUID.
    pub guid: Guid,
    /// The vendor id that its messages carry.
    pub vendor: VendorId,
    /// Whether samples are repaired.
    pub reliability: Reliability,
    /// Which samples are kept for repairs.
    pub history: History,
    /// Whether late readers get what was written before.
    pub durability: Durability,
    /// Most samples in the history. A write beyond it is refused, unless it replaces a sample.
    pub max_samples: Option<u32>,
    /// Most instances that were written or registered and not unregistered.
    pub max_instances: Option<u32>,
    /// Most samples of one instance in the history; for KEEP_LAST, the depth is less.
    pub max_samples_per_instance: Option<u32>,
    /// Most bytes of samples in the history, with their headers.
    pub max_bytes: Option<usize>,
    /// Seed of the instance table's hashes: a number that peers cannot guess.
    pub hash_seed: u64,
    /// Whether writes in quick succession leave together.
    pub coalescing: Option<Coalescing>,
    /// Whether samples are collected in one message.
    pub batch: Option<BatchPolicy>,
    /// Whether [`WriterCore::poll_published`](super::WriterCore::poll_published) is called by another thread than those
    /// that write. Samples that were not handed out are bounded then: KEEP_ALL refuses writes beyond
    /// [`config::UNSENT_MAX_BYTES`] where no reader acknowledges; with KEEP_LAST, each write is followed by
    /// [`WriterCore::replace_unsent`](super::WriterCore::replace_unsent).
    pub is_asynchronous: bool,
}

impl WriterConfig {
    /// A best-effort or reliable writer with the defaults of the DDS specification and no coalescing.
    pub fn new(guid: Guid, reliability: Reliability) -> Self {
        Self {
            guid,
            vendor: VendorId::WEIR,
            reliability,
            history: History::KeepLast(1),
            durability: Durability::Volatile,
            max_samples: None,
            max_instances: None,
            max_samples_per_instance: None,
            max_bytes: None,
            hash_seed: 0,
            coalescing: None,
            batch: None,
            is_asynchronous: false,
        }
    }

    /// Whether samples are released once every matched reader has them. A best-effort writer has no reader that could
    /// ask for earlier samples.
    pub(super) fn keeps_nothing_for_late_readers(&self) -> bool {
        self.durability == Durability::Volatile || self.reliability == Reliability::BestEffort
    }
}

/// Automatic coalescing: samples of a burst, each in a datagram of its own, leave by one send call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// Writes closer together than this are a burst.
    pub gap: Duration,
    /// Longest time that a sample is held back.
    pub delay_max: Duration,
    /// Largest datagram, in bytes, that leaves in a segmented send: the path MTU less 28. Longer ones leave one by one.
    pub segment_max: u16,
}

impl Default for Coalescing {
    fn default() -> Self {
        Self { gap: config::COALESCING_GAP, delay_max: config::COALESCING_DELAY_MAX, segment_max: u16::MAX }
    }
}

/// The BATCH policy: many standard DATA submessages in one message, readable by every vendor, with one timestamp, that
/// of the first sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPolicy {
    /// Largest message, headers included, in bytes.
    pub max_bytes: usize,
    /// Most samples in a message.
    pub max_samples: u32,
    /// Longest time that a message waits for more samples. A full message may wait for more of a burst, no longer than
    /// this and than [`Coalescing::delay_max`].
    pub max_delay: Duration,
}

/// The timestamp and the instance of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The source timestamp.
    pub timestamp: Timestamp,
    /// The key hash of the instance; `None` for topics without a key, or where the instance does not matter.
    pub key: Option<[u8; 16]>,
}

/// What happened to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// A new value.
    Alive,
    /// The instance was disposed.
    Disposed,
    /// The writer no longer writes the instance.
    Unregistered,
    /// Both.
    DisposedUnregistered,
}

/// A change to be copied into the history.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What happened.
    pub kind: ChangeKind,
    /// The key hash of the instance; `None` for topics without a key.
    pub key: Option<[u8; 16]>,
    /// The payload with its encapsulation header; the serialized key unless `kind` is `Alive`.
    pub payload: &'a [u8],
}
