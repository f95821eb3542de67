//! The exchanges with Fast DDS.

mod policies;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use weir_dds::{InstanceHandle, InstanceState, Reliability};
use weir_interop::Requirement;

use crate::durability::{History, other_to_weir, weir_to_other};
use crate::peer::{self, Peer};
use crate::restart;
use crate::types::{Blob, Numbered, ShapeType};
use crate::weir::{LEASE, LIMIT, Run, await_state, take_exactly, take_some, write_until_content};
use crate::weir_process;

fn start(run: &Run) -> Peer {
    Peer::start(&mut command(run))
}

/// Starts the peer with a short lease, for when it is killed.
fn start_with_lease(run: &Run) -> Peer {
    Peer::start(command(run).arg(LEASE.as_millis().to_string()))
}

fn command(run: &Run) -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut command = Command::new(PROGRAM.get_or_init(build));
    command.arg(run.domain.to_string());
    command
}

fn build() -> PathBuf {
    let source = peer::sources().join("fastdds/peer.cpp");
    peer::build("fastdds-peer", |here| {
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++14", "-O1", "-Wall", "-o", "peer"]).arg(source);
        peer::run(compiler.args(["-lfastrtps", "-lfastcdr"]).current_dir(here));
    })
}

/// Checks that everything Weir writes reliably arrives, in order and unchanged.
fn weir_to_fast<T: Numbered>(name: &str, count: u32, sizes: &[u32], instances: u32) {
    if !Requirement::FastDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&run.command::<T>("reader", Reliability::Reliable));
    let writer = run.writer::<T>(Reliability::Reliable);
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    peer.ask("matched 1");
    for (round, &size) in (0..).zip(sizes) {
        let first = round * count;
        peer.tell(&format!("read {first} {count} {size} {instances}"));
        (first..first + count).for_each(|number| writer.write(&T::make(number, size, instances)).unwrap());
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        peer.answer();
    }
    peer.quit();
}

/// Checks that everything Fast DDS writes reliably arrives, in order and unchanged.
fn fast_to_weir<T: Numbered>(name: &str, count: u32, sizes: &[u32], instances: u32) {
    if !Requirement::FastDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let reader = run.reader::<T>(Reliability::Reliable);
    let mut peer = start(&run);
    peer.ask(&run.command::<T>("writer", Reliability::Reliable));
    peer.ask("matched 1");
    for (round, &size) in (0..).zip(sizes) {
        let first = round * count;
        peer.tell(&format!("write {first} {count} {size} {instances}"));
        take_exactly(&reader, first, count, size, instances);
        peer.answer();
    }
    peer.ask("acknowledged");
    assert_eq!(reader.sample_lost_status().total_count, 0);
    peer.quit();
}

#[test]
fn fast_gets_all_shapes_that_weir_writes() {
    weir_to_fast::<ShapeType>("fast_shapes_to_fast", 3000, &[0, 100], 7);
}

const SIZES: [u32; 10] = [0, 1, 7, 32, 1024, 8192, 60_000, 63_000, 65_000, 65_500];
const LARGE_SIZES: [u32; 4] = [66_000, 100_000, 300_000, 1_000_000];

#[test]
fn fast_gets_small_and_large_payloads() {
    weir_to_fast::<Blob>("fast_blobs_to_fast", 200, &SIZES, 1);
    weir_to_fast::<ShapeType>("fast_sizes_to_fast", 50, &SIZES, 3);
}

#[test]
fn fast_gets_fragmented_payloads() {
    weir_to_fast::<Blob>("fast_fragments_to_fast", 10, &LARGE_SIZES, 1);
    weir_to_fast::<ShapeType>("fast_keyed_fragments_to_fast", 6, &LARGE_SIZES, 2);
}

#[test]
fn weir_gets_fragmented_payloads() {
    fast_to_weir::<Blob>("fast_fragments_to_weir", 10, &LARGE_SIZES, 1);
    fast_to_weir::<ShapeType>("fast_keyed_fragments_to_weir", 6, &LARGE_SIZES, 2);
}

#[test]
fn late_readers_get_the_history_of_weir() {
    if Requirement::FastDds.is_met() {
        weir_to_other::<ShapeType>("fast_all_to_fast", History::KEYED, start);
        weir_to_other::<Blob>("fast_last_to_fast", History::UNKEYED.last_two(), start);
        weir_to_other::<ShapeType>("fast_last_shapes_to_fast", History::KEYED.last_two(), start);
    }
}

#[test]
fn late_readers_get_the_history_of_fast() {
    if Requirement::FastDds.is_met() {
        other_to_weir::<Blob>("fast_all_to_weir", History::UNKEYED, start);
        other_to_weir::<ShapeType>("fast_all_shapes_to_weir", History::KEYED, start);
        other_to_weir::<ShapeType>("fast_last_to_weir", History::KEYED.last_two(), start);
    }
}

#[test]
fn weir_survives_the_ends_of_fasts_writers() {
    if Requirement::FastDds.is_met() {
        restart::weir_survives_writers("fast_writers_end", start_with_lease);
    }
}

#[test]
fn weir_survives_the_ends_of_fasts_readers() {
    if Requirement::FastDds.is_met() {
        restart::weir_survives_readers("fast_readers_end", start_with_lease);
    }
}

#[test]
fn fast_survives_the_ends_of_weirs_writers() {
    if !weir_process::serve::<ShapeType>() && Requirement::FastDds.is_met() {
        let test = "fastdds::fast_survives_the_ends_of_weirs_writers";
        // Fast DDS 2 changes the state of instances without writers, but reports it with no sample.
        restart::others_survive_writers(test, "fast_weirs_writers_end", start_with_lease, |_| ());
    }
}

#[test]
fn fast_survives_the_ends_of_weirs_readers() {
    if !weir_process::serve::<ShapeType>() && Requirement::FastDds.is_met() {
        let test = "fastdds::fast_survives_the_ends_of_weirs_readers";
        restart::others_survive_readers(test, "fast_weirs_readers_end", start_with_lease);
    }
}

#[test]
fn weir_gets_all_shapes_that_fast_writes() {
    fast_to_weir::<ShapeType>("fast_shapes_to_weir", 3000, &[0, 100], 7);
}

#[test]
fn weir_gets_small_and_large_payloads() {
    fast_to_weir::<Blob>("fast_blobs_to_weir", 200, &SIZES, 1);
    fast_to_weir::<ShapeType>("fast_sizes_to_weir", 50, &SIZES, 3);
}

#[test]
fn best_effort_works_in_both_directions() {
    if !Requirement::FastDds.is_met() {
        return;
    }
    let run = Run::new("fast_best_effort_to_fast");
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("reader", Reliability::BestEffort));
    let writer = run.writer::<ShapeType>(Reliability::BestEffort);
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    peer.ask("matched 1");
    write_until_content(&mut peer, &writer, 500, 33, 3);
    peer.quit();

    let run = Run::new("fast_best_effort_to_weir");
    let mut peer = start(&run);
    peer.ask(&run.command::<Blob>("writer", Reliability::BestEffort));
    let reader = run.reader::<Blob>(Reliability::BestEffort);
    peer.ask("matched 1");
    take_some(&mut peer, &reader, 500, 100, 1);
    peer.quit();
}

#[test]
fn both_see_instances_end_that_the_other_ends() {
    if !Requirement::FastDds.is_met() {
        return;
    }
    let run = Run::new("fast_ends_to_fast");
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let (writer, news) = run.writer_with_news::<ShapeType>(Reliability::Reliable);
    news.await_matches(1);
    peer.ask("matched 1");
    let shape = |number| ShapeType::make(number, 5, 3);
    (0..6).for_each(|number| writer.write(&shape(number)).unwrap());
    peer.ask("read 0 6 5 3");
    // The first has a short key, the second a long one.
    writer.dispose(&shape(0)).unwrap();
    peer.ask("state 0 disposed");
    writer.dispose(&shape(1)).unwrap();
    peer.ask("state 1 disposed");
    writer.write(&shape(6)).unwrap();
    peer.ask("state 0 alive");
    writer.unregister_instance(&shape(2)).unwrap();
    peer.ask("state 2 no-writers");
    peer.quit();
    news.await_matches(0);

    let run = Run::new("fast_ends_to_weir");
    let (reader, news) = run.reader_with_news::<ShapeType>(Reliability::Reliable);
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("writer", Reliability::Reliable));
    peer.ask("matched 1");
    peer.ask("write 0 6 5 3");
    take_exactly(&reader, 0, 6, 5, 3);
    for (command, instance, state) in [
        ("dispose 0 3", 0, InstanceState::NotAliveDisposed),
        ("dispose 1 3", 1, InstanceState::NotAliveDisposed),
        ("unregister 2 3", 2, InstanceState::NotAliveNoWriters),
    ] {
        peer.ask(command);
        await_state(&reader, InstanceHandle::of(&shape(instance)).unwrap(), state);
    }
    peer.quit();
    news.await_matches(0);
}
