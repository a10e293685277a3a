//! A bucket sort: PE p gets the keys of bucket p from all PEs by one all-to-all operation with blocks of
//! different lengths, and sorts them.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/sort
//! Prints:
//!   40000 keys are sorted over 4 PEs

use pelago::prelude::*;

const KEYS: usize = 10_000; // of each PE
const LIMIT: u64 = 1 << 20; // keys are smaller

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let team = world.team();
    let bucket = |key: u64| (key * n as u64 / LIMIT) as usize;

    let mut keys: Vec<u64> =
        (0..KEYS).map(|i| ((i * n + me) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44).collect();
    keys.sort_by_key(|&key| bucket(key));

    // How many keys each PE sends to each other PE: row i is what PE i sends.
    let (counts, mine) = (world.alloc::<usize>(n * n)?, world.alloc::<usize>(n)?);
    (0..n).for_each(|to| mine.local().set(to, keys.iter().filter(|&&key| bucket(key) == to).count()));
    team.all_gather(&counts, &mine)?;
    let counts = counts.local().to_vec();

    // The start and the length of each block, in the source and in the target.
    let blocks = |lengths: Vec<usize>| -> Vec<(usize, usize)> {
        let starts = lengths.iter().scan(0, |sum, &len| Some(std::mem::replace(sum, *sum + len)));
        starts.zip(lengths.iter().copied()).collect()
    };
    let sends = blocks((0..n).map(|to| counts[me * n + to]).collect());
    let receives = blocks((0..n).map(|from| counts[from * n + me]).collect());
    let total = |pe: usize| (0..n).map(|from| counts[from * n + pe]).sum::<usize>();
    let longest = (0..n).map(total).max().unwrap(); // the length of a symmetric array is the same everywhere

    let (source, mut sorted) = (world.alloc::<u64>(KEYS)?, world.alloc::<u64>(longest)?);
    source.local().write(0, &keys);
    team.all_to_all_varying(&sorted, &source, &receives, &sends)?;
    let mine = total(me);
    let is_sorted = sorted.exclusive(|part| {
        part[..mine].sort_unstable(); // this PE's part as a slice: no other PE can reach it meanwhile
        part[..mine].iter().all(|&key| bucket(key) == me)
    })?;

    let sorted_count = team.sum(if is_sorted { mine } else { 0 })?;
    if me == 0 {
        println!("{sorted_count} keys are sorted over {n} PEs");
    }
    Ok(())
}
