//! A histogram over all PEs by active messages: each record runs a handler at the PE that owns its bin, and
//! an aggregator packs many records into one message.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/histogram
//! Prints:
//!   400000 values in 64 bins, the smallest bin has 5964, the largest 6408

use pelago::am::{HandlerLock, Handlers};
use pelago::prelude::*;

const BINS: usize = 64;
const VALUES: u64 = 100_000; // of each PE

/// The value at a place of a sequence that looks random.
fn value(place: u64) -> u64 {
    let x = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let bins = HandlerLock::new(vec![0_u64; BINS.div_ceil(n)]); // bin b is bin b / n of PE b % n

    let mut handlers = Handlers::new();
    let count = handlers.add_batch("count", |_from, places: &[u32]| {
        let mut bins = bins.lock();
        places.iter().for_each(|&place| bins[place as usize] += 1);
    });
    world.team().serve(handlers, |am| {
        let mut records = am.aggregator(count);
        for i in 0..VALUES {
            let bin = value(me as u64 * VALUES + i) as usize % BINS;
            records.push(bin % n, (bin / n) as u32)?;
        }
        Ok::<(), pelago::Error>(())
    })??; // here all messages of all PEs have been executed

    let bins = bins.into_inner();
    let (mine, all) = (world.alloc_zeroed::<u64>(bins.len())?, world.alloc_zeroed::<u64>(n * bins.len())?);
    mine.local().write(0, &bins);
    world.team().gather(0, &all, &mine)?;
    if me == 0 {
        let all = all.local().to_vec();
        let counts = (0..BINS).map(|bin| all[bin % n * bins.len() + bin / n]);
        let (sum, least, most) =
            (counts.clone().sum::<u64>(), counts.clone().min().unwrap(), counts.max().unwrap());
        println!("{sum} values in {BINS} bins, the smallest bin has {least}, the largest {most}");
    }
    Ok(())
}
