//! Threads that sleep until another thread of this process wakes them, such as the idle workers of OpenMP.
//!
//! Invariant: each thread is read twice. If both readings find it in the same wait without a time limit, for
//! a futex that no other process can reach, and with the same number of context switches, then it slept from
//! the first reading to the second. So all threads slept at one moment: the end of the first reading of all.
//! From then on they sleep until a thread that is not among them wakes one, or a handler of a signal.

use super::threads::Tid;
use std::fs::read_to_string;

/// The sleep of a thread: it changes when the thread runs.
#[derive(PartialEq, Eq)]
struct Sleep {
    futex: usize,
    switches: u64,
}

/// Whether all these threads of this process slept at one moment of this call. `false` also if the system
/// does not show it.
pub fn all_sleep(tids: &[Tid]) -> bool {
    let read = || tids.iter().map(|&tid| sleep(tid)).collect::<Option<Vec<Sleep>>>();
    tids.is_empty() || read().is_some_and(|first| read().as_ref() == Some(&first))
}

fn sleep(tid: Tid) -> Option<Sleep> {
    let file = |name| read_to_string(format!("/proc/self/task/{tid}/{name}")).ok();
    let (futex, is_private) = untimed_wait(&file("syscall")?)?;
    let switches = switches(&file("status")?)?;
    let is_own = is_private || is_mapped_privately(&read_to_string("/proc/self/maps").ok()?, futex);
    is_own.then_some(Sleep { futex, switches })
}

/// The futex that a system call waits for without a limit, and whether the call says that it is private. The
/// line has the number of the call in decimal, and its arguments in hexadecimal.
fn untimed_wait(line: &str) -> Option<(usize, bool)> {
    let mut fields = line.split_ascii_whitespace();
    if fields.next()?.parse() != Ok(libc::SYS_futex) {
        return None;
    }
    let mut argument = || usize::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    let (futex, operation, _value, timeout) = (argument()?, argument()? as i32, argument()?, argument()?);
    let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let waits = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].contains(&command) && timeout == 0;
    waits.then_some((futex, operation & libc::FUTEX_PRIVATE_FLAG != 0))
}

/// How often a thread has left its processor.
fn switches(status: &str) -> Option<u64> {
    let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    let counts: Vec<u64> = counts.map(|(_, count)| count.trim().parse()).collect::<Result<_, _>>().ok()?;
    (counts.len() == 2).then(|| counts.iter().sum())
}

/// Whether an address lies in memory that this process shares with no other. A thread that joins another one
/// waits for a futex there, which its call does not say.
fn is_mapped_privately(maps: &str, address: usize) -> bool {
    let has_address = |line: &&str| {
        let (start, end) = line.split_once(' ').and_then(|(range, _)| range.split_once('-'))?;
        let parsed = |text| usize::from_str_radix(text, 16).ok();
        Some((parsed(start)?..parsed(end)?).contains(&address))
    };
    let line = maps.lines().find(|line| has_address(line) == Some(true));
    line.and_then(|line| line.split(' ').nth(1)).is_some_and(|permissions| permissions.ends_with('p'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pelago_fabric::sync::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    fn own() -> Tid {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    /// Waits for what happens soon.
    fn soon(what: &str, is_true: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_true() {
            assert!(start.elapsed() < Duration::from_secs(60), "waited 60 s for {what}");
            thread::yield_now();
        }
    }

    #[test]
    fn threads_sleep_that_wait_for_another_thread() {
        let (tids, is_done) = ([const { AtomicUsize::new(0) }; 3], AtomicBool::new(false));
        let tid = |i: usize| tids[i].load(Ordering::Relaxed) as Tid;
        let note = |i: usize| tids[i].store(own() as usize, Ordering::Relaxed);
        thread::scope(|scope| {
            let parked = scope.spawn(|| {
                note(0);
                while !is_done.load(Ordering::Relaxed) {
                    thread::park();
                }
            });
            let wakes = parked.thread().clone();
            scope.spawn(|| {
                note(1);
                parked.join().unwrap();
            });
            scope.spawn(|| {
                note(2);
                while !is_done.load(Ordering::Relaxed) {
                    thread::park_timeout(Duration::from_millis(1));
                }
            });
            soon("three threads", || (0..3).all(|i| tid(i) != 0));
            soon("a parked thread and one that joins it", || all_sleep(&[tid(0), tid(1)]));
            assert!(!all_sleep(&[own()]), "this thread runs");
            assert!(!all_sleep(&[tid(0), own()]));
            for _ in 0..100 {
                assert!(!all_sleep(&[tid(2)]), "it wakes by itself");
            }
            is_done.store(true, Ordering::Relaxed);
            wakes.unpark();
        });
        assert!(!all_sleep(&[tid(0)]), "it has ended");
        assert!(all_sleep(&[]));
    }

    #[test]
    fn only_untimed_waits_for_futexes_count() {
        let nr = libc::SYS_futex;
        let wait = |operation: &str, timeout: &str| {
            untimed_wait(&format!("{nr} 0x7f10 {operation} 0x2 {timeout} 0x0 0xffffffff 0x7ffc 0x7f44\n"))
        };
        assert_eq!(wait("0x80", "0x0"), Some((0x7f10, true)), "a wait of a private futex");
        assert_eq!(wait("0x189", "0x0"), Some((0x7f10, true)), "of a condition variable");
        assert_eq!(wait("0x109", "0x0"), Some((0x7f10, false)), "of a join");
        assert_eq!(wait("0x89", "0x7ffe10"), None, "it has a limit");
        assert_eq!(wait("0x81", "0x0"), None, "it wakes others");
        for line in ["running\n", "-1 0x7ffc 0x7f44\n", "", "0 0x1 0x2\n", &format!("{nr} 0x7f10\n")] {
            assert_eq!(untimed_wait(line), None, "{line:?}");
        }
    }

    #[test]
    fn memory_that_is_shared_is_not_private() {
        let maps = "1000-2000 rw-p 00000000 00:00 0 [heap]\n2000-3000 rw-s 00000000 00:01 7 /dev/shm/a\n";
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x3000].map(|at| is_mapped_privately(maps, at)),
            [false, true, true, false, false]
        );
        let value = 0_u32;
        let own = read_to_string("/proc/self/maps").unwrap();
        assert!(is_mapped_privately(&own, (&raw const value).addr()));
    }

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t355\nnonvoluntary_ctxt_switches:\t95\n";
        assert_eq!(switches(status), Some(450));
        assert_eq!(switches("Name:\ta\n"), None);
        assert_eq!(switches(&status.replace("95", "many")), None);
    }
}
