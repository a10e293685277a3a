//! The local part of a 3D FFT: 1D FFTs along x and y on the planes that a PE owns, along z on the rows that
//! it owns of the spectrum, a plane or a row at a time, so that a variant can send each as soon as it is
//! done. Nothing is normalised: forward and then inverse multiplies by the number of grid points. Invariant:
//! a field under way is in the order of `Layout` when a function ends, so that packing and unpacking cost no
//! pass of their own.

use std::sync::Arc;

use num_complex::Complex64;
use rustfft::{Fft, FftDirection, FftPlanner};

use super::columns::{Columns, WIDTH};
use super::evolve::Decay;
use super::layout::Layout;
use super::phases::{Clock, Phase};

/// The 1D FFTs of one direction.
struct Axes {
    x: Arc<dyn Fft<f64>>,
    y: Arc<dyn Fft<f64>>,
    z: Arc<dyn Fft<f64>>,
}

/// Plans and working memory of one PE.
pub(super) struct Transform {
    layout: Layout,
    forward: Axes,
    inverse: Axes,
    y_columns: Columns,
    z_columns: Columns,
    scratch: Vec<Complex64>,
}

impl Transform {
    /// Plans all FFTs of `layout`.
    pub(super) fn new(layout: Layout) -> Self {
        let mut planner = FftPlanner::new();
        let mut axes = |direction| Axes {
            x: planner.plan_fft(layout.problem.nx, direction),
            y: planner.plan_fft(layout.problem.ny, direction),
            z: planner.plan_fft(layout.problem.nz, direction),
        };
        let (forward, inverse) = (axes(FftDirection::Forward), axes(FftDirection::Inverse));
        let scratch_len = [&forward, &inverse]
            .into_iter()
            .flat_map(|axes| [&axes.x, &axes.y, &axes.z])
            .map(|fft| fft.get_inplace_scratch_len())
            .max()
            .unwrap_or(0);
        Transform {
            layout,
            forward,
            inverse,
            y_columns: Columns::new(layout.problem.ny),
            z_columns: Columns::new(layout.problem.nz),
            scratch: vec![Complex64::ZERO; scratch_len],
        }
    }

    /// Transforms the own plane `plane` of `field` in place, along x and then y.
    pub(super) fn plane(
        &mut self,
        direction: FftDirection,
        plane: usize,
        field: &mut [Complex64],
        clock: &mut Clock,
    ) {
        let layout = self.layout;
        let axes = match direction {
            FftDirection::Forward => &self.forward,
            FftDirection::Inverse => &self.inverse,
        };
        for y in 0..layout.problem.ny {
            let row = &mut field[layout.spatial_row(plane, y)..][..layout.problem.nx];
            axes.x.process_with_scratch(row, &mut self.scratch);
        }
        clock.lap(Phase::LocalFft);
        for (x, width) in batches(layout.problem.nx) {
            self.y_columns.gather(width, field, |y| layout.spatial_row(plane, y) + x);
            clock.lap(Phase::InMemoryTransfer);
            self.y_columns.transform(width, &*axes.y, &mut self.scratch);
            clock.lap(Phase::LocalFft);
            self.y_columns.scatter(width, field, |y| layout.spatial_row(plane, y) + x);
            clock.lap(Phase::InMemoryTransfer);
        }
    }

    /// Forward along z: takes the own y-row `row` from `field`, all x, into the pencils of `spectrum`.
    pub(super) fn row_to_spectrum(
        &mut self,
        row: usize,
        field: &[Complex64],
        spectrum: &mut [Complex64],
        clock: &mut Clock,
    ) {
        let layout = self.layout;
        for (x, width) in batches(layout.problem.nx) {
            self.z_columns.gather(width, field, |z| layout.spectral_row(row, z) + x);
            clock.lap(Phase::InMemoryTransfer);
            self.z_columns.transform(width, &*self.forward.z, &mut self.scratch);
            clock.lap(Phase::LocalFft);
            let pencils = spectrum[layout.pencil(row, x)..].chunks_exact_mut(layout.problem.nz);
            for (pencil, line) in pencils.zip(self.z_columns.lines(width)) {
                pencil.copy_from_slice(line);
            }
            clock.lap(Phase::InMemoryTransfer);
        }
    }

    /// Inverse along z: takes the pencils of the own y-row `row`, decayed, from `spectrum` into `field`.
    pub(super) fn row_from_spectrum(
        &mut self,
        row: usize,
        spectrum: &[Complex64],
        decay: &Decay,
        field: &mut [Complex64],
        clock: &mut Clock,
    ) {
        let layout = self.layout;
        let y = layout.me * layout.rows + row;
        for (x, width) in batches(layout.problem.nx) {
            let pencils = spectrum[layout.pencil(row, x)..].chunks_exact(layout.problem.nz);
            for (column, (pencil, line)) in pencils.zip(self.z_columns.lines(width)).enumerate() {
                decay.apply(x + column, y, pencil, line);
            }
            clock.lap(Phase::Other);
            self.z_columns.transform(width, &*self.inverse.z, &mut self.scratch);
            clock.lap(Phase::LocalFft);
            self.z_columns.scatter(width, field, |z| layout.spectral_row(row, z) + x);
            clock.lap(Phase::InMemoryTransfer);
        }
    }
}

/// The columns 0..`count` in batches: first column and width of each.
fn batches(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).step_by(WIDTH).map(move |first| (first, WIDTH.min(count - first)))
}

#[cfg(test)]
mod tests {
    use super::super::classes::Problem;
    use super::super::naive;
    use super::*;

    #[test]
    fn one_pe_transforms_like_the_definition() {
        for (nx, ny, nz) in [(8, 4, 2), (2, 8, 4), (40, 2, 3), (1, 1, 8)] {
            let problem = Problem { nx, ny, nz, iterations: 0 };
            let layout = Layout::new(problem, 1, 0).unwrap();
            let initial = naive::initial_field(&problem);
            let mut transform = Transform::new(layout);
            let mut clock = Clock::start();
            let (mut field, mut spectrum) = (initial.clone(), vec![Complex64::ZERO; layout.len()]);
            for plane in 0..nz {
                transform.plane(FftDirection::Forward, plane, &mut field, &mut clock);
            }
            for row in 0..ny {
                transform.row_to_spectrum(row, &field, &mut spectrum, &mut clock);
            }
            naive::assert_close(&spectrum, &naive::spectrum(&problem, &initial));
            for row in 0..ny {
                transform.row_from_spectrum(
                    row,
                    &spectrum,
                    &Decay::after(&problem, 0),
                    &mut field,
                    &mut clock,
                );
            }
            for plane in 0..nz {
                transform.plane(FftDirection::Inverse, plane, &mut field, &mut clock);
            }
            let scaled: Vec<_> = initial.iter().map(|value| value * problem.points() as f64).collect();
            naive::assert_close(&field, &scaled);
        }
    }

    #[test]
    fn batches_cover_every_column_once() {
        for count in [1, WIDTH - 1, WIDTH, WIDTH + 1, 5 * WIDTH] {
            let columns: Vec<_> = batches(count).flat_map(|(first, width)| first..first + width).collect();
            assert_eq!(columns, (0..count).collect::<Vec<_>>());
        }
    }
}
