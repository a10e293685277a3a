//! The shared code of the topics: measuring on PEs, starting jobs and programs of other libraries, and
//! storing, showing and checking results. Invariant: this module does not depend on topics.

#[cfg(feature = "measure")]
pub mod buffers;
pub mod chart;
#[cfg(feature = "measure")]
pub mod crowd;
#[cfg(feature = "measure")]
pub mod effort;
#[cfg(feature = "measure")]
pub mod ensemble;
#[cfg(feature = "measure")]
pub mod gate;
#[cfg(feature = "measure")]
#[allow(dead_code, reason = "the developers' other commands use the rest")]
pub mod hosts;
#[cfg(feature = "measure")]
pub mod job;
pub mod page;
#[cfg(feature = "measure")]
pub mod peers;
#[cfg(feature = "measure")]
pub mod prelude;
pub mod record;
#[cfg(feature = "measure")]
pub mod rounds;
pub mod stats;
#[cfg(feature = "measure")]
pub mod suite;
pub mod table;
#[cfg(feature = "measure")]
pub mod topic;
#[cfg(feature = "measure")]
#[allow(dead_code, reason = "the developers' other commands use the rest")]
pub mod workspace;
