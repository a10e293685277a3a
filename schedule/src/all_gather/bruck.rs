//! All-gather by dissemination: in round k each rank sends all blocks that it has, its own and those of the
//! 2^k - 1 ranks before it, to the rank at distance 2^k.
//!
//! Blocks go to their final places, so that nothing is rotated at the end. Blocks that wrap around the end
//! of the target are two pieces and take two messages.
//!
//! Cost: ceil(log2 n) rounds, n - 1 blocks to each rank; one message a round, for some ranks two.
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby 1997, the concatenation; without its rotation.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::layout::Layout;
use crate::schedule::Builder;
use crate::shape::{Operation, Shape};
use std::ops::Range;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllGather,
    name: "bruck",
    summary: "dissemination: in round k each rank sends all its blocks to the rank at distance 2^k",
    source: "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (layout, me, n) = (Layout::of(shape), shape.rank, shape.n);
    if n > 1 {
        layout.put_own(b, me, (me + 1) % n, 0);
    }
    layout.copy_own(b, me);
    let (mut round, mut distance) = (0, 1);
    while distance < n {
        let (to, of) = ((me + distance) % n, (me + n - distance) % n);
        // The last round carries only the blocks that are still missing.
        let blocks = distance.min(n - distance);
        if round > 0 {
            pieces(me, blocks, n).for_each(|(part, ranks)| layout.pass_on(b, ranks, to, 2 * round + part));
        }
        pieces(of, blocks, n).for_each(|(part, _)| b.wait(of, 2 * round + part));
        (round, distance) = (round + 1, 2 * distance);
    }
}

/// The `blocks` blocks that end with the block of rank `last`, as one or two numbered ranges of ranks.
fn pieces(last: usize, blocks: usize, n: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = last + 1;
    let round_the_end = blocks.saturating_sub(end);
    let ranges = [end - (blocks - round_the_end)..end, n - round_the_end..n];
    ranges.into_iter().enumerate().filter(|(_, ranks)| !ranks.is_empty())
}
