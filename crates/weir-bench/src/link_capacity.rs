//! The sample rate that a link can carry for our engine, after the headers of Ethernet, IP, UDP and
//! RTPS.
//!
//! Computed from the layout of messages, for a stream without losses. Acknowledgements use the
//! other direction; a HEARTBEAT of 32 bytes per eighth of a window is ignored.

/// A link of a known speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bits per second.
    pub rate_bps: u64,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Bytes of each packet in front of its IP header that the rate counts.
    pub framing: u64,
}

/// Bytes of one direction of a link for so many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    bytes: u64,
    samples: u64,
}

impl Link {
    /// Samples of `data_len` bytes per second that fit through, `batch_bytes` of them (0: one) to a message.
    #[must_use]
    pub fn samples_per_s(self, data_len: u64, batch_bytes: u64) -> f64 {
        let cost = self.cost(data_len, batch_bytes);
        self.rate_bps as f64 / 8.0 / cost.bytes as f64 * cost.samples as f64
    }

    /// The same in megabits of samples per second.
    #[must_use]
    pub fn mbps(self, data_len: u64, batch_bytes: u64) -> f64 {
        self.samples_per_s(data_len, batch_bytes) * data_len as f64 * 8.0 / 1e6
    }

    fn cost(self, data_len: u64, batch_bytes: u64) -> Cost {
        let payload = ENCAPSULATION + data_len;
        let alone = MESSAGE + DATA + payload.next_multiple_of(4);
        let datagram_max = u64::from(self.mtu).saturating_sub(IP + UDP).clamp(DATAGRAM_MIN, SEND_MAX);
        if alone + HEARTBEAT > datagram_max {
            return self.fragmented(payload, datagram_max);
        }
        let another = DATA + payload.next_multiple_of(4);
        // The engine ends a batch where a datagram would no longer fit the link.
        let batch_bytes = batch_bytes.min(datagram_max - HEARTBEAT);
        let samples = 1 + batch_bytes.saturating_sub(alone) / another;
        Cost { bytes: self.datagram(alone + (samples - 1) * another), samples }
    }

    /// A large sample: datagrams that fit the link, each with a piece.
    fn fragmented(self, payload: u64, datagram_max: u64) -> Cost {
        let piece = (datagram_max - MESSAGE - DATA_FRAG) / 8 * 8;
        let (whole, rest) = (payload / piece, payload % piece);
        let datagram = |piece: u64| self.datagram(MESSAGE + DATA_FRAG + piece.next_multiple_of(4));
        Cost { bytes: whole * datagram(piece) + if rest > 0 { datagram(rest) } else { 0 }, samples: 1 }
    }

    /// Bytes of the packets of a datagram, of which there are several where it is larger than the link's packets.
    fn datagram(self, len: u64) -> u64 {
        let packet = (u64::from(self.mtu) - IP) / 8 * 8;
        let packets = if len + UDP + IP <= u64::from(self.mtu) { 1 } else { (len + UDP).div_ceil(packet) };
        len + UDP + packets * (IP + self.framing)
    }
}

/// The header of Ethernet, which the kernel's shaper counts.
pub(crate) const ETHERNET: u64 = 14;
const IP: u64 = 20;
const UDP: u64 = 8;
/// RTPS header and INFO_TS.
const MESSAGE: u64 = 32;
const DATA: u64 = 24;
const DATA_FRAG: u64 = 36;
const HEARTBEAT: u64 = 32;
const ENCAPSULATION: u64 = 4;
/// The engine makes no smaller datagrams than this, nor longer ones than that.
const DATAGRAM_MIN: u64 = 548;
const SEND_MAX: u64 = 65_000;

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { rate_bps: 1_000_000_000, mtu: 9000, framing: ETHERNET };

    #[test]
    fn a_sample_pays_for_its_headers() {
        // 20 RTPS, 12 INFO_TS, 24 DATA, 4 encapsulation, 8 UDP, 20 IP, 14 Ethernet.
        assert_eq!(LINK.cost(1024, 0), Cost { bytes: 1024 + 102, samples: 1 });
        assert_eq!(LINK.cost(30, 0).bytes, 32 + 102);
        let mbps = LINK.mbps(1024, 0);
        assert!((mbps - 1000.0 * 1024.0 / 1126.0).abs() < 0.001, "{mbps}");
    }

    #[test]
    fn a_link_that_counts_ip_packets_has_room_for_more() {
        let link = Link { framing: 0, ..LINK };
        assert_eq!(link.cost(1024, 0), Cost { bytes: 1024 + 88, samples: 1 });
        assert_eq!(link.cost(63_000, 0).bytes, 63_004 + 8 * (68 + 28));
    }

    #[test]
    fn a_batch_pays_once_for_most_of_them() {
        // 32 of the message, then 60 for each sample of 32 bytes.
        let samples = (8192 - 32) / 60;
        assert_eq!(LINK.cost(32, 8192), Cost { bytes: 32 + samples * 60 + 42, samples });
        // Where no second one fits, it is one.
        assert_eq!(LINK.cost(5000, 8192), LINK.cost(5000, 0));
    }

    #[test]
    fn a_large_sample_pays_for_each_piece() {
        // 8972 bytes of datagram, 68 of them headers.
        let piece = 8904;
        assert_eq!(LINK.cost(63_000, 0).bytes, 63_004 + 8 * (68 + 42));
        assert_eq!(LINK.cost(piece * 2 - 4, 0).bytes, piece * 2 + 2 * (68 + 42));
    }

    #[test]
    fn a_batch_ends_where_the_mtu_does() {
        let link = Link { mtu: 1500, ..LINK };
        let cost = link.cost(32, 8192);
        let samples = (1472 - 32 - 32) / 60;
        assert_eq!(cost, Cost { bytes: 32 + samples * 60 + 42, samples });
        assert_eq!(link.cost(1024, 8192), link.cost(1024, 0));
    }
}
