//! Teams that share the slots of their pairs of PEs: operations of overlapping teams at the same time, in
//! different orders at different PEs, and teams that shrink after their spaces were dropped.

use crate::common;
use pelago::prelude::*;
use pelago::{Request, Spmd};

/// The teams of all PEs, of all in reverse order, of the even PEs, and of all but the last PE; those that
/// this PE is in.
fn overlapping(world: &World) -> Vec<(usize, Team<'_>)> {
    let (whole, n) = (world.team(), world.n_pes());
    let teams = [
        Some(whole.split_strided(0, 1, n).unwrap().unwrap()),
        whole.split_strided(n - 1, -1, n).unwrap(),
        whole.split_strided(0, 2, n.div_ceil(2)).unwrap(),
        whole.split_strided(0, 1, n - 1).unwrap(),
    ];
    teams.into_iter().enumerate().filter_map(|(number, team)| Some((number, team?))).collect()
}

/// Starts the operations of overlapping teams in an order of its own at each PE, and waits for them in
/// another.
fn teams_share_slots_in_any_order(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let teams = overlapping(world);
    let rounds = common::rounds(world, 40, 8) as usize;
    let sum = |team: &Team<'_>, round: usize| -> u64 {
        (0..team.n_pes()).map(|rank| (team.pe(rank) + 10 * round) as u64).sum()
    };
    let row = || (world.alloc_zeroed::<u64>(n).unwrap(), world.alloc_zeroed::<u64>(n).unwrap());
    // The same number at all PEs, whichever teams they are in.
    let arrays: Vec<_> = (0..4 * rounds).map(|_| row()).collect();
    for (number, (_, source)) in arrays.iter().enumerate() {
        source.local().write(0, &vec![(me + 10 * (number % rounds)) as u64; n]);
    }
    world.barrier();
    let mut order: Vec<usize> = (0..teams.len() * rounds).collect();
    // By teams from the first on, by teams from the last on, or in turn.
    match me % 3 {
        0 => (),
        1 => order.sort_by_key(|&i| (teams.len() - i / rounds, i)),
        _ => order.sort_by_key(|&i| (i % rounds, i)),
    }
    let start = |&i: &usize| -> Request<'_> {
        let ((number, team), round) = (&teams[i / rounds], i % rounds);
        let (target, source) = &arrays[number * rounds + round];
        let calls = team.nonblocking();
        match round % 3 {
            0 => calls.all_reduce(ReduceOp::Sum, target, source).unwrap(),
            1 => calls.broadcast(round % team.n_pes(), target, source).unwrap(),
            _ => calls.all_gather(target.span(0..team.n_pes()), source.span(0..1)).unwrap(),
        }
    };
    let mut requests: Vec<_> = order.iter().map(start).collect();
    if me % 2 == 0 {
        requests.reverse();
    }
    requests.into_iter().for_each(Request::wait);
    for ((number, team), round) in teams.iter().flat_map(|team| (0..rounds).map(move |round| (team, round))) {
        let found = arrays[number * rounds + round].0.local().to_vec();
        let value = |rank: usize| (team.pe(rank) + 10 * round) as u64;
        let mut expected = match round % 3 {
            0 => vec![sum(team, round); n],
            1 => vec![value(round % team.n_pes()); n],
            _ => (0..team.n_pes()).map(value).collect(),
        };
        expected.resize(n, 0);
        assert_eq!(found, expected, "team {number}, round {round}");
    }
    world.barrier();
}

/// PE 0 starts many broadcasts of one team before a barrier of another one, which the others finish before
/// they begin the first broadcast. The signals of the broadcasts must not keep the barrier's from coming.
fn a_team_that_runs_ahead_does_not_hold_up_another(world: &World) {
    let (ahead, other) = (world.team(), world.team().split_strided(0, 1, world.n_pes()).unwrap().unwrap());
    let count = common::rounds(world, 100, 30) as usize;
    let targets = world.alloc_zeroed::<u64>(count).unwrap();
    let source = world.alloc_zeroed::<u64>(1).unwrap();
    source.local().set(0, 7 + world.my_pe() as u64);
    world.barrier();
    let broadcasts = || -> Vec<Request<'_>> {
        let calls = ahead.nonblocking();
        (0..count).map(|i| calls.broadcast(0, targets.span(i..i + 1), source.span(0..1)).unwrap()).collect()
    };
    let requests = match world.my_pe() {
        0 => {
            let requests = broadcasts();
            other.nonblocking().barrier().unwrap().wait();
            requests
        }
        _ => {
            other.nonblocking().barrier().unwrap().wait();
            broadcasts()
        }
    };
    requests.into_iter().for_each(Request::wait);
    assert_eq!(targets.local().to_vec(), vec![7; count]);
    world.barrier();
}

/// Teams are made, used and dropped again and again, so that their places in the pools are used again: a new
/// team counts its signals anew.
fn places_of_dropped_teams_are_used_again(world: &World) {
    let (whole, n) = (world.team(), world.n_pes());
    let (target, source) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    source.local().set(0, 1);
    for round in 0..common::rounds(world, 30, 6) as usize {
        let size = n - round % 2;
        let Some(team) = whole.split_strided(0, 1, size).unwrap() else { continue };
        for _ in 0..round % 4 {
            let sum = team.nonblocking().all_reduce(ReduceOp::Sum, &target, &source).unwrap();
            sum.wait();
            assert_eq!(target.local().get(0), size as u64, "round {round}");
        }
    }
    world.barrier();
}

/// Shrinks a team whose space was dropped: the smaller team goes on in its memory, and the space's comes
/// back.
fn a_team_shrinks_in_place_after_its_space_was_dropped(world: &World) {
    let mut team = world.team().split_strided(0, 1, world.n_pes()).unwrap().unwrap();
    let mut first = None;
    for size in (1..world.n_pes()).rev() {
        let space = team.space(1 << 16).unwrap();
        let (sum, mine) = (space.alloc::<u64>(1).unwrap(), space.alloc::<u64>(1).unwrap());
        mine.local().set(0, 1 + world.my_pe() as u64);
        team.all_reduce(ReduceOp::Sum, &sum, &mine).unwrap();
        let n = size as u64 + 1;
        assert_eq!(sum.local().get(0), n * (n + 1) / 2);
        drop((sum, mine));
        drop(space);
        match team.shrink(size).unwrap() {
            Some(smaller) => team = smaller,
            None => break,
        }
        // Less than a block of a team: operations may have needed scratch memory.
        let used = world.pool_used_bytes();
        assert!(used < *first.get_or_insert(used) + (8 << 10), "{size} members go on in the same memory");
        team.barrier();
    }
    world.barrier();
}

everywhere! {
    any_order(5): teams_share_slots_in_any_order;
    ahead(3): a_team_that_runs_ahead_does_not_hold_up_another;
    again(3): places_of_dropped_teams_are_used_again;
    shrink(4): a_team_shrinks_in_place_after_its_space_was_dropped;
}

#[test]
fn schedules_of_mapped_pes_share_slots_under_each_strategy() {
    for strategy in ["additional", "barrier", "pairwise-doubling", "pairwise-structure", "pairwise-edges"] {
        for body in [teams_share_slots_in_any_order, a_team_shrinks_in_place_after_its_space_was_dropped] {
            let job = Spmd::new(5).setting("PELAGO_COLL_FORM", "schedule");
            let outcome = job.setting("PELAGO_SYNC_MEMORY", strategy).run(body);
            outcome.unwrap_or_else(|error| panic!("{strategy}: {error}"));
        }
    }
}

/// Arrays belong to teams, so the operations of one team do not depend on those of another either.
#[test]
fn a_team_that_runs_ahead_does_not_hold_up_another_under_each_pairwise_strategy() {
    for strategy in ["pairwise-doubling", "pairwise-structure", "pairwise-edges"] {
        let job = Spmd::new(4).setting("PELAGO_COLL_FORM", "schedule");
        let outcome =
            job.setting("PELAGO_SYNC_MEMORY", strategy).run(a_team_that_runs_ahead_does_not_hold_up_another);
        outcome.unwrap_or_else(|error| panic!("{strategy}: {error}"));
    }
}

/// However many teams there are, the slots are those of the pairs.
#[test]
fn more_teams_need_no_more_slots() {
    let used = |teams: usize| {
        let job = Spmd::new(8).setting("PELAGO_COLL_FORM", "schedule");
        let counts = job.run(|world| {
            let made: Vec<_> =
                (0..teams).map(|_| world.team().split_strided(0, 1, 8).unwrap().unwrap()).collect();
            for team in made.iter().cycle().take(24) {
                team.barrier();
            }
            world.team().sync_counts().slots
        });
        counts.unwrap().into_iter().max().unwrap()
    };
    for teams in [1, 4, 24] {
        assert!((3..=6).contains(&used(teams)), "{teams} teams");
    }
}
