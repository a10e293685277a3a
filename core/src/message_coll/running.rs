//! All operations of a PE that are under way, and the waits for them.
//!
//! Invariant: an operation moves in the wait of the thread that waits for it, and in every other wait of this
//! PE, so that members that wait for different things serve each other.

use super::direct::{KeptTeams, try_direct};
use super::exchange::Exchange;
use super::group::{MessageGroup, OperationNumber};
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
    /// The number that its group has kept for it; without one it gets the next number whenever it starts.
    pub number: Option<OperationNumber>,
}

/// The work of a stage.
pub enum Task {
    /// A call, on this memory.
    Call(MessageCall, Memory),
    /// Messages with sizes of their own, under this name.
    Exchange(&'static str, Arc<Exchange>),
}

impl Stage {
    /// The plan of a call; an exchange needs none. `None` if no algorithm can do it.
    #[track_caller]
    fn plan(&self, world: &TwoSided) -> Option<Option<Arc<Plan>>> {
        match &self.task {
            Task::Exchange(name, _) => {
                callback::forbid(world, name);
                Some(None)
            }
            Task::Call(call, memory) => {
                callback::forbid(world, call.operation.name());
                plan(world, &self.group, call, memory.combiner.as_ref()).map(Some)
            }
        }
    }

    /// The operation, with its number.
    ///
    /// # Safety
    /// As [`MessageCollectives::start_stages`].
    unsafe fn operation(&self, plan: Option<Arc<Plan>>) -> Operation {
        let turn = self.number.map_or_else(|| self.group.next_turn(), |kept| self.group.turn_of(kept));
        match (&self.task, plan) {
            (Task::Exchange(name, exchange), _) => {
                Operation::of_exchange(name, (&self.group, turn), Arc::clone(exchange))
            }
            (Task::Call(call, memory), plan) => {
                let plan = plan.expect("a call has a plan");
                // SAFETY: the caller promises what this function requires.
                unsafe { Operation::of_call((&self.group, turn), call, plan, memory.clone()) }
            }
        }
    }
}

/// An operation that was started and is not over.
pub struct Pending {
    name: &'static str,
    state: Mutex<State>,
}

#[expect(clippy::large_enum_variant, reason = "an operation is over soon, and allocated once")]
enum State {
    Running(Operation),
    Over(Outcome),
}

/// An operation that was started.
pub enum Started {
    /// It is over already.
    Over(Outcome),
    Pending(Arc<Pending>),
}

impl Started {
    /// Waits until the operation is over.
    #[track_caller]
    pub fn wait(self, world: &TwoSided) -> Outcome {
        match self {
            Started::Over(outcome) => outcome,
            Started::Pending(pending) => pending.wait(world),
        }
    }

    /// The operation, for callers that ask for its outcome later.
    pub fn pending(self) -> Arc<Pending> {
        match self {
            Started::Over(outcome) => {
                Arc::new(Pending { name: "operation", state: Mutex::new(State::Over(outcome)) })
            }
            Started::Pending(pending) => pending,
        }
    }
}

impl Pending {
    fn new(operation: Operation) -> Pending {
        Pending { name: operation.name(), state: Mutex::new(State::Running(operation)) }
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

    /// Whether it is over; `false` if a thread looks after it now.
    pub(super) fn is_over(&self) -> bool {
        try_locked(&self.state).is_some_and(|state| matches!(*state, State::Over(_)))
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
        for _ in 0..world.spins_before_wait() {
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
        let mut is_any_over = false;
        for pending in all {
            is_any_over |= pending.advance(world).is_some();
        }
        if is_any_over {
            self.moves.fetch_add(1, Ordering::Relaxed);
            let mut running = locked(&self.running);
            running.retain(|pending| !pending.is_over());
            self.active.store(running.len() as u32, Ordering::Relaxed);
        }
    }

    #[track_caller]
    fn start(&self, world: &TwoSided, mut operation: Operation) -> Started {
        if let Some(outcome) = operation.advance(world) {
            return Started::Over(outcome);
        }
        let pending = Arc::new(Pending::new(operation));
        let mut running = locked(&self.running);
        if running.len() == running.capacity() {
            // Waits that have ended by themselves have left theirs.
            running.retain(|pending| !pending.is_over());
        }
        running.push(Arc::clone(&pending));
        self.active.store(running.len() as u32, Ordering::Relaxed);
        Started::Pending(pending)
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
    pub unsafe fn start_stages(&self, world: &TwoSided, stages: &[Stage]) -> Option<Started> {
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

    /// The operation of all stages. All plans are made before a stage gets its number, so that none begins if
    /// one has no plan.
    ///
    /// # Safety
    /// As [`start_stages`](MessageCollectives::start_stages).
    #[track_caller]
    unsafe fn chain(&self, world: &TwoSided, stages: &[Stage]) -> Option<Operation> {
        let plans: Vec<_> = stages.iter().map(|stage| stage.plan(world)).collect::<Option<_>>()?;
        // SAFETY: the caller promises what this function requires.
        let operations = stages.iter().zip(plans).map(|(stage, plan)| unsafe { stage.operation(plan) });
        let operations: Vec<Operation> = operations.collect();
        let whole = operations.into_iter().rev().reduce(|next, before| before.followed_by(next));
        Some(whole.expect("an operation has a stage"))
    }

    /// Starts one call. `None` if no algorithm can do it.
    ///
    /// # Safety
    /// As [`run_call`](MessageCollectives::run_call), until the operation is over.
    #[track_caller]
    pub unsafe fn start_call(
        &self,
        world: &TwoSided,
        group: &MessageGroup,
        call: &MessageCall,
        memory: Memory,
    ) -> Option<Started> {
        callback::forbid(world, call.operation.name());
        let plan = plan(world, group, call, memory.combiner.as_ref())?;
        let _span = call.record(world, plan.algorithm);
        let numbered = (group, group.next_turn());
        // SAFETY: the caller promises what this function requires.
        let operation = unsafe { Operation::of_call(numbered, call, plan, memory) };
        Some(self.start(world, operation))
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
        memory: &Memory,
    ) -> Option<Outcome> {
        callback::forbid(world, call.operation.name());
        // SAFETY: the caller promises what these functions require.
        unsafe {
            match world.collectives.online() {
                None => self.run_usually(world, group, call, memory),
                Some(online) => self.run_online(world, online, (group, call), memory),
            }
        }
    }

    /// The same as the settings and thresholds have it.
    ///
    /// # Safety
    /// As [`run_call`](MessageCollectives::run_call).
    #[inline]
    #[track_caller]
    pub(super) unsafe fn run_usually(
        &self,
        world: &TwoSided,
        group: &MessageGroup,
        call: &MessageCall,
        memory: &Memory,
    ) -> Option<Outcome> {
        // SAFETY: the caller promises what this function requires.
        if let Some(outcome) = unsafe { try_direct(world, self, group, call, memory) } {
            return Some(outcome);
        }
        let plan = plan(world, group, call, memory.combiner.as_ref())?;
        // SAFETY: the caller promises what this function requires.
        Some(unsafe { self.run_plan(world, (group, call), plan, memory) })
    }

    /// Runs one call by a plan.
    ///
    /// # Safety
    /// As [`run_call`](MessageCollectives::run_call).
    #[inline]
    #[track_caller]
    pub(super) unsafe fn run_plan(
        &self,
        world: &TwoSided,
        (group, call): (&MessageGroup, &MessageCall),
        plan: Arc<Plan>,
        memory: &Memory,
    ) -> Outcome {
        let numbered = (group, group.next_turn());
        // SAFETY: the caller promises what this function requires.
        let mut operation = unsafe { Operation::of_call(numbered, call, plan, memory.clone()) };
        for _ in 0..world.spins_before_wait() {
            if let Some(outcome) = operation.advance(world) {
                return outcome;
            }
            spin_once();
        }
        Pending::new(operation).wait(world)
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
        exchange: &Exchange,
    ) -> Outcome {
        callback::forbid(world, name);
        let turn = group.next_turn();
        if exchange.is_soon_over() && turn.has_come() {
            // SAFETY: the caller promises what this function requires.
            let outcome = unsafe { exchange.run(world, group, turn.number) };
            turn.end();
            return outcome;
        }
        Pending::new(Operation::of_exchange(name, (group, turn), Arc::new(exchange.clone()))).wait(world)
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
