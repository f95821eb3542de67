//! Samples as bytes, for engines without types: header, length of the payload, payload; little-endian.

use weir_peer_api::Header;

pub(crate) const HEADER_BYTES: usize = Header::SERIALIZED_BYTES;

/// Encodes what precedes a payload of `length` bytes.
pub(crate) fn encode_header(header: &Header, length: usize) -> [u8; HEADER_BYTES] {
    let words = [
        header.key,
        header.entity_id.to_le_bytes(),
        header.seq_num.to_le_bytes(),
        header.timestamp_sec.to_le_bytes(),
        header.timestamp_usec.to_le_bytes(),
        header.latency_ping.to_le_bytes(),
        u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes(),
    ];
    let mut bytes = [0; HEADER_BYTES];
    for (to, from) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&from);
    }
    bytes
}

/// Replaces `message` by the whole sample.
pub(crate) fn encode(header: &Header, octets: &[u8], message: &mut Vec<u8>) {
    message.clear();
    message.extend_from_slice(&encode_header(header, octets.len()));
    message.extend_from_slice(octets);
}

/// Header and payload; `None` when the message is shorter than a header.
pub(crate) fn decode(message: &[u8]) -> Option<(Header, &[u8])> {
    let (head, octets) = message.split_first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    let header = Header {
        key: word(0),
        entity_id: i32::from_le_bytes(word(4)),
        seq_num: u32::from_le_bytes(word(8)),
        timestamp_sec: i32::from_le_bytes(word(12)),
        timestamp_usec: u32::from_le_bytes(word(16)),
        latency_ping: i32::from_le_bytes(word(20)),
    };
    Some((header, octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        let header = Header { key: [1, 2, 3, 4], entity_id: -1, seq_num: 7, ..Header::default() };
        let mut message = Vec::new();
        encode(&header, &[9, 8], &mut message);
        assert_eq!(decode(&message), Some((header, &[9, 8][..])));
        assert_eq!(decode(&message[..27]), None);
    }
}
