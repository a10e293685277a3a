//! The world: a PE's view of the job. Nothing of it is static: a process can have several worlds.
//!
//! Invariant: everything the fast path reads is written before the world is handed out. Threads of a PE may
//! share a world; calls that they must not make at the same time are documented as such (collective calls).
//! Handles borrow the world.

use pelago_boot::Settings;
use pelago_core::Core;
use pelago_core::Pe;
use pelago_core::base::call::Call;
use pelago_core::base::counters::Counters;
use pelago_core::base::error::Result;
use pelago_core::coll::teams::Teams;
use pelago_core::join;
use pelago_fabric::sync::Ordering;

/// A processing element's place in a job: its number, the number of PEs, and the memory that they share.
///
/// A PE leaves the job when its world is dropped. The drop waits until all other PEs leave as well, or until
/// another PE waits for something that this PE will not do any more. So if `main` returns an error on one PE
/// while the others wait for it, the job ends with this error, and the user reads it.
///
/// ```
/// # pelago::spmd(4, |world| -> pelago::Result<()> {
/// let (me, n) = (world.my_pe(), world.n_pes());
/// let inbox = world.alloc::<u64>(n)?;
/// inbox.put((me + 1) % n, me, &[42])?;
/// world.barrier();
/// assert_eq!(inbox.local().get((me + n - 1) % n), 42);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
///
/// The threads of a PE may share its world and the arrays in it, all of them at once: every one-sided
/// operation, wait, fence and quiet. A quiet completes the operations that were started before it on any
/// thread whose calls happened before. Collective calls (marked as such) are for one thread at a time, and
/// the PE's threads together must make them in the order in which the other PEs do. Two threads at once in a
/// call on memory (alloc, resize, free, exclusive, reclaim), or in one that makes or changes a team, are
/// refused with an error that names the conflict. Barriers and collective operations do not check, as their
/// path has no instruction to spare, but with `PELAGO_CHECK=on` two threads at once in operations of a team
/// are refused as well.
/// ```
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let count = world.alloc_zeroed::<u64>(1)?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| count.add(0, 0, 1).unwrap());
///     }
/// });
/// world.barrier();
/// assert_eq!(count.g(0, 0)?, 8);
/// # world.barrier();
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[must_use = "a world that is dropped leaves the job"]
pub struct World {
    core: Core,
}

impl From<Core> for World {
    fn from(core: Core) -> World {
        World { core }
    }
}

impl World {
    /// Joins the job that this process was started in: by `pelago run`, or another launcher that speaks PMI-1
    /// (hydra, Slurm) or PMIx (mpirun, Slurm). Without a launcher it is a job of one PE. Collective; settings
    /// come from the environment. [`run`](crate::run) joins with several PEs as well.
    ///
    /// # Errors
    /// If a setting is wrong, `PELAGO_PES_PER_PROCESS` is not 1, the launcher or the other PEs do not answer
    /// in time (`PELAGO_INIT_TIMEOUT`), memory is refused, PEs of different nodes have no network in common
    /// or `PELAGO_FABRIC=shm`, or `PELAGO_ROUTE` or `PELAGO_BARRIER` differ between PEs.
    ///
    /// # Panics
    /// If PEs that have mapped the node's memory do not join in time.
    pub fn init() -> Result<World> {
        Ok(join::one_pe(&Settings::from_env()?)?.into())
    }

    /// The number of this PE.
    #[inline]
    pub fn my_pe(&self) -> Pe {
        self.core.my_pe()
    }

    /// The number of PEs.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.core.n_pes()
    }

    /// Cores that the PEs of this node may run on together.
    pub fn cores(&self) -> usize {
        self.core.cores()
    }

    /// Reclaims the memory of arrays that every PE has dropped. Collective. Every collective call on memory
    /// does this by itself.
    ///
    /// # Errors
    /// If the PEs do not make the same call.
    #[track_caller]
    pub fn reclaim(&self) -> Result<()> {
        self.core().agree(Call::Reclaim)
    }

    /// Bytes of this PE's symmetric heap that are free. Memory of dropped arrays counts once it is reclaimed.
    pub fn heap_free_bytes(&self) -> usize {
        self.core().region.heap().free_bytes()
    }

    /// The largest block of the symmetric heap that can be allocated, in bytes.
    pub fn heap_largest_free_bytes(&self) -> usize {
        self.core().region.heap().largest_free_bytes()
    }

    /// Size of each PE's symmetric heap in bytes.
    pub fn heap_total_bytes(&self) -> usize {
        self.core().region.heap().total_bytes()
    }

    /// The counts of this PE's operations so far; all zero unless counting is on (`PELAGO_COUNTERS`).
    pub fn counters(&self) -> Counters {
        self.core().tally.read()
    }

    /// Waits until every PE has entered. All operations that the PEs issued before, except through a
    /// [`Context`](crate::Context), are complete and visible to all. Collective.
    ///
    /// # Panics
    /// If a PE that has not come has left the job or failed, so that the barrier cannot end.
    #[inline]
    #[track_caller]
    pub fn barrier(&self) {
        self.core.barrier();
    }

    /// Makes progress: takes the messages that have arrived, serves the requests of other PEs, starts
    /// operations that wait. Every call that waits does so by itself. Puts, gets and atomics between PEs that
    /// map each other need no progress; active messages, long two-sided messages and non-blocking collective
    /// operations do.
    #[inline]
    #[track_caller]
    pub fn progress(&self) {
        self.core.progress();
    }

    /// Bytes of this PE's pool, the memory of teams and spaces, that are in use.
    pub fn pool_used_bytes(&self) -> usize {
        self.core.pool_used_bytes()
    }

    /// The fabric over which PEs that are not mapped are reached: `shm`, or `ofi (tcp;ofi_rxm on eth0)`, with
    /// libfabric's provider and domain. `None` if all PEs are mapped.
    pub fn fabric(&self) -> Option<String> {
        self.core().net.as_ref().and_then(|net| net.fabric())
    }

    /// Whether a PE of this node sleeps until data come. For tests.
    #[doc(hidden)]
    pub fn has_sleepers_for_data(&self) -> bool {
        self.core().memory.header().sleepers.for_data().load(Ordering::Relaxed) != 0
    }

    /// The layers up to teams and collective operations.
    #[inline(always)]
    pub(crate) fn teams(&self) -> &Teams {
        &self.core.messaging.teams
    }

    /// The layers below.
    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Ends the whole job at once with an exit status and a reason, without waiting for any PE. In
    /// [`spmd`](crate::spmd) it is a panic: the process and its status belong to the caller.
    #[track_caller]
    pub fn abort(&self, status: i32, reason: &str) -> ! {
        self.core.abort(status, reason)
    }
}
impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("my_pe", &self.core().me)
            .field("n_pes", &self.core().n_pes)
            .finish_non_exhaustive()
    }
}
