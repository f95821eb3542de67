//! Announcements of endpoints in fragments, as other engines send them.

use weir_wire::{DataFragHeader, EntityId, Header, SequenceNumber, push};

/// Bytes of an announcement per fragment: the announcements of the tests have several.
const FRAGMENT: usize = 100;

/// Returns whether a writer announces endpoints.
pub(crate) fn is_sedp(writer: EntityId) -> bool {
    [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER].contains(&writer)
}

/// Returns the number of fragments of an announcement.
pub(crate) fn count(payload: &[u8]) -> u32 {
    payload.len().div_ceil(FRAGMENT) as u32
}

/// Returns messages with one fragment each.
pub(crate) fn all(header: &Header, at: (EntityId, SequenceNumber), payload: &[u8]) -> Vec<Vec<u8>> {
    (1..=count(payload)).map(|number| fragment(header, at, payload, number)).collect()
}

/// A message with one fragment, counted from 1.
pub(crate) fn fragment(
    header: &Header,
    (writer, sequence_number): (EntityId, SequenceNumber),
    payload: &[u8],
    number: u32,
) -> Vec<u8> {
    let start = (number as usize - 1) * FRAGMENT;
    let piece = &payload[start..payload.len().min(start + FRAGMENT)];
    let mut message = Vec::new();
    push(&mut message, header);
    let header = DataFragHeader {
        reader: EntityId::UNKNOWN,
        writer,
        sequence_number,
        fragment_start: number,
        fragments: 1,
        fragment_size: FRAGMENT as u16,
        sample_size: payload.len() as u32,
        payload_len: piece.len() as u32,
    };
    push(&mut message, &header);
    message.extend_from_slice(piece);
    message
}

/// The message without its DATA.
pub(crate) fn without_data(bytes: &[u8]) -> Vec<u8> {
    const HEADER: usize = 20;
    const DATA: u8 = 0x15;
    let (mut rest, mut at) = (bytes[..HEADER].to_vec(), HEADER);
    while at < bytes.len() {
        let end = at + 4 + usize::from(u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]));
        if bytes[at] != DATA {
            rest.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
    rest
}
