//! Random matrices. Invariant: an element depends on the number of its matrix, its row and its column alone,
//! and lies between -1/2 and 1/2; any program can compute the same (bench/c/linear.c does).

use crate::splitmix::mix;

/// The largest order of a matrix, whose indices have 28 bits.
pub(crate) const ORDER_MAX: usize = 1 << 28;

/// The numbers of the matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Matrix {
    A = 1,
    B = 2,
    /// A vector, as the first column of a matrix.
    X = 3,
}

impl Matrix {
    /// An element.
    pub(crate) fn element(self, row: usize, column: usize) -> f64 {
        let word = (self as u64) << 56 | (row as u64) << 28 | column as u64;
        mix(word) as i64 as f64 / 2.0_f64.powi(64)
    }

    /// The first column, of `n` elements.
    pub(crate) fn vector(self, n: usize) -> Vec<f64> {
        (0..n).map(|row| self.element(row, 0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_differ_and_are_spread_around_zero() {
        let sum: f64 = (0..100).flat_map(|i| (0..100).map(move |j| Matrix::A.element(i, j))).sum();
        assert!(sum.abs() < 100.0, "{sum}");
        assert!(Matrix::X.vector(1000).iter().all(|x| x.abs() <= 0.5));
        assert_ne!(Matrix::A.element(1, 2), Matrix::B.element(1, 2));
        assert_ne!(Matrix::A.element(1, 2), Matrix::A.element(2, 1));
    }
}
