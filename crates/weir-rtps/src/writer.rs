//! A writer as a state machine: history, matched readers, window, HEARTBEATs and repairs (RTPS 2.5 §8.4.7,
//! §8.4.9).
//!
//! The path of a sample: [`WriterCore::reserve`] hands out room in the history where the sample is encoded in
//! place, [`Reservation::commit`] gives it a sequence number, [`WriterCore::poll_transmit`] hands out slices
//! of the history to be sent outside the lock that guards this core. Repairs are the same slices again.

mod acknowledgements;
mod asynchronous;
mod batch;
mod burst;
mod compose;
mod fragments;
mod heartbeat;
mod instances;
mod liveliness;
mod loan;
mod lone;
mod pieces;
mod reader_proxy;
mod refusal;
mod tail;
mod timeouts;
mod transmit;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use weir_wire::{Guid, SequenceNumber, Timestamp, VendorId};

use crate::config;
use crate::history::History as Store;
use crate::multicast::{GroupRoute, Plan};
use crate::outbox::Destinations;
use crate::qos::{Durability, History, Reliability};
use crate::time::Time;
use crate::window::{Window, charge};
use batch::OpenBatch;
use burst::Burst;
use compose::Template;
use fragments::Fragments;
use heartbeat::Heartbeat;
use instances::Instances;
use lone::LoneMemory;
use pieces::Filling;
use reader_proxy::ReaderProxy;

pub use batch::BatchPolicy;
pub use loan::LOAN_FRONT_BYTES;
pub use lone::{LoneDatagram, LonePayload};
pub use reader_proxy::ReaderProxyConfig;
pub use refusal::WriteRefused;

/// What a writer is.
#[derive(Debug, Clone)]
pub struct WriterConfig {
    /// Its GUID.
    pub guid: Guid,
    /// The vendor id that its messages carry.
    pub vendor: VendorId,
    /// Whether samples are repaired.
    pub reliability: Reliability,
    /// Which samples are kept for repairs.
    pub history: History,
    /// Whether late readers get what was written before.
    pub durability: Durability,
    /// Most samples in the history. A write beyond it is refused, unless it replaces a sample.
    pub max_samples: Option<u32>,
    /// Most instances that were written or registered and not unregistered.
    pub max_instances: Option<u32>,
    /// Most samples of one instance in the history; for KEEP_LAST, the depth is less.
    pub max_samples_per_instance: Option<u32>,
    /// Most bytes of samples in the history, with their headers.
    pub max_bytes: Option<usize>,
    /// What the table of instances depends on: a number that peers cannot guess.
    pub hash_seed: u64,
    /// Whether writes in quick succession leave together.
    pub coalescing: Option<Coalescing>,
    /// Whether samples are collected in one message.
    pub batch: Option<BatchPolicy>,
    /// Whether another thread calls [`WriterCore::poll_published`] than those that write. What was not handed out yet is
    /// bounded then: KEEP_ALL refuses writes beyond [`config::UNSENT_MAX_BYTES`] where no reader acknowledges, and with
    /// KEEP_LAST each write is followed by [`WriterCore::replace_unsent`].
    pub is_asynchronous: bool,
}

/// Automatic coalescing: samples of a burst, each in an RTPS message and datagram of its own, leave together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// Writes closer together than this are a burst.
    pub gap: Duration,
    /// Longest time that a sample is held back.
    pub delay_max: Duration,
    /// Largest datagram, in bytes, that leaves in a segmented send: the path MTU less 28. Longer ones leave
    /// one by one.
    pub segment_max: u16,
}

impl Default for Coalescing {
    fn default() -> Self {
        Self { gap: config::COALESCING_GAP, delay_max: config::COALESCING_DELAY_MAX, segment_max: u16::MAX }
    }
}

impl WriterConfig {
    /// A best-effort or reliable writer with the defaults of the DDS specification and no coalescing.
    pub fn new(guid: Guid, reliability: Reliability) -> Self {
        Self {
            guid,
            vendor: VendorId::WEIR,
            reliability,
            history: History::KeepLast(1),
            durability: Durability::Volatile,
            max_samples: None,
            max_instances: None,
            max_samples_per_instance: None,
            max_bytes: None,
            hash_seed: 0,
            coalescing: None,
            batch: None,
            is_asynchronous: false,
        }
    }
}

/// What happened to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// A new value.
    Alive,
    /// The instance was disposed.
    Disposed,
    /// The writer no longer writes the instance.
    Unregistered,
    /// Both.
    DisposedUnregistered,
}

/// A sample to be copied into the history.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What happened.
    pub kind: ChangeKind,
    /// The key hash of the instance; `None` for topics without a key.
    pub key: Option<[u8; 16]>,
    /// The payload with its encapsulation header; the serialized key unless `kind` is `Alive`.
    pub payload: &'a [u8],
}

/// Numbers that a writer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterCounters {
    /// Samples that were handed out again because a reader asked.
    pub samples_repaired: u64,
    /// GAPs for samples that are no longer there.
    pub gaps_sent: u64,
    /// HEARTBEATs, those that rode along included.
    pub heartbeats_sent: u64,
    /// ACKNACKs that were used.
    pub acknacks_received: u64,
    /// Requests for repairs that were put off: the reader was sent much again and acknowledged nothing of it.
    pub repairs_held_back: u64,
    /// Readers that took back what they had acknowledged: they lost the writer and found it again.
    pub readers_restarted: u64,
    /// ACKNACKs from readers that are not matched, or with numbers that make no sense, or old ones.
    pub acknacks_ignored: u64,
}

/// One writer. See the module's documentation.
#[derive(Debug)]
pub struct WriterCore {
    config: WriterConfig,
    template: Template,
    history: Store,
    instances: Instances,
    proxies: Vec<ReaderProxy>,
    /// Whether one of them is reliable.
    has_reliable: bool,
    /// The addresses of all matched readers.
    destinations: Destinations,
    /// How the groups among them are reached.
    routes: Vec<GroupRoute>,
    window: Window,
    /// The first sequence number that was not handed out yet.
    unsent: SequenceNumber,
    /// The last one that all reliable readers have acknowledged.
    acknowledged: SequenceNumber,
    /// `history.charged_to(acknowledged)`.
    acknowledged_charge: u64,
    /// Charge of everything that is known to have left the sockets of all reliable readers.
    seen_charge: u64,
    /// Some proxy may have something to be told.
    is_answer_due: bool,
    heartbeat: Heartbeat,
    burst: Burst,
    open: Option<OpenBatch>,
    /// Samples that are too long for a datagram, and when they were written.
    large: VecDeque<(SequenceNumber, Timestamp)>,
    /// At this many, those of samples that are gone are forgotten.
    large_max: usize,
    fragments: Fragments,
    /// Where samples are encoded that are not kept.
    lone: LoneMemory,
    /// The last sample, while it is not whole.
    filling: Option<Filling>,
    /// Blocks that the application fills.
    loans: usize,
    /// The longest datagram that reaches every reader unfragmented, as far as is known.
    datagram_max: usize,
    counters: WriterCounters,
}

impl WriterCore {
    /// A writer without readers.
    pub fn new(config: WriterConfig) -> Self {
        Self {
            template: Template::new(&config),
            history: Store::new(config::BLOCK_BYTES, config::BLOCKS_SPARE_MAX),
            instances: Instances::new(&config),
            proxies: Vec::new(),
            has_reliable: false,
            destinations: Arc::from([]),
            routes: Vec::new(),
            window: Window::new(),
            unsent: SequenceNumber::FIRST,
            acknowledged: SequenceNumber::ZERO,
            acknowledged_charge: 0,
            seen_charge: 0,
            is_answer_due: false,
            heartbeat: Heartbeat { delay: config::HEARTBEAT_DELAY_MIN, ..Heartbeat::default() },
            burst: Burst::default(),
            open: None,
            large: VecDeque::new(),
            large_max: LARGE_SPARE,
            fragments: Fragments::default(),
            lone: LoneMemory::default(),
            filling: None,
            loans: 0,
            datagram_max: config::SEGMENTED_MAX_BYTES,
            counters: WriterCounters::default(),
            config,
        }
    }

    /// The writer's GUID.
    pub fn guid(&self) -> Guid {
        self.config.guid
    }

    /// Room for a sample of `payload_len` bytes, its encapsulation header included. Nothing has happened
    /// until the reservation is committed.
    ///
    /// # Errors
    /// [`WriteRefused`]; `WindowFull` only for KEEP_ALL, or when as much as a resource limit allows is unacknowledged.
    #[inline]
    pub fn reserve(&mut self, payload_len: usize) -> Result<Reservation<'_>, WriteRefused> {
        let len = compose::datagram_len(payload_len);
        if len + compose::HEARTBEAT_LEN > self.datagram_max {
            return self.reserve_large(payload_len);
        }
        let extension = self.extension(payload_len);
        let cost = match (extension, self.open) {
            (Some(extra), Some(open)) => charge(open.len + extra) - charge(open.len),
            _ => charge(len),
        };
        if !self.has_room(cost) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        if extension.is_none() {
            self.open = None;
            if let Some(policy) = &self.config.batch {
                self.history.make_room(policy.max_bytes);
            }
            self.history.prepare(len);
        }
        Ok(Reservation { core: self, payload_len, extension, fragment_size: 0 })
    }

    /// [`WriterCore::reserve`], filled by `fill`, and [`Reservation::commit`], in one step: a sample that gets a datagram
    /// of its own costs less so.
    ///
    /// # Errors
    /// The outer one is that of `fill`; then, and when the sample is refused, nothing has happened.
    #[inline]
    pub fn write_with<E>(
        &mut self,
        now: Time,
        (timestamp, key): (Timestamp, Option<[u8; 16]>),
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Result<SequenceNumber, WriteRefused>, E> {
        let len = compose::datagram_len(payload_len);
        if self.config.batch.is_some() || len + compose::HEARTBEAT_LEN > self.datagram_max {
            let mut room = match self.reserve(payload_len) {
                Ok(room) => room,
                Err(refused) => return Ok(Err(refused)),
            };
            fill(room.payload())?;
            return Ok(room.commit(now, timestamp, key));
        }
        if !self.has_room(charge(len)) {
            return Ok(Err(self.refuse(WriteRefused::WindowFull)));
        }
        let sn = self.history.next();
        let datagram = self.history.reserve(len);
        fill(&mut datagram[compose::PAYLOAD_AT..][..payload_len])?;
        self.template.fill(datagram, sn, timestamp, payload_len);
        let instance = match self.admit(key, len) {
            Ok(instance) => instance,
            Err(refused) => return Ok(Err(refused)),
        };
        self.instances.committed(instance, sn);
        self.history.commit(len, charge(len));
        self.burst.datagrams += 1;
        self.committed(now, sn, len);
        Ok(Ok(sn))
    }

    /// Room for a sample that leaves in fragments. It is let in when there is room for its beginning; how fast it
    /// leaves is decided fragment by fragment.
    #[cold]
    fn reserve_large(&mut self, payload_len: usize) -> Result<Reservation<'_>, WriteRefused> {
        let fragment_size = self.admit_large(payload_len)?;
        self.history.prepare(payload_len);
        Ok(Reservation { core: self, payload_len, extension: None, fragment_size })
    }

    /// The size of the fragments of a sample that is let in.
    fn admit_large(&mut self, payload_len: usize) -> Result<u32, WriteRefused> {
        if payload_len > config::SAMPLE_MAX_BYTES {
            return Err(WriteRefused::TooLarge { len: payload_len, max: config::SAMPLE_MAX_BYTES });
        }
        let fragment_size = compose::fragment_size(self.datagram_max);
        let beginning = self.large_charge(payload_len, fragment_size).min(self.window.size() / 4);
        if !self.has_room(beginning) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        self.open = None;
        Ok(fragment_size)
    }

    /// Why a write is refused; somebody will wait for room.
    #[cold]
    fn refuse(&mut self, refused: WriteRefused) -> WriteRefused {
        if refused == WriteRefused::WindowFull {
            // The answer to this HEARTBEAT is what makes room.
            self.heartbeat.is_due |= self.heartbeat.charged < self.history.charged();
            self.heartbeat.is_awaited = !self.heartbeat.is_hurried;
        }
        refused
    }

    /// The instance of a sample that takes `len` bytes.
    #[inline]
    fn admit(&mut self, key: Option<[u8; 16]>, len: usize) -> Result<Option<u32>, WriteRefused> {
        if self.config.max_bytes.is_some_and(|max| len > max) {
            return Err(WriteRefused::TooLarge { len, max: self.config.max_bytes.unwrap_or(len) });
        }
        let last = self.acknowledged.min(self.unsent.prev());
        self.instances.admit(key, len, &mut self.history, last).map_err(|refused| self.refuse(refused))
    }

    /// Makes an instance known before it is written; it counts until it is unregistered.
    ///
    /// # Errors
    /// [`WriteRefused::TooManyInstances`].
    pub fn register_instance(&mut self, key: [u8; 16]) -> Result<(), WriteRefused> {
        let last = self.acknowledged.min(self.unsent.prev());
        self.instances.register(key, &mut self.history, last)
    }

    fn large_charge(&self, payload_len: usize, fragment_size: u32) -> u64 {
        let fragments = payload_len.div_ceil(fragment_size as usize) as u64;
        fragments * charge(compose::FRAGMENT_AT + fragment_size as usize)
    }

    /// How many bytes a sample would add to the batch that is being filled, if it fits there.
    #[inline]
    fn extension(&mut self, payload_len: usize) -> Option<usize> {
        let (policy, open) = (self.config.batch.as_ref()?, self.open.as_ref()?);
        let extra = compose::extension_len(payload_len);
        (open.takes(policy, extra) && self.history.extend(extra).is_some()).then_some(extra)
    }

    /// Ends the batch that is being filled: the next sample begins another one.
    pub fn seal(&mut self) {
        self.open = None;
    }

    /// Copies one change into the history; for traffic whose speed does not matter, and for the changes that
    /// carry inline QoS (dispose and unregister).
    ///
    /// # Errors
    /// As [`WriterCore::reserve`].
    pub fn write_copy(
        &mut self,
        now: Time,
        timestamp: Option<Timestamp>,
        change: Change<'_>,
    ) -> Result<SequenceNumber, WriteRefused> {
        if change.kind == ChangeKind::Alive
            && let Some(timestamp) = timestamp
        {
            let mut reservation = self.reserve(change.payload.len())?;
            reservation.payload().copy_from_slice(change.payload);
            return reservation.commit(now, timestamp, change.key);
        }
        let len = compose::datagram_len_with_inline_qos(change.payload.len());
        if len > config::DATAGRAM_MAX_BYTES - compose::HEARTBEAT_LEN {
            return Err(WriteRefused::TooLarge { len: change.payload.len(), max: compose::PAYLOAD_MAX });
        }
        if !self.has_room(charge(len)) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        let instance = self.admit(change.key, len)?;
        self.open = None;
        let sn = self.history.next();
        let len = compose::with_inline_qos(&self.config, sn, timestamp, &change, self.history.reserve(len));
        let sn_committed = self.history.commit(len, charge(len));
        debug_assert_eq!(sn, sn_committed);
        self.burst.datagrams += 1;
        self.instances.committed(instance, sn);
        if matches!(change.kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered) {
            self.instances.ended(instance, sn, change.kind == ChangeKind::DisposedUnregistered);
        }
        self.committed(now, sn, len);
        Ok(sn)
    }

    /// Adds a reader. A reader that is matched already is replaced.
    pub fn match_reader(&mut self, now: Time, reader: ReaderProxyConfig) {
        self.unmatch_reader(now, reader.guid);
        if self.proxies.len() >= config::PROXIES_MAX {
            return;
        }
        let is_reliable = reader.reliable && self.config.reliability == Reliability::Reliable;
        let wants_history = reader.wants_history && self.config.durability != Durability::Volatile;
        let start = if wants_history { self.history.first() } else { self.history.next() };
        self.proxies.push(ReaderProxy::new(reader, is_reliable, wants_history, start));
        self.readers_changed(now);
    }

    /// Forgets a reader; what only it had not acknowledged is released.
    pub fn unmatch_reader(&mut self, now: Time, guid: Guid) {
        let before = self.proxies.len();
        self.proxies.retain(|proxy| proxy.guid != guid);
        if self.proxies.len() != before {
            self.readers_changed(now);
        }
    }

    /// Sends to other addresses from now on.
    pub fn move_reader(
        &mut self,
        now: Time,
        guid: Guid,
        destinations: Destinations,
        group: Option<GroupRoute>,
    ) {
        if let Some(proxy) = self.proxies.iter_mut().find(|proxy| proxy.guid == guid) {
            proxy.destinations = destinations;
            proxy.group = group;
            self.readers_changed(now);
        }
    }

    /// Whether the write of a payload of this many bytes, which was refused, should be tried again: it fits,
    /// and enough for many more if it is small, so that a waiting thread is not woken for each sample.
    pub fn has_room_for(&self, key: Option<[u8; 16]>, payload_len: usize) -> bool {
        if !self.instances.has_room(key, compose::datagram_len(payload_len), &self.history) {
            return false;
        }
        let (len, window) = (compose::datagram_len(payload_len), self.window.size());
        let cost = if len + compose::HEARTBEAT_LEN > self.datagram_max {
            self.large_charge(payload_len, compose::fragment_size(self.datagram_max))
        } else {
            charge(len)
        };
        if !self.has_reliable_readers() {
            return self.has_room(cost.clamp(config::UNSENT_MAX_BYTES / 2, config::UNSENT_MAX_BYTES));
        }
        self.has_room(cost.clamp(window / 8, (window / 4).max(cost.min(config::WINDOW_MIN_BYTES))))
    }

    /// Whether every reliable reader has acknowledged `sn` and all samples before it.
    #[inline]
    pub fn is_acknowledged(&self, sn: SequenceNumber) -> bool {
        self.acknowledged >= sn || !self.has_reliable_readers()
    }

    /// The number of the last sample; 0 before the first.
    #[inline]
    pub fn last_sequence_number(&self) -> SequenceNumber {
        self.history.last()
    }

    /// GUIDs of the reliable readers that have not acknowledged the last sample, the one that is furthest behind first.
    pub fn lagging_readers(&self) -> impl Iterator<Item = Guid> + '_ {
        let last = self.history.last();
        let behind = |proxy: &&ReaderProxy| proxy.is_reliable && proxy.acknowledged < last;
        let mut lagging: Vec<_> = self.proxies.iter().filter(behind).collect();
        lagging.sort_by_key(|proxy| proxy.acknowledged);
        lagging.into_iter().map(|proxy| proxy.guid)
    }

    /// Where samples go: the groups and addresses of all matched readers.
    pub fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    /// How the multicast groups among [`WriterCore::destinations`] are reached.
    pub fn routes(&self) -> &[GroupRoute] {
        &self.routes
    }

    /// Number of matched readers.
    pub fn matched(&self) -> usize {
        self.proxies.len()
    }

    /// Asks for an answer from all reliable readers with the next transmission: for somebody who waits for
    /// acknowledgements.
    pub fn request_acknowledgement(&mut self) {
        let is_news = self.heartbeat.charged < self.history.charged() || self.unsent < self.history.next();
        self.heartbeat.is_due |= is_news && self.has_unacknowledged();
    }

    /// The first sample that is not to be sent yet, because its batch may still grow.
    #[inline]
    fn sendable_end(&self, now: Time) -> SequenceNumber {
        match (&self.open, &self.config.batch) {
            (Some(open), Some(policy)) if now.since(open.since) < policy.max_delay => open.first,
            _ => self.history.next(),
        }
    }

    /// Whether it matters when writes are made and how long sending takes: [`WriterCore::note_sent`] and
    /// [`WriterCore::note_send_time`] are to be called.
    #[inline]
    pub fn judges_pace(&self) -> bool {
        self.config.coalescing.is_some()
    }

    /// Whether committed samples wait to be handed out.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent < self.history.next()
    }

    /// Lowers the largest datagram, in bytes: the smallest path MTU to any matched reader, less 28. Longer samples
    /// leave in fragments, and batches end there.
    pub fn limit_segments(&mut self, bytes: u16) {
        self.datagram_max = self.datagram_max.min(usize::from(bytes)).max(config::DATAGRAM_MIN_BYTES);
        if let Some(coalescing) = &mut self.config.coalescing {
            coalescing.segment_max = coalescing.segment_max.min(bytes);
        }
        if let Some(batch) = &mut self.config.batch {
            // A HEARTBEAT may ride along. What IP had to cut would be lost with any of its pieces.
            batch.max_bytes = batch.max_bytes.min(self.datagram_max - compose::HEARTBEAT_LEN);
        }
    }

    /// What was counted.
    pub fn counters(&self) -> WriterCounters {
        self.counters
    }

    /// Bytes of memory that the history and the instances take.
    pub fn memory(&self) -> usize {
        self.history.memory() + self.instances.memory() + self.lone.len()
    }

    /// Number of samples from the oldest that is kept to the newest, those between that are gone included.
    pub fn span(&self) -> usize {
        self.history.span()
    }

    /// Number of samples in the history.
    pub fn kept(&self) -> usize {
        self.history.len()
    }

    /// The window in bytes as the kernel charges them, and how much of it is in flight.
    pub fn window(&self) -> (u64, u64) {
        (self.window.size(), self.in_flight())
    }

    #[inline]
    fn has_room(&self, charge: u64) -> bool {
        self.config.history != History::KeepAll
            || if self.has_reliable_readers() {
                self.in_flight() + charge <= self.window.size() && self.has_room_behind_hole(charge)
            } else {
                self.has_room_unsent(charge)
            }
    }

    /// What may be in a reader's socket: not what it asked for again, nor what was sent before that.
    #[inline]
    fn in_flight(&self) -> u64 {
        self.history.charged() - self.seen_charge
    }

    /// Whether a reader that misses a sample can keep more of what follows it, and whether we can.
    #[inline]
    fn has_room_behind_hole(&self, charge: u64) -> bool {
        let samples = self.history.next().0 - self.acknowledged.0;
        let unacknowledged = self.history.charged() - self.acknowledged_charge;
        samples <= config::REORDER_MAX_SAMPLES as i64
            && unacknowledged + charge <= config::UNACKNOWLEDGED_WINDOWS * self.window.size()
    }

    #[inline]
    fn has_reliable_readers(&self) -> bool {
        self.has_reliable
    }

    fn has_unacknowledged(&self) -> bool {
        self.has_reliable_readers() && self.acknowledged < self.history.last()
    }

    /// Book-keeping after sample `sn` was laid into the history in `len` new bytes.
    #[inline]
    fn committed(&mut self, now: Time, sn: SequenceNumber, len: usize) {
        if self.proxies.is_empty() {
            self.instances.replace(&mut self.history, sn, None);
            self.unsent = sn.next();
            self.fragments.end();
            self.acknowledged = sn;
            self.acknowledged_charge = self.history.charged();
            self.seen_charge = self.acknowledged_charge;
            self.open = None;
            (self.burst.datagrams, self.burst.bytes) = (0, 0);
            self.release();
            return;
        }
        self.burst.bytes += len;
        self.note_unacknowledged(now);
        self.note_write(now, len);
    }

    /// There is something that reliable readers have not acknowledged.
    #[inline]
    fn note_unacknowledged(&mut self, now: Time) {
        if self.heartbeat.next_at.is_none() && self.has_reliable_readers() {
            self.heartbeat.delay = self.heartbeat_delay(now);
            self.heartbeat.next_at = Some(now + self.heartbeat.delay);
        }
    }

    /// No reader that could ask for it again misses anything that was handed out.
    #[inline]
    fn note_all_acknowledged(&mut self) {
        self.acknowledged = self.unsent.prev();
        self.acknowledged_charge = self.history.charged();
        self.seen_charge = self.acknowledged_charge;
    }

    /// Remembers when a large sample was written.
    fn note_large(&mut self, sn: SequenceNumber, timestamp: Timestamp) {
        if self.large.len() >= self.large_max {
            let history = &self.history;
            self.large.retain(|(sn, _)| history.entry(*sn).is_some_and(|entry| entry.is_alive()));
            self.large_max = 2 * self.large.len() + LARGE_SPARE;
        }
        self.large.push_back((sn, timestamp));
    }

    /// Lets go of what nobody can ask for any more.
    fn release(&mut self) {
        let last = self.acknowledged.min(self.unsent.prev());
        if self.config.keeps_nothing_for_late_readers() {
            self.instances.released(&self.history, last);
            self.history.release_to(last);
            while self.large.front().is_some_and(|(sn, _)| *sn < self.history.first()) {
                self.large.pop_front();
            }
        }
        self.instances.release_ended(&mut self.history, last);
    }

    fn readers_changed(&mut self, now: Time) {
        self.has_reliable = self.proxies.iter().any(|proxy| proxy.is_reliable);
        let plan = Plan::new(self.proxies.iter().map(|proxy| (&proxy.destinations, proxy.group)));
        self.destinations = Arc::from(plan.destinations);
        self.routes = plan.routes;
        let buffers = self.proxies.iter().filter(|proxy| proxy.is_reliable).map(|proxy| proxy.receive_buffer);
        self.window.set_receive_buffer(buffers.min_by_key(|buffer| buffer.unwrap_or(0)).flatten());
        self.fragments.set_receive_buffers(self.proxies.iter().map(|proxy| proxy.receive_buffer));
        if !self.has_reliable_readers() {
            self.acknowledged = self.unsent.prev();
            self.acknowledged_charge = self.history.charged_to(self.acknowledged);
            self.seen_charge = self.acknowledged_charge;
            self.heartbeat.next_at = None;
            self.heartbeat.is_due = false;
            // A sample that waited for room at a reliable reader goes on without it.
            let is_waiting = self.is_amid_sample() && self.fragments.paced_at.is_none();
            self.fragments.paced_at = if is_waiting { Some(now) } else { self.fragments.paced_at };
            self.release();
        } else {
            self.recount_acknowledged(now);
            self.release();
        }
    }
}

/// Large samples that are remembered beyond those that are there.
const LARGE_SPARE: usize = 16;

/// Room in the history for one sample.
#[derive(Debug)]
pub struct Reservation<'a> {
    core: &'a mut WriterCore,
    payload_len: usize,
    /// The bytes that the sample adds to the batch that is being filled; `None`: it gets a datagram of its own.
    extension: Option<usize>,
    /// 0, or the length of the fragments in which the sample leaves.
    fragment_size: u32,
}

impl Reservation<'_> {
    /// Where the payload goes: exactly as many bytes as were asked for, the encapsulation header first.
    #[inline]
    pub fn payload(&mut self) -> &mut [u8] {
        let len = self.payload_len;
        if let Some(extra) = self.extension {
            let datagram = self.core.history.extend(extra).unwrap_or_default();
            let at = datagram.len() - extra + compose::DATA_LEN;
            return &mut datagram[at..at + len];
        }
        if self.fragment_size != 0 {
            return self.core.history.reserved(len);
        }
        let datagram = self.core.history.reserved(compose::datagram_len(len));
        &mut datagram[compose::PAYLOAD_AT..compose::PAYLOAD_AT + len]
    }

    /// Makes the bytes that [`Reservation::payload`] was filled with the writer's next sample.
    ///
    /// # Errors
    /// [`WriteRefused`], when the instance is the one too many, or one of its samples is.
    #[inline]
    pub fn commit(
        self,
        now: Time,
        timestamp: Timestamp,
        key: Option<[u8; 16]>,
    ) -> Result<SequenceNumber, WriteRefused> {
        let core = self.core;
        let instance = core.admit(key, self.extension.unwrap_or(compose::datagram_len(self.payload_len)))?;
        let sn = core.history.next();
        core.instances.committed(instance, sn);
        if let (Some(extra), Some(open)) = (self.extension, &mut core.open) {
            let datagram = core.history.extend(extra).unwrap_or_default();
            let at = datagram.len() - extra;
            core.template.fill_extension(&mut datagram[at..], sn, self.payload_len);
            let cost = charge(open.len + extra) - charge(open.len);
            open.len += extra;
            open.samples += 1;
            core.history.commit_extension(extra, cost);
            core.committed(now, sn, extra);
            return Ok(sn);
        }
        if self.fragment_size != 0 {
            let cost = core.large_charge(self.payload_len, self.fragment_size);
            core.history.commit_fragmented(self.payload_len, self.fragment_size, cost);
            core.note_large(sn, timestamp);
            core.burst.datagrams += 1;
            core.committed(now, sn, self.payload_len);
            return Ok(sn);
        }
        let len = compose::datagram_len(self.payload_len);
        core.template.fill(core.history.reserved(len), sn, timestamp, self.payload_len);
        core.history.commit(len, charge(len));
        core.burst.datagrams += 1;
        if core.config.batch.is_some() {
            core.open = Some(OpenBatch { first: sn, len, samples: 1, since: now });
        }
        core.committed(now, sn, len);
        Ok(sn)
    }
}

#[cfg(test)]
mod tests;
