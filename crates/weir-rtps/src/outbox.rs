//! The output of a state machine, in a form that can be sent after its lock is released.
//!
//! Data are slices of history blocks, never copied. Control messages (HEARTBEAT, ACKNACK, GAP,
//! discovery) are small and are written into one scratch buffer. An outbox is reused, so that
//! nothing is allocated after warm-up.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::ops::Range;

use weir_wire::submessage::id;

use crate::block::BlockSlice;
use crate::config;

/// The destination addresses of a message. Shared: created when endpoints match, not per message.
pub type Destinations = Arc<[SocketAddrV4]>;

/// Messages to be sent, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The bytes that are not in a history block.
    pub scratch: Vec<u8>,
    /// One entry per send.
    pub items: Vec<Item>,
    /// The addresses of the last removed item: the next one usually has the same, and comparing is
    /// cheaper than reference counting.
    kept: Option<Destinations>,
}

/// One send: the bytes of `slice`, then those of `scratch`, as one datagram or as several of equal
/// length.
#[derive(Debug, Clone)]
pub struct Item {
    /// The destinations.
    pub to: Destinations,
    /// Consecutive datagrams in a history block.
    pub slice: Option<BlockSlice>,
    /// The bytes after the slice, in [`Outbox::scratch`].
    pub scratch: Range<usize>,
    /// Whether the scratch bytes precede the slice instead: the headers of a fragment.
    pub is_scratch_first: bool,
    /// Length of each datagram except the last, which may be shorter, in bytes; 0 for a single
    /// datagram.
    pub segment: u16,
    /// Number of datagrams, at most [`config::SEGMENTS_MAX`].
    pub datagrams: u8,
    /// Number of samples in them.
    pub samples: u16,
    /// Whether the datagrams fit the path MTU, so that they may leave by one segmented send with
    /// adjacent ones.
    pub joins: bool,
    /// The type of service of the IPv4 packets: DSCP and ECN.
    pub type_of_service: u8,
}

impl Item {
    /// One datagram: a sample, or a control message behind no sample.
    #[inline]
    pub fn of(to: Destinations, slice: Option<BlockSlice>) -> Self {
        Self {
            to,
            slice,
            scratch: 0..0,
            is_scratch_first: false,
            segment: 0,
            datagrams: 1,
            samples: 0,
            joins: false,
            type_of_service: 0,
        }
    }

    /// Adds a datagram that is as long as those of the slice, `len` bytes, and follows them in
    /// their block. `false`, and nothing has happened: one send takes no more.
    #[inline]
    pub(crate) fn add_datagram(&mut self, len: u32, samples: u16) -> bool {
        // One segment and 64 bytes are left for a HEARTBEAT.
        let bytes = (usize::from(self.datagrams) + 1) * len as usize;
        let Some(slice) = &mut self.slice else { return false };
        if usize::from(self.datagrams) >= config::SEGMENTS_MAX - 1 || bytes > config::SEGMENTED_MAX_BYTES - 64
        {
            return false;
        }
        slice.extend(len);
        self.segment = len as u16;
        self.datagrams += 1;
        self.samples += samples;
        true
    }
}

impl Outbox {
    /// Creates an empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves memory for so many messages, and for so many bytes that are in no history block.
    #[must_use]
    pub fn with_room(messages: usize, bytes: usize) -> Self {
        Self { scratch: Vec::with_capacity(bytes), items: Vec::with_capacity(messages), kept: None }
    }

    /// Removes the messages and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.kept = self.items.pop().map(|item| item.to).or(self.kept.take());
        // Mostly there is no further one, which costs less than a call that drops none.
        while self.items.pop().is_some() {}
        self.scratch.clear();
    }

    /// Returns memory that a burst has left, such as announcements to hundreds of participants. For outboxes of
    /// discovery: those of samples keep theirs.
    pub fn shrink(&mut self) {
        shrink(&mut self.scratch);
        shrink(&mut self.items);
    }

    /// Returns whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns a reference to these addresses.
    #[inline]
    pub(crate) fn reference(&mut self, to: &Destinations) -> Destinations {
        match self.kept.take() {
            Some(kept) if Arc::ptr_eq(&kept, to) => kept,
            _ => Arc::clone(to),
        }
    }

    /// Appends one control datagram; `write` appends its bytes to the given buffer.
    pub fn message(&mut self, to: &Destinations, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.scratch.len();
        write(&mut self.scratch);
        let scratch = start..self.scratch.len();
        let to = self.reference(to);
        self.items.push(Item { scratch, joins: true, ..Item::of(to, None) });
    }

    /// Adds to the last message; `write` appends the bytes to the given buffer.
    pub(crate) fn extend_last(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let end = self.scratch.len();
        if let Some(item) = self.items.last_mut().filter(|item| item.scratch.end == end) {
            write(&mut self.scratch);
            item.scratch.end = self.scratch.len();
        }
    }

    /// Makes the last message, if it is shorter, `len` bytes long by a PAD submessage.
    pub(crate) fn pad_last(&mut self, len: usize) {
        let Some(item) = self.items.last_mut() else { return };
        let pad_len = len.saturating_sub(item.scratch.len()) / 4 * 4;
        if let Some(body_len) = pad_len.checked_sub(4) {
            let [low, high] = (body_len as u16).to_le_bytes();
            self.scratch.extend([id::PAD, 1, low, high]);
            self.scratch.resize(self.scratch.len() + body_len, 0);
            item.scratch.end = self.scratch.len();
        }
    }

    /// Returns the two parts of an item, to be sent in sequence.
    #[inline]
    pub fn parts<'a>(&'a self, item: &'a Item) -> (&'a [u8], &'a [u8]) {
        let slice = item.slice.as_ref().map_or(&[][..], BlockSlice::bytes);
        let scratch = &self.scratch[item.scratch.clone()];
        if item.is_scratch_first { (scratch, slice) } else { (slice, scratch) }
    }

    /// Calls `each` with a copy of every datagram of every item: for tests, simulations and traffic
    /// whose speed does not matter.
    pub fn for_each_datagram(&self, mut each: impl FnMut(&Destinations, &[u8])) {
        self.for_each_with(|item, datagram| each(&item.to, datagram));
    }

    /// The same with the item that the datagram is of.
    pub fn for_each_with(&self, mut each: impl FnMut(&Item, &[u8])) {
        let mut whole = Vec::new();
        for item in &self.items {
            let (head, tail) = self.parts(item);
            whole.clear();
            whole.extend_from_slice(head);
            whole.extend_from_slice(tail);
            if item.segment == 0 {
                each(item, &whole);
            } else {
                whole.chunks(item.segment as usize).for_each(|datagram| each(item, datagram));
            }
        }
    }
}

/// Returns the memory of an empty list, if it is more than [`config::DISCOVERY_BUFFER_BYTES`].
#[inline(never)]
pub(crate) fn shrink<T>(list: &mut Vec<T>) {
    if list.is_empty() && list.capacity() * size_of::<T>() > config::DISCOVERY_BUFFER_BYTES {
        list.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::block::Block;

    #[test]
    fn addresses_that_were_kept_are_used_for_the_same_ones_only() {
        let to = |port| -> Destinations { Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)]) };
        let (one, other) = (to(1), to(2));
        let mut outbox = Outbox::new();
        for round in [&one, &one, &other, &one] {
            outbox.message(round, |out| out.push(0));
            outbox.message(&other, |out| out.push(0));
            let sent: Vec<_> = outbox.items.iter().map(|item| Arc::clone(&item.to)).collect();
            assert!(Arc::ptr_eq(&sent[0], round) && Arc::ptr_eq(&sent[1], &other));
            outbox.clear();
            assert!(outbox.is_empty());
        }
        drop(outbox);
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (1, 1));
    }

    #[test]
    fn memory_of_a_burst_is_returned_and_that_of_usual_messages_is_kept() {
        let to: Destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1)]);
        let mut outbox = Outbox::new();
        let mut capacity_after = |bytes: usize| {
            outbox.message(&to, |out| out.resize(bytes, 0));
            outbox.clear();
            outbox.shrink();
            outbox.scratch.capacity()
        };
        assert!(capacity_after(1000) >= 1000);
        assert_eq!(capacity_after(2 * config::DISCOVERY_BUFFER_BYTES), 0);
    }

    #[test]
    fn datagrams_are_cut_at_the_segment_length_and_the_tail_follows_the_slice() {
        let mut block = Block::new(8);
        Arc::get_mut(&mut block).unwrap().bytes_mut().copy_from_slice(b"aaaabbbb");
        let to: Destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1)]);
        let mut outbox = Outbox::new();
        outbox.message(&to, |out| out.extend_from_slice(b"hi"));
        let slice = Some(BlockSlice::new(block, 0, 8));
        outbox.scratch.extend_from_slice(b"end");
        outbox.items.push(Item {
            scratch: 2..5,
            segment: 4,
            datagrams: 3,
            samples: 2,
            ..Item::of(to, slice)
        });
        let mut seen = Vec::new();
        outbox.for_each_datagram(|_, datagram| seen.push(datagram.to_vec()));
        assert_eq!(seen, [&b"hi"[..], b"aaaa", b"bbbb", b"end"]);
    }
}
