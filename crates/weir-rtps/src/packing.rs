//! Packs a participant's messages for the same destination into few datagrams.
//!
//! A new participant learns of all endpoints from several writers, each with a HEARTBEAT of its own, and so are its
//! endpoints by those that they match. In a datagram each, a hundred participants that start together overrun each
//! other's sockets.

use std::collections::BTreeMap;

use weir_wire::{GuidPrefix, InfoDestination, push};

use crate::outbox::{Destinations, Outbox};

/// Messages to be packed, in the order in which their datagrams leave.
#[derive(Debug, Default)]
pub struct Packing {
    datagrams: Vec<(Destinations, Vec<u8>)>,
    /// The last datagram for each destination.
    last: BTreeMap<Destinations, usize>,
}

impl Packing {
    /// Moves the messages of `from` to `to`. All have the same RTPS header.
    ///
    /// For each destination they stay in order. A datagram leaves when its first message would have left.
    pub fn pack(&mut self, from: &mut Outbox, to: &mut Outbox) {
        from.for_each_datagram(|destinations, message| self.add(destinations, message));
        from.clear();
        self.last.clear();
        for (destinations, datagram) in self.datagrams.drain(..) {
            to.message(&destinations, |out| out.extend_from_slice(&datagram));
        }
    }

    fn add(&mut self, to: &Destinations, message: &[u8]) {
        let submessages = message.get(HEADER_LEN..).unwrap_or_default();
        if let Some(&last) = self.last.get(to) {
            let datagram = &mut self.datagrams[last].1;
            if datagram.len() + INFO_DST_LEN + submessages.len() <= DATAGRAM_MAX {
                if submessages.first() != Some(&INFO_DST) {
                    // It is for all participants, whatever the one before was for (RTPS 2.5, 8.3.8.7).
                    push(datagram, &InfoDestination { prefix: GuidPrefix::UNKNOWN });
                }
                datagram.extend_from_slice(submessages);
                return;
            }
        }
        self.last.insert(to.clone(), self.datagrams.len());
        self.datagrams.push((to.clone(), message.to_vec()));
    }
}

const HEADER_LEN: usize = 20;
const INFO_DST_LEN: usize = 16;
const INFO_DST: u8 = 0x0e;
/// Longest packed datagram, in bytes: unfragmented on Ethernet, also through common tunnels. A longer message leaves by
/// itself.
const DATAGRAM_MAX: usize = 1344;

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddrV4};
    use std::sync::Arc;

    use super::*;

    fn packed(messages: &[(u16, &[u8])]) -> Vec<(u16, usize)> {
        let (mut from, mut to) = (Outbox::new(), Outbox::new());
        for (port, submessages) in messages {
            let address: Destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port)]);
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
    }
}
