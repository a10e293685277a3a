//! The serial model of collective operations.
//!
//! Invariant: an element is a map x -> a x + b of integers modulo 2^32, or two numbers.

use pelago_core::coll::reduction::Combiner;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::MessageCall;

pub const ELEMENT: usize = 8;

/// The operation that combines elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// One map after the other: associative, and not commutative.
    Compose,
    /// The sums of both numbers.
    Sum,
}

type Element = [u32; 2];

fn compose([a, b]: Element, [c, d]: Element) -> Element {
    [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
}

fn add([a, b]: Element, [c, d]: Element) -> Element {
    [a.wrapping_add(c), b.wrapping_add(d)]
}

impl Op {
    pub fn combiner(self) -> Combiner {
        match self {
            Op::Compose => Combiner::user(compose),
            Op::Sum => Combiner::user(add),
        }
    }

    /// Combines each element of `left` with one of `right`.
    fn apply(self, left: &mut [u8], right: &[u8]) {
        let function = if self == Op::Sum { add } else { compose };
        let (left, right) = (left.as_chunks_mut::<ELEMENT>().0, right.as_chunks::<ELEMENT>().0);
        for (left, right) in left.iter_mut().zip(right) {
            *left = bytes(function(element(*left), element(*right)));
        }
    }
}

fn element([a, b, c, d, e, f, g, h]: [u8; ELEMENT]) -> Element {
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

fn bytes([first, second]: Element) -> [u8; ELEMENT] {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a, b, c, d, e, f, g, h]
}

/// How source and target lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Apart,
    /// They are the same, and the call says so.
    InPlace,
    /// The source is this rank's block of the target, or begins where the target does, and the call does not
    /// say so.
    Overlapping,
}

impl Lie {
    pub const ALL: [Lie; 3] = [Lie::Apart, Lie::InPlace, Lie::Overlapping];

    /// Where source and target begin.
    pub fn places(self, call: &MessageCall, me: usize, (from, into): (usize, usize)) -> (usize, usize) {
        let is_block = matches!(call.operation, Operation::Gather | Operation::AllGather);
        match self {
            Lie::Apart => (into, 0),
            Lie::InPlace => (0, 0),
            Lie::Overlapping if into == 0 || from == 0 => (into, 0),
            Lie::Overlapping if is_block => (me * call.count * ELEMENT, 0),
            Lie::Overlapping => (0, 0),
        }
    }
}

/// Whether an operation may have its data so.
pub fn has_lie(operation: Operation, lie: Lie, n: usize) -> bool {
    let can_be_in_place = operation.source_blocks(n) == operation.target_blocks(n);
    lie != Lie::InPlace || (can_be_in_place && operation != Operation::AllToAll)
}

/// The source of a rank.
pub fn source(rank: usize, elements: usize) -> Vec<u8> {
    part(rank, 0, elements)
}

/// The elements of a rank's source from `start` on.
fn part(rank: usize, start: usize, elements: usize) -> Vec<u8> {
    let mut data = vec![0; elements * ELEMENT];
    for (i, place) in data.as_chunks_mut().0.iter_mut().enumerate() {
        let word = (rank as u32 * 7919 + (start + i) as u32).wrapping_mul(2_654_435_761);
        *place = bytes([word | 1, word.rotate_left(9)]);
    }
    data
}

/// The target of a rank in the end; `None` if it is not defined.
pub fn expected(call: &MessageCall, (me, n): (usize, usize), op: Op) -> Option<Vec<u8>> {
    use Operation::*;
    let block = |rank: usize, i: usize| part(rank, i * call.count, call.count);
    let combined = |ranks: std::ops::Range<usize>, i: usize| {
        ranks.map(|rank| block(rank, i)).reduce(|mut left, right| {
            op.apply(&mut left, &right);
            left
        })
    };
    let all = || (0..n).map(|rank| block(rank, 0)).collect::<Vec<_>>().concat();
    match call.operation {
        Barrier => None,
        Broadcast => Some(block(call.root, 0)),
        Scatter => Some(block(call.root, me)),
        Gather => (me == call.root).then(all),
        AllGather => Some(all()),
        AllToAll => Some((0..n).map(|other| block(other, me)).collect::<Vec<_>>().concat()),
        Reduce => (me == call.root).then(|| combined(0..n, 0)).flatten(),
        AllReduce => combined(0..n, 0),
        ReduceScatter => combined(0..n, me),
        InclusiveScan => combined(0..me + 1, 0),
        ExclusiveScan => combined(0..me, 0),
    }
}
