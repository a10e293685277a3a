//! The pseudorandom sequence of a simulation: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom
//! number generators, 2014).
//!
//! Invariant: the sequence depends on the seed alone, on every machine.

pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// True with this probability. With probability 0 or 1 it draws no number.
    pub(super) fn chance(&mut self, probability: f32) -> bool {
        probability > 0.0
            && (probability >= 1.0 || ((self.next() >> 40) as f32) < probability * (1u32 << 24) as f32)
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_paper() {
        let mut random = Random::new(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn chances_and_ranges_keep_their_bounds() {
        let mut random = Random::new(5);
        let mut seen = [0u32; 3];
        (0..3000).for_each(|_| seen[random.below(3)] += 1);
        assert!(seen.iter().all(|&count| (900..1100).contains(&count)), "{seen:?}");
        let yes = (0..4000).filter(|_| random.chance(0.25)).count();
        assert!((900..1100).contains(&yes), "{yes} of 4000");
        assert!(random.chance(1.0) && !random.chance(0.0));
    }
}
