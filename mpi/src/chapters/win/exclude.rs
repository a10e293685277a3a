//! How accumulates on a part exclude each other.
//!
//! A *short* one updates its words by atomics of this processor. Any number of them may go on at a time. A
//! *long* one is alone on the part, so that it may work on vectors and on elements of any type. Both take
//! the lock of `pelago_fabric::brlock`: short ones are its readers, long ones its writers. The word of the
//! writers is in the control block of the target, the word of a reader in that of its process.
//!
//! Invariant: the processes that accumulate on a part are its own and those that map it. They map the
//! control blocks of each other.

use super::control::Peer;
use super::part::Part;
use crate::chapters::library::Mpi;
use pelago_core::base::awaited::Awaited;
use pelago_core::job::Job;
use pelago_fabric::brlock::{self, Reading, Refused};
use pelago_fabric::sync::AtomicU64;
use std::sync::Arc;

/// The processes of a window that accumulate on parts which this one maps.
#[derive(Clone)]
pub struct Accumulators {
    /// The word in which this process says that it accumulates.
    own: *const AtomicU64,
    all: Arc<[Peer]>,
}

impl Accumulators {
    /// Those of the window with these parts, of which one is this process's.
    pub fn new(parts: &[Part], own: usize) -> Accumulators {
        let all = parts.iter().map(|part| part.peer).filter(|peer| peer.reader().is_some()).collect();
        let own = parts[own].peer.reader().expect("each process maps its own control block");
        Accumulators { own, all }
    }

    /// Begins a short accumulate on the part of a process, unless there is a long one.
    #[inline(always)]
    pub fn try_share(&self, target: &Peer) -> Option<Reading<'_>> {
        // SAFETY: the control block of this process is freed after the window.
        let own = unsafe { &*self.own };
        brlock::try_read(own, target.writers()?)
    }

    /// Begins a long accumulate, if there is no other. A process that does not get the lock is woken when it
    /// is free, if it sleeps then.
    pub fn try_exclude<'a>(&self, job: &'a Job, target: &'a Peer) -> Option<Excluding<'a>> {
        let writers = target.writers()?;
        match brlock::try_write(writers, self.all.iter().filter_map(Peer::reader)) {
            Ok(()) => return Some(Excluding { writers, job }),
            Err(Refused::HasReader { is_awaited: true }) => job.ring_sleepers_after_change(),
            Err(_) => {}
        }
        None
    }

    /// Begins a long accumulate, if need be after a wait.
    pub fn exclude<'a>(&self, mpi: &'a Mpi, target: &'a Peer) -> Excluding<'a> {
        let mut taken = self.try_exclude(&mpi.core, target);
        if taken.is_none() {
            mpi.core.wait(Awaited::Completion { operation: "accumulate", pe: target.pe() }, || {
                taken = taken.take().or_else(|| self.try_exclude(&mpi.core, target));
                taken.is_some()
            });
        }
        taken.expect("a wait ends when the lock is taken")
    }
}

/// A long accumulate, until it is dropped.
pub struct Excluding<'a> {
    writers: &'a AtomicU64,
    job: &'a Job,
}

impl Drop for Excluding<'_> {
    fn drop(&mut self) {
        if brlock::leave(self.writers) {
            self.job.ring_sleepers_after_change();
        }
    }
}

/// How an accumulate gets access to a part.
#[derive(Clone, Copy)]
pub enum Entry<'a> {
    /// It waits.
    Waiting(&'a Mpi, &'a Accumulators, &'a Peer),
    /// It tries, and comes again later.
    Trying(&'a Job, &'a Accumulators, &'a Peer),
}

/// Access to a part.
pub enum Access<'a> {
    Short { _reading: Reading<'a> },
    Long { _excluding: Excluding<'a> },
}

impl<'a> Entry<'a> {
    /// Access for a short accumulate if `may_share`, unless a long one is going on; else for a long one.
    /// `None` if another one has the part, and this one does not wait.
    pub fn access(self, may_share: bool) -> Option<Access<'a>> {
        let (accumulators, target) = match self {
            Entry::Waiting(_, accumulators, target) | Entry::Trying(_, accumulators, target) => {
                (accumulators, target)
            }
        };
        if may_share && let Some(_reading) = accumulators.try_share(target) {
            return Some(Access::Short { _reading });
        }
        let _excluding = match self {
            Entry::Waiting(mpi, ..) => accumulators.exclude(mpi, target),
            Entry::Trying(job, ..) => accumulators.try_exclude(job, target)?,
        };
        Some(Access::Long { _excluding })
    }
}
