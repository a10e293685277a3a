//! The state that a PE keeps of a team: its members, the places of their blocks, and the state of
//! operations.
//!
//! Invariant: all members of a team make the same collective calls in the same order.

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::call::Call;
use crate::base::error::{ErrorKind, Result};
use crate::base::label::{Labelled, ranges};
use crate::base::locked::{locked, try_locked};
use crate::coll::agreement_record::{
    AGREEMENT_DROPPED_WORDS, AGREEMENT_WORDS, AgreementRecord, Creation, Dropped, describe, dropped_of,
    intersect,
};
use crate::coll::block;
use crate::coll::children::{Children, Tie};
use crate::coll::direct::Direct;
use crate::coll::engine::TeamEngine;
use crate::coll::hierarchy::Hierarchy;
use crate::coll::nodes::Nodes;
use crate::coll::online::calls::TeamTuner;
use crate::coll::plans::Plans;
use crate::coll::schedule::Rank;
use crate::coll::symmetric_region::{Bases, SymmetricRegion};
use crate::coll::teams::Teams;
use crate::memory::heap::Heap;
use crate::memory::members::Members;
use crate::memory::segment::{AddressTable, Memory};
use pelago_boot::SyncMemoryKind;
use pelago_fabric::sync::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Teams and spaces made from one team that can be alive at once.
pub const CHILDREN_MAX: usize = AGREEMENT_DROPPED_WORDS * 64;
/// In an agreement record: this member has no room.
pub const NO_ROOM: u64 = u64::MAX;

/// The state that a PE keeps of a team.
pub struct TeamCore {
    pub members: Members,
    pub n: usize,
    pub me: Rank,
    /// Where the members' blocks lie.
    pub bases: Bases,
    /// Where they are mapped, by rank; empty if some are not.
    pub starts: AddressTable,
    /// Where this PE's own block is mapped, if all are.
    pub own: Start,
    /// Whether blocking operations take their direct forms with no other condition to check: no checks, no
    /// counting, no memory that a barrier frees.
    pub is_fast: bool,
    /// Whether the members meet at a counter rather than look at each other's words.
    pub meets_at_counter: bool,
    /// The nodes of the ranks; empty if all are on one.
    pub nodes: Nodes,
    /// The hierarchy of a team that not all members map, made when it is first needed.
    pub levels: OnceLock<Option<Box<Hierarchy>>>,
    pub plans: Mutex<Plans>,
    /// The state of the online tuner, made when it is first needed.
    pub online: OnceLock<Box<TeamTuner>>,
    /// The number of the last direct operation.
    pub sequence: AtomicU64,
    /// All members have begun this direct operation, as far as is known.
    pub begun_by_all: AtomicU64,
    /// Its block is used by a smaller team now.
    pub is_retired: AtomicBool,
    /// The number of the last agreement that this PE has begun, where members do not all map each other.
    pub agreed_last: AtomicU64,
    /// The number of the last exchange; held by the thread that exchanges.
    pub exchanges: Mutex<u64>,
    pub engine: Mutex<TeamEngine>,
    pub children: Mutex<Children>,
    /// The place among the children of the team that this one was made from; `None` for the team of all PEs.
    pub tie: Option<Arc<Tie>>,
    pub memory: BlockKind,
    /// See [`context`](TeamCore::context).
    context: u64,
}

/// A team, as its users share it.
pub type Team = Arc<TeamCore>;

/// The contents of a block: the strategy of its slots, and whether it has staging buffers.
pub type BlockKind = (SyncMemoryKind, bool);

/// Where the block of one member is mapped.
pub struct Start(pub *mut u8);

// SAFETY: an address of shared memory, whose words are accessed as atomics or through copies only.
unsafe impl Send for Start {}
// SAFETY: as for `Send`: the memory behind it is accessed as atomics or through copies only.
unsafe impl Sync for Start {}

impl TeamCore {
    /// The team of all PEs, whose blocks are the first in every pool.
    pub fn world(
        memory: &Memory,
        pool: &mut Heap,
        (me, n_pes): (Pe, usize),
        kind: BlockKind,
    ) -> Result<TeamCore> {
        let bytes = block::bytes(kind, n_pes);
        let offset = pool.alloc(bytes, block::ALIGN_BYTES).ok_or(ErrorKind::PoolExhausted {
            me,
            operation: "init",
            pe: me,
            asked_bytes: bytes,
        })?;
        let core = TeamCore::new(Members::all(n_pes), me, Bases::Same(offset), None, kind);
        Ok(core.mapped(memory))
    }

    pub fn new(members: Members, me: Rank, bases: Bases, tie: Option<Arc<Tie>>, kind: BlockKind) -> TeamCore {
        let n = members.len();
        let context = ((members.pe(0) as u64) << 40) ^ (bases.at(0) / block::ALIGN_BYTES) as u64;
        TeamCore {
            context,
            members,
            n,
            me,
            bases,
            starts: AddressTable::default(),
            own: Start(std::ptr::null_mut()),
            is_fast: false,
            meets_at_counter: false,
            nodes: Nodes::default(),
            levels: OnceLock::new(),
            plans: Mutex::default(),
            online: OnceLock::new(),
            sequence: AtomicU64::new(0),
            begun_by_all: AtomicU64::new(0),
            is_retired: AtomicBool::new(false),
            agreed_last: AtomicU64::new(0),
            exchanges: Mutex::new(0),
            engine: Mutex::new(TeamEngine::new(kind.0, n, me)),
            children: Mutex::default(),
            tie,
            memory: kind,
        }
    }

    /// This core with the addresses of the members' blocks, if all are mapped.
    pub fn mapped(mut self, memory: &Memory) -> TeamCore {
        if self.members.iter().all(|pe| memory.is_mapped(pe)) {
            let block = |rank| (self.members.pe(rank), self.bases.at(rank));
            self.starts = memory.parts((0..self.members.len()).map(block));
            self.own = Start(self.starts.0[self.me]);
        }
        self
    }

    /// The members.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// How many members there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.n
    }

    /// This PE's rank.
    #[inline]
    pub fn my_rank(&self) -> Rank {
        self.me
    }

    /// Whether a smaller team uses its block now, so that nothing can be started on it any more.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// A number that only the members' messages in this team have, among all teams that are alive: the first
    /// member and the place of its block.
    #[inline]
    pub fn context(&self) -> u64 {
        self.context
    }

    /// The PE of a rank.
    #[track_caller]
    pub fn pe(&self, rank: Rank) -> Pe {
        self.members.pe(rank)
    }

    /// Where a member's block lies in its region, in bytes.
    pub fn base(&self, rank: Rank) -> usize {
        self.bases.at(rank)
    }

    /// The number by which a member tells the team from all other teams that it is in and that are alive:
    /// the place of its block. A smaller team that goes on in the block has the same.
    #[inline]
    pub fn tag(&self, rank: Rank) -> u64 {
        (self.bases.at(rank) / block::ALIGN_BYTES) as u64
    }

    /// Where this PE's own block is mapped.
    pub fn own_start(&self, memory: &Memory) -> *mut u8 {
        // SAFETY: this PE has its block at this offset of its region.
        unsafe { memory.heap(self.pe(self.me)).add(self.bases.at(self.me)) }
    }

    /// The strategy of the members' slots.
    pub fn sync_memory(&self) -> SyncMemoryKind {
        self.memory.0
    }

    /// The members on this PE's node of a team that spans nodes, for direct operations in its blocks.
    pub fn of_node(world: &Teams, members: Members, me: Rank, bases: Bases) -> TeamCore {
        let mut node = TeamCore::new(members, me, bases, None, world.team.memory).mapped(&world.memory);
        node.meets_at_counter = world.meets_at_counter(node.len());
        node
    }

    /// Counts direct operations on from where another team with the same blocks is.
    pub fn go_on_after(&self, before: &TeamCore) {
        self.sequence.store(before.sequence.load(Ordering::Relaxed), Ordering::Relaxed);
        self.begun_by_all.store(before.begun_by_all.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub fn engine(&self) -> MutexGuard<'_, TeamEngine> {
        locked(&self.engine)
    }

    /// This core with the nodes of its members, and with the facts known of them and of the settings.
    #[track_caller]
    pub fn placed(mut self, world: &Teams) -> TeamCore {
        let (meets_at_counter, is_plain) = world.collectives.manners(world, self.len());
        self.tune(meets_at_counter, is_plain);
        self.on_nodes(|pe| world.node(pe))
    }

    /// This core with the nodes of its members, as `node` returns them.
    pub fn on_nodes(mut self, node: impl Fn(Pe) -> u32) -> TeamCore {
        let nodes: Vec<u32> = self.members.iter().map(node).collect();
        if nodes.iter().any(|&node| node != nodes[0]) {
            self.nodes = nodes.into();
        }
        self
    }

    /// Records how the members meet, and which checks direct operations must make.
    pub fn tune(&mut self, meets_at_counter: bool, is_plain: bool) {
        self.meets_at_counter = meets_at_counter;
        self.is_fast = self.is_mapped() && is_plain;
    }

    /// Keeps the place of the team or space that was made from this team.
    pub fn tie<T>(self: &Arc<Self>, created: &Created<T>) -> Tie {
        let block = created.block.expect("who is in it has a block");
        Tie::new(Arc::clone(self), created.number, block)
    }

    pub fn children(&self) -> MutexGuard<'_, Children> {
        locked(&self.children)
    }

    /// Lets a block of this PE's pool be given back together with the team's own; never, for the team of all
    /// PEs.
    pub fn keep_block(&self, block: (usize, usize)) {
        if let Some(tie) = &self.tie {
            tie.keep_block(block);
        }
    }

    /// Ends the job: the members do not make the same call, and no other member can report it, as one of
    /// them takes part in no agreement. `mine` is this PE's.
    #[cold]
    #[track_caller]
    pub fn fail_met(&self, world: &Teams, mine: &str, rank: Option<Rank>) -> ! {
        let me = world.my_pe();
        let whose = rank.map_or_else(|| "another PE".to_owned(), |rank| format!("PE {}", self.pe(rank)));
        world.fail(&format!(
            "PE {me}: {mine} of a team meets another collective call of {whose}. Every member must make the \
             same collective calls in the same order; PELAGO_CHECK=on names both"
        ))
    }

    /// Ends the job: this PE gives `mine` bytes to an operation to which a member gives `theirs`.
    #[cold]
    #[inline(never)]
    pub fn fail_sizes(
        &self,
        world: &Teams,
        operation: &str,
        (mine, rank, theirs): (usize, Rank, usize),
    ) -> ! {
        let (me, other) = (world.my_pe(), self.pe(rank));
        world.fail(&format!(
            "PE {me}: {operation} of a team, with messages of {mine} bytes between nodes, meets a call of PE \
             {other} with messages of {theirs} bytes. Every member must make the same collective calls with \
             the same sizes; PELAGO_CHECK=on names both"
        ))
    }

    /// Exchanges `own`, and gives the records of all members to `each`, in the order of the ranks. Nothing
    /// here grows with the team: `each` keeps as much of a record as its caller needs. It is an agreement:
    /// where a member makes a call of another kind, the job ends.
    #[track_caller]
    pub fn exchange(
        self: &Arc<Self>,
        world: &Teams,
        number: u64,
        own: &AgreementRecord,
        each: &mut dyn FnMut(Rank, &AgreementRecord),
    ) {
        let (team, record) = (Arc::clone(self), *own);
        let _labelled = Labelled::new(move || {
            let mut pes: Vec<Pe> = team.members.iter().collect();
            pes.sort_unstable();
            format!(" ({}, call {number} of the team of PEs {})", describe(&record), ranges(&pes))
        });
        if self.is_mapped() {
            let direct = Direct { world, team: self, operation: "exchange" };
            if let Err(rank) = direct.agree(own, each) {
                self.fail_met(world, &describe(own), Some(rank));
            }
        } else {
            world.exchange_by_schedule(self, (number, &describe(own)), own, each);
        }
    }

    /// Exchanges `own`, and makes sure that the call of all members is the same. The objects that all have
    /// dropped.
    #[track_caller]
    fn exchange_call(self: &Arc<Self>, world: &Teams, number: u64, own: &AgreementRecord) -> Result<Dropped> {
        let (mut other, mut dropped) = (None, dropped_of(own));
        self.exchange(world, number, own, &mut |rank, theirs| {
            other = other.or((theirs[..4] != own[..4]).then_some((rank, *theirs)));
            intersect(&mut dropped, theirs);
        });
        self.refuse_other(world, number, own, other)?;
        Ok(dropped)
    }

    /// Returns an error if there is another call of a member.
    pub fn refuse_other(
        &self,
        world: &Teams,
        sequence: u64,
        own: &AgreementRecord,
        other: Option<(Rank, AgreementRecord)>,
    ) -> Result<()> {
        let Some((rank, theirs)) = other else { return Ok(()) };
        let (me, pe, mine, theirs) = (world.my_pe(), self.pe(rank), describe(own), describe(&theirs));
        Err(ErrorKind::Mismatch { me, sequence, pe, mine, theirs }.into())
    }

    /// Lets the first `n` members go on without the others: they know that the others have begun to leave,
    /// and so no longer read the data that were shown to them.
    #[track_caller]
    pub fn leave_behind(self: &Arc<Self>, world: &Teams, n: usize) {
        let awaited = Awaited::Collective { operation: "shrink", pe: None };
        if !world.is_at_rest(self) {
            world.wait(awaited, || world.is_at_rest(self));
        }
        if self.is_mapped() {
            Direct { world, team: self, operation: "shrink" }.part_from(n);
            return;
        }
        // A member may have made its hierarchy for a look at the others only: all members are alike in
        // whether they have used it.
        let is_used = |levels: &&Hierarchy| levels.node.sequence.load(Ordering::Relaxed) > 0;
        if let Some(levels) = self.levels().filter(|levels| levels.node.is_mapped()).filter(is_used) {
            let stay = levels.node.members.iter().filter(|&pe| self.members.rank_of(pe) < Some(n)).count();
            Direct { world, team: &levels.node, operation: "shrink" }.part_from(stay);
        }
    }

    /// The right to exchange, for one thread of this PE at a time.
    #[track_caller]
    pub fn exchanging(&self, world: &Teams) -> MutexGuard<'_, u64> {
        try_locked(&self.exchanges).unwrap_or_else(|| {
            world.fail(&format!(
                "PE {}: two threads make collective calls on one team at the same time; let one do so, or \
                 take turns",
                world.my_pe()
            ))
        })
    }

    /// Lets all members make this call: an exchange after all of them have completed the operations that
    /// they have started, in which they compare their calls, and after which the arrays of `region` that
    /// all have dropped are reclaimed. The caller has the right to exchange.
    #[track_caller]
    pub fn agree(
        self: &Arc<Self>,
        world: &Teams,
        exchanges: &mut u64,
        region: &SymmetricRegion,
        call: Call,
    ) -> Result<()> {
        let dropped = region.arrays().dropped();
        world.quiet_all();
        *exchanges += 1;
        let [code, a, b] = call.words();
        // Tells spaces of one team apart.
        let mut record: AgreementRecord = [code, a, b, region.number(), 0, 0, 0, 0];
        record[4..].copy_from_slice(&dropped[..AGREEMENT_DROPPED_WORDS]);
        let mut dropped_by_all = dropped;
        let of_region = self.exchange_call(world, *exchanges, &record)?;
        dropped_by_all[..AGREEMENT_DROPPED_WORDS].copy_from_slice(&of_region);
        let offsets = region.arrays().reclaim(&dropped_by_all);
        let mut heap = region.heap();
        offsets.into_iter().for_each(|offset| heap.free(offset));
        Ok(())
    }

    /// Makes sure that all members make the same collective call.
    pub fn check_call(self: &Arc<Self>, world: &Teams, words: [u64; 4]) -> Result<()> {
        let mut exchanges = self.exchanging(world);
        *exchanges += 1;
        let mut record: AgreementRecord = [0; AGREEMENT_WORDS];
        record[..4].copy_from_slice(&words);
        self.exchange_call(world, *exchanges, &record).map(drop)
    }

    /// Gives back the memory of the teams and spaces made from this team that all members have dropped.
    /// Collective, an exchange.
    ///
    /// # Errors
    /// If a member makes another call.
    pub fn reclaim_children(self: &Arc<Self>, world: &Teams, call: Creation) -> Result<()> {
        let mut exchanges = self.exchanging(world);
        *exchanges += 1;
        let record = self.record_of_creation(world, call, 0);
        let dropped_by_all = self.exchange_call(world, *exchanges, &record)?;
        self.children().reclaim(world, &dropped_by_all);
        Ok(())
    }

    /// The record of a call that makes teams or a space, with the teams and spaces made from this team that
    /// this PE has dropped.
    #[track_caller]
    fn record_of_creation(&self, world: &Teams, call: Creation, offset: u64) -> AgreementRecord {
        let mut record: AgreementRecord = [call.code(), call.words[0], call.words[1], offset, 0, 0, 0, 0];
        let children = self.children();
        let (dropped, have_memory) = (children.dropped(), children.have_dropped_memory());
        drop(children);
        record[4..].copy_from_slice(&dropped);
        // Read the list first, then quiet: puts to a space that a thread has started before it dropped the
        // space are complete before the space's memory has another use.
        if have_memory {
            world.quiet_all();
        }
        record
    }

    /// The exchange of all members that makes teams or a space from this team: whether they make the same
    /// call, two words each, and a block of `bytes` bytes of their pools, if they need one. The memory of
    /// teams and spaces that all have dropped is given back. `keep` returns what is needed of a record.
    pub fn create<T>(
        self: &Arc<Self>,
        world: &Teams,
        call: Creation,
        bytes: Option<usize>,
        mut keep: impl FnMut(Rank, &AgreementRecord) -> T,
    ) -> Result<Created<T>> {
        let mut exchanges = self.exchanging(world);
        *exchanges += 1;
        let (me, operation) = (world.my_pe(), call.operation);
        let block = bytes.map(|bytes| world.pool_alloc(bytes));
        let offset = match block {
            None => 0,
            Some(None) => NO_ROOM,
            Some(Some(offset)) => offset as u64,
        };
        let own = self.record_of_creation(world, call, offset);
        let (mut other, mut without_room, mut dropped_by_all) = (None, None, dropped_of(&own));
        let mut told = Vec::with_capacity(self.len());
        self.exchange(world, *exchanges, &own, &mut |rank, theirs| {
            other = other.or((theirs[0] != own[0]).then_some((rank, *theirs)));
            without_room = without_room.or((theirs[3] == NO_ROOM).then_some(rank));
            intersect(&mut dropped_by_all, theirs);
            told.push(keep(rank, theirs));
        });
        let block = block.flatten().zip(bytes);
        let mut outcome = self.refuse_other(world, *exchanges, &own, other);
        if outcome.is_ok() {
            self.children().reclaim(world, &dropped_by_all);
            if let Some(rank) = without_room {
                let (pe, asked_bytes) = (self.pe(rank), bytes.unwrap_or(0));
                outcome = Err(ErrorKind::PoolExhausted { me, operation, pe, asked_bytes }.into());
            } else if self.children().len() == CHILDREN_MAX {
                outcome = Err(ErrorKind::TooManyTeams { me, operation, count: CHILDREN_MAX }.into());
            }
        }
        if let Err(error) = outcome {
            block.into_iter().for_each(|(at, bytes)| world.pool_free(at, bytes));
            return Err(error);
        }
        let number = self.children().add(block.is_some());
        Ok(Created { number, told, block })
    }
}

/// The result of the exchange that makes a team or space.
pub struct Created<T> {
    pub number: u64,
    /// The part of each member's record that is kept, by rank.
    pub told: Vec<T>,
    /// This PE's block: its offset and size in bytes.
    pub block: Option<(usize, usize)>,
}

impl Drop for TeamCore {
    fn drop(&mut self) {
        // All children are dropped here, as each keeps its parent. Their blocks go with this team's own.
        let children = std::mem::take(&mut *self.children());
        children.into_blocks().for_each(|block| self.keep_block(block));
    }
}
