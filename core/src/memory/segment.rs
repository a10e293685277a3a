//! Symmetric memory as this PE maps it. This is the only file that makes pointers to
//! elements; `progress.rs` adds checked offsets to the start of a heap.
//!
//! Invariant: addresses are decided per PE. An array's table has one entry a PE: where its part is mapped, or
//! null if operations on it go over the network. It is written before the array is handed out and never
//! changed. The *limit* is the number of PEs; it is 0 while operations are counted and while the array is
//! closed, and then every operation takes its cold function.
//!
//! The contents of a heap: agreement records of the runtime, then one block for each array, each after a
//! header of one cache line. A word at the end of a header counts the threads that sleep until the part
//! behind it changes (docs/decisions/0010).

use crate::Pe;
use crate::base::element::Element;
use crate::memory::heap::HEADER_BYTES;
use crate::memory::route::{Route, Routes};
use pelago_fabric::copy;
use pelago_fabric::lazy::Reserved;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::segment::{AGREEMENT_WORDS, Block, Header};
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

/// A PE's two agreement records, used in turn, lie at the start of its heap, where other PEs read them over
/// the network. PEs that map each other keep them in the PEs' blocks of the segment instead, because to touch
/// a page of each heap would slow down the start of a large job.
const AGREEMENT_RECORDS_OFFSET_BYTES: usize = 0;
/// The outcome of an agreement that a leader publishes to the PEs of its node: see `agree`.
const OUTCOME_OFFSET_BYTES: usize = AGREEMENT_RECORDS_OFFSET_BYTES + 2 * AGREEMENT_WORDS * 8;
/// Bytes at the start of every heap that belong to the runtime.
pub const RESERVED_BYTES: usize = 4096;

/// The status word of a PE, which other PEs read over the network: see `watch`.
const STANDING_OFFSET_BYTES: usize = OUTCOME_OFFSET_BYTES + AGREEMENT_WORDS * 8;

/// Words of the record of the waits of a PE's threads: see `wait/stall`.
pub const RECORD_WORDS: usize = 128;
/// The offset of that record. It is written in long waits only.
const RECORD_OFFSET_BYTES: usize = (STANDING_OFFSET_BYTES + 8).next_multiple_of(64);

/// A word that the runtime leaves to an interface, the same one for all processes: see `mpi`, `names.rs`.
const INTERFACE_OFFSET_BYTES: usize = RECORD_OFFSET_BYTES + RECORD_WORDS * 8;

const _: () = assert!(INTERFACE_OFFSET_BYTES + 8 <= RESERVED_BYTES);

/// The memory of the PEs of this node.
pub struct Memory {
    segment: Arc<Segment>,
    /// The number of PEs that the fast path compares a PE with: all, or 0 while operations are counted.
    limit: usize,
    /// The slot of each PE of the job within this node.
    slots: Slots,
    /// The address where the region of each PE is mapped; null if operations on it go over the network.
    regions: AddressTable,
}

impl Memory {
    /// The memory of a node. `slots` gives the slot of each PE of the job on this node. While operations are
    /// counted, none of them takes the fast path.
    pub fn new(segment: Arc<Segment>, slots: Slots, routes: &Routes, is_counting: bool) -> Memory {
        let limit = if is_counting { 0 } else { slots.len() };
        let region = |pe: Pe| match (routes.to(pe), slots.of(pe)) {
            (Route::Mapped, Some(slot)) => segment.heap(slot).as_ptr(),
            (Route::Mapped, None) => unreachable!("PE {pe} is mapped, but not in this node's memory"),
            (Route::Net, _) => std::ptr::null_mut(),
        };
        let regions = AddressTable::of((0..slots.len()).map(region));
        Memory { segment, limit, slots, regions }
    }

    /// Bytes that the tables of a job of `n_pes` PEs reserve in each of them. The pages with PEs of this node
    /// are written. The table of an array is like that of the addresses.
    pub const fn reserved_bytes(n_pes: usize) -> usize {
        n_pes * (size_of::<u32>() + size_of::<*mut u8>())
    }

    /// Whether operations on a PE go to its memory, which is mapped here.
    pub fn is_mapped(&self, pe: Pe) -> bool {
        !self.regions.0[pe].is_null()
    }

    pub fn header(&self) -> &Header {
        self.segment.header()
    }

    /// The node's memory.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// The blocks of the PEs of this node.
    pub fn blocks(&self) -> &[Block] {
        self.segment.blocks()
    }

    /// The slot of a PE within this node, the index of its block and its rings; `None` if it is on another
    /// node.
    pub fn slot(&self, pe: Pe) -> Option<usize> {
        self.slots.of(pe)
    }

    /// The block of a PE, if it is on this node.
    pub fn block(&self, pe: Pe) -> Option<&Block> {
        self.slots.of(pe).map(|slot| &self.segment.blocks()[slot])
    }

    /// The block of a PE of this node.
    pub fn near_block(&self, pe: Pe) -> &Block {
        self.block(pe).expect("only a PE of this node is asked for its block")
    }

    /// The PEs of this node.
    pub fn near_pes(&self) -> impl Iterator<Item = Pe> {
        (0..self.slots.len()).filter(|&pe| self.slots.of(pe).is_some())
    }

    /// Size of a PE's heap in bytes, including the runtime's part.
    pub fn heap_bytes(&self) -> usize {
        self.segment.layout().heap_bytes
    }

    /// Size of the memory of a PE that its peers can access, in bytes: its heap and, behind it, its pool.
    pub fn region_bytes(&self) -> usize {
        self.segment.layout().region_bytes()
    }

    /// The address where `pe`'s region is mapped, which begins with its heap; null if it is on another node.
    /// The region of a PE of this node is mapped even if operations on it go over the network.
    pub fn heap(&self, pe: Pe) -> *mut u8 {
        match self.slots.of(pe) {
            Some(slot) => self.segment.heap(slot).as_ptr(),
            None => std::ptr::null_mut(),
        }
    }

    /// The offset of the record of an agreement in every heap, in bytes.
    pub fn agreement_record_offset_bytes(sequence: u64) -> usize {
        AGREEMENT_RECORDS_OFFSET_BYTES + (sequence % 2) as usize * AGREEMENT_WORDS * 8
    }

    /// The agreement record of `pe` for an agreement, as PEs that map each other read it.
    pub fn agreement_record(&self, pe: Pe, sequence: u64) -> &[AtomicU64; AGREEMENT_WORDS] {
        &self.near_block(pe).records[(sequence % 2) as usize]
    }

    /// The agreement record of a PE of this node for an agreement, as the others read it over the network.
    pub fn net_agreement_record(&self, me: Pe, sequence: u64) -> &[AtomicU64; AGREEMENT_WORDS] {
        self.words(me, Memory::agreement_record_offset_bytes(sequence))
    }

    /// The outcome of the last agreement in the heap of a PE of this node, which leads it.
    pub fn outcome(&self, leader: Pe) -> &[AtomicU64; AGREEMENT_WORDS] {
        self.words(leader, OUTCOME_OFFSET_BYTES)
    }

    /// The offset of a PE's status word in every heap, in bytes.
    pub const STANDING_OFFSET_BYTES: usize = STANDING_OFFSET_BYTES;

    /// The status word of a PE of this node.
    pub fn standing(&self, pe: Pe) -> &AtomicU64 {
        &self.words::<1>(pe, STANDING_OFFSET_BYTES)[0]
    }

    /// Offset of the record of a PE's waits in every heap, in bytes.
    pub const RECORD_OFFSET_BYTES: usize = RECORD_OFFSET_BYTES;

    /// Offset in every heap of a word for an interface, in bytes. It is 0 at first, and the runtime does not
    /// use it.
    pub const INTERFACE_OFFSET_BYTES: usize = INTERFACE_OFFSET_BYTES;

    /// The record of what the threads of a PE of this node wait for.
    pub fn record(&self, pe: Pe) -> &[AtomicU64; RECORD_WORDS] {
        self.words(pe, RECORD_OFFSET_BYTES)
    }

    /// Words of the runtime's part of a heap.
    fn words<const N: usize>(&self, pe: Pe, offset_bytes: usize) -> &[AtomicU64; N] {
        assert!(offset_bytes.is_multiple_of(8) && offset_bytes + N * 8 <= RESERVED_BYTES);
        let heap = self.heap(pe);
        assert!(!heap.is_null(), "PE {pe} is on another node");
        // SAFETY: the heap starts page-aligned with the runtime's part, whose words are only accessed as
        // atomics, here and by providers; the range was checked.
        unsafe { &*heap.add(offset_bytes).cast::<[AtomicU64; N]>() }
    }

    /// The table of addresses, by rank, of the parts that begin at given region offsets: `places` has the PE
    /// and the offset in bytes of each. An address is null if operations on the PE go over the network.
    pub fn parts(&self, places: impl ExactSizeIterator<Item = (Pe, usize)>) -> AddressTable {
        let start = |(pe, offset_bytes): (Pe, usize)| {
            self.check_offset(pe, offset_bytes);
            match self.regions.0[pe] {
                region if region.is_null() => region,
                region => region.wrapping_add(offset_bytes),
            }
        };
        AddressTable::of(places.map(start))
    }

    fn check_offset(&self, pe: Pe, offset_bytes: usize) {
        let range = HEADER_BYTES..self.region_bytes();
        assert!(range.contains(&offset_bytes), "offset {offset_bytes} lies outside PE {pe}'s region");
    }

    /// The layout of `len` elements at `offset_bytes` in the memory of every member of a region. This PE,
    /// `me`, has its part at the region offset `own_bytes`.
    ///
    /// # Safety
    /// The range was allocated, suitably aligned for `T`; `parts` is its table, and it and this memory
    /// outlive the layout.
    pub unsafe fn place<T: Element>(
        &self,
        (offset_bytes, len): (usize, usize),
        (me, own_bytes): (Pe, usize),
        parts: &AddressTable,
    ) -> ArrayLayout<T> {
        self.check_offset(me, own_bytes);
        let own = self.heap(me).wrapping_add(own_bytes).cast();
        let limit = if self.limit == 0 { 0 } else { parts.0.len() };
        ArrayLayout { limit, len, parts: parts.0.as_ptr().cast(), own, offset_bytes, element: PhantomData }
    }

    /// Zeroes a free range of this PE's pool, and gives its whole pages back to the system unless this PE
    /// keeps them.
    ///
    /// # Safety
    /// The range lies in PE `me`'s pool, and no thread uses it.
    pub unsafe fn clear(&self, me: Pe, (offset_bytes, bytes): (usize, usize), keeps_pages: bool) {
        let (start, end) = (offset_bytes, offset_bytes + bytes);
        let Range { start: first, end: last } = whole_pages(start..end, rustix::param::page_size());
        // SAFETY: the caller guarantees that the range is in the pool and unused; whole pages of a shared
        // mapping can be given back.
        unsafe {
            let heap = self.heap(me);
            let pages = last - first;
            let are_gone = pages > 0
                && !keeps_pages
                && rustix::mm::madvise(heap.add(first).cast(), pages, rustix::mm::Advice::LinuxRemove)
                    .is_ok();
            if !are_gone {
                return std::ptr::write_bytes(heap.add(start), 0, bytes);
            }
            std::ptr::write_bytes(heap.add(start), 0, first - start);
            std::ptr::write_bytes(heap.add(last), 0, end - last);
        }
    }
}

/// The whole pages of the system in a range, whose start is a multiple of their size; the rest would be given
/// back with them. The range is empty and at the end if it has none.
fn whole_pages(range: Range<usize>, page_bytes: usize) -> Range<usize> {
    let first = range.start.next_multiple_of(page_bytes).min(range.end);
    first..(range.end / page_bytes * page_bytes).max(first)
}

/// The slot of each PE of a job within a node. PEs of other nodes have none, and take no memory here.
#[derive(Debug)]
pub struct Slots(Reserved<u32>);

impl Slots {
    /// Of `n_pes` PEs, those that are on the node, in the order of their slots.
    pub fn new(n_pes: usize, here: impl Iterator<Item = Pe>) -> Slots {
        let mut slots = Reserved::new(n_pes);
        (1..).zip(here).for_each(|(number, pe)| slots[pe] = number);
        Slots(slots)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// The slot of a PE, if it is on the node.
    #[inline]
    pub fn of(&self, pe: Pe) -> Option<usize> {
        self.0[pe].checked_sub(1).map(|slot| slot as usize)
    }
}

/// Addresses by PE or by rank; null for a part that is not mapped. Pages without any other address take no
/// memory.
#[derive(Debug, Default)]
pub struct AddressTable(pub Reserved<*mut u8>);

impl AddressTable {
    fn of(addresses: impl ExactSizeIterator<Item = *mut u8>) -> AddressTable {
        let mut table = Reserved::new(addresses.len());
        for (i, address) in addresses.enumerate().filter(|(_, address)| !address.is_null()) {
            table[i] = address;
        }
        AddressTable(table)
    }
}

// SAFETY: addresses of shared memory, which is accessed as atomics or through copies only.
unsafe impl Send for AddressTable {}
// SAFETY: as for `Send`; the table itself never changes.
unsafe impl Sync for AddressTable {}

/// The layout of a symmetric array: its length, and the address of each member's part. Every access goes
/// through one of its methods; the caller checks the ranges.
pub struct ArrayLayout<T> {
    /// The number of PEs that the fast path compares a PE with: all members, or 0 if none may take the fast
    /// path.
    pub limit: usize,
    /// Elements on each PE.
    pub len: usize,
    /// The address where each member's part is mapped, or null; one entry for each member.
    parts: *const *mut T,
    /// The address where this PE's part is mapped, even if operations on it go over the network.
    own: *mut T,
    offset_bytes: usize,
    element: PhantomData<T>,
}

impl<T> Clone for ArrayLayout<T> {
    fn clone(&self) -> ArrayLayout<T> {
        *self
    }
}
impl<T> Copy for ArrayLayout<T> {}

// SAFETY: addresses of shared memory, which is accessed through `Part`'s methods only; elements are `Send`.
unsafe impl<T: Element> Send for ArrayLayout<T> {}
// SAFETY: as for `Send`; the methods of `Part` tolerate concurrent accesses of other threads.
unsafe impl<T: Element> Sync for ArrayLayout<T> {}

impl<T: Element> ArrayLayout<T> {
    /// The table of the addresses of the array's parts.
    pub fn table(&self) -> *const *mut u8 {
        self.parts.cast()
    }

    /// The same memory as elements of another type, with as many of them as fit.
    pub fn cast<U>(&self) -> ArrayLayout<U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        let (limit, offset_bytes) = (self.limit, self.offset_bytes);
        let (parts, own) = (self.parts.cast(), self.own.cast());
        ArrayLayout { limit, len, parts, own, offset_bytes, element: PhantomData }
    }

    /// The same memory from `skip_bytes` on, whose parts begin at the addresses in `parts`; the table
    /// outlives the result.
    pub fn cast_from<U>(&self, skip_bytes: usize, parts: *const *mut U) -> ArrayLayout<U> {
        let len = (self.len * size_of::<T>() - skip_bytes) / size_of::<U>();
        let (limit, offset_bytes) = (self.limit, self.offset_bytes + skip_bytes);
        let own = self.own.wrapping_byte_add(skip_bytes).cast();
        ArrayLayout { limit, len, parts, own, offset_bytes, element: PhantomData }
    }

    pub fn offset_bytes(&self) -> usize {
        self.offset_bytes
    }

    /// This PE's part.
    #[inline(always)]
    pub fn own(&self) -> Part<T> {
        Part { start: self.own }
    }

    /// The part on `pe`, if the fast path may go there: the PE exists, it is mapped, and operations are not
    /// counted. This costs two instructions more than the load of the address and the comparison with the
    /// limit.
    #[inline(always)]
    pub fn fast(&self, pe: Pe) -> Option<Part<T>> {
        if pe >= self.limit {
            return None;
        }
        // SAFETY: the limit is at most the number of members.
        unsafe { self.mapped(pe) }
    }

    /// The part on `pe`, if operations on it use mapped memory.
    ///
    /// # Safety
    /// The team has a member with this rank.
    #[inline(always)]
    pub unsafe fn mapped(&self, pe: Pe) -> Option<Part<T>> {
        // SAFETY: the table has an entry for each member.
        let start = unsafe { *self.parts.add(pe) };
        (!start.is_null()).then_some(Part { start })
    }
}

/// The distance from the count of sleepers to the array's part behind it, in 4-byte words.
pub const WAITERS_BEFORE_WORDS: usize = 2;

/// The part of a symmetric array on one PE.
pub struct Part<T> {
    start: *mut T,
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Part<T> {
        *self
    }
}
impl<T> Copy for Part<T> {}

// SAFETY: an address of shared memory, which is accessed through the methods below only.
unsafe impl<T: Element> Send for Part<T> {}
// SAFETY: as for `Send`; the methods below tolerate concurrent accesses of other threads.
unsafe impl<T: Element> Sync for Part<T> {}

impl<T: Element> Part<T> {
    /// The same memory as elements of another type.
    #[inline(always)]
    pub fn cast<U>(self) -> Part<U> {
        Part { start: self.start.cast() }
    }

    /// The address where the part is mapped.
    pub fn as_ptr(self) -> *mut T {
        self.start
    }

    /// The address of an element.
    ///
    /// # Safety
    /// `index` is at most the array's length.
    #[inline(always)]
    pub unsafe fn element(self, index: usize) -> *mut T {
        // SAFETY: the element lies in the array, or just behind it.
        unsafe { self.start.add(index) }
    }

    /// The memory from an element on. It has no header: nothing can wait for it.
    ///
    /// # Safety
    /// `index` is at most the array's length.
    #[inline(always)]
    pub unsafe fn starting_at(self, index: usize) -> Part<T> {
        // SAFETY: the caller guarantees that the index is at most the length.
        Part { start: unsafe { self.element(index) } }
    }

    /// The address of the count of threads that sleep until this part changes, a word of the array's header.
    #[inline(always)]
    fn waiters_address(self) -> *mut u32 {
        self.start.cast::<u32>().wrapping_sub(WAITERS_BEFORE_WORDS)
    }

    /// The count of threads that sleep until this part changes.
    pub fn waiters(&self) -> &AtomicU32 {
        // SAFETY: a header lies before each array, and its last words are accessed as atomics only.
        unsafe { AtomicU32::from_ptr(self.waiters_address()) }
    }

    /// Whether a thread sleeps until this part changes. After an atomic operation this is a compare with
    /// memory and a jump.
    #[inline(always)]
    pub fn has_waiters(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: the assembler reads the header's word, which every array has; for the language it is a
        // relaxed atomic load. The compiler would load the word into a register first, which costs a counted
        // instruction.
        unsafe {
            std::arch::asm!(
                "cmp dword ptr [{part} - {before}], 0",
                "jne {yes}",
                part = in(reg) self.start,
                before = const WAITERS_BEFORE_WORDS * 4,
                yes = label { return true },
                options(nostack, readonly),
            );
            false
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            self.waiters().load(Ordering::Relaxed) != 0
        }
    }

    /// Clears the header of this PE's own part, before a thread waits for the part.
    pub fn reset_waiters(&self) {
        self.waiters().store(0, Ordering::Relaxed);
    }

    /// Stores an element.
    ///
    /// # Safety
    /// `index` is less than the array's length.
    #[inline(always)]
    pub unsafe fn store(self, index: usize, value: T) {
        // SAFETY: the element lies in the array, which is aligned for `T`; elements have no padding.
        unsafe { copy::store(self.start.add(index), value) }
    }

    /// Loads an element.
    ///
    /// # Safety
    /// `index` is less than the array's length.
    #[inline(always)]
    pub unsafe fn load(self, index: usize) -> T {
        // SAFETY: the element lies in the array, which is aligned for `T`; any bit pattern is an element.
        unsafe { copy::load(self.start.add(index)) }
    }

    /// Copies elements in.
    ///
    /// # Safety
    /// `index + source.len()` is at most the array's length.
    #[inline(always)]
    pub unsafe fn write(self, index: usize, source: &[T]) {
        // SAFETY: the range lies in the array; a Rust slice does not overlap symmetric memory that others can
        // reach, as only exclusive phases lend such slices and those borrow the array.
        unsafe {
            match source {
                [value] => copy::store(self.start.add(index), *value),
                // Other threads may access these bytes as a word.
                bytes if size_of::<T>() == 1 => {
                    copy::transfer(self.start.add(index).cast(), bytes.as_ptr().cast(), bytes.len())
                }
                _ => copy::copy(self.start.add(index).cast(), source.as_ptr().cast(), size_of_val(source)),
            }
        }
    }

    /// Copies elements out.
    ///
    /// # Safety
    /// `index + target.len()` is at most the array's length.
    #[inline(always)]
    pub unsafe fn read(self, index: usize, target: &mut [T]) {
        // SAFETY: as in `write`; any bit pattern is an element.
        unsafe {
            match target {
                [value] => *value = copy::load(self.start.add(index)),
                bytes if size_of::<T>() == 1 => {
                    copy::transfer(bytes.as_mut_ptr().cast(), self.start.add(index).cast(), bytes.len())
                }
                _ => {
                    copy::copy(target.as_mut_ptr().cast(), self.start.add(index).cast(), size_of_val(target))
                }
            }
        }
    }

    /// Copies the first elements out.
    ///
    /// # Safety
    /// `target.len()` is at most the array's length.
    pub unsafe fn read_first(self, target: &mut [MaybeUninit<T>]) {
        // SAFETY: the range lies in the array; `target` is private memory with room for as many elements.
        unsafe { copy::copy(target.as_mut_ptr().cast(), self.start.cast(), size_of_val(target)) }
    }

    /// Moves elements within this part; the ranges may overlap.
    ///
    /// # Safety
    /// Both ranges lie in allocated heap, and no other thread accesses them meanwhile.
    pub unsafe fn move_to(self, target: Part<T>, count: usize) {
        // SAFETY: the caller guarantees that both ranges are allocated and that no other thread accesses
        // them.
        unsafe { std::ptr::copy(self.start, target.start, count) }
    }

    /// Sets elements to all zero bytes.
    ///
    /// # Safety
    /// The range lies in the array, and no other thread accesses it meanwhile.
    pub unsafe fn zero(self, range: Range<usize>) {
        // SAFETY: the caller guarantees that the range is in the array and that no other thread accesses it.
        // Zero bytes are an element.
        unsafe { std::ptr::write_bytes(self.start.add(range.start), 0, range.len()) }
    }

    /// The part as a slice.
    ///
    /// # Safety
    /// The part has `len` elements, and no other thread accesses it for as long as the slice lives.
    pub unsafe fn slice<'a>(self, len: usize) -> &'a mut [T] {
        // SAFETY: the caller guarantees the length, the lifetime and exclusive access; arrays are aligned for
        // `T`, and any bytes are an element.
        unsafe { std::slice::from_raw_parts_mut(self.start, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With pages of 64 KiB a block of 4 KiB has none, also at the start of a page: its neighbours lie there.
    #[test]
    fn only_whole_pages_are_given_back() {
        let (small, large) = (4096, 65536);
        assert_eq!(whole_pages(large..large + small, large), large..large);
        assert_eq!(whole_pages(large..large + small, small), large..large + small);
        assert_eq!(whole_pages(small..3 * large + small, large), large..3 * large);
        assert_eq!(whole_pages(10..20, small), 20..20);
        assert_eq!(whole_pages(small - 1..2 * small, small), small..2 * small);
    }
}
