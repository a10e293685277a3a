//! The 1D decomposition: the owner of each part of the grid, and the transpositions of the two 3D FFTs of a
//! step. In space a PE owns whole z-planes, ordered z, y, x with x fastest; of the spectrum it owns whole
//! x-planes, ordered x, y, z with z fastest. So the inverse FFT is the forward one with x and z exchanged,
//! and both compute two of their three axes before their transposition.

use thiserror::Error;

use super::classes::Problem;
use super::transposition::Transposition;

/// One PE's view of the decomposition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) problem: Problem,
    pub(super) pes: usize,
    pub(super) me: usize,
}

/// The grid cannot be distributed equally.
#[derive(Debug, Error)]
#[error(
    "the grid {grid} cannot be shared out equally among {pes} PEs, whole z-planes and whole x-planes each; \
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
        let fits = |pes| problem.nz.is_multiple_of(pes) && problem.nx.is_multiple_of(pes);
        if !fits(pes) {
            let possible: Vec<_> = (1..=problem.nz).filter(|&n| fits(n)).map(|n| n.to_string()).collect();
            return Err(UnevenLayout { grid: problem, pes, possible: possible.join(", ") });
        }
        Ok(Layout { problem, pes, me })
    }

    /// The number of elements of a field on each PE.
    pub(super) fn len(&self) -> usize {
        self.problem.points() / self.pes
    }

    /// z-planes that each PE owns in space.
    pub(super) fn z_planes(&self) -> usize {
        self.problem.nz / self.pes
    }

    /// In space: the index at which row `y` of this PE's plane `plane` begins.
    pub(super) fn spatial_row(&self, plane: usize, y: usize) -> usize {
        (plane * self.problem.ny + y) * self.problem.nx
    }

    /// The transposition from space to the spectrum.
    pub(super) fn forward(&self) -> Transposition {
        let Problem { nx, ny, nz, .. } = self.problem;
        Transposition { pes: self.pes, me: self.me, outer: nz, middle: ny, inner: nx }
    }

    /// The transposition from the spectrum to space.
    pub(super) fn inverse(&self) -> Transposition {
        let Problem { nx, ny, nz, .. } = self.problem;
        Transposition { pes: self.pes, me: self.me, outer: nx, middle: ny, inner: nz }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Problem = Problem { nx: 8, ny: 3, nz: 4, iterations: 1 };

    #[test]
    fn rows_are_disjoint_and_fill_the_field() {
        for pes in [1, 2, 4] {
            let layout = Layout::new(BOX, pes, 0).unwrap();
            let every_row: Vec<_> = (0..layout.len()).step_by(BOX.nx).collect();
            let rows: Vec<_> = (0..layout.z_planes())
                .flat_map(|plane| (0..BOX.ny).map(move |y| layout.spatial_row(plane, y)))
                .collect();
            assert_eq!(rows, every_row, "{pes} PEs");
        }
    }

    #[test]
    fn the_way_back_leads_from_the_planes_where_the_way_there_ends() {
        let layout = Layout::new(BOX, 4, 1).unwrap();
        let (forward, inverse) = (layout.forward(), layout.inverse());
        assert_eq!((forward.planes(), forward.rows()), (layout.z_planes(), 2));
        assert_eq!((inverse.planes(), inverse.rows()), (2, layout.z_planes()));
        let lens = [forward, inverse].map(|way| way.planes() * way.plane_len());
        assert_eq!(lens, [layout.len(); 2]);
    }

    #[test]
    fn wrong_counts_are_refused_with_the_right_ones() {
        for pes in [3, 8, 1000] {
            let message = Layout::new(BOX, pes, 0).unwrap_err().to_string();
            assert!(message.contains(&format!("{pes} PEs")) && message.ends_with("are 1, 2, 4"), "{message}");
        }
    }
}
