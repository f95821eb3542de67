//! Samples as the application accesses them.

use alloc::sync::Arc;

use weir_wire::{Guid, SequenceNumber, Timestamp};

use super::entries::Entry;
use super::instances::Instance;
use super::states::{InstanceState, States};
use crate::block::Block;
use crate::time::Time;
use crate::writer::ChangeKind;

/// A sample in the cache.
#[derive(Debug, Clone, Copy)]
pub struct RawSample<'a> {
    /// GUID of its writer.
    pub writer: Guid,
    /// Its number among the writer's samples.
    pub sequence_number: SequenceNumber,
    /// What happened to the instance.
    pub kind: ChangeKind,
    /// When it was written, by the writer's clock.
    pub source_timestamp: Option<Timestamp>,
    /// When it got into the cache, by the reader's clock.
    pub reception_time: Time,
    /// The payload with encapsulation header: the value, or the key if `kind` is not `Alive`. Empty
    /// if only the key hash is known.
    pub payload: &'a [u8],
    /// The memory of a large payload. A clone keeps the payload unchanged.
    pub block: Option<&'a Arc<Block>>,
    /// The key hash of the instance.
    pub key_hash: Option<[u8; 16]>,
    /// The number of the instance, constant as long as the instance exists.
    pub instance: u32,
    /// State of the instance now.
    pub instance_state: InstanceState,
    /// Whether this is the first access to the instance since it was created or became alive again.
    pub is_new_instance: bool,
    /// Whether the sample was read before.
    pub was_read: bool,
    /// How many times the instance had become alive after being disposed when the sample arrived.
    pub disposed_generation: u32,
    /// How many times the instance had become alive after losing its writers when the sample
    /// arrived.
    pub no_writers_generation: u32,
    /// How many times the instance has become alive again by now, for either reason.
    pub instance_generation: u32,
}

impl<'a> RawSample<'a> {
    /// `payload`: that of the entry, with its block.
    ///
    /// Always inlined, so that the application gets it in registers.
    #[inline(always)]
    pub(super) fn of(
        entry: &Entry,
        instance: &'a Instance,
        (payload, block): (&'a [u8], Option<&'a Arc<Block>>),
        (is_keyed, is_new_instance): (bool, bool),
    ) -> Self {
        Self {
            writer: entry.writer,
            sequence_number: entry.sequence_number,
            kind: entry.kind,
            source_timestamp: entry.source_timestamp,
            reception_time: entry.reception_time,
            payload: match entry.kind {
                ChangeKind::Alive => payload,
                _ if entry.at.len > 0 => payload,
                _ => instance.key_payload.as_deref().unwrap_or_default(),
            },
            block,
            key_hash: is_keyed.then(|| instance.key.to_bytes()),
            instance: entry.instance,
            instance_state: instance.state,
            is_new_instance,
            was_read: entry.was_read,
            disposed_generation: entry.disposed_generation,
            no_writers_generation: entry.no_writers_generation,
            instance_generation: instance.disposed_generation.wrapping_add(instance.no_writers_generation),
        }
    }
}

/// Which samples to access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleSelection {
    /// Only samples in these states.
    pub states: States,
    /// Only samples of this instance.
    pub instance: Option<u32>,
}
