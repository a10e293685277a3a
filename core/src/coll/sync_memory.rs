//! The memory that scheduled collectives synchronise on, as the settings have it. How it works:
//! [`pelago_schedule::sync_memory`].

use pelago_boot::SyncMemoryKind;
use pelago_schedule::sync_memory::{self, Reuse};

pub use pelago_schedule::sync_memory::{ALL_SIGNAL_MAX, ANNOUNCES, Chore, Lease, Mark, Plan, SyncMemory};
pub use pelago_schedule::sync_memory::{ARRAYS, PAIR_SLOTS, SyncCounts};

/// When slots may be used again.
pub fn reuse(kind: SyncMemoryKind) -> Reuse {
    match kind {
        SyncMemoryKind::Additional => Reuse::Additional,
        SyncMemoryKind::Barrier => Reuse::Barrier,
        SyncMemoryKind::PairwiseDoubling
        | SyncMemoryKind::PairwiseStructure
        | SyncMemoryKind::PairwiseEdges => Reuse::Pairs,
    }
}

/// Slots in a member's block, for a team of `n`.
pub fn slots(kind: SyncMemoryKind, n: usize) -> usize {
    sync_memory::slots(reuse(kind), n)
}
