//! The bytes of one benchmark sample, the same for every engine.
//!
//! The type of RTI Perftest, little-endian, so that sizes compare with published tables: the size
//! of a sample is its whole serialized form, with the 28 bytes before the payload and without the
//! encapsulation header of RTPS. An engine with a typed API serializes the same fields itself; raw
//! UDP sends exactly these bytes.
//!
//! ```text
//!  0        4           8         12       16        20             24       28
//!  +--------+-----------+---------+--------+---------+--------------+--------+----------
//!  | key[4] | entity_id | seq_num | ts_sec | ts_usec | latency_ping | length | payload...
//!  +--------+-----------+---------+--------+---------+--------------+--------+----------
//! ```

pub use weir_peer_api::Header as SampleHeader;
pub use weir_peer_api::header::{FINAL, NO_ECHO, key_of, wire_sequence};

/// Bytes of a serialized sample before its payload.
pub const HEADER_BYTES: usize = SampleHeader::SERIALIZED_BYTES;

/// What a received datagram or sample holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSample<'a> {
    /// The fields before the payload.
    pub header: SampleHeader,
    /// The payload.
    pub payload: &'a [u8],
}

/// Writes `header` and the payload's length over the first 28 bytes of `sample`.
///
/// # Panics
/// When `sample` is shorter than [`HEADER_BYTES`], which the plan refuses before any run.
#[inline]
pub fn write_header(sample: &mut [u8], header: &SampleHeader) {
    let (head, payload) = sample.split_at_mut(HEADER_BYTES);
    head.copy_from_slice(&header.to_bytes(payload.len()));
}

/// Reads a sample; `None` when it is too short or its length field is wrong.
#[must_use]
#[inline]
pub fn read(sample: &[u8]) -> Option<ReceivedSample<'_>> {
    SampleHeader::split(sample).map(|(header, payload)| ReceivedSample { header, payload })
}

/// Fills the payload with bytes that follow from the sequence number (for `--verify`): words of eight bytes, each of
/// which is the one before plus a constant.
pub fn fill(seq_num: u32, payload: &mut [u8]) {
    let (blocks, rest) = payload.as_chunks_mut::<BLOCK_BYTES>();
    let mut word = first_word(seq_num);
    if !blocks.is_empty() {
        let mut lanes = lanes_from(word);
        for block in blocks {
            let (words, _) = block.as_chunks_mut::<8>();
            for (bytes, lane) in words.iter_mut().zip(&mut lanes) {
                *bytes = lane.to_le_bytes();
                *lane = lane.wrapping_add(BLOCK_STEP);
            }
        }
        word = lanes[0];
    }
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        word = word.wrapping_add(WORD_STEP);
    }
}

/// Whether the payload is that of [`fill`] for this sequence number. Reads it once, without a second copy to compare
/// with.
#[must_use]
pub fn matches(seq_num: u32, payload: &[u8]) -> bool {
    let (blocks, rest) = payload.as_chunks::<BLOCK_BYTES>();
    let mut word = first_word(seq_num);
    if !blocks.is_empty() {
        let mut lanes = lanes_from(word);
        // Bits that differ, in each lane. A branch in the loop would keep it from using vector registers.
        let mut differing = [0_u64; LANES];
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for ((bytes, lane), differing) in words.iter().zip(&mut lanes).zip(&mut differing) {
                *differing |= u64::from_le_bytes(*bytes) ^ *lane;
                *lane = lane.wrapping_add(BLOCK_STEP);
            }
        }
        if differing != [0; LANES] {
            return false;
        }
        word = lanes[0];
    }
    rest.chunks(8).all(|chunk| {
        let expected = word.to_le_bytes();
        word = word.wrapping_add(WORD_STEP);
        chunk == &expected[..chunk.len()]
    })
}

/// Words that are handled together: a cache line, and whole vector registers of any processor.
const LANES: usize = 8;

const BLOCK_BYTES: usize = LANES * 8;

/// From a word to that of the same lane in the next block.
const BLOCK_STEP: u64 = WORD_STEP.wrapping_mul(LANES as u64);

/// The words of a block that begins with this one.
fn lanes_from(first: u64) -> [u64; LANES] {
    std::array::from_fn(|lane| first.wrapping_add(WORD_STEP.wrapping_mul(lane as u64)))
}

/// Odd, with bits all over, so that neighbouring words and neighbouring samples differ in most bytes.
const WORD_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn first_word(seq_num: u32) -> u64 {
    (u64::from(seq_num) + 1).wrapping_mul(0xd134_2543_de82_ef95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_bytes_are_those_of_the_drawing() {
        let mut sample = vec![0xaa; 32];
        let header = SampleHeader {
            key: [1, 2, 3, 4],
            entity_id: -2,
            seq_num: 0x0102_0304,
            timestamp_sec: 7,
            timestamp_usec: 8,
            latency_ping: NO_ECHO,
        };
        write_header(&mut sample, &header);
        let expected = [
            1, 2, 3, 4, 0xfe, 0xff, 0xff, 0xff, 4, 3, 2, 1, 7, 0, 0, 0, 8, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
            4, 0, 0, 0, 0xaa, 0xaa, 0xaa, 0xaa,
        ];
        assert_eq!(sample, expected);
        assert_eq!(read(&sample), Some(ReceivedSample { header, payload: &[0xaa; 4] }));
    }

    #[test]
    fn a_short_or_lying_sample_is_refused() {
        let mut sample = vec![0; 40];
        write_header(&mut sample, &SampleHeader::data(1, 0));
        assert!(read(&sample).is_some());
        assert_eq!(read(&sample[..39]), None);
        assert_eq!(read(&sample[..27]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn keys_go_round_the_instances() {
        assert_eq!(key_of(7, 0), [0; 4]);
        assert_eq!(key_of(7, 5), [2, 0, 0, 0]);
        assert_eq!(key_of(1000, 1000), [0; 4]);
    }

    #[test]
    fn verification_notices_one_changed_byte_and_another_number() {
        for length in [0, 1, 4, 8, 61, 63, 64, 65, 128, 200] {
            let mut payload = vec![0; length];
            fill(77, &mut payload);
            assert!(matches(77, &payload));
            assert_eq!(matches(78, &payload), length == 0);
            for at in 0..length {
                payload[at] ^= 1;
                assert!(!matches(77, &payload));
                payload[at] ^= 1;
            }
        }
    }

    #[test]
    fn every_word_is_the_one_before_plus_a_constant() {
        let mut payload = vec![0; 1_003];
        fill(5, &mut payload);
        let mut word = first_word(5);
        for chunk in payload.chunks(8) {
            assert_eq!(chunk, &word.to_le_bytes()[..chunk.len()]);
            word = word.wrapping_add(WORD_STEP);
        }
    }
}
