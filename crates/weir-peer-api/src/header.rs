//! The members of a sample before its payload, and the bytes of a sample.

/// `latency_ping` of a sample without echo.
pub const NO_ECHO: i32 = -1;

/// `latency_ping` of a publisher's final marker, whose `seq_num` is the number of samples sent.
pub const FINAL: i32 = -2;

/// The members of a sample before its payload, as in RTI Perftest's type.
///
/// Engines behind a C interface read it as it lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// The instance, little-endian; all zero when unkeyed.
    pub key: [u8; 4],
    /// Which publisher sent it, from 0.
    pub entity_id: i32,
    /// Counts up from 0 by one per sample and wraps around.
    pub seq_num: u32,
    /// Whole seconds of the sender's monotonic clock; 0 in samples that carry no time.
    pub timestamp_sec: i32,
    /// Microseconds beside them.
    pub timestamp_usec: u32,
    /// The subscriber that must echo the sample, or [`NO_ECHO`].
    pub latency_ping: i32,
}

impl Header {
    /// Bytes of a serialized sample before its payload: these members and the length of the payload.
    pub const SERIALIZED_BYTES: usize = 28;

    /// A throughput sample: without timestamp and echo. `sequence` is truncated to 32 bits.
    #[must_use]
    #[inline]
    pub fn data(sequence: u64, instances: u32) -> Self {
        let (key, seq_num) = (key_of(sequence, instances), wire_sequence(sequence));
        Self { key, seq_num, latency_ping: NO_ECHO, ..Self::default() }
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
        Self { latency_ping: 0, ..Self::data(sequence, instances) }.written_at(sent_ns)
    }

    /// The same with the time of writing, in nanoseconds of the sender's monotonic clock.
    #[must_use]
    #[inline]
    pub fn written_at(self, now_ns: u64) -> Self {
        let micros = now_ns / 1_000;
        // A monotonic clock starts at boot: the seconds fit for 68 years; beyond, they wrap.
        let (timestamp_sec, timestamp_usec) = ((micros / 1_000_000) as i32, (micros % 1_000_000) as u32);
        Self { timestamp_sec, timestamp_usec, ..self }
    }

    /// That time, in whole microseconds; 0 in samples that carry none.
    #[must_use]
    #[inline]
    pub fn written_ns(&self) -> u64 {
        u64::from(self.timestamp_sec.cast_unsigned()) * 1_000_000_000 + u64::from(self.timestamp_usec) * 1_000
    }

    /// What precedes a payload of `payload_len` bytes: the members and that length, little-endian.
    #[must_use]
    #[inline]
    pub fn to_bytes(&self, payload_len: usize) -> [u8; Self::SERIALIZED_BYTES] {
        let words = [
            self.key,
            self.entity_id.to_le_bytes(),
            self.seq_num.to_le_bytes(),
            self.timestamp_sec.to_le_bytes(),
            self.timestamp_usec.to_le_bytes(),
            self.latency_ping.to_le_bytes(),
            u32::try_from(payload_len).unwrap_or(u32::MAX).to_le_bytes(),
        ];
        let mut bytes = [0; Self::SERIALIZED_BYTES];
        bytes.copy_from_slice(words.as_flattened());
        bytes
    }

    /// Splits a sample into members and payload; `None` when it is shorter than the members, or its
    /// length field is wrong.
    #[must_use]
    #[inline]
    pub fn split(sample: &[u8]) -> Option<(Self, &[u8])> {
        let (head, payload) = sample.split_first_chunk::<{ Self::SERIALIZED_BYTES }>()?;
        let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let header = Self {
            key: word(0),
            entity_id: i32::from_le_bytes(word(4)),
            seq_num: u32::from_le_bytes(word(8)),
            timestamp_sec: i32::from_le_bytes(word(12)),
            timestamp_usec: u32::from_le_bytes(word(16)),
            latency_ping: i32::from_le_bytes(word(20)),
        };
        (u32::from_le_bytes(word(24)) as usize == payload.len()).then_some((header, payload))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_writing_reads_back_in_microseconds() {
        let header = Header::data(7, 0);
        assert_eq!(header.written_ns(), 0);
        assert_eq!(header.written_at(123_456_789_012_345).written_ns(), 123_456_789_012_000);
        assert_eq!(Header::ping(7, 0, 5_000).written_ns(), 5_000);
    }

    #[test]
    fn samples_read_back() {
        let header = Header { key: [1, 2, 3, 4], entity_id: -1, seq_num: 7, ..Header::default() };
        let sample = [&header.to_bytes(2)[..], &[9, 8]].concat();
        assert_eq!(Header::split(&sample), Some((header, &[9, 8][..])));
        assert_eq!(Header::split(&sample[..27]), None);
    }
}
