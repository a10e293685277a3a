//! Two-sided messages: PE 0 hands out intervals to workers and adds up what they send back. The tag of a
//! message says what it is; `Any` receives from every PE.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 4 target/release/examples/messages
//! Prints:
//!   pi is 3.14159265

use pelago::message::Any;
use pelago::prelude::*;

const INTERVALS: usize = 40;
const STEPS: usize = 1000; // of one interval
const WORK: u32 = 1;
const RESULT: u32 = 2;
const END: u32 = 3;

/// The area below a quarter of the unit circle over an interval, four times.
fn area(interval: usize) -> f64 {
    let width = 1.0 / (INTERVALS * STEPS) as f64;
    let at = |step: usize| (step as f64 + 0.5) * width;
    (interval * STEPS..(interval + 1) * STEPS).map(|step| 4.0 * width / (1.0 + at(step) * at(step))).sum()
}

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let team = world.team();
    if team.n_pes() == 1 {
        println!("pi is {:.8}", (0..INTERVALS).map(area).sum::<f64>());
    } else if team.my_rank() == 0 {
        let (mut next, mut sum, mut result) = (0, 0.0, [0.0]);
        let mut give = |worker| -> pelago::Result<()> {
            next += 1;
            if next <= INTERVALS {
                team.send(worker, WORK, &[next - 1])
            } else {
                team.send(worker, END, &[0])
            }
        };
        (1..team.n_pes()).try_for_each(&mut give)?;
        for _ in 0..INTERVALS {
            let received = team.receive(Any, RESULT, &mut result)?;
            sum += result[0];
            give(received.source)?;
        }
        println!("pi is {sum:.8}");
    } else {
        let mut interval = [0];
        while team.receive(0, Any, &mut interval)?.tag == WORK {
            team.send(0, RESULT, &[area(interval[0])])?;
        }
    }
    Ok(())
}
