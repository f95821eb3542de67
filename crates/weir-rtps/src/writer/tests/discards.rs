//! Readers that discard what is far behind a missing sample.

use super::*;
use crate::path::Path;
use crate::writer::reader_proxy::SentAgain;

const STUCK: Guid = Guid::new(GuidPrefix([3; 12]), READER.entity);

fn answer(writer: &mut WriterCore, now: Time, reader: Guid, count: u32, base: i64, missing: &[i64]) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    missing.iter().for_each(|sn| _ = state.insert(SequenceNumber(*sn)));
    let acknack = AckNack { reader: reader.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(now, reader, &acknack);
}

/// Sends what is due until then. Returns how many samples that were.
fn pass(writer: &mut WriterCore, until: Time) -> usize {
    let mut samples = 0;
    while let Some(now) = writer.next_timeout().filter(|at| *at <= until) {
        writer.handle_timeout(now);
        samples += sent(writer, now).iter().filter(|word| word.starts_with("DATA")).count();
    }
    samples
}

#[test]
fn a_best_effort_reader_takes_no_memory_for_what_it_discards() {
    for is_reliable in [false, true] {
        let mut writer = WriterCore::new(config(Reliability::Reliable));
        let cyclone = ReaderProxyConfig { vendor: VendorId::CYCLONE, ..reader(STUCK, is_reliable) };
        writer.match_reader(Time(0), cyclone);
        assert_eq!(writer.proxies[0].requested.changed().is_some(), is_reliable);
    }
}

#[test]
fn a_reader_that_discards_and_falls_silent_does_not_stop_a_keep_last_writer() {
    for is_answering in [false, true] {
        let mut writer = WriterCore::new(WriterConfig {
            history: History::KeepLast(1000),
            ..config(Reliability::Reliable)
        });
        writer.match_reader(Time(0), reader(READER, true));
        let path = Some(Path::new());
        let cyclone = ReaderProxyConfig { vendor: VendorId::CYCLONE, path, ..reader(STUCK, true) };
        writer.match_reader(Time(0), cyclone);
        let mut count = 1;
        answer(&mut writer, Time(0), READER, count, 1, &[]);
        answer(&mut writer, Time(0), STUCK, count, 1, &[]);
        sent(&mut writer, Time(0));
        (0..10).for_each(|_| _ = write(&mut writer, Time(0), &[0; 100]).unwrap());
        sent(&mut writer, Time(0));
        // It misses a sample, and acknowledges nothing from then on.
        answer(&mut writer, Time(1_000_000), STUCK, 2, 5, &[5]);
        let mut now = Time(2_000_000);
        pass(&mut writer, now);
        let mut arrived = 0;
        for second in 0..13 {
            for _ in 0..1000 {
                write(&mut writer, now, &[0; 100]).unwrap();
                arrived += sent(&mut writer, now).iter().filter(|word| word.starts_with("DATA")).count();
            }
            count += 1;
            let next = writer.unsent.0;
            answer(&mut writer, now, READER, count, next, &[]);
            if is_answering {
                answer(&mut writer, now, STUCK, 3 + second, 5, &[5]);
            }
            now = now + Duration::from_secs(1);
            arrived += pass(&mut writer, now);
        }
        assert_eq!(writer.unsent, writer.last_sequence_number().next(), "after {arrived} samples");
    }
}

/// It acknowledges a sample now and then, so that it may only be slow.
#[test]
fn a_reader_that_discards_and_goes_on_slowly_does_not_hold_up_others_of_a_keep_last_writer() {
    let mut writer =
        WriterCore::new(WriterConfig { history: History::KeepLast(10), ..config(Reliability::Reliable) });
    writer.match_reader(Time(0), reader(READER, true));
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), 7411)]);
    let cyclone = ReaderProxyConfig { vendor: VendorId::CYCLONE, destinations, ..reader(STUCK, true) };
    writer.match_reader(Time(0), ReaderProxyConfig { path: Some(Path::new()), ..cyclone });
    answer(&mut writer, Time(0), READER, 1, 1, &[]);
    answer(&mut writer, Time(0), STUCK, 1, 1, &[]);
    sent(&mut writer, Time(0));
    (0..20).for_each(|_| _ = write(&mut writer, Time(0), &[0; 100]).unwrap());
    sent(&mut writer, Time(0));
    let mut now = Time(1_000_000);
    answer(&mut writer, now, STUCK, 2, 15, &[15]);
    let mut newest = 0;
    for written in 0..5_000_u32 {
        let next = now + Duration::from_millis(10);
        let mut words = Vec::new();
        while let Some(at) = writer.next_timeout().filter(|at| *at <= next) {
            writer.handle_timeout(at);
            words.extend(sent(&mut writer, at));
        }
        now = next;
        let sn = write(&mut writer, now, &[0; 100]).unwrap();
        words.extend(sent(&mut writer, now));
        let numbers = words.iter().filter_map(|word| word.strip_prefix("DATA ")?.parse().ok());
        newest = numbers.fold(newest, i64::max);
        // It decides how long its round trip is, up to the most that others wait: 100 ms.
        assert!(sn.0 - newest <= 12, "{newest} is the last of {sn:?} that was sent, at {now:?}");
        let next = writer.unsent.0;
        answer(&mut writer, now, READER, 2 + written, next, &[]);
        if written % 500 == 0 {
            let base = 16 + i64::from(written / 500);
            answer(&mut writer, now, STUCK, 3 + written, base, &[base]);
        }
    }
}

#[test]
fn requests_that_creep_make_a_writer_go_back_once() {
    let mut writer =
        WriterCore::new(WriterConfig { history: History::KeepLast(10_000), ..config(Reliability::Reliable) });
    let path = Some(Path::new());
    writer
        .match_reader(Time(0), ReaderProxyConfig { vendor: VendorId::CYCLONE, path, ..reader(STUCK, true) });
    answer(&mut writer, Time(0), STUCK, 1, 1, &[]);
    sent(&mut writer, Time(0));
    let mut now = Time(0);
    while writer.unsent.0 < 1000 {
        write(&mut writer, now, &[0; 10]).unwrap();
        let acknowledged = writer.unsent.0.min(100);
        answer(&mut writer, now, STUCK, 1 + acknowledged as u32, acknowledged, &[]);
        now = now + Duration::from_millis(1);
        pass(&mut writer, now);
    }
    // What is requested last: one sample, or everything behind it.
    let ask = |writer: &mut WriterCore, now: Time, missing: i64| {
        answer(writer, now, STUCK, 1000 + missing as u32, missing, &[missing]);
        writer.proxies[0].requested.samples.last().copied()
    };
    let last = writer.unsent.prev();
    assert_eq!(ask(&mut writer, now, 100), Some(last));
    for missing in 101..120 {
        assert_eq!(ask(&mut writer, now, missing), Some(SequenceNumber(missing)), "not at once");
    }
    assert_eq!(ask(&mut writer, now + Duration::from_millis(1), 120), Some(last));
}

#[test]
fn what_is_remembered_of_repairs_is_limited() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    let path = Some(Path::new());
    writer.match_reader(Time(0), ReaderProxyConfig { path, ..reader(READER, true) });
    let before = writer.memory();
    let sent = SentAgain { at: Time(0), bytes: 100, heartbeats: 0 };
    let mut most = 0;
    for number in 1..=200_000 {
        let what = (SequenceNumber(1 + number / 1000), (number % 1000) as u32);
        assert!(writer.proxies[0].accepts_request(Time(0), what));
        writer.proxies[0].note_repair(what, Some(sent));
        most = most.max(writer.memory() - before);
    }
    assert!((1_000_000..10_000_000).contains(&most), "{most} bytes");
}
