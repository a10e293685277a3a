//! A pipeline: blocks of numbers pass through the PEs, and each PE adds 1 to every number. Data and signal
//! are one operation; a signal in the other direction tells that a slot may be used again.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/pipeline
//! Prints:
//!   20 blocks of 1000 numbers have passed 4 PEs, their sum is 270000

use pelago::prelude::*;
use pelago::{Comparison, SignalOp};

const BLOCKS: u64 = 20;
const LEN: usize = 1000;
const SLOTS: u64 = 2; // blocks that may wait at a PE

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let slots = world.alloc_zeroed::<u64>(SLOTS as usize * LEN)?;
    // The number of the block in each slot, counted from 1: operations may arrive in any order.
    let full = world.alloc_zeroed::<u64>(SLOTS as usize)?;
    let free = world.alloc_zeroed::<u64>(1)?; // blocks that were read
    let mut total = 0;

    for block in 0..BLOCKS {
        let slot = (block % SLOTS) as usize;
        let place = slot * LEN;
        let mut numbers = vec![block; LEN];
        if me > 0 {
            full.local().wait(slot, Comparison::Gt, block); // the previous PE has put this block here
            slots.local().read(place, &mut numbers);
            free.signal(me - 1, 0, SignalOp::Add(1))?; // it may use the slot again
        }
        numbers.iter_mut().for_each(|number| *number += 1);
        if me + 1 < n {
            if block >= SLOTS {
                free.local().wait(0, Comparison::Gt, block - SLOTS); // the next PE has read the slot
            }
            slots.put_signal(me + 1, place, &numbers, &full, slot, SignalOp::Set(block + 1))?;
        } else {
            total += numbers.iter().sum::<u64>();
        }
    }
    if me == n - 1 {
        println!("{BLOCKS} blocks of {LEN} numbers have passed {n} PEs, their sum is {total}");
    }
    Ok(())
}
