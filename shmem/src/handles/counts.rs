//! Counts of the operations of each context, while operations are counted (`PELAGO_COUNTERS`); else they
//! stay 0.
//!
//! Invariant: the counts of a call on a context are the differences of the PE's counts before and after it,
//! since only one thread at a time may start operations. This costs nothing unless operations are counted.

use pelago::World;
use pelago::binding;
use pelago::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The counts of one context.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) writes: Count,
    pub(crate) reads: Count,
}

/// Numbers of operations of one kind.
#[derive(Default)]
pub(crate) struct Count {
    issued: AtomicU64,
    /// The number of operations that are known to be complete.
    completed: AtomicU64,
}

/// Only the thread that holds this lock changes the counts of the PE.
static ALONE: Mutex<()> = Mutex::new(());

impl Counts {
    /// Runs `work`, and counts the operations that it starts.
    #[inline]
    pub(crate) fn of<R>(&self, world: &World, work: impl FnOnce() -> R) -> R {
        if !binding::counts_operations(world) {
            return work();
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = world.counters();
        let result = work();
        let after = world.counters();
        let writes = after.puts + after.atomics - before.puts - before.atomics;
        self.writes.issued.fetch_add(writes, Ordering::Relaxed);
        self.reads.issued.fetch_add(after.gets - before.gets, Ordering::Relaxed);
        result
    }
}

impl Count {
    pub(crate) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// The number of complete operations: if the context is quiet, all that were issued before the test for
    /// quiet.
    pub(crate) fn completed(&self, is_quiet: impl FnOnce() -> bool) -> u64 {
        let issued = self.issued();
        if is_quiet() {
            self.completed.fetch_max(issued, Ordering::Relaxed);
        }
        self.completed.load(Ordering::Relaxed)
    }
}
