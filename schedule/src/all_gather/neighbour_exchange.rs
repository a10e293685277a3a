//! All-gather by neighbour exchange: each rank exchanges blocks with its two neighbours alternately, first
//! its own block, then the blocks of its pair, and from then on the pair of blocks that arrived last. For
//! even n.
//!
//! Invariant: ranks 2q and 2q + 1 form pair q. After round j an even rank has the blocks of j + 1 pairs
//! around its own, one more before than after it if j is odd; for an odd rank it is the other way round.
//! Cost: n / 2 rounds, n / 2 messages from each rank to its two neighbours; each rank receives n - 1 blocks.
//! Source: Chen, Zhang, Zhang, Yuan 2005.

use crate::algorithm::{Algorithm, Fold, Graph};
use crate::layout::Layout;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllGather,
    name: "neighbour_exchange",
    summary: "pairs of blocks, with the two neighbours alternately",
    source: "Chen, Zhang, Zhang, Yuan 2005",
    fold: Fold::None,
    graph: Graph::Other,
    restriction,
    build,
};

fn restriction(shape: &Shape) -> Option<&'static str> {
    (shape.n > 1 && !shape.n.is_multiple_of(2)).then_some("the number of PEs must be even")
}

fn build(shape: &Shape, b: &mut Builder) {
    let (layout, me, n) = (Layout::of(shape), shape.rank, shape.n);
    if n > 1 {
        layout.put_own(b, me, me ^ 1, 0);
    }
    layout.copy_own(b, me);
    if n > 1 {
        b.wait(me ^ 1, 0);
    }
    for round in 1..n / 2 {
        // Odd rounds cross between pairs: the even rank to the one before it, the odd rank to the next.
        let partner = match (round % 2, me % 2) {
            (0, _) => me ^ 1,
            (_, 0) => (me + n - 1) % n,
            (_, _) => (me + 1) % n,
        };
        let pair = last_pair(me, n, round - 1);
        layout.pass_on(b, 2 * pair..2 * pair + 2, partner, round);
        b.wait(partner, round);
    }
}

/// The pair whose blocks a rank has received in a round; its own pair after round 0.
fn last_pair(rank: usize, n: usize, round: usize) -> usize {
    let (pairs, away) = (n / 2, round.div_ceil(2));
    let forward = round % 2 == rank % 2;
    match forward {
        true => (rank / 2 + away) % pairs,
        false => (rank / 2 + pairs - away) % pairs,
    }
}
