//! Readers in a process whose address space (RLIMIT_AS) is too small for an announced sample. The
//! limit applies to the whole process, so these tests have a separate binary and run one at a time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod limit;

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings,
};
use weir_rtps::outbox::Outbox;
use weir_rtps::qos::{History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::time::Time;
use weir_wire::{
    DataFrag, EntityId, Guid, GuidPrefix, Header, Heartbeat, Message, ProtocolVersion, SequenceNumber,
    Submessage, VendorId, push,
};

use limit::{Limit, MIB, alone};

/// Time after which a test fails.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
struct Numbered {
    number: u64,
}

/// The first fragment of a sample from `writer`.
fn first_fragment(writer: EntityId, sample_size: u32, payload: &[u8]) -> DataFrag<'_> {
    DataFrag {
        reader: EntityId::UNKNOWN,
        writer,
        sequence_number: SequenceNumber(1),
        fragment_start: 1,
        fragments: 1,
        fragment_size: payload.len() as u16,
        sample_size,
        is_key: false,
        inline_qos: None,
        payload,
    }
}

#[test]
fn a_fragment_that_announces_more_than_the_process_may_have_does_no_harm() {
    let _alone = alone();
    let topic_name = format!("topic of process {}", std::process::id());
    let participant = || {
        let domain_id = 1 + std::process::id() % 100;
        DomainParticipant::new(domain_id, ParticipantSettings::default().interface("lo")).unwrap()
    };
    let (ours, theirs) = (participant(), participant());
    let writer: DataWriter<Numbered> = ours
        .create_publisher()
        .unwrap()
        .create_datawriter(&ours.create_topic(&topic_name).unwrap(), DataWriterQos::default().keep_all())
        .unwrap();
    let reader: DataReader<Numbered> = theirs
        .create_subscriber()
        .unwrap()
        .create_datareader(
            &theirs.create_topic(&topic_name).unwrap(),
            DataReaderQos::default().reliable().keep_all(),
        )
        .unwrap();
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();

    let _limit = Limit::more_than_now(512 * MIB);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let Guid { prefix, entity } = writer.guid();
    for fragment_start in [1, 1 << 21] {
        let mut message = Vec::new();
        push(&mut message, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix });
        let first = first_fragment(entity, 1 << 30, &[7; 512]);
        push(&mut message, &DataFrag { fragment_start, ..first });
        socket.send_to(&message, theirs.user_address()).unwrap();
    }
    for number in 0..100 {
        writer.write(&Numbered { number }).unwrap();
    }
    for number in 0..100 {
        assert!(reader.wait_for_data(DEADLINE).is_ok(), "{:?}", reader.protocol_counters());
        assert_eq!(*reader.take(1)[0].data().unwrap(), Numbered { number });
    }
    let counters = reader.protocol_counters();
    // Both have arrived: there is memory for the first, and the last is too far ahead.
    assert_eq!((counters.fragments_refused, counters.allocations_failed), (1, 0), "{counters:?}");
}

/// Returns the fragments that a reader requests now.
fn asked_for(reader: &mut ReaderCore, now: Time) -> Vec<u32> {
    let mut out = Outbox::new();
    reader.poll_transmit(now, &mut out);
    let mut numbers = Vec::new();
    out.for_each_datagram(|_, datagram| {
        for submessage in Message::parse(datagram).unwrap().submessages() {
            if let Submessage::NackFrag(nack) = submessage.unwrap() {
                numbers.extend(nack.state.iter().map(|number| number.0));
            }
        }
    });
    numbers
}

#[test]
fn fragments_for_which_there_is_no_memory_are_counted_and_asked_for_until_there_is_some() {
    let _alone = alone();
    const FRAGMENT_BYTES: usize = 60_000;
    let writer = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
    let guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, false));
    let config = ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(guid, Reliability::Reliable) };
    let mut reader = ReaderCore::new(config);
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let proxy = WriterProxyConfig { guid: writer, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(Time(0), proxy);
    // Large enough for the allocator to map the block separately, which the limit forbids.
    let total = 80 * MIB / FRAGMENT_BYTES;
    let payloads: Vec<_> = (0..=u8::MAX).map(|n| [n; FRAGMENT_BYTES]).collect();
    let fragment = |reader: &mut ReaderCore, now, fragment_start: u32| {
        let payload = &payloads[fragment_start as usize % payloads.len()];
        let first = first_fragment(writer.entity, (total * FRAGMENT_BYTES) as u32, payload);
        reader.handle_data_frag(now, writer, &DataFrag { fragment_start, ..first }, None);
    };

    // No assertion while the limit holds: a panic needs more memory than there is.
    let limit = Limit::more_than_now(8 * MIB);
    (1..=total as u32).for_each(|start| fragment(&mut reader, Time(1_000), start));
    drop(limit);
    let failed = reader.counters().allocations_failed;
    assert!(failed > 0, "{:?}", reader.counters());
    assert_eq!(reader.available(), 0);

    let mut now = Time(1_000);
    let mut count = 0;
    while reader.available() == 0 {
        count += 1;
        now = now + Duration::from_secs(1);
        let (first, last) = (SequenceNumber(1), SequenceNumber(1));
        let (to, from) = (EntityId::UNKNOWN, writer.entity);
        let heartbeat =
            Heartbeat { reader: to, writer: from, first, last, count, is_final: false, is_liveliness: false };
        reader.handle_heartbeat(now, writer, &heartbeat);
        let wanted = asked_for(&mut reader, now);
        assert!(!wanted.is_empty(), "{:?}", reader.counters());
        wanted.into_iter().for_each(|start| fragment(&mut reader, now, start));
    }
    let mut is_whole = false;
    reader.take_next(|raw| {
        let mut fragments = (1..).zip(raw.payload.chunks(FRAGMENT_BYTES));
        is_whole = fragments.all(|(number, bytes)| bytes == payloads[number % payloads.len()])
            && raw.payload.len() == total * FRAGMENT_BYTES;
    });
    assert!(is_whole);
    assert_eq!(reader.counters().allocations_failed, failed);
}
