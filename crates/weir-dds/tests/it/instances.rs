//! Topics with a key: life cycle of instances.

use std::time::{Duration, SystemTime};

use weir_dds::{
    DataReader, DataReaderQos, DataWriterQos, DdsError, DdsType, InstanceHandle, InstanceState, Sample,
    SampleRanks, States, ViewState,
};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, pair, take_exactly,
};

fn one(reader: &DataReader<Keyed>) -> Sample<Keyed> {
    take_exactly(reader, 1).remove(0)
}

#[test]
fn instances_keep_apart_and_carry_the_writers_handle() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    for value in 0..3_000 {
        writer.write(&Keyed { id: (value % 100) as u32, value }).unwrap();
    }
    for (value, sample) in (0..3_000).zip(take_exactly(&reader, 3_000)) {
        assert_eq!(*sample.data().unwrap(), Keyed { id: (value % 100) as u32, value });
        assert_eq!(sample.info.instance_handle, InstanceHandle::of(sample.data().unwrap()).unwrap());
        assert_eq!(sample.info.instance_state, InstanceState::Alive);
    }
}

#[test]
fn a_disposed_instance_is_not_alive_until_it_is_written_again() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    let sample = Keyed { id: 5, value: 55 };
    writer.write(&sample).unwrap();
    let first = one(&reader);
    assert_eq!((first.info.view_state, first.info.instance_state), (ViewState::New, InstanceState::Alive));

    writer.dispose(&sample).unwrap();
    let gone = one(&reader);
    assert!(!gone.info.valid_data);
    assert_eq!(gone.key().unwrap().id, 5);
    assert_eq!(gone.info.instance_state, InstanceState::NotAliveDisposed);
    assert_eq!(gone.info.instance_handle, first.info.instance_handle);
    assert_eq!(gone.info.view_state, ViewState::NotNew);

    writer.write(&sample).unwrap();
    let back = one(&reader);
    assert!(back.info.valid_data);
    assert_eq!((back.info.view_state, back.info.instance_state), (ViewState::New, InstanceState::Alive));
    assert_eq!((back.info.disposed_generation_count, back.info.no_writers_generation_count), (1, 0));
}

#[test]
fn an_unregistered_instance_has_no_writers_until_it_is_written_again() {
    let qos = lossless_writer().autodispose_unregistered_instances(false);
    let (writer, reader) = pair::<Keyed>(qos, lossless_reader());
    let sample = Keyed { id: 6, value: 66 };
    writer.write(&sample).unwrap();
    one(&reader);
    writer.unregister_instance(&sample).unwrap();
    let gone = one(&reader);
    assert!(!gone.info.valid_data);
    assert_eq!((gone.key().unwrap().id, gone.info.instance_state), (6, InstanceState::NotAliveNoWriters));
    writer.write(&sample).unwrap();
    // It had no writer and its samples were taken: it counts as never seen.
    let back = one(&reader);
    assert_eq!((back.info.disposed_generation_count, back.info.no_writers_generation_count), (0, 0));
    assert_eq!(back.info.view_state, ViewState::New);
    writer.unregister_instance(&sample).unwrap();
    writer.write(&sample).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let [news, back] = <[_; 2]>::try_from(take_exactly(&reader, 2)).unwrap();
    assert_eq!((news.info.valid_data, news.info.instance_state), (false, InstanceState::Alive));
    assert_eq!((back.info.disposed_generation_count, back.info.no_writers_generation_count), (0, 1));
}

#[test]
fn an_instance_lives_as_long_as_one_of_its_writers() {
    let world = World::new();
    let reader = world.reader(&world.participant(), lossless_reader());
    let (one_writer, other) = (
        world.writer(&world.participant(), lossless_writer().autodispose_unregistered_instances(false)),
        world.writer(&world.participant(), lossless_writer()),
    );
    matched(&[&one_writer, &other], &[&reader]);
    let sample = Keyed { id: 1, value: 0 };
    one_writer.write(&sample).unwrap();
    one(&reader);
    other.write(&sample).unwrap();
    one(&reader);
    one_writer.unregister_instance(&sample).unwrap();
    one_writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(reader.available(), 0, "nothing has changed");
    // The other one leaves with its participant.
    drop(other);
    assert_eq!(one(&reader).info.instance_state, InstanceState::NotAliveNoWriters);
}

#[test]
fn a_writer_that_leaves_leaves_its_instances_without_writers() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    for id in 0..10 {
        writer.write(&Keyed { id, value: 1 }).unwrap();
    }
    assert_eq!(take_exactly(&reader, 10).len(), 10);
    let handles: Vec<_> = (0..10).map(|id| InstanceHandle::of(&Keyed { id, value: 0 }).unwrap()).collect();
    drop(writer);
    let news = take_exactly(&reader, 10);
    assert!(news.iter().all(|it| !it.info.valid_data));
    assert!(news.iter().all(|it| it.info.instance_state == InstanceState::NotAliveNoWriters));
    // The reader has kept the keys.
    let mut ids: Vec<_> = news.iter().map(|it| it.key().unwrap().id).collect();
    ids.sort_unstable();
    assert_eq!(ids, Vec::from_iter(0..10));
    let mut told: Vec<_> = news.iter().map(|it| it.info.instance_handle).collect();
    told.sort_unstable();
    let mut expected = handles;
    expected.sort_unstable();
    assert_eq!(told, expected);
}

#[test]
fn a_reader_keeps_the_last_samples_of_each_instance() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), DataReaderQos::default().reliable().keep_last(2));
    for value in 0..10 {
        for id in 0..3 {
            writer.write(&Keyed { id, value }).unwrap();
        }
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let values: Vec<_> = reader
        .take(usize::MAX)
        .into_iter()
        .map(|it| (it.data().unwrap().id, it.data().unwrap().value))
        .collect();
    assert_eq!(values, [(0, 8), (1, 8), (2, 8), (0, 9), (1, 9), (2, 9)]);
}

#[test]
fn writers_that_come_and_go_do_not_pile_up_beyond_the_depth() {
    let world = World::new();
    let reader: DataReader<Keyed> =
        world.reader(&world.participant(), DataReaderQos::default().reliable().keep_last(1));
    let participant = world.participant();
    for value in 0..5 {
        let writer = world.writer(&participant, lossless_writer());
        matched(&[&writer], &[&reader]);
        writer.write(&Keyed { id: 1, value }).unwrap();
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        drop(writer);
        // Discovery notifies the reader; no other event shows when it has.
        let deadline = std::time::Instant::now() + DEADLINE;
        while reader.subscription_matched_status().current_count > 0 {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert!(reader.available() <= 2, "{} samples are kept", reader.available());
    }
    let kept = reader.take(usize::MAX);
    assert_eq!(*kept[0].data().unwrap(), Keyed { id: 1, value: 4 }, "the last value is not replaced by news");
    assert!(!kept[1].info.valid_data);
}

#[test]
fn a_writer_keeps_the_last_samples_of_each_instance_for_late_readers() {
    let world = World::new();
    let mut qos = DataWriterQos::default().reliable().keep_last(2);
    qos.durability = weir_dds::Durability::TransientLocal;
    let writer = world.writer(&world.participant(), qos);
    for value in 0..10 {
        for id in 0..3 {
            writer.write(&Keyed { id, value }).unwrap();
        }
    }
    let mut qos = lossless_reader();
    qos.durability = weir_dds::Durability::TransientLocal;
    let reader = world.reader(&world.participant(), qos);
    let values: Vec<_> = take_exactly(&reader, 6)
        .into_iter()
        .map(|it: Sample<Keyed>| (it.data().unwrap().id, it.data().unwrap().value))
        .collect();
    assert_eq!(values, [(0, 8), (1, 8), (2, 8), (0, 9), (1, 9), (2, 9)]);
}

#[test]
fn without_a_key_there_is_nothing_to_dispose() {
    let (writer, _reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    for result in [writer.dispose(&Numbered::default()), writer.unregister_instance(&Numbered::default())] {
        assert!(matches!(result, Err(DdsError::BadParameter(text)) if text.contains("no key")));
    }
}

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "appendable")]
struct Ship {
    tonnes: f64,
    #[dds(key)]
    name: String,
    #[dds(key)]
    port: [u16; 3],
    crew: Vec<String>,
}

#[test]
fn keys_may_be_long_and_lie_between_other_members() {
    let (writer, reader) = pair::<Ship>(lossless_writer(), lossless_reader());
    let ship = |name: &str| Ship {
        tonnes: 1.5,
        name: name.repeat(30),
        port: [1, 2, 3],
        crew: vec!["Ann".to_owned(), "Bob".to_owned()],
    };
    for name in ["Argo", "Beagle", "Argo"] {
        writer.write(&ship(name)).unwrap();
    }
    writer.dispose(&ship("Beagle")).unwrap();
    let samples = take_exactly(&reader, 4);
    assert_eq!(*samples[0].data().unwrap(), ship("Argo"));
    assert_eq!(samples[0].info.instance_handle, samples[2].info.instance_handle);
    assert_eq!(samples[1].info.instance_handle, InstanceHandle::of(&ship("Beagle")).unwrap());
    assert_eq!(samples[3].info.instance_handle, samples[1].info.instance_handle);
    assert_eq!(*samples[3].key().unwrap(), Ship { tonnes: 0.0, crew: Vec::new(), ..ship("Beagle") });
    assert!(!samples[3].info.valid_data);
}

#[test]
fn an_unregistered_instance_is_disposed_unless_told_otherwise() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    writer.write(&Keyed { id: 6, value: 66 }).unwrap();
    one(&reader);
    writer.unregister_instance(&Keyed { id: 6, value: 0 }).unwrap();
    let gone = one(&reader);
    assert_eq!((gone.key().unwrap().id, gone.info.instance_state), (6, InstanceState::NotAliveDisposed));
}

#[test]
fn registered_instances_end_by_their_handles() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    let handle = writer.register_instance(&Keyed { id: 3, value: 9 }).unwrap();
    assert_eq!(writer.key_value(handle), Some(Keyed { id: 3, value: 0 }));
    assert_eq!(handle, InstanceHandle::of(&Keyed { id: 3, value: 1 }).unwrap());
    assert_eq!(writer.lookup_instance(&Keyed { id: 3, value: 1 }).unwrap(), Some(handle));
    assert_eq!(writer.lookup_instance(&Keyed { id: 4, value: 1 }).unwrap(), None);
    writer.write(&Keyed { id: 3, value: 1 }).unwrap();
    assert_eq!(one(&reader).info.instance_handle, handle);
    writer.dispose_by_handle(handle).unwrap();
    let gone = one(&reader);
    assert_eq!((gone.key().unwrap().id, gone.info.instance_state), (3, InstanceState::NotAliveDisposed));
    writer.unregister_by_handle(handle).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(reader.available(), 0, "it is disposed as before");
    assert_eq!(writer.key_value(handle), None);
    for result in [writer.dispose_by_handle(handle), writer.unregister_by_handle(handle)] {
        assert!(matches!(result, Err(DdsError::BadParameter(text)) if text.contains("register_instance")));
    }
}

#[test]
fn registered_instances_end_with_their_writer() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    writer.register_instance(&Keyed { id: 1, value: 0 }).unwrap();
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    writer.write(&Keyed { id: 2, value: 2 }).unwrap();
    take_exactly(&reader, 2);
    drop(writer);
    let mut ends: Vec<_> =
        take_exactly(&reader, 2).iter().map(|it| (it.key().unwrap().id, it.info.instance_state)).collect();
    ends.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(ends, [(1, InstanceState::NotAliveDisposed), (2, InstanceState::NotAliveNoWriters)]);
}

/// The instances of which a reader has news, and their states.
fn ends_of<T: DdsType>(reader: &DataReader<T>, count: usize, id: fn(&T) -> u32) -> Vec<(u32, InstanceState)> {
    let mut ends = Vec::new();
    while ends.len() < count {
        let samples = take_exactly(reader, 1);
        if !samples[0].info.valid_data {
            ends.push((id(samples[0].key().unwrap()), samples[0].info.instance_state));
        }
    }
    ends.sort_unstable_by_key(|(id, _)| *id);
    ends
}

#[test]
fn instances_that_were_only_written_are_registered_and_end_with_their_writer() {
    let disposed = InstanceState::NotAliveDisposed;
    let limits = weir_dds::ResourceLimits::UNLIMITED;
    let batch = weir_dds::BatchPolicy::new(8192, u32::MAX, Duration::from_millis(1));
    for (qos, expected) in [
        (DataWriterQos::default(), disposed),
        (DataWriterQos::default().batch(batch), disposed),
        (DataWriterQos::default().publish_mode(weir_dds::PublishMode::Asynchronous), disposed),
        (DataWriterQos::default().transient_local().keep_last(3), disposed),
        (lossless_writer().resource_limits(limits.max_instances(10)), disposed),
        (lossless_writer().deadline(DEADLINE * 60), disposed),
        (
            DataWriterQos::default().autodispose_unregistered_instances(false),
            InstanceState::NotAliveNoWriters,
        ),
    ] {
        let qos = qos.reliable();
        let (writer, reader) = pair::<Keyed>(qos.clone(), lossless_reader());
        for value in 0..3 {
            for id in 1..=3 {
                writer.write(&Keyed { id, value }).unwrap();
            }
        }
        let handle = InstanceHandle::of(&Keyed { id: 2, value: 0 }).unwrap();
        assert_eq!(writer.lookup_instance(&Keyed { id: 2, value: 9 }).unwrap(), Some(handle));
        assert_eq!(writer.key_value(handle), Some(Keyed { id: 2, value: 0 }));
        // It is registered again when it is written again.
        writer.unregister_by_handle(handle).unwrap();
        assert_eq!(writer.lookup_instance(&Keyed { id: 2, value: 9 }).unwrap(), None);
        ends_of(&reader, 1, |sample| sample.id);
        writer.write(&Keyed { id: 2, value: 4 }).unwrap();
        writer.close().unwrap();
        assert_eq!(ends_of(&reader, 3, |sample| sample.id), [1, 2, 3].map(|id| (id, expected)), "{qos:?}");
    }
}

#[test]
fn an_instance_that_is_disposed_first_is_registered_until_it_is_unregistered() {
    let qos = DataWriterQos::default().reliable().transient_local();
    let world = World::new();
    let writer = world.writer(&world.participant(), qos);
    let sample = Keyed { id: 4, value: 1 };
    writer.dispose(&sample).unwrap();
    let handle = InstanceHandle::of(&sample).unwrap();
    assert_eq!(writer.lookup_instance(&sample).unwrap(), Some(handle));
    assert_eq!(writer.key_value(handle), Some(Keyed { id: 4, value: 0 }));
    // A late reader receives its end.
    let reader = world.reader(&world.participant(), lossless_reader().transient_local());
    let gone = one(&reader);
    assert_eq!((gone.key().unwrap().id, gone.info.instance_state), (4, InstanceState::NotAliveDisposed));
    writer.dispose_by_handle(handle).unwrap();
    writer.unregister_by_handle(handle).unwrap();
    assert_eq!(writer.lookup_instance(&sample).unwrap(), None);
    // An instance that is unregistered first is not registered by that.
    writer.unregister_instance(&Keyed { id: 5, value: 0 }).unwrap();
    assert_eq!(writer.lookup_instance(&Keyed { id: 5, value: 0 }).unwrap(), None);
}

/// A loan can be made of it, and its key has to be hashed.
#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
struct Frame {
    #[dds(key)]
    id: u32,
    #[dds(key)]
    camera: String,
    pixels: Vec<u8>,
}

#[test]
fn instances_that_were_written_in_any_way_end_with_their_writer() {
    let frame = |id, len| Frame { id, camera: "front left".repeat(3), pixels: vec![7; len] };
    let (writer, reader) = pair::<Frame>(DataWriterQos::default().reliable(), lossless_reader());
    writer.write(&frame(1, 10)).unwrap();
    writer.write(&frame(2, 3_000_000)).unwrap();
    writer.write_w_timestamp(&frame(3, 20_000), SystemTime::now()).unwrap();
    let mut loan = writer.loan(10).unwrap();
    loan.sample = frame(4, 0);
    loan.write().unwrap();
    let mut payload = Vec::new();
    weir_dds::cdr::to_payload(&frame(5, 10), &mut payload).unwrap();
    writer.write_serialized(&payload).unwrap();
    take_exactly(&reader, 5);
    writer.close().unwrap();
    let expected = [1, 2, 3, 4, 5].map(|id| (id, InstanceState::NotAliveDisposed));
    assert_eq!(ends_of(&reader, 5, |sample| sample.id), expected);
}

#[test]
fn a_writer_remembers_a_limited_number_of_instances_that_were_only_written() {
    const REMEMBERED: u32 = 1024;
    let (writer, reader) = pair::<Keyed>(DataWriterQos::default().reliable(), lossless_reader());
    for id in 0..REMEMBERED + 100 {
        writer.write(&Keyed { id, value: 1 }).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert!(writer.lookup_instance(&Keyed { id: REMEMBERED, value: 0 }).unwrap().is_none());
    drop(writer);
    let ends = ends_of(&reader, REMEMBERED as usize + 100, |sample| sample.id);
    let (disposed, others) = ends.split_at(REMEMBERED as usize);
    assert!(disposed.iter().all(|(_, state)| *state == InstanceState::NotAliveDisposed));
    assert!(others.iter().all(|(_, state)| *state == InstanceState::NotAliveNoWriters));
}

#[test]
fn no_more_instances_are_registered_than_the_limit_says() {
    let mut qos = lossless_writer();
    qos.resource_limits.max_instances = Some(2);
    let (writer, _reader) = pair::<Keyed>(qos, lossless_reader());
    let register = |id| writer.register_instance(&Keyed { id, value: 0 });
    let handle = register(1).unwrap();
    register(2).unwrap();
    register(1).unwrap();
    assert!(matches!(register(3), Err(DdsError::OutOfResources(_))));
    writer.unregister_by_handle(handle).unwrap();
    register(3).unwrap();
}

/// A reader with three samples of each of three instances, the second of which is disposed.
fn crowded() -> (weir_dds::DataWriter<Keyed>, DataReader<Keyed>) {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    for value in 0..3 {
        for id in 0..3 {
            writer.write(&Keyed { id, value }).unwrap();
        }
    }
    writer.dispose(&Keyed { id: 1, value: 0 }).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    (writer, reader)
}

fn ids(samples: &[Sample<Keyed>]) -> Vec<(u32, u64)> {
    samples.iter().map(|it| it.key().unwrap()).map(|it| (it.id, it.value)).collect()
}

#[test]
fn samples_of_one_instance_are_read_and_taken_apart_from_the_others() {
    let (_writer, reader) = crowded();
    let handle = reader.lookup_instance(&Keyed { id: 2, value: 0 }).unwrap().unwrap();
    assert_eq!(reader.lookup_instance(&Keyed { id: 9, value: 0 }).unwrap(), None);
    assert_eq!(reader.key_value(handle), Some(Keyed { id: 2, value: 0 }));
    assert_eq!(ids(&reader.select().instance(handle).max(2).read()), [(2, 0), (2, 1)]);
    assert_eq!(ids(&reader.select().instance(handle).states(States::READ).max(9).read()), [(2, 0), (2, 1)]);
    assert_eq!(ids(&reader.select().instance(handle).states(States::NOT_READ).max(9).take()), [(2, 2)]);
    assert_eq!(ids(&reader.select().instance(handle).max(1).take()), [(2, 0)]);
    assert_eq!(ids(&reader.select().instance(handle).max(9).take()), [(2, 1)]);
    assert!(reader.select().instance(handle).max(9).take().is_empty());
    let unknown = InstanceHandle::of(&Keyed { id: 9, value: 0 }).unwrap();
    assert!(reader.select().instance(unknown).max(9).take().is_empty());
    assert_eq!(reader.key_value(unknown), None);
    assert_eq!(reader.available(), 7);
    assert_eq!(reader.take(usize::MAX).len(), 7);
}

#[test]
fn instances_are_taken_one_after_the_other() {
    let (_writer, reader) = crowded();
    let mut handle = None;
    let mut seen = Vec::new();
    loop {
        let samples = reader.select().next_instance(handle).take();
        let Some(first) = samples.first() else { break };
        handle = Some(first.info.instance_handle);
        assert!(samples.iter().all(|it| Some(it.info.instance_handle) == handle));
        seen.push((first.key().unwrap().id, samples.len()));
    }
    assert_eq!(seen, [(0, 3), (1, 4), (2, 3)]);
    assert_eq!(reader.available(), 0);
}

#[test]
fn only_instances_with_samples_in_these_states_come_next() {
    let (_writer, reader) = crowded();
    let first = reader.select().next_instance(None).states(States::NOT_ALIVE_DISPOSED).max(1).read();
    assert_eq!(ids(&first), [(1, 0)]);
    let handle = Some(first[0].info.instance_handle);
    assert!(reader.select().next_instance(handle).states(States::NOT_ALIVE).max(1).read().is_empty());
    assert_eq!(ids(&reader.select().next_instance(handle).states(States::ALIVE).max(1).read()), [(2, 0)]);
}

#[test]
fn samples_are_chosen_by_their_states() {
    let (_writer, reader) = crowded();
    assert_eq!(reader.select().states(States::NOT_ALIVE_DISPOSED).read().len(), 4);
    assert_eq!(reader.select().states(States::NEW).read().len(), 6);
    assert_eq!(reader.select().states(States::NEW).read().len(), 0);
    assert_eq!(reader.select().states(States::NOT_NEW | States::NOT_ALIVE).take().len(), 4);
    assert_eq!(reader.select().states(States::NOT_READ).take().len(), 0);
    assert_eq!(reader.select().states(States::READ | States::ALIVE).take().len(), 6);
}

#[test]
fn a_lost_instance_of_a_type_with_a_long_key_is_known_by_its_key() {
    let (writer, reader) = pair::<Ship>(lossless_writer(), lossless_reader());
    let ship =
        Ship { tonnes: 2.5, name: "Endurance".repeat(40), port: [7, 8, 9], crew: vec!["Eve".to_owned()] };
    writer.write(&ship).unwrap();
    take_exactly(&reader, 1);
    drop(writer);
    let gone = take_exactly(&reader, 1).remove(0);
    assert_eq!(gone.info.instance_state, InstanceState::NotAliveNoWriters);
    assert_eq!(*gone.key().unwrap(), Ship { tonnes: 0.0, crew: Vec::new(), ..ship });
}

#[test]
fn ranks_count_later_samples_and_later_lives_of_an_instance() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    let (one, other) = (Keyed { id: 1, value: 0 }, Keyed { id: 2, value: 0 });
    // The first instance is disposed twice and written again twice.
    for sample in [&one, &other, &one] {
        writer.write(sample).unwrap();
    }
    for _ in 0..2 {
        writer.dispose(&one).unwrap();
        writer.write(&one).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let ranks = |samples: &[Sample<Keyed>]| {
        let ranks = SampleRanks::of(samples).into_iter();
        Vec::from_iter(ranks.map(|it| (it.sample_rank, it.generation_rank, it.absolute_generation_rank)))
    };
    let all = reader.read(usize::MAX);
    assert_eq!(all.iter().map(|it| it.key().unwrap().id).collect::<Vec<_>>(), [1, 2, 1, 1, 1, 1, 1]);
    let expected = [(5, 2, 2), (0, 0, 0), (4, 2, 2), (3, 2, 2), (2, 1, 1), (1, 1, 1), (0, 0, 0)];
    assert_eq!(ranks(&all), expected);
    // The last of those returned is in the second life, the last in the reader in the third.
    let first = reader.select().instance(all[0].info.instance_handle).max(4).read();
    assert_eq!(ranks(&first), [(3, 1, 2), (2, 1, 2), (1, 1, 2), (0, 0, 1)]);
    assert_eq!(first[3].info.absolute_generation_rank(), 1);
}

#[test]
fn changes_of_an_instance_carry_the_timestamp_of_the_application() {
    let qos = lossless_writer().autodispose_unregistered_instances(false);
    let (writer, reader) = pair::<Keyed>(qos, lossless_reader());
    let sample = Keyed { id: 7, value: 1 };
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let handle = writer.register_instance_w_timestamp(&sample, at(1)).unwrap();
    assert_eq!(writer.lookup_instance(&sample).unwrap(), Some(handle));
    writer.write_w_timestamp(&sample, at(2)).unwrap();
    writer.dispose_w_timestamp(&sample, at(3)).unwrap();
    writer.write_w_timestamp(&sample, at(4)).unwrap();
    writer.unregister_instance_w_timestamp(&sample, at(5)).unwrap();
    assert_eq!(writer.lookup_instance(&sample).unwrap(), None, "it is not registered any more");
    let samples = take_exactly(&reader, 4);
    let stamps: Vec<_> = samples.iter().map(|it| it.info.source_timestamp().unwrap()).collect();
    assert_eq!(stamps, [at(2), at(3), at(4), at(5)]);
    assert_eq!(samples[3].info.instance_state, InstanceState::NotAliveNoWriters);
    // The engine measures the wall clock once a second; it may be slewed in between.
    let received = samples[3].info.reception_timestamp();
    assert!(received >= samples[0].info.reception_timestamp());
    assert!(received <= SystemTime::now() + Duration::from_secs(1) && received > at(1_000_000_000));
}

#[test]
fn without_a_value_there_is_the_key_and_no_data() {
    let (writer, reader) = pair::<Ship>(lossless_writer(), lossless_reader());
    let ship = Ship { name: "Fram".to_owned(), tonnes: 402.0, ..Ship::default() };
    writer.write(&ship).unwrap();
    writer.dispose(&ship).unwrap();
    let mut sample = Sample::default();
    assert!((sample.data(), sample.key(), sample.error()) == (None, None, None));
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert!(reader.read_next_sample(&mut sample));
    assert_eq!((sample.data(), sample.key()), (Some(&ship), Some(&ship)));
    assert!(reader.read_next_sample(&mut sample));
    assert!(sample.data().is_none() && sample.data_mut().is_none() && sample.clone().into_data().is_none());
    // Nothing of the sample before is left in it.
    assert_eq!(sample.key(), Some(&Ship { tonnes: 0.0, ..ship }));
    assert!(!reader.read_next_sample(&mut sample), "both were read");
    assert_eq!(reader.available(), 2);
}
