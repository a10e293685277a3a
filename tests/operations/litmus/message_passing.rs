//! Message passing (MP): PE 0 writes data, then a flag; PE 1 has seen the flag, so it sees the data.

use crate::litmus::harness::{Sightings, Trial};
use pelago::{ContextKind, View, World};

litmus! {
    word(2): word;
    seven_words(2): seven_words;
    six_hundred_bytes(2): six_hundred_bytes;
    flag_set_atomically(2): flag_set;
    flag_added_to(2): flag_added;
    data_set_atomically(2): data_set;
    all_atomic(2): all_atomic;
    fence_of_a_context(2): fence_of_a_context;
    quiet_of_a_context(2): quiet_of_a_context;
    non_blocking_put(2): non_blocking_put;
    transfer_waited_for(2): transfer_waited_for;
    wait_of_a_region(2): wait_of_a_region;
}

/// The test with `words` words of data, written by `send(data, first index, number of the batch)`, and a
/// flag, raised by `raise(flag, index, number of the batch)`. The caller makes the ordering call between the
/// two calls.
fn pass(
    world: &World,
    trial: &Trial,
    words: usize,
    send: impl Fn(&View<u64>, usize, u64),
    raise: impl Fn(&View<u64>, usize, u64),
) -> Sightings {
    let data = world.alloc_zeroed::<u64>(trial.slots * words).unwrap();
    let flag = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut copy = vec![0; words];
    trial.rounds(world, |slot, batch| {
        if world.my_pe() == 0 {
            send(&data, slot * words, batch);
            raise(&flag, slot, batch);
        } else {
            flag.local().wait_until(slot, |value| value == batch);
            data.local().read(slot * words, &mut copy);
            seen.forbid_other_than(batch, &copy, slot);
        }
    });
    seen
}

fn put_and_fence<const WORDS: usize>(world: &World, trial: &Trial) -> Sightings {
    let send = |data: &View<u64>, index: usize, batch: u64| {
        data.put(1, index, &[batch; WORDS]).unwrap();
        trial.order(|| world.fence());
    };
    pass(world, trial, WORDS, send, |flag, slot, batch| flag.p(1, slot, batch).unwrap())
}

fn seven_words(world: &World, trial: &Trial) -> Sightings {
    put_and_fence::<7>(world, trial)
}

fn six_hundred_bytes(world: &World, trial: &Trial) -> Sightings {
    put_and_fence::<75>(world, trial)
}

/// The wait is an acquire: a plain load behind it, which orders nothing by itself, sees the data.
fn word(world: &World, trial: &Trial) -> Sightings {
    let data = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let flag = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    trial.rounds(world, |slot, batch| {
        if world.my_pe() == 0 {
            data.p(1, slot, batch).unwrap();
            trial.order(|| world.fence());
            flag.p(1, slot, batch).unwrap();
        } else {
            flag.local().wait_until(slot, |value| value == batch);
            seen.forbid_other_than(batch, &[data.local().get(slot)], slot);
        }
    });
    seen
}

fn flag_set(world: &World, trial: &Trial) -> Sightings {
    let send = |data: &View<u64>, index: usize, batch: u64| {
        data.put(1, index, &[batch; 7]).unwrap();
        trial.order(|| world.fence());
    };
    pass(world, trial, 7, send, |flag, slot, batch| flag.atomic_set(1, slot, batch).unwrap())
}

fn flag_added(world: &World, trial: &Trial) -> Sightings {
    let send = |data: &View<u64>, index: usize, batch: u64| {
        data.put(1, index, &[batch; 7]).unwrap();
        trial.order(|| world.fence());
    };
    pass(world, trial, 7, send, |flag, slot, _| flag.add(1, slot, 1).unwrap())
}

fn data_set(world: &World, trial: &Trial) -> Sightings {
    let send = |data: &View<u64>, index: usize, batch: u64| {
        data.atomic_set(1, index, batch).unwrap();
        trial.order(|| world.fence());
    };
    pass(world, trial, 1, send, |flag, slot, batch| flag.p(1, slot, batch).unwrap())
}

fn all_atomic(world: &World, trial: &Trial) -> Sightings {
    let send = |data: &View<u64>, index: usize, _| {
        data.add(1, index, 1).unwrap();
        trial.order(|| world.fence());
    };
    pass(world, trial, 1, send, |flag, slot, batch| flag.atomic_set(1, slot, batch).unwrap())
}

/// Data and flag go through one context, whose own fence orders them.
fn fence_of_a_context(world: &World, trial: &Trial) -> Sightings {
    let context = world.context(ContextKind::Private).unwrap();
    let send = |data: &View<u64>, index: usize, batch: u64| {
        data.via(&context).put(1, index, &[batch; 7]).unwrap();
        trial.order(|| context.fence());
    };
    pass(world, trial, 7, send, |flag, slot, batch| flag.via(&context).p(1, slot, batch).unwrap())
}

/// The data go through a context, the flag does not: the context's quiet completes them.
fn quiet_of_a_context(world: &World, trial: &Trial) -> Sightings {
    let context = world.context(ContextKind::Private).unwrap();
    let send = |data: &View<u64>, index: usize, batch: u64| {
        data.via(&context).put(1, index, &[batch; 7]).unwrap();
        trial.order(|| context.quiet());
    };
    pass(world, trial, 7, send, |flag, slot, batch| flag.p(1, slot, batch).unwrap())
}

/// A fence orders a put that is still outstanding, here a put that is only sent.
fn non_blocking_put(world: &World, trial: &Trial) -> Sightings {
    let send = |data: &View<u64>, index: usize, batch: u64| {
        let transfer = data.put_nb(1, index, vec![batch; 7]).unwrap();
        trial.order(|| world.fence());
        transfer.wait_local();
    };
    pass(world, trial, 7, send, |flag, slot, batch| flag.p(1, slot, batch).unwrap())
}

/// A put that was waited for is complete, and needs no fence; a put that was only sent is not.
fn transfer_waited_for(world: &World, trial: &Trial) -> Sightings {
    let send = |data: &View<u64>, index: usize, batch: u64| {
        let transfer = data.put_nb(1, index, vec![batch; 7]).unwrap();
        let is_sent_only = trial.is_without_order();
        if is_sent_only {
            transfer.wait_local()
        } else {
            transfer.wait()
        };
    };
    pass(world, trial, 7, send, |flag, slot, batch| flag.p(1, slot, batch).unwrap())
}

/// A region's wait completes the puts of the region, within a scope that continues.
fn wait_of_a_region(world: &World, trial: &Trial) -> Sightings {
    let data = world.alloc_zeroed::<u64>(trial.slots * 7).unwrap();
    let flag = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut copy = [0; 7];
    trial.rounds(world, |slot, batch| {
        if world.my_pe() == 0 {
            let source = [batch; 7];
            world.scope(|scope| {
                let region = scope.region();
                region.put(&data, 1, slot * 7, &source).unwrap();
                trial.order(|| region.wait());
                flag.p(1, slot, batch).unwrap();
            });
        } else {
            flag.local().wait_until(slot, |value| value == batch);
            data.local().read(slot * 7, &mut copy);
            seen.forbid_other_than(batch, &copy, slot);
        }
    });
    seen
}
