//! The state of one writer, and its getters.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;

use weir_wire::submessage::GroupInfo;
use weir_wire::{Guid, SequenceNumber};

use super::answers::Hole;
use super::burst::{Burst, OpenBatch};
use super::compose::{self, Template};
use super::content_filter::Filters;
use super::encode::Unkept;
use super::fragments::{Filling, Fragments, LargeSamples};
use super::group_repairs::GroupRepairs;
use super::heartbeat::{Heartbeat, SENT_MAX};
use super::instances::Instances;
use super::pacing::Pacing;
use super::reader_proxy::ReaderProxy;
use super::repair_budget::RepairBudgets;
use super::requested::Requested;
use super::settings::{Configured, WriterConfig};
use super::size::WriterSize;
use super::timed::Timed;
use crate::address_lists::AddressLists;
use crate::config;
use crate::due::Due;
use crate::group::TAG_MAX_BYTES;
use crate::guid_index::GuidIndex;
use crate::history::History as Store;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::time::Time;
use crate::window::Window;

/// One writer, see the [module's documentation](super).
#[derive(Debug)]
pub struct WriterCore {
    /// As configured, but for lengths that the paths to the readers limit.
    pub(super) config: WriterConfig,
    /// Most bytes of a sample with its headers.
    pub(super) sample_len_max: usize,
    /// These lengths as configured.
    pub(super) configured: Configured,
    pub(super) template: Template,
    pub(super) history: Store,
    pub(super) instances: Instances,
    pub(super) proxies: Vec<ReaderProxy>,
    /// Their places by GUID.
    pub(super) places: GuidIndex,
    pub(super) group_repairs: GroupRepairs,
    /// Whether any matched reader is reliable.
    pub(super) has_reliable: bool,
    /// The first sample sent since it was last decided which groups are used.
    pub(super) group_since: SequenceNumber,
    /// All readers that are waited for request what they miss when a later sample arrives, and nothing is learned from
    /// their answers: they are of this engine, and on this host.
    pub(super) reveals_losses: bool,
    /// The addresses of all matched readers.
    pub(super) destinations: Destinations,
    /// Those of readers that are sent new samples, if others are set [apart](super::apart).
    pub(super) taking: Option<Destinations>,
    /// The place of the reader that is the first of them to be served next.
    pub(super) next_apart: usize,
    /// The one that was served first this time.
    pub(super) served_apart: Option<usize>,
    /// Lists of addresses that are used again.
    pub(super) lists: AddressLists,
    /// Memory for a list of addresses that is being made.
    pub(super) addresses: Vec<SocketAddrV4>,
    /// Memory for the requests of readers that are not matched yet.
    #[expect(clippy::vec_box, reason = "matched readers hold the same boxes")]
    pub(super) reserved: Vec<Box<Requested>>,
    /// Memory for the holes in one answer.
    pub(super) holes: Vec<Hole>,
    /// The multicast groups among `destinations`, with their interfaces.
    pub(super) routes: Vec<GroupRoute>,
    pub(super) window: Window,
    /// What the paths to the readers allow.
    pub(super) pacing: Pacing,
    /// Some reader was not sent a datagram, see [`withheld`](super::withheld), or is [apart](super::apart).
    pub(super) has_withheld: bool,
    /// Some reader is sent again what it has discarded, see [`go_back`](super::go_back), and nothing new is sent.
    pub(super) is_going_back: bool,
    /// The first sequence number not handed out yet.
    pub(super) unsent: SequenceNumber,
    /// `unsent` when the last transmission began: what was handed out before has been sent.
    pub(super) sent_before: SequenceNumber,
    /// Answers are composed while another thread sends what was handed out since.
    pub(super) is_beside_sender: bool,
    /// The last sample that all reliable readers have acknowledged.
    pub(super) acknowledged: SequenceNumber,
    /// `history.charged_to(acknowledged)`.
    pub(super) acknowledged_charge: u64,
    /// Charge of everything known to have left the sockets of all reliable readers.
    pub(super) seen_charge: u64,
    /// Readers that may have repairs, a GAP or a HEARTBEAT due.
    pub(super) due: Due,
    pub(super) heartbeat: Heartbeat,
    pub(super) silence: Noted,
    pub(super) burst: Burst,
    /// The batch being filled.
    pub(super) open: Option<OpenBatch>,
    pub(super) large: LargeSamples,
    pub(super) fragments: Fragments,
    /// Memory for samples that are sent but not kept.
    pub(super) unkept: Unkept,
    /// The last sample, while it is being filled piece by piece.
    pub(super) filling: Option<Filling>,
    /// Loans outstanding.
    pub(super) loans: usize,
    /// Longest datagram that reaches every reader unfragmented, as far as known.
    pub(super) datagram_max: usize,
    pub(super) budgets: RepairBudgets,
    pub(super) is_closed: bool,
    /// `None`: LIFESPAN and DEADLINE are at their defaults.
    pub(super) timed: Option<Box<Timed>>,
    /// The policies to be sent with each sample, while a reader expects that.
    pub(super) inline_qos: Option<Box<[u8]>>,
    /// The content filters of readers; `None`: there are none.
    pub(super) filters: Option<Box<Filters>>,
    /// Samples do not leave by [`WriterCore::write_direct`]: another thread sends them, `timed` has to know of them,
    /// they get inline QoS, or not all readers are sent them.
    pub(super) is_indirect: bool,
    /// Something is added to what is sent, although no path is paced: a type of service, inline QoS, or what readers
    /// that are [apart](super::apart) are sent by themselves.
    pub(super) has_additions: bool,
    pub(super) counters: WriterCounters,
}

/// What [`WriterCore::take_silence`] is to return.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) has_silent: bool,
    pub(super) has_stalled: bool,
    /// There are readers that are not waited for. They are sent HEARTBEATs.
    pub(super) is_prompting: bool,
}

/// The counters of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WriterCounters {
    /// Samples sent again because a reader requested them.
    pub samples_repaired: u64,
    /// Of these, those sent to a multicast group because several of its readers requested them.
    pub repairs_multicast: u64,
    /// Readers that their multicast group did not reach, and that are sent everything by unicast since.
    pub groups_unreachable: u64,
    /// Datagrams and fragments that were first sent when a reader requested them, see [`path`](crate::path).
    pub samples_withheld: u64,
    /// GAPs for removed samples.
    pub gaps_sent: u64,
    /// HEARTBEATs, including those in the datagram of a sample.
    pub heartbeats_sent: u64,
    /// ACKNACKs that were applied.
    pub acknacks_received: u64,
    /// Requests for repairs that were not fulfilled, or not all: the reader's host was sent many repairs, compared to
    /// what was first sent to it.
    pub repairs_held_back: u64,
    /// Requests for repairs that were put off for a moment, because much was sent again before.
    pub repairs_paced: u64,
    /// Samples that a reader was never sent, once for each such reader: a best-effort one was not sent what its path
    /// carries too late, or later samples replaced them first (KEEP_LAST), or their lifespan ended.
    pub samples_left_out: u64,
    /// Content filters of readers that were announced and are not applied: in another language than SQL, malformed, not
    /// of the type, too long, or too many. These readers filter alone.
    pub content_filters_ignored: u64,
    /// Samples that left the history because their lifespan ended.
    pub samples_expired: u64,
    /// Samples removed because DURABILITY_SERVICE does not have late readers sent them.
    pub samples_not_served: u64,
    /// Hosts without matched readers whose repairs were forgotten to make room for others.
    pub hosts_forgotten: u64,
    /// Times that a reader was no longer waited for, because it acknowledged nothing for
    /// [`WriterConfig::reader_inactivity`].
    pub readers_stalled: u64,
    /// Times that such a reader acknowledged something and was waited for again.
    pub readers_resumed: u64,
    /// Readers that took back an acknowledgement: they lost the writer and found it again.
    pub readers_restarted: u64,
    /// Blocks allocated although a limits table had all memory reserved: threads were sending from the others.
    pub blocks_beyond_limits: u64,
    /// ACKNACKs from unmatched readers, with impossible numbers, or out of date.
    pub acknacks_ignored: u64,
}

impl WriterCore {
    /// Creates a writer without readers.
    pub fn new(config: WriterConfig) -> Self {
        let config = config.within_limits();
        let size = WriterSize::of(&config);
        let timed = Timed::new(&config);
        let datagram_max = datagram_max(&config, u16::MAX);
        let mut writer = Self {
            template: Template::new(&config),
            is_indirect: config.is_asynchronous || timed.is_some(),
            has_additions: config.dscp != 0 || config.presentation.is_some(),
            timed,
            inline_qos: config.presentation.as_ref().map(|_| Box::default()),
            filters: None,
            configured: Configured::of(&config),
            sample_len_max: config.sample_len_max(),
            history: match size {
                Some(size) => Store::fixed(config.first, size.history),
                None => Store::new(config.first, config::BLOCK_BYTES, config::BLOCKS_SPARE_MAX),
            },
            instances: Instances::new(&config),
            proxies: Vec::with_capacity(size.map_or(0, |size| size.matches)),
            places: GuidIndex::with_room(size.map_or(0, |size| size.matches)),
            group_repairs: GroupRepairs::default(),
            has_reliable: false,
            group_since: SequenceNumber::ZERO,
            reveals_losses: false,
            destinations: Arc::from([]),
            taking: None,
            next_apart: 0,
            served_apart: None,
            lists: AddressLists::default(),
            addresses: Vec::new(),
            reserved: Vec::new(),
            holes: Vec::new(),
            routes: Vec::new(),
            window: Window::new(),
            pacing: Pacing::new(config.transport_priority, config.latency_budget),
            has_withheld: false,
            is_going_back: false,
            unsent: config.first,
            sent_before: config.first,
            is_beside_sender: false,
            acknowledged: config.first.prev(),
            acknowledged_charge: 0,
            seen_charge: 0,
            due: Due::default(),
            heartbeat: Heartbeat {
                delay: config::HEARTBEAT_DELAY_MIN,
                delay_min: config::HEARTBEAT_DELAY_MIN,
                latest: Time::MAX,
                ..Heartbeat::default()
            },
            silence: Noted::default(),
            burst: Burst::default(),
            open: None,
            large: size.map_or_else(LargeSamples::default, |size| LargeSamples::fixed(size.samples)),
            fragments: Fragments::default(),
            unkept: size.map_or_else(Unkept::default, |size| Unkept::fixed(size.unkept)),
            filling: None,
            loans: 0,
            datagram_max,
            budgets: RepairBudgets::default(),
            is_closed: false,
            counters: WriterCounters::default(),
            config,
        };
        size.iter().for_each(|size| writer.reserve(size));
        writer
    }

    /// Reserves memory for matched readers.
    fn reserve(&mut self, size: &WriterSize) {
        let (matches, lists) = (size.matches, size.lists());
        self.pacing.reserve(matches, size.samples);
        self.budgets.reserve(matches);
        self.heartbeat.sent.reserve_exact(SENT_MAX);
        self.lists = AddressLists::with_room(lists.0, lists.1);
        self.addresses.reserve_exact(size.addresses());
        self.holes.reserve_exact(size.holes());
        self.reserved.reserve_exact(matches);
        self.reserved.extend((0..matches).map(|_| Requested::reserved(&size.limits)));
    }

    /// Decides anew whether samples leave by [`WriterCore::write_direct`], and whether something is added to them.
    pub(super) fn update_indirect(&mut self) {
        self.has_additions = self.config.dscp != 0 || self.inline_qos.is_some() || self.taking.is_some();
        self.is_indirect = self.config.is_asynchronous
            || self.timed.is_some()
            || self.inline_qos.is_some()
            || self.taking.is_some()
            || self.filters.is_some()
            || self.pacing.receipts.is_asking;
    }

    /// Returns the writer's GUID.
    pub fn guid(&self) -> Guid {
        self.config.guid
    }

    /// Returns the sequence number of the last sample; 0 before the first.
    #[inline]
    pub fn last_sequence_number(&self) -> SequenceNumber {
        self.history.last()
    }

    /// Returns whether every reliable reader has acknowledged `sn` and all samples before it.
    #[inline]
    pub fn is_acknowledged(&self, sn: SequenceNumber) -> bool {
        self.acknowledged >= sn || !self.has_reliable
    }

    /// Returns the GUIDs of the matched readers.
    pub fn matched_readers(&self) -> impl Iterator<Item = Guid> + '_ {
        self.proxies.iter().map(|proxy| proxy.guid)
    }

    /// Returns the GUIDs of the reliable readers that have not acknowledged the last sample, and are waited for. The
    /// one furthest behind comes first.
    pub fn lagging_readers(&self) -> impl Iterator<Item = Guid> + '_ {
        let last = self.history.last();
        let behind = |proxy: &&ReaderProxy| proxy.is_awaited() && proxy.acknowledged < last;
        let mut lagging: Vec<_> = self.proxies.iter().filter(behind).collect();
        lagging.sort_by_key(|proxy| proxy.acknowledged);
        lagging.into_iter().map(|proxy| proxy.guid)
    }

    /// Returns the groups and addresses of all matched readers.
    pub fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    /// Returns the multicast groups among [`WriterCore::destinations`], with their interfaces.
    pub fn routes(&self) -> &[GroupRoute] {
        &self.routes
    }

    /// Returns the number of matched readers.
    pub fn matched(&self) -> usize {
        self.proxies.len()
    }

    /// Returns whether committed samples wait to be handed out.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent < self.history.next()
    }

    /// Returns the counters.
    pub fn counters(&self) -> WriterCounters {
        let blocks_beyond_limits = self.history.blocks_beyond() + self.lists.beyond();
        WriterCounters { blocks_beyond_limits, ..self.counters }
    }

    /// Returns the bytes of memory used by the history, the instances, and the accounts of hosts.
    pub fn memory(&self) -> usize {
        self.history.memory()
            + self.instances.memory()
            + self.unkept.len()
            + self.budgets.memory()
            + self.timed.as_ref().map_or(0, |timed| timed.memory())
            + self.proxies.iter().map(ReaderProxy::repairs_memory).sum::<usize>()
    }

    /// Returns the memory of a writer with a limits table, in bytes, as allocated: the history, the instances, matched
    /// readers with what they request, and samples that are not kept. What policies, paths and repairs to other hosts
    /// take is not in it.
    pub fn allocated(&self) -> usize {
        self.history.allocated()
            + self.instances.allocated()
            + self.unkept.len()
            + self.large.allocated()
            + self.proxies.capacity() * size_of::<ReaderProxy>()
            + self.places.allocated()
            + self.proxies.iter().map(ReaderProxy::requests_allocated).sum::<usize>()
            + self.reserved.iter().map(|it| it.allocated()).sum::<usize>()
            + self.reserved.capacity() * size_of::<Box<Requested>>()
            + self.pacing.allocated()
            + self.budgets.allocated()
            + self.heartbeat.sent.capacity() * size_of::<(u32, Time)>()
            + self.lists.allocated()
            + self.addresses.capacity() * size_of::<SocketAddrV4>()
            + self.holes.capacity() * size_of::<Hole>()
            // The empty list of destinations.
            + 2 * size_of::<usize>()
    }

    /// Returns the number of sequence numbers from the oldest sample kept to the newest, including
    /// holes.
    pub fn span(&self) -> usize {
        self.history.span()
    }

    /// Returns the number of samples in the history.
    pub fn kept(&self) -> usize {
        self.history.len()
    }

    /// Returns the window, and how much of it is in flight, in bytes as the kernel charges them.
    pub fn window(&self) -> (u64, u64) {
        (self.window.size(), self.in_flight())
    }

    /// Returns the bytes that may be in flight or in a reader's socket buffer.
    ///
    /// A sample that a reader requested again is no longer in flight, nor is anything sent before
    /// it.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        self.history.charged() - self.seen_charge
    }

    /// Returns whether reliable readers have not acknowledged some sample.
    #[inline]
    pub(super) fn has_unacknowledged(&self) -> bool {
        self.has_reliable && self.acknowledged < self.history.last()
    }

    /// Admits writes after [`WriterCore::close`]. The writer has no readers yet.
    pub fn open(&mut self) {
        self.is_closed = false;
        self.limit_datagrams();
    }

    /// Refuses all writes from now on with [`WriteRefused::Closed`](super::WriteRefused::Closed).
    pub fn close(&mut self) {
        self.is_closed = true;
        self.datagram_max = compose::CLOSED_MAX;
        self.open = None;
    }
}

/// Returns the length of the longest datagram to readers whose paths carry this many bytes.
pub(super) fn datagram_max(config: &WriterConfig, path_max: u16) -> usize {
    let carried = usize::from(path_max.min(config.datagram_max).min(config.kept_datagram_max));
    config::SEGMENTED_MAX_BYTES.min(carried).saturating_sub(tag_bytes(config)).max(config::DATAGRAM_MIN_BYTES)
}

/// Returns the bytes that each datagram leaves free for what is added on the way out about sets and groups.
pub(super) fn tag_bytes(config: &WriterConfig) -> usize {
    match &config.presentation {
        Some(presentation) if presentation.group.is_some() => TAG_MAX_BYTES + GroupInfo::LEN,
        Some(_) => TAG_MAX_BYTES,
        None => 0,
    }
}
