//! Deadlines of instances (DEADLINE; DDS 1.4, 2.2.3.7), for writers and readers.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use crate::time::Time;

/// How often instances were not written within the period of DEADLINE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadlineMissedStatus {
    /// Total number of periods, over all instances.
    pub total_count: u64,
    /// Periods since the status was last taken.
    pub total_count_change: u64,
    /// Key hash of the instance that missed the last one; `None` before that, and for topics without a key.
    pub last_key: Option<[u8; 16]>,
}

impl DeadlineMissedStatus {
    pub(crate) fn missed(&mut self, periods: u64, key: Option<[u8; 16]>) {
        self.total_count = self.total_count.saturating_add(periods);
        self.total_count_change = self.total_count_change.saturating_add(periods);
        self.last_key = key;
    }

    pub(crate) fn has_news(&self) -> bool {
        self.total_count_change > 0
    }

    pub(crate) fn take(&mut self) -> Self {
        let status = *self;
        self.total_count_change = 0;
        status
    }
}

/// When each instance has to be written next. A sample only sets a number; the queue is put in order when a time in it
/// is reached, which is at most once per instance and period.
#[derive(Debug)]
pub(crate) struct InstanceDeadlines {
    period: Duration,
    period_ns: u64,
    /// By the index of the instance.
    list: Vec<Deadline>,
    /// For each instance that is watched, a time at or before its deadline.
    queue: BTreeSet<(Time, u32)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Deadline {
    /// `None`: the instance has ended.
    at: Option<Time>,
    is_queued: bool,
}

impl InstanceDeadlines {
    /// `None`: the period is infinite.
    pub(crate) fn new(period: Duration) -> Option<Self> {
        // Zero would be due without end.
        let period = period.max(PERIOD_MIN);
        (period < ENDLESS).then(|| Self {
            period,
            period_ns: nanos(period),
            list: Vec::new(),
            queue: BTreeSet::new(),
        })
    }

    /// An instance was written. Returns how many periods it has missed before, if the timer is late.
    #[must_use]
    pub(crate) fn written(&mut self, now: Time, index: u32) -> u64 {
        if self.list.len() <= index as usize {
            self.list.resize(index as usize + 1, Deadline::default());
        }
        let at = now + self.period;
        let period = self.period;
        let deadline = &mut self.list[index as usize];
        let before = deadline.at.replace(at);
        if !core::mem::replace(&mut deadline.is_queued, true) {
            self.queue.insert((at, index));
        }
        before.map_or(0, |before| missed_periods(before, now, period))
    }

    /// Does the same if the deadline of the instance has not passed, and nothing else changes. Otherwise does nothing,
    /// and returns `false`.
    #[inline]
    pub(crate) fn written_in_time(&mut self, now: Time, index: u32) -> bool {
        let at = Time(now.0.saturating_add(self.period_ns));
        let deadline = self.list.get_mut(index as usize).filter(|it| it.is_queued);
        let Some(before) = deadline.and_then(|it| it.at.as_mut()).filter(|before| **before > now) else {
            return false;
        };
        *before = at;
        true
    }

    /// An instance has ended: it has no deadline until it is written again.
    pub(crate) fn ended(&mut self, index: u32) {
        if let Some(deadline) = self.list.get_mut(index as usize) {
            deadline.at = None;
        }
    }

    /// Returns the instances that have a deadline.
    pub(crate) fn watched(&self) -> impl Iterator<Item = u32> + '_ {
        self.list.iter().zip(0..).filter(|(deadline, _)| deadline.at.is_some()).map(|(_, index)| index)
    }

    /// Returns whether an instance was not written in time.
    pub(crate) fn is_missed(&self, now: Time, index: u32) -> bool {
        let deadline = self.list.get(index as usize).and_then(|deadline| deadline.at);
        deadline.is_some_and(|at| at <= now)
    }

    /// Passes each instance that was not written in time to `missed`, with the number of periods.
    pub(crate) fn expire(&mut self, now: Time, mut missed: impl FnMut(u32, u64)) {
        while let Some((_, index)) = self.queue.first().copied().filter(|(at, _)| *at <= now) {
            self.queue.pop_first();
            let deadline = &mut self.list[index as usize];
            deadline.is_queued = false;
            let Some(mut at) = deadline.at else { continue };
            let periods = missed_periods(at, now, self.period);
            if periods > 0 {
                at = at + Duration::from_nanos(nanos(self.period).saturating_mul(periods));
                missed(index, periods);
            }
            *deadline = Deadline { at: Some(at), is_queued: true };
            self.queue.insert((at, index));
        }
    }

    /// When [`InstanceDeadlines::expire`] is to be called next.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<Deadline>() + self.queue.len() * size_of::<(Time, u32)>()
    }
}

/// Returns a time span, if it ends within the time that a clock can show.
pub(crate) fn finite(period: Duration) -> Option<Duration> {
    (period < ENDLESS).then_some(period)
}

/// Returns how many periods have ended without a sample, the first of them `at` a deadline.
fn missed_periods(at: Time, now: Time, period: Duration) -> u64 {
    let periods = || now.since(at).as_nanos() / period.as_nanos() + 1;
    if at > now { 0 } else { u64::try_from(periods()).unwrap_or(u64::MAX) }
}

pub(crate) fn nanos(period: Duration) -> u64 {
    u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)
}

/// Shorter periods are treated as this one: work per period must not take all time.
const PERIOD_MIN: Duration = Duration::from_micros(100);
/// Longer periods never end: those of the wire end at 68 years.
const ENDLESS: Duration = Duration::from_secs(i32::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn missed(deadlines: &mut InstanceDeadlines, at_ms: u64) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        deadlines.expire(Time(at_ms * MS), |index, periods| found.push((index, periods)));
        found
    }

    #[test]
    fn each_instance_has_its_own_deadline() {
        let mut deadlines = InstanceDeadlines::new(Duration::from_millis(10)).unwrap();
        assert_eq!(deadlines.next_at(), None);
        assert_eq!(deadlines.written(Time(0), 0), 0);
        assert_eq!(deadlines.written(Time(4 * MS), 1), 0);
        assert_eq!(deadlines.written(Time(6 * MS), 0), 0);
        assert_eq!(missed(&mut deadlines, 10), [], "written again in time");
        assert_eq!(missed(&mut deadlines, 13), []);
        assert_eq!(missed(&mut deadlines, 14), [(1, 1)]);
        assert_eq!(missed(&mut deadlines, 16), [(0, 1)]);
        assert_eq!(deadlines.next_at(), Some(Time(24 * MS)), "the next period has begun");
        assert_eq!(missed(&mut deadlines, 50), [(1, 3), (0, 3)], "all periods count");
        assert_eq!(deadlines.written(Time(77 * MS), 0), 3, "also if the timer is late");
        assert_eq!(missed(&mut deadlines, 77), [(1, 3)]);
    }

    #[test]
    fn an_instance_that_has_ended_has_none_until_it_is_written_again() {
        let mut deadlines = InstanceDeadlines::new(Duration::from_millis(10)).unwrap();
        assert_eq!(deadlines.written(Time(0), 3), 0);
        deadlines.ended(3);
        assert_eq!(deadlines.written(Time(MS), 3), 0);
        deadlines.ended(3);
        assert_eq!(missed(&mut deadlines, 100), []);
        assert_eq!(deadlines.next_at(), None);
        assert_eq!(deadlines.written(Time(100 * MS), 3), 0);
        assert_eq!(missed(&mut deadlines, 110), [(3, 1)]);
    }

    #[test]
    fn endless_periods_are_not_watched_and_zero_is_bounded() {
        assert!(InstanceDeadlines::new(Duration::MAX).is_none());
        let mut deadlines = InstanceDeadlines::new(Duration::ZERO).unwrap();
        assert_eq!(deadlines.written(Time(0), 0), 0);
        assert_eq!(missed(&mut deadlines, 1), [(0, 10)]);
    }
}
