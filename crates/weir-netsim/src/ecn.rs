//! Explicit congestion notification (RFC 3168): the field of a packet, and what a link does with it.

use core::fmt;
use core::time::Duration;

use crate::values::{format_time, parse_bytes, parse_time};

/// The ECN field of an IP packet (RFC 3168, section 5): the lower two bits of the type of service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Its ends do not use ECN.
    #[default]
    NotEct,
    /// ECT(1).
    Ect1,
    /// ECT(0): its ends use ECN.
    Ect0,
    /// Congestion was experienced.
    Ce,
}

impl Ecn {
    /// Returns the field of a type of service.
    pub fn of_tos(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns the two bits.
    pub fn bits(self) -> u8 {
        self as u8
    }

    /// Returns the field of an IP packet, of either version; `None`: it is none.
    pub fn of_packet(packet: &[u8]) -> Option<Self> {
        let first = u16::from_be_bytes(*packet.first_chunk()?);
        match first >> 12 {
            4 => Some(Self::of_tos(first as u8)),
            6 => Some(Self::of_tos((first >> 4) as u8)),
            _ => None,
        }
    }

    /// Writes the field of an IP packet, of either version. Updates the checksum of an IPv4 header (RFC 1624).
    pub fn write_to(self, packet: &mut [u8]) {
        let Some(before) = packet.first_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes)) else { return };
        let bits = u16::from(self.bits());
        if before >> 12 == 6 {
            let after = before & !0x30 | bits << 4;
            packet[..2].copy_from_slice(&after.to_be_bytes());
        } else if before >> 12 == 4 && packet.len() >= IPV4_HEADER_BYTES {
            let after = before & !3 | bits;
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let sum = u32::from(!sum) + u32::from(!before) + u32::from(after);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
            packet[..2].copy_from_slice(&after.to_be_bytes());
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }

    fn is_capable(self) -> bool {
        self != Self::NotEct
    }
}

/// What a link does with the ECN field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Marking {
    /// Nothing.
    #[default]
    Off,
    /// Marks packets of ends that use ECN if they find a queue of this many bytes or more.
    Bytes(u32),
    /// The same if they have to wait for this long or longer.
    Wait(Duration),
    /// Clears the field, as some routers do with the whole type of service.
    Bleach,
    /// Marks all packets of ends that use ECN, whatever the queue: a broken router.
    All,
}

impl Marking {
    /// Returns the field of a packet that finds this queue.
    pub(crate) fn apply(self, ecn: Ecn, backlog_bytes: u64, wait: Duration) -> Ecn {
        let is_marked = match self {
            Self::Off => false,
            Self::Bytes(bytes) => backlog_bytes >= bytes.into(),
            Self::Wait(least) => wait >= least,
            Self::Bleach => return Ecn::NotEct,
            Self::All => true,
        };
        if is_marked && ecn.is_capable() { Ecn::Ce } else { ecn }
    }

    /// Reads a time, bytes, `off`, `bleach` or `all`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Self::Off),
            "bleach" => Some(Self::Bleach),
            "all" => Some(Self::All),
            _ => parse_time(text).map(Self::Wait).or_else(|| parse_bytes(text).map(Self::Bytes)),
        }
    }
}

impl fmt::Display for Marking {
    /// Writes what [`Marking::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Wait(time) => f.write_str(&format_time(*time)),
            Self::Bleach => f.write_str("bleach"),
            Self::All => f.write_str("all"),
        }
    }
}

const IPV4_HEADER_BYTES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    /// Returns the sum of an IPv4 header: zero if its checksum is right.
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    }

    #[test]
    fn the_field_is_written_and_the_checksum_stays_right() {
        for seed in 0..1000_u32 {
            let mut packet: Vec<u8> = (0..28).map(|i| (seed.wrapping_mul(i * i + 7) >> 3) as u8).collect();
            (packet[0], packet[10], packet[11]) = (0x45, 0, 0);
            let right = sum(&packet[..20]).to_be_bytes();
            packet[10..12].copy_from_slice(&right);
            let dscp = packet[1] & !3;
            for ecn in ALL {
                ecn.write_to(&mut packet);
                assert_eq!((Ecn::of_packet(&packet), packet[1] & !3), (Some(ecn), dscp));
                assert_eq!(sum(&packet[..20]), 0, "{packet:02x?}");
            }
        }
    }

    #[test]
    fn the_traffic_class_of_ipv6_has_it_too() {
        let mut packet = [0x6b; 40];
        for ecn in ALL {
            ecn.write_to(&mut packet);
            assert_eq!(Ecn::of_packet(&packet), Some(ecn));
            assert_eq!((packet[0], packet[1] & 0xcf), (0x6b, 0x4b));
        }
    }

    #[test]
    fn what_is_no_packet_stays_as_it_is() {
        for bytes in [&[][..], &[0x45], &[0x45, 0, 0], &[0xff; 40]] {
            let mut packet = bytes.to_vec();
            Ecn::Ce.write_to(&mut packet);
            assert_eq!(packet, bytes);
        }
        assert_eq!((Ecn::of_packet(&[0x45]), Ecn::of_packet(&[0xff; 40])), (None, None));
    }

    #[test]
    fn only_packets_of_ends_that_use_it_are_marked() {
        let marking = Marking::Wait(Duration::from_millis(5));
        let waits = [4, 5].map(Duration::from_millis);
        for (ecn, expected) in [
            (Ecn::NotEct, [Ecn::NotEct; 2]),
            (Ecn::Ect0, [Ecn::Ect0, Ecn::Ce]),
            (Ecn::Ect1, [Ecn::Ect1, Ecn::Ce]),
            (Ecn::Ce, [Ecn::Ce; 2]),
        ] {
            assert_eq!(waits.map(|wait| marking.apply(ecn, 0, wait)), expected);
        }
        let at = |marking: Marking, bytes| marking.apply(Ecn::Ect0, bytes, Duration::ZERO);
        assert_eq!([at(Marking::Bytes(2), 1), at(Marking::Bytes(2), 2)], [Ecn::Ect0, Ecn::Ce]);
        assert_eq!([at(Marking::Bleach, 0), at(Marking::All, 0)], [Ecn::NotEct, Ecn::Ce]);
        assert_eq!(at(Marking::Off, u64::MAX), Ecn::Ect0);
    }

    #[test]
    fn a_threshold_is_a_time_or_bytes() {
        for (text, marking) in [
            ("5ms", Marking::Wait(Duration::from_millis(5))),
            ("30000", Marking::Bytes(30_000)),
            ("bleach", Marking::Bleach),
            ("all", Marking::All),
            ("off", Marking::Off),
        ] {
            assert_eq!((Marking::parse(text), marking.to_string().as_str()), (Some(marking), text));
        }
        assert_eq!(Marking::parse("64k"), Some(Marking::Bytes(65_536)));
        assert_eq!(["", "x", "5", "-1ms"].map(Marking::parse)[..2], [None, None]);
    }
}
