//! Whether a multicast group reaches its readers.
//!
//! A network may carry unicast to a reader and not its group: a switch that snoops IGMP and has no querier, a firewall,
//! an access point. HEARTBEATs are lost with the samples there. So a reader of a group that leaves several HEARTBEATs
//! unanswered is asked by unicast. If its answers name all that was sent to the group, time and again, the group does
//! not reach it. From then on it is sent everything by unicast, until it announces other addresses.
//!
//! One answer proves nothing, since everything sent during an interruption is lost: after each, only what is sent later
//! counts. Nor do several that follow closely: a HEARTBEAT by unicast may overtake samples that wait in the socket of
//! the group. A single sample that has arrived disproves it.

use core::time::Duration;

use weir_wire::{AckNack, SequenceNumber};

use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::history::Entry;
use crate::multicast::GroupRoute;
use crate::time::Time;

/// What a reader's answers show about its group.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupReach {
    /// Samples before this show nothing: they were sent before the last answer that counts.
    from: SequenceNumber,
    /// The same at the answer before.
    before: SequenceNumber,
    /// So many datagrams were sent to the group and have not arrived, in ...
    missed: u32,
    /// ... so many answers, and none has arrived.
    pub(super) answers: u8,
    /// When the last of them came.
    answered_at: Time,
    /// The group that does not reach the reader.
    pub(super) refuted: Option<GroupRoute>,
}

impl GroupReach {
    pub(super) const UNKNOWN: Self = Self::since(SequenceNumber::ZERO);

    /// Nothing is known, and nothing sent before a sample shows anything.
    pub(super) const fn since(from: SequenceNumber) -> Self {
        Self { from, before: from, missed: 0, answers: 0, answered_at: Time::ZERO, refuted: None }
    }

    /// Returns whether the group does not reach the reader.
    fn is_refuted(&self) -> bool {
        self.missed >= MISSED_MIN && self.answers >= ANSWERS_MIN
    }
}

impl WriterCore {
    /// Returns whether a reader is sent samples by multicast.
    fn is_in_group(&self, index: usize) -> bool {
        self.proxies[index].group.is_some_and(|route| self.routes.contains(&route))
    }

    /// Has the readers asked by unicast that leave what is sent to their group unanswered.
    pub(super) fn ask_alone(&mut self) {
        if self.routes.is_empty() {
            return;
        }
        for index in 0..self.proxies.len() {
            if self.proxies[index].is_silent() && self.is_in_group(index) {
                self.proxies[index].is_heartbeat_due = true;
                self.due.add(index);
            }
        }
    }

    /// Learns from a reader's ACKNACK whether its group reaches it, and leaves the group if not. `seen`: the last
    /// sample that it had reached before. `is_more`: it continues the one before.
    #[inline(never)]
    pub(super) fn judge_group(
        &mut self,
        now: Time,
        index: usize,
        acknack: &AckNack,
        seen: SequenceNumber,
        is_more: bool,
    ) {
        let proxy = &self.proxies[index];
        let reach = &proxy.requested.reach;
        // The common case: it misses nothing, and has not before.
        let is_well = acknack.state.is_empty() && reach.answers == 0;
        if proxy.group.is_none() || is_well || !self.is_in_group(index) {
            return;
        }
        let reach = *reach;
        let from = if is_more { reach.before } else { reach.from };
        let from = from.max(seen.next()).max(proxy.start).max(self.group_since);
        let last = proxy.seen;
        if last < from {
            return;
        }
        let missing = acknack.state.iter().filter(|sn| (from..=last).contains(sn)).count();
        if (missing as i64) < last.0 - from.0 + 1 {
            if reach.answers > 0 {
                self.proxies[index].requested.reach = GroupReach::since(self.unsent);
            }
            return;
        }
        if is_more || reach.answers > 0 && now.since(reach.answered_at) < ANSWERS_APART {
            return;
        }
        let missed = reach.missed.saturating_add(self.datagrams_among(acknack, from, last));
        let answers = reach.answers.saturating_add(1);
        let proxy = &mut self.proxies[index];
        let reach = &mut proxy.requested.reach;
        *reach =
            GroupReach { from: self.unsent, before: reach.from, missed, answers, answered_at: now, ..*reach };
        if reach.is_refuted() {
            *reach = GroupReach { refuted: proxy.group, ..GroupReach::UNKNOWN };
            self.leave_group(now, index);
        }
    }

    /// Sends a reader everything by unicast from now on.
    fn leave_group(&mut self, now: Time, index: usize) {
        self.proxies[index].group = None;
        self.counters.groups_unreachable += 1;
        self.plan();
        self.readers_changed(now);
    }

    /// Returns in how many datagrams the samples were sent that an ACKNACK names, as far as they are in the history.
    fn datagrams_among(&self, acknack: &AckNack, from: SequenceNumber, last: SequenceNumber) -> u32 {
        let entry = |sn: SequenceNumber| self.history.entry(sn).filter(|entry: &Entry| entry.is_alive());
        let begins = |sn: &SequenceNumber| {
            entry(*sn).is_some_and(|it| !entry(sn.prev()).is_some_and(|before| before.is_extended_by(&it)))
        };
        acknack.state.iter().filter(|sn| (from..=last).contains(sn) && begins(sn)).count() as u32
    }
}

impl ReaderProxy {
    /// Forgets what was learned about its group, as nothing sent before `unsent` has arrived.
    pub(super) fn forget_reach(&mut self, unsent: SequenceNumber) {
        if self.group.is_some() {
            self.requested.reach = GroupReach::since(unsent);
        }
    }
}

/// So many datagrams must be missing: of those that a lossy link loses one by one, that many in a row are rare. (At
/// 40 %, once in 10¹² datagrams.)
const MISSED_MIN: u32 = 32;
/// In so many answers, ...
const ANSWERS_MIN: u8 = 3;
/// ... with so much time between them.
const ANSWERS_APART: Duration = Duration::from_millis(20);
