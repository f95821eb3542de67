//! Copying octets so that whoever comes next finds them in the nearest cache.
//!
//! From about 2 KiB on, the C library of Linux copies by `rep movsb` on processors that announce it as fast (FSRM). On
//! some of them what was copied so lies in a farther cache afterwards, and the next reader (the system call that
//! sends it, or the application) pays: about 0.15 µs per 8 KiB and copy on an AMD EPYC of family 25. In pieces below that length the
//! library uses vector instructions. One long copy by vectors is better than pieces, and than `rep movsb` on processors that
//! are good at it: whoever has such a copy gives it to [`use_copier`], since it takes unsafe code.

use std::sync::OnceLock;

/// The longest piece that libraries copy by vector instructions, in bytes.
const PIECE_BYTES: usize = 2048;

/// From here on the caches are too small for what is copied, and one long copy is the quickest; in bytes.
const LONG_BYTES: usize = 32 << 10;

/// Copies octets from one slice to another one, which are equally long.
pub type Copier = fn(&mut [u8], &[u8]);

/// What copies that are too long for one piece and shorter than long ones are made by.
static COPIER: OnceLock<Copier> = OnceLock::new();

/// Has copies of 2 to 32 KiB made by `copier` from now on, in this whole process. The first one remains.
pub fn use_copier(copier: Copier) {
    let _ = COPIER.set(copier);
}

/// Copies `from` to `to`, which are equally long.
///
/// # Panics
/// When they are not equally long.
#[inline(always)]
pub fn copy(to: &mut [u8], from: &[u8]) {
    if from.len() <= PIECE_BYTES || from.len() >= LONG_BYTES {
        to.copy_from_slice(from);
    } else {
        copy_far(to, from);
    }
}

/// Makes `to` equal to `from`, in the memory that it has.
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

/// Apart, so that short copies do not carry it.
#[inline(never)]
fn copy_far(to: &mut [u8], from: &[u8]) {
    match COPIER.get() {
        Some(copier) => copier(to, from),
        None => copy_by_pieces(to, from),
    }
}

fn copy_by_pieces(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "copies are as long as what they are copies of");
    to.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)).for_each(|(to, from)| copy_piece(to, from));
}

fn append_by_pieces(to: &mut Vec<u8>, from: &[u8]) {
    to.reserve(from.len());
    from.chunks(PIECE_BYTES).for_each(|piece| append_piece(to, piece));
}

/// A call of its own: the optimizer would make one long copy of the pieces.
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
            // Over something as long, and over something longer.
            replace(&mut to, &from[1..][..2 * len.min(19_000)]);
            replace(&mut to, &from[3..][..len.min(38_000)]);
            assert_eq!(to, from[3..][..len.min(38_000)], "{len}");
        }
    }
}
