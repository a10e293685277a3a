//! The benchmarks of Pelago: the measurements on PEs (the application `perf`), the tables, curves and gates
//! of `pelago bench`, the figures of `pelago paper`, and the comparisons with other libraries of `cargo xtask
//! compare`.
//!
//! Invariant: a topic is one file in `topics/`, which contains its measurements on PEs, its tables, curves
//! and gates, and its comparison. Code that several topics share is in `base/`, which does not depend on
//! topics.
//!
//! Without the feature `measure` the crate has tables and records only.

#![cfg_attr(not(feature = "measure"), allow(dead_code, reason = "measurements use the rest"))]

mod base;
#[cfg(feature = "measure")]
mod command;
#[cfg(feature = "measure")]
mod compare;
#[cfg(feature = "measure")]
mod paper;
#[cfg(feature = "measure")]
mod perf;
#[cfg(feature = "measure")]
mod topics;

#[cfg(feature = "measure")]
pub use self::{command::Bench, compare::Subject, paper::PaperCommand, perf::APP};
pub use base::chart::escape;
#[cfg(feature = "measure")]
pub use base::job::{Interrupted, parse, perf as perf_job, perf_on as perf_job_on};
pub use base::page::{document, figure_of};
pub use base::record::{Label, Record};
pub use base::stats::Summary;
pub use base::table::{Cells, Table, figure};

/// The parts of a record's label, and pairs of times.
pub mod record {
    pub use crate::base::record::{Bench, Operation, Pair, Place, Way};
}
