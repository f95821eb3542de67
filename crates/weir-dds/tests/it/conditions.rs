//! Status changes, conditions and wait sets.

use std::time::Duration;

use weir_dds::{
    DataReader, DataReaderListener, DataWriter, DdsError, GuardCondition, ParticipantSettings, Query, States,
    StatusKind, StatusMask, WaitSet, WaitStrategy,
};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, pair, settings, take_exactly,
};

fn is_timeout<T>(result: Result<T, DdsError>) -> bool {
    matches!(result, Err(DdsError::Timeout { .. }))
}

fn is_precondition<T>(result: Result<T, DdsError>) -> bool {
    matches!(result, Err(DdsError::PreconditionNotMet(_)))
}

/// Waits as soon as no other thread does.
fn wait_alone(wait_set: &WaitSet) -> Result<weir_dds::ActiveConditions, DdsError> {
    loop {
        let result = wait_set.wait(DEADLINE);
        if !matches!(result, Err(DdsError::PreconditionNotMet(_))) {
            return result;
        }
        std::thread::yield_now();
    }
}

#[test]
fn data_available_is_set_by_samples_and_reset_by_any_access() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let has_data = || reader.status_changes().contains(StatusKind::DataAvailable);
    let on_readers = || reader.subscriber().status_changes().contains(StatusKind::DataOnReaders);
    assert!(!has_data() && !on_readers());
    let condition = reader.read_condition(States::NOT_READ);
    let accesses: [&dyn Fn(); 7] = [
        &|| drop(reader.take(1)),
        &|| drop(reader.read(1)),
        &|| _ = reader.take_next_sample(&mut weir_dds::Sample::default()),
        &|| drop(reader.take_serialized(1)),
        &|| drop(reader.take_w_condition(1, &condition)),
        &|| drop(reader.select().states(States::NOT_READ).max(1).read()),
        &|| _ = reader.take_into(&mut weir_dds::SampleSeq::new(), 1),
    ];
    let wait_set = WaitSet::new();
    let status = reader.status_condition();
    status.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    wait_set.attach_condition(&status);
    for (number, access) in accesses.into_iter().enumerate() {
        // Two samples: an access resets the status even if it leaves some.
        for number in [2 * number, 2 * number + 1] {
            writer.write(&Numbered::new(0, number as u64)).unwrap();
            wait_set.wait(DEADLINE).unwrap();
        }
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        assert!(has_data() && on_readers());
        access();
        assert!(!has_data() && !on_readers(), "access {number}");
        assert!(is_timeout(wait_set.wait(Duration::ZERO)));
    }
}

#[test]
fn statuses_change_until_they_are_read() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let reader: DataReader<Numbered> = world.reader(&here, lossless_reader());
    assert_eq!(reader.status_changes(), StatusMask::NONE);
    let status = reader.status_condition();
    let wait_set = WaitSet::new();
    wait_set.attach_condition(&status);
    let writer: DataWriter<Numbered> = world.writer(&there, lossless_writer());
    assert!(wait_set.wait(DEADLINE).unwrap().contains(&status));
    reader.wait_for_publications(1, DEADLINE).unwrap();
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    assert_eq!(writer.status_changes(), StatusMask::PUBLICATION_MATCHED);
    writer.publication_matched_status();
    assert_eq!(writer.status_changes(), StatusMask::NONE);
    // Discovery reports both with the match.
    assert_eq!(reader.status_changes(), StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED);
    reader.subscription_matched_status();
    assert_eq!(reader.status_changes(), StatusMask::LIVELINESS_CHANGED);
    status.set_enabled_statuses(!StatusMask::LIVELINESS_CHANGED);
    assert!(is_timeout(wait_set.wait(Duration::ZERO)) && !status.trigger_value());
    status.set_enabled_statuses(StatusMask::ALL);
    assert!(status.trigger_value());
    reader.liveliness_changed_status();
    assert!(!status.trigger_value());
    drop(writer);
    wait_set.wait(DEADLINE).unwrap();
    assert!(reader.status_changes().contains(StatusKind::SubscriptionMatched));
    assert_eq!(here.status_changes() | here.create_publisher().unwrap().status_changes(), StatusMask::NONE);
}

#[test]
fn incompatible_qos_and_inconsistent_topics_make_conditions_true() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let topic = world.topic::<Numbered>(&here);
    let qos = weir_dds::DataWriterQos::default().best_effort();
    let writer = here.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap();
    let wait_set = WaitSet::new();
    let (of_topic, of_writer) = (topic.status_condition(), writer.status_condition());
    wait_set.attach_condition(&of_topic);
    let other: DataReader<Keyed> = world.reader(&there, lossless_reader());
    assert!(wait_set.wait(DEADLINE).unwrap().contains(&of_topic));
    assert_eq!(topic.status_changes(), StatusMask::INCONSISTENT_TOPIC);
    assert_eq!(topic.inconsistent_topic_status().total_count, 1);
    assert!(!of_topic.trigger_value());
    wait_set.attach_condition(&of_writer);
    let strict: DataReader<Numbered> = world.reader(&there, lossless_reader());
    let active = wait_set.wait(DEADLINE).unwrap();
    assert!(active.contains(&of_writer) && !active.contains(&of_topic));
    assert_eq!(writer.status_changes(), StatusMask::OFFERED_INCOMPATIBLE_QOS);
    assert_eq!(writer.offered_incompatible_qos_status().total_count_change, 1);
    assert_eq!(writer.status_changes(), StatusMask::NONE);
    drop((other, strict));
}

#[test]
fn a_read_condition_is_true_for_the_states_that_it_names() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    let conditions = [
        States::NOT_READ,
        States::READ,
        States::NEW,
        States::NOT_NEW,
        States::NOT_ALIVE_DISPOSED,
        States::READ | States::ALIVE,
    ]
    .map(|states| reader.read_condition(states));
    let values = || conditions.each_ref().map(weir_dds::ReadCondition::trigger_value);
    assert_eq!(values(), [false; 6]);
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    assert_eq!(values(), [true, false, true, false, false, false]);
    assert_eq!(reader.read(10).len(), 1);
    assert_eq!(values(), [false, true, false, true, false, true]);
    writer.dispose(&Keyed { id: 1, value: 1 }).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    assert_eq!(values(), [true, true, false, true, true, false]);
    assert_eq!(reader.take_w_condition(10, &conditions[1]).unwrap().len(), 1, "only what was read");
    assert_eq!(values(), [true, false, false, true, true, false]);
    assert!(!reader.take_w_condition(10, &conditions[4]).unwrap()[0].info.valid_data);
    assert_eq!(values(), [false; 6]);
}

#[test]
fn a_query_selects_by_value_and_leaves_the_rest_as_it_is() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    let large = reader.query_condition(States::NOT_READ, |sample: &Keyed| sample.value >= 10);
    let even = reader.query(|sample: &Keyed| sample.value.is_multiple_of(2));
    let wait_set = WaitSet::new();
    wait_set.attach_condition(&large);
    for value in [1, 2, 3] {
        writer.write(&Keyed { id: 1, value }).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert!(is_timeout(wait_set.wait(Duration::ZERO)) && even.trigger_value());
    writer.write(&Keyed { id: 2, value: 11 }).unwrap();
    writer.write(&Keyed { id: 1, value: 12 }).unwrap();
    writer.dispose(&Keyed { id: 2, value: 0 }).unwrap();
    assert!(wait_set.wait(DEADLINE).unwrap().contains(&large));
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let values = |samples: Vec<weir_dds::Sample<Keyed>>| -> Vec<_> {
        samples.iter().map(|sample| sample.data().unwrap().value).collect()
    };
    assert_eq!(values(reader.read_w_condition(1, &large).unwrap()), [11]);
    assert_eq!(values(reader.read_w_condition(10, &large).unwrap()), [12]);
    assert!(!large.trigger_value(), "both were read");
    assert_eq!(values(reader.take_w_condition(10, &even).unwrap()), [2, 12]);
    let rest = reader.take(10);
    assert_eq!(rest.iter().map(|it| it.info.sample_state).collect::<Vec<_>>(), {
        use weir_dds::SampleState::{NotRead, Read};
        [NotRead, NotRead, Read, NotRead]
    });
    assert!(!rest[3].info.valid_data);
    let other: DataReader<Keyed> = reader
        .subscriber()
        .create_datareader(&World::new().topic(&World::new().participant()), lossless_reader())
        .unwrap();
    assert!(
        is_precondition(other.take_w_condition(1, &even))
            && is_precondition(other.read_w_condition(1, &even))
    );
}

#[test]
fn a_condition_with_a_query_follows_its_parameters_and_gives_its_order() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    let query = Query::new("value > %0 ORDER BY value", &["10"]).unwrap();
    let large = reader.create_querycondition(States::NOT_READ, &query);
    let wait_set = WaitSet::new();
    wait_set.attach_condition(&large);
    for value in [9, 3, 7] {
        writer.write(&Keyed { id: 1, value }).unwrap();
    }
    writer.dispose(&Keyed { id: 1, value: 0 }).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert!(is_timeout(wait_set.wait(Duration::ZERO)));
    let fd = wait_set.event_fd().unwrap();
    let is_readable = || weir_udp::poll(&[&fd], None, Some(Duration::ZERO)).unwrap().is_readable(0);
    assert!(!is_readable());
    large.set_query_parameters(&["5"]).unwrap();
    assert!(is_readable() && wait_set.wait(DEADLINE).unwrap().contains(&large));
    let taken = reader.take_w_condition(10, &large).unwrap();
    let values: Vec<_> = taken.iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!((values, large.trigger_value()), (vec![7, 9], false));
    assert_eq!(large.query().unwrap().parameters(), ["5"]);
    assert!(large.set_query_parameters(&["x"]).is_err() && query.parameters() == ["5"]);
    assert!(is_precondition(reader.read_condition(States::ANY).set_query_parameters(&["1"])));
}

#[test]
fn a_guard_condition_stays_true_until_it_is_reset() {
    let (guard, other, wait_set) = (GuardCondition::new(), GuardCondition::new(), WaitSet::new());
    assert!(is_timeout(wait_set.wait(Duration::ZERO)), "without conditions");
    assert!(is_precondition(wait_set.detach_condition(&guard)));
    wait_set.attach_condition(&guard);
    wait_set.attach_condition(&guard.clone());
    wait_set.attach_condition(&other);
    assert_eq!(wait_set.conditions().len(), 2);
    std::thread::scope(|scope| {
        scope.spawn(|| guard.set_trigger_value(true));
        let active = wait_set.wait(DEADLINE).unwrap();
        assert!(active.contains(&guard) && !active.contains(&other) && active.len() == 1);
    });
    assert!(wait_set.wait(Duration::ZERO).is_ok());
    guard.set_trigger_value(false);
    assert!(is_timeout(wait_set.wait(Duration::ZERO)));
    guard.set_trigger_value(true);
    wait_set.detach_condition(&guard).unwrap();
    assert!(is_timeout(wait_set.wait(Duration::ZERO)) && wait_set.active().is_empty());
    // Attached while a thread waits.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_alone(&wait_set));
        while !is_precondition(wait_set.wait(Duration::ZERO)) {
            std::thread::yield_now();
        }
        wait_set.attach_condition(&guard);
        assert!(waiting.join().unwrap().unwrap().contains(&guard));
    });
}

#[test]
fn only_one_thread_waits_at_a_time() {
    let (_writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let stop = GuardCondition::new();
    for conditions in [0, 1] {
        let wait_set = WaitSet::new();
        wait_set.attach_condition(&stop);
        if conditions == 1 {
            wait_set.attach_condition(&reader.read_condition(States::ANY));
        }
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_alone(&wait_set));
            while !is_precondition(wait_set.wait(Duration::ZERO)) {
                std::thread::yield_now();
            }
            stop.set_trigger_value(true);
            assert!(waiting.join().unwrap().is_ok());
        });
        assert!(wait_set.wait(Duration::ZERO).is_ok());
        stop.set_trigger_value(false);
    }
}

#[test]
fn one_thread_waits_for_readers_of_one_or_several_participants() {
    for strategy in [WaitStrategy::Block, WaitStrategy::SpinThenBlock(Duration::from_micros(50))] {
        for is_shared in [true, false] {
            let world = World::new();
            let with = || world.participant_with(ParticipantSettings::wait(settings(), strategy));
            let participants: [_; 2] = [with(), with()];
            let there = with();
            let on = |index: usize| &participants[if is_shared { 0 } else { index }];
            let worlds = [&world, &world.sibling()];
            let readers: [DataReader<Numbered>; 2] =
                [0, 1].map(|index| worlds[index].reader(on(index), lossless_reader()));
            let writers: [DataWriter<Numbered>; 2] =
                worlds.map(|world| world.writer(&there, lossless_writer()));
            (0..2).for_each(|index| matched(&[&writers[index]], &[&readers[index]]));
            let conditions = readers.each_ref().map(|reader| reader.read_condition(States::NOT_READ));
            let wait_set = WaitSet::new();
            conditions.iter().for_each(|condition| wait_set.attach_condition(condition));
            for number in 0..50 {
                let index = number as usize % 2;
                std::thread::scope(|scope| {
                    scope.spawn(|| writers[index].write(&Numbered::new(0, number)).unwrap());
                    let active = wait_set.wait(DEADLINE).unwrap();
                    assert!(active.contains(&conditions[index]) && active.len() == 1);
                });
                assert_eq!(take_exactly(&readers[index], 1)[0].data().unwrap().number, number);
            }
        }
    }
}

#[test]
fn another_threads_access_makes_a_condition_for_read_samples_true() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let was_read = reader.read_condition(States::READ);
    let wait_set = WaitSet::new();
    wait_set.attach_condition(&was_read);
    writer.write(&Numbered::new(0, 0)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_set.wait(DEADLINE));
        reader.wait_for_data(DEADLINE).unwrap();
        assert_eq!(reader.read(1).len(), 1);
        assert!(waiting.join().unwrap().unwrap().contains(&was_read));
    });
}

/// Sets a condition when samples arrive.
struct SetsOnData(GuardCondition);

impl<T> DataReaderListener<T> for SetsOnData {
    fn on_data_available(&self, _: &DataReader<T>) {
        self.0.set_trigger_value(true);
    }
}

#[test]
fn conditions_of_participants_and_publishers_are_never_true_and_a_wait_for_them_receives() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    let publisher = participant.create_publisher().unwrap();
    let (of_participant, of_publisher) = (participant.status_condition(), publisher.status_condition());
    let wait_set = WaitSet::new();
    [&of_participant, &of_publisher, &participant.status_condition()]
        .into_iter()
        .for_each(|condition| wait_set.attach_condition(condition));
    // Each entity has one condition.
    assert_eq!(wait_set.conditions().len(), 2);
    assert_eq!(of_participant.enabled_statuses(), StatusMask::ALL);
    assert!(is_timeout(wait_set.wait(Duration::ZERO)) && !of_publisher.trigger_value());

    let arrived = GuardCondition::new();
    wait_set.attach_condition(&arrived);
    let topic = world.topic::<Numbered>(&participant);
    let writer = publisher.create_datawriter(&topic, lossless_writer()).unwrap();
    let subscriber = participant.create_subscriber().unwrap();
    let _reader = subscriber
        .create_datareader_with_listener(&topic, lossless_reader(), SetsOnData(arrived.clone()))
        .unwrap();
    writer.write(&Numbered::new(0, 0)).unwrap();
    let active = wait_set.wait(DEADLINE).unwrap();
    assert!(active.contains(&arrived) && active.len() == 1);
}
