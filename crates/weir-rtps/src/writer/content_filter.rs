//! Content filters of readers, applied by the writer (RTPS 2.5, 8.4.7.2, 8.7.3, 9.6.4.1).
//!
//! A datagram of which no sample passes the filters of all readers at an address is not sent there. Before the next
//! datagram that is, and before a HEARTBEAT, a GAP says that these samples are irrelevant. Requests for them are
//! answered by GAPs, too.
//!
//! All readers at an address receive what is sent there, so they filter again what they receive. Samples in fragments
//! are sent to all. There is no filtering while a reader is reached by multicast. The one datagram that tests a path
//! ([`withheld`](super::withheld)) is not filtered either: a filter must not spare its reader that test.
//!
//! Writers without such readers do nothing of this.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::ops::Range;

use weir_filter::Filter;
use weir_wire::{Gap, Guid, InfoDestination, Message, Payload, SequenceNumber, SequenceNumberSet, push};

use super::compose;
use super::state::WriterCore;
use crate::content_filter::ContentFilterProperty;
use crate::history::Entry;
use crate::outbox::{Destinations, Outbox};

/// The filters of the matched readers; at least one.
#[derive(Debug)]
pub(super) struct Filters {
    readers: Vec<FilteredReader>,
}

#[derive(Debug)]
struct FilteredReader {
    guid: Guid,
    filter: Filter,
    /// The samples that were left out since the last one that was sent, with those removed among them.
    left_out: Option<Range<SequenceNumber>>,
}

/// Readers whose filters a writer applies. Others filter alone.
const FILTERS_MAX: usize = 64;

impl WriterCore {
    /// Sets or removes the filter of a matched reader. One that cannot be used is ignored: the reader then filters
    /// alone.
    pub fn set_content_filter(&mut self, reader: Guid, property: Option<&ContentFilterProperty>) {
        let filter = property.and_then(|property| property.filter(&self.config.description));
        let is_matched = self.places.find(&self.proxies, &reader).is_some();
        let mut readers = self.filters.take().map(|filters| filters.readers).unwrap_or_default();
        let before = readers.iter().position(|known| known.guid == reader).map(|at| readers.swap_remove(at));
        let filter = filter.filter(|_| is_matched && readers.len() < FILTERS_MAX);
        self.counters.content_filters_ignored += u64::from(property.is_some() && filter.is_none());
        if let Some(filter) = filter {
            let left_out = before.and_then(|before| before.left_out);
            readers.push(FilteredReader { guid: reader, filter, left_out });
        }
        self.filters = (!readers.is_empty()).then(|| Box::new(Filters { readers }));
        self.consider_receipts();
    }

    /// Forgets the filter of a reader that is not matched any more.
    pub(super) fn forget_content_filter(&mut self, reader: Guid) {
        if self.filters.is_some() {
            self.set_content_filter(reader, None);
        }
    }

    /// Appends the samples of `range` that a matched reader wants, each to where it is wanted.
    pub(super) fn append_filtered(&mut self, range: Range<SequenceNumber>, out: &mut Outbox) {
        let Some(mut filters) = self.filters.take().filter(|_| self.routes.is_empty()) else {
            return self.append_samples(range, &Arc::clone(&self.destinations), out);
        };
        let mut pending: Option<(Range<SequenceNumber>, Destinations)> = None;
        let mut sn = range.start;
        while sn < range.end {
            let Some((end, entry)) = self.datagram_at(sn, range.end) else {
                sn = sn.next();
                continue;
            };
            let rejected = filters.rejected(|filter| self.passes(filter, &entry));
            let to = self.wanted_at(&rejected);
            // Consecutive datagrams with the same destinations leave together.
            match &mut pending {
                Some((samples, known)) if *known == to => samples.end = end,
                _ => {
                    if let Some((samples, known)) = pending.replace((sn..end, Arc::clone(&to))) {
                        self.append_samples(samples, &known, out);
                    }
                }
            }
            for reader in &mut filters.readers {
                let Some(proxy) = self.proxies.iter().find(|proxy| proxy.guid == reader.guid) else {
                    continue;
                };
                if !proxy.destinations.iter().any(|address| to.contains(address)) {
                    reader.leave_out(sn..end, proxy.is_introduced);
                } else if reader.left_out.is_some() && proxy.is_introduced {
                    // The GAP goes ahead of the sample, and behind those before it.
                    if let Some((samples, known)) = pending.take() {
                        self.append_samples(samples.start..sn, &known, out);
                        pending = Some((sn..end, known));
                    }
                    let (left_out, destinations) = (reader.left_out.take(), Arc::clone(&proxy.destinations));
                    self.append_gap(reader.guid, left_out, &destinations, out);
                }
            }
            sn = end;
        }
        if let Some((samples, known)) = pending {
            self.append_samples(samples, &known, out);
        }
        self.filters = Some(filters);
    }

    /// Sends a GAP to each reader that was not sent the last samples: before a HEARTBEAT announces these to the
    /// reliable ones, or before something that is sent whatever the filters say, which a GAP for these and later
    /// samples would name.
    pub(super) fn append_gaps(&mut self, is_for_heartbeat: bool, out: &mut Outbox) {
        for index in 0..self.proxies.len() {
            if is_for_heartbeat && !self.proxies[index].is_reliable {
                continue;
            }
            if let Some(left_out) = self.take_left_out(index) {
                let (guid, to) = (self.proxies[index].guid, Arc::clone(&self.proxies[index].destinations));
                self.append_gap(guid, Some(left_out), &to, out);
            }
        }
    }

    /// Takes the samples that a reader was not sent, to be named in a GAP before a HEARTBEAT.
    pub(super) fn take_left_out(&mut self, index: usize) -> Option<Range<SequenceNumber>> {
        let proxy = self.proxies.get(index).filter(|proxy| proxy.is_introduced)?;
        let guid = proxy.guid;
        let reader = self.filters.as_mut()?.readers.iter_mut().find(|reader| reader.guid == guid)?;
        reader.left_out.take()
    }

    /// Whether a sample that a reader requests does not pass its filter.
    pub(super) fn is_left_out(&self, index: usize, entry: &Entry) -> bool {
        let Some(filters) = self.filters.as_ref().filter(|_| self.routes.is_empty()) else { return false };
        let guid = self.proxies.get(index).map(|proxy| proxy.guid);
        let reader = filters.readers.iter().find(|reader| Some(reader.guid) == guid);
        reader.is_some_and(|reader| entry.fragment_size == 0 && !self.passes(&reader.filter, entry))
    }

    /// The datagram that begins with a sample, as its last entry, and the sample behind it; `None`: there is no such
    /// sample, or it is sent in fragments.
    fn datagram_at(&self, sn: SequenceNumber, before: SequenceNumber) -> Option<(SequenceNumber, Entry)> {
        let entry_at =
            |sn| self.history.entry(sn).filter(|entry: &Entry| entry.is_alive() && entry.fragment_size == 0);
        let (mut entry, mut end) = (entry_at(sn)?, sn.next());
        while let Some(more) = entry_at(end).filter(|more| end < before && entry.is_extended_by(more)) {
            (entry, end) = (more, end.next());
        }
        Some((end, entry))
    }

    /// Whether a sample of a datagram passes a filter, or is no value.
    fn passes(&self, filter: &Filter, entry: &Entry) -> bool {
        let Some(slice) = self.history.slice(entry) else { return true };
        let Ok(message) = Message::parse(slice.bytes()) else { return true };
        let mut submessages = message.submessages();
        while let Some(Ok(submessage)) = submessages.next_unread() {
            let is_wanted = match submessage.data() {
                Some(Ok(data)) => match data.payload {
                    Payload::Data(payload) => filter.passes(payload),
                    Payload::Key(_) | Payload::None => true,
                },
                Some(Err(_)) => true,
                None => false,
            };
            if is_wanted {
                return true;
            }
        }
        false
    }

    /// The addresses at which some reader wants a datagram.
    fn wanted_at(&self, rejected: &[Guid]) -> Destinations {
        if rejected.is_empty() {
            return Arc::clone(&self.destinations);
        }
        let is_wanted = |address: &&SocketAddrV4| {
            let mut wanting = self.proxies.iter().filter(|proxy| !rejected.contains(&proxy.guid));
            wanting.any(|proxy| proxy.destinations.contains(address))
        };
        let to: Vec<_> = self.destinations.iter().filter(is_wanted).copied().collect();
        if to.len() == self.destinations.len() { Arc::clone(&self.destinations) } else { to.into() }
    }

    fn append_gap(
        &mut self,
        reader: Guid,
        samples: Option<Range<SequenceNumber>>,
        to: &Destinations,
        out: &mut Outbox,
    ) {
        let Some(samples) = samples else { return };
        let header = compose::header(&self.config);
        self.counters.gaps_sent += 1;
        self.excuse(&reader, |sn| samples.contains(&sn));
        let gap = Gap {
            reader: reader.entity,
            writer: self.config.guid.entity,
            start: samples.start,
            list: SequenceNumberSet::new(samples.end),
        };
        out.message(to, |message| {
            push(message, &header);
            push(message, &InfoDestination { prefix: reader.prefix });
            push(message, &gap);
        });
    }
}

impl Filters {
    /// The readers whose filters a datagram does not pass.
    fn rejected(&self, passes: impl Fn(&Filter) -> bool) -> Vec<Guid> {
        let rejecting = self.readers.iter().filter(|reader| !passes(&reader.filter));
        rejecting.map(|reader| reader.guid).collect()
    }
}

impl FilteredReader {
    /// Records samples that the reader is not sent. Those between them and the ones before do not exist any more:
    /// before a sample that it is sent, a GAP names those left out.
    ///
    /// Not before the reader is introduced: what it is sent until then may be lost, and no GAP may name it. It requests
    /// what is left out behind that.
    fn leave_out(&mut self, samples: Range<SequenceNumber>, is_introduced: bool) {
        match &mut self.left_out {
            Some(known) if is_introduced || known.end == samples.start => known.end = samples.end,
            Some(_) => {}
            None => self.left_out = Some(samples),
        }
    }
}
