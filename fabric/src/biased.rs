//! A lock that is biased towards one thread, its owner: the first that takes it. The owner takes and leaves
//! it without a read-modify-write, which would wait until all earlier stores are done, those of messages to
//! other PEs included. When another thread wants the lock, the bias is revoked for ever, and all threads take
//! an ordinary lock from then on.
//!
//! Invariant: the owner says that it holds the lock (`held`), and then looks whether it is the owner still.
//! The thread that revokes the bias takes the ownership away first, and looks at `held` then. Between the two
//! steps of the owner stands a light fence, which orders nothing by itself; between those of the other thread
//! a heavy one, which acts as a full fence in every running thread of the process. So one of the two sees the
//! other.
//! Source: K. Kawachiya, A. Koseki, T. Onodera, Lock Reservation, OOPSLA 2002; membarrier(2) for the fences.

use crate::fence;
use crate::sync::{AtomicU32, AtomicUsize, Ordering, spin_or_yield};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// No thread has taken the lock yet.
const UNCLAIMED: usize = 0;
/// All threads take the ordinary lock. No thread has this number.
const REVOKED: usize = 1;

/// The lock, and what it protects.
#[derive(Debug)]
pub struct BiasedLock<T> {
    /// The number of the owner, or one of the two above.
    owner: AtomicUsize,
    /// 1 while the owner has the lock by its bias.
    held: AtomicU32,
    /// 1 while a thread has the ordinary lock.
    ordinary: AtomicU32,
    inside: UnsafeCell<T>,
}

// SAFETY: only one thread at a time accesses the protected value.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

/// Access to the protected value, until this is dropped. It is not `Send`: the lock knows its owner by the
/// thread.
#[derive(Debug)]
pub struct Held<'a, T> {
    lock: &'a BiasedLock<T>,
    /// The word that is cleared at the end.
    word: &'a AtomicU32,
    inside: PhantomData<*mut T>,
}

// SAFETY: a shared guard gives shared access to the value alone.
unsafe impl<T: Sync> Sync for Held<'_, T> {}

impl<T> BiasedLock<T> {
    /// A lock without an owner.
    #[cfg(not(loom))]
    pub const fn new(inside: T) -> BiasedLock<T> {
        let (held, ordinary) = (AtomicU32::new(0), AtomicU32::new(0));
        BiasedLock { owner: AtomicUsize::new(UNCLAIMED), held, ordinary, inside: UnsafeCell::new(inside) }
    }

    /// The same: the model checker's atomics cannot be made in constants.
    #[cfg(loom)]
    pub fn new(inside: T) -> BiasedLock<T> {
        let (held, ordinary) = (AtomicU32::new(0), AtomicU32::new(0));
        BiasedLock { owner: AtomicUsize::new(UNCLAIMED), held, ordinary, inside: UnsafeCell::new(inside) }
    }

    /// Takes the lock, if need be after a wait. A thread that has it already waits for ever.
    #[inline(always)]
    pub fn lock(&self) -> Held<'_, T> {
        let me = thread_number();
        debug_assert!(!self.has(me), "a thread takes a lock that it has");
        match self.lock_by_bias(me) {
            Some(held) => held,
            None => self.lock_slowly(me),
        }
    }

    /// Takes the lock, unless a thread has it, this one included.
    #[inline]
    pub fn try_lock(&self) -> Option<Held<'_, T>> {
        let me = thread_number();
        if self.has(me) {
            return None;
        }
        self.lock_by_bias(me).or_else(|| self.try_ordinary().then(|| self.with_ordinary(me)))
    }

    /// Whether this thread has the lock by its bias.
    #[inline(always)]
    fn has(&self, me: usize) -> bool {
        self.owner.load(Ordering::Relaxed) == me && self.held.load(Ordering::Relaxed) == 1
    }

    #[inline(always)]
    fn lock_by_bias(&self, me: usize) -> Option<Held<'_, T>> {
        // The owner itself may have it.
        if self.owner.load(Ordering::Relaxed) == me && self.held.load(Ordering::Relaxed) == 0 {
            self.held.store(1, Ordering::Relaxed);
            // SYNC POINT biased-lock: orders the owner's claim before its look at its ownership.
            fence::light();
            if self.owner.load(Ordering::Relaxed) == me {
                return Some(self.guard(&self.held));
            }
            clear(&self.held);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn lock_slowly(&self, me: usize) -> Held<'_, T> {
        let mut turns = 0;
        while !self.try_ordinary() {
            spin_or_yield(&mut turns);
        }
        self.with_ordinary(me)
    }

    #[inline]
    fn try_ordinary(&self) -> bool {
        // A thread that waits only reads. The model checker would let it read the old value for ever.
        let is_free = cfg!(loom) || self.ordinary.load(Ordering::Relaxed) == 0;
        // SYNC POINT biased-lock: acquires what the last holder of the ordinary lock has written.
        is_free && self.ordinary.swap(1, Ordering::Acquire) == 0
    }

    /// Takes the lock; this thread has taken the ordinary one.
    fn with_ordinary(&self, me: usize) -> Held<'_, T> {
        match self.owner.load(Ordering::Relaxed) {
            REVOKED => {}
            UNCLAIMED if fence::is_available() => {
                self.held.store(1, Ordering::Relaxed);
                self.owner.store(me, Ordering::Relaxed);
                clear(&self.ordinary);
                return self.guard(&self.held);
            }
            UNCLAIMED => self.owner.store(REVOKED, Ordering::Relaxed),
            _ => self.revoke(),
        }
        self.guard(&self.ordinary)
    }

    /// Ends the bias, and waits until the owner does not have the lock.
    fn revoke(&self) {
        self.owner.store(REVOKED, Ordering::Relaxed);
        // SYNC POINT biased-lock: orders the end of the ownership before the look at the owner's claim.
        fence::heavy();
        let mut turns = 0;
        // SYNC POINT biased-lock: acquires what the owner has written.
        while self.held.load(Ordering::Acquire) == 1 {
            spin_or_yield(&mut turns);
        }
    }

    #[inline(always)]
    fn guard<'a>(&'a self, word: &'a AtomicU32) -> Held<'a, T> {
        Held { lock: self, word, inside: PhantomData }
    }
}

/// Leaves the lock, of which this is a word.
#[inline(always)]
fn clear(word: &AtomicU32) {
    // SYNC POINT biased-lock: releases what this thread has written.
    #[cfg(not(loom))]
    word.store(0, Ordering::Release);
    // A `swap` of a thread that waits comes right behind the store that it has read, so before this one. The
    // model checker allows it to come later: it applies that rule only between read-modify-writes.
    #[cfg(loom)]
    word.swap(0, Ordering::Release);
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock.
        unsafe { &*self.lock.inside.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock.
        unsafe { &mut *self.lock.inside.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        clear(self.word);
    }
}

/// A number that no other running thread of the process has: the address of its control block.
#[inline(always)]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(any(loom, miri))))]
fn thread_number() -> usize {
    let number: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the ABI of ELF's thread-local storage, the first word of the block holds its own address.
    unsafe {
        std::arch::asm!(
            "mov {}, qword ptr fs:[0]", out(reg) number, options(nostack, preserves_flags, readonly, pure)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the register of the thread pointer is only read.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) number, options(nostack, preserves_flags, nomem, pure));
    }
    number
}

/// A number that no other running thread of the process has: the address of a variable of its own.
#[cfg(not(any(
    loom,
    all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))
)))]
fn thread_number() -> usize {
    thread_local!(static OWN: u64 = const { 0 });
    OWN.with(|own| std::ptr::from_ref(own).addr())
}

/// A number that no other thread of the model has.
#[cfg(loom)]
fn thread_number() -> usize {
    // It is no part of the model.
    static LAST: std::sync::Mutex<usize> = std::sync::Mutex::new(REVOKED);
    fn next() -> usize {
        let mut last = LAST.lock().expect("no thread panics with it");
        *last += 1;
        *last
    }
    loom::thread_local!(static OWN: usize = next());
    OWN.with(|own| *own)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_have_numbers_of_their_own() {
        let own = thread_number();
        assert!(own > REVOKED);
        assert_eq!(own, thread_number());
        let other = std::thread::scope(|scope| scope.spawn(thread_number).join().unwrap());
        assert_ne!(own, other);
    }

    #[test]
    fn the_first_thread_is_the_owner_until_another_one_comes() {
        let lock = BiasedLock::new(0);
        for _ in 0..3 {
            *lock.lock() += 1;
        }
        let is_biased = || std::ptr::eq(lock.lock().word, &lock.held);
        assert_eq!(is_biased(), fence::is_available());
        std::thread::scope(|scope| scope.spawn(|| *lock.lock() += 1).join().unwrap());
        assert!(!is_biased(), "the bias is gone for ever");
        assert_eq!(*lock.lock(), 4);
    }

    #[test]
    fn a_try_never_waits_for_the_thread_that_tries() {
        let lock = BiasedLock::new(0);
        for _ in 0..3 {
            let held = lock.try_lock().expect("no thread has it");
            assert!(lock.try_lock().is_none(), "this thread has it");
            drop(held);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let held = lock.try_lock().expect("no thread has it");
                assert!(lock.try_lock().is_none(), "this thread has it");
                drop(held);
            });
        });
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn it_excludes_all_others_also_while_the_bias_is_revoked() {
        for _ in 0..200 {
            let lock = BiasedLock::new(0);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| (0..500).for_each(|_| *lock.lock() += 1));
                }
            });
            assert_eq!(*lock.lock(), 1500);
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    type Counter = BiasedLock<loom::cell::UnsafeCell<u32>>;

    fn add(held: Held<'_, loom::cell::UnsafeCell<u32>>) {
        // SAFETY: the cell checks that no other thread is here.
        held.with_mut(|cell| unsafe { *cell += 1 });
    }

    /// The owner and another thread: each has the value alone, and sees what the last one has written.
    fn check(other: fn(&Counter) -> u32) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let lock = Arc::new(BiasedLock::new(loom::cell::UnsafeCell::new(0_u32)));
            add(lock.lock());
            let shared = Arc::clone(&lock);
            let thread = thread::spawn(move || other(&shared));
            add(lock.lock());
            add(lock.lock());
            let added = thread.join().unwrap();
            // SAFETY: the cell checks that no other thread is here.
            assert_eq!(lock.lock().with(|cell| unsafe { *cell }), 3 + added);
        });
    }

    #[test]
    fn loom_a_biased_lock_lets_one_in_at_a_time() {
        check(|lock| {
            add(lock.lock());
            1
        });
    }

    #[test]
    fn loom_a_try_of_a_biased_lock_finds_the_owner() {
        check(|lock| (0..2).filter_map(|_| lock.try_lock()).map(add).count() as u32);
    }
}
