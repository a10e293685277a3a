//! The scheduler: one PE runs at a time, and this decides which.
//!
//! Invariant: on threads, from the moment that all PEs have connected until all have left, `turn` names
//! exactly one PE, and only its threads are inside the engine. A PE that gives the turn away wakes the next
//! one and sleeps, both outside the lock. A hand-over is one unpark and one park, and neither if the same PE
//! goes on.

use super::engine::{Member, PortId, Standing, State};
use crate::types::Pe;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state that all endpoints of a simulation share.
pub(super) struct Engine {
    state: Mutex<State>,
}

pub(super) type Guard<'a> = MutexGuard<'a, State>;

/// In chaos an idle PE is resumed instead of a ready one with this probability.
const DISTURBANCE: f32 = 0.125;
/// If all PEs check in vain, but not all rest, one resting PE may check once in this number of steps.
const LOOK_STEPS: usize = 8;
/// The weight of a rest in vain, relative to a poll in vain, for the detection of a deadlock.
const RESTS_WEIGHT: usize = 100;

impl Engine {
    pub(super) fn new(state: State) -> Engine {
        Engine { state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, when it is this PE's turn. A PE that is not connected, or has left, does not wait for a
    /// turn.
    pub(super) fn enter(&self, pe: Pe) -> Guard<'_> {
        let mut state = self.lock();
        match state.members[pe].standing {
            Standing::Absent | Standing::Gone => return state,
            _ if state.driven => return state,
            Standing::Idle => state.members[pe].standing = Standing::Ready,
            Standing::Ready | Standing::Running => (),
        }
        self.await_turn(state, pe)
    }

    /// Makes the PE take part; on threads, waits for all others.
    pub(super) fn join(&self, pe: Pe) {
        let mut state = self.lock();
        state.members[pe].standing = Standing::Ready;
        if state.driven {
            return;
        }
        let state = self.start(state);
        drop(self.await_turn(state, pe));
    }

    /// Lets the next PE go on, and returns when it is this PE's turn.
    ///
    /// # Panics
    /// If all PEs wait for something that no PE will do.
    pub(super) fn pass<'a>(&'a self, mut state: Guard<'a>, pe: Pe) -> Guard<'a> {
        if state.driven {
            state.drive();
            return state;
        }
        if state.members[pe].standing == Standing::Running {
            state.members[pe].standing = Standing::Ready;
        }
        let next = state.choose(Some(pe));
        if next != Some(pe) {
            self.hand_over(state, next);
            state = self.lock();
        }
        state = self.await_turn(state, pe);
        if let Some(words) = state.members[pe].doom.take() {
            drop(state);
            panic!("{words}");
        }
        state
    }

    /// Ends the part of a PE, and lets the next PE go on.
    pub(super) fn leave(&self, pe: Pe, port: PortId) {
        let mut state = self.enter(pe);
        state.close_port(port);
        state.depart(pe);
        std::mem::take(&mut state.members[pe].waiters).into_iter().for_each(|thread| thread.unpark());
        match state.turn {
            _ if state.driven => (),
            None => drop(self.start(state)),
            Some(_) => {
                let next = state.choose(None);
                self.hand_over(state, next);
            }
        }
    }

    /// Gives the first turn, once no PE is absent.
    fn start<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        if state.turn.is_some() || state.members.iter().any(|m| m.standing == Standing::Absent) {
            return state;
        }
        let first = state.choose(None);
        self.hand_over(state, first);
        self.lock()
    }

    fn hand_over(&self, mut state: Guard<'_>, next: Option<Pe>) {
        let waiters = next.map(|next| std::mem::take(&mut state.members[next].waiters));
        drop(state);
        waiters.into_iter().flatten().for_each(|thread| thread.unpark());
    }

    fn await_turn<'a>(&'a self, mut state: Guard<'a>, pe: Pe) -> Guard<'a> {
        // A PE that has left gets no turn any more, and needs none to close its other endpoints.
        while state.turn != Some(pe) && state.members[pe].standing != Standing::Gone {
            let member = &mut state.members[pe];
            let me = std::thread::current();
            if member.waiters.iter().all(|thread| thread.id() != me.id()) {
                member.waiters.push(me);
            }
            drop(state);
            std::thread::park();
            state = self.lock();
        }
        state
    }
}

impl State {
    /// One thread drives all endpoints: the network advances until something has happened that a PE can see,
    /// in chaos by a few steps.
    fn drive(&mut self) {
        if self.params.chaos {
            for _ in 0..self.random.below(4) {
                self.step();
            }
            return;
        }
        let touches = |state: &State| state.members.iter().map(|m| m.touches).sum::<u64>();
        let before = touches(self);
        while touches(self) == before && self.step() {}
    }

    /// Advances the network until a PE can run. Gives this PE the turn and returns it; `None` if all have
    /// left. `present` is the PE that calls.
    fn choose(&mut self, present: Option<Pe>) -> Option<Pe> {
        let next = if self.params.chaos { self.choose_any(present) } else { self.choose_earliest() };
        self.turn = next;
        let next = next?;
        // A PE that polls may do so until a time limit of its own. If all PEs rest, only events from outside
        // can end the wait.
        let do_all_rest = self.live().all(|(_, member)| member.standing != Standing::Ready);
        let member = &mut self.members[next];
        let weight = if do_all_rest && member.standing == Standing::Idle { RESTS_WEIGHT } else { 1 };
        if member.standing == Standing::Idle {
            // An event that it finds, if any, was caused by others until now.
            member.clock = member.clock.max(self.now);
        }
        member.standing = Standing::Running;
        self.now = self.now.max(member.clock);
        if self.pending.is_empty() && self.live().all(|(_, member)| member.vain) {
            self.hopeless_steps += 1;
            self.hopeless_weight += weight;
            let limit = self.params.hopeless_rounds * RESTS_WEIGHT * self.live().count();
            if self.hopeless_weight > limit {
                self.members[next].doom = Some(self.words_of_doom(next));
            }
        }
        Some(next)
    }

    /// In virtual time: takes the earliest step or PE.
    fn choose_earliest(&mut self) -> Option<Pe> {
        loop {
            let ready = self.live().filter(|(_, member)| member.standing == Standing::Ready);
            let ready = ready.min_by_key(|(pe, member)| (member.clock, *pe)).map(|(pe, m)| (pe, m.clock));
            match (ready, self.pending.earliest()) {
                (Some((pe, clock)), event) if event.is_none_or(|time| clock < time) => {
                    let look = self.hopeless_steps % LOOK_STEPS == LOOK_STEPS - 1;
                    return if look { self.next_idle().or(Some(pe)) } else { Some(pe) };
                }
                (_, Some(_)) => self.step(),
                (_, None) => return self.next_idle(),
            };
        }
    }

    /// In chaos: takes the step or PE that the sequence selects.
    fn choose_any(&mut self, present: Option<Pe>) -> Option<Pe> {
        let is_ready = present.is_some_and(|pe| self.members[pe].standing == Standing::Ready);
        if is_ready && self.random.chance(self.params.stay) {
            return present;
        }
        loop {
            let count = |standing| self.live().filter(|(_, member)| member.standing == standing).count();
            let (ready, idle) = (count(Standing::Ready), count(Standing::Idle));
            let can_deliver = !self.pending.is_empty();
            if can_deliver && (ready == 0 || self.random.chance(self.params.delivery)) {
                if ready == 0 && idle > 0 && self.random.chance(DISTURBANCE) {
                    return self.nth(Standing::Idle, idle);
                }
                self.step();
            } else if ready == 0 || (idle > 0 && self.random.chance(DISTURBANCE)) {
                return self.nth(Standing::Idle, idle);
            } else {
                return self.nth(Standing::Ready, ready);
            }
        }
    }

    /// One of the `count` PEs with this standing.
    fn nth(&mut self, standing: Standing, count: usize) -> Option<Pe> {
        let index = if count > 1 { self.random.below(count) } else { 0 };
        self.live().filter(|(_, member)| member.standing == standing).nth(index).map(|(pe, _)| pe)
    }

    /// The idle PE that has waited longest for a chance to check.
    fn next_idle(&mut self) -> Option<Pe> {
        let n_pes = self.members.len();
        let after = (1..=n_pes).map(|i| (self.last_resumed + i) % n_pes);
        let mut idle = after.filter(|pe| self.members[*pe].standing == Standing::Idle);
        let next = idle.next()?;
        self.last_resumed = next;
        Some(next)
    }

    fn live(&self) -> impl Iterator<Item = (Pe, &Member)> {
        self.members.iter().enumerate().filter(|(_, member)| member.standing != Standing::Gone)
    }

    #[cold]
    fn words_of_doom(&self, pe: Pe) -> String {
        let waiting: Vec<Pe> = self.live().map(|(pe, _)| pe).collect();
        let gone: Vec<Pe> = (0..self.members.len()).filter(|pe| !waiting.contains(pe)).collect();
        let lost = self.lost.map_or_else(String::new, |lost| format!("; PE {lost} is lost"));
        let (seed, rounds) = (self.params.seed, self.params.hopeless_rounds);
        format!(
            "PE {pe}: deadlock in the simulation of seed {seed}: PEs {waiting:?} wait, PEs {gone:?} are \
             gone{lost}, nothing is under way, and all have looked {rounds} times in vain. Who was to put, \
             send or leave?"
        )
    }
}
