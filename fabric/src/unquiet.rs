//! The mark of an endpoint: whether something was started there since all was last known to be complete.
//!
//! States of the word: 0, all that was started is complete; `BY_INJECTION` alone, something was started under
//! the injector's lock; otherwise another call has started something, once for each `ONE_CALL`, with
//! `BY_CALL` for the case that the count begins anew.
//!
//! Invariant: who starts something has counted it and then marks, before the provider gets it. The mark goes
//! back to 0 under the injector's lock only: by a quiet, which has the lock of the other calls as well and
//! has found everything that was counted complete; or by who was alone from 0 on.

use crate::sync::{AtomicU32, Ordering};

const BY_INJECTION: u32 = 1;
const BY_CALL: u32 = 2;
const ONE_CALL: u32 = 4;

/// The mark.
#[derive(Debug)]
pub struct Unquiet(AtomicU32);

impl Default for Unquiet {
    fn default() -> Unquiet {
        Unquiet(AtomicU32::new(0))
    }
}

impl Unquiet {
    /// Not 0 if something was started: there is nothing to wait for as long as it is 0.
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Marks that something is started under the injector's lock.
    #[inline(always)]
    pub fn by_injection(&self) {
        self.0.fetch_or(BY_INJECTION, Ordering::Relaxed);
    }

    /// Marks that another call of the endpoint starts something.
    #[inline]
    pub fn by_call(&self) {
        // SYNC POINT started: releases the count of what is started.
        let before = self.0.fetch_add(ONE_CALL, Ordering::Release);
        if before & BY_CALL == 0 {
            // Not 0, however many there are.
            self.0.fetch_or(BY_CALL, Ordering::Relaxed);
        }
    }

    /// Marks that something is started under the injector's lock, if nothing else is marked.
    #[inline(always)]
    pub fn begin_alone(&self) -> bool {
        // SYNC POINT unquiet: acquires what has come to be known as complete.
        self.0.compare_exchange(0, BY_INJECTION, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes that mark away, if nothing else was marked since. If so, all that the provider has completed
    /// since is what was started alone; if not, nobody knows.
    #[inline(always)]
    pub fn end_alone(&self) -> bool {
        // SYNC POINT unquiet: releases what has come to be known as complete.
        self.0.compare_exchange(BY_INJECTION, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The mark after another call has started one operation, and nothing else is started.
    pub fn after_one_call(mark: u32) -> u32 {
        mark.wrapping_add(ONE_CALL) | BY_CALL
    }

    /// The mark as it is now: to be read before the counts.
    pub fn read(&self) -> u32 {
        // SYNC POINT started: acquires the counts of what was started.
        self.0.load(Ordering::Acquire)
    }

    /// Takes the mark away, as all that was counted is complete, unless it has changed since it was read.
    pub fn clear(&self, mark: u32) {
        // SYNC POINT unquiet: releases what has come to be known as complete.
        let _ = self.0.compare_exchange(mark, 0, Ordering::Release, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn marks_stay_however_many_there_are() {
        let unquiet = Unquiet(AtomicU32::new(u32::MAX - ONE_CALL + 1 + BY_CALL));
        unquiet.by_call();
        assert_eq!(unquiet.read(), BY_CALL, "the count begins anew, the mark does not");
        unquiet.by_call();
        unquiet.clear(BY_CALL);
        assert_eq!(unquiet.read(), BY_CALL + ONE_CALL, "something was started meanwhile");
        unquiet.clear(BY_CALL + ONE_CALL);
        assert_eq!(unquiet.read(), 0);
    }

    #[test]
    fn one_by_the_channel_is_foreseen() {
        for before in [0, BY_INJECTION, BY_CALL, u32::MAX - ONE_CALL + 1 + BY_CALL] {
            let unquiet = Unquiet(AtomicU32::new(before));
            unquiet.by_call();
            assert_eq!(unquiet.read(), Unquiet::after_one_call(before), "{before:#x}");
        }
    }

    #[test]
    fn who_is_not_alone_takes_no_mark_away() {
        let unquiet = Unquiet::default();
        assert!(unquiet.begin_alone() && !unquiet.begin_alone() && unquiet.end_alone());
        assert_eq!(unquiet.read(), 0);
        unquiet.by_injection();
        assert!(!unquiet.begin_alone(), "puts are under way");
        unquiet.clear(unquiet.read());
        assert!(unquiet.begin_alone());
        unquiet.by_call();
        assert!(!unquiet.end_alone(), "something else was started");
        assert_ne!(unquiet.read(), 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::AtomicU64;
    use loom::sync::Arc;
    use loom::thread;

    /// A get that is started alone and never completes, and one of the channel that completes at once: the
    /// count of complete gets never says that the first one is.
    #[test]
    fn loom_unquiet_takes_no_other_get_for_the_lone_one() {
        loom::model(|| {
            let (unquiet, started, complete) =
                (Arc::new(Unquiet::default()), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let channel = {
                let (unquiet, started, complete) = (unquiet.clone(), started.clone(), complete.clone());
                thread::spawn(move || {
                    started.fetch_add(1, Ordering::Relaxed);
                    unquiet.by_call();
                    complete.fetch_add(1, Ordering::Release);
                })
            };
            if unquiet.begin_alone() {
                let all = started.load(Ordering::Relaxed) + 1;
                for _ in 0..2 {
                    let is_complete = complete.load(Ordering::Acquire) >= all && unquiet.end_alone();
                    assert!(!is_complete, "it never is");
                }
            }
            channel.join().unwrap();
            assert_ne!(unquiet.read(), 0, "something is under way");
        });
    }
}
