//! The process grid of a 2-D decomposition: TY times TZ PEs, of which PE p stands in row p / TY at place
//! p % TY. TY PEs share a plane of the field, TZ PEs share its planes. Invariant: `possible` holds exactly
//! the grids whose sides divide the axes that they share. Source: Nishtala, Hargrove, Bonachea, Yelick,
//! "Scaling Communication-Intensive Applications on BlueGene/P Using One-Sided Communication and Overlap".

use std::fmt;

use super::classes::Problem;

/// A process grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// PEs that share a plane.
    pub(super) ty: usize,
    /// PEs that share the planes.
    pub(super) tz: usize,
}

/// The user's choice of a process grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GridChoice {
    /// The most nearly square one.
    Auto,
    Given(Grid),
}

impl Grid {
    /// Number of PEs.
    pub(super) fn pes(&self) -> usize {
        self.ty * self.tz
    }

    /// Whether the sides divide the axes: in space y and z are shared, in the spectrum x and y.
    pub(super) fn divides(&self, problem: &Problem) -> bool {
        let Problem { nx, ny, nz, .. } = *problem;
        [(nx, self.ty), (ny, self.ty), (ny, self.tz), (nz, self.tz)]
            .iter()
            .all(|(len, side)| len.is_multiple_of(*side))
    }

    /// The grids of `pes` PEs for `problem`, the smallest TY first.
    pub(super) fn possible(problem: &Problem, pes: usize) -> Vec<Grid> {
        (1..=pes.min(problem.ny))
            .filter(|ty| pes.is_multiple_of(*ty))
            .map(|ty| Grid { ty, tz: pes / ty })
            .filter(|grid| grid.divides(problem))
            .collect()
    }

    /// The most nearly square grid of `pes` PEs for `problem`, with TY below TZ where two are equally so: for
    /// 256 to 16384 PEs those of the paper, except 64x32.
    pub(super) fn auto(problem: &Problem, pes: usize) -> Option<Grid> {
        let longer = |grid: &Grid| grid.ty.max(grid.tz);
        Grid::possible(problem, pes).into_iter().min_by_key(longer)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.ty, self.tz)
    }
}

impl GridChoice {
    /// The choice with the name `name`: `auto`, or two numbers with an x between them.
    pub(super) fn from_name(name: &str) -> Result<Self, String> {
        if name == "auto" {
            return Ok(GridChoice::Auto);
        }
        let sides: Vec<_> = name.split('x').map(|side| side.parse().unwrap_or(0usize)).collect();
        match *sides {
            [ty, tz] if sides.iter().all(|side| (1..=1 << 16).contains(side)) => {
                Ok(GridChoice::Given(Grid { ty, tz }))
            }
            _ => {
                Err("a process grid is TYxTZ, two numbers of PEs from 1 to 65536 as 2x4, or auto".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBE: Problem = Problem { nx: 64, ny: 64, nz: 64, iterations: 0 };

    #[test]
    fn names_are_read_and_wrong_ones_are_refused() {
        assert_eq!(GridChoice::from_name("2x4"), Ok(GridChoice::Given(Grid { ty: 2, tz: 4 })));
        assert_eq!(GridChoice::from_name("auto"), Ok(GridChoice::Auto));
        for name in ["", "2", "2x", "x2", "2x2x2", "0x4", "-1x4", "2x70000", "axb", "2*4", "Auto"] {
            let message = GridChoice::from_name(name).unwrap_err();
            assert!(message.contains("as 2x4, or auto"), "{name}: {message}");
        }
    }

    #[test]
    fn possible_grids_divide_every_axis_that_they_share() {
        let problem = Problem { nx: 4, ny: 12, nz: 6, iterations: 0 };
        let sides = |pes| Grid::possible(&problem, pes).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(sides(12), ["2x6", "4x3"]);
        assert_eq!(sides(1), ["1x1"]);
        assert!(sides(5).is_empty() && sides(48).is_empty());
    }

    #[test]
    fn grids_of_the_paper_are_chosen() {
        let problem = Problem { nx: 2048, ny: 1024, nz: 1024, iterations: 0 };
        let chosen = [256, 512, 1024, 2048, 4096, 8192, 16384]
            .map(|pes| Grid::auto(&problem, pes).map(|grid| grid.to_string()).unwrap_or_default());
        assert_eq!(chosen, ["16x16", "16x32", "32x32", "32x64", "64x64", "64x128", "128x128"]);
        assert_eq!(Grid::auto(&CUBE, 2), Some(Grid { ty: 1, tz: 2 }));
        assert_eq!(Grid::auto(&CUBE, 3), None);
    }
}
