//! A chain from rank to rank, through which a block goes in pieces.
//!
//! Invariant: piece i uses slot i. A piece that exceeds a mailbox goes into the target of the next rank; if
//! the target is the source as well, it goes into scratch memory that the next rank announces once.

use crate::combine::transfer::{deliver, take};
use crate::schedule::{Builder, Place, Remote};
use crate::shape::{SEGMENTS_MAX, Shape};

/// The slot in which the next rank announces its buffer.
const ANNOUNCED: usize = SEGMENTS_MAX;

/// One rank's place in the chain.
pub(super) struct Chain<'a> {
    shape: &'a Shape,
    pieces: usize,
    /// Whether a piece is too large for a mailbox.
    needs_room: bool,
    room: Place,
}

impl Chain<'_> {
    /// Joins the chain.
    pub(super) fn join<'a>(shape: &'a Shape, b: &mut Builder) -> Chain<'a> {
        let pieces = shape.segments(shape.block_bytes()).min(shape.count.max(1));
        let needs_room = shape.part_bytes(shape.count, pieces, 0).1 > b.mailbox_bytes();
        let mut chain = Chain { shape, pieces, needs_room, room: Place::target(0) };
        if chain.needs_announcement(shape.rank) {
            chain.room = b.scratch(shape.block_bytes());
            b.announce(shape.rank - 1, ANNOUNCED, chain.room);
        }
        if !chain.is_last() && chain.needs_announcement(shape.rank + 1) {
            b.wait(shape.rank + 1, ANNOUNCED);
        }
        chain
    }

    fn needs_announcement(&self, rank: usize) -> bool {
        rank > 0 && self.needs_room && self.shape.in_place
    }

    /// Whether this rank is the last one.
    pub(super) fn is_last(&self) -> bool {
        self.shape.rank + 1 == self.shape.n
    }

    /// The pieces: number, offset and bytes of each.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.pieces).map(|piece| {
            let (offset, bytes) = self.shape.part_bytes(self.shape.count, self.pieces, piece);
            (piece, offset, bytes)
        })
    }

    /// Waits for a piece from the rank before. Returns its place.
    pub(super) fn take(&self, b: &mut Builder, (piece, offset, bytes): (usize, usize, usize)) -> Place {
        take(b, self.shape.rank - 1, bytes, self.room.plus(offset), piece)
    }

    /// Forwards a piece to the next rank.
    pub(super) fn hand_on(
        &self,
        b: &mut Builder,
        from: Place,
        (piece, offset, bytes): (usize, usize, usize),
    ) {
        let next = self.shape.rank + 1;
        let into = match self.needs_announcement(next) {
            true => Remote::Announced { slot: ANNOUNCED, offset },
            false => Remote::Target(offset),
        };
        deliver(b, next, from, bytes, into, piece);
    }
}
