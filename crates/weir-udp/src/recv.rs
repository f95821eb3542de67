//! Receives many datagrams per system call into buffers that are allocated once.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};
use std::slice::Chunks;

use crate::control_message::{self, ReceiveControl};
use crate::sys;
use crate::transient::is_report;
use crate::{UdpSocket, Wait};

/// Bytes per buffer of [`RecvBatch::new`]: the maximum UDP payload, coalesced or not.
pub const RECV_BUFFER_BYTES: usize = 65_536;

/// Additional distance between buffers. At a distance of exactly 64 KiB, neighbours would compete
/// for the same few cache lines; 17 lines more, and their first kilobytes are all cached.
const SKEW_BYTES: usize = 17 * 64;
/// Reports of earlier sends that a receive call passes over.
const REPORTS_MAX: u32 = 64;

/// Buffers for a batch of received messages, with the arrays that the kernel writes to.
///
/// Allocated once; memory is touched when a datagram first fills it, so 64 buffers of 64 KiB cost
/// little. Use one batch per socket if [`kernel_drops`](Self::kernel_drops) matters.
pub struct RecvBatch {
    /// One header per slot. Their pointers lead to the slot of the same index and never change.
    headers: Vec<libc::mmsghdr>,
    slots: Vec<Slot>,
    /// The buffer of the first slot, which [`RecvBatch::exchange_first`] gives away.
    first: Box<[u8]>,
    /// The buffers of the other slots; the part for the first is never touched.
    bytes: Vec<u8>,
    buffer_bytes: usize,
    /// The number of headers that the last call wrote to.
    received: usize,
    kernel_drops: u32,
    stamped_ns: Option<u64>,
    /// Whether the kernel reports the source of each message.
    has_sources: bool,
}

/// One received message: a datagram, or several of one sender that the kernel coalesced.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The source over IPv4 (undefined over IPv6); 0.0.0.0:0 with [`RecvBatch::without_sources`].
    pub from: SocketAddrV4,
    /// The payload; several consecutive payloads if coalesced.
    pub bytes: &'a [u8],
    /// Bytes per datagram; the last one may be shorter. The length of `bytes` if not coalesced.
    pub segment: usize,
    /// Whether the buffer was too small and the end is lost; never with [`RecvBatch::new`].
    pub truncated: bool,
    /// The type of service of all its datagrams; 0 without [`UdpSocket::report_type_of_service`].
    pub type_of_service: u8,
}

/// What the kernel reports about the arrival of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// When it reached this host's network stack, as [`RecvBatch::stamped_ns`]; 0: not known.
    pub at_ns: u64,
    /// Datagrams that the socket had dropped by then, as [`RecvBatch::kernel_drops`].
    pub drops: u32,
}

impl<'a> Received<'a> {
    /// Iterates over the datagrams. An empty datagram yields none.
    #[inline]
    pub fn datagrams(&self) -> Chunks<'a, u8> {
        self.bytes.chunks(self.segment.max(1))
    }

    /// Returns the number of datagrams in the message; an empty one counts.
    #[inline]
    pub fn datagram_count(&self) -> usize {
        self.bytes.len().div_ceil(self.segment.max(1)).max(1)
    }
}

impl RecvBatch {
    /// Creates a batch of `buffers` (at least one) buffers of [`RECV_BUFFER_BYTES`].
    pub fn new(buffers: usize) -> Self {
        Self::with_buffer_bytes(buffers, RECV_BUFFER_BYTES)
    }

    /// Creates a batch of `buffers` buffers of `buffer_bytes` each (at least one of one).
    ///
    /// Buffers that are too small truncate; with `UDP_GRO` that can affect several datagrams.
    pub fn with_buffer_bytes(buffers: usize, buffer_bytes: usize) -> Self {
        let buffers = buffers.max(1);
        let buffer_bytes = buffer_bytes.max(1);
        let stride = buffer_bytes.next_multiple_of(64) + SKEW_BYTES;
        // Zeroed by the kernel, page by page on first use.
        let mut bytes = vec![0_u8; buffers * stride];
        let first_byte = bytes.as_mut_ptr();
        let mut slots: Vec<Slot> = (0..buffers)
            .map(|index| Slot {
                name: sys::EMPTY_SOCKADDR,
                part: libc::iovec {
                    // SAFETY: `index * stride` is within `bytes`. The pointer stays valid as long
                    // as `bytes` lives, because the vector is never grown or replaced.
                    iov_base: unsafe { first_byte.add(index * stride) }.cast(),
                    iov_len: buffer_bytes,
                },
                control: ReceiveControl([0; ReceiveControl::LEN]),
                offset: index * stride,
                segment: 0,
                type_of_service: 0,
            })
            .collect();
        let first_slot = slots.as_mut_ptr();
        let headers = (0..buffers)
            .map(|index| {
                // SAFETY: `index` is below the length of `slots`, which is never grown or replaced.
                let msg_hdr = unsafe { Slot::header(first_slot.add(index)) };
                libc::mmsghdr { msg_hdr, msg_len: 0 }
            })
            .collect();
        let first = vec![0_u8; buffer_bytes].into_boxed_slice();
        Self {
            headers,
            slots,
            first,
            bytes,
            buffer_bytes,
            received: 0,
            kernel_drops: 0,
            stamped_ns: None,
            has_sources: true,
        }
    }

    /// Writes to the memory of all buffers, so that no later call waits for the kernel to map it.
    pub fn prefault(&mut self) {
        // The first buffer has memory of its own.
        let unused = self.bytes.len() / self.slots.len();
        self.bytes[unused..].fill(1);
        self.first.fill(1);
    }

    /// Disables the sources of messages: [`Received::from`] will be 0.0.0.0:0. Saves work in the
    /// kernel.
    #[must_use]
    pub fn without_sources(mut self) -> Self {
        for header in &mut self.headers {
            header.msg_hdr.msg_name = std::ptr::null_mut();
            header.msg_hdr.msg_namelen = 0;
        }
        self.has_sources = false;
        self
    }

    /// Returns how many messages one call can receive.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes per buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Iterates over the messages of the last call, in order of arrival.
    #[inline]
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Received<'_>> {
        let headers = &self.headers[..self.received];
        headers.iter().zip(&self.slots).map(|(header, slot)| self.message(header, slot))
    }

    /// Returns the message at `index` of the last call.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Received<'_>> {
        let header = self.headers[..self.received].get(index)?;
        Some(self.message(header, &self.slots[index]))
    }

    /// Returns the length of the last call's message, if it received exactly one datagram.
    #[inline]
    pub fn single_datagram_len(&self) -> Option<usize> {
        let is_lone = self.received == 1 && self.slots[0].segment == 0;
        is_lone.then(|| (self.headers[0].msg_len as usize).min(self.first.len()))
    }

    /// Returns the first `len` bytes of the last call's first message. For a single datagram, use
    /// the length returned by [`single_datagram_len`](Self::single_datagram_len).
    #[inline]
    pub fn first_bytes(&self, len: usize) -> &[u8] {
        &self.first[..len.min(self.first.len())]
    }

    /// Exchanges the buffer of the first message for another one, so that the message can be kept
    /// without a copy.
    ///
    /// After that, the batch holds no messages until the next call. Returns `false` and exchanges
    /// nothing if `buffer` is not [`buffer_bytes`](Self::buffer_bytes) long.
    #[inline]
    pub fn exchange_first(&mut self, buffer: &mut Box<[u8]>) -> bool {
        let fits = buffer.len() == self.buffer_bytes;
        if fits {
            std::mem::swap(&mut self.first, buffer);
            self.rearm();
        }
        fits
    }

    /// Returns the datagrams that the socket dropped since it was opened because its buffer was
    /// full.
    ///
    /// As of the newest received message (`SO_RXQ_OVFL`); [`UdpSocket::kernel_drops`] includes
    /// later drops. Wraps around; a dropped coalesced train counts once.
    pub fn kernel_drops(&self) -> u32 {
        self.kernel_drops
    }

    /// Returns when the newest message with a timestamp reached this host's network stack.
    ///
    /// In nanoseconds of the wall clock, before the message was put into the socket. `None` without
    /// [`SocketOptions::timestamps`](crate::SocketOptions) and [`UdpSocket::report_arrivals`].
    pub fn stamped_ns(&self) -> Option<u64> {
        self.stamped_ns
    }

    /// Returns what the kernel reports about the arrival of the message at `index` of the last call; if there is none,
    /// of the newest message that was received.
    pub fn stamp(&self, index: usize) -> Stamp {
        let Some(header) = self.headers[..self.received].get(index) else {
            return Stamp { at_ns: self.stamped_ns.unwrap_or(0), drops: self.kernel_drops };
        };
        let control_len: usize = header.msg_hdr.msg_controllen as _;
        let control = &self.slots[index].control.0[..control_len.min(ReceiveControl::LEN)];
        let values = control_message::parse(control);
        Stamp { at_ns: values.stamped_ns.unwrap_or(0), drops: values.drops.unwrap_or(0) }
    }

    #[inline]
    fn message(&self, header: &libc::mmsghdr, slot: &Slot) -> Received<'_> {
        let len = (header.msg_len as usize).min(self.buffer_bytes);
        let segment = if slot.segment == 0 { len } else { slot.segment as usize };
        let buffer = if slot.offset == 0 { &self.first } else { &self.bytes[slot.offset..] };
        Received {
            from: sys::from_sockaddr(&slot.name),
            bytes: &buffer[..len],
            segment,
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            type_of_service: slot.type_of_service,
        }
    }

    /// Restores the lengths that the kernel overwrote during the last call.
    #[inline]
    fn rearm(&mut self) {
        let received = std::mem::take(&mut self.received);
        if received == 1 {
            self.rearm_at(0);
        } else {
            (0..received).for_each(|index| self.rearm_at(index));
        }
    }

    #[inline]
    fn rearm_at(&mut self, index: usize) {
        let header = &mut self.headers[index].msg_hdr;
        if self.has_sources {
            header.msg_namelen = size_of::<libc::sockaddr_in>() as _;
        }
        header.msg_controllen = ReceiveControl::LEN as _;
    }

    /// Makes one system call; returns how many messages it received, at least one.
    #[inline]
    fn receive(&mut self, fd: BorrowedFd<'_>, limit: usize, flags: c_int) -> io::Result<usize> {
        debug_assert!((1..=self.headers.len()).contains(&limit));
        // The buffer may have been exchanged, and a `Box` that moved with `self` gives a new
        // pointer.
        self.slots[0].part.iov_base = self.first.as_mut_ptr().cast();
        if limit == 1 {
            let header = &mut self.headers[0];
            // SAFETY: the header's pointers lead to `self.slots[0]` and to its buffer `self.first`,
            // which has `buffer_bytes` like all of them; both live and are exclusively borrowed
            // (`&mut self`) during the call, and any bytes the kernel writes are valid values.
            let len = unsafe { sys::recvmsg(fd, &raw mut header.msg_hdr, flags) };
            let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
            header.msg_len = len as _;
            return Ok(1);
        }
        let flags = flags | libc::MSG_WAITFORONE;
        // SAFETY: as above for each of the first `limit` headers, of which there are that many; the
        // buffers of all but the first are in `self.bytes`.
        let count = unsafe { sys::recvmmsg(fd, self.headers.as_mut_ptr(), limit, flags) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Records the control messages of the `count` messages just received.
    #[inline]
    fn accept(&mut self, count: usize) {
        if count == 1 {
            self.accept_at(0);
        } else {
            (0..count).for_each(|index| self.accept_at(index));
        }
        self.received = count;
    }

    #[inline]
    fn accept_at(&mut self, index: usize) {
        let control_len: usize = self.headers[index].msg_hdr.msg_controllen as _;
        let slot = &mut self.slots[index];
        (slot.segment, slot.type_of_service) = (0, 0);
        // Most messages have none: not coalesced, and no datagram was ever dropped.
        if control_len != 0 {
            let values = control_message::parse(&slot.control.0[..control_len.min(ReceiveControl::LEN)]);
            slot.segment = values.segment.unwrap_or(0);
            slot.type_of_service = values.type_of_service.unwrap_or(0);
            self.kernel_drops = values.drops.unwrap_or(self.kernel_drops);
            self.stamped_ns = values.stamped_ns.or(self.stamped_ns);
        }
    }
}

impl std::fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvBatch")
            .field("capacity", &self.capacity())
            .field("buffer_bytes", &self.buffer_bytes)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

// SAFETY: the raw pointers lead into vectors that this value owns and that move with it; they are
// followed only by the kernel during a call made through `&mut self`.
unsafe impl Send for RecvBatch {}

// SAFETY: `&RecvBatch` gives no access to the raw pointers; all its methods read plain data.
unsafe impl Sync for RecvBatch {}

impl UdpSocket {
    /// Receives up to `limit` messages, at most one per buffer, by one system call; returns how
    /// many.
    ///
    /// [`RecvBatch::messages`] iterates over them. [`Wait::Block`] waits for the first message
    /// only. 0 means that none arrived in time. Retries calls that are interrupted, and calls that
    /// only report that an earlier send of this connected socket failed.
    ///
    /// # Errors
    /// Other errors of the kernel; none is known on an open socket.
    #[inline]
    pub fn recv_batch(&self, batch: &mut RecvBatch, limit: usize, wait: Wait) -> io::Result<usize> {
        batch.rearm();
        let limit = limit.min(batch.capacity());
        if limit == 0 {
            return Ok(0);
        }
        let flags = match wait {
            Wait::Block => 0,
            Wait::DontWait => libc::MSG_DONTWAIT,
        };
        let mut reports = 0;
        loop {
            match batch.receive(self.as_fd(), limit, flags) {
                Ok(count) => {
                    batch.accept(count);
                    return Ok(count);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    Some(libc::EINTR) => {}
                    // The kernel reports each once, unless something refuses the call itself.
                    _ if is_report(&error) && reports < REPORTS_MAX => reports += 1,
                    _ => return Err(error),
                },
            }
        }
    }
}

/// The memory that a message header points to, and the results.
struct Slot {
    name: libc::sockaddr_in,
    part: libc::iovec,
    control: ReceiveControl,
    /// Offset of this slot's buffer in the batch's bytes.
    offset: usize,
    /// Bytes per coalesced datagram; 0: not coalesced.
    segment: u32,
    type_of_service: u8,
}

impl Slot {
    /// Makes a header whose pointers lead to the slot at `slot`, ready to receive.
    ///
    /// # Safety
    /// `slot` points to a slot. The header may be given to the kernel only while that slot exists.
    unsafe fn header(slot: *mut Self) -> libc::msghdr {
        let mut header = sys::empty_header();
        // SAFETY: `slot` points to a slot, so that its fields have addresses; nothing is read.
        unsafe {
            header.msg_name = (&raw mut (*slot).name).cast();
            header.msg_iov = &raw mut (*slot).part;
            header.msg_control = (&raw mut (*slot).control).cast();
        }
        header.msg_namelen = size_of::<libc::sockaddr_in>() as _;
        header.msg_iovlen = 1;
        header.msg_controllen = ReceiveControl::LEN as _;
        header
    }
}
