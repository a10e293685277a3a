//! The large runs: `cargo run --release -p pelago-model --example scale`. Prints time, events per second
//! and the peak of memory of each.

use pelago_model::action::Collective;
use pelago_model::machine::Contention;
use pelago_model::{Machine, run, time};
use pelago_schedule::shape::Operation;
use pelago_schedule::table::find;
use std::sync::Arc;
use std::time::Instant;

/// Operation, algorithm, PEs, bytes of a block, contention.
type Case = (Operation, &'static str, usize, usize, Contention);

const CASES: [Case; 8] = [
    (Operation::Barrier, "dissemination", 100_000, 0, Contention::Queue),
    (Operation::Broadcast, "binomial", 100_000, 8, Contention::Queue),
    (Operation::AllReduce, "recursive_doubling", 100_000, 8, Contention::Queue),
    (Operation::AllReduce, "recursive_doubling", 100_000, 1 << 20, Contention::Queue),
    (Operation::AllToAll, "pairwise", 4096, 1024, Contention::None),
    (Operation::AllToAll, "pairwise", 4096, 1024, Contention::Queue),
    (Operation::AllToAll, "linear", 4096, 1024, Contention::Queue),
    (Operation::AllToAll, "bruck", 4096, 8, Contention::Queue),
];

fn main() {
    let wanted: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    for (number, (operation, name, n, bytes, contention)) in CASES.into_iter().enumerate() {
        if !wanted.is_empty() && !wanted.contains(&number) {
            continue;
        }
        let machine = Machine::load("bluegene-p").expect("a built-in machine");
        let pes_per_node = if operation == Operation::AllToAll { 1 } else { machine.pes_per_node };
        let machine = Machine { contention, pes_per_node, ..machine };
        let algorithm = find(operation, name).expect("an algorithm of the table");
        let start = Instant::now();
        let workload = Arc::new(Collective::world(algorithm, n, bytes, pes_per_node));
        let outcome = run(&machine, &workload).expect("a result");
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{number} {operation} by {name}, {n} PEs, {bytes} bytes, {contention:?}: {} in {seconds:.1} s, \
             {} messages, {} events, {:.1} million a second, busiest link {}, peak {} MiB",
            time::text(outcome.time),
            outcome.messages,
            outcome.events,
            outcome.events as f64 / seconds / 1e6,
            time::text(outcome.busiest_link),
            peak_mebibytes()
        );
    }
}

/// The peak of this process's memory, from the kernel.
fn peak_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) / 1024
}
