//! How long automatic coalescing holds samples back.

use super::*;

fn coalescing() -> WriterCore {
    let coalescing = Some(Coalescing::default());
    let mut writer = WriterCore::new(WriterConfig { coalescing, ..config(Reliability::BestEffort) });
    writer.match_reader(Time(0), reader(READER, false));
    writer
}

#[test]
fn samples_wait_for_others_no_longer_than_three_sends_take() {
    for (gap, together) in [(100, 61), (500, 13), (1_500, 5)] {
        let mut writer = coalescing();
        let mut queued_at = None;
        let mut largest = 0;
        for n in 1..500 {
            let now = n * gap;
            writer.note_send_time(Duration::from_micros(2));
            write(&mut writer, Time(now), &[0; 36]).unwrap();
            let since = *queued_at.get_or_insert(now);
            let count = sent(&mut writer, Time(now)).len();
            if count > 0 {
                assert!(now - since <= 6_000, "a sample waited for {} ns", now - since);
                queued_at = None;
                largest = largest.max(count);
            }
        }
        assert_eq!(largest, together, "{gap} ns apart");
    }
}

#[test]
fn a_send_that_was_interrupted_makes_no_sample_wait() {
    let mut writer = coalescing();
    for _ in 0..100 {
        writer.note_send_time(Duration::from_millis(5));
    }
    for n in 0..4 {
        write(&mut writer, Time(n * 100), &[0; 36]).unwrap();
        sent(&mut writer, Time(n * 100));
    }
    assert!(writer.has_unsent());
    assert!(!writer.should_send(Time(29_000)));
    assert!(writer.should_send(Time(31_000)));
}

#[test]
fn the_end_of_a_burst_waits_no_longer_than_allowed() {
    for (count, wait_max) in [(4, 200_000), (400, 200_000), (20_000, 200_000)] {
        let mut writer = coalescing();
        writer.note_send_time(Duration::from_micros(2));
        let mut last = 0;
        for n in 0..count {
            last = n * 100;
            write(&mut writer, Time(last), &[0; 36]).unwrap();
            if n < count - 1 {
                sent(&mut writer, Time(last));
            }
        }
        let at = writer.next_timeout().unwrap();
        assert!(at <= Time(last + wait_max), "{count} samples: {at:?}");
        assert!(!sent(&mut writer, at).is_empty() && !writer.has_unsent());
    }
}

#[test]
fn a_burst_whose_readers_are_gone_needs_no_timer() {
    let mut writer = coalescing();
    for n in 0..10 {
        write(&mut writer, Time(n * 100), &[0; 36]).unwrap();
        sent(&mut writer, Time(n * 100));
    }
    assert!(writer.has_unsent());
    writer.unmatch_reader(Time(1_000), READER);
    write(&mut writer, Time(1_000), &[0; 36]).unwrap();
    assert!(sent(&mut writer, Time(1_000)).is_empty());
    assert_eq!(writer.next_timeout(), None);
}
