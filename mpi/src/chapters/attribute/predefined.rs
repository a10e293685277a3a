//! The attributes that every communicator of the world has, and those of sessions in part.
//!
//! Invariant: an attribute is the address of an `int` that lives as long as the process.

use crate::abi::*;
use crate::chapters::environment::LAST_USED_CODE;
use crate::chapters::library::Mpi;
use pelago_fabric::sync::{AtomicI32, Ordering};

static TAG_UB: AtomicI32 = AtomicI32::new(c_int::MAX);
static HOST: AtomicI32 = AtomicI32::new(MPI_PROC_NULL);
/// All processes can read and write files.
static IO: AtomicI32 = AtomicI32::new(MPI_ANY_SOURCE);
static WTIME_IS_GLOBAL: AtomicI32 = AtomicI32::new(0);
static APPNUM: AtomicI32 = AtomicI32::new(0);
static UNIVERSE_SIZE: AtomicI32 = AtomicI32::new(1);

/// The number of this process's program among those that its launcher was given.
fn program_number() -> c_int {
    let from_launcher = ["PMI_APPNUM", "OMPI_APP_CTX_NUM"];
    let number = from_launcher.into_iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    number.unwrap_or(0)
}

/// The address of a predefined attribute's value, if the keyval is that of one.
pub fn of_communicators(mpi: &Mpi, keyval: c_int) -> Option<*mut c_int> {
    let place = match keyval {
        MPI_TAG_UB => &TAG_UB,
        MPI_HOST => &HOST,
        MPI_IO => &IO,
        MPI_APPNUM => {
            APPNUM.store(program_number(), Ordering::Relaxed);
            &APPNUM
        }
        MPI_LASTUSEDCODE => &LAST_USED_CODE,
        MPI_WTIME_IS_GLOBAL => {
            // The processes of a node read the same clock.
            let nodes = (0..mpi.core.n_pes()).map(|pe| mpi.core.node(pe));
            let is_one_node = nodes.min() == (0..mpi.core.n_pes()).map(|pe| mpi.core.node(pe)).max();
            WTIME_IS_GLOBAL.store(is_one_node.into(), Ordering::Relaxed);
            &WTIME_IS_GLOBAL
        }
        MPI_UNIVERSE_SIZE => {
            UNIVERSE_SIZE.store(mpi.core.n_pes() as c_int, Ordering::Relaxed);
            &UNIVERSE_SIZE
        }
        _ => return None,
    };
    Some(place.as_ptr())
}
