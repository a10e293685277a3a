//! Recursive doubling for any number of ranks (Thakur, Rabenseifner, Gropp 2005).
//!
//! As many ranks as the largest power of two that is at most n take part in the rounds. Each other rank
//! first sends its operand to one of these, and receives the result from it at the end. In order, these are
//! the odd ones among the first ranks, and they send to their left neighbours. Over the hypercube, they are
//! the ranks from the power of two on, and they send to the rank without the highest bit: then all ranks
//! that communicate differ in one bit, whatever n is.
//!
//! Invariant: in order, after a round a rank has the combination of a range of ranks, with the lower half on
//! the left; all ranks that have combined the same operands have the same expression.

use super::transfer::{COPIED_BYTES, Inbox, Incoming, Wire, give, has_room_for_sums};
use crate::schedule::{Builder, Place, Rank, Remote, Slot};

/// The ranks that take part in an operation.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    ranks: Option<&'a [Rank]>,
    size: usize,
    me: usize,
}

impl<'a> Group<'a> {
    /// The whole team.
    pub fn team(n: usize, me: Rank) -> Group<'static> {
        Group { ranks: None, size: n, me }
    }

    /// A part of the team: `ranks`, of which this rank is number `me`.
    pub fn part(ranks: &'a [Rank], me: usize) -> Group<'a> {
        Group { ranks: Some(ranks), size: ranks.len(), me }
    }

    #[inline]
    fn rank(&self, index: usize) -> Rank {
        self.ranks.map_or(index, |ranks| ranks[index])
    }
}

/// Reduces `n` ranks to a power of two.
#[derive(Clone, Copy, Debug)]
pub struct Pairing {
    /// Number of rounds: the logarithm of the power of two.
    pub rounds: usize,
    /// Number of ranks beyond the power of two.
    pub extra: usize,
    /// Whether the ranks beyond are the last ones, which are paired over the hypercube, and not in order.
    pub is_hypercube: bool,
}

impl Pairing {
    /// The pairing of `n` ranks that keeps their order.
    #[inline]
    pub fn of(n: usize) -> Pairing {
        let rounds = n.ilog2() as usize;
        Pairing { rounds, extra: n - (1 << rounds), is_hypercube: false }
    }

    /// The pairing of `n` ranks over the edges of the hypercube.
    #[inline]
    pub fn over_hypercube(n: usize) -> Pairing {
        Pairing { is_hypercube: true, ..Pairing::of(n) }
    }

    /// The number of a rank in the rounds; `None` for a rank that sends its operand to another one.
    #[inline]
    pub fn number(&self, rank: Rank) -> Option<usize> {
        match rank < 2 * self.extra {
            _ if self.is_hypercube => (rank < 1 << self.rounds).then_some(rank),
            true => rank.is_multiple_of(2).then_some(rank / 2),
            false => Some(rank - self.extra),
        }
    }

    /// The rank with this number.
    #[inline]
    pub fn rank(&self, number: usize) -> Rank {
        if self.is_hypercube { number } else { number + number.min(self.extra) }
    }

    /// The distance between a rank that takes part and the rank beyond that is paired with it.
    #[inline]
    pub fn distance(&self) -> usize {
        if self.is_hypercube { 1 << self.rounds } else { 1 }
    }

    /// Whether the rank with this number has received the operand of a rank beyond.
    #[inline]
    pub fn is_doubled(&self, number: usize) -> bool {
        number < self.extra
    }
}

/// Combines the operands that the ranks of the group have in `own`; the result goes to the target of each.
/// `own` may be the target. `targets_are_free` is true if `own` is not the target at any rank of the group
/// and the targets are free. Uses the slots from `first` on.
pub fn all_reduce(
    b: &mut Builder,
    group: Group<'_>,
    own: Place,
    bytes: usize,
    targets_are_free: bool,
    first: Slot,
) {
    paired(b, group, Pairing::of(group.size), (own, bytes), targets_are_free, first);
}

/// The same for a part of the block: the result goes to `offset` in the target of each, where nothing else is
/// written meanwhile.
pub fn all_reduce_at(
    b: &mut Builder,
    group: Group<'_>,
    (own, bytes): (Place, usize),
    offset: usize,
    first: Slot,
) {
    let pairing = Pairing::of(group.size);
    let rounds = Rounds { group, pairing, bytes, offset, targets_are_free: false, first };
    rounds.all_reduce(b, own);
}

/// The same with a pairing of the group's ranks. Over the hypercube the operation must commute.
pub fn paired(
    b: &mut Builder,
    group: Group<'_>,
    pairing: Pairing,
    (own, bytes): (Place, usize),
    targets_are_free: bool,
    first: Slot,
) {
    Rounds { group, pairing, bytes, offset: 0, targets_are_free, first }.all_reduce(b, own);
}

struct Rounds<'a> {
    group: Group<'a>,
    pairing: Pairing,
    bytes: usize,
    /// Where the result lies in the target; 0 if the targets are free.
    offset: usize,
    targets_are_free: bool,
    first: Slot,
}

impl Rounds<'_> {
    fn all_reduce(&self, b: &mut Builder, own: Place) {
        if self.group.size == 1 {
            return b.copy(own, Place::target(self.offset), self.bytes);
        }
        match self.pairing.number(self.group.me) {
            Some(number) => self.take_part(b, number, own),
            None => self.stand_by(b, own),
        }
    }

    fn wire(&self, round: usize) -> Wire {
        Wire { data: self.first + round, room: self.first + self.pairing.rounds + 1 + round }
    }

    /// The slots for operands of ranks beyond the power of two; the first of them also signals the result
    /// that comes back.
    fn handing(&self) -> Wire {
        let data = self.first + self.pairing.rounds;
        Wire { data, room: data + 1 }
    }

    /// Whether the target of the rank with this number is free for the operand of a round.
    fn finds_free(&self, number: usize, round: usize) -> bool {
        self.targets_are_free && round == 0 && !self.pairing.is_doubled(number)
    }

    #[inline]
    fn rank(&self, number: usize) -> Rank {
        self.group.rank(self.pairing.rank(number))
    }

    fn stand_by(&self, b: &mut Builder, own: Place) {
        let to = self.group.rank(self.group.me - self.pairing.distance());
        give(b, to, own, self.bytes, self.handing(), self.targets_are_free);
        b.wait(to, self.handing().data);
    }

    fn open_inbox(&self, b: &mut Builder, number: usize) -> Inbox {
        let mut expected = Vec::with_capacity(self.pairing.rounds + 1);
        if self.pairing.is_doubled(number) {
            let of = self.group.rank(self.group.me + self.pairing.distance());
            expected.push(Incoming { of, wire: self.handing(), into_target: self.targets_are_free });
        }
        expected.extend((0..self.pairing.rounds).map(|round| Incoming {
            of: self.rank(number ^ (1 << round)),
            wire: self.wire(round),
            into_target: self.finds_free(number, round),
        }));
        Inbox::open(b, self.bytes, expected)
    }

    fn take_part(&self, b: &mut Builder, number: usize, own: Place) {
        let (bytes, target) = (self.bytes, Place::target(self.offset));
        let fits = has_room_for_sums(b, bytes);
        let mut sum = own;
        // So that no rank waits until the operand has been read.
        if fits && own == target && bytes <= COPIED_BYTES {
            sum = b.scratch(bytes);
            b.copy(own, sum, bytes);
        }
        let mut inbox = self.open_inbox(b, number);
        if self.pairing.is_doubled(number) {
            let got = inbox.receive(b);
            let into = if fits { b.scratch(bytes) } else { target };
            b.reduce(sum, got, into, bytes);
            inbox.release(b);
            sum = into;
        }
        // In the first round.
        let is_target_sent = sum == target;
        for round in 0..self.pairing.rounds {
            let partner = number ^ (1 << round);
            let into_target = self.finds_free(partner, round);
            give(b, self.rank(partner), sum, bytes, self.wire(round), into_target);
            let got = inbox.receive(b);
            // A small sum has a place of its own in each round, so that no rank waits until the previous sum
            // has been read.
            let is_last = round + 1 == self.pairing.rounds;
            let into = if fits && !is_last { b.scratch(bytes) } else { target };
            if into == sum || is_last && is_target_sent {
                b.complete();
            }
            let (left, right) = if partner < number { (got, sum) } else { (sum, got) };
            b.reduce(left, right, into, bytes);
            inbox.release(b);
            sum = into;
        }
        if self.pairing.is_doubled(number) {
            let to = self.group.rank(self.group.me + self.pairing.distance());
            b.put_signal(to, target, Remote::Target(self.offset), bytes, self.handing().data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranks_are_inverse() {
        for pairing in (1..=40).flat_map(|n| [Pairing::of(n), Pairing::over_hypercube(n)]) {
            let n = (1 << pairing.rounds) + pairing.extra;
            let numbers: Vec<usize> = (0..n).filter_map(|rank| pairing.number(rank)).collect();
            assert_eq!(numbers, Vec::from_iter(0..1 << pairing.rounds), "n {n}");
            for number in numbers {
                assert_eq!(pairing.number(pairing.rank(number)), Some(number));
            }
        }
    }
}
