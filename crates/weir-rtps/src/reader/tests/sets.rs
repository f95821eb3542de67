//! Coherent sets as peers of several vendors mark them, and shared sets that are to be settled.

use weir_wire::{Endianness, ParameterId, ParameterListWriter};

use super::groups::{GroupProgress, SettledSet, merge, settle};
use super::*;
use crate::group::SetTag;
use crate::qos::{Presentation, PresentationScope};

fn coherent(scope: PresentationScope, reliability: Reliability) -> ReaderConfig {
    ReaderConfig {
        history: History::KeepAll,
        presentation: Presentation { scope, coherent_access: true, ordered_access: false },
        ..ReaderConfig::new(READER, reliability)
    }
}

fn list(write: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut list = ParameterListWriter::new(&mut bytes);
    write(&mut list);
    list.finish();
    bytes
}

/// Handles a DATA with inline QoS; without a value, it is the end of a set.
fn handle_list(reader: &mut ReaderCore, sn: i64, has_value: bool, list: &[u8]) {
    handle_list_at(reader, Time(1_000), sn, has_value, list);
}

fn handle_list_at(reader: &mut ReaderCore, now: Time, sn: i64, has_value: bool, list: &[u8]) {
    let payload = [0, 1, 0, 0, sn as u8, 0, 0, 0];
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos: Some(ParameterList::parse(list, Endianness::Little).unwrap().0),
        payload: if has_value { Payload::Data(&payload) } else { Payload::None },
    };
    reader.handle_data(now, &WRITER, &data, None, None);
}

fn tag(set: i64) -> Vec<u8> {
    list(|list| SetTag { set: Some(SequenceNumber(set)), ..SetTag::default() }.encode(list))
}

fn in_set(reader: &mut ReaderCore, sn: i64, set: i64) {
    handle_list(reader, sn, true, &tag(set));
}

fn unknown() -> Vec<u8> {
    list(|list| list.raw(ParameterId::COHERENT_SET, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]))
}

#[test]
fn a_set_ends_with_each_form_of_an_end() {
    type End = (&'static str, fn(&mut ReaderCore));
    let ends: [End; 5] = [
        ("a DATA without content and COHERENT_SET unknown", |reader| {
            handle_list(reader, 3, false, &unknown())
        }),
        ("a DATA without content that names the set", |reader| handle_list(reader, 3, false, &tag(1))),
        ("the first sample of the next set", |reader| in_set(reader, 3, 3)),
        ("a sample outside of sets", |reader| data(reader, 3)),
        ("a sample with COHERENT_SET unknown", |reader| handle_list(reader, 3, true, &unknown())),
    ];
    for (form, end) in ends {
        for reliability in [Reliability::Reliable, Reliability::BestEffort] {
            let mut reader = with_writer(coherent(PresentationScope::Topic, reliability), VendorId::RTI);
            in_set(&mut reader, 1, 1);
            in_set(&mut reader, 2, 1);
            assert_eq!(reader.available(), 0, "{form}");
            end(&mut reader);
            assert_eq!(taken(&mut reader)[..2], [1, 2], "{form}");
            assert_eq!(reader.counters().coherent_sets_dropped, 0);
        }
    }
}

#[test]
fn an_end_that_overtakes_its_set_ends_it_when_the_rest_is_there() {
    let mut reader = with_writer(coherent(PresentationScope::Topic, Reliability::Reliable), VendorId::RTI);
    handle_list(&mut reader, 4, false, &unknown());
    in_set(&mut reader, 3, 2);
    in_set(&mut reader, 2, 2);
    assert_eq!(reader.available(), 0);
    data(&mut reader, 1);
    assert_eq!(taken(&mut reader), [1, 2, 3]);
}

#[test]
fn a_reader_without_coherent_access_gets_samples_of_sets_as_they_arrive() {
    let mut reader = reader(Reliability::Reliable);
    in_set(&mut reader, 1, 1);
    assert_eq!(taken(&mut reader), [1]);
}

#[test]
fn a_set_with_a_sample_that_the_writer_does_not_have_any_more_is_dropped() {
    let mut reader = with_writer(coherent(PresentationScope::Topic, Reliability::Reliable), VendorId::RTI);
    heartbeat(&mut reader, 1, 1, 1);
    in_set(&mut reader, 1, 1);
    in_set(&mut reader, 3, 1);
    heartbeat(&mut reader, 2, 3, 4);
    handle_list(&mut reader, 4, false, &unknown());
    data(&mut reader, 5);
    assert_eq!(taken(&mut reader), [5]);
    assert_eq!((reader.counters().coherent_sets_dropped, reader.counters().samples_lost), (1, 1));
}

#[test]
fn a_set_that_is_whole_behind_a_sample_that_is_lost_becomes_accessible() {
    let mut reader = with_writer(coherent(PresentationScope::Topic, Reliability::Reliable), VendorId::RTI);
    heartbeat(&mut reader, 1, 1, 0);
    data(&mut reader, 1);
    in_set(&mut reader, 3, 3);
    in_set(&mut reader, 4, 3);
    handle_list(&mut reader, 5, false, &unknown());
    // The next set misses its second sample, and the one behind it its first.
    in_set(&mut reader, 6, 6);
    in_set(&mut reader, 8, 6);
    handle_list(&mut reader, 9, false, &unknown());
    in_set(&mut reader, 11, 10);
    heartbeat(&mut reader, 2, 11, 11);
    assert_eq!(taken(&mut reader), [1, 3, 4]);
    handle_list(&mut reader, 12, false, &unknown());
    in_set(&mut reader, 13, 13);
    handle_list(&mut reader, 14, false, &unknown());
    assert_eq!(taken(&mut reader), [13]);
    assert_eq!((reader.counters().coherent_sets_dropped, reader.counters().samples_lost), (2, 3));
}

#[test]
fn a_set_with_a_sample_that_is_irrelevant_is_whole() {
    let mut reader = with_writer(coherent(PresentationScope::Topic, Reliability::Reliable), VendorId::RTI);
    heartbeat(&mut reader, 1, 1, 0);
    in_set(&mut reader, 1, 1);
    in_set(&mut reader, 3, 1);
    let list = SequenceNumberSet::new(SequenceNumber(3));
    let gap = Gap { reader: EntityId::UNKNOWN, writer: WRITER.entity, start: SequenceNumber(2), list };
    reader.handle_gap(Time(1_000), WRITER, &gap);
    handle_list(&mut reader, 4, false, &unknown());
    assert_eq!(taken(&mut reader), [1, 3]);
}

#[test]
fn a_sample_that_claims_a_set_of_the_future_is_in_none() {
    let mut reader = with_writer(coherent(PresentationScope::Topic, Reliability::Reliable), VendorId::RTI);
    in_set(&mut reader, 1, 5);
    in_set(&mut reader, 2, 0);
    in_set(&mut reader, 3, -7);
    assert_eq!(taken(&mut reader), [1, 2, 3]);
}

#[test]
fn what_samples_far_ahead_say_takes_bounded_memory() {
    let mut reader = with_writer(coherent(PresentationScope::Group, Reliability::Reliable), VendorId::RTI);
    let before = reader.memory();
    for sn in (2..2_000_000).step_by(20) {
        in_set(&mut reader, sn, 2);
        handle_list(&mut reader, sn + 1, false, &unknown());
    }
    assert!(reader.memory() - before < 16 << 20, "{} bytes", reader.memory());
}

/// Handles two samples of a set that begins with `first`, and its end.
fn whole_set(reader: &mut ReaderCore, first: i64) {
    in_set(reader, first, first);
    in_set(reader, first + 1, first);
    handle_list(reader, first + 2, false, &unknown());
}

#[test]
fn sets_after_a_false_first_number_that_was_taken_back_are_whole() {
    let mut reader = with_writer(coherent(PresentationScope::Topic, Reliability::Reliable), VendorId::WEIR);
    heartbeat(&mut reader, 1, 1, 0);
    whole_set(&mut reader, 1);
    reader.handle_heartbeat(Time(2_000), WRITER, &heartbeat_of(EntityId::UNKNOWN, 1 << 30, 1 << 40, 1 << 40));
    for ms in (100..=1_200).step_by(100) {
        let heartbeat = heartbeat_of(EntityId::UNKNOWN, ms as u32, 1, 3);
        reader.handle_heartbeat(Time(ms * 1_000_000), WRITER, &heartbeat);
    }
    assert_eq!(reader.counters().leaps_taken_back, 1);
    whole_set(&mut reader, 4);
    assert_eq!(taken(&mut reader), [1, 2, 4, 5]);
    assert_eq!(reader.counters().coherent_sets_dropped, 0);
}

#[test]
fn sets_of_a_best_effort_writer_that_is_followed_back_are_whole() {
    let mut reader = with_writer(coherent(PresentationScope::Topic, Reliability::BestEffort), VendorId::WEIR);
    whole_set(&mut reader, 1);
    data(&mut reader, 1 << 40);
    assert_eq!(taken(&mut reader), [1, 2, 1 << 40]);
    for (sn, seconds) in [(4, 1), (5, 2)] {
        handle_list_at(&mut reader, Time(seconds * 1_000_000_000), sn, true, &tag(4));
    }
    // The rest of the set that had begun before.
    in_set(&mut reader, 6, 4);
    handle_list(&mut reader, 7, false, &unknown());
    whole_set(&mut reader, 8);
    assert_eq!(taken(&mut reader), [8, 9]);
    assert_eq!(reader.counters().coherent_sets_dropped, 1);
}

/// A reader that has sample 1 of a set, and its end, but not sample 2. Samples end in fragments of 1000 bytes, and the
/// key of sample 5 cannot be decoded.
fn with_hole() -> ReaderCore {
    let mut reader = with_writer(
        ReaderConfig {
            reassembly: ReassemblyLimits { sample_max_bytes: 1000, max_bytes: 8192 },
            key_of: Some(|payload, _| payload.get(4).filter(|it| **it != 0xff).map(|it| [*it; 16])),
            ..coherent(PresentationScope::Topic, Reliability::Reliable)
        },
        VendorId::WEIR,
    );
    heartbeat(&mut reader, 1, 1, 0);
    in_set(&mut reader, 1, 1);
    handle_list(&mut reader, 3, false, &unknown());
    reader
}

/// Handles sample 5, of a size that is announced, in one fragment.
fn fragment_5(reader: &mut ReaderCore, sample_size: u32) {
    let payload = [0, 1, 0, 0, 0xff, 0, 0, 0].iter().copied().cycle().take(sample_size.min(1000) as usize);
    let payload: Vec<_> = payload.collect();
    let frag = first_fragment(5, sample_size, &payload);
    reader.handle_data_frag(Time(1_000), WRITER, &frag, None);
}

#[test]
fn a_sample_to_come_that_is_too_long_breaks_its_own_set_only() {
    let mut reader = with_hole();
    fragment_5(&mut reader, 1001);
    // Again, and with a tag.
    handle_list(&mut reader, 5, true, &tag(4));
    in_set(&mut reader, 2, 1);
    assert_eq!((taken(&mut reader), reader.counters().coherent_sets_dropped), (vec![1, 2], 0));
    in_set(&mut reader, 4, 4);
    handle_list(&mut reader, 6, false, &unknown());
    whole_set(&mut reader, 7);
    assert_eq!((taken(&mut reader), reader.counters().coherent_sets_dropped), (vec![7, 8], 1));
}

#[test]
fn a_sample_to_come_that_cannot_be_decoded_breaks_no_set_before_its_turn() {
    for is_repaired in [true, false] {
        let mut reader = with_hole();
        fragment_5(&mut reader, 8);
        in_set(&mut reader, 2, 1);
        assert_eq!((taken(&mut reader), reader.counters().coherent_sets_dropped), (vec![1, 2], 0));
        in_set(&mut reader, 4, 4);
        if is_repaired {
            in_set(&mut reader, 5, 4);
        } else {
            fragment_5(&mut reader, 8);
        }
        handle_list(&mut reader, 6, false, &unknown());
        let expected = if is_repaired { (vec![4, 5], 0) } else { (vec![], 1) };
        assert_eq!((taken(&mut reader), reader.counters().coherent_sets_dropped), expected);
    }
}

const GROUP: Guid = Guid::new(GuidPrefix([9; 12]), EntityId([0, 0, 1, 8]));

fn progress(ended: i64, sets: &[(i64, bool)]) -> GroupProgress {
    GroupProgress {
        group: GROUP,
        is_alive: true,
        announces_all: true,
        ended: SequenceNumber(ended),
        dropped_to: SequenceNumber::ZERO,
        open: None,
        sets: sets.iter().map(|(set, is_broken)| (SequenceNumber(*set), *is_broken)).collect(),
    }
}

fn settled(progress: &[GroupProgress]) -> Vec<(i64, bool)> {
    settle(progress).into_iter().map(|SettledSet { set, is_whole, .. }| (set.0, is_whole)).collect()
}

#[test]
fn a_shared_set_is_settled_when_it_has_ended_at_each_live_writer() {
    let one = progress(5, &[(1, false), (5, false)]);
    assert_eq!(settled(core::slice::from_ref(&one)), [(1, true), (5, true)]);
    assert_eq!(settled(&[one.clone(), progress(0, &[])]), []);
    assert_eq!(settled(&[one.clone(), progress(1, &[(1, false)])]), [(1, true)]);
    assert_eq!(settled(&[one.clone(), progress(5, &[])]), [(1, true), (5, true)]);
    let dead = GroupProgress { is_alive: false, ..progress(0, &[]) };
    assert_eq!(settled(&[one.clone(), dead]), [(1, true), (5, true)]);
    // The open set of a dead writer has lost its end.
    let dead_amid = GroupProgress { is_alive: false, open: Some(SequenceNumber(5)), ..progress(1, &[]) };
    assert_eq!(settled(&[one.clone(), dead_amid]), [(1, true), (5, false)]);
    assert_eq!(settled(&[one.clone(), progress(5, &[(1, true), (5, false)])]), [(1, false), (5, true)]);
    let dropped = GroupProgress { dropped_to: SequenceNumber(1), ..progress(5, &[]) };
    assert_eq!(settled(&[one, dropped]), [(1, false), (5, true)]);
}

#[test]
fn a_writer_of_another_engine_is_waited_for_while_it_has_begun_a_set() {
    let one = progress(1, &[(1, false)]);
    let other = |open: Option<i64>| GroupProgress {
        announces_all: false,
        open: open.map(SequenceNumber),
        ..progress(0, &[])
    };
    assert_eq!(settled(&[one.clone(), other(None)]), [(1, true)]);
    assert_eq!(settled(&[one.clone(), other(Some(1))]), []);
    assert_eq!(settled(&[one, other(Some(2))]), [(1, true)]);
}

#[test]
fn sets_of_another_group_do_not_matter() {
    let other = GroupProgress { group: READER, ..progress(0, &[]) };
    assert_eq!(settled(&[progress(1, &[(1, false)]), other]), [(1, true)]);
}

#[test]
fn samples_of_several_groups_are_merged_by_time_and_within_a_group_by_number() {
    let position = |group: Guid, number: i64, seconds: u32| groups::GroupPosition {
        group,
        number: SequenceNumber(number),
        source_timestamp: Some(Timestamp { seconds, fraction: 0 }),
    };
    let one = vec![position(GROUP, 1, 5), position(GROUP, 4, 6), position(READER, 1, 7)];
    // In the group, the number decides, although its clock has gone back.
    let other = vec![position(GROUP, 2, 9), position(GROUP, 3, 2)];
    assert_eq!(merge(&[one, other]), [0, 0, 1, 1, 0]);
}

/// A keyed reader that drops samples 10 ms after they arrived, and the writer.
fn with_lifespan(scope: PresentationScope) -> ReaderCore {
    let mut config = coherent(scope, Reliability::Reliable);
    config.key_of = Some(|payload, _| Some([*payload.get(4)?; 16]));
    let mut reader = with_writer(config, VendorId::WEIR);
    reader.set_writer_group(WRITER, GROUP);
    let lifespan = core::time::Duration::from_millis(10);
    reader.set_writer_policies(WRITER, WriterPolicies { lifespan, strength: 0 });
    reader
}

/// Handles a sample of the set that begins with sample 1, or its end.
fn handle_in_set(reader: &mut ReaderCore, now: Time, sn: i64, is_end: bool) {
    let first = SequenceNumber(1);
    let set = if is_end { SequenceNumber::UNKNOWN } else { first };
    let list = list(|list| SetTag { set: Some(set), group_set: Some(first), number: None }.encode(list));
    let payload = [0, 1, 0, 0, sn as u8, 0, 0, 0];
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos: Some(ParameterList::parse(&list, Endianness::Little).unwrap().0),
        payload: if is_end { Payload::None } else { Payload::Data(&payload) },
    };
    reader.handle_data(now, &WRITER, &data, None, None);
    while reader.take_group_news() {
        let mut progress = Vec::new();
        reader.group_progress(&mut progress);
        settle(&progress).into_iter().for_each(|set| reader.settle_set(now, set));
    }
}

#[test]
fn samples_of_a_set_expire_as_long_after_their_arrival_as_others() {
    let at = |ms: u64| Time(ms * 1_000_000);
    for scope in [PresentationScope::Topic, PresentationScope::Group] {
        let mut reader = with_lifespan(scope);
        [1, 3, 4].into_iter().zip(1..).for_each(|(ms, sn)| handle_in_set(&mut reader, at(ms), sn, false));
        handle_in_set(&mut reader, at(12), 4, true);
        // The first one has expired before the set was whole. Its instance is there all the same.
        assert_eq!((reader.available(), reader.counters().samples_expired), (2, 1), "{scope:?}");
        assert_eq!(reader.delivery.cache.instances.alive().count(), 3, "{scope:?}");
        assert_eq!(reader.next_timeout().map(|next| next <= at(13)), Some(true), "{scope:?}");
        let mut received = Vec::new();
        reader.access(1, SampleSelection::default(), false, |sample| {
            received.push((sample.sequence_number.0, sample.reception_time));
            true
        });
        assert_eq!(received, [(2, at(3))], "{scope:?}");
        reader.expire(at(13));
        assert_eq!((reader.available(), reader.counters().samples_expired), (1, 2), "{scope:?}");
        reader.expire(at(14));
        assert_eq!((reader.available(), reader.counters().samples_expired), (0, 3), "{scope:?}");
    }
}

#[test]
fn a_set_that_has_expired_when_it_becomes_whole_is_no_news() {
    let at = |ms: u64| Time(ms * 1_000_000);
    for scope in [PresentationScope::Topic, PresentationScope::Group] {
        let mut reader = with_lifespan(scope);
        [1, 2].into_iter().for_each(|sn| handle_in_set(&mut reader, at(1), sn, false));
        handle_in_set(&mut reader, at(11), 3, true);
        assert!(!reader.has_unread() && !reader.has_expiring(), "{scope:?}");
        assert_eq!(reader.counters().samples_expired, 2, "{scope:?}");
        // A sample outside of sets lasts from its arrival on.
        handle_at(&mut reader, at(20), 4, Payload::Data(&[0, 1, 0, 0, 4, 0, 0, 0]));
        reader.expire(at(29));
        assert_eq!(reader.available(), 1, "{scope:?}");
        reader.expire(at(30));
        assert_eq!((reader.available(), reader.counters().samples_expired), (0, 3), "{scope:?}");
    }
}

/// Handles a set of one sample and its end, by their numbers in the group.
fn shared_set(reader: &mut ReaderCore, first: i64, group_set: i64, numbers: [i64; 2]) {
    for (sn, number) in (first..).zip(numbers) {
        let (group_set, number) = (Some(SequenceNumber(group_set)), Some(SequenceNumber(number)));
        let set = Some(if sn == first { SequenceNumber(first) } else { SequenceNumber::UNKNOWN });
        let list = list(|list| SetTag { set, group_set, number }.encode(list));
        handle_list(reader, sn, sn == first, &list);
    }
}

#[test]
fn a_false_number_of_a_shared_set_does_not_hold_up_those_after_it() {
    const FAR: i64 = 1 << 60;
    for numbers in [[1, 2], [FAR, FAR + 1]] {
        let mut reader =
            with_writer(coherent(PresentationScope::Group, Reliability::Reliable), VendorId::WEIR);
        reader.set_writer_group(WRITER, GROUP);
        shared_set(&mut reader, 1, FAR, numbers);
        shared_set(&mut reader, 3, 3, [3, 4]);
        // Another writer of the group, at another reader, has ended this set, too.
        let mut all = vec![progress(3, &[(3, false)])];
        reader.group_progress(&mut all);
        assert_eq!((all[1].ended, all[1].dropped_to < SequenceNumber(3)), (SequenceNumber(3), true));
        settle(&all).into_iter().for_each(|set| reader.settle_set(Time(1), set));
        assert_eq!(taken(&mut reader).last(), Some(&3), "{numbers:?}");
    }
}
