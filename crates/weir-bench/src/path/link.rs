//! A virtual link between two network namespaces.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use weir_results::LinkFigures;
use weir_udp::Tun;

use super::PathSpec;
use super::emulator::Emulator;
use super::namespace::{LinkError, Namespace};
use crate::control::Role;

/// A link between two namespaces; dropping it removes both.
#[derive(Debug)]
pub struct VirtualLink {
    spec: PathSpec,
    /// Of an emulated link. It ends before the namespaces of its devices.
    emulator: Option<Emulator>,
    publisher: Namespace,
    subscriber: Namespace,
}

/// Where an end lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file of its network namespace.
    pub namespace: PathBuf,
    /// Its interface there.
    pub interface: &'static str,
    /// The address of that interface.
    pub address: Ipv4Addr,
    /// Its IPv6 address.
    pub address_v6: Ipv6Addr,
}

/// What a link did during a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkOutcome {
    /// Packets that were lost at random, in both directions.
    pub lost_packets: u64,
    /// All that an emulated link knows.
    pub figures: Option<LinkFigures>,
}

impl VirtualLink {
    /// The interface in either namespace.
    pub const INTERFACE: &'static str = INTERFACE;

    /// Makes the link; it loses nothing yet.
    pub fn lay(spec: PathSpec) -> Result<Self, LinkError> {
        let mut link =
            Self { spec, emulator: None, publisher: Namespace::new()?, subscriber: Namespace::new()? };
        let tuns = match &link.spec {
            PathSpec::Veth(spec) => {
                spec.lay(link.ends())?;
                None
            }
            PathSpec::Tun(_) => Some([create_tun(&link.publisher)?, create_tun(&link.subscriber)?]),
        };
        for (index, namespace) in link.ends().into_iter().enumerate() {
            configure(&link.spec, namespace, (ADDRESSES[index], ADDRESSES_V6[index]))?;
        }
        for namespace in link.ends() {
            namespace.wait_until_up(INTERFACE)?;
        }
        if let (PathSpec::Tun(pair), Some(tuns)) = (&link.spec, tuns) {
            link.emulator = Some(Emulator::start((**pair).clone(), tuns).map_err(LinkError::Emulator)?);
        }
        Ok(link)
    }

    /// The specification.
    #[must_use]
    pub fn spec(&self) -> &PathSpec {
        &self.spec
    }

    /// Where the ends of a kind live.
    #[must_use]
    pub fn place(&self, role: Role) -> Place {
        let (namespace, index) = match role {
            Role::Publisher => (&self.publisher, 0),
            Role::Subscriber | Role::Process => (&self.subscriber, 1),
        };
        Place {
            namespace: namespace.file(),
            interface: INTERFACE,
            address: ADDRESSES[index],
            address_v6: ADDRESSES_V6[index],
        }
    }

    /// Starts the losses of a case, and its counts. Rate, delay and queue are always there. Of an emulated link, each
    /// repeat, counted from 1, loses other packets.
    pub fn begin_case(&self, repeat: u32) -> Result<(), LinkError> {
        match (&self.spec, &self.emulator) {
            (PathSpec::Veth(spec), _) => spec.start_losses(&self.ends()),
            (PathSpec::Tun(_), None) => Ok(()),
            (PathSpec::Tun(_), Some(emulator)) => {
                emulator.begin(repeat, self.refused_packets());
                Ok(())
            }
        }
    }

    /// Ends the losses, and returns what the link did since they began.
    pub fn end_case(&self) -> Result<LinkOutcome, LinkError> {
        match (&self.spec, &self.emulator) {
            (PathSpec::Veth(spec), _) => {
                Ok(LinkOutcome { lost_packets: spec.end_losses(self.ends())?, figures: None })
            }
            (PathSpec::Tun(_), None) => Ok(LinkOutcome::default()),
            (PathSpec::Tun(_), Some(emulator)) => {
                let figures = emulator.end(self.refused_packets()).map_err(LinkError::Emulator)?;
                let lost_packets = figures.to_subscribers.lost_packets + figures.to_publishers.lost_packets;
                Ok(LinkOutcome { lost_packets, figures: Some(figures) })
            }
        }
    }

    fn ends(&self) -> [&Namespace; 2] {
        [&self.publisher, &self.subscriber]
    }

    /// Packets that the kernel dropped before the emulator saw them.
    fn refused_packets(&self) -> u64 {
        self.ends().iter().map(|end| end.refused_packets(INTERFACE)).sum()
    }
}

/// Gives a namespace its addresses and routes, and sets its interface up.
pub(super) fn configure(
    spec: &PathSpec,
    namespace: &Namespace,
    (address, address_v6): (Ipv4Addr, Ipv6Addr),
) -> Result<(), LinkError> {
    namespace.run("ip link set lo up")?;
    namespace.run(&format!("ip address add {address}/24 dev {INTERFACE}"))?;
    // A host without IPv6 measures without it.
    let _ = namespace.run(&format!("ip -6 address add {address_v6}/64 dev {INTERFACE} nodad"));
    if let PathSpec::Tun(pair) = spec {
        // The emulator has the queue; this one only bridges the time until it reads.
        namespace.run(&format!("ip link set {INTERFACE} mtu {} txqueuelen {UNREAD_PACKETS}", pair.mtu))?;
    }
    namespace.run(&format!("ip link set {INTERFACE} up"))?;
    namespace.run(&format!("ip route add default dev {INTERFACE}"))?;
    match spec {
        PathSpec::Veth(spec) => spec.shape(namespace),
        PathSpec::Tun(_) => Ok(()),
    }
}

pub(super) fn create_tun(namespace: &Namespace) -> Result<Tun, LinkError> {
    namespace.within(|| Tun::create(INTERFACE)).map_err(LinkError::NoTun)
}

pub(super) const INTERFACE: &str = "weir0";

/// The ends of the link: publishers, subscribers.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

const ADDRESSES_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 2)];

/// What an emulator that does not get a processor for 20 ms needs at 200 000 packets/s, and more.
const UNREAD_PACKETS: u32 = 10_000;
