//! The protocol crates without the standard library: two participants discover each other and exchange a sample.
//!
//! This crate has a panic handler. If any dependency linked `std`, which has one, too, it would not compile: that is
//! the check of `cargo xtask no_std`. Its test runs the exchange with the protocol crates built without `std`.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_cdr::{CdrValue, DdsType};
use weir_filter::{Expression, Filter};
use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{LocalEndpoint, ParticipantConfig, ParticipantCore};
use weir_rtps::path::Path;
use weir_rtps::qos::{Qos, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, ReaderProxyConfig, WriterConfig, WriterCore};
use weir_wire::{EntityId, Guid, GuidPrefix, SequenceNumber, Timestamp};

/// Without the standard library, a program says what follows a panic.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The sample.
#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
pub struct Reading {
    /// The key.
    #[dds(key)]
    pub sensor: u32,
    /// A value.
    pub celsius: f64,
    /// A text, which takes memory.
    pub place: String,
}

/// A participant: its discovery, and what receives user data.
struct Participant {
    address: SocketAddrV4,
    discovery: ParticipantCore,
    receiver: UnlockedReceiver,
}

/// Has two participants discover each other, and sends a sample from one to the other. Returns what was received, and
/// whether a content filter lets it pass.
pub fn exchange(reading: &Reading) -> Option<(Reading, bool)> {
    let mut now = Time(1_000_000_000);
    let (mut here, mut there) = (participant(1, now), participant(2, now));
    let guid = |of: &Participant, entity| Guid::new(of.discovery.config().guid_prefix, entity);
    let writer_guid = guid(&here, EntityId::user_writer(1, true));
    let reader_guid = guid(&there, EntityId::user_reader(1, true));
    let mut writer = WriterCore::new(WriterConfig::new(writer_guid, Reliability::Reliable));
    let mut reader = ReaderCore::new(ReaderConfig::new(reader_guid, Reliability::Reliable));
    here.discovery.add_writer(now, endpoint(writer_guid.entity, Qos::for_writer())).ok()?;
    let reliable = Qos { reliability: Reliability::Reliable, ..Qos::for_reader() };
    there.discovery.add_reader(now, endpoint(reader_guid.entity, reliable)).ok()?;
    for _ in 0..ROUNDS {
        now = now + Duration::from_millis(10);
        discover(now, &mut here, &mut there);
        discover(now, &mut there, &mut here);
        match_endpoints(now, (&mut here, &mut writer), (&mut there, &mut reader));
        if writer.matched() > 0 && writer.last_sequence_number() == SequenceNumber::ZERO {
            let mut payload = Vec::new();
            weir_cdr::to_payload(reading, &mut payload).ok()?;
            let timestamp = Some(Timestamp::from_unix_nanos(now.0));
            let change = Change { kind: ChangeKind::Alive, key: Some(key_of(reading)), payload: &payload };
            writer.write_change(now, timestamp, change).ok()?;
        }
        carry(now, (&mut here, &mut writer), (&mut there, &mut reader));
        let mut payload = None;
        reader.take_next(|sample| payload = Some(sample.payload.to_vec()));
        if let Some(payload) = payload {
            let expression = Expression::filter("celsius > %0").ok()?;
            let filter = Filter::new(&expression, &Reading::DESCRIPTION, &["20"]).ok()?;
            return Some((weir_cdr::from_payload(&payload).ok()?, filter.passes(&payload)));
        }
    }
    None
}

fn participant(number: u8, now: Time) -> Participant {
    let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), 7410);
    let mut config = ParticipantConfig::new(GuidPrefix([number; 12]), 0);
    config.metatraffic_unicast = vec![address];
    config.default_unicast = vec![SocketAddrV4::new(*address.ip(), 7411)];
    Participant {
        address,
        discovery: ParticipantCore::new(config, now),
        receiver: UnlockedReceiver::default(),
    }
}

fn endpoint(entity: EntityId, qos: Qos) -> LocalEndpoint {
    LocalEndpoint {
        entity,
        topic: "Readings".to_owned(),
        type_name: Reading::TYPE_NAME.to_owned(),
        qos,
        unicast: Vec::new(),
        multicast: None,
    }
}

fn key_of(reading: &Reading) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&reading.sensor.to_be_bytes());
    key
}

/// Carries the metatraffic of one participant to the other.
fn discover(now: Time, from: &mut Participant, to: &mut Participant) {
    if from.discovery.next_timeout().is_some_and(|at| at <= now) {
        from.discovery.handle_timeout(now);
    }
    let mut out = Outbox::new();
    from.discovery.poll_transmit(now, &mut out);
    out.for_each_datagram(|_, datagram| to.discovery.handle_datagram(now, from.address, datagram));
}

/// Matches the endpoints as discovery reports.
fn match_endpoints(
    now: Time,
    here: (&mut Participant, &mut WriterCore),
    there: (&mut Participant, &mut ReaderCore),
) {
    while let Some(event) = here.0.discovery.poll_event() {
        let DiscoveryEvent::ReaderMatched { reader, .. } = event else { continue };
        let proxy = ReaderProxyConfig {
            guid: reader.guid,
            reliable: reader.qos.reliability == Reliability::Reliable,
            wants_history: false,
            destinations: reader.destinations,
            group: None,
            vendor: reader.vendor,
            receive_buffer: reader.receive_buffer,
            segment_max: 1_472,
            path: Some(Path::default()),
        };
        here.1.match_reader(now, proxy);
    }
    while let Some(event) = there.0.discovery.poll_event() {
        let DiscoveryEvent::WriterMatched { writer, .. } = event else { continue };
        let (guid, destinations, vendor) = (writer.guid, writer.destinations, writer.vendor);
        there.1.match_writer(now, WriterProxyConfig { guid, reliable: true, destinations, vendor });
    }
}

/// Carries samples and HEARTBEATs to the reader, and its acknowledgements to the writer.
fn carry(now: Time, here: (&mut Participant, &mut WriterCore), there: (&mut Participant, &mut ReaderCore)) {
    let ((here, writer), (there, reader)) = (here, there);
    if writer.next_timeout().is_some_and(|at| at <= now) {
        writer.handle_timeout(now);
    }
    if reader.next_timeout().is_some_and(|at| at <= now) {
        reader.handle_timeout(now);
    }
    let (mut samples, mut answers) = (Outbox::new(), Outbox::new());
    writer.poll_transmit(now, &mut samples);
    samples.for_each_datagram(|_, datagram| {
        let prefix = there.discovery.config().guid_prefix;
        let cores = Cores { prefix, writers: &mut [], readers: &mut [&mut *reader] };
        there.receiver.receive(now, cores, [datagram], &mut answers);
    });
    reader.poll_transmit(now, &mut answers);
    answers.for_each_datagram(|_, datagram| {
        let prefix = here.discovery.config().guid_prefix;
        let cores = Cores { prefix, writers: &mut [&mut *writer], readers: &mut [] };
        here.receiver.receive(now, cores, [datagram], &mut Outbox::new());
    });
}

/// Rounds of 10 ms after which the exchange is given up.
const ROUNDS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_without_the_standard_library_exchange_a_sample() {
        let warm = Reading { sensor: 7, celsius: 21.5, place: "attic".to_owned() };
        assert_eq!(exchange(&warm), Some((warm, true)));
        let cold = Reading { sensor: 8, celsius: 3.0, place: "cellar".to_owned() };
        assert_eq!(exchange(&cold), Some((cold, false)));
    }
}
