//! Closing entities instead of dropping them.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_dds::{
    ActiveConditions, DataReader, DataReaderListener, DataReaderQos, DataWriterQos, DdsError,
    DomainParticipant, InstanceState, PublishMode, PublisherQos, WaitSet,
};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, pair, settings, take_exactly,
};

/// Waits for a state that discovery brings about.
fn until(mut is_reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_reached() {
        assert!(Instant::now() < deadline, "not reached in time");
        std::thread::yield_now();
    }
}

#[test]
fn a_closed_writer_has_sent_everything_and_writes_no_more() {
    for mode in [PublishMode::Synchronous, PublishMode::Asynchronous] {
        let (writer, reader) = pair::<Keyed>(lossless_writer().publish_mode(mode), lossless_reader());
        let other = writer.clone();
        let handle = writer.register_instance(&Keyed { id: 1, value: 0 }).unwrap();
        (0..100).for_each(|value| writer.write(&Keyed { id: 1, value }).unwrap());
        writer.close().unwrap();
        other.close().unwrap();
        let samples = take_exactly(&reader, 101);
        assert_eq!(samples[99].data(), Some(&Keyed { id: 1, value: 99 }));
        assert_eq!(samples[100].info.instance_state, InstanceState::NotAliveDisposed);
        for result in [
            other.write(&Keyed::default()),
            other.dispose(&Keyed::default()),
            other.register_instance(&Keyed { id: 2, value: 0 }).map(drop),
        ] {
            assert!(matches!(result, Err(DdsError::AlreadyDeleted("writer"))), "{result:?}");
        }
        assert!(matches!(other.dispose_by_handle(handle), Err(DdsError::BadParameter(_))));
    }
}

#[test]
fn closing_a_writer_reports_that_its_end_was_not_acknowledged() {
    // The reader has no room for the second value, and so takes nothing that follows it.
    let limits = weir_dds::ResourceLimits::default().max_samples(1);
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader().resource_limits(limits));
    writer.register_instance(&Keyed { id: 1, value: 0 }).unwrap();
    (1..=2).for_each(|value| writer.write(&Keyed { id: 1, value }).unwrap());
    let error = writer.close().unwrap_err();
    assert!(error.to_string().contains(&reader.guid().to_string()), "{error}");
    assert!(matches!(error, DdsError::Timeout { .. }));
    writer.close().unwrap();
}

#[test]
fn closing_a_writer_does_not_claim_to_have_waited_for_readers_that_were_just_waited_for() {
    let limits = weir_dds::ResourceLimits::default().max_samples(1);
    let world = World::new();
    let participant = world.participant();
    let [one, other] = [(); 2].map(|()| world.writer(&participant, lossless_writer()));
    let reader = world.reader(&world.participant(), lossless_reader().resource_limits(limits));
    matched(&[&one, &other], &[&reader]);
    for (id, writer) in [(1, &one), (2, &other)] {
        (1..=2).for_each(|value| writer.write(&Keyed { id, value }).unwrap());
        writer.register_instance(&Keyed { id, value: 0 }).unwrap();
    }
    assert!(matches!(one.close(), Err(DdsError::Timeout { .. })));
    let Err(DdsError::Timeout { waited, hint, .. }) = other.close() else { panic!("it was acknowledged") };
    assert_ne!(waited, Duration::from_secs(1), "it says how long it has waited");
    assert!(hint.contains(&reader.guid().to_string()), "{hint}");
}

/// The states of the instances from 1 on at a reader once all have ended.
fn states(reader: &DataReader<Keyed>, count: u32) -> Vec<InstanceState> {
    let mut states = std::collections::BTreeMap::new();
    while states.len() < count as usize {
        let sample = take_exactly(reader, 1).remove(0);
        if !sample.info.valid_data {
            states.insert(sample.key().unwrap().id, sample.info.instance_state);
        }
    }
    states.into_values().collect()
}

#[test]
fn a_writer_that_is_closed_counts_the_instances_it_cannot_unregister_and_unregisters_the_others() {
    let limits = weir_dds::ResourceLimits::UNLIMITED.max_samples_per_instance(2);
    let qos = lossless_writer().transient_local().resource_limits(limits);
    let (writer, reader) = pair::<Keyed>(qos, lossless_reader());
    // What is kept for late readers leaves no room for the end of the second one.
    for id in [1, 2, 2, 3] {
        writer.write(&Keyed { id, value: 1 }).unwrap();
    }
    let error = writer.close().unwrap_err();
    assert!(matches!(&error, DdsError::OutOfResources(text) if text.contains("1 of 3 instances")), "{error}");
    let disposed = InstanceState::NotAliveDisposed;
    assert_eq!(states(&reader, 3), [disposed, InstanceState::NotAliveNoWriters, disposed]);
}

#[test]
fn a_writer_that_is_closed_waits_for_room_for_the_end_of_its_instances() {
    let limits = weir_dds::ResourceLimits::UNLIMITED.max_samples(3);
    let (writer, reader) = pair::<Keyed>(lossless_writer().resource_limits(limits), lossless_reader());
    for id in 1..=10 {
        writer.register_instance(&Keyed { id, value: 0 }).unwrap();
        writer.write(&Keyed { id, value: 1 }).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(states(&reader, 10), [InstanceState::NotAliveDisposed; 10]);
}

#[test]
fn a_closed_reader_receives_no_more_and_keeps_what_it_has() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    writer.write(&Numbered::new(0, 0)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let other = reader.clone();
    reader.close().unwrap();
    // Nothing holds the writer up any more.
    writer.write(&Numbered::new(0, 1)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(other.take(usize::MAX).len(), 1);
    other.close().unwrap();
}

#[test]
fn a_participant_is_closed_for_all_its_handles() {
    for is_polled in [false, true] {
        let world = World::new();
        let threads = if is_polled { settings().without_threads() } else { settings() };
        let participant = world.participant_with(threads);
        let topic = world.topic::<Keyed>(&participant);
        let (publisher, subscriber) =
            (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
        let writer = publisher.create_datawriter(&topic, lossless_writer()).unwrap();
        let reader = subscriber.create_datareader(&topic, lossless_reader()).unwrap();
        let far = world.reader::<Keyed>(&world.participant(), lossless_reader());
        writer.wait_for_subscriptions(2, DEADLINE).unwrap();
        writer.write(&Keyed { id: 1, value: 2 }).unwrap();
        reader.wait_for_data(DEADLINE).unwrap();
        participant.clone().close().unwrap();
        participant.close().unwrap();
        let results = [
            participant.create_topic::<Keyed>("others").map(drop),
            participant.create_publisher().map(drop),
            participant.create_subscriber().map(drop),
            participant.find_topic::<Keyed>(&world.topic, DEADLINE).map(drop),
            participant.builtin_subscriber().map(drop),
            participant.set_qos(participant.get_qos()),
            participant.enable(),
            participant.assert_liveliness(),
            participant.ignore_topic("others"),
            participant.delete_contained_entities(),
            topic.set_qos(topic.get_qos()),
            publisher.create_datawriter(&topic, lossless_writer()).map(drop),
            publisher.set_qos(publisher.get_qos()),
            publisher.begin_coherent_changes(),
            publisher.delete_contained_entities(),
            subscriber.create_datareader(&topic, lossless_reader()).map(drop),
            subscriber.set_qos(subscriber.get_qos()),
            subscriber.begin_access(),
            subscriber.delete_contained_entities(),
            writer.write(&Keyed::default()),
            writer.register_instance(&Keyed::default()).map(drop),
            writer.dispose(&Keyed::default()),
            writer.wait_for_acknowledgments(DEADLINE),
            writer.wait_for_subscriptions(3, DEADLINE),
            writer.assert_liveliness(),
            writer.set_qos(writer.get_qos()),
            writer.enable(),
            reader.wait_for_publications(3, DEADLINE),
            reader.wait_for_historical_data(DEADLINE),
            reader.set_qos(reader.get_qos()),
            reader.enable(),
        ];
        for (call, result) in results.into_iter().enumerate() {
            assert!(matches!(result, Err(DdsError::AlreadyDeleted(_))), "call {call}: {result:?}");
        }
        assert!(participant.failure().is_none());
        assert_eq!(take_exactly(&reader, 1)[0].data(), Some(&Keyed { id: 1, value: 2 }));
        assert!(matches!(reader.wait_for_data(DEADLINE), Err(DdsError::AlreadyDeleted(_))));
        for outcome in [writer.close(), reader.close(), publisher.close(), subscriber.close(), topic.close()]
        {
            outcome.unwrap();
        }
        // Others have received the goodbye: the lease is longer.
        until(|| far.subscription_matched_status().current_count == 0);
    }
}

/// Whether a thread sleeps in the kernel (proc_pid_stat(5)), or has ended. `task`: its folder, in `/proc`.
fn is_asleep_or_over(task: &Path) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(task).join("stat"));
    stat.map_or(true, |stat| stat.contains(") S "))
}

/// It has waited in vain until the end of the timeout.
#[test]
fn who_waits_for_a_participant_notices_that_it_is_closed() {
    for is_polled in [false, true] {
        let world = World::new();
        let threads = if is_polled { settings().without_threads() } else { settings() };
        let participant = world.participant_with(threads);
        let builtin = participant.builtin_subscriber().unwrap();
        let (begun, tasks) = channel();
        let begin = || begun.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
        std::thread::scope(|scope| {
            let waits = [
                scope.spawn(|| {
                    begin();
                    participant.find_topic::<Keyed>(&world.topic, Duration::MAX).map(drop)
                }),
                scope.spawn(|| {
                    begin();
                    builtin.participants().wait_for_publications(9, Duration::MAX)
                }),
                scope.spawn(|| -> weir_dds::Result<()> {
                    begin();
                    loop {
                        participant.poll(Duration::MAX)?;
                    }
                }),
            ];
            tasks.iter().take(waits.len()).for_each(|task| until(|| is_asleep_or_over(&task)));
            participant.close().unwrap();
            for (call, wait) in waits.into_iter().enumerate() {
                let outcome = wait.join().unwrap();
                let is_told = match outcome {
                    Err(DdsError::PreconditionNotMet(_)) => call == 2 && !is_polled,
                    Err(DdsError::AlreadyDeleted(_)) => true,
                    _ => false,
                };
                assert!(is_told, "call {call}: {outcome:?}");
            }
        });
    }
}

/// One thread at a time may wait: another is refused.
fn is_refused(outcome: &weir_dds::Result<ActiveConditions>) -> bool {
    matches!(outcome, Err(DdsError::PreconditionNotMet(_)))
}

/// Waits as soon as no other thread does.
fn wait_alone(wait_set: &WaitSet) -> weir_dds::Result<ActiveConditions> {
    loop {
        let outcome = wait_set.wait(Duration::MAX);
        if !is_refused(&outcome) {
            return outcome;
        }
    }
}

/// The waiting thread receives for neither of the participants, and is woken by their conditions alone.
#[test]
fn a_wait_set_of_several_participants_notices_that_one_is_closed() {
    let world = World::new();
    let [participant, other] = [(); 2].map(|()| world.participant());
    let topic = world.topic::<Keyed>(&participant);
    let publisher = participant.create_publisher().unwrap();
    let writer = publisher.create_datawriter(&topic, lossless_writer()).unwrap();
    let conditions = [
        participant.status_condition(),
        publisher.status_condition(),
        topic.status_condition(),
        writer.status_condition(),
    ];
    let wait_sets = conditions.map(|condition| {
        let wait_set = WaitSet::new();
        wait_set.attach_condition(&condition);
        wait_set.attach_condition(&other.status_condition());
        wait_set
    });
    std::thread::scope(|scope| {
        let waits = wait_sets.each_ref().map(|wait_set| scope.spawn(|| wait_alone(wait_set)));
        until(|| wait_sets.iter().all(|wait_set| is_refused(&wait_set.wait(Duration::ZERO))));
        participant.close().unwrap();
        for wait in waits {
            let outcome = wait.join().unwrap();
            assert!(matches!(outcome, Err(DdsError::AlreadyDeleted("participant"))), "{outcome:?}");
        }
    });
}

/// Closes the participant that it is a listener of.
struct Closes(DomainParticipant, Mutex<Sender<DdsError>>);

impl DataReaderListener<Keyed> for Closes {
    fn on_data_available(&self, reader: &DataReader<Keyed>) {
        self.0.close().unwrap();
        let _ = self.1.lock().unwrap().send(reader.set_qos(reader.get_qos()).unwrap_err());
    }
}

#[test]
fn a_participant_may_be_closed_in_a_listener() {
    let world = World::new();
    let [participant, other] = [(); 2].map(|()| world.participant());
    let (sender, told) = channel();
    let reader = world.reader::<Keyed>(&participant, lossless_reader());
    let writer = world.writer::<Keyed>(&other, lossless_writer());
    matched(&[&writer], &[&reader]);
    reader.set_listener(Some(Arc::new(Closes(participant.clone(), Mutex::new(sender)))));
    writer.write(&Keyed::default()).unwrap();
    assert!(matches!(told.recv_timeout(DEADLINE).unwrap(), DdsError::AlreadyDeleted(_)));
    assert!(participant.create_topic::<Keyed>("others").is_err());
}

#[test]
fn a_group_is_closed_with_what_it_has_and_its_participant_goes_on() {
    let world = World::new();
    let participant = world.participant();
    let topic = world.topic::<Keyed>(&participant);
    let publisher = participant.create_publisher().unwrap();
    let subscriber = participant.create_subscriber().unwrap();
    let writer = publisher.create_datawriter(&topic, lossless_writer()).unwrap();
    let reader = subscriber.create_datareader(&topic, lossless_reader()).unwrap();
    for _ in 0..2 {
        publisher.clone().close().unwrap();
        subscriber.clone().close().unwrap();
    }
    assert!(matches!(writer.write(&Keyed::default()), Err(DdsError::AlreadyDeleted("writer"))));
    assert!(matches!(reader.set_qos(reader.get_qos()), Err(DdsError::AlreadyDeleted("reader"))));
    let refused = publisher.create_datawriter(&topic, lossless_writer()).map(drop);
    assert!(matches!(refused, Err(DdsError::AlreadyDeleted("publisher"))), "{refused:?}");
    let refused = subscriber.create_datareader(&topic, lossless_reader()).map(drop);
    assert!(matches!(refused, Err(DdsError::AlreadyDeleted("subscriber"))), "{refused:?}");
    let writer = world.writer::<Keyed>(&participant, lossless_writer());
    writer.write(&Keyed::default()).unwrap();
}

#[test]
fn a_writer_that_was_never_enabled_says_that_it_was_closed() {
    let world = World::new();
    let participant = world.participant();
    let qos = PublisherQos::default().autoenable_created_entities(false);
    let publisher = participant.create_publisher_with_qos(qos).unwrap();
    let writer = publisher.create_datawriter(&world.topic::<Keyed>(&participant), lossless_writer()).unwrap();
    assert!(matches!(writer.write(&Keyed::default()), Err(DdsError::NotEnabled(_))));
    writer.close().unwrap();
    assert!(matches!(writer.write(&Keyed::default()), Err(DdsError::AlreadyDeleted("writer"))));
}

#[test]
fn a_topic_is_closed_when_nothing_uses_it() {
    let world = World::new();
    let participant = world.participant();
    let topic = world.topic::<Keyed>(&participant);
    let is_refused = || matches!(topic.close(), Err(DdsError::PreconditionNotMet(_)));
    let writer =
        participant.create_publisher().unwrap().create_datawriter(&topic, lossless_writer()).unwrap();
    assert!(is_refused());
    writer.close().unwrap();
    let reader =
        participant.create_subscriber().unwrap().create_datareader(&topic, lossless_reader()).unwrap();
    assert!(is_refused());
    reader.close().unwrap();
    let filtered = participant.create_contentfilteredtopic("some", &topic, "value > 1", &[""; 0]).unwrap();
    assert!(is_refused());
    drop(filtered);
    topic.close().unwrap();
    topic.close().unwrap();
    assert!(participant.lookup_topicdescription::<Keyed>(&world.topic).is_none());
    assert!(matches!(topic.set_qos(topic.get_qos()), Err(DdsError::AlreadyDeleted("topic"))));
    let refused =
        participant.create_publisher().unwrap().create_datawriter(&topic, lossless_writer()).map(drop);
    assert!(matches!(refused, Err(DdsError::AlreadyDeleted("topic"))), "{refused:?}");
}

/// Before, the first wait lasted for ever, and the others until their time was over.
#[test]
fn who_waits_for_an_entity_notices_that_it_is_closed() {
    for is_polled in [false, true] {
        let world = World::new();
        let threads = if is_polled { settings().without_threads() } else { settings() };
        let participant = world.participant_with(threads);
        let writer = world.writer::<Keyed>(&participant, DataWriterQos::default());
        let reader = world.reader::<Keyed>(&participant, DataReaderQos::default());
        std::thread::scope(|scope| {
            let waits = [
                scope.spawn(|| reader.wait_for_data(Duration::MAX)),
                scope.spawn(|| reader.wait_for_publications(2, Duration::MAX)),
                scope.spawn(|| writer.wait_for_subscriptions(2, Duration::MAX)),
            ];
            reader.close().unwrap();
            writer.close().unwrap();
            for wait in waits {
                let outcome = wait.join().unwrap();
                assert!(matches!(outcome, Err(DdsError::AlreadyDeleted(_))), "{outcome:?}");
            }
        });
    }
}
