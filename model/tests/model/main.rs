//! Tests of the simulator. Times are compared with closed forms and between models of contention.

mod blue_gene;
mod closed_forms;
mod contention;
mod estimate;
mod machines;
mod protocols;

use pelago_model::action::Collective;
use pelago_model::{Machine, Outcome, run};
use pelago_schedule::shape::Operation;
use pelago_schedule::table::find;
use std::sync::Arc;

/// A collective operation of all ranks.
fn collective(machine: &Machine, operation: Operation, name: &str, n: usize, bytes: usize) -> Outcome {
    let algorithm = find(operation, name).unwrap_or_else(|| panic!("{operation} has no {name}"));
    let workload = Arc::new(Collective::world(algorithm, n, bytes, machine.pes_per_node));
    run(machine, &workload).unwrap_or_else(|error| panic!("{operation} by {name}, {n} ranks: {error}"))
}

/// A built-in machine with another number of PEs on a node.
fn machine_of(name: &str, pes_per_node: usize) -> Machine {
    Machine { pes_per_node, ..Machine::load(name).unwrap() }
}
