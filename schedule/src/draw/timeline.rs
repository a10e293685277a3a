//! The events of schedules with their times, for the pictures.

use crate::schedule::{Rank, Schedule, Step};
use std::collections::HashMap;

/// The duration of each kind of step.
const START_TIME: u32 = 1;
const FLIGHT_TIME: u32 = 6;
const COPY_TIME: u32 = 1;
const REDUCE_TIME: u32 = 2;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Put,
    Get,
    Signal,
}

/// A message from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) bytes: usize,
    pub(super) leaves: u32,
    pub(super) arrives: u32,
    /// The length of the longest chain of messages that ends with it.
    pub(super) round: usize,
}

/// Copying or combining at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) rank: Rank,
    pub(super) reduces: bool,
    pub(super) bytes: usize,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The number of messages in the longest chain before it.
    pub(super) round: usize,
}

/// A rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    pub(super) rank: Rank,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// All events with their times.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) messages: Vec<Message>,
    pub(super) works: Vec<Work>,
    pub(super) pauses: Vec<Pause>,
    /// The time at which each rank has ended.
    pub(super) ends: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Clock {
    at: usize,
    time: u32,
    round: usize,
    /// The end of the transfers that a `Complete` waits for.
    complete_time: u32,
    complete_round: usize,
}

impl Timeline {
    pub(super) fn new(schedules: &[Schedule]) -> Timeline {
        let mut timeline = Timeline::default();
        let mut clocks = vec![Clock::default(); schedules.len()];
        let mut signals = HashMap::new();
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for (rank, schedule) in schedules.iter().enumerate() {
                while let Some(step) = schedule.steps.get(clocks[rank].at) {
                    if !timeline.step(rank, step, &mut clocks[rank], &mut signals) {
                        break;
                    }
                    clocks[rank].at += 1;
                    goes_on = true;
                }
            }
        }
        timeline.messages.sort_by_key(|message| (message.round, message.leaves, message.from, message.to));
        timeline.ends = clocks.iter().map(|clock| clock.time).collect();
        timeline
    }

    /// Performs a step, unless the rank must wait. `signals` has the time and the round of the signals that
    /// have arrived.
    fn step(
        &mut self,
        rank: Rank,
        step: &Step,
        clock: &mut Clock,
        signals: &mut HashMap<(Rank, usize), (u32, usize)>,
    ) -> bool {
        match *step {
            Step::Put { to, bytes, signal, .. } => {
                let (arrives, round) = self.send(Kind::Put, (rank, to), bytes, clock);
                signals.extend(signal.map(|slot| ((to, slot), (arrives, round))));
                clock.complete_time = clock.complete_time.max(arrives);
            }
            Step::Signal { to, slot, .. } => {
                signals.insert((to, slot), self.send(Kind::Signal, (rank, to), 0, clock));
            }
            Step::Get { of, bytes, .. } => {
                let (arrives, round) = self.send(Kind::Get, (of, rank), bytes, clock);
                clock.complete_time = clock.complete_time.max(arrives);
                clock.complete_round = clock.complete_round.max(round);
            }
            Step::Wait { slot, .. } => {
                let Some(&(time, round)) = signals.get(&(rank, slot)) else { return false };
                self.pause(rank, clock, time);
                clock.round = clock.round.max(round);
            }
            Step::Complete => {
                self.pause(rank, clock, clock.complete_time);
                clock.round = clock.round.max(clock.complete_round);
            }
            Step::Copy { bytes, .. } => self.work(rank, false, bytes, clock),
            Step::CopyStrided { block, count, .. } => self.work(rank, false, block * count, clock),
            Step::Reduce { bytes, .. } => self.work(rank, true, bytes, clock),
        }
        true
    }

    fn send(
        &mut self,
        kind: Kind,
        (from, to): (Rank, Rank),
        bytes: usize,
        clock: &mut Clock,
    ) -> (u32, usize) {
        let (leaves, arrives, round) = (clock.time, clock.time + FLIGHT_TIME, clock.round + 1);
        self.messages.push(Message { kind, from, to, bytes, leaves, arrives, round });
        clock.time += START_TIME;
        (arrives, round)
    }

    fn pause(&mut self, rank: Rank, clock: &mut Clock, until: u32) {
        if until > clock.time {
            self.pauses.push(Pause { rank, start: clock.time, end: until });
            clock.time = until;
        }
    }

    fn work(&mut self, rank: Rank, reduces: bool, bytes: usize, clock: &mut Clock) {
        let end = clock.time + if reduces { REDUCE_TIME } else { COPY_TIME };
        self.works.push(Work { rank, reduces, bytes, start: clock.time, end, round: clock.round });
        clock.time = end;
    }

    pub(super) fn rounds(&self) -> usize {
        self.messages.last().map_or(0, |message| message.round)
    }
}
