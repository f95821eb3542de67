//! What discovery dropped, and why. A peer's mistakes are counted, never reported as errors.

/// Counts since the participant was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryCounters {
    /// Datagrams that are no RTPS message.
    pub malformed_messages: u64,
    /// Messages whose rest was dropped for a broken submessage.
    pub malformed_submessages: u64,
    /// Messages that name ourselves as their source.
    pub own_messages: u64,
    /// Submessages for builtin endpoints that we do not have, or of kinds that discovery does not use.
    pub ignored_submessages: u64,
    /// Endpoint traffic of participants that we have not heard of (yet).
    pub unknown_participant: u64,
    /// Announcements of participants or endpoints that could not be used: broken, incomplete, over a limit,
    /// or not understood.
    pub refused_announcements: u64,
    /// Fragments of announcements that contradict earlier ones, or for which there was no room. The sender repeats them.
    pub fragments_refused: u64,
    /// Announcements that speak of somebody else's participant or endpoint.
    pub foreign_announcements: u64,
    /// Announcements of participants in other domains.
    pub other_domain: u64,
    /// Participants or endpoints without an address that we could send to.
    pub unreachable: u64,
    /// Locators that were left out: not UDPv4 unicast, or too many.
    pub locators_skipped: u64,
    /// Participants dropped because the table was full.
    pub participants_over_limit: u64,
    /// Endpoints dropped because a table was full.
    pub endpoints_over_limit: u64,
    /// Endpoints that fit one of ours and were left out, because it has as many matches as it keeps state for, or too
    /// many with the same participant.
    pub matches_over_limit: u64,
    /// Participants that fell silent for longer than their lease.
    pub leases_expired: u64,
    /// Answers to new participants that were not sent, as there were too many in a short time.
    pub replies_suppressed: u64,
}
