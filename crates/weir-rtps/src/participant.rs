//! A participant as a state machine: discovery, matching and leases (RTPS 2.5, 8.5).
//!
//! It handles only metatraffic. User data goes to the writer and reader cores of its endpoints, which learn of each
//! other by the [`DiscoveryEvent`]s of this core; the driver connects them. After every call, drain
//! [`poll_transmit`](ParticipantCore::poll_transmit) and [`poll_event`](ParticipantCore::poll_event), and read
//! [`next_timeout`](ParticipantCore::next_timeout) again. The same calls give the same bytes and events.
//!
//! | file | content |
//! |---|---|
//! | `announcer` | announces the participant, and answers announcements |
//! | `receive` | parses messages |
//! | `builtin` | exchanges endpoints reliably |
//! | `remote`, `remote_participant`, `shared` | remote participants and their endpoints |
//! | `reserve` | memory for them that is reserved, and used again |
//! | `claims`, `claim` | distinguishes a participant that has moved from a forged one |
//! | `static_peers` | endpoints that are known beforehand |
//! | `validation` | limits what is sent before an answer |
//! | `absence` | detects killed participants |
//! | `addresses` | follows changes of the host's own addresses |
//! | `reachability` | chooses which of a peer's addresses to send to |
//! | `path_size` | finds how long datagrams to each host may be |
//! | `local`, `local_endpoint` | local endpoints |
//! | `matching` | matches local endpoints with remote and local ones |
//! | `news`, `pairs` | queues the resulting events; the relations of endpoints |
//! | `observed`, `ignored` | what the application sees of others, and ignores of them |
//! | `liveliness` | asserts the local writers |
//! | `size` | the memory of a participant with a limits table |
//! | `deadlines`, `counters`, `config` | what is due when; what was dropped; identity, addresses, periods |

mod absence;
mod addresses;
mod announcer;
mod builtin;
mod claim;
mod claims;
mod config;
mod counters;
mod deadlines;
mod ignored;
mod liveliness;
mod local;
mod local_endpoint;
mod matching;
mod news;
mod observed;
mod pairs;
mod path_size;
mod reachability;
mod receive;
mod remote;
mod remote_participant;
mod reserve;
mod shared;
mod size;
mod static_peers;
mod validation;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::{EntityId, Guid, GuidPrefix};

use absence::Absences;
use announcer::Announcer;
use builtin::BuiltinEndpoints;
use deadlines::Deadlines;
use ignored::Ignored;
use liveliness::Assertions;
use local_endpoint::LocalEntry;
use news::{News, Next};
use path_size::PathSizes;
use reachability::Reachability;
use remote_participant::RemoteParticipant;
use reserve::Reserve;
use shared::Shared;
use validation::Validation;

use crate::content_filter::ContentFilterProperty;
use crate::discovery_event::DiscoveryEvent;
use crate::outbox::{Destinations, Outbox};
use crate::packing::Packing;
use crate::sedp::EndpointData;
use crate::sorted_map::SortedMap;
use crate::static_peers::StaticDifference;
use crate::time::Time;

pub use config::{Interface, OwnAddresses, ParticipantConfig};
pub use counters::DiscoveryCounters;
pub use local::check_policy_lengths;
pub use local_endpoint::{LocalEndpoint, LocalEndpointError};
pub(crate) use reserve::MessageRoom;
pub use size::ParticipantSize;

/// For how long discovery traffic is left to gather.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gathering {
    /// All of it.
    pub all: Duration,
    /// What is sent to the multicast group.
    pub group: Duration,
}

/// How far the discovery of other participants has got: each step needs the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiscoveryProgress {
    /// Other participants whose announcement has arrived.
    pub participants: usize,
    /// Those of them that have acknowledged announcements of endpoints, so that they know this participant.
    pub answering: usize,
    /// Endpoints of other participants whose announcement has arrived.
    pub endpoints: usize,
}

/// Discovery, matching and leases of one participant. See the module's documentation.
#[derive(Debug)]
pub struct ParticipantCore {
    config: ParticipantConfig,
    reachability: Reachability,
    announcer: Announcer,
    builtin: BuiltinEndpoints,
    assertions: Assertions,
    locals: BTreeMap<EntityId, LocalEntry>,
    /// The local endpoints of each topic.
    local_topics: BTreeMap<String, Vec<EntityId>>,
    /// The content filters of our readers, also of one that is about to be added.
    content_filters: BTreeMap<EntityId, Arc<ContentFilterProperty>>,
    remotes: SortedMap<GuidPrefix, RemoteParticipant>,
    /// Memory for more of them.
    reserve: Reserve,
    /// Memory for the announcement of an endpoint that is being read.
    announced: EndpointData,
    /// What their endpoints have in common.
    shared: Shared,
    /// Endpoints of all of them.
    remote_endpoints: usize,
    /// Memory of their texts in bytes.
    remote_texts: usize,
    deadlines: Deadlines,
    /// The shortest lease of all of them.
    shortest_lease: Duration,
    /// When a participant was last discovered or lost.
    membership_changed_at: Time,
    /// Participants that are to be sent a HEARTBEAT to answer, and where.
    questions: Vec<(GuidPrefix, Destinations)>,
    /// Participants that have asked from an address that they have not named: they have moved, and may not know yet
    /// that we have, too.
    answers: Vec<(GuidPrefix, SocketAddrV4)>,
    absences: Absences,
    validation: Validation,
    path_sizes: PathSizes,
    news: News,
    /// What the builtin endpoints send, before it is packed.
    unpacked: Outbox,
    packing: Packing,
    counters: DiscoveryCounters,
    /// The latest differences from what was known of peers beforehand.
    static_differences: Vec<StaticDifference>,
    ignored: Ignored,
    /// Other entities that have changed since they were taken; `None`: none are noted.
    observed: Option<BTreeSet<Guid>>,
    is_closed: bool,
}

impl ParticipantCore {
    /// Creates a participant without endpoints; its first announcement is due at once.
    #[must_use]
    pub fn new(config: ParticipantConfig, now: Time) -> Self {
        let room = MessageRoom::of(config.table.as_ref());
        let asked = room.asked;
        Self {
            reachability: Reachability::new(&config),
            announcer: Announcer::new(&config, now),
            builtin: BuiltinEndpoints::new(&config),
            assertions: Assertions::default(),
            locals: BTreeMap::new(),
            local_topics: BTreeMap::new(),
            content_filters: BTreeMap::new(),
            remotes: SortedMap::with_room(config.table.map_or(0, |table| table.participants)),
            reserve: Reserve::new(config.table.as_ref()),
            announced: reserve::announced_endpoint(config.table.as_ref()),
            shared: Shared::new(config.table.as_ref()),
            remote_endpoints: 0,
            remote_texts: 0,
            deadlines: Deadlines::with_room(config.table.map_or(0, |table| table.participants + 1)),
            shortest_lease: Duration::MAX,
            membership_changed_at: now,
            questions: Vec::with_capacity(asked),
            answers: Vec::with_capacity(asked),
            absences: Absences::default(),
            validation: Validation::new(config.table.as_ref()),
            path_sizes: PathSizes::default(),
            news: News::new(config.table.as_ref()),
            unpacked: room.outbox(),
            packing: room.packing(),
            counters: DiscoveryCounters::default(),
            static_differences: Vec::new(),
            ignored: Ignored::default(),
            observed: None,
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
        self.look_at_participants(now);
        self.look_for_absent(now);
        self.look_at_path_sizes(now);
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
        let due =
            self.deadlines.next().into_iter().chain(self.next_liveliness()).chain(self.absences.next_at());
        let due = due.chain(self.path_sizes.next_at());
        due.chain(self.builtin.next_timeout()).chain([self.announcer.next_at()]).min()
    }

    /// Appends all datagrams that are to be sent now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Outbox) {
        // The announcement goes first: only participants that know us understand the rest.
        self.announcer.poll_transmit(now, &self.remotes, out);
        self.builtin.poll_transmit(now, &mut self.unpacked);
        let asks_elsewhere = !self.questions.is_empty() || !self.answers.is_empty();
        for (prefix, to) in self.questions.drain(..) {
            self.builtin.ask(prefix, &to, &mut self.unpacked);
        }
        for (prefix, to) in self.answers.drain(..) {
            let to = self.reserve.addresses.list(&[to]);
            self.builtin.answer(prefix, &to, &mut self.unpacked);
        }
        if asks_elsewhere || self.validation.unanswered > 0 {
            self.hold_back(now);
        }
        self.packing.pack(&mut self.unpacked, out);
        if self.config.table.is_none() {
            self.unpacked.shrink();
            self.packing.shrink();
        }
        self.announcer.poll_farewell(&self.remotes, out);
    }

    /// Returns how many participants are answered at a time at addresses that they have not named.
    fn answers_max(&self) -> usize {
        self.config.limits.participants.saturating_mul(reserve::ASKED_EACH)
    }

    /// Returns the next event for the application. Events are in the order in which they happened, but what happened
    /// repeatedly to a pair of endpoints is reported once, in the first place.
    pub fn poll_event(&mut self) -> Option<DiscoveryEvent> {
        loop {
            match self.news.next()? {
                Next::Event(event) => return Some(event),
                // Its data are gone only if the pair is, which the next change reports.
                Next::Pair(pair, change) => {
                    if let Some(event) = self.pair_event(pair, change) {
                        return Some(event);
                    }
                }
            }
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
        self.builtin.flush();
        self.announcer.close();
        self.locals.clear();
        self.local_topics.clear();
        self.content_filters.clear();
        self.news.forget_pairs();
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

    /// Returns the memory in bytes of announcements (ours, and remote ones that wait for earlier ones), of the
    /// relations of endpoints, and of waiting events.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.builtin.memory() + self.builtin.waiting_memory() + self.news.memory()
    }

    /// Returns for how long discovery traffic of a large domain is left to gather before more is handled.
    ///
    /// Handling it at once costs a wake-up for each datagram, and answers that do not leave together. Both times are
    /// zero in a small domain.
    #[must_use]
    pub fn gathering(&self, now: Time) -> Gathering {
        // Those that never answer may be forged.
        let participants = self.remotes.len() - self.validation.unanswered;
        let is_calm = now.since(self.membership_changed_at) >= crate::config::CALM_AFTER;
        if participants < crate::config::LARGE_DOMAIN {
            Gathering::default()
        } else if is_calm {
            let group = crate::config::CALM_PAUSE.min(self.shortest_lease / crate::config::CALM_SHARE);
            Gathering { all: Duration::ZERO, group }
        } else {
            let each = crate::config::GATHERING_TIME;
            let all = (each * participants as u32).min(crate::config::GATHERING_TIME_MAX);
            Gathering { all, group: all }
        }
    }

    /// Returns the number of known remote participants.
    #[must_use]
    pub fn remote_participants(&self) -> usize {
        self.remotes.len()
    }

    /// Returns the number of known remote endpoints.
    #[must_use]
    pub fn remote_endpoints(&self) -> usize {
        self.remote_endpoints
    }

    /// Returns how far discovery has got.
    #[must_use]
    pub fn progress(&self) -> DiscoveryProgress {
        DiscoveryProgress {
            participants: self.remotes.len(),
            answering: self.remotes.len() - self.validation.unanswered,
            endpoints: self.remote_endpoints,
        }
    }
}
