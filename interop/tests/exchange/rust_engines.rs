//! The exchanges with engines in Rust: dust_dds and RustDDS.

use std::process::Command;

use weir_dds::{DataReaderQos, InstanceHandle, InstanceState, PolicyId, Reliability};
use weir_interop::requirement::rust_peer;

use crate::durability::{History, other_to_weir, weir_to_other};
use crate::peer::Peer;
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run, await_state, take_exactly, until};

/// Samples, of three instances each time.
const COUNT: u32 = 60;

fn dust_dds(run: &Run) -> Peer {
    start("dust_dds", run, "lo")
}

fn rustdds(run: &Run) -> Peer {
    start("rustdds", run, "127.0.0.1")
}

fn start(name: &str, run: &Run, interface: &str) -> Peer {
    let mut command = Command::new(rust_peer(name).unwrap());
    Peer::start(command.args([&run.domain.to_string(), interface]))
}

type Start = fn(&Run) -> Peer;

fn shape(number: u32) -> ShapeType {
    ShapeType::make(number, 10, 3)
}

/// Samples of several sizes and instances, and the end of one.
fn reliable_to_other(name: &str, start: Start) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let (writer, news) = run.writer_with_news::<ShapeType>(Reliability::Reliable);
    news.await_matches(1);
    peer.ask("matched 1");
    for (round, size) in (0..).zip([0, 1, 100, 1000, 8000]) {
        let first = 200 * round;
        peer.tell(&format!("read {first} 200 {size} 5"));
        (first..first + 200).for_each(|number| writer.write(&ShapeType::make(number, size, 5)).unwrap());
        peer.answer();
    }
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    writer.dispose(&ShapeType::make(1, 0, 5)).unwrap();
    peer.ask("state 1 disposed");
    peer.quit();
}

fn reliable_to_weir(name: &str, start: Start) {
    let run = Run::new(name);
    let (reader, news) = run.reader_with_news::<ShapeType>(Reliability::Reliable);
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("writer", Reliability::Reliable));
    peer.ask("matched 1");
    news.await_matches(1);
    for (round, size) in (0..).zip([0, 1, 100, 1000, 8000]) {
        let first = 200 * round;
        peer.tell(&format!("write {first} 200 {size} 5"));
        take_exactly(&reader, first, 200, size, 5);
        peer.answer();
    }
    peer.ask("acknowledged");
    peer.ask("dispose 1 5");
    let instance = InstanceHandle::of(&ShapeType::make(1, 0, 5)).unwrap();
    await_state(&reader, instance, InstanceState::NotAliveDisposed);
    assert_eq!(reader.sample_lost_status().total_count, 0);
    peer.quit();
}

fn late_readers_get_the_history_of_weir(name: &str, start: Start) {
    weir_to_other::<ShapeType>(name, History::KEYED, start);
}

fn early_and_late_readers_get_what_they_request(name: &str, start: Start) {
    other_to_weir::<ShapeType>(name, History::KEYED, start);
}

/// Without a volatile reader, to which RustDDS sends its history, too.
fn late_readers_get_the_history_of_the_other(name: &str, start: Start) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&(run.command::<ShapeType>("writer", Reliability::Reliable) + " transient-local"));
    peer.ask("write 0 300 10 3");
    let late = run.reader_with_qos(DataReaderQos::default().reliable().keep_all().transient_local());
    take_exactly::<ShapeType>(&late, 0, 300, 10, 3);
    peer.ask("matched 1");
    peer.ask("write 300 300 10 3");
    take_exactly(&late, 300, 300, 10, 3);
    assert_eq!(late.sample_lost_status().total_count, 0);
    peer.quit();
}

fn incompatible_reliability_is_reported(name: &str, start: Start) {
    check_incompatible(name, start, true);
}

fn incompatible_reliability_is_found(name: &str, start: Start) {
    check_incompatible(name, start, false);
}

fn check_incompatible(name: &str, start: Start, is_reported: bool) {
    let check = |peer: &mut Peer| {
        if is_reported {
            assert_eq!(peer.ask("incompatible"), (PolicyId::Reliability as u32).to_string());
        }
    };
    let run = Run::new(&format!("{name}_to_weir"));
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("writer", Reliability::BestEffort));
    let reader = run.reader::<ShapeType>(Reliability::Reliable);
    until("incompatible", || reader.requested_incompatible_qos_status().total_count == 1);
    check(&mut peer);
    assert_eq!(reader.subscription_matched_status().total_count, 0);
    peer.quit();

    let run = Run::new(&format!("{name}_to_other"));
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    let writer = run.writer::<ShapeType>(Reliability::BestEffort);
    until("incompatible", || writer.offered_incompatible_qos_status().total_count == 1);
    check(&mut peer);
    assert_eq!(writer.publication_matched_status().total_count, 0);
    peer.quit();
}

/// The other side is killed and restarted at once; then leaves, and is restarted.
fn weir_survives_restarts_of_the_other(name: &str, start: Start) {
    let run = Run::new(&format!("{name}_writer"));
    let (reader, news) = run.reader_with_news::<ShapeType>(Reliability::Reliable);
    let come = |round: u32| {
        let mut peer = start(&run);
        peer.ask(&run.command::<ShapeType>("writer", Reliability::Reliable));
        peer.ask("matched 1");
        news.await_arrivals((round + 1).into());
        peer.ask(&format!("write {} {COUNT} 10 3", round * COUNT));
        take_exactly(&reader, round * COUNT, COUNT, 10, 3);
        peer
    };
    come(0).kill();
    come(1).quit();
    come(2).quit();
    assert_eq!(reader.sample_lost_status().total_count, 0);

    let run = Run::new(&format!("{name}_reader"));
    let (writer, news) = run.writer_with_news::<ShapeType>(Reliability::Reliable);
    let come = |round: u32| {
        let mut peer = start(&run);
        peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
        peer.ask("matched 1");
        news.await_arrivals((round + 1).into());
        (round * COUNT..(round + 1) * COUNT).for_each(|number| writer.write(&shape(number)).unwrap());
        peer.ask(&format!("read {} {COUNT} 10 3", round * COUNT));
        peer
    };
    come(0).kill();
    come(1).quit();
    come(2).quit();
}

/// Weir's participant leaves and is back with another GUID. dust_dds then counts the one that has left again: matches
/// are not counted here.
fn the_other_survives_restarts_of_weir(name: &str, start: Start) {
    let run = Run::new(&format!("{name}_writer"));
    let mut peer = start(&run);
    peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    for round in 0..3 {
        let weir = run.another();
        let writer = weir.writer::<ShapeType>(Reliability::Reliable);
        writer.wait_for_subscriptions(1, LIMIT).unwrap();
        (round * COUNT..(round + 1) * COUNT).for_each(|number| writer.write(&shape(number)).unwrap());
        peer.ask(&format!("read {} {COUNT} 10 3", round * COUNT));
        drop((writer, weir));
    }
    peer.quit();

    let run = Run::new(&format!("{name}_reader"));
    let mut peer = start(&run);
    peer.ask(&(run.command::<ShapeType>("writer", Reliability::Reliable) + " transient-local"));
    for round in 0..3 {
        peer.ask(&format!("write {} {COUNT} 10 3", round * COUNT));
        let weir = run.another();
        let qos = DataReaderQos::default().reliable().keep_all().transient_local();
        let reader = weir.reader_with_qos::<ShapeType>(qos);
        take_exactly(&reader, 0, (round + 1) * COUNT, 10, 3);
        drop((reader, weir));
    }
    peer.quit();
}

macro_rules! exchanges {
    ($engine:ident: $($test:ident)*) => {
        mod $engine {
            $(
                #[test]
                fn $test() {
                    if weir_interop::Requirement::RustEngines.is_met() {
                        super::$test(concat!(stringify!($engine), "_", stringify!($test)), super::$engine);
                    }
                }
            )*
        }
    };
}

exchanges! { dust_dds:
    reliable_to_other
    reliable_to_weir
    late_readers_get_the_history_of_weir
    early_and_late_readers_get_what_they_request
    incompatible_reliability_is_found
    weir_survives_restarts_of_the_other
    the_other_survives_restarts_of_weir
}

exchanges! { rustdds:
    reliable_to_other
    reliable_to_weir
    late_readers_get_the_history_of_weir
    late_readers_get_the_history_of_the_other
    incompatible_reliability_is_reported
    weir_survives_restarts_of_the_other
    the_other_survives_restarts_of_weir
}
