//! Tables with an entry for each PE or process of a job, of which a process uses few: an entry is made when
//! it is first asked for, and an entry that nobody asks for takes no memory.
//!
//! Invariant: a [`LazyTable`] has a pointer for each entry, in memory whose pages come when they are first
//! written. An entry that was made stays where it is until the table is dropped.

mod reserved;

use crate::sync::{AtomicPtr, Mutex, Ordering};
pub use reserved::{Reserved, Zeroed};
use std::ptr::null_mut;
use std::sync::PoisonError;

/// A table of entries that are made on first use, by any thread. A look at an entry that is there is a load.
pub struct LazyTable<T> {
    /// Null where there is no entry.
    entries: Reserved<AtomicPtr<Entry<T>>>,
    /// The entry that was made last, the first of a list of all.
    newest: AtomicPtr<Entry<T>>,
    /// The number of entries. Its lock is held while an entry is made.
    made: Mutex<usize>,
}

struct Entry<T> {
    value: T,
    index: usize,
    /// The entry that was made before this one; null for the first one.
    earlier: *mut Entry<T>,
}

// SAFETY: the table owns its entries, as a vector does.
unsafe impl<T: Send> Send for LazyTable<T> {}
// SAFETY: threads share the entries, and any of them may make one that another one drops.
unsafe impl<T: Send + Sync> Sync for LazyTable<T> {}

impl<T> LazyTable<T> {
    /// A table for `len` entries.
    pub fn new(len: usize) -> LazyTable<T> {
        let newest = AtomicPtr::new(null_mut());
        LazyTable { entries: Reserved::new(len), newest, made: Mutex::new(0) }
    }

    /// Bytes that the table reserves for `len` entries, without the entries. The pages in which no entry was
    /// made take no memory.
    pub const fn reserved_bytes(len: usize) -> usize {
        len * size_of::<AtomicPtr<Entry<T>>>()
    }

    /// Bytes of an entry that was made, beside its place in the table.
    pub const fn entry_bytes() -> usize {
        size_of::<Entry<T>>()
    }

    /// The number of entries for which there is room.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is room for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries that were made.
    pub fn made(&self) -> usize {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An entry, if it was made.
    ///
    /// # Panics
    /// If there is no room for such an entry.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&T> {
        // SYNC POINT lazy_entry: acquires the entry that another thread has made.
        let entry = self.entries[index].load(Ordering::Acquire);
        // SAFETY: an entry lives as long as the table, and is only shared while the table is.
        unsafe { entry.as_ref() }.map(|entry| &entry.value)
    }

    /// An entry, if it was made and there is room for it.
    #[inline(always)]
    pub fn find(&self, index: usize) -> Option<&T> {
        if index < self.len() { self.get(index) } else { None }
    }

    /// An entry, which is made if it is not there. Of several threads that ask for it at once, one makes it.
    ///
    /// # Panics
    /// If there is no room for such an entry.
    #[inline(always)]
    pub fn get_or_make(&self, index: usize, make: impl FnOnce(usize) -> T) -> &T {
        match self.get(index) {
            Some(value) => value,
            None => self.make(index, make),
        }
    }

    /// As [`get_or_make`](LazyTable::get_or_make), without a check of the index.
    ///
    /// # Safety
    /// The index is less than [`len`](LazyTable::len).
    #[inline(always)]
    pub unsafe fn get_or_make_unchecked(&self, index: usize, make: impl FnOnce(usize) -> T) -> &T {
        // SYNC POINT lazy_entry: acquires the entry that another thread has made.
        // SAFETY: the caller guarantees the index.
        let entry = unsafe { self.entries.get_unchecked(index) }.load(Ordering::Acquire);
        // SAFETY: an entry lives as long as the table, and is only shared while the table is.
        match unsafe { entry.as_ref() } {
            Some(entry) => &entry.value,
            None => self.make(index, make),
        }
    }

    #[cold]
    #[inline(never)]
    fn make(&self, index: usize, make: impl FnOnce(usize) -> T) -> &T {
        // The entry is valid whenever the lock is free, so a thread that has panicked leaves a valid table.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.get(index) {
            return value;
        }
        // Only the holder of the lock changes the list.
        let earlier = self.newest.load(Ordering::Relaxed);
        let entry = Box::into_raw(Box::new(Entry { value: make(index), index, earlier }));
        // The list has the entry before the table: a thread that has found an entry finds it in the list.
        // SYNC POINT lazy_list: releases the entry to threads that go through the list.
        self.newest.store(entry, Ordering::Release);
        // SYNC POINT lazy_entry: releases the entry, and that the list has it.
        self.entries[index].store(entry, Ordering::Release);
        *made += 1;
        // SAFETY: the entry was just made, and lives as long as the table.
        unsafe { &(*entry).value }
    }

    /// An entry, if it was made, of a table that only the caller uses.
    ///
    /// # Panics
    /// If there is no room for such an entry.
    #[inline(always)]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let entry = self.entries[index].load(Ordering::Relaxed);
        // SAFETY: an entry lives as long as the table, which the caller has borrowed alone.
        unsafe { entry.as_mut() }.map(|entry| &mut entry.value)
    }

    /// An entry of a table that only the caller uses, which is made if it is not there.
    ///
    /// # Panics
    /// If there is no room for such an entry.
    #[inline(always)]
    pub fn get_or_make_mut(&mut self, index: usize, make: impl FnOnce(usize) -> T) -> &mut T {
        let mut entry = self.entries[index].load(Ordering::Relaxed);
        if entry.is_null() {
            self.make(index, make);
            entry = self.entries[index].load(Ordering::Relaxed);
        }
        // SAFETY: an entry lives as long as the table, which the caller has borrowed alone.
        unsafe { &mut (*entry).value }
    }

    /// All entries that were made, with their indices, the newest first. Entries that other threads make
    /// meanwhile may be missing.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        // SYNC POINT lazy_list: acquires the entries of the list.
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: entries live as long as the table, and are only shared while the table is.
        let first = unsafe { newest.as_ref() };
        // SAFETY: the same holds for the earlier ones, which were in the list before.
        let entries = std::iter::successors(first, |entry| unsafe { entry.earlier.as_ref() });
        entries.map(|entry| (entry.index, &entry.value))
    }
}

impl<T> Drop for LazyTable<T> {
    fn drop(&mut self) {
        let mut next = self.newest.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: the table owns its entries. Each is in the list once, and nobody shares them any more.
            let entry = unsafe { Box::from_raw(next) };
            next = entry.earlier;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn entries_are_made_once_and_dropped_with_the_table() {
        let count = Arc::new(());
        let table = LazyTable::new(1000);
        assert_eq!((table.len(), table.is_empty(), table.made()), (1000, false, 0));
        for index in [3, 999, 3, 0] {
            let (found, _) = table.get_or_make(index, |index| (index, Arc::clone(&count)));
            assert_eq!(*found, index);
        }
        assert!(table.get(5).is_none() && table.get(3).is_some());
        assert!(table.find(5).is_none() && table.find(3).is_some() && table.find(1000).is_none());
        assert_eq!(table.iter().map(|(index, _)| index).collect::<Vec<_>>(), [0, 999, 3], "the newest first");
        assert_eq!((table.made(), Arc::strong_count(&count)), (3, 4));
        drop(table);
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn a_table_of_one_user_changes_its_entries() {
        let mut table = LazyTable::new(10);
        *table.get_or_make_mut(7, |_| 1) += 1;
        *table.get_or_make_mut(7, |_| 100) += 1;
        assert_eq!(table.get_mut(7), Some(&mut 3));
        assert_eq!(table.get_mut(6), None);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(7, &3)]);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn an_entry_outside_of_the_table_is_refused() {
        LazyTable::new(10).get_or_make(10, |_| ());
    }

    #[test]
    fn threads_that_ask_at_once_get_the_same_entry() {
        const N: usize = 200;
        let table = LazyTable::new(N);
        let addresses = |_| (0..N).map(|i| &raw const *table.get_or_make(i, |i| i) as usize).collect();
        let found: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || addresses(i))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|addresses| *addresses == found[0]));
        assert_eq!((table.made(), table.iter().count()), (N, N));
        assert!(table.iter().all(|(index, value)| index == *value));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    /// One thread makes an entry. Another one that finds it sees all of it, and finds it in the list. Both
    /// ask for a second entry, which is made once.
    #[test]
    fn loom_an_entry_is_seen_whole_and_in_the_list() {
        loom::model(|| {
            let table = Arc::new(LazyTable::new(2));
            let make = |index| {
                let cell = loom::cell::UnsafeCell::new(0);
                // SAFETY: no other thread has the cell yet.
                cell.with_mut(|value| unsafe { *value = index + 10 });
                cell
            };
            // SAFETY: nothing writes to the cell after it was made.
            let read = |cell: &loom::cell::UnsafeCell<usize>| cell.with(|value| unsafe { *value });
            // Loom lets this thread run first, and then varies the order from its stores on.
            let looker = {
                let table = Arc::clone(&table);
                thread::spawn(move || {
                    assert!(table.iter().all(|(index, cell)| read(cell) == index + 10));
                    if let Some(cell) = table.get(1) {
                        assert_eq!(read(cell), 11);
                        assert!(table.iter().any(|(index, cell)| index == 1 && read(cell) == 11));
                    }
                    assert_eq!(read(table.get_or_make(0, make)), 10);
                    assert_eq!(table.iter().filter(|(index, _)| *index == 0).count(), 1);
                })
            };
            assert_eq!(read(table.get_or_make(1, make)), 11);
            assert_eq!(read(table.get_or_make(0, make)), 10);
            looker.join().unwrap();
            assert_eq!((table.made(), table.iter().count()), (2, 2));
        });
    }
}
