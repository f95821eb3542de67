//! The instances that a reader knows (DDS 1.4 §2.2.2.5.1): who writes them, whether they are alive, and which
//! of their samples wait.

use std::hash::BuildHasherDefault;

use hashbrown::HashMap;
use weir_wire::Guid;

use super::cache::InstanceState;
use crate::config;
use crate::key_hasher::KeyHasher;

/// One instance.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) key: Option<[u8; 16]>,
    pub(super) state: InstanceState,
    pub(super) disposed_generation: u32,
    pub(super) no_writers_generation: u32,
    /// The access that showed it first since it was (re)born; 0 before.
    pub(super) viewed_by: u64,
    /// Position of its oldest and newest sample in the cache, when `count` is not 0.
    pub(super) oldest: u64,
    pub(super) newest: u64,
    pub(super) count: usize,
    /// A payload that holds the key alone, when it is kept.
    pub(super) key_payload: Option<Box<[u8]>>,
    writer: Option<Guid>,
    more_writers: Vec<Guid>,
}

impl Instance {
    fn new(key: Option<[u8; 16]>) -> Self {
        Self {
            key,
            state: InstanceState::Alive,
            disposed_generation: 0,
            no_writers_generation: 0,
            viewed_by: 0,
            oldest: 0,
            newest: 0,
            count: 0,
            key_payload: None,
            writer: None,
            more_writers: Vec::new(),
        }
    }

    /// A sample of `writer` arrived: the instance is alive, perhaps again.
    #[inline]
    pub(super) fn written_by(&mut self, writer: Guid) {
        if self.writer != Some(writer) {
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
    pub(super) fn disposed_by(&mut self, writer: Guid) {
        if self.writer != Some(writer) {
            self.add_writer(writer);
        }
        self.state = InstanceState::NotAliveDisposed;
    }

    /// `writer` does not write the instance any more. Whether it was the last one of a living instance.
    pub(super) fn left_by(&mut self, writer: Guid) -> bool {
        self.more_writers.retain(|other| *other != writer);
        if self.writer == Some(writer) {
            self.writer = self.more_writers.pop();
        }
        let is_orphan = self.writer.is_none() && self.state == InstanceState::Alive;
        if is_orphan {
            self.state = InstanceState::NotAliveNoWriters;
        }
        is_orphan
    }

    fn add_writer(&mut self, writer: Guid) {
        match self.writer {
            None => self.writer = Some(writer),
            Some(_) if self.more_writers.contains(&writer) => {}
            Some(_) => self.more_writers.push(writer),
        }
    }
}

/// All instances of a reader. Topics without a key have one.
#[derive(Debug)]
pub(super) struct Instances {
    list: Vec<Instance>,
    by_key: HashMap<[u8; 16], u32, BuildHasherDefault<KeyHasher>>,
    recent: Option<([u8; 16], u32)>,
}

impl Instances {
    pub(super) fn new(is_keyed: bool) -> Self {
        let list = if is_keyed { Vec::new() } else { vec![Instance::new(None)] };
        Self { list, by_key: HashMap::default(), recent: None }
    }

    /// The index of the instance with this key, which is made when it is new; `None` when there is no room.
    #[inline]
    pub(super) fn index(&mut self, key: Option<[u8; 16]>) -> Option<u32> {
        let Some(key) = key else { return Some(0) };
        if let Some((recent, index)) = self.recent
            && recent == key
        {
            return Some(index);
        }
        let index = match self.by_key.get(&key) {
            Some(index) => *index,
            None if self.list.len() >= config::INSTANCES_MAX => return None,
            None => {
                let index = self.list.len() as u32;
                self.list.push(Instance::new(Some(key)));
                self.by_key.insert(key, index);
                index
            }
        };
        self.recent = Some((key, index));
        Some(index)
    }

    /// The index of the instance with this key, if it is known.
    pub(super) fn find(&self, key: &[u8; 16]) -> Option<u32> {
        self.by_key.get(key).copied()
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

    pub(super) fn len(&self) -> u32 {
        self.list.len() as u32
    }
}
