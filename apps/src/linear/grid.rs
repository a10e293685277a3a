//! Grids of PEs: the PEs of a job in rows and columns. Invariant: PE p stands in row p / columns, at place
//! p % columns, as in ScaLAPACK's row-major grids.

use std::fmt;

use pelago::prelude::*;
use thiserror::Error;

/// A grid of rows times columns of PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// The grid is not one of the job's PEs.
#[derive(Debug, Error)]
#[error(
    "a grid of {grid} has {} PEs, and the job has {pes}; try --grid {}",
    grid.pes(),
    Grid::nearly_square(*pes)
)]
pub(crate) struct OtherPes {
    grid: Grid,
    pes: usize,
}

impl Grid {
    /// The grid of `pes` PEs that is nearest to a square, and not higher than wide.
    pub(crate) fn nearly_square(pes: usize) -> Self {
        let root = (pes as f64).sqrt() as usize + 1;
        let rows =
            (1..=root).filter(|rows| pes.is_multiple_of(*rows) && rows * rows <= pes).max().unwrap_or(1);
        Grid { rows, columns: pes / rows }
    }

    /// The grid with the name `name`: two numbers with an x between them.
    pub(crate) fn from_name(name: &str) -> Result<Self, String> {
        let sides: Vec<_> = name.split('x').map(|side| side.parse().unwrap_or(0_usize)).collect();
        match *sides {
            [rows, columns] if sides.iter().all(|side| (1..=1 << 20).contains(side)) => {
                Ok(Grid { rows, columns })
            }
            _ => Err("a grid is two numbers of PEs, rows and columns, as 2x3".to_owned()),
        }
    }

    /// The requested grid, or the nearly square one.
    pub(crate) fn choose(requested: Option<Self>, pes: usize) -> Result<Self, OtherPes> {
        match requested {
            Some(grid) if grid.pes() != pes => Err(OtherPes { grid, pes }),
            Some(grid) => Ok(grid),
            None => Ok(Grid::nearly_square(pes)),
        }
    }

    /// The number of PEs.
    pub(crate) fn pes(self) -> usize {
        self.rows * self.columns
    }

    /// The row and the column that a PE stands in.
    pub(crate) fn place(self, pe: Pe) -> (usize, usize) {
        (pe / self.columns, pe % self.columns)
    }

    /// The PE of a row and a column.
    pub(crate) fn pe(self, row: usize, column: usize) -> Pe {
        row * self.columns + column
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_nearly_square() {
        let names = [1, 2, 3, 4, 6, 7, 8, 9, 12, 16].map(|pes| Grid::nearly_square(pes).to_string());
        assert_eq!(names, ["1x1", "1x2", "1x3", "2x2", "2x3", "1x7", "2x4", "3x3", "3x4", "4x4"]);
    }

    #[test]
    fn places_and_pes_are_inverse() {
        let grid = Grid::from_name("3x4").unwrap();
        for pe in 0..grid.pes() {
            let (row, column) = grid.place(pe);
            assert_eq!((grid.pe(row, column), row < 3, column < 4), (pe, true, true));
        }
    }

    #[test]
    fn other_grids_are_refused() {
        for name in ["", "2", "2x", "x2", "0x2", "2x2x2", "-1x2", "2*2", "2x9999999999"] {
            assert!(Grid::from_name(name).unwrap_err().contains("as 2x3"), "{name}");
        }
        let message = Grid::choose(Grid::from_name("2x3").ok(), 4).unwrap_err().to_string();
        assert_eq!(message, "a grid of 2x3 has 6 PEs, and the job has 4; try --grid 2x2");
        assert_eq!(Grid::choose(None, 6).unwrap(), Grid { rows: 2, columns: 3 });
    }
}
