//! Stations above a wire of the test.

use alloc::borrow::ToOwned;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_wire::{Guid, GuidPrefix};

use super::*;
use crate::limits::{EndpointLimits, Limits};
use crate::qos::{History, Liveliness, Qos};
use crate::writer::{BatchPolicy, ChangeKind, Coalescing};

/// Datagrams, and who sent them.
type Queue = VecDeque<(Vec<u8>, SocketAddrV4)>;

/// The stack does not work.
#[derive(Debug, PartialEq, Eq)]
struct Broken;

/// What is in flight, and the time.
#[derive(Default)]
struct Wire {
    now: u64,
    sent: u64,
    /// Drops every so many datagrams; 0: none.
    loses_every: u64,
    is_broken: bool,
    groups: Vec<(u8, Ipv4Addr)>,
    /// Of each host and port.
    queues: [[Queue; 3]; 2],
}

/// The end of host 0 or 1.
struct End {
    host: u8,
    wire: Rc<RefCell<Wire>>,
}

fn address(host: u8, port: Port) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host + 1), 7410 + port as u16)
}

impl Driver for End {
    type Error = Broken;

    fn now(&mut self) -> Time {
        Time(self.wire.borrow().now)
    }

    fn send(&mut self, from: Port, to: SocketAddrV4, datagram: Parts<'_>) -> Result<(), Broken> {
        assert_ne!(from, Port::Group);
        let mut wire = self.wire.borrow_mut();
        if wire.is_broken {
            return Err(Broken);
        }
        wire.sent += 1;
        assert!(datagram[0].len() + datagram[1].len() <= self.datagram_max());
        if wire.loses_every > 0 && wire.sent.is_multiple_of(wire.loses_every) {
            return Ok(());
        }
        let whole = datagram.concat();
        let sender = address(self.host, from);
        let other = 1 - self.host;
        if to.ip().is_multicast() {
            assert!(wire.groups.contains(&(other, *to.ip())));
            wire.queues[usize::from(other)][Port::Group as usize].push_back((whole, sender));
        } else if let Some(port) =
            [Port::Metatraffic, Port::User].into_iter().find(|port| to == address(other, *port))
        {
            wire.queues[usize::from(other)][port as usize].push_back((whole, sender));
        }
        Ok(())
    }

    fn receive(&mut self, at: Port, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddrV4)>, Broken> {
        let next = self.wire.borrow_mut().queues[usize::from(self.host)][at as usize].pop_front();
        Ok(next.map(|(datagram, from)| {
            buffer[..datagram.len()].copy_from_slice(&datagram);
            (datagram.len(), from)
        }))
    }

    fn join_multicast(&mut self, group: Ipv4Addr) -> Result<(), Broken> {
        self.wire.borrow_mut().groups.push((self.host, group));
        Ok(())
    }
}

fn config(host: u8) -> ParticipantConfig {
    let mut config = ParticipantConfig::new(GuidPrefix([host + 1; 12]), 0);
    config.metatraffic_unicast = vec![address(host, Port::Metatraffic)];
    config.default_unicast = vec![address(host, Port::User)];
    config
}

fn endpoint(entity: EntityId, qos: Qos) -> LocalEndpoint {
    let (topic, type_name) = ("Numbers".to_owned(), "Number".to_owned());
    LocalEndpoint { entity, topic, type_name, qos, unicast: Vec::new(), multicast: None }
}

/// The writer of a station at host 0, reliable and keeping all.
fn writer_of(key: u32) -> (LocalEndpoint, WriterConfig) {
    let entity = EntityId::user_writer(key, false);
    let guid = Guid::new(config(0).guid_prefix, entity);
    let core = WriterConfig { history: History::KeepAll, ..WriterConfig::new(guid, Reliability::Reliable) };
    (endpoint(entity, Qos::for_writer()), core)
}

/// The reader of a station at a host, reliable and keeping all.
fn reader_of(host: u8, key: u32) -> (LocalEndpoint, ReaderConfig) {
    let entity = EntityId::user_reader(key, false);
    let guid = Guid::new(config(host).guid_prefix, entity);
    let core = ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(guid, Reliability::Reliable) };
    (endpoint(entity, Qos { reliability: Reliability::Reliable, ..Qos::for_reader() }), core)
}

fn wire(loses_every: u64) -> Rc<RefCell<Wire>> {
    Rc::new(RefCell::new(Wire { now: 1_000_000_000, loses_every, ..Wire::default() }))
}

fn end(wire: &Rc<RefCell<Wire>>, host: u8) -> End {
    End { host, wire: Rc::clone(wire) }
}

/// A station that writes and one that reads, reliably and keeping all.
fn pair(wire: &Rc<RefCell<Wire>>) -> (Station<End, 1, 0>, Station<End, 0, 1>) {
    let here = Station::new(end(wire, 0), config(0), [writer_of(1)], []).unwrap();
    (here, Station::new(end(wire, 1), config(1), [], [reader_of(1, 1)]).unwrap())
}

fn change(payload: &[u8]) -> Change<'_> {
    Change { kind: ChangeKind::Alive, key: None, payload }
}

/// Lets a millisecond pass, and both stations work.
fn run<const W: usize, const R: usize, const V: usize, const S: usize>(
    wire: &Rc<RefCell<Wire>>,
    here: &mut Station<End, W, R>,
    there: &mut Station<End, V, S>,
) {
    wire.borrow_mut().now += Duration::from_millis(1).as_nanos() as u64;
    let (Ok(next), Ok(_)) = (here.poll(), there.poll()) else { panic!("the stack works") };
    assert!(next.is_some(), "a participant always announces itself again");
}

/// Sends samples of these lengths; returns the lengths and first bytes of what arrives.
fn exchange(loses_every: u64, lens: &[usize]) -> Vec<(usize, u8)> {
    let wire = wire(loses_every);
    let (mut here, mut there) = pair(&wire);
    let (mut written, mut received) = (0, Vec::new());
    for _ in 0..5_000 {
        run(&wire, &mut here, &mut there);
        if here.writers()[0].matched() == 1
            && there.readers()[0].matched().count() == 1
            && written < lens.len()
        {
            let payload = vec![written as u8; lens[written]];
            let result = here.write(0, Some(Timestamp::from_unix_nanos(1)), change(&payload)).unwrap();
            written += usize::from(result.is_ok());
        }
        while there.take_next(0, |sample| received.push((sample.payload.len(), sample.payload[0]))) {}
        if received.len() == lens.len() {
            break;
        }
    }
    received
}

#[test]
fn stations_exchange_samples_above_any_stack() {
    let lens = [8, 1_000, 1_400, 20_000, 12];
    let expected: Vec<_> = lens.iter().enumerate().map(|(at, len)| (*len, at as u8)).collect();
    assert_eq!(exchange(0, &lens), expected);
}

#[test]
fn datagrams_that_the_stack_loses_are_repaired() {
    let lens = [100; 100];
    let expected: Vec<_> = (0..100).map(|at| (100, at)).collect();
    assert_eq!(exchange(5, &lens), expected);
}

#[test]
fn a_station_that_closes_is_forgotten_at_once() {
    let wire = wire(0);
    let (mut here, mut there) = pair(&wire);
    for _ in 0..100 {
        run(&wire, &mut here, &mut there);
    }
    assert_eq!(there.discovery().remote_participants(), 1);
    here.close().unwrap();
    there.poll().unwrap();
    assert_eq!(there.discovery().remote_participants(), 0);
}

#[test]
fn datagrams_are_cut_across_parts() {
    let parts: Parts<'_> = [&[1, 2, 3], &[4, 5]];
    let of = |start, end| cut(parts, start, end).concat();
    assert_eq!((of(0, 2), of(2, 4), of(4, 6)), (vec![1, 2], vec![3, 4], vec![5]));
    assert_eq!(of(0, 5), [1, 2, 3, 4, 5]);
}

#[test]
fn no_datagram_is_longer_than_the_driver_carries_whenever_its_sample_was_written() {
    let batch = BatchPolicy::new(60_000, 100, Duration::from_micros(100));
    for (batch, coalescing) in [
        (None, None),
        (Some(batch), None),
        (Some(batch), Some(Coalescing::default())),
        (None, Some(Coalescing::default())),
    ] {
        let wire = wire(0);
        let (mut endpoint, mut core) = writer_of(1);
        endpoint.qos.durability = Durability::TransientLocal;
        core.durability = Durability::TransientLocal;
        (core.batch, core.coalescing) = (batch, coalescing);
        let mut here = Station::new(end(&wire, 0), config(0), [(endpoint, core)], []).unwrap();
        let lens: Vec<usize> = (1_300..1_600).step_by(4).chain([4, 100, 20_000, 100_000]).collect();
        let payload = vec![7; 100_000];
        lens.iter().for_each(|len| _ = here.write(0, None, change(&payload[..*len])).unwrap().unwrap());
        let (mut endpoint, core) = reader_of(1, 1);
        endpoint.qos.durability = Durability::TransientLocal;
        let mut there = Station::new(end(&wire, 1), config(1), [], [(endpoint, core)]).unwrap();
        let (mut received, mut late) = (Vec::new(), lens.iter());
        while received.len() < 2 * lens.len() {
            run(&wire, &mut here, &mut there);
            if received.len() >= lens.len()
                && let Some(len) = late.next()
            {
                here.write(0, None, change(&payload[..*len])).unwrap().unwrap();
            }
            while there.take_next(0, |sample| received.push(sample.payload.len())) {}
        }
        assert_eq!(received, [&lens[..], &lens[..]].concat());
        assert_eq!(here.counters(), StationCounters::default());
    }
}

#[test]
fn an_announcement_that_is_longer_than_the_driver_carries_is_counted() {
    let wire = wire(0);
    let (mut endpoint, core) = writer_of(1);
    endpoint.qos.user_data = vec![1; 1_000];
    endpoint.qos.topic_data = vec![1; 1_000];
    let mut here = Station::new(end(&wire, 0), config(0), [(endpoint, core)], []).unwrap();
    let mut there = Station::new(end(&wire, 1), config(1), [], [reader_of(1, 1)]).unwrap();
    (0..100).for_each(|_| run(&wire, &mut here, &mut there));
    assert!(here.counters().datagrams_too_long > 0);
    assert_eq!(here.writers()[0].matched(), 1, "the reader is known");
    assert_eq!(there.readers()[0].matched().count(), 0, "the writer is not");
}

#[test]
fn an_entity_id_that_is_given_twice_is_an_error() {
    let wire = wire(0);
    let twice = Station::new(end(&wire, 0), config(0), [writer_of(1), writer_of(1)], []);
    assert_eq!(twice.map(drop), Err(StationError::SameEntity(EntityId::user_writer(1, false))));
    let twice =
        Station::new(end(&wire, 0), config(0), [], [reader_of(0, 1), reader_of(0, 2), reader_of(0, 1)]);
    assert_eq!(twice.map(drop), Err(StationError::SameEntity(EntityId::user_reader(1, false))));
    assert!(wire.borrow().groups.is_empty(), "nothing was started");
}

#[test]
fn a_core_with_another_guid_than_it_is_announced_with_is_an_error() {
    let wire = wire(0);
    let (of_other_host, announced) = (reader_of(1, 1), reader_of(0, 1).1.guid);
    let core = of_other_host.1.guid;
    let refused = Station::new(end(&wire, 0), config(0), [], [of_other_host]);
    assert_eq!(refused.map(drop), Err(StationError::OtherGuid { core, announced }));
}

#[test]
fn the_limits_table_reaches_the_cores() {
    let endpoint = EndpointLimits { matches: 1, samples: 3, sample_bytes: 100, ..EndpointLimits::SMALL };
    let limits = Limits { writers: 1, readers: 1, endpoint, ..Limits::SMALL };
    let config = || config(0).with_limits(limits);
    let wire = wire(0);
    let mut station = Station::new(end(&wire, 0), config(), [writer_of(1)], [reader_of(0, 1)]).unwrap();
    assert!(station.writers()[0].allocated() > 0 && station.readers()[0].allocated() > 0);
    let mut write = |len| station.write(0, None, change(&[0; 200][..len])).unwrap();
    assert!(matches!(write(101), Err(WriteRefused::TooLarge { .. })), "{:?}", write(101));
    (1..=3).for_each(|number| assert_eq!(write(100), Ok(SequenceNumber(number))));

    let (of_writer, mut core) = writer_of(1);
    core.history = History::KeepLast(4);
    let refused = Station::new(end(&wire, 0), config(), [(of_writer, core)], []);
    let entity = EntityId::user_writer(1, false);
    let error = LimitTooSmall { key: "samples", limit: 3, needed: 4, why: "KEEP_LAST keeps" };
    assert_eq!(refused.map(drop), Err(StationError::Limits(entity, error)));
    let refused = Station::new(end(&wire, 0), config(), [writer_of(1), writer_of(2)], []);
    let error = LocalEndpointError::TooMany { what: "writers", max: 1 };
    assert_eq!(refused.map(drop), Err(StationError::Endpoint(error)));
}

#[test]
fn a_sample_that_is_all_key_can_be_disposed_within_a_limits_table() {
    let endpoint = EndpointLimits { sample_bytes: 100, samples: 1, ..EndpointLimits::SMALL };
    let limits = Limits { endpoint, ..Limits::SMALL };
    let wire = wire(0);
    let (mut endpoint, mut core) = writer_of(1);
    endpoint.entity = EntityId::user_writer(1, true);
    core.guid.entity = endpoint.entity;
    let mut station =
        Station::new(end(&wire, 0), config(0).with_limits(limits), [(endpoint, core)], []).unwrap();
    let allocated = station.writers()[0].allocated();
    for (kind, len) in
        [ChangeKind::Alive, ChangeKind::Disposed].into_iter().flat_map(|it| [(it, 100), (it, 101)])
    {
        let change = Change { kind, key: Some([1; 16]), payload: &[0; 101][..len] };
        let written = station.write(0, Some(Timestamp::from_unix_nanos(1)), change).unwrap();
        assert_eq!(written.is_ok(), len == 100, "{kind:?} {written:?}");
    }
    assert_eq!(station.writers()[0].allocated(), allocated);
}

#[test]
fn what_a_poll_leaves_in_the_sockets_makes_the_next_one_due_at_once() {
    let wire = wire(0);
    let (_, mut there) = pair(&wire);
    let now = wire.borrow().now;
    for count in [BATCH - 1, BATCH, 3 * BATCH - 1] {
        while there.poll().unwrap() == Some(Time(now)) {}
        let junk = (vec![0; 4], address(0, Port::User));
        wire.borrow_mut().queues[1][Port::User as usize].extend(core::iter::repeat_n(junk, count));
        for left in (0..=count / BATCH).rev() {
            assert_eq!(there.poll().unwrap() == Some(Time(now)), left > 0, "{count} {left}");
        }
    }
    assert_eq!(there.received().malformed, (5 * BATCH - 2) as u64);
}

#[test]
fn what_a_broken_stack_does_not_send_is_counted() {
    let wire = wire(0);
    let (mut here, _there) = pair(&wire);
    wire.borrow_mut().is_broken = true;
    assert_eq!(here.poll(), Err(Broken));
    assert!(here.counters().datagrams_failed > 0);
}

#[test]
fn a_writer_whose_liveliness_the_application_asserts_is_alive_while_it_does() {
    for kind in [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic] {
        let wire = wire(0);
        let liveliness = Liveliness { kind, lease: Duration::from_millis(50) };
        let (mut endpoint, core) = writer_of(1);
        endpoint.qos.liveliness = liveliness;
        let mut here = Station::new(end(&wire, 0), config(0), [(endpoint, core)], []).unwrap();
        let (mut endpoint, core) = reader_of(1, 1);
        endpoint.qos.liveliness = liveliness;
        let mut there = Station::new(end(&wire, 1), config(1), [], [(endpoint, core)]).unwrap();
        let mut lost_by = Vec::new();
        for step in 0..600 {
            match step {
                0..200 if step % 10 == 0 => _ = here.write(0, None, change(&[1; 8])).unwrap(),
                200..400 if step % 10 == 0 => here.assert_liveliness(0).unwrap(),
                _ => {}
            }
            run(&wire, &mut here, &mut there);
            lost_by.push((here.counters().liveliness_lost, there.readers()[0].not_alive_writers()));
        }
        assert_eq!((lost_by[399], lost_by[599]), ((0, 0), (1, 1)), "{kind:?}");
    }
}

#[test]
fn policies_and_types_that_prevent_a_match_are_counted() {
    let wire = wire(0);
    let (mut endpoint, core) = writer_of(1);
    endpoint.qos.reliability = Reliability::BestEffort;
    let mut here = Station::new(end(&wire, 0), config(0), [(endpoint, core)], []).unwrap();
    let (mut of_other_type, core) = reader_of(1, 2);
    "Other".clone_into(&mut of_other_type.type_name);
    let readers = [reader_of(1, 1), (of_other_type, core)];
    let mut there = Station::new(end(&wire, 1), config(1), [], readers).unwrap();
    (0..100).for_each(|_| run(&wire, &mut here, &mut there));
    for counters in [here.counters(), there.counters()] {
        assert_eq!((counters.incompatible_qos, counters.inconsistent_topics), (1, 1));
    }
}
