//! Tables of objects that the program knows by handles.
//!
//! A handle is a number of 31 bits: the position in the table, a part of the position's generation, and the
//! kind of the object, so that a stale handle and one of another kind are detected, and that a handle is an
//! `int` as well (`MPI_Comm_toint`).
//!
//! Invariant: a position is freed and used again only by the owner of its handle. A reference from `get` is
//! valid until then, and the program must not free an object during another call on it. A free position is
//! empty, or has an object that a handle was retired from.

use pelago_fabric::biased::BiasedLock;
use pelago_fabric::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

const CHUNK: usize = 1024;
/// With one more, the last handle would be 2^31, which is no `int`.
const CHUNKS: usize = 511;
/// Handles below are those of the standard's constants.
const FIRST_SHIFT: u32 = 12;
const GENERATION_SHIFT: u32 = 4;
const GENERATION_MASK: u32 = 0xff;
const KIND_MASK: usize = 0xf;

/// The kind of the objects of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    Comm = 1,
    Group,
    Datatype,
    Op,
    Request,
    Message,
    Info,
    Errhandler,
    Win,
    File,
    Session,
}

impl Kind {
    /// Whether a number has the form of a handle of this kind.
    pub fn may_have(self, number: usize) -> bool {
        number >> FIRST_SHIFT != 0 && number & KIND_MASK == self as usize
    }
}

/// Whether tables note the origin of handles.
static ARE_NOTED: AtomicBool = AtomicBool::new(false);
/// The function that has made each handle that is in a table.
static ORIGINS: Mutex<BTreeMap<usize, (Kind, &'static str)>> = Mutex::new(BTreeMap::new());
/// Finds the function of the interface that the program has called.
type Caller = fn() -> Option<&'static str>;
static CALLER: OnceLock<Caller> = OnceLock::new();

/// From now on, notes the function that makes a handle, which `caller` finds.
pub fn note_origins(caller: Caller) {
    CALLER.get_or_init(|| caller);
    ARE_NOTED.store(true, Ordering::Relaxed);
}

/// The handles that are in tables: how many of each kind each function has made.
pub fn left() -> BTreeMap<Kind, BTreeMap<&'static str, usize>> {
    let mut left: BTreeMap<Kind, BTreeMap<&'static str, usize>> = BTreeMap::new();
    for &(kind, maker) in ORIGINS.lock().unwrap_or_else(PoisonError::into_inner).values() {
        *left.entry(kind).or_default().entry(maker).or_default() += 1;
    }
    left
}

/// Leaves a handle out of what [`left`] reports: one that the program cannot free.
pub fn stays(handle: usize) {
    ORIGINS.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
}

/// A table of objects of one kind.
pub struct Table<T> {
    kind: Kind,
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    free: BiasedLock<Free>,
}

struct Slot<T> {
    generation: AtomicU32,
    object: AtomicPtr<T>,
}

struct Free {
    positions: Vec<u32>,
    used: usize,
}

impl<T> Table<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Table<T> {
        Table {
            kind,
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            free: BiasedLock::new(Free { positions: Vec::new(), used: 0 }),
        }
    }

    /// Puts an object in; returns its handle. `None` if the table is full.
    pub fn insert(&self, object: Arc<T>) -> Option<usize> {
        let position = self.position()?;
        let slot = self.slot(position)?;
        // SYNC POINT handle: releases the object to `get`.
        let retired = slot.object.swap(Arc::into_raw(object).cast_mut(), Ordering::AcqRel);
        if !retired.is_null() {
            // SAFETY: the table's share of an object whose handle was retired.
            drop(unsafe { Arc::from_raw(retired) });
        }
        Some(self.handle(position, slot))
    }

    /// Returns a handle of an object whose former handle was retired, which `refill` gives the value; or of a
    /// new one, which `make` makes of it. `None` if the table is full.
    #[inline(always)]
    pub fn reuse<V>(&self, value: V, refill: impl FnOnce(&T, V), make: impl FnOnce(V) -> T) -> Option<usize> {
        let position = self.position()?;
        let slot = self.slot(position)?;
        // SYNC POINT handle: acquires the object from the thread that has retired its handle. SAFETY: the
        // table has a share of the object, and this call alone has the position.
        match unsafe { slot.object.load(Ordering::Acquire).as_ref() } {
            Some(object) => refill(object, value),
            None => {
                let object = Arc::into_raw(Arc::new(make(value))).cast_mut();
                // SYNC POINT handle: releases the object to `get`.
                slot.object.store(object, Ordering::Release);
            }
        }
        Some(self.handle(position, slot))
    }

    /// A free position, which the caller alone has now.
    #[inline(always)]
    fn position(&self) -> Option<usize> {
        let mut free = self.free.lock();
        match free.positions.pop() {
            Some(position) => Some(position as usize),
            None => self.new_position(&mut free),
        }
    }

    #[cold]
    fn new_position(&self, free: &mut Free) -> Option<usize> {
        if free.used == CHUNKS * CHUNK {
            return None;
        }
        if free.used.is_multiple_of(CHUNK) {
            let slot = || Slot { generation: AtomicU32::new(0), object: AtomicPtr::new(null_mut()) };
            let chunk: Box<[Slot<T>]> = (0..CHUNK).map(|_| slot()).collect();
            // SYNC POINT handle-chunk: releases the empty slots to `slot`.
            self.chunks[free.used / CHUNK].store(Box::leak(chunk).as_mut_ptr(), Ordering::Release);
        }
        free.used += 1;
        Some(free.used - 1)
    }

    /// The handle of the object at a position.
    #[inline(always)]
    fn handle(&self, position: usize, slot: &Slot<T>) -> usize {
        let generation = (slot.generation.load(Ordering::Relaxed) & GENERATION_MASK) as usize;
        let handle = (position + 1) << FIRST_SHIFT | generation << GENERATION_SHIFT | self.kind as usize;
        if ARE_NOTED.load(Ordering::Relaxed) {
            self.note(handle);
        }
        handle
    }

    #[cold]
    fn note(&self, handle: usize) {
        let maker = CALLER.get().and_then(|caller| caller()).unwrap_or("a function without a name");
        let mut origins = ORIGINS.lock().unwrap_or_else(PoisonError::into_inner);
        origins.insert(handle, (self.kind, maker));
    }

    #[inline]
    fn slot(&self, position: usize) -> Option<&Slot<T>> {
        let chunk = self.chunks.get(position / CHUNK)?;
        // SYNC POINT handle-chunk: acquires the empty slots.
        let chunk = chunk.load(Ordering::Acquire);
        // SAFETY: a chunk has this many slots and is never freed.
        (!chunk.is_null()).then(|| unsafe { &*chunk.add(position % CHUNK) })
    }

    #[inline]
    fn find(&self, handle: usize) -> Option<(usize, &Slot<T>)> {
        if handle & KIND_MASK != self.kind as usize {
            return None;
        }
        let position = (handle >> FIRST_SHIFT).checked_sub(1)?;
        let slot = self.slot(position)?;
        let generation = (handle >> GENERATION_SHIFT) as u32 & GENERATION_MASK;
        (slot.generation.load(Ordering::Relaxed) & GENERATION_MASK == generation).then_some((position, slot))
    }

    /// The object with a handle. The reference is valid until the handle is removed.
    #[inline]
    pub fn get(&self, handle: usize) -> Option<&T> {
        let (_, slot) = self.find(handle)?;
        // SYNC POINT handle: acquires the object. SAFETY: the table has a share of the object as long as the
        // handle is in it, and the program does not free an object during a call on it.
        unsafe { slot.object.load(Ordering::Acquire).as_ref() }
    }

    /// A share of the object with a handle.
    pub fn share(&self, handle: usize) -> Option<Arc<T>> {
        let object: *const T = self.get(handle)?;
        // SAFETY: the object is in an `Arc`, a share of which the table has.
        unsafe {
            Arc::increment_strong_count(object);
            Some(Arc::from_raw(object))
        }
    }

    /// Removes a handle: the table's share of its object.
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let (position, slot) = self.find(handle)?;
        let object = slot.object.swap(null_mut(), Ordering::AcqRel);
        if object.is_null() {
            return None;
        }
        self.release(handle, position, slot);
        // SAFETY: the table's share of the `Arc`, taken once.
        Some(unsafe { Arc::from_raw(object) })
    }

    /// Removes a handle; its object is kept for [`reuse`](Table::reuse). One thread at a time has the handle.
    #[inline]
    pub fn retire(&self, handle: usize) {
        if let Some((position, slot)) = self.find(handle) {
            self.release(handle, position, slot);
        }
    }

    /// Frees the position of a handle. The caller is the only thread that has the handle.
    #[inline]
    fn release(&self, handle: usize, position: usize, slot: &Slot<T>) {
        if ARE_NOTED.load(Ordering::Relaxed) {
            ORIGINS.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        }
        slot.generation.store(slot.generation.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.free.lock().positions.push(position as u32);
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        let free = self.free.lock();
        free.used - free.positions.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_lead_to_their_objects_until_they_are_removed() {
        let table: Table<usize> = Table::new(Kind::Comm);
        let handles: Vec<usize> = (0..3000).map(|i| table.insert(Arc::new(i)).unwrap()).collect();
        for (i, &handle) in handles.iter().enumerate() {
            assert!(handle >= 1 << FIRST_SHIFT && handle <= i32::MAX as usize);
            assert_eq!(table.get(handle), Some(&i));
        }
        assert_eq!(table.remove(handles[7]).as_deref(), Some(&7));
        assert_eq!((table.get(handles[7]), table.remove(handles[7])), (None, None));
        let again = table.insert(Arc::new(8000)).unwrap();
        assert_ne!(again, handles[7], "the position is the same, the generation is not");
        assert_eq!((table.get(handles[7]), table.get(again), table.len()), (None, Some(&8000), 3000));
    }

    #[test]
    fn the_last_handle_is_an_int() {
        let table: Table<()> = Table::new(Kind::Session);
        let object = Arc::new(());
        let handles: Vec<_> = std::iter::from_fn(|| table.insert(Arc::clone(&object))).collect();
        assert_eq!((handles.len(), table.len()), (CHUNKS * CHUNK, CHUNKS * CHUNK));
        let last = *handles.last().unwrap();
        assert!(last | (GENERATION_MASK as usize) << GENERATION_SHIFT <= i32::MAX as usize, "{last:#x}");
        assert_eq!(table.remove(last), Some(object));
    }

    #[test]
    fn retired_objects_are_used_again_under_new_handles() {
        let table: Table<Mutex<usize>> = Table::new(Kind::Request);
        let reuse = |value| {
            let refill = |object: &Mutex<usize>, value| *object.lock().unwrap() = value;
            table.reuse(value, refill, Mutex::new).unwrap()
        };
        let at = |handle: usize| table.get(handle).map(|object| *object.lock().unwrap());
        let first = reuse(1);
        let object: *const Mutex<usize> = table.get(first).unwrap();
        table.retire(first);
        assert_eq!((at(first), table.remove(first).is_none(), table.len()), (None, true, 0));
        let second = reuse(2);
        assert_eq!((at(first), at(second), table.len()), (None, Some(2), 1));
        assert!(std::ptr::eq(object, table.get(second).unwrap()));
        table.retire(first);
        assert_eq!(at(second), Some(2), "a stale handle retires nothing");
        table.retire(second);
        let third = table.insert(Arc::new(Mutex::new(3))).unwrap();
        assert_eq!((at(second), at(third)), (None, Some(3)));
        assert!(table.remove(third).is_some());
        assert_eq!(at(reuse(4)), Some(4), "the position is empty");
    }

    #[test]
    fn other_numbers_are_no_handles() {
        let table: Table<u8> = Table::new(Kind::Group);
        let other: Table<u8> = Table::new(Kind::Comm);
        let handle = table.insert(Arc::new(1)).unwrap();
        assert!(other.insert(Arc::new(2)).is_some() && other.get(handle).is_none());
        for wrong in [0, 1, 0x101, handle + (1 << FIRST_SHIFT), handle + (1 << 30), usize::MAX] {
            assert!(table.get(wrong).is_none(), "{wrong:#x}");
        }
    }
}
