//! The chapters of the standard: a C program for each, in jobs of every kind.

mod active_set;
mod amo;
mod collective;
mod context;
mod lock;
mod memory;
mod p2p;
mod rma;
mod setup;
mod signal;
mod strided;
mod team;
