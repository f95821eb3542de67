//! Policies of DDS 1.4, 2.2.3, have effect.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, pair, take_exactly,
};
use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterListener, DataWriterQos, DdsError,
    DeadlineMissedStatus, DestinationOrder, InstanceHandle, LivelinessKind, Ownership, TopicQos,
};

#[test]
fn a_deadline_shorter_than_the_minimum_separation_is_refused_with_both() {
    let world = World::new();
    let participant = world.participant();
    let topic = world.topic::<Numbered>(&participant);
    let qos =
        DataReaderQos::default().deadline(Duration::from_secs(1)).time_based_filter(Duration::from_secs(2));
    match participant.create_subscriber().unwrap().create_datareader(&topic, qos) {
        Err(DdsError::InconsistentPolicy(text)) => {
            assert!(text.starts_with("DEADLINE: a period of 1s is shorter"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn endpoints_take_over_the_policies_of_a_topic_and_keep_their_own() {
    let topic = TopicQos::default()
        .reliable()
        .transient_local()
        .keep_last(7)
        .deadline(Duration::from_secs(3))
        .latency_budget(Duration::from_millis(4))
        .liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(5))
        .destination_order(DestinationOrder::BySourceTimestamp)
        .ownership(Ownership::Exclusive)
        .lifespan(Duration::from_secs(6))
        .transport_priority(8)
        .max_blocking_time(Duration::from_secs(9));
    let writer =
        DataWriterQos::default().copy_from_topic_qos(&topic).user_data(*b"mine").ownership_strength(1);
    let expected = DataWriterQos::default()
        .reliable()
        .transient_local()
        .keep_last(7)
        .deadline(Duration::from_secs(3))
        .latency_budget(Duration::from_millis(4))
        .liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(5))
        .destination_order(DestinationOrder::BySourceTimestamp)
        .ownership(Ownership::Exclusive)
        .lifespan(Duration::from_secs(6))
        .transport_priority(8)
        .max_blocking_time(Duration::from_secs(9))
        .user_data(*b"mine")
        .ownership_strength(1);
    assert_eq!(writer, expected);
    let reader = DataReaderQos::default().copy_from_topic_qos(&topic).partition(["p"]);
    let expected = DataReaderQos::default()
        .reliable()
        .transient_local()
        .keep_last(7)
        .deadline(Duration::from_secs(3))
        .latency_budget(Duration::from_millis(4))
        .liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(5))
        .destination_order(DestinationOrder::BySourceTimestamp)
        .ownership(Ownership::Exclusive)
        .partition(["p"]);
    assert_eq!(reader, expected);
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
    let subscriber = other.create_subscriber().unwrap();
    let reader =
        subscriber.create_datareader_with_listener::<Keyed>(&world.topic(&other), qos, listener).unwrap();
    let (qos, listener) = (lossless_writer().deadline(period), Missed(Mutex::new(tell)));
    let publisher = participant.create_publisher().unwrap();
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
    // The last one waits for the end of the separation.
    assert_eq!((reader.available(), reader.protocol_counters().samples_filtered), (0, 1));
}
