//! The PEs of a benchmark as an ensemble: PE 0 leads and keeps the time, the others play the part that it
//! calls for, as often as it says. Invariant: all PEs hold the same parts in the same order, and every block
//! begins with a barrier; a PE that waits for the next block does not sleep, so that no put has to wake it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use pelago::prelude::*;

/// What a PE does when a block of so many operations is called for.
pub type Part<'a> = Box<dyn FnMut(u64) -> pelago::Result<()> + 'a>;

/// A PE that has not been called for so long may go to sleep.
const AWAKE: Duration = Duration::from_secs(1);
/// Looks at the order between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 32;

/// Words of an order: its number, the part, the count of operations.
const ORDER_WORDS: usize = 3;
/// In place of a part: there is nothing more to do.
const END: u64 = u64::MAX;

/// The part of a PE that has nothing to do in a block.
pub fn rest<'a>() -> Part<'a> {
    Box::new(|_| Ok(()))
}

/// A part of PE 0 alone.
pub fn only_first<'a>(world: &World, part: impl FnMut(u64) -> pelago::Result<()> + 'a) -> Part<'a> {
    if world.my_pe() == 0 { Box::new(part) } else { rest() }
}

/// Collective: runs `lead` on PE 0, with the other PEs at its command until it returns; its value on PE 0,
/// `None` elsewhere.
///
/// # Errors
/// Those of `lead`, the parts, and the allocation of a few words.
pub fn conduct<R>(
    world: &World,
    parts: &mut [Part<'_>],
    lead: impl FnOnce(&mut Leader<'_, '_, '_>) -> Result<R>,
) -> Result<Option<R>> {
    let orders = world.alloc_zeroed::<u64>(ORDER_WORDS)?;
    if world.my_pe() != 0 {
        follow(world, &orders, parts)?;
        return Ok(None);
    }
    let mut leader = Leader { world, orders: &orders, sequence: 0, parts };
    let outcome = lead(&mut leader);
    leader.call(END, 0)?;
    world.barrier();
    outcome.map(Some)
}

/// PE 0, which says what comes next.
pub struct Leader<'a, 'w, 'p> {
    world: &'w World,
    orders: &'a Symmetric<'w, u64>,
    sequence: u64,
    parts: &'a mut [Part<'p>],
}

impl Leader<'_, '_, '_> {
    /// All PEs play `part`, `count` operations long; how long it took PE 0. The clock starts when what the
    /// barrier has started is complete as well: over a net its last signals are still under way after it.
    ///
    /// # Errors
    /// Those of the part.
    pub fn play(&mut self, part: usize, count: u64) -> Result<Duration> {
        self.call(part as u64, count)?;
        self.world.barrier();
        self.world.quiet();
        let start = Instant::now();
        (self.parts[part])(count)?;
        Ok(start.elapsed())
    }

    /// As [`play`](Leader::play), in nanoseconds an operation.
    ///
    /// # Errors
    /// Those of the part.
    pub fn play_ns(&mut self, part: usize, count: u64) -> Result<f64> {
        Ok(self.play(part, count)?.as_secs_f64() * 1e9 / count as f64)
    }

    fn call(&mut self, part: u64, count: u64) -> Result<()> {
        self.sequence += 1;
        for pe in 1..self.world.n_pes() {
            self.orders.put(pe, 1, &[part, count])?;
            self.world.fence();
            self.orders.p(pe, 0, self.sequence)?;
        }
        // Rings those that have gone to sleep after all.
        self.world.fence();
        Ok(())
    }
}

fn follow(world: &World, orders: &Symmetric<'_, u64>, parts: &mut [Part<'_>]) -> Result<()> {
    for sequence in 1.. {
        await_order(world, orders, sequence);
        let [part, count] = [1, 2].map(|word| orders.local().get(word));
        world.barrier();
        if part == END {
            break;
        }
        (parts[part as usize])(count)?;
    }
    Ok(())
}

fn await_order(world: &World, orders: &Symmetric<'_, u64>, sequence: u64) {
    let start = Instant::now();
    let is_crowded = world.n_pes() > world.cores();
    for look in 1_u32.. {
        let is_over = look.is_multiple_of(LOOKS_PER_CLOCK) && start.elapsed() >= AWAKE;
        if is_over || orders.local().get(0) >= sequence {
            break;
        }
        // Over the net a PE serves the others only in calls.
        world.progress();
        if is_crowded { thread::yield_now() } else { std::hint::spin_loop() }
    }
    // Acquires the order; and sleeps, with an eye on the others, if it has not come yet.
    orders.local().wait_until(0, |value| value >= sequence);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn all_pes_play_what_the_leader_calls_for() {
        let played = spmd(3, |world| {
            let notes = RefCell::new(Vec::new());
            let note = |part: u64| -> Part<'_> {
                let notes = &notes;
                Box::new(move |count| {
                    notes.borrow_mut().push((part, count));
                    Ok(())
                })
            };
            let mut parts = [note(0), note(1)];
            let led = conduct(world, &mut parts, |leader| {
                leader.play(1, 5)?;
                leader.play(0, 7)?;
                leader.play(1, 1)
            });
            assert_eq!(led.unwrap().is_some(), world.my_pe() == 0);
            drop(parts);
            notes.into_inner()
        });
        assert_eq!(played.unwrap(), vec![vec![(1, 5), (0, 7), (1, 1)]; 3]);
    }

    #[test]
    fn a_leader_that_fails_lets_the_others_go() {
        let outcomes = spmd(2, |world| {
            let led = conduct::<()>(world, &mut [rest()], |leader| {
                leader.play(0, 1)?;
                anyhow::bail!("the leader has had enough")
            });
            led.is_err()
        });
        assert_eq!(outcomes.unwrap(), [true, false]);
    }
}
