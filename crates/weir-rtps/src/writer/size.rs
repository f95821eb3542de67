//! The memory that a writer with a limits table reserves when it is created.

use super::compose;
use super::encode::Unkept;
use super::fragments::LargeSamples;
use super::instances::InstancesSize;
use super::reader_proxy::ReaderProxy;
use super::settings::WriterConfig;
use crate::guid_index::GuidIndex;
use crate::history::HistorySize;
use crate::limits::EndpointLimits;
use crate::qos::History;

/// What a writer reserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterSize {
    pub(super) history: HistorySize,
    instances: InstancesSize,
    limits: EndpointLimits,
    pub(super) samples: usize,
    pub(super) matches: usize,
    /// Longest datagram that is not kept; 0: all are.
    pub(super) unkept: usize,
}

impl WriterSize {
    /// Returns what a writer with this configuration reserves; `None`: nothing.
    #[must_use]
    pub fn of(config: &WriterConfig) -> Option<Self> {
        let limits = config.limits?;
        let depth = match config.history {
            History::KeepAll => None,
            History::KeepLast(depth) => Some(depth.max(1) as usize),
        };
        Some(Self::new(&limits, config.guid.entity.is_keyed(), depth))
    }

    /// Returns the most that any writer reserves within these limits.
    #[must_use]
    pub fn most(limits: &EndpointLimits) -> Self {
        let depth = limits.samples.checked_div(limits.instances).unwrap_or(1);
        Self::new(limits, true, Some(depth.max(2)))
    }

    pub(crate) fn new(limits: &EndpointLimits, is_keyed: bool, depth: Option<usize>) -> Self {
        // The payload of a sample sent in fragments is kept alone; a block for a datagram has room for it.
        let len = compose::datagram_len(limits.sample_bytes.next_multiple_of(4));
        // The key of a sample may be all of it, so that its dispose is as long, with inline QoS besides.
        let inline_qos = if is_keyed { compose::INLINE_QOS_LEN } else { 0 };
        Self {
            history: HistorySize::new(limits.samples, len.saturating_add(inline_qos)),
            instances: InstancesSize::new(limits, is_keyed, depth),
            limits: *limits,
            samples: limits.samples,
            matches: limits.matches,
            unkept: len,
        }
    }

    /// Returns the memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.history.bytes())
            .saturating_add(self.instances.bytes())
            .saturating_add(Unkept::bytes(self.unkept))
            .saturating_add(LargeSamples::bytes(self.samples))
            .saturating_add(self.matches.saturating_mul(size_of::<ReaderProxy>()))
            .saturating_add(GuidIndex::bytes(self.matches))
            .saturating_add(DESTINATIONS_BYTES)
    }

    /// Returns the memory that a matched reader takes besides, in bytes, at most: the lists of what it requests,
    /// its addresses, and the account of its host.
    #[must_use]
    pub fn match_bytes(&self) -> usize {
        ReaderProxy::request_bytes(&self.limits) + MATCH_BESIDE_BYTES
    }
}

/// An empty list of destinations: the reference counts.
const DESTINATIONS_BYTES: usize = 2 * size_of::<usize>();
/// The addresses of a matched reader in the lists of destinations, and the account of its host.
const MATCH_BESIDE_BYTES: usize = 512;
