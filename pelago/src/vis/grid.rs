//! Blocks of any number of dimensions: faces and boxes of a grid, and transpositions.
//!
//! Invariant: dimensions that are contiguous on both sides form one run, regardless of the order in which
//! they are given. Of the other dimensions, the strided loop iterates over the last one, and outer loops
//! iterate over the rest.

use super::strided::Strided;
use super::{Run, Runs};

/// One dimension of a block: the number of elements, or of smaller blocks, along it, and their stride on each
/// side, in elements. A block of 3 dimensions has three of these, in any order; the last one varies fastest.
///
/// ```
/// use pelago::Dimension;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// // A box of 2 x 2 x 3 elements out of a grid of 4 x 5 x 6 on the other PE.
/// let grid = world.alloc_zeroed::<u32>(4 * 5 * 6)?;
/// (0..120).for_each(|i| grid.local().set(i, i as u32));
/// world.barrier();
/// let shape = [
///     Dimension { count: 2, array_stride: 30, slice_stride: 6 },
///     Dimension { count: 2, array_stride: 6, slice_stride: 3 },
///     Dimension { count: 3, array_stride: 1, slice_stride: 1 },
/// ];
/// let mut cut = [0; 12];
/// grid.get_strided(1 - world.my_pe(), 7, &mut cut, &shape)?;
/// assert_eq!(cut, [7, 8, 9, 13, 14, 15, 37, 38, 39, 43, 44, 45]);
/// # world.barrier();
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Number of elements, or of smaller blocks, along this dimension.
    pub count: usize,
    /// Stride along this dimension in the symmetric array, in elements.
    pub array_stride: usize,
    /// Stride along this dimension in the slice, in elements.
    pub slice_stride: usize,
}

/// A block in the form in which it is iterated over. Dimensions with a count of 1 are left out. There are
/// fewer than 64 others, because each at least doubles the number of elements, and more would exceed the
/// address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid<'d> {
    dimensions: &'d [Dimension],
    /// A bit for each dimension with a count above 1: whether it is part of `inner`.
    is_inner: u64,
    inner: Strided,
    elements: usize,
}

impl<'d> Grid<'d> {
    /// `None` if the number of elements exceeds the address space.
    pub(crate) fn new(dimensions: &'d [Dimension]) -> Option<Grid<'d>> {
        let product = dimensions.iter().try_fold(1usize, |product, d| product.checked_mul(d.count));
        let elements = match product {
            Some(elements) => elements,
            None => dimensions.iter().any(|d| d.count == 0).then_some(0)?,
        };
        let mut grid = Grid { dimensions, is_inner: 0, inner: Strided::blocks(1, 1), elements };
        if elements == 0 {
            return Some(grid);
        }
        while let Some(d) = grid.take_last(|d, block| d.array_stride == block && d.slice_stride == block) {
            grid.inner.block *= d.count;
        }
        let block = grid.inner.block;
        grid.inner = match grid.take_last(|_, _| true) {
            None => Strided::blocks(1, block),
            Some(&Dimension { count, array_stride, slice_stride }) => {
                Strided { count, block, array_stride, slice_stride }
            }
        };
        Some(grid)
    }

    /// The dimensions of the outer loops, with their bits.
    fn outer(&self) -> impl Iterator<Item = (u64, &'d Dimension)> + use<'d> {
        let is_inner = self.is_inner;
        let counted = self.dimensions.iter().filter(|d| d.count > 1);
        counted.zip(0u32..).map(|(d, i)| (1 << i, d)).filter(move |(bit, _)| is_inner & bit == 0)
    }

    /// Takes the last of the outer dimensions that fits the inner block.
    fn take_last(&mut self, fits: impl Fn(&Dimension, usize) -> bool) -> Option<&'d Dimension> {
        let block = self.inner.block;
        let (bit, dimension) = self.outer().filter(|(_, d)| fits(d, block)).last()?;
        self.is_inner |= bit;
        Some(dimension)
    }

    /// Calls `visit` for each execution of the inner loop, with its first index in the array and in the
    /// slice.
    pub(crate) fn each_inner(&self, mut visit: impl FnMut(usize, usize)) {
        if self.elements > 0 {
            self.go_around(self.dimensions, 1, (0, 0), &mut visit);
        }
    }

    /// Iterates over the dimensions from this one on, which has this bit if its count is above 1.
    fn go_around(
        &self,
        mut dimensions: &[Dimension],
        mut bit: u64,
        (index, position): (usize, usize),
        visit: &mut impl FnMut(usize, usize),
    ) {
        while let Some((first, behind)) = dimensions.split_first() {
            dimensions = behind;
            if first.count > 1 {
                let is_inner = self.is_inner & bit != 0;
                bit <<= 1;
                if !is_inner {
                    for i in 0..first.count {
                        let at = (index + i * first.array_stride, position + i * first.slice_stride);
                        self.go_around(behind, bit, at, visit);
                    }
                    return;
                }
            }
        }
        visit(index, position);
    }

    pub(crate) fn inner(&self) -> &Strided {
        &self.inner
    }

    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Its dimensions, without those of the block that is contiguous on both sides.
    fn dimensions(&self) -> impl Iterator<Item = Dimension> + use<'d> {
        let Strided { count, array_stride, slice_stride, .. } = self.inner;
        let inner = Dimension { count, array_stride, slice_stride };
        self.outer().map(|(_, dimension)| *dimension).chain([inner])
    }

    /// Elements from the first to the last on the side that has this stride; `None` if their number exceeds
    /// the address space.
    pub(crate) fn span(&self, stride: fn(&Dimension) -> usize) -> Option<usize> {
        match self.elements {
            0 => Some(0),
            _ => self.dimensions().try_fold(self.inner.block, |span, dimension| {
                span.checked_add((dimension.count - 1).checked_mul(stride(&dimension))?)
            }),
        }
    }

    /// Whether elements certainly overlap on the side of this span. A `false` does not prove that no elements
    /// overlap.
    pub(crate) fn overlaps(&self, span: Option<usize>, stride: fn(&Dimension) -> usize) -> bool {
        let stands_still = || self.dimensions().any(|d| d.count > 1 && stride(&d) == 0);
        span.is_some_and(|span| self.elements > span) || self.elements > 0 && stands_still()
    }
}

/// A block that was checked, with its start in the array and in the slice.
pub(crate) struct GridAt<'g, T> {
    pub(crate) grid: &'g Grid<'g>,
    pub(crate) index: usize,
    pub(crate) start: *mut T,
}

impl<T> Runs<T> for GridAt<'_, T> {
    fn each(&self, mut visit: impl FnMut(Run<T>)) {
        self.grid.each_inner(|index, position| {
            let index = self.index + index;
            let start = self.start.wrapping_add(position);
            self.grid.inner.each_block(index, start, &mut visit);
        });
    }

    fn elements(&self) -> usize {
        self.grid.elements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(count: usize, array_stride: usize, slice_stride: usize) -> Dimension {
        Dimension { count, array_stride, slice_stride }
    }

    fn rounds(grid: &Grid) -> Vec<(usize, usize)> {
        let mut rounds = Vec::new();
        grid.each_inner(|index, position| rounds.push((index, position)));
        rounds
    }

    #[test]
    fn contiguous_dimensions_are_one_run_in_any_order() {
        let whole = [dimension(4, 30, 30), dimension(5, 6, 6), dimension(6, 1, 1)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let dimensions = order.map(|i| whole[i]);
            let grid = Grid::new(&dimensions).unwrap();
            assert_eq!((*grid.inner(), rounds(&grid)), (Strided::blocks(1, 120), vec![(0, 0)]));
        }
        let planes = [dimension(4, 60, 30), dimension(5, 6, 6), dimension(6, 1, 1)];
        let grid = Grid::new(&planes).unwrap();
        let inner = Strided { count: 4, block: 30, array_stride: 60, slice_stride: 30 };
        assert_eq!((*grid.inner(), rounds(&grid)), (inner, vec![(0, 0)]));
    }

    #[test]
    fn the_outer_loops_go_round_the_last_one_first() {
        let dimensions = [dimension(2, 100, 10), dimension(1, 9, 9), dimension(3, 20, 2), dimension(2, 5, 1)];
        let grid = Grid::new(&dimensions).unwrap();
        assert_eq!(*grid.inner(), Strided { count: 2, block: 1, array_stride: 5, slice_stride: 1 });
        assert_eq!(rounds(&grid), [(0, 0), (20, 2), (40, 4), (100, 10), (120, 12), (140, 14)]);
        assert_eq!(grid.span(|d| d.array_stride), Some(146));
        assert_eq!(grid.span(|d| d.slice_stride), Some(16));
    }

    #[test]
    fn nothing_and_too_much_are_told_apart() {
        let none = [dimension(usize::MAX, 1, 1), dimension(usize::MAX, 1, 1), dimension(0, 1, 1)];
        let nothing = Grid::new(&none).unwrap();
        assert_eq!(
            (nothing.elements(), rounds(&nothing), nothing.span(|d| d.array_stride)),
            (0, vec![], Some(0))
        );
        assert!(Grid::new(&[dimension(usize::MAX, 1, 1), dimension(2, 1, 1)]).is_none());
        let wide = [dimension(3, usize::MAX, 1)];
        let wide = Grid::new(&wide).unwrap();
        assert_eq!((wide.span(|d| d.array_stride), wide.span(|d| d.slice_stride)), (None, Some(3)));
        let point = Grid::new(&[]).unwrap();
        assert_eq!((point.elements(), *point.inner()), (1, Strided::blocks(1, 1)));
        let many = vec![dimension(2, 0, 0); 63];
        let many = Grid::new(&many).unwrap();
        assert_eq!((many.elements(), many.span(|d| d.array_stride)), (1 << 63, Some(1)));
        assert!(many.overlaps(Some(1), |d| d.array_stride));
    }
}
