//! The memory that a writer with a limits table reserves when it is created.

use alloc::boxed::Box;
use core::net::SocketAddrV4;

use super::answers::{HOLES_MAX, Hole};
use super::compose;
use super::encode::Unkept;
use super::fragments::LargeSamples;
use super::heartbeat::SENT_MAX;
use super::instances::InstancesSize;
use super::pacing::Pacing;
use super::path_uses::ADDRESSES_MAX;
use super::reader_proxy::ReaderProxy;
use super::repair_budget::RepairBudgets;
use super::requested::Requested;
use super::settings::WriterConfig;
use crate::address_lists::AddressLists;
use crate::guid_index::GuidIndex;
use crate::history::HistorySize;
use crate::limits::EndpointLimits;
use crate::path::Path;
use crate::qos::History;
use crate::time::Time;

/// What a writer reserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterSize {
    pub(super) history: HistorySize,
    instances: InstancesSize,
    pub(super) limits: EndpointLimits,
    pub(super) samples: usize,
    pub(super) matches: usize,
    /// Longest datagram that is not kept; 0: all are.
    pub(super) unkept: usize,
}

impl WriterSize {
    /// Returns what a writer with this configuration reserves; `None`: nothing.
    #[must_use]
    pub fn of(config: &WriterConfig) -> Option<Self> {
        let limits = config.reserved()?;
        let depth = match config.history {
            History::KeepAll => None,
            History::KeepLast(depth) => Some(depth.max(1) as usize),
        };
        Some(Self::new(&limits, config.guid.entity.is_keyed(), depth))
    }

    /// Returns the most that any writer reserves within these limits.
    #[must_use]
    pub fn most(limits: &EndpointLimits) -> Self {
        // Rounded up: with fewer instances, the depth of each may be greater.
        let depth = limits.samples.div_ceil(limits.instances.max(1));
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
            .saturating_add(self.bytes_of_matches())
    }

    /// Returns the memory of what matched readers request, of their addresses, and of their paths, in bytes.
    fn bytes_of_matches(&self) -> usize {
        let of_reader = size_of::<Box<Requested>>().saturating_add(Requested::bytes(&self.limits));
        let (each, len_max) = self.lists();
        (self.matches.saturating_mul(of_reader))
            .saturating_add(Pacing::bytes(self.matches, self.samples))
            .saturating_add(RepairBudgets::bytes(self.matches))
            .saturating_add(AddressLists::bytes(each, len_max))
            .saturating_add(self.addresses().saturating_mul(size_of::<SocketAddrV4>()))
            .saturating_add(self.holes() * size_of::<Hole>())
            .saturating_add(SENT_MAX * size_of::<(u32, Time)>())
    }

    /// Returns the memory that a matched reader takes besides, in bytes, at most: the path to its host.
    #[must_use]
    pub fn match_bytes(&self) -> usize {
        Path::bytes(1)
    }

    /// Returns how many lists of addresses there are of each length, and the greatest length.
    pub(super) fn lists(&self) -> (usize, usize) {
        (LISTS_EACH, self.addresses().min(LIST_LEN_MAX))
    }

    /// Returns how many addresses the matched readers have, at most.
    pub(super) fn addresses(&self) -> usize {
        self.matches.saturating_mul(ADDRESSES_MAX)
    }

    /// Returns how many holes an answer has at most.
    pub(super) fn holes(&self) -> usize {
        self.samples.saturating_add(2).min(HOLES_MAX + 1)
    }
}

/// An empty list of destinations: the reference counts.
const DESTINATIONS_BYTES: usize = 2 * size_of::<usize>();
/// The list in use, that which an outbox has kept, and those of readers that are asked or sent to apart.
const LISTS_EACH: usize = 4;
/// Longer lists of addresses are allocated when readers are matched: each takes memory for all that are shorter.
const LIST_LEN_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use weir_wire::{EntityId, Guid, GuidPrefix};

    use super::*;
    use crate::qos::Reliability;

    #[test]
    fn no_writer_that_the_table_admits_reserves_more_than_the_most() {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, true));
        for (samples, instances) in [(32, 8), (8, 3), (7, 8), (1, 1), (40, 7)] {
            let limits = EndpointLimits { samples, instances, ..EndpointLimits::SMALL };
            let most = WriterSize::most(&limits).bytes();
            let depths = 1..=samples as u32;
            let all = depths.flat_map(|depth| (0..=instances as u32).map(move |max| (depth, max)));
            for (depth, max) in all {
                let (history, max_instances) = (History::KeepLast(depth), (max > 0).then_some(max));
                if limits.check(history, (None, max_instances), true).is_err() {
                    continue;
                }
                let config = WriterConfig {
                    history,
                    max_instances,
                    limits: Some(limits),
                    ..WriterConfig::new(guid, Reliability::Reliable)
                };
                let bytes = WriterSize::of(&config).map(|size| size.bytes());
                assert!(
                    bytes <= Some(most),
                    "{samples} {instances} {history:?} {max_instances:?}: {bytes:?}"
                );
            }
        }
    }
}
