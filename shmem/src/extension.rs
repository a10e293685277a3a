//! Extensions of OpenSHMEM, `shmemx_...`: a file for each group that has code of its own. Those that are
//! other names of the standard's functions are lines of `api/extension.rs` alone.
//!
//! docs/openshmem-extensions.md says what each does, and whose names they are.

pub(crate) mod arrival;
pub(crate) mod completion;
pub(crate) mod counts;
pub(crate) mod exchange;
pub(crate) mod heap;
pub(crate) mod machine;
pub(crate) mod request;
pub(crate) mod space;
pub(crate) mod teams;
