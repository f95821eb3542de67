//! What policies have a reader do later: deliver the last value of a burst (TIME_BASED_FILTER, DDS 1.4, 2.2.3.12), and
//! remove samples of instances that have ended (READER_DATA_LIFECYCLE, 2.2.3.22).

use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use weir_wire::{Guid, SequenceNumber};

use super::states::InstanceState;
use super::stored::StoredSample;
use crate::instance_deadlines::finite;
use crate::key_hasher::Key;
use crate::qos::ReaderDataLifecycle;
use crate::time::Time;

/// The last value of an instance within the minimum separation: at most one for each instance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Postponed {
    pub(super) writer: Guid,
    pub(super) sn: SequenceNumber,
    pub(super) stored: StoredSample,
    /// When it arrived.
    pub(super) arrived_at: Time,
    due_at: Time,
}

/// The values to be delivered later, by instance.
#[derive(Debug, Default)]
pub(super) struct PostponedValues {
    values: BTreeMap<u32, Postponed>,
    queue: BTreeSet<(Time, u32)>,
}

impl PostponedValues {
    /// Keeps the value until `due_at`. Returns the one that it replaces.
    pub(super) fn add(
        &mut self,
        index: u32,
        due_at: Time,
        arrived_at: Time,
        (writer, sn, stored): (Guid, SequenceNumber, StoredSample),
    ) -> Option<Postponed> {
        let replaced = self.take(index);
        self.values.insert(index, Postponed { writer, sn, stored, arrived_at, due_at });
        self.queue.insert((due_at, index));
        replaced
    }

    /// Takes the value of an instance.
    pub(super) fn take(&mut self, index: u32) -> Option<Postponed> {
        let value = self.values.remove(&index)?;
        self.queue.remove(&(value.due_at, index));
        Some(value)
    }

    /// Takes a value that is due, with its instance.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(u32, Postponed)> {
        let (_, index) = *self.queue.first().filter(|(at, _)| *at <= now)?;
        self.take(index).map(|value| (index, value))
    }

    /// Returns whether there is a value of an instance, and it is of this writer.
    pub(super) fn is_of(&self, index: u32, writer: Guid) -> bool {
        self.values.get(&index).is_some_and(|value| value.writer == writer)
    }

    /// Makes all values due.
    pub(super) fn make_due(&mut self, now: Time) {
        self.values.values_mut().for_each(|value| value.due_at = now);
        self.queue = self.values.keys().map(|index| (now, *index)).collect();
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The samples, by their writers and numbers.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Guid, SequenceNumber)> + '_ {
        self.values.values().map(|value| (value.writer, value.sn))
    }

    /// The stored samples, which may be moved.
    pub(super) fn stored_mut(&mut self) -> impl Iterator<Item = &mut StoredSample> {
        self.values.values_mut().map(|value| &mut value.stored)
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.values.len() * size_of::<(u32, Postponed, Time, u32)>()
    }
}

/// When the samples of instances that have ended are removed.
#[derive(Debug)]
pub(super) struct Purges {
    lifecycle: ReaderDataLifecycle,
    instances: BTreeMap<u32, Ended>,
    /// At most one entry for each instance, at or before its time.
    queue: BTreeSet<(Time, u32)>,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    /// Differs from the key of the instance once the index belongs to another one.
    key: Key,
    state: InstanceState,
    at: Time,
}

impl Purges {
    /// `None`: nothing is removed.
    pub(super) fn new(lifecycle: ReaderDataLifecycle) -> Option<Self> {
        let delays = [lifecycle.autopurge_nowriter_samples_delay, lifecycle.autopurge_disposed_samples_delay];
        let is_used = delays.iter().any(|delay| finite(*delay).is_some());
        is_used.then(|| Self { lifecycle, instances: BTreeMap::new(), queue: BTreeSet::new() })
    }

    /// Notes the state of an instance that may have changed.
    pub(super) fn note(&mut self, now: Time, (index, key): (u32, Key), state: InstanceState) {
        let delay = match state {
            InstanceState::Alive => Duration::MAX,
            InstanceState::NotAliveDisposed => self.lifecycle.autopurge_disposed_samples_delay,
            InstanceState::NotAliveNoWriters => self.lifecycle.autopurge_nowriter_samples_delay,
        };
        let known = self.instances.get(&index).copied();
        if known.is_some_and(|ended| ended.key == key && ended.state == state) {
            return;
        }
        if let Some(ended) = self.instances.remove(&index) {
            self.queue.remove(&(ended.at, index));
        }
        if let Some(delay) = finite(delay) {
            let at = now + delay;
            self.instances.insert(index, Ended { key, state, at });
            self.queue.insert((at, index));
        }
    }

    /// Takes an instance whose samples are to be removed, and its key.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(u32, Key)> {
        let (at, index) = *self.queue.first().filter(|(at, _)| *at <= now)?;
        self.queue.remove(&(at, index));
        self.instances.remove(&index).map(|ended| (index, ended.key))
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.instances.len() * size_of::<(u32, Ended, Time, u32)>()
    }
}
