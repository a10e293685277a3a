//! How a job starts, fails and ends: failures, faults, mistakes, several nodes, threads, and code that must
//! not compile.

#[macro_use]
extern crate pelago_tests as common;

mod contacts;
mod failures;
mod faults;
mod first_error;
mod forged;
mod mismatch;
#[cfg(feature = "full")]
mod newer_libfabric;
mod nodes;
mod places;
mod run;
mod sleeps;
mod stall;
mod threads;
mod ui;
