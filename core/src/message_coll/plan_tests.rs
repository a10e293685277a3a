//! Plans of all algorithms, run in one thread against a serial model. Messages arrive as early or as late as
//! they can.

use super::*;
use crate::memory::members::Members;
use crate::msg::envelope::Context;
use Lie::{Apart, InPlace, Overlapping};
use pelago_schedule::table::{Fold, algorithms};
use std::collections::VecDeque;

const ELEMENT: usize = 8;

/// How a test combines elements: maps x -> a x + b, one after the other, or sums.
#[derive(Clone, Copy, PartialEq)]
enum Op {
    Compose,
    Sum,
}

impl Op {
    fn apply(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        let word = |bytes: &[u8], i: usize| u32::from_ne_bytes(bytes[4 * i..][..4].try_into().unwrap());
        let element = |at: usize| {
            let (l, r) = (&left[at..], &right[at..]);
            let (a, b, c, d) = (word(l, 0), word(l, 1), word(r, 0), word(r, 1));
            let result = match self {
                Op::Sum => [a.wrapping_add(c), b.wrapping_add(d)],
                Op::Compose => [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)],
            };
            result.map(u32::to_ne_bytes).concat()
        };
        (0..left.len()).step_by(ELEMENT).flat_map(element).collect()
    }
}

/// The memory of a rank.
struct Machine {
    plan: Plan,
    at: usize,
    posted: Vec<bool>,
    memory: Vec<u8>,
    /// Where source, target and scratch memory begin in `memory`.
    starts: [usize; 3],
    /// Receives that were posted, and whose messages are delivered as late as possible.
    held: Vec<usize>,
}

impl Machine {
    fn at(&self, place: Place) -> usize {
        let start = match place.buffer {
            Buffer::Source => self.starts[0],
            Buffer::Target => self.starts[1],
            Buffer::Scratch => self.starts[2],
            Buffer::Mailbox(_) => panic!("a mailbox in a plan"),
        };
        start + place.offset
    }

    fn get(&self, place: Place, bytes: usize) -> Vec<u8> {
        self.memory[self.at(place)..][..bytes].to_vec()
    }

    fn put(&mut self, place: Place, data: &[u8]) {
        let at = self.at(place);
        self.memory[at..][..data.len()].copy_from_slice(data);
    }

    fn local(&mut self, step: &Step, op: Op) {
        match *step {
            Step::Copy { from, into, bytes } => {
                let data = self.get(from, bytes);
                self.put(into, &data);
            }
            Step::CopyStrided { from, from_stride, into, into_stride, block, count } => {
                for i in 0..count {
                    let data = self.get(from.plus(i * from_stride), block);
                    self.put(into.plus(i * into_stride), &data);
                }
            }
            Step::Reduce { left, right, into, bytes } => {
                let data = op.apply(&self.get(left, bytes), &self.get(right, bytes));
                self.put(into, &data);
            }
            _ => panic!("{step:?}"),
        }
    }
}

/// A message under way. Data of a lazy one are read when it is received.
struct Message {
    place: Place,
    eager: Option<Vec<u8>>,
    bytes: usize,
}

type Queues = HashMap<(usize, usize, u32), VecDeque<Message>>;

/// Runs all plans to their end. Lazy messages are read from their source as late as the receiver takes them.
fn run(ranks: &mut [Machine], op: Op, is_lazy: bool, name: &str) {
    let mut queues: Queues = HashMap::new();
    loop {
        let mut has_moved = false;
        for me in 0..ranks.len() {
            while advance(ranks, me, op, is_lazy, &mut queues) {
                has_moved = true;
            }
        }
        if ranks.iter().all(|rank| rank.at == rank.plan.work.len()) {
            break;
        }
        assert!(has_moved, "{name}: the ranks wait for each other");
    }
    assert!(queues.values().all(VecDeque::is_empty), "{name}: a message was not received");
}

/// One step of a rank, if it can make one.
fn advance(ranks: &mut [Machine], me: usize, op: Op, is_lazy: bool, queues: &mut Queues) -> bool {
    if !is_lazy {
        for number in ranks[me].held.clone() {
            deliver(ranks, me, number, queues);
        }
    }
    let Some(work) = ranks[me].plan.work.get(ranks[me].at).cloned() else { return false };
    match work {
        Work::Post(number) => {
            assert!(!std::mem::replace(&mut ranks[me].posted[number], true), "posted twice");
            ranks[me].held.push(number);
        }
        Work::Await(number) => {
            assert!(ranks[me].posted[number], "a wait for a receive that was not posted");
            if ranks[me].held.contains(&number) && !deliver(ranks, me, number, queues) {
                return false;
            }
        }
        Work::Send { to, slot, from, bytes } => {
            let eager = (!is_lazy || bytes == 0).then(|| ranks[me].get(from, bytes));
            queues.entry((me, to, slot)).or_default().push_back(Message { place: from, eager, bytes });
        }
        Work::Complete => {
            let mine = queues.iter().filter(|((from, ..), _)| *from == me);
            if mine.flat_map(|(_, queue)| queue).any(|message| message.eager.is_none()) {
                return false;
            }
        }
        Work::Local(step) => ranks[me].local(&step, op),
    }
    ranks[me].at += 1;
    true
}

/// Receives, if the message is there.
fn deliver(ranks: &mut [Machine], me: usize, number: usize, queues: &mut Queues) -> bool {
    let receive = ranks[me].plan.receives[number].clone();
    let queue = queues.get_mut(&(receive.from, me, receive.slot));
    let Some(message) = queue.and_then(VecDeque::pop_front) else { return false };
    assert_eq!(message.bytes, receive.bytes, "both ends agree on the length");
    let data = message.eager.unwrap_or_else(|| ranks[receive.from].get(message.place, message.bytes));
    ranks[me].put(receive.into, &data);
    ranks[me].held.retain(|&held| held != number);
    true
}

/// Element `i` of the source of a rank.
fn element(rank: usize, i: usize) -> Vec<u8> {
    let word = (rank as u32 * 7919 + i as u32).wrapping_mul(2_654_435_761);
    [word | 1, word.rotate_left(9)].map(u32::to_ne_bytes).concat()
}

/// The blocks of the source of a rank.
fn source(rank: usize, elements: usize) -> Vec<u8> {
    (0..elements).flat_map(|i| element(rank, i)).collect()
}

/// The target of each rank in the end; `None` if it is not defined.
fn expected(call: &MessageCall, n: usize, op: Op, sources: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    use Operation::*;
    let block = call.count * ELEMENT;
    let part = |rank: usize, i: usize| sources[rank][i * block..][..block].to_vec();
    let combined = |ranks: std::ops::Range<usize>, i: usize| {
        ranks.map(|rank| part(rank, i)).reduce(|left, right| op.apply(&left, &right))
    };
    let at_root = |rank: usize, value: Vec<u8>| (rank == call.root).then_some(value);
    let of = |rank: usize| match call.operation {
        Barrier => None,
        Broadcast => Some(sources[call.root].clone()),
        Scatter => Some(part(call.root, rank)),
        Gather => at_root(rank, sources.concat()),
        AllGather => Some(sources.concat()),
        AllToAll => Some((0..n).flat_map(|other| part(other, rank)).collect()),
        Reduce => at_root(rank, combined(0..n, 0)?),
        AllReduce => combined(0..n, 0),
        ReduceScatter => combined(0..n, rank),
        InclusiveScan => combined(0..rank + 1, 0),
        ExclusiveScan => combined(0..rank, 0),
    };
    (0..n).map(of).collect()
}

/// How source and target lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    Apart,
    /// The same, and the schedule knows.
    InPlace,
    /// The source is this rank's block of the target, or the same, and the schedule does not know.
    Overlapping,
}

fn call_of(
    operation: Operation,
    root: usize,
    count: usize,
    counts: Option<&[usize]>,
    lie: Lie,
) -> MessageCall {
    MessageCall {
        operation,
        root,
        count,
        element_bytes: ELEMENT,
        in_place: lie == InPlace,
        counts: counts.map(Arc::from),
    }
}

/// Runs one algorithm; whether it is one that messages can do.
fn check(algorithm: &Algorithm, n: usize, call: &MessageCall, lie: Lie, nodes: u32) -> bool {
    let name = format!("{} {} n {n} {call:?} {lie:?} nodes {nodes}", call.operation, algorithm.name);
    let groups: Vec<MessageGroup> =
        (0..n).map(|me| MessageGroup::new(Context(1), Members::all(n), me, |pe| pe as u32 % nodes)).collect();
    if (algorithm.restriction)(&call.shape(&groups[0], 0)).is_some() {
        return true;
    }
    let op = if algorithm.fold == Fold::Any { Op::Sum } else { Op::Compose };
    let mut sources: Vec<Vec<u8>> = Vec::new();
    let mut ranks: Vec<Machine> = Vec::new();
    for (me, group) in groups.iter().enumerate() {
        let write = |rank| algorithm.schedule(&call.shape(group, rank), UNLIMITED_BYTES);
        let Some(plan) = Plan::of_schedule(group, &write, call.in_place) else { return false };
        let shape = call.shape(group, me);
        let (from, into) = (shape.source_bytes(), shape.target_bytes());
        let own = source(me, from / ELEMENT);
        let before: usize = call.counts.as_ref().map_or(me * call.count, |counts| counts[..me].iter().sum());
        let is_block = matches!(call.operation, Operation::Gather | Operation::AllGather);
        let offset = if is_block { before * ELEMENT } else { 0 };
        let starts = match lie {
            Apart => [0, from, from + into],
            InPlace => [0, 0, from.max(into)],
            Overlapping if into == 0 => [0, from, from],
            Overlapping => [offset, 0, into.max(from + offset)],
        };
        let mut memory = vec![0xEE; starts[2] + plan.scratch_bytes];
        memory[starts[0]..][..from].copy_from_slice(&own);
        sources.push(own);
        let posted = vec![false; plan.receives.len()];
        let mut rank = Machine { plan, at: 0, posted, memory, starts, held: Vec::new() };
        if lie == Overlapping
            && into > 0
            && source_must_be_copied(&rank.plan.work, &rank.plan.receives, offset as isize)
        {
            rank.starts[0] = rank.memory.len();
            let own = sources[me].clone();
            rank.memory.extend(own);
        }
        ranks.push(rank);
    }
    let results = expected(call, n, op, &sources);
    for is_lazy in [false, true] {
        let before: Vec<Vec<u8>> = ranks.iter().map(|rank| rank.memory.clone()).collect();
        run(&mut ranks, op, is_lazy, &name);
        for (me, result) in results.iter().enumerate() {
            if let Some(result) = result {
                let target = ranks[me].get(Place::target(0), result.len());
                assert!(target == *result, "{name}: rank {me}, lazy {is_lazy}");
            }
        }
        for (rank, before) in ranks.iter_mut().zip(before) {
            (rank.memory, rank.at) = (before, 0);
            rank.posted.fill(false);
        }
    }
    true
}

/// All algorithms of operations, for some sizes, roots and nodes; those that messages cannot do.
fn check_all(operations: &[Operation], lies: &[Lie]) -> Vec<String> {
    let mut impossible = Vec::new();
    for algorithm in algorithms().filter(|algorithm| operations.contains(&algorithm.operation)) {
        let operation = algorithm.operation;
        for (n, &lie) in (1..=9).flat_map(|n| lies.iter().map(move |lie| (n, lie))) {
            let is_square = operation.source_blocks(n) == operation.target_blocks(n);
            if lie == InPlace && (!is_square || operation == Operation::AllToAll) {
                continue;
            }
            // The last one has blocks that no rank copies without need.
            for (count, nodes) in [(0, 1), (1, 1), (5, 2), (40, 3), (600, 2)] {
                let roots = if operation.is_rooted() { n } else { 1 };
                for root in (0..roots).step_by(n.div_ceil(3)) {
                    let call = call_of(operation, root, count, None, lie);
                    if !check(algorithm, n, &call, lie, nodes) {
                        impossible.push(format!("{operation} {}", algorithm.name));
                    }
                }
            }
        }
    }
    impossible.dedup();
    impossible
}

#[test]
fn plans_without_reductions() {
    use Operation::{AllGather, AllToAll, Barrier, Broadcast, Gather, Scatter};
    let all = [Barrier, Broadcast, Scatter, Gather, AllGather, AllToAll];
    let getting = algorithms().filter(|algorithm| gets(algorithm));
    let getting: Vec<_> = getting.map(|other| format!("{} {}", other.operation, other.name)).collect();
    assert_eq!(check_all(&all, &[Apart, InPlace, Overlapping]), getting);
}

#[test]
fn plans_of_reductions() {
    use Operation::{AllReduce, ExclusiveScan, InclusiveScan, Reduce, ReduceScatter};
    let all = [AllReduce, Reduce, ReduceScatter, InclusiveScan, ExclusiveScan];
    assert_eq!(check_all(&all, &[Apart, InPlace, Overlapping]), Vec::<String>::new());
}

#[test]
fn plans_of_blocks_that_differ() {
    let lengths = [3, 0, 1, 17, 0, 2, 5, 9];
    for algorithm in algorithms().filter(|algorithm| algorithm.operation == Operation::AllGather) {
        for (n, lie) in (1..=8).flat_map(|n| [(n, Apart), (n, Overlapping)]) {
            let call = call_of(Operation::AllGather, 0, 0, Some(&lengths[..n]), lie);
            assert!(check(algorithm, n, &call, lie, 1) || gets(algorithm), "{} n {n}", algorithm.name);
        }
    }
}

/// Blocks that are so large that sums lie in the targets, and parts are combined one by one.
#[test]
fn plans_of_large_reductions() {
    use Operation::{AllReduce, ExclusiveScan, InclusiveScan, Reduce, ReduceScatter};
    let all = [AllReduce, Reduce, ReduceScatter, InclusiveScan, ExclusiveScan];
    let count = (128 << 10) / ELEMENT + 1;
    for algorithm in algorithms().filter(|algorithm| all.contains(&algorithm.operation)) {
        for (n, nodes, lie) in [(2, 1, Apart), (3, 2, InPlace), (5, 3, Overlapping), (8, 4, Apart)] {
            let is_square = algorithm.operation.source_blocks(n) == algorithm.operation.target_blocks(n);
            let lie = if is_square { lie } else { Apart };
            let call = call_of(algorithm.operation, n - 1, count, None, lie);
            assert!(check(algorithm, n, &call, lie, nodes), "{} {}", call.operation, algorithm.name);
        }
    }
}

/// The usual algorithms need a few blocks beside the operands, one for each round.
#[test]
fn memory_of_large_reductions_is_bounded() {
    use Operation::{AllReduce, ExclusiveScan, InclusiveScan, Reduce};
    const BYTES: usize = 1 << 20;
    let jobs = [(16, 16), (16, 1), (32, 2), (24, 8)];
    for operation in [AllReduce, Reduce, InclusiveScan, ExclusiveScan] {
        for (n, me, ppn) in jobs.into_iter().flat_map(|(n, ppn)| (0..n).map(move |me| (n, me, ppn))) {
            let group = MessageGroup::new(Context(1), Members::all(n), me, |pe| (pe / ppn) as u32);
            let call = call_of(operation, 0, BYTES / ELEMENT, None, Apart);
            let laws = Laws { is_associative: true, is_commutative: true };
            let plan = Plan::of_call(&group, &Preferences::default(), &call, Some(laws)).unwrap();
            let blocks = plan.scratch_bytes.div_ceil(BYTES);
            let rounds = n.next_power_of_two().ilog2() as usize;
            assert!(blocks <= rounds + 1, "{operation} by {} of {n}: {blocks} at {me}", plan.algorithm);
        }
    }
}

#[test]
fn parts_of_an_ordered_sum_are_combined_by_all() {
    let linear = algorithms().find(|it| it.operation == Operation::AllReduce && it.name == "linear").unwrap();
    let call = call_of(Operation::AllReduce, 0, (1 << 20) / ELEMENT, None, Apart);
    for me in 0..16 {
        let group = MessageGroup::new(Context(1), Members::all(16), me, |_| 0);
        let write = |rank| linear.schedule(&call.shape(&group, rank), UNLIMITED_BYTES);
        let plan = Plan::of_schedule(&group, &write, false).unwrap();
        assert!(plan.scratch_bytes <= 2 << 20, "{} bytes at {me}", plan.scratch_bytes);
    }
}

#[test]
fn slots_beyond_the_bits_of_a_tag_are_refused() {
    assert_eq!(number_of((1 << SLOT_BITS) - 1), Some((1 << SLOT_BITS) - 1));
    assert_eq!(number_of(1 << SLOT_BITS), None);
}
