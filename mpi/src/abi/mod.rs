//! The types and constants of the standard ABI (MPI 5.0, chapter 20), as `mpi.h` has them.
//!
//! Invariant: sizes, alignments and values are those of the standard; `mpi.h` is written from this module.

#![allow(
    non_camel_case_types,
    non_snake_case,
    missing_docs,
    reason = "the names are those of the standard, which defines them"
)]

mod constants;
mod types;

pub use constants::*;
pub use types::*;
