//! Coherent sets at a reader (PRESENTATION, DDS 1.4, 2.2.3.6; RTPS 2.5, 8.7.6): samples of a set wait until all of it
//! is there, and become accessible together.
//!
//! A set ends with a DATA without content, with the first sample of the next set, or with a sample outside of sets.
//! Samples arrive here in the order of their writer. A set of which a sample is lost is dropped, as is one whose writer
//! leaves, and one that exceeds what the reader may hold. If a subscriber's readers share sets (access scope GROUP), a
//! set that has ended waits until [`groups`](super::groups) knows that it has ended at all of them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use weir_wire::{Guid, SequenceNumber};

use super::config::ReaderConfig;
use super::entries::cost;
use super::groups::GroupProgress;
use super::stored::StoredSample;
use super::writer_proxy::Author;
use crate::config;
use crate::group::SetTag;
use crate::qos::PresentationScope;
use crate::time::Time;

/// The sets that are not accessible yet.
#[derive(Debug)]
pub(super) struct Coherence {
    /// Sets wait for their parts at other readers.
    is_grouped: bool,
    wants_history: bool,
    max_samples: usize,
    max_bytes: usize,
    writers: BTreeMap<Guid, WriterSets>,
    /// Samples that wait here, and their cost.
    samples: usize,
    bytes: usize,
    /// What samples ahead say about their sets, over all writers.
    tags: usize,
    /// Sets that were dropped.
    pub(super) dropped: u64,
    /// A set has ended, or a writer has left: other readers may wait for that.
    pub(super) has_news: bool,
}

/// What to do with samples, in order.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// They become accessible.
    pub(super) ready: Vec<(Guid, SetSample)>,
    /// They are dropped.
    pub(super) dropped: Vec<(Guid, SetSample)>,
    /// Writers that are not matched any more, and of which nothing waits.
    pub(super) forgotten: Vec<Guid>,
}

/// A sample that waits for its set, or behind one.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetSample {
    pub(super) sn: SequenceNumber,
    pub(super) stored: StoredSample,
    /// When it arrived, or would have become accessible without the set.
    pub(super) arrived_at: Time,
    /// See [`Author::is_last`].
    pub(super) is_last: bool,
}

/// The sets of one writer.
#[derive(Debug)]
struct WriterSets {
    is_reliable: bool,
    is_weir: bool,
    is_alive: bool,
    /// It is not matched any more: only sets are left that have ended.
    is_forgotten: bool,
    group: Guid,
    /// What samples ahead say, and where sets end.
    ahead: BTreeMap<SequenceNumber, Ahead>,
    /// The last sample that was sorted.
    last: SequenceNumber,
    /// A sample before this one was lost.
    lost_to: SequenceNumber,
    open: Option<OpenSet>,
    /// Only if sets are shared: sets that have ended, and samples behind them.
    waiting: VecDeque<Waiting>,
    /// The last shared set that has ended.
    ended: SequenceNumber,
    /// Shared sets up to this one were dropped.
    dropped_to: SequenceNumber,
}

#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    tag: SetTag,
    is_end: bool,
    /// The sample will not arrive.
    is_lost: bool,
}

#[derive(Debug)]
struct OpenSet {
    first: SequenceNumber,
    group_set: Option<SequenceNumber>,
    is_broken: bool,
    samples: Vec<SetSample>,
}

/// A set that waits for other readers; without `group_set`, samples that wait for the set before.
#[derive(Debug)]
struct Waiting {
    group_set: Option<SequenceNumber>,
    is_broken: bool,
    samples: Vec<SetSample>,
}

impl Coherence {
    /// `None`: the reader does not ask for coherent access.
    pub(super) fn new(config: &ReaderConfig) -> Option<Self> {
        config.presentation.coherent_access.then(|| Self {
            is_grouped: config.presentation.scope == PresentationScope::Group,
            wants_history: config.wants_history,
            max_samples: config
                .max_samples
                .map_or(config::COHERENT_SAMPLES_MAX, |max| (max as usize).min(config::COHERENT_SAMPLES_MAX)),
            max_bytes: config.max_bytes,
            writers: BTreeMap::new(),
            samples: 0,
            bytes: 0,
            tags: 0,
            dropped: 0,
            has_news: false,
        })
    }

    /// Adds a matched writer. `position`: it is resumed there.
    pub(super) fn add_writer(
        &mut self,
        guid: Guid,
        (is_reliable, is_weir): (bool, bool),
        position: SequenceNumber,
        out: &mut Sorted,
    ) {
        self.give_up_waiting(guid, out);
        let sets = WriterSets {
            is_reliable,
            is_weir,
            is_alive: true,
            is_forgotten: false,
            group: guid,
            ahead: BTreeMap::new(),
            last: SequenceNumber::ZERO,
            lost_to: position,
            open: None,
            waiting: VecDeque::new(),
            ended: SequenceNumber::ZERO,
            dropped_to: SequenceNumber::ZERO,
        };
        self.writers.insert(guid, sets);
    }

    /// Sets the group of a writer: those with which it shares sets.
    pub(super) fn set_group(&mut self, writer: Guid, group: Guid) {
        if let Some(sets) = self.writers.get_mut(&writer) {
            sets.group = group;
        }
    }

    /// Whether sets of a writer have ended and wait for other readers.
    pub(super) fn has_waiting(&self, writer: Guid) -> bool {
        self.writers.get(&writer).is_some_and(|sets| !sets.waiting.is_empty())
    }

    /// Whether a writer has begun a set that may become whole.
    pub(super) fn has_open(&self, writer: Guid) -> bool {
        let open = self.writers.get(&writer).and_then(|sets| sets.open.as_ref());
        open.is_some_and(|open| !open.is_broken)
    }

    /// The samples of a writer that wait for other readers, in order.
    pub(super) fn waiting_mut(&mut self, writer: Guid) -> impl DoubleEndedIterator<Item = &mut SetSample> {
        let waiting = self.writers.get_mut(&writer).into_iter().flat_map(|sets| &mut sets.waiting);
        waiting.flat_map(|waiting| &mut waiting.samples)
    }

    /// Samples that wait here, and their cost.
    pub(super) fn held(&self) -> (usize, usize) {
        (self.samples, self.bytes)
    }

    /// Records what a sample says that has arrived, perhaps early.
    pub(super) fn note(&mut self, writer: Guid, sn: SequenceNumber, mut tag: SetTag, is_end: bool) {
        // A set does not begin behind its samples.
        tag.group_set = tag.group_set.filter(|set| tag.number.is_none_or(|number| *set <= number));
        if let Some(ahead) = self.ahead_mut(writer, sn) {
            (ahead.tag, ahead.is_end) = (tag, is_end);
        }
    }

    /// Records that a sample will not arrive, which may be ahead: it breaks its set when it is next.
    pub(super) fn lost_ahead(&mut self, writer: Guid, sn: SequenceNumber, out: &mut Sorted) {
        match self.ahead_mut(writer, sn) {
            Some(ahead) => ahead.is_lost = true,
            // There is no room to note it.
            None => self.lost(writer, sn.next(), out),
        }
    }

    fn ahead_mut(&mut self, writer: Guid, sn: SequenceNumber) -> Option<&mut Ahead> {
        let sets = self.writers.get_mut(&writer)?;
        let is_new = !sets.ahead.contains_key(&sn);
        // Both numbers bound what a peer can have stored here.
        if sets.ahead.len() >= config::REORDER_MAX_SAMPLES || self.tags >= config::REORDER_SHARED_SAMPLES {
            return None;
        }
        self.tags += usize::from(is_new);
        Some(sets.ahead.entry(sn).or_default())
    }

    /// Sorts a sample: the next one of its writer.
    pub(super) fn arrived(&mut self, author: Author, sample: SetSample, out: &mut Sorted) {
        let (writer, sn) = (author.guid, sample.sn);
        self.end_before(writer, sn, out);
        let Some(sets) = self.writers.get_mut(&writer) else {
            out.ready.push((writer, sample));
            return;
        };
        let tag = sets.ahead.remove(&sn).map(|ahead| ahead.tag);
        self.tags -= usize::from(tag.is_some());
        let tag = tag.unwrap_or_default();
        let is_joined_late = sets.last == SequenceNumber::ZERO;
        self.pass(writer, sn, out);
        let set = tag.set.filter(|set| (SequenceNumber::FIRST..=sn).contains(set));
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        sets.is_alive = author.is_alive;
        if sets.open.as_ref().is_some_and(|open| Some(open.first) != set) {
            self.close(writer, out);
        }
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        let Some(first) = set else {
            return self.outside(writer, sample, out);
        };
        // A reader that wants history gets what is left of a set. Any other must have seen its beginning.
        let misses_start = is_joined_late && first < sn && !(sets.is_reliable && self.wants_history);
        let is_broken = first < sets.lost_to || misses_start;
        let open = sets.open.get_or_insert_with(|| OpenSet {
            first,
            group_set: tag.group_set,
            is_broken: false,
            samples: Vec::new(),
        });
        open.samples.push(sample);
        self.samples += 1;
        self.bytes += cost(sample.stored.len());
        if is_broken || open.is_broken || self.samples > self.max_samples || self.bytes > self.max_bytes {
            self.break_open(writer, out);
        }
    }

    /// Records that a sample of a writer has passed, or was left out for other reasons than loss.
    pub(super) fn pass(&mut self, writer: Guid, sn: SequenceNumber, out: &mut Sorted) {
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        let has_gap = !sets.is_reliable && sets.last > SequenceNumber::ZERO && sn > sets.last.next();
        sets.last = sets.last.max(sn);
        if has_gap {
            self.lost(writer, sn, out);
        }
    }

    /// Records that samples before `to` are lost.
    pub(super) fn lost(&mut self, writer: Guid, to: SequenceNumber, out: &mut Sorted) {
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        sets.lost_to = sets.lost_to.max(to);
        self.break_open(writer, out);
    }

    /// Ends the sets of a writer whose ends are before `expected`, its next sample.
    pub(super) fn end_before(&mut self, writer: Guid, expected: SequenceNumber, out: &mut Sorted) {
        while let Some(sets) = self.writers.get_mut(&writer)
            && let Some(entry) = sets.ahead.first_entry().filter(|entry| *entry.key() < expected)
        {
            let (sn, Ahead { tag, is_end, is_lost }) = entry.remove_entry();
            self.tags -= 1;
            if is_lost {
                self.lost(writer, sn.next(), out);
            }
            if !is_end {
                continue;
            }
            self.pass(writer, sn, out);
            self.close(writer, out);
            if let Some(group_set) = tag.group_set {
                self.ended(writer, group_set, out);
            }
            self.has_news |= self.is_grouped;
        }
    }

    /// Drops the set that a writer has not ended: it has left, or is not alive.
    pub(super) fn writer_gone(&mut self, writer: Guid, out: &mut Sorted) {
        self.break_open(writer, out);
        self.has_news |= self.is_grouped;
        if let Some(sets) = self.writers.get_mut(&writer) {
            sets.is_alive = false;
        }
    }

    /// Forgets a writer that is not matched any more. Its sets that have ended stay until they are settled.
    pub(super) fn forget_writer(&mut self, writer: Guid, out: &mut Sorted) {
        self.writer_gone(writer, out);
        self.close(writer, out);
        if let Some(sets) = self.writers.get_mut(&writer) {
            self.tags -= sets.ahead.len();
            sets.ahead.clear();
            sets.is_forgotten = true;
            if sets.waiting.is_empty() {
                self.writers.remove(&writer);
            }
        }
    }

    /// Forgets what was known of the samples of a writer, which is read from `first` on: sets that began before are
    /// not whole.
    pub(super) fn restart_writer(&mut self, writer: Guid, first: SequenceNumber, out: &mut Sorted) {
        self.break_open(writer, out);
        self.close(writer, out);
        if let Some(sets) = self.writers.get_mut(&writer) {
            self.tags -= sets.ahead.len();
            sets.ahead.clear();
            (sets.last, sets.lost_to) = (first.prev(), first);
        }
    }

    /// Ends the open set of a writer.
    fn close(&mut self, writer: Guid, out: &mut Sorted) {
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        let Some(OpenSet { group_set, is_broken, samples, .. }) = sets.open.take() else { return };
        if !self.is_grouped || (group_set.is_none() && sets.waiting.is_empty()) {
            self.release(writer, samples, out);
            return;
        }
        if let Some(group_set) = group_set {
            self.ended(writer, group_set, out);
            self.has_news = true;
        }
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        sets.waiting.push_back(Waiting { group_set, is_broken, samples });
        if sets.waiting.len() > config::COHERENT_SETS_WAITING_MAX {
            self.give_up_waiting(writer, out);
        }
    }

    /// Records that a shared set of a writer has ended. The numbers of sets ascend, so a higher one before was false.
    fn ended(&mut self, writer: Guid, group_set: SequenceNumber, out: &mut Sorted) {
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        let last = core::mem::replace(&mut sets.ended, group_set);
        if group_set < last {
            self.give_up_waiting(writer, out);
            if let Some(sets) = self.writers.get_mut(&writer) {
                sets.dropped_to = sets.dropped_to.min(group_set.prev());
            }
        }
    }

    /// Lets a sample pass that belongs to no set, behind those that wait.
    fn outside(&mut self, writer: Guid, sample: SetSample, out: &mut Sorted) {
        let Some(sets) = self.writers.get_mut(&writer).filter(|sets| !sets.waiting.is_empty()) else {
            out.ready.push((writer, sample));
            return;
        };
        match sets.waiting.back_mut() {
            Some(Waiting { group_set: None, samples, .. }) => samples.push(sample),
            _ => sets.waiting.push_back(Waiting { group_set: None, is_broken: false, samples: vec![sample] }),
        }
        self.samples += 1;
        self.bytes += cost(sample.stored.len());
        if self.samples > self.max_samples || self.bytes > self.max_bytes {
            self.give_up_waiting(writer, out);
        }
    }

    /// Drops the samples of the open set, and those of it that are still to come.
    fn break_open(&mut self, writer: Guid, out: &mut Sorted) {
        let Some(open) = self.writers.get_mut(&writer).and_then(|sets| sets.open.as_mut()) else { return };
        self.dropped += u64::from(!open.is_broken);
        open.is_broken = true;
        let samples = core::mem::take(&mut open.samples);
        self.drop_all(writer, samples, out);
        if self.samples > self.max_samples || self.bytes > self.max_bytes {
            self.give_up_waiting(writer, out);
        }
    }

    /// Drops what waits for other readers: there is no room for more.
    fn give_up_waiting(&mut self, writer: Guid, out: &mut Sorted) {
        let Some(sets) = self.writers.get_mut(&writer) else { return };
        for waiting in core::mem::take(&mut sets.waiting) {
            match waiting.group_set {
                None => self.release(writer, waiting.samples, out),
                Some(set) => {
                    self.dropped += u64::from(!waiting.is_broken);
                    self.drop_all(writer, waiting.samples, out);
                    if let Some(sets) = self.writers.get_mut(&writer) {
                        sets.dropped_to = sets.dropped_to.max(set);
                    }
                }
            }
        }
    }

    fn release(&mut self, writer: Guid, samples: Vec<SetSample>, out: &mut Sorted) {
        self.count_released(&samples);
        out.ready.extend(samples.into_iter().map(|sample| (writer, sample)));
    }

    fn drop_all(&mut self, writer: Guid, samples: Vec<SetSample>, out: &mut Sorted) {
        self.count_released(&samples);
        out.dropped.extend(samples.into_iter().map(|sample| (writer, sample)));
    }

    fn count_released(&mut self, samples: &[SetSample]) {
        self.samples -= samples.len();
        self.bytes -= samples.iter().map(|sample| cost(sample.stored.len())).sum::<usize>();
    }

    /// Appends how far the writers have got with shared sets.
    pub(super) fn progress(&self, out: &mut Vec<GroupProgress>) {
        for sets in self.writers.values().filter(|_| self.is_grouped) {
            out.push(GroupProgress {
                group: sets.group,
                is_alive: sets.is_alive,
                announces_all: sets.is_weir,
                ended: sets.ended,
                dropped_to: sets.dropped_to,
                open: sets.open.as_ref().and_then(|open| open.group_set),
                sets: sets
                    .waiting
                    .iter()
                    .filter_map(|it| it.group_set.map(|set| (set, it.is_broken)))
                    .collect(),
            });
        }
    }

    /// Makes the shared set `set` accessible (`is_whole`), or drops it, with what waits for it.
    pub(super) fn settle(&mut self, group: Guid, set: SequenceNumber, is_whole: bool, out: &mut Sorted) {
        let writers: Vec<_> =
            self.writers.iter().filter(|(_, sets)| sets.group == group).map(|(guid, _)| *guid).collect();
        for writer in writers {
            while let Some(sets) = self.writers.get_mut(&writer)
                && sets.waiting.front().is_some_and(|it| it.group_set.is_none_or(|of| of <= set))
                && let Some(Waiting { group_set, is_broken, samples }) = sets.waiting.pop_front()
            {
                if group_set.is_none() || is_whole {
                    self.release(writer, samples, out);
                } else {
                    self.dropped += u64::from(!is_broken);
                    self.drop_all(writer, samples, out);
                }
            }
            let is_over = |sets: &WriterSets| sets.is_forgotten && sets.waiting.is_empty();
            if self.writers.get(&writer).is_some_and(is_over) {
                self.writers.remove(&writer);
                out.forgotten.push(writer);
            }
        }
    }

    /// The samples that wait here, by their writers and numbers.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Guid, SequenceNumber)> + '_ {
        self.writers.iter().flat_map(|(writer, sets)| {
            let open = sets.open.iter().flat_map(|open| &open.samples);
            let samples = open.chain(sets.waiting.iter().flat_map(|it| &it.samples));
            samples.map(|sample| (*writer, sample.sn))
        })
    }

    /// The samples that wait here.
    pub(super) fn stored_mut(&mut self) -> impl Iterator<Item = &mut StoredSample> {
        self.writers.values_mut().flat_map(|sets| {
            let open = sets.open.iter_mut().flat_map(|open| &mut open.samples);
            open.chain(sets.waiting.iter_mut().flat_map(|it| &mut it.samples))
                .map(|sample| &mut sample.stored)
        })
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.samples * size_of::<SetSample>()
            + self.tags * size_of::<(SequenceNumber, Ahead)>()
            + self.writers.len() * size_of::<WriterSets>()
    }
}
