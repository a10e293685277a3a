//! The only import of atomics. All code that synchronises takes its atomics, cells and fences from here, so
//! that the loom model checker can replace them (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16,
    AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16,
    AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(not(loom))]
pub use std::sync::Mutex;

#[cfg(loom)]
pub use loom::sync::Mutex;

/// One turn of a spinning wait: a processor hint, or under loom a chance for the other threads to run.
#[inline]
pub fn spin_once() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// One turn of a thread that waits for another one to leave a lock: after `LOOKS` turns it yields its core.
pub fn spin_or_yield(turns: &mut u32) {
    const LOOKS: u32 = 100;
    *turns += 1;
    spin_once();
    if *turns > LOOKS {
        std::thread::yield_now();
    }
}

/// Orders a read-modify-write before later loads. On x86-64 the locked instruction has done so already.
#[inline(always)]
pub fn fence_after_update() {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    compiler_fence(Ordering::SeqCst);
    #[cfg(any(not(target_arch = "x86_64"), loom))]
    fence(Ordering::SeqCst);
}

/// Asks for a cache line that this thread will write soon, so that the store need not wait for it.
#[inline(always)]
pub fn prefetch_for_write<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: a prefetch accesses no memory that the program could see.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(any(loom, miri))))]
    // SAFETY: a prefetch accesses no memory that the program could see.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    let _ = place;
}

/// Whether a relaxed load of a word returns another value than this one. It takes one compare with memory and
/// one jump. The compiler would load an atomic into a register first.
#[inline(always)]
pub fn differs<const VALUE: u32>(word: &AtomicU32) -> bool {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: the assembler reads the word, for the language as a relaxed atomic load.
    unsafe {
        std::arch::asm!(
            "cmp dword ptr [{word}], {value}",
            "jne {yes}",
            word = in(reg) word.as_ptr(),
            value = const VALUE,
            yes = label { return true },
            options(nostack, readonly),
        );
        false
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    {
        word.load(Ordering::Relaxed) != VALUE
    }
}

/// A value alone on its cache line, so that two writers of neighbouring values do not slow each other.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct CacheLine<T>(pub T);

impl<T> std::ops::Deref for CacheLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
