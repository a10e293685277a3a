//! A thread that makes progress while the others of its PE compute.
//!
//! Invariant: it does not spin. It waits for the request to end, as any thread of a PE waits: it executes the
//! messages that arrive, and sleeps at the doorbell. Active messages and barriers ring the doorbell; puts and
//! atomics, which need no thread at their target, do not.

use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::panic::resume_unwind;

/// Tells the progress thread to end, on unwinding as well.
struct Stop<'a> {
    world: &'a World,
    is_over: &'a AtomicBool,
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.world.core().ring_own_sleepers();
    }
}

impl World {
    /// Runs `work` beside a thread that makes progress: it executes active messages and procedure calls that
    /// arrive, moves non-blocking collectives, and over a network all other operations, while this PE
    /// computes, and it wakes the futures whose events have come. It costs a core when there is much to do,
    /// and none while there is nothing.
    ///
    /// ```
    /// use pelago::am::Handlers;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let mut handlers = Handlers::new();
    /// let double = handlers.add_procedure("double", |_, x: u32| 2 * x);
    /// world.team().serve(handlers, |am| {
    ///     world.with_progress_thread(|| {
    ///         // ... compute without a thought of the other PEs ...
    ///         assert_eq!(am.call(1 - world.my_pe(), double, &21)?.wait(), 42);
    ///         Ok::<(), pelago::Error>(())
    ///     })
    /// })?
    /// # }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Panics
    /// If `work` does, or the job fails.
    #[track_caller]
    pub fn with_progress_thread<R>(&self, work: impl FnOnce() -> R) -> R {
        let is_over = AtomicBool::new(false);
        // From now on futures rely on it, although it has still to begin.
        let driver = self.core().wakers.driver(self.core());
        std::thread::scope(|scope| {
            let is_over = &is_over;
            let thread = scope.spawn(move || {
                let _driver = driver;
                // No data are handed over by this: the caller waits for the end of the thread.
                self.core().wait(Awaited::EndOfWork, self.waking(|| is_over.load(Ordering::Relaxed)));
            });
            let stop = Stop { world: self, is_over };
            let outcome = work();
            drop(stop);
            if let Err(payload) = thread.join() {
                resume_unwind(payload);
            }
            outcome
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Collective, spmd};
    use std::time::{Duration, Instant};

    /// A member that has left has done its part. While another thread moves the collective operations of
    /// this PE, the waiting thread cannot see that part, and must not take it for missing.
    #[test]
    fn a_wait_is_not_in_vain_while_another_thread_moves_the_operations() {
        const HELD: Duration = Duration::from_millis(300);
        let sums = spmd(2, |world| {
            let (team, me) = (world.team(), world.my_pe());
            let (all, mine) = (world.alloc_zeroed::<u64>(2).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
            let go = world.alloc_zeroed::<u64>(1).unwrap();
            mine.local().set(0, 1 + me as u64);
            if me == 1 {
                go.local().wait_until(0, |value| value == 1);
                team.nonblocking().all_gather(&all, &mine).unwrap().wait();
                return 3;
            }
            let gathering = team.nonblocking().all_gather(&all, &mine).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // No thread of this PE moves collective operations meanwhile.
                    let _running = world.core().collectives.running.lock();
                    go.p(1, 0, 1).unwrap();
                    let deadline = Instant::now() + Duration::from_secs(60);
                    while !world.core().has_left(1) {
                        assert!(Instant::now() < deadline, "waited for PE 1 to leave");
                        std::thread::yield_now();
                    }
                    let deadline = Instant::now() + HELD;
                    while Instant::now() < deadline {
                        std::thread::yield_now();
                    }
                });
                gathering.wait();
            });
            all.local().to_vec().iter().sum()
        });
        assert_eq!(sums.unwrap(), [3, 3]);
    }
}
