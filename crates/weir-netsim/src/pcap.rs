//! Capture files: classic pcap with nanosecond times, link type RAW, with synthetic IPv4 and UDP
//! headers.
//!
//! Checksums are correct. Packet times are those of the simulation, counted from the epoch.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::link::HEADER_BYTES;

/// Builds a pcap file in memory.
#[derive(Debug)]
pub struct Writer {
    file: Vec<u8>,
    identification: u16,
}

impl Writer {
    /// Creates a file without packets.
    pub fn new() -> Self {
        let mut file = Vec::with_capacity(FILE_HEADER_BYTES);
        file.extend(MAGIC_NANOSECONDS.to_le_bytes());
        file.extend(2u16.to_le_bytes());
        file.extend(4u16.to_le_bytes());
        // Time zone and accuracy, always zero.
        file.extend([0; 8]);
        file.extend(SNAPSHOT_LENGTH.to_le_bytes());
        file.extend(LINK_TYPE_RAW.to_le_bytes());
        Self { file, identification: 0 }
    }

    /// Appends one UDP datagram seen at `at`.
    ///
    /// # Panics
    ///
    /// If the payload does not fit an IPv4 packet (65507 bytes).
    pub fn udp(&mut self, at: Duration, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        let total = HEADER_BYTES + payload.len();
        let length = u16::try_from(total).expect("a UDP datagram has at most 65507 bytes");
        // The format has 32 bits for the seconds: a simulation of over 136 years saturates.
        let seconds = u32::try_from(at.as_secs()).unwrap_or(u32::MAX);
        for word in [seconds, at.subsec_nanos(), u32::from(length), u32::from(length)] {
            self.file.extend(word.to_le_bytes());
        }
        self.identification = self.identification.wrapping_add(1);
        self.file.extend(ip_header(self.identification, length, *from.ip(), *to.ip()));
        self.file.extend(udp_header(from, to, payload));
        self.file.extend_from_slice(payload);
    }

    /// Returns the bytes of the file.
    pub fn finish(self) -> Vec<u8> {
        self.file
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

fn ip_header(identification: u16, total_length: u16, from: Ipv4Addr, to: Ipv4Addr) -> [u8; 20] {
    let mut header = [0; 20];
    // Version 4, five words of header.
    header[0] = 0x45;
    header[2..4].copy_from_slice(&total_length.to_be_bytes());
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    // Don't fragment.
    header[6] = 0x40;
    header[8] = if to.is_multicast() { 1 } else { 64 };
    header[9] = PROTOCOL_UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let checksum = fold(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn udp_header(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> [u8; 8] {
    let length = u16::try_from(8 + payload.len()).expect("checked by the caller");
    let mut header = [0; 8];
    header[0..2].copy_from_slice(&from.port().to_be_bytes());
    header[2..4].copy_from_slice(&to.port().to_be_bytes());
    header[4..6].copy_from_slice(&length.to_be_bytes());
    // RFC 768: the checksum covers a pseudo header of addresses, protocol and length; a sum of zero
    // is sent as all ones.
    let pseudo =
        sum(&from.ip().octets()) + sum(&to.ip().octets()) + u64::from(PROTOCOL_UDP) + u64::from(length);
    let checksum = match fold(pseudo + sum(&header) + sum(payload)) {
        0 => u16::MAX,
        checksum => checksum,
    };
    header[6..8].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// Returns the sum of big-endian 16-bit words; an odd last byte is padded with zero.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |last| u64::from(*last) << 8);
    words.fold(odd, |sum, word| sum + u64::from(u16::from_be_bytes([word[0], word[1]])))
}

/// Returns the one's complement of the one's complement sum (RFC 1071).
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).expect("folded to 16 bits")
}

const FILE_HEADER_BYTES: usize = 24;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAPSHOT_LENGTH: u32 = 65_535;
const LINK_TYPE_RAW: u32 = 101;
const PROTOCOL_UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddrV4 {
        text.parse().unwrap()
    }

    #[test]
    fn a_file_has_these_bytes() {
        let mut writer = Writer::new();
        writer.udp(Duration::new(2, 3), address("10.0.0.1:7411"), address("239.255.0.1:7400"), b"abc");
        #[rustfmt::skip]
        let expected = [
            0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0,
            // seconds, nanoseconds, captured length, length
            2, 0, 0, 0, 3, 0, 0, 0, 31, 0, 0, 0, 31, 0, 0, 0,
            // IPv4: length 31, identification 1, don't fragment, ttl 1, UDP, checksum
            0x45, 0, 0, 31, 0, 1, 0x40, 0, 1, 17, 0x7f, 0xcc, 10, 0, 0, 1, 239, 255, 0, 1,
            // UDP: ports, length 11, checksum
            0x1c, 0xf3, 0x1c, 0xe8, 0, 11, 0x07, 0x99,
            b'a', b'b', b'c',
        ];
        assert_eq!(writer.finish(), expected);
    }

    #[test]
    fn the_checksums_verify() {
        // A receiver sums everything including the checksum and must get all ones.
        for payload in [&b""[..], b"x", b"xy", &[0xff; 1001]] {
            let (from, to) = (address("192.168.1.7:1"), address("10.0.0.255:65535"));
            let ip = ip_header(9, 28 + u16::try_from(payload.len()).unwrap(), *from.ip(), *to.ip());
            assert_eq!(fold(sum(&ip)), 0);
            let udp = udp_header(from, to, payload);
            let pseudo = sum(&ip[12..20]) + 17 + sum(&udp[4..6]);
            assert_eq!(fold(pseudo + sum(&udp) + sum(payload)), 0);
        }
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        // The payload makes the sum 0xffff, whose complement is zero.
        let zero = address("0.0.0.0:0");
        let rest = 17 + 10 + 10;
        let payload = (0xffff - rest as u16).to_be_bytes();
        assert_eq!(udp_header(zero, zero, &payload)[6..8], [0xff, 0xff]);
    }
}
