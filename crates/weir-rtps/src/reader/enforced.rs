//! Policies that decide which samples of a matched writer are delivered, and for how long: LIFESPAN (DDS 1.4,
//! 2.2.3.16), DEADLINE (2.2.3.7), OWNERSHIP (2.2.3.9), DESTINATION_ORDER (2.2.3.17) and TIME_BASED_FILTER (2.2.3.12).
//! Also the content filter of a reader (2.2.2.3.3).
//! Also in which order they are accessed: PRESENTATION (2.2.3.6).
//!
//! Readers and writers that use none of them have no such record, and a sample costs them one comparison.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};
use core::time::Duration;

use weir_filter::Filter;
use weir_wire::{Guid, ParameterList, SequenceNumber, Timestamp};

use super::ReaderCore;
use super::coherence::Coherence;
use super::config::ReaderConfig;
use super::deferred::{Postponed, PostponedValues, Purges};
use super::expiring::Expiring;
use super::group_numbers::{GroupNumbers, SampleAt};
use super::plain::Plainness;
use super::states::InstanceState;
use super::stored::StoredSample;
use super::writer_proxy::Author;
use crate::change_kind::ChangeKind;
use crate::content_filter::reported_result;
use crate::instance_deadlines::{DeadlineMissedStatus, InstanceDeadlines, finite};
use crate::key_hasher::Key;
use crate::qos::{DestinationOrder, Ownership, Presentation, PresentationScope, Qos, Reliability};
use crate::time::Time;

/// The policies of a writer that its readers enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterPolicies {
    /// Its samples are not delivered later than this after they arrived (LIFESPAN). The writer removes them by its own
    /// clock, so that clocks need not agree.
    pub lifespan: Duration,
    /// Under exclusive ownership, the strongest writer owns an instance (OWNERSHIP_STRENGTH).
    pub strength: i32,
}

impl WriterPolicies {
    /// Takes them from what a writer announces.
    #[must_use]
    pub fn of(qos: &Qos) -> Self {
        Self { lifespan: qos.lifespan, strength: qos.ownership_strength }
    }
}

/// What the policies know of writers, instances and samples.
#[derive(Debug)]
pub(super) struct Enforced {
    is_keyed: bool,
    is_exclusive: bool,
    pub(super) is_by_source: bool,
    pub(super) separation: Duration,
    content_filter: Option<Arc<Filter>>,
    filter_signature: Option<[u8; 16]>,
    pub(super) writers: BTreeMap<Guid, WriterPolicies>,
    /// The writer of the last sample that was recorded, and its lifespan in nanoseconds.
    pub(super) recent: (Guid, Option<u64>),
    /// Some writer has had a lifespan.
    pub(super) has_lifespans: bool,
    /// See [`ReaderCore::is_plain`].
    pub(super) plainness: Plainness,
    /// Writers that have left, and whose instances were not all ended yet. Whether they are to be forgotten then.
    gone: Vec<(Guid, bool)>,
    /// By the index of the instance.
    pub(super) instances: Vec<InstanceRecord>,
    pub(super) deadlines: Option<InstanceDeadlines>,
    missed: DeadlineMissedStatus,
    /// When samples expire.
    pub(super) expiring: Expiring,
    /// The last value of a burst is delivered when the minimum separation ends.
    delivers_last: bool,
    pub(super) postponed: PostponedValues,
    pub(super) purges: Option<Purges>,
    /// The latest time known.
    pub(super) now: Time,
    /// [`Enforced::next_at`] may be earlier than before.
    pub(super) has_new_timeout: bool,
    /// The sets that are not accessible yet; `None`: without coherent access.
    pub(super) coherence: Option<Coherence>,
    /// In which order samples are accessed.
    pub(super) order: AccessOrder,
    /// The publishers of writers, if their access scope is GROUP.
    groups: BTreeMap<Guid, Guid>,
    /// The numbers of samples in their groups, if the order goes by them.
    pub(super) numbers: GroupNumbers,
    pub(super) counts: EnforcedCounts,
}

/// In which order samples are accessed (DDS 1.4, 2.2.2.5.3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessOrder {
    /// As they arrived: without PRESENTATION, or with ordered access to a topic.
    Arrival,
    /// Those of an instance together.
    ByInstance,
    /// One at a time, by their number in the group.
    OneOfGroup,
}

impl AccessOrder {
    fn of(presentation: Presentation) -> Self {
        let Presentation { scope, coherent_access, ordered_access } = presentation;
        match (scope, ordered_access) {
            (PresentationScope::Instance, false) if !coherent_access => Self::Arrival,
            (PresentationScope::Group, true) => Self::OneOfGroup,
            (PresentationScope::Topic, true) => Self::Arrival,
            _ => Self::ByInstance,
        }
    }
}

/// Samples that were not delivered, by policy.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EnforcedCounts {
    pub(super) expired: u64,
    pub(super) not_owned: u64,
    pub(super) out_of_order: u64,
    pub(super) filtered: u64,
    pub(super) content_filtered: u64,
    pub(super) purged: u64,
}

/// What becomes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Deliver,
    /// Delivered at this time, unless another value replaces it before.
    Postpone(Time),
    LeaveOut,
    /// A dispose is left out, and the unregistration that came with it is delivered.
    Unregister,
}

/// What is known of one instance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InstanceRecord {
    /// Differs from the key of the instance once the index belongs to another one.
    pub(super) key: Key,
    pub(super) owner: Option<Guid>,
    /// The last source timestamp, and its writer, which decides between equal ones.
    latest: Option<(Timestamp, Guid)>,
    /// When the last value was delivered.
    delivered_at: Option<Time>,
}

impl ReaderCore {
    /// Whether policies decide which samples the application accesses, and in which order: it then calls
    /// [`ReaderCore::access`] instead of [`ReaderCore::take_next`], after [`ReaderCore::expire`].
    #[inline]
    pub fn has_policies(&self) -> bool {
        self.delivery.cache.enforced.is_some()
    }

    /// Whether they decide in which order: otherwise [`ReaderCore::take_next`] takes the next sample, too.
    #[inline]
    pub fn has_access_order(&self) -> bool {
        let is_ordered = |it: &Enforced| it.order != AccessOrder::Arrival || it.coherence.is_some();
        self.delivery.cache.enforced.as_deref().is_some_and(is_ordered)
    }
}

impl Enforced {
    /// `None`: the reader's policies are at their defaults.
    pub(super) fn new(config: &ReaderConfig) -> Option<Box<Self>> {
        let enforced = Self::with(config);
        let is_used = enforced.is_exclusive
            || enforced.is_by_source
            || !enforced.separation.is_zero()
            || enforced.deadlines.is_some()
            || enforced.purges.is_some()
            || enforced.content_filter.is_some()
            || enforced.coherence.is_some()
            || enforced.order != AccessOrder::Arrival;
        is_used.then(|| Box::new(enforced))
    }

    pub(super) fn with(config: &ReaderConfig) -> Self {
        let mut enforced = Self::without_judgement(config);
        enforced.judge();
        enforced
    }

    fn without_judgement(config: &ReaderConfig) -> Self {
        Self {
            recent: (Guid::UNKNOWN, None),
            has_lifespans: false,
            plainness: Plainness::Decides,
            is_keyed: config.key_of.is_some(),
            is_exclusive: config.ownership == Ownership::Exclusive,
            is_by_source: config.destination_order == DestinationOrder::BySourceTimestamp,
            separation: config.minimum_separation,
            content_filter: config.content_filter.clone(),
            filter_signature: config.filter_signature,
            writers: BTreeMap::new(),
            gone: Vec::new(),
            instances: Vec::new(),
            deadlines: InstanceDeadlines::new(config.deadline),
            missed: DeadlineMissedStatus::default(),
            expiring: Expiring::default(),
            delivers_last: config.reliability == Reliability::Reliable,
            postponed: PostponedValues::default(),
            purges: Purges::new(config.lifecycle),
            now: Time::ZERO,
            has_new_timeout: false,
            coherence: Coherence::new(config),
            order: AccessOrder::of(config.presentation),
            groups: BTreeMap::new(),
            numbers: GroupNumbers::default(),
            counts: EnforcedCounts::default(),
        }
    }

    /// Whether one writer at a time owns an instance.
    #[inline]
    pub(super) fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    /// Changes the content filter.
    pub(super) fn set_content_filter(&mut self, config: &ReaderConfig) {
        self.content_filter.clone_from(&config.content_filter);
        self.filter_signature = config.filter_signature;
        self.judge();
    }

    /// Whether the content of a value does not pass. `payload`: with its encapsulation header. `list`: inline QoS, in
    /// which its writer may say so.
    #[inline]
    pub(super) fn rejects(&self, payload: &[u8], list: Option<&ParameterList<'_>>) -> bool {
        let Some(filter) = &self.content_filter else { return false };
        let reported =
            list.zip(self.filter_signature.as_ref()).and_then(|(list, it)| reported_result(list, it));
        !reported.unwrap_or_else(|| filter.passes(payload))
    }

    /// Whether values are filtered by their content.
    pub(super) fn filters_content(&self) -> bool {
        self.content_filter.is_some()
    }

    /// Sets the policies of a matched writer.
    pub(super) fn set_writer(&mut self, writer: Guid, policies: WriterPolicies) {
        self.has_lifespans |= finite(policies.lifespan).is_some();
        self.recent = (Guid::UNKNOWN, None);
        self.writers.insert(writer, policies);
    }

    /// Forgets a writer that is not matched any more, once its instances have ended.
    pub(super) fn forget_writer(&mut self, writer: Guid) {
        if let Some((_, is_to_forget)) = self.gone.iter_mut().find(|(gone, _)| *gone == writer) {
            *is_to_forget = true;
            return;
        }
        if self.coherence.as_ref().is_some_and(|coherence| coherence.has_waiting(writer)) {
            // They have its lifespan when they become accessible.
            return;
        }
        self.recent = (Guid::UNKNOWN, None);
        self.writers.remove(&writer);
        self.groups.remove(&writer);
    }

    /// Sets the publisher of a writer.
    pub(super) fn set_group(&mut self, writer: Guid, group: Guid) {
        if let Some(coherence) = &mut self.coherence {
            coherence.set_group(writer, group);
        }
        if self.order == AccessOrder::OneOfGroup {
            self.groups.insert(writer, group);
        }
    }

    /// Records the number of a sample in its group, if the order goes by it.
    pub(super) fn note_number(&mut self, (writer, sn): SampleAt, number: SequenceNumber) {
        if self.order == AccessOrder::OneOfGroup
            && let Some(group) = self.groups.get(&writer)
        {
            self.numbers.insert((writer, sn), *group, number);
        }
    }

    /// The position of a sample in the order of its group: of its writer, if it has none.
    pub(super) fn position(&self, writer: Guid, sn: SequenceNumber) -> (Guid, SequenceNumber) {
        self.numbers.find((writer, sn)).unwrap_or((writer, sn))
    }

    /// A writer is matched again, and not to be forgotten.
    pub(super) fn remember_writer(&mut self, writer: Guid) {
        let is_to_forget = self.gone.iter_mut().filter(|(gone, _)| *gone == writer);
        is_to_forget.for_each(|(_, is_to_forget)| *is_to_forget = false);
    }

    /// A writer is matched again: what was kept for sets of it that waited is over.
    pub(super) fn begin_writer(&mut self, writer: Guid) {
        if self.gone.iter().all(|(gone, _)| *gone != writer) {
            self.forget_writer(writer);
        }
    }

    /// The owner of an instance.
    pub(super) fn owner(&self, index: u32) -> Option<Guid> {
        self.instances.get(index as usize)?.owner
    }

    /// A writer has left, or its liveliness has ended.
    pub(super) fn writer_gone(&mut self, writer: Guid) {
        if self.gone.iter().all(|(gone, _)| *gone != writer) {
            self.gone.push((writer, false));
        }
    }

    /// All instances of a writer that has left were ended.
    pub(super) fn all_left(&mut self, writer: Guid) {
        let place = self.gone.iter().position(|(gone, _)| *gone == writer);
        if place.is_some_and(|place| self.gone.remove(place).1) {
            self.forget_writer(writer);
        }
    }

    /// Changes the policies that may change. The instances that are alive begin a new period.
    pub(super) fn set_policies(
        &mut self,
        now: Time,
        config: &ReaderConfig,
        alive: impl Iterator<Item = (u32, Key)>,
    ) {
        self.now = self.now.max(now);
        self.separation = config.minimum_separation;
        self.purges = Purges::new(config.lifecycle);
        self.deadlines = InstanceDeadlines::new(config.deadline);
        if let Some(deadlines) = &mut self.deadlines {
            for (index, key) in alive {
                let _none_is_missed = deadlines.written(now, index);
                // Values in time do not look at it any more.
                record_of(&mut self.instances, (index, key));
            }
        }
        self.has_new_timeout = true;
        self.judge();
    }

    /// Decides whether a sample is delivered.
    pub(super) fn admits(
        &mut self,
        (index, key): (u32, Key),
        author: Author,
        sample: &StoredSample,
    ) -> Verdict {
        let (now, writer) = (self.now, author.guid);
        let record = record_of(&mut self.instances, (index, key));
        if self.is_exclusive {
            // The timer that ends its ownership may be late.
            let is_late = self.deadlines.as_ref().is_some_and(|it| it.is_missed(now, index));
            record.owner = record.owner.filter(|_| !is_late);
        }
        if self.is_exclusive && !take_ownership(&self.writers, record, author) {
            self.counts.not_owned += 1;
            return Verdict::LeaveOut;
        }
        // Which writers an instance has, the order of their time stamps does not decide.
        if self.is_by_source
            && sample.kind != ChangeKind::Unregistered
            && let Some(timestamp) = sample.source_timestamp
        {
            let this = (timestamp, writer);
            if record.latest.is_some_and(|latest| compare(&this, &latest).is_lt()) {
                self.counts.out_of_order += 1;
                let is_end = sample.kind == ChangeKind::DisposedUnregistered;
                return if is_end { Verdict::Unregister } else { Verdict::LeaveOut };
            }
            record.latest = Some(this);
        }
        let is_value = sample.kind == ChangeKind::Alive;
        if !is_value {
            return Verdict::Deliver;
        }
        let is_early = !self.separation.is_zero()
            && record.delivered_at.is_some_and(|at| now.since(at) < self.separation);
        if !is_early && !self.separation.is_zero() {
            record.delivered_at = Some(now);
        }
        self.note_value((index, key));
        match (is_early, self.delivers_last) {
            (false, _) => Verdict::Deliver,
            // A later value may come, which is delivered at once if the separation has ended by then.
            (true, true) => Verdict::Postpone(now + self.separation),
            (true, false) => {
                self.counts.filtered += 1;
                Verdict::LeaveOut
            }
        }
    }

    /// A value has arrived: the deadline of its instance begins anew. It is the promise of the writer, which does not
    /// know that values within the minimum separation are delivered later, or not at all.
    fn note_value(&mut self, (index, key): (u32, Key)) {
        let Some(deadlines) = &mut self.deadlines else { return };
        let before = deadlines.next_at();
        let periods = deadlines.written(self.now, index);
        if periods > 0 {
            self.missed.missed(periods, self.is_keyed.then(|| key.to_bytes()));
        }
        self.has_new_timeout |= deadlines.next_at() != before;
    }

    /// Keeps a value that has arrived until it is due. Returns the one that it replaces.
    pub(super) fn postpone(
        &mut self,
        index: u32,
        (due_at, arrived_at): (Time, Time),
        sample: (Guid, SequenceNumber, StoredSample),
    ) -> Option<Postponed> {
        self.has_new_timeout |= self.postponed.next_at().is_none_or(|next| due_at < next);
        let replaced = self.postponed.add(index, due_at, arrived_at, sample);
        self.counts.filtered += u64::from(replaced.is_some());
        replaced
    }

    /// Takes a postponed value whose time has come.
    pub(super) fn take_postponed(&mut self, now: Time) -> Option<(u32, Postponed)> {
        self.now = self.now.max(now);
        self.postponed.take_due(now)
    }

    /// A postponed value is delivered, unless its lifespan has ended meanwhile.
    pub(super) fn admits_postponed(&mut self, (index, key): (u32, Key), value: &Postponed) -> bool {
        if self.is_over(value.writer, value.arrived_at) {
            self.counts.expired += 1;
            return false;
        }
        if let Some(record) = self.instances.get_mut(index as usize).filter(|record| record.key == key) {
            record.delivered_at = Some(self.now);
        }
        true
    }

    /// The time until which a value that finds no room now is postponed again.
    pub(super) fn retry_at(&self) -> Time {
        self.now + self.separation.max(RETRY_MIN)
    }

    /// Notes the state of an instance, which may have changed.
    pub(super) fn note_state(&mut self, place: (u32, Key), state: InstanceState) {
        let Some(purges) = &mut self.purges else { return };
        let before = purges.next_at();
        purges.note(self.now, place, state);
        self.has_new_timeout |= purges.next_at() != before;
    }

    /// Advances the clock, and returns the latest time known.
    pub(super) fn advance(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// A writer has unregistered an instance: it does not own it any more.
    pub(super) fn unregistered(&mut self, index: u32, writer: Guid) {
        if let Some(record) = self.instances.get_mut(index as usize).filter(|it| it.owner == Some(writer)) {
            record.owner = None;
        }
    }

    /// Whether the lifespan of a sample has ended that arrived at this time.
    pub(super) fn is_over(&mut self, writer: Guid, arrived_at: Time) -> bool {
        let lifespan = self.lifespan_ns(writer);
        lifespan.is_some_and(|lifespan| self.now.nanos_since(arrived_at) >= lifespan)
    }

    /// Records where a sample was stored.
    #[inline]
    pub(super) fn stored(&mut self, writer: Guid, arrived_at: Time, position: u64) {
        if let Some(lifespan) = self.lifespan_ns(writer) {
            self.has_new_timeout |= self.expiring.add(arrived_at.plus_nanos(lifespan), position);
        }
    }

    /// Counts missed deadlines. The owner of such an instance loses it.
    pub(super) fn expire_deadlines(&mut self, now: Time) {
        self.now = self.now.max(now);
        let Some(deadlines) = &mut self.deadlines else { return };
        let (missed, instances, is_keyed) = (&mut self.missed, &mut self.instances, self.is_keyed);
        deadlines.expire(now, |index, periods| {
            let record = instances.get_mut(index as usize);
            missed.missed(periods, record.as_ref().filter(|_| is_keyed).map(|record| record.key.to_bytes()));
            if let Some(record) = record {
                record.owner = None;
            }
        });
    }

    /// An instance has ended.
    pub(super) fn ended(&mut self, index: u32) {
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.ended(index);
        }
    }

    /// When the next sample expires or is delivered, a deadline ends, or samples are removed.
    pub(super) fn next_at(&self) -> Option<Time> {
        let expiry = self.expiring.next_at();
        let deadline = self.deadlines.as_ref().and_then(InstanceDeadlines::next_at);
        let purge = self.purges.as_ref().and_then(Purges::next_at);
        expiry.into_iter().chain(deadline).chain(self.postponed.next_at()).chain(purge).min()
    }

    /// The deadlines that were missed.
    pub(super) fn missed(&mut self) -> &mut DeadlineMissedStatus {
        &mut self.missed
    }

    /// Whether deadlines were missed since the status was taken.
    pub(super) fn has_news(&self) -> bool {
        self.missed.has_news()
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.instances.capacity() * size_of::<InstanceRecord>()
            + self.expiring.memory()
            + self.deadlines.as_ref().map_or(0, InstanceDeadlines::memory)
            + self.postponed.memory()
            + self.purges.as_ref().map_or(0, Purges::memory)
            + self.writers.len() * size_of::<(Guid, WriterPolicies)>()
            + self.numbers.memory()
            + self.coherence.as_ref().map_or(0, Coherence::memory)
    }
}

/// Returns what is known of an instance. Nothing is, if the index belonged to another one before.
fn record_of(instances: &mut Vec<InstanceRecord>, (index, key): (u32, Key)) -> &mut InstanceRecord {
    if instances.len() <= index as usize {
        instances.resize(index as usize + 1, InstanceRecord::default());
    }
    let record = &mut instances[index as usize];
    if record.key != key {
        *record = InstanceRecord { key, ..InstanceRecord::default() };
    }
    record
}

/// Whether a writer owns an instance, after it has written it: it did before, no writer did, or it is stronger. Between
/// equal writers, the one with the lower GUID is stronger, so that all readers agree. A writer that is not alive owns
/// none: what was held back of it is delivered unless another one owns the instance.
fn take_ownership(
    writers: &BTreeMap<Guid, WriterPolicies>,
    record: &mut InstanceRecord,
    Author { guid: writer, is_alive, .. }: Author,
) -> bool {
    let rank = |guid: Guid| (writers.get(&guid).map_or(0, |policies| policies.strength), Reverse(guid));
    let owns = record.owner.is_none_or(|owner| owner == writer || (is_alive && rank(writer) >= rank(owner)));
    if owns && is_alive {
        record.owner = Some(writer);
    }
    owns
}

fn compare(one: &(Timestamp, Guid), other: &(Timestamp, Guid)) -> Ordering {
    let key = |of: &(Timestamp, Guid)| (of.0.seconds, of.0.fraction, of.1);
    key(one).cmp(&key(other))
}

/// Least time until a value that found no room is tried again.
const RETRY_MIN: Duration = Duration::from_millis(1);
