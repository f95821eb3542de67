//! Delivery into the cache: in order, as far as there is room.

use weir_wire::{ParameterList, Payload, SequenceNumber};

use super::assembly::Assembly;
use super::cache::Cache;
use super::coherence::{Coherence, Sorted};
use super::config::ReaderConfig;
use super::counters::ReaderCounters;
use super::refused::RefusedWriters;
use super::rejection::Rejection;
use super::sample::{NoSample, Sample, sample_of};
use super::size::ReaderSize;
use super::writer_proxy::{Arrival, Author, WriterProxy};
use crate::key_hasher::Key;
use crate::time::Time;

/// The cache, and the samples that it refused.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) cache: Cache,
    pub(super) counters: ReaderCounters,
    /// The reason and the instance of the last rejection.
    pub(super) last_rejection: Option<(Rejection, Option<Key>)>,
    /// The writers of which a sample was refused.
    pub(super) refused: RefusedWriters,
}

impl Delivery {
    pub(super) fn new(config: &ReaderConfig, size: Option<&ReaderSize>) -> Self {
        Self {
            cache: Cache::new(config, size),
            counters: ReaderCounters::default(),
            last_rejection: None,
            refused: size.map_or_else(RefusedWriters::default, |size| RefusedWriters::fixed(size.matches)),
        }
    }

    /// Counts lost samples.
    #[inline]
    pub(super) fn count_lost(&mut self, lost: u64) {
        if lost > 0 {
            self.counters.samples_lost = self.counters.samples_lost.saturating_add(lost);
        }
    }

    /// Counts the samples of a writer that were lost before one that has arrived.
    #[inline]
    pub(super) fn count_skipped(&mut self, proxy: &mut WriterProxy, lost: u64) {
        if lost > 0 {
            self.count_lost(lost);
            proxy.note_not_whole(lost);
        }
    }

    /// Counts a submessage that is no sample. The end of an instance that is not known changes nothing, and counts as
    /// nothing, as where the key is known.
    #[cold]
    pub(super) fn count_unusable(&mut self, what: NoSample) {
        self.counters.coherent_sets_ended += u64::from(what == NoSample::EndOfSet);
        self.counters.samples_malformed += u64::from(what == NoSample::Malformed);
    }

    /// Moves past a sample that is left out, and delivers what was held back behind it.
    #[cold]
    pub(super) fn leave_out(&mut self, now: Time, proxy: &mut WriterProxy, sn: SequenceNumber) {
        proxy.accept(now, sn);
        self.deliver_held(now, proxy);
    }

    /// Moves past a submessage that is no sample, and delivers what was held back behind it.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_over(
        &mut self,
        now: Time,
        proxy: &mut WriterProxy,
        sn: SequenceNumber,
        (payload, list): (Payload<'_>, Option<ParameterList<'_>>),
    ) {
        let what = NoSample::of(payload, list);
        self.count_unusable(what);
        proxy.accept(now, sn);
        if what == NoSample::Malformed {
            self.note_lost(now, proxy.author(), sn.next());
        }
        self.deliver_held(now, proxy);
    }

    /// Records that samples before `to` are lost, for the sets that they belong to.
    #[cold]
    #[inline(never)]
    pub(super) fn note_lost(&mut self, now: Time, author: Author, to: SequenceNumber) {
        self.change_sets(now, author, |coherence, out| coherence.lost(author.guid, to, out));
    }

    /// Records that samples which the writer no longer has will not arrive, for the sets that they belong to.
    /// Those before `from` are known. What has arrived between them may be in sets that are whole.
    #[cold]
    pub(super) fn note_lost_between(&mut self, now: Time, proxy: &WriterProxy, from: SequenceNumber) {
        let (author, changes) = (proxy.author(), &proxy.changes);
        let held = changes.first_held();
        self.change_sets(now, author, |coherence, out| {
            for last in changes.ends_of_missing(from, changes.floor) {
                if held.is_some_and(|held| held < last) {
                    coherence.lost_ahead(author.guid, last, out);
                } else {
                    coherence.lost(author.guid, last.next(), out);
                }
            }
        });
    }

    /// Records that a sample will not arrive, which may be ahead, for the set that it belongs to.
    #[cold]
    pub(super) fn note_lost_ahead(&mut self, now: Time, author: Author, sn: SequenceNumber) {
        self.change_sets(now, author, |coherence, out| coherence.lost_ahead(author.guid, sn, out));
    }

    /// Restarts the sets of a writer that is read from `first` on.
    #[cold]
    pub(super) fn restart_sets(&mut self, now: Time, author: Author, first: SequenceNumber) {
        self.change_sets(now, author, |coherence, out| coherence.restart_writer(author.guid, first, out));
    }

    fn change_sets(&mut self, now: Time, author: Author, change: impl FnOnce(&mut Coherence, &mut Sorted)) {
        if self.cache.enforced.is_some() {
            self.cache.with_coherence(now, |_| author.is_alive, change);
        }
    }

    /// Counts a sample that [`WriterProxy::arrival`] called a duplicate.
    #[cold]
    pub(super) fn note_duplicate(&mut self, now: Time, proxy: &mut WriterProxy, sn: SequenceNumber) {
        self.counters.samples_duplicate += 1;
        if proxy.note_duplicate(now, sn) {
            self.restart_sets(now, proxy.author(), proxy.changes.expected);
        }
    }

    /// Handles a sample for which there is no room. A reliable reader requests it again later.
    #[cold]
    pub(super) fn reject(
        &mut self,
        now: Time,
        proxy: &mut WriterProxy,
        (sn, len): (SequenceNumber, usize),
        (rejection, key): (Rejection, Option<Key>),
    ) {
        if self.cache.is_too_long(len) {
            return self.skip_too_long(now, proxy, sn);
        }
        let was_refused = proxy.refuse(now, sn, key.filter(|_| rejection.is_of_instance()));
        if proxy.is_reliable {
            self.counters.samples_refused += u64::from(!was_refused);
            if !was_refused {
                self.refused.add(proxy.guid);
            }
        } else {
            self.counters.samples_rejected += 1;
        }
        self.last_rejection = Some((rejection, key));
    }

    /// Moves past a sample that is longer than the limits table allows: it would never find room.
    fn skip_too_long(&mut self, now: Time, proxy: &mut WriterProxy, sn: SequenceNumber) {
        self.counters.samples_oversized += 1;
        self.count_lost(1);
        proxy.accept(now, sn);
        self.note_lost(now, proxy.author(), sn.next());
        self.deliver_held(now, proxy);
    }

    /// Moves samples that were held back into the cache, while the next one is there and has room.
    pub(super) fn deliver_held(&mut self, now: Time, proxy: &mut WriterProxy) {
        let Self { cache, refused: waiting, counters, .. } = self;
        let was_refused = proxy.trouble.refused.is_some();
        let mut author = proxy.author();
        let mut full_instance = None;
        loop {
            let next = proxy.next_held(now, |stored| {
                if cache.ends_unknown_instance(stored) {
                    return true;
                }
                let rejection = cache.refusal_by_kind(stored.kind, stored.key(), stored.len());
                if rejection.is_some_and(Rejection::is_of_instance) {
                    full_instance = stored.key();
                }
                rejection.is_none()
            });
            let Some((sn, stored)) = next else { break };
            counters.samples_received += 1;
            if !author.is_alive {
                let key_of = |key| cache.instances.key_of(key);
                let key = key_of(stored.key());
                author.is_last = waiting.is_last((author.guid, sn), key, &proxy.changes, key_of);
            }
            cache.push_held(now, author, sn, stored);
        }
        if let Some(refused) = proxy.refused_mut() {
            refused.key = full_instance.or(refused.key);
            if !was_refused {
                waiting.add(author.guid);
            }
        } else if !author.is_alive {
            waiting.settle(author.guid);
        }
    }

    /// Delivers a sample that was assembled from fragments, or holds it back. Returns whether an
    /// answer is due.
    pub(super) fn deliver_whole(
        &mut self,
        config: &ReaderConfig,
        now: Time,
        proxy: &mut WriterProxy,
        whole: Assembly,
        listed: &mut usize,
    ) -> bool {
        let (sn, len) = (whole.sequence_number, whole.sample_size);
        let Assembly { is_key, kind, key_hash, source_timestamp, .. } = whole;
        let buffer = whole.memory.into_block();
        let payload = &buffer.bytes()[..len];
        let sample = sample_of(config, payload, is_key, kind, key_hash, source_timestamp);
        let Ok(sample) = sample else {
            self.count_unusable(NoSample::Malformed);
            // Otherwise earlier samples are still waited for, and this one is requested again.
            if let Arrival::Next { .. } = proxy.arrival(sn) {
                self.note_lost(now, proxy.author(), sn.next());
                proxy.accept(now, sn);
            }
            self.cache.chunks.give_buffer(buffer);
            return false;
        };
        let in_turn = matches!(proxy.arrival(sn), Arrival::Next { .. });
        if self.cache.leaves_out(&sample, None, in_turn) {
            self.cache.chunks.give_buffer(buffer);
            match proxy.arrival(sn) {
                Arrival::Next { lost } => {
                    self.count_skipped(proxy, lost);
                    self.leave_out(now, proxy, sn);
                }
                Arrival::Ahead => proxy.skip(config.guid.entity, sn, listed),
                Arrival::Duplicate => {}
            }
            return false;
        }
        let Sample { kind, key, source_timestamp, .. } = sample;
        let rejection = match proxy.arrival(sn) {
            Arrival::Next { .. } => self.cache.refusal_by_kind(kind, key, len),
            Arrival::Ahead if self.cache.is_full_of_held(len) && self.cache.held > 0 => {
                if self.cache.len() == 0 || !self.cache.is_full_with_held(len) {
                    // Only the missing sample can make room, not the application: go on requesting.
                    self.counters.samples_too_early += 1;
                    self.cache.chunks.give_buffer(buffer);
                    return true;
                }
                Some(Rejection::BytesLimit)
            }
            Arrival::Ahead | Arrival::Duplicate => None,
        };
        if let Some(rejection) = rejection {
            self.cache.chunks.give_buffer(buffer);
            self.reject(now, proxy, (sn, len), (rejection, key));
            return false;
        }
        let stored = self.cache.hold_whole(kind, key, source_timestamp, buffer, len);
        match proxy.arrival(sn) {
            Arrival::Next { lost } => {
                self.count_skipped(proxy, lost);
                self.counters.samples_received += 1;
                proxy.accept(now, sn);
                self.cache.push_held(now, proxy.author(), sn, stored);
                self.deliver_held(now, proxy);
            }
            Arrival::Ahead | Arrival::Duplicate => {
                if !proxy.hold(now, sn, stored, listed) {
                    self.cache.drop_held(stored);
                }
            }
        }
        false
    }

    /// Resumes a writer of which a sample was refused that may have room now. It is not among those of which one was.
    /// Returns whether an answer is due.
    pub(super) fn retry_refused(&mut self, proxy: &mut WriterProxy) -> bool {
        let Some(refused) = proxy.trouble.refused else { return false };
        // Room for other samples is no room for those of an instance that is full.
        if refused.key.is_some_and(|key| self.cache.refusal(Some(key), 0).is_some()) {
            self.refused.add(proxy.guid);
            return false;
        }
        proxy.trouble.refused = None;
        proxy.ask_again();
        self.deliver_held(refused.heard_at, proxy);
        true
    }
}
