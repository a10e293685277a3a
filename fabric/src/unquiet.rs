//! The mark of an endpoint: whether something was started there since all was last known to be complete.
//!
//! States of the word: 0, all that was started is complete; `BY_SHORTCUT` alone, something was started under
//! the shortcut's lock; otherwise the channel has started something, once for each `ONE_BY_CHANNEL`, with
//! `BY_CHANNEL` for the case that the count begins anew.
//!
//! Invariant: who starts something has counted it and then marks, before the provider gets it. The mark goes
//! back to 0 under the shortcut's lock only: by a quiet, which has the channel's lock as well and has found
//! everything that was counted complete; or by who was alone from 0 on.

use crate::sync::{AtomicU32, Ordering};

const BY_SHORTCUT: u32 = 1;
const BY_CHANNEL: u32 = 2;
const ONE_BY_CHANNEL: u32 = 4;

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

    /// Marks that something is started under the shortcut's lock.
    #[inline(always)]
    pub fn by_shortcut(&self) {
        self.0.fetch_or(BY_SHORTCUT, Ordering::Relaxed);
    }

    /// Marks that the channel starts something.
    #[inline]
    pub fn by_channel(&self) {
        // SYNC POINT started: releases the count of what is started.
        let before = self.0.fetch_add(ONE_BY_CHANNEL, Ordering::Release);
        if before & BY_CHANNEL == 0 {
            // Not 0, however many there are.
            self.0.fetch_or(BY_CHANNEL, Ordering::Relaxed);
        }
    }

    /// Marks that something is started under the shortcut's lock, if nothing else is marked.
    #[inline(always)]
    pub fn begin_alone(&self) -> bool {
        // SYNC POINT unquiet: acquires what has come to be known as complete.
        self.0.compare_exchange(0, BY_SHORTCUT, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes that mark away, if nothing else was marked since. If so, all that the provider has completed
    /// since is what was started alone; if not, nobody knows.
    #[inline(always)]
    pub fn end_alone(&self) -> bool {
        // SYNC POINT unquiet: releases what has come to be known as complete.
        self.0.compare_exchange(BY_SHORTCUT, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// What a mark becomes if the channel starts one thing, and nothing else is started.
    pub fn after_one_by_channel(mark: u32) -> u32 {
        mark.wrapping_add(ONE_BY_CHANNEL) | BY_CHANNEL
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
        let unquiet = Unquiet(AtomicU32::new(u32::MAX - ONE_BY_CHANNEL + 1 + BY_CHANNEL));
        unquiet.by_channel();
        assert_eq!(unquiet.read(), BY_CHANNEL, "the count begins anew, the mark does not");
        unquiet.by_channel();
        unquiet.clear(BY_CHANNEL);
        assert_eq!(unquiet.read(), BY_CHANNEL + ONE_BY_CHANNEL, "something was started meanwhile");
        unquiet.clear(BY_CHANNEL + ONE_BY_CHANNEL);
        assert_eq!(unquiet.read(), 0);
    }

    #[test]
    fn one_by_the_channel_is_foreseen() {
        for before in [0, BY_SHORTCUT, BY_CHANNEL, u32::MAX - ONE_BY_CHANNEL + 1 + BY_CHANNEL] {
            let unquiet = Unquiet(AtomicU32::new(before));
            unquiet.by_channel();
            assert_eq!(unquiet.read(), Unquiet::after_one_by_channel(before), "{before:#x}");
        }
    }

    #[test]
    fn who_is_not_alone_takes_no_mark_away() {
        let unquiet = Unquiet::default();
        assert!(unquiet.begin_alone() && !unquiet.begin_alone() && unquiet.end_alone());
        assert_eq!(unquiet.read(), 0);
        unquiet.by_shortcut();
        assert!(!unquiet.begin_alone(), "puts are under way");
        unquiet.clear(unquiet.read());
        assert!(unquiet.begin_alone());
        unquiet.by_channel();
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
                    unquiet.by_channel();
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
