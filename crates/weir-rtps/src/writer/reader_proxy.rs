//! What a writer knows about one matched reader (RTPS 2.5 §8.4.7.5).

use core::time::Duration;

use weir_wire::{AckNack, Guid, SequenceNumber, VendorId};

use crate::config;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::time::Time;

/// A reader to be matched.
#[derive(Debug, Clone)]
pub struct ReaderProxyConfig {
    /// Its GUID.
    pub guid: Guid,
    /// Whether it asked for reliable delivery.
    pub reliable: bool,
    /// Whether it asked for what was written before (any durability but VOLATILE).
    pub wants_history: bool,
    /// Where it receives data.
    pub destinations: Destinations,
    /// The multicast group to which it listens, too.
    pub group: Option<GroupRoute>,
    /// Whose it is.
    pub vendor: VendorId,
    /// What its socket was granted, in bytes as its kernel charges them, when it says so.
    pub receive_buffer: Option<u32>,
}

/// A matched reader.
#[derive(Debug)]
pub(super) struct ReaderProxy {
    pub(super) guid: Guid,
    pub(super) is_reliable: bool,
    pub(super) destinations: Destinations,
    pub(super) group: Option<GroupRoute>,
    pub(super) receive_buffer: Option<u32>,
    /// It has everything up to and with this.
    pub(super) acknowledged: SequenceNumber,
    /// The first sample that is meant for it: a volatile reader gets nothing from before it was matched.
    pub(super) start: SequenceNumber,
    /// The last sample that it is known to have looked for: what was sent before is lost or out of its
    /// socket's buffer.
    pub(super) seen: SequenceNumber,
    /// What it asked for and was not sent yet, in no order.
    pub(super) requested: Vec<SequenceNumber>,
    /// The same for fragments of large samples, counted from 0.
    pub(super) requested_fragments: Vec<(SequenceNumber, u32)>,
    /// The large sample that it is getting, and how many of its fragments it has looked for.
    fragments_seen: (SequenceNumber, u32),
    /// Samples below this are no longer there, and it waits for one of them.
    pub(super) gap_to: Option<SequenceNumber>,
    /// It is to be told what there is.
    pub(super) is_heartbeat_due: bool,
    /// It knows from where on samples are meant for it. Until it has answered a HEARTBEAT that says so, it must
    /// not see another one: Cyclone DDS takes what the first one announces for written before its time.
    pub(super) is_introduced: bool,
    /// Samples from before it was matched are meant for it, too.
    wants_history: bool,
    vendor: VendorId,
    last_count: Option<(u32, Time)>,
    last_base: SequenceNumber,
    repairs: Repairs,
}

/// How much a reader was sent again since it last showed that something of it arrived.
#[derive(Debug)]
struct Repairs {
    /// In bytes as the kernel charges them.
    charged: u64,
    /// When it gets more, if that is too much.
    more_at: Time,
    delay: Duration,
    /// The highest fragment number before which it said that nothing is missing, and of which sample.
    fragments: (SequenceNumber, u32),
    /// The highest sample that it acknowledged since it started, or started anew.
    acknowledged: SequenceNumber,
    /// When it last started anew.
    restarted_at: Option<Time>,
}

impl Repairs {
    fn begin_anew(&mut self) {
        (self.charged, self.delay) = (0, config::REPAIR_DELAY_MIN);
    }

    /// The reader acknowledges everything up to `sn`.
    fn acknowledge(&mut self, sn: SequenceNumber) {
        if sn > self.acknowledged {
            self.acknowledged = sn;
            self.begin_anew();
        }
    }

    /// The reader starts anew behind `sn`. At most once per [`config::COUNT_TRUST`], so that a peer cannot renew its
    /// budget by acknowledging and forgetting in turn.
    fn restart(&mut self, now: Time, sn: SequenceNumber) {
        if self.restarted_at.is_none_or(|at| now.since(at) >= config::COUNT_TRUST) {
            self.restarted_at = Some(now);
            (self.acknowledged, self.fragments) = (sn, (SequenceNumber::ZERO, 0));
            self.begin_anew();
        }
    }
}

impl ReaderProxy {
    /// A reader that gets samples from `start` on; `wants_history`: also those from before it was matched.
    pub(super) fn new(
        config: ReaderProxyConfig,
        is_reliable: bool,
        wants_history: bool,
        start: SequenceNumber,
    ) -> Self {
        Self {
            guid: config.guid,
            is_reliable,
            destinations: config.destinations,
            group: config.group,
            receive_buffer: config.receive_buffer,
            acknowledged: start.prev(),
            seen: start.prev(),
            start,
            requested: Vec::new(),
            requested_fragments: Vec::new(),
            fragments_seen: (SequenceNumber::ZERO, 0),
            gap_to: None,
            is_heartbeat_due: is_reliable,
            is_introduced: !is_reliable || config.wants_history,
            wants_history,
            vendor: config.vendor,
            last_count: None,
            last_base: SequenceNumber::ZERO,
            repairs: Repairs {
                charged: 0,
                more_at: Time::ZERO,
                delay: config::REPAIR_DELAY_MIN,
                fragments: (SequenceNumber::ZERO, 0),
                acknowledged: start.prev(),
                restarted_at: None,
            },
        }
    }

    /// Whether an ACKNACK is neither a repetition nor older than one that was seen (counts may wrap).
    pub(super) fn is_news(&mut self, now: Time, acknack: &AckNack) -> bool {
        if is_preemptive(acknack) {
            return true;
        }
        let is_news = self.last_count.is_none_or(|(last, at)| {
            acknack.count.wrapping_sub(last).cast_signed() > 0 || now.since(at) >= config::COUNT_TRUST
        });
        if is_news {
            self.last_count = Some((acknack.count, now));
            self.last_base = acknack.state.base();
        }
        is_news
    }

    /// Whether an ACKNACK that is no news asks for more than the one before it with the same count could name:
    /// a Weir reader's way to ask for samples that lie further apart than a set reaches. Its base acknowledges
    /// nothing.
    pub(super) fn is_continuation(&self, acknack: &AckNack) -> bool {
        self.vendor == VendorId::WEIR
            && self.last_count.is_some_and(|(last, _)| last == acknack.count)
            && !acknack.state.is_empty()
            && acknack.state.base() > self.last_base
    }

    /// Whether it may ask for more repairs now. A reader that gets window after window and acknowledges nothing of it
    /// is either cut off or has somebody else sent what it asks for.
    pub(super) fn may_ask(&mut self, now: Time, window: u64) -> bool {
        let limit = config::REPAIR_WINDOWS * window;
        if self.repairs.charged < limit {
            return true;
        }
        if now < self.repairs.more_at {
            return false;
        }
        self.repairs.charged = limit.saturating_sub(window);
        self.repairs.more_at = now + self.repairs.delay;
        self.repairs.delay = (self.repairs.delay * 2).min(config::REPAIR_DELAY_MAX);
        true
    }

    /// It was sent something again.
    pub(super) fn note_repaired(&mut self, charged: u64) {
        self.repairs.charged += charged;
    }

    /// It says that no fragment of a sample before `number` is missing.
    pub(super) fn note_fragments(&mut self, sn: SequenceNumber, number: u32) {
        if (sn, number) > self.repairs.fragments {
            self.repairs.fragments = (sn, number);
            self.repairs.begin_anew();
        }
    }

    /// Whether it answers every HEARTBEAT_FRAG.
    pub(super) fn tells_fragments(&self) -> bool {
        self.vendor == VendorId::WEIR
    }

    /// How many fragments of a sample it has looked for.
    pub(super) fn seen_fragments(&self, sn: SequenceNumber) -> u32 {
        if self.fragments_seen.0 == sn { self.fragments_seen.1 } else { 0 }
    }

    /// It has looked for so many fragments of a sample. Whether that is news.
    pub(super) fn see_fragments(&mut self, sn: SequenceNumber, seen: u32) -> bool {
        let is_news = seen > self.seen_fragments(sn);
        if is_news {
            self.fragments_seen = (sn, seen);
        }
        is_news
    }

    /// Whether an ACKNACK that is news takes back an acknowledgement: the reader lost this writer, found it again, and
    /// knows nothing of what came before. The writer may not have noticed: losses of one direction end a lease at one
    /// side only. A volatile reader continues behind what it acknowledged; see [`ReaderProxy::request`].
    pub(super) fn starts_anew(&self, acknack: &AckNack) -> bool {
        self.wants_history && !is_preemptive(acknack) && self.acknowledged_by(acknack) < self.acknowledged
    }

    /// The reader starts anew: it is treated as one that was matched just now.
    pub(super) fn start_anew(&mut self, now: Time, acknack: &AckNack) {
        self.acknowledged = self.acknowledged_by(acknack);
        self.seen = self.acknowledged;
        self.requested.clear();
        self.requested_fragments.clear();
        self.fragments_seen = (SequenceNumber::ZERO, 0);
        self.repairs.restart(now, self.acknowledged);
    }

    /// The last sample that an ACKNACK acknowledges of those that are meant for the reader.
    fn acknowledged_by(&self, acknack: &AckNack) -> SequenceNumber {
        acknack.state.base().max(SequenceNumber::FIRST).prev().max(self.start.prev())
    }

    /// Takes in an ACKNACK, and says whether something is to be repaired. `first` is the first sample in the
    /// history, `unsent` the first that was never sent.
    pub(super) fn update(
        &mut self,
        acknack: &AckNack,
        first: SequenceNumber,
        unsent: SequenceNumber,
        may_ask: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        let base = acknack.state.base();
        self.is_heartbeat_due |= is_preemptive(acknack) || (!acknack.is_final && acknack.state.is_empty());
        if is_preemptive(acknack) {
            // A volatile reader that starts anew continues behind what it acknowledged, and must be told so.
            self.is_introduced &= self.wants_history || self.acknowledged < self.start;
            self.start = if self.wants_history { self.start } else { self.acknowledged.next() };
        } else if !self.is_introduced {
            self.is_introduced = true;
            self.is_heartbeat_due = true;
        }
        if base.0 >= 1 && base <= unsent {
            self.repairs.acknowledge(base.prev());
            self.acknowledged = self.acknowledged.max(base.prev());
            self.seen = self.seen.max(self.acknowledged);
        }
        may_ask(self) && self.request(acknack, first, unsent)
    }

    /// Takes in the numbers that an ACKNACK asks for, and says whether something is to be repaired. Each is answered by
    /// a repair or by a GAP; a volatile reader gets nothing again that it acknowledged.
    pub(super) fn request(
        &mut self,
        acknack: &AckNack,
        first: SequenceNumber,
        unsent: SequenceNumber,
    ) -> bool {
        let there = first.max(self.start);
        let there = if self.wants_history { there } else { there.max(self.acknowledged.next()) };
        let before = self.requested.len();
        for sn in acknack.state.iter().filter(|sn| *sn < unsent) {
            if sn < there {
                self.gap_to = Some(there);
            } else if self.requested.len() < config::REORDER_MAX_SAMPLES {
                self.requested.push(sn);
                self.seen = self.seen.max(sn);
            }
        }
        self.requested.len() > before
    }
}

/// An ACKNACK that acknowledges nothing and only asks for a HEARTBEAT: base 0 (RTI, eProsima) or base 1 with
/// no number in the set and no final flag (Cyclone DDS and us). With the final flag, base 1 acknowledges a
/// writer that has nothing: answering it would never end.
fn is_preemptive(acknack: &AckNack) -> bool {
    let base = acknack.state.base().0;
    acknack.state.is_empty() && (base == 0 || (base == 1 && !acknack.is_final))
}
