//! Policies of DDS 1.4, 2.2.3: those that are not enforced yet are refused, and the others have effect.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterListener, DataWriterQos, DdsError,
    DeadlineMissedStatus, DestinationOrder, INFINITE, InstanceHandle, Ownership, Qos,
};
use weir_rtps::qos::PresentationScope;

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, pair, take_exactly,
};

/// Creates a writer and a reader with QoS changed by `change`; returns their errors.
fn create(world: &World, change: impl Fn(&mut Qos)) -> [Option<DdsError>; 2] {
    let participant = world.participant();
    let topic = world.topic::<Numbered>(&participant);
    let (mut writer, mut reader) = (DataWriterQos::default(), DataReaderQos::default());
    change(&mut writer.policies);
    change(&mut reader.policies);
    [
        participant.create_publisher().create_datawriter(&topic, writer).err(),
        participant.create_subscriber().create_datareader(&topic, reader).err(),
    ]
}

#[test]
fn a_policy_that_is_not_enforced_is_refused_at_both_ends_with_its_name_value_and_default() {
    let world = World::new();
    let check = |change: fn(&mut Qos), expected: &str| {
        for result in create(&world, change) {
            match result {
                Some(DdsError::Unsupported(text)) => assert_eq!(text, expected),
                other => panic!("{other:?} is not {expected:?}"),
            }
        }
    };
    check(
        |qos| qos.presentation.scope = PresentationScope::Topic,
        "PRESENTATION: access scope TOPIC, coherent_access false, ordered_access false is not enforced yet: \
         leave it at its default (INSTANCE, false, false)",
    );
    check(
        |qos| qos.presentation.coherent_access = true,
        "PRESENTATION: access scope INSTANCE, coherent_access true, ordered_access false is not enforced yet: \
         leave it at its default (INSTANCE, false, false)",
    );
    check(
        |qos| qos.presentation.ordered_access = true,
        "PRESENTATION: access scope INSTANCE, coherent_access false, ordered_access true is not enforced yet: \
         leave it at its default (INSTANCE, false, false)",
    );
}

#[test]
fn the_defaults_a_latency_budget_and_a_priority_are_accepted_at_both_ends() {
    let world = World::new();
    let changes: [fn(&mut Qos); 4] = [
        |_| {},
        |qos| (qos.deadline, qos.lifespan, qos.ownership_strength) = (INFINITE, INFINITE, 0),
        |qos| qos.latency_budget = Duration::from_millis(10),
        |qos| qos.transport_priority = -7,
    ];
    for change in changes {
        let results = create(&world, change);
        assert!(results.iter().all(Option::is_none), "{results:?}");
    }
}

#[test]
fn a_policy_of_the_other_side_is_refused_with_its_name() {
    let world = World::new();
    let check = |change: fn(&mut Qos), side: usize, policy: &str| match &create(&world, change)[side] {
        Some(DdsError::InconsistentPolicy(text)) => assert!(text.starts_with(policy), "{text}"),
        other => panic!("{other:?} is no refusal of {policy}"),
    };
    check(|qos| qos.lifespan = Duration::from_secs(2), 1, "LIFESPAN: only writers have");
    check(|qos| qos.ownership_strength = -3, 1, "OWNERSHIP_STRENGTH: only writers have");
    check(|qos| qos.time_based_filter = Duration::from_secs(2), 0, "TIME_BASED_FILTER: only readers have");
    let contradicts = |qos: &mut Qos| {
        (qos.deadline, qos.time_based_filter) = (Duration::from_secs(1), Duration::from_secs(2))
    };
    check(contradicts, 1, "DEADLINE: a period of 1s is shorter");
}

/// Forwards missed deadlines.
struct Missed(Mutex<Sender<DeadlineMissedStatus>>);

impl<T> DataReaderListener<T> for Missed {
    fn on_requested_deadline_missed(&self, _: &DataReader<T>, status: DeadlineMissedStatus) {
        let _ = self.0.lock().unwrap().send(status);
    }
}

impl<T> DataWriterListener<T> for Missed {
    fn on_offered_deadline_missed(&self, _: &DataWriter<T>, status: DeadlineMissedStatus) {
        let _ = self.0.lock().unwrap().send(status);
    }
}

#[test]
fn listeners_at_both_ends_hear_of_a_missed_deadline_and_its_instance() {
    let world = World::new();
    let (participant, other) = (world.participant(), world.participant());
    let period = Duration::from_millis(20);
    let ((told, requested), (tell, offered)) = (channel(), channel());
    let qos = lossless_reader().deadline(period);
    let listener = Missed(Mutex::new(told));
    let subscriber = other.create_subscriber();
    let reader =
        subscriber.create_datareader_with_listener::<Keyed>(&world.topic(&other), qos, listener).unwrap();
    let (qos, listener) = (lossless_writer().deadline(period), Missed(Mutex::new(tell)));
    let publisher = participant.create_publisher();
    let writer = publisher
        .create_datawriter_with_listener::<Keyed>(&world.topic(&participant), qos, listener)
        .unwrap();
    matched(&[&writer], &[&reader]);
    let sample = Keyed { id: 7, value: 1 };
    writer.write(&sample).unwrap();
    let instance = Some(InstanceHandle::of(&sample).unwrap());
    for statuses in [requested, offered] {
        let status = statuses.recv_timeout(DEADLINE).unwrap();
        assert!(status.total_count >= 1 && status.total_count_change >= 1, "{status:?}");
        assert_eq!(status.last_instance_handle, instance);
    }
    assert_eq!(*take_exactly(&reader, 1)[0].data().unwrap(), sample);
}

#[test]
fn a_late_reader_is_not_sent_expired_samples() {
    let world = World::new();
    let qos = lossless_writer().transient_local().lifespan(Duration::from_millis(1));
    let writer = world.writer::<Numbered>(&world.participant(), qos);
    let mut number = 0;
    // Until the timer has removed some.
    let deadline = Instant::now() + DEADLINE;
    while writer.protocol_counters().samples_expired < 3 {
        assert!(Instant::now() < deadline, "nothing expires");
        writer.write(&Numbered::new(1, number)).unwrap();
        number += 1;
        std::thread::yield_now();
    }
    let reader = world.reader::<Numbered>(&world.participant(), lossless_reader().transient_local());
    matched(&[&writer], &[&reader]);
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let taken = reader.take(usize::MAX);
    assert!(taken.iter().all(|sample| sample.data().unwrap().number >= 3), "{taken:?}");
}

#[test]
fn the_strongest_writer_is_followed_by_the_next_one() {
    let world = World::new();
    let reader =
        world.reader::<Keyed>(&world.participant(), lossless_reader().ownership(Ownership::Exclusive));
    let participant = world.participant();
    let [weak, strong] = [1, 2].map(|strength| {
        let qos = lossless_writer().ownership(Ownership::Exclusive).ownership_strength(strength);
        world.writer::<Keyed>(&participant, qos)
    });
    matched(&[&weak, &strong], &[&reader]);
    let write = |writer: &DataWriter<Keyed>, value| {
        writer.write(&Keyed { id: 1, value }).unwrap();
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    };
    write(&strong, 1);
    write(&weak, 2);
    write(&strong, 3);
    drop(strong);
    let deadline = Instant::now() + DEADLINE;
    while reader.matched_publications().len() > 1 {
        assert!(Instant::now() < deadline, "the writer is still matched");
        std::thread::yield_now();
    }
    write(&weak, 4);
    let values: Vec<_> = take_exactly(&reader, 3).iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!(values, [1, 3, 4]);
    assert_eq!(reader.protocol_counters().samples_not_owned, 1);
}

#[test]
fn by_source_timestamp_an_older_sample_is_left_out() {
    let order = DestinationOrder::BySourceTimestamp;
    let (writer, reader) =
        pair::<Keyed>(lossless_writer().destination_order(order), lossless_reader().destination_order(order));
    let start = SystemTime::now();
    for (id, value, after) in [(1, 1, 2), (1, 2, 1), (2, 3, 1), (1, 4, 3)] {
        writer.write_w_timestamp(&Keyed { id, value }, start + Duration::from_secs(after)).unwrap();
    }
    let values: Vec<_> = take_exactly(&reader, 3).iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!(values, [1, 3, 4]);
}

#[test]
fn a_reader_with_a_minimum_separation_is_delivered_the_first_of_a_burst() {
    let (writer, reader) =
        pair::<Keyed>(lossless_writer(), lossless_reader().time_based_filter(Duration::from_secs(3600)));
    for (id, value) in [(1, 1), (1, 2), (2, 3), (1, 4)] {
        writer.write(&Keyed { id, value }).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let values: Vec<_> = take_exactly(&reader, 2).iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!(values, [1, 3]);
    assert_eq!((reader.available(), reader.protocol_counters().samples_filtered), (0, 2));
}
