//! Writers whose samples are handed out by another thread than the one that writes them.
//!
//! Other vendors call this the asynchronous PUBLISH_MODE; DDS 1.4 does not have it. Three
//! mechanisms bound the samples not yet handed out:
//!
//! - If readers acknowledge, the window does, because it counts unsent samples as well.
//! - KEEP_LAST replaces samples that were not sent yet (DDS 1.4, 2.2.3.18).
//! - A KEEP_ALL writer without reliable readers may hold [`config::UNSENT_MAX_BYTES`].

use core::ops::RangeInclusive;

use weir_wire::SequenceNumber;

use super::instances::InTransit;
use super::state::WriterCore;
use crate::config;
use crate::outbox::Outbox;
use crate::qos::History;
use crate::time::Time;

/// No sample.
const NONE: RangeInclusive<SequenceNumber> = SequenceNumber(1)..=SequenceNumber::ZERO;

impl WriterCore {
    /// Returns whether [`WriterCore::poll_transmit`] would hand out samples now.
    #[inline]
    pub fn is_transmission_due(&self, now: Time) -> bool {
        self.should_send(now) && (!self.is_amid_sample() || self.can_go_on(now))
    }

    /// [`WriterCore::poll_transmit`] for the publishing thread. A burst is not held back: samples
    /// written during a send leave together anyway.
    pub fn poll_published(&mut self, now: Time, out: &mut Outbox) {
        self.burst.queued_since = None;
        self.poll_transmit(now, out);
    }

    /// Ends the open batch and the burst, so that [`WriterCore::poll_transmit`] hands out
    /// everything.
    pub fn release_held(&mut self) {
        self.open = None;
        self.burst.queued_since = None;
    }

    /// Calls [`WriterCore::release_held`], and makes the next write start a new burst, because the
    /// application has begun to wait.
    pub fn interrupt_burst(&mut self) {
        self.burst.quick_writes = 0;
        self.release_held();
    }

    /// Returns whether a sample, and all before it, were handed out or replaced.
    #[inline]
    pub fn is_handed_out(&self, sn: SequenceNumber) -> bool {
        self.unsent > sn
    }

    /// Returns whether the samples just handed out may make room for a refused write.
    ///
    /// This requires that no acknowledgement is awaited and that the unsent samples take at most
    /// half of their limit.
    pub fn makes_room_by_sending(&self) -> bool {
        !self.has_reliable && self.unsent_charge() <= config::UNSENT_MAX_BYTES / 2
    }

    /// Returns the bytes charged for samples not handed out yet.
    fn unsent_charge(&self) -> u64 {
        self.history.charged() - self.history.charged_to(self.unsent.prev())
    }

    /// Returns whether `charge` more bytes may stay unsent, for a writer without reliable readers.
    #[inline(never)]
    pub(super) fn has_room_unsent(&self, charge: u64) -> bool {
        !self.config.is_asynchronous || self.unsent_charge() + charge <= config::UNSENT_MAX_BYTES
    }

    /// Returns the samples that have left for reliable readers, and are not acknowledged by all of them. `None` without
    /// large samples: others arrive in one piece, or not at all.
    #[inline]
    pub(super) fn in_transit(&self) -> Option<InTransit> {
        if self.large.is_empty() || !self.has_reliable && self.taking.is_none() {
            return None;
        }
        if self.taking.is_some() {
            return Some([self.in_transit_with_others(), self.in_transit_apart()]);
        }
        Some([self.acknowledged.next()..=self.unsent.prev(), NONE])
    }

    /// KEEP_LAST: removes samples that later ones replace, sent or not. Called after every write.
    ///
    /// A large sample in transmission is completed first. Otherwise a writer faster than its
    /// publishing thread would never complete one.
    pub fn replace_unsent(&mut self) {
        if self.config.history == History::KeepAll {
            return;
        }
        let amid = self.is_amid_sample().then_some(self.unsent);
        let last = self.history.last();
        let in_transit = self.in_transit();
        self.instances.replace(&mut self.history, last, amid, in_transit);
        if amid.is_none() {
            let first = self.history.first();
            let first = self.open.map_or(first, |open| first.min(open.first));
            self.pass_over(first);
        }
    }
}
