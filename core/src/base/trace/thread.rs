//! The threads of a process, numbered for the record, and the time that each has waited.

use pelago_fabric::sync::{AtomicU64, Ordering};
use std::cell::Cell;
use std::time::{Duration, Instant};

static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NUMBER: Cell<Option<u8>> = const { Cell::new(None) };
    static WAITS: Cell<u32> = const { Cell::new(0) };
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The number of this thread. Threads after the 255th share the last number.
pub(super) fn number() -> u8 {
    NUMBER.get().unwrap_or_else(|| {
        let number = THREADS.fetch_add(1, Ordering::Relaxed).min(u8::MAX.into()) as u8;
        NUMBER.set(Some(number));
        number
    })
}

/// The time that this thread has waited so far.
pub(super) fn waited() -> Duration {
    WAITED.get()
}

/// This thread begins to wait.
pub(super) fn begin_wait() {
    WAITS.set(WAITS.get() + 1);
}

/// It ends a wait that began then: its time, or zero for a wait inside another wait, which is a part of it.
pub(super) fn end_wait(since: Instant) -> Duration {
    WAITS.set(WAITS.get() - 1);
    if WAITS.get() > 0 {
        return Duration::ZERO;
    }
    let time = since.elapsed();
    WAITED.set(WAITED.get() + time);
    time
}
