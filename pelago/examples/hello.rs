//! The first program of the guide: every PE puts a number to every PE.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/hello
//! Prints:
//!   PE 0 of 4 has received [0, 10, 20, 30]

use pelago::prelude::*;

fn main() -> pelago::Result<()> {
    let world = World::init()?; // joins the job; a job of one PE if nothing launched it
    let (me, n) = (world.my_pe(), world.n_pes());
    let inbox = world.alloc_zeroed::<u64>(n)?; // symmetric: every PE has such an array
    for pe in 0..n {
        inbox.put(pe, me, &[10 * me as u64])?; // one-sided: PE `pe` makes no call
    }
    world.barrier(); // all PEs have come here, and all puts are complete
    if me == 0 {
        println!("PE 0 of {n} has received {:?}", inbox.local().to_vec());
    }
    Ok(())
}
