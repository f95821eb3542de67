//! The memory that a reader with a limits table reserves when it is created.

use alloc::vec::Vec;

use weir_wire::{FragmentNumberSet, SequenceNumber, SequenceNumberSet};

use super::ReaderCore;
use super::assemblies::AssembliesSize;
use super::chunks::ChunksSize;
use super::config::ReaderConfig;
use super::entries::Entries;
use super::instances::InstancesSize;
use super::refused::RefusedWriters;
use super::writer_memory::WriterMemory;
use super::writer_proxy::{Position, ProxyMemory, WriterProxy};
use crate::config::{DEPARTED_WRITERS_MAX, NACK_FRAG_SETS_MAX, UNMATCHED_WRITERS_MAX};
use crate::guid_index::GuidIndex;
use crate::limits::EndpointLimits;

/// What a reader reserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderSize {
    pub(super) chunks: ChunksSize,
    /// Entries in the queue.
    pub(super) entries: usize,
    pub(super) instances: InstancesSize,
    is_keyed: bool,
    pub(super) assemblies: AssembliesSize,
    pub(super) matches: usize,
    /// Samples in the list of a matched writer.
    listed: usize,
}

impl ReaderSize {
    /// What a reader with this configuration reserves; `None`: nothing.
    #[must_use]
    pub fn of(config: &ReaderConfig) -> Option<Self> {
        config.limits.map(|limits| Self::new(&limits, config.key_of.is_some()))
    }

    /// The most that any reader reserves within these limits.
    #[must_use]
    pub fn most(limits: &EndpointLimits) -> Self {
        Self::new(limits, true)
    }

    pub(crate) fn new(limits: &EndpointLimits, is_keyed: bool) -> Self {
        let EndpointLimits { matches, samples, instances, sample_bytes, early_samples, reassemblies } =
            *limits;
        // KEEP_LAST: an instance may have a value that is replaced, or a change of state, besides its samples.
        let queued = samples.saturating_add(if is_keyed { instances } else { 1 }).saturating_add(1);
        let chunks = queued.saturating_add(early_samples).saturating_add(reassemblies).saturating_add(1);
        Self {
            chunks: ChunksSize::new(chunks, sample_bytes),
            entries: Entries::room_for(queued).saturating_add(if is_keyed { instances } else { 0 }),
            instances: InstancesSize { instances, writers: matches },
            is_keyed,
            assemblies: AssembliesSize::new(reassemblies, sample_bytes),
            matches,
            listed: early_samples.next_power_of_two(),
        }
    }

    /// The memory of matched writers.
    pub(super) fn memories(&self) -> Vec<ProxyMemory> {
        let mut memories = Vec::with_capacity(self.matches);
        memories.extend((0..self.matches).map(|_| ProxyMemory::reserved(self.listed)));
        memories
    }

    /// Writers that are remembered after they are unmatched.
    pub(super) fn departed(&self) -> usize {
        self.matches.saturating_mul(4).max(1)
    }

    /// Sets of an ACKNACK beside the first.
    pub(super) fn sets(&self) -> usize {
        self.listed / SET_SAMPLES + 1
    }

    /// Sets of missing fragments that are requested at a time.
    pub(super) fn fragment_sets(&self) -> usize {
        self.assemblies.samples.saturating_mul(NACK_FRAG_SETS_MAX + 1)
    }

    /// Memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let memory = size_of::<ProxyMemory>().saturating_add(ProxyMemory::bytes(self.listed));
        let of_match = size_of::<WriterProxy>().saturating_add(memory);
        let requested = (self.fragment_sets())
            .saturating_mul(size_of::<(SequenceNumber, FragmentNumberSet)>())
            .saturating_add(self.assemblies.samples * size_of::<SequenceNumber>());
        (self.chunks.bytes())
            .saturating_add(Entries::bytes(self.entries))
            .saturating_add(if self.is_keyed {
                self.instances.bytes()
            } else {
                self.instances.unkeyed_bytes()
            })
            .saturating_add(self.assemblies.bytes())
            .saturating_add(self.matches.saturating_mul(of_match))
            .saturating_add(GuidIndex::bytes(self.matches))
            .saturating_add(RefusedWriters::bytes(self.matches))
            .saturating_add(requested)
            .saturating_add(self.sets() * size_of::<SequenceNumberSet>())
            .saturating_add(WriterMemory::<Position, DEPARTED_WRITERS_MAX>::bytes(self.departed()))
            .saturating_add(WriterMemory::<SequenceNumber, UNMATCHED_WRITERS_MAX>::bytes(
                UNMATCHED_WRITERS_MAX,
            ))
            .saturating_add(WriterMemory::<(), UNMATCHED_WRITERS_MAX>::bytes(UNMATCHED_WRITERS_MAX))
    }
}

impl ReaderCore {
    /// Memory of a reader with a limits table, in bytes, as allocated: the cache, the instances, samples in fragments,
    /// and the room for matched writers. What policies take is not in it.
    pub fn allocated(&self) -> usize {
        let spare = self.spare.iter().map(ProxyMemory::allocated).sum::<usize>();
        let used = self.writers.list.iter().map(WriterProxy::reserved).sum::<usize>();
        self.delivery.cache.allocated()
            + self.fragments.allocated()
            + self.writers.list.capacity() * size_of::<WriterProxy>()
            + self.writers.places.allocated()
            + self.delivery.refused.allocated()
            + spare
            + used
            + self.spare.capacity() * size_of::<ProxyMemory>()
            + self.departed.memory()
            + self.unmatched.memory()
            + self.early_writers.memory()
            + self.more.capacity() * size_of::<SequenceNumberSet>()
    }
}

/// Samples that a set in an ACKNACK spans.
const SET_SAMPLES: usize = 256;
