//! HEARTBEATs and GAPs in a writer's name that make the reader skip samples which are there.

use super::*;

const FAR: i64 = 1_000_000_000_000;

fn at_ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn heartbeat_at(reader: &mut ReaderCore, now: Time, count: u32, first: i64, last: i64) {
    reader.handle_heartbeat(now, WRITER, &heartbeat_of(EntityId::UNKNOWN, count, first, last));
}

fn gap(reader: &mut ReaderCore, start: i64, end: i64) {
    let list = SequenceNumberSet::new(SequenceNumber(end));
    let gap = Gap { reader: EntityId::UNKNOWN, writer: WRITER.entity, start: SequenceNumber(start), list };
    reader.handle_gap(Time(1_000), WRITER, &gap);
}

/// A reader that has taken samples 1 to 5, and holds back 8.
fn started() -> ReaderCore {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 5);
    [1, 2, 3, 4, 5, 8].into_iter().for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [1, 2, 3, 4, 5]);
    reader
}

/// After a leap, HEARTBEATs of the writer itself, which count from the first one on, whatever the count of a forged one
/// was.
fn goes_on(reader: &mut ReaderCore, expected: &[i64]) {
    data(reader, 9);
    for ms in (100..1_100).step_by(100) {
        heartbeat_at(reader, at_ms(ms), 2 + ms as u32, 1, 9);
    }
    assert_eq!(reader.counters().leaps_taken_back, 0);
    heartbeat_at(reader, at_ms(1_100), 3_000, 1, 9);
    assert_eq!(reader.counters().leaps_taken_back, 1);
    (1..=12).for_each(|sn| data(reader, sn));
    assert_eq!(taken(reader), expected);
    assert!(reader.is_caught_up());
}

#[test]
fn a_far_first_number_is_taken_back_when_heartbeats_refute_it() {
    for first in [FAR, i64::MAX - 1024] {
        let mut reader = started();
        heartbeat_at(&mut reader, at_ms(1), 1 << 30, first, first);
        // Sample 8 was there, so the order allows no sample before it any more.
        assert_eq!(taken(&mut reader), [8]);
        data(&mut reader, 6);
        assert_eq!(taken(&mut reader), []);
        goes_on(&mut reader, &[9, 10, 11, 12]);
    }
}

#[test]
fn a_gap_to_a_far_number_is_taken_back_too() {
    let mut reader = started();
    gap(&mut reader, 1, FAR);
    assert_eq!(taken(&mut reader), [8]);
    goes_on(&mut reader, &[9, 10, 11, 12]);
}

#[test]
fn several_leaps_are_taken_back_together() {
    let mut reader = started();
    for (count, first) in [(1 << 29, 1_000), (1 << 30, FAR)] {
        heartbeat_at(&mut reader, at_ms(1), count, first, first);
    }
    assert_eq!(taken(&mut reader), [8]);
    goes_on(&mut reader, &[9, 10, 11, 12]);
}

#[test]
fn a_leap_is_not_taken_back_where_something_arrives_behind_it_or_a_heartbeat_agrees() {
    for is_sample in [true, false] {
        let mut reader = started();
        heartbeat_at(&mut reader, at_ms(1), 2, 100, 100);
        assert_eq!(taken(&mut reader), [8]);
        heartbeat_at(&mut reader, at_ms(1_100), 3, 1, 9);
        if is_sample {
            data(&mut reader, 100);
        } else {
            heartbeat_at(&mut reader, at_ms(1_500), 4, 100, 100);
        }
        heartbeat_at(&mut reader, at_ms(2_200), 5, 1, 9);
        data(&mut reader, 9);
        assert_eq!(taken(&mut reader), if is_sample { vec![100] } else { vec![] });
        assert_eq!(reader.counters().leaps_taken_back, 0);
    }
}

#[test]
fn a_writer_that_dropped_its_samples_is_not_doubted() {
    let mut reader = started();
    for count in 2..10 {
        heartbeat_at(&mut reader, at_ms(1_000 * u64::from(count)), count, 101, 100);
    }
    assert_eq!(reader.counters().leaps_taken_back, 0);
    data(&mut reader, 101);
    assert_eq!(taken(&mut reader), [8, 101]);
}

#[test]
fn a_writer_that_is_lost_while_heartbeats_refute_a_leap_is_read_on_from_before_it() {
    let mut reader = started();
    heartbeat_at(&mut reader, at_ms(1), 1 << 30, FAR, FAR);
    assert_eq!(taken(&mut reader), [8]);
    heartbeat_at(&mut reader, at_ms(1_100), 2, 1, 9);
    reader.unmatch_writer(at_ms(1_200), WRITER);
    match_writer(&mut reader, VendorId::WEIR);
    heartbeat_at(&mut reader, at_ms(3_000), 3, 1, 9);
    (1..=9).for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [9]);
    assert_eq!(reader.counters().writers_restarted, 0);
}

#[test]
fn a_sample_held_behind_a_far_number_does_not_confirm_it() {
    for is_gap in [true, false] {
        let mut reader = started();
        let before = reader.delivery.cache.held;
        if is_gap {
            gap(&mut reader, 1, FAR);
        } else {
            heartbeat_at(&mut reader, at_ms(1), 1 << 30, FAR, FAR);
        }
        data(&mut reader, FAR + 1);
        assert_eq!((taken(&mut reader), before), (vec![8], 1));
        goes_on(&mut reader, &[9, 10, 11, 12]);
        assert_eq!(reader.delivery.cache.held, 0);
    }
}

#[test]
fn ranges_of_many_gaps_are_visited_a_few_times_until_the_reader_answers() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 40_000);
    answers(&mut reader, at_ms(1));
    for _ in 0..2_000 {
        gap(&mut reader, 2, 32_769);
    }
    let visited = reader.writers.list[0].changes.visited;
    assert!(visited <= 100_000, "{visited} visited");
    assert_eq!(reader.counters().gaps_dropped, 1_998);
    // What a dropped GAP said is requested.
    data(&mut reader, 1);
    gap(&mut reader, 32_769, 32_800);
    gap(&mut reader, 32_801, 33_000);
    answers(&mut reader, at_ms(2));
    gap(&mut reader, 32_801, 33_000);
    gap(&mut reader, 32_900, 40_001);
    data(&mut reader, 32_800);
    answers(&mut reader, at_ms(3));
    assert!(reader.is_caught_up());
}
