//! Access of one PE to the memory of another: allocation, puts, gets, atomics, signals, their order, as
//! bodies that run on every kind of job, and the litmus tests.

#[macro_use]
extern crate pelago_tests as common;

mod alloc;
mod amo;
mod context;
mod domain;
mod litmus;
mod model;
mod p2p;
mod packing;
mod rma;
mod scattered;
mod signal;
mod vis;
