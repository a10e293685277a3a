//! The shared code of the topics: measuring on PEs, starting jobs and programs of other libraries, and
//! storing, showing and checking results. Invariant: this module does not depend on topics.

pub mod buffers;
pub mod chart;
pub mod crowd;
pub mod effort;
pub mod ensemble;
pub mod gate;
#[path = "../../../xtask/src/hosts.rs"]
#[allow(dead_code, reason = "the developers' other commands use the rest")]
pub mod hosts;
pub mod job;
pub mod page;
pub mod peers;
pub mod prelude;
pub mod record;
pub mod rounds;
pub mod stats;
pub mod suite;
pub mod table;
pub mod topic;
#[path = "../../../xtask/src/workspace.rs"]
#[allow(dead_code, reason = "the developers' other commands use the rest")]
pub mod workspace;
