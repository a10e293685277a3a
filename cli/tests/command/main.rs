//! Tests of the command from a user's perspective: the jobs that it starts, invalid input, output, and
//! leftovers.
//!
//! Invariant: only the built command is tested, from outside. Every wait has a limit and an error message
//! that names the event, and every test checks that no process of its job is left.

mod bad_input;
mod bench;
mod coll;
mod faults;
mod help;
#[cfg(feature = "full")]
mod hosts;
#[cfg(feature = "full")]
mod hybrid;
#[cfg(feature = "full")]
mod intruders;
mod jobs;
mod launchers;
mod looking;
mod model;
mod output;
mod pages;
mod paper;
mod process;
mod programs;
mod qtc;
mod records;
mod several_hosts;
mod sim;
mod sync_memory;
mod threads;
mod tune;
