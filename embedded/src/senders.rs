//! The sockets that send.
//!
//! smoltcp asks for the hardware address of a destination when its datagram is the first in the queue of a socket.
//! Until the host answers, all datagrams behind it wait, whatever their destination. A host that is gone, or an address
//! that was announced wrongly, would stop all others. So each destination whose address is not known yet has a socket
//! of its own. When there are more of them than sockets, the one that has waited for longest loses its datagrams.

use core::net::{Ipv4Addr, SocketAddrV4};

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{Socket, udp};
use smoltcp::wire::{IpAddress, IpEndpoint};
use weir_rtps::driver::Parts;

use crate::{copy, queue};

/// The sockets.
pub(crate) struct Senders {
    sockets: [Sender; COUNT],
    /// Counts datagrams: what waits for longest has the lowest number.
    count: u64,
}

/// A socket, and what waits in it.
#[derive(Clone, Copy)]
struct Sender {
    handle: SocketHandle,
    /// The port that it sends from; 0: none yet.
    port: u16,
    host: Ipv4Addr,
    /// When the first of them was queued.
    since: u64,
    queued: u64,
}

/// What has become of a datagram.
pub(crate) enum Sent {
    /// It leaves, now or when its destination has answered. `unresolved`: so many others were dropped for it.
    Queued { unresolved: u64 },
    /// There is no room in the queue of its destination.
    Full,
    /// Nothing can be sent to this address.
    Unreachable,
}

impl Senders {
    pub(crate) fn new(sockets: &mut SocketSet<'static>, datagram_max: usize) -> Self {
        let sockets = [(); COUNT].map(|()| Sender {
            handle: sockets.add(udp::Socket::new(queue(0, 0), queue(PACKETS, datagram_max))),
            port: 0,
            host: Ipv4Addr::UNSPECIFIED,
            since: 0,
            queued: 0,
        });
        Self { sockets, count: 0 }
    }

    /// Queues a datagram from a port.
    pub(crate) fn send(
        &mut self,
        sockets: &mut SocketSet<'static>,
        port: u16,
        to: SocketAddrV4,
        datagram: Parts<'_>,
    ) -> Sent {
        for sender in &mut self.sockets {
            if sockets.get::<udp::Socket<'_>>(sender.handle).send_queue() == 0 {
                sender.queued = 0;
            }
        }
        // The socket in which others wait for the same host, one in which nothing waits, or the one that waits most.
        let rank = |sender: &Sender| match sender.queued {
            0 => (1, u64::from(sender.port != port)),
            _ if (sender.port, sender.host) == (port, *to.ip()) => (0, 0),
            _ => (2, sender.since),
        };
        let [first, rest @ ..] = &mut self.sockets;
        let sender = rest.iter_mut().fold(first, |best, it| if rank(it) < rank(best) { it } else { best });
        let is_taken = rank(sender).0 == 2;
        let unresolved = if is_taken { core::mem::take(&mut sender.queued) } else { 0 };
        if is_taken || sender.port != port {
            // A socket that is added anew waits for no host. Closing it empties its queue.
            let Socket::Udp(mut socket) = sockets.remove(sender.handle);
            socket.close();
            sender.port = if socket.bind(port).is_ok() { port } else { 0 };
            sender.handle = sockets.add(socket);
        }
        let socket = sockets.get_mut::<udp::Socket<'_>>(sender.handle);
        self.count += 1;
        if sender.queued == 0 {
            (sender.host, sender.since) = (*to.ip(), self.count);
        }
        let endpoint = IpEndpoint::new(IpAddress::Ipv4(*to.ip()), to.port());
        match socket.send(datagram[0].len() + datagram[1].len(), endpoint) {
            Ok(room) => {
                copy(datagram, room);
                sender.queued += 1;
                Sent::Queued { unresolved }
            }
            Err(udp::SendError::BufferFull) => Sent::Full,
            Err(udp::SendError::Unaddressable) => Sent::Unreachable,
        }
    }
}

/// Destinations that may wait at a time.
pub(crate) const COUNT: usize = 4;
/// Datagrams that wait for the same destination.
const PACKETS: usize = 8;
