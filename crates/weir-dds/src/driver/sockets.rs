//! The sockets of a participant, on the ports of its participant id.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_rtps::outbox::Outbox;
use weir_rtps::ports;
use weir_udp::{Interface, Outgoing, SocketOptions, UdpError, UdpSocket};

use super::groups::join_on_any;
use super::interfaces::Selected;
use crate::error::{DdsError, Result};
use crate::settings::ParticipantSettings;

/// Most participants of one domain on one host, by the port formula (RTPS 2.5, 9.6.2.3).
const PARTICIPANTS_PER_HOST_MAX: u32 = 120;
/// Requested; the kernel grants at most `net.core.rmem_max`. A hundred participants that discover one send it megabytes.
const META_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// The sockets of discovery.
#[derive(Debug)]
pub(crate) struct MetaSockets {
    pub(crate) unicast: UdpSocket,
    /// Receives what is sent to the domain's multicast group. `None`: multicast is disabled.
    pub(crate) multicast: Option<UdpSocket>,
    /// One per interface, to send to the group.
    senders: Vec<UdpSocket>,
}

/// Opens the sockets for user data and discovery on the ports of the first free participant id.
pub(crate) fn open(
    domain_id: u32,
    settings: &ParticipantSettings,
    selected: &Selected,
) -> Result<(UdpSocket, MetaSockets)> {
    let address = selected.bind_address();
    for id in 0..PARTICIPANTS_PER_HOST_MAX {
        let meta_port = ports::metatraffic_unicast_port(domain_id, id);
        let user_port = ports::user_unicast_port(domain_id, id);
        let Some((meta_port, user_port)) = meta_port.zip(user_port) else { break };
        let Some(unicast) = bind_if_free(&meta_options(SocketAddrV4::new(address, meta_port)))? else {
            continue;
        };
        let user = SocketOptions {
            recv_buffer: Some(settings.receive_buffer),
            send_buffer: Some(settings.send_buffer),
            gro: true,
            timestamps: settings.stage_times,
            ..SocketOptions::new(SocketAddrV4::new(address, user_port))
        };
        let Some(user) = bind_if_free(&user)? else { continue };
        let (multicast, senders) = if settings.multicast {
            (Some(open_multicast(domain_id, selected)?), open_senders(selected)?)
        } else {
            (None, Vec::new())
        };
        return Ok((user, MetaSockets { unicast, multicast, senders }));
    }
    Err(DdsError::OutOfResources(format!(
        "all {PARTICIPANTS_PER_HOST_MAX} participant ids of domain {domain_id} are in use on this host: \
         end some participants, or use another domain id"
    )))
}

fn meta_options(bind: SocketAddrV4) -> SocketOptions {
    SocketOptions { recv_buffer: Some(META_BUFFER_BYTES), ..SocketOptions::new(bind) }
}

/// Returns `None` if the port is in use.
fn bind_if_free(options: &SocketOptions) -> Result<Option<UdpSocket>> {
    match UdpSocket::bind(options) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(network("cannot open a socket", error)),
    }
}

fn open_multicast(domain_id: u32, selected: &Selected) -> Result<UdpSocket> {
    let group = ports::metatraffic_multicast(domain_id)
        .ok_or_else(|| DdsError::BadParameter(format!("domain id {domain_id} has no multicast port")))?;
    let options = SocketOptions {
        reuse_address: true,
        ..meta_options(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, group.port()))
    };
    let socket =
        UdpSocket::bind(&options).map_err(|error| network("cannot open the multicast socket", error))?;
    join_on_any(&socket, *group.ip(), selected.interfaces.iter().map(|interface| interface.address))
        .map_err(|error| network("cannot join the discovery group on any interface", error))?;
    Ok(socket)
}

fn open_senders(selected: &Selected) -> Result<Vec<UdpSocket>> {
    let open = |interface: &Interface| {
        let options = SocketOptions {
            multicast_interface: Some(interface.address),
            multicast_loop: true,
            ..SocketOptions::new(SocketAddrV4::new(interface.address, 0))
        };
        UdpSocket::bind(&options).map_err(|error| network("cannot open a socket", error))
    };
    selected.interfaces.iter().map(open).collect()
}

fn network(what: &str, error: UdpError) -> DdsError {
    DdsError::network(what, error)
}

impl MetaSockets {
    /// Sends discovery messages: to the group from every interface, to other addresses from the
    /// unicast socket.
    ///
    /// A refused datagram is ignored, because discovery announces everything again later.
    pub(crate) fn send(&self, outbox: &Outbox) {
        outbox.for_each_datagram(|destinations, datagram| {
            for to in destinations.iter() {
                let outgoing = Outgoing::datagram(Some(*to), datagram);
                if to.ip().is_multicast() {
                    self.senders.iter().for_each(|sender| _ = sender.send_one(&outgoing));
                } else {
                    let _ = self.unicast.send_one(&outgoing);
                }
            }
        });
    }
}
