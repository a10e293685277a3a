//! The epochs of a window at this process: which parts it may access, and to whom its own is exposed.
//!
//! Invariant: at most one kind of access epoch is open. The flags that operations look at (`Record::is_open`,
//! `Part::is_open`) are set only while the epoch permits the access.

use super::lock::{self, Hold};
use super::{Window, part::Part};
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::Mpi;
use pelago_core::base::awaited::Awaited;
use pelago_core::msg::operation::Started;
use pelago_core::msg::request::RequestId;
use pelago_fabric::sync::Ordering;
use std::collections::HashMap;

/// The parts that this process may access.
#[derive(Default)]
pub enum Access {
    #[default]
    None,
    /// All parts, until the next fence or another epoch.
    Fence,
    /// The parts of a group, each from the moment when its process has posted.
    Start(Vec<Token>),
    /// The parts whose locks it holds.
    Locks,
    /// All parts. Locks of parts that loads and stores do not reach are taken at the first access.
    LockAll(Hold),
}

/// A message without data that is awaited from the process with a rank, or was received.
pub struct Token {
    pub rank: usize,
    /// The receive, until a thread waits for it.
    pub receive: Option<RequestId>,
}

#[derive(Default)]
pub struct Epoch {
    pub access: Access,
    /// The processes that this one's part is exposed to, and their messages at the end.
    pub exposure: Option<Vec<Token>>,
    pub locks: HashMap<usize, Hold>,
    /// How many locks of `MPI_PROC_NULL` it holds. They keep nobody out.
    pub proc_null_locks: usize,
}

impl Access {
    pub fn name(&self) -> &'static str {
        match self {
            Access::None => "no epoch",
            Access::Fence => "an epoch of MPI_Win_fence",
            Access::Start(_) => "an epoch of MPI_Win_start",
            Access::Locks => "an epoch of MPI_Win_lock",
            Access::LockAll(_) => "an epoch of MPI_Win_lock_all",
        }
    }
}

impl Epoch {
    /// Refuses a call that begins an access epoch while another one is open.
    pub fn check_may_begin(&self, call: &str) -> Result {
        ensure!(
            matches!(self.access, Access::None | Access::Fence),
            MPI_ERR_RMA_SYNC,
            "{call} within {}. End that one first",
            self.access.name()
        );
        Ok(())
    }

    /// Whether a call of `MPI_Win_lock` has no counterpart yet.
    pub fn has_locks(&self) -> bool {
        self.proc_null_locks > 0 || !self.locks.is_empty()
    }
}

/// The receive of a message without data from a process.
pub fn expect(mpi: &Mpi, window: &Window, rank: usize, tag: u32) -> Token {
    let pattern = window.pattern(rank, tag);
    // SAFETY: the message has no data, so that the place is not written.
    let started = unsafe { mpi.core.start_receive(pattern, (std::ptr::dangling_mut(), 0)) };
    let receive = match started {
        Started::Done(_) => None,
        Started::Pending(id) => Some(id),
    };
    Token { rank, receive }
}

impl Token {
    /// Waits for the message.
    pub fn wait(&mut self, mpi: &Mpi) {
        if let Some(id) = self.receive.take() {
            mpi.core.wait_for_message(id);
        }
    }

    /// Whether the message has come.
    pub fn test(&mut self, mpi: &Mpi) -> bool {
        if let Some(id) = self.receive
            && mpi.core.test_message(id).is_some()
        {
            self.receive = None;
        }
        self.receive.is_none()
    }
}

impl Window {
    /// The part of a target to which an operation may be started now.
    #[inline]
    pub fn admit(&self, mpi: &Mpi, rank: usize) -> Result<&Part> {
        let part = &self.parts[rank];
        // SYNC POINT window-post: acquires the memory of the target, if another thread has awaited it.
        if part.is_open.load(Ordering::Acquire) {
            return Ok(part);
        }
        if self.record.is_open.load(Ordering::Relaxed) {
            if part.base.is_null() && self.record.is_passive.load(Ordering::Relaxed) {
                self.lock_late(mpi, rank);
            }
            return Ok(part);
        }
        self.await_post(mpi, rank)?;
        Ok(part)
    }

    /// Takes the lock of a part at the first access since `MPI_Win_lock_all`.
    #[cold]
    fn lock_late(&self, mpi: &Mpi, rank: usize) {
        let hold = match &self.epoch().access {
            Access::LockAll(hold) => *hold,
            _ => return,
        };
        // The lock of the own part is held.
        lock::acquire(mpi, &self.parts[rank].peer, hold, true);
        let mut epoch = self.epoch();
        if epoch.locks.contains_key(&rank) {
            // Another thread has taken it meanwhile.
            drop(epoch);
            return lock::release(mpi, &self.parts[rank].peer, hold);
        }
        epoch.locks.insert(rank, hold);
        // SYNC POINT window-post: releases what the holders before have released.
        self.parts[rank].is_open.store(true, Ordering::Release);
    }

    /// Waits until the target has posted, in an epoch of `MPI_Win_start`. One thread takes the receive out of
    /// the token and waits for the message, the others wait for that thread.
    #[cold]
    fn await_post(&self, mpi: &Mpi, rank: usize) -> Result {
        let receive = {
            let mut epoch = self.epoch();
            let name = epoch.access.name();
            let Access::Start(tokens) = &mut epoch.access else { return Err(no_access(rank, name)) };
            let Some(token) = tokens.iter_mut().find(|token| token.rank == rank) else {
                return Err(no_access(rank, name));
            };
            token.receive.take()
        };
        let part = &self.parts[rank];
        match receive {
            Some(id) => {
                mpi.core.wait_for_message(id);
                // SYNC POINT window-post: releases the memory of the target to the other threads.
                part.is_open.store(true, Ordering::Release);
                // The others may sleep.
                mpi.core.ring_own_sleepers();
            }
            None => {
                let awaited = Awaited::Events { count: 1 };
                // SYNC POINT window-post: acquires it.
                mpi.core.wait(awaited, || part.is_open.load(Ordering::Acquire));
            }
        }
        Ok(())
    }

    /// Begins an epoch of a lock, or goes on with it.
    pub fn open_locks(&self, epoch: &mut Epoch) -> Result {
        if !matches!(epoch.access, Access::Locks) {
            epoch.check_may_begin("MPI_Win_lock")?;
            self.close_access();
            epoch.access = Access::Locks;
        }
        Ok(())
    }

    /// Ends the epoch of locks with the last of them.
    pub fn close_locks(&self, epoch: &mut Epoch) {
        if !epoch.has_locks() {
            epoch.access = Access::None;
            self.record.is_passive.store(false, Ordering::Relaxed);
        }
    }

    /// Closes the access to all parts.
    pub fn close_access(&self) {
        self.record.is_open.store(false, Ordering::Relaxed);
        self.record.is_passive.store(false, Ordering::Relaxed);
        self.parts.iter().for_each(|part| part.is_open.store(false, Ordering::Relaxed));
    }
}

#[cold]
fn no_access(rank: usize, within: &str) -> Error {
    Error::new(
        MPI_ERR_RMA_SYNC,
        format!(
            "an operation on rank {rank} within {within}, which gives no access to it. Begin an epoch for it \
             (MPI_Win_fence, MPI_Win_start, MPI_Win_lock, MPI_Win_lock_all)"
        ),
    )
}
