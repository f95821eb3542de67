//! Writers that are no longer matched, and how far they were read.
//!
//! A writer whose lease ends because its packets were lost for a while is matched again later, under the same GUID.
//! Without a memory the reader would begin at the first sample and deliver everything that the writer still keeps a
//! second time. A GUID names one writer for ever (RTPS 2.5 §8.2.4.2), so the reader continues where it was.

use std::collections::VecDeque;

use weir_wire::{Guid, Heartbeat, SequenceNumber};

use super::ReaderCore;
use crate::config;
use crate::time::Time;

/// How far a writer was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departed {
    pub(super) guid: Guid,
    /// The next sample to deliver.
    pub(super) expected: SequenceNumber,
    /// Counts of the last ACKNACK and NACK_FRAG to it: lower ones would be taken for repetitions.
    pub(super) count: u32,
    pub(super) fragment_count: u32,
    /// Count of its last HEARTBEAT, and when it arrived.
    pub(super) last_heartbeat: Option<(u32, Time)>,
}

/// The writers that departed last, at most [`config::DEPARTED_WRITERS_MAX`].
#[derive(Debug, Default)]
pub(super) struct DepartedWriters {
    /// Oldest first.
    list: VecDeque<Departed>,
}

impl DepartedWriters {
    /// Adds a writer. Returns whether another one was forgotten for it.
    pub(super) fn remember(&mut self, departed: Departed) -> bool {
        let is_full = self.list.len() >= config::DEPARTED_WRITERS_MAX;
        if is_full {
            self.list.pop_front();
        }
        self.list.push_back(departed);
        is_full
    }

    /// Removes and returns a writer.
    pub(super) fn recall(&mut self, guid: Guid) -> Option<Departed> {
        let index = self.list.iter().position(|departed| departed.guid == guid)?;
        self.list.remove(index)
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<Departed>()
    }
}

impl ReaderCore {
    /// Lets go of a matched writer, and of its samples that were held back or put together.
    pub(super) fn depart(&mut self, index: usize) {
        let mut proxy = self.proxies.remove(index);
        let (guid, cache) = (proxy.guid, &mut self.cache);
        self.assemblies.retain(guid, cache.chunks_mut(), |_| false);
        proxy.take_held().for_each(|held| cache.drop_held(held));
        if self.config.remembers_writers
            && let Some(departed) = proxy.departed()
        {
            self.counters.writers_forgotten += u64::from(self.departed.remember(departed));
        }
    }

    /// The first HEARTBEAT of a writer that was matched before says that it has written less than was read of it: it
    /// started anew under its old GUID, as devices do whose GUID is fixed. It is a new writer then.
    pub(super) fn check_continuity(&mut self, index: usize, heartbeat: &Heartbeat) {
        let (proxy, cache) = (&mut self.proxies[index], &mut self.cache);
        if proxy.has_started_anew(heartbeat) {
            self.assemblies.retain(proxy.guid, cache.chunks_mut(), |_| false);
            proxy.take_held().for_each(|held| cache.drop_held(held));
            proxy.read_from_start();
            self.counters.writers_restarted += 1;
        }
    }
}
