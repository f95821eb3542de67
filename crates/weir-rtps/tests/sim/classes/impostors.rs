//! Messages in the name of the honest peer. They disturb for a while, and not for ever.

use core::time::Duration;

use super::Row;
use crate::live::forge::{self, Forged};
use crate::live::node::USER_PORT;
use crate::live::{Live, PEER, TO_IN, TO_KEYED, VICTIM};

fn nothing_more(_: &mut Live) {}

fn send(live: &mut Live, message: &Forged) {
    live.attack(USER_PORT, message);
    live.run_for(Duration::from_micros(100));
}

/// The number of the next sample that the peer writes.
fn next_number(live: &mut Live) -> i64 {
    live.nodes[PEER].writer(TO_IN).last_sequence_number().0 + 1
}

/// Fragments of the samples that the peer will write, of other sizes.
fn fragments(live: &mut Live) {
    let (peer, next) = (live.nodes[PEER].prefix, next_number(live));
    for number in next..next + 1000 {
        for writer in [TO_IN, TO_KEYED] {
            send(live, &Forged::by(peer).frag(writer, number, (1, 8, 16), &[7; 8]));
        }
    }
}

/// A small sample that is lost is requested and repaired, although fragments of it seem to be there.
fn lost_samples_arrive(live: &mut Live) {
    let [victim, peer] = live.nodes.each_ref().map(|node| node.host);
    let number = live.next_written();
    live.network.partition().cut_one_way(peer, victim);
    live.write(PEER, TO_IN, &forge::sample(1, number, 32));
    live.network.partition().restore(peer, victim);
    live.run_for(Duration::from_secs(5));
    assert_eq!(live.taken_from(VICTIM, TO_IN), [number]);
}

pub(super) const ROWS: &[Row] = &[
    Row {
        class: "fragments",
        says: "of samples to come, in the peer's name",
        attack: fragments,
        holds: nothing_more,
    },
    Row {
        class: "fragments",
        says: "of samples to come that are lost, in the peer's name",
        attack: fragments,
        holds: lost_samples_arrive,
    },
];
