//! Waiting for elements: one and sets, every width, and waking from sleep.

use crate::common;
use pelago::Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
use pelago::prelude::*;
use pelago::sync::{AtomicU64, Ordering, spin_once};
use pelago::{Local, Watch};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

everywhere! {
    every_width(2): every_width;
    tests_make_progress(3): tests_make_progress;
    all_of_a_set(4): all_of_a_set;
    some_of_a_set(5): some_of_a_set;
    any_is_fair(3): any_is_fair;
    empty_sets(1): empty_sets;
    sees_what_was_fenced(3): sees_what_was_fenced;
}

/// A counter goes back and forth; every comparison ends its wait.
fn every_width(world: &World) {
    fn check<T: Element + PartialOrd + std::fmt::Debug>(world: &World, zero: T, values: [T; 3]) {
        let [low, middle, high] = values;
        let (me, word) = (world.my_pe(), world.alloc::<T>(3).unwrap());
        word.local().write(0, &[zero; 3]);
        world.barrier();
        let (mine, theirs) = (word.local(), |value| word.p(1 - me, 1, value).unwrap());
        let turns =
            [(Eq, middle, middle), (Ne, middle, high), (Gt, middle, high), (Le, low, low), (Ge, high, high)];
        for (comparison, bound, value) in turns.into_iter().chain([(Lt, high, low), (Lt, high, middle)]) {
            if me == 0 {
                theirs(value);
                world.fence();
                mine.wait(1, Eq, value);
            } else {
                let seen = mine.wait(1, comparison, bound);
                assert!(comparison.holds(seen, bound), "{seen:?} {comparison:?} {bound:?}");
                mine.wait(1, Eq, value);
                theirs(value);
            }
            world.barrier();
        }
        assert_eq!((mine.get(0), mine.get(2)), (zero, zero));
    }
    check(world, 0u8, [1, 2, u8::MAX]);
    check(world, 0i8, [i8::MIN, -1, 5]);
    check(world, 0u16, [1, 2, u16::MAX]);
    check(world, 0i16, [i16::MIN, -1, 5]);
    check(world, 0u32, [1, 2, u32::MAX]);
    check(world, 0i32, [i32::MIN, -1, 5]);
    check(world, 0u64, [1, 2, u64::MAX]);
    check(world, 0i64, [i64::MIN, -1, 5]);
    check(world, 0.5f32, [f32::NEG_INFINITY, -0.25, 1e30]);
    check(world, 0.5f64, [-1e300, -0.25, f64::INFINITY]);
}

/// Loops over tests end, one element at a time and over sets, without a call that waits.
fn tests_make_progress(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let counts = world.alloc_zeroed::<u32>(n).unwrap();
    for round in 1..=common::rounds(world, 100, 3) as u32 {
        (0..n).try_for_each(|pe| counts.add(pe, me, 1)).unwrap();
        let local = counts.local();
        within_bounds(|| local.test(n - 1, Ge, round));
        let watch = local.watch(0..n);
        within_bounds(|| watch.test_any(Ge, round).is_some());
        within_bounds(|| watch.test_some(Ge, round).len() == n);
        assert!(watch.test_all(Ge, round) && !watch.test_all(Gt, &vec![round + n as u32; n]));
        assert_eq!((watch.test_any(Lt, round), watch.test_some(Lt, round)), (None, vec![]));
        world.barrier();
    }
}

/// Polls until `ready` returns true, but not for ever.
fn within_bounds(mut ready: impl FnMut() -> bool) {
    let since = Instant::now();
    while !ready() {
        assert!(since.elapsed() < Duration::from_secs(60), "what is tested for has not come");
        std::thread::yield_now();
    }
}

/// One value for all or one for each, with and without a mask.
fn all_of_a_set(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let words = world.alloc_zeroed::<i64>(n + 2).unwrap();
    let bounds: Vec<i64> = (0..n).map(|from| from as i64 * 10).collect();
    let mut mask = vec![false; n];
    mask[n - 1] = true;
    for round in 1..=common::rounds(world, 100, 3) as i64 {
        let local = words.local();
        (0..n - 1).try_for_each(|pe| words.p(pe, me + 1, round + 10 * me as i64)).unwrap();
        world.fence();
        if me < n - 1 {
            let expected: Vec<i64> = bounds.iter().map(|bound| bound + round).collect();
            let watch = local.watch(1..n + 1);
            watch.wait_all(Ge, &expected);
            watch.wait_all(Ge, round);
            assert!(watch.test_all(Eq, &expected) && watch.test_all(Ne, -1));
            assert_eq!((local.get(0), local.get(n + 1)), (0, 0));
        } else {
            // Only PE 0 writes to this PE, and not to the last element.
            local.watch(1..2).wait_all(Eq, -round);
            let mut words = [true; 4];
            words[0] = false;
            local.watch(1..5).excluding(&words[..n]).wait_all(Eq, &[-round, 9, 9, 9][..n]);
        }
        if me == 0 {
            words.p(n - 1, 1, -round).unwrap();
        }
        world.barrier();
        assert!(local.watch(1..n + 1).excluding(&mask).test_all(Le, round + 10 * (n as i64 - 2)));
        world.barrier();
    }
}

/// Each arrival is found exactly once.
fn some_of_a_set(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let inbox = world.alloc_zeroed::<u64>(n + 1).unwrap();
    for round in 1..=common::rounds(world, 100, 3) {
        (0..n).try_for_each(|pe| inbox.p(pe, me + 1, round)).unwrap();
        world.fence();
        let local = inbox.local();
        let mut seen = vec![false; n];
        while seen.contains(&false) {
            let found = local.watch(1..n + 1).excluding(&seen).wait_some(Eq, round);
            assert!(!found.is_empty() && found.is_sorted());
            for index in found {
                assert!(!std::mem::replace(&mut seen[index - 1], true), "element {index} twice");
            }
        }
        assert_eq!(local.watch(1..n + 1).wait_some(Eq, &vec![round; n]).len(), n);
        world.barrier();
    }
}

/// If the comparison holds for all elements, they are returned in turn, by every form.
fn any_is_fair(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let words = world.alloc_zeroed::<u16>(8).unwrap();
    for pe in 0..n {
        words.put(pe, 0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    }
    world.barrier();
    let local = words.local();
    let watch = local.watch(2..6);
    let found: Vec<usize> = (0..8).map(|_| watch.wait_any(Ne, 0).unwrap()).collect();
    assert_eq!(found, [2, 3, 4, 5, 2, 3, 4, 5]);
    let found: Vec<usize> = (0..3).map(|_| watch.test_any(Gt, &[0, 9, 0, 9]).unwrap()).collect();
    assert_eq!(found, [2, 4, 2]);
    let watch = local.watch(2..6).starting_at(5).excluding(&[false, true, false, false]);
    let found: Vec<usize> = (0..4).map(|_| watch.wait_any(Ge, 3).unwrap()).collect();
    assert_eq!(found, [5, 2, 4, 5]);
    // An element that changes late is waited for, although the others are not.
    if me == 0 {
        words.p(n - 1, 4, 100).unwrap();
    }
    if me == n - 1 {
        assert_eq!(watch.wait_any(Eq, 100), Some(4));
    }
    world.barrier();
}

/// For an empty set the `all` forms hold and the `any` forms do not; no call waits for it.
fn empty_sets(world: &World) {
    let words = world.alloc_zeroed::<u32>(4).unwrap();
    let check = |watch: Watch<'_, u32>| {
        watch.wait_all(Eq, 9);
        assert_eq!((watch.wait_any(Eq, 9), watch.wait_some(Eq, 9)), (None, vec![]));
        assert!(watch.test_all(Eq, 9));
        assert_eq!((watch.test_any(Eq, 9), watch.test_some(Eq, 9)), (None, vec![]));
    };
    check(words.local().watch(4..4));
    check(words.local().watch(0..0).starting_at(0));
    check(words.local().watch(1..3).excluding(&[true, true]));
}

/// Every form is an acquire: data that were put and fenced before are visible.
fn sees_what_was_fenced(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (data, flags) = (world.alloc_zeroed::<u64>(64).unwrap(), world.alloc_zeroed::<u8>(4).unwrap());
    let (right, local) = ((me + 1) % n, flags.local());
    type Look = fn(&Local<'_, u8>, u8);
    let looks: [Look; 6] = [
        |flags, value| assert_eq!(flags.wait(1, Eq, value), value),
        |flags, value| flags.watch(1..3).wait_all(Eq, value),
        |flags, value| assert!(flags.watch(1..3).wait_any(Eq, value).is_some()),
        |flags, value| assert!(!flags.watch(0..4).wait_some(Eq, value).is_empty()),
        |flags, value| within_bounds(|| flags.test(2, Eq, value)),
        |flags, value| within_bounds(|| flags.watch(0..4).test_any(Eq, value).is_some()),
    ];
    for round in 1..=common::rounds(world, 3000, 12) {
        let flag = (round % 200) as u8 + 1;
        data.put(right, 0, &[round; 64]).unwrap();
        world.fence();
        flags.put(right, 1, &[flag; 2]).unwrap();
        world.fence();
        looks[round as usize % looks.len()](&local, flag);
        assert!((0..64).all(|i| data.local().get(i) == round), "round {round}");
        world.barrier();
    }
}

/// PE 0 puts one element by a plain `p` and computes until PE 1, which sleeps, has woken up and reported it.
fn a_plain_put_wakes(world: &World) {
    let (me, word) = (world.my_pe(), world.alloc_zeroed::<u8>(2).unwrap());
    for round in 1..=20 {
        if me == 0 {
            // Long enough for PE 1 to fall asleep. If it is too short, the test covers less.
            (0..1 << 18).for_each(|_| spin_once());
            word.p(1, 0, round).unwrap();
            let since = Instant::now();
            while word.local().get(1) != round {
                spin_once();
                assert!(since.elapsed() < Duration::from_secs(60), "PE 1 sleeps on");
            }
        } else {
            let woken = word.local().watch(0..1).wait_any(Eq, round);
            assert_eq!(woken, Some(0));
            word.p(0, 1, round).unwrap();
        }
    }
}

#[test]
fn a_plain_put_wakes_a_thread() {
    spmd(2, a_plain_put_wakes).unwrap();
}

#[test]
fn a_plain_put_wakes_a_process() {
    pelago::processes!(2, a_plain_put_wakes);
}

#[test]
fn not_a_number_differs_only() {
    let holds = |comparison: Comparison| comparison.holds(f64::NAN, f64::NAN);
    assert_eq!([Eq, Ne, Gt, Ge, Lt, Le].map(holds), [false, true, false, false, false, false]);
    assert_eq!([Eq, Ne, Gt, Ge, Lt, Le].map(|c| c.holds(-1, 2)), [false, true, false, false, true, true]);
}

#[test]
fn bad_input_is_named() {
    type Call = fn(&Local<'_, u32>);
    let calls: [(Call, &str); 9] = [
        (
            |l| assert_eq!(l.wait(4, Eq, 0), 0),
            "PE 0: wait of the elements 4..5 reaches beyond the local part, which has 4",
        ),
        (|l| assert!(l.test(usize::MAX, Eq, 0)), "PE 0: test of the elements"),
        (
            |l| {
                let _ = l.watch(2..5);
            },
            "PE 0: watch of the elements 2..5",
        ),
        #[expect(clippy::reversed_empty_ranges, reason = "it is to be refused")]
        (
            |l| {
                let _ = l.watch(3..2);
            },
            "PE 0: watch of the elements 3..2",
        ),
        (
            |l| {
                let _ = l.watch(1..4).excluding(&[true]);
            },
            "PE 0: excluding on the elements 1..4 has 1 entries of the mask, but needs 3, one an element",
        ),
        (
            |l| l.watch(1..4).wait_all(Eq, &[0, 0]),
            "PE 0: wait_all on the elements 1..4 has 2 values, but needs 3",
        ),
        (
            |l| assert!(l.watch(1..1).wait_any(Eq, &[0]).is_some()),
            "PE 0: wait_any on the elements 1..1 has 1 values",
        ),
        (
            |l| {
                let _ = l.watch(1..4).test_some(Eq, &[0; 4]);
            },
            "PE 0: test_some on the elements 1..4 has 4 values",
        ),
        (
            |l| {
                let _ = l.watch(1..4).starting_at(4);
            },
            "PE 0: starting_at element 4 of a watch of the elements 1..4",
        ),
    ];
    let body = |world: &World| {
        let words = world.alloc_zeroed::<u32>(4).unwrap();
        for (call, expected) in &calls {
            let outcome = catch_unwind(AssertUnwindSafe(|| call(&words.local())));
            let payload = outcome.expect_err(expected);
            let text = payload.downcast_ref::<String>().expect("a panic with words");
            assert!(text.starts_with(expected), "{text}");
        }
    };
    spmd(1, body).unwrap();
}

/// A number that counts how often it is compared.
#[derive(Clone, Copy, Debug, Element)]
#[repr(C)]
struct Watched(u32);

static COMPARED: AtomicU64 = AtomicU64::new(0);

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        COMPARED.fetch_add(1, Ordering::Relaxed);
        self.0 == other.0
    }
}

impl PartialOrd for Watched {
    fn partial_cmp(&self, other: &Watched) -> Option<std::cmp::Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

/// The last element of the set has the value for a time, long before the first one has.
#[test]
fn a_wait_for_all_of_a_set_looks_at_each_all_the_time() {
    let body = |world: &World| {
        let words = world.alloc::<Watched>(3).unwrap();
        words.local().write(0, &[Watched(0); 3]);
        let change = |index, value, comparisons: u64| {
            let before = COMPARED.load(Ordering::Relaxed);
            words.p(0, index, Watched(value)).unwrap();
            let since = Instant::now();
            while COMPARED.load(Ordering::Relaxed) < before + comparisons {
                assert!(since.elapsed() < Duration::from_secs(60), "waited for looks at the set");
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| words.local().watch(0..3).wait_all(Eq, Watched(1)));
            // A look compares at most three elements.
            [(2, 1), (1, 1), (2, 0), (1, 0)].iter().for_each(|&(index, value)| change(index, value, 6));
            change(0, 1, 0);
        });
    };
    spmd(1, body).unwrap();
}

#[test]
fn a_wait_for_a_set_ends_when_nobody_is_left_to_change_it() {
    let body = |world: &World| {
        let words = world.alloc_zeroed::<u32>(4).unwrap();
        if world.my_pe() == 0 {
            words.p(1, 1, 1).unwrap();
        } else {
            words.local().watch(1..3).wait_all(Eq, 1);
        }
    };
    let text = spmd(2, body).unwrap_err().to_string();
    assert!(
        text.starts_with("PE 1 panicked: PE 1: waits for") && text.contains("no other PE is left"),
        "{text}"
    );
}
