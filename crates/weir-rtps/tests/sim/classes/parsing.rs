//! Messages of a matched participant with false lengths, offsets, sets and numbers.

use weir_wire::{EntityId, Guid, ParameterId, ParameterListWriter};

use super::Row;
use crate::live::forge::{self, Forged};
use crate::live::node::{META_PORT, USER_PORT};
use crate::live::{FROM_OUT, INSIDER, KEPT, LOOSE, Live, OUT, TO_IN, TO_KEYED, TO_LOOSE, VICTIM};

/// The body of a DATA submessage: offset to inline QoS, writer, number, the rest.
fn data_body(to_inline_qos: u16, writer: EntityId, number: i64, rest: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0];
    body.extend_from_slice(&to_inline_qos.to_le_bytes());
    body.extend_from_slice(&[0; 4]);
    body.extend_from_slice(&writer.0);
    body.extend_from_slice(&((number >> 32) as u32).to_le_bytes());
    body.extend_from_slice(&(number as u32).to_le_bytes());
    body.extend_from_slice(rest);
    body
}

/// Two entity ids and the words after them.
fn words(reader: EntityId, writer: EntityId, words: &[u32]) -> Vec<u8> {
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    reader.0.into_iter().chain(writer.0).chain(words).collect()
}

/// Sends each body as a submessage of its own message, to both ports; each is malformed.
fn send_all(live: &mut Live, id: u8, flags: u8, bodies: &[Vec<u8>]) {
    live.join_insider();
    let before = live.nodes[VICTIM].receiver.counters().malformed;
    for body in bodies {
        let message = Forged::by(INSIDER).raw(id, flags, body.len() as u16, body);
        live.attack_both(&message.0);
    }
    live.run_for(core::time::Duration::from_millis(1));
    assert_eq!(
        live.nodes[VICTIM].receiver.counters().malformed,
        before + bodies.len() as u64,
        "each is counted"
    );
    assert_eq!(live.nodes[VICTIM].core.counters().malformed_submessages, bodies.len() as u64);
}

fn nothing_more(_: &mut Live) {}

fn huge() -> [[u32; 2]; 5] {
    [[0, 0], [u32::MAX, 0], [1 << 31, 1], [0x7fff_ffff, u32::MAX], [0x7fff_ffff, u32::MAX - 255]]
}

fn every_cut(live: &mut Live) {
    live.join_insider();
    let message = Forged::by(INSIDER)
        .heartbeat(TO_IN, 1, 3, 1)
        .gap(TO_IN, 1, 2, &[5])
        .acknack((FROM_OUT, OUT), 1, &[1], 1)
        .frag(TO_IN, 9, (1, 8, 64), &[7; 8])
        .data(TO_IN, 2, &forge::sample(1, 2, 40))
        .0;
    for len in 0..message.len() {
        live.attack_both(&message[..len]);
    }
}

fn length_to_the_next(live: &mut Live) {
    live.join_insider();
    let body = data_body(16, TO_IN, 1, &forge::sample(1, 1, 32));
    for len in [1, 3, 15, 19, body.len() as u16 - 1, body.len() as u16 + 1, 0x7fff, 0xffff] {
        live.attack_both(&Forged::by(INSIDER).raw(0x15, 4, len, &body).0);
        live.attack_both(&Forged::by(INSIDER).raw(0x80, 0, len, &body).raw(0x15, 4, 0, &body).0);
    }
    // Zero means "to the end" for the last submessage: consecutive lengths of zero do not loop.
    let mut many = Forged::by(INSIDER);
    for _ in 0..16_000 {
        many = many.raw(0x01, 0, 0, &[]);
    }
    live.attack_both(&many.0);
}

fn offset_to_inline_qos(live: &mut Live) {
    let bodies: Vec<_> = [0, 4, 15, 200, 0x7fff, 0xffff]
        .map(|offset| data_body(offset, TO_IN, 1, &forge::sample(1, 1, 32)))
        .to_vec();
    send_all(live, 0x15, 4, &bodies);
}

fn inline_qos_that_lies(live: &mut Live) {
    let lists: [&[u8]; 6] = [
        &[0x70, 0, 16, 0, 1, 2, 3, 4],
        &[0x70, 0, 0xff, 0xff],
        &[0x70, 0, 0xfc, 0xff, 1, 0, 0, 0],
        &[0x71, 0, 4, 0, 0, 0, 0, 1],
        &[0x71, 0, 3, 0, 0, 0, 0, 1],
        &[1],
    ];
    send_all(live, 0x15, 2, &lists.map(|list| data_body(16, TO_KEYED, 1, list)));
}

fn sets_too_large(live: &mut Live) {
    let acknacks = [257, 1 << 31, u32::MAX].map(|bits| words(FROM_OUT, OUT, &[0, 1, bits, 0, 0]));
    send_all(live, 0x06, 0, &acknacks);
}

fn gap_sets_too_large(live: &mut Live) {
    let gaps = [257, u32::MAX].map(|bits| words(LOOSE, TO_LOOSE, &[0, 1, 0, 2, bits, 0, 0]));
    send_all(live, 0x08, 0, &gaps);
}

fn fragment_sets_too_large(live: &mut Live) {
    let nacks = [[1, 257], [1, u32::MAX], [0, 1], [u32::MAX, 2]]
        .map(|[base, bits]| words(FROM_OUT, KEPT, &[0, 1, base, bits, 0, 0]));
    send_all(live, 0x12, 0, &nacks);
}

fn numbers_that_run_over(live: &mut Live) {
    send_all(
        live,
        0x15,
        4,
        &huge().map(|[high, low]| {
            data_body(
                16,
                TO_IN,
                i64::from(high.cast_signed()) << 32 | i64::from(low),
                &forge::sample(1, 1, 32),
            )
        }),
    );
}

fn gaps_that_run_over(live: &mut Live) {
    let gaps = huge().map(|[high, low]| words(LOOSE, TO_IN, &[high, low, high, low, 256]));
    send_all(live, 0x08, 0, &gaps);
}

fn heartbeats_backwards(live: &mut Live) {
    // First over last plus one; first 0; last negative or beyond all numbers.
    let ranges = [[0, 3, 0, 1], [0, 0, 0, 5], [0, 1, u32::MAX, 5], [0, 1, 0x7fff_ffff, u32::MAX]];
    send_all(live, 0x07, 0, &ranges.map(|[a, b, c, d]| words(LOOSE, TO_IN, &[a, b, c, d, 1])));
}

fn strings_that_lie(live: &mut Live) {
    live.join_insider();
    let before = live.nodes[VICTIM].core.remote_endpoints();
    let guid = |number| Guid::new(INSIDER, EntityId::user_writer(number, false));
    let values: [&[u8]; 7] = [
        &[0xff, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0x7f, b'i', b'n', 0, 0],
        &[0, 0, 0, 0],
        &[9, 0, 0, 0, b'i', b'n', 0, 0],
        &[4, 0, 0, 0, b'i', b'n', b'n', b'n'],
        &[3, 0, 0, 0, 0xff, 0xfe, 0, 0],
        &[3],
    ];
    for (number, value) in values.iter().enumerate() {
        for id in [ParameterId::TOPIC_NAME, ParameterId::TYPE_NAME, ParameterId::PARTITION] {
            let entity = guid(100 + number as u32);
            let payload = forge::endpoint(entity, "in", |list| list.raw(id, value));
            live.announce(entity.entity, &payload);
        }
    }
    live.run_for(core::time::Duration::from_millis(1));
    let counters = live.nodes[VICTIM].core.counters();
    assert!(counters.refused_announcements >= 18, "{counters:?}");
    // An empty name has a length of 1 for its terminator, or of 0 with some engines.
    assert!(live.nodes[VICTIM].core.remote_endpoints() <= before + values.len());
}

fn lists_that_lie(live: &mut Live) {
    live.join_insider();
    let entity = EntityId::user_writer(100, false);
    let many = 0xffff_ffff_u32.to_le_bytes();
    for id in [
        ParameterId::PARTITION,
        ParameterId::USER_DATA,
        ParameterId::DATA_REPRESENTATION,
        ParameterId::PROPERTY_LIST,
        ParameterId(0x0055),
        ParameterId(0x0035),
    ] {
        for rest in [&[][..], &[1, 0, 0, 0], &[0xff; 64]] {
            let value = [&many[..], rest].concat();
            let payload = forge::endpoint(Guid::new(INSIDER, entity), "in", |list| list.raw(id, &value));
            live.announce(entity, &payload);
        }
    }
    let answer = live.victim_at(META_PORT);
    let payload = forge::participant_with(INSIDER, answer, |list| {
        list.raw(ParameterId::PROPERTY_LIST, &[0xff; 8]);
        list.raw(ParameterId::ENTITY_NAME, &[0xff; 8]);
    });
    live.attack(META_PORT, &Forged::by(INSIDER).data(EntityId::SPDP_WRITER, 7, &payload));
}

fn policies_without_sense(live: &mut Live) {
    live.join_insider();
    let before = live.nodes[VICTIM].core.remote_endpoints();
    let refused = live.nodes[VICTIM].core.counters().refused_announcements;
    let values: [(ParameterId, &[u8]); 7] = [
        (ParameterId::RELIABILITY, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (ParameterId::DURABILITY, &[0xff; 4]),
        (ParameterId::DEADLINE, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        (ParameterId::LIVELINESS, &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (ParameterId::OWNERSHIP, &[2, 0, 0, 0]),
        (ParameterId::PRESENTATION, &[3, 0, 0, 0, 1, 1, 0, 0]),
        (ParameterId::DESTINATION_ORDER, &[9]),
    ];
    for (id, value) in values {
        let entity = EntityId::user_writer(100, false);
        let payload = forge::endpoint(Guid::new(INSIDER, entity), "in", |list| list.raw(id, value));
        live.announce(entity, &payload);
    }
    live.run_for(core::time::Duration::from_millis(1));
    let victim = &live.nodes[VICTIM];
    assert_eq!(victim.core.counters().refused_announcements, refused + values.len() as u64);
    assert_eq!(victim.core.remote_endpoints(), before);
    // What a peer keeps for itself decides nothing here: the endpoint stays without it.
    for value in [[0, 0, 0, 0, 0, 0, 0, 0x80], [0; 8]] {
        let entity = EntityId::user_writer(100, false);
        let history = |list: &mut ParameterListWriter<'_>| list.raw(ParameterId::HISTORY, &value);
        live.announce(entity, &forge::endpoint(Guid::new(INSIDER, entity), "in", history));
    }
    live.run_for(core::time::Duration::from_millis(1));
    let victim = &live.nodes[VICTIM];
    assert_eq!(victim.core.counters().refused_announcements, refused + values.len() as u64);
    assert_eq!(victim.core.remote_endpoints(), before + 1);
}

fn nested_types_and_patterns(live: &mut Live) {
    live.join_insider();
    // A type nested as deeply as there is room, and worst-case patterns.
    let nested = [0xf1, 0x51, 1, 0, 0, 0, 0, 0].repeat(4_000);
    for (number, id) in
        [ParameterId(0x0072), ParameterId(0x0075), ParameterId(0x8021)].into_iter().enumerate()
    {
        let entity = EntityId::user_writer(100 + number as u32, false);
        let payload = forge::endpoint(Guid::new(INSIDER, entity), "in", |list| list.raw(id, &nested));
        live.announce(entity, &payload);
    }
    for (number, name) in
        ["*a".repeat(100), "[".repeat(200), "\\".repeat(199), "[!-".repeat(60)].iter().enumerate()
    {
        let entity = EntityId::user_writer(200 + number as u32, false);
        let payload = forge::endpoint(Guid::new(INSIDER, entity), "in", |list| {
            list.strings(ParameterId::PARTITION, [name.as_str(); 16].into_iter());
        });
        live.announce(entity, &payload);
    }
    live.run_for(core::time::Duration::from_millis(1));
}

fn keys_without_payload(live: &mut Live) {
    live.join_insider();
    let malformed = live.nodes[VICTIM].readers[&crate::live::KEYED].counters().samples_malformed;
    // Neither a key nor a hash; an empty key; a disposal of nothing.
    let message = Forged::by(INSIDER)
        .any_data(TO_KEYED, 1, &[0x71, 0, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0], &[], false)
        .any_data(TO_KEYED, 2, &[], &[0, 1, 0, 0], true)
        .any_data(TO_KEYED, 3, &[], &[], false)
        .any_data(TO_KEYED, 4, &[0x70, 0, 4, 0, 1, 2, 3, 4, 1, 0, 0, 0], &[], false);
    live.attack(USER_PORT, &message);
    live.run_for(core::time::Duration::from_millis(1));
    let counters = live.nodes[VICTIM].readers[&crate::live::KEYED].counters();
    assert_eq!(counters.samples_malformed, malformed + 4, "{counters:?}");
}

pub(super) const ROWS: &[Row] = &[
    Row {
        class: "length underflow",
        says: "a message cut at every byte",
        attack: every_cut,
        holds: nothing_more,
    },
    Row {
        class: "length underflow",
        says: "octetsToNextHeader lies",
        attack: length_to_the_next,
        holds: nothing_more,
    },
    Row {
        class: "length underflow",
        says: "octetsToInlineQos lies",
        attack: offset_to_inline_qos,
        holds: nothing_more,
    },
    Row {
        class: "length underflow",
        says: "parameters reach over the end",
        attack: inline_qos_that_lies,
        holds: nothing_more,
    },
    Row { class: "sets", says: "ACKNACK of more than 256 bits", attack: sets_too_large, holds: nothing_more },
    Row { class: "sets", says: "GAP of more than 256 bits", attack: gap_sets_too_large, holds: nothing_more },
    Row {
        class: "sets",
        says: "NACK_FRAG of more than 256 bits",
        attack: fragment_sets_too_large,
        holds: nothing_more,
    },
    Row {
        class: "sequence numbers",
        says: "DATA with numbers that run over",
        attack: numbers_that_run_over,
        holds: nothing_more,
    },
    Row {
        class: "sequence numbers",
        says: "GAP with numbers that run over",
        attack: gaps_that_run_over,
        holds: nothing_more,
    },
    Row {
        class: "sequence numbers",
        says: "HEARTBEAT with first behind last",
        attack: heartbeats_backwards,
        holds: nothing_more,
    },
    Row {
        class: "string and sequence lengths",
        says: "names that do not end",
        attack: strings_that_lie,
        holds: nothing_more,
    },
    Row {
        class: "string and sequence lengths",
        says: "lists of four billion",
        attack: lists_that_lie,
        holds: nothing_more,
    },
    Row {
        class: "string and sequence lengths",
        says: "policies without sense",
        attack: policies_without_sense,
        holds: nothing_more,
    },
    Row {
        class: "recursion",
        says: "types without end, patterns that try everything",
        attack: nested_types_and_patterns,
        holds: nothing_more,
    },
    Row {
        class: "reachable panic",
        says: "keys that are not there",
        attack: keys_without_payload,
        holds: nothing_more,
    },
];
