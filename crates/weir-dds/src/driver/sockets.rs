//! The sockets of a participant, on the ports of its participant id.
//!
//! They live as long as the participant, whatever happens to the host's addresses. Therefore they are bound to all
//! addresses, and not to one that could be replaced. If the settings name interfaces, a socket filter drops what was
//! not sent to an address of theirs. The kernel replaces the filter in one step when the addresses change. The
//! alternative is one socket per address. Each would have to be polled, also on the path of a sample, and closed while
//! other threads use it.
//!
//! Two cases need no filter. Loopback, and an address that the settings name by itself, cannot be replaced, so the
//! sockets are bound to it. Without named interfaces, everything may arrive.
//!
//! The multicast sockets are bound to their group, so they receive nothing sent to other addresses. `IP_MULTICAST_ALL`
//! is off, so they receive nothing from interfaces that they have not joined.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_rtps::outbox::Outbox;
use weir_rtps::ports;
use weir_udp::{Fragments, SocketOptions, UdpError, UdpSocket};

use super::interfaces::{Choice, Selected};
use super::memberships::{Memberships, Place};
use crate::error::{DdsError, Result};
use crate::settings::ParticipantSettings;

/// Participants of one domain on one host whose ports follow from the port formula (RTPS 2.5, 9.6.2.3). The ports of
/// later ones would be those of the next domain.
const PARTICIPANT_IDS: u32 = 120;
/// Requested; the kernel grants at most `net.core.rmem_max`. A hundred participants that discover one send it
/// megabytes.
const META_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// The sockets of discovery.
#[derive(Debug)]
pub(crate) struct MetaSockets {
    pub(crate) unicast: UdpSocket,
    /// Receives what is sent to the domain's multicast group. `None`: multicast is disabled.
    pub(crate) multicast: Option<UdpSocket>,
    joined: Mutex<Memberships>,
    /// One per address, to send to the group from there.
    senders: Mutex<Vec<(Place, UdpSocket)>>,
    /// Sends questions to participants that may be gone, and collects the refusals of their hosts. Its port is
    /// unknown to others, and nothing is received from it.
    pub(super) prober: UdpSocket,
    /// Datagrams that the kernel refused.
    refused: AtomicU64,
}

/// Opens the sockets for user data and discovery on the ports of the first free participant id.
///
/// If all ids are in use, on any free ports. Peers learn them from the announcement, and only those that look for
/// participants on the well-known ports of a host ([`Peer`](crate::settings::Peer) without a port) miss them.
pub(crate) fn open(
    domain_id: u32,
    settings: &ParticipantSettings,
    choice: &Choice,
    selected: &Selected,
) -> Result<(UdpSocket, MetaSockets)> {
    let (user, unicast) = open_unicast(domain_id, settings, choice, selected)?;
    let multicast = settings.multicast.then(|| open_multicast(domain_id)).transpose()?;
    let meta = MetaSockets {
        unicast,
        multicast,
        joined: Mutex::default(),
        senders: Mutex::default(),
        prober: open_prober(choice.bind_address())?,
        refused: AtomicU64::new(0),
    };
    meta.join(selected)?;
    Ok((user, meta))
}

/// Opens the socket for user data and that of discovery.
fn open_unicast(
    domain_id: u32,
    settings: &ParticipantSettings,
    choice: &Choice,
    selected: &Selected,
) -> Result<(UdpSocket, UdpSocket)> {
    let address = choice.bind_address();
    let only_at = choice.only_at(selected);
    for (meta_port, user_port) in unicast_ports(domain_id) {
        let meta =
            SocketOptions { only_at: only_at.clone(), ..meta_options(SocketAddrV4::new(address, meta_port)) };
        let Some(unicast) = bind_if_free(&meta)? else { continue };
        let user = SocketOptions {
            recv_buffer: Some(settings.receive_buffer),
            send_buffer: Some(settings.send_buffer),
            gro: true,
            timestamps: settings.stage_times,
            only_at: only_at.clone(),
            ..SocketOptions::new(SocketAddrV4::new(address, user_port))
        };
        if let Some(user) = bind_if_free(&user)? {
            return Ok((user, unicast));
        }
    }
    Err(DdsError::OutOfResources(format!(
        "no UDP port is free for a participant of domain {domain_id} on this host: \
         end some participants, or widen net.ipv4.ip_local_port_range"
    )))
}

/// Returns the ports for discovery and user data to try: those of each participant id, then any (0).
fn unicast_ports(domain_id: u32) -> impl Iterator<Item = (u16, u16)> {
    let of_id =
        move |id| ports::metatraffic_unicast_port(domain_id, id).zip(ports::user_unicast_port(domain_id, id));
    (0..PARTICIPANT_IDS).map_while(of_id).chain([(0, 0)])
}

fn meta_options(bind: SocketAddrV4) -> SocketOptions {
    // Announcements may be longer than a router takes, and are not cut to what the path carries.
    let fragments = Some(Fragments::Allowed);
    SocketOptions { recv_buffer: Some(META_BUFFER_BYTES), fragments, ..SocketOptions::new(bind) }
}

/// Returns `None` if the port is in use.
fn bind_if_free(options: &SocketOptions) -> Result<Option<UdpSocket>> {
    match UdpSocket::bind(options) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(network("cannot open a socket", error)),
    }
}

fn open_multicast(domain_id: u32) -> Result<UdpSocket> {
    let group = ports::metatraffic_multicast(domain_id)
        .ok_or_else(|| DdsError::BadParameter(format!("domain id {domain_id} has no multicast port")))?;
    let options = SocketOptions { reuse_address: true, ..meta_options(group) };
    UdpSocket::bind(&options).map_err(|error| network("cannot open the multicast socket", error))
}

fn open_sender(Place { index, address }: Place) -> Result<UdpSocket> {
    let options = SocketOptions {
        multicast_interface: Some(address),
        multicast_interface_index: Some(index),
        multicast_loop: true,
        ..SocketOptions::new(SocketAddrV4::new(address, 0))
    };
    UdpSocket::bind(&options).map_err(|error| network("cannot open a socket", error))
}

fn open_prober(address: Ipv4Addr) -> Result<UdpSocket> {
    let options = SocketOptions {
        report_refusals: true,
        fragments: Some(Fragments::Never),
        ..SocketOptions::new(SocketAddrV4::new(address, 0))
    };
    UdpSocket::bind(&options).map_err(|error| network("cannot open a socket", error))
}

fn network(what: &str, error: UdpError) -> DdsError {
    DdsError::network(what, error)
}

impl MetaSockets {
    /// Uses these interfaces from now on for multicast: joins the discovery group there, and sends
    /// to it from there.
    ///
    /// # Errors
    /// No interface supports multicast, or a sender could not be opened. The others are in use.
    pub(super) fn join(&self, selected: &Selected) -> Result<()> {
        let Some(multicast) = &self.multicast else { return Ok(()) };
        let mut joined = self.joined.lock();
        let renewed = joined.renew(multicast, *multicast.local_addr().ip(), &selected.places());
        let is_joined = !joined.is_empty();
        drop(joined);
        let mut senders = self.senders.lock();
        senders.retain(|(place, _)| selected.addresses().any(|address| address == *place));
        let mut result = Ok(());
        for place in selected.addresses() {
            if !senders.iter().any(|(known, _)| *known == place) {
                match open_sender(place) {
                    Ok(sender) => senders.push((place, sender)),
                    Err(error) => result = Err(error),
                }
            }
        }
        match renewed {
            Err(error) if !is_joined => {
                Err(network("cannot join the discovery group on any interface", error))
            }
            _ => result,
        }
    }

    /// Sends discovery messages: to the group from every interface, to other addresses from the
    /// unicast socket.
    ///
    /// Does not wait for room in a socket: the caller holds the lock of discovery, and one congested interface must not
    /// hold up the others. What the kernel refuses is counted, and the protocol repeats it.
    pub(crate) fn send(&self, outbox: &Outbox) {
        let senders = self.senders.lock();
        self.send_each(outbox, |to, datagram| {
            if to.ip().is_multicast() {
                senders.iter().for_each(|(_, sender)| self.count(sender.send_now(datagram, to)));
            } else {
                self.count(self.unicast.send_now(datagram, to));
            }
        });
    }

    /// Sends the messages of endpoints that have just matched, from the socket for user data; as [`MetaSockets::send`].
    pub(crate) fn send_from(&self, socket: &UdpSocket, outbox: &Outbox) {
        self.send_each(outbox, |to, datagram| self.count(socket.send_now(datagram, to)));
    }

    /// Sends questions to participants that may be gone.
    pub(crate) fn send_questions(&self, outbox: &Outbox) {
        self.send_each(outbox, |to, datagram| {
            let send = || self.prober.send_now(datagram, to);
            // The fate of an earlier question, maybe to another host, fails a send call, once.
            let sent = send();
            self.count(if sent.as_ref().is_err_and(weir_udp::is_report) { send() } else { sent });
        });
    }

    /// Returns how many datagrams the kernel refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn send_each(&self, outbox: &Outbox, send: impl Fn(SocketAddrV4, &[u8])) {
        outbox.for_each_datagram(|destinations, datagram| {
            destinations.iter().for_each(|to| send(*to, datagram));
        });
    }

    fn count(&self, sent: io::Result<usize>) {
        self.refused.fetch_add(u64::from(sent.is_err()), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_behind_those_of_all_participant_ids_are_any() {
        let ports: Vec<_> = unicast_ports(0).collect();
        assert_eq!(
            (ports.len(), ports[0], ports[119], ports[120]),
            (121, (7410, 7411), (7648, 7649), (0, 0))
        );
        // The last domain has fewer.
        let ports: Vec<_> = unicast_ports(ports::MAX_DOMAIN_ID).collect();
        assert_eq!((ports[62], ports.last()), ((65534, 65535), Some(&(0, 0))));
    }
}
