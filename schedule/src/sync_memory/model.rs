//! A model of PEs that run schedules of several teams at once in shared slots: a network that delivers
//! signals in any order, PEs that start the operations of different teams in different orders, and
//! operations of a team that are started only after those of another one are over.
//!
//! Invariant: everything follows from the seed. Each signal carries what it is, so a signal that is taken
//! for another one is found at once.

use super::{Data, PAIR_SLOTS, PairLease, PairMark, PairMemory, Plan, ReceivedSlots};
use crate::schedule::{Builder, MAILBOX_BYTES, Rank, Remote, Slot, Step};
use crate::shape::{Operation, Shape};
use crate::table::find;
use std::rc::Rc;

/// The identity of a signal: team, operation of the team, sender and slot.
type Identity = [u8; 4];

/// The slots of a PE, as the network has written them.
struct Memory {
    words: Vec<u64>,
    data: Vec<Identity>,
    acknowledgements: Vec<u64>,
}

impl ReceivedSlots for Memory {
    fn word(&self, index: usize) -> u64 {
        self.words[index]
    }

    fn acknowledgement(&self, peer: usize) -> u64 {
        self.acknowledgements[peer]
    }

    fn datum(&self, index: usize) -> u64 {
        u64::from(u32::from_le_bytes(self.data[index]))
    }

    fn mailbox(&self, index: usize, into: &mut [u8]) {
        into[..4].copy_from_slice(&self.data[index]);
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }
}

/// An operation of a team, with the plans of its ranks.
struct Planned {
    team: usize,
    number: u8,
    plans: Vec<Rc<Plan>>,
}

struct Running {
    operation: usize,
    rank: Rank,
    plan: Rc<Plan>,
    lease: PairLease,
    at: usize,
}

struct Pe {
    memory: PairMemory,
    /// The operations in the order in which this PE starts them; whether all before must be over.
    program: Vec<(usize, bool)>,
    started: usize,
    running: Vec<Running>,
    /// Signals whose data are still under way: they are written later.
    following: Vec<(usize, PairMark, Identity)>,
}

impl Pe {
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.following.is_empty()
    }
}

struct Write {
    to: usize,
    mark: PairMark,
    word: u64,
    identity: Identity,
}

struct Model {
    teams: Vec<Vec<usize>>,
    operations: Vec<Planned>,
    pes: Vec<Pe>,
    memories: Vec<Memory>,
    under_way: Vec<Write>,
    /// Words of acknowledgements under way, at most one from a PE to another: from, to, and the word.
    acknowledging: Vec<(usize, usize, u64)>,
    random: Random,
}

/// The tag of a team at a PE: another one at each.
fn tag(team: usize, pe: usize) -> u64 {
    (1 + team * 16 + (pe * 7) % 16) as u64
}

const ALGORITHMS: [(Operation, &str); 8] = [
    (Operation::Barrier, "hypercube"),
    (Operation::Barrier, "dissemination"),
    (Operation::Broadcast, "balanced_tree"),
    (Operation::Broadcast, "binomial"),
    (Operation::AllReduce, "hypercube"),
    (Operation::AllReduce, "recursive_doubling"),
    (Operation::Reduce, "balanced_tree"),
    (Operation::AllGather, "ring"),
];

impl Model {
    /// `n` PEs with `slots` slots a pair, three teams of them and the team of all, `count` operations each.
    fn new(seed: u64, n: usize, slots: usize, count: usize) -> Model {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut teams = vec![(0..n).collect::<Vec<_>>()];
        for _ in 0..3 {
            let mut pes: Vec<usize> = (0..n).collect();
            (1..n).for_each(|i| pes.swap(i, random.below(i + 1)));
            pes.truncate(2 + random.below(n - 1));
            teams.push(pes);
        }
        let mut operations = Vec::new();
        for (team, members) in teams.iter().enumerate() {
            for number in 0..count {
                let (operation, name) = ALGORITHMS[random.below(ALGORITHMS.len())];
                let (n, root) = (members.len(), random.below(members.len()));
                let elements = [1, 4, 30, 200][random.below(4)];
                let algorithm = find(operation, name).expect("it is in the table");
                let plan = |rank| {
                    let root = if operation.is_rooted() { root } else { 0 };
                    let shape = Shape { root, ..Shape::new(operation, rank, n, elements, 8) };
                    Rc::new(Plan::new(algorithm.schedule(&shape, MAILBOX_BYTES)))
                };
                operations.push(Planned { team, number: number as u8, plans: (0..n).map(plan).collect() });
            }
        }
        let pes = (0..n).map(|pe| {
            let mut program = program(&mut random, &operations, |team| teams[team].contains(&pe));
            program.retain(|&(operation, _)| teams[operations[operation].team].contains(&pe));
            let (running, following) = (Vec::new(), Vec::new());
            Pe { memory: PairMemory::with_slots(pe, slots), program, started: 0, running, following }
        });
        let pes: Vec<Pe> = pes.collect();
        let memory = |_| Memory {
            words: vec![0; n * PAIR_SLOTS],
            data: vec![[0; 4]; n * PAIR_SLOTS],
            acknowledgements: vec![0; n],
        };
        let memories = (0..n).map(memory).collect();
        let (under_way, acknowledging) = (Vec::new(), Vec::new());
        Model { teams, operations, pes, memories, under_way, acknowledging, random }
    }

    /// Delivers a signal: its data, and then its word.
    fn deliver(&mut self, number: usize) {
        let Write { to, mark, word, identity } = self.under_way.swap_remove(number);
        let memory = &mut self.memories[to];
        memory.data[mark.index] = identity;
        memory.words[mark.index] = word;
    }

    /// Delivers an acknowledgement.
    fn tell(&mut self, number: usize) {
        let (from, to, word) = self.acknowledging.swap_remove(number);
        self.memories[to].acknowledgements[from] = word;
    }

    fn start(&mut self, pe: usize) -> bool {
        let Pe { memory, program, started, running, following } = &mut self.pes[pe];
        let Some(&(operation, is_after_all)) = program.get(*started) else { return false };
        if is_after_all && !(running.is_empty() && following.is_empty()) {
            return false;
        }
        let Planned { team, plans, .. } = &self.operations[operation];
        let members = &self.teams[*team];
        let rank = members.iter().position(|&member| member == pe).expect("a member");
        let plan = Rc::clone(&plans[rank]);
        let lease = memory.admit(&plan, tag(*team, pe), |rank| members[rank]);
        running.push(Running { operation, rank, plan, lease, at: 0 });
        *started += 1;
        true
    }

    /// Moves the operations of a PE as far as they go, and acknowledges; whether anything has moved.
    fn drive(&mut self, pe: usize, takes_all: bool) -> bool {
        let mut has_moved = self.follow(pe, takes_all);
        let mut running = std::mem::take(&mut self.pes[pe].running);
        running.retain_mut(|running| {
            while self.step(pe, running) {
                has_moved = true;
            }
            let is_over = running.at == running.plan.schedule.steps.len();
            if !is_over {
                let members = &self.teams[self.operations[running.operation].team];
                let (plan, lease) = (&running.plan, &running.lease);
                let pe_of = |rank: Rank| members[rank];
                let other =
                    self.pes[pe].memory.take_ahead((plan, lease), takes_all, pe_of, &self.memories[pe]);
                assert_eq!(other, None, "nobody agrees here");
            }
            !is_over
        });
        self.pes[pe].running = running;
        let under_way = &self.acknowledging;
        let may_tell = |to| !under_way.iter().any(|(from, other, _)| (*from, *other) == (pe, to));
        let words = self.pes[pe].memory.chores(may_tell);
        has_moved |= !words.is_empty();
        self.acknowledging.extend(words.into_iter().map(|(to, word)| (pe, to, word)));
        has_moved
    }

    /// Writes one of the signals whose data were under way, or in a random order all that are left.
    fn follow(&mut self, pe: usize, is_one: bool) -> bool {
        let left = self.pes[pe].following.len();
        let count = if is_one { left.min(1) } else { left };
        for left in (left + 1 - count..=left).rev() {
            let number = self.random.below(left);
            let (to, mark, identity) = self.pes[pe].following.swap_remove(number);
            let word = self.pes[pe].memory.seal(mark);
            self.under_way.push(Write { to, mark, word, identity });
        }
        count > 0
    }

    fn step(&mut self, pe: usize, running: &mut Running) -> bool {
        let plan = Rc::clone(&running.plan);
        let Some(step) = plan.schedule.steps.get(running.at) else { return false };
        let Planned { team, number, .. } = self.operations[running.operation];
        let members = &self.teams[team];
        let (memory, own) = (&mut self.pes[pe].memory, &self.memories[pe]);
        let identity = |from: Rank, slot: Slot| [team as u8, number, from as u8, slot as u8];
        match *step {
            Step::Put { to, signal: Some(slot), bytes, into, .. } => {
                let target = (members[to], tag(team, members[to]));
                let bytes = if into == Remote::Mailbox { bytes } else { 0 };
                let Some(mark) = memory.reserve((&plan, &running.lease), running.at, target, bytes, own)
                else {
                    return false;
                };
                self.pes[pe].following.push((members[to], mark, identity(running.rank, slot)));
                if self.random.below(3) > 0 {
                    self.follow(pe, true);
                }
            }
            Step::Signal { to, slot, announces } => {
                let target = (members[to], tag(team, members[to]));
                let bytes = if announces.is_some() { 16 } else { 0 };
                let Some(mark) = memory.reserve((&plan, &running.lease), running.at, target, bytes, own)
                else {
                    return false;
                };
                let (word, identity) = (memory.seal(mark), identity(running.rank, slot));
                self.under_way.push(Write { to: members[to], mark, word, identity });
            }
            Step::Wait { of, slot } => {
                let arrived = memory.take((&plan, &mut running.lease), running.at, members[of], own);
                let Some(arrived) = arrived.expect("nobody agrees here") else { return false };
                let found: Identity = match &arrived.data {
                    Data::Datum(datum) => (*datum as u32).to_le_bytes(),
                    Data::Mailbox(bytes) => bytes.0[..4].try_into().expect("four bytes"),
                };
                assert_eq!(found, identity(of, slot), "at PE {pe}");
                memory.give(arrived.data);
            }
            _ => (),
        }
        running.at += 1;
        true
    }

    fn is_over(&self) -> bool {
        self.pes.iter().all(|pe| pe.started == pe.program.len() && pe.is_idle())
    }

    /// Runs to the end, with events in a random order.
    fn run(&mut self) {
        let mut idle = 0;
        while !self.is_over() {
            let (pe, choice) = (self.random.below(self.pes.len()), self.random.below(9));
            let has_moved = match choice {
                0 => self.start(pe),
                1..=3 if !self.under_way.is_empty() => {
                    let number = self.random.below(self.under_way.len());
                    self.deliver(number);
                    true
                }
                4 if !self.acknowledging.is_empty() => {
                    let number = self.random.below(self.acknowledging.len());
                    self.tell(number);
                    true
                }
                _ => self.drive(pe, choice == 8),
            };
            idle = if has_moved { 0 } else { idle + 1 };
            if idle > 50 * self.pes.len() && self.is_stuck() {
                panic!("the operations wait for each other");
            }
        }
    }

    /// Lets everything happen that can happen; whether that is nothing.
    fn is_stuck(&mut self) -> bool {
        let mut has_moved = !self.under_way.is_empty() || !self.acknowledging.is_empty();
        while !self.acknowledging.is_empty() {
            self.tell(0);
        }
        while !self.under_way.is_empty() {
            self.deliver(0);
        }
        for _ in 0..2 {
            for pe in 0..self.pes.len() {
                has_moved |= self.start(pe);
                has_moved |= self.drive(pe, false);
            }
        }
        !has_moved && self.under_way.is_empty() && self.acknowledging.is_empty()
    }
}

/// The order in which a PE starts the operations of its teams: any, or team by team from the last on or from
/// the first on. In the last case the operations of a team are over before the next one begins.
fn program(
    random: &mut Random,
    operations: &[Planned],
    is_member: impl Fn(usize) -> bool,
) -> Vec<(usize, bool)> {
    let mut order: Vec<usize> = (0..operations.len()).filter(|&o| is_member(operations[o].team)).collect();
    let team = |operation: usize| operations[operation].team;
    match random.below(3) {
        0 => {
            let teams: Vec<usize> = order.iter().map(|&operation| team(operation)).collect();
            let mut shuffled = teams.clone();
            (1..shuffled.len()).for_each(|i| shuffled.swap(i, random.below(i + 1)));
            // The operations of a team keep their order.
            let mut of_team = |wanted: usize| {
                let place = order.iter().position(|&operation| team(operation) == wanted);
                order.remove(place.expect("as many as before"))
            };
            shuffled.into_iter().map(|team| (of_team(team), false)).collect()
        }
        1 => {
            order.sort_by_key(|&operation| (usize::MAX - team(operation), operation));
            order.into_iter().map(|operation| (operation, false)).collect()
        }
        _ => {
            let is_first = |i: usize| i > 0 && team(order[i]) != team(order[i - 1]);
            (0..order.len()).map(|i| (order[i], is_first(i))).collect()
        }
    }
}

#[test]
fn operations_of_teams_that_share_slots_get_their_own_signals() {
    let seeds = if cfg!(feature = "full") { 20_000 } else { 600 };
    for seed in 0..seeds {
        let (n, slots) = (2 + seed as usize % 7, [1, 2, 3, PAIR_SLOTS][seed as usize / 7 % 4]);
        let mut model = Model::new(seed, n, slots, 1 + seed as usize % 30);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.run()));
        assert!(outcome.is_ok(), "seed {seed}: {n} PEs, {slots} slots");
    }
}

/// A sender starts many operations of a team before one of another team, whose signals its receiver waits for
/// first.
#[test]
fn a_sender_that_runs_ahead_in_one_team_does_not_hold_up_another_team() {
    let plan = |operation, name: &str, rank| {
        let shape = Shape::new(operation, rank, 2, 1, 8);
        Rc::new(Plan::new(find(operation, name).expect("in the table").schedule(&shape, MAILBOX_BYTES)))
    };
    let mut model = Model::new(1, 2, PAIR_SLOTS, 0);
    model.teams = vec![vec![0, 1], vec![0, 1]];
    let broadcast = |number| Planned {
        team: 0,
        number,
        plans: (0..2).map(|rank| plan(Operation::Broadcast, "binomial", rank)).collect(),
    };
    let barrier = (0..2).map(|rank| plan(Operation::Barrier, "hypercube", rank)).collect();
    model.operations = (0..100).map(broadcast).collect();
    model.operations.push(Planned { team: 1, number: 0, plans: barrier });
    model.pes[0].program = (0..101).map(|operation| (operation, false)).collect();
    model.pes[1].program = std::iter::once((100, false)).chain((0..100).map(|o| (o, true))).collect();
    model.run();
    let counts = model.pes[1].memory.counts(&model.memories[1]);
    assert_eq!(counts.slots, PAIR_SLOTS as u64, "a sender that runs ahead uses all slots");
}

/// PE 1 waits for PE 2, which waits for PE 0, which has to signal PE 1 before: PE 1 must take signals of PE 0
/// although it waits for another PE, as those of another team occupy all slots.
#[test]
fn signals_are_taken_of_all_pes_that_an_operation_awaits() {
    let plan = |build: &dyn Fn(&mut Builder)| {
        let mut builder = Builder::new(MAILBOX_BYTES);
        build(&mut builder);
        Rc::new(Plan::new(builder.finish()))
    };
    let mut model = Model::new(1, 3, PAIR_SLOTS, 0);
    model.teams = vec![vec![0, 1], vec![0, 1, 2]];
    let ahead =
        |number| Planned { team: 0, number, plans: vec![plan(&|b| b.signal(1, 0)), plan(&|b| b.wait(0, 0))] };
    let circle = vec![
        plan(&|b| (1..3).for_each(|rank| b.signal(rank, 0))),
        plan(&|b| [(2, 1), (0, 0)].into_iter().for_each(|(rank, slot)| b.wait(rank, slot))),
        plan(&|b| {
            b.wait(0, 0);
            b.signal(1, 1);
        }),
    ];
    model.operations = (0..50).map(ahead).collect();
    model.operations.push(Planned { team: 1, number: 0, plans: circle });
    model.pes[0].program = (0..51).map(|operation| (operation, false)).collect();
    model.pes[1].program = std::iter::once((50, false)).chain((0..50).map(|o| (o, true))).collect();
    model.pes[2].program = vec![(50, false)];
    model.run();
}

/// Two PEs that exchange signals in turn use two slots of each other, and no acknowledgements.
#[test]
fn an_exchange_in_turn_uses_two_slots() {
    for seed in 1..50 {
        let mut model = Model::new(seed, 2, PAIR_SLOTS, 0);
        let plan = |rank| {
            let shape = Shape::new(Operation::AllReduce, rank, 2, 1, 8);
            let algorithm = find(Operation::AllReduce, "hypercube").expect("in the table");
            Rc::new(Plan::new(algorithm.schedule(&shape, MAILBOX_BYTES)))
        };
        model.teams = vec![vec![0, 1]];
        let planned = |number| Planned { team: 0, number, plans: (0..2).map(plan).collect() };
        model.operations = (0..200).map(planned).collect();
        model.pes.iter_mut().for_each(|pe| pe.program = (0..200).map(|number| (number, true)).collect());
        model.run();
        for (pe, memory) in model.pes.iter().zip(&model.memories) {
            let counts = pe.memory.counts(memory);
            assert_eq!((counts.signals, counts.chores), (200, 0), "seed {seed}");
            assert!((1..=2).contains(&counts.slots), "seed {seed}: {counts:?}");
            assert_eq!((counts.words, counts.bytes), (counts.slots, 16 * counts.slots));
        }
    }
}
