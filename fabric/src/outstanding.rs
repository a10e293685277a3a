//! The outstanding flag of an endpoint: whether operations were started there since all were last known to be
//! complete.
//!
//! States of the word: 0, all operations that were started are complete; `BY_INJECTION` alone, operations
//! were started under the injector's lock; otherwise other calls have started operations, one for each
//! `ONE_CALL`. `BY_CALL` is set as well, in case the count wraps around.
//!
//! Invariant: a thread that starts an operation first counts it, then sets the flag, and then passes it to
//! the provider. The flag is cleared only under the injector's lock: by a quiet, which has the lock of the
//! other calls as well and has found all counted operations complete; or by a thread that has set it alone,
//! starting from 0.

use crate::sync::{AtomicU32, Ordering};

const BY_INJECTION: u32 = 1;
const BY_CALL: u32 = 2;
const ONE_CALL: u32 = 4;

/// The outstanding flag.
#[derive(Debug)]
pub struct OutstandingFlag(AtomicU32);

impl Default for OutstandingFlag {
    fn default() -> OutstandingFlag {
        OutstandingFlag(AtomicU32::new(0))
    }
}

impl OutstandingFlag {
    /// The word of the flag. As long as it is 0 there is nothing to wait for.
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Sets the flag for an operation that is started under the injector's lock.
    #[inline(always)]
    pub fn by_injection(&self) {
        self.0.fetch_or(BY_INJECTION, Ordering::Relaxed);
    }

    /// Sets the flag for an operation that another call of the endpoint starts.
    #[inline]
    pub fn by_call(&self) {
        // SYNC POINT started: releases the count of started operations.
        let before = self.0.fetch_add(ONE_CALL, Ordering::Release);
        if before & BY_CALL == 0 {
            // This keeps the word from being 0 when the count wraps around.
            self.0.fetch_or(BY_CALL, Ordering::Relaxed);
        }
    }

    /// Sets the flag for an operation that is started under the injector's lock, if the flag is clear.
    #[inline(always)]
    pub fn begin_alone(&self) -> bool {
        // SYNC POINT outstanding: acquires the effects of the operations that are known to be complete.
        self.0.compare_exchange(0, BY_INJECTION, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Clears that flag, if no other operation has set it since. Then the only operation that the provider
    /// has completed since is the one that was started alone. Otherwise it is not known which operations are
    /// complete.
    #[inline(always)]
    pub fn end_alone(&self) -> bool {
        // SYNC POINT outstanding: releases the effects of the operations that are known to be complete.
        self.0.compare_exchange(BY_INJECTION, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The value of the flag after another call has started one operation, and no other operation is started.
    pub fn after_one_call(mark: u32) -> u32 {
        mark.wrapping_add(ONE_CALL) | BY_CALL
    }

    /// The current value of the flag. It must be read before the counts.
    pub fn read(&self) -> u32 {
        // SYNC POINT started: acquires the counts of started operations.
        self.0.load(Ordering::Acquire)
    }

    /// Clears the flag, because all counted operations are complete, unless it has changed since it was read.
    pub fn clear(&self, mark: u32) {
        // SYNC POINT outstanding: releases the effects of the operations that are known to be complete.
        let _ = self.0.compare_exchange(mark, 0, Ordering::Release, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn marks_stay_however_many_there_are() {
        let outstanding = OutstandingFlag(AtomicU32::new(u32::MAX - ONE_CALL + 1 + BY_CALL));
        outstanding.by_call();
        assert_eq!(outstanding.read(), BY_CALL, "the count wraps around, and BY_CALL stays set");
        outstanding.by_call();
        outstanding.clear(BY_CALL);
        assert_eq!(outstanding.read(), BY_CALL + ONE_CALL, "an operation was started meanwhile");
        outstanding.clear(BY_CALL + ONE_CALL);
        assert_eq!(outstanding.read(), 0);
    }

    #[test]
    fn one_by_the_channel_is_foreseen() {
        for before in [0, BY_INJECTION, BY_CALL, u32::MAX - ONE_CALL + 1 + BY_CALL] {
            let outstanding = OutstandingFlag(AtomicU32::new(before));
            outstanding.by_call();
            assert_eq!(outstanding.read(), OutstandingFlag::after_one_call(before), "{before:#x}");
        }
    }

    #[test]
    fn who_is_not_alone_takes_no_mark_away() {
        let outstanding = OutstandingFlag::default();
        assert!(outstanding.begin_alone() && !outstanding.begin_alone() && outstanding.end_alone());
        assert_eq!(outstanding.read(), 0);
        outstanding.by_injection();
        assert!(!outstanding.begin_alone(), "puts are under way");
        outstanding.clear(outstanding.read());
        assert!(outstanding.begin_alone());
        outstanding.by_call();
        assert!(!outstanding.end_alone(), "another operation was started");
        assert_ne!(outstanding.read(), 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::AtomicU64;
    use loom::sync::Arc;
    use loom::thread;

    /// A get that is started alone and never completes, and a get of the endpoint's other calls that
    /// completes at once: the count of complete gets never shows the first one as complete.
    #[test]
    fn loom_unquiet_takes_no_other_get_for_the_lone_one() {
        loom::model(|| {
            let (outstanding, started, complete) = (
                Arc::new(OutstandingFlag::default()),
                Arc::new(AtomicU64::new(0)),
                Arc::new(AtomicU64::new(0)),
            );
            let channel = {
                let (outstanding, started, complete) =
                    (outstanding.clone(), started.clone(), complete.clone());
                thread::spawn(move || {
                    started.fetch_add(1, Ordering::Relaxed);
                    outstanding.by_call();
                    complete.fetch_add(1, Ordering::Release);
                })
            };
            if outstanding.begin_alone() {
                let all = started.load(Ordering::Relaxed) + 1;
                for _ in 0..2 {
                    let is_complete = complete.load(Ordering::Acquire) >= all && outstanding.end_alone();
                    assert!(!is_complete, "it never is");
                }
            }
            channel.join().unwrap();
            assert_ne!(outstanding.read(), 0, "an operation is under way");
        });
    }
}
