//! Which writers are alive, as the other side sees it.

use std::time::{Duration, Instant};

use weir_dds::{DataReader, DataReaderQos, DataWriter, DataWriterQos, LivelinessKind, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds::start;
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run};

const LEASE: Duration = Duration::from_millis(400);

fn await_liveliness(reader: &DataReader<ShapeType>, alive: u32, not_alive: u32) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let status = reader.liveliness_changed_status();
        if (status.alive_count, status.not_alive_count) == (alive, not_alive) {
            return;
        }
        assert!(Instant::now() < deadline, "{status:?} instead of {alive} alive and {not_alive} not");
        // Nothing comes: this is to let time pass.
        reader.wait_for_data(Duration::from_millis(5));
    }
}

/// A writer whose lease runs out in four rounds unless something renews it, and one of another participant that
/// runs out in every round, as a clock.
fn stays_alive_for_cyclone(kind: LivelinessKind, assert: impl Fn(&DataWriter<ShapeType>)) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(&format!("{kind:?}_to_cyclone"));
    let mut peer = start(&run, "");
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let qos = |kind, lease| DataWriterQos::default().reliable().liveliness(kind, lease);
    let writer = run.writer_with_qos::<ShapeType>(qos(kind, 4 * LEASE));
    let other = run.another();
    let clock = other.writer_with_qos::<ShapeType>(qos(LivelinessKind::ManualByTopic, LEASE));
    peer.ask("matched 2");
    assert(&writer);
    for round in 0..8 {
        peer.ask("liveliness 1 1");
        assert(&writer);
        // Cyclone DDS takes a writer that ran out for alive again only when it writes.
        clock.write(&ShapeType::make(round, 10, 1)).unwrap();
        peer.ask("liveliness 2 0");
    }
    assert_eq!(writer.liveliness_lost_status().total_count, 0);
    if kind != LivelinessKind::Automatic {
        peer.ask("liveliness 0 2");
        writer.write(&ShapeType::make(0, 10, 1)).unwrap();
        peer.ask("liveliness 1 1");
    }
    peer.quit();
}

#[test]
fn a_writer_asserted_on_its_topic_stays_alive_for_cyclone() {
    stays_alive_for_cyclone(LivelinessKind::ManualByTopic, DataWriter::assert_liveliness);
}

#[test]
fn a_writer_asserted_by_its_participant_stays_alive_for_cyclone() {
    stays_alive_for_cyclone(LivelinessKind::ManualByParticipant, DataWriter::assert_liveliness);
}

#[test]
fn an_automatic_writer_stays_alive_for_cyclone() {
    stays_alive_for_cyclone(LivelinessKind::Automatic, |_| ());
}

#[test]
fn weir_sees_when_cyclones_application_is_alive() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    for option in ["manual-by-topic", "manual-by-participant"] {
        let run = Run::new(&format!("{option}_to_weir").replace('-', "_"));
        let mut peer = start(&run, "");
        let reader = run.reader_with_qos::<ShapeType>(DataReaderQos::default().reliable());
        let command = run.command::<ShapeType>("writer", Reliability::Reliable);
        peer.ask(&format!("{command} {option}={}", LEASE.as_millis()));
        peer.ask("matched 1");
        await_liveliness(&reader, 0, 1);
        peer.ask("assert");
        await_liveliness(&reader, 1, 0);
        await_liveliness(&reader, 0, 1);
        peer.ask("write 0 1 10 1");
        await_liveliness(&reader, 1, 0);
        peer.ask("delete");
        await_liveliness(&reader, 0, 0);
        peer.quit();
    }
}

#[test]
fn an_automatic_writer_of_cyclone_stays_alive() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("automatic_to_weir");
    let mut peer = start(&run, "");
    let reader = run.reader_with_qos::<ShapeType>(DataReaderQos::default().reliable());
    let command = run.command::<ShapeType>("writer", Reliability::Reliable);
    peer.ask(&format!("{command} automatic={}", 4 * LEASE.as_millis()));
    peer.ask("matched 1");
    let qos = DataWriterQos::default().reliable().liveliness(LivelinessKind::ManualByTopic, LEASE);
    let clock = run.another().writer_with_qos::<ShapeType>(qos);
    clock.wait_for_subscriptions(1, LIMIT).unwrap();
    for _ in 0..6 {
        await_liveliness(&reader, 1, 1);
        clock.assert_liveliness();
        await_liveliness(&reader, 2, 0);
    }
    peer.quit();
}
