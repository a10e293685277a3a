//! Jobs under launchers other than `pelago run`.

#[cfg(feature = "full")]
mod hydra;
#[cfg(feature = "full")]
mod mpirun;
#[cfg(feature = "full")]
mod namespaces;
#[cfg(feature = "full")]
mod slurm;
mod stub;
