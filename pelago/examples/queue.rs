//! A work queue by atomics: the next task is a counter on PE 0, and a PE that is free takes a number from it.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/queue
//! Prints:
//!   200 tasks have found 17984 primes below 200000

use pelago::prelude::*;

const TASKS: u64 = 200;
const NUMBERS: u64 = 1000; // of one task

fn is_prime(x: u64) -> bool {
    x > 1 && (2..).take_while(|d| d * d <= x).all(|d| !x.is_multiple_of(d))
}

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let next = world.alloc_zeroed::<u64>(1)?; // the one on PE 0 is the queue
    let totals = world.alloc_zeroed::<u64>(2)?; // on PE 0: finished tasks, primes

    loop {
        let task = next.fetch_add(0, 0, 1)?; // no other PE gets this number
        if task >= TASKS {
            break;
        }
        let numbers = task * NUMBERS..(task + 1) * NUMBERS;
        let primes = numbers.filter(|&x| is_prime(x)).count();
        totals.add(0, 0, 1)?;
        totals.add(0, 1, primes as u64)?;
    }
    world.barrier(); // all tasks are finished, and all additions are complete

    if world.my_pe() == 0 {
        let (tasks, primes) = (totals.local().get(0), totals.local().get(1));
        println!("{tasks} tasks have found {primes} primes below {}", TASKS * NUMBERS);
    }
    Ok(())
}
