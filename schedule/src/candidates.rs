//! The candidates for an operation: the algorithms that can perform it, each with the numbers that are worth
//! a trial. `pelago tune` measures them, and a job that tunes itself tries them.
//!
//! Invariant: the candidates and their order follow from values that all members know, so all members have
//! the same ones. Two candidates of one list differ in the schedule of a rank, for a root among the first
//! `ROOTS_MAX`.

use crate::algorithm::{Algorithm, Fold};
use crate::schedule::{MAILBOX_BYTES, Schedule};
use crate::select::{Choice, Laws, Preferences, Reason};
use crate::shape::{Operation, Shape, Tuning};
use crate::table::algorithms;
use std::fmt;

/// The number of roots for which two candidates are compared.
const ROOTS_MAX: usize = 8;
/// The number of ranks whose schedules are compared.
const RANKS_MAX: usize = 64;

/// An algorithm with the numbers that tune it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The numbers that tune it.
    pub tuning: Tuning,
}

impl From<Choice> for Candidate {
    fn from(choice: Choice) -> Candidate {
        Candidate { algorithm: choice.algorithm, tuning: choice.tuning }
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        let name = |candidate: &Candidate| (candidate.algorithm.operation, candidate.algorithm.name);
        name(self) == name(other) && self.tuning == other.tuning
    }
}

impl Eq for Candidate {}

impl Candidate {
    /// All candidates for an operation: its algorithms in the order of the table, each first with the
    /// default numbers, then with others.
    pub fn all(operation: Operation) -> impl Iterator<Item = Candidate> {
        let of_operation = algorithms().filter(move |algorithm| algorithm.operation == operation);
        of_operation.flat_map(|algorithm| {
            variants(algorithm).into_iter().map(move |tuning| Candidate { algorithm, tuning })
        })
    }

    /// Whether it can perform the operation of a shape; the same for all ranks and roots.
    pub fn can_do(&self, shape: &Shape) -> bool {
        (self.algorithm.restriction)(shape).is_none()
    }

    /// The schedule of a rank. A mailbox holds `mailbox_bytes` bytes.
    pub fn schedule(&self, shape: &Shape, mailbox_bytes: usize) -> Schedule {
        self.algorithm.schedule(&Shape { tuning: self.tuning, ..shape.clone() }, mailbox_bytes)
    }

    /// Whether both have the same schedules, with each of the first ranks as the root. The rank and the root
    /// of the shape do not matter.
    pub fn does_as(&self, other: &Candidate, shape: &Shape) -> bool {
        if self == other {
            return true;
        }
        let roots = if shape.operation.is_rooted() { shape.n.min(ROOTS_MAX) } else { 1 };
        let ranks = shape.n.min(RANKS_MAX);
        (0..roots).flat_map(|root| (0..ranks).map(move |rank| (root, rank))).all(|(root, rank)| {
            let shape = Shape { root, rank, ..shape.clone() };
            self.schedule(&shape, MAILBOX_BYTES) == other.schedule(&shape, MAILBOX_BYTES)
        })
    }

    /// The candidates that can do all of these shapes, which are of one operation; of those with the same
    /// schedules one that `is_usual` for a shape, otherwise the first.
    pub fn different(shapes: &[Shape], is_usual: impl Fn(&Candidate, &Shape) -> bool) -> Vec<Candidate> {
        let mut different: Vec<Candidate> = Vec::new();
        let Some(first) = shapes.first() else { return different };
        for candidate in Candidate::all(first.operation) {
            if !shapes.iter().all(|shape| candidate.can_do(shape)) {
                continue;
            }
            let is_same = |other: &Candidate| shapes.iter().all(|shape| candidate.does_as(other, shape));
            match different.iter().position(is_same) {
                Some(same) if shapes.iter().any(|shape| is_usual(&candidate, shape)) => {
                    different[same] = candidate;
                }
                Some(_) => (),
                None => different.push(candidate),
            }
        }
        different
    }
}

impl Preferences {
    /// The algorithms that may take the place of the choice for a shape: first the choice itself, then the
    /// others with another schedule, in the order of the table. Whichever is taken, the result is the same,
    /// bit for bit, for the laws of the function that combines elements: where grouping matters, the others
    /// combine in the order of ranks as the choice does, or are the same algorithm in pieces of another size.
    /// The list is the same at all members. Empty if no algorithm can perform the operation.
    ///
    /// The reason for the choice tells whether it should be replaced at all: one that is
    /// [`Reason::Forced`] or follows a [`Reason::Graph`] should not.
    pub fn candidates(&self, shape: &Shape, laws: Option<Laws>) -> Vec<Choice> {
        let Some(choice) = self.choose(shape, laws) else { return Vec::new() };
        let usual = Candidate::from(choice);
        let is_possible = |candidate: &Candidate| {
            self.permits(candidate.algorithm, shape, laws)
                && laws.is_none_or(|laws| laws.is_associative || usual.combines_as(candidate))
        };
        let mut candidates = vec![usual];
        for candidate in Candidate::all(shape.operation).filter(is_possible) {
            if !candidates.iter().any(|other| candidate.does_as(other, shape)) {
                candidates.push(candidate);
            }
        }
        let others = candidates.into_iter().skip(1).map(|Candidate { algorithm, tuning }| Choice {
            algorithm,
            tuning,
            reason: Reason::Alternative,
        });
        std::iter::once(choice).chain(others).collect()
    }
}

impl Candidate {
    /// Whether both combine in one order, as far as is known. The size of pieces changes no order, as a piece
    /// has whole elements; the radix changes trees.
    fn combines_as(&self, other: &Candidate) -> bool {
        match (self.algorithm.fold, other.algorithm.fold) {
            (Fold::Ranks, Fold::Ranks) => true,
            _ => {
                let tree = |candidate: &Candidate| (candidate.algorithm.name, candidate.tuning.radix);
                tree(self) == tree(other)
            }
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plain, Tuning { radix, segment_bytes }) = (Tuning::default(), self.tuning);
        f.write_str(self.algorithm.name)?;
        if radix != plain.radix {
            write!(f, ", radix {radix}")?;
        }
        match segment_bytes {
            bytes if bytes == plain.segment_bytes => Ok(()),
            bytes if bytes.is_multiple_of(1 << 20) => write!(f, ", pieces of {} MiB", bytes >> 20),
            bytes if bytes.is_multiple_of(1 << 10) => write!(f, ", pieces of {} KiB", bytes >> 10),
            bytes => write!(f, ", pieces of {bytes} B"),
        }
    }
}

/// The numbers to try for an algorithm, the default ones first.
fn variants(algorithm: &Algorithm) -> Vec<Tuning> {
    let plain = Tuning::default();
    let is_pipeline = match algorithm.operation {
        Operation::Broadcast => algorithm.name == "chain",
        Operation::InclusiveScan | Operation::ExclusiveScan => algorithm.name == "linear",
        _ => false,
    };
    let radices = [2, 8].map(|radix| Tuning { radix, ..plain });
    let pieces = [8 << 10, 128 << 10].map(|segment_bytes| Tuning { segment_bytes, ..plain });
    let more: &[Tuning] = match algorithm.name {
        "k_nomial" => &radices,
        _ if is_pipeline => &pieces,
        _ => &[],
    };
    [&[plain], more].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::forced;

    const SUM_OF_FLOATS: Laws = Laws { is_associative: false, is_commutative: true };
    const SUM_OF_INTEGERS: Laws = Laws { is_associative: true, is_commutative: true };

    fn names(preferences: &Preferences, shape: &Shape, laws: Option<Laws>) -> Vec<String> {
        let found = preferences.candidates(shape, laws);
        assert!(found.iter().skip(1).all(|choice| choice.reason == Reason::Alternative));
        found.into_iter().map(|choice| Candidate::from(choice).to_string()).collect()
    }

    fn shape(operation: Operation, n: usize, count: usize) -> Shape {
        Shape::new(operation, 0, n, count, 8)
    }

    #[test]
    fn the_choice_is_first_and_all_are_possible_and_different() {
        let preferences = Preferences::default();
        for operation in Operation::ALL {
            let laws = operation.combines().then_some(SUM_OF_INTEGERS);
            for (n, count) in (1..12).flat_map(|n| [0, 1, 1 << 9, 1 << 16].map(|count| (n, count))) {
                let shape = shape(operation, n, count);
                let found = preferences.candidates(&shape, laws);
                let choice = preferences.choose(&shape, laws).unwrap();
                assert_eq!(Candidate::from(found[0]), Candidate::from(choice), "{operation}, {n}, {count}");
                assert_eq!(found[0].reason, choice.reason);
                for (index, one) in found.iter().map(|found| Candidate::from(*found)).enumerate() {
                    assert!(one.can_do(&shape));
                    let before = found[..index].iter().map(|found| Candidate::from(*found));
                    assert_eq!(before.filter(|other| one.does_as(other, &shape)).count(), 0, "{one}");
                }
            }
        }
    }

    #[test]
    fn all_members_have_the_same_for_every_root() {
        let preferences = Preferences::default();
        for operation in [Operation::Broadcast, Operation::Reduce, Operation::AllGather] {
            let laws = operation.combines().then_some(SUM_OF_INTEGERS);
            let of = |rank, root| {
                let shape = Shape { rank, root, ..shape(operation, 6, 1000) };
                names(&preferences, &shape, laws)
            };
            let roots = if operation.is_rooted() { 6 } else { 1 };
            for (rank, root) in (0..6).flat_map(|rank| (0..roots).map(move |root| (rank, root))) {
                assert_eq!(of(rank, root), of(0, 0), "{operation}: rank {rank}, root {root}");
            }
        }
    }

    #[test]
    fn where_grouping_matters_the_order_stays() {
        let preferences = Preferences::default();
        for operation in Operation::ALL.into_iter().filter(|operation| operation.combines()) {
            for (n, count) in [(2, 1), (5, 1), (8, 1 << 16)] {
                let shape = shape(operation, n, count);
                let found = preferences.candidates(&shape, Some(SUM_OF_FLOATS));
                let usual = found[0].algorithm;
                for other in &found[1..] {
                    let is_in_order = [usual, other.algorithm].iter().all(|one| one.fold == Fold::Ranks);
                    let is_same = other.algorithm.name == usual.name;
                    assert!(
                        is_in_order || is_same,
                        "{operation}: {} for {}",
                        other.algorithm.name,
                        usual.name
                    );
                }
            }
        }
        let all_reduce = shape(Operation::AllReduce, 5, 1);
        let usual = names(&preferences, &all_reduce, Some(SUM_OF_FLOATS));
        assert_eq!(usual, ["recursive_doubling"]);
        assert!(names(&preferences, &all_reduce, Some(SUM_OF_INTEGERS)).contains(&"binomial".to_owned()));
        let scan = Preferences { forced: forced("inclusive_scan=linear").unwrap(), ..Preferences::default() };
        let pieces = ["linear", "linear, pieces of 8 KiB", "linear, pieces of 128 KiB"];
        let large = shape(Operation::InclusiveScan, 5, 1 << 16);
        assert_eq!(names(&scan, &large, Some(SUM_OF_FLOATS)), pieces);
    }

    #[test]
    fn settings_and_laws_keep_what_they_forbid_away() {
        let deterministic = Preferences { is_deterministic: true, ..Preferences::default() };
        for operation in Operation::ALL.into_iter().filter(|operation| operation.combines()) {
            let found = deterministic.candidates(&shape(operation, 8, 100), Some(SUM_OF_FLOATS));
            assert!(found.iter().all(|choice| choice.algorithm.fold == Fold::Ranks), "{operation}");
        }
        let in_order = Laws { is_associative: true, is_commutative: false };
        let found = Preferences::default().candidates(&shape(Operation::AllReduce, 8, 100), Some(in_order));
        assert!(found.iter().all(|choice| choice.algorithm.fold != Fold::Any));
        assert!(found.len() > 1, "{found:?}");
        let gather = names(&Preferences::default(), &shape(Operation::AllGather, 7, 1), None);
        assert!(!gather.contains(&"recursive_doubling".to_owned()), "{gather:?}");
    }

    #[test]
    fn every_algorithm_is_a_candidate_with_its_variants() {
        for operation in Operation::ALL {
            let of_operation = || algorithms().filter(|algorithm| algorithm.operation == operation);
            let all: Vec<_> = Candidate::all(operation).collect();
            assert!(of_operation().all(|one| all.iter().any(|found| found.algorithm.name == one.name)));
            assert!(all.iter().all(|found| found.algorithm.operation == operation));
        }
        let broadcast: Vec<_> = Candidate::all(Operation::Broadcast).map(|one| one.to_string()).collect();
        for name in ["chain", "chain, pieces of 8 KiB", "chain, pieces of 128 KiB", "k_nomial, radix 8"] {
            assert!(broadcast.iter().any(|found| found == name), "{name}: {broadcast:?}");
        }
    }

    #[test]
    fn of_equal_candidates_the_usual_one_stays() {
        // With a power of two a hypercube has the schedule of recursive doubling.
        let shapes = [1, 512].map(|count| shape(Operation::AllReduce, 8, count));
        let named = |usual: &str| {
            let found = Candidate::different(&shapes, |candidate, _| candidate.algorithm.name == usual);
            found.into_iter().map(|candidate| candidate.to_string()).collect::<Vec<_>>()
        };
        let has = |usual, name: &str| named(usual).iter().any(|found| found == name);
        for (usual, other) in [("hypercube", "recursive_doubling"), ("recursive_doubling", "hypercube")] {
            assert!(has(usual, usual) && !has(usual, other), "{usual}: {:?}", named(usual));
        }
        assert!(Candidate::different(&[], |_, _| false).is_empty());
    }

    #[test]
    fn sizes_are_shown_in_their_unit() {
        let chain = Candidate::all(Operation::Broadcast).find(|one| one.algorithm.name == "chain").unwrap();
        let shown =
            |segment_bytes| Candidate { tuning: Tuning { radix: 2, segment_bytes }, ..chain }.to_string();
        assert_eq!(shown(100), "chain, radix 2, pieces of 100 B");
        assert_eq!(shown(3 << 10), "chain, radix 2, pieces of 3 KiB");
        assert_eq!(shown(1 << 20), "chain, radix 2, pieces of 1 MiB");
        assert_eq!(shown(32 << 10), "chain, radix 2");
    }
}
