//! Inline QoS for readers that expect it (RTPS 2.5, 8.7.2, `expectsInlineQos`): the policies of the writer with each
//! sample.
//!
//! Few readers do. The history keeps datagrams without policies, and they are added on the way out, to a copy. While
//! such a reader is matched, all readers are sent copies with policies, which every reader skips or knows.

use weir_wire::submessage::id;
use weir_wire::{EntityId, ParameterId, ParameterListWriter};

use super::state::WriterCore;
use crate::config;
use crate::outbox::{Item, Outbox};
use crate::qos::{DurabilityService, Qos};
use crate::qos_parameters;
use crate::sedp::EndpointKind;

/// Returns the policies of a writer as inline QoS: those that a reader may need with a sample (RTPS 2.5, 8.7.2, table
/// 8.94).
#[must_use]
pub fn inline_qos_of(topic: &str, qos: &Qos) -> Box<[u8]> {
    let mut bytes = Vec::new();
    let mut list = ParameterListWriter::new(&mut bytes);
    list.string(ParameterId::TOPIC_NAME, topic);
    // These are no policies of samples.
    let history = Qos::for_writer().history;
    let of_samples = Qos {
        history,
        durability_service: DurabilityService::DEFAULT,
        representation: Vec::new(),
        user_data: Vec::new(),
        topic_data: Vec::new(),
        group_data: Vec::new(),
        ..qos.clone()
    };
    qos_parameters::encode(EndpointKind::Writer, &of_samples, &mut list);
    list.finish();
    bytes.into_boxed_slice()
}

impl WriterCore {
    /// Adds inline QoS ([`inline_qos_of`]) to all samples sent from now on, or ends that.
    pub fn set_inline_qos(&mut self, list: Option<Box<[u8]>>) {
        self.inline_qos = list;
        self.is_indirect = self.config.is_asynchronous || self.timed.is_some() || self.inline_qos.is_some();
    }

    /// Appends messages with inline QoS added to their samples.
    pub(super) fn add_inline_qos(&self, plain: &Outbox, out: &mut Outbox) {
        let list = self.inline_qos.as_deref().unwrap_or_default();
        plain.for_each_with(|item, datagram| {
            let start = out.scratch.len();
            add_list(self.config.guid.entity, list, datagram, &mut out.scratch);
            if out.scratch.len() - start > config::DATAGRAM_MAX_BYTES {
                // As long as a datagram can be without.
                out.scratch.truncate(start);
                out.scratch.extend_from_slice(datagram);
            }
            let scratch = start..out.scratch.len();
            let samples = item.samples / u16::from(item.datagrams.max(1));
            out.items.push(Item { scratch, samples, ..Item::of(item.to.clone(), None) });
        });
    }
}

/// Appends a message, with a list added to each DATA and each first DATA_FRAG of a writer.
fn add_list(writer: EntityId, list: &[u8], message: &[u8], out: &mut Vec<u8>) {
    let (header, mut rest) = message.split_at(HEADER_LEN.min(message.len()));
    out.extend_from_slice(header);
    while let Some((&[kind, flags, low, high], body)) = rest.split_first_chunk::<SUBMESSAGE_HEADER_LEN>() {
        let len = usize::from(u16::from_le_bytes([low, high])).min(body.len());
        let (body, behind) = body.split_at(len);
        rest = behind;
        let at = match kind {
            id::DATA => DATA_LIST_AT,
            id::DATA_FRAG if body.get(20..24) == Some(&[1, 0, 0, 0]) => DATA_FRAG_LIST_AT,
            _ => usize::MAX,
        };
        let is_ours = body.get(8..12) == Some(&writer.0[..]);
        let (before, after) = body.split_at_checked(at).filter(|_| is_ours).unwrap_or((body, &[]));
        // A list that is there follows, and ends both.
        let parameters = match (at <= body.len() && is_ours, flags & HAS_LIST != 0) {
            (false, _) => &[],
            (true, false) => list,
            (true, true) => &list[..list.len().saturating_sub(SENTINEL_LEN)],
        };
        let flags = if parameters.is_empty() { flags } else { flags | HAS_LIST };
        match u16::try_from(len + parameters.len()) {
            Ok(longer) => {
                out.extend_from_slice(&[kind, flags]);
                out.extend_from_slice(&longer.to_le_bytes());
                [before, parameters, after].iter().for_each(|part| out.extend_from_slice(part));
            }
            Err(_) => {
                out.extend_from_slice(&[kind, flags & !HAS_LIST, low, high]);
                out.extend_from_slice(body);
            }
        }
    }
    out.extend_from_slice(rest);
}

const HEADER_LEN: usize = 20;
const SUBMESSAGE_HEADER_LEN: usize = 4;
/// Where the list is in the body of a DATA, and of a DATA_FRAG (RTPS 2.5, 9.4.5.4, 9.4.5.5).
const DATA_LIST_AT: usize = 20;
const DATA_FRAG_LIST_AT: usize = 32;
/// The flag that there is a list.
const HAS_LIST: u8 = 2;
const SENTINEL_LEN: usize = 4;
