//! What a writer says about coherent sets and groups.

use weir_wire::{Data, Payload};

use super::*;
use crate::group::{GroupSequence, SetTag, group_digest};

/// Sequence number, whether there is a value, and what it says about its set, of each DATA.
fn tags(writer: &mut WriterCore) -> Vec<(i64, bool, SetTag)> {
    let mut out = Outbox::new();
    writer.poll_transmit(Time(0), &mut out);
    let mut tags = Vec::new();
    out.for_each_datagram(|_, datagram| {
        for submessage in Message::parse(datagram).unwrap().submessages() {
            if let Submessage::Data(Data { sequence_number, inline_qos, payload, .. }) = submessage.unwrap() {
                let tag = inline_qos.as_ref().and_then(SetTag::decode).unwrap_or_default();
                tags.push((sequence_number.0, payload != Payload::None, tag));
            }
        }
    });
    tags
}

fn presented(history: History, group: Option<GroupSequence>) -> WriterCore {
    let presentation = Some(WriterPresentation { is_coherent: true, group });
    let mut writer = WriterCore::new(WriterConfig { history, presentation, ..config(Reliability::Reliable) });
    writer.match_reader(Time(0), reader(READER, true));
    writer
}

fn tag(set: i64, group: Option<(i64, i64)>) -> SetTag {
    SetTag {
        set: Some(SequenceNumber(set)),
        group_set: group.map(|(set, _)| SequenceNumber(set)),
        number: group.map(|(_, number)| SequenceNumber(number)),
    }
}

const NUMBER: [u8; 5] = *b"\0\x01\0\0a";

#[test]
fn samples_name_their_set_and_an_end_follows_even_in_repairs() {
    let mut writer = presented(History::KeepAll, None);
    write(&mut writer, Time(0), &NUMBER).unwrap();
    writer.begin_set(None);
    write(&mut writer, Time(0), &NUMBER).unwrap();
    write(&mut writer, Time(0), &NUMBER).unwrap();
    writer.end_set(Time(0), STAMP.timestamp, None).unwrap();
    write(&mut writer, Time(0), &NUMBER).unwrap();
    let unknown = SetTag { set: Some(SequenceNumber::UNKNOWN), ..SetTag::default() };
    let expected = [
        (1, true, SetTag::default()),
        (2, true, tag(2, None)),
        (3, true, tag(2, None)),
        (4, false, unknown),
        (5, true, SetTag::default()),
    ];
    assert_eq!(tags(&mut writer), expected);
    acknack(&mut writer, 1, 2, &[2, 4]);
    assert_eq!(tags(&mut writer), [expected[1], expected[3]]);
}

#[test]
fn a_set_without_samples_needs_no_end_unless_others_share_it() {
    let mut writer = presented(History::KeepAll, None);
    writer.begin_set(None);
    assert_eq!(writer.end_set(Time(0), STAMP.timestamp, None), Ok(None));
    assert!(!writer.is_in_set());
    let mut writer = presented(History::KeepAll, Some(GroupSequence::default()));
    writer.begin_set(Some(SequenceNumber(1)));
    let digest = Some(group_digest(&[WRITER.entity]));
    assert_eq!(writer.end_set(Time(0), STAMP.timestamp, digest), Ok(Some(SequenceNumber(1))));
}

#[test]
fn writers_of_a_group_number_their_samples_together() {
    let sequence = GroupSequence::default();
    let [mut one, mut other] = [(); 2].map(|()| presented(History::KeepAll, Some(sequence.clone())));
    write(&mut one, Time(0), &NUMBER).unwrap();
    let set = sequence.peek();
    one.begin_set(Some(set));
    other.begin_set(Some(set));
    write(&mut other, Time(0), &NUMBER).unwrap();
    write(&mut one, Time(0), &NUMBER).unwrap();
    let of_one = tags(&mut one);
    assert_eq!(of_one[0].2, SetTag { number: Some(SequenceNumber(1)), ..SetTag::default() });
    assert_eq!(of_one[1].2, tag(2, Some((2, 3))));
    assert_eq!(tags(&mut other)[0].2, tag(1, Some((2, 2))));
}

#[test]
fn the_end_of_a_set_replaces_no_value_of_a_keep_last_writer() {
    for depth in [1, 3] {
        let mut writer = presented(History::KeepLast(depth), None);
        for _ in 0..4 {
            writer.begin_set(None);
            (0..2).for_each(|_| _ = write(&mut writer, Time(0), &NUMBER).unwrap());
            writer.end_set(Time(0), STAMP.timestamp, None).unwrap();
            tags(&mut writer);
        }
        acknack(&mut writer, 1, 1, &(1..=12).collect::<Vec<_>>());
        let values = tags(&mut writer).iter().filter(|(_, has_value, _)| *has_value).count();
        assert_eq!(values, depth as usize);
    }
}

#[test]
fn what_is_known_of_sets_goes_with_their_samples() {
    let mut writer = presented(History::KeepAll, None);
    let mut memory_after = |sets: usize| {
        for _ in 0..sets {
            writer.begin_set(None);
            write(&mut writer, Time(0), &NUMBER).unwrap();
            let end = writer.end_set(Time(0), STAMP.timestamp, None).unwrap().unwrap();
            tags(&mut writer);
            acknack(&mut writer, end.0 as u32, end.0 + 1, &[]);
        }
        writer.timed.as_ref().unwrap().presented.as_ref().unwrap().memory()
    };
    assert_eq!(memory_after(4000), memory_after(16_000));
}

#[test]
fn a_writer_that_is_not_coherent_has_no_sets() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    writer.begin_set(None);
    write(&mut writer, Time(0), &NUMBER).unwrap();
    assert_eq!(writer.end_set(Time(0), STAMP.timestamp, None), Ok(None));
    assert_eq!(tags(&mut writer), [(1, true, SetTag::default())]);
}

#[test]
fn a_suspended_writer_holds_samples_back_until_it_is_resumed_or_has_many() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    writer.suspend();
    (0..3).for_each(|_| _ = write(&mut writer, Time(0), &NUMBER).unwrap());
    assert_eq!(tags(&mut writer), []);
    writer.resume();
    assert_eq!(tags(&mut writer).len(), 3);
    writer.suspend();
    (0..20).for_each(|_| _ = write(&mut writer, Time(0), &[0; 2_000]).unwrap());
    assert_eq!(tags(&mut writer).len(), 20);
}

/// What the HEARTBEATs that a writer sends now say about its group: current, first and last number, and writers.
fn group_infos(writer: &mut WriterCore) -> Vec<Option<([i64; 3], [u8; 4])>> {
    writer.request_acknowledgement();
    let mut out = Outbox::new();
    writer.poll_transmit(Time(0), &mut out);
    let mut infos = Vec::new();
    out.for_each_datagram(|_, datagram| {
        let mut rest = &datagram[20..];
        while let Some((&[kind, flags, low, high], behind)) = rest.split_first_chunk::<4>() {
            let (body, next) = behind.split_at(usize::from(u16::from_le_bytes([low, high])));
            rest = next;
            if kind != weir_wire::submessage::id::HEARTBEAT {
                continue;
            }
            assert!(Message::parse(datagram).unwrap().submessages().all(|submessage| submessage.is_ok()));
            let number = |at: usize| i64::from(u32::from_le_bytes(body[at + 4..at + 8].try_into().unwrap()));
            let info = || ([28, 36, 44].map(number), body[52..56].try_into().unwrap());
            assert_eq!(body.len(), if flags & 8 == 0 { 28 } else { 60 });
            infos.push((flags & 8 != 0).then(info));
        }
    });
    infos.dedup();
    infos
}

#[test]
fn heartbeats_of_a_group_say_which_of_its_numbers_the_writer_has() {
    let sequence = GroupSequence::default();
    let members = [WRITER.entity, EntityId::user_writer(2, false)];
    sequence.set_writers(&members);
    let digest = group_digest(&members);
    let [mut one, mut other] = [(); 2].map(|()| presented(History::KeepLast(2), Some(sequence.clone())));
    assert_eq!(group_infos(&mut one), [None], "no number was given yet");
    for is_one in [true, false, true, true] {
        write(if is_one { &mut one } else { &mut other }, Time(0), &NUMBER).unwrap();
    }
    acknack(&mut one, 1, 4, &[]);
    // KEEP_LAST has replaced the first one.
    assert_eq!(group_infos(&mut one), [Some(([4, 3, 4], digest))]);
    assert_eq!(group_infos(&mut other), [Some(([4, 2, 2], digest))]);
    let mut silent = presented(History::KeepAll, Some(sequence));
    assert_eq!(group_infos(&mut silent), [Some(([4, 4, 3], digest))], "it has none");
    let mut alone = presented(History::KeepAll, None);
    write(&mut alone, Time(0), &NUMBER).unwrap();
    assert_eq!(group_infos(&mut alone), [None]);
}
