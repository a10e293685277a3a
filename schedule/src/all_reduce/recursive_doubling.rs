//! All-reduce by recursive doubling (Thakur, Rabenseifner, Gropp 2005).
//!
//! In round k each rank exchanges the sum of 2^k neighbouring ranks with the rank at distance 2^k, and both
//! combine the two sums. log2 n rounds with n messages of a block each, and if n is not a power of two, two
//! rounds more and 2 messages more for each extra rank. This is the minimum number of rounds, but every block
//! travels log2 n times. Each block larger than a mailbox costs one announcement, except in the first round
//! if the operation is not in place.
//!
//! A team of two ranks exchanges large blocks in segments, unless the operation is in place: a segment is
//! combined while the next segments are in flight.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::doubling::{Group, all_reduce};
use crate::combine::{contribution, parts_bytes};
use crate::schedule::{Builder, Place, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "recursive_doubling",
    summary: "in round k everybody exchanges sums with the rank 2^k away",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::Tree,
    graph: Graph::Doubling,
    restriction: unrestricted,
    build,
};

/// The length of a segment, and the maximum number of segments, which take one slot each.
const SEGMENT_BYTES: usize = 128 << 10;
const SEGMENTS_MAX: usize = 8;

fn build(shape: &Shape, b: &mut Builder) {
    let bytes = shape.block_bytes();
    if shape.n == 2 && !shape.in_place && bytes > SEGMENT_BYTES.max(b.mailbox_bytes()) {
        return exchange(shape, b, bytes.div_ceil(SEGMENT_BYTES).min(SEGMENTS_MAX));
    }
    let group = Group::team(shape.n, shape.rank);
    all_reduce(b, group, contribution(shape), bytes, !shape.in_place, 0);
}

/// The exchange of two ranks in segments. Segment i uses slot i. The segments arrive in the target.
fn exchange(shape: &Shape, b: &mut Builder, segments: usize) {
    let partner = 1 - shape.rank;
    let places = || (0..segments).map(|segment| parts_bytes(shape, segments, segment, segment + 1));
    for (slot, (offset, bytes)) in places().enumerate() {
        b.put_signal(partner, Place::source(offset), Remote::Target(offset), bytes, slot);
    }
    for (slot, (offset, bytes)) in places().enumerate() {
        b.wait(partner, slot);
        let (mine, got) = (Place::source(offset), Place::target(offset));
        let (left, right) = if partner < shape.rank { (got, mine) } else { (mine, got) };
        b.reduce(left, right, got, bytes);
    }
}
