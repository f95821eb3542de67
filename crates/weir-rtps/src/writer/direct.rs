//! A fast path: a single-sample datagram with which nothing else is due is written and handed out in one step.
//!
//! The steps are those of [`WriterCore::write`] and [`WriterCore::poll_transmit`], and bytes and state afterwards are the
//! same; what those two would find out about other samples, bursts, repairs and HEARTBEATs is known here to be nothing.
//! A sample that no reader can ask for again does not enter the history.

use super::compose;
use super::settings::Stamp;
use super::state::WriterCore;
use crate::config;
use crate::time::Time;
use crate::window::charge;

/// The payload of a sample that is sent directly.
#[derive(Clone, Copy, Debug)]
pub struct DirectPayload<'a> {
    /// Its length in bytes, a multiple of four.
    pub len: usize,
    /// A part of it that need not be copied before it is sent; empty: there is none.
    pub bulk: &'a [u8],
}

/// The datagram of a sample that is sent directly, in up to three parts.
#[derive(Clone, Copy, Debug)]
pub struct DirectDatagram<'a> {
    /// All of it, or what precedes the bulk.
    pub front: &'a [u8],
    /// That of [`DirectPayload`].
    pub bulk: &'a [u8],
    /// What follows the bulk, if anything.
    pub back: &'a [u8],
}

impl<'a> DirectDatagram<'a> {
    #[inline(always)]
    fn new(datagram: &'a [u8], bulk: &'a [u8], at: usize) -> Self {
        if bulk.is_empty() {
            return Self { front: datagram, bulk, back: &[] };
        }
        Self { front: &datagram[..at], bulk, back: &datagram[at + bulk.len()..] }
    }
}

impl WriterCore {
    /// Writes a sample that leaves at once and alone. `fill` gets the room for its payload and returns where in there
    /// the bulk belongs, if there is one, leaving that place alone. `send` gets the datagram, to be sent to all of
    /// [`WriterCore::destinations`] before anything that is handed out later. Work that can wait follows the send: the
    /// copy of the bulk, if the sample is kept, and the book-keeping.
    ///
    /// `false`, and nothing has happened: write it by [`WriterCore::write`]. That is also so while an answer to a
    /// HEARTBEAT is awaited: the thread that receives it would wait for this core while the datagram is sent.
    ///
    /// # Errors
    /// That of `fill`; nothing has happened then.
    #[inline]
    pub fn write_direct<E>(
        &mut self,
        now: Time,
        stamp: Stamp,
        payload: DirectPayload<'_>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
        send: impl FnOnce(DirectDatagram<'_>),
    ) -> Result<bool, E> {
        let DirectPayload { len: payload_len, bulk } = payload;
        let len = compose::datagram_len(payload_len);
        let quick_writes = self.quick_writes(now);
        if !self.can_leave_alone(now, len) || quick_writes > config::COALESCING_AFTER_WRITES {
            return Ok(false);
        }
        let sn = self.history.next();
        let is_kept =
            self.has_reliable || !self.config.keeps_nothing_for_late_readers() || !self.history.is_empty();
        let datagram = if is_kept { self.history.reserve(len) } else { self.unkept.reserve(len) };
        let bulk_at = compose::PAYLOAD_AT + fill(&mut datagram[compose::PAYLOAD_AT..][..payload_len])?;
        self.template.fill(datagram, sn, stamp.timestamp, payload_len);
        let instance = match self.instances.are_open() {
            true => Ok(None),
            // `write` repeats a refusal.
            false => self.admit_instance(stamp.key, len),
        };
        let Ok(instance) = instance else { return Ok(false) };
        let datagram = if is_kept { self.history.filled(len) } else { self.unkept.reserve(len) };
        send(DirectDatagram::new(datagram, bulk, bulk_at));
        if is_kept && !bulk.is_empty() {
            self.history.reserved(len)[bulk_at..][..bulk.len()].copy_from_slice(bulk);
        }
        self.burst.note(now, quick_writes);
        self.instances.committed(instance, sn);
        self.unsent = sn.next();
        if is_kept {
            self.history.commit(len, 0, charge(len));
            self.note_unacknowledged(now);
            self.handed_out();
            return Ok(true);
        }
        self.history.pass(charge(len));
        self.note_all_acknowledged();
        if instance.is_some() {
            self.instances.replace(&mut self.history, sn, None);
            self.release();
        }
        Ok(true)
    }

    /// Whether a datagram of `len` bytes would be all that is to be sent.
    #[inline]
    fn can_leave_alone(&self, now: Time, len: usize) -> bool {
        let is_nothing_due = !(self.heartbeat.is_due || self.heartbeat.is_awaited || self.is_answer_due);
        !self.has_unsent()
            && self.config.batch.is_none()
            && !self.config.is_asynchronous
            && !self.destinations.is_empty()
            && is_nothing_due
            && len + compose::HEARTBEAT_LEN <= self.datagram_max
            && (!self.has_reliable || self.needs_no_heartbeat(now, charge(len)))
    }

    /// Whether reliable readers have so much room that no acknowledgement is needed soon, and the sample brings no
    /// HEARTBEAT.
    #[inline]
    fn needs_no_heartbeat(&self, now: Time, cost: u64) -> bool {
        let window = self.window.size();
        let since_last = self.history.charged() + cost - self.heartbeat.charged;
        self.heartbeat.asked_at.is_none()
            && !self.is_lossy(now)
            && since_last < window / config::HEARTBEAT_WINDOW_SHARE
            && self.in_flight() + cost <= window / 2
            && self.has_room_behind_hole(cost)
    }
}
