//! The well-known UDP ports of a domain (RTPS 2.5, 9.6.2).

use core::net::{Ipv4Addr, SocketAddrV4};

/// The multicast group on which participants announce themselves (RTPS 2.5, 9.6.2.4.1).
pub const DISCOVERY_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// The maximum domain id whose ports exist.
pub const MAX_DOMAIN_ID: u32 = 232;

/// Returns the group and port for announcements in the domain; `None` if the domain id is over
/// [`MAX_DOMAIN_ID`].
#[must_use]
pub fn metatraffic_multicast(domain_id: u32) -> Option<SocketAddrV4> {
    Some(SocketAddrV4::new(DISCOVERY_GROUP, port(domain_id, METATRAFFIC_MULTICAST_OFFSET, 0)?))
}

/// Returns the domain's port for user data by multicast; `None` if it does not exist.
#[must_use]
pub fn user_multicast_port(domain_id: u32) -> Option<u16> {
    port(domain_id, USER_MULTICAST_OFFSET, 0)
}

/// Returns the port for discovery and its acknowledgements of the `participant_id`-th participant
/// of this host; `None` if the ids are too large.
#[must_use]
pub fn metatraffic_unicast_port(domain_id: u32, participant_id: u32) -> Option<u16> {
    port(domain_id, METATRAFFIC_UNICAST_OFFSET, participant_id)
}

/// Returns the port for user data of the `participant_id`-th participant of this host; `None` if
/// the ids are too large.
#[must_use]
pub fn user_unicast_port(domain_id: u32, participant_id: u32) -> Option<u16> {
    port(domain_id, USER_UNICAST_OFFSET, participant_id)
}

fn port(domain_id: u32, offset: u32, participant_id: u32) -> Option<u16> {
    let of_domain = domain_id.checked_mul(DOMAIN_GAIN)?.checked_add(PORT_BASE)?;
    let of_participant = participant_id.checked_mul(PARTICIPANT_GAIN)?.checked_add(offset)?;
    of_domain.checked_add(of_participant)?.try_into().ok()
}

/// PB of the specification.
const PORT_BASE: u32 = 7400;
/// DG of the specification.
const DOMAIN_GAIN: u32 = 250;
/// PG of the specification.
const PARTICIPANT_GAIN: u32 = 2;
/// d0 of the specification.
const METATRAFFIC_MULTICAST_OFFSET: u32 = 0;
/// d1 of the specification.
const METATRAFFIC_UNICAST_OFFSET: u32 = 10;
/// d2 of the specification.
const USER_MULTICAST_OFFSET: u32 = 1;
/// d3 of the specification.
const USER_UNICAST_OFFSET: u32 = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_the_first_domain_are_the_ones_everybody_knows() {
        assert_eq!(metatraffic_multicast(0), Some(SocketAddrV4::new(DISCOVERY_GROUP, 7400)));
        assert_eq!(user_multicast_port(0), Some(7401));
        assert_eq!(metatraffic_unicast_port(0, 0), Some(7410));
        assert_eq!(user_unicast_port(0, 0), Some(7411));
        assert_eq!(metatraffic_unicast_port(1, 3), Some(7666));
        assert_eq!(user_unicast_port(1, 3), Some(7667));
    }

    #[test]
    fn ports_that_do_not_exist_are_none() {
        assert_eq!(metatraffic_multicast(MAX_DOMAIN_ID).map(|address| address.port()), Some(65400));
        assert_eq!(metatraffic_multicast(MAX_DOMAIN_ID + 1), None);
        assert_eq!(metatraffic_unicast_port(MAX_DOMAIN_ID, 100), None);
        assert_eq!(user_unicast_port(u32::MAX, u32::MAX), None);
    }
}
