//! The phases of the application: insert, update, find, look up absent keys, remove, find again. Invariant:
//! the expected result of each lookup is known in advance, and is sent with the lookup as its ticket.

use std::time::Duration;

use pelago::Result;
use pelago::am::{HandlerLock, Handlers};
use pelago::prelude::*;

use super::shard::Shard;
use super::table::{Found, Function, HashTable, Service};
use crate::collect;
use crate::partition::Partition;
use crate::rate::timed;
use crate::splitmix::mix;

/// The ticket of a lookup that must find no key. All values are smaller.
const ABSENT: u64 = u64::MAX;
/// The number of operations after which progress is reported.
const OPERATIONS_A_STEP: u64 = 1 << 14;

/// A phase, in which all PEs make operations of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Inserts every key, with its number as its value.
    Insert,
    /// Adds to the value of every key its number plus one.
    Update,
    /// Looks up every key.
    Find,
    /// Looks up the same number of keys that were never inserted.
    FindAbsent,
    /// Removes every second key.
    Remove,
    /// Looks up every key once more; half of them were removed.
    FindLeft,
}

impl Phase {
    /// All phases, in their order.
    pub(super) const ALL: [Phase; 6] =
        [Phase::Insert, Phase::Update, Phase::Find, Phase::FindAbsent, Phase::Remove, Phase::FindLeft];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Insert => "insert",
            Phase::Update => "update",
            Phase::Find => "find",
            Phase::FindAbsent => "find absent",
            Phase::Remove => "remove",
            Phase::FindLeft => "find left",
        }
    }

    /// The number of operations of all PEs, for `keys` keys.
    pub(super) fn operations(self, keys: u64) -> u64 {
        match self {
            Phase::Remove => keys / 2,
            _ => keys,
        }
    }

    fn is_lookup(self) -> bool {
        matches!(self, Phase::Find | Phase::FindAbsent | Phase::FindLeft)
    }

    /// Makes the operation on key number `n` of `keys`.
    fn make(self, table: &mut HashTable<'_>, keys: u64, n: u64) -> Result<()> {
        let (key, updated, is_removed) = (mix(n), 2 * n + 1, n % 2 == 1);
        match self {
            Phase::Insert => table.insert(key, n),
            Phase::Update => table.update(key, Function::Add, n + 1),
            Phase::Find => table.find(key, updated),
            Phase::FindAbsent => table.find(mix(keys + n), ABSENT),
            Phase::Remove if is_removed => table.remove(key),
            Phase::Remove => Ok(()),
            Phase::FindLeft => table.find(key, if is_removed { ABSENT } else { updated }),
        }
    }
}

/// The replies to this PE's lookups.
#[derive(Debug, Default)]
struct Tally {
    answers: u64,
    wrong: u64,
}

impl Tally {
    fn count(&mut self, answers: &[Found]) {
        let is_wrong = |found: &&Found| found.value().unwrap_or(ABSENT) != found.ticket;
        self.answers += answers.len() as u64;
        self.wrong += answers.iter().filter(is_wrong).count() as u64;
    }
}

/// The results, the same on all PEs.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The time of each phase.
    pub(super) times: Vec<(Phase, Duration)>,
    /// The number of replies to lookups; there must be one for each lookup.
    pub(super) answers: u64,
    /// The number of replies that differ from the expected result.
    pub(super) wrong: u64,
    /// The number of keys that are left at the end.
    pub(super) left: u64,
}

impl Outcome {
    /// Whether the results are correct for a run with `keys` keys.
    pub(super) fn is_right(&self, keys: u64) -> bool {
        let lookups = Phase::ALL.iter().filter(|phase| phase.is_lookup()).count() as u64;
        self.wrong == 0 && self.answers == lookups * keys && self.left == keys.div_ceil(2)
    }
}

/// Collective: all phases, on a table of `keys` keys. `progress` gets the number of keys of its share that
/// this PE has processed in a phase.
pub(super) fn run(world: &World, keys: u64, progress: &mut dyn FnMut(Phase, u64)) -> Result<Outcome> {
    let shares = Partition::new(keys, world.n_pes());
    let shard = HandlerLock::new(Shard::with_room(shares.longest() as usize));
    let tally = HandlerLock::new(Tally::default());
    let receiver = |answers: &[Found]| tally.lock().count(answers);
    let mut handlers = Handlers::new();
    let service = Service::add(&mut handlers, &shard, &receiver);
    let times = world.team().serve(handlers, |am| {
        let mut table = service.open(am);
        let mut times = Vec::new();
        for (number, phase) in Phase::ALL.into_iter().enumerate() {
            // A PE has different keys in any two consecutive phases.
            let share = shares.range((world.my_pe() + number) % world.n_pes());
            let time = timed(world, || {
                for n in share.clone() {
                    phase.make(&mut table, keys, n)?;
                    if n % OPERATIONS_A_STEP == 0 {
                        progress(phase, n - share.start);
                    }
                }
                table.barrier()
            })?;
            times.push((phase, time));
        }
        Ok::<_, pelago::Error>(times)
    })??;
    let (tally, left) = (tally.lock(), shard.lock().len() as u64);
    let own = [tally.answers, tally.wrong, left];
    drop(tally);
    let all = collect::collect(world, &own)?;
    let sum = |i: usize| all.iter().map(|words| words[i]).sum();
    Ok(Outcome { times, answers: sum(0), wrong: sum(1), left: sum(2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_phases_are_right_on_any_number_of_pes() {
        for (pes, keys) in [(1, 1000), (2, 5001), (3, 20_000), (4, 2), (8, 3000)] {
            let outcomes = spmd(pes, |world| run(world, keys, &mut |_, _| ()).unwrap()).unwrap();
            for outcome in outcomes {
                assert!(outcome.is_right(keys), "{pes} PEs, {keys} keys: {outcome:?}");
                assert_eq!(outcome.times.len(), Phase::ALL.len());
            }
        }
    }

    #[test]
    fn what_is_wrong_or_missing_is_found() {
        let right = Outcome { times: Vec::new(), answers: 30, wrong: 0, left: 5 };
        assert!(right.is_right(10));
        assert!(!Outcome { answers: 29, ..right.clone() }.is_right(10));
        assert!(!Outcome { wrong: 1, ..right.clone() }.is_right(10));
        assert!(!Outcome { left: 6, ..right }.is_right(10));
    }
}
