//! Collective operations on plain values, and those of the world itself, against closed forms.
//!
//! Invariant: every member gets the same result, in teams of every order of ranks, for elements that are
//! shorter and longer than the words of one exchange.

use pelago::prelude::*;

everywhere! {
    values_of_all_members(4): values_of_all_members;
    values_of_teams(5): values_of_teams;
    calls_that_differ(3): calls_that_differ;
    operations_of_the_world(3): operations_of_the_world;
}

fn values_of_all_members(world: &World) {
    let (me, n, team) = (world.my_pe(), world.n_pes(), world.team());
    assert_eq!(team.sum(me + 1).unwrap(), n * (n + 1) / 2);
    assert_eq!(team.min(7 - me as i8).unwrap(), 8 - n as i8);
    assert_eq!(team.max(0.5 - me as f64).unwrap().to_bits(), 0.5_f64.to_bits());
    assert_eq!(team.reduce_value(ReduceOp::Product, me as u128 + 2).unwrap(), 2 * 3 * 4 * 5);
    assert_eq!(team.gather_values([me as u8; 3]).unwrap(), [[0; 3], [1; 3], [2; 3], [3; 3]]);
    // 16, 17 and 40 bytes: one exchange, and more.
    assert_eq!(team.broadcast_value(2, [me as u64; 2]).unwrap(), [2; 2]);
    assert_eq!(team.broadcast_value(1, [me as u8; 17]).unwrap(), [1; 17]);
    let long = [0, 1, 2, 3, 4].map(|i| (10 * me + i) as u64);
    let all: Vec<[u64; 5]> = (0..n).map(|pe| [0, 1, 2, 3, 4].map(|i| (10 * pe + i) as u64)).collect();
    assert_eq!(team.gather_values(long).unwrap(), all);
    assert_eq!(team.gather_values([0_u64; 0]).unwrap().len(), n);
    // A function that is neither commutative nor associative shows the order: that of the ranks.
    let digits = |a: u64, b: u64| 10 * a + b;
    assert_eq!(team.reduce_value(digits, me as u64 + 1).unwrap(), 1234);
    let before = team.exclusive_scan_value(digits, me as u64 + 1).unwrap();
    assert_eq!(before, [None, Some(1), Some(12), Some(123)][me]);
    let wrong = team.broadcast_value(n, 0_u64).unwrap_err().to_string();
    assert!(wrong.contains("no rank 4") && wrong.contains("0 to 3"), "{wrong}");
    let undefined = team.reduce_value(ReduceOp::Xor, 0.5).unwrap_err().to_string();
    assert!(undefined.contains("xor"), "{undefined}");
}

fn values_of_teams(world: &World) {
    let me = world.my_pe();
    let backwards = world.team().split_strided(4, -2, 3).unwrap(); // PEs 4, 2, 0
    if let Some(team) = backwards {
        assert_eq!(team.gather_values(me as u32).unwrap(), [4, 2, 0]);
        assert_eq!(team.sum(me).unwrap(), 6);
        assert_eq!(team.broadcast_value(1, me).unwrap(), 2);
    }
    assert_eq!(world.team().sum(1_u8).unwrap(), 5);
}

/// The error of every member names both calls, and the next common call succeeds.
fn calls_that_differ(world: &World) {
    let (team, is_first) = (world.team(), world.my_pe() == 0);
    let outcome = match is_first {
        true => team.broadcast_value(0, 1_u64).map(drop),
        false => team.broadcast_value(0, [1_u64; 4]).map(drop),
    };
    let text = outcome.expect_err("a value of 8 bytes agrees with one of 32").to_string();
    assert!(text.contains("of 8 bytes from rank 0") && text.contains("of 32 bytes from rank 0"), "{text}");
    let outcome = if is_first { team.sum(1_u64) } else { team.max(1_u64) };
    let text = outcome.expect_err("a sum agrees with a maximum").to_string();
    assert!(text.contains("(sum of u64)") && text.contains("(max of u64)"), "{text}");
    let outcome =
        if is_first { team.gather_values(1_u64).map(|_| 1) } else { team.broadcast_value(1, 1_u64) };
    let text = outcome.expect_err("a gather agrees with a broadcast").to_string();
    assert!(
        text.contains("gather_values of 8 bytes") && text.contains("broadcast_value of 8 bytes from rank 1"),
        "{text}"
    );
    let outcome = team.broadcast_value(usize::from(is_first), 1_u64);
    let text = outcome.expect_err("two roots agree").to_string();
    assert!(text.contains("from rank 0") && text.contains("from rank 1"), "{text}");
    assert_eq!(team.sum(1_u64).unwrap(), 3);
}

fn operations_of_the_world(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    assert_eq!((world.sum(me).unwrap(), world.min(me).unwrap(), world.max(me).unwrap()), (3, 0, n - 1));
    let (all, mine) = (world.alloc_zeroed::<u64>(n).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    for round in 0..3 {
        mine.local().set(0, 10 * round + me as u64);
        world.all_gather(&all, &mine).unwrap();
        assert_eq!(all.local().to_vec(), [0, 1, 2].map(|pe| 10 * round + pe));
        world.all_reduce(ReduceOp::Max, &mine, &mine).unwrap();
        assert_eq!(mine.local().get(0), 10 * round + 2);
        world.broadcast(1, &all, &all).unwrap();
        world.inclusive_scan(ReduceOp::Sum, &mine, &mine).unwrap();
        assert_eq!(mine.local().get(0), (me as u64 + 1) * (10 * round + 2));
    }
}
