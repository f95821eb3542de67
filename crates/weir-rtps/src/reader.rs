//! A reader as a state machine: matched writers, reordering, acknowledgements, and the samples that wait for
//! the application (RTPS 2.5 §8.4.10 to §8.4.12).
//!
//! Samples of one writer are delivered in order and once. A reliable reader asks for what is missing as soon
//! as it sees a hole, without waiting for a HEARTBEAT; answers leave with [`ReaderCore::poll_transmit`] once
//! per batch of datagrams, not per sample.

mod assembly;
mod cache;
mod chunks;
mod departed;
mod fragments;
mod index_set;
mod instances;
mod liveliness;
mod reassembly;
mod ring;
mod room;
mod sample;
mod sample_memory;
mod states;
mod strangers;
mod writer_proxy;

use std::sync::Arc;

use weir_wire::{
    AckNack, Data, FragmentNumberSet, Gap, Guid, Header, Heartbeat, InfoDestination, ProtocolVersion,
    SequenceNumber, SequenceNumberSet, Timestamp, VendorId, push,
};

use crate::block::Block;
use crate::config;
use crate::key_hasher::Key;
use crate::liveliness::LivelinessChanges;
use crate::outbox::{Destinations, Outbox};
use crate::qos::{History, Reliability};
use crate::time::Time;
use assembly::Assemblies;
use cache::Cache;
use departed::DepartedWriters;
use sample::{Malformed, Sample, sample};
use strangers::Strangers;
use writer_proxy::{Arrival, WriterProxy};

pub use cache::{InstanceState, RawSample, SampleSelection};
pub use reassembly::ReassemblyLimits;
pub use room::Rejection;
pub use states::States;
pub use writer_proxy::WriterProxyConfig;

/// How a reader finds the instance of a sample: from a payload with its encapsulation header, and whether it
/// holds only the key; `None` when the bytes make no sense.
pub type KeyOf = fn(payload: &[u8], is_key: bool) -> Option<[u8; 16]>;

/// How a reader keeps the key of an instance: from a payload as for [`KeyOf`] to one that holds only the key.
pub type KeyPayloadOf = fn(payload: &[u8], is_key: bool) -> Option<Box<[u8]>>;

/// What a reader is.
#[derive(Debug, Clone)]
pub struct ReaderConfig {
    /// Its GUID.
    pub guid: Guid,
    /// The vendor id that its messages carry.
    pub vendor: VendorId,
    /// Whether it asks for what is missing.
    pub reliability: Reliability,
    /// Which samples it keeps until they are taken.
    pub history: History,
    /// How the instance of a sample is found; `None` for topics without a key.
    pub key_of: Option<KeyOf>,
    /// How the key of an instance is kept; `None`: samples without data have no key unless they bring it.
    pub key_payload_of: Option<KeyPayloadOf>,
    /// Whether it asks for what writers kept from before it was matched (any durability but VOLATILE).
    pub wants_history: bool,
    /// Whether a writer that was matched before is read on from where it was then, so that nothing is delivered twice.
    pub remembers_writers: bool,
    /// Most samples kept; `None` is bounded by `max_bytes` alone. A KEEP_LAST reader may have one more for each
    /// instance that ended, which tells of that.
    pub max_samples: Option<u32>,
    /// Most instances known.
    pub max_instances: Option<u32>,
    /// Most samples of an instance kept; for KEEP_LAST, the depth is less.
    pub max_samples_per_instance: Option<u32>,
    /// Most bytes of samples kept, with what is kept about each.
    pub max_bytes: usize,
    /// Bounds on samples that arrive in fragments.
    pub reassembly: ReassemblyLimits,
    /// What the table of instances depends on: a number that peers cannot guess.
    pub hash_seed: u64,
}

impl ReaderConfig {
    /// A best-effort or reliable reader with the defaults of the DDS specification.
    pub fn new(guid: Guid, reliability: Reliability) -> Self {
        Self {
            guid,
            vendor: VendorId::WEIR,
            reliability,
            history: History::KeepLast(1),
            key_of: None,
            key_payload_of: None,
            wants_history: true,
            remembers_writers: true,
            max_samples: None,
            max_instances: None,
            max_samples_per_instance: None,
            max_bytes: config::READER_CACHE_MAX_BYTES,
            reassembly: ReassemblyLimits::default(),
            hash_seed: 0,
        }
    }
}

/// Numbers that a reader counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderCounters {
    /// Samples that were handed to the cache.
    pub samples_received: u64,
    /// Samples that arrived again.
    pub samples_duplicate: u64,
    /// Samples that will never arrive (SAMPLE_LOST): passed over by a best-effort writer, or no longer there
    /// at a reliable one.
    pub samples_lost: u64,
    /// Best-effort samples that found no room and are gone (SAMPLE_REJECTED).
    pub samples_rejected: u64,
    /// Reliable samples that found no room (SAMPLE_REJECTED), and are asked for again when there is some.
    pub samples_refused: u64,
    /// Samples whose key could not be read.
    pub samples_malformed: u64,
    /// Writers that were matched again and had started their sequence numbers anew.
    pub writers_restarted: u64,
    /// Writers that are no longer matched and were forgotten to make room for others.
    pub writers_forgotten: u64,
    /// Reliable samples in fragments that are longer than [`ReassemblyLimits::sample_max_bytes`]; also counted as lost.
    pub samples_oversized: u64,
    /// Submessages from writers that are not matched.
    pub unknown_writers: u64,
    /// Fragments that contradict others of their sample, belong to one for which there is no room, or lie too far ahead
    /// of what has arrived of it.
    pub fragments_refused: u64,
    /// Fragments that were dropped because the allocator had no memory for them. A reliable writer is asked for them
    /// again.
    pub allocations_failed: u64,
    /// Negative acknowledgements sent.
    pub nacks_sent: u64,
}

/// One reader. See the module's documentation.
#[derive(Debug)]
pub struct ReaderCore {
    config: ReaderConfig,
    proxies: Vec<WriterProxy>,
    /// The proxy that was used last: samples come in runs.
    recent: usize,
    cache: Cache,
    assemblies: Assemblies,
    /// What to ask for now of the samples that are being put together; empty between calls.
    nack_frags: Vec<(SequenceNumber, FragmentNumberSet)>,
    liveliness: LivelinessChanges,
    counters: ReaderCounters,
    /// What [`ReaderCore::take_status_news`] has told of.
    told: u64,
    last_rejection: Option<(Rejection, Option<Key>)>,
    /// Reused for what one ACKNACK does not reach.
    more: Vec<SequenceNumberSet>,
    /// Reused for the samples that are being put together.
    partial: Vec<SequenceNumber>,
    strangers: Strangers,
    departed: DepartedWriters,
    /// Whether some proxy may have an answer to send.
    is_answer_due: bool,
    /// Whether a sample of some proxy may have found no room.
    has_refused: bool,
    /// Whether [`ReaderCore::next_timeout`] may be earlier than when [`ReaderCore::take_timeout`] was asked last.
    is_timeout_news: bool,
    /// How many samples the lists of all proxies have room for, or a little more.
    listed: usize,
}

impl ReaderCore {
    /// A reader without writers.
    pub fn new(config: ReaderConfig) -> Self {
        let cache = Cache::new(&config);
        Self {
            assemblies: Assemblies::new(config.reassembly.max_bytes),
            config,
            proxies: Vec::new(),
            recent: 0,
            cache,
            liveliness: LivelinessChanges::default(),
            counters: ReaderCounters::default(),
            told: 0,
            last_rejection: None,
            nack_frags: Vec::new(),
            more: Vec::new(),
            partial: Vec::new(),
            strangers: Strangers::default(),
            departed: DepartedWriters::default(),
            is_answer_due: false,
            has_refused: false,
            is_timeout_news: false,
            listed: 0,
        }
    }

    /// The reader's GUID.
    pub fn guid(&self) -> Guid {
        self.config.guid
    }

    /// Adds a writer. A writer that is matched already is replaced. One that was matched before is read on from where it
    /// was then: nothing of it is delivered twice.
    pub fn match_writer(&mut self, now: Time, writer: WriterProxyConfig) {
        self.unmatch_writer(now, writer.guid);
        if self.proxies.len() >= config::PROXIES_MAX {
            return;
        }
        let is_reliable = writer.reliable && self.config.reliability == Reliability::Reliable;
        self.liveliness.change(writer.guid, 1, 0);
        let departed = self.departed.recall(writer.guid);
        let mut proxy = WriterProxy::new(now, writer, is_reliable);
        if let Some(departed) = departed {
            proxy.resume(&departed);
        }
        self.proxies.push(proxy);
        self.is_answer_due |= is_reliable;
        self.is_timeout_news = true;
    }

    /// Forgets a writer. Its samples stay until they are taken; instances that nobody else writes have no
    /// writers any more.
    pub fn unmatch_writer(&mut self, _now: Time, guid: Guid) {
        if let Some(index) = self.proxies.iter().position(|proxy| proxy.guid == guid) {
            liveliness::forget(&self.proxies[index], &mut self.liveliness);
            self.depart(index);
            self.recent = 0;
            self.cache.writer_gone(guid);
            self.room_was_made();
        }
    }

    /// Tells that a matched writer keeps what it wrote before. Others send none of it to readers that do not want it,
    /// but Cyclone DDS announces it to everybody, and repairs it when it is asked to.
    ///
    /// So the first HEARTBEAT of such a writer does not say where the samples begin that are meant for a volatile
    /// reader. They begin with the first one that arrived, be it before the writer was matched here: the writer sends
    /// to this participant only once it knows the reader, and may know it first. (By multicast it may send for others,
    /// too: the reader then gets a little from before.) Without any, they begin behind the HEARTBEAT. What remains is a sample that was written before the first HEARTBEAT, and got lost on the way with
    /// every sample before it: nothing on the wire tells it from the history. (Readers of Cyclone DDS begin behind the
    /// first HEARTBEAT of anybody else's writer, whatever arrived.)
    pub fn note_history(&mut self, writer: Guid) {
        let proxy = self.proxies.iter_mut().find(|proxy| proxy.guid == writer);
        if let Some(proxy) = proxy.filter(|proxy| proxy.vendor == VendorId::CYCLONE) {
            proxy.skips_history = !self.config.wants_history;
            proxy.sent_from = self.strangers.forget(writer);
        }
    }

    /// Whether samples of writers that are not matched are to come here all the same: see
    /// [`ReaderCore::note_history`].
    #[must_use]
    pub fn heeds_strangers(&self) -> bool {
        self.config.reliability == Reliability::Reliable && !self.config.wants_history
    }

    /// Sends acknowledgements to other addresses from now on.
    pub fn move_writer(&mut self, guid: Guid, destinations: Destinations) {
        if let Some(proxy) = self.proxies.iter_mut().find(|proxy| proxy.guid == guid) {
            proxy.destinations = destinations;
        }
    }

    /// Asks a writer once more for a HEARTBEAT, if it has sent none: its participant was just heard. The questions that
    /// were asked at first may all have been lost on a link that carried nothing in that direction for a while.
    pub fn prompt_writer(&mut self, now: Time, guid: Guid) {
        let proxy = self.proxies.iter_mut().find(|proxy| proxy.guid == guid);
        self.is_answer_due |= proxy.is_some_and(|proxy| proxy.prompt(now));
    }

    /// GUIDs of the matched writers, in the order of matching.
    pub fn matched(&self) -> impl Iterator<Item = Guid> + '_ {
        self.proxies.iter().map(|proxy| proxy.guid)
    }

    /// Takes a sample from a writer. Whoever is not matched is counted and ignored.
    #[inline]
    pub fn handle_data(
        &mut self,
        now: Time,
        writer: Guid,
        data: &Data<'_>,
        source_timestamp: Option<Timestamp>,
    ) {
        self.handle_data_in(now, writer, data, source_timestamp, None);
    }

    /// [`ReaderCore::handle_data`] of a datagram that lies in a block: a large payload may stay there until it is
    /// taken, and is not copied. The block must not be changed as long as somebody else holds it.
    #[inline(never)]
    pub fn handle_data_in(
        &mut self,
        now: Time,
        writer: Guid,
        data: &Data<'_>,
        source_timestamp: Option<Timestamp>,
        block: Option<&Arc<Block>>,
    ) {
        self.handle_data_inline(now, &writer, data, source_timestamp, block);
    }

    /// [`ReaderCore::handle_data_in`] for the one place where all samples in a row come through. What is handed over in
    /// memory would be read there in other pieces than it was written in, which waits until it has left the core.
    #[inline(always)]
    pub fn handle_data_inline(
        &mut self,
        now: Time,
        writer: &Guid,
        data: &Data<'_>,
        source_timestamp: Option<Timestamp>,
        block: Option<&Arc<Block>>,
    ) {
        let Some(index) = self.find(*writer) else {
            self.note_stranger(*writer, data.sequence_number);
            return;
        };
        let Self { proxies, cache, counters, .. } = self;
        let Some(proxy) = proxies.get_mut(index) else { return };
        self.is_timeout_news |= liveliness::assert(proxy, now, &mut self.liveliness);
        let sn = data.sequence_number;
        match proxy.arrival(sn) {
            Arrival::Next { lost } => {
                counters.samples_lost = counters.samples_lost.saturating_add(lost);
                let sample = match sample(&self.config, data, source_timestamp) {
                    Ok(sample) => sample,
                    Err(Malformed) => {
                        counters.samples_malformed += 1;
                        proxy.accept(now, sn);
                        return;
                    }
                };
                if let Some(rejection) = cache.refusal(sample.key, sample.payload.len()) {
                    let key = sample.key;
                    self.reject(index, sn, rejection, key);
                    return;
                }
                proxy.accept(now, sn);
                counters.samples_received += 1;
                cache.push(*writer, sn, &sample, block);
                if proxy.has_held() {
                    self.deliver_held(index);
                }
            }
            Arrival::Ahead => {
                match sample(&self.config, data, source_timestamp) {
                    Ok(sample) if !cache.is_full_of_held(sample.payload.len()) => {
                        let held = cache.hold(&sample);
                        if !proxy.hold(now, sn, held, &mut self.listed) {
                            cache.drop_held(held);
                        }
                    }
                    Ok(_) => {}
                    Err(Malformed) => counters.samples_malformed += 1,
                }
                self.is_answer_due = true;
            }
            Arrival::Duplicate => {
                counters.samples_duplicate += 1;
                proxy.drop_duplicate();
            }
        }
    }

    /// Takes a HEARTBEAT (RTPS 2.5 §8.3.8.6): which samples there are, and whether an answer is wanted.
    pub fn handle_heartbeat(&mut self, now: Time, writer: Guid, heartbeat: &Heartbeat) {
        let Some(index) = self.find(writer) else {
            self.counters.unknown_writers += 1;
            return;
        };
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if liveliness::is_assertion(proxy, heartbeat) {
            self.is_timeout_news |= liveliness::assert(proxy, now, &mut self.liveliness);
        }
        if !proxy.is_reliable || !proxy.is_news(now, heartbeat.count) {
            return;
        }
        self.check_continuity(index, heartbeat);
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let lost = proxy.heartbeat(heartbeat, self.config.wants_history);
        self.counters.samples_lost = self.counters.samples_lost.saturating_add(lost);
        self.is_answer_due = true;
        self.deliver_held(index);
    }

    /// Takes a GAP (RTPS 2.5 §8.3.8.4): samples that will not come.
    pub fn handle_gap(&mut self, _now: Time, writer: Guid, gap: &Gap) {
        let Some(index) = self.find(writer) else {
            self.counters.unknown_writers += 1;
            return;
        };
        let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.is_reliable) else { return };
        proxy.gap(gap, &mut self.listed);
        self.is_answer_due = true;
        self.deliver_held(index);
    }

    /// Appends the acknowledgements that are due to `out`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, out: &mut Outbox) {
        if self.is_answer_due {
            self.answer_writers(now, out);
        }
        if self.cache.is_sparse() {
            self.lay_together();
        }
    }

    /// What is due: repeated requests for what is still missing, leases that ran out.
    pub fn handle_timeout(&mut self, now: Time) {
        self.expire_leases(now);
        for proxy in &mut self.proxies {
            self.is_answer_due |= proxy.handle_timeout(now);
        }
    }

    /// When [`ReaderCore::handle_timeout`] wants to be called next.
    pub fn next_timeout(&self) -> Option<Time> {
        self.proxies.iter().filter_map(WriterProxy::next_timeout).chain(self.next_lease()).min()
    }

    /// [`ReaderCore::next_timeout`], if it may have become earlier since this was asked last: who has a timer set for what
    /// was said then need not look at all writers again. What becomes later does not count.
    #[inline]
    pub fn take_timeout(&mut self) -> Option<Time> {
        if core::mem::take(&mut self.is_timeout_news) { self.next_timeout() } else { None }
    }

    /// Removes the oldest sample and shows it to `f`. `false` when there is none.
    #[inline]
    pub fn take_next(&mut self, f: impl FnOnce(RawSample<'_>)) -> bool {
        let is_taken = self.cache.take_next(f);
        if is_taken {
            self.room_was_made();
        }
        is_taken
    }

    /// Shows samples that `selection` names to `f`, oldest first, and removes them when `remove` is set; otherwise they
    /// are marked as read. Samples for which `f` returns `false` are of no use: they are removed, and do not count.
    /// Ends when `max` samples counted, and returns how many did.
    pub fn access(
        &mut self,
        max: usize,
        selection: SampleSelection,
        remove: bool,
        f: impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        let before = self.cache.len();
        let count = self.cache.access(max, selection, remove, f);
        if self.cache.len() < before {
            self.room_was_made();
        }
        count
    }

    /// The number of the instance with this key hash; `None` when there was never a sample of it, or it is over.
    /// Topics without a key have one instance, whose hash is all zeros.
    pub fn find_instance(&self, key_hash: [u8; 16]) -> Option<u32> {
        self.cache.find_instance(key_hash.into())
    }

    /// The first instance behind the one with key hash `after`, in an order of the reader's own, that has samples in
    /// these states. The instance that was found last may be over meanwhile, and still has its place.
    pub fn next_instance(&mut self, after: Option<[u8; 16]>, states: States) -> Option<u32> {
        self.cache.next_instance(after.map(Key::from), states)
    }

    /// The payload that holds the key of an instance, as far as it is known.
    pub fn instance_key(&self, instance: u32) -> Option<&[u8]> {
        self.cache.instance_key(instance)
    }

    /// Number of samples that wait to be taken, read ones included.
    #[inline]
    pub fn available(&self) -> usize {
        self.cache.len()
    }

    /// Whether some sample was not read yet.
    #[inline]
    pub fn has_unread(&self) -> bool {
        self.cache.has_unread()
    }

    /// What was counted.
    pub fn counters(&self) -> ReaderCounters {
        self.counters
    }

    /// Whether a status may have changed that a listener is told of, since this was asked last: liveliness, or the
    /// number of samples that were lost or rejected.
    #[inline]
    pub fn take_status_news(&mut self) -> bool {
        let counters = &self.counters;
        let told = [counters.samples_lost, counters.samples_rejected, counters.samples_refused];
        let told = told.into_iter().fold(0, u64::wrapping_add);
        core::mem::replace(&mut self.told, told) != told || self.has_liveliness_news()
    }

    /// Whether everything that the matched reliable writers announced has arrived.
    pub fn is_caught_up(&self) -> bool {
        self.proxies.iter().all(WriterProxy::is_caught_up)
    }

    /// Bytes of memory that samples take: those that wait, that are held back, or are put together, and the lists of
    /// those that are missing.
    pub fn memory(&self) -> usize {
        let lists: usize = self.proxies.iter().map(WriterProxy::memory).sum();
        self.cache.memory() + self.assemblies.memory() + lists + self.departed.memory()
    }

    #[inline]
    fn find(&mut self, writer: Guid) -> Option<usize> {
        if self.proxies.get(self.recent).is_some_and(|proxy| proxy.guid == writer) {
            return Some(self.recent);
        }
        let index = self.proxies.iter().position(|proxy| proxy.guid == writer)?;
        self.recent = index;
        Some(index)
    }

    #[cold]
    fn note_stranger(&mut self, writer: Guid, sn: SequenceNumber) {
        self.counters.unknown_writers += 1;
        if self.heeds_strangers() {
            self.strangers.note(writer, sn);
        }
    }

    /// Moves samples that hold up much memory for little.
    #[cold]
    fn lay_together(&mut self) {
        self.cache.lay_together();
        for held in self.proxies.iter_mut().flat_map(WriterProxy::held_mut) {
            self.cache.move_held(held);
        }
    }

    #[inline(never)]
    fn answer_writers(&mut self, now: Time, out: &mut Outbox) {
        self.is_answer_due = false;
        // Whatever asks again when nothing comes is set here.
        self.is_timeout_news = true;
        let listed = self.proxies.iter().map(WriterProxy::listed).sum();
        self.listed = listed;
        if listed > config::REORDER_SHARED_SAMPLES {
            self.proxies.iter_mut().for_each(WriterProxy::shrink);
        }
        for index in 0..self.proxies.len() {
            if !self.proxies[index].is_reliable {
                continue;
            }
            self.ask_for_fragments(now, index, out);
            let proxy = &mut self.proxies[index];
            let room = self.cache.room();
            let answer = proxy.answer(now, room, &self.partial, &mut self.listed, &mut self.more);
            self.is_answer_due |= proxy.is_deferred();
            let Some(answer) = answer else { continue };
            self.counters.nacks_sent += u64::from(!answer.state.is_empty() || !self.more.is_empty());
            let acknack = AckNack {
                reader: self.config.guid.entity,
                writer: proxy.guid.entity,
                state: answer.state,
                count: answer.count,
                is_final: answer.is_final,
            };
            let header = header(&self.config);
            let destination = InfoDestination { prefix: proxy.guid.prefix };
            out.message(&proxy.destinations, |message| {
                push(message, &header);
                push(message, &destination);
                push(message, &acknack);
                for state in &self.more {
                    push(message, &AckNack { state: *state, ..acknack });
                }
            });
        }
    }
}

/// The header of every message of a reader.
fn header(config: &ReaderConfig) -> Header {
    Header { version: ProtocolVersion::V2_5, vendor: config.vendor, prefix: config.guid.prefix }
}

#[cfg(test)]
mod tests;
