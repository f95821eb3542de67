//! What a station with a limits table reserves besides its endpoints: for messages that leave together, and for the
//! look-up of endpoints.

use crate::limits::EndpointLimits;
use crate::outbox::Outbox;
use crate::participant::{MessageRoom, ParticipantConfig};
use crate::receiver::unlocked::UnlockedReceiver;

/// How much is reserved; nothing without a limits table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Room {
    writers: usize,
    readers: usize,
    /// Matches of all readers.
    matches: usize,
    /// Messages that leave together, and bytes of them that are in no history block.
    messages: usize,
    bytes: usize,
}

impl Room {
    /// Returns the room for a participant with so many writers and readers.
    pub(super) fn of(
        config: &ParticipantConfig,
        datagram_max: usize,
        (writers, readers): (usize, usize),
    ) -> Self {
        let Some(table) = config.table else { return Self::default() };
        let (endpoint, discovery) = (&table.endpoint, MessageRoom::of(Some(&table)));
        let fragments = fragments(endpoint, datagram_max);
        let of_writer = messages_of_writer(endpoint, fragments);
        // What one datagram makes all of them answer. It has few submessages, but each may be for another one.
        let matches = endpoint.matches.saturating_mul(readers);
        let of_all = (endpoint.matches.saturating_mul(writers)).saturating_add(matches);
        let messages = of_writer.saturating_add(of_all).max(discovery.messages);
        let of_message = if fragments > 1 { FRAGMENT_HEAD_BYTES } else { HEARTBEAT_BYTES };
        let gaps = endpoint.samples.min(HOLES_MAX).saturating_mul(GAP_BYTES);
        let bytes = (of_writer.saturating_mul(of_message))
            .saturating_add(of_all.saturating_mul(ANSWER_BYTES.saturating_add(gaps)))
            .max(discovery.bytes);
        Self { writers, readers, matches, messages, bytes }
    }

    pub(super) fn receiver(&self) -> UnlockedReceiver {
        UnlockedReceiver::with_room(self.writers, self.readers, self.matches, self.bytes)
    }

    pub(super) fn outbox(&self) -> Outbox {
        Outbox::with_room(self.messages, self.bytes)
    }
}

/// Returns in how many fragments the longest sample is sent.
fn fragments(endpoint: &EndpointLimits, datagram_max: usize) -> usize {
    let carried = datagram_max.saturating_sub(FRAGMENT_HEAD_BYTES).max(1);
    endpoint.sample_bytes.div_ceil(carried).max(1)
}

/// Returns how many messages a writer may send at a time: all samples that it keeps, and to each reader again, with an
/// answer.
fn messages_of_writer(endpoint: &EndpointLimits, fragments: usize) -> usize {
    let samples = endpoint.samples.saturating_mul(fragments);
    samples.saturating_add(ANSWERS).saturating_mul(endpoint.matches.saturating_add(1))
}

/// Answers to one endpoint: of several kinds.
const ANSWERS: usize = 4;
/// The headers of a message with one fragment.
const FRAGMENT_HEAD_BYTES: usize = 96;
/// A HEARTBEAT behind a sample, with a header of its own.
const HEARTBEAT_BYTES: usize = 64;
/// A GAP with its list.
const GAP_BYTES: usize = 64;
/// An answer without GAPs.
const ANSWER_BYTES: usize = 256;
/// GAPs in one message.
const HOLES_MAX: usize = 256;
