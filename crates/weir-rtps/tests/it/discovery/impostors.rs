//! Messages in the name of a participant that come from another host, or seem to come from its own.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::qos::{Qos, Reliability};
use weir_wire::{
    AckNack, EntityId, GuidPrefix, Header, InfoDestination, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, VendorId, push,
};

use super::hostile::announcement;
use super::world::{Datagram, GROUP, METATRAFFIC_PORT, World, matched, prefix};

const ELSEWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 9, 9), METATRAFFIC_PORT);

/// Acknowledges announcements of endpoints that were never made.
fn guess(source: GuidPrefix, to: GuidPrefix, count: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: source });
    push(&mut bytes, &InfoDestination { prefix: to });
    let (reader, writer) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
    let state = SequenceNumberSet::new(SequenceNumber(1 << 62));
    push(&mut bytes, &AckNack { reader, writer, state, count, is_final: true });
    bytes
}

/// A writer on node 0, and a reader on node 1.
fn pair() -> World {
    let mut world = World::new();
    world.start();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.add_reader(1, 1, "Square", Qos { reliability: Reliability::Reliable, ..Qos::for_reader() });
    world
}

#[test]
fn numbers_that_another_host_guesses_do_not_keep_participants_apart() {
    for is_from_home in [false, true] {
        let mut world = pair();
        let (victim, home) = (world.nodes[0].address, world.nodes[1].address);
        let mut guesses = 0;
        world.rewrite = Box::new(move |datagram| {
            // Behind the first announcement, before the answers.
            let is_announcement = datagram.from == home && datagram.to == GROUP;
            let mut all = vec![datagram];
            if is_announcement && guesses == 0 {
                guesses += 1;
                let from = if is_from_home { home } else { ELSEWHERE };
                all.push(Datagram { from, to: victim, bytes: guess(prefix(1), prefix(0), 1) });
            }
            all
        });
        // Until what seems to come from its own host is believed again.
        world.run_for(if is_from_home { Duration::from_secs(4) } else { Duration::from_millis(500) });
        assert!(world.events(0).iter().any(|event| matched(event).is_some()), "{is_from_home}");
    }
}

#[test]
fn only_its_own_hosts_renew_the_lease_of_a_participant() {
    let mut world = pair();
    world.run_for(Duration::from_millis(2500));
    assert!(world.events(0).iter().any(|event| matched(event).is_some()));
    let (victim, home) = (world.nodes[0].address, world.nodes[1].address);
    world.kill(1);
    for count in 0..5 {
        world.run_for(Duration::from_secs(5));
        let bytes = guess(prefix(1), prefix(0), count);
        world.send(Datagram { from: ELSEWHERE, to: victim, bytes });
        let payload = announcement(prefix(1), home);
        let bytes = super::hostile::data(prefix(1), EntityId::SPDP_WRITER, 1, None, &payload);
        world.send(Datagram { from: ELSEWHERE, to: GROUP, bytes });
    }
    let is_lost = |event: &DiscoveryEvent| matches!(event, DiscoveryEvent::ParticipantLost { .. });
    assert!(world.events(0).iter().any(is_lost));
}
