//! Samples of readers whose policies only count and record: DEADLINE, LIFESPAN, OWNERSHIP and content filters.
//!
//! A value that passes takes the path of readers without policies. [`Cache::place`] then calls [`Cache::note_plain`],
//! which does all that these policies require of the next value of an instance whose writer owns it, and that is not
//! late. For any other sample it does nothing, and the cache decides as for the other policies
//! ([`by_policies`](super::by_policies)).

use weir_wire::Guid;

use super::ReaderCore;
use super::by_policies::EXPIRING_SPARE;
use super::cache::Cache;
use super::enforced::Enforced;
use crate::instance_deadlines::{finite, nanos};
use crate::key_hasher::Key;
use crate::time::Time;

impl ReaderCore {
    /// Whether a value may take the path of readers without policies.
    #[inline(always)]
    pub(super) fn is_plain(&self, now: Time, value: &[u8]) -> bool {
        let Some(enforced) = &self.delivery.cache.enforced else { return true };
        match enforced.plainness {
            Plainness::Counts => true,
            Plainness::Judges => self.is_admitted_early(now, value),
            Plainness::Decides => false,
        }
    }

    /// Whether a value passes the content filter, and no lease is over that decides who owns its instance.
    #[inline(never)]
    fn is_admitted_early(&self, now: Time, value: &[u8]) -> bool {
        let Some(enforced) = &self.delivery.cache.enforced else { return true };
        let is_settled = !(enforced.is_exclusive() && self.writers.liveliness.may_be_over(now));
        is_settled && !(enforced.filters_content() && enforced.rejects(value, None))
    }
}

impl Cache {
    /// Does what the policies require of a value that is placed next, if that is no more than to count and to record
    /// it. Otherwise does nothing, and returns `false`.
    #[inline(never)]
    pub(super) fn note_plain(&mut self, now: Time, writer: &Guid, index: u32) -> bool {
        let Self { enforced: Some(enforced), instances, .. } = self else { return true };
        if now < enforced.now
            || enforced.plainness == Plainness::Decides
            || instances.registrations.has_left()
        {
            return false;
        }
        if enforced.is_exclusive() && !enforced.is_owner(writer, (index, &instances.get(index).key)) {
            return false;
        }
        if enforced.deadlines.as_mut().is_some_and(|deadlines| !deadlines.written_in_time(now, index)) {
            return false;
        }
        enforced.now = now;
        !enforced.has_lifespans || self.note_expiry(now, writer)
    }

    /// Records when the sample expires that is appended next. Otherwise does nothing, and returns `false`: the entries
    /// may be moved before it is appended, or the records after that.
    #[inline(never)]
    fn note_expiry(&mut self, now: Time, writer: &Guid) -> bool {
        let Self { enforced: Some(enforced), entries, .. } = self else { return true };
        enforced.expiring.forget_before(entries.position_of(0));
        let is_full = enforced.expiring.len() > 2 * entries.ring.len() + EXPIRING_SPARE;
        if is_full || entries.may_have_many_dead() {
            return false;
        }
        enforced.stored(*writer, now, entries.end());
        true
    }
}

/// How much the policies of a reader have to do with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plainness {
    /// They count and record it.
    Counts,
    /// They decide whether it is delivered, and otherwise the same.
    Judges,
    /// They may do anything.
    Decides,
}

impl Enforced {
    /// Finds out anew how much the policies have to do with values.
    pub(super) fn judge(&mut self) {
        let is_plain = self.coherence.is_none()
            && self.purges.is_none()
            && self.separation.is_zero()
            && self.postponed.is_empty()
            && !self.is_by_source;
        self.plainness = match self.is_exclusive() || self.filters_content() {
            _ if !is_plain => Plainness::Decides,
            true => Plainness::Judges,
            false => Plainness::Counts,
        };
    }

    /// Whether a writer owns an instance.
    #[inline]
    fn is_owner(&self, writer: &Guid, (index, key): (u32, &Key)) -> bool {
        let record = self.instances.get(index as usize);
        record.is_some_and(|record| record.key == *key && record.owner.as_ref() == Some(writer))
    }

    /// The lifespan of a writer in nanoseconds, if it is not endless.
    #[inline]
    pub(super) fn lifespan_ns(&mut self, writer: Guid) -> Option<u64> {
        match self.recent {
            (recent, lifespan) if recent == writer => lifespan,
            _ => self.find_lifespan(writer),
        }
    }

    #[cold]
    fn find_lifespan(&mut self, writer: Guid) -> Option<u64> {
        let lifespan = self.writers.get(&writer).and_then(|policies| finite(policies.lifespan));
        self.recent = (writer, lifespan.map(nanos));
        self.recent.1
    }
}
