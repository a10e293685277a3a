//! A few neighbouring columns of a field as contiguous lines in the cache: gathered from the field to be
//! transformed, or transformed first and then scattered over it. The field is accessed only in runs whose
//! length is the number of columns, so that every fetched cache line is used completely. Invariant: lines are
//! padded, so that the same place of different columns falls into different cache sets although grid lengths
//! are powers of two.

use num_complex::Complex64;

use crate::buffer::Buffer;

/// Elements between the lines of two columns beyond their length: one cache line.
const PADDING: usize = 4;
/// Rows moved together while gathering: as many elements as fill a cache line of a column.
const TILE: usize = 4;

/// Up to `width` columns of `len` elements each.
pub(super) struct Columns {
    len: usize,
    data: Buffer<Complex64>,
}

impl Columns {
    /// A buffer for `width` columns of `len` elements.
    pub(super) fn new(len: usize, width: usize) -> Self {
        Columns { len, data: Buffer::new(width * (len + PADDING)) }
    }

    /// The first `width` columns, one contiguous line each.
    pub(super) fn lines(&mut self, width: usize) -> impl Iterator<Item = &mut [Complex64]> {
        let len = self.len;
        self.data.chunks_exact_mut(len + PADDING).take(width).map(move |line| &mut line[..len])
    }

    /// Reads `width` columns from `field`: element `i` of all of them begins at index `row(i)`.
    pub(super) fn gather(&mut self, width: usize, field: &[Complex64], row: impl Fn(usize) -> usize) {
        let stride = self.len + PADDING;
        let run = |index: usize| &field[row(index)..][..width];
        let tiled_len = self.len / TILE * TILE;
        for first in (0..tiled_len).step_by(TILE) {
            let runs: [&[Complex64]; TILE] = std::array::from_fn(|i| run(first + i));
            for (column, line) in self.data.chunks_exact_mut(stride).take(width).enumerate() {
                line[first..first + TILE].copy_from_slice(&runs.map(|run| run[column]));
            }
        }
        for index in tiled_len..self.len {
            for (line, element) in self.data.chunks_exact_mut(stride).zip(run(index)) {
                line[index] = *element;
            }
        }
    }

    /// Writes `width` columns to `field`, where `gather` with the same `row` reads them.
    pub(super) fn scatter(&self, width: usize, field: &mut [Complex64], row: impl Fn(usize) -> usize) {
        let stride = self.len + PADDING;
        for index in 0..self.len {
            let run = &mut field[row(index)..][..width];
            for (element, line) in run.iter_mut().zip(self.data.chunks_exact(stride)) {
                *element = line[index];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathering_transposes_and_scattering_undoes_it() {
        for (len, width) in [(1, 1), (3, 5), (4, 32), (10, 7)] {
            let pitch = width + 2;
            let field: Vec<_> = (0..len * pitch).map(|i| Complex64::new(i as f64, -1.0)).collect();
            let mut columns = Columns::new(len, width);
            columns.gather(width, &field, |row| row * pitch + 1);
            for (column, line) in columns.lines(width).enumerate() {
                for (row, element) in line.iter().enumerate() {
                    assert_eq!(*element, field[row * pitch + 1 + column], "row {row}, column {column}");
                }
            }
            let mut copy = field.clone();
            for row in 0..len {
                copy[row * pitch + 1..][..width].fill(Complex64::ZERO);
            }
            columns.scatter(width, &mut copy, |row| row * pitch + 1);
            assert_eq!(copy, field);
        }
    }
}
