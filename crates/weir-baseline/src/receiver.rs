//! Receiving datagrams: one at a time, or several per call.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use weir_results::WaitStrategy;
use weir_udp::{RecvBatch, UdpSocket, Wait, receive_within};

use crate::RING_BYTES;
use crate::sender::is_passing;

/// Receives one datagram into `buffer`; `None` when none arrived within `timeout`, or when an
/// earlier send met a closed port.
#[inline]
pub fn receive_one(
    socket: &UdpSocket,
    wait: WaitStrategy,
    timeout: Duration,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    receive_within(socket, wait.spin(timeout), timeout, |wait| match socket.recv(buffer, wait) {
        Ok(length) => Ok(Some(length)),
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    })
}

/// Receives several datagrams per call.
#[derive(Debug)]
pub struct Receiver {
    batch: RecvBatch,
    /// Batches that the next calls use instead, in turn; empty: each call uses the same buffers.
    others: VecDeque<RecvBatch>,
}

impl Receiver {
    /// A receiver of datagrams of one size; with `gro`, the kernel may coalesce them.
    #[must_use]
    pub fn new(size_bytes: usize, gro: bool) -> Self {
        if gro {
            return Self::of(RecvBatch::new(GRO_BUFFERS));
        }
        Self::with_buffers(buffers(size_bytes), size_bytes)
    }

    /// Makes the same calls as [`Receiver::new`], each into other memory: the next part of a ring of [`RING_BYTES`].
    /// Maps all of it first.
    #[must_use]
    pub fn fresh(size_bytes: usize) -> Self {
        let buffers = buffers(size_bytes);
        let batches = RING_BYTES.div_ceil(buffers * (size_bytes + BUFFER_COST_BYTES)).max(2);
        let mut ring = (0..batches).map(|_| {
            let mut batch = RecvBatch::with_buffer_bytes(buffers, size_bytes + 1);
            batch.prefault();
            batch
        });
        let first = ring.next().unwrap_or_else(|| RecvBatch::new(buffers));
        Self { batch: first, others: ring.collect() }
    }

    fn of(batch: RecvBatch) -> Self {
        Self { batch, others: VecDeque::new() }
    }

    /// A receiver of up to `buffers` datagrams per call.
    #[must_use]
    pub fn with_buffers(buffers: usize, size_bytes: usize) -> Self {
        // One byte more than a datagram has, so that a longer one is noticed.
        Self::of(RecvBatch::with_buffer_bytes(buffers, size_bytes + 1))
    }

    /// Does not ask the kernel where datagrams come from.
    #[must_use]
    pub fn without_sources(self) -> Self {
        let others = self.others.into_iter().map(RecvBatch::without_sources).collect();
        Self { batch: self.batch.without_sources(), others }
    }

    /// Waits for datagrams; false when none arrived within `timeout`.
    #[inline]
    pub fn receive(&mut self, socket: &UdpSocket, wait: WaitStrategy, timeout: Duration) -> io::Result<bool> {
        self.take_next();
        let received = receive_within(socket, wait.spin(timeout), timeout, |wait| {
            Ok((socket.recv_batch(&mut self.batch, usize::MAX, wait)? > 0).then_some(()))
        });
        received.map(|received| received.is_some())
    }

    /// Receives the datagrams that have arrived already; false when there are none.
    pub fn receive_now(&mut self, socket: &UdpSocket) -> io::Result<bool> {
        self.take_next();
        Ok(socket.recv_batch(&mut self.batch, usize::MAX, Wait::DontWait)? > 0)
    }

    /// Goes on to the next batch of a ring.
    #[inline]
    fn take_next(&mut self) {
        if let Some(next) = self.others.pop_front() {
            self.others.push_back(std::mem::replace(&mut self.batch, next));
        }
    }

    /// The datagrams that arrived, coalesced ones one by one.
    #[inline]
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.batch.messages().flat_map(|message| message.datagrams())
    }

    /// The messages that arrived.
    #[must_use]
    #[inline]
    pub fn batch(&self) -> &RecvBatch {
        &self.batch
    }
}

/// The buffers of a batch for datagrams of one size.
fn buffers(size_bytes: usize) -> usize {
    (BATCH_BYTES / size_bytes).clamp(1, 64)
}

/// Bytes of a receive batch, so that they stay in the processor's cache.
const BATCH_BYTES: usize = 64 << 10;

/// Buffers of 64 KiB for coalesced datagrams; small ones use little of them.
const GRO_BUFFERS: usize = 2;

/// About what a buffer of a batch takes beside its bytes: the distance to the next one, its header and its address.
const BUFFER_COST_BYTES: usize = 1400;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use weir_udp::SocketOptions;

    use super::*;

    #[test]
    fn a_ring_has_other_memory_for_each_call_and_returns_to_the_first() {
        let options = SocketOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (socket, other) = (UdpSocket::bind(&options).unwrap(), UdpSocket::bind(&options).unwrap());
        socket.connect(other.local_addr()).unwrap();
        let mut receiver = Receiver::fresh(60_000);
        let calls = receiver.others.len() + 2;
        assert!(calls * 60_000 >= RING_BYTES * 9 / 10, "{calls}");
        let mut places = Vec::new();
        for number in 0..calls {
            let sent = vec![number as u8; 60_000];
            socket.send(&sent).unwrap();
            assert!(receiver.receive(&other, WaitStrategy::Block, Duration::from_secs(20)).unwrap());
            let received: Vec<&[u8]> = receiver.datagrams().collect();
            assert!(received == [&sent[..]]);
            places.push(received[0].as_ptr());
        }
        assert_eq!(places.first(), places.last());
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), calls - 1);
    }
}
