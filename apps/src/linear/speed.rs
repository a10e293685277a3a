//! The speed of a computation that was repeated. Invariant: the rate is that of the median time.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The times of the repetitions, and the rate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Speed {
    /// The time of the slowest PE in each repetition.
    seconds: Vec<f64>,
    /// Operations in a second, in thousand millions, at the median time.
    gflops: f64,
    #[serde(skip)]
    operations: f64,
}

impl Speed {
    /// The speed of computations of this number of operations each. There is at least one time.
    pub(crate) fn new(operations: f64, times: &[Duration]) -> Self {
        // A clock may be too coarse for a handful of operations.
        let seconds: Vec<_> =
            times.iter().map(|time| (*time).max(Duration::from_nanos(1)).as_secs_f64()).collect();
        let gflops = operations / sorted(&seconds)[seconds.len() / 2] / 1e9;
        Speed { seconds, gflops, operations }
    }
}

fn sorted(seconds: &[f64]) -> Vec<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = sorted(&self.seconds);
        for (name, seconds) in [
            (format!("best of {}", sorted.len()), sorted[0]),
            ("median".to_owned(), sorted[sorted.len() / 2]),
        ] {
            let gflops = self.operations / seconds / 1e9;
            writeln!(f, "{name:<20}  {seconds:.6} s  {gflops:>9.2} GFlop/s")?;
        }
        Ok(())
    }
}
