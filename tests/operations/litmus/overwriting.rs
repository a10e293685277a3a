//! Overwriting: two puts of one PE to one address. With a fence between them the value of the second remains,
//! and no PE sees the first after the second (CoWW, CoRR). If the addresses differ, no PE sees the second put
//! without the first.

use crate::litmus::harness::{Sightings, Trial, poll};
use pelago::World;

litmus! {
    word_that_stays(2): word_that_stays;
    words_that_stay(2): words_that_stay;
    value_that_never_falls(3): value_that_never_falls;
    second_count_ahead_of_the_first(2): second_count_ahead_of_the_first;
}

/// The value that the first of two puts writes.
const FIRST: u64 = 1 << 32;

/// Both puts are complete when the flag rises.
fn stays<const WORDS: usize>(world: &World, trial: &Trial) -> Sightings {
    let data = world.alloc_zeroed::<u64>(trial.slots * WORDS).unwrap();
    let flag = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut copy = [0; WORDS];
    trial.rounds(world, |slot, batch| {
        if world.my_pe() == 0 {
            data.put(1, slot * WORDS, &[FIRST + batch; WORDS]).unwrap();
            trial.order(|| world.fence());
            data.put(1, slot * WORDS, &[batch; WORDS]).unwrap();
            world.quiet();
            flag.p(1, slot, batch).unwrap();
        } else {
            flag.local().wait_until(slot, |value| value == batch);
            data.local().read(slot * WORDS, &mut copy);
            seen.forbid_other_than(batch, &copy, slot);
        }
    });
    seen
}

fn word_that_stays(world: &World, trial: &Trial) -> Sightings {
    stays::<1>(world, trial)
}

fn words_that_stay(world: &World, trial: &Trial) -> Sightings {
    stays::<7>(world, trial)
}

/// PE 0 increases a word of PE 2 by puts; PE 1 gets it repeatedly meanwhile.
fn value_that_never_falls(world: &World, trial: &Trial) -> Sightings {
    let word = world.alloc_zeroed::<u64>(1).unwrap();
    let end = world.alloc_zeroed::<u64>(1).unwrap();
    let mut seen = Sightings::default();
    let mut last = 0;
    for batch in trial.batches() {
        match world.my_pe() {
            0 => {
                for value in trial.values(batch) {
                    word.p(2, 0, value).unwrap();
                    trial.order(|| world.fence());
                }
                world.quiet();
                end.p(1, 0, batch).unwrap();
            }
            1 => poll(|| {
                let value = word.g(2, 0).unwrap();
                seen.forbid(value < last, || format!("batch {batch}: {value} after {last}"));
                last = value;
                end.local().get(0) == batch
            }),
            _ => (),
        }
        world.barrier();
    }
    seen
}

/// PE 0 increases two words of PE 1, always the first before the second; PE 1 waits until the second rises,
/// and finds that the first is not behind.
fn second_count_ahead_of_the_first(world: &World, trial: &Trial) -> Sightings {
    let counts = world.alloc_zeroed::<u64>(2).unwrap();
    let mut seen = Sightings::default();
    let mut second = 0;
    for batch in trial.batches() {
        let values = trial.values(batch);
        if world.my_pe() == 0 {
            for _ in values {
                counts.add(1, 0, 1).unwrap();
                trial.order(|| world.fence());
                counts.add(1, 1, 1).unwrap();
            }
        } else {
            while values.contains(&(second + 1)) {
                second = counts.local().wait_until(1, |value| value > second);
                let first = counts.local().get(0);
                seen.forbid(first < second, || format!("batch {batch}: {first}, but {second}"));
            }
        }
        world.barrier();
    }
    seen
}
