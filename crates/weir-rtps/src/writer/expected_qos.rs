//! Inline QoS for readers that expect it (RTPS 2.5, 8.7.2, `expectsInlineQos`): the policies of the writer with each
//! sample.
//!
//! Few readers do. The history keeps datagrams without policies, and they are added on the way out, to a copy. While
//! such a reader is matched, all readers are sent copies with policies, which every reader skips or knows. What samples
//! say about their coherent set is added in the same way.

use alloc::boxed::Box;
use alloc::vec::Vec;

use weir_wire::submessage::{GroupInfo, Heartbeat, id};
use weir_wire::{EntityId, ParameterId, ParameterListWriter, SequenceNumber};

use super::presented::Presented;
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
        // What is added about sets and groups is added even so.
        self.inline_qos = list.or_else(|| self.config.presentation.as_ref().map(|_| Box::default()));
        self.update_indirect();
    }

    /// Appends messages with inline QoS added to their samples.
    pub(super) fn add_inline_qos(&self, plain: &Outbox, out: &mut Outbox) {
        let mut added = Added {
            writer: self.config.guid.entity,
            policies: self.inline_qos.as_deref().unwrap_or_default(),
            presented: self.timed.as_ref().and_then(|timed| timed.presented.as_ref()),
            group: None,
            list: Vec::new(),
        };
        added.group = added.presented.and_then(|presented| presented.group_info(&self.history));
        plain.for_each_with(|item, datagram| {
            let start = out.scratch.len();
            added.add(datagram, &mut out.scratch);
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

/// What is added to each sample of a writer.
struct Added<'a> {
    writer: EntityId,
    /// The policies, with the sentinel; may be empty.
    policies: &'a [u8],
    /// The sets that samples belong to.
    presented: Option<&'a Presented>,
    /// What HEARTBEATs say about the group.
    group: Option<GroupInfo>,
    /// What is added to one sample, with the sentinel. Empty between calls.
    list: Vec<u8>,
}

impl Added<'_> {
    /// Appends a message, with a list added to each DATA and each first DATA_FRAG of the writer.
    fn add(&mut self, message: &[u8], out: &mut Vec<u8>) {
        let (header, mut rest) = message.split_at(HEADER_LEN.min(message.len()));
        out.extend_from_slice(header);
        while let Some((&[kind, flags, low, high], body)) = rest.split_first_chunk::<SUBMESSAGE_HEADER_LEN>()
        {
            let len = usize::from(u16::from_le_bytes([low, high])).min(body.len());
            let (body, behind) = body.split_at(len);
            rest = behind;
            let at = match kind {
                id::DATA => DATA_LIST_AT,
                id::DATA_FRAG if body.get(20..24) == Some(&[1, 0, 0, 0]) => DATA_FRAG_LIST_AT,
                _ => usize::MAX,
            };
            let is_ours = body.get(8..12) == Some(&self.writer.0[..]);
            let (before, after) = body.split_at_checked(at).filter(|_| is_ours).unwrap_or((body, &[]));
            if let Some(info) = self.group.filter(|_| is_plain_heartbeat(kind, flags, body, self.writer)) {
                out.extend_from_slice(&[kind, flags | GroupInfo::FLAG]);
                out.extend_from_slice(&((len + GroupInfo::LEN) as u16).to_le_bytes());
                [body, &info.to_bytes()].iter().for_each(|part| out.extend_from_slice(part));
                continue;
            }
            self.list.clear();
            if at <= body.len() && is_ours {
                self.fill(body);
            }
            if flags & HAS_LIST != 0 {
                // A list that is there follows, and ends both.
                self.list.truncate(self.list.len().saturating_sub(SENTINEL_LEN));
            }
            let parameters = &self.list[..];
            let with_list = if parameters.is_empty() { flags } else { flags | HAS_LIST };
            match u16::try_from(len + parameters.len()) {
                Ok(longer) => {
                    out.extend_from_slice(&[kind, with_list]);
                    out.extend_from_slice(&longer.to_le_bytes());
                    [before, parameters, after].iter().for_each(|part| out.extend_from_slice(part));
                }
                Err(_) => {
                    out.extend_from_slice(&[kind, flags, low, high]);
                    out.extend_from_slice(body);
                }
            }
        }
        out.extend_from_slice(rest);
    }

    /// Fills `list` for the sample of a DATA or DATA_FRAG.
    fn fill(&mut self, body: &[u8]) {
        let number =
            |at: usize| body.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let sn = number(SN_AT).zip(number(SN_AT + 4));
        let sn = sn.map(|(high, low)| SequenceNumber(i64::from(high as i32) << 32 | i64::from(low)));
        if let (Some(presented), Some(sn)) = (self.presented, sn)
            && let Some(tag) = presented.tag(sn)
        {
            let mut list = ParameterListWriter::new(&mut self.list);
            tag.encode(&mut list);
            list.finish();
        }
        if !self.policies.is_empty() {
            self.list.truncate(self.list.len().saturating_sub(SENTINEL_LEN));
            self.list.extend_from_slice(self.policies);
        }
    }
}

/// Whether a submessage is a HEARTBEAT of a writer, without information about its group.
fn is_plain_heartbeat(kind: u8, flags: u8, body: &[u8], writer: EntityId) -> bool {
    let is_plain = flags & GroupInfo::FLAG == 0 && body.len() == Heartbeat::BODY_LEN;
    kind == id::HEARTBEAT && is_plain && body.get(4..8) == Some(&writer.0[..])
}

const HEADER_LEN: usize = 20;
const SUBMESSAGE_HEADER_LEN: usize = 4;
/// Where the list is in the body of a DATA, and of a DATA_FRAG (RTPS 2.5, 9.4.5.4, 9.4.5.5).
const DATA_LIST_AT: usize = 20;
const DATA_FRAG_LIST_AT: usize = 32;
/// Where the sequence number is in the body of both.
const SN_AT: usize = 12;
/// The flag that there is a list.
const HAS_LIST: u8 = 2;
const SENTINEL_LEN: usize = 4;
