//! Ends the participant when one of the engine's threads panics, or the application closes it.
//!
//! Without its receive or timer thread, a participant would receive nothing, and look as if it waited for data. So the
//! first panic of an engine thread ends the participant: it leaves the domain, waiting threads are woken, and calls
//! report the failure. A panic in application code (a listener) is caught at the call, and does not end the
//! participant. A participant that is closed while there are handles ends in the same way: calls report that.
//!
//! The path of a sample does not check for the end. Instead, the end forces calls onto slow paths, which check:
//! writers refuse every sample, the flag for samples held back stays set, and the role of receiving stays taken.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::observers::Cause;
use super::shared::Driver;
use crate::error::{DdsError, Result};

/// What ended a participant.
#[derive(Debug)]
pub(crate) enum End {
    /// A panic.
    Failed { thread: String, panic: String },
    /// The application.
    Closed,
}

/// Whether a participant goes on.
#[derive(Default)]
pub(crate) struct Ending {
    /// The application is closing the participant, or has closed it.
    is_closed: AtomicBool,
    /// Set when a thread has panicked, or the application has closed the participant.
    cause: OnceLock<End>,
    /// Set after it, when the writers are closed.
    has_ended: AtomicBool,
}

impl Driver {
    /// Runs the body of a thread. A panic in it is the participant's failure.
    pub(super) fn run_thread(&self, name: &str, body: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            self.fail(name, text_of(&*panic));
        }
    }

    /// Returns the reason as an error, if the participant has ended or is being closed.
    pub(crate) fn check(&self) -> Result<()> {
        match self.end() {
            Some(error) => Err(error),
            None if self.ending.is_closed.load(Ordering::SeqCst) => Err(CLOSED),
            None => Ok(()),
        }
    }

    /// Returns the failure as an error, if the participant has failed: for calls that close something.
    pub(crate) fn check_failure(&self) -> Result<()> {
        self.failure().map_or(Ok(()), Err)
    }

    /// Returns why the participant has ended, if it has.
    pub(crate) fn end(&self) -> Option<DdsError> {
        if self.has_ended() { self.cause_of_end() } else { None }
    }

    /// The same as soon as writers may be closed, which they are before any call reports the end.
    pub(crate) fn cause_of_end(&self) -> Option<DdsError> {
        Some(match self.ending.cause.get()? {
            End::Failed { thread, panic } => {
                DdsError::ThreadFailed { thread: thread.clone(), panic: panic.clone() }
            }
            End::Closed => CLOSED,
        })
    }

    /// Returns the failure, if the participant has failed.
    pub(crate) fn failure(&self) -> Option<DdsError> {
        self.end().filter(|error| matches!(error, DdsError::ThreadFailed { .. }))
    }

    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.ending.has_ended.load(Ordering::Acquire)
    }

    /// Returns whether the participant's threads are to go on.
    pub(super) fn is_running(&self) -> bool {
        !self.is_stopping() && !self.has_ended()
    }

    /// Refuses to create entities from now on. Returns whether this is the first call.
    pub(crate) fn begin_closing(&self) -> bool {
        !self.ending.is_closed.swap(true, Ordering::SeqCst)
    }

    /// Leaves the domain and ends the threads, while there are handles.
    pub(crate) fn close(&self) {
        self.finish(End::Closed);
        self.stop();
    }

    /// Waits in a call that waits for what a participant that has ended cannot receive, so that an application that
    /// calls it again and again does not use up a processor.
    #[cold]
    pub(super) fn wait_in_vain(&self, left: Duration) {
        std::thread::sleep(left.min(PAUSE));
    }

    /// Ends the participant if discovery has panicked, in whichever thread.
    pub(super) fn look_for_panic(&self) {
        if let Some((thread, panic)) = self.discovery.take_panic() {
            self.fail(&thread, panic);
        }
    }

    fn fail(&self, thread: &str, panic: String) {
        self.finish(End::Failed { thread: thread.to_owned(), panic });
    }

    /// Ends the participant, unless it has ended.
    fn finish(&self, end: End) {
        if self.ending.cause.set(end).is_err() {
            return;
        }
        // First: a thread that sees the end finds every writer closed.
        self.routes.table().writers.values().for_each(|writer| writer.lane.close());
        self.ending.has_ended.store(true, Ordering::Release);
        self.outlet.note_end();
        // Peers need not wait for the end of the lease. After a panic in discovery, this was done then.
        let _ = catch_unwind(AssertUnwindSafe(|| self.with_discovery(|core, now| core.close(now))));
        self.outlet.timers.wake();
        self.listeners.wake();
        self.channel.close();
        self.discovery.announce_change();
        self.routes.table().readers.values().for_each(|reader| reader.wake_watching());
        let builtin = self.builtin.lock().upgrade();
        builtin.into_iter().for_each(|readers| readers.wake());
        self.routes.table().writers.values().for_each(|writer| writer.observers.notify(Cause::News));
        self.state.contained.observed().notify();
        self.state.observers.notify(Cause::News);
    }
}

/// Returns the text of a panic.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without text")
        .to_owned()
}

/// What calls on a closed participant and its entities report.
const CLOSED: DdsError = DdsError::AlreadyDeleted("participant");
/// Longest wait of a call on a participant that has ended.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, Mutex, Weak};

    use weir_cdr::DdsType;
    use weir_rtps::outbox::Item;

    use super::*;
    use crate::driver::observers::Observe;
    use crate::status::SubscriptionMatchedStatus;
    use crate::{
        DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos, DomainParticipant,
        ParticipantSettings, PublishMode, PublisherQos, WaitStrategy,
    };

    const LONG: Duration = Duration::from_secs(60);

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final")]
    struct Number {
        #[dds(key)]
        value: u64,
        bytes: Vec<u8>,
    }

    /// A participant whose peers notice its end by its goodbye only.
    fn participant(domain_id: u32, wait: WaitStrategy) -> DomainParticipant {
        let settings = ParticipantSettings { lease_duration: 100 * LONG, ..ParticipantSettings::default() };
        DomainParticipant::new(domain_id, settings.interface("lo").wait(wait)).unwrap()
    }

    fn domain_id() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        1 + (std::process::id().wrapping_mul(37) + NEXT.fetch_add(1, Ordering::Relaxed)) % 100
    }

    fn driver_of(participant: &DomainParticipant) -> Arc<Driver> {
        Arc::clone(&participant.handle.driver)
    }

    fn panic_on_purpose(_: &Driver) {
        panic!("a thread panics: {}", "on purpose");
    }

    fn is_failure(error: Option<DdsError>) -> bool {
        let Some(DdsError::ThreadFailed { thread, panic }) = error else { return false };
        (&*thread, &*panic) == ("weir-test", "a thread panics: on purpose")
    }

    fn writer(participant: &DomainParticipant, qos: DataWriterQos) -> DataWriter<Number> {
        let topic = participant.create_topic("numbers").unwrap();
        participant.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap()
    }

    fn reader_of(participant: &DomainParticipant, topic: &str) -> DataReader<Number> {
        let topic = participant.create_topic(topic).unwrap();
        participant.create_subscriber().unwrap().create_datareader(&topic, DataReaderQos::default()).unwrap()
    }

    /// Forwards how many writers are matched.
    struct Matches(Mutex<Sender<u64>>);

    impl DataReaderListener<Number> for Matches {
        fn on_subscription_matched(&self, _reader: &DataReader<Number>, status: SubscriptionMatchedStatus) {
            let _ = self.0.lock().unwrap().send(status.current_count);
        }
    }

    #[test]
    fn a_panic_in_a_poll_is_reported_by_every_later_poll() {
        let settings = ParticipantSettings::default().interface("lo").without_threads();
        let failing = DomainParticipant::new(domain_id(), settings).unwrap();
        let numbers = writer(&failing, DataWriterQos::default());
        let driver = driver_of(&failing);
        driver.run_thread("weir-test", || panic_on_purpose(&driver));
        assert!(is_failure(failing.poll(LONG).err()));
        assert!(is_failure(numbers.wait_for_subscriptions(1, LONG).err()));
        assert!(is_failure(numbers.write(&Number::default()).err()));
    }

    #[test]
    fn a_panic_of_a_thread_wakes_waiting_threads_and_is_reported_by_every_call() {
        for wait in [WaitStrategy::Block, WaitStrategy::Spin] {
            let domain_id = domain_id();
            let (failing, peer) = (participant(domain_id, wait), participant(domain_id, wait));
            let (sender, matches) = channel();
            let topic = peer.create_topic("numbers").unwrap();
            let far = peer
                .create_subscriber()
                .unwrap()
                .create_datareader_with_listener(
                    &topic,
                    DataReaderQos::default().reliable(),
                    Matches(Mutex::new(sender)),
                )
                .unwrap();
            let numbers = writer(&failing, DataWriterQos::default().keep_all().max_blocking_time(LONG));
            let topic = failing.create_topic::<Number>("numbers").unwrap();
            let reader = reader_of(&failing, "numbers");
            numbers.wait_for_subscriptions(2, LONG).unwrap();
            numbers.write(&Number::default()).unwrap();
            assert!(far.wait_for_data(LONG).is_ok() && failing.failure().is_none());
            let empty = reader_of(&failing, "nothing");
            std::thread::scope(|scope| {
                let data = scope.spawn(|| empty.wait_for_data(LONG));
                let more = scope.spawn(|| numbers.wait_for_subscriptions(100, LONG));
                driver_of(&failing).spawn("weir-test", panic_on_purpose).unwrap();
                assert!(is_failure(data.join().unwrap().err()));
                assert!(is_failure(more.join().unwrap().err()));
            });
            let loaned = numbers.register_instance(&Number::default());
            let results = [
                numbers.write(&Number::default()),
                numbers.write(&Number { value: 0, bytes: vec![0; 1 << 20] }),
                numbers.write_w_timestamp(&Number::default(), std::time::SystemTime::UNIX_EPOCH),
                numbers.dispose(&Number::default()),
                loaned.map(drop),
                numbers.wait_for_acknowledgments(LONG),
                numbers.wait_for_asynchronous_publishing(LONG),
                numbers.assert_liveliness(),
                reader.wait_for_publications(100, LONG),
                failing.assert_liveliness(),
                failing.create_topic::<Number>("numbers").map(drop),
                failing
                    .create_publisher()
                    .and_then(|it| it.create_datawriter(&topic, DataWriterQos::default()).map(drop)),
                failing
                    .create_subscriber()
                    .and_then(|it| it.create_datareader(&topic, DataReaderQos::default()).map(drop)),
            ];
            for (call, result) in results.into_iter().enumerate() {
                let told = format!("call {call}: {result:?}");
                assert!(is_failure(result.err()), "{told}");
            }
            assert!(
                is_failure(failing.failure())
                    && is_failure(numbers.failure())
                    && is_failure(reader.failure())
            );
            // Again and again, without waiting for the timeout.
            assert!((0..3).all(|_| is_failure(empty.wait_for_data(LONG).err())));
            // The peer was notified.
            assert!(matches.iter().any(|count| count == 0));
            drop((numbers, reader, empty));
        }
    }

    #[derive(Default)]
    struct Changes(AtomicU32);

    impl Observe for Changes {
        fn changed(&self, cause: Cause) {
            self.0.fetch_add(u32::from(cause == Cause::News), Ordering::SeqCst);
        }
    }

    /// Wait sets with conditions of several participants wait for nothing else.
    #[test]
    fn a_failure_notifies_wait_sets_with_any_status_condition() {
        let settings = ParticipantSettings::default().interface("lo").without_threads();
        let failing = DomainParticipant::new(domain_id(), settings).unwrap();
        let topic = failing.create_topic::<Number>("numbers").unwrap();
        let publisher = failing.create_publisher().unwrap();
        let subscriber = failing.create_subscriber().unwrap();
        let changes = [(); 4].map(|()| Arc::new(Changes::default()));
        let driver = driver_of(&failing);
        let (topic, publisher, subscriber) =
            (&topic.state.observers, &publisher.state.observers, &subscriber.state.observers);
        let observers = [&driver.state.observers, topic, publisher, subscriber];
        for (observers, changes) in observers.into_iter().zip(&changes) {
            let changes: Weak<dyn Observe> = Arc::<Changes>::downgrade(changes);
            observers.add(changes);
        }
        driver.run_thread("weir-test", || panic_on_purpose(&driver));
        assert_eq!(changes.map(|it| it.0.load(Ordering::SeqCst)), [1; 4]);
    }

    #[test]
    fn a_thread_that_waits_for_room_learns_of_the_failure() {
        let domain_id = domain_id();
        let peer = participant(domain_id, WaitStrategy::Block);
        let topic = peer.create_topic("numbers").unwrap();
        // Keeps one sample, which is not taken.
        let limits = crate::ResourceLimits::default().max_samples(1);
        let qos = DataReaderQos::default().reliable().keep_all().resource_limits(limits);
        let _far: DataReader<Number> =
            peer.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap();
        for mode in [PublishMode::Synchronous, PublishMode::Asynchronous] {
            let failing = participant(domain_id, WaitStrategy::Block);
            let qos = DataWriterQos::default().keep_all().max_blocking_time(LONG).publish_mode(mode);
            let numbers = writer(&failing, qos);
            numbers.wait_for_subscriptions(1, LONG).unwrap();
            std::thread::scope(|scope| {
                let blocked = scope.spawn(|| {
                    loop {
                        if let Err(error) = numbers.write(&Number { value: 1, bytes: vec![0; 10_000] }) {
                            return error;
                        }
                    }
                });
                driver_of(&failing).spawn("weir-test", panic_on_purpose).unwrap();
                assert!(is_failure(Some(blocked.join().unwrap())));
            });
        }
    }

    /// An item that cannot be sent: its bytes are not there.
    fn broken_item() -> Item {
        Item {
            scratch: usize::MAX - 9..usize::MAX,
            ..Item::of(Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9)]), None)
        }
    }

    fn failed_thread(reader: &DataReader<Number>) -> String {
        match reader.wait_for_publications(1, LONG) {
            Err(DdsError::ThreadFailed { thread, .. }) => thread,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_panic_of_the_receive_thread_is_a_failure() {
        let participant = participant(domain_id(), WaitStrategy::Block);
        let driver = driver_of(&participant);
        let reader = reader_of(&participant, "nothing");
        std::thread::scope(|scope| {
            let failed = scope.spawn(|| failed_thread(&reader));
            let kicks = scope.spawn(|| {
                // A thread that sleeps in a receive call gives up the role when something arrives.
                while participant.failure().is_none() {
                    driver.channel.kick();
                    std::thread::yield_now();
                }
            });
            driver.channel.wait_for_role().outbox.items.push(broken_item());
            kicks.join().unwrap();
            assert_eq!(failed.join().unwrap(), "weir-receive");
        });
    }

    #[test]
    fn a_panic_in_discovery_is_a_failure_in_any_thread_and_peers_hear_of_the_end() {
        let domain_id = domain_id();
        let [failing, peer] = [(); 2].map(|()| participant(domain_id, WaitStrategy::Block));
        let (sender, matches) = channel();
        let topic = peer.create_topic("numbers").unwrap();
        let listener = Matches(Mutex::new(sender));
        let _far = peer
            .create_subscriber()
            .unwrap()
            .create_datareader_with_listener(&topic, DataReaderQos::default(), listener)
            .unwrap();
        let numbers = writer(&failing, DataWriterQos::default());
        numbers.wait_for_subscriptions(1, LONG).unwrap();
        // The reader may match later. The end of a writer that it does not know is no news to it.
        assert!(matches.iter().any(|count| count == 1));
        let driver = driver_of(&failing);
        let application = std::thread::Builder::new().name("weir-test".to_owned());
        let panics = move || driver.with_discovery(|_, _| panic!("a thread panics: {}", "on purpose"));
        assert!(application.spawn(panics).unwrap().join().is_err());
        assert!(is_failure(numbers.wait_for_subscriptions(100, LONG).err()));
        assert!(matches.iter().any(|count| count == 0));
    }

    /// The failure may come after the check of `enable`, and close the writers before it opens this one.
    #[test]
    fn a_writer_that_is_enabled_during_a_failure_stays_closed() {
        let participant = participant(domain_id(), WaitStrategy::Block);
        let qos = PublisherQos::default().autoenable_created_entities(false);
        let topic = participant.create_topic("numbers").unwrap();
        let publisher = participant.create_publisher_with_qos(qos).unwrap();
        let numbers: DataWriter<Number> =
            publisher.create_datawriter(&topic, DataWriterQos::default()).unwrap();
        let (thread, panic) = ("weir-test".to_owned(), "a thread panics: on purpose".to_owned());
        driver_of(&participant).ending.cause.set(End::Failed { thread, panic }).unwrap();
        assert!(is_failure(numbers.enable().err()));
        assert!(is_failure(numbers.write(&Number::default()).err()));
    }

    #[test]
    fn a_panic_of_the_timer_thread_is_a_failure() {
        let participant = participant(domain_id(), WaitStrategy::Block);
        let driver = driver_of(&participant);
        let reader = reader_of(&participant, "nothing");
        driver.discovery.state.lock().outbox.items.push(broken_item());
        // Whatever arrives makes the thread send what is due.
        let mut to = driver.meta.unicast.local_addr();
        to.set_ip(Ipv4Addr::LOCALHOST);
        driver.channel.socket.send_to(b"RTPS", to.into()).unwrap();
        assert_eq!(failed_thread(&reader), "weir-timers");
        // Dropping what is left reaches discovery, which is sound again.
        drop(reader);
    }
}
