//! Two-sided messages: matching, order, protocols of every length, modes, probes, and floods of unexpected
//! messages.

use crate::common;
use crate::dice::Dice;
use pelago::event;
use pelago::message::{self, Any, Received};
use pelago::prelude::*;
#[cfg(feature = "full")]
use pelago::sim::SimParams;
use pelago::sync::{AtomicBool, Ordering};
use pelago::{Result, Spmd};

everywhere! {
    order(3): messages_are_received_in_the_order_sent;
    random(4): random_messages_arrive_whole;
    exchange(3): all_exchange_long_messages_at_once;
    modes(2): modes_complete_as_they_promise;
    probing(3): probes_find_messages_and_take_them;
    dropping(2): a_matched_message_that_is_dropped_is_over_for_its_sender;
    flood(3): a_flood_of_unexpected_messages_is_kept_in_order;
    skipping(2): a_receive_finds_the_last_of_many_unexpected_messages;
    late(8): seven_pes_flood_one_that_receives_late;
    events(3): sends_and_receives_are_events;
    teams(4): teams_keep_their_messages_apart;
    mistakes(2): mistakes_are_errors;
    alone(1): a_pe_sends_to_itself;
    threads(2): threads_that_send_leave_nothing_busy;
}

/// Lengths at which the protocols change, and some between.
const LENGTHS: [usize; 13] =
    [0, 1, 8, 39, 40, 41, 300, 4096, 16 << 10, (16 << 10) + 1, 32 << 10, (32 << 10) + 1, 100_000];

/// Those that are sent: on simulated networks, whose packets take long, up to one above their messages.
fn lengths(world: &World) -> &'static [usize] {
    if world.is_simulated() { &LENGTHS[..10] } else { &LENGTHS }
}

/// The data of a message that this PE sends another one as number `number`.
fn data(from: usize, to: usize, number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i + 7 * from + 13 * to + 31 * number) as u8).collect()
}

fn is_whole(received: Received, me: usize, number: usize, room: &[u8]) -> bool {
    room[..received.bytes] == data(received.source, me, number, received.bytes)
}

/// Messages of all lengths to all, received from any source with any tag.
fn messages_are_received_in_the_order_sent(world: &World) {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    let lengths = lengths(world);
    let count = lengths.len() * common::rounds(world, 6, 1) as usize;
    let sent: Vec<_> = (0..n)
        .flat_map(|to| (0..count).map(move |i| (to, i, data(me, to, i, lengths[i % lengths.len()]))))
        .collect();
    let mut room = vec![0; 100_000];
    let mut seen = vec![0; n];
    world.scope(|scope| {
        for (to, i, data) in &sent {
            scope.send(&team, *to, *i as u32, data).unwrap();
        }
        for _ in 0..n * count {
            let received = team.receive(Any, Any, &mut room).unwrap();
            let number = seen[received.source];
            seen[received.source] += 1;
            assert_eq!((received.tag as usize, received.bytes), (number, lengths[number % lengths.len()]));
            assert!(is_whole(received, me, number, &room), "message {number} of PE {}", received.source);
        }
    });
    assert_eq!(seen, vec![count; n]);
}

/// All PEs know the same list of random messages; each posts the receives of its own in another order, some
/// before and some after the messages have come.
fn random_messages_arrive_whole(world: &World) {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    let (mut dice, lengths) = (Dice(42), lengths(world));
    for round in 0..common::rounds(world, 30, 2) as usize {
        let all: Vec<_> = (0..24)
            .map(|tag| {
                let bytes = lengths[dice.below(lengths.len())] + dice.below(50);
                (dice.below(n), dice.below(n), tag, bytes)
            })
            .collect();
        let sends: Vec<_> = all.iter().filter(|&&(from, ..)| from == me).collect();
        let payloads: Vec<_> = sends.iter().map(|&&(_, to, tag, bytes)| data(me, to, tag, bytes)).collect();
        let mut receives: Vec<_> = all.iter().filter(|&&(_, to, ..)| to == me).collect();
        let mut own = Dice((round * n + me) as u64);
        (1..receives.len()).rev().for_each(|i| receives.swap(i, own.below(i + 1)));
        let mut rooms: Vec<_> =
            receives.iter().map(|&&(_, _, _, bytes)| vec![0; bytes + own.below(3)]).collect();
        world.scope(|scope| {
            let (early, late) = rooms.split_at_mut(receives.len() / 2);
            let mut handles = Vec::new();
            for (&&(from, _, tag, _), room) in receives.iter().zip(early) {
                handles.push(scope.receive(&team, from, tag as u32, room).unwrap());
            }
            for (&&(_, to, tag, _), payload) in sends.iter().zip(&payloads) {
                match tag % 3 {
                    0 => drop(scope.send_synchronous(&team, to, tag as u32, payload).unwrap()),
                    _ => drop(scope.send(&team, to, tag as u32, payload).unwrap()),
                }
            }
            for (&&(from, _, tag, _), room) in receives[handles.len()..].iter().zip(late) {
                handles.push(scope.receive(&team, from, tag as u32, room).unwrap());
            }
            for (handle, &&(source, _, tag, bytes)) in handles.into_iter().zip(&receives) {
                assert_eq!(handle.wait().unwrap(), Received { source, tag: tag as u32, bytes });
            }
        });
        for (room, &&(from, _, tag, bytes)) in rooms.iter().zip(&receives) {
            assert_eq!(room[..bytes], data(from, me, tag, bytes), "message {tag} of round {round}");
        }
    }
}

fn all_exchange_long_messages_at_once(world: &World) {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    let bytes = if world.is_simulated() { 20_000 } else { 3_000_000 };
    for distance in 0..n {
        let (to, from) = ((me + distance) % n, (me + n - distance) % n);
        let mine = data(me, to, distance, bytes);
        let mut theirs = vec![0; bytes];
        let received = team.send_receive((to, 1, &mine), (from, Any, &mut theirs)).unwrap();
        assert_eq!(received, Received { source: from, tag: 1, bytes });
        assert!(is_whole(received, me, distance, &theirs));
    }
}

fn modes_complete_as_they_promise(world: &World) {
    let (team, me) = (world.team(), world.my_pe());
    for bytes in [8, 1000, 50_000] {
        let (mine, mut theirs, mut word) = (vec![7u8; bytes], vec![0u8; bytes], [0u8]);
        if me == 0 {
            world.scope(|scope| {
                let send = scope.send_synchronous(&team, 1, 1, &mine).unwrap();
                team.send_receive((1, 2, &[1u8]), (1, 2, &mut word)).unwrap();
                // PE 1 receives the message after it is told.
                assert!(!send.test(), "no receive has matched it yet");
                team.send(1, 3, &[1u8]).unwrap();
                send.wait();
            });
            // Copied, so the source may change and the call returns before anybody receives.
            let mut source = vec![9u8; bytes];
            team.send_buffered(1, 4, &source).unwrap();
            source.fill(0);
            team.send(1, 5, &[1u8]).unwrap();
        } else {
            team.send_receive((0, 2, &[1u8]), (0, 2, &mut word)).unwrap();
            team.receive(0, 3, &mut word).unwrap();
            team.receive(0, 1, &mut theirs).unwrap();
            assert!(theirs.iter().all(|&byte| byte == 7));
            team.receive(0, 5, &mut word).unwrap();
            team.receive(0, 4, &mut theirs).unwrap();
            assert!(theirs.iter().all(|&byte| byte == 9));
        }
    }
}

fn probes_find_messages_and_take_them(world: &World) {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    if me != 0 {
        for bytes in [3, 500, 60_000] {
            team.send(0, me as u32, &data(me, 0, 0, bytes)).unwrap();
        }
    } else {
        assert_eq!(team.try_probe(0, Any).unwrap(), None);
        for bytes in [3, 500, 60_000] {
            for from in (1..n).rev() {
                let found = team.probe(from, Any).unwrap();
                assert_eq!(found, Received { source: from, tag: from as u32, bytes });
                assert_eq!(team.probe(from, from as u32).unwrap(), found);
                let message = team.match_message(from, Any).unwrap();
                assert_eq!(message.received(), found);
                // It is taken: what follows from this PE, if anything, is another message.
                assert_ne!(team.try_probe(from, Any).unwrap(), Some(found));
                let mut room = vec![0; bytes];
                assert_eq!(message.receive(&mut room).unwrap(), found);
                assert!(is_whole(found, me, 0, &room));
            }
        }
        assert!(team.try_match_message(Any, Any).unwrap().is_none());
    }
    world.barrier();
}

/// Also one that nobody would receive in its place: a synchronous or a long one.
fn a_matched_message_that_is_dropped_is_over_for_its_sender(world: &World) {
    let team = world.team();
    if world.my_pe() == 1 {
        for bytes in [3, 60_000, 300_000] {
            team.send(0, 1, &vec![1_u8; bytes]).unwrap();
            team.send_synchronous(0, 2, &vec![2_u8; bytes]).unwrap();
        }
        team.send(0, 3, &[3_u8]).unwrap();
    } else {
        for bytes in [3, 60_000, 300_000] {
            for tag in [1, 2] {
                let message = team.match_message(1, Any).unwrap();
                assert_eq!(message.received(), Received { source: 1, tag, bytes });
            }
        }
        assert_eq!(team.receive(1, 3, &mut [0_u8]).unwrap().bytes, 1);
        // To oneself.
        team.send(0, 4, &[4_u8]).unwrap();
        drop(team.match_message(0, 4).unwrap());
        assert_eq!(message::unexpected(world), 0);
    }
    world.barrier();
}

/// All send to PE 0, which receives when all have met or, between mapped PEs, cannot meet before it receives.
fn a_flood_of_unexpected_messages_is_kept_in_order(world: &World) {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    let count = common::rounds(world, 20_000, 300) as u32;
    if me != 0 {
        for number in 0..count {
            let words = [number; 20];
            team.send(0, number % 3, &words[..number as usize % 20 + 1]).unwrap();
        }
        return;
    }
    let (mut room, mut seen) = ([0u32; 20], vec![0; n]);
    for _ in 0..count as usize * (n - 1) {
        let received = team.receive(Any, Any, &mut room).unwrap();
        let number = seen[received.source];
        seen[received.source] += 1;
        assert_eq!((received.tag, received.count::<u32>()), (number % 3, number as usize % 20 + 1));
        assert!(room[..received.count::<u32>()].iter().all(|&word| word == number));
    }
}

/// In the full tier there are 10^6 messages, except over simulated networks: see
/// [`a_million_messages_flood_one_on_simulated_networks`].
fn seven_pes_flood_one_that_receives_late(world: &World) {
    let is_whole = cfg!(feature = "full") && !world.is_simulated();
    flood_late(world, if is_whole { A_SEVENTH } else { common::rounds(world, 3_000, 60) }, 60 << 20);
}

/// They take more than a minute for each network, so they are sent over one of each kind.
#[cfg(feature = "full")]
#[test]
fn a_million_messages_flood_one_on_simulated_networks() {
    let nodes = SimParams { maps_nodes: true, ..SimParams::chaos(1) }.on_nodes(8, 2);
    for network in [SimParams::chaos(0), nodes] {
        Spmd::new(8).sim(network).run(|world| flood_late(world, A_SEVENTH, 60 << 20)).unwrap();
    }
}

/// The messages of each of seven PEs that send 10^6.
const A_SEVENTH: u64 = 142_858;

/// The messages of 8 bytes of each PE that another one keeps in this memory: 128 bytes a message.
fn kept_max(n: usize, memory: usize) -> usize {
    memory / n / 128
}

/// PE 0 keeps no more than its memory for unexpected messages holds, receives all of them later, `count` of
/// each other PE, and each PE's in order.
fn flood_late(world: &World, count: u64, memory: usize) {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    if me != 0 {
        return (0..count).for_each(|number| team.send(0, 0, &[number]).unwrap());
    }
    let mut word = [0_u64];
    let mut most = 0;
    for _ in 0..2_000 {
        world.progress();
        // Opens the state of messages without a receive for what comes.
        team.send_receive((0, 1, &[7_u64]), (0, 1, &mut word)).unwrap();
        most = most.max(message::unexpected(world));
    }
    assert!(most <= (n - 1) * kept_max(n, memory), "{most} messages are kept");
    let mut seen = vec![0; n];
    for _ in 0..count * (n as u64 - 1) {
        let source = team.receive(Any, 0, &mut word).unwrap().source;
        assert_eq!(word[0], seen[source], "of PE {source}");
        seen[source] += 1;
    }
    assert_eq!(message::unexpected(world), 0);
}

/// Sends and receives are waited for together, and are futures.
fn sends_and_receives_are_events(world: &World) {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    for &bytes in lengths(world) {
        let mine = [1, 2].map(|number| data(me, right, number, bytes));
        let mut theirs = [vec![0; bytes], vec![0; bytes]];
        let [first, second] = &mut theirs;
        let received = world.scope(|scope| {
            let first = scope.receive(&team, left, 1, first).unwrap();
            let second = scope.receive(&team, Any, 2, second).unwrap();
            let sends = [
                scope.send(&team, right, 1, &mine[0]).unwrap(),
                scope.send_synchronous(&team, right, 2, &mine[1]).unwrap(),
            ];
            event::wait_all(&[&sends[0], &first]);
            assert!(sends[0].test() && first.test());
            assert_eq!(event::wait_any(&[&second]), Some(0));
            let both = event::when_all([&second as &dyn event::Event, &sends[1]]);
            world.block_on(both.into_future());
            world.block_on(async { [first.await.unwrap(), second.await.unwrap()] })
        });
        for (number, (received, theirs)) in (1..).zip(received.into_iter().zip(&theirs)) {
            assert_eq!((received.source, received.tag as usize), (left, number), "{bytes} bytes");
            assert!(is_whole(received, me, number, theirs), "{bytes} bytes");
        }
    }
}

/// More messages than the receiver keeps are under way when it asks for the last one.
fn a_receive_finds_the_last_of_many_unexpected_messages(world: &World) {
    let (team, me) = (world.team(), world.my_pe());
    let count = common::rounds(world, 10_000, 500) as u32;
    let numbers: Vec<u32> = (0..count).collect();
    let mut number = [0u32];
    if me == 0 {
        world.scope(|scope| {
            for number in numbers.chunks(1) {
                scope.send(&team, 1, 1, number).unwrap();
            }
            scope.send(&team, 1, 2, &numbers[..1]).unwrap();
        });
    } else {
        team.receive(0, 2, &mut number).unwrap();
        for expected in 0..count {
            team.receive(0, 1, &mut number).unwrap();
            assert_eq!(number, [expected]);
        }
    }
}

fn teams_keep_their_messages_apart(world: &World) {
    let (all, me) = (world.team(), world.my_pe());
    let pair = all.split_by(Some(me as u64 % 2), -(me as i64)).unwrap().unwrap();
    let reversed = all.split_strided(3, -1, 4).unwrap().unwrap();
    let partner = pair.pe(1 - pair.my_rank());
    let mine = [me as u32, 0, 1, 2].map(|word| word + me as u32 * 10);
    let mut words = [0u32; 3];
    world.scope(|scope| {
        for (word, team) in mine[1..].chunks(1).zip([&all, &pair, &reversed]) {
            scope.send(team, team.rank_of(partner).unwrap(), 0, word).unwrap();
        }
        // In another order than they were sent in.
        for (word, team) in words.chunks_mut(1).zip([&reversed, &all, &pair]) {
            let received = team.receive(Any, 0, word).unwrap();
            assert_eq!(team.pe(received.source), partner);
        }
    });
    assert_eq!(words.map(|word| word - 10 * partner as u32), [2, 0, 1]);
}

fn mistakes_are_errors(world: &World) {
    let (team, me) = (world.team(), world.my_pe());
    let text = |error: Option<pelago::Error>| error.map(|error| error.to_string()).unwrap_or_default();
    let (data, mut room) = ([1u8; 100], [0u8; 60]);
    let error = text(team.send(2, 0, &data).err());
    assert!(error.contains("send names PE 2, but the job has 2 PEs"), "{error}");
    assert!(text(team.receive(7, 0, &mut room).err()).contains("receive names PE 7"));
    assert!(text(team.probe(2, Any).err()).contains("probe names PE 2"));
    for error in [
        text(team.send(1, u32::MAX, &data).err()),
        text(team.receive(1, u32::MAX, &mut room).err()),
        text(team.try_probe(Any, u32::MAX).err()),
    ] {
        assert!(error.contains("which stands for any tag"), "{error}");
    }
    // A refused send leaves no receive behind, for which this PE would wait.
    let error = text(team.send_receive((9, 0, &data), (1 - me, 0, &mut room)).err());
    assert!(error.contains("send_receive names PE 9"), "{error}");
    let error = text(team.send_receive((1, u32::MAX, &data), (1 - me, 0, &mut room)).err());
    assert!(error.contains("which stands for any tag"), "{error}");
    let alone = team.split_by(Some(me as u64), 0).unwrap().unwrap();
    let error = text(alone.send(1, 0, &data).err());
    assert!(error.contains("names rank 1, but the team has the ranks 0 to 0"), "{error}");
    let other = 1 - me;
    for bytes in [100, 50_000] {
        let long = vec![5u8; bytes];
        world.scope(|scope| {
            scope.send(&team, other, 9, &long).unwrap();
            let error = text(team.receive(other, Any, &mut room).err());
            let part = format!(
                "a message of {bytes} bytes from PE {other} with tag 9 was received into a slice of 60"
            );
            assert!(error.contains(&part), "{error}");
        });
        assert_eq!(room, [5; 60]);
        room.fill(0);
    }
    world.scope(|scope| {
        let receive = scope.receive(&team, other, 77, &mut room).unwrap();
        assert!(!receive.test());
        assert_eq!(receive.cancel().unwrap(), None);
    });
    world.barrier();
}

fn a_pe_sends_to_itself(world: &World) {
    let team = world.team();
    for &bytes in lengths(world) {
        let (mine, mut theirs) = (data(0, 0, 1, bytes), vec![0; bytes]);
        let received = team.send_receive((0, 1, &mine), (0, 1, &mut theirs)).unwrap();
        assert_eq!((received, &theirs), (Received { source: 0, tag: 1, bytes }, &mine));
        team.send_buffered(0, 2, &mine).unwrap();
        assert_eq!(team.probe(Any, Any).unwrap().bytes, bytes);
        theirs.fill(0);
        team.receive(0, 2, &mut theirs).unwrap();
        assert_eq!(theirs, mine);
        world.scope(|scope| {
            let send = scope.send_synchronous(&team, 0, 3, &mine).unwrap();
            assert!(!send.test());
            team.receive(0, 3, &mut theirs).unwrap();
            assert!(send.test());
        });
    }
}

/// Threads of both PEs send and receive. In the end nothing counts as waiting to be sent, for which the end
/// of the job would wait.
fn threads_that_send_leave_nothing_busy(world: &World) {
    const THREADS: u32 = 4;
    let (team, other) = (world.team(), 1 - world.my_pe());
    for _ in 0..common::rounds(world, 200, 2) {
        let exchange = |tag: u32| {
            let mut room = [0];
            for number in 0..5_u32 {
                team.send(other, tag, &[number]).unwrap();
                team.receive(other, tag, &mut room).unwrap();
                assert_eq!(room, [number]);
            }
        };
        std::thread::scope(|scope| (0..THREADS).for_each(|tag| drop(scope.spawn(move || exchange(tag)))));
        world.barrier();
        // The service thread may be sending an answer.
        let is_idle = || {
            world.quiet();
            pelago::testing::busy_peers(world) == 0
        };
        assert!((0..1000).any(|_| is_idle()), "a PE counts as one for which something waits");
    }
}

#[test]
fn little_memory_holds_few_unexpected_messages() {
    let body = |world: &World| flood_late(world, common::rounds(world, 3_000, 300), 64 << 10);
    let spmd = Spmd::new(3).setting("PELAGO_UNEXPECTED_MEMORY", "64k");
    spmd.run(body).unwrap();
    common::over_seeds_with(&spmd, 4, body);
}

/// The memory holds 256 messages without data of each PE. Dropped ones do not count.
#[test]
fn messages_that_are_dropped_leave_room_for_others() {
    const COUNT: u32 = 200;
    let body = |world: &World| {
        let team = world.team();
        for round in 0..3 {
            if world.my_pe() == 1 {
                (0..COUNT).for_each(|_| team.send::<u8>(0, round, &[]).unwrap());
            }
            world.barrier();
            if world.my_pe() == 0 {
                (0..COUNT).for_each(|_| drop(team.match_message(1, round).unwrap()));
            }
        }
        world.barrier();
    };
    let spmd = Spmd::new(2).setting("PELAGO_UNEXPECTED_MEMORY", "64k");
    common::over_seeds_with(&spmd, 2, body);
}

/// A program may send thousands of short messages before it receives any.
#[test]
fn thousands_of_short_messages_are_kept() {
    let exchange = |world: &World| {
        let (team, other) = (world.team(), 1 - world.my_pe());
        let count = common::rounds(world, 50_000, 3_000) as u32;
        (0..count).for_each(|number| team.send(other, 0, &[number]).unwrap());
        let mut word = [0_u32];
        for number in 0..count {
            team.receive(other, 0, &mut word).unwrap();
            assert_eq!(word, [number]);
        }
    };
    Spmd::new(2).run(exchange).unwrap();
    common::over_seeds_with(&Spmd::new(2), 2, exchange);
}

/// On a node, what a PE takes before a receive asks for it is copied twice.
#[test]
fn a_wait_takes_no_more_messages_than_the_posted_receives_need() {
    let are_sent = AtomicBool::new(false);
    let body = |world: &World| {
        let team = world.team();
        if world.my_pe() == 0 {
            for number in 0..8 {
                team.send(1, number, &[number; 100]).unwrap();
            }
            are_sent.store(true, Ordering::Release);
            return world.barrier();
        }
        // A wait of the library would make progress.
        while !are_sent.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let mut room = [0_u32; 100];
        team.receive(0, 2, &mut room).unwrap();
        assert_eq!(room, [2; 100]);
        assert_eq!(message::unexpected(world), 2, "messages 0 and 1 stand before it");
        for number in [0, 1, 3, 4, 5, 6, 7] {
            team.receive(0, number, &mut room).unwrap();
            assert_eq!(room, [number; 100]);
        }
        world.barrier();
    };
    Spmd::new(2).run(body).unwrap();
}

/// With little memory for unexpected messages, and no eager messages at all.
#[test]
fn small_limits_change_no_outcome() {
    let bodies = [
        messages_are_received_in_the_order_sent,
        a_flood_of_unexpected_messages_is_kept_in_order,
        a_receive_finds_the_last_of_many_unexpected_messages,
        random_messages_arrive_whole,
    ];
    for (n, body) in [3, 3, 2, 4].into_iter().zip(bodies) {
        for (variable, value) in [("PELAGO_UNEXPECTED_MEMORY", "64k"), ("PELAGO_EAGER_LIMIT", "0")] {
            let spmd = Spmd::new(n).setting(variable, value);
            spmd.run(body).unwrap();
            common::over_seeds_with(&spmd, 4, body);
        }
    }
}

/// Longer eager messages, which are announced if they find no room. Without reads they have up to 32 KiB on
/// every machine.
#[test]
fn messages_without_room_are_announced_in_order() {
    let settings = [("PELAGO_SINGLE_COPY", "off")];
    let report = pelago::try_processes!(2, settings, |world| {
        let (team, me) = (world.team(), world.my_pe());
        let bytes = |number: usize| if number % 3 == 2 { 8 } else { (32 << 10) - number };
        let sent: Vec<_> = (0..60).map(|number| data(me, 1 - me, number, bytes(number))).collect();
        world.scope(|scope| {
            for (number, data) in sent.iter().enumerate() {
                match number % 4 {
                    0 => drop(scope.send_synchronous(&team, 1 - me, number as u32, data).unwrap()),
                    _ => drop(scope.send(&team, 1 - me, number as u32, data).unwrap()),
                }
            }
            let mut room = vec![0; 32 << 10];
            for number in 0..sent.len() {
                let received = team.receive(Any, Any, &mut room).unwrap();
                assert_eq!((received.tag as usize, received.bytes), (number, bytes(number)));
                assert!(is_whole(received, me, number, &room), "message {number}");
            }
        });
    });
    pelago::testing::expect_success(&report);
}

/// A test has seen it, and nobody has asked for the outcome.
#[test]
fn a_message_that_is_too_long_is_reported_at_the_end_of_the_scope() {
    let error = Spmd::new(2)
        .run(|world| {
            let (team, mut room) = (world.team(), [0_u8; 2]);
            match world.my_pe() {
                0 => team.send(1, 0, &[1_u8; 5]).unwrap(),
                _ => world.scope(|scope| {
                    let receive = scope.receive(&team, 0, 0, &mut room).unwrap();
                    while !receive.test() {}
                }),
            }
        })
        .unwrap_err()
        .to_string();
    assert!(error.contains("a message of 5 bytes from PE 0") && error.contains("of 2 bytes"), "{error}");
}

/// The message that a panicking scope waits for never comes: the job ends, and names the panic.
#[test]
fn a_panic_in_a_scope_with_a_receive_ends_the_job() {
    let error = Spmd::new(2)
        .run(|world| {
            let (team, mut room) = (world.team(), [0_u8; 2]);
            if world.my_pe() == 0 {
                world.scope(|scope| {
                    let _receive = scope.receive(&team, 1, 0, &mut room).unwrap();
                    panic!("the first mistake");
                });
            }
            team.receive(0, 0, &mut [0_u8]).map(drop).unwrap();
        })
        .unwrap_err()
        .to_string();
    assert!(error.contains("the first mistake"), "{error}");
}

/// A message of a PE that a shrink has removed is no message of the team.
#[test]
fn a_message_of_a_former_member_is_named() {
    let outcome = Spmd::new(3).run(|world| {
        let team = world.team().split_by(Some(0), 0).unwrap().unwrap();
        if world.my_pe() == 2 {
            team.send(0, 5, &[1_u8]).unwrap();
            team.send(0, 6, &[1_u8]).unwrap();
        }
        world.barrier();
        let smaller = team.shrink(2).unwrap().filter(|_| world.my_pe() == 0);
        let errors = smaller.map(|team| {
            let received = team.receive(Any, Any, &mut [0_u8]).unwrap_err();
            [received, team.match_message(Any, Any).err().unwrap()].map(|error| error.to_string())
        });
        world.barrier();
        errors
    });
    for error in outcome.unwrap()[0].clone().unwrap() {
        assert!(error.contains("of PE 2, which has left the team by a shrink"), "{error}");
    }
}

#[test]
fn a_receive_that_nobody_serves_ends_the_job() {
    let error = Spmd::new(2)
        .run(|world| -> Result<()> {
            if world.my_pe() == 0 {
                world.team().receive(1, 0, &mut [0u8])?;
            }
            Ok(())
        })
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(error.contains("a message from PE 1"), "{error}");
}
