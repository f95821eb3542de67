//! What policies have a reader do later: the last value of a burst, and samples of instances that have ended.

use core::time::Duration;

use super::policies::{STRONG, Source, WEAK, at, keyed, states, two_writers, values};
use super::*;
use crate::qos::{INFINITE, ReaderDataLifecycle};

const SEPARATION: Duration = Duration::from_millis(10);

fn filtering() -> ReaderConfig {
    ReaderConfig { minimum_separation: SEPARATION, ..keyed() }
}

/// When policies require something next.
fn due(reader: &ReaderCore) -> Option<Time> {
    reader.delivery.cache.enforced.as_ref().and_then(|enforced| enforced.next_at())
}

#[test]
fn the_last_value_of_a_burst_is_delivered_when_none_follows_for_the_separation() {
    let mut reader = two_writers(filtering());
    let mut writer = Source::new(WEAK);
    let first = writer.send(&mut reader, at(0), 1);
    assert_eq!(due(&reader), None);
    writer.send(&mut reader, at(2), 1);
    let last = writer.send(&mut reader, at(9), 1);
    let other = writer.send(&mut reader, at(9), 2);
    assert_eq!(due(&reader), Some(at(19)));
    assert!(reader.take_timeout().is_some_and(|next| next <= at(19)));
    assert_eq!(values(&mut reader), [first, other]);
    reader.handle_timeout(at(18));
    assert!(!reader.take_late_values());
    reader.handle_timeout(at(19));
    assert!(reader.take_late_values() && !reader.take_late_values());
    assert_eq!((values(&mut reader), reader.counters().samples_filtered), (vec![last], 1));
    // The separation begins again with the late value.
    writer.send(&mut reader, at(28), 1);
    assert_eq!(values(&mut reader), []);
    // A value that comes when the separation has ended is delivered at once, in place of the one that waits.
    let in_time = writer.send(&mut reader, at(29), 1);
    assert_eq!(values(&mut reader), [in_time]);
    reader.handle_timeout(at(100));
    assert_eq!((values(&mut reader), due(&reader)), (vec![], None));
}

#[test]
fn a_best_effort_reader_leaves_out_the_last_value_too() {
    let config = ReaderConfig { reliability: Reliability::BestEffort, ..filtering() };
    let mut reader = two_writers(config);
    let mut writer = Source::new(WEAK);
    let first = writer.send(&mut reader, at(0), 1);
    writer.send(&mut reader, at(1), 1);
    reader.handle_timeout(at(10));
    assert_eq!((values(&mut reader), reader.counters().samples_filtered), (vec![first], 1));
}

#[test]
fn the_last_value_comes_before_the_end_of_its_instance() {
    for status in [1, 2, 3] {
        let mut reader = two_writers(filtering());
        let mut writer = Source::new(WEAK);
        let first = writer.send(&mut reader, at(0), 1);
        let last = writer.send(&mut reader, at(1), 1);
        writer.end(&mut reader, at(2), 1, status);
        assert_eq!(values(&mut reader), [first, last, 0], "{status}");
        reader.handle_timeout(at(10));
        assert_eq!(values(&mut reader), []);
    }
    let mut reader = two_writers(filtering());
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    writer.send(&mut reader, at(1), 1);
    reader.unmatch_writer(at(2), WEAK);
    assert_eq!(states(&mut reader), [InstanceState::NotAliveNoWriters; 3]);
}

#[test]
fn a_late_value_waits_for_room_and_is_not_delivered_after_its_lifespan() {
    let mut reader = two_writers(ReaderConfig { max_samples: Some(2), ..filtering() });
    let mut writer = Source::new(WEAK);
    let first = writer.send(&mut reader, at(0), 1);
    let last = writer.send(&mut reader, at(1), 1);
    let other = writer.send(&mut reader, at(2), 2);
    reader.handle_timeout(at(11));
    assert_eq!((reader.available(), due(&reader)), (2, Some(at(21))));
    assert_eq!(values(&mut reader), [first, other]);
    reader.handle_timeout(at(21));
    assert_eq!(values(&mut reader), [last]);

    let mut reader = two_writers(filtering());
    reader.set_writer_policies(WEAK, WriterPolicies { lifespan: Duration::from_millis(5), strength: 0 });
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    writer.send(&mut reader, at(1), 1);
    reader.handle_timeout(at(11));
    assert_eq!((reader.available(), reader.counters().samples_expired), (0, 2));
}

#[test]
fn late_values_stay_whole_when_memory_is_compacted() {
    let mut reader = two_writers(ReaderConfig { history: History::KeepLast(1), ..filtering() });
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    let last = writer.send(&mut reader, at(1), 1);
    let mut others = Source::new(STRONG);
    for step in 0..20_000 {
        others.send(&mut reader, at(20 + 10 * step), 2);
    }
    reader.compact();
    reader.set_policies(at(300_000), INFINITE, Duration::ZERO, ReaderDataLifecycle::default());
    reader.handle_timeout(at(300_000));
    assert_eq!(values(&mut reader).last(), Some(&last), "without a separation, it is due at once");
}

fn purging(nowriter_ms: u64, disposed_ms: u64) -> ReaderConfig {
    let delay = |ms| if ms == u64::MAX { INFINITE } else { Duration::from_millis(ms) };
    let lifecycle = ReaderDataLifecycle {
        autopurge_nowriter_samples_delay: delay(nowriter_ms),
        autopurge_disposed_samples_delay: delay(disposed_ms),
    };
    ReaderConfig { lifecycle, ..keyed() }
}

#[test]
fn samples_of_a_disposed_instance_are_removed_after_the_delay() {
    let mut reader = two_writers(purging(u64::MAX, 10));
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    let other = writer.send(&mut reader, at(0), 2);
    writer.end(&mut reader, at(5), 1, 1);
    assert_eq!(due(&reader), Some(at(15)));
    reader.handle_timeout(at(14));
    assert!(reader.available() == 3 && !reader.take_removed());
    reader.handle_timeout(at(15));
    assert_eq!((reader.available(), reader.counters().samples_purged), (1, 2));
    assert!(reader.take_removed());
    assert_eq!(values(&mut reader), [other]);
    // Without writers is another state, for which there is no delay.
    writer.end(&mut reader, at(20), 2, 2);
    reader.handle_timeout(at(1000));
    assert_eq!(reader.available(), 1);
}

#[test]
fn samples_of_an_instance_without_writers_are_removed_after_the_delay() {
    let mut reader = two_writers(purging(10, u64::MAX));
    let (mut one, mut other) = (Source::new(WEAK), Source::new(STRONG));
    one.send(&mut reader, at(0), 1);
    one.send(&mut reader, at(0), 2);
    other.send(&mut reader, at(0), 2);
    reader.unmatch_writer(at(5), WEAK);
    assert_eq!(due(&reader), Some(at(15)));
    reader.handle_timeout(at(15));
    assert_eq!(reader.available(), 2, "the other instance has a writer");
    other.end(&mut reader, at(20), 2, 2);
    reader.handle_timeout(at(30));
    assert_eq!((reader.available(), reader.counters().samples_purged), (0, 5));
}

#[test]
fn an_instance_that_is_alive_again_keeps_its_samples() {
    let mut reader = two_writers(purging(10, 10));
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    writer.end(&mut reader, at(1), 1, 1);
    writer.send(&mut reader, at(5), 1);
    reader.handle_timeout(at(11));
    assert_eq!((reader.available(), due(&reader)), (3, None));
    // The delay begins with the last end.
    writer.end(&mut reader, at(20), 1, 1);
    reader.handle_timeout(at(29));
    assert_eq!(reader.available(), 4);
    reader.handle_timeout(at(30));
    assert_eq!(reader.available(), 0);
}

#[test]
fn policies_that_change_apply_to_instances_that_are_there() {
    let mut reader = two_writers(keyed());
    let (mut writer, lifecycle) = (Source::new(WEAK), ReaderDataLifecycle::default());
    writer.send(&mut reader, at(0), 1);
    writer.send(&mut reader, at(0), 2);
    writer.end(&mut reader, at(0), 2, 1);
    // A deadline begins for the instance that is alive.
    reader.set_policies(at(5), Duration::from_millis(10), Duration::ZERO, lifecycle);
    assert_eq!(due(&reader), Some(at(15)));
    reader.handle_timeout(at(15));
    assert_eq!(reader.take_deadline_missed().total_count, 1);
    reader.set_policies(at(16), INFINITE, Duration::ZERO, lifecycle);
    reader.handle_timeout(at(100));
    assert_eq!((reader.take_deadline_missed().total_count_change, due(&reader)), (0, None));
    // Samples of the one that has ended are removed.
    let delay = Duration::from_millis(10);
    let lifecycle = ReaderDataLifecycle { autopurge_disposed_samples_delay: delay, ..lifecycle };
    reader.set_policies(at(100), INFINITE, Duration::ZERO, lifecycle);
    reader.handle_timeout(at(110));
    assert_eq!((reader.available(), reader.counters().samples_purged), (1, 2));
}

#[test]
fn another_separation_applies_at_once_also_to_a_value_that_waits() {
    let mut reader = two_writers(filtering());
    let mut writer = Source::new(WEAK);
    let first = writer.send(&mut reader, at(0), 1);
    let waiting = writer.send(&mut reader, at(2), 1);
    assert_eq!(values(&mut reader), [first]);
    reader.set_policies(at(3), INFINITE, Duration::ZERO, ReaderDataLifecycle::default());
    reader.handle_timeout(at(3));
    assert_eq!(values(&mut reader), [waiting]);
    let all = [4, 4, 5].map(|ms| writer.send(&mut reader, at(ms), 1));
    assert_eq!(values(&mut reader), all);
    // With one again, the next value is delivered, and those after it wait.
    reader.set_policies(at(6), INFINITE, SEPARATION * 5, ReaderDataLifecycle::default());
    let next = writer.send(&mut reader, at(60), 1);
    writer.send(&mut reader, at(100), 1);
    assert_eq!(values(&mut reader), [next]);
    assert_eq!(due(&reader), Some(at(150)));
}

#[test]
fn the_delay_counts_from_the_first_end_of_an_instance() {
    let mut reader = two_writers(purging(50, 10));
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    writer.end(&mut reader, at(1), 1, 1);
    assert_eq!(due(&reader), Some(at(11)));
    writer.end(&mut reader, at(5), 1, 1);
    assert_eq!(due(&reader), Some(at(11)));
    reader.handle_timeout(at(11));
    assert_eq!((values(&mut reader), due(&reader)), (vec![], None));
}

#[test]
fn the_lifespan_of_a_value_that_finds_no_room_does_not_begin_again() {
    let mut config = filtering();
    config.max_samples = Some(1);
    let mut reader = two_writers(config);
    reader.set_writer_policies(WEAK, WriterPolicies { lifespan: Duration::from_millis(50), strength: 0 });
    let mut writer = Source::new(WEAK);
    let first = writer.send(&mut reader, at(0), 1);
    assert_eq!(values(&mut reader), [first]);
    writer.send(&mut reader, at(1), 1);
    // It takes the room while the other one is postponed.
    let other = writer.send(&mut reader, at(2), 2);
    (10..45).step_by(10).for_each(|ms| reader.handle_timeout(at(ms)));
    assert_eq!(values(&mut reader), [other]);
    reader.handle_timeout(at(60));
    assert_eq!((values(&mut reader), reader.counters().samples_expired), (vec![], 1));
}
