//! Participants without threads, which the application polls. (That they start none is tested with the allocations.)

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use weir_dds::{
    BatchPolicy, DataReader, DataReaderListener, DataWriter, DataWriterQos, DdsError, DomainParticipant,
    GuardCondition, ParticipantSettings, PublishMode, States, SubscriptionMatchedStatus, WaitSet,
    WaitStrategy,
};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, poll_until, settings, take_exactly,
};

/// A matched writer and reader in participants that the test polls.
fn pair(
    qos: DataWriterQos,
    settings: ParticipantSettings,
) -> ([DomainParticipant; 2], DataWriter<Numbered>, DataReader<Numbered>) {
    let world = World::new();
    let participants = [0, 1].map(|_| world.participant_with(settings.clone()));
    let writer = world.writer(&participants[0], qos);
    let reader = world.reader(&participants[1], lossless_reader());
    poll_until(&participants.each_ref(), || {
        writer.publication_matched_status().current_count == 1
            && reader.subscription_matched_status().current_count == 1
    });
    (participants, writer, reader)
}

#[test]
fn one_thread_polls_two_participants_that_exchange_samples() {
    const COUNT: u64 = 500;
    for qos in [lossless_writer(), lossless_writer().publish_mode(PublishMode::Asynchronous)] {
        let (participants, writer, reader) = pair(qos, settings().without_threads());
        let mut received = Vec::new();
        for number in 0..COUNT {
            writer.write(&Numbered::new(1, number)).unwrap();
            poll_until(&participants.each_ref(), || {
                received.extend(reader.take(10).into_iter().filter_map(|it| it.into_data()));
                received.len() as u64 > number
            });
        }
        let expected: Vec<_> = (0..COUNT).map(|number| Numbered::new(1, number)).collect();
        assert_eq!(received, expected);
    }
}

/// Nothing else polls.
#[test]
fn waits_without_time_poll() {
    let (_participants, writer, reader) = pair(lossless_writer(), settings().without_threads());
    let world = World::new();
    let threaded = world.participant();
    let other: DataReader<Numbered> = world.reader(&threaded, lossless_reader());
    let (alone, several) = (WaitSet::new(), WaitSet::new());
    alone.attach_condition(&reader.read_condition(States::NOT_READ));
    several.attach_condition(&reader.read_condition(States::NOT_READ));
    several.attach_condition(&other.read_condition(States::NOT_READ));
    let waits: [&dyn Fn() -> bool; 3] =
        [&|| reader.wait_for_data(Duration::ZERO).is_ok(), &|| alone.wait(Duration::ZERO).is_ok(), &|| {
            several.wait(Duration::ZERO).is_ok()
        }];
    for (number, wait) in (0..).zip(waits) {
        writer.write(&Numbered::new(1, number)).unwrap();
        assert!((0..1000).any(|_| wait()), "{number}");
        assert_eq!(reader.take(10).len(), 1);
    }
}

#[test]
fn large_samples_are_sent_and_received_in_polls() {
    for qos in [lossless_writer(), lossless_writer().publish_mode(PublishMode::Asynchronous)] {
        let (participants, writer, reader) = pair(qos, settings().without_threads());
        let sent = Numbered { source: 1, number: 2, bytes: vec![7; 3_000_000] };
        // The reader is in the same thread: a synchronous write would wait for its acknowledgements.
        std::thread::scope(|scope| {
            let written =
                scope.spawn(|| writer.write(&sent).and_then(|()| writer.wait_for_acknowledgments(DEADLINE)));
            let mut received = Vec::new();
            while received.is_empty() {
                reader.wait_for_data(DEADLINE).unwrap();
                received = reader.take(1);
            }
            assert_eq!(received[0].data(), Some(&sent));
            while !written.is_finished() {
                participants[1].poll(Duration::from_millis(1)).unwrap();
            }
            written.join().unwrap().unwrap();
        });
    }
}

#[test]
fn calls_that_wait_poll_and_threads_are_served_as_well() {
    for wait in [WaitStrategy::Block, WaitStrategy::Spin] {
        let world = World::new();
        let polled = world.participant_with(settings().without_threads().wait(wait));
        let threaded = world.participant();
        let there: DataWriter<Numbered> = world.writer(&polled, lossless_writer());
        let back: DataReader<Numbered> = world.reader(&polled, lossless_reader());
        let reader: DataReader<Numbered> = world.reader(&threaded, lossless_reader());
        let writer: DataWriter<Numbered> = world.writer(&threaded, lossless_writer());
        there.wait_for_subscriptions(2, DEADLINE).unwrap();
        back.wait_for_publications(2, DEADLINE).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                writer.wait_for_subscriptions(2, DEADLINE).unwrap();
                (0..1000).for_each(|number| writer.write(&Numbered::new(1, number)).unwrap());
            });
            take_exactly(&back, 1000);
        });
        (0..1000).for_each(|number| there.write(&Numbered::new(2, number)).unwrap());
        there.wait_for_acknowledgments(DEADLINE).unwrap();
        take_exactly(&reader, 2000);
        assert!(matches!(
            there.wait_for_subscriptions(3, Duration::from_millis(1)),
            Err(DdsError::Timeout { .. })
        ));
    }
}

#[test]
fn a_poll_waits_for_no_longer_than_asked() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    // After the announcements of the start, nothing happens for seconds.
    for timeout in [Duration::ZERO, Duration::from_micros(100)] {
        while participant.poll(timeout).unwrap() {}
    }
    assert!(!participant.poll(Duration::ZERO).unwrap());
    let error = world.participant().poll(Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("without_threads"), "{error}");
}

#[test]
fn a_poll_that_does_not_wait_leaves_a_batch_open() {
    let world = World::new();
    let polled = world.participant_with(settings().without_threads());
    let batch = BatchPolicy::new(8192, 100, DEADLINE);
    let writer: DataWriter<Numbered> = world.writer(&polled, lossless_writer().batch(batch));
    let reader: DataReader<Numbered> = world.reader(&polled, lossless_reader());
    writer.write(&Numbered::new(1, 1)).unwrap();
    while polled.poll(Duration::ZERO).unwrap() {}
    assert!(reader.take(1).is_empty());
    while reader.take(1).is_empty() {
        polled.poll(DEADLINE).unwrap();
    }
}

/// Notes the threads that call it.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<ThreadId>>>, Arc<AtomicU32>);

impl DataReaderListener<Numbered> for Calls {
    fn on_data_available(&self, reader: &DataReader<Numbered>) {
        self.1.fetch_add(reader.take(100).len() as u32, Ordering::SeqCst);
        self.0.lock().unwrap().push(std::thread::current().id());
    }

    fn on_subscription_matched(&self, _: &DataReader<Numbered>, _: SubscriptionMatchedStatus) {
        self.0.lock().unwrap().push(std::thread::current().id());
    }
}

#[test]
fn listeners_are_called_in_polls_only() {
    let world = World::new();
    let polled = world.participant_with(settings().without_threads());
    let writer = world.writer::<Numbered>(&polled, lossless_writer());
    let calls = Calls::default();
    let topic = world.topic(&polled);
    let _reader = polled
        .create_subscriber()
        .unwrap()
        .create_datareader_with_listener(&topic, lossless_reader(), calls.clone())
        .unwrap();
    // They match while the reader is created.
    assert_eq!(writer.publication_matched_status().current_count, 1);
    assert!(calls.0.lock().unwrap().is_empty());
    writer.write(&Numbered::new(0, 1)).unwrap();
    assert_eq!(calls.1.load(Ordering::SeqCst), 0);
    poll_until(&[&polled], || calls.1.load(Ordering::SeqCst) == 1);
    let threads: BTreeSet<_> = calls.0.lock().unwrap().iter().map(|id| format!("{id:?}")).collect();
    assert_eq!(threads, BTreeSet::from([format!("{:?}", std::thread::current().id())]));
    assert!(calls.0.lock().unwrap().len() >= 2);
}

#[test]
fn a_wait_set_polls_several_participants() {
    let (participants, writer, reader) = pair(lossless_writer(), settings().without_threads());
    let world = World::new();
    let threaded = world.participant();
    let other: DataReader<Numbered> = world.reader(&threaded, lossless_reader());
    let other_writer: DataWriter<Numbered> = world.writer(&threaded, lossless_writer());
    let set = WaitSet::new();
    let guard = GuardCondition::new();
    let condition = reader.read_condition(States::NOT_READ);
    let other_condition = other.read_condition(States::NOT_READ);
    set.attach_condition(&guard);
    set.attach_condition(&condition);
    set.attach_condition(&other_condition);
    assert!(set.wait(Duration::from_millis(1)).is_err());
    std::thread::scope(|scope| {
        let written = scope.spawn(|| {
            writer.write(&Numbered::new(0, 1)).unwrap();
            // Discovery and acknowledgements of the writer are served here.
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
        });
        assert_eq!(set.wait(DEADLINE).unwrap().len(), 1);
        take_exactly(&reader, 1);
        while !written.is_finished() {
            participants[1].poll(Duration::from_millis(1)).unwrap();
        }
    });
    other_writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    other_writer.write(&Numbered::new(0, 2)).unwrap();
    assert_eq!(set.wait(DEADLINE).unwrap().len(), 1);
    guard.set_trigger_value(true);
    assert_eq!(set.wait(DEADLINE).unwrap().len(), 2);
}

#[test]
fn the_descriptor_is_readable_only_while_there_is_something_to_do() {
    let world = World::new();
    let polled = world.participant_with(settings().without_threads());
    let is_readable = |timeout| {
        let fd = polled.poll_fd().unwrap();
        weir_udp::poll(&[fd.as_fd()], None, Some(timeout)).unwrap().is_readable(0)
    };
    assert!(is_readable(DEADLINE), "announcements are due");
    while is_readable(Duration::ZERO) {
        polled.poll(Duration::ZERO).unwrap();
    }
    // The next announcement.
    assert!(is_readable(DEADLINE));
    assert!(polled.poll(Duration::ZERO).unwrap());
}

#[test]
fn a_guard_condition_ends_a_wait_that_polls() {
    let world = World::new();
    let polled = world.participant_with(settings().without_threads());
    let reader: DataReader<Numbered> = world.reader(&polled, lossless_reader());
    let (set, guard) = (WaitSet::new(), GuardCondition::new());
    set.attach_condition(&guard);
    set.attach_condition(&reader.read_condition(States::NOT_READ));
    for _ in 0..100 {
        // With nothing else to do, and before and after the wait has begun.
        while polled.poll(Duration::ZERO).unwrap() {}
        std::thread::scope(|scope| {
            scope.spawn(|| guard.set_trigger_value(true));
            let active = set.wait(DEADLINE).unwrap();
            assert!(active.contains(&guard) && active.len() == 1);
        });
        guard.set_trigger_value(false);
    }
}
