//! Samples that another thread hands out than those that write them (PUBLISH_MODE asynchronous of other vendors; not in
//! DDS 1.4).
//!
//! What is not handed out yet must be bounded. Where readers acknowledge, their window does it, which counts unsent samples
//! as well. KEEP_LAST replaces samples that nobody has sent yet (DDS 1.4 §2.2.3.18). A KEEP_ALL writer whose readers never
//! answer may leave [`config::UNSENT_MAX_BYTES`].

use weir_wire::SequenceNumber;

use super::state::WriterCore;
use crate::config;
use crate::outbox::Outbox;
use crate::qos::History;
use crate::time::Time;

impl WriterCore {
    /// Whether [`WriterCore::poll_transmit`] would hand out samples now.
    #[inline]
    pub fn is_transmission_due(&self, now: Time) -> bool {
        self.should_send(now) && (!self.is_amid_sample() || self.can_go_on(now))
    }

    /// [`WriterCore::poll_transmit`] for the thread that hands samples out: a burst need not wait for more, because what comes
    /// while these are sent leaves together.
    pub fn poll_published(&mut self, now: Time, out: &mut Outbox) {
        self.burst.queued_since = None;
        self.poll_transmit(now, out);
    }

    /// Ends what holds samples back: the batch that is being filled, and the burst. [`WriterCore::poll_transmit`] hands all
    /// of them out.
    pub fn release_held(&mut self) {
        self.open = None;
        self.burst.queued_since = None;
    }

    /// [`WriterCore::release_held`], and takes the next write for the first of its kind: the application has begun to wait
    /// for something.
    pub fn interrupt_burst(&mut self) {
        self.burst.quick_writes = 0;
        self.release_held();
    }

    /// Whether a sample, and all before it, were handed out; those that were replaced before that count.
    #[inline]
    pub fn is_handed_out(&self, sn: SequenceNumber) -> bool {
        self.unsent > sn
    }

    /// Whether a write that was refused may find room by what was handed out just now: no acknowledgement is waited for,
    /// and no more than half of what may be unsent is.
    pub fn makes_room_by_sending(&self) -> bool {
        !self.has_reliable && self.unsent_charge() <= config::UNSENT_MAX_BYTES / 2
    }

    /// What is charged for the samples that were not handed out yet.
    fn unsent_charge(&self) -> u64 {
        self.history.charged() - self.history.charged_to(self.unsent.prev())
    }

    /// Whether so much more may be left unsent where nobody acknowledges.
    #[inline(never)]
    pub(super) fn has_room_unsent(&self, charge: u64) -> bool {
        !self.config.is_asynchronous || self.unsent_charge() + charge <= config::UNSENT_MAX_BYTES
    }

    /// KEEP_LAST: removes what later samples replace, whether it was handed out or not. To be called after a write. A large
    /// sample that is on its way leaves as a whole: a writer that is faster than its thread would never get one across.
    pub fn replace_unsent(&mut self) {
        if self.config.history == History::KeepAll {
            return;
        }
        let amid = self.is_amid_sample().then_some(self.unsent);
        let last = self.history.last();
        self.instances.replace(&mut self.history, last, amid);
        if amid.is_none() {
            let first = self.history.first();
            let first = self.open.map_or(first, |open| first.min(open.first));
            self.unsent = self.unsent.max(first);
        }
    }
}
