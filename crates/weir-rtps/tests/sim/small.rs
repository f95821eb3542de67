//! A participant with a limits table: what exceeds a limit is refused and counted, and other peers do not notice.

use core::net::SocketAddrV4;
use core::time::Duration;

use weir_rtps::limits::{EndpointLimits, Limits};
use weir_rtps::participant::{LocalEndpoint, LocalEndpointError};
use weir_rtps::qos::Qos;
use weir_wire::{EntityId, Guid, GuidPrefix};

use crate::live::forge::{self, ATTACKER, Forged};
use crate::live::node::{META_PORT, USER_PORT};
use crate::live::{FROM_OUT, IN, INSIDER, KEYED, Live, OUT, PEER, TO_IN, TO_KEYED, VICTIM};

/// Room for the peer, an insider and one more participant, and for what the test's applications exchange.
const LIMITS: Limits = Limits {
    participants: 3,
    endpoints_per_participant: 8,
    text_bytes: 64,
    addresses: 2,
    writers: 2,
    readers: 3,
    endpoint: EndpointLimits {
        matches: 2,
        samples: 40,
        instances: 8,
        sample_bytes: 151_000,
        early_samples: 16,
        reassemblies: 2,
    },
};

const ANSWERS: SocketAddrV4 = SocketAddrV4::new(ATTACKER, META_PORT);

fn stranger(index: u8) -> GuidPrefix {
    GuidPrefix([0xe0, index, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
}

/// Announces a participant that receives what it is sent.
fn announce_participant(live: &mut Live, prefix: GuidPrefix) {
    let to = live.nodes[VICTIM].prefix;
    let payload = forge::participant(prefix, ANSWERS);
    let ids = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
    let first = live.nodes[VICTIM].core.config().first_announcement.0;
    let message = Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &payload);
    live.attack(META_PORT, &message.acknack(ids, first, &[], 1));
    live.run_for(Duration::from_millis(1));
}

/// Announces the other ends of a reader and of a writer of the victim.
fn announce_endpoints(live: &mut Live, prefix: GuidPrefix) {
    let to = live.nodes[VICTIM].prefix;
    for (entity, topic, announcer) in [
        (TO_IN, "in", EntityId::SEDP_PUBLICATIONS_WRITER),
        (FROM_OUT, "out", EntityId::SEDP_SUBSCRIPTIONS_WRITER),
    ] {
        let payload = forge::endpoint(Guid::new(prefix, entity), topic, |_| {});
        live.attack(META_PORT, &Forged::by(prefix).to(to).data(announcer, 1, &payload));
    }
    live.run_for(Duration::from_millis(1));
}

/// Whether that reader and that writer match these ends.
fn matches_with(live: &mut Live, prefix: GuidPrefix) -> (bool, bool) {
    let victim = &mut live.nodes[VICTIM];
    let is_read = victim.reader(IN).matched().any(|guid| guid.prefix == prefix);
    let is_written_to = victim.writer(OUT).matched_readers().any(|guid| guid.prefix == prefix);
    (is_read, is_written_to)
}

/// Fills every table of the victim, and tries to exceed it.
fn fill_everything(live: &mut Live) {
    // The matches of all endpoints.
    live.join_insider();
    // Participants.
    (0..20).for_each(|index| announce_participant(live, stranger(index)));
    // Endpoints of a participant, and matches of an endpoint.
    for number in 0..20 {
        let guid = Guid::new(INSIDER, EntityId::user_writer(100 + number, false));
        live.announce(guid.entity, &forge::endpoint(guid, "in", |_| {}));
        live.run_for(Duration::from_millis(1));
    }
    // Instances, and samples that are too long.
    for number in 1..=60 {
        let payload = forge::sample(1_000 + number, 0, 32);
        live.attack(USER_PORT, &Forged::by(INSIDER).data(TO_KEYED, number.into(), &payload));
        live.run_for(Duration::from_millis(1));
    }
    // Samples behind a missing one, fragments of samples that are never completed, and one that is too long.
    let mut message = Forged::by(INSIDER);
    for number in (2..9).chain(17..60) {
        message = message.data(TO_IN, number, &forge::sample(1, 0, 32));
    }
    live.attack(USER_PORT, &message);
    for number in 9..15 {
        let message = Forged::by(INSIDER).frag(TO_IN, number, (2, 1_000, 100_000), &[7; 1_000]);
        live.attack(USER_PORT, &message);
    }
    live.attack(USER_PORT, &Forged::by(INSIDER).frag(TO_IN, 15, (1, 1_000, 200_000), &[7; 1_000]));
    live.run_for(Duration::from_millis(10));
}

/// Memory of the victim's endpoints, as allocated.
fn allocated(live: &Live) -> (usize, u64) {
    let victim = &live.nodes[VICTIM];
    let writers = victim.writers.values().map(|it| (it.allocated(), it.counters().blocks_beyond_limits));
    let readers = victim.readers.values().map(|it| (it.allocated(), it.counters().chunks_beyond_limits));
    writers.chain(readers).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

#[test]
fn peers_exchange_samples_within_a_limits_table() {
    let mut live = Live::with_limits(Some(LIMITS));
    let before = allocated(&live);
    for _ in 0..5 {
        live.exchange();
    }
    assert_eq!(allocated(&live), before);
    assert_eq!(before.1, 0);
}

#[test]
fn with_every_table_full_heartbeats_are_answered_leases_expire_and_places_are_free_again() {
    let mut live = Live::with_limits(Some(LIMITS));
    fill_everything(&mut live);
    let core = &live.nodes[VICTIM].core;
    let counters = *core.counters();
    assert_eq!(core.remote_participants(), LIMITS.participants);
    assert!(counters.participants_over_limit >= 10, "{counters:?}");
    assert!(counters.endpoints_over_limit >= 15, "{counters:?}");
    assert!(counters.matches_over_limit >= 2, "{counters:?}");
    let victim = &mut live.nodes[VICTIM];
    assert_eq!((victim.reader(IN).matched().count(), victim.writer(OUT).matched()), (2, 2));
    let keyed = victim.reader(KEYED).counters();
    assert!(keyed.samples_refused > 0, "{keyed:?}");
    let full = victim.reader(IN).counters();
    assert!(full.fragments_refused > 0 && full.samples_oversized > 0, "{full:?}");

    // The peer's samples arrive, and are acknowledged.
    live.forget_taken();
    live.exchange_one();
    let last = live.nodes[PEER].writer(TO_IN).last_sequence_number();
    assert!(live.nodes[PEER].writer(TO_IN).is_acknowledged(last));
    // A HEARTBEAT of the insider is answered as well.
    let before = live.reached.get(&ANSWERS).copied();
    live.attack(USER_PORT, &Forged::by(INSIDER).heartbeat(TO_IN, 1, 100, 1_000));
    live.run_for(Duration::from_secs(1));
    assert!(live.reached.get(&ANSWERS).copied() > before, "{:?}", live.reached);

    // The silent participants are forgotten, and a new one finds room in every table.
    live.run_for(Duration::from_secs(200));
    let core = &live.nodes[VICTIM].core;
    assert_eq!(core.remote_participants(), 1);
    assert!(core.counters().leases_expired >= 2, "{:?}", core.counters());
    let newcomer = stranger(99);
    announce_participant(&mut live, newcomer);
    announce_endpoints(&mut live, newcomer);
    assert_eq!(matches_with(&mut live, newcomer), (true, true));
    assert_eq!(allocated(&live).1, 0);
}

#[test]
fn endpoints_that_found_no_room_are_matched_when_another_match_ends() {
    let mut live = Live::with_limits(Some(LIMITS));
    live.join_insider();
    let newcomer = stranger(99);
    announce_participant(&mut live, newcomer);
    announce_endpoints(&mut live, newcomer);
    assert_eq!(matches_with(&mut live, newcomer), (false, false));
    // They are not announced again.
    live.leave();
    assert_eq!(matches_with(&mut live, newcomer), (true, true));
}

#[test]
fn of_several_that_found_no_room_each_is_matched_in_its_turn() {
    let mut live = Live::with_limits(Some(Limits { participants: 4, ..LIMITS }));
    live.join_insider();
    let newcomers = [stranger(98), stranger(99)];
    for newcomer in newcomers {
        announce_participant(&mut live, newcomer);
        announce_endpoints(&mut live, newcomer);
    }
    let over_limit = live.nodes[VICTIM].core.counters().matches_over_limit;
    live.leave();
    assert_eq!(newcomers.map(|it| matches_with(&mut live, it)), [(true, true), (false, false)]);
    let inline_qos = forge::disposal(Guid::new(newcomers[0], EntityId::PARTICIPANT));
    let message = Forged::by(newcomers[0]).any_data(EntityId::SPDP_WRITER, 2, &inline_qos, &[], false);
    live.attack(META_PORT, &message);
    live.run_for(Duration::from_millis(1));
    assert_eq!(newcomers.map(|it| matches_with(&mut live, it)), [(false, false), (true, true)]);
    assert_eq!(live.nodes[VICTIM].core.counters().matches_over_limit, over_limit, "each counts once");
}

#[test]
fn an_endpoint_that_found_no_place_has_one_when_another_of_its_participant_is_gone() {
    let mut live = Live::with_limits(Some(LIMITS));
    let more = |number: u32| EntityId::user_writer(100 + number, false);
    for number in 0..4 {
        let now = live.now;
        live.nodes[PEER].add_writer(now, more(number), "more", Qos::for_writer());
        live.run_for(Duration::from_secs(1));
    }
    let core = &live.nodes[VICTIM].core;
    assert_eq!((core.remote_endpoints(), core.counters().endpoints_over_limit), (8, 1));
    let now = live.now;
    live.nodes[PEER].core.remove_writer(now, more(0));
    live.run_for(Duration::from_secs(1));
    assert_eq!(live.nodes[VICTIM].core.remote_endpoints(), 8);
}

#[test]
fn peers_that_come_and_go_leave_the_memory_of_endpoints_as_it_was() {
    let mut live = Live::with_limits(Some(LIMITS));
    let before = allocated(&live);
    for _ in 0..20 {
        fill_everything(&mut live);
        live.leave();
        live.run_for(Duration::from_secs(130));
        assert_eq!(allocated(&live), before);
        live.forget_taken();
        live.exchange_one();
    }
}

#[test]
fn an_endpoint_whose_names_are_too_long_is_refused_alone() {
    let mut live = Live::with_limits(Some(LIMITS));
    live.join_insider();
    let before = live.nodes[VICTIM].core.remote_endpoints();
    for (number, topic) in [(7, "x".repeat(61)), (8, "x".repeat(59))] {
        let guid = Guid::new(INSIDER, EntityId::user_reader(number, false));
        live.announce(guid.entity, &forge::endpoint(guid, &topic, |_| {}));
    }
    live.run_for(Duration::from_millis(1));
    let core = &live.nodes[VICTIM].core;
    assert_eq!((core.remote_endpoints() - before, core.counters().endpoints_over_limit), (1, 1));
}

#[test]
fn more_endpoints_of_our_own_than_the_table_allows_are_an_error() {
    let mut live = Live::with_limits(Some(LIMITS));
    let now = live.now;
    let endpoint = |entity| LocalEndpoint {
        entity,
        topic: "more".to_owned(),
        type_name: "Type".to_owned(),
        qos: Qos::for_reader(),
        unicast: Vec::new(),
        multicast: None,
    };
    let core = &mut live.nodes[VICTIM].core;
    let refused = core.add_reader(now, endpoint(EntityId::user_reader(50, false)));
    assert_eq!(refused, Err(LocalEndpointError::TooMany { what: "readers", max: 3 }));
    core.remove_reader(now, IN);
    assert_eq!(core.add_reader(now, endpoint(EntityId::user_reader(50, false))), Ok(()));
}

/// Creates a reader and removes it again, so often. Returns the first refusal.
fn come_and_go(live: &mut Live, times: u32) -> Result<(), LocalEndpointError> {
    let endpoint = |number| LocalEndpoint {
        entity: EntityId::user_reader(100 + number, false),
        topic: "more".to_owned(),
        type_name: "Type".to_owned(),
        qos: Qos::for_reader(),
        unicast: Vec::new(),
        multicast: None,
    };
    let now = live.now;
    live.nodes[VICTIM].core.remove_reader(now, IN);
    for number in 0..times {
        let now = live.now;
        let core = &mut live.nodes[VICTIM].core;
        core.add_reader(now, endpoint(number))?;
        core.remove_reader(now, EntityId::user_reader(100 + number, false));
        live.run_for(Duration::from_millis(200));
    }
    Ok(())
}

#[test]
fn a_participant_that_never_answers_does_not_prevent_new_endpoints() {
    let mut live = Live::with_limits(Some(LIMITS));
    let to = live.nodes[VICTIM].prefix;
    let silent = stranger(1);
    let payload = forge::participant(silent, ANSWERS);
    live.attack(META_PORT, &Forged::by(silent).to(to).data(EntityId::SPDP_WRITER, 1, &payload));
    live.run_for(Duration::from_millis(1));
    assert_eq!(live.nodes[VICTIM].core.remote_participants(), 2);
    assert_eq!(come_and_go(&mut live, 50), Ok(()));
    // The peer has followed.
    let peer = &live.nodes[PEER].core;
    assert_eq!(peer.remote_endpoints(), LIMITS.writers + LIMITS.readers - 1);
}
