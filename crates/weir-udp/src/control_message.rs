//! Control messages (`cmsg(3)`): two that are sent, four that are received.

use std::mem::{offset_of, size_of};

/// `UDP_SEGMENT`: split the message into datagrams of this many bytes (udp(7)).
///
/// Laid out as the kernel reads it, so that sending needs no pointer arithmetic.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SegmentControl {
    header: libc::cmsghdr,
    segment: u16,
}

impl SegmentControl {
    /// The value of `msg_controllen`.
    pub(crate) const LEN: usize = size_of::<Self>();

    /// Creates a control message for `segment` bytes per datagram.
    pub(crate) fn new(segment: u16) -> Self {
        // SAFETY: `cmsghdr` is made of integers only, and zero is a valid value of each (a literal
        // would not do: some libcs add a private padding field).
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<u16>()) as _;
        header.cmsg_level = libc::SOL_UDP;
        header.cmsg_type = libc::UDP_SEGMENT;
        Self { header, segment }
    }

    /// Changes the segment size only.
    #[inline]
    pub(crate) fn set_segment(&mut self, segment: u16) {
        self.segment = segment;
    }
}

// `repr(C)` rounds the struct up to the alignment of its header, as CMSG_SPACE does.
// SAFETY: CMSG_SPACE is plain arithmetic; libc marks it unsafe because it has no const fn of its own.
const _: () = assert!(size_of::<SegmentControl>() == unsafe { libc::CMSG_SPACE(2) } as usize);

/// The control messages of a sent message: `UDP_SEGMENT`, and `IP_TOS` behind it (ip(7)).
///
/// The first one alone is valid, too. A segment size of 0 does not split.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SendControl {
    pub(crate) segment: SegmentControl,
    header: libc::cmsghdr,
    type_of_service: libc::c_int,
}

impl SendControl {
    /// The value of `msg_controllen` with a type of service.
    pub(crate) const LEN: usize = size_of::<Self>();

    /// Creates control messages that change nothing.
    pub(crate) fn new() -> Self {
        let segment = SegmentControl::new(0);
        let mut header = segment.header;
        header.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<libc::c_int>()) as _;
        header.cmsg_level = libc::SOL_IP;
        header.cmsg_type = libc::IP_TOS;
        Self { segment, header, type_of_service: 0 }
    }

    /// Changes the type of service only.
    pub(crate) fn set_type_of_service(&mut self, type_of_service: u8) {
        self.type_of_service = type_of_service.into();
    }
}

// The second one begins where CMSG_NXTHDR finds it, and ends as CMSG_SPACE says.
const _: () = assert!(offset_of!(SendControl, header) == SegmentControl::LEN);
// SAFETY: CMSG_SPACE is plain arithmetic, as above.
const _: () = assert!(SendControl::LEN == SegmentControl::LEN + unsafe { libc::CMSG_SPACE(4) } as usize);

/// Buffer for the control messages of one received datagram: three of 24 bytes, one of 32, and spare
/// room.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct ReceiveControl(pub(crate) [u8; Self::LEN]);

impl ReceiveControl {
    /// The value of `msg_controllen` before each call.
    pub(crate) const LEN: usize = 128;
}

/// The content of a received datagram's control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlValues {
    /// `UDP_GRO`: the bytes are several datagrams of this many bytes, the last one possibly
    /// shorter.
    pub(crate) segment: Option<u32>,
    /// `SO_RXQ_OVFL`: datagrams dropped by this socket since it was opened.
    pub(crate) drops: Option<u32>,
    /// `SO_TIMESTAMPNS`: when the datagram reached this host's network stack, in nanoseconds of the
    /// wall clock.
    pub(crate) stamped_ns: Option<u64>,
    /// `IP_TOS`: the type of service.
    pub(crate) type_of_service: Option<u8>,
}

/// Parses the control messages in `control`, which ends where the kernel stopped writing. Skips
/// anything malformed or unknown, because nothing depends on it.
pub(crate) fn parse(control: &[u8]) -> ControlValues {
    let mut values = ControlValues::default();
    let mut rest = control;
    while let Some((level, kind, data, next)) = split_first(rest) {
        // Both numbers are an `int` / `u32` in host byte order.
        let number = data.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes));
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => values.segment = number,
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => values.drops = number,
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => values.stamped_ns = time_ns(data),
            // One byte, unlike when it is sent.
            (libc::SOL_IP, libc::IP_TOS) => values.type_of_service = data.first().copied(),
            _ => {}
        }
        rest = next;
    }
    values
}

/// Returns the error that ICMP reported (`IP_RECVERR`), if there is one, and its information: the MTU, if a packet was
/// too long.
pub(crate) fn parse_error(control: &[u8]) -> Option<(i32, u32)> {
    /// `SO_EE_ORIGIN_ICMP` (include/uapi/linux/errqueue.h).
    const ORIGIN_ICMP: u8 = 2;
    let mut rest = control;
    while let Some((level, kind, data, next)) = split_first(rest) {
        // The number of the error, where it comes from, three bytes of ICMP, and the information.
        if let (libc::SOL_IP, libc::IP_RECVERR, Some((number, [ORIGIN_ICMP, _, _, _, information @ ..]))) =
            (level, kind, data.split_first_chunk::<4>())
            && let Some(information) = information.first_chunk::<4>()
        {
            return Some((i32::from_ne_bytes(*number), u32::from_ne_bytes(*information)));
        }
        rest = next;
    }
    None
}

/// Converts a `timespec` of 64-bit numbers to nanoseconds.
fn time_ns(data: &[u8]) -> Option<u64> {
    let (seconds, rest) = data.split_first_chunk::<8>()?;
    let seconds = u64::try_from(i64::from_ne_bytes(*seconds)).ok()?;
    let nanos = u64::try_from(i64::from_ne_bytes(*rest.first_chunk::<8>()?)).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Returns the first control message's level, type and data, and what follows it.
fn split_first(control: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let header = control.first_chunk::<HEADER>()?;
    // The kernel's own header is a `size_t` and two `int`s, whatever type the libc gives the first
    // field.
    let len = usize::from_ne_bytes(*header.first_chunk()?);
    let level = i32::from_ne_bytes(*header[offset_of!(libc::cmsghdr, cmsg_level)..].first_chunk()?);
    let kind = i32::from_ne_bytes(*header[offset_of!(libc::cmsghdr, cmsg_type)..].first_chunk()?);
    let data = control.get(HEADER..len)?;
    // The next header starts at the next multiple of a word; the last message may lack the padding.
    let next = control.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
    Some((level, kind, data, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let len = size_of::<libc::cmsghdr>() + data.len();
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(len.next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    #[test]
    fn reads_all_values_in_any_order_and_passes_over_others() {
        let gro = message(libc::SOL_UDP, libc::UDP_GRO, &1472_i32.to_ne_bytes());
        let drops = message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7_u32.to_ne_bytes());
        let other = message(libc::SOL_IP, libc::IP_TTL, &[64, 0, 0, 0, 1]);
        let time = [5_i64.to_ne_bytes(), 17_i64.to_ne_bytes()].concat();
        let stamp = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time);
        let tos = message(libc::SOL_IP, libc::IP_TOS, &[0xbb]);
        let all = ControlValues {
            segment: Some(1472),
            drops: Some(7),
            stamped_ns: Some(5_000_000_017),
            type_of_service: Some(0xbb),
        };
        let found = parse(&[gro.clone(), other.clone(), drops.clone(), tos.clone(), stamp.clone()].concat());
        assert_eq!(found, all);
        assert_eq!(parse(&[stamp, tos, drops, gro.clone(), other].concat()), all);
        assert_eq!(parse(&gro), ControlValues { segment: Some(1472), ..ControlValues::default() });
    }

    #[test]
    fn an_error_is_read_if_icmp_reported_it() {
        let error = |origin: u8| [&111_u32.to_ne_bytes()[..], &[origin, 3, 3, 0], &[1; 4], &[0; 4]].concat();
        let other = message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7_u32.to_ne_bytes());
        let report = message(libc::SOL_IP, libc::IP_RECVERR, &error(2));
        assert_eq!(parse_error(&[other.clone(), report].concat()), Some((111, 0x101_0101)));
        // Of the host itself, or cut short.
        assert_eq!(parse_error(&message(libc::SOL_IP, libc::IP_RECVERR, &error(1))), None);
        assert_eq!(parse_error(&message(libc::SOL_IP, libc::IP_RECVERR, &error(2)[..4])), None);
        assert_eq!(parse_error(&other), None);
    }

    #[test]
    fn malformed_bytes_end_the_walk() {
        let check = |bytes: &[u8]| assert_eq!(parse(bytes), ControlValues::default(), "{bytes:?}");
        check(&[]);
        check(&[0; 15]);
        check(&[0; 64]);
        check(&[0xff; 64]);
        // Claims 24 bytes, has 23; claims less than its own header.
        check(&message(libc::SOL_UDP, libc::UDP_GRO, &1_u64.to_ne_bytes())[..23]);
        let mut short = message(libc::SOL_UDP, libc::UDP_GRO, &[1, 0, 0, 0]);
        short[..size_of::<usize>()].copy_from_slice(&8_usize.to_ne_bytes());
        check(&short);
        // A truncated value has no meaning, and no time is before 1970.
        check(&message(libc::SOL_UDP, libc::UDP_GRO, &[1, 0]));
        check(&message(libc::SOL_IP, libc::IP_TOS, &[]));
        check(&message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &[1; 15]));
        check(&message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &[0xff; 16]));
    }

    #[test]
    fn sent_control_message_has_the_kernel_layout() {
        let control = SegmentControl::new(1024);
        // SAFETY: CMSG_LEN is plain arithmetic.
        let len = unsafe { libc::CMSG_LEN(2) } as usize;
        assert_eq!(control.header.cmsg_len, len as _);
        assert_eq!(offset_of!(SegmentControl, segment), size_of::<libc::cmsghdr>());
        assert_eq!(control.segment, 1024);
        let mut both = SendControl::new();
        both.set_type_of_service(0xba);
        // SAFETY: CMSG_LEN is plain arithmetic.
        assert_eq!(both.header.cmsg_len, unsafe { libc::CMSG_LEN(4) } as _);
        assert_eq!((both.header.cmsg_level, both.header.cmsg_type), (libc::SOL_IP, libc::IP_TOS));
        assert_eq!((both.type_of_service, both.segment.segment), (0xba, 0));
    }
}
