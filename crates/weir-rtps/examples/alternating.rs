//! How long discovery takes for a datagram of 65 kB: 500 announcements of one participant, with alternating addresses.
//!
//! `cargo run --release -p weir-rtps --example alternating`

#![expect(clippy::print_stdout, reason = "printing is the purpose of this program")]

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::time::Instant;

use weir_rtps::participant::{LocalEndpoint, ParticipantConfig, ParticipantCore};
use weir_rtps::qos::Qos;
use weir_rtps::spdp;
use weir_rtps::time::Time;
use weir_wire::{
    AckNack, DataHeader, EntityId, Guid, GuidPrefix, Header, InfoDestination, Locator, ParameterId,
    ParameterListWriter, ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId, push,
};

const OWN: GuidPrefix = GuidPrefix([1; 12]);
const THEIRS: GuidPrefix = GuidPrefix([2; 12]);
const READERS: u32 = 512;

fn at(last: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), port)
}

fn data(
    bytes: &mut Vec<u8>,
    writer: EntityId,
    number: i64,
    write: impl FnOnce(&mut ParameterListWriter<'_>),
) {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    write(&mut list);
    list.finish();
    let (sequence_number, payload_len) = (SequenceNumber(number), payload.len() as u32);
    let reader = EntityId::UNKNOWN;
    push(
        bytes,
        &DataHeader { reader, writer, sequence_number, inline_qos_len: 0, payload_len, is_key: false },
    );
    bytes.extend_from_slice(&payload);
}

fn message() -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: THEIRS });
    push(&mut bytes, &InfoDestination { prefix: OWN });
    bytes
}

fn announcement(bytes: &mut Vec<u8>, number: i64, user: u8) {
    data(bytes, EntityId::SPDP_WRITER, number, |list| {
        list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(THEIRS, EntityId::PARTICIPANT));
        list.u32(ParameterId::BUILTIN_ENDPOINT_SET, spdp::builtin_endpoints::WEIR);
        list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, Locator::udp_v4(at(2, 7410)));
        list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, Locator::udp_v4(at(user, 7411)));
    });
}

/// A participant with this many writers, and one that has answered, with 512 readers that match them.
fn matched(writers: u32) -> ParticipantCore {
    let mut config = ParticipantConfig::new(OWN, 0);
    config.metatraffic_unicast = vec![at(1, 7410)];
    config.default_unicast = vec![at(1, 7411)];
    config.limits.endpoints_per_participant = READERS as usize;
    let mut core = ParticipantCore::new(config, Time::ZERO);
    for key in 1..=writers {
        let endpoint = LocalEndpoint {
            entity: EntityId::user_writer(key, false),
            topic: "Square".into(),
            type_name: "Type".into(),
            qos: Qos::for_writer(),
            unicast: Vec::new(),
            multicast: None,
        };
        core.add_writer(Time::ZERO, endpoint).expect("a writer");
    }
    let mut bytes = message();
    announcement(&mut bytes, 1, 2);
    let (reader, writer) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
    let state = SequenceNumberSet::new(SequenceNumber::FIRST);
    push(&mut bytes, &AckNack { reader, writer, state, count: 1, is_final: true });
    core.handle_datagram(Time::ZERO, at(2, 7410), &bytes);
    for key in 1..=READERS {
        let mut bytes = message();
        data(&mut bytes, EntityId::SEDP_SUBSCRIPTIONS_WRITER, i64::from(key), |list| {
            list.guid(ParameterId::ENDPOINT_GUID, Guid::new(THEIRS, EntityId::user_reader(key, false)));
            list.string(ParameterId::TOPIC_NAME, "Square");
            list.string(ParameterId::TYPE_NAME, "Type");
        });
        core.handle_datagram(Time::ZERO, at(2, 7410), &bytes);
    }
    assert_eq!(events(&mut core), 1 + (writers * READERS) as usize, "all match");
    core
}

fn events(core: &mut ParticipantCore) -> usize {
    core::iter::from_fn(|| core.poll_event()).count()
}

fn main() {
    for (writers, datagrams) in [(1, 1), (8, 1), (1, 10), (8, 10)] {
        let mut runs: Vec<_> = (0..41).map(|_| run(writers, datagrams)).collect();
        runs.sort_unstable();
        let (handling, draining, events, memory) = runs[runs.len() / 2];
        println!(
            "{writers} writers, {datagrams} datagrams: {handling:?}, {draining:?} for {events} events; {memory} B"
        );
    }
}

/// Returns the time for the datagrams and for their events, the number of these, and the growth of memory.
fn run(writers: u32, datagrams: u32) -> (Duration, Duration, usize, usize) {
    let mut core = matched(writers);
    let mut bytes = message();
    (0..500).for_each(|number| announcement(&mut bytes, 2 + number, 100 + (number % 2) as u8));
    let memory = core.memory();
    let begin = Instant::now();
    (0..datagrams).for_each(|_| core.handle_datagram(Time(1_000_000_000), at(2, 7410), &bytes));
    let handling = begin.elapsed();
    let memory = core.memory().saturating_sub(memory);
    let begin = Instant::now();
    let events = events(&mut core);
    (handling, begin.elapsed(), events, memory)
}
