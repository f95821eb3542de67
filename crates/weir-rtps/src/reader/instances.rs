//! The instances that a reader knows (DDS 1.4 §2.2.2.5.1): who writes them, whether they are alive, and which
//! of their samples wait.

use hashbrown::HashTable;
use weir_wire::Guid;

use super::ReaderConfig;
use super::cache::InstanceState;
use super::index_set::IndexSet;
use crate::config;
use crate::key_hasher::{Key, KeyHasher};
use crate::writer::ChangeKind;

/// One instance.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) key: Key,
    /// The access that showed it first since it was (re)born; 0 before.
    pub(super) viewed_by: u64,
    /// Position of its oldest and newest sample in the cache, when `count` is not 0.
    pub(super) oldest: u64,
    pub(super) newest: u64,
    /// Its samples, and how many of them have no data but tell of a change.
    pub(super) count: u32,
    pub(super) news: u32,
    pub(super) state: InstanceState,
    /// Whether the table knows it: otherwise its place is vacant.
    is_known: bool,
    /// [`Guid::UNKNOWN`]: none.
    writer: Guid,
    pub(super) disposed_generation: u32,
    pub(super) no_writers_generation: u32,
    /// A payload that holds the key alone, when it is kept.
    pub(super) key_payload: Option<Box<[u8]>>,
    more_writers: Box<[Guid]>,
}

impl Instance {
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
            news: 0,
            key_payload: None,
            writer: Guid::UNKNOWN,
            more_writers: Box::default(),
        }
    }

    /// `writer` wrote the instance, or ended it. Whether there is something to tell: a value, or another state.
    #[inline(always)]
    pub(super) fn change(&mut self, kind: ChangeKind, writer: Guid) -> bool {
        if kind != ChangeKind::Alive {
            return self.end(kind, writer);
        }
        self.written_by(writer);
        true
    }

    /// `writer` ended the instance. Whether it has another state now.
    fn end(&mut self, kind: ChangeKind, writer: Guid) -> bool {
        let before = self.state;
        match kind {
            ChangeKind::Alive => {}
            ChangeKind::Disposed => self.disposed_by(writer),
            ChangeKind::Unregistered => _ = self.left_by(writer),
            ChangeKind::DisposedUnregistered => {
                self.disposed_by(writer);
                self.left_by(writer);
            }
        }
        self.state != before
    }

    /// A sample of `writer` arrived: the instance is alive, perhaps again.
    #[inline(always)]
    fn written_by(&mut self, writer: Guid) {
        if self.writer != writer {
            self.add_writer(writer);
        }
        match self.state {
            InstanceState::Alive => return,
            InstanceState::NotAliveDisposed => self.disposed_generation += 1,
            InstanceState::NotAliveNoWriters => self.no_writers_generation += 1,
        }
        self.state = InstanceState::Alive;
        self.viewed_by = 0;
    }

    /// `writer` disposed the instance.
    fn disposed_by(&mut self, writer: Guid) {
        if self.writer != writer {
            self.add_writer(writer);
        }
        self.state = InstanceState::NotAliveDisposed;
    }

    /// `writer` does not write the instance any more. Whether it was the last one of a living instance.
    pub(super) fn left_by(&mut self, writer: Guid) -> bool {
        if self.more_writers.contains(&writer) {
            self.more_writers = self.more_writers.iter().filter(|other| **other != writer).copied().collect();
        }
        if self.writer == writer {
            self.writer = self.more_writers.last().copied().unwrap_or(Guid::UNKNOWN);
            self.more_writers =
                self.more_writers.iter().filter(|other| **other != self.writer).copied().collect();
        }
        let is_orphan = self.writer == Guid::UNKNOWN && self.state == InstanceState::Alive;
        if is_orphan {
            self.state = InstanceState::NotAliveNoWriters;
        }
        is_orphan
    }

    fn add_writer(&mut self, writer: Guid) {
        if self.writer == Guid::UNKNOWN {
            self.writer = writer;
        } else if !self.more_writers.contains(&writer) {
            self.more_writers = self.more_writers.iter().copied().chain([writer]).collect();
        }
    }

    /// Nobody writes it, and all its samples were taken: what comes later is an instance that was never seen (DDS 1.4
    /// §2.2.2.5.1.8).
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.state != InstanceState::Alive && self.count == 0 && self.writer == Guid::UNKNOWN
    }
}

/// All instances of a reader. Topics without a key have one.
#[derive(Debug)]
pub(super) struct Instances {
    is_keyed: bool,
    max: usize,
    hasher: KeyHasher,
    list: Vec<Instance>,
    /// Places in `list` of instances that are over.
    vacant: Vec<u32>,
    table: HashTable<u32>,
    recent: Option<(Key, u32)>,
    /// Whether the one before `recent` had the place before it. Who writes all instances in turn does it in the same order
    /// again and again, and places are given in that order: the next one is guessed then, which spares the table.
    is_in_order: bool,
    /// Those with samples.
    occupied: IndexSet,
    /// The one that [`Instances::next`] found last: it may be over when the application asks for what follows.
    last_next: Option<(Key, u32)>,
}

impl Instances {
    pub(super) fn new(config: &ReaderConfig) -> Self {
        let is_keyed = config.key_of.is_some();
        Self {
            is_keyed,
            max: config.max_instances.map_or(config::INSTANCES_MAX, |max| max as usize),
            hasher: KeyHasher::new(config.hash_seed),
            list: if is_keyed { Vec::new() } else { vec![Instance::new(Key::default())] },
            vacant: Vec::new(),
            table: HashTable::new(),
            recent: None,
            is_in_order: false,
            occupied: IndexSet::default(),
            last_next: None,
        }
    }

    #[inline]
    pub(super) fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    /// Whether another instance may be one too many.
    #[inline]
    pub(super) fn is_nearly_full(&self) -> bool {
        self.table.len() >= self.max
    }

    /// The instance of samples with this key, if it is known.
    pub(super) fn lookup(&self, key: Option<Key>) -> Option<u32> {
        self.find(key.filter(|_| self.is_keyed).unwrap_or_default())
    }

    /// Whether an instance with this key is known, or may still be made.
    #[inline]
    pub(super) fn has_room(&self, key: Option<Key>) -> bool {
        let Some(key) = key.filter(|_| self.is_keyed) else { return true };
        self.table.len() < self.max || self.find(key).is_some()
    }

    /// The index of the instance with this key, which is made when it is new; `None` when there is no room. A topic
    /// without a key has one instance, whatever key comes along.
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
                self.list[index as usize] = Instance::new(key);
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

    /// Forgets an instance that is over, and returns the key that was kept.
    pub(super) fn remove(&mut self, index: u32) -> Option<Box<[u8]>> {
        let instance = &mut self.list[index as usize];
        let key_payload = instance.key_payload.take();
        if let Ok(place) = self.table.find_entry(self.hasher.hash(instance.key), |other| *other == index) {
            place.remove();
            instance.is_known = false;
            self.vacant.push(index);
        }
        self.recent = None;
        key_payload
    }

    /// The index of the instance with this key, if it is known.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<u32> {
        if !self.is_keyed {
            return (key == Key::default()).then_some(0);
        }
        let list = &self.list;
        self.table.find(self.hasher.hash(key), |index| list[*index as usize].key == key).copied()
    }

    /// The instance at an index that [`Instances::index`] gave.
    #[inline]
    pub(super) fn get(&self, index: u32) -> &Instance {
        &self.list[index as usize]
    }

    /// The instance at an index that [`Instances::index`] gave.
    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut Instance {
        &mut self.list[index as usize]
    }

    /// One more than the largest index.
    pub(super) fn end(&self) -> u32 {
        self.list.len() as u32
    }

    /// Takes note that an instance has samples now, or has none any more.
    #[inline]
    pub(super) fn set_occupied(&mut self, index: u32, is_occupied: bool) {
        if self.is_keyed {
            self.occupied.set(index, is_occupied);
        }
    }

    /// The first instance with samples behind the one with this key that `is_meant`. When that one is unknown, the
    /// first of all, unless it was found by this method last.
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

    /// Bytes of memory, kept keys not included.
    pub(super) fn memory(&self) -> usize {
        self.table.allocation_size() + self.list.capacity() * size_of::<Instance>() + self.occupied.memory()
    }
}

#[cfg(test)]
mod tests;
