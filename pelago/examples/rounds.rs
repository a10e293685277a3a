//! Rounds of puts, atomics, collectives and barriers whose results are checked: `rounds SECONDS`. For
//! campaigns that kill and stop PEs in their midst (`cargo xtask test --soak`).

use pelago::prelude::*;
use std::time::{Duration, Instant};

const WORDS: usize = 512;

fn main() -> pelago::Result<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let inbox = world.alloc_zeroed::<u64>(WORDS)?;
    let words = world.alloc_zeroed::<u64>(4)?;
    let (sum, mine) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    for round in 1.. {
        inbox.put(right, 0, &[round * 1000 + me as u64; WORDS])?;
        words.add(left, 0, 1)?;
        words.local().set(1, u64::from(Instant::now() < end));
        world.barrier();
        let wanted = round * 1000 + left as u64;
        assert!((0..WORDS).all(|i| inbox.local().get(i) == wanted), "PE {me}: the inbox in round {round}");
        assert_eq!(words.local().get(0), round, "PE {me}: the counter in round {round}");
        mine.local().set(0, round + me as u64);
        world.team().all_reduce(ReduceOp::Sum, &sum, &mine)?;
        let wanted = n as u64 * round + (n * (n - 1) / 2) as u64;
        assert_eq!(sum.local().get(0), wanted, "PE {me}: the sum in round {round}");
        if words.g(0, 1)? == 0 {
            break;
        }
        world.barrier();
    }
    world.barrier();
    if me == 0 {
        println!("all rounds are right");
    }
    Ok(())
}
