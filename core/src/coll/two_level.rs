//! Blocking operations of a team that spans nodes: directly within each node, by messages between the nodes,
//! and directly within each node again (Kielmann et al. 1999, MagPIe; hierarchical collectives of MPICH and
//! Open MPI).
//!
//! Leaders exchange small data through their staging buffers, by one message each way and round. Larger data
//! take a schedule of the leaders. From [`SPLIT_BYTES`] on, the members of a node lead a part of an
//! all-reduce each.
//!
//! Invariant: every member takes the same way, as it follows from the call, the settings, and the nodes of
//! the ranks. Each result is computed in the same order at all members.

use super::call::Call;
use super::candidates::Candidate;
use super::direct::Direct;
use super::engine::{Operands, Progress};
use super::hierarchy::Hierarchy;
use super::operand::Operand;
use super::plans::{Among, Key};
use super::reduction::Combiner;
use super::schedule::Rank;
use super::select::{self, Reason};
use super::shape::{Blocks, Operation, Shape};
use super::staging::{self, PACKED_BYTES, Page, PageSpace, Staging, staged_bytes};
use super::sync_memory::Plan;
use crate::base::error::Result;
use crate::base::vote::Vote;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::job::callback::{self, Callback};
use pelago_fabric::copy;
use std::sync::Arc;

mod estimate;
mod pairs;

/// From here on the members of a node lead a part of an all-reduce each.
const SPLIT_BYTES: usize = 64 << 10;

/// How a call is done, with sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By a message in a staging buffer, which holds all of it.
    Staged,
    /// By a staging buffer that holds the blocks of all ranks, which are combined in their order.
    StagedInOrder,
    /// By one message between each pair of leaders.
    Pairs,
    /// By a schedule of the leaders.
    Leaders,
    /// By schedules of as many leaders a node.
    Parts(usize),
}

/// A blocking operation of a team in two levels.
pub struct TwoLevel<'a> {
    world: &'a Teams,
    team: &'a Arc<TeamCore>,
    levels: &'a Hierarchy,
    operation: &'static str,
    /// The algorithm of the leaders, if it is not the usual one.
    leaders_by: Option<Candidate>,
}

impl TeamCore {
    /// Does a call in two levels; `None` if it is to be a schedule of all members. The leaders take this
    /// algorithm, if one is given.
    #[track_caller]
    pub fn perform_in_levels(
        self: &Arc<Self>,
        world: &Teams,
        call: &Call<'_>,
        leaders_by: Option<Candidate>,
    ) -> Option<Result<()>> {
        let team = self;
        let levels = team.levels_for(world, call)?;
        let way = way(world, team, levels, call)?;
        levels.begins_call();
        let _span = call.record(world, "two levels");
        let operation = TwoLevel { world, team, levels, operation: call.name(), leaders_by };
        let Some((target, source)) = call.operands else {
            operation.sync();
            return Some(Ok(()));
        };
        // SAFETY: the call was checked: all places lie in their arrays, which all members have.
        unsafe {
            match way {
                Way::Staged => operation.staged(call, source.own, target.own),
                Way::StagedInOrder => operation.staged_in_order(call, source.own, target.own),
                Way::Pairs => operation.by_pairs(call, target, source),
                Way::Leaders => return Some(operation.by_leaders(call, target, source)),
                Way::Parts(parts) => return Some(operation.by_parts(call, parts, target, source)),
            }
        }
        Some(Ok(()))
    }
}

impl TeamCore {
    /// Does a small call, whose operands are memory of the members' own and need not be symmetric, in two
    /// levels. Returns whether it was done, alike at all members.
    ///
    /// # Safety
    /// Source and target have as many bytes as the call needs.
    #[track_caller]
    pub unsafe fn perform_small_in_levels(
        self: &Arc<Self>,
        world: &Teams,
        call: &Call<'_>,
        (source, target): (*const u8, *mut u8),
    ) -> bool {
        let Some(levels) = self.levels_for(world, call) else { return false };
        let way = way(world, self, levels, call);
        let is_small = match way {
            Some(Way::Staged | Way::StagedInOrder) => true,
            Some(Way::Pairs) => pairs::fit_hand_over(self.len(), call),
            _ => false,
        };
        if !is_small {
            return false;
        }
        levels.begins_call();
        let _span = call.record(world, "two levels");
        let operation = TwoLevel { world, team: self, levels, operation: call.name(), leaders_by: None };
        // SAFETY: the caller has promised both. These ways look at no other member's memory.
        unsafe {
            match way {
                Some(Way::StagedInOrder) => operation.staged_in_order(call, source, target),
                Some(Way::Pairs) => operation.by_pairs_handed_over(call, source, target),
                _ => operation.staged(call, source, target),
            }
        }
        true
    }

    /// How a call is done in two levels: `None` if it is not, otherwise the shape of the schedule of the
    /// leaders, if there is one. The shape is the same at all members but for the rank.
    pub fn levels_of(&self, world: &Teams, call: &Call<'_>) -> Option<Option<Shape>> {
        let levels = self.levels_for(world, call)?;
        let parts = match way(world, self, levels, call)? {
            Way::Leaders => 1,
            Way::Parts(parts) => parts,
            Way::Staged | Way::StagedInOrder | Way::Pairs => return Some(None),
        };
        let part = Call { count: call.count.div_ceil(parts), ..call.clone() };
        Some(Some(shape_among(levels, &part, false)))
    }

    /// The hierarchy for a call, if it may be done in two levels.
    #[track_caller]
    pub fn levels_for(&self, world: &Teams, call: &Call<'_>) -> Option<&Hierarchy> {
        if self.is_mapped() || !world.collectives.prefers_direct() {
            return None;
        }
        // A function of a reduction is called under the lock that the hierarchy is made with.
        callback::forbid(world, call.name());
        let levels = self.hierarchy(world)?;
        let is_wanted =
            || levels.serves_all || world.collectives.preferences().wants_levels(&call.shape(self));
        (matches!(call.blocks, Blocks::Equal) && is_wanted()).then_some(levels)
    }

    /// A meeting of the members in two levels; whether there are any.
    #[track_caller]
    pub fn sync_in_levels(self: &Arc<Self>, world: &Teams) -> bool {
        let Some(levels) = self.levels_for_barrier(world) else { return false };
        levels.sync();
        true
    }

    /// The same with a vote of the PEs: `None` if no meeting was held because there are no levels.
    #[track_caller]
    pub fn vote_in_levels(self: &Arc<Self>, world: &Teams, sequence: u64, vote: Vote) -> Option<Vote> {
        let levels = self.levels_for_barrier(world)?;
        Some(levels.sync_voting(sequence, vote))
    }

    #[track_caller]
    fn levels_for_barrier<'a>(self: &'a Arc<Self>, world: &'a Teams) -> Option<TwoLevel<'a>> {
        let levels = self.levels_for(world, &Call::barrier())?;
        levels.begins_call();
        Some(TwoLevel { world, team: self, levels, operation: "barrier", leaders_by: None })
    }
}

/// How a call is done in two levels, if it pays.
fn way(world: &Teams, team: &TeamCore, levels: &Hierarchy, call: &Call<'_>) -> Option<Way> {
    use Operation::*;
    let (n, bytes) = (team.len(), call.count * call.element_bytes);
    let all = bytes.saturating_mul(n);
    let is_shared = levels.groups.len() < n;
    // Mates hand their data over by pages.
    let most = if is_shared { PACKED_BYTES } else { staged_bytes(world) };
    let staged = |bytes: usize| (bytes <= most).then_some(Way::Staged);
    let in_order = |bytes: usize| (bytes <= most).then_some(Way::StagedInOrder);
    // Each leader sends all blocks in each round, those included that the receiver has or does not need.
    let all_staged = |bytes: usize| (bytes <= PACKED_BYTES).then_some(Way::Staged);
    let has_pairs = Staging::has_pairs(levels);
    let pairs = |bytes: usize| (has_pairs && bytes <= staged_bytes(world)).then_some(Way::Pairs);
    // Two nodes need one message each way in both forms, and it is shorter by pairs.
    let are_two = levels.groups.len() == 2;
    // Nodes whose ranks are not one range each are combined node by node all the same where operands may
    // change places.
    let combines_by_nodes = call.combiner.as_ref().is_none_or(|combiner| {
        let keeps_ranks = world.collectives.preferences().keeps_ranks(combiner.laws());
        !keeps_ranks && (levels.is_ordered || combiner.is_commutative())
    });
    match call.operation {
        Barrier => Some(Way::Staged),
        Broadcast => staged(bytes).or(is_shared.then_some(Way::Leaders)),
        Scatter | Gather => all_staged(all),
        AllGather => all_staged(all)
            .filter(|_| !are_two)
            .or(pairs(levels.most.saturating_mul(bytes)))
            .or((is_shared && levels.is_ordered).then_some(Way::Leaders)),
        AllToAll => all_staged(all.saturating_mul(n))
            .filter(|_| !are_two || call.is_in_place())
            .or(pairs(pairs::message_bytes(levels, bytes)).filter(|_| !call.is_in_place())),
        Reduce | AllReduce if !combines_by_nodes => in_order(all),
        Reduce => staged(bytes),
        AllReduce => staged(bytes).or_else(|| {
            let parts = if bytes >= SPLIT_BYTES { levels.least } else { 1 };
            is_shared.then_some(if parts > 1 { Way::Parts(parts) } else { Way::Leaders })
        }),
        ReduceScatter if !combines_by_nodes => None,
        ReduceScatter => all_staged(all),
        InclusiveScan | ExclusiveScan => in_order(all).filter(|_| !levels.groups.suit_chains()),
    }
}

impl TwoLevel<'_> {
    fn node(&self) -> Direct<'_> {
        Direct { world: self.world, team: &self.levels.node, operation: self.operation }
    }

    /// A hand-over area of a member of the node: the one of its source, or the one of its target.
    fn hand_over_area(&self, place: usize, area: usize) -> *mut u8 {
        let levels = self.levels;
        let offset = levels.staging_offset + staging::hand_over_offset(levels.block_ranks, area);
        let start = match place == levels.node.my_rank() {
            true => levels.own_start.0,
            false => levels.node.starts.0[place],
        };
        start.wrapping_add(offset)
    }

    fn staging(&self) -> Staging<'_> {
        Staging { world: self.world, team: self.team, levels: self.levels, operation: self.operation }
    }

    /// Whether other members are on this node.
    fn has_mates(&self) -> bool {
        self.levels.node.len() > 1
    }

    /// Waits until all members have come.
    #[track_caller]
    fn sync(&self) {
        if self.has_mates() {
            self.node().finish_at(0);
        }
        if self.levels.is_leader() {
            let mut space = PageSpace::UNUSED;
            self.staging().exchange(&mut space.zeroed(0), |_, _, _| ());
        }
        if self.has_mates() {
            self.node().release_from(0);
        }
        self.levels.have_met();
    }

    /// Waits until all members have come: the votes of all, joined, of which this PE gives `vote`. If others
    /// only meet, the outcome is void.
    #[track_caller]
    fn sync_voting(&self, sequence: u64, mut vote: Vote) -> Vote {
        let members = self.levels.node.members();
        if self.has_mates() {
            self.node().finish_at(0);
        }
        if self.levels.is_leader() {
            members.iter().skip(1).for_each(|pe| vote.join(&self.world.vote_of(pe, sequence)));
            self.staging().join_votes(&mut vote);
            self.world.publish_outcome(sequence, &vote);
        }
        if self.has_mates() {
            self.node().release_from(0);
        }
        if !self.levels.is_leader() {
            vote = self.world.outcome_of(members.pe(0), sequence);
        }
        self.levels.have_met();
        vote
    }

    /// An operation whose data fit into staging buffers.
    ///
    /// # Safety
    /// The places are valid as the call requires; the same holds for all functions that follow.
    #[track_caller]
    unsafe fn staged(&self, call: &Call<'_>, source: *const u8, target: *mut u8) {
        let (n, me, bytes) = (self.team.len(), self.team.my_rank(), call.count * call.element_bytes);
        let mut space = PageSpace::UNUSED;
        let mut page = space.zeroed(match call.operation {
            Operation::Barrier => 0,
            Operation::Broadcast | Operation::Reduce | Operation::AllReduce => bytes,
            Operation::AllToAll => n * n * bytes,
            _ => n * bytes,
        });
        // SAFETY: the caller has promised source and target; a page holds the staged data.
        unsafe {
            match call.operation {
                Operation::Barrier => self.sync(),
                Operation::Broadcast => self.broadcast(call.root, source, target, &mut page, bytes),
                Operation::Scatter => {
                    let mut space = PageSpace::UNUSED;
                    let mut all = space.zeroed(n * bytes);
                    self.broadcast(call.root, source, all.start(), &mut page, n * bytes);
                    if me != call.root || target.cast_const() != source.add(me * bytes) {
                        copy::transfer(target, all.start().add(me * bytes), bytes);
                    }
                }
                Operation::Gather => {
                    self.gather(source, &mut page, bytes);
                    self.hand_over(call.root, &mut page, target, n * bytes);
                }
                Operation::AllGather => {
                    self.gather(source, &mut page, bytes);
                    self.spread_to_all(&mut page, target, n * bytes);
                }
                Operation::AllToAll => {
                    let mut space = PageSpace::UNUSED;
                    let mut all = space.zeroed(n * n * bytes);
                    self.gather(source, &mut page, n * bytes);
                    self.spread_to_all(&mut page, all.start(), n * n * bytes);
                    for rank in 0..n {
                        let block = all.start().add((rank * n + me) * bytes);
                        copy::transfer(target.add(rank * bytes), block, bytes);
                    }
                }
                Operation::Reduce => {
                    self.reduce(call.combiner(), source, &mut page, bytes);
                    self.hand_over(call.root, &mut page, target, bytes);
                }
                Operation::AllReduce => {
                    self.reduce(call.combiner(), source, &mut page, bytes);
                    self.spread_to_all(&mut page, target, bytes);
                }
                Operation::ReduceScatter => {
                    let mut space = PageSpace::UNUSED;
                    let mut all = space.zeroed(n * bytes);
                    self.reduce(call.combiner(), source, &mut page, n * bytes);
                    self.spread_to_all(&mut page, all.start(), n * bytes);
                    copy::transfer(target, all.start().add(me * bytes), bytes);
                }
                Operation::InclusiveScan | Operation::ExclusiveScan => unreachable!("scans keep an order"),
            }
        }
    }

    /// An operation that combines blocks in the order of ranks, all of which fit into a staging buffer.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn staged_in_order(&self, call: &Call<'_>, source: *const u8, target: *mut u8) {
        let (n, me, bytes) = (self.team.len(), self.team.my_rank(), call.count * call.element_bytes);
        let (mut own_space, mut space) = (PageSpace::UNUSED, PageSpace::UNUSED);
        let (mut page, mut all) = (own_space.zeroed(n * bytes), space.zeroed(n * bytes));
        // SAFETY: the caller has promised source and target; a page holds the blocks of all ranks.
        unsafe {
            self.gather(source, &mut page, bytes);
            self.spread_to_all(&mut page, all.start(), n * bytes);
            let operands = match call.operation {
                Operation::Reduce if me != call.root => 0,
                Operation::InclusiveScan => me + 1,
                Operation::ExclusiveScan => me,
                _ => n,
            };
            let blocks: Vec<_> =
                (0..operands).map(|rank| all.start().add(rank * bytes).cast_const()).collect();
            if !blocks.is_empty() {
                self.run(call.combiner(), |combiner| combiner.fold(&blocks, target, bytes));
            }
        }
    }

    /// Runs the combiner, as user's code if it is a function.
    fn run(&self, combiner: &Combiner, combine: impl FnOnce(&Combiner)) {
        match combiner.is_function() {
            true => callback::run(self.world, Callback::Function(self.operation), || combine(combiner)),
            false => combine(combiner),
        }
    }

    /// Combines the sources in the leaders' pages.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn reduce(&self, combiner: &Combiner, source: *const u8, page: &mut Page<'_>, bytes: usize) {
        let start = page.start();
        // SAFETY: the caller has promised the source; a page holds the staged data.
        unsafe {
            match self.has_mates() {
                true => {
                    let node = self.node();
                    node.reduce(combiner, Some(0), &|_| source.cast_mut(), &|_| start, bytes);
                }
                false => copy::copy(start, source, bytes),
            }
        }
        if self.levels.is_leader() {
            self.combine_pages(combiner, page, bytes);
        }
    }

    /// Combines the pages of all leaders.
    #[track_caller]
    fn combine_pages(&self, combiner: &Combiner, page: &mut Page<'_>, bytes: usize) {
        self.staging().exchange(page, |own, other, is_left| {
            let (own, other) = (own.start(), other.start());
            let (left, right) = if is_left { (other, own) } else { (own, other) };
            // SAFETY: pages hold the staged data, whole elements, and are aligned.
            self.run(combiner, |combiner| unsafe { combiner.combine(left, right, own, bytes) });
        });
    }

    /// Whether the leaders combine by one message each way and round: their data fit, and nobody has chosen
    /// another algorithm for them.
    fn fits_page(&self, call: &Call<'_>) -> bool {
        if call.count * call.element_bytes > staged_bytes(self.world) || self.leaders_by.is_some() {
            return false;
        }
        let (shape, laws) = (shape_among(self.levels, call, true), call.combiner().laws());
        let choice = self.world.collectives.preferences().choose(&shape, Some(laws));
        choice.is_some_and(|choice| choice.reason == Reason::BuiltIn)
    }

    /// Combines the data of all leaders at `data`, which fit into a page.
    ///
    /// # Safety
    /// The place is valid for `bytes` bytes.
    #[track_caller]
    unsafe fn combine_leaders(&self, combiner: &Combiner, data: *mut u8, bytes: usize) {
        let mut space = PageSpace::UNUSED;
        let mut page = space.zeroed(bytes);
        // SAFETY: the caller has promised the place, and the page has as many bytes.
        unsafe {
            copy::copy(page.start(), data, bytes);
            self.combine_pages(combiner, &mut page, bytes);
            copy::copy(data, page.start(), bytes);
        }
    }

    /// Brings the blocks of all ranks, in their order, to the leaders' pages, which are zero.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn gather(&self, source: *const u8, page: &mut Page<'_>, bytes: usize) {
        let (mut space, start) = (PageSpace::UNUSED, page.start());
        let mut here = space.zeroed(self.levels.node.len() * bytes);
        let blocks = here.start();
        // SAFETY: the caller has promised the source; a page holds the staged data.
        unsafe {
            match self.has_mates() {
                true => self.node().gather(0, &|_| source.cast_mut(), &|_| blocks, bytes),
                false => copy::copy(blocks, source, bytes),
            }
        }
        if !self.levels.is_leader() {
            return;
        }
        for (place, rank) in self.levels.groups.ranks(self.levels.own).iter().enumerate() {
            // SAFETY: both pages have a block at these places.
            unsafe { copy::copy(start.add(rank * bytes), blocks.add(place * bytes), bytes) };
        }
        // Each block is zero at all leaders but one.
        self.staging().exchange(page, |own, other, _| own.join(other));
    }

    /// Brings the leader's page to all members of the node, in operations that all members have come to when
    /// their leader has its page.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn spread_to_all(&self, page: &mut Page<'_>, target: *mut u8, bytes: usize) {
        // SAFETY: the caller has promised the target.
        unsafe { self.spread(0, page, target, bytes) };
        self.levels.have_met();
    }

    /// Brings the page of one member of the node to all of them.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn spread(&self, place: usize, page: &mut Page<'_>, target: *mut u8, bytes: usize) {
        let start = page.start();
        // SAFETY: the caller has promised the target; a page holds the staged data.
        unsafe {
            match self.has_mates() {
                true => self.node().broadcast(place, &|_| start, &|_| target, bytes),
                false if target == start => {}
                false => copy::transfer(target, start, bytes),
            }
        }
    }

    /// Brings the leader's page to the root, on the root's node.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn hand_over(&self, root: Rank, page: &mut Page<'_>, target: *mut u8, bytes: usize) {
        if !self.is_home(root) {
            return;
        }
        // SAFETY: the caller has promised the root's target; a page holds the staged data.
        unsafe {
            match self.levels.groups.place(root) {
                0 if self.levels.is_leader() => copy::transfer(target, page.start(), bytes),
                0 => {}
                place => self.node().pass((0, place), page.start(), target, bytes),
            }
        }
    }

    /// Brings the root's source to all targets.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn broadcast(
        &self,
        root: Rank,
        source: *const u8,
        target: *mut u8,
        page: &mut Page<'_>,
        bytes: usize,
    ) {
        let home = self.levels.groups.group(root);
        let units = self.staging().units(bytes);
        let unit = self.levels.begins_broadcast(home, units).unwrap_or_else(|| {
            self.sync();
            let unit = self.levels.begins_broadcast(home, units);
            unit.expect("all units are free after a meeting")
        });
        if self.team.my_rank() == root {
            // SAFETY: the caller has promised the root's source; a page holds the staged data.
            unsafe { copy::copy(page.start(), source, bytes) };
        }
        let place = self.place_of(root);
        if self.levels.node.my_rank() == place {
            self.staging().broadcast(root, unit, page);
        }
        // A root whose target is its source has its data there.
        let has_data = self.team.my_rank() == root && target.cast_const() == source;
        let target = if has_data { page.start() } else { target };
        // SAFETY: the caller has promised the target; a page holds the staged data.
        unsafe { self.spread(place, page, target, bytes) };
    }

    /// The place on this node of the member that has the root's data: the root itself, or the leader.
    fn place_of(&self, root: Rank) -> usize {
        if self.is_home(root) { self.levels.groups.place(root) } else { 0 }
    }

    /// Whether the root is on this node.
    fn is_home(&self, root: Rank) -> bool {
        self.levels.groups.group(root) == self.levels.own
    }

    /// An operation whose data take a schedule of the leaders.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn by_leaders(&self, call: &Call<'_>, target: Operand<'_>, source: Operand<'_>) -> Result<()> {
        let (levels, node) = (self.levels, &self.levels.node);
        let bytes = call.count * call.element_bytes;
        let from = |place: usize| source.place(self.world, node, place);
        let into = |place: usize| target.place(self.world, node, place);
        let first = levels.groups.leader(levels.own) * bytes;
        // SAFETY: the caller has promised all places.
        unsafe {
            match call.operation {
                Operation::Broadcast => {
                    let (place, is_home) = (self.place_of(call.root), self.is_home(call.root));
                    if node.my_rank() == place {
                        self.run_among(call, Among::Leaders, (source.own, target.own), (target, 0))?;
                    }
                    let given = |place| if is_home { from(place) } else { into(place) };
                    if self.has_mates() {
                        self.node().broadcast(place, &given, &into, bytes);
                    }
                }
                Operation::AllReduce => {
                    match self.has_mates() {
                        true => self.node().reduce(call.combiner(), Some(0), &from, &into, bytes),
                        false => copy_apart(target.own, source.own, bytes),
                    }
                    if levels.is_leader() {
                        match self.fits_page(call) {
                            true => self.combine_leaders(call.combiner(), target.own, bytes),
                            false => {
                                self.run_among(call, Among::Leaders, (target.own, target.own), (target, 0))?;
                            }
                        }
                    }
                    if self.has_mates() {
                        self.node().broadcast(0, &into, &into, bytes);
                    }
                }
                _ => {
                    let own = |place: usize| into(place).wrapping_add(first);
                    match self.has_mates() {
                        true => self.node().gather(0, &from, &own, bytes),
                        false => copy_apart(target.own.add(first), source.own, bytes),
                    }
                    if levels.is_leader() {
                        let own = target.own.add(first);
                        self.run_among(call, Among::Leaders, (own, target.own), (target, 0))?;
                    }
                    if self.has_mates() {
                        self.node().broadcast(0, &into, &into, bytes * self.team.len());
                    }
                }
            }
        }
        Ok(())
    }

    /// An all-reduce in which the first members of each node, as many as all nodes have, lead a part each:
    /// each combines its part of its node, exchanges it with those of the same place on other nodes, and all
    /// members of a node take the parts. The result of a node lies in scratch memory: so the target has room
    /// for the data from other nodes, and no room has to be announced.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn by_parts(
        &self,
        call: &Call<'_>,
        parts: usize,
        target: Operand<'_>,
        source: Operand<'_>,
    ) -> Result<()> {
        let (node, me) = (&self.levels.node, self.levels.node.my_rank());
        let from = |place: usize| source.place(self.world, node, place);
        let into = |place: usize| target.place(self.world, node, place);
        let bound = |part: usize| call.count / parts * part + part.min(call.count % parts);
        let range = |part: usize| (bound(part) * call.element_bytes, bound(part + 1) * call.element_bytes);
        self.node().sync();
        if me < parts {
            let (start, end) = range(me);
            // SAFETY: the caller has promised all places. No other PE reads or writes this part of this
            // member's source and target before the next meeting.
            unsafe {
                let operands: Vec<_> =
                    (0..node.len()).map(|place| from(place).add(start).cast_const()).collect();
                let target_start = target.own.add(start);
                let scratch = match call.is_in_place() {
                    true => None,
                    false => self.world.take_scratch(self.team, self.operation, end - start)?,
                };
                let heap = self.world.memory.heap(self.world.my_pe());
                let own = scratch.map_or(target_start, |(offset, _)| heap.add(offset));
                self.node().fold(call.combiner(), &operands, own, end - start);
                let part = Call { count: bound(me + 1) - bound(me), ..call.clone() };
                self.run_among(&part, Among::Places(me), (own, target_start), (target, start))?;
                self.world.give_scratch(self.team, scratch);
            }
        }
        self.node().sync();
        for part in (0..parts).filter(|&part| part != me) {
            let (start, end) = range(part);
            // SAFETY: the caller has promised all places; each part was computed before this meeting.
            unsafe { copy::copy(target.own.add(start), into(part).add(start), end - start) };
        }
        self.node().sync();
        Ok(())
    }

    /// Runs the operation of a call as a schedule of some of the members, this one among them, to its end.
    /// The data begin at these places here, and at `offset_bytes` of the target elsewhere.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn run_among(
        &self,
        call: &Call<'_>,
        among: Among,
        (source, target): (*const u8, *mut u8),
        (elsewhere, offset_bytes): (Operand<'_>, usize),
    ) -> Result<()> {
        let shape = shape_among(self.levels, call, source == target.cast_const());
        let plan = self.plan_among(call, among, &shape)?;
        let bases = elsewhere.bases(self.team).plus(offset_bytes);
        let operands = Operands {
            source,
            source_bytes: shape.source_bytes(),
            target,
            target_bytes: shape.target_bytes(),
            target_bases: bases,
            combiner: call.combiner.clone(),
        };
        // SAFETY: the caller has promised source and target, which have as many bytes as the shape tells.
        let progress: Arc<Progress> = unsafe {
            self.world.start_collective(self.team, self.operation, &plan, operands, call.usages())?
        };
        self.world.await_collective(self.operation, &progress);
        Ok(())
    }

    /// The plan of a schedule of one member of each node.
    fn plan_among(&self, call: &Call<'_>, among: Among, shape: &Shape) -> Result<Arc<Plan>> {
        let combiner = call.combiner.as_ref();
        let key = Key::of(among, &Shape { root: call.root, ..shape.clone() }, combiner);
        let by = self.leaders_by.filter(|by| by.can_do(shape));
        let make = || {
            let groups = &self.levels.groups;
            let ranks: Vec<Rank> = match among {
                Among::Places(place) => {
                    (0..groups.len()).map(|group| groups.ranks(group).at(place)).collect()
                }
                _ => {
                    let mut leaders = groups.leaders();
                    if call.operation == Operation::Broadcast {
                        leaders[groups.group(call.root)] = call.root;
                    }
                    leaders
                }
            };
            let schedule = match by {
                Some(by) => by.schedule(shape, super::MAILBOX_BYTES),
                None => select::choose(self.world, shape, combiner)?.schedule(shape, super::MAILBOX_BYTES),
            };
            Ok(Plan::new(schedule.among(&ranks)))
        };
        match by {
            Some(by) => self.team.plan_by(&key, &by, make),
            None => self.team.plan(&key, make),
        }
    }
}

/// The part of one member of each node.
fn shape_among(levels: &Hierarchy, call: &Call<'_>, in_place: bool) -> Shape {
    let groups = &levels.groups;
    let shape = Shape::new(call.operation, levels.own, groups.len(), call.count, call.element_bytes);
    match call.operation {
        Operation::Broadcast => Shape { root: groups.group(call.root), in_place, ..shape },
        Operation::AllGather => {
            let counts = (0..groups.len()).map(|group| groups.ranks(group).len() * call.count);
            Shape { blocks: Blocks::Counts(counts.collect()), ..shape }
        }
        _ => Shape { in_place, ..shape },
    }
}

/// Copies, unless source and target are the same.
///
/// # Safety
/// Both are valid for `bytes` bytes, and the same or apart.
unsafe fn copy_apart(target: *mut u8, source: *const u8, bytes: usize) {
    if target.cast_const() != source {
        // SAFETY: the caller has promised both.
        unsafe { copy::copy(target, source, bytes) };
    }
}
