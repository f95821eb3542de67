//! Messages in the name of a writer that are not its own.

use super::*;
use crate::time::Time;

fn heartbeat_at(reader: &mut ReaderCore, now: Time, count: u32, last: i64) {
    reader.handle_heartbeat(now, WRITER, &heartbeat_of(EntityId::UNKNOWN, count, 1, last));
}

fn data_at(reader: &mut ReaderCore, now: Time, sn: i64) {
    handle_at(reader, now, sn, Payload::Data(&[0, 1, 0, 0, sn as u8, 0, 0, 0]));
}

fn ms(number: u64) -> Time {
    Time(number * 1_000_000)
}

#[test]
fn a_sample_of_which_the_rest_never_comes_is_requested_as_a_whole() {
    let config =
        ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(READER, Reliability::Reliable) };
    let mut reader = with_writer(config, VendorId::CYCLONE);
    data_at(&mut reader, ms(1), 1);
    let frag = DataFrag { sequence_number: SequenceNumber(2), ..FRAGMENT };
    reader.handle_data_frag(ms(1), WRITER, &frag, None);
    let mut asked = 0;
    for round in 1..50 {
        let now = ms(100 * round);
        heartbeat_at(&mut reader, now, round as u32, 2);
        reader.handle_timeout(now);
        let mut out = Outbox::new();
        reader.poll_transmit(now, &mut out);
        out.for_each_datagram(|_, datagram| {
            for submessage in Message::parse(datagram).unwrap().submessages() {
                match submessage.unwrap() {
                    // The rest is requested first.
                    Submessage::NackFrag(_) => assert_eq!(asked, 0),
                    Submessage::AckNack(it) => asked += u32::from(it.state.contains(SequenceNumber(2))),
                    _ => {}
                }
            }
        });
    }
    assert!(asked > 0);
    data_at(&mut reader, ms(6_000), 2);
    assert_eq!(taken(&mut reader), [1, 2]);
}

#[test]
fn fragments_that_contradict_what_was_there_first_are_believed_after_a_while() {
    let mut reader = reader(Reliability::BestEffort);
    reader.handle_data_frag(ms(1), WRITER, &FRAGMENT, None);
    let whole = [0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut send = |now: Time| {
        for (start, payload) in (1..).zip(whole.chunks(4)) {
            let frag = DataFrag { fragment_start: start, sample_size: 12, payload, ..FRAGMENT };
            reader.handle_data_frag(now, WRITER, &frag, None);
        }
        reader.available()
    };
    assert_eq!(send(ms(500)), 0);
    // What was refused does not count.
    assert_eq!(send(ms(1_001)), 1);
}

#[test]
fn a_leap_of_a_best_effort_writer_is_taken_back_when_its_samples_refute_it() {
    for is_gap in [false, true] {
        let mut reader = reader(Reliability::BestEffort);
        data_at(&mut reader, ms(1), 1);
        if is_gap {
            let list = SequenceNumberSet::new(SequenceNumber(1 << 40));
            let gap = Gap { reader: READER.entity, writer: WRITER.entity, start: SequenceNumber(1), list };
            reader.handle_gap(ms(2), WRITER, &gap);
        } else {
            data_at(&mut reader, ms(2), 1 << 40);
        }
        taken(&mut reader);
        for number in 2..30 {
            data_at(&mut reader, ms(100 * number as u64), number);
        }
        assert_eq!(taken(&mut reader), (13..30).collect::<Vec<_>>(), "after a second");
        assert!(reader.counters().samples_lost <= 1 << 40, "{:?}", reader.counters());
        // Repetitions, and what others have overtaken, are none.
        for number in 30..60 {
            let now = ms(100 * number as u64);
            data_at(&mut reader, now, number);
            data_at(&mut reader, now, number - 3);
            data_at(&mut reader, now, number);
        }
        assert_eq!(taken(&mut reader), (30..60).collect::<Vec<_>>());
    }
}

#[test]
fn a_false_last_sample_is_forgotten_when_heartbeats_refute_it() {
    let mut reader = reader(Reliability::Reliable);
    data_at(&mut reader, ms(1), 1);
    heartbeat_at(&mut reader, ms(2), 1, 1);
    answers(&mut reader, ms(2));
    heartbeat_at(&mut reader, ms(3), 2, i64::MAX - 1024);
    assert!(!answers(&mut reader, ms(3)).is_empty());
    assert!(!reader.is_caught_up());
    for round in 1..=12 {
        let now = ms(100 * round);
        heartbeat_at(&mut reader, now, 2 + round as u32, 1);
        reader.handle_timeout(now);
        answers(&mut reader, now);
    }
    assert!(reader.is_caught_up());
    // What is lost from then on is requested at once, and nothing else is.
    data_at(&mut reader, ms(1_300), 3);
    heartbeat_at(&mut reader, ms(1_300), 20, 3);
    assert_eq!(answers(&mut reader, ms(1_300)), ["2/2:2"]);
}

#[test]
fn false_counts_do_not_make_true_ones_look_old() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat_at(&mut reader, ms(1), 1, 0);
    answers(&mut reader, ms(1));
    for round in 0..10 {
        let (number, now) = (1 + round as i64, ms(900 * round + 10));
        let false_count = (1 << 30) + round as u32;
        let heartbeat = Heartbeat { is_final: true, ..heartbeat_of(EntityId::UNKNOWN, false_count, 1, 0) };
        reader.handle_heartbeat(now, WRITER, &heartbeat);
        data_at(&mut reader, now, number);
        heartbeat_at(&mut reader, now, 2 + round as u32, number);
        assert_eq!(answers(&mut reader, now).len(), 1, "round {round}");
    }
}
