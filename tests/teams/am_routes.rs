//! Active messages where some PEs are mapped and others are reached over the network: order, flow control,
//! and the route of each message.

use crate::common;
use pelago::Spmd;
use pelago::am::{HandlerLock, Handlers};
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::sync::{AtomicU64, AtomicUsize, Ordering::Relaxed};

everywhere! {
    order(4): messages_of_a_pair_keep_their_order;
    token(3): a_token_goes_around_by_polls_alone;
    forwarded(4): what_comes_by_one_route_goes_on_by_the_other;
}

/// Rounds of chaos for jobs that are made here.
const SEEDS: u64 = if cfg!(feature = "full") { 200 } else { 8 };

/// PEs 0 and 1 are on a node, PE 2 is on another.
fn two_and_one() -> SimParams {
    SimParams { maps_nodes: true, nodes: vec![0, 0, 1], ..SimParams::default() }
}

/// Every kind of request, and replies, with increasing numbers.
fn messages_of_a_pair_keep_their_order(world: &World) {
    let n = world.n_pes();
    let each = common::rounds(world, 600, 40) as u32;
    let data = world.alloc_zeroed::<u64>(4000 * n).unwrap();
    let (requests, answers) = (HandlerLock::new(vec![0u32; n]), HandlerLock::new(vec![0u32; n]));
    let mut handlers = Handlers::new();
    let back = handlers.add("back", |message| {
        let mut next = answers.lock();
        assert_eq!(message.args(), [next[message.from()]], "answers of PE {}", message.from());
        next[message.from()] += 1;
    });
    let take = handlers.add("take", |message| {
        let number = message.args()[0];
        {
            let mut next = requests.lock();
            assert_eq!(number, next[message.from()], "requests of PE {}", message.from());
            next[message.from()] += 1;
        }
        message.answer_medium(back, &[number], &vec![1; (number % 100) as usize]).unwrap();
    });
    let me = world.my_pe();
    let sent = world.team().serve(handlers, |am| {
        for number in 0..each {
            for to in 0..n {
                match number % 5 {
                    0 => am.short(to, take, &[number])?,
                    1 => am.medium(to, take, &[number], &[2; 90])?,
                    2 => am.long(to, take, &[number], (&data, 4000 * me), &[3; 5])?,
                    3 if number % 2 == 0 => am.long(to, take, &[number], (&data, 4000 * me), &[3; 4000])?,
                    3 => {
                        let mut request = am.prepare(to, 80)?;
                        request.payload()[..10].fill(4);
                        request.send(take, &[number], 10)?;
                    }
                    _ => while !am.try_short(to, take, &[number])? {},
                }
            }
        }
        Ok::<(), pelago::Error>(())
    });
    sent.unwrap().unwrap();
    assert_eq!(requests.into_inner(), vec![each; n]);
    assert_eq!(answers.into_inner(), vec![each; n]);
}

/// The PEs only poll and forward what has arrived, so a poll must check both routes.
fn a_token_goes_around_by_polls_alone(world: &World) {
    let n = world.n_pes();
    let rounds = common::rounds(world, 200, 10) as usize;
    let held = AtomicUsize::new(0);
    let mut handlers = Handlers::new();
    let token = handlers.add("token", |message| {
        held.store(message.args()[0] as usize, Relaxed);
    });
    let right = (world.my_pe() + 1) % n;
    let outcome = world.team().serve(handlers, |am| {
        let mut expected = world.my_pe();
        if expected == 0 {
            am.short(right, token, &[1])?;
            expected = n;
        }
        while expected <= rounds * n {
            // The runs of simulated networks end by themselves; elsewhere other PEs may need the core.
            while held.load(Relaxed) != expected {
                am.poll();
                std::thread::yield_now();
            }
            if expected < rounds * n {
                am.short(right, token, &[expected as u32 + 1])?;
            }
            expected += n;
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
}

/// Each PE that receives a request replies to it, records it and forwards it, until it has visited all PEs;
/// the last PE notifies the first.
fn what_comes_by_one_route_goes_on_by_the_other(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let each = common::rounds(world, 100, 8) as u32;
    let (to_do, done) = (HandlerLock::new(Vec::new()), AtomicU64::new(0));
    let answers = AtomicU64::new(0);
    let mut handlers = Handlers::new();
    let thanks = handlers.add("thanks", |message| {
        assert!(message.is_answer());
        answers.fetch_add(u64::from(message.args()[0]), Relaxed);
    });
    let pass = handlers.add("pass", |message| {
        let &[first, number] = message.args() else { panic!("two arguments") };
        to_do.lock().push((first as usize, number));
        message.answer_short(thanks, &[1]).unwrap();
    });
    let end = handlers.add("end", |message| {
        done.fetch_add(u64::from(message.args()[0]), Relaxed);
    });
    let outcome = world.team().serve(handlers, |am| {
        for number in 0..each {
            am.short((me + 1) % n, pass, &[me as u32, number])?;
        }
        // Each PE forwards the requests of all others, except the last step, which ends them.
        let mut passed = 0;
        while passed < each * (n as u32 - 1) {
            let next = to_do.lock().pop();
            let Some((first, number)) = next else {
                am.poll();
                std::thread::yield_now();
                continue;
            };
            passed += 1;
            match (me + 1) % n == first {
                true => am.short(first, end, &[number])?,
                false => am.short((me + 1) % n, pass, &[first as u32, number])?,
            }
        }
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap().unwrap();
    assert_eq!(done.into_inner(), (0..u64::from(each)).sum());
    assert_eq!(answers.into_inner(), u64::from(each) * (n as u64 - 1));
}

/// Small rings, few credits, short messages of the network, and a flood from all PEs to all PEs, with a reply
/// to each request.
#[test]
fn a_flood_over_both_routes_with_little_room() {
    for seed in 0..SEEDS {
        let nodes = vec![0, 1, 0, 2, 1, 0];
        let n = nodes.len();
        let params = SimParams { maps_nodes: true, nodes, credits: 2, ..SimParams::chaos(seed) };
        let job = Spmd::new(n).ring_bytes(1024).sim(params);
        let each = 100;
        let outcome = job.run(|world| {
            let (requests, answers) = (AtomicU64::new(0), AtomicU64::new(0));
            let mut handlers = Handlers::new();
            let back = handlers.add("back", |message| {
                answers.fetch_add(1 + message.payload().len() as u64, Relaxed);
            });
            let there = handlers.add("there", |message| {
                requests.fetch_add(1 + message.payload().len() as u64, Relaxed);
                message.answer_medium(back, &[], message.payload()).unwrap();
            });
            let sent = world.team().serve(handlers, |am| {
                let bytes = |i: usize| vec![7; i % (am.medium_max() + 1)];
                (0..each).try_for_each(|i| (0..n).try_for_each(|to| am.medium(to, there, &[], &bytes(i))))?;
                Ok::<usize, pelago::Error>((0..each).map(|i| 1 + bytes(i).len()).sum())
            });
            let expected = (n * sent.unwrap().unwrap()) as u64;
            assert_eq!((requests.into_inner(), answers.into_inner()), (expected, expected));
        });
        outcome.unwrap_or_else(|error| panic!("on the simulated network of seed {seed}: {error}"));
    }
}

/// PEs send messages to themselves and each other by every call, if `to` is mapped; returns the number of
/// messages that used the network meanwhile.
fn net_messages_to(world: &World, to: Option<usize>) -> u64 {
    let (count, mut net_messages) = (AtomicUsize::new(0), 0);
    let data = world.alloc_zeroed::<u64>(1000).unwrap();
    let mut handlers = Handlers::new();
    let back = handlers.add("back", |_| {
        count.fetch_add(1, Relaxed);
    });
    let take = handlers.add("take", |message| {
        message.answer_short(back, &[]).unwrap();
    });
    let long = handlers.add("long", |message| {
        message.answer_long(back, &[], (&data, 0), &[5; 4]).unwrap();
    });
    let sent = world.team().serve(handlers, |am| {
        let before = world.counters();
        // The replies to others are counted from here on as well.
        am.barrier()?;
        if let Some(to) = to {
            for _ in 0..200 {
                am.short(to, take, &[1])?;
                am.medium(to, take, &[1], &[2; 100])?;
                am.long(to, long, &[1], (&data, 0), &[3; 1000])?;
                drop(am.long_nb(to, long, &[1], (&data, 0), vec![3; 1000])?.wait());
                am.prepare(to, 8)?.send(take, &[], 8)?;
            }
        }
        am.barrier()?;
        let after = world.counters();
        net_messages = after.net_messages - before.net_messages;
        Ok::<(), pelago::Error>(())
    });
    sent.unwrap().unwrap();
    assert_eq!(count.into_inner(), if to.is_some() { 1000 } else { 0 });
    net_messages
}

#[test]
fn messages_between_mapped_pes_do_not_touch_the_network() {
    let job = Spmd::new(3).counters(true).sim(two_and_one());
    let among_mapped = job.run(|world| net_messages_to(world, [Some(1), Some(0), Some(2)][world.my_pe()]));
    assert_eq!(among_mapped.unwrap(), [0; 3]);
    // Requests and long replies; PE 2 has sent none.
    let from_0_to_2 = job.run(|world| net_messages_to(world, [Some(2), None, None][world.my_pe()]));
    assert_eq!(from_0_to_2.unwrap(), [1000, 0, 1000]);
}

/// All members see the same limit, and messages of that length arrive on each route.
#[test]
fn the_longest_payload_is_what_the_narrowest_route_takes() {
    for (ring_bytes, message_bytes) in [(1 << 16, 512), (1024, 4096)] {
        let params = SimParams { message_bytes, ..two_and_one() };
        let longest = Spmd::new(3).ring_bytes(ring_bytes).sim(params).run(|world| {
            let bytes = AtomicUsize::new(0);
            let mut handlers = Handlers::new();
            let take = handlers.add("take", |message| {
                bytes.fetch_add(message.payload().len(), Relaxed);
            });
            let outcome = world.team().serve(handlers, |am| {
                let longest = am.medium_max();
                (0..3).try_for_each(|to| am.medium(to, take, &[0; 16], &vec![1; longest]))?;
                Ok::<usize, pelago::Error>(longest)
            });
            let longest = outcome.unwrap().unwrap();
            assert_eq!(bytes.into_inner(), 3 * longest);
            longest
        });
        let longest = longest.unwrap();
        assert_eq!(longest, [longest[0]; 3]);
        assert_eq!(longest[0], message_bytes.min(ring_bytes / 4 - 64) - 88);
    }
}

/// A PE that polls in a loop detects that a PE of its node, or of another node, has failed.
#[test]
fn polling_ends_when_a_pe_fails_wherever_it_is() {
    for fails in 0..3 {
        let outcome = Spmd::new(3).sim(two_and_one()).run(|world| {
            let _ = world.team().serve(Handlers::new(), |am| {
                if world.my_pe() == fails {
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
}
