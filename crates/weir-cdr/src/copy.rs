//! Copies bytes so that they are in the nearest cache for the next reader.
//!
//! From about 2 KiB on, the C library of Linux copies by `rep movsb` on processors that announce it
//! as fast (FSRM). On some of them the copy is then in a farther cache, and the next reader (the
//! system call that sends it, or the application) takes longer: about 0.15 µs per 8 KiB and copy on
//! an AMD EPYC of family 25. Below that length the library uses vector instructions, so copies are
//! split into pieces. One long vectorised copy is faster still, even on processors with a good `rep
//! movsb`. As it takes unsafe code, the caller can supply one with [`use_copier`].
//!
//! Long copies of payloads are made or counted here, see [`start_counting`].

use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(feature = "std")]
use std::sync::OnceLock;

/// Maximum length of a piece that libraries copy by vector instructions, in bytes.
const PIECE_BYTES: usize = 2048;

/// From this length on, the caches are too small and one long copy is fastest, in bytes.
const LONG_BYTES: usize = 32 << 10;

/// Copies bytes between slices of the same length.
pub type Copier = fn(&mut [u8], &[u8]);

/// The function for copies longer than a piece and shorter than [`LONG_BYTES`].
#[cfg(feature = "std")]
static COPIER: OnceLock<Copier> = OnceLock::new();

/// Sets the function for copies of 2 to 32 KiB, for the whole process. Later calls have no effect.
#[cfg(feature = "std")]
pub fn use_copier(copier: Copier) {
    let _ = COPIER.set(copier);
}

/// What a copy of a payload is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A value is encoded before it is sent: into the writer's history, or into a datagram.
    Encode,
    /// It was sent from the application's memory, and is kept in the writer's history in case it is requested again.
    Keep,
    /// What was received is put together, or is moved out of the memory that receives.
    Assemble,
    /// A value is decoded into the application's memory.
    Decode,
}

/// Bytes copied in each [`Stage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// [`Stage::Encode`], bytes.
    pub encode: u64,
    /// [`Stage::Keep`], bytes.
    pub keep: u64,
    /// [`Stage::Assemble`], bytes.
    pub assemble: u64,
    /// [`Stage::Decode`], bytes.
    pub decode: u64,
}

/// The counts of [`counted`], by stage.
#[cfg(feature = "std")]
static COPIED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

#[cfg(feature = "std")]
static IS_COUNTING: AtomicBool = AtomicBool::new(false);

/// Has the process count the bytes that its engines copy, from now on. Without it, they are not counted: that takes a
/// few nanoseconds for each copy.
///
/// Copies of more than 2048 bytes are counted, and those of fragments, whatever their length. Sequences of numbers
/// other than bytes are not: they are encoded and decoded one by one. The kernel copies each byte that is sent, and
/// each that is received, once more.
#[cfg(feature = "std")]
pub fn start_counting() {
    IS_COUNTING.store(true, Ordering::Relaxed);
}

/// Returns the bytes copied since [`start_counting`], by all participants of the process; `None` if it was not called.
///
/// ```
/// use weir_cdr::copy::{self, Stage};
///
/// copy::start_counting();
/// copy::copy(Stage::Keep, &mut [0; 5000], &[7; 5000]);
/// assert_eq!(copy::counted().map(|copied| copied.keep), Some(5000));
/// ```
#[cfg(feature = "std")]
#[must_use]
pub fn counted() -> Option<Copied> {
    let [encode, keep, assemble, decode] = COPIED.each_ref().map(|bytes| bytes.load(Ordering::Relaxed));
    IS_COUNTING.load(Ordering::Relaxed).then_some(Copied { encode, keep, assemble, decode })
}

/// Counts a copy that was made elsewhere.
#[inline]
pub fn count(stage: Stage, bytes: usize) {
    #[cfg(feature = "std")]
    if IS_COUNTING.load(Ordering::Relaxed) {
        COPIED[stage as usize].fetch_add(bytes as u64, Ordering::Relaxed);
    }
    #[cfg(not(feature = "std"))]
    let _ = (stage, bytes);
}

/// The same, unless the copy was short.
#[inline]
pub fn count_long(stage: Stage, bytes: usize) {
    if bytes > PIECE_BYTES {
        count(stage, bytes);
    }
}

/// Copies `from` to `to`, which have the same length.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub fn copy(stage: Stage, to: &mut [u8], from: &[u8]) {
    if from.len() <= PIECE_BYTES {
        to.copy_from_slice(from);
    } else {
        copy_far(stage, to, from);
    }
}

/// Makes `to` equal to `from`, reusing its memory.
#[inline(always)]
pub fn replace(stage: Stage, to: &mut Vec<u8>, from: &[u8]) {
    if to.len() == from.len() {
        copy(stage, to, from);
    } else {
        to.clear();
        append(stage, to, from);
    }
}

/// Appends `from` to `to`.
#[inline(always)]
pub fn append(stage: Stage, to: &mut Vec<u8>, from: &[u8]) {
    if from.len() <= PIECE_BYTES {
        to.extend_from_slice(from);
    } else {
        append_far(stage, to, from);
    }
}

/// Out of line, so that short copies stay small.
#[inline(never)]
fn copy_far(stage: Stage, to: &mut [u8], from: &[u8]) {
    count(stage, from.len());
    if from.len() >= LONG_BYTES {
        return to.copy_from_slice(from);
    }
    #[cfg(feature = "std")]
    if let Some(copier) = COPIER.get() {
        return copier(to, from);
    }
    copy_by_pieces(to, from);
}

fn copy_by_pieces(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "source and destination have the same length");
    to.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)).for_each(|(to, from)| copy_piece(to, from));
}

#[inline(never)]
fn append_far(stage: Stage, to: &mut Vec<u8>, from: &[u8]) {
    count(stage, from.len());
    if from.len() >= LONG_BYTES {
        return to.extend_from_slice(from);
    }
    to.reserve(from.len());
    from.chunks(PIECE_BYTES).for_each(|piece| append_piece(to, piece));
}

/// Not inlined: the optimizer would merge the pieces into one long copy.
#[inline(never)]
fn copy_piece(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[inline(never)]
fn append_piece(to: &mut Vec<u8>, from: &[u8]) {
    to.extend_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_any_length_are_equal() {
        let from: Vec<u8> = (0..40_000_u32).map(|n| (n % 251) as u8).collect();
        for len in [0, 1, 2047, 2048, 2049, 4096, 8164, 32_767, 32_768, 40_000] {
            let mut to = vec![0; len];
            copy(Stage::Decode, &mut to, &from[..len]);
            assert_eq!(to, from[..len], "{len}");
            append(Stage::Decode, &mut to, &from[..len]);
            assert_eq!(to[len..], from[..len], "{len}");
            // Over a value of the same length, and over a longer one.
            replace(Stage::Decode, &mut to, &from[1..][..2 * len.min(19_000)]);
            replace(Stage::Decode, &mut to, &from[3..][..len.min(38_000)]);
            assert_eq!(to, from[3..][..len.min(38_000)], "{len}");
        }
    }
}
