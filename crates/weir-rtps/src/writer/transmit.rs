//! What a writer sends: new samples to everybody, repairs and GAPs to those who asked, HEARTBEATs.

use core::ops::Range;
use std::sync::Arc;

use weir_wire::{EntityId, Gap, Guid, Heartbeat, InfoDestination, SequenceNumber, SequenceNumberSet, push};

use super::{WriterCore, compose};
use crate::config;
use crate::history::Entry;
use crate::outbox::{Destinations, Item, Outbox};
use crate::time::Time;
use crate::window::charge;

/// Datagrams of equal length that lie end to end.
struct Run {
    first: Entry,
    last: Entry,
    datagrams: u16,
    samples: u16,
}

/// Samples that are no longer there: everything from `start` to the base of the list, and what the list names.
struct Hole {
    start: SequenceNumber,
    list: SequenceNumberSet,
}

impl Hole {
    fn contains(&self, sn: SequenceNumber) -> bool {
        sn < self.list.base() || self.list.contains(sn)
    }

    /// Adds the samples from `start` to before `end`, if the list reaches that far. All of a hole is told at once: it
    /// may be long, and would be asked for piece by piece.
    fn add(&mut self, start: SequenceNumber, end: SequenceNumber) -> bool {
        let reaches = end.0 - self.list.base().0 <= 256;
        (start.0..end.0).take_while(|_| reaches).for_each(|sn| _ = self.list.insert(SequenceNumber(sn)));
        reaches
    }
}

/// Most holes in one message; what is missing beyond is asked for again.
const HOLES_MAX: usize = 256;

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

    /// Whether so much of a burst is there that more would not fit one send.
    #[inline]
    pub(super) fn is_burst_complete(&self) -> bool {
        let open = self.open.map_or(0, |open| open.len);
        let (datagrams, bytes) = (self.burst.datagrams - usize::from(open > 0), self.burst.bytes - open);
        datagrams >= config::SEGMENTS_MAX - 1
            || bytes + bytes.checked_div(datagrams).unwrap_or(0) > config::SEGMENTED_MAX_BYTES
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
        if self.config.is_asynchronous {
            self.replace_unsent();
        } else {
            // Not earlier: a sample that waits in a burst was written, and leaves, even when the next one replaces it.
            self.instances.replace(&mut self.history, self.unsent.prev(), None);
        }
        if !self.has_reliable_readers() {
            self.note_all_acknowledged();
            self.release();
            return;
        }
        let since_last = self.history.charged() - self.heartbeat.charged;
        // A large sample that waits for room comes by here again and again, and sends nothing.
        let has_sent = out.items.len() > first_item;
        if since_last >= self.window.size() / config::HEARTBEAT_WINDOW_SHARE
            || (has_sent && self.goes_alone(now))
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
            let next_large = self.large.partition_point(|(sn, _)| *sn < self.unsent);
            let next_large = self.large.get(next_large).map(|(sn, _)| *sn).filter(|sn| *sn < end);
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
    fn append_samples(&self, range: Range<SequenceNumber>, to: &Destinations, out: &mut Outbox) {
        if to.is_empty() {
            return;
        }
        if range.start.next() == range.end {
            let entry = self.history.entry(range.start);
            if let Some(only) = entry.filter(|entry| entry.is_alive() && entry.fragment_size == 0) {
                self.append_run(Some(Run { first: only, last: only, datagrams: 1, samples: 1 }), to, out);
            }
            return;
        }
        let segment_max = self.config.coalescing.map_or(0, |coalescing| coalescing.segment_max as usize);
        let mut run: Option<Run> = None;
        // A datagram, as far as samples of it were seen, and their number.
        let mut current: Option<(Entry, u16)> = None;
        for sn in range.start.0..range.end.0 {
            let entry = self.history.entry(SequenceNumber(sn));
            let entry = entry.filter(|entry| entry.is_alive() && entry.fragment_size == 0);
            match (&mut current, entry) {
                (Some((datagram, samples)), Some(entry)) if datagram.is_extended_by(&entry) => {
                    *datagram = entry;
                    *samples += 1;
                }
                (_, entry) => {
                    if let Some(datagram) = core::mem::replace(&mut current, entry.map(|entry| (entry, 1))) {
                        self.append_datagram(&mut run, datagram, segment_max, to, out);
                    }
                }
            }
        }
        if let Some(datagram) = current {
            self.append_datagram(&mut run, datagram, segment_max, to, out);
        }
        self.append_run(run, to, out);
    }

    /// Adds a datagram to the run, or sends the run and begins another one.
    #[inline]
    fn append_datagram(
        &self,
        run: &mut Option<Run>,
        (entry, samples): (Entry, u16),
        segment_max: usize,
        to: &Destinations,
        out: &mut Outbox,
    ) {
        match run {
            // One segment and 64 bytes are left for a HEARTBEAT.
            Some(run)
                if run.last.continues_with(&entry)
                    && entry.len as usize <= segment_max
                    && (run.datagrams as usize) < config::SEGMENTS_MAX - 1
                    && (run.datagrams as usize + 1) * entry.len as usize
                        <= config::SEGMENTED_MAX_BYTES - 64 =>
            {
                run.last = entry;
                run.datagrams += 1;
                run.samples += samples;
            }
            _ => {
                let full = run.replace(Run { first: entry, last: entry, datagrams: 1, samples });
                self.append_run(full, to, out);
            }
        }
    }

    fn append_run(&self, run: Option<Run>, to: &Destinations, out: &mut Outbox) {
        let Some(Run { first, last, datagrams, samples }) = run else { return };
        let segment = if datagrams > 1 { first.len as u16 } else { 0 };
        let slice = self.history.slice(&first, &last);
        let to = out.reference(to);
        let joins = self.config.coalescing.is_some_and(|it| first.len <= u32::from(it.segment_max));
        out.items.push(Item {
            to,
            slice,
            scratch: 0..0,
            is_scratch_first: false,
            segment,
            datagrams,
            samples,
            joins,
        });
    }

    /// Sends what single readers wait for: repairs, GAPs, HEARTBEATs of their own.
    fn answer_readers(&mut self, out: &mut Outbox) {
        self.is_answer_due = false;
        for index in 0..self.proxies.len() {
            if !self.proxies[index].requested_fragments.is_empty() {
                self.repair_fragments(index, out);
            }
            let proxy = &mut self.proxies[index];
            let mut requested = core::mem::take(&mut proxy.requested);
            let gap_to = proxy.gap_to.take();
            let is_heartbeat_due = core::mem::take(&mut proxy.is_heartbeat_due);
            let (guid, to, start) = (proxy.guid, Arc::clone(&proxy.destinations), proxy.start);
            let is_introduced = proxy.is_introduced;
            if requested.is_empty() && gap_to.is_none() && !is_heartbeat_due {
                continue;
            }
            let (gone, charged) = self.repair(&mut requested, &to, out);
            requested.clear();
            self.proxies[index].requested = requested;
            self.proxies[index].note_repaired(charged);
            let first = start.max(self.history.first());
            // Directed HEARTBEATs count on their own line, and do not move the timer.
            self.heartbeat.count = self.heartbeat.count.wrapping_add(1);
            self.counters.heartbeats_sent += 1;
            let heartbeat = Heartbeat {
                reader: guid.entity,
                writer: self.config.guid.entity,
                first,
                last: if is_introduced { self.unsent.prev().max(first.prev()) } else { first.prev() },
                count: self.heartbeat.count,
                is_final: false,
                is_liveliness: false,
            };
            self.tell(guid, &to, gap_to, &gone, &heartbeat, out);
        }
    }

    /// Sends the samples that were asked for again, at most a window of them, and returns those that are no
    /// longer there, and what was charged. What is asked for was charged when it was first sent and was lost, so a
    /// window of it overruns nobody.
    fn repair(
        &mut self,
        requested: &mut Vec<SequenceNumber>,
        to: &Destinations,
        out: &mut Outbox,
    ) -> (Vec<Hole>, u64) {
        let mut gone: Vec<Hole> = Vec::new();
        let window = self.window.size();
        let mut budget = window;
        let mut wanted: Option<Range<SequenceNumber>> = None;
        requested.sort_unstable();
        requested.dedup();
        for &sn in requested.iter() {
            let Some(entry) = self.history.entry(sn).filter(Entry::is_alive) else {
                if gone.last().is_none_or(|hole| !hole.contains(sn)) {
                    let end = self.history.first_alive(sn).min(self.unsent);
                    if !gone.last_mut().is_some_and(|hole| hole.add(sn, end)) && gone.len() < HOLES_MAX {
                        gone.push(Hole { start: sn, list: SequenceNumberSet::new(end) });
                    }
                }
                continue;
            };
            if entry.fragment_size != 0 {
                self.counters.samples_repaired += 1;
                self.repair_large(sn, &entry, to, &mut budget, out);
                continue;
            }
            let cost = charge(entry.len as usize);
            if cost > budget {
                break;
            }
            budget -= cost;
            self.window.on_repaired(cost);
            self.counters.samples_repaired += 1;
            match &mut wanted {
                Some(range) if range.end == sn => range.end = sn.next(),
                _ => {
                    if let Some(range) = wanted.replace(sn..sn.next()) {
                        self.append_samples(range, to, out);
                    }
                }
            }
        }
        if let Some(range) = wanted {
            self.append_samples(range, to, out);
        }
        (gone, window - budget)
    }

    /// One message to one reader: GAPs for what is gone, then what there is.
    fn tell(
        &mut self,
        reader: Guid,
        to: &Destinations,
        gap_to: Option<SequenceNumber>,
        gone: &[Hole],
        heartbeat: &Heartbeat,
        out: &mut Outbox,
    ) {
        let header = compose::header(&self.config);
        let writer = self.config.guid.entity;
        // Everything before `gap_to` in one GAP; the holes behind it in others.
        let front = gap_to.map(|end| (SequenceNumber::FIRST, SequenceNumberSet::new(end)));
        let behind = gone.iter().map(|hole| (hole.start, hole.list));
        self.counters.gaps_sent += u64::from(front.is_some()) + gone.len() as u64;
        out.message(to, |message| {
            push(message, &header);
            push(message, &InfoDestination { prefix: reader.prefix });
            for (start, list) in front.into_iter().chain(behind) {
                push(message, &Gap { reader: reader.entity, writer, start, list });
            }
            push(message, heartbeat);
        });
    }
}
