//! The common form of discovery data: a parameter list in a DATA payload.
//!
//! Shared by [`spdp`](crate::spdp) and [`sedp`](crate::sedp): opening the list, limits on what is
//! kept of a peer, the reasons for refusal, and values that both have.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::{Endianness, Parameter, ParameterId, ParameterList, ParseError, encapsulation};

use crate::config;
use crate::multicast::is_group;
use crate::qos::INFINITE;

/// Limits on every table and text that a peer can make grow.
///
/// What exceeds one is counted in [`DiscoveryCounters`](crate::participant::DiscoveryCounters) and
/// dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryLimits {
    /// Remote participants. Beyond it, one that never responded makes room; otherwise the new one
    /// is dropped.
    pub participants: usize,
    /// Endpoints of one remote participant.
    pub endpoints_per_participant: usize,
    /// Endpoints of all remote participants.
    pub endpoints: usize,
    /// Locators of one kind kept for a participant or endpoint; the first ones are kept.
    pub locators: usize,
    /// Length of a topic or type name in bytes. Of a longer entity name, the beginning is kept.
    pub name_bytes: usize,
    /// Partitions of one endpoint.
    pub partitions: usize,
    /// Length of all partition names of one endpoint in bytes.
    pub partition_bytes: usize,
    /// User data of one endpoint in bytes. Longer user data is left out; the endpoint stays.
    pub user_data_bytes: usize,
    /// Data representations of one endpoint; the first ones are kept.
    pub representations: usize,
    /// Memory of the names, partitions, user data and filters of all remote endpoints in bytes...
    pub texts_bytes: usize,
    /// ... of those of one participant...
    pub texts_per_participant_bytes: usize,
    /// ... and of one endpoint.
    pub texts_per_endpoint_bytes: usize,
    /// Endpoints matched with one local endpoint...
    pub matches: usize,
    /// ... and of these, endpoints of one participant: no participant takes all the room.
    pub matches_per_participant: usize,
    /// Local writers...
    pub writers: usize,
    /// ... and local readers.
    pub readers: usize,
}

impl Default for DiscoveryLimits {
    /// Room for large systems; a hostile peer that fills every table takes about 100 MB.
    fn default() -> Self {
        Self {
            participants: 512,
            endpoints_per_participant: 4096,
            endpoints: 16_384,
            locators: 8,
            name_bytes: 4096,
            partitions: 1024,
            partition_bytes: 16_384,
            user_data_bytes: 1024,
            representations: 8,
            texts_bytes: 64 * 1024 * 1024,
            texts_per_participant_bytes: 16 * 1024 * 1024,
            texts_per_endpoint_bytes: usize::MAX,
            matches: config::PROXIES_MAX,
            matches_per_participant: config::PROXIES_PER_PARTICIPANT_MAX,
            writers: usize::MAX,
            readers: usize::MAX,
        }
    }
}

/// The result of reading discovery data.
pub type Result<T = ()> = core::result::Result<T, DiscoveryDataError>;

/// The reason why discovery data is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryDataError {
    /// The payload does not start with the encapsulation of a parameter list.
    #[error("the payload is not a parameter list")]
    NotAParameterList,
    /// The list is malformed.
    #[error("broken parameter list: {0}")]
    BrokenList(#[from] ParseError),
    /// A value is too short or does not exist.
    #[error("parameter {0:?} has an invalid value")]
    BadValue(ParameterId),
    /// A text or list exceeds [`DiscoveryLimits`].
    #[error("parameter {0:?} exceeds this engine's limit")]
    TooLong(ParameterId),
    /// A required parameter is missing.
    #[error("parameter {0:?} is missing")]
    Missing(ParameterId),
    /// A parameter that must be understood is unknown (RTPS 2.5, 9.6.3).
    #[error("parameter {0:?} must be understood and is unknown")]
    NotUnderstood(ParameterId),
}

impl DiscoveryDataError {
    /// Sets the parameter whose value could not be read.
    pub(crate) fn about(self, id: ParameterId) -> Self {
        if let Self::BrokenList(_) = self { Self::BadValue(id) } else { self }
    }
}

/// Opens the parameter list in a payload, after its encapsulation header (RTPS 2.5, 10).
///
/// # Errors
/// The encapsulation is not that of a parameter list, or the list has no end.
pub(crate) fn open(payload: &[u8]) -> Result<ParameterList<'_>> {
    let (header, list) = payload.split_at_checked(4).ok_or(DiscoveryDataError::NotAParameterList)?;
    let endianness = match [header[0], header[1]] {
        encapsulation::PL_CDR_LE => Endianness::Little,
        encapsulation::PL_CDR_BE => Endianness::Big,
        _ => return Err(DiscoveryDataError::NotAParameterList),
    };
    Ok(ParameterList::parse(list, endianness)?.0)
}

/// Appends an encapsulation header for a parameter list (RTPS 2.5, 10.2).
pub(crate) fn push_encapsulation(out: &mut Vec<u8>) {
    out.extend_from_slice(&encapsulation::PL_CDR_LE);
    out.extend_from_slice(&[0, 0]);
}

/// The UDPv4 locators of one kind, with a maximum number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locators {
    /// Usable addresses in the order of announcement, without duplicates.
    pub addresses: Vec<SocketAddrV4>,
    /// Number of locators left out: another transport, an address of the wrong kind, or too many.
    pub skipped: u32,
}

impl Locators {
    /// Returns no locators, and keeps the memory.
    pub(crate) fn emptied(mut self) -> Self {
        self.addresses.clear();
        Self { addresses: self.addresses, skipped: 0 }
    }

    /// Adds the locator if it is a UDPv4 unicast address and there is room.
    pub(crate) fn add(&mut self, parameter: &Parameter<'_>, limits: &DiscoveryLimits) -> Result {
        self.add_if(is_unicast, parameter, limits)
    }

    /// Adds the locator if it is a UDPv4 multicast group for user data and there is room.
    pub(crate) fn add_group(&mut self, parameter: &Parameter<'_>, limits: &DiscoveryLimits) -> Result {
        self.add_if(is_group, parameter, limits)
    }

    fn add_if(
        &mut self,
        is_right: impl Fn(SocketAddrV4) -> bool,
        parameter: &Parameter<'_>,
        limits: &DiscoveryLimits,
    ) -> Result {
        match parameter.locator()?.to_socket_addr_v4() {
            Some(address) if self.addresses.contains(&address) => {}
            Some(address) if is_right(address) && self.addresses.len() < limits.locators => {
                self.addresses.push(address);
            }
            _ => self.skipped = self.skipped.saturating_add(1),
        }
        Ok(())
    }
}

/// Returns whether the address can be that of a single machine.
pub(crate) fn is_unicast(address: SocketAddrV4) -> bool {
    let ip = address.ip();
    address.port() != 0
        && !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.octets()[0] == 0)
}

/// Returns the name in a parameter, which must have at most `max` bytes.
pub(crate) fn text<'a>(parameter: &Parameter<'a>, max: usize) -> Result<&'a str> {
    let text = parameter.string()?;
    if text.len() > max { Err(DiscoveryDataError::TooLong(parameter.id)) } else { Ok(text) }
}

/// Reads the text for people in a parameter, or the beginning of it, at most `max` bytes. Returns `false` if it is
/// malformed.
pub(crate) fn beginning(parameter: &Parameter<'_>, max: usize, name: &mut String) -> bool {
    parameter.text_into(max, name).is_ok()
}

/// Returns the period in a parameter.
pub(crate) fn duration(parameter: &Parameter<'_>) -> Result<Duration> {
    period(parameter.duration()?).ok_or(DiscoveryDataError::BadValue(parameter.id))
}

/// Converts a `Duration_t`; [`INFINITE`] from the maximum number of seconds on, `None` if it is
/// negative.
pub(crate) fn period(duration: weir_wire::Duration) -> Option<Duration> {
    let seconds = u64::try_from(duration.seconds).ok()?;
    if duration.seconds == i32::MAX {
        return Some(INFINITE);
    }
    // Rounds to the nearest: some engines round down when they write, and their deadline must not
    // become shorter than an equal one here.
    let nanos = (u64::from(duration.fraction) * NANOS_PER_SECOND + (1 << 31)) >> 32;
    Some(Duration::from_nanos(seconds * NANOS_PER_SECOND + nanos))
}

/// Converts a period to a `Duration_t` (RTPS 2.5, 9.3.2).
pub(crate) fn wire_duration(period: Duration) -> weir_wire::Duration {
    weir_wire::Duration::from_nanos(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX))
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
