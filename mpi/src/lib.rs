//! MPI through the standard ABI of MPI 5.0: `libmpi_abi.so.1`, on the Pelago runtime.
//!
//! `api/` has the table of the interface, a file for each chapter of the standard. Each line names the
//! function that implements it, in the module of its chapter below `chapters/`. `convert` has the two forms
//! of arguments, `table` the handles.
//!
//! Invariant: nothing here moves data between processes by itself: messages are those of `pelago_core::msg`,
//! collective operations the schedules of `pelago_core::message_coll`. Files are read and written by system
//! calls (`chapters/file/system.rs`).

#![allow(clippy::too_many_arguments, reason = "the standard has calls with many arguments")]

#[macro_use]
mod expand;

pub mod abi;
mod api;
mod chapters;
mod convert;
mod table;
