//! The simulated network: a provider whose PEs are threads of one process, and whose every run can be
//! replayed.
//!
//! Invariant: what happens depends on the parameters and the program alone, neither on the machine nor on its
//! scheduler: one PE runs at a time, and who runs next, what arrives next and what is refused is decided
//! here. In *model* mode the decision follows virtual time (LogGP: Alexandrov, Ionescu, Schauser, Scheiman,
//! 1995), in
//! *chaos* mode a pseudorandom sequence. The states of a PE and the formulae of time stand in `README.md`.

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
