//! All-gather in lanes: each rank exchanges blocks around a ring of the ranks that have its place on other
//! nodes, and passes all blocks of its ring on to the other ranks of its node. Every block crosses to a node
//! once, and all ranks of a node take part in that.
//!
//! Cost, for L nodes of k ranks: L rounds; each rank sends L - 1 messages of one block to the next node, and
//! L to each of the k - 1 other ranks of its node.
//! Source: Träff, Hunold 2020, Decomposing MPI collectives for exploiting multi-lane communication.

use crate::algorithm::{Algorithm, Fold, Graph, equal_nodes};
use crate::layout::Layout;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllGather,
    name: "lanes",
    summary: "rings of one rank of each node, and within each node to all",
    source: "Träff, Hunold 2020",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: equal_nodes,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (layout, nodes, me) = (Layout::of(shape), shape.groups(), shape.rank);
    let (own, place, n) = (nodes.group(me), nodes.place(me), nodes.len());
    let neighbour = |distance: usize| nodes.ranks((own + distance) % n).at(place);
    let (left, right) = (neighbour(n - 1), neighbour(1));
    let mates = nodes.ranks(own);
    let mate = |distance: usize| mates.at((place + distance) % mates.len());
    // The slots of the ring, and then those of each mate, by its distance, for each block of its ring.
    let slot = |distance: usize, step: usize| n - 1 + (distance - 1) * n + step;

    let wait_for_mates = |b: &mut Builder, step: usize| {
        for distance in 1..mates.len() {
            b.wait(mate(mates.len() - distance), slot(distance, step));
        }
    };

    if n > 1 {
        layout.put_own(b, me, right, 0);
    }
    for distance in 1..mates.len() {
        layout.put_own(b, me, mate(distance), slot(distance, 0));
    }
    layout.copy_own(b, me);
    for step in 1..n {
        b.wait(left, step - 1);
        let block = neighbour(n - step);
        if step < n - 1 {
            layout.pass_on(b, block..block + 1, right, step);
        }
        for distance in 1..mates.len() {
            layout.pass_on(b, block..block + 1, mate(distance), slot(distance, step));
        }
        // A step later, so that few messages between two ranks are under way, and none is waited for early.
        wait_for_mates(b, step - 1);
    }
    wait_for_mates(b, n - 1);
}
