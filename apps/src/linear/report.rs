//! The report of a run of dense linear algebra: lines for people, one JSON object for programs. Invariant:
//! both forms are written from the same `Report`, which is verified only if the residual is within its bound.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::kernel::Kernel;
use super::layout::Layout;
use super::speed::Speed;
use crate::report::verdict;

/// An application: its name, the algorithm, and the bound of its residual, for people.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) app: &'static str,
    pub(crate) algorithm: &'static str,
    pub(crate) bound: &'static str,
}

/// How a run moved its data: by name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    Variant(&'static str),
    Transport(&'static str),
}

/// A number that is the same for every correct run of the same matrices.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fingerprint {
    /// The sum of the absolute values of C x.
    Checksum(f64),
    LogDeterminant(f64),
}

/// The outcome of a run.
pub(crate) struct Outcome<'a> {
    pub(crate) way: Way,
    pub(crate) kernel: Kernel,
    /// The floating-point operations of a repetition, and the times of all.
    pub(crate) operations: f64,
    pub(crate) times: &'a [Duration],
    pub(crate) residual: f64,
    pub(crate) fingerprint: Fingerprint,
}

/// A run, as PE 0 reports it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    app: &'static str,
    #[serde(skip)]
    subject: &'static Subject,
    #[serde(flatten)]
    way: Way,
    kernel: &'static str,
    n: usize,
    block: usize,
    grid: String,
    pes: usize,
    #[serde(flatten)]
    speed: Speed,
    /// The largest difference that the check has found, as a part of its bound.
    residual: f64,
    #[serde(flatten)]
    fingerprint: Fingerprint,
    pub(crate) verified: bool,
}

impl Report {
    pub(crate) fn new(subject: &'static Subject, layout: &Layout, outcome: Outcome<'_>) -> Self {
        let Outcome { way, kernel, operations, times, residual, fingerprint } = outcome;
        Report {
            app: subject.app,
            subject,
            way,
            kernel: kernel.name(),
            n: layout.n,
            block: layout.block,
            grid: layout.grid.to_string(),
            pes: layout.grid.pes(),
            speed: Speed::new(operations, times),
            residual,
            fingerprint,
            verified: residual <= 1.0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { subject, kernel, n, block, grid, pes, speed, residual, .. } = self;
        let (Way::Variant(way) | Way::Transport(way)) = self.way;
        let algorithm = subject.algorithm;
        writeln!(
            f,
            "{algorithm}, {way}: order {n}, blocks of {block}, a grid of {grid} PEs ({pes}), kernel {kernel}"
        )?;
        write!(f, "{speed}")?;
        writeln!(f, "{:<20}  {residual:.1e} of its bound, {}", "residual", subject.bound)?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::grid::Grid;

    const SUBJECT: Subject = Subject { app: "matmul", algorithm: "SUMMA", bound: "4 (n + 1) u |A| |B| |x|" };

    fn report(way: Way, fingerprint: Fingerprint, residual: f64) -> Report {
        let layout = Layout::new(1000, 64, Grid { rows: 2, columns: 3 }, 0);
        let (times, operations) = ([4, 2, 8].map(Duration::from_millis), 2e9);
        let outcome = Outcome { way, kernel: Kernel::Rust, operations, times: &times, residual, fingerprint };
        Report::new(&SUBJECT, &layout, outcome)
    }

    fn product(residual: f64) -> Report {
        report(Way::Variant("prefetch"), Fingerprint::Checksum(5.0), residual)
    }

    #[test]
    fn the_page_names_problem_speed_and_verdict() {
        let page = product(0.25).to_string();
        for part in [
            "SUMMA, prefetch: order 1000, blocks of 64, a grid of 2x3 PEs (6), kernel rust",
            "best of 3             0.002000 s    1000.00 GFlop/s",
            "median                0.004000 s     500.00 GFlop/s",
            "residual              2.5e-1 of its bound, 4 (n + 1) u |A| |B| |x|",
        ] {
            assert!(page.contains(part), "`{part}` is not in:\n{page}");
        }
        assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
        assert!(product(1.5).to_string().ends_with("\nVerification: NOT VERIFIED\n"));
    }

    #[test]
    fn a_residual_above_its_bound_or_no_number_is_not_verified() {
        for (residual, verified) in [(0.0, true), (1.0, true), (1.01, false), (f64::NAN, false)] {
            assert_eq!(product(residual).verified, verified, "{residual}");
        }
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = serde_json::to_string(&product(0.25)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (field, expected) in [("n", 1000), ("block", 64), ("pes", 6)] {
            assert_eq!(value[field], expected, "{field} of {line}");
        }
        assert_eq!((&value["grid"], &value["verified"]), (&"2x3".into(), &true.into()));
        assert_eq!((&value["variant"], &value["checksum"]), (&"prefetch".into(), &5.0.into()));
        assert_eq!(value["seconds"], serde_json::json!([0.004, 0.002, 0.008]));
        assert_eq!(value["gflops"], 500.0);
        let other = report(Way::Transport("one-sided"), Fingerprint::LogDeterminant(5.0), 0.25);
        let value = serde_json::to_value(other).unwrap();
        assert_eq!((&value["transport"], &value["log_determinant"]), (&"one-sided".into(), &5.0.into()));
    }
}
