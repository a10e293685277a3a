//! A call in two levels as estimates see it: see [`Levels`].

use super::{Hierarchy, Way, shape_among, way};
use crate::coll::call::Call;
use crate::coll::candidates::Candidate;
use crate::coll::estimate::Levels;
use crate::coll::reduction::Combiner;
use crate::coll::shape::{Operation, Shape, Tuning};
use crate::coll::table::find;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use std::sync::Arc;

impl TeamCore {
    /// How a call is done in two levels, with this algorithm between the leaders if one is given; `None` if
    /// it is not.
    pub fn estimated_levels(
        &self,
        world: &Teams,
        call: &Call<'_>,
        leaders_by: Option<Candidate>,
    ) -> Option<Levels> {
        let levels = self.levels_for(world, call)?;
        let way = way(world, self, levels, call)?;
        let leaders = if let Way::Parts(parts) = way { parts } else { 1 };
        let (to_leaders, to_members) = phases(call, self.len(), way);
        let between = match way {
            Way::Leaders | Way::Parts(_) => {
                let part = Call { count: call.count.div_ceil(leaders), ..call.clone() };
                let shape = shape_among(levels, &part, false);
                let laws = call.combiner.as_ref().map(Combiner::laws);
                let usual = || world.collectives.preferences().choose(&shape, laws).map(Candidate::from);
                (leaders_by.or_else(usual)?, shape)
            }
            Way::Staged | Way::StagedInOrder => by_staging(call, self.len(), levels, way),
            Way::Pairs => by_pairs(call, levels),
        };
        let groups = Arc::clone(&levels.groups);
        Some(Levels { groups, between, leaders, to_leaders, to_members })
    }
}

/// The bytes that a member brings to its leader, and that the leader brings to each member.
fn phases(call: &Call<'_>, n: usize, way: Way) -> (Option<usize>, Option<usize>) {
    use Operation::*;
    let (bytes, all) = (call.count * call.element_bytes, n * call.count * call.element_bytes);
    match call.operation {
        Barrier => (Some(0), Some(0)),
        Broadcast => (None, Some(bytes)),
        Scatter => (None, Some(all)),
        Gather | Reduce => (Some(bytes), None),
        AllReduce => (Some(bytes), Some(bytes)),
        AllGather | InclusiveScan | ExclusiveScan => (Some(bytes), Some(all)),
        AllToAll if way == Way::Staged => (Some(all), Some(n * all)),
        AllToAll => (Some(all), Some(all)),
        ReduceScatter => (Some(all), Some(all)),
    }
}

/// A message between leaders in each round: like a small all-reduce of all that they send.
fn by_staging(call: &Call<'_>, n: usize, levels: &Hierarchy, way: Way) -> (Candidate, Shape) {
    use Operation::*;
    let bytes = call.count * call.element_bytes;
    let (operation, name, bytes) = match call.operation {
        Broadcast => (Broadcast, "k_nomial", bytes),
        Scatter => (Broadcast, "k_nomial", n * bytes),
        AllToAll => (AllReduce, "recursive_doubling", n * n * bytes),
        Reduce | AllReduce if way == Way::Staged => (AllReduce, "recursive_doubling", bytes),
        _ => (AllReduce, "recursive_doubling", n * bytes),
    };
    let root = if call.operation.is_rooted() { levels.groups.group(call.root) } else { 0 };
    let shape = Shape { root, ..Shape::new(operation, 0, levels.groups.len(), bytes, 1) };
    (by(operation, name), shape)
}

/// A message between each two leaders, with all blocks of a node.
fn by_pairs(call: &Call<'_>, levels: &Hierarchy) -> (Candidate, Shape) {
    let bytes = call.count * call.element_bytes * levels.most;
    let bytes = if call.operation == Operation::AllToAll { bytes * levels.most } else { bytes };
    (by(call.operation, "linear"), Shape::new(call.operation, 0, levels.groups.len(), bytes, 1))
}

fn by(operation: Operation, name: &str) -> Candidate {
    let algorithm = find(operation, name).expect("the table has this algorithm");
    Candidate { algorithm, tuning: Tuning::default() }
}
