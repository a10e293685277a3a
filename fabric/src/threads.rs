//! Threads of the runtime, beside those of the program.
//!
//! Invariant: they take no signals, so that the program's handlers run on its own threads.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// What the names of all these threads begin with.
pub const PREFIX: &str = "pelago-";

/// How many threads this process has. One that has ended is there for a moment more, after others may know of
/// its end.
///
/// # Errors
/// If `/proc` is not there.
pub fn count() -> std::io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Makes a call, such as one that starts a thread, during which this thread takes no signals; nor does a
/// thread that it starts.
pub fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are ours; the first is filled before it is used, the second by the call that
    // answers 0.
    let is_blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let outcome = start();
    if is_blocked {
        // SAFETY: the call above has filled this thread's former mask in.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
    }
    outcome
}
