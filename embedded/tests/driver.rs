//! Two hosts of smoltcp at a wire in memory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use weir_embedded::{DriverCounters, Host, SmoltcpDriver};
use weir_rtps::driver::{Driver, Port};
use weir_rtps::participant::{Interface, LocalEndpoint, ParticipantConfig};
use weir_rtps::qos::{History, Qos, Reliability};
use weir_rtps::reader::ReaderConfig;
use weir_rtps::station::{Station, StationCounters};
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, WriterConfig};
use weir_wire::{EntityId, Guid, GuidPrefix};

type Frames = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// The end of a wire.
struct Card {
    arrives: Frames,
    leaves: Frames,
}

struct Receives(Vec<u8>);
struct Transmits(Frames);

impl phy::RxToken for Receives {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Transmits {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.borrow_mut().push_back(frame);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Receives;
    type TxToken<'a> = Transmits;

    fn receive(&mut self, _: Instant) -> Option<(Receives, Transmits)> {
        let frame = self.arrives.borrow_mut().pop_front()?;
        Some((Receives(frame), Transmits(Rc::clone(&self.leaves))))
    }

    fn transmit(&mut self, _: Instant) -> Option<Transmits> {
        Some(Transmits(Rc::clone(&self.leaves)))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.max_transmission_unit, capabilities.medium) = (1_514, Medium::Ethernet);
        capabilities
    }
}

type Clock = Rc<Cell<u64>>;
const PORTS: [u16; 3] = [7410, 7400, 7411];

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

fn user(host: u8) -> SocketAddrV4 {
    SocketAddrV4::new(address(host), PORTS[2])
}

/// Hosts 1 and 2.
fn hosts(clock: &Clock) -> [SmoltcpDriver<Card, impl FnMut() -> Time + use<>>; 2] {
    let frames: [Frames; 2] = Default::default();
    [0, 1].map(|index: usize| {
        let card = Card { arrives: Rc::clone(&frames[index]), leaves: Rc::clone(&frames[1 - index]) };
        let clock = Rc::clone(clock);
        let number = index as u8 + 1;
        let host = Host {
            hardware: [2, 0, 0, 0, 0, number],
            address: address(number),
            prefix_len: 24,
            ports: PORTS,
        };
        SmoltcpDriver::new(card, move || Time(clock.get()), host).unwrap()
    })
}

/// What host 2 receives of host 1's user data.
fn received(driver: &mut impl Driver) -> Vec<u8> {
    let mut buffer = [0; 1_472];
    let mut firsts = Vec::new();
    while let Ok(Some(_)) = driver.receive(Port::User, &mut buffer) {
        firsts.push(buffer[0]);
    }
    firsts
}

#[test]
fn hosts_that_do_not_answer_hold_up_no_others() {
    let clock = Clock::new(Cell::new(1_000_000_000));
    let [mut here, mut there] = hosts(&clock);
    let mut sent = Vec::new();
    for round in 0..100 {
        clock.set(clock.get() + 1_000_000);
        // More hosts than there are queues, and one that cannot be reached at all.
        for dead in 100..110 {
            here.send(Port::User, user(dead), [&[0; 8], &[0; 100]]).unwrap();
        }
        here.send(Port::User, SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 7411), [&[0; 8], &[]]).unwrap();
        // The other host asks for our address before it sends, as any that is alive does, and so we have its own.
        there.send(Port::User, user(1), [&[round; 8], &[]]).unwrap();
        here.send(Port::User, user(2), [&[round; 8], &[1; 50]]).unwrap();
        received(&mut here);
        sent.extend(received(&mut there));
    }
    assert!(sent.len() >= 95, "{sent:?}");
    let counters = here.counters();
    assert_eq!(counters.unreachable, 100);
    assert!(counters.unresolved + counters.queue_full > 900, "{counters:?}");
}

#[test]
fn what_is_longer_than_a_packet_is_counted() {
    let [mut here, mut there] = hosts(&Clock::new(Cell::new(1_000_000_000)));
    assert_eq!(here.datagram_max(), 1_472);
    for len in [1_472, 1_473, 30_000] {
        here.send(Port::User, user(2), [&[7; 20], &vec![7; len - 20]]).unwrap();
    }
    for _ in 0..3 {
        assert_eq!((received(&mut here), here.counters().too_long), (vec![], 2));
        let _ = received(&mut there);
    }
    here.send(Port::User, user(2), [&[8; 20], &[8; 1_452]]).unwrap();
    let mut short = [0; 100];
    assert_eq!(there.receive(Port::User, &mut short), Ok(None));
    assert_eq!(there.counters().received_too_long, 1);
}

#[test]
fn nothing_is_slept_over_that_waits_in_a_socket() {
    let [mut here, mut there] = hosts(&Clock::new(Cell::new(1_000_000_000)));
    // The hosts learn each other's addresses.
    for _ in 0..3 {
        there.send(Port::User, user(1), [&[7; 8], &[]]).unwrap();
        let _ = (received(&mut here), received(&mut there));
    }
    assert_ne!(here.idle_time(), Some(std::time::Duration::ZERO));
    there.send(Port::User, user(1), [&[7; 8], &[]]).unwrap();
    // To look at one socket fills the others, too.
    assert_eq!(here.receive(Port::Metatraffic, &mut [0; 1_472]), Ok(None));
    assert_eq!(here.idle_time(), Some(std::time::Duration::ZERO));
    assert_eq!(received(&mut here), [7]);
    assert_ne!(here.idle_time(), Some(std::time::Duration::ZERO));
}

#[test]
fn a_host_receives_what_it_sends_to_itself_as_far_as_there_is_room() {
    let [mut here, _] = hosts(&Clock::new(Cell::new(1_000_000_000)));
    (0..20).for_each(|number| here.send(Port::User, user(1), [&[number; 8], &[9; 1_400]]).unwrap());
    assert_eq!(here.idle_time(), Some(std::time::Duration::ZERO));
    assert_eq!(received(&mut here), (0..16).collect::<Vec<_>>());
    assert_eq!(here.counters().queue_full, 4);
    here.send(Port::User, SocketAddrV4::new(address(1), 7410), [&[1; 8], &[]]).unwrap();
    assert_eq!((received(&mut here), here.counters().unreachable), (vec![], 1));
}

#[test]
fn a_flood_of_packets_does_not_keep_the_driver() {
    let clock = Clock::new(Cell::new(1_000_000_000));
    let [mut here, there] = hosts(&clock);
    there.device().leaves.borrow_mut().extend((0..1_000).map(|_| vec![0; 60]));
    assert_eq!(here.receive(Port::User, &mut [0; 100]), Ok(None));
    assert_eq!(here.device().arrives.borrow().len(), 1_000 - 16);
}

/// A participant that writes a topic and reads it.
fn station<D: Driver<Error: std::fmt::Debug>>(host: u8, driver: D) -> Station<D, 1, 1> {
    let mut config = ParticipantConfig::new(GuidPrefix([host; 12]), 0);
    config.metatraffic_unicast = vec![SocketAddrV4::new(address(host), PORTS[0])];
    config.default_unicast = vec![user(host)];
    config.interfaces = vec![Interface { address: address(host), netmask: Ipv4Addr::new(255, 255, 255, 0) }];
    let guid = |entity| Guid::new(config.guid_prefix, entity);
    let endpoint = |entity, qos| LocalEndpoint {
        entity,
        topic: "Numbers".to_owned(),
        type_name: "Number".to_owned(),
        qos,
        unicast: Vec::new(),
        multicast: None,
    };
    let (writer, reader) = (EntityId::user_writer(1, false), EntityId::user_reader(1, false));
    let of_writer =
        WriterConfig { history: History::KeepAll, ..WriterConfig::new(guid(writer), Reliability::Reliable) };
    let of_reader =
        ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(guid(reader), Reliability::Reliable) };
    let reliable = Qos { reliability: Reliability::Reliable, ..Qos::for_reader() };
    let writers = [(endpoint(writer, Qos::for_writer()), of_writer)];
    let readers = [(endpoint(reader, reliable), of_reader)];
    Station::new(driver, config, writers, readers).unwrap()
}

#[test]
fn stations_exchange_samples_of_all_lengths_with_each_other_and_with_themselves() {
    let clock = Clock::new(Cell::new(1_000_000_000));
    let [here, there] = hosts(&clock);
    let mut stations = [station(1, here), station(2, there)];
    let mut received = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    let lens: Vec<usize> = (1_300..1_600).step_by(12).chain([8, 50_000]).collect();
    let payload = [[1; 50_000], [2; 50_000]];
    let mut written = [0, 0];
    while received.iter().flatten().any(|lens_of: &Vec<usize>| lens_of.len() < lens.len()) {
        clock.set(clock.get() + 1_000_000);
        for (index, station) in stations.iter_mut().enumerate() {
            station.poll().unwrap();
            if station.writers()[0].matched() == 2
                && station.readers()[0].matched().count() == 2
                && let Some(len) = lens.get(written[index])
            {
                let change = Change { kind: ChangeKind::Alive, key: None, payload: &payload[index][..*len] };
                written[index] += usize::from(station.write(0, None, change).unwrap().is_ok());
            }
            let mut take = |number: u8, len| received[index][usize::from(number) - 1].push(len);
            while station.take_next(0, |sample| take(sample.payload[0], sample.payload.len())) {}
        }
    }
    assert_eq!(received, [[lens.clone(), lens.clone()], [lens.clone(), lens]]);
    for station in &mut stations {
        assert_eq!(station.counters(), StationCounters::default());
        let DriverCounters { too_long, unreachable, unresolved, received_too_long, .. } =
            station.driver_mut().counters();
        assert_eq!((too_long, unreachable, unresolved, received_too_long), (0, 0, 0, 0));
    }
}
