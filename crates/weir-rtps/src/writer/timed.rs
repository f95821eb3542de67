//! What a writer does about the time since a sample was written: LIFESPAN (DDS 1.4, 2.2.3.16) and DEADLINE (2.2.3.7).
//!
//! A sample expires a lifespan after it was written. It then leaves the history: readers that miss it get a GAP. The
//! writer owes each instance a sample per period, from the first one on until it is disposed or unregistered.
//!
//! Coherent sets and groups ([`presented`](super::presented)) are kept here, too, as is whether the publisher is
//! suspended: writers that use none of these have no such record.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use weir_wire::SequenceNumber;

use super::presented::Presented;
use super::service::Service;
use super::settings::WriterConfig;
use super::state::WriterCore;
use crate::change_kind::ChangeKind;
use crate::config;
use crate::instance_deadlines::{DeadlineMissedStatus, InstanceDeadlines, finite, nanos};
use crate::time::Time;

/// The samples that expire, and the deadlines.
#[derive(Debug)]
pub(super) struct Timed {
    lifespan: Option<Duration>,
    /// When samples expire, in the order of writing.
    expiring: VecDeque<(Time, SequenceNumber)>,
    /// An expired sample that is in transmission. It is removed after that.
    spared: Option<SequenceNumber>,
    deadlines: Option<InstanceDeadlines>,
    missed: DeadlineMissedStatus,
    /// Coherent sets and groups: every sample has to be recorded for them, too.
    pub(super) presented: Option<Presented>,
    /// Samples are collected: see [`WriterCore::suspend`].
    pub(super) is_suspended: bool,
    /// What late readers are sent, if DURABILITY_SERVICE limits that.
    pub(super) service: Option<Service>,
}

impl Timed {
    /// `None`: all policies are at their defaults.
    pub(super) fn new(config: &WriterConfig) -> Option<Box<Self>> {
        let timed = Self::with(config);
        timed.is_used().then(|| Box::new(timed))
    }

    fn with(config: &WriterConfig) -> Self {
        Self {
            lifespan: finite(config.lifespan),
            expiring: VecDeque::new(),
            spared: None,
            deadlines: InstanceDeadlines::new(config.deadline),
            missed: DeadlineMissedStatus::default(),
            presented: Presented::new(config),
            is_suspended: false,
            service: config.has_service().then(|| Service::new(config.durability_service)),
        }
    }

    fn is_used(&self) -> bool {
        self.lifespan.is_some()
            || self.deadlines.is_some()
            || self.presented.is_some()
            || self.service.is_some()
            || self.is_suspended
    }

    /// Forgets the samples before `first`: they were released, and need no timer.
    #[inline]
    fn forget_before(&mut self, first: SequenceNumber) {
        while self.expiring.front().is_some_and(|(_, sn)| *sn < first) {
            self.expiring.pop_front();
        }
    }

    #[inline]
    fn has_expired(&self, now: Time) -> bool {
        self.spared.is_some() || self.expiring.front().is_some_and(|(at, _)| *at <= now)
    }

    /// When [`WriterCore::expire`] is to be called next.
    #[inline]
    pub(super) fn next_at(&self) -> Option<Time> {
        let expiry = self.expiring.front().map(|(at, _)| *at);
        expiry.into_iter().chain(self.deadlines.as_ref().and_then(InstanceDeadlines::next_at)).min()
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.expiring.capacity() * size_of::<(Time, SequenceNumber)>()
            + self.deadlines.as_ref().map_or(0, InstanceDeadlines::memory)
            + self.presented.as_ref().map_or(0, Presented::memory)
            + self.service.as_ref().map_or(0, Service::memory)
    }

    /// Changes the lifespan. That of samples whose expiry is recorded changes, too.
    fn set_lifespan(&mut self, lifespan: Option<Duration>) {
        match (self.lifespan, lifespan) {
            (Some(before), Some(now)) => {
                // Written at `at - before`, in the same order.
                self.expiring.iter_mut().for_each(|(at, _)| *at = Time(at.0 - nanos(before)) + now);
            }
            _ => self.expiring.clear(),
        }
        self.lifespan = lifespan;
    }
}

impl WriterCore {
    /// Changes LIFESPAN and DEADLINE.
    ///
    /// A lifespan also applies to samples in the history, unless it was infinite when they were written. A deadline
    /// starts now for each instance that is written.
    pub fn set_periods(&mut self, now: Time, lifespan: Duration, deadline: Duration) {
        (self.config.lifespan, self.config.deadline) = (lifespan, deadline);
        self.instances.watch(finite(deadline).is_some(), self.config.guid.entity.is_keyed());
        let watched: Vec<_> = match self.timed.as_ref().and_then(|timed| timed.deadlines.as_ref()) {
            Some(deadlines) => deadlines.watched().collect(),
            None if self.history.last() == SequenceNumber::ZERO => Vec::new(),
            None => self.instances.registered().collect(),
        };
        if self.timed.is_none() {
            self.timed = Timed::new(&self.config);
        }
        if let Some(timed) = &mut self.timed {
            timed.set_lifespan(finite(lifespan));
            timed.deadlines = InstanceDeadlines::new(deadline);
            for index in watched {
                // None was missed: each begins here.
                let _ = timed.deadlines.as_mut().map(|deadlines| deadlines.written(now, index));
            }
        }
        self.update_indirect();
    }

    /// Records a sample.
    #[inline(never)]
    pub(super) fn note_timed(
        &mut self,
        now: Time,
        kind: ChangeKind,
        instance: Option<u32>,
        sn: SequenceNumber,
    ) {
        let Some(timed) = &mut self.timed else { return };
        if let Some(presented) = &mut timed.presented {
            presented.note(sn, &self.history);
            self.count_ends(sn);
        }
        let Some(timed) = &mut self.timed else { return };
        if let Some(deadlines) = &mut timed.deadlines {
            match kind {
                ChangeKind::Alive => {
                    let index = instance.unwrap_or(0);
                    let is_in_time = deadlines.written_in_time(now, index);
                    let periods = if is_in_time { 0 } else { deadlines.written(now, index) };
                    if periods > 0 {
                        timed.missed.missed(periods, self.instances.key_of(index));
                    }
                }
                _ => deadlines.ended(instance.unwrap_or(0)),
            }
        }
        let history = &self.history;
        // The sample itself is not in the history yet.
        let is_kept = |it| it == sn || history.get(it).is_some_and(|entry| entry.is_alive());
        if let Some(service) = &mut timed.service {
            service.written(sn, instance.and_then(|index| self.instances.key_of(index)), kind, now);
            if service.recorded() > 2 * history.len() + EXPIRING_SPARE {
                service.retain(is_kept);
            }
        }
        // The end of an instance is no value that becomes stale.
        let Some(lifespan) = timed.lifespan.filter(|_| kind == ChangeKind::Alive) else { return };
        timed.forget_before(history.first());
        timed.expiring.push_back((now + lifespan, sn));
        if timed.expiring.len() > 2 * history.len() + EXPIRING_SPARE {
            // Most were released or replaced.
            timed.expiring.retain(|(_, sn)| is_kept(*sn));
        }
    }

    /// Counts missed deadlines.
    #[cold]
    pub(super) fn expire_deadlines(&mut self, now: Time) {
        let Some(timed) = &mut self.timed else { return };
        if let Some(deadlines) = &mut timed.deadlines {
            let (missed, instances) = (&mut timed.missed, &self.instances);
            deadlines.expire(now, |index, periods| missed.missed(periods, instances.key_of(index)));
        }
    }

    /// Removes expired samples.
    #[inline]
    pub(super) fn expire(&mut self, now: Time) {
        if self.timed.as_ref().is_some_and(|timed| timed.has_expired(now)) {
            self.remove_expired(now);
        }
    }

    #[cold]
    fn remove_expired(&mut self, now: Time) {
        let amid = self.is_amid_sample().then_some(self.unsent);
        let Some(timed) = &mut self.timed else { return };
        let mut expired = timed.spared.take_if(|spared| Some(*spared) != amid);
        loop {
            if let Some(sn) = expired.take() {
                if self.history.get(sn).is_some_and(|entry| entry.is_alive()) {
                    self.counters.samples_expired += 1;
                    self.history.remove(sn);
                }
                self.instances.expired(sn);
            }
            let Some(&(_, sn)) = timed.expiring.front().filter(|(at, _)| *at <= now) else { break };
            timed.expiring.pop_front();
            if Some(sn) == amid {
                timed.spared = Some(sn);
            } else {
                expired = Some(sn);
            }
        }
        timed.forget_before(self.history.first());
        self.large.release(self.history.first());
    }

    /// Collects samples from now on: they leave when [`WriterCore::resume`] is called, or when a datagram's worth of
    /// them is there. A hint (DDS 1.4, 2.2.2.4.1.8).
    pub fn suspend(&mut self) {
        let config = &self.config;
        self.timed.get_or_insert_with(|| Box::new(Timed::with(config))).is_suspended = true;
        self.update_indirect();
    }

    /// Ends [`WriterCore::suspend`]. The next transmission sends what was collected.
    pub fn resume(&mut self) {
        if let Some(timed) = &mut self.timed {
            timed.is_suspended = false;
        }
        self.timed.take_if(|timed| !timed.is_used());
        self.update_indirect();
    }

    /// Returns whether samples are held back for others to come, as long as they fit one send.
    #[cold]
    pub(super) fn is_collecting(&mut self) -> bool {
        let is_suspended = self.timed.as_ref().is_some_and(|timed| timed.is_suspended);
        let is_collecting = is_suspended && self.burst.bytes < config::SEGMENTED_MAX_BYTES / 2;
        if is_collecting {
            // Their timers would send them.
            self.release_held();
        }
        is_collecting
    }

    /// Returns OFFERED_DEADLINE_MISSED, and resets its change to zero.
    pub fn take_deadline_missed(&mut self) -> DeadlineMissedStatus {
        self.timed.as_mut().map_or_else(DeadlineMissedStatus::default, |timed| timed.missed.take())
    }

    /// Returns whether deadlines were missed since the status was taken.
    pub fn has_deadline_news(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| timed.missed.has_news())
    }
}

/// Recorded samples that may be gone, in addition to twice those in the history.
const EXPIRING_SPARE: usize = 1024;
