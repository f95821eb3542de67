//! The limits table of a participant whose memory is decided before it starts.
//!
//! A participant with such a table is the same engine. The limits bound what exists, and its endpoints reserve their
//! memory when they are created. What exceeds a limit is refused and counted. Without a table, the limits are those of
//! [`config`] and [`DiscoveryLimits::default`], and memory is allocated as needed.

use crate::config;
use crate::discovery_data::DiscoveryLimits;
use crate::qos::History;

/// What a participant may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Remote participants.
    pub participants: usize,
    /// Endpoints of one remote participant.
    pub endpoints_per_participant: usize,
    /// Names, partitions, user data and filter of one remote endpoint, in bytes.
    pub text_bytes: usize,
    /// Addresses of one kind of a remote participant or endpoint.
    pub addresses: usize,
    /// Writers of the participant.
    pub writers: usize,
    /// Readers of the participant.
    pub readers: usize,
    /// Limits of each of these endpoints.
    pub endpoint: EndpointLimits,
}

/// What one writer or reader may hold. It reserves memory for all of it when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointLimits {
    /// Endpoints matched with it; of one participant, one less.
    pub matches: usize,
    /// Samples in the history of a writer, and samples of a reader that the application has not taken.
    pub samples: usize,
    /// Instances.
    pub instances: usize,
    /// Length of a sample's payload with its encapsulation header, in bytes.
    pub sample_bytes: usize,
    /// Samples that a reader holds back behind missing ones, of all its writers together. Of one writer, also those
    /// that it knows to be missing.
    pub early_samples: usize,
    /// Samples that a reader assembles from fragments at a time.
    pub reassemblies: usize,
}

impl Limits {
    /// A small system: eight peers, four writers, four readers, samples of a kilobyte.
    pub const SMALL: Self = Self {
        participants: 8,
        endpoints_per_participant: 16,
        text_bytes: 512,
        addresses: 4,
        writers: 4,
        readers: 4,
        endpoint: EndpointLimits::SMALL,
    };

    /// Returns the limits on discovery.
    #[must_use]
    pub fn discovery(&self) -> DiscoveryLimits {
        let default = DiscoveryLimits::default();
        let endpoints = self.participants.saturating_mul(self.endpoints_per_participant);
        DiscoveryLimits {
            participants: self.participants,
            endpoints_per_participant: self.endpoints_per_participant,
            endpoints,
            locators: self.addresses,
            name_bytes: self.text_bytes.min(default.name_bytes),
            partition_bytes: self.text_bytes.min(default.partition_bytes),
            user_data_bytes: self.text_bytes.min(default.user_data_bytes),
            texts_bytes: endpoints.saturating_mul(self.text_bytes),
            texts_per_participant_bytes: self.endpoints_per_participant.saturating_mul(self.text_bytes),
            texts_per_endpoint_bytes: self.text_bytes,
            matches: self.endpoint.matches.min(config::PROXIES_MAX),
            matches_per_participant: self.endpoint.matches_per_participant(),
            writers: self.writers,
            readers: self.readers,
            ..default
        }
    }
}

impl Limits {
    /// Returns the limits of the builtin endpoints, which announce ours and are announced those of others.
    #[must_use]
    pub fn builtin(&self) -> EndpointLimits {
        let own = self.writers.max(self.readers).saturating_add(OWN_BESIDE);
        EndpointLimits {
            matches: self.participants,
            // Each endpoint, and the end of one that is gone.
            samples: own.saturating_mul(2),
            instances: own,
            sample_bytes: self.announcement_bytes(),
            early_samples: EARLY_ANNOUNCEMENTS,
            reassemblies: 2,
        }
    }

    /// Returns the longest announcement of an endpoint: its texts, its addresses, and everything else.
    fn announcement_bytes(&self) -> usize {
        let addresses = self.addresses.saturating_mul(2 * LOCATOR_BYTES);
        ANNOUNCEMENT_BYTES.saturating_add(self.text_bytes).saturating_add(addresses)
    }
}

/// Announcements of our own endpoints besides one for each: of one that is being created, of our liveliness.
const OWN_BESIDE: usize = 4;
/// Announcements of a participant behind a missing one.
const EARLY_ANNOUNCEMENTS: usize = 16;
/// An announcement of an endpoint without texts and addresses.
const ANNOUNCEMENT_BYTES: usize = 1024;
/// An address in an announcement (RTPS 2.5, 9.4.2.11).
const LOCATOR_BYTES: usize = 28;

impl EndpointLimits {
    /// See [`Limits::SMALL`].
    pub const SMALL: Self = Self {
        matches: 8,
        samples: 32,
        instances: 8,
        sample_bytes: 1024,
        early_samples: 32,
        reassemblies: 2,
    };

    /// Returns how many of the matches may be with one participant: all but one, so that there is room for another.
    #[must_use]
    pub fn matches_per_participant(&self) -> usize {
        let matches = self.matches.min(config::PROXIES_MAX);
        matches.saturating_sub(1).max(matches.min(1))
    }

    /// Checks that there is room for what the policies of an endpoint keep. `max_samples`, `max_instances`: those of
    /// RESOURCE_LIMITS, if it has any.
    ///
    /// # Errors
    /// The first limit that is too small.
    pub fn check(
        &self,
        history: History,
        (max_samples, max_instances): (Option<u32>, Option<u32>),
        is_keyed: bool,
    ) -> Result<(), LimitTooSmall> {
        let max_samples = max_samples.map_or(0, |max| max as usize);
        let max_instances = max_instances.filter(|_| is_keyed).map_or(0, |max| max as usize);
        let known = match (is_keyed, max_instances) {
            (false, _) => 1,
            (true, 0) => self.instances,
            (true, max) => self.instances.min(max),
        };
        let depth = match history {
            History::KeepLast(depth) => (depth.max(1) as usize).saturating_mul(known),
            History::KeepAll => 0,
        };
        let checks = [
            ("samples", self.samples, depth, "KEEP_LAST keeps"),
            ("samples", self.samples, max_samples, "RESOURCE_LIMITS (max_samples) allows"),
            ("instances", self.instances, max_instances, "RESOURCE_LIMITS (max_instances) allows"),
        ];
        match checks.into_iter().find(|(_, limit, needed, _)| needed > limit) {
            Some((key, limit, needed, why)) => Err(LimitTooSmall { key, limit, needed, why }),
            None => Ok(()),
        }
    }
}

/// A limit that is too small for the policies of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit `{key}` is {limit}, too few: {why} {needed}")]
pub struct LimitTooSmall {
    /// The limit's name.
    pub key: &'static str,
    /// Its value.
    pub limit: usize,
    /// The least value that the policies need.
    pub needed: usize,
    /// The policy, and its verb.
    pub why: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_on_discovery_are_those_of_the_table() {
        let limits =
            Limits { participants: 3, endpoints_per_participant: 5, text_bytes: 100, ..Limits::SMALL };
        let discovery = limits.discovery();
        assert_eq!((discovery.participants, discovery.endpoints), (3, 15));
        assert_eq!((discovery.texts_per_endpoint_bytes, discovery.texts_bytes), (100, 1500));
        assert_eq!((discovery.matches, discovery.writers), (8, 4));
    }

    #[test]
    fn one_participant_leaves_room_for_a_match_with_another() {
        let of = |matches| EndpointLimits { matches, ..EndpointLimits::SMALL };
        let each = [0, 1, 2, 8, usize::MAX].map(|matches| of(matches).matches_per_participant());
        assert_eq!(each, [0, 1, 1, 7, config::PROXIES_MAX - 1]);
        assert_eq!(Limits { endpoint: of(8), ..Limits::SMALL }.discovery().matches_per_participant, 7);
    }

    #[test]
    fn no_table_allows_more_than_the_engine_does_without_one() {
        let endless = EndpointLimits { matches: usize::MAX, ..EndpointLimits::SMALL };
        let limits = Limits { text_bytes: usize::MAX, endpoint: endless, ..Limits::SMALL };
        let (ours, default) = (limits.discovery(), DiscoveryLimits::default());
        assert_eq!((ours.matches, ours.name_bytes), (default.matches, default.name_bytes));
    }
}
