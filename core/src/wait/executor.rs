//! The thread that runs handlers, and the waits of other threads of its PE that cannot end while it is
//! blocked.
//!
//! A handler that starts a thread and waits for its end blocks the PE for ever if that thread waits in the
//! runtime: the thread waits for an event that needs handlers, or for the end of this handler. The runtime
//! cannot tell which thread has started which. So a wait fails when one and the same run of handlers has been
//! asleep for `BLOCKED_LIMIT`, without any use of a processor. A handler that computes has no limit.
//!
//! Invariant: a run is recorded for exactly as long as its thread holds the lock of the inbox; a run that
//! waits in the runtime itself, for space for a reply, is excused.

use crate::job::Job;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long handlers may be asleep while another thread of the PE waits.
const BLOCKED_LIMIT: Duration = Duration::from_secs(5);
/// The shortest time between two checks of the thread that runs handlers.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The system's number of this thread; 0 until it is known.
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// The run of a PE's handlers for requests, or for replies.
#[derive(Default)]
pub struct Executor {
    /// The number of the thread that runs handlers now; 0 if none does.
    thread: AtomicU32,
    /// The number of runs so far.
    runs: AtomicU64,
    /// Whether it waits in the runtime.
    is_excused: AtomicU32,
}

/// A run of handlers, until it is dropped.
pub struct Run<'a>(&'a Executor);

impl Executor {
    /// Begins a run of handlers on this thread.
    pub fn run(&self) -> Run<'_> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.thread.store(own_thread(), Ordering::Relaxed);
        Run(self)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.thread.store(0, Ordering::Relaxed);
    }
}

/// The executor for requests, and the executor for replies.
#[derive(Default)]
pub struct Executors(pub [Executor; 2]);

/// Excuses the runs of a thread, until it is dropped.
pub struct Excused<'a>(&'a Executors);

impl Executors {
    /// Excuses this thread, which runs handlers and waits in the runtime, until the result is dropped.
    pub fn excuse(&self) -> Excused<'_> {
        self.set_excused(1);
        Excused(self)
    }

    fn set_excused(&self, is_excused: u32) {
        let own = self.0.iter().filter(|one| one.thread.load(Ordering::Relaxed) == own_thread());
        own.for_each(|executor| executor.is_excused.store(is_excused, Ordering::Relaxed));
    }
}

impl Drop for Excused<'_> {
    fn drop(&mut self) {
        self.0.set_excused(0);
    }
}

/// The handlers on other threads of this PE, as observed by a wait.
#[derive(Debug, Default)]
pub struct BlockedHandlers {
    looked: Option<Instant>,
    /// For each executor: a run that was asleep at every check, and the time of the first check.
    asleep: [Option<(Asleep, Instant)>; 2],
}

/// A run that is asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asleep {
    run: u64,
    /// Processor time of the thread, in the system's ticks.
    ticks: u64,
}

impl BlockedHandlers {
    /// Checks them from time to time; fails if one has been asleep for too long. `awaited` describes the
    /// condition that the caller waits for.
    pub fn look(&mut self, job: &Job, executors: &Executors, awaited: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now.duration_since(looked) < LOOK_INTERVAL) {
            return;
        }
        self.looked = Some(now);
        for (executor, asleep) in executors.0.iter().zip(&mut self.asleep) {
            *asleep = executor.asleep().map(|found| match *asleep {
                Some((before, since)) if before == found => (found, since),
                _ => (found, now),
            });
        }
        let is_blocked = |since: Instant| now.duration_since(since) > BLOCKED_LIMIT;
        if self.asleep.iter().flatten().any(|&(_, since)| is_blocked(since)) {
            let (me, awaited) = (job.my_pe(), awaited());
            job.fail(&format!(
                "PE {me}: waits for {awaited}, while a handler of active messages has been blocked for \
                 {BLOCKED_LIMIT:?} on another thread of this PE. If it waits for the thread that says this, \
                 neither goes on: a handler may answer, compute and take notes. Let the thread that waits \
                 begin when the handler has returned"
            ));
        }
    }
}

impl Executor {
    /// The run of another thread, if there is one and it is asleep.
    fn asleep(&self) -> Option<Asleep> {
        let run = self.runs.load(Ordering::Relaxed);
        let thread = self.thread.load(Ordering::Relaxed);
        if thread == 0 || thread == own_thread() || self.is_excused.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
        Some(Asleep { run, ticks: ticks_asleep(&text)? })
    }
}

/// The ticks that a thread has used of a processor, from the text of its `stat`, if it is asleep.
fn ticks_asleep(stat: &str) -> Option<u64> {
    // The name is in brackets and may have any characters, including brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    if fields.next()? != "S" {
        return None;
    }
    let mut ticks = fields.skip(10).map(str::parse::<u64>);
    Some(ticks.next()?.ok()? + ticks.next()?.ok()?)
}

/// The system's number of this thread.
fn own_thread() -> u32 {
    match THREAD.get() {
        0 => {
            let number = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            THREAD.set(number);
            number
        }
        number => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_those_of_threads_that_are_asleep() {
        let stat = |state| format!("77 (a ) b) {state} 1 77 77 0 -1 4194304 91 0 0 0 12 30 0 0 20 0 2 0 500");
        assert_eq!(ticks_asleep(&stat("S")), Some(42));
        assert_eq!(ticks_asleep(&stat("R")), None);
        assert_eq!(ticks_asleep("77 (short) S 1"), None);
    }

    #[test]
    fn a_run_is_noted_while_it_lasts_and_is_not_its_own_thread_s_concern() {
        let executor = Executor::default();
        let run = executor.run();
        assert_eq!((executor.thread.load(Ordering::Relaxed), executor.asleep()), (own_thread(), None));
        drop(run);
        assert_eq!(executor.thread.load(Ordering::Relaxed), 0);
    }
}
