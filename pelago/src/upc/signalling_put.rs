//! A put that posts a semaphore when its data are delivered (UPC's `upc_memput_signal`).
//!
//! Invariant: the semaphore is posted after the data are delivered, as with `put_signal`. The guarantees are:
//!
//! | | at return | a PE that has waited for the post |
//! |---|---|---|
//! | `memput_signal` | the source may be reused | sees the data |
//! | `memput_signal_within` | nothing; the region keeps the source borrowed | sees the data |
//! | `memput_signal_async` | nothing; the caller keeps the source | sees the data; may tell the initiator |
//!
//! None of them is a fence: the post does not cover the initiator's other accesses. The initiator is not
//! notified of the delivery; a quiet completes it as it completes a put. Source: the slides "GASNet and
//! Berkeley UPC on BlueGene/P", appendix (UPC Semaphore, Memput).

use super::semaphore::{COUNT, Semaphore};
use super::shared_array::SharedArray;
use crate::Region;
use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::signal_op::SignalOp;

impl Semaphore<'_> {
    /// Puts `source` to the elements from `index` on, on the PE that the semaphore has affinity to, and adds
    /// `n` to the semaphore when they are delivered. Returns as soon as the source may be reused, which may
    /// be before the data arrive.
    ///
    /// ```
    /// use pelago::upc::SemaphoreKind;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let full = world.semaphores(1, SemaphoreKind::boolean().single_producer().single_consumer())?;
    /// let slab = world.alloc_zeroed::<f64>(1000)?;
    /// if world.my_pe() == 0 {
    ///     full.at(1, 0)?.memput_signal(&slab, 0, &[1.5; 1000], 1)?;
    /// } else {
    ///     full.at(1, 0)?.wait()?;
    ///     assert_eq!(slab.local().get(999), 1.5);
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the range exceeds the array, the array and the semaphore have different PEs, or `n` is not valid
    /// for this semaphore; nothing is written or posted then.
    pub fn memput_signal<T: Element>(
        &self,
        array: &View<'_, T>,
        index: usize,
        source: &[T],
        n: u64,
    ) -> Result<()> {
        let op = self.signal("memput_signal", array, n)?;
        array.put_signal(self.owner, index, source, self.set.words(), self.word(COUNT), op)?;
        self.ring_consumers();
        Ok(())
    }

    /// As [`memput_signal`](Self::memput_signal), but may return while the source is still in use: it stays
    /// borrowed until the scope of the region ends.
    ///
    /// # Errors
    /// As [`memput_signal`](Self::memput_signal), and if the array belongs to another world than the region.
    pub fn memput_signal_within<'scope, T: Element>(
        &self,
        region: &Region<'scope>,
        array: &'scope View<'_, T>,
        index: usize,
        source: &'scope [T],
        n: u64,
    ) -> Result<()> {
        let op = self.signal("memput_signal_within", array, n)?;
        region.put_signal(array, self.owner, index, source, self.set.words(), self.word(COUNT), op)?;
        self.ring_consumers();
        Ok(())
    }

    /// As [`memput_signal`](Self::memput_signal), but may return while the source is still in use, and the
    /// caller must keep the source unchanged (UPC's `upc_memput_signal_async`).
    ///
    /// # Errors
    /// As [`memput_signal`](Self::memput_signal).
    ///
    /// # Safety
    /// The source is not written, moved or freed before a [`quiet`](crate::World::quiet) has returned, or
    /// before this PE has received an acknowledgement, by an operation that is an acquire, from the PE that
    /// has waited for this post.
    pub unsafe fn memput_signal_async<T: Element>(
        &self,
        array: &View<'_, T>,
        index: usize,
        source: &[T],
        n: u64,
    ) -> Result<()> {
        let op = self.signal("memput_signal_async", array, n)?;
        // SAFETY: the caller keeps the source unchanged until the data are delivered, that is until the
        // semaphore is posted or a quiet has returned.
        unsafe {
            array.put_signal_nbi(self.owner, index, source, self.set.words(), self.word(COUNT), op)?;
        }
        self.ring_consumers();
        Ok(())
    }

    /// Checks the arguments, and returns the signal that a put makes to the count.
    fn signal<T: Element>(&self, operation: &'static str, array: &View<'_, T>, n: u64) -> Result<SignalOp> {
        self.check_count(operation, n)?;
        let words = self.set.words();
        array.check_world(operation, words.world().core())?;
        let (pe, region) = (words.region().pe(self.owner), array.region());
        if region.len() <= self.owner || region.pe(self.owner) != pe {
            let reason = format!(
                "the array has no part on PE {pe} of the same rank {}. Allocate both in the world, or both \
                 in one space",
                self.owner
            );
            return Err(self.refuse(operation, &reason));
        }
        let kind = self.set.kind();
        Ok(if kind.is_boolean && !kind.has_one_consumer { SignalOp::Set(1) } else { SignalOp::Add(n) })
    }
}

impl<T: Element> SharedArray<'_, T> {
    /// Puts `source` to the elements from `index` on and adds `n` to a semaphore when they are delivered, as
    /// [`Semaphore::memput_signal`] does. The elements must lie in one block, on the PE that the semaphore
    /// has affinity to.
    ///
    /// # Errors
    /// As [`Semaphore::memput_signal`], and if the elements do not lie in one block on that PE.
    pub fn memput_signal(&self, index: usize, source: &[T], semaphore: &Semaphore<'_>, n: u64) -> Result<()> {
        let operation = "memput_signal";
        self.check(operation, index, source.len())?;
        let (owner, local) = self.layout().locate(index);
        let last = self.layout().locate(index + source.len().saturating_sub(1));
        let is_together = last == (owner, local + source.len().saturating_sub(1));
        if owner != semaphore.threadof() || !is_together {
            let reason = format!(
                "{} elements from {index} on do not all lie together on PE {}, which the semaphore has \
                 affinity to. Put a block at a time, and post a semaphore of its owner",
                source.len(),
                semaphore.owner_pe()
            );
            let me = self.parts().world().my_pe();
            return Err(ErrorKind::BadShared { me, operation, reason }.into());
        }
        semaphore.memput_signal(self.parts(), local, source, n)
    }
}
