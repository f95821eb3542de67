//! A receiver's socket: a buffer with Linux's accounting, and a reader that may be slow.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::ecn::Ecn;

/// Returns the bytes that Linux charges to a socket's receive buffer for a UDP datagram of `len`
/// payload bytes.
///
/// The kernel counts the memory that the packet occupies, not its payload: 32 bytes cost 832. The
/// steps are those of Linux 6.18 on the loopback interface, read back through `SO_MEMINFO`; other
/// kernels and network cards differ by a few hundred bytes.
pub fn charge(len: usize) -> usize {
    match len {
        // A small head from its own cache, plus the packet descriptor.
        0..=197 => 832,
        // Payload, headers and bookkeeping in one allocation, rounded up to a power of two, plus
        // the descriptor.
        198..=16_005 => (len + 379).next_power_of_two().max(1024) + 256,
        // A small head, the payload in pages.
        _ => len + 832,
    }
}

/// The default receive buffer on most Linux hosts (`net.core.rmem_default`), in bytes.
pub const DEFAULT_BUFFER_BYTES: usize = 212_992;

/// A datagram in a socket's buffer.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) at: Duration,
    pub(crate) order: u64,
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Arc<[u8]>,
}

/// One bound address.
#[derive(Debug)]
pub(crate) struct Socket {
    queue: VecDeque<Waiting>,
    buffer_bytes: usize,
    pub(crate) charged_bytes: usize,
    /// How long the reader pauses after each datagram.
    pub(crate) read_gap: Duration,
    readable_at: Duration,
    pub(crate) is_paused: bool,
}

impl Socket {
    pub(crate) fn new(buffer_bytes: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            buffer_bytes,
            charged_bytes: 0,
            read_gap: Duration::ZERO,
            readable_at: Duration::ZERO,
            is_paused: false,
        }
    }

    /// Adds an arrival; false if the buffer is full. As in Linux, the last one accepted may exceed
    /// the limit.
    pub(crate) fn admit(&mut self, waiting: Waiting) -> bool {
        if self.charged_bytes > self.buffer_bytes {
            return false;
        }
        self.charged_bytes += charge(waiting.bytes.len());
        self.queue.push_back(waiting);
        true
    }

    /// Returns when the oldest datagram can be read; `None` if there is none or the reader is
    /// paused.
    pub(crate) fn next_read(&self) -> Option<Duration> {
        let head = self.queue.front().filter(|_| !self.is_paused)?;
        Some(head.at.max(self.readable_at))
    }

    /// Returns the arrival number of the oldest datagram that can be read at `now`.
    pub(crate) fn head_order(&self, now: Duration) -> Option<u64> {
        self.next_read().filter(|at| *at <= now)?;
        self.queue.front().map(|head| head.order)
    }

    pub(crate) fn read(&mut self, now: Duration) -> Option<Waiting> {
        let head = self.queue.pop_front()?;
        self.charged_bytes -= charge(head.bytes.len());
        self.readable_at = now + self.read_gap;
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn waiting(at: Duration, len: usize) -> Waiting {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
        Waiting { at, order: 0, from: address, to: address, ecn: Ecn::NotEct, bytes: vec![0; len].into() }
    }

    #[test]
    fn the_charge_has_the_steps_of_the_kernel() {
        let expected = [
            (0, 832),
            (197, 832),
            (198, 1280),
            (645, 1280),
            (646, 2304),
            (1669, 2304),
            (1670, 4352),
            (16_008, 16_840),
            (63_000, 63_832),
        ];
        for (len, bytes) in expected {
            assert_eq!(charge(len), bytes, "{len}");
        }
    }

    #[test]
    fn the_buffer_is_charged_for_memory_not_for_payload() {
        let mut socket = Socket::new(3000);
        let admitted = (0..10).filter(|_| socket.admit(waiting(Duration::ZERO, 32))).count();
        assert_eq!(admitted, 4, "three fill 2496 of 3000 bytes, a fourth may go over");
        assert_eq!(socket.charged_bytes, 4 * 832);
        socket.read(Duration::ZERO).unwrap();
        assert!(socket.admit(waiting(Duration::ZERO, 32)), "reading makes room");
        while socket.read(Duration::ZERO).is_some() {}
        assert_eq!(socket.charged_bytes, 0);
    }

    #[test]
    fn a_slow_reader_waits_between_reads() {
        let ms = Duration::from_millis(1);
        let mut socket = Socket::new(DEFAULT_BUFFER_BYTES);
        socket.read_gap = 10 * ms;
        assert_eq!(socket.next_read(), None);
        socket.admit(waiting(ms, 1));
        socket.admit(waiting(2 * ms, 1));
        assert_eq!(socket.next_read(), Some(ms));
        socket.read(ms).unwrap();
        assert_eq!(socket.next_read(), Some(11 * ms));
        assert_eq!(socket.head_order(10 * ms), None);
        assert_eq!(socket.head_order(11 * ms), Some(0));
        socket.is_paused = true;
        assert_eq!(socket.next_read(), None);
    }
}
