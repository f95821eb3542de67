//! What a writer sends: new samples to everybody, repairs and GAPs to those who asked, HEARTBEATs.

use core::ops::Range;
use std::sync::Arc;

use weir_wire::{EntityId, Heartbeat, SequenceNumber, push};

use super::compose;
use super::state::WriterCore;
use crate::config;
use crate::history::Entry;
use crate::outbox::{Destinations, Item, Outbox};
use crate::time::Time;

impl WriterCore {
    /// Appends everything that is to be sent now to `out`: samples that were committed and not yet sent,
    /// unless a burst is still being collected, then what is due to single readers.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, out: &mut Outbox) {
        if self.has_unsent() && self.should_send(now) {
            self.send_new(now, self.sendable_end(now), out);
        }
        if self.heartbeat.is_due {
            self.send_heartbeat(now, out);
        }
        if self.heartbeat.is_awaited {
            self.heartbeat.hurry(now);
        }
        self.poll_answers(out);
    }

    /// Appends only what is due to single readers: for a thread that took in their acknowledgements and must
    /// not overtake the one that sends new samples.
    #[inline]
    pub fn poll_answers(&mut self, out: &mut Outbox) {
        if self.is_answer_due {
            self.answer_readers(out);
        }
    }

    /// Appends everything that was committed, also when a burst is still being collected.
    pub fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.release_held();
        self.poll_transmit(now, out);
    }

    /// Appends everything that was committed, and takes the next write for the first of its kind: the application
    /// has begun to wait for something.
    pub fn end_burst(&mut self, now: Time, out: &mut Outbox) {
        self.interrupt_burst();
        self.poll_transmit(now, out);
    }

    /// Hands out everything before `end`.
    fn send_new(&mut self, now: Time, end: SequenceNumber, out: &mut Outbox) {
        self.burst.queued_since = None;
        let open = self.open.filter(|open| open.first == end);
        (self.burst.datagrams, self.burst.bytes) = open.map_or((0, 0), |open| (1, open.len));
        self.open = open;
        let first_item = out.items.len();
        if self.large.is_empty() && self.unsent < end && !self.is_amid_sample() {
            self.append_samples(self.unsent..end, &self.destinations, out);
            self.unsent = end;
        } else {
            let destinations = Arc::clone(&self.destinations);
            self.append_new(now, end, &destinations, out);
        }
        if !self.handed_out() {
            return;
        }
        let since_last = self.history.charged() - self.heartbeat.charged;
        // A large sample that waits for room comes by here again and again, and sends nothing.
        let has_sent = out.items.len() > first_item;
        if since_last >= self.window.size() / config::HEARTBEAT_WINDOW_SHARE
            || (has_sent && self.brings_heartbeat(now))
        {
            self.heartbeat.is_due = true;
        }
        // A HEARTBEAT that is due anyway rides behind the last sample, unless that is a fragment.
        let can_ride =
            out.items[first_item..].last().is_some_and(|item| item.slice.is_some() && !item.is_scratch_first);
        if self.heartbeat.is_due && can_ride {
            self.heartbeat.is_due = false;
            self.ride_along(now, out);
        }
    }

    /// Appends everything before `end`, large samples as far as there is room for their fragments.
    fn append_new(&mut self, now: Time, end: SequenceNumber, to: &Destinations, out: &mut Outbox) {
        while self.unsent < end {
            let next_large = self.large.next_from(self.unsent).filter(|sn| *sn < end);
            let stop = next_large.unwrap_or(end);
            self.append_samples(self.unsent..stop, to, out);
            self.unsent = stop;
            if stop == end {
                break;
            }
            let entry = self.history.entry(stop).filter(|entry| entry.is_alive() && !to.is_empty());
            if entry.is_some_and(|entry| !self.send_fragments(now, &entry, out)) || !self.is_whole(stop) {
                break;
            }
            // All of it, or nobody is there any more to get the rest.
            self.fragments.end();
            self.unsent = stop.next();
        }
    }

    /// Puts a HEARTBEAT behind the last item: into its datagram when it is one, as a last, shorter datagram
    /// when it is several.
    fn ride_along(&mut self, now: Time, out: &mut Outbox) {
        if self.tell_each_reader(now) {
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
        // Unsent samples of a burst must not be announced: they would be asked for before they are sent.
        if self.is_amid_sample() {
            self.heartbeat_amid_sample(out);
        } else if self.has_unsent() {
            let before = out.items.len();
            self.flush_for_heartbeat(now, out);
            if out.items.len() > before {
                return;
            }
            // What is next is a large sample that waits for room. The answer makes it: the end of what was sent, and
            // what announced it, may be lost.
            self.heartbeat.is_due = false;
        }
        if self.tell_each_reader(now) {
            return;
        }
        let heartbeat = self.next_heartbeat(now, EntityId::UNKNOWN, self.history.first());
        let header = compose::header(&self.config);
        let destinations = Arc::clone(&self.destinations);
        out.message(&destinations, |message| {
            push(message, &header);
            push(message, &heartbeat);
        });
    }

    /// While some reader is not introduced, everybody gets a HEARTBEAT of his own instead of one for all.
    fn tell_each_reader(&mut self, now: Time) -> bool {
        if self.proxies.iter().all(|proxy| proxy.is_introduced) {
            return false;
        }
        self.heartbeat.sent(now, self.history.charged());
        for proxy in self.proxies.iter_mut().filter(|proxy| proxy.is_reliable) {
            proxy.is_heartbeat_due = true;
        }
        self.is_answer_due = true;
        true
    }

    fn flush_for_heartbeat(&mut self, now: Time, out: &mut Outbox) {
        self.heartbeat.is_due = true;
        self.open = None;
        self.send_new(now, self.history.next(), out);
    }

    fn next_heartbeat(&mut self, now: Time, reader: EntityId, first: SequenceNumber) -> Heartbeat {
        self.heartbeat.count = self.heartbeat.count.wrapping_add(1);
        self.heartbeat.sent(now, self.history.charged());
        self.counters.heartbeats_sent += 1;
        Heartbeat {
            reader,
            writer: self.config.guid.entity,
            first,
            last: self.unsent.prev(),
            count: self.heartbeat.count,
            is_final: false,
            is_liveliness: false,
        }
    }

    /// Appends the samples of `range` that are still there, as few sends as possible.
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

    /// Appends a datagram by itself. Apart, so that it does not carry the loop over several.
    #[inline(never)]
    fn append_single(&self, entry: &Entry, to: &Destinations, out: &mut Outbox) {
        self.append_datagram(None, entry, 1, to, out);
    }

    /// Adds a datagram to the last item, behind `previous`, or begins another item.
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
