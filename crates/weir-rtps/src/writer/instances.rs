//! The instances of a writer: which of their samples are kept (KEEP_LAST; DDS 1.4, 2.2.3.18), and
//! how many (RESOURCE_LIMITS; DDS 1.4, 2.2.3.19).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use hashbrown::HashTable;
use weir_wire::SequenceNumber;

use super::refusal::WriteRefused;
use super::settings::WriterConfig;
use crate::config;
use crate::history::History as Store;
use crate::instance_deadlines::finite;
use crate::key_hasher::{KeyHasher, table_bytes};
use crate::limits::EndpointLimits;
use crate::qos::History;

/// One instance.
#[derive(Debug)]
struct Instance {
    key: [u8; 16],
    /// KEEP_LAST: the newest sample processed by [`Instances::replace`]. KEEP_ALL: the last that unregistered it. 0 if
    /// there is none.
    newest: SequenceNumber,
    /// Samples of the instance: KEEP_ALL, those in the history; KEEP_LAST, those that were not sent yet.
    count: u32,
    /// Written or registered since it was last unregistered.
    is_registered: bool,
}

/// The instances of one writer.
///
/// A KEEP_ALL writer replaces nothing, so it tracks instances only if their number or their samples
/// are limited.
#[derive(Debug)]
pub(super) struct Instances {
    depth: Option<usize>,
    is_keyed: bool,
    /// Every sample is admitted: instances do not matter and nothing is limited.
    is_open: bool,
    is_volatile: bool,
    /// Instances have deadlines.
    is_watched: bool,
    limits: Limits,
    hasher: KeyHasher,
    table: HashTable<u32>,
    list: Vec<Instance>,
    vacant: Vec<u32>,
    /// Registered instances.
    registered: usize,
    /// A write to an instance that is not registered is refused.
    asks_for_new: bool,
    /// For a depth above 1: the samples before the newest one, oldest first, by instance.
    earlier: Vec<VecDeque<SequenceNumber>>,
    /// KEEP_LAST: samples committed since the last [`Instances::replace`], with their instances.
    unsent: Vec<(u32, SequenceNumber)>,
    /// A replaced large sample that is still in transmission. It is removed after it was sent
    /// completely.
    spared: Option<SequenceNumber>,
    /// Replaced large samples that are still in transit, oldest first: at most [`config::IN_TRANSIT_MAX_BYTES`].
    in_transit: Vec<SequenceNumber>,
    /// Other samples were removed up to here.
    removed: SequenceNumber,
    /// KEEP_ALL: the samples in the history, with their instances.
    kept: VecDeque<(SequenceNumber, u32)>,
    /// Unregistered instances in order, each with the sample that unregistered it, and whether it
    /// was disposed as well.
    ended: VecDeque<(u32, SequenceNumber, bool)>,
}

/// The RESOURCE_LIMITS that concern instances.
#[derive(Debug, Clone, Copy)]
struct Limits {
    samples: usize,
    bytes: usize,
    instances: usize,
    per_instance: usize,
    /// The application limited the number of instances, so instances count until they are
    /// unregistered.
    are_instances_limited: bool,
    /// Instances in the table, unregistered ones included.
    listed: usize,
    /// Ended instances that are kept, see [`config::ENDED_INSTANCES_KEPT`].
    ended_kept: usize,
}

/// What the instances of a writer with a limits table reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstancesSize {
    /// Instances in the table; 0: none are tracked.
    listed: usize,
    /// KEEP_LAST: samples before the newest of an instance.
    earlier: usize,
    samples: usize,
}

impl InstancesSize {
    /// Returns the size for these limits. `depth`: of KEEP_LAST.
    pub(super) fn new(limits: &EndpointLimits, is_keyed: bool, depth: Option<usize>) -> Self {
        let listed = if is_keyed { limits.instances.saturating_mul(2) } else { 0 };
        let earlier = depth.filter(|depth| is_keyed && *depth > 1).map_or(0, |depth| depth + 1);
        Self { listed, earlier, samples: limits.samples.saturating_add(UNSENT_BESIDE) }
    }

    /// Room in the hash table: at more than half of it, removed instances could make it grow.
    fn table(&self) -> usize {
        self.listed.saturating_mul(2)
    }

    fn ended(&self) -> usize {
        self.listed.saturating_add(self.samples)
    }

    /// Returns the memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let Self { listed, earlier, samples } = *self;
        let of_earlier = if earlier == 0 {
            0
        } else {
            size_of::<VecDeque<SequenceNumber>>() + earlier.saturating_mul(size_of::<SequenceNumber>())
        };
        let of_instance = size_of::<Instance>() + size_of::<u32>() + of_earlier;
        let of_sample = size_of::<(u32, SequenceNumber)>();
        let of_samples = if listed == 0 { 0 } else { samples.saturating_mul(of_sample) };
        let of_ended = if listed == 0 {
            0
        } else {
            self.ended().saturating_mul(size_of::<(u32, SequenceNumber, bool)>())
        };
        table_bytes(self.table())
            .saturating_add(listed.saturating_mul(of_instance))
            .saturating_add(samples.saturating_mul(size_of::<SequenceNumber>()))
            .saturating_add(of_samples)
            .saturating_add(of_ended)
    }
}

/// Samples that have left and have not arrived everywhere: of readers that are sent what others are, and of those that
/// are [apart](super::apart).
pub(super) type InTransit = [RangeInclusive<SequenceNumber>; 2];

impl Instances {
    pub(super) fn new(config: &WriterConfig) -> Self {
        let depth = match config.history {
            History::KeepAll => None,
            History::KeepLast(depth) => Some(depth.max(1) as usize),
        };
        let or_endless = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
        let is_keyed = config.guid.entity.is_keyed();
        // A topic without a key is one instance.
        let in_all = if is_keyed { None } else { config.max_samples_per_instance };
        let limits = Limits {
            samples: or_endless(config.max_samples).min(or_endless(in_all)),
            bytes: config.max_bytes.unwrap_or(usize::MAX),
            instances: config.max_instances.map_or(config::INSTANCES_MAX, |max| max as usize),
            per_instance: or_endless(config.max_samples_per_instance),
            are_instances_limited: config.max_instances.is_some(),
            listed: match config.limits {
                Some(limits) => limits.instances.saturating_mul(2),
                None => {
                    let instances = config.max_instances.map_or(0, |max| max as usize);
                    config::INSTANCES_MAX.max(instances)
                }
            },
            ended_kept: match config.limits {
                Some(limits) => config::ENDED_INSTANCES_KEPT.min(limits.instances / 2),
                None => config::ENDED_INSTANCES_KEPT,
            },
        };
        let is_tracking =
            depth.is_some() || config.max_instances.is_some() || config.max_samples_per_instance.is_some();
        // Deadlines are those of instances.
        let is_tracking = is_tracking || finite(config.deadline).is_some() || config.has_service();
        let mut instances = Self {
            depth,
            is_keyed: is_keyed && is_tracking,
            is_open: !(is_keyed && is_tracking) && limits.samples == usize::MAX && limits.bytes == usize::MAX,
            is_volatile: config.keeps_nothing_for_late_readers(),
            is_watched: finite(config.deadline).is_some(),
            limits,
            hasher: KeyHasher::new(config.hash_seed),
            table: HashTable::new(),
            list: Vec::new(),
            vacant: Vec::new(),
            registered: 0,
            asks_for_new: false,
            earlier: Vec::new(),
            unsent: Vec::new(),
            spared: None,
            in_transit: Vec::new(),
            removed: SequenceNumber::ZERO,
            kept: VecDeque::new(),
            ended: VecDeque::new(),
        };
        if let Some(limits) = config.limits {
            instances.reserve(InstancesSize::new(&limits, instances.is_keyed, depth));
        }
        instances
    }

    fn reserve(&mut self, size: InstancesSize) {
        let InstancesSize { listed, earlier, samples } = size;
        let (hasher, list) = (self.hasher, &self.list);
        self.table.reserve(size.table(), |index: &u32| hasher.hash(list[*index as usize].key.into()));
        self.list.reserve_exact(listed);
        self.vacant.reserve_exact(listed);
        if earlier > 0 {
            self.earlier.reserve_exact(listed);
            self.earlier.resize_with(listed, || VecDeque::with_capacity(earlier));
        }
        self.in_transit.reserve_exact(samples);
        if listed > 0 {
            self.ended.reserve_exact(size.ended());
            match self.depth {
                Some(_) => self.unsent.reserve_exact(samples),
                None => self.kept.reserve_exact(samples),
            }
        }
    }

    /// Returns the memory in bytes, as allocated.
    pub(super) fn allocated(&self) -> usize {
        let earlier: usize = self.earlier.iter().map(|it| it.capacity() * size_of::<SequenceNumber>()).sum();
        self.table.allocation_size()
            + self.list.capacity() * size_of::<Instance>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.earlier.capacity() * size_of::<VecDeque<SequenceNumber>>()
            + earlier
            + self.in_transit.capacity() * size_of::<SequenceNumber>()
            + self.ended.capacity() * size_of::<(u32, SequenceNumber, bool)>()
            + self.unsent.capacity() * size_of::<(u32, SequenceNumber)>()
            + self.kept.capacity() * size_of::<(SequenceNumber, u32)>()
    }

    /// Returns whether [`Instances::admit`] admits every sample, without an instance.
    #[inline]
    pub(super) fn are_open(&self) -> bool {
        self.is_open
    }

    /// Returns the instance of a sample of `len` bytes, and adds it if it is new. Everything up to
    /// `last` is acknowledged.
    ///
    /// # Errors
    /// If the sample or its instance would exceed a limit.
    #[inline]
    pub(super) fn admit(
        &mut self,
        key: Option<[u8; 16]>,
        len: usize,
        history: &mut Store,
        last: SequenceNumber,
    ) -> Result<Option<u32>, WriteRefused> {
        let Some(key) = key.filter(|_| self.is_keyed) else {
            self.check(None, len, history)?;
            return Ok(None);
        };
        let mut known = self.find(&key);
        while let Err(refused) = self.check(known, len, history) {
            // The samples of instances that have ended give way, as their places do.
            if !self.keeps_last() || !self.release_first_ended(history, last) {
                return Err(refused);
            }
            known = self.find(&key);
        }
        match known {
            Some(index) if self.list[index as usize].is_registered => Ok(Some(index)),
            _ => self.enter(key, known, history, last).map(Some),
        }
    }

    /// Returns whether a sample of `len` bytes has room now, or may find it among instances that have ended.
    /// Everything up to `last` is acknowledged. A new instance may still exceed the limit.
    pub(super) fn has_room(
        &self,
        key: Option<[u8; 16]>,
        len: usize,
        history: &Store,
        last: SequenceNumber,
    ) -> bool {
        let known = key.filter(|_| self.is_keyed).and_then(|key| self.find(&key));
        self.check(known, len, history).is_ok()
            || self.is_keyed && self.keeps_last() && self.releasable(last).is_some()
    }

    #[inline]
    fn check(&self, known: Option<u32>, len: usize, history: &Store) -> Result<(), WriteRefused> {
        let has_room = history.len() < self.limits.samples && history.live_bytes() + len <= self.limits.bytes;
        let is_allowed = match self.depth {
            // What is replaced stays until its batch leaves.
            Some(_) => {
                let is_beyond = history.len() >= self.limits.samples.saturating_add(UNSENT_BESIDE);
                has_room || !is_beyond && self.finds_room_by_replacing(known, len, history)
            }
            None => has_room && known.is_none_or(|index| self.has_room_in(index)),
        };
        if is_allowed { Ok(()) } else { Err(self.full()) }
    }

    #[inline]
    fn has_room_in(&self, index: u32) -> bool {
        (self.list[index as usize].count as usize) < self.limits.per_instance
    }

    /// Returns the refusal for a reached limit, depending on whether waiting helps.
    fn full(&self) -> WriteRefused {
        if self.is_volatile { WriteRefused::WindowFull } else { WriteRefused::LimitReached }
    }

    /// Returns whether the sample replaces an earlier one and thereby has room.
    #[cold]
    fn finds_room_by_replacing(&self, known: Option<u32>, len: usize, history: &Store) -> bool {
        let depth = self.depth.unwrap_or(1);
        let replaced = match known {
            None if self.is_keyed => None,
            None => Some(SequenceNumber(history.next().0 - depth as i64)),
            Some(index) => {
                let earlier = self.earlier.get(index as usize).into_iter().flatten();
                let instance = &self.list[index as usize];
                let mut sent = earlier.chain([&instance.newest]).filter(|sn| **sn >= history.first());
                let count = sent.clone().count();
                // What was not sent yet is replaced as well, or will replace an earlier one.
                let mut unsent = self.unsent.iter().filter(|(other, _)| *other == index).map(|(_, sn)| sn);
                let place = (count + instance.count as usize).checked_sub(depth);
                let replaced = place.and_then(|place| match place.checked_sub(count) {
                    Some(place) => unsent.nth(place),
                    None => sent.nth(place),
                });
                replaced.copied()
            }
        };
        let replaced = replaced.and_then(|sn| history.entry(sn)).filter(crate::history::Entry::is_alive);
        replaced.is_some_and(|entry| {
            history.live_bytes() + len <= self.limits.bytes.saturating_add(entry.len as usize)
        })
    }

    #[inline]
    fn find(&self, key: &[u8; 16]) -> Option<u32> {
        let list = &self.list;
        self.table.find(self.hasher.hash((*key).into()), |index| list[*index as usize].key == *key).copied()
    }

    /// Registers an instance that is written, unless its caller is to do so.
    #[cold]
    fn enter(
        &mut self,
        key: [u8; 16],
        known: Option<u32>,
        history: &mut Store,
        last: SequenceNumber,
    ) -> Result<u32, WriteRefused> {
        if self.asks_for_new {
            Err(WriteRefused::NewInstance)
        } else {
            self.enlist(key, known, history, last)
        }
    }

    /// Refuses writes to instances that are not registered from now on, or registers them.
    pub(super) fn ask_for_new(&mut self, asks: bool) {
        self.asks_for_new = asks;
    }

    /// Registers an instance, and adds it if it is new.
    fn enlist(
        &mut self,
        key: [u8; 16],
        known: Option<u32>,
        history: &mut Store,
        last: SequenceNumber,
    ) -> Result<u32, WriteRefused> {
        if self.registered >= self.limits.instances {
            return Err(WriteRefused::TooManyInstances);
        }
        let index = match known {
            Some(index) => index,
            None => {
                // Unregistered instances take memory until all readers have acknowledged the change.
                while self.table.len() >= self.limits.listed {
                    if !self.release_first_ended(history, last) {
                        return Err(WriteRefused::TooManyInstances);
                    }
                }
                self.add(key)
            }
        };
        self.list[index as usize].is_registered = true;
        self.registered += 1;
        Ok(index)
    }

    fn add(&mut self, key: [u8; 16]) -> u32 {
        let instance = Instance { key, newest: SequenceNumber::ZERO, count: 0, is_registered: false };
        let index = match self.vacant.pop() {
            Some(index) => {
                self.list[index as usize] = instance;
                index
            }
            None => {
                self.list.push(instance);
                self.list.len() as u32 - 1
            }
        };
        if self.depth.is_some_and(|depth| depth > 1) && self.earlier.len() < self.list.len() {
            self.earlier.resize_with(self.list.len(), VecDeque::new);
        }
        let (hasher, list) = (self.hasher, &self.list);
        self.table.insert_unique(hasher.hash(key.into()), index, |index| {
            hasher.hash(list[*index as usize].key.into())
        });
        index
    }

    /// Registers an instance before it is written.
    ///
    /// # Errors
    /// [`WriteRefused::TooManyInstances`].
    pub(super) fn register(
        &mut self,
        key: [u8; 16],
        history: &mut Store,
        last: SequenceNumber,
    ) -> Result<(), WriteRefused> {
        if self.is_keyed {
            let known = self.find(&key);
            if !known.is_some_and(|index| self.list[index as usize].is_registered) {
                self.enlist(key, known, history, last)?;
            }
        }
        Ok(())
    }

    /// Records a new sample of an instance returned by [`Instances::admit`].
    #[inline]
    pub(super) fn committed(&mut self, instance: Option<u32>, sn: SequenceNumber) {
        let Some(index) = instance else { return };
        self.list[index as usize].count += 1;
        if self.depth.is_some() {
            self.unsent.push((index, sn));
        } else {
            self.kept.push_back((sn, index));
        }
    }

    /// Returns the key of an instance; `None` for topics without a key.
    pub(super) fn key_of(&self, index: u32) -> Option<[u8; 16]> {
        self.list.get(index as usize).map(|instance| instance.key)
    }

    /// Records that a sample has left the history before it was released or replaced. Those before it have, too.
    pub(super) fn expired(&mut self, sn: SequenceNumber) {
        while let Some((_, index)) = self.kept.front().filter(|(first, _)| *first <= sn) {
            self.list[*index as usize].count -= 1;
            self.kept.pop_front();
        }
    }

    /// Sets how many of the last numbers a topic without a key keeps (KEEP_LAST), if some of them are no values.
    pub(super) fn set_depth_of_topic(&mut self, depth: usize) {
        self.depth = Some(depth);
    }

    /// Records that these samples, in ascending order, have left the history.
    pub(super) fn removed(&mut self, samples: &[SequenceNumber]) {
        let list = &mut self.list;
        self.kept.retain(|(sn, index)| {
            let is_removed = samples.binary_search(sn).is_ok();
            list[*index as usize].count -= u32::from(is_removed);
            !is_removed
        });
    }

    /// Begins or ceases to watch the deadlines of instances. From the first deadline on, they are distinguished, if the
    /// topic has a key.
    pub(super) fn watch(&mut self, is_watched: bool, has_key: bool) {
        self.is_watched = is_watched;
        if is_watched {
            self.is_keyed = has_key;
            self.is_open &= !has_key;
        }
    }

    /// Returns the registered instances. A topic without a key has instance 0.
    pub(super) fn registered(&self) -> impl Iterator<Item = u32> + '_ {
        let of_table = self.list.iter().zip(0..).filter(|(it, _)| it.is_registered).map(|(_, index)| index);
        of_table.chain((!self.is_keyed).then_some(0))
    }

    /// Returns whether later samples replace earlier ones (KEEP_LAST).
    #[inline]
    pub(super) fn keeps_last(&self) -> bool {
        self.depth.is_some()
    }

    /// Removes the samples replaced by those up to and including `last`, except the one in
    /// transmission (`amid`). Unkeyed, also not those in transit, which have left and are after `acknowledged`:
    /// otherwise none would ever arrive whole whose repairs take longer than it is kept.
    #[inline]
    pub(super) fn replace(
        &mut self,
        history: &mut Store,
        last: SequenceNumber,
        amid: Option<SequenceNumber>,
        in_transit: Option<InTransit>,
    ) {
        let Some(depth) = self.depth else { return };
        if !self.is_keyed {
            let replaced = SequenceNumber(last.0 - depth as i64);
            if amid.is_none() && in_transit.is_none() && self.in_transit.is_empty() {
                history.release_to(replaced);
                self.removed = self.removed.max(replaced);
            } else {
                self.replace_unkeyed(history, replaced, amid, in_transit);
            }
            return;
        }
        self.replace_keyed(history, depth, amid);
    }

    /// Removes everything up to and including `replaced` but large samples in transit.
    fn replace_unkeyed(
        &mut self,
        history: &mut Store,
        replaced: SequenceNumber,
        amid: Option<SequenceNumber>,
        in_transit: Option<InTransit>,
    ) {
        let is_spared = |history: &Store, sn| {
            let is_large = |entry: crate::history::Entry| entry.is_alive() && entry.fragment_size != 0;
            Some(sn) == amid
                || in_transit.iter().flatten().any(|it| it.contains(&sn))
                    && history.entry(sn).is_some_and(is_large)
        };
        let len_of = |history: &Store, sn| history.entry(sn).map_or(0, |entry| entry.len as usize);
        let mut bytes = 0;
        self.in_transit.retain(|sn| {
            let is_kept = is_spared(history, *sn);
            if is_kept {
                bytes += len_of(history, *sn);
            } else {
                history.remove(*sn);
            }
            is_kept
        });
        for sn in self.removed.max(history.first().prev()).next().0..=replaced.0 {
            let sn = SequenceNumber(sn);
            let len = len_of(history, sn);
            let has_room =
                bytes + len <= config::IN_TRANSIT_MAX_BYTES && history.len() <= self.limits.samples;
            if (Some(sn) == amid || has_room) && is_spared(history, sn) {
                self.in_transit.push(sn);
                bytes += len;
            } else {
                history.remove(sn);
            }
        }
        self.removed = self.removed.max(replaced);
    }

    fn replace_keyed(&mut self, history: &mut Store, depth: usize, amid: Option<SequenceNumber>) {
        if self.spared != amid
            && let Some(spared) = self.spared.take()
        {
            history.remove(spared);
        }
        let spared = &mut self.spared;
        let mut remove = |history: &mut Store, sn| {
            if Some(sn) == amid {
                *spared = amid;
            } else {
                history.remove(sn);
            }
        };
        for (index, sn) in self.unsent.drain(..) {
            let instance = &mut self.list[index as usize];
            instance.count -= 1;
            let previous = core::mem::replace(&mut instance.newest, sn);
            if depth == 1 {
                // Has no effect on a sample that was already removed.
                remove(history, previous);
                continue;
            }
            let earlier = &mut self.earlier[index as usize];
            while earlier.front().is_some_and(|oldest| *oldest < history.first()) {
                earlier.pop_front();
            }
            if previous >= history.first() {
                earlier.push_back(previous);
            }
            if earlier.len() >= depth
                && let Some(oldest) = earlier.pop_front()
            {
                remove(history, oldest);
            }
        }
    }

    /// Records that sample `sn` unregisters an instance, and perhaps disposes it.
    pub(super) fn ended(&mut self, instance: Option<u32>, sn: SequenceNumber, is_disposed: bool) {
        let Some(index) = instance else { return };
        self.list[index as usize].is_registered = false;
        self.registered -= 1;
        if !self.is_volatile || self.limits.are_instances_limited {
            if self.ended.len() == self.ended.capacity() {
                // Only the last end of an instance counts, and none of those that were written again since.
                let list = &self.list;
                self.ended.retain(|(other, sn, _)| {
                    let instance = &list[*other as usize];
                    *other != index && !instance.is_registered && *sn >= instance.newest
                });
            }
            if self.depth.is_none() {
                self.list[index as usize].newest = sn;
            }
            self.ended.push_back((index, sn, is_disposed));
        }
    }

    /// Forgets unregistered instances once all readers know: everything up to `last` is
    /// acknowledged.
    ///
    /// Keeps the most recent ones, see [`config::ENDED_INSTANCES_KEPT`], and those that were not
    /// disposed, because late readers receive their values.
    pub(super) fn release_ended(&mut self, history: &mut Store, last: SequenceNumber) {
        while self.ended.len() > self.limits.ended_kept {
            let is_disposed = self.ended.front().is_some_and(|(_, _, is_disposed)| *is_disposed);
            if is_disposed || self.is_volatile {
                if !self.release_first_ended(history, last) {
                    break;
                }
            } else if self.limits.are_instances_limited {
                break;
            } else {
                self.ended.pop_front();
            }
        }
    }

    /// Forgets the instance unregistered first, once all readers know. Returns whether anything
    /// changed.
    pub(super) fn release_first_ended(&mut self, history: &mut Store, last: SequenceNumber) -> bool {
        let Some((index, sn)) = self.releasable(last) else { return false };
        self.ended.pop_front();
        let instance = &self.list[index as usize];
        // The instance may have been written again since.
        let is_over = !instance.is_registered && (instance.newest == sn || self.depth.is_none());
        if is_over && instance.count == 0 {
            let newest = instance.newest;
            history.remove(newest);
            if let Some(earlier) = self.earlier.get_mut(index as usize) {
                earlier.drain(..).for_each(|sn| history.remove(sn));
                if !history.is_fixed() {
                    *earlier = VecDeque::new();
                }
            }
            self.forget(index);
        }
        true
    }

    /// Returns the instance unregistered first, with the sample that unregistered it, if all readers know.
    fn releasable(&self, last: SequenceNumber) -> Option<(u32, SequenceNumber)> {
        let &(index, sn, _) = self.ended.front().filter(|(_, sn, _)| *sn <= last)?;
        let is_sent = self.depth.is_none() || self.list[index as usize].count == 0;
        is_sent.then_some((index, sn))
    }

    fn forget(&mut self, index: u32) {
        let instance = &mut self.list[index as usize];
        instance.newest = SequenceNumber::ZERO;
        let hash = self.hasher.hash(instance.key.into());
        if let Ok(place) = self.table.find_entry(hash, |other| *other == index) {
            place.remove();
            self.vacant.push(index);
        }
    }

    /// Called before samples up to `last` are released. Forgets the instances without later
    /// samples, once they are many compared to the rest.
    pub(super) fn released(&mut self, history: &Store, last: SequenceNumber) {
        while let Some((_, index)) = self.kept.front().filter(|(sn, _)| *sn <= last) {
            self.list[*index as usize].count -= 1;
            self.kept.pop_front();
        }
        let is_worth_it =
            self.table.len() > config::INSTANCES_REMEMBERED && self.table.len() > 4 * history.span();
        let is_free = self.unsent.is_empty() && !self.limits.are_instances_limited;
        // A deadline goes on until its instance ends.
        if is_worth_it && is_free && self.depth.is_some() && !self.is_watched {
            let (list, vacant, earlier) = (&self.list, &mut self.vacant, &mut self.earlier);
            let registered = &mut self.registered;
            self.table.retain(|index| {
                let instance = &list[*index as usize];
                let is_left = instance.newest > last;
                if !is_left {
                    *registered -= usize::from(instance.is_registered);
                    vacant.push(*index);
                    earlier.get_mut(*index as usize).into_iter().for_each(VecDeque::clear);
                }
                is_left
            });
        }
    }

    /// Returns the bytes of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.table.allocation_size()
            + self.list.capacity() * size_of::<Instance>()
            + self
                .earlier
                .iter()
                .map(|it| it.capacity() * 8 + size_of::<VecDeque<SequenceNumber>>())
                .sum::<usize>()
            + self.unsent.capacity() * size_of::<(u32, SequenceNumber)>()
            + self.kept.capacity() * size_of::<(SequenceNumber, u32)>()
    }
}

/// Samples written and not handed out, besides those that are kept: at most one send.
const UNSENT_BESIDE: usize = config::SEGMENTS_MAX;
