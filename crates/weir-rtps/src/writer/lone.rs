//! The shortest way of a sample: one that nothing else is due with and nothing is held back before leaves by itself, at once.
//!
//! It is the way of [`WriterCore::write_with`] and [`WriterCore::poll_transmit`], with the same bytes and the same state
//! behind it, in one step: what those two would find out about other samples, bursts, repairs and HEARTBEATs is known here
//! to be nothing. A sample that nobody can ask for again does not even come into the history.

use weir_wire::Timestamp;

use super::{WriterCore, compose};
use crate::config;
use crate::time::Time;
use crate::window::charge;

/// Memory for samples that are not kept: nobody shares it, so that nobody has to be asked whether it is free.
#[derive(Debug, Default)]
pub(super) struct LoneMemory {
    bytes: Box<[u8]>,
    /// Where datagrams begin: in the middle of a page, see [`Block::for_sending`](crate::block::Block).
    start: usize,
}

impl LoneMemory {
    #[inline]
    fn room(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < self.start + len {
            self.grow();
        }
        &mut self.bytes[self.start..self.start + len]
    }

    #[cold]
    fn grow(&mut self) {
        self.bytes = vec![0; PAGE_BYTES + config::DATAGRAM_MAX_BYTES].into_boxed_slice();
        self.start = (START_IN_PAGE + PAGE_BYTES - self.bytes.as_ptr() as usize % PAGE_BYTES) % PAGE_BYTES;
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

const PAGE_BYTES: usize = 4096;
/// Half a page, and a cache line.
const START_IN_PAGE: usize = 2048 + 64;

/// The payload of a sample that goes alone.
#[derive(Clone, Copy, Debug)]
pub struct LonePayload<'a> {
    /// Its length in bytes, a multiple of four.
    pub len: usize,
    /// Octets of it that need not be copied before it is sent; empty: there are none.
    pub octets: &'a [u8],
}

impl LonePayload<'_> {
    /// One of `len` bytes, all of which are copied.
    #[inline]
    pub const fn of(len: usize) -> Self {
        Self { len, octets: &[] }
    }
}

/// The datagram of a sample that goes alone, in up to three parts one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct LoneDatagram<'a> {
    /// All of it, or what stands in front of the octets.
    pub front: &'a [u8],
    /// Those of [`LonePayload`].
    pub octets: &'a [u8],
    /// What stands behind them, if anything.
    pub back: &'a [u8],
}

impl<'a> LoneDatagram<'a> {
    #[inline(always)]
    fn new(datagram: &'a [u8], octets: &'a [u8], at: usize) -> Self {
        if octets.is_empty() {
            return Self { front: datagram, octets, back: &[] };
        }
        Self { front: &datagram[..at], octets, back: &datagram[at + octets.len()..] }
    }
}

impl WriterCore {
    /// Writes a sample that leaves alone and at once, with nothing else: `fill` gets the place of its payload, and returns
    /// where in there its octets belong, if it has such; it leaves that place alone. `send` gets the datagram, which is to be
    /// sent to all of [`WriterCore::destinations`] before anything that is handed out later. What is to be done
    /// only then is done behind that: a copy of the octets, if the sample is kept, and the book-keeping.
    ///
    /// `false`: write it the other way, by [`WriterCore::write_with`]; nothing has happened. So it is also while an
    /// answer to a HEARTBEAT is awaited: whoever holds this core while the datagram is sent keeps out who brings it.
    ///
    /// # Errors
    /// That of `fill`; nothing has happened.
    #[inline]
    pub fn write_lone<E>(
        &mut self,
        now: Time,
        (timestamp, key): (Timestamp, Option<[u8; 16]>),
        payload: LonePayload<'_>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
        send: impl FnOnce(LoneDatagram<'_>),
    ) -> Result<bool, E> {
        let LonePayload { len: payload_len, octets } = payload;
        let len = compose::datagram_len(payload_len);
        let quick_writes = self.quick_writes(now);
        if !self.leaves_alone(now, len) || quick_writes > config::COALESCING_AFTER_WRITES {
            return Ok(false);
        }
        let sn = self.history.next();
        let is_kept = self.has_reliable_readers()
            || !self.config.keeps_nothing_for_late_readers()
            || !self.history.is_empty();
        let datagram = if is_kept { self.history.reserve(len) } else { self.lone.room(len) };
        let octets_at = compose::PAYLOAD_AT + fill(&mut datagram[compose::PAYLOAD_AT..][..payload_len])?;
        self.template.fill(datagram, sn, timestamp, payload_len);
        let instance = match self.instances.are_open() {
            true => Ok(None),
            // A refusal is repeated on the other way.
            false => self.admit(key, len),
        };
        let Ok(instance) = instance else { return Ok(false) };
        let datagram = if is_kept { self.history.filled(len) } else { self.lone.room(len) };
        send(LoneDatagram::new(datagram, octets, octets_at));
        if is_kept && !octets.is_empty() {
            self.history.reserved(len)[octets_at..][..octets.len()].copy_from_slice(octets);
        }
        self.burst.note(now, quick_writes);
        self.instances.committed(instance, sn);
        self.unsent = sn.next();
        if is_kept {
            self.history.commit(len, charge(len));
            self.note_kept(now);
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
    fn leaves_alone(&self, now: Time, len: usize) -> bool {
        let is_nothing_due = !(self.heartbeat.is_due || self.heartbeat.is_awaited || self.is_answer_due);
        !self.has_unsent()
            && self.config.batch.is_none()
            && !self.config.is_asynchronous
            && !self.destinations.is_empty()
            && is_nothing_due
            && len + compose::HEARTBEAT_LEN <= self.datagram_max
            && (!self.has_reliable_readers() || self.leaves_without_heartbeat(now, charge(len)))
    }

    /// Whether there is room for a sample at reliable readers, so much that their acknowledgements need not be looked for,
    /// and it brings no HEARTBEAT.
    #[inline]
    fn leaves_without_heartbeat(&self, now: Time, cost: u64) -> bool {
        let window = self.window.size();
        let since_last = self.history.charged() + cost - self.heartbeat.charged;
        self.heartbeat.asked_at.is_none()
            && !self.is_lossy(now)
            && since_last < window / config::HEARTBEAT_WINDOW_SHARE
            && self.in_flight() + cost <= window / 2
            && self.has_room_behind_hole(cost)
    }

    /// Book-keeping after the last sample was laid into the history and handed out.
    #[inline]
    fn note_kept(&mut self, now: Time) {
        self.note_unacknowledged(now);
        self.instances.replace(&mut self.history, self.unsent.prev(), None);
        if !self.has_reliable_readers() {
            self.note_all_acknowledged();
            self.release();
        }
    }
}
