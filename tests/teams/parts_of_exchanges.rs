//! Teams with more members than a block has room for agreement records: in builds for tests more than 12.

use common::over_seeds_with;
use pelago::Spmd;
use pelago::prelude::*;
use pelago::sim::SimParams;

/// Every member gives other words, and gets those of all others: they decide its rank and its team.
fn records_of_all_members_arrive(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    for round in 0..3 {
        let team = world.team().split_by(Some(round), -(me as i64)).unwrap().unwrap();
        let pes: Vec<_> = (0..team.n_pes()).map(|rank| team.pe(rank)).collect();
        assert_eq!(pes, (0..n).rev().collect::<Vec<_>>());
        let third = team.split_by(Some(me as u64 % 3), me as i64).unwrap().unwrap();
        let pes: Vec<_> = (0..third.n_pes()).map(|rank| third.pe(rank)).collect();
        assert_eq!(pes, (me % 3..n).step_by(3).collect::<Vec<_>>());
        third.barrier();
    }
    // Spaces lie where each member says: they are used.
    let team = world.team().split_strided(n - 1, -1, n).unwrap().unwrap();
    let space = team.space(1 << 12).unwrap();
    let (all, mine) = (space.alloc::<u64>(n).unwrap(), space.alloc::<u64>(1).unwrap());
    mine.local().set(0, me as u64);
    team.all_gather(&all, &mine).unwrap();
    assert_eq!(all.local().to_vec(), (0..n as u64).rev().collect::<Vec<_>>());
}

/// The areas of exchanges are used in turn, whether the records come in parts or at once.
fn a_team_shrinks_from_exchanges_in_parts_to_one_at_once(world: &World) {
    let me = world.my_pe();
    let mut team = world.team().split_by(Some(0), 0).unwrap().unwrap();
    for size in [14, 13, 12, 7, 3].into_iter().filter(|&size| size < world.n_pes()) {
        let half = team.split_by(Some(me as u64 % 2), 0).unwrap().unwrap();
        assert!((0..half.n_pes()).all(|rank| half.pe(rank) % 2 == me % 2));
        drop(half);
        match team.shrink(size).unwrap() {
            Some(smaller) => team = smaller,
            None => {
                assert!(me >= size);
                break;
            }
        }
        assert_eq!((team.n_pes(), team.my_rank()), (size, me));
    }
    world.barrier();
}

/// A member that makes another call gets an error, as all others do.
fn another_call_is_found(world: &World) {
    let n = world.n_pes();
    let error = match world.my_pe() == n - 1 {
        true => world.team().split_by(Some(0), 0).map(drop),
        false => world.team().split_strided(0, 1, n).map(drop),
    };
    let text = error.unwrap_err().to_string();
    assert!(text.contains("split_by") && text.contains("split_strided"), "{text}");
}

fn all(world: &World) {
    records_of_all_members_arrive(world);
    a_team_shrinks_from_exchanges_in_parts_to_one_at_once(world);
    another_call_is_found(world);
}

#[test]
fn on_networks_of_many_orders() {
    for n in [14, 25] {
        over_seeds_with(&Spmd::new(n), 6, all);
    }
}

#[test]
fn on_two_nodes() {
    for seed in 0..4 {
        let params = SimParams { maps_nodes: true, ..SimParams::chaos(seed).on_nodes(15, 3) };
        Spmd::new(15).sim(params).run(all).unwrap();
    }
}

#[test]
fn over_tcp() {
    let nodes = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")];
    pelago::testing::expect_success(&pelago::try_processes!(14, nodes, all));
}

/// Members make the hierarchy of a team when they look for others that make another call, so at different
/// times. A team that shrinks in place does not depend on that.
#[test]
fn a_team_shrinks_although_some_members_have_made_its_hierarchy() {
    for seed in 0..20 {
        let params = SimParams { maps_nodes: true, ..SimParams::chaos(seed).on_nodes(11, 3) };
        Spmd::new(11).sim(params).run(a_team_shrinks_from_exchanges_in_parts_to_one_at_once).unwrap();
    }
}
