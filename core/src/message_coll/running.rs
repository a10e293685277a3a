//! All operations of a PE that are under way, and the waits for them.
//!
//! Invariant: an operation moves in the wait of the thread that waits for it, and in every other wait of this
//! PE, so that members that wait for different things serve each other.

use super::direct::{KeptTeams, try_direct};
use super::group::MessageGroup;
use super::operation::{Memory, Operation, Outcome};
use super::plan::{Exchange, Key, MessageCall, Plan};
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

    /// Starts an operation. `None` if no algorithm can do it: the settings demand results that do not depend
    /// on the algorithm.
    ///
    /// # Safety
    /// Source and target have as many bytes as the call needs, valid and left alone until the operation is
    /// over.
    #[track_caller]
    pub unsafe fn start_call(
        &self,
        world: &TwoSided,
        group: &Arc<MessageGroup>,
        call: &MessageCall,
        memory: Memory,
    ) -> Option<Arc<Pending>> {
        let name = call.operation.name();
        callback::forbid(world, name);
        let plan = plan(world, group, call, memory.combiner.as_ref())?;
        Some(self.start(world, Operation::new(name, group, plan, memory)))
    }

    /// As [`start_call`](MessageCollectives::start_call), and waits for the end.
    ///
    /// # Safety
    /// As [`start_call`](MessageCollectives::start_call).
    #[track_caller]
    pub unsafe fn run_call(
        &self,
        world: &TwoSided,
        group: &Arc<MessageGroup>,
        call: &MessageCall,
        memory: Memory,
    ) -> Option<Outcome> {
        let name = call.operation.name();
        callback::forbid(world, name);
        // SAFETY: the caller's promise.
        if unsafe { try_direct(world, self, group, call, &memory) } {
            return Some(Ok(()));
        }
        let plan = plan(world, group, call, memory.combiner.as_ref())?;
        Some(Pending::new(Operation::new(name, group, plan, memory)).wait(world))
    }

    /// Starts an exchange: an operation whose blocks have sizes of their own.
    ///
    /// # Safety
    /// Source and target have the bytes that the exchange names, valid and left alone until it is over.
    #[track_caller]
    pub unsafe fn start_exchange(
        &self,
        world: &TwoSided,
        group: &Arc<MessageGroup>,
        (name, exchange): (&'static str, &Exchange),
        memory: Memory,
    ) -> Arc<Pending> {
        callback::forbid(world, name);
        let plan = Arc::new(Plan::of_exchange(group, exchange));
        self.start(world, Operation::new(name, group, plan, memory))
    }

    /// As [`start_exchange`](MessageCollectives::start_exchange), and waits for the end.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    pub unsafe fn run_exchange(
        &self,
        world: &TwoSided,
        group: &MessageGroup,
        (name, exchange): (&'static str, &Exchange),
        memory: Memory,
    ) -> Outcome {
        callback::forbid(world, name);
        let plan = Arc::new(Plan::of_exchange(group, exchange));
        Pending::new(Operation::new(name, group, plan, memory)).wait(world)
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
    group.plan(Key::of(call, combiner), make)
}
