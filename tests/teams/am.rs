//! Active messages: every kind, on every route, each exactly once; floods; and the messages of mistakes.

use crate::common;
use pelago::am::{ARGS_MAX, Handler, HandlerLock, Handlers, Message};
use pelago::prelude::*;
use pelago::sync::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use pelago::{ErrorKind, Indexed, Spmd, Strided};

everywhere! {
    kinds(3): every_kind_arrives_as_it_was_sent;
    answers(4): answers_come_back_to_whoever_asked;
    flood(5): all_flood_one_with_all_kinds;
    cross_flood(4): all_flood_all_and_all_answer;
    long_answers(6): answers_are_much_longer_than_what_they_answer;
    teams(5): endpoints_of_several_teams_are_apart;
    long(3): long_messages_find_their_data;
    after(3): messages_follow_scattered_data;
    prepared(3): prepared_messages_may_shrink_or_be_given_up;
    immediate(2): immediate_messages_are_refused_and_come_later;
    threads_of_each_pe(3): several_threads_send_and_execute;
    again(2): endpoints_one_after_the_other;
    alone(1): every_kind_arrives_as_it_was_sent;
}

/// Bytes that identify their sender and their number.
fn pattern(from: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (from * 31 + i * 7 + bytes) as u8).collect()
}

fn args(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| i * 0x0101_0101 + 1).collect()
}

fn every_kind_arrives_as_it_was_sent(world: &World) {
    let n = world.n_pes();
    let sizes = [0, 1, 7, 8, 9, 40, 41, 63, 64, 65, 500, 1000];
    let (seen, fitting) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut handlers = Handlers::new();
    let check = handlers.add("check", |message| {
        let count = message.args().len();
        assert_eq!(message.args(), args(count));
        assert_eq!(message.payload(), pattern(message.from(), message.payload().len()));
        assert!(!message.is_answer() && message.elements().is_none());
        seen.fetch_add(1, Relaxed);
    });
    let me = world.my_pe();
    let outcome = world.team().serve(handlers, |am| {
        for to in 0..n {
            for count in 0..=ARGS_MAX {
                am.short(to, check, &args(count))?;
                for bytes in sizes.into_iter().filter(|&bytes| bytes <= am.medium_max()) {
                    fitting.fetch_add(1, Relaxed);
                    am.medium(to, check, &args(count), &pattern(me, bytes))?;
                }
            }
            let longest = am.medium_max();
            am.medium(to, check, &args(ARGS_MAX), &pattern(me, longest))?;
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
    // All PEs send the same.
    assert_eq!(seen.into_inner(), n * (ARGS_MAX + 1 + 1) + fitting.into_inner());
}

fn answers_come_back_to_whoever_asked(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let rounds = common::rounds(world, 300, 10) as u32;
    let seen = HandlerLock::new(vec![0u32; n]);
    let mut handlers = Handlers::new();
    let answer = handlers.add("answer", |message| {
        assert!(message.is_answer());
        let [round, double] = message.args() else { panic!("two arguments") };
        assert_eq!(*double, 2 * round);
        assert_eq!(message.payload(), pattern(message.from(), (round % 90) as usize));
        seen.lock()[message.from()] += 1;
    });
    let ask = handlers.add("ask", |message| {
        let round = message.args()[0];
        message.answer_medium(answer, &[round, 2 * round], &pattern(me, (round % 90) as usize)).unwrap();
    });
    let sent = world.team().serve(handlers, |am| {
        (0..rounds).try_for_each(|round| (0..n).try_for_each(|to| am.short(to, ask, &[round])))
    });
    sent.unwrap().unwrap();
    assert_eq!(seen.into_inner(), vec![rounds; n]);
}

/// The sum of the received data equals the sum of the sent data, for all kinds of messages.
fn all_flood_one_with_all_kinds(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let each = common::rounds(world, if cfg!(feature = "full") { 20_000 } else { 2000 }, 40);
    let (sum, count) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut handlers = Handlers::new();
    let take = handlers.add("take", |message| {
        let payload: u64 = message.payload().iter().map(|&byte| u64::from(byte)).sum();
        sum.fetch_add(u64::from(message.args()[0]) + payload, Relaxed);
        count.fetch_add(1, Relaxed);
    });
    let value = |pe: usize, i: u64| (pe as u64 * 1000 + i) % 5003;
    let bytes = |i: u64| if i.is_multiple_of(3) { vec![1; (i % 700) as usize] } else { Vec::new() };
    let sent = world.team().serve(handlers, |am| {
        (0..each).try_for_each(|i| am.medium(0, take, &[value(me, i) as u32], &bytes(i)))
    });
    sent.unwrap().unwrap();
    let expected: u64 =
        (0..n).flat_map(|pe| (0..each).map(move |i| value(pe, i) + bytes(i).len() as u64)).sum();
    let (mine, all) = if me == 0 { (expected, n as u64 * each) } else { (0, 0) };
    assert_eq!((sum.into_inner(), count.into_inner()), (mine, all));
}

fn all_flood_all_and_all_answer(world: &World) {
    let n = world.n_pes();
    let each = common::rounds(world, 1000, 20);
    let (requests, answers) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut handlers = Handlers::new();
    let back = handlers.add("back", |message| {
        answers.fetch_add(1 + message.payload().len() as u64, Relaxed);
    });
    let there = handlers.add("there", |message| {
        requests.fetch_add(1 + message.payload().len() as u64, Relaxed);
        message.answer_medium(back, message.args(), message.payload()).unwrap();
    });
    let sent = world.team().serve(handlers, |am| {
        (0..each).try_for_each(|i| {
            (0..n).try_for_each(|to| am.medium(to, there, &[i as u32], &vec![9; (i % 300) as usize]))
        })
    });
    sent.unwrap().unwrap();
    let expected: u64 = n as u64 * (0..each).map(|i| 1 + i % 300).sum::<u64>();
    assert_eq!((requests.into_inner(), answers.into_inner()), (expected, expected));
}

/// Replies fill the rings of all PEs while handlers wait for space for their own replies.
fn answers_are_much_longer_than_what_they_answer(world: &World) {
    let n = world.n_pes();
    let each = common::rounds(world, 500, 10);
    let (bytes, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut handlers = Handlers::new();
    let back = handlers.add("back", |message| {
        bytes.fetch_add(message.payload().len(), Relaxed);
    });
    let there = handlers.add("there", |message| {
        // The others reach this point meanwhile, and the next one.
        (0..5).for_each(|_| std::thread::yield_now());
        message.answer_medium(back, &[], &vec![3; most.load(Relaxed)]).unwrap();
    });
    let sent = world.team().serve(handlers, |am| {
        most.store(am.medium_max(), Relaxed);
        world.barrier();
        (0..each).try_for_each(|_| (0..n).try_for_each(|to| am.short(to, there, &[])))
    });
    sent.unwrap().unwrap();
    assert_eq!(bytes.into_inner(), n * each as usize * most.into_inner());
}

fn endpoints_of_several_teams_are_apart(world: &World) {
    let me = world.my_pe();
    let half = world.team().split_by(Some(me as u64 % 2), -(me as i64)).unwrap().unwrap();
    let (outer, inner) = (HandlerLock::new(Vec::new()), HandlerLock::new(Vec::new()));
    let mut of_world = Handlers::new();
    let to_all = of_world.add("to all", |message| outer.lock().push(message.from()));
    let mut of_half = Handlers::new();
    of_half.add("another", |_| panic!("nobody has sent this"));
    let to_half = of_half.add("to half", |message| inner.lock().push(half.pe(message.from())));
    let outcome = world.team().serve(of_world, |all| {
        half.serve(of_half, |am| {
            for to in 0..am.n_pes() {
                am.short(to, to_half, &[])?;
            }
            (0..all.n_pes()).try_for_each(|to| all.short(to, to_all, &[]))
        })
    });
    outcome.unwrap().unwrap().unwrap();
    let sorted = |list: HandlerLock<Vec<usize>>| {
        let mut list = list.into_inner();
        list.sort_unstable();
        list
    };
    let n = world.n_pes();
    assert_eq!(sorted(outer), (0..n).collect::<Vec<_>>());
    assert_eq!(sorted(inner), (0..n).filter(|pe| pe % 2 == me % 2).collect::<Vec<_>>());
}

fn long_messages_find_their_data(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let rounds = common::rounds(world, 50, 6) as usize;
    // Longer than the data that any network sends within the message.
    let most = 20_000;
    let data = world.alloc_zeroed::<u32>(n * most).unwrap();
    let echoes = world.alloc_zeroed::<u32>(n * 8).unwrap();
    let (seen, echoed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let value = |from: usize, round: usize| (from * 1000 + round) as u32;
    let mut handlers = Handlers::new();
    let back = handlers.add("back", |message| {
        let range = message.elements().unwrap();
        assert_eq!(range, 8 * message.from()..8 * message.from() + 8);
        assert!(range.clone().all(|i| echoes.local().get(i) == message.args()[0]));
        echoed.fetch_add(1, Relaxed);
    });
    let here = handlers.add("here", |message| {
        let (from, round) = (message.from(), message.args()[0] as usize);
        let range = message.elements().unwrap();
        assert_eq!(range.start, from * most);
        assert!(range.clone().all(|i| data.local().get(i) == value(from, round)), "round {round} of {from}");
        assert_eq!(message.payload(), []);
        seen.fetch_add(range.len(), Relaxed);
        let echo = [value(from, round); 8];
        message.answer_long(back, &[echo[0]], (&echoes, 8 * me), &echo).unwrap();
    });
    let length = |round: usize| [0, 1, 5, 900, most][round % 5];
    let outcome = world.team().serve(handlers, |am| {
        for round in 0..rounds {
            for to in 0..n {
                let source = vec![value(me, round); length(round)];
                if (round + to).is_multiple_of(2) {
                    am.long(to, here, &[round as u32], (&data, me * most), &source)?;
                    continue;
                }
                let sending = am.long_nb(to, here, &[round as u32], (&data, me * most), source)?;
                match round % 3 {
                    0 => drop(sending),
                    1 => assert_eq!(sending.wait(), vec![value(me, round); length(round)]),
                    _ => assert_eq!(sending.wait_local().len(), length(round)),
                }
            }
            // The next round writes to the same address: all must have replied.
            while echoed.load(Relaxed) < (round + 1) * n {
                am.poll();
            }
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
    assert_eq!(seen.into_inner(), n * (0..rounds).map(length).sum::<usize>());
}

fn messages_follow_scattered_data(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let rounds = common::rounds(world, 200, 5) as u32;
    // Each PE has columns of its own in every PE's matrix, and a list of indices.
    let (rows, width) = (40, 2 * n);
    let matrix = world.alloc_zeroed::<u32>(rows * width).unwrap();
    let seen = AtomicUsize::new(0);
    let mut handlers = Handlers::new();
    let look = handlers.add("look", |message| {
        let (from, round) = (message.from(), message.args()[0]);
        for row in 0..rows {
            let at = row * width + 2 * from;
            assert_eq!((matrix.local().get(at), matrix.local().get(at + 1)), (round, round + row as u32));
        }
        seen.fetch_add(1, Relaxed);
    });
    let column = Strided { array_stride: width, ..Strided::elements(rows) };
    let places: Vec<usize> = (0..rows).map(|row| row * width + 2 * me + 1).collect();
    let outcome = world.team().serve(handlers, |am| {
        for round in 1..=rounds {
            let (same, numbers) =
                (vec![round; rows], (0..rows as u32).map(|row| round + row).collect::<Vec<_>>());
            for to in 0..n {
                am.short_after(to, look, &[round], |scope| {
                    scope.put_strided(&matrix, to, 2 * me, &same, &column)?;
                    scope.put_indexed(&matrix, to, &numbers, &Indexed::elements(&places))
                })?;
            }
            // No PE puts the next data before all PEs have checked.
            am.barrier()?;
        }
        let error = am.short_after(n, look, &[], |_| panic!("nothing is put")).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::PeOutOfRange { .. }), "{error}");
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
    assert_eq!(seen.into_inner(), n * rounds as usize);
}

fn prepared_messages_may_shrink_or_be_given_up(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let rounds = common::rounds(world, 200, 12) as usize;
    let bytes = AtomicUsize::new(0);
    let mut handlers = Handlers::new();
    let take = handlers.add("take", |message| {
        assert_eq!(message.args(), args(message.payload().len() % 17));
        assert_eq!(message.payload(), pattern(message.from(), message.payload().len()));
        bytes.fetch_add(message.payload().len(), Relaxed);
    });
    let used = |round: usize| round * 13 % 150;
    let outcome = world.team().serve(handlers, |am| {
        for round in 0..rounds {
            let mut request = am.prepare((me + round) % n, 160)?;
            if round % 5 == 4 {
                drop(request);
                continue;
            }
            let payload = pattern(me, used(round));
            request.payload()[..payload.len()].copy_from_slice(&payload);
            request.send(take, &args(payload.len() % 17), payload.len())?;
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
    let sums = world.alloc_zeroed::<u64>(1).unwrap();
    sums.add(0, 0, bytes.into_inner() as u64).unwrap();
    world.barrier();
    let expected: usize = n * (0..rounds).filter(|round| round % 5 != 4).map(used).sum::<usize>();
    assert_eq!(sums.g(0, 0).unwrap(), expected as u64);
    world.barrier();
}

/// No PE executes messages while all send, until a message is refused. So one is refused, and no accepted
/// message is lost.
fn immediate_messages_are_refused_and_come_later(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let count = AtomicUsize::new(0);
    let mut handlers = Handlers::new();
    let take = handlers.add("take", |_| {
        count.fetch_add(1, Relaxed);
    });
    let lock = HandlerLock::new(());
    let sent = world.team().serve(handlers, |am| {
        // While it is held, this thread executes no message, and in jobs without a service thread no other
        // thread does.
        let guard = lock.lock();
        let most = 10_000;
        let is_sent = |_: &u64| am.try_medium((me + 1) % n, take, &[], &[0; 160]).unwrap();
        let sent = (0..most).take_while(is_sent).count();
        drop(guard);
        (sent as u64, u64::from(sent < most as usize))
    });
    let (sent, refusals) = sent.unwrap();
    let sums = world.alloc_zeroed::<u64>(2).unwrap();
    sums.add(0, 0, sent.wrapping_sub(count.into_inner() as u64)).unwrap();
    sums.add(0, 1, refusals).unwrap();
    world.barrier();
    assert_eq!(sums.g(0, 0).unwrap(), 0);
    assert!(sums.g(0, 1).unwrap() > 0, "nobody was refused");
    world.barrier();
}

fn several_threads_send_and_execute(world: &World) {
    let n = world.n_pes();
    let each = common::rounds(world, 500, 10);
    let count = AtomicU64::new(0);
    let answers = AtomicU64::new(0);
    let mut handlers = Handlers::new();
    let back = handlers.add("back", |_| {
        answers.fetch_add(1, Relaxed);
    });
    let take = handlers.add("take", |message| {
        count.fetch_add(message.args()[0].into(), Relaxed);
        message.answer_short(back, &[]).unwrap();
    });
    let outcome = world.team().serve(handlers, |am| {
        std::thread::scope(|scope| {
            let send = || (0..each).try_for_each(|i| am.short(i as usize % n, take, &[i as u32]));
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(send)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })
    });
    outcome.unwrap().unwrap();
    let sums = world.alloc_zeroed::<u64>(2).unwrap();
    sums.add(0, 0, count.into_inner()).unwrap();
    sums.add(0, 1, answers.into_inner()).unwrap();
    world.barrier();
    let expected = 3 * n as u64 * (0..each).sum::<u64>();
    assert_eq!((sums.g(0, 0).unwrap(), sums.g(0, 1).unwrap()), (expected, 3 * n as u64 * each));
    world.barrier();
}

fn endpoints_one_after_the_other(world: &World) {
    for round in 0..20 {
        let count = AtomicUsize::new(0);
        let mut handlers = Handlers::new();
        let first = handlers.add("first", |_| {
            count.fetch_add(1, Relaxed);
        });
        let sent = world.team().serve(handlers, |am| am.short(round % am.n_pes(), first, &[]));
        sent.unwrap().unwrap();
        let expected = if round % world.n_pes() == world.my_pe() { world.n_pes() } else { 0 };
        assert_eq!(count.into_inner(), expected);
    }
}

/// Messages with the number of executed messages are lost, so that windows close; a PE that waits for space
/// asks for the number, and continues.
#[test]
fn lost_window_reports_are_made_good() {
    let each = 150;
    common::over_seeds(3, |world| {
        pelago::testing::lose_window_reports(world, 12);
        let count = AtomicU64::new(0);
        let mut handlers = Handlers::new();
        let take = handlers.add("take", |_| {
            count.fetch_add(1, Relaxed);
        });
        let sent = world.team().serve(handlers, |am| {
            (0..each).try_for_each(|_| (0..3).try_for_each(|to| am.short(to, take, &[])))
        });
        sent.unwrap().unwrap();
        assert_eq!(count.into_inner(), 3 * each);
    });
}

/// 64 PEs flood one with a million messages of all kinds, between them and back.
#[cfg(feature = "full")]
#[test]
fn many_flood_one() {
    spmd(64, |world| {
        let each = 1_000_000 / 64;
        let (sum, backs) = (AtomicU64::new(0), AtomicU64::new(0));
        let data = world.alloc_zeroed::<u64>(64).unwrap();
        let mut handlers = Handlers::new();
        let back = handlers.add("back", |_| {
            backs.fetch_add(1, Relaxed);
        });
        let take = handlers.add("take", |message| {
            let bytes = message.payload().len() + message.elements().map_or(0, |range| range.len());
            sum.fetch_add(u64::from(message.args()[0]) + bytes as u64, Relaxed);
            if message.args()[0].is_multiple_of(16) {
                message.answer_short(back, &[]).unwrap();
            }
        });
        let sent = world.team().serve(handlers, |am| {
            (0..each).try_for_each(|i: u32| match i % 3 {
                0 => am.short(0, take, &[i]),
                1 => am.medium(0, take, &[i], &[7; 100]),
                _ => am.long(0, take, &[i], (&data, world.my_pe()), &[u64::from(i)]),
            })
        });
        sent.unwrap().unwrap();
        let bytes = |i: u32| [0, 100, 1][i as usize % 3];
        let expected: u64 = 64 * (0..each).map(|i| u64::from(i) + bytes(i)).sum::<u64>();
        assert_eq!(sum.into_inner(), if world.my_pe() == 0 { expected } else { 0 });
        assert_eq!(backs.into_inner(), u64::from(each.div_ceil(16)));
    })
    .unwrap();
}

/// Wrong arguments are errors, and no message is sent.
#[test]
fn wrong_arguments_are_refused() {
    spmd(2, |world| {
        let mut handlers = Handlers::new();
        let take = handlers.add("take", |_| panic!("nothing was sent"));
        assert_eq!(handlers.find("take"), Some(take));
        assert_eq!(handlers.find("other"), None);
        let outside = world.alloc::<u64>(4).unwrap();
        world.team().serve(handlers, |am| {
            let longest = am.medium_max();
            let kinds = [
                am.short(2, take, &[]),
                am.short(usize::MAX, take, &[]),
                am.short(0, Handler(1), &[]),
                am.short(0, Handler(u16::MAX), &[]),
                am.short(0, take, &[0; ARGS_MAX + 1]),
                am.medium(1, take, &[], &vec![0; longest + 1]),
                am.try_short(2, take, &[]).map(|_| ()),
                am.long(1, take, &[], (&outside, 2), &[1, 2, 3]),
                am.long(2, take, &[], (&outside, 0), &[1]),
                am.prepare(2, 1).map(|_| ()),
                am.prepare(0, longest + 1).map(|_| ()),
                am.prepare(0, 10).and_then(|request| request.send(take, &[], 11)),
                am.prepare(0, 10).and_then(|request| request.send(Handler(1), &[], 10)),
            ];
            let kinds = kinds.map(|outcome| outcome.unwrap_err().to_string());
            let expected = [
                "names PE 2, but the job has 2",
                "names PE 18446744073709551615",
                "names handler 1, but its endpoint has 1",
                "names handler 65535",
                "has 17 arguments, but it can have 16",
                "Send a long message, or several",
                "names PE 2",
                "lies outside the array",
                "names PE 2",
                "names PE 2",
                "it can have",
                "payload of 11 bytes, but it can have 10",
                "names handler 1",
            ];
            for (said, words) in kinds.iter().zip(expected) {
                assert!(said.contains(words), "{said} does not say {words:?}");
                assert!(said.starts_with(&format!("PE {}: ", world.my_pe())), "{said}");
            }
        })
    })
    .unwrap()
    .into_iter()
    .for_each(|outcome| outcome.unwrap());
}

#[test]
fn handlers_must_be_the_same_everywhere() {
    let outcomes = spmd(3, |world| {
        let mut handlers = Handlers::new();
        handlers.add(if world.my_pe() == 2 { "b" } else { "a" }, |_| ());
        world.team().serve(handlers, |_| ()).map_err(|error| error.to_string())
    });
    for outcome in outcomes.unwrap() {
        let words = outcome.unwrap_err();
        assert!(words.contains("serve with other handlers than PE"), "{words}");
    }
}

#[test]
fn a_name_is_given_once() {
    let twice = std::panic::catch_unwind(|| {
        let mut handlers = Handlers::new();
        handlers.add("a", |_| ());
        handlers.add("a", |_| ());
    });
    assert!(twice.is_err());
}

#[test]
fn answers_out_of_place_are_refused() {
    let words = HandlerLock::new(Vec::new());
    spmd(2, |world| {
        let mut handlers = Handlers::new();
        let note = |outcome: pelago::Result<()>| words.lock().push(outcome.unwrap_err().to_string());
        let back = handlers.add("back", |message| note(message.answer_short(message.handler(), &[])));
        let ask = handlers.add("ask", |message| {
            note(message.answer_short(Handler(9), &[]));
            note(message.answer_short(back, &[0; 17]));
            note(message.answer_medium(back, &[], &vec![0; 1 << 20]));
            message.answer_short(back, &[]).unwrap();
            note(message.answer_short(back, &[]));
        });
        world.team().serve(handlers, |am| if world.my_pe() == 0 { am.short(1, ask, &[]) } else { Ok(()) })
    })
    .unwrap()
    .into_iter()
    .for_each(|outcome| outcome.unwrap().unwrap());
    let expected = [
        "names handler 9, but its endpoint has 2",
        "has 17 arguments",
        "payload of 1048576 bytes",
        "by the handler \"ask\": it has answered already",
        "by the handler \"back\": its message is an answer itself",
    ];
    let words = words.into_inner();
    assert_eq!(words.len(), expected.len());
    // The reply may be executed before the handler that sent it has returned.
    for part in expected {
        assert!(words.iter().any(|said| said.contains(part)), "{words:?} do not say {part:?}");
    }
}

/// Runs a handler on PE 1 that makes a forbidden call, and returns the message that ends the job.
fn end_of_a_job_whose_handler(does: impl Fn(&World, &Message<'_>) + Sync) -> String {
    let outcome = Spmd::new(2).run(|world| {
        let mut handlers = Handlers::new();
        let sin = handlers.add("sinner", |message| does(world, message));
        let _ = world.team().serve(handlers, |am| {
            if world.my_pe() == 0 {
                am.short(1, sin, &[]).unwrap();
            }
        });
    });
    outcome.unwrap_err().to_string()
}

#[test]
fn what_a_handler_must_not_do_ends_the_job_with_words() {
    let words = end_of_a_job_whose_handler(|_, message| panic!("message of {}", message.from()));
    assert!(
        words.contains(
            "the handler \"sinner\" of active messages, for one of PE 0, has panicked: message of 0"
        ),
        "{words}"
    );
    let words = end_of_a_job_whose_handler(|world, _| world.barrier());
    assert!(words.contains("the handler \"sinner\" calls barrier"), "{words}");
    let words = end_of_a_job_whose_handler(|world, _| {
        let _ = world.team().serve(Handlers::new(), |_| ());
    });
    assert!(words.contains("the handler \"sinner\" calls serve"), "{words}");
}

#[test]
fn a_wait_with_a_handler_lock_ends_the_job_with_words() {
    let outcome = Spmd::new(2).run(|world| {
        let lock = HandlerLock::new(0);
        let _guard = lock.lock();
        if world.my_pe() == 0 {
            world.barrier();
        }
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("while it holds a HandlerLock"), "{words}");
}

/// A request from a handler is refused, whatever its endpoint.
#[test]
fn handlers_send_no_requests() {
    let outcome = Spmd::new(2).run(|world| {
        let outer = Handlers::new();
        let _ = world.team().serve(outer, |all| {
            let mut handlers = Handlers::new();
            let sin = handlers.add("sinner", |_| {
                let _ = all.short(0, Handler(0), &[]);
            });
            let _ = world.team().serve(handlers, |am| am.short(1, sin, &[]));
        });
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("the handler \"sinner\" calls an active message"), "{words}");
}

#[test]
fn errors_have_kinds() {
    spmd(1, |world| {
        world.team().serve(Handlers::new(), |am| {
            let error = am.short(0, Handler(0), &[]).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NoSuchHandler { handler: 0, handlers: 0, .. }));
        })
    })
    .unwrap()
    .into_iter()
    .for_each(|outcome| outcome.unwrap());
}

/// A thread that holds a lock that handlers may wait for may neither serve nor reply.
#[test]
fn locks_are_let_go_before_a_wait() {
    let outcome = Spmd::new(1).run(|world| {
        let lock = HandlerLock::new(());
        let _guard = lock.lock();
        let _ = world.team().serve(Handlers::new(), |_| ());
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("waits for all members in serve while it holds a HandlerLock"), "{words}");
    let outcome = Spmd::new(1).run(|world| {
        let lock = HandlerLock::new(());
        world.team().serve(Handlers::new(), |_| std::mem::forget(lock.lock())).unwrap();
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("waits for the end of serve while it holds a HandlerLock"), "{words}");
    let words = end_of_a_job_whose_handler(|_, message| {
        let lock = HandlerLock::new(());
        let _guard = lock.lock();
        let _ = message.answer_short(message.handler(), &[]);
    });
    assert!(words.contains("an answer while it holds a HandlerLock"), "{words}");
}

/// A prepared message delays messages that are sent later: a wait meanwhile is an error.
#[test]
fn prepared_messages_are_sent_before_a_wait() {
    let outcome = Spmd::new(2).run(|world| {
        let _ = world.team().serve(Handlers::new(), |am| std::mem::forget(am.prepare(1 - am.my_rank(), 8)));
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("while it has prepared an active message"), "{words}");
}

/// A thread that polls until a reply arrives detects that the job has failed.
#[test]
fn polling_ends_when_another_pe_fails() {
    let outcome = Spmd::new(3).run(|world| {
        let _ = world.team().serve(Handlers::new(), |am| {
            if world.my_pe() == 1 {
                panic!("on purpose");
            }
            loop {
                am.poll();
            }
        });
    });
    let words = outcome.unwrap_err().to_string();
    assert!(words.contains("on purpose"), "{words}");
}

#[test]
fn arrays_of_another_world_are_refused() {
    spmd(1, |world| {
        let outside = spmd(1, |other| {
            let array = other.alloc_zeroed::<u64>(4).unwrap();
            let mut handlers = Handlers::new();
            let take = handlers.add("take", |_| ());
            world.team().serve(handlers, |am| am.long(0, take, &[], (&array, 0), &[1])).unwrap()
        });
        let words = outside.unwrap().remove(0).unwrap_err().to_string();
        assert!(words.contains("must belong to one world"), "{words}");
    })
    .unwrap();
}
