//! A claim about a participant from a host that it has not named, until it is decided.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use super::reserve::Announced;
use crate::time::Time;

/// An announcement and its source.
#[derive(Debug)]
pub(super) struct Announcement {
    pub(super) from: Ipv4Addr,
    pub(super) data: Arc<Announced>,
}

/// What another host says in a participant's name.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) from: Ipv4Addr,
    pub(super) what: What,
    pub(super) since: Time,
    pub(super) next_question: Time,
    /// More than an announcement came from there: that host receives what we send.
    pub(super) is_answered: bool,
}

#[derive(Debug)]
pub(super) enum What {
    /// Its addresses are these.
    Moved(Announcement),
    /// It has left the domain.
    Left,
}

/// Claims from a host that a participant never named.
#[derive(Debug, Default)]
pub(super) struct Claims(pub(super) Vec<Claim>);

impl Claim {
    /// Returns whether it is to be decided.
    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.since + CLAIM_TIME
    }
}

impl Claims {
    /// Takes the first claim that is to be decided.
    pub(super) fn take_over(&mut self, now: Time) -> Option<Claim> {
        let place = self.0.iter().position(|claim| claim.is_over(now))?;
        Some(self.0.remove(place))
    }

    /// Adds a claim, or replaces what the same host claimed before. `false`: there are too many.
    pub(super) fn add(&mut self, now: Time, from: Ipv4Addr, what: What) -> bool {
        if let Some(known) = self.0.iter_mut().find(|claim| claim.from == from) {
            known.what = what;
            return true;
        }
        let has_room = self.0.len() < CLAIMS_MAX;
        if has_room {
            self.0.push(Claim { from, what, since: now, next_question: now, is_answered: false });
        }
        has_room
    }

    /// Records that something other than an announcement came from a host.
    pub(super) fn heard_from(&mut self, host: Ipv4Addr) {
        self.0.iter_mut().filter(|claim| claim.from == host).for_each(|claim| claim.is_answered = true);
    }

    /// Returns when a question or a decision is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.0.iter().map(|claim| claim.next_question.min(claim.since + CLAIM_TIME)).min()
    }
}

/// How long a claim waits for an answer from the known host.
pub(super) const CLAIM_TIME: Duration = Duration::from_secs(1);
/// Hosts that may claim one participant at a time. More than one, so that a forger does not keep the true one out.
pub(super) const CLAIMS_MAX: usize = 4;
