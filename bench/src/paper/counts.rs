//! The instructions of the interface, as `cargo xtask budget` counted them: the library of C and the fake
//! libfabric that they need are not in the command. Invariant: `cargo xtask budget` fails where the file does
//! not have the counts of the same compiler; `cargo xtask budget --record` writes it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The file.
const FILE: &str = include_str!("counts.json");

/// Counts by probe, and the compiler of the probes.
#[derive(Deserialize)]
pub struct Counts {
    /// The version of the compiler.
    pub compiler: String,
    counts: BTreeMap<String, u64>,
}

impl Counts {
    /// The counts of the file.
    ///
    /// # Errors
    /// If the file is not valid.
    pub fn read() -> Result<Self> {
        serde_json::from_str(FILE).context("reading the counts of instructions")
    }

    /// The instructions of a probe.
    ///
    /// # Errors
    /// If there is no such probe.
    pub fn of(&self, probe: &str) -> Result<u64> {
        self.counts.get(probe).copied().with_context(|| format!("there is no count of {probe:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_probes_of_the_figures() {
        let counts = Counts::read().unwrap();
        assert!(counts.compiler.starts_with("rustc "));
        for probe in ["shmem_int_p (far PE)", "shmem_quiet (far PE)", "am_short", "put_net", "quiet_net"] {
            assert!(counts.of(probe).is_ok_and(|count| count > 0), "{probe}");
        }
        assert!(counts.of("no such probe").is_err());
    }
}
