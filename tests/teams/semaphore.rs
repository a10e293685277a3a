//! Semaphores of all kinds: no post is lost or taken twice, a waiting PE sees the poster's earlier
//! operations, data are delivered before the post that follows them, and misuse is reported.

use crate::common;
use pelago::prelude::*;
use pelago::upc::{BlockSize, SemaphoreKind, Semaphores};
use pelago::{ErrorKind, Spmd};

everywhere! {
    ping_pong(2): ping_pong;
    ring(4): ring;
    producers_and_consumers(5): producers_and_consumers;
    one_consumer(4): one_consumer;
    seen_on_a_third(3): seen_on_a_third;
    data_before_the_post(3): data_before_the_post;
    without_waiting_for_the_source(2): without_waiting_for_the_source;
    bounded_buffer(2): bounded_buffer;
    tries(3): tries;
    locks(4): locks;
    in_a_space(4): in_a_space;
    shared_slabs(3): shared_slabs;
}

const INTEGER: SemaphoreKind = SemaphoreKind::integer();
const BOOLEAN: SemaphoreKind = SemaphoreKind::boolean();

fn kinds() -> [SemaphoreKind; 8] {
    let with = |kind: SemaphoreKind| {
        [kind, kind.single_producer(), kind.single_consumer(), kind.single_producer().single_consumer()]
    };
    let ([a, b, c, d], [e, f, g, h]) = (with(INTEGER), with(BOOLEAN));
    [a, b, c, d, e, f, g, h]
}

/// Two PEs in turn, over every kind; a semaphore orders a plain put before it.
fn ping_pong(world: &World) {
    let (me, other) = (world.my_pe(), 1 - world.my_pe());
    let data = world.alloc_zeroed::<u64>(20).unwrap();
    for kind in kinds() {
        let semaphores = world.semaphores(2, kind).unwrap();
        let (mine, theirs) = (semaphores.at(me, 1).unwrap(), semaphores.at(other, 1).unwrap());
        for round in 1..=common::rounds(world, 200, 4) {
            if me == 0 {
                data.put(1, 0, &[round; 20]).unwrap();
                theirs.post().unwrap();
                mine.wait().unwrap();
                assert_eq!(data.local().to_vec(), [round + 1; 20], "{kind:?}");
            } else {
                mine.wait().unwrap();
                assert_eq!(data.local().to_vec(), [round; 20], "{kind:?}");
                data.put(0, 0, &[round + 1; 20]).unwrap();
                theirs.post().unwrap();
            }
        }
        assert!(!mine.try_wait().unwrap(), "{kind:?}: nothing is left");
        world.barrier();
    }
}

/// Each PE posts several times to the next one, before that PE takes all at once.
fn ring(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    for kind in kinds().into_iter().take(4) {
        let semaphores = world.semaphores(1, kind).unwrap();
        for round in 1..=common::rounds(world, 100, 3) {
            let next = semaphores.at((me + 1) % n, 0).unwrap();
            next.post().unwrap();
            next.post_n(round).unwrap();
            next.post_n(0).unwrap();
            let mine = semaphores.at(me, 0).unwrap();
            mine.wait_n(0).unwrap();
            mine.wait_n(1 + round).unwrap();
        }
        world.barrier();
        assert!(!semaphores.at(me, 0).unwrap().try_wait().unwrap(), "{kind:?}");
        world.barrier();
    }
}

/// All PEs post and wait, on one semaphore each; the sums agree, and no post is left.
fn producers_and_consumers(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let semaphores = world.semaphores(1, INTEGER).unwrap();
    let rounds = common::rounds(world, 300, 3);
    for round in 0..rounds {
        // Each PE posts 1 to 3 to every semaphore, and takes as much from every semaphore, in pieces.
        let amount = 1 + (round + me as u64) % 3;
        for pe in 0..n {
            semaphores.at((pe + me) % n, 0).unwrap().post_n(amount).unwrap();
        }
        for pe in 0..n {
            let semaphore = semaphores.at((2 * pe + me) % n, 0).unwrap();
            (0..amount).for_each(|_| semaphore.wait().unwrap());
        }
    }
    world.barrier();
    for pe in 0..n {
        assert!(!semaphores.at(pe, 0).unwrap().try_wait().unwrap(), "PE {pe} has something left");
    }
    world.barrier();
}

/// Many PEs post to one, which takes more at once than each gives.
fn one_consumer(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let semaphores = world.semaphores(3, INTEGER.single_consumer()).unwrap();
    let flags = world.semaphores(n, BOOLEAN).unwrap();
    let rounds = common::rounds(world, 300, 4);
    let semaphore = semaphores.at(0, 2).unwrap();
    let each = (1..n as u64).sum::<u64>();
    for round in 1..=rounds {
        if me == 0 {
            semaphore.wait_n(each).unwrap();
            assert!(!semaphore.try_wait().unwrap(), "round {round}");
            for pe in 1..n {
                // Boolean posts of many, taken one by one elsewhere.
                flags.at(pe, 0).unwrap().post().unwrap();
                flags.at(0, pe).unwrap().wait().unwrap();
            }
        } else {
            semaphore.post_n(me as u64).unwrap();
            flags.at(me, 0).unwrap().wait().unwrap();
            flags.at(0, me).unwrap().post().unwrap();
        }
    }
    world.barrier();
}

/// Data that the poster has put to a third PE are visible to the PE that has waited for the post.
fn seen_on_a_third(world: &World) {
    let me = world.my_pe();
    let data = world.alloc_zeroed::<u64>(7).unwrap();
    for kind in kinds() {
        let [there, back] = [(); 2].map(|()| world.semaphores(1, kind).unwrap());
        let base = world.my_pe() as u64;
        for round in 1..=common::rounds(world, 100, 4) {
            if me == 0 {
                data.put(2, 0, &[round + base; 7]).unwrap();
                there.at(1, 0).unwrap().post().unwrap();
                back.at(0, 0).unwrap().wait().unwrap();
            } else if me == 1 {
                there.at(1, 0).unwrap().wait().unwrap();
                let mut seen = [0; 7];
                data.get(2, 0, &mut seen).unwrap();
                assert_eq!(seen, [round; 7], "{kind:?}");
                back.at(0, 0).unwrap().post().unwrap();
            }
        }
        world.barrier();
    }
}

/// memput_signal: the source may be reused at once, and the data are delivered when the wait returns. Posts
/// and puts that signal are counted together.
fn data_before_the_post(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let data = world.alloc_zeroed::<u64>(200).unwrap();
    for kind in kinds() {
        let [full, empty] = [(); 2].map(|()| world.semaphores(1, kind).unwrap());
        let (next, before) = ((me + 1) % n, (me + n - 1) % n);
        let mut source = [0; 200];
        for round in 1..=common::rounds(world, 100, 3) {
            source.fill(round);
            full.at(next, 0).unwrap().memput_signal(&data, 0, &source, 1).unwrap();
            source.fill(u64::MAX);
            full.at(me, 0).unwrap().wait().unwrap();
            assert!(data.local().to_vec().iter().all(|&word| word == round), "{kind:?}, round {round}");
            empty.at(before, 0).unwrap().post().unwrap();
            empty.at(me, 0).unwrap().wait().unwrap();
        }
        world.barrier();
    }
    let sum = world.semaphores(1, INTEGER.single_producer().single_consumer()).unwrap();
    let there = sum.at((me + 1) % n, 0).unwrap();
    there.post_n(3).unwrap();
    there.memput_signal(&data, 0, &[1; 5], 4).unwrap();
    there.memput_signal(&data, 0, &[], 2).unwrap();
    there.post().unwrap();
    sum.at(me, 0).unwrap().wait_n(10).unwrap();
    assert!(!sum.at(me, 0).unwrap().try_wait().unwrap());
    world.barrier();
}

/// The asynchronous forms: the source stays unchanged until its receiver has acknowledged it.
fn without_waiting_for_the_source(world: &World) {
    let (me, other) = (world.my_pe(), 1 - world.my_pe());
    let data = world.alloc_zeroed::<u64>(500).unwrap();
    for kind in [INTEGER, BOOLEAN.single_consumer(), INTEGER.single_producer().single_consumer()] {
        let [full, empty] = [(); 2].map(|()| world.semaphores(1, kind).unwrap());
        let (mine, theirs) = (full.at(me, 0).unwrap(), full.at(other, 0).unwrap());
        let mut source = vec![0u64; 500];
        for round in 1..=common::rounds(world, 50, 4) {
            source.fill(round);
            // SAFETY: the source is written again only after its receiver has replied, below.
            unsafe { theirs.memput_signal_async(&data, 0, &source, 1) }.unwrap();
            mine.wait().unwrap();
            assert!(data.local().to_vec().iter().all(|&word| word == round), "{kind:?}, round {round}");
            empty.at(other, 0).unwrap().post().unwrap();
            empty.at(me, 0).unwrap().wait().unwrap();
        }
        let halves = [[7u64; 250], [8; 250]];
        world.scope(|scope| {
            theirs.memput_signal_within(scope, &data, 0, &halves[0], 1).unwrap();
            mine.wait().unwrap();
            empty.at(other, 0).unwrap().post().unwrap();
            empty.at(me, 0).unwrap().wait().unwrap();
            theirs.memput_signal_within(&scope.region(), &data, 250, &halves[1], 1).unwrap();
            mine.wait().unwrap();
        });
        assert_eq!([data.local().get(249), data.local().get(250)], [7, 8]);
        world.barrier();
    }
}

/// A producer and a consumer with a ring of slots between them: neither runs over the other.
fn bounded_buffer(world: &World) {
    const SLOTS: u64 = 4;
    let kind = INTEGER.single_producer().single_consumer();
    let [full, free] = [(); 2].map(|()| world.semaphores(1, kind).unwrap());
    let slots = world.alloc_zeroed::<u64>(SLOTS as usize).unwrap();
    let items = common::rounds(world, 2000, 20);
    if world.my_pe() == 0 {
        let (full, free) = (full.at(1, 0).unwrap(), free.at(0, 0).unwrap());
        for item in 0..items {
            if item >= SLOTS {
                free.wait().unwrap();
            }
            full.memput_signal(&slots, (item % SLOTS) as usize, &[item + 1], 1).unwrap();
        }
    } else {
        let (full, free) = (full.at(1, 0).unwrap(), free.at(0, 0).unwrap());
        for item in 0..items {
            full.wait().unwrap();
            // Over a network one put may overtake another: the post shows that a put was delivered, not
            // which.
            slots.local().wait_until((item % SLOTS) as usize, |value| value == item + 1);
            free.post().unwrap();
        }
    }
    world.barrier();
}

/// A try takes only existing posts, and takes each once.
fn tries(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let semaphores = world.semaphores(1, INTEGER).unwrap();
    let taken = world.alloc_zeroed::<u64>(1).unwrap();
    let all = 40 * n as u64;
    semaphores.at(0, 0).unwrap().post_n(40).unwrap();
    let semaphore = semaphores.at(0, 0).unwrap();
    while taken.atomic_fetch(0, 0).unwrap() < all {
        for amount in [3, 1] {
            if semaphore.try_wait_n(amount).unwrap() {
                taken.add(0, 0, amount).unwrap();
            }
        }
    }
    world.barrier();
    assert_eq!(taken.atomic_fetch(0, 0).unwrap(), all);
    assert!(!semaphore.try_wait().unwrap());
    world.barrier();
    // Posts of a boolean semaphore before a wait count as one.
    for kind in kinds().into_iter().skip(4) {
        let flags = world.semaphores(1, kind).unwrap();
        let mine = flags.at(me, 0).unwrap();
        (0..3).for_each(|_| flags.at((me + 1) % n, 0).unwrap().post().unwrap());
        world.barrier();
        assert!(mine.try_wait().unwrap() && !mine.try_wait().unwrap(), "{kind:?}");
        world.barrier();
    }
}

/// A semaphore for multiple consumers with value 1 is a lock: only one PE holds it.
fn locks(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let count = world.alloc_zeroed::<u64>(1).unwrap();
    for (turn, kind) in [INTEGER, BOOLEAN].into_iter().enumerate() {
        let semaphores = world.semaphores(1, kind).unwrap();
        let semaphore = semaphores.at(n - 1, 0).unwrap();
        if me == 0 {
            semaphore.post().unwrap();
        }
        let rounds = common::rounds(world, 2000, 10);
        for round in 0..rounds {
            match round % 2 {
                0 => semaphore.wait().unwrap(),
                _ => while !semaphore.try_wait().unwrap() {},
            }
            count.p(0, 0, count.g(0, 0).unwrap() + 1).unwrap();
            semaphore.post().unwrap();
        }
        world.barrier();
        assert_eq!(count.g(0, 0).unwrap(), (turn as u64 + 1) * rounds * n as u64, "{kind:?}");
        world.barrier();
    }
}

/// Semaphores of a team number its PEs by rank.
fn in_a_space(world: &World) {
    let team =
        world.team().split_by(Some(world.my_pe() as u64 % 2), -(world.my_pe() as i64)).unwrap().unwrap();
    let space = team.space(1 << 16).unwrap();
    let (me, other) = (team.my_rank(), 1 - team.my_rank());
    for kind in kinds() {
        let semaphores = space.semaphores(2, kind).unwrap();
        let data = space.alloc_zeroed::<u32>(10).unwrap();
        let theirs = semaphores.at(other, 1).unwrap();
        theirs.memput_signal(&data, 0, &[world.my_pe() as u32; 10], 1).unwrap();
        semaphores.at(me, 1).unwrap().wait().unwrap();
        assert_eq!(data.local().get(9) as usize, team.pe(other));
        team.barrier();
        // An array of the world has its part of rank 0 elsewhere, unless the team begins as the world does.
        let alien = semaphores.at(0, 0).unwrap();
        assert_eq!(semaphores.at(2, 0).is_err(), team.n_pes() < 3);
        assert_eq!(alien.threadof(), 0);
        team.barrier();
    }
    world.barrier();
    let outside = world.alloc_zeroed::<u32>(10).unwrap();
    let semaphores = space.semaphores(1, INTEGER).unwrap();
    let error = semaphores.at(0, 0).unwrap().memput_signal(&outside, 0, &[1], 1).unwrap_err();
    assert!(error.to_string().contains("the array has no part on PE"), "{error}");
    world.barrier();
}

/// Blocks of a shared array, each with a semaphore at its owner.
fn shared_slabs(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.shared_array::<u64>(8 * n, BlockSize::Of(4)).unwrap();
    let semaphores = world.semaphores(1, INTEGER.single_consumer()).unwrap();
    let block = 4 * ((me + 1) % n);
    let semaphore = semaphores.at((me + 1) % n, 0).unwrap();
    array.memput_signal(block, &[me as u64 + 1; 4], &semaphore, 1).unwrap();
    array.memput_signal(block + 4 * n + 1, &[me as u64 + 1; 3], &semaphore, 1).unwrap();
    semaphores.at(me, 0).unwrap().wait_n(2).unwrap();
    let from = ((me + n - 1) % n) as u64 + 1;
    assert_eq!(array.local().to_vec(), [from, from, from, from, 0, from, from, from]);
    for (index, count) in [(block, 5), (block + 3, 2), ((block + 4) % (4 * n), 2)] {
        let error = array.memput_signal(index, &vec![9; count], &semaphore, 1).unwrap_err();
        assert!(error.to_string().contains("do not all lie together on PE"), "{error}");
    }
    assert!(array.memput_signal(8 * n - 1, &[1, 2], &semaphore, 1).is_err());
    world.barrier();
}

fn reason(error: pelago::Error) -> String {
    match error.kind() {
        ErrorKind::BadSemaphore { me, operation, pe, index, reason } => {
            let start = format!("PE {me}: {operation} of semaphore {index} of PE {pe} refused: ");
            assert_eq!(error.to_string(), start + reason);
            format!("{operation}: {reason}")
        }
        _ => panic!("another error: {error}"),
    }
}

#[test]
fn misuse_is_told() {
    let body = |world: &World| {
        let (me, other) = (world.my_pe(), 1 - world.my_pe());
        let (flags, counts) = (world.semaphores(2, BOOLEAN).unwrap(), world.semaphores(2, INTEGER).unwrap());
        let data = world.alloc_zeroed::<u8>(4).unwrap();
        let flag = flags.at(me, 1).unwrap();
        let count = counts.at(me, 1).unwrap();
        assert!(reason(flag.post_n(1).unwrap_err()).starts_with("post_n: it is boolean"));
        assert!(reason(flag.wait_n(1).unwrap_err()).starts_with("wait_n: it is boolean"));
        assert!(reason(flag.try_wait_n(1).unwrap_err()).starts_with("try_wait_n: it is boolean"));
        for n in [0, 2, u64::MAX] {
            let put = flag.memput_signal(&data, 0, &[1], n).unwrap_err();
            assert!(reason(put).contains(&format!("takes 1 at a time, not {n}")));
        }
        for n in [Semaphores::MAX + 1, u64::MAX] {
            assert!(reason(count.post_n(n).unwrap_err()).contains("the greatest value"));
            assert!(reason(count.wait_n(n).unwrap_err()).contains("the greatest value"));
            assert!(reason(count.try_wait_n(n).unwrap_err()).contains("the greatest value"));
            assert!(
                reason(count.memput_signal(&data, 0, &[1], n).unwrap_err()).contains("the greatest value")
            );
        }
        assert!(reason(counts.at(0, 2).unwrap_err()).contains("there are 2 on each PE"));
        assert!(matches!(counts.at(2, 0).unwrap_err().kind(), ErrorKind::PeOutOfRange { pe: 2, .. }));
        assert!(count.memput_signal(&data, 3, &[1, 2], 1).unwrap_err().to_string().contains("3 on PE"));
        for kind in [
            INTEGER.single_consumer(),
            BOOLEAN.single_consumer(),
            INTEGER.single_consumer().single_producer(),
        ] {
            let semaphores = world.semaphores(1, kind).unwrap();
            let theirs = semaphores.at(other, 0).unwrap();
            assert!(reason(theirs.wait().unwrap_err()).contains("single consumer"));
            assert!(reason(theirs.try_wait().unwrap_err()).contains("single consumer"));
        }
        assert!(!flag.try_wait().unwrap() && !count.try_wait().unwrap(), "nothing of all this was posted");
        assert_eq!(data.local().to_vec(), [0; 4]);
        world.barrier();
    };
    spmd(2, body).unwrap();
    Spmd::new(2).sim(Default::default()).run(body).unwrap();
}

#[test]
fn an_overflow_is_told_to_who_waits() {
    let body = |world: &World| {
        let me = world.my_pe();
        for kind in kinds().into_iter().take(4) {
            let semaphores = world.semaphores(1, kind).unwrap();
            let mine = semaphores.at(me, 0).unwrap();
            mine.post_n(Semaphores::MAX).unwrap();
            mine.wait_n(Semaphores::MAX - 1).unwrap();
            mine.post_n(Semaphores::MAX).unwrap();
            world.quiet();
            let text = reason(mine.wait().unwrap_err());
            assert!(text.contains("its value has grown to 4294967296"), "{kind:?}: {text}");
            assert!(reason(mine.try_wait().unwrap_err()).contains("posted more than waited for"));
        }
    };
    spmd(2, body).unwrap();
    Spmd::new(2).sim(Default::default()).run(body).unwrap();
}

#[test]
fn two_producers_of_one_are_told() {
    let body = |world: &World| {
        let semaphores = world.semaphores(1, INTEGER.single_producer().single_consumer()).unwrap();
        let semaphore = semaphores.at(0, 0).unwrap();
        for pe in [1, 2] {
            if world.my_pe() == pe {
                semaphore.post().unwrap();
            }
            world.barrier();
            if world.my_pe() == 0 && pe == 1 {
                assert!(semaphore.try_wait().unwrap());
            }
            world.barrier();
        }
        if world.my_pe() == 0 {
            let text = reason(semaphore.wait().unwrap_err());
            assert!(text.contains("PEs 1 and 2 both post to it"), "{text}");
        }
        world.barrier();
    };
    spmd(3, body).unwrap();
    Spmd::new(3).sim(Default::default()).run(body).unwrap();
}

#[test]
fn pes_that_ask_for_different_semaphores_are_told() {
    spmd(2, |world| {
        let kind = if world.my_pe() == 0 { INTEGER } else { BOOLEAN.single_consumer() };
        let text = world.semaphores(1, kind).map(drop).unwrap_err().to_string();
        assert!(text.contains("(1 a PE, boolean, many producers, one consumer)"), "{text}");
        let text = world.semaphores(1 + world.my_pe(), INTEGER).map(drop).unwrap_err().to_string();
        assert!(text.contains("semaphores(1 a PE, integer, many producers, many consumers)"), "{text}");
    })
    .unwrap();
}

/// A wait for a post that no PE can make any more ends with an error message.
#[test]
fn a_wait_in_vain_is_told() {
    for owner in [0, 1] {
        let outcome = spmd(2, |world| {
            let semaphores = world.semaphores(1, INTEGER).unwrap();
            if world.my_pe() == 0 {
                semaphores.at(owner, 0).unwrap().wait().unwrap();
            }
        });
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("PE 0: waits for") && text.contains("no other PE is left"), "{text}");
    }
}

/// A post wakes a consumer that sleeps, at the owner and elsewhere.
#[test]
fn a_post_wakes_who_sleeps() {
    spmd(2, |world| {
        for kind in [INTEGER, BOOLEAN, INTEGER.single_consumer(), INTEGER.single_consumer().single_producer()]
        {
            let semaphores = world.semaphores(1, kind).unwrap();
            let (mine, theirs) = (semaphores.at(0, 0).unwrap(), semaphores.at(1, 0).unwrap());
            for _ in 0..5 {
                if world.my_pe() == 0 {
                    // Long enough for the other PE to fall asleep.
                    let until = std::time::Instant::now() + std::time::Duration::from_millis(3);
                    while std::time::Instant::now() < until {}
                    theirs.post().unwrap();
                    mine.wait().unwrap();
                } else {
                    theirs.wait().unwrap();
                    mine.post().unwrap();
                }
            }
            world.barrier();
        }
    })
    .unwrap();
}
