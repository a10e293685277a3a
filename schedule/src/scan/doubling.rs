//! The exchanges of scans by recursive doubling: in round k each rank sends a sum to the rank at distance
//! 2^k.
//!
//! Invariant: a rank that receives in a round has received in all rounds before; the same holds for sending.

use crate::combine::transfer::{Inbox, Incoming, Wire, give};
use crate::combine::tree::levels;
use crate::schedule::{Builder, Place};
use crate::shape::Shape;

/// The exchanges of one rank.
pub(super) struct Doubling<'a> {
    shape: &'a Shape,
    inbox: Inbox,
}

impl Doubling<'_> {
    /// Prepares the exchanges. The first operand goes into the target, unless that is the source as well.
    pub(super) fn join<'a>(shape: &'a Shape, b: &mut Builder) -> Doubling<'a> {
        let takes = (0..levels(shape.n)).take_while(|&round| shape.rank >= 1 << round);
        let incoming = |round: usize| Incoming {
            of: shape.rank - (1_usize << round),
            wire: wire(shape, round),
            into_target: round == 0 && !shape.in_place,
        };
        let inbox = Inbox::open(b, shape.block_bytes(), takes.map(incoming).collect());
        Doubling { shape, inbox }
    }

    /// The rounds.
    pub(super) fn rounds(&self) -> std::ops::Range<usize> {
        0..levels(self.shape.n)
    }

    /// Whether this rank sends in a round.
    pub(super) fn gives(&self, round: usize) -> bool {
        self.shape.rank + (1 << round) < self.shape.n
    }

    /// Whether this rank receives in a round.
    pub(super) fn takes(&self, round: usize) -> bool {
        self.shape.rank >= 1 << round
    }

    /// Sends the operand of a round.
    pub(super) fn give(&self, b: &mut Builder, round: usize, from: Place) {
        let to = self.shape.rank + (1 << round);
        let into_target = round == 0 && !self.shape.in_place;
        give(b, to, from, self.shape.block_bytes(), wire(self.shape, round), into_target);
    }

    /// Receives the next operand.
    pub(super) fn take(&mut self, b: &mut Builder) -> Place {
        self.inbox.receive(b)
    }

    /// All operands that were received have been combined.
    pub(super) fn release(&mut self, b: &mut Builder) {
        self.inbox.release(b);
    }
}

fn wire(shape: &Shape, round: usize) -> Wire {
    Wire { data: round, room: levels(shape.n) + round }
}
