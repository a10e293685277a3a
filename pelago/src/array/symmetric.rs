//! Symmetric arrays: typed handles to the same number of elements on every PE.

use crate::array::view::View;
use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::call::Call;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::base::panic_message::panic_text;
use pelago_core::coll::symmetric_region::SymmetricRegion;
use pelago_core::memory::arrays::{ArrayId, Block};
use pelago_core::memory::segment::ArrayLayout;
use pelago_core::memory::usage::Usage;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// An array with `len` elements in the memory of every PE, at the same offset in each PE's heap.
///
/// Any PE puts to and gets from any part without the help of the PE that owns it: all one-sided operations
/// are methods of [`View`], to which an array derefs. A PE reads and writes its own part through
/// [`local`](View::local), or as a slice in an [`exclusive`](Symmetric::exclusive) phase.
///
/// Dropping an array is local and never waits; its memory is reclaimed once every PE has dropped it, in the
/// next collective call that allocates or frees memory. [`free`](Symmetric::free) returns the memory at once.
pub struct Symmetric<'w, T: Element> {
    view: View<'w, T>,
    id: ArrayId,
}

impl<'w, T: Element> Deref for Symmetric<'w, T> {
    type Target = View<'w, T>;

    #[inline(always)]
    fn deref(&self) -> &View<'w, T> {
        &self.view
    }
}

impl<'w, T: Element> Symmetric<'w, T> {
    fn new(
        world: &'w World,
        region: &'w SymmetricRegion,
        (id, usage): (ArrayId, Arc<Usage>),
        place: ArrayLayout<T>,
    ) -> Symmetric<'w, T> {
        // No thread waits for this PE's part of the array yet.
        place.own().reset_waiters();
        Symmetric { view: View::new(world, region, place, usage), id }
    }

    /// Allocates an array in a region whose members have agreed on it.
    #[track_caller]
    pub(crate) fn alloc_agreed(
        world: &'w World,
        region: &'w SymmetricRegion,
        len: usize,
        align_bytes: usize,
    ) -> Result<Symmetric<'w, T>> {
        let (id, place) = region.alloc_agreed(world.core(), len, align_bytes)?;
        Ok(Symmetric::new(world, region, id, place))
    }

    /// Runs `work` in an exclusive phase, in which every PE has exclusive access to its own part, as a slice.
    /// Collective over the PEs of the array: both the entry and the exit are barriers that complete all puts
    /// and gets. No PE can access the array remotely meanwhile, because the handle is borrowed.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let mut field = world.alloc_zeroed::<f64>(100)?;
    /// let right = (world.my_pe() + 1) % world.n_pes();
    /// field.put(right, 0, &[1.0, 2.0])?;
    /// let sum: f64 = field.exclusive(|part| {
    ///     part.iter_mut().for_each(|x| *x *= 10.0);
    ///     part.iter().sum()
    /// })?;
    /// assert_eq!(sum, 30.0);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If not all PEs begin this phase, or not all of them end it next. The array then stays closed at the
    /// PEs that have left the phase, because other PEs may still be in it.
    #[track_caller]
    pub fn exclusive<R>(&mut self, work: impl FnOnce(&mut [T]) -> R) -> Result<R> {
        self.check_open("exclusive")?;
        let (world, region) = (self.world(), self.region());
        let (offset_bytes, len) = (self.place.offset_bytes(), self.len());
        let bytes = len * size_of::<T>();
        // Closed first and opened last: no matter how this PE leaves the phase, it cannot access the parts of
        // PEs that are still in it.
        let limit = self.view.close();
        self.finish_collectives("exclusive");
        // On a disagreement it stays closed as well: another PE may have found agreement all the same, if
        // threads of this PE have made collective calls concurrently.
        region.agree(world.core(), Call::BeginExclusive { offset_bytes, bytes })?;
        // SAFETY: all PEs agreed to begin, after they closed their handles, and they open them after all have
        // agreed to end, which this PE does after `work`. Earlier operations are complete, because the
        // agreement is a barrier.
        let part = unsafe { self.place.own().slice(len) };
        let value = catch_unwind(AssertUnwindSafe(|| work(part))).unwrap_or_else(|payload| {
            // The failure is recorded, so that no PE waits for one that unwinds out of the phase.
            world.core().record_failure(panic_text(payload.as_ref()));
            resume_unwind(payload)
        });
        region.agree(world.core(), Call::EndExclusive { offset_bytes, bytes })?;
        self.view.open(limit);
        Ok(value)
    }

    /// Changes the number of elements on each PE. Each part keeps the elements that fit; the values of new
    /// elements are unspecified. Collective over the PEs of the array; it ends with a barrier.
    ///
    /// # Errors
    /// If the heap has no block of this size, or the PEs ask for different sizes. This PE has then dropped
    /// the array.
    #[track_caller]
    pub fn resize(self, len: usize) -> Result<Symmetric<'w, T>> {
        self.check_open("resize")?;
        let (world, region, id) = (self.world(), self.region(), self.id);
        let (old_bytes, kept) = (self.place.offset_bytes(), self.len().min(len));
        let align_bytes = region.arrays().align_bytes(id);
        self.finish_collectives("resize");
        let agreed_bytes = len.saturating_mul(size_of::<T>());
        let mut turn = region.turn(world.core());
        turn.agree(Call::Resize { offset_bytes: old_bytes, bytes: agreed_bytes })?;
        let bytes = world.core().array_bytes::<T>("resize", len)?;
        let is_in_place = region.heap().resize_in_place(old_bytes, bytes);
        let offset_bytes = match is_in_place {
            true => old_bytes,
            false => {
                let found = region.heap().alloc(bytes, align_bytes);
                found.ok_or_else(|| region.exhausted(world.my_pe(), "resize", bytes))?
            }
        };
        let parts = region.parts(&world.core().memory, offset_bytes);
        // SAFETY: the block has this size and alignment, and the world owns the memory; the table is kept
        // with the block.
        let place = unsafe { region.place(&world.core().memory, (offset_bytes, len), &parts) };
        if !is_in_place {
            // SAFETY: both blocks hold `kept` elements; the agreement was a barrier, no other PE accesses the
            // new array before the barrier below, and none accesses the old one, whose handles are consumed.
            unsafe { self.place.own().move_to(place.own(), kept) };
            region.heap().free(old_bytes);
        }
        let usage = Arc::clone(self.usage());
        let block = Block { offset_bytes, align_bytes, parts, usage: Arc::clone(&usage) };
        region.arrays().relocate(id, block);
        drop(turn);
        self.forget();
        let array = Symmetric::new(world, region, (id, usage), place);
        region.barrier(world.core());
        Ok(array)
    }

    /// Frees the memory at once. Collective over the PEs of the array; it begins with a barrier.
    ///
    /// # Errors
    /// If not all PEs free this array. It is then reclaimed like a dropped array.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        let (world, region, offset_bytes) = (self.world(), self.region(), self.place.offset_bytes());
        self.finish_collectives("free");
        drop(self);
        region.agree(world.core(), Call::Free { offset_bytes })
    }

    /// Waits until no collective operation of this PE, whose request may have been forgotten, uses the array
    /// any more.
    #[track_caller]
    fn finish_collectives(&self, operation: &'static str) {
        if !self.usage().is_over() {
            self.world().core().wait(Awaited::Collective { operation, pe: None }, || self.usage().is_over());
        }
    }

    /// Consumes the handle without dropping the array.
    fn forget(self) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the view is read once, and the handle is not used or dropped any more.
        drop(unsafe { std::ptr::read(&raw const this.view) });
    }

    /// Zeroes this PE's part, before any other PE has the handle.
    pub(crate) fn zero_here(&self) {
        // SAFETY: the barrier that ends the allocation is still to come.
        unsafe { self.place.own().zero(0..self.len()) }
    }
}

impl<T: Element> Drop for Symmetric<'_, T> {
    fn drop(&mut self) {
        self.region().arrays().drop_here(self.id);
    }
}

impl<T: Element> std::fmt::Debug for Symmetric<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = std::any::type_name::<T>();
        write!(f, "Symmetric<{name}>({} elements at heap offset {})", self.len(), self.place.offset_bytes())
    }
}
