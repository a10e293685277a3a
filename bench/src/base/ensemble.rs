//! The PEs of a benchmark: PE 0 leads and measures the time; the others run the part that it names, for the
//! given number of operations. Invariant: all PEs have the same parts in the same order, and every block
//! begins with a barrier; a PE that waits for the next block does not sleep, so that no put has to wake it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use pelago::prelude::*;

/// The function that runs a block of the given number of operations on a PE.
pub type Part<'a> = Box<dyn FnMut(u64) -> pelago::Result<()> + 'a>;

/// How long a PE without an order stays awake.
const AWAKE: Duration = Duration::from_secs(1);
/// The number of checks for an order between two readings of the clock.
const LOOKS_PER_CLOCK: u32 = 32;

/// The words of an order: its number, the part, the count of operations.
const ORDER_WORDS: usize = 3;
/// In place of a part: the end of the benchmark.
const END: u64 = u64::MAX;

/// The part of an idle PE.
pub fn rest<'a>() -> Part<'a> {
    Box::new(|_| Ok(()))
}

/// A part of PE 0 alone.
pub fn only_first<'a>(world: &World, part: impl FnMut(u64) -> pelago::Result<()> + 'a) -> Part<'a> {
    if world.my_pe() == 0 { Box::new(part) } else { rest() }
}

/// Collective: runs `lead` on PE 0, while the other PEs execute its orders. Returns the value of `lead` on PE
/// 0, `None` elsewhere.
///
/// # Errors
/// Errors of `lead`, the parts, and the allocation of a few words.
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

/// The handle of PE 0, which gives the orders.
pub struct Leader<'a, 'w, 'p> {
    world: &'w World,
    orders: &'a Symmetric<'w, u64>,
    sequence: u64,
    parts: &'a mut [Part<'p>],
}

impl Leader<'_, '_, '_> {
    /// All PEs run `part` with `count` operations; returns the time on PE 0, which is virtual over a
    /// simulated network. The clock starts when the operations of the barrier are complete, because over a
    /// network its last signals are still in flight when it returns.
    ///
    /// # Errors
    /// Errors of the part.
    pub fn play(&mut self, part: usize, count: u64) -> Result<Duration> {
        self.call(part as u64, count)?;
        self.world.barrier();
        self.world.quiet();
        let start = self.world.wtime();
        (self.parts[part])(count)?;
        Ok(self.world.wtime() - start)
    }

    /// As [`play`](Leader::play), in nanoseconds per operation.
    ///
    /// # Errors
    /// Errors of the part.
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
        // Wakes PEs that have gone to sleep.
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
    // On a simulated network PEs take turns by virtual time: a PE that looked by the clock of the machine
    // would make runs differ.
    for look in 1_u32.. {
        let is_late = look.is_multiple_of(LOOKS_PER_CLOCK) && start.elapsed() >= AWAKE;
        let is_over = is_late || world.is_simulated();
        if is_over || orders.local().get(0) >= sequence {
            break;
        }
        // Over the network a PE makes progress for others only in calls.
        world.progress();
        if is_crowded { thread::yield_now() } else { std::hint::spin_loop() }
    }
    // Acquires the order; if it has not arrived yet, sleeps and checks the liveness of the other PEs.
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
