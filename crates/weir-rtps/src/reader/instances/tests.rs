//! Instance states, view states and generations as DDS 1.4, 2.2.2.5.1, describes them, and the
//! limits of 2.2.3.19.

use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};

use proptest::collection::vec;
use proptest::{prop_assert_eq, proptest};
use weir_netsim::Rng;
use weir_wire::{
    Data, Endianness, EntityId, GuidPrefix, ParameterId, ParameterList, ParameterListWriter, Payload,
    SequenceNumber, VendorId,
};

use super::*;
use crate::outbox::Outbox;
use crate::qos::{History, Reliability};
use crate::reader::{KeyOf, ReaderCore, Rejection, SampleSelection, States, WriterProxyConfig};
use crate::time::Time;

const READER: Guid = Guid::new(GuidPrefix([9; 12]), EntityId::user_reader(1, true));
const ALIVE: InstanceState = InstanceState::Alive;
const DISPOSED: InstanceState = InstanceState::NotAliveDisposed;
const NO_WRITERS: InstanceState = InstanceState::NotAliveNoWriters;

fn writer(number: u8) -> Guid {
    Guid::new(GuidPrefix([number; 12]), EntityId::user_writer(1, true))
}

/// A reader of a topic whose key is the first four bytes, and writers of it.
struct Topic {
    reader: ReaderCore,
    /// The last sequence number of each writer.
    written: [i64; 4],
}

/// What a sample says: its value (`None`: no valid data), instance state, whether the view is NEW,
/// and the disposed and the no-writers generation.
type Seen = (u32, Option<u8>, InstanceState, bool, (u32, u32));

impl Topic {
    fn new(config: ReaderConfig) -> Self {
        let key_of: KeyOf = |payload, _| {
            let mut key = [0; 16];
            key[..4].copy_from_slice(payload.get(4..8)?);
            Some(key)
        };
        let reader = ReaderCore::new(ReaderConfig { key_of: Some(key_of), ..config });
        let mut topic = Self { reader, written: [0; 4] };
        for number in 1..=2 {
            topic.match_writer(number);
        }
        topic
    }

    fn keep(history: History) -> Self {
        Self::new(ReaderConfig { history, ..ReaderConfig::new(READER, Reliability::Reliable) })
    }

    fn match_writer(&mut self, number: u8) {
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let config =
            WriterProxyConfig { guid: writer(number), reliable: true, destinations, vendor: VendorId::WEIR };
        self.reader.match_writer(Time(0), config);
    }

    fn send(&mut self, number: u8, sn: i64, id: u32, value: u8, kind: ChangeKind) {
        let mut payload = [0, 1, 0, 0, 0, 0, 0, 0, value];
        payload[4..8].copy_from_slice(&id.to_be_bytes());
        let mut list = Vec::new();
        let mut writing = ParameterListWriter::new(&mut list);
        let status = match kind {
            ChangeKind::Alive => 0,
            ChangeKind::Disposed => 1,
            ChangeKind::Unregistered => 2,
            ChangeKind::DisposedUnregistered => 3,
        };
        writing.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, status]);
        writing.finish();
        let (list, _) = ParameterList::parse(&list, Endianness::Little).unwrap();
        let is_value = kind == ChangeKind::Alive;
        let data = Data {
            reader: EntityId::UNKNOWN,
            writer: writer(number).entity,
            sequence_number: SequenceNumber(sn),
            inline_qos: Some(list),
            payload: if is_value { Payload::Data(&payload) } else { Payload::Key(&payload[..8]) },
        };
        self.reader.handle_data(Time(1), &writer(number), &data, None, None);
    }

    fn next(&mut self, number: u8, id: u32, value: u8, kind: ChangeKind) {
        self.written[usize::from(number)] += 1;
        self.send(number, self.written[usize::from(number)], id, value, kind);
    }

    fn write(&mut self, number: u8, id: u32, value: u8) {
        self.next(number, id, value, ChangeKind::Alive);
    }

    fn dispose(&mut self, number: u8, id: u32) {
        self.next(number, id, 0, ChangeKind::Disposed);
    }

    fn unregister(&mut self, number: u8, id: u32) {
        self.next(number, id, 0, ChangeKind::Unregistered);
    }

    fn access(&mut self, states: States, instance: Option<u32>, remove: bool) -> Vec<Seen> {
        let mut seen = Vec::new();
        self.reader.access(usize::MAX, SampleSelection { states, instance }, remove, |it| {
            let id = it.key_hash.unwrap().first_chunk().map(|id| u32::from_be_bytes(*id)).unwrap();
            let value = (it.kind == ChangeKind::Alive).then(|| it.payload[8]);
            let generations = (it.disposed_generation, it.no_writers_generation);
            seen.push((id, value, it.instance_state, it.is_new_instance, generations));
            true
        });
        seen
    }

    fn take(&mut self) -> Vec<Seen> {
        self.access(States::ANY, None, true)
    }

    fn read(&mut self) -> Vec<Seen> {
        self.access(States::ANY, None, false)
    }

    /// Sends what a reliable reader requests. Returns the number of samples.
    fn repair(&mut self, value_of: impl Fn(i64) -> (u32, u8)) -> usize {
        let mut out = Outbox::new();
        self.reader.poll_transmit(Time(2), &mut out);
        let mut asked = Vec::new();
        out.for_each_datagram(|_, datagram| {
            let message = weir_wire::Message::parse(datagram).unwrap();
            for submessage in message.submessages().map_while(Result::ok) {
                if let weir_wire::Submessage::AckNack(acknack) = submessage {
                    asked.extend(acknack.state.iter().map(|sn| sn.0));
                }
            }
        });
        for sn in &asked {
            let (id, value) = value_of(*sn);
            self.send(1, *sn, id, value, ChangeKind::Alive);
        }
        asked.len()
    }
}

#[test]
fn an_instance_that_is_over_is_new_again_also_when_its_turn_comes() {
    let mut topic = Topic::keep(History::KeepAll);
    let hash = |id: u32| {
        let mut hash = [0; 16];
        hash[..4].copy_from_slice(&id.to_be_bytes());
        hash
    };
    for _ in 0..3 {
        (1..=3).for_each(|id| topic.write(1, id, 7));
    }
    topic.unregister(1, 2);
    topic.take();
    assert_eq!(topic.reader.find_instance(hash(2)), None);
    (1..=3).for_each(|id| topic.write(1, id, 8));
    for id in 1..=3 {
        assert!(topic.reader.find_instance(hash(id)).is_some(), "{id}");
    }
    let seen = topic.take();
    let expected =
        [(1, false), (2, true), (3, false)].map(|(id, is_new)| (id, Some(8), ALIVE, is_new, (0, 0)));
    assert_eq!(seen, expected);
}

#[test]
fn an_instance_is_alive_until_it_is_disposed_and_again_when_it_is_written() {
    let mut topic = Topic::keep(History::KeepAll);
    topic.write(1, 5, 10);
    topic.write(1, 5, 11);
    assert_eq!(topic.take(), [(5, Some(10), ALIVE, true, (0, 0)), (5, Some(11), ALIVE, true, (0, 0))]);
    // With SHARED ownership any writer may dispose.
    topic.dispose(2, 5);
    assert_eq!(topic.take(), [(5, None, DISPOSED, false, (0, 0))]);
    topic.write(1, 5, 12);
    assert_eq!(topic.take(), [(5, Some(12), ALIVE, true, (1, 0))]);
    topic.write(1, 5, 13);
    assert_eq!(topic.take(), [(5, Some(13), ALIVE, false, (1, 0))]);
}

#[test]
fn the_instance_state_is_that_of_the_access_and_the_generations_are_those_of_the_arrival() {
    let mut topic = Topic::keep(History::KeepAll);
    topic.write(1, 5, 10);
    topic.dispose(1, 5);
    topic.write(1, 5, 11);
    topic.dispose(1, 5);
    topic.write(1, 5, 12);
    let expected = [
        (5, Some(10), ALIVE, true, (0, 0)),
        (5, None, ALIVE, true, (0, 0)),
        (5, Some(11), ALIVE, true, (1, 0)),
        (5, None, ALIVE, true, (1, 0)),
        (5, Some(12), ALIVE, true, (2, 0)),
    ];
    // The same for every sample of an instance in the collection.
    assert_eq!(topic.read(), expected);
    assert!(topic.read().iter().all(|(_, _, state, is_new, _)| *state == ALIVE && !is_new));
    topic.dispose(1, 5);
    assert!(topic.take().iter().all(|(_, _, state, is_new, _)| *state == DISPOSED && !is_new));
}

#[test]
fn the_view_is_new_until_a_sample_of_the_latest_generation_was_accessed() {
    let mut topic = Topic::keep(History::KeepAll);
    topic.write(1, 5, 10);
    topic.dispose(1, 5);
    topic.write(1, 5, 11);
    topic.write(1, 5, 12);
    let mut is_new = Vec::new();
    for _ in 0..4 {
        let all = SampleSelection { states: States::ANY, instance: None };
        topic.reader.access(1, all, true, |sample| {
            is_new.push(sample.is_new_instance);
            true
        });
    }
    assert_eq!(is_new, [true, true, true, false]);
}

#[test]
fn an_instance_has_no_writers_when_the_last_one_has_left() {
    let mut topic = Topic::keep(History::KeepAll);
    topic.write(1, 5, 10);
    topic.write(2, 5, 11);
    topic.unregister(1, 5);
    // That changed nothing, so there is nothing to report.
    assert_eq!(topic.take(), [(5, Some(10), ALIVE, true, (0, 0)), (5, Some(11), ALIVE, true, (0, 0))]);
    topic.unregister(2, 5);
    assert_eq!(topic.read(), [(5, None, NO_WRITERS, false, (0, 0))]);
    topic.write(1, 5, 12);
    assert_eq!(topic.take(), [(5, None, ALIVE, true, (0, 0)), (5, Some(12), ALIVE, true, (0, 1))]);
}

#[test]
fn a_writer_that_is_lost_has_left_all_its_instances() {
    let mut topic = Topic::keep(History::KeepAll);
    for id in 0..3 {
        topic.write(1, id, 10);
    }
    topic.write(2, 1, 11);
    topic.dispose(1, 2);
    topic.take();
    topic.reader.unmatch_writer(Time(3), writer(1));
    // Instance 1 has another writer; instance 2 stays disposed.
    assert_eq!(topic.take(), [(0, None, NO_WRITERS, false, (0, 0))]);
    topic.match_writer(1);
    topic.write(1, 2, 12);
    assert_eq!(topic.take(), [(2, Some(12), ALIVE, true, (0, 0))], "it had ended: no writers, no samples");
}

#[test]
fn an_instance_without_writers_and_samples_was_never_seen() {
    let mut topic = Topic::keep(History::KeepAll);
    for end in [ChangeKind::Unregistered, ChangeKind::DisposedUnregistered] {
        topic.write(1, 5, 10);
        topic.take();
        assert!(topic.reader.find_instance(key(5)).is_some());
        topic.next(1, 5, 0, end);
        topic.read();
        // It can be named as long as it has samples.
        assert!(topic.reader.find_instance(key(5)).is_some());
        topic.take();
        assert_eq!(topic.reader.find_instance(key(5)), None);
        topic.write(1, 5, 11);
        assert_eq!(topic.take(), [(5, Some(11), ALIVE, true, (0, 0))]);
        topic.next(1, 5, 0, end);
        topic.take();
    }
    // Disposed, but still registered: it is remembered.
    topic.write(1, 6, 10);
    topic.dispose(1, 6);
    topic.take();
    topic.write(1, 6, 11);
    assert_eq!(topic.take(), [(6, Some(11), ALIVE, true, (1, 0))]);
}

#[test]
fn news_do_not_replace_values_and_do_not_pile_up() {
    let mut topic = Topic::keep(History::KeepLast(2));
    for value in 10..20 {
        topic.write(1, 5, value);
        topic.dispose(1, 5);
    }
    let values: Vec<_> = topic.read().iter().map(|(_, value, state, ..)| (*value, *state)).collect();
    assert_eq!(values, [(Some(18), DISPOSED), (Some(19), DISPOSED), (None, DISPOSED)]);
    // A second disposal changes nothing.
    topic.dispose(2, 5);
    assert_eq!(topic.read().len(), 3);
}

#[test]
fn masks_choose_by_sample_view_and_instance_state() {
    let mut topic = Topic::keep(History::KeepAll);
    topic.write(1, 1, 10);
    topic.write(1, 2, 10);
    topic.write(1, 3, 10);
    topic.unregister(1, 2);
    topic.dispose(1, 3);
    let ids = |seen: Vec<Seen>| seen.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(ids(topic.access(States::ALIVE, None, false)), [1]);
    assert_eq!(ids(topic.access(States::NOT_ALIVE_NO_WRITERS, None, false)), [2, 2]);
    assert_eq!(ids(topic.access(States::NEW, None, false)), [3, 3]);
    assert_eq!(ids(topic.access(States::NOT_READ, None, false)), []);
    topic.write(1, 1, 11);
    assert_eq!(ids(topic.access(States::NOT_READ, None, false)), [1]);
    assert_eq!(ids(topic.access(States::READ | States::NOT_ALIVE, None, true)), [2, 3, 2, 3]);
    assert_eq!(ids(topic.take()), [1, 1]);
}

#[test]
fn instances_follow_each_other_although_they_end() {
    let mut topic = Topic::keep(History::KeepAll);
    for id in 0..1_000 {
        topic.write(1, id, 10);
        topic.unregister(1, id);
    }
    let (mut after, mut ids) = (None, Vec::new());
    while let Some(index) = topic.reader.next_instance(after, States::ANY) {
        let seen = topic.access(States::ANY, Some(index), true);
        assert_eq!(seen.len(), 2);
        ids.push(seen[0].0);
        after = Some(key(seen[0].0));
    }
    assert_eq!(ids, Vec::from_iter(0..1_000));
    assert_eq!(topic.reader.available(), 0);
}

fn key(id: u32) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&id.to_be_bytes());
    key
}

fn limited(reliability: Reliability, limit: impl FnOnce(&mut ReaderConfig)) -> Topic {
    let mut config = ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(READER, reliability) };
    limit(&mut config);
    Topic::new(config)
}

#[test]
fn a_best_effort_reader_rejects_what_is_beyond_its_limits_and_says_why() {
    let check = |limit: fn(&mut ReaderConfig), expected: Rejection, ids: &[u32], rejected: u32| {
        let mut topic = limited(Reliability::BestEffort, limit);
        for id in ids {
            topic.write(1, *id, 10);
        }
        assert_eq!(topic.reader.last_rejection(), Some((expected, Some(key(rejected)))));
        let counters = topic.reader.counters();
        assert_eq!((counters.samples_rejected, counters.samples_lost, counters.samples_refused), (1, 0, 0));
        assert_eq!(topic.take().len(), ids.len() - 1);
        // There is room again for any instance that is known.
        topic.write(1, ids[0], 11);
        assert_eq!(topic.take().len(), 1);
    };
    check(|it| it.max_samples = Some(3), Rejection::SamplesLimit, &[1, 2, 1, 3], 3);
    check(|it| it.max_instances = Some(2), Rejection::InstancesLimit, &[1, 2, 1, 3, 2], 3);
    check(
        |it| it.max_samples_per_instance = Some(2),
        Rejection::SamplesPerInstanceLimit,
        &[1, 1, 2, 1, 2],
        1,
    );
    check(|it| it.max_bytes = 200, Rejection::BytesLimit, &[1, 2, 3], 3);
}

#[test]
fn ends_of_instances_find_room_and_take_none_of_the_samples() {
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        let mut topic = limited(reliability, |it| it.max_samples_per_instance = Some(2));
        topic.write(1, 5, 10);
        topic.write(1, 5, 11);
        topic.dispose(1, 5);
        assert_eq!(topic.take().last(), Some(&(5, None, DISPOSED, true, (0, 0))), "{reliability:?}");
        let mut topic = limited(reliability, |it| it.max_samples = Some(2));
        topic.write(1, 5, 10);
        topic.dispose(1, 5);
        topic.write(1, 6, 11);
        topic.dispose(1, 6);
        topic.write(1, 7, 12);
        assert_eq!(topic.read().len(), 4, "{reliability:?}");
        assert_eq!(topic.reader.last_rejection(), Some((Rejection::SamplesLimit, Some(key(7)))));
    }
}

#[test]
fn a_reliable_reader_lets_the_writer_send_again_what_found_no_room() {
    let limits: [fn(&mut ReaderConfig); 4] = [
        |it| it.max_samples = Some(3),
        |it| it.max_samples_per_instance = Some(2),
        |it| it.max_bytes = 300,
        |it| (it.max_samples, it.max_samples_per_instance) = (Some(5), Some(1)),
    ];
    for limit in limits {
        let mut topic = limited(Reliability::Reliable, limit);
        let value_of = |sn: i64| (sn as u32 % 2, sn as u8);
        let mut received = Vec::new();
        for sn in 1..=50 {
            topic.send(1, sn, value_of(sn).0, value_of(sn).1, ChangeKind::Alive);
        }
        assert_eq!(topic.reader.counters().samples_refused, 1);
        let mut heartbeats = 0;
        while received.len() < 50 {
            heartbeats += 1;
            let heartbeat = weir_wire::Heartbeat {
                reader: EntityId::UNKNOWN,
                writer: writer(1).entity,
                first: SequenceNumber(1),
                last: SequenceNumber(50),
                count: heartbeats,
                is_final: false,
                is_liveliness: false,
            };
            topic.reader.handle_heartbeat(Time(2), writer(1), &heartbeat);
            topic.repair(value_of);
            received.extend(topic.take().iter().filter_map(|it| it.1));
            assert!(heartbeats < 200, "{received:?}");
        }
        assert_eq!(received, Vec::from_iter(1..=50));
        assert_eq!(topic.reader.counters().samples_lost, 0);
    }
}

#[test]
fn an_instance_that_is_over_makes_room_for_another() {
    let mut topic = limited(Reliability::Reliable, |it| it.max_instances = Some(1));
    topic.write(1, 1, 10);
    topic.write(2, 2, 10);
    assert_eq!(topic.reader.last_rejection(), Some((Rejection::InstancesLimit, Some(key(2)))));
    topic.take();
    assert_eq!(topic.repair_of_two(), 0, "no writer has ended instance 1");
    topic.unregister(1, 1);
    topic.take();
    assert_eq!(topic.repair_of_two(), 1);
}

impl Topic {
    /// How many samples are requested from writer 2.
    fn repair_of_two(&mut self) -> usize {
        let heartbeat = weir_wire::Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: writer(2).entity,
            first: SequenceNumber(1),
            last: SequenceNumber(1),
            count: self.written[3] as u32 + 1,
            is_final: false,
            is_liveliness: false,
        };
        self.written[3] += 1;
        self.reader.handle_heartbeat(Time(2), writer(2), &heartbeat);
        let mut out = Outbox::new();
        self.reader.poll_transmit(Time(2), &mut out);
        let mut asked = 0;
        out.for_each_datagram(|_, datagram| {
            let message = weir_wire::Message::parse(datagram).unwrap();
            for submessage in message.submessages().map_while(Result::ok) {
                if let weir_wire::Submessage::AckNack(acknack) = submessage {
                    asked += acknack.state.iter().count();
                }
            }
        });
        asked
    }
}

#[test]
fn keep_last_replaces_at_the_limits() {
    let mut topic = limited(Reliability::BestEffort, |it| {
        it.history = History::KeepLast(1);
        it.max_samples = Some(2);
    });
    for value in 0..10 {
        topic.write(1, 1, value);
        topic.write(1, 2, value);
    }
    topic.write(1, 3, 0);
    assert_eq!(topic.reader.counters().samples_rejected, 1);
    let values: Vec<_> = topic.take().iter().map(|it| (it.0, it.1)).collect();
    assert_eq!(values, [(1, Some(9)), (2, Some(9))]);
}

#[test]
fn a_hot_instance_among_many_does_not_make_the_cache_grow() {
    for history in [History::KeepLast(1), History::KeepAll] {
        let mut topic = Topic::keep(history);
        for id in 0..20_000 {
            topic.write(1, id, 1);
        }
        let hot = topic.reader.find_instance(key(7)).unwrap();
        let mut random = Rng::new(1);
        let mut go_on = |topic: &mut Topic| {
            for _ in 0..200_000 {
                // One in 64 is of a random instance, so that every chunk keeps a payload.
                let is_hot = history == History::KeepAll || random.below(64) > 0;
                let id = if is_hot { 7 } else { random.below(20_000) as u32 };
                topic.write(1, id, 2);
                if history == History::KeepAll {
                    topic.access(States::ANY, Some(hot), true);
                }
            }
            topic.reader.memory()
        };
        go_on(&mut topic);
        let memory = go_on(&mut topic);
        assert!(memory < 15 << 20, "{memory}");
        let count = topic.take().len();
        assert!((19_999..=20_000).contains(&count), "{count}");
    }
}

proptest! {
    /// Each key has one index, and no two have the same, in any order of lookups and removals.
    #[test]
    fn a_guessed_place_is_that_of_the_table(steps in vec((0..6_u8, 0..8_u8), 0..200)) {
        let key_of: KeyOf = |_, _| None;
        let config = ReaderConfig { key_of: Some(key_of), ..ReaderConfig::new(READER, Reliability::Reliable) };
        let mut instances = Instances::new(&config, None);
        let mut next = 0;
        for (what, key) in steps {
            if what == 0 {
                if let Some(index) = instances.find([key; 16].into()) {
                    instances.forget(index);
                }
                prop_assert_eq!(instances.find([key; 16].into()), None);
                continue;
            }
            // Mostly in turn, as guesses need it.
            let key = [if what == 1 { key } else { next }; 16];
            next = (key[0] + 1) % 8;
            let index = instances.index(Some(key.into()));
            prop_assert_eq!(index, instances.find(key.into()));
            prop_assert_eq!(instances.get(index.unwrap()).key.to_bytes(), key);
        }
    }
}

#[test]
fn a_writer_that_comes_and_goes_costs_as_much_as_it_wrote_whatever_others_wrote() {
    let mut topic = Topic::keep(History::KeepLast(1));
    for id in 0..1_000_000 {
        topic.write(1, id, 7);
        topic.reader.take_next(|_| {});
    }
    for _ in 0..100 {
        topic.match_writer(2);
        topic.reader.unmatch_writer(Time(2), writer(2));
    }
    assert_eq!(topic.reader.counters().instances_left, 0);
    for round in 0..100 {
        topic.match_writer(2);
        // One that the other writer writes as well, one that ends, and one that has no writer afterwards.
        topic.write(2, 5, 8);
        topic.write(2, 1_000_001, 8);
        topic.unregister(2, 1_000_001);
        topic.write(2, 1_000_000, 8);
        topic.reader.unmatch_writer(Time(2), writer(2));
        let states: Vec<_> = topic.take().into_iter().map(|seen| (seen.0, seen.2)).collect();
        assert_eq!(states[0], (5, ALIVE));
        assert_eq!(states.last(), Some(&(1_000_000, NO_WRITERS)));
        assert_eq!(topic.reader.counters().instances_left, 2 * (round + 1));
    }
    topic.reader.unmatch_writer(Time(2), writer(1));
    while topic.reader.has_left() {
        topic.reader.handle_timeout(Time(2));
    }
    assert_eq!(topic.reader.counters().instances_left, 1_000_200);
}
