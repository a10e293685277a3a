//! Allocation of symmetric arrays in the heaps of all PEs.

use super::symmetric::Symmetric;
use crate::world::World;
use pelago_core::base::call::Call;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::base::kind::ObjectKind;

impl World {
    /// Allocates a symmetric array: `len` elements in every PE's memory, the contents unspecified.
    /// Collective; complete with a barrier, after which any PE may access any part.
    ///
    /// # Errors
    /// If the heap has no such block, the size exceeds the address space, there are 4352 arrays already, or
    /// the PEs do not ask for the same; then no PE has allocated.
    #[track_caller]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_aligned(len, align_of::<T>())
    }

    /// As [`alloc`](World::alloc), all elements zero.
    ///
    /// # Errors
    /// As [`alloc`](World::alloc).
    #[track_caller]
    pub fn alloc_zeroed<T: Element>(&self, len: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_zeroed_as(ObjectKind::Array, len)
    }

    /// As [`alloc_zeroed`](World::alloc_zeroed), for an object of this kind.
    #[track_caller]
    pub(crate) fn alloc_zeroed_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
    ) -> Result<Symmetric<'_, T>> {
        let align_bytes = align_of::<T>();
        let bytes = len.saturating_mul(size_of::<T>());
        let mut collective = self.core().collective();
        let call = Call::AllocZeroed { kind, bytes, align_bytes };
        collective.agree(call)?;
        let array = Symmetric::alloc_agreed(self, &self.core().region, len, align_bytes)?;
        array.zero_here();
        self.barrier();
        Ok(array)
    }

    /// As [`alloc`](World::alloc), each PE's part aligned to `align_bytes`: a power of two of at most 16 MiB.
    /// Every array is aligned to 64 bytes at least.
    ///
    /// # Errors
    /// As [`alloc`](World::alloc), and for other alignments.
    #[track_caller]
    pub fn alloc_aligned<T: Element>(&self, len: usize, align_bytes: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_as(ObjectKind::Array, len, align_bytes)
    }

    /// As [`alloc_aligned`](World::alloc_aligned), for an object of this kind.
    #[track_caller]
    pub(crate) fn alloc_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
        align_bytes: usize,
    ) -> Result<Symmetric<'_, T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut collective = self.core().collective();
        // First of all, so that arguments that are wrong on some PEs only are found as a difference.
        collective.agree(Call::Alloc { kind, bytes, align_bytes })?;
        Symmetric::alloc_agreed(self, &self.core().region, len, align_bytes)
    }
}
