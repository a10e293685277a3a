//! All-to-all by dissemination: a block travels its distance around the ranks in steps of powers of two. All
//! blocks that need a step go together in one message.
//!
//! Invariant: before the round of distance 2^k, place i of the row holds a block whose whole distance is i
//! and which has travelled the lowest k bits of i. A block that has travelled its highest bit has arrived
//! and goes to the target.
//!
//! A round's message goes to a mailbox if it fits, else to scratch memory that the receiver announces.
//!
//! Cost: ceil(log2 n) rounds, in each of which a rank sends one message of at most n / 2 blocks, and one
//! announcement if the messages are large. The algorithm suits small blocks: each is sent log2(n) / 2 times
//! on average.
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby 1997, the index operation.

use crate::algorithm::{Algorithm, Fold, Graph};
use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::shape::{Blocks, Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllToAll,
    name: "bruck",
    summary: "dissemination: blocks travel in steps of powers of two",
    source: "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    fold: Fold::None,
    graph: Graph::Other,
    restriction,
    build,
};

fn restriction(shape: &Shape) -> Option<&'static str> {
    (shape.blocks != Blocks::Equal).then_some("the blocks must be of one size, one after the other")
}

/// The places of a row of n blocks whose number has a given bit set, and the message that carries their
/// blocks.
struct Round {
    /// The bit, which is the distance that the round's blocks go.
    distance: usize,
    /// Number of whole runs of `distance` places; every second run belongs to the message.
    runs: usize,
    /// Places of the last run, if the end of the row cuts it off.
    rest: usize,
    /// The slot for the message; each round has one message.
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

    /// Number of blocks of the message.
    fn blocks(&self) -> usize {
        self.runs * self.distance + self.rest
    }

    /// Copies the blocks of the round from the row to the message.
    fn pack(&self, b: &mut Builder, row: Place, message: Place, block: usize) {
        let (run, row) = (self.distance * block, row.plus(self.distance * block));
        b.copy_strided((row, 2 * run), (message, run), run, self.runs);
        b.copy(row.plus(self.runs * 2 * run), message.plus(self.runs * run), self.rest * block);
    }

    /// Copies the message, except its first run, to the row.
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

/// Returns the place where the message of a round will arrive, and announces it if necessary. This happens
/// one round ahead, after the message of that round is sent: so two ranks that each send to the other agree
/// on the order of their signals.
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
