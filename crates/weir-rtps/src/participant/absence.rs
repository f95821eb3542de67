//! Detects participants that are gone without a goodbye.
//!
//! A killed process sends nothing, and its lease may be long. Two signs remain: its host refuses datagrams to its ports
//! (ICMP port unreachable, RFC 1122, 4.1.3.1), or another participant uses these ports.
//!
//! When a reader leaves HEARTBEATs unanswered, the driver calls [`ParticipantCore::suspect`]. The reader's participant
//! is then asked: HEARTBEATs, which every engine answers, go to its metatraffic addresses, and empty messages go to the
//! addresses of the reader. The participant is gone if nothing arrives from it meanwhile, and
//!
//! - all these addresses refuse, twice; or
//! - another participant answers at the same metatraffic address.
//!
//! The questions are sent from a separate socket, whose port other hosts do not know. The kernel checks that a refusal
//! quotes a datagram of that socket. So only a host on the path can forge a refusal, and such a host could as well drop
//! everything. Another participant that claims the addresses cannot keep the true one from answering.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::{Guid, GuidPrefix, Header, InfoDestination, ProtocolVersion, push};

use super::ParticipantCore;
use crate::outbox::{Destinations, Outbox};
use crate::time::Time;

/// Participants that may be gone.
#[derive(Debug, Default)]
pub(super) struct Absences {
    probes: BTreeMap<GuidPrefix, Probe>,
    due: Vec<Question>,
}

#[derive(Debug)]
struct Probe {
    since: Time,
    metatraffic: Destinations,
    user: Destinations,
    /// Addresses that have not refused in this round.
    left: Vec<SocketAddrV4>,
    /// How often all addresses have refused.
    rounds: u32,
    next_at: Time,
    delay: Duration,
    /// Another participant with a metatraffic address of this one.
    successor: Option<GuidPrefix>,
}

/// What is to be sent about a participant.
#[derive(Debug)]
struct Question {
    prefix: GuidPrefix,
    metatraffic: Destinations,
    user: Destinations,
}

impl Absences {
    /// Returns when something is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.probes.values().map(|probe| probe.next_at).min()
    }
}

impl Probe {
    fn addresses(&self) -> impl Iterator<Item = SocketAddrV4> + '_ {
        self.metatraffic.iter().chain(self.user.iter()).copied()
    }

    fn begin_round(&mut self) {
        self.left = self.addresses().collect();
    }

    /// Returns what to ask: only at addresses that have not refused in this round.
    fn question(&self, prefix: GuidPrefix) -> Question {
        let left = |addresses: &Destinations| {
            Arc::from_iter(addresses.iter().copied().filter(|address| self.left.contains(address)))
        };
        Question { prefix, metatraffic: left(&self.metatraffic), user: left(&self.user) }
    }
}

impl ParticipantCore {
    /// A reader leaves HEARTBEATs unanswered: finds out whether its participant is gone.
    pub fn suspect(&mut self, now: Time, reader: Guid) {
        let prefix = reader.prefix;
        let Some(remote) = self.remotes.get(&prefix) else { return };
        if self.is_closed || self.absences.probes.contains_key(&prefix) {
            return;
        }
        let Some(entry) = remote.endpoints.get(&reader.entity) else { return };
        let is_shared =
            |other: &Destinations| other.iter().any(|address| remote.metatraffic.contains(address));
        // Only a participant that can answer is succeeded by another one when it does not.
        let others = self.remotes.iter().filter(|(other, _)| **other != prefix && !remote.is_unproven());
        let successor =
            others.into_iter().find(|(_, other)| other.has_answered && is_shared(&other.metatraffic));
        let mut probe = Probe {
            since: now,
            metatraffic: Arc::clone(&remote.metatraffic),
            user: Arc::clone(&entry.common.destinations),
            left: Vec::new(),
            rounds: 0,
            next_at: now,
            delay: QUESTION_DELAY_MIN,
            successor: successor.map(|(prefix, _)| *prefix),
        };
        probe.begin_round();
        self.absences.probes.insert(prefix, probe);
        self.counters.participants_suspected += 1;
        self.look_for_absent(now);
    }

    /// The kernel reports that a destination of [`poll_questions`](Self::poll_questions) has no socket.
    pub fn refused(&mut self, now: Time, to: SocketAddrV4) {
        let mut gone = Vec::new();
        for (prefix, probe) in &mut self.absences.probes {
            let before = probe.left.len();
            probe.left.retain(|address| *address != to);
            if before == 0 || !probe.left.is_empty() || probe.left.len() == before {
                continue;
            }
            probe.rounds += 1;
            probe.begin_round();
            probe.next_at = now;
            let is_silent =
                self.remotes.get(prefix).is_some_and(|remote| remote.home_heard_at <= probe.since);
            if probe.rounds >= ROUNDS && is_silent {
                gone.push(*prefix);
            }
        }
        for prefix in gone {
            self.participant_gone(now, prefix);
        }
        self.look_for_absent(now);
    }

    /// Appends the questions to participants that may be gone, and the probes of path sizes. They leave, with the flag
    /// "don't fragment", from a socket whose errors the driver reports with [`refused`](Self::refused) and
    /// [`path_size_reported`](Self::path_size_reported).
    pub fn poll_questions(&mut self, out: &mut Outbox) {
        self.poll_size_probes(out);
        let config = &self.config;
        let header =
            Header { version: ProtocolVersion::V2_5, vendor: config.vendor, prefix: config.guid_prefix };
        for Question { prefix, metatraffic, user } in self.absences.due.drain(..) {
            if !metatraffic.is_empty() {
                self.builtin.ask(prefix, &metatraffic, out);
            }
            if !user.is_empty() {
                out.message(&user, |message| {
                    push(message, &header);
                    push(message, &InfoDestination { prefix });
                });
            }
        }
    }

    /// Does what is due about participants that may be gone.
    pub(super) fn look_for_absent(&mut self, now: Time) {
        let mut gone = Vec::new();
        let Self { absences: Absences { probes, due }, remotes, .. } = self;
        probes.retain(|prefix, probe| {
            let Some(remote) = remotes.get(prefix) else { return false };
            let is_heard = |prefix: &GuidPrefix| {
                remotes.get(prefix).is_some_and(|remote| remote.home_heard_at > probe.since)
            };
            if remote.home_heard_at > probe.since || now >= probe.since + PROBE_TIME {
                return false;
            }
            if probe.next_at > now {
                return true;
            }
            let is_succeeded =
                now >= probe.since + SUCCESSION_TIME && probe.successor.as_ref().is_some_and(is_heard);
            if is_succeeded {
                gone.push(*prefix);
                return false;
            }
            due.push(probe.question(*prefix));
            if let Some((prefix, other)) =
                probe.successor.and_then(|prefix| Some((prefix, remotes.get(&prefix)?)))
            {
                let (metatraffic, user) = (Arc::clone(&other.metatraffic), Arc::from([]));
                due.push(Question { prefix, metatraffic, user });
            }
            probe.next_at = now + probe.delay;
            probe.delay *= 2;
            true
        });
        for prefix in gone {
            self.participant_gone(now, prefix);
        }
    }

    fn participant_gone(&mut self, now: Time, prefix: GuidPrefix) {
        self.absences.probes.remove(&prefix);
        self.counters.participants_gone += 1;
        self.participant_lost(now, prefix);
    }
}

/// How often all addresses of a participant must refuse.
const ROUNDS: u32 = 2;
/// Time from the first question to the second; it doubles with every question.
const QUESTION_DELAY_MIN: Duration = Duration::from_millis(50);
/// How long a participant is asked before another one at its address counts as its successor: four questions.
const SUCCESSION_TIME: Duration = Duration::from_millis(350);
/// How long a participant is asked.
const PROBE_TIME: Duration = Duration::from_secs(3);
