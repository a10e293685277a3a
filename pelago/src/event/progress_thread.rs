//! A thread that makes progress while the others of its PE compute.
//!
//! Invariant: it does not spin. It waits as any thread of a PE waits, for being told to end: it runs what
//! arrives, and sleeps at the doorbell, where active messages and barriers ring, but puts and atomics, which
//! need nobody at their target, do not.

use crate::wait::Awaited;
use crate::world::World;
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
        self.world.ring_own();
    }
}

impl World {
    /// Runs `work` beside a thread that makes progress: it executes active messages and procedure calls that
    /// arrive, moves non-blocking collectives, and over a net everything else, while this PE computes, and it
    /// wakes the futures whose events have come. It costs a core when there is much to do, and none while
    /// there is nothing.
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
    pub fn with_progress_thread<R>(&self, work: impl FnOnce() -> R) -> R {
        let is_over = AtomicBool::new(false);
        // From now on futures rely on it, although it has still to begin.
        let driver = self.driver();
        std::thread::scope(|scope| {
            let is_over = &is_over;
            let thread = scope.spawn(move || {
                let _driver = driver;
                // Nothing is handed over by this: the thread's end is what the caller waits for.
                self.wait(Awaited::EndOfWork, self.waking(|| is_over.load(Ordering::Relaxed)));
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
