//! User code that the runtime calls (functions of reductions, handlers of active messages): the calls that it
//! must not make, and the treatment of its panics.
//!
//! Invariant: a thread that runs such code does not wait for other PEs meanwhile, because those PEs may wait
//! for its result, and the thread may hold locks of the runtime. A panic is this PE's failure even if it is
//! caught: there is no way to tell the other PEs that they get no result.

use super::Job;
use crate::Pe;
use crate::base::panic_message::panic_text;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The callback context: the kind of user code that runs, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    /// The function of an operation.
    Function(&'static str),
    /// The waker of a future.
    Waker,
    /// A handler of active messages, for a message of this PE.
    Handler { name: &'static str, from: Pe },
}

thread_local! {
    /// The user code that this thread runs.
    static RUNNING: Cell<Option<Callback>> = const { Cell::new(None) };
    /// The number of [`HandlerLock`](crate::HandlerLock)s that this thread holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// The number of messages that this thread has prepared and neither sent nor abandoned.
    static PREPARED: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work`, which calls the user's code.
pub fn run(job: &Job, callback: Callback, work: impl FnOnce()) {
    let before = RUNNING.replace(Some(callback));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    RUNNING.set(before);
    if let Err(payload) = outcome {
        let (me, text) = (job.my_pe(), panic_text(payload.as_ref()));
        job.record_failure(&format!("PE {me}: {callback} has panicked: {text}"));
        resume_unwind(payload);
    }
}

/// Fails if user code in a callback makes this call, which waits for other PEs.
#[inline]
#[track_caller]
pub fn forbid(job: &Job, called: &'static str) {
    if let Some(callback) = RUNNING.get() {
        fail(job, callback, called);
    }
}

/// Whether this thread runs no callback.
#[inline(always)]
pub fn is_free() -> bool {
    RUNNING.get().is_none()
}

/// Whether this thread may wait.
#[inline(always)]
pub fn may_wait() -> bool {
    is_free() && HELD.get() == 0 && PREPARED.get() == 0
}

/// Fails if this thread waits in a callback, or while it holds a lock for handlers.
#[track_caller]
pub fn forbid_wait(job: &Job, awaited: impl FnOnce() -> String) {
    if HELD.get() > 0 {
        let (me, awaited) = (job.my_pe(), awaited());
        job.fail(&format!(
            "PE {me}: waits for {awaited} while it holds a HandlerLock, which a handler may wait for. Let \
             the lock go first"
        ));
    }
    if PREPARED.get() > 0 {
        let (me, awaited) = (job.my_pe(), awaited());
        job.fail(&format!(
            "PE {me}: waits for {awaited} while it has prepared an active message, which holds up all that \
             are sent to its target. Send it first, or drop it"
        ));
    }
    if RUNNING.get() == Some(Callback::Waker) {
        let (me, awaited) = (job.my_pe(), awaited());
        job.fail(&format!(
            "PE {me}: the waker of a future waits for {awaited}. A waker may only note that its task can go \
             on"
        ));
    }
    if let Some(Callback::Handler { name, .. }) = RUNNING.get() {
        let (me, awaited) = (job.my_pe(), awaited());
        job.fail(&format!(
            "PE {me}: the handler {name:?} waits for {awaited}. A handler may answer, compute and take \
             notes, for what waits to be done when it has returned"
        ));
    }
}

/// Records that this thread has acquired or released a lock for handlers.
pub fn hold(holds: bool) {
    HELD.set(if holds { HELD.get() + 1 } else { HELD.get() - 1 });
}

/// Records that this thread has prepared a message, or has sent or abandoned it.
pub fn prepare(is_prepared: bool) {
    PREPARED.set(if is_prepared { PREPARED.get() + 1 } else { PREPARED.get() - 1 });
}

/// Fails if a handler sends a reply while it holds a lock that the handler of the reply may wait for.
pub fn forbid_held(job: &Job, called: &'static str) {
    if HELD.get() > 0 {
        let me = job.my_pe();
        job.fail(&format!(
            "PE {me}: {called} while it holds a HandlerLock: the answer may have to wait for room, and the \
             handlers that make room for the lock. Let the lock go first"
        ));
    }
}

/// Whether handlers may run on this thread: not inside another handler, nor while the thread holds a lock for
/// handlers.
pub fn may_run_handlers() -> bool {
    !holds_lock() && is_free()
}

/// Whether this thread holds a lock for handlers. The volatile read keeps the compiler from moving this check
/// ahead of a condition that is rarely true.
#[inline(always)]
pub fn holds_lock() -> bool {
    // SAFETY: the cell belongs to this thread and is alive within `with`, and no reference to its value
    // exists.
    HELD.with(|held| unsafe { held.as_ptr().read_volatile() != 0 })
}

#[cold]
#[inline(never)]
fn fail(job: &Job, callback: Callback, called: &'static str) -> ! {
    let me = job.my_pe();
    match callback {
        Callback::Function(operation) => job.fail(&format!(
            "PE {me}: the function of {operation} calls {called}, which waits for PEs that may wait for the \
             function's result. Let it compute from its two operands alone, and call {called} before or \
             after {operation}"
        )),
        Callback::Waker => job.fail(&format!(
            "PE {me}: the waker of a future calls {called}. A waker may only note that its task can go on"
        )),
        Callback::Handler { name, .. } => job.fail(&format!(
            "PE {me}: the handler {name:?} calls {called}, which a handler must not: it may answer the \
             message once, compute and take notes. Do it when the handler has returned"
        )),
    }
}

impl std::fmt::Display for Callback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Callback::Function(operation) => write!(f, "the function of {operation}"),
            Callback::Waker => f.write_str("the waker of a future"),
            Callback::Handler { name, from } => {
                write!(f, "the handler {name:?} of active messages, for one of PE {from},")
            }
        }
    }
}
