//! The simulation: ranks take actions, messages pass cards and links, and every event has its time.
//!
//! Invariant: events happen in the order of their times, and those of one time in the order in which they
//! were caused. So a run has one result, bit for bit. Times follow LogGP with one more rule, which the
//! simulated network of the runtime has too: a card also receives only one message at a time.

mod card;
mod deliver;
mod messages;
mod rank;
mod state;

use crate::action::Workload;
use crate::machine::Machine;
use crate::time::Time;
use state::{Event, State};
use std::fmt;

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The time at which each rank has ended.
    pub ends: Vec<Time>,
    /// The latest of these.
    pub time: Time,
    /// Messages between ranks; those of a get and of a rendezvous all count.
    pub messages: u64,
    /// Bytes of the data in them.
    pub bytes: u64,
    /// Events that were processed.
    pub events: u64,
    /// The time of all ranks in `Compute`, copies and reductions.
    pub computing: u128,
    /// The time that all ranks were blocked.
    pub blocked: u128,
    /// The longest time that a link between nodes was carrying data: no order of messages is faster.
    pub busiest_link: Time,
}

/// A simulation that has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The machine is too small for the workload.
    TooSmall(String),
    /// A rank waits for something that does not come.
    Deadlock {
        /// The number of ranks that have not ended.
        unfinished: usize,
        /// The lowest of them.
        rank: usize,
        /// The event for which that rank waits.
        waits_for: String,
    },
    /// An action that its rank cannot take.
    Invalid {
        /// The rank.
        rank: usize,
        /// The action, and the remedy.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooSmall(reason) => f.write_str(reason),
            Error::Deadlock { unfinished, rank, waits_for } => write!(
                f,
                "{unfinished} ranks never end: rank {rank} waits for {waits_for}, and nothing is under way; \
                 the workload needs an action that brings it"
            ),
            Error::Invalid { rank, reason } => write!(f, "rank {rank}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

/// The events between two reports.
const REPORT_EVENTS: u64 = 1 << 18;

/// Runs a workload on a machine.
///
/// # Errors
/// If the machine is too small, a rank takes an invalid action, or ranks wait forever.
pub fn run(machine: &Machine, workload: &dyn Workload) -> Result<Outcome, Error> {
    run_reporting(machine, workload, &mut |_, _| {})
}

/// The same; calls `report` again and again with the number of ranks that have ended and of events so far.
///
/// # Errors
/// As [`run`].
pub fn run_reporting(
    machine: &Machine,
    workload: &dyn Workload,
    report: &mut dyn FnMut(usize, u64),
) -> Result<Outcome, Error> {
    let mut state = State::new(machine, workload)?;
    for rank in 0..workload.ranks() {
        state.queue.push(0, Event::Resume(rank as u32));
    }
    let mut events: u64 = 0;
    while let Some((now, event)) = state.queue.pop() {
        debug_assert!(now >= state.now, "an event of the past");
        state.now = now;
        events += 1;
        match event {
            Event::Resume(rank) => state.advance(rank),
            Event::Card(card) => state.serve_card(card as usize),
            Event::Arrive(message) => state.arrive(message),
            Event::Deliver(message) => state.deliver(message),
            Event::Effect(message) => state.take_effect(message),
            Event::Packet(packet) => state.pass_packet(packet),
            Event::Share => state.share(),
            Event::Flows(version) => state.end_flows(version),
        }
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if events.is_multiple_of(REPORT_EVENTS) {
            report(state.ended, events);
        }
    }
    state.outcome(events)
}
