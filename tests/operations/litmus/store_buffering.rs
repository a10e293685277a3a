//! Store buffering (SB): each of two PEs writes a word and then reads the other's. With a quiet in between,
//! not both read the old value; a fence is not enough, as it does not order gets.

use crate::litmus::harness::{Sightings, Trial};
use pelago::{View, World};

litmus! {
    on_each_other(2): on_each_other;
    on_a_third(3): on_a_third;
}

/// PEs 0 and 1 write to word `me` on PE `target(me)` and read word `1 - me` there where the other writes it,
/// by `write_and_read`, whose arguments are the words, both addresses and the value to write.
pub fn buffer(
    world: &World,
    trial: &Trial,
    target: impl Fn(usize) -> usize,
    write_and_read: impl Fn(&View<'_, u64>, [(usize, usize); 2], u64) -> u64,
) -> Sightings {
    let me = world.my_pe();
    let words = world.alloc_zeroed::<u64>(2 * trial.slots).unwrap();
    let answers = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut mine = vec![0; trial.slots];
    for batch in trial.batches() {
        if me < 2 {
            for (slot, answer) in mine.iter_mut().enumerate() {
                let places = [(target(me), 2 * slot + me), (target(1 - me), 2 * slot + 1 - me)];
                *answer = write_and_read(&words, places, batch);
            }
        }
        if me == 1 {
            answers.put(0, 0, &mine).unwrap();
        }
        world.barrier();
        if me == 0 {
            for (slot, &answer) in mine.iter().enumerate() {
                let other = answers.local().get(slot);
                let are_both_old = answer != batch && other != batch;
                seen.forbid(are_both_old, || format!("slot {slot}, batch {batch}: {answer} and {other}"));
            }
        }
        world.barrier();
    }
    seen
}

fn relaxed(world: &World, trial: &Trial, target: impl Fn(usize) -> usize) -> Sightings {
    buffer(world, trial, target, |words, [(pe, index), (other, place)], value| {
        words.p(pe, index, value).unwrap();
        trial.order(|| world.quiet());
        words.g(other, place).unwrap()
    })
}

fn on_each_other(world: &World, trial: &Trial) -> Sightings {
    relaxed(world, trial, |me| 1 - me)
}

fn on_a_third(world: &World, trial: &Trial) -> Sightings {
    relaxed(world, trial, |_| 2)
}
