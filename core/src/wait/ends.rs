//! Ends of the processes of this node, which some launchers tell nobody: Slurm's `srun` lets the others go
//! on.
//!
//! Invariant: a PE that waits for long looks at a few processes of its node in each round, not at its own.
//! Each PE starts with the PEs behind it. The first PE that finds a process which has ended without leaving
//! the job ends the job.

use super::engine::Engine;
use crate::Pe;
use crate::base::awaited::Awaited;
use pelago_boot::has_process_ended;
use std::time::{Duration, Instant};

/// The time that a PE waits before its first look, and between two rounds.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(1);
/// The processes of a round, besides that of the awaited PE.
const PROCESSES_PER_ROUND: usize = 4;

/// The looks of one wait.
#[derive(Default)]
pub(super) struct Ends {
    next_at: Option<Instant>,
    /// The PEs of the node that were looked at, counted from this one on.
    seen: usize,
}

impl Ends {
    /// Looks whether PEs of this node have ended, in a wait that began at `since`.
    #[track_caller]
    pub(super) fn look(&mut self, engine: &Engine, awaited: Awaited, since: Instant) {
        let now = Instant::now();
        if now < *self.next_at.get_or_insert(since + BETWEEN_ROUNDS) {
            return;
        }
        self.next_at = Some(now + BETWEEN_ROUNDS);
        let (me, near) = (engine.my_pe(), engine.memory.near_pes().collect::<Vec<Pe>>());
        let own = near.iter().position(|&pe| pe == me).unwrap_or(0);
        let first = own + 1 + self.seen;
        let others = (first..first + PROCESSES_PER_ROUND.min(near.len())).map(|i| near[i % near.len()]);
        let awaited_pe = awaited.pe().filter(|&pe| engine.memory.block(pe).is_some());
        for pe in awaited_pe.into_iter().chain(others) {
            if let Some(process) = ended_process(engine, pe) {
                let what = engine.describe(awaited);
                engine.fail_after_loss(&format!(
                    "PE {me}: PE {pe} (process {process}) has ended without leaving the job, while this PE \
                     waits for {what}"
                ));
            }
        }
        self.seen = (self.seen + PROCESSES_PER_ROUND) % near.len().max(1);
    }
}

/// The process of a PE that has ended although the PE has not left the job.
fn ended_process(engine: &Engine, pe: Pe) -> Option<u32> {
    let process = engine.pid_of(pe).filter(|&process| process != std::process::id())?;
    // A PE that leaves says so before its process ends.
    (!engine.has_left(pe) && has_process_ended(process) && !engine.has_left(pe)).then_some(process)
}
