//! The world: a PE's view of the job. Nothing of it is static: a process can have several worlds.
//!
//! Invariant: everything the fast path reads is written before the world is handed out. Threads of a PE may
//! share a world; calls that they must not make at the same time are documented as such (collective calls).
//! Handles borrow the world.

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::call::Call;
use crate::base::counters::{Counters, Tally};
use crate::base::error::Result;
use crate::base::panic_message;
use crate::coll::teams::Teams;
use crate::endpoint::completion_counter::CompletionCounters;
use crate::endpoint::contexts::Contexts;
use crate::endpoint::{Endpoint, Injector};
use crate::job::barrier_form::Barrier;
use crate::job::membership::Membership;
use crate::job::nodes::{self, Placement};
use crate::job::outstanding::OutstandingFlags;
use crate::job::upper::{Upper, UpperLayers};
use crate::job::{Job, is_alone_in_process};
use crate::memory::route::Routes;
use crate::memory::segment::Memory;
use crate::messages::message_state::MessageState;
use crate::messages::messaging::Messaging;
use crate::progress::meeting_points::Point;
use crate::progress::purpose::Purpose;
use crate::wait::engine::Engine;
use crate::wait::policy::WaitPolicy;
use crate::wait::service_thread;
use crate::wakers::Wakers;
use pelago_boot::Settings;
use pelago_fabric::shm::Segment;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A processing element's place in a job: its number, the number of PEs, and the memory that they share.
///
/// Dropping the world leaves the job; that waits for all other PEs to leave as well, or until one of them
/// waits in vain for this one. So where `?` returns an error from `main` on one PE and the others wait for
/// it, the user reads that error.
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
pub struct World {
    core: SharedCore,
    /// Beside the core, so that fence and quiet reach it by one load less.
    pub(crate) outstanding: OutstandingFlags,
}

/// All of a world, in one place as long as it lives: its service thread has a share of it.
#[repr(C)]
pub struct Core {
    pub(crate) messaging: Messaging,
    pub(crate) wakers: Wakers,
}

impl Deref for Core {
    type Target = Messaging;

    #[inline(always)]
    fn deref(&self) -> &Messaging {
        &self.messaging
    }
}

/// An `Arc` of a core, kept as the address of the core itself: so a function that takes a layer gets its
/// address without an addition.
struct SharedCore(NonNull<Core>);

// SAFETY: it is an `Arc<Core>`, which may be sent: a core may be used and dropped by any thread.
unsafe impl Send for SharedCore {}
// SAFETY: it is an `Arc<Core>`, which may be shared: a core may be used by several threads at once.
unsafe impl Sync for SharedCore {}

impl SharedCore {
    fn new(core: Core) -> SharedCore {
        let core = Arc::into_raw(Arc::new(core)).cast_mut();
        SharedCore(NonNull::new(core).expect("an `Arc` has an address"))
    }
}

impl Clone for SharedCore {
    fn clone(&self) -> SharedCore {
        // SAFETY: the address comes from `Arc::into_raw`, and this share keeps the `Arc` alive.
        unsafe { Arc::increment_strong_count(self.0.as_ptr()) };
        SharedCore(self.0)
    }
}

impl Deref for SharedCore {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        // SAFETY: this share keeps the core alive, and no share borrows it mutably.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedCore {
    fn drop(&mut self) {
        // SAFETY: the address comes from `Arc::into_raw`, and this share is not used after it.
        drop(unsafe { Arc::from_raw(self.0.as_ptr()) });
    }
}

/// A share of a world's core, for its service thread.
struct Shared(SharedCore);

impl Deref for Shared {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0.messaging.teams.engine
    }
}

impl Upper for Core {
    fn advance(&self) {
        if self.has_active_operations() {
            self.drive();
        }
        if self.has_open_handlers() {
            self.execute_messages();
        }
        self.wakers.wake_futures(self);
    }

    fn advance_operations(&self) -> bool {
        self.drive()
    }

    fn wake(&self) {
        self.wakers.wake_futures(self);
    }

    fn receive(&self, purpose: u8, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
        match purpose {
            p if p == Purpose::Active as u8 => self.note_active(from, header, payload),
            p if p == Purpose::ActivePlaced as u8 => self.note_placed(),
            p if p == Purpose::ActiveAsk as u8 => self.tell_executed(from),
            p if p == Purpose::ActiveTold as u8 => {
                let executed = u64::from_le_bytes(payload.get(..8)?.try_into().ok()?);
                self.note_executed(from, executed)
            }
            _ => None,
        }
    }

    fn try_active(&self, pe: Pe, header: u64, words: &[u64]) -> bool {
        self.messaging.try_active(pe, header, words, &[])
    }

    fn activity(&self) -> u64 {
        let received = if self.has_open_handlers() { self.am.received_cells() } else { 0 };
        self.collectives.moves() + received
    }

    fn are_messages_settled(&self) -> bool {
        !self.has_open_handlers() || self.am.are_rings_empty()
    }
}

impl Deref for World {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl World {
    /// The number of this PE.
    #[inline]
    pub fn my_pe(&self) -> Pe {
        self.core.messaging.teams.engine.my_pe()
    }

    /// The number of PEs.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.core.messaging.teams.engine.n_pes()
    }

    /// Cores that the PEs of this node may run on together.
    pub fn cores(&self) -> usize {
        self.core.messaging.teams.engine.cores()
    }

    /// Reclaims the memory of arrays that every PE has dropped. Collective. Every collective call on memory
    /// does this by itself.
    ///
    /// # Errors
    /// If the PEs do not make the same call.
    #[track_caller]
    pub fn reclaim(&self) -> Result<()> {
        self.agree(Call::Reclaim)
    }

    /// Bytes of this PE's symmetric heap that are free. Memory of dropped arrays counts once it is reclaimed.
    pub fn heap_free_bytes(&self) -> usize {
        self.region.heap().free_bytes()
    }

    /// The largest block of the symmetric heap that can be allocated, in bytes.
    pub fn heap_largest_free_bytes(&self) -> usize {
        self.region.heap().largest_free_bytes()
    }

    /// Size of each PE's symmetric heap in bytes.
    pub fn heap_total_bytes(&self) -> usize {
        self.region.heap().total_bytes()
    }

    /// The counts of this PE's operations so far; all zero unless counting is on (`PELAGO_COUNTERS`).
    pub fn counters(&self) -> Counters {
        self.tally.read()
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
    /// operations that wait. Every call that waits does so by itself. Between PEs that map each other no
    /// operation is ever under way, and this does nothing.
    #[inline]
    #[track_caller]
    pub fn progress(&self) {
        self.core.messaging.teams.engine.progress();
    }

    /// Bytes of this PE's pool, the memory of teams and spaces, that are in use.
    pub fn pool_used_bytes(&self) -> usize {
        self.core.pool_used_bytes()
    }

    /// The fabric over which PEs that are not mapped are reached: `shm`, or `ofi (tcp;ofi_rxm on eth0)`, with
    /// libfabric's provider and domain. `None` if all PEs are mapped.
    pub fn fabric(&self) -> Option<String> {
        self.net.as_ref().and_then(|net| net.fabric())
    }

    /// Whether a PE of this node sleeps until data come. For tests.
    #[doc(hidden)]
    pub fn has_sleepers_for_data(&self) -> bool {
        self.memory.header().sleepers.for_data().load(Ordering::Relaxed) != 0
    }

    /// All that the layers below need.
    #[inline(always)]
    pub(crate) fn teams(&self) -> &Teams {
        &self.core.messaging.teams
    }

    /// Ends the whole job at once with an exit status and a reason, without waiting for any PE. In
    /// [`spmd`](crate::spmd) it is a panic: the process and its status belong to the caller.
    #[track_caller]
    pub fn abort(&self, status: i32, reason: &str) -> ! {
        self.core.messaging.teams.engine.abort(status, reason)
    }

    /// Takes PE `me`'s place in its node's memory and waits for all others to do so. The endpoint of the
    /// placement, if it has one, is connected.
    pub(crate) fn assemble(
        (me, n_pes): (Pe, usize),
        segment: Arc<Segment>,
        placement: Placement,
        membership: Option<Membership>,
        settings: &Settings,
    ) -> Result<World> {
        let tally = Tally::new(settings.counters);
        let nodes = nodes::numbered(n_pes, &placement.nodes);
        let slots = nodes::slots(me, &nodes, segment.layout().n_pes);
        let (net, routes) = (placement.net, Routes::new(me, placement.reach, nodes));
        let memory = Memory::new(segment, slots, &routes, tally.is_on());
        let failure = &memory.header().failure;
        let net = net.map(|net| Endpoint::new(net, (!tally.is_on()).then_some(failure)));
        panic_message::forget_errors(is_alone_in_process(membership.as_ref()));
        // SAFETY: the words lie in the segment and in the endpoint, both of which the job keeps.
        let outstanding = unsafe { OutstandingFlags::of(&memory, net.as_deref()) };
        let job = Job {
            me,
            n_pes,
            cores: 1,
            memory,
            routes,
            tally,
            barrier: Barrier::new(net.is_some()),
            outstanding,
            net,
            no_injector: Injector::none(),
            contexts: Contexts::default(),
            completions: CompletionCounters::default(),
            pids: placement.pids,
            far_left: (0..n_pes).map(|_| AtomicBool::new(false)).collect(),
            joined_at: Instant::now(),
            bears_threads: AtomicBool::new(false),
            membership: Mutex::new(membership),
            upper: UpperLayers::default(),
        };
        let engine = World::meet(Engine::new(job, settings), settings)?;
        let teams = Teams::new(engine, settings)?;
        let core = SharedCore::new(Core {
            messaging: Messaging { teams, am: MessageState::default() },
            wakers: Wakers::default(),
        });
        // SAFETY: the core holds the job; it is not moved out of its `Arc` nor borrowed mutably.
        unsafe { core.upper.set(&*core) };
        World { core, outstanding }.joined(settings)
    }

    /// Meets the other PEs of this node, and finds out on how many cores they run.
    fn meet(mut engine: Engine, settings: &Settings) -> Result<Engine> {
        let cores = engine.meet_and_count_cores();
        engine.check_routes().inspect_err(|_| engine.close())?;
        engine.state.job.cores = cores;
        engine.policy = WaitPolicy::new(engine.memory.blocks().len(), cores, engine.net.as_deref(), settings);
        engine.affinity.spread(&engine, settings.spread);
        Ok(engine)
    }

    /// Meets the PEs of other nodes, and agrees with all.
    fn joined(self, settings: &Settings) -> Result<World> {
        if self.net.is_some() {
            self.message_barrier(Point::Join, Awaited::Join);
        }
        let call = Call::Join { barrier: settings.barrier as usize, reach: self.routes.code() };
        self.agree(call).inspect_err(|_| self.close())?;
        self.core.messaging.teams.engine.barrier.choose(
            settings.barrier,
            self.net.is_some(),
            self.n_pes(),
            self.cores(),
        );
        if settings.service {
            self.spawn_service();
        }
        Ok(self)
    }

    /// Starts the service thread where there is a use for it, whatever the settings are.
    pub(crate) fn spawn_service(&self) {
        service_thread::spawn(Shared(self.core.clone()), &self.service);
    }

    /// Says that this PE leaves, and waits for the others to do so, unless one of them waits for it in vain.
    fn leave(&self) {
        let header = self.memory.header();
        self.say_left();
        if self.net.is_some() {
            self.say_left_over_net();
            self.message_barrier(Point::Leave, Awaited::Leave);
        } else {
            self.wait(Awaited::Leave, || {
                header.leaving.load(Ordering::Acquire) as usize >= self.n_pes || self.missed_by().is_some()
            });
        }
        if let (Some(by), Some(of)) = (self.missed_by(), &*self.membership()) {
            of.job.note_missed(&self.missed_words(by));
        }
    }
}

impl World {
    /// As dropping it, but this process stays in its job, for another world; and the memory that the world
    /// has mapped stays where it is until the world is dropped.
    pub(crate) fn end(&self) -> Option<Membership> {
        self.complete_and_leave();
        self.membership().take().inspect(|membership| membership.job.rest())
    }

    /// Completes everything and leaves, unless this PE takes part in nothing any more. Once only.
    fn complete_and_leave(&self) {
        if std::thread::panicking() || self.is_closed() {
            return;
        }
        self.finish_collectives();
        if let Some(net) = &self.net {
            // A PE that sees that this PE has left finds its last messages there.
            net.flush();
        }
        self.quiet_all();
        self.quiet();
        self.leave();
        self.service.stop();
        if self.missed_by().is_some() {
            // The others go on, and may reach for this PE's memory, which is about to go.
            self.shut_endpoints();
        }
        self.core.messaging.teams.engine.barrier.close();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let is_orderly = !std::thread::panicking() && !self.is_closed();
        self.complete_and_leave();
        self.service.stop();
        let membership = self.membership().take();
        if is_orderly
            && let Some(membership) = membership
            && let Err(error) = membership.finalize()
        {
            eprintln!("PE {}: leaving the job: {error}", self.me);
        }
        // Before the memory goes that operations under way read and write.
        self.shut_endpoints();
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("my_pe", &self.me).field("n_pes", &self.n_pes).finish_non_exhaustive()
    }
}
