//! The shortest way of a put of one element or a short get over the net: it waits for no lock, and the
//! provider's call is prepared. Whatever is out of the ordinary takes the channel's way.
//!
//! Invariant: what comes this way is counted, and the mark set, under the lock and before it can be complete;
//! so who has the lock knows of all that has. A get comes this way only if nothing else is under way.

use crate::Pe;
use crate::route::{Route, Routes};
use pelago_fabric::shm::segment::Failure;
use pelago_fabric::sync::{AtomicBool, AtomicU64, Ordering};
use pelago_fabric::trylock::{Taken, TryLock};
use pelago_fabric::unquiet::Unquiet;
use pelago_fabric::{Key, Net, PreparedGet, PreparedPut, Provider, Spot};
use std::pin::Pin;
use std::ptr::null;

/// In the place of an address: another way leads to this PE.
const ELSEWHERE: u64 = u64::MAX;

/// Looks, each about a round of the provider's progress, after which a get goes on by the channel's way.
const LOOKS: u32 = 64;
/// Longer gets come by the channel.
const SHORT_BYTES: usize = 4096;
/// Looks after which it is time to serve other PEs.
const LOOKS_PER_SERVICE: u32 = 128;

/// The shortcut, one a channel; closed for ever where the provider has none.
pub(crate) struct Shortcut {
    /// The address of each PE that is reached over the net, if the memory of all has the same key and begins
    /// at 0. The entries of all other PEs are [`ELSEWHERE`].
    addresses: Box<[u64]>,
    /// Where the memory of each PE is that is reached over the net.
    peers: Box<[Option<Spot>]>,
    /// Of the job; read by puts only, which whoever has the node's memory starts.
    failure: *const Failure,
    unquiet: Unquiet,
    /// Bytes of the longest get that comes this way; 0 if none does.
    get_bytes: usize,
    /// Gets, and atomics that fetch, that the channel has started.
    channel_gets: AtomicU64,
    /// Whether a thread of this PE has made progress, here or at the channel, since somebody asked.
    has_looked: AtomicBool,
    inside: TryLock<Inside>,
}

// SAFETY: the failure is a record of atomics, read while the node's memory is there; the rest is `Sync`.
unsafe impl Sync for Shortcut {}
// SAFETY: the failure is a record of atomics, read while the node's memory is there; the rest is `Send`.
unsafe impl Send for Shortcut {}

/// What is prepared, and how much has come this way.
pub(crate) struct Inside {
    puts: u64,
    gets: u64,
    put: Option<PreparedPut>,
    /// Only if there is a put.
    get: Option<PreparedGet>,
    /// For ever: nothing is dropped, as a get that was given up may still be under way.
    is_closed: bool,
    /// Where the last put comes from, for the case that it is not taken.
    origin: *const (),
    /// Looks since other PEs were served.
    looks: u32,
    /// The puts and the mark as they are at the next get that does not come this way, if nothing but this one
    /// is started until then.
    at_next_get: (u64, u32),
}

impl Inside {
    fn new(put: Option<PreparedPut>, get: Option<PreparedGet>) -> Inside {
        Inside { puts: 0, gets: 0, put, get, is_closed: false, origin: null(), looks: 0, at_next_get: (0, 0) }
    }
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

/// What became of a get.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    /// It is there.
    Here,
    /// The same, and other PEs wait to be served.
    HereAndDue,
    /// It is under way, and there when the channel is quiet.
    UnderWay,
    /// It has to take another way.
    NotStarted,
    /// The same, because something was started since the last quiet, but only gets since the last get: they
    /// will come this way if the channel is quiet now.
    NotMarkedAnew,
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
    /// A shortcut that leads to none of the job's `n_pes` PEs. It only keeps the mark.
    pub(crate) fn none(n_pes: usize) -> Shortcut {
        Shortcut {
            addresses: vec![ELSEWHERE; n_pes].into(),
            peers: vec![None; n_pes].into(),
            failure: null(),
            unquiet: Unquiet::default(),
            get_bytes: 0,
            channel_gets: AtomicU64::new(0),
            has_looked: AtomicBool::new(false),
            inside: TryLock::closed(Inside::new(None, None)),
        }
    }

    /// The shortcut over this net to the PEs of the job, if there is one; to be opened where it is to stay.
    /// The record of the job's failure is there whenever something is put.
    pub(crate) fn prepare(net: &Net, key: Key, routes: &Routes, failure: &Failure) -> Shortcut {
        let Some((put, spots)) = net.prepared_put(key) else {
            return Shortcut::none(routes.len());
        };
        let peer = |(pe, &spot)| (routes.to(pe) == Route::Net).then_some(spot);
        let peers: Box<[Option<Spot>]> = spots.iter().enumerate().map(peer).collect();
        // All or none, as the prepared put keeps the last key.
        let is_common = spots.iter().all(|spot| spot.key == spots[0].key && spot.start == 0);
        let address = |peer: &Option<Spot>| match peer {
            Some(spot) if is_common => spot.address,
            _ => ELSEWHERE,
        };
        let addresses = peers.iter().map(address).collect();
        let get = net.prepared_get(key).filter(|_| is_common);
        let get_bytes = get.as_ref().map_or(0, |_| SHORT_BYTES.min(net.limits().transfer_bytes));
        let inside = TryLock::closed(Inside::new(Some(put), get));
        Shortcut { addresses, peers, failure, get_bytes, inside, ..Shortcut::none(0) }
    }

    /// The number of PEs of the job.
    pub(crate) fn n_pes(&self) -> usize {
        self.addresses.len()
    }

    /// Opens it, if there is one.
    ///
    /// # Safety
    /// It is not moved any more.
    pub(crate) unsafe fn open(&self) {
        let mut inside = self.inside.wait();
        if let Some(get) = &mut inside.get {
            // SAFETY: the caller has promised that it stays.
            unsafe { Pin::new_unchecked(get) }.settle();
        }
        if let Some(put) = &mut inside.put {
            // SAFETY: the caller has promised that it stays.
            unsafe { Pin::new_unchecked(put) }.settle();
            inside.leave_open(true);
        }
    }

    /// Puts one element of 1, 2, 4 or 8 bytes, if nothing stands in the way. `origin` comes back if the
    /// provider refuses it.
    ///
    /// # Safety
    /// There is such a PE of the job, and the element lies in the heap of each.
    #[inline(always)]
    pub(crate) unsafe fn put<T: Copy>(
        &self,
        pe: Pe,
        offset_bytes: usize,
        value: T,
        origin: *const (),
    ) -> Outcome {
        // SAFETY: the table has an entry for each PE, and the caller has promised that `pe` is one.
        let address = unsafe { *self.addresses.get_unchecked(pe) };
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

    /// Where the memory of a PE is, if it is reached over the net and the job has not failed; to be asked
    /// when the outcome was [`Outcome::Elsewhere`].
    pub(crate) fn peer(&self, pe: Pe) -> Option<Spot> {
        self.peers[pe].filter(|_| !self.has_failed())
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
        let Some(mut inside) = self.inside.enter() else { return Outcome::NotStarted };
        self.unquiet.by_shortcut();
        inside.puts += 1;
        inside.origin = origin;
        // SAFETY: what is open has a settled put, whose endpoint is open until `close`; the caller vouches
        // for the element.
        let is_started = unsafe {
            let put = inside.put.as_mut().unwrap_unchecked();
            put.start(address, key, place, value)
        };
        if !is_started {
            // It stays taken until `refused` has read what is there.
            std::mem::forget(inside);
            return Outcome::Refused(Kept(()));
        }
        Outcome::Started
    }

    /// Gets a few bytes, at least one, if nothing stands in the way, and nothing was started since the last
    /// quiet: then the provider's count alone says when they are there.
    ///
    /// # Safety
    /// There is such a PE of the job, and the bytes lie in the heap of each. `into` is valid for writes until
    /// they are there. This thread may wait.
    pub(crate) unsafe fn get(&self, pe: Pe, offset_bytes: usize, into: *mut u8, bytes: usize) -> Got {
        // SAFETY: the table has an entry for each PE, and the caller has promised that `pe` is one.
        let address = unsafe { *self.addresses.get_unchecked(pe) };
        if address == ELSEWHERE || bytes.wrapping_sub(1) >= self.get_bytes || self.has_failed() {
            return Got::NotStarted;
        }
        let Some(mut inside) = self.inside.enter() else { return Got::NotStarted };
        let Inside { gets, get: Some(get), looks, .. } = &mut *inside else { return Got::NotStarted };
        if !self.unquiet.begin_alone() {
            return self.not_alone(&mut inside);
        }
        // What was counted before the mark was 0 is complete. Who counts now marks next, before it starts
        // anything: it is found out below, or has this one wait for the channel.
        let all = self.channel_gets.load(Ordering::Relaxed) + *gets + 1;
        // SAFETY: what is open is settled, and its endpoint open until `close`; the caller vouches for the
        // rest; the lock is let go only when it is complete, or with the mark, which keeps others out.
        if !unsafe { get.start((pe, address), offset_bytes as u64, into, bytes) } {
            self.unquiet.end_alone();
            return Got::NotStarted;
        }
        *gets += 1;
        self.has_looked.store(true, Ordering::Relaxed);
        for look in 0..LOOKS {
            // SAFETY: the endpoint is open, as above.
            if unsafe { get.completed() } < all {
                continue;
            }
            *looks += 1 + look;
            let is_due = *looks >= LOOKS_PER_SERVICE;
            *looks = if is_due { 0 } else { *looks };
            return match (self.unquiet.end_alone(), is_due) {
                (false, _) => Got::UnderWay,
                (true, false) => Got::Here,
                (true, true) => Got::HereAndDue,
            };
        }
        Got::UnderWay
    }

    /// What becomes of a get that is not alone: it takes the channel's way.
    #[cold]
    #[inline(never)]
    fn not_alone(&self, inside: &mut Inside) -> Got {
        let (mark, expected) = (self.unquiet.read(), inside.at_next_get);
        inside.at_next_get = (inside.puts, Unquiet::after_one_by_channel(mark));
        if expected == (inside.puts, mark) { Got::NotMarkedAnew } else { Got::NotStarted }
    }

    /// What was put, of so many bytes, when the answer was [`Outcome::Refused`].
    pub(crate) fn refused(&self, _kept: Kept, bytes: usize) -> Refused {
        // SAFETY: who has been told to keep the lock has it, and says so once.
        let mut inside = unsafe { self.inside.kept() };
        inside.puts -= 1;
        let put = inside.put.as_ref().expect("a put was prepared, as one was refused");
        let (origin, (last, place, value)) = (inside.origin, put.last(bytes));
        drop(inside);
        let start = |peer: &Option<Spot>| peer.filter(|spot| spot.address == last).map(|spot| spot.start);
        let found = self.peers.iter().enumerate().find_map(|(pe, peer)| Some((pe, start(peer)?)));
        let (pe, start) = found.expect("it was one of these");
        Refused { origin, pe, offset_bytes: (place - start) as usize, value }
    }

    /// Whether something was started since the last quiet; the channel marks what it starts.
    pub(crate) fn unquiet(&self) -> &Unquiet {
        &self.unquiet
    }

    /// Gets, and atomics that fetch, that the channel has started.
    pub(crate) fn channel_gets(&self) -> &AtomicU64 {
        &self.channel_gets
    }

    /// Whether a thread of this PE has made progress, here or at the channel, since somebody asked.
    pub(crate) fn has_looked(&self) -> &AtomicBool {
        &self.has_looked
    }

    /// Keeps everybody from this way until the answer is dropped.
    pub(crate) fn stop(&self) -> Stopped<'_> {
        Stopped { inside: self.inside.wait() }
    }

    /// Closes it for ever: the endpoint may be closed afterwards.
    pub(crate) fn close(&self) {
        self.inside.wait().is_closed = true;
    }
}

/// A shortcut that nobody can take now.
pub(crate) struct Stopped<'a> {
    inside: Taken<'a, Inside>,
}

impl Stopped<'_> {
    /// How many puts were started this way.
    pub(crate) fn puts(&self) -> u64 {
        self.inside.puts
    }

    /// How many gets were started this way.
    pub(crate) fn gets(&self) -> u64 {
        self.inside.gets
    }

    /// Says whether it can be taken afterwards, if there is one.
    pub(crate) fn leave_open(&mut self, is_open: bool) {
        let exists = self.inside.put.is_some() && !self.inside.is_closed;
        self.inside.leave_open(exists && is_open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pe_is_reached_once_the_job_has_failed() {
        let outcome = crate::spmd(1, |world| {
            let failure = &raw const world.memory.header().failure;
            let peers = Box::new([Some(Spot { address: 0, key: 0, start: 0 })]);
            let shortcut = Shortcut { addresses: Box::new([ELSEWHERE]), peers, failure, ..Shortcut::none(0) };
            // SAFETY: nothing is put, as the PE's memory has a key of its own.
            let outcome = unsafe { shortcut.put(0, 0, 1_u64, null()) };
            assert!(matches!((outcome, shortcut.peer(0)), (Outcome::Elsewhere, Some(_))));
            world.record_failure("on purpose");
            assert!(shortcut.peer(0).is_none());
        });
        assert!(outcome.unwrap_err().to_string().contains("on purpose"));
    }
}
