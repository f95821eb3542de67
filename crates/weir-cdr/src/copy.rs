//! Copies bytes so that they are in the nearest cache for the next reader.
//!
//! From about 2 KiB on, the C library of Linux copies by `rep movsb` on processors that announce it
//! as fast (FSRM). On some of them the copy is then in a farther cache, and the next reader (the
//! system call that sends it, or the application) takes longer: about 0.15 µs per 8 KiB and copy on
//! an AMD EPYC of family 25. Below that length the library uses vector instructions, so copies are
//! split into pieces. One long vectorised copy is faster still, even on processors with a good `rep
//! movsb`. As it takes unsafe code, the caller can supply one with [`use_copier`].

use alloc::vec::Vec;
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

/// Copies `from` to `to`, which have the same length.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub fn copy(to: &mut [u8], from: &[u8]) {
    if from.len() <= PIECE_BYTES || from.len() >= LONG_BYTES {
        to.copy_from_slice(from);
    } else {
        copy_far(to, from);
    }
}

/// Makes `to` equal to `from`, reusing its memory.
#[inline(always)]
pub fn replace(to: &mut Vec<u8>, from: &[u8]) {
    if to.len() == from.len() {
        copy(to, from);
    } else {
        to.clear();
        append(to, from);
    }
}

/// Appends `from` to `to`.
#[inline(always)]
pub fn append(to: &mut Vec<u8>, from: &[u8]) {
    if from.len() <= PIECE_BYTES || from.len() >= LONG_BYTES {
        to.extend_from_slice(from);
    } else {
        append_by_pieces(to, from);
    }
}

/// Out of line, so that short copies stay small.
#[inline(never)]
fn copy_far(to: &mut [u8], from: &[u8]) {
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

fn append_by_pieces(to: &mut Vec<u8>, from: &[u8]) {
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
            copy(&mut to, &from[..len]);
            assert_eq!(to, from[..len], "{len}");
            append(&mut to, &from[..len]);
            assert_eq!(to[len..], from[..len], "{len}");
            // Over a value of the same length, and over a longer one.
            replace(&mut to, &from[1..][..2 * len.min(19_000)]);
            replace(&mut to, &from[3..][..len.min(38_000)]);
            assert_eq!(to, from[3..][..len.min(38_000)], "{len}");
        }
    }
}
