//! Tests that walk the table of algorithms: each is checked for all sizes of teams and all roots, with sizes,
//! layouts, nodes and tuning numbers.

use super::cases::{Case, Layout, NodeMap};
use super::{CheckOptions, Report, check, check_schedules};
use crate::schedule::{Schedule, Step};
use crate::shape::{Operation, Tuning};
use crate::table::{Algorithm, algorithms};
use proptest::prelude::*;
use proptest::sample::select;

/// The smallest number of signals in flight between two ranks with which every algorithm must work.
const CREDITS: CheckOptions =
    CheckOptions { mailbox_bytes: crate::schedule::MAILBOX_BYTES, credits: Some(4) };

/// Checks a case, unless the algorithm refuses it.
#[track_caller]
fn prove(algorithm: &Algorithm, case: &Case, options: &CheckOptions) -> Option<Report> {
    if (algorithm.restriction)(&case.shape(0)).is_some() {
        let is_plain = case.layout == Layout::Equal && case.nodes == NodeMap::One && case.n.is_power_of_two();
        assert!(!is_plain || case.in_place, "{}/{} refuses {case}", algorithm.operation, algorithm.name);
        return None;
    }
    match check(algorithm, &case.shapes(), options) {
        Ok(report) => Some(report),
        Err(defect) => panic!("{}/{}: {case}: {defect}", algorithm.operation, algorithm.name),
    }
}

fn of(operation: Operation) -> impl Iterator<Item = &'static Algorithm> {
    algorithms().filter(move |algorithm| algorithm.operation == operation)
}

/// The distance between the roots for which algorithms with many messages are checked in a large team, when
/// time is short.
const ROOT_STEP: usize = if cfg!(feature = "full") { 1 } else { 16 };

fn walk(operation: Operation) {
    let mut number = 0;
    let algorithms: Vec<_> = of(operation).map(|algorithm| (algorithm, is_scalable(algorithm))).collect();
    for n in (1..=64).chain([257]) {
        let roots: usize = if operation.is_rooted() { n } else { 1 };
        for root in 0..roots {
            for &(algorithm, is_scalable) in &algorithms {
                // For n * n messages and more, some roots are enough.
                if n > 64 && !root.is_multiple_of(ROOT_STEP) && !is_scalable {
                    continue;
                }
                number += 1;
                let plain = Case { root, ..Case::new(operation, n, 1) };
                let cases = if n <= 5 { plain.variants() } else { vec![plain.variant(number)] };
                for case in cases {
                    prove(algorithm, &case, &CREDITS);
                }
                if root == 0 {
                    prove(algorithm, &plain, &CREDITS);
                }
            }
        }
    }
}

macro_rules! walks {
    ($($name:ident: $operation:ident;)*) => {$(
        #[test]
        fn $name() {
            walk(Operation::$operation);
        }
    )*};
}

walks! {
    barriers: Barrier;
    broadcasts: Broadcast;
    scatters: Scatter;
    gathers: Gather;
    all_gathers: AllGather;
    all_to_alls: AllToAll;
    reduces: Reduce;
    all_reduces: AllReduce;
    reduce_scatters: ReduceScatter;
    inclusive_scans: InclusiveScan;
    exclusive_scans: ExclusiveScan;
}

/// Whether an algorithm has at most about n log n messages: for twice the ranks, not many more than twice the
/// messages.
fn is_scalable(algorithm: &Algorithm) -> bool {
    let messages = |n| {
        let report = prove(algorithm, &Case::new(algorithm.operation, n, 1), &CREDITS);
        report.map_or(0, |report| report.messages)
    };
    messages(128) * 10 < messages(64) * 27
}

/// In teams of this size and larger, operations with n blocks for each rank are checked without data.
const BLOCKS_RANKS_MAX: usize = if cfg!(feature = "full") { 4096 } else { 1000 };

/// Checks all algorithms that suit teams of this size, and returns their number.
fn walk_large(n: usize) -> usize {
    let mut checked = 0;
    for algorithm in algorithms().filter(|algorithm| is_scalable(algorithm)) {
        for root in if algorithm.operation.is_rooted() { vec![0, n / 3, n - 1] } else { vec![0] } {
            // Combining or sorting n * n blocks takes too long or too much memory: signals only.
            let has_many = matches!(algorithm.operation, Operation::ReduceScatter | Operation::AllToAll);
            let count = usize::from(n < BLOCKS_RANKS_MAX || !has_many);
            let plain = Case::new(algorithm.operation, n, count);
            let case = Case { root, nodes: NodeMap::Runs(n as u32 / 20), ..plain };
            checked += usize::from(prove(algorithm, &case, &CREDITS).is_some());
        }
    }
    checked
}

#[test]
fn algorithms_for_many_ranks_are_right_for_1000() {
    assert!(walk_large(1000) > 40);
}

#[cfg(feature = "full")]
#[test]
fn algorithms_for_many_ranks_are_right_for_4096() {
    assert!(walk_large(4096) > 40);
}

#[test]
fn every_operation_has_an_algorithm_without_restriction() {
    for operation in Operation::ALL {
        for n in 1..=9 {
            let case = Case { nodes: NodeMap::Turns(2), ..Case::new(operation, n, 1) };
            let accepts = |algorithm: &Algorithm| (algorithm.restriction)(&case.shape(0)).is_none();
            assert!(of(operation).any(accepts), "{case}");
        }
    }
}

/// The step without its data, but with its signal; None if the step moves no data.
fn without_data(step: &Step) -> Option<Step> {
    match *step {
        Step::Put { to, signal: Some(slot), .. } => Some(Step::Signal { to, slot, announces: None }),
        Step::Put { .. }
        | Step::Get { .. }
        | Step::Copy { .. }
        | Step::CopyStrided { .. }
        | Step::Reduce { .. } => Some(Step::Complete),
        _ => None,
    }
}

#[test]
fn an_algorithm_without_one_of_its_transfers_is_wrong() {
    let mut tried = 0;
    for algorithm in algorithms() {
        for n in [2, 3, 5, 8] {
            let case = Case { root: n / 2, ..Case::new(algorithm.operation, n, 3) };
            if prove(algorithm, &case, &CREDITS).is_none() {
                continue;
            }
            let schedules: Vec<Schedule> =
                (0..n).map(|rank| algorithm.schedule(&case.shape(rank), CREDITS.mailbox_bytes)).collect();
            for rank in 0..n {
                for (at, step) in schedules[rank].steps.iter().enumerate() {
                    let Some(empty) = without_data(step) else { continue };
                    let mut broken = schedules.clone();
                    broken[rank].steps[at] = empty;
                    let checked = check_schedules(&broken, algorithm.fold, &case.shapes(), &CREDITS);
                    assert!(
                        checked.is_err(),
                        "{}/{}: {case}: right without step {at} of rank {rank}: {step}",
                        algorithm.operation,
                        algorithm.name
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1000, "{tried} transfers left out");
}

fn any_case() -> impl Strategy<Value = (&'static Algorithm, Case, CheckOptions)> {
    let tables: Vec<&'static Algorithm> = algorithms().collect();
    let sizes =
        (1..=40_usize, any::<prop::sample::Index>(), 0..=60_usize, select(vec![1, 2, 3, 4, 8, 12, 64, 100]));
    let tuning = (2..=9_usize, select(vec![1, 5, 24, 100, 4096]))
        .prop_map(|(radix, segment_bytes)| Tuning { radix, segment_bytes });
    let nodes = (1..=6_u32, any::<bool>())
        .prop_map(|(nodes, runs)| if runs { NodeMap::Runs(nodes) } else { NodeMap::Turns(nodes) });
    let flags = (any::<prop::sample::Index>(), any::<bool>(), select(vec![0, 8, 100, 240, 4096]));
    (select(tables), sizes, tuning, nodes, flags).prop_map(|(algorithm, sizes, tuning, nodes, flags)| {
        let ((n, root, count, element_bytes), (layout, in_place, mailbox_bytes)) = (sizes, flags);
        let operation = algorithm.operation;
        let root = if operation.is_rooted() { root.index(n) } else { 0 };
        let layouts = Case::layouts(operation);
        let (layout, in_place) =
            (layouts[layout.index(layouts.len())], in_place && Case::can_be_in_place(operation));
        let case = Case { operation, n, root, count, element_bytes, layout, in_place, nodes, tuning };
        (algorithm, case, CheckOptions { mailbox_bytes, ..CREDITS })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(feature = "full") { 20_000 } else { 1000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn algorithms_are_right_for_any_shape((algorithm, case, options) in any_case()) {
        prove(algorithm, &case, &options);
    }
}
