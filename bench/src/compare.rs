//! `cargo xtask compare`: compares Pelago with other libraries on this machine.
//!
//! Invariant: the sides run alternately, and each goes first equally often, so that other load on the machine
//! affects all alike; the results are checked as well.

use anyhow::Result;
use clap::Subcommand;

use crate::topics::{coll, fabric, fft, gups, linear, messages, mpi, net, shmem};

/// The available comparisons.
#[derive(Subcommand)]
pub enum Subject {
    /// One forward 3D FFT of complex doubles, with FFTW-MPI (Debian: libfftw3-mpi-dev, openmpi-bin)
    Fft(fft::Compare),
    /// Collective operations, with Open MPI, MPICH and OpenSHMEM (Debian: openmpi-bin, libopenmpi-dev, mpich,
    /// libmpich-dev)
    Coll(coll::Compare),
    /// Random updates of one table (GUPS), with the MPIRandomAccess of hpcc (Debian: hpcc, openmpi-bin)
    Gups(gups::Compare),
    /// A matrix product and a Cholesky factorisation, with ScaLAPACK (Debian: libscalapack-openmpi-dev,
    /// libopenblas-dev, openmpi-bin, libopenmpi-dev)
    Linear(linear::Compare),
    /// One-sided operations over libfabric, with libfabric alone (Debian: libfabric-dev)
    Fabric(fabric::Compare),
    /// Two-sided messages on a node, with Open MPI and MPICH (Debian: openmpi-bin, libopenmpi-dev, mpich,
    /// libmpich-dev)
    Messages(messages::Compare),
    /// The MPI library on a node, with Open MPI and MPICH (Debian: openmpi-bin, libopenmpi-dev, mpich,
    /// libmpich-dev)
    Mpi(mpi::Compare),
    /// Between nodes over TCP, with Open MPI, MPICH and a raw socket (Debian: openmpi-bin, libopenmpi-dev,
    /// mpich, libmpich-dev, iproute2)
    Net(net::Compare),
    /// Calls of the OpenSHMEM library, with Open MPI's (Debian: openmpi-bin, libopenmpi-dev)
    Shmem(shmem::Compare),
}

impl Subject {
    /// Runs the comparison and prints it.
    pub fn run(self) -> Result<()> {
        match self {
            Subject::Fft(args) => args.run(),
            Subject::Coll(args) => args.run(),
            Subject::Gups(args) => args.run(),
            Subject::Linear(args) => args.run(),
            Subject::Fabric(args) => args.run(),
            Subject::Messages(args) => args.run(),
            Subject::Mpi(args) => args.run(),
            Subject::Net(args) => args.run(),
            Subject::Shmem(args) => args.run(),
        }
    }
}
