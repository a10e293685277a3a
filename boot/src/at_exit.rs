//! An exit handler that leaves the job if the exit status is 0.
//!
//! Invariant: launchers ignore the exit status of a process that has left the job (PMI finalize). So a
//! process that other PEs still wait for finalizes at exit, and only with status 0: any other status reaches
//! the launcher.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// The action at exit.
type Leave = Box<dyn FnOnce() + Send>;

/// The action at the exit of this process, and the process id: a forked child does not run the action.
static TO_LEAVE: Mutex<Option<(u32, Leave)>> = Mutex::new(None);

/// Calls `leave_job` when this process exits, if its status is 0 then; at once, if the C library does not
/// report the status to exit handlers.
pub(crate) fn leave_at_exit(leave_job: impl FnOnce() + Send + 'static) {
    *TO_LEAVE.lock().unwrap_or_else(PoisonError::into_inner) =
        Some((std::process::id(), Box::new(leave_job)));
    if !call_at_exit() {
        leave(0, std::ptr::null_mut());
    }
}

#[cfg(target_env = "gnu")]
fn call_at_exit() -> bool {
    // SAFETY: the declaration is that of the C library's manual, which also specifies the call.
    unsafe extern "C" {
        /// Of the GNU C library: `function` is called at exit, with the status and `argument`.
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }
    // SAFETY: the function has the type that the C library requires, exists as long as the process, and does
    // not use its argument.
    unsafe { on_exit(leave, std::ptr::null_mut()) == 0 }
}

#[cfg(not(target_env = "gnu"))]
fn call_at_exit() -> bool {
    false
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    let Some((process, leave_job)) = TO_LEAVE.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return;
    };
    // The system truncates a status to eight bits.
    if status & 0xff == 0 && process == std::process::id() {
        leave_job();
    } else {
        // The system closes the socket after the launcher can see the status.
        std::mem::forget(leave_job);
    }
}
