//! The evolution in time: each Fourier mode of the heat equation du/dt = alpha * laplacian(u) decays on its
//! own, by exp(-4 alpha pi^2 |k|^2 t). The factor is a product of one factor an axis, so that three short
//! tables serve the whole grid. Invariant: the spectrum itself is never changed; step t decays it afresh from
//! time 0.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::classes::Problem;

const ALPHA: f64 = 1e-6;

/// The decay of all modes at one time.
pub(super) struct Decay {
    x: Vec<f64>,
    y: Vec<f64>,
    z: Vec<f64>,
}

impl Decay {
    /// The decay after `steps` time steps of length 1; none for 0.
    pub(super) fn after(problem: &Problem, steps: usize) -> Self {
        let axis = |n| (0..n).map(|index| factor(index, n, steps)).collect();
        Decay { x: axis(problem.nx), y: axis(problem.ny), z: axis(problem.nz) }
    }

    /// The decay of the modes with the index `x`.
    pub(super) fn plane(&self, x: usize) -> PlaneDecay<'_> {
        PlaneDecay { decay: self, x }
    }
}

/// The decay of the modes of one x-plane.
#[derive(Clone, Copy)]
pub(super) struct PlaneDecay<'a> {
    decay: &'a Decay,
    x: usize,
}

impl PlaneDecay<'_> {
    /// Writes the decayed modes of the line along z at `y` to `decayed`.
    pub(super) fn apply(&self, y: usize, modes: &[Complex64], decayed: &mut [Complex64]) {
        let PlaneDecay { decay, x } = *self;
        let factor_xy = decay.x[x] * decay.y[y];
        for ((decayed, mode), factor_z) in decayed.iter_mut().zip(modes).zip(&decay.z) {
            *decayed = mode * (factor_xy * factor_z);
        }
    }
}

/// One axis' part of the decay of mode `index` of `n`: modes from n / 2 on are the negative wave numbers.
fn factor(index: usize, n: usize, steps: usize) -> f64 {
    let wave_number = ((index + n / 2) % n) as f64 - (n / 2) as f64;
    (-4.0 * ALPHA * PI * PI * wave_number * wave_number * steps as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wave_numbers_fold_at_half_the_length() {
        let decay_of = |wave_number: f64| (-4.0 * ALPHA * PI * PI * wave_number * wave_number * 3.0).exp();
        let expected = [0.0, 1.0, 2.0, 3.0, -4.0, -3.0, -2.0, -1.0].map(decay_of);
        assert_eq!(std::array::from_fn(|index| factor(index, 8, 3)), expected);
    }

    #[test]
    fn a_line_decays_by_all_three_axes() {
        let problem = Problem { nx: 4, ny: 4, nz: 8, iterations: 1 };
        let modes = [Complex64::new(2.0, -3.0); 8];
        let mut decayed = [Complex64::ZERO; 8];
        Decay::after(&problem, 5).plane(3).apply(2, &modes, &mut decayed);
        for (z, value) in decayed.iter().enumerate() {
            let wave_z = if z < 4 { z as f64 } else { z as f64 - 8.0 };
            let expected = modes[z] * (-4.0 * ALPHA * PI * PI * (1.0 + 4.0 + wave_z * wave_z) * 5.0).exp();
            assert!((value - expected).norm() < 1e-14, "z = {z}: {value} instead of {expected}");
        }
    }

    #[test]
    fn nothing_decays_in_no_time() {
        let problem = Problem { nx: 2, ny: 2, nz: 4, iterations: 1 };
        let modes = [Complex64::new(0.5, 0.25); 4];
        let mut decayed = [Complex64::ZERO; 4];
        Decay::after(&problem, 0).plane(1).apply(1, &modes, &mut decayed);
        assert_eq!(decayed, modes);
    }
}
