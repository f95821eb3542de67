use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_wire::{
    AckNack, EntityId, Guid, GuidPrefix, Message, SequenceNumber, SequenceNumberSet, Submessage, Timestamp,
    VendorId,
};

use super::*;
use crate::config;
use crate::outbox::Outbox;
use crate::qos::{Durability, History, Reliability};
use crate::time::Time;
use crate::window::charge;

mod asynchronous;
mod batches;
mod bursts;
mod content_filter;
mod crowds;
mod direct;
mod discards;
mod ecn;
mod expected_qos;
mod filtered_link;
mod group_repairs;
mod inactivity;
mod limits;
mod pacing;
mod paths;
mod pauses;
mod presented;
mod regular;
mod restarts;
mod service;
mod sparse;
mod timed;

pub(super) const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
pub(super) const READER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, false));
pub(super) const STAMP: Stamp = Stamp { timestamp: Timestamp { seconds: 1, fraction: 0 }, key: None };

fn config(reliability: Reliability) -> WriterConfig {
    WriterConfig { history: History::KeepAll, ..WriterConfig::new(WRITER, reliability) }
}

pub(super) fn reader(guid: Guid, reliable: bool) -> ReaderProxyConfig {
    ReaderProxyConfig {
        guid,
        reliable,
        wants_history: false,
        destinations: Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]),
        group: None,
        vendor: VendorId::WEIR,
        receive_buffer: Some(8 << 20),
        segment_max: u16::MAX,
        path: None,
    }
}

pub(super) fn write(
    writer: &mut WriterCore,
    now: Time,
    payload: &[u8],
) -> Result<SequenceNumber, WriteRefused> {
    write_keyed(writer, now, None, payload)
}

fn write_keyed(
    writer: &mut WriterCore,
    now: Time,
    key: Option<[u8; 16]>,
    payload: &[u8],
) -> Result<SequenceNumber, WriteRefused> {
    let change = Change { kind: ChangeKind::Alive, key, payload };
    writer.write_change(now, Some(STAMP.timestamp), change)
}

/// Returns every submessage that the writer sends now, in words.
fn sent(writer: &mut WriterCore, now: Time) -> Vec<String> {
    let mut out = Outbox::new();
    writer.poll_transmit(now, &mut out);
    words(&out)
}

/// Returns every submessage in an outbox, in words.
fn words(out: &Outbox) -> Vec<String> {
    let mut words = Vec::new();
    out.for_each_datagram(|_, datagram| {
        let message = Message::parse(datagram).unwrap();
        words.extend(message.submessages().map(|submessage| match submessage.unwrap() {
            Submessage::Data(data) => format!("DATA {}", data.sequence_number),
            Submessage::Heartbeat(heartbeat) => format!("HEARTBEAT {}..{}", heartbeat.first, heartbeat.last),
            Submessage::Gap(gap) => format!("GAP {} to {}", gap.start, gap.list),
            Submessage::InfoTimestamp(_) => String::new(),
            other => other.to_string().split(' ').next().unwrap_or_default().to_owned(),
        }));
    });
    words.retain(|word| !word.is_empty());
    words
}

pub(super) fn acknack(writer: &mut WriterCore, count: u32, base: i64, missing: &[i64]) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    missing.iter().for_each(|sn| _ = state.insert(SequenceNumber(*sn)));
    let acknack = AckNack { reader: READER.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(Time(1), READER, &acknack);
}

#[test]
fn a_sample_leaves_at_once_and_a_best_effort_writer_keeps_nothing() {
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    writer.match_reader(Time(0), reader(READER, false));
    assert_eq!(write(&mut writer, Time(0), b"\0\x01\0\0abc"), Ok(SequenceNumber(1)));
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 1"]);
    assert_eq!(writer.history.len(), 0);
    assert_eq!(writer.next_timeout(), None);
}

#[test]
fn payloads_are_padded_to_four_bytes() {
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    writer.match_reader(Time(0), reader(READER, false));
    let _ = write(&mut writer, Time(0), &[0xff; 9]);
    let mut out = Outbox::new();
    writer.poll_transmit(Time(0), &mut out);
    out.for_each_datagram(|_, datagram| {
        assert_eq!(datagram.len(), 56 + 12);
        assert_eq!(datagram[56 + 9..], [0; 3]);
    });
}

#[test]
fn missing_samples_are_sent_again_and_samples_that_are_gone_become_a_gap() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "HEARTBEAT 1..0"]);
    for _ in 0..5 {
        write(&mut writer, Time(0), &[0; 8]).unwrap();
    }
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 1", "DATA 2", "DATA 3", "DATA 4", "DATA 5"]);
    acknack(&mut writer, 1, 3, &[3, 5]);
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 3", "DATA 5", "INFO_DST", "HEARTBEAT 3..5"]);
    acknack(&mut writer, 2, 6, &[]);
    assert!(writer.is_acknowledged(SequenceNumber(5)));
    assert_eq!(writer.history.len(), 0);
    // A reader matched later requests the first five.
    let late = Guid::new(GuidPrefix([3; 12]), READER.entity);
    writer.match_reader(Time(0), reader(late, true));
    sent(&mut writer, Time(0));
    let mut state = SequenceNumberSet::new(SequenceNumber(1));
    state.insert(SequenceNumber(2));
    let request = AckNack { reader: late.entity, writer: WRITER.entity, state, count: 1, is_final: true };
    writer.handle_acknack(Time(1), late, &request);
    assert_eq!(sent(&mut writer, Time(1)), ["INFO_DST", "HEARTBEAT 6..5", "GAP 1 to 6/0:"]);
}

#[test]
fn an_acknack_with_the_count_of_the_one_before_asks_for_more_and_acknowledges_nothing() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    (0..5).for_each(|_| _ = write(&mut writer, Time(0), &[0; 8]));
    sent(&mut writer, Time(0));
    acknack(&mut writer, 7, 2, &[2]);
    acknack(&mut writer, 7, 4, &[4, 5]);
    assert_eq!(sent(&mut writer, Time(1))[..3], ["DATA 2", "DATA 4", "DATA 5"]);
    assert!(writer.is_acknowledged(SequenceNumber(1)) && !writer.is_acknowledged(SequenceNumber(2)));
}

#[test]
fn a_volatile_reader_gets_heartbeats_that_say_where_it_begins_until_it_answers() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    (0..3).for_each(|_| _ = write(&mut writer, Time(0), &[0; 8]));
    writer.match_reader(Time(0), reader(READER, true));
    assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "HEARTBEAT 4..3"]);
    (0..2).for_each(|_| _ = write(&mut writer, Time(0), &[0; 8]));
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 4", "DATA 5"]);
    // No HEARTBEAT may suggest that earlier samples are meant for the reader, however long it
    // takes.
    let at = writer.next_timeout().unwrap();
    writer.handle_timeout(at);
    assert_eq!(sent(&mut writer, at), ["INFO_DST", "HEARTBEAT 4..3"]);
    // An ACKNACK that only requests a HEARTBEAT is no answer.
    let question = AckNack {
        reader: READER.entity,
        writer: WRITER.entity,
        state: SequenceNumberSet::new(SequenceNumber(1)),
        count: 0,
        is_final: false,
    };
    writer.handle_acknack(at, READER, &question);
    assert_eq!(sent(&mut writer, at), ["INFO_DST", "HEARTBEAT 4..3"]);
    acknack(&mut writer, 1, 4, &[]);
    assert_eq!(sent(&mut writer, at), ["INFO_DST", "HEARTBEAT 4..5"]);
    acknack(&mut writer, 2, 4, &[4, 5]);
    assert_eq!(sent(&mut writer, at), ["DATA 4", "DATA 5", "INFO_DST", "HEARTBEAT 4..5"]);
}

#[test]
fn old_and_senseless_acknowledgements_are_ignored() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    (0..5).for_each(|_| _ = write(&mut writer, Time(0), &[0; 8]));
    sent(&mut writer, Time(0));
    acknack(&mut writer, 7, 3, &[]);
    acknack(&mut writer, 7, 6, &[]);
    acknack(&mut writer, 6, 6, &[]);
    acknack(&mut writer, 8, 1_000_000, &[]);
    assert!(writer.is_acknowledged(SequenceNumber(2)) && !writer.is_acknowledged(SequenceNumber(3)));
    assert_eq!(writer.counters().acknacks_ignored, 3);
}

#[test]
fn a_full_window_refuses_and_an_acknowledgement_makes_room() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    let mut written = 0;
    let refused = loop {
        match write(&mut writer, Time(0), &[0; 1000]) {
            Ok(_) => written += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, WriteRefused::WindowFull);
    assert_eq!(written, config::WINDOW_INITIAL_BYTES / charge(1056));
    let last = sent(&mut writer, Time(0)).pop().unwrap();
    assert!(last.starts_with("HEARTBEAT"), "the answer to it makes room: {last}");
    assert_eq!(writer.lagging_readers().collect::<Vec<_>>(), [READER]);
    acknack(&mut writer, 1, written as i64 + 1, &[]);
    assert!(write(&mut writer, Time(0), &[0; 1000]).is_ok());
    assert!(writer.window().0 > config::WINDOW_INITIAL_BYTES);
}

#[test]
fn unanswered_heartbeats_back_off_and_an_acknowledged_writer_is_silent() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    acknack(&mut writer, 1, 1, &[]);
    let _ = write(&mut writer, Time(0), &[0; 8]);
    sent(&mut writer, Time(0));
    let mut times = Vec::new();
    for _ in 0..12 {
        let at = writer.next_timeout().unwrap();
        writer.handle_timeout(at);
        assert_eq!(sent(&mut writer, at), ["HEARTBEAT 1..1"]);
        times.push(at);
    }
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert_eq!(gaps[0], config::HEARTBEAT_DELAY_MIN * 2);
    assert_eq!(gaps[10], config::HEARTBEAT_DELAY_MAX);
    acknack(&mut writer, 2, 2, &[]);
    assert_eq!(writer.next_timeout(), None);
    assert!(sent(&mut writer, Time(1)).is_empty());
}

#[test]
fn keep_last_replaces_what_was_sent_and_never_blocks() {
    let mut writer =
        WriterCore::new(WriterConfig { history: History::KeepLast(2), ..config(Reliability::Reliable) });
    writer.match_reader(Time(0), reader(READER, true));
    sent(&mut writer, Time(0));
    for _ in 0..10_000 {
        write(&mut writer, Time(0), &[0; 1000]).unwrap();
        assert!(sent(&mut writer, Time(0))[0].starts_with("DATA"));
    }
    assert_eq!(writer.history.len(), 2);
    acknack(&mut writer, 1, 9_998, &[9_998, 9_999]);
    let answer = sent(&mut writer, Time(0));
    assert_eq!(answer, ["DATA 9999", "INFO_DST", "GAP 1 to 9999/0:", "HEARTBEAT 9999..10000"]);
}

#[test]
fn keep_last_counts_per_instance() {
    let keyed = Guid::new(WRITER.prefix, EntityId::user_writer(1, true));
    let config =
        WriterConfig { history: History::KeepLast(1), ..WriterConfig::new(keyed, Reliability::Reliable) };
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), reader(READER, true));
    for key in [1, 2, 1, 1] {
        let change = Change { kind: ChangeKind::Alive, key: Some([key; 16]), payload: &[0; 8] };
        writer.write_change(Time(0), Some(STAMP.timestamp), change).unwrap();
    }
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 1, &[1, 2, 3, 4]);
    let answer = sent(&mut writer, Time(0));
    assert_eq!(answer, ["DATA 2", "DATA 4", "INFO_DST", "GAP 1 to 2/0:", "GAP 3 to 4/0:", "HEARTBEAT 2..4"]);
}

/// The end of an instance leaves in one datagram. That IP cuts it is better than that it fails.
#[test]
fn what_is_kept_for_readers_elsewhere_has_short_fragments_and_keys_may_be_long() {
    let config = WriterConfig { kept_datagram_max: 1472, ..config(Reliability::Reliable) };
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), reader(READER, true));
    write(&mut writer, Time(0), &[0; 10_000]).unwrap();
    let words = sent(&mut writer, Time(0));
    assert_eq!(words.iter().filter(|word| word.starts_with("DATA_FRAG")).count(), 8, "{words:?}");
    let change = Change { kind: ChangeKind::Disposed, key: Some([1; 16]), payload: &[0; 3000] };
    writer.write_change(Time(0), None, change).unwrap();
}

#[test]
fn large_samples_in_transit_are_kept_beside_the_last_ones() {
    let new = |max_samples| {
        let history = History::KeepLast(2);
        let config = WriterConfig { history, max_samples, ..config(Reliability::Reliable) };
        let mut writer = WriterCore::new(config);
        writer.match_reader(Time(0), ReaderProxyConfig { segment_max: 1472, ..reader(READER, true) });
        acknack(&mut writer, 1, 1, &[]);
        writer
    };
    let write_some = |writer: &mut WriterCore, count: usize| {
        for _ in 0..count {
            write(writer, Time(0), &[0; 10_000]).unwrap();
            sent(writer, Time(0));
        }
        let is_kept = |sn: &i64| writer.history.entry(SequenceNumber(*sn)).is_some_and(|it| it.is_alive());
        (1..=writer.history.last().0).filter(is_kept).collect::<Vec<_>>()
    };
    assert_eq!(write_some(&mut new(None), 7), [1, 2, 3, 4, 5, 6, 7]);
    // As many in transit as the limit leaves, the oldest ones: they arrive first.
    let mut writer = new(Some(4));
    assert_eq!(write_some(&mut writer, 7), [1, 2, 6, 7]);
    acknack(&mut writer, 2, 2, &[]);
    assert_eq!(write_some(&mut writer, 1), [2, 6, 7, 8]);
    acknack(&mut writer, 3, 9, &[]);
    assert_eq!(write_some(&mut writer, 1), [9]);
}

#[test]
fn a_late_reader_of_a_transient_local_writer_gets_the_history() {
    let mut writer = WriterCore::new(WriterConfig {
        durability: Durability::TransientLocal,
        history: History::KeepLast(2),
        ..config(Reliability::Reliable)
    });
    for _ in 0..5 {
        write(&mut writer, Time(0), &[0; 8]).unwrap();
    }
    writer.match_reader(Time(0), ReaderProxyConfig { wants_history: true, ..reader(READER, true) });
    assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "HEARTBEAT 4..5"]);
    acknack(&mut writer, 1, 4, &[4, 5]);
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 4", "DATA 5", "INFO_DST", "HEARTBEAT 4..5"]);
}

#[test]
fn a_late_reader_of_a_volatile_writer_gets_none_of_the_history() {
    let history = History::KeepLast(2);
    let mut writer = WriterCore::new(WriterConfig { history, ..config(Reliability::Reliable) });
    let other = Guid::new(GuidPrefix([3; 12]), READER.entity);
    writer.match_reader(Time(0), reader(other, true));
    for _ in 0..5 {
        write(&mut writer, Time(0), &[0; 8]).unwrap();
    }
    sent(&mut writer, Time(0));
    // Matching refuses such a pair, unless the announcement of one of them was another.
    writer.match_reader(Time(0), ReaderProxyConfig { wants_history: true, ..reader(READER, true) });
    assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "HEARTBEAT 6..5"]);
}

#[test]
fn a_burst_leaves_together_and_waits_no_longer_than_allowed() {
    let coalescing = Some(Coalescing::default());
    let mut writer = WriterCore::new(WriterConfig { coalescing, ..config(Reliability::BestEffort) });
    writer.match_reader(Time(0), reader(READER, false));
    let mut sends = 0;
    let mut out = Outbox::new();
    for n in 0..1000 {
        write(&mut writer, Time(n * 100), &[0; 36]).unwrap();
        out.clear();
        writer.poll_transmit(Time(n * 100), &mut out);
        if !out.is_empty() {
            sends += 1;
            assert!(out.items.iter().all(|item| usize::from(item.datagrams) <= config::SEGMENTS_MAX));
        }
    }
    assert!(sends < 30, "{sends}");
    assert!(writer.has_unsent());
    let at = writer.next_timeout().unwrap();
    assert!(at.since(Time(99_900)) <= config::COALESCING_DELAY_MAX);
    assert!(!sent(&mut writer, at).is_empty());
    assert!(!writer.has_unsent());
    // Writes far apart are sent one by one.
    for n in 1..10 {
        let now = Time(n * 1_000_000);
        write(&mut writer, now, &[0; 36]).unwrap();
        assert_eq!(sent(&mut writer, now).len(), 1);
    }
}

#[test]
fn the_heartbeat_of_a_burst_is_its_last_and_shorter_segment() {
    let coalescing = Some(Coalescing::default());
    let mut writer = WriterCore::new(WriterConfig { coalescing, ..config(Reliability::Reliable) });
    writer.match_reader(Time(0), reader(READER, true));
    acknack(&mut writer, 1, 1, &[]);
    let mut out = Outbox::new();
    let mut with_heartbeat = 0;
    for n in 0..2000 {
        if write(&mut writer, Time(n * 100), &[0; 36]).is_err() {
            break;
        }
        out.clear();
        writer.poll_transmit(Time(n * 100), &mut out);
        for item in out.items.iter().filter(|item| item.segment != 0) {
            let (head, tail) = out.parts(item);
            assert_eq!(head.len() % item.segment as usize, 0);
            assert!(tail.len() <= item.segment as usize);
            let datagrams = head.len() / item.segment as usize + usize::from(!tail.is_empty());
            assert_eq!(datagrams, item.datagrams as usize);
            with_heartbeat += usize::from(!tail.is_empty());
        }
    }
    assert!(with_heartbeat > 0);
}

#[test]
fn a_burst_of_a_keep_last_writer_is_sent_whole() {
    let mut writer = WriterCore::new(WriterConfig {
        coalescing: Some(Coalescing::default()),
        history: History::KeepLast(1),
        ..config(Reliability::BestEffort)
    });
    writer.match_reader(Time(0), reader(READER, false));
    let mut seen = 0;
    for n in 0..500 {
        write(&mut writer, Time(n * 100), &[0; 36]).unwrap();
        seen += sent(&mut writer, Time(n * 100)).len();
    }
    seen += sent(&mut writer, Time(10_000_000)).len();
    assert_eq!(seen, 500);
}

#[test]
fn a_large_sample_leaves_as_its_reader_makes_room() {
    // Either a thread waits to continue the sample, or it is left to the timer.
    [false, true].into_iter().for_each(send_large_sample);
}

fn send_large_sample(is_left: bool) {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    let narrow = ReaderProxyConfig { receive_buffer: Some(200_000), ..reader(READER, true) };
    writer.match_reader(Time(0), narrow);
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    write(&mut writer, Time(0), &[7; 1_000_000]).unwrap();
    let mut fragments = Vec::new();
    for count in 1..100 {
        let mut out = Outbox::new();
        writer.poll_transmit(Time(1), &mut out);
        let mut last = None;
        out.for_each_datagram(|_, datagram| {
            for submessage in Message::parse(datagram).unwrap().submessages() {
                match submessage.unwrap() {
                    Submessage::DataFrag(frag) => fragments.push(frag.fragment_start),
                    Submessage::HeartbeatFrag(heartbeat) => last = Some(heartbeat.last_fragment),
                    _ => {}
                }
            }
        });
        assert!(out.items.iter().filter(|item| item.is_scratch_first).count() <= 2, "a window at a time");
        let Some(last) = last else { break };
        if is_left {
            writer.leave_sample();
        }
        assert!(writer.next_timeout() > Some(Time(0)), "there is no room");
        let nack = weir_wire::NackFrag {
            reader: READER.entity,
            writer: WRITER.entity,
            sequence_number: SequenceNumber(1),
            state: weir_wire::FragmentNumberSet::new(weir_wire::FragmentNumber(last + 1)),
            count,
        };
        writer.handle_nack_frag(Time(1), READER, &nack);
        assert!(writer.can_go_on(Time(1)));
        assert_eq!(writer.next_timeout() == Some(Time(0)), is_left);
    }
    assert!(writer.next_timeout() > Some(Time(0)));
    assert_eq!(fragments, (1..=16).collect::<Vec<_>>());
    assert!(!writer.has_unsent() && !writer.is_amid_sample());
    acknack(&mut writer, 2, 2, &[]);
    assert!(writer.history.is_empty() && writer.large.is_empty());
}

#[test]
fn where_losses_are_expected_a_lone_sample_brings_its_heartbeat_and_is_sent_again_unasked() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    sent(&mut writer, Time(0));
    write(&mut writer, Time(0), &[0; 8]).unwrap();
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 1"]);
    // The reader reports a loss; from now on losses are expected.
    acknack(&mut writer, 1, 1, &[1]);
    assert_eq!(sent(&mut writer, Time(1)), ["DATA 1", "INFO_DST", "HEARTBEAT 1..1"]);
    acknack(&mut writer, 2, 2, &[]);
    write(&mut writer, Time(1), &[0; 8]).unwrap();
    assert_eq!(sent(&mut writer, Time(1)), ["DATA 2", "HEARTBEAT 2..2"]);
    acknack(&mut writer, 3, 3, &[]);
    write(&mut writer, Time(1), &[0; 8]).unwrap();
    assert_eq!(sent(&mut writer, Time(1)), ["DATA 3", "HEARTBEAT 3..3"]);
    // No answer arrives within two round trips, repeatedly. After the last probe only HEARTBEATs
    // follow.
    for _ in 0..config::TAIL_PROBES_MAX {
        let at = writer.next_timeout().unwrap();
        assert!(at < Time(0) + config::HEARTBEAT_DELAY_MIN);
        writer.handle_timeout(at);
        assert_eq!(sent(&mut writer, at), ["DATA 3", "INFO_DST", "HEARTBEAT 3..3"]);
    }
    let at = writer.next_timeout().unwrap();
    writer.handle_timeout(at);
    assert_eq!(sent(&mut writer, at), ["HEARTBEAT 3..3"]);
    acknack(&mut writer, 4, 4, &[]);
    // After some time the loss is forgotten.
    let later = Time(1) + config::LOSS_MEMORY;
    write(&mut writer, later, &[0; 8]).unwrap();
    assert_eq!(sent(&mut writer, later), ["DATA 4"]);
    assert_eq!(writer.next_timeout(), Some(later + config::HEARTBEAT_DELAY_MIN));
}

#[test]
fn what_was_sent_is_announced_although_a_large_sample_waits_for_room_behind_it() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), ReaderProxyConfig { receive_buffer: Some(0), ..reader(READER, true) });
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    (0..12).for_each(|_| _ = write(&mut writer, Time(0), &[0; 2100]).unwrap());
    let large = write(&mut writer, Time(0), &[0; 90_000]).unwrap();
    let first = sent(&mut writer, Time(0));
    assert!(first.iter().all(|word| word != "DATA_FRAG"), "there is no room for a fragment: {first:?}");
    // All of that is lost, and is announced until a reader answers.
    for _ in 0..20 {
        let at = writer.next_timeout().unwrap();
        writer.handle_timeout(at);
        assert_eq!(sent(&mut writer, at), ["HEARTBEAT 1..12"]);
    }
    acknack(&mut writer, 2, 13, &[]);
    assert_eq!(sent(&mut writer, Time(0))[0], "DATA_FRAG");
    assert_eq!(large, SequenceNumber(13));
}

#[test]
fn a_sample_whose_filling_fails_was_not_written() {
    let mut writer = WriterCore::new(config(Reliability::BestEffort));
    writer.match_reader(Time(1), reader(READER, false));
    let failed = writer.write(Time(2), STAMP, 8, |_| Err("no"));
    assert_eq!(failed, Err("no"));
    assert_eq!(writer.last_sequence_number(), SequenceNumber::ZERO);
    assert_eq!(write(&mut writer, Time(3), &[1; 8]), Ok(SequenceNumber(1)));
    assert_eq!(sent(&mut writer, Time(3)), ["DATA 1"]);
}
