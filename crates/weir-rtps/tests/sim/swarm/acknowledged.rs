//! A writer knows which samples its readers lack.

use std::collections::BTreeMap;

use weir_rtps::writer::WriterCore;
use weir_wire::{Guid, Message, SequenceNumber, Submessage};

use super::participants::{Swarm, WRITER};
use crate::live::node::{Node, USER_PORT};

/// What a datagram acknowledges to a writer.
pub(super) struct Acknowledged {
    /// The first sample that each reader has not got.
    bases: BTreeMap<Guid, SequenceNumber>,
    /// How many ACKNACKs there are, and how many the writer had applied before.
    count: u64,
    before: u64,
}

impl Acknowledged {
    /// Reads a datagram, before a participant does. `None`: it acknowledges nothing to the writer.
    pub(super) fn of(node: &Node, port: u16, datagram: &[u8]) -> Option<Self> {
        let before = applied(node.writers.get(&WRITER)?);
        let message = Message::parse(datagram).ok().filter(|_| port == USER_PORT)?;
        let mut acknowledged = Self { bases: BTreeMap::new(), count: 0, before };
        for submessage in message.submessages() {
            let Ok(Submessage::AckNack(acknack)) = submessage else { continue };
            acknowledged.count += 1;
            // Without numbers, it may only request a HEARTBEAT.
            if acknack.writer == WRITER && !acknack.state.is_empty() {
                let reader = Guid::new(message.header.prefix, acknack.reader);
                acknowledged.bases.insert(reader, acknack.state.base());
            }
        }
        (acknowledged.count > 0).then_some(acknowledged)
    }

    /// If the writer has applied it all, nothing that a reader requested counts as acknowledged: the reader may have
    /// lost the writer and found it again.
    pub(super) fn check(&self, node: &Node, swarm: &Swarm) {
        let writer = &node.writers[&WRITER];
        if applied(writer) < self.before + self.count {
            return;
        }
        for (reader, base) in &self.bases {
            let is_acknowledged = writer.is_acknowledged(*base);
            assert!(!is_acknowledged, "{reader} lacks {base}, which counts as acknowledged: {swarm}");
        }
    }
}

fn applied(writer: &WriterCore) -> u64 {
    writer.counters().acknacks_received
}
