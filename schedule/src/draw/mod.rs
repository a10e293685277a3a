//! Pictures of schedules: who sends what to whom, in which round.
//!
//! A picture needs times, which a schedule does not have. Here a step takes a time by its kind, whatever its
//! size, so that what can happen at once stands side by side (space-time diagrams: L. Lamport, 1978).
//!
//! Invariant: a picture shows every message once. Schedules that stand still are drawn as far as they get.

mod svg;
mod text;

pub use svg::svg;
pub use text::text;

use super::schedule::{Rank, Schedule, Step};
use std::collections::HashMap;

/// Of the kinds of steps: how long they take.
const START_TIME: u32 = 1;
const FLIGHT_TIME: u32 = 6;
const COPY_TIME: u32 = 1;
const REDUCE_TIME: u32 = 2;

/// How something travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Put,
    Get,
    Signal,
}

/// Something that travels from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    kind: Kind,
    from: Rank,
    to: Rank,
    bytes: usize,
    leaves: u32,
    arrives: u32,
    /// How long the longest chain of messages is that ends with it.
    round: usize,
}

/// Copying or combining at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Work {
    rank: Rank,
    reduces: bool,
    bytes: usize,
    start: u32,
    end: u32,
    /// How many messages are in the longest chain before it.
    round: usize,
}

/// A rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    rank: Rank,
    start: u32,
    end: u32,
}

/// What happens when.
#[derive(Debug, Default)]
struct Timeline {
    messages: Vec<Message>,
    works: Vec<Work>,
    pauses: Vec<Pause>,
    /// When each rank has done all that it does.
    ends: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Clock {
    at: usize,
    time: u32,
    round: usize,
    /// Of the transfers that a `Complete` waits for.
    complete_time: u32,
    complete_round: usize,
}

impl Timeline {
    fn new(schedules: &[Schedule]) -> Timeline {
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

    /// Does a step, unless the rank must wait for it. `signals` has time and round of those that have come.
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

    fn rounds(&self) -> usize {
        self.messages.last().map_or(0, |message| message.round)
    }
}

/// Bytes in a few characters: `8`, `1K`, `1.5M`.
fn short(bytes: usize) -> String {
    let (mut value, mut unit) = (bytes as f64, "");
    for larger in ["K", "M", "G", "T"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    match value {
        _ if unit.is_empty() || value.fract() == 0.0 || value >= 9.95 => format!("{value:.0}{unit}"),
        _ => format!("{value:.1}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::check::cases::Case;
    use crate::coll::check::{CheckOptions, check};
    use crate::coll::table::algorithms;

    #[test]
    fn pictures_have_the_messages_and_rounds_that_the_checker_counts() {
        for algorithm in algorithms() {
            let case = Case::new(algorithm.operation, 8, 40);
            let report = check(algorithm, &case.shapes(), &CheckOptions::default()).unwrap();
            let schedules: Vec<_> = (0..8).map(|rank| algorithm.schedule(&case.shape(rank), 240)).collect();
            let timeline = Timeline::new(&schedules);
            let name = format!("{}/{}", algorithm.operation, algorithm.name);
            assert_eq!(
                (timeline.messages.len(), timeline.rounds()),
                (report.messages, report.rounds),
                "{name}"
            );
            let drawn = svg(&name, &schedules);
            assert_eq!(drawn.matches("class=\"message").count(), report.messages, "{name}");
            assert!(text(&schedules, 100).contains(" 1 "), "{name}");
        }
    }

    #[test]
    fn sizes_are_short() {
        let shown = [0, 8, 999, 1000, 1024, 1536, 10_240, 1 << 20].map(short);
        assert_eq!(shown, ["0", "8", "999", "1.0K", "1K", "1.5K", "10K", "1M"]);
    }
}
