//! When a writer sends HEARTBEATs.

use alloc::collections::VecDeque;
use core::ops::RangeInclusive;
use core::time::Duration;

use weir_wire::SequenceNumber;

use super::burst::nanos;
use crate::config;
use crate::time::Time;

/// The state that decides when the next HEARTBEAT is due.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    pub(super) count: u32,
    /// When the last ones were sent, if there are paths to measure.
    pub(super) sent: VecDeque<(u32, Time)>,
    /// Charge of everything sent up to the last HEARTBEAT.
    pub(super) charged: u64,
    /// The next transmission includes a HEARTBEAT to all readers.
    pub(super) is_due: bool,
    pub(super) next_at: Option<Time>,
    /// What `next_at` was before an acknowledgement left nothing to ask for.
    pub(super) cancelled: Option<Time>,
    pub(super) delay: Duration,
    /// The shortest delay, if no losses are expected.
    pub(super) delay_min: Duration,
    /// The timer must not be set later than this.
    pub(super) latest: Time,
    /// A write was refused for lack of room, and the timer was not yet shortened for it.
    pub(super) is_hurry_due: bool,
    /// The timer was shortened for a refused write since the last acknowledgement. This happens once: a
    /// reader that cannot accept anything answers every HEARTBEAT, and its answers must not cause
    /// more.
    pub(super) is_hurried: bool,
    /// When the first unanswered HEARTBEAT was sent.
    pub(super) asked_at: Option<Time>,
    /// Smoothed time from a HEARTBEAT to the next acknowledgement.
    pub(super) round_trip: Option<Duration>,
    /// Readers have requested repairs, so losses are expected until this time.
    pub(super) lossy_until: Option<Time>,
    /// Tail loss probes sent since the last acknowledgement.
    pub(super) probes: u8,
    /// HEARTBEATs that became due since then.
    pub(super) expired: u8,
    /// The sample that the timer was last started for, and when.
    pub(super) begun: Option<(SequenceNumber, Time)>,
    /// That sample followed the one before after a pause.
    pub(super) was_sparse: bool,
    /// The next transmission is a sparse sample, and includes its HEARTBEAT.
    pub(super) rides: bool,
    /// The timer was put off because of an open batch.
    pub(super) is_put_off: bool,
    /// When the last sample was written, but those that joined a batch.
    pub(super) written_at: Time,
    /// How regular the stream was lately.
    pub(super) pace: Pace,
}

/// Samples at regular intervals. Each reveals that those before it are lost, so that a HEARTBEAT is needed for the last
/// ones only.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The mean time between two samples when the timer was last started, nanoseconds.
    interval: u64,
    /// How often in a row it was as the time before.
    regular: u8,
}

impl Pace {
    /// Records the samples since the timer was last started. `gap`: the time since the last of them, nanoseconds; after
    /// a burst, it is longer than the mean. Always inlined: mostly the gap decides.
    #[inline(always)]
    fn note(&mut self, gap: u64, since_begun: impl FnOnce() -> Option<(i64, u64)>) {
        if !GAPS_NS.contains(&gap) {
            self.regular = 0;
        } else if let Some((samples, elapsed)) = since_begun() {
            self.note_mean(gap, samples, elapsed);
        }
    }

    #[inline(never)]
    fn note_mean(&mut self, gap: u64, samples: i64, elapsed: u64) {
        let interval = elapsed / samples.max(1).cast_unsigned();
        let before = core::mem::replace(&mut self.interval, interval);
        let is_similar = |other: u64| interval.abs_diff(other) <= interval / 2;
        let is_regular = INTERVALS_NS.contains(&interval) && is_similar(before) && is_similar(gap);
        self.regular = if is_regular { self.regular.saturating_add(1) } else { 0 };
    }

    /// Returns for how long a HEARTBEAT waits for more samples; `None`: they are not regular.
    #[inline]
    fn wait(&self) -> Option<Duration> {
        let time = || Duration::from_nanos(self.interval.saturating_mul(config::REGULAR_SAMPLES.into()));
        (self.regular >= config::REGULAR_MIN).then(|| time().min(config::HEARTBEAT_DELAY_REGULAR_MAX))
    }
}

/// [`config::REGULAR_INTERVALS`] in nanoseconds.
const INTERVALS_NS: RangeInclusive<u64> =
    nanos(*config::REGULAR_INTERVALS.start())..=nanos(*config::REGULAR_INTERVALS.end());
/// The times between two such samples, which may differ from the mean by half of it.
const GAPS_NS: RangeInclusive<u64> = *INTERVALS_NS.start() / 2..=*INTERVALS_NS.end() / 2 * 3;

impl Heartbeat {
    /// Records a HEARTBEAT to all readers that announces everything sent, `charged` bytes in total.
    /// `is_lossy`: some of it may be lost. `keeps`: some readers may not receive it, which the timer has to show.
    pub(super) fn sent(&mut self, now: Time, charged: u64, is_lossy: bool, keeps: bool) {
        self.charged = charged;
        let at = (now + self.delay).min(self.latest);
        // While losses are expected, more samples do not put off the question after the first.
        let keeps = keeps || is_lossy && self.asked_at.is_some();
        let before = self.next_at.filter(|before| keeps && *before > now);
        self.next_at = Some(before.map_or(at, |before| before.min(at)));
        self.asked_at.get_or_insert(now);
    }

    /// Starts the timer for sample `sn`.
    ///
    /// The HEARTBEAT of a sparse sample rides with it: some milliseconds later, it would wake both ends once more. A
    /// sample is sparse if it and the one before each followed a single sample, after a pause. The first sample of a
    /// burst is not: the burst needs one HEARTBEAT at its end. `may_ride`: HEARTBEATs may ride at all. `wait`: regular
    /// samples follow, for so long.
    pub(super) fn begin(&mut self, now: Time, sn: SequenceNumber, may_ride: bool, wait: Option<Duration>) {
        if let Some(wait) = wait {
            self.next_at = Some((now + wait.max(self.delay)).min(self.latest));
            (self.begun, self.rides, self.was_sparse) = (Some((sn, now)), false, false);
            return;
        }
        self.next_at = Some(now + self.delay);
        let is_sparse = may_ride && self.is_apart(now, sn);
        self.rides = is_sparse && self.was_sparse;
        (self.begun, self.was_sparse) = (Some((sn, now)), is_sparse);
    }

    /// Returns for how long the HEARTBEAT for sample `sn` can wait, if samples were regular until now. Call this once
    /// before [`Heartbeat::begin`].
    #[inline]
    pub(super) fn regular_wait(&mut self, now: Time, sn: SequenceNumber) -> Option<Duration> {
        let begun = self.begun;
        let since_begun = || begun.map(|(last, at)| (sn.0 - last.0, now.nanos_since(at)));
        self.pace.note(now.nanos_since(self.written_at), since_begun);
        self.pace.wait()
    }

    /// Puts the timer off until the open batch has left, which happens at `batch_at` at the latest.
    pub(super) fn put_off(&mut self, batch_at: Time, prompt_at: Option<Time>) {
        self.next_at = prompt_at.into_iter().chain([batch_at + self.delay]).min();
        self.is_put_off = true;
    }

    /// Starts the timer that was put off, because samples have left.
    #[inline]
    pub(super) fn note_left(&mut self, now: Time) {
        if core::mem::take(&mut self.is_put_off) {
            self.next_at = self.next_at.map(|at| at.min(now + self.delay));
        }
    }

    /// Returns whether a HEARTBEAT would ride with sample `sn`.
    #[inline]
    pub(super) fn would_ride(&self, now: Time, sn: SequenceNumber) -> bool {
        self.was_sparse && self.next_at.is_none() && self.is_apart(now, sn)
    }

    /// Returns whether sample `sn` follows a single one, after a pause.
    fn is_apart(&self, now: Time, sn: SequenceNumber) -> bool {
        self.begun.is_some_and(|(last, at)| last.next() == sn && now.since(at) >= config::HEARTBEAT_DELAY_MIN)
    }

    /// Returns the count of the next HEARTBEAT. `now`: when it is sent, if an answer is to measure a path.
    pub(super) fn next_count(&mut self, now: Option<Time>) -> u32 {
        self.count = self.count.wrapping_add(1);
        if let Some(now) = now {
            if self.sent.len() >= SENT_MAX {
                self.sent.pop_front();
            }
            self.sent.push_back((self.count, now));
        }
        self.count
    }

    /// Returns when a HEARTBEAT was sent, if it is one of the last.
    pub(super) fn sent_at(&self, count: u32) -> Option<Time> {
        self.sent.iter().rev().find(|(sent, _)| *sent == count).map(|(_, at)| *at)
    }

    /// Records an acknowledgement.
    pub(super) fn answered(&mut self, now: Time) {
        if let Some(asked_at) = self.asked_at.take() {
            let measured = now.since(asked_at);
            self.round_trip = Some(self.round_trip.map_or(measured, |mean| (mean * 7 + measured) / 8));
        }
    }

    /// Shortens the timer for a thread that waits for room: after about two round trips, the answer
    /// counts as lost.
    pub(super) fn hurry(&mut self, now: Time, patience: Duration) {
        (self.is_hurry_due, self.is_hurried) = (false, true);
        let delay = self.round_trip.map_or(config::HEARTBEAT_DELAY_MIN, |mean| mean * 2);
        let delay = delay.clamp(config::HEARTBEAT_DELAY_AWAITED_MIN, config::HEARTBEAT_DELAY_MIN);
        self.delay = delay.max(patience);
        self.next_at = Some(self.next_at.map_or(now + self.delay, |at| at.min(now + self.delay)));
    }
}

/// HEARTBEATs whose times are kept: more are in flight on no path that is measured by them.
pub(super) const SENT_MAX: usize = 64;
