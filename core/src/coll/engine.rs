//! The engine: runs the schedules of collective operations, many at once, on whatever carries puts.
//!
//! Invariant: an operation moves only in `drive`, which every wait of this PE calls while anything
//! is under way here, so that PEs that wait for different things serve each other. Steps begin in their
//! order; one that cannot go on stays where it is and is tried again.

mod arrival;
mod transfer;

use super::announced::Announced;
use super::block;
use super::block::pairs::OwnSlots;
use super::online::Online;
use super::reduction::Combiner;
use super::schedule::{Buffer, Place, Rank, Remote, Slot, Step};
use super::select::{Preferences, preferences};
use super::sync_memory::{
    self, ANNOUNCES, ArrayLease, Arrays, Data, Mark, PairLease, PairMark, PairMemory, Plan, SyncCounts,
};
use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::error::{ErrorKind, Result};
use crate::base::locked::{locked, try_locked};
use crate::base::trace::{Category, Event};
use crate::coll::symmetric_region::Bases;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::endpoint::RemoteAddress;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::job::Job;
use crate::job::callback::{self, Callback};
use crate::memory::route::Route;
use crate::memory::usage::{InUse, Usage};
use pelago_boot::{CollFormKind, Settings, SyncMemoryKind};
use pelago_fabric::copy;
use pelago_fabric::shm::doorbell::Cause;
use pelago_fabric::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard};

/// Looks of an operation that cannot go on between two questions whether a member agrees meanwhile, or the
/// other way round.
const LOOKS_PER_KIND_CHECK: u32 = 64;

/// The state of this PE's collective operations, for all teams.
pub struct Collectives {
    /// Changes with each step of an operation.
    moves: AtomicU64,
    prefers_direct: bool,
    is_checked: bool,
    frees_at_barrier: bool,
    /// Operations whose source and target overlap are accepted; the contents that they leave there are
    /// unspecified.
    bears_overlap: AtomicBool,
    preferences: Preferences,
    online: Option<Box<Online>>,
    pub running: Mutex<Running>,
}

#[derive(Default)]
pub struct Running {
    requests: Vec<Request>,
    /// Teams whose synchronisation memory has something to do.
    restless: Vec<Arc<TeamCore>>,
    /// Acknowledgements of the slots of pairs that are under way over a network without order, by their PEs.
    acknowledging: Vec<(Pe, CompletionCounter)>,
}

impl Collectives {
    /// # Errors
    /// If the settings name an algorithm that does not exist.
    pub fn new(settings: &Settings) -> Result<Collectives> {
        Ok(Collectives {
            moves: AtomicU64::new(0),
            prefers_direct: settings.coll_form == CollFormKind::Auto,
            is_checked: settings.check,
            frees_at_barrier: settings.sync_memory == SyncMemoryKind::Barrier,
            bears_overlap: AtomicBool::new(false),
            preferences: preferences(settings)?,
            online: Online::of(settings),
            running: Mutex::default(),
        })
    }

    /// Whether blocking operations take their direct forms where there are any.
    #[inline]
    pub fn prefers_direct(&self) -> bool {
        self.prefers_direct
    }

    /// From now on sources and targets may overlap, unless calls are checked.
    pub fn bear_overlap(&self) {
        self.bears_overlap.store(!self.is_checked, Ordering::Relaxed);
    }

    /// Whether sources and targets may overlap.
    pub fn bears_overlap(&self) -> bool {
        self.bears_overlap.load(Ordering::Relaxed)
    }

    /// Whether members compare their calls.
    #[inline]
    pub fn are_checked(&self) -> bool {
        self.is_checked
    }

    /// Whether direct operations have nothing to do but themselves.
    pub fn are_plain(&self) -> bool {
        self.prefers_direct && !self.is_checked && !self.frees_at_barrier
    }

    /// Whether a team of this many members meets at a counter, and whether a direct operation has no other
    /// work to do.
    pub fn manners(&self, job: &Job, n: usize) -> (bool, bool) {
        (job.meets_at_counter(n), self.are_plain() && !job.tally.is_on())
    }

    /// Whether barriers free the memory that operations synchronise on.
    pub fn frees_at_barrier(&self) -> bool {
        self.frees_at_barrier
    }

    pub fn preferences(&self) -> &Preferences {
        &self.preferences
    }

    /// The online tuner, if the job tunes its blocking operations itself.
    #[inline]
    pub fn online(&self) -> Option<&Online> {
        self.online.as_deref()
    }

    /// A number that changes when an operation moves.
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        locked(&self.running)
    }
}

/// The state that a member keeps of a team for scheduled operations.
#[derive(Debug)]
pub struct TeamEngine {
    /// The arrays that the team synchronises on; `None` if it uses the slots of pairs.
    arrays: Option<Arrays>,
    /// Ranks that the layout of the block is for; more than the team's, once it has shrunk.
    pub block_ranks: usize,
    /// Operations started, and admitted to the memory.
    started: u64,
    admitted: u64,
    /// Scratch memory that no operation uses: offset in the region and size, in bytes.
    scratch: Vec<(usize, usize)>,
}

impl TeamEngine {
    pub fn new(kind: SyncMemoryKind, n: usize, me: Rank) -> TeamEngine {
        TeamEngine {
            arrays: sync_memory::arrays(kind, n, me),
            block_ranks: n,
            started: 0,
            admitted: 0,
            scratch: Vec::new(),
        }
    }

    /// The engine of the first `n` members, when nothing is under way.
    pub fn shrunk(&mut self, n: usize) -> TeamEngine {
        let arrays = self.arrays.as_ref().map(|arrays| arrays.shrunk(n));
        TeamEngine { arrays, scratch: std::mem::take(&mut self.scratch), ..*self }
    }

    /// Whether the team synchronises on arrays of its own.
    pub fn has_arrays(&self) -> bool {
        self.arrays.is_some()
    }

    /// All members have passed a barrier of the team, with nothing under way on it.
    /// The last `own_arrays` arrays, the barrier has used for itself.
    pub fn barrier_passed(&mut self, own_arrays: usize) {
        if let Some(arrays) = &mut self.arrays {
            arrays.barrier_passed(own_arrays);
        }
    }
}

/// The state that an operation moves in: that of its team, and that of the slots of all teams.
struct Held<'a> {
    engine: &'a mut TeamEngine,
    pairs: &'a mut PairMemory,
    own: &'a OwnSlots<'a>,
}

/// The memory that an operation may use once it is admitted.
enum Lease {
    Array(ArrayLease),
    Pairs(PairLease),
}

/// A slot of another member that is to be signalled.
#[derive(Clone, Copy)]
enum Signal {
    /// Of an array, with its word.
    Array(Mark),
    Pair(PairMark),
}

impl Signal {
    /// The same, for a signal that announces a place.
    fn announcing(self) -> Signal {
        match self {
            Signal::Array(mark) => Signal::Array(Mark { word: mark.word | ANNOUNCES, ..mark }),
            Signal::Pair(mark) => Signal::Pair(mark.announcing()),
        }
    }

    /// The word, which is written next.
    fn seal(self, held: &mut Held<'_>) -> u64 {
        match self {
            Signal::Array(mark) => mark.word,
            Signal::Pair(mark) => held.pairs.seal(mark),
        }
    }
}

/// The memory that an operation works on.
#[derive(Clone)]
pub struct Operands {
    pub source: *const u8,
    pub source_bytes: usize,
    pub target: *mut u8,
    pub target_bytes: usize,
    /// Where the members' targets lie in their regions, by rank.
    pub target_bases: Bases,
    pub combiner: Option<Combiner>,
}

impl Operands {
    /// Those of an operation without data.
    pub fn none() -> Operands {
        let (source, target) = (std::ptr::null(), std::ptr::null_mut());
        let target_bases = Bases::Same(0);
        Operands { source, source_bytes: 0, target, target_bytes: 0, target_bases, combiner: None }
    }
}

// SAFETY: addresses of symmetric memory, accessed through opaque copies only, which the caller that starts an
// operation keeps until it is over.
unsafe impl Send for Operands {}
// SAFETY: as for `Send`: the memory behind them is accessed through opaque copies only.
unsafe impl Sync for Operands {}

/// The progress of an operation, for the threads that wait for it.
#[derive(Debug, Default)]
pub struct Progress {
    is_done: AtomicBool,
    /// The PE whose signal, or consent to another one, the next step needs, counted from 1; 0 if none.
    awaits: AtomicU32,
}

impl Progress {
    /// The PE that the operation waits for, when it was driven last.
    pub fn awaits(&self) -> Option<Pe> {
        (self.awaits.load(Ordering::Relaxed) as Pe).checked_sub(1)
    }

    pub fn is_done(&self) -> bool {
        // SYNC POINT collective: acquires the stores of the operation.
        self.is_done.load(Ordering::Acquire)
    }
}

/// A put whose data are under way and whose signal comes after them.
struct Following {
    data: CompletionCounter,
    to: Rank,
    signal: Signal,
    /// The data, if they are an announcement: kept until the put is complete.
    _announcement: Option<Box<[u64; 2]>>,
}

/// An operation under way.
struct Request {
    team: Arc<TeamCore>,
    operation: &'static str,
    /// Its place in the order of the team's operations.
    number: u64,
    plan: Arc<Plan>,
    operands: Operands,
    scratch: Option<(usize, usize)>,
    lease: Option<Lease>,
    /// The next step.
    at: usize,
    /// How often it could not go on.
    looks: u32,
    /// The values that the awaited signals have announced.
    announced: Vec<Announced>,
    /// The data that have come with signals of pairs, by the slots of the schedule. There is room for all,
    /// so that they stay where they are.
    mailboxes: Vec<(Slot, Data)>,
    transfers: Option<CompletionCounter>,
    /// Counts puts with signals, if they are one operation and their sources are in use.
    sources: Option<CompletionCounter>,
    following: Vec<Following>,
    progress: Arc<Progress>,
    /// Keeps the arrays from being reclaimed.
    _usages: [Option<InUse>; 2],
}

impl Teams {
    /// Starts a scheduled operation of a team.
    ///
    /// # Errors
    /// If the pool has no room for its scratch memory.
    ///
    /// # Safety
    /// The operands match the plan's shape: source and target have that many bytes, valid and left alone
    /// until the operation is over on every member; those of a plan that announces its source lie in this
    /// PE's region.
    pub unsafe fn start_collective(
        &self,
        team: &Arc<TeamCore>,
        operation: &'static str,
        plan: &Arc<Plan>,
        operands: Operands,
        usages: [Option<Arc<Usage>>; 2],
    ) -> Result<Arc<Progress>> {
        callback::forbid(self, operation);
        let progress = Arc::new(Progress::default());
        let mut running = self.collectives.running();
        let scratch = self.take_scratch(team, operation, plan.schedule.scratch_bytes)?;
        let number = {
            let mut engine = team.engine();
            engine.started += 1;
            engine.started
        };
        if team.is_mapped() {
            team.started(team.my_rank()).raise(number);
            // A member that sleeps in an agreement finds that this one makes another call.
            team.tell_begun(self);
        }
        running.requests.push(Request {
            team: Arc::clone(team),
            operation,
            number,
            plan: Arc::clone(plan),
            operands,
            scratch,
            lease: None,
            at: 0,
            looks: 0,
            announced: Vec::new(),
            mailboxes: Vec::new(),
            transfers: None,
            sources: None,
            following: Vec::new(),
            progress: Arc::clone(&progress),
            _usages: usages.map(|usage| usage.map(Usage::begin)),
        });
        self.active_operations.fetch_add(1, Ordering::Relaxed);
        drop(running);
        self.drive();
        Ok(progress)
    }

    /// A block of scratch memory of at least `bytes` bytes: its offset in the heap, and its size. `None` for
    /// 0 bytes.
    pub fn take_scratch(
        &self,
        team: &TeamCore,
        operation: &'static str,
        bytes: usize,
    ) -> Result<Option<(usize, usize)>> {
        if bytes == 0 {
            return Ok(None);
        }
        let mut engine = team.engine();
        let fitting = engine.scratch.iter().enumerate().filter(|(_, block)| block.1 >= bytes);
        if let Some((at, _)) = fitting.min_by_key(|(_, block)| block.1) {
            return Ok(Some(engine.scratch.swap_remove(at)));
        }
        let size = bytes.next_power_of_two();
        let me = self.my_pe();
        let block = self.pool_alloc(size);
        // The others start this operation: without this PE they would wait for ever.
        let Some(offset) = block else {
            let error: crate::Error =
                ErrorKind::PoolExhausted { me, operation, pe: me, asked_bytes: size }.into();
            self.fail(&error.to_string())
        };
        team.keep_block((offset, size));
        Ok(Some((offset, size)))
    }

    /// Gives a block of scratch memory back.
    pub fn give_scratch(&self, team: &TeamCore, scratch: Option<(usize, usize)>) {
        team.engine().scratch.extend(scratch);
    }

    /// Moves all collective operations of this PE as far as they can go now. `false` if this thread has
    /// moved none: another thread moves them, or a quiet is under way.
    #[track_caller]
    pub fn drive(&self) -> bool {
        if self.net.as_ref().is_some_and(|net| net.is_quieting()) {
            // Operations under way complete without this, and a caller that waits for them must not start
            // more.
            return false;
        }
        let Some(mut running) = try_locked(&self.collectives.running) else { return false };
        let Running { requests, restless, acknowledging } = &mut *running;
        let own = self.pair_block.own(&self.memory, self.my_pe());
        let mut pairs = self.pairs();
        // Dropped when no lock is held: one may be the last that keeps its team, whose end takes other locks.
        let over = requests.extract_if(.., |request| {
            let is_over = request.advance(self, &mut pairs, &own);
            if is_over
                && request.team.engine().arrays.is_some()
                && !restless.iter().any(|team| Arc::ptr_eq(team, &request.team))
            {
                restless.push(Arc::clone(&request.team));
            }
            is_over
        });
        let over: Vec<Request> = over.collect();
        if pairs.due() > 0 {
            self.acknowledge(&mut pairs, acknowledging);
        }
        let due = pairs.due();
        drop(pairs);
        self.free_arrays(requests, restless);
        self.active_operations.store((requests.len() + restless.len() + due) as u32, Ordering::Relaxed);
        drop(running);
        drop(over);
        true
    }

    /// Tells other PEs which slots of theirs are free again. Over a network without order the next word for a
    /// PE waits until the one before it has arrived, and nobody waits for that.
    #[cold]
    fn acknowledge(&self, pairs: &mut PairMemory, under_way: &mut Vec<(Pe, CompletionCounter)>) {
        const OPERATION: &str = "collective";
        under_way.retain(|(_, counter)| {
            let is_done = counter.is_done();
            if is_done {
                self.completions.release(counter.clone());
            }
            !is_done
        });
        let offset_bytes = self.pair_block.acknowledgement(self.my_pe());
        for (pe, word) in pairs.chores(|to| !under_way.iter().any(|(pe, _)| *pe == to)) {
            self.collectives.moves.fetch_add(1, Ordering::Relaxed);
            if self.routes.to(pe) != Route::Net || self.net_endpoint().signals(0) {
                self.write_word(pe, offset_bytes, word, OPERATION);
                continue;
            }
            let (target, bytes) =
                (RemoteAddress { operation: OPERATION, pe, offset_bytes }, word.to_ne_bytes());
            let counter = self.completions.open();
            // SAFETY: the word lies in the region; so few bytes are taken before the call returns.
            unsafe { self.net_endpoint().put(self, target, bytes.as_ptr(), bytes.len(), Some(&counter)) };
            under_way.push((pe, counter));
        }
    }

    /// Makes the progress that arrays of teams need.
    fn free_arrays(&self, requests: &[Request], restless: &mut Vec<Arc<TeamCore>>) {
        let mut teams: Vec<Arc<TeamCore>> = restless.clone();
        for request in requests.iter().filter(|request| !matches!(request.lease, Some(Lease::Pairs(_)))) {
            if !teams.iter().any(|team| Arc::ptr_eq(team, &request.team)) {
                teams.push(Arc::clone(&request.team));
            }
        }
        teams.iter().for_each(|team| self.do_chores(team));
        restless.retain(|team| team.engine().arrays.as_ref().is_some_and(|arrays| !arrays.is_at_rest()));
    }

    /// Makes the progress that the arrays of a team need, if it has any.
    fn do_chores(&self, team: &TeamCore) {
        let mut engine = team.engine();
        let ranks = engine.block_ranks;
        let Some(arrays) = &mut engine.arrays else { return };
        let own = team.own_start(&self.memory);
        // SAFETY: the words of the own block lie at these offsets and are accessed as atomics only.
        let word = |offset: usize| unsafe { &*own.add(offset).cast::<AtomicU64>() };
        // SYNC POINT mark: acquires that the member has begun to free the array.
        let word_at = |index| word(block::word_offset(ranks, index)).load(Ordering::Acquire);
        for (to, mark) in arrays.chores(&word_at) {
            self.collectives.moves.fetch_add(1, Ordering::Relaxed);
            let offset = block::word_offset(ranks, mark.index);
            self.write_word_at_once(team.pe(to), team.base(to) + offset, mark.word);
        }
    }

    /// The slots of pairs of this PE, which all its teams share.
    pub fn pairs(&self) -> MutexGuard<'_, PairMemory> {
        locked(&self.pairs)
    }

    /// The use of the memory that the operations of a team synchronise on.
    pub fn sync_counts(&self, team: &TeamCore) -> SyncCounts {
        let of_arrays = team.engine().arrays.as_ref().map(Arrays::counts);
        let of_pairs = || self.pairs().counts(&self.pair_block.own(&self.memory, self.my_pe()));
        of_arrays.unwrap_or_else(of_pairs)
    }

    /// As `write_word`, and waits until the word is there, unless words come in order: the next one for the
    /// same place must not arrive before.
    fn write_word_at_once(&self, pe: Pe, offset_bytes: usize, value: u64) {
        const OPERATION: &str = "collective";
        if self.routes.to(pe) != Route::Net || self.net_endpoint().signals(0) {
            return self.write_word(pe, offset_bytes, value, OPERATION);
        }
        let (target, word) = (RemoteAddress { operation: OPERATION, pe, offset_bytes }, value.to_ne_bytes());
        self.track((OPERATION, pe), CompletionCounter::is_done, |counter| {
            // SAFETY: the word lies in the region; `track` does not return before the put is complete.
            unsafe { self.net_endpoint().put(self, target, word.as_ptr(), word.len(), Some(counter)) };
        });
    }

    /// Writes a word of another PE's region, after all that this PE has written there by stores, and wakes
    /// it if it sleeps.
    fn write_word(&self, pe: Pe, offset_bytes: usize, value: u64, operation: &'static str) {
        if self.routes.to(pe) == Route::Net {
            let (net, target) = (self.net_endpoint(), RemoteAddress { operation, pe, offset_bytes });
            let word = value.to_ne_bytes();
            // SAFETY: the word lies in the region, aligned; without a counter the source is free when this
            // returns.
            unsafe {
                match net.signals(0) {
                    true => net.set_word(self, target, value),
                    false => net.put(self, target, word.as_ptr(), word.len(), None),
                }
            }
            return;
        }
        // SAFETY: the word lies in the region, aligned, and is accessed as an atomic only.
        let word = unsafe { &*self.memory.heap(pe).add(offset_bytes).cast::<AtomicU64>() };
        // SYNC POINT mark: releases the earlier stores and loads of this PE.
        // SYNC POINT acknowledgement: likewise.
        word.store(value, Ordering::Release);
        // SYNC POINT doorbell: orders the change before the look at the sleepers.
        fence(Ordering::SeqCst);
        if self.memory.header().sleepers.any() {
            let doorbell = &self.memory.near_block(pe).doorbell;
            doorbell.ring(Cause::Data);
            doorbell.ring(Cause::Meeting);
        }
    }

    /// Whether no operation is under way on a team here, and nothing is to be done for its memory.
    pub fn is_at_rest(&self, team: &Arc<TeamCore>) -> bool {
        callback::forbid(self, "an end of operations under way");
        let running = self.collectives.running();
        !running.requests.iter().any(|request| Arc::ptr_eq(&request.team, team))
            && !running.restless.iter().any(|restless| Arc::ptr_eq(restless, team))
    }

    /// Completes the operations under way here, whether a thread waits for them or not: other PEs may need
    /// them.
    #[track_caller]
    pub fn finish_collectives(&self) {
        if self.has_active_operations() {
            callback::forbid(self, "an end of operations under way");
            let awaited = Awaited::Collective { operation: "the end of the job", pe: None };
            self.wait(awaited, || !self.has_active_operations());
        }
    }
}

impl Request {
    /// Goes on as far as it can; whether it is over.
    fn advance(&mut self, world: &Teams, pairs: &mut PairMemory, own: &OwnSlots<'_>) -> bool {
        let team = Arc::clone(&self.team);
        let mut engine = team.engine();
        let mut held = Held { engine: &mut engine, pairs, own };
        if self.lease.is_none() {
            if held.engine.admitted + 1 != self.number || !self.admit(&mut held) {
                return false;
            }
            held.engine.admitted += 1;
            world.collectives.moves.fetch_add(1, Ordering::Relaxed);
        }
        self.follow(world, &mut held);
        let plan = Arc::clone(&self.plan);
        while let Some(step) = plan.schedule.steps.get(self.at) {
            if !self.perform(world, &mut held, step) {
                let awaited = match *step {
                    Step::Wait { of: rank, .. }
                    | Step::Put { to: rank, .. }
                    | Step::Signal { to: rank, .. } => self.team.pe(rank) + 1,
                    _ => 0,
                };
                self.progress.awaits.store(awaited as u32, Ordering::Relaxed);
                self.wait_on(world, &mut held);
                return false;
            }
            world.tally.note(|| self.event(step));
            self.at += 1;
            world.collectives.moves.fetch_add(1, Ordering::Relaxed);
        }
        // Only operations that this PE has started itself are left: the PE that it awaited last may leave
        // meanwhile.
        self.progress.awaits.store(0, Ordering::Relaxed);
        if !self.is_complete(world, &mut held) {
            return false;
        }
        if let (Some(arrays), Some(Lease::Array(lease))) = (&mut held.engine.arrays, &self.lease) {
            arrays.end(*lease);
        }
        self.mailboxes.drain(..).for_each(|(_, data)| held.pairs.give(data));
        held.engine.scratch.extend(self.scratch.take());
        let completions = self.transfers.take().into_iter().chain(self.sources.take());
        completions.for_each(|counter| world.completions.release(counter));
        // SYNC POINT collective: releases the stores of the operation.
        self.progress.is_done.store(true, Ordering::Release);
        true
    }

    /// Takes the memory that the operation synchronises on; `false` if there is none yet.
    fn admit(&mut self, held: &mut Held<'_>) -> bool {
        let team = &self.team;
        self.lease = match &mut held.engine.arrays {
            Some(arrays) => arrays.admit().map(Lease::Array),
            None => {
                let tag = team.tag(team.my_rank());
                Some(Lease::Pairs(held.pairs.admit(&self.plan, tag, |rank| team.pe(rank))))
            }
        };
        self.lease.is_some()
    }

    /// A step that is done, as an event of the record.
    fn event(&self, step: &Step) -> Event {
        let (name, rank, bytes) = match *step {
            Step::Put { to, bytes, .. } => ("put", Some(to), bytes),
            Step::Get { of, bytes, .. } => ("get", Some(of), bytes),
            Step::Signal { to, .. } => ("signal", Some(to), 0),
            Step::Wait { of, .. } => ("awaited", Some(of), 0),
            Step::Complete => ("complete", None, 0),
            Step::Copy { bytes, .. } => ("copy", None, bytes),
            Step::CopyStrided { block, count, .. } => ("copy", None, block * count),
            Step::Reduce { bytes, .. } => ("combine", None, bytes),
        };
        let event = Event::new(Category::Step, name).detailed(self.operation).of_bytes(bytes);
        Event { peer: rank.map(|rank| self.team.pe(rank)), ..event }
    }

    /// Makes the progress that another PE may need while this operation cannot go on, and checks from time
    /// to time that other members make the same call.
    fn wait_on(&mut self, world: &Teams, held: &mut Held<'_>) {
        self.looks = self.looks.wrapping_add(1);
        let checks = self.looks.is_multiple_of(LOOKS_PER_KIND_CHECK);
        if let Some(Lease::Pairs(lease)) = &self.lease {
            let (team, plan) = (&self.team, &self.plan);
            let other = held.pairs.take_ahead((plan, lease), checks, |rank| team.pe(rank), held.own);
            if let Some(pe) = other {
                self.fail_other_kind(world, team.members().rank_of(pe));
            }
        } else if checks {
            self.check_kinds(world, held.engine);
        }
    }

    /// Begins a step; `false` if it cannot begin or is not over yet.
    fn perform(&mut self, world: &Teams, held: &mut Held<'_>, step: &Step) -> bool {
        match *step {
            Step::Put { to, from, into, bytes, signal } => {
                self.put(world, held, (to, signal), from, into, bytes)
            }
            Step::Get { of, from, into, bytes } => {
                let from = self.remote(world, of, (from, bytes));
                let into = self.place(world, held.engine, into);
                self.get(world, of, from, into, bytes);
                true
            }
            Step::Signal { to, slot, announces } => self.signal(world, held, to, slot, announces),
            Step::Wait { of, slot } => self.has_come(world, held, of, slot),
            Step::Complete => self.is_complete(world, held),
            Step::Copy { from, into, bytes } => {
                let (from, into) =
                    (self.place(world, held.engine, from), self.place(world, held.engine, into));
                if from.cast_const() != into.cast_const() {
                    // SAFETY: by the plan's shape both places have this many bytes, and they do not overlap.
                    unsafe { copy::copy(into, from, bytes) };
                }
                true
            }
            Step::CopyStrided { from, from_stride, into, into_stride, block, count } => {
                let (from, into) =
                    (self.place(world, held.engine, from), self.place(world, held.engine, into));
                for i in 0..count {
                    // SAFETY: by the plan's shape all blocks lie in source, target and scratch memory.
                    unsafe { copy::copy(into.add(i * into_stride), from.add(i * from_stride), block) };
                }
                true
            }
            Step::Reduce { left, right, into, bytes } => {
                let [left, right, into] =
                    [left, right, into].map(|place| self.place(world, held.engine, place));
                let combiner = self.operands.combiner.as_ref();
                let combiner = combiner.expect("an operation that combines has a combiner");
                // SAFETY: by the plan's shape the places have this many bytes.
                let combine = || unsafe { combiner.combine(left, right, into, bytes) };
                match combiner.is_function() {
                    true => callback::run(world, Callback::Function(self.operation), combine),
                    false => combine(),
                }
                true
            }
        }
    }

    /// A member agrees where this operation is none, or the other way round.
    #[cold]
    fn fail_other_kind(&self, world: &Teams, of: Option<Rank>) -> ! {
        match &self.plan.agreement {
            Some(said) => self.team.fail_met(world, said, of),
            None => self.team.fail_met(world, self.operation, of),
        }
    }

    /// Whether all transfers so far are complete and their signals on the way, or, for puts with signals
    /// that are one operation, whether their sources are free.
    fn is_complete(&mut self, world: &Teams, held: &mut Held<'_>) -> bool {
        self.follow(world, held);
        self.following.is_empty()
            && self.transfers.as_ref().is_none_or(CompletionCounter::is_done)
            && self.sources.as_ref().is_none_or(CompletionCounter::is_sent)
    }

    fn transfers(&mut self, world: &Teams) -> CompletionCounter {
        self.transfers.get_or_insert_with(|| world.completions.open()).clone()
    }

    fn sources(&mut self, world: &Teams) -> CompletionCounter {
        self.sources.get_or_insert_with(|| world.completions.open()).clone()
    }

    /// Where a place of the own memory is.
    fn place(&self, world: &Teams, engine: &TeamEngine, place: Place) -> *mut u8 {
        let start = match place.buffer {
            Buffer::Source => self.operands.source.cast_mut(),
            Buffer::Target => self.operands.target,
            Buffer::Scratch => {
                let (offset, _) = self.scratch.expect("a schedule that names scratch memory says how much");
                world.memory.heap(world.my_pe()).wrapping_add(offset)
            }
            Buffer::Mailbox(slot) => match (&engine.arrays, &self.lease) {
                (Some(arrays), Some(Lease::Array(lease))) => {
                    let index = arrays.mark(&self.plan, *lease, slot).index;
                    let mailbox = block::mailbox_offset(engine.block_ranks, index);
                    self.team.own_start(&world.memory).wrapping_add(mailbox)
                }
                _ => {
                    let mailbox = self.mailboxes.iter().find(|(of, _)| *of == slot);
                    match &mailbox.expect("a step reads a mailbox after the wait for its signal").1 {
                        Data::Datum(datum) => std::ptr::from_ref(datum).cast::<u8>().cast_mut(),
                        Data::Mailbox(bytes) => bytes.0.as_ptr().cast_mut(),
                    }
                }
            },
        };
        start.wrapping_add(place.offset)
    }

    /// Where `bytes` bytes of another member's memory are, from the start of its region. They lie in the
    /// array that is this PE's target as well, or in the place that the member has announced.
    fn remote(&self, world: &Teams, rank: Rank, (remote, bytes): (Remote, usize)) -> usize {
        match remote {
            Remote::Target(offset) => self.operands.target_bases.at(rank) + offset,
            Remote::Mailbox => unreachable!("a mailbox belongs to the slot that is signalled"),
            Remote::Announced { slot, offset } => {
                let place = self.announced.iter().find(|announced| announced.slot == slot);
                let at = place.and_then(|place| place.at(offset, bytes, world.memory.region_bytes()));
                at.unwrap_or_else(|| self.fail_unannounced(world, rank, bytes))
            }
        }
    }

    /// Reports that a member has announced a place that does not have this many bytes: it makes another call
    /// than this PE.
    #[cold]
    #[track_caller]
    fn fail_unannounced(&self, world: &Teams, rank: Rank, bytes: usize) -> ! {
        let (me, pe, operation) = (world.my_pe(), self.team.pe(rank), self.operation);
        world.fail(&format!(
            "PE {me}: {operation} of a team has {bytes} bytes to exchange with PE {pe}, which has announced \
             no place for them. All members must give the same sizes; PELAGO_CHECK=on tells who does not"
        ))
    }
}
