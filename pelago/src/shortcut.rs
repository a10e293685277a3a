//! The shortest way of a put of one element over the net: it takes no lock that anybody waits for, and the
//! provider's call is prepared. Whatever is out of the ordinary takes the channel's way.
//!
//! Invariant: a put is counted, and marked as unquiet, before it can be complete, and under the lock; so who
//! has the lock knows of all puts that have come this way.

use crate::Pe;
use crate::route::{Route, Routes};
use pelago_fabric::shm::segment::Failure;
use pelago_fabric::sync::{AtomicU32, Ordering};
use pelago_fabric::trylock::{Taken, TryLock};
use pelago_fabric::{Key, Net, PreparedPut, Provider};
use std::pin::Pin;
use std::ptr::null;

/// In the place of an address: the PE's memory is mapped here.
const MAPPED: u64 = u64::MAX;

/// The way, one a channel; closed for ever where the provider has none.
pub(crate) struct Shortcut {
    /// How the provider addresses each PE; of nobody, if there is no such way.
    addresses: Box<[u64]>,
    /// Of the job; in the memory of the node, which outlives the way.
    failure: *const Failure,
    /// Not 0 if something was started since the last quiet: bit 0 by this way, the rest a count of what took
    /// the channel's.
    unquiet: AtomicU32,
    puts: TryLock<Puts>,
}

// SAFETY: the failure is a record of atomics in memory that outlives the way; all else is `Sync` by itself.
unsafe impl Sync for Shortcut {}
// SAFETY: as for `Sync`: the record of the failure is atomics, and outlives the way.
unsafe impl Send for Shortcut {}

/// The puts of this way.
pub(crate) struct Puts {
    started: u64,
    prepared: Option<PreparedPut>,
    /// Where the last put comes from, for the case that it is not taken.
    origin: *const (),
}

/// What became of a put.
pub(crate) enum Way {
    /// It is started, and the source is free.
    Taken,
    /// It has to take the channel's way.
    NotTaken,
    /// It has to take the channel's way as well, and [`Shortcut::refused`] has to be asked what it was.
    Refused,
    /// The PE's memory is mapped here.
    Mapped,
}

/// A put that the provider did not take.
pub(crate) struct Refused {
    pub(crate) origin: *const (),
    pub(crate) pe: Pe,
    pub(crate) offset_bytes: usize,
    /// The value, from the first byte on.
    pub(crate) value: [u8; 8],
}

impl Shortcut {
    /// No way: it only keeps the mark.
    pub(crate) fn none() -> Shortcut {
        let puts = Puts { started: 0, prepared: None, origin: null() };
        let (addresses, unquiet) = (Box::default(), AtomicU32::new(0));
        Shortcut { addresses, failure: null(), unquiet, puts: TryLock::closed(puts) }
    }

    /// The way over this net to the PEs of the job, if there is one; to be opened where it is to stay. The
    /// record of the job's failure outlives it.
    pub(crate) fn prepare(net: &Net, key: Key, routes: &Routes, failure: &Failure) -> Shortcut {
        let Some((prepared, mut addresses)) = net.prepared_put(key) else { return Shortcut::none() };
        for (pe, address) in addresses.iter_mut().enumerate() {
            if routes.to(pe) == Route::Mapped {
                *address = MAPPED;
            }
        }
        let puts = Puts { started: 0, prepared: Some(prepared), origin: null() };
        Shortcut { addresses, failure, puts: TryLock::closed(puts), ..Shortcut::none() }
    }

    /// Opens the way, if there is one.
    ///
    /// # Safety
    /// It is not moved any more.
    pub(crate) unsafe fn open(&self) {
        let mut puts = self.puts.wait();
        if let Some(prepared) = &mut puts.prepared {
            // SAFETY: the caller has promised that it stays.
            unsafe { Pin::new_unchecked(prepared) }.settle();
            puts.leave_open(true);
        }
    }

    /// Puts one element of 1, 2, 4 or 8 bytes, if nothing stands in the way.
    ///
    /// # Safety
    /// The element lies in the heap.
    #[inline(always)]
    pub(crate) unsafe fn put<T: Copy>(
        &self,
        pe: Pe,
        offset_bytes: usize,
        value: T,
        origin: *const (),
    ) -> Way {
        let Some(&address) = self.addresses.get(pe) else { return Way::NotTaken };
        if address == MAPPED {
            return Way::Mapped;
        }
        // SAFETY: the record is there, as the way exists.
        if unsafe { (*self.failure).is_recorded() } {
            return Way::NotTaken;
        }
        let Some(mut puts) = self.puts.enter() else { return Way::NotTaken };
        self.unquiet.fetch_or(1, Ordering::Relaxed);
        puts.started += 1;
        puts.origin = origin;
        // SAFETY: what is open has a settled put, whose endpoint is open until `close`; the caller vouches
        // for the element.
        let is_started = unsafe {
            let prepared = puts.prepared.as_mut().unwrap_unchecked();
            prepared.start(address, offset_bytes, value)
        };
        if !is_started {
            // It stays taken until `refused` has read what is there.
            std::mem::forget(puts);
            return Way::Refused;
        }
        Way::Taken
    }

    /// What was put when the answer was [`Way::Refused`], of so many bytes: to be called once, by that
    /// thread.
    pub(crate) fn refused(&self, bytes: usize) -> Refused {
        // SAFETY: this thread has taken the lock in `put`, and kept it.
        let mut puts = unsafe { self.puts.taken() };
        puts.started -= 1;
        let prepared = puts.prepared.as_ref().expect("a put was prepared, as one was refused");
        let (address, offset_bytes, value) = prepared.last(bytes);
        let pe = self.addresses.iter().position(|&other| other == address).expect("it was one of these");
        Refused { origin: puts.origin, pe, offset_bytes, value }
    }

    /// Marks that something was started, once it is counted and before it is started.
    pub(crate) fn mark_unquiet(&self) {
        // SYNC POINT unquiet: releases the count of what is started.
        if self.unquiet.fetch_add(2, Ordering::Release) >= u32::MAX - 1 {
            // Not 0, however many there are.
            self.unquiet.fetch_add(2, Ordering::Release);
        }
    }

    /// Not 0 if something was started since the last quiet: there is nothing to wait for as long as it is 0.
    pub(crate) fn unquiet(&self) -> &AtomicU32 {
        &self.unquiet
    }

    /// The mark as it is now: to be read before the counts.
    pub(crate) fn mark(&self) -> u32 {
        // SYNC POINT unquiet: acquires the counts of what was started.
        self.unquiet.load(Ordering::Acquire)
    }

    /// Keeps everybody from starting anything this way until the answer is dropped.
    pub(crate) fn stop(&self) -> Stopped<'_> {
        Stopped { shortcut: self, puts: self.puts.wait() }
    }

    /// Closes the way for ever: the endpoint may be closed afterwards.
    pub(crate) fn close(&self) {
        let mut puts = self.puts.wait();
        puts.prepared = None;
        puts.leave_open(false);
    }
}

/// The way, while nobody can take it.
pub(crate) struct Stopped<'a> {
    shortcut: &'a Shortcut,
    puts: Taken<'a, Puts>,
}

impl Stopped<'_> {
    /// How many puts were started.
    pub(crate) fn started(&self) -> u64 {
        self.puts.started
    }

    /// All that was started is complete: unmarks, unless something was marked since the mark was read.
    pub(crate) fn is_quiet(&self, mark: u32) {
        let _ = self.shortcut.unquiet.compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Says whether the way can be taken afterwards, if there is one.
    pub(crate) fn leave_open(&mut self, is_open: bool) {
        let exists = self.puts.prepared.is_some();
        self.puts.leave_open(exists && is_open);
    }
}
