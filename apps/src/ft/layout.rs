//! The 1D decomposition: who owns which part of the grid, and where in memory it lies. In space a PE owns
//! whole z-planes; of the spectrum it owns whole y-rows, all z. A field under way between the two is cut into
//! one block a peer, each block ordered plane, row, x, and the blocks are alike on both sides: what one PE
//! holds as the block for another is, element for element, what the other holds as the block from it. So the
//! transposition is a copy of contiguous pieces, of any size from a row to a block, and the FFTs along y and
//! z find their strides here.

use thiserror::Error;

use super::classes::Problem;

/// One PE's view of the decomposition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) problem: Problem,
    pub(super) pes: usize,
    pub(super) me: usize,
    /// z-planes that each PE owns in space.
    pub(super) planes: usize,
    /// y-rows that each PE owns of the spectrum.
    pub(super) rows: usize,
}

/// The grid cannot be shared out equally.
#[derive(Debug, Error)]
#[error(
    "the grid {grid} cannot be shared out equally among {pes} PEs, whole z-planes and whole y-rows each; \
     possible numbers of PEs are {possible}"
)]
pub(super) struct UnevenLayout {
    grid: Problem,
    pes: usize,
    possible: String,
}

impl Layout {
    /// The part of PE `me` of `pes`.
    pub(super) fn new(problem: Problem, pes: usize, me: usize) -> Result<Self, UnevenLayout> {
        let fits = |pes| problem.nz.is_multiple_of(pes) && problem.ny.is_multiple_of(pes);
        if !fits(pes) {
            let possible: Vec<_> = (1..=problem.nz).filter(|&n| fits(n)).map(|n| n.to_string()).collect();
            return Err(UnevenLayout { grid: problem, pes, possible: possible.join(", ") });
        }
        Ok(Layout { problem, pes, me, planes: problem.nz / pes, rows: problem.ny / pes })
    }

    /// Elements of one block: what one PE sends another in one 3D FFT.
    pub(super) fn block_len(&self) -> usize {
        self.planes * self.rows * self.problem.nx
    }

    /// Elements of a field that one PE owns.
    pub(super) fn len(&self) -> usize {
        self.pes * self.block_len()
    }

    /// In space: where row `y` of the own plane `plane` begins.
    pub(super) fn spatial_row(&self, plane: usize, y: usize) -> usize {
        ((y / self.rows * self.planes + plane) * self.rows + y % self.rows) * self.problem.nx
    }

    /// On the way to or from the spectrum: where the row at `z` of the own y-row `row` begins.
    pub(super) fn spectral_row(&self, row: usize, z: usize) -> usize {
        (z * self.rows + row) * self.problem.nx
    }

    /// In the spectrum, z fastest: where the pencil along z at `x` of the own y-row `row` begins.
    pub(super) fn pencil(&self, row: usize, x: usize) -> usize {
        (row * self.problem.nx + x) * self.problem.nz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Problem = Problem { nx: 3, ny: 8, nz: 4, iterations: 1 };

    #[test]
    fn rows_are_disjoint_and_fill_the_field() {
        for pes in [1, 2, 4] {
            let layout = Layout::new(BOX, pes, 0).unwrap();
            let every_row: Vec<_> = (0..layout.len()).step_by(BOX.nx).collect();
            let mut spatial: Vec<_> =
                (0..layout.planes).flat_map(|p| (0..BOX.ny).map(move |y| layout.spatial_row(p, y))).collect();
            let mut spectral: Vec<_> =
                (0..layout.rows).flat_map(|r| (0..BOX.nz).map(move |z| layout.spectral_row(r, z))).collect();
            spatial.sort_unstable();
            spectral.sort_unstable();
            assert_eq!((&spatial, &spectral), (&every_row, &every_row), "{pes} PEs");
        }
    }

    #[test]
    fn a_block_lies_alike_at_both_ends() {
        let (sender, receiver) = (Layout::new(BOX, 4, 1).unwrap(), Layout::new(BOX, 4, 3).unwrap());
        for plane in 0..sender.planes {
            for row in 0..receiver.rows {
                let (y, z) = (receiver.me * receiver.rows + row, sender.me * sender.planes + plane);
                let sent = sender.spatial_row(plane, y) - receiver.me * sender.block_len();
                let received = receiver.spectral_row(row, z) - sender.me * receiver.block_len();
                assert_eq!(sent, received);
            }
        }
    }

    #[test]
    fn wrong_counts_are_refused_with_the_right_ones() {
        for pes in [3, 8, 1000] {
            let message = Layout::new(BOX, pes, 0).unwrap_err().to_string();
            assert!(message.contains(&format!("{pes} PEs")) && message.ends_with("are 1, 2, 4"), "{message}");
        }
    }
}
