//! Verification of a product or a factorisation by a random vector: both sides of the equation are applied to
//! it, and the difference is compared with a bound on its rounding errors. Invariant: the bound holds for
//! every order of the sums, with or without fused operations.
//!
//! A computed product C differs from A B by at most g |A| |B| in each element, where g = m u / (1 - m u), m =
//! n + 1, and u is the unit roundoff, 2^-53; a computed factor L has L L^T - A within g |L| |L^T|. The three
//! products with vectors of a check err by g each. So the difference of both sides is at most 4 g, and a
//! little, of the same products with all values absolute. Source: Higham, "Accuracy and Stability of
//! Numerical Algorithms", 2nd edition, (3.13) and theorem 10.3.

use pelago::Result;
use pelago::prelude::*;

use super::block::Block;

/// This PE's part of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    /// The indices of its rows.
    pub(crate) rows: &'a [usize],
    /// The indices of its columns.
    pub(crate) columns: &'a [usize],
    pub(crate) elements: Block<'a>,
}

/// The elements of a matrix that count in a product with a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Triangle {
    /// All elements.
    Both,
    /// Elements on the diagonal and below it.
    Lower,
    /// Elements on the diagonal and above it.
    Upper,
}

impl Part<'_> {
    /// The same elements with rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Part { rows: self.columns, columns: self.rows, elements: self.elements.transposed() }
    }

    /// Collective: the product of the whole matrix, of which `value` gives what counts of an element, with a
    /// vector; all PEs pass the same vector and get the same product.
    pub(crate) fn apply(
        self,
        world: &World,
        triangle: Triangle,
        value: fn(f64) -> f64,
        vector: &[f64],
    ) -> Result<Vec<f64>> {
        let mut product = vec![0.0; vector.len()];
        for (column, j) in self.columns.iter().enumerate() {
            for (row, i) in self.rows.iter().enumerate() {
                let counts = match triangle {
                    Triangle::Both => true,
                    Triangle::Lower => i >= j,
                    Triangle::Upper => i <= j,
                };
                if counts {
                    product[*i] += value(self.elements.get(row, column)) * vector[*j];
                }
            }
        }
        sum(world, &product)
    }
}

/// Collective: the sum of every PE's vector, the same on all of them.
pub(crate) fn sum(world: &World, own: &[f64]) -> Result<Vec<f64>> {
    let (total, source) = (world.alloc::<f64>(own.len())?, world.alloc::<f64>(own.len())?);
    source.local().write(0, own);
    world.team().all_reduce(ReduceOp::Sum, &total, &source)?;
    let total = total.local().to_vec();
    world.barrier();
    Ok(total)
}

/// The largest difference of two vectors in one element, as a part of its bound, which is 4 g times the
/// element of `scale`. An element that is no number differs without limit.
pub(crate) fn residual(found: &[f64], expected: &[f64], scale: &[f64]) -> f64 {
    let rounding = (found.len() + 1) as f64 * f64::EPSILON / 2.0;
    let gamma = rounding / (1.0 - rounding);
    let ratio = |((found, expected), scale): ((&f64, &f64), &f64)| match found - expected {
        0.0 => 0.0,
        difference if difference.is_nan() => f64::INFINITY,
        difference => difference.abs() / (4.0 * gamma * scale),
    };
    found.iter().zip(expected).zip(scale).map(ratio).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::block::Shape;

    #[test]
    fn a_residual_is_a_part_of_its_bound() {
        let bound = 4.0 * 3.0 * f64::EPSILON / 2.0;
        assert_eq!(residual(&[1.0, 2.0], &[1.0, 2.0], &[0.0, 1.0]), 0.0);
        let half = residual(&[1.0, 2.0 + 1e-15], &[1.0, 2.0], &[1.0, 1.0]);
        assert!((half - 8.881_784_197_001_252e-16 / bound).abs() < 1e-3, "{half}");
        assert_eq!(residual(&[f64::NAN, 1.0], &[1.0, 1.0], &[1.0, 1.0]), f64::INFINITY);
        assert_eq!(residual(&[1.0, 1.5], &[1.0, 1.0], &[1.0, 0.0]), f64::INFINITY);
    }

    #[test]
    fn triangles_and_absolute_values_are_applied() {
        let products = spmd(2, |world| {
            // The matrix [1 -2; 3 4], a column on each PE.
            let me = world.my_pe();
            let columns = [[1.0, 3.0], [-2.0, 4.0]];
            let elements = Block::of(&columns[me], Shape::by_columns(2, 1, 2));
            let part = Part { rows: &[0, 1], columns: &[me], elements };
            let apply =
                |part: Part<'_>, triangle, value| part.apply(world, triangle, value, &[1.0, 10.0]).unwrap();
            [
                apply(part, Triangle::Both, |x| x),
                apply(part, Triangle::Both, f64::abs),
                apply(part, Triangle::Lower, |x| x),
                apply(part.transposed(), Triangle::Upper, |x| x),
            ]
        });
        for of_pe in products.unwrap() {
            assert_eq!(of_pe, [[-19.0, 43.0], [21.0, 43.0], [1.0, 43.0], [31.0, 40.0]]);
        }
    }
}
