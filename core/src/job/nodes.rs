//! The nodes of a job: which PEs share a node.
//!
//! Invariant: nodes are numbered from 0, in the order of their lowest PEs, regardless of their names. The PEs
//! of a node are numbered from 0 as well, in ascending order.

use crate::Pe;
use crate::memory::route::Reach;
use crate::memory::segment::Slots;
use pelago_fabric::Net;
use std::collections::HashMap;

/// The nodes of a job's PEs, and the network between them.
pub struct Placement {
    /// The network to PEs that are not mapped, if there are any.
    pub net: Option<Net>,
    pub reach: Reach,
    /// The name of the node of each PE; empty if all PEs are on one node.
    pub nodes: Vec<u32>,
    /// The number of the process of each PE; empty if the processes do not share a PID namespace.
    pub pids: Vec<u32>,
    /// The number of the job: see [`Job`](super::Job).
    pub number: u64,
}

/// The number of each PE within its node, for the PEs whose memory is in a segment of `n_here` PEs: all, or
/// those of PE `me`'s node.
pub fn slots(me: Pe, nodes: &[u32], n_here: usize) -> Slots {
    let is_here = |&pe: &Pe| n_here == nodes.len() || nodes[pe] == nodes[me];
    Slots::new(nodes.len(), (0..nodes.len()).filter(is_here))
}

/// The number of each PE's node. `names` names the node of each of `n_pes` PEs; without names all PEs are on
/// one node.
pub fn numbered(n_pes: usize, names: &[u32]) -> Box<[u32]> {
    if names.is_empty() {
        return vec![0; n_pes].into();
    }
    let mut numbers = HashMap::new();
    let mut number = |pe: Pe| {
        let next = numbers.len() as u32;
        *numbers.entry(names[pe]).or_insert(next)
    };
    (0..n_pes).map(&mut number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_by_their_lowest_pes() {
        assert_eq!(*numbered(3, &[]), [0, 0, 0]);
        assert_eq!(*numbered(6, &[9, 4, 9, 7, 4, 0]), [0, 1, 0, 2, 1, 3]);
        assert_eq!(*numbered(1, &[5]), [0]);
    }

    #[test]
    fn the_pes_of_a_node_are_numbered_in_their_order() {
        let slots = |me, nodes: &[u32], n_here| {
            let slots = slots(me, nodes, n_here);
            (0..nodes.len()).map(|pe| slots.of(pe)).collect::<Vec<_>>()
        };
        assert_eq!(slots(1, &[0, 1, 0, 1], 2), [None, Some(0), None, Some(1)]);
        assert_eq!(slots(1, &[0, 1, 0], 3), [Some(0), Some(1), Some(2)]);
        assert_eq!(slots(1, &[0, 1], 1), [None, Some(0)]);
    }
}
