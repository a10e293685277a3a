//! Bulk transfers of shared arrays: any range of indices, across blocks and owners.
//!
//! Invariant: the elements of a range on one PE form one range of its part, so a transfer accesses each PE
//! once: block by block between PEs that map each other, and as one message over the network, which is packed
//! or unpacked here. A range with fewer blocks than PEs is transferred block by block. Source: UPC Language
//! Specifications 1.3, section 7.2.5 (`upc_memcpy`, `upc_memget`, `upc_memput`, `upc_memset`), which do not
//! know layouts: their transfers are limited to one block.

use super::shared_array::SharedArray;
use crate::Pe;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use std::ops::Range;

/// The size of the chunks that are copied through private memory, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

impl<T: Element> SharedArray<'_, T> {
    /// Writes `source` to the elements from `index` on. The source may be reused at return; the put is
    /// complete at the owners of the elements after a quiet or a barrier.
    ///
    /// # Errors
    /// If the range exceeds the array; nothing is written then.
    pub fn memput(&self, index: usize, source: &[T]) -> Result<()> {
        self.check("memput", index, source.len())?;
        let parts = self.parts();
        for (pe, range) in self.pieces(index..index + source.len()) {
            let mut runs = self.layout().affine(pe, range.clone());
            if parts.ptr(pe).is_some() || self.is_one_run(&range) {
                let on = parts.on(pe)?;
                while let Some((at, local, count)) = runs.next_run() {
                    on.put(local, &source[at - index..][..count])?;
                }
                continue;
            }
            let local = self.layout().local_range(pe, range);
            let mut packed = Vec::with_capacity(local.len());
            while let Some((at, _, count)) = runs.next_run() {
                packed.extend_from_slice(&source[at - index..][..count]);
            }
            parts.put(pe, local.start, &packed)?;
        }
        Ok(())
    }

    /// Reads the elements from `index` on into `target`; the get is complete at return.
    ///
    /// # Errors
    /// If the range exceeds the array; nothing is read then.
    pub fn memget(&self, index: usize, target: &mut [T]) -> Result<()> {
        self.check("memget", index, target.len())?;
        let parts = self.parts();
        let mut packed = Vec::new();
        for (pe, range) in self.pieces(index..index + target.len()) {
            let mut runs = self.layout().affine(pe, range.clone());
            if parts.ptr(pe).is_some() || self.is_one_run(&range) {
                let on = parts.on(pe)?;
                while let Some((at, local, count)) = runs.next_run() {
                    on.get(local, &mut target[at - index..][..count])?;
                }
                continue;
            }
            let local = self.layout().local_range(pe, range);
            packed.push((runs, pe, local.start, vec![zero::<T>(); local.len()]));
        }
        if packed.is_empty() {
            return Ok(());
        }
        // Over the network all messages are outstanding at the same time.
        parts.world().scope(|scope| {
            packed.iter_mut().try_for_each(|(_, pe, local, data)| scope.get(parts, *pe, *local, data))
        })?;
        for (runs, _, first, data) in &mut packed {
            while let Some((at, local, count)) = runs.next_run() {
                target[at - index..][..count].copy_from_slice(&data[local - *first..][..count]);
            }
        }
        Ok(())
    }

    /// Copies `count` elements of `source`, from `source_index` on, to the elements from `index` on. It
    /// completes as a [`memput`](Self::memput) does. The layouts may differ.
    ///
    /// ```
    /// use pelago::upc::BlockSize;
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let cyclic = world.shared_array::<u8>(30, BlockSize::Cyclic)?;
    /// let blocked = world.shared_array::<u8>(30, BlockSize::Even)?;
    /// cyclic.update(|index, _| index as u8);
    /// world.barrier();
    /// if world.my_pe() == 0 {
    ///     blocked.memcpy(0, &cyclic, 0, 30)?;
    /// }
    /// world.barrier();
    /// assert!(blocked.forall().all(|(index, value)| value == index as u8));
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If a range exceeds its array, the two overlap, or the arrays belong to different worlds; nothing is
    /// written then.
    pub fn memcpy(
        &self,
        index: usize,
        source: &SharedArray<'_, T>,
        source_index: usize,
        count: usize,
    ) -> Result<()> {
        let (me, operation) = (self.parts().world().my_pe(), "memcpy");
        self.check("the target of memcpy", index, count)?;
        source.check("the source of memcpy", source_index, count)?;
        source.parts().check_world(operation, self.parts().world().core())?;
        if std::ptr::eq(self, source) && index.abs_diff(source_index) < count {
            let reason = format!(
                "{count} elements from {source_index} on and from {index} on overlap. Copy by way of other \
                 memory"
            );
            return Err(ErrorKind::BadShared { me, operation, reason }.into());
        }
        let chunk = chunk_of::<T>(count);
        let mut buffer = vec![zero::<T>(); chunk];
        for done in (0..count).step_by(chunk) {
            let part = &mut buffer[..chunk.min(count - done)];
            source.memget(source_index + done, part)?;
            self.memput(index + done, part)?;
        }
        Ok(())
    }

    /// Sets the elements of a range to one value. It completes as a [`memput`](Self::memput) does.
    ///
    /// # Errors
    /// If the range exceeds the array or ends before it starts; nothing is written then.
    pub fn memset(&self, range: Range<usize>, value: T) -> Result<()> {
        let count = range.end.checked_sub(range.start);
        let count = count.ok_or_else(|| self.out_of_range("memset", range.start, 0))?;
        self.check("memset", range.start, count)?;
        let values = vec![value; chunk_of::<T>(count)];
        for (pe, range) in self.pieces(range) {
            let local = self.layout().local_range(pe, range);
            for start in local.clone().step_by(values.len()) {
                self.parts().put(pe, start, &values[..values.len().min(local.end - start)])?;
            }
        }
        Ok(())
    }

    /// Divides a range into pieces: each has a PE, and a range of indices of which the PE's elements belong
    /// to the piece. The PE of the first element comes first. If there are fewer blocks than PEs, each block
    /// is a separate piece.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = (Pe, Range<usize>)> {
        let (block, n_pes) = (self.layout().block(), self.layout().n_pes());
        let first_block = range.start / block;
        let blocks = if range.is_empty() { 0 } else { (range.end - 1) / block - first_block + 1 };
        let is_by_block = blocks <= n_pes;
        (0..blocks.min(n_pes)).map(move |piece| {
            let pe = (first_block + piece) % n_pes;
            if !is_by_block {
                return (pe, range.clone());
            }
            let start = (first_block + piece) * block;
            (pe, start.max(range.start)..start.saturating_add(block).min(range.end))
        })
    }

    /// Whether a range lies in one block, so that it is contiguous on both sides.
    fn is_one_run(&self, range: &Range<usize>) -> bool {
        let block = self.layout().block();
        range.is_empty() || range.start / block == (range.end - 1) / block
    }
}

/// The number of elements of a chunk, in a transfer of `count` elements.
fn chunk_of<T>(count: usize) -> usize {
    (CHUNK_BYTES / size_of::<T>().max(1)).clamp(1, count.max(1))
}

/// An element of zero bytes.
fn zero<T: Element>() -> T {
    // SAFETY: every bit pattern of an element's size is a valid value, as the type has promised.
    unsafe { std::mem::zeroed() }
}
