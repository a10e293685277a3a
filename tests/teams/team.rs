//! Teams and spaces: the members of teams and their ranks, memory of teams only, and errors.

use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::upc::{BlockSize, SemaphoreKind};
use pelago::{ContextKind, Dimension, Indexed, Space, Spmd, SpmdError, Strided, View};

/// All ranks of a team, as numbers of the world.
fn pes(team: &Team<'_>) -> Vec<Pe> {
    (0..team.n_pes()).map(|rank| team.pe(rank)).collect()
}

/// A word of each member, gathered over the team.
fn gathered(team: &Team<'_>, word: u64) -> Vec<u64> {
    let space = team.space(1 << 12).unwrap();
    let (all, mine) = (space.alloc::<u64>(team.n_pes()).unwrap(), space.alloc::<u64>(1).unwrap());
    mine.local().set(0, word);
    team.all_gather(&all, &mine).unwrap();
    all.local().to_vec()
}

fn splits_have_the_members_they_should(world: &World) {
    let team = world.team();
    let (me, n) = (world.my_pe(), world.n_pes());
    assert_eq!((team.my_rank(), team.n_pes(), pes(&team)), (me, n, (0..n).collect()));
    let strided = |start: usize, stride: isize, size: usize| -> Vec<Pe> {
        (0..size as isize).map(|i| (start as isize + i * stride) as usize).collect()
    };
    for (start, stride, size) in [(0, 1, n), (n - 1, -1, n), (0, 2, n.div_ceil(2)), (n - 1, -2, 2), (2, 0, 1)]
    {
        let expected = strided(start, stride, size);
        let part = team.split_strided(start, stride, size).unwrap();
        assert_eq!(part.is_some(), expected.contains(&me));
        if let Some(part) = part {
            assert_eq!(pes(&part), expected);
            assert_eq!(part.pe(part.my_rank()), me);
            let words = gathered(&part, 100 + me as u64);
            assert_eq!(words, expected.iter().map(|&pe| 100 + pe as u64).collect::<Vec<_>>());
        }
    }
    let list = [3, 0, 2];
    let part = team.split_list(&list).unwrap();
    assert_eq!(part.as_ref().map(pes), list.contains(&me).then(|| list.to_vec()));
    let (row, column) = team.split_2d(2).unwrap();
    assert_eq!(pes(&row), (me / 2 * 2..n.min(me / 2 * 2 + 2)).collect::<Vec<_>>());
    assert_eq!(pes(&column), (me % 2..n).step_by(2).collect::<Vec<_>>());
    assert_eq!(gathered(&column, me as u64), pes(&column).iter().map(|&pe| pe as u64).collect::<Vec<_>>());
}

fn a_box_has_three_axes(world: &World) {
    let [x, y, z] = world.team().split_3d(2, 2).unwrap();
    let me = world.my_pe();
    let near = |bit: usize| vec![me & !bit, me | bit];
    let expected = [near(1), near(2), near(4)].map(|mut line| {
        line.retain(|&pe| pe < world.n_pes());
        line
    });
    assert_eq!([pes(&x), pes(&y), pes(&z)], expected);
}

fn colours_and_keys_decide(world: &World) {
    let me = world.my_pe();
    let colour = (me != 1).then_some(me as u64 % 2);
    let team = world.team().split_by(colour, -(me as i64)).unwrap();
    let mut expected: Vec<Pe> = (0..world.n_pes()).filter(|pe| *pe != 1 && pe % 2 == me % 2).collect();
    expected.reverse();
    assert_eq!(team.as_ref().map(pes), colour.map(|_| expected));
    // Equal keys leave the order as it is.
    let all = world.team().split_by(Some(7), 0).unwrap().unwrap();
    assert_eq!(pes(&all), (0..world.n_pes()).collect::<Vec<_>>());
    for rank in 0..all.n_pes() {
        let there = team.as_ref().and_then(|team| all.translate(rank, team));
        assert_eq!(there, team.as_ref().and_then(|team| team.rank_of(rank)));
    }
    assert_eq!(all.translate(99, &all), None);
}

fn teams_of_teams_and_many_of_them(world: &World) {
    for round in 0..40 {
        let half = world.team().split_by(Some(world.my_pe() as u64 / 2), 0).unwrap().unwrap();
        let reversed = half.split_strided(half.n_pes() - 1, -1, half.n_pes()).unwrap().unwrap();
        drop(half);
        let word = round * 10 + world.my_pe() as u64;
        let expected: Vec<u64> = pes(&reversed).iter().map(|&pe| round * 10 + pe as u64).collect();
        assert_eq!(gathered(&reversed, word), expected);
    }
    let used = world.pool_used_bytes();
    for _ in 0..40 {
        drop(world.team().split_by(Some(0), 0).unwrap());
    }
    assert!(world.pool_used_bytes() <= used + (1 << 20), "memory of dropped teams comes back");
}

fn a_team_shrinks_again_and_again(world: &World) {
    let mut team = world.team().split_strided(0, 1, world.n_pes()).unwrap().unwrap();
    let mut size = world.n_pes();
    loop {
        let words = gathered(&team, 7 * world.my_pe() as u64);
        assert_eq!(words, (0..size as u64).map(|rank| 7 * rank).collect::<Vec<_>>());
        if size == 1 {
            break;
        }
        size -= 1;
        match team.shrink(size).unwrap() {
            Some(smaller) => team = smaller,
            None => break,
        }
    }
    world.barrier();
}

fn a_space_is_memory_of_its_team_alone(world: &World) {
    let me = world.my_pe();
    let Some(team) = world.team().split_list(&[3, 1]).unwrap() else { return world.barrier() };
    // Only the members take part in the following operations: the others wait at the barrier at the end.
    let space: Space<'_> = team.space(10_000).unwrap();
    let inbox = space.alloc_zeroed::<u32>(10).unwrap();
    let (rank, other) = (team.my_rank(), 1 - team.my_rank());
    inbox.put(other, 2, &[me as u32, 8]).unwrap();
    inbox.add(other, 5, 3).unwrap();
    team.barrier();
    let theirs = team.pe(other) as u32;
    assert_eq!(inbox.local().to_vec(), [0, 0, theirs, 8, 0, 3, 0, 0, 0, 0]);
    assert_eq!(inbox.g(rank, 2).unwrap(), theirs);
    let error = inbox.put(2, 0, &[1]).unwrap_err().to_string();
    assert!(error.contains("names rank 2") && error.contains("has the ranks 0 to 1"), "{error}");
    errors_in_a_space_name_the_pe(&space, &inbox, (other, team.pe(other)));
    team.barrier();
    let free = space.free_bytes();
    for _ in 0..300 {
        drop(space.alloc::<u64>(100).unwrap());
    }
    let mut array = space.alloc::<u64>(4).unwrap();
    assert!(space.free_bytes() + 4096 > free, "dropped arrays come back");
    array.exclusive(|part| part.fill(rank as u64)).unwrap();
    assert_eq!(array.g(other, 3).unwrap(), other as u64);
    let array = array.resize(40).unwrap();
    assert_eq!(array.g(other, 3).unwrap(), other as u64);
    array.free().unwrap();
    let error = space.alloc::<u8>(20_000).map(drop).unwrap_err().to_string();
    assert!(error.contains("Create it with more bytes"), "{error}");
    let error = space.alloc::<u8>(1 + rank).map(drop).unwrap_err().to_string();
    assert!(error.contains("disagree"), "{error}");
    drop(inbox);
    world.barrier();
}

/// Operations name PEs by their rank. Errors do not.
fn errors_in_a_space_name_the_pe(space: &Space<'_>, inbox: &View<'_, u32>, (rank, pe): (usize, usize)) {
    let outside = usize::MAX;
    let strided = Strided { count: 2, block: 1, array_stride: 100, slice_stride: 1 };
    let dimensions = [Dimension { count: 2, array_stride: 100, slice_stride: 1 }];
    let lock = inbox.lock_at(8, rank).unwrap();
    let shared = space.shared_array::<u8>(4, BlockSize::Cyclic).unwrap();
    let beyond = shared.pointer(rank).unwrap() + 100;
    let semaphores = space.semaphores(1, SemaphoreKind::integer().single_consumer()).unwrap();
    let errors = [
        inbox.put(rank, outside, &[1]).unwrap_err(),
        inbox.put_strided(rank, 0, &[1; 2], &strided).unwrap_err(),
        inbox.put_strided(rank, 0, &[1; 2], &dimensions[..]).unwrap_err(),
        inbox.put_indexed(rank, &[1], &Indexed::elements(&[outside])).unwrap_err(),
        inbox.put_vector(rank, std::slice::from_ref(&(8..11)), &[&[1; 3]]).unwrap_err(),
        lock.release().unwrap_err(),
        shared.index_of(beyond).unwrap_err(),
        semaphores.at(rank, 0).unwrap().wait().unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        // The beginning is the PE that calls.
        let (_, text) = text.split_once(": ").unwrap();
        assert!(text.contains(&format!("PE {pe}")), "not the PE {pe} of rank {rank}: {text}");
    }
}

everywhere! {
    splits(5): splits_have_the_members_they_should;
    axes(7): a_box_has_three_axes;
    colours(5): colours_and_keys_decide;
    teams_of_teams(4): teams_of_teams_and_many_of_them;
    shrinking(4): a_team_shrinks_again_and_again;
    spaces(4): a_space_is_memory_of_its_team_alone;
}

/// Welch and Venkata: memory for k disjoint teams, once as memory of the world and once in spaces.
#[test]
fn disjoint_teams_pay_for_their_own_memory_only() {
    const BYTES: usize = 1 << 20;
    let used = spmd(8, |world| {
        let pair = world.team().split_by(Some(world.my_pe() as u64 / 2), 0).unwrap().unwrap();
        let heap = world.heap_free_bytes();
        let teams = world.n_pes() / 2;
        let arrays: Vec<_> = (0..teams).map(|_| world.alloc::<u8>(BYTES).unwrap()).collect();
        let of_world = heap - world.heap_free_bytes();
        drop(arrays);
        let pool = world.pool_used_bytes();
        let space = pair.space(BYTES + 4096).unwrap();
        let _array = space.alloc::<u8>(BYTES).unwrap();
        (of_world, world.pool_used_bytes() - pool)
    });
    for (of_world, of_spaces) in used.unwrap() {
        assert!((4 * BYTES..4 * BYTES + 4096).contains(&of_world), "{of_world} bytes for four teams");
        assert!((BYTES..BYTES + 3 * 4096).contains(&of_spaces), "{of_spaces} bytes for the own team");
    }
}

#[test]
fn teams_of_different_threads_act_at_once() {
    spmd(4, |world| {
        let (row, column) = world.team().split_2d(2).unwrap();
        std::thread::scope(|scope| {
            for team in [&row, &column] {
                scope.spawn(move || {
                    for round in 0..200 {
                        let expected: Vec<u64> = pes(team).iter().map(|&pe| round + pe as u64).collect();
                        assert_eq!(gathered(team, round + world.my_pe() as u64), expected);
                    }
                });
            }
        });
    })
    .unwrap();
}

#[test]
fn wrong_teams_are_refused() {
    let refused = spmd(3, |world| {
        let team = world.team();
        [
            team.split_strided(0, 1, 0).map(drop),
            team.split_strided(0, 1, 4).map(drop),
            team.split_strided(1, -1, 3).map(drop),
            team.split_strided(0, 0, 2).map(drop),
            team.split_strided(3, 1, 1).map(drop),
            team.split_strided(0, isize::MAX, 3).map(drop),
            team.split_list(&[]).map(drop),
            team.split_list(&[0, 0]).map(drop),
            team.split_list(&[1, 3]).map(drop),
            team.split_2d(0).map(drop),
            team.split_3d(1, 0).map(drop),
            team.shrink(0).map(drop),
        ]
        .map(|outcome| outcome.unwrap_err().to_string())
    });
    for texts in refused.unwrap() {
        assert!(texts.iter().all(|text| text.contains("PE ") && text.contains("refused")), "{texts:?}");
    }
}

#[test]
fn members_that_ask_for_different_teams_are_told() {
    let told = spmd(3, |world| {
        let (me, team) = (world.my_pe(), world.team());
        let texts = [
            team.split_strided(0, 1, 1 + me).map(drop),
            match me {
                0 => team.space(4096).map(drop),
                _ => team.split_by(Some(1), 0).map(drop),
            },
            team.space(1000 + me).map(drop),
        ]
        .map(|outcome| outcome.unwrap_err().to_string());
        team.barrier();
        texts
    });
    for texts in told.unwrap() {
        assert!(texts[0].contains("other arguments"), "{}", texts[0]);
        assert!(texts[1].contains("space") && texts[1].contains("split_by"), "{}", texts[1]);
        assert!(texts[2].contains("other arguments"), "{}", texts[2]);
    }
}

#[test]
fn a_pool_that_is_full_says_so_on_all_pes() {
    let outcome = spmd(2, |world| {
        let team = world.team();
        let big = if world.my_pe() == 0 { 1 << 50 } else { 4096 };
        let error = team.space(big).map(drop).unwrap_err().to_string();
        assert!(error.contains("PELAGO_POOL_SIZE"), "{error}");
        team.space(4096).map(drop).unwrap();
    });
    outcome.unwrap();
}

#[test]
fn a_member_that_dies_ends_a_wait_in_a_team() {
    let outcome = spmd(3, |world| {
        let team = world.team().split_strided(0, 1, 3).unwrap().unwrap();
        if world.my_pe() == 1 {
            panic!("on purpose");
        }
        team.barrier();
    });
    let Err(SpmdError::Panicked { pe, message }) = outcome else { panic!("it cannot end well") };
    assert_eq!((pe, message.as_str()), (1, "on purpose"));
}

#[test]
fn spaces_of_one_team_are_told_apart() {
    let texts = spmd(2, |world| {
        let team = world.team();
        let (a, b) = (team.space(4096).unwrap(), team.space(4096).unwrap());
        let mut x = a.alloc_zeroed::<u64>(1).unwrap();
        let mut y = b.alloc_zeroed::<u64>(1).unwrap();
        let outcome = match world.my_pe() {
            0 => x.exclusive(|part| part[0]),
            _ => y.exclusive(|part| part[0]),
        };
        outcome.unwrap_err().to_string()
    });
    assert!(texts.unwrap().iter().all(|text| text.contains("disagree")));
}

#[test]
fn a_colour_is_any_number() {
    let members = spmd(3, |world| {
        let colour = (world.my_pe() != 1).then_some(u64::MAX);
        world.team().split_by(colour, 0).unwrap().map(|team| pes(&team))
    });
    assert_eq!(members.unwrap(), [Some(vec![0, 2]), None, Some(vec![0, 2])]);
}

#[test]
fn what_was_made_from_a_dropped_team_is_given_back() {
    spmd(2, |world| {
        let round = || {
            let pair = world.team().split_by(Some(0), 0).unwrap().unwrap();
            drop(pair.space(1 << 20).unwrap());
        };
        round();
        let used = world.pool_used_bytes();
        (0..6).for_each(|_| round());
        assert!(world.pool_used_bytes() < used + (1 << 20), "{} after {used}", world.pool_used_bytes());
    })
    .unwrap();
}

#[test]
fn a_space_of_a_team_that_shrinks_is_good_still() {
    spmd(3, |world| {
        let team = world.team().split_strided(0, 1, 3).unwrap().unwrap();
        let space = team.space(8192).unwrap();
        let _first = space.alloc_zeroed::<u64>(1).unwrap();
        if let Some(pair) = team.shrink(2).unwrap() {
            (0..5).for_each(|_| pair.barrier());
            assert_eq!(gathered(&pair, 3), [3, 3]);
        }
        let second = space.alloc_zeroed::<u64>(1).unwrap();
        second.p((world.my_pe() + 1) % 3, 0, 9).unwrap();
        world.barrier();
        assert_eq!(second.local().get(0), 9);
    })
    .unwrap();
}

#[test]
fn a_barrier_that_a_member_has_left_ends() {
    for (n_pes, form) in [(2, "auto"), (5, "auto"), (3, "schedule"), (5, "schedule")] {
        let outcome = Spmd::new(n_pes).setting("PELAGO_COLL_FORM", form).run(|world| {
            if world.my_pe() != 0 {
                world.team().barrier();
            }
        });
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("PE 0 has left the job"), "{form}: {text}");
    }
}

/// A team that stays alive does not keep the slots of the teams that were created after it.
#[test]
fn many_teams_one_after_the_other_beside_one_that_stays() {
    spmd(3, |world| -> pelago::Result<()> {
        let stays = world.team().split_strided(2, -1, 3)?.expect("all are members");
        for i in 0..600 {
            let team = world.team().split_strided(0, 1, 1 + i % 3)?;
            team.iter().for_each(|team| team.sync());
        }
        stays.barrier();
        Ok(())
    })
    .unwrap()
    .into_iter()
    .for_each(|outcome| outcome.unwrap());
}

/// Puts that are under way to a space when it is dropped do not reach the team that gets its memory.
#[test]
fn puts_to_a_dropped_space_are_complete_before_its_memory_is_given_back() {
    const WORDS: usize = 16 << 10;
    for seed in 0..8 {
        let params = SimParams {
            delivery: 0.02,
            again: 0.0,
            credits: 4096,
            inject_bytes: 4096,
            transfer_bytes: 4096,
            nodes: vec![0, 0, 1, 1],
            maps_nodes: true,
            ..SimParams::chaos(seed)
        };
        let sums = Spmd::new(4).sim(params).run(|world| {
            let (team, far) = (world.team(), (world.my_pe() + 2) % 4);
            let (sum, mine) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
            let space = team.space(8 * WORDS + 8192).unwrap();
            let array = space.alloc::<u64>(WORDS).unwrap();
            let context = world.context(ContextKind::Private).unwrap();
            let through = array.via(&context);
            for view in [&*array, &through] {
                (0..4).try_for_each(|_| view.put(far, 0, &[u64::MAX / 3; WORDS])).unwrap();
            }
            drop(through);
            drop(array);
            drop(space);
            let _gives_back = team.split_by(Some(0), 0).unwrap();
            let takes = team.split_by(Some(0), 0).unwrap().unwrap();
            [1, 2, 3, 4].map(|number| {
                mine.local().set(0, takes.sum(number).unwrap());
                takes.barrier();
                takes.all_reduce(ReduceOp::Sum, &sum, &mine).unwrap();
                sum.local().get(0)
            })
        });
        assert_eq!(sums.unwrap(), [[16, 32, 48, 64]; 4], "seed {seed}");
    }
}

/// A persistent operation may outlive its team's handle, but not the team's size.
#[test]
fn a_persistent_operation_of_a_team_that_has_shrunk_is_refused() {
    for check in ["off", "on"] {
        let job = Spmd::new(3).setting("PELAGO_CHECK", check);
        job.run(|world| {
            let (a, b) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
            let team = world.team().split_by(Some(0), 0).unwrap().unwrap();
            let adding = team.persistent().all_reduce(ReduceOp::Sum, &a, &b).unwrap();
            let pair = team.shrink(2).unwrap();
            let meet = || pair.iter().for_each(|pair| (0..3).for_each(|_| pair.barrier()));
            meet();
            let error = adding.start().map(drop).unwrap_err().to_string();
            assert!(error.contains("has shrunk"), "{check}: {error}");
            meet();
            world.barrier();
        })
        .unwrap();
    }
}
