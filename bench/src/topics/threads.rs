//! `bench threads`: threads of one PE that put and add at the same time, through the world or through one
//! context per thread. Invariants: a rate of several threads is shown with its ratio to that of one thread;
//! the words are in PE 1's memory, and all PEs but PE 0 sleep in a barrier meanwhile; the threads are bound
//! in turn to the cores that PE 0 may use.

use std::thread;
use std::time::Duration;

use pelago::sync::{AtomicU64, Ordering};
use pelago::{Context, ContextKind, View};
use pelago_report::Cells;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::base::crowd::{Crowd, Share, rate_of_all, together};
use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "Threads of a PE",
    jobs: |pes| vec![Job { pes, suite: "threads" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curve(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench threads                   1, 2 and 4 threads of a PE
  pelago bench threads --html t.html     the curves as well";

/// The target PE of all operations.
const TARGET: Pe = 1;
/// The distance of two words, so that they share no cache line and no prefetch.
const STRIDE: usize = 16;
const THREADS: [usize; 3] = [1, 2, 4];
const THREADS_MAX: usize = THREADS[THREADS.len() - 1];
/// The tasks of the threads, one trial for each: operation and words, the texts for both, the short texts,
/// and a colour.
const TASKS: [(Operation, Place, [&str; 3], &str); 3] = [
    (Operation::PutIssue, Place::WordEach, ["p", "one each", "p, own words"], BLUE),
    (Operation::FetchAdd, Place::WordEach, ["fetch_add", "one each", "add, own words"], GREEN),
    (Operation::FetchAdd, Place::OneWord, ["fetch_add", "one for all", "add, one word"], ORANGE),
];
const WAYS: [(Way, &str, Line); 2] =
    [(Way::World, "the world", Line::Solid), (Way::Contexts, "a context each", Line::Dashed)];

fn is_task(record: &Record, operation: Operation, place: Place, way: Way) -> bool {
    let label = record.label;
    (label.bench, label.operation, label.place, label.way)
        == (Bench::Threads, operation, Some(place), Some(way))
}

fn table(records: &[Record]) -> Table {
    let threads = values(records, |label| label.threads);
    let name = |threads: &usize| match threads {
        1 => "|1 thread: min|median|max".to_owned(),
        _ => format!("|{threads} threads|of one"),
    };
    let names: String = threads.iter().map(name).collect();
    let title = "Threads of PE 0 at the same time on words of 8 bytes of PE 1: 10^6 a second in all, medians";
    let mut table = Table::new(title, 3, &format!("operation|words|through{names}"));
    if find(records, |label| label.bench == Bench::Threads).is_none() {
        return table;
    }
    for (operation, place, [verb, words, _], _) in TASKS {
        for (way, through, _) in WAYS {
            let found = |threads| {
                let mut of_task = records.iter().filter(|record| is_task(record, operation, place, way));
                of_task.find(|record| record.label.threads == Some(threads))
            };
            let mut rates = Vec::new();
            for &threads in &threads {
                match threads {
                    1 => found(1).map(|one| one.summary).add_to(&mut rates),
                    _ => (found(threads), ratio(found(threads), found(1))).add_to(&mut rates),
                }
            }
            table.row(([verb, words, through], rates));
        }
    }
    table
}

fn curve(records: &[Record]) -> Figure {
    let lines = TASKS.into_iter().flat_map(|(operation, place, [_, _, name], colour)| {
        WAYS.map(|(way, _, line)| {
            let of_task = records.iter().filter(move |record| is_task(record, operation, place, way));
            let ending = if way == Way::World { "" } else { " (contexts)" };
            Across::Threads.series(&format!("{name}{ending}"), colour, line, of_task)
        })
    });
    Figure::new(
        "Rate of the threads of a PE together",
        [
            Across::Threads.axis("threads"),
            Axis { label: "M/s (10^6 operations a second)", scale: Scale::Decades },
        ],
        "Words of 8 bytes in PE 1's memory, one for each thread or one for all; through the world, or \
         through a context for each thread. PE 1 sleeps. Medians.",
        lines,
    )
}

/// Collective, for two PEs or more; PE 0 measures, the others wait for it.
///
/// # Errors
/// Errors of the sink, if the symmetric heap has no room for a few words, and if there are no more contexts.
pub fn all(world: &World, effort: impl Fn(usize) -> Effort, sink: Sink<'_>) -> Result<()> {
    let team = Team::new(world)?;
    if world.my_pe() == 0 {
        for (index, (operation, place, ..)) in TASKS.into_iter().enumerate() {
            let records = team.trial(operation, place, &effort)?;
            sink(Progress { trials_done: index + 1, trials: TASKS.len(), records: &records })?;
        }
    }
    world.barrier();
    Ok(())
}

/// The state that the threads share.
struct Team<'w> {
    world: &'w World,
    crowd: Crowd<'w>,
    words: Symmetric<'w, u64>,
    contexts: Vec<Context<'w>>,
    /// The number of threads that have arrived, in all blocks so far.
    met: AtomicU64,
    /// The CPUs to which threads are bound.
    cpus: Vec<usize>,
}

impl<'w> Team<'w> {
    /// Collective.
    fn new(world: &'w World) -> pelago::Result<Self> {
        // A context is used by one thread at a time, which is not the thread that created it.
        let contexts = (0..THREADS_MAX).map(|_| world.context(ContextKind::Serialized));
        Ok(Team {
            world,
            crowd: Crowd::new(world)?,
            words: world.alloc_zeroed(THREADS_MAX * STRIDE)?,
            contexts: contexts.collect::<pelago::Result<_>>()?,
            met: AtomicU64::new(0),
            cpus: cpus(),
        })
    }

    /// Runs all numbers of threads and both ways, in turn.
    fn trial(
        &self,
        operation: Operation,
        place: Place,
        effort: impl Fn(usize) -> Effort,
    ) -> Result<Vec<Record>> {
        let label =
            Label::new(self.world.n_pes(), Bench::Threads, operation, size_of::<u64>()).in_place(place);
        let labels = THREADS.map(|threads| WAYS.map(|(way, ..)| label.with_threads(threads).by_way(way)));
        let labels = labels.as_flattened();
        let mut samples = vec![Vec::new(); labels.len()];
        effort(THREADS_MAX).repeat(labels.len(), || {
            for (label, samples) in labels.iter().zip(&mut samples) {
                let threads = label.threads.unwrap_or(1);
                let window = effort(threads).crowd_window(threads, self.world.cores());
                samples.push(rate_of_all(&together(|| self.shares(label, window))?) / 1e6);
            }
            anyhow::Ok(())
        })?;
        let labelled = labels.iter().zip(&samples);
        Ok(labelled.map(|(label, samples)| Record::of(*label, Unit::MillionsPerSecond, samples)).collect())
    }

    /// The work of each thread of the label in a block.
    fn shares(&self, label: &Label, window: Duration) -> Result<Vec<Share>> {
        let threads = label.threads.unwrap_or(1);
        let met = self.met.fetch_add(threads as u64, Ordering::Relaxed) + threads as u64;
        let shares = thread::scope(|scope| {
            let start = |thread| scope.spawn(move || self.share_of_one(label, thread, met, window));
            let threads: Vec<_> = (0..threads).map(start).collect();
            let shares = threads.into_iter().map(|thread| thread.join().expect("a thread counts to its end"));
            shares.collect::<pelago::Result<_>>()
        });
        Ok(shares?)
    }

    /// The work of thread `thread`; all threads have arrived when `met` counts `met` threads.
    fn share_of_one(
        &self,
        label: &Label,
        thread: usize,
        met: u64,
        window: Duration,
    ) -> pelago::Result<Share> {
        self.keep_to_core(thread);
        let through;
        let words: &View<'_, u64> = match label.way {
            Some(Way::Contexts) => {
                through = self.words.via(&self.contexts[thread]);
                &through
            }
            _ => &self.words,
        };
        let index = if label.place == Some(Place::OneWord) { 0 } else { thread * STRIDE };
        let mut own = Share::default();
        let report = |share: Share| {
            own = share;
            Ok(())
        };
        match label.operation {
            Operation::PutIssue => {
                let put = |count| (0..count).try_for_each(|value| words.p(TARGET, index, opaque(value)));
                self.crowd.work(met, window, put, report)?;
            }
            _ => {
                let add = |count| {
                    (0..count).try_for_each(|_| words.fetch_add(TARGET, index, opaque(1)).map(|_| ()))
                };
                self.crowd.work(met, window, add, report)?;
            }
        }
        Ok(own)
    }

    /// Binds the thread, because the system may otherwise run all threads of a short block on one core. An
    /// error is ignored.
    fn keep_to_core(&self, thread: usize) {
        if !self.cpus.is_empty() {
            let mut only = CpuSet::new();
            only.set(self.cpus[thread % self.cpus.len()]);
            let _ = sched_setaffinity(None, &only);
        }
    }
}

/// The CPUs that the calling thread may use.
fn cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// An opaque value, so that the compiler does not merge two puts.
fn opaque(value: u64) -> u64 {
    std::hint::black_box(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn all_tasks_are_shown_with_their_ratios() {
        let mut records = Vec::new();
        for (operation, place, _, _) in TASKS {
            for (way, _, _) in WAYS {
                for (threads, factor) in [(1, 1.0), (2, 1.9), (4, 1.5)] {
                    let label = Label::new(2, Bench::Threads, operation, 8).in_place(place).by_way(way);
                    let millions = if operation == Operation::PutIssue { 3000.0 } else { 200.0 } * factor;
                    records.push(record(label.with_threads(threads), Unit::MillionsPerSecond, millions));
                }
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 1);
        let row = ["p", "one each", "the world", "1500", "3000", "30000", "5700", "1.900", "4500", "1.500"];
        assert_row(&tables, &row);
        let row = [
            "fetch_add",
            "one for all",
            "a context each",
            "100",
            "200",
            "2000",
            "380",
            "1.900",
            "300",
            "1.500",
        ];
        assert_row(&tables, &row);
        assert!(page.contains("add, one word (contexts), 4 threads: 300"), "{page}");
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn every_task_number_of_threads_and_way_is_reported() {
        for pes in [2, 3] {
            let (records, progress) = reported(pes, |world, sink| all(world, |_| EFFORT, sink));
            let found: Vec<_> = records.iter().map(|r| (r.label.threads, r.label.way)).collect();
            let of_a_task = THREADS.map(|threads| WAYS.map(|(way, ..)| (Some(threads), Some(way))));
            assert_eq!(found, of_a_task.as_flattened().repeat(TASKS.len()));
            let tasks: Vec<_> = records
                .iter()
                .map(|r| (r.label.operation, r.label.place))
                .step_by(of_a_task.len() * 2)
                .collect();
            assert_eq!(tasks, TASKS.map(|(operation, place, ..)| (operation, Some(place))));
            assert!(records.iter().all(|record| record.unit == Unit::MillionsPerSecond));
            assert_eq!(progress, (3, 3));
        }
    }

    #[test]
    fn threads_keep_to_their_words_on_the_other_pe() {
        let used = spmd(2, |world| {
            let team = Team::new(world).unwrap();
            if world.my_pe() == 0 {
                team.trial(Operation::FetchAdd, Place::WordEach, |_| EFFORT).unwrap();
            }
            world.barrier();
            let words = team.words.local().to_vec();
            words.iter().step_by(STRIDE).map(|word| *word > 0).collect::<Vec<_>>()
        });
        assert_eq!(used.unwrap(), [vec![false; 4], vec![true; 4]]);
    }
}
