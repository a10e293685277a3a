//! What scans by recursive doubling exchange: in round k each rank hands a sum to the rank 2^k further on.
//!
//! Invariant: who takes something in a round has taken something in all rounds before, and so with giving.

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
    /// Prepares them. What comes first goes into the target, unless that is the source as well.
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

    /// Whether this rank gives something in a round.
    pub(super) fn gives(&self, round: usize) -> bool {
        self.shape.rank + (1 << round) < self.shape.n
    }

    /// Whether this rank takes something in a round.
    pub(super) fn takes(&self, round: usize) -> bool {
        self.shape.rank >= 1 << round
    }

    /// Gives what is due in a round.
    pub(super) fn give(&self, b: &mut Builder, round: usize, from: Place) {
        let to = self.shape.rank + (1 << round);
        let into_target = round == 0 && !self.shape.in_place;
        give(b, to, from, self.shape.block_bytes(), wire(self.shape, round), into_target);
    }

    /// Takes what is due next.
    pub(super) fn take(&mut self, b: &mut Builder) -> Place {
        self.inbox.receive(b)
    }

    /// What was taken has been combined.
    pub(super) fn release(&mut self, b: &mut Builder) {
        self.inbox.release(b);
    }
}

fn wire(shape: &Shape, round: usize) -> Wire {
    Wire { data: round, room: levels(shape.n) + round }
}
