//! Rabenseifner's all-reduce (Rabenseifner 2004): a reduce-scatter by halving, then an all-gather by
//! doubling.
//!
//! In round k a rank exchanges halves of the part that it still combines with the rank at distance 2^k; the
//! halves go back in the opposite order. Since neighbours exchange first, every partial sum is that of a
//! range of ranks, and the order of operands is kept; each element is summed at one rank only. 2 log2 n
//! rounds, 2 n log2 n messages; each rank sends 2 (n - 1) / n blocks. If n is not a power of two, the extra
//! ranks first send whole blocks to their neighbours and receive the result from them at the end.
//!
//! Operands that arrive to be combined need a buffer. The target is one: the first operands to arrive go to
//! the half that this rank keeps, the rest to the half that it gives away, until the target's rank signals
//! that the result may be written there. If the target already holds data, or the parts do not fit in this
//! way, the buffer is in scratch memory, which is announced to the partner of each round: at most log2 n
//! messages more for each rank.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::doubling::Pairing;
use crate::combine::transfer::{Inbox, Incoming, Wire, deliver, give, take};
use crate::combine::{contribution, parts_bytes};
use crate::schedule::{Builder, Place, Remote, Slot};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "rabenseifner",
    summary: "halves of halves are combined, then gathered again",
    source: "Rabenseifner 2004",
    fold: Fold::Tree,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let bytes = shape.block_bytes();
    let (own, target) = (contribution(shape), Place::target(0));
    if shape.n == 1 {
        return b.copy(own, target, bytes);
    }
    let pairing = Pairing::of(shape.n);
    let handed = 3 * pairing.rounds;
    let wire = Wire { data: handed, room: handed + 1 };
    let Some(number) = pairing.number(shape.rank) else {
        let to = shape.rank - 1;
        give(b, to, own, bytes, wire, !shape.in_place);
        return b.wait(to, handed);
    };
    let mut have = own;
    if pairing.is_doubled(number) {
        let incoming = Incoming { of: shape.rank + 1, wire, into_target: !shape.in_place };
        let got = Inbox::open(b, bytes, vec![incoming]).receive(b);
        b.reduce(own, got, target, bytes);
        have = target;
    }
    Halving { shape, pairing, number }.all_reduce(b, have);
    if pairing.is_doubled(number) {
        b.put_signal(shape.rank + 1, target, Remote::Target(0), bytes, handed);
    }
}

/// A range of parts, by their numbers.
type Parts = (usize, usize);

/// The rounds of one rank that takes part in the halving.
struct Halving<'a> {
    shape: &'a Shape,
    pairing: Pairing,
    number: usize,
}

impl Halving<'_> {
    fn all_reduce(&self, b: &mut Builder, mut have: Place) {
        let target = Place::target(0);
        let rounds = self.pairing.rounds;
        let rooms = self.announce_rooms(b);
        for (round, room) in rooms.into_iter().enumerate() {
            let (keeps, gives) = self.halves(self.number, round);
            let partner = self.number ^ (1 << round);
            let to = self.pairing.rank(partner);
            let (offset, bytes) = self.place(gives);
            let into = match self.room_in_target(partner, round) {
                Some(offset) => Remote::Target(offset),
                None => Remote::Announced { slot: self.room_slot(round), offset: 0 },
            };
            if matches!(into, Remote::Announced { .. }) && bytes > b.mailbox_bytes() {
                b.wait(to, self.room_slot(round));
            }
            deliver(b, to, have.plus(offset), bytes, into, round);
            let (offset, bytes) = self.place(keeps);
            let got = take(b, to, bytes, room, round);
            let mine = have.plus(offset);
            let (left, right) = if partner < self.number { (got, mine) } else { (mine, got) };
            b.reduce(left, right, target.plus(offset), bytes);
            have = target;
        }
        self.exchange_readiness(b);
        for round in (0..rounds).rev() {
            let (keeps, _) = self.halves(self.number, round);
            let to = self.pairing.rank(self.number ^ (1 << round));
            let (offset, bytes) = self.place(keeps);
            b.put_signal(to, target.plus(offset), Remote::Target(offset), bytes, rounds + round);
            b.wait(to, rounds + round);
        }
    }

    fn room_slot(&self, round: usize) -> Slot {
        2 * self.pairing.rounds + round
    }

    fn parts(&self) -> usize {
        1 << self.pairing.rounds
    }

    /// The parts that the rank with this number keeps and the parts that it gives away in a round.
    fn halves(&self, number: usize, round: usize) -> (Parts, Parts) {
        let (mut start, mut end) = (0, self.parts());
        for earlier in 0.. {
            let middle = (start + end) / 2;
            let (mut keeps, mut gives) = ((start, middle), (middle, end));
            if number >> earlier & 1 == 1 {
                (keeps, gives) = (gives, keeps);
            }
            if earlier == round {
                return (keeps, gives);
            }
            (start, end) = keeps;
        }
        unreachable!("the round comes")
    }

    /// Offset and length of parts in a block, in bytes.
    fn place(&self, (start, end): Parts) -> (usize, usize) {
        parts_bytes(self.shape, self.parts(), start, end)
    }

    /// Whether the operands that the rank with this number receives fit in its target.
    fn has_room(&self, number: usize) -> bool {
        let (elements, parts) = (self.shape.count / self.parts(), self.parts());
        !self.shape.in_place && !self.pairing.is_doubled(number) && elements >= parts / 2
    }

    /// The offset in its target at which the rank with this number receives the operands of a round, if they
    /// fit there.
    fn room_in_target(&self, number: usize, round: usize) -> Option<usize> {
        if !self.has_room(number) {
            return None;
        }
        let bytes = |round| self.place(self.halves(number, round).0).1;
        let (keeps, gives) = self.halves(number, 0);
        match round {
            0 => Some(self.place(keeps).0),
            _ => Some(self.place(gives).0 + (1..round).map(bytes).sum::<usize>()),
        }
    }

    /// The buffers in which this rank receives the operands of each round. Announces them to the partners
    /// that must know.
    fn announce_rooms(&self, b: &mut Builder) -> Vec<Place> {
        let mut rooms = Vec::with_capacity(self.pairing.rounds);
        for round in 0..self.pairing.rounds {
            let (_, bytes) = self.place(self.halves(self.number, round).0);
            rooms.push(match self.room_in_target(self.number, round) {
                Some(room) => Place::target(room),
                None if bytes <= b.mailbox_bytes() => Place::mailbox(round),
                None => {
                    let room = b.scratch(bytes);
                    let of = self.pairing.rank(self.number ^ (1 << round));
                    b.announce(of, self.room_slot(round), room);
                    room
                }
            });
        }
        rooms
    }

    /// The partner that works on the other half may finish while this rank still combines operands that lie
    /// in that half of the target. So each partner signals to the other when it no longer reads them.
    fn exchange_readiness(&self, b: &mut Builder) {
        let partner = self.number ^ 1;
        let to = self.pairing.rank(partner);
        let slot = 3 * self.pairing.rounds + 2;
        if self.pairing.rounds > 1 && self.has_room(self.number) {
            b.signal(to, slot);
        }
        if self.pairing.rounds > 1 && self.has_room(partner) {
            b.wait(to, slot);
        }
    }
}
