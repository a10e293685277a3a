//! The allocator of the symmetric heap.
//!
//! Invariant: equal sequences of calls give equal offsets, so PEs that make the same calls need not
//! communicate. All bookkeeping lies outside the heap: a stray write into it cannot corrupt the allocator,
//! and an untouched heap stays without pages. The policy is best fit, the lowest offset among equals;
//! adjacent free blocks are merged. One granule before each block is the block's header, whose contents
//! belong to the user of the block. A caller can also ask for a block at a certain offset, or at the highest
//! possible offset.

use std::collections::{BTreeMap, BTreeSet};

/// Every block is a multiple of this and starts at a multiple of it: a cache line, so that two arrays never
/// share one.
pub const GRANULE_BYTES: usize = 64;

/// Size of the header that lies before each block, in bytes.
pub const HEADER_BYTES: usize = GRANULE_BYTES;

/// Offsets and sizes of the free and the used blocks of one heap.
#[derive(Clone, Debug)]
pub struct Heap {
    free_by_offset: BTreeMap<usize, usize>,
    free_by_size: BTreeSet<(usize, usize)>,
    used: BTreeMap<usize, usize>,
    start: usize,
    end: usize,
}

impl Heap {
    /// A heap of the offsets from `start` up to `end` (in bytes), all free.
    pub fn new(start: usize, end: usize) -> Heap {
        let start = start.next_multiple_of(GRANULE_BYTES);
        let end = (end / GRANULE_BYTES * GRANULE_BYTES).max(start);
        let mut heap = Heap {
            free_by_offset: BTreeMap::new(),
            free_by_size: BTreeSet::new(),
            used: BTreeMap::new(),
            start,
            end,
        };
        heap.add_free(start, end - start);
        heap
    }

    /// Takes a block of at least `bytes` bytes whose offset is a multiple of `align_bytes` (a power of two),
    /// and returns its offset; `None` if there is no such block. A request for 0 bytes takes a block of its
    /// own as well.
    pub fn alloc(&mut self, bytes: usize, align_bytes: usize) -> Option<usize> {
        let place = self.best_fit(bytes, align_bytes)?;
        assert!(self.alloc_at(place, bytes), "the best fit is a fit");
        Some(place)
    }

    /// The offset that [`alloc`](Heap::alloc) would return.
    pub fn best_fit(&self, bytes: usize, align_bytes: usize) -> Option<usize> {
        let bytes = rounded(bytes)?;
        let align = align_bytes.max(GRANULE_BYTES);
        let place_in = |offset: usize| (offset + HEADER_BYTES).next_multiple_of(align);
        let fits = |&&(size, offset): &&(usize, usize)| {
            place_in(offset).checked_add(bytes).is_some_and(|end| end <= offset + size)
        };
        let &(_, offset) = self.free_by_size.range((bytes, 0)..).find(fits)?;
        Some(place_in(offset))
    }

    /// The highest offset, at most `last`, at which such a block fits.
    pub fn highest_fit(&self, bytes: usize, align_bytes: usize, last: usize) -> Option<usize> {
        let bytes = rounded(bytes)?;
        let align = align_bytes.max(GRANULE_BYTES);
        self.free_by_offset.range(..=last).rev().find_map(|(&offset, &size)| {
            let place = (offset + size).checked_sub(bytes)?.min(last) / align * align;
            (place >= offset + HEADER_BYTES).then_some(place)
        })
    }

    /// Takes a block of at least `bytes` bytes at the offset `place`, a multiple of the granule; `false` if
    /// this range is not free.
    pub fn alloc_at(&mut self, place: usize, bytes: usize) -> bool {
        let ends = rounded(bytes).and_then(|bytes| place.checked_add(bytes));
        let (Some(end), Some(start)) = (ends, place.checked_sub(HEADER_BYTES)) else { return false };
        let before = self.free_by_offset.range(..=start).next_back();
        let Some((&offset, &size)) = before.filter(|&(&offset, &size)| end <= offset + size) else {
            return false;
        };
        assert!(place.is_multiple_of(GRANULE_BYTES), "a block at offset {place}");
        self.remove_free(offset, size);
        self.add_free(offset, start - offset);
        self.add_free(end, offset + size - end);
        self.used.insert(place, end - place);
        true
    }

    /// Frees a block.
    ///
    /// # Panics
    /// If no block starts at `offset`.
    pub fn free(&mut self, offset: usize) {
        let used = self.used.remove(&offset).expect("a block is freed once, by its offset");
        let (mut start, mut bytes) = (offset - HEADER_BYTES, used + HEADER_BYTES);
        if let Some((&before, &size)) = self.free_by_offset.range(..start).next_back()
            && before + size == start
        {
            self.remove_free(before, size);
            start = before;
            bytes += size;
        }
        if let Some((&after, &size)) = self.free_by_offset.range(offset..).next()
            && after == start + bytes
        {
            self.remove_free(after, size);
            bytes += size;
        }
        self.add_free(start, bytes);
    }

    /// Whether [`resize_in_place`](Heap::resize_in_place) would succeed.
    ///
    /// # Panics
    /// If no block starts at `offset`.
    pub fn can_resize(&self, offset: usize, bytes: usize) -> bool {
        let (now, room) = self.extent(offset);
        rounded(bytes).is_some_and(|bytes| bytes <= now + room)
    }

    /// Makes the block at `offset` hold `bytes` bytes without moving it; `false` if the memory behind it is
    /// in use.
    ///
    /// # Panics
    /// If no block starts at `offset`.
    pub fn resize_in_place(&mut self, offset: usize, bytes: usize) -> bool {
        let (now, room) = self.extent(offset);
        let Some(bytes) = rounded(bytes).filter(|&bytes| bytes <= now + room) else { return false };
        if room > 0 {
            self.remove_free(offset + now, room);
        }
        self.add_free(offset + bytes, now + room - bytes);
        self.used.insert(offset, bytes);
        true
    }

    /// The offsets of the blocks in use, in ascending order.
    pub fn offsets(&self) -> impl Iterator<Item = usize> {
        self.used.keys().copied()
    }

    /// The offset of the block in use that contains an offset, if there is one.
    pub fn block_around(&self, offset: usize) -> Option<usize> {
        let (&start, &bytes) = self.used.range(..=offset).next_back()?;
        (offset < start + bytes).then_some(start)
    }

    /// Size of the block in use that starts at `offset`, in bytes; `None` if there is no such block.
    pub fn block_bytes(&self, offset: usize) -> Option<usize> {
        self.used.get(&offset).copied()
    }

    /// Bytes in free blocks, including the space for headers.
    pub fn free_bytes(&self) -> usize {
        self.free_by_offset.values().sum()
    }

    /// The largest block that can be allocated, in bytes.
    pub fn largest_free_bytes(&self) -> usize {
        self.free_by_size.last().map_or(0, |&(size, _)| size - HEADER_BYTES.min(size))
    }

    /// Bytes in all blocks, free and used.
    pub fn total_bytes(&self) -> usize {
        self.end - self.start
    }

    /// Size of the used block at `offset`, and of the free block that follows it.
    fn extent(&self, offset: usize) -> (usize, usize) {
        let bytes = self.used[&offset];
        (bytes, self.free_by_offset.get(&(offset + bytes)).copied().unwrap_or(0))
    }

    fn add_free(&mut self, offset: usize, bytes: usize) {
        if bytes > 0 {
            self.free_by_offset.insert(offset, bytes);
            self.free_by_size.insert((bytes, offset));
        }
    }

    fn remove_free(&mut self, offset: usize, bytes: usize) {
        self.free_by_offset.remove(&offset);
        self.free_by_size.remove(&(bytes, offset));
    }
}

/// The size of the block that holds `bytes` bytes.
fn rounded(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(GRANULE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Alloc {
            bytes: usize,
            align_log2: u32,
        },
        Free {
            pick: usize,
        },
        Resize {
            pick: usize,
            bytes: usize,
        },
        /// A block at the highest possible offset, at most `last`.
        High {
            bytes: usize,
            align_log2: u32,
            last: usize,
        },
        /// A block at a given offset, if the range is free.
        At {
            granule: usize,
            bytes: usize,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let alloc =
            (0usize..3000, 0u32..13).prop_map(|(bytes, align_log2)| Step::Alloc { bytes, align_log2 });
        let free = any::<usize>().prop_map(|pick| Step::Free { pick });
        let resize = (any::<usize>(), 0usize..3000).prop_map(|(pick, bytes)| Step::Resize { pick, bytes });
        let high = (0usize..3000, 0u32..13, 0usize..1 << 17)
            .prop_map(|(bytes, align_log2, last)| Step::High { bytes, align_log2, last });
        let at = (0usize..1 << 10, 0usize..3000).prop_map(|(granule, bytes)| Step::At { granule, bytes });
        prop::collection::vec(prop_oneof![3 => alloc, 3 => free, 1 => resize, 1 => high, 1 => at], 1..200)
    }

    /// The heap's blocks cover it exactly, without overlap, and no two free blocks touch.
    fn check(heap: &Heap) {
        let used = heap.used.iter().map(|(&o, &b)| (o - HEADER_BYTES, b + HEADER_BYTES, false));
        let mut blocks: Vec<(usize, usize, bool)> = used.collect();
        blocks.extend(heap.free_by_offset.iter().map(|(&o, &b)| (o, b, true)));
        blocks.sort_unstable();
        let mut at = heap.start;
        let mut free_before = false;
        for (offset, bytes, is_free) in blocks {
            assert_eq!(offset, at, "a gap or an overlap");
            assert!(!(free_before && is_free), "two free blocks touch at {offset}");
            (at, free_before) = (offset + bytes, is_free);
        }
        assert_eq!(at, heap.end);
        let by_size: BTreeSet<(usize, usize)> = heap.free_by_offset.iter().map(|(&o, &b)| (b, o)).collect();
        assert_eq!(by_size, heap.free_by_size);
    }

    /// Whether the range of a block is free, found by a search through all blocks in use.
    fn is_free(heap: &Heap, place: usize, bytes: usize) -> bool {
        let (start, end) = (place.wrapping_sub(HEADER_BYTES), place + rounded(bytes).unwrap());
        let is_apart = |(&o, &b): (&usize, &usize)| end <= o - HEADER_BYTES || o + b <= start;
        start < end && start >= heap.start && end <= heap.end && heap.used.iter().all(is_apart)
    }

    /// Takes a block at the highest possible offset, and checks that no higher one fits.
    fn apply_high(heap: &mut Heap, bytes: usize, align: usize, last: usize) -> Option<usize> {
        let step = align.max(GRANULE_BYTES);
        let mut places = (0..=last.min(heap.end) / step).rev().map(|number| number * step);
        let place = places.find(|&place| is_free(heap, place, bytes));
        assert_eq!(heap.highest_fit(bytes, align, last), place);
        assert_eq!(heap.best_fit(bytes, align).is_some(), heap.highest_fit(bytes, align, heap.end).is_some());
        place.inspect(|&place| assert!(heap.alloc_at(place, bytes)))
    }

    fn apply(heap: &mut Heap, live: &mut Vec<(usize, usize)>, step: &Step) -> Option<usize> {
        match *step {
            Step::Alloc { bytes, align_log2 } => {
                let align = 1 << align_log2;
                let offset = heap.alloc(bytes, align)?;
                assert_eq!(offset % align, 0);
                live.push((offset, bytes));
                Some(offset)
            }
            Step::Free { pick } => {
                let (offset, _) = (!live.is_empty()).then(|| live.swap_remove(pick % live.len()))?;
                heap.free(offset);
                None
            }
            Step::Resize { pick, bytes } => {
                let at = pick.checked_rem(live.len())?;
                let can = heap.can_resize(live[at].0, bytes);
                assert_eq!(heap.resize_in_place(live[at].0, bytes), can);
                can.then(|| live[at].1 = bytes);
                None
            }
            Step::High { bytes, align_log2, last } => {
                let offset = apply_high(heap, bytes, 1 << align_log2, last)?;
                live.push((offset, bytes));
                Some(offset)
            }
            Step::At { granule, bytes } => {
                let place = granule * GRANULE_BYTES;
                let is_free = is_free(heap, place, bytes);
                assert_eq!(heap.alloc_at(place, bytes), is_free);
                is_free.then(|| live.push((place, bytes)))?;
                Some(place)
            }
        }
    }

    proptest! {
        #[test]
        fn blocks_are_aligned_apart_and_reproducible(steps in steps()) {
            let mut heap = Heap::new(1000, 1 << 16);
            let mut twin = Heap::new(1000, 1 << 16);
            let (mut live, mut live_twin) = (Vec::new(), Vec::new());
            for step in &steps {
                let offset = apply(&mut heap, &mut live, step);
                prop_assert_eq!(offset, apply(&mut twin, &mut live_twin, step));
                check(&heap);
                let mut ranges: Vec<_> = live.iter().map(|&(o, b)| (o, o + b)).collect();
                ranges.sort_unstable();
                prop_assert!(ranges.windows(2).all(|w| w[0].1 <= w[1].0), "overlap: {ranges:?}");
                for (offset, bytes) in ranges.into_iter().map(|(start, end)| (start, end - start)) {
                    let bytes = rounded(bytes).unwrap();
                    prop_assert_eq!(heap.block_around(offset), Some(offset));
                    prop_assert_eq!(heap.block_around(offset + bytes - 1), Some(offset));
                    prop_assert_ne!(heap.block_around(offset + bytes), Some(offset));
                }
            }
            for (offset, _) in live {
                heap.free(offset);
            }
            prop_assert_eq!(heap.free_bytes(), heap.total_bytes());
            prop_assert_eq!(heap.largest_free_bytes(), heap.total_bytes() - HEADER_BYTES);
        }
    }

    #[test]
    fn a_full_heap_says_no_and_recovers() {
        let mut heap = Heap::new(0, 4096);
        let a = heap.alloc(2048 - HEADER_BYTES, 8).unwrap();
        let b = heap.alloc(2048 - HEADER_BYTES, 8).unwrap();
        assert_eq!((heap.alloc(1, 8), heap.free_bytes(), heap.largest_free_bytes()), (None, 0, 0));
        heap.free(a);
        assert_eq!(heap.alloc(2048 - HEADER_BYTES + 1, 8), None);
        heap.free(b);
        assert_eq!(heap.alloc(4096 - HEADER_BYTES, 8), Some(HEADER_BYTES));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        let mut heap = Heap::new(0, 4096);
        assert_eq!(heap.alloc(usize::MAX, 8), None);
        assert_eq!(heap.alloc(usize::MAX - 64, 4096), None);
        let block = heap.alloc(64, 8).unwrap();
        assert!(!heap.resize_in_place(block, usize::MAX));
        for bytes in [4096, isize::MAX as usize, usize::MAX - 64, usize::MAX] {
            assert_eq!(heap.highest_fit(bytes, 8, usize::MAX), None);
            assert!(!heap.alloc_at(1024, bytes) && !heap.alloc_at(usize::MAX & !63, bytes));
        }
        assert!(!heap.alloc_at(0, 1));
    }
}
