//! The topics, one file for each.

pub mod am;
pub mod atomics;
pub mod barrier;
pub mod coll;
pub mod compute;
pub mod contention;
pub mod fabric;
pub mod fft;
pub mod gups;
pub mod linear;
pub mod links;
pub mod messages;
pub mod mpi;
pub mod net;
pub mod ping;
pub mod rate;
pub mod rma;
pub mod semaphores;
pub mod shmem;
pub mod signals;
pub mod start;
pub mod sync_memory;
pub mod threads;
pub mod vis;
