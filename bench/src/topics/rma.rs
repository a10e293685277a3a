//! `bench rma`: put and get of PE 0 on PE 1's memory, compared with memcpy, and the barrier (`barrier.rs`).
//! Invariants: a ratio is shown with its two values, which were measured alternately; PE 1 accesses no memory
//! meanwhile, so both sides of a comparison find their buffers in the same state. If PEs do not map each
//! other, there is no yardstick.

use std::hint::black_box;
use std::rc::Rc;
use std::slice;

use super::barrier::{self, PingAck};
use crate::base::buffers::{Buffers, Rotation, memory_region_bytes};
use crate::base::gate::{Bound::RateAtLeast, Gate, Source::Perf};
use crate::base::prelude::*;

pub const TOPIC: Topic = Topic {
    title: "Remote memory access",
    jobs: |most| pe_counts(most).into_iter().map(job).collect(),
    tables: |records| {
        let put = bandwidth(records, "put", Operation::Put, Operation::PutMemcpy);
        let get = bandwidth(records, "get", Operation::Get, Operation::GetMemcpy);
        let (ping, barrier) = (barrier::ping_table(records), barrier::table(records));
        vec![latency(records), ping, put, get, flood(records), barrier]
    },
    figures: |records| {
        let curves = [barrier::ping_curve, bandwidth_curve, flood_curve, barrier::curve];
        curves.map(|curve| curve(records)).into()
    },
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench rma                       two PEs, or as many as there are cores
  pelago bench rma --fabric tcp          over TCP, as between nodes
  pelago bench rma --fabric ofi          over libfabric; the heading says over which provider and domain
  pelago bench rma -n 16 --html b.html   barriers of up to 16 PEs too, and a page of curves";

/// A gate on the ratio of a rate to that of memcpy.
const fn gate(
    name: &'static str,
    what: &'static str,
    least: f64,
    comparison: &'static [&'static str],
) -> Gate {
    Gate { name, what, bound: RateAtLeast(least), source: Perf(2, comparison) }
}

pub static GATES: &[Gate] = &[
    gate("put-4k", "4 KiB puts to memcpy, rate", 0.90, &["put", "--bytes", "4096"]),
    gate("get-4k", "4 KiB gets to memcpy, rate", 0.90, &["get", "--bytes", "4096"]),
    gate("put-64k", "64 KiB puts to memcpy, rate", 0.97, &["put", "--bytes", "65536"]),
    gate("get-64k", "64 KiB gets to memcpy, rate", 0.97, &["get", "--bytes", "65536"]),
    gate("put-256k", "256 KiB puts to memcpy, rate", 0.97, &["put", "--bytes", "262144"]),
    gate("get-256k", "256 KiB gets to memcpy, rate", 0.97, &["get", "--bytes", "262144"]),
    gate("put-1m", "1 MiB puts to memcpy, rate", 0.97, &["put", "--bytes", "1048576"]),
    gate("get-1m", "1 MiB gets to memcpy, rate", 0.97, &["get", "--bytes", "1048576"]),
    gate("put-4m", "4 MiB puts to memcpy, rate", 0.97, &["put", "--bytes", "4194304"]),
    gate("get-4m", "4 MiB gets to memcpy, rate", 0.97, &["get", "--bytes", "4194304"]),
];

/// The target PE.
const TARGET: Pe = 1;
const WORD_BYTES: usize = size_of::<u64>();

fn job(pes: usize) -> Job {
    Job { pes, suite: if pes == 2 { "rma" } else { "barrier" } }
}

/// The numbers of PEs for which barriers are measured: all up to 8, then in steps of a quarter, and `max`.
fn pe_counts(max: usize) -> Vec<usize> {
    let next = |pes: &usize| (*pes < max).then(|| (pes + (pes / 4).max(1)).min(max));
    let next = |pes: &usize| if *pes < 8 { (*pes < max).then_some(pes + 1) } else { next(pes) };
    std::iter::successors(Some(2), next).collect()
}

fn latency(records: &[Record]) -> Table {
    let title = "Latency of 8 bytes in PE 1's memory, ns an operation (cache of PE 0)";
    let mut table = Table::new(title, 1, "operation|min|median|max");
    for (operation, name) in [
        (Operation::PutIssue, "p, issued"),
        (Operation::Put, "put and quiet"),
        (Operation::Get, "get, each after the last"),
    ] {
        of(records, Bench::Latency, operation).for_each(|record| table.row((name, record.summary)));
    }
    table
}

fn bandwidth(records: &[Record], name: &str, ours: Operation, memcpy: Operation) -> Table {
    let title = format!("Bandwidth of blocking {name}s, beside memcpy between the same buffers; GB/s");
    let names = format!("size|buffers|{name}: min|median|max|memcpy: median|{name} / memcpy");
    let mut table = Table::new(title, 2, &names);
    for record in of(records, Bench::Bandwidth, ours) {
        // Over a fabric, memcpy cannot access the memory.
        let beside = of(records, Bench::Bandwidth, memcpy)
            .find(|r| (r.label.bytes, r.label.place) == (record.label.bytes, record.label.place));
        let place = if record.label.place == Some(Place::Memory) { "memory" } else { "cache" };
        table.row((size(record.label.bytes), place, record.summary, beside, ratio(Some(record), beside)));
    }
    table
}

fn flood(records: &[Record]) -> Table {
    let windows = values(records, |label| label.window);
    let names: String = windows.iter().map(|window| format!("|{window} outstanding")).collect();
    let title = "Flood of puts to one place, completed window by window; medians, GB/s (cache)";
    let mut table = Table::new(title, 1, &format!("size{names}"));
    let floods: Vec<_> = of(records, Bench::Flood, Operation::Put).collect();
    for of_size in floods.chunk_by(|a, b| a.label.bytes == b.label.bytes) {
        let found =
            |window: &usize| of_size.iter().find(|record| record.label.window == Some(*window)).copied();
        let rates: Vec<_> = windows.iter().map(found).collect();
        table.row((size(of_size[0].label.bytes), rates));
    }
    table
}

fn bandwidth_curve(records: &[Record]) -> Figure {
    let line = |name, colour, line, operation, place| {
        let records = of(records, Bench::Bandwidth, operation).filter(move |r| r.label.place == Some(place));
        Across::Bytes.series(name, colour, line, records)
    };
    let (cache, memory) = (Place::Cache, Place::Memory);
    Figure::new(
        "Bandwidth of put, get and memcpy",
        [Across::Bytes.axis("size of a transfer"), BANDWIDTH],
        "Blocking transfers by PE 0 beside memcpy between the same two buffers, block by block. Cache: the \
         same buffers again and again; memory: moving on through regions of twice the last-level cache or \
         more. memcpy is that of the puts; the tables have that of the gets too. Medians.",
        [
            line("memcpy, cache", GREY, Line::Broad, Operation::PutMemcpy, cache),
            line("memcpy, memory", GREY, Line::BroadDashed, Operation::PutMemcpy, memory),
            line("put, cache", BLUE, Line::Solid, Operation::Put, cache),
            line("put, memory", BLUE, Line::Dashed, Operation::Put, memory),
            line("get, cache", ORANGE, Line::Solid, Operation::Get, cache),
            line("get, memory", ORANGE, Line::Dashed, Operation::Get, memory),
        ],
    )
}

fn flood_curve(records: &[Record]) -> Figure {
    let windows = values(records, |label| label.window);
    let lines = windows.into_iter().zip([BLUE, GREEN, ORANGE]).map(|(window, colour)| {
        let floods = of(records, Bench::Flood, Operation::Put);
        let of_window = floods.filter(move |record| record.label.window == Some(window));
        Across::Bytes.series(&format!("{window} outstanding"), colour, Line::Solid, of_window)
    });
    Figure::new(
        "Flood bandwidth of puts",
        [Across::Bytes.axis("size of a put"), BANDWIDTH],
        "To one place, in the cache; each window is completed before the next. Medians.",
        lines,
    )
}

/// The plan of the measurements.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The sizes of the messages of ping-ack; flags without data are always measured.
    ping_bytes: Vec<usize>,
    /// The sizes of transfers.
    transfer_bytes: Vec<usize>,
    /// The numbers of outstanding puts.
    windows: Vec<usize>,
    /// The size of the region for transfers of uncached data, if there is room for it.
    memory_region_bytes: Option<usize>,
    /// The smallest transfer that is also measured in that region.
    memory_transfer_bytes_min: usize,
    effort: Effort,
}

impl Plan {
    /// The plan of `bench rma`.
    pub fn of(world: &World, effort: Effort) -> Self {
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

/// Collective, for two PEs or more: runs the plan.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the buffers.
pub fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let transfer_bytes_max = largest(&plan.transfer_bytes);
    let region_bytes = plan.memory_region_bytes.unwrap_or(0).max(transfer_bytes_max);
    let buffers = Buffers::new(world, region_bytes)?;
    let (word, zero) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
    let ping = PingAck::new(world, largest(&plan.ping_bytes))?;
    let mut suite = Suite::new(world, plan.effort);
    for (operation, part) in [
        (Operation::PutIssue, put_issue(&word)),
        (Operation::Put, put_quiet(&word)),
        (Operation::Get, get(&zero)),
    ] {
        suite.add([(suite.label(Bench::Latency, operation, WORD_BYTES), part)]);
    }
    barrier::add_meetings(&mut suite, world, &ping, &plan.ping_bytes);
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

fn add_bandwidth<'a>(suite: &mut Suite<'a>, place: Place, bytes: usize, transfers: &Transfers<'a, '_>) {
    let put = suite.label(Bench::Bandwidth, Operation::Put, bytes).in_place(place);
    let put_memcpy = suite.label(Bench::Bandwidth, Operation::PutMemcpy, bytes).in_place(place);
    let beside = |label, part: Part<'a>| transfers.are_mapped().then_some((label, part));
    suite.add([(put, transfers.put())].into_iter().chain(beside(put_memcpy, transfers.put_memcpy())));
    let get = suite.label(Bench::Bandwidth, Operation::Get, bytes).in_place(place);
    let get_memcpy = suite.label(Bench::Bandwidth, Operation::GetMemcpy, bytes).in_place(place);
    suite.add([(get, transfers.get())].into_iter().chain(beside(get_memcpy, transfers.get_memcpy())));
}

/// Collective: measures `count` pairs of blocking puts, or gets, and memcpy between the same buffers.
///
/// # Errors
/// If the symmetric heap has no room for a transfer.
pub fn memcpy_pairs(
    world: &World,
    operation: Operation,
    bytes: usize,
    count: usize,
    effort: Effort,
) -> Result<Vec<Pair>> {
    let buffers = Buffers::new(world, bytes)?;
    let transfers = Transfers::new(&buffers, bytes, bytes);
    let parts = match operation {
        Operation::Put => [transfers.put(), transfers.put_memcpy()],
        _ => [transfers.get(), transfers.get_memcpy()],
    };
    pairs(world, parts, 1.0, count, effort)
}

/// Repeats `p` without waiting for completion.
fn put_issue<'a>(word: &'a Symmetric<'_, u64>) -> Part<'a> {
    only_first(word.world(), move |count| {
        (0..count).try_for_each(|value| word.p(TARGET, 0, black_box(value)))
    })
}

/// `put` of one word and `quiet`.
pub fn put_quiet<'a>(word: &'a Symmetric<'_, u64>) -> Part<'a> {
    only_first(word.world(), move |count| {
        (0..count).try_for_each(|value| {
            word.put(TARGET, 0, slice::from_ref(black_box(&value)))?;
            word.world().quiet();
            Ok(())
        })
    })
}

/// Repeats `get` of one word, whose value 0 is the index of the next get.
fn get<'a>(zero: &'a Symmetric<'_, u64>) -> Part<'a> {
    only_first(zero.world(), move |count| {
        let mut value = 0;
        (0..count).try_for_each(|_| zero.get(TARGET, value as usize, slice::from_mut(&mut value)))
    })
}

/// Transfers of one size between the two regions. All parts of one value advance through the regions
/// together, so that none finds data that another has just brought into the cache.
pub struct Transfers<'a, 'w> {
    buffers: &'a Buffers<'w>,
    words: usize,
    rotation: Rc<Rotation>,
}

impl<'a, 'w> Transfers<'a, 'w> {
    /// Transfers of `bytes`, which advance through the first `region_bytes` of the buffers.
    pub fn new(buffers: &'a Buffers<'w>, bytes: usize, region_bytes: usize) -> Self {
        let [words, region] = [bytes, region_bytes].map(|bytes| bytes / size_of::<u64>());
        Transfers { buffers, words, rotation: Rc::new(Rotation::new(words, region)) }
    }

    /// Whether PE 0 maps the target's part, so that memcpy can replace puts and gets.
    fn are_mapped(&self) -> bool {
        self.buffers.symmetric.ptr(TARGET).is_some()
    }

    /// Blocking puts.
    fn put(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            buffers.symmetric.put(TARGET, at, &buffers.private.borrow().words()[at..at + words])
        })
    }

    /// Blocking gets.
    fn get(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            buffers.symmetric.get(TARGET, at, &mut buffers.private.borrow_mut().words_mut()[at..at + words])
        })
    }

    /// The same transfers as the puts, by the C library's memcpy.
    pub fn put_memcpy(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            let private = buffers.private.borrow();
            let source = &private.words()[at..at + words];
            let target = mapped(&buffers.symmetric, at, words);
            // SAFETY: `mapped` returns a pointer to `words` words, which no other PE accesses in this block.
            // The source is a private slice of the same length.
            unsafe { libc::memcpy(target.cast(), source.as_ptr().cast(), size_of_val(source)) };
            Ok(())
        })
    }

    /// The same transfers as the gets, by the C library's memcpy.
    fn get_memcpy(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            let mut private = buffers.private.borrow_mut();
            let target = &mut private.words_mut()[at..at + words];
            let source = mapped(&buffers.symmetric, at, words);
            // SAFETY: `mapped` returns a pointer to `words` words, which no other PE accesses in this block.
            // The target is a private slice of the same length.
            unsafe { libc::memcpy(target.as_mut_ptr().cast(), source.cast(), size_of_val(target)) };
            Ok(())
        })
    }

    /// Windows of puts to one place, each window a scope.
    fn flood(&self, window: usize) -> Part<'a> {
        let (buffers, words) = (self.buffers, self.words);
        let world = buffers.symmetric.world();
        only_first(world, move |count| {
            let private = buffers.private.borrow();
            let source = &private.words()[..words];
            (0..count).try_for_each(|_| {
                world.scope(|scope| {
                    (0..window).try_for_each(|_| scope.put(&buffers.symmetric, TARGET, 0, source))
                })
            })
        })
    }

    fn part(
        &self,
        transfer: impl Fn(&Buffers<'_>, usize, usize) -> pelago::Result<()> + 'static,
    ) -> Part<'a> {
        let (buffers, words, rotation) = (self.buffers, self.words, Rc::clone(&self.rotation));
        only_first(buffers.symmetric.world(), move |count| {
            (0..count).try_for_each(|_| transfer(buffers, rotation.next(), words))
        })
    }
}

/// The address at which PE 0 maps the words `at..at + words` of the target's part.
fn mapped(symmetric: &Symmetric<'_, u64>, at: usize, words: usize) -> *mut u64 {
    let start = symmetric.ptr(TARGET).expect("the PEs of a node map each other");
    assert!(at + words <= symmetric.len(), "a transfer stays in its region");
    // SAFETY: the array has that many elements, as just checked, and the pointer is valid for all of them.
    unsafe { start.add(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::{Leader, conduct};
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, count, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    /// A few records of each kind.
    fn records() -> Vec<Record> {
        let label = |bench, operation, bytes| Label::new(2, bench, operation, bytes);
        let time = |label, median| record(label, Unit::Nanoseconds, median);
        let rate = |label, median| record(label, Unit::GigabytesPerSecond, median);
        let mut records = vec![
            time(label(Bench::Latency, Operation::PutIssue, 8), 0.26),
            time(label(Bench::Latency, Operation::Put, 8), 5.4),
            time(label(Bench::Latency, Operation::Get, 8), 1.27),
        ];
        for (bytes, round_trip) in [(8, 120.0), (64, 150.0), (512, 400.0), (0, 100.0)] {
            records.push(time(label(Bench::PingAck, Operation::RoundTrip, bytes), round_trip));
            records.push(time(label(Bench::PingAck, Operation::OneWay, bytes), round_trip / 2.0));
        }
        for (place, bytes, gigabytes) in
            [(Place::Cache, 64, 28.0), (Place::Cache, 1 << 20, 56.0), (Place::Memory, 1 << 20, 18.0)]
        {
            for (operation, share) in [
                (Operation::Put, 0.98),
                (Operation::PutMemcpy, 1.0),
                (Operation::Get, 0.95),
                (Operation::GetMemcpy, 1.0),
            ] {
                let label = label(Bench::Bandwidth, operation, bytes).in_place(place);
                records.push(rate(label, gigabytes * share));
            }
        }
        for (bytes, window, gigabytes) in [(64, 1, 10.0), (64, 8, 35.0), (4096, 1, 107.0), (4096, 8, 127.0)] {
            let label = label(Bench::Flood, Operation::Put, bytes).with_window(window);
            records.push(rate(label, gigabytes));
        }
        let of_three = |bench, operation| Label { pes: 3, ..label(bench, operation, 0) };
        records.push(time(label(Bench::Barrier, Operation::Barrier, 0), 51.0));
        records.push(time(of_three(Bench::Barrier, Operation::Barrier), 800.0));
        records.push(time(of_three(Bench::PingAck, Operation::OneWay), 200.0));
        records
    }

    #[test]
    fn every_kind_has_its_table_and_its_ratios() {
        let (tables, page) = shown(&TOPIC, &records(), 4);
        assert_row(&tables, &["put and quiet", "2.70", "5.40", "54.0"]);
        assert_row(&tables, &["64 B", "75.0", "150", "1500", "37.5", "75.0", "750"]);
        assert_row(&tables, &["flag only", "50.0", "100", "1000", "25.0", "50.0", "500"]);
        assert_row(&tables, &["1 MiB", "memory", "8.82", "17.6", "176", "18.0", "0.980"]);
        assert_row(&tables, &["1 MiB", "cache", "26.6", "53.2", "532", "56.0", "0.950"]);
        assert_row(&tables, &["4 KiB", "107", "127"]);
        assert_row(&tables, &["2", "25.5", "51.0", "510", "50.0", "1.02"]);
        assert_row(&tables, &["3", "400", "800", "8000", "200", "4.00"]);
        assert!(page.contains("put, memory, 1 MiB: 17.6") && page.contains("barrier, 3 PEs: 800"));
    }

    #[test]
    fn without_records_nothing_is_shown() {
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn numbers_of_pes_grow_by_steps_to_the_one_asked_for() {
        assert_eq!(pe_counts(2), [2]);
        assert_eq!(pe_counts(5), [2, 3, 4, 5]);
        assert_eq!(pe_counts(16), [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16]);
        assert!(pe_counts(1000).len() < 40);
        let suites: Vec<_> = (TOPIC.jobs)(3).iter().map(|job| job.suite).collect();
        assert_eq!(suites, ["rma", "barrier"]);
    }

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

    const BYTES: usize = 8192;

    /// Puts `value` from a private region, or gets it from PE 1's part, by `part`; returns whether both
    /// regions contain only this value afterwards.
    fn moves(
        leader: &mut Leader<'_, '_, '_>,
        buffers: &Buffers<'_>,
        part: usize,
        value: u64,
    ) -> Result<bool> {
        let is_get = part >= FIRST_GET;
        let far = &buffers.symmetric;
        let mut there = vec![if is_get { value } else { 0 }; far.len()];
        far.put(TARGET, 0, &there)?;
        buffers.private.borrow_mut().words_mut().fill(if is_get { 0 } else { value });
        leader.play(part, 2)?;
        far.get(TARGET, 0, &mut there)?;
        let private = buffers.private.borrow();
        Ok(private.words().iter().chain(&there).all(|word| *word == value))
    }

    const FIRST_GET: usize = 3;

    #[test]
    fn transfers_move_what_they_say() {
        let moved = spmd(2, |world| {
            let buffers = Buffers::new(world, BYTES).unwrap();
            let transfers = Transfers::new(&buffers, BYTES, BYTES);
            let puts = [transfers.put(), transfers.put_memcpy(), transfers.flood(3)];
            let gets = [transfers.get(), transfers.get_memcpy()];
            let mut parts: Vec<_> = puts.into_iter().chain(gets).collect();
            let led = conduct(world, &mut parts, |leader| {
                (0..5).map(|part| moves(leader, &buffers, part, part as u64 + 2)).collect::<Result<Vec<_>>>()
            });
            led.unwrap()
        });
        assert_eq!(moved.unwrap()[0], Some(vec![true; 5]));
    }
}
