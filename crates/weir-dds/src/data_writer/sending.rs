//! From the history to the system call: on the thread that writes, or left to the thread that publishes.

use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use weir_cdr::DdsType;
use weir_rtps::config;
use weir_rtps::time::Time;
use weir_rtps::writer::{LonePayload, WriteRefused};
use weir_wire::{SequenceNumber, Timestamp};

use super::{Inner, loan};
use crate::clock;
use crate::driver::endpoints::Sending;
use crate::driver::publishing::Publishing;
use crate::driver::straight::WriterState;
use crate::error::{DdsError, Result};
use crate::wait_strategy::WaitStrategy;

/// From so many bytes on it costs less to name the octets that a sample ends in to the kernel than to copy them first. At 8 KiB it
/// costs as much: a message in two parts takes the kernel 50 ns more.
pub(super) const OCTETS_APART_MIN: usize = 12 << 10;

/// A turn of one thread at the writer: its state, locked, and what to send with.
pub(super) struct Turn<'a> {
    pub(super) core: MutexGuard<'a, WriterState>,
    /// `None`: another thread sends, or this is for a lone sample, if it is one. Locked before `core`.
    pub(super) sending: Option<MutexGuard<'a, Sending>>,
}

impl Inner {
    #[inline]
    pub(super) fn turn(&self) -> Turn<'_> {
        let endpoint = &*self.endpoint;
        let sending = match endpoint.publishing {
            None => Some(endpoint.sending.lock()),
            Some(_) => None,
        };
        Turn { core: endpoint.core.lock(), sending }
    }

    /// A turn to write: the core hears of the last send call, by which it knows a burst.
    #[inline]
    pub(super) fn turn_to_write(&self) -> Turn<'_> {
        let mut turn = self.turn();
        if let Some(sending) = &mut turn.sending {
            if let Some(at) = sending.sent_at.take() {
                turn.core.note_sent(at);
            }
            if let Some(took) = sending.send_time.take() {
                turn.core.note_send_time(took);
            }
        }
        turn
    }

    /// A turn to write a sample that probably goes alone: only the core is locked, if nobody is sending.
    #[inline]
    pub(super) fn turn_to_write_lone(&self) -> Turn<'_> {
        let endpoint = &*self.endpoint;
        if endpoint.expects_lone.load(Ordering::Relaxed) {
            let core = endpoint.core.lock();
            // Whoever has this and hands samples out locks the core after it: it is seen here, or nothing was handed out.
            if !endpoint.sending.is_locked() {
                return Turn { core, sending: None };
            }
        }
        self.turn_to_write()
    }

    /// The same turn for a sample that turned out not to go alone.
    #[inline]
    pub(super) fn turn_in_order<'a>(&'a self, turn: Turn<'a>) -> Turn<'a> {
        if turn.sending.is_some() || self.endpoint.publishing.is_some() {
            return turn;
        }
        drop(turn);
        self.endpoint.expects_lone.store(false, Ordering::Relaxed);
        self.turn_to_write()
    }

    /// Writes a sample of [`OCTETS_APART_MIN`] bytes or more in one of the ways that copy less. `false`: there is none for it.
    #[inline(never)]
    pub(super) fn write_large<T: DdsType>(
        &self,
        sample: &T,
        len: usize,
        key: Option<[u8; 16]>,
        timestamp: Option<Timestamp>,
    ) -> Result<bool> {
        if len > config::PIECE_BYTES {
            return self.write_in_pieces(sample, key, timestamp);
        }
        match sample.bulk_octets().filter(|octets| octets.len() >= OCTETS_APART_MIN) {
            Some(octets) => self.write_apart(sample, LonePayload { len, octets }, key, timestamp),
            None => Ok(false),
        }
    }

    /// Writes a sample that goes alone, as the one before did, with octets that are sent from where the application has them.
    /// `false`: it is to be written the other way.
    fn write_apart<T: DdsType>(
        &self,
        sample: &T,
        payload: LonePayload<'_>,
        key: Option<[u8; 16]>,
        timestamp: Option<Timestamp>,
    ) -> Result<bool> {
        if !self.endpoint.expects_lone.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let count = payload.octets.len();
        let fill = |room: &mut [u8]| weir_cdr::encode_payload_around(sample, count, self.encoding, room);
        let now = clock::now();
        let timestamp = timestamp.unwrap_or_else(|| self.driver().wall_clock.timestamp(now));
        let mut turn = self.turn_to_write_lone();
        let is_sent = turn.core.write_straight(now, (timestamp, key), payload, fill)?;
        if is_sent {
            self.end_lone(turn);
            self.note_assertion(now);
        }
        Ok(is_sent)
    }

    /// After a sample was sent alone.
    #[inline]
    pub(super) fn end_lone(&self, turn: Turn<'_>) {
        if turn.sending.is_some() {
            self.endpoint.expects_lone.store(true, Ordering::Relaxed);
        }
        let next = turn.core.next_timeout();
        drop(turn);
        if let Some(at) = next {
            self.driver().timers.arm(at);
        }
    }

    /// After a sample was committed: sends it, or sees to it that it is sent in time.
    #[inline]
    pub(super) fn send(&self, turn: Turn<'_>, now: Time) {
        let Turn { core, sending } = turn;
        match (sending, &self.endpoint.publishing) {
            (Some(sending), _) => self.send_here(core, sending, now),
            (None, Some(publishing)) => self.leave_to(publishing, core, now),
            (None, None) => {}
        }
    }

    /// Sends everything, also what waits for more of a burst or a batch.
    pub(super) fn flush(&self, turn: Turn<'_>, now: Time) {
        let Turn { mut core, sending } = turn;
        match (sending, &self.endpoint.publishing) {
            (Some(mut sending), _) => {
                core.flush(now, &mut sending.outbox);
                self.transmit_in_time(core, sending);
            }
            (None, Some(publishing)) => {
                core.replace_unsent();
                core.release_held();
                drop(core);
                publishing.tell();
            }
            (None, None) => {}
        }
    }

    /// Tells the thread that publishes of a sample, unless that is still held back.
    #[inline]
    fn leave_to(&self, publishing: &Publishing, mut core: MutexGuard<'_, WriterState>, now: Time) {
        core.replace_unsent();
        if core.is_transmission_due(now) {
            drop(core);
            publishing.tell();
            return;
        }
        let next = core.next_timeout().filter(|_| core.paused_until().is_none());
        if core.has_unsent() {
            self.driver().note_queued();
        }
        drop(core);
        if let Some(at) = next {
            self.driver().timers.arm(at);
        }
    }

    #[inline]
    fn send_here(
        &self,
        mut core: MutexGuard<'_, WriterState>,
        mut sending: MutexGuard<'_, Sending>,
        now: Time,
    ) {
        core.poll_transmit(now, &mut sending.outbox);
        // After a pause this thread goes on.
        let next = core.next_timeout().filter(|_| core.paused_until().is_none());
        if core.has_unsent() {
            self.driver().note_queued();
        }
        let (window, in_flight) = core.window();
        let is_amid_sample = core.is_amid_sample();
        self.endpoint.expects_lone.store(false, Ordering::Relaxed);
        self.transmit(core, &mut sending);
        let has_sent = sending.sent_at.is_some();
        sending.send_time = sending.sent_at.map(|at| at.since(now));
        // What is received calls listeners, and those may write.
        drop(sending);
        if let Some(at) = next {
            self.driver().timers.arm(at);
        }
        if is_amid_sample {
            self.finish_sample();
            return;
        }
        // Acknowledgements are due: taking them in here spares the background thread a wake-up.
        if in_flight > window / 2 && has_sent {
            self.driver().receive_what_is_there();
            self.note_busy();
        }
    }

    /// The time until now was ours, not the application's: it does not end a burst.
    #[inline]
    fn note_busy(&self) {
        if self.endpoint.publishing.is_none() {
            self.endpoint.sending.lock().sent_at = Some(clock::now());
        }
    }

    /// Sends the rest of a large sample as readers make room, or after pauses if they are best-effort. When none makes
    /// room for as long as a write may block, the timer thread goes on with it.
    #[cold]
    fn finish_sample(&self) {
        let endpoint = &self.endpoint;
        loop {
            let may_go_on = self.wait_amid_sample();
            let mut sending = endpoint.sending.lock();
            let mut core = endpoint.core.lock();
            core.poll_transmit(clock::now(), &mut sending.outbox);
            let is_amid_sample = core.is_amid_sample();
            if !may_go_on {
                core.leave_sample();
            }
            self.transmit_in_time(core, sending);
            if !is_amid_sample || !may_go_on {
                return;
            }
        }
    }

    /// Waits until more of a large sample may leave, and takes in what arrives meanwhile. `false`: no reader has made
    /// room for as long as a write may block.
    fn wait_amid_sample(&self) -> bool {
        let (driver, core) = (self.driver(), &self.endpoint.core);
        let paused_until = core.lock().paused_until();
        // What is received while blocking ends a pause only to the tick of the kernel, which is longer.
        if let Some(until) = paused_until.filter(|_| driver.wait != WaitStrategy::Spin) {
            driver.receive_what_is_there();
            std::thread::sleep(until.since(clock::now()));
            return true;
        }
        let deadline = paused_until.unwrap_or_else(|| clock::now() + self.qos.policies.max_blocking_time);
        let is_done = || core.lock().can_go_on(clock::now());
        driver.receive_until(Some(deadline), driver.wait, is_done) || paused_until.is_some()
    }

    /// Sends the outbox, and sees to it that what is due later is sent in time.
    fn transmit_in_time(&self, core: MutexGuard<'_, WriterState>, mut sending: MutexGuard<'_, Sending>) {
        // After a pause this thread goes on.
        let next = core.next_timeout().filter(|_| core.paused_until().is_none());
        self.transmit(core, &mut sending);
        drop(sending);
        if let Some(at) = next {
            self.driver().timers.arm(at);
        }
    }

    /// Sends the outbox, outside the lock of the writer's state.
    #[inline]
    pub(super) fn transmit(&self, core: MutexGuard<'_, WriterState>, sending: &mut Sending) {
        drop(core);
        if !sending.outbox.is_empty() {
            sending.sender.send(&self.driver().channel.socket, &mut sending.outbox);
            sending.sent_at = Some(clock::now());
        }
    }

    /// Waits for room after a refusal, or says why there is none.
    #[cold]
    pub(super) fn make_room(
        &self,
        refused: WriteRefused,
        (key, payload_len): (Option<[u8; 16]>, usize),
        now: Time,
        waiting_since: &mut Option<Time>,
    ) -> Result<()> {
        if refused != WriteRefused::WindowFull {
            return Err(loan::refusal(refused));
        }
        let patience = self.qos.policies.max_blocking_time;
        let deadline = *waiting_since.get_or_insert(now) + patience;
        let endpoint = &self.endpoint;
        let _waiting = endpoint.publishing.as_ref().map(Publishing::wait_for_room);
        let is_done = || endpoint.core.lock().has_room_for(key, payload_len);
        if self.driver().receive_until(Some(deadline), self.driver().wait, is_done) {
            self.note_busy();
            return Ok(());
        }
        Err(DdsError::Timeout {
            what: "room for another sample",
            waited: patience,
            hint: self.lagging_hint(),
        })
    }

    /// Waits until a sample, and all before it, were given to the kernel by the thread that publishes. Whether they were.
    pub(super) fn wait_until_published(
        &self,
        publishing: &Publishing,
        last: SequenceNumber,
        deadline: Time,
    ) -> bool {
        let endpoint = &self.endpoint;
        let _waiting = publishing.wait_for_end();
        let is_done = || endpoint.core.lock().is_handed_out(last);
        let is_published = self.driver().receive_until(Some(deadline), self.driver().wait, is_done);
        // The thread holds this from before it hands samples out until the kernel has them.
        drop(endpoint.sending.lock());
        is_published
    }

    pub(super) fn lagging_hint(&self) -> String {
        let core = self.endpoint.core.lock();
        match core.lagging_readers().next() {
            Some(reader) => {
                format!(": reader {reader} is furthest behind and has not acknowledged what was written")
            }
            None if core.has_unsent() => ": what was written before was not sent yet".to_owned(),
            None => String::new(),
        }
    }
}
