//! Runs collective operations on private memory and compares their results with a serial model: `pelago run
//! -n 4 target/debug/examples/message_coll`, with `PELAGO_COLL` to choose algorithms.
//!
//! With the argument `again` it does the same blocking operations again and again, as a trial of the online
//! tuner needs it (`PELAGO_COLL_ONLINE`).
//!
//! Invariant: every operation is done blocking and not, with source and target apart, in place, and
//! overlapping.

mod model;

use model::{ELEMENT, Lie, Op, expected, has_lie, source};
use pelago_boot::Settings;
use pelago_core::coll::reduction::{Combiner, ReduceOp};
use pelago_core::coll::shape::Operation;
use pelago_core::memory::members::Members;
use pelago_core::message_coll::{
    Exchange, Memory, MessageCall, MessageGroup, Outcome, Pending, Receive, Send, Shorter, SizeMismatch,
    Stage, Task,
};
use pelago_core::msg::envelope::Context;
use pelago_core::{Core, join};
use std::sync::Arc;

fn main() {
    let core = Settings::from_env().map_err(Into::into).and_then(|settings| join::one_pe(&settings));
    let core = core.unwrap_or_else(|error| panic!("{error}"));
    let (me, n) = (core.my_pe(), core.n_pes());
    let all = Arc::new(MessageGroup::new(Context(1), Members::all(n), me, |pe| core.node(pe)));
    let reversed = Members::of(&(0..n).rev().collect::<Vec<_>>());
    let reversed = Arc::new(MessageGroup::new(Context(3), reversed, n - 1 - me, |pe| core.node(pe)));
    if std::env::args().any(|argument| argument == "again") {
        again(&core, &all);
        again(&core, &reversed);
        return println!("PE {me} of {n}: passed");
    }
    for count in [0, 1, 5, 90, 300, 9000] {
        for operation in Operation::ALL {
            let last = if operation.is_rooted() { n - 1 } else { 0 };
            for root in [0, last].into_iter().take(1 + last.min(1)) {
                each_way(&core, &all, operation, root, count);
            }
        }
        each_way(&core, &reversed, Operation::AllReduce, 0, count);
    }
    blocks_that_differ(&core, &all);
    several_at_once(&core, &all);
    exchange(&core, &all);
    stages(&core, &all);
    sizes_that_disagree(&core, &all);
    println!("PE {me} of {n}: passed");
}

/// Starts one call.
fn start(core: &Core, group: &Arc<MessageGroup>, call: MessageCall, memory: Memory) -> Arc<Pending> {
    let stage = Stage { group: Arc::clone(group), task: Task::Call(call, memory), number: None };
    // SAFETY: the callers keep the memory of the call until it is over.
    let started = unsafe { core.message_coll.start_stages(core, &[stage]) };
    started.expect("an algorithm for every call").pending()
}

/// Does one call.
fn run(
    core: &Core,
    group: &Arc<MessageGroup>,
    call: MessageCall,
    memory: Memory,
    is_blocking: bool,
) -> Outcome {
    if is_blocking {
        // SAFETY: the callers keep the memory of the call, which is over at return.
        let outcome = unsafe { core.message_coll.run_call(core, group, &call, &memory) };
        return outcome.expect("an algorithm for every call");
    }
    start(core, group, call, memory).wait(core)
}

/// Source and target of a rank in one piece of memory, and what else there is.
struct Room {
    memory: Vec<u8>,
    source: usize,
    target: usize,
    target_bytes: usize,
}

impl Room {
    fn new(call: &MessageCall, (me, n): (usize, usize), lie: Lie) -> Room {
        let block = call.count * ELEMENT;
        let is_root = me == call.root;
        let mut from = block * call.operation.source_blocks(n);
        let mut into = block * call.operation.target_blocks(n);
        if matches!(call.operation, Operation::Scatter | Operation::Broadcast) && !is_root {
            from = 0;
        }
        if matches!(call.operation, Operation::Gather | Operation::Reduce) && !is_root {
            into = 0;
        }
        let (source_at, target) = lie.places(call, me, (from, into));
        let mut memory = vec![0xEE; (source_at + from).max(target + into) + 64];
        memory[source_at..][..from].copy_from_slice(&source(me, from / ELEMENT));
        Room { memory, source: source_at, target, target_bytes: into }
    }

    fn memory(&mut self, op: Op, call: &MessageCall) -> Memory {
        let start = self.memory.as_mut_ptr();
        Memory {
            source: start.wrapping_add(self.source),
            target: start.wrapping_add(self.target),
            combiner: call.operation.combines().then(|| op.combiner()),
        }
    }

    /// Compares the target with what is expected, if it is defined.
    fn check(&self, call: &MessageCall, result: Option<&Vec<u8>>, what: &str) {
        let target = &self.memory[self.target..self.target + self.target_bytes];
        assert!(result.is_none_or(|result| target == &result[..]), "{what}: {call:?}");
        assert!(self.memory[self.memory.len() - 64..].iter().all(|&byte| byte == 0xEE), "{what}: {call:?}");
    }
}

fn each_way(core: &Core, group: &Arc<MessageGroup>, operation: Operation, root: usize, count: usize) {
    let place = (group.me, group.len());
    for op in [Op::Compose, Op::Sum].into_iter().take(if operation.combines() { 2 } else { 1 }) {
        let apart = MessageCall { element_bytes: ELEMENT, ..MessageCall::of_bytes(operation, root, count) };
        let result = expected(&apart, place, op);
        for lie in Lie::ALL.into_iter().filter(|&lie| has_lie(operation, lie, place.1)) {
            for is_blocking in [true, false] {
                let call = MessageCall { in_place: lie == Lie::InPlace, ..apart.clone() };
                let mut room = Room::new(&call, place, lie);
                let memory = room.memory(op, &call);
                let outcome = run(core, group, call.clone(), memory, is_blocking);
                assert_eq!(outcome, Ok(()), "{call:?}");
                room.check(&call, result.as_ref(), &format!("{lie:?}, blocking {is_blocking}"));
            }
        }
    }
}

/// Blocking calls of a few classes, more than a trial of each has.
fn again(core: &Core, group: &Arc<MessageGroup>) {
    let place = (group.me, group.len());
    let operations = Operation::ALL.into_iter().filter(|operation| *operation != Operation::Barrier);
    for (count, calls) in [(2, 150), (300, 1900), (5000, 60)] {
        for operation in operations.clone() {
            // Sums are tried in every order, functions in one.
            let op = if operation == Operation::AllReduce { Op::Sum } else { Op::Compose };
            for number in 0..calls {
                let root = if operation.is_rooted() { number % place.1 } else { 0 };
                let call =
                    MessageCall { element_bytes: ELEMENT, ..MessageCall::of_bytes(operation, root, count) };
                let mut room = Room::new(&call, place, Lie::Apart);
                let mut memory = room.memory(op, &call);
                if operation == Operation::AllReduce {
                    memory.combiner = Combiner::of::<u32>(ReduceOp::Sum);
                }
                assert_eq!(run(core, group, call.clone(), memory, true), Ok(()));
                // To compare takes longer than the call.
                if number % 7 == 0 || number < 80 {
                    room.check(&call, expected(&call, place, op).as_ref(), &format!("call {number}"));
                }
            }
        }
    }
}

/// An all-gather of blocks with lengths of their own.
fn blocks_that_differ(core: &Core, group: &Arc<MessageGroup>) {
    let (me, n) = (group.me, group.len());
    for scale in [1, 1000] {
        let counts: Vec<usize> = (0..n).map(|rank| [3, 0, 1, 17, 5][rank % 5] * scale).collect();
        let own = source(me, counts[me]);
        let mut target = vec![0u8; counts.iter().sum::<usize>() * ELEMENT + 1];
        let call = MessageCall {
            counts: Some(counts.clone().into()),
            element_bytes: ELEMENT,
            ..MessageCall::of_bytes(Operation::AllGather, 0, 0)
        };
        for is_blocking in [false, true] {
            target.fill(7);
            let memory = Memory { source: own.as_ptr(), target: target.as_mut_ptr(), combiner: None };
            assert_eq!(run(core, group, call.clone(), memory, is_blocking), Ok(()));
            let mut all: Vec<u8> = (0..n).flat_map(|rank| source(rank, counts[rank])).collect();
            all.push(7);
            assert!(target == all, "blocks that differ, scale {scale}");
        }
    }
}

/// Operations that are under way at the same time, and end in another order.
fn several_at_once(core: &Core, group: &Arc<MessageGroup>) {
    let place = (group.me, group.len());
    let operations =
        [Operation::AllReduce, Operation::AllGather, Operation::Barrier, Operation::InclusiveScan];
    let mut running: Vec<_> = (0..40)
        .map(|i| {
            let call = MessageCall {
                element_bytes: ELEMENT,
                ..MessageCall::of_bytes(operations[i % 4], 0, 1 + i * 50 % 777)
            };
            let mut room = Room::new(&call, place, Lie::Apart);
            let memory = room.memory(Op::Compose, &call);
            let pending = start(core, group, call.clone(), memory);
            (pending, room, call)
        })
        .collect();
    while let Some((pending, room, call)) = running.pop() {
        assert_eq!(pending.wait(core), Ok(()));
        room.check(&call, expected(&call, place, Op::Compose).as_ref(), "several at once");
    }
}

/// Each rank sends every other a message of another length, and a second one in another slot, received first.
fn exchange(core: &Core, group: &Arc<MessageGroup>) {
    let (me, n) = (group.me, group.len());
    let length = |from: usize, to: usize, slot: usize| (from * 1000 + to * 77 + slot * 3000) % 9000;
    let data =
        |from: usize, to: usize, slot: usize| vec![(from * 7 + to * 3 + slot) as u8; length(from, to, slot)];
    let others = || (0..n).filter(|&rank| rank != me).flat_map(|rank| [(rank, 0), (rank, 1)]);
    let outgoing: Vec<_> = others().map(|(rank, slot)| data(me, rank, slot)).collect();
    let mut incoming: Vec<_> = others().map(|(rank, slot)| vec![0u8; length(rank, me, slot)]).collect();
    let mut exchange = Exchange::default();
    for ((to, slot), data) in others().zip(&outgoing) {
        exchange.sends.push(Send { to, slot: slot as u32, from: data.as_ptr(), bytes: data.len() });
    }
    for ((from, slot), room) in others().zip(&mut incoming) {
        let (into, bytes) = (room.as_mut_ptr(), room.len());
        exchange.receives.push(Receive { from, slot: slot as u32, into, bytes });
    }
    exchange.receives.reverse();
    // SAFETY: the lists live until the exchange is over.
    assert_eq!(unsafe { core.message_coll.run_exchange(core, group, "test", &exchange) }, Ok(()));
    for ((rank, slot), found) in others().zip(incoming) {
        assert!(found == data(rank, me, slot), "the message of rank {rank} in slot {slot}");
    }
}

/// A reduction to rank 0, a message from there to the last rank, and a broadcast from that.
fn stages(core: &Core, group: &Arc<MessageGroup>) {
    let (me, n) = (group.me, group.len());
    let elements = 1000;
    let reduction =
        MessageCall { element_bytes: ELEMENT, ..MessageCall::of_bytes(Operation::Reduce, 0, elements) };
    let bytes = elements * ELEMENT;
    let own = source(me, elements);
    let (mut sum, mut result) = (vec![0u8; bytes], vec![0u8; bytes]);
    let mut exchange = Exchange::default();
    if me == 0 && n > 1 {
        exchange.sends.push(Send { to: n - 1, slot: 0, from: sum.as_ptr(), bytes });
    } else if me == 0 {
        exchange.copies.push((sum.as_ptr(), result.as_mut_ptr(), bytes));
    } else if me == n - 1 {
        exchange.receives.push(Receive { from: 0, slot: 0, into: result.as_mut_ptr(), bytes });
    }
    let (data, combiner) = (result.as_mut_ptr(), Some(Op::Compose.combiner()));
    let broadcast =
        MessageCall { in_place: true, ..MessageCall::of_bytes(Operation::Broadcast, n - 1, bytes) };
    let tasks = [
        Task::Call(reduction.clone(), Memory { source: own.as_ptr(), target: sum.as_mut_ptr(), combiner }),
        Task::Exchange("test", Arc::new(exchange)),
        Task::Call(broadcast, Memory { source: data, target: data, combiner: None }),
    ];
    let stages = tasks.map(|task| Stage { group: Arc::clone(group), task, number: None });
    for is_blocking in [true, false] {
        // SAFETY: all memory lives until the operation is over.
        let outcome = unsafe {
            match is_blocking {
                true => core.message_coll.run_stages(core, &stages),
                false => core.message_coll.start_stages(core, &stages).map(|pending| pending.wait(core)),
            }
        };
        assert_eq!(outcome, Some(Ok(())));
        let combined = expected(&reduction, (0, n), Op::Compose).expect("the root has a result");
        assert!(result == combined, "stages, blocking {is_blocking}");
        result.fill(0);
    }
}

/// A member that gets more bytes than it expects is told so, and one that gets fewer, if the exchange is an
/// exact one; otherwise that is noted. The next operation is right.
fn sizes_that_disagree(core: &Core, group: &Arc<MessageGroup>) {
    let (me, n) = (group.me, group.len());
    let sizes = [(8, 4), (4, 8), (8, 0), (50_000, 49_999), (49_999, 50_000)];
    for (may_be_shorter, (expected, found)) in
        [true, false].into_iter().flat_map(|it| sizes.map(|of| (it, of)))
    {
        let data = vec![me as u8; found];
        let mut all = vec![0u8; expected * n];
        let start = all.as_mut_ptr();
        let shorter = Arc::new(Shorter::default());
        let noted = Some(Arc::clone(&shorter));
        let mut exchange = Exchange { may_be_shorter, shorter: noted, ..Exchange::default() };
        if me == 0 {
            let into = |from: usize| start.wrapping_add(from * expected);
            let receive = |from| Receive { from, slot: 0, into: into(from), bytes: expected };
            exchange.receives = (1..n).map(receive).collect();
        } else {
            exchange.sends.push(Send { to: 0, slot: 0, from: data.as_ptr(), bytes: found });
        }
        // SAFETY: the lists live until the exchange is over.
        let outcome = unsafe { core.message_coll.run_exchange(core, group, "test", &exchange) };
        let pe = group.members.pe(1 % n);
        let is_wrong = me == 0 && n > 1 && (!may_be_shorter || found > expected);
        let right = if is_wrong { Err(SizeMismatch { pe, expected, found }) } else { Ok(()) };
        assert_eq!(outcome, right, "of {expected} bytes {found} were sent");
        if me == 0 && may_be_shorter {
            let told = (1..n).map(|from| shorter.found(start.wrapping_add(from * expected), expected));
            assert!(told.into_iter().all(|told| told == found.min(expected)), "of {expected} bytes {found}");
        }
        let kept = all.iter().enumerate().filter(|&(i, _)| i % expected < found && i >= expected);
        assert!(me > 0 || kept.into_iter().all(|(i, &byte)| byte == (i / expected) as u8));
    }
    each_way(core, group, Operation::AllReduce, 0, 9);
}
