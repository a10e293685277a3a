//! The parts that the algorithms that combine data share: transfers of operands, trees that keep their order,
//! the fold in the order of ranks, recursive doubling.

pub mod doubling;
pub mod rank_fold;
pub mod transfer;
pub mod tree;

use crate::schedule::Place;
use crate::shape::Shape;

/// The place of this rank's contribution. In an operation in place this is the target, so a comparison with
/// the target tells the two cases apart.
pub fn contribution(shape: &Shape) -> Place {
    if shape.in_place && shape.target_bytes() > 0 { Place::target(0) } else { Place::source(0) }
}

/// Bytes and offset of the parts `start` to `end - 1`, if the block is cut into `parts` parts.
pub fn parts_bytes(shape: &Shape, parts: usize, start: usize, end: usize) -> (usize, usize) {
    let (from, _) = shape.part_bytes(shape.count, parts, start);
    let (to, _) = shape.part_bytes(shape.count, parts, end);
    (from, to - from)
}
