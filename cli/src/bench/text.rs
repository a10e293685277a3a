//! The measurements of `bench rma` as tables. Invariant: every table says its unit, and a ratio stands beside
//! what it is a ratio of.

use std::fs;

use pelago_apps::Bytes;
use pelago_apps::perf::{Bench, Operation, Place, Record, Summary};

use super::table::{Table, figure};

/// What was measured and how, in two lines.
pub fn heading(cores: usize) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    format!(
        "pelago {} on {model}, {cores} cores for this command\n\
         Minimum, median and maximum over many short blocks of operations; GB = 10^9 bytes\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// All tables for which there are records.
pub fn tables(records: &[Record]) -> String {
    let bandwidths = [(Operation::Put, Operation::PutMemcpy), (Operation::Get, Operation::GetMemcpy)];
    let mut tables = vec![latency(records), ping_ack(records)];
    tables.extend(bandwidths.map(|(ours, memcpy)| bandwidth(records, ours, memcpy)));
    tables.extend([flood(records), barrier(records)]);
    let shown = tables.iter().filter(|table| !table.is_empty());
    shown.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The records of one kind.
pub fn of(records: &[Record], bench: Bench, operation: Operation) -> impl Iterator<Item = &Record> {
    records.iter().filter(move |record| (record.bench, record.operation) == (bench, operation))
}

/// The windows of the flood, ascending.
pub fn windows(records: &[Record]) -> Vec<usize> {
    let mut windows: Vec<_> = records.iter().filter_map(|record| record.window).collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// In words: `64 B`, or `flag only`.
pub fn size(bytes: usize) -> String {
    if bytes == 0 { "flag only".to_owned() } else { Bytes(bytes as u64).to_string() }
}

fn figures(summary: Summary) -> [String; 3] {
    [summary.min, summary.median, summary.max].map(figure)
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
    let of_two = of(records, Bench::PingAck, Operation::RoundTrip).filter(|record| record.pes == 2);
    let mut sorted: Vec<_> = of_two.collect();
    sorted.sort_by_key(|record| record.bytes);
    for record in sorted {
        if let Some(half) = one_way(records, record.pes, record.bytes) {
            let cells = figures(record.summary).into_iter().chain(figures(half));
            table.row([size(record.bytes)].into_iter().chain(cells));
        }
    }
    table
}

fn one_way(records: &[Record], pes: usize, bytes: usize) -> Option<Summary> {
    let mut halves = of(records, Bench::PingAck, Operation::OneWay);
    halves.find(|half| (half.pes, half.bytes) == (pes, bytes)).map(|half| half.summary)
}

fn bandwidth(records: &[Record], ours: Operation, memcpy: Operation) -> Table {
    let name = if ours == Operation::Put { "put" } else { "get" };
    let title = format!("Bandwidth of blocking {name}s, beside memcpy between the same buffers; GB/s");
    let [min, ratio] = [format!("{name}: min"), format!("{name} / memcpy")];
    let names = ["size", "buffers", &min, "median", "max", "memcpy: median", &ratio];
    let mut table = Table::new(&title, 2, names);
    for record in of(records, Bench::Bandwidth, ours) {
        let mut yardsticks = of(records, Bench::Bandwidth, memcpy);
        if let Some(memcpy) = yardsticks.find(|r| (r.bytes, r.place) == (record.bytes, record.place)) {
            let place = if record.place == Some(Place::Memory) { "memory" } else { "cache" };
            let memcpy = memcpy.summary.median;
            let ratio = format!("{:.3}", record.summary.median / memcpy);
            let cells = figures(record.summary).into_iter().chain([figure(memcpy), ratio]);
            table.row([size(record.bytes), place.to_owned()].into_iter().chain(cells));
        }
    }
    table
}

fn flood(records: &[Record]) -> Table {
    let windows = windows(records);
    let names = windows.iter().map(|window| format!("{window} outstanding"));
    let names: Vec<_> = ["size".to_owned()].into_iter().chain(names).collect();
    let title = "Flood of puts to one place, completed window by window; medians, GB/s (cache)";
    let mut table = Table::new(title, 1, names.iter().map(String::as_str));
    let floods: Vec<_> = of(records, Bench::Flood, Operation::Put).collect();
    for of_size in floods.chunk_by(|a, b| a.bytes == b.bytes) {
        let median = |window: &usize| of_size.iter().find(|record| record.window == Some(*window));
        let cells = windows
            .iter()
            .map(|window| median(window).map_or(String::new(), |record| figure(record.summary.median)));
        table.row([size(of_size[0].bytes)].into_iter().chain(cells));
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
        if let Some(one_way) = one_way(records, record.pes, 0) {
            let ratio = figure(record.summary.median / one_way.median);
            let cells = figures(record.summary).into_iter().chain([figure(one_way.median), ratio]);
            table.row([record.pes.to_string()].into_iter().chain(cells));
        }
    }
    table
}

#[cfg(test)]
pub mod tests {
    use pelago_apps::perf::Unit;

    use super::*;

    fn record(bench: Bench, operation: Operation, bytes: usize, median: f64) -> Record {
        let summary = Summary { min: median / 2.0, median, max: median * 10.0, samples: 21 };
        let unit = match bench {
            Bench::Bandwidth | Bench::Flood => Unit::GigabytesPerSecond,
            _ => Unit::Nanoseconds,
        };
        Record { bench, operation, bytes, pes: 2, window: None, place: None, unit, summary }
    }

    /// A few records of each kind.
    pub fn records() -> Vec<Record> {
        let mut records = vec![
            record(Bench::Latency, Operation::PutIssue, 8, 0.26),
            record(Bench::Latency, Operation::Put, 8, 5.4),
            record(Bench::Latency, Operation::Get, 8, 1.27),
        ];
        for (bytes, round_trip) in [(8, 120.0), (64, 150.0), (512, 400.0), (0, 100.0)] {
            records.push(record(Bench::PingAck, Operation::RoundTrip, bytes, round_trip));
            records.push(record(Bench::PingAck, Operation::OneWay, bytes, round_trip / 2.0));
        }
        for (place, bytes, rate) in
            [(Place::Cache, 64, 28.0), (Place::Cache, 1 << 20, 56.0), (Place::Memory, 1 << 20, 18.0)]
        {
            for (operation, share) in [
                (Operation::Put, 0.98),
                (Operation::PutMemcpy, 1.0),
                (Operation::Get, 0.95),
                (Operation::GetMemcpy, 1.0),
            ] {
                let record = record(Bench::Bandwidth, operation, bytes, rate * share);
                records.push(Record { place: Some(place), ..record });
            }
        }
        for (bytes, window, rate) in [(64, 1, 10.0), (64, 8, 35.0), (4096, 1, 107.0), (4096, 8, 127.0)] {
            let record = record(Bench::Flood, Operation::Put, bytes, rate);
            records.push(Record { window: Some(window), ..record });
        }
        records.push(record(Bench::Barrier, Operation::Barrier, 0, 51.0));
        records.push(Record { pes: 3, ..record(Bench::Barrier, Operation::Barrier, 0, 800.0) });
        records.push(Record { pes: 3, ..record(Bench::PingAck, Operation::OneWay, 0, 200.0) });
        records
    }

    #[test]
    fn every_kind_has_its_table_and_its_ratios() {
        let text = tables(&records());
        let has = |cells: &[&str]| {
            let found = text.lines().any(|line| line.split_whitespace().eq(cells.iter().copied()));
            assert!(found, "no line {cells:?} in\n{text}");
        };
        has(&["put", "and", "quiet", "2.70", "5.40", "54.0"]);
        has(&["64", "B", "75.0", "150", "1500", "37.5", "75.0", "750"]);
        has(&["flag", "only", "50.0", "100", "1000", "25.0", "50.0", "500"]);
        has(&["1", "MiB", "memory", "8.82", "17.6", "176", "18.0", "0.980"]);
        has(&["1", "MiB", "cache", "26.6", "53.2", "532", "56.0", "0.950"]);
        has(&["4", "KiB", "107", "127"]);
        has(&["2", "25.5", "51.0", "510", "50.0", "1.02"]);
        has(&["3", "400", "800", "8000", "200", "4.00"]);
    }

    #[test]
    fn without_records_there_are_no_tables() {
        assert_eq!(tables(&[]), "");
    }
}
