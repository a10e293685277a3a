//! The walk through the schedules of ranks, in the order of their clocks.
//!
//! Invariant: a message takes its way through both cards when it is sent, so cards serve messages in the
//! order of their sends. A rank that waits goes on when the signal is known.

use super::Costs;
use super::levels::TO_LEADERS;
use crate::schedule::{ANNOUNCEMENT_BYTES, Rank, Slot, Step};
use crate::shape::Shape;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::vec::IntoIter;

/// The ranks that are walked.
pub struct Ranks {
    /// Their numbers, in ascending order; empty: all.
    some: Vec<Rank>,
    /// The number of ranks of a node for which each walked one stands.
    share: f64,
    n: usize,
}

impl Ranks {
    pub fn all(shape: &Shape) -> Ranks {
        Ranks { some: Vec::new(), share: 1.0, n: shape.n }
    }

    pub fn some(shape: &Shape, ranks: &[Rank]) -> Ranks {
        let groups = shape.groups();
        let of_first = ranks.iter().filter(|rank| groups.group(**rank) == 0).count().max(1);
        let share = (groups.ranks(0).len() as f64 / of_first as f64).max(1.0);
        Ranks { some: ranks.to_vec(), share, n: shape.n }
    }

    fn count(&self) -> usize {
        if self.some.is_empty() { self.n } else { self.some.len() }
    }

    /// The place of a rank among those that are walked.
    fn place(&self, rank: Rank) -> Option<usize> {
        if self.some.is_empty() { Some(rank) } else { self.some.binary_search(&rank).ok() }
    }

    fn rank(&self, place: usize) -> Rank {
        if self.some.is_empty() { place } else { self.some[place] }
    }
}

/// A message on its way.
#[derive(Clone, Copy)]
struct Message {
    /// The times at which its first byte and its last are there.
    head: f64,
    tail: f64,
    bytes: f64,
    is_far: bool,
}

/// A rank on its way.
struct State {
    rank: Rank,
    clock: f64,
    steps: IntoIter<Step>,
    /// The slot that it waits for.
    awaits: Option<Slot>,
    /// The time at which its transfers are complete.
    complete: f64,
    /// The times and bytes of the messages that it has sent, kept only where some ranks are not walked.
    sent: Vec<(f64, f64)>,
    waits: usize,
}

/// A core, on which ranks run one at a time.
#[derive(Clone)]
struct Core {
    free_at: f64,
    /// The place of the rank that ran last.
    last: usize,
}

#[derive(Clone, Default)]
struct Card {
    out: f64,
    /// Of messages of ranks that are walked, and of others: these are learned of late, out of their order.
    into: f64,
    into_of_others: f64,
}

/// The cores of ranks, of which `node` has the nodes. In the order of their nodes, `ranks_per_core` ranks
/// share each core.
fn cores(node: &[usize], ranks_per_core: usize) -> Vec<usize> {
    let mut places: Vec<_> = (0..node.len()).collect();
    places.sort_by_key(|place| node[*place]);
    let mut core = vec![0; node.len()];
    places.iter().enumerate().for_each(|(slot, place)| core[*place] = slot / ranks_per_core);
    core
}

pub struct Walk<'a> {
    costs: &'a Costs,
    shape: &'a Shape,
    ranks: Ranks,
    states: Vec<State>,
    /// The node and the card of each rank that is walked.
    node: Vec<usize>,
    cards: Vec<Card>,
    memories: Vec<f64>,
    /// The core of each rank that is walked, and the cores.
    core: Vec<usize>,
    cores: Vec<Core>,
    arrived: HashMap<(usize, Slot), Message>,
    ready: BinaryHeap<Reverse<(u64, usize)>>,
}

/// A time as a key: times are not negative, so the order of their bits is theirs.
fn key(time: f64) -> u64 {
    time.to_bits()
}

impl<'a> Walk<'a> {
    pub fn new(costs: &'a Costs, shape: &'a Shape, ranks: Ranks) -> Walk<'a> {
        let groups = shape.groups();
        let node: Vec<_> = (0..ranks.count()).map(|place| groups.group(ranks.rank(place))).collect();
        let core = cores(&node, if ranks.some.is_empty() { costs.ranks_per_core } else { 1 });
        let cores = vec![Core { free_at: 0.0, last: usize::MAX }; node.len()];
        let cards = vec![Card::default(); groups.len() * costs.cards_per_node];
        let memories = vec![0.0; groups.len()];
        let (states, arrived, ready) = (Vec::new(), HashMap::new(), BinaryHeap::new());
        Walk { costs, shape, ranks, states, node, cards, memories, core, cores, arrived, ready }
    }

    /// The time at which the last rank ends.
    pub fn time(mut self, of: impl Fn(Rank) -> Vec<Step>) -> f64 {
        for place in 0..self.ranks.count() {
            let rank = self.ranks.rank(place);
            let (clock, awaits, complete, sent, waits) = (0.0, None, 0.0, Vec::new(), 0);
            let steps = of(rank).into_iter();
            self.states.push(State { rank, clock, steps, awaits, complete, sent, waits });
            self.ready.push(Reverse((0, place)));
        }
        while let Some(Reverse((_, place))) = self.ready.pop() {
            self.advance(place);
        }
        self.states.iter().map(|state| state.clock.max(state.complete)).fold(0.0, f64::max)
    }

    /// Lets a rank take steps until it waits, has ended, or another one is behind it.
    fn advance(&mut self, place: usize) {
        while let Some(step) = self.states[place].steps.next() {
            if !self.step(place, &step) {
                return;
            }
            let clock = key(self.states[place].clock);
            if self.ready.peek().is_some_and(|Reverse((other, _))| *other < clock) {
                return self.ready.push(Reverse((clock, place)));
            }
        }
    }

    /// Takes a step; false if the rank waits.
    fn step(&mut self, place: usize, step: &Step) -> bool {
        let costs = self.costs;
        match *step {
            Step::Put { to, bytes, signal, .. } => self.send(place, to, bytes, signal),
            Step::Signal { to, slot, announces } => {
                let bytes = if announces.is_some() { ANNOUNCEMENT_BYTES } else { 0 };
                self.send(place, to, bytes, Some(slot));
            }
            Step::Get { of, bytes, .. } => self.get(place, of, bytes),
            Step::Wait { of, slot } => return self.wait(place, of, slot),
            Step::Complete => {
                let state = &mut self.states[place];
                state.clock = state.clock.max(state.complete);
            }
            Step::Copy { bytes, .. } => self.work(place, bytes as f64 * costs.copy_byte),
            Step::CopyStrided { block, count, .. } => {
                self.work(place, (block * count) as f64 * costs.copy_byte);
            }
            Step::Reduce { bytes, .. } => self.work(place, bytes as f64 * costs.reduce_byte),
        }
        true
    }

    /// The rank has its core for this time, as soon as the core is free.
    fn work(&mut self, place: usize, time: f64) {
        let core = &mut self.cores[self.core[place]];
        let (before, clock) = (core.last, &mut self.states[place].clock);
        let changes = before != place && before != usize::MAX;
        *clock = clock.max(core.free_at) + if changes { self.costs.switch } else { 0.0 } + time;
        *core = Core { free_at: *clock, last: place };
    }

    /// The card of a rank, on its node.
    fn card(&self, rank: Rank, node: usize) -> usize {
        let cards = self.costs.cards_per_node;
        node * cards + if cards == 1 { 0 } else { rank % cards }
    }

    fn send(&mut self, place: usize, to: Rank, bytes: usize, signal: Option<Slot>) {
        let target = self.ranks.place(to);
        let node_of_target = match target {
            Some(target) => self.node[target],
            None => self.shape.groups().group(to),
        };
        let message = match node_of_target == self.node[place] {
            true => self.copy_within_node(place, bytes as f64),
            false => self.send_far(place, target.map(|_| (to, node_of_target)), bytes as f64),
        };
        match (signal, target) {
            (Some(slot), Some(target)) => {
                let waits_for_core = self.core[target] == self.core[place] && slot < TO_LEADERS;
                let poll = if waits_for_core && !message.is_far { self.costs.poll } else { 0.0 };
                let (head, tail) = (message.head + poll, message.tail + poll);
                self.deliver(target, slot, Message { head, tail, ..message });
            }
            (None, _) => {
                let back = if message.is_far { self.costs.latency } else { self.costs.node_latency };
                let state = &mut self.states[place];
                state.complete = state.complete.max(message.tail + back);
            }
            _ => (),
        }
    }

    fn note(&mut self, place: usize, bytes: f64) {
        if !self.ranks.some.is_empty() {
            let state = &mut self.states[place];
            state.sent.push((state.clock, bytes));
        }
    }

    fn copy_within_node(&mut self, place: usize, bytes: f64) -> Message {
        let (costs, share) = (self.costs, self.ranks.share);
        self.work(place, costs.node_overhead);
        self.note(place, bytes);
        let (clock, memory) = (self.states[place].clock, &mut self.memories[self.node[place]]);
        *memory = memory.max(clock) + bytes * costs.memory_byte * share;
        let end = memory.max(clock + bytes * costs.node_byte);
        self.work(place, end - clock);
        let tail = end + costs.node_latency;
        Message { head: tail, tail, bytes, is_far: false }
    }

    fn send_far(&mut self, place: usize, target: Option<(Rank, usize)>, bytes: f64) -> Message {
        let (costs, share) = (self.costs, self.ranks.share);
        self.work(place, costs.send_overhead);
        self.note(place, bytes);
        let clock = self.states[place].clock;
        let card = self.card(self.states[place].rank, self.node[place]);
        let start = self.cards[card].out.max(clock);
        let left = start + (costs.gap + bytes * costs.byte) * share;
        self.cards[card].out = left;
        let moving = if costs.processor_moves_data { left - clock } else { 0.0 };
        self.work(place, moving + costs.send_rest);
        let state = &mut self.states[place];
        state.complete = state.complete.max(left);
        let head = start + costs.latency;
        match target {
            Some((rank, node)) => self.receive(self.card(rank, node), head, bytes, true),
            None => Message { head, tail: head, bytes, is_far: true },
        }
    }

    /// A message goes through the card of its receiver.
    fn receive(&mut self, card: usize, head: f64, bytes: f64, is_walked: bool) -> Message {
        let (costs, share) = (self.costs, self.ranks.share);
        let card = &mut self.cards[card];
        let into = if is_walked { &mut card.into } else { &mut card.into_of_others };
        *into = into.max(head) + (costs.gap + bytes * costs.byte) * share;
        let mut tail = into.max(head + costs.gap + bytes * costs.link_byte);
        if costs.signals_follow && bytes > 0.0 {
            tail += 2.0 * costs.latency + costs.send_overhead + costs.gap;
        }
        Message { head, tail, bytes, is_far: true }
    }

    fn get(&mut self, place: usize, of: Rank, bytes: usize) {
        let bytes = bytes as f64;
        let costs = self.costs;
        let node = self.shape.groups().group(of);
        if node == self.node[place] {
            let message = self.copy_within_node(place, bytes);
            let state = &mut self.states[place];
            state.complete = state.complete.max(message.tail + costs.node_latency);
            return;
        }
        self.work(place, costs.send_overhead);
        self.note(place, bytes);
        let asked = self.states[place].clock + costs.gap + costs.latency + costs.receive_overhead;
        self.work(place, costs.send_rest);
        let (theirs, mine) = (self.card(of, node), self.card(self.states[place].rank, self.node[place]));
        let start = self.cards[theirs].out.max(asked);
        self.cards[theirs].out = start + costs.gap + bytes * costs.byte;
        let message = self.receive(mine, start + costs.latency, bytes, true);
        let state = &mut self.states[place];
        state.complete = state.complete.max(message.tail + costs.receive_overhead);
    }

    fn deliver(&mut self, target: usize, slot: Slot, message: Message) {
        if self.states[target].awaits == Some(slot) {
            self.states[target].awaits = None;
            self.take(target, message);
            let clock = key(self.states[target].clock);
            self.ready.push(Reverse((clock, target)));
        } else {
            self.arrived.insert((target, slot), message);
        }
    }

    /// A rank goes on after a message.
    fn take(&mut self, place: usize, message: Message) {
        let costs = self.costs;
        let state = &mut self.states[place];
        let own = if costs.processor_moves_data { message.bytes * costs.byte } else { 0.0 };
        if message.is_far {
            state.clock = state.clock.max(message.head);
            self.work(place, costs.receive_overhead + own);
        }
        let state = &mut self.states[place];
        state.clock = state.clock.max(message.tail);
        self.work(place, costs.wait_overhead);
    }

    fn wait(&mut self, place: usize, of: Rank, slot: Slot) -> bool {
        let number = self.states[place].waits;
        self.states[place].waits += 1;
        let message = match self.ranks.place(of) {
            Some(_) => self.arrived.remove(&(place, slot)),
            None => Some(self.like_own(place, of, number)),
        };
        match message {
            Some(message) => self.take(place, message),
            None => self.states[place].awaits = Some(slot),
        }
        message.is_some()
    }

    /// The message of a rank that is not walked: as if it had sent it when this rank sent the message with
    /// this number, or sent it now.
    fn like_own(&mut self, place: usize, of: Rank, number: usize) -> Message {
        let costs = self.costs;
        let state = &self.states[place];
        let (at, bytes) = match state.sent.get(number) {
            Some(sent) => *sent,
            None => (state.clock + costs.send_overhead, state.sent.last().map_or(0.0, |(_, bytes)| *bytes)),
        };
        if self.shape.groups().group(of) == self.node[place] {
            let tail = at + bytes * costs.node_byte + costs.node_latency;
            return Message { head: tail, tail, bytes, is_far: false };
        }
        let card = self.card(state.rank, self.node[place]);
        self.receive(card, at + costs.latency, bytes, false)
    }
}
