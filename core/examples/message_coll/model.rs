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

    fn apply(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        let element = |bytes: &[u8]| -> Element {
            let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
            [word(&bytes[..4]), word(&bytes[4..])]
        };
        let function = if self == Op::Sum { add } else { compose };
        let mut result = Vec::with_capacity(left.len());
        for (left, right) in left.chunks(ELEMENT).zip(right.chunks(ELEMENT)) {
            let [a, b] = function(element(left), element(right)).map(u32::to_ne_bytes);
            result.extend(a.into_iter().chain(b));
        }
        result
    }
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
    let element = |i: usize| {
        let word = (rank as u32 * 7919 + i as u32).wrapping_mul(2_654_435_761);
        (u64::from(word | 1) | u64::from(word.rotate_left(9)) << 32).to_ne_bytes()
    };
    (0..elements).flat_map(element).collect()
}

/// The target of a rank in the end; `None` if it is not defined.
pub fn expected(call: &MessageCall, (me, n): (usize, usize), op: Op) -> Option<Vec<u8>> {
    use Operation::*;
    let block = call.count * ELEMENT;
    // Block `i` of the source of a rank.
    let part = |rank: usize, i: usize| {
        let mut data = source(rank, call.count * (i + 1));
        data.split_off(i * block)
    };
    let combined = |ranks: std::ops::Range<usize>, i: usize| {
        ranks.map(|rank| part(rank, i)).reduce(|left, right| op.apply(&left, &right))
    };
    let all = || (0..n).flat_map(|rank| part(rank, 0)).collect();
    match call.operation {
        Barrier => None,
        Broadcast => Some(part(call.root, 0)),
        Scatter => Some(part(call.root, me)),
        Gather => (me == call.root).then(all),
        AllGather => Some(all()),
        AllToAll => Some((0..n).flat_map(|other| part(other, me)).collect()),
        Reduce => (me == call.root).then(|| combined(0..n, 0)).flatten(),
        AllReduce => combined(0..n, 0),
        ReduceScatter => combined(0..n, me),
        InclusiveScan => combined(0..me + 1, 0),
        ExclusiveScan => combined(0..me, 0),
    }
}
