//! Receiving datagrams: one at a time, or several per call.

use std::io;
use std::time::Duration;

use weir_results::WaitStrategy;
use weir_udp::{RecvBatch, UdpSocket, Wait, receive_within};

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
}

impl Receiver {
    /// A receiver of datagrams of one size; with `gro`, the kernel may coalesce them.
    #[must_use]
    pub fn new(size_bytes: usize, gro: bool) -> Self {
        if gro {
            return Self { batch: RecvBatch::new(GRO_BUFFERS) };
        }
        Self::with_buffers((BATCH_BYTES / size_bytes).clamp(1, 64), size_bytes)
    }

    /// A receiver of up to `buffers` datagrams per call.
    #[must_use]
    pub fn with_buffers(buffers: usize, size_bytes: usize) -> Self {
        // One byte more than a datagram has, so that a longer one is noticed.
        Self { batch: RecvBatch::with_buffer_bytes(buffers, size_bytes + 1) }
    }

    /// Does not ask the kernel where datagrams come from.
    #[must_use]
    pub fn without_sources(self) -> Self {
        Self { batch: self.batch.without_sources() }
    }

    /// Waits for datagrams; false when none arrived within `timeout`.
    #[inline]
    pub fn receive(&mut self, socket: &UdpSocket, wait: WaitStrategy, timeout: Duration) -> io::Result<bool> {
        let received = receive_within(socket, wait.spin(timeout), timeout, |wait| {
            Ok((socket.recv_batch(&mut self.batch, usize::MAX, wait)? > 0).then_some(()))
        });
        received.map(|received| received.is_some())
    }

    /// Receives the datagrams that have arrived already; false when there are none.
    pub fn receive_now(&mut self, socket: &UdpSocket) -> io::Result<bool> {
        Ok(socket.recv_batch(&mut self.batch, usize::MAX, Wait::DontWait)? > 0)
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

/// Bytes of a receive batch, so that they stay in the processor's cache.
const BATCH_BYTES: usize = 64 << 10;

/// Buffers of 64 KiB for coalesced datagrams; small ones use little of them.
const GRO_BUFFERS: usize = 2;
