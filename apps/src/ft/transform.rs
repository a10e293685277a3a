//! The local part of a 3-D FFT: in each stage the FFTs of this PE's lines, which are turned in the cache, and
//! where the turned rows are whole lines of the next axis, the FFTs of those; then on the last inbox, a few
//! columns at a time, the FFTs along the outer axis. Nothing is normalised: forward and then inverse
//! multiplies by the number of grid points. Invariant: the source is only read, every element of it once, and
//! the target is written in contiguous lines.

use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex64;
use rustfft::{Fft, FftDirection, FftPlanner};

use super::columns::Columns;
use super::evolve::Decay;
use super::exchange::Producer;
use super::phases::{Clock, Phase};
use super::plan::Plan;
use super::prefetch::prefetch;
use super::transposition::{Pieces, Transposition};
use crate::buffer::Buffer;

/// Lines of a plane transformed together before they are turned: four cache lines of each column.
const LINES: usize = 16;
/// Columns of the inbox transformed together: 1 KiB of each row, and a batch that stays in a private cache of
/// 1 MiB to length 512.
const COLUMNS: usize = 64;

/// FFTs and working memory of one PE for one direction.
pub(super) struct Transform {
    plan: Plan,
    stages: Vec<Turn>,
    /// Along the turned rows, if they are whole lines.
    rows: Option<Arc<dyn Fft<f64>>>,
    outer: Arc<dyn Fft<f64>>,
    columns: Columns,
    /// The index in the last inbox at which the first row of each plane of the grid begins.
    planes: Vec<usize>,
    /// A turned plane, if its rows are not sent until all planes are turned: it stays in the cache until they
    /// are complete.
    turned: Buffer<Complex64>,
    scratch: Buffer<Complex64>,
}

/// The FFTs along the lines of a stage, and the buffer for some of them.
struct Turn {
    fft: Arc<dyn Fft<f64>>,
    lines: Columns,
}

/// The lines that a stage transforms.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Planes of lines, one after the other.
    Field(&'a [Complex64]),
    /// The same, of modes that decay first.
    Spectrum(&'a [Complex64], &'a Decay),
    /// The inbox of the stage before.
    Received(&'a [Complex64]),
}

/// One stage with its source, to be sent by `exchange`.
pub(super) struct Stage<'a, 'w> {
    pub(super) transform: &'a mut Transform,
    pub(super) number: usize,
    pub(super) source: Source<'a>,
    pub(super) clock: &'a Clock<'w>,
}

impl Transform {
    /// Plans the FFTs of `plan`.
    pub(super) fn new(plan: Plan, direction: FftDirection) -> Self {
        let mut planner = FftPlanner::new();
        let last = *plan.last();
        let outer = planner.plan_fft(plan.outer_len(), direction);
        let rows = plan.has_whole_rows().then(|| planner.plan_fft(last.row_len, direction));
        let stages: Vec<_> = plan
            .transpositions
            .iter()
            .map(|round| Turn {
                fft: planner.plan_fft(round.line_len(), direction),
                lines: Columns::new(round.line_len(), LINES),
            })
            .collect();
        let ffts = stages.iter().map(|stage| &stage.fft).chain(&rows).chain([&outer]);
        let scratch_len = ffts
            .flat_map(|fft| [fft.get_inplace_scratch_len(), fft.get_outofplace_scratch_len()])
            .max()
            .unwrap_or(0);
        let in_blocks = plan.transpositions.iter().filter(|round| round.pieces == Pieces::Blocks);
        let turned_len = in_blocks.map(Transposition::plane_len).max().unwrap_or(0);
        Transform {
            columns: Columns::new(plan.outer_len(), COLUMNS),
            planes: (0..plan.outer_len())
                .map(|outer| last.at(outer / last.planes, outer % last.planes, 0))
                .collect(),
            scratch: Buffer::new(scratch_len),
            turned: Buffer::new(turned_len),
            plan,
            stages,
            rows,
            outer,
        }
    }

    /// The plan of the 3-D FFT.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Completes the 3-D FFT: transforms what has arrived in the last inbox along the outer axis, to
    /// `target`.
    pub(super) fn finish(&mut self, inbox: &[Complex64], target: &mut [Complex64], clock: &Clock) {
        let last = *self.plan.last();
        for row in 0..last.rows {
            for (first, width) in batches(last.row_len, COLUMNS) {
                let start = last.at(0, 0, row) + first;
                self.columns.gather(width, inbox, |outer| self.planes[outer] + start);
                clock.lap(Phase::InMemoryTransfer);
                let is_last = first + width == last.row_len;
                let next = if is_last { last.at(0, 0, row + 1) } else { start + width };
                let mut runs = self.planes.iter().map(|plane| plane + next);
                let len = self.planes.len();
                for (column, line) in (first..).zip(self.columns.lines(width)) {
                    for run in runs.by_ref().take(len.div_ceil(width)) {
                        prefetch(inbox, run, COLUMNS);
                    }
                    let result = &mut target[self.plan.target(row, column)..][..len];
                    self.outer.process_outofplace_with_scratch(line, result, &mut self.scratch);
                }
                clock.computed(width, len);
                clock.lap(Phase::LocalFft);
            }
        }
    }
}

impl Stage<'_, '_> {
    /// Computes a plane and turns it: its rows are written one after the other, those for each member
    /// together.
    fn turn_rows(&mut self, plane: usize, turned: &mut [Complex64]) {
        let Transform { plan, stages, scratch, .. } = &mut *self.transform;
        let round = plan.transpositions[self.number];
        let Turn { fft, lines } = &mut stages[self.number];
        for (first, width) in batches(round.row_len, LINES) {
            for (number, line) in (first..).zip(lines.lines(width)) {
                self.source.read(plan, plane, number, line);
                self.source.prefetch(plan, plane, number + 1);
                fft.process_with_scratch(line, scratch);
            }
            self.clock.computed(width, round.line_len());
            self.clock.lap(Phase::LocalFft);
            lines.scatter(width, turned, |row| row * round.row_len + first);
            self.clock.lap(Phase::InMemoryTransfer);
        }
    }
}

impl Producer for Stage<'_, '_> {
    fn turn(&mut self, plane: usize, unit: &mut [Complex64]) {
        let round = self.transform.plan.transpositions[self.number];
        match round.pieces {
            Pieces::Pencils => self.turn_rows(plane, unit),
            Pieces::Slabs => {
                self.turn_rows(plane, unit);
                self.complete(unit);
            }
            Pieces::Blocks => {
                let mut turned = std::mem::take(&mut self.transform.turned);
                let rows = &mut turned[..round.plane_len()];
                self.turn_rows(plane, rows);
                self.complete(rows);
                for (rank, rows) in rows.chunks_exact(round.rows * round.row_len).enumerate() {
                    unit[round.at(rank, plane, 0)..][..rows.len()].copy_from_slice(rows);
                }
                self.transform.turned = turned;
                self.clock.lap(Phase::InMemoryTransfer);
            }
        }
    }

    fn complete(&mut self, rows: &mut [Complex64]) {
        let Transform { plan, rows: fft, scratch, .. } = &mut *self.transform;
        if let Some(fft) = fft {
            fft.process_with_scratch(rows, scratch);
            self.clock.computed(rows.len() / plan.last().row_len, plan.last().row_len);
            self.clock.lap(Phase::LocalFft);
        }
    }
}

impl Source<'_> {
    /// Reads line `number` of this PE's plane `plane`.
    fn read(&self, plan: &Plan, plane: usize, number: usize, line: &mut [Complex64]) {
        let first = &plan.transpositions[0];
        let stored = stored_line(first, plane, number);
        match *self {
            Source::Field(field) => line.copy_from_slice(&field[stored]),
            Source::Spectrum(modes, decay) => {
                let decay = decay.plane(plan.first_plane + plane);
                decay.apply(plan.first_line + number, &modes[stored], line);
            }
            Source::Received(inbox) => {
                for (rank, part) in line.chunks_exact_mut(first.row_len).enumerate() {
                    part.copy_from_slice(&inbox[first.at(rank, plane, number)..][..first.row_len]);
                }
            }
        }
    }

    /// Begins to fetch a line, which may be one behind the last.
    fn prefetch(&self, plan: &Plan, plane: usize, number: usize) {
        let first = &plan.transpositions[0];
        match *self {
            Source::Field(field) | Source::Spectrum(field, _) => {
                let stored = stored_line(first, plane, number);
                prefetch(field, stored.start, stored.len());
            }
            Source::Received(inbox) => {
                for rank in 0..first.team.count {
                    prefetch(inbox, first.at(rank, plane, number), first.row_len);
                }
            }
        }
    }
}

/// The place of line `number` of plane `plane` in a field.
fn stored_line(round: &Transposition, plane: usize, number: usize) -> Range<usize> {
    let start = (plane * round.row_len + number) * round.line_len();
    start..start + round.line_len()
}

/// The lines 0..`count` in batches: first line and number of each.
fn batches(count: usize, width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).step_by(width).map(move |first| (first, width.min(count - first)))
}

#[cfg(test)]
mod tests {
    use super::super::classes::Problem;
    use super::super::grid::Grid;
    use super::super::layout::Layout;
    use super::super::naive;
    use super::super::variant::Variant;
    use super::*;
    use pelago::prelude::*;

    /// A whole 3-D FFT on one PE, where staging buffer and inbox are one.
    fn on_one_pe(world: &World, mut transform: Transform, source: Source) -> Vec<Complex64> {
        let clock = Clock::start(world, 1.0);
        let rounds = transform.plan().transpositions.clone();
        let mut inboxes = vec![vec![Complex64::ZERO; rounds[0].planes * rounds[0].plane_len()]; rounds.len()];
        for (number, round) in rounds.iter().enumerate() {
            let (before, inbox) = inboxes.split_at_mut(number);
            let source = before.last().map_or(source, |received| Source::Received(received));
            let mut stage = Stage { transform: &mut transform, number, source, clock: &clock };
            for plane in 0..round.planes {
                let unit = plane / round.unit_planes();
                stage.turn(plane, &mut inbox[0][unit * round.unit_len()..][..round.unit_len()]);
            }
            if round.pieces == Pieces::Pencils {
                stage.complete(&mut inbox[0]);
            }
        }
        let mut target = vec![Complex64::ZERO; inboxes[0].len()];
        transform.finish(inboxes.last().unwrap(), &mut target, &clock);
        target
    }

    #[test]
    fn one_pe_transforms_like_the_definition() {
        for (nx, ny, nz) in [(8, 4, 2), (2, 8, 4), (70, 2, 3), (3, 2, 70), (2, 70, 3), (1, 1, 8)] {
            let problem = Problem { nx, ny, nz, iterations: 0 };
            let initial = naive::initial_field(&problem);
            let expected = naive::spectrum(&problem, &initial);
            let scaled: Vec<_> = initial.iter().map(|value| value * problem.points() as f64).collect();
            let one = Layout::new(problem, 1, 0).unwrap();
            let two = Layout::on_grid(problem, Grid { ty: 1, tz: 1 }, 0).unwrap();
            for (layout, variant) in [one, two].into_iter().flat_map(|layout| {
                Variant::of(layout.grid.is_some()).iter().map(move |&variant| (layout, variant))
            }) {
                let transformed = spmd(1, |world| {
                    let forward = Transform::new(layout.forward(variant), FftDirection::Forward);
                    let spectrum = on_one_pe(world, forward, Source::Field(&initial));
                    let inverse = Transform::new(layout.inverse(variant), FftDirection::Inverse);
                    let still = Decay::after(&problem, 0);
                    let field = on_one_pe(world, inverse, Source::Spectrum(&spectrum, &still));
                    (spectrum, field)
                });
                let (spectrum, field) = transformed.unwrap().remove(0);
                naive::assert_close(&spectrum, &expected);
                naive::assert_close(&field, &scaled);
            }
        }
    }

    #[test]
    fn batches_cover_every_line_once() {
        for count in [1, COLUMNS - 1, COLUMNS, COLUMNS + 1, 5 * COLUMNS] {
            let lines: Vec<_> =
                batches(count, COLUMNS).flat_map(|(first, width)| first..first + width).collect();
            assert_eq!(lines, (0..count).collect::<Vec<_>>());
        }
    }
}
