//! Queues discovery events until the driver takes them.
//!
//! A peer chooses how often its endpoints change, so changes are not queued one by one. Each pair of endpoints has at
//! most one place in the queue. When its turn comes, the driver gets the difference between what it last got and what
//! is true now, with the newest data. That is at most two events per pair, however long the queue was not read.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::local_endpoint::Pair;
use super::pairs::Pairs;
use crate::budget::Counts;
use crate::config;
use crate::discovery_event::{DiscoveryEvent, TypeDifference};
use crate::limits::Limits;
use crate::qos::PolicySet;

/// A local endpoint and another one of its topic.
pub(super) type PairKey = (EntityId, Guid);

/// The relations of all pairs, and what the driver knows of them.
#[derive(Debug, Default)]
pub(super) struct News {
    pairs: Pairs,
    queue: VecDeque<Queued>,
    /// Room for more queued entries is returned: those that a limits table reserves stay.
    kept: usize,
}

#[derive(Debug)]
enum Queued {
    Event(DiscoveryEvent),
    Pair(PairKey),
}

/// The next event.
#[derive(Debug)]
pub(super) enum Next {
    Event(DiscoveryEvent),
    Pair(PairKey, Change),
}

/// What changed about a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Matched,
    /// Still matched, with other data.
    Changed,
    Unmatched,
    Incompatible(PolicySet),
    Inconsistent(TypeDifference),
}

/// A relation in four bytes, which need no alignment: in a large domain, there is a pair for each remote endpoint.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Relation([u8; 4]);

#[derive(Debug, Default)]
pub(super) struct PairState {
    now: Relation,
    known: Relation,
    /// The match that the driver knows has ended since, perhaps to begin anew.
    has_ended: bool,
    /// The other endpoint's data changed since the driver was notified.
    is_changed: bool,
    is_queued: bool,
}

impl News {
    /// Reserves memory for the relations that a limits table allows. Events that are not about one wait in the same
    /// queue, a few of each participant.
    pub(super) fn new(table: Option<&Limits>) -> Self {
        let (pairs, queued) = table.map_or((0, 0), Self::rooms);
        let kept = queued.max(config::DISCOVERY_BUFFER_BYTES / size_of::<Queued>());
        let pairs = if table.is_some() { Pairs::with_room(pairs) } else { Pairs::default() };
        Self { pairs, queue: VecDeque::with_capacity(queued), kept }
    }

    fn rooms(limits: &Limits) -> (usize, usize) {
        let pairs = Counts::most(limits).relations;
        (pairs, pairs.saturating_add(limits.participants.saturating_mul(8)).saturating_add(16))
    }

    /// Returns the memory for the relations of a limits table, in bytes.
    pub(super) fn bytes(limits: &Limits) -> usize {
        let (pairs, queued) = Self::rooms(limits);
        Pairs::bytes(pairs).saturating_add(queued.saturating_mul(size_of::<Queued>()))
    }

    /// Returns the number of pairs.
    pub(super) fn relations(&self) -> usize {
        self.pairs.len()
    }

    /// Queues an event that is not about a pair, unless it repeats the last one.
    pub(super) fn push(&mut self, event: DiscoveryEvent) {
        if !matches!(self.queue.back(), Some(Queued::Event(last)) if *last == event) {
            self.queue.push_back(Queued::Event(event));
        }
    }

    /// Queues the loss of a participant. If its discovery still waits, the driver is notified of neither: forged
    /// announcements would make the queue grow.
    pub(super) fn push_lost(&mut self, prefix: GuidPrefix) {
        let found = self.queue.iter().rposition(|queued| match queued {
            Queued::Event(DiscoveryEvent::ParticipantDiscovered { prefix: of, .. }) => *of == prefix,
            _ => false,
        });
        match found {
            Some(place) => drop(self.queue.remove(place)),
            None => self.push(DiscoveryEvent::ParticipantLost { prefix }),
        }
    }

    /// Returns the relation of a pair.
    pub(super) fn relation(&self, key: PairKey) -> Option<Pair> {
        self.pairs.get(&key)?.now.get()
    }

    /// Returns the endpoints that a local one is related to.
    pub(super) fn related(&self, local: EntityId) -> impl Iterator<Item = Guid> + '_ {
        self.pairs.of(local, None).map(|(other, _)| other)
    }

    /// Returns how many endpoints of a participant a local endpoint matches.
    pub(super) fn matches_with(&self, local: EntityId, prefix: GuidPrefix) -> usize {
        self.pairs.of(local, Some(prefix)).filter(|(_, state)| state.now == Relation::MATCHED).count()
    }

    /// Sets the relation of a pair. `is_changed`: if it still matches, its data are new.
    pub(super) fn set(&mut self, key: PairKey, now: Option<Pair>, is_changed: bool) {
        let (state, now) = (self.pairs.get_or_default(key), Relation::of(now));
        state.has_ended |= state.now == Relation::MATCHED && now != state.now;
        state.is_changed |= is_changed;
        state.now = now;
        if !state.is_queued && state.has_news() {
            state.is_queued = true;
            self.queue.push_back(Queued::Pair(key));
        } else if !state.is_queued && now == Relation::NONE {
            self.pairs.remove(&key);
        }
    }

    /// Forgets the pairs of a local endpoint that is gone: nothing more is reported of them.
    pub(super) fn forget_local(&mut self, local: EntityId) {
        let others: Vec<_> = self.related(local).collect();
        for other in others {
            self.pairs.remove(&(local, other));
        }
    }

    /// Forgets all pairs.
    pub(super) fn forget_pairs(&mut self) {
        self.pairs.clear();
    }

    /// Takes the next event.
    pub(super) fn next(&mut self) -> Option<Next> {
        loop {
            let Some(queued) = self.queue.pop_front() else {
                // What many matches at once have left is not needed again.
                self.queue.shrink_to(self.kept);
                return None;
            };
            let key = match queued {
                Queued::Event(event) => return Some(Next::Event(event)),
                Queued::Pair(key) => key,
            };
            let Some(state) = self.pairs.get_mut(&key) else { continue };
            let change = state.take_change();
            state.is_queued = state.has_news();
            if state.is_queued {
                self.queue.push_front(Queued::Pair(key));
            } else if state.now == Relation::NONE {
                self.pairs.remove(&key);
            }
            if let Some(change) = change {
                return Some(Next::Pair(key, change));
            }
        }
    }

    /// Returns the memory of pairs and waiting events, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<Queued>() + self.pairs.len() * size_of::<(PairKey, PairState)>()
    }
}

impl Relation {
    const NONE: Self = Self([0; 4]);
    const MATCHED: Self = Self(1_u32.to_ne_bytes());
    const INCOMPATIBLE: u32 = 1 << 31;
    const OTHER_NAME: Self = Self((1_u32 << 30).to_ne_bytes());
    const OTHER_KEY: Self = Self((1_u32 << 29).to_ne_bytes());

    fn of(pair: Option<Pair>) -> Self {
        match pair {
            None => Self::NONE,
            Some(Pair::Matched) => Self::MATCHED,
            Some(Pair::Incompatible(policies)) => Self((Self::INCOMPATIBLE | policies.bits()).to_ne_bytes()),
            Some(Pair::Inconsistent(TypeDifference::Name)) => Self::OTHER_NAME,
            Some(Pair::Inconsistent(TypeDifference::Key)) => Self::OTHER_KEY,
        }
    }

    fn get(self) -> Option<Pair> {
        match self {
            Self::MATCHED => Some(Pair::Matched),
            Self::OTHER_NAME => Some(Pair::Inconsistent(TypeDifference::Name)),
            Self::OTHER_KEY => Some(Pair::Inconsistent(TypeDifference::Key)),
            Self::NONE => None,
            Self(bytes) => {
                let bits = u32::from_ne_bytes(bytes) & !Self::INCOMPATIBLE;
                Some(Pair::Incompatible(PolicySet::of_bits(bits)))
            }
        }
    }
}

impl core::fmt::Debug for Relation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.get().fmt(f)
    }
}

impl PairState {
    fn has_news(&self) -> bool {
        let is_known = self.known == Relation::MATCHED;
        self.known != self.now || (is_known && (self.has_ended || self.is_changed))
    }

    /// Returns the next difference, which from then on is known.
    fn take_change(&mut self) -> Option<Change> {
        let was_matched = self.known == Relation::MATCHED;
        if core::mem::take(&mut self.has_ended) && was_matched {
            self.known = Relation::NONE;
            return Some(Change::Unmatched);
        }
        let is_changed = core::mem::take(&mut self.is_changed);
        let before = core::mem::replace(&mut self.known, self.now);
        match self.now.get() {
            Some(Pair::Matched) if was_matched => is_changed.then_some(Change::Changed),
            Some(Pair::Matched) => Some(Change::Matched),
            Some(Pair::Incompatible(policies)) => {
                (before != self.now).then_some(Change::Incompatible(policies))
            }
            Some(Pair::Inconsistent(difference)) => {
                (before != self.now).then_some(Change::Inconsistent(difference))
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::PolicyId;

    const KEY: PairKey =
        (EntityId([0, 0, 1, 2]), Guid { prefix: GuidPrefix([7; 12]), entity: EntityId([0, 0, 1, 7]) });
    const MATCHED: Option<Pair> = Some(Pair::Matched);
    const POLICIES: PolicySet = PolicySet::EMPTY.with(PolicyId::Reliability);
    const REFUSED: Option<Pair> = Some(Pair::Incompatible(POLICIES));

    fn changes(news: &mut News) -> Vec<Change> {
        core::iter::from_fn(|| news.next())
            .map(|next| match next {
                Next::Pair(KEY, change) => change,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_pair_that_changes_often_has_one_place_in_the_queue() {
        let mut news = News::default();
        news.set(KEY, MATCHED, false);
        assert_eq!(changes(&mut news), [Change::Matched]);
        (0..1000).for_each(|_| news.set(KEY, MATCHED, true));
        assert_eq!(news.queue.len(), 1);
        assert_eq!(changes(&mut news), [Change::Changed]);
        for _ in 0..1000 {
            news.set(KEY, None, false);
            news.set(KEY, MATCHED, false);
        }
        assert_eq!(news.queue.len(), 1);
        assert_eq!(changes(&mut news), [Change::Unmatched, Change::Matched]);
        assert_eq!(changes(&mut news), []);
    }

    #[test]
    fn a_participant_that_is_lost_before_it_is_known_is_not_told() {
        let mut news = News::default();
        let [known, forged] = [1, 2].map(|number| GuidPrefix([number; 12]));
        let discovered =
            |prefix| DiscoveryEvent::ParticipantDiscovered { prefix, vendor: weir_wire::VendorId::WEIR };
        news.push(discovered(known));
        assert!(matches!(news.next(), Some(Next::Event(event)) if event == discovered(known)));
        for _ in 0..100 {
            news.push(discovered(forged));
            news.push_lost(forged);
            // The one that was reported comes and goes.
            news.push_lost(known);
            news.push(discovered(known));
        }
        assert_eq!(news.queue.len(), 2);
        let lost = DiscoveryEvent::ParticipantLost { prefix: known };
        for expected in [lost, discovered(known)] {
            assert!(matches!(news.next(), Some(Next::Event(event)) if event == expected));
        }
        assert!(news.next().is_none());
    }

    #[test]
    fn a_match_that_ends_before_it_is_known_is_not_told() {
        let mut news = News::default();
        news.set(KEY, MATCHED, false);
        news.set(KEY, None, false);
        assert_eq!(changes(&mut news), []);
        assert_eq!((news.pairs.len(), news.relation(KEY)), (0, None));
    }

    #[test]
    fn a_relation_is_read_as_it_was_stored_and_a_pair_takes_27_bytes() {
        let policies =
            [PolicySet::EMPTY, POLICIES, PolicySet::EMPTY.with(PolicyId::TypeConsistencyEnforcement)];
        let differences = [TypeDifference::Name, TypeDifference::Key].map(Pair::Inconsistent);
        let pairs = [Pair::Matched].into_iter().chain(policies.map(Pair::Incompatible)).chain(differences);
        for pair in pairs.map(Some).chain([None]) {
            assert_eq!(Relation::of(pair).get(), pair);
        }
        assert_eq!(size_of::<(Guid, PairState)>(), 27);
    }

    #[test]
    fn a_pair_goes_through_every_relation() {
        let mut news = News::default();
        news.set(KEY, REFUSED, false);
        assert_eq!(changes(&mut news), [Change::Incompatible(POLICIES)]);
        news.set(KEY, MATCHED, true);
        assert_eq!(changes(&mut news), [Change::Matched]);
        news.set(KEY, REFUSED, true);
        assert_eq!(changes(&mut news), [Change::Unmatched, Change::Incompatible(POLICIES)]);
        news.set(KEY, None, false);
        assert_eq!(changes(&mut news), []);
        assert_eq!(news.pairs.len(), 0);
    }

    #[test]
    fn a_local_endpoint_that_is_gone_is_known_nothing_more() {
        let mut news = News::default();
        news.set(KEY, MATCHED, false);
        news.forget_local(KEY.0);
        assert_eq!(changes(&mut news), []);
    }
}
