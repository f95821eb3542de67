//! The end of a writer: its instances are unregistered (DDS 1.4, 2.2.2.4.1.6 and 2.2.3.21).

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_rtps::time::Time;
use weir_rtps::writer::{Change, END_LEN_MORE, WriteRefused, WriterCore};
use weir_wire::{Guid, SequenceNumber};

use super::inner::Inner;
use super::registered::InstanceKey;
use crate::clock;
use crate::driver::endpoints::Own;
use crate::driver::farewells::FAREWELL_TIME;
use crate::driver::publishing::Publishing;
use crate::error::{DdsError, Result};
use crate::instance_handle::InstanceHandle;

impl Inner {
    /// Ends the writer: unregisters its instances, sends what is held back, and leaves discovery.
    ///
    /// Returns an error if the end was not sent or acknowledged in time. Does nothing the second time.
    pub(crate) fn close(&self) -> Result<()> {
        if self.is_closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let entity = self.endpoint.entity;
        // A listener may hold handles, and threads may keep the endpoint alive through an old
        // routing table.
        self.endpoint.set_listener(Own::default());
        let outcome = self.bid_farewell();
        if let (Some(publishing), Some(publisher)) =
            (&self.endpoint.lane.publishing, self.publisher.lock().take())
        {
            publishing.stop();
            // That thread runs no application code, so it cannot be this one. Its panics do not get here.
            let _ = publisher.join();
        }
        self.endpoint.group.set_member(entity, false);
        self.driver().with_discovery(|core, now| core.remove_writer(now, entity));
        self.driver().routes.change(|table| _ = table.writers.remove(&entity));
        // Other handles may still be there.
        self.endpoint.lane.close();
        self.driver().announce_end();
        outcome
    }

    /// Unregisters the registered instances, and waits until that and what was held back has been sent and
    /// acknowledged.
    fn bid_farewell(&self) -> Result<()> {
        let (mut outcome, last) = self.unregister_all();
        let late = |what, waited| Err(DdsError::Timeout { what, waited, hint: self.lagging_hint() });
        if let Some(publishing) = &self.endpoint.lane.publishing {
            let patience = self.qos.max_blocking_time.max(FAREWELL_TIME);
            let end = self.endpoint.lane.core().last_sequence_number();
            if !self.wait_until_published(publishing, end, clock::now() + patience) {
                outcome = outcome.and_then(|()| late("publishing", patience));
            }
        }
        if let Some(last) = last
            && let Err(waited) =
                self.wait_for_readers(clock::now() + FAREWELL_TIME, |core| core.is_acknowledged(last))
        {
            let what = "the acknowledgement of the end of all instances";
            outcome = outcome.and_then(|()| late(what, waited));
        }
        self.driver().check_failure()?;
        outcome
    }

    /// Unregisters the instances that are still registered, and sends that and what is held back. Waits for room for
    /// as long as for acknowledgements. Readers learn from discovery that the writer is gone, which ends the instances
    /// that were refused.
    ///
    /// Returns an error if any was refused, and the sequence number of the last change that readers are to acknowledge.
    fn unregister_all(&self) -> (Result<()>, Option<SequenceNumber>) {
        let lane = &self.endpoint.lane;
        let mut registered = self.registered.lock().take_all();
        registered.sort_unstable_by_key(|(handle, _)| *handle);
        // Those that the core has forgotten end, too.
        lane.core().ask_for_new_instances(false);
        let (mut left, mut last, mut waited) = (&registered[..], None, None);
        let (mut refused, mut may_flush, since) = (Refused::default(), true, clock::now());
        loop {
            let now = clock::now();
            let mut turn = lane.turn();
            let helps = |why| match why {
                WriteRefused::WindowFull => waited.is_none(),
                // Samples that were held back can be replaced once they are sent.
                why => why == WriteRefused::LimitReached && may_flush,
            };
            let begun = self.unregister_each(&mut turn.core, left, helps);
            left = &left[begun.ended + begun.refused.count..];
            refused.add(begun.refused);
            last = begun.last.or(last);
            if left.is_empty() {
                // What discovery says of a writer that has left may arrive first, and would end an instance in another
                // way.
                let has_ended = self.has_ended.load(Ordering::Relaxed);
                last = last.or_else(|| has_ended.then(|| turn.core.last_sequence_number()));
                if last.is_some() {
                    turn.core.request_acknowledgement();
                }
            }
            self.flush(turn, now);
            let Some((_, next)) = left.first() else { break };
            if begun.stopped == Some(WriteRefused::LimitReached) {
                may_flush = false;
            } else {
                let _waiting = lane.publishing.as_ref().map(Publishing::wait_for_room);
                let len = next.payload.len() + END_LEN_MORE;
                let has_room = |core: &WriterCore| core.has_room_for(Some(next.hash), len);
                let is_over = self.wait_for_readers(since + FAREWELL_TIME, has_room).is_err();
                let now = clock::now();
                waited = (is_over || now >= since + FAREWELL_TIME).then(|| now.since(since));
            }
        }
        (refused.error(registered.len(), waited, || self.lagging_hint()), last)
    }

    /// Unregisters instances one after the other, until one is refused for a reason that can be helped.
    fn unregister_each(
        &self,
        core: &mut WriterCore,
        instances: &[(InstanceHandle, InstanceKey)],
        helps: impl Fn(WriteRefused) -> bool,
    ) -> Begun {
        let (now, kind) = (clock::now(), self.unregistration());
        let timestamp = Some(self.driver().wall_clock.timestamp(now));
        let mut begun = Begun::default();
        for (_, InstanceKey { hash, payload }) in instances {
            let undelimited = self.undelimited(payload);
            let payload = undelimited.as_deref().unwrap_or(payload);
            match core.write_change(now, timestamp, Change { kind, key: Some(*hash), payload }) {
                Ok(sn) => (begun.ended, begun.last) = (begun.ended + 1, Some(sn)),
                Err(why) if helps(why) => {
                    begun.stopped = Some(why);
                    break;
                }
                Err(why) => begun.refused.add(Refused { count: 1, why: Some(why) }),
            }
        }
        begun
    }

    /// Waits until the readers have acknowledged enough that `is_done`, until `deadline`, and not for participants
    /// that were waited for in vain just before. Returns the time waited if it is not done.
    fn wait_for_readers(
        &self,
        deadline: Time,
        is_done: impl Fn(&WriterCore) -> bool,
    ) -> std::result::Result<(), Duration> {
        let (driver, lane) = (self.driver(), &self.endpoint.lane);
        let now = clock::now();
        let silent = driver.state.farewells.silent(now);
        let is_over = || {
            let core = lane.core();
            let is_silent = |it: Guid| silent.contains(&it.prefix);
            let mut lagging = core.lagging_readers().peekable();
            is_done(&core) || lagging.peek().is_some() && lagging.all(is_silent)
        };
        let is_over = driver.receive_until(Some(deadline), driver.wait, is_over);
        let core = lane.core();
        // With samples that were not sent yet, every reader lags.
        if !is_over && !core.has_unsent() {
            driver.state.farewells.note_silent(clock::now(), core.lagging_readers().map(|it| it.prefix));
        }
        if is_done(&core) { Ok(()) } else { Err(clock::now().since(now)) }
    }
}

/// What became of instances that were to be unregistered.
#[derive(Default)]
struct Begun {
    ended: usize,
    refused: Refused,
    last: Option<SequenceNumber>,
    /// Why the first instance that is left was refused.
    stopped: Option<WriteRefused>,
}

/// Instances that could not be unregistered.
#[derive(Default)]
struct Refused {
    count: usize,
    /// The reason for the first of them.
    why: Option<WriteRefused>,
}

impl Refused {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.why = self.why.or(other.why);
    }

    /// Returns an error that counts them, if there are any.
    fn error(self, of: usize, waited: Option<Duration>, hint: impl FnOnce() -> String) -> Result<()> {
        let Some(why) = self.why else { return Ok(()) };
        match waited.filter(|_| why == WriteRefused::WindowFull) {
            Some(waited) => Err(DdsError::Timeout {
                what: "room for the end of all instances",
                waited,
                hint: format!(": {} of {of} instances were not unregistered{}", self.count, hint()),
            }),
            None => Err(DdsError::OutOfResources(format!(
                "{} of {of} instances were not unregistered: {why}",
                self.count
            ))),
        }
    }
}
