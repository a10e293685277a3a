//! The benchmarks of Pelago: what PEs measure (the application `perf`), what `pelago bench` shows of it and
//! judges, and what `cargo xtask compare` measures beside other libraries.
//!
//! Invariant: a topic is one file of `topics/`, which holds all that is its own: its part in the PEs, its
//! tables, curves and gates, and its comparison. What several topics share is in `base/`, which knows none of
//! them.

mod base;
mod command;
mod compare;
mod perf;
mod topics;

pub use base::job::{Interrupted, parse, perf as perf_job};
pub use base::record::{Label, Record};
pub use base::stats::Summary;
pub use base::table::{Cells, Table, figure};
pub use command::Bench;
pub use compare::Subject;
pub use perf::APP;
