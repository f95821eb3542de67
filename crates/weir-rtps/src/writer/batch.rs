//! Collecting samples in one message (the BATCH policy): many standard DATA submessages, readable by every
//! vendor, with one time stamp, that of the first sample.

use core::time::Duration;

use weir_wire::SequenceNumber;

use super::{WriterCore, compose};
use crate::time::Time;
use crate::window::charge;

/// When a batch is full or has waited long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPolicy {
    /// Largest message, headers included, in bytes.
    pub max_bytes: usize,
    /// Most samples in a message.
    pub max_samples: u32,
    /// Longest time that a message waits for more samples. One that is full may wait for more of a burst, no longer
    /// than this and than [`Coalescing::delay_max`](super::Coalescing::delay_max).
    pub max_delay: Duration,
}

/// The message that is being filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenBatch {
    /// Its first sample.
    pub(super) first: SequenceNumber,
    /// Its length so far, in bytes.
    pub(super) len: usize,
    /// Its samples so far.
    pub(super) samples: u32,
    /// When its first sample was written.
    pub(super) since: Time,
}

impl OpenBatch {
    /// Whether `extra` more bytes, one more sample, are still within the policy.
    #[inline]
    pub(super) fn takes(&self, policy: &BatchPolicy, extra: usize) -> bool {
        self.len + extra <= policy.max_bytes && self.samples < policy.max_samples
    }
}

impl WriterCore {
    /// Adds a sample to the batch that is being filled, if there is one with room for it and nothing else is due: `fill`
    /// gets the place of its payload, `payload_len` bytes. It needs neither the time nor a look at what to send: what
    /// ends the batch is a write that does not fit, or the timer.
    ///
    /// `None`: write it the other way, by [`WriterCore::reserve`]; nothing has happened.
    ///
    /// # Errors
    /// That of `fill`.
    #[inline]
    pub fn extend_batch<E>(
        &mut self,
        payload_len: usize,
        key: Option<[u8; 16]>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Option<SequenceNumber>, E> {
        let (Some(policy), Some(open)) = (&self.config.batch, self.open) else { return Ok(None) };
        let extra = compose::extension_len(payload_len);
        let cost = charge(open.len + extra) - charge(open.len);
        let is_timed = self.heartbeat.next_at.is_some() || !self.has_reliable_readers();
        let is_simple = is_timed && !self.proxies.is_empty() && self.has_room(cost);
        if !is_simple || !open.takes(policy, extra) {
            return Ok(None);
        }
        let sn = self.history.next();
        let Some(datagram) = self.history.extend(extra) else { return Ok(None) };
        let at = datagram.len() - extra;
        let extension = &mut datagram[at..];
        fill(&mut extension[compose::DATA_LEN..compose::DATA_LEN + payload_len])?;
        self.template.fill_extension(extension, sn, payload_len);
        let Ok(instance) = self.admit(key, extra) else { return Ok(None) };
        self.instances.committed(instance, sn);
        self.history.commit_extension(extra, cost);
        self.open = Some(OpenBatch { len: open.len + extra, samples: open.samples + 1, ..open });
        self.burst.bytes += extra;
        // Without coalescing, nobody takes this back to 0.
        self.burst.untimed = self.burst.untimed.saturating_add(1);
        Ok(Some(sn))
    }

    /// Whether a batch has waited for more samples as long as it may.
    #[inline]
    pub(super) fn is_batch_overdue(&self, now: Time, policy: &BatchPolicy) -> bool {
        self.open.is_some_and(|open| now.since(open.since) >= policy.max_delay)
    }
}
