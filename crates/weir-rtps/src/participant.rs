//! A participant as a state machine: discovery, matching and leases (DDSI-RTPS 2.5 §8.5).
//!
//! It handles only metatraffic. User data goes to the writer and reader cores of its endpoints,
//! which learn of each other by the [`DiscoveryEvent`]s of this core; the driver connects them.
//! After every call, drain [`poll_transmit`](ParticipantCore::poll_transmit) and
//! [`poll_event`](ParticipantCore::poll_event), and read
//! [`next_timeout`](ParticipantCore::next_timeout) again. The same calls give the same bytes and
//! events.
//!
//! There is one file per concern: `announcer` sends announcements of the participant, `receive`
//! parses messages, `builtin` exchanges endpoints reliably, `remote` keeps remote participants,
//! `local` the local endpoints, `matching` compares them, `liveliness` asserts the local writers.

mod announcer;
mod builtin;
mod config;
mod counters;
mod liveliness;
mod local;
mod local_endpoint;
mod matching;
mod reachability;
mod receive;
mod remote;
mod remote_participant;

use std::collections::{BTreeMap, VecDeque};

use weir_wire::{EntityId, Guid, GuidPrefix};

use announcer::Announcer;
use builtin::BuiltinEndpoints;
use liveliness::Assertions;
use local_endpoint::{LocalEntry, Pair};
use reachability::Reachability;
use remote_participant::RemoteParticipant;

use crate::discovery_event::DiscoveryEvent;
use crate::outbox::Outbox;
use crate::time::Time;

pub use config::{Interface, ParticipantConfig};
pub use counters::DiscoveryCounters;
pub use local_endpoint::{LocalEndpoint, LocalEndpointError};

/// Discovery, matching and leases of one participant. See the module's documentation.
#[derive(Debug)]
pub struct ParticipantCore {
    config: ParticipantConfig,
    reachability: Reachability,
    announcer: Announcer,
    builtin: BuiltinEndpoints,
    assertions: Assertions,
    locals: BTreeMap<EntityId, LocalEntry>,
    remotes: BTreeMap<GuidPrefix, RemoteParticipant>,
    /// By local endpoint and remote one, of those that share a topic.
    pairs: BTreeMap<(EntityId, Guid), Pair>,
    events: VecDeque<DiscoveryEvent>,
    counters: DiscoveryCounters,
    is_closed: bool,
}

impl ParticipantCore {
    /// Creates a participant without endpoints; its first announcement is due at once.
    #[must_use]
    pub fn new(config: ParticipantConfig, now: Time) -> Self {
        Self {
            reachability: Reachability::new(&config),
            announcer: Announcer::new(&config, now),
            builtin: BuiltinEndpoints::new(&config),
            assertions: Assertions::default(),
            locals: BTreeMap::new(),
            remotes: BTreeMap::new(),
            pairs: BTreeMap::new(),
            events: VecDeque::new(),
            counters: DiscoveryCounters::default(),
            is_closed: false,
            config,
        }
    }

    /// Does what is due: announcements, expired leases, repetitions of unanswered messages.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.is_closed {
            return;
        }
        self.announcer.handle_timeout(now);
        self.expire_leases(now);
        self.liveliness_timeout(now);
        self.builtin.handle_timeout(now);
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due; `None` if the participant is
    /// closed.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        if self.is_closed {
            return None;
        }
        let leases = self.remotes.values().map(RemoteParticipant::expires_at).filter(|&at| at < Time::MAX);
        let leases = leases.chain(self.next_liveliness());
        leases.chain(self.builtin.next_timeout()).chain([self.announcer.next_at()]).min()
    }

    /// Appends all datagrams that are to be sent now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Outbox) {
        // The announcement goes first: only participants that know us understand the rest.
        self.announcer.poll_transmit(&self.remotes, out);
        self.builtin.poll_transmit(now, out);
        self.announcer.poll_farewell(&self.remotes, out);
    }

    /// Returns the next event for the application. Events are in the order in which they happened.
    pub fn poll_event(&mut self) -> Option<DiscoveryEvent> {
        self.events.pop_front()
    }

    /// Renews the lease of a participant that has sent user data.
    pub fn assert_alive(&mut self, now: Time, prefix: GuidPrefix) {
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.last_heard = now;
        }
    }

    /// Closes the participant: the next [`poll_transmit`](Self::poll_transmit) disposes all
    /// endpoints and the participant. Everything that arrives afterwards is ignored.
    pub fn close(&mut self, now: Time) {
        if self.is_closed {
            return;
        }
        for entry in self.locals.values() {
            self.builtin.dispose(now, entry.kind(), entry.guid());
        }
        self.announcer.close();
        self.locals.clear();
        self.pairs.clear();
        self.is_closed = true;
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &ParticipantConfig {
        &self.config
    }

    /// Returns counts of what was dropped, by reason.
    #[must_use]
    pub fn counters(&self) -> &DiscoveryCounters {
        &self.counters
    }

    /// Returns the memory of our endpoints' announcements in bytes, including those of removed
    /// endpoints.
    #[must_use]
    pub fn announcement_memory(&self) -> usize {
        self.builtin.memory()
    }

    /// Returns the memory of announcements in bytes: ours, and remote ones that wait for earlier
    /// ones.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.builtin.memory() + self.builtin.waiting_memory()
    }

    /// Returns the number of known remote participants.
    #[must_use]
    pub fn remote_participants(&self) -> usize {
        self.remotes.len()
    }

    /// Returns the number of known remote endpoints.
    #[must_use]
    pub fn remote_endpoints(&self) -> usize {
        self.remotes.values().map(|remote| remote.endpoints.len()).sum()
    }
}
