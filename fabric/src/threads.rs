//! Threads of the runtime, besides those of the program.
//!
//! Invariant: they take no signals, so that the program's handlers run on its own threads.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The prefix of the names of all these threads.
pub const PREFIX: &str = "pelago-";

/// `PF_EXITING` of Linux, in the flags of a thread's `stat`: it has begun to end.
const EXITING: u32 = 0x4;

/// The number of threads of this process. A thread that ends stays listed for a moment, even after others
/// have joined it; it is not counted.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn count() -> std::io::Result<usize> {
    let mut count = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // If it cannot be read, the thread has gone since it was listed.
        let stat = std::fs::read_to_string(task?.path().join("stat"));
        count += usize::from(stat.is_ok_and(|stat| !is_exiting(&stat)));
    }
    Ok(count)
}

/// Whether a thread with this `stat` has begun to end. If the flags are missing, it runs.
fn is_exiting(stat: &str) -> bool {
    // The name of the thread stands in parentheses, and may contain some itself.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let flags = after_name.split_whitespace().nth(6).and_then(|flags| flags.parse::<u32>().ok());
    flags.is_some_and(|flags| flags & EXITING != 0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_thread() {
        let stat = |flags: &str| format!("17 (a) b (c) R 1 2 3 0 -1 {flags} 5 0 0 0");
        assert!(!is_exiting(&stat("4194368")));
        assert!(is_exiting(&stat("4194372")));
        assert!(!is_exiting(""));
        assert!(!is_exiting("17 (a"));
        assert!(!is_exiting(&stat("many")));
    }

    /// Other tests run in this process, so that only the threads with a name of this test are looked at.
    #[test]
    fn a_joined_thread_is_exiting_or_gone() {
        let listed = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            let stats =
                tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
            stats.filter(|stat| stat.contains("(counted)")).collect::<Vec<_>>()
        };
        for _ in 0..2000 {
            let thread = std::thread::Builder::new().name("counted".to_owned()).spawn(listed).unwrap();
            assert!(thread.join().unwrap().iter().any(|stat| !is_exiting(stat)));
            assert!(listed().iter().all(|stat| is_exiting(stat)));
        }
    }
}
