//! Samples, fragments, HEARTBEATs and GAPs of a matched writer with false numbers and sizes.

use core::time::Duration;

use weir_rtps::config;
use weir_wire::{EntityId, Guid, GuidPrefix};

use super::Row;
use crate::live::forge::{self, Forged};
use crate::live::node::USER_PORT;
use crate::live::{IN, INSIDER, KEYED, LOOSE, Live, PEER, READER_BYTES, TO_IN, TO_KEYED, TO_LOOSE, VICTIM};

/// The highest number that a sample can have.
const LAST: i64 = i64::MAX - 1024;

fn nothing_more(_: &mut Live) {}

fn send(live: &mut Live, message: &Forged) {
    live.attack(USER_PORT, message);
    live.run_for(Duration::from_micros(100));
}

/// Checks that few responses are sent.
fn stays_quiet(live: &mut Live) {
    let before = live.sent.1;
    live.run_for(Duration::from_secs(1));
    assert!(live.sent.1 - before < 100_000, "{} bytes in a second", live.sent.1 - before);
}

fn huge_heartbeats(live: &mut Live) {
    live.join_insider();
    for (count, (first, last)) in [(1, LAST), (LAST, LAST), (LAST, LAST - 1), (1, 0)].into_iter().enumerate()
    {
        for writer in [TO_IN, TO_KEYED, TO_LOOSE] {
            send(live, &Forged::by(INSIDER).heartbeat(writer, first, last, count as u32 + 1));
        }
    }
    // Skipped samples are lost, and may be counted more than once without overflow.
    send(live, &Forged::by(INSIDER).data(TO_IN, LAST, &forge::sample(1, 1, 32)));
}

fn huge_gaps(live: &mut Live) {
    live.join_insider();
    for writer in [TO_IN, TO_KEYED, TO_LOOSE] {
        let message = Forged::by(INSIDER)
            .gap(writer, 5_000, LAST, &[LAST + 255])
            .gap(writer, 1 << 40, 1 << 62, &[])
            .gap(writer, 1, 1 << 62, &[(1 << 62) + 255])
            .gap(writer, LAST, LAST, &[LAST]);
        send(live, &message);
    }
}

fn huge_jumps(live: &mut Live) {
    live.join_insider();
    for round in 0..4 {
        for writer in [TO_IN, TO_KEYED, TO_LOOSE] {
            let number = [8_000, 1 << 32, LAST - 1, LAST][round];
            send(live, &Forged::by(INSIDER).data(writer, number, &forge::sample(1, 1, 32)));
        }
    }
}

/// Skips more samples than a counter holds, with many writers.
fn losses_that_run_over(live: &mut Live) {
    live.join_insider();
    for number in 0..8 {
        let entity = EntityId::user_writer(300 + number, false);
        let guid = Guid::new(INSIDER, entity);
        live.announce(entity, &forge::endpoint(guid, "in", |_| {}));
        live.announce(EntityId::user_writer(400 + number, false), &{
            let guid = Guid::new(INSIDER, EntityId::user_writer(400 + number, false));
            forge::endpoint(guid, "loose", |_| {})
        });
        live.run_for(Duration::from_millis(1));
        let payload = forge::sample(1, 1, 32);
        send(live, &Forged::by(INSIDER).data(entity, 1, &payload).heartbeat(entity, LAST, LAST, 1));
        let loose = EntityId::user_writer(400 + number, false);
        send(live, &Forged::by(INSIDER).data(loose, 1, &payload).data(loose, LAST, &payload));
    }
}

fn samples_far_ahead(live: &mut Live) {
    live.join_insider();
    // Each is kept until the previous ones arrive, which they never do.
    for number in 0..20_000_i64 {
        let payload = forge::sample(1, 1, 1_000);
        live.attack(USER_PORT, &Forged::by(INSIDER).data(TO_IN, 2 + number * 7 % 20_011, &payload));
        if number % 500 == 0 {
            live.run_for(Duration::from_micros(100));
            live.check_bounds();
        }
    }
}

/// Small samples that are held back, each after one that is delivered at once and fills a chunk.
fn small_samples_that_pin_memory(live: &mut Live) {
    live.join_insider();
    for number in 0..2_000_i64 {
        let message = Forged::by(INSIDER).data(TO_IN, 4_000 + number, &forge::sample(1, 1, 16));
        live.attack(USER_PORT, &message);
        let message = Forged::by(INSIDER).data(TO_IN, 1 + number, &forge::sample(1, 1, 64_000));
        live.attack(USER_PORT, &message);
        live.run_for(Duration::from_micros(100));
        live.check_bounds();
    }
}

fn fragments_without_size(live: &mut Live) {
    live.join_insider();
    let before = live.nodes[VICTIM].receiver.counters().malformed;
    let lies = [(1, 0, 1000), (0, 8, 64), (9, 8, 64), (1, 8, 0), (u32::MAX, u16::MAX, u32::MAX), (1, 16, 64)];
    for (index, sizes) in lies.into_iter().enumerate() {
        send(live, &Forged::by(INSIDER).frag(TO_IN, 1 + index as i64, sizes, &[7; 8]));
    }
    assert_eq!(live.nodes[VICTIM].receiver.counters().malformed, before + lies.len() as u64);
}

fn fragments_of_four_gigabytes(live: &mut Live) {
    live.join_insider();
    for (index, size) in [u32::MAX, 1 << 31, config::SAMPLE_MAX_BYTES as u32 + 1].into_iter().enumerate() {
        for writer in [TO_IN, TO_KEYED, TO_LOOSE] {
            let message = Forged::by(INSIDER)
                .frag(writer, 1 + index as i64, (1, 8, size), &[7; 8])
                .frag(writer, 1 + index as i64, (size / 8, 8, size), &[7; 8])
                .heartbeat_frag(writer, 1 + index as i64, u32::MAX, 1 + index as u32);
            send(live, &message);
        }
    }
}

/// One fragment of a sample of the maximum size does not block other writers' samples.
fn one_sample_that_takes_all_room(live: &mut Live) {
    live.join_insider();
    let size = config::SAMPLE_MAX_BYTES as u32;
    for writer in [TO_IN, TO_KEYED, TO_LOOSE] {
        send(live, &Forged::by(INSIDER).frag(writer, 1, (1, 1, size), &[7]));
        // It announces that all of its fragments exist.
        send(live, &Forged::by(INSIDER).heartbeat(writer, 1, 1, 1).heartbeat_frag(writer, 1, size, 1));
    }
}

fn fragments_that_change_their_mind(live: &mut Live) {
    live.join_insider();
    for writer in [TO_IN, TO_KEYED, TO_LOOSE] {
        let message = Forged::by(INSIDER)
            .frag(writer, 1, (1, 8, 64), &[7; 8])
            .frag(writer, 1, (2, 8, 6400), &[7; 8])
            .frag(writer, 1, (2, 16, 64), &[7; 16])
            .frag(writer, 1, (3, 8, 32), &[7; 8])
            .frag(writer, 1, (60_000, 1, 64_000), &[7])
            .data(writer, 1, &forge::sample(1, 1, 32))
            .frag(writer, 1, (2, 8, 64), &[7; 8]);
        send(live, &message);
    }
}

fn many_samples_begun(live: &mut Live) {
    live.join_insider();
    for number in 0..5_000_i64 {
        for writer in [TO_IN, TO_KEYED, TO_LOOSE] {
            let message = Forged::by(INSIDER).frag(writer, 1 + number, (1, 1024, 1 << 20), &[7; 1024]);
            live.attack(USER_PORT, &message);
        }
        if number % 100 == 0 {
            live.run_for(Duration::from_micros(100));
            live.check_bounds();
        }
    }
}

/// Many writers of one participant, each with unfinished samples.
fn many_writers_begin_samples(live: &mut Live) {
    live.join_insider();
    for number in 0..200 {
        let entity = EntityId::user_writer(300 + number, false);
        let payload = forge::endpoint(Guid::new(INSIDER, entity), "in", |_| {});
        live.announce(entity, &payload);
    }
    live.run_for(Duration::from_millis(5));
    for number in 0..200 {
        let entity = EntityId::user_writer(300 + number, false);
        for sample in 1..=8 {
            let size = 4 << 20;
            live.attack(USER_PORT, &Forged::by(INSIDER).frag(entity, sample, (1, 8, size), &[7; 8]));
        }
        live.attack(
            USER_PORT,
            &Forged::by(INSIDER).data(entity, 8_000, &[0; 16]).heartbeat(entity, 1, LAST, 1),
        );
        live.run_for(Duration::from_micros(100));
        live.check_bounds();
    }
}

fn many_instances(live: &mut Live) {
    live.join_insider();
    for number in 0..20_000_i64 {
        let message = Forged::by(INSIDER).data(TO_KEYED, 1 + number, &forge::sample(number as u32, 1, 32));
        live.attack(USER_PORT, &message);
        if number % 500 == 0 {
            live.run_for(Duration::from_micros(100));
            live.check_bounds();
        }
    }
}

/// Counts of HEARTBEATs that decrease, stay, and jump as far as possible.
fn counts_backwards(live: &mut Live) {
    live.join_insider();
    for count in [5, 5, 4, 0, u32::MAX, 1 << 31, (1 << 31) - 1, 5] {
        send(live, &Forged::by(INSIDER).heartbeat(TO_IN, 1, 3, count));
    }
}

/// In the peer's name: a HEARTBEAT count so far ahead that the peer's own look old.
fn leaps_in_the_peers_name(live: &mut Live) {
    let peer = live.nodes[PEER].prefix;
    for count in [1 << 30, (1 << 31) - 1] {
        // The announced samples have arrived already.
        send(live, &Forged::by(peer).heartbeat(TO_IN, 1, 1, count).heartbeat(TO_KEYED, 1, 1, count));
    }
}

/// In the peer's name: a HEARTBEAT whose first sample is far ahead, as if the peer had dropped all before it.
fn far_heartbeats_in_the_peers_name(live: &mut Live) {
    for first in [1_000_000_000_000, LAST] {
        let peer = live.nodes[PEER].prefix;
        for writer in [TO_IN, TO_KEYED] {
            send(live, &Forged::by(peer).heartbeat(writer, first, first, 1 << 30));
        }
        takes_it_back(live);
    }
}

/// The same, each with a sample behind it, which waits for the first one.
fn far_heartbeats_with_a_sample_behind(live: &mut Live) {
    for first in [1_000_000_000_000, LAST - 1] {
        let peer = live.nodes[PEER].prefix;
        for writer in [TO_IN, TO_KEYED] {
            let message = Forged::by(peer).heartbeat(writer, first, first, 1 << 30);
            send(live, &message.data(writer, first + 1, &forge::sample(1, 1, 32)));
        }
        takes_it_back(live);
    }
}

/// In the peer's name: a GAP up to a sample far ahead.
fn far_gaps_in_the_peers_name(live: &mut Live) {
    let peer = live.nodes[PEER].prefix;
    for writer in [TO_IN, TO_KEYED] {
        send(live, &Forged::by(peer).gap(writer, 1, 1_000_000_000_000, &[]));
    }
    takes_it_back(live);
}

/// The peer's own HEARTBEATs make the readers return to where they were.
fn takes_it_back(live: &mut Live) {
    let taken_back =
        |live: &Live| [IN, KEYED].map(|it| live.nodes[VICTIM].readers[&it].counters().leaps_taken_back);
    let before = taken_back(live);
    live.exchange_one();
    assert_eq!(taken_back(live), before.map(|count| count + 1));
}

/// Samples of unmatched or nonexistent writers reach no reader.
fn unmatched_writers(live: &mut Live) {
    let ignored = live.nodes[VICTIM].receiver.counters().ignored;
    for prefix in [GuidPrefix([0xee; 12]), GuidPrefix::UNKNOWN, GuidPrefix([1; 12])] {
        let message = Forged::by(prefix)
            .data(TO_IN, 1, &forge::sample(1, 1, 32))
            .heartbeat(TO_IN, LAST, LAST, 1)
            .gap(TO_KEYED, 1, LAST, &[])
            .frag(TO_IN, 1, (1, 8, 64), &[7; 8]);
        send(live, &message);
    }
    assert_eq!(live.nodes[VICTIM].receiver.counters().ignored, ignored + 12);
    assert_eq!(live.nodes[VICTIM].readers[&IN].available(), 0);
}

fn small_enough(live: &mut Live) {
    for reader in [IN, KEYED, LOOSE] {
        let memory = live.nodes[VICTIM].readers[&reader].memory();
        assert!(memory <= 2 * READER_BYTES + (6 << 20), "{reader} takes {memory} bytes");
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        class: "giant ranges",
        says: "HEARTBEATs over all numbers",
        attack: huge_heartbeats,
        holds: stays_quiet,
    },
    Row { class: "giant ranges", says: "GAPs over all numbers", attack: huge_gaps, holds: stays_quiet },
    Row { class: "giant ranges", says: "samples that leap ahead", attack: huge_jumps, holds: stays_quiet },
    Row {
        class: "giant ranges",
        says: "more samples lost than can be counted",
        attack: losses_that_run_over,
        holds: nothing_more,
    },
    Row {
        class: "unbounded tables",
        says: "samples that wait for earlier ones",
        attack: samples_far_ahead,
        holds: small_enough,
    },
    Row {
        class: "unbounded tables",
        says: "small samples that pin much memory",
        attack: small_samples_that_pin_memory,
        holds: small_enough,
    },
    Row {
        class: "fragments",
        says: "of no size, or outside of their sample",
        attack: fragments_without_size,
        holds: nothing_more,
    },
    Row {
        class: "fragments",
        says: "of a sample of four gigabytes",
        attack: fragments_of_four_gigabytes,
        holds: small_enough,
    },
    Row {
        class: "fragments",
        says: "of a sample that takes all the room",
        attack: one_sample_that_takes_all_room,
        holds: stays_quiet,
    },
    Row {
        class: "fragments",
        says: "whose sizes change",
        attack: fragments_that_change_their_mind,
        holds: stays_quiet,
    },
    Row {
        class: "fragments",
        says: "of many samples, none of which is finished",
        attack: many_samples_begun,
        holds: nothing_more,
    },
    Row {
        class: "fragments",
        says: "of many writers",
        attack: many_writers_begin_samples,
        holds: nothing_more,
    },
    Row { class: "unbounded tables", says: "instances", attack: many_instances, holds: nothing_more },
    Row {
        class: "counts",
        says: "HEARTBEATs that count backwards",
        attack: counts_backwards,
        holds: stays_quiet,
    },
    Row {
        class: "counts",
        says: "HEARTBEATs in the peer's name that leap",
        attack: leaps_in_the_peers_name,
        holds: nothing_more,
    },
    Row {
        class: "giant ranges",
        says: "HEARTBEATs in the peer's name with a far first sample",
        attack: far_heartbeats_in_the_peers_name,
        holds: nothing_more,
    },
    Row {
        class: "giant ranges",
        says: "HEARTBEATs in the peer's name with a far first sample, and a sample behind it",
        attack: far_heartbeats_with_a_sample_behind,
        holds: nothing_more,
    },
    Row {
        class: "giant ranges",
        says: "GAPs in the peer's name to a far sample",
        attack: far_gaps_in_the_peers_name,
        holds: nothing_more,
    },
    Row {
        class: "spoofing",
        says: "samples of those who are not matched",
        attack: unmatched_writers,
        holds: nothing_more,
    },
];
