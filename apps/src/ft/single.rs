//! One forward 3D FFT, timed alone and checked: for comparison with other libraries. Its field is the initial
//! one of NAS FT, so that any program can compute the same. Invariant: a transform is reported as verified
//! only if it agrees with the definition of the DFT at a few modes, and by Parseval's theorem in all of them
//! together.

use std::f64::consts::PI;
use std::fmt;

use num_complex::Complex64;
use pelago::Result;
use pelago::prelude::*;
use serde::Serialize;

use super::checksum::points;
use super::classes::Problem;
use super::layout::Layout;
use super::random::Random;
use super::solver::{Run, Solver};
use crate::choice::Named;
use crate::collect::collect;

/// The largest deviation that verifies, relative to the root mean square of the spectrum.
const TOLERANCE: f64 = 1e-11;
/// The modes compared with the definition, as fractions of the axes.
const MODES: [[f64; 3]; 3] = [[0.0, 0.7, 0.2], [0.37, 0.81, 0.13], [0.5, 0.03, 0.96]];

/// The grid with the name `name`: three lengths with an x between them.
pub(super) fn grid_from_name(name: &str) -> Result<Problem, String> {
    let lengths: Vec<_> = name.split('x').map(|length| length.parse().unwrap_or(0usize)).collect();
    match *lengths {
        [nx, ny, nz] if lengths.iter().all(|length| (1..=1 << 16).contains(length)) => {
            Ok(Problem { nx, ny, nz, iterations: 0 })
        }
        _ => Err("a grid is three lengths from 1 to 65536, as 256x256x128".to_owned()),
    }
}

/// The results of the transforms of one grid; the same on every PE.
#[derive(Debug, Serialize)]
pub(super) struct Single {
    app: &'static str,
    grid: String,
    variant: &'static str,
    transport: &'static str,
    process_grid: Option<String>,
    pes: usize,
    verified: bool,
    /// The time of the slowest PE in each repetition.
    seconds: Vec<f64>,
    /// The mean of the 1024 modes that step through the spectrum as the points of NAS FT's checksum do.
    checksum: [f64; 2],
    /// From the definition and from Parseval's theorem, relative to the root mean square of the spectrum.
    deviation: f64,
}

impl Single {
    /// Collective: transforms the initial field of `layout` once untimed, then `repeats` times.
    ///
    /// # Errors
    /// If the symmetric heap has not enough memory.
    pub(super) fn measure(world: &World, layout: Layout, run: Run, repeats: usize) -> Result<Self> {
        let mut solver = Solver::new(world, layout, run)?;
        let mut times = Vec::with_capacity(repeats);
        for repeat in 0..=repeats {
            solver.initialise();
            world.barrier();
            solver.clock().restart();
            solver.forward()?;
            if repeat > 0 {
                times.push(solver.clock().seconds().iter().sum::<f64>());
            }
        }
        let times = collect(world, &times)?;
        let slowest = |repeat: usize| times.iter().map(|times| times[repeat]).fold(0.0, f64::max);
        let Sums { checksum, deviation } = Sums::of(world, &layout, &solver.spectrum)?;
        Ok(Single {
            app: super::NAME,
            grid: layout.problem.to_string(),
            variant: run.variant.name(),
            transport: run.transport.name(),
            process_grid: layout.grid.map(|grid| grid.to_string()),
            pes: layout.pes,
            verified: deviation <= TOLERANCE,
            seconds: (0..repeats).map(slowest).collect(),
            checksum: [checksum.re, checksum.im],
            deviation,
        })
    }

    /// Whether the transform is correct.
    pub(super) fn verified(&self) -> bool {
        self.verified
    }
}

impl fmt::Display for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let best = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let verdict = if self.verified { "VERIFIED" } else { "NOT VERIFIED" };
        let Single { grid, variant, transport, pes, deviation, .. } = self;
        let processes = self.process_grid.as_ref().map(|grid| format!(", process grid {grid}"));
        let processes = processes.unwrap_or_default();
        writeln!(f, "3D FFT of {grid}; variant {variant}, {transport}; number of PEs {pes}{processes}")?;
        writeln!(f, "best of {:<12}  {best:.6} s", self.seconds.len())?;
        writeln!(f, "deviation             {deviation:.1e} of the spectrum's root mean square")?;
        writeln!(f, "Verification: {verdict}")
    }
}

/// The sums over all PEs' parts of field and spectrum.
struct Sums {
    checksum: Complex64,
    deviation: f64,
}

impl Sums {
    /// Collective: sums up this PE's part of the spectrum, and the values that follow from the initial field.
    fn of(world: &World, layout: &Layout, spectrum: &[Complex64]) -> Result<Sums> {
        let Problem { nx, ny, nz, .. } = layout.problem;
        let own = |mode| layout.spectral_index(mode).map_or(Complex64::ZERO, |index| spectrum[index]);
        let norm: f64 = spectrum.iter().map(Complex64::norm_sqr).sum();
        let checksum = points(&layout.problem).map(own).sum::<Complex64>();
        let modes = MODES.map(|fractions| {
            let index = |axis: usize, length: usize| (fractions[axis] * length as f64) as usize;
            [index(0, nx), index(1, ny), index(2, nz)]
        });
        let (defined, field_norm) = defined(layout, modes);
        let mut sums = vec![checksum, Complex64::new(norm, field_norm)];
        sums.extend(modes.map(own));
        sums.extend(defined);
        let parts = collect(world, &sums)?;
        let total = |place: usize| parts.iter().map(|part| part[place]).sum::<Complex64>();
        let (norm, field_norm) = (total(1).re, total(1).im);
        let root_mean_square = field_norm.sqrt();
        let parseval = (norm / (field_norm * layout.problem.points() as f64) - 1.0).abs();
        let deviation = (0..MODES.len())
            .map(|mode| (total(2 + mode) - total(2 + MODES.len() + mode)).norm() / root_mean_square)
            .fold(parseval, |largest, next| if next > largest || next.is_nan() { next } else { largest });
        Ok(Sums { checksum: total(0) / 1024.0, deviation })
    }
}

/// This PE's part of the modes of the initial field by definition, and of the square of the field's norm.
fn defined(layout: &Layout, modes: [[usize; 3]; MODES.len()]) -> ([Complex64; MODES.len()], f64) {
    let Problem { nx, ny, nz, .. } = layout.problem;
    let wave = |mode: usize, index: usize, length: usize| {
        Complex64::cis(-2.0 * PI * (mode * index % length) as f64 / length as f64)
    };
    let waves_x = modes.map(|mode| (0..nx).map(|x| wave(mode[0], x, nx)).collect::<Vec<_>>());
    let (mut sums, mut norm) = ([Complex64::ZERO; MODES.len()], 0.0);
    let mut row = vec![Complex64::ZERO; nx];
    let [_, ys, zs] = layout.spatial();
    for z in zs {
        let mut random = Random::after(2 * (nx * (ny * z + ys.start)) as u64);
        for y in ys.clone() {
            random.fill(&mut row);
            norm += row.iter().map(Complex64::norm_sqr).sum::<f64>();
            for ((sum, mode), waves_x) in sums.iter_mut().zip(modes).zip(&waves_x) {
                let along_x: Complex64 = row.iter().zip(waves_x).map(|(value, wave)| value * wave).sum();
                *sum += along_x * wave(mode[1], y, ny) * wave(mode[2], z, nz);
            }
        }
    }
    (sums, norm)
}

#[cfg(test)]
mod tests {
    use super::super::grid::GridChoice;
    use super::super::naive;
    use super::super::transport::Transport;
    use super::super::variant::Variant;
    use super::*;

    const GRID: Problem = Problem { nx: 8, ny: 4, nz: 16, iterations: 0 };

    /// Every variant over every transport.
    fn cases() -> impl Iterator<Item = (Variant, Transport, Option<GridChoice>)> {
        [None, Some(GridChoice::Auto)].into_iter().flat_map(|choice| {
            let variants = Variant::of(choice.is_some()).iter();
            variants.flat_map(move |&variant| {
                Transport::ALL.iter().map(move |&transport| (variant, transport, choice))
            })
        })
    }

    #[test]
    fn every_variant_transforms_rightly_and_gives_one_checksum() {
        let spectrum = naive::spectrum(&GRID, &naive::initial_field(&GRID));
        let expected =
            points(&GRID).map(|[x, y, z]| spectrum[(x * 4 + y) * 16 + z]).sum::<Complex64>() / 1024.0;
        for (case, pes) in cases().flat_map(|case| [1, 2, 8].map(|pes| (case, pes))) {
            let (variant, transport, choice) = case;
            let singles = spmd(pes, |world| {
                let layout = Layout::chosen(GRID, pes, world.my_pe(), choice).unwrap();
                Single::measure(world, layout, Run { variant, transport, simulated_gflops: 1.0 }, 3).unwrap()
            });
            for single in singles.unwrap() {
                assert!(single.verified() && single.seconds.len() == 3, "{single:?}");
                naive::assert_close(&[Complex64::from(single.checksum[0]).re.into()], &[expected.re.into()]);
                naive::assert_close(&[single.checksum[1].into()], &[expected.im.into()]);
                assert!(single.to_string().ends_with("Verification: VERIFIED\n"));
            }
        }
    }

    #[test]
    fn a_wrong_spectrum_deviates() {
        spmd(1, |world| {
            let layout = Layout::new(GRID, 1, 0).unwrap();
            let right = naive::spectrum(&GRID, &naive::initial_field(&GRID));
            let deviation = |spectrum: &[Complex64]| Sums::of(world, &layout, spectrum).unwrap().deviation;
            assert!(deviation(&right) <= TOLERANCE);
            let mut turned = right.clone();
            turned.iter_mut().for_each(|mode| *mode *= Complex64::I);
            let mut smaller = right.clone();
            smaller[77] *= 0.9;
            let mut spoilt = right.clone();
            spoilt[0] = f64::NAN.into();
            for wrong in [turned, smaller, spoilt] {
                let deviation = deviation(&wrong);
                assert!(deviation.is_nan() || deviation > 1e-6, "{deviation}");
            }
        })
        .unwrap();
    }

    #[test]
    fn grids_have_three_lengths() {
        assert_eq!(grid_from_name("8x4x16"), Ok(GRID));
        for name in ["", "8", "8x4", "8x4x", "8x4x16x2", "0x4x4", "-1x4x4", "8x4x70000", "axbxc"] {
            assert!(grid_from_name(name).is_err(), "{name}");
        }
    }
}
