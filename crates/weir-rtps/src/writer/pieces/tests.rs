use weir_wire::{FragmentNumber, FragmentNumberSet, Guid, GuidPrefix, Message, NackFrag, Submessage};

use super::super::tests::{self as common, READER, STAMP, WRITER};
use super::super::{Change, ChangeKind, ReaderProxyConfig, WriterConfig};
use super::*;
use crate::outbox::Outbox;
use crate::qos::{History, Reliability};

const LEN: usize = 1_000_000;

fn reader(guid: Guid, reliable: bool, receive_buffer: u32) -> ReaderProxyConfig {
    ReaderProxyConfig { receive_buffer: Some(receive_buffer), ..common::reader(guid, reliable) }
}

fn writer(history: History, receive_buffer: u32) -> WriterCore {
    let config = WriterConfig { history, ..WriterConfig::new(WRITER, Reliability::Reliable) };
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), reader(READER, true, receive_buffer));
    writer.poll_transmit(Time(0), &mut Outbox::new());
    acknack(&mut writer, 1, 1);
    writer
}

fn acknack(writer: &mut WriterCore, count: u32, base: i64) {
    common::acknack(writer, count, base, &[]);
}

/// The reader reports that it has reached all fragments up to this one, counted from 1.
fn progress(writer: &mut WriterCore, sn: i64, fragment: u32) {
    let nack = NackFrag {
        reader: READER.entity,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(sn),
        state: FragmentNumberSet::new(FragmentNumber(fragment + 1)),
        count: 1,
    };
    writer.handle_nack_frag(Time(0), READER, &nack);
}

/// Returns the bytes of the fragments sent now, concatenated, and whether a HEARTBEAT_FRAG follows.
fn sent(writer: &mut WriterCore) -> (Vec<u8>, bool) {
    sent_at(writer, Time(0))
}

fn sent_at(writer: &mut WriterCore, now: Time) -> (Vec<u8>, bool) {
    let mut out = Outbox::new();
    writer.poll_transmit(now, &mut out);
    let (mut bytes, mut is_asked) = (Vec::new(), false);
    out.for_each_datagram(|_, datagram| {
        for submessage in Message::parse(datagram).unwrap().submessages() {
            match submessage.unwrap() {
                Submessage::DataFrag(frag) => bytes.extend_from_slice(frag.payload),
                Submessage::HeartbeatFrag(_) => is_asked = true,
                _ => {}
            }
        }
    });
    (bytes, is_asked)
}

fn payload() -> Vec<u8> {
    (0..LEN).map(|n| (n % 251) as u8).collect()
}

fn begin(writer: &mut WriterCore) -> usize {
    writer.begin_pieces(Time(0), STAMP, LEN).unwrap().unwrap()
}

fn add(writer: &mut WriterCore, part: &[u8]) -> *const u8 {
    let mut block = writer.lend_piece();
    Arc::get_mut(&mut block).unwrap().bytes_mut()[..part.len()].copy_from_slice(part);
    let memory = block.bytes().as_ptr();
    writer.add_piece(block);
    memory
}

#[test]
fn what_is_filled_leaves_and_nothing_else() {
    let mut writer = writer(History::KeepAll, 8 << 20);
    let (whole, len) = (payload(), begin(&mut writer));
    assert!(sent(&mut writer).0.is_empty() && !writer.is_amid_sample());
    let mut so_far = 0;
    for part in whole.chunks(len) {
        add(&mut writer, part);
        while so_far < LEN {
            let (bytes, is_asked) = sent(&mut writer);
            assert_eq!(bytes, whole[so_far..so_far + bytes.len()]);
            so_far += bytes.len();
            if bytes.is_empty() {
                break;
            }
            // The window is still small, so the writer asks for room.
            if is_asked {
                progress(&mut writer, 1, so_far.div_ceil(len / 4) as u32);
            }
        }
        assert!(so_far.is_multiple_of(len) || so_far == LEN, "{so_far}");
    }
    assert!(so_far == LEN && !writer.is_amid_sample() && !writer.has_unsent());
    acknack(&mut writer, 2, 2);
    assert_eq!(writer.kept(), 0);
}

#[test]
fn without_room_the_rest_is_filled_all_the_same_and_asked_about_once() {
    let mut writer = writer(History::KeepAll, 0);
    let (whole, len) = (payload(), begin(&mut writer));
    let parts: Vec<_> = whole.chunks(len).collect();
    add(&mut writer, parts[0]);
    let (first, is_asked) = sent(&mut writer);
    assert!(!first.is_empty() && first.len() < len && is_asked);
    for part in &parts[1..] {
        add(&mut writer, part);
        assert_eq!(sent(&mut writer), (Vec::new(), false));
    }
    assert!(writer.is_amid_sample() && !writer.can_go_on(Time(0)));
    let mut so_far = first.len();
    while so_far < LEN {
        progress(&mut writer, 1, so_far.div_ceil(len / 4) as u32);
        let (bytes, _) = sent(&mut writer);
        assert_eq!(bytes, whole[so_far..so_far + bytes.len()]);
        so_far += bytes.len();
    }
    assert!(!writer.is_amid_sample());
}

#[test]
fn memory_is_used_again_the_last_first() {
    let mut writer = writer(History::KeepAll, 8 << 20);
    let mut places = alloc::collections::BTreeSet::new();
    let mut memory = 0;
    for round in 1..=50 {
        let (whole, len) = (payload(), begin(&mut writer));
        whole.chunks(len).for_each(|part| _ = places.insert(add(&mut writer, part) as usize));
        while writer.has_unsent() {
            assert!(!sent(&mut writer).0.is_empty());
            let sent = writer.fragments.sent;
            progress(&mut writer, round, sent);
        }
        acknack(&mut writer, round as u32 + 1, round + 1);
        assert_eq!(writer.kept(), 0);
        memory = if round == 1 { writer.memory() } else { memory };
    }
    assert_eq!(places.len(), LEN.div_ceil(config::PIECE_BYTES - 4096));
    assert_eq!(writer.memory(), memory);
    // Of a sample larger than the limit for spare memory, no more than the limit is kept.
    let huge = 2 * config::LARGE_BUFFERS_MAX_BYTES;
    let len = writer.begin_pieces(Time(0), STAMP, huge).unwrap().unwrap();
    for _ in 0..huge.div_ceil(len) {
        add(&mut writer, &[]);
    }
    assert!(writer.memory() > huge);
    writer.unmatch_reader(Time(0), READER);
    sent(&mut writer);
    assert_eq!(writer.kept(), 0);
    assert!(writer.memory() <= config::LARGE_BUFFERS_MAX_BYTES + (1 << 20), "{}", writer.memory());
}

#[test]
fn a_sample_that_is_not_whole_waits_though_its_readers_have_gone() {
    let mut writer = writer(History::KeepAll, 8 << 20);
    let (whole, len) = (payload(), begin(&mut writer));
    let parts: Vec<_> = whole.chunks(len).collect();
    add(&mut writer, parts[0]);
    assert!(!sent(&mut writer).0.is_empty());
    writer.unmatch_reader(Time(0), READER);
    // The remaining best-effort reader is sent nothing until the sample is complete.
    let other = Guid::new(GuidPrefix([3; 12]), READER.entity);
    writer.match_reader(Time(0), reader(other, false, 8 << 20));
    for part in &parts[1..] {
        assert!(sent(&mut writer).0.is_empty() && writer.kept() == 1);
        add(&mut writer, part);
    }
    assert!(!sent(&mut writer).0.is_empty());
    assert!(!writer.is_amid_sample() && !writer.has_unsent() && writer.kept() == 0);
}

#[test]
fn a_reader_that_comes_while_a_sample_is_on_its_way_does_not_hold_it_up() {
    let mut writer = writer(History::KeepAll, 300_000);
    let (whole, len) = (payload(), begin(&mut writer));
    whole.chunks(len).for_each(|part| _ = add(&mut writer, part));
    let mut so_far = sent(&mut writer).0.len();
    let late = Guid::new(GuidPrefix([3; 12]), READER.entity);
    writer.match_reader(Time(0), reader(late, true, 300_000));
    while so_far < LEN {
        progress(&mut writer, 1, so_far.div_ceil(len / 4) as u32);
        let (bytes, _) = sent(&mut writer);
        assert!(!bytes.is_empty(), "{so_far} of {LEN} bytes");
        so_far += bytes.len();
    }
}

#[test]
fn a_sample_leaves_with_pauses_once_no_reader_reports_progress() {
    let mut writer = writer(History::KeepAll, 0);
    let (best_effort, late) = (Guid { prefix: GuidPrefix([3; 12]), ..READER }, GuidPrefix([4; 12]));
    writer.match_reader(Time(0), reader(best_effort, false, 212_992));
    let whole = payload();
    let len = begin(&mut writer);
    whole.chunks(len).for_each(|part| _ = add(&mut writer, part));
    let (first, _) = sent(&mut writer);
    assert!(writer.is_amid_sample());
    // The reader that reports progress leaves. The new one receives only what is written from now
    // on.
    writer.unmatch_reader(Time(0), READER);
    writer.match_reader(Time(0), reader(Guid { prefix: late, ..READER }, true, 8 << 20));
    let (next, _) = sent(&mut writer);
    assert!(!next.is_empty() && next.len() < 212_992 / 2, "{}", next.len());
    assert!(writer.is_amid_sample() && writer.paused_until().is_some());
    let mut bytes = [first, next].concat();
    while let Some(until) = writer.paused_until() {
        writer.handle_timeout(until);
        bytes.extend(sent_at(&mut writer, until).0);
    }
    assert!(bytes == whole && !writer.has_unsent());
}

#[test]
fn an_abandoned_sample_becomes_a_gap() {
    let mut writer = writer(History::KeepAll, 8 << 20);
    let (whole, len) = (payload(), begin(&mut writer));
    add(&mut writer, &whole[..len]);
    assert!(!sent(&mut writer).0.is_empty());
    writer.abandon_pieces();
    sent(&mut writer);
    assert!(!writer.is_amid_sample() && !writer.has_unsent());
    common::acknack(&mut writer, 2, 1, &[1]);
    let mut out = Outbox::new();
    writer.poll_transmit(Time(0), &mut out);
    let mut gaps = 0;
    out.for_each_datagram(|_, datagram| {
        let message = Message::parse(datagram).unwrap();
        gaps += message
            .submessages()
            .filter(|it| matches!(it, Ok(Submessage::Gap(gap)) if gap.start.0 == 1))
            .count();
    });
    assert_eq!(gaps, 1);
    // The sample's room is free again once the reader has passed it.
    acknack(&mut writer, 3, 2);
    let next = Change { kind: ChangeKind::Alive, key: None, payload: &[0; 8] };
    writer.write_change(Time(0), Some(STAMP.timestamp), next).unwrap();
    sent(&mut writer);
    acknack(&mut writer, 4, 3);
    assert_eq!(writer.kept(), 0);
}

#[test]
fn what_is_not_worth_it_or_not_possible_is_left_to_the_other_way() {
    let is_begun = |writer: &mut WriterCore, len| {
        let begun = writer.begin_pieces(Time(0), STAMP, len);
        begun.map(|pieces| pieces.is_some())
    };
    let mut reliable = writer(History::KeepAll, 8 << 20);
    assert_eq!(is_begun(&mut reliable, config::PIECE_BYTES), Ok(false));
    let too_large = config::SAMPLE_MAX_BYTES + 1;
    let refused = WriteRefused::TooLarge { len: too_large, max: config::SAMPLE_MAX_BYTES };
    assert_eq!(is_begun(&mut reliable, too_large), Err(refused));
    assert_eq!((reliable.last_sequence_number(), reliable.kept()), (SequenceNumber::ZERO, 0));
    let mut best_effort = WriterCore::new(WriterConfig::new(WRITER, Reliability::BestEffort));
    best_effort.match_reader(Time(0), reader(READER, false, 8 << 20));
    assert_eq!(is_begun(&mut best_effort, LEN), Ok(false));
    let mut asynchronous = WriterCore::new(WriterConfig {
        is_asynchronous: true,
        ..WriterConfig::new(WRITER, Reliability::Reliable)
    });
    asynchronous.match_reader(Time(0), reader(READER, true, 8 << 20));
    assert_eq!(is_begun(&mut asynchronous, LEN), Ok(false));
    // The window is full.
    assert_eq!(is_begun(&mut reliable, LEN), Ok(true));
    (0..5).for_each(|_| _ = add(&mut reliable, &[]));
    sent(&mut reliable);
    assert_eq!(is_begun(&mut reliable, LEN), Err(WriteRefused::WindowFull));
}
