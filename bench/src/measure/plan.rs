//! The measurements of `bench rma`: which, and in what order. Invariant: an operation and its yardstick are
//! one trial. Where PEs do not map each other, there is no yardstick.

use anyhow::Result;
use pelago::prelude::*;

use super::barrier::barriers;
use super::buffers::{Buffers, memory_region_bytes};
use super::effort::Effort;
use super::ensemble::Part;
use super::ping::PingAck;
use super::record::{Bench, Operation, Place};
use super::rma::{self, Transfers};
use super::suite::{Sink, Suite};

const WORD_BYTES: usize = size_of::<u64>();

/// What to measure.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Sizes of the messages of ping-ack; flags alone are measured in any case.
    pub(super) ping_bytes: Vec<usize>,
    /// Sizes of transfers.
    pub(super) transfer_bytes: Vec<usize>,
    /// Numbers of puts outstanding.
    pub(super) windows: Vec<usize>,
    /// Region for transfers that are to find nothing in the caches, if there is room for it.
    pub(super) memory_region_bytes: Option<usize>,
    /// The least transfer that is also measured in that region.
    pub(super) memory_transfer_bytes_min: usize,
    pub(super) effort: Effort,
}

impl Plan {
    /// The plan of `bench rma`.
    pub(super) fn of(world: &World, effort: Effort) -> Self {
        Plan {
            ping_bytes: (3..=9).map(|power| 1 << power).collect(),
            transfer_bytes: (6..=24).step_by(2).map(|power| 1 << power).collect(),
            windows: vec![1, 8, 64],
            memory_region_bytes: memory_region_bytes(world),
            memory_transfer_bytes_min: 1 << 20,
            effort,
        }
    }
}

/// Collective, for two PEs or more: everything in the plan.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for the buffers.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let transfer_bytes_max = plan.transfer_bytes.iter().copied().max().unwrap_or(0);
    let region_bytes = plan.memory_region_bytes.unwrap_or(0).max(transfer_bytes_max);
    let buffers = Buffers::new(world, region_bytes)?;
    let (word, zero) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
    let ping = PingAck::new(world, plan.ping_bytes.iter().copied().max().unwrap_or(0))?;
    let mut suite = Suite::new(world, plan.effort);
    for (operation, part) in [
        (Operation::PutIssue, rma::put_issue(&word)),
        (Operation::Put, rma::put_quiet(&word)),
        (Operation::Get, rma::get(&zero)),
    ] {
        suite.add([(suite.label(Bench::Latency, operation, WORD_BYTES), part)]);
    }
    add_meetings(&mut suite, world, &ping, &plan.ping_bytes);
    for &bytes in &plan.transfer_bytes {
        add_bandwidth(&mut suite, Place::Cache, bytes, &Transfers::new(&buffers, bytes, bytes));
    }
    let is_large = |bytes: &&usize| **bytes >= plan.memory_transfer_bytes_min;
    for &bytes in plan.transfer_bytes.iter().filter(is_large) {
        if let Some(region_bytes) = plan.memory_region_bytes {
            let transfers = Transfers::new(&buffers, bytes, region_bytes);
            add_bandwidth(&mut suite, Place::Memory, bytes, &transfers);
        }
    }
    for &bytes in &plan.transfer_bytes {
        let transfers = Transfers::new(&buffers, bytes, bytes);
        let label = suite.label(Bench::Flood, Operation::Put, bytes).in_place(Place::Cache);
        let windows = plan.windows.iter();
        suite.add(windows.map(|&window| (label.with_window(window), transfers.flood(window))));
    }
    suite.run(sink)
}

/// Collective, for two PEs or more: the barrier, and beside it the flag between two PEs.
///
/// # Errors
/// As [`all`].
pub(super) fn barrier(world: &World, effort: Effort, sink: Sink<'_>) -> Result<()> {
    let ping = PingAck::new(world, 0)?;
    let mut suite = Suite::new(world, effort);
    add_meetings(&mut suite, world, &ping, &[]);
    suite.run(sink)
}

fn add_bandwidth<'a>(suite: &mut Suite<'a>, place: Place, bytes: usize, transfers: &Transfers<'a, '_>) {
    let put = suite.label(Bench::Bandwidth, Operation::Put, bytes).in_place(place);
    let put_memcpy = suite.label(Bench::Bandwidth, Operation::PutMemcpy, bytes).in_place(place);
    let beside = |label, part: Part<'a>| transfers.are_mapped().then_some((label, part));
    suite.add([(put, transfers.put())].into_iter().chain(beside(put_memcpy, transfers.put_memcpy())));
    let get = suite.label(Bench::Bandwidth, Operation::Get, bytes).in_place(place);
    let get_memcpy = suite.label(Bench::Bandwidth, Operation::GetMemcpy, bytes).in_place(place);
    suite.add([(get, transfers.get())].into_iter().chain(beside(get_memcpy, transfers.get_memcpy())));
}

/// The barrier, the flag alone and messages of these sizes, in one trial: how far two PEs are from each other
/// can change from one moment to the next where the system under this one moves processors.
fn add_meetings<'a>(suite: &mut Suite<'a>, world: &'a World, ping: &'a PingAck<'_>, ping_bytes: &[usize]) {
    let mut trial = vec![(suite.label(Bench::Barrier, Operation::Barrier, 0), barriers(world))];
    for bytes in [0].into_iter().chain(ping_bytes.iter().copied()) {
        trial.push((suite.label(Bench::PingAck, Operation::RoundTrip, bytes), ping.rounds(bytes)));
    }
    suite.add(trial);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::Record;
    use crate::measure::suite::tests::{EFFORT, count, reported};

    #[test]
    fn every_measurement_of_the_plan_is_reported() {
        let plan = Plan {
            ping_bytes: vec![8, 64],
            transfer_bytes: vec![64, 256],
            windows: vec![1, 4],
            memory_region_bytes: Some(1024),
            memory_transfer_bytes_min: 256,
            effort: EFFORT,
        };
        let (records, progress) = reported(2, |world, sink| all(world, &plan, sink));
        for (bench, operation, expected) in [
            (Bench::Latency, Operation::PutIssue, 1),
            (Bench::Latency, Operation::Put, 1),
            (Bench::Latency, Operation::Get, 1),
            (Bench::PingAck, Operation::RoundTrip, 3),
            (Bench::PingAck, Operation::OneWay, 3),
            (Bench::Bandwidth, Operation::Put, 3),
            (Bench::Bandwidth, Operation::PutMemcpy, 3),
            (Bench::Bandwidth, Operation::Get, 3),
            (Bench::Bandwidth, Operation::GetMemcpy, 3),
            (Bench::Flood, Operation::Put, 4),
            (Bench::Barrier, Operation::Barrier, 1),
        ] {
            let found = count(&records, |label| (label.bench, label.operation) == (bench, operation));
            assert_eq!(found, expected, "{bench:?} {operation:?}");
        }
        assert_eq!(progress, (12, 12));
        let in_memory = |record: &&Record| record.label.place == Some(Place::Memory);
        let memory: Vec<_> = records.iter().filter(in_memory).map(|record| record.label.bytes).collect();
        assert_eq!(memory, [256; 4]);
    }

    #[test]
    fn more_pes_than_cores_meet_too() {
        let (records, progress) = reported(5, |world, sink| barrier(world, EFFORT, sink));
        let operations: Vec<_> = records.iter().map(|record| record.label.operation).collect();
        assert_eq!(operations, [Operation::Barrier, Operation::RoundTrip, Operation::OneWay]);
        assert_eq!(progress, (1, 1));
    }
}
