//! Overlap of communication and computation: while a PE computes with the part of one PE, a get fetches the
//! part of the next. The compiler refuses to read the buffer of a get that is under way.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/overlap
//! Prints:
//!   the largest of 40000 numbers is 39999, found by 4 PEs

use pelago::prelude::*;

const LEN: usize = 10_000; // numbers of each PE

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let numbers = world.alloc::<u64>(LEN)?;
    let mine: Vec<u64> = (0..LEN).map(|i| (i * n + me) as u64).collect();
    numbers.local().write(0, &mine);
    world.barrier(); // the numbers of all PEs are there

    let (mut here, mut coming) = (mine, vec![0; LEN]);
    let mut largest = 0;
    for step in 1..=n {
        world.scope(|scope| {
            if step < n {
                scope.get(&numbers, (me + step) % n, 0, &mut coming)?; // starts
            }
            largest = here.iter().copied().max().unwrap().max(largest); // computes meanwhile
            Ok::<(), pelago::Error>(())
        })?; // the get is complete
        std::mem::swap(&mut here, &mut coming);
    }

    let found = world.team().sum(u64::from(largest == (LEN * n - 1) as u64))?;
    if me == 0 {
        println!("the largest of {} numbers is {largest}, found by {found} PEs", LEN * n);
    }
    Ok(())
}
