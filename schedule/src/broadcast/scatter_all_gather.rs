//! Broadcast of a large block: it is cut into n parts and scattered over a binomial tree, then the ranks
//! gather the parts around a ring.
//!
//! Invariant: with ranks numbered from the root, the scatter leaves a rank with the parts of its subtree,
//! which are contiguous. The ring does not send it these parts again, so no rank writes memory that is being
//! read.
//! Cost: ceil(log2 n) + n - 1 rounds; each rank receives the block once, and the busiest rank sends about 2 s
//! bytes for a block of s bytes, whatever n is.
//! Source: Barnett, Shuler, van de Geijn, Gupta, Payne, Watts 1994, InterCom.

use super::steps::{DATA, keep, origin};
use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::schedule::{Builder, Remote};
use crate::shape::{Operation, Shape};
use crate::tree;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::Broadcast,
    name: "scatter_all_gather",
    summary: "binomial scatter of n parts, then a ring of them",
    source: "Barnett, Shuler, van de Geijn, Gupta, Payne, Watts 1994",
    fold: Fold::None,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (me, n) = (shape.relative(), shape.n);
    let start = |part| shape.part_bytes(shape.count, n, part).0;
    let put = |b: &mut Builder, to, parts: std::ops::Range<usize>, slot| {
        let (at, end) = (start(parts.start), start(parts.end));
        let from = origin(shape).plus(at);
        b.put_signal(shape.absolute(to), from, Remote::Target(at), end - at, slot);
    };

    let links = tree::k_nomial(me, n, 2);
    if let Some(parent) = links.parent {
        b.wait(shape.absolute(parent), DATA);
    }
    for child in links.children {
        put(b, child, tree::binomial_subtree(child, n), DATA);
    }

    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    for round in 0..n - 1 {
        let (out, into) = ((me + n - round) % n, (left + n - round) % n);
        if !tree::binomial_subtree(right, n).contains(&out) {
            put(b, right, out..out + 1, DATA + 1 + round);
        }
        if !tree::binomial_subtree(me, n).contains(&into) {
            b.wait(shape.absolute(left), DATA + 1 + round);
        }
    }
    keep(shape, b);
}
