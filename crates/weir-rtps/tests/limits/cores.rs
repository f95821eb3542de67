//! Endpoints with a limits table: what they allocate is what they say, and all of it when they are created.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use weir_rtps::limits::EndpointLimits;
use weir_rtps::qos::{Durability, History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, ReaderSize, WriterProxyConfig};
use weir_rtps::time::Time;
use weir_rtps::writer::{WriterConfig, WriterCore, WriterSize};
use weir_wire::{Data, DataFrag, EntityId, Guid, GuidPrefix, Payload, SequenceNumber, VendorId};

use crate::line::{Line, Setup};
use crate::{allocated, allocations};

const LIMITS: EndpointLimits = EndpointLimits {
    matches: 3,
    samples: 50,
    instances: 10,
    sample_bytes: 2_000,
    early_samples: 50,
    reassemblies: 4,
};

/// Limits of several forms: small, large samples, many samples, many instances.
fn tables() -> [EndpointLimits; 5] {
    [
        LIMITS,
        EndpointLimits::SMALL,
        EndpointLimits { sample_bytes: 300_000, samples: 3, instances: 1, ..LIMITS },
        EndpointLimits { samples: 5_000, instances: 1_000, sample_bytes: 64, early_samples: 700, ..LIMITS },
        EndpointLimits {
            matches: 1,
            samples: 1,
            instances: 1,
            sample_bytes: 8,
            early_samples: 1,
            reassemblies: 1,
        },
    ]
}

pub(crate) fn a_writer_allocates_what_its_size_says() {
    for limits in tables() {
        for is_keyed in [false, true] {
            for history in [History::KeepAll, History::KeepLast(1), History::KeepLast(3)] {
                let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, is_keyed));
                let config = WriterConfig {
                    history,
                    limits: Some(limits),
                    ..WriterConfig::new(guid, Reliability::Reliable)
                };
                let size = WriterSize::of(&config).unwrap();
                let before = allocated();
                let writer = WriterCore::new(config);
                let taken = allocated() - before;
                assert_eq!(
                    (taken, writer.allocated()),
                    (size.bytes(), size.bytes()),
                    "{limits:?} {history:?}"
                );
            }
        }
    }
}

pub(crate) fn a_reader_allocates_what_its_size_says() {
    for limits in tables() {
        for key_of in [None, Some((|_, _| None) as weir_rtps::reader::KeyOf)] {
            let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_reader(1, key_of.is_some()));
            let config = ReaderConfig {
                key_of,
                limits: Some(limits),
                ..ReaderConfig::new(guid, Reliability::Reliable)
            };
            let size = ReaderSize::of(&config).unwrap();
            let before = allocated();
            let reader = ReaderCore::new(config);
            let taken = allocated() - before;
            assert_eq!((taken, reader.allocated()), (size.bytes(), size.bytes()), "{limits:?}");
            assert!(size.bytes() <= ReaderSize::most(&limits).bytes());
        }
    }
}

/// Sets the limits tables of the writer and the readers.
fn limit(setup: &mut Setup, limits: EndpointLimits) {
    (setup.writer.limits, setup.reader.limits) = (Some(limits), Some(limits));
}

/// Memory that the cores account for, in bytes.
fn accounted(line: &Line) -> usize {
    line.writer.allocated() + line.readers.iter().map(ReaderCore::allocated).sum::<usize>()
}

/// What was allocated although it was reserved.
fn beyond(line: &Line) -> u64 {
    let readers = line.readers.iter().map(|reader| reader.counters().chunks_beyond_limits);
    line.writer.counters().blocks_beyond_limits + readers.sum::<u64>()
}

/// Returns how often each exchange is repeated: `WEIR_LIMITS_ROUNDS`, by default once.
fn rounds() -> u64 {
    let rounds = std::env::var("WEIR_LIMITS_ROUNDS");
    rounds.map_or(1, |rounds| rounds.parse().expect("WEIR_LIMITS_ROUNDS is a number"))
}

/// Sends samples with the allocator locked from the first one on, but for the harness's own memory.
fn check(samples: u64, setup: impl FnOnce(&mut Setup)) {
    let mut line = Line::new(|it| {
        limit(it, LIMITS);
        setup(it);
    });
    let start = accounted(&line);
    // The queue of output, which the driver owns.
    line.exchange(200);
    let before = allocations();
    (0..rounds()).for_each(|_| line.exchange(samples));
    assert_eq!(allocations() - before, 0, "allocations for {samples} samples");
    assert_eq!((accounted(&line), beyond(&line)), (start, 0));
}

pub(crate) fn samples_one_by_one() {
    check(5_000, |_| {});
}

pub(crate) fn samples_of_instances_of_which_the_last_ones_are_kept() {
    for depth in [1, 3] {
        for durability in [Durability::Volatile, Durability::TransientLocal] {
            check(5_000, |setup| {
                setup.instances = 10;
                setup.writer.history = History::KeepLast(depth);
                setup.writer.durability = durability;
                setup.reader.history = History::KeepLast(depth);
            });
        }
    }
}

pub(crate) fn samples_of_which_every_tenth_datagram_is_lost() {
    check(5_000, |setup| setup.loses_every = Some(10));
}

pub(crate) fn samples_for_three_readers_of_which_every_tenth_datagram_is_lost() {
    check(5_000, |setup| {
        setup.readers = 3;
        setup.loses_every = Some(10);
    });
}

pub(crate) fn samples_in_fragments_of_which_every_tenth_is_lost() {
    check(500, |setup| {
        limit(setup, EndpointLimits { sample_bytes: 200_000, samples: 5, ..LIMITS });
        setup.len = 200_000;
        setup.loses_every = Some(10);
    });
}

/// A reader that matches more writers than it has room for, each with samples ahead of a missing one and with a sample
/// in fragments, and loses them again.
pub(crate) fn writers_that_come_and_go() {
    let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_reader(1, false));
    let config = ReaderConfig {
        history: History::KeepAll,
        limits: Some(LIMITS),
        ..ReaderConfig::new(guid, Reliability::Reliable)
    };
    let mut reader = ReaderCore::new(config);
    let (destinations, mut now) = (Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]), Time(1));
    let (before, accounted) = (allocations(), reader.allocated());
    for round in 0..200 * rounds() {
        let writer = |number: u8| {
            let mut prefix = [number; 12];
            prefix[..8].copy_from_slice(&round.to_le_bytes());
            Guid::new(GuidPrefix(prefix), EntityId::user_writer(1, false))
        };
        for guid in (0..5).map(writer) {
            let destinations = Arc::clone(&destinations);
            let proxy = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
            reader.match_writer(now, proxy);
            for number in [1, 2, 4, 9, 30, 2_000] {
                let data = Data {
                    reader: EntityId::UNKNOWN,
                    writer: guid.entity,
                    sequence_number: SequenceNumber(number),
                    inline_qos: None,
                    payload: Payload::Data(&[7; 500]),
                };
                reader.handle_data(now, &guid, &data, None, None);
            }
            let frag = DataFrag {
                reader: EntityId::UNKNOWN,
                writer: guid.entity,
                sequence_number: SequenceNumber(5),
                fragment_start: 2,
                fragments: 1,
                fragment_size: 512,
                sample_size: 2_000,
                is_key: false,
                inline_qos: None,
                payload: &[7; 512],
            };
            reader.handle_data_frag(now, guid, &frag, None);
            now = now + Duration::from_millis(1);
        }
        assert_eq!(reader.matched().count(), LIMITS.matches);
        while reader.take_next(|_| {}) {}
        (0..5).map(writer).for_each(|guid| reader.unmatch_writer(now, guid));
    }
    assert_eq!((allocations() - before, reader.allocated()), (0, accounted));
    assert_eq!(reader.counters().chunks_beyond_limits, 0);
    assert!(reader.counters().samples_received >= 200 * 6, "{:?}", reader.counters());
}
