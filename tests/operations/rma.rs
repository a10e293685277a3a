//! Put and get: against a model, between threads and between processes, and their errors.

use crate::common;
use pelago::prelude::*;
use pelago::{ContextKind, ErrorKind, Spmd};
use pelago_fabric::sync::{AtomicU64, Ordering};
use proptest::prelude::*;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
struct Particle {
    position: [f64; 3],
    charge: f32,
    kind: u32,
}

everywhere! {
    everyone_reaches_everyone(5): everyone_reaches_everyone;
    all_types_and_lengths(3): all_types_and_lengths;
    put_fence_put(2): put_fence_put;
    bound_handles(3): bound_handles;
    ranges_of_the_own_part(2): ranges_of_the_own_part;
    scopes_and_handles(4): scopes_and_handles;
    alone(1): everyone_reaches_everyone;
}

#[test]
fn numbers_that_wrap_are_elements() {
    use std::num::Wrapping;
    try_spmd(2, |world| {
        let words = world.alloc_zeroed::<Wrapping<u8>>(1)?;
        words.put(1 - world.my_pe(), 0, &[Wrapping(world.my_pe() as u8) - Wrapping(1)])?;
        world.barrier();
        assert_eq!(words.local().get(0).0, [0, 255][world.my_pe()]);
        Ok(())
    })
    .unwrap();
}

/// Every PE puts a word to every PE, reads them back by gets, and finds what the others have put.
fn everyone_reaches_everyone(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u64>(n).unwrap();
    for round in 1..=common::rounds(world, 20, 3) as usize {
        for pe in 0..n {
            array.p(pe, me, (round * 1000 + me * 10 + pe) as u64).unwrap();
        }
        world.barrier();
        for pe in 0..n {
            assert_eq!(array.local().get(pe), (round * 1000 + pe * 10 + me) as u64);
            assert_eq!(array.g(pe, me).unwrap(), (round * 1000 + me * 10 + pe) as u64);
        }
        world.barrier();
    }
}

fn all_types_and_lengths(world: &World) {
    fn check<T: Element + PartialEq + std::fmt::Debug>(world: &World, make: impl Fn(usize) -> T) {
        let right = (world.my_pe() + 1) % world.n_pes();
        let array = world.alloc_zeroed::<T>(700).unwrap();
        for count in [0, 1, 2, 3, 5, 8, 64, 500] {
            let source: Vec<T> = (0..count).map(|i| make(i + count)).collect();
            array.put(right, 100, &source).unwrap();
            world.barrier();
            let mut here = vec![make(0); count];
            array.local().read(100, &mut here);
            assert_eq!(here, source);
            let mut back = vec![make(0); count];
            array.get(right, 100, &mut back).unwrap();
            assert_eq!(back, source);
            world.barrier();
        }
    }
    check(world, |i| i as u8);
    check(world, |i| i as i16 - 50);
    check(world, |i| i as f32 * 0.5);
    check(world, |i| i as f64 - 0.25);
    check(world, |i| i as u128 * 0x1_0000_0001_0000_0001);
    check(world, |i| [i as u8, 2, 3]);
    check(world, |i| num_complex::Complex::new(i as f64, -1.0));
    check(world, |i| Particle { position: [i as f64; 3], charge: 0.5, kind: i as u32 });
}

/// The flag that follows the data after a fence shows that the data are delivered, ten thousand times.
fn put_fence_put(world: &World) {
    let data = world.alloc_zeroed::<u64>(64).unwrap();
    let flag = world.alloc_zeroed::<u64>(1).unwrap();
    for round in 1..=common::rounds(world, 10_000, 20) {
        if world.my_pe() == 0 {
            data.put(1, 0, &[round; 64]).unwrap();
            world.fence();
            flag.p(1, 0, round).unwrap();
            flag.local().wait_until(0, |value| value == round);
        } else {
            flag.local().wait_until(0, |value| value == round);
            assert!((0..64).all(|i| data.local().get(i) == round), "round {round}");
            world.fence();
            flag.p(0, 0, round).unwrap();
        }
    }
}

fn bound_handles(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u32>(8 * n).unwrap();
    for pe in 0..n {
        let there = array.on(pe).unwrap();
        there.p(8 * me, me as u32 + 1).unwrap();
        there.put(8 * me + 1, &[7; 7]).unwrap();
    }
    world.barrier();
    for pe in 0..n {
        let there = array.on(pe).unwrap();
        for from in 0..n {
            let mut seven = [0; 7];
            there.get(8 * from + 1, &mut seven).unwrap();
            assert_eq!((there.g(8 * from).unwrap(), seven), (from as u32 + 1, [7; 7]));
        }
        let error = there.p(8 * n, 0).unwrap_err().to_string();
        assert!(error.contains(&format!("p of 1 elements at index {} on PE {pe}", 8 * n)), "{error}");
        assert!(there.put(8 * n, &[]).is_ok() && there.get(8 * n - 1, &mut [0; 2]).is_err());
    }
    assert!(array.on(n).is_err());
}

fn scopes_and_handles(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u16>(n * 10).unwrap();
    let rows: Vec<[u16; 10]> = (0..n).map(|pe| [(me * n + pe) as u16; 10]).collect();
    let started = world.scope(|scope| {
        for (pe, row) in rows.iter().enumerate() {
            scope.put(&array, pe, me * 10, row)?;
        }
        scope.quiet();
        Ok::<usize, pelago::Error>(rows.len())
    });
    assert_eq!(started.unwrap(), n);
    world.barrier();
    let mut columns = vec![[0u16; 10]; n];
    let outcome = world.scope(|scope| {
        columns.iter_mut().enumerate().try_for_each(|(pe, column)| scope.get(&array, pe, me * 10, column))
    });
    outcome.unwrap();
    assert!((0..n).all(|pe| columns[pe] == [(me * n + pe) as u16; 10]));
    let transfers: Vec<_> = (0..n).map(|pe| array.get_nb(pe, 0, vec![0; n * 10]).unwrap()).collect();
    for (pe, transfer) in transfers.into_iter().enumerate() {
        let data = transfer.wait();
        assert!((0..n).all(|from| data[from * 10] == (from * n + pe) as u16));
    }
    world.barrier();
    let put = array.put_nb((me + 1) % n, 0, vec![me as u16; 10]).unwrap();
    drop(put); // not waited for: complete after the barrier all the same
    world.barrier();
    assert_eq!(array.local().get(9), ((me + n - 1) % n) as u16);
}

/// Operations of one PE on all parts, against plain vectors.
#[derive(Clone, Debug)]
enum Op {
    Put { pe: usize, index: usize, data: Vec<u32> },
    Get { pe: usize, index: usize, count: usize },
    Write { index: usize, data: Vec<u32> },
    P { pe: usize, index: usize, value: u32 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let data = || prop::collection::vec(any::<u32>(), 0..40);
    let put = (0usize..5, 0usize..120, data()).prop_map(|(pe, index, data)| Op::Put { pe, index, data });
    let get =
        (0usize..5, 0usize..120, 0usize..40).prop_map(|(pe, index, count)| Op::Get { pe, index, count });
    let write = (0usize..60, data()).prop_map(|(index, data)| Op::Write { index, data });
    let p = (0usize..5, 0usize..120, any::<u32>()).prop_map(|(pe, index, value)| Op::P { pe, index, value });
    prop::collection::vec(prop_oneof![put, get, write, p], 0..60)
}

fn apply(array: &Symmetric<'_, u32>, model: &mut [Vec<u32>], op: &Op) {
    let fits = |pe: usize, index: usize, count: usize| pe < 3 && index + count <= 100;
    match op {
        Op::Put { pe, index, data } => {
            assert_eq!(array.put(*pe, *index, data).is_ok(), fits(*pe, *index, data.len()));
            if fits(*pe, *index, data.len()) {
                model[*pe][*index..index + data.len()].copy_from_slice(data);
            }
        }
        Op::Get { pe, index, count } => {
            let mut target = vec![0; *count];
            assert_eq!(array.get(*pe, *index, &mut target).is_ok(), fits(*pe, *index, *count));
            if fits(*pe, *index, *count) {
                assert_eq!(target, model[*pe][*index..index + count]);
            }
        }
        Op::Write { index, data } => {
            array.local().write(*index, data);
            model[0][*index..index + data.len()].copy_from_slice(data);
        }
        Op::P { pe, index, value } => {
            assert_eq!(array.p(*pe, *index, *value).is_ok(), fits(*pe, *index, 1));
            if fits(*pe, *index, 1) {
                model[*pe][*index] = *value;
                assert_eq!(array.g(*pe, *index).unwrap(), *value);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_operations_equal_the_model(ops in ops(), counters: bool) {
        let run = |world: &World| {
            let array = world.alloc_zeroed::<u32>(100).unwrap();
            let guard = world.alloc_zeroed::<u32>(100).unwrap();
            if world.my_pe() == 0 {
                let mut model = vec![vec![0u32; 100]; 3];
                ops.iter().for_each(|op| apply(&array, &mut model, op));
                for (pe, model) in model.iter().enumerate() {
                    let mut part = vec![0; 100];
                    array.get(pe, 0, &mut part).unwrap();
                    assert_eq!(&part, model);
                }
            }
            world.barrier();
            let untouched = guard.local().to_vec().iter().all(|&word| word == 0);
            assert!(untouched, "the neighbouring array was written");
        };
        Spmd::new(3).counters(counters).run(run).unwrap();
    }
}

#[test]
fn errors_name_pe_operation_range_and_remedy() {
    spmd(2, |world| {
        let array = world.alloc_zeroed::<f64>(8).unwrap();
        let me = world.my_pe();
        let error = array.put(9, 0, &[1.0]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::PeOutOfRange { pe: 9, n_pes: 2, .. }));
        let text = error.to_string();
        assert_eq!(text, format!("PE {me}: put names PE 9, but the job has 2 PEs, numbered 0 to 1"));
        let text = array.get(1, 6, &mut [0.0; 3]).unwrap_err().to_string();
        let expected =
            "get of 3 elements at index 6 on PE 1 lies outside the array, which has 8 elements a PE";
        assert_eq!(text, format!("PE {me}: {expected}"));
        for (pe, index) in [(2, 0), (usize::MAX, 0), (0, 8), (0, usize::MAX)] {
            assert!(array.p(pe, index, 1.0).is_err(), "p({pe}, {index})");
            assert!(array.g(pe, index).is_err(), "g({pe}, {index})");
            assert!(array.put(pe, index, &[1.0]).is_err(), "put({pe}, {index})");
            assert!(array.get(pe, index, &mut [1.0]).is_err(), "get({pe}, {index})");
            assert!(array.put_nb(pe, index, vec![1.0]).is_err(), "put_nb({pe}, {index})");
        }
        assert!(array.put(0, usize::MAX, &[]).is_err() && array.put(0, 8, &[]).is_ok());
        world.barrier();
        assert!(array.local().to_vec().iter().all(|&value| value == 0.0), "a refused put has written");
    })
    .unwrap();
}

#[test]
fn local_access_is_checked() {
    type Access = fn(&Symmetric<'_, u32>);
    let accesses: [Access; 5] = [
        |array| assert_eq!(array.local().get(4), 0),
        |array| array.local().set(usize::MAX, 0),
        |array| array.local().read(3, &mut [0; 2]),
        |array| array.local().write(5, &[]),
        |array| assert_eq!(array.local().wait_until(4, |_| true), 0),
    ];
    for access in accesses {
        let outcome = spmd(1, |world| access(&world.alloc_zeroed::<u32>(4).unwrap()));
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("PE 0: access of") && text.contains("of 4 elements"), "{text}");
    }
}

#[test]
fn counters_count_when_they_are_on_and_only_then() {
    let count = |on: bool| {
        let body = |world: &World| {
            let array = world.alloc_zeroed::<u32>(16).unwrap();
            let before = world.counters();
            array.put(1, 0, &[1; 10]).unwrap();
            array.p(0, 0, 5).unwrap();
            array.on(1).unwrap().p(0, 5).unwrap();
            array.get(1, 0, &mut [0; 3]).unwrap();
            array.g(0, 0).unwrap();
            assert!(array.p(7, 0, 0).is_err(), "refused operations do not count");
            world.barrier();
            let after = world.counters();
            let puts = (after.puts - before.puts, after.put_bytes - before.put_bytes);
            let gets = (after.gets - before.gets, after.get_bytes - before.get_bytes);
            (puts, gets, after.barriers - before.barriers)
        };
        Spmd::new(2).counters(on).run(body).unwrap()[0]
    };
    assert_eq!(count(true), ((3, 48), (2, 16), 1));
    assert_eq!(count(false), ((0, 0), (0, 0), 0));
}

/// After quiet a put is delivered at its target, which reads it without a call of the runtime.
#[test]
fn what_is_quiet_has_arrived() {
    static ROUNDS_TOLD: AtomicU64 = AtomicU64::new(0);
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u64>(1).unwrap();
        for round in 1..=100 {
            if world.my_pe() == 0 {
                // So that no other operation is outstanding.
                world.quiet();
                array.p(1, 0, round).unwrap();
                world.quiet();
                ROUNDS_TOLD.store(round, Ordering::Release);
            } else {
                let since = Instant::now();
                while ROUNDS_TOLD.load(Ordering::Acquire) < round {
                    assert!(since.elapsed() < Duration::from_secs(60), "PE 0 does not tell of round {round}");
                    std::thread::yield_now();
                }
                assert_eq!(array.local().get(0), round);
            }
            world.barrier();
        }
    };
    for provider in common::FAKE_PROVIDERS {
        let settings = common::over_fake_libfabric("2", provider);
        pelago::testing::expect_success(&pelago::try_processes!(2, settings, body));
    }
}

/// Data that a fast path of a binding injects are delivered, and its injected gets return the data of the
/// target.
#[test]
fn what_a_binding_injects_has_arrived() {
    let body = |world: &World| {
        let (array, right) = (world.alloc_zeroed::<u64>(8).unwrap(), 1 - world.my_pe());
        let context = world.context(ContextKind::Private).unwrap();
        let through = array.via(&context);
        let mut injected = [0; 2];
        for round in 1..=200_u64 {
            let (view, index) = if round.is_multiple_of(2) { (&*array, 1) } else { (&through, 5) };
            let far = view.far();
            // SAFETY: the array is alive, and the element lies in the part of the other PE, over the network.
            let is_put = unsafe { far.put(right, 8 * index, round as u32) };
            injected[0] += u32::from(is_put);
            if !is_put {
                view.p(right, index, round).unwrap();
            }
            context.quiet();
            world.barrier();
            assert_eq!(array.local().get(index), round);
            // SAFETY: the array is alive, and the element lies in the part of the other PE, over the network.
            let got = unsafe { far.get::<u64>(right, 8 * index) };
            injected[1] += u32::from(got.is_some());
            assert_eq!(got.unwrap_or_else(|| view.g(right, index).unwrap()), round);
            world.barrier();
        }
        assert!(injected[0] > 100, "puts are injected, as a rule: {injected:?}");
        // The gets of the context are the only operations. With other providers a get writes to a buffer
        // first.
        let is_plain = world.fabric().is_some_and(|fabric| fabric.contains("plain"));
        assert!(!is_plain || injected[1] >= 100, "gets are injected, as a rule: {injected:?}");
    };
    for provider in common::FAKE_PROVIDERS {
        let settings = common::over_fake_libfabric("2", provider);
        pelago::testing::expect_success(&pelago::try_processes!(2, settings, body));
    }
}

/// Ranges and rows of the own part are the same memory as the part, and other PEs see what is written there.
fn ranges_of_the_own_part(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u32>(23).unwrap();
    let local = array.local();
    assert_eq!((local.rows(5).len(), local.rows(23).len(), local.rows(24).len()), (4, 1, 0));
    for (y, row) in local.rows(5).enumerate() {
        row.fill(100 * y as u32);
        row.set(1, 7);
        assert_eq!(row.update(1, |old| old + me as u32), 7 + me as u32);
        row.range(2..4).write(0, &[1, 2]);
    }
    let expected = |pe: usize| -> Vec<u32> {
        let row = |y: u32| [100 * y, 7 + pe as u32, 1, 2, 100 * y];
        (0..4).flat_map(row).chain([0; 3]).collect()
    };
    assert_eq!(local.to_vec(), expected(me));
    assert!(local.iter().eq(expected(me)) && local.iter().rev().eq(expected(me).into_iter().rev()));
    let mut part = [0; 3];
    local.range(4..20).range(1..9).read(5, &mut part);
    assert_eq!(part, expected(me)[10..13]);
    assert_eq!((local.range(23..23).len(), local.range(5..10).iter().len()), (0, 5));
    world.barrier();
    let right = (me + 1) % n;
    let mut there = vec![0; 23];
    array.get(right, 0, &mut there).unwrap();
    assert_eq!(there, expected(right));
    world.barrier();
    array.p(right, 22, 9).unwrap();
    assert_eq!(local.range(20..23).wait(2, Comparison::Eq, 9), 9);
    world.barrier();
}

/// Accesses outside a range of the own part are refused, also where the part has these elements.
#[test]
fn what_lies_outside_a_range_is_refused() {
    type Access = fn(&pelago::Local<'_, u64>);
    let cases: [(Access, &str); 9] = [
        (|all| _ = all.range(2..4).get(2), "a range of 2 elements, from element 2 of the local part on"),
        (|all| all.range(2..4).set(7, 1), "access of 1 elements at index 7"),
        (|all| all.range(2..4).read(1, &mut [0; 2]), "access of 2 elements at index 1"),
        (|all| all.range(2..4).write(0, &[0; 3]), "access of 3 elements at index 0"),
        (|all| _ = all.range(2..9), "access of 7 elements at index 2 lies outside the local part of 8"),
        (|all| _ = all.range(9..9), "access of 0 elements at index 9"),
        #[expect(clippy::reversed_empty_ranges, reason = "the mistake that is tested")]
        (|all| _ = all.range(4..2), "the range of elements 4..2 ends before its start"),
        (|all| _ = all.range(0..4).wait_until(4, |_| true), "access of 1 elements at index 4"),
        (|all| _ = all.rows(0), "rows of 0 elements"),
    ];
    for (access, part) in cases {
        let outcome = spmd(1, move |world| {
            let array = world.alloc_zeroed::<u64>(8).unwrap();
            access(&array.local());
        });
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains(part), "{part}: {text}");
    }
}
