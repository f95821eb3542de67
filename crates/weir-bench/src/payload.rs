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
//!  | key[4] | entity_id | seq_num | ts_sec | ts_usec | latency_ping | length | octets...
//!  +--------+-----------+---------+--------+---------+--------------+--------+----------
//! ```

/// Bytes of a serialized sample before its payload.
pub const HEADER_BYTES: usize = 28;

/// `latency_ping` of a sample without echo.
pub const NO_ECHO: i32 = -1;

/// `latency_ping` of a publisher's final marker, whose `seq_num` is the number of samples sent.
pub const FINAL: i32 = -2;

/// The fields of a sample before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleHeader {
    /// The instance, little-endian; all zero when unkeyed.
    pub key: [u8; 4],
    /// Which publisher sent it, from 0.
    pub entity_id: i32,
    /// Counts up from 0 by one per sample and wraps around.
    pub seq_num: u32,
    /// Whole seconds of the sender's monotonic clock; 0 in samples that carry no time.
    pub ts_sec: i32,
    /// Microseconds beside `ts_sec`.
    pub ts_usec: u32,
    /// The subscriber that must echo the sample, or [`NO_ECHO`].
    pub latency_ping: i32,
}

impl SampleHeader {
    /// A throughput sample: without timestamp and echo. `sequence` is truncated to 32 bits.
    #[must_use]
    #[inline]
    pub fn data(sequence: u64, instances: u32) -> Self {
        let seq_num = wire_sequence(sequence);
        Self {
            key: key_of(sequence, instances),
            entity_id: 0,
            seq_num,
            ts_sec: 0,
            ts_usec: 0,
            latency_ping: NO_ECHO,
        }
    }

    /// The same, sent by publisher `entity_id`.
    #[must_use]
    #[inline]
    pub fn by(self, entity_id: u32) -> Self {
        Self { entity_id: entity_id.cast_signed(), ..self }
    }

    /// The marker of a publisher that sent the numbers `0..sent` and is done; it is none of them.
    #[must_use]
    pub fn last(sent: u64) -> Self {
        Self { latency_ping: FINAL, ..Self::data(sent, 0) }
    }

    /// A ping for subscriber 0, sent at `sent_ns` of the sender's monotonic clock.
    #[must_use]
    #[inline]
    pub fn ping(sequence: u64, instances: u32, sent_ns: u64) -> Self {
        let micros = sent_ns / 1_000;
        // A monotonic clock starts at boot: the seconds fit for 68 years; beyond, they wrap, and
        // nothing depends on them.
        let (ts_sec, ts_usec) = ((micros / 1_000_000) as i32, (micros % 1_000_000) as u32);
        Self { ts_sec, ts_usec, latency_ping: 0, ..Self::data(sequence, instances) }
    }

    /// The same, as other engines take it.
    #[must_use]
    #[inline]
    pub fn to_peer(self) -> weir_peer_api::Header {
        weir_peer_api::Header {
            key: self.key,
            entity_id: self.entity_id,
            seq_num: self.seq_num,
            timestamp_sec: self.ts_sec,
            timestamp_usec: self.ts_usec,
            latency_ping: self.latency_ping,
        }
    }

    /// What another engine gave.
    #[must_use]
    #[inline]
    pub fn from_peer(header: &weir_peer_api::Header) -> Self {
        Self {
            key: header.key,
            entity_id: header.entity_id,
            seq_num: header.seq_num,
            ts_sec: header.timestamp_sec,
            ts_usec: header.timestamp_usec,
            latency_ping: header.latency_ping,
        }
    }
}

/// What a received datagram or sample holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSample<'a> {
    /// The fields before the payload.
    pub header: SampleHeader,
    /// The payload.
    pub octets: &'a [u8],
}

/// Writes `header` and the payload's length over the first 28 bytes of `sample`.
///
/// # Panics
/// When `sample` is shorter than [`HEADER_BYTES`], which the plan refuses before any run.
#[inline]
pub fn write_header(sample: &mut [u8], header: &SampleHeader) {
    let octets = sample.len() - HEADER_BYTES;
    sample[0..4].copy_from_slice(&header.key);
    sample[4..8].copy_from_slice(&header.entity_id.to_le_bytes());
    sample[8..12].copy_from_slice(&header.seq_num.to_le_bytes());
    sample[12..16].copy_from_slice(&header.ts_sec.to_le_bytes());
    sample[16..20].copy_from_slice(&header.ts_usec.to_le_bytes());
    sample[20..24].copy_from_slice(&header.latency_ping.to_le_bytes());
    let length = u32::try_from(octets).unwrap_or(u32::MAX);
    sample[24..28].copy_from_slice(&length.to_le_bytes());
}

/// Reads a sample; `None` when it is too short or its length field is wrong.
#[must_use]
#[inline]
pub fn read(sample: &[u8]) -> Option<ReceivedSample<'_>> {
    let (head, octets) = sample.split_first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    if u32::from_le_bytes(word(24)) as usize != octets.len() {
        return None;
    }
    let header = SampleHeader {
        key: word(0),
        entity_id: i32::from_le_bytes(word(4)),
        seq_num: u32::from_le_bytes(word(8)),
        ts_sec: i32::from_le_bytes(word(12)),
        ts_usec: u32::from_le_bytes(word(16)),
        latency_ping: i32::from_le_bytes(word(20)),
    };
    Some(ReceivedSample { header, octets })
}

/// The 32 bits of a sequence number that travel: it wraps around on the wire, and the receiver
/// extends it again.
#[must_use]
#[inline]
pub fn wire_sequence(sequence: u64) -> u32 {
    sequence as u32
}

/// The key of sample `sequence`, by turns for each instance; all zero when there are none.
#[must_use]
#[inline]
pub fn key_of(sequence: u64, instances: u32) -> [u8; 4] {
    if instances == 0 { [0; 4] } else { wire_sequence(sequence % u64::from(instances)).to_le_bytes() }
}

/// Fills the payload with bytes that follow from the sequence number (for `--verify`).
pub fn fill_octets(seq_num: u32, octets: &mut [u8]) {
    let mut word = first_word(seq_num);
    for chunk in octets.chunks_mut(8) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        word = word.wrapping_add(WORD_STEP);
    }
}

/// Whether the payload is that of [`fill_octets`] for this sequence number.
#[must_use]
pub fn octets_match(seq_num: u32, octets: &[u8]) -> bool {
    let mut word = first_word(seq_num);
    octets.chunks(8).all(|chunk| {
        let expected = word.to_le_bytes();
        word = word.wrapping_add(WORD_STEP);
        chunk == &expected[..chunk.len()]
    })
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
            ts_sec: 7,
            ts_usec: 8,
            latency_ping: NO_ECHO,
        };
        write_header(&mut sample, &header);
        let expected = [
            1, 2, 3, 4, 0xfe, 0xff, 0xff, 0xff, 4, 3, 2, 1, 7, 0, 0, 0, 8, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
            4, 0, 0, 0, 0xaa, 0xaa, 0xaa, 0xaa,
        ];
        assert_eq!(sample, expected);
        assert_eq!(read(&sample), Some(ReceivedSample { header, octets: &[0xaa; 4] }));
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
        for length in [0, 1, 4, 8, 61] {
            let mut octets = vec![0; length];
            fill_octets(77, &mut octets);
            assert!(octets_match(77, &octets));
            assert_eq!(octets_match(78, &octets), length == 0);
            for at in 0..length {
                octets[at] ^= 1;
                assert!(!octets_match(77, &octets));
                octets[at] ^= 1;
            }
        }
    }
}
