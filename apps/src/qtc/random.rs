//! The numbers of `random()` in the GNU C library for a program that never calls `srandom`: an additive
//! feedback generator over 31 words, started from 1 by a linear congruential one. Invariant: the sequence is
//! the library's, bit for bit, as the benchmark's points are made from it. Source: the manual page random(3)
//! for the kind and the default seed; Knuth, TAOCP 2, section 3.2.2, for additive generators; Park and
//! Miller, "Random number generators: good ones are hard to find" (1988), for the start.

/// Words of the state; each new word is the sum of the word this far back and the word three back.
const DEGREE: usize = 31;
const SEPARATION: usize = 3;
/// Numbers that are discarded before the first one is returned.
const DISCARDED: usize = 10 * DEGREE;
const SEED: u64 = 1;

/// A place in the sequence.
pub(super) struct Random {
    state: [u32; DEGREE],
    /// The oldest word, which the next number replaces.
    oldest: usize,
}

impl Random {
    /// The largest number that there is.
    pub(super) const MAX: u32 = (1 << 31) - 1;

    /// The start of the sequence.
    pub(super) fn new() -> Self {
        let mut word = SEED;
        let state = std::array::from_fn(|_| {
            let this = word as u32;
            word = 16807 * word % u64::from(Random::MAX);
            this
        });
        // The first words count as the newest.
        let mut random = Random { state, oldest: SEPARATION };
        (0..DISCARDED).for_each(|_| _ = random.next());
        random
    }

    /// The next number, from 0 to `MAX`.
    pub(super) fn next(&mut self) -> u32 {
        let recent = (self.oldest + DEGREE - SEPARATION) % DEGREE;
        let word = self.state[self.oldest].wrapping_add(self.state[recent]);
        self.state[self.oldest] = word;
        self.oldest = (self.oldest + 1) % DEGREE;
        word >> 1
    }

    /// The next number as a fraction of the largest, from 0 to 1 inclusive.
    pub(super) fn fraction(&mut self) -> f32 {
        self.next() as f32 / Random::MAX as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_that_everybody_knows() {
        let mut random = Random::new();
        let first: Vec<_> = (0..5).map(|_| random.next()).collect();
        assert_eq!(first, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]);
    }

    #[test]
    fn far_on_the_numbers_are_those_of_a_c_program() {
        let mut random = Random::new();
        let numbers: Vec<_> = (0..100_000).map(|_| u64::from(random.next())).collect();
        let sum: u64 = numbers.iter().sum();
        assert_eq!((numbers.last(), sum), (Some(&660_658_275), 107_345_864_261_546));
    }

    #[test]
    fn fractions_are_from_0_to_1() {
        let mut random = Random::new();
        assert!((0..10_000).all(|_| (0.0..=1.0).contains(&random.fraction())));
        assert_eq!(Random::MAX as f32, (1u32 << 31) as f32, "the divisor is rounded, as C does it");
    }
}
