//! Blocks of a matrix in memory: an address, a number of rows and columns, and the distance from one row and
//! one column to the next. Invariant: while a block lives, its elements are valid for reads, and those of a
//! mutable block for writes. A split of a mutable block gives blocks without common elements.

use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

/// Elements that may be read, and that nobody writes meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    start: *const f64,
    shape: Shape,
    memory: PhantomData<&'a f64>,
}

/// Elements that may be read and written by the owner of the block alone.
#[derive(Debug)]
pub(crate) struct BlockMut<'a> {
    start: *mut f64,
    shape: Shape,
    memory: PhantomData<&'a mut f64>,
}

/// The shape of a block, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// From a row to the next.
    pub(crate) row_stride: usize,
    /// From a column to the next.
    pub(crate) column_stride: usize,
}

impl Shape {
    /// Columns one after the other, each `leading` elements behind the one before.
    pub(crate) fn by_columns(rows: usize, columns: usize, leading: usize) -> Self {
        Shape { rows, columns, row_stride: 1, column_stride: leading }
    }

    /// Rows one after the other, each `leading` elements behind the one before.
    pub(crate) fn by_rows(rows: usize, columns: usize, leading: usize) -> Self {
        Shape { rows, columns, row_stride: leading, column_stride: 1 }
    }

    /// The shape with rows and columns exchanged.
    pub(super) fn transposed(self) -> Self {
        let Shape { rows, columns, row_stride, column_stride } = self;
        Shape { rows: columns, columns: rows, row_stride: column_stride, column_stride: row_stride }
    }

    /// The elements from the first one to behind the last one.
    pub(super) fn span(self) -> usize {
        if self.rows == 0 || self.columns == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride + 1
    }

    /// A part of the shape, and the distance of its first element from the first one here.
    #[track_caller]
    fn part(self, rows: Range<usize>, columns: Range<usize>) -> (usize, Self) {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows,
            "rows {rows:?} of a block of {} rows",
            self.rows
        );
        assert!(
            columns.start <= columns.end && columns.end <= self.columns,
            "columns {columns:?} of a block of {} columns",
            self.columns
        );
        let distance = rows.start * self.row_stride + columns.start * self.column_stride;
        (distance, Shape { rows: rows.len(), columns: columns.len(), ..self })
    }
}

impl<'a> Block<'a> {
    /// Elements of a slice, from its first one on.
    #[track_caller]
    pub(crate) fn of(memory: &'a [f64], shape: Shape) -> Self {
        assert!(shape.span() <= memory.len(), "{shape:?} of {} elements", memory.len());
        Block { start: memory.as_ptr(), shape, memory: PhantomData }
    }

    /// Elements at an address.
    ///
    /// # Safety
    /// All elements of the shape are valid for reads, and no PE writes them, as long as the block lives.
    pub(crate) unsafe fn at(start: *const f64, shape: Shape) -> Self {
        Block { start, shape, memory: PhantomData }
    }

    /// The address of the first element.
    pub(crate) fn start(&self) -> *const f64 {
        self.start
    }

    /// The shape.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The same elements with rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Block { shape: self.shape.transposed(), ..self }
    }

    /// The elements of these rows and columns.
    #[track_caller]
    pub(crate) fn part(self, rows: Range<usize>, columns: Range<usize>) -> Self {
        let (distance, shape) = self.shape.part(rows, columns);
        // An empty part may begin behind the last element, so the address is computed without a claim.
        Block { start: self.start.wrapping_add(distance), shape, memory: PhantomData }
    }

    /// A column, whose elements are contiguous.
    #[track_caller]
    pub(crate) fn column(self, column: usize) -> &'a [f64] {
        let Shape { rows, columns, row_stride, column_stride } = self.shape;
        assert!(column < columns && row_stride == 1, "column {column} of {:?}", self.shape);
        if rows == 0 {
            return &[];
        }
        // SAFETY: the column was found to lie in the block, whose elements are valid for reads, and nobody
        // writes them as long as it lives.
        unsafe { slice::from_raw_parts(self.start.add(column * column_stride), rows) }
    }

    /// The element of a row and a column.
    #[track_caller]
    pub(crate) fn get(&self, row: usize, column: usize) -> f64 {
        assert!(
            row < self.shape.rows && column < self.shape.columns,
            "({row}, {column}) of {:?}",
            self.shape
        );
        let distance = row * self.shape.row_stride + column * self.shape.column_stride;
        // SAFETY: the element was found to lie in the block, whose elements are valid for reads.
        unsafe { *self.start.add(distance) }
    }
}

impl<'a> BlockMut<'a> {
    /// Elements of a slice, from its first one on.
    #[track_caller]
    pub(crate) fn of(memory: &'a mut [f64], shape: Shape) -> Self {
        assert!(shape.span() <= memory.len(), "{shape:?} of {} elements", memory.len());
        BlockMut { start: memory.as_mut_ptr(), shape, memory: PhantomData }
    }

    /// The address of the first element.
    pub(crate) fn start(&mut self) -> *mut f64 {
        self.start
    }

    /// The shape.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The elements, to be read while this is not used.
    pub(crate) fn as_block(&self) -> Block<'_> {
        Block { start: self.start, shape: self.shape, memory: PhantomData }
    }

    /// The same elements with rows and columns exchanged, while this is not used.
    pub(crate) fn transposed(&mut self) -> BlockMut<'_> {
        BlockMut { start: self.start, shape: self.shape.transposed(), memory: PhantomData }
    }

    /// The elements of these rows and columns, while this is not used.
    #[track_caller]
    pub(crate) fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> BlockMut<'_> {
        let (distance, shape) = self.shape.part(rows, columns);
        BlockMut { start: self.start.wrapping_add(distance), shape, memory: PhantomData }
    }

    /// The columns before `column`, and the others.
    #[track_caller]
    pub(crate) fn split_columns(self, column: usize) -> (BlockMut<'a>, BlockMut<'a>) {
        let Shape { rows, columns, .. } = self.shape;
        let ((_, left), (distance, right)) =
            (self.shape.part(0..rows, 0..column), self.shape.part(0..rows, column..columns));
        let behind = self.start.wrapping_add(distance);
        let block = |start, shape| BlockMut { start, shape, memory: PhantomData };
        (block(self.start, left), block(behind, right))
    }

    /// The rows before `row`, and the others.
    #[track_caller]
    pub(crate) fn split_rows(mut self, row: usize) -> (BlockMut<'a>, BlockMut<'a>) {
        self.shape = self.shape.transposed();
        let (mut upper, mut lower) = self.split_columns(row);
        upper.shape = upper.shape.transposed();
        lower.shape = lower.shape.transposed();
        (upper, lower)
    }

    /// The element of a row and a column.
    #[track_caller]
    pub(crate) fn get(&self, row: usize, column: usize) -> f64 {
        self.as_block().get(row, column)
    }

    /// Writes the element of a row and a column.
    #[track_caller]
    pub(crate) fn set(&mut self, row: usize, column: usize, value: f64) {
        let (distance, shape) = self.shape.part(row..row + 1, column..column + 1);
        debug_assert_eq!((shape.rows, shape.columns), (1, 1));
        // SAFETY: the element was found to lie in the block, whose elements are valid for writes.
        unsafe { *self.start.add(distance) = value };
    }

    /// Copies the elements of a block of the same number of rows and columns.
    #[track_caller]
    pub(crate) fn copy_from(&mut self, source: Block<'_>) {
        let Shape { rows, columns, .. } = self.shape;
        assert_eq!((rows, columns), (source.shape.rows, source.shape.columns), "rows and columns of a copy");
        if self.shape.row_stride == 1 && source.shape.row_stride == 1 {
            for column in 0..columns {
                let from = source.start.wrapping_add(column * source.shape.column_stride);
                let to = self.start.wrapping_add(column * self.shape.column_stride);
                // SAFETY: a column of `rows` elements lies in both blocks; nobody writes the source, so that
                // the two do not overlap.
                unsafe { to.copy_from_nonoverlapping(from, rows) };
            }
            return;
        }
        for column in 0..columns {
            (0..rows).for_each(|row| self.set(row, column, source.get(row, column)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_transpositions_name_the_same_elements() {
        let memory: Vec<f64> = (0..20).map(f64::from).collect();
        let block = Block::of(&memory, Shape::by_columns(3, 4, 5));
        assert_eq!([block.get(0, 0), block.get(2, 0), block.get(1, 3)], [0.0, 2.0, 16.0]);
        assert_eq!(block.transposed().get(3, 1), 16.0);
        let part = block.part(1..3, 2..4);
        assert_eq!([part.get(0, 0), part.get(1, 1)], [11.0, 17.0]);
        let by_rows = Block::of(&memory, Shape::by_rows(4, 5, 5));
        assert_eq!(by_rows.get(3, 1), 16.0);
        assert_eq!(block.part(3..3, 0..4).shape().rows, 0);
    }

    #[test]
    fn a_split_block_is_written_in_both_parts() {
        let mut memory = vec![0.0; 12];
        let (mut left, mut right) = BlockMut::of(&mut memory, Shape::by_columns(3, 4, 3)).split_columns(1);
        left.set(2, 0, 1.0);
        right.set(0, 2, 2.0);
        let (mut upper, mut lower) = right.split_rows(1);
        upper.set(0, 0, 3.0);
        lower.copy_from(Block::of(&[7.0; 6], Shape::by_columns(2, 3, 2)));
        assert_eq!(memory, [0.0, 0.0, 1.0, 3.0, 7.0, 7.0, 0.0, 7.0, 7.0, 2.0, 7.0, 7.0]);
    }

    #[test]
    #[should_panic(expected = "columns 3..5 of a block of 4 columns")]
    fn a_part_outside_is_refused() {
        Block::of(&[0.0; 12], Shape::by_columns(3, 4, 3)).part(0..1, 3..5);
    }

    #[test]
    #[should_panic(expected = "of 11 elements")]
    fn a_slice_too_short_is_refused() {
        Block::of(&[0.0; 11], Shape::by_columns(3, 4, 3));
    }
}
