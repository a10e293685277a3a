//! The online tuner of collective operations: results are right while forms are tried, all members take the
//! same form, and nothing is tried where results might differ.

use crate::coll::run_cases;
use crate::common;
use pelago::Spmd;
use pelago::coll::online::{Form, Found};
use pelago::coll::select::Laws;
use pelago::coll::shape::Operation;
use pelago::prelude::*;
use pelago::sim::SimParams;

const ON: (&str, &str) = ("PELAGO_COLL_ONLINE", "on");
const NO_FILE: (&str, &str) = ("PELAGO_COLL_ONLINE_FOLDER", "off");
const SCHEDULES: (&str, &str) = ("PELAGO_COLL_FORM", "schedule");
/// Calls after which every trial is over.
const CALLS: usize = 2200;

const INTEGERS: Option<Laws> = Some(Laws { is_associative: true, is_commutative: true });
const FLOATS: Option<Laws> = Some(Laws { is_associative: false, is_commutative: true });

/// Runs a body with the tuner on threads, processes, processes over TCP, and simulated networks.
macro_rules! with_the_tuner {
    ($($name:ident($n_pes:expr): $body:ident;)+) => {
        $(mod $name {
            use super::{NO_FILE, ON, SCHEDULES};

            const BODY: fn(&pelago::World) = super::$body;

            #[test]
            fn threads() {
                super::job($n_pes, &[SCHEDULES]).run(BODY).unwrap();
            }

            #[test]
            fn processes() {
                let report = pelago::try_processes!($n_pes, [ON, NO_FILE, SCHEDULES], BODY);
                pelago::testing::expect_success(&report);
            }

            #[test]
            fn tcp() {
                for way in crate::common::ways_over_tcp(&crate::common::pes_per_process($n_pes)) {
                    let report = pelago::try_processes!($n_pes, [&way[..], &[ON, NO_FILE]].concat(), BODY);
                    pelago::testing::expect_success(&report);
                }
            }

            #[test]
            fn sim() {
                super::simulate($n_pes, BODY);
            }
        })+
    };
}

fn job(n_pes: usize, settings: &[(&str, &str)]) -> Spmd {
    let all = [ON, NO_FILE].into_iter().chain(settings.iter().copied());
    all.fold(Spmd::new(n_pes), |job, (name, value)| job.setting(name, value))
}

/// A few simulated networks: no PE maps another, and two nodes whose PEs map each other, in turn and not.
fn simulate(n_pes: usize, body: fn(&World)) {
    let in_turn: Vec<u32> = (0..n_pes as u32).map(|pe| pe % 2).collect();
    for seed in 0..2 {
        let nodes = SimParams { maps_nodes: true, ..SimParams::chaos(seed) };
        for params in [
            SimParams::chaos(seed),
            nodes.clone().on_nodes(n_pes, 2),
            SimParams { nodes: in_turn.clone(), ..nodes },
        ] {
            if let Err(error) = job(n_pes, &[]).sim(params).run(body) {
                panic!("on the simulated network of seed {seed}: {error}");
            }
        }
    }
}

with_the_tuner! {
    trials(4): results_are_right_while_forms_are_tried;
    outcomes(3): all_members_find_the_same;
}

fn results_are_right_while_forms_are_tried(world: &World) {
    let team = world.team();
    // A third of the calls are blocking ones: enough for two rounds of each trial.
    let rounds = common::rounds(world, 300, 150);
    run_cases(&team, &["all_reduce", "broadcast", "all_gather", "all_to_all"], rounds, &[200]);
    run_cases(&team, &["reduce", "reduce_scatter", "gather", "scatter"], rounds, &[20]);
}

/// A sum of each member's value, until the trial is over; then the number of the best form.
fn tune(world: &World, count: usize) -> Option<Found> {
    let (team, me, n) = (world.team(), world.my_pe() as u64, world.n_pes() as u64);
    let (target, source) = (world.alloc::<u64>(count).unwrap(), world.alloc::<u64>(count).unwrap());
    for call in 0..CALLS as u64 {
        source.local().write(0, &vec![call + me; count]);
        team.all_reduce(ReduceOp::Sum, &target, &source).unwrap();
        assert!(target.local().to_vec().iter().all(|sum| *sum == n * call + n * (n - 1) / 2));
        // The next call may write the target of a member that still reads it.
        team.sync();
        if call > 30 && team.tuned(Operation::AllReduce, 8 * count, INTEGERS).is_some() {
            break;
        }
    }
    team.tuned(Operation::AllReduce, 8 * count, INTEGERS)
}

fn all_members_find_the_same(world: &World) {
    for count in [1, 1000] {
        let Some(Found { forms, guess, best }) = tune(world, count) else {
            // PEs that map each other have direct forms; by schedules, small operations follow
            // PELAGO_SYNC_MEMORY.
            let is_one_node = world.team().split_node().unwrap().n_pes() == world.n_pes();
            assert!((count == 1 || is_one_node) && !world.is_simulated());
            continue;
        };
        assert!(best < forms.len() && guess < forms.len() && forms[0] == Form::Usual);
        let names: Vec<_> = forms.iter().map(ToString::to_string).collect();
        let text = format!("{guess} and {best} of {}", names.join("; "));
        let (mine, all) = (world.alloc::<u8>(200).unwrap(), world.alloc::<u8>(200 * world.n_pes()).unwrap());
        let mut bytes = text.into_bytes();
        bytes.resize(200, b' ');
        mine.local().write(0, &bytes);
        world.team().all_gather(&all, &mine).unwrap();
        let found = all.local().to_vec();
        assert!(found.chunks(200).all(|theirs| theirs == bytes), "{:?}", String::from_utf8_lossy(&found));
    }
}

/// The forms that a job of 4 PEs over a network tries for a sum of numbers.
fn tried(settings: &[(&str, &str)], laws: Option<Laws>) -> Vec<Option<usize>> {
    let job = job(4, settings).sim(SimParams::default());
    let counts = job.run(|world| {
        let team = world.team();
        let (target, source) = (world.alloc::<f64>(1000).unwrap(), world.alloc::<f64>(1000).unwrap());
        let (sum, mine) = (world.alloc::<u64>(1000).unwrap(), world.alloc::<u64>(1000).unwrap());
        for _ in 0..CALLS {
            match laws == INTEGERS {
                true => team.all_reduce(ReduceOp::Sum, &sum, &mine).unwrap(),
                false => team.all_reduce(ReduceOp::Sum, &target, &source).unwrap(),
            }
        }
        team.tuned(Operation::AllReduce, 8000, laws).map(|found| found.forms.len())
    });
    counts.unwrap()
}

#[test]
fn floats_are_not_combined_in_another_order_unless_a_setting_says_so() {
    assert_eq!(tried(&[], FLOATS), [Some(1); 4]);
    assert!(tried(&[], INTEGERS)[0] > Some(2));
    assert!(tried(&[("PELAGO_COLL_ONLINE", "any-order")], FLOATS)[0] > Some(2));
}

#[test]
fn settings_that_choose_go_before_the_tuner() {
    assert_eq!(tried(&[("PELAGO_DETERMINISTIC", "on")], INTEGERS), [None; 4]);
    assert_eq!(tried(&[("PELAGO_COLL_ONLINE", "off")], INTEGERS), [None; 4]);
    assert_eq!(tried(&[("PELAGO_SYNC_MEMORY", "pairwise-edges")], INTEGERS), [None; 4]);
    assert_eq!(tried(&[("PELAGO_COLL", "all_reduce=ring")], INTEGERS), [Some(1); 4]);
    assert!(tried(&[("PELAGO_COLL", "broadcast=linear")], INTEGERS)[0] > Some(2));
}

/// Sums of floats have the same bits in every call, with the tuner and without.
#[test]
fn floats_have_the_same_bits_with_the_tuner_and_without() {
    let bits = |settings: &[(&str, &str)]| {
        let nodes = SimParams { maps_nodes: true, ..SimParams::default() }.on_nodes(5, 2);
        let job = job(5, settings).sim(nodes);
        let all = job.run(|world| {
            let team = world.team();
            let (target, source) = (world.alloc::<f64>(3000).unwrap(), world.alloc::<f64>(3000).unwrap());
            source
                .local()
                .write(0, &(1..=3000).map(|i| 1.0 / (i + world.my_pe()) as f64).collect::<Vec<_>>());
            let mut seen = Vec::new();
            for _ in 0..200 {
                team.all_reduce(ReduceOp::Sum, &target, &source).unwrap();
                seen.push(target.local().to_vec().iter().map(|sum| sum.to_bits()).collect::<Vec<_>>());
                team.sync();
            }
            assert!(seen.iter().all(|other| *other == seen[0]));
            seen.swap_remove(0)
        });
        all.unwrap()
    };
    assert_eq!(bits(&[]), bits(&[("PELAGO_COLL_ONLINE", "off")]));
}

/// The best form of a job is that of the next one from its ninth call on.
#[test]
fn the_next_job_knows_the_outcome() {
    let folder = std::env::temp_dir().join(format!("pelago-online-{}", std::process::id()));
    let setting = [("PELAGO_COLL_ONLINE_FOLDER", folder.to_str().unwrap())];
    let run = |calls: usize| {
        let found = job(4, &setting).sim(SimParams::default()).run(|world| {
            let team = world.team();
            let (target, source) = (world.alloc::<u64>(900).unwrap(), world.alloc::<u64>(900).unwrap());
            (0..calls).for_each(|_| team.all_reduce(ReduceOp::Sum, &target, &source).unwrap());
            team.tuned(Operation::AllReduce, 7200, INTEGERS)
        });
        found.unwrap()
    };
    let (few, first) = (run(9), run(CALLS));
    let second = run(9);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(few, vec![None; 4]);
    assert!(first[0].is_some() && first.iter().all(|theirs| *theirs == first[0]));
    assert_eq!(second, first);
}
