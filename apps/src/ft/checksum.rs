//! The checksum of an iteration: the mean of 1024 points of the field that step through the grid by 1, 3 and
//! 5, and its comparison with the reference. Source: NAS-95-020, section 2.7.

use num_complex::Complex64;

use super::classes::Problem;
use super::layout::Layout;
use super::reference::Reference;

/// The largest relative deviation that verifies.
pub(super) const TOLERANCE: f64 = 1e-12;
const POINTS: usize = 1024;

/// The part of the checksum from this PE's planes of `field`; the parts of all PEs add up to it.
pub(super) fn partial(layout: &Layout, field: &[Complex64]) -> Complex64 {
    let problem = &layout.problem;
    let mut sum = Complex64::ZERO;
    for index in points(problem).filter_map(|point| layout.spatial_index(point)) {
        sum += field[index];
    }
    sum / problem.points() as f64
}

/// The points of the checksum: x, y and z of each.
pub(super) fn points(problem: &Problem) -> impl Iterator<Item = [usize; 3]> {
    let Problem { nx, ny, nz, .. } = *problem;
    (1..=POINTS).map(move |point| [point % nx, 3 * point % ny, 5 * point % nz])
}

/// The deviation of `computed` from the reference, relative to it.
pub(super) fn deviation(computed: Complex64, (real, imaginary): Reference) -> f64 {
    let reference = Complex64::new(real, imaginary);
    (computed - reference).norm() / reference.norm()
}

/// Whether every iteration has a checksum within the tolerance of its reference; NaN never is.
pub(super) fn verified(computed: &[Complex64], reference: &[Reference]) -> bool {
    computed.len() == reference.len()
        && computed.iter().zip(reference).all(|(&sum, &reference)| deviation(sum, reference) <= TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::super::grid::GridChoice;
    use super::*;

    #[test]
    fn parts_add_up_to_the_mean_of_the_points() {
        let problem = Problem { nx: 8, ny: 4, nz: 16, iterations: 1 };
        let value = |x: usize, y: usize, z: usize| Complex64::new((x + 10 * y) as f64, z as f64);
        let expected: Complex64 =
            (1..=1024).map(|j| value(j % 8, 3 * j % 4, 5 * j % 16)).sum::<Complex64>() / 512.0;
        for (pes, is_2d) in [1, 2, 4, 8].into_iter().flat_map(|pes| [(pes, false), (pes, true)]) {
            let parts = (0..pes).map(|me| {
                let choice = is_2d.then_some(GridChoice::Auto);
                let layout = Layout::chosen(problem, pes, me, choice).unwrap();
                let mut field = vec![Complex64::ZERO; layout.len()];
                for [x, y, z] in (0..512).map(|i| [i % 8, i / 8 % 4, i / 32]) {
                    if let Some(index) = layout.spatial_index([x, y, z]) {
                        field[index] = value(x, y, z);
                    }
                }
                partial(&layout, &field)
            });
            assert!((parts.sum::<Complex64>() - expected).norm() < 1e-12, "{pes} PEs");
        }
    }

    #[test]
    fn only_close_and_complete_checksums_verify() {
        let reference = [(3.0, 4.0), (6.0, 8.0)];
        let exact = [Complex64::new(3.0, 4.0), Complex64::new(6.0, 8.0)];
        assert!(verified(&exact, &reference));
        assert!(!verified(&exact[..1], &reference));
        assert!(!verified(&[exact[0], exact[1] * (1.0 + 3e-12)], &reference));
        assert!(!verified(&[Complex64::new(f64::NAN, 4.0), exact[1]], &reference));
        assert!(!verified(&[Complex64::new(3.0, f64::NAN), exact[1]], &reference));
    }
}
