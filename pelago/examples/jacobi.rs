//! Jacobi iterations on a square grid in strips of rows: halo exchange by puts with signals, and a test of
//! convergence by a reduction. The number of steps does not depend on the number of PEs.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/jacobi
//! Prints:
//!   converged after 1037 steps

use pelago::prelude::*;
use pelago::{Comparison, SignalOp};

const N: usize = 48; // points in each direction, besides the boundary
const WIDTH: usize = N + 2;

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    assert!(N.is_multiple_of(n), "{N} rows cannot be divided among {n} PEs");
    let rows = N / n;

    // Rows 1 to `rows` belong to this PE. Rows 0 and `rows + 1` are copies of the neighbours' rows.
    let mut old = vec![0.0; (rows + 2) * WIDTH];
    if me == 0 {
        old[..WIDTH].fill(1.0); // the upper edge of the grid is hot
    }
    let mut new = old.clone();
    let halo = world.alloc_zeroed::<f64>(2 * WIDTH)?; // a row from above, a row from below
    let arrived = world.alloc_zeroed::<u64>(2)?; // the step of these rows

    let mut step = 0;
    loop {
        step += 1;
        if me > 0 {
            halo.put_signal(me - 1, WIDTH, &old[WIDTH..2 * WIDTH], &arrived, 1, SignalOp::Set(step))?;
        }
        if me + 1 < n {
            let last = rows * WIDTH..(rows + 1) * WIDTH;
            halo.put_signal(me + 1, 0, &old[last], &arrived, 0, SignalOp::Set(step))?;
        }
        if me > 0 {
            arrived.local().wait(0, Comparison::Ge, step);
            halo.local().read(0, &mut old[..WIDTH]);
        }
        if me + 1 < n {
            arrived.local().wait(1, Comparison::Ge, step);
            halo.local().read(WIDTH, &mut old[(rows + 1) * WIDTH..]);
        }

        let mut mine = 0.0_f64;
        for at in (1..=rows).flat_map(|y| y * WIDTH + 1..y * WIDTH + 1 + N) {
            new[at] = 0.25 * (old[at - 1] + old[at + 1] + old[at - WIDTH] + old[at + WIDTH]);
            mine = mine.max((new[at] - old[at]).abs());
        }
        std::mem::swap(&mut old, &mut new);

        if world.team().max(mine)? < 1e-4 {
            break;
        }
    }
    if me == 0 {
        println!("converged after {step} steps");
    }
    Ok(())
}
