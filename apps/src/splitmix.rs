//! Reproducible random numbers, and a mixing of words: splitmix64 (Steele, Lea, Flood: Fast splittable
//! pseudorandom number generators, 2014). Invariant: a sequence depends only on its seed, on every machine;
//! different words have different results.

/// The increment of the state.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// The sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        SplitMix { state: seed }
    }

    /// The next number.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// The next number, mapped to those below `end`, which is not 0.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        scale(self.next(), end)
    }
}

/// A word of which each bit depends on each bit of `word`; a bijection.
#[inline]
pub(crate) fn mix(word: u64) -> u64 {
    let mixed = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Maps all words in order, and evenly, to the numbers below `end`.
#[inline]
pub(crate) fn scale(word: u64, end: u64) -> u64 {
    ((u128::from(word) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_paper() {
        let mut random = SplitMix::new(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut random = SplitMix::new(5);
        let mut seen = [0_u32; 3];
        (0..3000).for_each(|_| seen[random.below(3) as usize] += 1);
        assert!(seen.iter().all(|count| (900..1100).contains(count)), "{seen:?}");
        assert_eq!([scale(0, 7), scale(u64::MAX, 7), scale(u64::MAX, 1)], [0, 6, 0]);
    }
}
