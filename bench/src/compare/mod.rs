//! `cargo xtask compare`: Pelago beside other libraries on this machine.
//!
//! Invariant: the sides run alternately, and each goes first equally often, so that what else the machine
//! does meets all alike; what they compute is checked as well.

mod coll;
mod fabric;
mod fft;
mod gups;
mod net;
mod page;
mod programs;
mod report;
mod rows;
mod shmem;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Subcommand;

use crate::workspace::cargo;

/// What there is to compare.
#[derive(Subcommand)]
pub enum Subject {
    /// One forward 3D FFT of complex doubles, with FFTW-MPI (Debian: libfftw3-mpi-dev, openmpi-bin)
    Fft(fft::Args),
    /// Collective operations, with Open MPI, MPICH and OpenSHMEM (Debian: openmpi-bin, libopenmpi-dev, mpich,
    /// libmpich-dev)
    Coll(coll::Args),
    /// Random updates of one table (GUPS), with the MPIRandomAccess of hpcc (Debian: hpcc, openmpi-bin)
    Gups(gups::Args),
    /// One-sided operations over libfabric, with libfabric alone (Debian: libfabric-dev)
    Fabric(fabric::Args),
    /// Between nodes over TCP, with Open MPI, MPICH and a raw socket (Debian: openmpi-bin, libopenmpi-dev,
    /// mpich, libmpich-dev, iproute2)
    Net(net::Args),
    /// Calls of the OpenSHMEM library, with Open MPI's (Debian: openmpi-bin, libopenmpi-dev)
    Shmem(shmem::Args),
}

impl Subject {
    /// Runs the comparison and prints it.
    pub fn run(self) -> Result<()> {
        match self {
            Subject::Fft(args) => fft::run(&args),
            Subject::Coll(args) => coll::run(&args),
            Subject::Gups(args) => gups::run(&args),
            Subject::Fabric(args) => fabric::run(&args),
            Subject::Net(args) => net::run(&args),
            Subject::Shmem(args) => shmem::run(&args),
        }
    }
}

/// The first of `names` that is a program in PATH.
fn find_program(names: &[&str]) -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&search_path).collect();
    names
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file()))
}

/// Installs our OpenSHMEM library, its compiler wrapper and launchers below `prefix`.
fn install(prefix: &Path) -> Result<()> {
    let status = cargo(&["xtask", "install", "--prefix"]).arg(prefix).status()?;
    ensure!(status.success(), "cannot install Pelago: {status}");
    Ok(())
}

/// The middle of some figures, or the mean of the two in the middle.
fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => sorted[middle - 1] / 2.0 + sorted[middle] / 2.0,
        _ => sorted[middle],
    }
}

/// The smallest of some figures.
fn minimum(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_minima() {
        assert_eq!([median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 8.0])], [2.0, 3.0]);
        assert_eq!(minimum(&[3.0, 1.0, 2.0]), 1.0);
    }

    #[test]
    fn programs_are_found_in_their_order() {
        assert!(find_program(&["no-such-program", "sh"]).is_some_and(|program| program.ends_with("sh")));
        assert_eq!(find_program(&["no-such-program"]), None);
    }
}
