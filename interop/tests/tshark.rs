//! Wireshark's checks of our packets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use core::time::Duration;
use std::path::PathBuf;

use weir_interop::simulation::World;
use weir_interop::{Requirement, tshark};
use weir_netsim::pcap::Writer;
use weir_netsim::{Link, Loss, Network, Side};
use weir_rtps::qos::{History, Qos, Reliability};
use weir_rtps::writer::{Change, ChangeKind};

const SECOND: Duration = Duration::from_secs(1);

fn capture_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Discovery, samples of many sizes with losses and repairs, instances that end, goodbyes.
fn run(link: Link, reliability: Reliability) -> World {
    let qos = |base| Qos { reliability, history: History::KeepAll, ..base };
    let network = Network::builder(3).link(link).record();
    let mut world = World::new(network, 3, &qos(Qos::for_writer()), &qos(Qos::for_reader()));
    // Including its own reader.
    let all_matched = |world: &mut World| (0..3).all(|node| world.matched(node) == 3);
    assert!(world.run_until(10 * SECOND, all_matched), "all participants match");
    for len in (0..2000).step_by(97) {
        let payload = [&[0, 1, 0, 0][..], &vec![7; len / 4 * 4]].concat();
        let change = Change { kind: ChangeKind::Alive, key: None, payload: &payload };
        assert!(world.run_until(SECOND, |world| world.write(0, change).is_ok()), "room within a second");
    }
    for kind in [ChangeKind::Disposed, ChangeKind::Unregistered] {
        world.write(1, Change { kind, key: Some([5; 16]), payload: &[0, 1, 0, 0, 1, 0, 0, 0] }).unwrap();
    }
    world.run_for(5 * SECOND);
    (0..3).for_each(|node| world.close(node));
    world.run_for(SECOND);
    world
}

#[test]
fn wireshark_finds_nothing_wrong_with_a_simulated_exchange() {
    if !Requirement::Tshark.is_met() {
        return;
    }
    let lossy = Link::new().delay(Duration::from_micros(200)).loss(Loss::random(0.1));
    for (name, link, reliability) in [
        ("best-effort.pcap", Link::new(), Reliability::BestEffort),
        ("reliable.pcap", lossy, Reliability::Reliable),
    ] {
        let world = run(link, reliability);
        let path = capture_file(name);
        std::fs::write(&path, world.network.recording().to_pcap(Side::Senders)).unwrap();
        let verdict = tshark::dissect(&path).unwrap();
        assert_eq!(verdict.complaints, Vec::<String>::new(), "{}", path.display());
        assert_eq!(verdict.packets as u64, world.network.counters().sent);
        assert_eq!(verdict.rtps, verdict.packets, "all of it is RTPS");
        // INFO_TS, DATA, INFO_DST; and for repairs HEARTBEAT, ACKNACK.
        for id in [0x09, 0x15, 0x0e, 0x07, 0x06] {
            assert!(verdict.submessages.contains_key(&id), "{id:#x}: {:?}", verdict.submessages);
        }
    }
}

/// Ensures that the test above cannot pass because tshark checks nothing.
#[test]
fn wireshark_does_find_what_is_wrong() {
    if !Requirement::Tshark.is_met() {
        return;
    }
    // A HEARTBEAT that claims 28 bytes and has 8.
    let message =
        [&b"RTPS\x02\x05\x01\xf0"[..], &[1; 12], &[0x07, 0x01, 28, 0, 0, 0, 0, 0, 0, 0, 1, 2]].concat();
    let address = "10.0.0.1:7411".parse().unwrap();
    let mut truncated = Writer::new();
    truncated.udp(SECOND, address, address, &message);
    let mut damaged = Writer::new();
    damaged.udp(SECOND, address, address, &[&message[..], &[0; 20]].concat());
    let mut damaged = damaged.finish();
    *damaged.last_mut().unwrap() = 1;
    for (name, capture) in [("truncated.pcap", truncated.finish()), ("damaged.pcap", damaged)] {
        let path = capture_file(name);
        std::fs::write(&path, capture).unwrap();
        assert_eq!(tshark::dissect(&path).unwrap().complaints.len(), 1, "{name}");
    }
}
