//! Pipelined chain: the block goes from rank to rank in pieces, each handed on as soon as it has come.
//!
//! Cost, for p pieces: n + p - 2 rounds, (n - 1) p messages; each rank but the last sends the whole block
//! once.
//! Source: Watts and van de Geijn 1995, a pipelined broadcast for multidimensional meshes.

use super::super::schedule::{Builder, Remote};
use super::super::shape::Shape;

pub(super) fn build(shape: &Shape, b: &mut Builder) {
    let relative = shape.relative();
    let pieces = shape.segments(shape.block_bytes());
    for piece in 0..pieces {
        let (offset, bytes) = shape.part_bytes(shape.count, pieces, piece);
        if relative > 0 {
            b.wait(shape.absolute(relative - 1), piece);
        }
        if relative + 1 < shape.n {
            let from = super::origin(shape).plus(offset);
            b.put_signal(shape.absolute(relative + 1), from, Remote::Target(offset), bytes, piece);
        }
    }
    super::keep(shape, b);
}
