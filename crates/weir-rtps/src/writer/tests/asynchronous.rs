//! Samples handed out by another thread than the one that writes them.

use super::*;

fn asynchronous(history: History, reliability: Reliability) -> WriterCore {
    asynchronous_with(WriterConfig { history, ..config(reliability) })
}

pub(super) fn asynchronous_with(config: WriterConfig) -> WriterCore {
    let is_reliable = config.reliability == Reliability::Reliable;
    let mut writer = WriterCore::new(WriterConfig { is_asynchronous: true, ..config });
    writer.match_reader(Time(0), reader(READER, is_reliable));
    sent(&mut writer, Time(0));
    writer
}

/// A writer of batches that keeps the last sample.
fn batching_the_last(reliability: Reliability, max_samples: u32, max_delay: Duration) -> WriterCore {
    let batch = Some(BatchPolicy { max_bytes: 8192, max_samples, max_delay });
    asynchronous_with(WriterConfig { history: History::KeepLast(1), batch, ..config(reliability) })
}

/// Writes as a thread does whose samples another one sends.
fn write(writer: &mut WriterCore, now: Time, payload: &[u8]) -> Result<SequenceNumber, WriteRefused> {
    let written = super::write(writer, now, payload);
    writer.replace_unsent();
    written
}

fn write_key(writer: &mut WriterCore, key: u8, len: usize) {
    write_keyed(writer, Time(0), Some([key; 16]), &vec![key; len]).unwrap();
    writer.replace_unsent();
}

/// Returns the samples sent now.
fn samples(writer: &mut WriterCore, now: Time) -> Vec<String> {
    let mut words = sent(writer, now);
    words.retain(|word| word.starts_with("DATA"));
    words
}

/// Writes until there is no room. Returns the number of samples written.
fn fill(writer: &mut WriterCore, len: usize) -> u64 {
    let payload = vec![7; len];
    let mut written = 0;
    while written < 100_000 && write(writer, Time(0), &payload).is_ok() {
        written += 1;
    }
    written
}

#[test]
fn samples_without_acknowledgement_are_bounded_until_they_are_sent() {
    let mut writer = asynchronous(History::KeepAll, Reliability::BestEffort);
    let one = charge(compose::datagram_len(32));
    for _ in 0..3 {
        assert_eq!(fill(&mut writer, 32), config::UNSENT_MAX_BYTES / one);
        assert!(!writer.has_room_for(None, 32) && !writer.makes_room_by_sending());
        let last = writer.last_sequence_number();
        assert!(!writer.is_handed_out(last));
        let left = samples(&mut writer, Time(0));
        assert_eq!(left.len() as u64, config::UNSENT_MAX_BYTES / one);
        assert_eq!(left.last(), Some(&format!("DATA {last}")));
        assert!(writer.is_handed_out(last) && writer.makes_room_by_sending());
        assert!(writer.has_room_for(None, 32));
        assert_eq!(writer.history.len(), 0);
    }
    // A sample longer than the limit for unsent bytes has room if nothing else is unsent.
    assert!(writer.has_room_for(None, 100 << 20));
    assert_eq!(fill(&mut writer, 100 << 20), 1);
}

#[test]
fn what_is_not_sent_counts_as_in_flight_where_readers_acknowledge() {
    let mut writer = asynchronous(History::KeepAll, Reliability::Reliable);
    let window = writer.window().0;
    let written = fill(&mut writer, 32);
    assert_eq!(written, window / charge(compose::datagram_len(32)));
    let sent_so_far = samples(&mut writer, Time(0)).len() as u64;
    assert_eq!(sent_so_far, written);
    // Sending made no room; an acknowledgement does.
    assert_eq!((fill(&mut writer, 32), writer.makes_room_by_sending()), (0, false));
    acknack(&mut writer, 1, written as i64 + 1, &[]);
    assert!(fill(&mut writer, 32) >= written);
}

#[test]
fn a_thread_that_writes_itself_is_bounded_by_what_it_sends() {
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    writer.match_reader(Time(0), reader(READER, false));
    assert!((0..100_000).all(|_| super::write(&mut writer, Time(0), &[0; 32]).is_ok()));
}

#[test]
fn keep_last_replaces_what_was_not_sent() {
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        let mut writer = asynchronous(History::KeepLast(2), reliability);
        assert_eq!(fill(&mut writer, 32), 100_000);
        assert!(writer.history.len() == 2 && writer.memory() < 1 << 20, "{}", writer.memory());
        assert!(!writer.is_handed_out(SequenceNumber(99_999)));
        assert!(writer.is_handed_out(SequenceNumber(99_998)), "replaced samples count as handed out");
        assert_eq!(samples(&mut writer, Time(0)), ["DATA 99999", "DATA 100000"]);
        assert!(samples(&mut writer, Time(0)).is_empty());
    }
}

#[test]
fn a_gap_covers_replaced_samples() {
    let mut writer = asynchronous(History::KeepLast(1), Reliability::Reliable);
    (0..5).for_each(|_| _ = write(&mut writer, Time(0), &[0; 8]).unwrap());
    assert_eq!(samples(&mut writer, Time(0)), ["DATA 5"]);
    acknack(&mut writer, 1, 1, &[1, 2, 3, 4]);
    assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "GAP 1 to 5/0:", "HEARTBEAT 5..5"]);
}

#[test]
fn keep_last_replaces_by_instance() {
    let keyed = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    for depth in [1, 2] {
        let mut writer = asynchronous_with(WriterConfig {
            history: History::KeepLast(depth),
            ..WriterConfig::new(keyed, Reliability::Reliable)
        });
        [1, 2, 1, 1, 3, 1].into_iter().for_each(|key| write_key(&mut writer, key, 8));
        let expected: &[&str] = match depth {
            1 => &["DATA 2", "DATA 5", "DATA 6"],
            _ => &["DATA 2", "DATA 4", "DATA 5", "DATA 6"],
        };
        assert_eq!(samples(&mut writer, Time(0)), expected);
        assert_eq!(writer.history.len(), expected.len());
    }
}

#[test]
fn a_large_sample_that_is_on_its_way_is_not_replaced() {
    let keyed = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    for is_keyed in [false, true] {
        let guid = if is_keyed { keyed } else { WRITER };
        let mut writer = asynchronous_with(WriterConfig {
            durability: Durability::TransientLocal,
            ..WriterConfig::new(guid, Reliability::Reliable)
        });
        writer.match_reader(Time(0), ReaderProxyConfig { receive_buffer: Some(0), ..reader(READER, true) });
        sent(&mut writer, Time(0));
        write_key(&mut writer, 1, 1_000_000);
        assert!(samples(&mut writer, Time(0)).len() < 5 && writer.is_amid_sample());
        for _ in 0..1_000 {
            write_key(&mut writer, 1, 100_000);
        }
        assert_eq!(writer.history.len(), 2, "the one in transmission, and the last");
        // No reader is left to slow it down: the rest of the sample leaves, and then the last one.
        writer.unmatch_reader(Time(0), READER);
        writer.match_reader(Time(0), reader(READER, false));
        writer.handle_timeout(Time(1));
        let rest = samples(&mut writer, Time(1));
        assert!(rest.len() > 12 && !writer.is_amid_sample() && !writer.has_unsent(), "{}", rest.len());
        assert_eq!((writer.history.len(), writer.history.first().0), (1, 1001), "{is_keyed}");
    }
}

#[test]
fn a_batch_of_which_only_the_end_is_kept_leaves_once() {
    let mut writer = batching_the_last(Reliability::BestEffort, 10, Duration::from_millis(1));
    (0..25).for_each(|_| _ = write(&mut writer, Time(0), &[0; 8]).unwrap());
    assert!(samples(&mut writer, Time(0)).is_empty() && !writer.is_transmission_due(Time(0)));
    let at = writer.next_timeout().unwrap();
    assert!(writer.is_transmission_due(at));
    assert_eq!(samples(&mut writer, at), ["DATA 21", "DATA 22", "DATA 23", "DATA 24", "DATA 25"]);
    assert!(!writer.has_unsent() && !writer.is_transmission_due(at));
}

/// RTPS 2.5, 8.3.8.6.3: a HEARTBEAT whose first sample is behind the one after its last is invalid.
#[test]
fn a_heartbeat_is_valid_when_the_head_of_the_open_batch_was_replaced() {
    let mut writer = batching_the_last(Reliability::Reliable, 1000, Duration::from_secs(1));
    acknack(&mut writer, 1, 1, &[]);
    write(&mut writer, Time(1), &[0; 8]).unwrap();
    writer.end_burst(Time(1), &mut Outbox::new());
    (0..3).for_each(|_| _ = write(&mut writer, Time(2), &[0; 8]).unwrap());
    let at = writer.next_timeout().unwrap();
    writer.handle_timeout(at);
    assert_eq!(sent(&mut writer, at), ["HEARTBEAT 4..3"]);
    // The reader has everything before the batch.
    acknack(&mut writer, 2, 4, &[]);
    let end = Time(2) + Duration::from_secs(1);
    while let Some(at) = writer.next_timeout().filter(|at| *at < end) {
        writer.handle_timeout(at);
        assert_eq!(sent(&mut writer, at), [""; 0]);
    }
}

#[test]
fn the_thread_that_publishes_does_not_wait_for_more_of_a_burst_but_of_a_batch() {
    let coalescing = Some(Coalescing::default());
    let batch = Some(BatchPolicy { max_bytes: 1000, max_samples: 4, max_delay: Duration::from_millis(1) });
    for batch in [None, batch] {
        let config = WriterConfig { coalescing, batch, ..config(Reliability::BestEffort) };
        let mut writer = asynchronous_with(config);
        let now = Time(1000);
        (0..10).for_each(|_| _ = write(&mut writer, now, &[0; 8]).unwrap());
        assert!(samples(&mut writer, now).is_empty() && !writer.is_transmission_due(now));
        let mut out = Outbox::new();
        writer.poll_published(now, &mut out);
        let left: u16 = out.items.iter().map(|item| item.samples).sum();
        assert_eq!(left, if batch.is_some() { 8 } else { 10 });
        writer.release_held();
        assert_eq!(writer.is_transmission_due(now), batch.is_some());
        out.clear();
        writer.poll_published(now, &mut out);
        assert_eq!(out.items.len(), usize::from(batch.is_some()));
        assert!(!writer.has_unsent());
    }
}
