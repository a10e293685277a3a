//! PEs as threads: the body passed to `pelago::run` runs once for each PE of the process.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 --pes-per-process 2 target/release/examples/threads
//! Prints:
//!   4 PEs in 2 processes

use std::collections::HashSet;

fn main() -> pelago::Result<()> {
    pelago::run(|world| -> pelago::Result<()> {
        let processes = world.team().gather_values(std::process::id())?;
        if world.my_pe() == 0 {
            let distinct: HashSet<_> = processes.iter().collect();
            println!("{} PEs in {} processes", world.n_pes(), distinct.len());
        }
        Ok(())
    })?
    .into_iter()
    .collect()
}
