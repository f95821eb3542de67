//! The header of each datagram, little-endian; padding follows.
//!
//! ```text
//! 0      4        8             16      20
//! | mark | number | time        | lag   |
//! ```
//!
//! - mark: the measurement; datagrams with other marks are foreign
//! - number: counts the datagrams of a flow from 0, and wraps around
//! - time: when it was sent, nanoseconds of the sender's clock; that of the last clock read where
//!   nothing depends on it
//! - lag: nanoseconds from the intended to the actual send time

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 20;

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) mark: u32,
    pub(super) number: u32,
    pub(super) time_ns: u64,
    pub(super) lag_ns: u32,
}

impl Header {
    /// Writes it over the first bytes.
    #[inline]
    pub(super) fn write(&self, datagram: &mut [u8]) {
        let Some(head) = datagram.first_chunk_mut::<HEADER_BYTES>() else { return };
        head[0..4].copy_from_slice(&self.mark.to_le_bytes());
        head[4..8].copy_from_slice(&self.number.to_le_bytes());
        head[8..16].copy_from_slice(&self.time_ns.to_le_bytes());
        head[16..20].copy_from_slice(&self.lag_ns.to_le_bytes());
    }

    /// Reads it; `None` when there are too few bytes.
    #[inline]
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let words = datagram.as_chunks::<4>().0.first_chunk::<5>()?;
        let [mark, number, low, high, lag_ns] = words.map(u32::from_le_bytes);
        Some(Self { mark, number, time_ns: u64::from(low) | u64::from(high) << 32, lag_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_leaves_the_rest_alone() {
        let header = Header { mark: 0x0102_0304, number: 5, time_ns: u64::MAX - 9, lag_ns: 7 };
        let mut datagram = [0xee; HEADER_BYTES + 2];
        header.write(&mut datagram);
        assert_eq!(Header::read(&datagram), Some(header));
        assert_eq!((datagram[0], datagram[HEADER_BYTES]), (4, 0xee));
        assert_eq!(Header::read(&datagram[..HEADER_BYTES - 1]), None);
    }
}
