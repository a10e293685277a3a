//! The teams of a PE, its symmetric heap, and its collective operations: all that these need.

use super::block::pairs::PairBlock;
use super::engine::Collectives;
use super::symmetric_region::SymmetricRegion;
use super::sync_memory::{self, PairMemory, Reuse};
use super::team::TeamCore;
use crate::Pe;
use crate::base::error::{ErrorKind, Result};
use crate::memory::heap::Heap;
use crate::memory::segment::RESERVED_BYTES;
use crate::wait::engine::Engine;
use pelago_boot::{BarrierKind, Settings};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// A PE that takes part in teams.
pub struct Teams {
    pub engine: Engine,
    /// Number of the last agreement; held by the thread that makes a collective call.
    pub agreed: Mutex<u64>,
    /// All PEs and their symmetric heaps.
    pub region: SymmetricRegion,
    /// The pool in which this PE allocates for itself: the memory of its teams and spaces.
    pub pool: Mutex<Heap>,
    /// The team of all PEs.
    pub team: Arc<TeamCore>,
    /// The same PEs with memory of their own, where the barrier of all PEs needs a team: so it is never
    /// taken for a collective operation of the team of all PEs.
    pub barrier_team: Option<Arc<TeamCore>>,
    pub collectives: Collectives,
    /// Where the slots of pairs lie in the region of every PE, and their state, if the job uses them.
    pub pair_block: PairBlock,
    pub pairs: Mutex<PairMemory>,
}

impl Deref for Teams {
    type Target = Engine;

    #[inline(always)]
    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Teams {
    /// The teams of a PE that has met the PEs of its node.
    pub fn new(engine: Engine, settings: &Settings) -> Result<Teams> {
        let (me, n_pes, has_net) = (engine.my_pe(), engine.n_pes(), engine.net.is_some());
        let heap = Heap::new(RESERVED_BYTES, engine.memory.heap_bytes());
        let mut pool = Heap::new(engine.memory.heap_bytes(), engine.memory.region_bytes());
        let collectives = Collectives::new(settings)?;
        let pair_block = pair_block(settings, &mut pool, (me, n_pes))?;
        let (meets_at_counter, is_plain) = collectives.manners(&engine, n_pes);
        let mut team_of_all = || {
            let how = (settings.sync_memory, has_net);
            let mut team = TeamCore::world(&engine.memory, &mut pool, (me, n_pes), how)?;
            team.tune(meets_at_counter, is_plain);
            Ok::<_, crate::Error>(Arc::new(team.on_nodes(|pe| engine.node(pe))))
        };
        let team = team_of_all()?;
        let has_barrier_team = has_net || settings.barrier == BarrierKind::Dissemination;
        let barrier_team = if has_barrier_team { Some(team_of_all()?) } else { None };
        Ok(Teams {
            engine,
            agreed: Mutex::new(0),
            region: SymmetricRegion::world(me, n_pes, heap),
            pool: Mutex::new(pool),
            team,
            barrier_team,
            collectives,
            pair_block,
            pairs: Mutex::new(PairMemory::new(me)),
        })
    }
}

/// The block of the slots of pairs, the first in the pool of every PE; of no PEs if the job uses arrays.
fn pair_block(settings: &Settings, pool: &mut Heap, (me, n_pes): (Pe, usize)) -> Result<PairBlock> {
    let n_pes = if sync_memory::reuse(settings.sync_memory) == Reuse::Pairs { n_pes } else { 0 };
    let asked_bytes = PairBlock::bytes(n_pes);
    let block = PairBlock::take(pool, n_pes);
    Ok(block.ok_or(ErrorKind::PoolExhausted { me, operation: "init", pe: me, asked_bytes })?)
}
