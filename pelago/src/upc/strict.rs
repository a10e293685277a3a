//! Strict accesses, which are sequentially consistent between PEs. Puts and gets are the relaxed accesses.
//!
//! Invariant: before a strict access all operations that this thread has started are complete, and the access
//! is complete before the thread continues. Each number lies in one memory, in which accesses to it take
//! effect one after the other; so all strict accesses take effect in one order, which agrees with the program
//! order of each thread (Lamport, "How to make a multiprocessor computer that correctly executes multiprocess
//! programs", 1979). Source: UPC Language Specifications 1.3, appendix B (memory consistency).

use crate::Pe;
use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_fabric::sync::{Ordering, fence};

/// The strict accesses of an array: see [`View::strict`].
pub struct Strict<'a, T: Element> {
    view: &'a View<'a, T>,
}

impl<T: Element> View<'_, T> {
    /// Returns the strict accesses of the array, UPC's `strict shared`. They take effect in one order, which
    /// is the same for all PEs and agrees with the program order of each PE. Relaxed accesses of a PE are not
    /// moved across its strict accesses. So algorithms that use flags work with them as in textbooks. Each
    /// strict access completes all earlier operations of this PE, which makes them slow over a network.
    ///
    /// Relaxed accesses through a [`Context`](crate::Context) are not ordered by them. Elements are numbers
    /// of up to 8 bytes: for other types the guarantees are those of puts and gets.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let wants = world.alloc_zeroed::<u32>(1)?;
    /// let (me, other) = (world.my_pe(), 1 - world.my_pe());
    /// wants.strict().p(me, 0, 1)?;
    /// let is_alone = wants.strict().g(other, 0)? == 0; // true on at most one of the two PEs (Dekker)
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
        self.quiet();
        self.view.p(pe, index, value)?;
        self.quiet();
        Ok(())
    }

    /// Reads element `index` on `pe`.
    ///
    /// # Errors
    /// If there is no such PE or element.
    pub fn g(&self, pe: Pe, index: usize) -> Result<T> {
        self.quiet();
        let value = self.view.g(pe, index)?;
        // SYNC POINT put-order: keeps later accesses behind this one, and acquires what its writer released.
        fence(Ordering::SeqCst);
        Ok(value)
    }

    /// Waits for the operations of the world, and for those of the context that the array is seen through.
    fn quiet(&self) {
        let world = self.view.world();
        world.quiet();
        if world.core().net.is_some() {
            self.view.net_endpoint().quiet(world.core());
            world.core().order_stores();
        }
    }
}
