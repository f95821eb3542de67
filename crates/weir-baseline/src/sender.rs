//! Sending datagrams: one per call, several per call, or several per pass through the network stack.

use std::io;
use std::net::SocketAddr;

use weir_results::UdpMode;
use weir_udp::{
    MAX_GSO_BYTES, MAX_GSO_SEGMENTS, Outgoing, SendScratch, SendScratchTo, UdpSocket, is_report, is_too_long,
    is_transient,
};

use crate::RING_BYTES;

/// Sends one datagram, to the connected peer or `to`. Returns false when the system refused it this
/// time, as with a full queue, a packet filter or a closed port: the datagram is lost.
///
/// # Errors
/// When later datagrams will fail, too.
#[inline]
pub fn send(socket: &UdpSocket, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<bool> {
    let sent = match to {
        None => socket.send(datagram),
        Some(to) => socket.send_to(datagram, to),
    };
    match sent {
        Ok(_) => Ok(true),
        Err(error) => lost(error, datagram.len(), socket).map(|()| false),
    }
}

/// Passes an error of sending so many bytes on unless the next datagram may succeed.
#[cold]
fn lost(error: io::Error, len: usize, socket: &UdpSocket) -> io::Result<()> {
    let is_passing = is_passing_send(&error, len, socket.local_address().is_ipv6());
    if is_passing { Ok(()) } else { Err(error) }
}

/// Whether the next datagram of so many bytes may be sent after this error. A router may have said of an earlier one
/// that it needs fragmentation, which the kernel does from then on; but none may be longer than UDP's datagrams.
fn is_passing_send(error: &io::Error, len: usize, is_ipv6: bool) -> bool {
    let longest = if is_ipv6 { LONGEST_V6 } else { LONGEST_V4 };
    if is_too_long(error) { len <= longest } else { is_passing(error) }
}

/// Whether the next call on a socket may succeed.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    is_transient(error) || is_report(error) || error.kind() == io::ErrorKind::WouldBlock
}

/// What a [`Sender`] sent, counted from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounts {
    /// Datagrams, those that the system refused included.
    pub datagrams: u64,
    /// System calls.
    pub system_calls: u64,
    /// Datagrams that the system refused.
    pub refused: u64,
    /// Sends that the kernel would not segment, so that their datagrams were sent one by one.
    pub gso_fallbacks: u64,
}

/// Where datagrams go.
#[derive(Debug)]
enum Aim {
    Peer(SendScratch),
    To(SocketAddr, SendScratchTo),
}

/// Sends datagrams of one size. They wait here until a system call is full.
#[derive(Debug)]
pub struct Sender {
    aim: Aim,
    mode: UdpMode,
    size: usize,
    /// As many datagrams as one call takes, end to end; in a ring, those of many calls.
    train: Vec<u8>,
    /// Where those of the next call begin, and how far apart those of two calls are.
    start: usize,
    stride: usize,
    /// Datagrams that the train holds at most, and now.
    capacity: usize,
    filled: usize,
    counts: SendCounts,
}

impl Sender {
    /// A sender of datagrams like this one, to the connected peer or `to`.
    #[must_use]
    pub fn new(mode: UdpMode, to: Option<SocketAddr>, datagram: &[u8]) -> Self {
        let size = datagram.len();
        let capacity = match mode {
            UdpMode::Send => 1,
            UdpMode::Sendmmsg => (MMSG_BYTES / size).clamp(1, MAX_GSO_SEGMENTS),
            UdpMode::Gso => (MAX_GSO_BYTES / size).clamp(1, MAX_GSO_SEGMENTS),
        };
        Self {
            aim: to.map_or_else(|| Aim::Peer(SendScratch::new()), |to| Aim::To(to, SendScratchTo::new(to))),
            mode,
            size,
            train: datagram.repeat(capacity),
            start: 0,
            stride: capacity * size,
            capacity,
            filled: 0,
            counts: SendCounts::default(),
        }
    }

    /// Makes the same calls as [`Sender::new`] in the mode [`UdpMode::Send`] to the connected peer, each from other
    /// memory: the next part of a ring of [`RING_BYTES`]. Maps all of it first.
    #[must_use]
    pub fn fresh(datagram: &[u8]) -> Self {
        let stride = datagram.len().next_multiple_of(LINE_BYTES).max(LINE_BYTES);
        let mut part = datagram.to_vec();
        part.resize(stride, 0);
        let train = part.repeat(RING_BYTES.div_ceil(stride).max(2));
        Self { train, stride, ..Self::new(UdpMode::Send, None, datagram) }
    }

    /// Datagrams of one call.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What was sent so far.
    #[must_use]
    pub fn counts(&self) -> SendCounts {
        self.counts
    }

    /// Adds a datagram, which `write` changes first; sends when a call is full.
    #[inline]
    pub fn push(&mut self, socket: &UdpSocket, write: impl FnOnce(&mut [u8])) -> io::Result<()> {
        write(&mut self.train[self.start + self.filled * self.size..][..self.size]);
        self.filled += 1;
        if self.filled == self.capacity { self.flush(socket) } else { Ok(()) }
    }

    /// Sends the datagrams that wait.
    #[inline]
    pub fn flush(&mut self, socket: &UdpSocket) -> io::Result<()> {
        let bytes = &self.train[self.start..][..self.filled * self.size];
        self.filled = 0;
        if bytes.is_empty() {
            return Ok(());
        }
        let next = self.start + self.stride;
        self.start = if next < self.train.len() { next } else { 0 };
        let (item_bytes, segment) = match self.mode {
            UdpMode::Send => return send_counted(&self.aim, &mut self.counts, socket, bytes),
            UdpMode::Sendmmsg => (self.size, 0),
            UdpMode::Gso => (bytes.len(), u16::try_from(self.size).unwrap_or(u16::MAX)),
        };
        let items =
            bytes.chunks(item_bytes).map(|item| Outgoing { segment, ..Outgoing::datagram(None, item) });
        let outcome = match &mut self.aim {
            Aim::Peer(scratch) => socket.send_all(items, scratch),
            Aim::To(_, scratch) => socket.send_all_to(items, scratch),
        };
        self.counts.datagrams += outcome.datagrams + outcome.refused;
        self.counts.system_calls += outcome.system_calls;
        self.counts.refused += outcome.refused;
        self.counts.gso_fallbacks += outcome.gso_fallbacks;
        outcome.last_error.map_or(Ok(()), |error| lost(error, self.size, socket))
    }

    /// Sends one datagram, of any size, at once.
    #[inline]
    pub fn send(&mut self, socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
        send_counted(&self.aim, &mut self.counts, socket, datagram)
    }
}

#[inline]
fn send_counted(aim: &Aim, counts: &mut SendCounts, socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
    let to = if let Aim::To(to, _) = aim { Some(*to) } else { None };
    counts.datagrams += 1;
    counts.system_calls += 1;
    if !send(socket, to, datagram)? {
        counts.refused += 1;
    }
    Ok(())
}

/// The longest datagrams: packets of 65535 bytes, without the headers of IPv4 (20) and UDP (8), and without that of
/// UDP.
const LONGEST_V4: usize = 65_507;
const LONGEST_V6: usize = 65_527;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Bytes of a `sendmmsg` at most, so that they stay in the processor's cache.
const MMSG_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use weir_udp::{RecvBatch, SocketOptions, Wait};

    use super::*;

    fn bound() -> UdpSocket {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = SocketOptions { recv_buffer: Some(4 << 20), ..SocketOptions::new(loopback) };
        UdpSocket::bind(&options).unwrap()
    }

    #[test]
    fn every_mode_sends_what_was_pushed_and_no_more_calls_than_needed() {
        for mode in [UdpMode::Send, UdpMode::Sendmmsg, UdpMode::Gso] {
            for is_connected in [true, false] {
                let (receiver, socket) = (bound(), bound());
                let to = (!is_connected).then(|| receiver.local_address());
                if is_connected {
                    socket.connect(receiver.local_addr()).unwrap();
                }
                let mut sender = Sender::new(mode, to, &[7; 1000]);
                for number in 0..100_u8 {
                    sender.push(&socket, |datagram| datagram[0] = number).unwrap();
                }
                sender.flush(&socket).unwrap();
                sender.flush(&socket).unwrap();
                let counts = sender.counts();
                assert_eq!((counts.datagrams, counts.refused), (100, 0), "{mode}");
                assert_eq!(counts.system_calls, 100_u64.div_ceil(sender.capacity() as u64), "{mode}");
                let mut batch = RecvBatch::with_buffer_bytes(64, 2000);
                let mut arrived = Vec::new();
                while receiver.recv_batch(&mut batch, 64, Wait::DontWait).unwrap() > 0 {
                    arrived.extend(batch.messages().map(|one| (one.bytes[0], one.bytes.len())));
                }
                assert_eq!(arrived, (0..100).map(|number| (number, 1000)).collect::<Vec<_>>(), "{mode}");
            }
        }
    }

    #[test]
    fn a_ring_sends_each_datagram_from_other_memory_and_returns_to_the_first() {
        let (receiver, socket) = (bound(), bound());
        socket.connect(receiver.local_addr()).unwrap();
        let mut sender = Sender::fresh(&[7; 50_000]);
        let parts = sender.train.len() / sender.stride;
        assert!(sender.train.len() >= RING_BYTES && parts > 1000);
        let mut batch = RecvBatch::with_buffer_bytes(1, 60_000);
        let mut starts = Vec::new();
        for number in 0..=parts {
            starts.push(sender.start);
            sender.push(&socket, |datagram| datagram[0] = number as u8).unwrap();
            assert_eq!(receiver.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
            let message = batch.get(0).unwrap();
            let first_two = [number as u8, 7];
            assert_eq!((message.bytes.len(), &message.bytes[..2]), (50_000, &first_two[..]));
        }
        assert_eq!((starts[0], starts[parts]), (0, 0));
        starts.sort_unstable();
        assert!(starts[2..].windows(2).all(|pair| pair[1] - pair[0] == sender.stride));
        let counts = sender.counts();
        assert_eq!(counts.datagrams, counts.system_calls);
    }

    #[test]
    fn a_router_that_asks_for_fragments_ends_no_measurement_and_a_datagram_that_is_too_long_does() {
        let (receiver, socket) = (bound(), bound());
        socket.connect(receiver.local_addr()).unwrap();
        let too_long = send(&socket, None, &[0; 65_508]).unwrap_err();
        assert!(is_too_long(&too_long) && is_passing(&too_long));
        for (len, is_ipv6, expected) in [
            (1472, false, true),
            (65_507, false, true),
            (65_508, false, false),
            (65_508, true, true),
            (65_527, true, true),
            (65_528, true, false),
        ] {
            assert_eq!(is_passing_send(&too_long, len, is_ipv6), expected, "{len}");
        }
        assert!(!is_passing_send(&io::ErrorKind::NotConnected.into(), 8, false));
    }

    #[test]
    fn a_closed_port_loses_datagrams_and_a_socket_without_peer_is_an_error() {
        let (receiver, socket) = (bound(), bound());
        socket.connect(receiver.local_addr()).unwrap();
        drop(receiver);
        let mut sender = Sender::new(UdpMode::Send, None, &[0; 8]);
        (0..10).for_each(|_| sender.push(&socket, |_| {}).unwrap());
        assert!((1..10).contains(&sender.counts().refused), "{sender:?}");
        assert!(send(&bound(), None, &[0]).is_err());
    }
}
