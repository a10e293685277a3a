//! A lock for an optional fast path: a thread that finds it taken, or closed, takes the other path. Sometimes
//! a thread must wait for the lock. It announces that, and the next thread that leaves the lock closes it.
//!
//! States of the word: `OPEN`; `TAKEN`, by one thread; `CLOSED`, until a thread that has waited leaves it
//! open. The lowest bit is set in all states but `OPEN`, so setting it takes the lock or changes nothing. A
//! thread that leaves stores `next` in the word: `OPEN` or `CLOSED`. Only threads that wait change `next`.

use crate::sync::{AtomicU32, Ordering, spin_or_yield};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

const OPEN: u32 = 0;
const TAKEN: u32 = 1;
const CLOSED: u32 = 3;

/// The lock, and what it protects.
#[derive(Debug)]
pub struct TryLock<T> {
    word: AtomicU32,
    next: AtomicU32,
    inside: UnsafeCell<T>,
}

// SAFETY: only one thread at a time accesses the protected value, the thread that has taken the word.
unsafe impl<T: Send> Sync for TryLock<T> {}

/// Access to the protected value, until this is dropped.
#[derive(Debug)]
pub struct Taken<'a, T> {
    lock: &'a TryLock<T>,
    inside: PhantomData<&'a mut T>,
}

impl<T> TryLock<T> {
    /// A lock that is closed.
    pub fn closed(inside: T) -> TryLock<T> {
        let [word, next] = [CLOSED, CLOSED].map(AtomicU32::new);
        TryLock { word, next, inside: UnsafeCell::new(inside) }
    }

    /// Takes the lock if it is open.
    #[inline(always)]
    pub fn enter(&self) -> Option<Taken<'_, T>> {
        // SYNC POINT trylock: acquires what the last holder of the lock has written.
        let found = self.word.fetch_or(TAKEN, Ordering::Acquire);
        // The guard is made only if the lock is taken, because dropping it leaves the lock.
        (found & TAKEN == 0).then(|| Taken { lock: self, inside: PhantomData })
    }

    /// The guard of the lock that this thread has taken, after the result of [`enter`](TryLock::enter) was
    /// forgotten.
    ///
    /// # Safety
    /// This thread has taken the lock in this way, and calls this once.
    pub unsafe fn kept(&self) -> Taken<'_, T> {
        Taken { lock: self, inside: PhantomData }
    }

    /// Takes the lock, open or closed, and waits for it if another thread has it, but not for threads that
    /// try to enter later. Dropping the result leaves it open or closed as set by
    /// [`leave_open`](Taken::leave_open), and closed if that was not called.
    pub fn wait(&self) -> Taken<'_, T> {
        let mut turns = 0;
        loop {
            self.next.store(CLOSED, Ordering::Relaxed);
            let found = self.word.load(Ordering::Relaxed);
            // SYNC POINT trylock: acquires what the last holder of the lock has written.
            let take = || self.word.compare_exchange(found, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if found != TAKEN && take().is_ok() {
                return Taken { lock: self, inside: PhantomData };
            }
            spin_or_yield(&mut turns);
        }
    }
}

impl<T> Taken<'_, T> {
    /// Sets whether others may enter afterwards. It is for threads that have waited.
    pub fn leave_open(&mut self, is_open: bool) {
        self.lock.next.store(if is_open { OPEN } else { CLOSED }, Ordering::Relaxed);
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this thread has taken the lock.
        unsafe { &*self.lock.inside.get() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has taken the lock.
        unsafe { &mut *self.lock.inside.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC POINT trylock: releases what this thread has written.
        let next = self.lock.next.load(Ordering::Relaxed);
        #[cfg(not(loom))]
        self.lock.word.store(next, Ordering::Release);
        // A `fetch_or` that does not take the lock comes right behind the store that it has read, so before
        // this one. The model checker allows it to come later: it applies that rule only between
        // read-modify-writes.
        #[cfg(loom)]
        self.lock.word.swap(next, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_finds_it_taken_or_closed_goes_another_way() {
        let lock = TryLock::closed(0);
        assert!(lock.enter().is_none(), "it is closed");
        {
            let mut taken = lock.wait();
            taken.leave_open(true);
            *taken += 1;
            assert!(lock.enter().is_none(), "it is taken");
        }
        {
            let mut taken = lock.enter().expect("it is open");
            *taken += 1;
            assert!(lock.enter().is_none(), "it is taken");
        }
        lock.wait().leave_open(true);
        assert_eq!(lock.enter().map(|taken| *taken), Some(2));
        assert_eq!(*lock.wait(), 2);
        assert!(lock.enter().is_none(), "it is closed again");
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Two threads enter if they can, a third one waits and closes: each has the value alone and sees what
    /// the last one has written, and no thread enters after the lock was closed.
    #[test]
    fn loom_trylock_lets_one_in_at_a_time() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let lock = Arc::new(TryLock::closed(loom::cell::UnsafeCell::new((0_u32, false))));
            lock.wait().leave_open(true);
            let enters = || {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    let taken = lock.enter();
                    let add = |cell: *mut (u32, bool)| {
                        // SAFETY: the cell checks that no other thread is here.
                        let (count, is_closed) = unsafe { &mut *cell };
                        assert!(!*is_closed, "it was closed before");
                        *count += 1;
                    };
                    taken.map(|taken| taken.with_mut(add)).is_some()
                })
            };
            let threads = [enters(), enters()];
            {
                let mut taken = lock.wait();
                // SAFETY: the cell checks that no other thread is here.
                taken.with_mut(|cell| unsafe { (*cell).1 = true });
                taken.leave_open(false);
            }
            let entered = threads.into_iter().map(|thread| u32::from(thread.join().unwrap())).sum::<u32>();
            // SAFETY: the cell checks that no other thread is here.
            let count = lock.wait().with(|cell| unsafe { (*cell).0 });
            assert_eq!(count, entered);
        });
    }
}
