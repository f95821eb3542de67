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
fn leases_that_end_together_visit_each_writer_a_few_times() {
    let writers: Vec<_> = (0..1_000)
        .map(|n| Guid::new(GuidPrefix([1 + (n % 10) as u8; 12]), EntityId::user_writer(n, true)))
        .collect();
    let mut reader = reader(LivelinessKind::ManualByParticipant, &writers);
    // One participant goes on asserting.
    write(&mut reader, ms(90), writers[7], 1, 7);
    reader.handle_timeout(ms(100));
    assert_eq!(counts(&mut reader), (100, 900, 100, 900));
    assert!(reader.writers.visited <= 2 * writers.len(), "{} visited", reader.writers.visited);
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
    reader_of_many_by(Ownership::Exclusive, LivelinessKind::ManualByTopic, [100, 100_000])
}

/// The same with these leases in milliseconds.
fn reader_of_many_by(ownership: Ownership, kind: LivelinessKind, leases: [u64; 2]) -> ReaderCore {
    two_matched(ReaderConfig { ownership, ..config_of_many(Reliability::BestEffort) }, kind, leases)
}

fn config_of_many(reliability: Reliability) -> ReaderConfig {
    let guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, true));
    ReaderConfig {
        history: History::KeepAll,
        key_of: Some(|payload, _| {
            let mut key = [0; 16];
            key[..4].copy_from_slice(payload.get(4..8)?);
            Some(key)
        }),
        ..ReaderConfig::new(guid, reliability)
    }
}

fn two_matched(config: ReaderConfig, kind: LivelinessKind, leases: [u64; 2]) -> ReaderCore {
    let mut reader = ReaderCore::new(config);
    for (guid, ms_left) in [ONE, OTHER].into_iter().zip(leases) {
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let vendor = VendorId::WEIR;
        reader.match_writer(ms(0), WriterProxyConfig { guid, reliable: true, destinations, vendor });
        let lease = Duration::from_millis(ms_left);
        reader.set_liveliness(ms(0), guid, Liveliness { kind, lease });
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
        assert!(reader.has_left(), "the other instances that it left end in steps");
        steps(&mut reader, ms(104));
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

/// How a writer that has left is back.
#[derive(Debug, Clone, Copy)]
enum Return {
    Sample,
    Heartbeat,
    Participant,
    Match,
}

impl Return {
    fn handle(self, reader: &mut ReaderCore, now: Time) {
        match self {
            Self::Sample => {}
            Self::Heartbeat => heartbeat(reader, now, true),
            Self::Participant => {
                reader.assert_liveliness(now, PARTICIPANT, LivelinessKind::ManualByParticipant);
            }
            Self::Match => {
                let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
                let vendor = VendorId::WEIR;
                let config = WriterProxyConfig { guid: ONE, reliable: true, destinations, vendor };
                reader.match_writer(now, config);
            }
        }
    }
}

/// A writer that is back has left 100 000 instances, and another one as many. No call ends more than a step, and an
/// instance that is written again is alive, whichever way its end and the value take.
#[test]
fn a_writer_that_is_back_does_not_wait_for_the_end_of_the_instances_that_it_left() {
    const MANY: u32 = 100_000;
    let ways = [Return::Sample, Return::Heartbeat, Return::Participant, Return::Match];
    let of = |ownership| ways.map(|way| (ownership, way));
    for (ownership, way) in [of(Ownership::Shared), of(Ownership::Exclusive)].concat() {
        let kind = match way {
            Return::Participant => LivelinessKind::ManualByParticipant,
            _ => LivelinessKind::ManualByTopic,
        };
        let mut reader = reader_of_many_by(ownership, kind, [100, 100]);
        assert_eq!(reader.has_policies(), ownership == Ownership::Exclusive);
        write_many(&mut reader, MANY);
        for number in 0..MANY {
            write_number(&mut reader, ms(1), OTHER, (number + 1, MANY + number));
            assert_eq!(states(&mut reader), [InstanceState::Alive]);
        }
        let mut longest = 0;
        let mut counted = |reader: &mut ReaderCore, f: &mut dyn FnMut(&mut ReaderCore)| {
            let before = reader.counters().instances_left;
            f(reader);
            longest = longest.max(reader.counters().instances_left - before);
        };
        counted(&mut reader, &mut |reader| reader.handle_timeout(ms(101)));
        counted(&mut reader, &mut |reader| way.handle(reader, ms(102)));
        let ended = states(&mut reader).len();
        // One that has ended and is forgotten, one that has not, twice, and a new one.
        let written = [5, MANY - 7, MANY - 7, 3 * MANY];
        for (number, sn) in written.into_iter().zip(MANY + 1..) {
            counted(&mut reader, &mut |reader| write_number(reader, ms(103), ONE, (sn, number)));
        }
        let mut seen = Vec::new();
        reader.access(usize::MAX, SampleSelection::default(), true, |sample| {
            seen.push((sample.payload.len() > 4, sample.no_writers_generation));
            true
        });
        assert!(seen.len() == 5, "{}: {ownership:?} {way:?}", seen.len());
        assert_eq!(seen, [(true, 0), (false, 0), (true, 1), (true, 1), (true, 0)], "{ownership:?} {way:?}");
        while reader.has_left() {
            counted(&mut reader, &mut |reader| reader.handle_timeout(ms(103)));
        }
        assert!(longest <= 1024, "{longest} instances at once: {ownership:?} {way:?}");
        assert_eq!(reader.counters().instances_left, 2 * u64::from(MANY));
        let last = states(&mut reader);
        assert_eq!(ended + 1 + last.len(), 2 * MANY as usize, "each ends once");
        assert!(last.iter().all(|state| *state == InstanceState::NotAliveNoWriters));
        // It has left again: what it has written since ends, once.
        reader.unmatch_writer(ms(104), ONE);
        assert_eq!(states(&mut reader), [InstanceState::NotAliveNoWriters; 3]);
    }
}

/// What is recorded of a writer that left and is back is that of the writer that is back.
#[test]
fn the_policies_of_a_writer_that_is_back_stay_when_the_instances_that_it_left_have_ended() {
    let mut reader = reader_of_many();
    write_many(&mut reader, 3_000);
    reader.unmatch_writer(ms(2), ONE);
    Return::Match.handle(&mut reader, ms(3));
    reader.set_writer_policies(ONE, WriterPolicies { lifespan: Duration::MAX, strength: 2 });
    write_number(&mut reader, ms(3), ONE, (3_001, 2_999));
    steps(&mut reader, ms(3));
    write_number(&mut reader, ms(4), OTHER, (1, 2_999));
    assert_eq!(reader.counters().samples_not_owned, 1);
}

/// Samples that found no room when they arrived are placed once there is some. Their writer may have left since.
#[test]
fn held_samples_of_a_writer_that_has_left_follow_the_ends_of_their_instances() {
    for ownership in [Ownership::Shared, Ownership::Exclusive] {
        let config =
            ReaderConfig { ownership, max_samples: Some(4), ..config_of_many(Reliability::Reliable) };
        let mut reader = two_matched(config, LivelinessKind::ManualByTopic, [100, 100_000]);
        write_many(&mut reader, 3_000);
        // They wait for an earlier one. When it arrives, it takes the last room.
        for (sn, number) in [(3_002, 1), (3_003, 2_997), (3_004, 2_997)] {
            write_number(&mut reader, ms(1), ONE, (sn, number));
        }
        for sn in 1..4 {
            write_number(&mut reader, ms(1), OTHER, (sn, 5_000));
        }
        write_number(&mut reader, ms(1), ONE, (3_001, 2_998));
        assert_eq!(reader.available(), 4);
        reader.handle_timeout(ms(101));
        assert_eq!(reader.counters().instances_left, 1_024);
        // What is taken makes room for them: one of an instance that has ended, and two of another.
        states(&mut reader);
        let mut seen = Vec::new();
        let mut take = |reader: &mut ReaderCore| {
            reader.access(usize::MAX, SampleSelection::default(), true, |sample| {
                let number = sample.payload.get(4..8).map(|it| u32::from_le_bytes(it.try_into().unwrap()));
                seen.push((number, sample.no_writers_generation));
                true
            })
        };
        while take(&mut reader) > 0 {}
        assert_eq!(seen, [(Some(1), 0), (None, 0), (Some(2_997), 1), (Some(2_997), 1)], "{ownership:?}");
        assert!(reader.has_left());
        while reader.has_left() {
            reader.handle_timeout(ms(101));
        }
        // Those that were placed late have ended once more.
        assert_eq!(reader.counters().instances_left, 3_002);
        let states = states(&mut reader);
        assert!(states.iter().all(|state| *state == InstanceState::NotAliveNoWriters));
        assert_eq!(reader.delivery.cache.instances.alive().count(), 1, "that of the other writer");
    }
}
