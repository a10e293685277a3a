//! Litmus tests: which outcomes of a few unsynchronised operations are forbidden, and which call forbids
//! them.
//!
//! Invariant: a body runs the same code with and without its ordering call and ends in both cases, so that
//! only the call decides whether a forbidden outcome can be seen. Each body runs many rounds between PEs that
//! map each other, where the forbidden outcome must never be seen, and on many simulated networks, where it
//! must never be seen with the call, and be seen on one of them without: so each test can fail, and the
//! network reorders. Source of the guarantees: OpenSHMEM 1.6 on memory ordering, point-to-point
//! synchronisation and signals. The shapes have the names of Maranget, Sarkar and Sewell, "A tutorial
//! introduction to the ARM and POWER relaxed memory models" (2012); many instances between two barriers are
//! the method of Alglave, Maranget, Sarkar and Sewell, "Litmus: running tests against hardware" (2011).

#[macro_use]
mod harness;

mod causality;
mod message_passing;
mod overwriting;
mod signalling;
mod store_buffering;
mod strict;
