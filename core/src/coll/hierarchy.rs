//! The hierarchy of a team that not all members map: the members of this PE's node, and the leaders of all
//! nodes, which are their lowest ranks.
//!
//! The members of a node are a team by themselves. Its direct operations use the first part of the blocks of
//! the whole team, which has no direct operations. It has no block of its own and starts no schedules.
//!
//! Invariant: all members count alike: the direct operations of a node, broadcasts, and, at leaders,
//! exchanges between leaders.

use super::nodes::Groups;
use super::staging::ring::BroadcastRing;
use super::staging::{self, BROADCAST_UNITS, LeaderStep, TURNS};
use super::{block, sync_memory};
use crate::Pe;
use crate::coll::symmetric_region::Bases;
use crate::coll::team::{Start, TeamCore};
use crate::coll::teams::Teams;
use crate::memory::members::Members;
use pelago_boot::SyncMemoryKind;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// A PE's place in the hierarchy of a team.
pub struct Hierarchy {
    /// The members that are mapped here, in the order of their ranks.
    pub node: TeamCore,
    /// The ranks that map each other.
    pub groups: Arc<Groups>,
    /// The group of this PE.
    pub own: usize,
    /// Whether each group is a range of ranks, and the ranges follow each other.
    pub is_ordered: bool,
    /// Members of the smallest group, and of the largest.
    pub least: usize,
    pub most: usize,
    /// Where the staging buffers lie in the members' blocks, and how many ranks these are for.
    pub staging_offset: usize,
    pub block_ranks: usize,
    /// Where this PE's block is mapped.
    pub own_start: Start,
    /// Whether no setting and no measurement chooses another form for any operation.
    pub serves_all: bool,
    /// The steps of this PE in an exchange between leaders, for each set of buffers.
    pub steps: [Box<[LeaderStep]>; TURNS],
    /// Calls in two levels.
    calls: AtomicU64,
    /// Exchanges between leaders, and broadcasts.
    exchanges: AtomicU64,
    broadcasts: AtomicU64,
    /// The units of messages of broadcasts.
    pub ring: BroadcastRing,
}

/// The number before the first exchange, and before the first broadcast. Tests pass the number from which on
/// a message does not show all of its number.
const FIRST_NUMBER: u64 = if cfg!(debug_assertions) { (1 << 32) - 20 } else { 0 };

/// Counts one more. One thread at a time calls operations of a team, so this needs no atomic update.
fn count(counter: &AtomicU64) -> u64 {
    let number = counter.load(Ordering::Relaxed) + 1;
    counter.store(number, Ordering::Relaxed);
    number
}

impl Hierarchy {
    /// The hierarchy of a team; `None` if it has none: its members map each other, or they signal by arrays
    /// of slots, of which all members must take one for each operation. Where no PE maps another, each is a
    /// node.
    pub fn of(team: &TeamCore, world: &Teams, kind: SyncMemoryKind) -> Option<Hierarchy> {
        if team.is_mapped() || !Hierarchy::is_possible(kind) {
            return None;
        }
        let members = team.members();
        let numbers: Vec<u32> = members.iter().map(|pe| world.routes.neighbourhood_of(pe)).collect();
        let groups = Arc::new(Groups::of(&numbers));
        let own = groups.group(team.my_rank());
        let ranks = groups.ranks(own);
        let pes: Vec<Pe> = ranks.iter().map(|rank| team.pe(rank)).collect();
        let bases = Bases::of(ranks.iter().map(|rank| team.base(rank)).collect());
        let me = groups.place(team.my_rank());
        let node = TeamCore::of_node(world, Members::of(&pes), me, bases);
        let block_ranks = team.engine().block_ranks;
        let ring = BroadcastRing::new(BROADCAST_UNITS, groups.len());
        Some(Hierarchy {
            node,
            own,
            is_ordered: groups.are_ordered(),
            least: groups.least(),
            most: groups.most(),
            own_start: Start(team.own_start(&world.memory)),
            serves_all: world.collectives.preferences().always_wants_levels(&team.nodes),
            steps: std::array::from_fn(|turn| staging::steps(&groups, own, turn, block_ranks)),
            groups,
            staging_offset: block::staging_offset(block_ranks, sync_memory::slots(kind, block_ranks)),
            block_ranks,
            calls: AtomicU64::new(0),
            exchanges: AtomicU64::new(FIRST_NUMBER),
            broadcasts: AtomicU64::new(FIRST_NUMBER),
            ring,
        })
    }

    /// Whether teams that not all members map have a hierarchy.
    pub fn is_possible(kind: SyncMemoryKind) -> bool {
        !matches!(kind, SyncMemoryKind::Additional | SyncMemoryKind::Barrier)
    }

    /// The same for a smaller team that continues with the blocks of a larger one, whose hierarchy is
    /// `before`.
    pub fn going_on(self, before: &Hierarchy) -> Hierarchy {
        let go_on = |from: &AtomicU64| AtomicU64::new(from.load(Ordering::Relaxed));
        self.node.go_on_after(&before.node);
        Hierarchy {
            calls: go_on(&before.calls),
            exchanges: go_on(&before.exchanges),
            broadcasts: go_on(&before.broadcasts),
            ring: self.ring.going_on(&before.ring),
            ..self
        }
    }

    /// Whether this PE is the leader of its node.
    pub fn is_leader(&self) -> bool {
        self.node.my_rank() == 0
    }

    /// Begins a call.
    pub fn begins_call(&self) {
        count(&self.calls);
    }

    /// How many calls this PE has begun.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The number of the last exchange between leaders.
    pub fn exchanges(&self) -> u64 {
        self.exchanges.load(Ordering::Relaxed)
    }

    /// The number of the next exchange between leaders, of which each takes part in all.
    pub fn next_exchange(&self) -> u64 {
        count(&self.exchanges)
    }

    /// The number of the last broadcast.
    pub fn broadcasts(&self) -> u64 {
        self.broadcasts.load(Ordering::Relaxed)
    }

    /// Begins a broadcast from a member of the group `root`, by a message of `units` units. Returns the place
    /// of its first unit; `None` if all members must meet before it.
    pub fn begins_broadcast(&self, root: usize, units: u64) -> Option<u64> {
        let place = self.ring.give(root, units)?;
        count(&self.broadcasts);
        Some(place)
    }

    /// All members have come to an operation that this one has passed.
    pub fn have_met(&self) {
        self.ring.have_met();
    }
}

impl TeamCore {
    /// The hierarchy, if it has been needed.
    pub fn levels(&self) -> Option<&Hierarchy> {
        self.levels.get()?.as_deref()
    }

    /// Goes on in the blocks of a larger team with this hierarchy.
    pub fn go_on_in(&self, world: &Teams, levels: &Hierarchy) {
        if self.is_mapped() {
            return self.go_on_after(&levels.node);
        }
        let own = Hierarchy::of(self, world, self.sync_memory());
        let _ = self.levels.set(own.map(|own| Box::new(own.going_on(levels))));
    }

    /// The hierarchy of a team that not all members map, if it has one.
    pub fn hierarchy(&self, world: &Teams) -> Option<&Hierarchy> {
        let make = || Hierarchy::of(self, world, self.sync_memory()).map(Box::new);
        self.levels.get_or_init(make).as_deref()
    }
}
