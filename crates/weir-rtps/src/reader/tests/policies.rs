//! Policies by which samples are left out, and deadlines.

use core::time::Duration;

use weir_wire::{Endianness, ParameterId, ParameterListWriter, Timestamp};

use super::*;
use crate::qos::{DestinationOrder, Ownership};

pub(super) const MS: u64 = 1_000_000;
pub(super) const WEAK: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, true));
pub(super) const STRONG: Guid = Guid::new(GuidPrefix([3; 12]), EntityId::user_writer(1, true));

pub(super) fn at(ms: u64) -> Time {
    Time(ms * MS)
}

pub(super) fn keyed() -> ReaderConfig {
    ReaderConfig {
        history: History::KeepAll,
        key_of: Some(|payload, _| Some([*payload.get(4)?; 16])),
        ..ReaderConfig::new(READER, Reliability::Reliable)
    }
}

/// A reader that two writers are matched with, the second one being stronger.
pub(super) fn two_writers(config: ReaderConfig) -> ReaderCore {
    let mut reader = ReaderCore::new(config);
    for (guid, strength) in [(WEAK, 1), (STRONG, 2)] {
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let config = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
        reader.match_writer(at(0), config);
        reader.set_writer_policies(guid, WriterPolicies { lifespan: Duration::MAX, strength });
    }
    reader
}

/// Writes the next sample of a writer. The value consists of the writer and the number.
pub(super) struct Source {
    pub(super) guid: Guid,
    pub(super) next: i64,
}

impl Source {
    pub(super) const fn new(guid: Guid) -> Self {
        Self { guid, next: 1 }
    }

    pub(super) fn send(&mut self, reader: &mut ReaderCore, now: Time, key: u8) -> u8 {
        self.send_stamped(reader, now, key, None)
    }

    pub(super) fn send_stamped(
        &mut self,
        reader: &mut ReaderCore,
        now: Time,
        key: u8,
        timestamp: Option<Timestamp>,
    ) -> u8 {
        let value = (self.guid.prefix.0[0] * 10).wrapping_add(self.next as u8);
        let payload = [0, 1, 0, 0, key, value, 0, 0];
        self.send_as(reader, now, Payload::Data(&payload), None, timestamp);
        value
    }

    /// Status 1 disposes, 2 unregisters, 3 does both.
    pub(super) fn end(&mut self, reader: &mut ReaderCore, now: Time, key: u8, status: u8) {
        self.end_stamped(reader, now, key, (status, None));
    }

    fn end_stamped(
        &mut self,
        reader: &mut ReaderCore,
        now: Time,
        key: u8,
        (status, timestamp): (u8, Option<Timestamp>),
    ) {
        let mut list = Vec::new();
        let mut writer = ParameterListWriter::new(&mut list);
        writer.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, status]);
        writer.finish();
        let payload = [0, 1, 0, 0, key, 0, 0, 0];
        self.send_as(reader, now, Payload::Key(&payload), Some(&list), timestamp);
    }

    fn send_as(
        &mut self,
        reader: &mut ReaderCore,
        now: Time,
        payload: Payload<'_>,
        list: Option<&[u8]>,
        timestamp: Option<Timestamp>,
    ) {
        let inline_qos = list.map(|list| ParameterList::parse(list, Endianness::Little).unwrap().0);
        let sequence_number = SequenceNumber(self.next);
        let (to, writer) = (EntityId::UNKNOWN, self.guid.entity);
        let data = Data { reader: to, writer, sequence_number, inline_qos, payload };
        self.next += 1;
        reader.handle_data(now, &self.guid, &data, timestamp, None);
    }
}

pub(super) fn values(reader: &mut ReaderCore) -> Vec<u8> {
    let mut values = Vec::new();
    while reader.take_next(|sample| values.push(sample.payload[5])) {}
    values
}

pub(super) fn states(reader: &mut ReaderCore) -> Vec<InstanceState> {
    let mut states = Vec::new();
    while reader.take_next(|sample| states.push(sample.instance_state)) {}
    states
}

#[test]
fn a_sample_that_was_not_taken_in_its_lifespan_is_gone() {
    let mut reader = two_writers(keyed());
    reader.set_writer_policies(WEAK, WriterPolicies { lifespan: Duration::from_millis(10), strength: 0 });
    let (mut short, mut endless) = (Source::new(WEAK), Source::new(STRONG));
    short.send(&mut reader, at(0), 1);
    let lasting = endless.send(&mut reader, at(0), 1);
    let late = short.send(&mut reader, at(5), 2);
    assert!(reader.has_expiring());
    assert_eq!(reader.next_timeout().map(|next| next <= at(10)), Some(true));
    reader.handle_timeout(at(10));
    assert_eq!((reader.available(), reader.counters().samples_expired), (2, 1));
    assert_eq!(values(&mut reader), [lasting, late]);
    short.send(&mut reader, at(20), 1);
    assert!(reader.take_removed() && !reader.take_removed());
    // The application asks before the timer does.
    reader.expire(at(30));
    assert!(!reader.has_unread() && reader.take_removed());
    assert_eq!(values(&mut reader), []);
}

#[test]
fn the_end_of_an_instance_does_not_expire() {
    let mut reader = two_writers(keyed());
    reader.set_writer_policies(WEAK, WriterPolicies { lifespan: Duration::from_millis(10), strength: 1 });
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    writer.end(&mut reader, at(1), 1, 1);
    reader.handle_timeout(at(50));
    assert_eq!(states(&mut reader), [InstanceState::NotAliveDisposed]);
}

#[test]
fn samples_that_expire_are_found_after_the_queue_was_compacted() {
    let mut config = keyed();
    config.history = History::KeepLast(1);
    let mut reader = two_writers(config);
    reader.set_writer_policies(WEAK, WriterPolicies { lifespan: Duration::from_millis(10), strength: 0 });
    let (mut short, mut endless) = (Source::new(WEAK), Source::new(STRONG));
    let kept = endless.send(&mut reader, at(0), 9);
    short.send(&mut reader, at(0), 1);
    // Each replaces the one before, and leaves a dead entry behind that of instance 9.
    for _ in 0..5_000 {
        endless.send(&mut reader, at(0), 2);
    }
    reader.expire(at(10));
    assert_eq!((reader.available(), reader.counters().samples_expired), (2, 1));
    assert_eq!(values(&mut reader)[0], kept);
    for _ in 0..100_000 {
        short.send(&mut reader, at(20), 3);
    }
    assert!(reader.memory() < 4 << 20, "{}", reader.memory());
}

#[test]
fn the_strongest_writer_owns_an_instance_until_it_leaves() {
    let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, ..keyed() });
    let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
    let first = weak.send(&mut reader, at(0), 1);
    let second = strong.send(&mut reader, at(1), 1);
    weak.send(&mut reader, at(2), 1);
    // The other instance is one that the stronger writer does not write.
    let other = weak.send(&mut reader, at(3), 2);
    assert_eq!(values(&mut reader), [first, second, other]);
    assert_eq!(reader.counters().samples_not_owned, 1);
    // A weaker writer cannot end the instance.
    weak.end(&mut reader, at(4), 1, 1);
    assert_eq!(states(&mut reader), []);
    // Unregistered by its owner, it belongs to the other one, and has had writers all the time.
    strong.end(&mut reader, at(5), 1, 2);
    let third = weak.send(&mut reader, at(6), 1);
    assert_eq!(values(&mut reader), [third]);
    strong.send(&mut reader, at(7), 1);
    weak.send(&mut reader, at(8), 1);
    reader.unmatch_writer(at(9), STRONG);
    let last = weak.send(&mut reader, at(10), 1);
    assert_eq!(values(&mut reader)[1..], [last]);
}

#[test]
fn an_owner_whose_liveliness_ends_loses_its_instances() {
    let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, ..keyed() });
    let lease = Duration::from_millis(100);
    let liveliness = crate::qos::Liveliness { kind: crate::qos::LivelinessKind::ManualByTopic, lease };
    reader.set_liveliness(at(0), STRONG, liveliness);
    let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
    let first = strong.send(&mut reader, at(0), 1);
    weak.send(&mut reader, at(50), 1);
    reader.handle_timeout(at(100));
    let second = weak.send(&mut reader, at(101), 1);
    // It is back.
    let third = strong.send(&mut reader, at(102), 1);
    weak.send(&mut reader, at(103), 1);
    assert_eq!(values(&mut reader), [first, second, third]);
}

/// The timer may be late: a participant without threads handles timeouts when the application polls it.
#[test]
fn an_owner_whose_lease_is_over_loses_its_instances_before_the_timer_says_so() {
    let lease = Duration::from_millis(100);
    let kind = crate::qos::LivelinessKind::ManualByTopic;
    for through in [Through::Data, Through::Repair, Through::Heartbeat, Through::Gap] {
        let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, ..keyed() });
        reader.set_liveliness(at(0), STRONG, crate::qos::Liveliness { kind, lease });
        assert_eq!(reader.take_liveliness_changed().alive_count, 2);
        let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
        let first = strong.send(&mut reader, at(0), 1);
        weak.send(&mut reader, at(50), 1);
        strong.send(&mut reader, at(60), 2);
        weak.send(&mut reader, at(159), 1);
        let second = through.send(&mut reader, at(160), &mut weak);
        // It has no effect twice.
        let third = weak.send(&mut reader, at(161), 1);
        let status = reader.take_liveliness_changed();
        assert_eq!((status.alive_count, status.not_alive_count), (1, 1));
        // The owner is back, and in time from then on.
        let fourth = strong.send(&mut reader, at(162), 1);
        weak.send(&mut reader, at(261), 1);
        let status = reader.take_liveliness_changed();
        assert_eq!((status.alive_count, status.not_alive_count), (2, 0));
        let mut taken: Vec<u8> = Vec::new();
        while reader.take_next(|sample| {
            let is_counted = sample.payload.get(4) == Some(&1);
            taken.extend(sample.payload.get(5).filter(|_| is_counted));
        }) {}
        assert_eq!(taken, [first, second, third, fourth], "{through:?}");
        // The timer goes by the owner's last sample.
        for (now, not_alive_count) in [(261, 0), (262, 1)] {
            reader.handle_timeout(at(now));
            assert_eq!(reader.take_liveliness_changed().not_alive_count, not_alive_count);
        }
    }
}

/// How a value of a writer becomes the next to be delivered.
#[derive(Debug, Clone, Copy)]
enum Through {
    Data,
    Repair,
    Heartbeat,
    Gap,
}

impl Through {
    /// Sends a value for the first instance. Another one before it is missing first, unless it is sent alone.
    fn send(self, reader: &mut ReaderCore, now: Time, source: &mut Source) -> u8 {
        let missing = SequenceNumber(source.next);
        let (to, writer) = (EntityId::UNKNOWN, source.guid.entity);
        if !matches!(self, Self::Data) {
            source.next += 1;
        }
        // It arrives while the owner is alive, and waits.
        let early = Time(now.0 - MS);
        let value = source.send(reader, if matches!(self, Self::Data) { now } else { early }, 1);
        match self {
            Self::Data => {}
            Self::Repair => {
                source.next = missing.0;
                source.send(reader, now, 3);
                source.next += 1;
            }
            Self::Heartbeat => {
                let (first, last) = (missing.next(), missing.next());
                let heartbeat = Heartbeat {
                    reader: to,
                    writer,
                    first,
                    last,
                    count: 1,
                    is_final: true,
                    is_liveliness: false,
                };
                reader.handle_heartbeat(now, source.guid, &heartbeat);
            }
            Self::Gap => {
                let list = SequenceNumberSet::new(missing.next());
                reader.handle_gap(now, source.guid, &Gap { reader: to, writer, start: missing, list });
            }
        }
        value
    }
}

#[test]
fn an_owner_that_misses_the_deadline_loses_the_instance() {
    let deadline = Duration::from_millis(10);
    let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, deadline, ..keyed() });
    let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
    let first = strong.send(&mut reader, at(0), 1);
    weak.send(&mut reader, at(9), 1);
    reader.handle_timeout(at(10));
    let second = weak.send(&mut reader, at(11), 1);
    assert_eq!(values(&mut reader), [first, second]);
    assert_eq!(reader.take_deadline_missed().total_count, 1);
}

/// The timer may be late: a participant without threads handles timeouts when the application polls it.
#[test]
fn an_owner_that_has_missed_the_deadline_loses_the_instance_before_the_timer_says_so() {
    let deadline = Duration::from_millis(10);
    let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, deadline, ..keyed() });
    let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
    let first = strong.send(&mut reader, at(0), 1);
    weak.send(&mut reader, at(9), 1);
    let second = weak.send(&mut reader, at(10), 1);
    // The owner is back, and in time from then on.
    let third = strong.send(&mut reader, at(12), 1);
    weak.send(&mut reader, at(13), 1);
    assert_eq!(values(&mut reader), [first, second, third]);
    assert_eq!(reader.take_deadline_missed().total_count, 1);
}

/// What a reader filters out by time has arrived in time (DDS 1.4, 2.2.3.7 and 2.2.3.12): the deadline is the writer's
/// promise, and its period need not be twice the separation.
#[test]
fn values_within_the_minimum_separation_meet_the_deadline() {
    let policies = (Duration::from_millis(15), Duration::from_millis(10));
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        let mut reader = two_writers(ReaderConfig {
            reliability,
            ownership: Ownership::Exclusive,
            deadline: policies.0,
            minimum_separation: policies.1,
            ..keyed()
        });
        let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
        for now in 0..=90 {
            reader.handle_timeout(at(now));
            if now % 9 == 0 {
                strong.send(&mut reader, at(now), 1);
            }
            weak.send(&mut reader, at(now), 1);
        }
        assert_eq!(reader.take_deadline_missed().total_count, 0);
        let taken = values(&mut reader);
        assert!(taken.iter().all(|value| *value > 30), "the owner keeps the instance: {taken:?}");
        // A value that is delivered later does not begin another period.
        reader.handle_timeout(at(104));
        assert_eq!(reader.take_deadline_missed().total_count, 0);
        reader.handle_timeout(at(105));
        assert_eq!(reader.take_deadline_missed().total_count, 1);
    }
}

#[test]
fn equal_writers_are_ranked_by_guid_and_a_new_strength_counts_from_the_next_sample() {
    let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, ..keyed() });
    reader.set_writer_policies(STRONG, WriterPolicies { lifespan: Duration::MAX, strength: 1 });
    let (mut low, mut high) = (Source::new(WEAK), Source::new(STRONG));
    let first = high.send(&mut reader, at(0), 1);
    let second = low.send(&mut reader, at(1), 1);
    high.send(&mut reader, at(2), 1);
    reader.set_writer_policies(STRONG, WriterPolicies { lifespan: Duration::MAX, strength: 5 });
    let third = high.send(&mut reader, at(3), 1);
    assert_eq!(values(&mut reader), [first, second, third]);
}

#[test]
fn an_older_sample_is_left_out_by_source_timestamp() {
    let destination_order = DestinationOrder::BySourceTimestamp;
    let mut reader = two_writers(ReaderConfig { destination_order, ..keyed() });
    let (mut one, mut other) = (Source::new(WEAK), Source::new(STRONG));
    let stamp = |seconds| Some(Timestamp { seconds, fraction: 7 });
    let first = one.send_stamped(&mut reader, at(0), 1, stamp(5));
    other.send_stamped(&mut reader, at(1), 1, stamp(4));
    // Each instance has an order of its own.
    let second = other.send_stamped(&mut reader, at(2), 2, stamp(4));
    let third = other.send_stamped(&mut reader, at(3), 1, stamp(5));
    // Of equal times, the writer with the higher GUID is the later one, for every reader.
    one.send_stamped(&mut reader, at(4), 1, stamp(5));
    let last = one.send_stamped(&mut reader, at(5), 1, stamp(6));
    assert_eq!(values(&mut reader), [first, second, third, last]);
    assert_eq!(reader.counters().samples_out_of_order, 2);
}

#[test]
fn fractions_of_a_second_and_the_last_bytes_of_a_guid_decide_by_source_timestamp() {
    let destination_order = DestinationOrder::BySourceTimestamp;
    let mut reader = two_writers(ReaderConfig { destination_order, ..keyed() });
    let near = Guid::new(WEAK.prefix, EntityId::user_writer(2, true));
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let config = WriterProxyConfig { guid: near, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(at(0), config);
    let [mut one, mut two, mut other] = [WEAK, near, STRONG].map(Source::new);
    let stamp = |fraction| Some(Timestamp { seconds: 5, fraction });
    let first = one.send_stamped(&mut reader, at(0), 1, stamp(9));
    // Its GUID is higher, and its time earlier.
    other.send_stamped(&mut reader, at(1), 1, stamp(8));
    assert_eq!((values(&mut reader), reader.counters().samples_out_of_order), (vec![first], 1));
    // Two writers of a participant at the same time.
    let second = two.send_stamped(&mut reader, at(2), 1, stamp(9));
    one.send_stamped(&mut reader, at(3), 1, stamp(9));
    assert_eq!((values(&mut reader), reader.counters().samples_out_of_order), (vec![second], 2));
}

#[test]
fn values_that_come_too_soon_are_left_out() {
    let minimum_separation = Duration::from_millis(10);
    let mut reader = two_writers(ReaderConfig { minimum_separation, ..keyed() });
    let mut writer = Source::new(WEAK);
    let first = writer.send(&mut reader, at(0), 1);
    writer.send(&mut reader, at(9), 1);
    let other = writer.send(&mut reader, at(9), 2);
    let second = writer.send(&mut reader, at(10), 1);
    assert_eq!(values(&mut reader), [first, other, second]);
    assert_eq!(reader.counters().samples_filtered, 1);
    // The end of an instance is reported whenever it comes.
    writer.end(&mut reader, at(11), 1, 1);
    assert_eq!(states(&mut reader), [InstanceState::NotAliveDisposed]);
}

#[test]
fn each_instance_has_a_deadline_until_it_ends() {
    let mut reader = two_writers(ReaderConfig { deadline: Duration::from_millis(10), ..keyed() });
    let mut writer = Source::new(WEAK);
    writer.send(&mut reader, at(0), 1);
    writer.send(&mut reader, at(4), 2);
    assert!(reader.take_timeout().is_some_and(|next| next <= at(10)));
    writer.send(&mut reader, at(8), 1);
    reader.handle_timeout(at(14));
    assert!(reader.has_deadline_news());
    let status = reader.take_deadline_missed();
    assert_eq!((status.total_count, status.total_count_change, status.last_key), (1, 1, Some([2; 16])));
    writer.end(&mut reader, at(15), 2, 1);
    reader.unmatch_writer(at(16), WEAK);
    reader.handle_timeout(at(100));
    assert_eq!(reader.take_deadline_missed().total_count, 1, "both instances have ended");
}

/// TimeBasedFilter 0 and 1 of the OMG's interoperability suite: of writes every 100 ms, each tenth is delivered.
#[test]
fn one_value_per_separation_is_delivered_of_each_instance() {
    for keys in [1, 4] {
        let minimum_separation = Duration::from_secs(1);
        let mut reader = two_writers(ReaderConfig { minimum_separation, ..keyed() });
        let mut writer = Source::new(WEAK);
        for round in 0..100 {
            (0..keys).for_each(|key| _ = writer.send(&mut reader, at(round * 100), key));
        }
        let mut taken = Vec::new();
        while reader.take_next(|sample| taken.push((sample.payload[4], sample.sequence_number.0))) {}
        let expected = (0..10).flat_map(|tenth| (0..keys).map(move |key| (key, tenth, 10 * i64::from(keys))));
        let expected = expected.map(|(key, tenth, step)| (key, 1 + tenth * step + i64::from(key)));
        assert_eq!(taken, Vec::from_iter(expected));
    }
}

/// Lifespan 0 to 7 of the suite: a reader that reads late finds the last two or three samples of each instance.
#[test]
fn a_late_reader_finds_the_samples_that_have_not_expired() {
    for (period, lifespan, pause) in [(100, 250, 500), (400, 1_000, 2_000)] {
        for (reliability, keys) in [
            (Reliability::Reliable, 1),
            (Reliability::Reliable, 4),
            (Reliability::BestEffort, 1),
            (Reliability::BestEffort, 4),
        ] {
            let mut reader = two_writers(ReaderConfig { reliability, ..keyed() });
            let policies = WriterPolicies { lifespan: Duration::from_millis(lifespan), strength: 0 };
            reader.set_writer_policies(WEAK, policies);
            let mut writer = Source::new(WEAK);
            for round in 1..=200 {
                let now = at(round * period);
                (0..keys).for_each(|key| _ = writer.send(&mut reader, now, key));
                // Between two writes.
                let now = at(round * period + round % 9 * period / 10);
                if round * period % pause == 0 {
                    reader.expire(now);
                    let mut found = vec![Vec::new(); keys.into()];
                    let all = |sample: RawSample<'_>| {
                        found[usize::from(sample.payload[4])].push(sample.sequence_number.0);
                    };
                    let mut all = all;
                    while reader.take_next(&mut all) {}
                    for numbers in found {
                        assert!([2, 3].contains(&numbers.len()), "{numbers:?} at {now:?}");
                        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + i64::from(keys)));
                    }
                }
            }
        }
    }
}

#[test]
fn samples_that_waited_for_room_have_their_lifespan_and_their_time() {
    for lifespan in [Duration::from_secs(10), Duration::MAX] {
        let mut reader = two_writers(ReaderConfig { max_samples: Some(2), ..keyed() });
        reader.set_writer_policies(WEAK, WriterPolicies { lifespan, strength: 0 });
        let mut writer = Source::new(WEAK);
        writer.next = 2;
        let second = writer.send(&mut reader, at(1_000_000), 1);
        let third = writer.send(&mut reader, at(1_000_001), 1);
        writer.next = 1;
        let first = writer.send(&mut reader, at(1_000_002), 1);
        assert_eq!(reader.available(), 2);
        let mut taken = Vec::new();
        assert!(reader.take_next(|sample| taken.push(sample.payload[5])));
        reader.expire(at(1_000_003));
        assert_eq!(reader.counters().samples_expired, 0);
        let mut received = Vec::new();
        while reader.take_next(|sample| received.push((sample.payload[5], sample.reception_time))) {}
        assert_eq!((taken, received), (vec![first], [second, third].map(|it| (it, at(1_000_002))).to_vec()));
    }
}

#[test]
fn a_deadline_goes_on_while_another_writer_keeps_the_instance_alive() {
    for is_exclusive in [false, true] {
        let ownership = if is_exclusive { Ownership::Exclusive } else { Ownership::Shared };
        let config = ReaderConfig { deadline: Duration::from_millis(10), ownership, ..keyed() };
        let mut reader = two_writers(config);
        let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
        weak.send(&mut reader, at(0), 1);
        strong.send(&mut reader, at(0), 1);
        strong.end(&mut reader, at(1), 1, 2);
        reader.handle_timeout(at(100));
        assert_eq!(reader.take_deadline_missed().total_count, 10);
        weak.end(&mut reader, at(101), 1, 2);
        reader.handle_timeout(at(200));
        assert_eq!(reader.take_deadline_missed().total_count, 10);
    }
}

#[test]
fn an_old_time_stamp_does_not_hide_that_a_writer_leaves_an_instance() {
    for (status, last) in [(2, "unregister"), (3, "dispose and unregister")] {
        let destination_order = DestinationOrder::BySourceTimestamp;
        let config = ReaderConfig { deadline: Duration::from_millis(10), destination_order, ..keyed() };
        let mut reader = two_writers(config);
        let mut writer = Source::new(WEAK);
        writer.send_stamped(&mut reader, at(0), 1, Some(Timestamp { seconds: 5, fraction: 0 }));
        let earlier = Some(Timestamp { seconds: 4, fraction: 0 });
        writer.end_stamped(&mut reader, at(1), 1, (status, earlier));
        // The instance was not disposed: that is older than its value.
        let expected = [InstanceState::NotAliveNoWriters; 2];
        assert_eq!(states(&mut reader), expected, "{last}");
        reader.handle_timeout(at(100));
        assert_eq!(reader.take_deadline_missed().total_count, 0, "{last}");
    }
}
