//! What a participant is told once: who it is, where it listens, whom it announces itself to, and how often.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_wire::{GuidPrefix, VendorId};

use crate::discovery_data::DiscoveryLimits;
use crate::ports;

/// The configuration of a [`ParticipantCore`](crate::participant::ParticipantCore).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantConfig {
    /// Unique among all participants: others tell us apart by it.
    pub guid_prefix: GuidPrefix,
    /// The vendor id that is announced.
    pub vendor: VendorId,
    /// Participants of other domains are ignored.
    pub domain_id: u32,
    /// Where this participant receives discovery. Announced; never empty.
    pub metatraffic_unicast: Vec<SocketAddrV4>,
    /// Where its endpoints receive that name no addresses of their own. Announced.
    pub default_unicast: Vec<SocketAddrV4>,
    /// The multicast group to which those endpoints listen, too. Announced.
    pub default_multicast: Option<SocketAddrV4>,
    /// The group to which announcements go and that is announced. `None`: only the initial peers are told.
    pub metatraffic_multicast: Option<SocketAddrV4>,
    /// Further addresses to which announcements go.
    pub initial_peers: Vec<SocketAddrV4>,
    /// Addresses of this host: which addresses of a peer can be reached is judged by them. The unicast
    /// addresses above are taken for some of them.
    pub interfaces: Vec<Interface>,
    /// Those of the interfaces' addresses from which user data may be sent by multicast; empty: it is not.
    pub multicast_interfaces: Vec<Ipv4Addr>,
    /// How long others keep us when they hear nothing.
    pub lease_duration: Duration,
    /// Time between announcements: at most a third of the lease, so that two may be lost.
    pub announce_period: Duration,
    /// Times after the start of the first announcements, ascending. Close together, as one may be lost, or
    /// come before the other side listens.
    pub first_announcements: Vec<Duration>,
    /// A name for people.
    pub entity_name: Option<String>,
    /// Bytes that the sockets for user data were granted; 0: not known, not announced.
    pub receive_buffer: u32,
    /// Answers to new participants that may be sent at once. They go where the announcement says, so somebody
    /// could have us send to a third party.
    pub reply_burst: u32,
    /// After a burst, time until one more answer may be sent.
    pub reply_interval: Duration,
    /// Shorter leases of others are taken for this: so that nobody makes us forget and rediscover without
    /// end.
    pub remote_lease_min: Duration,
    /// Bounds on what others can make grow.
    pub limits: DiscoveryLimits,
}

impl ParticipantConfig {
    /// The defaults: announcements to the domain's group at 0, 50, 200 ms and 1 s, then every 6 s with a
    /// lease of 20 s. The unicast addresses are still to be filled in.
    #[must_use]
    pub fn new(guid_prefix: GuidPrefix, domain_id: u32) -> Self {
        Self {
            guid_prefix,
            vendor: VendorId::WEIR,
            domain_id,
            metatraffic_unicast: Vec::new(),
            default_unicast: Vec::new(),
            default_multicast: None,
            metatraffic_multicast: ports::metatraffic_multicast(domain_id),
            initial_peers: Vec::new(),
            interfaces: Vec::new(),
            multicast_interfaces: Vec::new(),
            lease_duration: Duration::from_secs(20),
            announce_period: Duration::from_secs(6),
            first_announcements: [0, 50, 200, 1000].map(Duration::from_millis).to_vec(),
            entity_name: None,
            receive_buffer: 0,
            reply_burst: 64,
            reply_interval: Duration::from_millis(10),
            remote_lease_min: Duration::from_millis(100),
            limits: DiscoveryLimits::default(),
        }
    }
}

/// An IPv4 address of this host and the network that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Our address.
    pub address: Ipv4Addr,
    /// The bits of the address that name the network.
    pub netmask: Ipv4Addr,
}
