//! The one way from a write call to the network: a sample is put into the history and sent, or the call waits for room
//! and tries again.

use std::ops::Range;

use weir_cdr::{DdsType, Pieces};
use weir_rtps::config;
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, DirectPayload, Stamp, WriteRefused, WriterCore};
use weir_wire::Timestamp;

use super::inner::Inner;
use super::memory::Memory;
use super::serialized;
use crate::clock;
use crate::driver::lane::Turn;
use crate::error::Result;

/// From so many bytes on it costs less to name the bulk that a sample ends in to the kernel than to copy it first. At
/// 8 KiB it costs as much: a message in two parts takes the kernel 50 ns more.
const BULK_APART_MIN: usize = 12 << 10;

/// What is written.
pub(super) enum Source<'a, T: DdsType> {
    /// A value, encoded where it stays.
    Typed(&'a T),
    /// A value that ends in a long sequence, encoded and sent piece by piece.
    Pieces(&'a T, &'a Pieces<'a, T>),
    /// A payload that is serialized already.
    Serialized(&'a [u8]),
    /// A payload in memory that the writer has lent.
    Loan(&'a mut Memory, Range<usize>),
    /// The end of an instance, with the payload that names it.
    End(ChangeKind, &'a [u8]),
}

/// What has come of putting a source into the history.
enum Put {
    /// It is there.
    Whole,
    /// Its beginning is there; it is to be sent in pieces of so many bytes.
    Begun(usize),
    /// Nothing has happened: it is not worth sending in pieces.
    NotInPieces,
}

impl Inner {
    /// Writes a value. One that leaves by itself is sent here; the others take the general way.
    #[inline]
    pub(super) fn write_typed<T: DdsType>(
        &self,
        sample: &T,
        key: Option<[u8; 16]>,
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let (driver, lane) = (self.driver(), &self.endpoint.lane);
        let len = weir_cdr::payload_len_in(sample, self.encoding);
        if T::BULK_ELEMENT.is_some() && len > config::PIECE_BYTES {
            return self.write_large(sample, (key, len), timestamp);
        }
        if timestamp.is_none() && self.qos.batch.is_some() && !self.endpoint.assertions.is_watched() {
            let encode = |room: &mut [u8]| weir_cdr::encode_payload_in(sample, self.encoding, room).map(drop);
            if lane.core().extend_batch(len, key, encode)?.is_some() {
                return Ok(());
            }
        }
        let now = clock::now();
        let stamp = self.stamp(now, key, timestamp);
        let mut turn = lane.direct_turn();
        if self.write_direct(&mut turn, now, stamp, sample, len)? {
            lane.end_direct(&driver.outlet, turn);
            self.note_assertion(now);
            return Ok(());
        }
        let turn = lane.in_order(turn);
        self.write_in_turn((now, turn), Source::Typed(sample), (key, len), timestamp)
    }

    /// Writes a sample of `len` bytes, stamped with the time of the call unless `timestamp` is given. Waits for room as
    /// long as a write may block.
    #[inline]
    pub(super) fn write<T: DdsType>(
        &self,
        source: Source<'_, T>,
        size: (Option<[u8; 16]>, usize),
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let now = clock::now();
        self.write_in_turn((now, self.endpoint.lane.turn()), source, size, timestamp)
    }

    /// The same in a turn that has begun.
    fn write_in_turn<T: DdsType>(
        &self,
        (mut now, mut turn): (Time, Turn<'_>),
        mut source: Source<'_, T>,
        (key, len): (Option<[u8; 16]>, usize),
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let mut waiting_since = None;
        loop {
            if timestamp.is_some() {
                // The samples of a batch have one timestamp: this one, and those that follow, have others.
                turn.core.seal();
            }
            let stamp = self.stamp(now, key, timestamp);
            match self.put(&mut turn.core, &mut source, now, stamp, len)? {
                Ok(Put::Whole) => {
                    if timestamp.is_some() {
                        turn.core.seal();
                    }
                    match source {
                        // An instance that has ended is no part of a burst.
                        Source::End(..) => self.flush(turn, now),
                        _ => self.send(turn, now),
                    }
                    break;
                }
                Ok(Put::Begun(piece_len)) => {
                    if let Source::Pieces(_, payload) = &source {
                        self.send_pieces(turn, payload, piece_len)?;
                    }
                    break;
                }
                Ok(Put::NotInPieces) => {
                    if let Source::Pieces(sample, _) = source {
                        source = Source::Typed(sample);
                    }
                    continue;
                }
                Err(refused) => {
                    self.flush(turn, now);
                    self.make_room(refused, (key, len), now, &mut waiting_since)?;
                }
            }
            now = clock::now();
            turn = self.endpoint.lane.turn();
        }
        self.note_assertion(now);
        Ok(())
    }

    #[inline]
    fn stamp(&self, now: Time, key: Option<[u8; 16]>, timestamp: Option<Timestamp>) -> Stamp {
        Stamp { timestamp: timestamp.unwrap_or_else(|| self.driver().wall_clock.timestamp(now)), key }
    }

    /// Puts a source into the history.
    #[inline(always)]
    fn put<T: DdsType>(
        &self,
        core: &mut WriterCore,
        source: &mut Source<'_, T>,
        now: Time,
        stamp: Stamp,
        len: usize,
    ) -> Result<std::result::Result<Put, WriteRefused>> {
        let written = match source {
            Source::Typed(sample) => {
                let encode =
                    |room: &mut [u8]| weir_cdr::encode_payload_in(*sample, self.encoding, room).map(drop);
                core.write(now, stamp, len, encode)?
            }
            Source::Pieces(..) => {
                let begun = core.begin_pieces(now, stamp, len);
                return Ok(begun.map(|piece_len| piece_len.map_or(Put::NotInPieces, Put::Begun)));
            }
            Source::Serialized(payload) => {
                core.write(now, stamp, len, |room| serialized::copy_padded(payload, room))?
            }
            Source::Loan(memory, payload) => memory.commit(core, now, stamp, payload.clone()),
            Source::End(kind, payload) => {
                core.write_change(now, Some(stamp.timestamp), Change { kind: *kind, key: stamp.key, payload })
            }
        };
        Ok(written.map(|_| Put::Whole))
    }

    /// Writes and sends a sample by itself, if it is one that leaves so.
    #[inline(always)]
    fn write_direct<T: DdsType>(
        &self,
        turn: &mut Turn<'_>,
        now: Time,
        stamp: Stamp,
        sample: &T,
        len: usize,
    ) -> Result<bool> {
        if T::BULK_ELEMENT.is_some() && len >= BULK_APART_MIN {
            return self.write_direct_apart(turn, now, stamp, sample, len);
        }
        let outlet = &self.driver().outlet;
        let encode = |room: &mut [u8]| weir_cdr::encode_payload_in(sample, self.encoding, room).map(|_| 0);
        Ok(turn.core.write_direct(outlet, now, stamp, DirectPayload { len, bulk: &[] }, encode)?)
    }

    /// The same for a sample that ends in a bulk, which is sent from the application's memory.
    #[inline(never)]
    fn write_direct_apart<T: DdsType>(
        &self,
        turn: &mut Turn<'_>,
        now: Time,
        stamp: Stamp,
        sample: &T,
        len: usize,
    ) -> Result<bool> {
        let bulk = sample.bulk_octets().filter(|bulk| bulk.len() >= BULK_APART_MIN).unwrap_or_default();
        let encode = |room: &mut [u8]| match bulk.len() {
            0 => weir_cdr::encode_payload_in(sample, self.encoding, room).map(|_| 0),
            len => weir_cdr::encode_payload_around(sample, len, self.encoding, room),
        };
        let outlet = &self.driver().outlet;
        Ok(turn.core.write_direct(outlet, now, stamp, DirectPayload { len, bulk }, encode)?)
    }

    /// Writes a large value: in pieces, if it ends in a long sequence.
    #[cold]
    #[inline(never)]
    fn write_large<T: DdsType>(
        &self,
        sample: &T,
        size: (Option<[u8; 16]>, usize),
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let pieces = Pieces::new(sample, self.encoding)?;
        let source = match &pieces {
            Some(pieces) => Source::Pieces(sample, pieces),
            None => Source::Typed(sample),
        };
        self.write(source, size, timestamp)
    }
}
