//! The benchmarks of Pelago: the measurements on PEs (the application `perf`), the tables, curves and gates
//! of `pelago bench`, the figures of `pelago paper`, and the comparisons with other libraries of `cargo xtask
//! compare`.
//!
//! Invariant: a topic is one file in `topics/`, which contains its measurements on PEs, its tables, curves
//! and gates, and its comparison. Code that several topics share is in `base/`, which does not depend on
//! topics.

mod base;
mod command;
mod compare;
mod paper;
mod perf;
mod topics;

pub use self::{command::Bench, compare::Subject, paper::PaperCommand, perf::APP};
pub use base::job::{Interrupted, parse, perf as perf_job, perf_on as perf_job_on};
pub use base::record::{Label, Record};
pub use base::stats::Summary;

/// The parts of a record's label, and pairs of times.
pub mod record {
    pub use crate::base::record::{Bench, Operation, Pair, Place, Way};
}
