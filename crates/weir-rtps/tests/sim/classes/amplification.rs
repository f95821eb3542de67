//! Acknowledgements with excessive or false requests, and third-party addresses.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_rtps::config;
use weir_wire::{EntityId, Guid, GuidPrefix, Locator, ParameterId};

use super::Row;
use crate::live::forge::{self, ATTACKER, BYSTANDER, Forged};
use crate::live::node::{GROUP, META_PORT, USER_PORT};
use crate::live::{FROM_KEPT, FROM_OUT, INSIDER, KEPT, Live, OUT, PEER, TO_IN, VICTIM};

fn nothing_more(_: &mut Live) {}

fn forged(index: u32) -> GuidPrefix {
    let mut prefix = [0xee; 12];
    prefix[8..].copy_from_slice(&index.to_be_bytes());
    GuidPrefix(prefix)
}

fn acks_of_the_future(live: &mut Live) {
    live.join_insider();
    let before = live.nodes[VICTIM].writer(OUT).counters().acknacks_ignored;
    for (count, base) in [22, 1_000_000, i64::MAX - 1024].into_iter().enumerate() {
        let ids = (FROM_OUT, OUT);
        let message = Forged::by(INSIDER)
            .acknack(ids, base, &[base, base + 255], count as u32 + 1)
            .nack_frag(ids, base, &[1, 2, 256], count as u32 + 1);
        live.attack(USER_PORT, &message);
    }
    live.run_for(Duration::from_millis(1));
    let after = live.nodes[VICTIM].writer(OUT).counters().acknacks_ignored;
    assert_eq!(after, before + 6);
    assert!(!live.nodes[VICTIM].writer(OUT).is_acknowledged(weir_wire::SequenceNumber(22)));
}

fn counts_backwards(live: &mut Live) {
    live.join_insider();
    for count in [5, 5, 4, u32::MAX, 1 << 31, (1 << 31) - 1, 5] {
        live.attack(USER_PORT, &Forged::by(INSIDER).acknack((FROM_OUT, OUT), 1, &[1, 2], count));
    }
}

/// In the peer's name: a count so far ahead that the peer's own look old, without a request.
fn leaps_in_the_peers_name(live: &mut Live) {
    let peer = live.nodes[PEER].prefix;
    for count in [1 << 30, (1 << 31) - 1] {
        let message = Forged::by(peer).acknack((FROM_OUT, OUT), 2, &[], count).acknack(
            (FROM_KEPT, KEPT),
            2,
            &[],
            count,
        );
        live.attack(USER_PORT, &message);
        live.run_for(Duration::from_millis(1));
    }
}

/// Repeatedly requests everything that is kept: samples, and fragments of a large one.
fn acknack_storm(live: &mut Live) {
    live.join_insider_with_answers_to(BYSTANDER);
    live.run_for(Duration::from_secs(1));
    let before = live.sent.1;
    let last = live.nodes[VICTIM].writer(KEPT).last_sequence_number().0;
    for count in 0..2_000_u32 {
        let all: Vec<i64> = (1..=last).collect();
        let message = Forged::by(INSIDER).acknack((FROM_KEPT, KEPT), 1, &all, count + 1).nack_frag(
            (FROM_KEPT, KEPT),
            last,
            &(1..=256).collect::<Vec<_>>(),
            count + 1,
        );
        live.attack(USER_PORT, &message);
        live.run_for(Duration::from_micros(100));
    }
    // 2000 of these in a fifth of a second request some 300 MB.
    assert!(live.sent.1 - before < 20_000_000, "{} bytes were sent", live.sent.1 - before);
}

/// Samples of the history, and their length.
const HISTORY: (u32, usize) = (2_000, 1_024);

/// A reader of the insider that wants history.
fn announce_late_joiner(live: &mut Live, entity: EntityId) {
    let payload = forge::endpoint(Guid::new(INSIDER, entity), "kept", |list| {
        list.raw(ParameterId::DURABILITY, &[1, 0, 0, 0]);
    });
    live.announce(entity, &payload);
    live.run_for(Duration::from_millis(2));
    assert_eq!(live.nodes[VICTIM].writer(KEPT).matched(), 3);
}

/// ACKNACKs whose base goes up by one each time, with requests for the 256 samples behind it. Returns their length.
fn creep(live: &mut Live, reader: EntityId) -> u64 {
    let mut asked = 0;
    let last = live.nodes[VICTIM].writer(KEPT).last_sequence_number().0;
    for base in 1..=last {
        let missing: Vec<i64> = (base..=last.min(base + 255)).collect();
        let message = Forged::by(INSIDER).acknack((reader, KEPT), base, &missing, base as u32);
        asked += message.0.len() as u64;
        live.attack(USER_PORT, &message);
        live.run_for(Duration::from_micros(30));
    }
    asked
}

/// Requests that acknowledge a little each time, in the name of a reader that leaves and returns: what reaches the
/// bystander is the history once, twice that, and 64 kB, before half a second is over.
fn creeping_acknowledgements(live: &mut Live) {
    live.write_history(HISTORY.0, HISTORY.1);
    live.join_insider_with_answers_to(BYSTANDER);
    let (began_at, before) = (live.now, live.reached[&BYSTANDER].1);
    let mut asked = 0;
    for round in 0..5 {
        // The same reader again, or another one at the same address.
        let reader = EntityId::user_reader(600 + round / 2, true);
        announce_late_joiner(live, reader);
        asked += creep(live, reader);
        live.withdraw(reader);
        live.run_for(Duration::from_millis(1));
        assert_eq!(live.nodes[VICTIM].writer(KEPT).matched(), 2);
    }
    assert!(live.now.since(began_at) < config::REPAIR_INTERVAL, "{:?}", live.now.since(began_at));
    let reached = live.reached[&BYSTANDER].1 - before;
    // Samples with their headers, and those of the exchange before.
    let history = u64::from(HISTORY.0) * (HISTORY.1 as u64 + 56) + 155_000;
    let repairs = config::REPAIR_SHARE * history + config::REPAIR_FREE_BYTES;
    // Each answer holds a HEARTBEAT, which is no longer than the request.
    assert!(reached < history + repairs + asked, "{reached} bytes for a history of {history}");
    assert!(reached > history, "the first requests are honoured");
    let counters = live.nodes[VICTIM].writer(KEPT).counters();
    assert!(counters.repairs_held_back + counters.repairs_paced > 5_000, "{counters:?}");
    // Slowly it goes on, for a reader behind heavy loss.
    let before = live.reached[&BYSTANDER].1;
    announce_late_joiner(live, EntityId::user_reader(600, true));
    for count in 0..100 {
        let message =
            Forged::by(INSIDER).acknack((EntityId::user_reader(600, true), KEPT), 30, &[30, 31, 32], count);
        live.attack(USER_PORT, &message);
        live.run_for(Duration::from_millis(100));
    }
    let reached = live.reached[&BYSTANDER].1 - before;
    let intervals = 10_000 / config::REPAIR_INTERVAL.as_millis() as u64 + 1;
    assert!(reached < (intervals + 1) * config::REPAIR_FREE_BYTES, "{reached} bytes in 10 s");
    assert!(reached > 200_000, "{reached} bytes in 10 s");
}

/// ACKNACKs that only request a response get at most one each.
fn empty_acknack_storm(live: &mut Live) {
    live.join_insider_with_answers_to(BYSTANDER);
    let before = live.sent.1;
    let mut asked = 0;
    for count in 0..2_000_u32 {
        for base in [0, 1] {
            let message = Forged::by(INSIDER).acknack((FROM_OUT, OUT), base, &[], count);
            asked += message.0.len() as u64;
            live.attack(USER_PORT, &message);
        }
        live.run_for(Duration::from_micros(100));
    }
    assert!(live.sent.1 - before < 2 * asked, "{} bytes for {asked}", live.sent.1 - before);
}

/// HEARTBEATs of a writer that never sends what it announces.
fn heartbeat_storm(live: &mut Live) {
    live.join_insider_with_answers_to(BYSTANDER);
    let before = live.sent.1;
    let mut asked = 0;
    for count in 0..2_000_u32 {
        let message = Forged::by(INSIDER).heartbeat(TO_IN, 1, 1 << 40, count + 1);
        asked += message.0.len() as u64;
        live.attack(USER_PORT, &message);
        live.run_for(Duration::from_micros(100));
    }
    assert!(live.sent.1 - before < 4 * asked, "{} bytes for {asked}", live.sent.1 - before);
}

/// Fragments of announcements that are never completed, from a participant with another host's
/// address. Short fragments of short samples cause the most traffic: four NACK_FRAGs for each
/// sample.
fn fragment_storm(live: &mut Live) {
    live.join_insider_at(BYSTANDER);
    let to = live.nodes[VICTIM].prefix;
    let before = live.sent.1;
    let mut asked = 0;
    let writer = EntityId::SEDP_PUBLICATIONS_WRITER;
    for number in 1..=2_000 {
        let message = Forged::by(INSIDER).to(to).frag(writer, number, (2, 8, 8 * 1024), &[7; 8]);
        let message = message.heartbeat(writer, 1, number, number as u32);
        asked += message.0.len() as u64;
        live.attack(META_PORT, &message);
        live.run_for(Duration::from_micros(100));
    }
    let sent = live.sent.1 - before;
    assert!(sent < 6 * asked, "{sent} bytes for {asked}");
    let before = live.sent.1;
    live.run_for(Duration::from_secs(10));
    let sent = live.sent.1 - before;
    assert!(sent < 1_000_000, "{sent} bytes in the 10 s after");
}

/// A forged announcement with an infinite lease causes little traffic, and not forever.
fn one_forged_announcement(live: &mut Live) {
    let prefix = forged(1);
    let payload = forge::participant_with(prefix, BYSTANDER, |list| {
        list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, weir_wire::Duration::INFINITE);
    });
    live.attack(META_PORT, &Forged::by(prefix).data(EntityId::SPDP_WRITER, 1, &payload));
    live.run_for(Duration::from_secs(60));
    let (datagrams, bytes) = live.reached[&BYSTANDER];
    assert!(datagrams < 200 && bytes < 16_000, "{datagrams} datagrams of {bytes} bytes in a minute");
    live.run_for(Duration::from_secs(600));
    assert_eq!(live.reached[&BYSTANDER], (datagrams, bytes), "it is left alone then");
    assert_eq!(live.nodes[VICTIM].core.remote_participants(), 1);
}

/// A participant with another host's address, which does not expire, and 512 writers with one HEARTBEAT each.
fn many_forged_writers(live: &mut Live) {
    let payload = forge::participant_with(INSIDER, BYSTANDER, |list| {
        list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, weir_wire::Duration::INFINITE);
    });
    let to = live.nodes[VICTIM].prefix;
    live.attack(META_PORT, &Forged::by(INSIDER).to(to).data(EntityId::SPDP_WRITER, 1, &payload));
    for key in 0..512 {
        let writer = EntityId::user_writer(1000 + key, false);
        let payload = forge::endpoint(Guid::new(INSIDER, writer), "in", |_| {});
        live.announce(writer, &payload);
        live.attack(USER_PORT, &Forged::by(INSIDER).to(to).heartbeat(writer, 1, 10, 1));
    }
    live.run_for(Duration::from_secs(3600));
    let bytes = live.reached.get(&BYSTANDER).map_or(0, |(_, bytes)| *bytes);
    assert!(bytes < 10_000, "{bytes} bytes reached the bystander");
}

/// An attacker that receives nothing from the victim, and so does not know its GUID prefix, speaks with the source
/// address of the bystander: as a participant there whose readers match, and which acknowledges everything.
fn blind_forger(live: &mut Live) {
    let payload = forge::participant_with(INSIDER, BYSTANDER, |list| {
        list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, weir_wire::Duration::INFINITE);
    });
    let mut messages = vec![Forged::by(INSIDER).data(EntityId::SPDP_WRITER, 1, &payload)];
    for (number, (reader, topic)) in [(FROM_OUT, "out"), (FROM_KEPT, "kept")].into_iter().enumerate() {
        let payload = forge::endpoint(Guid::new(INSIDER, reader), topic, |_| {});
        let writer = EntityId::SEDP_SUBSCRIPTIONS_WRITER;
        messages.push(Forged::by(INSIDER).data(writer, number as i64 + 1, &payload));
    }
    for count in 1..=40 {
        for ids in SEDP {
            messages.push(Forged::by(INSIDER).acknack(ids, 1 + i64::from(count) / 8, &[], count));
        }
    }
    for source in [BYSTANDER, SocketAddrV4::new(ATTACKER, META_PORT)] {
        for message in &messages {
            live.attack_from(source, META_PORT, &message.0);
            live.run_for(Duration::from_millis(1));
        }
    }
    live.exchange();
    live.run_for(Duration::from_secs(3600));
    let bytes = live.reached.get(&BYSTANDER).map_or(0, |(_, bytes)| *bytes);
    assert!(bytes < 10_000, "{bytes} bytes reached the bystander");
}

/// The same by one that knows the GUID prefix from an announcement to the multicast group, and guesses what a
/// participant there would acknowledge. It keeps that up for an hour, while the victim writes.
fn forger_that_guesses(live: &mut Live) {
    let to = live.nodes[VICTIM].prefix;
    let payload = forge::participant_with(INSIDER, BYSTANDER, |list| {
        list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, weir_wire::Duration::INFINITE);
    });
    let mut count = 0_u32;
    for round in 0..360 {
        let mut message = Forged::by(INSIDER).to(to).data(EntityId::SPDP_WRITER, round + 1, &payload);
        for (number, (reader, topic)) in [(FROM_OUT, "out"), (FROM_KEPT, "kept")].into_iter().enumerate() {
            let payload = forge::endpoint(Guid::new(INSIDER, reader), topic, |_| {});
            message = message.data(EntityId::SEDP_SUBSCRIPTIONS_WRITER, number as i64 + 1, &payload);
        }
        // All numbers up to the right one, and more.
        for _ in 0..1_200 {
            count += 1;
            message = message.acknack(SEDP[1], i64::from(count), &[], count);
        }
        live.attack_from(BYSTANDER, META_PORT, &message.0);
        live.write(VICTIM, KEPT, &forge::sample(1, 0, 1_000));
        live.run_for(Duration::from_secs(10));
    }
    assert!(i64::from(count) > live.nodes[VICTIM].core.config().first_announcement.0);
    let bytes = live.reached.get(&BYSTANDER).map_or(0, |(_, bytes)| *bytes);
    assert!(bytes < 10_000, "{bytes} bytes reached the bystander");
    live.forget_taken();
}

/// Ever new participants at the bystander's address, addressed to the victim, for an hour.
fn ever_new_participants(live: &mut Live) {
    let to = live.nodes[VICTIM].prefix;
    for index in 0..7_200 {
        let prefix = forged(index);
        let payload = forge::participant(prefix, BYSTANDER);
        let message = Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &payload).heartbeat(
            EntityId::SEDP_PUBLICATIONS_WRITER,
            1,
            1 << 40,
            1,
        );
        live.attack_from(BYSTANDER, META_PORT, &message.0);
        live.run_for(Duration::from_millis(500));
    }
    let bytes = live.reached.get(&BYSTANDER).map_or(0, |(_, bytes)| *bytes);
    assert!(bytes < 10_000, "{bytes} bytes reached the bystander");
}

/// Ever new participants at the peer's host, where participants do answer: three times the bytes received.
fn ever_new_participants_at_the_peer(live: &mut Live) {
    let to = live.nodes[VICTIM].prefix;
    let there = SocketAddrV4::new(live.nodes[PEER].host, BYSTANDER.port());
    live.network.bind_with_buffer(there, 1 << 30);
    let (mut asked, before) = (0, live.sent.1);
    for index in 0..2_000 {
        let prefix = forged(index);
        let payload = forge::participant(prefix, there);
        let message = Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &payload);
        asked += message.0.len() as u64;
        live.attack_from(there, META_PORT, &message.0);
        live.run_for(Duration::from_millis(500));
    }
    // With announcements to the peer itself.
    let sent = live.sent.1 - before;
    assert!(sent < 3 * asked + 200_000, "{sent} bytes were sent for {asked}");
}

/// The readers and writers of SEDP.
const SEDP: [(EntityId, EntityId); 2] = [
    (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER),
    (EntityId::SEDP_SUBSCRIPTIONS_READER, EntityId::SEDP_SUBSCRIPTIONS_WRITER),
];

/// Many forged announcements with the same address for responses.
fn many_forged_announcements(live: &mut Live) {
    let mut asked = 0;
    for index in 0..10_000 {
        let payload = forge::participant(forged(index), BYSTANDER);
        let message = Forged::by(forged(index)).data(EntityId::SPDP_WRITER, 1, &payload);
        asked += message.0.len() as u64;
        live.attack(META_PORT, &message);
        if index % 100 == 0 {
            live.run_for(Duration::from_millis(10));
        }
    }
    live.run_for(Duration::from_secs(1));
    let (_, bytes) = live.reached[&BYSTANDER];
    assert!(bytes < asked, "{bytes} bytes in answer to {asked}");
    live.run_for(Duration::from_secs(60));
}

/// Addresses that mean many hosts, none, or ourselves.
fn useless_addresses(live: &mut Live) {
    let before = live.nodes[VICTIM].core.counters().unreachable;
    for (index, (ip, port)) in [
        ([255, 255, 255, 255], 7410),
        ([239, 255, 0, 1], 7400),
        ([224, 0, 0, 1], 7400),
        ([0, 0, 0, 0], 7410),
        ([0, 1, 2, 3], 7410),
        ([127, 0, 0, 1], 7410),
        ([10, 0, 0, 99], 0),
        ([10, 0, 0, 1], 7410),
    ]
    .into_iter()
    .enumerate()
    {
        let prefix = forged(index as u32);
        let address = SocketAddrV4::new(ip.into(), port);
        let message = Forged::by(prefix).data(EntityId::SPDP_WRITER, 1, &forge::participant(prefix, address));
        live.attack(META_PORT, &message);
    }
    live.run_for(Duration::from_millis(1));
    assert_eq!(live.nodes[VICTIM].core.counters().unreachable, before + 8);
    assert_eq!(live.nodes[VICTIM].core.remote_participants(), 1);
}

/// An endpoint with more addresses than plausible, most of them not its own.
fn many_addresses(live: &mut Live) {
    live.join_insider();
    let skipped = live.nodes[VICTIM].core.counters().locators_skipped;
    let entity = EntityId::user_reader(300, false);
    let payload = forge::endpoint(Guid::new(INSIDER, entity), "out", |list| {
        list.locator(ParameterId::UNICAST_LOCATOR, Locator::udp_v4(BYSTANDER));
        list.locator(ParameterId::UNICAST_LOCATOR, Locator::udp_v4(GROUP));
        list.locator(ParameterId::UNICAST_LOCATOR, Locator::udp_v4(SocketAddrV4::new(ATTACKER, USER_PORT)));
        for host in 0..255 {
            let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, host), 7411);
            list.locator(ParameterId::UNICAST_LOCATOR, Locator::udp_v4(address));
            list.locator(ParameterId::MULTICAST_LOCATOR, Locator::udp_v4(GROUP));
        }
    });
    live.announce(entity, &payload);
    live.run_for(Duration::from_millis(1));
    assert!(live.nodes[VICTIM].core.counters().locators_skipped > skipped + 200);
    assert_eq!(live.nodes[VICTIM].writer(OUT).matched(), 3);
    live.exchange();
    assert_eq!(live.reached.get(&BYSTANDER), None, "where the attacker is, is known");
}

/// INFO_REPLY requests responses elsewhere.
fn replies_elsewhere(live: &mut Live) {
    live.join_insider();
    let [a, b] = u32::from(BYSTANDER.port()).to_le_bytes().first_chunk::<2>().copied().unwrap_or_default();
    let mut body = vec![1, 0, 0, 0, 1, 0, 0, 0, a, b, 0, 0];
    body.extend_from_slice(&[0; 12]);
    body.extend_from_slice(&BYSTANDER.ip().octets());
    let message = Forged::by(INSIDER)
        .raw(0x0f, 0, body.len() as u16, &body)
        .acknack((FROM_KEPT, KEPT), 1, &[1, 2], 1)
        .acknack((EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER), 1, &[1, 2], 1);
    live.attack_both(&message.0);
    live.run_for(Duration::from_secs(1));
    assert_eq!(live.reached.get(&BYSTANDER), None);
}

pub(super) const ROWS: &[Row] = &[
    Row {
        class: "acknowledgements",
        says: "of samples that were never written",
        attack: acks_of_the_future,
        holds: nothing_more,
    },
    Row {
        class: "counts",
        says: "ACKNACKs that count backwards",
        attack: counts_backwards,
        holds: nothing_more,
    },
    Row {
        class: "counts",
        says: "ACKNACKs in the peer's name that leap",
        attack: leaps_in_the_peers_name,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "all samples, again and again",
        attack: acknack_storm,
        holds: Live::leave,
    },
    Row {
        class: "amplification",
        says: "requests of late joiners whose base creeps",
        attack: creeping_acknowledgements,
        holds: Live::leave,
    },
    Row {
        class: "amplification",
        says: "ACKNACKs that only want an answer",
        attack: empty_acknack_storm,
        holds: Live::leave,
    },
    Row {
        class: "amplification",
        says: "HEARTBEATs of what never comes",
        attack: heartbeat_storm,
        holds: Live::leave,
    },
    Row {
        class: "amplification",
        says: "fragments of announcements that have no end",
        attack: fragment_storm,
        holds: Live::leave,
    },
    Row {
        class: "amplification",
        says: "a forged announcement with an endless lease",
        attack: one_forged_announcement,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "hundreds of forged writers",
        attack: many_forged_writers,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "a forger that receives nothing, with the bystander's source address",
        attack: blind_forger,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "a forger that knows the GUID prefix and guesses acknowledgements",
        attack: forger_that_guesses,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "ever new participants at the bystander's address",
        attack: ever_new_participants,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "ever new participants at the peer's host",
        attack: ever_new_participants_at_the_peer,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "a flood of forged announcements",
        attack: many_forged_announcements,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "addresses that mean many, none or ourselves",
        attack: useless_addresses,
        holds: nothing_more,
    },
    Row {
        class: "amplification",
        says: "an endpoint with hundreds of addresses",
        attack: many_addresses,
        holds: Live::leave,
    },
    Row { class: "amplification", says: "INFO_REPLY", attack: replies_elsewhere, holds: nothing_more },
];
