//! A PE in its job: its number, the memory of its node, its endpoints, and the end of the job when a PE
//! fails.
//!
//! Invariant: nothing here waits for other PEs, except a PE that is closed for copies from its memory.

pub mod affinity;
pub mod barrier_form;
pub mod business_card;
pub mod callback;
pub mod decisions;
mod describe;
mod doorbells;
pub mod exchange;
pub mod fabrics;
pub mod membership;
pub mod nodes;
pub mod outstanding;
pub mod summary;
pub mod upper;
mod wire;

use self::barrier_form::{Barrier, FLAGS_PES_MAX};
use self::membership::Membership;
use self::outstanding::OutstandingFlags;
use self::upper::UpperLayers;
use crate::Pe;
use crate::base::counters::Tally;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::locked::locked;
use crate::endpoint::completion_counter::CompletionCounters;
use crate::endpoint::contexts::Contexts;
use crate::endpoint::{Endpoint, Injector};
use crate::memory::route::Routes;
use crate::memory::segment::Memory;
use pelago_fabric::lazy::Reserved;
use pelago_fabric::shm::readers::Reading;
use pelago_fabric::sync::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// A PE in its job.
pub struct Job {
    pub me: Pe,
    pub n_pes: usize,
    /// A random number by which the PEs of this job tell it from others; 0 among the threads of `spmd`.
    pub number: u64,
    pub cores: usize,
    pub memory: Memory,
    pub routes: Routes,
    pub tally: Tally,
    pub barrier: Barrier,
    pub outstanding: OutstandingFlags,
    /// The endpoint for PEs that are not mapped, if there are any.
    pub net: Option<Arc<Endpoint>>,
    /// The injector for views that inject nothing: it is never open.
    pub no_injector: Injector,
    pub contexts: Contexts,
    pub completions: CompletionCounters,
    /// The process number of each PE, if its business card has one.
    pub pids: Vec<u32>,
    /// The status of each PE of another node, as far as it is known: 0, [`LEFT`] or [`LEFT_RECEIVING`].
    pub far_status: Reserved<AtomicU8>,
    pub joined_at: Instant,
    /// Whether all threads of this process belong to this PE, regardless of their names.
    pub bears_threads: AtomicBool,
    /// The membership in the launcher's job; the PEs of `spmd` have none.
    pub membership: Mutex<Option<Membership>>,
    pub upper: UpperLayers,
}

/// Payload of the panic of a PE that is a thread and gives up because another PE has failed.
pub struct GaveUp;

impl Job {
    /// The number of this PE.
    #[inline]
    pub fn my_pe(&self) -> Pe {
        self.me
    }

    /// The number of PEs.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.n_pes
    }

    /// The error of a call that names a rank which a team of `n_ranks` members does not have.
    #[cold]
    #[inline(never)]
    pub fn no_such_rank(&self, operation: &'static str, rank: usize, n_ranks: usize) -> Error {
        let (me, n_pes) = (self.me, self.n_pes);
        match n_ranks == n_pes {
            true => ErrorKind::PeOutOfRange { me, operation, pe: rank, n_pes }.into(),
            false => ErrorKind::RankOutOfRange { me, operation, rank, n_ranks }.into(),
        }
    }

    /// Cores that the PEs of this node may run on together.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// The node of a PE, from 0.
    pub fn node(&self, pe: Pe) -> u32 {
        self.routes.node(pe)
    }

    /// Whether a barrier of `n` PEs should use a shared counter rather than a flag for each PE.
    #[inline]
    pub fn meets_at_counter(&self, n: usize) -> bool {
        n > FLAGS_PES_MAX || self.n_pes() > self.cores()
    }

    /// The world's own endpoint.
    ///
    /// # Panics
    /// If every PE is mapped, so that there is no endpoint.
    pub fn net_endpoint(&self) -> &Arc<Endpoint> {
        self.net.as_ref().expect("a PE that is not mapped is reached over the net")
    }

    /// Whether no operation of this PE is outstanding.
    pub fn is_all_quiet(&self) -> bool {
        let are_quiet = || self.contexts.all().iter().all(|context| context.is_quiet());
        self.net.as_ref().is_none_or(|net| net.is_quiet() && are_quiet())
    }

    /// Shuts all endpoints: no operation that was started accesses this PE's buffers any more.
    pub fn shut_endpoints(&self) {
        if let Some(net) = &self.net {
            self.contexts.shut();
            net.shut();
        }
    }

    pub fn membership(&self) -> MutexGuard<'_, Option<Membership>> {
        locked(&self.membership)
    }

    /// Whether PEs are processes, or threads of processes, that a launcher supervises.
    pub fn is_launched(&self) -> bool {
        self.membership().is_some()
    }

    /// Whether this PE is the only one of its process.
    pub fn is_alone_in_process(&self) -> bool {
        is_alone_in_process(self.membership().as_ref())
    }

    /// The number of PEs of each process.
    pub fn pes_per_process(&self) -> usize {
        self.membership().as_ref().map_or(1, |of| of.job.pes_per_process())
    }

    pub fn is_launcher_gone(&self) -> bool {
        self.membership().as_ref().is_some_and(|of| of.job.launcher_gone())
    }

    /// Ends the whole job at once with an exit status and a reason, without waiting for other PEs.
    #[track_caller]
    pub fn abort(&self, status: i32, reason: &str) -> ! {
        match &*self.membership() {
            Some(of) => of.job.abort(self.me, status, reason),
            None => panic!("PE {} aborts the job with status {status}: {reason}", self.me),
        }
    }

    /// Ends this PE because the job cannot go on. In `spmd` it unwinds without a message,
    /// because the PE that failed first reports the failure; elsewhere it reports the reason and ends its
    /// process.
    #[track_caller]
    pub fn give_up(&self, reason: &str) -> ! {
        self.close();
        match &*self.membership() {
            Some(of) => of.job.abort(self.me, 1, reason),
            None => std::panic::resume_unwind(Box::new(GaveUp)),
        }
    }

    /// Panics with the reason that this PE has found, which becomes the job's failure.
    #[track_caller]
    pub fn fail(&self, reason: &str) -> ! {
        self.record_failure(reason);
        panic!("{reason}");
    }

    /// Records that this PE has failed, so that no PE waits for it.
    pub fn record_failure(&self, reason: &str) {
        // Recorded first: an error that others detect because this PE closes is not the reason.
        self.memory.header().failure.record(self.me, reason);
        self.close();
        self.ring_sleepers_after_change();
    }

    /// Ends this PE because its service thread has found that the job fails. Where PEs are threads, the other
    /// threads of this PE detect it by themselves.
    pub fn end_process(&self, reason: &str) {
        self.record_failure(reason);
        if let Some(of) = &*self.membership() {
            of.job.abort(self.me, 1, reason);
        }
    }

    /// Closes this PE: it enters no barrier any more, leaves without waiting for other PEs, and abandons
    /// outstanding operations over the network, so that none accesses its buffers. Nor does another PE of
    /// this process, as this thread may unwind now.
    pub fn close(&self) {
        self.barrier.close();
        self.memory.near_block(self.me).readers.close();
        self.shut_endpoints();
        if !self.is_launched() {
            self.alarm_pollers();
        }
        self.tally.finish_record();
    }

    /// Lets this thread copy from the private memory of a PE of this process until the result is dropped;
    /// `None` if that PE is closed.
    pub fn read_private(&self, pe: Pe) -> Option<Reading<'_>> {
        self.memory.near_block(pe).readers.begin()
    }

    /// Whether this PE is closed.
    pub fn is_closed(&self) -> bool {
        self.barrier.is_closed()
    }

    pub fn has_failed(&self) -> Option<String> {
        self.memory.header().failure.read().map(|(pe, reason)| format!("PE {pe}: {reason}"))
    }

    /// Whether a PE has begun to leave the job.
    pub fn has_left(&self, pe: Pe) -> bool {
        // SYNC POINT left: acquires the effects of the PE before it left.
        match self.memory.block(pe) {
            Some(block) => block.departure.left.load(Ordering::Acquire) != 0,
            None => self.far_status[pe].load(Ordering::Relaxed) != 0,
        }
    }

    /// Whether a PE that has begun to leave the job had receives then, for which messages may still come.
    pub fn still_receives(&self, pe: Pe) -> bool {
        match self.memory.block(pe) {
            Some(block) => block.departure.receives.load(Ordering::Relaxed) != 0,
            None => self.far_status[pe].load(Ordering::Relaxed) == LEFT_RECEIVING,
        }
    }

    /// Notes that this PE, which is about to leave the job, has receives for which messages may still come.
    pub fn receive_while_leaving(&self) {
        self.memory.near_block(self.me).departure.receives.store(1, Ordering::Relaxed);
    }

    /// The size of an array in bytes.
    ///
    /// # Errors
    /// If it exceeds the address space.
    pub fn array_bytes<T>(&self, operation: &'static str, count: usize) -> Result<usize> {
        let (me, element_bytes) = (self.me, size_of::<T>());
        let bytes = count.checked_mul(element_bytes).filter(|&bytes| bytes <= isize::MAX as usize);
        bytes.ok_or_else(|| ErrorKind::TooLarge { me, operation, count, element_bytes }.into())
    }

    /// Publishes in the status word, which PEs of other nodes read, that this PE has left.
    pub fn say_left_over_net(&self) {
        let status = if self.still_receives(self.me) { LEFT_RECEIVING } else { LEFT };
        self.memory.standing(self.me).store(status.into(), Ordering::Relaxed);
    }

    /// Publishes the process number of this PE to the other PEs of this node.
    pub fn tell_process(&self) {
        let [pid, space] = &*self.memory.near_block(self.me).process;
        space.store(namespace(), Ordering::Relaxed);
        pid.store(std::process::id().into(), Ordering::Relaxed);
    }

    /// The process number of a PE, if it is valid in the PID namespace of this process.
    pub fn pid_of(&self, pe: Pe) -> Option<u32> {
        let Some(block) = self.memory.block(pe) else { return self.pids.get(pe).copied() };
        let [pid, space] = &*block.process;
        let pid = u32::try_from(pid.load(Ordering::Relaxed)).ok().filter(|&pid| pid != 0)?;
        let is_same = is_same_space(space.load(Ordering::Relaxed), namespace());
        is_same.then_some(pid)
    }
}

/// The value of the status word of a PE that has left the job.
pub const LEFT: u8 = 1;
/// The same of one that still receives messages.
pub const LEFT_RECEIVING: u8 = 2;

/// Whether a process has one PE.
pub fn is_alone_in_process(membership: Option<&Membership>) -> bool {
    membership.is_some_and(|of| of.job.pes_per_process() == 1)
}

/// Whether two PID namespaces are the same; unknown ones, with number 0, may differ.
fn is_same_space(one: u64, other: u64) -> bool {
    one == other && one != 0
}

/// The PID namespace of this process; 0 if the system does not show it.
fn namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| {
        let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    })
}
