//! Which writers are alive, as seen by the other side.

use std::time::Duration;

use weir_dds::{DataReaderQos, DataWriter, DataWriterQos, LivelinessKind, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds::{start, start_with_lease};
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run};

const LEASE: Duration = Duration::from_millis(400);

/// A writer whose lease expires within four rounds unless it is renewed, and one of another
/// participant whose lease expires in every round, as a clock.
fn stays_alive_for_cyclone(kind: LivelinessKind, assert: impl Fn(&DataWriter<ShapeType>)) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(&format!("{kind:?}_to_cyclone"));
    let mut peer = start(&run, "");
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let qos = |kind, lease| DataWriterQos::default().reliable().liveliness(kind, lease);
    let writer = run.writer_with_qos::<ShapeType>(qos(kind, 4 * LEASE));
    let news = Run::watch(&writer);
    let other = run.another();
    let clock = other.writer_with_qos::<ShapeType>(qos(LivelinessKind::ManualByTopic, LEASE));
    peer.ask("matched 2");
    assert(&writer);
    for round in 0..8 {
        peer.ask("liveliness 1 1");
        assert(&writer);
        // Cyclone DDS considers an expired writer alive again only when it writes.
        clock.write(&ShapeType::make(round, 10, 1)).unwrap();
        peer.ask("liveliness 2 0");
    }
    assert_eq!(writer.liveliness_lost_status().total_count, 0);
    if kind != LivelinessKind::Automatic {
        peer.ask("liveliness 0 2");
        news.await_liveliness_lost(1);
        writer.write(&ShapeType::make(0, 10, 1)).unwrap();
        peer.ask("liveliness 1 1");
    }
    peer.quit();
}

#[test]
fn a_writer_asserted_on_its_topic_stays_alive_for_cyclone() {
    stays_alive_for_cyclone(LivelinessKind::ManualByTopic, |writer| writer.assert_liveliness().unwrap());
}

#[test]
fn a_writer_asserted_by_its_participant_stays_alive_for_cyclone() {
    stays_alive_for_cyclone(LivelinessKind::ManualByParticipant, |writer| {
        writer.assert_liveliness().unwrap()
    });
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
        let (_reader, news) = run.reader_with_qos_and_news::<ShapeType>(DataReaderQos::default().reliable());
        let command = run.command::<ShapeType>("writer", Reliability::Reliable);
        peer.ask(&format!("{command} {option}={}", LEASE.as_millis()));
        peer.ask("matched 1");
        news.await_liveliness(0, 1);
        peer.ask("liveliness-lost 1");
        peer.ask("assert");
        news.await_liveliness(1, 0);
        news.await_liveliness(0, 1);
        peer.ask("write 0 1 10 1");
        news.await_liveliness(1, 0);
        peer.ask("delete");
        news.await_liveliness(0, 0);
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
    let (_reader, news) = run.reader_with_qos_and_news::<ShapeType>(DataReaderQos::default().reliable());
    let command = run.command::<ShapeType>("writer", Reliability::Reliable);
    peer.ask(&format!("{command} automatic={}", 4 * LEASE.as_millis()));
    peer.ask("matched 1");
    let qos = DataWriterQos::default().reliable().liveliness(LivelinessKind::ManualByTopic, LEASE);
    let clock = run.another().writer_with_qos::<ShapeType>(qos);
    clock.wait_for_subscriptions(1, LIMIT).unwrap();
    for _ in 0..6 {
        news.await_liveliness(1, 1);
        clock.assert_liveliness().unwrap();
        news.await_liveliness(2, 0);
    }
    peer.quit();
}

#[test]
fn a_writer_that_is_killed_is_not_alive_before_it_is_gone() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("killed_to_weir");
    let mut peer = start_with_lease(&run);
    let (_reader, news) = run.reader_with_qos_and_news::<ShapeType>(DataReaderQos::default().reliable());
    let command = run.command::<ShapeType>("writer", Reliability::Reliable);
    peer.ask(&format!("{command} automatic={}", 2 * LEASE.as_millis()));
    peer.ask("matched 1");
    news.await_liveliness(1, 0);
    peer.kill();
    news.await_liveliness(0, 1);
    news.await_liveliness(0, 0);
    news.await_matches_of_lease(0);
}
