//! Sending: one message, many messages per call, many datagrams per message.

use std::borrow::Borrow;
use std::io::{self, IoSlice};
use std::mem::size_of;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::SockAddr;

use crate::UdpSocket;
use crate::control_message::{SegmentControl, SendControl};
use crate::sys;

/// Maximum number of datagrams per message (`UDP_SEGMENT`). Newer kernels accept more, all accept
/// this many.
pub const MAX_GSO_SEGMENTS: usize = 64;

/// Maximum size of a message in bytes, segmented or not: an IPv4 packet less its headers (65535 -
/// 20 - 8).
pub const MAX_GSO_BYTES: usize = 65_507;

/// Maximum number of messages per system call of [`UdpSocket::send_all`].
pub const MAX_BATCH: usize = 64;

/// Maximum number of memory parts of one system call's messages.
const MAX_PARTS: usize = 4 * MAX_BATCH;

/// One or more datagrams to one address: the concatenation of `head` and `tail`.
///
/// It is split every `segment` bytes, unless `segment` is 0: then it is one datagram.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The destination; `None`: the connected peer.
    pub to: Option<SocketAddrV4>,
    /// The first bytes.
    pub head: &'a [u8],
    /// The bytes after them; may be empty.
    pub tail: &'a [u8],
    /// Bytes per datagram; the last one may be shorter. 0: all bytes are one datagram.
    pub segment: u16,
    /// Allows the message to leave by one segmented send together with adjacent messages.
    ///
    /// Those must also have `joins`, the same address, and datagrams of the same length. The
    /// datagrams must not exceed the path MTU.
    pub joins: bool,
    /// The type-of-service byte (DSCP and ECN), IPv4 only; `None`: the socket's. Another one than the socket's costs
    /// the kernel a look-up of the route.
    pub type_of_service: Option<u8>,
}

impl<'a> Outgoing<'a> {
    /// Makes one datagram to `to` (`None`: the connected peer).
    pub fn datagram(to: Option<SocketAddrV4>, bytes: &'a [u8]) -> Self {
        Self { to, head: bytes, tail: &[], segment: 0, joins: false, type_of_service: None }
    }

    /// Returns the total number of bytes.
    #[inline]
    pub fn byte_count(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Returns the number of datagrams.
    #[inline]
    pub fn datagram_count(&self) -> usize {
        datagram_count(self.byte_count(), self.segment)
    }

    /// Returns the length of its datagrams except the last one, which may be shorter; at least 1.
    #[inline]
    fn datagram_bytes(&self) -> usize {
        if self.segment == 0 { self.byte_count().max(1) } else { usize::from(self.segment) }
    }

    /// Returns the bytes from `start` to `end` of the concatenation of `head` and `tail`.
    fn part(&self, start: usize, end: usize) -> Self {
        let split = self.head.len();
        Self {
            to: self.to,
            head: &self.head[start.min(split)..end.min(split)],
            tail: &self.tail[start.saturating_sub(split)..end.saturating_sub(split)],
            segment: self.segment,
            joins: false,
            type_of_service: self.type_of_service,
        }
    }
}

/// The result of [`UdpSocket::send_all`].
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// Datagrams accepted by the kernel.
    pub datagrams: u64,
    /// Bytes accepted by the kernel.
    pub bytes: u64,
    /// System calls made, including failed ones.
    pub system_calls: u64,
    /// Datagrams refused by the kernel; `last_error` has the error of the last of them.
    pub refused: u64,
    /// Messages that the kernel refused to split (a segment exceeds the path MTU, or the device
    /// cannot do it) and that were sent again datagram by datagram. Use smaller segments or none.
    pub gso_fallbacks: u64,
    /// The error of the last refused datagram. `ConnectionRefused` is about an earlier datagram to
    /// a closed port.
    pub last_error: Option<io::Error>,
}

impl SendOutcome {
    /// Adds the figures of a later call; its error, if any, becomes the last.
    pub fn merge(&mut self, later: Self) {
        self.datagrams += later.datagrams;
        self.bytes += later.bytes;
        self.system_calls += later.system_calls;
        self.refused += later.refused;
        self.gso_fallbacks += later.gso_fallbacks;
        self.last_error = later.last_error.or(self.last_error.take());
    }
}

/// The arrays from which the kernel reads a batch of messages.
///
/// Allocated once and reused by every [`UdpSocket::send_all`]; holds nothing between calls.
pub struct SendScratch {
    /// One header per slot. Their pointers lead to the slot of the same index and never change.
    headers: Vec<libc::mmsghdr>,
    slots: Vec<Slot>,
    len: usize,
    /// The parts of all messages in sequence; never grown or replaced.
    parts: Vec<libc::iovec>,
    parts_len: usize,
    /// For the datagrams of a message that the kernel refused to split; created when that first
    /// happens.
    fallback: Option<Box<Self>>,
    /// The destination of messages that name none; `None`: the connected peer. The headers point to
    /// it.
    destination: Option<Box<SockAddr>>,
}

impl SendScratch {
    /// Allocates arrays for [`MAX_BATCH`] messages, about 15 kB.
    pub fn new() -> Self {
        let mut slots: Vec<Slot> = (0..MAX_BATCH).map(|_| Slot::empty()).collect();
        let base = slots.as_mut_ptr();
        let headers = (0..MAX_BATCH)
            .map(|index| {
                // SAFETY: `index` is below the length of `slots`. The pointers made here stay valid
                // as long as `slots` lives, because the vector is never grown or replaced.
                let msg_hdr = unsafe { Slot::header(base.add(index)) };
                libc::mmsghdr { msg_hdr, msg_len: 0 }
            })
            .collect();
        let parts = vec![NO_BYTES; MAX_PARTS];
        Self { headers, slots, len: 0, parts, parts_len: 0, fallback: None, destination: None }
    }

    /// The same for messages that all go to `destination`.
    fn aimed(destination: &SockAddr) -> Self {
        let mut scratch = Self::new();
        let destination = Box::new(destination.clone());
        for (header, slot) in scratch.headers.iter_mut().zip(&mut scratch.slots) {
            // The kernel only reads through it. It stays valid as long as the box, which lives as
            // long as the scratch.
            header.msg_hdr.msg_name = destination.as_ptr().cast_mut().cast();
            slot.unnamed_bytes = destination.len() as usize;
        }
        scratch.destination = Some(destination);
        scratch
    }

    /// Returns whether there is room for one more message.
    #[inline]
    fn has_room(&self) -> bool {
        self.len < MAX_BATCH && self.parts_len + 2 <= MAX_PARTS
    }

    /// Adds a message.
    #[inline]
    fn push(&mut self, item: &Outgoing<'_>) {
        let (index, start) = (self.len, self.parts_len);
        self.slots[index].begin(item, start);
        self.add_parts(item);
        // SAFETY: `start` is within `parts`, which is never grown or replaced.
        let parts = unsafe { self.parts.as_mut_ptr().add(start) };
        let header = &mut self.headers[index].msg_hdr;
        header.msg_iov = parts;
        self.slots[index].fit(header);
        self.len += 1;
    }

    /// Joins a message to the previous one, if they may leave together and the kernel can split
    /// them.
    #[inline]
    fn join(&mut self, item: &Outgoing<'_>) -> bool {
        let Some(index) = self.len.checked_sub(1).filter(|_| self.parts_len + 2 <= MAX_PARTS) else {
            return false;
        };
        if !self.slots[index].takes(item) {
            return false;
        }
        self.slots[index].extend(item);
        self.add_parts(item);
        self.slots[index].fit(&mut self.headers[index].msg_hdr);
        true
    }

    #[inline]
    fn add_parts(&mut self, item: &Outgoing<'_>) {
        self.parts[self.parts_len] = to_iovec(item.head);
        self.parts[self.parts_len + 1] = to_iovec(item.tail);
        self.parts_len += 1 + usize::from(!item.tail.is_empty());
    }

    fn clear(&mut self) {
        (self.len, self.parts_len) = (0, 0);
    }

    /// Passes the messages from `first` on to the kernel; returns how many it accepted, at least
    /// one.
    #[inline]
    fn transmit(&mut self, fd: BorrowedFd<'_>, first: usize) -> io::Result<usize> {
        let count = self.len - first;
        debug_assert!(count > 0);
        let headers = &mut self.headers[first..self.len];
        let result = if count == 1 {
            // SAFETY: the header's pointers lead into `self.slots` and `self.parts`, which live and
            // are not touched during the call; its lengths are those of what they point to; the
            // parts point to the bytes of an `Outgoing` that the caller of `send_all` has lent for
            // the whole call. The kernel only reads.
            let sent = unsafe { sys::sendmsg(fd, &raw const headers[0].msg_hdr) };
            if sent < 0 { -1 } else { 1 }
        } else {
            // SAFETY: as above for each of the `count` headers; the kernel writes `msg_len` of
            // each, which is inside the exclusively borrowed `headers`.
            unsafe { sys::sendmmsg(fd, headers.as_mut_ptr(), count) }
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }
}

impl Default for SendScratch {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for SendScratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendScratch").field("capacity", &self.slots.len()).finish_non_exhaustive()
    }
}

// SAFETY: the raw pointers lead into vectors that this value owns and that move with it, or to
// bytes lent for one call of `send_all`; they are followed only during such a call, through `&mut
// self`.
unsafe impl Send for SendScratch {}

/// A [`SendScratch`] for one destination of an unconnected socket, IPv4 or IPv6: for
/// [`UdpSocket::send_all_to`].
#[derive(Debug)]
pub struct SendScratchTo(SendScratch);

impl SendScratchTo {
    /// Allocates arrays for messages to `destination`.
    #[must_use]
    pub fn new(destination: SocketAddr) -> Self {
        Self(SendScratch::aimed(&SockAddr::from(destination)))
    }
}

impl UdpSocket {
    /// Sends one message by one `sendmsg(2)`; returns its size in bytes. Blocks while the send
    /// buffer is full.
    ///
    /// # Errors
    /// Any error of the kernel. With a `segment`: `EINVAL`, `EMSGSIZE` or `EIO` if it cannot split
    /// the message (more than [`MAX_GSO_SEGMENTS`] segments, segment over the path MTU), and
    /// [`io::ErrorKind::Unsupported`] if the socket does not use segmentation;
    /// [`send_all`](Self::send_all) handles all of these.
    #[inline]
    pub fn send_one(&self, item: &Outgoing<'_>) -> io::Result<usize> {
        let mut slot = Slot::empty();
        slot.begin(item, 0);
        if slot.segment != 0 && !self.gso_supported() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut parts = [to_iovec(item.head), to_iovec(item.tail)];
        // SAFETY: `slot` is a live local that is neither moved nor touched until the last use of
        // `header` below.
        let mut header = unsafe { Slot::header(&raw mut slot) };
        header.msg_iov = parts.as_mut_ptr();
        slot_fit(&slot.lengths(), &mut header);
        // SAFETY: the header's pointers lead to `slot`, to `parts` and to the bytes of `item`,
        // which live through the call, with their true lengths.
        unsafe { self.send_message(&header) }
    }

    /// Sends one datagram, unless the send buffer is full.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the send buffer is full; otherwise as for [`send_one`](Self::send_one).
    pub fn send_now(&self, datagram: &[u8], to: SocketAddrV4) -> io::Result<usize> {
        let mut name = sys::to_sockaddr(to);
        let mut part = to_iovec(datagram);
        let mut header = sys::empty_header();
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as _;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        // SAFETY: the header's pointers lead to locals and to `datagram`, which live through the call, with their true
        // lengths; the kernel only reads.
        let sent = unsafe { sys::sendmsg_now(self.as_fd(), &raw const header) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Sends one datagram, gathered from several parts, to the connected peer by one `sendmsg(2)`.
    ///
    /// This is faster than `writev(2)`. Blocks while the send buffer is full.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    #[inline]
    pub fn send_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut header = sys::empty_header();
        // An `IoSlice` is laid out as an `iovec`, as documented; the kernel does not write there.
        header.msg_iov = parts.as_ptr().cast_mut().cast();
        header.msg_iovlen = parts.len() as _;
        // SAFETY: `parts` and what they lead to live through the call; there is no address and
        // there are no control messages.
        unsafe { self.send_message(&header) }
    }

    /// Calls `sendmsg(2)` until no signal interrupts it.
    ///
    /// # Safety
    /// Everything that `header` leads to can be read during the call.
    #[inline]
    unsafe fn send_message(&self, header: &libc::msghdr) -> io::Result<usize> {
        loop {
            // SAFETY: ensured by the caller.
            let sent = unsafe { sys::sendmsg(self.as_fd(), header) };
            if let Ok(sent) = usize::try_from(sent) {
                return Ok(sent);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Sends any number of messages with as few system calls as possible. Blocks while the send
    /// buffer is full.
    ///
    /// Uses `send` for a single datagram to the connected peer, `sendmsg` for any other single message,
    /// `sendmmsg` for up to [`MAX_BATCH`]. A message that fails
    /// never stops the others: refusals are counted in the outcome. A message that the kernel
    /// refuses to split (`UDP_SEGMENT`) is sent again datagram by datagram, and one beyond
    /// [`MAX_GSO_SEGMENTS`] or [`MAX_GSO_BYTES`] is sent as several. Messages with
    /// [`joins`](Outgoing::joins) leave together as one, split by the kernel.
    pub fn send_all<'a, I>(&self, items: I, scratch: &mut SendScratch) -> SendOutcome
    where
        I: IntoIterator<Item: Borrow<Outgoing<'a>>>,
    {
        let mut outcome = SendOutcome::default();
        scratch.clear();
        let mut items = items.into_iter();
        let (first, second) = (items.next(), items.next());
        if let (Some(lone), None) = (&first, &second)
            && let Outgoing { to: None, head, tail: [], segment: 0, type_of_service: None, .. } =
                lone.borrow()
        {
            // The kernel has less to copy and to check than for a message with a header.
            outcome.system_calls = 1;
            match self.send(head) {
                Ok(bytes) => (outcome.datagrams, outcome.bytes) = (1, bytes as u64),
                Err(error) => (outcome.refused, outcome.last_error) = (1, Some(error)),
            }
            return outcome;
        }
        self.send_each(first.into_iter().chain(second).chain(items), scratch, outcome)
    }

    /// As [`send_all`](Self::send_all), to the destination of `scratch`, for an unconnected socket.
    ///
    /// Each `to` is `None`; the kernel refuses a message with its own destination.
    pub fn send_all_to<'a, I>(&self, items: I, scratch: &mut SendScratchTo) -> SendOutcome
    where
        I: IntoIterator<Item: Borrow<Outgoing<'a>>>,
    {
        scratch.0.clear();
        self.send_each(items.into_iter(), &mut scratch.0, SendOutcome::default())
    }

    #[inline]
    fn send_each<'a, T: Borrow<Outgoing<'a>>>(
        &self,
        items: impl Iterator<Item = T>,
        scratch: &mut SendScratch,
        mut outcome: SendOutcome,
    ) -> SendOutcome {
        for item in items {
            let item = item.borrow();
            let len = item.byte_count();
            let stride = self.message_bytes(item.segment);
            if item.joins && self.gso_supported() && scratch.join(item) {
                continue;
            }
            if len <= stride {
                self.enqueue(item, scratch, &mut outcome);
            } else {
                for start in (0..len).step_by(stride) {
                    self.enqueue(&item.part(start, len.min(start + stride)), scratch, &mut outcome);
                }
            }
        }
        self.flush(scratch, &mut outcome);
        outcome
    }

    /// Returns how many bytes, split at `segment`, can be one message.
    #[inline]
    fn message_bytes(&self, segment: u16) -> usize {
        let segment = usize::from(segment);
        if segment == 0 {
            // The kernel refuses an oversized datagram.
            usize::MAX
        } else if self.gso_supported() {
            (MAX_GSO_BYTES / segment).clamp(1, MAX_GSO_SEGMENTS) * segment
        } else {
            segment
        }
    }

    #[inline]
    fn enqueue(&self, item: &Outgoing<'_>, scratch: &mut SendScratch, outcome: &mut SendOutcome) {
        if !scratch.has_room() {
            self.flush(scratch, outcome);
        }
        scratch.push(item);
    }

    /// Sends everything in `scratch` and empties it.
    fn flush(&self, scratch: &mut SendScratch, outcome: &mut SendOutcome) {
        let mut first = 0;
        while first < scratch.len {
            outcome.system_calls += 1;
            match scratch.transmit(self.as_fd(), first) {
                Ok(taken) => {
                    for slot in &scratch.slots[first..first + taken] {
                        outcome.datagrams += slot.datagram_count() as u64;
                        outcome.bytes += slot.bytes as u64;
                    }
                    first += taken;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // An error is always about the first message of a call: if another one had
                    // failed, the call would have returned the number of messages before it.
                    if scratch.slots[first].segment != 0 && refuses_to_cut(&error) {
                        outcome.gso_fallbacks += 1;
                        self.send_uncut(scratch, first, outcome);
                    } else {
                        outcome.refused += scratch.slots[first].datagram_count() as u64;
                        outcome.last_error = Some(error);
                    }
                    first += 1;
                }
            }
        }
        scratch.clear();
    }

    /// Sends the message at `index`, which the kernel refused to split, datagram by datagram.
    #[cold]
    fn send_uncut(&self, scratch: &mut SendScratch, index: usize, outcome: &mut SendOutcome) {
        let slot = &scratch.slots[index];
        let (to, segment, len) = (slot.to, usize::from(slot.segment), slot.bytes);
        let type_of_service = slot.type_of_service;
        let parts = &scratch.parts[slot.parts_start..slot.parts_start + slot.parts_count];
        let make = || scratch.destination.as_deref().map_or_else(SendScratch::new, SendScratch::aimed);
        let fallback = scratch.fallback.get_or_insert_with(|| Box::new(make()));
        fallback.clear();
        for start in (0..len).step_by(segment) {
            // SAFETY: the bytes are those of `Outgoing`s lent for the whole `send_all` during which
            // this slot was filled, and that call is still running.
            let [head, tail] = unsafe { lent(parts, start, len.min(start + segment)) };
            let datagram = Outgoing { to, head, tail, segment: 0, joins: false, type_of_service };
            self.enqueue(&datagram, fallback, outcome);
        }
        self.flush(fallback, outcome);
    }
}

/// Returns whether an error means that the kernel cannot split a message: the segment exceeds the
/// path MTU (EINVAL, later EMSGSIZE), or the route's device or a filter on it does not support it
/// (EIO).
fn refuses_to_cut(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO))
}

fn datagram_count(bytes: usize, segment: u16) -> usize {
    if segment == 0 { 1 } else { bytes.div_ceil(usize::from(segment)).max(1) }
}

/// The memory that a message header points to, except its parts.
struct Slot {
    name: libc::sockaddr_in,
    to: Option<SocketAddrV4>,
    /// Length of the address that the header points to if `to` is `None`; 0: none, the connected
    /// peer.
    unnamed_bytes: usize,
    control: SendControl,
    type_of_service: Option<u8>,
    /// Bytes per datagram if the kernel splits, otherwise 0.
    segment: u16,
    bytes: usize,
    /// Length of its datagrams while more of that length may join; otherwise 0.
    joinable: usize,
    parts_start: usize,
    parts_count: usize,
}

/// The fields of a slot that the kernel reads.
struct Lengths {
    name: usize,
    parts: usize,
    control: usize,
}

impl Slot {
    fn empty() -> Self {
        Self {
            name: sys::EMPTY_SOCKADDR,
            to: None,
            unnamed_bytes: 0,
            control: SendControl::new(),
            type_of_service: None,
            segment: 0,
            bytes: 0,
            joinable: 0,
            parts_start: 0,
            parts_count: 0,
        }
    }

    /// Makes a header whose pointers lead to the slot at `slot`, with lengths of zero and no parts.
    ///
    /// # Safety
    /// `slot` points to a slot. The header may be given to the kernel only while that slot exists.
    unsafe fn header(slot: *mut Self) -> libc::msghdr {
        let mut header = sys::empty_header();
        // SAFETY: `slot` points to a slot, so that its fields have addresses; nothing is read.
        unsafe {
            header.msg_name = (&raw mut (*slot).name).cast();
            header.msg_control = (&raw mut (*slot).control).cast();
        }
        header
    }

    /// Assigns the slot to `item`, whose parts start at `parts_start`.
    #[inline]
    fn begin(&mut self, item: &Outgoing<'_>, parts_start: usize) {
        self.to = item.to;
        if let Some(to) = item.to {
            self.name = sys::to_sockaddr(to);
        }
        self.bytes = item.byte_count();
        (self.parts_start, self.parts_count) = (parts_start, 1 + usize::from(!item.tail.is_empty()));
        // A single datagram needs no splitting.
        self.segment = if self.bytes > usize::from(item.segment) { item.segment } else { 0 };
        self.control.segment.set_segment(self.segment);
        self.type_of_service = item.type_of_service;
        if let Some(type_of_service) = item.type_of_service {
            self.control.set_type_of_service(type_of_service);
        }
        self.joinable = 0;
        if item.joins {
            let datagram = item.datagram_bytes();
            self.joinable = if self.bytes.is_multiple_of(datagram) { datagram } else { 0 };
        }
    }

    /// Returns whether `item` may leave together with the slot's messages: its datagrams have the
    /// same length, or it is the last, shorter one.
    #[inline]
    fn takes(&self, item: &Outgoing<'_>) -> bool {
        let len = item.byte_count();
        let datagram = item.datagram_bytes();
        let is_shorter_end = len < self.joinable && datagram >= len;
        self.joinable != 0
            && (datagram == self.joinable || is_shorter_end)
            && self.to == item.to
            && self.type_of_service == item.type_of_service
            && self.bytes + len <= MAX_GSO_BYTES
            && (self.bytes + len).div_ceil(self.joinable) <= MAX_GSO_SEGMENTS
            && self.joinable <= usize::from(u16::MAX)
    }

    /// Adds `item`, whose parts follow the present ones.
    #[inline]
    fn extend(&mut self, item: &Outgoing<'_>) {
        self.bytes += item.byte_count();
        self.parts_count += 1 + usize::from(!item.tail.is_empty());
        self.segment = self.joinable as u16;
        self.control.segment.set_segment(self.segment);
        if !self.bytes.is_multiple_of(self.joinable) {
            self.joinable = 0;
        }
    }

    #[inline]
    fn lengths(&self) -> Lengths {
        Lengths {
            name: if self.to.is_some() { size_of::<libc::sockaddr_in>() } else { self.unnamed_bytes },
            parts: self.parts_count,
            control: match (self.type_of_service, self.segment) {
                (None, 0) => 0,
                (None, _) => SegmentControl::LEN,
                (Some(_), _) => SendControl::LEN,
            },
        }
    }

    #[inline]
    fn fit(&self, header: &mut libc::msghdr) {
        slot_fit(&self.lengths(), header);
    }

    fn datagram_count(&self) -> usize {
        datagram_count(self.bytes, self.segment)
    }
}

/// Returns the bytes from `start` to `end` of the concatenated parts. They are one datagram in at
/// most two adjacent parts, because each message has two and no datagram is in two messages.
///
/// # Safety
/// The bytes that the parts were made of must live for `'a`.
unsafe fn lent<'a>(parts: &[libc::iovec], start: usize, end: usize) -> [&'a [u8]; 2] {
    let mut found: [&[u8]; 2] = [&[], &[]];
    let (mut at, mut count) = (0, 0);
    for part in parts {
        let (from, to) = (start.max(at), end.min(at + part.iov_len));
        if from < to && count < 2 {
            // SAFETY: the part was made from a slice by `to_iovec`, so pointer and length belong
            // together and the pointer is not null; the caller ensures that it still lives.
            let bytes = unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) };
            found[count] = &bytes[from - at..to - at];
            count += 1;
        }
        at += part.iov_len;
    }
    found
}

/// A part without bytes.
const NO_BYTES: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

#[inline]
fn slot_fit(lengths: &Lengths, header: &mut libc::msghdr) {
    // The types of these fields differ between libcs.
    header.msg_namelen = lengths.name as _;
    header.msg_iovlen = lengths.parts as _;
    header.msg_controllen = lengths.control as _;
}

#[inline]
fn to_iovec(bytes: &[u8]) -> libc::iovec {
    // The kernel only reads through it; the type is shared with receiving, hence `mut`.
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

#[cfg(test)]
mod tests;
