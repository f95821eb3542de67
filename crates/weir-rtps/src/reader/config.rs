//! Configuration of a reader.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use weir_filter::Filter;
use weir_wire::{Guid, Header, ProtocolVersion, VendorId};

use crate::config;
use crate::ecn::EcnMarks;
use crate::limits::EndpointLimits;
use crate::qos::{
    DestinationOrder, History, INFINITE, Ownership, Presentation, ReaderDataLifecycle, Reliability,
};
use crate::time::Time;

/// Computes the instance key of a sample from its payload with encapsulation header. `is_key`: the
/// payload holds only the key. Returns `None` if the payload cannot be decoded.
pub type KeyOf = fn(payload: &[u8], is_key: bool) -> Option<[u8; 16]>;

/// Converts a KEY_HASH, as writers in XCDR1 send it, to the instance key. Returns `None` if that is not possible.
pub type KeyOfHash = fn(key_hash: [u8; 16]) -> Option<[u8; 16]>;

/// Computes the KEY_HASH, as writers in XCDR1 send it, from a payload that holds only the key.
pub type HashOfKey = fn(key_payload: &[u8]) -> Option<[u8; 16]>;

/// Converts a payload, as passed to [`KeyOf`], to one that holds only the key.
pub type KeyPayloadOf = fn(payload: &[u8], is_key: bool) -> Option<Box<[u8]>>;

/// Configuration of a reader.
#[derive(Debug, Clone)]
pub struct ReaderConfig {
    /// GUID of the reader.
    pub guid: Guid,
    /// Vendor id in the headers of its messages.
    pub vendor: VendorId,
    /// Whether it requests missing samples.
    pub reliability: Reliability,
    /// Which samples it keeps until they are taken.
    pub history: History,
    /// Computes the instance key of a sample; `None` for topics without a key.
    pub key_of: Option<KeyOf>,
    /// Converts the KEY_HASHes of writers in XCDR1. `None`: they are instance keys. Those of other writers are.
    pub key_of_hash: Option<KeyOfHash>,
    /// Computes the KEY_HASHes of writers in XCDR1 if instance keys do not follow from them. The reader then remembers
    /// them with the instances whose key it keeps, and a KEY_HASH names none of the others. `None`: one that cannot be
    /// converted is an instance key. Not for readers with a limits table: they reserve no memory for it.
    pub hash_of_key: Option<HashOfKey>,
    /// Extracts the key payload that is kept per instance. `None`: none is kept.
    pub key_payload_of: Option<KeyPayloadOf>,
    /// Whether it wants samples from before it was matched (any durability but VOLATILE).
    pub wants_history: bool,
    /// Whether it resumes a writer that is matched again where it stopped, so that nothing is
    /// delivered twice.
    pub remembers_writers: bool,
    /// Maximum number of samples; `None`: only `max_bytes` limits them. A KEEP_LAST reader may hold
    /// one more for each instance that ended, to report that.
    pub max_samples: Option<u32>,
    /// Maximum number of instances.
    pub max_instances: Option<u32>,
    /// Maximum number of samples per instance. For KEEP_LAST the depth is lower.
    pub max_samples_per_instance: Option<u32>,
    /// Longest time between two samples of an instance (DEADLINE).
    pub deadline: Duration,
    /// Whether only the strongest writer's samples of an instance are delivered.
    pub ownership: Ownership,
    /// Whether a sample that is older than the last one of its instance, by its source timestamp, is left out.
    pub destination_order: DestinationOrder,
    /// Least time between two values of an instance; others are left out (TIME_BASED_FILTER). A reliable reader is
    /// delivered the last one when this time ends.
    pub minimum_separation: Duration,
    /// Which values are delivered, by their content; `None`: all.
    pub content_filter: Option<Arc<Filter>>,
    /// The name of the filter, by which writers report with samples whether they pass: see
    /// [`ContentFilterProperty::signature`](crate::content_filter::ContentFilterProperty::signature).
    pub filter_signature: Option<[u8; 16]>,
    /// Which samples become accessible together, and in which order (PRESENTATION).
    pub presentation: Presentation,
    /// When samples of instances that have ended are removed.
    pub lifecycle: ReaderDataLifecycle,
    /// Maximum bytes of samples, bookkeeping included.
    pub max_bytes: usize,
    /// Limits on samples that arrive in fragments.
    pub reassembly: ReassemblyLimits,
    /// Least time for a repair, for each matched writer: with so many to be served, none is asked again sooner. Zero
    /// for samples, whose writers repair at once.
    pub answer_time: Duration,
    /// Seed of the instance table's hash: a number that peers cannot guess.
    pub hash_seed: u64,
    /// Reads the clock of [`Time`], where time passes while a batch is handled; `None`: it does not.
    pub clock: Option<fn() -> Time>,
    /// The marks of what the participant receives; all its readers share them.
    pub ecn: EcnMarks,
    /// What the reader reserves memory for, and may hold at most; `None`: memory is allocated as needed.
    pub limits: Option<EndpointLimits>,
}

impl ReaderConfig {
    /// A configuration with the defaults of the DDS specification.
    pub fn new(guid: Guid, reliability: Reliability) -> Self {
        Self {
            guid,
            vendor: VendorId::WEIR,
            reliability,
            history: History::KeepLast(1),
            key_of: None,
            key_of_hash: None,
            hash_of_key: None,
            key_payload_of: None,
            wants_history: true,
            remembers_writers: true,
            deadline: INFINITE,
            ownership: Ownership::Shared,
            destination_order: DestinationOrder::ByReceptionTimestamp,
            minimum_separation: Duration::ZERO,
            content_filter: None,
            filter_signature: None,
            presentation: Presentation::DEFAULT,
            lifecycle: ReaderDataLifecycle::default(),
            max_samples: None,
            max_instances: None,
            max_samples_per_instance: None,
            max_bytes: config::READER_CACHE_MAX_BYTES,
            reassembly: ReassemblyLimits::default(),
            answer_time: Duration::ZERO,
            hash_seed: 0,
            clock: None,
            ecn: EcnMarks::default(),
            limits: None,
        }
    }

    /// The configuration with its resource limits lowered to the limits of the table.
    pub(super) fn within_limits(mut self) -> Self {
        if let Some(limits) = self.limits {
            let lowered = |limit: Option<u32>, most: usize| {
                Some(limit.unwrap_or(u32::MAX).min(u32::try_from(most).unwrap_or(u32::MAX)))
            };
            self.max_samples = lowered(self.max_samples, limits.samples);
            self.max_instances = lowered(self.max_instances, limits.instances);
            self.reassembly.sample_max_bytes = self.reassembly.sample_max_bytes.min(limits.sample_bytes);
        }
        self
    }

    /// The header of every message of the reader.
    pub(super) fn header(&self) -> Header {
        Header { version: ProtocolVersion::V2_5, vendor: self.vendor, prefix: self.guid.prefix }
    }
}

/// Limits on samples that arrive in fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Largest sample, in bytes. A reliable reader skips a larger one as if the writer had sent a
    /// GAP.
    pub sample_max_bytes: usize,
    /// Total size of incomplete samples, in bytes; at most [`config::REASSEMBLY_MAX_BYTES`]. One
    /// writer may use half.
    pub max_bytes: usize,
}

impl Default for ReassemblyLimits {
    /// The limits for user data.
    fn default() -> Self {
        Self { sample_max_bytes: config::SAMPLE_MAX_BYTES, max_bytes: config::REASSEMBLY_MAX_BYTES }
    }
}
