//! The timeouts of a writer.

use super::state::WriterCore;
use crate::config;
use crate::time::Time;

impl WriterCore {
    /// Does what is due: HEARTBEATs for unacknowledged samples. [`WriterCore::poll_transmit`] then
    /// sends them.
    pub fn handle_timeout(&mut self, now: Time) {
        self.pace_fragments(now);
        if self.has_withheld {
            self.release_withheld(now);
            self.pacing.wake_repairs(now);
        }
        if self.timed.is_some() {
            self.expire(now);
            self.expire_deadlines(now);
        }
        if self.heartbeat.next_at.is_some_and(|at| at <= now) {
            if let Some(batch_at) = self.batch_timeout().filter(|_| self.waits_for_batch(now)) {
                self.prompt_stalled(self.unsent.prev());
                self.heartbeat.put_off(batch_at, self.next_prompt(now));
                return;
            }
            self.note_silence(now);
            let is_waiting = self.has_unacknowledged();
            let is_probed = is_waiting && self.probe_tail(now);
            self.heartbeat.is_due = is_waiting && !is_probed;
            // On a path whose round trip is known, the answer is lost; and losses come in bursts.
            let unanswered = self.proxies.iter().map(|proxy| proxy.unanswered).min();
            let is_path_known = !self.pacing.patience.is_zero();
            let is_early =
                is_path_known && unanswered.is_some_and(|times| times < config::UNANSWERED_HEARTBEATS_PATH);
            self.heartbeat.expired = self.heartbeat.expired.saturating_add(1);
            let delay = match self.heartbeat.delay {
                // A reader that answers and acknowledges nothing has no room: its answers must not cause many more.
                delay if is_early && self.heartbeat.expired > config::UNANSWERED_HEARTBEATS_PATH => {
                    delay.max(self.heartbeat.delay_min)
                }
                delay if is_probed || is_early => delay,
                delay if is_path_known => delay * 5 / 4,
                delay => delay * 2,
            };
            self.heartbeat.delay = delay.min(config::HEARTBEAT_DELAY_MAX);
            let next_at = is_waiting.then(|| (now + self.heartbeat.delay).min(self.heartbeat.latest));
            self.heartbeat.next_at = next_at.or_else(|| self.next_prompt(now));
        }
    }

    /// Returns when [`WriterCore::handle_timeout`] and [`WriterCore::poll_transmit`] have to be
    /// called next.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        // Only samples that were not sent have further timers: of a burst, a batch, a large sample in transmission, or
        // what is withheld. So have LIFESPAN and DEADLINE.
        if self.has_unsent() || self.pacing.next_at.is_some() || self.has_withheld {
            return self.next_timeout_of_unsent();
        }
        match self.timed.as_ref().and_then(|timed| timed.next_at()) {
            Some(at) => Some(self.heartbeat.next_at.map_or(at, |heartbeat| heartbeat.min(at))),
            None => self.heartbeat.next_at,
        }
    }

    /// Takes the time that [`WriterCore::next_timeout`] returned before an acknowledgement left nothing to wait for.
    pub fn take_cancelled_timeout(&mut self) -> Option<Time> {
        self.heartbeat.cancelled.take()
    }

    /// Returns when the open batch is sent if no write completes it.
    fn batch_timeout(&self) -> Option<Time> {
        self.open.zip(self.config.batch).map(|(open, policy)| open.since + policy.max_delay)
    }

    fn next_timeout_of_unsent(&self) -> Option<Time> {
        // A path that has no room has a timer of its own. Where readers have none, they make it by answers.
        let batch_at = self.batch_timeout().filter(|_| !self.pacing.is_waiting() && !self.waits_for_room());
        let sample_at = self.left_sample_timeout().or(self.fragments.paced_at);
        let timed_at = self.timed.as_ref().and_then(|timed| timed.next_at());
        let sample_at = sample_at.into_iter().chain(self.pacing.next_at).chain(self.pacing.repairs_at);
        let sample_at = sample_at.chain(self.withheld_timeout()).chain(timed_at).min();
        let flush_at = self.burst_timeout().into_iter().chain(batch_at).chain(sample_at).min();
        match (flush_at, self.heartbeat.next_at) {
            (Some(flush), Some(heartbeat)) => Some(flush.min(heartbeat)),
            (flush, heartbeat) => flush.or(heartbeat),
        }
    }
}
