//! The local kernel: multiplication of blocks by a library, and on top of it the factorisation of a block and
//! the solution with a triangular one, by recursion. Invariant: of a symmetric or a lower triangular block
//! only the lower triangle is read; what stands above the diagonal is unspecified afterwards. Source: Golub,
//! Van Loan, "Matrix Computations", 4th edition, section 4.2; the inverses of small blocks of the diagonal,
//! with which blocks are solved by multiplication: Higham, "Accuracy and Stability of Numerical Algorithms",
//! 2nd edition, chapter 14.

use super::block::{Block, BlockMut, Shape};
use super::openblas::OpenBlas;

/// The order of a block that is factored or inverted column by column.
const SMALL: usize = 32;

/// The library that computes on blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// The crate `matrixmultiply`, and the recursions here.
    Rust,
    /// OpenBLAS, with its own factorisation and solution.
    OpenBlas(OpenBlas),
}

impl Kernel {
    /// The name that the user types.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kernel::Rust => "rust",
            Kernel::OpenBlas(_) => "openblas",
        }
    }

    /// Sets `c` to `keep` times itself, plus `factor` times the product of `a` and `b`.
    #[track_caller]
    pub(super) fn multiply(self, factor: f64, a: Block<'_>, b: Block<'_>, keep: f64, c: &mut BlockMut<'_>) {
        let (rows, inner, columns) = (a.shape().rows, a.shape().columns, b.shape().columns);
        let shape = c.shape();
        assert_eq!(
            (rows, inner, columns),
            (shape.rows, b.shape().rows, shape.columns),
            "shapes of a product"
        );
        if rows == 0 || inner == 0 || columns == 0 {
            return;
        }
        match self {
            Kernel::OpenBlas(library) => library.multiply(factor, a, b, keep, c),
            // The library is faster on rows that are contiguous: the transposed product has them.
            Kernel::Rust if shape.row_stride == 1 => {
                multiply_by_rows(factor, b.transposed(), a.transposed(), keep, &mut c.transposed());
            }
            Kernel::Rust => multiply_by_rows(factor, a, b, keep, c),
        }
    }

    /// Subtracts the product of `a` and its transpose from the lower triangle of `c`.
    pub(super) fn subtract_square(self, a: Block<'_>, c: &mut BlockMut<'_>) {
        let Shape { rows: order, columns: inner, .. } = a.shape();
        if order <= SMALL {
            self.multiply(-1.0, a, a.transposed(), 1.0, c);
            return;
        }
        let half = half(order);
        let (upper, lower) = (a.part(0..half, 0..inner), a.part(half..order, 0..inner));
        self.subtract_square(upper, &mut c.part(0..half, 0..half));
        self.multiply(-1.0, lower, upper.transposed(), 1.0, &mut c.part(half..order, 0..half));
        self.subtract_square(lower, &mut c.part(half..order, half..order));
    }

    /// Solves X L^T = B, where `x` is B before and X afterwards.
    pub(super) fn solve(self, lower: Block<'_>, x: &mut BlockMut<'_>) {
        let (rows, order) = (x.shape().rows, lower.shape().rows);
        if rows == 0 || order == 0 {
            return;
        }
        if let Kernel::OpenBlas(library) = self {
            library.solve(lower, x);
        } else if order <= SMALL {
            let (inverse, shape) = (inverse_of_small(lower), Shape::by_columns(rows, order, rows));
            let mut copy = vec![0.0; rows * order];
            BlockMut::of(&mut copy, shape).copy_from(x.as_block());
            let inverse = Block::of(&inverse, Shape::by_columns(order, order, SMALL));
            self.multiply(1.0, Block::of(&copy, shape), inverse.transposed(), 0.0, x);
        } else {
            let half = half(order);
            let (mut left, mut right) = x.part(0..rows, 0..order).split_columns(half);
            self.solve(lower.part(0..half, 0..half), &mut left);
            let below = lower.part(half..order, 0..half);
            self.multiply(-1.0, left.as_block(), below.transposed(), 1.0, &mut right);
            self.solve(lower.part(half..order, half..order), &mut right);
        }
    }

    /// Factors a symmetric positive definite block into L L^T. If it is not positive definite, returns the
    /// first column whose leading block is not.
    pub(super) fn factor(self, a: &mut BlockMut<'_>) -> Result<(), usize> {
        let order = a.shape().rows;
        if let Kernel::OpenBlas(library) = self {
            return library.factor(a);
        }
        if order <= SMALL {
            return factor_small(a);
        }
        let half = half(order);
        let (mut upper, lower) = a.part(0..order, 0..order).split_rows(half);
        let (mut below, mut last) = lower.split_columns(half);
        self.factor(&mut upper.part(0..half, 0..half))?;
        self.solve(upper.as_block().part(0..half, 0..half), &mut below);
        self.subtract_square(below.as_block(), &mut last);
        self.factor(&mut last).map_err(|column| half + column)
    }
}

/// Half of an order above `SMALL`, rounded up to a multiple of it.
fn half(order: usize) -> usize {
    (order / 2).next_multiple_of(SMALL)
}

fn multiply_by_rows(factor: f64, a: Block<'_>, b: Block<'_>, keep: f64, c: &mut BlockMut<'_>) {
    let (of_a, of_b, of_c) = (a.shape(), b.shape(), c.shape());
    let strides = |shape: Shape| (shape.row_stride as isize, shape.column_stride as isize);
    let ((a_row, a_column), (b_row, b_column), (c_row, c_column)) =
        (strides(of_a), strides(of_b), strides(of_c));
    // SAFETY: the shapes fit, as `multiply` has checked. The elements of blocks are valid for reads; those of
    // `c`, which no other block has meanwhile, for writes.
    unsafe {
        matrixmultiply::dgemm(
            of_a.rows,
            of_a.columns,
            of_b.columns,
            factor,
            a.start(),
            a_row,
            a_column,
            b.start(),
            b_row,
            b_column,
            keep,
            c.start(),
            c_row,
            c_column,
        );
    }
}

/// Factors a block of at most `SMALL` columns, column by column.
fn factor_small(a: &mut BlockMut<'_>) -> Result<(), usize> {
    let order = a.shape().rows;
    let mut work = [[0.0; SMALL]; SMALL];
    for (column, work) in work.iter_mut().enumerate().take(order) {
        (column..order).for_each(|row| work[row] = a.get(row, column));
    }
    for column in 0..order {
        let (left, right) = work.split_at_mut(column);
        let pivots = &mut right[0];
        for factor in left {
            let scale = factor[column];
            pivots[column..].iter_mut().zip(&factor[column..]).for_each(|(to, of)| *to -= scale * of);
        }
        let pivot = pivots[column];
        // A pivot that is no number is not positive either.
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(column);
        }
        let root = pivot.sqrt();
        pivots[column] = root;
        pivots[column + 1..].iter_mut().for_each(|below| *below /= root);
    }
    for (column, work) in work.iter().enumerate().take(order) {
        (column..order).for_each(|row| a.set(row, column, work[row]));
    }
    Ok(())
}

/// The inverse of a lower triangular block of at most `SMALL` columns, by columns of `SMALL` elements.
fn inverse_of_small(lower: Block<'_>) -> [f64; SMALL * SMALL] {
    let order = lower.shape().rows;
    let mut inverse = [0.0; SMALL * SMALL];
    for (column, solution) in inverse.chunks_exact_mut(SMALL).enumerate().take(order) {
        solution[column] = 1.0;
        for pivot in column..order {
            solution[pivot] /= lower.get(pivot, pivot);
            let scale = solution[pivot];
            (pivot + 1..order).for_each(|row| solution[row] -= scale * lower.get(row, pivot));
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::naive;
    use crate::splitmix::SplitMix;

    fn random(len: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix::new(seed);
        (0..len).map(|_| random.next() as f64 / 2.0_f64.powi(63) - 1.0).collect()
    }

    /// The kernels of this machine: OpenBLAS only where it is installed.
    fn kernels() -> impl Iterator<Item = Kernel> {
        [Some(Kernel::Rust), OpenBlas::open().ok().map(Kernel::OpenBlas)].into_iter().flatten()
    }

    fn assert_near(found: f64, expected: f64, what: &str) {
        assert!((found - expected).abs() <= 1e-11 * (1.0 + expected.abs()), "{what}: {found} {expected}");
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for (rows, inner, columns) in [(1, 1, 1), (5, 3, 7), (33, 70, 12), (64, 32, 64), (3, 0, 3)] {
            let (a, b) = (random(rows * inner, 1), random(inner * columns, 2));
            let by_columns = Block::of(&a, Shape::by_columns(rows, inner, rows));
            let by_rows = Block::of(&b, Shape::by_rows(inner, columns, columns));
            for kernel in kernels() {
                let mut c = random(rows * columns, 3);
                let before = c.clone();
                let mut block = BlockMut::of(&mut c, Shape::by_columns(rows, columns, rows));
                kernel.multiply(-2.0, by_columns, by_rows, 1.0, &mut block);
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    let product: f64 =
                        (0..inner).map(|k| by_columns.get(row, k) * by_rows.get(k, column)).sum();
                    let expected = before[column * rows + row] - 2.0 * product;
                    assert_near(block.get(row, column), expected, kernel.name());
                }
            }
        }
    }

    /// A symmetric positive definite matrix by columns.
    fn definite(order: usize) -> Vec<f64> {
        let mut a = random(order * order, 4);
        for row in 0..order {
            a[row * order + row] = order as f64;
            (0..row).for_each(|column| a[row * order + column] = a[column * order + row]);
        }
        a
    }

    #[test]
    fn factors_are_those_of_the_definition() {
        for (order, kernel) in [1, 2, 31, 32, 33, 100, 130]
            .iter()
            .flat_map(|order| kernels().map(move |kernel| (*order, kernel)))
        {
            let mut a = definite(order);
            let expected = naive::factor(&a, order).unwrap();
            let mut block = BlockMut::of(&mut a, Shape::by_columns(order, order, order));
            kernel.factor(&mut block).unwrap();
            for (row, column) in (0..order).flat_map(|row| (0..=row).map(move |column| (row, column))) {
                assert_near(block.get(row, column), expected[column * order + row], kernel.name());
            }
        }
    }

    #[test]
    fn the_first_column_that_is_not_definite_is_named() {
        for (order, bad) in [(1, 0), (20, 7), (100, 0), (100, 31), (100, 32), (100, 99)] {
            for kernel in kernels() {
                let mut a = definite(order);
                a[bad * order + bad] = -1.0;
                let mut block = BlockMut::of(&mut a, Shape::by_columns(order, order, order));
                assert_eq!(kernel.factor(&mut block), Err(bad), "{order} {}", kernel.name());
            }
        }
        let mut nothing = [f64::NAN];
        let mut block = BlockMut::of(&mut nothing, Shape::by_columns(1, 1, 1));
        assert_eq!(Kernel::Rust.factor(&mut block), Err(0));
    }

    #[test]
    fn solutions_solve() {
        for (rows, order) in [(1, 1), (7, 32), (40, 33), (5, 100), (0, 40)] {
            let lower = naive::factor(&definite(order), order).unwrap();
            let lower = Block::of(&lower, Shape::by_columns(order, order, order));
            for kernel in kernels() {
                let mut x = random(rows * order, 5);
                let right = x.clone();
                let mut block = BlockMut::of(&mut x, Shape::by_columns(rows, order, rows));
                kernel.solve(lower, &mut block);
                for (row, column) in (0..rows).flat_map(|row| (0..order).map(move |column| (row, column))) {
                    let product: f64 = (0..=column).map(|k| block.get(row, k) * lower.get(column, k)).sum();
                    assert_near(product, right[column * rows + row], kernel.name());
                }
            }
        }
    }
}
