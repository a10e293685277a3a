//! The memory that scheduled collectives synchronise on, as the settings have it. How it works:
//! [`pelago_schedule::sync_memory`].

use pelago_boot::SyncMemoryKind;
use pelago_schedule::sync_memory;

pub use pelago_schedule::sync_memory::{ALL_SIGNAL_MAX, ANNOUNCES, ArrayLease, Arrays, Mark, Plan};
pub use pelago_schedule::sync_memory::{ARRAYS, PAIR_SLOT_BYTES, PAIR_SLOTS, Reuse, SyncCounts};
pub use pelago_schedule::sync_memory::{
    Arrived, Data, MailboxBytes, OtherKind, PairLease, PairMark, PairMemory, ReceivedSlots,
};

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

/// The arrays of a team of `n` at rank `me`; `None` if it uses the slots of pairs.
pub fn arrays(kind: SyncMemoryKind, n: usize, me: usize) -> Option<Arrays> {
    match reuse(kind) {
        Reuse::Additional => Some(Arrays::new(true, n, me)),
        Reuse::Barrier => Some(Arrays::new(false, n, me)),
        Reuse::Pairs => None,
    }
}

/// Slots in a member's block, for a team of `n`.
pub fn slots(kind: SyncMemoryKind, n: usize) -> usize {
    sync_memory::team_slots(reuse(kind), n)
}
