//! Listeners: called once per event, by one thread at a time, and free to call the engine.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterListener, DataWriterQos,
    DomainParticipant, IncompatibleQosStatus, InconsistentTopicStatus, PolicyId, PublicationMatchedStatus,
    SubscriptionMatchedStatus, Topic, TopicListener, TypeDifference,
};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, take_exactly, take_numbered,
};

/// Calls a closure for data.
struct OnData<F>(F);

impl<T, F: Fn(&DataReader<T>) + Send + Sync> DataReaderListener<T> for OnData<F> {
    fn on_data_available(&self, reader: &DataReader<T>) {
        (self.0)(reader);
    }
}

/// Forwards statuses: `M` is that of matches.
struct Statuses<M>(Mutex<Sender<M>>, Mutex<Sender<IncompatibleQosStatus>>);

impl<M> Statuses<M> {
    fn new() -> (Self, Receiver<M>, Receiver<IncompatibleQosStatus>) {
        let (matched, incompatible) = (channel(), channel());
        (Self(Mutex::new(matched.0), Mutex::new(incompatible.0)), matched.1, incompatible.1)
    }
}

impl<T> DataReaderListener<T> for Statuses<SubscriptionMatchedStatus> {
    fn on_subscription_matched(&self, _reader: &DataReader<T>, status: SubscriptionMatchedStatus) {
        let _ = self.0.lock().unwrap().send(status);
    }

    fn on_requested_incompatible_qos(&self, _reader: &DataReader<T>, status: IncompatibleQosStatus) {
        let _ = self.1.lock().unwrap().send(status);
    }
}

impl<T> DataWriterListener<T> for Statuses<PublicationMatchedStatus> {
    fn on_publication_matched(&self, _writer: &DataWriter<T>, status: PublicationMatchedStatus) {
        let _ = self.0.lock().unwrap().send(status);
    }

    fn on_offered_incompatible_qos(&self, _writer: &DataWriter<T>, status: IncompatibleQosStatus) {
        let _ = self.1.lock().unwrap().send(status);
    }
}

fn reader_with<T: weir_dds::DdsType>(
    world: &World,
    on: &DomainParticipant,
    listener: impl DataReaderListener<T> + 'static,
) -> DataReader<T> {
    let topic = world.topic(on);
    on.create_subscriber()
        .unwrap()
        .create_datareader_with_listener(&topic, lossless_reader(), listener)
        .unwrap()
}

#[test]
fn a_listener_hears_of_all_data() {
    const COUNT: u64 = 20_000;
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let (done, is_done) = channel();
    let (next, done) = (AtomicU64::new(0), Mutex::new(done));
    let reader = reader_with(
        &world,
        &world.participant(),
        OnData(move |reader: &DataReader<Numbered>| {
            for sample in reader.take(usize::MAX) {
                let is_next =
                    *sample.data().unwrap() == Numbered::new(0, next.fetch_add(1, Ordering::Relaxed));
                if !is_next || sample.data().unwrap().number == COUNT - 1 {
                    let _ = done.lock().unwrap().send(is_next);
                }
            }
        }),
    );
    matched(&[&writer], &[&reader]);
    for number in 0..COUNT {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    assert!(is_done.recv_timeout(DEADLINE).unwrap());
}

#[test]
fn a_listener_that_takes_one_sample_at_a_time_is_called_again_for_the_next() {
    // Each call takes one of the samples; a new sample causes another call, so none has to stay
    // behind.
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let (taken, is_taken) = channel();
    let taken = Mutex::new(taken);
    let reader = reader_with(
        &world,
        &world.participant(),
        OnData(move |reader: &DataReader<Numbered>| {
            for sample in reader.take(1) {
                let _ = taken.lock().unwrap().send(sample.data().unwrap().number);
            }
        }),
    );
    matched(&[&writer], &[&reader]);
    for number in 0..500 {
        writer.write(&Numbered::new(0, number)).unwrap();
        assert_eq!(is_taken.recv_timeout(DEADLINE).unwrap(), number);
    }
}

#[test]
fn one_reader_is_never_in_its_listener_twice() {
    // At the same time: data, threads that wait (and so receive and call listeners), and writers
    // that leave (which changes instances, reported by another thread).
    let world = World::new();
    let there = world.participant();
    let here = world.participant();
    let (inside, twice, calls) =
        (AtomicBool::new(false), Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (saw_twice, count) = (Arc::clone(&twice), Arc::clone(&calls));
    let reader = reader_with(
        &world,
        &here,
        OnData(move |reader: &DataReader<Keyed>| {
            if inside.swap(true, Ordering::SeqCst) {
                saw_twice.store(true, Ordering::SeqCst);
            }
            count.fetch_add(1, Ordering::SeqCst);
            for _ in 0..50 {
                std::thread::yield_now();
            }
            reader.take(usize::MAX);
            inside.store(false, Ordering::SeqCst);
        }),
    );
    let other_world = world.sibling();
    let idle: [DataReader<Numbered>; 3] = [0; 3].map(|_| other_world.reader(&here, lossless_reader()));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in &idle {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let _ = reader.wait_for_data(std::time::Duration::from_millis(2));
                }
            });
        }
        for round in 0..30 {
            let writer = world.writer(&there, lossless_writer());
            let steady = world.writer(&there, lossless_writer());
            writer.wait_for_subscriptions(1, DEADLINE).unwrap();
            steady.wait_for_subscriptions(1, DEADLINE).unwrap();
            for id in 0..20 {
                writer.write(&Keyed { id, value: round }).unwrap();
            }
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
            drop(writer);
            for id in 100..150 {
                steady.write(&Keyed { id, value: round }).unwrap();
            }
            steady.wait_for_acknowledgments(DEADLINE).unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(!twice.load(Ordering::SeqCst));
    assert!(calls.load(Ordering::SeqCst) > 0);
    drop(reader);
}

#[test]
fn listeners_hear_of_matches_and_of_their_end() {
    let world = World::new();
    let (listener, reader_matched, _) = Statuses::new();
    let reader: DataReader<Numbered> = reader_with(&world, &world.participant(), listener);
    let participant = world.participant();
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    let (listener, writer_matched, _) = Statuses::new();
    writer.set_listener(Some(Arc::new(listener)));
    let status = reader_matched.recv_timeout(DEADLINE).unwrap();
    assert_eq!((status.total_count, status.current_count, status.total_count_change), (1, 1, 1));
    assert_eq!(status.last_publication_handle, Some(writer.instance_handle()));

    drop(writer);
    let status = reader_matched.recv_timeout(DEADLINE).unwrap();
    assert_eq!((status.total_count, status.current_count, status.current_count_change), (1, 0, -1));
    drop(writer_matched);

    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    let (listener, writer_matched, _) = Statuses::new();
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    writer.set_listener(Some(Arc::new(listener)));
    let handle = reader.instance_handle();
    drop(reader);
    // The match may be reported, too, if the listener was set just in time.
    let last = writer_matched.iter().find(|status| status.current_count == 0).unwrap();
    assert_eq!((last.total_count, last.last_subscription_handle), (1, Some(handle)));
}

#[test]
fn a_listener_given_at_creation_hears_of_readers_that_match_during_creation() {
    let world = World::new();
    let participant = world.participant();
    let reader: DataReader<Numbered> = world.reader(&participant, lossless_reader());
    let refused: DataReader<Numbered> = {
        let qos = lossless_reader().transient_local();
        world.reader(&participant, qos)
    };
    let (listener, writer_matched, writer_incompatible) = Statuses::new();
    let publisher = participant.create_publisher().unwrap();
    let topic = world.topic::<Numbered>(&participant);
    let writer = publisher.create_datawriter_with_listener(&topic, lossless_writer(), listener).unwrap();
    let status = writer_matched.recv_timeout(DEADLINE).unwrap();
    assert_eq!(
        (status.total_count, status.total_count_change, status.last_subscription_handle),
        (1, 1, Some(reader.instance_handle()))
    );
    let status = writer_incompatible.recv_timeout(DEADLINE).unwrap();
    assert_eq!((status.total_count, status.last_policy_id), (1, Some(PolicyId::Durability)));
    drop((writer, refused));
}

#[test]
fn a_topic_reports_endpoints_with_another_type() {
    struct Inconsistent(Mutex<Sender<InconsistentTopicStatus>>);
    impl TopicListener<Numbered> for Inconsistent {
        fn on_inconsistent_topic(&self, topic: &Topic<Numbered>, status: InconsistentTopicStatus) {
            assert_eq!(topic.type_name(), "Numbered");
            let _ = self.0.lock().unwrap().send(status);
        }
    }
    let world = World::new();
    let participant = world.participant();
    let topic = world.topic::<Numbered>(&participant);
    let (told, statuses) = channel();
    topic.set_listener(Some(Arc::new(Inconsistent(Mutex::new(told)))));
    let publisher = participant.create_publisher().unwrap();
    let writers = [(); 2].map(|()| publisher.create_datawriter(&topic, lossless_writer()).unwrap());
    let reader: DataReader<Keyed> = world.reader(&world.participant(), lossless_reader());
    let status = statuses.recv_timeout(DEADLINE).unwrap();
    assert_eq!((status.total_count, status.total_count_change), (1, 1), "both writers find the same reader");
    let last = status.last.unwrap();
    assert_eq!(
        (last.handle, last.type_name.as_str(), last.difference),
        (reader.instance_handle(), "Keyed", TypeDifference::Name)
    );
    let _second: DataReader<Keyed> = world.reader(&world.participant(), lossless_reader());
    let status = statuses.recv_timeout(DEADLINE).unwrap();
    assert_eq!((status.total_count, status.total_count_change), (2, 1));
    assert_eq!(topic.inconsistent_topic_status().total_count_change, 0);
    drop(writers);
}

#[test]
fn listeners_hear_of_qos_that_does_not_fit() {
    let world = World::new();
    let (listener, _, reader_incompatible) = Statuses::new();
    let _reader: DataReader<Numbered> = reader_with(&world, &world.participant(), listener);
    let writer: DataWriter<Numbered> =
        world.writer(&world.participant(), DataWriterQos::default().best_effort());
    let status = reader_incompatible.recv_timeout(DEADLINE).unwrap();
    assert_eq!((status.total_count, status.last_policy_id), (1, Some(PolicyId::Reliability)));

    let (listener, _, writer_incompatible) = Statuses::new();
    writer.set_listener(Some(Arc::new(listener)));
    let _second: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    assert_eq!(
        writer_incompatible.recv_timeout(DEADLINE).unwrap().last_policy_id,
        Some(PolicyId::Reliability)
    );
}

#[test]
fn a_listener_may_write_and_wait_for_acknowledgements() {
    let world = World::new();
    let (ping, pong) = (world.sibling(), world.sibling());
    let (near, far) = (world.participant(), world.participant());
    let far_writer = pong.writer(&far, lossless_writer());
    let echo = far_writer.clone();
    let listener = OnData(move |reader: &DataReader<Numbered>| {
        for sample in reader.take(usize::MAX) {
            echo.write(sample.data().unwrap()).unwrap();
            echo.wait_for_acknowledgments(DEADLINE).unwrap();
        }
    });
    let far_reader = reader_with(&ping, &far, listener);
    let writer = ping.writer(&near, lossless_writer());
    let reader = pong.reader(&near, lossless_reader());
    matched(&[&writer], &[&far_reader]);
    matched(&[&far_writer], &[&reader]);
    for number in 0..200 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    take_numbered(&reader, 0, 200);
}

#[test]
fn listeners_may_write_through_the_writers_whose_threads_called_them() {
    // Two topics, two writers and two readers. The writing threads find their windows full and
    // receive, which calls the listeners, and these write through the same writers.
    const COUNT: u64 = 4_000;
    let world = World::new();
    let here = world.participant();
    let there = world.participant();
    let echoes = Arc::new(AtomicU64::new(0));
    let writers: [DataWriter<Numbered>; 2] = [0, 1].map(|_| world.writer(&here, lossless_writer()));
    let (listening, count) = (writers.clone(), Arc::clone(&echoes));
    let reader = reader_with(
        &world,
        &here,
        OnData(move |reader: &DataReader<Numbered>| {
            for sample in reader.take(usize::MAX) {
                if sample.data().unwrap().source < 2 {
                    let echo =
                        Numbered::new(sample.data().unwrap().source + 2, sample.data().unwrap().number);
                    listening[(1 - sample.data().unwrap().source) as usize].write(&echo).unwrap();
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
        }),
    );
    let far = world.reader(&there, lossless_reader());
    matched(&writers.each_ref(), &[&reader, &far]);
    std::thread::scope(|scope| {
        for (source, writer) in writers.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..COUNT {
                    writer.write(&Numbered::new(source as u32, number)).unwrap();
                }
            });
        }
        let mut next = [0; 4];
        for sample in take_exactly(&far, 4 * COUNT as usize) {
            let source = sample.data().unwrap().source as usize;
            assert_eq!(*sample.data().unwrap(), Numbered::new(source as u32, next[source]));
            next[source] += 1;
        }
    });
    assert_eq!(echoes.load(Ordering::SeqCst), 2 * COUNT);
}

#[test]
fn the_last_handles_may_be_dropped_in_a_listener() {
    let world = World::new();
    let (listener, writer_matched, _) = Statuses::new();
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    writer.set_listener(Some(Arc::new(listener)));
    type Everything = Arc<Mutex<Option<(DomainParticipant, DataReader<Numbered>)>>>;
    let everything: Everything = Arc::default();
    let (dropped, is_dropped) = channel();
    let (held, dropped) = (Arc::clone(&everything), Mutex::new(dropped));
    let participant = world.participant();
    let reader = reader_with(
        &world,
        &participant,
        OnData(move |_: &DataReader<Numbered>| {
            let last = held.lock().unwrap().take();
            if last.is_some() {
                drop(last);
                let _ = dropped.lock().unwrap().send(());
            }
        }),
    );
    matched(&[&writer], &[&reader]);
    *everything.lock().unwrap() = Some((participant, reader));
    writer.write(&Numbered::new(0, 0)).unwrap();
    is_dropped.recv_timeout(DEADLINE).unwrap();
    loop {
        if writer_matched.recv_timeout(DEADLINE).unwrap().current_count == 0 {
            return;
        }
    }
}

#[test]
fn the_last_handles_may_be_dropped_in_a_listener_of_matches() {
    struct DropsAll(Mutex<Option<DomainParticipant>>, Mutex<Option<DataWriter<Numbered>>>, Mutex<Sender<()>>);
    impl DataReaderListener<Numbered> for DropsAll {
        fn on_subscription_matched(&self, _: &DataReader<Numbered>, _: SubscriptionMatchedStatus) {
            drop(self.0.lock().unwrap().take());
            drop(self.1.lock().unwrap().take());
            let _ = self.2.lock().unwrap().send(());
        }
    }
    let world = World::new();
    let participant = world.participant();
    let other = world.sibling();
    let writer = other.writer(&participant, lossless_writer());
    let (dropped, is_dropped) = channel();
    let topic = world.topic(&participant);
    let listener =
        DropsAll(Mutex::new(Some(participant.clone())), Mutex::new(Some(writer)), Mutex::new(dropped));
    let subscriber = participant.create_subscriber().unwrap();
    let reader = subscriber.create_datareader_with_listener(&topic, lossless_reader(), listener).unwrap();
    drop((participant, subscriber));
    let far: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    is_dropped.recv_timeout(DEADLINE).unwrap();
    drop(reader);
    drop(far);
}

#[test]
fn a_listener_may_hold_a_writer_of_the_topic_that_it_listens_to() {
    // Dropping the reader drops the listener and with it the last handle of the writer, which is an
    // event for the reader.
    let world = World::new();
    let participant = world.participant();
    let writer = world.writer(&participant, lossless_writer());
    let held = writer.clone();
    let reader = reader_with(
        &world,
        &participant,
        OnData(move |_: &DataReader<Numbered>| {
            let _ = held.guid();
        }),
    );
    matched(&[&writer], &[&reader]);
    drop(writer);
    reader.set_listener(None);
    drop(reader);
}

#[test]
fn a_listener_that_is_removed_is_dropped_with_what_it_holds() {
    let world = World::new();
    let participant = world.participant();
    let held = Arc::new(());
    let (of_reader, of_writer) = (Arc::clone(&held), Arc::clone(&held));
    struct Holds(#[expect(dead_code, reason = "only held")] Arc<()>);
    impl DataWriterListener<Numbered> for Holds {}
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    writer.set_listener(Some(Arc::new(Holds(of_writer))));
    let reader = reader_with(
        &world,
        &participant,
        OnData(move |_: &DataReader<Numbered>| {
            let _ = &of_reader;
        }),
    );
    matched(&[&writer], &[&reader]);
    writer.write(&Numbered::new(0, 0)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    drop((writer, reader, participant));
    // The thread that calls listeners may be about to drop the last handle.
    let deadline = Instant::now() + DEADLINE;
    while Arc::strong_count(&held) > 1 {
        assert!(Instant::now() < deadline, "the listener is still referenced");
        std::thread::yield_now();
    }
}

#[test]
fn a_listener_set_later_hears_of_what_comes_next() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let reader: DataReader<Numbered> =
        world.reader(&world.participant(), DataReaderQos::default().reliable().keep_all());
    matched(&[&writer], &[&reader]);
    let (heard, is_heard) = channel();
    let heard = Mutex::new(heard);
    reader.set_listener(Some(Arc::new(OnData(move |reader: &DataReader<Numbered>| {
        let _ = heard.lock().unwrap().send(reader.take(usize::MAX).len());
    }))));
    writer.write(&Numbered::new(0, 0)).unwrap();
    assert_eq!(is_heard.recv_timeout(DEADLINE).unwrap(), 1);
    reader.set_listener(None);
    writer.write(&Numbered::new(0, 1)).unwrap();
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().number, 1);
}

#[test]
fn a_listener_of_matches_may_wait_for_another_match() {
    struct WaitsForSecond(Mutex<Sender<bool>>);
    impl DataWriterListener<Numbered> for WaitsForSecond {
        fn on_publication_matched(&self, writer: &DataWriter<Numbered>, _: PublicationMatchedStatus) {
            let _ = self.0.lock().unwrap().send(writer.wait_for_subscriptions(2, DEADLINE).is_ok());
        }
    }
    let world = World::new();
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    let (told, is_told) = channel();
    writer.set_listener(Some(Arc::new(WaitsForSecond(Mutex::new(told)))));
    let first: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    first.wait_for_publications(1, DEADLINE).unwrap();
    let second: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    assert!(is_told.recv_timeout(DEADLINE * 2).unwrap());
    drop((first, second));
}

#[test]
fn a_listener_that_panics_is_called_for_the_next_news_all_the_same() {
    struct Panics(Mutex<Sender<u64>>);
    impl DataWriterListener<Numbered> for Panics {
        fn on_publication_matched(&self, _: &DataWriter<Numbered>, status: PublicationMatchedStatus) {
            let _ = self.0.lock().map(|told| told.send(status.current_count));
            panic!("a listener of matches panics: on purpose");
        }
    }
    let world = World::new();
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    let (told, is_told) = channel();
    writer.set_listener(Some(Arc::new(Panics(Mutex::new(told)))));
    let (heard, is_heard) = channel();
    let heard = Mutex::new(heard);
    let reader = reader_with(
        &world,
        &world.participant(),
        OnData(move |reader: &DataReader<Numbered>| {
            for sample in reader.take(usize::MAX) {
                let _ = heard.lock().map(|heard| heard.send(sample.data().unwrap().number));
            }
            panic!("a listener of data panics: on purpose");
        }),
    );
    assert_eq!(is_told.recv_timeout(DEADLINE).unwrap(), 1);
    for number in 0..3 {
        writer.write(&Numbered::new(0, number)).unwrap();
        assert_eq!(is_heard.recv_timeout(DEADLINE).unwrap(), number);
    }
    // Each panic is counted. The last one may not have been caught yet.
    assert!((2..=3).contains(&reader.listener_panics()), "{}", reader.listener_panics());
    assert!(reader.failure().is_none());
    drop(reader);
    assert_eq!(is_told.recv_timeout(DEADLINE).unwrap(), 0);
    assert!(writer.listener_panics() >= 1 && writer.failure().is_none());
    writer.write(&Numbered::new(0, 3)).unwrap();
}
