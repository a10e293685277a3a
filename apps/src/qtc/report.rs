//! The report of a run: a page for people, one JSON object for programs. Invariant: both forms are written
//! from the same `Report`.

use std::fmt;

use pelago::coll::sync_memory::SyncCounts;
use serde::Serialize;

use super::clustering;
use super::member::Shrink;
use super::problem::Problem;
use super::solve::Outcome;
use super::verify::Check;
use crate::report::verdict;

/// A run, as PE 0 reports it.
#[derive(Serialize)]
pub(super) struct Report {
    app: &'static str,
    points: u32,
    threshold: f32,
    pes: usize,
    /// Whether all checks hold.
    pub(super) verified: bool,
    clusters: usize,
    largest: u32,
    left: u32,
    squares: u64,
    hash: String,
    points_hash: String,
    degree_max: u32,
    shrinks: Vec<Shrink>,
    grows: u64,
    grows_max: u64,
    joins: u64,
    pruned: u64,
    sync_memory: SyncMemory,
    setup_seconds: f64,
    seconds: f64,
    failed: Vec<&'static str>,
    #[serde(skip)]
    problem: Problem,
}

impl Report {
    pub(super) fn new(problem: Problem, outcome: Outcome, checks: &[Check]) -> Self {
        let efforts = || outcome.accounts.iter().map(|account| account.effort);
        Report {
            app: "qtc",
            points: problem.points,
            threshold: problem.threshold,
            pes: outcome.accounts.len(),
            verified: checks.iter().all(|check| check.holds),
            clusters: outcome.clusters.len(),
            largest: outcome.clusters.iter().map(|cluster| cluster.size()).max().unwrap_or(0),
            left: outcome.left,
            squares: clustering::squares(&outcome.clusters),
            hash: hexadecimal(clustering::hash(&outcome.clusters)),
            points_hash: hexadecimal(outcome.points_hash),
            degree_max: outcome.degree_max,

            grows: efforts().map(|effort| effort.grows).sum(),
            grows_max: efforts().map(|effort| effort.grows).max().unwrap_or(0),
            joins: efforts().map(|effort| effort.joins).sum(),
            pruned: efforts().map(|effort| effort.pruned).sum(),
            sync_memory: SyncMemory::of(&outcome),
            setup_seconds: outcome.setup_seconds,
            seconds: outcome.seconds,
            shrinks: outcome.shrinks,
            failed: checks.iter().filter(|check| !check.holds).map(|check| check.what).collect(),
            problem,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "QTC: {}; number of PEs {}\n", self.problem, self.pes)?;
        writeln!(f, "{:<20}  {}, the largest of {} points", "clusters", self.clusters, self.largest)?;
        writeln!(f, "{:<20}  {} in no cluster", "points left", self.left)?;
        writeln!(f, "{:<20}  {}", "sum of squared sizes", self.squares)?;
        writeln!(f, "{:<20}  {}", "hash of clusters", self.hash)?;
        writeln!(f, "{:<20}  {}", "hash of points", self.points_hash)?;
        writeln!(f, "{:<20}  {} at most", "neighbours", self.degree_max)?;
        writeln!(f, "{:<20}  {} in all, {} on one PE at most", "grown clusters", self.grows, self.grows_max)?;
        writeln!(f, "{:<20}  {}", "members that joined", self.joins)?;
        writeln!(f, "{:<20}  {}", "seeds passed over", self.pruned)?;
        writeln!(f, "\n{:>14}  {:>11}  {:>4}", "from iteration", "free points", "PEs")?;
        let start = Shrink { iteration: 1, points: self.points, pes: self.pes };
        let is_kept = self.shrinks.first().is_none_or(|shrink| shrink.iteration > 1);
        for Shrink { iteration, points, pes } in is_kept.then_some(&start).into_iter().chain(&self.shrinks) {
            writeln!(f, "{iteration:>14}  {points:>11}  {pes:>4}")?;
        }
        writeln!(f, "\n{:<20}  {}", "synchronised on", self.sync_memory)?;
        writeln!(f, "{:<20}  {:.6} s for points and neighbours", "setup", self.setup_seconds)?;
        writeln!(f, "{:<20}  {:.6} s", "time", self.seconds)?;
        for what in &self.failed {
            writeln!(f, "{:<20}  not so: {what}", "verification")?;
        }
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

fn hexadecimal(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The memory that the groups synchronised on, beside traditional arrays: one for each team that there was,
/// with a word for each round of a synchronisation of its members.
#[derive(Serialize)]
struct SyncMemory {
    /// Whether the collectives of the group were scheduled; direct ones use no slots.
    scheduled: bool,
    /// Whether the memory belongs to pairs of PEs, and not to teams.
    pairwise: bool,
    /// Slots that were used, of all PEs.
    slots: u64,
    /// The most of one PE.
    slots_max: u64,
    /// Words that were synchronised on, of all PEs: those of slots, and acknowledgements.
    words: u64,
    /// The most of one PE.
    words_max: u64,
    /// Bytes of these words and of the data that came with signals, of all PEs.
    bytes: u64,
    /// The most of one PE.
    bytes_max: u64,
    /// Signals of all PEs.
    signals: u64,
    /// Messages of all PEs for the memory's own sake.
    chores: u64,
    /// Teams of two or more members that there were.
    teams: usize,
    /// Words of all PEs for an array of each team.
    traditional: u64,
    /// Words of a PE that was in all of them.
    traditional_max: u64,
    /// Bytes of all PEs for these arrays, words alone.
    traditional_bytes: u64,
    /// Bytes of a PE that was in all teams.
    traditional_bytes_max: u64,
}

/// Size of a word of a traditional array.
const WORD_BYTES: u64 = 8;

impl SyncMemory {
    fn of(outcome: &Outcome) -> Self {
        let total = |of: fn(&SyncCounts) -> u64| {
            let counts = || outcome.accounts.iter().map(|account| of(&account.sync));
            (counts().sum(), counts().max().unwrap_or(0))
        };
        let (slots, slots_max) = total(|counts| counts.slots);
        let (words, words_max) = total(|counts| counts.words);
        let (bytes, bytes_max) = total(|counts| counts.bytes);
        let (signals, _) = total(|counts| counts.signals);
        let (chores, _) = total(|counts| counts.chores);
        let sizes = [outcome.accounts.len()].into_iter();
        // A group that shrinks before the first round was a team already.
        let sizes = sizes.chain(outcome.shrinks.iter().map(|shrink| shrink.pes));
        let Traditional { teams, words: traditional, words_max: traditional_max } = Traditional::of(sizes);
        SyncMemory {
            scheduled: signals > 0,
            pairwise: outcome.accounts.iter().any(|account| account.sync.is_of_pairs),
            slots,
            slots_max,
            words,
            words_max,
            bytes,
            bytes_max,
            signals,
            chores,
            teams,
            traditional,
            traditional_max,
            traditional_bytes: WORD_BYTES * traditional,
            traditional_bytes_max: WORD_BYTES * traditional_max,
        }
    }
}

/// Traditional arrays, one for each team.
#[derive(Debug, PartialEq, Eq)]
struct Traditional {
    teams: usize,
    words: u64,
    words_max: u64,
}

impl Traditional {
    /// Those of teams of these sizes, of which a team of one needs none.
    fn of(sizes: impl Iterator<Item = usize>) -> Self {
        let rounds = |size: usize| u64::from(size.next_power_of_two().trailing_zeros());
        let none = Traditional { teams: 0, words: 0, words_max: 0 };
        sizes.filter(|size| *size > 1).fold(none, |sum, size| Traditional {
            teams: sum.teams + 1,
            words: sum.words + size as u64 * rounds(size),
            words_max: sum.words_max + rounds(size),
        })
    }
}

impl fmt::Display for SyncMemory {
    /// Two lines, the second one without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SyncMemory { words, words_max, bytes, bytes_max, teams, .. } = self;
        if self.scheduled {
            let of = if self.pairwise { "pairs of PEs" } else { "teams" };
            write!(f, "{words} words of {of} ({bytes} bytes), {words_max} ({bytes_max}) of one PE at most")?;
        } else {
            write!(f, "no words, as no operation was scheduled (PELAGO_COLL_FORM=schedule)")?;
        }
        let SyncMemory { traditional, traditional_max, traditional_bytes, traditional_bytes_max, .. } = self;
        write!(
            f,
            "\n{:<20}  {traditional} words for {teams} teams ({traditional_bytes} bytes), {traditional_max} \
             ({traditional_bytes_max}) of one PE at most",
            "traditional arrays"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::clustering::{Cluster, Effort};
    use super::super::solve::Account;
    use super::*;

    /// A run of three PEs, the last of which left, with one check.
    fn report(holds: bool) -> Report {
        let account = |grows| {
            let effort = Effort { grows, joins: 10 * grows, pruned: 1 };
            let slots = grows / 10;
            let (words, bytes) = (slots + 1, 16 * slots + 8);
            let sync = SyncCounts { signals: 7 * grows, chores: 1, slots, words, bytes, is_of_pairs: true };
            Account { effort, rounds: 2, hash: 0, sync }
        };
        let outcome = Outcome {
            points_hash: 0xabc,
            degree_max: 7,
            clusters: vec![Cluster(vec![5, 1, 9]), Cluster(vec![2])],
            left: 56,
            shrinks: vec![Shrink { iteration: 2, points: 57, pes: 2 }],
            accounts: [30, 20, 10].map(account).to_vec(),
            setup_seconds: 0.25,
            seconds: 0.5,
        };
        let problem = Problem { points: 60, threshold: 0.5 };
        Report::new(problem, outcome, &[Check { what: "it is right", holds }])
    }

    #[test]
    fn the_page_names_problem_result_group_and_verdict() {
        let page = report(true).to_string();
        for part in [
            "QTC: 60 points at threshold 0.5; number of PEs 3",
            "clusters              2, the largest of 3 points",
            "points left           56 in no cluster",
            "hash of points        0000000000000abc",
            "grown clusters        60 in all, 30 on one PE at most",
            "             1           60     3\n             2           57     2\n",
            "synchronised on       9 words of pairs of PEs (120 bytes), 4 (56) of one PE at most\n\
             traditional arrays    8 words for 2 teams (64 bytes), 3 (24) of one PE at most\n",
            "time                  0.500000 s",
        ] {
            assert!(page.contains(part), "`{part}` is not in:\n{page}");
        }
        assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
    }

    #[test]
    fn a_check_that_does_not_hold_is_named() {
        let page = report(false).to_string();
        assert!(page.contains("not so: it is right\nVerification: NOT VERIFIED\n"), "{page}");
        let value: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&report(false)).unwrap()).unwrap();
        assert_eq!((&value["verified"], &value["failed"][0]), (&false.into(), &"it is right".into()));
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = serde_json::to_string(&report(true)).unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (field, expected) in [
            ("points", 60),
            ("pes", 3),
            ("clusters", 2),
            ("largest", 3),
            ("left", 56),
            ("squares", 10),
            ("degree_max", 7),
            ("grows", 60),
            ("grows_max", 30),
            ("joins", 600),
            ("pruned", 3),
        ] {
            assert_eq!(value[field], expected, "{field} of {line}");
        }
        assert_eq!((&value["app"], &value["verified"]), (&"qtc".into(), &true.into()));
        assert_eq!((&value["threshold"], &value["seconds"]), (&0.5.into(), &0.5.into()));
        let sync = &value["sync_memory"];
        for (field, expected) in [
            ("slots", 6),
            ("slots_max", 3),
            ("signals", 420),
            ("chores", 3),
            ("teams", 2),
            ("traditional", 8),
            ("traditional_max", 3),
            ("words", 9),
            ("words_max", 4),
            ("bytes", 120),
            ("bytes_max", 56),
            ("traditional_bytes", 64),
            ("traditional_bytes_max", 24),
        ] {
            assert_eq!(sync[field], expected, "{field} of {line}");
        }
        assert_eq!((&sync["scheduled"], &sync["pairwise"]), (&true.into(), &true.into()));
        let shrink = &value["shrinks"][0];
        assert_eq!(
            (&shrink["iteration"], &shrink["points"], &shrink["pes"]),
            (&2.into(), &57.into(), &2.into())
        );
        assert!(value["hash"].as_str().is_some_and(|hash| hash.len() == 16), "{line}");
    }

    /// A group that loses one member after the other has n log n words a PE: the closed form for powers of
    /// two is n log n - n + 1.
    #[test]
    fn traditional_arrays_grow_as_n_log_n() {
        for log in 1..=12 {
            let n = 1 << log;
            let Traditional { teams, words_max, .. } = Traditional::of((1..=n).rev());
            assert_eq!((teams, words_max), (n - 1, (n * log - n + 1) as u64), "{n} PEs");
        }
        assert_eq!(Traditional::of([8, 2, 1].into_iter()), Traditional { teams: 2, words: 26, words_max: 4 });
    }
}
