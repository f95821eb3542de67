//! Receiving many datagrams per system call into buffers that are allocated once.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};
use std::slice::Chunks;

use crate::control_message::{self, ReceiveControl};
use crate::sys;
use crate::{UdpSocket, Wait};

/// Bytes per buffer of [`RecvBatch::new`]: no UDP payload is longer, coalesced or not.
pub const RECV_BUFFER_BYTES: usize = 65_536;

/// Buffers lie this much further apart than their size. Neighbours at a distance of exactly 64 KiB
/// would fight for the same few cache lines; 17 lines apart, their first kilobytes are all cached.
const SKEW_BYTES: usize = 17 * 64;

/// Buffers for a batch of received messages, with the arrays that the kernel writes to. Allocated
/// once; memory is touched when a datagram first fills it, so 64 buffers of 64 KiB cost little.
///
/// One batch serves one socket when [`kernel_drops`](Self::kernel_drops) is to mean anything.
pub struct RecvBatch {
    /// One header per slot; their pointers lead to the slot of the same index and never change.
    headers: Vec<libc::mmsghdr>,
    slots: Vec<Slot>,
    /// The buffer of the first slot, which [`RecvBatch::exchange_first`] gives away.
    first: Box<[u8]>,
    /// Those of the others; the place of the first is never touched.
    bytes: Vec<u8>,
    buffer_bytes: usize,
    /// How many of the headers the last call wrote to.
    received: usize,
    kernel_drops: u32,
    stamped_ns: Option<u64>,
    /// The kernel says who sent each message.
    has_sources: bool,
}

/// One received message: a datagram, or several of one sender that the kernel coalesced.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Who sent it, over IPv4 (over IPv6 it means nothing); 0.0.0.0:0 with [`RecvBatch::without_sources`].
    pub from: SocketAddrV4,
    /// The payload; several payloads end to end when coalesced.
    pub bytes: &'a [u8],
    /// Bytes per datagram; the last one may be shorter. The length of `bytes` when not coalesced.
    pub segment: usize,
    /// The buffer was too small and the end is lost; never with [`RecvBatch::new`].
    pub truncated: bool,
}

impl<'a> Received<'a> {
    /// The datagrams one by one. An empty datagram yields none.
    #[inline]
    pub fn datagrams(&self) -> Chunks<'a, u8> {
        self.bytes.chunks(self.segment.max(1))
    }

    /// How many datagrams the message holds; an empty one counts.
    #[inline]
    pub fn datagram_count(&self) -> usize {
        self.bytes.len().div_ceil(self.segment.max(1)).max(1)
    }
}

impl RecvBatch {
    /// `buffers` (at least one) buffers of [`RECV_BUFFER_BYTES`].
    pub fn new(buffers: usize) -> Self {
        Self::with_buffer_bytes(buffers, RECV_BUFFER_BYTES)
    }

    /// `buffers` buffers of `buffer_bytes` each (at least one of one): smaller ones truncate what does
    /// not fit, and with `UDP_GRO` that can be several datagrams.
    pub fn with_buffer_bytes(buffers: usize, buffer_bytes: usize) -> Self {
        let buffers = buffers.max(1);
        let buffer_bytes = buffer_bytes.max(1);
        let stride = buffer_bytes.next_multiple_of(64) + SKEW_BYTES;
        // Zeroed by the kernel, page by page as they are first used.
        let mut bytes = vec![0_u8; buffers * stride];
        let first_byte = bytes.as_mut_ptr();
        let mut slots: Vec<Slot> = (0..buffers)
            .map(|index| Slot {
                name: sys::EMPTY_SOCKADDR,
                part: libc::iovec {
                    // SAFETY: `index * stride` lies within `bytes`. The pointer stays valid for as
                    // long as `bytes` lives, because the vector is never grown or replaced.
                    iov_base: unsafe { first_byte.add(index * stride) }.cast(),
                    iov_len: buffer_bytes,
                },
                control: ReceiveControl([0; ReceiveControl::LEN]),
                offset: index * stride,
                segment: 0,
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

    /// Leaves out who sent the messages: [`Received::from`] will be 0.0.0.0:0. Saves the kernel the trouble where
    /// nobody asks.
    #[must_use]
    pub fn without_sources(mut self) -> Self {
        for header in &mut self.headers {
            header.msg_hdr.msg_name = std::ptr::null_mut();
            header.msg_hdr.msg_namelen = 0;
        }
        self.has_sources = false;
        self
    }

    /// How many messages one call can receive.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Bytes per buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// What the last call received, in order of arrival.
    #[inline]
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Received<'_>> {
        let headers = &self.headers[..self.received];
        headers.iter().zip(&self.slots).map(|(header, slot)| self.message(header, slot))
    }

    /// The message at `index` of the last call.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Received<'_>> {
        let header = self.headers[..self.received].get(index)?;
        Some(self.message(header, &self.slots[index]))
    }

    /// The length of the last call's message, if it was one, and that one datagram.
    #[inline]
    pub fn lone_datagram_len(&self) -> Option<usize> {
        let is_lone = self.received == 1 && self.slots[0].segment == 0;
        is_lone.then(|| (self.headers[0].msg_len as usize).min(self.first.len()))
    }

    /// The first octets that the last call received; those of its message, if it was one, and that one datagram, are as many
    /// as [`lone_datagram_len`](Self::lone_datagram_len).
    #[inline]
    pub fn first_bytes(&self, len: usize) -> &[u8] {
        &self.first[..len.min(self.first.len())]
    }

    /// Exchanges the buffer that holds the first message for another one, so that the message can be kept without a
    /// copy. After that, the batch holds no messages until the next call. `false`, and nothing is exchanged, when `buffer`
    /// is not [`buffer_bytes`](Self::buffer_bytes) long.
    #[inline]
    pub fn exchange_first(&mut self, buffer: &mut Box<[u8]>) -> bool {
        let fits = buffer.len() == self.buffer_bytes;
        if fits {
            std::mem::swap(&mut self.first, buffer);
            self.rearm();
        }
        fits
    }

    /// Datagrams that the socket dropped since it was opened for want of buffer space, as of the
    /// newest received message (`SO_RXQ_OVFL`). Wraps around; a dropped coalesced train counts once.
    /// [`UdpSocket::kernel_drops`] also knows what was dropped since.
    pub fn kernel_drops(&self) -> u32 {
        self.kernel_drops
    }

    /// When the newest message so far that has a stamp came to this host's network stack, before it was put into the
    /// socket: nanoseconds of the wall clock. `None` without [`SocketOptions::timestamps`](crate::SocketOptions).
    pub fn stamped_ns(&self) -> Option<u64> {
        self.stamped_ns
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
        }
    }

    /// Puts back the lengths that the kernel overwrote during the last call.
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

    /// One system call; returns how many messages it received, at least one.
    #[inline]
    fn receive(&mut self, fd: BorrowedFd<'_>, limit: usize, flags: c_int) -> io::Result<usize> {
        debug_assert!((1..=self.headers.len()).contains(&limit));
        // It may be another one than last time, and a `Box` that moved with `self` gives a new pointer.
        self.slots[0].part.iov_base = self.first.as_mut_ptr().cast();
        if limit == 1 {
            let header = &mut self.headers[0];
            // SAFETY: the header's pointers lead to `self.slots[0]` and to its buffer `self.first`, which has
            // `buffer_bytes` as all of them; both live and are exclusively ours (`&mut self`)
            // during the call, and any bytes the kernel writes are valid values of what is there.
            let len = unsafe { sys::recvmsg(fd, &raw mut header.msg_hdr, flags) };
            let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
            header.msg_len = len as _;
            return Ok(1);
        }
        let flags = flags | libc::MSG_WAITFORONE;
        // SAFETY: as above for each of the first `limit` headers, of which there are that many; the buffers of all
        // but the first are in `self.bytes`.
        let count = unsafe { sys::recvmmsg(fd, self.headers.as_mut_ptr(), limit, flags) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Takes note of what came with the `count` messages just received.
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
        slot.segment = 0;
        // Most messages have none: not coalesced, and nothing was ever dropped.
        if control_len != 0 {
            let values = control_message::parse(&slot.control.0[..control_len.min(ReceiveControl::LEN)]);
            slot.segment = values.segment.unwrap_or(0);
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
    /// Receives up to `limit` messages (no more than the batch has buffers) by one system call, and
    /// returns how many; [`RecvBatch::messages`] has them. [`Wait::Block`] waits for the first, never
    /// for more. 0 = nothing came in time.
    ///
    /// An interrupted call is made again, and so is one that only reported that an earlier send of
    /// this connected socket had failed: that is not about receiving.
    ///
    /// # Errors
    /// Whatever else the kernel answers; none is known on an open socket.
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
        loop {
            match batch.receive(self.as_fd(), limit, flags) {
                Ok(count) => {
                    batch.accept(count);
                    return Ok(count);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    Some(libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

/// What one message header points to, and what was found there.
struct Slot {
    name: libc::sockaddr_in,
    part: libc::iovec,
    control: ReceiveControl,
    /// Where in the batch's bytes this slot's buffer starts.
    offset: usize,
    /// Bytes per coalesced datagram; 0 = not coalesced.
    segment: u32,
}

impl Slot {
    /// A header whose pointers lead to the slot at `slot`, ready to receive.
    ///
    /// # Safety
    /// `slot` points to a slot. The header may be given to the kernel only while that slot is there.
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
