//! Batches, queries and remote procedures: on every route, each exactly once, in the guaranteed order; and
//! the messages of mistakes.

use crate::common;
use pelago::am::{Am, Batch, HandlerLock, Handlers};
use pelago::prelude::*;
use pelago::sync::{AtomicU64, Ordering::Relaxed};
use pelago::{ErrorKind, Result};

everywhere! {
    batches(4): records_arrive_once_and_in_order;
    queries(3): each_record_is_answered;
    barrier(4): a_barrier_ends_what_was_sent_before;
    calls(4): calls_bring_their_results;
    casts(3): casts_bring_nothing_back;
    dropped(2): results_that_nobody_wants_are_thrown_away;
    subset(5): members_of_a_team_call_each_other_by_rank;
    threads_of_each_pe(2): threads_call_at_the_same_time;
    between_gets(2): who_gets_again_and_again_answers;
    alone(1): calls_bring_their_results;
    alone_in_batches(1): records_arrive_once_and_in_order;
}

/// A record with its source, its destination and its number.
#[derive(Clone, Copy, Debug, Element)]
#[repr(C)]
struct Record {
    from: u32,
    to: u32,
    number: u64,
}

/// The order of destinations that a PE pushes to.
fn destination(me: usize, number: u64, n: usize) -> usize {
    (me as u64 + number * number + number / 7) as usize % n
}

fn records_arrive_once_and_in_order(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let each = common::rounds(world, 20_000, 700);
    // The last number from each PE, and the number of records.
    let seen = HandlerLock::new(vec![(None, 0u64); n]);
    let mut handlers = Handlers::new();
    let take = handlers.add_batch("take", |from, records: &[Record]| {
        assert!(!records.is_empty());
        let mut seen = seen.lock();
        for record in records {
            assert_eq!((record.from as usize, record.to as usize), (from, me));
            let (last, count) = &mut seen[from];
            assert!(last.is_none_or(|last| last < record.number), "{record:?} after {last:?}");
            (*last, *count) = (Some(record.number), *count + 1);
        }
    });
    let outcome = world.team().serve(handlers, |am| {
        let mut records = am.aggregator(take);
        for number in 0..each {
            let to = destination(me, number, n);
            records.push(to, Record { from: me as u32, to: to as u32, number })?;
        }
        records.flush_to(0)?;
        records.flush()?;
        assert_eq!(records.waiting(), 0);
        // The remaining records are sent when it is dropped.
        records.push(me, Record { from: me as u32, to: me as u32, number: each })
    });
    outcome.unwrap().unwrap();
    let expected = |from: usize| (0..each).filter(|&i| destination(from, i, n) == me).count() as u64;
    let counts: Vec<u64> = seen.lock().iter().map(|&(_, count)| count).collect();
    let wanted: Vec<u64> = (0..n).map(|from| expected(from) + u64::from(from == me)).collect();
    assert_eq!(counts, wanted);
    // Again with few records in a message.
    for most in [1, 7] {
        let sum = AtomicU64::new(0);
        let mut handlers = Handlers::new();
        let add = handlers.add_batch("add", |_, numbers: &[u64]| {
            assert!(numbers.len() <= most);
            sum.fetch_add(numbers.iter().sum(), Relaxed);
        });
        let outcome = world.team().serve(handlers, |am| {
            let mut numbers = am.aggregator_of(add, most)?;
            (0..50).try_for_each(|i| numbers.push((me + i as usize) % n, i))
        });
        outcome.unwrap().unwrap();
        let expected: u64 =
            (0..n).map(|pe| (0..50).filter(|i| (pe + *i as usize) % n == me).sum::<u64>()).sum();
        assert_eq!(sum.into_inner(), expected);
    }
}

fn each_record_is_answered(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let each = common::rounds(world, 5000, 300);
    let found = HandlerLock::new(vec![0u64; each as usize]);
    let mut handlers = Handlers::new();
    // The reply is longer than the request.
    let ask = handlers.add_query(
        "ask",
        |from, number: u32| [u64::from(number), (me * 1000 + from) as u64, u64::from(number).pow(2)],
        |from, answers: &[[u64; 3]]| {
            let mut found = found.lock();
            for &[number, who, square] in answers {
                assert_eq!((who, square), ((from * 1000 + me) as u64, number * number));
                found[number as usize] += 1;
            }
        },
    );
    let outcome = world.team().serve(handlers, |am| {
        let mut questions = am.aggregator(ask);
        (0..each as u32).try_for_each(|i| questions.push(i as usize % n, i))
    });
    outcome.unwrap().unwrap();
    assert_eq!(found.into_inner(), vec![1; each as usize]);
}

fn a_barrier_ends_what_was_sent_before(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes() as u64);
    let (there, back) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut handlers = Handlers::new();
    let ask = handlers.add_query(
        "ask",
        |_, add: u64| there.fetch_add(add, Relaxed),
        |_, answers: &[u64]| {
            back.fetch_add(answers.len() as u64, Relaxed);
        },
    );
    let outcome = world.team().serve(handlers, |am| {
        let mut questions = am.aggregator(ask);
        for round in 1..=common::rounds(world, 30, 3) {
            for to in 0..n as usize {
                (0..10).try_for_each(|_| questions.push((me + to) % n as usize, round))?;
            }
            questions.flush()?;
            am.barrier()?;
            let sum: u64 = (1..=round).sum();
            assert_eq!((there.load(Relaxed), back.load(Relaxed)), (10 * n * sum, 10 * n * round));
            // No PE begins the next round before all have checked.
            am.barrier()?;
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
}

fn calls_bring_their_results(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let called = AtomicU64::new(0);
    let mut handlers = Handlers::new();
    let place = handlers.add_procedure("place", |from, _: ()| (from as u64, me as u64));
    let reverse = handlers.add_procedure("reverse", |_, text: String| text.chars().rev().collect::<String>());
    let sums = handlers.add_procedure("sums", |_, (numbers, start): (Vec<u32>, u32)| {
        called.fetch_add(1, Relaxed);
        numbers
            .iter()
            .scan(start, |sum, x| {
                *sum += x;
                Some(*sum)
            })
            .collect::<Vec<u32>>()
    });
    let is_even = handlers.add_procedure("is even", |_, x: u8| x.is_multiple_of(2));
    let outcome = world.team().serve(handlers, |am| {
        for round in 0..common::rounds(world, 200, 4) as u32 {
            for to in 0..n {
                assert_eq!(am.call(to, place, &())?.wait(), (me as u64, to as u64));
                assert_eq!(
                    am.call(to, reverse, &format!("{me} è {round}"))?.wait().len(),
                    format!("{me}{round}").len() + 4
                );
                assert_eq!(am.call(to, is_even, &(round as u8))?.wait(), round % 2 == 0);
            }
            // Many are outstanding at the same time, and are waited for in another order.
            let replies: Vec<_> =
                (0..n).map(|to| am.call(to, sums, &(vec![round, 1, 2], me as u32))).collect::<Result<_>>()?;
            for reply in replies.into_iter().rev() {
                let first = me as u32 + round;
                assert_eq!(reply.wait(), [first, first + 1, first + 3]);
            }
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
    assert_eq!(called.into_inner(), n as u64 * common::rounds(world, 200, 4));
}

fn casts_bring_nothing_back(world: &World) {
    let n = world.n_pes();
    let rounds = common::rounds(world, 500, 20);
    let sum = AtomicU64::new(0);
    let mut handlers = Handlers::new();
    let add = handlers.add_procedure("add", |_, x: u64| sum.fetch_add(x, Relaxed));
    let outcome = world
        .team()
        .serve(handlers, |am| (0..rounds).try_for_each(|i| (0..n).try_for_each(|to| am.cast(to, add, &i))));
    outcome.unwrap().unwrap();
    assert_eq!(sum.into_inner(), n as u64 * (0..rounds).sum::<u64>());
}

fn results_that_nobody_wants_are_thrown_away(world: &World) {
    let other = 1 - world.my_pe();
    let mut handlers = Handlers::new();
    let same = handlers.add_procedure("same", |_, x: u64| x);
    let outcome = world.team().serve(handlers, |am| {
        for round in 0..common::rounds(world, 300, 10) {
            drop(am.call(other, same, &(round + 1000))?);
            let kept = am.call(other, same, &round)?;
            drop(am.call(other, same, &(round + 2000))?);
            assert_eq!(kept.wait(), round);
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
}

fn members_of_a_team_call_each_other_by_rank(world: &World) {
    let team = world.team().split_by(Some(world.my_pe() as u64 % 2), 0).unwrap().unwrap();
    let me = team.my_rank();
    let mut handlers = Handlers::new();
    let who = handlers.add_procedure("who", |from, _: ()| [from as u64, world.my_pe() as u64]);
    let outcome = team.serve(handlers, |am| {
        for to in 0..am.n_pes() {
            let pe = 2 * to as u64 + world.my_pe() as u64 % 2;
            assert_eq!(am.call(to, who, &())?.wait(), [me as u64, pe]);
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
}

fn threads_call_at_the_same_time(world: &World) {
    let other = 1 - world.my_pe();
    let rounds = common::rounds(world, 200, 5);
    let mut handlers = Handlers::new();
    let double = handlers.add_procedure("double", |_, x: u64| 2 * x);
    let outcome = world.team().serve(handlers, |am| {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for i in 0..rounds {
                        let x = 1000 * thread + i;
                        assert_eq!(am.call(other, double, &x).unwrap().wait(), 2 * x);
                    }
                });
            }
        });
    });
    outcome.unwrap();
}

#[test]
fn what_cannot_be_is_refused() {
    spmd(2, |world| {
        let mut handlers = Handlers::new();
        let take = handlers.add_batch("take", |_, _: &[u64]| ());
        let length = handlers.add_procedure("length", |_, bytes: Vec<u8>| bytes.len() as u64);
        world.team().serve(handlers, |am| -> Result<()> {
            let is_far = |error: pelago::Error| matches!(error.kind(), ErrorKind::PeOutOfRange { pe: 2, .. });
            let mut records = am.aggregator(take);
            assert!(is_far(records.push(2, 1).unwrap_err()));
            assert!(is_far(records.flush_to(2).unwrap_err()));
            assert_eq!(records.waiting(), 0);
            let none = am.aggregator_of(take, 0).err().unwrap();
            assert!(matches!(none.kind(), ErrorKind::EmptyBatch { .. }), "{none}");
            assert!(is_far(am.call(2, length, &vec![]).err().unwrap()));
            assert!(is_far(am.cast(2, length, &vec![]).err().unwrap()));
            let longest = am.medium_max();
            assert_eq!(am.call(1, length, &vec![1; longest])?.wait(), longest as u64);
            let error = am.call(1, length, &vec![1; longest + 1]).err().unwrap();
            assert!(matches!(error.kind(), ErrorKind::MessageTooLong { .. }), "{error}");
            Ok(())
        })
    })
    .unwrap()
    .into_iter()
    .for_each(|outcome| outcome.unwrap().unwrap());
}

/// The message of a job of two PEs that ends because of an operation of PE 0 at PE 1.
fn panic_message(work: impl Fn(&Am<'_>, &Handles) -> Result<()> + Sync) -> String {
    let outcome = spmd(2, |world| {
        let mut handlers = Handlers::new();
        let handles = Handles {
            numbers: handlers.add_batch("numbers", |_, _: &[u64]| ()),
            number: handlers.add_procedure("number", |_, _: u64| ()),
            too_long: handlers.add_procedure("too long", |_, bytes: u64| vec![0u8; bytes as usize]),
            wrong: handlers.add_procedure("wrong", |_, (): ()| panic!("on purpose")),
        };
        let _ = world.team().serve(handlers, |am| match world.my_pe() {
            0 => work(am, &handles),
            _ => Ok(()),
        });
    });
    outcome.unwrap_err().to_string()
}

struct Handles {
    numbers: Batch<u64>,
    number: pelago::am::Procedure<u64, ()>,
    too_long: pelago::am::Procedure<u64, Vec<u8>>,
    wrong: pelago::am::Procedure<(), ()>,
}

#[test]
fn mistakes_are_told_in_words() {
    let words = panic_message(|am, _| am.medium(1, pelago::am::Handler(0), &[], &[0; 12]));
    assert!(
        words.contains("message of PE 0 for \"numbers\" has 12 bytes, of which no records of 8"),
        "{words}"
    );
    let words = panic_message(|am, _| am.medium(1, pelago::am::Handler(1), &[], &[0; 7]));
    assert!(words.contains("for \"number\" brings 7 bytes, which are no argument of it"), "{words}");
    let words = panic_message(|am, handles| am.cast(1, handles.wrong, &()));
    assert!(words.contains("handler \"wrong\" of active messages, for one of PE 0, has panicked"), "{words}");
    assert!(words.contains("on purpose"), "{words}");
    let words = panic_message(|am, handles| {
        let most = am.medium_max() as u64;
        assert_eq!(am.call(1, handles.too_long, &most)?.wait().len() as u64, most);
        am.call(1, handles.too_long, &(most + 1)).map(|_| ())
    });
    assert!(words.contains("for \"too long\" has a result that cannot be sent"), "{words}");
    let words = panic_message(|am, handles| {
        let mut numbers = am.aggregator(handles.numbers);
        am.cast(1, handles.number, &0)?;
        numbers.push(1, 1)?;
        am.barrier()
    });
    assert!(words.contains("barrier of active messages") && words.contains("the end of serve"), "{words}");
}

/// PE 0 only gets a word of PE 1 until PE 1 has its replies, which PE 0's processor must send.
fn who_gets_again_and_again_answers(world: &World) {
    let (me, rounds) = (world.my_pe(), common::rounds(world, 50, 5));
    let done = world.alloc_zeroed::<u64>(1).unwrap();
    // A get of mapped memory is a load, and makes no progress.
    let is_load = !world.fabric().is_some_and(|fabric| fabric.starts_with("ofi")) || done.ptr(1).is_some();
    let mut handlers = Handlers::new();
    let same = handlers.add_procedure("same", |_, x: u64| x);
    let outcome = world.team().serve(handlers, |am| {
        for round in 1..=rounds {
            if me == 1 {
                assert_eq!(am.call(0, same, &round)?.wait(), round);
                done.p(1, 0, round)?;
                world.quiet();
            } else {
                // From here on no operation is outstanding, so gets may be injected.
                world.quiet();
                while done.g(1, 0)? < round {
                    if is_load {
                        world.progress();
                    }
                }
            }
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
}
