//! Memberships of a socket in a multicast group, one per interface.

use std::net::Ipv4Addr;

use weir_udp::{UdpError, UdpSocket};

/// An interface: its index, and one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: u32,
    pub(crate) address: Ipv4Addr,
}

/// The interfaces on which a socket has joined a group.
#[derive(Debug, Default)]
pub(super) struct Memberships(Vec<Place>);

impl Memberships {
    /// Joins `group` on the interfaces at `places`, and leaves it on all others.
    ///
    /// A membership ends with its device, so an interface with another index is another interface.
    /// One with another address is joined again, because multicast routers ignore reports from
    /// addresses outside their network.
    ///
    /// # Errors
    /// The last failure. An interface without multicast does no harm if another one supports it:
    /// see [`Memberships::is_empty`].
    pub(super) fn renew(
        &mut self,
        socket: &UdpSocket,
        group: Ipv4Addr,
        places: &[Place],
    ) -> Result<(), UdpError> {
        self.0.retain(|known| {
            let stays = places.contains(known);
            if !stays {
                // Fails if the interface is gone. The socket's limit of memberships counts it until then.
                let _ = socket.leave_multicast(group, known.index);
            }
            stays
        });
        let mut result = Ok(());
        for place in places {
            if !self.0.contains(place) {
                match socket.join_multicast(group, place.index) {
                    Ok(()) => self.0.push(*place),
                    Err(error) => result = Err(error),
                }
            }
        }
        result
    }

    /// Returns whether the group is joined nowhere.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use weir_udp::{Outgoing, RecvBatch, SocketOptions, Wait};

    use super::*;

    const LO: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn lo() -> Place {
        let interfaces = weir_udp::interfaces().unwrap();
        let index = interfaces.iter().find(|it| it.address == LO).unwrap().index;
        Place { index, address: LO }
    }

    #[test]
    fn memberships_follow_the_interfaces() {
        let group = Ipv4Addr::new(239, 255, 77, 31);
        let socket = UdpSocket::bind(&SocketOptions::new(SocketAddrV4::new(group, 0))).unwrap();
        let to = SocketAddrV4::new(group, socket.local_addr().port());
        let options =
            SocketOptions { multicast_interface: Some(LO), ..SocketOptions::new(SocketAddrV4::new(LO, 0)) };
        let sender = UdpSocket::bind(&options).unwrap();
        let mut batch = RecvBatch::new(2);
        // Loopback delivers before the send returns.
        let mut arrives = || {
            sender.send_one(&Outgoing::datagram(Some(to), b"x")).unwrap();
            socket.recv_batch(&mut batch, 2, Wait::DontWait).unwrap()
        };
        let mut memberships = Memberships::default();
        let elsewhere = Place { index: u32::MAX, address: LO };
        for (places, is_complete, count) in [
            (&[lo()][..], true, 1),
            (&[lo()], true, 1),
            (&[Place { address: Ipv4Addr::new(127, 0, 0, 2), ..lo() }], true, 1),
            (&[], true, 0),
            (&[elsewhere, lo()], false, 1),
            (&[elsewhere], false, 0),
        ] {
            assert_eq!(memberships.renew(&socket, group, places).is_ok(), is_complete, "{places:?}");
            assert_eq!((arrives(), memberships.0.len()), (count, count), "{places:?}");
        }
        assert!(memberships.is_empty());
    }
}
