//! What participants and endpoints say about themselves has one form: a parameter list in a DATA payload.
//! This module holds what [`spdp`](crate::spdp) and [`sedp`](crate::sedp) share: opening the list, bounds on
//! what a peer may make us keep, the reasons for refusing, and the values that both have.

use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::{Endianness, Parameter, ParameterId, ParameterList, ParseError, encapsulation};

use crate::multicast::is_group;
use crate::qos::INFINITE;

/// Bounds on every table and text that a peer can make grow. What goes over one is counted in
/// [`DiscoveryCounters`](crate::participant::DiscoveryCounters) and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryLimits {
    /// Remote participants. Over it, one that never answered us makes room, otherwise the new one is dropped.
    pub participants: usize,
    /// Endpoints of one remote participant.
    pub endpoints_per_participant: usize,
    /// Endpoints of all remote participants.
    pub endpoints: usize,
    /// Locators of one kind that are kept of a participant or endpoint; the first ones are.
    pub locators: usize,
    /// Length of a topic, type or entity name in bytes.
    pub name_bytes: usize,
    /// Partitions of one endpoint.
    pub partitions: usize,
    /// Length of all partition names of one endpoint in bytes.
    pub partition_bytes: usize,
    /// User data of one endpoint in bytes. Longer user data is left out, the endpoint stays.
    pub user_data_bytes: usize,
    /// Data representations of one endpoint; the first ones are kept.
    pub representations: usize,
}

impl Default for DiscoveryLimits {
    /// Room for large systems; a hostile peer that fills every table takes about 100 MB.
    fn default() -> Self {
        Self {
            participants: 512,
            endpoints_per_participant: 4096,
            endpoints: 16_384,
            locators: 8,
            name_bytes: 256,
            partitions: 64,
            partition_bytes: 4096,
            user_data_bytes: 1024,
            representations: 8,
        }
    }
}

/// Why what a peer says about itself is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryDataError {
    /// The payload does not start with the encapsulation of a parameter list.
    #[error("the payload is no parameter list")]
    NotAParameterList,
    /// The list itself is broken.
    #[error("broken parameter list: {0}")]
    BrokenList(#[from] ParseError),
    /// A value is too short or not one of those that exist.
    #[error("parameter {0:?} has an impossible value")]
    BadValue(ParameterId),
    /// A text or list is longer than [`DiscoveryLimits`] allow.
    #[error("parameter {0:?} is longer than this engine keeps")]
    TooLong(ParameterId),
    /// What has to be there is not.
    #[error("parameter {0:?} is missing")]
    Missing(ParameterId),
    /// A parameter that its sender says must be understood is not (DDSI-RTPS 2.5 §9.6.3).
    #[error("parameter {0:?} must be understood and is not")]
    NotUnderstood(ParameterId),
}

impl DiscoveryDataError {
    /// Says which parameter's value it was that could not be read.
    pub(crate) fn about(self, id: ParameterId) -> Self {
        if let Self::BrokenList(_) = self { Self::BadValue(id) } else { self }
    }
}

/// The parameter list in a payload that begins with its encapsulation header (DDSI-RTPS 2.5 §10).
///
/// # Errors
/// The encapsulation is not that of a parameter list, or the list has no end.
pub(crate) fn open(payload: &[u8]) -> Result<ParameterList<'_>, DiscoveryDataError> {
    let (header, list) = payload.split_at_checked(4).ok_or(DiscoveryDataError::NotAParameterList)?;
    let endianness = match [header[0], header[1]] {
        encapsulation::PL_CDR_LE => Endianness::Little,
        encapsulation::PL_CDR_BE => Endianness::Big,
        _ => return Err(DiscoveryDataError::NotAParameterList),
    };
    Ok(ParameterList::parse(list, endianness)?.0)
}

/// Appends an encapsulation header for a parameter list (DDSI-RTPS 2.5 §10.2).
pub(crate) fn push_encapsulation(out: &mut Vec<u8>) {
    out.extend_from_slice(&encapsulation::PL_CDR_LE);
    out.extend_from_slice(&[0, 0]);
}

/// The UDPv4 locators of one kind, at most so many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locators {
    /// Those that can be sent to, in the order of their announcement, without duplicates.
    pub addresses: Vec<SocketAddrV4>,
    /// How many were left out: another transport, an address of the wrong kind, or too many.
    pub skipped: u32,
}

impl Locators {
    /// Keeps the locator if it is a UDPv4 unicast address and there is room.
    pub(crate) fn add(
        &mut self,
        parameter: &Parameter<'_>,
        limits: &DiscoveryLimits,
    ) -> Result<(), DiscoveryDataError> {
        self.add_if(is_unicast, parameter, limits)
    }

    /// Keeps the locator if it is a UDPv4 multicast group that samples may be sent to and there is room.
    pub(crate) fn add_group(
        &mut self,
        parameter: &Parameter<'_>,
        limits: &DiscoveryLimits,
    ) -> Result<(), DiscoveryDataError> {
        self.add_if(is_group, parameter, limits)
    }

    fn add_if(
        &mut self,
        is_right: impl Fn(SocketAddrV4) -> bool,
        parameter: &Parameter<'_>,
        limits: &DiscoveryLimits,
    ) -> Result<(), DiscoveryDataError> {
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

/// Whether one machine can be meant by the address.
pub(crate) fn is_unicast(address: SocketAddrV4) -> bool {
    let ip = address.ip();
    address.port() != 0
        && !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.octets()[0] == 0)
}

/// The text in a parameter, which has at most `max` bytes.
pub(crate) fn text<'a>(parameter: &Parameter<'a>, max: usize) -> Result<&'a str, DiscoveryDataError> {
    let text = parameter.string()?;
    if text.len() > max { Err(DiscoveryDataError::TooLong(parameter.id)) } else { Ok(text) }
}

/// The period in a parameter.
pub(crate) fn duration(parameter: &Parameter<'_>) -> Result<Duration, DiscoveryDataError> {
    period(parameter.duration()?).ok_or(DiscoveryDataError::BadValue(parameter.id))
}

/// The period that a `Duration_t` means; [`INFINITE`] from the largest number of seconds on. `None`: a
/// negative one.
pub(crate) fn period(duration: weir_wire::Duration) -> Option<Duration> {
    let seconds = u64::try_from(duration.seconds).ok()?;
    if duration.seconds == i32::MAX {
        return Some(INFINITE);
    }
    // Rounded to the nearest: some engines round down when they write, and a deadline of theirs that equals
    // ours must not come out as a shorter one.
    let nanos = (u64::from(duration.fraction) * NANOS_PER_SECOND + (1 << 31)) >> 32;
    Some(Duration::from_nanos(seconds * NANOS_PER_SECOND + nanos))
}

/// The `Duration_t` for a period (DDSI-RTPS 2.5 §9.3.2).
pub(crate) fn wire_duration(period: Duration) -> weir_wire::Duration {
    weir_wire::Duration::from_nanos(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX))
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
