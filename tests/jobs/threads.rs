//! Several threads of each PE share its world: all one-sided operations at the same time, by any thread, and
//! a thread that waits does not block the others.

use crate::common;
use pelago::prelude::*;
use pelago::{AtomicOp, ContextKind, Strided};
use pelago_fabric::sync::{AtomicBool, Ordering};

everywhere! {
    puts_and_gets_of_all_threads(3): puts_and_gets_of_all_threads;
    atomics_of_all_threads(3): atomics_of_all_threads;
    a_thread_that_waits_blocks_nobody(2): a_thread_that_waits_blocks_nobody;
    threads_wait_for_words_of_their_own(2): threads_wait_for_words_of_their_own;
    a_context_each(2): a_context_each;
    one_context_of_all(2): one_context_of_all;
    quiets_at_once(2): quiets_at_once;
    scopes_and_handles_of_all_threads(2): scopes_and_handles_of_all_threads;
    collective_calls_beside_puts(3): collective_calls_beside_puts;
    threads_talk_to_their_own_pe(1): a_context_each;
    more_puts_than_are_taken_at_once(2): more_puts_than_are_taken_at_once;
    short_gets_beside_all_else(2): short_gets_beside_all_else;
}

/// One thread makes teams, while another one ends those whose last operation it has started.
#[test]
fn teams_end_while_others_are_made() {
    let outcome = spmd(2, |world| {
        let parent = world.team().split_strided(0, 1, 2).unwrap().unwrap();
        let (give, take) = std::sync::mpsc::sync_channel::<Team<'_>>(32);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for team in take {
                    drop(team.nonblocking().sync().unwrap());
                    drop(team);
                    world.progress();
                }
            });
            for _ in 0..3000 {
                give.send(parent.split_strided(0, 1, 2).unwrap().unwrap()).unwrap();
            }
            drop(give);
        });
        world.barrier();
    });
    outcome.unwrap();
}

/// Single elements of all sizes, more of them than a provider accepts at once, while another thread calls
/// quiet now and then: each is delivered.
fn more_puts_than_are_taken_at_once(world: &World) {
    const THREADS: usize = 3;
    let (me, n) = (world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    let each = common::rounds(world, 3000, 300) as usize;
    let bytes = world.alloc_zeroed::<u8>(THREADS * each).unwrap();
    let halves = world.alloc_zeroed::<u16>(THREADS * each).unwrap();
    let words = world.alloc_zeroed::<f32>(THREADS * each).unwrap();
    let numbers = world.alloc_zeroed::<u64>(THREADS * each).unwrap();
    let value = |from: usize, i: usize| 1 + from + 7 * i;
    let put = |i: usize| {
        let value = value(me, i);
        bytes.p(right, i, value as u8).unwrap();
        halves.p(right, i, value as u16).unwrap();
        words.p(right, i, value as f32).unwrap();
        numbers.p(right, i, value as u64).unwrap();
    };
    std::thread::scope(|scope| {
        for thread in 1..THREADS {
            let put = &put;
            scope.spawn(move || (thread * each..(thread + 1) * each).for_each(put));
        }
        for i in 0..each {
            put(i);
            if i % 50 == 49 {
                world.quiet();
            }
        }
    });
    world.barrier();
    for i in 0..THREADS * each {
        let value = value(left, i);
        let arrived = (bytes.local().get(i), halves.local().get(i), words.local().get(i));
        assert_eq!(arrived, (value as u8, value as u16, value as f32));
        assert_eq!(numbers.local().get(i), value as u64);
    }
    world.barrier();
}

/// One thread makes single gets, now and then after a quiet; the others start operations that may complete
/// before such a get. No get returns before its data are delivered.
fn short_gets_beside_all_else(world: &World) {
    let (me, rounds) = (world.my_pe(), common::rounds(world, 2000, 40));
    let other = 1 - me;
    let numbers = world.alloc_zeroed::<u64>(600).unwrap();
    let busy = world.alloc_zeroed::<u64>(600).unwrap();
    numbers.local().write(0, &(1..=600).collect::<Vec<_>>());
    world.barrier();
    let get = |round: u64| {
        let at = round as usize % 500;
        let mut back = [0; 100];
        for count in [1, 2, 100] {
            back.fill(0);
            numbers.get(other, at, &mut back[..count]).unwrap();
            let expected = at as u64 + 1..=(at + count) as u64;
            assert!(back[..count].iter().copied().eq(expected), "round {round}: {:?}", &back[..count]);
        }
        assert_eq!(numbers.g(other, at).unwrap(), at as u64 + 1, "round {round}");
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut much = [0; 600];
            while !is_over.load(Ordering::Relaxed) {
                world.scope(|scope| scope.get(&numbers, other, 0, &mut much)).unwrap();
                busy.put(other, 0, &much[..599]).unwrap();
                // A fetching atomic whose result is not used.
                busy.amo(other, 0, AtomicOp::Fetch, 0).unwrap();
                world.quiet();
            }
        });
        scope.spawn(|| (0..rounds).for_each(get));
        for round in 0..rounds {
            get(round);
            busy.p(other, 599, round).unwrap();
            world.quiet();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(busy.g(other, 599).unwrap(), rounds - 1);
    // Alone again.
    (0..rounds).for_each(get);
    world.barrier();
}

/// The number of threads of a PE; few if the calls of all threads are serialized.
fn threads(world: &World) -> usize {
    if world.is_simulated() { 2 } else { 4 }
}

/// Runs a body on all threads of this PE, and gives it the thread's number.
fn on_all_threads(world: &World, body: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        let body = &body;
        for thread in 0..threads(world) {
            scope.spawn(move || body(thread));
        }
    });
}

/// Every thread has a row on every PE, writes it, and reads it back, by all forms of puts and gets.
fn puts_and_gets_of_all_threads(world: &World) {
    let (me, n, t) = (world.my_pe(), world.n_pes(), threads(world));
    let rows = n * t;
    let array = world.alloc_zeroed::<u64>(rows * 40).unwrap();
    on_all_threads(world, |thread| {
        let row = (me * t + thread) * 40;
        for round in 0..common::rounds(world, 200, 3) {
            for pe in 0..n {
                let value = |i: u64| round * 1000 + (row + pe) as u64 + i;
                let source: Vec<u64> = (0..30).map(value).collect();
                array.p(pe, row, source[0]).unwrap();
                array.put(pe, row + 1, &source[1..10]).unwrap();
                array.on(pe).unwrap().put(row + 10, &source[10..20]).unwrap();
                let every_other = Strided { array_stride: 2, ..Strided::elements(10) };
                array.put_strided(pe, row + 20, &source[20..], &every_other).unwrap();
                world.quiet();
                let mut back = [0; 40];
                array.get(pe, row, &mut back).unwrap();
                assert_eq!(back[..20], source[..20]);
                let mut odd = [0; 10];
                array.get_strided(pe, row + 20, &mut odd, &every_other).unwrap();
                assert_eq!(odd, source[20..]);
                assert_eq!(array.g(pe, row + 3).unwrap(), source[3]);
            }
        }
    });
    world.barrier();
}

fn atomics_of_all_threads(world: &World) {
    let (n, t) = (world.n_pes(), threads(world));
    let rounds = common::rounds(world, 300, 3) as usize;
    let sums = world.alloc_zeroed::<u32>(1).unwrap();
    let ticket = world.alloc_zeroed::<u64>(1).unwrap();
    let taken = world.alloc_zeroed::<u64>(3 * n * t * rounds).unwrap();
    on_all_threads(world, |_| {
        for _ in 0..rounds {
            (0..n).for_each(|pe| sums.add(pe, 0, 3).unwrap());
            let first = ticket.fetch_inc(0, 0).unwrap();
            let second = ticket.fetch_amo_nb(0, 0, AtomicOp::Add, 1).unwrap().wait();
            let mut third = 0;
            world.scope(|scope| scope.fetch_amo(&ticket, 0, 0, AtomicOp::Add, 1, &mut third)).unwrap();
            assert!(first < second && second < third);
            for ticket in [first, second, third] {
                taken.inc(0, ticket as usize).unwrap();
            }
        }
    });
    world.barrier();
    assert_eq!(sums.local().get(0), (3 * n * t * rounds) as u32);
    assert!(world.my_pe() != 0 || taken.local().to_vec().iter().all(|&times| times == 1));
    world.barrier();
}

/// One thread waits for a word that is written only after all the work of the others.
fn a_thread_that_waits_blocks_nobody(world: &World) {
    let other = 1 - world.my_pe();
    let flag = world.alloc_zeroed::<u64>(1).unwrap();
    let work = world.alloc_zeroed::<u64>(100).unwrap();
    let rounds = common::rounds(world, 200, 3);
    on_all_threads(world, |thread| {
        if thread == 0 {
            flag.local().wait_until(0, |value| value == threads(world) as u64 - 1);
            return;
        }
        for round in 0..rounds {
            let context = world.context(ContextKind::Private).unwrap();
            work.via(&context).put(other, 10 * thread, &[round; 9]).unwrap();
            context.quiet();
            work.add(other, 10 * thread + 9, 1).unwrap();
            world.quiet();
            let mut back = [0; 10];
            work.get(other, 10 * thread, &mut back).unwrap();
            assert_eq!(back, [[round; 9].as_slice(), &[round + 1]].concat()[..]);
        }
        flag.inc(other, 0).unwrap();
    });
    world.barrier();
}

/// All threads of PE 0 wait, each for its own word, and are notified by a thread of PE 1, in turn.
fn threads_wait_for_words_of_their_own(world: &World) {
    let t = threads(world);
    let flags = world.alloc_zeroed::<u64>(t).unwrap();
    let answers = world.alloc_zeroed::<u64>(t).unwrap();
    let rounds = common::rounds(world, 100, 3);
    let other = 1 - world.my_pe();
    if world.my_pe() == 0 {
        on_all_threads(world, |thread| {
            for round in 1..=rounds {
                assert_eq!(flags.local().wait_until(thread, |value| value >= round), round);
                answers.p(other, thread, round).unwrap();
                world.fence();
            }
        });
    } else {
        for round in 1..=rounds {
            for thread in (0..t).rev() {
                match round % 3 {
                    0 => flags.inc(other, thread).unwrap(),
                    1 => flags.p(other, thread, round).unwrap(),
                    _ => flags.atomic_set(other, thread, round).unwrap(),
                }
                world.quiet();
                answers.local().wait_until(thread, |value| value == round);
            }
        }
    }
    world.barrier();
}

fn a_context_each(world: &World) {
    let (n, t) = (world.n_pes(), threads(world));
    let right = (world.my_pe() + 1) % n;
    let array = world.alloc_zeroed::<u32>(t * 50).unwrap();
    on_all_threads(world, |thread| {
        for round in 1..=common::rounds(world, 200, 3) as u32 {
            let context = world.context(ContextKind::Private).unwrap();
            let through = array.via(&context);
            through.put(right, thread * 50, &[round; 49]).unwrap();
            context.fence();
            through.inc(right, thread * 50 + 49).unwrap();
            context.quiet();
            let mut back = [0; 50];
            through.get(right, thread * 50, &mut back).unwrap();
            assert_eq!((back[0], back[48], back[49]), (round, round, round));
        }
    });
    world.barrier();
}

fn one_context_of_all(world: &World) {
    let (n, t) = (world.n_pes(), threads(world));
    let right = (world.my_pe() + 1) % n;
    let array = world.alloc_zeroed::<u64>(t * 50).unwrap();
    let context = world.context(ContextKind::Shared).unwrap();
    let through = array.via(&context);
    on_all_threads(world, |thread| {
        for round in 1..=common::rounds(world, 200, 3) {
            through.put(right, thread * 50, &[round; 50]).unwrap();
            context.quiet();
            assert_eq!(through.g(right, thread * 50 + 49).unwrap(), round);
        }
    });
    drop(context);
    world.barrier();
}

/// Threads put and call quiet at the same time: after its own quiet each finds its own data.
fn quiets_at_once(world: &World) {
    let t = threads(world);
    let other = 1 - world.my_pe();
    let array = world.alloc_zeroed::<u64>(t).unwrap();
    on_all_threads(world, |thread| {
        for round in 1..=common::rounds(world, 1000, 5) {
            array.p(other, thread, round).unwrap();
            if round % 2 == 0 {
                world.quiet()
            } else {
                world.fence()
            }
            assert_eq!(array.g(other, thread).unwrap(), round);
        }
    });
    world.barrier();
}

fn scopes_and_handles_of_all_threads(world: &World) {
    let t = threads(world);
    let other = 1 - world.my_pe();
    let array = world.alloc_zeroed::<u64>(t * 30).unwrap();
    on_all_threads(world, |thread| {
        for round in 1..=common::rounds(world, 100, 3) {
            let source = [round; 20];
            let put = array.put_nb(other, thread * 30 + 20, vec![round; 10]).unwrap();
            world.scope(|scope| {
                let region = scope.region();
                region.put(&array, other, thread * 30, &source[..10]).unwrap();
                scope.put(&array, other, thread * 30 + 10, &source[10..]).unwrap();
                region.wait();
            });
            while !put.test() {
                world.progress();
            }
            assert_eq!(put.wait(), [round; 10]);
            let get = array.get_nb(other, thread * 30, vec![0; 30]).unwrap();
            assert_eq!(get.wait(), [round; 30]);
        }
    });
    world.barrier();
}

/// One thread of each PE makes collective calls while the others put, get and count.
fn collective_calls_beside_puts(world: &World) {
    let (me, n, t) = (world.my_pe(), world.n_pes(), threads(world));
    let array = world.alloc_zeroed::<u64>(n * t).unwrap();
    let rounds = common::rounds(world, 60, 3);
    on_all_threads(world, |thread| {
        if thread == 0 {
            for round in 0..rounds {
                let mut own = world.alloc_zeroed::<u64>(n).unwrap();
                (0..n).for_each(|pe| own.p(pe, me, round + 1).unwrap());
                let sum = own.exclusive(|part| part.iter().sum::<u64>()).unwrap();
                assert_eq!(sum, n as u64 * (round + 1));
                world.barrier();
                own.free().unwrap();
            }
            return;
        }
        for round in 1..=rounds * 5 {
            for pe in 0..n {
                array.fetch_inc(pe, me * t + thread).unwrap();
                assert_eq!(array.g(pe, me * t + thread).unwrap(), round);
            }
        }
    });
    world.barrier();
}
