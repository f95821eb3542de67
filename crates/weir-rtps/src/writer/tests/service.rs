//! What late readers of TRANSIENT and PERSISTENT writers are sent (DURABILITY_SERVICE), and policies that change.

use super::*;
use crate::qos::{DurabilityService, INFINITE};

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Time {
    Time(ms * MS)
}

fn kept_by(durability: Durability, history: History, durability_service: DurabilityService) -> WriterCore {
    let keyed = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    WriterCore::new(WriterConfig {
        history,
        durability,
        durability_service,
        ..WriterConfig::new(keyed, Reliability::Reliable)
    })
}

fn write_instance(writer: &mut WriterCore, now: Time, key: u8) {
    write_keyed(writer, now, Some([key; 16]), &[key; 8]).unwrap();
    sent(writer, now);
}

fn end_instance(writer: &mut WriterCore, now: Time, key: u8, kind: ChangeKind) {
    let change = Change { kind, key: Some([key; 16]), payload: &[key; 4] };
    writer.write_change(now, Some(STAMP.timestamp), change).unwrap();
    sent(writer, now);
}

/// Returns the samples that a late reader is sent.
fn served(writer: &mut WriterCore, now: Time) -> Vec<i64> {
    let late = ReaderProxyConfig { wants_history: true, ..reader(READER, true) };
    writer.match_reader(now, late);
    sent(writer, now);
    let last = writer.last_sequence_number().0;
    let first = 1.max(last - 100);
    let mut state = SequenceNumberSet::new(SequenceNumber(first));
    (first..=last).for_each(|sn| _ = state.insert(SequenceNumber(sn)));
    let request =
        AckNack { reader: READER.entity, writer: writer.config.guid.entity, state, count: 1, is_final: true };
    writer.handle_acknack(now, READER, &request);
    let words = sent(writer, now);
    words.iter().filter_map(|word| word.strip_prefix("DATA ")).map(|sn| sn.parse().unwrap()).collect()
}

fn three_instances(writer: &mut WriterCore) {
    for (now, key) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 1)] {
        write_instance(writer, at(now), key);
    }
}

#[test]
fn a_late_reader_is_sent_what_the_service_keeps() {
    let default = DurabilityService::DEFAULT;
    let all = DurabilityService { history: History::KeepAll, ..default };
    let check = |durability, history, service, expected: &[i64]| {
        let mut writer = kept_by(durability, history, service);
        three_instances(&mut writer);
        assert_eq!(served(&mut writer, at(7)), expected, "{durability:?} {service:?}");
        assert_eq!(writer.kept(), expected.len());
        let removed = if history == History::KeepAll { 6 - expected.len() } else { writer.kept() };
        if history == History::KeepAll {
            assert_eq!(writer.counters().samples_not_served, removed as u64);
        }
    };
    for durability in [Durability::Transient, Durability::Persistent] {
        check(durability, History::KeepAll, default, &[4, 5, 6]);
        check(durability, History::KeepAll, all, &[1, 2, 3, 4, 5, 6]);
        check(durability, History::KeepLast(2), default, &[4, 5, 6]);
        // No more than the writer keeps itself.
        check(durability, History::KeepLast(1), all, &[4, 5, 6]);
        let limited = |max_samples, max_instances, max_samples_per_instance| DurabilityService {
            max_samples,
            max_instances,
            max_samples_per_instance,
            ..all
        };
        check(durability, History::KeepAll, limited(Some(2), None, None), &[5, 6]);
        check(durability, History::KeepAll, limited(None, Some(2), None), &[1, 2, 5, 6]);
        check(durability, History::KeepAll, limited(None, None, Some(2)), &[2, 3, 4, 5, 6]);
    }
    // TRANSIENT_LOCAL follows the history alone (DDS 1.4, 2.2.3.5).
    check(Durability::TransientLocal, History::KeepAll, default, &[1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_instance_that_has_ended_is_served_until_the_cleanup_delay_is_over() {
    let delay = Duration::from_millis(10);
    let service = DurabilityService { service_cleanup_delay: delay, ..DurabilityService::DEFAULT };
    let check = |kind, service, now, expected: &[i64]| {
        let mut writer = kept_by(Durability::Transient, History::KeepAll, service);
        write_instance(&mut writer, at(1), 1);
        write_instance(&mut writer, at(1), 2);
        end_instance(&mut writer, at(2), 1, kind);
        assert_eq!(served(&mut writer, at(now)), expected, "{kind:?} at {now}");
    };
    for kind in [ChangeKind::Disposed, ChangeKind::Unregistered, ChangeKind::DisposedUnregistered] {
        check(kind, service, 11, &[1, 2, 3]);
        check(kind, service, 12, &[2]);
        check(kind, DurabilityService::DEFAULT, 2, &[2]);
        let endless = DurabilityService { service_cleanup_delay: INFINITE, ..service };
        check(kind, endless, 1_000_000, &[1, 2, 3]);
    }
}

#[test]
fn what_a_matched_reader_has_not_acknowledged_is_not_removed_for_a_late_one() {
    let mut writer = kept_by(Durability::Transient, History::KeepAll, DurabilityService::DEFAULT);
    let slow = Guid::new(GuidPrefix([9; 12]), READER.entity);
    writer.match_reader(at(0), reader(slow, true));
    three_instances(&mut writer);
    let state = SequenceNumberSet::new(SequenceNumber(3));
    let acknack =
        AckNack { reader: slow.entity, writer: writer.config.guid.entity, state, count: 1, is_final: true };
    writer.handle_acknack(at(6), slow, &acknack);
    assert_eq!(served(&mut writer, at(7)), [3, 4, 5, 6], "1 and 2 are acknowledged");
}

#[test]
fn the_record_of_the_service_stays_bounded() {
    let mut writer = kept_by(Durability::Transient, History::KeepLast(1), DurabilityService::DEFAULT);
    for n in 0..10_000 {
        write_instance(&mut writer, at(n), 1);
    }
    assert!(writer.memory() < 1 << 20, "{}", writer.memory());
    assert_eq!(served(&mut writer, at(10_001)), [10_000]);
}

#[test]
fn a_deadline_that_is_set_later_begins_for_the_instances_that_are_there() {
    for history in [History::KeepAll, History::KeepLast(1)] {
        let mut writer = kept_by(Durability::Volatile, history, DurabilityService::DEFAULT);
        write_instance(&mut writer, at(0), 1);
        writer.set_periods(at(5), INFINITE, Duration::from_millis(10));
        write_instance(&mut writer, at(6), 2);
        writer.handle_timeout(at(16));
        let (missed, second) = (writer.take_deadline_missed(), Some([2; 16]));
        // A writer that keeps all did not distinguish instances before.
        let expected = if history == History::KeepAll { 1 } else { 2 };
        assert_eq!((missed.total_count, missed.last_key), (expected, second), "{history:?}");
        writer.set_periods(at(17), INFINITE, INFINITE);
        writer.handle_timeout(at(100));
        assert_eq!(writer.take_deadline_missed().total_count_change, 0);
    }
}

#[test]
fn a_deadline_that_changes_begins_anew() {
    let mut writer = kept_by(Durability::Volatile, History::KeepLast(1), DurabilityService::DEFAULT);
    writer.set_periods(at(0), INFINITE, Duration::from_millis(10));
    write_instance(&mut writer, at(0), 1);
    writer.set_periods(at(9), INFINITE, Duration::from_millis(50));
    writer.handle_timeout(at(58));
    assert_eq!(writer.take_deadline_missed().total_count, 0);
    writer.handle_timeout(at(59));
    assert_eq!(writer.take_deadline_missed().total_count, 1);
}

#[test]
fn a_lifespan_that_changes_applies_to_what_is_kept() {
    let service = DurabilityService::DEFAULT;
    let mut writer = kept_by(Durability::TransientLocal, History::KeepAll, service);
    write_instance(&mut writer, at(0), 1);
    writer.set_periods(at(0), Duration::from_millis(10), INFINITE);
    write_instance(&mut writer, at(1), 1);
    write_instance(&mut writer, at(2), 1);
    writer.set_periods(at(3), Duration::from_millis(5), INFINITE);
    writer.handle_timeout(at(6));
    assert_eq!(writer.kept(), 2, "one expired; the first had no lifespan");
    writer.set_periods(at(6), INFINITE, INFINITE);
    writer.handle_timeout(at(100));
    assert_eq!(writer.kept(), 2);
}

#[test]
fn samples_are_collected_from_the_moment_that_a_batch_is_set() {
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    writer.match_reader(Time(0), reader(READER, false));
    write(&mut writer, at(0), b"\0\x01\0\0one.").unwrap();
    assert_eq!(sent(&mut writer, at(0)), ["DATA 1"]);
    let policy = BatchPolicy { max_bytes: 1000, max_samples: 100, max_delay: Duration::from_millis(5) };
    writer.set_batch(Some(policy));
    write(&mut writer, at(1), b"\0\x01\0\0two.").unwrap();
    write(&mut writer, at(2), b"\0\x01\0\0three.").unwrap();
    assert_eq!(sent(&mut writer, at(5)), [""; 0]);
    writer.handle_timeout(at(6));
    assert_eq!(sent(&mut writer, at(6)), ["DATA 2", "DATA 3"]);
    write(&mut writer, at(7), b"\0\x01\0\0four").unwrap();
    writer.set_batch(None);
    assert!(writer.next_timeout().is_some_and(|next| next <= at(7)));
    writer.handle_timeout(at(7));
    assert_eq!(sent(&mut writer, at(7)), ["DATA 4"]);
    write(&mut writer, at(8), b"\0\x01\0\0five").unwrap();
    assert_eq!(sent(&mut writer, at(8)), ["DATA 5"]);
}

#[test]
fn a_closed_writer_admits_writes_once_it_is_open() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.close();
    assert_eq!(write(&mut writer, at(0), &[0; 8]), Err(WriteRefused::Closed));
    writer.open();
    assert_eq!(write(&mut writer, at(0), &[0; 8]), Ok(SequenceNumber(1)));
    writer.match_reader(at(0), reader(READER, true));
    write(&mut writer, at(1), &[0; 8]).unwrap();
    assert!(sent(&mut writer, at(1)).contains(&"DATA 2".to_owned()));
}
