//! The features of Unified Parallel C: shared arrays and pointers into them, semaphores, the split-phase
//! barrier, strict accesses. The chapter docs/upc.md lists the supported features of UPC and their names
//! here.
//!
//! Invariant: all of it uses the one-sided operations, the waits and the collective operations of the other
//! modules, and so works over every provider. Sources: UPC Language Specifications 1.3; the slides "GASNet
//! and Berkeley UPC on BlueGene/P" (semaphores, memput_signal).

mod bulk;
mod layout;
mod pointer;
mod semaphore;
mod shared_array;
mod signalling_put;
mod split_barrier;
mod strict;

pub use layout::{Affine, BlockSize, Layout};
pub use pelago_core::base::semaphore_kind::SemaphoreKind;
pub use pointer::SharedPointer;
pub use semaphore::{Semaphore, Semaphores};
pub use shared_array::SharedArray;
pub use split_barrier::SplitBarrier;
pub use strict::Strict;

use crate::team::Team;
use crate::world::World;
use pelago_core::coll::symmetric_region::SymmetricRegion;
use std::sync::Arc;

/// The team of the PEs of a region: the team of a space, or the team of all PEs.
fn team_of<'w>(world: &'w World, region: &SymmetricRegion) -> Team<'w> {
    match region.team() {
        None => world.team(),
        Some(core) => Team { world, core: Arc::clone(core) },
    }
}

/// The examples of the chapter, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/upc.md")]
struct Chapter;
