//! Tail loss probes: repairs the last sample before a pause, whose loss no later sample would
//! reveal.
//!
//! Normally a HEARTBEAT some milliseconds later reveals it, at little cost. That is too late if
//! readers have recently requested repairs. A single-sample datagram then includes its HEARTBEAT.
//! If no answer arrives within two round trips, or a quarter more than one where the path to another host has no
//! bottleneck, the sample is sent again unrequested, like the probe of TCP (RFC 8985, section 7).

use core::time::Duration;

use weir_wire::SequenceNumber;

use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::time::Time;

impl WriterCore {
    /// Returns whether there are paths, and what is sent for repairs takes nothing from new samples: no path is paced,
    /// or everything is sent, and little of it is unacknowledged or no other writer waits.
    #[inline]
    pub(super) fn has_spare_path(&self) -> bool {
        self.pacing.is_open()
            || !self.pacing.is_unused()
                && !self.has_unsent()
                && !self.pacing.is_waiting()
                && !self.pacing.is_refused(self.history.next())
                && (self.has_little_unacknowledged()
                    || self.pacing.paths().all(|path| !path.lock().is_waited_for()))
    }

    /// Records that a reader requested a repair.
    pub(super) fn note_loss(&mut self, now: Time) {
        // Where answers take long, what is requested is mostly late, or the history for a late joiner.
        if self.config.answer_time.is_zero() {
            let memory = if self.has_spare_path() { config::LOSS_MEMORY_PATH } else { config::LOSS_MEMORY };
            self.heartbeat.lossy_until = Some(now + memory);
        }
    }

    /// Returns whether losses are to be expected.
    #[inline]
    pub(super) fn is_lossy(&self, now: Time) -> bool {
        self.heartbeat.lossy_until.is_some_and(|until| now < until)
    }

    /// Returns the delay from a sample or an acknowledgement to the next HEARTBEAT.
    #[inline]
    pub(super) fn heartbeat_delay(&self, now: Time) -> Duration {
        match self.heartbeat.round_trip {
            // Before that, the answer is in flight.
            _ if self.pacing.patience > config::HEARTBEAT_DELAY_MIN => self.pacing.patience,
            // In a stream, later samples reveal a loss.
            Some(round_trip) if self.is_tail(self.history.last()) && self.is_lossy(now) => {
                // What is measured from HEARTBEAT to ACKNACK includes losses of either.
                let known = self.pacing.patience;
                let delay = if known.is_zero() || !self.has_spare_path() {
                    round_trip * 2
                } else if self.pacing.is_open() {
                    known
                } else {
                    // Where a queue grows, answers come later, and what is sent again hides that.
                    known * 2
                };
                delay.clamp(config::HEARTBEAT_DELAY_PROBE_MIN, config::HEARTBEAT_DELAY_MIN)
            }
            _ => self.heartbeat.delay_min,
        }
    }

    /// Returns whether a sample just handed out should include its HEARTBEAT: no stream follows,
    /// and losses are to be expected.
    #[inline]
    pub(super) fn brings_heartbeat(&self, now: Time) -> bool {
        self.is_lossy(now) && self.is_tail(self.unsent.prev())
    }

    /// Returns whether there are unacknowledged samples up to `last`, but only a few.
    #[inline]
    fn is_tail(&self, last: SequenceNumber) -> bool {
        let count = last.0 - self.acknowledged.0;
        (1..=config::TAIL_SAMPLES_MAX).contains(&count)
            || (1..=config::TAIL_SAMPLES_MAX_PATH).contains(&count)
                && self.has_little_unacknowledged()
                && self.has_spare_path()
    }

    /// Returns whether what is unacknowledged is as little as any path may have in flight.
    fn has_little_unacknowledged(&self) -> bool {
        self.history.charged() - self.acknowledged_charge <= config::PATH_FLIGHT_MIN_BYTES
    }

    /// Asks again soon, since a reader has requested repairs: it is there, however often it did not answer before.
    pub(super) fn expect_repairs_to_arrive(&mut self, now: Time) {
        if !self.has_spare_path() {
            return;
        }
        self.pacing.measure_patience();
        self.heartbeat.delay = self.heartbeat_delay(now);
        let at = now + self.heartbeat.delay;
        self.heartbeat.next_at = self.heartbeat.next_at.map(|before| before.min(at));
    }

    /// Sends the last samples again, with a HEARTBEAT, to the readers that have not acknowledged
    /// them, if they are few. Returns whether it did.
    pub(super) fn probe_tail(&mut self, now: Time) -> bool {
        let last = self.unsent.prev();
        let is_small = |sn: &SequenceNumber| {
            self.history.entry(*sn).is_some_and(|entry| entry.is_alive() && entry.fragment_size == 0)
        };
        let is_short = last.0 - self.acknowledged.0 <= config::TAIL_SAMPLES_MAX;
        let may_probe = self.heartbeat.probes < config::TAIL_PROBES_MAX && is_short && !self.has_unsent();
        if !may_probe || !self.brings_heartbeat(now) {
            return false;
        }
        let tail = (self.acknowledged.0 + 1..=last.0).map(SequenceNumber);
        let mut samples = [SequenceNumber::ZERO; config::TAIL_SAMPLES_MAX as usize];
        let count = samples.iter_mut().zip(tail.filter(is_small)).map(|(place, sn)| *place = sn).count();
        let tail = &samples[..count];
        if tail.is_empty() {
            return false;
        }
        let lagging =
            |proxy: &&mut ReaderProxy| proxy.is_awaited() && proxy.is_introduced && proxy.acknowledged < last;
        for proxy in self.proxies.iter_mut().filter(lagging) {
            // A sample that comes by unicast says nothing about the group that may not reach it.
            if proxy.requested.samples.is_empty() && proxy.requested.reach.answers == 0 {
                let reached = proxy.acknowledged.max(proxy.start.prev());
                for sn in tail.iter().filter(|sn| **sn > reached) {
                    if proxy.has_room_for_sample() && proxy.accepts_request(now, (*sn, 0)) {
                        proxy.requested.samples.push(*sn);
                    }
                }
            }
            proxy.is_heartbeat_due = true;
            self.due.add_all();
        }
        self.heartbeat.probes += 1;
        self.pacing.note_probe(now);
        self.heartbeat.asked_at = Some(now);
        self.due.is_any()
    }
}
