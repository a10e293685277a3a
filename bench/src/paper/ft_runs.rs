//! Runs of NAS FT: the lines that the application prints, read. Invariant: every run was verified.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value as Json;

/// A run of a variant over a transport.
#[derive(Clone, Debug, Deserialize)]
pub struct FtRun {
    /// The variant.
    pub variant: String,
    /// The transport.
    pub transport: String,
    /// The time of the slowest PE.
    pub seconds: f64,
    /// Time by phase.
    pub phases: Phases,
    /// The hidden part of the communication.
    pub overlap: Overlap,
}

/// A part of the communication that is hidden.
#[derive(Clone, Debug, Deserialize)]
pub struct Overlap {
    /// From 0 to 1.
    pub share: f64,
}

/// Seconds by phase.
#[derive(Clone, Debug, Deserialize)]
pub struct Phases {
    /// The local FFTs.
    pub local_fft: Spent,
    /// Starting messages.
    pub communication_start: Spent,
    /// Waiting for them.
    pub communication_wait: Spent,
    /// Copies within a PE.
    pub in_memory_transfer: Spent,
    /// Waiting for other PEs.
    pub barrier: Spent,
    /// The rest.
    pub other: Spent,
}

/// The seconds of a phase.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Spent {
    /// The mean of the PEs.
    pub mean: f64,
}

impl FtRun {
    /// The runs of an application's lines.
    ///
    /// # Errors
    /// If a line is not that of a run.
    pub fn read(lines: &[Json]) -> Result<Vec<FtRun>> {
        let read = |line: &Json| serde_json::from_value(line.clone()).context("reading a run of FT");
        lines.iter().map(read).collect()
    }

    /// Seconds in which a PE starts messages or waits for them.
    pub fn communication(&self) -> f64 {
        self.phases.communication_start.mean + self.phases.communication_wait.mean
    }
}

/// The run of a variant over a transport.
///
/// # Errors
/// If there is none.
pub fn of<'a>(runs: &'a [FtRun], variant: &str, transport: &str) -> Result<&'a FtRun> {
    let found =
        runs.iter().find(|run| (run.variant.as_str(), run.transport.as_str()) == (variant, transport));
    found.with_context(|| format!("FT did not run {variant} over {transport}"))
}

/// The fastest run over a transport.
///
/// # Errors
/// If there is none.
pub fn best<'a>(runs: &'a [FtRun], transport: &str) -> Result<&'a FtRun> {
    let of_transport = runs.iter().filter(|run| run.transport == transport);
    let found = of_transport.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    found.with_context(|| format!("FT did not run over {transport}"))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A run that takes these seconds, one of which is communication.
    pub fn run(variant: &str, transport: &str, seconds: f64) -> FtRun {
        let spent = |mean| Spent { mean };
        let phases = Phases {
            local_fft: spent(seconds - 1.0),
            communication_start: spent(0.25),
            communication_wait: spent(0.75),
            in_memory_transfer: spent(0.0),
            barrier: spent(0.0),
            other: spent(0.0),
        };
        let (variant, transport) = (variant.to_owned(), transport.to_owned());
        FtRun { variant, transport, seconds, phases, overlap: Overlap { share: 0.5 } }
    }

    #[test]
    fn runs_are_found_by_name_and_by_time() {
        let runs = [run("slabs", "one-sided", 3.0), run("pencils", "one-sided", 2.0)];
        assert_eq!(of(&runs, "slabs", "one-sided").unwrap().seconds, 3.0);
        assert_eq!(best(&runs, "one-sided").unwrap().variant, "pencils");
        assert!(of(&runs, "slabs", "two-sided").is_err() && best(&runs, "two-sided").is_err());
        assert_eq!(runs[0].communication(), 1.0);
    }
}
