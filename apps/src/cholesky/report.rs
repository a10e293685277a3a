//! The report of a run: lines for people, one JSON object for programs. Invariant: both forms are written
//! from the same `Report`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::transport::Transport;
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
    transport: &'static str,
    kernel: &'static str,
    n: usize,
    block: usize,
    grid: String,
    pes: usize,
    #[serde(flatten)]
    speed: Speed,
    /// The largest difference that the check has found, as a part of its bound.
    residual: f64,
    log_determinant: f64,
    pub(super) verified: bool,
}

impl Report {
    pub(super) fn new(
        layout: &Layout,
        (transport, kernel): (Transport, Kernel),
        times: &[Duration],
        Check { residual, log_determinant }: Check,
    ) -> Self {
        let n = layout.n as f64;
        Report {
            app: super::NAME,
            transport: transport.name(),
            kernel: kernel.name(),
            n: layout.n,
            block: layout.block,
            grid: layout.grid.to_string(),
            pes: layout.grid.pes(),
            speed: Speed::new(n * n * n / 3.0, times),
            residual,
            log_determinant,
            verified: residual <= 1.0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { transport, kernel, n, block, grid, pes, speed, residual, .. } = self;
        writeln!(
            f,
            "Cholesky, {transport}: order {n}, blocks of {block}, a grid of {grid} PEs ({pes}), kernel \
             {kernel}"
        )?;
        write!(f, "{speed}")?;
        writeln!(f, "{:<20}  {residual:.1e} of its bound, 4 (n + 1) u |L| |L^T| |x|", "residual")?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::grid::Grid;

    fn report(residual: f64) -> Report {
        let layout = Layout::new(300, 64, Grid { rows: 2, columns: 3 }, 0);
        let times = [4, 2, 8].map(Duration::from_millis);
        let check = Check { residual, log_determinant: 5.0 };
        Report::new(&layout, (Transport::OneSided, Kernel::Rust), &times, check)
    }

    #[test]
    fn the_page_names_problem_speed_and_verdict() {
        let page = report(0.25).to_string();
        for part in [
            "Cholesky, one-sided: order 300, blocks of 64, a grid of 2x3 PEs (6), kernel rust",
            "best of 3             0.002000 s       4.50 GFlop/s",
            "median                0.004000 s       2.25 GFlop/s",
            "residual              2.5e-1 of its bound",
        ] {
            assert!(page.contains(part), "`{part}` is not in:\n{page}");
        }
        assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
        assert!(report(1.5).to_string().ends_with("\nVerification: NOT VERIFIED\n"));
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let value = serde_json::to_value(report(0.25)).unwrap();
        assert_eq!((&value["n"], &value["transport"]), (&300.into(), &"one-sided".into()));
        assert_eq!((&value["log_determinant"], &value["verified"]), (&5.0.into(), &true.into()));
        assert_eq!(value["gflops"], 2.25);
    }
}
