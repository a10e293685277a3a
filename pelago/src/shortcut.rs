//! The shortest way of a put of one element over the net: it waits for no lock, and the provider's call is
//! prepared. Whatever is out of the ordinary takes the channel's way.
//!
//! Invariant: a put is counted, and the mark set, under the lock and before it can be complete; so who has
//! the lock knows of all puts that have come this way. The mark is taken away under this lock and the
//! channel's only, when all that is counted is complete.

use crate::Pe;
use crate::route::{Route, Routes};
use pelago_fabric::shm::segment::Failure;
use pelago_fabric::sync::{AtomicU32, Ordering};
use pelago_fabric::trylock::{Taken, TryLock};
use pelago_fabric::{Key, Net, PreparedPut, Provider, Spot};
use std::pin::Pin;
use std::ptr::null;

/// In the place of an address: another way leads to this PE.
const ELSEWHERE: u64 = u64::MAX;

/// Marks of what was started since the last quiet: by the shortcut, by the channel, and one for each that the
/// channel has started.
const BY_SHORTCUT: u32 = 1;
const BY_CHANNEL: u32 = 2;
const ONE_BY_CHANNEL: u32 = 4;

/// The shortcut, one a channel; closed for ever where the provider has none.
pub(crate) struct Shortcut {
    /// The address of each PE that is reached over the net, if all memory has the same key and begins at 0;
    /// of nobody, if there is no shortcut.
    addresses: Box<[u64]>,
    /// How each PE is reached.
    peers: Box<[Peer]>,
    /// Of the job; read by puts only, which whoever has the node's memory starts.
    failure: *const Failure,
    /// Not 0 if something was started since the last quiet.
    unquiet: AtomicU32,
    puts: TryLock<Puts>,
}

// SAFETY: the failure is a record of atomics, read while the node's memory is there; the rest is `Sync`.
unsafe impl Sync for Shortcut {}
// SAFETY: the failure is a record of atomics, read while the node's memory is there; the rest is `Send`.
unsafe impl Send for Shortcut {}

/// How a PE is reached.
#[derive(Clone, Copy)]
pub(crate) enum Peer {
    /// Its memory is mapped here.
    Mapped,
    /// Over the net.
    Net(Spot),
}

/// The puts that have come this way.
pub(crate) struct Puts {
    started: u64,
    prepared: Option<PreparedPut>,
    /// Where the last put comes from, for the case that it is not taken.
    origin: *const (),
}

/// What became of a put.
#[must_use]
pub(crate) enum Outcome {
    /// It is started, and the source is free.
    Started,
    /// It is not, and has to take the channel's way.
    NotStarted,
    /// The same, and nothing else can be put before [`Shortcut::refused`] was asked what it was.
    Refused(Kept),
    /// There is such a PE, and [`Shortcut::peer`] knows how it is reached.
    Elsewhere,
}

/// The lock, which is kept.
pub(crate) struct Kept(());

/// A put that the provider did not take.
pub(crate) struct Refused {
    pub(crate) origin: *const (),
    pub(crate) pe: Pe,
    pub(crate) offset_bytes: usize,
    /// The value, from the first byte on.
    pub(crate) value: [u8; 8],
}

impl Shortcut {
    /// None: it only keeps the mark.
    pub(crate) fn none() -> Shortcut {
        let puts = Puts { started: 0, prepared: None, origin: null() };
        Shortcut {
            addresses: Box::default(),
            peers: Box::default(),
            failure: null(),
            unquiet: AtomicU32::new(0),
            puts: TryLock::closed(puts),
        }
    }

    /// The shortcut over this net to the PEs of the job, if there is one; to be opened where it is to stay.
    /// The record of the job's failure is there whenever something is put.
    pub(crate) fn prepare(net: &Net, key: Key, routes: &Routes, failure: &Failure) -> Shortcut {
        let Some((prepared, spots)) = net.prepared_put(key) else { return Shortcut::none() };
        let peer = |(pe, &spot)| match routes.to(pe) {
            Route::Mapped => Peer::Mapped,
            Route::Net => Peer::Net(spot),
        };
        let peers: Box<[Peer]> = spots.iter().enumerate().map(peer).collect();
        // All or none, as the prepared put keeps the last key.
        let is_common = spots.iter().all(|spot| spot.key == key && spot.start == 0);
        let address = |peer: &Peer| match peer {
            Peer::Net(spot) if is_common => spot.address,
            _ => ELSEWHERE,
        };
        let addresses = peers.iter().map(address).collect();
        let puts = Puts { started: 0, prepared: Some(prepared), origin: null() };
        Shortcut { addresses, peers, failure, puts: TryLock::closed(puts), ..Shortcut::none() }
    }

    /// Opens it, if there is one.
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

    /// Puts one element of 1, 2, 4 or 8 bytes, if nothing stands in the way. `origin` comes back if the
    /// provider refuses it.
    ///
    /// # Safety
    /// The element lies in the heap of each PE of the job.
    #[inline(always)]
    pub(crate) unsafe fn put<T: Copy>(
        &self,
        pe: Pe,
        offset_bytes: usize,
        value: T,
        origin: *const (),
    ) -> Outcome {
        let Some(&address) = self.addresses.get(pe) else { return Outcome::NotStarted };
        if address == ELSEWHERE {
            return Outcome::Elsewhere;
        }
        // SAFETY: the caller vouches for the element; memory with the common key is reached by offsets.
        unsafe { self.start((address, None), offset_bytes as u64, value, origin) }
    }

    /// The same to a PE whose spot is given.
    ///
    /// # Safety
    /// As there; the spot is the PE's.
    pub(crate) unsafe fn put_to<T: Copy>(
        &self,
        spot: Spot,
        offset_bytes: usize,
        value: T,
        origin: *const (),
    ) -> Outcome {
        let Spot { address, key, start } = spot;
        // SAFETY: the caller vouches for the element and the spot.
        unsafe { self.start((address, Some(key)), start + offset_bytes as u64, value, origin) }
    }

    /// How a PE is reached, if the job has not failed; to be asked when the answer was
    /// [`Outcome::Elsewhere`].
    pub(crate) fn peer(&self, pe: Pe) -> Option<Peer> {
        (!self.has_failed()).then(|| self.peers[pe])
    }

    #[inline(always)]
    fn has_failed(&self) -> bool {
        // SAFETY: where there are PEs to put to, the record is there.
        unsafe { (*self.failure).is_recorded() }
    }

    /// Starts a put to a place, as the provider addresses it.
    ///
    /// # Safety
    /// As [`PreparedPut::start`], but for the state of the prepared put.
    #[inline(always)]
    unsafe fn start<T: Copy>(
        &self,
        (address, key): (u64, Option<u64>),
        place: u64,
        value: T,
        origin: *const (),
    ) -> Outcome {
        if self.has_failed() {
            return Outcome::NotStarted;
        }
        let Some(mut puts) = self.puts.enter() else { return Outcome::NotStarted };
        self.unquiet.fetch_or(BY_SHORTCUT, Ordering::Relaxed);
        puts.started += 1;
        puts.origin = origin;
        // SAFETY: what is open has a settled put, whose endpoint is open until `close`; the caller vouches
        // for the element.
        let is_started = unsafe {
            let prepared = puts.prepared.as_mut().unwrap_unchecked();
            prepared.start(address, key, place, value)
        };
        if !is_started {
            // It stays taken until `refused` has read what is there.
            std::mem::forget(puts);
            return Outcome::Refused(Kept(()));
        }
        Outcome::Started
    }

    /// What was put, of so many bytes, when the answer was [`Outcome::Refused`].
    pub(crate) fn refused(&self, _kept: Kept, bytes: usize) -> Refused {
        // SAFETY: who has been told to keep the lock has it, and says so once.
        let mut puts = unsafe { self.puts.kept() };
        puts.started -= 1;
        let prepared = puts.prepared.as_ref().expect("a put was prepared, as one was refused");
        let (origin, (last, place, value)) = (puts.origin, prepared.last(bytes));
        drop(puts);
        let start = |peer: &Peer| match peer {
            Peer::Net(spot) if spot.address == last => Some(spot.start),
            _ => None,
        };
        let found = self.peers.iter().enumerate().find_map(|(pe, peer)| Some((pe, start(peer)?)));
        let (pe, start) = found.expect("it was one of these");
        Refused { origin, pe, offset_bytes: (place - start) as usize, value }
    }

    /// Marks that the channel starts something, once it is counted and before it is started.
    pub(crate) fn mark(&self) {
        // SYNC POINT mark: releases the count of what is started.
        let before = self.unquiet.fetch_add(ONE_BY_CHANNEL, Ordering::Release);
        if before & BY_CHANNEL == 0 {
            // Not 0, however many there are.
            self.unquiet.fetch_or(BY_CHANNEL, Ordering::Relaxed);
        }
    }

    /// Not 0 if something was started since the last quiet: there is nothing to wait for as long as it is 0.
    pub(crate) fn unquiet(&self) -> &AtomicU32 {
        &self.unquiet
    }

    /// Keeps everybody from putting anything this way until the answer is dropped.
    pub(crate) fn stop(&self) -> Stopped<'_> {
        Stopped { shortcut: self, puts: self.puts.wait() }
    }

    /// Closes it for ever: the endpoint may be closed afterwards.
    pub(crate) fn close(&self) {
        self.puts.wait().prepared = None;
    }
}

/// A shortcut that nobody can take now.
pub(crate) struct Stopped<'a> {
    shortcut: &'a Shortcut,
    puts: Taken<'a, Puts>,
}

impl Stopped<'_> {
    /// The mark as it is now: to be read before the channel's counts.
    pub(crate) fn mark(&self) -> u32 {
        // SYNC POINT mark: acquires the counts of what was started.
        self.shortcut.unquiet.load(Ordering::Acquire)
    }

    /// How many puts were started.
    pub(crate) fn started(&self) -> u64 {
        self.puts.started
    }

    /// Takes the mark away, as all that was counted is complete, unless it has changed since it was read. For
    /// who also has the channel's lock.
    pub(crate) fn unmark(&self, mark: u32) {
        // SYNC POINT unquiet: releases what has come to be known as complete.
        let _ = self.shortcut.unquiet.compare_exchange(mark, 0, Ordering::Release, Ordering::Relaxed);
    }

    /// Says whether it can be taken afterwards, if there is one.
    pub(crate) fn leave_open(&mut self, is_open: bool) {
        let exists = self.puts.prepared.is_some();
        self.puts.leave_open(exists && is_open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pe_is_reached_once_the_job_has_failed() {
        let outcome = crate::spmd(1, |world| {
            let failure = &raw const world.memory.header().failure;
            let peers = Box::new([Peer::Mapped]);
            let shortcut = Shortcut { addresses: Box::new([ELSEWHERE]), peers, failure, ..Shortcut::none() };
            // SAFETY: nothing is put, as the PE is mapped.
            let outcome = unsafe { shortcut.put(0, 0, 1_u64, null()) };
            assert!(matches!((outcome, shortcut.peer(0)), (Outcome::Elsewhere, Some(Peer::Mapped))));
            world.record_failure("on purpose");
            assert!(shortcut.peer(0).is_none());
        });
        assert!(outcome.unwrap_err().to_string().contains("on purpose"));
    }

    #[test]
    fn marks_stay_however_many_there_are() {
        let shortcut = Shortcut::none();
        shortcut.unquiet.store(u32::MAX - ONE_BY_CHANNEL + 1 + BY_CHANNEL, Ordering::Relaxed);
        shortcut.mark();
        let stopped = shortcut.stop();
        assert_eq!(stopped.mark(), BY_CHANNEL, "the count begins anew, the mark does not");
        shortcut.mark();
        stopped.unmark(BY_CHANNEL);
        assert_eq!(stopped.mark(), BY_CHANNEL + ONE_BY_CHANNEL, "something was started meanwhile");
        stopped.unmark(BY_CHANNEL + ONE_BY_CHANNEL);
        assert_eq!(stopped.mark(), 0);
    }
}
