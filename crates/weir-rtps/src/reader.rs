//! The reader as a state machine: matched writers, reordering, acknowledgements, and the samples
//! that wait for the application (RTPS 2.5, 8.4.10 to 8.4.12).
//!
//! Samples of one writer are delivered in order and once. A reliable reader requests missing
//! samples as soon as it sees a gap, without waiting for a HEARTBEAT. [`ReaderCore::poll_transmit`]
//! returns the answers, once per batch of datagrams rather than per sample.
//!
//! A sample passes through `matched` (which writer), `changes` (which position), `sample` (which
//! instance) and `delivery` into the `cache`. Fragments are assembled in `fragments` first. Samples of
//! coherent sets wait in `coherence` before they enter the cache.

mod answers;
mod assemblies;
mod assembly;
mod by_policies;
mod cache;
mod changes;
mod chunks;
mod coherence;
mod config;
mod counters;
mod counts;
mod deferred;
mod delivery;
mod digests;
mod ecn;
mod enforced;
mod entries;
mod expiring;
mod fragments;
mod group_numbers;
pub mod groups;
mod history_start;
mod index_set;
mod instances;
mod leaps;
mod leaving;
mod limits;
mod liveliness;
mod matched;
mod plain;
mod queries;
mod query;
mod raw_sample;
mod receipts;
mod refused;
mod registrations;
mod rejection;
mod requests;
mod ring;
mod round_trip;
mod sample;
mod sample_memory;
mod sets;
mod size;
mod states;
mod stored;
mod timeouts;
mod unmatched;
mod writer_memory;
mod writer_proxy;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use weir_wire::{
    Data, DataFrag, Gap, Guid, Heartbeat, Payload, SequenceNumber, SequenceNumberSet, Timestamp, VendorId,
};

use crate::block::Block;
use crate::config::{DEPARTED_WRITERS_MAX, GAP_VISITS_MAX, PROXIES_MAX, UNMATCHED_WRITERS_MAX};
use crate::due::Due;
use crate::key_hasher::Key;
use crate::outbox::Destinations;
use crate::qos::{Reliability, XCDR1};
use crate::time::Time;
use cache::Cache;
use coherence::{Coherence, Sorted};
use delivery::Delivery;
use fragments::Fragments;
use matched::{MatchedWriters, assert_alive, assert_by_sample, find_other, is_assertion};
use sample::{Malformed, NoSample};
use writer_memory::WriterMemory;
use writer_proxy::{Arrival, Author, Position, ProxyMemory, WriterProxy};

pub use crate::instance_deadlines::DeadlineMissedStatus;
pub use config::{HashOfKey, KeyOf, KeyOfHash, KeyPayloadOf, ReaderConfig, ReassemblyLimits};
pub use counters::ReaderCounters;
pub use enforced::WriterPolicies;
pub use query::{PayloadOrder, SampleQuery};
pub use raw_sample::{RawSample, SampleSelection};
pub use rejection::Rejection;
pub use size::ReaderSize;
pub use states::{InstanceState, States};
pub use writer_proxy::WriterProxyConfig;

/// One reader. See the module's documentation.
#[derive(Debug)]
pub struct ReaderCore {
    config: ReaderConfig,
    writers: MatchedWriters,
    delivery: Delivery,
    fragments: Fragments,
    /// The lowest sequence number received from each unmatched writer.
    unmatched: WriterMemory<SequenceNumber, UNMATCHED_WRITERS_MAX>,
    /// Writers that sent something before they were matched. A few: what is forgotten arrives later.
    early_writers: WriterMemory<(), UNMATCHED_WRITERS_MAX>,
    /// Where the reader stopped in the samples of each writer that was unmatched. A writer whose
    /// lease expired because its packets were lost is matched again later under the same GUID,
    /// which names one writer for ever (RTPS 2.5, 8.2.4.2). Without this record the reader would
    /// start over and deliver everything that the writer still keeps a second time.
    departed: WriterMemory<Position, DEPARTED_WRITERS_MAX>,
    /// The counters that [`ReaderCore::take_status_news`] has reported, summed.
    reported: u64,
    /// Sets that one ACKNACK cannot hold. Empty between calls.
    more: Vec<SequenceNumberSet>,
    /// Reserved memory of writers that are not matched now.
    spare: Vec<ProxyMemory>,
    /// Writers that may be owed an answer.
    due: Due,
    /// What is to be done after an access: a set of [`ReaderCore::REQUEST`] and `WATCHED`.
    errands: u8,
    /// Counts what may have made [`ReaderCore::next_timeout`] earlier.
    timers_set: u32,
    /// `timers_set` when [`ReaderCore::take_timeout`] was last called.
    timers_taken: u32,
    /// What [`ReaderCore::next_timeout`] found last, and `timers_set` at that time.
    known_timeout: Cell<(u32, Option<Time>)>,
    /// A timeout, or an access that made room, delivered values since that was last asked.
    has_late_values: bool,
    /// Samples have expired or were purged since that was last asked.
    has_removed: bool,
    /// Capacity of all writers' lists of samples, in samples. May be more, while it is less than half of what they
    /// share.
    listed: usize,
    /// Listed samples that GAPs may visit until the reader answers its writers.
    gap_visits: usize,
    /// The reader may have given up asking some writer for a HEARTBEAT.
    has_given_up: bool,
}

impl ReaderCore {
    /// A reader without writers.
    pub fn new(config: ReaderConfig) -> Self {
        let config = config.within_limits();
        let size = ReaderSize::of(&config);
        Self {
            writers: MatchedWriters::with_room(size.map_or(0, |size| size.matches)),
            delivery: Delivery::new(&config, size.as_ref()),
            fragments: Fragments::new(&config, size.as_ref()),
            unmatched: size
                .map_or_else(WriterMemory::default, |_| WriterMemory::fixed(UNMATCHED_WRITERS_MAX)),
            early_writers: size
                .map_or_else(WriterMemory::default, |_| WriterMemory::fixed(UNMATCHED_WRITERS_MAX)),
            departed: size.map_or_else(WriterMemory::default, |size| WriterMemory::fixed(size.departed())),
            reported: 0,
            more: Vec::with_capacity(size.map_or(0, |size| size.sets())),
            spare: size.map(|size| size.memories()).unwrap_or_default(),
            due: Due::default(),
            errands: 0,
            timers_set: 0,
            timers_taken: 0,
            known_timeout: Cell::new((0, None)),
            has_late_values: false,
            has_removed: false,
            listed: 0,
            gap_visits: GAP_VISITS_MAX,
            has_given_up: false,
            config,
        }
    }

    /// The GUID of the reader.
    pub fn guid(&self) -> Guid {
        self.config.guid
    }

    /// Adds a writer, or replaces it if it is matched already. A writer that was matched before is
    /// resumed where the reader stopped: nothing is delivered twice.
    pub fn match_writer(&mut self, now: Time, writer: WriterProxyConfig) {
        self.unmatch_writer(now, writer.guid);
        let max = self.config.limits.map_or(PROXIES_MAX, |limits| limits.matches);
        if self.writers.list.len() >= max.min(PROXIES_MAX) {
            return;
        }
        let is_reliable = writer.reliable && self.config.reliability == Reliability::Reliable;
        let departed = self.departed.remove(writer.guid);
        let mut proxy = WriterProxy::new(now, writer, is_reliable);
        proxy.changes.limit_to(self.config.max_bytes);
        if let (Some(limits), Some(memory)) = (self.config.limits, self.spare.pop()) {
            proxy.use_memory(memory, limits.early_samples);
        }
        departed.into_iter().for_each(|position| proxy.resume(position));
        if self.delivery.cache.instances.registrations.is_leaving(proxy.guid) {
            proxy.lease.set_returning();
        }
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            enforced.remember_writer(proxy.guid);
            let (guid, is_weir, position) = (proxy.guid, proxy.is_weir(), proxy.changes.expected);
            let add = |coherence: &mut Coherence, out: &mut Sorted| {
                coherence.add_writer(guid, (is_reliable, is_weir), position, out);
            };
            self.delivery.cache.with_coherence(now, |_| true, add);
            self.delivery.cache.enforced.iter_mut().for_each(|enforced| enforced.begin_writer(guid));
        }
        self.due.add_if(self.writers.list.len(), is_reliable);
        // What is due at once is among the answers that are due.
        let at = proxy.next_timeout().filter(|at| *at > now);
        self.writers.add(proxy);
        self.timer_set(at);
    }

    /// Removes a writer. Its samples stay until they are taken. Instances that no other writer
    /// writes become NOT_ALIVE_NO_WRITERS.
    pub fn unmatch_writer(&mut self, now: Time, guid: Guid) {
        let Some(mut proxy) = self.writers.remove(guid) else { return };
        // The indices behind it have changed.
        self.due.add_all();
        // Its timers are gone.
        self.timers_set = self.timers_set.wrapping_add(1);
        drop_incomplete(&mut proxy, &mut self.fragments, &mut self.delivery.cache);
        if self.config.remembers_writers
            && let Some(position) = proxy.position()
        {
            self.delivery.counters.writers_forgotten += u64::from(self.departed.add(guid, position));
        }
        self.delivery.refused.remove(guid);
        self.spare.extend(proxy.into_memory());
        if self.delivery.cache.enforced.is_some() {
            self.delivery.cache.mark_last_in_sets(guid, core::iter::empty());
            let forget = |coherence: &mut Coherence, out: &mut Sorted| coherence.forget_writer(guid, out);
            self.delivery.cache.with_coherence(now, |_| false, forget);
        }
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            enforced.advance(now);
        }
        self.writer_gone(now, guid);
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            enforced.forget_writer(guid);
        }
        self.end_left(now);
    }

    /// Declares that a matched writer keeps samples from before the match.
    ///
    /// Most writers send none of them to a volatile reader. Cyclone DDS announces them to all
    /// readers, and repairs them on request. The first HEARTBEAT of its writer therefore does not
    /// say where the samples begin that are meant for such a reader. They begin with the first
    /// sample to arrive, even before the match: the writer sends to this participant only once it
    /// knows the reader, and may know it first. (A multicast sample may be meant for other readers.
    /// The reader then receives a few samples from before the match.) If none has arrived, they
    /// begin behind the HEARTBEAT.
    ///
    /// One case cannot be distinguished from history: a sample written before the first HEARTBEAT
    /// and lost, with every sample before it. (Readers of Cyclone DDS begin behind the first
    /// HEARTBEAT of any other engine's writer, whatever has arrived.)
    pub fn note_history(&mut self, writer: Guid) {
        let proxy = self.writers.get_mut(writer).filter(|proxy| proxy.vendor == VendorId::CYCLONE);
        if let Some(proxy) = proxy {
            proxy.start.set_history(!self.config.wants_history, self.unmatched.remove(writer));
        }
    }

    /// Declares that a matched writer is on another host, so that requests to it may be lost. If it is Weir's, they
    /// are repeated before they can be answered, and say which HEARTBEAT was received before: such a writer sends again
    /// only what has not arrived.
    pub fn note_elsewhere(&mut self, writer: Guid) {
        if let Some(proxy) = self.writers.get_mut(writer).filter(|proxy| proxy.is_weir()) {
            proxy.requests.is_repeating = true;
        }
    }

    /// Declares in which form a matched writer sends key hashes: see [`ReaderConfig::key_of_hash`].
    pub fn note_representation(&mut self, writer: Guid, representation: i16) {
        if let Some(proxy) = self.writers.get_mut(writer) {
            proxy.has_xcdr1_hashes = representation == XCDR1;
        }
    }

    /// Whether the reader wants samples of unmatched writers, see [`ReaderCore::note_history`].
    #[must_use]
    pub fn wants_unmatched(&self) -> bool {
        self.config.reliability == Reliability::Reliable && !self.config.wants_history
    }

    /// Whether the reader is matched with this writer.
    pub(crate) fn is_matched(&mut self, writer: Guid) -> bool {
        self.writers.find(writer).is_some()
    }

    /// Changes the addresses that acknowledgements are sent to.
    pub fn move_writer(&mut self, guid: Guid, destinations: Destinations) {
        if let Some(proxy) = self.writers.get_mut(guid) {
            proxy.destinations = destinations;
        }
    }

    /// Asks a writer once more for its first HEARTBEAT, if none has arrived. Called when its
    /// participant announces itself: all earlier requests may have been lost on a link that was
    /// down in one direction.
    pub fn prompt_writer(&mut self, now: Time, guid: Guid) {
        if !self.has_given_up {
            return;
        }
        let Some(index) = self.writers.find(guid) else { return };
        self.due.add_if(index, self.writers.list[index].prompt(now));
    }

    /// Returns the memory of samples of a writer that waited for earlier ones, and of requests for those, if nothing
    /// waits any more. The writer is not expected to write as much at once again.
    pub fn release_room(&mut self, guid: Guid) {
        if let Some(index) = self.writers.find(guid) {
            let proxy = &mut self.writers.list[index];
            proxy.changes.release_room(&mut self.listed);
            proxy.release_requests();
        }
    }

    /// GUIDs of the matched writers, in the order of matching.
    pub fn matched(&self) -> impl Iterator<Item = Guid> + '_ {
        self.writers.list.iter().map(|proxy| proxy.guid)
    }

    /// Handles a sample (RTPS 2.5, 8.3.8.2). A sample from an unmatched writer is counted and
    /// ignored.
    ///
    /// `block`: the memory that the datagram lies in. A large payload may stay there, without a
    /// copy, until it is taken. The block must not be modified while it is shared.
    ///
    /// Always inlined: passing the sample through memory, to be read in other units than it was
    /// written in, causes a store-forwarding stall.
    #[inline(always)]
    pub fn handle_data(
        &mut self,
        now: Time,
        writer: &Guid,
        data: &Data<'_>,
        source_timestamp: Option<Timestamp>,
        block: Option<&Arc<Block>>,
    ) {
        if self.delivery.cache.enforced.is_some() {
            let value = match data.payload {
                Payload::Data(value) if data.inline_qos.is_none() => Some(value),
                _ => None,
            };
            if !value.is_some_and(|value| self.is_plain(now, value)) {
                return self.handle_data_by_policies(now, *writer, *data, source_timestamp, block);
            }
        }
        self.handle_data_as::<false>(now, writer, data, source_timestamp, block);
    }

    /// [`ReaderCore::handle_data`] if policies decide which samples are delivered. Out of line, and with copies of its
    /// arguments, so that those of the other path stay in registers.
    #[cold]
    #[inline(never)]
    fn handle_data_by_policies(
        &mut self,
        now: Time,
        writer: Guid,
        data: Data<'_>,
        source_timestamp: Option<Timestamp>,
        block: Option<&Arc<Block>>,
    ) {
        self.expire_late_leases(now, writer);
        if let Some(list) = &data.inline_qos {
            let is_end = data.payload == Payload::None;
            self.note_tag(writer, data.sequence_number, list, is_end);
        }
        self.handle_data_as::<true>(now, &writer, &data, source_timestamp, block);
        self.end_sets(now, writer);
    }

    #[inline(always)]
    fn handle_data_as<const BY_POLICIES: bool>(
        &mut self,
        now: Time,
        writer: &Guid,
        data: &Data<'_>,
        source_timestamp: Option<Timestamp>,
        block: Option<&Arc<Block>>,
    ) {
        let MatchedWriters { list, places, recent, liveliness, .. } = &mut self.writers;
        let proxy = match list.get_mut(*recent) {
            Some(proxy) if proxy.guid == *writer => proxy,
            _ => match find_other((list, places), recent, *writer) {
                Some(proxy) => proxy,
                None => return self.record_unmatched(*writer, data.sequence_number),
            },
        };
        let (delivery, sn) = (&mut self.delivery, data.sequence_number);
        if assert_by_sample(proxy, now, liveliness) {
            self.timers_set = self.timers_set.wrapping_add(1);
            delivery.note_return(now, &self.config, proxy, data);
        }
        match proxy.arrival(sn) {
            Arrival::Next { lost } => {
                delivery.count_skipped(proxy, lost);
                let sample = match delivery.sample(&self.config, proxy, data, source_timestamp) {
                    Ok(sample)
                        if BY_POLICIES
                            && delivery.cache.leaves_out(&sample, data.inline_qos.as_ref(), true) =>
                    {
                        return delivery.leave_out(now, proxy, sn);
                    }
                    Ok(sample) => sample,
                    Err(Malformed) => {
                        return delivery.pass_over(now, proxy, sn, (data.payload, data.inline_qos));
                    }
                };
                if let Some(rejection) = delivery.cache.refusal(sample.key, sample.payload.len())
                    && delivery.cache.refuses(sample.kind, sample.key, sample.payload.len())
                {
                    return delivery.reject(now, proxy, (sn, sample.payload.len()), (rejection, sample.key));
                }
                proxy.accept(now, sn);
                delivery.counters.samples_received += 1;
                delivery.cache.push::<BY_POLICIES>(now, *writer, sn, &sample, block);
                if !proxy.changes.list.is_empty() {
                    delivery.deliver_held(now, proxy);
                }
            }
            Arrival::Ahead => {
                match delivery.sample(&self.config, proxy, data, source_timestamp) {
                    Ok(sample)
                        if BY_POLICIES
                            && delivery.cache.leaves_out(&sample, data.inline_qos.as_ref(), false) =>
                    {
                        proxy.skip(self.config.guid.entity, sn, &mut self.listed);
                    }
                    Ok(sample) if !delivery.cache.is_full_of_held(sample.payload.len()) => {
                        let stored = delivery.cache.hold(&sample);
                        if !proxy.hold(now, sn, stored, &mut self.listed) {
                            delivery.counters.samples_too_early += 1;
                            delivery.cache.drop_held(stored);
                        }
                    }
                    Ok(_) => delivery.counters.samples_too_early += 1,
                    Err(Malformed) => {
                        let what = NoSample::of(data.payload, data.inline_qos);
                        delivery.count_unusable(what);
                        if what == NoSample::EndOfSet {
                            proxy.skip(self.config.guid.entity, sn, &mut self.listed);
                        }
                    }
                }
                self.due.add(*recent);
            }
            Arrival::Duplicate => {
                delivery.note_duplicate(now, proxy, sn);
            }
        }
    }

    /// Handles a fragment (RTPS 2.5, 8.3.8.3). The last one to arrive completes the sample.
    pub fn handle_data_frag(
        &mut self,
        now: Time,
        writer: Guid,
        frag: &DataFrag<'_>,
        source_timestamp: Option<Timestamp>,
    ) {
        self.expire_late_leases(now, writer);
        let Some(index) = self.writers.find(writer) else {
            self.record_unmatched(writer, frag.sequence_number);
            return;
        };
        if let Some(list) = frag.inline_qos.as_ref().filter(|_| self.delivery.cache.enforced.is_some()) {
            self.note_tag(writer, frag.sequence_number, list, false);
        }
        let Self { config, writers, delivery, fragments, listed, .. } = self;
        let (sn, proxy) = (frag.sequence_number, &mut writers.list[index]);
        self.timers_set =
            self.timers_set.wrapping_add(u32::from(assert_alive(proxy, now, &mut writers.liveliness)));
        match proxy.arrival(sn) {
            Arrival::Duplicate => {
                return delivery.note_duplicate(now, proxy, sn);
            }
            Arrival::Ahead if !proxy.changes.is_within_reach(sn, *listed) => {
                delivery.counters.fragments_refused += 1;
                return;
            }
            Arrival::Next { .. } if !proxy.is_reliable => {
                // A best-effort writer does not complete earlier samples.
                fragments.assemblies.drop_before(writer, sn, &mut delivery.cache.chunks);
            }
            _ => {}
        }
        if frag.sample_size as usize > config.reassembly.sample_max_bytes {
            return self.skip_oversized(now, index, sn);
        }
        proxy.note_fragment();
        let Delivery { cache, counters, .. } = delivery;
        let reveals_missing = fragments.add(now, proxy, frag, source_timestamp, &mut cache.chunks, counters);
        self.due.add_if(index, reveals_missing && proxy.is_reliable);
        if let Some(whole) = fragments.assemblies.take_complete(writer, sn) {
            proxy.note_not_whole(1);
            self.due.add_if(index, delivery.deliver_whole(config, now, proxy, whole, listed));
            self.end_sets_by_policies(now, writer);
        }
    }

    /// Skips a sample that exceeds the limits on reassembly: requesting it would not help, and
    /// later samples must not wait for it.
    #[cold]
    fn skip_oversized(&mut self, now: Time, index: usize, sn: SequenceNumber) {
        let proxy = &mut self.writers.list[index];
        if !proxy.is_reliable {
            self.delivery.counters.fragments_refused += 1;
            return;
        }
        self.delivery.counters.samples_oversized += 1;
        self.delivery.count_lost(1);
        proxy.skip(self.config.guid.entity, sn, &mut self.listed);
        self.due.add(index);
        self.delivery.note_lost_ahead(now, proxy.author(), sn);
        self.deliver_held_of(now, index);
    }

    /// Handles a HEARTBEAT (RTPS 2.5, 8.3.8.6): which samples are available, and whether to answer.
    pub fn handle_heartbeat(&mut self, now: Time, writer: Guid, heartbeat: &Heartbeat) {
        self.expire_late_leases(now, writer);
        let Some(index) = self.find(writer) else { return };
        let proxy = &mut self.writers.list[index];
        if is_assertion(proxy, heartbeat) {
            self.timers_set = self.timers_set.wrapping_add(u32::from(assert_alive(
                proxy,
                now,
                &mut self.writers.liveliness,
            )));
        }
        if !proxy.is_reliable || !proxy.counts.is_new_heartbeat(now, heartbeat.count) {
            return;
        }
        if let Some(first) = proxy.changes.refuted_leap(now, heartbeat.last) {
            self.take_back_leap(now, index, first);
        } else if proxy.has_restarted(now, heartbeat) {
            self.restart_writer(now, index);
        }
        let Some(proxy) = self.writers.list.get_mut(index) else { return };
        let known_from = proxy.changes.expected.max(proxy.changes.floor);
        let lost = proxy.heartbeat(now, heartbeat, self.config.wants_history);
        self.delivery.count_lost(lost);
        if lost > 0 {
            self.delivery.note_lost_between(now, proxy, known_from);
        }
        if self.delivery.refused.is_any() {
            self.retry_instance(index);
        }
        self.due.add(index);
        self.deliver_held_of(now, index);
    }

    /// Handles a GAP (RTPS 2.5, 8.3.8.4): samples that will not be sent.
    pub fn handle_gap(&mut self, now: Time, writer: Guid, gap: &Gap) {
        self.expire_late_leases(now, writer);
        let Some(index) = self.find(writer) else { return };
        let Some(proxy) = self.writers.list.get_mut(index) else { return };
        if !proxy.is_reliable {
            return proxy.pass_gap(gap);
        }
        if !proxy.changes.gap(gap, &mut self.listed, &mut self.gap_visits) {
            self.delivery.counters.gaps_dropped += 1;
        }
        self.due.add(index);
        self.deliver_held_of(now, index);
    }

    /// Delivers the samples of a writer that were held back, as far as they are next.
    fn deliver_held_of(&mut self, now: Time, index: usize) {
        let proxy = &mut self.writers.list[index];
        let Author { guid, is_alive, .. } = proxy.author();
        self.delivery.deliver_held(now, proxy);
        self.end_sets_by_policies(now, guid);
        if !is_alive {
            self.drop_late_set(now, guid);
            self.end_late(now);
        }
    }

    /// Removes the oldest sample and passes it to `f`. Returns `false` if there is none.
    #[inline]
    pub fn take_next(&mut self, f: impl FnOnce(RawSample<'_>)) -> bool {
        let is_taken = self.delivery.cache.take_next(f);
        if is_taken {
            self.room_was_made();
        }
        is_taken
    }

    /// Passes the samples that `selection` names to `f`, oldest first, then removes them (`remove`)
    /// or marks them as read. A sample for which `f` returns `false` is removed and does not count.
    /// Returns the number of samples that count, at most `max`.
    pub fn access(
        &mut self,
        max: usize,
        selection: SampleSelection,
        remove: bool,
        f: impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        let before = self.available();
        let count = self.delivery.cache.access(max, selection, remove, f);
        if self.available() < before {
            self.room_was_made();
        }
        count
    }

    /// The number of the instance with this key hash. `None`: it never had a sample, or has ended.
    /// Topics without a key have one instance, whose hash is all zeros.
    pub fn find_instance(&self, key_hash: [u8; 16]) -> Option<u32> {
        self.delivery.cache.instances.find(key_hash.into())
    }

    /// The first instance behind the one with key hash `after` that has samples in these states.
    /// The order is the reader's own. `after` may have ended since it was returned by this method.
    pub fn next_instance(&mut self, after: Option<[u8; 16]>, states: States) -> Option<u32> {
        self.delivery.cache.next_instance(after.map(Key::from), states)
    }

    /// The key hash of an instance that the reader has.
    pub fn instance_hash(&self, instance: u32) -> [u8; 16] {
        self.delivery.cache.instances.get(instance).key.to_bytes()
    }

    /// The payload that holds the key of an instance, if it is known.
    pub fn instance_key(&self, instance: u32) -> Option<&[u8]> {
        self.delivery.cache.instance_key(instance)
    }

    /// Number of samples in the cache, read ones included.
    #[inline]
    pub fn available(&self) -> usize {
        self.delivery.cache.len()
    }

    /// Whether some sample was not read yet.
    #[inline]
    pub fn has_unread(&self) -> bool {
        self.delivery.cache.entries.unread > 0
    }

    /// The counters.
    pub fn counters(&self) -> ReaderCounters {
        let counts =
            self.delivery.cache.enforced.as_ref().map(|enforced| enforced.counts).unwrap_or_default();
        let coherence =
            self.delivery.cache.enforced.as_ref().and_then(|enforced| enforced.coherence.as_ref());
        ReaderCounters {
            instances_left: self.delivery.cache.left,
            chunks_beyond_limits: self.delivery.cache.chunks.beyond(),
            coherent_sets_dropped: coherence.map_or(0, |coherence| coherence.dropped),
            samples_expired: counts.expired,
            samples_not_owned: counts.not_owned,
            samples_out_of_order: counts.out_of_order,
            samples_filtered: counts.filtered,
            samples_content_filtered: counts.content_filtered,
            samples_purged: counts.purged,
            ..self.delivery.counters
        }
    }

    /// Why the last rejected or refused sample had no room, and the key hash of its instance.
    pub fn last_rejection(&self) -> Option<(Rejection, Option<[u8; 16]>)> {
        self.delivery.last_rejection.map(|(rejection, key)| (rejection, key.map(Key::to_bytes)))
    }

    /// Whether a status for listeners may have changed since the last call: liveliness, or the
    /// number of lost or rejected samples.
    #[inline]
    pub fn take_status_news(&mut self) -> bool {
        let counters = &self.delivery.counters;
        let counted = [counters.samples_lost, counters.samples_rejected, counters.samples_refused];
        let counted = counted.into_iter().fold(0, u64::wrapping_add);
        core::mem::replace(&mut self.reported, counted) != counted || self.has_liveliness_news()
    }

    /// Whether everything that the reliable writers announced has arrived.
    pub fn is_caught_up(&self) -> bool {
        self.writers.list.iter().all(WriterProxy::has_history)
    }

    /// Memory in bytes: samples in the cache, held back or incomplete, and the lists of missing
    /// samples.
    pub fn memory(&self) -> usize {
        self.delivery.cache.memory()
            + self.fragments.assemblies.memory()
            + self.writers.memory()
            + self.delivery.refused.memory()
            + self.departed.memory()
    }

    /// The index of a matched writer. Counts the submessage of any other.
    #[inline]
    fn find(&mut self, writer: Guid) -> Option<usize> {
        let index = self.writers.find(writer);
        if index.is_none() {
            self.note_unmatched(writer);
        }
        index
    }

    /// Copies small payloads together that each hold up a whole chunk.
    #[cold]
    fn compact(&mut self) {
        let cache = &mut self.delivery.cache;
        cache.compact();
        for stored in self.writers.list.iter_mut().flat_map(|proxy| proxy.changes.held_mut()) {
            cache.chunks.relocate(&mut stored.at);
        }
        cache.compact_sets();
    }
}

/// Drops the samples of a writer that are held back or incomplete.
fn drop_incomplete(proxy: &mut WriterProxy, fragments: &mut Fragments, cache: &mut Cache) {
    fragments.assemblies.retain(proxy.guid, &mut cache.chunks, |_| false);
    proxy.changes.take_held().for_each(|stored| cache.drop_held(stored));
    proxy.changes.free_list();
}

#[cfg(test)]
mod tests;
