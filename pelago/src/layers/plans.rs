//! The plans of a team are cached.

use crate::Spmd;
use crate::prelude::*;
use crate::sim::SimParams;
use pelago_core::coll::plans::PLANS;

#[test]
fn a_repeated_call_builds_nothing_and_few_plans_are_kept() {
    let params = SimParams { nodes: vec![0, 0, 1, 1], maps_nodes: true, ..SimParams::default() };
    let outcome = Spmd::new(4).sim(params).run(|world| {
        let team = world.team();
        let (a, b) = (world.alloc_zeroed::<u64>(9000).unwrap(), world.alloc_zeroed::<u64>(9000).unwrap());
        let call = |len: usize| {
            let (target, source) = (a.span(0..len), b.span(0..len));
            team.all_reduce(ReduceOp::Sum, target, source).unwrap();
            team.broadcast(0, target, source).unwrap();
            team.nonblocking().all_reduce(ReduceOp::Max, target, source).unwrap().wait();
            team.barrier();
            team.core.plans().plans.len()
        };
        let kept = [1, 500, 9000].map(|len| (call(len), call(len), call(len)));
        (0..40).for_each(|len| assert!(call(1000 + len) <= PLANS));
        kept
    });
    for (pe, kept) in outcome.unwrap().into_iter().enumerate() {
        assert!(kept.iter().all(|&(first, second, third)| first == second && second == third), "{kept:?}");
        // One for the whole team each; leaders one for the all-reduce and one for the broadcast of more
        // than 1 KiB; from 64 KiB on all lead an all-reduce.
        let after = kept.map(|(kept, ..)| kept);
        assert_eq!(after, if pe % 2 == 0 { [1, 4, 7] } else { [1, 2, 4] }, "PE {pe}");
    }
}
