use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};

use weir_wire::{
    DataFrag, EntityId, GuidPrefix, Message, ParameterList, Payload, SequenceNumber, SequenceNumberSet,
    Submessage,
};

use super::*;
use crate::config;
use crate::outbox::Outbox;
use crate::qos::History;
use crate::writer::ChangeKind;

mod content_filter;
mod crowds;
mod deferred;
mod departed;
mod ends;
mod group_order;
mod impostors;
mod leaps;
mod liveliness;
mod lost;
mod overdue;
mod plain;
mod policies;
mod promises;
mod reassembly;
mod sets;

const READER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, false));
const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));

fn reader(reliability: Reliability) -> ReaderCore {
    let config = ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(READER, reliability) };
    with_writer(config, VendorId::WEIR)
}

fn with_writer(config: ReaderConfig, vendor: VendorId) -> ReaderCore {
    let mut reader = ReaderCore::new(config);
    match_writer(&mut reader, vendor);
    reader
}

fn match_writer(reader: &mut ReaderCore, vendor: VendorId) {
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    reader.match_writer(Time(0), WriterProxyConfig { guid: WRITER, reliable: true, destinations, vendor });
}

fn data(reader: &mut ReaderCore, sn: i64) {
    let payload = [0, 1, 0, 0, sn as u8, 0, 0, 0];
    handle(reader, sn, Payload::Data(&payload));
}

fn handle(reader: &mut ReaderCore, sn: i64, payload: Payload<'_>) {
    handle_at(reader, Time(1_000), sn, payload);
}

fn handle_at(reader: &mut ReaderCore, now: Time, sn: i64, payload: Payload<'_>) {
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos: None,
        payload,
    };
    reader.handle_data(now, &WRITER, &data, None, None);
}

fn heartbeat(reader: &mut ReaderCore, count: u32, first: i64, last: i64) {
    heartbeat_to(reader, EntityId::UNKNOWN, count, first, last);
}

fn heartbeat_to(reader: &mut ReaderCore, to: EntityId, count: u32, first: i64, last: i64) {
    reader.handle_heartbeat(Time(1_000), WRITER, &heartbeat_of(to, count, first, last));
}

fn heartbeat_of(to: EntityId, count: u32, first: i64, last: i64) -> Heartbeat {
    Heartbeat {
        reader: to,
        writer: WRITER.entity,
        first: SequenceNumber(first),
        last: SequenceNumber(last),
        count,
        is_final: false,
        is_liveliness: false,
    }
}

fn taken(reader: &mut ReaderCore) -> Vec<i64> {
    let mut numbers = Vec::new();
    while reader.take_next(|sample| numbers.push(sample.sequence_number.0)) {}
    numbers
}

/// The sets of the ACKNACKs that the reader sends now, in words.
fn answers(reader: &mut ReaderCore, now: Time) -> Vec<String> {
    let mut out = Outbox::new();
    reader.poll_transmit(now, &mut out);
    let mut words = Vec::new();
    out.for_each_datagram(|_, datagram| {
        for submessage in Message::parse(datagram).unwrap().submessages() {
            if let Submessage::AckNack(acknack) = submessage.unwrap() {
                words.push(acknack.state.to_string());
            }
        }
    });
    words
}

#[test]
fn samples_of_a_reliable_writer_are_delivered_in_order_and_once() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    for sn in [1, 3, 2, 2, 6, 4, 5, 1, 7] {
        data(&mut reader, sn);
    }
    assert_eq!(taken(&mut reader), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(reader.counters().samples_duplicate, 2);
}

#[test]
fn what_lies_further_apart_than_a_set_reaches_is_asked_for_in_more_acknacks() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    (2..=1_000).filter(|sn| ![300, 301, 900].contains(sn)).for_each(|sn| data(&mut reader, sn));
    assert_eq!(answers(&mut reader, Time(2_000)), ["1/1:1", "300/2:300,301", "900/101:900"]);
}

#[test]
fn a_repair_that_a_later_request_overtakes_is_asked_for_again_at_once() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    answers(&mut reader, Time(1_000));
    data(&mut reader, 2);
    assert_eq!(answers(&mut reader, Time(2_000)), ["1/2:1"]);
    data(&mut reader, 4);
    assert_eq!(answers(&mut reader, Time(3_000)), ["1/4:3"]);
    let late = Time(3_000) + config::NACK_RETRY_FIRST;
    handle_at(&mut reader, late, 3, Payload::Data(&[0, 1, 0, 0]));
    assert_eq!(answers(&mut reader, late), ["1/4:1"]);
}

#[test]
fn a_hole_is_asked_for_at_once_and_not_twice_within_a_round_trip() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    assert_eq!(answers(&mut reader, Time(2_000)), ["1/0:"]);
    data(&mut reader, 1);
    data(&mut reader, 4);
    assert_eq!(answers(&mut reader, Time(2_000)), ["2/3:2,3"]);
    data(&mut reader, 6);
    assert_eq!(answers(&mut reader, Time(3_000)), ["2/5:5"]);
    data(&mut reader, 7);
    assert!(answers(&mut reader, Time(4_000)).is_empty());
    let retry = reader.next_timeout().unwrap();
    reader.handle_timeout(retry);
    assert_eq!(answers(&mut reader, retry), ["2/6:2,3,5"]);
}

#[test]
fn every_heartbeat_that_is_not_final_is_answered_and_repetitions_are_not() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    assert_eq!(answers(&mut reader, Time(0)), ["1/0:"]);
    data(&mut reader, 1);
    heartbeat(&mut reader, 2, 1, 1);
    assert_eq!(answers(&mut reader, Time(0)), ["2/0:"]);
    heartbeat(&mut reader, 2, 1, 1);
    assert!(answers(&mut reader, Time(0)).is_empty());
    assert!(reader.is_caught_up());
}

#[test]
fn the_first_question_to_a_writer_has_the_form_that_its_vendor_understands() {
    for (vendor, form) in [(VendorId::CYCLONE, "1/0:"), (VendorId::EPROSIMA, "0/0:"), (VendorId::RTI, "0/0:")]
    {
        let mut reader = with_writer(ReaderConfig::new(READER, Reliability::Reliable), vendor);
        assert_eq!(answers(&mut reader, Time(0)), [form]);
    }
}

#[test]
fn the_first_question_is_repeated_ever_more_rarely_and_not_for_ever() {
    let mut reader = reader(Reliability::Reliable);
    let mut at = Time(0);
    let mut count = 0;
    loop {
        count += answers(&mut reader, at).len();
        let Some(next) = reader.next_timeout() else { break };
        assert!(next > at);
        at = next;
        reader.handle_timeout(at);
    }
    assert_eq!(count, config::PREEMPTIVE_ACKNACKS_MAX as usize);
}

#[test]
fn a_gap_of_any_length_costs_no_time_and_no_memory() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 5);
    data(&mut reader, 1);
    let end = SequenceNumber(1 << 60);
    let gap = Gap {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        start: SequenceNumber(2),
        list: SequenceNumberSet::new(end),
    };
    reader.handle_gap(Time(0), WRITER, &gap);
    data(&mut reader, end.0);
    data(&mut reader, end.0 + 1);
    assert_eq!(taken(&mut reader), [1, end.0, end.0 + 1]);
    assert_eq!(reader.counters().samples_lost, 0);
}

#[test]
fn samples_that_a_gap_names_one_by_one_are_not_waited_for() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 6);
    let mut list = SequenceNumberSet::new(SequenceNumber(3));
    list.insert(SequenceNumber(3));
    list.insert(SequenceNumber(5));
    let gap = Gap { reader: EntityId::UNKNOWN, writer: WRITER.entity, start: SequenceNumber(3), list };
    reader.handle_gap(Time(0), WRITER, &gap);
    for sn in [6, 4, 2, 1] {
        data(&mut reader, sn);
    }
    assert_eq!(taken(&mut reader), [1, 2, 4, 6]);
}

#[test]
fn what_a_heartbeat_says_is_gone_is_lost_and_what_was_held_is_delivered() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    for sn in [1, 4, 8] {
        data(&mut reader, sn);
    }
    heartbeat(&mut reader, 2, 6, 8);
    assert_eq!(taken(&mut reader), [1, 4]);
    assert_eq!(reader.counters().samples_lost, 3);
    data(&mut reader, 6);
    data(&mut reader, 7);
    assert_eq!(taken(&mut reader), [6, 7, 8]);
}

#[test]
fn a_best_effort_reader_passes_over_holes_and_counts_them() {
    let mut reader = reader(Reliability::BestEffort);
    for sn in [10, 11, 15, 12, 16] {
        data(&mut reader, sn);
    }
    assert_eq!(taken(&mut reader), [10, 11, 15, 16]);
    assert_eq!(reader.counters().samples_lost, 3);
    assert!(answers(&mut reader, Time(0)).is_empty());
}

#[test]
fn a_full_reader_stops_the_writer_and_asks_again_when_there_is_room() {
    let config = ReaderConfig {
        history: History::KeepAll,
        max_samples: Some(3),
        ..ReaderConfig::new(READER, Reliability::Reliable)
    };
    let mut reader = with_writer(config, VendorId::WEIR);
    heartbeat(&mut reader, 1, 1, 0);
    for sn in 1..=6 {
        data(&mut reader, sn);
    }
    heartbeat(&mut reader, 2, 1, 6);
    assert_eq!(answers(&mut reader, Time(0)), ["4/0:"]);
    assert_eq!(taken(&mut reader), [1, 2, 3]);
    assert_eq!(answers(&mut reader, Time(0)), ["4/3:4,5,6"]);
    for sn in 4..=6 {
        data(&mut reader, sn);
    }
    assert_eq!(taken(&mut reader), [4, 5, 6]);
}

#[test]
fn samples_far_ahead_are_not_kept() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    for sn in 2..100_000 {
        data(&mut reader, sn);
    }
    assert!(reader.memory() < 4 << 20, "{}", reader.memory());
    data(&mut reader, 1);
    assert_eq!(taken(&mut reader).len(), config::REORDER_MAX_SAMPLES);
}

fn keyed(history: History) -> ReaderCore {
    let key_of: KeyOf = |payload, _| {
        let mut key = [0; 16];
        key[0] = *payload.get(4)?;
        Some(key)
    };
    let config =
        ReaderConfig { history, key_of: Some(key_of), ..ReaderConfig::new(READER, Reliability::Reliable) };
    let mut reader = with_writer(config, VendorId::WEIR);
    heartbeat(&mut reader, 1, 1, 0);
    reader
}

#[test]
fn keep_last_counts_per_instance_and_memory_stays_bounded() {
    let mut reader = keyed(History::KeepLast(2));
    handle(&mut reader, 1, Payload::Data(&[0, 1, 0, 0, 77, 0, 0, 0]));
    for sn in 2..50_000 {
        handle(&mut reader, sn, Payload::Data(&[0, 1, 0, 0, (sn % 3) as u8, 0, 0, 0]));
    }
    assert!(reader.memory() < 4 << 20, "{}", reader.memory());
    assert_eq!(taken(&mut reader), [1, 49_994, 49_995, 49_996, 49_997, 49_998, 49_999]);
}

#[test]
fn instances_without_writers_are_told_of() {
    let mut reader = keyed(History::KeepAll);
    handle(&mut reader, 1, Payload::Data(&[0, 1, 0, 0, 9, 0, 0, 0]));
    let mut states = Vec::new();
    reader.unmatch_writer(Time(0), WRITER);
    while reader
        .take_next(|sample| states.push((sample.kind, sample.instance_state, sample.key_hash.unwrap()[0])))
    {
    }
    let gone = InstanceState::NotAliveNoWriters;
    assert_eq!(states, [(ChangeKind::Alive, gone, 9), (ChangeKind::Unregistered, gone, 9)]);
}

#[test]
fn reading_leaves_samples_and_marks_them_and_selections_skip() {
    let mut reader = keyed(History::KeepAll);
    for sn in 1..=6 {
        handle(&mut reader, sn, Payload::Data(&[0, 1, 0, 0, (sn % 2) as u8, 0, 0, 0]));
    }
    let mut seen = Vec::new();
    let odd = SampleSelection { instance: Some(0), ..SampleSelection::default() };
    assert_eq!(
        reader.access(2, odd, false, |sample| {
            seen.push(sample.sequence_number.0);
            true
        }),
        2
    );
    let unread = SampleSelection { states: States::NOT_READ, instance: None };
    assert_eq!(
        reader.access(9, unread, true, |sample| {
            seen.push(sample.sequence_number.0);
            true
        }),
        4
    );
    assert_eq!(seen, [1, 3, 2, 4, 5, 6]);
    assert!(!reader.has_unread());
    assert_eq!(taken(&mut reader), [1, 3]);
}

#[test]
fn a_volatile_reader_passes_over_what_cyclone_announces_from_before_its_time() {
    for (live, expected) in [(&[][..], &[10, 11][..]), (&[8, 9][..], &[8, 9, 10, 11][..])] {
        let volatile = ReaderConfig {
            history: History::KeepAll,
            wants_history: false,
            ..ReaderConfig::new(READER, Reliability::Reliable)
        };
        let mut reader = with_writer(volatile, VendorId::CYCLONE);
        reader.note_history(WRITER);
        live.iter().for_each(|sn| data(&mut reader, *sn));
        heartbeat(&mut reader, 1, 1, 9);
        data(&mut reader, 10);
        data(&mut reader, 11);
        heartbeat(&mut reader, 2, 1, 11);
        assert_eq!(taken(&mut reader), expected);
        assert_eq!(reader.counters().samples_lost, 0);
        assert_eq!(answers(&mut reader, Time(2_000)), ["12/0:"]);
    }
}

#[test]
fn what_is_replaced_of_the_history_is_no_loss_of_a_volatile_reader_that_was_told_of_it() {
    for (wants_history, lost) in [(false, [0, 3]), (true, [6, 9])] {
        let config = ReaderConfig {
            history: History::KeepAll,
            wants_history,
            ..ReaderConfig::new(READER, Reliability::Reliable)
        };
        let mut reader = with_writer(config, VendorId::UNKNOWN);
        // Six are kept. Before a GAP says that they are not meant for a volatile reader, six others
        // take their places.
        heartbeat_to(&mut reader, READER.entity, 1, 295, 300);
        heartbeat_to(&mut reader, READER.entity, 2, 301, 306);
        assert_eq!(reader.counters().samples_lost, lost[0]);
        // The writer replaces three of those before they arrive.
        heartbeat_to(&mut reader, READER.entity, 3, 304, 309);
        assert_eq!(reader.counters().samples_lost, lost[1]);
        (304..=309).for_each(|sn| data(&mut reader, sn));
        assert_eq!(taken(&mut reader), (304..=309).collect::<Vec<_>>());
    }
}

#[test]
fn a_volatile_reader_asks_for_what_cyclone_sent_before_it_was_matched() {
    let volatile = ReaderConfig {
        history: History::KeepAll,
        wants_history: false,
        ..ReaderConfig::new(READER, Reliability::Reliable)
    };
    let mut reader = ReaderCore::new(volatile);
    // 7 and 8 are history, 9 and 10 come before the match, 11 behind it.
    [9, 10].iter().for_each(|sn| data(&mut reader, *sn));
    assert_eq!(reader.counters().unknown_writers, 2);
    match_writer(&mut reader, VendorId::CYCLONE);
    reader.note_history(WRITER);
    data(&mut reader, 11);
    heartbeat(&mut reader, 1, 7, 11);
    assert_eq!(answers(&mut reader, Time(2_000)), ["9/2:9,10"]);
    [9, 10].iter().for_each(|sn| data(&mut reader, *sn));
    assert_eq!(taken(&mut reader), [9, 10, 11]);
    assert_eq!(reader.counters().samples_lost, 0);
}

#[test]
fn the_lowest_sequence_numbers_of_the_last_unmatched_writers_are_known() {
    let writer = |number: u8| Guid::new(GuidPrefix([number; 12]), EntityId::PARTICIPANT);
    let config = ReaderConfig::new(READER, Reliability::Reliable);
    let mut reader = ReaderCore::new(ReaderConfig { wants_history: false, ..config });
    let last = UNMATCHED_WRITERS_MAX as u8;
    (0..=last).for_each(|number| reader.record_unmatched(writer(number), SequenceNumber(7)));
    reader.record_unmatched(writer(1), SequenceNumber(9));
    reader.record_unmatched(writer(2), SequenceNumber(5));
    let mut first = |number| reader.unmatched.remove(writer(number)).map(|sn| sn.0);
    assert_eq!([first(0), first(1), first(2), first(2)], [None, Some(7), Some(5), None]);
}

/// The first fragment, of 1000 bytes, of a sample of the writer.
fn first_fragment(number: i64, sample_size: u32, payload: &[u8]) -> DataFrag<'_> {
    DataFrag {
        sequence_number: SequenceNumber(number),
        fragment_size: 1000,
        sample_size,
        payload,
        ..FRAGMENT
    }
}

/// The first of two fragments of the first sample.
const FRAGMENT: DataFrag<'static> = DataFrag {
    reader: EntityId::UNKNOWN,
    writer: WRITER.entity,
    sequence_number: SequenceNumber(1),
    fragment_start: 1,
    fragments: 1,
    fragment_size: 4,
    sample_size: 8,
    is_key: false,
    inline_qos: None,
    payload: &[0, 1, 0, 0],
};

#[test]
fn what_a_best_effort_writer_left_incomplete_does_not_stand_in_the_way() {
    // Also not before anything was delivered: twenty samples of two fragments, of which one
    // arrives.
    let mut reader = reader(Reliability::BestEffort);
    let mut fragment = |sn: i64, start: u32| {
        let frag = DataFrag { sequence_number: SequenceNumber(sn), fragment_start: start, ..FRAGMENT };
        reader.handle_data_frag(Time(1_000), WRITER, &frag, None);
    };
    (1..=20).for_each(|sn| fragment(sn, 1));
    fragment(21, 1);
    fragment(21, 2);
    assert_eq!(taken(&mut reader), [21]);
}

#[test]
fn a_malformed_sample_of_fragments_takes_nothing_before_it_away() {
    let mut reader = reader(Reliability::Reliable);
    data(&mut reader, 1);
    // A key without a status.
    let frag = DataFrag { sequence_number: SequenceNumber(3), sample_size: 4, is_key: true, ..FRAGMENT };
    reader.handle_data_frag(Time(1_000), WRITER, &frag, None);
    assert_eq!(reader.counters().samples_malformed, 1);
    data(&mut reader, 2);
    assert_eq!(taken(&mut reader), [1, 2]);
    assert_eq!(reader.counters().samples_lost, 0);
    reader.handle_data_frag(Time(2_000), WRITER, &frag, None);
    data(&mut reader, 4);
    assert_eq!(taken(&mut reader), [4]);
}

/// The fragments that the reader requests now.
fn fragments_asked_for(reader: &mut ReaderCore, now: Time) -> Vec<u32> {
    let mut out = Outbox::new();
    reader.poll_transmit(now, &mut out);
    let mut numbers = Vec::new();
    out.for_each_datagram(|_, datagram| {
        for submessage in Message::parse(datagram).unwrap().submessages() {
            if let Submessage::NackFrag(nack) = submessage.unwrap() {
                numbers.extend(nack.state.iter().map(|number| number.0));
            }
        }
    });
    numbers
}

#[test]
fn a_large_sample_whose_fragments_arrive_in_any_order_is_completed_by_what_is_asked_for() {
    const FRAGMENT_BYTES: usize = 60_000;
    const FRAGMENTS: u32 = 200;
    let sample: Vec<u8> =
        (0..FRAGMENT_BYTES * FRAGMENTS as usize - 7).map(|n| ((n * 31) >> 7) as u8).collect();
    let orders: [fn(u32) -> u32; 3] = [|n| n, |n| FRAGMENTS - 1 - n, |n| n * 73 % FRAGMENTS];
    for order in orders {
        let mut reader = reader(Reliability::Reliable);
        let mut now = Time(1_000);
        let mut wanted: Vec<u32> = (0..FRAGMENTS).map(|n| 1 + order(n)).collect();
        let mut datagrams = 0;
        while !wanted.is_empty() {
            for start in wanted {
                let from = (start - 1) as usize * FRAGMENT_BYTES;
                let frag = DataFrag {
                    fragment_start: start,
                    fragment_size: FRAGMENT_BYTES as u16,
                    sample_size: sample.len() as u32,
                    payload: &sample[from..sample.len().min(from + FRAGMENT_BYTES)],
                    ..FRAGMENT
                };
                reader.handle_data_frag(now, WRITER, &frag, None);
                datagrams += 1;
            }
            now = now.plus_nanos(100_000);
            wanted = fragments_asked_for(&mut reader, now);
        }
        let mut is_whole = false;
        reader.take_next(|raw| is_whole = raw.payload == sample);
        assert!(is_whole);
        assert_eq!(reader.counters().fragments_refused, u64::from(datagrams - FRAGMENTS));
        assert_eq!(reader.counters().allocations_failed, 0);
    }
}

#[test]
fn every_ending_on_a_topic_without_a_key_is_told() {
    let mut reader = reader(Reliability::Reliable);
    // STATUS_INFO: disposed and unregistered; then the sentinel.
    let list = [0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0];
    for sn in 1..=3 {
        let (inline_qos, _) = ParameterList::parse(&list, weir_wire::Endianness::Little).unwrap();
        let data = Data {
            reader: EntityId::UNKNOWN,
            writer: WRITER.entity,
            sequence_number: SequenceNumber(sn),
            inline_qos: Some(inline_qos),
            payload: Payload::Key(&[0, 3, 0, 0, sn as u8, 0, 0, 0]),
        };
        reader.handle_data(Time(0), &WRITER, &data, None, None);
    }
    assert_eq!(taken(&mut reader), [1, 2, 3]);
}

/// What `reader` has, in order: number and payload.
fn take_all(reader: &mut ReaderCore) -> Vec<(i64, Vec<u8>)> {
    let mut samples = Vec::new();
    while reader.take_next(|raw| samples.push((raw.sequence_number.0, raw.payload.to_vec()))) {}
    samples
}

proptest::proptest! {
    /// A reader that leaves payloads in their blocks has the same samples as one that copies them,
    /// and keeps no block of a sample that was taken.
    #[test]
    fn payloads_that_stay_where_they_came_in_are_those_that_are_copied(
        steps in proptest::collection::vec((1..40_i64, 0..9_000_usize, proptest::bool::weighted(0.2)), 1..60),
        depth in proptest::option::of(1..4_u32),
    ) {
        let history = depth.map_or(History::KeepAll, History::KeepLast);
        let config = ReaderConfig { history, ..ReaderConfig::new(READER, Reliability::Reliable) };
        let mut copying = with_writer(config.clone(), VendorId::WEIR);
        let mut borrowing = with_writer(config, VendorId::WEIR);
        let mut blocks = Vec::new();
        for (step, (sn, len, is_taken)) in steps.into_iter().enumerate() {
            let mut block = Block::new(config::READER_CHUNK_BYTES);
            Arc::get_mut(&mut block).unwrap().bytes_mut()[56..56 + len].fill(step as u8);
            let data = Data {
                reader: EntityId::UNKNOWN,
                writer: WRITER.entity,
                sequence_number: SequenceNumber(sn),
                inline_qos: None,
                payload: Payload::Data(&block.bytes()[56..56 + len]),
            };
            copying.handle_data(Time(1_000), &WRITER, &data, None, None);
            borrowing.handle_data(Time(1_000), &WRITER, &data, None, Some(&block));
            blocks.push(block);
            if is_taken {
                proptest::prop_assert_eq!(take_all(&mut borrowing), take_all(&mut copying));
            }
        }
        proptest::prop_assert_eq!(take_all(&mut borrowing), take_all(&mut copying));
        proptest::prop_assert!(blocks.iter().all(|block| Arc::strong_count(block) == 1));
        proptest::prop_assert_eq!(borrowing.counters(), copying.counters());
    }
}
