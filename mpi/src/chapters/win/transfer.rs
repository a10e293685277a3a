//! Operations that are under way: those whose data arrive later, and requests to targets.
//!
//! Invariant: `any` is set whenever a flush has more to do than to wait for the network to be quiet.

use super::Window;
use super::request;
use crate::abi::*;
use crate::chapters::error::{Error, On, Result};
use crate::chapters::library::Mpi;
use crate::chapters::request::{Active, Operation, Outcome, started};
use pelago_core::base::awaited::Awaited;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::msg::request::RequestId;
use pelago_fabric::sync::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An operation whose data arrive later.
pub struct Transfer {
    rank: usize,
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
        Arc::new(Transfer { rank, state: Mutex::new(State::Counted(counter, finish)) })
    }

    pub fn of_reply(rank: usize, id: RequestId, bytes: usize, finish: Finish) -> Arc<Transfer> {
        Arc::new(Transfer { rank, state: Mutex::new(State::Reply(id, bytes, finish)) })
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

/// The operations that are under way on a window.
pub struct Outstanding {
    any: AtomicBool,
    transfers: Mutex<Vec<Arc<Transfer>>>,
    /// Whether requests without a reply were sent to a target since the last flush, by rank.
    asked: Box<[AtomicBool]>,
    /// Requests that have not left yet.
    sends: Mutex<Vec<(RequestId, Box<[u64]>)>>,
    tags: AtomicU32,
}

// SAFETY: the memory of a send belongs to it; transfers write where the program has promised room.
unsafe impl Send for Outstanding {}
// SAFETY: as for `Send`, for references as well.
unsafe impl Sync for Outstanding {}

impl Outstanding {
    pub fn new(n: usize) -> Outstanding {
        Outstanding {
            any: AtomicBool::new(false),
            transfers: Mutex::default(),
            asked: (0..n).map(|_| AtomicBool::new(false)).collect(),
            sends: Mutex::default(),
            tags: AtomicU32::new(0),
        }
    }

    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// A tag for a reply.
    pub fn tag(&self) -> u32 {
        request::FIRST_REPLY + self.tags.fetch_add(1, Ordering::Relaxed) % (1 << 30)
    }

    pub fn add(&self, transfer: &Arc<Transfer>) {
        self.any.store(true, Ordering::Relaxed);
        locked(&self.transfers).push(Arc::clone(transfer));
    }

    /// Keeps the memory of a request until it has left.
    pub fn keep(&self, send: Option<RequestId>, data: Box<[u64]>) {
        if let Some(id) = send {
            self.any.store(true, Ordering::Relaxed);
            locked(&self.sends).push((id, data));
        }
    }

    /// Notes a request without a reply.
    pub fn note_asked(&self, rank: usize) {
        self.any.store(true, Ordering::Relaxed);
        self.asked[rank].store(true, Ordering::Relaxed);
    }

    /// Clears the mark if nothing is under way.
    fn settle(&self) {
        self.any.store(false, Ordering::SeqCst);
        let is_idle = self.has_sent()
            && locked(&self.transfers).is_empty()
            && !self.asked.iter().any(|asked| asked.load(Ordering::SeqCst));
        if !is_idle {
            self.any.store(true, Ordering::SeqCst);
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

    /// Looks once whether all transfers of a target, and all sends, are over. `error` becomes that of a
    /// transfer that has failed.
    fn poll(&self, mpi: &Mpi, rank: usize, error: &mut c_int) -> bool {
        locked(&self.sends).retain(|&(id, _)| mpi.core.look(id).is_none());
        // The transfers are polled without the lock: their ends may call into the runtime.
        let mine: Vec<_> =
            locked(&self.transfers).iter().filter(|transfer| transfer.rank == rank).cloned().collect();
        let mut are_over = true;
        for transfer in mine {
            match transfer.poll(mpi) {
                None => are_over = false,
                Some(code) => {
                    *error = if code == MPI_SUCCESS { *error } else { code };
                    locked(&self.transfers).retain(|other| !Arc::ptr_eq(other, &transfer));
                }
            }
        }
        are_over
    }
}

impl Window {
    /// Completes the operations of this process on a target at this process: buffers may be used again.
    pub fn complete_locally(&self, mpi: &Mpi, rank: usize) -> Result {
        if !self.outstanding.is_any() {
            return Ok(());
        }
        let mut error = MPI_SUCCESS;
        let awaited = Awaited::Message { is_send: false, pe: Some(self.parts[rank].pe) };
        mpi.core.wait(awaited, || self.outstanding.poll(mpi, rank, &mut error));
        check(error, rank)
    }

    /// Completes the operations of this process on a target that are not complete when the network is quiet.
    pub fn complete(&self, mpi: &Mpi, rank: usize) -> Result {
        let arrived = self.complete_locally(mpi, rank);
        let done = match self.outstanding.asked[rank].swap(false, Ordering::Relaxed) {
            true => request::flush(mpi, self, rank).and_then(|error| check(error, rank)),
            false => Ok(()),
        };
        self.outstanding.settle();
        arrived.and(done)
    }

    /// A request of the program for a transfer, or for an operation that is complete.
    pub fn give(&self, transfer: Option<Arc<Transfer>>, place: *mut MPI_Request) -> Result {
        let active = match transfer {
            None => Active::Done(Outcome::EMPTY),
            Some(transfer) => Active::Other(Box::new(Waited(transfer))),
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

/// A transfer that the program waits for.
struct Waited(Arc<Transfer>);

impl Operation for Waited {
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        let mut over = self.0.poll(mpi);
        if over.is_none() {
            mpi.core.progress();
            over = self.0.poll(mpi);
        }
        over.map(|error| Outcome { error, ..Outcome::EMPTY })
    }
}
