//! Operations that are under way: those whose data arrive later, and requests to targets.
//!
//! Invariant: `is_any` is true, at each thread that knows of an operation, while a flush has more to do for
//! it than to wait for the network to be quiet.

use super::Window;
use super::request;
use crate::abi::*;
use crate::chapters::error::{Error, On, Result};
use crate::chapters::library::Mpi;
use crate::chapters::request::{Active, Operation, Outcome, started};
use pelago_core::base::awaited::Awaited;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::msg::request::RequestId;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// If requests that have not left have more bytes than this, further operations are system calls if possible.
const KEPT_MAX: u64 = 64 << 20;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An operation whose data arrive later.
pub struct Transfer {
    rank: usize,
    /// The number of the request that is replied to, if it is one.
    request: Option<u64>,
    /// Whether it brings data: else it only says that an operation is done at its target.
    brings_data: bool,
    state: Mutex<State>,
}

/// Treats the data that have arrived.
type Finish = Box<dyn FnOnce() + Send>;

enum State {
    /// Gets over the network.
    Counted(CompletionCounter, Finish),
    /// The reply to a request, whose length is known.
    Reply(RequestId, usize, Finish),
    Over(c_int),
    Moving,
}

impl Transfer {
    pub fn of_counter(rank: usize, counter: CompletionCounter, finish: Finish) -> Arc<Transfer> {
        let state = Mutex::new(State::Counted(counter, finish));
        Arc::new(Transfer { rank, request: None, brings_data: true, state })
    }

    /// The reply to a request, which has this number if it was noted.
    pub fn of_reply(
        (rank, request): (usize, Option<u64>),
        (id, bytes): (RequestId, usize),
        brings_data: bool,
        finish: Finish,
    ) -> Arc<Transfer> {
        let state = Mutex::new(State::Reply(id, bytes, finish));
        Arc::new(Transfer { rank, request, brings_data, state })
    }

    /// The class of its error, or `MPI_SUCCESS`, if it is over. Makes no progress on the network.
    pub fn poll(&self, mpi: &Mpi) -> Option<c_int> {
        let mut state = locked(&self.state);
        let (error, finish) = match std::mem::replace(&mut *state, State::Moving) {
            State::Counted(counter, finish) if counter.is_done() => {
                mpi.core.completions.release(counter);
                (MPI_SUCCESS, Some(finish))
            }
            State::Reply(id, bytes, finish) => match mpi.core.look(id) {
                Some(status) if status.bytes == bytes => (MPI_SUCCESS, Some(finish)),
                // The target has refused the request.
                Some(_) => (MPI_ERR_RMA_RANGE, None),
                None => {
                    *state = State::Reply(id, bytes, finish);
                    return None;
                }
            },
            State::Over(error) => (error, None),
            other => {
                *state = other;
                return None;
            }
        };
        if let Some(finish) = finish {
            finish();
        }
        *state = State::Over(error);
        Some(error)
    }
}

/// Transfers that are not known to be over, by the rank of their target and their address.
type Transfers = Mutex<BTreeMap<(usize, usize), Arc<Transfer>>>;

fn key(transfer: &Arc<Transfer>) -> (usize, usize) {
    (transfer.rank, Arc::as_ptr(transfer) as usize)
}

/// The requests to a target, and how many of them are known to be done: by a flush, or, from the first one on
/// without a gap, by their replies.
#[derive(Default)]
struct Asked {
    sent: AtomicU64,
    done: AtomicU64,
    /// The number of the last request without a reply.
    silent: AtomicU64,
}

/// The operations that are under way on a window.
pub struct Outstanding {
    /// The number of operations that a quiet network does not complete. Each is counted after it was put
    /// where a flush finds it, and before the call returns to the program.
    noted: AtomicU64,
    /// How many of them are known to be complete.
    settled: AtomicU64,
    /// Requests of the program, which may live longer than the window, have it as well.
    transfers: Arc<Transfers>,
    /// The requests that were sent, by rank.
    asked: Box<[Asked]>,
    /// Requests that have not left yet.
    sends: Mutex<Vec<(RequestId, Box<[u64]>)>>,
    /// Their bytes.
    kept: AtomicU64,
    tags: AtomicU32,
}

// SAFETY: the memory of a send belongs to it; transfers write where the program has promised room.
unsafe impl Send for Outstanding {}
// SAFETY: as for `Send`, for references as well.
unsafe impl Sync for Outstanding {}

impl Outstanding {
    pub fn new(n: usize) -> Outstanding {
        Outstanding {
            noted: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            transfers: Arc::default(),
            asked: (0..n).map(|_| Asked::default()).collect(),
            sends: Mutex::default(),
            kept: AtomicU64::new(0),
            tags: AtomicU32::new(0),
        }
    }

    #[inline(always)]
    pub fn is_any(&self) -> bool {
        // SYNC POINT window-settled: acquires the data of the operations that another thread has completed.
        self.noted.load(Ordering::Relaxed) != self.settled.load(Ordering::Acquire)
    }

    fn note(&self) {
        self.noted.fetch_add(1, Ordering::SeqCst);
    }

    /// A tag for a reply.
    pub fn tag(&self) -> u32 {
        request::FIRST_REPLY + self.tags.fetch_add(1, Ordering::Relaxed) % (1 << 30)
    }

    pub fn add(&self, transfer: &Arc<Transfer>) {
        locked(&self.transfers).insert(key(transfer), Arc::clone(transfer));
        self.note();
    }

    /// Keeps the memory of a request until it has left.
    pub fn keep(&self, send: Option<RequestId>, data: Box<[u64]>) {
        if let Some(id) = send {
            let mut sends = locked(&self.sends);
            self.kept.fetch_add(size_of_val(&*data) as u64, Ordering::Relaxed);
            sends.push((id, data));
            drop(sends);
            self.note();
        }
    }

    /// Frees the memory of requests that have left.
    fn drop_sent(&self, mpi: &Mpi) {
        let mut sends = locked(&self.sends);
        sends.retain(|&(id, _)| mpi.core.look(id).is_none());
        let bytes: usize = sends.iter().map(|(_, data)| size_of_val(&**data)).sum();
        self.kept.store(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the requests that have not left have more than [`KEPT_MAX`] bytes.
    pub fn is_full(&self, mpi: &Mpi) -> bool {
        let is_full = || self.kept.load(Ordering::Relaxed) > KEPT_MAX;
        is_full() && {
            self.drop_sent(mpi);
            is_full()
        }
    }

    /// Notes a request, which was sent. Returns its number.
    pub fn note_asked(&self, rank: usize, has_reply: bool) -> u64 {
        let asked = &self.asked[rank];
        let number = asked.sent.fetch_add(1, Ordering::SeqCst) + 1;
        if !has_reply {
            asked.silent.fetch_max(number, Ordering::SeqCst);
        }
        self.note();
        number
    }

    /// Whether requests without a reply were sent to a target that are not known to be done.
    fn has_silent(&self, rank: usize) -> bool {
        let asked = &self.asked[rank];
        asked.done.load(Ordering::SeqCst) < asked.silent.load(Ordering::SeqCst)
    }

    /// Notes that a transfer is over. Its request is done then. If all requests before it are, no flush need
    /// ask for it.
    fn note_over(&self, transfer: &Transfer) {
        if let Some(number) = transfer.request {
            let done = &self.asked[transfer.rank].done;
            let _ = done.compare_exchange(number - 1, number, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// How many requests were sent to a target, unless all of them are done.
    fn unflushed(&self, rank: usize) -> Option<u64> {
        let asked = &self.asked[rank];
        let sent = asked.sent.load(Ordering::SeqCst);
        (asked.done.load(Ordering::SeqCst) < sent).then_some(sent)
    }

    /// Whether requests to a target were sent that are not known to be done.
    pub fn has_asked(&self, rank: usize) -> bool {
        self.unflushed(rank).is_some()
    }

    /// Notes that nothing is under way, if that is so. Other threads may start operations meanwhile: they are
    /// counted later than `noted` was read, or found.
    fn settle(&self) {
        let noted = self.noted.load(Ordering::SeqCst);
        let is_idle = self.has_sent()
            && locked(&self.transfers).is_empty()
            && (0..self.asked.len()).all(|rank| self.unflushed(rank).is_none());
        if is_idle {
            // SYNC POINT window-settled: releases the data of the operations that are complete.
            self.settled.fetch_max(noted, Ordering::SeqCst);
        }
    }

    fn has_sent(&self) -> bool {
        locked(&self.sends).is_empty()
    }

    /// Waits until all requests have left.
    pub fn finish(&self, mpi: &Mpi) {
        let sends = std::mem::take(&mut *locked(&self.sends));
        for (id, _data) in sends {
            mpi.core.wait_for_message(id);
        }
    }

    /// The transfers of a target.
    fn of(&self, rank: usize) -> Vec<Arc<Transfer>> {
        locked(&self.transfers)
            .range((rank, 0)..(rank + 1, 0))
            .map(|(_, transfer)| Arc::clone(transfer))
            .collect()
    }

    /// Looks once whether transfers are over, from the last one on, and takes those that are off the list.
    /// `error` becomes that of a transfer that has failed. Transfers are polled without the lock: their ends
    /// may call into the runtime.
    fn poll(&self, mpi: &Mpi, transfers: &mut Vec<Arc<Transfer>>, error: &mut c_int) -> bool {
        self.drop_sent(mpi);
        while let Some(transfer) = transfers.last() {
            let Some(code) = transfer.poll(mpi) else { return false };
            self.note_over(transfer);
            // The thread that takes it away reports its error.
            let is_reported = locked(&self.transfers).remove(&key(transfer)).is_none();
            if code != MPI_SUCCESS && !is_reported {
                *error = code;
            }
            transfers.pop();
        }
        true
    }
}

impl Window {
    /// Completes the operations of this process on a target at this process: buffers may be used again.
    pub fn complete_locally(&self, mpi: &Mpi, rank: usize) -> Result {
        if !self.outstanding.is_any() {
            return Ok(());
        }
        let mut transfers = self.outstanding.of(rank);
        transfers.retain(|transfer| transfer.brings_data);
        self.wait_for(mpi, rank, transfers)
    }

    /// Waits for transfers of a target.
    fn wait_for(&self, mpi: &Mpi, rank: usize, mut transfers: Vec<Arc<Transfer>>) -> Result {
        let mut error = MPI_SUCCESS;
        let awaited = Awaited::Message { is_send: false, pe: Some(self.parts[rank].pe) };
        mpi.core.wait(awaited, || self.outstanding.poll(mpi, &mut transfers, &mut error));
        check(error, rank)
    }

    /// Completes the operations of this process on a target that are not complete when the network is quiet.
    pub fn complete(&self, mpi: &Mpi, rank: usize) -> Result {
        let completed = self.complete_at(mpi, rank);
        self.outstanding.settle();
        completed
    }

    /// Completes all operations of this process on the window at their targets.
    pub fn complete_all(&self, mpi: &Mpi) -> Result {
        mpi.core.quiet();
        if !self.outstanding.is_any() {
            return Ok(());
        }
        let completed = (0..self.len()).map(|rank| self.complete_at(mpi, rank)).fold(Ok(()), Result::and);
        self.outstanding.settle();
        completed
    }

    fn complete_at(&self, mpi: &Mpi, rank: usize) -> Result {
        // The reply to a flush comes behind all others.
        let flushed = if self.outstanding.has_silent(rank) { self.flush(mpi, rank) } else { Ok(()) };
        let arrived = self.wait_for(mpi, rank, self.outstanding.of(rank));
        arrived.and(flushed).and(self.flush(mpi, rank))
    }

    /// Waits until all requests to a target are done, if they are not known to be.
    fn flush(&self, mpi: &Mpi, rank: usize) -> Result {
        let Some(sent) = self.outstanding.unflushed(rank) else { return Ok(()) };
        // Another thread that flushes meanwhile sends a flush of its own: the requests are done only when the
        // reply to one that was sent after them has come.
        let flushed = request::flush(mpi, self, rank);
        self.outstanding.drop_sent(mpi);
        self.outstanding.asked[rank].done.fetch_max(sent, Ordering::SeqCst);
        check(flushed?, rank)
    }

    /// A request of the program for a transfer, or for an operation that is complete.
    pub fn give(&self, transfer: Option<Arc<Transfer>>, place: *mut MPI_Request) -> Result {
        let active = match transfer {
            None => Active::Done(Outcome::EMPTY),
            Some(transfer) => {
                Active::Other(Box::new(Waited(transfer, Arc::clone(&self.outstanding.transfers))))
            }
        };
        // SAFETY: the caller has checked the place.
        unsafe { place.write(started(active, On::Win(self.handle()))?) };
        Ok(())
    }
}

fn check(error: c_int, rank: usize) -> Result {
    match error {
        MPI_SUCCESS => Ok(()),
        _ => Err(Error::new(
            error,
            format!("rank {rank} has refused an operation: it has not attached the memory at that address"),
        )),
    }
}

/// A transfer that the program waits for, and those of its window.
struct Waited(Arc<Transfer>, Arc<Transfers>);

impl Operation for Waited {
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        let Waited(transfer, all) = self;
        let mut over = transfer.poll(mpi);
        if over.is_none() {
            mpi.core.progress();
            over = transfer.poll(mpi);
        }
        let error = over?;
        // A flush has nothing more to do for it, and reports its error no more.
        locked(all).remove(&key(transfer));
        Some(Outcome { error, ..Outcome::EMPTY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: u64) -> Arc<Transfer> {
        let state = Mutex::new(State::Over(MPI_SUCCESS));
        Arc::new(Transfer { rank: 1, request: Some(number), brings_data: true, state })
    }

    #[test]
    fn a_flush_asks_only_for_requests_that_are_not_known_to_be_done() {
        let all = Outstanding::new(2);
        let ask = |has_reply| all.note_asked(1, has_reply);
        assert_eq!((ask(true), ask(true)), (1, 2));
        assert!(!all.has_silent(1) && all.has_asked(1) && !all.has_asked(0));
        all.note_over(&reply(1));
        assert_eq!(all.unflushed(1), Some(2));
        all.note_over(&reply(2));
        assert_eq!(all.unflushed(1), None, "both have had a reply");
        // A reply says nothing of an error of the silent request before it.
        assert_eq!((ask(false), ask(true)), (3, 4));
        all.note_over(&reply(4));
        assert!(all.has_silent(1));
        assert_eq!(all.unflushed(1), Some(4));
        all.asked[1].done.store(4, Ordering::SeqCst);
        assert!(!all.has_silent(1) && !all.has_asked(1));
        // Replies whose order is lost leave the work to a flush.
        assert_eq!((ask(true), ask(true)), (5, 6));
        all.note_over(&reply(6));
        all.note_over(&reply(5));
        assert_eq!((all.unflushed(1), all.has_silent(1)), (Some(6), false));
    }
}
