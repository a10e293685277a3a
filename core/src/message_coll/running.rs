//! All operations of a PE that are under way, and the waits for them.
//!
//! Invariant: an operation moves in the wait of the thread that waits for it, and in every other wait of this
//! PE, so that members that wait for different things serve each other.

use super::direct::{KeptTeams, try_direct};
use super::exchange::Exchange;
use super::group::MessageGroup;
use super::operation::{Memory, Operation, Outcome};
use super::plan::{MessageCall, Plan};
use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::locked::{locked, try_locked};
use crate::coll::reduction::Combiner;
use crate::job::callback;
use crate::msg::TwoSided;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering, spin_once};
use std::sync::{Arc, Mutex};

/// The operations of a PE that are under way.
#[derive(Default)]
pub struct MessageCollectives {
    running: Mutex<Vec<Arc<Pending>>>,
    active: AtomicU32,
    moves: AtomicU64,
    pub(super) kept_teams: Arc<KeptTeams>,
}

/// A part of an operation.
pub struct Stage {
    pub group: Arc<MessageGroup>,
    pub task: Task,
}

/// The work of a stage.
pub enum Task {
    /// A call, on this memory.
    Call(MessageCall, Memory),
    /// Messages with sizes of their own, under this name.
    Exchange(&'static str, Arc<Exchange>),
}

/// An operation that was started.
pub struct Pending {
    name: &'static str,
    state: Mutex<State>,
}

enum State {
    Running(Box<Operation>),
    Over(Outcome),
}

impl Pending {
    fn new(operation: Operation) -> Pending {
        Pending { name: operation.name(), state: Mutex::new(State::Running(Box::new(operation))) }
    }

    /// Goes on as far as is possible now: the outcome, if the operation is over. Makes no other progress.
    #[track_caller]
    pub fn advance(&self, world: &TwoSided) -> Option<Outcome> {
        let mut state = try_locked(&self.state)?;
        match &mut *state {
            State::Over(outcome) => Some(*outcome),
            State::Running(operation) => {
                let outcome = operation.advance(world)?;
                *state = State::Over(outcome);
                Some(outcome)
            }
        }
    }

    /// The PE that the operation waits for.
    fn awaits(&self) -> Option<Pe> {
        match &*try_locked(&self.state)? {
            State::Over(_) => None,
            State::Running(operation) => operation.awaits(),
        }
    }

    /// Waits until the operation is over.
    #[track_caller]
    pub fn wait(&self, world: &TwoSided) -> Outcome {
        callback::forbid(world, self.name);
        for _ in 0..world.policy.spins() {
            if let Some(outcome) = self.advance(world) {
                return outcome;
            }
            spin_once();
        }
        let awaited = Awaited::Collective { operation: self.name, pe: None };
        let mut outcome = None;
        let ready = || {
            outcome = outcome.or_else(|| self.advance(world));
            outcome.is_some()
        };
        world.wait_for_members(awaited, ready, || self.awaits());
        outcome.expect("a wait ends when the operation is over")
    }
}

impl MessageCollectives {
    /// Whether anything is under way that no thread waits for.
    #[inline]
    pub fn are_active(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }

    /// A number that changes when an operation ends.
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    /// Moves all operations as far as they can go now.
    #[track_caller]
    pub fn advance(&self, world: &TwoSided) {
        let Some(running) = try_locked(&self.running) else { return };
        // A function of the user that an operation calls may start another one.
        let all = running.clone();
        drop(running);
        let over: Vec<_> = all.into_iter().filter(|pending| pending.advance(world).is_some()).collect();
        if !over.is_empty() {
            self.moves.fetch_add(1, Ordering::Relaxed);
            let mut running = locked(&self.running);
            running.retain(|pending| !over.iter().any(|other| Arc::ptr_eq(pending, other)));
            self.active.store(running.len() as u32, Ordering::Relaxed);
        }
    }

    fn start(&self, world: &TwoSided, operation: Operation) -> Arc<Pending> {
        let pending = Arc::new(Pending::new(operation));
        if pending.advance(world).is_none() {
            let mut running = locked(&self.running);
            running.push(Arc::clone(&pending));
            self.active.store(running.len() as u32, Ordering::Relaxed);
        }
        pending
    }

    /// Starts stages that follow each other. `None` if no algorithm can do one of them: the settings demand
    /// results that do not depend on the algorithm.
    ///
    /// # Safety
    /// The memory of each stage is valid and left alone until the operation is over. The source of a later
    /// stage does not overlap its target.
    ///
    /// # Panics
    /// If there is no stage.
    #[track_caller]
    pub unsafe fn start_stages(&self, world: &TwoSided, stages: &[Stage]) -> Option<Arc<Pending>> {
        // SAFETY: the caller promises what this function requires.
        let whole = unsafe { self.chain(world, stages)? };
        Some(self.start(world, whole))
    }

    /// As [`start_stages`](MessageCollectives::start_stages), and waits for the end.
    ///
    /// # Safety
    /// As [`start_stages`](MessageCollectives::start_stages).
    ///
    /// # Panics
    /// If there is no stage.
    #[track_caller]
    pub unsafe fn run_stages(&self, world: &TwoSided, stages: &[Stage]) -> Option<Outcome> {
        // SAFETY: the caller promises what this function requires.
        let whole = unsafe { self.chain(world, stages)? };
        Some(Pending::new(whole).wait(world))
    }

    /// # Safety
    /// As [`start_stages`](MessageCollectives::start_stages).
    unsafe fn chain(&self, world: &TwoSided, stages: &[Stage]) -> Option<Operation> {
        // All plans are made before an operation gets its number, so that none begins if one has no plan.
        let plans = stages.iter().map(|stage| match &stage.task {
            Task::Exchange(..) => Some(None),
            Task::Call(call, memory) => plan(world, &stage.group, call, memory.combiner.as_ref()).map(Some),
        });
        let plans: Vec<Option<Arc<Plan>>> = plans.collect::<Option<_>>()?;
        let operations: Vec<Operation> = stages
            .iter()
            .zip(plans)
            .map(|(stage, plan)| match (&stage.task, plan) {
                (Task::Call(call, memory), Some(plan)) => {
                    callback::forbid(world, call.operation.name());
                    // SAFETY: the caller promises what this function requires.
                    unsafe { Operation::of_call(&stage.group, call, plan, memory.clone()) }
                }
                (Task::Exchange(name, exchange), _) => {
                    callback::forbid(world, name);
                    Operation::of_exchange(name, &stage.group, Arc::clone(exchange))
                }
                (Task::Call(..), None) => unreachable!("a call has a plan"),
            })
            .collect();
        let whole = operations.into_iter().rev().reduce(|next, before| before.followed_by(next));
        Some(whole.expect("an operation has a stage"))
    }

    /// Runs one call. `None` if no algorithm can do it.
    ///
    /// # Safety
    /// Source and target have as many bytes as the call needs, valid and left alone until the end.
    #[track_caller]
    pub unsafe fn run_call(
        &self,
        world: &TwoSided,
        group: &MessageGroup,
        call: &MessageCall,
        memory: Memory,
    ) -> Option<Outcome> {
        callback::forbid(world, call.operation.name());
        // SAFETY: the caller promises what this function requires.
        if unsafe { try_direct(world, self, group, call, &memory) } {
            return Some(Ok(()));
        }
        let plan = plan(world, group, call, memory.combiner.as_ref())?;
        // SAFETY: the caller promises what this function requires.
        let mut operation = unsafe { Operation::of_call(group, call, plan, memory) };
        for _ in 0..world.policy.spins() {
            if let Some(outcome) = operation.advance(world) {
                return Some(outcome);
            }
            spin_once();
        }
        Some(Pending::new(operation).wait(world))
    }

    /// Does an exchange.
    ///
    /// # Safety
    /// Its memory is valid and left alone until the end.
    #[track_caller]
    pub unsafe fn run_exchange(
        &self,
        world: &TwoSided,
        group: &MessageGroup,
        name: &'static str,
        exchange: Exchange,
    ) -> Outcome {
        callback::forbid(world, name);
        Pending::new(Operation::of_exchange(name, group, Arc::new(exchange))).wait(world)
    }

    /// Waits until all operations are over, as this PE is about to leave the job.
    #[track_caller]
    pub fn finish(&self, world: &TwoSided) {
        loop {
            let Some(pending) = locked(&self.running).first().cloned() else { return };
            // An operation whose sizes differ was reported to its caller, or nobody asks for it any more.
            let _ = pending.wait(world);
            self.advance(world);
        }
    }
}

fn plan(
    world: &TwoSided,
    group: &MessageGroup,
    call: &MessageCall,
    combiner: Option<&Combiner>,
) -> Option<Arc<Plan>> {
    let laws = combiner.map(Combiner::laws);
    let make = || Plan::of_call(group, world.collectives.preferences(), call, laws);
    group.plan(call, combiner, make)
}
