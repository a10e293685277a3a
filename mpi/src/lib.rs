//! MPI through the standard ABI of MPI 5.0: `libmpi_abi.so.1`, on the Pelago runtime.
//!
//! `api/` has the table of the interface, a file for each chapter of the standard. Each line names the
//! function that implements it, in the module of its chapter. `convert` has the two forms of arguments,
//! `table` the handles, `error` and `errhandler` what happens to errors. `library` is the state of the
//! process.
//!
//! Invariant: nothing here moves data by itself: messages are those of `pelago_core::msg`, collective
//! operations the schedules of `pelago_core::message_coll`.

#![expect(
    clippy::missing_safety_doc,
    reason = "functions of the interface have the conditions of the standard"
)]
#![expect(missing_docs, reason = "users see the C interface")]
#![allow(clippy::too_many_arguments, reason = "the standard has calls with many arguments")]

#[macro_use]
mod expand;

pub mod abi;
mod api;
mod attribute;
mod collective;
mod comm;
mod convert;
mod datatype;
mod environment;
mod errhandler;
mod error;
mod file;
mod generalized;
mod group;
mod info;
mod integer;
mod library;
mod memory;
mod op;
mod p2p;
mod process;
mod request;
mod session;
mod setup;
mod table;
mod tool;
mod topology;
mod users;
mod win;
