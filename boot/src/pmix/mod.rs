//! PMIx, the protocol of Open MPI's launchers (`mpirun`, `prterun`) and of `srun --mpi=pmix`, which a process
//! speaks through the library `libpmix.so.2` of that launcher.
//!
//! Invariant: the library is opened at run time and only when a launcher of PMIx has started this process, so
//! nothing else needs it. The calls are those of the PMIx standard (version 4.1, chapters 5 to 7 and 10).

pub(crate) mod client;
mod library;
mod sys;
mod worker;
