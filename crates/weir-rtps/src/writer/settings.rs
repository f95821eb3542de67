//! The settings of a writer, and the parameters of one write.

use core::time::Duration;

use weir_cdr::TypeDescription;
use weir_wire::{Guid, SequenceNumber, Timestamp, VendorId};

use super::compose;
use super::presented::WriterPresentation;
use super::state;
use crate::change_kind::ChangeKind;
use crate::config;
use crate::limits::EndpointLimits;
use crate::qos::{Durability, DurabilityService, History, INFINITE, Reliability};

/// The configuration of a writer.
#[derive(Debug, Clone)]
pub struct WriterConfig {
    /// GUID of the writer.
    pub guid: Guid,
    /// Vendor id sent in its messages.
    pub vendor: VendorId,
    /// Whether lost samples are repaired.
    pub reliability: Reliability,
    /// Which samples are kept for repairs.
    pub history: History,
    /// Whether late readers are sent earlier samples.
    pub durability: Durability,
    /// What late readers are sent of the history if the durability is `Transient` or `Persistent`.
    pub durability_service: DurabilityService,
    /// Most samples in the history. A write beyond that is refused, unless it replaces a sample.
    pub max_samples: Option<u32>,
    /// Most registered instances: written or registered, and not unregistered.
    pub max_instances: Option<u32>,
    /// Most samples of one instance in the history. With KEEP_LAST, the depth is lower and applies
    /// instead.
    pub max_samples_per_instance: Option<u32>,
    /// Most bytes of samples in the history, with their headers.
    pub max_bytes: Option<usize>,
    /// Seed of the instance table's hashes. Peers must not be able to guess it.
    pub hash_seed: u64,
    /// Coalescing of writes in quick succession; `None`: disabled.
    pub coalescing: Option<Coalescing>,
    /// Batching of samples in one message; `None`: disabled.
    pub batch: Option<BatchPolicy>,
    /// Whether a thread of its own calls
    /// [`WriterCore::poll_published`](super::WriterCore::poll_published).
    ///
    /// Unsent samples are then bounded. Without reliable readers, KEEP_ALL refuses writes beyond
    /// [`config::UNSENT_MAX_BYTES`]. With KEEP_LAST,
    /// [`WriterCore::replace_unsent`](super::WriterCore::replace_unsent) has to be called after
    /// each write.
    pub is_asynchronous: bool,
    /// Least time for an answer, for each matched reader: with so many to be served, none is asked again sooner. Zero
    /// for samples, whose readers answer at once.
    pub answer_time: Duration,
    /// The number of the first sample. A reader that acknowledges samples from there on receives what the writer sends,
    /// if the number cannot be guessed.
    pub first: SequenceNumber,
    /// How long a reliable reader that acknowledges nothing may hold up a KEEP_ALL writer; `None`: as long as it is
    /// matched.
    pub reader_inactivity: Option<Duration>,
    /// Writers with a higher priority go first on a path that they share.
    pub transport_priority: i32,
    /// For this time, other writers of the same priority may go first.
    pub latency_budget: Duration,
    /// Samples leave the history this long after they were written (LIFESPAN).
    pub lifespan: Duration,
    /// Longest time between two samples of an instance (DEADLINE).
    pub deadline: Duration,
    /// What the type of the samples consists of, for the content filters of readers.
    pub description: TypeDescription,
    /// Coherent sets, and the group of the writer; `None`: it has neither.
    pub presentation: Option<WriterPresentation>,
    /// The differentiated services code point of what is sent, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// The longest datagram that the sockets carry, in bytes: samples that need a longer one are sent in fragments.
    pub datagram_max: u16,
    /// The longest datagram for samples, in bytes, whatever the paths of the readers carry: a large sample keeps the
    /// length of its fragments, and readers elsewhere may come later and want it.
    pub kept_datagram_max: u16,
    /// What the writer reserves memory for, and may hold at most; `None`: memory is allocated as needed.
    pub limits: Option<EndpointLimits>,
}

impl WriterConfig {
    /// Creates the configuration of a writer with the defaults of the DDS specification and no
    /// coalescing.
    pub fn new(guid: Guid, reliability: Reliability) -> Self {
        Self {
            guid,
            vendor: VendorId::WEIR,
            reliability,
            history: History::KeepLast(1),
            durability: Durability::Volatile,
            durability_service: DurabilityService::DEFAULT,
            max_samples: None,
            max_instances: None,
            max_samples_per_instance: None,
            max_bytes: None,
            hash_seed: 0,
            coalescing: None,
            batch: None,
            is_asynchronous: false,
            answer_time: Duration::ZERO,
            first: SequenceNumber::FIRST,
            reader_inactivity: None,
            transport_priority: 0,
            latency_budget: Duration::ZERO,
            lifespan: INFINITE,
            deadline: INFINITE,
            presentation: None,
            dscp: 0,
            datagram_max: u16::MAX,
            kept_datagram_max: u16::MAX,
            limits: None,
            description: TypeDescription::Opaque,
        }
    }

    /// Returns the configuration with its resource limits lowered to the limits of the table, and its datagrams to what
    /// the sockets carry.
    pub(super) fn within_limits(mut self) -> Self {
        let datagram_max = state::datagram_max(&self, u16::MAX);
        if let Some(batch) = &mut self.batch {
            batch.max_bytes = batch.max_bytes.min(datagram_max - compose::HEARTBEAT_LEN);
        }
        if let Some(coalescing) = &mut self.coalescing {
            coalescing.segment_max = coalescing.segment_max.min(self.datagram_max);
        }
        if let Some(limits) = self.limits {
            let lowered = |limit: Option<u32>, most: usize| {
                Some(limit.unwrap_or(u32::MAX).min(u32::try_from(most).unwrap_or(u32::MAX)))
            };
            self.max_samples = lowered(self.max_samples, limits.samples);
            self.max_instances = lowered(self.max_instances, limits.instances);
            self.limits = self.reserved();
        }
        self
    }

    /// Returns the limits for which memory is reserved: no more instances than RESOURCE_LIMITS allows.
    pub(super) fn reserved(&self) -> Option<EndpointLimits> {
        let limits = self.limits?;
        let max = self.max_instances.map_or(usize::MAX, |max| max as usize);
        Some(EndpointLimits { instances: limits.instances.min(max), ..limits })
    }

    /// Returns the most bytes of a sample with its headers.
    pub(super) fn sample_len_max(&self) -> usize {
        let of_table = self.limits.map_or(usize::MAX, |limits| compose::datagram_len(limits.sample_bytes));
        self.max_bytes.unwrap_or(usize::MAX).min(of_table)
    }

    /// Returns whether DURABILITY_SERVICE limits what late readers are sent.
    pub(super) fn has_service(&self) -> bool {
        self.durability >= Durability::Transient && self.reliability == Reliability::Reliable
    }

    /// Returns whether samples are released once every matched reader has them. Readers of a
    /// best-effort writer cannot request earlier samples.
    pub(super) fn keeps_nothing_for_late_readers(&self) -> bool {
        self.durability == Durability::Volatile || self.reliability == Reliability::BestEffort
    }
}

/// Lengths as configured. The paths to the matched readers may limit them further.
#[derive(Debug, Clone, Copy)]
pub(super) struct Configured {
    /// [`Coalescing::segment_max`].
    pub(super) segment_max: u16,
    /// [`BatchPolicy::max_bytes`].
    pub(super) batch_bytes: usize,
}

impl Configured {
    pub(super) fn of(config: &WriterConfig) -> Self {
        Self {
            segment_max: config.coalescing.map_or(u16::MAX, |coalescing| coalescing.segment_max),
            batch_bytes: config.batch.map_or(0, |batch| batch.max_bytes),
        }
    }
}

/// Automatic coalescing: the samples of a burst, each in its own datagram, are sent with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// Writes closer together than this form a burst.
    pub gap: Duration,
    /// Longest time for which a sample is held back.
    pub delay_max: Duration,
    /// Largest datagram in a segmented send, in bytes: the path MTU less 28. Longer ones are sent
    /// one by one.
    pub segment_max: u16,
}

impl Default for Coalescing {
    fn default() -> Self {
        Self { gap: config::COALESCING_GAP, delay_max: config::COALESCING_DELAY_MAX, segment_max: u16::MAX }
    }
}

/// The BATCH policy: many standard DATA submessages in one message.
///
/// Any vendor's reader understands it. All samples have the timestamp of the first one.
///
/// ```
/// # use core::time::Duration;
/// # use weir_rtps::writer::BatchPolicy;
/// let policy = BatchPolicy::new(8192, 100, Duration::from_millis(1));
/// assert_eq!(policy.max_samples, 100);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchPolicy {
    /// Largest message including headers, in bytes.
    pub max_bytes: usize,
    /// Most samples in a message.
    pub max_samples: u32,
    /// Longest time for which a message waits for more samples.
    ///
    /// A full message may be held back in a burst, but no longer than this and
    /// [`Coalescing::delay_max`].
    pub max_delay: Duration,
}

impl BatchPolicy {
    /// Returns a policy for messages of up to `max_bytes` and `max_samples` that wait for up to `max_delay`.
    #[must_use]
    pub const fn new(max_bytes: usize, max_samples: u32, max_delay: Duration) -> Self {
        Self { max_bytes, max_samples, max_delay }
    }
}

/// The timestamp and the instance of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The source timestamp.
    pub timestamp: Timestamp,
    /// Key hash of the instance; `None` for topics without a key, or if the instance does not
    /// matter.
    pub key: Option<[u8; 16]>,
}

/// A change to be copied into the history.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What happened to the instance.
    pub kind: ChangeKind,
    /// Key hash of the instance; `None` for topics without a key.
    pub key: Option<[u8; 16]>,
    /// The payload with its encapsulation header. The serialized key, unless `kind` is `Alive`.
    pub payload: &'a [u8],
}
