//! The applications: one that writes at a pace and one that takes and checks.

use core::fmt;
use core::time::Duration;
use std::net::SocketAddrV4;
use std::sync::Arc;

use weir_netsim::Ecn;
use weir_rtps::config;
use weir_rtps::ecn::EcnUse;
use weir_rtps::multicast::GroupRoute;
use weir_rtps::outbox::Outbox;
use weir_rtps::path::Path;
use weir_rtps::qos::{Durability, History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{
    BatchPolicy, Coalescing, ReaderProxyConfig, Stamp, WriteRefused, WriterConfig, WriterCore,
};
use weir_wire::{EntityId, Guid, GuidPrefix, Timestamp, VendorId};

use super::address;
use super::busy::Busy;
use super::other::{Engine, Other};
use crate::profile;

/// The parameters of a writer's host.
pub(crate) struct WriterSetup {
    pub(crate) config: WriterConfig,
    /// Samples to write.
    pub(crate) samples: u64,
    /// Time from one write to the next.
    pub(crate) gap: Duration,
    /// Bytes of payload of sample `n`.
    pub(crate) size: fn(u64) -> usize,
    /// Period of a separate sending thread; `None`: the application's thread sends.
    pub(crate) publishes_every: Option<Duration>,
    /// Time that the application takes to fill a piece of a large sample; `None`: samples are
    /// filled at once.
    pub(crate) fills_pieces_in: Option<Duration>,
    address: SocketAddrV4,
}

impl WriterSetup {
    pub(super) fn new(host: usize, number: usize) -> Self {
        let guid =
            Guid::new(GuidPrefix([host as u8 + 1; 12]), EntityId::user_writer(number as u32 + 1, false));
        let config =
            WriterConfig { history: History::KeepAll, ..WriterConfig::new(guid, Reliability::Reliable) };
        let gap = Duration::from_micros(1);
        Self {
            config,
            samples: 1000,
            gap,
            size: |_| 32,
            publishes_every: None,
            fills_pieces_in: None,
            address: address(host),
        }
    }

    /// Writes samples of `size` bytes without end, faster than any link carries them.
    pub(crate) fn saturate(&mut self, size: fn(u64) -> usize) {
        (self.samples, self.size, self.gap) = (u64::MAX, size, Duration::from_micros(20));
    }

    /// Leaves sending to another thread with this period.
    pub(crate) fn publish_every(&mut self, period: Duration) {
        self.config.is_asynchronous = true;
        self.publishes_every = Some(period);
    }

    pub(crate) fn coalesce(&mut self) {
        self.config.coalescing = Some(Coalescing { gap: self.gap, ..Coalescing::default() });
    }

    /// Collects samples in messages of up to 8 KiB.
    pub(crate) fn batch(&mut self) {
        let max_delay = self.gap * 20;
        self.config.batch = Some(BatchPolicy::new(8192, 1000, max_delay));
    }
}

/// The parameters of a reader's host.
pub(crate) struct ReaderSetup {
    pub(crate) config: ReaderConfig,
    /// Whether it requests samples from before the match.
    pub(crate) wants_history: bool,
    /// Whether its application takes samples at once.
    pub(crate) is_taking: bool,
    /// Its socket buffer in bytes, as accounted by the kernel.
    pub(crate) receive_buffer: u32,
    /// Whether it announces that.
    pub(crate) announces_buffer: bool,
    /// Longest datagram that reaches it unfragmented, in bytes.
    pub(crate) segment_max: u16,
    /// The path to its host, if writers pace what they send there.
    pub(crate) path: Option<Path>,
    /// The multicast group that it has also joined.
    pub(crate) group: Option<GroupRoute>,
    /// When it answers.
    pub(crate) answers: Answers,
    /// What its kernel reports of the ECN field of a datagram.
    pub(crate) sees_ecn: fn(Ecn) -> Ecn,
    /// Whose engine it is, as far as its writers know.
    pub(crate) vendor: VendorId,
    /// Its socket, if its host is slow.
    pub(crate) busy: Option<Busy>,
    address: SocketAddrV4,
}

impl ReaderSetup {
    /// Makes it a reader of another engine, which announces no buffer.
    pub(crate) fn be_of(&mut self, engine: Engine) {
        self.vendor = match engine {
            Engine::Cyclone => VendorId::CYCLONE,
            Engine::After(_) => VendorId::RTI,
            Engine::Together(_) | Engine::RequestsAfter(_) => VendorId::EPROSIMA,
        };
        (self.answers, self.announces_buffer) = (Answers::Of(engine), false);
    }
}

/// How a reader answers what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// As Weir's.
    AtOnce,
    /// As one of another engine.
    Of(Engine),
    /// Not at all.
    Never,
}

impl ReaderSetup {
    pub(super) fn new(host: usize, number: usize) -> Self {
        let guid =
            Guid::new(GuidPrefix([host as u8 + 1; 12]), EntityId::user_reader(number as u32 + 1, false));
        let config =
            ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(guid, Reliability::Reliable) };
        Self {
            config,
            wants_history: false,
            is_taking: true,
            receive_buffer: 8 << 20,
            announces_buffer: true,
            segment_max: u16::MAX,
            path: None,
            group: None,
            answers: Answers::AtOnce,
            sees_ecn: |ecn| ecn,
            vendor: VendorId::WEIR,
            busy: None,
            address: address(host),
        }
    }
}

/// A host with one writer.
pub(crate) struct WriterHost {
    pub(crate) address: SocketAddrV4,
    pub(crate) core: WriterCore,
    pub(crate) config: WriterConfig,
    pub(crate) receiver: UnlockedReceiver,
    /// Samples written so far.
    pub(crate) written: u64,
    /// Samples to write.
    pub(crate) samples: u64,
    /// Writes that found the window full.
    pub(crate) refused: u64,
    /// Samples sent, including repairs.
    pub(crate) samples_sent: u64,
    /// Bytes of payload of sample `n`.
    pub(crate) size: fn(u64) -> usize,
    gap: Duration,
    publishes_every: Option<Duration>,
    fills_pieces_in: Option<Duration>,
    /// The sample that is being filled.
    filling: Option<Filling>,
    next_publish: Time,
    next_write: Time,
    is_blocked: bool,
}

/// A sample that is filled piece by piece.
struct Filling {
    payload: Vec<u8>,
    piece_len: usize,
    filled: usize,
}

impl WriterHost {
    pub(super) fn new(mut setup: WriterSetup) -> Self {
        let samples = match setup.config.history {
            History::KeepLast(depth) => u64::from(depth),
            // One that keeps all for late readers needs room for all.
            History::KeepAll if setup.config.durability != Durability::Volatile => setup.samples,
            History::KeepAll => 0,
        };
        setup.config.limits = profile::endpoint(samples, longest(setup.samples, setup.size));
        Self {
            address: setup.address,
            core: WriterCore::new(setup.config.clone()),
            config: setup.config,
            receiver: UnlockedReceiver::default(),
            written: 0,
            samples: setup.samples,
            refused: 0,
            samples_sent: 0,
            size: setup.size,
            gap: setup.gap,
            publishes_every: setup.publishes_every,
            fills_pieces_in: setup.fills_pieces_in,
            filling: None,
            next_publish: Time::ZERO,
            next_write: Time::ZERO,
            is_blocked: false,
        }
    }

    /// Returns the length of its longest sample.
    pub(super) fn longest(&self) -> usize {
        longest(self.samples, self.size)
    }

    /// Whether all samples were written.
    pub(crate) fn is_done(&self) -> bool {
        self.written == self.samples && self.filling.is_none()
    }

    /// Whether a sample is being filled.
    pub(crate) fn is_filling(&self) -> bool {
        self.filling.is_some()
    }

    /// Called when there may be room.
    pub(super) fn unblock(&mut self) {
        self.is_blocked = false;
    }

    /// Restarts with another GUID and nothing written.
    pub(super) fn restart(&mut self, prefix: GuidPrefix) {
        self.config.guid.prefix = prefix;
        self.core = WriterCore::new(self.config.clone());
        (self.written, self.is_blocked) = (0, false);
    }

    pub(super) fn proxy(&self) -> WriterProxyConfig {
        WriterProxyConfig {
            guid: self.config.guid,
            reliable: self.config.reliability == Reliability::Reliable,
            destinations: Arc::from([self.address]),
            vendor: VendorId::WEIR,
        }
    }

    /// Processes what arrived at one time, and collects the responses.
    pub(crate) fn receive<'d>(
        &mut self,
        now: Time,
        datagrams: impl IntoIterator<Item = &'d [u8]>,
        out: &mut Outbox,
    ) {
        self.is_blocked = false;
        let (writers, readers) = (&mut [&mut self.core], &mut []);
        let cores = Cores { prefix: self.config.guid.prefix, writers, readers };
        self.receiver.receive(now, cores, datagrams, out);
    }

    /// Has a write that waits tried again if some reader is no longer waited for.
    pub(super) fn note_silence(&mut self) {
        if self.core.has_silence() && self.core.take_silence().has_stalled {
            self.is_blocked = false;
        }
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        let may_write = !self.is_done() && (!self.is_blocked || self.filling.is_some());
        let write = may_write.then_some(self.next_write);
        let timeout = self.core.next_timeout();
        let core = match self.publishes_every {
            None => timeout,
            Some(_) => (timeout.is_some() || self.core.has_unsent()).then_some(self.next_publish),
        };
        write.into_iter().chain(core).min()
    }

    /// Returns whether the application's thread sends what it writes.
    pub(super) fn sends_itself(&self) -> bool {
        self.publishes_every.is_none()
    }

    /// Runs the publishing thread, if it is due: collects what it sends.
    pub(super) fn publish(&mut self, now: Time, out: &mut Outbox) {
        let Some(period) = self.publishes_every.filter(|_| now >= self.next_publish) else { return };
        self.core.handle_timeout(now);
        self.core.poll_published(now, out);
        // What has left makes room where there is nothing to acknowledge.
        self.is_blocked &= self.config.reliability == Reliability::Reliable;
        self.next_publish = now + period;
    }

    /// Writes the next sample if it is due. `false` if it is not, or if there is no room.
    pub(super) fn write(&mut self, now: Time) -> bool {
        if self.is_done() || (self.is_blocked && self.filling.is_none()) || now < self.next_write {
            return false;
        }
        if let Some(filling) = self.filling.take() {
            self.fill_piece(now, filling);
            return true;
        }
        let number = self.written + 1;
        let len = (self.size)(number);
        let timestamp = Timestamp { seconds: 1, fraction: number as u32 };
        let payload = payload(self.config.guid, number, len);
        let fill = |room: &mut [u8]| {
            room.copy_from_slice(&payload);
            Ok::<(), WriteRefused>(())
        };
        let outcome = match self.core.extend_batch(len, None, fill) {
            Ok(Some(sn)) => Ok(sn),
            Ok(None) if self.begins_pieces(now, timestamp, &payload) => Ok(self.core.last_sequence_number()),
            Ok(None) => {
                self.core.write(now, Stamp { timestamp, key: None }, len, fill).and_then(|written| written)
            }
            Err(refused) => Err(refused),
        };
        match outcome {
            Ok(sn) => {
                assert_eq!(sn.0 as u64, number, "sequence numbers are dense");
                self.written = number;
                let gap = self.fills_pieces_in.filter(|_| self.filling.is_some()).unwrap_or(self.gap);
                self.next_write = now + gap;
                if self.config.is_asynchronous {
                    self.core.replace_unsent();
                }
                true
            }
            Err(WriteRefused::WindowFull | WriteRefused::LimitReached) => {
                self.refused += 1;
                self.is_blocked = true;
                false
            }
            Err(refused) => panic!("{refused}"),
        }
    }

    /// Starts a sample that is filled piece by piece, if the writer does so, and returns whether it
    /// did. A refusal recurs when it is written at once.
    fn begins_pieces(&mut self, now: Time, timestamp: Timestamp, payload: &[u8]) -> bool {
        if self.fills_pieces_in.is_none() {
            return false;
        }
        let Ok(Some(piece_len)) = self.core.begin_pieces(now, Stamp { timestamp, key: None }, payload.len())
        else {
            return false;
        };
        self.filling = Some(Filling { payload: payload.to_vec(), piece_len, filled: 0 });
        true
    }

    /// Adds the next piece.
    fn fill_piece(&mut self, now: Time, mut filling: Filling) {
        let end = (filling.filled + filling.piece_len).min(filling.payload.len());
        let mut block = self.core.lend_piece();
        let memory = Arc::get_mut(&mut block).expect("a loan has a single owner").bytes_mut();
        memory.fill(0xee);
        memory[..end - filling.filled].copy_from_slice(&filling.payload[filling.filled..end]);
        self.core.add_piece(block);
        filling.filled = end;
        if end < filling.payload.len() {
            self.filling = Some(filling);
            self.next_write = now + self.fills_pieces_in.unwrap_or_default();
        } else {
            self.next_write = now + self.gap;
        }
    }

    pub(super) fn note_sent(&mut self, out: &Outbox) {
        for item in &out.items {
            self.samples_sent += u64::from(item.samples);
            let is_batching = self.config.batch.is_some();
            assert!(is_batching || item.samples <= item.datagrams.into(), "{} samples", item.samples);
        }
    }

    pub(super) fn check_bounds(&self) {
        let (size, in_flight) = self.core.window();
        let is_keep_all = self.config.history == History::KeepAll;
        if is_keep_all && self.config.durability == Durability::Volatile {
            let memory = self.core.memory();
            // A paced path has a window of its own, which shrinks when less is to be sent.
            let most = u64::max(24 << 20, 2 * size);
            // A large sample is also kept while the one before is in flight.
            let last = 2 * (self.size)(self.written.max(1));
            let memory_max = most as usize + last + config::BLOCKS_SPARE_MAX * config::BLOCK_BYTES;
            let memory_max = memory_max.max(profile::reserved(|| self.core.allocated()));
            assert!(memory <= memory_max, "a history of {memory} bytes for a window of {size}");
            assert!(in_flight <= most, "{in_flight} bytes in flight with a window of {size}");
        }
    }
}

/// A writer known to a reader.
struct Known {
    guid: Guid,
    /// The samples taken, in order.
    taken: Vec<u64>,
    is_volatile: bool,
    /// Maximum number of samples in a message; they have the timestamp of the first, which is its
    /// number.
    message_max: u64,
    /// The timestamp of the last sample taken.
    stamp: u64,
    written_at_match: u64,
}

/// A host with one reader.
pub(crate) struct ReaderHost {
    pub(crate) address: SocketAddrV4,
    pub(crate) core: ReaderCore,
    pub(crate) config: ReaderConfig,
    pub(crate) receiver: UnlockedReceiver,
    /// Whether the application takes samples at once.
    pub(crate) is_taking: bool,
    /// When the last sample was taken.
    pub(crate) last_taken_at: Time,
    pub(crate) receive_buffer: u32,
    pub(crate) wants_history: bool,
    announces_buffer: bool,
    pub(super) segment_max: u16,
    pub(crate) path: Option<Path>,
    pub(super) group: Option<GroupRoute>,
    pub(crate) answers: Answers,
    sees_ecn: fn(Ecn) -> Ecn,
    pub(super) vendor: VendorId,
    pub(crate) busy: Option<Busy>,
    /// The writers, as a reader of another engine sees them.
    others: Vec<Other>,
    known: Vec<Known>,
}

impl ReaderHost {
    /// `longest`: the length of the longest sample that it will receive.
    pub(super) fn new(mut setup: ReaderSetup, longest: usize) -> Self {
        setup.config.limits = profile::endpoint(0, longest);
        Self {
            address: setup.address,
            core: ReaderCore::new(setup.config.clone()),
            config: setup.config,
            receiver: UnlockedReceiver::default(),
            is_taking: setup.is_taking,
            last_taken_at: Time::ZERO,
            receive_buffer: setup.receive_buffer,
            wants_history: setup.wants_history,
            announces_buffer: setup.announces_buffer,
            segment_max: setup.segment_max,
            path: setup.path,
            group: setup.group,
            answers: setup.answers,
            sees_ecn: setup.sees_ecn,
            vendor: setup.vendor,
            busy: setup.busy,
            others: Vec::new(),
            known: Vec::new(),
        }
    }

    pub(crate) fn proxy(&self) -> ReaderProxyConfig {
        ReaderProxyConfig {
            guid: self.config.guid,
            reliable: self.config.reliability == Reliability::Reliable,
            wants_history: self.wants_history,
            destinations: Arc::from([self.address]),
            group: self.group,
            vendor: self.vendor,
            receive_buffer: self.announces_buffer.then_some(self.receive_buffer),
            segment_max: self.segment_max,
            path: self.path.clone(),
        }
    }

    pub(super) fn meet(&mut self, writer: &WriterHost) {
        self.others.retain(|other| other.writer() != writer.config.guid);
        if let Answers::Of(engine) = self.answers {
            let of = (writer.config.guid, writer.address);
            self.others.push(Other::new(engine, self.config.guid, of, self.wants_history));
        }
        self.known.retain(|known| known.guid != writer.config.guid);
        self.known.push(Known {
            guid: writer.config.guid,
            taken: Vec::new(),
            is_volatile: !self.wants_history || writer.config.durability == Durability::Volatile,
            message_max: writer.config.batch.map_or(1, |policy| policy.max_samples.into()),
            stamp: 0,
            written_at_match: writer.written,
        });
    }

    /// Expects nothing more from a writer.
    pub(super) fn forget(&mut self, writer: Guid) {
        self.others.retain(|other| other.writer() != writer);
        self.known.retain(|known| known.guid != writer);
    }

    /// Expects the samples of the writer from the first one on.
    pub(crate) fn expect_all(&mut self, writer: usize) {
        self.known[writer].written_at_match = 0;
    }

    /// Processes what arrived at one time, and collects the responses.
    pub(crate) fn receive<'d>(
        &mut self,
        now: Time,
        datagrams: impl IntoIterator<Item = &'d [u8]>,
        out: &mut Outbox,
    ) {
        let others = &mut self.others;
        let datagrams = datagrams.into_iter().inspect(|datagram| {
            others.iter_mut().for_each(|other| other.receive(now, datagram));
        });
        let (writers, readers) = (&mut [], &mut [&mut self.core]);
        let cores = Cores { prefix: self.config.guid.prefix, writers, readers };
        self.receiver.receive(now, cores, datagrams, out);
    }

    /// Counts the ECN field of a datagram, as the driver does when a writer has asked.
    pub(super) fn note_ecn(&self, datagram: &[u8], ecn: Ecn) {
        match self.config.ecn.usage() {
            EcnUse::Unused => {}
            EcnUse::Wanted => self.config.ecn.begin(),
            EcnUse::Counted => self.config.ecn.note(datagram, 1, (self.sees_ecn)(ecn).bits()),
        }
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        let others = self.others.iter().filter_map(Other::next_event);
        let busy = self.busy.as_ref().and_then(Busy::next_event);
        self.core.next_timeout().into_iter().chain(others).chain(busy).min()
    }

    /// Discards what Weir's reader has to send, if another one answers, or none.
    pub(super) fn put_off(&self, out: &mut Outbox) {
        if self.answers != Answers::AtOnce {
            out.clear();
        }
    }

    /// Returns the next answer that is due.
    pub(super) fn next_answer(&mut self, now: Time) -> Option<(SocketAddrV4, Vec<u8>)> {
        self.others.iter_mut().find_map(|other| other.answer(now))
    }

    /// Returns whether an answer is due.
    pub(super) fn has_answer(&self, now: Time) -> bool {
        self.others.iter().filter_map(Other::next_event).any(|at| at <= now)
    }

    /// Returns how many samples of a writer its application has got, in order.
    pub(crate) fn delivered(&self, writer: Guid) -> usize {
        let other = self.others.iter().find(|other| other.writer() == writer);
        other.map_or(self.taken(writer).len(), Other::delivered)
    }

    /// Returns how many samples of a writer it has got, in whatever order.
    pub(crate) fn arrived(&self, writer: Guid) -> usize {
        let other = self.others.iter().find(|other| other.writer() == writer);
        other.map_or(self.taken(writer).len(), Other::arrived)
    }

    /// Returns the numbers of a writer's samples that were taken, in order.
    pub(crate) fn taken(&self, writer: Guid) -> &[u64] {
        self.known.iter().find(|known| known.guid == writer).map_or(&[], |known| &known.taken)
    }

    /// Takes all samples, if the application is taking. Returns whether there were any.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        let mut is_taken = false;
        while self.is_taking && self.take_one() {
            (is_taken, self.last_taken_at) = (true, now);
        }
        is_taken
    }

    /// Takes one sample and checks it.
    pub(crate) fn take_one(&mut self) -> bool {
        let Self { core, known, .. } = self;
        core.take_next(|sample| {
            let number = sample.sequence_number.0 as u64;
            let known = known.iter_mut().find(|known| known.guid == sample.writer);
            let known = known.expect("samples come from matched writers");
            let last = known.taken.last().copied().unwrap_or(0);
            assert!(number > last, "sample {number} of {} after {last}", sample.writer);
            let len = sample.payload.len() - usize::from(sample.payload[3]);
            let expected = payload(sample.writer, number, len);
            assert!(sample.payload[..len] == expected, "sample {number} came with other bytes");
            let stamp = sample.source_timestamp.map_or(0, |at| u64::from(at.fraction));
            let is_in_reach = (1..=number).contains(&stamp) && number - stamp < known.message_max;
            let is_of_one_message = stamp == known.stamp || stamp > last;
            assert!(is_in_reach && is_of_one_message, "{number}: {stamp} after {last}: {}", known.stamp);
            known.taken.push(number);
            known.stamp = stamp;
        })
    }

    /// Returns whether the reader, if it is reliable, has the last sample of every matched reliable
    /// writer.
    pub(super) fn has_all(&self, writers: &[WriterHost]) -> bool {
        // With KEEP_LAST, the last samples of several writers need not all be available.
        let is_replacing = self.config.history != History::KeepAll && self.known.len() > 1;
        self.reliable_writers(writers).all(|(writer, known)| {
            known.taken.last().map_or(known.floor(), |last| (*last).max(known.floor())) == writer.written
                || (is_replacing && writer.core.is_acknowledged(writer.core.last_sequence_number()))
        })
    }

    /// Asserts that no sample is missing between the first and the last, if none may be.
    pub(super) fn check_complete(&self, writers: &[WriterHost]) {
        for (writer, known) in self.reliable_writers(writers) {
            let is_keep_all =
                writer.config.history == History::KeepAll && self.config.history == History::KeepAll;
            if is_keep_all {
                // Samples in flight when the reader joined may have reached it, too.
                let floor = known.floor();
                let meant: Vec<u64> = known.taken.iter().copied().filter(|n| *n > floor).collect();
                let is_whole = meant.iter().copied().eq(floor + 1..=writer.written);
                assert!(is_whole, "{} got {meant:?} from {}", self.config.guid, writer.config.guid);
            }
        }
        let is_nothing_replaced = writers.iter().all(|writer| {
            writer.config.history == History::KeepAll && writer.config.reliability == Reliability::Reliable
        });
        // A late-joining reader may have received some samples in flight, and miss the rest.
        let is_early = self.known.iter().all(|known| known.floor() == 0);
        if is_nothing_replaced && is_early && self.config.reliability == Reliability::Reliable {
            assert_eq!(self.core.counters().samples_lost, 0, "{}", self.config.guid);
        }
        assert_eq!(self.core.available(), 0);
    }

    fn reliable_writers<'a>(
        &'a self,
        writers: &'a [WriterHost],
    ) -> impl Iterator<Item = (&'a WriterHost, &'a Known)> {
        let is_reliable = self.config.reliability == Reliability::Reliable;
        let writers = writers
            .iter()
            .filter(move |writer| is_reliable && writer.config.reliability == Reliability::Reliable);
        writers.filter_map(|writer| Some((writer, self.known.iter().find(|k| k.guid == writer.config.guid)?)))
    }

    pub(super) fn check_bounds(&self) {
        let memory = self.core.memory();
        let reserved = profile::reserved(|| self.core.allocated());
        let max = reserved.max(2 * self.config.max_bytes) + READER_SPARE_MAX;
        assert!(memory <= max, "{} takes {memory} bytes", self.config.guid);
    }
}

impl Known {
    /// The last sample that the reader need not have.
    fn floor(&self) -> u64 {
        if self.is_volatile { self.written_at_match } else { 0 }
    }
}

impl fmt::Display for WriterHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { written, samples, refused, .. } = self;
        let (window, counters) = (self.core.window(), self.core.counters());
        write!(f, "{written} of {samples} written, refused {refused} times, window {window:?}, {counters:?}")
    }
}

impl fmt::Display for ReaderHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Known { guid, taken, .. } in &self.known {
            write!(f, "{} samples of {guid} up to {:?}; ", taken.len(), taken.last())?;
        }
        write!(f, "{:?}", self.core.counters())
    }
}

/// Makes the bytes of a sample from its writer and number. The encapsulation header has the length
/// of the padding.
fn payload(writer: Guid, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, (len.next_multiple_of(4) - len) as u8];
    bytes.extend(number.to_le_bytes());
    bytes.resize(len, number as u8 ^ writer.prefix.0[0]);
    // Fragments of a large one differ.
    (1000..len).step_by(1000).for_each(|at| bytes[at..len.min(at + 4)].fill((at / 1000) as u8));
    bytes
}

/// Spare chunks, partly used chunks, and the index.
const READER_SPARE_MAX: usize = 12 << 20;

/// Returns the length of the longest of so many samples, if a limits table has to know it. Some writers never end.
fn longest(samples: u64, size: fn(u64) -> usize) -> usize {
    if profile::IS_SMALL { (1..=samples).map(size).max().unwrap_or(0) } else { 0 }
}
