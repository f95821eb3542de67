//! The state of one writer, and what can be asked of it.

use std::sync::Arc;

use weir_wire::{Guid, SequenceNumber};

use super::burst::{Burst, OpenBatch};
use super::compose::{self, Template};
use super::encode::Unkept;
use super::fragments::{Filling, Fragments, LargeSamples};
use super::heartbeat::Heartbeat;
use super::instances::Instances;
use super::reader_proxy::ReaderProxy;
use super::settings::WriterConfig;
use crate::config;
use crate::history::History as Store;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::window::Window;

/// One writer. See the module's documentation.
#[derive(Debug)]
pub struct WriterCore {
    pub(super) config: WriterConfig,
    pub(super) template: Template,
    pub(super) history: Store,
    pub(super) instances: Instances,
    pub(super) proxies: Vec<ReaderProxy>,
    /// Whether one of them is reliable.
    pub(super) has_reliable: bool,
    /// The addresses of all matched readers.
    pub(super) destinations: Destinations,
    /// How the groups among them are reached.
    pub(super) routes: Vec<GroupRoute>,
    pub(super) window: Window,
    /// The first sequence number that was not handed out yet.
    pub(super) unsent: SequenceNumber,
    /// The last one that all reliable readers have acknowledged.
    pub(super) acknowledged: SequenceNumber,
    /// `history.charged_to(acknowledged)`.
    pub(super) acknowledged_charge: u64,
    /// Charge of everything that is known to have left the sockets of all reliable readers.
    pub(super) seen_charge: u64,
    /// Some proxy may have something to be sent.
    pub(super) is_answer_due: bool,
    pub(super) heartbeat: Heartbeat,
    pub(super) burst: Burst,
    /// The batch that is being filled.
    pub(super) open: Option<OpenBatch>,
    pub(super) large: LargeSamples,
    pub(super) fragments: Fragments,
    /// Where samples are encoded that are not kept.
    pub(super) unkept: Unkept,
    /// The last sample, while it is not whole.
    pub(super) filling: Option<Filling>,
    /// Blocks that are lent to the application.
    pub(super) loans: usize,
    /// The longest datagram that reaches every reader unfragmented, as far as is known.
    pub(super) datagram_max: usize,
    pub(super) counters: WriterCounters,
}

/// What a writer counts.
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
            large: LargeSamples::default(),
            fragments: Fragments::default(),
            unkept: Unkept::default(),
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

    /// The number of the last sample; 0 before the first.
    #[inline]
    pub fn last_sequence_number(&self) -> SequenceNumber {
        self.history.last()
    }

    /// Whether every reliable reader has acknowledged `sn` and all samples before it.
    #[inline]
    pub fn is_acknowledged(&self, sn: SequenceNumber) -> bool {
        self.acknowledged >= sn || !self.has_reliable
    }

    /// GUIDs of the reliable readers that have not acknowledged the last sample, the one furthest behind first.
    pub fn lagging_readers(&self) -> impl Iterator<Item = Guid> + '_ {
        let last = self.history.last();
        let behind = |proxy: &&ReaderProxy| proxy.is_reliable && proxy.acknowledged < last;
        let mut lagging: Vec<_> = self.proxies.iter().filter(behind).collect();
        lagging.sort_by_key(|proxy| proxy.acknowledged);
        lagging.into_iter().map(|proxy| proxy.guid)
    }

    /// Where samples are sent: the groups and addresses of all matched readers.
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

    /// Whether committed samples wait to be handed out.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent < self.history.next()
    }

    /// What was counted.
    pub fn counters(&self) -> WriterCounters {
        self.counters
    }

    /// Bytes of memory that the history and the instances take.
    pub fn memory(&self) -> usize {
        self.history.memory() + self.instances.memory() + self.unkept.len()
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

    /// What may be in a reader's socket: not what it asked for again, nor what was sent before that.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        self.history.charged() - self.seen_charge
    }

    /// Whether reliable readers have not acknowledged something.
    #[inline]
    pub(super) fn has_unacknowledged(&self) -> bool {
        self.has_reliable && self.acknowledged < self.history.last()
    }

    /// Lowers the largest datagram, in bytes: the smallest path MTU to any matched reader, less 28. Longer samples
    /// leave in fragments, and batches end there.
    pub fn limit_segments(&mut self, bytes: u16) {
        self.datagram_max = self.datagram_max.min(usize::from(bytes)).max(config::DATAGRAM_MIN_BYTES);
        if let Some(coalescing) = &mut self.config.coalescing {
            coalescing.segment_max = coalescing.segment_max.min(bytes);
        }
        if let Some(batch) = &mut self.config.batch {
            // A HEARTBEAT may ride along. What IP had to fragment would be lost with any of its fragments.
            batch.max_bytes = batch.max_bytes.min(self.datagram_max - compose::HEARTBEAT_LEN);
        }
    }
}
