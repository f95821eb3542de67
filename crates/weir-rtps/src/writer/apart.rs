//! Readers behind a path that carries less than the others do.
//!
//! A KEEP_ALL writer goes at the rate of the slowest path to its reliable readers. A KEEP_LAST writer, or one without
//! reliable readers, need not. If a path has taken less than was to be sent for [`config::APART_AFTER`], or a quarter
//! of its round trip if that is longer, and others carry more, the readers at its end are set *apart* once it takes
//! nothing: new samples leave for the others, and each reader that is apart is sent them by itself, as its path allows.
//! It gets those that the history still holds when their turn comes, always the last one, and of a best-effort writer
//! those that leave within [`config::BEST_EFFORT_WAIT`]. When it has been sent everything, it is sent new samples with
//! the others again.
//!
//! HEARTBEATs announce to a reliable reader only what it was sent, so that it requests nothing but what was lost.
//!
//! Best-effort readers of a writer that has reliable ones, too, hold up none of these. Where such readers are alone at
//! the end of a path, they are set apart as soon as it takes less than all that is to be sent.
//!
//! Readers that a multicast group serves are not set apart: a datagram to the group reaches all of them.

use core::ops::{Range, RangeInclusive};

use weir_wire::SequenceNumber;

use super::pacing::{Pacing, Position};
use super::path_uses::PathUse;
use super::reader_proxy::ReaderProxy;
use super::receipts::Answered;
use super::repairs_allowed::NeverSent;
use super::state::WriterCore;
use crate::config;
use crate::history::Entry;
use crate::outbox::{Destinations, Outbox};
use crate::path::{Allowance, Path, Purpose};
use crate::qos::History;
use crate::time::Time;

/// What a path takes of what is to be sent now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    /// Bytes of one copy; `None`: any number.
    pub(super) bytes: Option<u64>,
    /// When to ask again.
    pub(super) next_at: Option<Time>,
    pub(super) is_blocked: bool,
    pub(super) ends_flight: bool,
}

impl Taken {
    fn of(allowance: Allowance, copies: u64) -> Self {
        let bytes = |bytes: u64| Some(bytes.div_ceil(copies));
        match allowance {
            Allowance::Unlimited => Self::default(),
            Allowance::Bytes(most) => Self { bytes: bytes(most), ..Self::default() },
            Allowance::Flight(most) => Self { bytes: bytes(most), ends_flight: true, ..Self::default() },
            Allowance::At(at) => Self { bytes: Some(0), next_at: Some(at), ..Self::default() },
            Allowance::Blocked { until } => {
                Self { bytes: Some(0), next_at: Some(until), is_blocked: true, ..Self::default() }
            }
        }
    }
}

impl PathUse {
    /// Returns whether others are not held up by it.
    pub(super) fn is_left_out(&self) -> bool {
        self.is_out || self.is_aside
    }

    /// Asks the path what it takes now. `is_bulk`: much was sent of which readers that say what has arrived have not
    /// said it.
    pub(super) fn ask(
        &mut self,
        now: Time,
        wanted: u64,
        purpose: Purpose,
        (large_bytes, is_bulk): (u64, bool),
    ) {
        if self.is_out && self.owes {
            return;
        }
        let mut purpose = if self.is_aside { Purpose::BestEffort } else { purpose };
        if self.is_answered(now) && (is_bulk || !self.path.lock().is_paced()) {
            // What may leave depends on what has arrived. Little need not wait behind what others have in flight.
            self.account_unasked(now);
            purpose = Purpose::New;
        }
        let unreported = self.unreported(large_bytes);
        let mut state = self.path.lock();
        let allowance = state.allow_beside(now, self.flow, wanted * self.copies, purpose, unreported);
        drop(state);
        let full = Allowance::Blocked { until: now + config::APART_AFTER };
        self.taken = Taken::of(if self.is_full { full } else { allowance }, self.copies);
        self.is_limit = self.taken.bytes.is_some_and(|bytes| bytes < wanted);
    }

    /// Returns the bytes per second of one copy that the path carries, as far as is known.
    fn rate(&self) -> f64 {
        self.path.lock().rate().map_or(f64::INFINITY, |rate| rate / self.copies as f64)
    }

    /// Notes since when it takes less than others. `others`: the bytes per second that one of them carries, and whether
    /// one of them takes something now.
    fn note_late(&mut self, now: Time, (rate, takes): (f64, bool)) {
        let is_late = if self.is_limit && self.taken.is_blocked {
            // While all wait for answers, nothing shows which of them is slower.
            self.late_since.is_some() || takes
        } else {
            self.is_limit && self.rate() < rate * config::APART_RATE_SHARE
        };
        self.late_since = if is_late { self.late_since.or(Some(now)) } else { None };
    }

    /// Returns whether its readers are to be set apart.
    fn is_too_late(&self, now: Time) -> bool {
        self.too_late_at().is_some_and(|at| at <= now)
    }

    /// Returns when its readers are to be set apart, if it takes nothing until then.
    pub(super) fn too_late_at(&self) -> Option<Time> {
        let since = self.late_since.filter(|_| self.taken.bytes == Some(0))?;
        let round_trip = self.path.lock().round_trip_min().unwrap_or_default();
        Some(since + (round_trip / 4).clamp(config::APART_AFTER, config::APART_AFTER_MAX))
    }
}

impl Pacing {
    /// Decides, after all paths were asked, which are left out now. `is_amid`: a large sample was begun, so that none
    /// comes back.
    pub(super) fn leave_out(&mut self, now: Time, is_amid: bool) {
        if !self.uses.iter().any(|it| it.is_limit || it.is_out || it.late_since.is_some()) {
            return;
        }
        // Of those that are sent what is new: how many there are, how many take something now, and the highest rates.
        let near = if self.has_near { (1, f64::INFINITY) } else { (0, 0.0) };
        let (mut count, mut taking, mut rates) = (near.0, near.0, [near.1, 0.0]);
        for it in self.uses.iter().filter(|it| !it.is_left_out()) {
            (count, taking) = (count + 1, taking + usize::from(!it.taken.is_blocked));
            let rate = it.rate();
            rates = if rate > rates[0] { [rate, rates[0]] } else { [rates[0], rates[1].max(rate)] };
        }
        for it in &mut self.uses {
            let is_counted = !it.is_left_out();
            let has_others = count > usize::from(is_counted);
            let takes = taking > usize::from(is_counted && !it.taken.is_blocked);
            let is_highest = is_counted && it.rate() >= rates[0];
            let rate = if is_highest { rates[1] } else { rates[0] };
            // Filters count what is left out for each reader. Some reader is always sent what is new.
            let may_be_out = self.has_no_filters && has_others && !it.is_joint;
            let is_out = if it.is_late {
                true
            } else if it.is_out {
                let is_full = it.taken.is_blocked && it.is_answered(now);
                is_amid || may_be_out && (it.owes || is_full || it.is_aside && it.is_limit)
            } else if it.is_aside {
                may_be_out && it.is_limit
            } else {
                it.note_late(now, (rate, takes));
                self.may_part && may_be_out && it.is_too_late(now)
            };
            if is_out != it.is_out {
                count =
                    if is_out { count - usize::from(is_counted) } else { count + usize::from(!it.is_aside) };
                (it.is_out, self.has_parted) = (is_out, true);
                it.sent_to = None;
            }
        }
    }

    fn is_out(&self, path: &Path) -> bool {
        self.uses.iter().any(|it| it.is_out && it.path.is(path))
    }
}

impl ReaderProxy {
    /// Returns whether the reader is sent new samples by itself.
    #[inline]
    pub(super) fn is_apart(&self) -> bool {
        self.requested.fed.is_some()
    }

    /// Returns whether the reader is apart, and the answer to a HEARTBEAT may be in flight. Each sample would bring one
    /// otherwise.
    pub(super) fn is_asked_lately(&self, now: Time) -> bool {
        self.is_apart() && now < self.ask_at
    }

    /// Records a HEARTBEAT to the reader.
    pub(super) fn note_asked(&mut self, now: Time) {
        if self.is_apart() {
            let answer = self.path.as_ref().and_then(|path| path.lock().answer_time());
            let answer = answer.unwrap_or_default().min(config::PATIENCE_MAX);
            self.ask_at = now + answer.max(config::HEARTBEAT_DELAY_MIN);
        }
    }

    /// Sends the reader nothing with the others from a fragment of the next sample on.
    pub(super) fn begin_apart(&mut self, from: Position) {
        self.requested.never_sent = self.requested.never_sent.and_from(from);
        self.requested.fed = Some(self.requested.never_sent.from());
        self.begin_account();
    }

    /// Counts what a best-effort reader is sent from now on, by itself or with the others.
    fn begin_account(&mut self) {
        if let Some(requested) = self.requested.changed().filter(|_| !self.is_reliable) {
            requested.apart.begin();
            requested.answered.iter_mut().for_each(Answered::begin);
        }
    }

    /// Sends the reader new samples with the others again, from `unsent` on.
    fn join(&mut self, unsent: SequenceNumber) {
        if let Some(requested) = self.requested.changed() {
            requested.fed = None;
            // What is still to be sent, a reliable reader requests.
            requested.never_sent.end_at(unsent);
        }
        self.begin_account();
    }

    /// Forgets what the reader is still to be sent by itself, as a best-effort one. Returns how many samples that is.
    pub(super) fn forget_owed(&mut self, unsent: SequenceNumber) -> u64 {
        let is_apart = self.is_apart();
        let Some(requested) = self.requested.changed().filter(|_| !self.is_reliable) else { return 0 };
        requested.samples.clear();
        requested.fragments.clear();
        requested.repairs.clear();
        let (first, _) = requested.never_sent.from();
        requested.never_sent = NeverSent::NONE;
        if is_apart { (unsent.0 - first.0).max(0).unsigned_abs() } else { 0 }
    }

    /// Returns whether it is apart, and still to be sent something from before `unsent`.
    pub(super) fn is_owed(&self, unsent: SequenceNumber) -> bool {
        self.requested.fed.is_some_and(|(sn, _)| sn < unsent) || self.is_awaiting()
    }

    fn is_awaiting(&self) -> bool {
        !self.requested.samples.is_empty() || !self.requested.fragments.is_empty()
    }

    /// Returns the first sample that the reader was not sent as a whole. `unsent`: the first that the others were not.
    pub(super) fn sent_end(&self, unsent: SequenceNumber) -> SequenceNumber {
        if self.is_apart() { self.requested.never_sent.from().0 } else { unsent }
    }

    /// Returns whether it has something to acknowledge of what it was sent, or is to answer for the first time.
    pub(super) fn has_to_answer(&self, unsent: SequenceNumber) -> bool {
        self.acknowledged.next() < self.sent_end(unsent)
            || self.sent_apart().is_none_or(|fragments| fragments > 0)
            || self.is_awaited_late()
    }

    /// Returns the fragments of that sample that it was sent, if it is apart.
    pub(super) fn sent_apart(&self) -> Option<u32> {
        self.is_apart().then(|| self.requested.never_sent.from().1)
    }

    /// Returns the fragments of a sample that it was sent, if it is apart and was sent a part of it.
    pub(super) fn sent_apart_of(&self, sn: SequenceNumber) -> Option<u32> {
        self.sent_apart().filter(|sent| *sent > 0 && self.requested.never_sent.from().0 == sn)
    }

    /// Prepares to send fragments of a sample, as many as are listed at a time. Returns whether these are all.
    fn feed_fragments(&mut self, sn: SequenceNumber, fragments: Range<u32>) -> bool {
        for number in fragments {
            if !self.has_room_for_fragment() {
                self.requested.fed = Some((sn, number));
                return false;
            }
            self.await_fragment(sn, number);
        }
        true
    }
}

impl WriterCore {
    /// Returns how many bytes may be sent now to those readers that are not apart; `None`: any number.
    pub(super) fn allowance(&mut self, now: Time, wanted: u64) -> Option<u64> {
        let is_held_up = self.config.history == History::KeepAll && self.has_reliable;
        // The next sample of its instance replaces one that has not left as a whole.
        let is_lossy = self.config.guid.entity.is_keyed() && !self.large.is_empty();
        self.pacing.may_part = !is_held_up && !is_lossy;
        self.pacing.has_no_filters = self.filters.is_none();
        if self.taking.is_some() {
            self.note_owed(now);
            self.pacing.has_parted |= !self.is_amid_sample() && self.end_history(now);
        }
        let allowed = self.pacing.allowance(now, wanted, self.purpose(), self.is_amid_sample());
        if core::mem::take(&mut self.pacing.has_parted) {
            self.part();
            // What is sent to readers that are apart follows with the next transmission, if not with this.
            self.pacing.repairs_at = self.taking.as_ref().map(|_| now.plus_nanos(1));
        }
        allowed
    }

    /// Notes at the end of which paths readers that are apart are still to be sent something, or to acknowledge much.
    fn note_owed(&mut self, now: Time) {
        let (proxies, unsent) = (&self.proxies, self.unsent);
        // The others wait for room at a reader that is not apart.
        let sent = self.history.charged_to(unsent.prev());
        let is_far_behind = |proxy: &ReaderProxy| {
            proxy.is_reliable && sent - self.history.charged_to(proxy.seen).min(sent) > self.window.size() / 4
        };
        for it in &mut self.pacing.uses {
            let is_there = |proxy: &&ReaderProxy| proxy.path.as_ref().is_some_and(|path| path.is(&it.path));
            it.owes = proxies.iter().filter(is_there).any(|proxy| {
                proxy.is_owed(unsent) || is_far_behind(proxy) || proxy.would_discard(now, unsent)
            });
        }
    }

    /// Sets readers apart, or sends them new samples with the others again, as their paths are left out or not.
    pub(super) fn part(&mut self) {
        let next = (self.unsent, self.fragments.sent);
        let mut is_any = false;
        for proxy in &mut self.proxies {
            let is_out = proxy.is_late() || proxy.path.as_ref().is_some_and(|path| self.pacing.is_out(path));
            if is_out && !proxy.is_apart() {
                proxy.begin_apart(next);
            } else if !is_out && proxy.is_apart() {
                self.counters.samples_left_out += proxy.forget_owed(self.unsent);
                proxy.join(self.unsent);
            }
            is_any |= is_out;
        }
        self.taking = is_any.then(|| self.addresses_taking());
        self.pacing.repairs_at = self.pacing.repairs_at.filter(|_| is_any);
        self.update_indirect();
        self.note_withheld();
    }

    /// Returns the addresses of the readers that are not set apart.
    fn addresses_taking(&mut self) -> Destinations {
        let is_left_out = |address| {
            let mut there = self.proxies.iter().filter(|proxy| proxy.destinations.contains(address));
            there.clone().next().is_some() && there.all(ReaderProxy::is_apart)
        };
        self.addresses.clear();
        self.addresses.extend(self.destinations.iter().filter(|address| !is_left_out(address)));
        self.lists.list(&self.addresses)
    }

    /// Returns where new samples are sent.
    #[inline]
    pub(super) fn taking(&self) -> &Destinations {
        self.taking.as_ref().unwrap_or(&self.destinations)
    }

    /// Prepares to send the next samples to readers that are apart, and have been sent what was prepared before.
    /// Returns whether there are any.
    pub(super) fn feed_apart(&mut self, now: Time) -> bool {
        let mut is_any = false;
        for index in 0..self.proxies.len() {
            let proxy = &self.proxies[index];
            let may_feed = !proxy.is_awaiting() && self.may_feed(proxy);
            let Some(fed) = proxy.requested.fed.filter(|_| may_feed) else { continue };
            self.feed(now, index, fed);
            let is_fed = self.proxies[index].is_awaiting();
            self.due.add_if(index, is_fed);
            is_any |= is_fed;
        }
        is_any
    }

    /// Goes on with readers that are apart and have been sent what was prepared.
    pub(super) fn go_on_apart(&mut self, now: Time) {
        if !self.is_beside_sender && self.feed_apart(now) {
            self.pacing.repairs_at.get_or_insert(now.plus_nanos(1));
        }
        if self.proxies.iter().any(|proxy| proxy.is_apart() && !proxy.is_reliable) {
            self.release();
        }
        if !self.is_amid_sample() {
            self.note_owed(now);
            self.pacing.has_parted |= self.end_history(now);
            // Where best-effort readers answer, the next sample shows whether their path takes more.
            let may_join = |it: &&mut PathUse| it.is_out && !it.is_late && !it.owes && !it.is_answered(now);
            for it in self.pacing.uses.iter_mut().filter(may_join) {
                (it.is_out, it.sent_to, self.pacing.has_parted) = (false, None, true);
            }
            if core::mem::take(&mut self.pacing.has_parted) {
                self.part();
            }
        }
    }

    /// Returns whether a reader is apart, and another thread may be sending what was handed out for it: a HEARTBEAT
    /// would overtake that.
    pub(super) fn waits_for_sender(&mut self, now: Time, index: usize) -> bool {
        let is_apart = self.proxies[index].is_apart();
        if is_apart && self.is_beside_sender {
            self.due.add(index);
            self.pacing.repairs_at.get_or_insert(now.plus_nanos(1));
            return true;
        }
        false
    }

    /// Notes that a GAP is sent to a reader for the samples from one on that were removed.
    pub(super) fn note_removed(&mut self, now: Time, index: usize, sn: SequenceNumber) {
        let end = self.history.first_alive(sn).min(self.unsent);
        let (proxy, heartbeats) = (&mut self.proxies[index], self.heartbeat.count);
        // Requests that left before the GAP arrives name it again.
        proxy.note_gap(now, sn, heartbeats);
        if proxy.is_apart() {
            self.pass_over_apart(index, end);
        }
    }

    /// Asks a reader that is apart for fragments of a sample that it was sent. `waits`: others follow.
    pub(super) fn ask_about_fragments(
        &mut self,
        now: Time,
        index: usize,
        (sn, waits): (SequenceNumber, bool),
        out: &mut Outbox,
    ) {
        let proxy = &mut self.proxies[index];
        if !proxy.is_reliable {
            return;
        }
        proxy.is_heartbeat_due |= !waits && !proxy.is_asked_lately(now);
        if proxy.shows_progress() && proxy.sent_apart_of(sn).is_some() {
            // A HEARTBEAT announces whole samples.
            if core::mem::take(&mut proxy.is_heartbeat_due) {
                self.heartbeat_frag(now, sn, Some(index), out);
            }
        }
    }

    fn feed(&mut self, now: Time, index: usize, fed: Position) {
        let end = self.proxies[index].kept_end(now, self.unsent);
        let (mut sn, mut fragment) = self.skip_overdue_apart(index, fed);
        while sn < end {
            let entry = self.history.entry(sn).filter(Entry::is_alive);
            let proxy = &mut self.proxies[index];
            let Some(entry) = entry else {
                // A GAP says of one and all that follow it that they were removed.
                if proxy.is_reliable && proxy.has_room_for_sample() {
                    proxy.await_sample(sn);
                }
                (sn, fragment) = (self.history.first_alive(sn).max(sn.next()), 0);
                continue;
            };
            if entry.fragment_size == 0 {
                if !proxy.has_room_for_sample() {
                    break;
                }
                proxy.await_sample(sn);
            } else if !proxy.requested.samples.is_empty() {
                // What is small goes ahead of the fragments, which are listed elsewhere.
                break;
            } else if !proxy.feed_fragments(sn, fragment..entry.fragments()) {
                return;
            } else {
                self.proxies[index].requested.fed = Some((sn.next(), 0));
                return;
            }
            (sn, fragment) = (sn.next(), 0);
        }
        let proxy = &mut self.proxies[index];
        proxy.requested.fed = Some((sn, fragment));
        if !proxy.is_awaiting() {
            self.pass_over_apart(index, sn);
        }
    }

    /// Goes on with a sample to a reader that is apart. It is not sent those before it any more.
    pub(super) fn pass_over_apart(&mut self, index: usize, sn: SequenceNumber) {
        let proxy = &mut self.proxies[index];
        let (first, _) = proxy.requested.never_sent.from();
        proxy.requested.never_sent.forget_before(sn);
        if !proxy.is_reliable {
            self.counters.samples_left_out += (sn.0 - first.0).max(0).unsigned_abs();
        }
    }

    /// Returns from where on a reader that is apart is to be sent samples: a best-effort one is not sent those that
    /// would leave late.
    fn skip_overdue_apart(&self, index: usize, fed: Position) -> Position {
        let proxy = &self.proxies[index];
        let first = if proxy.is_reliable { proxy.start.max(self.history.first()) } else { proxy.start };
        let mut from = fed.max((first, 0)).max(proxy.requested.never_sent.from());
        let carried = proxy.path.as_ref().and_then(|path| path.lock().carries(config::BEST_EFFORT_WAIT));
        let Some(bytes) = carried.filter(|_| !proxy.is_reliable && from.1 == 0) else { return from };
        let (charged, written) = (self.history.charged(), self.history.written().max(1));
        let most = (u128::from(bytes) * u128::from(charged) / u128::from(written)) as u64;
        let last = self.unsent.prev();
        let sent = self.history.charged_to(last);
        while from.0 < last && sent - self.history.charged_to(from.0.prev()) > most {
            from.0 = from.0.next();
        }
        from
    }

    /// Returns the first sample that is kept for a best-effort reader that is apart and still to be sent it. It holds
    /// up no writer, so that little is kept for it, and nothing where limits could refuse a sample for that.
    pub(super) fn first_owed(&self) -> Option<SequenceNumber> {
        self.taking.as_ref()?;
        let apart = self.proxies.iter().filter(|proxy| proxy.is_apart() && !proxy.is_reliable);
        let owed = apart.filter(|proxy| proxy.is_owed(self.unsent));
        let first = owed.map(|proxy| proxy.requested.never_sent.from().0).min()?;
        let charged = self.history.charged() - self.history.charged_to(first.prev());
        let may_keep = self.config.history != History::KeepAll || self.instances.are_open();
        (may_keep && charged <= config::IN_TRANSIT_MAX_BYTES as u64).then_some(first)
    }

    /// Returns the samples that have left for the readers that are not apart, and are not acknowledged by all of them.
    pub(super) fn in_transit_with_others(&self) -> RangeInclusive<SequenceNumber> {
        let others = self.proxies.iter().filter(|proxy| proxy.is_awaited() && !proxy.is_apart());
        let last = self.unsent.prev();
        others.map(|proxy| proxy.acknowledged).min().unwrap_or(last).next()..=last
    }

    /// The same for those that are, with what is leaving.
    pub(super) fn in_transit_apart(&self) -> RangeInclusive<SequenceNumber> {
        let apart = self.proxies.iter().filter(|proxy| self.taking.is_some() && proxy.is_apart());
        let ranges = apart.map(|proxy| {
            let (sn, fragment) = proxy.requested.never_sent.from();
            // Of the next sample, some fragments were sent, or are prepared.
            let is_begun = fragment > 0 || proxy.requested.fragments.iter().any(|(of, _)| *of == sn);
            let first = if proxy.is_reliable { proxy.acknowledged.next() } else { sn };
            (first, if is_begun { sn } else { sn.prev() })
        });
        let all = ranges.filter(|(first, last)| first <= last);
        let all = all.reduce(|all, it| (all.0.min(it.0), all.1.max(it.1)));
        all.map_or(SequenceNumber(1)..=SequenceNumber::ZERO, |(first, last)| first..=last)
    }

    /// Makes a HEARTBEAT due to the reliable readers that are apart, if they have something to acknowledge.
    pub(super) fn ask_apart(&mut self, now: Time) {
        if self.taking.is_none() {
            return;
        }
        for (index, proxy) in self.proxies.iter_mut().enumerate() {
            let is_due = proxy.is_apart() && proxy.is_reliable;
            let has_all = proxy.acknowledged.next() >= proxy.sent_end(self.unsent);
            let owes_nothing = has_all && !(proxy.is_late() && proxy.has_to_answer(self.unsent));
            if !is_due || proxy.is_asked_lately(now) || owes_nothing {
                continue;
            }
            proxy.is_heartbeat_due = true;
            self.due.add(index);
        }
    }
}
