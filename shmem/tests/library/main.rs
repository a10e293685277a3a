//! The installed OpenSHMEM library: its C programs on every kind of job, its headers, symbols and wrappers.

mod common;

mod active_set;
mod amo;
mod checks;
mod collective;
mod context;
mod extensions;
mod headers;
mod install;
mod interpose;
mod lenient;
mod lock;
mod memory;
mod outputs;
mod p2p;
mod programs;
mod rma;
mod setup;
#[cfg(feature = "full")]
mod shmem4py;
mod signal;
mod stall;
mod statics;
mod strided;
mod symbols;
mod team;
