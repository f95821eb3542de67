//! What a reader gets that comes late, of the history of a writer on the other side.

use weir_dds::{DataReaderQos, DataWriterQos, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds::start;
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run, take_exactly};

/// Weir writes 300 samples of 3 instances before Cyclone DDS comes.
fn weir_to_cyclone(name: &str, qos: DataWriterQos, expected: &str) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let writer = run.writer_with_qos::<ShapeType>(qos.reliable().transient_local());
    (0..300).for_each(|number| writer.write(&ShapeType::make(number, 10, 3)).unwrap());
    let mut peer = start(&run, "");
    peer.ask(&(run.command::<ShapeType>("reader", Reliability::Reliable) + " transient-local"));
    peer.ask(expected);
    // What follows comes behind the history.
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    (300..330).for_each(|number| writer.write(&ShapeType::make(number, 10, 3)).unwrap());
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    peer.quit();
}

/// Cyclone DDS writes 300 samples of 3 instances before a reader of Weir comes.
fn cyclone_to_weir(name: &str, options: &str, first: u32, count: u32) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut peer = start(&run, "");
    let command = run.command::<ShapeType>("writer", Reliability::Reliable);
    peer.ask(&format!("{command} transient-local{options}"));
    peer.ask("write 0 300 10 3");
    let qos = DataReaderQos::default().reliable().keep_all();
    let volatile = run.reader_with_qos::<ShapeType>(qos.clone());
    let late = run.another().reader_with_qos::<ShapeType>(qos.transient_local());
    take_exactly(&late, first, count, 10, 3);
    peer.ask("matched 2");
    // What it is told is only that it has everything: nothing old.
    peer.ask("acknowledged");
    peer.ask("write 300 30 10 3");
    take_exactly(&late, 300, 30, 10, 3);
    take_exactly(&volatile, 300, 30, 10, 3);
    assert_eq!(late.sample_lost_status().total_count, 0);
    assert_eq!(volatile.sample_lost_status().total_count, 0);
    peer.ask("acknowledged");
    peer.quit();
}

#[test]
fn cyclone_gets_everything_of_a_writer_that_keeps_all() {
    weir_to_cyclone("all_to_cyclone", DataWriterQos::default().keep_all(), "read 0 300 10 3");
}

#[test]
fn cyclone_gets_the_last_samples_of_each_instance() {
    weir_to_cyclone("last_to_cyclone", DataWriterQos::default().keep_last(2), "read 294 6 10 3");
}

#[test]
fn weir_gets_everything_of_a_writer_that_keeps_all() {
    cyclone_to_weir("all_to_weir", "", 0, 300);
}

#[test]
fn weir_gets_the_last_samples_of_each_instance() {
    cyclone_to_weir("last_to_weir", " keep-last=2", 294, 6);
}
