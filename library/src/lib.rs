//! The C libraries of Pelago, linked into one object, so that a process has one runtime whichever of them it
//! uses.

pub use pelago_mpi as mpi;
pub use pelago_shmem as shmem;
