//! Readers of other engines: what they keep, and when and how they answer.
//!
//! A model of each, written after the source of the engine (Cyclone DDS 4c1beb2, `ddsi_acknack.c`, `ddsi_receive.c` and
//! `ddsi_radmin.c`; Fast DDS 2bad9bc, `WriterProxy.cpp` and `StatefulReader.cpp`). What they have in common, and in
//! which Weir's reader differs:
//!
//! - The set of an ACKNACK begins at the first missing sample, and names missing ones only: at most the next 256. What
//!   it does not reach, the writer learns when that sample has arrived.
//! - Only a HEARTBEAT makes them answer. HEARTBEAT_FRAG gets no answer, or a late one.
//! - Nothing says which HEARTBEAT an answer is to, and what is in flight is requested, too.

mod cyclone;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddrV4;

use weir_rtps::time::Time;
use weir_wire::{
    AckNack, FragmentNumber, FragmentNumberSet, Guid, Header, Heartbeat, InfoDestination, Message, NackFrag,
    ProtocolVersion, SequenceNumber, SequenceNumberSet, Submessage, VendorId, push,
};

use self::cyclone::Cyclone;

/// How the reader of another engine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Each HEARTBEAT at once, with answers that arrive so much later: as Connext does with the delays that its
    /// profiles set to zero.
    After(Duration),
    /// Acknowledges at once, and requests repairs after this time, as OpenDDS does.
    RequestsAfter(Duration),
    /// This time after the first HEARTBEAT, once for all that have arrived meanwhile: Fast DDS (5 ms).
    Together(Duration),
    /// Cyclone DDS: at once, but repairs that were requested not again for 100 ms. It keeps 128 samples behind the
    /// first missing one, and fragments of 16.
    Cyclone,
}

/// A writer as such a reader sees it.
pub(super) struct Other {
    engine: Engine,
    reader: Guid,
    writer: Guid,
    to: SocketAddrV4,
    /// Samples from before the match are meant for it.
    wants_history: bool,
    /// Samples that have arrived as a whole.
    arrived: usize,
    /// The first sample that is missing.
    base: i64,
    /// What has arrived behind it.
    received: BTreeSet<i64>,
    /// Samples of which some fragments have arrived.
    partial: BTreeMap<i64, Partial>,
    /// The last sample known to exist, and how many of its fragments do.
    last: i64,
    last_fragment: u32,
    has_heartbeat: bool,
    last_count: u32,
    count: u32,
    fragment_count: u32,
    /// When answers are due.
    due: VecDeque<Time>,
    /// What is to be sent after the first message of an answer.
    rest: VecDeque<Vec<u8>>,
    /// Answers that are to be sent later.
    later: VecDeque<(Time, Vec<u8>)>,
    cyclone: Cyclone,
}

/// A sample of which some fragments have arrived.
struct Partial {
    received: BTreeSet<u32>,
    total: u32,
}

impl Partial {
    /// Returns up to 256 missing fragments, among the first `known`.
    fn missing(&self, known: u32) -> Option<FragmentNumberSet> {
        let missing = (1..=known.min(self.total)).filter(|number| !self.received.contains(number));
        missing.fold(None, |set: Option<FragmentNumberSet>, number| {
            let mut set = set.unwrap_or(FragmentNumberSet::new(FragmentNumber(number)));
            _ = set.insert(FragmentNumber(number));
            Some(set)
        })
    }
}

impl Other {
    pub(super) fn new(
        engine: Engine,
        reader: Guid,
        (writer, to): (Guid, SocketAddrV4),
        wants_history: bool,
    ) -> Self {
        Self {
            engine,
            reader,
            writer,
            to,
            wants_history,
            arrived: 0,
            base: 1,
            received: BTreeSet::new(),
            partial: BTreeMap::new(),
            last: 0,
            last_fragment: u32::MAX,
            has_heartbeat: false,
            last_count: 0,
            count: 0,
            fragment_count: 0,
            due: VecDeque::new(),
            rest: VecDeque::new(),
            later: VecDeque::new(),
            cyclone: Cyclone::default(),
        }
    }

    pub(super) fn writer(&self) -> Guid {
        self.writer
    }

    /// Returns how many samples the application has got, in order.
    pub(super) fn delivered(&self) -> usize {
        (self.base - 1) as usize
    }

    /// Takes what has arrived.
    pub(super) fn receive(&mut self, now: Time, datagram: &[u8]) {
        let Ok(message) = Message::parse(datagram) else { return };
        if message.header.prefix != self.writer.prefix {
            return;
        }
        for submessage in message.submessages().flatten() {
            match submessage {
                Submessage::Data(data) if data.writer == self.writer.entity => {
                    self.see(data.sequence_number.0, u32::MAX);
                    self.arrive(data.sequence_number.0);
                }
                Submessage::DataFrag(data) if data.writer == self.writer.entity => {
                    let (first, count) = (data.fragment_start, u32::from(data.fragments));
                    let total = data.sample_size.div_ceil(u32::from(data.fragment_size));
                    self.take_fragments(data.sequence_number.0, first..first + count, total);
                }
                Submessage::Gap(gap) if gap.writer == self.writer.entity => {
                    (gap.start.0..gap.list.base().0).for_each(|sn| self.take(sn));
                    gap.list.iter().for_each(|sn| self.take(sn.0));
                }
                Submessage::Heartbeat(heartbeat) if heartbeat.writer == self.writer.entity => {
                    self.handle_heartbeat(now, &heartbeat);
                }
                Submessage::HeartbeatFrag(it)
                    if it.writer == self.writer.entity && self.engine == Engine::Cyclone =>
                {
                    self.see(it.sequence_number.0, it.last_fragment);
                    self.cyclone_heartbeat_frag(now, it.sequence_number.0);
                }
                _ => {}
            }
        }
    }

    /// Records that a sample exists, or these of its fragments.
    fn see(&mut self, sn: i64, fragments: u32) {
        if sn > self.last {
            (self.last, self.last_fragment) = (sn, fragments);
        } else if sn == self.last {
            self.last_fragment = self.last_fragment.max(fragments);
        }
    }

    /// Returns how many samples have arrived.
    pub(super) fn arrived(&self) -> usize {
        self.arrived
    }

    fn arrive(&mut self, sn: i64) {
        self.arrived += usize::from(sn >= self.base && !self.received.contains(&sn));
        self.take(sn);
    }

    fn take(&mut self, sn: i64) {
        self.partial.remove(&sn);
        if sn < self.base || self.received.contains(&sn) {
            return;
        }
        if sn == self.base {
            self.base += 1;
            while self.received.remove(&self.base) {
                self.base += 1;
            }
            return;
        }
        self.received.insert(sn);
        if self.received.len() > self.reorder_max() {
            self.received.pop_last();
        }
    }

    fn take_fragments(&mut self, sn: i64, numbers: core::ops::Range<u32>, total: u32) {
        let end = numbers.end - 1;
        // Only Cyclone DDS takes account of samples that are announced by their fragments.
        if self.engine == Engine::Cyclone {
            self.see(sn, end);
        }
        if sn < self.base || self.received.contains(&sn) {
            return;
        }
        let partial = self.partial.entry(sn).or_insert(Partial { received: BTreeSet::new(), total });
        partial.received.extend(numbers);
        if partial.received.len() == total as usize {
            self.see(sn, u32::MAX);
            self.arrive(sn);
        } else if self.partial.len() > self.partial_max() {
            self.partial.pop_last();
        }
    }

    fn reorder_max(&self) -> usize {
        if self.engine == Engine::Cyclone { 128 } else { usize::MAX }
    }

    fn partial_max(&self) -> usize {
        if self.engine == Engine::Cyclone { 16 } else { usize::MAX }
    }

    fn handle_heartbeat(&mut self, now: Time, heartbeat: &Heartbeat) {
        if heartbeat.count <= self.last_count {
            return;
        }
        self.last_count = heartbeat.count;
        let (first, last) = (heartbeat.first.0, heartbeat.last.0);
        let is_first = !core::mem::replace(&mut self.has_heartbeat, true);
        self.see(last, u32::MAX);
        // For a volatile reader of Cyclone DDS, what the first one announces was written before the match.
        let is_start = is_first && self.engine == Engine::Cyclone && !self.wants_history;
        let from = if is_start { last + 1 } else { first };
        while self.base < from {
            self.take(self.base);
        }
        self.partial = self.partial.split_off(&self.base);
        if heartbeat.is_final && self.base > self.last {
            return;
        }
        match self.engine {
            Engine::After(delay) => {
                let (_, answer) = self.answer_now();
                let answers = core::iter::once(answer).chain(self.rest.drain(..));
                self.later.extend(answers.map(|bytes| (now + delay, bytes)));
            }
            Engine::Together(delay) if self.due.is_empty() => self.due.push_back(now + delay),
            Engine::RequestsAfter(delay) if self.due.is_empty() => {
                let is_missing = self.base <= self.last;
                self.due.push_back(if is_missing { now + delay } else { now });
            }
            Engine::Together(_) | Engine::RequestsAfter(_) => {}
            Engine::Cyclone => self.cyclone_heartbeat(now, heartbeat.is_final),
        }
    }

    /// Returns when the next answer is due.
    pub(super) fn next_event(&self) -> Option<Time> {
        self.cyclone.event.or(self.due.front().copied()).or(self.later.front().map(|(at, _)| *at))
    }

    /// Returns an answer that is due, and where to.
    pub(super) fn answer(&mut self, now: Time) -> Option<(SocketAddrV4, Vec<u8>)> {
        if let Some(rest) = self.rest.pop_front() {
            return Some((self.to, rest));
        }
        if self.engine == Engine::Cyclone {
            return self.cyclone_answer(now);
        }
        if self.later.front().is_some_and(|(at, _)| *at <= now) {
            return self.later.pop_front().map(|(_, bytes)| (self.to, bytes));
        }
        self.due.front().filter(|at| **at <= now)?;
        self.due.pop_front();
        Some(self.answer_now())
    }

    /// Returns the answer, and leaves what follows in `rest`.
    fn answer_now(&mut self) -> (SocketAddrV4, Vec<u8>) {
        let mut set = SequenceNumberSet::new(SequenceNumber(self.base));
        let mut fragments = Vec::new();
        for sn in self.base..=self.last.min(self.base + 255) {
            match self.partial.get(&sn) {
                Some(partial) => fragments.extend(partial.missing(u32::MAX).map(|state| (sn, state))),
                None if self.received.contains(&sn) => {}
                None => _ = set.insert(SequenceNumber(sn)),
            }
        }
        self.message(Some((set, set.is_empty())), &fragments)
    }

    fn push_set(&mut self, bytes: &mut Vec<u8>, set: Option<(SequenceNumberSet, bool)>) {
        if let Some((state, is_final)) = set {
            self.count += 1;
            let (reader, writer) = (self.reader.entity, self.writer.entity);
            push(bytes, &AckNack { reader, writer, state, count: self.count, is_final });
        }
    }

    fn message(
        &mut self,
        set: Option<(SequenceNumberSet, bool)>,
        fragments: &[(i64, FragmentNumberSet)],
    ) -> (SocketAddrV4, Vec<u8>) {
        let (from, to) = (self.reader.prefix, self.writer.prefix);
        let begin = |bytes: &mut Vec<u8>| {
            let vendor = VendorId::EPROSIMA;
            push(bytes, &Header { version: ProtocolVersion::V2_5, vendor, prefix: from });
            push(bytes, &InfoDestination { prefix: to });
        };
        let (reader, writer) = (self.reader.entity, self.writer.entity);
        let mut bytes = Vec::new();
        begin(&mut bytes);
        // Cyclone DDS requests samples before fragments.
        let is_first = self.engine == Engine::Cyclone;
        if is_first {
            self.push_set(&mut bytes, set);
        }
        for (sn, state) in fragments {
            if bytes.len() > MESSAGE_MAX {
                self.rest.push_back(core::mem::take(&mut bytes));
                begin(&mut bytes);
            }
            self.fragment_count += 1;
            let (sequence_number, count) = (SequenceNumber(*sn), self.fragment_count);
            push(&mut bytes, &NackFrag { reader, writer, sequence_number, state: *state, count });
        }
        if !is_first {
            self.push_set(&mut bytes, set);
        }
        self.rest.push_back(bytes);
        (self.to, self.rest.pop_front().unwrap_or_default())
    }
}

/// Messages with more than this end, in bytes: the rest of an answer follows in another.
const MESSAGE_MAX: usize = 1300;
