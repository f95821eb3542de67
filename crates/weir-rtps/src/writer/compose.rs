//! The layout of a writer's datagrams: RTPS header, INFO_TS, DATA (RTPS 2.5, 9.4).

use alloc::vec::Vec;

use weir_wire::{
    DataFragHeader, DataHeader, Emit, EntityId, Header, InfoTimestamp, ProtocolVersion, SequenceNumber,
    Timestamp, push,
};

use super::settings::{Change, WriterConfig};
use crate::change_kind::ChangeKind;
use crate::inline_qos;

/// Offset of the payload in a datagram, in bytes.
pub(super) const PAYLOAD_AT: usize = DATA_AT + DATA_LEN;
/// Length of a HEARTBEAT submessage, in bytes.
pub(super) const HEARTBEAT_LEN: usize = 32;

const HEADER_LEN: usize = 20;
const INFO_TS_LEN: usize = 12;
const DATA_AT: usize = crate::history::DATAGRAM_HEAD_LEN;
const _: () = assert!(DATA_AT == HEADER_LEN + INFO_TS_LEN);
pub(super) const DATA_LEN: usize = 24;
/// Length of the inline QoS of a dispose or an unregister, at most.
pub(super) const INLINE_QOS_LEN: usize = inline_qos::InlineQos::LEN_MAX;

/// Returns the length of the datagram for a payload, which is padded to a multiple of four bytes.
#[inline]
pub(super) const fn datagram_len(payload_len: usize) -> usize {
    PAYLOAD_AT + payload_len.next_multiple_of(4)
}

/// Returns the length of one more sample in an existing datagram.
#[inline]
pub(super) const fn extension_len(payload_len: usize) -> usize {
    DATA_LEN + payload_len.next_multiple_of(4)
}

/// The bytes before the payload. Only a few fields differ between samples.
#[derive(Debug)]
pub(super) struct Template {
    bytes: [u8; PAYLOAD_AT],
}

impl Template {
    pub(super) fn new(config: &WriterConfig) -> Self {
        let mut bytes = [0; PAYLOAD_AT];
        header(config).emit(&mut bytes);
        InfoTimestamp { timestamp: Some(Timestamp { seconds: 0, fraction: 0 }) }
            .emit(&mut bytes[HEADER_LEN..]);
        data_header(config, SequenceNumber::FIRST, 4).emit(&mut bytes[DATA_AT..]);
        Self { bytes }
    }

    /// Fills in everything but the payload of one more sample in a datagram.
    #[inline]
    pub(super) fn fill_extension(&self, extension: &mut [u8], sn: SequenceNumber, payload_len: usize) {
        let padded = payload_len.next_multiple_of(4);
        let (head, payload) = extension.split_at_mut(DATA_LEN);
        head.copy_from_slice(&self.bytes[DATA_AT..]);
        fill_data(head, sn, padded);
        pad(payload, payload_len, padded);
    }

    /// Fills in everything but the payload of a datagram.
    #[inline]
    pub(super) fn fill(
        &self,
        datagram: &mut [u8],
        sn: SequenceNumber,
        timestamp: Timestamp,
        payload_len: usize,
    ) {
        let padded = payload_len.next_multiple_of(4);
        let (head, payload) = datagram.split_at_mut(PAYLOAD_AT);
        head.copy_from_slice(&self.bytes);
        head[24..28].copy_from_slice(&timestamp.seconds.to_le_bytes());
        head[28..32].copy_from_slice(&timestamp.fraction.to_le_bytes());
        fill_data(&mut head[DATA_AT..], sn, padded);
        pad(payload, payload_len, padded);
    }
}

/// Zeroes the padding behind the payload, if there is any.
#[inline]
fn pad(payload: &mut [u8], payload_len: usize, padded: usize) {
    if payload_len < padded {
        payload[payload_len..padded].fill(0);
    }
}

/// Writes the fields of the DATA header that differ between samples.
#[inline]
fn fill_data(data: &mut [u8], sn: SequenceNumber, padded: usize) {
    data[2..4].copy_from_slice(&((20 + padded) as u16).to_le_bytes());
    data[16..20].copy_from_slice(&((sn.0 >> 32) as i32).to_le_bytes());
    data[20..24].copy_from_slice(&(sn.0 as u32).to_le_bytes());
}

/// Writes the datagram of a change that has inline QoS or lacks a timestamp. Returns its length in
/// bytes.
pub(super) fn with_inline_qos(
    config: &WriterConfig,
    sn: SequenceNumber,
    timestamp: Option<Timestamp>,
    change: &Change<'_>,
    datagram: &mut [u8],
) -> usize {
    let encoded = inline_qos::encode(change.kind, change.key);
    let inline_qos = if change.kind == ChangeKind::Alive { &[][..] } else { &encoded };
    let padded = change.payload.len().next_multiple_of(4);
    let mut at = HEADER_LEN;
    header(config).emit(datagram);
    if timestamp.is_some() {
        InfoTimestamp { timestamp }.emit(&mut datagram[at..]);
        at += INFO_TS_LEN;
    }
    DataHeader {
        inline_qos_len: inline_qos.len() as u32,
        is_key: change.kind != ChangeKind::Alive,
        ..data_header(config, sn, padded)
    }
    .emit(&mut datagram[at..]);
    at += DATA_LEN;
    datagram[at..at + inline_qos.len()].copy_from_slice(inline_qos);
    at += inline_qos.len();
    datagram[at..at + change.payload.len()].copy_from_slice(change.payload);
    datagram[at + change.payload.len()..at + padded].fill(0);
    at + padded
}

/// Bytes before the payload of a fragment: RTPS header, INFO_TS, DATA_FRAG header.
pub(super) const FRAGMENT_AT: usize = DATA_AT + 36;

/// Returns the size in bytes of the largest fragment in a datagram of at most `datagram_max` bytes.
pub(super) const fn fragment_size(datagram_max: usize) -> u32 {
    ((datagram_max - FRAGMENT_AT) / 8 * 8) as u32
}

/// The [`WriterCore::datagram_max`](super::state::WriterCore) of a closed writer: below the length of any sample's
/// datagram, so that every write takes the path of large samples, which refuses it. Fragments of that size could still
/// be counted.
pub(super) const CLOSED_MAX: usize = FRAGMENT_AT + 8;

const _: () = assert!(datagram_len(0) + HEARTBEAT_LEN > CLOSED_MAX && fragment_size(CLOSED_MAX) > 0);

/// Appends the headers of fragment `index`, counted from 0, which has `len` bytes.
pub(super) fn fragment_header(
    config: &WriterConfig,
    sn: SequenceNumber,
    timestamp: Timestamp,
    (sample_size, fragment_size): (u32, u32),
    (index, len): (u32, usize),
    out: &mut Vec<u8>,
) {
    push(out, &header(config));
    // Some engines take a message with the invalid time for malformed (RTPS 2.5, 9.3.2.1).
    push(out, &InfoTimestamp { timestamp: Some(timestamp).filter(|time| *time != Timestamp::INVALID) });
    let header = DataFragHeader {
        reader: EntityId::UNKNOWN,
        writer: config.guid.entity,
        sequence_number: sn,
        fragment_start: index + 1,
        fragments: 1,
        fragment_size: fragment_size as u16,
        sample_size,
        payload_len: len as u32,
    };
    push(out, &header);
}

/// Returns the RTPS header of every message of this writer.
pub(super) fn header(config: &WriterConfig) -> Header {
    Header { version: ProtocolVersion::V2_5, vendor: config.vendor, prefix: config.guid.prefix }
}

fn data_header(config: &WriterConfig, sequence_number: SequenceNumber, payload_len: usize) -> DataHeader {
    DataHeader {
        reader: EntityId::UNKNOWN,
        writer: config.guid.entity,
        sequence_number,
        inline_qos_len: 0,
        payload_len: payload_len as u32,
        is_key: false,
    }
}
