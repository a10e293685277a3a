//! Strict accesses: sequentially consistent between PEs, beside the relaxed ones, which are puts and gets.
//!
//! Invariant: before a strict access everything that this thread has started is complete, and it is complete
//! itself before the thread goes on. Each number lies in one memory, in which accesses to it take effect one
//! after the other; so all strict accesses take effect in one order, which is that of each thread (Lamport,
//! "How to make a multiprocessor computer that correctly executes multiprocess programs", 1979). Source: UPC
//! Language Specifications 1.3, appendix B (memory consistency).

use crate::Pe;
use crate::array::view::View;
use crate::base::element::Element;
use crate::base::error::Result;
use pelago_fabric::sync::{Ordering, fence};

/// An array seen by strict accesses: see [`View::strict`].
pub struct Strict<'a, T: Element> {
    view: &'a View<'a, T>,
}

impl<T: Element> View<'_, T> {
    /// The array seen by strict accesses, UPC's `strict shared`: they take effect in one order, the same for
    /// all PEs, in which those of each PE stand as it makes them; and what a PE does otherwise, its relaxed
    /// accesses, stays on its side of each of its strict ones. So flags and turns can be programmed with them
    /// as on paper. Each one completes all that this PE has started; that makes them slow over a net.
    ///
    /// Relaxed accesses through a [`Context`](crate::Context) are not ordered by them. Elements are numbers
    /// of up to 8 bytes: of others nothing more than of puts and gets is promised.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let wants = world.alloc_zeroed::<u32>(1)?;
    /// let (me, other) = (world.my_pe(), 1 - world.my_pe());
    /// wants.strict().p(me, 0, 1)?;
    /// let is_alone = wants.strict().g(other, 0)? == 0; // of the two PEs at most one says so (Dekker)
    /// # let _ = is_alone;
    /// # world.barrier();
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    pub fn strict(&self) -> Strict<'_, T> {
        Strict { view: self }
    }
}

impl<T: Element> Strict<'_, T> {
    /// Writes element `index` on `pe`; it is complete at return.
    ///
    /// # Errors
    /// If there is no such PE or element.
    pub fn p(&self, pe: Pe, index: usize, value: T) -> Result<()> {
        let world = self.view.world();
        world.quiet();
        self.view.p(pe, index, value)?;
        world.quiet();
        Ok(())
    }

    /// Reads element `index` on `pe`.
    ///
    /// # Errors
    /// If there is no such PE or element.
    pub fn g(&self, pe: Pe, index: usize) -> Result<T> {
        self.view.world().quiet();
        let value = self.view.g(pe, index)?;
        // SYNC POINT put-order: keeps later accesses behind this one, and acquires what its writer released.
        fence(Ordering::SeqCst);
        Ok(value)
    }
}
