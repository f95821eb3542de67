//! When a writer sends HEARTBEATs.

use alloc::collections::VecDeque;
use core::time::Duration;

use weir_wire::SequenceNumber;

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
    /// The mean time between two samples when the timer was last started.
    interval: Duration,
    /// How often in a row it was as the time before.
    regular: u8,
}

impl Pace {
    /// Records the samples since the timer was last started. `gap`: the time since the last of them; after a burst, it
    /// is longer than the mean.
    fn note(&mut self, samples: i64, elapsed: Duration, gap: Duration) {
        let Some(count) = u32::try_from(samples).ok().filter(|count| *count > 0) else {
            self.regular = 0;
            return;
        };
        let before = core::mem::replace(&mut self.interval, elapsed / count);
        let interval = self.interval;
        let is_similar = |other: Duration| interval.abs_diff(other) <= interval / 2;
        let is_regular =
            config::REGULAR_INTERVALS.contains(&interval) && is_similar(before) && is_similar(gap);
        self.regular = if is_regular { self.regular.saturating_add(1) } else { 0 };
    }

    /// Returns how long a HEARTBEAT waits for more of regular samples; `None`: they are not regular.
    fn wait(&self) -> Option<Duration> {
        let is_regular = self.regular >= config::REGULAR_MIN;
        is_regular.then(|| (self.interval * config::REGULAR_SAMPLES).min(config::HEARTBEAT_DELAY_REGULAR_MAX))
    }
}

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
    /// burst is not: the burst needs one HEARTBEAT at its end. `may_ride`: HEARTBEATs may ride at all. `may_wait`:
    /// readers that miss a sample request it when they receive a later one.
    pub(super) fn begin(&mut self, now: Time, sn: SequenceNumber, may_ride: bool, may_wait: bool) {
        if let Some((last, at)) = self.begun {
            self.pace.note(sn.0 - last.0, now.since(at), now.since(self.written_at));
        }
        let wait = self.pace.wait().filter(|_| may_wait);
        self.next_at = Some((now + wait.unwrap_or_default().max(self.delay)).min(self.latest));
        if wait.is_some() {
            (self.begun, self.rides, self.was_sparse) = (Some((sn, now)), false, false);
            return;
        }
        let is_sparse = may_ride && self.is_apart(now, sn);
        self.rides = is_sparse && self.was_sparse;
        (self.begun, self.was_sparse) = (Some((sn, now)), is_sparse);
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
