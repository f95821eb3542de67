//! What a writer sends, and does not send again, on a path whose round trip is known.

use super::*;
use weir_wire::{Echo, Received};

use crate::path::Path;
use crate::receiver::submessages::Moment;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Acknowledges what is before `base`, and requests the samples in `missing`. The reader has got to sample `last`.
fn answer(writer: &mut WriterCore, now: u64, count: u32, base: i64, missing: &[i64], last: i64) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    missing.iter().for_each(|sn| _ = state.insert(SequenceNumber(*sn)));
    state.cover(SequenceNumber(last));
    let acknack = AckNack { reader: READER.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(Time(now), READER, &acknack);
}

/// A writer that has sent ten samples at 20 ms.
fn writer(path: Option<&Path>) -> WriterCore {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), ReaderProxyConfig { path: path.cloned(), ..reader(READER, true) });
    sent(&mut writer, Time(0));
    answer(&mut writer, 10 * MS, 1, 1, &[], 0);
    for _ in 0..10 {
        write(&mut writer, Time(20 * MS), &[0; 8]).unwrap();
    }
    assert!(sent(&mut writer, Time(20 * MS)).contains(&"DATA 10".to_owned()));
    writer
}

fn repairs(writer: &mut WriterCore, now: u64) -> Vec<String> {
    sent(writer, Time(now)).into_iter().filter(|word| word.starts_with("DATA")).collect()
}

#[test]
fn what_may_be_in_flight_is_not_sent_again() {
    let path = Path::new();
    let mut writer = writer(Some(&path));
    answer(&mut writer, 30 * MS, 2, 3, &[3], 10);
    assert_eq!(repairs(&mut writer, 30 * MS), ["DATA 3"]);
    assert_eq!(path.report().round_trip_min, Some(Duration::from_millis(10)));
    answer(&mut writer, 34 * MS, 3, 3, &[3, 5], 10);
    assert_eq!(repairs(&mut writer, 34 * MS), ["DATA 5"]);
    answer(&mut writer, 40 * MS, 4, 3, &[3, 5], 10);
    assert_eq!(repairs(&mut writer, 40 * MS), ["DATA 3"]);
    let report = path.report();
    // Each repair is a DATA with INFO_DST and perhaps a HEARTBEAT; the first flight is not repaired.
    assert!(report.repaired_bytes >= 3 * 92 && report.repaired_bytes <= 3 * 200, "{report:?}");
    assert_eq!(report.sent_bytes, 10 * 92 + report.repaired_bytes);
    assert_eq!(report.queue_time(), Some(Duration::ZERO));
}

#[test]
fn without_a_path_every_request_is_met() {
    let mut writer = writer(None);
    for count in 2..5 {
        answer(&mut writer, 30 * MS + u64::from(count), count, 3, &[3], 10);
        assert_eq!(repairs(&mut writer, 30 * MS + u64::from(count)), ["DATA 3"]);
    }
}

#[test]
fn what_has_passed_and_what_was_lost_is_counted_once_for_all_writers() {
    let path = Path::new();
    let mut writers = [writer(Some(&path)), writer(Some(&path))];
    let report = path.report();
    assert_eq!((report.in_flight_bytes, report.lost_bytes), (report.sent_bytes, 0));
    writers.iter_mut().for_each(|writer| answer(writer, 30 * MS, 2, 3, &[3], 10));
    let report = path.report();
    // Ten samples each, with a HEARTBEAT behind the last.
    assert_eq!((report.sent_bytes, report.in_flight_bytes), (2 * 10 * (28 + 56 + 8), 0));
    assert_eq!(report.lost_bytes, 2 * (28 + 56 + 8));
}

/// Before, each sample counted as long as its datagram is up to there: a lost datagram of ten as fifty.
#[test]
fn a_lost_batch_counts_as_the_datagram_that_it_was() {
    let path = Path::new();
    let batch = BatchPolicy { max_bytes: 8192, max_samples: 10, max_delay: Duration::MAX };
    let config = WriterConfig { batch: Some(batch), ..config(Reliability::Reliable) };
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), ReaderProxyConfig { path: Some(path.clone()), ..reader(READER, true) });
    sent(&mut writer, Time(0));
    answer(&mut writer, 10 * MS, 1, 1, &[], 0);
    // The last one stays in the next batch, which is open.
    for _ in 0..11 {
        write(&mut writer, Time(20 * MS), &[0; 100]).unwrap();
    }
    sent(&mut writer, Time(20 * MS));
    let batch = path.report().sent_bytes;
    assert!((10 * 100..10 * 150).contains(&batch), "{batch}");
    answer(&mut writer, 30 * MS, 2, 1, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 10);
    assert_eq!(path.report().lost_bytes, batch);
}

#[test]
fn only_the_path_that_takes_too_little_is_the_limit() {
    let other = Guid::new(GuidPrefix([3; 12]), EntityId::user_reader(1, false));
    let [slow, fast] = [Path::with_rate_max(100_000), Path::new()];
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), 7411)]);
    let second = ReaderProxyConfig { destinations, path: Some(fast.clone()), ..reader(other, true) };
    writer.match_reader(Time(0), ReaderProxyConfig { path: Some(slow.clone()), ..reader(READER, true) });
    writer.match_reader(Time(0), second);
    // With what the kernel charges for them, they are less than the first flight of the other path.
    for _ in 0..7 {
        write(&mut writer, Time(20 * MS), &[0; 1000]).unwrap();
    }
    sent(&mut writer, Time(20 * MS));
    assert!(writer.has_unsent() && slow.report().waits > 0, "{:?}", slow.report());
    assert_eq!(fast.report().waits, 0);
}

/// Its answers were ignored as a whole, so that all that it had received stayed in flight.
#[test]
fn a_reader_that_is_not_sent_more_repairs_still_shows_how_far_it_has_got() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    let path = Some(Path::new());
    writer.match_reader(Time(0), ReaderProxyConfig { path, ..reader(READER, true) });
    sent(&mut writer, Time(0));
    answer(&mut writer, 10 * MS, 1, 1, &[], 0);
    for _ in 0..10 {
        write(&mut writer, Time(20 * MS), &[0; 1000]).unwrap();
    }
    sent(&mut writer, Time(20 * MS));
    let is_refused = |writer: &WriterCore| writer.counters().repairs_held_back > 0;
    for count in 2..1000 {
        if is_refused(&writer) {
            break;
        }
        let now = 20 * MS + u64::from(count) * 20 * MS;
        answer(&mut writer, now, count, 1, &[1, 2, 3, 4, 5, 6], 6);
        sent(&mut writer, Time(now));
    }
    assert!(is_refused(&writer));
    let (_, before) = writer.window();
    answer(&mut writer, 21_000 * MS, 1000, 1, &[1, 2, 3, 4, 5, 6], 9);
    assert!(writer.window().1 < before / 2, "{before} {:?}", writer.window());
}

#[test]
fn readers_at_one_address_are_one_copy_on_the_path_and_others_more() {
    let other = Guid::new(READER.prefix, EntityId::user_reader(2, false));
    for (port, copies) in [(7411, 1), (7413, 2)] {
        let path = Path::new();
        let mut writer = WriterCore::new(config(Reliability::Reliable));
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)]);
        let second = ReaderProxyConfig { destinations, path: Some(path.clone()), ..reader(other, true) };
        writer.match_reader(Time(0), ReaderProxyConfig { path: Some(path.clone()), ..reader(READER, true) });
        writer.match_reader(Time(0), second);
        write(&mut writer, Time(0), &[0; 8]).unwrap();
        sent(&mut writer, Time(0));
        assert_eq!(path.report().sent_bytes, copies * (28 + 56 + 8), "port {port}");
    }
}

#[test]
fn what_was_sent_to_this_host_does_not_count_on_a_path() {
    let other = Guid::new(READER.prefix, EntityId::user_reader(2, false));
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    writer.match_reader(Time(0), reader(other, false));
    sent(&mut writer, Time(0));
    let fill = |_: &mut [u8]| Ok::<_, core::convert::Infallible>(0);
    for now in 1..100 {
        let payload = DirectPayload { len: 8, bulk: &[] };
        assert_eq!(writer.write_direct(Time(now * MS), STAMP, payload, fill, |_| {}), Ok(true));
    }
    let path = Path::new();
    writer.match_reader(Time(MS), ReaderProxyConfig { path: Some(path.clone()), ..reader(READER, false) });
    write(&mut writer, Time(200 * MS), &[0; 8]).unwrap();
    sent(&mut writer, Time(200 * MS));
    assert_eq!(path.report().sent_bytes, 28 + 56 + 8);
}

/// A thread that receives a request answers it, and leaves the samples that wait for the path to the timer: this timer
/// must not get lost, even if it is due by then.
#[test]
fn an_answer_leaves_what_waits_for_the_path_to_its_timer() {
    let path = Path::with_rate_max(1_000_000);
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), ReaderProxyConfig { path: Some(path), ..reader(READER, true) });
    sent(&mut writer, Time(0));
    answer(&mut writer, 10 * MS, 1, 1, &[], 0);
    for _ in 0..50 {
        write(&mut writer, Time(20 * MS), &[0; 1000]).unwrap();
    }
    sent(&mut writer, Time(20 * MS));
    let waits_until = writer.next_timeout().unwrap();
    assert!(writer.has_unsent() && (Time(20 * MS)..Time(25 * MS)).contains(&waits_until), "{waits_until:?}");
    let now = 24 * MS;
    answer(&mut writer, now, 2, 1, &[1], 1);
    let mut out = Outbox::new();
    writer.poll_answers(Time(now), &mut out);
    assert!(writer.has_unsent());
    assert!(writer.next_timeout().is_some_and(|at| at <= Time(now)), "{:?}", writer.next_timeout());
}

/// A best-effort writer to a path on which 100 kB are sent per second.
fn best_effort(history: History) -> WriterCore {
    let config = WriterConfig { history, ..config(Reliability::BestEffort) };
    let mut writer = WriterCore::new(config);
    let path = Some(Path::with_rate_max(100_000));
    writer.match_reader(Time(0), ReaderProxyConfig { path, segment_max: 1472, ..reader(READER, false) });
    writer
}

/// What is sent until nothing is left, with the time of each word in milliseconds.
fn sent_in_time(writer: &mut WriterCore) -> Vec<(u64, String)> {
    let mut now = Time(SECOND);
    let mut all = Vec::new();
    for _ in 0..10_000 {
        writer.handle_timeout(now);
        all.extend(sent(writer, now).into_iter().map(|word| ((now.0 - SECOND) / MS, word)));
        let Some(next) = writer.next_timeout() else { break };
        now = next.max(Time(now.0 + 1));
    }
    all
}

#[test]
fn best_effort_keeps_to_the_rate_and_leaves_out_the_oldest() {
    let mut writer = best_effort(History::KeepAll);
    for _ in 0..100 {
        write(&mut writer, Time(SECOND), &[0; 936]).unwrap();
    }
    let sent = sent_in_time(&mut writer);
    let samples: Vec<_> = sent.iter().filter(|(_, word)| word.starts_with("DATA")).collect();
    // What leaves at once, and a tenth of a second.
    assert!((10..20).contains(&samples.len()), "{sent:?}");
    assert!(sent.last().is_some_and(|(ms, word)| *ms <= 120 && word == "DATA 100"), "{sent:?}");
    assert_eq!(writer.counters().samples_left_out, 100 - samples.len() as u64);
    assert!(!writer.has_unsent());
}

#[test]
fn what_each_reader_is_not_sent_counts_once_for_it() {
    const WRITTEN: u64 = 400;
    let other = Guid::new(GuidPrefix([3; 12]), EntityId::user_reader(1, false));
    for history in [History::KeepAll, History::KeepLast(3)] {
        for slow in [100_000, 30_000] {
            let mut writer = WriterCore::new(WriterConfig { history, ..config(Reliability::BestEffort) });
            for (guid, host, rate) in [(READER, 1, 100_000), (other, 2, slow)] {
                let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, host), 7411)]);
                // Readers of another engine are not asked what has arrived.
                let (path, vendor) = (Some(Path::with_rate_max(rate)), VendorId::CYCLONE);
                let reader = reader(guid, false);
                let reader = ReaderProxyConfig { destinations, path, vendor, segment_max: 1472, ..reader };
                writer.match_reader(Time(0), reader);
            }
            let (mut now, mut count, mut written) = (Time(SECOND), 0, 0);
            while written < WRITTEN || writer.next_timeout().is_some() {
                // Five times what the faster path carries.
                if written < WRITTEN && now >= Time(SECOND + written * 2 * MS) {
                    write(&mut writer, now, &[0; 936]).unwrap();
                    written += 1;
                }
                writer.handle_timeout(now);
                let mut out = Outbox::new();
                writer.poll_transmit(now, &mut out);
                out.for_each_datagram(|to, _| count += to.len() as u64);
                let next_write = (written < WRITTEN).then_some(Time(SECOND + written * 2 * MS));
                let Some(next) = writer.next_timeout().into_iter().chain(next_write).min() else { break };
                now = next.max(Time(now.0 + 1));
            }
            let left_out = writer.counters().samples_left_out;
            assert_eq!(count + left_out, 2 * WRITTEN, "{history:?}, {slow}: {left_out} left out");
            assert!(left_out > WRITTEN, "{history:?}, {slow}: {left_out} left out");
        }
    }
}

/// The last one would otherwise reach it when the path is given up: after 1.2 s.
#[test]
fn a_reader_without_a_path_does_not_wait_for_a_reader_that_answers_nothing() {
    let other = Guid::new(GuidPrefix([3; 12]), EntityId::user_reader(1, false));
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), 7411)]);
    let far = ReaderProxyConfig { destinations, path: Some(Path::new()), ..reader(other, false) };
    writer.match_reader(Time(0), reader(READER, false));
    writer.match_reader(Time(0), ReaderProxyConfig { segment_max: 1472, ..far });
    sent(&mut writer, Time(SECOND));
    for _ in 0..20 {
        write(&mut writer, Time(SECOND), &[0; 1000]).unwrap();
        sent(&mut writer, Time(SECOND));
    }
    assert!(writer.has_unsent());
    let next = writer.next_timeout().expect("it waits");
    assert!(next <= Time(SECOND + 6 * MS), "{next:?}");
    writer.handle_timeout(next);
    sent(&mut writer, next);
    assert!(!writer.has_unsent());
}

#[test]
fn a_large_sample_that_is_replaced_counts_once_as_not_sent_whole() {
    let keyed = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    let config =
        WriterConfig { history: History::KeepLast(1), ..WriterConfig::new(keyed, Reliability::BestEffort) };
    let mut writer = WriterCore::new(config);
    let path = Some(Path::with_rate_max(1_000_000));
    writer.match_reader(Time(0), ReaderProxyConfig { path, segment_max: 1472, ..reader(READER, false) });
    let samples_sent = |writer: &WriterCore| writer.unsent.0 - writer.pacing.receipts.not_whole;
    let before = samples_sent(&writer);
    let small = [0; 936];
    for (key, payload) in [(1, &[0; 20_000][..]), (2, &small), (3, &[0; 20_000]), (3, &[0; 20_000])] {
        write_keyed(&mut writer, Time(SECOND), Some([key; 16]), payload).unwrap();
    }
    let mut now = Time(SECOND);
    while writer.unsent.0 < 5 {
        sent(&mut writer, now);
        now = writer.next_timeout().map_or(now, |next| next.max(Time(now.0 + 1)));
    }
    assert_eq!(samples_sent(&writer), before + 1);
}

#[test]
fn a_large_best_effort_sample_leaves_at_the_rate_and_whole() {
    let mut writer = best_effort(History::KeepAll);
    write(&mut writer, Time(SECOND), &[0; 50_000]).unwrap();
    let first = sent(&mut writer, Time(SECOND)).iter().filter(|word| word.starts_with("DATA")).count();
    assert!(first < 10 && writer.is_amid_sample() && !writer.can_go_on(Time(SECOND + MS)), "{first}");
    // None of these is sent: they would wait for half a second.
    for ms in 1..200 {
        write(&mut writer, Time(SECOND + ms * MS), &[0; 936]).unwrap();
    }
    let rest = sent_in_time(&mut writer);
    let fragments = rest.iter().filter(|(_, word)| word.starts_with("DATA_FRAG")).count();
    assert_eq!(first + fragments, 50_000usize.div_ceil(1400), "{rest:?}");
    let end = rest.iter().rfind(|(_, word)| word.starts_with("DATA_FRAG"));
    assert!(end.is_some_and(|(ms, _)| (400..600).contains(ms)), "{rest:?}");
    // What follows it leaves at the rate, too.
    let last = rest.iter().rfind(|(_, word)| word.starts_with("DATA")).filter(|(_, word)| word == "DATA 200");
    assert!(last.is_some_and(|(ms, _)| (540..640).contains(ms)), "{rest:?}");
    let left_out = writer.counters().samples_left_out;
    assert!((180..200).contains(&left_out), "{left_out}: {rest:?}");
}

#[test]
fn an_echo_of_long_ago_measures_nothing() {
    let path = Path::new();
    let mut writer = writer(Some(&path));
    answer(&mut writer, 30 * MS, 2, 3, &[3], 10);
    repairs(&mut writer, 30 * MS);
    let (count, answers_after) = (writer.heartbeat.count, path.lock().answer_time());
    let echo = |count, delay_us| Echo { reader: READER.entity, writer: WRITER.entity, count, delay_us };
    // After two hours, of which the count of microseconds holds less.
    writer.handle_echo(Time(7_200 * SECOND), READER, &echo(count, u32::MAX));
    writer.handle_echo(Time(7_200 * SECOND), READER, &echo(count, 0));
    // It has not waited so long.
    writer.handle_echo(Time(50 * MS), READER, &echo(count, 400_000));
    assert_eq!(path.lock().answer_time(), answers_after);
    writer.handle_echo(Time(55 * MS), READER, &echo(count, 5_000));
    assert_eq!(path.lock().answer_time(), Some(Duration::from_millis(20)));
}

/// Lets a thread that sends hand out two samples. Returns what another thread answers to a request meanwhile.
fn answered_beside_sender(is_beside: bool) -> Vec<String> {
    let mut writer = writer(None);
    (0..3).for_each(|_| _ = write(&mut writer, Time(MS), &[0; 8]).unwrap());
    sent(&mut writer, Time(MS));
    (0..2).for_each(|_| _ = write(&mut writer, Time(MS), &[0; 8]).unwrap());
    assert_eq!(sent(&mut writer, Time(MS)), ["DATA 14", "DATA 15"]);
    acknack(&mut writer, 2, 2, &[2]);
    let mut out = Outbox::new();
    if is_beside {
        writer.poll_answers_beside_sender(Time(2 * MS), &mut out);
    } else {
        writer.poll_answers(Time(2 * MS), &mut out);
    }
    words(&out)
}

/// The HEARTBEAT may overtake what the other thread sends, so that the reader would request all of it.
#[test]
fn an_answer_does_not_announce_what_another_thread_is_sending() {
    assert_eq!(answered_beside_sender(true), ["DATA 2", "INFO_DST", "HEARTBEAT 2..13"]);
    assert_eq!(answered_beside_sender(false), ["DATA 2", "INFO_DST", "HEARTBEAT 2..15"]);
}

/// The number of a question, taken for that of a sample, would keep the path from being measured until then.
#[test]
fn a_late_answer_to_a_question_marks_no_sample() {
    let path = Some(Path::new());
    let far = |guid, is_reliable| ReaderProxyConfig { path: path.clone(), ..reader(guid, is_reliable) };
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), far(READER, false));
    write(&mut writer, Time(0), &[0; 100]).unwrap();
    sent(&mut writer, Time(0));
    let mut out = Outbox::new();
    (0..50).for_each(|_| writer.ask_for_receipts(Time(MS), &mut out));
    let other = Guid::new(GuidPrefix([3; 12]), EntityId::user_reader(1, false));
    writer.match_reader(Time(2 * MS), far(other, true));
    writer.handle_receipt(Moment::at(Time(3 * MS)), READER, 50, Received::default());
    assert_eq!(writer.pacing.uses[0].passed, (SequenceNumber::ZERO, 0));
}
