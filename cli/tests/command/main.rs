//! The command as its users meet it: what it starts, what it refuses, what it says, what it leaves behind.
//!
//! Invariant: only the built command is tested, from outside. Every wait has a bound and says what it waited
//! for, and after every job no process of it is left.

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
mod output;
mod process;
mod programs;
mod qtc;
mod several_hosts;
mod sim;
mod sync_memory;
mod threads;
mod tune;
