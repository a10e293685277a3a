//! Extensions of OpenSHMEM, `shmemx_...`, with one file for each group that has code of its own. Extensions
//! that are other names of standard functions are only lines of `api/extension.rs`.
//!
//! docs/openshmem-extensions.md describes each of them and the origin of its name.

pub(crate) mod arrival;
pub(crate) mod completion;
pub(crate) mod counts;
pub(crate) mod exchange;
pub(crate) mod heap;
pub(crate) mod machine;
pub(crate) mod request;
pub(crate) mod space;
pub(crate) mod teams;
