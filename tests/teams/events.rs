//! Events of every kind, alone and together, waited for, tested and awaited; progress while the computing
//! thread makes no calls.

use crate::common;
use pelago::am::Handlers;
use pelago::event::{self, Event, Outcome, when_all};
use pelago::prelude::*;
use pelago::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use pelago::{AtomicOp, Result};
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

everywhere! {
    lists(3): lists_of_events_are_waited_for;
    any(3): some_of_many_are_found;
    leaves(2): sources_are_free_before_the_end;
    futures(3): everything_is_a_future;
    executors(2): any_executor_will_do;
    wakers(2): futures_are_woken_where_a_thread_drives;
    background(2): a_progress_thread_serves_others;
    thread_between(3): collectives_move_while_nobody_calls;
    alone(1): lists_of_events_are_waited_for;
}

fn lists_of_events_are_waited_for(world: &World) {
    let (me, n, team) = (world.my_pe(), world.n_pes(), world.team());
    let (inbox, counts) = (world.alloc_zeroed::<u64>(2 * n).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    let (all, mine) = (world.alloc_zeroed::<u64>(n).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    mine.local().set(0, me as u64 + 1);
    world.barrier();
    for round in 1..=common::rounds(world, 50, 4) {
        let right = (me + 1) % n;
        let put = inbox.put_nb(right, 2 * me, vec![round, 7]).unwrap();
        let get = mine.get_nb(right, 0, vec![0]).unwrap();
        let fetch = counts.fetch_amo_nb(0, 0, AtomicOp::Add, 1).unwrap();
        let gathering = team.nonblocking().all_gather(&all, &mine).unwrap();
        let events: [&dyn Event; 4] = [&put, &get, &fetch, &gathering];
        event::wait_all(&events);
        assert!(event::test_all(&events) && events.iter().all(|event| event.test()));
        assert_eq!(event::test_some(&events), [0, 1, 2, 3]);
        assert_eq!(event::wait_some(&events), [0, 1, 2, 3]);
        assert_eq!((event::test_any(&events), event::wait_any(&events)), (Some(0), Some(0)));
        assert_eq!((put.wait(), get.wait()), (vec![round, 7], vec![right as u64 + 1]));
        assert!(fetch.wait() < n as u64 * round);
        assert_eq!(all.local().to_vec(), (1..=n as u64).collect::<Vec<_>>());
        world.barrier();
        let left = (me + n - 1) % n;
        assert_eq!((inbox.local().get(2 * left), inbox.local().get(2 * left + 1)), (round, 7));
        world.barrier();
    }
    assert!(event::test_all(&[]));
    event::wait_all(&[]);
    assert_eq!((event::wait_any(&[]), event::test_any(&[])), (None, None));
    assert_eq!((event::wait_some(&[]), event::test_some(&[])), (vec![], vec![]));
}

/// Replies that arrive one after the other are found as they arrive.
fn some_of_many_are_found(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let mut handlers = Handlers::new();
    let same = handlers.add_procedure("same", |_, x: u64| x);
    let outcome = world.team().serve(handlers, |am| -> Result<()> {
        for _ in 0..common::rounds(world, 30, 3) {
            let calls: Result<Vec<_>> =
                (0..3 * n).map(|i| am.call((me + i) % n, same, &(i as u64))).collect();
            let mut open: Vec<_> = calls?.into_iter().enumerate().collect();
            let mut found = Vec::new();
            while !open.is_empty() {
                let events: Vec<&dyn Event> = open.iter().map(|(_, reply)| reply as _).collect();
                let come = event::wait_some(&events);
                assert!(!come.is_empty());
                for place in come.into_iter().rev() {
                    let (i, reply) = open.remove(place);
                    assert_eq!(reply.wait(), i as u64);
                    found.push(i);
                }
                let events: Vec<&dyn Event> = open.iter().map(|(_, reply)| reply as _).collect();
                if let Some(place) = event::wait_any(&events) {
                    assert!(open[place].1.test());
                }
            }
            found.sort_unstable();
            assert_eq!(found, (0..3 * n).collect::<Vec<_>>());
        }
        Ok(())
    });
    outcome.unwrap().unwrap();
}

fn sources_are_free_before_the_end(world: &World) {
    let (other, inbox) = (1 - world.my_pe(), world.alloc_zeroed::<u32>(400).unwrap());
    for round in 0..common::rounds(world, 30, 5) as u32 {
        let put = inbox.put_nb(other, 0, vec![round; 100]).unwrap();
        put.sent().wait();
        assert!(put.sent().test());
        let get = inbox.get_nb(other, 100, vec![1; 10]).unwrap();
        event::wait_any(&[&get.sent()]).unwrap();
        assert!(get.test(), "of a get, both are the same");
        let sources = [[round; 50], [round + 1; 50]];
        world.scope(|scope| {
            let region = scope.region();
            for (i, source) in sources.iter().enumerate() {
                region.put(&inbox, other, 200 + 50 * i, source).unwrap();
            }
            let sent = region.sent();
            when_all([&sent as &dyn Event, &put]).wait();
            event::wait_all(&[&region]);
            assert!(region.test());
        });
        world.barrier();
        let expected = [vec![round; 100], vec![0; 100], vec![round; 50], vec![round + 1; 50]].concat();
        assert_eq!(inbox.local().to_vec()[..300], expected);
        world.barrier();
    }
}

fn everything_is_a_future(world: &World) {
    let (me, n, team) = (world.my_pe(), world.n_pes(), world.team());
    let numbers = world.alloc_zeroed::<u64>(n).unwrap();
    let (all, sums) = (world.alloc_zeroed::<u64>(n).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    let mut handlers = Handlers::new();
    let square = handlers.add_procedure("square", |_, x: u64| x * x);
    let outcome = world.team().serve(handlers, |am| {
        world.block_on(async {
            for round in 1..=common::rounds(world, 30, 3) {
                let right = (me + 1) % n;
                let source = numbers.put_nb(right, me, vec![round])?.await;
                assert_eq!(source, [round]);
                let put = numbers.put_nb(right, me, vec![round * 2])?;
                put.sent().await;
                put.await;
                let old = sums.fetch_amo_nb(0, 0, AtomicOp::Add, 1)?.await;
                assert!(old < n as u64 * round);
                let gathered = team.nonblocking().all_gather(&all, &sums)?;
                let replies: Vec<_> = (0..n).map(|to| am.call(to, square, &round)).collect::<Result<_>>()?;
                when_all(replies.iter().map(|reply| reply as _)).await;
                for reply in replies {
                    assert!(reply.test());
                    assert_eq!(reply.await, round * round);
                }
                gathered.await;
                assert_eq!(numbers.get_nb(right, me, vec![0])?.await, [round * 2]);
            }
            Ok::<(), pelago::Error>(())
        })
    });
    outcome.unwrap().unwrap();
}

/// An executor that knows nothing of the runtime: it polls when it was woken, and counts the polls.
struct Parking {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Parking {
    fn wake(self: Arc<Parking>) {
        self.is_woken.store(true, Relaxed);
        self.thread.unpark();
    }
}

/// Runs the future to its end, and returns how often it was polled.
fn run_parking<F: Future>(future: F) -> (F::Output, usize) {
    let parking = Arc::new(Parking { thread: std::thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&parking));
    let (mut future, since) = (pin!(future), Instant::now());
    for polls in 1.. {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, polls);
        }
        while !parking.is_woken.swap(false, Relaxed) {
            std::thread::park_timeout(Duration::from_secs(1));
            assert!(since.elapsed() < Duration::from_secs(60), "nobody has woken the future for a minute");
        }
    }
    unreachable!("a future is polled fewer times")
}

fn any_executor_will_do(world: &World) {
    let (other, gate) = (1 - world.my_pe(), AtomicU64::new(0));
    let mut handlers = Handlers::new();
    let pass = handlers.add_procedure("pass", |_, x: u64| gate.fetch_add(x, Relaxed));
    let outcome = world.team().serve(handlers, |am| {
        for round in 0..common::rounds(world, 100, 5) {
            let (old, _) = run_parking(am.call(other, pass, &1)?.into_future());
            assert_eq!(old, round);
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
}

fn futures_are_woken_where_a_thread_drives(world: &World) {
    let other = 1 - world.my_pe();
    let mut handlers = Handlers::new();
    let same = handlers.add_procedure("same", |_, x: u64| x);
    let outcome = world.team().serve(handlers, |am| {
        world.with_progress_thread(|| {
            for round in 0..common::rounds(world, 50, 3) {
                let both = async {
                    let (first, second) = (am.call(other, same, &round)?, am.call(other, same, &1)?);
                    Ok::<u64, pelago::Error>(second.await + first.await)
                };
                let (sum, polls) = run_parking(both);
                assert_eq!(sum?, round + 1);
                // Once to begin, and once for each that it was woken for: it does not poll by itself.
                assert!(polls <= 3, "{polls} polls");
            }
            Ok::<(), pelago::Error>(())
        })
    });
    outcome.unwrap().unwrap();
}

/// Waits without a call of the runtime.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        std::thread::yield_now();
        assert!(since.elapsed() < Duration::from_secs(60), "waited a minute for {what}");
    }
}

fn a_progress_thread_serves_others(world: &World) {
    let other = 1 - world.my_pe();
    let (served, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut handlers = Handlers::new();
    let ask = handlers.add_query(
        "ask",
        |_, x: u64| {
            served.fetch_add(1, Relaxed);
            x
        },
        |_, answers: &[u64]| {
            answered.fetch_add(answers.len(), Relaxed);
        },
    );
    let rounds = common::rounds(world, 20, 2) as usize;
    let outcome = world.team().serve(handlers, |am| {
        world.with_progress_thread(|| {
            for round in 1..=rounds {
                let mut questions = am.aggregator(ask);
                questions.push(other, 5)?;
                questions.flush()?;
                // Nothing here calls the runtime: the other thread runs the handlers.
                until("the answer", || answered.load(Relaxed) == round);
                until("the question", || served.load(Relaxed) >= round);
            }
            Ok::<(), pelago::Error>(())
        })
    });
    outcome.unwrap().unwrap();
    assert_eq!(served.into_inner(), rounds);
}

fn collectives_move_while_nobody_calls(world: &World) {
    let (team, n) = (world.team(), world.n_pes());
    let (all, mine) = (world.alloc_zeroed::<u64>(n).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    mine.local().set(0, world.my_pe() as u64);
    world.with_progress_thread(|| {
        let gathering = team.nonblocking().all_gather(&all, &mine).unwrap();
        until("everybody's number", || (0..n).all(|pe| pe == 0 || all.local().get(pe) == pe as u64));
        gathering.wait();
    });
}

/// A future that is dropped before its event has occurred leaves no state behind.
#[test]
fn dropped_futures_are_forgotten() {
    let woken = spmd(2, |world| {
        let other = 1 - world.my_pe();
        let mut handlers = Handlers::new();
        let same = handlers.add_procedure("same", |_, x: u64| x);
        world.team().serve(handlers, |am| {
            let count = Arc::new(CountWakes(AtomicUsize::new(0)));
            let waker = Waker::from(Arc::clone(&count));
            world.block_on(async {
                let mut call = am.call(other, same, &1).unwrap().into_future();
                let _ = Pin::new(&mut call).poll(&mut Context::from_waker(&waker));
                drop(call);
                am.call(other, same, &2).unwrap().await
            });
            am.barrier().unwrap();
            // The registry holds none any more: this waker is the only one left, besides the test's own.
            drop(waker);
            (Arc::strong_count(&count), count.0.load(Relaxed))
        })
    });
    for outcome in woken.unwrap() {
        let (holders, wakes) = outcome.unwrap();
        assert_eq!(holders, 1);
        assert!(wakes <= 1);
    }
}

struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: Arc<CountWakes>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn who_can_come_no_more_is_named() {
    let outcome = spmd(2, |world| {
        let team = world.team();
        let (all, mine) = (world.alloc_zeroed::<u64>(2).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
        if world.my_pe() == 0 {
            let gathering = team.nonblocking().all_gather(&all, &mine).unwrap();
            event::wait_all(&[&gathering]);
        }
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("PE 0: waits for an event, but PE 1 has left the job"), "{words}");
}

/// A collective that ends while the next one is started wakes its future, although no operation is
/// outstanding then.
#[test]
fn futures_of_collectives_that_end_together_are_woken() {
    let outcome = spmd(2, |world| {
        let team = world.team();
        for _ in 0..200 {
            let mut first = team.nonblocking().sync().unwrap().into_future();
            let (mut is_first_over, mut second) = (false, None);
            world.block_on(std::future::poll_fn(|context| {
                is_first_over = is_first_over || Pin::new(&mut first).poll(context).is_ready();
                let second = second.get_or_insert_with(|| team.nonblocking().sync().unwrap().into_future());
                if !is_first_over || Pin::new(second).poll(context).is_pending() {
                    return Poll::Pending;
                }
                Poll::Ready(())
            }));
        }
    });
    outcome.unwrap();
}

#[test]
fn a_future_that_can_come_no_more_says_so() {
    let waits: [fn(&World, pelago::Request<'_>); 2] = [
        |world, request| world.block_on(request.into_future()),
        |_, request| run_parking(request.into_future()).0,
    ];
    for wait in waits {
        let outcome = spmd(2, |world| {
            let team = world.team();
            if world.my_pe() == 0 {
                wait(world, team.nonblocking().sync().unwrap());
            }
        });
        let words = outcome.unwrap_err().to_string();
        assert!(words.contains("PE 0: waits for an event, but PE 1 has left the job"), "{words}");
    }
}

#[test]
fn a_future_ends_with_its_job() {
    for has_thread in [false, true] {
        let outcome = spmd(2, |world| {
            let team = world.team();
            assert!(world.my_pe() != 1, "on purpose");
            let wait = || run_parking(team.nonblocking().sync().unwrap().into_future());
            match has_thread {
                true => world.with_progress_thread(wait),
                false => wait(),
            };
        });
        let words = outcome.unwrap_err().to_string();
        assert!(words.contains("PE 1") && words.contains("on purpose"), "{words}");
    }
}

/// A thread that is in `block_on` and does not wait does not drive other operations.
#[test]
fn who_computes_in_block_on_is_not_relied_on() {
    let outcome = spmd(2, |world| {
        let other = 1 - world.my_pe();
        let mut handlers = Handlers::new();
        let same = handlers.add_procedure("same", |_, x: u64| x);
        let served = world.team().serve(handlers, |am| {
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(run_parking(am.call(other, same, &9).unwrap().into_future()).0, 9);
                    is_over.store(true, Relaxed);
                });
                world.block_on(async { until("the other thread", || is_over.load(Relaxed)) });
            });
        });
        served.unwrap();
    });
    outcome.unwrap();
}

struct Sinner;

impl Wake for Sinner {
    fn wake(self: Arc<Sinner>) {
        panic!("on purpose");
    }
}

#[test]
fn a_waker_that_panics_ends_the_job() {
    let is_registered = AtomicBool::new(false);
    let outcome = spmd(2, |world| {
        let mut handlers = Handlers::new();
        let same = handlers.add_procedure("same", |_, x: u64| x);
        let _ = world.team().serve(handlers, |am| {
            world.block_on(async {
                if world.my_pe() == 1 {
                    // Until then PE 1 does not reply.
                    until("PE 0 to register its waker", || is_registered.load(Relaxed));
                }
                let mut call = am.call(1, same, &1).unwrap().into_future();
                let waker = Waker::from(Arc::new(Sinner));
                if world.my_pe() == 0 {
                    assert!(Pin::new(&mut call).poll(&mut Context::from_waker(&waker)).is_pending());
                    is_registered.store(true, Relaxed);
                }
                am.barrier().unwrap();
                call.await
            })
        });
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("PE 0: the waker of a future has panicked: on purpose"), "{words}");
}

#[test]
fn a_panic_in_the_work_ends_the_progress_thread() {
    let outcome = spmd(2, |world| {
        world.with_progress_thread(|| assert!(world.my_pe() != 1, "on purpose"));
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("PE 1") && words.contains("on purpose"), "{words}");
}
