//! Handles of teams, contexts and other objects of the program: addresses of slots in one table for each
//! kind, whose memory is never freed.
//!
//! Invariant: an address is a handle only if a slot begins there, so an invalid handle is detected without
//! dereferencing it. Slots of destroyed objects are reused late, so that most uses of a handle after
//! destruction are detected as well. Each slot begins with the data that the fast path reads, which are
//! closed while the slot is not that of a live context.

pub(crate) mod context;
pub(crate) mod counts;
pub(crate) mod team;

use crate::base::hot::Hot;
use pelago::sync::{AtomicU32, AtomicUsize, Ordering};
use std::alloc::{Layout, alloc_zeroed};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of slots of a table, and so the maximum number of live objects. Slots take memory once they are
/// used.
pub(crate) const SLOTS: usize = 1 << 16;
/// The number of slots of destroyed objects that are not reused yet.
const KEPT: usize = 1024;

/// States of a slot.
const ALIVE: u32 = 1;
const DESTROYED: u32 = 2;

/// A table of handles.
pub(crate) struct Handles<T> {
    /// The address of the slots; 0 before the first one is used.
    start: AtomicUsize,
    account: Mutex<Account>,
    value: PhantomData<fn(T) -> T>,
}

struct Account {
    /// The number of slots that were ever used.
    used: usize,
    /// Slots of destroyed objects, the first destroyed one in front.
    free: VecDeque<usize>,
}

#[repr(C)]
struct Slot<T> {
    /// The first field, as the fast path uses the handle of a context as the address of this field.
    hot: UnsafeCell<Hot>,
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// The reason why a handle is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    Destroyed,
    Unknown,
}

impl<T: Send + Sync + 'static> Handles<T> {
    pub(crate) const fn new() -> Handles<T> {
        let account = Mutex::new(Account { used: 0, free: VecDeque::new() });
        Handles { start: AtomicUsize::new(0), account, value: PhantomData }
    }

    /// A handle of a new value, with the data that the fast path reads; `None` if there is no free slot.
    pub(crate) fn insert(&self, hot: Hot, value: T) -> Option<usize> {
        let mut account = self.account();
        let is_full = account.used == SLOTS;
        let address = if account.free.len() > KEPT || is_full {
            account.free.pop_front()?
        } else {
            let start = self.start_of_slots()?;
            account.used += 1;
            start + (account.used - 1) * size_of::<Slot<T>>()
        };
        drop(account);
        // SAFETY: a slot begins there, and only this call has it.
        let slot = unsafe { &*(address as *const Slot<T>) };
        // SAFETY: no caller has a handle of this slot yet.
        unsafe {
            (*slot.value.get()).write(value);
            slot.hot.get().write(hot);
        }
        slot.state.store(ALIVE, Ordering::Release);
        Some(address)
    }

    /// The value of a handle.
    #[inline]
    pub(crate) fn get(&self, handle: usize) -> Result<&'static T, Stale> {
        let slot = self.slot(handle)?;
        // SAFETY: the slot is alive, so a value was written; it stays until it is destroyed, and the caller
        // guarantees that it does not destroy a handle that is in use.
        Ok(unsafe { (*slot.value.get()).assume_init_ref() })
    }

    /// Destroys a handle, and returns its value.
    pub(crate) fn remove(&self, handle: usize) -> Result<T, Stale> {
        let mut account = self.account();
        let slot = self.slot(handle)?;
        slot.state.store(DESTROYED, Ordering::Release);
        account.free.push_back(handle);
        // SAFETY: the slot was alive, so a value was written; from here on no call finds it there.
        unsafe {
            slot.hot.get().write(Hot::CLOSED);
            Ok((*slot.value.get()).assume_init_read())
        }
    }

    /// Destroys all.
    pub(crate) fn clear(&self) {
        self.drain().for_each(drop);
    }

    /// Destroys all handles, and returns their values.
    pub(crate) fn drain(&self) -> impl Iterator<Item = T> + '_ {
        let (start, used) = (self.start.load(Ordering::Acquire), self.account().used);
        (0..used).filter_map(move |i| self.remove(start + i * size_of::<Slot<T>>()).ok())
    }

    fn slot(&self, handle: usize) -> Result<&'static Slot<T>, Stale> {
        let start = self.start.load(Ordering::Acquire);
        let offset = handle.wrapping_sub(start);
        let is_slot = start != 0 && offset < SLOTS * size_of::<Slot<T>>();
        if !is_slot || !offset.is_multiple_of(size_of::<Slot<T>>()) {
            return Err(Stale::Unknown);
        }
        // SAFETY: a slot begins there; all zero bytes are one that was never used.
        let slot = unsafe { &*(handle as *const Slot<T>) };
        match slot.state.load(Ordering::Acquire) {
            ALIVE => Ok(slot),
            DESTROYED => Err(Stale::Destroyed),
            _ => Err(Stale::Unknown),
        }
    }

    /// The address of the slots. Called with the lock held.
    fn start_of_slots(&self) -> Option<usize> {
        let start = self.start.load(Ordering::Acquire);
        if start != 0 {
            return Some(start);
        }
        let layout = Layout::array::<Slot<T>>(SLOTS).ok()?;
        // SAFETY: the layout has a size; zero bytes are slots that were never used.
        let start = unsafe { alloc_zeroed(layout) } as usize;
        self.start.store(start, Ordering::Release);
        (start != 0).then_some(start)
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Display for Stale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stale::Destroyed => "was destroyed",
            Stale::Unknown => {
                "was never made by this library, or lies in a variable that was not written yet"
            }
        })
    }
}
