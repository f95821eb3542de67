//! What the protocol needs of a network stack and a clock, where there is no Linux.
//!
//! Implement [`Driver`] for the stack of the system, and give it to a [`Station`](crate::station::Station), the loop
//! around the cores. Nothing here waits, and no driver has to allocate: a datagram that is sent is passed as the slices
//! that it consists of, and one that is received is written into a buffer of the station.
//!
//! `weir-dds` has a driver of its own for Linux, with system calls for many datagrams at a time.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::time::Time;

/// A socket of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// Discovery by unicast: the first address of
    /// [`ParticipantConfig::metatraffic_unicast`](crate::participant::ParticipantConfig::metatraffic_unicast).
    Metatraffic,
    /// Discovery by multicast: receives at the port of the group that is joined, and sends nothing.
    Group,
    /// User data: the first address of
    /// [`ParticipantConfig::default_unicast`](crate::participant::ParticipantConfig::default_unicast).
    User,
}

/// The consecutive parts of a datagram.
pub type Parts<'a> = [&'a [u8]; 2];

/// Sockets and time.
pub trait Driver {
    /// Why the stack does not work. A datagram that cannot be sent now, because a queue is full or an address is not
    /// resolved yet, is no error: it is lost, and the protocol repairs it.
    type Error;

    /// Returns the time of a monotonic clock, nanoseconds since any start but 0.
    fn now(&mut self) -> Time;

    /// Returns the length of the longest datagram that the stack sends and receives, in bytes: by default, what a
    /// packet of Ethernet holds. Longer samples are sent in fragments.
    ///
    /// Other engines may send datagrams of up to 65 507 bytes. A stack that assembles IP fragments has to say so here:
    /// the buffer of [`receive`](Self::receive) is that long.
    fn datagram_max(&self) -> usize {
        1_472
    }

    /// Sends a datagram from a socket. It is no longer than [`datagram_max`](Self::datagram_max).
    ///
    /// # Errors
    /// When the stack does not work.
    fn send(&mut self, from: Port, to: SocketAddrV4, datagram: Parts<'_>) -> Result<(), Self::Error>;

    /// Receives the next datagram of a socket into `buffer`. Returns its length and where it is from; `None`: there is
    /// none. A datagram that is longer than the buffer is dropped.
    ///
    /// # Errors
    /// When the stack does not work.
    fn receive(&mut self, at: Port, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddrV4)>, Self::Error>;

    /// Receives at [`Port::Group`] what is sent to this group, too.
    ///
    /// # Errors
    /// When the group cannot be joined.
    fn join_multicast(&mut self, group: Ipv4Addr) -> Result<(), Self::Error>;
}
