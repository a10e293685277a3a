//! The distribution of a square matrix over a grid of PEs, and this PE's part. Invariant: row blocks are
//! distributed over the rows of the grid and column blocks over its columns, both cyclically.

use pelago::prelude::*;

use super::cyclic::Cyclic;
use super::grid::Grid;

/// A matrix of order `n` on a grid, as one PE sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) n: usize,
    /// The order of a block.
    pub(crate) block: usize,
    pub(crate) grid: Grid,
    pub(crate) rows: Cyclic,
    pub(crate) columns: Cyclic,
    /// This PE's row of the grid.
    pub(crate) row: usize,
    /// This PE's column of the grid.
    pub(crate) column: usize,
}

impl Layout {
    /// The layout of a matrix of order `n` in blocks of order `block`, as PE `me` sees it.
    pub(crate) fn new(n: usize, block: usize, grid: Grid, me: Pe) -> Self {
        let (row, column) = grid.place(me);
        let (rows, columns) = (Cyclic::new(n, block, grid.rows), Cyclic::new(n, block, grid.columns));
        Layout { n, block, grid, rows, columns, row, column }
    }

    /// The number of blocks in a row or a column of the matrix.
    pub(crate) fn blocks(&self) -> usize {
        self.rows.blocks()
    }

    /// The number of rows of this PE's part.
    pub(crate) fn own_rows(&self) -> usize {
        self.rows.part_len(self.row)
    }

    /// The number of columns of this PE's part.
    pub(crate) fn own_columns(&self) -> usize {
        self.columns.part_len(self.column)
    }

    /// The indices of this PE's rows.
    pub(crate) fn row_indices(&self) -> Vec<usize> {
        self.rows.part(self.row).collect()
    }

    /// The indices of this PE's columns.
    pub(crate) fn column_indices(&self) -> Vec<usize> {
        self.columns.part(self.column).collect()
    }

    /// The number of elements of the largest part.
    pub(crate) fn longest_part(&self) -> usize {
        self.rows.longest() * self.columns.longest()
    }
}
