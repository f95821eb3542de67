//! The third step of a write: assigns the sequence number. Also the functions that combine the
//! first three steps.

use weir_wire::{SequenceNumber, Timestamp};

use super::admit::Form;
use super::burst::OpenBatch;
use super::compose;
use super::refusal::WriteRefused;
use super::settings::{Change, Stamp};
use super::state::WriterCore;
use crate::change_kind::ChangeKind;
use crate::config;
use crate::qos::History;
use crate::time::Time;
use crate::window::charge;

impl WriterCore {
    /// Writes a sample. `fill` encodes the payload, `payload_len` bytes including the encapsulation
    /// header.
    ///
    /// # Errors
    /// The outer error is that of `fill`, the inner one a refusal. In both cases nothing has
    /// happened. `WindowFull` is returned only for KEEP_ALL, or if unacknowledged samples reach a
    /// resource limit.
    #[inline(always)]
    pub fn write<E>(
        &mut self,
        now: Time,
        stamp: Stamp,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Result<SequenceNumber, WriteRefused>, E> {
        match self.admit_payload(payload_len) {
            // A copy of the steps for the common form, without the branches of the others.
            Ok((Form::Datagram, cost)) => {
                self.write_as((Form::Datagram, cost), now, stamp, payload_len, fill)
            }
            Ok(admitted) => self.write_as(admitted, now, stamp, payload_len, fill),
            Err(refused) => Ok(Err(refused)),
        }
    }

    /// The steps of [`WriterCore::write`] after admission.
    #[inline(always)]
    fn write_as<E>(
        &mut self,
        (form, cost): (Form, u64),
        now: Time,
        stamp: Stamp,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Result<SequenceNumber, WriteRefused>, E> {
        self.encode(form, stamp.timestamp, payload_len, fill)?;
        let instance = match self.admit_instance(stamp.key, form.datagram_bytes(payload_len)) {
            Ok(instance) => instance,
            Err(refused) => return Ok(Err(refused)),
        };
        Ok(Ok(self.commit(now, stamp.timestamp, (form, cost), payload_len, instance)))
    }

    /// Adds a sample to the open batch, if it has room and no timer has to be set. `fill` encodes
    /// the payload.
    ///
    /// Reads no clock and hands nothing out: the batch ends with a write that does not fit, or by
    /// timer. Returns `None` if nothing happened; the caller then uses [`WriterCore::write`].
    ///
    /// # Errors
    /// Those of `fill`; nothing has happened then.
    #[inline]
    pub fn extend_batch<E>(
        &mut self,
        payload_len: usize,
        key: Option<[u8; 16]>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Option<SequenceNumber>, E> {
        let (Some(policy), Some(open)) = (&self.config.batch, self.open) else { return Ok(None) };
        let bytes = compose::extension_len(payload_len);
        let is_timed = self.heartbeat.next_at.is_some() || !self.has_reliable;
        let cost = open.charge_of(bytes);
        let is_simple = is_timed && !self.proxies.is_empty() && self.timed.is_none() && self.has_room(cost);
        if !is_simple || !open.takes(policy, bytes) {
            return Ok(None);
        }
        let sn = self.history.next();
        let Some(room) = self.history.extension(bytes) else { return Ok(None) };
        fill(&mut room[compose::DATA_LEN..][..payload_len])?;
        self.template.fill_extension(room, sn, payload_len);
        let Ok(instance) = self.admit_instance(key, bytes) else { return Ok(None) };
        self.instances.committed(instance, sn);
        self.commit_extension(open, bytes, cost);
        self.burst.add_untimed(bytes);
        Ok(Some(sn))
    }

    /// Copies a change into the history: for disposes and unregisters, which carry inline QoS, and
    /// for samples whose speed does not matter.
    ///
    /// # Errors
    /// As [`WriterCore::write`].
    pub fn write_change(
        &mut self,
        now: Time,
        timestamp: Option<Timestamp>,
        change: Change<'_>,
    ) -> Result<SequenceNumber, WriteRefused> {
        let payload_len = change.payload.len();
        // An announcement is one datagram: those who receive it need not assemble any.
        let is_large = compose::datagram_len(payload_len) + compose::HEARTBEAT_LEN > self.datagram_max
            && !self.config.guid.entity.is_builtin();
        if change.kind == ChangeKind::Alive && (timestamp.is_some() || is_large) {
            let stamp = Stamp { timestamp: timestamp.unwrap_or(Timestamp::INVALID), key: change.key };
            let copy = |room: &mut [u8]| {
                room.copy_from_slice(change.payload);
                Ok::<_, core::convert::Infallible>(())
            };
            return self.write(now, stamp, payload_len, copy).unwrap_or_else(|never| match never {});
        }
        if self.is_closed {
            return Err(WriteRefused::Closed);
        }
        let inline_qos = if change.kind == ChangeKind::Alive { 0 } else { compose::INLINE_QOS_LEN };
        let len = compose::datagram_len(payload_len) + inline_qos;
        let carried =
            config::DATAGRAM_MAX_BYTES.min(self.config.datagram_max.into()) - compose::HEARTBEAT_LEN;
        // Memory for the inline QoS is reserved besides.
        let len_max = carried.min(self.sample_len_max.saturating_add(inline_qos));
        if len > len_max {
            let max = len_max.saturating_sub(inline_qos + compose::PAYLOAD_AT) / 4 * 4;
            return Err(WriteRefused::TooLarge { len: payload_len, max });
        }
        if !self.has_room(charge(len)) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        let instance = self.admit_to_instance(change.key, len)?;
        self.open = None;
        let sn = self.history.next();
        let len = compose::with_inline_qos(&self.config, sn, timestamp, &change, self.history.reserve(len));
        self.history.commit(len, 0, charge(len));
        self.instances.committed(instance, sn);
        if matches!(change.kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered) {
            self.instances.ended(instance, sn, change.kind == ChangeKind::DisposedUnregistered);
        }
        if self.timed.is_some() {
            self.note_timed(now, change.kind, instance, sn);
        }
        self.laid(now, Timestamp::INVALID, Form::Datagram, sn, len);
        Ok(sn)
    }

    /// Makes the payload encoded last the next sample.
    #[inline(always)]
    fn commit(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        (form, cost): (Form, u64),
        payload_len: usize,
        instance: Option<u32>,
    ) -> SequenceNumber {
        let sn = self.history.next();
        self.instances.committed(instance, sn);
        if self.timed.is_some() {
            self.note_timed(now, ChangeKind::Alive, instance, sn);
        }
        if let (Form::Extension { bytes }, Some(open)) = (form, self.open) {
            self.commit_extension(open, bytes, cost);
            self.committed(now, sn, bytes);
            return sn;
        }
        let (len, size) = match form {
            Form::Fragments { size } => (payload_len, size),
            _ => (compose::datagram_len(payload_len), 0),
        };
        self.history.commit(len, size, cost);
        self.laid(now, timestamp, form, sn, len);
        sn
    }

    #[inline]
    fn commit_extension(&mut self, open: OpenBatch, bytes: usize, cost: u64) {
        self.history.commit_extension(bytes, cost);
        self.open = Some(OpenBatch { len: open.len + bytes, samples: open.samples + 1, ..open });
    }

    /// Bookkeeping after sample `sn` was stored by itself, `len` bytes.
    #[inline]
    pub(super) fn laid(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        form: Form,
        sn: SequenceNumber,
        len: usize,
    ) {
        match form {
            Form::FirstOfBatch => self.open = Some(OpenBatch { first: sn, len, samples: 1, since: now }),
            Form::Fragments { .. } => self.large.note(sn, timestamp, &self.history),
            Form::Datagram | Form::Extension { .. } => {}
        }
        self.burst.datagrams += 1;
        self.committed(now, sn, len);
    }

    /// Bookkeeping after sample `sn` was stored in `len` new bytes, by itself or in a batch.
    #[inline]
    fn committed(&mut self, now: Time, sn: SequenceNumber, len: usize) {
        if self.proxies.is_empty() {
            self.unsent = sn.next();
            self.fragments.end();
            self.open = None;
            (self.burst.datagrams, self.burst.bytes) = (0, 0);
            self.handed_out();
            return;
        }
        self.burst.bytes += len;
        self.note_unacknowledged(now);
        self.note_write(now, len);
    }

    /// Bookkeeping after everything before `unsent` was handed out. Returns whether reliable
    /// readers have to acknowledge it.
    #[inline]
    pub(super) fn handed_out(&mut self) -> bool {
        if self.config.is_asynchronous || self.pacing.is_waiting() {
            self.replace_unsent();
        } else if self.instances.keeps_last() {
            // Only samples handed out are replaced: a sample held back in a burst is still sent
            // when the next one replaces it.
            let in_transit = self.in_transit();
            self.instances.replace(&mut self.history, self.unsent.prev(), None, in_transit);
        }
        if !self.has_reliable {
            self.note_all_acknowledged();
            self.release();
        }
        self.has_reliable
    }

    /// Starts the HEARTBEAT timer, if reliable readers have to acknowledge something.
    #[inline]
    pub(super) fn note_unacknowledged(&mut self, now: Time) {
        if self.heartbeat.next_at.is_none() && self.has_reliable {
            self.begin_heartbeat(now);
        }
        self.heartbeat.written_at = now;
    }

    /// Starts the HEARTBEAT timer. Not inlined: of a stream, few samples come here.
    #[inline(never)]
    fn begin_heartbeat(&mut self, now: Time) {
        self.heartbeat.delay = self.heartbeat_delay(now);
        // Readers that answer slowly are asked no sooner than they can answer.
        let may_ride = self.config.answer_time.is_zero();
        let last = self.history.last();
        let wait = self.heartbeat.regular_wait(now, last);
        let wait = wait.filter(|_| may_ride && self.may_wait(now));
        self.heartbeat.begin(now, last, may_ride, wait);
    }

    /// Returns whether acknowledgements may come late: readers reveal losses themselves, and what is unacknowledged
    /// takes no room that writes wait for.
    pub(super) fn may_wait(&self, now: Time) -> bool {
        let is_roomy =
            |limit: Option<u32>| limit.is_none_or(|samples| samples >= 8 * config::REGULAR_SAMPLES);
        let is_kept = match self.config.history {
            History::KeepAll => true,
            // A sample is requested when the next one arrives. It must not have been replaced then.
            History::KeepLast(depth) => depth >= REGULAR_DEPTH_MIN,
        };
        self.reveals_losses
            && is_kept
            && self.timed.is_none()
            && !self.is_lossy(now)
            && self.large.is_empty()
            && is_roomy(self.config.max_samples)
            && is_roomy(self.config.max_samples_per_instance)
    }

    /// Counts everything handed out as acknowledged. No reader may be able to request it again.
    #[inline]
    pub(super) fn note_all_acknowledged(&mut self) {
        self.acknowledged = self.unsent.prev();
        self.acknowledged_charge = self.history.charged();
        self.seen_charge = self.acknowledged_charge;
    }

    /// Releases the samples that no reader can request any more.
    pub(super) fn release(&mut self) {
        let last = self.acknowledged.min(self.unsent.prev());
        let last = self.first_owed().map_or(last, |first| last.min(first.prev()));
        if self.config.keeps_nothing_for_late_readers() {
            self.instances.released(&self.history, last);
            self.history.release_to(last);
            self.large.release(self.history.first());
        }
        self.instances.release_ended(&mut self.history, last);
    }
}

/// A history of this depth still has a sample when the next one arrives, and when a thread was late.
const REGULAR_DEPTH_MIN: u32 = 4;
