//! The points of a job's life that all PEs must reach, and the tree along which they notify each other.
//!
//! Invariant: see `wait/message_barrier.rs`, which sends the messages.

use crate::Pe;
use pelago_fabric::sync::{AtomicBool, AtomicU32};

/// The maximum number of children of a PE in the tree.
const FAN_OUT: usize = 8;

/// A point that all PEs must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Point {
    /// The memory of the PE can be accessed over the network.
    Join,
    /// The PE starts no operation any more.
    Leave,
}

/// The state of the message barriers of a world.
#[derive(Default)]
pub struct MessageBarrier {
    pub points: [Progress; 2],
}

#[derive(Default)]
pub struct Progress {
    /// The number of arrivals: this PE, and those of its children whose whole subtree has arrived.
    pub come: AtomicU32,
    pub is_over: AtomicBool,
}

pub fn parent(pe: Pe) -> Option<Pe> {
    pe.checked_sub(1).map(|before| before / FAN_OUT)
}

pub fn children(pe: Pe, n_pes: usize) -> std::ops::Range<Pe> {
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
