//! Signals: a PE that sees a signal sees its data, on every route of the data and the signal.

use crate::common;
use pelago::prelude::*;
use pelago::{Comparison, ErrorKind, Indexed, SignalOp, Spmd};

everywhere! {
    signal_after_data(3): signal_after_data;
    everybody_signals_one(5): everybody_signals_one;
    without_data(3): without_data;
    without_quiet(2): without_quiet;
    scopes_complete_signals(3): scopes_complete_signals;
    contexts(2): contexts;
    ranks_of_spaces(3): ranks_of_spaces_are_other_pes;
}

/// Data in the world and signals in a space of PEs 2 and 0, whose rank 0 is PE 2: a signal would go to
/// another PE than the data.
fn ranks_of_spaces_are_other_pes(world: &World) {
    let data = world.alloc_zeroed::<u64>(4).unwrap();
    let pair = world.team().split_strided(2, -2, 2).unwrap();
    if let Some(pair) = &pair {
        let space = pair.space(1 << 16).unwrap();
        let arrived = space.alloc_zeroed::<u64>(1).unwrap();
        let inside = space.alloc_zeroed::<u64>(1).unwrap();
        let (op, indices) = (SignalOp::Add(1), [0, 2]);
        let indexed = Indexed { block: 1, indices: &indices, positions: None };
        let errors = [
            data.put_signal(0, 0, &[7], &arrived, 0, op).unwrap_err(),
            data.put_signal(2, 0, &[7], &arrived, 0, op).unwrap_err(),
            data.put_indexed_signal(0, &[7, 7], &indexed, &arrived, 0, op).unwrap_err(),
        ];
        let [other, nobody, indexed] = errors.map(|error| error.to_string());
        for text in [&other, &indexed] {
            assert!(text.contains("rank 0 is PE 0 for the data and PE 2 for the signals"), "{text}");
        }
        assert!(nobody.contains("names rank 2, but the team has the ranks 0 to 1"), "{nobody}");
        // Both in the space, all is well.
        let next = 1 - pair.my_rank();
        inside.put_signal(next, 0, &[5], &arrived, 0, op).unwrap();
        assert_eq!(arrived.local().wait(0, Comparison::Ge, 1), 1);
        assert_eq!(inside.local().get(0), 5);
        pair.barrier();
    }
    world.barrier();
    assert_eq!(data.local().to_vec(), [0; 4], "refused puts write nothing");
}

/// Puts of all lengths to the right neighbour, which reads the data as soon as it sees the signal.
fn signal_after_data(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let right = (me + 1) % n;
    let left = (me + n - 1) % n;
    let data = world.alloc_zeroed::<u64>(3000).unwrap();
    let (arrived, taken) = (world.alloc_zeroed::<u64>(2).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    for round in 1..=common::rounds(world, 2000, 12) {
        let count = [0, 1, 7, 64, 3000][round as usize % 5];
        let mut source = vec![round * 8 + me as u64; count];
        data.put_signal(right, 0, &source, &arrived, 1, SignalOp::Set(round)).unwrap();
        source.fill(0); // the source is free
        assert_eq!(arrived.local().wait(1, Comparison::Eq, round), round);
        assert_eq!(arrived.local().signal_fetch(1), round);
        let expected = round * 8 + left as u64;
        assert!((0..count).all(|i| data.local().get(i) == expected), "round {round}, {count} elements");
        // The left neighbour may write again.
        taken.signal(left, 0, SignalOp::Add(1)).unwrap();
        taken.local().wait(0, Comparison::Ge, round);
    }
    assert_eq!(arrived.local().get(0), 0);
    world.barrier();
}

/// Signals that add are counted, all of them.
fn everybody_signals_one(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (data, arrived) = (world.alloc_zeroed::<u32>(10 * n).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    for round in 1..=common::rounds(world, 200, 4) {
        let row = [round as u32 * 100 + me as u32; 10];
        data.put_signal(0, me * 10, &row, &arrived, 0, SignalOp::Add(1)).unwrap();
        if me == 0 {
            arrived.local().wait(0, Comparison::Eq, n as u64 * round);
            let is_there = |i| data.local().get(i) == round as u32 * 100 + (i / 10) as u32;
            assert!((0..10 * n).all(is_there), "round {round}");
        }
        world.barrier();
    }
}

/// A signal without data shows that operations that were fenced before it are delivered.
fn without_data(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (data, arrived) = (world.alloc_zeroed::<u16>(n).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    for pe in 0..n {
        data.p(pe, me, 7 + me as u16).unwrap();
        world.fence();
        arrived.signal(pe, 0, SignalOp::Add(5)).unwrap();
    }
    arrived.local().wait(0, Comparison::Ge, 5 * n as u64);
    assert!((0..n).all(|from| data.local().get(from) == 7 + from as u16));
    world.barrier();
    if me == 0 {
        arrived.signal(n - 1, 0, SignalOp::Set(u64::MAX)).unwrap();
        arrived.signal(n - 1, 0, SignalOp::Add(0)).unwrap();
    }
    if me == n - 1 {
        arrived.local().wait(0, Comparison::Eq, u64::MAX);
    }
    world.barrier();
}

/// A non-blocking put signals even if no PE ever calls quiet.
fn without_quiet(world: &World) {
    let other = 1 - world.my_pe();
    let (data, arrived) = (world.alloc_zeroed::<u64>(500).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    let sources: Vec<[u64; 500]> = (1..=common::rounds(world, 100, 5)).map(|round| [round; 500]).collect();
    for (round, source) in (1..).zip(&sources) {
        // SAFETY: the sources live until the barrier at the end has completed all operations.
        unsafe { data.put_signal_nbi(other, 0, source, &arrived, 0, SignalOp::Set(round)) }.unwrap();
        arrived.local().wait(0, Comparison::Eq, round);
        assert!((0..500).all(|i| data.local().get(i) == round), "round {round}");
        world.barrier();
    }
    world.barrier();
}

/// Puts with signals are complete when their scope has ended, or when their region reports it.
fn scopes_complete_signals(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let data = world.alloc_zeroed::<u8>(1000 * n).unwrap();
    let arrived = world.alloc_zeroed::<u64>(n).unwrap();
    let there = |pe: usize| (data.g(pe, 1000 * me + 999).unwrap(), arrived.atomic_fetch(pe, me).unwrap());
    for round in 1..=common::rounds(world, 50, 4) as u8 {
        let source = [round; 1000];
        let (from, op) = (1000 * me, SignalOp::Add(1));
        let outcome = world.scope(|scope| {
            let region = scope.region();
            region.put_signal(&data, 0, from, &source, &arrived, me, op)?;
            region.wait();
            assert_eq!(there(0), (round, round.into()), "after the wait of the region");
            (1..n - 1).try_for_each(|pe| scope.put_signal(&data, pe, from, &source, &arrived, me, op))?;
            scope.quiet();
            assert!((1..n - 1).all(|pe| there(pe) == (round, round.into())), "after the quiet of the scope");
            scope.put_signal(&data, n - 1, from, &source, &arrived, me, op)
        });
        outcome.unwrap();
        assert_eq!(there(n - 1), (round, round.into()), "after the scope");
    }
    world.barrier();
    assert!((0..n).all(|from| data.local().get(1000 * from) == data.local().get(999)));
}

/// Data and signal use the context of the data, whose quiet completes both.
fn contexts(world: &World) {
    let other = 1 - world.my_pe();
    let (data, arrived) = (world.alloc_zeroed::<u64>(300).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    let context = world.context(Default::default()).unwrap();
    for round in 1..=common::rounds(world, 100, 5) {
        let source = [round; 300];
        // SAFETY: the source lives until the quiet below.
        unsafe {
            data.via(&context).put_signal_nbi(other, 0, &source, &arrived, 0, SignalOp::Set(round)).unwrap();
        }
        context.quiet();
        assert_eq!((data.g(other, 299).unwrap(), arrived.atomic_fetch(other, 0).unwrap()), (round, round));
        world.barrier();
        data.via(&context).put_signal(other, 0, &[0; 300], &arrived, 0, SignalOp::Set(0)).unwrap();
        arrived.local().wait(0, Comparison::Eq, 0);
        assert_eq!(data.local().get(299), 0);
        world.barrier();
    }
}

#[test]
fn one_pe_signals_itself() {
    spmd(1, signal_after_data).unwrap();
    Spmd::new(1).counters(true).run(signal_after_data).unwrap();
}

#[test]
fn errors_say_which_range_is_wrong() {
    let body = |world: &World| {
        let (data, arrived) = (world.alloc_zeroed::<u8>(10).unwrap(), world.alloc_zeroed::<u64>(2).unwrap());
        let put = |pe, index, count: usize, at| {
            data.put_signal(pe, index, &vec![1; count], &arrived, at, SignalOp::Set(1))
                .unwrap_err()
                .to_string()
        };
        let me = world.my_pe();
        assert_eq!(
            put(2, 0, 1, 0),
            format!("PE {me}: put_signal names PE 2, but the job has 2 PEs, numbered 0 to 1")
        );
        assert_eq!(
            put(1, 8, 3, 0),
            format!(
                "PE {me}: the put of put_signal of 3 elements at index 8 on PE 1 lies outside the array, \
                 which has 10 elements a PE"
            )
        );
        assert_eq!(
            put(1, 8, 2, 2),
            format!(
                "PE {me}: the signal of put_signal of 1 elements at index 2 on PE 1 lies outside the array, \
                 which has 2 elements a PE"
            )
        );
        assert!(put(0, usize::MAX, 0, usize::MAX).contains("the put of put_signal"));
        assert!(
            arrived.signal(0, 2, SignalOp::Add(1)).is_err()
                && arrived.signal(2, 0, SignalOp::Add(1)).is_err()
        );
        world.barrier();
        assert_eq!((data.local().to_vec(), arrived.local().to_vec()), (vec![0; 10], vec![0; 2]));
    };
    spmd(2, body).unwrap();
    Spmd::new(2).counters(true).run(body).unwrap();
    Spmd::new(2).sim(Default::default()).run(body).unwrap();
}

#[test]
fn arrays_of_another_world_are_refused() {
    let outer = |world: &World| {
        let (data, flags) = (world.alloc_zeroed::<u8>(10).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
        let inner = |other: &World| {
            let arrived = other.alloc_zeroed::<u64>(1).unwrap();
            let refused = |error: pelago::Error| {
                matches!(error.kind(), ErrorKind::OtherWorld { me: 0, operation: "put_signal" })
            };
            let set = SignalOp::Set(1);
            assert!(refused(data.put_signal(0, 0, &[1], &arrived, 0, set).unwrap_err()));
            other.scope(|scope| {
                assert!(refused(scope.put_signal(&data, 0, 0, &[1], &flags, 0, set).unwrap_err()));
            });
        };
        spmd(1, inner).unwrap();
    };
    spmd(1, outer).unwrap();
}

#[test]
fn a_put_with_a_signal_counts_as_both() {
    let body = |world: &World| {
        let (data, arrived) = (world.alloc_zeroed::<u32>(10).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
        let before = world.counters();
        data.put_signal(1, 0, &[1; 10], &arrived, 0, SignalOp::Add(1)).unwrap();
        arrived.signal(0, 0, SignalOp::Add(1)).unwrap();
        world.barrier();
        let after = world.counters();
        (after.puts - before.puts, after.put_bytes - before.put_bytes, after.atomics - before.atomics)
    };
    assert_eq!(Spmd::new(2).counters(true).run(body).unwrap(), [(1, 40, 2); 2]);
}
