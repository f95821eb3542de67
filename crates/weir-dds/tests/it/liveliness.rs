//! Silent writers are not alive, for every kind of liveliness.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterListener, DataWriterQos,
    InstanceState, LivelinessChangedStatus, LivelinessKind, LivelinessLostStatus, ViewState,
};

use crate::support::{DEADLINE, Keyed, World, lossless_reader, lossless_writer, matched, take_exactly};

/// Long enough not to expire by chance, short enough to wait for.
const LEASE: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(3600);

struct Told<S>(Sender<S>);

impl DataReaderListener<Keyed> for Told<LivelinessChangedStatus> {
    fn on_liveliness_changed(&self, _reader: &DataReader<Keyed>, status: LivelinessChangedStatus) {
        self.0.send(status).unwrap();
    }
}

impl DataWriterListener<Keyed> for Told<LivelinessLostStatus> {
    fn on_liveliness_lost(&self, _writer: &DataWriter<Keyed>, status: LivelinessLostStatus) {
        self.0.send(status).unwrap();
    }
}

/// Waits until a listener is called with these numbers of writers, alive and not alive.
fn await_counts(told: &Receiver<LivelinessChangedStatus>, alive: u64, not_alive: u64) {
    loop {
        let status = told.recv_timeout(DEADLINE).unwrap();
        if (status.alive_count, status.not_alive_count) == (alive, not_alive) {
            return;
        }
    }
}

fn writer_qos(kind: LivelinessKind, lease: Duration) -> DataWriterQos {
    lossless_writer().liveliness(kind, lease)
}

fn reader_with_news(world: &World) -> (DataReader<Keyed>, Receiver<LivelinessChangedStatus>) {
    let (sender, told) = mpsc::channel();
    let participant = world.participant();
    let subscriber = participant.create_subscriber().unwrap();
    let topic = world.topic(&participant);
    (subscriber.create_datareader_with_listener(&topic, lossless_reader(), Told(sender)).unwrap(), told)
}

/// A writer that is not asserted is lost, and becomes alive again with `assert`.
fn is_lost_and_comes_back(kind: LivelinessKind, assert: impl FnOnce(&DataWriter<Keyed>)) {
    let world = World::new();
    let (reader, told) = reader_with_news(&world);
    let writer = world.writer(&world.participant(), writer_qos(kind, LEASE));
    let (sender, lost) = mpsc::channel();
    writer.set_listener(Some(Arc::new(Told(sender))));
    matched(&[&writer], &[&reader]);
    await_counts(&told, 1, 0);
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    take_exactly(&reader, 1);

    await_counts(&told, 0, 1);
    let gone = take_exactly(&reader, 1).remove(0);
    assert_eq!(gone.info.instance_state, InstanceState::NotAliveNoWriters);
    let status = lost.recv_timeout(DEADLINE).unwrap();
    assert!(status.total_count >= 1);
    assert_eq!(reader.subscription_matched_status().current_count, 1, "it stays matched");

    assert(&writer);
    await_counts(&told, 1, 0);
    writer.write(&Keyed { id: 1, value: 2 }).unwrap();
    let back = take_exactly(&reader, 1).remove(0);
    assert_eq!((back.data().unwrap().value, back.info.instance_state), (2, InstanceState::Alive));
    // It had no live writer and its samples were taken: it counts as never seen.
    assert_eq!((back.info.view_state, back.info.no_writers_generation_count), (ViewState::New, 0));
    lost.recv_timeout(DEADLINE).unwrap();
    await_counts(&told, 0, 1);
}

#[test]
fn a_writer_asserted_on_its_topic_is_lost_and_comes_back() {
    is_lost_and_comes_back(LivelinessKind::ManualByTopic, |writer| writer.assert_liveliness().unwrap());
}

#[test]
fn a_writer_asserted_by_its_participant_is_lost_and_comes_back() {
    is_lost_and_comes_back(LivelinessKind::ManualByParticipant, |writer| writer.assert_liveliness().unwrap());
}

#[test]
fn a_write_asserts_a_writer() {
    for kind in [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant] {
        let world = World::new();
        let (reader, told) = reader_with_news(&world);
        let writer = world.writer(&world.participant(), writer_qos(kind, LEASE));
        matched(&[&writer], &[&reader]);
        await_counts(&told, 0, 1);
        writer.write(&Keyed { id: 1, value: 1 }).unwrap();
        await_counts(&told, 1, 0);
        await_counts(&told, 0, 1);
    }
}

#[test]
fn a_participant_asserts_its_writers() {
    let world = World::new();
    let (reader, told) = reader_with_news(&world);
    let participant = world.participant();
    let qos = || writer_qos(LivelinessKind::ManualByParticipant, LEASE);
    let writers = [world.writer::<Keyed>(&participant, qos()), world.writer(&participant, qos())];
    matched(&[&writers[0], &writers[1]], &[&reader]);
    await_counts(&told, 0, 2);
    participant.assert_liveliness().unwrap();
    await_counts(&told, 2, 0);
    await_counts(&told, 0, 2);
    // A write of one of them asserts both.
    writers[0].write(&Keyed { id: 1, value: 1 }).unwrap();
    await_counts(&told, 2, 0);
}

#[test]
fn automatic_writers_need_nothing() {
    let world = World::new();
    let (reader, told) = reader_with_news(&world);
    let participant = world.participant();
    let automatic = world.writer::<Keyed>(&participant, writer_qos(LivelinessKind::Automatic, LEASE * 4));
    let manual = world.writer::<Keyed>(&participant, writer_qos(LivelinessKind::ManualByTopic, LEASE));
    matched(&[&automatic, &manual], &[&reader]);
    // The other one expires four times while this one is alive.
    for _ in 0..4 {
        await_counts(&told, 1, 1);
        manual.assert_liveliness().unwrap();
        await_counts(&told, 2, 0);
    }
    await_counts(&told, 1, 1);
    assert_eq!(automatic.liveliness_lost_status(), LivelinessLostStatus::default());
    drop(automatic);
    await_counts(&told, 0, 1);
    drop(manual);
    await_counts(&told, 0, 0);
}

#[test]
fn a_reader_that_asks_for_more_than_is_offered_is_not_matched() {
    let world = World::new();
    let writer = world.writer::<Keyed>(&world.participant(), writer_qos(LivelinessKind::Automatic, LONG));
    let manual = DataReaderQos::default().reliable().liveliness(LivelinessKind::ManualByTopic, LONG);
    let short = DataReaderQos::default().reliable().liveliness(LivelinessKind::Automatic, LEASE);
    let participant = world.participant();
    for qos in [manual, short] {
        let reader = world.reader::<Keyed>(&participant, qos);
        while reader.requested_incompatible_qos_status().total_count == 0 {
            std::thread::yield_now();
        }
        assert_eq!(reader.subscription_matched_status().total_count, 0);
    }
    assert_eq!(writer.publication_matched_status().total_count, 0);
}
