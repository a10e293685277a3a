//! The threads of this process: whether every one of them is in a long wait of the runtime, so that only
//! other processes can act.
//!
//! Invariant: a thread counts as waiting from [`enter`] to the drop of its result, and both change the epoch.
//! So all threads have waited from one check to another if both checks find them waiting in the same epoch.
//! An unknown thread counts as computing, unless only another thread of the process can wake it
//! (`sleepers.rs`).

use super::sleepers::all_sleep;
use crate::base::locked::locked;
use pelago_fabric::threads::PREFIX;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The time for which the result of one check of the threads is valid, while the epoch is unchanged.
const LOOK_HOLDS: Duration = Duration::from_millis(200);

/// The system's number of a thread.
pub type Tid = i32;

#[derive(Default)]
struct Threads {
    waiting: Vec<Tid>,
    /// Threads that only wait for the end of PEs that are threads.
    resting: Vec<Tid>,
    /// Threads that belong to none of the PEs, in copies of a test program.
    bystanders: Vec<Tid>,
    epoch: u64,
}

static THREADS: Mutex<Threads> =
    Mutex::new(Threads { waiting: Vec::new(), resting: Vec::new(), bystanders: Vec::new(), epoch: 1 });

thread_local! {
    static IS_WAITING: Cell<bool> = const { Cell::new(false) };
    /// The threads that existed before the job of threads that this thread is a PE of.
    static BEFORE_JOB: RefCell<Option<Arc<[Tid]>>> = const { RefCell::new(None) };
}

fn threads() -> MutexGuard<'static, Threads> {
    locked(&THREADS)
}

fn own() -> Tid {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A thread's long wait, which ends when this value is dropped. It stays on the thread that has created it.
pub struct Waiting {
    tid: Tid,
    _thread: std::marker::PhantomData<*const ()>,
}

/// Counts this thread as waiting; `None` if it is counted already, because a wait may contain another one.
pub fn enter() -> Option<Waiting> {
    if IS_WAITING.replace(true) {
        return None;
    }
    let tid = own();
    let mut threads = threads();
    threads.waiting.push(tid);
    threads.epoch += 1;
    Some(Waiting { tid, _thread: std::marker::PhantomData })
}

impl Drop for Waiting {
    fn drop(&mut self) {
        IS_WAITING.set(false);
        let mut threads = threads();
        threads.waiting.retain(|&tid| tid != self.tid);
        threads.epoch += 1;
    }
}

/// Counts this thread as one that only waits for the end of others, until the value is dropped.
pub struct Resting(Tid);

impl Resting {
    pub fn begin() -> Resting {
        let tid = own();
        threads().resting.push(tid);
        Resting(tid)
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        let mut threads = threads();
        if let Some(at) = threads.resting.iter().position(|&tid| tid == self.0) {
            threads.resting.swap_remove(at);
        }
    }
}

/// Declares that all threads except this one have no part in the job, such as the threads of a test harness.
pub fn others_are_bystanders() {
    let others = all().unwrap_or_default().into_iter().filter(|&tid| tid != own()).collect();
    threads().bystanders = others;
}

/// The threads that exist now, before a job of threads begins.
pub fn before_job() -> Arc<[Tid]> {
    all().unwrap_or_default().into()
}

/// Declares, in a PE of a job of threads, the threads that existed before and have no part in it.
pub fn join_job(before: &Arc<[Tid]>) {
    BEFORE_JOB.set(Some(Arc::clone(before)));
}

/// The threads of a world's process.
pub struct Process {
    /// Threads that existed before the job, if its PEs are threads.
    before: Arc<[Tid]>,
    last: Mutex<Option<(u64, Instant, bool)>>,
}

impl Process {
    /// The state for the world that this thread joins.
    pub fn new() -> Process {
        // In an exit handler a thread has no local storage any more.
        let before = BEFORE_JOB.try_with(|before| before.borrow().clone()).ok().flatten();
        let before = before.unwrap_or_default();
        Process { before, last: Mutex::new(None) }
    }

    /// Whether every thread that may belong to a PE of this process is in a long wait, or sleeps until
    /// another thread of the process wakes it; and the epoch in which this holds.
    pub fn is_idle(&self) -> (bool, u64) {
        let threads = threads();
        let epoch = threads.epoch;
        let mut last = locked(&self.last);
        if let Some((_, _, is_idle)) = last.filter(|last| last.0 == epoch && last.1.elapsed() < LOOK_HOLDS) {
            return (is_idle, epoch);
        }
        let is_known = |tid: &Tid| {
            threads.waiting.contains(tid)
                || threads.resting.contains(tid)
                || threads.bystanders.contains(tid)
                || self.before.contains(tid)
                || is_service(*tid)
        };
        let unknown = all().map(|all| all.into_iter().filter(|tid| !is_known(tid)).collect::<Vec<Tid>>());
        let is_idle = unknown.is_some_and(|unknown| all_sleep(&unknown));
        *last = Some((epoch, Instant::now(), is_idle));
        (is_idle, epoch)
    }
}

/// All threads of this process; `None` if the system does not list them.
fn all() -> Option<Vec<Tid>> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    tasks.map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a thread belongs to the runtime. A thread that has just ended does not count as any PE's.
fn is_service(tid: Tid) -> bool {
    let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm"));
    name.map_or(true, |name| name.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_counted_once_however_deep_its_waits_are() {
        let outer = enter();
        assert!(outer.is_some() && enter().is_none());
        assert!(threads().waiting.contains(&own()));
        drop(outer);
        assert!(!threads().waiting.contains(&own()));
        assert!(enter().is_some());
    }

    #[test]
    fn a_thread_that_does_not_wait_is_not_idle() {
        let before: Arc<[Tid]> = all().unwrap().into_iter().filter(|&tid| tid != own()).collect();
        let process = Process { before, last: Mutex::new(None) };
        assert!(!process.is_idle().0, "this thread does not wait");
    }
}
