//! Counts of what discovery dropped, by reason. A peer's mistakes are counted, never reported as
//! errors.

/// Counts since the participant was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryCounters {
    /// Datagrams that are not RTPS messages.
    pub malformed_messages: u64,
    /// Messages whose rest was dropped because of a malformed submessage.
    pub malformed_submessages: u64,
    /// Messages with this participant as their source.
    pub own_messages: u64,
    /// Submessages for builtin endpoints that do not exist here, or of kinds that discovery does
    /// not use.
    pub ignored_submessages: u64,
    /// Endpoint traffic of unknown participants.
    pub unknown_participant: u64,
    /// Announcements of participants or endpoints that could not be used: malformed, incomplete,
    /// over a limit, or not understood.
    pub refused_announcements: u64,
    /// Fragments of announcements that contradict earlier ones, or for which there was no room. The
    /// sender repeats them.
    pub fragments_refused: u64,
    /// Announcements of another participant's endpoint or of another participant.
    pub foreign_announcements: u64,
    /// Announcements of participants in other domains.
    pub other_domain: u64,
    /// Participants or endpoints without a usable address.
    pub unreachable: u64,
    /// Locators left out: not UDPv4 unicast, or too many.
    pub locators_skipped: u64,
    /// Participants dropped because the table was full.
    pub participants_over_limit: u64,
    /// Endpoints dropped because a table was full.
    pub endpoints_over_limit: u64,
    /// Matching endpoints left out because a local one has the maximum number of matches, in total
    /// or with the same participant.
    pub matches_over_limit: u64,
    /// Participants that were silent for longer than their lease.
    pub leases_expired: u64,
    /// Participants that were asked whether they are still there, because a reader left HEARTBEATs unanswered.
    pub participants_suspected: u64,
    /// Participants removed before the end of their lease: their host refuses what is sent to them, or another
    /// participant has their address.
    pub participants_gone: u64,
    /// Changed announcements that waited, because their participant had changed just before.
    pub changes_held_back: u64,
    /// Announcements and goodbyes of a known participant from another host that were not believed: the participant
    /// answered at its known addresses, or no answer came from the new ones.
    pub claims_refused: u64,
    /// Announcements of participants that the application ignores.
    pub ignored_announcements: u64,
    /// Announcements of endpoints that differ from what was known of them beforehand.
    pub static_differences: u64,
    /// Announcements of participants known beforehand that have no endpoint discovery: with an address that is not one
    /// of their known hosts, by a fifth participant of the name, or with other addresses once such a participant was
    /// believed.
    pub static_peers_refused: u64,
    /// Responses to new participants, or to addresses that participants have not named, suppressed by the limit.
    pub replies_suppressed: u64,
    /// Messages not sent to participants that have not answered, because they were sent enough.
    pub messages_held_back: u64,
}
