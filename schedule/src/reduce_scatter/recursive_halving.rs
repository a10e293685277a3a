//! Reduce-scatter by recursive halving (Thakur, Rabenseifner, Gropp 2005), for any number of ranks.
//!
//! A range of ranks is cut in halves; the lower half has the extra rank, if the number is odd. Rank i of one
//! half and rank i of the other half exchange their operands for the other half's blocks, and combine what
//! they receive with their operands for the blocks of their own half. An extra rank sends its operands to the
//! last rank of the upper half. Then each half continues by itself, down to one rank. ceil(log2 n) rounds, in
//! each of which a rank sends one message, in total n - 1 blocks if n is a power of two. Each message larger
//! than a mailbox costs one announcement. A rank's operands are combined with those of the rank half a range
//! away, so the operation must commute.

use crate::algorithm::{Algorithm, Fold, Graph, unrestricted};
use crate::combine::transfer::{deliver, take};
use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::ReduceScatter,
    name: "recursive_halving",
    summary: "halves of the team exchange what belongs to the other half, then halves of these",
    source: "Thakur, Rabenseifner, Gropp 2005",
    fold: Fold::Any,
    graph: Graph::Other,
    restriction: unrestricted,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (me, bytes) = (shape.rank, shape.block_bytes());
    let target = Place::target(0);
    let rounds = rounds(shape.n, me);
    let rooms: Vec<Vec<Place>> = rounds.iter().map(|round| round.announce_rooms(b, bytes)).collect();
    // `have` is the place of this rank's operands for the blocks from `base` on.
    let (mut have, mut base, mut is_own) = (Place::source(0), 0, true);
    for (round, rooms) in rounds.iter().zip(rooms) {
        let (start, end) = round.gives;
        let given = (end - start) * bytes;
        if given > b.mailbox_bytes() {
            b.wait(round.to, round.room);
        }
        let into = Remote::Announced { slot: round.room, offset: 0 };
        deliver(b, round.to, have.plus((start - base) * bytes), given, into, round.data);
        let (start, end) = round.keeps;
        let kept = (end - start) * bytes;
        for ((&of, room), slot) in round.from.iter().zip(rooms).zip(round.first..) {
            let got = take(b, of, kept, room, slot);
            let mine = have.plus((start - base) * bytes);
            let into = match (end - start == 1, is_own) {
                (true, _) => target,
                (false, false) => mine,
                (false, true) if kept > b.mailbox_bytes() => got,
                (false, true) => b.scratch(kept),
            };
            b.reduce(mine, got, into, kept);
            (have, base, is_own) = (into, start, false);
        }
    }
    if shape.n == 1 {
        b.copy(have, target, bytes);
    }
}

/// A range of ranks and their blocks, as (first, end); the end is not included.
type Range = (Rank, Rank);

/// The steps of a rank while one range is cut in halves.
#[derive(Debug)]
struct Round {
    keeps: Range,
    gives: Range,
    /// The rank that receives this rank's operands, the slot there, and the slot of this rank in which the
    /// receiver announces its buffer.
    to: Rank,
    data: Slot,
    room: Slot,
    /// The ranks whose operands this rank receives, in its slots from `first` on, and their slots for its
    /// announcements.
    from: Vec<Rank>,
    first: Slot,
}

/// The rounds of a rank.
fn rounds(n: usize, me: Rank) -> Vec<Round> {
    let (mut start, mut end) = (0, n);
    let mut rounds = Vec::new();
    while end - start > 1 {
        // Two of the three slots of a round are for data, since the last rank may receive them from two
        // ranks.
        let first = 3 * rounds.len();
        let middle = start + (end - start).div_ceil(2);
        let (half, is_odd) = (middle - start, (end - start) % 2 == 1);
        let mut round = Round {
            keeps: (start, middle),
            gives: (middle, end),
            to: me + half,
            data: first,
            room: first + 2,
            from: vec![me + half],
            first,
        };
        if me >= middle {
            (round.keeps, round.gives) = (round.gives, round.keeps);
            (round.to, round.from) = (me - half, vec![me - half]);
            if is_odd && me == end - 1 {
                round.from.push(middle - 1);
            }
        } else if is_odd && me == middle - 1 {
            (round.to, round.data, round.from) = (end - 1, first + 1, Vec::new());
        }
        (start, end) = round.keeps;
        rounds.push(round);
    }
    rounds
}

impl Round {
    /// The places where the data arrive. Announces the buffers to the ranks that send more than a mailbox
    /// holds.
    fn announce_rooms(&self, b: &mut Builder, block_bytes: usize) -> Vec<Place> {
        let bytes = (self.keeps.1 - self.keeps.0) * block_bytes;
        let announce = |(&of, slot)| {
            if bytes <= b.mailbox_bytes() {
                return Place::mailbox(slot);
            }
            let room = b.scratch(bytes);
            b.announce(of, self.room, room);
            room
        };
        self.from.iter().zip(self.first..).map(announce).collect()
    }
}
