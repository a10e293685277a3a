//! The benchmarks of Pelago: what PEs measure (the application `perf`), what `pelago bench` shows of it and
//! judges, and what `cargo xtask compare` measures beside other libraries.
//!
//! Invariant: figures come from jobs that are started here; a gate is a comparison within one run.

pub mod compare;
#[path = "../../xtask/src/hosts.rs"]
#[allow(dead_code, reason = "what the developers' other commands use as well")]
mod hosts;
pub mod interrupt;
mod measure;
pub mod plot;
pub mod report;
#[path = "../../xtask/src/workspace.rs"]
#[allow(dead_code, reason = "what the developers' other commands use as well")]
mod workspace;

pub use measure::{APP, Record};
