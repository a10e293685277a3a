//! The report of a run: lines for people, one JSON object for programs. Invariant: both forms are written
//! from the same `Report`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::variant::Variant;
use super::verify::Check;
use crate::choice::Named;
use crate::linear::kernel::Kernel;
use crate::linear::layout::Layout;
use crate::linear::speed::Speed;
use crate::report::verdict;

/// A run, as PE 0 reports it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    app: &'static str,
    variant: &'static str,
    kernel: &'static str,
    n: usize,
    block: usize,
    grid: String,
    pes: usize,
    #[serde(flatten)]
    speed: Speed,
    /// The largest difference that the check has found, as a part of its bound.
    residual: f64,
    /// The sum of the absolute values of C x.
    checksum: f64,
    pub(super) verified: bool,
}

impl Report {
    pub(super) fn new(
        layout: &Layout,
        (variant, kernel): (Variant, Kernel),
        times: &[Duration],
        Check { residual, checksum }: Check,
    ) -> Self {
        let n = layout.n as f64;
        Report {
            app: super::NAME,
            variant: variant.name(),
            kernel: kernel.name(),
            n: layout.n,
            block: layout.block,
            grid: layout.grid.to_string(),
            pes: layout.grid.pes(),
            speed: Speed::new(2.0 * n * n * n, times),
            residual,
            checksum,
            verified: residual <= 1.0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { variant, kernel, n, block, grid, pes, speed, residual, .. } = self;
        writeln!(
            f,
            "SUMMA, {variant}: order {n}, blocks of {block}, a grid of {grid} PEs ({pes}), kernel {kernel}"
        )?;
        write!(f, "{speed}")?;
        writeln!(f, "{:<20}  {residual:.1e} of its bound, 4 (n + 1) u |A| |B| |x|", "residual")?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::grid::Grid;

    fn report(residual: f64) -> Report {
        let layout = Layout::new(1000, 64, Grid { rows: 2, columns: 3 }, 0);
        let times = [4, 2, 8].map(Duration::from_millis);
        Report::new(&layout, (Variant::Prefetch, Kernel::Rust), &times, Check { residual, checksum: 5.0 })
    }

    #[test]
    fn the_page_names_problem_speed_and_verdict() {
        let page = report(0.25).to_string();
        for part in [
            "SUMMA, prefetch: order 1000, blocks of 64, a grid of 2x3 PEs (6), kernel rust",
            "best of 3             0.002000 s    1000.00 GFlop/s",
            "median                0.004000 s     500.00 GFlop/s",
            "residual              2.5e-1 of its bound",
        ] {
            assert!(page.contains(part), "`{part}` is not in:\n{page}");
        }
        assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
    }

    #[test]
    fn a_residual_above_its_bound_or_no_number_is_not_verified() {
        for (residual, verified) in [(0.0, true), (1.0, true), (1.01, false), (f64::NAN, false)] {
            assert_eq!(report(residual).verified, verified, "{residual}");
        }
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = serde_json::to_string(&report(0.25)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (field, expected) in [("n", 1000), ("block", 64), ("pes", 6)] {
            assert_eq!(value[field], expected, "{field} of {line}");
        }
        assert_eq!((&value["grid"], &value["verified"]), (&"2x3".into(), &true.into()));
        assert_eq!(value["seconds"], serde_json::json!([0.004, 0.002, 0.008]));
        assert_eq!(value["gflops"], 500.0);
    }
}
