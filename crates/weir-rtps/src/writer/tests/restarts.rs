//! Readers that lost the writer, found it again and restart, while the writer noticed nothing.

use super::*;

/// Returns a writer with five samples, all acknowledged by a reader. `wants_history`: the writer
/// keeps history and the reader wants it.
fn acknowledged(wants_history: bool) -> WriterCore {
    let durability = if wants_history { Durability::TransientLocal } else { Durability::Volatile };
    let mut writer = WriterCore::new(WriterConfig { durability, ..config(Reliability::Reliable) });
    writer.match_reader(Time(0), ReaderProxyConfig { wants_history, ..reader(READER, true) });
    (0..5).for_each(|_| _ = write(&mut writer, Time(0), &[0; 8]).unwrap());
    sent(&mut writer, Time(0));
    acknack(&mut writer, 7, 6, &[]);
    sent(&mut writer, Time(1));
    assert!(writer.is_acknowledged(SequenceNumber(5)));
    writer
}

/// Sends an ACKNACK long after the last one, with a count that starts again.
fn late_acknack(writer: &mut WriterCore, now: Time, base: i64, missing: &[i64]) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    missing.iter().for_each(|sn| _ = state.insert(SequenceNumber(*sn)));
    let acknack = AckNack { reader: READER.entity, writer: WRITER.entity, state, count: 1, is_final: true };
    writer.handle_acknack(now, READER, &acknack);
}

const LATER: Time = Time(30_000_000_000);

#[test]
fn a_reader_that_starts_anew_gets_the_history_again() {
    let mut writer = acknowledged(true);
    late_acknack(&mut writer, LATER, 1, &[1, 2, 3, 4, 5]);
    assert!(!writer.is_acknowledged(SequenceNumber(1)), "the reader took its acknowledgement back");
    assert_eq!(writer.counters().readers_restarted, 1);
    let repairs = ["DATA 1", "DATA 2", "DATA 3", "DATA 4", "DATA 5", "INFO_DST", "HEARTBEAT 1..5"];
    assert_eq!(sent(&mut writer, LATER), repairs);
    // If that is lost, a HEARTBEAT requests another answer.
    assert!(writer.next_timeout().is_some_and(|at| at <= LATER + config::HEARTBEAT_DELAY_MAX));
    acknack(&mut writer, 2, 6, &[]);
    assert!(writer.is_acknowledged(SequenceNumber(5)));
}

#[test]
fn a_volatile_reader_that_starts_anew_gets_nothing_again_that_it_acknowledged() {
    let mut writer = acknowledged(false);
    // Another reader keeps the samples in the history.
    let other = Guid::new(GuidPrefix([3; 12]), READER.entity);
    writer.match_reader(Time(2), reader(other, true));
    (0..2).for_each(|_| _ = write(&mut writer, Time(2), &[0; 8]).unwrap());
    sent(&mut writer, Time(2));
    acknack(&mut writer, 8, 7, &[]);
    late_acknack(&mut writer, LATER, 1, &[4, 5, 6, 7]);
    assert_eq!(sent(&mut writer, LATER), ["DATA 7", "INFO_DST", "GAP 1 to 7/0:", "HEARTBEAT 6..7"]);
}

#[test]
fn a_volatile_reader_that_asks_where_to_begin_continues_after_what_it_acknowledged() {
    let mut writer = acknowledged(false);
    write(&mut writer, Time(2), &[0; 8]).unwrap();
    sent(&mut writer, Time(2));
    let state = SequenceNumberSet::new(SequenceNumber(1));
    let question = AckNack { reader: READER.entity, writer: WRITER.entity, state, count: 0, is_final: false };
    writer.handle_acknack(LATER, READER, &question);
    assert_eq!(sent(&mut writer, LATER), ["INFO_DST", "HEARTBEAT 6..5"]);
    // Sample 6, which the reader has not acknowledged, is announced only after its answer.
    late_acknack(&mut writer, LATER, 6, &[]);
    assert_eq!(sent(&mut writer, LATER), ["INFO_DST", "HEARTBEAT 6..6"]);
}

#[test]
fn a_volatile_reader_of_an_earlier_process_with_the_guid_is_told_what_there_is() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    write(&mut writer, Time(0), &[0; 8]).unwrap();
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 1", "INFO_DST", "HEARTBEAT 1..0"]);
    // The earlier process had written 300 samples.
    acknack(&mut writer, 1, 301, &[]);
    assert_eq!(sent(&mut writer, Time(1)), ["INFO_DST", "HEARTBEAT 1..1"]);
    // Once.
    acknack(&mut writer, 2, 301, &[]);
    assert_eq!(sent(&mut writer, Time(2)), [""; 0]);
    assert_eq!(writer.counters().acknacks_ignored, 2);
    assert!(!writer.is_acknowledged(SequenceNumber(1)));
}

#[test]
fn an_old_acknack_that_arrives_late_takes_nothing_back_for_good() {
    let mut writer = acknowledged(true);
    late_acknack(&mut writer, LATER, 3, &[]);
    assert!(!writer.is_acknowledged(SequenceNumber(3)));
    // The next HEARTBEAT causes a correct ACKNACK.
    writer.handle_timeout(LATER + config::HEARTBEAT_DELAY_MIN);
    assert_eq!(sent(&mut writer, LATER + config::HEARTBEAT_DELAY_MIN), ["HEARTBEAT 1..5"]);
    acknack(&mut writer, 8, 6, &[]);
    assert!(writer.is_acknowledged(SequenceNumber(5)));
}

#[test]
fn a_reader_that_acknowledges_and_forgets_in_turn_gets_no_more_repairs_than_its_budget() {
    let durability = Durability::TransientLocal;
    let mut writer = WriterCore::new(WriterConfig { durability, ..config(Reliability::Reliable) });
    let receive_buffer = Some(212_992);
    let reader = ReaderProxyConfig { wants_history: true, receive_buffer, ..reader(READER, true) };
    writer.match_reader(Time(0), reader);
    for _ in 0..4 {
        write(&mut writer, Time(0), &[0; 1_000]).unwrap();
    }
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 5, &[]);
    let repaired = |writer: &mut WriterCore, rounds: u32, from: u32| {
        let before = writer.counters().samples_repaired;
        for round in 0..rounds {
            acknack(writer, from + 2 * round, 1, &[1, 2, 3, 4]);
            sent(writer, Time(1));
            acknack(writer, from + 2 * round + 1, 5, &[]);
        }
        writer.counters().samples_repaired - before
    };
    repaired(&mut writer, 2_000, 2);
    let held_back = |writer: &WriterCore| {
        let WriterCounters { repairs_held_back, repairs_paced, .. } = writer.counters();
        repairs_held_back + repairs_paced
    };
    let before = held_back(&writer);
    assert_eq!(repaired(&mut writer, 1_000, 10_000), 0, "all of it in one instant");
    assert_eq!(held_back(&writer), before + 1_000);
}
