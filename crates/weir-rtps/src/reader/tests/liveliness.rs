use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_wire::{Data, EntityId, Payload, SequenceNumber, VendorId};

use super::*;
use crate::config::LIVELINESS_LEASE_MIN;
use crate::qos::{History, Liveliness, LivelinessKind, Ownership, Reliability};
use crate::reader::{InstanceState, ReaderConfig, SampleSelection, WriterPolicies, WriterProxyConfig};

const PARTICIPANT: GuidPrefix = GuidPrefix([1; 12]);
const ONE: Guid = Guid::new(PARTICIPANT, EntityId::user_writer(1, true));
const OTHER: Guid = Guid::new(PARTICIPANT, EntityId::user_writer(2, true));

fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// A best-effort reader of a keyed topic, whose writers may be silent for 100 ms.
fn reader(kind: LivelinessKind, writers: &[Guid]) -> ReaderCore {
    let guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, true));
    let mut reader = ReaderCore::new(ReaderConfig {
        history: History::KeepAll,
        key_of: Some(|payload, _| Some([payload[4]; 16])),
        ..ReaderConfig::new(guid, Reliability::BestEffort)
    });
    for &guid in writers {
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let vendor = VendorId::WEIR;
        reader.match_writer(ms(0), WriterProxyConfig { guid, reliable: true, destinations, vendor });
        reader.set_liveliness(ms(0), guid, Liveliness { kind, lease: Duration::from_millis(100) });
    }
    reader
}

fn write(reader: &mut ReaderCore, now: Time, writer: Guid, sn: i64, key: u8) {
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos: None,
        payload: Payload::Data(&[0, 1, 0, 0, key, 0, 0, 0]),
    };
    reader.handle_data(now, &writer, &data, None, None);
}

fn heartbeat(reader: &mut ReaderCore, now: Time, is_liveliness: bool) {
    heartbeat_of(reader, now, 1, is_liveliness);
}

fn heartbeat_of(reader: &mut ReaderCore, now: Time, count: u32, is_liveliness: bool) {
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: ONE.entity,
        first: SequenceNumber(1),
        last: SequenceNumber(1),
        count,
        is_final: true,
        is_liveliness,
    };
    reader.handle_heartbeat(now, ONE, &heartbeat);
}

/// Alive, not alive, and how both changed.
fn counts(reader: &mut ReaderCore) -> (u32, u32, i32, i32) {
    let status = reader.take_liveliness_changed();
    (status.alive_count, status.not_alive_count, status.alive_count_change, status.not_alive_count_change)
}

fn states(reader: &mut ReaderCore) -> Vec<InstanceState> {
    let mut states = Vec::new();
    reader.access(usize::MAX, SampleSelection::default(), true, |sample| {
        states.push(sample.instance_state);
        true
    });
    states
}

#[test]
fn a_silent_writer_is_not_alive_until_it_writes_again() {
    let mut reader = reader(LivelinessKind::ManualByTopic, &[ONE]);
    assert!(reader.has_liveliness_news());
    assert_eq!(counts(&mut reader), (1, 0, 1, 0));
    write(&mut reader, ms(50), ONE, 1, 7);
    assert_eq!(states(&mut reader), [InstanceState::Alive]);
    assert_eq!(reader.next_timeout(), Some(ms(150)));
    reader.handle_timeout(ms(149));
    assert!(!reader.has_liveliness_news());
    reader.handle_timeout(ms(150));
    assert!(reader.has_liveliness_news());
    assert_eq!(counts(&mut reader), (0, 1, -1, 1));
    assert_eq!(states(&mut reader), [InstanceState::NotAliveNoWriters]);
    assert_eq!(reader.next_timeout(), None);
    write(&mut reader, ms(400), ONE, 2, 7);
    assert_eq!(counts(&mut reader), (1, 0, 1, -1));
    assert_eq!(states(&mut reader), [InstanceState::Alive]);
    assert_eq!(reader.next_timeout(), Some(ms(500)));
}

#[test]
fn a_timeout_is_told_once_until_there_may_be_an_earlier_one() {
    let mut reader = reader(LivelinessKind::ManualByTopic, &[ONE]);
    assert_eq!(reader.take_timeout(), Some(ms(100)));
    write(&mut reader, ms(50), ONE, 1, 7);
    assert_eq!((reader.take_timeout(), reader.next_timeout()), (None, Some(ms(100))), "it is only later");
    // Looked at too early, it is known to be later.
    reader.handle_timeout(ms(100));
    assert_eq!((reader.take_timeout(), reader.next_timeout()), (Some(ms(150)), Some(ms(150))));
    reader.handle_timeout(ms(150));
    assert_eq!(reader.take_timeout(), None);
    // The writer is back, and its lease begins again.
    write(&mut reader, ms(400), ONE, 2, 7);
    assert_eq!((reader.take_timeout(), reader.take_timeout()), (Some(ms(500)), None));
}

#[test]
fn only_a_heartbeat_for_that_purpose_asserts_a_manual_writer() {
    for (kind, is_liveliness, next) in [
        (LivelinessKind::ManualByTopic, false, 100),
        (LivelinessKind::ManualByTopic, true, 150),
        (LivelinessKind::ManualByParticipant, false, 100),
        (LivelinessKind::Automatic, false, 150),
    ] {
        let mut reader = reader(kind, &[ONE]);
        heartbeat(&mut reader, ms(50), is_liveliness);
        reader.handle_timeout(ms(99));
        assert_eq!(reader.next_timeout(), Some(ms(next)), "{kind:?}, liveliness flag {is_liveliness}");
    }
}

#[test]
fn a_participant_asserts_all_its_writers_of_the_kind() {
    let mut reader = reader(LivelinessKind::Automatic, &[ONE, OTHER]);
    reader.assert_liveliness(ms(60), PARTICIPANT, LivelinessKind::ManualByParticipant);
    reader.assert_liveliness(ms(70), GuidPrefix([9; 12]), LivelinessKind::Automatic);
    assert_eq!(reader.next_timeout(), Some(ms(100)));
    reader.assert_liveliness(ms(80), PARTICIPANT, LivelinessKind::Automatic);
    reader.handle_timeout(ms(100));
    assert_eq!(reader.next_timeout(), Some(ms(180)));
    reader.handle_timeout(ms(180));
    assert_eq!(counts(&mut reader), (0, 2, 0, 2));
}

#[test]
fn a_write_asserts_the_other_manual_writers_of_the_participant() {
    let mut reader = reader(LivelinessKind::ManualByParticipant, &[ONE, OTHER]);
    write(&mut reader, ms(90), ONE, 1, 7);
    reader.handle_timeout(ms(100));
    assert_eq!(counts(&mut reader), (2, 0, 2, 0));
    reader.handle_timeout(ms(190));
    assert_eq!(counts(&mut reader), (0, 2, -2, 2));
}

#[test]
fn a_writer_that_leaves_is_neither_alive_nor_not_alive() {
    let mut reader = reader(LivelinessKind::ManualByTopic, &[ONE, OTHER]);
    reader.unmatch_writer(ms(10), ONE);
    assert_eq!(counts(&mut reader), (1, 0, 1, 0));
    reader.handle_timeout(ms(100));
    reader.unmatch_writer(ms(110), OTHER);
    assert_eq!(counts(&mut reader), (0, 0, -1, 0));
    assert_eq!(reader.take_liveliness_changed().last_publication_handle, Some(OTHER));
}

#[test]
fn a_lease_of_nothing_is_raised_so_that_a_timer_has_a_rest() {
    let mut reader = reader(LivelinessKind::ManualByTopic, &[ONE]);
    for lease in [Duration::ZERO, Duration::from_micros(1)] {
        reader.set_liveliness(ms(7), ONE, Liveliness { kind: LivelinessKind::ManualByTopic, lease });
        assert_eq!(reader.next_timeout(), Some(ms(7) + LIVELINESS_LEASE_MIN));
    }
    assert_eq!(reader.counters().leases_raised, 2);
}

#[test]
fn a_lost_writer_comes_back_by_an_assertion_of_its_participant_of_its_own_kind() {
    let mut reader = reader(LivelinessKind::ManualByParticipant, &[ONE, OTHER]);
    write(&mut reader, ms(10), ONE, 1, 7);
    reader.handle_timeout(ms(110));
    assert_eq!(counts(&mut reader), (0, 2, 0, 2));
    assert_eq!(reader.not_alive_writers(), 2);
    reader.assert_liveliness(ms(120), PARTICIPANT, LivelinessKind::Automatic);
    reader.assert_liveliness(ms(120), GuidPrefix([9; 12]), LivelinessKind::ManualByParticipant);
    assert!(!reader.has_liveliness_news());
    reader.assert_liveliness(ms(130), PARTICIPANT, LivelinessKind::ManualByParticipant);
    assert_eq!(counts(&mut reader), (2, 0, 2, -2));
    // The lease begins at the assertion.
    reader.handle_timeout(ms(229));
    assert!(!reader.has_liveliness_news());
    reader.handle_timeout(ms(230));
    assert_eq!(counts(&mut reader), (0, 2, -2, 2));
}

#[test]
fn a_writer_asserted_on_its_topic_comes_back_by_its_own_assertion_only() {
    let mut reader = reader(LivelinessKind::ManualByTopic, &[ONE, OTHER]);
    reader.handle_timeout(ms(100));
    assert_eq!(counts(&mut reader), (0, 2, 0, 2));
    for kind in [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant] {
        reader.assert_liveliness(ms(110), PARTICIPANT, kind);
        assert!(!reader.has_liveliness_news(), "{kind:?}");
    }
    // Not by a HEARTBEAT that only announces samples.
    heartbeat(&mut reader, ms(120), false);
    assert!(!reader.has_liveliness_news());
    heartbeat_of(&mut reader, ms(130), 2, true);
    assert_eq!(counts(&mut reader), (1, 1, 1, -1));
    write(&mut reader, ms(140), OTHER, 1, 7);
    assert_eq!(counts(&mut reader), (2, 0, 1, -1));
    // Both are lost again, one after the other.
    reader.handle_timeout(ms(230));
    assert_eq!(counts(&mut reader), (1, 1, -1, 1));
    reader.handle_timeout(ms(240));
    assert_eq!(counts(&mut reader), (0, 2, -1, 1));
}

/// A reader of two writers whose keys have four bytes. The first is stronger, and has the shorter lease.
fn reader_of_many() -> ReaderCore {
    let mut reader = reader(LivelinessKind::ManualByTopic, &[]);
    reader = ReaderCore::new(ReaderConfig {
        history: History::KeepAll,
        ownership: Ownership::Exclusive,
        key_of: Some(|payload, _| {
            let mut key = [0; 16];
            key[..4].copy_from_slice(payload.get(4..8)?);
            Some(key)
        }),
        ..ReaderConfig::new(reader.guid(), Reliability::BestEffort)
    });
    for (guid, ms_left) in [(ONE, 100), (OTHER, 100_000)] {
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let vendor = VendorId::WEIR;
        reader.match_writer(ms(0), WriterProxyConfig { guid, reliable: true, destinations, vendor });
        let lease = Duration::from_millis(ms_left);
        reader.set_liveliness(ms(0), guid, Liveliness { kind: LivelinessKind::ManualByTopic, lease });
        let strength = if guid == ONE { 2 } else { 1 };
        reader.set_writer_policies(guid, WriterPolicies { lifespan: Duration::MAX, strength });
    }
    reader
}

fn write_number(reader: &mut ReaderCore, now: Time, writer: Guid, (sn, number): (u32, u32)) {
    let [a, b, c, d] = number.to_le_bytes();
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        sequence_number: SequenceNumber(sn.into()),
        inline_qos: None,
        payload: Payload::Data(&[0, 1, 0, 0, a, b, c, d]),
    };
    reader.handle_data(now, &writer, &data, None, None);
}

/// Writes so many instances by the first writer, and takes them.
fn write_many(reader: &mut ReaderCore, many: u32) {
    for number in 0..many {
        write_number(reader, ms(1), ONE, (number + 1, number));
        assert_eq!(states(reader), [InstanceState::Alive]);
    }
}

/// Handles what is due at a time. Returns how many samples each step has added.
fn steps(reader: &mut ReaderCore, now: Time) -> Vec<usize> {
    let mut steps = Vec::new();
    while reader.next_timeout().is_some_and(|at| at <= now) {
        let before = reader.available();
        reader.handle_timeout(now);
        steps.push(reader.available() - before);
    }
    steps
}

#[test]
fn the_many_instances_of_a_lost_writer_end_in_short_steps() {
    const MANY: u32 = 100_000;
    for is_unmatched in [false, true] {
        let mut reader = reader_of_many();
        write_many(&mut reader, MANY);
        let now = if is_unmatched { ms(50) } else { ms(101) };
        let mut added = Vec::new();
        if is_unmatched {
            reader.unmatch_writer(now, ONE);
            added.push(reader.available());
        }
        added.extend(steps(&mut reader, now));
        let longest = added.iter().max().copied().unwrap_or(0);
        assert!(longest <= 1024, "{longest} instances at once");
        assert_eq!(reader.counters().instances_left, u64::from(MANY));
        let states = states(&mut reader);
        assert_eq!(states.len(), MANY as usize, "each ends once");
        assert!(states.iter().all(|state| *state == InstanceState::NotAliveNoWriters));
        assert_eq!(steps(&mut reader, now), [0; 0]);
    }
}

#[test]
fn a_writer_that_left_owns_nothing_while_its_instances_end_and_writes_them_anew_when_it_is_back() {
    for is_matched_anew in [false, true] {
        let mut reader = reader_of_many();
        write_many(&mut reader, 3_000);
        reader.handle_timeout(ms(101));
        assert!(reader.has_left());
        let ended = reader.available();
        // A weaker writer has the last but one from now on, which never was without writers.
        write_number(&mut reader, ms(102), OTHER, (1, 2_998));
        assert_eq!(reader.available(), ended + 1);
        if is_matched_anew {
            let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
            let vendor = VendorId::WEIR;
            reader
                .match_writer(ms(103), WriterProxyConfig { guid: ONE, reliable: true, destinations, vendor });
        }
        write_number(&mut reader, ms(104), ONE, (3_001, 2_999));
        assert!(!reader.has_left(), "what it left has ended before it writes again");
        let mut generations = Vec::new();
        let mut count = [0; 3];
        reader.access(usize::MAX, SampleSelection::default(), true, |sample| {
            count[sample.instance_state as usize] += 1;
            if sample.payload.len() > 4 {
                generations.push((sample.writer, sample.no_writers_generation));
            }
            true
        });
        assert_eq!(generations, [(OTHER, 0), (ONE, 1)]);
        let [alive, disposed, without_writers] = count;
        assert_eq!(
            (alive, disposed, without_writers),
            (3, 0, 2_998),
            "the last one has ended, and is alive again"
        );
        assert_eq!(reader.counters().instances_left, 3_000);
    }
}
