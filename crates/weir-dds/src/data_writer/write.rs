//! The write loop: puts a sample into the history and sends it, or waits for room and tries again.

use std::ops::Range;
use std::sync::atomic::Ordering;

use weir_cdr::{DdsType, Pieces};
use weir_rtps::config;
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, DirectPayload, END_LEN_MORE, Stamp, WriteRefused, WriterCore};
use weir_wire::Timestamp;

use super::inner::Inner;
use super::memory::Memory;
use super::registered::InstanceKey;
use super::serialized;
use crate::clock;
use crate::driver::lane::Turn;
use crate::error::Result;
use crate::instance_handle::InstanceHandle;

/// Bulk size, in bytes, from which a gather send is cheaper than copying the bulk first.
///
/// The two cost the same at 8 KiB: a message in two parts takes the kernel 50 ns more.
const BULK_APART_MIN: usize = 12 << 10;

/// What is written.
pub(super) enum Source<'a, T: DdsType> {
    /// A value, to be encoded in the history.
    Typed(&'a T),
    /// A value ending in a long sequence, to be encoded and sent piece by piece.
    Pieces(&'a T, &'a Pieces<'a, T>),
    /// A payload that is already serialized.
    Serialized(&'a [u8]),
    /// A payload in a loaned block.
    Loan(&'a T, &'a mut Memory, Range<usize>),
    /// A dispose or unregister.
    End(&'a Ending<'a>),
}

/// A dispose or unregister of an instance.
pub(super) struct Ending<'a> {
    pub(super) kind: ChangeKind,
    pub(super) handle: InstanceHandle,
    pub(super) key: &'a InstanceKey,
    /// The serialized key in the form that is sent.
    pub(super) payload: &'a [u8],
}

/// Outcome of putting a source into the history.
enum Put {
    /// The whole sample is there.
    Whole,
    /// The sample was begun, to be encoded and sent in pieces of this many bytes.
    Begun(usize),
    /// Nothing happened: this sample is not sent in pieces.
    NotInPieces,
}

impl Inner {
    /// Writes a value.
    ///
    /// Tries in this order: pieces for a long value, the open batch, the fast path for a
    /// single-sample datagram, the general path.
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
        if timestamp.is_none()
            && self.has_batch.load(Ordering::Relaxed)
            && !self.endpoint.assertions.is_watched()
        {
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

    /// Writes a sample of `len` bytes, with the time of the call as source timestamp unless one is
    /// given.
    ///
    /// Waits up to `max_blocking_time` for room.
    #[inline(never)]
    pub(super) fn write<T: DdsType>(
        &self,
        source: Source<'_, T>,
        size: (Option<[u8; 16]>, usize),
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let now = clock::now();
        self.write_in_turn((now, self.endpoint.lane.turn()), source, size, timestamp)
    }

    /// [`Inner::write`] in a turn that has already begun.
    ///
    /// Always inlined, so that the loop of a typed value carries no other source.
    #[inline(always)]
    fn write_in_turn<T: DdsType>(
        &self,
        (mut now, mut turn): (Time, Turn<'_>),
        mut source: Source<'_, T>,
        (key, len): (Option<[u8; 16]>, usize),
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let (mut waiting_since, mut has_flushed) = (None, false);
        loop {
            if timestamp.is_some() {
                // All samples of a batch share one timestamp, so this sample cannot join a batch,
                // nor a later one join its datagram.
                turn.core.seal();
            }
            let stamp = self.stamp(now, key, timestamp);
            match self.put(&mut turn.core, &mut source, now, stamp, len)? {
                Ok(Put::Whole) => {
                    if timestamp.is_some() {
                        turn.core.seal();
                    }
                    match source {
                        // The end of an instance is sent at once, not held back in a burst.
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
                Err(WriteRefused::NewInstance) => {
                    self.register_new(&mut turn.core, &source, key)?;
                    continue;
                }
                Err(refused) => {
                    // Of a history that keeps the last samples, those that were held back can be replaced now.
                    let was_held_back = !has_flushed && turn.core.has_unsent();
                    self.flush(turn, now);
                    if !was_held_back || refused != WriteRefused::LimitReached {
                        let more = if matches!(source, Source::End(_)) { END_LEN_MORE } else { 0 };
                        self.make_room(refused, (key, len + more), now, &mut waiting_since)?;
                    }
                    has_flushed = true;
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
            Source::Loan(_, memory, payload) => memory.commit(core, now, stamp, payload.clone()),
            Source::End(Ending { kind, payload, .. }) => {
                core.write_change(now, Some(stamp.timestamp), Change { kind: *kind, key: stamp.key, payload })
            }
        };
        Ok(written.map(|_| Put::Whole))
    }

    /// Writes and sends a single-sample datagram by the fast path. Returns `false` if the sample
    /// does not qualify.
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

    /// [`Inner::write_direct`] for a sample ending in a long bulk, which is sent from the
    /// application's memory.
    #[inline(never)]
    fn write_direct_apart<T: DdsType>(
        &self,
        turn: &mut Turn<'_>,
        now: Time,
        stamp: Stamp,
        sample: &T,
        len: usize,
    ) -> Result<bool> {
        let bulk = sample.bulk_bytes().filter(|bulk| bulk.len() >= BULK_APART_MIN).unwrap_or_default();
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
