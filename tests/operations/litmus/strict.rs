//! Strict accesses: Dekker's test (SB), message passing (MP), two writers of two words (2+2W), with relaxed
//! accesses in their place where the test is run without order; and independent reads of independent writes
//! (IRIW), which relaxed gets do not violate either, because each waits for its reply.

use crate::litmus::harness::{self, Sightings, Trial, poll};
use crate::litmus::store_buffering::buffer;
use pelago::{View, World};

litmus! {
    dekker(2): dekker;
    dekker_on_a_third(3): dekker_on_a_third;
    message_passing(3): message_passing;
    two_writers(3): two_writers;
    relaxed_before_a_strict_write(3): relaxed_before_a_strict_write;
    relaxed_before_a_strict_read(2): relaxed_before_a_strict_read;
}

fn write(words: &View<'_, u64>, trial: &Trial, pe: usize, index: usize, value: u64) {
    match trial.is_without_order() {
        true => words.p(pe, index, value).unwrap(),
        false => words.strict().p(pe, index, value).unwrap(),
    }
}

fn read(words: &View<'_, u64>, trial: &Trial, pe: usize, index: usize) -> u64 {
    match trial.is_without_order() {
        true => words.g(pe, index).unwrap(),
        false => words.strict().g(pe, index).unwrap(),
    }
}

/// PEs 0 and 1 each announce themselves and check for the other: at least one of them finds the other.
fn dekker(world: &World, trial: &Trial) -> Sightings {
    announce(world, trial, |me| 1 - me, false)
}

fn dekker_on_a_third(world: &World, trial: &Trial) -> Sightings {
    announce(world, trial, |_| 2, false)
}

/// The same with relaxed writes: a strict read comes after them nevertheless.
fn relaxed_before_a_strict_read(world: &World, trial: &Trial) -> Sightings {
    announce(world, trial, |me| 1 - me, true)
}

fn announce(
    world: &World,
    trial: &Trial,
    target: impl Fn(usize) -> usize,
    writes_relaxed: bool,
) -> Sightings {
    buffer(world, trial, target, |words, [(pe, index), (other, place)], value| {
        match writes_relaxed {
            true => words.p(pe, index, value).unwrap(),
            false => write(words, trial, pe, index, value),
        }
        read(words, trial, other, place)
    })
}

/// PE 0 writes a word of PE 1 and a flag of PE 2, by which PE 1 knows that its word was delivered.
fn message_passing(world: &World, trial: &Trial) -> Sightings {
    pass(world, trial, false)
}

/// The same with a relaxed write of the data: a strict write of the flag comes after it nevertheless.
fn relaxed_before_a_strict_write(world: &World, trial: &Trial) -> Sightings {
    pass(world, trial, true)
}

fn pass(world: &World, trial: &Trial, writes_relaxed: bool) -> Sightings {
    let data = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let flag = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    trial.rounds(world, |slot, batch| match world.my_pe() {
        0 => {
            match writes_relaxed {
                true => data.p(1, slot, batch).unwrap(),
                false => write(&data, trial, 1, slot, batch),
            }
            write(&flag, trial, 2, slot, batch);
        }
        1 => {
            poll(|| read(&flag, trial, 2, slot) == batch);
            seen.forbid_other_than(batch, &[read(&data, trial, 1, slot)], slot);
        }
        _ => (),
    });
    seen
}

/// PEs 0 and 1 write both of two words, in opposite orders: not both words keep the first writes.
fn two_writers(world: &World, trial: &Trial) -> Sightings {
    let me = world.my_pe();
    let words = world.alloc_zeroed::<u64>(2 * trial.slots).unwrap();
    let mut seen = Sightings::default();
    for batch in trial.batches() {
        if me < 2 {
            for slot in 0..trial.slots {
                // The first write of a PE has the value 1, its second 2.
                write(&words, trial, 2, 2 * slot + me, 10 * batch + 1);
                write(&words, trial, 2, 2 * slot + 1 - me, 10 * batch + 2);
            }
        }
        world.barrier();
        if me == 2 {
            for slot in 0..trial.slots {
                let both = [0, 1].map(|i| words.local().get(2 * slot + i));
                let is_cycle = both == [10 * batch + 1; 2];
                seen.forbid(is_cycle, || format!("slot {slot}, batch {batch}: both words keep first writes"));
            }
        }
        world.barrier();
    }
    seen
}

/// PEs 0 and 1 write a word each; PEs 2 and 3 read both, in opposite orders, and agree on which came first.
fn independent_reads(world: &World, trial: &Trial) -> Sightings {
    let me = world.my_pe();
    let words = world.alloc_zeroed::<u64>(2 * trial.slots).unwrap();
    let answers = world.alloc_zeroed::<[u64; 2]>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut mine = vec![[0; 2]; trial.slots];
    for batch in trial.batches() {
        for (slot, answer) in mine.iter_mut().enumerate() {
            match me {
                0 | 1 => write(&words, trial, me, 2 * slot + me, batch),
                _ => *answer = [me % 2, 1 - me % 2].map(|pe| read(&words, trial, pe, 2 * slot + pe)),
            }
        }
        if me == 3 {
            answers.put(2, 0, &mine).unwrap();
        }
        world.barrier();
        if me == 2 {
            for (slot, &here) in mine.iter().enumerate() {
                let there = answers.local().get(slot);
                let new_then_old = |answer: [u64; 2]| answer[0] == batch && answer[1] != batch;
                let do_differ = new_then_old(here) && new_then_old(there);
                seen.forbid(do_differ, || format!("slot {slot}, batch {batch}: {here:?} and {there:?}"));
            }
        }
        world.barrier();
    }
    seen
}

mod independent_reads {
    use super::harness;

    #[test]
    fn threads() {
        harness::run_threads(4, super::independent_reads);
    }

    #[test]
    fn processes() {
        let report = pelago::try_processes!(4, [harness::LIMIT], |world| {
            harness::run_process(world, super::independent_reads)
        });
        pelago::testing::expect_success(&report);
    }

    #[test]
    fn net() {
        let net = ("PELAGO_ROUTE", "net");
        let report = pelago::try_processes!(4, [harness::LIMIT, net], |world| {
            harness::run_net(world, super::independent_reads)
        });
        pelago::testing::expect_success(&report);
    }

    #[test]
    fn sim() {
        harness::run_simulated(4, super::independent_reads);
    }
}
