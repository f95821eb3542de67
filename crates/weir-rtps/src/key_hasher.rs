//! Hashing of 16-byte key hashes: they are spread already, or short; two multiplications mix them.

use core::hash::Hasher;

/// A hasher for `[u8; 16]` keys. Not proof against somebody who chooses keys so that they collide: the tables
/// that use it are bounded.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct KeyHasher(u64);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for KeyHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ ODD) * u128::from(ODD);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, _: usize) {
        // The length prefix of an array slice: the same for all keys.
    }
}

#[cfg(test)]
mod tests {
    use core::hash::Hash;

    use super::*;

    #[test]
    fn keys_that_count_up_spread_over_the_low_and_the_high_bits() {
        let mut low = [false; 256];
        let mut high = [false; 128];
        for n in 0..4096_u32 {
            let mut key = [0; 16];
            key[..4].copy_from_slice(&n.to_le_bytes());
            let mut hasher = KeyHasher::default();
            key.hash(&mut hasher);
            low[hasher.finish() as usize & 255] = true;
            high[(hasher.finish() >> 57) as usize] = true;
        }
        assert!(low.iter().all(|seen| *seen) && high.iter().all(|seen| *seen));
    }
}
