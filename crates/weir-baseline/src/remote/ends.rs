//! The sockets of a measurement.

use std::net::{IpAddr, SocketAddr};

use weir_measure::{interface_of, on_interface, with_port};
use weir_results::SocketBuffers;
use weir_udp::{MulticastInterface, SocketOptions, UdpError, UdpSocket};

use super::point::Point;

/// One end of a measurement: its sockets, one for each flow.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) sockets: Vec<UdpSocket>,
    /// Where an unconnected socket sends to.
    pub(super) to: Vec<Option<SocketAddr>>,
    pub(super) buffers: SocketBuffers,
    /// The group of multicast, and the number of the interface that leads to it.
    group: Option<(IpAddr, Option<u32>)>,
    role: Role,
}

impl Ends {
    /// Opens the sockets on this end's address of the control connection. They send only to the
    /// other end's address of the control connection, or to a group that the client names.
    pub(super) fn open(point: &Point, local: SocketAddr, role: Role) -> Result<Self, UdpError> {
        let receives = if role == Role::Client { point.reverse } else { point.forward };
        let interface = point.multicast.and_then(|_| interface_of(local.ip()));
        let index = interface.map(|(_, index)| index);
        let group = point.multicast.map(|group| (group, index));
        let joined = point.multicast.filter(|_| role != Role::Client);
        let bind = joined.map_or(with_port(local, 0), |group| on_interface(group, 0, index));
        let options = SocketOptions {
            recv_buffer: point.buffer_bytes,
            send_buffer: point.buffer_bytes,
            gro: point.gro && receives,
            type_of_service: point.dscp.map(|dscp| dscp << 2),
            multicast_interface: match (point.multicast, local.ip()) {
                (Some(_), IpAddr::V4(ip)) => Some(ip),
                _ => None,
            },
            multicast_interface_index: point.multicast.and(index),
            multicast_ttl: point.multicast_ttl.into(),
            force_buffers: role != Role::Server { is_trusted: false },
            ..SocketOptions::new(bind)
        };
        let sockets: Vec<UdpSocket> =
            (0..point.flows).map(|_| UdpSocket::bind(&options)).collect::<Result<_, _>>()?;
        for socket in &sockets {
            match (joined, local.ip()) {
                (Some(IpAddr::V4(group)), IpAddr::V4(ip)) => {
                    socket.join_multicast(group, MulticastInterface::Address(ip))?;
                }
                (Some(IpAddr::V6(group)), _) => socket.join_multicast_v6(group, index.unwrap_or(0))?,
                _ => {}
            }
        }
        let asked = point.buffer_bytes.map(|bytes| bytes as u64);
        let buffers = SocketBuffers {
            receive_asked: asked,
            receive_granted: sockets.first().map(|socket| socket.granted_recv_buffer() as u64),
            send_asked: asked,
            send_granted: sockets.first().map(|socket| socket.granted_send_buffer() as u64),
        };
        let to = vec![None; sockets.len()];
        Ok(Self { sockets, to, buffers, group, role })
    }

    /// Their ports, by flow.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.sockets.iter().map(|socket| socket.local_address().port()).collect()
    }

    /// Sets the other end's ports as destinations.
    pub(super) fn connect(&mut self, point: &Point, peer: SocketAddr, ports: &[u16]) -> Result<(), UdpError> {
        if self.group.is_some() && self.role != Role::Client {
            return Ok(());
        }
        for ((socket, to), port) in self.sockets.iter().zip(&mut self.to).zip(ports) {
            let address = match self.group {
                Some((group, index)) => on_interface(group, *port, index),
                None => with_port(peer, *port),
            };
            if point.connected {
                socket.connect(address)?;
            } else {
                *to = Some(address);
            }
        }
        Ok(())
    }

    /// Datagrams that the sockets dropped so far.
    pub(super) fn drops(&self) -> Option<u64> {
        self.sockets.iter().map(|socket| socket.kernel_drops().ok().map(u64::from)).sum()
    }
}

/// Which side of the control connection an end is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server {
        /// The client knows the secret, so it may exceed the host's limit of buffer sizes, if the server may.
        is_trusted: bool,
    },
}
