//! Packs a participant's messages for the same destination into few datagrams.
//!
//! A new participant learns of all endpoints from several writers, each of which sends it a HEARTBEAT. Its own
//! endpoints get HEARTBEATs from the writers that they match. With one datagram per message, a hundred participants
//! that start together would overrun each other's sockets.

use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::ops::Range;

use weir_wire::{GuidPrefix, InfoDestination, push};

use crate::outbox::{Destinations, Outbox, shrink};

/// Messages to be packed.
#[derive(Debug, Default)]
pub struct Packing {
    /// Where each message goes, and where it lies in `bytes`, in the order in which they were added.
    messages: Vec<(Destinations, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Packing {
    /// The memory of a message in the list.
    pub(crate) const MESSAGE_BYTES: usize = size_of::<(Destinations, Range<usize>)>();

    /// Reserves memory for so many messages and bytes.
    pub(crate) fn with_room(messages: usize, bytes: usize) -> Self {
        Self { messages: Vec::with_capacity(messages), bytes: Vec::with_capacity(bytes) }
    }

    /// Moves the messages of `from` to `to`. Those with the same RTPS header are packed.
    ///
    /// For each destination they stay in order. One destination follows the other.
    pub fn pack(&mut self, from: &mut Outbox, to: &mut Outbox) {
        for item in &from.items {
            let (head, tail) = from.parts(item);
            let start = self.bytes.len();
            self.bytes.extend_from_slice(head);
            self.bytes.extend_from_slice(tail);
            let len = if item.segment == 0 { head.len() + tail.len() } else { usize::from(item.segment) };
            for at in (start..self.bytes.len()).step_by(len.max(1)) {
                self.messages.push((item.to.clone(), at..(at + len).min(self.bytes.len())));
            }
        }
        from.clear();
        self.move_to(to);
    }

    /// Returns memory that a burst has left.
    pub fn shrink(&mut self) {
        shrink(&mut self.messages);
        shrink(&mut self.bytes);
    }

    /// Packs the messages of an outbox without samples. Those with samples stay as they are: their bytes are not
    /// copied. Allocates nothing after warm-up.
    #[inline]
    pub fn pack_answers(&mut self, outbox: &mut Outbox) {
        if outbox.items.len() > 1 && outbox.items.iter().all(|item| item.slice.is_none()) {
            self.pack_messages(outbox);
        }
    }

    fn pack_messages(&mut self, outbox: &mut Outbox) {
        self.bytes.extend_from_slice(&outbox.scratch);
        self.messages.extend(outbox.items.drain(..).map(|item| (item.to, item.scratch)));
        outbox.clear();
        self.move_to(outbox);
    }

    fn move_to(&mut self, out: &mut Outbox) {
        self.messages.sort_unstable_by(|a, b| (&a.0, a.1.start).cmp(&(&b.0, b.1.start)));
        for messages in self.messages.chunk_by(|a, b| a.0 == b.0) {
            let mut rest = messages.iter().map(|(_, range)| &self.bytes[range.clone()]).peekable();
            let to = &messages[0].0;
            let len_max = datagram_max(to);
            while let Some(first) = rest.next() {
                out.message(to, |datagram| {
                    let start = datagram.len();
                    datagram.extend_from_slice(first);
                    let fits = |len: usize, message: &[u8]| {
                        header(message) == header(first) && len + added_len(message) <= len_max
                    };
                    while let Some(next) = rest.next_if(|next| fits(datagram.len() - start, next)) {
                        append(datagram, submessages(next));
                    }
                });
            }
        }
        self.messages.clear();
        self.bytes.clear();
    }
}

/// Appends submessages that began a message of their own.
fn append(datagram: &mut Vec<u8>, submessages: &[u8]) {
    if submessages.first() != Some(&INFO_DST) {
        // It is for all participants, whatever the one before was for (RTPS 2.5, 8.3.8.7).
        push(datagram, &InfoDestination { prefix: GuidPrefix::UNKNOWN });
    }
    datagram.extend_from_slice(submessages);
}

fn header(message: &[u8]) -> &[u8] {
    message.get(..HEADER_LEN).unwrap_or_default()
}

fn submessages(message: &[u8]) -> &[u8] {
    message.get(HEADER_LEN..).unwrap_or_default()
}

/// Returns how much longer a message makes a datagram, at most.
fn added_len(message: &[u8]) -> usize {
    INFO_DST_LEN + submessages(message).len()
}

/// Returns the length of the longest packed datagram.
fn datagram_max(to: &[SocketAddrV4]) -> usize {
    if to.iter().all(|address| address.ip().is_loopback()) { LOOPBACK_MAX } else { DATAGRAM_MAX }
}

const HEADER_LEN: usize = 20;
const INFO_DST_LEN: usize = 16;
const INFO_DST: u8 = 0x0e;
/// Longest packed datagram, in bytes: unfragmented on Ethernet, also through common tunnels. A longer message leaves by
/// itself.
const DATAGRAM_MAX: usize = 1344;
/// The same on the loopback interface, which fragments nothing: with the kernel's headers, a buffer of 16 KiB. The
/// announcements of fifty endpoints fit.
const LOOPBACK_MAX: usize = 15_872;

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use core::net::Ipv4Addr;

    use super::*;
    use crate::block::{Block, BlockSlice};
    use crate::outbox::Item;

    fn packed(messages: &[(u16, &[u8])]) -> Vec<(u16, usize)> {
        packed_for(Ipv4Addr::new(10, 0, 0, 1), messages)
    }

    fn packed_for(host: Ipv4Addr, messages: &[(u16, &[u8])]) -> Vec<(u16, usize)> {
        let (mut from, mut to) = (Outbox::new(), Outbox::new());
        for (port, submessages) in messages {
            let address: Destinations = Arc::from([SocketAddrV4::new(host, *port)]);
            from.message(&address, |out| {
                out.extend_from_slice(&[0; HEADER_LEN]);
                out.extend_from_slice(submessages);
            });
        }
        Packing::default().pack(&mut from, &mut to);
        assert!(from.is_empty());
        let mut sent = Vec::new();
        to.for_each_datagram(|to, bytes| sent.push((to[0].port(), bytes.len())));
        sent
    }

    #[test]
    fn messages_for_one_destination_share_a_datagram() {
        let directed = [INFO_DST; 30];
        assert_eq!(packed(&[(1, &directed), (2, &directed), (1, &directed)]), [(1, 80), (2, 50)]);
    }

    #[test]
    fn a_message_for_everybody_is_not_taken_for_a_directed_one() {
        assert_eq!(packed(&[(1, &[INFO_DST; 30]), (1, &[0x15; 30])]), [(1, 50 + 16 + 30)]);
    }

    #[test]
    fn a_full_datagram_is_followed_by_another() {
        let long = [INFO_DST; 1000];
        assert_eq!(packed(&[(1, &long), (1, &long), (1, &[INFO_DST; 100])]), [(1, 1020), (1, 1120)]);
        assert_eq!(packed(&[(1, &[0x15; 5000]), (1, &[0x15; 10])]), [(1, 5020), (1, 30)]);
        let sent = packed_for(Ipv4Addr::LOCALHOST, &[(1, &long), (1, &long), (1, &[INFO_DST; 14_000])]);
        assert_eq!(sent, [(1, 2020), (1, 14_020)]);
    }

    #[test]
    fn answers_are_packed_unless_they_hold_samples() {
        let to: Destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1)]);
        let (mut packing, mut outbox) = (Packing::default(), Outbox::new());
        for _ in 0..2 {
            for _ in 0..3 {
                outbox.message(&to, |out| out.extend_from_slice(&[INFO_DST; 50]));
            }
            packing.pack_answers(&mut outbox);
            assert_eq!((outbox.items.len(), outbox.scratch.len()), (1, 110));
            outbox.clear();
        }
        let sample = BlockSlice::new(Block::new(8), 0, 8);
        outbox.items.push(Item::of(to.clone(), Some(sample)));
        outbox.message(&to, |out| out.extend_from_slice(&[INFO_DST; 50]));
        packing.pack_answers(&mut outbox);
        assert_eq!(outbox.items.len(), 2);
    }
}
