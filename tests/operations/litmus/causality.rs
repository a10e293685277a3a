//! Causality: operations that a PE has completed are seen by every PE that is notified of them, on a third PE
//! (MP with its data elsewhere), through a third PE (ISA2), and by a loop of fetches instead of a wait.

use crate::litmus::harness::{Sightings, Trial, poll};
use pelago::World;

litmus! {
    heard_from_the_writer(3): heard_from_the_writer;
    heard_from_another(4): heard_from_another;
    fetched_flag(3): fetched_flag;
    own_fetched_flag(2): own_fetched_flag;
}

const WORDS: usize = 7;

/// PE 0 writes to PE 2, completes that, and notifies PE 1, which gets the data from PE 2.
fn heard_from_the_writer(world: &World, trial: &Trial) -> Sightings {
    chain(world, trial, 1, 2)
}

/// As above, but PE 1 notifies PE 2, which gets the data from PE 3.
fn heard_from_another(world: &World, trial: &Trial) -> Sightings {
    chain(world, trial, 2, 3)
}

/// PE 0 writes to `holder` and notifies PE 1; each PE notifies the next, and `reader`, the last, gets the
/// data. A PE that only forwards the notification has nothing to complete.
fn chain(world: &World, trial: &Trial, reader: usize, holder: usize) -> Sightings {
    let me = world.my_pe();
    let data = world.alloc_zeroed::<u64>(trial.slots * WORDS).unwrap();
    let flag = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut copy = [0; WORDS];
    trial.rounds(world, |slot, batch| {
        if me == 0 {
            data.put(holder, slot * WORDS, &[batch; WORDS]).unwrap();
            trial.order(|| world.quiet());
        } else if me <= reader {
            flag.local().wait_until(slot, |value| value == batch);
        }
        if me < reader {
            flag.p(me + 1, slot, batch).unwrap();
        } else if me == reader {
            data.get(holder, slot * WORDS, &mut copy).unwrap();
            seen.forbid_other_than(batch, &copy, slot);
        }
    });
    seen
}

/// PE 0 writes data and flag to PE 2; PE 1 fetches the flag until it is up, then gets the data.
fn fetched_flag(world: &World, trial: &Trial) -> Sightings {
    fetch(world, trial, 2)
}

/// PE 0 writes data and flag to PE 1, which fetches its flag until it is up, then gets its data.
fn own_fetched_flag(world: &World, trial: &Trial) -> Sightings {
    fetch(world, trial, 1)
}

fn fetch(world: &World, trial: &Trial, holder: usize) -> Sightings {
    let data = world.alloc_zeroed::<u64>(trial.slots * WORDS).unwrap();
    let flag = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut copy = [0; WORDS];
    trial.rounds(world, |slot, batch| match world.my_pe() {
        0 => {
            data.put(holder, slot * WORDS, &[batch; WORDS]).unwrap();
            trial.order(|| world.fence());
            flag.atomic_set(holder, slot, batch).unwrap();
        }
        1 => {
            poll(|| flag.atomic_fetch(holder, slot).unwrap() == batch);
            data.get(holder, slot * WORDS, &mut copy).unwrap();
            seen.forbid_other_than(batch, &copy, slot);
        }
        _ => (),
    });
    seen
}
