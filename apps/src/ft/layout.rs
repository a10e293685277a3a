//! The owner of each part of the grid, in a 1-D or a 2-D decomposition, and the plans of the two 3-D FFTs of
//! a step. In space lines along x are whole, ordered z, y, x with x fastest; in the spectrum lines along z
//! are whole, ordered x, y, z with z fastest. In 1-D a PE owns whole z-planes and whole x-planes. In 2-D the
//! rows of the process grid share y and its columns z, and in the spectrum x and y. So the inverse FFT is the
//! forward one with x and z exchanged, and rows and columns.

use std::collections::BTreeSet;
use std::ops::Range;

use thiserror::Error;

use super::classes::Problem;
use super::grid::{Grid, GridChoice};
use super::plan::Plan;
use super::transposition::{Among, Members, Transposition};
use super::variant::Variant;

/// One PE's view of the decomposition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) problem: Problem,
    pub(super) pes: usize,
    pub(super) me: usize,
    /// The process grid of a 2-D decomposition.
    pub(super) grid: Option<Grid>,
}

/// The grid cannot be distributed equally.
#[derive(Debug, Error)]
pub(super) enum UnevenLayout {
    #[error(
        "the grid {grid} cannot be shared out equally among {pes} PEs, whole z-planes and whole x-planes \
         each{hint}; possible numbers of PEs are {possible}"
    )]
    Planes { grid: Problem, pes: usize, hint: String, possible: String },
    #[error("the process grid {processes} has {} PEs, but the job has {pes}; {remedy}", processes.pes())]
    OtherSize { processes: Grid, pes: usize, remedy: String },
    #[error(
        "the process grid {processes} does not divide the grid {grid}: TY must divide x and y, TZ must \
         divide y and z; {remedy}"
    )]
    Sides { processes: Grid, grid: Problem, remedy: String },
    #[error("no process grid of {pes} PEs divides the grid {grid}; possible numbers of PEs are {possible}")]
    NoGrid { grid: Problem, pes: usize, possible: String },
}

impl Layout {
    /// The part of PE `me` of `pes` in the 1-D decomposition.
    pub(super) fn new(problem: Problem, pes: usize, me: usize) -> Result<Self, UnevenLayout> {
        let fits = |pes| problem.nz.is_multiple_of(pes) && problem.nx.is_multiple_of(pes);
        if !fits(pes) {
            let hint =
                Grid::auto(&problem, pes).map_or_else(String::new, |_| " (with --grid auto it can)".into());
            let possible = listed((1..=problem.nz).filter(|&n| fits(n)));
            return Err(UnevenLayout::Planes { grid: problem, pes, hint, possible });
        }
        Ok(Layout { problem, pes, me, grid: None })
    }

    /// The part of PE `me` of the process grid `grid` in the 2-D decomposition.
    pub(super) fn on_grid(problem: Problem, grid: Grid, me: usize) -> Result<Self, UnevenLayout> {
        if !grid.divides(&problem) {
            let remedy = other_grids(&problem, grid.pes());
            return Err(UnevenLayout::Sides { processes: grid, grid: problem, remedy });
        }
        Ok(Layout { problem, pes: grid.pes(), me, grid: Some(grid) })
    }

    /// The part of PE `me` of `pes` in the decomposition that the user chose: 1-D without a process grid.
    pub(super) fn chosen(
        problem: Problem,
        pes: usize,
        me: usize,
        choice: Option<GridChoice>,
    ) -> Result<Self, UnevenLayout> {
        match choice {
            None => Layout::new(problem, pes, me),
            Some(GridChoice::Auto) => match Grid::auto(&problem, pes) {
                Some(grid) => Layout::on_grid(problem, grid, me),
                None => Err(UnevenLayout::NoGrid { grid: problem, pes, possible: possible_counts(&problem) }),
            },
            Some(GridChoice::Given(grid)) if grid.pes() != pes => {
                let remedy = format!("run {} PEs, or {}", grid.pes(), other_grids(&problem, pes));
                Err(UnevenLayout::OtherSize { processes: grid, pes, remedy })
            }
            Some(GridChoice::Given(grid)) => Layout::on_grid(problem, grid, me),
        }
    }

    /// The number of elements of a field on each PE.
    pub(super) fn len(&self) -> usize {
        self.problem.points() / self.pes
    }

    /// Rounds of communication of a 3-D FFT.
    pub(super) fn rounds(&self) -> usize {
        if self.grid.is_some() { 2 } else { 1 }
    }

    /// The part of the grid that this PE owns in space: ranges of x, y and z.
    pub(super) fn spatial(&self) -> [Range<usize>; 3] {
        let Problem { nx, ny, nz, .. } = self.problem;
        match self.grid {
            None => [0..nx, 0..ny, self.all().part(nz)],
            Some(grid) => [0..nx, self.row(grid).part(ny), self.column(grid).part(nz)],
        }
    }

    /// The part of the grid that this PE owns in the spectrum: ranges of x, y and z.
    pub(super) fn spectral(&self) -> [Range<usize>; 3] {
        let Problem { nx, ny, nz, .. } = self.problem;
        match self.grid {
            None => [self.all().part(nx), 0..ny, 0..nz],
            Some(grid) => [self.row(grid).part(nx), self.column(grid).part(ny), 0..nz],
        }
    }

    /// The index of a point in this PE's field, if the PE owns it.
    pub(super) fn spatial_index(&self, [x, y, z]: [usize; 3]) -> Option<usize> {
        let [xs, ys, zs] = self.spatial();
        index([(z, zs), (y, ys), (x, xs)])
    }

    /// The index of a mode in this PE's spectrum, if the PE owns it.
    pub(super) fn spectral_index(&self, [x, y, z]: [usize; 3]) -> Option<usize> {
        let [xs, ys, zs] = self.spectral();
        index([(x, xs), (y, ys), (z, zs)])
    }

    /// The 3-D FFT from space to the spectrum.
    pub(super) fn forward(&self, variant: Variant) -> Plan {
        let Problem { nx, ny, nz, .. } = self.problem;
        let [_, ys, zs] = self.spatial();
        let teams = self.grid.map(|grid| [self.row(grid), self.column(grid)]);
        self.plan([nx, ny, nz], [zs.start, ys.start], teams, variant)
    }

    /// The 3-D FFT from the spectrum to space.
    pub(super) fn inverse(&self, variant: Variant) -> Plan {
        let Problem { nx, ny, nz, .. } = self.problem;
        let [xs, ys, _] = self.spectral();
        let teams = self.grid.map(|grid| [self.column(grid), self.row(grid)]);
        self.plan([nz, ny, nx], [xs.start, ys.start], teams, variant)
    }

    /// A 3-D FFT along the axes `inner`, `middle` and `outer`. In 2-D the first team shares the middle axis
    /// at the start and the inner one at the end, the second team the outer and the middle one.
    fn plan(
        &self,
        [inner, middle, outer]: [usize; 3],
        [first_plane, first_line]: [usize; 2],
        teams: Option<[Members; 2]>,
        variant: Variant,
    ) -> Plan {
        let pieces = variant.pieces();
        let transpositions = match teams {
            None => {
                let (team, planes, rows) = (self.all(), outer / self.pes, inner / self.pes);
                vec![Transposition { team, planes, rows, row_len: middle, pieces }]
            }
            Some([team, next]) => {
                let (planes, own_inner) = (outer / next.count, inner / team.count);
                vec![
                    Transposition { team, planes, rows: own_inner, row_len: middle / team.count, pieces },
                    Transposition {
                        team: next,
                        planes,
                        rows: middle / next.count,
                        row_len: own_inner,
                        pieces,
                    },
                ]
            }
        };
        Plan { transpositions, first_plane, first_line }
    }

    fn all(&self) -> Members {
        Members { among: Among::All, count: self.pes, me: self.me, first: 0, stride: 1 }
    }

    /// This PE's row of the process grid.
    fn row(&self, grid: Grid) -> Members {
        let (me, first) = (self.me % grid.ty, self.me / grid.ty * grid.ty);
        Members { among: Among::Row, count: grid.ty, me, first, stride: 1 }
    }

    /// This PE's column of the process grid.
    fn column(&self, grid: Grid) -> Members {
        let (me, first) = (self.me / grid.ty, self.me % grid.ty);
        Members { among: Among::Column, count: grid.tz, me, first, stride: grid.ty }
    }
}

/// The index of a point among the points of three ranges, the last fastest; none if it is outside.
fn index(axes: [(usize, Range<usize>); 3]) -> Option<usize> {
    axes.into_iter().try_fold(0, |index, (place, range)| {
        range.contains(&place).then(|| index * range.len() + place - range.start)
    })
}

/// The advice to take another process grid of `pes` PEs, or another number of PEs if there is no grid.
fn other_grids(problem: &Problem, pes: usize) -> String {
    match listed(Grid::possible(problem, pes)) {
        grids if grids.is_empty() => {
            format!(
                "no process grid of {pes} PEs does; possible numbers of PEs are {}",
                possible_counts(problem)
            )
        }
        grids => format!("take --grid auto or one of {grids}"),
    }
}

/// The numbers of PEs for which there is a process grid.
fn possible_counts(problem: &Problem) -> String {
    let divisors = |a: usize, b: usize| {
        (1..=a.min(b)).filter(move |side| a.is_multiple_of(*side) && b.is_multiple_of(*side))
    };
    let Problem { nx, ny, nz, .. } = *problem;
    let counts = divisors(nx, ny).flat_map(|ty| divisors(ny, nz).map(move |tz| ty * tz));
    listed(counts.collect::<BTreeSet<_>>())
}

fn listed(items: impl IntoIterator<Item = impl ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Problem = Problem { nx: 8, ny: 3, nz: 4, iterations: 1 };
    const EVEN: Problem = Problem { nx: 8, ny: 12, nz: 4, iterations: 1 };

    /// Every layout of `problem` on `pes` PEs, for each of the PEs.
    fn layouts(problem: Problem, pes: usize) -> Vec<Vec<Layout>> {
        let one = (0..pes).map(|me| Layout::new(problem, pes, me)).collect::<Result<Vec<_>, _>>();
        let two = Grid::possible(&problem, pes)
            .into_iter()
            .map(|grid| (0..pes).map(|me| Layout::on_grid(problem, grid, me).unwrap()).collect());
        one.into_iter().chain(two).collect()
    }

    #[test]
    fn every_point_and_every_mode_has_one_owner_and_one_index() {
        for layouts in [1, 2, 4, 8].into_iter().flat_map(|pes| layouts(EVEN, pes)) {
            let places: Vec<_> = (0..EVEN.points()).map(|i| [i % 8, i / 8 % 12, i / 96]).collect();
            let of_space =
                |layout: &Layout| places.iter().filter_map(|&at| layout.spatial_index(at)).collect();
            let of_modes =
                |layout: &Layout| places.iter().filter_map(|&at| layout.spectral_index(at)).collect();
            for layout in &layouts {
                let mut both: [Vec<usize>; 2] = [of_space(layout), of_modes(layout)];
                both.iter_mut().for_each(|indices| indices.sort_unstable());
                assert!(both.iter().all(|indices| indices.iter().copied().eq(0..layout.len())), "{layout:?}");
            }
            for at in places {
                let owners =
                    |has: &dyn Fn(&Layout) -> bool| layouts.iter().filter(|layout| has(layout)).count();
                assert_eq!(owners(&|layout| layout.spatial_index(at).is_some()), 1);
                assert_eq!(owners(&|layout| layout.spectral_index(at).is_some()), 1);
            }
        }
    }

    #[test]
    fn the_way_back_leads_from_the_planes_where_the_way_there_ends() {
        for layout in [1, 2, 4, 8].into_iter().flat_map(|pes| layouts(EVEN, pes)).flatten() {
            let (forward, inverse) = (layout.forward(Variant::Slabs), layout.inverse(Variant::Slabs));
            let [spatial, spectral] =
                [layout.spatial(), layout.spectral()].map(|axes| axes.map(|own| own.len()));
            for (plan, [own_line, own_y, own_plane], [end_plane, end_y, end_line]) in [
                (&forward, spatial, spectral),
                (&inverse, [spectral[2], spectral[1], spectral[0]], [spatial[2], spatial[1], spatial[0]]),
            ] {
                let first = plan.transpositions[0];
                assert_eq!((first.planes, first.row_len, first.line_len()), (own_plane, own_y, own_line));
                assert_eq!((first.rows, plan.outer_len()), (end_plane, end_line));
                let last = plan.last();
                let ends = if plan.has_whole_rows() { [end_plane, end_y] } else { [end_y, end_plane] };
                assert_eq!([last.rows, last.row_len], ends);
                assert!(
                    plan.transpositions.iter().all(|round| round.planes * round.plane_len() == layout.len())
                );
            }
        }
    }

    #[test]
    fn wrong_counts_are_refused_with_the_right_ones() {
        for pes in [3, 8, 1000] {
            let message = Layout::new(BOX, pes, 0).unwrap_err().to_string();
            assert!(message.contains(&format!("{pes} PEs")) && message.ends_with("are 1, 2, 4"), "{message}");
        }
        let message = Layout::new(EVEN, 8, 0).unwrap_err().to_string();
        assert!(message.contains("x-planes each (with --grid auto it can);"), "{message}");
    }

    #[test]
    fn wrong_process_grids_are_refused_with_the_right_ones() {
        let given = |ty, tz| Some(GridChoice::Given(Grid { ty, tz }));
        for (pes, choice, part) in [
            (4, given(2, 4), "2x4 has 8 PEs, but the job has 4; run 8 PEs, or take --grid auto or one of"),
            (8, given(8, 1), "8x1 does not divide the grid 8 x 12 x 4: TY must divide x and y"),
            (8, given(8, 1), "y and z; take --grid auto or one of 2x4, 4x2"),
            (5, given(5, 1), "no process grid of 5 PEs does; possible numbers of PEs are 1, 2, 4, 8, 16"),
            (5, given(1, 4), "run 4 PEs, or no process grid of 5 PEs does; possible numbers"),
            (
                5,
                Some(GridChoice::Auto),
                "no process grid of 5 PEs divides the grid 8 x 12 x 4; possible numbers",
            ),
        ] {
            let message = Layout::chosen(EVEN, pes, 0, choice).unwrap_err().to_string();
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
        assert_eq!(
            Layout::chosen(EVEN, 8, 0, Some(GridChoice::Auto)).unwrap().grid,
            Some(Grid { ty: 2, tz: 4 })
        );
    }
}
