//! Clocks of the system that the standard library does not give: one that is the same in all processes of a
//! node, and one of a thread's time on a core. Invariant: neither is ever set back.

use std::io;
use std::time::Duration;

/// Time since some moment that is the same for all processes of the node.
///
/// # Errors
/// If the system has no such clock.
pub(super) fn node_time() -> io::Result<Duration> {
    read(libc::CLOCK_MONOTONIC)
}

/// Time on a core that the calling thread has had.
///
/// # Errors
/// If the system has no such clock.
pub(super) fn thread_time() -> io::Result<Duration> {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes a time into `time`, which outlives the call.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The system keeps both within their ranges.
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on() {
        for clock in [node_time, thread_time] {
            let start = clock().unwrap();
            while clock().unwrap() <= start {}
        }
        assert!(read(-1).is_err(), "there is no such clock");
    }
}
