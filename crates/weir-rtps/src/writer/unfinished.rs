//! How far readers of other engines have got within a large sample.
//!
//! They answer no HEARTBEAT_FRAG, or late, and only if something is missing. A HEARTBEAT that announces the sample
//! before all of it has left makes them request its missing fragments with a NACK_FRAG. (The sample is in the history,
//! so that it may be announced: RTPS 2.5, 8.3.8.6.3.) The base of the set shows what has arrived, and what the set
//! covers and does not name has arrived, too. What has not left yet, or is in flight, is named as well, and is not sent
//! again for that.
//!
//! Without it, nothing passes on the path until the whole sample has: at 1 MiB, a path of 100 Mbit/s was used by 2 to
//! 18 percent.

use alloc::sync::Arc;
use core::time::Duration;

use weir_wire::{FragmentNumber, NackFrag, SequenceNumber};

use super::pacing::{Pacing, Position};
use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::history::Entry;
use crate::outbox::Outbox;
use crate::time::Time;

impl ReaderProxy {
    /// Returns whether the reader is on another host, and does not answer HEARTBEAT_FRAG.
    pub(super) fn hides_fragments(&self) -> bool {
        self.is_reliable && self.path.is_some() && !self.answers_heartbeat_frags()
    }

    /// Returns whether a sample is announced to the reader before all of it has left.
    pub(super) fn is_shown_early(&self, sn: SequenceNumber, entry: &Entry) -> bool {
        self.hides_fragments()
            && (entry.len > EARLY_MIN_BYTES || self.is_late() || sn < self.requested.history_end)
    }

    /// Returns up to which fragment of a sample, of which `sent` were sent, the reader is known to have got.
    pub(super) fn fragments_shown(&self, nack: &NackFrag, entry: &Entry, sent: u32) -> u32 {
        let before = nack.state.base().0.saturating_sub(1);
        if !self.is_shown_early(nack.sequence_number, entry) {
            // It names nothing behind the last fragment that a HEARTBEAT has announced.
            return nack.state.iter().map(|it| it.0).filter(|it| *it <= sent).fold(before, u32::max);
        }
        let (mut expected, mut shown) = (nack.state.base().0, before);
        for FragmentNumber(named) in nack.state.iter() {
            if named > expected {
                shown = named - 1;
            }
            expected = named + 1;
        }
        shown.min(sent)
    }
}

impl Pacing {
    /// Returns up to where fragments that a reader has not got are lost, and not in flight.
    pub(super) fn arrived(&self, now: Time, proxy: &ReaderProxy) -> Position {
        let all = (SequenceNumber(i64::MAX), u32::MAX);
        let it = proxy.path.as_ref().and_then(|path| self.uses.iter().find(|it| it.path.is(path)));
        let Some(it) = it else { return all };
        let usual = it.path.lock().answer_time();
        let time = usual.map_or(config::PATH_ANSWER_UNKNOWN, patience);
        let old = it.marks.iter().take_while(|(_, mark)| now.since(mark.set_at()) >= time);
        old.last().map_or(it.passed, |(position, _)| it.passed.max(*position))
    }
}

impl WriterCore {
    /// Prepares for the requests of a NACK_FRAG, which shows that the reader has got up to fragment `seen` of a sample.
    /// Returns up to which position they are for what is lost.
    pub(super) fn requests_up_to(
        &mut self,
        now: Time,
        index: usize,
        (sn, seen): (SequenceNumber, u32),
        entry: &Entry,
    ) -> Position {
        let proxy = &mut self.proxies[index];
        if !proxy.is_shown_early(sn, entry) {
            return (SequenceNumber(i64::MAX), u32::MAX);
        }
        if let Some(usual) = proxy.path.as_ref().and_then(|path| path.lock().answer_time()) {
            proxy.requested.fragment_time = patience(usual);
        }
        self.pacing.arrived(now, &self.proxies[index]).max((sn.prev(), seen))
    }

    /// Returns whether HEARTBEATs for a reader announce the large sample that is being sent.
    pub(super) fn is_shown_unfinished(&self, proxy: &ReaderProxy) -> bool {
        let unsent = proxy.sent_end(self.unsent);
        let is_meant = proxy.is_introduced && proxy.start <= unsent && !self.is_beside_sender;
        let is_shown = |entry: Entry| proxy.is_shown_early(unsent, &entry);
        let is_amid = proxy.sent_apart().map_or(self.is_amid_sample(), |sent| sent > 0);
        is_amid && is_meant && self.history.entry(unsent).is_some_and(is_shown)
    }

    /// Asks the readers of other engines, or one reader, how far they have got within the sample that is being sent: on
    /// each path one of them in turn, since the answer is about the path.
    pub(super) fn ask_others_amid_sample(&mut self, one: Option<usize>, out: &mut Outbox) {
        if let Some(index) = one {
            return self.ask_amid_sample(index, out);
        }
        for place in 0..self.pacing.uses.len() {
            let path = &self.pacing.uses[place].path;
            let is_asked = |proxy: &ReaderProxy| {
                proxy.path.as_ref().is_some_and(|it| it.is(path)) && self.is_shown_unfinished(proxy)
            };
            let asked = || self.proxies.iter().enumerate().filter(|(_, proxy)| is_asked(proxy));
            let count = asked().count().max(1);
            let index = asked().nth(self.fragments.count as usize % count).map(|(index, _)| index);
            index.into_iter().for_each(|index| self.ask_amid_sample(index, out));
        }
    }

    fn ask_amid_sample(&mut self, index: usize, out: &mut Outbox) {
        let proxy = &self.proxies[index];
        if self.is_shown_unfinished(proxy) {
            let (guid, to) = (proxy.guid, Arc::clone(&proxy.destinations));
            // These readers send no ECHO of it.
            let heartbeat = self.heartbeat_for(None, index);
            self.send_reply(guid, &to, None, &[], &heartbeat, out);
        }
    }
}

/// Returns after which time something that a reader has not got is lost, if answers usually take `usual`. Each mark
/// may cause a request of the same fragments, so that this is longer than where they are requested once.
fn patience(usual: Duration) -> Duration {
    usual / 2 * 3
}

/// Samples that are no longer than this, in bytes, are announced when they have left: each answer may request again
/// what is in flight, and a path of 5 Mbit/s takes no longer than a tenth of a second for them.
const EARLY_MIN_BYTES: u32 = 1 << 16;
