//! Users' functions of reductions while they run: what they must not call, and what becomes of their panics.
//!
//! Invariant: a thread that runs such a function does not wait in a collective operation meanwhile, as those
//! that it would wait for may wait for the function's result, and the locks of the engine may be held. A
//! panic of the function is this PE's failure, whoever catches it: the other members cannot be told that
//! they have no result.

use crate::join::panic_text;
use crate::world::World;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// The operation whose function this thread runs.
    static RUNNING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Runs what calls a user's function for an operation.
pub(super) fn run(world: &World, operation: &'static str, work: impl FnOnce()) {
    let before = RUNNING.replace(Some(operation));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    RUNNING.set(before);
    if let Err(payload) = outcome {
        let (me, text) = (world.my_pe(), panic_text(payload.as_ref()));
        world.record_failure(&format!("PE {me}: the function of {operation} has panicked: {text}"));
        resume_unwind(payload);
    }
}

/// Makes sure that no user's function makes the call, which waits for other PEs.
pub(crate) fn forbid(world: &World, called: &'static str) {
    if let Some(operation) = RUNNING.get() {
        fail(world, operation, called);
    }
}

#[cold]
#[inline(never)]
fn fail(world: &World, operation: &'static str, called: &'static str) -> ! {
    let me = world.my_pe();
    world.fail(&format!(
        "PE {me}: the function of {operation} calls {called}, which waits for PEs that may wait for the \
         function's result. Let it compute from its two operands alone, and call {called} before or after \
         {operation}"
    ))
}
