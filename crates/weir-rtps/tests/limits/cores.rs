//! Endpoints with a limits table: what they allocate is what they say, and all of it when they are created.

use weir_rtps::limits::EndpointLimits;
use weir_rtps::qos::{Durability, History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, ReaderSize};
use weir_rtps::writer::{WriterConfig, WriterCore, WriterSize};
use weir_wire::{EntityId, Guid, GuidPrefix};

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

/// Sends samples with the allocator locked from the first one on, but for the harness's own memory.
fn check(samples: u64, setup: impl FnOnce(&mut Setup)) {
    let mut line = Line::new(|it| {
        it.limits(LIMITS);
        setup(it);
    });
    let accounted = line.accounted();
    // The queue of output, which the driver owns.
    line.exchange(200);
    let before = allocations();
    line.exchange(samples);
    assert_eq!(allocations() - before, 0, "allocations for {samples} samples");
    assert_eq!((line.accounted(), line.beyond()), (accounted, 0));
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
        setup.limits(EndpointLimits { sample_bytes: 200_000, samples: 5, ..LIMITS });
        setup.len = 200_000;
        setup.loses_every = Some(10);
    });
}
