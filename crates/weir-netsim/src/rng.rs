//! The random generator of the simulation: xoshiro256**, seeded through SplitMix64.
//!
//! Implemented here and fixed by a test, because a seed in a bug report must give the same packets
//! after any dependency upgrade. Not for secrets.

/// A seeded generator; equal seeds always give equal values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates a generator whose values depend on `seed` only. Every seed is valid, including zero.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        Self { state: core::array::from_fn(|_| split_mix(&mut mixer)) }
    }

    /// Creates an independent generator for the part of a simulation called `label`. Parts do not
    /// affect each other's values.
    pub fn fork(&self, label: u64) -> Self {
        let mut mixer = self.state[0] ^ label.wrapping_mul(GOLDEN);
        Self::new(split_mix(&mut mixer))
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [_, s1, ..] = self.state;
        let result = s1.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= s1 << 17;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// Returns a number from `0` to `end - 1`, uniform to within one part in 2^64 / `end`.
    ///
    /// `below(0)` is 0, so that an empty range needs no special case in the caller.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or(u64::MAX)
    }

    /// Returns a fraction from 0 (inclusive) to 1 (exclusive), in steps of 2^-53.
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with this probability. Draws nothing for 0 or less and for 1 or more, so
    /// disabling a fault leaves the rest unchanged.
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        probability >= 1.0 || self.fraction() < probability
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_frozen() {
        let mut rng = Rng::new(42);
        let values: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(
            values,
            [
                1_546_998_764_402_558_742,
                6_990_951_692_964_543_102,
                12_544_586_762_248_559_009,
                17_057_574_109_182_124_193
            ]
        );
        assert_eq!(Rng::new(42).fork(7).next_u64(), 16_218_795_771_991_361_253);
    }

    #[test]
    fn a_fork_does_not_move_its_parent() {
        let mut parent = Rng::new(3);
        let before = parent.clone();
        assert_ne!(parent.fork(1), parent.fork(2));
        assert_eq!(parent, before);
        assert_ne!(parent.next_u64(), before.fork(0).next_u64());
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = Rng::new(1);
        let mut seen = [0u32; 6];
        for _ in 0..6000 {
            seen[usize::try_from(rng.below(6)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn chance_is_about_right_and_exact_at_the_ends() {
        let mut rng = Rng::new(9);
        let hits = (0..10_000).filter(|_| rng.chance(0.1)).count();
        assert!((900..1100).contains(&hits), "{hits}");
        let before = rng.clone();
        assert!(!rng.chance(0.0));
        assert!(rng.chance(1.0));
        assert_eq!(rng, before);
    }
}
