//! Histories with and without holes.

use super::*;

fn add(history: &mut History, fill: u8, len: usize) -> SequenceNumber {
    history.reserve(len).fill(fill);
    history.commit(len, 0, len as u64);
    history.last()
}

fn bytes(history: &History, sn: i64) -> Vec<u8> {
    let entry = history.entry(SequenceNumber(sn)).unwrap();
    history.slice(&entry).unwrap().bytes().to_vec()
}

#[test]
fn samples_are_found_by_number_until_they_are_released() {
    let mut history = History::new(SequenceNumber::FIRST, 64, 4);
    for n in 1..=10_u8 {
        assert_eq!(add(&mut history, n, 20), SequenceNumber(i64::from(n)));
    }
    assert_eq!(bytes(&history, 7), [7; 20]);
    history.release_to(SequenceNumber(6));
    assert_eq!((history.first(), history.last(), history.len()), (SequenceNumber(7), SequenceNumber(10), 4));
    assert!(history.entry(SequenceNumber(6)).is_none());
    assert_eq!(bytes(&history, 10), [10; 20]);
    assert_eq!(history.charged_to(SequenceNumber(8)), 160);
}

#[test]
fn a_block_that_is_being_sent_is_not_written_to() {
    let mut history = History::new(SequenceNumber::FIRST, 64, 4);
    add(&mut history, 1, 8);
    let entry = history.entry(SequenceNumber(1)).unwrap();
    let sending = history.slice(&entry).unwrap();
    history.release_to(SequenceNumber(1));
    add(&mut history, 2, 8);
    assert_eq!(sending.bytes(), [1; 8]);
    assert_eq!(bytes(&history, 2), [2; 8]);
}

#[test]
fn two_blocks_do_for_one_who_sends_while_another_writes() {
    let mut history = History::new(SequenceNumber::FIRST, 8192, 4);
    let mut sending = None;
    for n in 1..=100_u8 {
        let sn = add(&mut history, n, 32);
        let entry = history.entry(sn).unwrap();
        // The previous send ends when the next one begins.
        sending = history.slice(&entry);
    }
    assert_eq!(sending.unwrap().bytes(), [100; 32]);
    assert_eq!(history.blocks.len(), 2);
    for n in 1..=100 {
        assert_eq!(bytes(&history, n), [n as u8; 32]);
    }
    history.release_to(SequenceNumber(100));
    assert_eq!((history.vacant.len(), history.live_bytes()), (1, 0));
    add(&mut history, 1, 8192);
    assert_eq!((history.blocks.len(), history.spare.len()), (2, 1));
}

#[test]
fn memory_does_not_grow_when_samples_come_and_go() {
    let mut history = History::new(SequenceNumber::FIRST, 256, 4);
    let mut run = |from: i64, to: i64| {
        for n in from..to {
            add(&mut history, 0, 50);
            history.release_to(SequenceNumber(n - 20));
        }
        history.memory()
    };
    let warm = run(0, 1_000);
    assert_eq!(run(1_000, 10_000), warm);
}

#[test]
fn holes_at_the_front_are_released() {
    let mut history = History::new(SequenceNumber::FIRST, 64, 4);
    for n in 1..=4 {
        add(&mut history, n, 8);
    }
    history.remove(SequenceNumber(2));
    assert_eq!(history.first(), SequenceNumber(1));
    assert!(!history.entry(SequenceNumber(2)).unwrap().is_alive());
    history.remove(SequenceNumber(1));
    assert_eq!(history.first(), SequenceNumber(3));
}

#[test]
fn a_datagram_longer_than_a_block_gets_one_of_its_own() {
    let mut history = History::new(SequenceNumber::FIRST, 64, 4);
    add(&mut history, 1, 8);
    add(&mut history, 2, 200);
    assert_eq!(bytes(&history, 2), [2; 200]);
    history.release_to(SequenceNumber(2));
    add(&mut history, 3, 8);
    assert_eq!(bytes(&history, 3), [3; 8]);
}

fn has_only_its_bytes(history: &History, sn: i64, len: usize) {
    let bytes = bytes(history, sn);
    assert!(bytes.len() == len && bytes.iter().all(|byte| *byte == sn as u8), "{sn}");
}

#[test]
fn the_survivors_of_dead_blocks_move_and_memory_stays_bounded() {
    let mut history = History::new(SequenceNumber::FIRST, 1024, 4);
    let mut kept = VecDeque::new();
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    for sn in 1..=200_000_i64 {
        let len = 1 + below(59);
        add(&mut history, sn as u8, len);
        // One in ten survives for long, so that every block has survivors.
        if sn % 10 == 0 {
            kept.push_back((sn, len));
        } else {
            history.remove(SequenceNumber(sn));
        }
        if kept.len() > 2_000 {
            // Random survivors are removed, so that blocks of survivors become sparse as well.
            let (gone, _) = kept.swap_remove_back(below(kept.len())).unwrap();
            history.remove(SequenceNumber(gone));
        }
    }
    assert_eq!(history.len(), kept.len());
    kept.iter().for_each(|(sn, len)| has_only_its_bytes(&history, *sn, *len));
    let live: usize = kept.iter().map(|(_, len)| len).sum();
    assert_eq!(history.live_bytes(), live);
    assert!(history.bytes <= 3 * live + 24 * 1024, "{} for {live}", history.bytes);
    assert!(history.entries.len() < 3 * moving::DENSE_SPARE && history.old.len() < 2 * kept.len() + 2_000);
    let oldest = kept.iter().map(|(sn, _)| *sn).min().unwrap();
    assert_eq!(history.first(), SequenceNumber(oldest));
    let next = kept.iter().map(|(sn, _)| *sn).filter(|sn| *sn > oldest).min().unwrap();
    assert_eq!(history.first_alive(SequenceNumber(oldest + 1)), SequenceNumber(next));
    history.release_to(SequenceNumber(200_000));
    assert_eq!((history.len(), history.live_bytes(), history.span()), (0, 0, 0));
}

#[test]
fn bytes_in_flight_stay_where_they_are_when_survivors_move() {
    let mut history = History::new(SequenceNumber::FIRST, 512, 4);
    add(&mut history, 1, 20);
    add(&mut history, 2, 480);
    history.remove(SequenceNumber(2));
    let entry = history.entry(SequenceNumber(1)).unwrap();
    let sending = history.slice(&entry).unwrap();
    for sn in 3..1_000 {
        add(&mut history, sn as u8, 100);
        if sn % 5 != 0 {
            history.remove(SequenceNumber(sn));
        }
    }
    has_only_its_bytes(&history, 1, 20);
    assert_ne!(history.slice(&entry).map(|slice| slice.bytes().to_vec()), Some(vec![1; 20]), "it was moved");
    assert_eq!(sending.bytes(), [1; 20]);
}

#[test]
fn the_samples_of_a_batch_part_when_they_move() {
    let mut history = History::new(SequenceNumber::FIRST, 8192, 4);
    let mut survivors = Vec::new();
    for _ in 0..5_000 {
        history.make_room(300);
        let sn = history.next().0;
        let datagram = history.reserve(DATAGRAM_HEAD_LEN + 8);
        datagram[..DATAGRAM_HEAD_LEN].fill(0xff);
        datagram[DATAGRAM_HEAD_LEN..].fill(sn as u8);
        history.commit(DATAGRAM_HEAD_LEN + 8, 0, 0);
        for _ in 0..20 {
            let sn = history.next().0;
            history.extension(8).unwrap().fill(sn as u8);
            history.commit_extension(8, 0);
        }
        let last = history.last().0;
        for sn in last - 20..=last {
            if sn % 50 == 0 {
                survivors.push(sn);
            } else {
                history.remove(SequenceNumber(sn));
            }
        }
    }
    let moved = survivors.iter().filter(|&&sn| {
        let bytes = bytes(&history, sn);
        assert_eq!(bytes[bytes.len() - 8..], [sn as u8; 8]);
        assert_eq!(bytes[..DATAGRAM_HEAD_LEN], [0xff; DATAGRAM_HEAD_LEN]);
        bytes.len() == DATAGRAM_HEAD_LEN + 8
    });
    assert!(moved.count() > survivors.len() / 2);
    assert!(history.bytes <= 3 * survivors.len() * (DATAGRAM_HEAD_LEN + 8) + 24 * 8192, "{}", history.bytes);
}

#[test]
fn a_small_sample_does_not_hold_up_the_memory_of_a_large_one() {
    let mut history = History::new(SequenceNumber::FIRST, 64, 4);
    add(&mut history, 1, 1000);
    add(&mut history, 2, 8);
    history.remove(SequenceNumber(1));
    assert!(history.bytes <= 64, "{}", history.bytes);
}
