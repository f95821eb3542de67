//! The fast path: writes and hands out a single-sample datagram in one step, if nothing else is
//! due.
//!
//! It leaves the same bytes and state as [`WriterCore::write`] followed by
//! [`WriterCore::poll_transmit`]. It skips their checks for other samples, bursts, repairs and
//! HEARTBEATs, because it runs only if none of these is pending. A sample that no reader can
//! request again does not enter the history.

use weir_cdr::copy::{Stage, copy};

use super::compose;
use super::settings::Stamp;
use super::state::WriterCore;
use crate::config;
use crate::path::on_the_wire;
use crate::time::Time;
use crate::window::charge;

/// The payload of a sample sent by the fast path.
#[derive(Clone, Copy, Debug)]
pub struct DirectPayload<'a> {
    /// Length in bytes, a multiple of four.
    pub len: usize,
    /// The part of the payload that is sent without being copied first. May be empty.
    pub bulk: &'a [u8],
}

/// The datagram of a sample sent by the fast path, in up to three parts.
#[derive(Clone, Copy, Debug)]
pub struct DirectDatagram<'a> {
    /// The whole datagram, or what precedes the bulk.
    pub front: &'a [u8],
    /// The bulk of [`DirectPayload`].
    pub bulk: &'a [u8],
    /// What follows the bulk. May be empty.
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
    /// Writes and sends a sample in a datagram of its own.
    ///
    /// `fill` encodes the payload into the given room. It leaves out the bulk, if there is one, and
    /// returns where the bulk belongs. `send` sends the datagram to all of
    /// [`WriterCore::destinations`], before anything that is handed out later. Copying the bulk of
    /// a kept sample and bookkeeping follow after the send.
    ///
    /// Returns `false` if nothing happened; the caller then uses [`WriterCore::write`]. This
    /// includes the time while the response to a HEARTBEAT is awaited: the thread that receives it
    /// would have to wait for this core during the send.
    ///
    /// # Errors
    /// Those of `fill`; nothing has happened then.
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
        if quick_writes > config::COALESCING_AFTER_WRITES {
            return Ok(false);
        }
        let Some(cost) = self.charge_alone(now, len) else { return Ok(false) };
        let sn = self.history.next();
        let is_kept =
            self.has_reliable || !self.config.keeps_nothing_for_late_readers() || !self.history.is_empty();
        let datagram = if is_kept { self.history.reserve(len) } else { self.unkept.reserve(len) };
        let bulk_at = compose::PAYLOAD_AT + fill(&mut datagram[compose::PAYLOAD_AT..][..payload_len])?;
        self.template.fill(datagram, sn, stamp.timestamp, payload_len);
        let instance = match self.instances.are_open() {
            true => Ok(None),
            // `write` repeats the refusal.
            false => self.admit_instance(stamp.key, len),
        };
        let Ok(instance) = instance else { return Ok(false) };
        let datagram = if is_kept { self.history.filled(len) } else { self.unkept.reserve(len) };
        send(DirectDatagram::new(datagram, bulk, bulk_at));
        if is_kept && !bulk.is_empty() {
            copy(Stage::Keep, &mut self.history.reserved(len)[bulk_at..][..bulk.len()], bulk);
        }
        self.pacing.unrecorded += on_the_wire(len as u64);
        self.burst.note(now, quick_writes);
        self.instances.committed(instance, sn);
        self.unsent = sn.next();
        if is_kept {
            self.history.commit(len, 0, cost);
            self.note_unacknowledged(now);
            self.handed_out();
            return Ok(true);
        }
        self.history.pass(cost);
        self.note_all_acknowledged();
        if instance.is_some() {
            self.instances.replace(&mut self.history, sn, None, None);
            self.release();
        }
        Ok(true)
    }

    /// Returns the bytes that are charged for a datagram of `len` bytes, if it would be everything to be sent.
    #[inline(always)]
    fn charge_alone(&self, now: Time, len: usize) -> Option<u64> {
        let is_nothing_due = !(self.heartbeat.is_due || self.heartbeat.is_hurry_due || self.due.is_any());
        let is_alone = !self.has_unsent()
            && self.config.batch.is_none()
            && !self.is_indirect
            && !self.pacing.is_paced
            && !self.destinations.is_empty()
            && is_nothing_due
            && len + compose::HEARTBEAT_LEN <= self.datagram_max;
        if !is_alone {
            return None;
        }
        let cost = charge(len);
        (!self.has_reliable || self.needs_no_heartbeat(now, cost)).then_some(cost)
    }

    /// Returns whether reliable readers have so much room that no acknowledgement is needed soon,
    /// and no HEARTBEAT is due with the sample.
    #[inline]
    fn needs_no_heartbeat(&self, now: Time, cost: u64) -> bool {
        let window = self.window.size();
        let since_last = self.history.charged() + cost - self.heartbeat.charged;
        self.heartbeat.asked_at.is_none()
            && !self.is_lossy(now)
            && !self.heartbeat.would_ride(now, self.history.next())
            && since_last < window / config::HEARTBEAT_WINDOW_SHARE
            && self.in_flight() + cost <= window / 2
            && self.has_room_behind_hole(cost)
    }
}
