//! The nodes of a job: which PEs share a node.
//!
//! Invariant: nodes are numbered from 0, in the order of their lowest PEs, regardless of their names. The PEs
//! of a node are numbered from 0 as well, in ascending order.

use crate::Pe;
use crate::memory::route::Reach;
use pelago_fabric::Net;

/// The nodes of a job's PEs, and the network between them.
pub struct Placement {
    /// The network to PEs that are not mapped, if there are any.
    pub net: Option<Net>,
    pub reach: Reach,
    /// The name of the node of each PE; empty if all PEs are on one node.
    pub nodes: Vec<u32>,
    /// The number of the process of each PE; empty if the processes do not share a PID namespace.
    pub pids: Vec<u32>,
}

/// The number of each PE within its node, for the PEs whose memory is in a segment of `n_here` PEs: all, or
/// those of PE `me`'s node.
pub fn slots(me: Pe, nodes: &[u32], n_here: usize) -> Box<[Option<u32>]> {
    let mut next = 0..;
    let is_here = |pe: Pe| n_here == nodes.len() || nodes[pe] == nodes[me];
    (0..nodes.len()).map(|pe| is_here(pe).then(|| next.next()).flatten()).collect()
}

/// The number of each PE's node. `names` names the node of each of `n_pes` PEs; without names all PEs are on
/// one node.
pub fn numbered(n_pes: usize, names: &[u32]) -> Box<[u32]> {
    if names.is_empty() {
        return vec![0; n_pes].into();
    }
    let mut lowest: Vec<u32> = Vec::new();
    let mut number = |pe: Pe| match lowest.iter().position(|name| *name == names[pe]) {
        Some(known) => known as u32,
        None => {
            lowest.push(names[pe]);
            lowest.len() as u32 - 1
        }
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
        assert_eq!(*slots(1, &[0, 1, 0, 1], 2), [None, Some(0), None, Some(1)]);
        assert_eq!(*slots(1, &[0, 1, 0], 3), [Some(0), Some(1), Some(2)]);
        assert_eq!(*slots(1, &[0, 1], 1), [None, Some(0)]);
    }
}
