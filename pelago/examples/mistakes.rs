//! Mistakes, and what Pelago says about them. The argument names one: `range`, `panic`, `exit`, `signal`,
//! `collective` or `slow`.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/mistakes
//! Prints:
//!   no mistake was asked for

use pelago::prelude::*;

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let numbers = world.alloc_zeroed::<u64>(10)?;
    match std::env::args().nth(1).as_deref() {
        Some("range") if me == 2 => numbers.put((me + 1) % n, 8, &[1, 2, 3])?, // 8 + 3 elements, not 10
        Some("panic") if me == 2 => panic!("there is no input"),
        Some("exit") if me == 2 => std::process::exit(3),
        Some("signal") if me == 2 => drop(numbers.local().wait_until(0, |value| value == 1)), // never set
        Some("collective") if me == 2 => drop(world.alloc::<u64>(5)?), // the others wait in a barrier
        Some("slow") if me == 2 => std::thread::sleep(std::time::Duration::from_secs(3)),
        Some(_) => {}
        None if me == 0 => println!("no mistake was asked for"),
        None => {}
    }
    world.barrier();
    Ok(())
}
