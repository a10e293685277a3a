//! The chapters of the standard, and the state that they share: `library` is the state of the process,
//! `error` and `errhandler` have what happens to errors.
//!
//! Chapters use each other, as those of the standard do: a communicator has attributes, hints, a topology and
//! an error handler, and each of these calls fails on a communicator.

pub mod attribute;
pub mod collective;
pub mod comm;
pub mod data;
pub mod datatype;
pub mod environment;
pub mod errhandler;
pub mod error;
pub mod file;
pub mod generalized;
pub mod group;
pub mod info;
pub mod integer;
pub mod leaks;
pub mod library;
pub mod memory;
pub mod names;
pub mod op;
pub mod p2p;
pub mod pool_word;
pub mod process;
pub mod request;
pub mod session;
pub mod setup;
pub mod tool;
pub mod topology;
pub mod users;
pub mod win;
