//! Collective calls that do not match: with checks on they are found and told on every PE, instead of
//! hanging.

use pelago::prelude::*;
use pelago::{Spmd, sim::SimParams};

/// What PE 0 calls, and what the others call; answers what each PE is told.
fn told(
    job: &Spmd,
    mine: impl Fn(&Team<'_>, &Symmetric<'_, u64>, &Symmetric<'_, u64>) -> pelago::Result<()> + Sync,
    theirs: impl Fn(&Team<'_>, &Symmetric<'_, u64>, &Symmetric<'_, u64>) -> pelago::Result<()> + Sync,
) -> Vec<String> {
    let texts = job.clone().setting("PELAGO_CHECK", "on").run(|world| {
        let (a, b) = (world.alloc_zeroed::<u64>(8).unwrap(), world.alloc_zeroed::<u64>(8).unwrap());
        let team = world.team();
        let outcome = if world.my_pe() == 0 { mine(&team, &a, &b) } else { theirs(&team, &a, &b) };
        let text = outcome.unwrap_err().to_string();
        // The team is good for further calls.
        team.all_gather(a.span(0..world.n_pes()), b.span(0..1)).unwrap();
        text
    });
    texts.unwrap()
}

fn everywhere(check: impl Fn(&Spmd)) {
    check(&Spmd::new(3));
    check(&Spmd::new(3).setting("PELAGO_COLL_FORM", "schedule"));
    for seed in 0..4 {
        check(&Spmd::new(3).sim(SimParams::chaos(seed)));
    }
}

/// Each PE is told of its own call and of one that differs.
fn assert_told(texts: &[String], mine: &str, theirs: &str) {
    for text in texts {
        assert!(text.contains("disagree") && text.contains(mine) && text.contains(theirs), "{text}");
    }
    for text in &texts[..2] {
        assert!(text.contains(&format!("PE 0 calls {mine}")), "{text}");
        assert!(text.contains(&format!("PE 1 calls {theirs}")), "{text}");
    }
}

#[test]
fn other_operations_are_told() {
    everywhere(|job| {
        let texts = told(
            job,
            |team, a, b| team.broadcast(0, a, b),
            |team, a, b| team.all_reduce(ReduceOp::Sum, a, b),
        );
        let (mine, theirs) = (
            "broadcast(root 0, blocks of 8 elements of 8 bytes)",
            "all_reduce(blocks of 8 elements of 8 bytes)",
        );
        assert_told(&texts, mine, theirs);
    });
}

#[test]
fn other_roots_are_told() {
    everywhere(|job| {
        let texts = told(job, |team, a, b| team.broadcast(0, a, b), |team, a, b| team.broadcast(2, a, b));
        assert_told(&texts, "broadcast(root 0,", "broadcast(root 2,");
    });
}

#[test]
fn other_sizes_are_told() {
    everywhere(|job| {
        let texts = told(
            job,
            |team, a, b| team.all_gather(a.span(0..6), b.span(0..2)),
            |team, a, b| team.all_gather(a.span(0..3), b.span(0..1)),
        );
        assert_told(&texts, "all_gather(blocks of 2 elements", "all_gather(blocks of 1 elements");
    });
}

#[test]
fn calls_in_another_order_are_told() {
    everywhere(|job| {
        let texts = told(
            job,
            |team, a, b| {
                team.nonblocking().all_reduce(ReduceOp::Max, a, b)?.wait();
                team.broadcast(0, b, a)
            },
            |team, a, b| {
                team.broadcast(0, b, a)?;
                team.nonblocking().all_reduce(ReduceOp::Max, a, b).map(pelago::Request::wait)
            },
        );
        assert_told(&texts, "all_reduce(", "broadcast(");
    });
}

#[test]
fn a_call_that_makes_a_team_or_memory_is_told_from_others() {
    everywhere(|job| {
        let texts =
            told(job, |team, a, b| team.broadcast(0, a, b), |team, _, _| team.split_by(Some(1), 0).map(drop));
        assert_told(&texts, "broadcast(", "split_by");
    });
}

#[test]
fn a_barrier_that_meets_something_else_ends_the_job() {
    let outcome = Spmd::new(2).setting("PELAGO_CHECK", "on").run(|world| {
        let array = world.alloc_zeroed::<u64>(1).unwrap();
        let team = world.team();
        match world.my_pe() {
            0 => team.barrier(),
            _ => team.inclusive_scan(ReduceOp::Sum, &array, &array).unwrap(),
        }
    });
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("barrier()") && text.contains("inclusive_scan("), "{text}");
}

#[test]
fn calls_that_match_go_on_with_checks() {
    everywhere(|job| {
        let sums = job.clone().setting("PELAGO_CHECK", "on").run(|world| {
            let (a, b) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
            let team = world.team();
            b.local().set(0, 1 + world.my_pe() as u64);
            for _ in 0..20 {
                team.barrier();
                team.all_reduce(ReduceOp::Sum, &a, &b).unwrap();
                team.nonblocking().sync().unwrap().wait();
            }
            a.local().get(0)
        });
        assert_eq!(sums.unwrap(), [6, 6, 6]);
    });
}

/// Without checks a larger call must not write beyond what the smaller one has announced.
#[test]
fn a_larger_call_does_not_write_beyond_a_smaller_one() {
    let strategies = ["additional", "pairwise-doubling"];
    for (strategy, is_simulated) in strategies.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let job =
            Spmd::new(2).setting("PELAGO_COLL_FORM", "schedule").setting("PELAGO_SYNC_MEMORY", strategy);
        let job = if is_simulated { job.sim(SimParams::chaos(7)) } else { job };
        let outcome = job.run(|world| {
            let array = world.alloc_zeroed::<u64>(4096).unwrap();
            let others = world.team().space(1 << 16).unwrap();
            let bystander = others.alloc_zeroed::<u64>(4096).unwrap();
            let len = if world.my_pe() == 0 { 4096 } else { 64 };
            array.local().write(0, &vec![7; len]);
            let span = array.span(0..len);
            let call = || world.team().all_reduce(ReduceOp::Sum, span, span);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
            assert_eq!(bystander.local().to_vec(), [0; 4096]);
            outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        });
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("has announced no place"), "{strategy}: {text}");
    }
}
