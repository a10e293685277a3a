//! Threads of the runtime, besides those of the program.
//!
//! Invariant: they take no signals, so that the program's handlers run on its own threads.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The prefix of the names of all these threads.
pub const PREFIX: &str = "pelago-";

/// The number of threads of this process. A thread that has ended is counted for a moment more, even after
/// others have joined it.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn count() -> std::io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Makes a call, such as one that starts a thread, during which this thread takes no signals; a thread that
/// it starts takes no signals either.
pub fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are local variables; the first is filled before it is used, the second by the call if
    // it returns 0.
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
