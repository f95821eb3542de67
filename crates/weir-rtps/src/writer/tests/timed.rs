//! Samples that expire (LIFESPAN), and deadlines of instances (DEADLINE).

use super::*;

const MS: u64 = 1_000_000;

fn lived(reliability: Reliability, history: History, durability: Durability) -> WriterCore {
    WriterCore::new(WriterConfig {
        history,
        durability,
        lifespan: Duration::from_millis(10),
        ..WriterConfig::new(WRITER, reliability)
    })
}

fn at(ms: u64) -> Time {
    Time(ms * MS)
}

/// Handles a request for samples.
fn request(writer: &mut WriterCore, now: Time, count: u32, base: i64, missing: i64) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    state.insert(SequenceNumber(missing));
    let acknack = AckNack { reader: READER.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(now, READER, &acknack);
}

#[test]
fn an_expired_sample_leaves_the_history_and_late_readers_do_not_get_it() {
    let mut writer = lived(Reliability::Reliable, History::KeepAll, Durability::TransientLocal);
    write(&mut writer, at(0), b"one").unwrap();
    write(&mut writer, at(5), b"two").unwrap();
    assert_eq!((writer.kept(), writer.next_timeout()), (2, Some(at(10))));
    writer.handle_timeout(at(10));
    assert_eq!((writer.kept(), writer.next_timeout()), (1, Some(at(15))));
    writer.match_reader(at(11), ReaderProxyConfig { wants_history: true, ..reader(READER, true) });
    assert_eq!(sent(&mut writer, at(11)), ["INFO_DST", "HEARTBEAT 2..2"]);
    request(&mut writer, at(12), 1, 2, 2);
    assert!(sent(&mut writer, at(12)).contains(&"DATA 2".to_owned()));
    // Between the end of the lifespan and the timer, it is not repaired either.
    request(&mut writer, at(15), 2, 2, 2);
    let repairs = sent(&mut writer, at(15));
    assert!(!repairs.contains(&"DATA 2".to_owned()), "{repairs:?}");
    assert_eq!((writer.kept(), writer.counters().samples_expired), (0, 2));
}

#[test]
fn a_reader_that_misses_an_expired_sample_is_told_that_it_is_gone() {
    let mut writer = lived(Reliability::Reliable, History::KeepAll, Durability::Volatile);
    writer.match_reader(at(0), reader(READER, true));
    sent(&mut writer, at(0));
    acknack(&mut writer, 1, 1, &[]);
    write(&mut writer, at(0), b"one").unwrap();
    sent(&mut writer, at(0));
    write(&mut writer, at(8), b"two").unwrap();
    sent(&mut writer, at(8));
    writer.handle_timeout(at(10));
    acknack(&mut writer, 2, 1, &[1]);
    let answer = sent(&mut writer, at(11));
    assert!(answer.iter().any(|word| word.starts_with("GAP 1")), "{answer:?}");
    assert!(!answer.iter().any(|word| word == "DATA 1"), "{answer:?}");
    acknack(&mut writer, 3, 3, &[]);
    assert!(writer.is_acknowledged(SequenceNumber(2)));
}

#[test]
fn the_end_of_an_instance_does_not_expire() {
    let guid = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    let mut writer = WriterCore::new(WriterConfig {
        history: History::KeepAll,
        lifespan: Duration::from_millis(10),
        ..WriterConfig::new(guid, Reliability::Reliable)
    });
    writer.match_reader(at(0), reader(READER, true));
    sent(&mut writer, at(0));
    acknack(&mut writer, 1, 1, &[]);
    write_keyed(&mut writer, at(0), Some([1; 16]), b"x").unwrap();
    let end = Change { kind: ChangeKind::Disposed, key: Some([1; 16]), payload: &[] };
    writer.write_change(at(1), None, end).unwrap();
    sent(&mut writer, at(1));
    writer.handle_timeout(at(30));
    assert_eq!((writer.kept(), writer.counters().samples_expired), (1, 1));
}

#[test]
fn what_expires_before_it_leaves_is_not_sent() {
    let mut writer = WriterCore::new(WriterConfig {
        history: History::KeepLast(10),
        lifespan: Duration::from_millis(10),
        is_asynchronous: true,
        ..WriterConfig::new(WRITER, Reliability::Reliable)
    });
    writer.match_reader(at(0), reader(READER, true));
    sent(&mut writer, at(0));
    write(&mut writer, at(0), b"one").unwrap();
    write(&mut writer, at(9), b"two").unwrap();
    let words = sent(&mut writer, at(12));
    assert!(!words.contains(&"DATA 1".to_owned()), "{words:?}");
    assert!(words.contains(&"DATA 2".to_owned()), "{words:?}");
}

#[test]
fn expired_samples_make_room_for_others() {
    let mut writer = WriterCore::new(WriterConfig {
        history: History::KeepAll,
        durability: Durability::TransientLocal,
        max_samples: Some(1),
        lifespan: Duration::from_millis(10),
        ..WriterConfig::new(WRITER, Reliability::Reliable)
    });
    write(&mut writer, at(0), b"one").unwrap();
    assert_eq!(write(&mut writer, at(9), b"two"), Err(WriteRefused::LimitReached));
    writer.handle_timeout(at(10));
    assert!(write(&mut writer, at(10), b"two").is_ok());
}

#[test]
fn the_record_of_expiring_samples_is_bounded_by_the_history() {
    let mut writer = lived(Reliability::BestEffort, History::KeepLast(1), Durability::Volatile);
    for n in 0..100_000 {
        write(&mut writer, Time(n), b"x").unwrap();
    }
    assert!(writer.memory() < 1 << 20, "{}", writer.memory());
    writer.handle_timeout(at(20));
    assert_eq!(writer.counters().samples_expired, 0, "nothing was left");
}

#[test]
fn an_instance_that_is_not_written_in_time_misses_its_deadline() {
    let guid = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    for history in [History::KeepAll, History::KeepLast(1)] {
        let mut writer = WriterCore::new(WriterConfig {
            history,
            deadline: Duration::from_millis(10),
            ..WriterConfig::new(guid, Reliability::Reliable)
        });
        let (one, two) = ([1; 16], [2; 16]);
        write_keyed(&mut writer, at(0), Some(one), b"x").unwrap();
        write_keyed(&mut writer, at(3), Some(two), b"x").unwrap();
        write_keyed(&mut writer, at(9), Some(one), b"x").unwrap();
        writer.handle_timeout(at(10));
        assert!(!writer.has_deadline_news());
        writer.handle_timeout(at(13));
        let status = writer.take_deadline_missed();
        assert_eq!((status.total_count, status.total_count_change, status.last_key), (1, 1, Some(two)));
        assert!(!writer.has_deadline_news());
        // An instance that has ended misses nothing.
        let end = Change { kind: ChangeKind::Disposed, key: Some(two), payload: &[] };
        writer.write_change(at(14), None, end).unwrap();
        writer.handle_timeout(at(40));
        let status = writer.take_deadline_missed();
        assert_eq!((status.total_count, status.total_count_change, status.last_key), (4, 3, Some(one)));
    }
}

#[test]
fn deadlines_of_many_instances_without_readers_are_all_kept_until_they_end() {
    let guid = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    let mut writer = WriterCore::new(WriterConfig {
        history: History::KeepLast(1),
        deadline: Duration::from_millis(10),
        ..WriterConfig::new(guid, Reliability::Reliable)
    });
    let key = |number: u16| {
        let mut key = [0; 16];
        key[..2].copy_from_slice(&number.to_be_bytes());
        Some(key)
    };
    (0..1100).for_each(|number| _ = write_keyed(&mut writer, at(0), key(number), b"x").unwrap());
    (1100..2200).for_each(|number| _ = write_keyed(&mut writer, at(5), key(number), b"x").unwrap());
    writer.handle_timeout(at(10));
    assert_eq!(writer.take_deadline_missed().total_count, 1100);
    for number in 0..2200 {
        let end = Change { kind: ChangeKind::Disposed, key: key(number), payload: &[] };
        writer.write_change(at(11), None, end).unwrap();
    }
    writer.handle_timeout(at(100));
    assert_eq!(writer.take_deadline_missed().total_count, 1100, "all have ended");
}

#[test]
fn a_topic_without_a_key_is_one_instance_with_a_deadline() {
    let mut writer = WriterCore::new(WriterConfig {
        deadline: Duration::from_millis(10),
        ..WriterConfig::new(WRITER, Reliability::BestEffort)
    });
    assert_eq!(writer.next_timeout(), None, "the first sample begins the first period");
    write(&mut writer, at(0), b"x").unwrap();
    assert_eq!(writer.next_timeout(), Some(at(10)));
    writer.handle_timeout(at(10));
    let status = writer.take_deadline_missed();
    assert_eq!((status.total_count, status.last_key), (1, None));
}

#[test]
fn samples_that_were_acknowledged_need_no_timer() {
    let mut writer = lived(Reliability::Reliable, History::KeepAll, Durability::Volatile);
    writer.match_reader(at(0), reader(READER, true));
    sent(&mut writer, at(0));
    for ms in 0..5 {
        write(&mut writer, at(ms), b"one").unwrap();
        sent(&mut writer, at(ms));
    }
    acknack(&mut writer, 1, 6, &[]);
    assert_eq!(writer.kept(), 0);
    writer.handle_timeout(at(10));
    let next = writer.next_timeout();
    assert!(next.is_none_or(|next| next > at(14)), "a timer for each of them: {next:?}");
}

/// The sample that is being written is not in the history when what is recorded of removed samples is forgotten.
#[test]
fn a_sample_expires_however_many_have_replaced_each_other_before_it() {
    for count in [1, 1_000, 1_026, 1_027, 1_028, 1_029, 1_030, 2_100] {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, true));
        let mut writer = WriterCore::new(WriterConfig {
            history: History::KeepLast(1),
            durability: Durability::TransientLocal,
            lifespan: Duration::from_secs(10),
            ..WriterConfig::new(guid, Reliability::Reliable)
        });
        for number in 0..=count {
            let key = [if number == 0 { 1 } else { 2 }; 16];
            write_keyed(&mut writer, at(0), Some(key), b"value").unwrap();
        }
        assert_eq!(writer.kept(), 2, "{count}");
        writer.handle_timeout(at(10_001));
        assert_eq!(writer.kept(), 0, "{count}");
    }
}
