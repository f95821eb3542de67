//! The instances of a reader (DDS 1.4, 2.2.2.5.1): their writers, their state, and their samples in
//! the cache.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashTable;
use weir_wire::Guid;

use super::config::{KeyPayloadOf, ReaderConfig};
use super::digests::Digests;
use super::index_set::IndexSet;
use super::registrations::Registrations;
use super::states::InstanceState;
use crate::config;
use crate::key_hasher::{Key, KeyHasher, table_bytes};
use crate::writer::ChangeKind;

/// One instance.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) key: Key,
    /// The first access since it was created or became alive again; 0 before that.
    pub(super) viewed_by: u64,
    /// Positions of its oldest and newest sample in the cache, if `count` is not 0.
    pub(super) oldest: u64,
    pub(super) newest: u64,
    /// Number of its samples.
    pub(super) count: u32,
    /// How many of them report a state change instead of a value.
    pub(super) state_changes: u32,
    pub(super) state: InstanceState,
    /// Whether it is in the table. Otherwise its index is vacant.
    is_known: bool,
    /// The first writer; [`Guid::UNKNOWN`] if there is none.
    writer: Guid,
    pub(super) disposed_generation: u32,
    pub(super) no_writers_generation: u32,
    /// A payload that holds only the key, if it is kept.
    pub(super) key_payload: Option<Box<[u8]>>,
    more_writers: Vec<Guid>,
}

impl Instance {
    /// Reserves room for so many writers.
    fn vacant(writers: usize) -> Self {
        let more_writers = Vec::with_capacity(writers);
        Self { is_known: false, more_writers, ..Self::new(Key::default()) }
    }

    fn new(key: Key) -> Self {
        Self {
            key,
            state: InstanceState::Alive,
            is_known: true,
            disposed_generation: 0,
            no_writers_generation: 0,
            viewed_by: 0,
            oldest: 0,
            newest: 0,
            count: 0,
            state_changes: 0,
            key_payload: None,
            writer: Guid::UNKNOWN,
            more_writers: Vec::new(),
        }
    }

    /// Number of its samples that are values.
    #[inline]
    pub(super) fn values(&self) -> usize {
        (self.count - self.state_changes) as usize
    }

    /// Records that `writer` wrote or ended the instance. Returns whether there is something to
    /// report: a value, or another state.
    #[inline(always)]
    pub(super) fn change(&mut self, kind: ChangeKind, writer: Guid, place: Place<'_>) -> bool {
        if kind != ChangeKind::Alive {
            return self.end(kind, writer, place);
        }
        self.written_by(writer, place);
        true
    }

    /// Records that `writer` writes the instance, without a value.
    pub(super) fn register(&mut self, writer: Guid, place: Place<'_>) {
        if self.writer != writer {
            self.add_writer(writer, place);
        }
    }

    /// Records that `writer` ended the instance. Returns whether its state has changed.
    fn end(&mut self, kind: ChangeKind, writer: Guid, (index, registrations): Place<'_>) -> bool {
        let before = self.state;
        if matches!(kind, ChangeKind::Disposed | ChangeKind::DisposedUnregistered) {
            if self.writer != writer {
                self.add_writer(writer, (index, registrations));
            }
            self.state = InstanceState::NotAliveDisposed;
        }
        if matches!(kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered) {
            if self.is_written_by(writer) {
                registrations.remove(writer, index);
            }
            self.left_by(writer);
        }
        self.state != before
    }

    /// Records a value from `writer`: the instance is alive, perhaps again.
    #[inline(always)]
    fn written_by(&mut self, writer: Guid, place: Place<'_>) {
        if self.writer != writer {
            self.add_writer(writer, place);
        }
        match self.state {
            InstanceState::Alive => return,
            InstanceState::NotAliveDisposed => self.disposed_generation += 1,
            InstanceState::NotAliveNoWriters => self.no_writers_generation += 1,
        }
        self.state = InstanceState::Alive;
        self.viewed_by = 0;
    }

    /// Records that `writer` no longer writes the instance. Returns whether it was the last writer
    /// of a live instance. The caller removes it from the [`Registrations`].
    pub(super) fn left_by(&mut self, writer: Guid) -> bool {
        self.more_writers.retain(|other| *other != writer);
        if self.writer == writer {
            self.writer = self.more_writers.pop().unwrap_or(Guid::UNKNOWN);
        }
        let is_orphan = self.writer == Guid::UNKNOWN && self.state == InstanceState::Alive;
        if is_orphan {
            self.state = InstanceState::NotAliveNoWriters;
        }
        is_orphan
    }

    /// Whether this writer writes it.
    pub(super) fn is_written_by(&self, writer: Guid) -> bool {
        self.writer == writer || self.more_writers.contains(&writer)
    }

    fn add_writer(&mut self, writer: Guid, (index, registrations): Place<'_>) {
        if self.writer == Guid::UNKNOWN {
            self.writer = writer;
        } else if !self.more_writers.contains(&writer) {
            // Most instances have few writers.
            if self.more_writers.len() == self.more_writers.capacity() {
                self.more_writers.reserve_exact(1);
            }
            self.more_writers.push(writer);
        } else {
            return;
        }
        registrations.add(writer, index);
    }

    /// Whether it has ended: it is not alive, has no writers, and all its samples were taken. Later
    /// samples create a new instance (DDS 1.4, 2.2.2.5.1.8).
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.state != InstanceState::Alive && self.count == 0 && self.writer == Guid::UNKNOWN
    }
}

/// The index of an instance, and where its writers are recorded.
pub(super) type Place<'a> = (u32, &'a mut Registrations);

/// The instances of a reader, by index. A topic without a key has one.
#[derive(Debug)]
pub(super) struct Instances {
    pub(super) is_keyed: bool,
    /// Maximum number of instances.
    max: usize,
    hasher: KeyHasher,
    list: Vec<Instance>,
    pub(super) registrations: Registrations,
    /// Indices of instances that have ended.
    vacant: Vec<u32>,
    table: HashTable<u32>,
    /// The instance that was last looked up.
    recent: Option<(Key, u32)>,
    /// Whether the instance looked up before `recent` has the index before it. A writer that writes
    /// all instances in turn usually repeats the order in which they were created. The next index
    /// is then tried before the table.
    is_in_order: bool,
    /// Instances with samples.
    occupied: IndexSet,
    /// The last result of [`Instances::next`]. It may have ended when the application asks for the
    /// one behind it.
    last_next: Option<(Key, u32)>,
    /// Bytes of all key payloads.
    key_bytes: usize,
    digests: Digests,
}

/// What the instances of a reader reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstancesSize {
    pub(super) instances: usize,
    pub(super) writers: usize,
}

impl InstancesSize {
    /// Room in the hash table: at more than half of it, removed instances could make it grow.
    fn table(&self) -> usize {
        self.instances.saturating_mul(2).saturating_add(2)
    }

    /// Memory for a topic without a key, in bytes.
    pub(super) fn unkeyed_bytes(&self) -> usize {
        size_of::<Instance>()
            .saturating_add(Registrations::bytes(self.writers, 1))
            .saturating_add(self.writers.saturating_mul(size_of::<Guid>()))
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        table_bytes(self.table())
            .saturating_add(self.instances.saturating_mul(size_of::<Instance>() + size_of::<u32>()))
            .saturating_add(self.instances.saturating_mul(self.writers).saturating_mul(size_of::<Guid>()))
            .saturating_add(IndexSet::bytes(self.instances))
            .saturating_add(Registrations::bytes(self.writers, self.instances))
    }
}

impl Instances {
    pub(super) fn new(config: &ReaderConfig, size: Option<InstancesSize>) -> Self {
        let (is_keyed, hasher) = (config.key_of.is_some(), KeyHasher::new(config.hash_seed));
        let mut instances = Self {
            is_keyed,
            max: config.max_instances.map_or(config::INSTANCES_MAX, |max| max as usize),
            hasher,
            list: if is_keyed { Vec::new() } else { vec![Instance::new(Key::default())] },
            registrations: Registrations::default(),
            vacant: Vec::new(),
            table: HashTable::new(),
            recent: None,
            is_in_order: false,
            occupied: IndexSet::default(),
            last_next: None,
            key_bytes: 0,
            digests: Digests::new(config, hasher),
        };
        match size {
            Some(size) if is_keyed => instances.reserve(size),
            Some(size) => {
                instances.registrations = Registrations::fixed(size.writers, 1);
                instances.list[0].more_writers.reserve_exact(size.writers);
            }
            None => {}
        }
        instances
    }

    fn reserve(&mut self, size: InstancesSize) {
        let (hasher, list) = (self.hasher, &self.list);
        self.table.reserve(size.table(), |index: &u32| hasher.hash(list[*index as usize].key));
        self.list.reserve_exact(size.instances);
        self.vacant.reserve_exact(size.instances);
        self.occupied.reserve(size.instances);
        // All exist, with room for their writers, and are vacant. The first is taken first.
        self.list.extend((0..size.instances).map(|_| Instance::vacant(size.writers)));
        self.vacant.extend((0..size.instances as u32).rev());
        self.registrations = Registrations::fixed(size.writers, size.instances);
    }

    /// Memory as allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        let more: usize = self.list.iter().map(|it| it.more_writers.capacity() * size_of::<Guid>()).sum();
        self.memory() + self.vacant.capacity() * size_of::<u32>() + more
    }

    /// Whether a new instance may exceed the limit.
    #[inline]
    pub(super) fn is_nearly_full(&self) -> bool {
        self.table.len() >= self.max
    }

    /// The key of the instance of samples with this key.
    pub(super) fn key_of(&self, key: Option<Key>) -> Key {
        key.filter(|_| self.is_keyed).unwrap_or_default()
    }

    /// The instance of samples with this key, if it exists.
    pub(super) fn lookup(&self, key: Option<Key>) -> Option<u32> {
        self.find(self.key_of(key))
    }

    /// Whether an instance with this key exists or may be created.
    #[inline]
    pub(super) fn has_room(&self, key: Option<Key>) -> bool {
        let Some(key) = key.filter(|_| self.is_keyed) else { return true };
        self.table.len() < self.max || self.find(key).is_some()
    }

    /// The index of the instance with this key, which is created if it is new. Returns `None` if
    /// there is no room. A topic without a key has one instance, whatever key a sample has.
    #[inline(always)]
    pub(super) fn index(&mut self, key: Option<Key>) -> Option<u32> {
        if !self.is_keyed {
            return Some(0);
        }
        let Some(key) = key else { return Some(0) };
        let Some((recent, before)) = self.recent else { return self.index_by_table(key) };
        if recent == key {
            return Some(before);
        }
        if self.is_in_order
            && let Some(next) = self.list.get(before as usize + 1)
            && next.key == key
            && next.is_known
        {
            self.recent = Some((key, before + 1));
            return Some(before + 1);
        }
        self.index_by_table(key)
    }

    #[inline(never)]
    fn index_by_table(&mut self, key: Key) -> Option<u32> {
        let index = match self.find(key) {
            Some(index) => index,
            None if self.table.len() >= self.max => return None,
            None => self.add(key),
        };
        self.is_in_order = self.recent.is_some_and(|(_, before)| before + 1 == index);
        self.recent = Some((key, index));
        Some(index)
    }

    fn add(&mut self, key: Key) -> u32 {
        let index = match self.vacant.pop() {
            Some(index) => {
                let place = &mut self.list[index as usize];
                let mut more_writers = core::mem::take(&mut place.more_writers);
                more_writers.clear();
                *place = Instance { more_writers, ..Instance::new(key) };
                index
            }
            None => {
                self.list.push(Instance::new(key));
                self.list.len() as u32 - 1
            }
        };
        let (hasher, list) = (self.hasher, &self.list);
        self.table.insert_unique(hasher.hash(key), index, |index| hasher.hash(list[*index as usize].key));
        index
    }

    /// Removes an instance if it has ended.
    #[inline]
    pub(super) fn forget_if_over(&mut self, index: u32) {
        if self.get(index).is_over() {
            self.forget(index);
        }
    }

    /// Removes an instance that has ended.
    #[cold]
    pub(super) fn forget(&mut self, index: u32) {
        let instance = &mut self.list[index as usize];
        if let Some(key) = instance.key_payload.take() {
            self.key_bytes -= key.len();
            self.digests.note(index, &key, false);
        }
        if let Ok(place) = self.table.find_entry(self.hasher.hash(instance.key), |other| *other == index) {
            place.remove();
            instance.is_known = false;
            self.vacant.push(index);
        }
        self.recent = None;
    }

    /// Keeps the key of an instance, from the payload of a sample.
    pub(super) fn keep_key_payload(
        &mut self,
        index: u32,
        payload: &[u8],
        kind: ChangeKind,
        key_payload_of: KeyPayloadOf,
    ) {
        if payload.is_empty() || self.key_bytes >= config::INSTANCE_KEYS_MAX_BYTES {
            return;
        }
        let key = key_payload_of(payload, kind != ChangeKind::Alive);
        if let Some(key) = &key {
            self.key_bytes += key.len();
            self.digests.note(index, key, true);
        }
        self.list[index as usize].key_payload = key;
    }

    /// The key of the instance that a writer in XCDR1 names by a KEY_HASH that cannot be converted, if it is known.
    pub(super) fn key_of_digest(&self, digest: [u8; 16]) -> Option<[u8; 16]> {
        if !self.digests.are_needed() {
            return Some(digest);
        }
        self.digests.find(digest).map(|index| self.get(index).key.to_bytes())
    }

    /// The instances that a writer writes and that have not ended.
    pub(super) fn alive(&self) -> impl Iterator<Item = u32> + '_ {
        let is_alive =
            |it: &Instance| it.is_known && it.state == InstanceState::Alive && it.writer != Guid::UNKNOWN;
        self.list.iter().zip(0..).filter(move |(instance, _)| is_alive(instance)).map(|(_, index)| index)
    }

    /// The index of the instance with this key, if it exists.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<u32> {
        if !self.is_keyed {
            return (key == Key::default()).then_some(0);
        }
        let list = &self.list;
        self.table.find(self.hasher.hash(key), |index| list[*index as usize].key == key).copied()
    }

    /// The instance with an index from [`Instances::index`].
    #[inline]
    pub(super) fn get(&self, index: u32) -> &Instance {
        &self.list[index as usize]
    }

    /// The instance with an index from [`Instances::index`].
    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut Instance {
        &mut self.list[index as usize]
    }

    /// The instance with an index from [`Instances::index`], and where its writers are recorded.
    #[inline]
    pub(super) fn get_to_change(&mut self, index: u32) -> (&mut Instance, &mut Registrations) {
        (&mut self.list[index as usize], &mut self.registrations)
    }

    /// One more than the highest index.
    pub(super) fn end(&self) -> u32 {
        self.list.len() as u32
    }

    /// Records whether an instance has samples.
    #[inline]
    pub(super) fn set_occupied(&mut self, index: u32, is_occupied: bool) {
        if self.is_keyed {
            self.occupied.set(index, is_occupied);
        }
    }

    /// The first instance behind the one with this key that has samples and `is_meant`. If that one
    /// does not exist, and was not the last result of this method, the search starts at the
    /// beginning.
    pub(super) fn next(
        &mut self,
        after: Option<Key>,
        is_meant: impl Fn(u32, &Instance) -> bool,
    ) -> Option<u32> {
        if !self.is_keyed {
            return (after.is_none() && self.list[0].count > 0 && is_meant(0, &self.list[0])).then_some(0);
        }
        let last_next = self.last_next.filter(|(key, _)| Some(*key) == after);
        let behind = after.and_then(|key| self.find(key)).or(last_next.map(|(_, index)| index));
        let mut next = self.occupied.first_from(behind.map_or(0, |index| index + 1));
        while let Some(index) = next.filter(|index| !is_meant(*index, &self.list[*index as usize])) {
            next = self.occupied.first_from(index + 1);
        }
        if let Some(index) = next {
            self.last_next = Some((self.list[index as usize].key, index));
        }
        next
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.table.allocation_size()
            + self.list.capacity() * size_of::<Instance>()
            + self.occupied.memory()
            + self.registrations.memory()
            + self.key_bytes
            + self.digests.memory()
    }
}

#[cfg(test)]
mod tests;
