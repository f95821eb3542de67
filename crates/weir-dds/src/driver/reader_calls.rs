//! The calls of a reader's listeners, which are made one after the other.

use std::sync::{Arc, Weak};

use parking_lot::MutexGuard;
use weir_rtps::receiver::batch::News;

use super::endpoints::{Own, ReaderEndpoint, call_lowest};
use super::events::{ReaderEvent, ReaderListener};
use super::listener_turn::ListenerTurn;
use crate::data_reader;
use crate::status_mask::{StatusKind, StatusMask};

/// Who is called for new samples, and which thread calls listeners of the reader.
#[derive(Default)]
pub(super) struct Calls {
    listener: Option<ReaderListener>,
    /// It is that for DATA_ON_READERS.
    is_for_readers: bool,
    /// A second reference to the listener, lent to the notifying thread. Lending costs less per
    /// sample than counting another reference.
    spare: Option<ReaderListener>,
    /// Incremented when the listener is replaced.
    version: u64,
    turn: ListenerTurn,
    /// The thread that has the turn is in `on_data_available`.
    is_in_data: bool,
}

/// A reference to the listener for new samples.
struct Lent {
    listener: ReaderListener,
    is_for_readers: bool,
    version: u64,
}

impl Calls {
    /// Returns the spare reference, or a new one, for a call.
    #[inline]
    fn lend(&mut self) -> Option<Lent> {
        let listener = self.spare.take().or_else(|| self.listener.clone())?;
        self.is_in_data = !self.is_for_readers;
        Some(Lent { listener, is_for_readers: self.is_for_readers, version: self.version })
    }

    /// Replaces the listener. Returns the references to the former one, to be dropped without a lock.
    fn replace(
        &mut self,
        listener: Option<ReaderListener>,
        is_for_readers: bool,
    ) -> [Option<ReaderListener>; 2] {
        self.version += 1;
        self.is_for_readers = is_for_readers;
        [core::mem::replace(&mut self.listener, listener), self.spare.take()]
    }
}

impl ReaderEndpoint {
    /// Finds out anew who is called for new samples: the listener of some level, or what waits, has changed.
    pub(crate) fn listeners_changed(&self) {
        let before = {
            let own = self.own.lock();
            let (listener, is_for_readers) = self.data_listener(&own);
            let is_any = (own.mask | self.group.mask()).intersects(StatusMask::OF_READERS);
            self.set_notified(is_any);
            self.calls.lock().replace(listener, is_for_readers)
        };
        // Dropped without the locks: it may hold the last handle of another endpoint.
        drop(before);
    }

    /// Returns who is called for new samples, and whether that is for DATA_ON_READERS.
    fn data_listener(&self, own: &Own<ReaderListener>) -> (Option<ReaderListener>, bool) {
        let upper = || {
            let owner = self.owner.get().cloned().unwrap_or_default();
            let call = move |event| {
                if let Some(owner) = owner.upgrade() {
                    data_reader::listening::notify_upper(&owner, event, false);
                }
            };
            Some(Arc::new(call) as ReaderListener)
        };
        let mask = self.group.mask();
        if mask.contains(StatusKind::DataOnReaders) {
            (upper(), true)
        } else if let Some(listener) = own.listener_for(StatusKind::DataAvailable) {
            (listener.or_else(|| Some(Arc::new(|_| {}) as ReaderListener)), false)
        } else {
            (mask.contains(StatusKind::DataAvailable).then(upper).flatten(), false)
        }
    }

    /// Calls the listener that a status is for. No lock may be held. For new samples there is
    /// [`ReaderEndpoint::call_for_data`].
    pub(crate) fn call_listener(&self, event: ReaderEvent) {
        let is_mine = {
            let mut calls = self.calls.lock();
            let is_mine = calls.turn.begin(event.bit());
            calls.is_in_data &= !is_mine;
            is_mine
        };
        if is_mine {
            self.call_for_status(event);
            self.call_for_pending();
        }
    }

    /// [`ReaderEndpoint::call_listener`] in this thread's turn.
    fn call_for_status(&self, event: ReaderEvent) {
        let own = self.own.lock().listener_for(event.kind());
        let is_taken_above = self.group.mask().contains(event.kind());
        let call = |listener: ReaderListener| self.listener_panics.survive(move || listener(event));
        call_lowest(own, call, (&self.owner, is_taken_above), |owner, is_dropped| {
            data_reader::listening::notify_upper(owner, event, is_dropped);
        });
    }

    /// Notifies those who wait, then calls the listener, for what a batch contained. No lock may be held.
    #[inline]
    pub(super) fn notify_of(&self, news: News) {
        if self.has_watchers() {
            self.announce(news.has_unread);
        }
        self.call_listeners(news);
    }

    /// Calls the listener for what a batch contained, after those who wait were notified. No lock may be held.
    #[inline]
    pub(super) fn call_listeners(&self, news: News) {
        if self.has_watchers() {
            self.call_for_settled();
        }
        if news.has_status_news {
            self.call_for_statuses();
        } else if news.has_unread {
            self.call_for_data();
        }
    }

    /// Calls the listener for everything that is new, after those who wait were notified. No lock may be held.
    pub(super) fn call_for_news(&self) {
        self.call_for_settled();
        self.call_for_statuses();
    }

    /// Calls the listeners of the readers whose shared sets have become accessible.
    #[cold]
    fn call_for_settled(&self) {
        if let Some(access) = self.shared_sets.get() {
            access.call_listeners();
        }
    }

    fn call_for_statuses(&self) {
        let (has_unread, counters, has_liveliness_news, has_deadline_news) = {
            let core = self.core.lock();
            (core.has_unread(), core.counters(), core.has_liveliness_news(), core.has_deadline_news())
        };
        if has_deadline_news {
            self.call_listener(ReaderEvent::DeadlineMissed);
        }
        if has_liveliness_news {
            self.call_listener(ReaderEvent::LivelinessChanged);
        }
        if self.lost.lock().total_count != counters.samples_lost {
            self.call_listener(ReaderEvent::SampleLost);
        }
        let rejected = counters.samples_rejected + counters.samples_refused;
        if self.rejected.lock().rejected != rejected {
            self.call_listener(ReaderEvent::SampleRejected);
        }
        if has_unread {
            self.call_for_data();
        }
    }

    /// Calls the listener for new samples. If another thread calls a listener of the reader, that thread does so next.
    pub(super) fn call_for_data(&self) {
        let lent = {
            let mut calls = self.calls.lock();
            if calls.turn.is_taken() {
                calls.turn.leave(DATA);
                return;
            }
            let Some(lent) = calls.lend() else { return };
            calls.turn.take();
            lent
        };
        if !self.call_lent(lent).turn.end() {
            self.call_for_pending();
        }
    }

    /// Calls for what other threads have left to this one, which has the turn, and ends the turn.
    #[cold]
    fn call_for_pending(&self) {
        loop {
            let Some(event) = self.calls.lock().turn.next() else { return };
            match event {
                DATA => {
                    let lent = self.calls.lock().lend();
                    lent.into_iter().for_each(|lent| drop(self.call_lent(lent)));
                }
                PASS_ON => {
                    self.calls.lock().is_in_data = true;
                    self.call_passed_on();
                }
                bit => {
                    self.calls.lock().is_in_data = false;
                    let event = ReaderEvent::STATUSES.into_iter().find(|event| event.bit() == bit);
                    event.into_iter().for_each(|event| self.call_for_status(event));
                }
            }
        }
    }

    /// Calls the listener for new samples, and takes its reference back. Returns the calls, locked.
    #[inline]
    fn call_lent(&self, Lent { listener, is_for_readers, version }: Lent) -> MutexGuard<'_, Calls> {
        self.call_watched(is_for_readers, || {
            self.listener_panics.survive(|| listener(ReaderEvent::DataAvailable));
        });
        let mut calls = self.calls.lock();
        if calls.version == version {
            calls.spare = Some(listener);
            return calls;
        }
        // It was replaced. `calls` is unlocked before it is dropped, as in `set_listener`.
        drop(calls);
        self.listener_panics.survive(move || drop(listener));
        self.calls.lock()
    }

    /// Calls a listener for new samples, and has conditions evaluated if the reader is watched.
    #[inline]
    fn call_watched(&self, is_for_readers: bool, call: impl FnOnce()) {
        let noted = self.watching.is_on().then(|| self.note_call(is_for_readers));
        call();
        if let Some(noted) = noted {
            self.note_return(noted);
        }
    }

    /// Calls `on_data_available` of the listener that DATA_AVAILABLE is for, if there are unread samples. If another
    /// thread calls a listener of the reader, that thread does so next. No lock may be held.
    ///
    /// A listener may call this, but not for the samples that its thread is just calling for.
    pub(crate) fn pass_data_on(&self) {
        let is_within = {
            let mut calls = self.calls.lock();
            let is_within = calls.turn.is_mine();
            if (is_within && calls.is_in_data) || (!is_within && !calls.turn.begin(PASS_ON)) {
                return;
            }
            calls.is_in_data = true;
            is_within
        };
        self.call_passed_on();
        if is_within {
            self.calls.lock().is_in_data = false;
        } else {
            self.call_for_pending();
        }
    }

    fn call_passed_on(&self) {
        let has_unread = self.core.lock().has_unread();
        let owner = self.owner.get().and_then(Weak::upgrade);
        if let Some(owner) = owner.filter(|_| has_unread) {
            self.call_watched(false, || owner.notify_data_available());
        }
    }
}

/// Events that a thread leaves to the one that calls the reader's listeners, besides those of statuses: new samples,
/// ...
const DATA: u16 = 1 << 15;
/// ... and [`ReaderEndpoint::pass_data_on`].
const PASS_ON: u16 = 1 << 14;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use parking_lot::Mutex;
    use weir_rtps::qos::Reliability;
    use weir_rtps::reader::{ReaderConfig, ReaderCore};
    use weir_wire::{EntityId, Guid, GuidPrefix};

    use super::*;
    use crate::builtin_topics::TopicBuiltinTopicData;
    use crate::driver::observers::{Cause, Observe};
    use crate::topic::TopicState;

    fn endpoint() -> Arc<ReaderEndpoint> {
        let guid = Guid::new(GuidPrefix::UNKNOWN, EntityId::UNKNOWN);
        let core = ReaderCore::new(ReaderConfig::new(guid, Reliability::BestEffort));
        let topic = Arc::new(TopicState::new::<TopicBuiltinTopicData>("topic", Weak::new()));
        Arc::new(ReaderEndpoint::new(EntityId::UNKNOWN, core, &topic, &Arc::default()))
    }

    fn all(listener: ReaderListener) -> Own<ReaderListener> {
        Own { mask: StatusMask::ALL, listener: Some(listener), typed: None }
    }

    #[test]
    fn a_listener_that_is_replaced_during_a_call_is_not_called_again_and_is_dropped() {
        let endpoint = endpoint();
        let counts: [Arc<AtomicU64>; 2] = Default::default();
        let calls = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let [first, second] = counts.clone();
        let me = Arc::clone(&endpoint);
        endpoint.set_listener(all(Arc::new(move |_| {
            first.fetch_add(1, Ordering::Relaxed);
            let second = Arc::clone(&second);
            me.set_listener(all(Arc::new(move |_| _ = second.fetch_add(1, Ordering::Relaxed))));
            // More news during the call.
            me.call_for_data();
        })));
        endpoint.call_for_data();
        assert_eq!(calls(), [1, 1]);
        assert_eq!((Arc::strong_count(&counts[0]), Arc::strong_count(&endpoint)), (1, 1));
        endpoint.call_for_data();
        assert_eq!(calls(), [1, 2]);
        endpoint.set_listener(Own::default());
        endpoint.call_for_data();
        assert_eq!(calls(), [1, 2]);
        assert_eq!(Arc::strong_count(&counts[1]), 1, "the spare reference is dropped, too");
    }
    #[test]
    fn all_listener_calls_of_a_reader_are_made_one_after_the_other() {
        let endpoint = endpoint();
        let calls: Arc<Mutex<Vec<Option<ReaderEvent>>>> = Arc::default();
        let (me, log) = (Arc::clone(&endpoint), Arc::clone(&calls));
        endpoint.set_listener(all(Arc::new(move |event| {
            log.lock().push(Some(event));
            // Happen during the first call, which finds the log with one entry.
            if log.lock().len() == 1 {
                std::thread::scope(|scope| {
                    scope.spawn(|| me.call_for_data()).join().unwrap();
                    scope.spawn(|| me.call_listener(ReaderEvent::SampleLost)).join().unwrap();
                    scope.spawn(|| me.call_listener(ReaderEvent::Matched)).join().unwrap();
                });
                me.call_listener(ReaderEvent::Matched);
            }
            log.lock().push(None);
        })));
        for first in [ReaderEvent::DataAvailable, ReaderEvent::LivelinessChanged] {
            match first {
                ReaderEvent::DataAvailable => endpoint.call_for_data(),
                status => endpoint.call_listener(status),
            }
            let calls = std::mem::take(&mut *calls.lock());
            let expected = [first, ReaderEvent::Matched, ReaderEvent::SampleLost, ReaderEvent::DataAvailable];
            assert_eq!(calls, expected.map(|event| [Some(event), None]).concat());
        }
        endpoint.set_listener(Own::default());
    }

    /// Counts how often conditions are evaluated.
    #[derive(Default)]
    struct Evaluations(AtomicU64);

    impl Observe for Evaluations {
        fn changed(&self, _: Cause) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_conditions_of_a_reader_are_evaluated_once_for_a_call_of_its_data_listener() {
        let endpoint = endpoint();
        endpoint.watch();
        let evaluations: Arc<Evaluations> = Arc::default();
        let observer: Weak<dyn Observe> = Arc::<Evaluations>::downgrade(&evaluations);
        endpoint.watching.observers.add(observer);
        let me = Arc::clone(&endpoint);
        let accesses = Arc::new(AtomicU64::new(0));
        let left = Arc::clone(&accesses);
        endpoint.set_listener(all(Arc::new(move |_| {
            (0..left.load(Ordering::Relaxed)).for_each(|_| me.note_access(me.core.lock(), false));
        })));
        // One for each access. Without any, one because the call has reset the status.
        for (accessed, expected) in [(1, 1), (0, 1), (3, 3), (0, 1)] {
            accesses.store(accessed, Ordering::Relaxed);
            evaluations.0.store(0, Ordering::Relaxed);
            endpoint.call_for_data();
            assert_eq!(evaluations.0.load(Ordering::Relaxed), expected, "{accessed} accesses");
        }
        endpoint.set_listener(Own::default());
    }
}
