//! Large samples to readers that never answer.

use super::*;

fn best_effort(receive_buffer: Option<u32>) -> WriterCore {
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    writer.match_reader(Time(0), ReaderProxyConfig { receive_buffer, ..reader(READER, false) });
    writer
}

/// Returns how many fragments are sent now.
fn fragments(writer: &mut WriterCore, now: Time) -> usize {
    let words = sent(writer, now);
    assert!(words.iter().all(|word| word == "DATA_FRAG"), "{words:?}");
    words.len()
}

/// Writes a sample and sends all of it. Returns how many fragments are sent at a time, and how long
/// it takes.
fn parts(writer: &mut WriterCore, len: usize) -> (Vec<usize>, Duration) {
    write(writer, Time(0), &vec![7; len]).unwrap();
    let mut now = Time(0);
    let mut parts = vec![fragments(writer, now)];
    while let Some(until) = writer.paused_until() {
        assert!(writer.is_amid_sample() && until > now);
        assert_eq!(writer.next_timeout(), Some(until));
        let early = Time(until.0 - 1);
        assert!(!writer.can_go_on(early) && writer.can_go_on(until));
        assert_eq!(fragments(writer, early), 0);
        now = until;
        writer.handle_timeout(now);
        parts.push(fragments(writer, now));
    }
    assert!(!writer.is_amid_sample() && !writer.has_unsent());
    assert_eq!((writer.next_timeout(), writer.history.len()), (None, 0));
    (parts, now.since(Time(0)))
}

#[test]
fn a_long_sample_leaves_in_parts_that_the_smallest_socket_holds() {
    let stock = Some(212_992);
    let (sent, time) = parts(&mut best_effort(stock), 1_000_000);
    assert_eq!(sent, [[2].as_slice(), &[1; 14]].concat());
    // 1.1 MB as the kernel charges it, a quarter of the buffer every 250 µs.
    assert!(time > Duration::from_micros(4_900) && time < Duration::from_micros(5_500), "{time:?}");
    // A reader that announces no buffer size counts as having the default, and a tiny buffer slows
    // the writer only up to a limit.
    assert_eq!(parts(&mut best_effort(None), 1_000_000), (sent.clone(), time));
    let (_, longest) = parts(&mut best_effort(Some(1)), 1_000_000);
    assert!(longest < 3 * time, "{longest:?}");
    // The smallest of several buffers counts.
    let mut writer = best_effort(Some(8 << 20));
    let other = Guid::new(GuidPrefix([3; 12]), READER.entity);
    writer.match_reader(Time(0), ReaderProxyConfig { receive_buffer: stock, ..reader(other, false) });
    assert_eq!(parts(&mut writer, 1_000_000), (sent, time));
    writer.unmatch_reader(Time(0), other);
    assert_eq!(parts(&mut writer, 1_000_000), (vec![16], Duration::ZERO));
}

#[test]
fn what_half_of_the_smallest_socket_holds_leaves_at_once() {
    for (receive_buffer, len) in [(Some(212_992), 128_000), (None, 128_000), (Some(8 << 20), 3_700_000)] {
        let (sent, time) = parts(&mut best_effort(receive_buffer), len);
        assert_eq!((sent.len(), time), (1, Duration::ZERO), "{len}");
    }
    // The next sample waits for the pauses of the one before it.
    let mut writer = best_effort(None);
    write(&mut writer, Time(0), &[0; 200_000]).unwrap();
    write(&mut writer, Time(0), &[0; 8]).unwrap();
    assert_eq!(sent(&mut writer, Time(0)), ["DATA_FRAG", "DATA_FRAG"]);
    let until = writer.paused_until().unwrap();
    assert_eq!(sent(&mut writer, until), ["DATA_FRAG"]);
    let until = writer.paused_until().unwrap();
    assert_eq!(sent(&mut writer, until), ["DATA_FRAG", "DATA 2"]);
}

#[test]
fn a_sample_whose_readers_leave_is_given_up_and_the_next_one_is_whole() {
    for is_reliable in [false, true] {
        let reliability = if is_reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let narrow = ReaderProxyConfig { receive_buffer: Some(0), ..reader(READER, is_reliable) };
        let mut writer = WriterCore::new(config(reliability));
        writer.match_reader(Time(0), narrow.clone());
        sent(&mut writer, Time(0));
        write(&mut writer, Time(0), &[0; 1_000_000]).unwrap();
        sent(&mut writer, Time(0));
        assert!(writer.is_amid_sample());
        writer.unmatch_reader(Time(0), READER);
        assert_eq!(sent(&mut writer, Time(0)), [""; 0]);
        assert!(!writer.is_amid_sample() && writer.next_timeout().is_none());
        writer.match_reader(Time(0), ReaderProxyConfig { reliable: false, ..narrow });
        let (parts, _) = parts(&mut writer, 200_000);
        assert_eq!(parts.iter().sum::<usize>(), 4);
    }
}

#[test]
fn a_sample_that_waited_for_a_reliable_reader_goes_on_without_it() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), ReaderProxyConfig { receive_buffer: Some(0), ..reader(READER, true) });
    let other = Guid::new(GuidPrefix([3; 12]), READER.entity);
    writer.match_reader(Time(0), reader(other, false));
    sent(&mut writer, Time(0));
    write(&mut writer, Time(0), &[0; 1_000_000]).unwrap();
    sent(&mut writer, Time(0));
    assert!(writer.is_amid_sample() && !writer.can_go_on(Time(0)) && writer.paused_until().is_none());
    writer.unmatch_reader(Time(5), READER);
    assert_eq!(writer.next_timeout(), Some(Time(5)));
    writer.handle_timeout(Time(5));
    assert!(fragments(&mut writer, Time(5)) > 10);
    assert!(!writer.is_amid_sample());
}
