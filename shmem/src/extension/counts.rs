//! The calls that return the counts of a context's operations (Sandia OpenSHMEM's performance counters).

use crate::base::abi::{ContextCounts, Ctx};
use crate::base::fault::{Call, fail, output};
use crate::handles::context;
use crate::handles::counts::Counts;
use crate::library::{self, Library};

/// The functions that return one count.
macro_rules! tells {
    ($($name:ident: |$counts:ident, $is_quiet:ident| $count:expr;)+) => {$(
        pub(crate) unsafe fn $name(call: Call, ctx: Ctx, cntr_value: *mut u64) {
            let library = library::of(call);
            let $counts = library.counts(call, ctx);
            let $is_quiet = || library.is_quiet(call, ctx);
            // SAFETY: the caller's pointer is valid for one value.
            unsafe { output(call, "cntr_value", cntr_value).write($count) };
        }
    )+};
}

tells! {
    issued_write: |counts, _is_quiet| counts.writes.issued();
    issued_read: |counts, _is_quiet| counts.reads.issued();
    completed_write: |counts, is_quiet| counts.writes.completed(is_quiet);
    completed_read: |counts, is_quiet| counts.reads.completed(is_quiet);
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
    let library = library::of(call);
    let Counts { writes, reads } = library.counts(call, ctx);
    let is_quiet = || library.is_quiet(call, ctx);
    let (completed_put, completed_get) = (writes.completed(is_quiet), reads.completed(is_quiet));
    let (pending_put, pending_get) = (writes.issued(), reads.issued());
    // SAFETY: the caller's pointer is valid for one set of counts.
    unsafe {
        let pcntr = output(call, "pcntr", pcntr);
        pcntr.write(ContextCounts { pending_put, pending_get, completed_put, completed_get, target: 0 });
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
