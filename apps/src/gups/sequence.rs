//! The random numbers of RandomAccess: each is the one before as a polynomial over GF(2), times x, modulo
//! x^64 + x^2 + x + 1. Invariant: number `n` is x^n, so that a PE finds the start of its share by powers.
//! Source: HPC Challenge 1.5, RandomAccess.

/// x^64 as a polynomial of lower degree.
const REMAINDER: u64 = 7;

/// The numbers from one on.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    last: u64,
}

impl Sequence {
    /// The numbers for the updates from `first` on, which are counted from 0: update `n` has number `n + 1`.
    pub(super) fn starting_at(first: u64) -> Self {
        Sequence { last: power(first) }
    }

    /// The number of the next update.
    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        self.last = times_x(self.last);
        self.last
    }
}

#[inline(always)]
fn times_x(polynomial: u64) -> u64 {
    let has_overflow = (polynomial.cast_signed() >> 63).cast_unsigned();
    (polynomial << 1) ^ (has_overflow & REMAINDER)
}

fn times(left: u64, right: u64) -> u64 {
    (0..64).rev().fold(0, |product, bit| times_x(product) ^ if right >> bit & 1 == 1 { left } else { 0 })
}

/// x^exponent, by squaring.
fn power(exponent: u64) -> u64 {
    (0..64).rev().fold(1, |power, bit| {
        let square = times(power, power);
        if exponent >> bit & 1 == 1 { times_x(square) } else { square }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The period of the sequence, as given by the benchmark.
    const PERIOD: u64 = 1_317_624_576_693_539_401;

    #[test]
    fn the_first_numbers_are_powers_of_two() {
        let mut sequence = Sequence::starting_at(0);
        for exponent in 1..64 {
            assert_eq!(sequence.next(), 1 << exponent);
        }
        assert_eq!([sequence.next(), sequence.next(), sequence.next()], [7, 14, 28]);
    }

    #[test]
    fn a_start_further_on_is_where_steps_lead() {
        let mut sequence = Sequence::starting_at(0);
        for first in 0..5000 {
            let mut further_on = Sequence::starting_at(first);
            let expected = sequence.next();
            assert_eq!(further_on.next(), expected, "update {first}");
        }
    }

    #[test]
    fn the_numbers_repeat_after_the_period_and_not_before() {
        assert_eq!(power(PERIOD), 1);
        let primes = [7, 73, 127, 337, 92_737, 649_657];
        assert_eq!(primes.iter().product::<u64>(), PERIOD);
        assert!(primes.iter().all(|prime| power(PERIOD / prime) != 1));
        assert_eq!(Sequence::starting_at(PERIOD + 3).next(), 16);
    }
}
