//! Counts of the operations of each context (Sandia OpenSHMEM's performance counters), while operations are
//! counted (`PELAGO_COUNTERS`); else they stay 0.
//!
//! Invariant: the counts of a call on a context are the differences of the PE's counts before and after it,
//! since only one thread at a time may start operations. This costs nothing unless operations are counted.

use crate::abi::{ContextCounts, Ctx};
use crate::context;
use crate::extension::completion::is_quiet;
use crate::fault::{Call, fail, output};
use crate::library::{self, Library};
use pelago::World;
use pelago::binding;
use pelago::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The counts of one context.
#[derive(Default)]
pub(crate) struct Counts {
    writes: Count,
    reads: Count,
}

/// Numbers of operations of one kind.
#[derive(Default)]
struct Count {
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
    fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// The number of complete operations: if the context is quiet, all that were issued before the test for
    /// quiet.
    fn completed(&self, call: Call, ctx: Ctx) -> u64 {
        let issued = self.issued();
        if is_quiet(call, ctx) {
            self.completed.fetch_max(issued, Ordering::Relaxed);
        }
        self.completed.load(Ordering::Relaxed)
    }
}

impl Library {
    fn counts(&'static self, call: Call, ctx: Ctx) -> &'static Counts {
        if ctx == Ctx::INVALID {
            fail(call, "ctx is SHMEM_CTX_INVALID");
        }
        context::find(call, ctx).map_or(&self.counts, |context| &context.counts)
    }
}

/// The functions that return one count.
macro_rules! tells {
    ($($name:ident: |$counts:ident, $call:ident, $ctx:ident| $count:expr;)+) => {$(
        pub(crate) unsafe fn $name($call: Call, $ctx: Ctx, cntr_value: *mut u64) {
            let $counts = library::of($call).counts($call, $ctx);
            // SAFETY: the caller's pointer is valid for one value.
            unsafe { output($call, "cntr_value", cntr_value).write($count) };
        }
    )+};
}

tells! {
    issued_write: |counts, call, ctx| counts.writes.issued();
    issued_read: |counts, call, ctx| counts.reads.issued();
    completed_write: |counts, call, ctx| counts.writes.completed(call, ctx);
    completed_read: |counts, call, ctx| counts.reads.completed(call, ctx);
}

/// `shmemx_pcntr_get_completed_target`: 0, as operations of other PEs on the memory of this PE are not
/// counted.
pub(crate) unsafe fn completed_target(call: Call, cntr_value: *mut u64) {
    library::of(call);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output(call, "cntr_value", cntr_value).write(0) };
}

/// `shmemx_pcntr_get_all`: the counts of completed operations, and the counts of issued ones under the names
/// `pending_put` and `pending_get`, as in Sandia OpenSHMEM.
pub(crate) unsafe fn all(call: Call, ctx: Ctx, pcntr: *mut ContextCounts) {
    let Counts { writes, reads } = library::of(call).counts(call, ctx);
    let (completed_put, completed_get) = (writes.completed(call, ctx), reads.completed(call, ctx));
    let (pending_put, pending_get) = (writes.issued(), reads.issued());
    // SAFETY: the caller's pointer is valid for one set of counts.
    unsafe {
        let pcntr = output(call, "pcntr", pcntr);
        pcntr.write(ContextCounts { pending_put, pending_get, completed_put, completed_get, target: 0 });
    }
}
