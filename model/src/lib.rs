//! Collective schedules and communication skeletons on modelled machines, in virtual time.
//!
//! The crate simulates the ranks of a job and the network between them by events, without threads: 10^5 ranks
//! are no problem. It runs the schedules of `pelago-schedule` as they are, or a *skeleton*: the communication
//! of an application without its computation, of which only the time is given.
//!
//! # Example
//! A dissemination barrier of 1000 PEs on a machine with LogGP's parameters alone: 1 us of latency, 100 ns of
//! overhead, no gap and 10 GB/s.
//!
//! ```
//! use pelago_model::action::Collective;
//! use pelago_model::{Machine, run};
//! use pelago_schedule::shape::Operation;
//! use pelago_schedule::table::find;
//! use std::sync::Arc;
//!
//! let machine = Machine::log_gp(1_000_000, 100_000, 0, 10e9);
//! let dissemination = find(Operation::Barrier, "dissemination").unwrap();
//! let barrier = Arc::new(Collective::world(dissemination, 1000, 0, 1));
//! let outcome = run(&machine, &barrier).unwrap();
//! // Ten rounds, each of which takes the overhead and the latency.
//! assert_eq!(outcome.time, 10 * 1_100_000);
//! ```
//!
//! # Modules
//! From the bottom up; a module uses only the modules before it.
//!
//! | module | holds |
//! |---|---|
//! | [`time`] | virtual time |
//! | `queue` | the pending events |
//! | [`topology`] | links and routes |
//! | [`machine`] | machines and their files |
//! | `network` | the models of contention |
//! | [`action`] | actions of ranks, collective operations, skeletons |
//! | [`engine`] | the simulation |
//! | [`skeletons`] | skeletons of measurements |
//! | [`fit`] | machines from measured times |
//! | [`tuner`] | the best algorithm, by estimates and simulations |
//! | `costs` | the costs of a machine for estimates |

#![forbid(unsafe_code)]

pub mod action;
pub mod engine;
pub mod fit;
pub mod machine;
pub mod skeletons;
pub mod time;
pub mod topology;
pub mod tuner;

mod costs;
mod network;
mod queue;

pub use engine::{Error, Outcome, run, run_reporting};
pub use machine::Machine;
