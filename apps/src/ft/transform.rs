//! The local part of a 3D FFT, in two passes over memory: on each plane of this PE the FFTs along its rows
//! and, in the cache, across them; then on the inbox, a few columns at a time, those along the outer axis.
//! Nothing is normalised: forward and then inverse multiplies by the number of grid points. Invariant: the
//! source is only read, every element of it once, and the target is written in contiguous lines.

use std::sync::Arc;

use num_complex::Complex64;
use rustfft::{Fft, FftDirection, FftPlanner};

use super::columns::Columns;
use super::evolve::Decay;
use super::phases::{Clock, Phase};
use super::prefetch::prefetch;
use super::transposition::Transposition;
use crate::buffer::Buffer;

/// Rows of a plane transformed together before they are turned: four cache lines of each column.
const ROWS: usize = 16;
/// Columns of the inbox transformed together: 1 KiB of each row, and a batch that stays in a private cache of
/// 1 MiB to length 512.
const COLUMNS: usize = 64;

/// Plans and working memory of one PE for one direction.
pub(super) struct Transform {
    way: Transposition,
    inner: Arc<dyn Fft<f64>>,
    middle: Arc<dyn Fft<f64>>,
    outer: Arc<dyn Fft<f64>>,
    rows: Columns,
    columns: Columns,
    scratch: Buffer<Complex64>,
}

impl Transform {
    /// Plans the FFTs of `way`.
    pub(super) fn new(way: Transposition, direction: FftDirection) -> Self {
        let mut planner = FftPlanner::new();
        let [inner, middle, outer] =
            [way.inner, way.middle, way.outer].map(|len| planner.plan_fft(len, direction));
        let scratch_len = [&inner, &middle, &outer]
            .into_iter()
            .flat_map(|fft| [fft.get_inplace_scratch_len(), fft.get_outofplace_scratch_len()])
            .max()
            .unwrap_or(0);
        let (rows, columns) = (Columns::new(way.inner, ROWS), Columns::new(way.outer, COLUMNS));
        Transform { way, inner, middle, outer, rows, columns, scratch: Buffer::new(scratch_len) }
    }

    /// The transposition of the 3D FFT across the PEs.
    pub(super) fn way(&self) -> Transposition {
        self.way
    }

    /// Transforms this PE's plane `plane` of `source` along its rows and transposes it: column `i` becomes
    /// the row at `turned[place(i)..]`. If requested, the modes decay first.
    pub(super) fn inner(
        &mut self,
        plane: usize,
        source: &[Complex64],
        decay: Option<&Decay>,
        turned: &mut [Complex64],
        place: impl Fn(usize) -> usize,
        clock: &mut Clock,
    ) {
        let Transposition { inner, middle, .. } = self.way;
        let decay = decay.map(|decay| decay.plane(self.way.me * self.way.planes() + plane));
        let source = &source[plane * self.way.plane_len()..][..self.way.plane_len()];
        for (first, width) in batches(middle, ROWS) {
            let rows = source[first * inner..].chunks_exact(inner);
            for ((number, row), line) in (first..).zip(rows).zip(self.rows.lines(width)) {
                match decay {
                    Some(decay) => decay.apply(number, row, line),
                    None => line.copy_from_slice(row),
                }
                self.inner.process_with_scratch(line, &mut self.scratch);
            }
            clock.computed(width, inner);
            clock.lap(Phase::LocalFft);
            self.rows.scatter(width, turned, |index| place(index) + first);
            clock.lap(Phase::InMemoryTransfer);
        }
    }

    /// Transforms whole rows of a turned plane, along the middle axis.
    pub(super) fn middle(&mut self, rows: &mut [Complex64], clock: &mut Clock) {
        self.middle.process_with_scratch(rows, &mut self.scratch);
        clock.computed(rows.len() / self.way.middle, self.way.middle);
        clock.lap(Phase::LocalFft);
    }

    /// Transforms this PE's row `row` of all planes along the outer axis: from the inbox to `target`, where
    /// it becomes one plane.
    pub(super) fn outer(
        &mut self,
        row: usize,
        inbox: &[Complex64],
        target: &mut [Complex64],
        clock: &mut Clock,
    ) {
        let way = self.way;
        let plane = &mut target[row * way.middle * way.outer..][..way.middle * way.outer];
        for (first, width) in batches(way.middle, COLUMNS) {
            self.columns.gather(width, inbox, |outer| way.received(outer, row) + first);
            clock.lap(Phase::InMemoryTransfer);
            let next = row * way.middle + first + width;
            let mut runs = (0..way.outer).map(|outer| way.received(outer, 0) + next);
            let results = plane[first * way.outer..].chunks_exact_mut(way.outer);
            for (line, result) in self.columns.lines(width).zip(results) {
                for run in runs.by_ref().take(way.outer.div_ceil(width)) {
                    prefetch(inbox, run, COLUMNS);
                }
                self.outer.process_outofplace_with_scratch(line, result, &mut self.scratch);
            }
            clock.computed(width, way.outer);
            clock.lap(Phase::LocalFft);
        }
    }
}

/// The lines 0..`count` in batches: first line and number of each.
fn batches(count: usize, width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).step_by(width).map(move |first| (first, width.min(count - first)))
}

#[cfg(test)]
mod tests {
    use super::super::classes::Problem;
    use super::super::layout::Layout;
    use pelago::prelude::*;

    use super::super::naive;
    use super::*;

    /// A whole 3D FFT on one PE, whose inbox needs no transfer.
    fn on_one_pe(
        world: &World,
        mut transform: Transform,
        source: &[Complex64],
        decay: Option<&Decay>,
    ) -> Vec<Complex64> {
        let (way, mut clock) = (transform.way(), Clock::start(world, 1.0));
        let (mut inbox, mut target) =
            (vec![Complex64::ZERO; source.len()], vec![Complex64::ZERO; source.len()]);
        for plane in 0..way.planes() {
            let place = |row| way.received(plane, row);
            transform.inner(plane, source, decay, &mut inbox, place, &mut clock);
        }
        transform.middle(&mut inbox, &mut clock);
        for row in 0..way.rows() {
            transform.outer(row, &inbox, &mut target, &mut clock);
        }
        target
    }

    #[test]
    fn one_pe_transforms_like_the_definition() {
        for (nx, ny, nz) in [(8, 4, 2), (2, 8, 4), (70, 2, 3), (3, 2, 70), (2, 70, 3), (1, 1, 8)] {
            let problem = Problem { nx, ny, nz, iterations: 0 };
            let layout = Layout::new(problem, 1, 0).unwrap();
            let initial = naive::initial_field(&problem);
            let transformed = spmd(1, |world| {
                let forward = Transform::new(layout.forward(), FftDirection::Forward);
                let spectrum = on_one_pe(world, forward, &initial, None);
                let inverse = Transform::new(layout.inverse(), FftDirection::Inverse);
                let still = Decay::after(&problem, 0);
                let field = on_one_pe(world, inverse, &spectrum, Some(&still));
                (spectrum, field)
            });
            let (spectrum, field) = transformed.unwrap().remove(0);
            naive::assert_close(&spectrum, &naive::spectrum(&problem, &initial));
            let scaled: Vec<_> = initial.iter().map(|value| value * problem.points() as f64).collect();
            naive::assert_close(&field, &scaled);
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
