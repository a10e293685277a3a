//! How long a candidate takes on a network, by LogGP: quick enough to rank all candidates of an operation
//! before any is measured or simulated. `pelago model` is exact on machines that it knows; this is some
//! hundred times quicker.
//!
//! Invariant: the estimate follows from the costs, the shape and the algorithm alone; the rank of the shape
//! does not matter, so that all members have the same ranking. An algorithm needs nothing for it but its
//! schedules.
//!
//! Short schedules are walked at all ranks, in the order of their clocks. Of a large team in which each rank
//! has many steps a few ranks are walked, and those from which they get their first message; every other rank
//! counts as being as far as the one that waits for it, which is so in rings and exchanges.

mod levels;
mod walk;

pub use levels::Levels;

use crate::candidates::Candidate;
use crate::schedule::{MAILBOX_BYTES, Rank, Step};
use crate::shape::Shape;
use walk::{Ranks, Walk};

/// The steps of all ranks up to which all are walked.
const STEPS_MAX: usize = 400_000;
/// The nodes that are walked of a larger operation, and the ranks of each.
const NODES: usize = 2;
const RANKS_OF_NODE: usize = 8;
/// The most ranks that are walked because others get their first message from them.
const BEFORE_MAX: usize = 16;
/// The most ranks of quick estimates ([`Costs::estimate_ns`]).
pub const RANKS_MAX: usize = 64;
/// The roots whose times they are the mean of.
const ROOTS_MAX: usize = 8;

/// The costs of messages and work, in nanoseconds and nanoseconds of a byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// From one node's card to another's.
    pub latency: f64,
    /// Of the processor, until a message has left.
    pub send_overhead: f64,
    /// Of the processor, from then until its call returns.
    pub send_rest: f64,
    /// Of the processor that receives a message, if it does.
    pub receive_overhead: f64,
    /// Of the processor, when a wait has ended.
    pub wait_overhead: f64,
    /// Of the card, for each message.
    pub gap: f64,
    /// Of the card, for each byte.
    pub byte: f64,
    /// Of the slowest link of a route, for each byte.
    pub link_byte: f64,
    /// The network cards of a node.
    pub cards_per_node: usize,
    /// Whether the processor moves the bytes between nodes and not the card.
    pub processor_moves_data: bool,
    /// Whether the signal of a put follows when its data are acknowledged.
    pub signals_follow: bool,
    /// From one PE of a node to another.
    pub node_latency: f64,
    /// Of the processor, for each message in a node.
    pub node_overhead: f64,
    /// Of the processor that copies, for each byte in a node.
    pub node_byte: f64,
    /// Of the node's memory, for each byte that its PEs copy.
    pub memory_byte: f64,
    /// Of a copy in a rank's own memory, for each byte.
    pub copy_byte: f64,
    /// Of combining elements, for each byte of the result.
    pub reduce_byte: f64,
    /// The number of ranks that share a core. They follow each other in the order of their nodes.
    pub ranks_per_core: usize,
    /// Of a core, until another one of its ranks goes on.
    pub switch: f64,
    /// Of a rank that waits in a schedule and shares its core with the rank that it waits for: its looks at
    /// the network, before it lets that rank go on.
    pub poll: f64,
}

impl Default for Costs {
    /// A network of average speed, where none is known.
    fn default() -> Costs {
        Costs {
            latency: 15_000.0,
            send_overhead: 300.0,
            send_rest: 0.0,
            receive_overhead: 0.0,
            wait_overhead: 300.0,
            gap: 0.0,
            byte: 0.6,
            link_byte: 0.6,
            cards_per_node: 1,
            processor_moves_data: false,
            signals_follow: false,
            node_latency: 500.0,
            node_overhead: 300.0,
            node_byte: 0.1,
            memory_byte: 0.0,
            copy_byte: 0.1,
            reduce_byte: 0.15,
            ranks_per_core: 1,
            switch: 500.0,
            poll: 1000.0,
        }
    }
}

impl Costs {
    /// TCP between nodes of one machine: network namespaces, or simulated nodes. Measured by `pelago tune
    /// measure` (the machine file `tcp-veth`), but for cores that are shared: these costs are fitted on
    /// collective operations of 4 PEs on 2 cores (decision 0062).
    pub fn tcp_of_one_machine() -> Costs {
        Costs {
            latency: 235.0,
            send_overhead: 793.0,
            send_rest: 2677.0,
            receive_overhead: 2208.0,
            wait_overhead: 1179.0,
            byte: 0.11,
            link_byte: 0.11,
            processor_moves_data: true,
            node_latency: 168.0,
            node_overhead: 6.0,
            node_byte: 0.174,
            memory_byte: 0.02,
            copy_byte: 0.02,
            reduce_byte: 0.025,
            switch: 500.0,
            poll: 5000.0,
            ..Costs::default()
        }
    }

    /// The time that the operation takes all ranks by this candidate, in nanoseconds.
    pub fn estimate(&self, candidate: &Candidate, shape: &Shape) -> f64 {
        let of = |rank| candidate.schedule(&Shape { rank, ..shape.clone() }, MAILBOX_BYTES).steps;
        let samples: Vec<_> =
            [0, 1, shape.n / 2, shape.n - 1].iter().map(|rank| of(rank % shape.n)).collect();
        let mut lengths: Vec<_> = samples.iter().map(Vec::len).collect();
        lengths.sort_unstable();
        let ranks = match lengths[1].saturating_mul(shape.n) + lengths[3] <= STEPS_MAX {
            true => Ranks::all(shape),
            false => Ranks::some(shape, &walked(shape, &of)),
        };
        Walk::new(self, shape, ranks).time(of)
    }

    /// The time that an operation takes all ranks by a candidate, in whole nanoseconds, as the mean of some
    /// roots. `None` for more ranks than [`RANKS_MAX`]. If all ranks are on one node, their messages count as
    /// if each had its own, because schedules between them go through a provider as well.
    pub fn estimate_ns(&self, candidate: &Candidate, shape: &Shape) -> Option<u64> {
        if shape.n > RANKS_MAX {
            return None;
        }
        let nodes = match shape.nodes.is_empty() {
            true => (0..shape.n as u32).collect(),
            false => shape.nodes.clone(),
        };
        let shape = Shape { nodes, ..shape.clone() };
        let roots = if shape.operation.is_rooted() { shape.n.min(ROOTS_MAX) } else { 1 };
        let root = |number: usize| if roots == 1 { shape.root } else { number * shape.n / roots };
        let time = |number| self.estimate(candidate, &Shape { root: root(number), ..shape.clone() });
        Some(((0..roots).map(time).sum::<f64>() / roots as f64).ceil() as u64)
    }

    /// The same of an operation in two levels.
    pub fn levels_ns(&self, levels: &Levels) -> Option<u64> {
        let n = levels.groups.ranks_len();
        if n > RANKS_MAX {
            return None;
        }
        let shape = Shape { nodes: levels.groups.clone().into(), n, ..levels.between.1.clone() };
        let time = Walk::new(self, &shape, Ranks::all(&shape)).time(|rank| levels.steps(rank));
        Some(time.ceil() as u64)
    }

    /// The candidates by their estimated time, the shortest first; of equal ones the order stays.
    pub fn ranking(&self, candidates: Vec<Candidate>, shape: &Shape) -> Vec<(Candidate, f64)> {
        let estimated = candidates.into_iter().map(|candidate| (candidate, self.estimate(&candidate, shape)));
        let mut ranking: Vec<_> = estimated.collect();
        ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
        ranking
    }
}

/// The ranks of a large operation that are walked: some of the first node and of one in the middle, the root,
/// and the ranks that the first messages to them come from.
fn walked(shape: &Shape, of: &impl Fn(Rank) -> Vec<Step>) -> Vec<Rank> {
    let groups = shape.groups();
    let mut ranks: Vec<Rank> = Vec::new();
    for node in 0..NODES.min(groups.len()) {
        let members = groups.ranks(node * groups.len() / NODES);
        ranks.extend(members.iter().step_by(members.len().div_ceil(RANKS_OF_NODE)));
    }
    ranks.push(shape.root);
    ranks.sort_unstable();
    ranks.dedup();
    let first_wait = |rank| {
        of(rank).iter().find_map(|step| match *step {
            Step::Wait { of, .. } => Some(of),
            _ => None,
        })
    };
    let last = ranks.last().copied().into_iter().chain(ranks.first().copied());
    let mut before = Vec::new();
    for rank in last {
        let chain = std::iter::successors(first_wait(rank), |rank| first_wait(*rank));
        before.extend(chain.take(BEFORE_MAX));
    }
    ranks.extend(before);
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Operation;

    fn candidate(operation: Operation, name: &str) -> Candidate {
        Candidate::all(operation).find(|one| one.algorithm.name == name).unwrap()
    }

    /// Each rank on a node of its own.
    fn spread(operation: Operation, n: usize, bytes: usize) -> Shape {
        let nodes = (0..n as u32).collect();
        Shape { nodes, ..Shape::new(operation, 0, n, bytes / 8, 8) }
    }

    /// Plain LogGP: 1 us, 200 ns, and 10 GB/s.
    fn plain() -> Costs {
        let none = Costs { wait_overhead: 0.0, copy_byte: 0.0, reduce_byte: 0.0, ..Costs::default() };
        Costs { latency: 1000.0, send_overhead: 200.0, byte: 0.1, link_byte: 0.1, ..none }
    }

    fn agree(what: &str, time: f64, wanted: f64) {
        assert!((time - wanted).abs() <= 0.01 * wanted, "{what}: {time}, the closed form says {wanted}");
    }

    #[test]
    fn closed_forms() {
        for n in [2, 64, 1000, 4096, 100_000] {
            let rounds = (n as f64).log2().ceil();
            let shape = spread(Operation::Barrier, n, 0);
            let time = plain().estimate(&candidate(Operation::Barrier, "dissemination"), &shape);
            agree("dissemination", time, rounds * 1200.0);
        }
        for (n, bytes) in [(2, 64), (64, 4096), (4096, 4096), (20_000, 8)] {
            let shape = spread(Operation::AllGather, n, bytes);
            let time = plain().estimate(&candidate(Operation::AllGather, "ring"), &shape);
            agree("ring", time, (n - 1) as f64 * (1200.0 + 0.1 * bytes as f64));
            let shape = spread(Operation::AllToAll, n, bytes);
            let time = plain().estimate(&candidate(Operation::AllToAll, "pairwise"), &shape);
            agree("pairwise", time, (n - 1) as f64 * (1200.0 + 0.1 * bytes as f64));
            let time = plain().estimate(&candidate(Operation::AllToAll, "linear"), &shape);
            let each = (0.1 * bytes as f64).max(200.0);
            agree("linear", time, (n - 1) as f64 * each + 1000.0 + (0.1 * bytes as f64).min(200.0));
        }
        let shape = spread(Operation::Broadcast, 4096, 8);
        let time = plain().estimate(&candidate(Operation::Broadcast, "linear"), &shape);
        agree("linear broadcast", time, 4095.0 * 200.0 + 1000.8);
    }

    /// A processor that moves data takes twice as long for an exchange as for one way, and cards are shared.
    #[test]
    fn processors_and_cards_are_busy() {
        let costs = Costs { processor_moves_data: true, receive_overhead: 200.0, ..plain() };
        let shape = spread(Operation::AllGather, 2, 1 << 20);
        let ring = candidate(Operation::AllGather, "ring");
        let bytes = 0.1 * f64::from(1 << 20);
        agree("exchange", costs.estimate(&ring, &shape), 400.0 + 2.0 * bytes);
        let two = Shape { nodes: vec![0, 0, 1, 1].into(), ..spread(Operation::AllToAll, 4, 1 << 20) };
        let linear = candidate(Operation::AllToAll, "linear");
        let time = Costs { node_byte: 0.0, ..plain() }.estimate(&linear, &two);
        assert!(
            time > 4.0 * bytes && time < 4.1 * bytes + 3000.0,
            "two ranks a card, two blocks each: {time}"
        );
    }

    /// Two nodes of two ranks.
    fn two_by_two(operation: Operation, bytes: usize) -> Shape {
        Shape { nodes: vec![0, 0, 1, 1].into(), ..spread(operation, 4, bytes) }
    }

    #[test]
    fn ranks_that_share_a_core_take_turns() {
        let linear = candidate(Operation::AllToAll, "linear");
        let shape = two_by_two(Operation::AllToAll, 8);
        let one = Costs { latency: 0.0, node_latency: 0.0, node_overhead: 200.0, poll: 0.0, ..plain() };
        let time = |ranks_per_core, switch| Costs { ranks_per_core, switch, ..one }.estimate(&linear, &shape);
        agree("three messages each", time(1, 0.0), 3.0 * 200.0);
        agree("those of two ranks, one after the other", time(2, 0.0), 6.0 * 200.0);
        agree("all on one core", time(4, 0.0), 12.0 * 200.0);
        assert!(time(2, 100.0) >= time(2, 0.0) + 100.0, "the second rank goes on once at least");
        let linear = candidate(Operation::Broadcast, "linear");
        let shape = Shape { nodes: vec![0, 0].into(), ..spread(Operation::Broadcast, 2, 8) };
        let time = |ranks_per_core, poll| Costs { ranks_per_core, poll, ..one }.estimate(&linear, &shape);
        assert_eq!(time(1, 1000.0), time(1, 0.0), "each has its core");
        agree("a rank lets the core go", time(2, 1000.0), time(2, 0.0) + 1000.0);
    }

    #[test]
    fn the_time_is_the_mean_of_the_roots() {
        let shape = two_by_two(Operation::Broadcast, 8);
        let binomial = candidate(Operation::Broadcast, "binomial");
        let time = |root| Costs::default().estimate(&binomial, &Shape { root, ..shape.clone() });
        let mean = (0..4).map(time).sum::<f64>() / 4.0;
        assert!(time(1) > time(0), "three messages between nodes in place of one");
        let found = Costs::default().estimate_ns(&binomial, &Shape { root: 3, ..shape.clone() });
        assert_eq!(found, Some(mean.ceil() as u64));
    }

    #[test]
    fn two_levels_are_a_way_to_the_leader_one_between_leaders_and_one_back() {
        let near = plain().node_latency + plain().node_overhead;
        let shape = two_by_two(Operation::AllReduce, 8);
        let between = candidate(Operation::AllReduce, "recursive_doubling");
        let leaders = Shape { nodes: (0..2).collect(), ..Shape::new(Operation::AllReduce, 0, 2, 1, 8) };
        let far = plain().estimate(&between, &leaders);
        let time = |to_leaders, to_members, leaders| {
            let (groups, between) = (shape.groups(), (between, leaders));
            let levels = Levels { groups, between, leaders: 1, to_leaders, to_members };
            plain().levels_ns(&levels).unwrap() as f64
        };
        agree("all three", time(Some(8), Some(8), leaders.clone()), far + 2.0 * near);
        agree("without the way to the leader", time(None, Some(8), leaders.clone()), far + near);
        agree("between the leaders alone", time(None, None, leaders.clone()), far);
        let (groups, between) = (shape.groups(), (between, leaders));
        let parts = Levels { groups, between, leaders: 2, to_leaders: Some(16), to_members: None };
        let ranks = [0, 1].map(|rank| parts.steps(rank).len());
        assert_eq!(ranks[0], ranks[1], "both ranks of a node lead");
        let many = spread(Operation::AllReduce, RANKS_MAX + 1, 8).groups();
        assert_eq!(plain().levels_ns(&Levels { groups: many, ..parts }), None);
    }

    #[test]
    fn every_candidate_has_a_time_in_every_team() {
        for operation in Operation::ALL {
            for (n, bytes) in [1, 2, 7, 16, 33].into_iter().flat_map(|n| [0, 8, 1 << 20].map(|b| (n, b))) {
                for ppn in [1, 3] {
                    let nodes = (0..n as u32).map(|rank| rank / ppn).collect();
                    let shape = Shape { nodes, ..Shape::new(operation, 0, n, bytes / 8, 8) };
                    for candidate in Candidate::all(operation).filter(|one| one.can_do(&shape)) {
                        let time = Costs::default().estimate(&candidate, &shape);
                        let least = if n <= ppn as usize { 0.0 } else { 15_000.0 };
                        let is_nothing = bytes == 0 && operation != Operation::Barrier;
                        assert!(time.is_finite() && (time >= least || is_nothing), "{candidate} {n}: {time}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_known_orders_are_found() {
        let faster = |operation, one, other, n, bytes| {
            let shape = spread(operation, n, bytes);
            let [one_ns, other_ns] =
                [one, other].map(|name| Costs::default().estimate(&candidate(operation, name), &shape));
            assert!(one_ns < other_ns, "{operation} of {bytes} B: {one} {one_ns}, {other} {other_ns}");
        };
        faster(Operation::Broadcast, "binomial", "chain", 16, 8);
        faster(Operation::Broadcast, "chain", "binomial", 16, 4 << 20);
        faster(Operation::Broadcast, "linear", "chain", 4, 8);
        faster(Operation::AllReduce, "recursive_doubling", "ring", 16, 8);
        faster(Operation::AllReduce, "ring", "recursive_doubling", 16, 4 << 20);
        faster(Operation::AllGather, "bruck", "ring", 1000, 8);
        faster(Operation::AllToAll, "pairwise", "bruck", 16, 1 << 20);
    }

    #[test]
    fn the_quickest_come_first() {
        let shape = spread(Operation::Broadcast, 64, 1 << 20);
        let all = Candidate::all(Operation::Broadcast).filter(|one| one.can_do(&shape)).collect();
        let ranking = Costs::default().ranking(all, &shape);
        assert!(ranking.len() > 5 && ranking.is_sorted_by(|a, b| a.1 <= b.1), "{ranking:?}");
        let first = ranking[0].0;
        assert_eq!(Costs::default().estimate_ns(&first, &spread(Operation::Broadcast, 65, 8)), None);
    }
}
