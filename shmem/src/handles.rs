//! Handles of teams and contexts: addresses of slots in one table, whose memory is never given back.
//!
//! Invariant: an address is a handle only if a slot begins there, so whatever a program passes is found out
//! without being followed. Slots of what was destroyed are used again late, so that a handle that is used
//! too long is found out as well. Each slot begins with what the fast path reads, which is closed while the
//! slot is not that of a living context.

use crate::hot::Hot;
use pelago::sync::{AtomicU32, AtomicUsize, Ordering};
use std::alloc::{Layout, alloc_zeroed};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots of a table, and so the most that can be alive at once. They take memory once they are used.
pub(crate) const SLOTS: usize = 1 << 16;
/// So many that were destroyed are kept as they are.
const KEPT: usize = 1024;

/// States of a slot.
const ALIVE: u32 = 1;
const DESTROYED: u32 = 2;

/// A table of handles.
pub(crate) struct Handles<T> {
    /// Where the slots lie; 0 before there is one.
    start: AtomicUsize,
    account: Mutex<Account>,
    value: PhantomData<fn(T) -> T>,
}

struct Account {
    /// Slots that were ever used.
    used: usize,
    /// Those that are not any more, the one destroyed first in front.
    free: VecDeque<usize>,
}

#[repr(C)]
struct Slot<T> {
    /// First, as the fast path takes the handle of a context for its address.
    hot: UnsafeCell<Hot>,
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// Why a handle is none.
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

    /// A handle of a new value, with what the fast path reads there; `None` if there is no room.
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
        // SAFETY: a slot begins there, and it is nobody else's.
        let slot = unsafe { &*(address as *const Slot<T>) };
        // SAFETY: nobody has a handle of this slot yet.
        unsafe {
            (*slot.value.get()).write(value);
            slot.hot.get().write(hot);
        }
        slot.state.store(ALIVE, Ordering::Release);
        Some(address)
    }

    /// What a handle stands for.
    #[inline]
    pub(crate) fn get(&self, handle: usize) -> Result<&'static T, Stale> {
        let slot = self.slot(handle)?;
        // SAFETY: it is alive, so a value was written; it stays until it is destroyed, and who has the handle
        // does not use it meanwhile.
        Ok(unsafe { (*slot.value.get()).assume_init_ref() })
    }

    /// Destroys what a handle stands for, and answers it.
    pub(crate) fn remove(&self, handle: usize) -> Result<T, Stale> {
        let mut account = self.account();
        let slot = self.slot(handle)?;
        slot.state.store(DESTROYED, Ordering::Release);
        account.free.push_back(handle);
        // SAFETY: it was alive, so a value was written; from here on nobody finds it there.
        unsafe {
            slot.hot.get().write(Hot::CLOSED);
            Ok((*slot.value.get()).assume_init_read())
        }
    }

    /// Destroys all.
    pub(crate) fn clear(&self) {
        self.drain().for_each(drop);
    }

    /// Destroys all, and answers what they were.
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

    /// Where the slots lie. Called with the account held.
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
