//! The random numbers of NPB: the linear congruential generator x' = 5^13 x mod 2^46 from 314159265, scaled
//! to (0, 1), that fills the initial field. Integer arithmetic, so that the sequence is exact, and any place
//! in it is reached by binary powering of the multiplier. Source: NPB 3.4, `randi8.f90`; NAS-95-020, section
//! 2.3.

use num_complex::Complex64;

const MULTIPLIER: u64 = 1_220_703_125;
const SEED: u64 = 314_159_265;
const MASK: u64 = (1 << 46) - 1;
const SCALE: f64 = 1.0 / (1u64 << 46) as f64;
/// The number of chains that are computed side by side; each chain jumps over the numbers of the others.
const LANES: usize = 8;

/// A place in the sequence.
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The generator whose next number is the one after `count` others.
    pub(super) fn after(count: u64) -> Self {
        Random { state: product(power(count), SEED) }
    }

    /// The next number, in (0, 1).
    pub(super) fn next(&mut self) -> f64 {
        self.state = product(self.state, MULTIPLIER);
        self.state as f64 * SCALE
    }

    /// Fills `row` with the next `2 * row.len()` numbers: real, imaginary, real, and so on.
    pub(super) fn fill(&mut self, row: &mut [Complex64]) {
        let (wide, rest) = row.as_chunks_mut::<{ LANES / 2 }>();
        let jump = power(LANES as u64);
        let mut lanes = [self.state; LANES];
        for lane in 0..LANES {
            lanes[lane] = product(lanes[lane.saturating_sub(1)], MULTIPLIER);
        }
        let wide_count = wide.len() as u64;
        for chunk in wide {
            for (pair, element) in chunk.iter_mut().enumerate() {
                *element = Complex64::new(lanes[2 * pair] as f64 * SCALE, lanes[2 * pair + 1] as f64 * SCALE);
            }
            lanes = lanes.map(|lane| product(lane, jump));
        }
        self.state = product(self.state, power(wide_count * LANES as u64));
        for element in rest {
            *element = Complex64::new(self.next(), self.next());
        }
    }
}

/// MULTIPLIER^exponent mod 2^46.
fn power(mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, MULTIPLIER);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, square);
        }
        square = product(square, square);
        exponent >>= 1;
    }
    result
}

/// a * b mod 2^46; exact, as 2^46 divides 2^64.
fn product(a: u64, b: u64) -> u64 {
    a.wrapping_mul(b) & MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumping_equals_stepping() {
        let mut stepped = Random::after(0);
        for count in 0..5000 {
            assert_eq!(Random::after(count).next(), stepped.next(), "number {count}");
        }
    }

    #[test]
    fn first_number_is_the_seed_times_the_multiplier() {
        let expected = (u128::from(SEED) * u128::from(MULTIPLIER) % (1 << 46)) as f64 * SCALE;
        assert_eq!(Random::after(0).next(), expected);
    }

    #[test]
    fn filling_equals_stepping_for_every_length() {
        for len in 0..20 {
            let (mut filled, mut stepped) = (Random::after(77), Random::after(77));
            let mut row = vec![Complex64::ZERO; len];
            for _ in 0..3 {
                filled.fill(&mut row);
                for (index, element) in row.iter().enumerate() {
                    assert_eq!(*element, Complex64::new(stepped.next(), stepped.next()), "{index} of {len}");
                }
            }
        }
    }
}
