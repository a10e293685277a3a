//! The runtime's counts of synchronisation memory after a fixed sequence of collectives, which threads of
//! this process run as schedules. Invariant: the sequence is the same under every strategy, on every number
//! of PEs.

use anyhow::Context;
use pelago::Spmd;
use pelago::coll::sync_memory::SyncCounts;
use pelago::prelude::*;
use serde::Serialize;

use super::strategy::STRATEGIES;

/// The number of collectives of the sequence, without barriers.
pub const COLLECTIVES: usize = 64;
/// The maximum number of PEs.
pub const PES_MAX: usize = 8;

/// The counts of a strategy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// Its name.
    pub strategy: &'static str,
    /// The number of PEs.
    pub pes: usize,
    /// The number of barriers, besides the collectives.
    pub barriers: usize,
    /// The number of signals of operations, of all PEs.
    pub signals: u64,
    /// The maximum that one PE sent.
    pub signals_max: u64,
    /// The number of releases and acknowledgements, of all PEs.
    pub chores: u64,
    /// The maximum that one PE sent.
    pub chores_max: u64,
    /// The number of slots that were ever used, of all PEs.
    pub slots: u64,
    /// The maximum that one PE used.
    pub slots_max: u64,
}

/// Runs the sequence under every strategy, with a barrier after every `collectives` collectives and at the
/// end.
///
/// # Errors
/// If a PE fails.
pub fn measure(pes: usize, collectives: usize) -> anyhow::Result<Vec<Measured>> {
    let of_strategy = |name| {
        let job = Spmd::new(pes).setting("PELAGO_COLL_FORM", "schedule").setting("PELAGO_SYNC_MEMORY", name);
        let counts = job.run(|world| sequence(world, collectives)).context("counting on threads")?;
        let counts = counts.into_iter().collect::<pelago::Result<Vec<_>>>()?;
        let of = |field: fn(&SyncCounts) -> u64| {
            let values = || counts.iter().map(field);
            (values().sum(), values().max().unwrap_or(0))
        };
        let (signals, signals_max) = of(|counts| counts.signals);
        let (chores, chores_max) = of(|counts| counts.chores);
        let (slots, slots_max) = of(|counts| counts.slots);
        let barriers = COLLECTIVES / collectives + 1;
        Ok(Measured {
            strategy: name,
            pes,
            barriers,
            signals,
            signals_max,
            chores,
            chores_max,
            slots,
            slots_max,
        })
    };
    STRATEGIES.iter().map(|strategy| of_strategy(strategy.name)).collect()
}

/// Collective: broadcasts from changing roots, alternating with all-reduces.
fn sequence(world: &World, collectives: usize) -> pelago::Result<SyncCounts> {
    let words = world.alloc::<u64>(2)?;
    let team = world.team();
    let before = team.sync_counts();
    for index in 0..COLLECTIVES {
        let (target, source) = (words.span(0..1), words.span(1..2));
        match index % 2 {
            0 => team.broadcast(index / 2 % world.n_pes(), target, source)?,
            _ => team.all_reduce(ReduceOp::Max, target, source)?,
        }
        if (index + 1) % collectives == 0 {
            team.barrier();
        }
    }
    team.barrier();
    let after = team.sync_counts();
    Ok(SyncCounts { signals: after.signals - before.signals, chores: after.chores - before.chores, ..after })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_sends_the_signals_of_its_schedules() {
        let pes = 4;
        let measured = measure(pes, 8).unwrap_or_else(|error| panic!("{error:#}"));
        // 32 broadcasts of 3 messages; 32 all-reduces of 2 rounds, or up and down a tree, like the barriers.
        let by = |round: u64, barrier: u64| 32 * 3 + 32 * round + 9 * barrier;
        let signals: Vec<_> = measured.iter().map(|measured| measured.signals).collect();
        assert_eq!(signals, [by(8, 8), by(8, 8), by(8, 8), by(6, 6), by(6, 6)]);
        assert!(measured.iter().all(|measured| measured.slots >= measured.slots_max), "{measured:?}");
        assert!(measured[0].chores > measured[1].chores, "{measured:?}");
    }
}
