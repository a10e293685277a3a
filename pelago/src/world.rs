//! The world: a PE's view of the job. There are no statics, so many worlds fit in one process.
//!
//! Invariant: everything the fast path reads is written before the world is handed out. Threads of a PE may
//! share a world; what they then may not do at the same time is said where it matters (collective calls).
//! Handles borrow the world.

use crate::Pe;
use crate::affinity::Affinity;
use crate::agree::Call;
use crate::am::hub::Hub;
use crate::barrier::Barrier;
use crate::channel::{Channel, Injector};
use crate::coll::engine::Collectives;
use crate::counters::{Counters, Tally};
use crate::departure::Departures;
use crate::element::Element;
use crate::error::{ErrorKind, Result};
use crate::event::wakers::Wakers;
use crate::heap::Heap;
use crate::join::{self, Membership};
use crate::kind::ObjectKind;
use crate::last_words;
use crate::muster::{Muster, Point};
use crate::nodes::{self, Placement};
use crate::order::Attention;
use crate::progress::Agenda;
use crate::realm::Realm;
use crate::route::Routes;
use crate::segment::{Memory, RESERVED_BYTES};
use crate::service::Service;
use crate::stall::Stall;
use crate::symmetric::Symmetric;
use crate::team::TeamCore;
use crate::tracker::Trackers;
use crate::wait::{Awaited, Patience};
use crate::watch::Watch;
use pelago_boot::{BarrierKind, Settings, cpus};
use pelago_fabric::shm::Segment;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A processing element's place in a job: who it is, how many there are, and the memory they share.
///
/// Dropping the world leaves the job; that waits for all other PEs to leave as well, or until one of them
/// waits in vain for this one. So where `?` returns an error from `main` on one PE and the others wait for
/// it, that error is what the user reads.
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
/// operation, wait, fence and quiet. A quiet completes what was started before it on any thread whose calls
/// happened before. Collective calls (those that say so) are for one thread at a time, and the PE's threads
/// together must make them in the order in which the other PEs do. Two threads at once in a call on memory
/// (alloc, resize, free, exclusive, reclaim), or in one that makes or changes a team, are refused with words
/// that say so. Barriers and collective operations do not look, as their path has no instruction to spare,
/// but with `PELAGO_CHECK=on` two threads at once in operations of a team are refused as well.
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
    core: Arc<Core>,
    /// Beside the core, so that fence and quiet reach it by one load less.
    pub(crate) attention: Attention,
}

/// All of a world, in one place as long as it lives: its service thread has a share of it (`service.rs`).
pub struct Core {
    me: Pe,
    n_pes: usize,
    cores: usize,
    pub(crate) memory: Memory,
    pub(crate) patience: Patience,
    pub(crate) barrier: Barrier,
    pub(crate) tally: Tally,
    /// Number of the last agreement; held by the thread that makes a collective call.
    pub(crate) agreed: Mutex<u64>,
    /// All PEs and their symmetric heaps.
    pub(crate) realm: Realm,
    /// What this PE allocates in for itself: the memory of its teams and spaces.
    pub(crate) pool: Mutex<Heap>,
    /// The team of all PEs.
    pub(crate) team: Arc<TeamCore>,
    /// The same PEs with memory of their own, where the barrier of all PEs needs a team: so it is never taken
    /// for a collective operation of the team of all PEs.
    pub(crate) barrier_team: Option<Arc<TeamCore>>,
    pub(crate) collectives: Collectives,
    pub(crate) routes: Routes,
    pub(crate) muster: Muster,
    /// The way to PEs that are not mapped, if there are any.
    pub(crate) net: Option<Arc<Channel>>,
    /// The injector where nothing is injected: it is never open.
    pub(crate) no_injector: Injector,
    /// After the channel that writes its answers.
    pub(crate) watch: Watch,
    /// Likewise.
    pub(crate) stall: Stall,
    pub(crate) trackers: Trackers,
    pub(crate) agenda: Agenda,
    pub(crate) am: Hub,
    pub(crate) wakers: Wakers,
    pub(crate) departures: Departures,
    pub(crate) joined_at: Instant,
    /// The core that this PE runs on.
    pub(crate) affinity: Affinity,
    /// Whether all threads of this process belong to this PE, whatever their names.
    pub(crate) bears_threads: AtomicBool,
    /// If it was joined by a launcher's word; the PEs of [`spmd`](crate::spmd) have none.
    job: Mutex<Option<Membership>>,
    /// The thread that serves others meanwhile, if there is one.
    pub(crate) service: Service,
}

/// A world that another thread of the runtime holds as well: dropping it does not leave the job.
pub(crate) struct Shared(ManuallyDrop<World>);

impl Deref for Shared {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nobody uses the world after this, and it is not dropped itself, so that its share of the
        // core is dropped once.
        drop(unsafe { std::ptr::read(&self.0.core) });
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
    /// Joins the job that this process was started in: by `pelago run`, or another launcher that speaks PMI-1
    /// (hydra, Slurm) or PMIx (mpirun, Slurm). Without a launcher it is a job of one PE. Collective; settings
    /// come from the environment. [`run`](crate::run) joins with several PEs as well.
    ///
    /// # Errors
    /// If a setting is wrong, `PELAGO_PES_PER_PROCESS` is not 1, the launcher or the other PEs do not answer
    /// in time (`PELAGO_INIT_TIMEOUT`), memory is refused, PEs are on different nodes, or `PELAGO_ROUTE` or
    /// `PELAGO_BARRIER` differ between PEs.
    ///
    /// # Panics
    /// If PEs that have mapped the node's memory do not join in time.
    pub fn init() -> Result<World> {
        join::one_pe(&Settings::from_env()?)
    }

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

    /// Cores that the PEs of this node may run on together.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Allocates a symmetric array: `len` elements in every PE's memory, the contents unspecified.
    /// Collective; complete with a barrier, after which any PE may access any part.
    ///
    /// # Errors
    /// If the heap has no such block, the size exceeds the address space, there are 4352 arrays already, or
    /// the PEs do not ask for the same; then no PE has allocated.
    #[track_caller]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_aligned(len, align_of::<T>())
    }

    /// As [`alloc`](World::alloc), all elements zero.
    ///
    /// # Errors
    /// As [`alloc`](World::alloc).
    #[track_caller]
    pub fn alloc_zeroed<T: Element>(&self, len: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_zeroed_as(ObjectKind::Array, len)
    }

    /// As [`alloc_zeroed`](World::alloc_zeroed), for an object of this kind.
    #[track_caller]
    pub(crate) fn alloc_zeroed_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
    ) -> Result<Symmetric<'_, T>> {
        let align_bytes = align_of::<T>();
        let bytes = len.saturating_mul(size_of::<T>());
        let mut collective = self.collective();
        let call = Call::AllocZeroed { kind, bytes, align_bytes };
        collective.agree(call)?;
        let array = self.realm.alloc_agreed(self, len, align_bytes)?;
        array.zero_here();
        self.barrier();
        Ok(array)
    }

    /// As [`alloc`](World::alloc), each PE's part aligned to `align_bytes`: a power of two of at most 16 MiB.
    /// Every array is aligned to 64 bytes at least.
    ///
    /// # Errors
    /// As [`alloc`](World::alloc), and for other alignments.
    #[track_caller]
    pub fn alloc_aligned<T: Element>(&self, len: usize, align_bytes: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_as(ObjectKind::Array, len, align_bytes)
    }

    /// As [`alloc_aligned`](World::alloc_aligned), for an object of this kind.
    #[track_caller]
    pub(crate) fn alloc_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
        align_bytes: usize,
    ) -> Result<Symmetric<'_, T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut collective = self.collective();
        // First of all, so that arguments that are wrong on some PEs only are found as a difference.
        collective.agree(Call::Alloc { kind, bytes, align_bytes })?;
        self.realm.alloc_agreed(self, len, align_bytes)
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
        self.realm.heap().free_bytes()
    }

    /// The largest block of the symmetric heap that can be allocated, in bytes.
    pub fn heap_largest_free_bytes(&self) -> usize {
        self.realm.heap().largest_free_bytes()
    }

    /// Size of each PE's symmetric heap in bytes.
    pub fn heap_total_bytes(&self) -> usize {
        self.realm.heap().total_bytes()
    }

    /// What this PE has done so far; all zero unless counting is on (`PELAGO_COUNTERS`).
    pub fn counters(&self) -> Counters {
        self.tally.read()
    }

    /// The node of a PE, from 0.
    pub(crate) fn node(&self, pe: Pe) -> u32 {
        self.routes.node(pe)
    }

    /// Ends the whole job at once with an exit status and a reason, without waiting for anybody. In
    /// [`spmd`](crate::spmd) it is a panic: the process and its status belong to the caller.
    #[track_caller]
    pub fn abort(&self, status: i32, reason: &str) -> ! {
        match &*self.job() {
            Some(of) => of.job.abort(self.me, status, reason),
            None => panic!("PE {} aborts the job with status {status}: {reason}", self.me),
        }
    }

    /// Takes PE `me`'s place in its node's memory and waits for all others to do so. The endpoint of the
    /// placement, if it has one, is connected.
    pub(crate) fn assemble(
        (me, n_pes): (Pe, usize),
        segment: Arc<Segment>,
        placement: Placement,
        job: Option<Membership>,
        settings: &Settings,
    ) -> Result<World> {
        let tally = Tally::new(settings.counters);
        let nodes = nodes::numbered(n_pes, &placement.nodes);
        let slots = nodes::slots(me, &nodes, segment.layout().n_pes);
        let (net, routes) = (placement.net, Routes::new(me, placement.reach, nodes));
        let memory = Memory::new(segment, slots, &routes, tally.is_on());
        let failure = &memory.header().failure;
        let net = net.map(|net| Channel::new(net, (!tally.is_on()).then_some(failure)));
        let moves_by_itself = net.as_ref().is_some_and(|net| net.moves_by_itself());
        let is_simulated = net.as_ref().is_some_and(|net| net.virtual_time().is_some());
        // Whoever asks whether this PE is there is answered while it computes.
        let answers = moves_by_itself && (settings.service || net.as_ref().is_some_and(|n| !n.is_urgent()));
        // SAFETY: the words lie in the segment and in the channel, both of which the world keeps.
        let attention = unsafe { Attention::of(&memory, net.as_deref()) };
        let n_here = memory.blocks().len();
        last_words::forget_errors(is_alone_in_process(job.as_ref()));
        let heap = Heap::new(RESERVED_BYTES, memory.heap_bytes());
        let mut pool = Heap::new(memory.heap_bytes(), memory.region_bytes());
        let mut team_of_all = || {
            let how = (settings.sync_memory, net.is_some());
            let team = TeamCore::world(&memory, &mut pool, (me, n_pes), how)?;
            Ok::<_, crate::Error>(Arc::new(team.on_nodes(|pe| routes.node(pe))))
        };
        let team = team_of_all()?;
        let has_barrier_team = net.is_some() || settings.barrier == BarrierKind::Dissemination;
        let barrier_team = if has_barrier_team { Some(team_of_all()?) } else { None };
        let core = Core {
            me,
            n_pes,
            cores: 1,
            patience: Patience::new(n_here, 1, net.as_deref(), settings),
            barrier: Barrier::new(net.is_some()),
            memory,
            tally,
            agreed: Mutex::new(0),
            realm: Realm::world(me, n_pes, heap),
            pool: Mutex::new(pool),
            team,
            barrier_team,
            collectives: Collectives::new(settings)?,
            routes,
            muster: Muster::default(),
            net,
            no_injector: Injector::none(),
            // Elsewhere nobody is silent but by the program's fault.
            watch: Watch::new(n_pes, settings.peer_timeout.filter(|_| answers)),
            stall: Stall::new(!is_simulated, placement.pids, settings),
            trackers: Trackers::default(),
            agenda: Agenda::default(),
            am: Hub::default(),
            wakers: Wakers::default(),
            departures: Departures::default(),
            joined_at: Instant::now(),
            affinity: Affinity::default(),
            bears_threads: AtomicBool::new(false),
            job: Mutex::new(job),
            service: Service::default(),
        };
        World { core: Arc::new(core), attention }.joined(n_here, settings)
    }

    /// Meets the other PEs, and agrees with them.
    fn joined(mut self, n_here: usize, settings: &Settings) -> Result<World> {
        let cores = self.meet_and_count_cores();
        self.check_routes().inspect_err(|_| self.close())?;
        let core = self.own_core();
        core.cores = cores;
        core.patience = Patience::new(n_here, cores, core.net.as_deref(), settings);
        self.spread(settings.spread);
        let (meets_at_counter, is_plain) = self.manners(self.n_pes);
        let core = self.own_core();
        for team in [Some(&mut core.team), core.barrier_team.as_mut()].into_iter().flatten() {
            let team = Arc::get_mut(team).expect("the team of all PEs is shared with nobody yet");
            team.tune(meets_at_counter, is_plain);
        }
        if self.net.is_some() {
            self.muster(Point::Join, Awaited::Join);
        }
        let call = Call::Join { barrier: settings.barrier as usize, reach: self.routes.code() };
        self.agree(call).inspect_err(|_| self.close())?;
        let core = self.own_core();
        core.barrier.choose(settings.barrier, core.net.is_some(), core.n_pes, core.cores);
        self.start_service(settings);
        Ok(self)
    }

    /// The core while it is built.
    fn own_core(&mut self) -> &mut Core {
        Arc::get_mut(&mut self.core).expect("a world that is being built is shared with nobody")
    }

    /// The same world for its service thread.
    pub(crate) fn shared(&self) -> Shared {
        Shared(ManuallyDrop::new(World { core: Arc::clone(&self.core), attention: self.attention }))
    }

    /// Ends this PE because its service thread has found that the job fails. Where PEs are threads, the
    /// others of this PE learn it by themselves.
    pub(crate) fn end_process(&self, reason: &str) {
        self.record_failure(reason);
        if let Some(of) = &*self.job() {
            of.job.abort(self.me, 1, reason);
        }
    }

    fn meet_and_count_cores(&self) -> usize {
        let header = self.memory.header();
        for cpu in cpus() {
            if let Some(word) = header.cpus.get(cpu / 64) {
                word.fetch_or(1 << (cpu % 64), Ordering::Relaxed);
            }
        }
        if !self.routes.are_all_mapped() {
            header.over_net.fetch_add(1, Ordering::Relaxed);
        }
        self.tell_process();
        self.memory.near_block(self.me).attached.store(2, Ordering::Relaxed);
        // SYNC POINT joined: releases this PE's CPUs.
        header.joined.fetch_add(1, Ordering::AcqRel);
        self.ring_sleepers();
        // SYNC POINT joined: acquires everybody's CPUs.
        let n_here = self.memory.blocks().len();
        self.wait(Awaited::Join, || header.joined.load(Ordering::Acquire) as usize >= n_here);
        let cores: u32 = header.cpus.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        (cores as usize).max(1)
    }

    /// Makes sure that all PEs of this node take the same way, as they would not meet otherwise.
    fn check_routes(&self) -> Result<()> {
        let over_net = self.memory.header().over_net.load(Ordering::Relaxed) as usize;
        let n_pes = self.memory.blocks().len();
        if over_net != 0 && over_net != n_pes {
            return Err(ErrorKind::RoutesDiffer { me: self.me, over_net, n_pes }.into());
        }
        Ok(())
    }

    pub(crate) fn array_bytes<T>(&self, operation: &'static str, count: usize) -> Result<usize> {
        let (me, element_bytes) = (self.me, size_of::<T>());
        let bytes = count.checked_mul(element_bytes).filter(|&bytes| bytes <= isize::MAX as usize);
        bytes.ok_or_else(|| ErrorKind::TooLarge { me, operation, count, element_bytes }.into())
    }

    /// Whether PEs are processes, or threads of them, which a launcher watches over.
    pub(crate) fn is_launched(&self) -> bool {
        self.job().is_some()
    }

    /// Whether this PE is its process.
    pub(crate) fn is_alone_in_process(&self) -> bool {
        is_alone_in_process(self.job().as_ref())
    }

    /// How many PEs each process has.
    pub(crate) fn pes_per_process(&self) -> usize {
        self.job().as_ref().map_or(1, |of| of.job.pes_per_process())
    }

    pub(crate) fn is_launcher_gone(&self) -> bool {
        self.job().as_ref().is_some_and(|of| of.job.launcher_gone())
    }

    /// Whether the launcher asks what the PEs of this process wait for.
    pub(crate) fn is_asked_for_waits(&self) -> bool {
        self.job().as_ref().is_some_and(|of| of.job.is_asked())
    }

    /// Tells the launcher what the PEs of this process wait for.
    pub(crate) fn tell_waits(&self) {
        if let Some(of) = &*self.job() {
            let first = of.job.first_pe();
            of.job.tell_waits(&self.waits_of(first..first + of.job.pes_per_process()));
        }
    }

    /// Ends this PE because the job cannot go on. In [`spmd`](crate::spmd) it unwinds quietly, for the PE
    /// that failed first is the one to report; elsewhere it says why and ends its process.
    #[track_caller]
    pub(crate) fn give_up(&self, reason: &str) -> ! {
        self.close();
        match &*self.job() {
            Some(of) => of.job.abort(self.me, 1, reason),
            None => std::panic::resume_unwind(Box::new(GaveUp)),
        }
    }

    /// Panics because of what this PE has found out, which is the job's failure.
    #[track_caller]
    pub(crate) fn fail(&self, reason: &str) -> ! {
        self.record_failure(reason);
        panic!("{reason}");
    }

    /// Records that this PE failed, so that nobody waits for it.
    pub(crate) fn record_failure(&self, reason: &str) {
        // Recorded first: what others find out because this PE closes is not the reason.
        self.memory.header().failure.record(self.me, reason);
        self.close();
        self.ring_sleepers();
    }

    /// This PE takes part in nothing any more: it enters no barrier, leaves without waiting for anybody, and
    /// gives up what is under way over the net, so that nothing touches its buffers.
    pub(crate) fn close(&self) {
        self.barrier.close();
        self.shut_channels();
        if !self.is_launched() {
            self.am.alarm(self);
        }
    }

    /// Whether this PE takes part in nothing any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.barrier.is_closed()
    }

    pub(crate) fn has_failed(&self) -> Option<String> {
        self.memory.header().failure.read().map(|(pe, reason)| format!("PE {pe}: {reason}"))
    }

    /// Says that this PE leaves, and waits for the others to do so, unless one of them waits for it in vain.
    fn leave(&self) {
        let header = self.memory.header();
        self.say_left();
        if self.net.is_some() {
            self.say_left_over_net();
            self.muster(Point::Leave, Awaited::Leave);
        } else {
            self.wait(Awaited::Leave, || {
                header.leaving.load(Ordering::Acquire) as usize >= self.n_pes || self.missed_by().is_some()
            });
        }
        if let (Some(by), Some(of)) = (self.missed_by(), &*self.job()) {
            of.job.note_missed(&self.missed_words(by));
        }
    }
}

/// Whether a process has one PE.
fn is_alone_in_process(membership: Option<&Membership>) -> bool {
    membership.is_some_and(|of| of.job.pes_per_process() == 1)
}

/// Payload of the panic of a PE (as a thread) that gives up because another one failed.
pub(crate) struct GaveUp;

impl World {
    /// As dropping it, but this process stays in its job, for another world; and what the world has mapped
    /// stays where it is, until the world is dropped.
    pub(crate) fn end(&self) -> Option<Membership> {
        self.complete_and_leave();
        self.job().take().inspect(|membership| membership.job.rest())
    }

    fn job(&self) -> MutexGuard<'_, Option<Membership>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes everything and leaves, unless this PE takes part in nothing any more. Once only.
    fn complete_and_leave(&self) {
        if std::thread::panicking() || self.barrier.is_closed() {
            return;
        }
        self.finish_collectives();
        if let Some(net) = &self.net {
            // Whoever sees that this PE has left finds its last messages there.
            net.flush();
        }
        self.quiet_all();
        self.quiet();
        self.leave();
        self.stop_service();
        if self.missed_by().is_some() {
            // The others go on, and may reach for this PE's memory, which is about to go.
            self.shut_channels();
        }
        self.barrier.close();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let is_orderly = !std::thread::panicking() && !self.barrier.is_closed();
        self.complete_and_leave();
        self.stop_service();
        let membership = self.job().take();
        if is_orderly
            && let Some(membership) = membership
            && let Err(error) = membership.finalize()
        {
            eprintln!("PE {}: leaving the job: {error}", self.me);
        }
        // Before the memory goes that operations under way read and write.
        self.shut_channels();
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("my_pe", &self.me).field("n_pes", &self.n_pes).finish_non_exhaustive()
    }
}
