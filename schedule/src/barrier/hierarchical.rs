//! A barrier in two levels: the ranks of a node signal their arrival to their leader, its lowest rank; the
//! leaders pass a dissemination barrier; each leader releases the ranks of its node.
//!
//! Cost, for L nodes: ceil(log2 L) rounds between nodes with one signal from each leader in each, and 2
//! signals for each other rank inside its node.
//! Source: Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999, MagPIe.

use super::dissemination;
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Barrier,
    name: "hierarchical",
    summary: "to the leader of the node, dissemination among leaders, release in the node",
    source: "Kielmann, Hofman, Bal, Plaat, Bhoedjang 1999",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

/// The slot in which a rank that is not a leader is released.
const RELEASE: usize = 0;

fn build(shape: &Shape, b: &mut Builder) {
    let nodes = shape.groups();
    let own = nodes.group(shape.rank);
    let leader = nodes.leader(own);
    // A leader's first slots are for the rounds with other leaders.
    let arrivals = dissemination::rounds(nodes.len());
    let others = nodes.ranks(own).iter().skip(1).zip(arrivals..);
    if shape.rank != leader {
        for (_, slot) in others.filter(|&(rank, _)| rank == shape.rank) {
            b.signal(leader, slot);
        }
        b.wait(leader, RELEASE);
        return;
    }
    for (rank, slot) in others.clone() {
        b.wait(rank, slot);
    }
    dissemination::among(b, own, nodes.len(), |group| nodes.leader(group));
    for (rank, _) in others {
        b.signal(rank, RELEASE);
    }
}
