//! Datagrams that are announced and not sent, to see whether readers acknowledge what they have not received.
//!
//! The [path](crate::path) decides when. The writer leaves out a datagram of new samples, or a fragment, that others
//! follow. HEARTBEATs name it as if it had been sent. Readers on the tested path request it then, as after a loss, and
//! it is sent as a repair. All other readers get it at once. For an honest reader, this costs a round trip for one
//! datagram. When the stream ends, it is sent without a request, so that a lost request does not hold up the end.
//!
//! Only a stream is tested: a writer with more to send, or that has sent much since the last HEARTBEAT. A best-effort
//! reader at the address of a tested one loses the datagram.

use core::ops::Range;

use weir_wire::{AckNack, Guid, NackFrag, SequenceNumber};

use super::pacing::Position;
use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::history::{Entry, History as Store};
use crate::outbox::{Destinations, Outbox};
use crate::path::Verdict;
use crate::qos::History;
use crate::time::Time;

/// What a reader was not sent yet: some samples, or a fragment of one.
#[derive(Debug, Clone)]
pub(super) struct Withheld {
    samples: Range<SequenceNumber>,
    /// Counted from 1.
    fragment: Option<u32>,
    /// The test of the path that it belongs to.
    test: u64,
    /// From then on, nothing behind it counts as passed. Until then, the request for it may have been lost.
    bars_from: Time,
    /// A HEARTBEAT or a GAP has let the reader go on without it.
    is_excused: bool,
    /// It is to be sent without a request.
    is_released: bool,
}

impl Withheld {
    /// Returns how far a reader can have got that was not sent it.
    fn reach(&self) -> Position {
        (self.samples.start.prev(), self.fragment.map_or(0, |number| number - 1))
    }

    /// Returns whether it is a part of a sample, or of a fragment, counted from 1.
    pub(super) fn contains(&self, sn: SequenceNumber, fragment: Option<u32>) -> bool {
        let is_part = fragment.is_none() || self.fragment.is_none() || fragment == self.fragment;
        self.samples.contains(&sn) && is_part
    }

    /// Returns what an ACKNACK shows.
    fn judge(&self, acknack: &AckNack) -> Option<Verdict> {
        let state = &acknack.state;
        if state.base() > self.samples.start {
            return Some(if self.is_excused { Verdict::Nothing } else { Verdict::Lie });
        }
        self.judge_requests(acknack)
    }

    /// Returns what the requests of an ACKNACK show.
    fn judge_requests(&self, acknack: &AckNack) -> Option<Verdict> {
        let state = &acknack.state;
        let is_requested = state.iter().any(|sn| self.samples.contains(&sn));
        let end = state.base().0 + i64::from(state.num_bits());
        is_requested.then(|| proof(state.iter().map(|sn| sn.0), self.samples.start.0, state.base().0..end))
    }

    /// Returns what a NACK_FRAG for its sample shows. Its base acknowledges nothing: what is missing before it was
    /// requested earlier. `shown`: the last fragment that the reader has got, if it may name others that are in flight.
    fn judge_fragments(&self, nack: &NackFrag, shown: Option<u32>) -> Option<Verdict> {
        let (state, number) = (&nack.state, self.fragment?);
        if shown.is_some_and(|shown| number > shown) {
            return None;
        }
        let is_requested = state.iter().any(|it| it.0 == number);
        let last = shown.or(state.iter().last().map(|it| it.0)).unwrap_or(number);
        let covered = state.base().0.into()..last.saturating_add(1).into();
        is_requested.then(|| proof(state.iter().map(|it| i64::from(it.0)), number.into(), covered))
    }
}

/// Returns what a request shows that names a withheld number. If it names most of the numbers around it, that may be
/// because it names all.
fn proof(requested: impl Iterator<Item = i64>, number: i64, covered: Range<i64>) -> Verdict {
    let near = covered.start.max(number - NEAR)..covered.end.min(number + NEAR);
    let also = requested.filter(|it| near.contains(it) && *it != number).count() as i64;
    if also * 2 > near.end - near.start { Verdict::Unclear } else { Verdict::Proven }
}

/// Numbers before and behind a withheld one that are compared with it.
const NEAR: i64 = 32;

impl ReaderProxy {
    /// Returns how far the reader has got, as far as it has proven.
    pub(super) fn proven(&self, now: Time, history: &Store) -> Position {
        let reached = self.reached();
        // A reader may go on without what was removed.
        let is_kept = |it: &Withheld| history.entry(it.samples.start).is_some_and(|entry| entry.is_alive());
        self.requested
            .withheld
            .as_ref()
            .filter(|it| now >= it.bars_from && is_kept(it))
            .map_or(reached, |withheld| reached.min(withheld.reach()))
    }

    /// Takes what an ACKNACK shows about what was withheld.
    pub(super) fn judge(&mut self, acknack: &AckNack) {
        self.judge_by(|withheld| withheld.judge(acknack));
    }

    /// Takes what the continuation of an ACKNACK shows about it.
    pub(super) fn judge_continuation(&mut self, acknack: &AckNack) {
        self.judge_by(|withheld| withheld.judge_requests(acknack));
    }

    /// Takes what a NACK_FRAG shows about it. `shown`: up to which fragment the reader has got, if it may name others
    /// that are in flight.
    pub(super) fn judge_fragments(&mut self, nack: &NackFrag, shown: Option<u32>) {
        if self.requested.withheld.as_ref().is_some_and(|it| it.contains(nack.sequence_number, None)) {
            self.judge_by(|withheld| withheld.judge_fragments(nack, shown));
        }
    }

    fn judge_by(&mut self, verdict: impl FnOnce(&Withheld) -> Option<Verdict>) {
        if let Some(requested) = self.requested.changed()
            && let Some(withheld) = &requested.withheld
        {
            requested.verdict = verdict(withheld);
        }
    }

    fn excuse(&mut self, is_excused: impl FnOnce(SequenceNumber) -> bool) {
        if let Some(withheld) = self.withheld_mut() {
            withheld.is_excused |= is_excused(withheld.samples.start);
        }
    }

    fn withheld_mut(&mut self) -> Option<&mut Withheld> {
        self.requested.changed()?.withheld.as_mut()
    }
}

impl WriterCore {
    /// Withholds the first datagram of the samples before `end`, if that is due.
    pub(super) fn withhold_samples(&mut self, now: Time, end: SequenceNumber, out: &mut Outbox) {
        let first = self.unsent;
        let entry_at =
            |sn| self.history.entry(sn).filter(|it: &Entry| it.is_alive() && it.fragment_size == 0);
        let Some(mut entry) = entry_at(first).filter(|_| first < end && !self.is_amid_sample()) else {
            return;
        };
        let mut next = first.next();
        while let Some(more) = entry_at(next).filter(|more| next < end && entry.is_extended_by(more)) {
            (entry, next) = (more, next.next());
        }
        if next >= end && !self.pacing.is_streaming(entry.len.into()) {
            return;
        }
        let Some(others) = self.withhold(now, first..next, None) else { return };
        if self.filters.is_some() {
            self.append_gaps(false, out);
        }
        self.append_samples(first..next, &others, out);
        self.unsent = next;
        self.heartbeat.is_due = true;
    }

    /// Withholds the next fragment of a sample, if that is due. Returns whom it is to be sent to nevertheless.
    pub(super) fn withhold_fragment(
        &mut self,
        now: Time,
        sn: SequenceNumber,
        left: u32,
    ) -> Option<Destinations> {
        let is_early = self.fragments.sent < config::PROOF_FRAGMENTS;
        if u64::from(left) < config::PROOF_STREAM || !is_early || !self.pacing.is_paced {
            return None;
        }
        self.withhold(now, sn..sn.next(), Some(self.fragments.sent + 1))
    }

    /// Withholds something from the readers at the end of the path that is due. Returns where the others are.
    fn withhold(
        &mut self,
        now: Time,
        samples: Range<SequenceNumber>,
        fragment: Option<u32>,
    ) -> Option<Destinations> {
        self.pacing.wants_proof = false;
        if self.config.history == History::KeepLast(1) {
            // The next sample would replace it before it is requested.
            return None;
        }
        let path = self.pacing.path_to_prove(now)?;
        let is_tested = |proxy: &ReaderProxy| {
            proxy.is_awaited()
                && proxy.is_introduced
                && proxy.start <= samples.start
                && proxy.requested.withheld.is_none()
                && proxy.path.as_ref().is_some_and(|it| it.is(&path))
        };
        if !self.proxies.iter().any(is_tested) {
            return None;
        }
        let (test, answer) = path.lock().begin_proof(now);
        let bars_from = now + 2 * answer;
        let mut others = core::mem::take(&mut self.addresses);
        others.clear();
        for proxy in &mut self.proxies {
            if is_tested(proxy) {
                proxy.requested.withheld = Some(Withheld {
                    samples: samples.clone(),
                    fragment,
                    test,
                    bars_from,
                    is_excused: false,
                    is_released: false,
                });
            } else if !proxy.is_apart() {
                others.extend(proxy.destinations.iter().copied());
            }
        }
        others.sort_unstable();
        others.dedup();
        // The others at an address of one that is tested are not sent it either.
        let is_barred = |it: &Withheld| {
            it.bars_from == bars_from && it.samples == samples && it.fragment == fragment && !it.is_released
        };
        let tested =
            self.proxies.iter().filter(|proxy| proxy.requested.withheld.as_ref().is_some_and(is_barred));
        others.retain(|it| !tested.clone().any(|proxy| proxy.destinations.contains(it)));
        self.has_withheld = true;
        self.counters.samples_withheld += 1;
        let to = self.lists.list(&others);
        self.addresses = others;
        Some(to)
    }

    /// Notes whether there are readers that were not sent everything.
    pub(super) fn note_withheld(&mut self) {
        let is_any = || self.proxies.iter().any(|proxy| proxy.requested.withheld.is_some());
        self.has_withheld = self.taking.is_some() || is_any();
    }

    /// Returns when what is withheld is to be sent without a request, if no more is sent until then.
    pub(super) fn withheld_timeout(&self) -> Option<Time> {
        let is_kept_back =
            |proxy: &ReaderProxy| proxy.requested.withheld.as_ref().is_some_and(|it| !it.is_released);
        let may_end = self.has_withheld && !self.has_unsent() && self.proxies.iter().any(is_kept_back);
        self.pacing.quiet_at(self.history.next()).filter(|_| may_end)
    }

    /// Sends what is withheld with the next transmission, if the stream is over.
    pub(super) fn release_withheld(&mut self, now: Time) {
        if self.withheld_timeout().is_none_or(|at| at > now) || self.pacing.note_fast(now) {
            return;
        }
        for (index, proxy) in self.proxies.iter_mut().enumerate() {
            let Some(withheld) = proxy.withheld_mut().filter(|it| !it.is_released) else { continue };
            withheld.is_released = true;
            let (samples, fragment) = (withheld.samples.clone(), withheld.fragment);
            for sn in (samples.start.0..samples.end.0).map(SequenceNumber) {
                let has_room = match fragment {
                    None => proxy.has_room_for_sample(),
                    Some(_) => proxy.has_room_for_fragment(),
                };
                if has_room && proxy.accepts_request(now, (sn, fragment.unwrap_or(0))) {
                    match fragment {
                        None => proxy.requested.samples.push(sn),
                        Some(number) => proxy.requested.fragments.push((sn, number - 1)),
                    }
                }
            }
            self.due.add_if(index, true);
        }
    }

    /// Records that samples before `first` need not be waited for, as a HEARTBEAT says to all readers.
    pub(super) fn excuse_all(&mut self, first: SequenceNumber) {
        if self.has_withheld {
            self.proxies.iter_mut().for_each(|proxy| proxy.excuse(|sn| sn < first));
        }
    }

    /// Records which samples a message to one reader lets it go on without. Others are tested as before: the reader may
    /// have requested the message.
    pub(super) fn excuse(&mut self, reader: &Guid, is_excused: impl FnOnce(SequenceNumber) -> bool) {
        if self.has_withheld
            && let Some(proxy) = self.reader_mut(reader)
        {
            proxy.excuse(is_excused);
        }
    }

    /// Records that something was sent to these addresses after all.
    pub(super) fn send_withheld(
        &mut self,
        now: Time,
        sn: SequenceNumber,
        fragment: Option<u32>,
        to: &Destinations,
    ) {
        if !self.has_withheld {
            return;
        }
        for proxy in &mut self.proxies {
            let is_it =
                proxy.requested.withheld.as_ref().is_some_and(|withheld| withheld.contains(sn, fragment));
            if is_it && proxy.destinations.iter().any(|at| to.contains(at)) {
                let withheld = proxy.requested.withheld.take();
                if let Some((path, withheld)) = proxy.path.as_ref().zip(withheld) {
                    path.lock().settle_proof(now, withheld.test, Verdict::Nothing);
                }
            }
        }
        self.note_withheld();
    }

    /// Takes what the last message of a reader has shown about what was withheld. Returns it, if that is over.
    pub(super) fn settle_withheld(&mut self, now: Time, index: usize) -> Option<Withheld> {
        if !self.has_withheld {
            return None;
        }
        let proxy = &mut self.proxies[index];
        let requested = proxy.requested.changed()?;
        let verdict = requested.verdict.take()?;
        let withheld = requested.withheld.take();
        if let Some((path, withheld)) = proxy.path.as_ref().zip(withheld.as_ref()) {
            let mut state = path.lock();
            state.settle_proof(now, withheld.test, verdict);
            self.pacing.is_paced |= state.is_paced();
        }
        self.note_withheld();
        withheld
    }
}
