//! Collective operations against an oracle: every operation, blocking, non-blocking and persistent, on teams
//! of all kinds, in every form, with every algorithm and every strategy of synchronisation memory.

use crate::common;
use crate::dice::Dice;
use pelago::coll::table::algorithms;
use pelago::prelude::*;
use pelago::{Request, Span};

/// The value of element `index` of the source of `pe` in a round.
fn element(round: u64, pe: Pe, index: usize) -> u64 {
    let mixed = (round << 32 | (pe as u64) << 20 | index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

/// A source with `len` elements of each PE, in a round.
fn source_of(round: u64, pe: Pe, len: usize) -> Vec<u64> {
    (0..len).map(|index| element(round, pe, index)).collect()
}

/// A pseudorandom number below `bound`, the same at all PEs.
fn draw(round: u64, what: u64, bound: usize) -> usize {
    (element(round, 999, what as usize) >> 17) as usize % bound
}

const NAMES: [&str; 13] = [
    "broadcast",
    "scatter",
    "scatter_varying",
    "gather",
    "gather_varying",
    "all_gather",
    "all_gather_varying",
    "all_to_all",
    "all_to_all_strided",
    "all_to_all_varying",
    "reduce",
    "all_reduce",
    "reduce_scatter",
];

/// One operation with its effect on the target of this PE.
struct Case<'a> {
    name: &'static str,
    round: u64,
    count: usize,
    root: usize,
    op: ReduceOp,
    members: &'a [Pe],
    me: usize,
    /// By rank.
    sources: Vec<Vec<u64>>,
}

impl Case<'_> {
    fn n(&self) -> usize {
        self.members.len()
    }

    fn counts(&self) -> Vec<usize> {
        (0..self.n()).map(|rank| draw(self.round, 50 + rank as u64, self.count + 1)).collect()
    }

    /// Elements that rank `from` sends to rank `to` in the varying all-to-all.
    fn sent(&self, from: usize, to: usize) -> usize {
        draw(self.round, 1000 + (from * 64 + to) as u64, self.count + 1)
    }

    fn source(&self, rank: usize) -> &[u64] {
        &self.sources[rank]
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        match self.op {
            ReduceOp::Sum => left.wrapping_add(right),
            ReduceOp::Product => left.wrapping_mul(right),
            ReduceOp::Min => left.min(right),
            ReduceOp::Max => left.max(right),
            ReduceOp::And => left & right,
            ReduceOp::Or => left | right,
            ReduceOp::Xor => left ^ right,
        }
    }

    fn combined(&self, ranks: std::ops::Range<usize>, index: usize) -> u64 {
        ranks.map(|rank| self.source(rank)[index]).reduce(|left, right| self.combine(left, right)).unwrap()
    }

    /// Writes the expected result to the start of `target`; the rest is unchanged.
    fn expected(&self, target: &mut [u64]) {
        let (n, count, me) = (self.n(), self.count, self.me);
        let is_root = me == self.root;
        let mut place = |at: usize, values: &[u64]| target[at..at + values.len()].copy_from_slice(values);
        match self.name {
            "broadcast" => place(0, &self.source(self.root)[..count]),
            "scatter" => place(0, &self.source(self.root)[me * count..(me + 1) * count]),
            "scatter_varying" => {
                let counts = self.counts();
                let at = counts[..me].iter().sum();
                place(0, &self.source(self.root)[at..at + counts[me]]);
            }
            "gather" | "gather_varying" if !is_root => {}
            "gather" | "all_gather" => {
                (0..n).for_each(|rank| place(rank * count, &self.source(rank)[..count]))
            }
            "gather_varying" | "all_gather_varying" => {
                let mut at = 0;
                for (rank, length) in self.counts().into_iter().enumerate() {
                    place(at, &self.source(rank)[..length]);
                    at += length;
                }
            }
            "all_to_all" => {
                (0..n).for_each(|rank| place(rank * count, &self.source(rank)[me * count..(me + 1) * count]));
            }
            "all_to_all_strided" => {
                for (rank, e) in (0..n).flat_map(|rank| (0..count).map(move |e| (rank, e))) {
                    place((rank * count + e) * 2, &[self.source(rank)[(me * count + e) * 3]]);
                }
            }
            "all_to_all_varying" => {
                for rank in 0..n {
                    let at: usize = (0..me).map(|to| self.sent(rank, to)).sum();
                    place(rank * count, &self.source(rank)[at..at + self.sent(rank, me)]);
                }
            }
            "reduce" if !is_root => {}
            "reduce" | "all_reduce" => {
                (0..count).for_each(|index| place(index, &[self.combined(0..n, index)]));
            }
            "reduce_scatter" => {
                (0..count).for_each(|index| place(index, &[self.combined(0..n, me * count + index)]));
            }
            "inclusive_scan" => {
                (0..count).for_each(|index| place(index, &[self.combined(0..me + 1, index)]));
            }
            "exclusive_scan" if me == 0 => {}
            "exclusive_scan" => (0..count).for_each(|index| place(index, &[self.combined(0..me, index)])),
            name => unreachable!("no operation {name}"),
        }
    }

    /// Calls the operation, with sources and targets as long as the case needs.
    fn call<'a, C: Collective>(
        &self,
        on: &C,
        target: &'a Symmetric<'_, u64>,
        source: &'a Symmetric<'_, u64>,
    ) -> pelago::Result<C::Outcome<'a>> {
        let (n, count, root, op) = (self.n(), self.count, self.root, self.op);
        let (into, from) = (|len: usize| target.span(0..len), |len: usize| source.span(0..len));
        match self.name {
            "broadcast" => on.broadcast(root, into(count), from(count)),
            "scatter" => on.scatter(root, into(count), from(n * count)),
            "scatter_varying" => {
                let counts = self.counts();
                on.scatter_varying(root, into(counts[self.me]), from(counts.iter().sum()), &counts)
            }
            "gather" => on.gather(root, into(n * count), from(count)),
            "gather_varying" => {
                let counts = self.counts();
                on.gather_varying(root, into(counts.iter().sum()), from(counts[self.me]), &counts)
            }
            "all_gather" => on.all_gather(into(n * count), from(count)),
            "all_gather_varying" => {
                let counts = self.counts();
                on.all_gather_varying(into(counts.iter().sum()), from(counts[self.me]), &counts)
            }
            "all_to_all" => on.all_to_all(into(n * count), from(n * count)),
            "all_to_all_strided" => {
                on.all_to_all_strided(into(2 * n * count), from(3 * n * count), count, (2, 3))
            }
            "all_to_all_varying" => {
                let mut at = 0;
                let mut sends = Vec::new();
                for to in 0..n {
                    sends.push((at, self.sent(self.me, to)));
                    at += self.sent(self.me, to);
                }
                let receives: Vec<_> = (0..n).map(|rank| (rank * count, self.sent(rank, self.me))).collect();
                on.all_to_all_varying(into(n * count), from(at), &receives, &sends)
            }
            "reduce" => on.reduce(op, root, into(count), from(count)),
            "all_reduce" => on.all_reduce(op, into(count), from(count)),
            "reduce_scatter" => on.reduce_scatter(op, into(count), from(n * count)),
            "inclusive_scan" => on.inclusive_scan(op, into(count), from(count)),
            "exclusive_scan" => on.exclusive_scan(op, into(count), from(count)),
            name => unreachable!("no operation {name}"),
        }
    }
}

/// A case drawn by its round, the same at all members.
fn case<'a>(name: &'static str, round: u64, members: &'a [Pe], me: usize, counts: &[usize]) -> Case<'a> {
    const OPS: [ReduceOp; 7] = [
        ReduceOp::Sum,
        ReduceOp::Product,
        ReduceOp::Min,
        ReduceOp::Max,
        ReduceOp::And,
        ReduceOp::Or,
        ReduceOp::Xor,
    ];
    let count = counts[draw(round, 1, counts.len())];
    let sources = members.iter().map(|&pe| source_of(round, pe, (3 * count + 2) * members.len())).collect();
    let (root, op) = (draw(round, 2, members.len()), OPS[draw(round, 3, 7)]);
    Case { name, round, count, root, op, members, me, sources }
}

/// Names of operations in the oracle.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(["inclusive_scan", "exclusive_scan"])
}

/// Runs cases of every name on a team, one after the other.
pub fn run_cases(team: &Team<'_>, names: &[&'static str], rounds: u64, counts: &[usize]) {
    let world = team.world();
    let members: Vec<Pe> = (0..team.n_pes()).map(|rank| team.pe(rank)).collect();
    let most = counts.iter().max().unwrap();
    let len = (3 * most + 2) * members.len();
    let space = team.space(2 * len * 8 + (1 << 14)).unwrap();
    let (target, source) = (space.alloc_zeroed::<u64>(len).unwrap(), space.alloc_zeroed::<u64>(len).unwrap());
    let mut seen = vec![0; len];
    for round in 0..rounds {
        for (at, &name) in names.iter().enumerate() {
            let case = case(name, round * 100 + at as u64, &members, team.my_rank(), counts);
            // Sources are read by others until the operation is over here, targets written from its start.
            source.local().write(0, case.source(case.me));
            target.local().write(0, &vec![7; len]);
            team.sync();
            match round % 3 {
                0 => case.call(team, &target, &source).unwrap(),
                1 => case.call(&team.nonblocking(), &target, &source).unwrap().wait(),
                _ => {
                    let again = case.call(&team.persistent(), &target, &source).unwrap();
                    again.start().unwrap().wait();
                    // The next start may write the targets of members that have not completed the first one.
                    team.sync();
                    again.start().unwrap().wait();
                }
            }
            let mut expected = vec![7; len];
            case.expected(&mut expected);
            target.local().read(0, &mut seen);
            let (n, me, count, root) = (case.n(), case.me, case.count, case.root);
            assert!(
                seen == expected,
                "{name} of {count} elements, root {root}, rank {me} of {n}, round {round}, PE {}:\n{seen:?}\n\
                 instead of\n{expected:?}",
                world.my_pe()
            );
            team.sync();
        }
    }
}

fn every_operation_does_what_it_says(world: &World) {
    let names: Vec<_> = all_names().collect();
    let rounds = common::rounds(world, 6, 3);
    let counts: &[usize] = if world.is_simulated() { &[0, 1, 5, 40] } else { &[0, 1, 3, 29, 300, 700] };
    run_cases(&world.team(), &names, rounds, counts);
    let me = world.my_pe();
    if let Some(team) = world.team().split_strided(world.n_pes() - 1, -1, world.n_pes() - 1).unwrap() {
        run_cases(&team, &names, rounds, counts);
    }
    let halves = world.team().split_by(Some(me as u64 % 2), 0).unwrap().unwrap();
    run_cases(&halves, &names, rounds, counts);
}

fn elements_may_be_combined_in_place(world: &World) {
    let team = world.team();
    let (me, n) = (world.my_pe(), world.n_pes());
    for len in [0, 1, 5, 600, 1500] {
        let array = world.alloc::<f64>(len).unwrap();
        let fill = || array.local().write(0, &vec![me as f64 + 1.0; len]);
        let sum = |ranks: usize| (ranks * (ranks + 1) / 2) as f64;
        fill();
        team.all_reduce(ReduceOp::Sum, &array, &array).unwrap();
        assert_eq!(array.local().to_vec(), vec![sum(n); len]);
        team.sync();
        fill();
        team.inclusive_scan(ReduceOp::Sum, &array, &array).unwrap();
        assert_eq!(array.local().to_vec(), vec![sum(me + 1); len]);
        team.sync();
        fill();
        team.exclusive_scan(ReduceOp::Sum, &array, &array).unwrap();
        assert_eq!(array.local().to_vec(), vec![if me == 0 { 1.0 } else { sum(me) }; len]);
        team.sync();
        fill();
        team.reduce(ReduceOp::Max, n - 1, &array, &array).unwrap();
        let expected = if me == n - 1 { n as f64 } else { me as f64 + 1.0 };
        assert_eq!(array.local().to_vec(), vec![expected; len]);
        team.sync();
        team.broadcast(n - 1, &array, &array).unwrap();
        assert_eq!(array.local().to_vec(), vec![n as f64; len]);
        team.sync();
    }
}

fn elements_may_lie_anywhere(world: &World) {
    let team = world.team();
    let (me, n) = (world.my_pe(), world.n_pes());
    let bytes = world.alloc_zeroed::<u8>(20_000).unwrap();
    for (len, at) in [(1, 1), (8, 3), (57, 11), (5001, 7)] {
        let (target, source) = (bytes.span(at..at + len), bytes.span(9001 + at..9001 + at + len));
        let mine: Vec<u8> = (0..len).map(|i| (i * 7 + me * 13) as u8).collect();
        bytes.local().write(9001 + at, &mine);
        team.sync();
        team.broadcast(1 % n, target, source).unwrap();
        let expected: Vec<u8> = (0..len).map(|i| (i * 7 + 1 % n * 13) as u8).collect();
        assert_eq!(bytes.local().to_vec()[at..at + len], expected);
        team.sync();
        team.all_reduce(ReduceOp::Max, target, source).unwrap();
        let most = |i: usize| (0..n).map(|pe| (i * 7 + pe * 13) as u8).max().unwrap();
        assert_eq!(bytes.local().to_vec()[at..at + len], (0..len).map(most).collect::<Vec<_>>());
        team.sync();
    }
}

/// The product of matrices of 2 x 2, which do not commute.
pub fn product(left: [u32; 4], right: [u32; 4]) -> [u32; 4] {
    let [a, b, c, d] = left;
    let [e, f, g, h] = right;
    let dot = |x: u32, y: u32, z: u32, w: u32| x.wrapping_mul(y).wrapping_add(z.wrapping_mul(w));
    [dot(a, e, b, g), dot(a, f, b, h), dot(c, e, d, g), dot(c, f, d, h)]
}

/// The order of ranks is kept.
fn users_combine_as_they_like(world: &World) {
    let team = world.team();
    let matrix = |pe: usize, i: usize| [1 + pe as u32, 2, i as u32, 3];
    for len in [1, 40, 400] {
        let (target, source) = (world.alloc::<[u32; 4]>(len).unwrap(), world.alloc::<[u32; 4]>(len).unwrap());
        (0..len).for_each(|i| source.local().set(i, matrix(world.my_pe(), i)));
        team.sync();
        team.all_reduce(product, &target, &source).unwrap();
        let expected = |i: usize| (0..world.n_pes()).map(|pe| matrix(pe, i)).reduce(product).unwrap();
        assert_eq!(target.local().to_vec(), (0..len).map(expected).collect::<Vec<_>>());
        team.sync();
    }
}

/// Starts up to a hundred operations on three teams that overlap, waits for them in another order, and does
/// so with operations of all kinds.
fn a_hundred_operations_are_under_way(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let whole = world.team();
    let pairs = whole.split_by(Some(me as u64 / 2), 0).unwrap().unwrap();
    let reversed = whole.split_strided(n - 1, -1, n).unwrap().unwrap();
    let teams = [&whole, &pairs, &reversed];
    let operations = common::rounds(world, 100, 30) as usize;
    let names: Vec<_> = all_names().collect();
    let members: Vec<Vec<Pe>> =
        teams.iter().map(|team| (0..team.n_pes()).map(|rank| team.pe(rank)).collect()).collect();
    let len = |count: usize| (3 * count + 2) * n;
    let counts = [0, 1, 9];
    let arrays: Vec<_> = (0..operations)
        .map(|_| (world.alloc::<u64>(len(9)).unwrap(), world.alloc::<u64>(len(9)).unwrap()))
        .collect();
    let cases: Vec<_> = (0..operations)
        .map(|i| {
            let team = i % 3;
            case(names[i % names.len()], 5000 + i as u64, &members[team], teams[team].my_rank(), &counts)
        })
        .collect();
    for (case, (target, source)) in cases.iter().zip(&arrays) {
        source.local().write(0, case.source(case.me));
        target.local().write(0, &vec![7; len(9)]);
    }
    world.barrier();
    let start = |i: usize| -> Request<'_> {
        cases[i].call(&teams[i % 3].nonblocking(), &arrays[i].0, &arrays[i].1).unwrap()
    };
    let mut requests: Vec<_> = (0..operations).map(start).collect();
    // Each PE waits in an order of its own, and for some only at the end of the world.
    if me % 2 == 1 {
        requests.reverse();
    }
    let rest = requests.split_off(operations / 2);
    requests.into_iter().for_each(Request::wait);
    let tested = rest.first().is_none_or(Request::test);
    rest.into_iter().for_each(Request::wait);
    let _ = tested;
    for (i, (case, (target, _))) in cases.iter().zip(&arrays).enumerate() {
        let mut expected = vec![7; len(9)];
        case.expected(&mut expected);
        assert_eq!(target.local().to_vec(), expected, "operation {i}: {}", case.name);
    }
    world.barrier();
}

fn forgotten_requests_are_over_in_time(world: &World) {
    let team = world.team();
    let n = world.n_pes() as u64;
    for _ in 0..20 {
        let (target, source) = (world.alloc_zeroed::<u64>(3).unwrap(), world.alloc_zeroed::<u64>(3).unwrap());
        source.local().write(0, &[1, 2, 3]);
        std::mem::forget(team.nonblocking().all_reduce(ReduceOp::Sum, &target, &source).unwrap());
    }
    let (mut target, source) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    source.local().set(0, 1);
    drop(team.nonblocking().all_reduce(ReduceOp::Sum, &target, &source).unwrap());
    assert_eq!(target.exclusive(|part| part[0]).unwrap(), n);
}

/// Operations one after the other, without further synchronization between them.
fn back_to_back(world: &World, rounds: u64) {
    let team = world.team();
    let n = world.n_pes() as u64;
    let source = world.alloc_zeroed::<u64>(1).unwrap();
    // Targets in turn: a fast PE may be one operation ahead.
    let targets: Vec<_> = (0..4).map(|_| world.alloc_zeroed::<u64>(1).unwrap()).collect();
    source.local().set(0, world.my_pe() as u64 + 1);
    world.barrier();
    let whole = |target: &Symmetric<'_, u64>| target.local().get(0);
    for round in 0..rounds {
        let target = &targets[round as usize % 4];
        let expected = match round % 3 {
            0 => {
                team.all_reduce(ReduceOp::Sum, target, &source).unwrap();
                n * (n + 1) / 2
            }
            1 => {
                let root = (round / 3 % n) as usize;
                team.broadcast(root, target, &source).unwrap();
                root as u64 + 1
            }
            _ => {
                team.inclusive_scan(ReduceOp::Sum, target, &source).unwrap();
                let me = world.my_pe() as u64 + 1;
                me * (me + 1) / 2
            }
        };
        assert_eq!(whole(target), expected, "round {round}");
    }
    world.barrier();
}

/// A root that runs ahead of slow readers: no PE sees data of another round, for one word or more. Between
/// PEs that map each other only, where each member writes its target itself.
fn a_stream_of_broadcasts(world: &World) {
    let team = world.team();
    let (target, source) = (world.alloc_zeroed::<u64>(20).unwrap(), world.alloc_zeroed::<u64>(20).unwrap());
    for round in 0..3000_u64 {
        // In slots alone, on pages alone, and on both.
        let len = match round / 1000 {
            0 => 1 + round as usize % 7,
            1 => 20,
            _ => [1, 20][round as usize % 2],
        };
        source.local().write(0, &vec![round; len]);
        if world.my_pe() != 0 && round % 7 == 0 {
            (0..round % 5 * 200).for_each(|_| pelago::sync::spin_once());
        }
        // Long enough for the root to use all slots.
        if world.my_pe() == 1 && round % 200 == 0 {
            (0..20_000).for_each(|_| pelago::sync::spin_once());
        }
        team.broadcast(0, target.span(0..len), source.span(0..len)).unwrap();
        assert_eq!(target.local().to_vec()[..len], vec![round; len]);
    }
    world.barrier();
}

/// The number before that of the first broadcast, modulo 2^32 - 1.
const BEFORE_FIRST: u64 = if cfg!(debug_assertions) { (1 << 32) - 20 } else { 0 };

/// Data that look like the first words of later messages between nodes, in messages of many lengths that use
/// the same memory by turns.
fn data_like_later_messages(world: &World) {
    let (team, n) = (world.team(), world.n_pes());
    let (target, source) = (world.alloc_zeroed::<u64>(128).unwrap(), world.alloc_zeroed::<u64>(128).unwrap());
    let mut dice = Dice(9);
    for round in 1..400_u64 {
        // A first word has the number of its message in its upper half, and a bit for data. A message that
        // uses the same units again is about twenty, or about 160 messages later.
        let later = |i: u64| if cfg!(debug_assertions) { 10 + i * 7 % 21 } else { 100 + i * 37 % 120 };
        let data: Vec<u64> =
            (0..128).map(|i| (BEFORE_FIRST + round + later(i / 8) + 1) << 32 | 1 << 31).collect();
        // One root for long, and then roots of all nodes by turns, without meetings.
        let root = if round % 100 < 60 { round as usize / 100 % n } else { round as usize % n };
        let len = [1, 9, 40, 128][dice.below(4)];
        let (slow, looks) = (dice.below(n), dice.below(30));
        source.local().write(0, &data);
        if world.my_pe() == slow {
            (0..looks).for_each(|_| world.progress());
        }
        team.broadcast(root, target.span(0..len), source.span(0..len)).unwrap();
        assert_eq!(target.local().to_vec()[..len], data[..len], "round {round}");
    }
    world.barrier();
}

fn back_to_back_often(world: &World) {
    let rounds = if cfg!(feature = "full") { 100_000 } else { 3000 };
    back_to_back(world, common::rounds(world, rounds, 60));
}

everywhere! {
    oracle(5): every_operation_does_what_it_says;
    oracle_of_two(2): every_operation_does_what_it_says;
    in_place(4): elements_may_be_combined_in_place;
    anywhere(3): elements_may_lie_anywhere;
    by_users(5): users_combine_as_they_like;
    under_way(4): a_hundred_operations_are_under_way;
    forgotten(3): forgotten_requests_are_over_in_time;
    one_after_the_other(3): back_to_back_often;
    like_later_messages(4): data_like_later_messages;
}

#[test]
fn staging_slots_are_not_used_again_before_threads_have_read_them() {
    spmd(3, a_stream_of_broadcasts).unwrap();
}

#[test]
fn staging_slots_are_not_used_again_before_processes_have_read_them() {
    pelago::processes!(3, a_stream_of_broadcasts);
}

const STRATEGIES: [&str; 5] =
    ["additional", "barrier", "pairwise-doubling", "pairwise-structure", "pairwise-edges"];

/// Schedules between PEs that map each other, under each strategy of synchronisation memory.
fn with_strategies(n_pes: usize, body: impl Fn(&World) + Sync) {
    for strategy in STRATEGIES {
        let job = pelago::Spmd::new(n_pes).setting("PELAGO_COLL_FORM", "schedule");
        if let Err(error) = job.setting("PELAGO_SYNC_MEMORY", strategy).run(&body) {
            panic!("PELAGO_SYNC_MEMORY={strategy}: {error}");
        }
    }
}

#[test]
fn schedules_keep_the_oracle_under_each_strategy() {
    with_strategies(5, every_operation_does_what_it_says);
    with_strategies(4, elements_may_be_combined_in_place);
    with_strategies(3, users_combine_as_they_like);
    with_strategies(3, elements_may_lie_anywhere);
}

#[test]
fn a_hundred_schedules_are_under_way_under_each_strategy() {
    with_strategies(4, a_hundred_operations_are_under_way);
    with_strategies(3, forgotten_requests_are_over_in_time);
}

#[test]
fn schedules_follow_each_other_under_each_strategy() {
    with_strategies(4, back_to_back_often);
}

#[test]
fn schedules_between_processes_keep_the_oracle_under_each_strategy() {
    for strategy in STRATEGIES {
        let settings = [("PELAGO_COLL_FORM", "schedule"), ("PELAGO_SYNC_MEMORY", strategy)];
        let report = pelago::try_processes!(3, settings, every_operation_does_what_it_says);
        pelago::testing::expect_success(&report);
    }
}

#[test]
fn every_strategy_bears_with_simulated_networks() {
    for strategy in STRATEGIES {
        for seed in 0..4 {
            let job = pelago::Spmd::new(4).sim(pelago::sim::SimParams::chaos(seed));
            let job = job.setting("PELAGO_SYNC_MEMORY", strategy);
            let outcome = job.run(|world| {
                every_operation_does_what_it_says(world);
                back_to_back(world, 60);
            });
            outcome.unwrap_or_else(|error| panic!("{strategy}, seed {seed}: {error}"));
        }
    }
}

/// Only signals, in one direction: acknowledgements that overtake each other would be lost.
fn broadcasts_of_nothing(world: &World) {
    let array = world.alloc::<u64>(1).unwrap();
    for _ in 0..150 {
        world.team().broadcast(0, array.span(0..0), array.span(0..0)).unwrap();
    }
}

#[test]
fn acknowledgements_do_not_overtake_each_other() {
    let seeds = if cfg!(feature = "full") { 500 } else { 12 };
    for strategy in STRATEGIES {
        for seed in (0..seeds).chain([27, 99, 327]) {
            let job = pelago::Spmd::new(2).sim(pelago::sim::SimParams::chaos(seed));
            let outcome = job.setting("PELAGO_SYNC_MEMORY", strategy).run(broadcasts_of_nothing);
            outcome.unwrap_or_else(|error| panic!("{strategy}, seed {seed}: {error}"));
        }
    }
}

#[test]
fn every_algorithm_keeps_the_oracle() {
    for algorithm in algorithms() {
        let names: Vec<_> = match algorithm.operation.name() {
            "barrier" => vec!["all_reduce"],
            operation => all_names().filter(|name| name.starts_with(operation)).collect(),
        };
        for n_pes in [1, 2, 3, 4, 7, 8] {
            let choice = format!("{}={}", algorithm.operation, algorithm.name);
            let job = pelago::Spmd::new(n_pes).setting("PELAGO_COLL_FORM", "schedule");
            let outcome = job.setting("PELAGO_COLL", &choice).run(|world| {
                run_cases(&world.team(), &names, 3, &[0, 1, 3, 200, 3000]);
                world.team().barrier();
            });
            outcome.unwrap_or_else(|error| panic!("{choice} of {n_pes}: {error}"));
        }
    }
}

#[test]
fn results_are_the_same_everywhere_and_in_deterministic_mode_always() {
    let run = |settings: &[(&str, &str)]| -> Vec<Vec<f64>> {
        let job = pelago::Spmd::new(5);
        let job = settings.iter().fold(job, |job, (variable, value)| job.setting(variable, value));
        let results = job.run(|world| {
            let (target, source) = (world.alloc::<f64>(700).unwrap(), world.alloc::<f64>(700).unwrap());
            let value = |i: usize| (element(3, world.my_pe(), i) as f64).sqrt() * 1e-3;
            (0..700).for_each(|i| source.local().set(i, value(i)));
            world.barrier();
            world.team().all_reduce(ReduceOp::Sum, &target, &source).unwrap();
            let result = target.local().to_vec();
            world.barrier();
            result
        });
        results.unwrap()
    };
    let direct = run(&[]);
    for algorithm in algorithms().filter(|algorithm| algorithm.operation.name() == "all_reduce") {
        let choice = format!("all_reduce={}", algorithm.name);
        let schedule = [("PELAGO_COLL_FORM", "schedule"), ("PELAGO_COLL", choice.as_str())];
        let results = run(&schedule);
        assert!(results.iter().all(|result| result == &results[0]), "{choice}");
        let deterministic = [schedule[0], schedule[1], ("PELAGO_DETERMINISTIC", "on")];
        assert_eq!(run(&deterministic), direct, "{choice}");
    }
}

#[test]
fn senseless_calls_are_refused() {
    let texts = spmd(3, |world| {
        let team = world.team();
        let (a, b) = (world.alloc::<u64>(6).unwrap(), world.alloc::<u64>(6).unwrap());
        let f = world.alloc::<f32>(6).unwrap();
        let pair = team.split_list(&[0, 1]).unwrap();
        let inside = pair.as_ref().map(|pair| pair.space(4096).unwrap());
        let short = inside.as_ref().map(|space| space.alloc::<u64>(6).unwrap());
        let all = |array: &Symmetric<'_, u64>| -> pelago::Result<()> { team.broadcast(0, array, &a) };
        let refused = [
            team.broadcast(3, &a, &b),
            team.scatter(0, &a, &b),
            team.all_gather(a.span(0..5), b.span(0..2)),
            team.all_gather_varying(&a, &b, &[1, 1]),
            team.gather_varying(0, a.span(0..5), &b, &[1, 2, 3]),
            team.gather_varying(0, &a, b.span(0..0), &[1, 1, 1]),
            team.scatter_varying(3, &a, &b, &[1, 1, 1]),
            team.scatter_varying(1, &a, b.span(0..5), &[1, 2, 3]),
            team.scatter_varying(1, a.span(0..0), &b, &[1, 1, 1]),
            team.all_to_all_strided(&a, &b, 2, (0, 1)),
            team.all_to_all_strided(&a, &b, 2, (1, 2)),
            team.all_to_all_varying(&a, &b, &[(0, 1); 3], &[(0, 1); 2]),
            team.all_to_all_varying(&a, &b, &[(0, 1); 3], &[(0, 2); 3]),
            team.all_to_all_varying(&a, &b, &[(0, 1), (1, 1), (5, 2)], &[(0, 1); 3]),
            team.all_to_all_varying(&a, &b, &[(0, 1); 3], &[(usize::MAX - 39, 40), (0, 1), (0, 1)]),
            team.all_to_all_strided(&a, &b, usize::MAX / 2 + 1, (1, 1)),
            team.all_gather_varying(&a, &b, &[usize::MAX, 2, 1]),
            team.all_reduce(ReduceOp::And, &f, &f),
            team.all_reduce(ReduceOp::Sum, a.span(0..3), a.span(1..4)),
            team.all_gather(a.span(0..6), a.span(0..2)),
            short.as_ref().map_or_else(|| team.broadcast(9, &a, &b), all),
        ];
        refused.map(|outcome| outcome.map_or_else(|error| error.to_string(), |()| "done".to_owned()))
    });
    for texts in texts.unwrap() {
        for (i, text) in texts.iter().enumerate() {
            let is_fine = text.contains("refused");
            assert!(is_fine, "{i}: {text}");
        }
    }
}

#[test]
fn wrong_settings_are_refused() {
    for choice in ["broadcast", "broadcast=", "broadcast=ring9", "cast=binomial", "=", "barrier:tree"] {
        let outcome = pelago::Spmd::new(1).setting("PELAGO_COLL", choice).run(World::barrier);
        assert!(outcome.unwrap_err().to_string().contains("PELAGO_COLL"), "{choice}");
    }
}

#[test]
#[should_panic(expected = "span of the elements 3..9")]
fn a_span_beyond_the_array_is_refused() {
    let world = World::init().unwrap();
    let array = world.alloc::<u8>(8).unwrap();
    let _: Span<'_, u8> = array.span(3..9);
}
