//! Access to the readers of a subscriber as a group (DDS 1.4, 2.2.2.5.2.8 to 2.2.2.5.2.10).
//!
//! If its readers share coherent sets, a set becomes accessible at all of them at a time: when all of it has arrived,
//! and while the application is not between `begin_access` and `end_access`. Threads that receive settle the sets, and
//! so does a thread that is about to access samples.
//!
//! Lock order: the state, then the core of one reader.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use weir_rtps::reader::groups;
use weir_rtps::time::Time;

use super::endpoints::ReaderEndpoint;
use super::shared::Driver;
use crate::clock;

/// The readers of a subscriber.
#[derive(Default)]
pub(crate) struct GroupAccess {
    state: Mutex<State>,
    /// Its timers are those of the samples that become accessible. Set when the first reader shares its sets.
    driver: OnceLock<Weak<Driver>>,
}

#[derive(Default)]
struct State {
    readers: Vec<Weak<ReaderEndpoint>>,
    /// Readers whose listeners are to be called for sets that have become accessible.
    unreported: Vec<Weak<ReaderEndpoint>>,
    /// Calls of `begin_access` without their end.
    accesses: u32,
}

impl GroupAccess {
    /// Adds a reader.
    pub(crate) fn add(&self, reader: &Arc<ReaderEndpoint>) {
        let mut state = self.state.lock();
        state.readers.retain(|reader| reader.strong_count() > 0);
        state.readers.push(Arc::downgrade(reader));
    }

    /// Sets whose timers are set for samples that become accessible.
    pub(crate) fn set_driver(&self, driver: &Arc<Driver>) {
        self.driver.get_or_init(|| Arc::downgrade(driver));
    }

    /// Returns the readers, in the order in which they were created.
    pub(crate) fn readers(&self) -> Vec<Arc<ReaderEndpoint>> {
        self.state.lock().readers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Begins an access: no set becomes accessible until it ends.
    pub(crate) fn begin(&self) {
        self.settle();
        self.state.lock().accesses += 1;
    }

    /// Ends an access. Returns `false` if none was begun.
    pub(crate) fn end(&self) -> bool {
        {
            let mut state = self.state.lock();
            if state.accesses == 0 {
                return false;
            }
            state.accesses -= 1;
        }
        self.settle_and_announce();
        self.call_listeners();
        true
    }

    /// Makes the sets accessible that have arrived completely, and notifies those who wait. No lock may be held.
    pub(crate) fn settle_and_announce(&self) {
        self.settle();
        let unreported = self.state.lock().unreported.clone();
        unreported.iter().filter_map(Weak::upgrade).for_each(|reader| reader.announce_samples(true));
    }

    /// Calls listeners for the sets that have become accessible. No lock may be held.
    pub(crate) fn call_listeners(&self) {
        let unreported = core::mem::take(&mut self.state.lock().unreported);
        unreported.iter().filter_map(Weak::upgrade).for_each(|reader| reader.call_for_data());
    }

    /// Makes the sets accessible that have arrived completely. No core may be locked.
    ///
    /// Those who wait are notified, and listeners called, by the thread that has received the end of a set:
    /// [`GroupAccess::settle_and_announce`], [`GroupAccess::call_listeners`].
    pub(crate) fn settle(&self) {
        let next = self.settle_at(clock::now());
        if let Some(driver) = next.and_then(|_| self.driver.get()).and_then(Weak::upgrade) {
            driver.outlet.arm(next);
        }
    }

    /// The same at this time. Returns when the first timer of the samples is due, if it was set: they may expire, and
    /// their instances have deadlines.
    fn settle_at(&self, now: Time) -> Option<Time> {
        let mut state = self.state.lock();
        if state.accesses > 0 {
            return None;
        }
        let mut readers: Vec<_> = state.readers.iter().filter_map(Weak::upgrade).collect();
        // Each one is asked.
        if !readers.iter().fold(false, |has_news, reader| reader.core.lock().take_group_news() | has_news) {
            return None;
        }
        let mut progress = Vec::new();
        readers.iter().for_each(|reader| reader.core.lock().group_progress(&mut progress));
        let settled = groups::settle(&progress);
        let mut next = None;
        readers.retain(|reader| {
            let mut core = reader.core.lock();
            settled.iter().for_each(|set| core.settle_set(now, *set));
            next = [next, core.take_timeout()].into_iter().flatten().min();
            !settled.is_empty() && core.has_unread()
        });
        for reader in readers {
            if !state.unreported.iter().any(|known| core::ptr::eq(known.as_ptr(), &raw const *reader)) {
                state.unreported.push(Arc::downgrade(&reader));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_cdr::DdsType;

    use crate::{
        DataReaderQos, DataWriterQos, DomainParticipant, ParticipantSettings, Presentation,
        PresentationScope, PublisherQos, SubscriberQos,
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final")]
    struct Reading {
        value: u32,
    }

    /// Nothing but the test runs the participant, so that no other timer is set meanwhile.
    #[test]
    fn samples_that_become_accessible_with_a_shared_set_have_their_timers() {
        let settings = ParticipantSettings { multicast: false, ..ParticipantSettings::default() };
        let participant = DomainParticipant::new(18, settings.interface("lo").without_threads()).unwrap();
        let topic = participant.create_topic(&format!("shared readings of {}", std::process::id())).unwrap();
        let presentation =
            Presentation { scope: PresentationScope::Group, coherent_access: true, ordered_access: false };
        let (of_publisher, of_subscriber) = (
            PublisherQos::default().presentation(presentation),
            SubscriberQos::default().presentation(presentation),
        );
        for (writer_qos, deadline) in [
            (DataWriterQos::default().lifespan(LONG), Duration::MAX),
            (DataWriterQos::default().deadline(LONG), LONG),
        ] {
            let publisher = participant.create_publisher_with_qos(of_publisher.clone()).unwrap();
            let subscriber = participant.create_subscriber_with_qos(of_subscriber.clone()).unwrap();
            let reader_qos = DataReaderQos::default().reliable().keep_all().deadline(deadline);
            let writer = publisher.create_datawriter(&topic, writer_qos.reliable().keep_all()).unwrap();
            let reader = subscriber.create_datareader(&topic, reader_qos).unwrap();
            subscriber.begin_access().unwrap();
            publisher.begin_coherent_changes().unwrap();
            writer.write(&Reading { value: 1 }).unwrap();
            publisher.end_coherent_changes().unwrap();
            let has_arrived = || {
                let mut progress = Vec::new();
                reader.endpoint().core.lock().group_progress(&mut progress);
                progress.iter().any(|writer| !writer.sets.is_empty())
            };
            while !has_arrived() {
                participant.poll(LONG).unwrap();
            }
            let timers = &participant.handle.driver.outlet.timers;
            let _set_before = timers.end_sleep();
            timers.begin_sleep([Time::MAX; 2]);
            subscriber.end_access().unwrap();
            assert_eq!(reader.available(), 1);
            let until = timers.sleeps_until().unwrap();
            assert!(until <= clock::now() + LONG, "{until:?}");
            let _ends_the_sleep = timers.end_sleep();
        }
    }
}
