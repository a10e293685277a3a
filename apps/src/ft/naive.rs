//! The 3D DFT and one time step by their definitions, without regard to speed: the tests compare with them.
//! Fields are in storage order, x fastest; spectra as a single PE holds them, z fastest, then y, then x.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::classes::Problem;
use super::random::Random;

/// The initial field of the whole grid, stepped through one number after the other.
pub(super) fn initial_field(problem: &Problem) -> Vec<Complex64> {
    let mut random = Random::after(0);
    (0..problem.points()).map(|_| Complex64::new(random.next(), random.next())).collect()
}

/// The unnormalised forward transform of `field`.
pub(super) fn spectrum(problem: &Problem, field: &[Complex64]) -> Vec<Complex64> {
    let Problem { nx, ny, nz, .. } = *problem;
    let mut spectrum = vec![Complex64::ZERO; field.len()];
    for (kx, ky, kz) in grid(nx, ny, nz) {
        spectrum[(kx * ny + ky) * nz + kz] = grid(nz, ny, nx)
            .zip(field)
            .map(|((z, y, x), value)| value * wave(-1.0, [(kx * x, nx), (ky * y, ny), (kz * z, nz)]))
            .sum();
    }
    spectrum
}

/// The checksum after `steps` steps from a field whose spectrum is `spectrum`.
pub(super) fn checksum(problem: &Problem, spectrum: &[Complex64], steps: usize) -> Complex64 {
    let Problem { nx, ny, nz, .. } = *problem;
    let signed = |k: usize, n: usize| if 2 * k < n { k as f64 } else { k as f64 - n as f64 };
    let value_at = |x: usize, y: usize, z: usize| -> Complex64 {
        grid(nx, ny, nz)
            .zip(spectrum)
            .map(|((kx, ky, kz), mode)| {
                let squares = signed(kx, nx).powi(2) + signed(ky, ny).powi(2) + signed(kz, nz).powi(2);
                let decay = (-4e-6 * PI * PI * squares * steps as f64).exp();
                mode * decay * wave(1.0, [(kx * x, nx), (ky * y, ny), (kz * z, nz)])
            })
            .sum()
    };
    (1..=1024).map(|j| value_at(j % nx, 3 * j % ny, 5 * j % nz)).sum::<Complex64>() / problem.points() as f64
}

/// Panics unless the two are equal to rounding, relative to the largest element.
pub(super) fn assert_close(computed: &[Complex64], expected: &[Complex64]) {
    assert_eq!(computed.len(), expected.len());
    let scale = expected.iter().map(|value| value.norm()).fold(0.0, f64::max);
    for (index, (computed, expected)) in computed.iter().zip(expected).enumerate() {
        let error = (computed - expected).norm() / scale;
        assert!(error < 1e-12, "element {index}: {computed} instead of {expected}");
    }
}

/// All index triples, the last fastest.
fn grid(outer: usize, middle: usize, inner: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..outer).flat_map(move |a| (0..middle).flat_map(move |b| (0..inner).map(move |c| (a, b, c))))
}

/// exp(sign * 2 pi i * sum of product / length) over the axes.
fn wave(sign: f64, axes: [(usize, usize); 3]) -> Complex64 {
    let turns: f64 =
        axes.into_iter().map(|(product, length)| (product % length) as f64 / length as f64).sum();
    Complex64::cis(sign * 2.0 * PI * turns)
}
