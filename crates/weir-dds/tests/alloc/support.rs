//! A counting allocator, and pairs of endpoints.

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Time after which a test fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

static ALONE: Mutex<()> = Mutex::new(());

/// Excludes the other tests of this process.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocations and reallocations of all threads so far.
pub(crate) fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// Bytes that all threads have allocated so far.
pub(crate) fn allocated_bytes() -> usize {
    ALLOCATOR.stats().bytes_allocated
}

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
pub(crate) struct Unkeyed {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
pub(crate) struct Keyed {
    #[dds(key)]
    pub(crate) id: u32,
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
pub(crate) struct Named {
    #[dds(key)]
    pub(crate) name: String,
    pub(crate) number: u64,
}

/// A participant on the loopback interface, in a domain that depends on the process.
pub(crate) fn participant() -> DomainParticipant {
    DomainParticipant::new(domain_id(), ParticipantSettings::default().interface("lo")).unwrap()
}

pub(crate) fn domain_id() -> u32 {
    1 + std::process::id().wrapping_mul(37) % 100
}

/// A matched writer and reader of one topic, each in the given participant.
pub(crate) fn endpoints<T: DdsType>(
    name: &str,
    writer: (&DomainParticipant, DataWriterQos),
    reader: (&DomainParticipant, DataReaderQos),
) -> (DataWriter<T>, DataReader<T>) {
    let name = format!("{name} of process {}", std::process::id());
    let topic = writer.0.create_topic(&name).unwrap();
    let writer = writer.0.create_publisher().unwrap().create_datawriter(&topic, writer.1).unwrap();
    let topic = reader.0.create_topic(&name).unwrap();
    let reader = reader.0.create_subscriber().unwrap().create_datareader(&topic, reader.1).unwrap();
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();
    (writer, reader)
}
