//! Participants and endpoints that are too many, that belong to others, or that join and leave.

use core::net::SocketAddrV4;
use core::time::Duration;

use weir_rtps::config;
use weir_wire::{EntityId, Guid, GuidPrefix, ParameterId};

use super::Row;
use crate::live::forge::{self, ATTACKER, Forged};
use crate::live::node::{META_PORT, USER_PORT};
use crate::live::{FROM_OUT, IN, INSIDER, Live, OUT, PEER, TO_IN, VICTIM};

const ANSWERS: SocketAddrV4 = SocketAddrV4::new(ATTACKER, META_PORT);

fn nothing_more(_: &mut Live) {}

fn forged(index: u32) -> GuidPrefix {
    let mut prefix = [0xee; 12];
    prefix[8..].copy_from_slice(&index.to_be_bytes());
    GuidPrefix(prefix)
}

/// Answers a HEARTBEAT of the victim in the name of a participant.
fn answering(live: &Live, message: Forged) -> Forged {
    let ids = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
    message.acknack(ids, live.nodes[VICTIM].core.config().first_announcement.0, &[], 1)
}

/// A datagram about the peer in the peer's name.
fn about_the_peer(live: &Live, write: impl FnOnce(Forged) -> Forged) -> Forged {
    write(Forged::by(live.nodes[PEER].prefix))
}

/// Participants that respond, so that they count as real, and that never expire.
fn participants_for_ever(live: &mut Live) {
    let to = live.nodes[VICTIM].prefix;
    for index in 0..2_000 {
        let prefix = forged(index);
        let payload = forge::participant_with(prefix, ANSWERS, |list| {
            list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, weir_wire::Duration::INFINITE);
        });
        let message = Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &payload);
        live.attack(META_PORT, &answering(live, message));
        live.run_for(Duration::from_millis(1));
    }
    assert!(live.nodes[VICTIM].core.counters().participants_over_limit >= 1_400);
    live.check_bounds();
    // A later one is accepted when those have been silent for a while.
    live.run_for(Duration::from_secs(61));
    let payload = forge::participant(forged(9_999), ANSWERS);
    let message = Forged::by(forged(9_999)).to(to).data(EntityId::SPDP_WRITER, 1, &payload);
    live.attack(META_PORT, &answering(live, message));
    let newcomer = Guid::new(forged(9_999), EntityId::user_writer(1, false));
    let payload = forge::endpoint(newcomer, "in", |_| {});
    let message = Forged::by(newcomer.prefix).to(to).data(EntityId::SEDP_PUBLICATIONS_WRITER, 1, &payload);
    live.attack(META_PORT, &message);
    live.run_for(Duration::from_millis(1));
    assert!(live.nodes[VICTIM].readers[&IN].matched().any(|guid| guid == newcomer));
}

/// Known participants whose builtin writers announce more than they ever send.
fn participants_that_announce_everything(live: &mut Live) {
    // More is sent to a host where a participant answers.
    live.join_insider();
    let to = live.nodes[VICTIM].prefix;
    for index in 0..500 {
        let prefix = forged(index);
        let payload = forge::participant(prefix, ANSWERS);
        let mut message = Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &payload);
        for writer in [
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            EntityId::PARTICIPANT_MESSAGE_WRITER,
        ] {
            message = message.heartbeat(writer, 1, 1 << 40, 1).data(writer, 8_000, &payload);
        }
        live.attack(META_PORT, &message);
        live.run_for(Duration::from_micros(200));
    }
    live.check_bounds();
}

/// Announcements of many participants of which one fragment arrives, and fragments of announcements
/// over the maximum length.
fn announcements_that_are_never_completed(live: &mut Live) {
    // More is sent to a host where a participant answers.
    live.join_insider();
    let to = live.nodes[VICTIM].prefix;
    let before = live.nodes[VICTIM].core.memory();
    for index in 0..100 {
        let prefix = forged(index);
        let payload = forge::participant(prefix, ANSWERS);
        live.attack(META_PORT, &Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &payload));
        for writer in [
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            EntityId::PARTICIPANT_MESSAGE_WRITER,
        ] {
            for (number, size) in (1..).zip([3_000, 60_000, config::ANNOUNCEMENT_MAX_BYTES as u32, u32::MAX])
            {
                let message = Forged::by(prefix).to(to).frag(writer, number, (2, 1_000, size), &[7; 1_000]);
                live.attack(META_PORT, &message.heartbeat_frag(writer, number, 3, number as u32));
            }
        }
        live.run_for(Duration::from_micros(200));
    }
    let (core, most) = (&live.nodes[VICTIM].core, 3 * config::ANNOUNCEMENT_REASSEMBLY_MAX_BYTES);
    assert!(core.memory() - before <= most + (1 << 20), "{} bytes after {before}", core.memory());
    assert!(core.counters().fragments_refused >= 1, "{:?}", core.counters());
    assert!(core.counters().refused_announcements >= 100, "{:?}", core.counters());
}

fn endpoints_without_end(live: &mut Live) {
    live.join_insider();
    let user_data = [7; 60_000];
    for number in 0..6_000 {
        let entity = EntityId::user_reader(1_000 + number, false);
        let payload = forge::endpoint(Guid::new(INSIDER, entity), "none of our own", |list| {
            list.byte_sequence(ParameterId::USER_DATA, if number % 100 == 0 { &user_data } else { &[] });
        });
        live.announce(entity, &payload);
        live.run_for(Duration::from_micros(60));
    }
    let victim = &live.nodes[VICTIM].core;
    let limits = victim.config().limits;
    assert!(
        victim.remote_endpoints() <= limits.endpoints_per_participant + 5,
        "{}",
        victim.remote_endpoints()
    );
    assert!(victim.counters().endpoints_over_limit >= 1_900, "{:?}", victim.counters());
}

/// A participant that matches all endpoints many times over leaves room for others.
fn matches_without_end(live: &mut Live) {
    live.join_insider();
    for number in 0..2_000 {
        for entity in
            [EntityId::user_writer(1_000 + number, false), EntityId::user_reader(1_000 + number, false)]
        {
            let topic = if entity.is_writer() { "in" } else { "out" };
            live.announce(entity, &forge::endpoint(Guid::new(INSIDER, entity), topic, |_| {}));
        }
        live.run_for(Duration::from_micros(60));
    }
    let victim = &mut live.nodes[VICTIM];
    assert!(victim.core.counters().matches_over_limit >= 2_000, "{:?}", victim.core.counters());
    assert!(victim.reader(IN).matched().count() <= config::PROXIES_MAX / 2 + 1);
    assert!(victim.writer(OUT).matched() <= config::PROXIES_MAX / 2 + 1);
    // A reader that never responds blocks a KEEP_ALL writer, as intended.
    live.leave();
    assert_eq!(live.nodes[VICTIM].reader(IN).matched().count(), 1);
}

/// Announcements of the peer's endpoints, or of the victim's own, by another participant.
fn endpoints_of_others(live: &mut Live) {
    live.join_insider();
    let known = live.nodes[VICTIM].core.remote_endpoints();
    let foreign = live.nodes[VICTIM].core.counters().foreign_announcements;
    let (peer, victim) = (live.nodes[PEER].prefix, live.nodes[VICTIM].prefix);
    for guid in [
        Guid::new(peer, TO_IN),
        Guid::new(peer, EntityId::user_writer(77, false)),
        Guid::new(victim, EntityId::user_writer(77, false)),
        Guid::new(INSIDER, EntityId::SEDP_PUBLICATIONS_WRITER),
        Guid::new(INSIDER, EntityId::user_reader(77, false)),
        Guid::new(INSIDER, EntityId::PARTICIPANT),
    ] {
        let payload = forge::endpoint(guid, "in", |_| {});
        live.announce(EntityId::user_writer(77, false), &payload);
    }
    live.run_for(Duration::from_millis(1));
    let core = &live.nodes[VICTIM].core;
    assert_eq!((core.remote_endpoints(), core.counters().foreign_announcements), (known, foreign + 6));
}

/// Disposals of the peer's endpoints, and of the peer, by another participant.
fn disposals_of_others(live: &mut Live) {
    live.join_insider();
    let peer = live.nodes[PEER].prefix;
    for (number, entity) in [TO_IN, FROM_OUT, EntityId::PARTICIPANT].into_iter().enumerate() {
        let inline_qos = forge::disposal(Guid::new(peer, entity));
        for writer in
            [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER, EntityId::SPDP_WRITER]
        {
            let number = 10 + number as i64;
            live.attack(META_PORT, &Forged::by(INSIDER).any_data(writer, number, &inline_qos, &[], false));
        }
    }
    live.run_for(Duration::from_millis(1));
    assert_eq!(live.nodes[VICTIM].core.remote_participants(), 2);
    assert_eq!(live.nodes[VICTIM].reader(IN).matched().count(), 2);
}

/// The peer's goodbye, from another host.
fn the_peers_goodbye(live: &mut Live) {
    let guid = Guid::new(live.nodes[PEER].prefix, EntityId::PARTICIPANT);
    let inline_qos = forge::disposal(guid);
    let payload = forge::parameters(|list| list.guid(ParameterId::PARTICIPANT_GUID, guid));
    for payload in [&payload[..], &[]] {
        let is_key = !payload.is_empty();
        let message = about_the_peer(live, |message| {
            message.any_data(EntityId::SPDP_WRITER, 1_000, &inline_qos, payload, is_key)
        });
        live.attack(META_PORT, &message);
        let relayed = Forged::by(INSIDER).relayed(guid.prefix);
        let relayed = relayed.any_data(EntityId::SPDP_WRITER, 1_001, &inline_qos, payload, is_key);
        live.attack(META_PORT, &relayed);
    }
    // The peer is asked, and answers.
    live.run_for(Duration::from_millis(1500));
    let victim = &live.nodes[VICTIM];
    assert_eq!(victim.core.remote_participants(), 1);
    assert_eq!(victim.readers[&IN].matched().count(), 1);
    assert_eq!(victim.core.counters().claims_refused, 1);
}

/// The victim's own announcement comes back.
fn our_own_words(live: &mut Live) {
    let own = live.nodes[VICTIM].prefix;
    let before = live.nodes[VICTIM].core.counters().own_messages;
    let payload = forge::participant(own, ANSWERS);
    let message = Forged::by(own).data(EntityId::SPDP_WRITER, 1, &payload).heartbeat(OUT, 1, 1 << 40, 1);
    live.attack_both(&message.0);
    let relayed = Forged::by(INSIDER).relayed(own).data(EntityId::SPDP_WRITER, 1, &payload);
    live.attack_both(&relayed.0);
    live.run_for(Duration::from_millis(1));
    assert_eq!(live.nodes[VICTIM].core.counters().own_messages, before + 1);
    assert_eq!(live.nodes[VICTIM].core.remote_participants(), 1);
}

/// Leases of zero, negative, and infinite; of a participant that joins and leaves.
fn leases_without_sense(live: &mut Live) {
    let refused = live.nodes[VICTIM].core.counters().refused_announcements;
    let mut number = 0;
    for (seconds, fraction) in [(0, 0), (-1, 0), (i32::MIN, u32::MAX), (0, 1), (i32::MAX, u32::MAX)] {
        for _ in 0..20 {
            number += 1;
            let payload = forge::participant_with(INSIDER, ANSWERS, |list| {
                let lease = weir_wire::Duration { seconds, fraction };
                list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, lease);
            });
            live.attack(META_PORT, &Forged::by(INSIDER).data(EntityId::SPDP_WRITER, number, &payload));
            live.run_for(Duration::from_millis(5));
        }
    }
    let counters = live.nodes[VICTIM].core.counters();
    assert_eq!(counters.refused_announcements, refused + 40, "{counters:?}");
    assert!(counters.leases_expired <= 10, "{counters:?}");
}

/// Joins and leaves a thousand times.
fn comings_and_goings(live: &mut Live) {
    let before = live.nodes[VICTIM].core.memory();
    for _ in 0..1_000 {
        live.join_insider_at(ANSWERS);
        live.leave();
    }
    assert_eq!(live.nodes[VICTIM].core.remote_participants(), 1);
    let after = live.nodes[VICTIM].core.memory();
    assert!(after <= before + (1 << 20), "{after} bytes after {before}");
}

/// The same nonsense ten thousand times.
fn the_same_again(live: &mut Live) {
    live.join_insider();
    let (malformed, memory) =
        (live.nodes[VICTIM].receiver.counters().malformed, live.nodes[VICTIM].core.memory());
    for _ in 0..10_000 {
        live.attack_both(b"RTPS\x02\x05\x01\xf0");
        live.attack(USER_PORT, &Forged::by(INSIDER).raw(0x07, 0, 28, &[0; 28]));
        live.attack(META_PORT, &Forged::by(forged(1)).heartbeat(EntityId::SEDP_PUBLICATIONS_WRITER, 1, 1, 1));
    }
    live.run_for(Duration::from_millis(1));
    let victim = &live.nodes[VICTIM];
    assert_eq!(victim.receiver.counters().malformed, malformed + 20_000);
    assert_eq!(victim.core.counters().malformed_messages, 10_000);
    assert_eq!(victim.core.counters().unknown_participant, 10_000);
    assert_eq!(victim.core.memory(), memory);
}

pub(super) const ROWS: &[Row] = &[
    Row {
        class: "unbounded tables",
        says: "participants that stay for ever",
        attack: participants_for_ever,
        holds: nothing_more,
    },
    Row {
        class: "unbounded tables",
        says: "participants that announce everything",
        attack: participants_that_announce_everything,
        holds: nothing_more,
    },
    Row {
        class: "unbounded tables",
        says: "announcements that are never completed",
        attack: announcements_that_are_never_completed,
        holds: nothing_more,
    },
    Row {
        class: "unbounded tables",
        says: "endpoints and user data",
        attack: endpoints_without_end,
        holds: Live::leave,
    },
    Row { class: "unbounded tables", says: "matches", attack: matches_without_end, holds: nothing_more },
    Row {
        class: "spoofing",
        says: "announcements of others' endpoints",
        attack: endpoints_of_others,
        holds: nothing_more,
    },
    Row { class: "spoofing", says: "disposals of others", attack: disposals_of_others, holds: nothing_more },
    Row {
        class: "spoofing",
        says: "the peer's goodbye from elsewhere",
        attack: the_peers_goodbye,
        holds: nothing_more,
    },
    Row { class: "spoofing", says: "what we say ourselves", attack: our_own_words, holds: nothing_more },
    Row {
        class: "leases",
        says: "that are nothing, less, or endless",
        attack: leases_without_sense,
        holds: nothing_more,
    },
    Row {
        class: "leases",
        says: "a participant that comes and goes",
        attack: comings_and_goings,
        holds: nothing_more,
    },
    Row {
        class: "timers and logs",
        says: "the same nonsense ten thousand times",
        attack: the_same_again,
        holds: nothing_more,
    },
];
