//! Decides whether a participant has moved, or another host forges its messages.
//!
//! In both cases, messages in the participant's name arrive from a host that it has never named. Without DDS Security
//! the two look alike: a forger, too, answers every question. But a forger cannot keep the participant from answering
//! at its known addresses.
//!
//! A claim from a new host therefore waits for [`CLAIM_TIME`](super::claim::CLAIM_TIME). Meanwhile both hosts are asked
//! with HEARTBEATs, which every engine answers. If nothing arrives from the known host, the claim holds. If both
//! answer, the new address is used beside the known one. A goodbye from a new host waits in the same way.

use alloc::sync::Arc;
use core::net::Ipv4Addr;
use core::time::Duration;

use weir_wire::GuidPrefix;

use super::ParticipantCore;
use super::claim::{Claim, What};
use super::remote_participant::RemoteParticipant;
use crate::address_lists::AddressLists;
use crate::outbox::Destinations;
use crate::time::Time;

impl ParticipantCore {
    /// A host that the participant has not named speaks in its name.
    pub(super) fn claimed(&mut self, now: Time, prefix: GuidPrefix, from: Ipv4Addr, what: What) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        if remote.claims.add(now, from, what) {
            self.deadlines.look_by(prefix, &mut remote.due_at, now);
            self.credit(now, from);
        } else {
            self.counters.claims_refused += 1;
        }
    }

    /// Asks and decides what is due about the claims on a participant.
    pub(super) fn settle_claims(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let mut claims = core::mem::take(&mut remote.claims.0);
        for claim in claims.iter_mut().filter(|claim| !claim.is_over(now) && now >= claim.next_question) {
            claim.next_question = now + QUESTION_PERIOD;
            let lists = &mut self.reserve.addresses;
            self.questions.extend(questions(&self.reachability, lists, remote, prefix, claim));
        }
        remote.claims.0 = claims;
        while let Some(claim) = self.remotes.get_mut(&prefix).and_then(|it| it.claims.take_over(now)) {
            self.decide(now, prefix, (claim.from, claim.since, claim.is_answered), claim.what);
        }
    }

    fn decide(
        &mut self,
        now: Time,
        prefix: GuidPrefix,
        (from, since, is_answered): (Ipv4Addr, Time, bool),
        what: What,
    ) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        // The new host may have become a known one.
        let is_home_alive = remote.home_heard_at > since && !remote.is_at(from);
        match what {
            // Such a participant cannot answer, so its silence says nothing.
            What::Left if !is_home_alive && !remote.is_unproven() => self.participant_lost(now, prefix),
            What::Moved(there) if is_answered && !is_home_alive => {
                remote.beside = None;
                self.participant_changed(now, there.from, there.data);
            }
            What::Moved(there) if is_answered => {
                remote.beside = Some(there);
                self.paths_changed(now, prefix);
            }
            _ => self.counters.claims_refused += 1,
        }
    }

    /// The host of [`RemoteParticipant::beside`] announced itself again. It becomes the only one when the known host
    /// has been silent for half of the lease.
    pub(super) fn heard_beside(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        if now.since(remote.home_heard_at) < remote.lease / 2 {
            return;
        }
        if let Some(there) = remote.beside.take() {
            self.participant_changed(now, there.from, there.data);
        }
    }
}

/// Returns whom to ask about a claim: the known host, and the claimed one.
fn questions(
    reachability: &super::reachability::Reachability,
    lists: &mut AddressLists,
    remote: &RemoteParticipant,
    prefix: GuidPrefix,
    claim: &Claim,
) -> impl Iterator<Item = (GuidPrefix, Destinations)> + use<> {
    let claimed = match &claim.what {
        What::Moved(there) => reachability.choose(&there.data.metatraffic_unicast.addresses, there.from),
        What::Left => None,
    };
    let there = claimed.map(|address| lists.list(&[address]));
    [Some(Arc::clone(&remote.metatraffic)), there].into_iter().flatten().map(move |to| (prefix, to))
}

/// Time between two questions: three answers may be lost.
const QUESTION_PERIOD: Duration = Duration::from_millis(250);
