//! The last sample before a pause: nothing follows that would show its loss.
//!
//! A HEARTBEAT some milliseconds later does, and costs nothing worth speaking of. Where readers have lately asked for
//! something again, that is not soon enough: a sample that goes alone brings its HEARTBEAT along, and when no answer
//! has come after two round trips, it is sent again without being asked for (as RFC 8985 §7 has it for TCP).

use core::time::Duration;

use weir_wire::SequenceNumber;

use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::time::Time;

impl WriterCore {
    /// A reader has asked for something again.
    pub(super) fn note_loss(&mut self, now: Time) {
        self.heartbeat.lossy_until = Some(now + config::LOSS_MEMORY);
    }

    /// Whether losses are to be expected.
    #[inline]
    pub(super) fn is_lossy(&self, now: Time) -> bool {
        self.heartbeat.lossy_until.is_some_and(|until| now < until)
    }

    /// How long after a sample or an acknowledgement the HEARTBEAT for what is not acknowledged goes out.
    #[inline]
    pub(super) fn heartbeat_delay(&self, now: Time) -> Duration {
        match self.heartbeat.round_trip {
            // In a stream, what follows shows what is lost.
            Some(round_trip) if self.is_tail(self.history.last()) && self.is_lossy(now) => {
                (round_trip * 2).clamp(config::HEARTBEAT_DELAY_PROBE_MIN, config::HEARTBEAT_DELAY_MIN)
            }
            _ => config::HEARTBEAT_DELAY_MIN,
        }
    }

    /// Whether a sample that was just handed out should bring its HEARTBEAT along: it is not in a stream of others,
    /// and losses are to be expected.
    #[inline]
    pub(super) fn brings_heartbeat(&self, now: Time) -> bool {
        self.is_tail(self.unsent.prev()) && self.is_lossy(now)
    }

    /// Whether the samples up to `last` that are not acknowledged are few, and some.
    #[inline]
    fn is_tail(&self, last: SequenceNumber) -> bool {
        (1..=config::TAIL_SAMPLES_MAX).contains(&(last.0 - self.acknowledged.0))
    }

    /// Sends the last samples again, with a HEARTBEAT, to those who have not acknowledged them, if they are few.
    /// Whether that is so.
    pub(super) fn probe_tail(&mut self, now: Time) -> bool {
        let last = self.unsent.prev();
        let is_small = |sn: &SequenceNumber| {
            self.history.entry(*sn).is_some_and(|entry| entry.is_alive() && entry.fragment_size == 0)
        };
        let may_probe = self.heartbeat.probes < config::TAIL_PROBES_MAX && !self.has_unsent();
        if !may_probe || !self.brings_heartbeat(now) {
            return false;
        }
        let tail = (self.acknowledged.0 + 1..=last.0).map(SequenceNumber);
        let tail: Vec<_> = tail.filter(is_small).collect();
        if tail.is_empty() {
            return false;
        }
        let lagging =
            |proxy: &&mut ReaderProxy| proxy.is_reliable && proxy.is_introduced && proxy.acknowledged < last;
        for proxy in self.proxies.iter_mut().filter(lagging) {
            let missing = tail.iter().filter(|sn| **sn > proxy.acknowledged && **sn >= proxy.start);
            if proxy.requested.is_empty() {
                proxy.requested.extend(missing);
            }
            proxy.is_heartbeat_due = true;
            self.is_answer_due = true;
        }
        self.heartbeat.probes += 1;
        self.heartbeat.asked_at = Some(now);
        self.is_answer_due
    }
}
