//! Balanced dimensions of grids.

use super::array;
use crate::abi::*;
use crate::error::{Result, ensure};
use crate::library::Mpi;

/// A search for the best factors of a number, in an order that does not increase.
struct Search<'a> {
    divisors: &'a [u64],
    chosen: Vec<u64>,
    best: Option<Vec<u64>>,
}

/// Whether `base` to the power of `exponent` is at most `limit`.
fn is_power_within(base: u64, exponent: usize, limit: u64) -> bool {
    let mut product = 1u64;
    (0..exponent).all(|_| {
        product = product.saturating_mul(base);
        product <= limit
    })
}

impl Search<'_> {
    /// The difference between the largest and the smallest factor of the best choice so far.
    fn spread(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |best| best[0] - best[best.len() - 1])
    }

    /// Chooses `k` more factors whose product is `rest`, none of them above the last one. Smaller ones come
    /// first, so that among choices that are equally good the first one is kept.
    fn choose(&mut self, rest: u64, k: usize) {
        if k == 0 {
            let spread = self.chosen[0] - self.chosen[self.chosen.len() - 1];
            if rest == 1 && spread < self.spread() {
                self.best = Some(self.chosen.clone());
            }
            return;
        }
        let most = self.chosen.last().copied().unwrap_or(u64::MAX);
        if self.spread() == 0 {
            return;
        }
        for &factor in self.divisors.iter().take_while(|&&factor| factor <= most) {
            // The largest of k factors is at least their geometric mean.
            let is_large_enough = is_power_within(factor, k, rest) && factor.pow(k as u32) == rest
                || !is_power_within(factor, k, rest);
            if !is_large_enough || !rest.is_multiple_of(factor) {
                continue;
            }
            // The smallest of all factors is at most the geometric mean of the others.
            let largest = self.chosen.first().copied().unwrap_or(factor);
            let least = largest.saturating_sub(self.spread().saturating_sub(1));
            if !is_power_within(least, k - 1, rest / factor) || factor < least {
                if self.chosen.is_empty() {
                    return;
                }
                continue;
            }
            self.chosen.push(factor);
            self.choose(rest / factor, k - 1);
            self.chosen.pop();
        }
    }
}

/// `k` factors of `n` that are as close to each other as possible, the largest first: the difference between the
/// largest and the smallest is the least, and then the largest ones are.
fn balanced(n: u64, k: usize) -> Vec<u64> {
    let mut divisors: Vec<u64> = (1..).take_while(|i| i * i <= n).filter(|&i| n.is_multiple_of(i)).collect();
    let large: Vec<u64> = divisors.iter().rev().map(|small| n / small).collect();
    divisors.extend(large.into_iter().filter(|large| large * large > n));
    let mut search = Search { divisors: &divisors, chosen: Vec::new(), best: None };
    if k > 0 {
        search.choose(n, k);
    }
    search.best.unwrap_or_default()
}

/// `MPI_Dims_create`.
pub unsafe fn dims_create(_mpi: &Mpi, nnodes: c_int, ndims: c_int, dims: *mut c_int) -> Result {
    ensure!(nnodes > 0, MPI_ERR_DIMS, "nnodes is {nnodes}, which is not positive");
    ensure!(ndims >= 0, MPI_ERR_DIMS, "ndims is {ndims}, which is negative");
    // SAFETY: the caller's array has this many numbers.
    let mut all = unsafe { array::read("dims", dims, ndims as usize)? };
    let bad = all.iter().find(|&&dim| dim < 0);
    ensure!(bad.is_none(), MPI_ERR_DIMS, "dims has {}, which is negative", bad.unwrap_or(&0));
    let fixed = all.iter().filter(|&&dim| dim > 0);
    let fixed = fixed.fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
    let free = all.iter().filter(|&&dim| dim == 0).count();
    let nnodes = nnodes as u64;
    ensure!(
        ndims == 0 || nnodes.is_multiple_of(fixed) && (free > 0 || nnodes == fixed),
        MPI_ERR_DIMS,
        "{nnodes} processes do not fit into a grid of {all:?}. The fixed dimensions must divide their number"
    );
    if free > 0 {
        let mut found = balanced(nnodes / fixed, free).into_iter();
        for dim in all.iter_mut().filter(|dim| **dim == 0) {
            *dim = found.next().unwrap_or(1) as c_int;
        }
    }
    // SAFETY: as above.
    unsafe { array::write("dims", dims, all.into_iter()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best choice among all.
    fn by_trial(n: u64, k: usize, most: u64) -> Vec<Vec<u64>> {
        if k == 0 {
            return if n == 1 { vec![Vec::new()] } else { Vec::new() };
        }
        let factors = (1..=most.min(n)).filter(|&factor| n.is_multiple_of(factor));
        let with = |factor| {
            let rest = by_trial(n / factor, k - 1, factor);
            rest.into_iter().map(move |rest| [vec![factor], rest].concat())
        };
        factors.flat_map(with).collect()
    }

    #[test]
    fn factors_are_as_close_as_possible() {
        for n in 1..400 {
            for k in 1..6 {
                let key = |choice: &Vec<u64>| (choice[0] - choice[k - 1], choice.clone());
                let expected = by_trial(n, k, n).into_iter().min_by_key(key).unwrap();
                assert_eq!(balanced(n, k), expected, "{n} in {k}");
            }
        }
    }

    #[test]
    fn large_numbers_have_balanced_factors() {
        assert_eq!(balanced(1 << 30, 3), [1024; 3]);
        assert_eq!(balanced(2_147_483_647, 2), [2_147_483_647, 1]);
        assert_eq!(balanced(1 << 20, 20), [2; 20]);
        assert_eq!(balanced(698_377_680, 4).iter().product::<u64>(), 698_377_680);
        assert_eq!(balanced(698_377_680, 30).iter().product::<u64>(), 698_377_680);
    }
}
