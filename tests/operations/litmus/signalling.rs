//! Signals: message passing in one call. PE 1 has seen the signal of a put, so it sees the data of that put,
//! without any fence; if data and flag are two calls, it need not.

use crate::litmus::harness::{Sightings, Trial};
use pelago::{SignalOp, World};

litmus! {
    signal_that_sets(2): signal_that_sets;
    signal_that_adds(2): signal_that_adds;
    two_puts_that_add(3): two_puts_that_add;
}

const WORDS: usize = 7;

fn signal_that_sets(world: &World, trial: &Trial) -> Sightings {
    passing(world, trial, SignalOp::Set)
}

fn signal_that_adds(world: &World, trial: &Trial) -> Sightings {
    passing(world, trial, |_| SignalOp::Add(1))
}

/// PE 0 puts and signals; `op` computes the signal from the number of the batch.
fn passing(world: &World, trial: &Trial, op: impl Fn(u64) -> SignalOp) -> Sightings {
    let data = world.alloc_zeroed::<u64>(trial.slots * WORDS).unwrap();
    let signals = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut copy = [0; WORDS];
    trial.rounds(world, |slot, batch| {
        if world.my_pe() == 1 {
            signals.local().wait_until(slot, |value| value == batch);
            data.local().read(slot * WORDS, &mut copy);
            return seen.forbid_other_than(batch, &copy, slot);
        }
        let source = [batch; WORDS];
        if trial.is_without_order() {
            data.put(1, slot * WORDS, &source).unwrap();
            signals.signal(1, slot, op(batch)).unwrap();
        } else {
            data.put_signal(1, slot * WORDS, &source, &signals, slot, op(batch)).unwrap();
        }
    });
    seen
}

/// PEs 0 and 1 each put a half to PE 2, which has all data when the signal has risen by two.
fn two_puts_that_add(world: &World, trial: &Trial) -> Sightings {
    let me = world.my_pe();
    let data = world.alloc_zeroed::<u64>(trial.slots * 2 * WORDS).unwrap();
    let signals = world.alloc_zeroed::<u64>(trial.slots).unwrap();
    let mut seen = Sightings::default();
    let mut copy = [0; 2 * WORDS];
    trial.rounds(world, |slot, batch| {
        if me == 2 {
            signals.local().wait_until(slot, |value| value == 2 * batch);
            data.local().read(slot * 2 * WORDS, &mut copy);
            return seen.forbid_other_than(batch, &copy, slot);
        }
        let (index, source) = ((2 * slot + me) * WORDS, [batch; WORDS]);
        if trial.is_without_order() {
            data.put(2, index, &source).unwrap();
            signals.signal(2, slot, SignalOp::Add(1)).unwrap();
        } else {
            data.put_signal(2, index, &source, &signals, slot, SignalOp::Add(1)).unwrap();
        }
    });
    seen
}
