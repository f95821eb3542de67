//! The expectations of the OMG's interoperability suite, in our own words, between two participants of Weir.
//!
//! | tests of the suite | here, or elsewhere |
//! |---|---|
//! | Domain 0, 2; DataRepresentation; Reliability 1 to 3; Ownership 0 to 2 | `both_sides_report_..` |
//! | Deadline 0 to 2; Durability 0 to 15; Topic 0; Partition 0 | the same |
//! | Topic 1, Partition 1 and 2; Domain 1: `participants` | `what_does_not_concern_a_reader_is_not_matched` |
//! | Reliability 0, 4, 5; History; LargeData | `nothing_is_lost_and_all_is_in_order` |
//! | Ownership 3 to 6 | `a_reader_hears_the_strongest_writer_or_all` |
//! | Cft | `a_filtered_reader_gets_what_fits` |
//! | Durability 16, 17 | `a_late_reader_begins_where_its_durability_says` |
//! | FinalInstanceState | `instances_end_as_their_writer_says` |
//! | OrderedAccess, CoherentSets | `presentation` |
//! | Deadline 3 | `policies` |
//! | TimeBasedFilter, Lifespan | weir-rtps, `reader/tests/policies.rs`, in virtual time |

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use weir_dds::Durability::{Persistent, Transient, TransientLocal, Volatile};
use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataRepresentation, DataWriter, DataWriterListener,
    DataWriterQos, DdsType, DomainParticipant, Durability, IncompatibleQosStatus, InstanceState, Ownership,
    PolicyId, PublicationMatchedStatus, PublisherQos, Sample, SubscriberQos, SubscriptionMatchedStatus,
};

use crate::support::{DEADLINE, World, lossless_reader, lossless_writer, matched, take_exactly};

#[derive(DdsType, Debug, Default, Clone, PartialEq)]
#[dds(extensibility = "appendable")]
struct Shape {
    #[dds(key, max_len = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

fn shape(color: &str, shapesize: i32) -> Shape {
    Shape { color: color.to_owned(), shapesize, ..Shape::default() }
}

/// Matched, or the policy that prevents it.
type Outcome = Result<(), PolicyId>;

struct Report(Mutex<Sender<Outcome>>);

impl Report {
    fn report(&self, outcome: Outcome) {
        // The test may be over.
        let _ = self.0.lock().unwrap().send(outcome);
    }
}

impl DataWriterListener<Shape> for Report {
    fn on_publication_matched(&self, _: &DataWriter<Shape>, _: PublicationMatchedStatus) {
        self.report(Ok(()));
    }

    fn on_offered_incompatible_qos(&self, _: &DataWriter<Shape>, status: IncompatibleQosStatus) {
        self.report(Err(status.last_policy_id.unwrap()));
    }
}

impl DataReaderListener<Shape> for Report {
    fn on_subscription_matched(&self, _: &DataReader<Shape>, _: SubscriptionMatchedStatus) {
        self.report(Ok(()));
    }

    fn on_requested_incompatible_qos(&self, _: &DataReader<Shape>, status: IncompatibleQosStatus) {
        self.report(Err(status.last_policy_id.unwrap()));
    }
}

/// What both sides report.
fn meet(
    world: &World,
    ends: &[DomainParticipant; 2],
    offered: DataWriterQos,
    requested: DataReaderQos,
) -> [Outcome; 2] {
    let world = world.sibling();
    let [(to_writer, of_writer), (to_reader, of_reader)] = [channel(), channel()];
    let _writer = ends[0]
        .create_publisher()
        .unwrap()
        .create_datawriter_with_listener(&world.topic(&ends[0]), offered, Report(to_writer.into()))
        .unwrap();
    let _reader = ends[1]
        .create_subscriber()
        .unwrap()
        .create_datareader_with_listener(&world.topic(&ends[1]), requested, Report(to_reader.into()))
        .unwrap();
    [of_writer, of_reader].map(|outcomes| outcomes.recv_timeout(DEADLINE).unwrap())
}

#[test]
fn both_sides_report_a_match_or_the_policy_that_prevents_it() {
    use DataRepresentation::{Xcdr1, Xcdr2};
    let writer = || DataWriterQos::default().data_representation(Xcdr2);
    let reader = || DataReaderQos::default().reliable().data_representation([Xcdr2]);
    let exclusive = |strength| writer().ownership(Ownership::Exclusive).ownership_strength(strength);
    let seconds = Duration::from_secs;
    let mut table: Vec<(String, DataWriterQos, DataReaderQos, Outcome)> = vec![
        ("Domain 0 and 2".into(), writer(), reader().best_effort(), Ok(())),
        ("Reliability 1".into(), writer().best_effort(), reader(), Err(PolicyId::Reliability)),
        ("Reliability 2".into(), writer(), reader().best_effort(), Ok(())),
        ("Reliability 3".into(), writer(), reader(), Ok(())),
        ("Ownership 0".into(), writer(), reader(), Ok(())),
        ("Ownership 1".into(), exclusive(3), reader(), Err(PolicyId::Ownership)),
        ("Ownership 2".into(), writer(), reader().ownership(Ownership::Exclusive), Err(PolicyId::Ownership)),
    ];
    for (number, (offered, requested)) in [(3, 5), (5, 5), (7, 5)].into_iter().enumerate() {
        let expected = if offered <= requested { Ok(()) } else { Err(PolicyId::Deadline) };
        let (offered, requested) =
            (writer().deadline(seconds(offered)), reader().deadline(seconds(requested)));
        table.push((format!("Deadline {number}"), offered, requested, expected));
    }
    for offered in [Xcdr1, Xcdr2] {
        for requested in [Xcdr1, Xcdr2] {
            let expected = if offered == requested { Ok(()) } else { Err(PolicyId::DataRepresentation) };
            let name = format!("DataRepresentation {offered:?} {requested:?}");
            let (offered, requested) =
                (writer().data_representation(offered), reader().data_representation([requested]));
            table.push((name, offered, requested, expected));
        }
    }
    let kinds: [Durability; 4] = [Volatile, TransientLocal, Transient, Persistent];
    for offered in kinds {
        for requested in kinds {
            let expected = if offered >= requested { Ok(()) } else { Err(PolicyId::Durability) };
            let name = format!("Durability {offered:?} {requested:?}");
            table.push((name, writer().durability(offered), reader().durability(requested), expected));
        }
    }
    let world = World::new();
    let ends = [world.participant(), world.participant()];
    for (name, offered, requested, expected) in table {
        assert_eq!(meet(&world, &ends, offered, requested), [expected; 2], "{name}");
    }
}

#[test]
fn what_does_not_concern_a_reader_is_not_matched() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let writer_in = |world: &World, partition: &str| {
        let group = PublisherQos::default().partition([partition]);
        let publisher = here.create_publisher_with_qos(group).unwrap();
        publisher.create_datawriter(&world.topic::<Shape>(&here), lossless_writer()).unwrap()
    };
    let reader_in = |world: &World, partition: &str| {
        let group = SubscriberQos::default().partition([partition]);
        let subscriber = there.create_subscriber_with_qos(group).unwrap();
        subscriber.create_datareader(&world.topic::<Shape>(&there), lossless_reader()).unwrap()
    };
    let reader = reader_in(&world, "p*");
    // Another topic, and other partitions. Announcements arrive in order, so these are known once the last is matched.
    let others = [writer_in(&world.sibling(), "p1"), writer_in(&world, "x1"), writer_in(&world, "q")];
    let wanted = writer_in(&world, "p1");
    matched(&[&wanted], &[&reader]);
    assert_eq!(reader.matched_publications(), [wanted.instance_handle()]);
    for (writer, size) in others.iter().zip(0..) {
        assert!(writer.matched_subscriptions().is_empty());
        writer.write(&shape("RED", size)).unwrap();
    }
    wanted.write(&shape("BLUE", 9)).unwrap();
    assert_eq!(*take_exactly(&reader, 1)[0].data().unwrap(), shape("BLUE", 9));
    assert_eq!(reader.available(), 0);
}

fn ends(writer: DataWriterQos, reader: DataReaderQos) -> (DataWriter<Shape>, DataReader<Shape>) {
    crate::support::pair(
        writer.data_representation(DataRepresentation::Xcdr2),
        reader.data_representation([DataRepresentation::Xcdr2]),
    )
}

const COLORS: [&str; 4] = ["BLUE", "BLUE1", "BLUE2", "BLUE3"];

#[test]
fn nothing_is_lost_and_all_is_in_order() {
    for colors in [&COLORS[..1], &COLORS] {
        let (writer, reader) = ends(lossless_writer(), lossless_reader());
        for size in 1..=500 {
            colors.iter().for_each(|color| writer.write(&shape(color, size)).unwrap());
        }
        let expected = (1..=500).flat_map(|size| colors.iter().map(move |color| (*color, size)));
        for (sample, expected) in take_exactly(&reader, 500 * colors.len()).iter().zip(expected) {
            let Shape { color, shapesize, .. } = sample.data().unwrap();
            assert_eq!((color.as_str(), *shapesize), expected);
        }
        // KEEP_LAST 5, taken after every four writes.
        let (writer, reader) =
            ends(DataWriterQos::default().keep_last(5), DataReaderQos::default().reliable().keep_last(5));
        for round in 0..20 {
            let sizes = 4 * round..4 * round + 4;
            for size in sizes.clone() {
                colors.iter().for_each(|color| writer.write(&shape(color, size)).unwrap());
            }
            let taken = take_exactly(&reader, 4 * colors.len());
            for color in colors {
                let of = taken.iter().filter_map(Sample::data).filter(|shape| shape.color == *color);
                assert!(of.map(|shape| shape.shapesize).eq(sizes.clone()));
            }
        }
    }
    let (writer, reader) = ends(lossless_writer(), lossless_reader());
    let large = Shape { additional_payload_size: vec![255; 100_000], ..shape("BLUE", 20) };
    for _ in 0..50 {
        writer.write(&large).unwrap();
        assert_eq!(take_exactly(&reader, 1)[0].data(), Some(&large));
    }
    let (writer, reader) =
        ends(DataWriterQos::default().best_effort(), DataReaderQos::default().keep_last(10));
    let mut last = 0;
    for size in 1..=100 {
        writer.write(&shape("BLUE", size)).unwrap();
        for sample in reader.take(usize::MAX) {
            let size = sample.data().unwrap().shapesize;
            assert!(size > last);
            last = size;
        }
    }
}

#[test]
fn a_reader_hears_the_strongest_writer_or_all() {
    let exclusive = |strength| lossless_writer().ownership(Ownership::Exclusive).ownership_strength(strength);
    let table = [
        ("Ownership 3", [exclusive(3), exclusive(4)], ["BLUE", "BLUE"], true, &[30][..]),
        ("Ownership 4", [exclusive(3), exclusive(4)], ["BLUE", "RED"], true, &[20, 30]),
        ("Ownership 5", [lossless_writer(), lossless_writer()], ["BLUE", "BLUE"], false, &[20, 30]),
        ("Ownership 6", [lossless_writer(), lossless_writer()], ["BLUE", "RED"], false, &[20, 30]),
    ];
    for (name, qos, colors, is_exclusive, expected) in table {
        let world = World::new();
        let participant = world.participant();
        let [weak, strong] = qos.map(|qos| world.writer::<Shape>(&participant, qos));
        let kind = if is_exclusive { Ownership::Exclusive } else { Ownership::Shared };
        let reader = world.reader(&world.participant(), lossless_reader().ownership(kind));
        matched(&[&weak, &strong], &[&reader]);
        // Once the stronger one has written, it owns its instances.
        strong.write(&shape(colors[1], 30)).unwrap();
        strong.wait_for_acknowledgments(DEADLINE).unwrap();
        for _ in 0..10 {
            weak.write(&shape(colors[0], 20)).unwrap();
            strong.write(&shape(colors[1], 30)).unwrap();
        }
        weak.wait_for_acknowledgments(DEADLINE).unwrap();
        strong.wait_for_acknowledgments(DEADLINE).unwrap();
        let mut sizes: Vec<_> =
            reader.take(usize::MAX).iter().map(|it| it.data().unwrap().shapesize).collect();
        sizes.sort_unstable();
        sizes.dedup();
        assert_eq!(sizes, expected, "{name}");
    }
}

#[test]
fn a_filtered_reader_gets_what_fits() {
    for (expression, parameters) in [("color = %0", &["'RED'"][..]), ("shapesize <= 20", &[])] {
        let world = World::new();
        let (here, there) = (world.participant(), world.participant());
        let topic = world.topic::<Shape>(&there);
        let filtered = there.create_contentfilteredtopic("filtered", &topic, expression, parameters).unwrap();
        let reader =
            there.create_subscriber().unwrap().create_datareader(&filtered, lossless_reader()).unwrap();
        let (blue, red) = (world.writer(&here, lossless_writer()), world.writer(&here, lossless_writer()));
        matched(&[&blue, &red], &[&reader]);
        for size in 1..=50 {
            blue.write(&shape("BLUE", size)).unwrap();
            red.write(&shape("RED", size)).unwrap();
        }
        blue.wait_for_acknowledgments(DEADLINE).unwrap();
        red.wait_for_acknowledgments(DEADLINE).unwrap();
        let samples = reader.take(usize::MAX);
        let fits =
            |shape: &Shape| if parameters.is_empty() { shape.shapesize <= 20 } else { shape.color == "RED" };
        assert!(samples.iter().all(|sample| sample.data().is_some_and(fits)), "{expression}");
        assert_eq!(samples.len(), if parameters.is_empty() { 40 } else { 50 }, "{expression}");
    }
}

#[test]
fn a_late_reader_begins_where_its_durability_says() {
    for (durability, first) in [(Volatile, 6), (TransientLocal, 1)] {
        let world = World::new();
        let writer = world.writer::<Shape>(&world.participant(), lossless_writer().durability(durability));
        (1..=5).for_each(|size| writer.write(&shape("BLUE", size)).unwrap());
        let reader = world.reader(&world.participant(), lossless_reader().durability(durability));
        matched(&[&writer], &[&reader]);
        writer.write(&shape("BLUE", 6)).unwrap();
        let taken = take_exactly(&reader, 7 - first as usize);
        assert_eq!(taken[0].data().unwrap().shapesize, first, "{durability:?}");
    }
}

#[test]
fn instances_end_as_their_writer_says() {
    use InstanceState::{NotAliveDisposed, NotAliveNoWriters};
    type End = fn(DataWriter<Shape>);
    let unregister: End =
        |writer| COLORS.iter().for_each(|color| writer.unregister_instance(&shape(color, 0)).unwrap());
    let dispose: End = |writer| COLORS.iter().for_each(|color| writer.dispose(&shape(color, 0)).unwrap());
    let leave: End = drop;
    for (number, end, expected) in
        [(0, unregister, NotAliveNoWriters), (1, dispose, NotAliveDisposed), (2, leave, NotAliveNoWriters)]
    {
        let qos = lossless_writer().autodispose_unregistered_instances(false);
        let (writer, reader) = ends(qos, lossless_reader());
        COLORS.iter().for_each(|color| writer.write(&shape(color, 1)).unwrap());
        take_exactly(&reader, COLORS.len());
        end(writer);
        let ends = take_exactly(&reader, COLORS.len());
        assert!(ends.iter().all(|it| it.info.instance_state == expected), "FinalInstanceState {number}");
        let mut colors: Vec<_> = ends.iter().map(|it| it.key().unwrap().color.as_str()).collect();
        colors.sort_unstable();
        assert_eq!(colors, COLORS);
    }
}
