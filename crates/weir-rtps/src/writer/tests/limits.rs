//! Instances and RESOURCE_LIMITS.

use super::*;
use crate::limits::EndpointLimits;

fn keyed_config(history: History) -> WriterConfig {
    let keyed = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    WriterConfig { history, ..WriterConfig::new(keyed, Reliability::Reliable) }
}

fn key(n: u32) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&n.to_be_bytes());
    Some(key)
}

fn write_instance(writer: &mut WriterCore, n: u32, len: usize) -> Result<SequenceNumber, WriteRefused> {
    write_keyed(writer, Time(0), key(n), &vec![n as u8; len])
}

fn change(writer: &mut WriterCore, n: u32, kind: ChangeKind) -> Result<SequenceNumber, WriteRefused> {
    writer.write_change(Time(0), Some(STAMP.timestamp), Change { kind, key: key(n), payload: &[0; 8] })
}

/// Samples that are replaced stay until their batch leaves.
#[test]
fn an_open_batch_does_not_make_the_history_grow() {
    let batch = BatchPolicy { max_bytes: 60_000, max_samples: 1000, max_delay: Duration::from_secs(1) };
    for history in [History::KeepLast(1), History::KeepLast(3)] {
        let keyed = keyed_config(history);
        let (max_samples, durability) = (Some(10), Durability::TransientLocal);
        let mut writer = asynchronous::asynchronous_with(WriterConfig {
            batch: Some(batch),
            max_samples,
            durability,
            ..keyed
        });
        for _ in 0..10 {
            write_instance(&mut writer, 1, 8).unwrap();
        }
        writer.flush(Time(0), &mut Outbox::new());
        let written = (0..200).filter(|_| write_instance(&mut writer, 1, 8).is_ok()).count();
        assert!(written < 200 && writer.kept() <= 10 + config::SEGMENTS_MAX, "{written} {}", writer.kept());
        writer.flush(Time(0), &mut Outbox::new());
        write_instance(&mut writer, 1, 8).unwrap();
    }
}

#[test]
fn a_hot_instance_among_many_does_not_make_the_history_grow() {
    let config =
        WriterConfig { durability: Durability::TransientLocal, ..keyed_config(History::KeepLast(1)) };
    let mut writer = WriterCore::new(config);
    for n in 0..100_000 {
        write_instance(&mut writer, n, 64).unwrap();
    }
    let mut rng = 1_u32;
    let mut hot = |writer: &mut WriterCore, writes: u32| {
        for _ in 0..writes {
            rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // One write in 64 goes to a random instance, so that every block has a survivor.
            let n = if rng >> 26 == 0 { rng >> 4 & 0xffff } else { 7 };
            write_instance(writer, n, 64).unwrap();
        }
        writer.memory()
    };
    hot(&mut writer, 1_000_000);
    let memory = hot(&mut writer, 1_000_000);
    assert_eq!(writer.kept(), 100_000);
    // 120 bytes each with headers, as much again for dead bytes, and the indices.
    assert!(memory < 48 << 20, "{memory}");
    writer.match_reader(Time(0), ReaderProxyConfig { wants_history: true, ..reader(READER, true) });
    sent(&mut writer, Time(0));
    let first = writer.history.first().0;
    acknack(&mut writer, 1, first, &[first, first + 1]);
    assert!(sent(&mut writer, Time(0))[0].starts_with("DATA"));
}

#[test]
fn a_long_hole_is_reported_at_once() {
    let config =
        WriterConfig { durability: Durability::TransientLocal, ..keyed_config(History::KeepLast(1)) };
    let mut writer = WriterCore::new(config);
    write_instance(&mut writer, 1, 8).unwrap();
    for _ in 0..100_000 {
        write_instance(&mut writer, 2, 8).unwrap();
    }
    writer.match_reader(Time(0), ReaderProxyConfig { wants_history: true, ..reader(READER, true) });
    assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "HEARTBEAT 1..100001"]);
    acknack(&mut writer, 1, 1, &[1, 2, 3, 4]);
    let answer = sent(&mut writer, Time(0));
    assert_eq!(answer, ["DATA 1", "INFO_DST", "GAP 2 to 100001/0:", "HEARTBEAT 1..100001"]);
}

#[test]
fn keep_all_waits_when_the_limit_of_samples_is_reached_and_keep_last_replaces() {
    let limited = |history| WriterConfig { max_samples: Some(3), ..keyed_config(history) };
    let mut writer = WriterCore::new(limited(History::KeepAll));
    writer.match_reader(Time(0), reader(READER, true));
    for n in 0..3 {
        write_instance(&mut writer, n, 8).unwrap();
    }
    assert_eq!(write_instance(&mut writer, 0, 8), Err(WriteRefused::WindowFull));
    assert!(!writer.has_room_for(key(0), 8));
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 3, &[]);
    assert!(writer.has_room_for(key(0), 8));
    write_instance(&mut writer, 0, 8).unwrap();

    let mut writer = WriterCore::new(limited(History::KeepLast(1)));
    writer.match_reader(Time(0), reader(READER, true));
    for n in [0, 1, 2, 0, 1, 2] {
        write_instance(&mut writer, n, 8).unwrap();
        sent(&mut writer, Time(0));
    }
    // Another instance has to wait until a sample is acknowledged.
    assert_eq!(write_instance(&mut writer, 3, 8), Err(WriteRefused::WindowFull));
    acknack(&mut writer, 1, 5, &[]);
    write_instance(&mut writer, 3, 8).unwrap();
}

#[test]
fn samples_of_one_instance_are_limited_and_others_go_on() {
    let mut writer =
        WriterCore::new(WriterConfig { max_samples_per_instance: Some(2), ..keyed_config(History::KeepAll) });
    writer.match_reader(Time(0), reader(READER, true));
    write_instance(&mut writer, 1, 8).unwrap();
    write_instance(&mut writer, 1, 8).unwrap();
    assert_eq!(write_instance(&mut writer, 1, 8), Err(WriteRefused::WindowFull));
    assert!(!writer.has_room_for(key(1), 8) && writer.has_room_for(key(2), 8));
    write_instance(&mut writer, 2, 8).unwrap();
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 2, &[]);
    assert!(writer.has_room_for(key(1), 8));
    write_instance(&mut writer, 1, 8).unwrap();
    assert_eq!(write_instance(&mut writer, 1, 8), Err(WriteRefused::WindowFull));
}

#[test]
fn instances_are_limited_and_count_until_they_are_unregistered() {
    for history in [History::KeepAll, History::KeepLast(1), History::KeepLast(3)] {
        let mut writer = WriterCore::new(WriterConfig { max_instances: Some(2), ..keyed_config(history) });
        writer.match_reader(Time(0), reader(READER, true));
        write_instance(&mut writer, 1, 8).unwrap();
        writer.register_instance(key(2).unwrap()).unwrap();
        assert_eq!(writer.register_instance(key(3).unwrap()), Err(WriteRefused::TooManyInstances));
        assert_eq!(write_instance(&mut writer, 3, 8), Err(WriteRefused::TooManyInstances));
        change(&mut writer, 1, ChangeKind::Disposed).unwrap();
        assert_eq!(write_instance(&mut writer, 3, 8), Err(WriteRefused::TooManyInstances));
        change(&mut writer, 1, ChangeKind::Unregistered).unwrap();
        write_instance(&mut writer, 3, 8).unwrap();
        assert_eq!(write_instance(&mut writer, 1, 8), Err(WriteRefused::TooManyInstances));
        sent(&mut writer, Time(0));
        acknack(&mut writer, 1, 5, &[]);
        for n in 3..1_000 {
            change(&mut writer, n, ChangeKind::DisposedUnregistered).unwrap();
            sent(&mut writer, Time(0));
            let next = writer.last_sequence_number().0 + 1;
            acknack(&mut writer, next as u32, next, &[]);
            write_instance(&mut writer, n + 1, 8).unwrap();
        }
    }
}

#[test]
fn a_writer_that_asks_for_new_instances_refuses_them_until_they_are_registered() {
    let ends = [ChangeKind::Unregistered, ChangeKind::DisposedUnregistered];
    for (history, end) in [History::KeepLast(1), History::KeepLast(3)].into_iter().zip(ends) {
        let mut writer = WriterCore::new(keyed_config(history));
        writer.match_reader(Time(0), reader(READER, true));
        writer.ask_for_new_instances(true);
        for n in [1, 2] {
            for _ in 0..2 {
                assert_eq!(write_instance(&mut writer, n, 8), Err(WriteRefused::NewInstance));
                assert_eq!(change(&mut writer, n, ChangeKind::Disposed), Err(WriteRefused::NewInstance));
                writer.register_instance(key(n).unwrap()).unwrap();
                write_instance(&mut writer, n, 8).unwrap();
                write_instance(&mut writer, n, 8).unwrap();
                change(&mut writer, n, end).unwrap();
            }
        }
        writer.ask_for_new_instances(false);
        write_instance(&mut writer, 1, 8).unwrap();
    }
    // Without a limit, it does not distinguish instances.
    let mut writer = WriterCore::new(keyed_config(History::KeepAll));
    writer.ask_for_new_instances(true);
    write_instance(&mut writer, 1, 8).unwrap();
}

#[test]
fn bytes_are_limited_whatever_the_size_of_samples() {
    let config = |history| WriterConfig {
        max_bytes: Some(1000),
        durability: Durability::TransientLocal,
        ..keyed_config(history)
    };
    let mut writer = WriterCore::new(config(History::KeepLast(1)));
    for n in 0..10 {
        write_instance(&mut writer, n, 40).unwrap();
    }
    assert_eq!(write_instance(&mut writer, 10, 40), Err(WriteRefused::LimitReached));
    write_instance(&mut writer, 9, 80).unwrap();
    // It would replace fewer bytes than it takes.
    assert_eq!(write_instance(&mut writer, 8, 80), Err(WriteRefused::LimitReached));
    assert!(matches!(write_instance(&mut writer, 8, 950), Err(WriteRefused::TooLarge { .. })));
    assert!(writer.history.live_bytes() <= 1000);
    let mut writer = WriterCore::new(config(History::KeepAll));
    for _ in 0..10 {
        write_instance(&mut writer, 1, 40).unwrap();
    }
    assert_eq!(write_instance(&mut writer, 1, 40), Err(WriteRefused::LimitReached));
}

#[test]
fn a_best_effort_writer_keeps_nothing() {
    for history in [History::KeepAll, History::KeepLast(1)] {
        let mut writer = WriterCore::new(WriterConfig {
            durability: Durability::TransientLocal,
            reliability: Reliability::BestEffort,
            ..keyed_config(history)
        });
        writer.match_reader(Time(0), reader(READER, false));
        for n in 0..10_000 {
            write_instance(&mut writer, n, 1000).unwrap();
            sent(&mut writer, Time(0));
        }
        assert!(writer.kept() <= 1 && writer.memory() < 1 << 20, "{}", writer.memory());
    }
}

#[test]
fn the_end_of_an_instance_has_no_room_where_it_is_refused() {
    let mut misses = 0;
    for max_bytes in 32..256 {
        let limited = WriterConfig { max_bytes: Some(max_bytes), ..keyed_config(History::KeepAll) };
        let mut writer = WriterCore::new(limited);
        writer.match_reader(Time(0), reader(READER, true));
        if write_instance(&mut writer, 1, 8).is_err() {
            continue;
        }
        if change(&mut writer, 1, ChangeKind::Disposed) == Err(WriteRefused::WindowFull) {
            assert!(!writer.has_room_for(key(1), 8 + END_LEN_MORE), "{max_bytes}");
            misses += u32::from(writer.has_room_for(key(1), 8));
        }
    }
    assert!(misses > 0, "for its payload alone there is room");
}

fn tabled(samples: usize, instances: usize) -> WriterCore {
    let limits = EndpointLimits { samples, instances, ..EndpointLimits::SMALL };
    let mut writer = WriterCore::new(WriterConfig {
        durability: Durability::TransientLocal,
        limits: Some(limits),
        ..keyed_config(History::KeepLast(1))
    });
    writer.match_reader(Time(0), reader(READER, true));
    writer
}

/// Sends everything, and has it acknowledged.
fn settle(writer: &mut WriterCore) {
    sent(writer, Time(0));
    let next = writer.last_sequence_number().0 + 1;
    acknack(writer, next as u32, next, &[]);
}

#[test]
fn an_instance_that_has_ended_gives_its_samples_to_others() {
    let mut writer = tabled(2, 2);
    write_instance(&mut writer, 1, 8).unwrap();
    write_instance(&mut writer, 2, 8).unwrap();
    settle(&mut writer);
    change(&mut writer, 1, ChangeKind::DisposedUnregistered).unwrap();
    sent(&mut writer, Time(0));
    assert_eq!(write_instance(&mut writer, 3, 8), Err(WriteRefused::LimitReached), "its reader may not know");
    assert!(!writer.has_room_for(key(3), 8));
    settle(&mut writer);
    assert!(writer.has_room_for(key(3), 8));
    write_instance(&mut writer, 3, 8).unwrap();
    settle(&mut writer);
    assert_eq!(write_instance(&mut writer, 4, 8), Err(WriteRefused::LimitReached), "both are alive");
    assert!(!writer.has_room_for(key(4), 8));
}

#[test]
fn instances_that_come_and_go_find_room_for_ever() {
    for end in [ChangeKind::Unregistered, ChangeKind::DisposedUnregistered] {
        let mut writer = tabled(16, 8);
        for n in 0..100 {
            write_instance(&mut writer, n, 8).unwrap();
            change(&mut writer, n, end).unwrap();
            settle(&mut writer);
        }
        assert!(writer.kept() <= 16, "{end:?}: {}", writer.kept());
    }
}

#[test]
fn an_instance_that_returns_when_the_table_is_full_keeps_its_place() {
    let mut writer = tabled(16, 2);
    for n in 0..4 {
        write_instance(&mut writer, n, 8).unwrap();
        change(&mut writer, n, ChangeKind::Unregistered).unwrap();
        settle(&mut writer);
    }
    for n in [0, 5] {
        write_instance(&mut writer, n, 8).unwrap();
        settle(&mut writer);
    }
    // Each of the two replaces its own sample.
    let kept = writer.kept();
    for n in [0, 5, 0] {
        write_instance(&mut writer, n, 8).unwrap();
        settle(&mut writer);
    }
    assert_eq!(writer.kept(), kept);
}

/// The list of ends does not grow, whichever instances end how often while their reader acknowledges nothing.
#[test]
fn ends_of_few_instances_take_no_more_memory_than_was_reserved() {
    for often in 1..150 {
        let limits = EndpointLimits { samples: 4, instances: 2, ..EndpointLimits::SMALL };
        let config = WriterConfig { limits: Some(limits), ..keyed_config(History::KeepLast(1)) };
        let mut writer = WriterCore::new(config);
        writer.match_reader(Time(0), reader(READER, true));
        let reserved = writer.instances.allocated();
        for n in (0..often).map(|_| 1).chain([2, 2]) {
            write_instance(&mut writer, n, 8).unwrap();
            change(&mut writer, n, ChangeKind::Unregistered).unwrap();
            sent(&mut writer, Time(0));
        }
        assert_eq!(writer.instances.allocated(), reserved, "{often}");
    }
}

#[test]
fn a_sample_that_was_not_sent_yet_is_replaced_when_the_writer_is_full() {
    let mut writer = tabled(2, 2);
    write_instance(&mut writer, 1, 8).unwrap();
    write_instance(&mut writer, 2, 8).unwrap();
    write_instance(&mut writer, 1, 8).unwrap();
    change(&mut writer, 2, ChangeKind::DisposedUnregistered).unwrap();
    settle(&mut writer);
    assert_eq!(writer.kept(), 2);
}
