//! Ranks: they take their actions in turn, until one of them has to wait.
//!
//! Invariant: an action that others can notice is taken when the time of the simulation is the clock of its
//! rank. Actions that nobody notices only advance the clock.

use super::state::{Blocked, Event, NO_SIGNAL, PROGRAM_SLOTS, Phase, Running, State};
use crate::action::{Action, Collective};
use crate::time::{Time, moving};

/// The bits of a key that are the slot of a collective operation.
const SLOTS: u64 = 0xFF_FFFF;

/// The word and the bit of the slot of a key.
fn bit_of(key: u64) -> (usize, u64) {
    let slot = key & SLOTS;
    ((slot / 64) as usize, 1 << (slot % 64))
}

impl<'a> State<'a> {
    /// Lets a rank take actions until it is blocked, has ended, or something else happens first.
    pub(super) fn advance(&mut self, number: u32) {
        while self.error.is_none() {
            let Some((phase, action)) = self.held_or_next(number) else {
                return;
            };
            let held = match phase {
                Phase::Call if self.is_local(&action) => {
                    self.compute(number, &action);
                    continue;
                }
                Phase::Call if self.needs_calls && !self.is_now(number) => Some((Phase::Call, action)),
                Phase::Call => {
                    self.serve_deferred(number);
                    let overhead = self.overhead(number, &action);
                    self.ranks[number as usize].clock += overhead;
                    Some((Phase::Act, action))
                }
                Phase::Act => Some((Phase::Act, action)),
            };
            self.ranks[number as usize].held = held;
            if !self.is_now(number) {
                let at = self.ranks[number as usize].clock;
                return self.queue.push(at, Event::Resume(number));
            }
            let Some((Phase::Act, action)) = self.ranks[number as usize].held.take() else {
                continue;
            };
            if !self.act(number, action) {
                return;
            }
        }
    }

    /// Whether the clock of the rank is the time of the simulation. If nothing happens before, it becomes it.
    fn is_now(&mut self, number: u32) -> bool {
        let clock = self.ranks[number as usize].clock;
        debug_assert!(clock >= self.now, "rank {number} is in the past");
        if clock > self.now && self.queue.is_quiet_until(clock) {
            self.now = clock;
        }
        clock == self.now
    }

    fn held_or_next(&mut self, number: u32) -> Option<(Phase, Action)> {
        let workload = self.workload;
        let rank = &mut self.ranks[number as usize];
        if rank.held.is_some() {
            return rank.held.take();
        }
        if let Some(running) = &mut rank.schedule {
            if let Some(action) = running.steps.next() {
                return Some((Phase::Call, action));
            }
            // The engine of the runtime completes a rank's own puts at the end of an operation.
            rank.schedule = None;
            return Some((Phase::Call, Action::Complete));
        }
        let program = rank.program.get_or_insert_with(|| workload.program(number as usize));
        if let Some(action) = program.next() {
            return Some((Phase::Call, action));
        }
        rank.program = Some(Box::new(std::iter::empty()));
        rank.blocked = Blocked::Ended;
        self.ended += 1;
        self.serve_deferred(number);
        None
    }

    /// Whether other ranks cannot notice an action.
    fn is_local(&self, action: &Action) -> bool {
        matches!(action, Action::Compute(_) | Action::Copy { .. } | Action::Reduce { .. })
    }

    fn compute(&mut self, number: u32, action: &Action) {
        let time = match *action {
            Action::Compute(time) => time,
            Action::Copy { bytes } => moving(bytes, self.rates.copy),
            Action::Reduce { bytes } => moving(bytes, self.rates.reduce),
            _ => 0,
        };
        self.ranks[number as usize].clock += time;
        self.counts.computing += u128::from(time);
    }

    /// The time of the processor at the beginning of a call.
    fn overhead(&self, number: u32, action: &Action) -> Time {
        let (network, protocol) = (&self.machine.network, &self.machine.protocol);
        let to = |to: u32, far: Time| match self.node(to) == self.node(number) {
            true => self.machine.node.overhead,
            false if protocol.card_has_overhead => 0,
            false => far,
        };
        match *action {
            Action::Put { to: peer, .. } | Action::Get { of: peer, .. } => to(peer, network.send_overhead),
            Action::Send { to: peer, .. } => to(peer, protocol.message_send_overhead),
            _ => 0,
        }
    }

    /// Takes an action at its time; false if the rank is blocked.
    fn act(&mut self, number: u32, action: Action) -> bool {
        if let Action::Put { to: peer, .. } | Action::Get { of: peer, .. } | Action::Send { to: peer, .. } =
            action
        {
            if peer as usize >= self.ranks.len() {
                let last = self.ranks.len() - 1;
                self.fail(number, format!("{action:?} names rank {peer}; the ranks are 0 to {last}"));
                return false;
            }
            if self.ranks[number as usize].under_way >= self.machine.protocol.outstanding {
                self.ranks[number as usize].held = Some((Phase::Act, action));
                self.block(number, Blocked::Credit);
                return false;
            }
        }
        match action {
            Action::Put { to, bytes, signal } => {
                let key = signal.map_or(NO_SIGNAL, |slot| self.key(number, slot));
                self.put(number, to, bytes, key);
                self.end_send(number, to);
                true
            }
            Action::Get { of, bytes } => {
                self.get(number, of, bytes);
                self.end_send(number, of);
                true
            }
            Action::Wait { slot } => self.wait(number, self.key(number, slot)),
            Action::Complete => self.complete(number),
            Action::Send { to, bytes, tag } => {
                self.send(number, to, bytes, tag);
                self.end_send(number, to);
                true
            }
            Action::Receive { of, tag } => {
                self.receive(number, of, tag);
                true
            }
            Action::Finish => self.finish(number),
            Action::Collective(collective) => self.begin(number, &collective),
            Action::Compute(_) | Action::Copy { .. } | Action::Reduce { .. } => true,
        }
    }

    /// The call that has started a message goes on until it returns; see also `busy_until`.
    fn end_send(&mut self, number: u32, to: u32) {
        if self.node(to) != self.node(number) && !self.machine.protocol.processor_moves_data {
            self.ranks[number as usize].clock += self.machine.network.send_rest;
        }
    }

    /// The key of a slot, in the operation that the rank performs.
    fn key(&self, number: u32, slot: u32) -> u64 {
        let base = self.ranks[number as usize].schedule.as_ref().map_or(PROGRAM_SLOTS, |run| run.base);
        base + u64::from(slot)
    }

    /// Begins a collective operation: makes the schedule of this rank.
    fn begin(&mut self, number: u32, collective: &Collective) -> bool {
        let Some(member) = collective.members.number(number as usize) else {
            let (team, operation) = (collective.team, collective.operation());
            self.fail(number, format!("it is no member of team {team}, whose {operation} it calls"));
            return false;
        };
        let shape = pelago_schedule::shape::Shape { rank: member, ..collective.shape.clone() };
        if let Some(reason) = (collective.algorithm.restriction)(&shape) {
            let name = collective.algorithm.name;
            self.fail(number, format!("{} by {name}: {reason}", collective.operation()));
            return false;
        }
        let schedule = collective.algorithm.schedule(&shape, collective.mailbox_bytes);
        let steps: Vec<Action> =
            schedule.steps.iter().map(|step| Action::of_step(step, &collective.members)).collect();
        let rank = &mut self.ranks[number as usize];
        let index = rank.operations.iter().position(|(team, _)| *team == collective.team);
        let index = index.unwrap_or_else(|| {
            rank.operations.push((collective.team, 0));
            rank.operations.len() - 1
        });
        let operation = &mut rank.operations[index].1;
        let base = u64::from(collective.team) << 48 | (*operation & SLOTS) << 24;
        *operation += 1;
        rank.schedule = Some(Running { steps: steps.into_iter(), base });
        true
    }

    fn wait(&mut self, number: u32, key: u64) -> bool {
        let wait_overhead = self.machine.network.wait_overhead;
        let rank = &mut self.ranks[number as usize];
        let (word, bit) = bit_of(key);
        if key < PROGRAM_SLOTS && rank.signalled.get(word).is_some_and(|bits| bits & bit != 0) {
            rank.signalled[word] &= !bit;
            rank.clock += wait_overhead;
            return true;
        }
        let Some(count) = rank.arrived.get_mut(&key) else {
            self.block(number, Blocked::Slot(key));
            return false;
        };
        *count -= 1;
        if *count == 0 {
            rank.arrived.remove(&key);
        }
        rank.clock += wait_overhead;
        true
    }

    fn complete(&mut self, number: u32) -> bool {
        let rank = &mut self.ranks[number as usize];
        if rank.unsent > 0 || rank.open > 0 {
            self.block(number, Blocked::Complete);
            return false;
        }
        self.pass_until_settled(number);
        true
    }

    /// Lets a rank's time pass until its messages are settled.
    pub(super) fn pass_until_settled(&mut self, number: u32) {
        let rank = &mut self.ranks[number as usize];
        self.counts.blocked += u128::from(rank.settled.saturating_sub(rank.clock));
        rank.clock = rank.clock.max(rank.settled);
    }

    pub(super) fn block(&mut self, number: u32, reason: Blocked) {
        self.ranks[number as usize].blocked = reason;
        self.serve_deferred(number);
    }

    /// Lets a blocked rank go on at `at`, after `overhead` more.
    pub(super) fn wake(&mut self, number: u32, at: Time, overhead: Time) {
        let rank = &mut self.ranks[number as usize];
        self.counts.blocked += u128::from(at.saturating_sub(rank.clock));
        rank.clock = rank.clock.max(at) + overhead;
        rank.blocked = Blocked::No;
        // By an event: the caller may still have things to do at the present time.
        self.queue.push(rank.clock, Event::Resume(number));
    }

    /// A signal has arrived.
    pub(super) fn signal(&mut self, number: u32, key: u64) {
        let wait_overhead = self.machine.network.wait_overhead;
        let rank = &mut self.ranks[number as usize];
        if rank.blocked == Blocked::Slot(key) {
            return self.wake(number, self.now, wait_overhead);
        }
        let is_present = rank.schedule.as_ref().is_some_and(|run| run.base == key & !SLOTS);
        if !is_present {
            *rank.arrived.entry(key).or_insert(0) += 1;
            return;
        }
        let (word, bit) = bit_of(key);
        if rank.signalled.len() <= word {
            rank.signalled.resize(word + 1, 0);
        }
        debug_assert_eq!(rank.signalled[word] & bit, 0, "a slot is signalled twice");
        rank.signalled[word] |= bit;
    }

    /// Something that `Complete` waits for has ended, or will at `settled` without further events.
    pub(super) fn settle(&mut self, number: u32, settled: Time) {
        let rank = &mut self.ranks[number as usize];
        rank.settled = rank.settled.max(settled);
        let is_complete = rank.unsent == 0 && rank.open == 0;
        match rank.blocked {
            Blocked::Complete if is_complete => {
                let at = rank.settled.max(self.now);
                self.wake(number, at, 0);
            }
            Blocked::Finish => self.try_finish(number),
            _ => {}
        }
    }
}
