//! The exchanges with Fast DDS.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use weir_dds::{InstanceState, Reliability};
use weir_interop::Requirement;

use crate::peer::{self, Peer};
use crate::types::{Blob, Numbered, ShapeType};
use crate::weir::{LIMIT, Run, await_state, take_exactly, take_some, write_until_content};

fn start(run: &Run) -> Peer {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    Peer::start(Command::new(PROGRAM.get_or_init(build)).arg(run.domain.to_string()))
}

fn build() -> PathBuf {
    let source = peer::sources().join("fastdds/peer.cpp");
    peer::build("fastdds-peer", |here| {
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++14", "-O1", "-Wall", "-o", "peer"]).arg(source);
        peer::run(compiler.args(["-lfastrtps", "-lfastcdr"]).current_dir(here));
    })
}

/// Everything that Weir writes reliably arrives, in order, as it was written.
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

/// Everything that Fast DDS writes reliably arrives, in order, as it was written.
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

#[test]
fn fast_gets_small_and_large_payloads() {
    weir_to_fast::<Blob>("fast_blobs_to_fast", 200, &[1, 7, 1000, 8192, 60000], 1);
}

#[test]
fn weir_gets_all_shapes_that_fast_writes() {
    fast_to_weir::<ShapeType>("fast_shapes_to_weir", 3000, &[0, 100], 7);
}

#[test]
fn weir_gets_small_and_large_payloads() {
    fast_to_weir::<Blob>("fast_blobs_to_weir", 200, &[1, 7, 1000, 8192, 60000], 1);
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
    writer.dispose(&shape(0)).unwrap();
    peer.ask("state 0 disposed");
    writer.write(&shape(6)).unwrap();
    peer.ask("state 0 alive");
    peer.quit();
    news.await_matches(0);

    let run = Run::new("fast_ends_to_weir");
    let (reader, news) = run.reader_with_news::<ShapeType>(Reliability::Reliable);
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("writer", Reliability::Reliable));
    peer.ask("matched 1");
    peer.ask("write 0 6 5 3");
    take_exactly(&reader, 0, 6, 5, 3);
    let handle = writer.lookup_instance(&shape(0)).unwrap();
    peer.ask("dispose 0 3");
    await_state(&reader, handle, InstanceState::NotAliveDisposed);
    peer.quit();
    news.await_matches(0);
}
