//! Points in a job's life that all PEs come to, and the tree by which they tell each other.
//!
//! Invariant: see `wait/message_barrier.rs`, which sends the messages.

use crate::Pe;
use pelago_fabric::sync::{AtomicBool, AtomicU32};

/// Children of a PE in the tree.
const FAN_OUT: usize = 8;

/// A point that all PEs come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Point {
    /// Its memory can be reached over the net.
    Join,
    /// It reaches for nobody any more.
    Leave,
}

/// How far the message barriers of a world are.
#[derive(Default)]
pub(crate) struct MessageBarrier {
    pub(crate) points: [Progress; 2],
}

#[derive(Default)]
pub(crate) struct Progress {
    /// This PE and those of its children that have come with all below them.
    pub(crate) come: AtomicU32,
    pub(crate) is_over: AtomicBool,
}

pub(crate) fn parent(pe: Pe) -> Option<Pe> {
    pe.checked_sub(1).map(|before| before / FAN_OUT)
}

pub(crate) fn children(pe: Pe, n_pes: usize) -> std::ops::Range<Pe> {
    let first = (pe * FAN_OUT + 1).min(n_pes);
    first..(first + FAN_OUT).min(n_pes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_every_pe_once() {
        for n_pes in 1..200 {
            let mut parents = vec![None; n_pes];
            for pe in 0..n_pes {
                children(pe, n_pes).for_each(|child| assert_eq!(parents[child].replace(pe), None));
            }
            assert_eq!(parents, (0..n_pes).map(parent).collect::<Vec<_>>(), "{n_pes} PEs");
        }
    }
}
