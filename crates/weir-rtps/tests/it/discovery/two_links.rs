//! Two networks between the same participants, one of which fails.

use core::net::{Ipv4Addr, SocketAddrV4};

use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::participant::{Interface, OwnAddresses, ParticipantCore};
use weir_rtps::qos::Qos;
use weir_rtps::spdp;
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid, Locator, ParameterId, ParameterListWriter};

use super::hostile::{acknowledgement, data};
use super::world::{METATRAFFIC_PORT, USER_PORT, config, endpoint, prefix};

/// The address of a host on a network.
const fn on(network: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, network, 0, host)
}

/// The addresses of host 1 on these networks.
fn addresses(networks: &[u8]) -> OwnAddresses {
    let at = |port| networks.iter().map(|network| SocketAddrV4::new(on(*network, 1), port)).collect();
    let netmask = Ipv4Addr::new(255, 255, 255, 0);
    let interfaces = networks.iter().map(|network| Interface { address: on(*network, 1), netmask });
    OwnAddresses {
        metatraffic_unicast: at(METATRAFFIC_PORT),
        default_unicast: at(USER_PORT),
        interfaces: interfaces.collect(),
        multicast_interfaces: networks.iter().map(|network| on(*network, 1)).collect(),
    }
}

/// A participant on host 1 whose writer has matched a reader on host 2. Host 2 names its addresses on `theirs`, and its
/// announcement came over the first network.
fn pair(ours: &[u8], theirs: &[u8]) -> ParticipantCore {
    let mut config = config(0);
    let own = addresses(ours);
    (config.metatraffic_unicast, config.default_unicast) = (own.metatraffic_unicast, own.default_unicast);
    (config.interfaces, config.multicast_interfaces) = (own.interfaces, own.multicast_interfaces);
    let mut core = ParticipantCore::new(config, Time::ZERO);
    let writer = EntityId::user_writer(1, false);
    core.add_writer(Time::ZERO, endpoint(writer, "Square", Qos::for_writer())).unwrap();
    let (them, from) = (prefix(1), SocketAddrV4::new(on(1, 2), METATRAFFIC_PORT));
    announce(&mut core, Time::ZERO, theirs, 1);
    core.handle_datagram(Time::ZERO, from, &acknowledgement(them, prefix(0)));
    let mut reader = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut reader);
    list.guid(ParameterId::ENDPOINT_GUID, Guid::new(them, EntityId::user_reader(1, false)));
    list.string(ParameterId::TOPIC_NAME, "Square");
    list.string(ParameterId::TYPE_NAME, "Type");
    list.finish();
    let reader = data(them, EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, Some(prefix(0)), &reader);
    core.handle_datagram(Time::ZERO, from, &reader);
    core
}

/// Announces addresses of host 2 over a network.
fn announce(core: &mut ParticipantCore, now: Time, theirs: &[u8], over: u8) {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(prefix(1), EntityId::PARTICIPANT));
    list.u32(ParameterId::BUILTIN_ENDPOINT_SET, spdp::builtin_endpoints::WEIR);
    for network in theirs {
        let at = |port| Locator::udp_v4(SocketAddrV4::new(on(*network, 2), port));
        list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, at(METATRAFFIC_PORT));
        list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, at(USER_PORT));
    }
    list.finish();
    let from = SocketAddrV4::new(on(over, 2), METATRAFFIC_PORT);
    core.handle_datagram(
        now,
        from,
        &data(prefix(1), EntityId::SPDP_WRITER, 1 + now.0 as i64, None, &payload),
    );
}

/// Where the writer sends to, by the last event.
fn destination(core: &mut ParticipantCore) -> Option<Ipv4Addr> {
    let events = core::iter::from_fn(|| core.poll_event());
    let readers = events.filter_map(|event| match event {
        DiscoveryEvent::ReaderMatched { reader, .. } | DiscoveryEvent::ReaderChanged { reader, .. } => {
            Some(*reader.destinations[0].ip())
        }
        DiscoveryEvent::ReaderUnmatched { .. } => panic!("unmatched"),
        _ => None,
    });
    readers.last()
}

#[test]
fn a_peer_is_sent_to_over_the_network_that_is_left() {
    let mut core = pair(&[1, 2], &[1, 2]);
    assert_eq!(destination(&mut core), Some(on(1, 2)));
    core.set_addresses(Time(1), addresses(&[2]));
    assert_eq!(destination(&mut core), Some(on(2, 2)));
    // A path that works is kept.
    core.set_addresses(Time(2), addresses(&[1, 2]));
    assert_eq!(destination(&mut core), None);
    core.set_addresses(Time(3), addresses(&[1]));
    assert_eq!(destination(&mut core), Some(on(1, 2)));
}

#[test]
fn a_peer_is_found_again_after_there_was_no_network() {
    let mut core = pair(&[1], &[1, 2]);
    assert_eq!(destination(&mut core), Some(on(1, 2)));
    core.set_addresses(Time(1), addresses(&[]));
    core.set_addresses(Time(2), addresses(&[3]));
    assert_eq!(destination(&mut core), None);
    core.set_addresses(Time(3), addresses(&[3, 2]));
    assert_eq!(destination(&mut core), Some(on(2, 2)));
}

#[test]
fn a_peer_behind_a_router_is_not_taken_for_a_neighbour() {
    // The peer's address on network 2 is on a network of the same name elsewhere.
    let mut core = pair(&[3], &[1, 2]);
    assert_eq!(destination(&mut core), Some(on(1, 2)));
    core.set_addresses(Time(1), addresses(&[3, 2]));
    assert_eq!(destination(&mut core), None);
}

#[test]
fn a_peer_whose_links_change_quickly_is_followed_within_a_tenth_of_a_second() {
    const MS: u64 = 1_000_000;
    let mut core = pair(&[1, 2], &[1, 2]);
    assert_eq!(destination(&mut core), Some(on(1, 2)));
    announce(&mut core, Time(1000 * MS), &[2], 2);
    assert_eq!(destination(&mut core), Some(on(2, 2)));
    // Too soon after that change, so it has to wait.
    announce(&mut core, Time(1010 * MS), &[1, 2], 2);
    announce(&mut core, Time(1020 * MS), &[1], 1);
    assert_eq!(destination(&mut core), None);
    core.handle_timeout(Time(1100 * MS));
    assert_eq!(destination(&mut core), Some(on(1, 2)));
    assert_eq!(core.counters().claims_refused, 0);
}

#[test]
fn a_path_on_which_nothing_arrives_any_more_is_left_after_two_announcements() {
    const S: u64 = 1_000_000_000;
    let mut core = pair(&[1, 2], &[1, 2]);
    assert_eq!(destination(&mut core), Some(on(1, 2)));
    // As long as both arrive, their order does not matter.
    for second in [6, 12, 18] {
        announce(&mut core, Time(second * S), &[1, 2], 2);
        announce(&mut core, Time(second * S + 1), &[1, 2], 1);
    }
    announce(&mut core, Time(24 * S), &[1, 2], 2);
    announce(&mut core, Time(24 * S + 50_000_000), &[1, 2], 2);
    assert_eq!(destination(&mut core), None);
    announce(&mut core, Time(30 * S), &[1, 2], 2);
    assert_eq!(destination(&mut core), Some(on(2, 2)));
    // An address that it does not name is no path.
    for second in [36, 42] {
        announce(&mut core, Time(second * S), &[1, 2], 3);
    }
    assert_eq!(destination(&mut core), None);
}
