//! A token goes round the ring of PEs: symmetric memory, a signal to the next PE, a wait for one.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/ring
//! Prints:
//!   the token has passed 4 PEs

use pelago::SignalOp;
use pelago::prelude::*;

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let token = world.alloc_zeroed::<u64>(1)?; // every PE has one
    let next = (me + 1) % n;

    if me == 0 {
        token.signal(next, 0, SignalOp::Set(1))?; // PE `next` does nothing for this
    }
    let count = token.local().wait_until(0, |value| value != 0);
    if me == 0 {
        println!("the token has passed {count} PEs");
    } else {
        token.signal(next, 0, SignalOp::Set(count + 1))?;
    }
    Ok(())
}
