//! Samples in fragments: reassembly, and requests for missing fragments (RTPS 2.5, 8.4.14.1).

use alloc::sync::Arc;
use alloc::vec::Vec;

use weir_wire::{
    DataFrag, FragmentNumber, FragmentNumberSet, Guid, HeartbeatFrag, InfoDestination, NackFrag,
    SequenceNumber, Timestamp, push,
};

use super::ReaderCore;
use super::assemblies::Assemblies;
use super::assembly::{Added, Assembly, Origin};
use super::chunks::Chunks;
use super::config::ReaderConfig;
use super::counters::ReaderCounters;
use super::size::ReaderSize;
use super::writer_proxy::WriterProxy;
use crate::config;
use crate::inline_qos;
use crate::outbox::Outbox;
use crate::time::Time;

/// The samples of a reader that arrive in fragments.
#[derive(Debug)]
pub(super) struct Fragments {
    pub(super) assemblies: Assemblies,
    /// Sets to request from one writer. Empty between calls.
    requests: Vec<(SequenceNumber, FragmentNumberSet)>,
    /// Incomplete samples of the writer in the last [request](Self::request), in order.
    pub(super) partial: Vec<SequenceNumber>,
}

impl Fragments {
    pub(super) fn new(config: &ReaderConfig, size: Option<&ReaderSize>) -> Self {
        let max_bytes = config.reassembly.max_bytes;
        let Some(size) = size else {
            return Self {
                assemblies: Assemblies::new(max_bytes),
                requests: Vec::new(),
                partial: Vec::new(),
            };
        };
        Self {
            assemblies: Assemblies::fixed(max_bytes, size.assemblies),
            requests: Vec::with_capacity(size.fragment_sets()),
            partial: Vec::with_capacity(size.assemblies.samples),
        }
    }

    /// Memory as allocated, in bytes, if it was reserved.
    pub(super) fn allocated(&self) -> usize {
        self.assemblies.allocated()
            + self.requests.capacity() * size_of::<(SequenceNumber, FragmentNumberSet)>()
            + self.partial.capacity() * size_of::<SequenceNumber>()
    }

    /// Stores a fragment. Returns whether it reveals missing fragments.
    pub(super) fn add(
        &mut self,
        now: Time,
        proxy: &mut WriterProxy,
        frag: &DataFrag<'_>,
        source_timestamp: Option<Timestamp>,
        chunks: &mut Chunks,
        counters: &mut ReaderCounters,
    ) -> bool {
        let qos = || inline_qos::decode(frag.inline_qos.as_ref());
        let entry = self.assemblies.entry(now, proxy.guid, frag, qos, source_timestamp, chunks);
        let Some(assembly) = entry else {
            counters.fragments_refused += 1;
            return false;
        };
        match assembly.origin(frag) {
            Origin::Original => {}
            Origin::Repair { asked_at, tries } => proxy.requests.note_repair(now, asked_at, tries),
            Origin::PrematureRepair => proxy.requests.round_trip.raise_variation(),
        }
        match assembly.add(now, frag) {
            Added::Stored { reveals_missing } => reveals_missing,
            Added::TooFar { reveals_missing } => {
                counters.fragments_refused += 1;
                reveals_missing
            }
            Added::NoMemory => {
                counters.allocations_failed += 1;
                false
            }
        }
    }

    /// Records which fragments of a sample a writer has announced. Returns whether an answer is
    /// due.
    pub(super) fn announce(&mut self, proxy: &mut WriterProxy, heartbeat: &HeartbeatFrag) -> bool {
        let sn = heartbeat.sequence_number;
        match self.assemblies.get_mut(proxy.guid, sn) {
            Some(assembly) => {
                assembly.announce(heartbeat.last_fragment);
                assembly.is_progress_wanted = proxy.is_weir();
            }
            // Fragments would find no room.
            None if proxy.trouble.refused.is_some() => return false,
            None => proxy.trouble.missed_fragments = Some((sn, heartbeat.last_fragment)),
        }
        true
    }

    /// Requests the missing fragments of a writer.
    pub(super) fn request(
        &mut self,
        now: Time,
        config: &ReaderConfig,
        proxy: &mut WriterProxy,
        chunks: &mut Chunks,
        counters: &mut ReaderCounters,
        out: &mut Outbox,
    ) {
        self.partial.clear();
        if let Some((sn, last)) = proxy.trouble.changed().and_then(|trouble| trouble.missed_fragments.take())
        {
            // No fragment of the sample has arrived: all that were announced are missing.
            let mut state = FragmentNumberSet::new(FragmentNumber(1));
            (1..=last.min(256)).for_each(|number| _ = state.insert(FragmentNumber(number)));
            nack_frags(now, config, proxy, &[(sn, state)], out);
        }
        if self.assemblies.is_empty() {
            return;
        }
        let (writer, patience) = (proxy.guid, proxy.patience());
        // What is hopeless is requested as a whole. Weir's writers send the whole sample if it has no fragments.
        let may_be_false = proxy.is_reliable && !proxy.is_weir();
        let (announced, heard_at) = (proxy.changes.announced, proxy.counts.heard_at());
        // A HEARTBEAT since its last fragment does not know it.
        let is_unknown = |it: &Assembly| {
            let is_denied = it.sequence_number > announced && heard_at.is_some_and(|at| at > it.added_at);
            is_denied && it.is_idle(now, config::REASSEMBLY_IDLE)
        };
        self.assemblies.retain(writer, chunks, |it| {
            let is_false = (may_be_false && it.is_hopeless(now)) || is_unknown(it);
            proxy.waits_for(it.sequence_number) && !is_false
        });
        let Some(last) = self.assemblies.last(writer) else { return };
        for assembly in self.assemblies.of(writer) {
            let sn = assembly.sequence_number;
            self.partial.push(sn);
            // Writers send one sample after the other.
            if sn < last || sn <= announced {
                assembly.announce(u32::MAX);
            }
            let is_progress_wanted = core::mem::take(&mut assembly.is_progress_wanted);
            let before = self.requests.len();
            // The fragments of a sample that no HEARTBEAT has announced may be false.
            if sn == last || sn <= announced || !assembly.was_asked_often() {
                assembly.ask(now, patience, &mut self.requests);
            }
            counters.nacks_sent += (self.requests.len() - before) as u64;
            if is_progress_wanted {
                self.requests.push((sn, assembly.progress()));
            }
        }
        for requests in self.requests.chunks(NACK_FRAGS_MAX) {
            nack_frags(now, config, proxy, requests, out);
        }
        self.requests.clear();
    }
}

impl ReaderCore {
    /// Handles a HEARTBEAT_FRAG (RTPS 2.5, 8.3.8.7): which fragments of a sample are available.
    pub fn handle_heartbeat_frag(&mut self, _now: Time, writer: Guid, heartbeat: &HeartbeatFrag) {
        let Some(index) = self.find(writer) else { return };
        let proxy = &mut self.writers.list[index];
        if proxy.is_reliable && proxy.waits_for(heartbeat.sequence_number) {
            self.due.add_if(index, self.fragments.announce(proxy, heartbeat));
        }
    }
}

/// Maximum number of NACK_FRAGs in one message: so many of the longest fit a packet of 1500 bytes.
const NACK_FRAGS_MAX: usize = 20;

/// Sends a NACK_FRAG for each of these sets, in one message.
fn nack_frags(
    now: Time,
    config: &ReaderConfig,
    proxy: &mut WriterProxy,
    requests: &[(SequenceNumber, FragmentNumberSet)],
    out: &mut Outbox,
) {
    let (reader, writer) = (config.guid.entity, proxy.guid.entity);
    let destinations = Arc::clone(&proxy.destinations);
    out.message(&destinations, |message| {
        push(message, &config.header());
        push(message, &InfoDestination { prefix: proxy.guid.prefix });
        if let Some(echo) = proxy.echo(now, reader) {
            push(message, &echo);
        }
        for &(sequence_number, state) in requests {
            let count = proxy.counts.next_nack_frag();
            push(message, &NackFrag { reader, writer, sequence_number, state, count });
        }
    });
}
