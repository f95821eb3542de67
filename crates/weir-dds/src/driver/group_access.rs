//! Access to the readers of a subscriber as a group (DDS 1.4, 2.2.2.5.2.8 to 2.2.2.5.2.10).
//!
//! If its readers share coherent sets, a set becomes accessible at all of them at a time: when all of it has arrived,
//! and while the application is not between `begin_access` and `end_access`. Threads that receive settle the sets, and
//! so does a thread that is about to access samples.
//!
//! Lock order: the state, then the core of one reader.

use std::sync::atomic::Ordering;
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
    /// A reader was closed since the sets were settled: those that waited for it may be complete.
    has_left: bool,
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

    /// Stops waiting for a reader that was closed: sets of the others become accessible. No lock may be held.
    pub(crate) fn note_closed(&self) {
        self.state.lock().has_left = true;
        self.settle_and_announce();
        self.call_listeners();
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
        readers.retain(|reader| !reader.is_closed.load(Ordering::SeqCst));
        let has_left = core::mem::take(&mut state.has_left);
        // Each one is asked.
        if !readers.iter().fold(has_left, |has_news, reader| reader.core.lock().take_group_news() | has_news)
        {
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
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use weir_cdr::DdsType;
    use weir_wire::SequenceNumber;

    use crate::{
        DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos, DomainParticipant,
        ParticipantSettings, Presentation, PresentationScope, Publisher, PublisherQos, ResourceLimits,
        Subscriber, SubscriberQos,
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

    #[derive(Clone, Default)]
    struct Calls(Arc<AtomicU32>);

    impl DataReaderListener<Reading> for Calls {
        fn on_data_available(&self, _: &DataReader<Reading>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Two matched writers of one publisher, and two readers of one subscriber, the second one with a listener.
    struct Two {
        participant: DomainParticipant,
        publisher: Publisher,
        subscriber: Subscriber,
        writers: [DataWriter<Reading>; 2],
        readers: [DataReader<Reading>; 2],
        calls: Calls,
    }

    impl Two {
        /// `topic`: a name that no other test uses. `limits`: those of the first reader.
        fn new(topic: &str, limits: ResourceLimits) -> Self {
            let settings = ParticipantSettings { multicast: false, ..ParticipantSettings::default() };
            let participant = DomainParticipant::new(18, settings.interface("lo").without_threads()).unwrap();
            let presentation = Presentation {
                scope: PresentationScope::Group,
                coherent_access: true,
                ordered_access: false,
            };
            let of_publisher = PublisherQos::default().presentation(presentation);
            let publisher = participant.create_publisher_with_qos(of_publisher).unwrap();
            let of_subscriber = SubscriberQos::default().presentation(presentation);
            let subscriber = participant.create_subscriber_with_qos(of_subscriber).unwrap();
            let topics = ["first", "second"].map(|which| {
                participant.create_topic(&format!("{which} {topic} of {}", std::process::id())).unwrap()
            });
            let qos = DataReaderQos::default().reliable().keep_all();
            let calls = Calls::default();
            let readers = [
                subscriber.create_datareader(&topics[0], qos.clone().resource_limits(limits)).unwrap(),
                subscriber.create_datareader_with_listener(&topics[1], qos, calls.clone()).unwrap(),
            ];
            let qos = DataWriterQos::default().reliable().keep_all();
            let writers = topics.each_ref().map(|it| publisher.create_datawriter(it, qos.clone()).unwrap());
            let two = Self { participant, publisher, subscriber, writers, readers, calls };
            two.poll_until(|| {
                two.readers.iter().all(|it| it.subscription_matched_status().current_count == 1)
                    && two.writers.iter().all(|it| it.publication_matched_status().current_count == 1)
            });
            two
        }

        fn poll_until(&self, mut is_done: impl FnMut() -> bool) {
            while !is_done() {
                self.participant.poll(LONG).unwrap();
            }
        }

        /// Writes a set, of one sample of each of these writers.
        fn write_set(&self, writers: &[DataWriter<Reading>]) {
            self.publisher.begin_coherent_changes().unwrap();
            writers.iter().for_each(|writer| writer.write(&Reading { value: 1 }).unwrap());
            self.publisher.end_coherent_changes().unwrap();
        }

        /// Polls until a set has ended at the second reader, accessible or not.
        fn poll_until_set_arrives(&self) {
            self.poll_until(|| {
                let mut progress = Vec::new();
                self.readers[1].endpoint().core.lock().group_progress(&mut progress);
                progress.iter().any(|writer| writer.ended > SequenceNumber::ZERO)
            });
        }
    }

    #[test]
    fn sets_do_not_wait_for_a_closed_reader() {
        let two = Two::new("readings after a close", ResourceLimits::default());
        two.readers[0].close().unwrap();
        two.write_set(&two.writers[1..]);
        two.poll_until_set_arrives();
        assert_eq!(two.readers[1].available(), 1);
    }

    /// A set that has arrived at the second reader, and waits for the first one.
    fn waiting_set(topic: &str) -> Two {
        let two = Two::new(topic, ResourceLimits::default().max_samples(1));
        // The first reader has no room for its part of the set.
        two.writers[0].write(&Reading { value: 0 }).unwrap();
        two.poll_until(|| two.readers[0].available() == 1);
        two.write_set(&two.writers);
        two.poll_until_set_arrives();
        assert_eq!(two.readers[1].available(), 0);
        two
    }

    #[test]
    fn a_set_that_waits_for_a_reader_is_accessible_when_that_is_closed() {
        let two = waiting_set("readings before a close");
        two.readers[0].close().unwrap();
        assert_eq!(two.calls.0.load(Ordering::SeqCst), 1);
        assert_eq!(two.readers[1].available(), 1);
    }

    #[test]
    fn a_set_that_waits_is_not_accessible_because_all_readers_are_closed() {
        let two = waiting_set("readings before an end");
        two.subscriber.delete_contained_entities().unwrap();
        assert_eq!(two.calls.0.load(Ordering::SeqCst), 0);
        assert_eq!(two.readers[1].available(), 0);
    }
}
