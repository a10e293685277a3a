//! The problem classes of NAS FT: grid, iterations and reference checksums of each. Source: NPB 3.4,
//! `setparams.c` and `ft_data.f90`. Invariant: every class has one reference checksum an iteration.

use std::fmt;

use super::reference::{self, Reference};

/// A periodic grid, x fastest in storage, and the number of time steps to take on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) nx: usize,
    pub(super) ny: usize,
    pub(super) nz: usize,
    pub(super) iterations: usize,
}

impl Problem {
    /// Grid points, that is complex elements of one field.
    pub(super) fn points(&self) -> usize {
        self.nx * self.ny * self.nz
    }

    /// Millions of operations a second by NASA's count, for a run of `seconds`.
    pub(super) fn mops(&self, seconds: f64) -> f64 {
        let points = self.points() as f64;
        let log_points = points.ln();
        let operations_per_point =
            14.8157 + 7.19641 * log_points + (5.23518 + 7.21113 * log_points) * self.iterations as f64;
        1e-6 * points * operations_per_point / seconds
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} x {}", self.nx, self.ny, self.nz)
    }
}

/// One of the official problem sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) problem: Problem,
    pub(super) reference: &'static [Reference],
}

/// All classes, smallest first.
pub(super) const CLASSES: [Class; 8] = [
    class("S", [64, 64, 64], &reference::CLASS_S),
    class("W", [128, 128, 32], &reference::CLASS_W),
    class("A", [256, 256, 128], &reference::CLASS_A),
    class("B", [512, 256, 256], &reference::CLASS_B),
    class("C", [512, 512, 512], &reference::CLASS_C),
    class("D", [2048, 1024, 1024], &reference::CLASS_D),
    class("E", [4096, 2048, 2048], &reference::CLASS_E),
    class("F", [8192, 4096, 4096], &reference::CLASS_F),
];

const fn class(name: &'static str, [nx, ny, nz]: [usize; 3], reference: &'static [Reference]) -> Class {
    Class { name, problem: Problem { nx, ny, nz, iterations: reference.len() }, reference }
}

impl Class {
    /// The class `name`, without regard to letter case; else a message that lists all classes and proposes
    /// the nearest.
    pub(super) fn from_name(name: &str) -> Result<Self, String> {
        CLASSES.into_iter().find(|class| class.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names = CLASSES.map(|class| class.name);
            let nearest = crate::nearest(name, names).unwrap_or_default();
            format!("no such class; the classes are {}; did you mean {nearest}?", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_those_of_nasa() {
        let iterations: Vec<_> = CLASSES.iter().map(|class| class.problem.iterations).collect();
        assert_eq!(iterations, [6, 6, 6, 20, 20, 25, 25, 25]);
    }

    #[test]
    fn nominal_work_of_the_classes() {
        for (name, gigaflops) in [("S", 0.1772), ("W", 0.3727), ("A", 7.1364), ("B", 92.054), ("C", 396.39)] {
            let mops = Class::from_name(name).unwrap().problem.mops(1.0);
            assert!((mops / 1e3 / gigaflops - 1.0).abs() < 1e-3, "class {name}: {mops} Mop");
        }
    }

    #[test]
    fn names_are_found_in_either_case_or_corrected() {
        assert_eq!(Class::from_name("w").unwrap().name, "W");
        let message = Class::from_name("AA").unwrap_err();
        assert!(message.contains("S, W, A, B, C, D, E, F") && message.contains("mean A?"), "{message}");
    }
}
