//! Samples of lost writers that found no room: each of their instances ends once, as soon as nothing waits for it.

use weir_netsim::Rng;

use super::overdue::{LEASE, Release, all, grouped, is_alive, leased, send_in_set, settle_all};
use super::policies::{STRONG, Source, WEAK, at, keyed};
use super::*;
use crate::limits::EndpointLimits;
use crate::qos::{Liveliness, LivelinessKind, Ownership};

const END: Result<u8, InstanceState> = Err(InstanceState::NotAliveNoWriters);

/// Readers without policies, with one, and with a limits table.
fn configs(max_samples: u32) -> [(&'static str, ReaderConfig); 3] {
    let limits = EndpointLimits {
        matches: 2,
        samples: 32,
        instances: 32,
        sample_bytes: 64,
        early_samples: 32,
        reassemblies: 2,
    };
    let config = ReaderConfig { max_samples: Some(max_samples), ..keyed() };
    let exclusive = ReaderConfig { ownership: Ownership::Exclusive, ..config.clone() };
    let limited = ReaderConfig { limits: Some(limits), ..config.clone() };
    [("no policy", config), ("OWNERSHIP", exclusive), ("a limits table", limited)]
}

/// Takes the first sample: its key, and the value, or the state of the instance where there is none.
fn take(reader: &mut ReaderCore) -> Option<(u8, Result<u8, InstanceState>)> {
    let mut taken = None;
    reader.take_next(|sample| {
        let key = sample.key_hash.unwrap_or_default()[0];
        taken = Some((key, sample.payload.get(5).copied().ok_or(sample.instance_state)));
    });
    taken
}

/// A reader with room for so many samples, `taken` of which the other writer takes, that has lost a writer of samples
/// of instance 2 behind a missing one. Returns it with the lost writer, and the values of these samples.
fn refused(config: ReaderConfig, room: u32, taken: u32) -> (ReaderCore, Source, Vec<u8>) {
    let (mut reader, mut weak, mut strong) = leased(config);
    strong.next = 2;
    let values = (1..room).map(|_| strong.send(&mut reader, at(0), 2)).collect();
    (0..taken).for_each(|_| _ = weak.send(&mut reader, at(0), 9));
    reader.handle_timeout(at(101));
    (reader, strong, values)
}

#[test]
fn an_instance_of_a_lost_writer_ends_although_samples_of_another_one_wait_for_room() {
    const ROOM: u32 = 6;
    for (form, config) in configs(ROOM) {
        let (mut reader, mut weak, mut strong) = leased(config);
        strong.next = 2;
        let second = strong.send(&mut reader, at(0), 1);
        let others: Vec<_> = (3..=ROOM as i64).map(|_| strong.send(&mut reader, at(0), 2)).collect();
        (0..ROOM - 1).for_each(|_| _ = weak.send(&mut reader, at(0), 9));
        strong.next = 1;
        strong.send(&mut reader, at(1), 3);
        assert_eq!(reader.available(), ROOM as usize, "{form}: the others wait");
        reader.handle_timeout(at(101));
        assert_eq!(reader.counters().instances_left, 1, "{form}");
        let mut seen = Vec::new();
        while let Some(taken) = take(&mut reader) {
            seen.extend(Some(taken).filter(|(key, _)| [1, 2].contains(key)));
            reader.handle_timeout(at(101));
            assert!(!is_alive(&reader, 1), "{form}: nothing of it waits after {seen:?}");
        }
        let ends_at = seen.iter().position(|it| *it == (1, END)).unwrap();
        assert_eq!((seen[0], ends_at), ((1, Ok(second)), 1), "{form}");
        let expected = others.into_iter().map(|value| (2, Ok(value))).chain([(2, END)]);
        assert_eq!(seen[2..], expected.collect::<Vec<_>>(), "{form}");
        assert_eq!(reader.counters().instances_left, 3, "{form}");
    }
}

#[test]
fn what_a_lost_writer_releases_while_there_is_little_room_ends_its_instance_once() {
    const ROOM: u32 = 6;
    for release in [Release::Heartbeat, Release::Gap] {
        for (form, config) in configs(ROOM) {
            let form = format!("{form}, {release:?}");
            let (mut reader, _, values) = refused(config, ROOM, ROOM - 2);
            // Two of them find room, the others do not.
            for now in [110, 120, 130] {
                release.send(&mut reader, at(now), STRONG, (1, 2));
                reader.handle_timeout(at(now));
            }
            assert!(is_alive(&reader, 2), "{form}: samples of it wait");
            let mut seen = Vec::new();
            while let Some((key, taken)) = take(&mut reader) {
                seen.extend(Some(taken).filter(|_| key == 2));
                release.send(&mut reader, at(200), STRONG, (1, 2));
                reader.handle_timeout(at(200));
            }
            let expected: Vec<_> = values.into_iter().map(Ok).chain([END]).collect();
            assert_eq!(seen, expected, "{form}");
            assert_eq!(reader.counters().instances_left, 1, "{form}");
            assert_eq!(reader.find_instance([2; 16]), None, "{form}");
        }
    }
}

#[test]
fn a_writer_that_is_back_keeps_the_instances_of_which_samples_find_room() {
    const ROOM: u32 = 4;
    for (form, config) in configs(ROOM) {
        let (mut reader, mut strong, values) = refused(config, ROOM, ROOM - 1);
        Release::Gap.send(&mut reader, at(110), STRONG, (1, 2));
        // It is back, and is lost once more before there is room.
        let last = strong.send(&mut reader, at(120), 2);
        assert!(is_alive(&reader, 2), "{form}");
        reader.handle_timeout(at(220));
        let (mut seen, mut now) = (Vec::new(), 221);
        while let Some((key, taken)) = take(&mut reader) {
            seen.extend(Some(taken).filter(|_| key == 2));
            reader.handle_timeout(at(now));
            now += 1;
        }
        let first = [Ok(values[0]), END];
        let rest = values[1..].iter().map(|value| Ok(*value)).chain([END]);
        assert_eq!(seen, first.into_iter().chain(rest).collect::<Vec<_>>(), "{form}");
        assert_eq!(reader.find_instance([2; 16]), None, "{form}");
        // The last one found no room, neither before nor behind those that waited.
        assert!(!seen.contains(&Ok(last)), "{form}");
    }
}

#[test]
fn only_writers_of_which_samples_were_refused_are_asked_when_there_is_room() {
    let config = ReaderConfig { max_samples: Some(1), ..keyed() };
    let (mut reader, mut weak, mut strong) = leased(config);
    for number in 5..15 {
        let guid = Guid::new(GuidPrefix([number; 12]), WRITER.entity);
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let config = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
        reader.match_writer(at(0), config);
    }
    answers(&mut reader, at(0));
    assert!(!reader.due.is_any());
    let first = weak.send(&mut reader, at(1), 1);
    strong.send(&mut reader, at(1), 1);
    assert_eq!(all(&mut reader), [Ok(first)]);
    assert!(reader.is_request_due());
    assert_eq!(reader.due.take(usize::MAX), 1..2, "that is the second one");
}

#[test]
fn room_is_given_to_the_sample_that_is_next_and_not_to_the_one_refused_before() {
    let config = ReaderConfig { max_samples: Some(5), max_samples_per_instance: Some(2), ..keyed() };
    let (mut reader, mut weak, mut strong) = leased(config);
    heartbeat_of_all(&mut reader);
    // Sample 1 is refused because of its instance, and then left out by its writer. Sample 2 is of another one.
    strong.next = 2;
    let second = strong.send(&mut reader, at(1), 2);
    let full: Vec<_> = (0..2).map(|_| weak.send(&mut reader, at(1), 1)).collect();
    strong.next = 1;
    strong.send(&mut reader, at(2), 1);
    let more: Vec<_> = [3, 3, 4].map(|key| weak.send(&mut reader, at(2), key)).to_vec();
    Release::Gap.send(&mut reader, at(3), STRONG, (1, 2));
    assert_eq!(reader.available(), 5);
    // Of another instance than that of sample 1, one is taken.
    let instance = reader.find_instance([3; 16]);
    let selection = SampleSelection { instance, ..SampleSelection::default() };
    let mut taken = Vec::new();
    reader.access(1, selection, true, |sample| {
        taken.push(sample.payload[5]);
        true
    });
    assert_eq!(taken, more[..1]);
    let rest = full.into_iter().chain(more[1..].iter().copied()).chain([second]).map(Ok);
    assert_eq!(all(&mut reader), rest.collect::<Vec<_>>());
}

/// Both writers have announced nothing.
fn heartbeat_of_all(reader: &mut ReaderCore) {
    for writer in [WEAK, STRONG] {
        reader.handle_heartbeat(at(0), writer, &heartbeat_of(EntityId::UNKNOWN, 1, 1, 0));
    }
}

#[test]
fn an_instance_ends_once_behind_all_sets_of_a_lost_writer_that_become_accessible() {
    for is_unmatched in [false, true] {
        let (mut reader, _, mut strong) = grouped(Ownership::Shared);
        // Three sets, and samples of one instance in two of them.
        let in_sets = [(1, 1), (2, 2), (1, 3)].map(|(key, set)| {
            let value = send_in_set(&mut reader, at(1), &mut strong, Some(key), set);
            (key, value)
        });
        send_in_set(&mut reader, at(1), &mut strong, None, 3);
        match is_unmatched {
            true => reader.unmatch_writer(at(110), STRONG),
            false => reader.handle_timeout(at(110)),
        }
        assert_eq!((reader.available(), reader.counters().instances_left), (0, 0));
        settle_all(&mut reader, at(130));
        let mut seen = Vec::new();
        while let Some((key, taken)) = take(&mut reader) {
            seen.push((key, taken));
            reader.handle_timeout(at(130));
        }
        let of = |key| seen.iter().filter(move |it| it.0 == key).map(|it| it.1).collect::<Vec<_>>();
        assert_eq!(of(1), [Ok(in_sets[0].1), Ok(in_sets[2].1), END], "unmatched: {is_unmatched}");
        assert_eq!(of(2), [Ok(in_sets[1].1), END], "unmatched: {is_unmatched}");
        assert_eq!(reader.counters().instances_left, 2);
    }
}

#[test]
fn an_instance_ends_when_the_samples_that_wait_for_it_are_dropped() {
    const ROOM: u32 = 4;
    for (form, config) in configs(ROOM) {
        let (mut reader, mut weak, mut strong) = leased(config);
        strong.next = 2;
        (1..ROOM).for_each(|_| _ = strong.send(&mut reader, at(0), 2));
        (0..ROOM - 2).for_each(|_| _ = weak.send(&mut reader, at(0), 9));
        reader.handle_timeout(at(101));
        Release::Gap.send(&mut reader, at(110), STRONG, (1, 2));
        assert!(is_alive(&reader, 2), "{form}: samples of it wait");
        // The writer has started anew, and says so for long enough.
        let anew = |count| heartbeat_of(EntityId::UNKNOWN, count, 1, 1);
        let late = at(120) + config::COUNT_TRUST;
        reader.handle_heartbeat(at(120), STRONG, &anew(1));
        reader.handle_heartbeat(late, STRONG, &anew(2));
        assert_eq!(reader.counters().writers_restarted, 1, "{form}");
        reader.handle_timeout(late);
        assert!(!is_alive(&reader, 2), "{form}");
        assert_eq!(reader.counters().instances_left, 1, "{form}");
    }
}

#[test]
fn a_sample_that_was_refused_is_requested_once_an_instance_has_ended_without_an_access() {
    let config = ReaderConfig { max_instances: Some(1), ..keyed() };
    let (mut reader, mut weak, mut strong) = leased(config);
    heartbeat_of_all(&mut reader);
    weak.send(&mut reader, at(1), 1);
    weak.end(&mut reader, at(1), 1, 1);
    assert_eq!(all(&mut reader).len(), 2);
    strong.send(&mut reader, at(2), 2);
    answers(&mut reader, at(2));
    assert_eq!((reader.available(), reader.counters().samples_refused), (0, 1));
    let announce = |reader: &mut ReaderCore, now, count| {
        reader.handle_heartbeat(now, STRONG, &heartbeat_of(EntityId::UNKNOWN, count, 1, 1));
        answers(reader, now)
    };
    assert_eq!(announce(&mut reader, at(3), 2), ["1/0:"], "there is no room");
    // The first instance has ended before, and nothing is reported.
    weak.end(&mut reader, at(4), 1, 2);
    assert_eq!((reader.available(), reader.find_instance([1; 16])), (0, None));
    assert_eq!(announce(&mut reader, at(5), 3), ["1/1:1"]);
    strong.next = 1;
    let second = strong.send(&mut reader, at(6), 2);
    assert_eq!(all(&mut reader), [Ok(second)]);
}

/// What happens to a reader of two writers, one of which is lost and back again and again.
struct Chaos {
    reader: ReaderCore,
    sources: [Source; 2],
    now: u64,
    /// The last of each instance: whether it was an end.
    was_end: [bool; 4],
    /// Ends of each instance.
    ends: [u32; 4],
    form: String,
}

impl Chaos {
    fn new(config: ReaderConfig, form: String) -> Self {
        let (reader, weak, strong) = leased(config);
        Self { reader, sources: [weak, strong], now: 1, was_end: [false; 4], ends: [0; 4], form }
    }

    fn step(&mut self, rng: &mut Rng) {
        self.now += rng.below(30);
        let now = at(self.now);
        let index = rng.below(2) as usize;
        let source = &mut self.sources[index];
        let key = rng.below(4) as u8;
        match rng.below(12) {
            0..4 => _ = source.send(&mut self.reader, now, key),
            4 => source.end(&mut self.reader, now, key, 1 + rng.below(3) as u8),
            // The next sample is missing.
            5 => source.next += 1,
            6 => {
                let first = (source.next - rng.below(6) as i64).max(1);
                self.announce(index, first);
            }
            7 => self.reader.handle_timeout(now),
            8 if rng.below(8) == 0 => self.match_anew(),
            _ => _ = self.take(),
        }
    }

    /// Samples before `first` are not there any more.
    fn announce(&mut self, index: usize, first: i64) {
        let (guid, last) = (self.sources[index].guid, self.sources[index].next - 1);
        let mut heartbeat = heartbeat_of(EntityId::UNKNOWN, self.now as u32, first, last);
        heartbeat.is_final = true;
        self.reader.handle_heartbeat(at(self.now), guid, &heartbeat);
    }

    fn match_anew(&mut self) {
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let vendor = VendorId::WEIR;
        let config = WriterProxyConfig { guid: STRONG, reliable: true, destinations, vendor };
        self.reader.match_writer(at(self.now), config);
        let policy = Liveliness { kind: LivelinessKind::ManualByTopic, lease: LEASE };
        self.reader.set_liveliness(at(self.now), STRONG, policy);
    }

    fn take(&mut self) -> bool {
        let Some((key, taken)) = take(&mut self.reader) else { return false };
        let was_end = core::mem::replace(&mut self.was_end[usize::from(key)], taken == END);
        assert!(!(was_end && taken == END), "{}: instance {key} ended twice", self.form);
        self.ends[usize::from(key)] += u32::from(taken == END);
        true
    }

    /// Takes all, while the time passes. No instance may end more often than this.
    fn drain(&mut self, most: u32) {
        self.ends = [0; 4];
        for _ in 0..100 {
            while self.take() {
                self.now += 1;
                self.reader.handle_timeout(at(self.now));
            }
            self.reader.handle_timeout(at(self.now));
        }
        assert!(self.ends.iter().all(|ends| *ends <= most), "{}: {:?} ends", self.form, self.ends);
    }

    /// Both writers are lost, one of them with samples that wait for a missing one, and all that is left is taken.
    fn finish(&mut self, rng: &mut Rng, room: u32) {
        let [weak, strong] = [0, 1].map(|index| self.sources[index].next);
        self.announce(0, weak);
        self.announce(1, strong);
        self.drain(u32::MAX);
        self.sources[1].next += 1;
        for index in [1, 0] {
            for _ in 0..room {
                _ = self.sources[index].send(&mut self.reader, at(self.now), rng.below(4) as u8);
            }
        }
        self.now += 1_000;
        self.reader.handle_timeout(at(self.now));
        self.announce(1, strong + 1);
        // The missing one will not arrive. Most of the others find no room.
        self.drain(2);
        self.reader.unmatch_writer(at(self.now), WEAK);
        self.drain(1);
        let form = &self.form;
        assert_eq!(self.reader.delivery.cache.instances.alive().count(), 0, "{form}");
        for key in 0..4 {
            assert_eq!(self.reader.find_instance([key; 16]), None, "{form}: instance {key}");
        }
        assert!(!self.reader.has_left() && !self.reader.delivery.refused.is_any(), "{form}");
        assert_eq!(self.reader.delivery.cache.held, 0, "{form}");
    }
}

#[test]
fn every_instance_ends_once_in_whichever_order_its_writers_are_lost_and_room_is_made() {
    for seed in 0..1_000 {
        let mut rng = Rng::new(seed);
        let room = 2 + rng.below(8) as u32;
        let separated = ReaderConfig { minimum_separation: LEASE / 10, ..configs(room)[0].1.clone() };
        let configs = configs(room).into_iter().chain([("TIME_BASED_FILTER", separated)]);
        let (form, config) = configs.collect::<Vec<_>>().swap_remove(seed as usize % 4);
        let each = (rng.below(2) == 0).then_some(1 + rng.below(3) as u32);
        let config = ReaderConfig { max_samples_per_instance: each.map(|it| it.min(room)), ..config };
        let mut chaos = Chaos::new(config, format!("{form}, seed {seed}"));
        (0..300).for_each(|_| chaos.step(&mut rng));
        chaos.finish(&mut rng, room);
    }
}
