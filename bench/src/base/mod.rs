//! The shared code of the topics: measuring on PEs, starting jobs and programs of other libraries, and
//! storing, showing and checking results. Invariant: this module does not depend on topics.

pub mod across;
pub mod buffers;
pub mod crowd;
mod distance;
pub mod effort;
pub mod ensemble;
pub mod gate;
#[allow(dead_code, reason = "the developers' other commands use the rest")]
pub mod hosts;
pub mod job;
pub mod peers;
pub mod prelude;
pub mod record;
pub mod rounds;
pub mod stats;
pub mod suite;
pub mod topic;
#[allow(dead_code, reason = "the developers' other commands use the rest")]
pub mod workspace;
