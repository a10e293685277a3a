//! Closed forms: LogGP's formulas of trees, dissemination, rings, linear and pairwise exchanges, and the
//! bound of a torus. L latency, o overhead, g gap, G time of a byte. A message takes o + L + g + bG.

use super::collective;
use pelago_model::action::{Action, Skeleton};
use pelago_model::machine::{Contention, Links};
use pelago_model::time::Time;
use pelago_model::topology::{Topology, Torus};
use pelago_model::{Machine, run};
use pelago_schedule::shape::Operation;
use pelago_schedule::table::algorithms;

const L: Time = 1_000_000;
const G: f64 = 100.0; // 10 GB/s

/// Machines in which the processor, and in which the card, limits the rate of messages.
fn machines() -> [(Machine, Time, Time); 3] {
    [(200_000, 10_000), (20_000, 150_000), (0, 0)].map(|(o, g)| (Machine::log_gp(L, o, g, 10e9), o, g))
}

fn occupancy(g: Time, bytes: usize) -> Time {
    g + (bytes as f64 * G) as Time
}

/// The times at which a card begins to send messages whose sends begin one after another.
fn starts(count: usize, o: Time, occupancy: Time) -> Vec<Time> {
    let mut free = 0;
    (1..=count)
        .map(|number| {
            let start = free.max(number as Time * o);
            free = start + occupancy;
            start
        })
        .collect()
}

/// Within 1 percent.
fn agree(what: &str, time: Time, wanted: Time) {
    assert!(time.abs_diff(wanted) * 100 <= wanted, "{what}: {time} ps, the closed form says {wanted}");
}

#[test]
fn dissemination() {
    for (machine, o, g) in machines() {
        for n in [2, 3, 64, 100, 1025] {
            let rounds = (n as f64).log2().ceil() as Time;
            let time = collective(&machine, Operation::Barrier, "dissemination", n, 0).time;
            agree("dissemination", time, rounds * (o + L + g));
        }
    }
}

/// A rank that has the data sends to the largest subtree first.
fn binomial(levels: usize, o: Time, occupancy: Time) -> Time {
    let begins = starts(levels, o, occupancy);
    let ends = begins.iter().enumerate();
    ends.map(|(i, start)| start + L + occupancy + binomial(levels - 1 - i, o, occupancy)).max().unwrap_or(0)
}

#[test]
fn binomial_broadcast() {
    for (machine, o, g) in machines() {
        for (levels, bytes) in [(1, 8), (5, 8), (10, 8), (4, 10_000), (10, 100_000)] {
            let wanted = binomial(levels, o, occupancy(g, bytes));
            let time = collective(&machine, Operation::Broadcast, "binomial", 1 << levels, bytes).time;
            agree("binomial broadcast", time, wanted);
        }
    }
}

/// Two ranks, one of which waits for all of the time in which the other's card sends.
#[test]
fn ranks_are_blocked_while_cards_send() {
    for (machine, _, _) in machines() {
        let outcome = collective(&machine, Operation::Broadcast, "linear", 2, 1 << 20);
        let share = outcome.blocked as f64 / (2.0 * outcome.time as f64);
        assert!(share > 0.97, "{}: {share}", machine.name);
    }
}

#[test]
fn linear_broadcast() {
    for (machine, o, g) in machines() {
        for (n, bytes) in [(2, 8), (100, 8), (100, 50_000)] {
            let occupancy = occupancy(g, bytes);
            let last = starts(n - 1, o, occupancy)[n - 2];
            let time = collective(&machine, Operation::Broadcast, "linear", n, bytes).time;
            agree("linear broadcast", time, last + L + occupancy);
        }
    }
}

#[test]
fn ring() {
    for (machine, o, g) in machines() {
        for (n, bytes) in [(2, 8), (5, 64), (64, 4000), (100, 100_000)] {
            let time = collective(&machine, Operation::AllGather, "ring", n, bytes).time;
            agree("ring", time, (n - 1) as Time * (o + L + occupancy(g, bytes)));
        }
    }
}

#[test]
fn pairwise() {
    for (machine, o, g) in machines() {
        for (n, bytes) in [(2, 8), (8, 64), (64, 4000), (32, 100_000)] {
            let time = collective(&machine, Operation::AllToAll, "pairwise", n, bytes).time;
            agree("pairwise", time, (n - 1) as Time * (o + L + occupancy(g, bytes)));
        }
    }
}

#[test]
fn linear_all_to_all() {
    for (machine, o, g) in machines() {
        for (n, bytes) in [(2, 8), (64, 4000), (50, 100_000)] {
            let occupancy = occupancy(g, bytes);
            let last = starts(n - 1, o, occupancy)[n - 2];
            let time = collective(&machine, Operation::AllToAll, "linear", n, bytes).time;
            agree("linear all-to-all", time, last + L + occupancy);
        }
    }
}

/// The same with fluid sharing and with packets, where only cards limit: the closed forms hold for all
/// models.
#[test]
fn models_of_contention_agree_where_there_is_none() {
    for (name, contention) in Contention::ALL {
        for (machine, o, g) in machines() {
            let machine = Machine { contention, ..machine };
            let time = collective(&machine, Operation::AllGather, "ring", 16, 100_000).time;
            agree(name, time, 15 * (o + L + occupancy(g, 100_000)));
            let time = collective(&machine, Operation::Barrier, "dissemination", 16, 0).time;
            agree(name, time, 4 * (o + L + g));
        }
    }
}

/// Messages of several ranks to one come through its card one after another, or share it.
#[test]
fn a_card_receives_one_message_at_a_time() {
    let bytes = 100_000;
    let program = move |rank: usize| match rank {
        0 => vec![Action::Wait { slot: 0 }; 4],
        _ => vec![Action::Put { to: 0, bytes, signal: Some(0) }],
    };
    for (name, contention) in Contention::ALL {
        for (machine, o, g) in machines() {
            let machine = Machine { contention, ..machine };
            let time = run(&machine, &Skeleton::new(5, program)).unwrap().time;
            let gaps = if contention == Contention::Fluid { g } else { 4 * g };
            agree(name, time, o + L + gaps + 4 * occupancy(0, bytes as usize));
        }
    }
}

fn torus(shape: &[usize], link_bytes_per_second: f64, contention: Contention) -> Machine {
    let links = Links::Torus(Torus { shape: shape.to_vec(), wraps: true, link_bytes_per_second });
    let machine = Machine::log_gp(L, 10_000, 0, 1e12);
    Machine { links, contention, ..machine }
}

/// Half of an all-to-all crosses the bisection: n^2 / 4 messages in each direction, over 2 n / k links of
/// each direction of a dimension with k nodes. So a link carries b n k / 8 bytes.
fn bisection_bound(shape: &[usize], bytes: usize, per_byte: f64) -> Time {
    let (n, k) = (shape.iter().product::<usize>(), *shape.iter().max().unwrap());
    (bytes as f64 * n as f64 * k as f64 / 8.0 * per_byte) as Time
}

#[test]
fn the_busiest_link_of_an_all_to_all_has_the_load_of_the_bisection() {
    for shape in [&[4, 4, 4][..], &[8, 4, 4], &[8, 8], &[16], &[8, 8, 8]] {
        let n = shape.iter().product();
        for name in ["linear", "pairwise"] {
            let machine = torus(shape, 1e9, Contention::Queue);
            let outcome = collective(&machine, Operation::AllToAll, name, n, 4096);
            let bound = bisection_bound(shape, 4096, 1000.0);
            agree("load of a link", outcome.busiest_link, bound);
            assert!(outcome.time >= bound, "{shape:?}: faster than the bisection: {outcome:?}");
        }
    }
}

#[test]
fn a_linear_all_to_all_reaches_the_bound_of_a_ring() {
    for (side, bytes) in [(8, 1 << 20), (16, 1 << 20)] {
        let machine = torus(&[side], 1e9, Contention::Fluid);
        let time = collective(&machine, Operation::AllToAll, "linear", side, bytes).time;
        let bound = bisection_bound(&[side], bytes, 1000.0);
        assert!(time >= bound && time < bound + bound / 2, "{time} beside {bound}");
    }
}

/// Every row of the table of algorithms ends, with any number of ranks, on a machine with several ranks a
/// node.
#[test]
fn all_algorithms_end() {
    let plain = Machine::log_gp(L, 100_000, 10_000, 10e9);
    for pes_per_node in [1, 3] {
        let machine = Machine { pes_per_node, ..plain.clone() };
        for algorithm in algorithms() {
            for (n, bytes) in [(1, 8), (2, 8), (7, 8), (16, 0), (16, 100_000), (33, 999)] {
                let bytes = if algorithm.operation == Operation::Barrier { 0 } else { bytes };
                let workload = pelago_model::action::Collective::world(algorithm, n, bytes, pes_per_node);
                if (algorithm.restriction)(&workload.shape).is_some() {
                    continue;
                }
                let outcome = run(&machine, &std::sync::Arc::new(workload));
                let outcome = outcome.unwrap_or_else(|error| panic!("{algorithm:?} {n} {bytes}: {error}"));
                assert_eq!(outcome.ends.len(), n);
                assert!(n == 1 || outcome.messages > 0, "{algorithm:?} {n}");
            }
        }
    }
}

/// Several PEs of a node share its card, or have cards of their own.
#[test]
fn cards_of_a_node_are_shared() {
    let bytes = 1_000_000;
    let time = |cards| {
        let plain = Machine::log_gp(L, 0, 0, 10e9);
        let machine = Machine { pes_per_node: 4, cards_per_node: cards, ..plain };
        let program = move |rank: usize| match rank {
            0..4 => vec![Action::Put { to: rank as u32 + 4, bytes, signal: Some(0) }],
            _ => vec![Action::Wait { slot: 0 }],
        };
        run(&machine, &Skeleton::new(8, program)).unwrap().time
    };
    let one = (bytes as f64 * G) as Time;
    assert_eq!([1, 2, 4].map(time), [4 * one + L, 2 * one + L, one + L]);
}

/// The copies of a node share its memory, and occupy the processors of their PEs.
#[test]
fn the_memory_of_a_node_is_shared() {
    let mut machine = Machine { pes_per_node: 4, ..Machine::log_gp(L, 0, 0, 10e9) };
    machine.node.bytes_per_second = 4e9;
    machine.node.memory_bytes_per_second = 6e9;
    machine.node.latency = 7;
    let program = |rank: usize| match rank {
        0 | 1 => vec![Action::Put { to: rank as u32 + 2, bytes: 6000, signal: Some(0) }],
        _ => vec![Action::Wait { slot: 0 }],
    };
    // 6000 bytes take 1.5 us of a PE and 1 us of the memory.
    let outcome = run(&machine, &Skeleton::new(4, program)).unwrap();
    assert_eq!(outcome.ends, [1_500_000, 2_000_000, 1_500_007, 2_000_007]);
}

#[test]
fn a_machine_that_is_too_small_is_refused() {
    let machine = torus(&[2, 2], 1e9, Contention::Queue);
    assert!(machine.topology(5).unwrap_err().contains("at most 4 PEs"));
    assert!(matches!(machine.topology(4), Ok(Topology::Torus(_))));
}
