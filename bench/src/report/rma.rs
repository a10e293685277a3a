//! `bench rma`: put and get beside memcpy, ping-ack, flood and barrier. Invariant: a ratio stands beside what
//! it is a ratio of, and both were measured in turn.

use crate::measure::{Bench, Operation, Place, Record, Summary};

use super::page::{Across, BANDWIDTH, BLUE, Figure, GREEN, GREY, ORANGE};
use super::table::{Table, figure};
use super::text::{figures, median, of, ratio, size, values};
use super::topic::{Job, Topic};
use crate::plot::{Axis, Chart, Line, Scale};

pub const TOPIC: Topic = Topic {
    title: "Remote memory access",
    jobs: |most| pe_counts(most).into_iter().map(job).collect(),
    tables,
    figures: |records| {
        vec![latency_curve(records), bandwidth_curve(records), flood_curve(records), barrier_curve(records)]
    },
};

fn job(pes: usize) -> Job {
    Job { pes, suite: if pes == 2 { "rma" } else { "barrier" } }
}

/// The numbers of PEs whose barriers are measured: each up to 8, then a quarter more at a time, and `max`.
fn pe_counts(max: usize) -> Vec<usize> {
    let next = |pes: &usize| (*pes < max).then(|| (pes + (pes / 4).max(1)).min(max));
    let next = |pes: &usize| if *pes < 8 { (*pes < max).then_some(pes + 1) } else { next(pes) };
    std::iter::successors(Some(2), next).collect()
}

fn tables(records: &[Record]) -> Vec<Table> {
    vec![
        latency(records),
        ping_ack(records),
        bandwidth(records, Operation::Put, Operation::PutMemcpy),
        bandwidth(records, Operation::Get, Operation::GetMemcpy),
        flood(records),
        barrier(records),
    ]
}

fn latency(records: &[Record]) -> Table {
    let mut table = Table::new(
        "Latency of 8 bytes in PE 1's memory, ns an operation (cache of PE 0)",
        1,
        ["operation", "min", "median", "max"],
    );
    for (operation, name) in [
        (Operation::PutIssue, "p, issued"),
        (Operation::Put, "put and quiet"),
        (Operation::Get, "get, each after the last"),
    ] {
        for record in of(records, Bench::Latency, operation) {
            table.row([name.to_owned()].into_iter().chain(figures(record.summary)));
        }
    }
    table
}

fn ping_ack(records: &[Record]) -> Table {
    let mut table = Table::new(
        "Ping-ack between PEs 0 and 1: put and flag there, read, flag back; ns",
        1,
        ["put", "round trip: min", "median", "max", "half of it: min", "median", "max"],
    );
    let of_two = of(records, Bench::PingAck, Operation::RoundTrip).filter(|record| record.label.pes == 2);
    let mut sorted: Vec<_> = of_two.collect();
    sorted.sort_by_key(|record| record.label.bytes);
    for record in sorted {
        if let Some(half) = one_way(records, record.label.pes, record.label.bytes) {
            let cells = figures(record.summary).into_iter().chain(figures(half));
            table.row([size(record.label.bytes)].into_iter().chain(cells));
        }
    }
    table
}

fn one_way(records: &[Record], pes: usize, bytes: usize) -> Option<Summary> {
    let mut halves = of(records, Bench::PingAck, Operation::OneWay);
    halves.find(|half| (half.label.pes, half.label.bytes) == (pes, bytes)).map(|half| half.summary)
}

fn bandwidth(records: &[Record], ours: Operation, memcpy: Operation) -> Table {
    let name = if ours == Operation::Put { "put" } else { "get" };
    let title = format!("Bandwidth of blocking {name}s, beside memcpy between the same buffers; GB/s");
    let [min, beside] = [format!("{name}: min"), format!("{name} / memcpy")];
    let names = ["size", "buffers", &min, "median", "max", "memcpy: median", &beside];
    let mut table = Table::new(&title, 2, names);
    for record in of(records, Bench::Bandwidth, ours) {
        let mut yardsticks = of(records, Bench::Bandwidth, memcpy);
        let beside =
            yardsticks.find(|r| (r.label.bytes, r.label.place) == (record.label.bytes, record.label.place));
        let place = if record.label.place == Some(Place::Memory) { "memory" } else { "cache" };
        // Over a fabric there is nothing that memcpy could do.
        let cells = figures(record.summary).into_iter().chain([median(beside), ratio(Some(record), beside)]);
        table.row([size(record.label.bytes), place.to_owned()].into_iter().chain(cells));
    }
    table
}

fn flood(records: &[Record]) -> Table {
    let windows = values(records, |label| label.window);
    let names = windows.iter().map(|window| format!("{window} outstanding"));
    let names: Vec<_> = ["size".to_owned()].into_iter().chain(names).collect();
    let title = "Flood of puts to one place, completed window by window; medians, GB/s (cache)";
    let mut table = Table::new(title, 1, names.iter().map(String::as_str));
    let floods: Vec<_> = of(records, Bench::Flood, Operation::Put).collect();
    for of_size in floods.chunk_by(|a, b| a.label.bytes == b.label.bytes) {
        let found = |window: &usize| of_size.iter().find(|record| record.label.window == Some(*window));
        let cells = windows.iter().map(|window| median(found(window).copied()));
        table.row([size(of_size[0].label.bytes)].into_iter().chain(cells));
    }
    table
}

fn barrier(records: &[Record]) -> Table {
    let mut table = Table::new(
        "Barrier, beside a one-way transfer (half a round trip of a flag between PEs 0 and 1); ns",
        0,
        ["PEs", "barrier: min", "median", "max", "one-way: median", "barrier / one-way"],
    );
    for record in of(records, Bench::Barrier, Operation::Barrier) {
        if let Some(one_way) = one_way(records, record.label.pes, 0) {
            let ratio = figure(record.summary.median / one_way.median);
            let cells = figures(record.summary).into_iter().chain([figure(one_way.median), ratio]);
            table.row([record.label.pes.to_string()].into_iter().chain(cells));
        }
    }
    table
}

fn latency_curve(records: &[Record]) -> Figure {
    let line = |name, colour, operation| {
        let records = of(records, Bench::PingAck, operation).filter(|record| record.label.bytes > 0);
        Across::Bytes.series(name, colour, Line::Solid, records)
    };
    let lines =
        [line("round trip", BLUE, Operation::RoundTrip), line("half of it", ORANGE, Operation::OneWay)];
    Figure {
        chart: Chart {
            title: "Latency of put, flag and acknowledgement between two PEs".to_owned(),
            x: Across::Bytes.axis("size of the put"),
            y: Axis { label: "ns", scale: Scale::FromZero },
            series: lines.into_iter().flatten().collect(),
        },
        caption: "PE 1 reads what came before it acknowledges. Medians.",
    }
}

fn bandwidth_curve(records: &[Record]) -> Figure {
    let line = |name, colour, line, operation, place| {
        let records = of(records, Bench::Bandwidth, operation).filter(move |r| r.label.place == Some(place));
        Across::Bytes.series(name, colour, line, records)
    };
    let (cache, memory) = (Place::Cache, Place::Memory);
    let lines = [
        line("memcpy, cache", GREY, Line::Broad, Operation::PutMemcpy, cache),
        line("memcpy, memory", GREY, Line::BroadDashed, Operation::PutMemcpy, memory),
        line("put, cache", BLUE, Line::Solid, Operation::Put, cache),
        line("put, memory", BLUE, Line::Dashed, Operation::Put, memory),
        line("get, cache", ORANGE, Line::Solid, Operation::Get, cache),
        line("get, memory", ORANGE, Line::Dashed, Operation::Get, memory),
    ];
    Figure {
        chart: Chart {
            title: "Bandwidth of put, get and memcpy".to_owned(),
            x: Across::Bytes.axis("size of a transfer"),
            y: BANDWIDTH,
            series: lines.into_iter().flatten().collect(),
        },
        caption: "Blocking transfers by PE 0 beside memcpy between the same two buffers, block by block. \
                  Cache: the same buffers again and again; memory: moving on through regions of twice the \
                  last-level cache or more. memcpy is that of the puts; the tables have that of the gets \
                  too. Medians.",
    }
}

fn flood_curve(records: &[Record]) -> Figure {
    let windows = values(records, |label| label.window);
    let lines = windows.into_iter().zip([BLUE, GREEN, ORANGE]).map(|(window, colour)| {
        let floods = of(records, Bench::Flood, Operation::Put);
        let of_window = floods.filter(move |record| record.label.window == Some(window));
        Across::Bytes.series(&format!("{window} outstanding"), colour, Line::Solid, of_window)
    });
    Figure {
        chart: Chart {
            title: "Flood bandwidth of puts".to_owned(),
            x: Across::Bytes.axis("size of a put"),
            y: BANDWIDTH,
            series: lines.flatten().collect(),
        },
        caption: "To one place, in the cache; each window is completed before the next. Medians.",
    }
}

fn barrier_curve(records: &[Record]) -> Figure {
    let barriers = of(records, Bench::Barrier, Operation::Barrier);
    let flags = of(records, Bench::PingAck, Operation::OneWay).filter(|record| record.label.bytes == 0);
    let lines = [
        Across::Pes.series("barrier", BLUE, Line::Solid, barriers),
        Across::Pes.series("one-way transfer", ORANGE, Line::Dashed, flags),
    ];
    Figure {
        chart: Chart {
            title: "Barrier".to_owned(),
            x: Across::Pes.axis("PEs"),
            y: Axis { label: "ns", scale: Scale::Decades },
            series: lines.into_iter().flatten().collect(),
        },
        caption: "One-way: half a round trip of a flag between PEs 0 and 1. Medians.",
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Label, Unit};

    use super::*;
    use crate::report::text::tests::record;
    use crate::report::topic::tests::{assert_nothing_shown, assert_row, shown};

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
}
