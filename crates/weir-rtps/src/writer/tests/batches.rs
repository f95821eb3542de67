//! Samples collected in one message.

use super::*;

fn batching(reliability: Reliability, max_bytes: usize) -> WriterCore {
    let batch = BatchPolicy { max_bytes, max_samples: 1000, max_delay: Duration::from_millis(1) };
    let mut writer = WriterCore::new(WriterConfig { batch: Some(batch), ..config(reliability) });
    writer.match_reader(Time(0), reader(READER, reliability == Reliability::Reliable));
    sent(&mut writer, Time(0));
    writer
}

fn coalescing(max_bytes: usize, max_delay: Duration) -> WriterCore {
    let batch = BatchPolicy { max_bytes, max_samples: u32::MAX, max_delay };
    let coalescing = Some(Coalescing::default());
    let config = WriterConfig { batch: Some(batch), coalescing, ..config(Reliability::BestEffort) };
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), reader(READER, false));
    writer
}

#[test]
fn a_batch_leaves_when_the_next_sample_does_not_fit_or_its_time_has_come() {
    // 32 bytes of headers, 24 + 36 for each sample: four of them are 272 bytes.
    let mut writer = batching(Reliability::BestEffort, 272 + 59);
    for n in 1..=4 {
        write(&mut writer, Time(n), &[0; 36]).unwrap();
        assert!(sent(&mut writer, Time(n)).is_empty());
    }
    write(&mut writer, Time(5), &[0; 36]).unwrap();
    let mut out = Outbox::new();
    writer.poll_transmit(Time(5), &mut out);
    assert_eq!((out.items.len(), out.items[0].samples, out.items[0].datagrams), (1, 4, 1));
    out.for_each_datagram(|_, datagram| assert_eq!(datagram.len(), 272));
    let at = writer.next_timeout().unwrap();
    assert_eq!(at, Time(5) + Duration::from_millis(1));
    assert_eq!(sent(&mut writer, at), ["DATA 5"]);
    write(&mut writer, at, &[0; 36]).unwrap();
    out.clear();
    writer.flush(at, &mut out);
    assert_eq!(out.items.len(), 1);
    assert!(!writer.has_unsent() && writer.next_timeout().is_none());
}

/// A writer whose reader has acknowledged that it has everything.
fn batching_reliably(max_samples: u32, max_delay: Duration) -> WriterCore {
    let batch = BatchPolicy { max_bytes: 8192, max_samples, max_delay };
    let mut writer = WriterCore::new(WriterConfig { batch: Some(batch), ..config(Reliability::Reliable) });
    writer.match_reader(Time(0), reader(READER, true));
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    writer
}

/// Runs the timers until `end`. Returns what leaves, and when.
fn leaves_until(writer: &mut WriterCore, end: Time) -> Vec<(Time, Vec<String>)> {
    let mut left = Vec::new();
    while let Some(at) = writer.next_timeout().filter(|at| *at <= end) {
        writer.handle_timeout(at);
        left.push((at, sent(writer, at)));
    }
    left.retain(|(_, words)| !words.is_empty());
    left
}

/// However often HEARTBEATs are due until then.
#[test]
fn a_reliable_batch_waits_for_its_maximum_delay_and_heartbeats_announce_what_left_before() {
    let max_delay = 20 * config::HEARTBEAT_DELAY_MIN;
    let mut writer = batching_reliably(1000, max_delay);
    write(&mut writer, Time(1), &[0; 8]).unwrap();
    let left = leaves_until(&mut writer, Time(1) + max_delay);
    assert_eq!(left, [(Time(1) + max_delay, vec!["DATA 1".to_owned()])]);
    // The next batch is open when the timer of the first one expires.
    let second = Time(2) + max_delay;
    write(&mut writer, second, &[0; 8]).unwrap();
    let left = leaves_until(&mut writer, Time(1) + 2 * max_delay);
    assert!(left.len() > 1 && left.iter().all(|(_, words)| *words == ["HEARTBEAT 1..1"]), "{left:?}");
    let now = second + max_delay;
    assert!(left[0].0 < Time(1) + max_delay + 2 * config::HEARTBEAT_DELAY_MIN, "{left:?}");
    acknack(&mut writer, 2, 2, &[]);
    writer.handle_timeout(now);
    assert_eq!(sent(&mut writer, now)[0], "DATA 2");
}

/// Although the timer had been put off to the end of the delay.
#[test]
fn a_batch_that_leaves_early_is_asked_about_soon() {
    for max_delay in [Duration::from_secs(1), Duration::MAX] {
        let mut writer = batching_reliably(2, max_delay);
        for (number, is_flushed) in [(1, true), (2, false)] {
            let now = Time(0) + number * Duration::from_millis(100);
            write(&mut writer, now, &[0; 8]).unwrap();
            let later = now + Duration::from_millis(50);
            assert_eq!(leaves_until(&mut writer, later), []);
            if is_flushed {
                writer.end_burst(later, &mut Outbox::new());
            } else {
                // The first of the next batch ends this one.
                (0..2).for_each(|_| _ = write(&mut writer, later, &[0; 8]).unwrap());
                assert_eq!(sent(&mut writer, later), ["DATA 2", "DATA 3"]);
            }
            let left = leaves_until(&mut writer, later + 2 * config::HEARTBEAT_DELAY_MIN);
            let last = if is_flushed { 1 } else { 3 };
            let asked = |(_, words): &(Time, Vec<String>)| words[0] == format!("HEARTBEAT {number}..{last}");
            assert!(left.first().is_some_and(asked), "{max_delay:?}: {left:?}");
            acknack(&mut writer, number + 1, last + 1, &[]);
        }
    }
}

#[test]
fn any_sample_of_a_batch_can_be_repaired_and_a_batch_is_charged_as_one_datagram() {
    let mut writer = batching(Reliability::Reliable, 8192);
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    for _ in 0..200 {
        write(&mut writer, Time(0), &[0; 36]).unwrap();
    }
    let mut out = Outbox::new();
    writer.flush(Time(0), &mut out);
    let samples: u16 = out.items.iter().map(|item| item.samples).sum();
    assert_eq!((out.items.len(), samples), (2, 200));
    assert!(writer.window().1 < 26_000, "{:?}", writer.window());
    acknack(&mut writer, 2, 150, &[150, 151, 199]);
    let answer = sent(&mut writer, Time(0));
    for sample in ["DATA 150", "DATA 151", "DATA 199"] {
        assert!(answer.iter().any(|sent| sent == sample), "{sample} in {answer:?}");
    }
    acknack(&mut writer, 3, 201, &[]);
    assert_eq!((writer.window().1, writer.history.len()), (0, 0));
}

#[test]
fn full_batches_of_a_burst_leave_by_one_send() {
    let mut writer = coalescing(8192, Duration::from_millis(1));
    let (mut sends, mut datagrams, mut samples) = (0, 0_u64, 0_u64);
    let mut out = Outbox::new();
    for n in 0..100_000 {
        write(&mut writer, Time(n * 100), &[0; 36]).unwrap();
        writer.poll_transmit(Time(n * 100), &mut out);
        sends += out.items.len();
        datagrams += out.items.iter().map(|item| u64::from(item.datagrams)).sum::<u64>();
        samples += out.items.iter().map(|item| u64::from(item.samples)).sum::<u64>();
        // After the send, the block is unshared.
        out.clear();
    }
    assert!(samples > 98_000 && samples / datagrams == 136, "{samples} samples in {datagrams}");
    assert!(datagrams / sends as u64 >= 5, "{datagrams} datagrams in {sends} sends");
}

/// Adds a sample to the open batch.
fn extend(writer: &mut WriterCore, payload: &[u8]) -> Option<SequenceNumber> {
    let fill = |room: &mut [u8]| {
        room.copy_from_slice(payload);
        Ok::<(), ()>(())
    };
    writer.extend_batch(payload.len(), None, fill).unwrap()
}

/// Returns everything that the writer sends, byte by byte.
fn datagrams(writer: &mut WriterCore, now: Time) -> Vec<Vec<u8>> {
    let mut out = Outbox::new();
    writer.poll_transmit(now, &mut out);
    let mut all = Vec::new();
    out.for_each_datagram(|_, datagram| all.push(datagram.to_vec()));
    all
}

#[test]
fn a_batch_has_the_same_bytes_whichever_way_samples_are_added() {
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        let mut writers = [(); 2].map(|()| batching(reliability, 1000));
        let mut added = 0;
        let mut sent = 0;
        for n in 0..500_u64 {
            let payload = vec![n as u8; 4 + n as usize % 50];
            let [one, other] = &mut writers;
            write(one, Time(n), &payload).unwrap();
            match extend(other, &payload) {
                Some(sn) => {
                    assert_eq!(sn, one.last_sequence_number());
                    added += 1;
                }
                None => _ = write(other, Time(n), &payload).unwrap(),
            }
            let left = datagrams(one, Time(n));
            assert_eq!(datagrams(other, Time(n)), left, "sample {n}");
            sent += left.len();
        }
        assert!(added > 450 && sent > 20, "{added} added, {sent} sent");
        let [one, other] = &mut writers;
        let at = one.next_timeout().unwrap();
        assert_eq!(other.next_timeout(), Some(at));
        assert_eq!(datagrams(one, at), datagrams(other, at));
        assert_eq!(one.window(), other.window());
    }
}

#[test]
fn nothing_is_added_where_there_is_no_batch_or_no_room() {
    let mut writer = batching(Reliability::Reliable, 300);
    assert_eq!(extend(&mut writer, &[0; 36]), None, "no batch was begun");
    write(&mut writer, Time(0), &[0; 36]).unwrap();
    assert_eq!(extend(&mut writer, &[0; 36]), Some(SequenceNumber(2)));
    assert_eq!(extend(&mut writer, &[0; 200]), None, "it is too long");
    assert_eq!(writer.extend_batch(36, None, |_| Err("no value")), Err("no value"));
    assert_eq!(writer.last_sequence_number(), SequenceNumber(2));
    assert_eq!(extend(&mut writer, &[0; 36]), Some(SequenceNumber(3)));
    let mut out = Outbox::new();
    writer.flush(Time(0), &mut out);
    assert_eq!(extend(&mut writer, &[0; 36]), None, "it was sent");
    // Memory being sent from does not change.
    write(&mut writer, Time(0), &[0; 36]).unwrap();
    let block = out.items[0].slice.clone();
    writer.flush(Time(0), &mut out);
    assert!(block.is_some() && extend(&mut writer, &[0; 36]).is_none());
}

#[test]
fn a_batch_that_is_overdue_is_sent_although_the_burst_could_wait_longer() {
    let mut writer = coalescing(8192, Duration::from_micros(50));
    for n in 0..10 {
        write(&mut writer, Time(n * 100), &[0; 36]).unwrap();
        assert!(sent(&mut writer, Time(n * 100)).is_empty());
    }
    let at = writer.next_timeout().unwrap();
    assert!(at <= Time(50_000), "{at:?}");
    assert_eq!(sent(&mut writer, at).len(), 10);
    assert_eq!(writer.next_timeout(), None);
}

#[test]
fn the_timer_of_a_batch_that_is_filled_quickly_is_that_of_the_batch() {
    let mut writer = coalescing(8192, Duration::from_millis(10));
    for n in 0..10 {
        write(&mut writer, Time(n * 100), &[0; 36]).unwrap();
        assert!(sent(&mut writer, Time(n * 100)).is_empty());
    }
    // Nothing can be sent earlier, so a timer that expired earlier would be due again at once.
    assert_eq!(writer.next_timeout(), Some(Time(0) + Duration::from_millis(10)));
}

#[test]
fn a_full_batch_waits_for_the_burst_no_longer_than_a_batch_may() {
    let max_delay = Duration::from_micros(50);
    // Four samples fill a message, 272 bytes. A message is found full when the fifth sample is
    // written.
    let mut writer = coalescing(272, max_delay);
    for n in 0..=48 {
        write(&mut writer, Time(n * 1_000), &[0; 36]).unwrap();
        assert!(sent(&mut writer, Time(n * 1_000)).is_empty());
    }
    // The writer stops. The full messages do not wait for the one begun last.
    let at = writer.next_timeout().unwrap();
    assert!(at <= Time(4_000) + max_delay, "{at:?}");
    assert_eq!(sent(&mut writer, at).len(), 48);
    let at = writer.next_timeout().unwrap();
    assert_eq!(at, Time(48_000) + max_delay);
    assert_eq!(sent(&mut writer, at), ["DATA 49"]);
}

#[test]
fn samples_that_were_added_without_the_clock_are_counted_as_far_as_numbers_go() {
    let mut writer = batching(Reliability::BestEffort, 8192);
    write(&mut writer, Time(0), &[0; 36]).unwrap();
    writer.burst.untimed = u32::MAX;
    assert_eq!(extend(&mut writer, &[0; 36]), Some(SequenceNumber(2)));
}

/// Makes the path to the reader narrower.
fn limit_segments(writer: &mut WriterCore, segment_max: u16) {
    let destinations = reader(READER, true).destinations;
    writer.move_reader(Time(0), READER, destinations, None, segment_max, None);
}

#[test]
fn a_batch_ends_where_a_datagram_would_not_fit_the_path() {
    let mut writer = batching(Reliability::Reliable, 8192);
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    limit_segments(&mut writer, 1472);
    for _ in 0..100 {
        write(&mut writer, Time(0), &[0; 36]).unwrap();
    }
    let mut out = Outbox::new();
    writer.flush(Time(0), &mut out);
    let mut lengths = Vec::new();
    out.for_each_datagram(|_, datagram| lengths.push(datagram.len()));
    // 32 bytes of headers and 60 for each sample: 23 of them, and room for a HEARTBEAT.
    assert_eq!(lengths.iter().max(), Some(&(32 + 23 * 60)), "{lengths:?}");
}

#[test]
fn there_is_no_room_for_a_large_sample_where_a_write_of_it_is_refused() {
    let mut writer = batching(Reliability::Reliable, 8192);
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    limit_segments(&mut writer, 1472);
    while writer.window().0 - writer.window().1 > 30_000 {
        write(&mut writer, Time(0), &[0; 1_000]).unwrap();
        sent(&mut writer, Time(0));
    }
    // Its fragments are charged 34 560 bytes, and a quarter of the window has to be free. A single
    // datagram would be charged 23 323 bytes.
    assert_eq!(write(&mut writer, Time(0), &[0; 20_000]), Err(WriteRefused::WindowFull));
    assert!(!writer.has_room_for(None, 20_000), "{:?}", writer.window());
}
