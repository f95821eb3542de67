//! Hashes 16-byte key hashes. They are well distributed already, or short, so two multiplications
//! suffice. As peers choose keys, the hash depends on a seed unknown to them.

use hashbrown::HashTable;

const A: u64 = 0x9e37_79b9_7f4a_7c15;
const B: u64 = 0xd1b5_4a32_d192_ed03;

/// A key hash (RTPS 2.5, 9.6.4.8) in two words, which are passed on and compared as such. This
/// avoids a store-forwarding stall: 16 bytes in an `Option` would be written and read in different
/// pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Key {
    low: u64,
    high: u64,
}

impl Key {
    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes()
    }
}

impl From<[u8; 16]> for Key {
    #[inline]
    fn from(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self { low: both as u64, high: (both >> 64) as u64 }
    }
}

/// Hashes keys with a seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHasher {
    low: u64,
    high: u64,
}

impl KeyHasher {
    pub(crate) fn new(seed: u64) -> Self {
        Self { low: fold(seed ^ A, B), high: fold(seed ^ B, A) }
    }

    #[inline]
    pub(crate) fn hash(self, key: Key) -> u64 {
        fold(fold(key.low ^ self.low, A) ^ key.high ^ self.high, B)
    }
}

/// Returns the memory of a hash table with room for so many indices, in bytes. Allocates it for a moment.
pub(crate) fn table_bytes(room: usize) -> usize {
    if room == 0 { 0 } else { HashTable::<u32>::with_capacity(room).allocation_size() }
}

/// Returns a hash of any bytes, which shows whether they have changed. It is not seeded: a sender can find other bytes
/// with the same hash.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    words.fold(bytes.len() as u64 ^ A, |hash, word| fold(hash ^ word, B) ^ A)
}

/// Combines all bits of a product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_count_up_spread_over_the_low_and_the_high_bits() {
        for (seed, at) in [(0, 0), (0, 12), (7, 0), (u64::MAX, 4)] {
            let hasher = KeyHasher::new(seed);
            let mut low = [false; 256];
            let mut high = [false; 128];
            for n in 0..4096_u32 {
                let mut key = [0; 16];
                key[at..at + 4].copy_from_slice(&n.to_be_bytes());
                let hash = hasher.hash(key.into());
                low[hash as usize & 255] = true;
                high[(hash >> 57) as usize] = true;
            }
            assert!(low.iter().all(|seen| *seen) && high.iter().all(|seen| *seen), "{seed} {at}");
        }
    }

    #[test]
    fn every_bit_changes_a_fingerprint() {
        let bytes: Vec<u8> = (1..=21).collect();
        let mut seen =
            vec![fingerprint(&bytes), fingerprint(&bytes[..20]), fingerprint(&[]), fingerprint(&[0])];
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            seen.push(fingerprint(&changed));
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }

    #[test]
    fn keys_that_share_a_bucket_under_one_seed_do_not_under_another() {
        let in_bucket = |seed: u64, n: &u32| {
            let mut key = [0; 16];
            key[..4].copy_from_slice(&n.to_be_bytes());
            KeyHasher::new(seed).hash(key.into()) & 1023 == 0
        };
        let keys: Vec<_> = (0..1_000_000).filter(|n| in_bucket(1, n)).collect();
        let still = keys.iter().filter(|n| in_bucket(2, n)).count();
        assert!(keys.len() > 800 && still < 20, "{} {still}", keys.len());
    }
}
