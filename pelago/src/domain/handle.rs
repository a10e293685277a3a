//! The operations of an atomic domain on one array.
//!
//! Invariant: an operation that the domain was not made for returns an error and has no effect. Every other
//! operation calls the view's operation, so nothing is implemented twice. The additional cost is the test of
//! one bit.

use super::{AtomicExecutor, AtomicOps};
use crate::Pe;
use crate::array::amo::{AtomicElement, AtomicInteger};
use crate::array::nb::{Fetch, Region, Update};
use crate::array::view::View;
use crate::context::Context;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_fabric::AtomicOp;

/// The operations of an atomic domain on an array: see [`AtomicDomain::on`](crate::AtomicDomain::on). PEs are
/// numbered as for operations of the array.
///
/// Each form of call has an operation that returns no value, one that returns the old value, and a
/// compare-and-swap or masked swap:
/// * by name: `add`, `atomic_set` and others; `fetch_add`, `swap` and others; `compare_swap`;
/// * by operation: [`amo`](Atomics::amo), [`fetch_amo`](Atomics::fetch_amo),
///   [`compare_amo`](Atomics::compare_amo);
/// * in a scope or region: [`amo_in`](Atomics::amo_in), [`fetch_amo_in`](Atomics::fetch_amo_in),
///   [`compare_amo_in`](Atomics::compare_amo_in);
/// * with a handle: [`amo_nb`](Atomics::amo_nb), [`fetch_amo_nb`](Atomics::fetch_amo_nb),
///   [`compare_amo_nb`](Atomics::compare_amo_nb).
pub struct Atomics<'a, T: AtomicElement> {
    view: View<'a, T>,
    ops: AtomicOps,
    executor: AtomicExecutor,
}

impl<'a, T: AtomicElement> Atomics<'a, T> {
    pub(super) fn new(array: &'a View<'_, T>, ops: AtomicOps, executor: AtomicExecutor) -> Atomics<'a, T> {
        Atomics { view: array.with_place(array.place), ops, executor }
    }

    /// The operations of the domain.
    pub fn operations(&self) -> AtomicOps {
        self.ops
    }

    /// The executor of the domain's atomics.
    pub fn executor(&self) -> AtomicExecutor {
        self.executor
    }

    /// Elements of the array on each PE.
    #[expect(clippy::len_without_is_empty, reason = "the length of a part, not of a collection")]
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// Returns the same operations through a context: its fence and quiet order and complete them, instead of
    /// the world's.
    ///
    /// # Panics
    /// If the context belongs to another world.
    #[track_caller]
    pub fn via<'b>(&'b self, context: &'b Context<'_>) -> Atomics<'b, T> {
        Atomics { view: self.view.via(context), ops: self.ops, executor: self.executor }
    }

    /// The error of an operation that is not in the set: either the type does not have it, or the domain does
    /// not.
    #[cold]
    #[inline(never)]
    fn refuse<R>(&self, operation: &'static str, op: AtomicOp) -> Result<R> {
        // Opaque to the compiler, so that the caller neither loads values for this function in advance, nor
        // knows its result.
        let this = std::hint::black_box(self);
        let (me, ops) = (this.view.world().my_pe(), this.ops);
        let outside = || ErrorKind::NotInDomain { me, operation, op, kind: T::KIND, ops }.into();
        let refusal = this.view.check_op(operation, op, op.takes_comparison()).err();
        std::hint::black_box(Err(refusal.unwrap_or_else(outside)))
    }

    #[inline]
    fn check(&self, operation: &'static str, op: AtomicOp) -> Result<()> {
        match self.ops.has(op) {
            true => Ok(()),
            false => self.refuse(operation, op),
        }
    }

    /// As [`View::amo`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no element is changed then.
    pub fn amo(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<()> {
        self.check("amo", op)?;
        self.view.amo(pe, index, op, operand)
    }

    /// As [`View::fetch_amo`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no element is changed then.
    pub fn fetch_amo(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<T> {
        self.check("fetch_amo", op)?;
        self.view.fetch_amo(pe, index, op, operand)
    }

    /// As [`View::compare_amo`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no element is changed then.
    pub fn compare_amo(&self, pe: Pe, index: usize, op: AtomicOp, compare: T, operand: T) -> Result<T> {
        self.check("compare_amo", op)?;
        self.view.compare_amo(pe, index, op, compare, operand)
    }

    /// As [`Region::amo`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no operation is started then.
    pub fn amo_in<'scope>(
        &'scope self,
        region: &Region<'scope>,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        operand: T,
    ) -> Result<()> {
        self.check("amo", op)?;
        region.amo(&self.view, pe, index, op, operand)
    }

    /// As [`Region::fetch_amo`].
    ///
    /// ```
    /// # use pelago::AtomicOp;
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let mut words = world.alloc_zeroed::<i64>(1)?;
    /// let extremes = world.team().atomic_domain::<i64>([AtomicOp::Min, AtomicOp::Max])?;
    /// let (words, mut olds) = (extremes.on(&mut words)?, [0; 3]);
    /// world.scope(|scope| {
    ///     let mut turns = olds.iter_mut().enumerate();
    ///     turns.try_for_each(|(pe, old)| words.fetch_amo_in(scope, pe, 0, AtomicOp::Max, 7, old))
    /// })?;
    /// assert!(olds.iter().all(|old| [0, 7].contains(old)));
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no operation is started then.
    pub fn fetch_amo_in<'scope>(
        &'scope self,
        region: &Region<'scope>,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        operand: T,
        old: &'scope mut T,
    ) -> Result<()> {
        self.check("fetch_amo", op)?;
        region.fetch_amo(&self.view, pe, index, op, operand, old)
    }

    /// As [`Region::compare_amo`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no operation is started then.
    #[expect(clippy::too_many_arguments, reason = "what compare_amo takes, the region, and the old value")]
    pub fn compare_amo_in<'scope>(
        &'scope self,
        region: &Region<'scope>,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        compare: T,
        operand: T,
        old: &'scope mut T,
    ) -> Result<()> {
        self.check("compare_amo", op)?;
        region.compare_amo(&self.view, pe, index, op, compare, operand, old)
    }

    /// As [`View::amo_nb`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no operation is started then.
    pub fn amo_nb(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<Update<'_>> {
        self.check("amo_nb", op)?;
        self.view.amo_nb(pe, index, op, operand)
    }

    /// As [`View::fetch_amo_nb`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no operation is started then.
    pub fn fetch_amo_nb(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<Fetch<'_, T>> {
        self.check("fetch_amo_nb", op)?;
        self.view.fetch_amo_nb(pe, index, op, operand)
    }

    /// As [`View::compare_amo_nb`].
    ///
    /// # Errors
    /// If the domain does not have the operation, or as for that method; no operation is started then.
    pub fn compare_amo_nb(
        &self,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        compare: T,
        operand: T,
    ) -> Result<Fetch<'_, T>> {
        self.check("compare_amo_nb", op)?;
        self.view.compare_amo_nb(pe, index, op, compare, operand)
    }
}

/// Defines the operations with names: each tests its bit and then calls the view's operation.
macro_rules! named {
    ($($name:ident($($operand:ident),*): $bound:ident, $op:ident $(-> $old:ident)?;)+) => {
        impl<T: AtomicElement> Atomics<'_, T> {
            $(
                #[doc = concat!("As [`View::", stringify!($name), "`].")]
                ///
                /// # Errors
                #[doc = concat!("If the domain does not have [`AtomicOp::", stringify!($op), "`], or as ")]
                /// that method; no element is changed then.
                #[inline]
                pub fn $name(
                    &self,
                    pe: Pe,
                    index: usize
                    $(, $operand: T)*
                ) -> Result<named!(@type $($old)?)>
                where
                    T: $bound,
                {
                    if !self.ops.has(AtomicOp::$op) {
                        return self.refuse(stringify!($name), AtomicOp::$op);
                    }
                    self.view.$name(pe, index $(, $operand)*)
                }
            )+
        }
    };
    (@type) => { () };
    (@type $old:ident) => { T };
}

named! {
    atomic_fetch(): AtomicElement, Fetch -> old;
    swap(value): AtomicElement, Set -> old;
    atomic_set(value): AtomicElement, Set;
    fetch_add(value): AtomicElement, Add -> old;
    add(value): AtomicElement, Add;
    fetch_inc(): AtomicInteger, Add -> old;
    inc(): AtomicInteger, Add;
    fetch_and(value): AtomicInteger, And -> old;
    and(value): AtomicInteger, And;
    fetch_or(value): AtomicInteger, Or -> old;
    or(value): AtomicInteger, Or;
    fetch_xor(value): AtomicInteger, Xor -> old;
    xor(value): AtomicInteger, Xor;
    compare_swap(expected, new): AtomicElement, CompareSwap -> old;
}
