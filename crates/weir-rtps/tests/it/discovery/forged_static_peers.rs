//! Forged announcements in the names of peers whose endpoints are known beforehand.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::BTreeMap;
use std::sync::Arc;

use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::participant::{Interface, ParticipantCore};
use weir_rtps::qos::Qos;
use weir_rtps::spdp::builtin_endpoints::{
    PARTICIPANT_ANNOUNCER, PARTICIPANT_DETECTOR, SUBSCRIPTIONS_ANNOUNCER, WEIR,
};
use weir_rtps::static_peers::{StaticEndpoint, StaticPeer};
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid, GuidPrefix, Locator, ParameterId, ParameterListWriter, VendorId};

use super::hostile::data;
use super::moved::disposal;
use super::world::{config, endpoint, matched, prefix};

const HOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 7411);
const VICTIM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 53);
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 9, 9, 9), 53);
const WITHOUT_SEDP: u32 = PARTICIPANT_ANNOUNCER | PARTICIPANT_DETECTOR;

fn forged(index: u32) -> GuidPrefix {
    let mut prefix = [0xee; 12];
    prefix[8..].copy_from_slice(&index.to_be_bytes());
    GuidPrefix(prefix)
}

/// A participant with a writer that knows a reader of the peer `arm` at [`HOST`].
fn core() -> ParticipantCore {
    let mut config = config(0);
    let known = StaticEndpoint {
        entity: EntityId::user_reader(7, false),
        topic: "Square".to_owned(),
        type_name: "Type".to_owned(),
        qos: Arc::new(Qos::for_reader()),
    };
    let peer = StaticPeer { hosts: vec![*HOST.ip()], endpoints: vec![known] };
    config.static_peers = Arc::new(BTreeMap::from([("arm".to_owned(), peer)]));
    let address = *config.default_unicast[0].ip();
    config.interfaces = vec![Interface { address, netmask: Ipv4Addr::new(255, 255, 255, 0) }];
    config.multicast_interfaces = vec![address];
    let mut core = ParticipantCore::new(config, Time::ZERO);
    let writer = endpoint(EntityId::user_writer(1, false), "Square", Qos::for_writer());
    core.add_writer(Time::ZERO, writer).unwrap();
    core
}

/// Announces a participant `index` with these builtin endpoints and this address.
fn announce(core: &mut ParticipantCore, at_ms: u64, index: u32, name: &str, builtin: u32, to: SocketAddrV4) {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(forged(index), EntityId::PARTICIPANT));
    list.u32(ParameterId::BUILTIN_ENDPOINT_SET, builtin);
    list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, Locator::udp_v4(to));
    list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, Locator::udp_v4(to));
    list.locator(ParameterId::DEFAULT_MULTICAST_LOCATOR, Locator::udp_v4(GROUP));
    list.string(ParameterId::ENTITY_NAME, name);
    list.finish();
    let bytes = data(forged(index), EntityId::SPDP_WRITER, 1 + at_ms as i64, None, &payload);
    core.handle_datagram(Time(at_ms * 1_000_000), to, &bytes);
}

/// Announces a reader of a participant by SEDP that has the address of another host.
fn announce_reader_at_victim(core: &mut ParticipantCore, index: u32, key: u32) {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    list.guid(ParameterId::ENDPOINT_GUID, Guid::new(forged(index), EntityId::user_reader(key, false)));
    list.string(ParameterId::TOPIC_NAME, "Square");
    list.string(ParameterId::TYPE_NAME, "Type");
    list.locator(ParameterId::UNICAST_LOCATOR, Locator::udp_v4(VICTIM));
    list.locator(ParameterId::MULTICAST_LOCATOR, Locator::udp_v4(GROUP));
    list.finish();
    let bytes = data(forged(index), EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, Some(prefix(0)), &payload);
    core.handle_datagram(Time(50_000_000), HOST, &bytes);
}

/// Returns how many readers matched since the last call. All of them are at [`HOST`].
fn matches(core: &mut ParticipantCore) -> usize {
    let events: Vec<_> = core::iter::from_fn(|| core.poll_event()).collect();
    let found: Vec<_> = events.iter().filter_map(matched).collect();
    for reader in &found {
        assert_eq!((&reader.destinations[..], reader.group), (&[HOST][..], None));
    }
    found.len()
}

#[test]
fn a_peer_that_has_not_answered_cannot_move_to_an_unknown_host() {
    let mut core = core();
    announce(&mut core, 0, 1, "arm", WITHOUT_SEDP, HOST);
    assert_eq!(matches(&mut core), 1);
    // Neither as a participant with SEDP, nor with another name.
    announce(&mut core, 1_000, 1, "arm", WEIR, VICTIM);
    announce(&mut core, 2_000, 1, "leg", WITHOUT_SEDP, VICTIM);
    announce(&mut core, 3_000, 1, "leg", WEIR, VICTIM);
    core.handle_timeout(Time(5_000_000_000));
    assert_eq!((matches(&mut core), core.counters().static_peers_refused), (0, 3));
}

#[test]
fn the_endpoints_of_a_peer_that_has_not_answered_have_no_addresses_of_their_own() {
    let mut core = core();
    let builtin = WITHOUT_SEDP | SUBSCRIPTIONS_ANNOUNCER;
    announce(&mut core, 0, 1, "arm", builtin, HOST);
    announce_reader_at_victim(&mut core, 1, 8);
    matches(&mut core);
    // Announced before it has the name.
    announce(&mut core, 0, 2, "leg", WEIR, HOST);
    announce_reader_at_victim(&mut core, 2, 8);
    assert_eq!(matches(&mut core), 0);
    announce(&mut core, 1_000, 2, "arm", builtin, HOST);
    assert!(matches(&mut core) >= 1);
}

#[test]
fn peers_that_have_not_answered_are_few_and_do_not_stay() {
    let mut core = core();
    for index in 0..10 {
        announce(&mut core, 0, index, "arm", WITHOUT_SEDP, HOST);
    }
    assert_eq!((matches(&mut core), core.counters().static_peers_refused), (4, 6));
    // Nor are there more when several take the name at the same time.
    for index in 10..20 {
        announce(&mut core, 0, index, "leg", WEIR, HOST);
        announce(&mut core, 10, index, "foot", WEIR, HOST);
        announce(&mut core, 20, index, "arm", WITHOUT_SEDP, HOST);
    }
    core.handle_timeout(Time(1_000_000_000));
    assert_eq!(matches(&mut core), 0);
    // They are gone before the 100 s that they announce.
    core.handle_timeout(Time(36_000_000_000));
    let events: Vec<_> = core::iter::from_fn(|| core.poll_event()).collect();
    let is_lost = |event: &&DiscoveryEvent| matches!(event, DiscoveryEvent::ReaderUnmatched { .. });
    assert_eq!((events.iter().filter(is_lost).count(), core.remote_participants()), (4, 0));
    announce(&mut core, 40_000, 30, "arm", WITHOUT_SEDP, HOST);
    assert_eq!(matches(&mut core), 1);
}

#[test]
fn changes_that_waited_are_checked_when_they_are_applied() {
    let mut core = core();
    for index in 0..10 {
        announce(&mut core, 0, index, "leg", WEIR, HOST);
        announce(&mut core, 10, index, "foot", WEIR, HOST);
        announce(&mut core, 20, index, "arm", WITHOUT_SEDP, HOST);
    }
    core.handle_timeout(Time(1_000_000_000));
    assert_eq!(matches(&mut core), 4);
}

#[test]
fn a_peer_whose_name_was_forged_before_is_believed_when_it_announces_itself() {
    let mut core = core();
    announce(&mut core, 0, 1, "arm", WEIR, HOST);
    announce(&mut core, 1_000, 1, "arm", WITHOUT_SEDP, HOST);
    core.handle_timeout(Time(2_000_000_000));
    assert_eq!(matches(&mut core), 1);
}

#[test]
fn a_flood_of_forged_peers_adds_the_endpoints_of_those_that_are_introduced() {
    let mut core = core();
    for index in 0..200 {
        announce(&mut core, 0, index, "arm", WEIR, VICTIM);
    }
    let introduced = 200 - core.counters().replies_suppressed as usize;
    assert!(introduced < 64);
    assert_eq!(core.remote_endpoints(), introduced);
    // Those that were not are introduced with a later announcement, and their endpoints are added then.
    let before = core.remote_endpoints();
    for second in 0..20 {
        announce(&mut core, 3_600_000 + second * 1_000, 300, "arm", WEIR, VICTIM);
    }
    assert!(core.remote_endpoints() > before);
}

#[test]
fn another_host_cannot_say_goodbye_for_a_peer_that_cannot_be_asked() {
    let mut core = core();
    announce(&mut core, 0, 1, "arm", WITHOUT_SEDP, HOST);
    assert_eq!(matches(&mut core), 1);
    let guid = Guid::new(forged(1), EntityId::PARTICIPANT);
    let goodbye = |number| disposal(VendorId::WEIR, guid, EntityId::SPDP_WRITER, number, &[]);
    core.handle_datagram(Time(1_000_000_000), VICTIM, &goodbye(2));
    (1_000..5_000_u64).step_by(100).for_each(|ms| core.handle_timeout(Time(ms * 1_000_000)));
    assert_eq!((core.counters().claims_refused, core.remote_participants()), (1, 1));
    // Its own host may.
    core.handle_datagram(Time(5_000_000_000), HOST, &goodbye(3));
    assert_eq!(core.remote_participants(), 0);
}

#[test]
fn a_participant_at_the_address_of_a_peer_that_cannot_be_asked_does_not_replace_it() {
    let mut core = core();
    [1, 2].into_iter().for_each(|index| announce(&mut core, 0, index, "arm", WITHOUT_SEDP, HOST));
    assert_eq!(matches(&mut core), 2);
    let second = 1_000_000_000;
    core.suspect(Time(second), Guid::new(forged(1), EntityId::user_reader(7, false)));
    announce(&mut core, 1_100, 2, "arm", WITHOUT_SEDP, HOST);
    (1_100..5_000_u64).step_by(50).for_each(|ms| core.handle_timeout(Time(ms * 1_000_000)));
    let counters = core.counters();
    assert_eq!((counters.participants_suspected, counters.participants_gone), (1, 0));
    assert_eq!(core.remote_participants(), 2);
}
