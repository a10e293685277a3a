//! Balanced dimensions of grids.

use super::array;
use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::Mpi;

/// A search for the best factors of a number, in an order that does not decrease.
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
    /// The largest factor that a better choice with this smallest one may have.
    fn most(&self, smallest: u64) -> u64 {
        self.best
            .as_ref()
            .map_or(u64::MAX, |best| (smallest + best[best.len() - 1] - best[0]).saturating_sub(1))
    }

    /// Chooses `k` more factors whose product is `rest`, none of them below the last one. Larger ones come
    /// first, so that among choices that are equally good the first one is kept.
    fn choose(&mut self, rest: u64, k: usize) {
        let last = self.chosen.last().copied().unwrap_or(1);
        if k == 1 {
            let smallest = self.chosen.first().copied().unwrap_or(rest);
            if rest >= last && rest <= self.most(smallest) {
                self.best = Some([&self.chosen[..], &[rest]].concat());
            }
            return;
        }
        // The smallest of k factors is at most their geometric mean.
        let end = self.divisors.partition_point(|&factor| is_power_within(factor, k, rest));
        for &factor in self.divisors[..end].iter().rev().take_while(|&&factor| factor >= last) {
            let smallest = self.chosen.first().copied().unwrap_or(factor);
            // The largest of the others is at least theirs.
            let others = rest.div_ceil(factor);
            if is_power_within(self.most(smallest), k - 1, others - 1) {
                if self.chosen.is_empty() {
                    return;
                }
            } else if rest.is_multiple_of(factor) {
                self.chosen.push(factor);
                self.choose(rest / factor, k - 1);
                self.chosen.pop();
            }
        }
    }
}

/// `k` factors of `n` that are as close to each other as possible, the largest first: the difference between
/// the largest and the smallest is the least; then the smallest is as large as possible, then the second
/// smallest, and so on.
fn balanced(n: u64, k: usize) -> Vec<u64> {
    let mut divisors: Vec<u64> = (1..).take_while(|i| i * i <= n).filter(|&i| n.is_multiple_of(i)).collect();
    let large: Vec<u64> = divisors.iter().rev().map(|small| n / small).collect();
    divisors.extend(large.into_iter().filter(|large| large * large > n));
    let mut search = Search { divisors: &divisors, chosen: Vec::new(), best: None };
    if k > 0 {
        search.choose(n, k);
    }
    let mut best = search.best.unwrap_or_default();
    best.reverse();
    best
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
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { array::write("dims", dims, all.into_iter()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;

    /// All choices.
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
                let small_first =
                    |choice: &Vec<u64>| choice.iter().rev().map(|&f| Reverse(f)).collect::<Vec<_>>();
                let key = |choice: &Vec<u64>| (choice[0] - choice[k - 1], small_first(choice));
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
