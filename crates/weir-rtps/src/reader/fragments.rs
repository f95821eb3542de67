//! Samples in fragments: taking them in, delivering what is whole, asking for what is missing (RTPS 2.5 §8.4.14.1).

use std::sync::Arc;

use weir_wire::{
    DataFrag, FragmentNumber, FragmentNumberSet, Guid, HeartbeatFrag, InfoDestination, NackFrag,
    SequenceNumber, Timestamp, push,
};

use super::assembly::{Added, Assembly, Expected};
use super::room::Rejection;
use super::sample::{Sample, inline_qos, sample_of};
use super::writer_proxy::{Arrival, WriterProxy};
use super::{ReaderConfig, ReaderCore, header, liveliness};
use crate::outbox::Outbox;
use crate::time::Time;

impl ReaderCore {
    /// Takes fragments of a sample (RTPS 2.5 §8.3.8.3); the last one to arrive makes it a sample like any other.
    pub fn handle_data_frag(
        &mut self,
        now: Time,
        writer: Guid,
        frag: &DataFrag<'_>,
        source_timestamp: Option<Timestamp>,
    ) {
        let Some(index) = self.find(writer) else {
            self.note_stranger(writer, frag.sequence_number);
            return;
        };
        self.is_timeout_news |= liveliness::assert(&mut self.proxies[index], now, &mut self.liveliness);
        let (sn, proxy) = (frag.sequence_number, &mut self.proxies[index]);
        match proxy.arrival(sn) {
            Arrival::Duplicate => {
                self.counters.samples_duplicate += 1;
                return;
            }
            Arrival::Ahead if !proxy.is_within_reach(sn, self.listed) => return,
            Arrival::Next { .. } if !proxy.is_reliable => {
                // A best-effort writer does not complete what it has left behind.
                self.assemblies.drop_before(writer, sn, self.cache.chunks_mut());
            }
            _ => {}
        }
        if frag.sample_size as usize > self.config.reassembly.sample_max_bytes {
            return self.pass_over(index, sn);
        }
        let qos = || inline_qos(frag.inline_qos.as_ref());
        let chunks = self.cache.chunks_mut();
        let Some(assembly) = self.assemblies.entry(now, writer, frag, qos, source_timestamp, chunks) else {
            self.counters.fragments_refused += 1;
            return;
        };
        match assembly.expected(frag) {
            Expected::AsItCame => {}
            Expected::Repair { asked_at, tries } => proxy.note_repair(now, asked_at, tries),
            Expected::Before => proxy.drop_duplicate(),
        }
        let is_hole = match assembly.add(frag) {
            Added::Placed { is_hole } => is_hole,
            Added::TooFar { is_hole } => {
                self.counters.fragments_refused += 1;
                is_hole
            }
            Added::NoMemory => {
                self.counters.allocations_failed += 1;
                false
            }
        };
        self.is_answer_due |= is_hole && proxy.is_reliable;
        if let Some(whole) = self.assemblies.take_complete(writer, sn) {
            self.deliver_whole(now, index, whole);
        }
    }

    /// Delivers a sample that is complete, or holds it back when its turn has not come.
    fn deliver_whole(&mut self, now: Time, index: usize, whole: Assembly) {
        let Self { proxies, cache, counters, .. } = self;
        let (proxy, sn, len) = (&mut proxies[index], whole.sequence_number, whole.sample_size);
        let buffer = whole.memory.into_block();
        let payload = &buffer.bytes()[..len];
        let sample = sample_of(
            &self.config,
            payload,
            whole.is_key,
            whole.kind,
            whole.key_hash,
            whole.source_timestamp,
        );
        let Ok(Sample { kind, key, source_timestamp, .. }) = sample else {
            counters.samples_malformed += 1;
            // Those before it are still waited for.
            if let Arrival::Next { .. } = proxy.arrival(sn) {
                proxy.accept(now, sn);
            }
            cache.chunks_mut().give_buffer(buffer);
            return;
        };
        let refusal = match proxy.arrival(sn) {
            Arrival::Next { .. } => cache.refusal(key, len),
            Arrival::Ahead if cache.is_full_of_held(len) && cache.has_held() => {
                if cache.len() == 0 {
                    // Taking samples cannot make room, only the sample that it waits for can: go on asking.
                    cache.chunks_mut().give_buffer(buffer);
                    self.is_answer_due = true;
                    return;
                }
                Some(Rejection::BytesLimit)
            }
            Arrival::Ahead | Arrival::Duplicate => None,
        };
        if let Some(rejection) = refusal {
            cache.chunks_mut().give_buffer(buffer);
            self.reject(index, sn, rejection, key);
            return;
        }
        let held = cache.hold_whole(&Sample { kind, payload: &[], key, source_timestamp }, buffer, len);
        match proxy.arrival(sn) {
            Arrival::Next { lost } => {
                counters.samples_lost = counters.samples_lost.saturating_add(lost);
                counters.samples_received += 1;
                proxy.accept(now, sn);
                cache.push_held(proxy.guid, sn, held);
                self.deliver_held(index);
            }
            Arrival::Ahead | Arrival::Duplicate => {
                if !proxy.hold(now, sn, held, &mut self.listed) {
                    cache.drop_held(held);
                }
            }
        }
    }

    /// Takes a HEARTBEAT_FRAG (RTPS 2.5 §8.3.8.7): which fragments of a sample there are.
    pub fn handle_heartbeat_frag(&mut self, _now: Time, writer: Guid, heartbeat: &HeartbeatFrag) {
        let Some(index) = self.find(writer) else {
            self.counters.unknown_writers += 1;
            return;
        };
        let proxy = &mut self.proxies[index];
        let sn = heartbeat.sequence_number;
        if !proxy.is_reliable || !proxy.waits_for(sn) {
            return;
        }
        match self.assemblies.get_mut(writer, sn) {
            Some(assembly) => {
                assembly.announce(heartbeat.last_fragment);
                assembly.is_progress_wanted = proxy.wants_progress();
            }
            // There is no room for it, if nothing came after all.
            None if proxy.is_refused => return,
            None => proxy.missed_fragments = Some((sn, heartbeat.last_fragment)),
        }
        self.is_answer_due = true;
    }

    /// Asks a writer for the fragments that are missing, and notes in `partial` which samples they belong to.
    pub(super) fn ask_for_fragments(&mut self, now: Time, index: usize, out: &mut Outbox) {
        self.partial.clear();
        let proxy = &mut self.proxies[index];
        if let Some((sn, last)) = proxy.missed_fragments.take() {
            // Nothing of the sample has arrived: everything that was sent of it is missing.
            let mut state = FragmentNumberSet::new(FragmentNumber(1));
            (1..=last.min(256)).for_each(|number| _ = state.insert(FragmentNumber(number)));
            nack_frags(&self.config, proxy, &[(sn, state)], out);
        }
        if self.assemblies.is_empty() {
            return;
        }
        let (writer, patience_ns) = (proxy.guid, proxy.patience_ns());
        self.assemblies.retain(writer, self.cache.chunks_mut(), |sn| proxy.waits_for(sn));
        let Some(last) = self.assemblies.last(writer) else { return };
        for assembly in self.assemblies.of(writer) {
            let sn = assembly.sequence_number;
            self.partial.push(sn);
            // Writers send one sample after the other.
            if sn < last || proxy.is_announced(sn) {
                assembly.announce_all();
            }
            let (is_progress_wanted, before) =
                (core::mem::take(&mut assembly.is_progress_wanted), self.nack_frags.len());
            assembly.ask(now, patience_ns, &mut self.nack_frags);
            self.counters.nacks_sent += (self.nack_frags.len() - before) as u64;
            if is_progress_wanted && self.nack_frags.len() == before {
                self.nack_frags.push((sn, assembly.progress()));
            }
        }
        for wanted in self.nack_frags.chunks(NACK_FRAGS_MAX) {
            nack_frags(&self.config, proxy, wanted, out);
        }
        self.nack_frags.clear();
    }
}

/// Most NACK_FRAGs in one message: of the longest, so many fit a packet of 1500 bytes.
const NACK_FRAGS_MAX: usize = 20;

/// Sends a NACK_FRAG for each of these samples, in one message.
fn nack_frags(
    config: &ReaderConfig,
    proxy: &mut WriterProxy,
    wanted: &[(SequenceNumber, FragmentNumberSet)],
    out: &mut Outbox,
) {
    let (reader, writer) = (config.guid.entity, proxy.guid.entity);
    let destinations = Arc::clone(&proxy.destinations);
    out.message(&destinations, |message| {
        push(message, &header(config));
        push(message, &InfoDestination { prefix: proxy.guid.prefix });
        for &(sequence_number, state) in wanted {
            let count = proxy.next_fragment_count();
            push(message, &NackFrag { reader, writer, sequence_number, state, count });
        }
    });
}
