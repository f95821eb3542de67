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

/// Writes one sample every `interval` ns; a write takes 100 ns and a send `send_us` µs. Returns the
/// longest time that a sample waited in the writer.
fn longest_wait_on_schedule(interval: u64, send_us: u64) -> u64 {
    let mut writer = coalescing();
    let (mut now, mut first_waiting, mut longest) = (0, 0, 0);
    for n in 0..4_000 {
        now = (n * interval).max(now + 100);
        write(&mut writer, Time(now), &[0; 36]).unwrap();
        if !sent(&mut writer, Time(now)).is_empty() {
            // Skips the beginning, before coalescing has adapted.
            longest = if n > 400 { longest.max(now - first_waiting * interval) } else { 0 };
            first_waiting = n + 1;
            now += send_us * 1_000;
            writer.note_sent(Time(now));
            writer.note_send_time(Duration::from_micros(send_us));
        }
    }
    longest
}

#[test]
fn an_application_that_keeps_to_its_schedule_waits_for_little_more_than_the_send_before() {
    for interval in [250, 320, 500, 1_000] {
        let longest = longest_wait_on_schedule(interval, 3);
        // The bound: a send in progress, catching up with its samples, and the duration of one
        // send.
        assert!(longest <= 6_000 + 2 * interval, "{interval} ns apart: {longest} ns");
    }
    // A writer that is permanently behind fills its sends.
    let longest = longest_wait_on_schedule(90, 3);
    assert!(longest > 20_000, "{longest} ns");
}

#[test]
fn a_long_run_of_writes_is_looked_after_less_often() {
    let run = |writer: &mut WriterCore, from: u64, count: u64| {
        writer.note_send_time(Duration::from_micros(2));
        for n in 0..count {
            let now = Time(from + n * 100);
            write(writer, now, &[0; 36]).unwrap();
            // The last sample is held back.
            if n + 1 < count || !writer.has_unsent() {
                sent(writer, now);
            }
        }
        assert!(writer.has_unsent());
        writer.next_timeout().unwrap().0 - (from + (count - 1) * 100)
    };
    // 8 ms of writes without a pause.
    let mut writer = coalescing();
    let long = run(&mut writer, 0, 80_000);
    assert!((490_000..=500_000).contains(&long), "{long}");
    // A longer run does not extend the wait.
    let longest = run(&mut writer, 80_000 * 100, 320_000);
    assert!((990_000..=1_000_000).contains(&longest), "{longest}");
    // After a pause the wait is short again.
    sent(&mut writer, Time(41_000_000));
    let short = run(&mut writer, 42_000_000, 10_000);
    assert!((190_000..=200_000).contains(&short), "{short}");
    // A lower `delay_max` is respected.
    let coalescing = Some(Coalescing { delay_max: Duration::from_micros(300), ..Coalescing::default() });
    let mut strict = WriterCore::new(WriterConfig { coalescing, ..config(Reliability::BestEffort) });
    strict.match_reader(Time(0), reader(READER, false));
    let waits = run(&mut strict, 0, 80_000);
    assert!((290_000..=300_000).contains(&waits), "{waits}");
}
