//! Policies, with any other engine: what each side requires of the other, and sees of it.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DestinationOrder, LivelinessKind, Ownership,
    PolicyId, PolicySet, PresentationScope, PublisherQos, Reliability, SubscriberQos, TopicQos,
};

use crate::peer::Peer;
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run, take_exactly, until};

/// Starts the other side in a run's domain.
type Start = fn(&Run) -> Peer;

/// Bytes of payload.
const SIZE: u32 = 10;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

/// A writer that distinguishes unregistered instances from disposed ones.
fn lossless_writer() -> DataWriterQos {
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(LIMIT);
    qos.autodispose_unregistered_instances(false)
}

fn lossless_reader() -> DataReaderQos {
    DataReaderQos::default().reliable().keep_all()
}

fn make(number: u32) -> ShapeType {
    ShapeType::make(number, SIZE, 1)
}

/// Writes, and waits until the other side has everything.
fn write(writer: &DataWriter<ShapeType>, numbers: impl IntoIterator<Item = u32>) {
    numbers.into_iter().for_each(|number| writer.write(&make(number)).unwrap());
    writer.wait_for_acknowledgments(LIMIT).unwrap();
}

/// Lets the other side write, and waits until Weir has everything.
fn let_write(peer: &mut Peer, first: u32, count: u32) {
    peer.ask(&format!("write {first} {count} {SIZE} 1"));
    peer.ask("acknowledged");
}

/// Takes the next samples of a reader.
fn take(reader: &DataReader<ShapeType>, first: u32, count: u32) {
    take_exactly(reader, first, count, SIZE, 1);
}

/// The command for a reliable endpoint, which asks for acknowledgements often.
fn reliable(run: &Run, kind: &str, options: &str) -> String {
    format!("{} heartbeats {options}", run.command::<ShapeType>(kind, Reliability::Reliable))
}

pub(crate) fn the_strongest_of_weirs_writers_owns_an_instance(name: &str, start: Start) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "reader", "exclusive=0"));
    let with = |strength| {
        let qos = lossless_writer().ownership(Ownership::Exclusive).ownership_strength(strength);
        run.writer_with_qos::<ShapeType>(qos)
    };
    let (weak, strong) = (with(1), with(2));
    peer.ask("matched 2");
    weak.wait_for_subscriptions(1, LIMIT).unwrap();
    strong.wait_for_subscriptions(1, LIMIT).unwrap();
    write(&weak, 0..3);
    peer.ask("read 0 3 10 1");
    write(&strong, 3..6);
    peer.ask("read 3 3 10 1");
    write(&weak, 6..8);
    write(&strong, 8..9);
    peer.ask("read 8 1 10 1");
    // The instance changes hands when its owner gives it up, is back, and leaves.
    strong.unregister_instance(&make(0)).unwrap();
    strong.wait_for_acknowledgments(LIMIT).unwrap();
    write(&weak, 9..11);
    peer.ask("read 9 2 10 1");
    write(&strong, 11..12);
    peer.ask("read 11 1 10 1");
    drop(strong);
    peer.ask("matched 1");
    write(&weak, 12..14);
    peer.ask("read 12 2 10 1");
    peer.quit();
}

pub(crate) fn the_strongest_of_the_others_writers_owns_an_instance(name: &str, start: Start) {
    let run = Run::new(name);
    let qos = lossless_reader().ownership(Ownership::Exclusive);
    let (reader, news) = run.reader_with_qos_and_news::<ShapeType>(qos);
    let mut weak = start(&run);
    let mut strong = start(&run);
    weak.ask(&reliable(&run, "writer", "exclusive=1"));
    strong.ask(&reliable(&run, "writer", "exclusive=2"));
    weak.ask("matched 1");
    strong.ask("matched 1");
    news.await_matches(2);
    let_write(&mut weak, 0, 3);
    take(&reader, 0, 3);
    let_write(&mut strong, 3, 3);
    take(&reader, 3, 3);
    let_write(&mut weak, 6, 2);
    let_write(&mut strong, 8, 1);
    take(&reader, 8, 1);
    assert_eq!(reader.protocol_counters().samples_not_owned, 2);
    strong.ask("unregister 0 1");
    strong.ask("acknowledged");
    let_write(&mut weak, 9, 2);
    take(&reader, 9, 2);
    let_write(&mut strong, 11, 1);
    take(&reader, 11, 1);
    strong.quit();
    news.await_matches(1);
    let_write(&mut weak, 12, 2);
    take(&reader, 12, 2);
    weak.quit();
}

pub(crate) fn both_miss_a_deadline_of_weirs_writer(name: &str, start: Start) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "reader", "deadline=200"));
    let writer = run.writer_with_qos(lossless_writer().deadline(Duration::from_millis(100)));
    let news = Run::watch(&writer);
    news.await_matches(1);
    peer.ask("matched 1");
    write(&writer, 0..1);
    news.await_deadline_missed();
    peer.ask("deadline-missed");
    peer.quit();
}

pub(crate) fn both_miss_a_deadline_of_the_others_writer(name: &str, start: Start) {
    let run = Run::new(name);
    let qos = lossless_reader().deadline(Duration::from_millis(200));
    let (reader, news) = run.reader_with_qos_and_news::<ShapeType>(qos);
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "writer", "deadline=100"));
    peer.ask("matched 1");
    let_write(&mut peer, 0, 1);
    take(&reader, 0, 1);
    news.await_deadline_missed();
    peer.ask("deadline-missed");
    peer.quit();
}

pub(crate) fn samples_of_weir_expire_in_the_others_reader(name: &str, start: Start) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "reader", ""));
    let short = run.writer_with_qos(lossless_writer().lifespan(Duration::from_millis(200)));
    let endless = run.writer_with_qos(lossless_writer());
    peer.ask("matched 2");
    short.wait_for_subscriptions(1, LIMIT).unwrap();
    endless.wait_for_subscriptions(1, LIMIT).unwrap();
    write(&short, 0..3);
    peer.ask("empty");
    write(&endless, 3..4);
    peer.ask("read 3 1 10 1");
    peer.quit();
}

pub(crate) fn samples_of_the_other_expire_in_weirs_reader(name: &str, start: Start) {
    let run = Run::new(name);
    let reader = run.reader_with_qos::<ShapeType>(lossless_reader());
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "writer", "lifespan=200"));
    peer.ask("matched 1");
    reader.wait_for_publications(1, LIMIT).unwrap();
    peer.ask("write 0 3 10 1");
    until("expired", || reader.protocol_counters().samples_expired == 3);
    assert!(reader.take(usize::MAX).iter().all(|sample| sample.data().is_none()));
    peer.quit();
}

pub(crate) fn weirs_reader_is_delivered_one_sample_in_an_hour(name: &str, start: Start) {
    let run = Run::new(name);
    let reader = run.reader_with_qos(lossless_reader().time_based_filter(LONG));
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "writer", ""));
    peer.ask("matched 1");
    let_write(&mut peer, 0, 10);
    take(&reader, 0, 1);
    assert!(reader.take(usize::MAX).is_empty());
    // With its end, the last value.
    peer.ask("dispose 0 1");
    take(&reader, 9, 1);
    peer.quit();
}

/// A source timestamp.
fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(crate) fn the_others_reader_orders_by_source_timestamp(name: &str, start: Start) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "reader", "by-source-timestamp"));
    let qos = lossless_writer().destination_order(DestinationOrder::BySourceTimestamp);
    let (one, other) = (run.writer_with_qos(qos.clone()), run.writer_with_qos(qos));
    peer.ask("matched 2");
    for (writer, number, second) in [(&one, 0, 1000), (&other, 1, 500), (&one, 2, 2000)] {
        writer.wait_for_subscriptions(1, LIMIT).unwrap();
        writer.write_w_timestamp(&make(number), at(second)).unwrap();
        writer.wait_for_acknowledgments(LIMIT).unwrap();
    }
    peer.ask("read 0 1 10 1");
    peer.ask("read 2 1 10 1");
    peer.quit();
}

pub(crate) fn weirs_reader_orders_by_source_timestamp(name: &str, start: Start) {
    let run = Run::new(name);
    let qos = lossless_reader().destination_order(DestinationOrder::BySourceTimestamp);
    let reader = run.reader_with_qos::<ShapeType>(qos);
    let mut peers = [start(&run), start(&run)];
    for peer in &mut peers {
        peer.ask(&reliable(&run, "writer", "by-source-timestamp"));
        peer.ask("matched 1");
    }
    reader.wait_for_publications(2, LIMIT).unwrap();
    for (peer, command) in [(0, "write-at 1000 0"), (1, "write-at 500 1"), (0, "write-at 2000 2")] {
        peers[peer].ask(&format!("{command} {SIZE} 1"));
        peers[peer].ask("acknowledged");
    }
    let numbers: Vec<u32> =
        reader.take(usize::MAX).iter().map(|sample| sample.data().unwrap().number()).collect();
    assert_eq!(numbers, [0, 2]);
    assert_eq!(reader.protocol_counters().samples_out_of_order, 1);
    peers.into_iter().for_each(Peer::quit);
}

pub(crate) fn patterns_of_partitions_match_on_either_side(name: &str, start: Start) {
    // The other's pattern.
    let run = Run::new(&format!("{name}_pattern"));
    let elsewhere = run.writer_with_qos(lossless_writer().partition(["right/1"]));
    let writer = run.writer_with_qos(lossless_writer().partition(["left/1"]));
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "reader", "partition=other,left/*"));
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    peer.ask("matched 1");
    assert_eq!(elsewhere.publication_matched_status().total_count, 0);
    write(&elsewhere, 0..1);
    write(&writer, 1..2);
    peer.ask("read 1 1 10 1");
    peer.quit();

    // Weir's pattern.
    let run = Run::new(&format!("{name}_name"));
    let elsewhere = run.reader_with_qos::<ShapeType>(lossless_reader().partition(["right?"]));
    let reader = run.reader_with_qos(lossless_reader().partition(["left?"]));
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "writer", "partition=left1"));
    reader.wait_for_publications(1, LIMIT).unwrap();
    peer.ask("matched 1");
    assert_eq!(elsewhere.subscription_matched_status().total_count, 0);
    let_write(&mut peer, 0, 1);
    take(&reader, 0, 1);
    peer.quit();
}

/// `of_readers`: the topic data that the other announces with readers.
pub(crate) fn each_sees_the_data_of_the_other(name: &str, start: Start, of_readers: &str) {
    let (user, topic, group) = (*b"user", *b"topic", *b"group");
    for kind in ["writer", "reader"] {
        let run = Run::new(&format!("{name}_{kind}"));
        let mut peer = start(&run);
        peer.ask(&reliable(&run, kind, "user=their-user topic=their-topic group=their-group"));
        let participant = run.participant();
        let named = TopicQos::default().topic_data(topic);
        let named = participant.create_topic_with_qos::<ShapeType>(&run.topic, named).unwrap();
        let seen = if kind == "writer" {
            let subscriber = SubscriberQos::default().group_data(group);
            let subscriber = participant.create_subscriber_with_qos(subscriber).unwrap();
            let reader = subscriber.create_datareader(&named, lossless_reader().user_data(user)).unwrap();
            reader.wait_for_publications(1, LIMIT).unwrap();
            peer.ask("matched 1");
            assert_eq!(peer.ask("seen"), "user topic group");
            reader.matched_publication_data(reader.matched_publications()[0]).unwrap().qos
        } else {
            let publisher = PublisherQos::default().group_data(group);
            let publisher = participant.create_publisher_with_qos(publisher).unwrap();
            let writer = publisher.create_datawriter(&named, lossless_writer().user_data(user)).unwrap();
            writer.wait_for_subscriptions(1, LIMIT).unwrap();
            peer.ask("matched 1");
            assert_eq!(peer.ask("seen"), "user topic group");
            writer.matched_subscription_data(writer.matched_subscriptions()[0]).unwrap().qos
        };
        assert_eq!(String::from_utf8(seen.user_data).unwrap(), "their-user");
        let topic_data = if kind == "reader" { of_readers } else { "their-topic" };
        assert_eq!(String::from_utf8(seen.topic_data).unwrap(), topic_data);
        assert_eq!(String::from_utf8(seen.group_data).unwrap(), "their-group");
        peer.quit();
    }
}

pub(crate) fn a_reader_that_knows_no_sets_gets_all_samples_of_coherent_ones(name: &str, start: Start) {
    for scope in [PresentationScope::Topic, PresentationScope::Group] {
        let run = Run::new(&format!("{name}_{scope:?}"));
        let mut peer = start(&run);
        peer.ask(&reliable(&run, "reader", ""));
        let qos = PublisherQos::default().coherent_access(scope).ordered_access(scope);
        let publisher = run.participant().create_publisher_with_qos(qos).unwrap();
        let writer = publisher.create_datawriter(&run.topic(), lossless_writer()).unwrap();
        writer.wait_for_subscriptions(1, LIMIT).unwrap();
        peer.ask("matched 1");
        for set in 0..3 {
            publisher.begin_coherent_changes().unwrap();
            let numbers = 4 * set..4 * set + 4;
            numbers.for_each(|number| writer.write(&ShapeType::make(number, SIZE, 2)).unwrap());
            publisher.end_coherent_changes().unwrap();
        }
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        peer.ask("read 0 12 10 2");
        peer.quit();
    }
}

/// Requests and offers of PRESENTATION match if the reader requests no more than the writer offers.
pub(crate) fn presentation_is_offered_and_requested(name: &str, start: Start) {
    // Weir requests.
    let run = Run::new(&format!("{name}_to_weir"));
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "writer", "presentation=topic ordered"));
    let subscriber = SubscriberQos::default().ordered_access(PresentationScope::Topic);
    let subscriber = run.participant().create_subscriber_with_qos(subscriber).unwrap();
    let reader = subscriber.create_datareader::<ShapeType>(&run.topic(), lossless_reader()).unwrap();
    peer.ask("matched 1");
    peer.ask("write 0 9 10 3");
    peer.ask("acknowledged");
    // In the order of writing, over all instances.
    let numbers: Vec<u32> =
        reader.take(usize::MAX).iter().map(|sample| sample.data().unwrap().number()).collect();
    assert_eq!(numbers, Vec::from_iter(0..9));
    let wider = SubscriberQos::default().ordered_access(PresentationScope::Group);
    let wider = run.participant().create_subscriber_with_qos(wider).unwrap();
    let refused = wider.create_datareader::<ShapeType>(&run.topic(), lossless_reader()).unwrap();
    until("refused", || refused.requested_incompatible_qos_status().total_count == 1);
    assert_eq!(refused.requested_incompatible_qos_status().last_policy_id, Some(PolicyId::Presentation));
    peer.quit();

    // Weir offers.
    let run = Run::new(&format!("{name}_to_other"));
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "reader", "presentation=topic ordered"));
    let narrow = run.writer_with_qos::<ShapeType>(lossless_writer());
    until("refused", || narrow.offered_incompatible_qos_status().total_count == 1);
    assert_eq!(narrow.offered_incompatible_qos_status().last_policy_id, Some(PolicyId::Presentation));
    let publisher = PublisherQos::default().ordered_access(PresentationScope::Topic);
    let publisher = run.participant().create_publisher_with_qos(publisher).unwrap();
    let writer = publisher.create_datawriter(&run.topic(), lossless_writer()).unwrap();
    peer.ask("matched 1");
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    (0..9).for_each(|number| writer.write(&ShapeType::make(number, SIZE, 3)).unwrap());
    peer.ask("read 0 9 10 3");
    peer.quit();
}

/// What a default writer does not offer, and readers of every engine can request.
const DEMANDED: [PolicyId; 5] = [
    PolicyId::Durability,
    PolicyId::Deadline,
    PolicyId::Ownership,
    PolicyId::Liveliness,
    PolicyId::Reliability,
];

/// The same as options of a reader.
const DEMANDS: &str = "transient-local deadline=1000 exclusive=0 manual-by-topic=1000";

fn numbers(policies: PolicySet) -> BTreeSet<u32> {
    policies.iter().map(|policy| policy as u32).collect()
}

/// `more`: further policies that the other's reader requests, and their options.
pub(crate) fn all_incompatible_policies_are_named(name: &str, start: Start, more: (&[PolicyId], &str)) {
    let demanded = |more: &[PolicyId]| -> BTreeSet<u32> {
        DEMANDED.iter().chain(more).map(|policy| *policy as u32).collect()
    };
    let run = Run::new(&format!("{name}_to_other"));
    let mut peer = start(&run);
    peer.ask(&reliable(&run, "reader", &format!("{DEMANDS} {}", more.1)));
    let (writer, news) = run.writer_with_news::<ShapeType>(Reliability::BestEffort);
    let status = news.await_incompatible();
    assert_eq!(numbers(status.last_policies), demanded(more.0));
    let theirs = peer.ask("incompatible").parse().unwrap();
    assert!(demanded(more.0).contains(&theirs), "{theirs}");
    assert_eq!(writer.publication_matched_status().total_count, 0);
    peer.quit();

    let run = Run::new(&format!("{name}_to_weir"));
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("writer", Reliability::BestEffort));
    let qos = lossless_reader().transient_local().deadline(Duration::from_secs(1));
    let qos = qos.ownership(Ownership::Exclusive).destination_order(DestinationOrder::BySourceTimestamp);
    let qos = qos.liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(1));
    let subscriber = SubscriberQos::default().coherent_access(PresentationScope::Topic);
    let subscriber = run.participant().create_subscriber_with_qos(subscriber).unwrap();
    let reader = subscriber.create_datareader::<ShapeType>(&run.topic(), qos).unwrap();
    until("incompatible", || reader.requested_incompatible_qos_status().total_count == 1);
    let status = reader.requested_incompatible_qos_status();
    let all = demanded(&[PolicyId::DestinationOrder, PolicyId::Presentation]);
    assert_eq!(numbers(status.last_policies), all);
    let theirs = peer.ask("incompatible").parse().unwrap();
    assert!(all.contains(&theirs), "{theirs}");
    assert_eq!(reader.subscription_matched_status().total_count, 0);
    peer.quit();
}
