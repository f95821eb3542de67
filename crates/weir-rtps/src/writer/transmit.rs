//! The fourth step of a write: sends new samples and HEARTBEATs to all readers, repairs and GAPs to
//! single ones.

use alloc::sync::Arc;
use core::ops::Range;

use weir_wire::{EntityId, Heartbeat, SequenceNumber, push};

use super::compose;
use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::history::Entry;
use crate::outbox::{Destinations, Item, Outbox};
use crate::time::Time;

impl WriterCore {
    /// Appends to `out` everything to be sent now.
    ///
    /// First the committed samples, unless a burst or a batch is held back, then HEARTBEATs, then
    /// what is due to single readers.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, out: &mut Outbox) {
        if self.sets_type_of_service() {
            return self.with_type_of_service(now, out, Self::transmit);
        }
        self.transmit(now, out);
    }

    // Also used as a function pointer, which would keep it out of its callers.
    #[inline(always)]
    fn transmit(&mut self, now: Time, out: &mut Outbox) {
        self.sent_before = self.unsent;
        if self.timed.is_some() {
            // Expired samples are not sent, even if the timer is late.
            self.expire(now);
            if self.is_collecting() {
                return self.transmit_collecting(now, out);
            }
        }
        self.pacing.wake(now);
        if self.due.is_any() && !self.pacing.is_unused() {
            // Repairs first: readers hold back what follows them.
            self.answer_readers(now, out);
        }
        if self.has_unsent() && self.should_send(now) {
            self.send_new(now, self.sendable_end(now), out);
        }
        if self.heartbeat.is_due {
            self.send_heartbeat(now, out);
        }
        if self.heartbeat.is_hurry_due {
            self.heartbeat.hurry(now, self.pacing.patience);
        }
        self.answer(now, out);
    }

    /// [`WriterCore::transmit`] while new samples are held back for others to come.
    #[cold]
    fn transmit_collecting(&mut self, now: Time, out: &mut Outbox) {
        self.pacing.wake(now);
        if self.heartbeat.is_due {
            self.send_heartbeat(now, out);
        }
        if self.heartbeat.is_hurry_due {
            self.heartbeat.hurry(now, self.pacing.patience);
        }
        self.answer(now, out);
    }

    /// Appends only what is due to single readers.
    ///
    /// For a thread that received their acknowledgements: it must not overtake the thread that
    /// sends new samples.
    #[inline]
    pub fn poll_answers(&mut self, now: Time, out: &mut Outbox) {
        if !self.due.is_any() {
            return;
        }
        if self.sets_type_of_service() {
            return self.with_type_of_service(now, out, Self::answer);
        }
        self.answer(now, out);
    }

    /// As [`WriterCore::poll_answers`], while another thread may be sending what the last transmission handed out:
    /// HEARTBEATs do not announce it. They might overtake it, and readers would request all of it.
    pub fn poll_answers_beside_sender(&mut self, now: Time, out: &mut Outbox) {
        self.is_beside_sender = true;
        self.poll_answers(now, out);
        self.is_beside_sender = false;
    }

    #[inline]
    pub(super) fn answer(&mut self, now: Time, out: &mut Outbox) {
        if self.due.is_any() {
            if self.timed.is_some() {
                self.expire(now);
            }
            let next_at = self.pacing.next_at;
            self.pacing.wake(now);
            self.answer_readers(now, out);
            // What other samples waited for is for the thread that sends them.
            self.pacing.wake_by(next_at);
        }
    }

    /// Appends everything committed, including what a burst, a batch or [`WriterCore::suspend`] holds back.
    pub fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.release_held();
        let is_suspended = self.timed.as_mut().is_some_and(|timed| core::mem::take(&mut timed.is_suspended));
        self.poll_transmit(now, out);
        self.timed.iter_mut().for_each(|timed| timed.is_suspended = is_suspended);
    }

    /// Appends everything committed, and makes the next write start a new burst, because the
    /// application has begun to wait.
    pub fn end_burst(&mut self, now: Time, out: &mut Outbox) {
        self.interrupt_burst();
        self.poll_transmit(now, out);
    }

    /// Hands out everything before `end`, as far as the paths allow.
    fn send_new(&mut self, now: Time, end: SequenceNumber, out: &mut Outbox) {
        if self.pacing.uses.is_empty() {
            return self.send_before(now, end, out);
        }
        let end = if self.is_going_back { self.unsent } else { end };
        loop {
            let allowed = self.allowed_end(now, end);
            self.send_before(now, allowed, out);
            if allowed >= end || self.unsent < allowed || self.pacing.is_waiting() {
                return;
            }
        }
    }

    /// Hands out everything before `end`.
    fn send_before(&mut self, now: Time, end: SequenceNumber, out: &mut Outbox) {
        self.burst.queued_since = None;
        (self.burst.datagrams, self.burst.bytes) = match &self.open {
            Some(open) if open.first >= end => (1, open.len),
            _ => {
                self.open = None;
                (0, 0)
            }
        };
        let first_item = out.items.len();
        if self.pacing.wants_proof {
            self.withhold_samples(now, end, out);
        }
        if self.large.is_empty() && self.unsent < end && !self.is_amid_sample() {
            if self.filters.is_some() {
                self.append_filtered(self.unsent..end, out);
            } else {
                self.append_samples(self.unsent..end, self.taking(), out);
            }
            self.unsent = end;
        } else {
            let destinations = Arc::clone(self.taking());
            self.append_new(now, end, &destinations, out);
        }
        if !self.handed_out() {
            if self.pacing.receipts.is_asking {
                self.ask_when_due(now, out);
            }
            return;
        }
        self.heartbeat.note_left(now);
        let since_last = self.history.charged() - self.heartbeat.charged;
        // A large sample that waits for room passes here repeatedly without sending anything.
        let has_sent = out.items.len() > first_item;
        if since_last >= self.window.size() / config::HEARTBEAT_WINDOW_SHARE
            || (has_sent
                && (self.brings_heartbeat(now) || self.pacing.wants_mark(now) || self.pacing.ends_flight))
        {
            self.heartbeat.is_due = true;
        }
        // A HEARTBEAT that is due is added to the last sample's datagram, unless that is a
        // fragment.
        let can_ride = |item: &Item| item.slice.is_some() && !item.is_scratch_first;
        let is_sparse = core::mem::take(&mut self.heartbeat.rides);
        if (self.heartbeat.is_due || is_sparse)
            && self.filters.is_none()
            && out.items[first_item..].last().is_some_and(can_ride)
        {
            if !self.heartbeat.is_due && self.pacing.is_unused() {
                // Some engines' readers answer after as much time as this HEARTBEAT is earlier than by the timer.
                self.heartbeat.delay = (self.heartbeat.delay * 2).min(config::HEARTBEAT_DELAY_MAX);
            }
            self.heartbeat.is_due = false;
            self.ride_along(now, out);
        }
    }

    /// Appends everything before `end`; of large samples, the fragments for which there is room.
    fn append_new(&mut self, now: Time, end: SequenceNumber, to: &Destinations, out: &mut Outbox) {
        while self.unsent < end {
            let next_large = self.large.next_from(self.unsent).filter(|sn| *sn < end);
            let stop = next_large.unwrap_or(end);
            if self.filters.is_some() {
                self.append_filtered(self.unsent..stop, out);
            } else {
                self.append_samples(self.unsent..stop, to, out);
            }
            self.unsent = stop;
            if stop == end {
                break;
            }
            if self.filters.is_some() {
                self.append_gaps(false, out);
            }
            let entry = self.history.entry(stop).filter(|entry| entry.is_alive() && !to.is_empty());
            if entry.is_some_and(|entry| !self.send_fragments(now, &entry, out)) || !self.is_whole(stop) {
                break;
            }
            // The sample is complete, or no reader is left to receive the rest.
            self.pacing.receipts.not_whole += 1;
            self.fragments.end();
            self.unsent = stop.next();
        }
    }

    /// Adds a HEARTBEAT to the last item: into its datagram, or as a shorter last datagram if there
    /// are several.
    fn ride_along(&mut self, now: Time, out: &mut Outbox) {
        if self.heartbeat_each_reader(now) {
            return;
        }
        let heartbeat = self.next_heartbeat(now, EntityId::UNKNOWN, self.history.first());
        let start = out.scratch.len();
        let Some(item) = out.items.last_mut() else { return };
        if item.segment != 0 {
            push(&mut out.scratch, &compose::header(&self.config));
            item.datagrams += 1;
        }
        push(&mut out.scratch, &heartbeat);
        item.scratch = start..out.scratch.len();
    }

    fn send_heartbeat(&mut self, now: Time, out: &mut Outbox) {
        self.heartbeat.is_due = false;
        if !self.has_unacknowledged() {
            return;
        }
        // Unsent samples of a burst must not be announced: readers would request them before they
        // are sent. So they are sent, but those of a batch that may still grow.
        let end = self.announced_end(now);
        if self.is_amid_sample() {
            self.heartbeat_amid_sample(now, out);
        } else if self.unsent < end {
            let before = out.items.len();
            self.flush_for_heartbeat(now, end, out);
            if out.items.len() > before {
                return;
            }
            // The next sample is a large one that waits for room. The answer to this HEARTBEAT
            // makes room: the last samples sent, or the HEARTBEAT that announced them, may be lost.
            self.heartbeat.is_due = false;
        } else if self.waits_for_batch(now) {
            return;
        }
        if self.heartbeat_each_reader(now) {
            return;
        }
        if self.filters.is_some() {
            self.append_gaps(true, out);
        }
        let to = self.waited_for(now);
        let heartbeat = self.next_heartbeat(now, EntityId::UNKNOWN, self.history.first());
        if !to.is_empty() {
            let header = compose::header(&self.config);
            out.message(&to, |message| {
                push(message, &header);
                push(message, &heartbeat);
            });
        }
    }

    /// Returns where the readers are that have not acknowledged everything sent. The others have nothing to answer:
    /// with a hundred readers that come one after the other, their answers would be ten thousand.
    fn waited_for(&mut self, now: Time) -> Destinations {
        let last = self.unsent.prev();
        let (is_patient, is_any_apart) = (!self.config.answer_time.is_zero(), self.taking.is_some());
        let is_waited_for = |proxy: &&ReaderProxy| {
            let is_asked_apart = is_any_apart && proxy.is_apart() || is_patient && now < proxy.ask_at;
            proxy.is_reliable && proxy.acknowledged < last && !is_asked_apart
        };
        if self.history.is_fixed() && !is_patient {
            // Without allocating a list: one reader that is waited for, or all.
            let mut waited_for = self.proxies.iter().filter(is_waited_for);
            return match (waited_for.next(), waited_for.next()) {
                (Some(proxy), None) => Arc::clone(&proxy.destinations),
                _ => Arc::clone(self.taking()),
            };
        }
        let to = &mut self.addresses;
        to.clear();
        if is_patient || self.proxies.iter().any(|proxy| !is_waited_for(&proxy)) {
            for address in
                self.proxies.iter().filter(is_waited_for).flat_map(|proxy| proxy.destinations.iter())
            {
                if !to.contains(address) {
                    to.push(*address);
                }
            }
        }
        if !is_patient {
            let is_for_all = to.is_empty() && self.taking.is_none();
            return if is_for_all { Arc::clone(&self.destinations) } else { self.lists.list(to) };
        }
        let ask_at = now + self.heartbeat.delay;
        self.proxies.iter_mut().filter(|proxy| proxy.ask_at <= now).for_each(|proxy| proxy.ask_at = ask_at);
        self.lists.list(&self.addresses)
    }

    /// Replaces a common HEARTBEAT by one for each reader that is waited for, while some reader is not introduced.
    /// Returns whether it did.
    fn heartbeat_each_reader(&mut self, now: Time) -> bool {
        if self.proxies.iter().all(|proxy| proxy.is_introduced) {
            return false;
        }
        let (is_lossy, keeps) = (self.is_lossy(now) && self.has_spare_path(), !self.routes.is_empty());
        self.heartbeat.sent(now, self.history.charged(), is_lossy, keeps);
        let last = self.unsent.prev();
        for proxy in self.proxies.iter_mut().filter(|proxy| proxy.is_reliable && proxy.acknowledged < last) {
            proxy.is_heartbeat_due = true;
        }
        self.due.add_all();
        true
    }

    fn flush_for_heartbeat(&mut self, now: Time, end: SequenceNumber, out: &mut Outbox) {
        self.heartbeat.is_due = true;
        self.open = self.open.filter(|open| open.first >= end);
        self.send_new(now, end, out);
    }

    /// Returns the end of what a HEARTBEAT may send and announce. A thread that waits for room adds to no batch.
    fn announced_end(&self, now: Time) -> SequenceNumber {
        if self.heartbeat.is_hurried { self.history.next() } else { self.sendable_end(now) }
    }

    /// Returns whether only the samples of an open batch have not been acknowledged: there is nothing to ask for.
    pub(super) fn waits_for_batch(&self, now: Time) -> bool {
        self.has_reliable
            && self.acknowledged >= self.unsent.prev()
            && self.unsent == self.announced_end(now)
            && self.has_unsent()
    }

    fn next_heartbeat(&mut self, now: Time, reader: EntityId, first: SequenceNumber) -> Heartbeat {
        let count = self.heartbeat.next_count((!self.pacing.is_unused()).then_some(now));
        self.counters.heartbeats_sent += 1;
        if !self.pacing.is_unused() {
            self.pacing.mark(now, (self.unsent.prev(), 0));
            // The timer may have been set before the round trip was known.
            self.heartbeat.delay = self.heartbeat.delay.max(self.pacing.patience);
        }
        let (is_lossy, keeps) = (self.is_lossy(now) && self.has_spare_path(), !self.routes.is_empty());
        self.heartbeat.sent(now, self.history.charged(), is_lossy, keeps);
        self.ask_apart(now);
        self.excuse_all(first);
        Heartbeat {
            reader,
            writer: self.config.guid.entity,
            first,
            // The first samples of an open batch may have been replaced, or have expired.
            last: self.unsent.prev().max(first.prev()),
            count,
            is_final: false,
            is_liveliness: false,
        }
    }

    /// Appends the surviving samples of `range`, in as few sends as possible.
    pub(super) fn append_samples(&self, range: Range<SequenceNumber>, to: &Destinations, out: &mut Outbox) {
        if to.is_empty() {
            return;
        }
        let entry_at = |sn: i64| {
            let entry = self.history.get(SequenceNumber(sn));
            entry.filter(|entry| sn < range.end.0 && entry.is_alive() && entry.fragment_size == 0)
        };
        if range.start.next() == range.end {
            if let Some(only) = entry_at(range.start.0) {
                self.append_single(only, to, out);
            }
            return;
        }
        let mut previous = None;
        let mut sn = range.start.0;
        let mut next = entry_at(sn);
        while sn < range.end.0 {
            sn += 1;
            let first = core::mem::replace(&mut next, entry_at(sn));
            let Some(mut datagram) = first else { continue };
            let mut samples = 1;
            while let Some(entry) = next.filter(|entry| datagram.is_extended_by(entry)) {
                (datagram, samples, sn) = (entry, samples + 1, sn + 1);
                next = entry_at(sn);
            }
            self.append_datagram(previous, datagram, samples, to, out);
            previous = Some(datagram);
        }
    }

    /// Appends a single datagram. Not inlined, to keep the loop over several out of this path.
    #[inline(never)]
    fn append_single(&self, entry: &Entry, to: &Destinations, out: &mut Outbox) {
        self.append_datagram(None, entry, 1, to, out);
    }

    /// Adds a datagram to the last item, if it follows `previous` directly, or else begins another
    /// item.
    #[inline(always)]
    fn append_datagram(
        &self,
        previous: Option<&Entry>,
        entry: &Entry,
        samples: u16,
        to: &Destinations,
        out: &mut Outbox,
    ) {
        let joins = self.config.coalescing.is_some_and(|it| entry.len <= u32::from(it.segment_max));
        let is_added = joins
            && previous.is_some_and(|previous| previous.continues_with(entry))
            && out.items.last_mut().is_some_and(|item| item.add_datagram(entry.len, samples));
        if !is_added {
            let (to, slice) = (out.reference(to), self.history.slice(entry));
            let mut item = Item::of(to, slice);
            (item.samples, item.joins) = (samples, joins);
            out.items.push(item);
        }
    }
}
