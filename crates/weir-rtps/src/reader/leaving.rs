//! Writers that leave: the instances that they have written, and no other does, become NOT_ALIVE_NO_WRITERS.
//!
//! That is work for each instance, and a writer may have written very many. It is done in steps, each of which ends
//! [`config::INSTANCES_LEFT_AT_ONCE`] instances at most. Between them, the reader is not locked: threads that receive
//! or access its samples wait for one step, and not for all.
//!
//! An index of the instances by writer alone, with their states derived from that of the writer when they are
//! accessed, would need no steps. But each such instance has a sample that reports its new state, which has to be in
//! the queue, in order, before conditions can be true of it. The work stays, and every look-up of an instance would
//! have one more condition.
//!
//! Samples of a writer may have been held back when it left: behind one that was missing, for want of room, or in a
//! set that other readers have a part in. They are delivered when they are next, as if the writer had come back for
//! them and left again: an instance ends behind the last sample of it that waits for nothing else
//! ([`Cache::leave_behind`]). It takes no instance from its owner.
//!
//! The steps look the same as a writer that leaves its instances one after the other: they are what would happen if
//! it unregistered them. Two things do not wait. A writer that has left owns nothing that it left from then on
//! (OWNERSHIP), or samples of weaker writers would be left out. And when it is back, an instance is ended before a
//! sample of the same writer is placed in it: the end would make the instance look as if nothing were written. The
//! other instances wait for their step. (Where policies are enforced, each sample that is placed checks this. Elsewhere
//! only samples of a writer that is back do, and those that were held back.)

use weir_wire::{Data, Guid, SequenceNumber};

use super::ReaderCore;
use super::cache::Cache;
use super::coherence::{Coherence, Sorted};
use super::config::ReaderConfig;
use super::delivery::Delivery;
use super::stored::StoredSample;
use super::writer_proxy::{Arrival, Author, WriterProxy};
use crate::config;
use crate::key_hasher::Key;
use crate::time::Time;
use crate::writer::ChangeKind;

impl ReaderCore {
    /// Returns whether instances of writers that have left wait to be ended by [`ReaderCore::handle_timeout`]. Unlock
    /// the reader between two such calls, for other threads that wait for it.
    #[inline]
    pub fn has_left(&self) -> bool {
        self.delivery.cache.instances.registrations.has_left()
    }

    /// Records that a writer is not there any more. Call [`ReaderCore::end_left`] afterwards.
    pub(super) fn writer_gone(&mut self, now: Time, writer: Guid) {
        if self.delivery.cache.enforced.is_some() {
            self.drop_open_set(now, writer);
            let proxy = self.writers.get_mut(writer);
            let waiting =
                proxy.into_iter().flat_map(|proxy| proxy.changes.deliverable_from(SequenceNumber::FIRST));
            self.delivery.cache.mark_last_in_sets(writer, waiting.map(|(_, key)| key));
        }
        self.delivery.cache.writer_gone(writer);
        self.delivery.cache.left_at = now;
    }

    /// Leaves what the samples of a writer that is not alive have begun to write, which were held back before.
    #[cold]
    pub(super) fn leave_again(&mut self, now: Time, writer: Guid) {
        self.writer_gone(now, writer);
        self.end_late(now);
    }

    /// Ends instances behind samples of writers that are not alive, which were held back before.
    #[cold]
    pub(super) fn end_late(&mut self, now: Time) {
        self.has_late_values |= self.end_left(now);
        self.note_left();
    }

    /// Has the next timeout end the other instances of writers that have left.
    pub(super) fn note_left(&mut self) {
        self.timers_set = self.timers_set.wrapping_add(u32::from(self.has_left()));
    }

    /// Drops the set that a writer has not ended, which is not alive.
    fn drop_open_set(&mut self, now: Time, writer: Guid) {
        let writers = &self.writers;
        let change = |coherence: &mut Coherence, out: &mut Sorted| coherence.writer_gone(writer, out);
        self.delivery.cache.with_coherence(now, |writer| writers.is_alive(writer), change);
    }

    /// Drops the set that a writer has begun after it was lost, by samples that were held back until now, unless more
    /// of them wait for room.
    #[cold]
    pub(super) fn drop_late_set(&mut self, now: Time, writer: Guid) {
        let has_open = self.delivery.cache.coherence().is_some_and(|coherence| coherence.has_open(writer));
        let is_over = |proxy: &mut WriterProxy| !proxy.lease.is_alive() && proxy.trouble.refused.is_none();
        if has_open && self.writers.get_mut(writer).is_some_and(is_over) {
            self.drop_open_set(now, writer);
        }
    }

    /// Ends some of the instances of writers that have left. Returns whether there were any.
    pub(super) fn end_left(&mut self, now: Time) -> bool {
        let has_left = self.has_left();
        if has_left {
            // With a limits table, there are few instances, and a list is free for another writer at once.
            let is_limited = self.config.limits.is_some();
            self.delivery.end_left(now, if is_limited { usize::MAX } else { config::INSTANCES_LEFT_AT_ONCE });
            self.delivery.cache.left_at = now;
        }
        self.room_was_made();
        has_left
    }
}

impl Delivery {
    /// Handles a sample of a writer that is back, before it is placed.
    #[cold]
    #[inline(never)]
    pub(super) fn note_return(
        &mut self,
        now: Time,
        config: &ReaderConfig,
        proxy: &mut WriterProxy,
        data: &Data<'_>,
    ) {
        self.refused.settle(proxy.guid);
        if !self.cache.instances.registrations.is_leaving(proxy.guid) {
            return proxy.lease.settle();
        }
        let is_next = matches!(proxy.arrival(data.sequence_number), Arrival::Next { .. });
        if is_next && let Ok(sample) = self.sample(config, proxy, data, None) {
            self.cache.end_left_of(now, proxy.guid, sample.key);
        }
    }

    /// Ends up to `max` instances of writers that have left.
    fn end_left(&mut self, now: Time, max: usize) {
        for _ in 0..max {
            let Some((writer, instance)) = self.cache.instances.registrations.next_left() else { return };
            match instance {
                Some(index) => self.cache.leave_instance(now, index, writer),
                None => self.cache.all_left(writer),
            }
        }
    }
}

impl Cache {
    fn writer_gone(&mut self, writer: Guid) {
        if let Some(enforced) = &mut self.enforced {
            enforced.writer_gone(writer);
        }
        if !self.instances.registrations.leave(writer) {
            self.all_left(writer);
        }
    }

    fn all_left(&mut self, writer: Guid) {
        if let Some(enforced) = &mut self.enforced {
            enforced.all_left(writer);
        }
    }

    /// Before a sample of a writer is placed in an instance that the writer has left: ends it.
    #[cold]
    pub(super) fn end_left_of(&mut self, now: Time, writer: Guid, key: Option<Key>) {
        if let Some(index) = self.instances.lookup(key)
            && self.instances.registrations.take_left(writer, index)
        {
            self.leave_instance(now, index, writer);
        }
    }

    /// Behind a sample of a writer that is not alive, which was placed, left out or dropped: has its instance ended,
    /// unless more of it waits. Call [`ReaderCore::end_left`] afterwards.
    #[inline]
    pub(super) fn leave_behind(&mut self, now: Time, author: Author, key: Option<Key>) {
        if !author.is_alive && author.is_last {
            self.leave_once(now, author.guid, key);
        }
    }

    #[cold]
    fn leave_once(&mut self, now: Time, writer: Guid, key: Option<Key>) {
        // An access that makes room does not know the time.
        let now = now.max(self.left_at);
        self.end_left_of(now, writer, key);
        let Some(index) = self.instances.lookup(key) else { return };
        let (instance, registrations) = self.instances.get_to_change(index);
        if instance.is_written_by(writer) {
            registrations.remove(writer, index);
            if !registrations.leave_one(writer, index) {
                return self.leave_instance(now, index, writer);
            }
            // Its policies are needed until then.
            self.enforced.iter_mut().for_each(|enforced| enforced.writer_gone(writer));
        }
    }

    /// The owner of an instance has lost it if it has left.
    #[cold]
    pub(super) fn end_left_ownership(&mut self, index: u32) {
        if let Some(enforced) = &mut self.enforced
            && let Some(owner) = enforced.owner(index)
            && self.instances.registrations.is_left(owner, index)
        {
            enforced.unregistered(index, owner);
        }
    }

    /// Removes a writer that has left from an instance. Reports the instance if no writer writes it any more, and the
    /// topic has a key.
    fn leave_instance(&mut self, now: Time, index: u32, writer: Guid) {
        self.left += 1;
        let is_postponed = |it: &super::enforced::Enforced| it.postponed.is_of(index, writer);
        if self.enforced.as_deref().is_some_and(is_postponed) {
            self.settle_postponed(index, true);
        }
        let is_orphan = self.instances.get_mut(index).left_by(writer);
        if let Some(enforced) = &mut self.enforced {
            enforced.unregistered(index, writer);
            if is_orphan {
                enforced.ended(index);
            }
        }
        if !is_orphan {
            self.instances.forget_if_over(index);
        } else if self.instances.is_keyed {
            self.make_room(index, ChangeKind::Unregistered);
            let at = self.chunks.store(&[]);
            let stored = StoredSample::new(at, ChangeKind::Unregistered, None, None);
            self.append(now, index, writer, SequenceNumber::UNKNOWN, stored);
        }
        let key = self.instances.get(index).key;
        self.note_state(index, key);
    }
}
