//! Long messages that their receiver and their sender copy at the same time.

use std::num::NonZero;
use std::thread::available_parallelism;

use pelago::prelude::*;

everywhere! {
    both_ends(2): long_messages_arrive_whole;
}

/// Lengths about the shortest one of a shared copy, and longer ones that end inside a page.
const LENGTHS: [usize; 6] = [24_575, 24_576, 24_577, 65_549, 300_000, 1_052_673];

fn data(from: usize, number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i / 4096 + 3 * i + 7 * from + 31 * number) as u8).collect()
}

/// Fails at the first byte that is wrong.
#[track_caller]
fn same(found: &[u8], expected: &[u8], number: usize) {
    let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
    assert_eq!((wrong, found.len()), (None, expected.len()), "the first wrong byte of message {number}");
}

/// In one direction, where the sender waits; and in both at once, where each receives. The room is longer
/// than the message, of its length, or shorter; and does not begin where a page or a word does.
fn long_messages_arrive_whole(world: &World) {
    let (team, me) = (world.team(), world.my_pe());
    let rounds = common::rounds(world, 4, 1) as usize;
    for (number, &bytes) in LENGTHS.iter().cycle().take(rounds * LENGTHS.len()).enumerate() {
        let (mine, theirs) = (data(me, number, bytes), data(1 - me, number, bytes));
        let mut room = vec![0xee; bytes + 100];
        for room_bytes in [bytes - 5000, bytes, bytes + 9] {
            let place = number % 7..number % 7 + room_bytes;
            let copied = bytes.min(room_bytes);
            if number % 2 == me {
                team.send(1 - me, 1, &mine).unwrap();
            } else {
                let received = team.receive(1 - me, 1, &mut room[place.clone()]);
                assert_eq!(received.is_ok(), copied == bytes, "{received:?} of {bytes} bytes");
                same(&room[place.start..][..copied], &theirs[..copied], number);
                assert!(
                    room[place.start + copied..].iter().all(|&byte| byte == 0xee),
                    "nothing else is written"
                );
                room.fill(0xee);
            }
        }
        let place = &mut room[number % 5..][..bytes];
        team.send_receive((1 - me, 2, &mine), (1 - me, 2, &mut *place)).unwrap();
        same(place, &theirs, number);
    }
}

/// The sender of long messages waits, and has copied a part of one in the end, if the system lets processes
/// access the memory of each other and each has a core.
#[test]
fn a_sender_that_waits_copies_a_part() {
    pelago::processes!(2, |world: &World| {
        const MESSAGES_MAX: usize = 20_000;
        let (team, me) = (world.team(), world.my_pe());
        let mut theirs = [0_u64];
        let own = Box::new(0x5eed_u64);
        let address = &raw const *own as u64;
        pelago::testing::permit_access();
        team.send_receive((1 - me, 1, &[address]), (1 - me, 1, &mut theirs)).unwrap();
        let can_access = pelago::testing::reads_memory(world, 1 - me, theirs[0]);
        let is_possible = can_access && available_parallelism().map_or(1, NonZero::get) > 1;
        let (long, mut room) = (data(0, 1, 1 << 20), vec![0; 1 << 20]);
        for number in 1.. {
            let mut is_over = [0_u8];
            if me == 0 {
                team.send(1, 2, &long).unwrap();
                let has_helped = pelago::testing::helped_parts(world) > 0;
                assert!(is_possible || !has_helped, "the system does not permit it");
                is_over = [u8::from(has_helped || !is_possible)];
                assert!(is_over[0] == 1 || number < MESSAGES_MAX, "no part of {number} messages was copied");
                team.send(1, 3, &is_over).unwrap();
            } else {
                room.fill(0);
                team.receive(0, 2, &mut room).unwrap();
                assert!(room == long, "message {number}");
                team.receive(0, 3, &mut is_over).unwrap();
            }
            if is_over[0] == 1 {
                break;
            }
        }
        world.barrier();
        drop(own);
    });
}
