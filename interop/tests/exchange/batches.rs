//! Weir's batches: many samples in one message, read by Cyclone DDS.

use std::time::Duration;

use weir_dds::{BatchPolicy, DataWriterQos, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds::{await_match, start};
use crate::types::{Blob, Everything, Numbered, ShapeType};
use crate::weir::{LIMIT, Run, write_until_content};

/// With so long a delay, only full messages and flushes are sent.
const POLICY: BatchPolicy = BatchPolicy::new(8192, 1000, LIMIT);

/// Checks that everything arrives, with several samples per datagram unless one fills it.
fn batches_to_cyclone<T: Numbered>(name: &str, count: u32, sizes: &[u32], instances: u32, least: u64) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut peer = start(&run, "");
    peer.ask(&run.command::<T>("reader", Reliability::Reliable));
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(LIMIT).batch(POLICY);
    let writer = run.writer_with_qos::<T>(qos);
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    for (round, &size) in (0..).zip(sizes) {
        let first = round * count;
        peer.tell(&format!("read {first} {count} {size} {instances}"));
        (first..first + count).for_each(|number| writer.write(&T::make(number, size, instances)).unwrap());
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        peer.answer();
    }
    let sent = writer.send_counters();
    assert!(sent.samples >= least * sent.datagrams, "{sent:?}");
    peer.quit();
}

#[test]
fn cyclone_gets_messages_with_many_samples() {
    batches_to_cyclone::<Blob>("batches_to_cyclone", 5000, &[0, 1, 32, 200], 1, 10);
    batches_to_cyclone::<Everything>("batched_everything_to_cyclone", 2000, &[0], 1, 10);
}

#[test]
fn cyclone_gets_messages_with_many_keyed_samples() {
    batches_to_cyclone::<ShapeType>("batched_shapes_to_cyclone", 3000, &[0, 32, 100], 16, 10);
}

#[test]
fn samples_that_fill_a_batch_or_more_arrive_too() {
    batches_to_cyclone::<Blob>("large_batches_to_cyclone", 50, &[1000, 8100, 8192, 63_000, 100_000], 1, 0);
}

#[test]
fn cyclone_gets_best_effort_messages_with_many_samples() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("best_effort_batches_to_cyclone");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<ShapeType>("reader", Reliability::BestEffort));
    let policy = BatchPolicy::new(8192, 1000, Duration::from_millis(1));
    let writer = run.writer_with_qos::<ShapeType>(DataWriterQos::default().best_effort().batch(policy));
    await_match(&writer, &mut peer);
    write_until_content(&mut peer, &writer, 2000, 32, 3);
    peer.quit();
}
