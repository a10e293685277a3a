//! Blocking operations of teams that span nodes: nodes of unequal size and ranks in any order, sizes around
//! those at which the form changes, and the use of the network.

use crate::coll::{all_names, product, run_cases};
use crate::dice::Dice;
use pelago::Spmd;
use pelago::prelude::*;
use pelago::sim::SimParams;

/// The node of each PE.
const PLACES: [&[u32]; 8] = [
    &[0, 1],
    &[0, 1, 2, 3],
    &[0, 1, 0, 1, 1],
    &[0, 0, 0, 1],
    &[0, 1, 2, 0, 1, 2],
    &[0, 0, 1, 1, 2, 2, 2],
    &[0, 1, 2, 0],
    &[0, 0, 1, 2, 2],
];

/// A job on these nodes, whose PEs map each other's memory on a node, with a network that misbehaves.
fn on(nodes: &[u32], seed: u64) -> Spmd {
    let params = SimParams { maps_nodes: true, nodes: nodes.to_vec(), ..SimParams::chaos(seed) };
    Spmd::new(nodes.len()).sim(params)
}

/// Runs a body on all nodes and seeds.
fn everywhere(seeds: u64, settings: &[(&str, &str)], body: impl Fn(&World) + Sync) {
    for (seed, nodes) in (0..seeds).flat_map(|seed| PLACES.map(|nodes| (seed, nodes))) {
        let job = settings.iter().fold(on(nodes, seed), |job, (name, value)| job.setting(name, value));
        job.run(&body).map(drop).unwrap_or_else(|error| panic!("nodes {nodes:?}, seed {seed}: {error}"));
    }
}

#[test]
fn every_operation_keeps_the_oracle() {
    let names: Vec<_> = all_names().collect();
    everywhere(2, &[], |world| {
        let n = world.n_pes();
        // The last size of a block that is staged, alone and with those of all ranks, and the next one; the
        // same for messages between pairs of nodes, of three ranks each and of three and two.
        let counts = [0, 1, 128 / (n * n), 128 / 9, 128 / 6, 128 / n, 128 / n + 1, 128 / 3, 128, 129];
        run_cases(&world.team(), &names, 12, &counts);
    });
}

everywhere! {
    beyond_a_page(4): blocks_longer_than_a_page_keep_the_oracle;
}

/// PEs of a node pass each other at most a page of 1 KiB, while messages between nodes may be longer.
fn blocks_longer_than_a_page_keep_the_oracle(world: &World) {
    let names: Vec<_> = all_names().collect();
    run_cases(&world.team(), &names, 1, &[127, 128, 129, 256, 257, 300, 512, 513]);
}

#[test]
fn teams_of_teams_keep_the_oracle() {
    let names = ["broadcast", "all_reduce", "gather", "all_gather", "exclusive_scan"];
    everywhere(2, &[], |world| {
        let (whole, me) = (world.team(), world.my_pe());
        let reversed = whole.split_strided(world.n_pes() - 1, -1, world.n_pes()).unwrap().unwrap();
        run_cases(&reversed, &names, 2, &[1, 130]);
        let halves = reversed.split_by(Some((me % 2) as u64), 0).unwrap().unwrap();
        run_cases(&halves, &names, 2, &[1, 130]);
        if let Some(fewer) = reversed.split_strided(1, 1, world.n_pes() - 1).unwrap() {
            run_cases(&fewer, &names, 2, &[1, 130]);
        }
    });
}

/// A team that shrinks goes on with the blocks of the larger one, until it is on one node and beyond.
#[test]
fn a_team_that_shrinks_goes_on_with_its_buffers() {
    everywhere(3, &[], |world| {
        let n = world.n_pes();
        let (target, source) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
        source.local().set(0, world.my_pe() as u64 + 1);
        let mut team = world.team().split_strided(0, 1, n).unwrap();
        for size in (1..=n).rev() {
            team = team.and_then(|team| team.shrink(size).unwrap());
            let Some(team) = &team else { break };
            for round in 0..5 {
                team.broadcast(round % size, &target, &source).unwrap();
                assert_eq!(target.local().get(0), (round % size) as u64 + 1, "of {size}");
            }
            team.all_reduce(ReduceOp::Sum, &target, &source).unwrap();
            assert_eq!(target.local().get(0), (size * (size + 1) / 2) as u64, "of {size}");
            team.barrier();
        }
        world.barrier();
    });
}

/// From 64 KiB on several members of a node lead a part each, of lengths that differ.
#[test]
fn large_data_are_split_among_the_members_of_a_node() {
    everywhere(1, &[], |world| {
        let (team, me, n) = (world.team(), world.my_pe() as u64, world.n_pes() as u64);
        let array = world.alloc_zeroed::<u64>(9001).unwrap();
        for len in [8191, 8192, 8193, 9001] {
            let value = |pe: u64, i: u64| i * 7 + pe * pe;
            let sum = |i: u64| (0..n).map(|pe| value(pe, i)).sum::<u64>();
            array.local().write(0, &(0..len).map(|i| value(me, i)).collect::<Vec<_>>());
            team.sync();
            let span = array.span(0..len as usize);
            team.all_reduce(ReduceOp::Sum, span, span).unwrap();
            let found = array.local().to_vec();
            (0..len).for_each(|i| assert_eq!(found[i as usize], sum(i), "element {i} of {len}"));
            team.sync();
            team.broadcast(1, span, span).unwrap();
            assert_eq!(array.local().to_vec()[..len as usize], found[..len as usize]);
            team.sync();
        }
    });
}

#[test]
fn functions_that_do_not_commute_keep_the_order_of_ranks() {
    everywhere(2, &[], |world| {
        let (team, me) = (world.team(), world.my_pe());
        let matrix = |pe: usize, i: usize| [1 + pe as u32, 2, i as u32, 3];
        for len in [1, 5, 12, 13, 64, 65, 5000] {
            let (target, source) =
                (world.alloc_zeroed::<[u32; 4]>(len).unwrap(), world.alloc_zeroed::<[u32; 4]>(len).unwrap());
            (0..len).for_each(|i| source.local().set(i, matrix(me, i)));
            let expected = |ranks: usize| -> Vec<_> {
                let element = |i: usize| (0..ranks).map(|pe| matrix(pe, i)).reduce(product).unwrap();
                (0..len).map(element).collect()
            };
            team.sync();
            team.all_reduce(product, &target, &source).unwrap();
            assert_eq!(target.local().to_vec(), expected(world.n_pes()), "{len} elements");
            team.sync();
            team.inclusive_scan(product, &target, &source).unwrap();
            assert_eq!(target.local().to_vec(), expected(me + 1), "scan of {len} elements");
            team.sync();
        }
    });
}

/// Sums of numbers that are rounded, of each PE.
fn sums(job: Spmd) -> Vec<Vec<u64>> {
    let results = job.run(|world| {
        let (target, source) = (world.alloc::<f64>(9000).unwrap(), world.alloc::<f64>(9000).unwrap());
        let mut bits = Vec::new();
        for len in [1, 25, 26, 128, 129, 9000] {
            let mut dice = Dice(world.my_pe() as u64 * 9000);
            (0..len).for_each(|i| source.local().set(i, (dice.below(1 << 30) as f64).sqrt() * 1e-3));
            world.team().sync();
            world.team().all_reduce(ReduceOp::Sum, target.span(0..len), source.span(0..len)).unwrap();
            bits.extend(target.local().to_vec()[..len].iter().map(|sum| sum.to_bits()));
            world.team().sync();
        }
        bits
    });
    results.unwrap()
}

#[test]
fn results_have_the_same_bits_at_all_members_and_those_of_one_node_if_deterministic() {
    for nodes in PLACES {
        let results = sums(on(nodes, 1));
        assert!(results.iter().all(|result| result == &results[0]), "{nodes:?}");
        let deterministic = sums(on(nodes, 2).setting("PELAGO_DETERMINISTIC", "on"));
        assert_eq!(deterministic, sums(Spmd::new(nodes.len())), "{nodes:?}");
    }
}

/// The puts of a PE over the network in some rounds of an operation.
fn net_puts(world: &World, rounds: u64, operation: impl Fn()) -> u64 {
    world.team().sync();
    let before = world.counters().net_puts;
    (0..rounds).for_each(|_| operation());
    let after = world.counters().net_puts;
    world.team().sync();
    after - before
}

/// One message in each direction between the leaders of two nodes, and no use of the network by others.
#[test]
fn only_leaders_use_the_network_for_small_data() {
    for nodes in [&[0, 0, 0, 1][..], &[0, 1, 0, 1, 1]] {
        let counts = on(nodes, 3).counters(true).run(|world| {
            let team = world.team();
            let len = 128;
            let (a, b) = (world.alloc_zeroed::<u64>(len).unwrap(), world.alloc_zeroed::<u64>(len).unwrap());
            let gathered = world.alloc_zeroed::<u64>(world.n_pes()).unwrap();
            [
                net_puts(world, 10, || team.sync()),
                net_puts(world, 10, || team.barrier()),
                net_puts(world, 10, || team.all_reduce(ReduceOp::Sum, &a, &b).unwrap()),
                net_puts(world, 10, || team.reduce(ReduceOp::Sum, 2, &a, &b).unwrap()),
                net_puts(world, 10, || team.all_gather(&gathered, b.span(0..1)).unwrap()),
                // All members synchronise when the ring buffer of broadcasts is full.
                net_puts(world, 34, || team.broadcast(0, &a, &b).unwrap()),
                // They do not if PEs of both nodes are roots.
                net_puts(world, 1, || (0..40).for_each(|i| team.broadcast(3 * (i % 2), &a, &b).unwrap())),
            ]
        });
        // In builds for tests three such messages fill it, else 31.
        let meetings = if cfg!(debug_assertions) { 11 } else { 1 };
        let first = |node| nodes.iter().position(|&of| of == node).unwrap();
        for (pe, counts) in counts.unwrap().into_iter().enumerate() {
            let is_leader = pe == first(nodes[pe]);
            let broadcasts = meetings + if pe == 0 { 34 } else { 0 };
            let mut expected = if is_leader { [10, 10, 10, 10, 10, broadcasts, 0] } else { [0; 7] };
            expected[6] = if pe % 3 == 0 { 20 } else { 0 };
            assert_eq!(counts, expected, "PE {pe} of {nodes:?}");
        }
    }
}

#[test]
fn schedules_of_all_members_can_be_set() {
    let job = on(&[0, 1, 0, 1], 4).counters(true).setting("PELAGO_COLL", "barrier=dissemination");
    let counts = job.run(|world| net_puts(world, 10, || world.team().sync())).unwrap();
    assert!(counts.iter().all(|&count| count >= 10), "{counts:?}");
    let job = on(&[0, 1, 0, 1], 4).counters(true).setting("PELAGO_COLL", "barrier=hierarchical");
    assert_eq!(job.run(|world| net_puts(world, 10, || world.team().sync())).unwrap(), [10, 10, 0, 0]);
}

/// Roots that run ahead, of every node, with nothing between the broadcasts.
#[test]
fn a_stream_of_broadcasts_waits_for_slow_receivers() {
    everywhere(4, &[], |world| {
        let (team, n) = (world.team(), world.n_pes());
        let (target, source) =
            (world.alloc_zeroed::<u64>(128).unwrap(), world.alloc_zeroed::<u64>(128).unwrap());
        let mut dice = Dice(5);
        for round in 0..200 {
            // One root for long, so that it is far ahead of the slow one before it is its turn to receive.
            let (root, len) = (round as usize / 40 % n, [1, 7, 128][dice.below(3)]);
            let (slow, looks) = ((root + 1 + round as usize / 40) % n, dice.below(50));
            source.local().write(0, &vec![round; len]);
            if world.my_pe() == slow && slow != root {
                (0..looks).for_each(|_| world.progress());
            }
            team.broadcast(root, target.span(0..len), source.span(0..len)).unwrap();
            assert_eq!(target.local().to_vec()[..len], vec![round; len]);
        }
        world.barrier();
    });
}

/// Roots of all nodes in turn, and at random: no synchronization is needed as long as each node has a root
/// often.
#[test]
fn roots_of_all_nodes_broadcast_without_meetings() {
    everywhere(4, &[], |world| {
        let (team, n) = (world.team(), world.n_pes());
        let (target, source) =
            (world.alloc_zeroed::<u64>(128).unwrap(), world.alloc_zeroed::<u64>(128).unwrap());
        let mut dice = Dice(6);
        for round in 0..300_u64 {
            let (root, len) = (dice.below(n), [1, 7, 128][dice.below(3)]);
            let root = if round % 100 < 60 { round as usize % n } else { root };
            let (slow, looks) = (dice.below(n), dice.below(50));
            source.local().write(0, &vec![round; len]);
            if world.my_pe() == slow {
                (0..looks).for_each(|_| world.progress());
            }
            team.broadcast(root, target.span(0..len), source.span(0..len)).unwrap();
            assert_eq!(target.local().to_vec()[..len], vec![round; len]);
        }
        world.barrier();
    });
}

/// Blocking operations in two levels between the start and the end of schedules of all members, on one team.
#[test]
fn blocking_and_other_operations_mix_on_one_team() {
    everywhere(4, &[], |world| {
        let (team, me, n) = (world.team(), world.my_pe() as u64, world.n_pes() as u64);
        let source = world.alloc_zeroed::<u64>(5000).unwrap();
        source.local().write(0, &vec![me + 1; 5000]);
        let targets: Vec<_> = (0..8).map(|_| world.alloc_zeroed::<u64>(5000).unwrap()).collect();
        let mut dice = Dice(n);
        world.barrier();
        for _ in 0..6 {
            let mut requests = Vec::new();
            for target in &targets {
                let len = [1, 30, 128, 129, 5000][dice.below(5)];
                let (root, into, from) = (dice.below(n as usize), target.span(0..len), source.span(0..len));
                let sum = match dice.below(6) {
                    0 => {
                        let adding = team.nonblocking().all_reduce(ReduceOp::Sum, into, from).unwrap();
                        requests.push((adding, target, n * (n + 1) / 2));
                        continue;
                    }
                    1 => {
                        let call = team.nonblocking().broadcast(root, into, from).unwrap();
                        requests.push((call, target, root as u64 + 1));
                        continue;
                    }
                    2 => {
                        team.all_reduce(ReduceOp::Max, into, from).unwrap();
                        n
                    }
                    3 => {
                        team.broadcast(root, into, from).unwrap();
                        root as u64 + 1
                    }
                    4 => {
                        team.inclusive_scan(ReduceOp::Sum, into, from).unwrap();
                        (me + 1) * (me + 2) / 2
                    }
                    _ => {
                        team.barrier();
                        continue;
                    }
                };
                assert_eq!(target.local().get(len - 1), sum);
            }
            for (request, target, sum) in requests {
                request.wait();
                assert_eq!(target.local().get(0), sum);
            }
            team.sync();
        }
    });
}

/// A member that has left ends the others, whose messages name the PE that they wait for.
#[test]
fn a_member_that_leaves_ends_the_others() {
    for (nodes, gone) in [(&[0, 0, 1, 1][..], 0), (&[0, 0, 1, 1], 3), (&[0, 1, 0, 1], 1)] {
        let calls: [fn(&World); 3] = [
            |world| world.team().sync(),
            |world| {
                let word = world.alloc_zeroed::<u64>(1).unwrap();
                world.team().all_reduce(ReduceOp::Sum, &word, &word).unwrap();
            },
            |world| {
                let array = world.alloc_zeroed::<u64>(5000).unwrap();
                world.team().all_reduce(ReduceOp::Sum, &array, &array).unwrap();
            },
        ];
        for (at, call) in calls.into_iter().enumerate() {
            let outcome = on(nodes, 5).run(move |world| {
                if at > 0 && world.my_pe() == gone {
                    drop(world.alloc_zeroed::<u64>(if at == 1 { 1 } else { 5000 }).unwrap());
                }
                if world.my_pe() != gone {
                    call(world);
                }
            });
            let said = outcome.map(drop).unwrap_err().to_string();
            assert!(said.contains(&format!("PE {gone}")), "call {at} on {nodes:?} without {gone}: {said}");
        }
    }
}

/// A collective call on the first words of two arrays of 16.
type SizedCall = fn(&Team<'_>, &Symmetric<'_, u64>, &Symmetric<'_, u64>, usize) -> pelago::Result<()>;

/// Calls whose blocks have the number of words that is given last, with the name that errors give them.
const SIZED: [(&str, SizedCall); 7] = [
    ("broadcast", |team, a, b, len| team.broadcast(1, a.span(0..len), b.span(0..len))),
    ("reduce", |team, a, b, len| team.reduce(ReduceOp::Sum, 1, a.span(0..len), b.span(0..len))),
    ("all_reduce", |team, a, b, len| team.all_reduce(ReduceOp::Sum, a.span(0..len), b.span(0..len))),
    ("gather", |team, a, b, len| team.gather(1, a.span(0..4 * len), b.span(0..len))),
    ("all_gather", |team, a, b, len| team.all_gather(a.span(0..4 * len), b.span(0..len))),
    ("all_to_all", |team, a, b, len| team.all_to_all(a.span(0..4 * len), b.span(0..4 * len))),
    ("inclusive_scan", |team, a, b, len| team.inclusive_scan(ReduceOp::Sum, a.span(0..len), b.span(0..len))),
];

/// Makes calls that match, and then one in which PEs 0 and 2 give other blocks than PEs 1 and 3.
fn give_other_sizes(world: &World, call: SizedCall) {
    let (a, b) = (world.alloc_zeroed::<u64>(16).unwrap(), world.alloc_zeroed::<u64>(16).unwrap());
    let team = world.team();
    (0..3).for_each(|_| call(&team, &a, &b, 2).unwrap());
    call(&team, &a, &b, 1 + world.my_pe() % 2).unwrap();
    // A PE that does not wait in the call meets the others here.
    world.barrier();
}

/// Whether an error names an operation and both sizes of its messages, of which one is twice the other.
fn names_both_sizes(said: &str, name: &str) -> bool {
    let sizes: Vec<usize> = said.split(" with messages of ").skip(1).filter_map(first_number).collect();
    let are_right = matches!(sizes[..], [one, other] if one == 2 * other || other == 2 * one);
    said.contains(&format!("{name} of a team, with")) && are_right
}

fn first_number(text: &str) -> Option<usize> {
    text.split(' ').next()?.parse().ok()
}

/// Without checks such a call waited for ever, or damaged the data of later ones.
#[test]
fn other_sizes_between_nodes_end_the_job() {
    for (name, call) in SIZED {
        for (seed, nodes) in (0..3).flat_map(|seed| [&[0, 1, 0, 1], &[0, 1, 2, 3]].map(|n| (seed, n))) {
            let outcome = on(nodes, seed).run(|world| give_other_sizes(world, call));
            let said = outcome.map(drop).unwrap_err().to_string();
            assert!(names_both_sizes(&said, name), "{name} on {nodes:?}, seed {seed}: {said}");
        }
    }
}

/// The same over TCP, where the data of a message follow its first word unchanged.
#[test]
fn other_sizes_over_tcp_end_the_job() {
    let settings = [("PELAGO_FABRIC", "tcp"), ("PELAGO_ROUTE", "net")];
    let reports = [
        pelago::try_processes!(4, settings, |world: &World| give_other_sizes(world, SIZED[0].1)),
        pelago::try_processes!(4, settings, |world: &World| give_other_sizes(world, SIZED[2].1)),
        pelago::try_processes!(4, settings, |world: &World| give_other_sizes(world, SIZED[5].1)),
    ];
    for (report, name) in reports.iter().zip(["broadcast", "all_reduce", "all_to_all"]) {
        let is_named = report.output.iter().any(|output| names_both_sizes(&output.stderr, name));
        assert!(is_named, "{name}: {report:#?}");
    }
}
