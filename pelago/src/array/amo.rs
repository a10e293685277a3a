//! Atomic memory operations: any PE reads and modifies a single word in one step, without the help of the PE
//! that owns it.
//!
//! The fast path checks PE and index, executes one instruction of the processor, and checks whether the
//! target sleeps until this array changes. Everything else is in cold functions: errors, counting, and PEs
//! that are not mapped. `route.rs` decides which executor executes an atomic.

use crate::Pe;
use crate::array::rma::On;
use crate::array::view::View;
use num_complex::Complex;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_fabric::amo::AtomicKind;
use pelago_fabric::sync::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    AtomicUsize, Ordering, fence_after_update,
};
use pelago_fabric::{Atomic, AtomicOp};
use std::mem::MaybeUninit;

mod sealed {
    pub trait Sealed {}
}

/// A number that atomic operations work on: the integers of 8 to 64 bits, the floats, and the complex numbers
/// of two `f32`.
#[diagnostic::on_unimplemented(
    message = "atomic operations do not work on `{Self}`",
    note = "they work on integers of 8 to 64 bits, `f32`, `f64` and `Complex<f32>`: what one word of at most \
            8 bytes holds"
)]
pub trait AtomicElement: Element + sealed::Sealed {
    /// The kind of the type, as the executors name it.
    #[doc(hidden)]
    const KIND: AtomicKind;

    /// The value as the low bytes of a word.
    #[doc(hidden)]
    fn to_word(self) -> u64;

    /// The value whose bytes are the low bytes of a word.
    #[doc(hidden)]
    fn from_word(word: u64) -> Self;

    /// Executes an operation without a comparison on this processor; returns the old value.
    ///
    /// # Safety
    /// `word` is valid and aligned to its size, and other threads access it only as shared memory.
    #[doc(hidden)]
    unsafe fn execute(word: *mut Self, op: AtomicOp, operand: Self) -> Self;

    /// Executes a compare-and-swap on this processor; returns the old value.
    ///
    /// # Safety
    /// As `execute`.
    #[doc(hidden)]
    unsafe fn compare_swap(word: *mut Self, expected: Self, new: Self) -> Self;
}

/// An integer that all atomic operations work on, including the bitwise ones.
#[diagnostic::on_unimplemented(
    message = "this atomic operation works on integers, not on `{Self}`",
    note = "it works on integers of 8 to 64 bits; `f32`, `f64` and `Complex<f32>` have `add`, `fetch_add` \
            and what `amo` and `fetch_amo` name, such as `amo(pe, index, AtomicOp::Set, value)`"
)]
pub trait AtomicInteger: AtomicElement {
    /// The value that `inc` adds.
    #[doc(hidden)]
    const ONE: Self;
}

/// Executes any operation on this processor.
///
/// # Safety
/// As [`AtomicElement::execute`].
unsafe fn execute_any<T: AtomicElement>(word: *mut T, op: AtomicOp, operand: T) -> T {
    // SAFETY: the caller guarantees that the word is valid and aligned.
    T::from_word(unsafe { atomic(op, operand).execute(word.cast()) })
}

macro_rules! integers {
    ($($type:ty: $atomic:ty, $kind:expr;)+) => {$(
        impl sealed::Sealed for $type {}

        impl AtomicInteger for $type {
            const ONE: $type = 1;
        }

        impl AtomicElement for $type {
            const KIND: AtomicKind = $kind;

            #[inline(always)]
            fn to_word(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn from_word(word: u64) -> $type {
                word as $type
            }

            #[inline(always)]
            unsafe fn execute(word: *mut $type, op: AtomicOp, operand: $type) -> $type {
                // SAFETY: the caller guarantees that the word is valid and aligned; its type has the size of
                // the atomic.
                let atomic = unsafe { <$atomic>::from_ptr(word) };
                match op {
                    AtomicOp::Fetch => atomic.load(Ordering::Acquire),
                    AtomicOp::Set => atomic.swap(operand, Ordering::AcqRel),
                    AtomicOp::Add => atomic.fetch_add(operand, Ordering::AcqRel),
                    AtomicOp::And => atomic.fetch_and(operand, Ordering::AcqRel),
                    AtomicOp::Or => atomic.fetch_or(operand, Ordering::AcqRel),
                    AtomicOp::Xor => atomic.fetch_xor(operand, Ordering::AcqRel),
                    // SAFETY: the caller guarantees that the word is valid and aligned.
                    op => unsafe { execute_any(word, op, operand) },
                }
            }

            #[inline(always)]
            unsafe fn compare_swap(word: *mut $type, expected: $type, new: $type) -> $type {
                // SAFETY: the caller guarantees that the word is valid and aligned; its type has the size of
                // the atomic.
                let atomic = unsafe { <$atomic>::from_ptr(word) };
                let outcome = atomic.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
                outcome.unwrap_or_else(|old| old)
            }
        }
    )+};
}

#[cfg(target_pointer_width = "64")]
const POINTER_KINDS: [AtomicKind; 2] = [AtomicKind::I64, AtomicKind::U64];
#[cfg(target_pointer_width = "32")]
const POINTER_KINDS: [AtomicKind; 2] = [AtomicKind::I32, AtomicKind::U32];

integers! {
    i8: AtomicI8, AtomicKind::I8;
    u8: AtomicU8, AtomicKind::U8;
    i16: AtomicI16, AtomicKind::I16;
    u16: AtomicU16, AtomicKind::U16;
    i32: AtomicI32, AtomicKind::I32;
    u32: AtomicU32, AtomicKind::U32;
    i64: AtomicI64, AtomicKind::I64;
    u64: AtomicU64, AtomicKind::U64;
    isize: AtomicIsize, POINTER_KINDS[0];
    usize: AtomicUsize, POINTER_KINDS[1];
}

macro_rules! floats {
    ($($type:ty: $bits:ty, $kind:expr;)+) => {$(
        impl sealed::Sealed for $type {}

        impl AtomicElement for $type {
            const KIND: AtomicKind = $kind;

            #[inline(always)]
            fn to_word(self) -> u64 {
                self.to_bits().into()
            }

            #[inline(always)]
            fn from_word(word: u64) -> $type {
                <$type>::from_bits(word as $bits)
            }

            #[inline(always)]
            unsafe fn execute(word: *mut $type, op: AtomicOp, operand: $type) -> $type {
                match op {
                    AtomicOp::Fetch | AtomicOp::Set => {
                        // SAFETY: the caller guarantees that the word is valid and aligned; the bits have its
                        // size and alignment.
                        let old = unsafe { <$bits>::execute(word.cast(), op, operand.to_bits()) };
                        <$type>::from_bits(old)
                    }
                    // SAFETY: the caller guarantees that the word is valid and aligned.
                    op => unsafe { execute_any(word, op, operand) },
                }
            }

            #[inline(always)]
            unsafe fn compare_swap(word: *mut $type, expected: $type, new: $type) -> $type {
                // SAFETY: the caller guarantees that the word is valid and aligned; the bits have its size
                // and alignment.
                let old = unsafe { <$bits>::compare_swap(word.cast(), expected.to_bits(), new.to_bits()) };
                <$type>::from_bits(old)
            }
        }
    )+};
}

floats! {
    f32: u32, AtomicKind::F32;
    f64: u64, AtomicKind::F64;
}

impl sealed::Sealed for Complex<f32> {}

impl AtomicElement for Complex<f32> {
    const KIND: AtomicKind = AtomicKind::ComplexF32;

    #[inline(always)]
    fn to_word(self) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.re.to_ne_bytes(), self.im.to_ne_bytes());
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    #[inline(always)]
    fn from_word(word: u64) -> Complex<f32> {
        let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
        Complex::new(f32::from_ne_bytes([a, b, c, d]), f32::from_ne_bytes([e, f, g, h]))
    }

    #[inline(always)]
    unsafe fn execute(word: *mut Complex<f32>, op: AtomicOp, operand: Complex<f32>) -> Complex<f32> {
        match op {
            AtomicOp::Fetch | AtomicOp::Set => {
                // SAFETY: the caller guarantees that the word is valid and aligned to its size, which is the
                // size of the bits.
                let old = unsafe { u64::execute(word.cast(), op, operand.to_word()) };
                Complex::from_word(old)
            }
            // SAFETY: the caller guarantees that the word is valid and aligned.
            op => unsafe { execute_any(word, op, operand) },
        }
    }

    #[inline(always)]
    unsafe fn compare_swap(
        word: *mut Complex<f32>,
        expected: Complex<f32>,
        new: Complex<f32>,
    ) -> Complex<f32> {
        // SAFETY: the caller guarantees that the word is valid and aligned to its size, which is the size of
        // the bits.
        let old = unsafe { u64::compare_swap(word.cast(), expected.to_word(), new.to_word()) };
        Complex::from_word(old)
    }
}

/// Defines the operations that have a fast path, in two forms: on an array and on a handle of one PE.
macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        $name:ident $cold:ident: $bound:ident, $op:ident($($operand:ident)?) $(-> $old:ident)?;
    )+) => {
        impl<T: AtomicElement> View<'_, T> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// If there is no such PE or element; the element is not changed then.
                #[inline]
                pub fn $name(
                    &self,
                    pe: Pe,
                    index: usize
                    $(, $operand: T)?
                ) -> Result<operations!(@type $($old)?)>
                where
                    T: $bound,
                {
                    let Some(part) = self.place.fast(pe) else {
                        return self.$cold(pe, index $(, $operand)?);
                    };
                    if index >= self.len() {
                        return self.$cold(pe, index $(, $operand)?);
                    }
                    let operand = operations!(@operand T $($operand)?);
                    // SAFETY: the index was checked; arrays are aligned to 64 bytes, so words to their size.
                    let old = unsafe { T::execute(part.element(index), AtomicOp::$op, operand) };
                    // SYNC POINT doorbell: orders the change before the check for sleepers.
                    fence_after_update();
                    if part.has_waiters() {
                        self.ring(pe);
                    }
                    operations!(@result old $($old)?)
                }

                #[cold]
                #[inline(never)]
                fn $cold(&self, pe: Pe, index: usize $(, $operand: T)?) -> Result<operations!(@type $($old)?)>
                where
                    T: $bound,
                {
                    let operand = operations!(@operand T $($operand)?);
                    let atomic = atomic::<T>(AtomicOp::$op, operand);
                    operations!(@call self, stringify!($name), pe, index, &atomic, $($old)?)
                }
            )+
        }

        impl<T: AtomicElement> On<'_, T> {
            $(
                #[doc = concat!("As [`View::", stringify!($name), "`].")]
                ///
                /// # Errors
                /// If there is no such element.
                #[inline]
                pub fn $name(&self, index: usize $(, $operand: T)?) -> Result<operations!(@type $($old)?)>
                where
                    T: $bound,
                {
                    if index >= self.fast_len {
                        return self.$cold(index $(, $operand)?);
                    }
                    let operand = operations!(@operand T $($operand)?);
                    // SAFETY: the index was checked; arrays are aligned to 64 bytes, so words to their size.
                    let old = unsafe { T::execute(self.part.element(index), AtomicOp::$op, operand) };
                    // SYNC POINT doorbell: orders the change before the check for sleepers.
                    fence_after_update();
                    if self.part.has_waiters() {
                        self.ring();
                    }
                    operations!(@result old $($old)?)
                }

                #[cold]
                #[inline(never)]
                fn $cold(&self, index: usize $(, $operand: T)?) -> Result<operations!(@type $($old)?)>
                where
                    T: $bound,
                {
                    let this = std::hint::black_box(self);
                    this.view.$cold(this.pe, index $(, $operand)?)
                }
            )+
        }
    };
    (@type) => { () };
    (@type $old:ident) => { T };
    (@operand $t:ident) => { $t::ONE };
    (@operand $t:ident $operand:ident) => { $operand };
    (@result $value:ident) => {{ let _ = $value; Ok(()) }};
    (@result $value:ident $old:ident) => { Ok($value) };
    (@call $self:ident, $name:expr, $pe:ident, $index:ident, $atomic:expr,) => {
        $self.amo_cold($name, $pe, $index, $atomic)
    };
    (@call $self:ident, $name:expr, $pe:ident, $index:ident, $atomic:expr, $old:ident) => {
        $self.fetch_amo_cold($name, $pe, $index, $atomic)
    };
}

operations! {
    /// Atomically sets element `index` on `pe` and returns its old value.
    swap swap_cold: AtomicElement, Set(value) -> old;
    /// Atomically sets element `index` on `pe`. Complete at the target after quiet.
    atomic_set atomic_set_cold: AtomicElement, Set(value);
    /// Atomically adds to element `index` on `pe` and returns its old value. Integers wrap around. Sums of
    /// floats depend on the order in which the PEs add.
    fetch_add fetch_add_cold: AtomicElement, Add(value) -> old;
    /// Atomically adds to element `index` on `pe`. Integers wrap around. Complete at the target after quiet.
    add add_cold: AtomicElement, Add(value);
    /// Atomically adds 1 to element `index` on `pe` and returns its old value.
    fetch_inc fetch_inc_cold: AtomicInteger, Add() -> old;
    /// Atomically adds 1 to element `index` on `pe`. Complete at the target after quiet.
    inc inc_cold: AtomicInteger, Add();
    /// Atomically clears the bits of element `index` on `pe` that are not set in `value`, and returns its old
    /// value.
    fetch_and fetch_and_cold: AtomicInteger, And(value) -> old;
    /// Atomically clears the bits of element `index` on `pe` that are not set in `value`. Complete at the
    /// target after quiet.
    and and_cold: AtomicInteger, And(value);
    /// Atomically sets bits of element `index` on `pe` and returns its old value.
    fetch_or fetch_or_cold: AtomicInteger, Or(value) -> old;
    /// Atomically sets bits of element `index` on `pe`. Complete at the target after quiet.
    or or_cold: AtomicInteger, Or(value);
    /// Atomically flips bits of element `index` on `pe` and returns its old value.
    fetch_xor fetch_xor_cold: AtomicInteger, Xor(value) -> old;
    /// Atomically flips bits of element `index` on `pe`. Complete at the target after quiet.
    xor xor_cold: AtomicInteger, Xor(value);
}

/// The atomic of an operation with one operand.
pub(crate) fn atomic<T: AtomicElement>(op: AtomicOp, operand: T) -> Atomic {
    Atomic { kind: T::KIND, op, operand: operand.to_word(), compare: 0 }
}

/// The atomic of an operation with an operand and a value to compare with.
pub(crate) fn comparing<T: AtomicElement>(op: AtomicOp, compare: T, operand: T) -> Atomic {
    Atomic { compare: compare.to_word(), ..atomic(op, operand) }
}

impl<T: AtomicElement> On<'_, T> {
    /// As [`View::atomic_fetch`].
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn atomic_fetch(&self, index: usize) -> Result<T> {
        if index >= self.fast_len {
            return self.view.atomic_fetch_cold(self.pe, index);
        }
        // SAFETY: the index was checked; arrays are aligned to 64 bytes, so words to their size.
        Ok(unsafe { T::execute(self.part.element(index), AtomicOp::Fetch, T::from_word(0)) })
    }

    /// As [`View::compare_swap`].
    ///
    /// # Errors
    /// If there is no such element; no element is changed then.
    #[inline]
    pub fn compare_swap(&self, index: usize, expected: T, new: T) -> Result<T> {
        if index >= self.fast_len {
            return self.view.compare_swap_cold(self.pe, index, expected, new);
        }
        // SAFETY: the index was checked; arrays are aligned to 64 bytes, so words to their size.
        let old = unsafe { T::compare_swap(self.part.element(index), expected, new) };
        // SYNC POINT doorbell: orders the change before the check for sleepers.
        fence_after_update();
        if self.part.has_waiters() {
            self.ring();
        }
        Ok(old)
    }
}

impl<T: AtomicElement> View<'_, T> {
    /// Atomically reads element `index` on `pe`.
    ///
    /// # Errors
    /// If there is no such PE or element.
    #[inline]
    pub fn atomic_fetch(&self, pe: Pe, index: usize) -> Result<T> {
        let Some(part) = self.place.fast(pe) else { return self.atomic_fetch_cold(pe, index) };
        if index >= self.len() {
            return self.atomic_fetch_cold(pe, index);
        }
        // SAFETY: the index was checked; arrays are aligned to 64 bytes, so words to their size.
        Ok(unsafe { T::execute(part.element(index), AtomicOp::Fetch, T::from_word(0)) })
    }

    #[cold]
    #[inline(never)]
    fn atomic_fetch_cold(&self, pe: Pe, index: usize) -> Result<T> {
        self.fetch_amo_cold("atomic_fetch", pe, index, &atomic::<T>(AtomicOp::Fetch, T::from_word(0)))
    }

    /// Atomically sets element `index` on `pe` to `new` if it is `expected`, and returns its old value: the
    /// element was changed if the old value is `expected`. Floats and complex numbers are compared by their
    /// bits.
    ///
    /// # Errors
    /// If there is no such PE or element; the element is not changed then.
    #[inline]
    pub fn compare_swap(&self, pe: Pe, index: usize, expected: T, new: T) -> Result<T> {
        let Some(part) = self.place.fast(pe) else {
            return self.compare_swap_cold(pe, index, expected, new);
        };
        if index >= self.len() {
            return self.compare_swap_cold(pe, index, expected, new);
        }
        // SAFETY: the index was checked; arrays are aligned to 64 bytes, so words to their size.
        let old = unsafe { T::compare_swap(part.element(index), expected, new) };
        // SYNC POINT doorbell: orders the change before the check for sleepers.
        fence_after_update();
        if part.has_waiters() {
            self.ring(pe);
        }
        Ok(old)
    }

    #[cold]
    #[inline(never)]
    fn compare_swap_cold(&self, pe: Pe, index: usize, expected: T, new: T) -> Result<T> {
        let atomic = comparing(AtomicOp::CompareSwap, expected, new);
        self.fetch_amo_cold("compare_swap", pe, index, &atomic)
    }

    /// Executes any atomic operation that takes one operand: those that have methods of their own, and
    /// minimum, maximum, product and the logical operations. Complete at the target after quiet.
    ///
    /// # Errors
    /// If there is no such PE or element, or the type does not have this operation; no element is changed
    /// then.
    pub fn amo(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<()> {
        self.check_op("amo", op, false)?;
        self.amo_cold("amo", pe, index, &atomic(op, operand))
    }

    /// Executes an operation as [`amo`](View::amo) does, and returns the old value.
    ///
    /// ```
    /// # use pelago::AtomicOp;
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let highest = world.alloc_zeroed::<i64>(1)?;
    /// highest.fetch_amo(0, 0, AtomicOp::Max, 10 * world.my_pe() as i64)?;
    /// world.barrier();
    /// assert_eq!(highest.atomic_fetch(0, 0)?, 30);
    /// # world.barrier();
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`amo`](View::amo).
    pub fn fetch_amo(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<T> {
        self.check_op("fetch_amo", op, false)?;
        self.fetch_amo_cold("fetch_amo", pe, index, &atomic(op, operand))
    }

    /// Executes a compare-and-swap with any of the six comparisons, or a masked swap, whose `compare` has the
    /// bits to be replaced. Returns the old value.
    ///
    /// # Errors
    /// As [`amo`](View::amo).
    pub fn compare_amo(&self, pe: Pe, index: usize, op: AtomicOp, compare: T, operand: T) -> Result<T> {
        self.check_op("compare_amo", op, true)?;
        self.fetch_amo_cold("compare_amo", pe, index, &comparing(op, compare, operand))
    }

    /// Checks that the type and the call support the operation.
    pub(crate) fn check_op(&self, operation: &'static str, op: AtomicOp, compares: bool) -> Result<()> {
        let me = self.world().my_pe();
        if !op.is_defined_for(T::KIND) || op.takes_comparison() != compares {
            let kind = T::KIND;
            return Err(ErrorKind::UndefinedAtomic { me, operation, op, kind, compares }.into());
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn amo_cold(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        atomic: &Atomic,
    ) -> Result<()> {
        // SAFETY: the pointer for the result is null, so none is written.
        unsafe { self.amo_tracked(operation, (pe, index), atomic, std::ptr::null_mut(), None) }
    }

    #[cold]
    #[inline(never)]
    fn fetch_amo_cold(&self, operation: &'static str, pe: Pe, index: usize, atomic: &Atomic) -> Result<T> {
        let mut old = MaybeUninit::<T>::uninit();
        let (place, mut outcome) = (old.as_mut_ptr(), Ok(()));
        self.check_pe(operation, pe)?;
        let start = |counter: Option<&CompletionCounter>| {
            // SAFETY: `old` outlives the atomic, which is waited for if it uses the network.
            unsafe { self.amo_tracked(operation, (pe, index), atomic, place, counter) }
        };
        match &self.world().core().net {
            None => outcome = start(None),
            Some(_) => {
                let done = CompletionCounter::is_done;
                let to = (operation, self.region().pe(pe));
                self.world().core().track(to, done, |counter| outcome = start(Some(counter)));
            }
        }
        // SAFETY: the atomic is complete, and has written the old value.
        outcome.map(|()| unsafe { old.assume_init() })
    }

    /// Starts an atomic with all checks except that of the operation. Every form of an atomic uses this
    /// function over the network and while operations are counted. Without a counter only quiet observes its
    /// completion.
    ///
    /// # Safety
    /// `old` is null, or valid for writes until the atomic is complete.
    pub(crate) unsafe fn amo_tracked(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        atomic: &Atomic,
        old: *mut T,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check(operation, pe, index, 1)?;
        // SAFETY: PE and index were checked; the element is aligned, as arrays are aligned to 64 bytes; the
        // caller guarantees that the old value may be written.
        unsafe { self.access().atomic(operation, (pe, index * size_of::<T>()), atomic, old.cast(), counter) };
        Ok(())
    }
}
