//! All-to-all by dissemination: a block has to go some distance round the ranks, and goes it in steps of
//! powers of two, all blocks that need a step together in one message.
//!
//! Invariant: before the round of distance 2^k, place i of the row holds a block that has gone the lowest k
//! bits of i and is to go i in all. A block whose highest bit is done has arrived, and goes to the target.
//!
//! A round's message goes to a mailbox if it fits, else to scratch memory that the receiver announces.
//!
//! Cost: ceil(log2 n) rounds, as many messages of each rank, of at most n / 2 blocks each, and as many
//! announcements if those are large. For small blocks: each is sent log2(n) / 2 times on average.
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby 1997, the index operation.

use crate::algorithm::{Algorithm, Fold, Graph};
use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::shape::{Blocks, Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllToAll,
    name: "bruck",
    summary: "dissemination: blocks go their way in steps of powers of two",
    source: "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    fold: Fold::None,
    graph: Graph::Doubling,
    restriction,
    build,
};

fn restriction(shape: &Shape) -> Option<&'static str> {
    (shape.blocks != Blocks::Equal).then_some("the blocks must be of one size, one after the other")
}

/// The places of a row of n blocks whose number has one bit set, and the message of these.
struct Round {
    /// The bit, which is the distance that the round's blocks go.
    distance: usize,
    /// Whole runs of `distance` places, one every second of such runs.
    runs: usize,
    /// Places of a last run that is cut off by the end of the row.
    rest: usize,
    /// The slot for the message, of which there is one a round.
    slot: Slot,
}

impl Round {
    fn all(n: usize) -> impl Iterator<Item = Round> {
        (0..n.next_power_of_two().trailing_zeros() as usize).map(move |slot| {
            let distance = 1 << slot;
            let (runs, rest) = (n / (2 * distance), (n % (2 * distance)).saturating_sub(distance));
            Round { distance, runs, rest, slot }
        })
    }

    /// Blocks of the message.
    fn blocks(&self) -> usize {
        self.runs * self.distance + self.rest
    }

    /// From the row, whole, to the message.
    fn pack(&self, b: &mut Builder, row: Place, message: Place, block: usize) {
        let (run, row) = (self.distance * block, row.plus(self.distance * block));
        b.copy_strided((row, 2 * run), (message, run), run, self.runs);
        b.copy(row.plus(self.runs * 2 * run), message.plus(self.runs * run), self.rest * block);
    }

    /// From the message, but for its first run, to the row.
    fn unpack(&self, b: &mut Builder, message: Place, row: Place, block: usize) {
        let (run, row) = (self.distance * block, row.plus(self.distance * block));
        if self.runs > 0 {
            b.copy_strided((message.plus(run), run), (row.plus(2 * run), 2 * run), run, self.runs - 1);
            b.copy(message.plus(self.runs * run), row.plus(self.runs * 2 * run), self.rest * block);
        }
    }
}

fn build(shape: &Shape, b: &mut Builder) {
    let (me, n, block) = (shape.rank, shape.n, shape.block_bytes());
    let mut rounds = Round::all(n).peekable();
    let mut room = rounds.peek().map(|first| expect(b, first, me, n, block));

    b.copy(Place::source(me * block), Place::target(me * block), block);
    let row = b.scratch(n * block);
    b.copy(Place::source((me + 1) * block), row.plus(block), (n - me - 1) * block);
    b.copy(Place::source(0), row.plus((n - me) * block), me * block);

    while let (Some(round), Some(message)) = (rounds.next(), room) {
        send(b, &round, row, me, n, block);
        room = rounds.peek().map(|next| expect(b, next, me, n, block));
        b.wait((me + n - round.distance) % n, round.slot);
        round.unpack(b, message, row, block);
        for index in 0..round.distance.min(round.blocks()) {
            let of = (me + n - round.distance - index) % n;
            b.copy(message.plus(index * block), Place::target(of * block), block);
        }
    }
}

/// Sends the message of a round.
fn send(b: &mut Builder, round: &Round, row: Place, me: Rank, n: usize, block: usize) {
    let (to, bytes, slot) = ((me + round.distance) % n, round.blocks() * block, round.slot);
    let message = b.scratch(bytes);
    round.pack(b, row, message, block);
    if bytes <= b.mailbox_bytes() {
        b.send(to, message, bytes, slot);
    } else {
        let room = Remote::Announced { slot: announcement(slot), offset: 0 };
        b.wait(to, announcement(slot));
        b.put_signal(to, message, room, bytes, slot);
    }
}

/// Where the message of a round will come; announces it if need be. That is done one round ahead, after the
/// message of that round: so two ranks of which each is before the other agree on the order of their signals.
fn expect(b: &mut Builder, round: &Round, me: Rank, n: usize, block: usize) -> Place {
    let bytes = round.blocks() * block;
    if bytes <= b.mailbox_bytes() {
        return Place::mailbox(round.slot);
    }
    let room = b.scratch(bytes);
    b.announce((me + n - round.distance) % n, announcement(round.slot), room);
    room
}

/// The sender's slot for the announcement of a round's message; there are fewer rounds than this.
fn announcement(slot: Slot) -> Slot {
    slot + usize::BITS as usize / 2
}
