//! Settings of a participant.
//!
//! [`ParticipantSettings::from_environment`] reads environment variables. Fields that the program sets override them.

use std::net::{IpAddr, SocketAddrV4};
use std::time::Duration;

use crate::addresses;
use crate::dscp::{DSCP_TEXT, DscpMapping};
use crate::error::{DdsError, Result};
use crate::limits::LimitsTable;
use crate::multicast::MulticastGroup;
use crate::static_discovery::StaticDiscovery;
use crate::wait_strategy::WaitStrategy;

/// Default size of the receive buffer of each socket, in bytes.
///
/// ```
/// use weir_dds::{ParticipantSettings, SOCKET_BUFFER_BYTES};
///
/// assert_eq!(ParticipantSettings::default().receive_buffer, SOCKET_BUFFER_BYTES);
/// ```
pub const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Default size of the send buffer of each socket, in bytes.
///
/// What a socket has sent stays in its send buffer until the device has taken it. So a full buffer makes a writer wait
/// for a slower device. If it is larger than the device's queue (`txqueuelen`, mostly 1000 packets), the queue
/// overflows first, and the kernel drops datagrams without a word. Linux doubles the size, which takes 4 ms at 1
/// Gbit/s. Its own default (`net.core.wmem_default`) is 208 KiB, not doubled.
///
/// ```
/// use weir_dds::{ParticipantSettings, SEND_BUFFER_BYTES};
///
/// assert_eq!(ParticipantSettings::default().send_buffer, SEND_BUFFER_BYTES);
/// ```
pub const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// Longest name of a participant, in bytes: as of topics and types.
const NAME_MAX: usize = 256;

/// Settings of a participant.
///
/// | field | environment variable | default |
/// |---|---|---|
/// | `interfaces` | `WEIR_INTERFACES`: names or addresses, comma-separated | all IPv4 interfaces that are up |
/// | `peers` | `WEIR_PEERS`: `ADDRESS[:PORT]`, comma-separated | none: discovery by multicast |
/// | `data_multicast` | `WEIR_DATA_MULTICAST`: `default` or `ADDRESS[:PORT]` | none: set per reader |
/// | `receive_buffer` | `WEIR_RECEIVE_BUFFER`: bytes | 4 MiB |
/// | `send_buffer` | `WEIR_SEND_BUFFER`: bytes | 256 KiB |
/// | `rate_max` | `WEIR_RATE_MAX`: bits per second to each host, such as `20M` | none: what the path carries |
/// | `ecn` | `WEIR_ECN`: `on` or `off` | `on` |
/// | `dscp` | `WEIR_DSCP`: `priority`, `off`, or `PRIORITY=DSCP`, comma-separated | `priority` |
/// | `wait` | `WEIR_WAIT`: `block`, `spin`, `spin:MICROSECONDS` | `block` |
///
/// The domain id is a separate argument; [`domain_id_from_environment`] reads `WEIR_DOMAIN_ID`.
///
/// ```
/// use weir_dds::{ParticipantSettings, WaitStrategy};
///
/// let settings = ParticipantSettings::default()
///     .interface("lo")
///     .peer("192.168.1.20".parse()?)
///     .wait(WaitStrategy::Spin);
/// # let _ = settings;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParticipantSettings {
    /// Names (`eth0`) or addresses of the interfaces to use; empty: all that are up.
    ///
    /// They have to exist when the participant is created; after that, they may vanish and
    /// reappear, with other addresses. If interfaces are named, the participant receives only what
    /// is sent to their addresses, and sends and receives multicast only there.
    pub interfaces: Vec<String>,
    /// Hosts to announce the participant to by unicast, in addition to multicast.
    ///
    /// Without a port, the first few participant ids of the host are tried.
    pub peers: Vec<Peer>,
    /// Whether multicast is used, for discovery and for readers in a multicast group.
    pub multicast: bool,
    /// The multicast group for readers whose QoS names none; `None`: unicast only.
    ///
    /// It is announced, and joined in addition to the unicast address.
    pub data_multicast: Option<MulticastGroup>,
    /// Requested receive buffer of the user data socket, in bytes.
    ///
    /// The kernel may grant less:
    /// [`DomainParticipant::granted_receive_buffer`](crate::DomainParticipant::granted_receive_buffer).
    pub receive_buffer: usize,
    /// Requested send buffer of each socket that sends user data, in bytes: see [`SEND_BUFFER_BYTES`].
    pub send_buffer: usize,
    /// The most bits per second that all writers of this participant together send to another host, with IP and UDP
    /// headers: a static flow controller. `None`: what the path carries, once that is known.
    ///
    /// At the limit, a reliable writer waits, and a best-effort writer drops samples that would wait for more than
    /// 100 ms. Readers on the same host are sent to without a limit.
    pub rate_max: Option<u64>,
    /// Whether routers may mark datagrams instead of dropping them (explicit congestion notification, RFC 3168).
    ///
    /// In use only on [paths](crate::DomainParticipant::paths) that are paced, with readers of Weir.
    pub ecn: bool,
    /// How the TRANSPORT_PRIORITY of a writer sets the code point of its datagrams (DSCP).
    pub dscp: DscpMapping,
    /// How threads of this participant wait for data.
    pub wait: WaitStrategy,
    /// Whether the participant has threads of its own; `true` by default. Without, the application calls
    /// [`DomainParticipant::poll`](crate::DomainParticipant::poll).
    pub threads: bool,
    /// Whether the participant is enabled when it is created; `true` by default. Otherwise the application calls
    /// [`DomainParticipant::enable`](crate::DomainParticipant::enable).
    pub autoenable: bool,
    /// Time after which peers remove the participant if they receive nothing from it.
    pub lease_duration: Duration,
    /// A human-readable name (`ENTITY_NAME`).
    pub name: Option<String>,
    /// Peers whose endpoints are known beforehand, and the entity ids of our own endpoints.
    pub static_discovery: Option<StaticDiscovery>,
    /// What the participant may hold, from a limits table; `None`: memory is allocated as needed.
    pub limits: Option<LimitsTable>,
    /// Records stage timestamps.
    ///
    /// They are returned by [`DataWriter::last_send_times`](crate::DataWriter::last_send_times) and
    /// [`DataReader::last_receive_times`](crate::DataReader::last_receive_times). Costs clock reads
    /// in every send and receive call, and enables the kernel's receive timestamps.
    pub stage_times: bool,
}

impl Default for ParticipantSettings {
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            peers: Vec::new(),
            multicast: true,
            data_multicast: None,
            receive_buffer: SOCKET_BUFFER_BYTES,
            send_buffer: SEND_BUFFER_BYTES,
            rate_max: None,
            ecn: true,
            dscp: DscpMapping::default(),
            wait: WaitStrategy::Block,
            threads: true,
            autoenable: true,
            lease_duration: Duration::from_secs(20),
            name: None,
            static_discovery: None,
            limits: None,
            stage_times: false,
        }
    }
}

impl ParticipantSettings {
    /// Returns the defaults, overridden by environment variables.
    ///
    /// ```no_run
    /// use weir_dds::{DomainParticipant, ParticipantSettings, domain_id_from_environment};
    ///
    /// let settings = ParticipantSettings::from_environment()?;
    /// let participant = DomainParticipant::new(domain_id_from_environment()?, settings)?;
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::BadParameter`], naming the variable and the allowed values.
    pub fn from_environment() -> Result<Self> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut settings = Self::default();
        let list = |name: &str| {
            let text = variable(name).unwrap_or_default();
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        settings.interfaces = list("WEIR_INTERFACES");
        for peer in list("WEIR_PEERS") {
            settings.peers.push(peer.parse()?);
        }
        if let Some(text) = variable("WEIR_DATA_MULTICAST") {
            let group =
                text.parse().map_err(|_| bad("WEIR_DATA_MULTICAST", &text, "default or ADDRESS[:PORT]"))?;
            settings.data_multicast = Some(group);
        }
        for (name, field) in [
            ("WEIR_RECEIVE_BUFFER", &mut settings.receive_buffer),
            ("WEIR_SEND_BUFFER", &mut settings.send_buffer),
        ] {
            if let Some(text) = variable(name) {
                *field = text.parse().map_err(|_| bad(name, &text, "a number of bytes, such as 4194304"))?;
            }
        }
        if let Some(text) = variable("WEIR_RATE_MAX") {
            let rate = bits_per_second(&text);
            let allowed = "bits per second from 8k on, such as 20M";
            settings.rate_max = Some(rate.ok_or_else(|| bad("WEIR_RATE_MAX", &text, allowed))?);
        }
        if let Some(text) = variable("WEIR_ECN") {
            settings.ecn = match text.trim() {
                "on" => true,
                "off" => false,
                _ => return Err(bad("WEIR_ECN", &text, "on or off")),
            };
        }
        if let Some(text) = variable("WEIR_DSCP") {
            settings.dscp = text.parse().map_err(|_| bad("WEIR_DSCP", &text, DSCP_TEXT))?;
        }
        if let Some(text) = variable("WEIR_WAIT") {
            settings.wait =
                text.parse().map_err(|_| bad("WEIR_WAIT", &text, "block, spin or spin:MICROSECONDS"))?;
        }
        Ok(settings)
    }

    /// Adds an interface, by its name or address.
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// let settings = ParticipantSettings::default().interface("eth0").interface("192.168.1.20");
    /// assert_eq!(settings.interfaces.len(), 2);
    /// ```
    #[must_use]
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.interfaces.push(name.into());
        self
    }

    /// Adds a host to announce the participant to by unicast.
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// let settings = ParticipantSettings::default().without_multicast().peer("192.168.1.20".parse()?);
    /// # let _ = settings;
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    #[must_use]
    pub fn peer(mut self, peer: Peer) -> Self {
        self.peers.push(peer);
        self
    }

    /// Starts no threads: the application calls [`DomainParticipant::poll`](crate::DomainParticipant::poll).
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// assert!(!ParticipantSettings::default().without_threads().threads);
    /// ```
    #[must_use]
    pub fn without_threads(mut self) -> Self {
        self.threads = false;
        self
    }

    /// Sets whether the participant is enabled when it is created; `true` by default.
    ///
    /// The policy ENTITY_FACTORY of the participants' factory (DDS 1.4, 2.2.3.20). See
    /// [`DomainParticipant::enable`](crate::DomainParticipant::enable).
    ///
    /// ```
    /// use weir_dds::{DomainParticipant, ParticipantSettings};
    ///
    /// let settings = ParticipantSettings::default().interface("lo").autoenable(false);
    /// let participant = DomainParticipant::new(83, settings)?;
    /// assert!(!participant.is_enabled());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    #[must_use]
    pub fn autoenable(mut self, autoenable: bool) -> Self {
        self.autoenable = autoenable;
        self
    }

    /// Uses no multicast, neither for discovery nor for readers.
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// assert!(!ParticipantSettings::default().without_multicast().multicast);
    /// ```
    #[must_use]
    pub fn without_multicast(mut self) -> Self {
        self.multicast = false;
        self
    }

    /// Sets the multicast group for readers whose QoS names none.
    ///
    /// ```
    /// use weir_dds::{MulticastGroup, ParticipantSettings};
    ///
    /// let settings = ParticipantSettings::default().data_multicast(MulticastGroup::default());
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn data_multicast(mut self, group: MulticastGroup) -> Self {
        self.data_multicast = Some(group);
        self
    }

    /// Requests a size of the receive buffer for user data, in bytes.
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// let settings = ParticipantSettings::default().receive_buffer(16 << 20);
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn receive_buffer(mut self, bytes: usize) -> Self {
        self.receive_buffer = bytes;
        self
    }

    /// Requests a size of the send buffer for user data, in bytes.
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// let settings = ParticipantSettings::default().send_buffer(1 << 20);
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn send_buffer(mut self, bytes: usize) -> Self {
        self.send_buffer = bytes;
        self
    }

    /// Sets the most bits per second that are sent to another host, see
    /// [`rate_max`](ParticipantSettings#structfield.rate_max).
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// let settings = ParticipantSettings::default().rate_max(20_000_000);
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn rate_max(mut self, bits_per_second: u64) -> Self {
        self.rate_max = Some(bits_per_second);
        self
    }

    /// Does not use explicit congestion notification, see [`ecn`](ParticipantSettings#structfield.ecn).
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// assert!(!ParticipantSettings::default().without_ecn().ecn);
    /// ```
    #[must_use]
    pub fn without_ecn(mut self) -> Self {
        self.ecn = false;
        self
    }

    /// Sets how the TRANSPORT_PRIORITY of a writer sets the code point of its datagrams (DSCP).
    ///
    /// ```
    /// use weir_dds::{DscpMapping, ParticipantSettings};
    ///
    /// let settings = ParticipantSettings::default().dscp(DscpMapping::Off);
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn dscp(mut self, mapping: DscpMapping) -> Self {
        self.dscp = mapping;
        self
    }

    /// Sets the time after which peers remove the participant if they receive nothing from it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::ParticipantSettings;
    ///
    /// // Peers miss this participant after three seconds.
    /// let settings = ParticipantSettings::default().lease_duration(Duration::from_secs(3));
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Records stage timestamps, see [`stage_times`](ParticipantSettings#structfield.stage_times).
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// assert!(ParticipantSettings::default().with_stage_times().stage_times);
    /// ```
    #[must_use]
    pub fn with_stage_times(mut self) -> Self {
        self.stage_times = true;
        self
    }

    /// Sets the human-readable name (`ENTITY_NAME`), of up to 256 bytes.
    ///
    /// ```
    /// use weir_dds::ParticipantSettings;
    ///
    /// assert_eq!(ParticipantSettings::default().name("robot 7").name.as_deref(), Some("robot 7"));
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Refuses a name that an announcement cannot hold.
    pub(crate) fn check_name(&self) -> Result<()> {
        match self.name.as_deref() {
            Some(name) if name.len() > NAME_MAX || name.contains('\0') => {
                Err(DdsError::BadParameter(format!(
                    "the participant's name has {} bytes: use at most {NAME_MAX}, without a zero byte",
                    name.len()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Sets the peers whose endpoints are known beforehand, and the entity ids of our own endpoints.
    ///
    /// ```no_run
    /// use weir_dds::{ParticipantSettings, StaticDiscovery};
    ///
    /// let system = StaticDiscovery::from_file("system.toml")?;
    /// let settings = ParticipantSettings::default().name("controller").static_discovery(system);
    /// # let _ = settings;
    /// # Ok::<(), weir_dds::StaticDiscoveryError>(())
    /// ```
    #[must_use]
    pub fn static_discovery(mut self, system: StaticDiscovery) -> Self {
        self.static_discovery = Some(system);
        self
    }

    /// Sets what the participant may hold. Its endpoints reserve their memory when they are created.
    ///
    /// ```no_run
    /// use weir_dds::{LimitsTable, ParticipantSettings};
    ///
    /// let settings = ParticipantSettings::default().limits(LimitsTable::from_file("limits.toml")?);
    /// # let _ = settings;
    /// # Ok::<(), weir_dds::LimitsError>(())
    /// ```
    #[must_use]
    pub fn limits(mut self, limits: impl Into<LimitsTable>) -> Self {
        self.limits = Some(limits.into());
        self
    }

    /// Sets how threads of this participant wait for data.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{ParticipantSettings, WaitStrategy};
    ///
    /// let settings = ParticipantSettings::default().wait(WaitStrategy::SpinThenBlock(Duration::from_micros(50)));
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn wait(mut self, wait: WaitStrategy) -> Self {
        self.wait = wait;
        self
    }
}

/// Returns the domain id in `WEIR_DOMAIN_ID`; 0 if it is not set.
///
/// ```
/// // Without WEIR_DOMAIN_ID, 0.
/// let domain_id = weir_dds::domain_id_from_environment()?;
/// assert!(domain_id <= 232);
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
///
/// # Errors
/// [`DdsError::BadParameter`] if it is not a number from 0 to 232.
pub fn domain_id_from_environment() -> Result<u32> {
    match std::env::var("WEIR_DOMAIN_ID") {
        Err(_) => Ok(0),
        Ok(text) => {
            let id = text.trim().parse().ok().filter(|id| *id <= 232);
            id.ok_or_else(|| bad("WEIR_DOMAIN_ID", &text, "a number from 0 to 232"))
        }
    }
}

/// A host that receives announcements by unicast.
///
/// Text form: `ADDRESS` or `ADDRESS:PORT`. Participants refuse IPv6 addresses with
/// [`DdsError::Unsupported`]: the engine does not support IPv6 yet.
///
/// ```
/// use weir_dds::Peer;
///
/// let peer: Peer = "192.168.1.20:7410".parse()?;
/// assert_eq!(peer, Peer::new([192, 168, 1, 20].into()).port(7410));
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// The host's address.
    pub address: IpAddr,
    /// The discovery port of a participant; `None`: the first few ports of the domain.
    pub port: Option<u16>,
}

/// Number of participant ids tried when a peer is named without a port.
const PEER_PARTICIPANTS: u32 = 5;

impl Peer {
    /// Returns a host of which the first few ports of the domain are tried.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use weir_dds::Peer;
    ///
    /// let peer = Peer::new(Ipv4Addr::new(192, 168, 1, 20).into());
    /// assert_eq!(peer.port, None);
    /// ```
    pub const fn new(address: IpAddr) -> Self {
        Self { address, port: None }
    }

    /// Sets the discovery port of a participant.
    ///
    /// ```
    /// use weir_dds::Peer;
    ///
    /// assert_eq!(Peer::new([10, 0, 0, 1].into()).port(7410), "10.0.0.1:7410".parse()?);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Returns the addresses to announce to.
    ///
    /// # Errors
    /// [`DdsError::Unsupported`]: it is an IPv6 address.
    pub(crate) fn addresses(self, domain_id: u32) -> Result<impl Iterator<Item = SocketAddrV4>> {
        let address = addresses::ipv4("peer", self.address)?;
        let guesses = (0..PEER_PARTICIPANTS)
            .filter_map(move |id| weir_rtps::ports::metatraffic_unicast_port(domain_id, id))
            .filter(move |_| self.port.is_none());
        Ok(guesses.chain(self.port).map(move |port| SocketAddrV4::new(address, port)))
    }
}

impl std::str::FromStr for Peer {
    type Err = DdsError;

    fn from_str(text: &str) -> Result<Self> {
        let is_usable =
            |(address, port): &(IpAddr, Option<u16>)| *port != Some(0) && !address.is_unspecified();
        let (address, port) = addresses::split(text).filter(is_usable).ok_or_else(|| {
            DdsError::BadParameter(format!("invalid peer {text:?}: use ADDRESS or ADDRESS:PORT"))
        })?;
        Ok(Self { address, port })
    }
}

/// Parses a number, whose unit may be `k`, `M` or `G`.
fn bits_per_second(text: &str) -> Option<u64> {
    let text = text.trim();
    let units = [('k', 1_000), ('M', 1_000_000), ('G', 1_000_000_000)];
    let unit = units.into_iter().find(|(letter, _)| text.ends_with(*letter));
    let (number, unit) = unit.map_or((text, 1), |(_, factor)| (&text[..text.len() - 1], factor));
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|rate| *rate >= RATE_LEAST)
}

/// The lowest rate that may be configured, in bits per second.
const RATE_LEAST: u64 = 8_000;

fn bad(name: &str, text: &str, allowed: &str) -> DdsError {
    DdsError::BadParameter(format!("environment variable {name} is {text:?}: use {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_an_announcement_cannot_hold_is_refused() {
        let create = |name: &str| {
            let settings = ParticipantSettings::default().interface("lo").name(name);
            crate::DomainParticipant::new(200, settings)
        };
        assert!(create(&"n".repeat(NAME_MAX)).is_ok());
        for name in ["n".repeat(NAME_MAX + 1), "n".repeat(70_000), "a\0b".to_owned()] {
            assert!(matches!(create(&name), Err(DdsError::BadParameter(_))), "{} bytes", name.len());
        }
    }

    #[test]
    fn the_environment_changes_the_defaults() {
        let settings = ParticipantSettings::from_variables(|name| {
            let value = match name {
                "WEIR_INTERFACES" => "lo, eth1",
                "WEIR_PEERS" => "10.0.0.1,10.0.0.2:7410",
                "WEIR_DATA_MULTICAST" => "default",
                "WEIR_RECEIVE_BUFFER" => "1000",
                "WEIR_WAIT" => "spin:50",
                "WEIR_RATE_MAX" => "20M",
                "WEIR_ECN" => "off",
                "WEIR_DSCP" => "10=34",
                _ => return None,
            };
            Some(value.to_owned())
        })
        .unwrap();
        assert_eq!(settings.interfaces, ["lo", "eth1"]);
        assert_eq!(settings.peers[1].port, Some(7410));
        assert_eq!(settings.data_multicast, Some(MulticastGroup::default()));
        assert_eq!((settings.receive_buffer, settings.send_buffer), (1000, SEND_BUFFER_BYTES));
        assert_eq!(settings.rate_max, Some(20_000_000));
        assert_eq!((settings.ecn, settings.dscp), (false, DscpMapping::Steps(vec![(10, 34)])));
        assert_eq!(settings.wait, WaitStrategy::SpinThenBlock(Duration::from_micros(50)));
    }

    #[test]
    fn a_bad_variable_is_named_with_what_it_may_be() {
        let error = |name: &'static str, value: &'static str| {
            let found =
                ParticipantSettings::from_variables(|asked| (asked == name).then(|| value.to_owned()));
            found.unwrap_err().to_string()
        };
        assert!(error("WEIR_WAIT", "sleep").contains("WEIR_WAIT"));
        assert!(error("WEIR_DATA_MULTICAST", "yes").contains("ADDRESS[:PORT]"));
        assert!(error("WEIR_ECN", "yes").contains("on or off"));
        assert!(error("WEIR_DSCP", "EF").contains("10=34,20=46"));
        assert!(error("WEIR_SEND_BUFFER", "4M").contains("number of bytes"));
        for rate in ["20Mbit", "-1", "0", "7999", "99999999999G", "", "é"] {
            assert!(error("WEIR_RATE_MAX", rate).contains("such as 20M"), "{rate}");
        }
        assert!(error("WEIR_PEERS", "10.0.0.1:x").contains("ADDRESS:PORT"));
        assert!(error("WEIR_PEERS", "0.0.0.0").contains("invalid peer"));
    }

    #[test]
    fn a_peer_without_a_port_stands_for_the_first_participants_of_its_host() {
        let peer: Peer = "10.0.0.1".parse().unwrap();
        let ports: Vec<_> = peer.addresses(0).unwrap().map(|address| address.port()).collect();
        assert_eq!(ports, [7410, 7412, 7414, 7416, 7418]);
        let peer: Peer = "10.0.0.1:9000".parse().unwrap();
        assert_eq!(peer.addresses(0).unwrap().count(), 1);
        for text in ["::1", "[fe80::1]:7410"] {
            let refused = text.parse::<Peer>().unwrap().addresses(0).map(|_| ());
            assert!(matches!(refused, Err(DdsError::Unsupported(_))), "{refused:?}");
        }
    }
}
