//! One side ends, with or without a goodbye, and is replaced: the old one's endpoints are removed,
//! and data flow again.

use weir_dds::{InstanceHandle, InstanceState, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds;
use crate::peer::Peer;
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run, await_state, take_exactly};
use crate::weir_process;

/// Samples, of three instances each time.
const COUNT: u32 = 60;

fn write_command(first: u32) -> String {
    format!("write {first} {COUNT} 10 3")
}

fn read_command(first: u32) -> String {
    format!("read {first} {COUNT} 10 3")
}

/// A writer of the other engine is killed and restarted at once; then leaves, and is restarted.
pub(crate) fn weir_survives_writers(name: &str, start: impl Fn(&Run) -> Peer) {
    let run = Run::new(name);
    let (reader, news) = run.reader_with_news::<ShapeType>(Reliability::Reliable);
    let come = |first| {
        let mut peer = start(&run);
        peer.ask(&run.command::<ShapeType>("writer", Reliability::Reliable));
        peer.ask("matched 1");
        peer.tell(&write_command(first));
        take_exactly(&reader, first, COUNT, 10, 3);
        peer.answer();
        peer.ask("acknowledged");
        peer
    };
    let first = come(0);
    news.await_arrivals(1);
    first.kill();
    // The dead one counts until its lease ends, without effect on the others.
    let second = come(COUNT);
    news.await_arrivals(2);
    news.await_matches_of_lease(1);
    second.kill();
    news.await_matches_of_lease(0);
    let instance = InstanceHandle::of(&ShapeType::make(0, 0, 3)).unwrap();
    await_state(&reader, instance, InstanceState::NotAliveNoWriters);
    let third = come(2 * COUNT);
    news.await_arrivals(3);
    third.quit();
    news.await_matches(0);
    await_state(&reader, instance, InstanceState::NotAliveNoWriters);
    come(3 * COUNT).quit();
    assert_eq!(reader.sample_lost_status().total_count, 0);
}

/// A reader of the other engine is killed and restarted at once; then leaves, and is restarted.
pub(crate) fn weir_survives_readers(name: &str, start: impl Fn(&Run) -> Peer) {
    let run = Run::new(name);
    let (writer, news) = run.writer_with_news::<ShapeType>(Reliability::Reliable);
    let write = |first: u32| {
        (first..first + COUNT).for_each(|number| writer.write(&ShapeType::make(number, 10, 3)).unwrap());
    };
    let come = |count| {
        let mut peer = start(&run);
        peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
        news.await_arrivals(count);
        peer.ask("matched 1");
        peer
    };
    let mut first = come(1);
    write(0);
    first.ask(&read_command(0));
    first.kill();
    // The dead one acknowledges nothing until its lease ends.
    let mut second = come(2);
    write(COUNT);
    second.ask(&read_command(COUNT));
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    news.await_matches_of_lease(1);
    second.kill();
    news.await_matches_of_lease(0);
    let mut third = come(3);
    write(2 * COUNT);
    third.ask(&read_command(2 * COUNT));
    third.quit();
    news.await_matches(0);
    let mut fourth = come(4);
    write(3 * COUNT);
    fourth.ask(&read_command(3 * COUNT));
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    fourth.quit();
}

/// A writer of Weir is killed and restarted at once; then leaves, and is restarted.
/// `tells_of_the_end` checks the instances that the killed one wrote.
pub(crate) fn others_survive_writers(
    test: &str,
    name: &str,
    start: impl Fn(&Run) -> Peer,
    tells_of_the_end: impl Fn(&mut Peer),
) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let come = |peer: &mut Peer, first| {
        let mut weir = weir_process::start(test, &run);
        weir.ask("writer");
        weir.ask("matched 1");
        weir.ask(&write_command(first));
        peer.ask(&read_command(first));
        weir.ask("acknowledged");
        weir
    };
    come(&mut peer, 0).kill();
    let second = come(&mut peer, COUNT);
    peer.ask("matched 1");
    second.kill();
    peer.ask("matched 0");
    tells_of_the_end(&mut peer);
    let third = come(&mut peer, 2 * COUNT);
    peer.ask("matched 1");
    third.quit();
    peer.ask("matched 0");
    come(&mut peer, 3 * COUNT).quit();
    peer.quit();
}

/// A reader of Weir is killed and restarted at once; then leaves, and is restarted.
pub(crate) fn others_survive_readers(test: &str, name: &str, start: impl Fn(&Run) -> Peer) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("writer", Reliability::Reliable));
    let come = |peer: &mut Peer, count: u32, first| {
        let mut weir = weir_process::start(test, &run);
        weir.ask("reader");
        weir.ask("matched 1");
        peer.ask(&format!("arrived {count}"));
        peer.ask(&write_command(first));
        weir.ask(&read_command(first));
        weir
    };
    let first = come(&mut peer, 1, 0);
    // Samples that one reader has not acknowledged are offered to others, too.
    peer.ask("acknowledged");
    first.kill();
    let second = come(&mut peer, 2, COUNT);
    peer.ask("matched 1");
    peer.ask("acknowledged");
    second.kill();
    peer.ask("matched 0");
    let third = come(&mut peer, 3, 2 * COUNT);
    peer.ask("acknowledged");
    third.quit();
    peer.ask("matched 0");
    come(&mut peer, 4, 3 * COUNT).quit();
    peer.quit();
}

#[test]
fn weir_survives_the_ends_of_cyclones_writers() {
    if Requirement::CycloneDds.is_met() {
        weir_survives_writers("writers_end", cyclonedds::start_with_lease);
    }
}

#[test]
fn weir_survives_the_ends_of_cyclones_readers() {
    if Requirement::CycloneDds.is_met() {
        weir_survives_readers("readers_end", cyclonedds::start_with_lease);
    }
}

#[test]
fn cyclone_survives_the_ends_of_weirs_writers() {
    if !weir_process::serve::<ShapeType>() && Requirement::CycloneDds.is_met() {
        let test = "restart::cyclone_survives_the_ends_of_weirs_writers";
        others_survive_writers(test, "weirs_writers_end", cyclonedds::start_with_lease, |peer| {
            peer.ask("state 0 no-writers");
        });
    }
}

#[test]
fn cyclone_survives_the_ends_of_weirs_readers() {
    if !weir_process::serve::<ShapeType>() && Requirement::CycloneDds.is_met() {
        let test = "restart::cyclone_survives_the_ends_of_weirs_readers";
        others_survive_readers(test, "weirs_readers_end", cyclonedds::start_with_lease);
    }
}
