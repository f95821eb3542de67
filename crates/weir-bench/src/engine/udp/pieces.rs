//! Samples of a workload that fit no datagram: sent as several, each one piece.
//!
//! ```text
//!  0                     28       32       36
//!  +---------------------+--------+--------+-------------------
//!  | header of a sample  | piece  | pieces | part of the payload
//!  +---------------------+--------+--------+-------------------
//! ```
//!
//! Both numbers are little-endian. A reader counts the pieces of a sample and does not put them together: the baseline
//! is what the system calls and the kernel's copies cost, and any engine comes on top.

use std::ops::Range;

use weir_baseline::DATAGRAM_BYTES_MAX;

use crate::payload::{self, HEADER_BYTES, SampleHeader};

/// Bytes of a piece before its part of the payload.
const PIECE_HEADER_BYTES: usize = HEADER_BYTES + 8;
/// The most payload of a piece.
const PART_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - PIECE_HEADER_BYTES;

/// The datagrams of one writer's samples, each of which is one datagram or several pieces.
pub(super) struct Datagrams {
    /// All datagrams, one behind the other.
    bytes: Vec<u8>,
    datagram_bytes: usize,
}

impl Datagrams {
    /// Those of samples of `size_bytes`, of which the header counts as 28.
    pub(super) fn new(size_bytes: usize) -> Self {
        let mut sample = vec![0; size_bytes.max(HEADER_BYTES)];
        payload::fill(0, &mut sample[HEADER_BYTES..]);
        if size_bytes <= DATAGRAM_BYTES_MAX {
            return Self { datagram_bytes: sample.len(), bytes: sample };
        }
        let parts = sample[HEADER_BYTES..].chunks(PART_BYTES_MAX);
        let pieces = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(sample.len() + parts.len() * PIECE_HEADER_BYTES);
        for (part, number) in parts.zip(0_u32..) {
            bytes.extend([0; HEADER_BYTES]);
            bytes.extend(number.to_le_bytes());
            bytes.extend(pieces.to_le_bytes());
            bytes.extend(part);
        }
        Self { bytes, datagram_bytes: DATAGRAM_BYTES_MAX }
    }

    /// Gives all of them the header of the next sample.
    pub(super) fn write_header(&mut self, header: &SampleHeader) {
        for datagram in self.bytes.chunks_mut(self.datagram_bytes) {
            payload::write_header(datagram, header);
        }
    }

    /// The datagrams of the sample.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.datagram_bytes)
    }
}

/// What has arrived of the samples of some writers that are sent in pieces.
pub(super) struct Arrivals {
    /// The numbers of the writers.
    writers: Range<usize>,
    /// The newest sample of each.
    samples: Vec<Partial>,
}

/// A sample of which pieces have arrived.
#[derive(Clone, Default)]
struct Partial {
    number: u32,
    /// A bit for each piece that has arrived; empty before the first piece of a writer.
    has: Vec<u64>,
    missing: u32,
}

impl Arrivals {
    /// Nothing yet, of the writers with these numbers.
    pub(super) fn new(writers: Range<usize>) -> Self {
        Self { samples: vec![Partial::default(); writers.len()], writers }
    }

    /// Notes a piece; returns whether it is the last of its sample. A sample of which pieces are missing is given up
    /// when a newer one of its writer arrives.
    pub(super) fn take(&mut self, header: &SampleHeader, payload: &[u8]) -> bool {
        let number = usize::try_from(header.entity_id).ok();
        let place = number.and_then(|number| number.checked_sub(self.writers.start));
        let Some(sample) = place.and_then(|place| self.samples.get_mut(place)) else { return false };
        let Some((piece, pieces)) = numbers(payload) else { return false };
        if piece >= pieces || pieces > PIECES_MAX {
            return false;
        }
        if sample.has.is_empty() || header.seq_num > sample.number {
            *sample = Partial {
                number: header.seq_num,
                has: vec![0; pieces.div_ceil(64) as usize],
                missing: pieces,
            };
        }
        header.seq_num == sample.number && sample.take(piece)
    }
}

impl Partial {
    fn take(&mut self, piece: u32) -> bool {
        let Some(word) = self.has.get_mut(piece as usize / 64) else { return false };
        let bit = 1 << (piece % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.missing = self.missing.saturating_sub(1);
        self.missing == 0
    }
}

/// The number of a piece, and how many the sample has.
fn numbers(payload: &[u8]) -> Option<(u32, u32)> {
    let (piece, rest) = payload.split_first_chunk()?;
    let (pieces, _) = rest.split_first_chunk()?;
    Some((u32::from_le_bytes(*piece), u32::from_le_bytes(*pieces)))
}

/// More than the largest sample of a workload has, so that a stray datagram cannot make a reader allocate much.
const PIECES_MAX: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(writer: i32, sample: u32) -> SampleHeader {
        SampleHeader { entity_id: writer, seq_num: sample, ..SampleHeader::default() }
    }

    /// The datagrams of a sample, as they are received.
    fn sent(size_bytes: usize, header: &SampleHeader) -> Vec<Vec<u8>> {
        let mut datagrams = Datagrams::new(size_bytes);
        datagrams.write_header(header);
        datagrams.iter().map(<[u8]>::to_vec).collect()
    }

    /// Whether each of these datagrams completes a sample.
    fn completed<'a>(arrivals: &mut Arrivals, datagrams: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<bool> {
        let take = |datagram: &Vec<u8>| {
            let received = payload::read(datagram).unwrap();
            arrivals.take(&received.header, received.payload)
        };
        datagrams.into_iter().map(take).collect()
    }

    #[test]
    fn a_sample_is_one_datagram_as_long_as_it_fits() {
        for size in [HEADER_BYTES, 200, DATAGRAM_BYTES_MAX] {
            let datagrams = sent(size, &header(3, 7));
            assert_eq!(datagrams.iter().map(Vec::len).collect::<Vec<_>>(), [size]);
            assert_eq!(payload::read(&datagrams[0]).unwrap().header, header(3, 7));
        }
        let pieces = sent(DATAGRAM_BYTES_MAX + 1, &header(3, 7));
        assert_eq!(pieces.len(), 2);
        let parts: usize = pieces.iter().map(|it| it.len() - PIECE_HEADER_BYTES).sum();
        assert_eq!(parts, DATAGRAM_BYTES_MAX + 1 - HEADER_BYTES);
    }

    #[test]
    fn the_last_piece_of_a_sample_completes_it_in_any_order_and_once() {
        let pieces = sent(200_000, &header(5, 1));
        assert_eq!(pieces.len(), 4);
        let mut arrivals = Arrivals::new(4..6);
        let order = [2, 0, 0, 3, 1, 1, 2].map(|piece: usize| &pieces[piece]);
        assert_eq!(completed(&mut arrivals, order), [false, false, false, false, true, false, false]);
    }

    #[test]
    fn a_newer_sample_ends_one_of_which_pieces_are_missing() {
        let [old, new] = [1, 2].map(|number| sent(200_000, &header(5, number)));
        let mut arrivals = Arrivals::new(5..6);
        assert_eq!(completed(&mut arrivals, &old[..3]), [false; 3]);
        assert_eq!(completed(&mut arrivals, &new[..2]), [false; 2]);
        assert_eq!(completed(&mut arrivals, &old[3..]), [false]);
        assert_eq!(completed(&mut arrivals, &new[2..]), [false, true]);
    }

    #[test]
    fn pieces_of_unknown_writers_and_impossible_numbers_are_ignored() {
        let mut arrivals = Arrivals::new(5..6);
        for (writer, numbers) in [(4, [0, 1]), (6, [0, 1]), (5, [1, 1]), (5, [0, 0]), (5, [0, u32::MAX])] {
            let payload: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
            assert!(!arrivals.take(&header(writer, 1), &payload), "{writer} {numbers:?}");
        }
        assert!(!arrivals.take(&header(5, 1), &[0; 7]));
    }
}
