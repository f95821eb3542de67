//! Limits on samples that arrive in fragments.

use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};

use weir_wire::{DataFrag, EntityId, Guid, GuidPrefix, Message, Submessage, VendorId};

use super::*;
use crate::limits::EndpointLimits;
use crate::qos::{History, Reliability};
use crate::reader::{ReaderConfig, WriterProxyConfig};
use crate::time::Time;

const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));

/// A reader that got samples of these sizes, each in one fragment, by number.
fn reader_of(reliability: Reliability, samples: &[(i64, u32)]) -> ReaderCore {
    let guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, false));
    let mut reader = ReaderCore::new(ReaderConfig {
        history: History::KeepAll,
        reassembly: ReassemblyLimits { sample_max_bytes: 1000, max_bytes: 8192 },
        ..ReaderConfig::new(guid, reliability)
    });
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let writer = WriterProxyConfig { guid: WRITER, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(Time(0), writer);
    for &(number, sample_size) in samples {
        let payload = &[7; 1000][..sample_size.min(1000) as usize];
        let frag = first_fragment(number, sample_size, payload);
        reader.handle_data_frag(Time(1), WRITER, &frag, None);
    }
    reader
}

#[test]
fn a_reliable_sample_that_is_too_long_is_lost_and_holds_up_no_other() {
    for samples in [[(1, 1001), (1, 1001), (2, 1000)], [(2, u32::MAX), (3, 10), (1, 1000)]] {
        let reader = reader_of(Reliability::Reliable, &samples);
        let counters = reader.counters();
        let too_long = (counters.samples_oversized, counters.samples_lost, counters.fragments_refused);
        assert_eq!(too_long, (1, 1, 0));
        assert_eq!(reader.available() as u64, counters.samples_received);
        assert!(reader.available() >= 1);
    }
}

#[test]
fn fragments_of_a_best_effort_sample_that_is_too_long_are_refused() {
    let reader = reader_of(Reliability::BestEffort, &[(1, 1001), (1, 1001), (2, 1000)]);
    let counters = reader.counters();
    assert_eq!((counters.fragments_refused, counters.samples_oversized, reader.available()), (2, 0, 1));
}

/// The number of samples that the reader requests fragments of now.
fn fragments_requested(reader: &mut ReaderCore, now: Time) -> usize {
    let mut out = Outbox::new();
    reader.poll_transmit(now, &mut out);
    let mut count = 0;
    out.for_each_datagram(|_, datagram| {
        let submessages = Message::parse(datagram).unwrap().submessages();
        count += submessages.filter(|it| matches!(it, Ok(Submessage::NackFrag(_)))).count();
    });
    count
}

#[test]
fn samples_that_heartbeats_do_not_confirm_are_given_up() {
    const SAMPLES: usize = 2_000;
    let guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, false));
    let config = ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(guid, Reliability::Reliable) };
    let mut reader = with_writer(config, VendorId::WEIR);
    heartbeat(&mut reader, 1, 1, 0);
    for number in 1..=SAMPLES as i64 {
        let frag = DataFrag {
            reader: EntityId::UNKNOWN,
            writer: WRITER.entity,
            sequence_number: SequenceNumber(number),
            fragment_start: 2,
            fragments: 1,
            fragment_size: 1,
            sample_size: 2,
            is_key: false,
            inline_qos: None,
            payload: &[7],
        };
        reader.handle_data_frag(Time(1), WRITER, &frag, None);
    }
    let mut requested = fragments_requested(&mut reader, Time(2));
    for ms in (100..=3_000_u32).step_by(100) {
        let now = Time(u64::from(ms) * 1_000_000);
        reader.handle_timeout(now);
        reader.handle_heartbeat(now, WRITER, &heartbeat_of(EntityId::UNKNOWN, ms, 1, 0));
        let count = fragments_requested(&mut reader, now);
        assert!(ms <= 2_000 || count == 0, "{count} after {ms} ms");
        requested += count;
    }
    assert!(reader.fragments.assemblies.is_empty());
    // All of them three times, and the last one until then.
    assert!(requested <= 3 * SAMPLES + 30, "{requested}");
}

/// The sets of the ACKNACKs to one writer that the reader sends now, in words.
fn requested_of(reader: &mut ReaderCore, writer: EntityId, now: Time) -> Vec<String> {
    let mut out = Outbox::new();
    reader.poll_transmit(now, &mut out);
    let mut words = Vec::new();
    out.for_each_datagram(|_, datagram| {
        for submessage in Message::parse(datagram).unwrap().submessages() {
            if let Ok(Submessage::AckNack(acknack)) = submessage
                && acknack.writer == writer
            {
                words.push(acknack.state.to_string());
            }
        }
    });
    words
}

/// The application, which has not taken what was delivered, could not make room.
#[test]
fn a_whole_sample_without_room_among_early_ones_is_requested_again_although_nothing_is_taken() {
    let limits = EndpointLimits { early_samples: 4, ..EndpointLimits::SMALL };
    let mut reader = with_writer(
        ReaderConfig {
            history: History::KeepAll,
            limits: Some(limits),
            ..ReaderConfig::new(READER, Reliability::Reliable)
        },
        VendorId::WEIR,
    );
    let other = Guid::new(WRITER.prefix, EntityId::user_writer(9, false));
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let config = WriterProxyConfig { guid: other, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(Time(0), config);
    // One writer fills the room for early samples.
    heartbeat(&mut reader, 1, 1, 5);
    [1, 3, 4, 5].into_iter().for_each(|sn| data(&mut reader, sn));
    let frag = |number| DataFrag { writer: other.entity, ..first_fragment(number, 100, &[7; 100]) };
    let announced = Heartbeat { writer: other.entity, ..heartbeat_of(EntityId::UNKNOWN, 1, 1, 3) };
    reader.handle_heartbeat(Time(1_000), other, &announced);
    reader.handle_data_frag(Time(1_000), other, &frag(2), None);
    reader.handle_data_frag(Time(1_000), other, &frag(3), None);
    assert_eq!((reader.available(), reader.counters().samples_too_early), (1, 1));
    assert_eq!(requested_of(&mut reader, other.entity, Time(2_000)), ["1/3:1,3"]);
    assert_eq!(reader.counters().samples_refused, 0);
    // What is early as a datagram counts as well.
    let early = Data {
        reader: EntityId::UNKNOWN,
        writer: other.entity,
        sequence_number: SequenceNumber(3),
        inline_qos: None,
        payload: Payload::Data(&[0, 1, 0, 0]),
    };
    reader.handle_data(Time(2_000), &other, &early, None, None);
    assert_eq!(reader.counters().samples_too_early, 2);
}
