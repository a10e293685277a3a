//! The simulated network: a provider whose PEs are threads of one process, and whose every run can be
//! replayed.
//!
//! Invariant: a run depends only on the parameters and the program, and neither on the machine nor on its
//! scheduler. One PE runs at a time, and the simulation decides which PE runs next, what arrives next and
//! what is refused. In *model* mode the decision follows virtual time (LogGP: Alexandrov, Ionescu, Schauser,
//! Scheiman, 1995), in *chaos* mode a pseudorandom sequence. The states of a PE and the formulae of time are
//! in `README.md`.

mod engine;
mod faults;
mod network;
mod params;
mod pending;
mod provider;
mod random;
mod scheduler;

pub use params::{Loss, SimParams};
pub use provider::Sim;
