//! A live exchange with Cyclone DDS over the loopback interface, in both directions.

mod policies;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use weir_dds::{
    DataReaderQos, DataWriter, DataWriterQos, InstanceHandle, InstanceState, PolicyId, Reliability,
};
use weir_interop::Requirement;

use crate::peer::{self, Peer};
use crate::types::{Blob, Everything, Numbered, ShapeType};
use crate::weir::{LEASE, LIMIT, Run, await_state, take_exactly, take_some, write_until_content};

/// One datagram per sample up to the maximum.
const LARGE: &str = "<MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65400B</FragmentSize>";

/// Starts the peer. `general` is added to section `General` of its configuration.
pub(crate) fn start(run: &Run, general: &str) -> Peer {
    start_with(run, &configuration(general, ""))
}

/// Starts the peer with a short lease, for when it is killed.
pub(crate) fn start_with_lease(run: &Run) -> Peer {
    let lease = format!("<LeaseDuration>{}ms</LeaseDuration>", LEASE.as_millis());
    start_with(run, &configuration("", &lease))
}

fn start_with(run: &Run, configuration: &str) -> Peer {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(build);
    let mut command = Command::new(program);
    command.arg(run.domain.to_string()).env("CYCLONEDDS_URI", configuration);
    Peer::start(&mut command)
}

fn build() -> PathBuf {
    let source = peer::sources().join("cyclonedds");
    peer::build("cyclonedds-peer", |here| {
        peer::run(Command::new("idlc").args(["-l", "c"]).arg(source.join("types.idl")).current_dir(here));
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-O1", "-I.", "-o", "peer"]).arg(source.join("peer.c"));
        peer::run(cc.args(["types.c", "-lddsc"]).current_dir(here));
    })
}

/// Cyclone DDS on the loopback interface only, with multicast, although the interface does not
/// claim support.
fn configuration(general: &str, discovery: &str) -> String {
    format!(
        "<CycloneDDS><Domain id='any'><General>\
         <Interfaces><NetworkInterface name='lo' multicast='true'/></Interfaces>{general}</General>\
         <Discovery><ParticipantIndex>auto</ParticipantIndex>{discovery}</Discovery></Domain></CycloneDDS>"
    )
}

/// Waits until both sides are matched: best-effort samples would be lost before that.
pub(crate) fn await_match<T: Numbered>(writer: &DataWriter<T>, peer: &mut Peer) {
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    peer.ask("matched 1");
}

/// Checks that everything Weir writes reliably arrives, in order and unchanged.
fn weir_to_cyclone<T: Numbered>(name: &str, count: u32, sizes: &[u32], instances: u32) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut peer = start(&run, "");
    peer.ask(&run.command::<T>("reader", Reliability::Reliable));
    let writer = run.writer::<T>(Reliability::Reliable);
    // Without waiting for Cyclone DDS's match: the reader receives samples written before it, too.
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    for (round, &size) in (0..).zip(sizes) {
        let first = round * count;
        peer.tell(&format!("read {first} {count} {size} {instances}"));
        (first..first + count).for_each(|number| writer.write(&T::make(number, size, instances)).unwrap());
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        peer.answer();
    }
    peer.quit();
}

/// Checks that everything Cyclone DDS writes reliably arrives, in order and unchanged.
fn cyclone_to_weir<T: Numbered>(
    name: &str,
    count: u32,
    sizes: &[u32],
    instances: u32,
    mode: &str,
    general: &str,
) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut qos = DataReaderQos::default().reliable().keep_all();
    // More than the largest test sends: a slow application must not cause rejections.
    qos.resource_limits.max_bytes = Some(256 << 20);
    let reader = run.reader_with_qos::<T>(qos);
    let mut peer = start(&run, general);
    peer.ask(&format!("{} {mode}", run.command::<T>("writer", Reliability::Reliable)));
    peer.ask("matched 1");
    for (round, &size) in (0..).zip(sizes) {
        let first = round * count;
        peer.tell(&format!("write {first} {count} {size} {instances}"));
        take_exactly(&reader, first, count, size, instances);
        peer.answer();
    }
    peer.ask("acknowledged");
    assert_eq!(reader.sample_lost_status().total_count, 0);
    let rejected = reader.sample_rejected_status();
    assert_eq!(rejected.total_count, 0, "{rejected:?}");
    peer.quit();
}

#[test]
fn cyclone_gets_all_shapes_that_weir_writes() {
    weir_to_cyclone::<ShapeType>("shapes_to_cyclone", 3000, &[0, 1, 100], 7);
}

#[test]
fn cyclone_gets_members_of_every_kind() {
    weir_to_cyclone::<Everything>("everything_to_cyclone", 3000, &[0], 1);
}

/// From empty to more than a datagram holds.
const SIZES: [u32; 13] = [0, 1, 7, 32, 1000, 1024, 1472, 8192, 30_000, 60_000, 63_000, 65_000, 66_000];

/// Around the maximum datagram (65 507 bytes): at least 84 bytes are headers.
fn around_a_datagram() -> Vec<u32> {
    (65_000..65_300).step_by(100).chain(65_300..65_560).chain((65_560..66_001).step_by(88)).collect()
}

const LARGE_SIZES: [u32; 5] = [66_000, 65_536, 100_000, 1_000_000, 10_000_000];

#[test]
fn cyclone_gets_small_and_large_payloads() {
    weir_to_cyclone::<Blob>("blobs_to_cyclone", 200, &SIZES, 1);
}

#[test]
fn cyclone_gets_small_and_large_payloads_with_keys() {
    weir_to_cyclone::<ShapeType>("sizes_to_cyclone", 50, &SIZES, 3);
}

#[test]
fn cyclone_gets_payloads_around_the_largest_datagram() {
    weir_to_cyclone::<Blob>("around_to_cyclone", 1, &around_a_datagram(), 1);
}

#[test]
fn weir_gets_payloads_around_the_largest_datagram() {
    cyclone_to_weir::<Blob>("around_to_weir", 1, &around_a_datagram(), 1, "", LARGE);
}

#[test]
fn weir_gets_small_and_large_payloads_with_keys() {
    cyclone_to_weir::<ShapeType>("sizes_to_weir", 50, &SIZES, 3, "", "");
}

#[test]
fn fragments_with_keys_arrive_in_both_directions() {
    weir_to_cyclone::<ShapeType>("keyed_fragments_to_cyclone", 6, &LARGE_SIZES, 2);
    cyclone_to_weir::<ShapeType>("keyed_fragments_to_weir", 6, &LARGE_SIZES, 2, "", "");
}

#[test]
fn weir_gets_all_shapes_that_cyclone_writes() {
    cyclone_to_weir::<ShapeType>("shapes_to_weir", 3000, &[0, 1, 100], 7, "", "");
}

#[test]
fn weir_gets_members_of_every_kind() {
    cyclone_to_weir::<Everything>("everything_to_weir", 3000, &[0], 1, "", "");
}

#[test]
fn weir_gets_small_payloads_of_cyclones_default_configuration() {
    cyclone_to_weir::<Blob>("small_blobs_to_weir", 1000, &[1, 7, 1000, 1300], 1, "", "");
}

#[test]
fn weir_gets_large_payloads() {
    cyclone_to_weir::<Blob>("large_blobs_to_weir", 200, &SIZES, 1, "", LARGE);
}

#[test]
fn cyclone_gets_fragmented_payloads() {
    weir_to_cyclone::<Blob>("fragments_to_cyclone", 10, &LARGE_SIZES, 1);
}

#[test]
fn weir_gets_fragmented_payloads_of_cyclones_default_configuration() {
    cyclone_to_weir::<Blob>(
        "fragments_to_weir",
        10,
        &[0, 32, 1024, 1345, 8192, 63_000, 65_500, 66_000, 100_000, 1_000_000, 10_000_000],
        1,
        "",
        "",
    );
}

#[test]
fn weir_gets_messages_with_many_samples() {
    cyclone_to_weir::<Blob>("batched_blobs_to_weir", 10_000, &[1, 12, 200], 1, "batch", "");
}

#[test]
fn weir_gets_messages_with_many_keyed_samples() {
    cyclone_to_weir::<ShapeType>("batched_shapes_to_weir", 5000, &[0, 40], 16, "batch", "");
}

/// Checks that some of what Weir writes arrives, in order and unchanged.
fn best_effort_to_cyclone<T: Numbered>(name: &str, count: u32, size: u32, instances: u32) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut peer = start(&run, "");
    peer.ask(&run.command::<T>("reader", Reliability::BestEffort));
    let writer = run.writer::<T>(Reliability::BestEffort);
    await_match(&writer, &mut peer);
    write_until_content(&mut peer, &writer, count, size, instances);
    peer.quit();
}

/// Checks that some of what Cyclone DDS writes arrives, in order and unchanged.
fn best_effort_to_weir<T: Numbered>(name: &str, count: u32, size: u32, instances: u32) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut peer = start(&run, "");
    peer.ask(&run.command::<T>("writer", Reliability::BestEffort));
    let reader = run.reader::<T>(Reliability::BestEffort);
    peer.ask("matched 1");
    take_some(&mut peer, &reader, count, size, instances);
    peer.quit();
}

#[test]
fn cyclone_gets_what_weir_writes_best_effort() {
    best_effort_to_cyclone::<ShapeType>("best_effort_to_cyclone", 500, 33, 3);
    best_effort_to_cyclone::<Blob>("best_effort_nothing_to_cyclone", 100, 0, 1);
    best_effort_to_cyclone::<Blob>("best_effort_fragments_to_cyclone", 50, 100_000, 1);
}

#[test]
fn weir_gets_what_cyclone_writes_best_effort() {
    best_effort_to_weir::<Everything>("best_effort_to_weir", 500, 0, 1);
    best_effort_to_weir::<ShapeType>("best_effort_shapes_to_weir", 500, 0, 3);
    best_effort_to_weir::<Blob>("best_effort_fragments_to_weir", 50, 100_000, 1);
}

#[test]
fn a_best_effort_reader_gets_what_a_reliable_writer_writes() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("mixed_to_cyclone");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<Blob>("reader", Reliability::BestEffort));
    let writer = run.writer::<Blob>(Reliability::Reliable);
    await_match(&writer, &mut peer);
    write_until_content(&mut peer, &writer, 500, 100, 1);
    peer.quit();

    let run = Run::new("mixed_to_weir");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<Blob>("writer", Reliability::Reliable));
    let reader = run.reader::<Blob>(Reliability::BestEffort);
    peer.ask("matched 1");
    take_some(&mut peer, &reader, 500, 100, 1);
    peer.quit();
}

#[test]
fn cyclone_sees_instances_end_that_weir_ends() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("ends_to_cyclone");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let writer = run.writer::<ShapeType>(Reliability::Reliable);
    await_match(&writer, &mut peer);
    let shape = |number| ShapeType::make(number, 5, 3);
    (0..6).for_each(|number| writer.write(&shape(number)).unwrap());
    peer.ask("read 0 6 5 3");
    writer.dispose(&shape(0)).unwrap();
    peer.ask("state 0 disposed");
    // Cyclone DDS reports it because the instance has no other writer.
    writer.unregister_instance(&shape(1)).unwrap();
    peer.ask("state 1 no-writers");
    writer.write(&shape(6)).unwrap();
    peer.ask("state 0 alive");
    drop(writer);
    peer.ask("matched 0");
    peer.ask("state 2 no-writers");
    peer.quit();
}

#[test]
fn what_is_unregistered_is_disposed_of_where_the_writer_says_so() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("autodispose_to_cyclone");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let writer = run.writer_with_qos::<ShapeType>(DataWriterQos::default().reliable().keep_all());
    await_match(&writer, &mut peer);
    (0..2).for_each(|number| writer.write(&ShapeType::make(number, 5, 2)).unwrap());
    peer.ask("read 0 2 5 2");
    writer.unregister_instance(&ShapeType::make(0, 5, 2)).unwrap();
    peer.ask("state 0 disposed");
    peer.quit();

    let run = Run::new("autodispose_to_weir");
    let reader = run.reader::<ShapeType>(Reliability::Reliable);
    let mut peer = start(&run, "");
    peer.ask(&(run.command::<ShapeType>("writer", Reliability::Reliable) + " autodispose"));
    peer.ask("matched 1");
    peer.ask("write 0 2 5 2");
    take_exactly(&reader, 0, 2, 5, 2);
    peer.ask("unregister 0 2");
    let handle = InstanceHandle::of(&ShapeType::make(0, 0, 2)).unwrap();
    await_state(&reader, handle, InstanceState::NotAliveDisposed);
    peer.quit();
}

#[test]
fn weir_sees_instances_end_that_cyclone_ends() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("ends_to_weir");
    let reader = run.reader::<ShapeType>(Reliability::Reliable);
    let mut peer = start(&run, "");
    peer.ask(&run.command::<ShapeType>("writer", Reliability::Reliable));
    peer.ask("matched 1");
    peer.ask("write 0 6 5 3");
    take_exactly(&reader, 0, 6, 5, 3);
    // A writer has handles of instances, even without readers.
    for (command, instance, state) in [
        ("dispose 0 3", 0, InstanceState::NotAliveDisposed),
        ("unregister 1 3", 1, InstanceState::NotAliveNoWriters),
        ("write 6 1 5 3", 0, InstanceState::Alive),
        ("delete", 2, InstanceState::NotAliveNoWriters),
    ] {
        peer.ask(command);
        let handle = InstanceHandle::of(&ShapeType::make(instance, 0, 3)).unwrap();
        await_state(&reader, handle, state);
    }
    peer.quit();
}

#[test]
fn either_side_may_start_first_and_end_first() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    // Weir first; Cyclone DDS deletes its writer, creates another one, leaves.
    let run = Run::new("weir_first");
    let (reader, news) = run.reader_with_news::<Blob>(Reliability::Reliable);
    let mut peer = start(&run, "");
    peer.ask(&run.command::<Blob>("writer", Reliability::Reliable));
    news.await_matches(1);
    peer.ask("delete");
    news.await_matches(0);
    peer.ask(&run.command::<Blob>("writer", Reliability::Reliable));
    news.await_matches(1);
    peer.ask("matched 1");
    peer.ask("write 0 10 10 1");
    take_exactly(&reader, 0, 10, 10, 1);
    peer.quit();
    news.await_matches(0);

    // Cyclone DDS first; Weir deletes its writer, creates another one, leaves.
    let run = Run::new("cyclone_first");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<Blob>("reader", Reliability::Reliable));
    let writer = run.writer::<Blob>(Reliability::Reliable);
    peer.ask("matched 1");
    drop(writer);
    peer.ask("matched 0");
    let writer = run.writer::<Blob>(Reliability::Reliable);
    await_match(&writer, &mut peer);
    writer.write(&Blob::make(0, 10, 1)).unwrap();
    peer.ask("read 0 1 10 1");
    drop((writer, run));
    peer.ask("matched 0");
    peer.quit();
}

#[test]
fn weir_sees_cyclones_readers_come_and_go() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("readers");
    let (writer, news) = run.writer_with_news::<Blob>(Reliability::Reliable);
    let mut first = start(&run, "");
    let mut second = start(&run, "");
    first.ask(&run.command::<Blob>("reader", Reliability::Reliable));
    news.await_matches(1);
    first.ask("matched 1");
    // Volatile: only existing readers receive it.
    (0..100).for_each(|number| writer.write(&Blob::make(number, 10, 1)).unwrap());
    first.ask("read 0 100 10 1");
    second.ask(&run.command::<Blob>("reader", Reliability::Reliable));
    news.await_matches(2);
    second.ask("matched 1");
    (100..300).for_each(|number| writer.write(&Blob::make(number, 10, 1)).unwrap());
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    first.ask("read 100 200 10 1");
    second.ask("read 100 200 10 1");
    first.ask("delete");
    news.await_matches(1);
    second.quit();
    news.await_matches(0);
    first.quit();
    // No reader would have to acknowledge.
    writer.write(&Blob::make(300, 10, 1)).unwrap();
    writer.wait_for_acknowledgments(LIMIT).unwrap();
}

#[test]
fn a_late_reader_gets_nothing_old_of_cyclones_volatile_writer() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("late");
    let mut peer = start(&run, "");
    let early = run.reader::<Blob>(Reliability::Reliable);
    peer.ask(&run.command::<Blob>("writer", Reliability::Reliable));
    peer.ask("matched 1");
    peer.ask("write 0 100 10 1");
    take_exactly(&early, 0, 100, 10, 1);
    // From here on the writer has no old samples to send.
    peer.ask("acknowledged");
    let late = run.another().reader::<Blob>(Reliability::Reliable);
    peer.ask("matched 2");
    peer.ask("write 100 200 10 1");
    take_exactly(&early, 100, 200, 10, 1);
    take_exactly(&late, 100, 200, 10, 1);
    peer.ask("acknowledged");
    peer.quit();
}

#[test]
fn incompatible_reliability_is_reported_and_not_matched() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("incompatible_writer");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<Blob>("writer", Reliability::BestEffort));
    let (reader, news) = run.reader_with_news::<Blob>(Reliability::Reliable);
    let status = news.await_incompatible();
    assert_eq!((status.total_count, status.last_policy_id), (1, Some(PolicyId::Reliability)));
    assert_eq!(peer.ask("incompatible"), RELIABILITY);
    assert_eq!(reader.subscription_matched_status().total_count, 0);
    peer.quit();

    let run = Run::new("incompatible_reader");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<Blob>("reader", Reliability::Reliable));
    let (writer, news) = run.writer_with_news::<Blob>(Reliability::BestEffort);
    let status = news.await_incompatible();
    assert_eq!((status.total_count, status.last_policy_id), (1, Some(PolicyId::Reliability)));
    assert_eq!(peer.ask("incompatible"), RELIABILITY);
    assert_eq!(writer.publication_matched_status().total_count, 0);
    peer.quit();
}

/// The policy's number in DDS 1.4.
const RELIABILITY: &str = "11";
