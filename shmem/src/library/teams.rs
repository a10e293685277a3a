//! The teams of the library: the predefined ones, and those of active sets.

use crate::base::abi::c_int;
use crate::handles::context::CONTEXTS;
use crate::handles::team::{TEAMS, Team};
use pelago::binding::{self, Foundry};
use pelago::sync::AtomicBool;
use pelago::{Pe, View, World};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The teams.
pub(crate) struct Teams {
    pub(crate) world: Team,
    pub(crate) shared: Team,
    /// The PEs of this node; `None` if they are the PEs of the team above.
    pub(crate) node: Option<Team>,
    pub(crate) active_sets: ActiveSets,
}

/// An active set as given in calls: first PE, logarithm of the stride, number of PEs.
pub(crate) type Triplet = (c_int, c_int, c_int);

/// The teams of the active sets that this PE has been in.
pub(crate) struct ActiveSets {
    teams: Mutex<HashMap<Triplet, Arc<pelago::Team<'static>>>>,
    pub(crate) foundry: Foundry<'static>,
    /// Whether this PE has reported a reduction over a set that it is not in.
    pub(crate) is_told: AtomicBool,
}

impl Teams {
    /// Collective. `foundry` was made before the heap, which takes all memory that is left. The PEs that map
    /// each other's heaps become a team; so do the PEs of a node if they are different ones.
    pub(crate) fn open(
        world: &'static World,
        foundry: Foundry<'static>,
        heap: &View<'static, u8>,
    ) -> pelago::Result<Teams> {
        const SHARED_KEY: u64 = u64::MAX;
        const NODE_KEY: u64 = u64::MAX - 1;
        let (me, all) = (world.my_pe(), 0..world.n_pes());
        let mapped: Vec<Pe> = all.clone().filter(|&pe| heap.ptr(pe).is_some()).collect();
        // A PE whose heap is mapped nowhere is alone in its team.
        let mapped = if mapped.contains(&me) { &mapped } else { std::slice::from_ref(&me) };
        let shared = Team::new(foundry.found(mapped, SHARED_KEY)?, 0);
        let is_here = |&pe: &Pe| binding::node_of(world, pe) == binding::node_of(world, me);
        let node: Vec<Pe> = all.filter(is_here).collect();
        let is_shared = (0..shared.team.n_pes()).map(|rank| shared.team.pe(rank)).eq(node.iter().copied());
        let node = if is_shared { None } else { Some(Team::new(foundry.found(&node, NODE_KEY)?, 0)) };
        let active_sets = ActiveSets { teams: Mutex::default(), foundry, is_told: AtomicBool::new(false) };
        Ok(Teams { world: Team::new(world.team(), 0), shared, node, active_sets })
    }
}

impl Teams {
    /// The last finalisation "destroys all teams", and the contexts that belong to them.
    pub(crate) fn forget_those_of_program(&self) {
        CONTEXTS.clear();
        TEAMS.clear();
    }
}

impl Drop for Teams {
    fn drop(&mut self) {
        self.forget_those_of_program();
    }
}

impl ActiveSets {
    pub(crate) fn teams(&self) -> MutexGuard<'_, HashMap<Triplet, Arc<pelago::Team<'static>>>> {
        self.teams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
