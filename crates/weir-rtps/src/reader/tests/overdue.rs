//! Samples of writers that are not alive, or have left: they were held back, and are delivered after the end of their
//! instance. It ends again behind them, and only a writer that is alive owns it.

use core::time::Duration;

use weir_wire::{Endianness, ParameterListWriter, Timestamp};

use super::groups::settle;
use super::policies::{MS, STRONG, Source, WEAK, at, keyed, two_writers};
use super::*;
use crate::group::SetTag;
use crate::qos::{DestinationOrder, Liveliness, LivelinessKind, Ownership, Presentation, PresentationScope};

pub(super) const LEASE: Duration = Duration::from_millis(100);
const GROUP: Guid = Guid::new(GuidPrefix([9; 12]), EntityId([0, 0, 1, 8]));

/// A reader whose stronger writer is to be received from within the lease, and the writers.
pub(super) fn leased(config: ReaderConfig) -> (ReaderCore, Source, Source) {
    let mut reader = two_writers(config);
    reader.set_liveliness(at(0), STRONG, Liveliness { kind: LivelinessKind::ManualByTopic, lease: LEASE });
    (reader, Source::new(WEAK), Source::new(STRONG))
}

fn exclusive() -> ReaderConfig {
    ReaderConfig { ownership: Ownership::Exclusive, ..keyed() }
}

/// All samples: the value, or the state of the instance where there is none.
pub(super) fn all(reader: &mut ReaderCore) -> Vec<Result<u8, InstanceState>> {
    let mut all = Vec::new();
    reader.access(usize::MAX, SampleSelection::default(), true, |sample| {
        all.push(sample.payload.get(5).copied().ok_or(sample.instance_state));
        true
    });
    all
}

/// Whether a writer that is alive writes the instance of this key.
pub(super) fn is_alive(reader: &ReaderCore, key: u8) -> bool {
    let index = reader.find_instance([key; 16]);
    index.is_some_and(|index| reader.delivery.cache.instances.alive().any(|alive| alive == index))
}

/// A message that says nothing about the liveliness of its writer, by which samples that wait are next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Release {
    Heartbeat,
    Gap,
}

impl Release {
    /// The samples before `first` are not there.
    pub(super) fn send(self, reader: &mut ReaderCore, now: Time, writer: Guid, (missing, first): (i64, i64)) {
        let first = SequenceNumber(first);
        match self {
            Self::Heartbeat => {
                let heartbeat = Heartbeat {
                    reader: EntityId::UNKNOWN,
                    writer: writer.entity,
                    first,
                    last: first,
                    count: (now.0 / MS) as u32,
                    is_final: true,
                    is_liveliness: false,
                };
                reader.handle_heartbeat(now, writer, &heartbeat);
            }
            Self::Gap => {
                let start = SequenceNumber(missing);
                let list = SequenceNumberSet::new(first);
                let gap = Gap { reader: EntityId::UNKNOWN, writer: writer.entity, start, list };
                reader.handle_gap(now, writer, &gap);
            }
        }
    }
}

#[test]
fn what_was_held_back_of_a_writer_that_is_not_alive_does_not_keep_its_instance_alive() {
    let by_source = ReaderConfig { destination_order: DestinationOrder::BySourceTimestamp, ..exclusive() };
    let separated = ReaderConfig { minimum_separation: Duration::from_millis(10), ..keyed() };
    let scope = PresentationScope::Topic;
    let coherent = Presentation { scope, coherent_access: true, ordered_access: false };
    let coherent = ReaderConfig { presentation: coherent, ..keyed() };
    let configs = [
        ("no policy", keyed()),
        ("OWNERSHIP", exclusive()),
        ("DESTINATION_ORDER", by_source),
        ("TIME_BASED_FILTER", separated),
        ("PRESENTATION", coherent),
    ];
    for (policy, config) in configs {
        for release in [Release::Heartbeat, Release::Gap] {
            let form = format!("{policy}, {release:?}");
            let (mut reader, _, mut strong) = leased(config.clone());
            let first = strong.send(&mut reader, at(0), 1);
            strong.next = 3;
            let stamp = |seconds| Some(Timestamp { seconds, fraction: 0 });
            let third = strong.send_stamped(&mut reader, at(20), 1, stamp(6));
            // This one is older: DESTINATION_ORDER leaves it out, and it is a value of the instance all the same.
            let fourth = strong.send_stamped(&mut reader, at(20), 1, stamp(5));
            assert_eq!(all(&mut reader), [Ok(first)], "{form}");
            reader.handle_timeout(at(120));
            assert_eq!(all(&mut reader), [Err(InstanceState::NotAliveNoWriters)], "{form}");
            release.send(&mut reader, at(130), STRONG, (2, 3));
            let values = if policy == "DESTINATION_ORDER" { vec![third] } else { vec![third, fourth] };
            let values = values.into_iter().map(Ok);
            let end = [Err(InstanceState::NotAliveNoWriters)];
            assert!(!is_alive(&reader, 1), "{form}");
            assert_eq!(all(&mut reader), values.chain(end).collect::<Vec<_>>(), "{form}");
            assert_eq!(reader.find_instance([1; 16]), None, "{form}: it has ended");
            // Its next value arrives: it is alive, and so is the instance.
            let last = strong.send(&mut reader, at(200), 1);
            assert_eq!(all(&mut reader), [Ok(last)], "{form}");
            assert!(is_alive(&reader, 1), "{form}");
            reader.handle_timeout(at(300));
            assert_eq!(all(&mut reader), [Err(InstanceState::NotAliveNoWriters)], "{form}");
        }
    }
}

#[test]
fn an_owner_that_is_alive_keeps_its_instance_when_late_values_of_a_stronger_writer_are_next() {
    for release in [Release::Heartbeat, Release::Gap] {
        let (mut reader, mut weak, mut strong) = leased(exclusive());
        let first = strong.send(&mut reader, at(0), 1);
        strong.next = 3;
        strong.send(&mut reader, at(10), 1);
        let other = strong.send(&mut reader, at(10), 2);
        weak.send(&mut reader, at(20), 1);
        reader.handle_timeout(at(110));
        let second = weak.send(&mut reader, at(120), 1);
        release.send(&mut reader, at(130), STRONG, (2, 3));
        let third = weak.send(&mut reader, at(140), 1);
        // No writer owned the other instance. It ends, and belongs to the writer that is alive from then on.
        let values = [Ok(first), Ok(second), Ok(other), Err(InstanceState::NotAliveNoWriters), Ok(third)];
        assert_eq!(all(&mut reader), values, "{release:?}");
        assert_eq!(reader.counters().samples_not_owned, 2);
        let fourth = weak.send(&mut reader, at(150), 2);
        assert_eq!(all(&mut reader), [Ok(fourth)], "{release:?}");
        reader.unmatch_writer(at(160), WEAK);
        assert_eq!(all(&mut reader), [Err(InstanceState::NotAliveNoWriters); 2], "{release:?}");
    }
}

#[test]
fn what_found_no_room_while_its_writer_was_alive_ends_when_it_is_placed() {
    for config in [keyed(), exclusive()] {
        let config = ReaderConfig { max_samples: Some(2), ..config };
        let (mut reader, mut weak, mut strong) = leased(config);
        strong.next = 2;
        let second = strong.send(&mut reader, at(0), 2);
        let third = strong.send(&mut reader, at(0), 2);
        let other = weak.send(&mut reader, at(0), 1);
        strong.next = 1;
        let first = strong.send(&mut reader, at(1), 2);
        assert_eq!(reader.available(), 2);
        reader.handle_timeout(at(101));
        assert_eq!(reader.counters().instances_left, 1);
        let mut seen = Vec::new();
        while reader.available() > 0 {
            seen.extend(all(&mut reader));
            if reader.next_timeout().is_some_and(|next| next <= at(101)) {
                reader.handle_timeout(at(101));
            }
        }
        let no_writers = InstanceState::NotAliveNoWriters;
        assert_eq!(seen[..2], [Ok(other), Ok(first)]);
        assert_eq!(seen[2..], [Err(no_writers), Ok(second), Ok(third), Err(no_writers)]);
        assert_eq!(reader.find_instance([2; 16]), None);
        let fourth = weak.send(&mut reader, at(110), 2);
        assert_eq!(all(&mut reader), [Ok(fourth)]);
    }
}

/// A reader of sets that the writers of a publisher share.
pub(super) fn grouped(ownership: Ownership) -> (ReaderCore, Source, Source) {
    let scope = PresentationScope::Group;
    let presentation = Presentation { scope, coherent_access: true, ordered_access: false };
    let (mut reader, weak, strong) = leased(ReaderConfig { presentation, ownership, ..keyed() });
    reader.set_writer_group(STRONG, GROUP);
    (reader, weak, strong)
}

/// Sends the next value of a writer in a set that begins with its sample `set`; without a key, the end of the set.
pub(super) fn send_in_set(
    reader: &mut ReaderCore,
    now: Time,
    source: &mut Source,
    key: Option<u8>,
    set: i64,
) -> u8 {
    let value = (source.guid.prefix.0[0] * 10).wrapping_add(source.next as u8);
    let mut list = Vec::new();
    let mut writer = ParameterListWriter::new(&mut list);
    let number = |number: i64| Some(SequenceNumber(number));
    let tag = SetTag { set: key.map(|_| SequenceNumber(set)), group_set: number(set), number: None };
    SetTag { set: tag.set.or(Some(SequenceNumber::UNKNOWN)), ..tag }.encode(&mut writer);
    writer.finish();
    let inline_qos = Some(ParameterList::parse(&list, Endianness::Little).unwrap().0);
    let payload = [0, 1, 0, 0, key.unwrap_or(0), value, 0, 0];
    let payload = key.map_or(Payload::None, |_| Payload::Data(&payload));
    let (to, sn) = (EntityId::UNKNOWN, SequenceNumber(source.next));
    let data = Data { reader: to, writer: source.guid.entity, sequence_number: sn, inline_qos, payload };
    source.next += 1;
    reader.handle_data(now, &source.guid, &data, None, None);
    value
}

/// Settles the sets that have ended.
pub(super) fn settle_all(reader: &mut ReaderCore, now: Time) {
    while reader.take_group_news() {
        let mut progress = Vec::new();
        reader.group_progress(&mut progress);
        settle(&progress).into_iter().for_each(|set| reader.settle_set(now, set));
    }
}

#[test]
fn a_shared_set_that_becomes_accessible_after_its_writer_does_not_keep_instances_alive() {
    for ownership in [Ownership::Shared, Ownership::Exclusive] {
        for is_unmatched in [false, true] {
            let (mut reader, mut weak, mut strong) = grouped(ownership);
            let first = strong.send(&mut reader, at(0), 1);
            let second = send_in_set(&mut reader, at(1), &mut strong, Some(1), 2);
            let third = send_in_set(&mut reader, at(1), &mut strong, Some(2), 2);
            send_in_set(&mut reader, at(1), &mut strong, None, 2);
            assert_eq!(all(&mut reader), [Ok(first)], "the set waits for other readers");
            match is_unmatched {
                true => reader.unmatch_writer(at(110), STRONG),
                false => reader.handle_timeout(at(110)),
            }
            let end = Err(InstanceState::NotAliveNoWriters);
            assert_eq!(all(&mut reader), [end]);
            let fourth = weak.send(&mut reader, at(120), 2);
            settle_all(&mut reader, at(130));
            let fifth = weak.send(&mut reader, at(140), 2);
            // Those of an instance follow each other.
            let values = match ownership {
                Ownership::Shared => vec![Ok(fourth), Ok(third), Ok(fifth), Ok(second), end],
                Ownership::Exclusive => vec![Ok(fourth), Ok(fifth), Ok(second), end],
            };
            assert_eq!(all(&mut reader), values, "{ownership:?}, unmatched: {is_unmatched}");
            assert!(!is_alive(&reader, 1) && is_alive(&reader, 2));
        }
    }
}

#[test]
fn a_set_that_begins_after_its_writer_was_lost_is_dropped() {
    for release in [Release::Heartbeat, Release::Gap] {
        let (mut reader, _, mut strong) = grouped(Ownership::Shared);
        let first = strong.send(&mut reader, at(0), 1);
        strong.next = 3;
        send_in_set(&mut reader, at(10), &mut strong, Some(1), 3);
        reader.handle_timeout(at(110));
        release.send(&mut reader, at(120), STRONG, (2, 3));
        assert_eq!(reader.counters().coherent_sets_dropped, 1, "{release:?}");
        assert_eq!(all(&mut reader), [Ok(first), Err(InstanceState::NotAliveNoWriters)]);
        let mut progress = Vec::new();
        reader.group_progress(&mut progress);
        let is_alive = progress.iter().filter(|it| it.group == GROUP).map(|it| it.is_alive);
        assert_eq!(is_alive.collect::<Vec<_>>(), [false], "{release:?}");
    }
}

#[test]
fn the_sets_of_a_writer_that_was_unmatched_have_its_lifespan_and_no_later_writer_has() {
    let (mut reader, _, mut strong) = grouped(Ownership::Shared);
    let policies = WriterPolicies { lifespan: Duration::from_millis(50), strength: 2 };
    reader.set_writer_policies(STRONG, policies);
    let first = send_in_set(&mut reader, at(1), &mut strong, Some(1), 1);
    send_in_set(&mut reader, at(1), &mut strong, None, 1);
    reader.unmatch_writer(at(2), STRONG);
    settle_all(&mut reader, at(3));
    assert!(reader.has_expiring());
    reader.handle_timeout(at(50));
    reader.access(usize::MAX, SampleSelection::default(), false, |sample| {
        assert!(sample.payload.get(5).is_none_or(|value| *value == first));
        true
    });
    assert_eq!(reader.available(), 2, "the value, and the end of the instance");
    // It arrived at 1 ms.
    reader.handle_timeout(at(51));
    assert_eq!(reader.counters().samples_expired, 1);
    assert_eq!(all(&mut reader), [Err(InstanceState::NotAliveNoWriters)]);
    // The same writer without policies.
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let config = WriterProxyConfig { guid: STRONG, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(at(60), config);
    strong.send(&mut reader, at(61), 1);
    assert!(!reader.has_expiring());
}

#[test]
fn the_end_of_an_instance_follows_the_samples_of_a_lost_writer_that_found_no_room_once() {
    const ROOM: u32 = 20;
    let (mut reader, mut weak, mut strong) = leased(ReaderConfig { max_samples: Some(ROOM), ..keyed() });
    strong.next = 2;
    let mut expected: Vec<_> = (2..=ROOM).map(|_| Ok(strong.send(&mut reader, at(0), 2))).collect();
    (1..ROOM).for_each(|_| _ = weak.send(&mut reader, at(0), 1));
    strong.next = 1;
    expected.insert(0, Ok(strong.send(&mut reader, at(1), 2)));
    assert_eq!(reader.available(), ROOM as usize, "there is room for the first, and not for those behind it");
    reader.handle_timeout(at(101));
    assert_eq!(reader.counters().instances_left, 1);
    let mut seen = Vec::new();
    while reader.available() > 0 {
        let instance = reader.find_instance([2; 16]);
        reader.take_next(|sample| {
            if Some(sample.instance) == instance {
                seen.push(sample.payload.get(5).copied().ok_or(sample.instance_state));
            }
        });
        reader.handle_timeout(at(101));
    }
    let end = Err(InstanceState::NotAliveNoWriters);
    expected.insert(1, end);
    expected.push(end);
    assert_eq!(seen, expected);
    assert_eq!(reader.counters().instances_left, 2);
}
