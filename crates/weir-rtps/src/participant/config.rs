//! The configuration of a participant: its identity, its addresses, its peers, and its periods.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_wire::{GuidPrefix, SequenceNumber, VendorId};

use crate::discovery_data::DiscoveryLimits;
use crate::limits::Limits;
use crate::ports;
use crate::static_peers::StaticPeers;

/// The configuration of a [`ParticipantCore`](crate::participant::ParticipantCore).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantConfig {
    /// Unique among all participants.
    pub guid_prefix: GuidPrefix,
    /// The vendor id to announce.
    pub vendor: VendorId,
    /// The domain. Participants of other domains are ignored.
    pub domain_id: u32,
    /// Addresses for receiving discovery. Announced; never empty.
    pub metatraffic_unicast: Vec<SocketAddrV4>,
    /// Addresses of endpoints without their own. Announced.
    pub default_unicast: Vec<SocketAddrV4>,
    /// The multicast group that those endpoints also join. Announced.
    pub default_multicast: Option<SocketAddrV4>,
    /// The group for announcements, which is also announced. `None`: announce to the initial peers
    /// only.
    pub metatraffic_multicast: Option<SocketAddrV4>,
    /// Further destinations of announcements.
    pub initial_peers: Vec<SocketAddrV4>,
    /// Addresses of this host, by which the reachability of a peer's addresses is judged. Includes
    /// the unicast addresses above.
    pub interfaces: Vec<Interface>,
    /// The interfaces' addresses from which user data may be sent by multicast; empty: none.
    pub multicast_interfaces: Vec<Ipv4Addr>,
    /// Time after which peers remove us if they receive nothing.
    pub lease_duration: Duration,
    /// Time between announcements: at most a third of the lease, so that two may be lost.
    pub announce_period: Duration,
    /// Times of the first announcements after the start, ascending. Close together, as one may be
    /// lost, or arrive before the peer listens.
    pub first_announcements: Vec<Duration>,
    /// The sequence number of the first announcement of an endpoint. It is sent by unicast only, so participants that
    /// acknowledge it receive what is sent to them. Peers must not be able to guess it. At most a few millions: Fast
    /// DDS visits all numbers before it.
    pub first_announcement: SequenceNumber,
    /// A human-readable name.
    pub entity_name: Option<String>,
    /// Bytes for remote applications (USER_DATA). Announced.
    pub user_data: Vec<u8>,
    /// Granted buffer of the sockets for user data in bytes; 0: unknown, not announced.
    pub receive_buffer: u32,
    /// Maximum burst of responses to new participants. Their destination comes from the
    /// announcement, so an attacker could direct them at a third party.
    pub reply_burst: u32,
    /// Time per further response after a burst.
    pub reply_interval: Duration,
    /// Minimum lease of remote participants; shorter ones are raised to it. Otherwise a peer could
    /// cause endless rediscovery.
    pub remote_lease_min: Duration,
    /// Peers whose endpoints are known beforehand.
    pub static_peers: StaticPeers,
    /// Limits on what peers can make grow.
    pub limits: DiscoveryLimits,
    /// The limits table, if there is one: see [`ParticipantConfig::with_limits`].
    pub table: Option<Limits>,
}

impl ParticipantConfig {
    /// Returns the defaults: announcements to the domain's group at 0, 50, 200 ms and 1 s, then
    /// every 6 s with a lease of 20 s. The unicast addresses have to be filled in.
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
            first_announcement: SequenceNumber::FIRST,
            entity_name: None,
            user_data: Vec::new(),
            receive_buffer: 0,
            reply_burst: 64,
            reply_interval: Duration::from_millis(10),
            remote_lease_min: Duration::from_millis(100),
            static_peers: StaticPeers::default(),
            limits: DiscoveryLimits::default(),
            table: None,
        }
    }

    /// Sets a limits table: the limits on discovery, and what the builtin endpoints reserve.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits.discovery();
        self.table = Some(limits);
        self
    }
}

/// An IPv4 address of this host and its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Our address.
    pub address: Ipv4Addr,
    /// The network part of the address.
    pub netmask: Ipv4Addr,
}

/// The addresses of this host that a participant uses. Fields as in
/// [`ParticipantConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAddresses {
    /// Addresses for receiving discovery.
    pub metatraffic_unicast: Vec<SocketAddrV4>,
    /// Addresses of endpoints without their own.
    pub default_unicast: Vec<SocketAddrV4>,
    /// Addresses of this host and their networks.
    pub interfaces: Vec<Interface>,
    /// Addresses from which user data may be sent by multicast.
    pub multicast_interfaces: Vec<Ipv4Addr>,
}
