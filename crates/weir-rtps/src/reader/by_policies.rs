//! The policies of [`enforced`](super::enforced): how they are set, and what the cache does by them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use weir_filter::Filter;
use weir_wire::{Guid, SequenceNumber};

use super::ReaderCore;
use super::cache::Cache;
use super::coherence::SetSample;
use super::config::ReaderConfig;
use super::deferred::Postponed;
use super::enforced::{Enforced, Verdict, WriterPolicies};
use super::entries::cost;
use super::instances::Instance;
use super::states::InstanceState;
use super::stored::StoredSample;
use super::writer_proxy::Author;
use crate::instance_deadlines::{DeadlineMissedStatus, finite};
use crate::key_hasher::Key;
use crate::qos::ReaderDataLifecycle;
use crate::time::Time;
use crate::writer::ChangeKind;

impl ReaderCore {
    /// Sets the policies of a matched writer that the reader enforces. Without this call they are at their defaults.
    pub fn set_writer_policies(&mut self, writer: Guid, policies: WriterPolicies) {
        let cache = &mut self.delivery.cache;
        if finite(policies.lifespan).is_some() && cache.enforced.is_none() {
            cache.enforced = Some(Box::new(Enforced::with(&self.config)));
        }
        if let Some(enforced) = &mut cache.enforced {
            enforced.set_writer(writer, policies);
        }
    }

    /// Changes which values are delivered, by their content. Samples that wait for the application stay. `signature`:
    /// that of the filter; with one, what writers report about it is believed.
    pub fn set_content_filter(&mut self, filter: Option<Arc<Filter>>, signature: Option<[u8; 16]>) {
        (self.config.content_filter, self.config.filter_signature) = (filter, signature);
        match &mut self.delivery.cache.enforced {
            Some(enforced) => enforced.set_content_filter(&self.config),
            enforced if self.config.content_filter.is_some() => *enforced = Enforced::new(&self.config),
            _ => {}
        }
    }

    /// Changes the policies that may change after the reader was created: DEADLINE, TIME_BASED_FILTER and
    /// READER_DATA_LIFECYCLE. For instances that are alive, a new period begins.
    pub fn set_policies(
        &mut self,
        now: Time,
        deadline: Duration,
        minimum_separation: Duration,
        lifecycle: ReaderDataLifecycle,
    ) {
        let config = &mut self.config;
        (config.deadline, config.minimum_separation, config.lifecycle) =
            (deadline, minimum_separation, lifecycle);
        self.delivery.cache.set_policies(now, &self.config);
    }

    /// Returns whether values were delivered since the last call by a timeout, or by an access that made room for them:
    /// threads may wait for them.
    pub fn take_late_values(&mut self) -> bool {
        core::mem::take(&mut self.has_late_values)
    }

    /// Returns whether samples have expired or were purged since the last call: what waits for them is over.
    pub fn take_removed(&mut self) -> bool {
        core::mem::take(&mut self.has_removed)
    }

    /// Whether samples may expire while they wait for the application: it then calls [`ReaderCore::expire`] before it
    /// accesses them.
    #[inline]
    pub fn has_expiring(&self) -> bool {
        self.delivery.cache.enforced.as_ref().is_some_and(|enforced| enforced.expiring.len() > 0)
    }

    /// Removes the samples that have expired (LIFESPAN).
    #[inline]
    pub fn expire(&mut self, now: Time) {
        if self.delivery.cache.enforced.as_ref().is_some_and(|enforced| enforced.expiring.is_due(now)) {
            self.expire_due(now);
        }
    }

    #[cold]
    fn expire_due(&mut self, now: Time) {
        if self.delivery.cache.expire(now) {
            self.has_removed = true;
            self.room_was_made();
        }
    }

    /// Returns REQUESTED_DEADLINE_MISSED, and resets its change to zero.
    pub fn take_deadline_missed(&mut self) -> DeadlineMissedStatus {
        let enforced = self.delivery.cache.enforced.as_mut();
        enforced.map_or_else(DeadlineMissedStatus::default, |enforced| enforced.missed().take())
    }

    /// Whether deadlines were missed since the status was taken.
    pub fn has_deadline_news(&self) -> bool {
        self.delivery.cache.enforced.as_ref().is_some_and(|enforced| enforced.has_news())
    }
}

impl Cache {
    /// Appends a stored sample, if it need not wait for its set, and the policies admit it.
    #[cold]
    pub(super) fn place_if_admitted(
        &mut self,
        now: Time,
        author: Author,
        sn: SequenceNumber,
        stored: StoredSample,
    ) {
        if self.coherence().is_some() {
            let is_alive = |_| author.is_alive;
            let sample = SetSample { sn, stored, arrived_at: now, is_last: author.is_last };
            self.with_coherence(now, is_alive, |coherence, out| coherence.arrived(author, sample, out));
        } else {
            self.place_by_policies(now, author, sn, stored);
        }
    }

    /// Appends a stored sample, if the policies admit it. Ends its instance behind it if its writer is lost, and it is
    /// the last.
    #[cold]
    pub(super) fn place_by_policies(
        &mut self,
        arrived_at: Time,
        author: Author,
        sn: SequenceNumber,
        stored: StoredSample,
    ) {
        self.judge_and_place(arrived_at, author, sn, stored);
        self.leave_behind(arrived_at, author, stored.key());
    }

    fn judge_and_place(
        &mut self,
        arrived_at: Time,
        author: Author,
        sn: SequenceNumber,
        mut stored: StoredSample,
    ) {
        let writer = author.guid;
        let has_left = self.instances.registrations.has_left();
        if has_left {
            let at = self.enforced.as_mut().map_or(arrived_at, |enforced| enforced.advance(arrived_at));
            self.end_left_of(at, writer, stored.key());
        }
        if self.ends_unknown_instance(&stored) {
            if let Some(enforced) = &mut self.enforced {
                enforced.counts.content_filtered += 1;
            }
            self.chunks.release(stored.at);
            return;
        }
        let Some(index) = self.instances.index(stored.key()) else { return self.chunks.release(stored.at) };
        if has_left {
            self.end_left_ownership(index);
        }
        let Some(enforced) = &mut self.enforced else { return self.chunks.release(stored.at) };
        let key = self.instances.get(index).key;
        // What has waited is judged when its wait ends.
        enforced.advance(arrived_at);
        let mut verdict = enforced.admits((index, key), author, &stored);
        if verdict == Verdict::Unregister {
            (stored.kind, verdict) = (ChangeKind::Unregistered, Verdict::Deliver);
        }
        if let Verdict::Postpone(at) = verdict {
            let replaced = enforced.postpone(index, (at, arrived_at), (writer, sn, stored));
            self.note_left_out(index, writer, stored.kind);
            self.held += 1;
            self.held_bytes += cost(stored.len());
            replaced.into_iter().for_each(|value| self.drop_held(value.stored));
            return;
        }
        // A later value replaces a postponed one. Before an end, it is delivered.
        let is_value = stored.kind == ChangeKind::Alive;
        if (verdict == Verdict::Deliver || !is_value) && !enforced.postponed.is_empty() {
            self.settle_postponed(index, !is_value);
        }
        let Some(enforced) = &mut self.enforced else { return };
        if matches!(stored.kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered) {
            enforced.unregistered(index, writer);
        }
        if verdict == Verdict::LeaveOut {
            self.note_left_out(index, writer, stored.kind);
            self.chunks.release(stored.at);
            self.note_state(index, key);
            self.instances.forget_if_over(index);
            return;
        }
        self.place_admitted(writer, sn, stored, arrived_at);
        self.note_end(index, key);
        self.note_state(index, key);
    }

    /// Ends the deadline of an instance that is not alive any more: another writer may keep it alive (DDS 1.4,
    /// 2.2.3.7).
    fn note_end(&mut self, index: u32, key: Key) {
        let instance = self.instances.get(index);
        let is_over = instance.key == key && instance.state != InstanceState::Alive;
        if let Some(enforced) = self.enforced.as_mut().filter(|_| is_over) {
            enforced.ended(index);
        }
    }

    /// Reports the state of an instance to the policies, which may have changed.
    pub(super) fn note_state(&mut self, index: u32, key: Key) {
        let instance = self.instances.get(index);
        let (known, state) = (instance.key, instance.state);
        if let Some(enforced) = self.enforced.as_mut().filter(|_| known == key) {
            enforced.note_state((index, key), state);
        }
    }

    /// Appends a sample that the policies have admitted, and that arrived at this time.
    fn place_admitted(&mut self, writer: Guid, sn: SequenceNumber, stored: StoredSample, arrived_at: Time) {
        // The end of an instance does not expire.
        let is_value = stored.kind == ChangeKind::Alive;
        if self.place::<true>(arrived_at, writer, sn, stored)
            && is_value
            && let Some(enforced) = &mut self.enforced
        {
            if enforced.is_over(writer, arrived_at) {
                return self.remove_expired(self.entries.ring.len() - 1);
            }
            enforced.stored(writer, arrived_at, self.entries.end() - 1);
            if enforced.expiring.len() > 2 * self.entries.ring.len() + EXPIRING_SPARE {
                // Most were taken.
                let front = self.entries.position_of(0);
                enforced.expiring.moved(|position| (position >= front).then_some(position));
            }
        }
    }

    /// Delivers the postponed value of an instance, or drops it.
    pub(super) fn settle_postponed(&mut self, index: u32, is_delivered: bool) {
        let Some(enforced) = &mut self.enforced else { return };
        let Some(value) = enforced.postponed.take(index) else { return };
        if is_delivered {
            self.deliver_postponed(index, value);
        } else {
            enforced.counts.filtered += 1;
            self.drop_held(value.stored);
        }
        self.enforced.iter_mut().for_each(|enforced| enforced.judge());
    }

    fn deliver_postponed(&mut self, index: u32, value: Postponed) {
        let Postponed { writer, sn, stored, arrived_at, .. } = value;
        let key = self.instances.get(index).key;
        let Some(enforced) = &mut self.enforced else { return };
        if !enforced.admits_postponed((index, key), &value) {
            return self.drop_held(stored);
        }
        self.count_released(stored);
        self.place_admitted(writer, sn, stored, arrived_at);
    }

    /// Delivers the postponed values whose time has come. Those that find no room are tried again later. Returns
    /// whether there were any.
    #[cold]
    pub(super) fn deliver_due(&mut self, now: Time) -> bool {
        let mut has_delivered = false;
        while let Some((index, value)) =
            self.enforced.as_mut().and_then(|enforced| enforced.take_postponed(now))
        {
            if self.refusal_by_kind(value.stored.kind, value.stored.key(), value.stored.len()).is_some() {
                let Some(enforced) = &mut self.enforced else { return has_delivered };
                let retry_at = enforced.retry_at();
                enforced.postpone(
                    index,
                    (retry_at, value.arrived_at),
                    (value.writer, value.sn, value.stored),
                );
                continue;
            }
            self.deliver_postponed(index, value);
            has_delivered = true;
        }
        self.enforced.iter_mut().for_each(|enforced| enforced.judge());
        has_delivered
    }

    /// Removes the samples of instances that ended long enough ago (READER_DATA_LIFECYCLE). Returns whether there were
    /// any.
    #[cold]
    pub(super) fn purge(&mut self, now: Time) -> bool {
        let mut has_purged = false;
        while let Some((index, key)) =
            self.enforced.as_mut().and_then(|enforced| enforced.purges.as_mut()?.take_due(now))
        {
            if index >= self.instances.end() || self.instances.get(index).key != key {
                continue;
            }
            let Instance { oldest: mut position, count, .. } = *self.instances.get(index);
            for _ in 0..count {
                let at = self.entries.index_of(position);
                position = self.entries.ring[at].next;
                self.remove(at);
            }
            has_purged |= count > 0;
            if let Some(enforced) = &mut self.enforced {
                enforced.counts.purged += u64::from(count);
            }
            self.instances.forget_if_over(index);
        }
        self.entries.trim();
        has_purged
    }

    /// Changes the policies that may change. `config` has the new ones.
    pub(super) fn set_policies(&mut self, now: Time, config: &ReaderConfig) {
        if self.enforced.is_none() {
            self.enforced = Enforced::new(config);
        }
        let Some(enforced) = &mut self.enforced else { return };
        let instances = &self.instances;
        let alive = instances.alive().map(|index| (index, instances.get(index).key));
        enforced.set_policies(now, config, alive);
        for index in 0..self.instances.end() {
            let instance = self.instances.get(index);
            enforced.note_state((index, instance.key), instance.state);
        }
        if config.minimum_separation.is_zero() {
            enforced.postponed.make_due(now);
        }
    }

    /// Records that a writer has written or ended an instance, by a sample that is left out: the writer counts, the
    /// state of the instance stays.
    fn note_left_out(&mut self, index: u32, writer: Guid, kind: ChangeKind) {
        let (instance, registrations) = self.instances.get_to_change(index);
        match kind {
            ChangeKind::Alive | ChangeKind::Disposed => instance.register(writer, (index, registrations)),
            ChangeKind::Unregistered | ChangeKind::DisposedUnregistered => {
                instance.change(ChangeKind::Unregistered, writer, (index, registrations));
            }
        }
    }

    /// Removes the samples that have expired. Returns whether there were any.
    #[cold]
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let mut has_expired = false;
        let front = self.entries.position_of(0);
        self.enforced.iter_mut().for_each(|enforced| enforced.expiring.forget_before(front));
        while let Some(position) = self.enforced.as_mut().and_then(|enforced| enforced.expiring.pop(now)) {
            let Some(index) = position.checked_sub(self.entries.position_of(0)) else { continue };
            if self.entries.ring.get(index as usize).is_some_and(|entry| entry.is_live) {
                self.remove_expired(index as usize);
                has_expired = true;
            }
        }
        self.entries.trim();
        has_expired
    }

    /// Removes a sample that has expired.
    fn remove_expired(&mut self, index: usize) {
        let instance = self.entries.ring[index].instance;
        self.remove(index);
        self.instances.forget_if_over(instance);
        if let Some(enforced) = &mut self.enforced {
            enforced.counts.expired += 1;
        }
    }
}

/// Records of samples that expire and may be gone, in addition to twice those in the queue.
pub(super) const EXPIRING_SPARE: usize = 1024;
