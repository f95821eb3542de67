//! RESOURCE_LIMITS of writers and readers (DDS 1.4, 2.2.3.19).

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use weir_dds::{
    BatchPolicy, DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos, DdsError, History,
    InstanceHandle, ResourceLimits, Sample, SampleRejectedReason, SampleRejectedStatus,
};

use crate::support::{
    DEADLINE, Keyed, World, lossless_reader, lossless_writer, matched, pair, poll_until, settings,
    take_exactly,
};

const PATIENCE: Duration = Duration::from_millis(20);
const NONE: ResourceLimits = ResourceLimits::UNLIMITED;

fn keyed(id: u32, value: u64) -> Keyed {
    Keyed { id, value }
}

/// Limits that block a writer until readers acknowledge.
fn samples(max_samples: u32) -> ResourceLimits {
    NONE.max_samples(max_samples)
}

#[test]
fn limits_that_contradict_each_other_are_refused_with_the_reason() {
    let world = World::new();
    let participant = world.participant();
    let topic = world.topic::<Keyed>(&participant);
    let check = |history, limits: ResourceLimits, expected: Option<&str>| {
        let mut writer = DataWriterQos::default().resource_limits(limits);
        let mut reader = DataReaderQos::default().resource_limits(limits);
        (writer.history, reader.history) = (history, history);
        let results = [
            participant.create_publisher().unwrap().create_datawriter(&topic, writer).err(),
            participant.create_subscriber().unwrap().create_datareader(&topic, reader).err(),
        ];
        for result in results {
            match (result, expected) {
                (None, None) => {}
                (Some(DdsError::InconsistentPolicy(text)), Some(part)) if text.contains(part) => {}
                (other, expected) => panic!("{other:?} is not {expected:?}"),
            }
        }
    };
    let each = |max| samples(10).max_samples_per_instance(max);
    check(History::KeepAll, each(10), None);
    check(History::KeepAll, each(11), Some("max_samples (10)"));
    check(History::KeepLast(3), each(3), None);
    check(History::KeepLast(4), each(3), Some("max_samples_per_instance is 3"));
    check(History::KeepLast(11), samples(10), Some("max_samples is 10"));
    check(History::KeepAll, samples(0), Some("max_samples is 0"));
    check(History::KeepAll, NONE.max_instances(0), Some("max_instances is 0"));
    check(History::KeepAll, NONE.max_bytes(0), Some("max_bytes is 0"));
}

#[test]
fn a_writer_waits_for_room_for_the_instance_that_is_full() {
    let limits = NONE.max_samples_per_instance(5);
    let qos = lossless_writer().max_blocking_time(PATIENCE).resource_limits(limits);
    let (writer, reader) = pair::<Keyed>(qos, lossless_reader().resource_limits(samples(4)));
    for value in 0..4 {
        writer.write(&keyed(1, value)).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    // The reader is full now, so these stay with the writer.
    for value in 4..9 {
        writer.write(&keyed(1, value)).unwrap();
    }
    let started = Instant::now();
    assert!(matches!(writer.write(&keyed(1, 9)), Err(DdsError::Timeout { .. })));
    assert!(started.elapsed() >= PATIENCE);
    writer.write(&keyed(2, 0)).unwrap();
    let mut values: Vec<_> = take_exactly(&reader, 10)
        .iter()
        .map(|it| (it.data().unwrap().id, it.data().unwrap().value))
        .collect();
    assert_eq!(values.pop(), Some((2, 0)));
    assert_eq!(values, Vec::from_iter((0..9).map(|value| (1, value))));
    writer.write(&keyed(1, 9)).unwrap();
    take_exactly(&reader, 1);
}

#[test]
fn waiting_that_cannot_help_is_spared() {
    let world = World::new();
    let publisher = world.participant();
    // So long that the test would not end.
    let patient = lossless_writer().max_blocking_time(DEADLINE * 10);
    let instances = NONE.max_instances(2);
    let bytes = NONE.max_bytes(1_000);
    let cases = [
        patient.clone().resource_limits(instances),
        patient.clone().keep_last(1).resource_limits(instances),
        patient.clone().transient_local().resource_limits(samples(2)),
        patient.clone().transient_local().keep_last(1).resource_limits(samples(2)),
        patient.clone().transient_local().resource_limits(bytes),
        patient.transient_local().keep_last(1).resource_limits(bytes),
    ];
    for (case, qos) in cases.into_iter().enumerate() {
        let writer = world.writer::<Keyed>(&publisher, qos);
        let written = (0..1_000).map(|id| writer.write(&keyed(id, 0))).take_while(Result::is_ok).count();
        assert!((2..40).contains(&written), "{case}: {written}");
        let refused = writer.write(&keyed(5_000, 0));
        assert!(matches!(refused, Err(DdsError::OutOfResources(_))), "{case}: {refused:?}");
    }
}

#[test]
fn an_unregistered_instance_makes_room_for_another() {
    let limits = NONE.max_instances(3);
    for qos in
        [lossless_writer(), lossless_writer().keep_last(1), lossless_writer().keep_last(1).transient_local()]
    {
        let (writer, reader) = pair::<Keyed>(qos.resource_limits(limits), lossless_reader());
        for id in 0..100 {
            writer.write(&keyed(id, 1)).unwrap();
            if id >= 2 {
                assert!(matches!(writer.write(&keyed(id + 1, 1)), Err(DdsError::OutOfResources(_))));
                writer.unregister_instance(&keyed(id - 2, 0)).unwrap();
            }
        }
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        assert_eq!(reader.take(usize::MAX).iter().filter(|it| it.info.valid_data).count(), 100);
    }
}

struct Told(Sender<SampleRejectedStatus>);

impl DataReaderListener<Keyed> for Told {
    fn on_sample_rejected(&self, _reader: &DataReader<Keyed>, status: SampleRejectedStatus) {
        self.0.send(status).unwrap();
    }
}

#[test]
fn a_reader_says_why_it_rejected_a_sample_and_gets_it_again() {
    let each = NONE.max_samples_per_instance(2);
    let instances = NONE.max_instances(1);
    let bytes = NONE.max_bytes(300);
    for (limits, reason, rejected, ids) in [
        (samples(3), SampleRejectedReason::SamplesLimit, 4, vec![1, 2, 3, 4]),
        (each, SampleRejectedReason::SamplesPerInstanceLimit, 1, vec![1, 1, 2, 1]),
        (bytes, SampleRejectedReason::BytesLimit, 4, vec![1, 2, 3, 4]),
        (instances, SampleRejectedReason::InstancesLimit, 2, vec![1, 2]),
    ] {
        let world = World::new();
        let participant = world.participant();
        let topic = world.topic::<Keyed>(&participant);
        let (sender, told) = mpsc::channel();
        let reader = participant
            .create_subscriber()
            .unwrap()
            .create_datareader_with_listener(&topic, lossless_reader().resource_limits(limits), Told(sender))
            .unwrap();
        let writer = world.writer::<Keyed>(&world.participant(), lossless_writer());
        matched(&[&writer], &[&reader]);
        for id in &ids {
            writer.write(&keyed(*id, 7)).unwrap();
        }
        let status = told.recv_timeout(DEADLINE).unwrap();
        assert_eq!((status.total_count, status.last_reason), (1, Some(reason)));
        let handle = InstanceHandle::of(&keyed(rejected, 0)).unwrap();
        assert_eq!(status.last_instance_handle, Some(handle), "{reason:?}");
        assert!(writer.wait_for_acknowledgments(PATIENCE).is_err());
        if reason == SampleRejectedReason::InstancesLimit {
            continue;
        }
        assert_eq!(take_exactly(&reader, ids.len()).len(), ids.len());
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        assert_eq!(reader.sample_lost_status().total_count, 0);
    }
}

/// It need not wait for the writer's next HEARTBEAT.
#[test]
fn a_sample_that_was_refused_is_requested_as_soon_as_there_is_room() {
    let takes: [fn(&DataReader<Keyed>) -> usize; 3] = [
        |reader| reader.take(1).len(),
        |reader| usize::from(reader.take_next_sample(&mut Sample::default())),
        |reader| reader.take_serialized(1).len(),
    ];
    for take in takes {
        // Polled, so that no HEARTBEAT comes meanwhile.
        let world = World::new();
        let participants = [0, 1].map(|_| world.participant_with(settings().without_threads()));
        let [here, there] = &participants;
        let writer: DataWriter<Keyed> = world.writer(here, lossless_writer());
        let reader: DataReader<Keyed> = world.reader(there, lossless_reader().resource_limits(samples(1)));
        let poll_until = |is_done: &dyn Fn() -> bool| poll_until(&participants.each_ref(), is_done);
        poll_until(&|| {
            writer.publication_matched_status().current_count == 1
                && reader.subscription_matched_status().current_count == 1
        });
        let is_acknowledged = || writer.wait_for_acknowledgments(Duration::ZERO).is_ok();
        writer.write(&keyed(1, 1)).unwrap();
        poll_until(&is_acknowledged);
        writer.write(&keyed(2, 2)).unwrap();
        poll_until(&|| reader.sample_rejected_status().total_count == 1);
        let before = reader.protocol_counters().nacks_sent;
        assert_eq!(take(&reader), 1);
        assert_eq!(reader.protocol_counters().nacks_sent, before + 1);
        poll_until(&is_acknowledged);
        assert_eq!(take(&reader), 1);
    }
}

/// Only samples that have left are replaced: the batch that is open does, before a write is refused.
#[test]
fn a_history_that_keeps_the_last_samples_is_never_full_of_an_open_batch() {
    let batch = BatchPolicy::new(8192, 100, DEADLINE);
    let qos = lossless_writer().transient_local().keep_last(1).resource_limits(samples(10)).batch(batch);
    let (writer, reader) = pair::<Keyed>(qos, lossless_reader());
    (0..50).for_each(|value| writer.write(&keyed(1, value)).unwrap());
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let last = reader.take(50).pop().unwrap();
    assert_eq!(last.data().unwrap().value, 49);
}

/// What a suspended publisher holds back leaves when there is no room for more.
#[test]
fn a_history_that_keeps_the_last_samples_is_never_full_of_suspended_ones() {
    let world = World::new();
    let participant = world.participant();
    let reader = world.reader::<Keyed>(&participant, lossless_reader());
    let topic = world.topic::<Keyed>(&participant);
    let publisher = participant.create_publisher().unwrap();
    let qos = lossless_writer().transient_local().keep_last(1).resource_limits(samples(10));
    let writer: DataWriter<Keyed> = publisher.create_datawriter(&topic, qos).unwrap();
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    publisher.suspend_publications().unwrap();
    (0..200).for_each(|value| writer.write(&keyed(1, value)).unwrap());
    publisher.resume_publications().unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(reader.take(200).pop().unwrap().data().unwrap().value, 199);
}

#[test]
fn a_listener_may_be_set_that_hears_of_nothing() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader().resource_limits(samples(1)));
    let (sender, told) = mpsc::channel();
    writer.write(&keyed(1, 1)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    reader.set_listener(Some(Arc::new(Told(sender))));
    assert!(told.try_recv().is_err());
    assert_eq!(reader.sample_rejected_status(), SampleRejectedStatus::default());
}
