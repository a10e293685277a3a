//! Collective operations as data.
//!
//! A *collective operation* is an operation that all ranks of a team perform together: a barrier, a
//! broadcast, a reduction. An *algorithm* is a pure function that writes the steps of one rank. The result is
//! a *schedule*: a list of steps. As a schedule is data, it can be read, drawn, proved without processes,
//! compared with others, and run. This crate does all of that except run schedules: it does not depend on a
//! runtime.
//!
//! # Steps
//! A [`Schedule`](schedule::Schedule) is a list of [`Step`](schedule::Step)s and a number of bytes of scratch
//! memory. A step puts data to another rank or gets data from it, signals it or waits for its signal, or
//! copies or combines data in the rank's own memory. The steps of a rank begin in their order. Only the two
//! steps that wait delay the steps after them. [`schedule`] defines what a runtime must guarantee.
//!
//! # Slots
//! A signal goes to a *slot* of a rank: a word on which that rank can wait. A slot has a *mailbox* for a
//! small message that comes with the signal. In one operation a slot is signalled at most once.
//! [`sync_memory`] decides which word of memory a slot is, and when the next operation may use that word.
//!
//! # Rounds
//! The number of *rounds* of an operation is the length of its longest chain of messages in which each
//! message depends on the one before. The rounds determine the time where latency dominates; the bytes of a
//! rank determine it where bandwidth dominates. The checker counts both.
//!
//! # What the checker proves
//! [`check`](check::check) runs the schedules of all ranks on symbols instead of data. If it finds no defect,
//! the following holds in every order of events that the rules of [`schedule`] allow:
//! * every rank ends: there is no deadlock;
//! * every target holds what the [`Operation`](shape::Operation) promises, and nothing is written elsewhere;
//! * no two accesses to the same memory race;
//! * every signal is waited for, and no slot is signalled twice.
//!
//! # Example
//! A broadcast of 1000 words from rank 0 of 8, by a binomial tree:
//!
//! ```
//! use pelago_schedule::check::{CheckOptions, check};
//! use pelago_schedule::draw;
//! use pelago_schedule::schedule::MAILBOX_BYTES;
//! use pelago_schedule::shape::{Operation, Shape};
//! use pelago_schedule::table::find;
//!
//! let binomial = find(Operation::Broadcast, "binomial").unwrap();
//! let shape = |rank| Shape::new(Operation::Broadcast, rank, 8, 1000, 8);
//!
//! // The schedule of each rank, and its steps.
//! let schedules: Vec<_> = (0..8).map(|rank| binomial.schedule(&shape(rank), MAILBOX_BYTES)).collect();
//! for step in &schedules[0].steps {
//!     println!("{step}");
//! }
//!
//! // The proof, and what the broadcast costs.
//! let report = check(binomial, &shape, &CheckOptions::default()).unwrap();
//! assert_eq!((report.messages, report.rounds), (7, 3));
//! assert_eq!(report.bytes, 7 * 8000);
//!
//! // The messages between ranks, round by round.
//! print!("{}", draw::text(&schedules, 80));
//! ```
//!
//! # Modules
//! From the bottom up; a module uses only the modules before it.
//!
//! | module | holds |
//! |---|---|
//! | [`schedule`] | ranks, places, steps, schedules, the builder |
//! | [`nodes`] | which ranks share a node |
//! | [`shape`] | the description of an operation: kind, sizes, layout, root |
//! | [`sync_memory`] | the slot that a signal goes to, and the time at which the slot is free again |
//! | [`tree`] | trees of ranks |
//! | [`combine`] | the parts that algorithms that combine data share |
//! | a module for each operation | its algorithms, one file for each |
//! | [`table`] | all algorithms |
//! | [`tuning`] | the tuning file: the algorithms that were measured to be best |
//! | [`select`] | the choice of an algorithm |
//! | [`candidates`] | the algorithms that may take its place, for measurements |
//! | [`estimate`] | how long they take, by LogGP |
//! | [`check`] | the checker |
//! | [`draw`] | pictures |

#![forbid(unsafe_code)]

pub mod candidates;
pub mod check;
pub mod combine;
pub mod draw;
pub mod estimate;
pub mod fnv;
pub mod nodes;
pub mod schedule;
pub mod select;
pub mod shape;
pub mod sync_memory;
pub mod table;
pub mod tree;
pub mod tuning;

mod algorithm;
mod all_gather;
mod all_reduce;
mod all_to_all;
mod barrier;
mod broadcast;
#[cfg(test)]
mod costs;
mod gather;
mod layout;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
