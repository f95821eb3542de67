//! Copies a few kilobytes by the widest vectors of the processor.
//!
//! The intrinsics are unsafe, and unsafe code is in this crate. The C library also copies by
//! vectors, but from about 2 KiB on by `rep movsb` on processors that announce it as fast. For the
//! few kilobytes of a datagram that takes longer, and on some processors leaves them in a farther
//! cache.

/// A function that copies bytes between slices of the same length.
///
/// # Panics
/// If the lengths differ.
pub type CopyFn = fn(&mut [u8], &[u8]);

/// Returns the copy function; `None` if the processor has no 32-byte vectors (AVX2).
#[must_use]
pub fn wide_copy() -> Option<CopyFn> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return Some(vectors::copy);
    }
    None
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};

    /// Bytes per vector.
    const VECTOR: usize = size_of::<__m256i>();

    /// Requires AVX2: only [`wide_copy`](super::wide_copy) returns it.
    pub(super) fn copy(to: &mut [u8], from: &[u8]) {
        assert_eq!(to.len(), from.len(), "source and destination have the same length");
        if to.len() < VECTOR {
            to.copy_from_slice(from);
            return;
        }
        // SAFETY: the processor has AVX2, as checked by the only code that refers to this function.
        // The slices have the same length, at least that of a vector, and do not overlap, because
        // one of them is borrowed exclusively.
        unsafe { copy_by_vectors(to.as_mut_ptr(), from.as_ptr(), to.len()) }
    }

    /// # Safety
    /// `to` and `from` lead to `len` bytes each that do not overlap and may be written and read;
    /// `len` is at least [`VECTOR`]. The processor has AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn copy_by_vectors(to: *mut u8, from: *const u8, len: usize) {
        let move_one = |at: usize| {
            // SAFETY: `at + VECTOR` is at most `len` in all calls. Vectors may be read and written
            // at any address.
            unsafe { _mm256_storeu_si256(to.add(at).cast(), _mm256_loadu_si256(from.add(at).cast())) }
        };
        // The first and the last vector overlap with those between, which are aligned at the
        // destination, so that none crosses a cache line.
        move_one(0);
        let mut at = VECTOR - to.addr() % VECTOR;
        while at + 4 * VECTOR <= len {
            // Unrolled by four: the optimizer would replace a simpler loop by a call to the C
            // library.
            (0..4).for_each(|index| move_one(at + index * VECTOR));
            at += 4 * VECTOR;
        }
        while at + VECTOR <= len {
            move_one(at);
            at += VECTOR;
        }
        move_one(len - VECTOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_any_length_from_and_to_any_address_are_equal() {
        let Some(copy) = wide_copy() else { return };
        let from: Vec<u8> = (0..9_000_u32).map(|n| (n % 251) as u8 + 1).collect();
        let lengths = (0..300).chain([2047, 2049, 4096, 8164, 8900]);
        for (len, start) in lengths.flat_map(|len| [0, 1, 31, 33, 52].map(|start| (len, start))) {
            for lead in [0, 1, 16, 31] {
                let mut to = vec![0; lead + len + 40];
                copy(&mut to[lead..lead + len], &from[start..start + len]);
                assert_eq!(to[lead..lead + len], from[start..start + len], "{len} bytes");
                assert!(to[..lead].iter().chain(&to[lead + len..]).all(|byte| *byte == 0), "{len} bytes");
            }
        }
    }

    #[test]
    fn slices_of_different_lengths_are_refused() {
        let Some(copy) = wide_copy() else { return };
        for (to, from) in [(64, 65), (65, 64), (0, 1)] {
            let result = std::panic::catch_unwind(|| copy(&mut vec![0; to], &vec![0; from]));
            assert!(result.is_err(), "{from} bytes to {to}");
        }
    }
}
