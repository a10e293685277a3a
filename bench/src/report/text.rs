//! What the tables of all topics have in common. Invariant: every table says its unit, and a ratio stands
//! beside what it is a ratio of.

use std::fs;

use crate::measure::{Bench, Label, Operation, Record, Summary};
use pelago_apps::Bytes;

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

/// Over which fabric the records were taken, as they say themselves: a line, or nothing if all PEs mapped
/// each other.
pub fn over(records: &[Record]) -> String {
    let mut fabrics: Vec<_> = records.iter().filter_map(|record| record.fabric.as_deref()).collect();
    fabrics.sort_unstable();
    fabrics.dedup();
    match fabrics[..] {
        [] => String::new(),
        _ => format!("No PE maps another one's memory: all goes over {}\n", fabrics.join(" and ")),
    }
}

/// The tables that have rows, one after the other.
pub fn joined(tables: &[Table]) -> String {
    let shown = tables.iter().filter(|table| !table.is_empty());
    shown.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The records of one kind.
pub fn of(records: &[Record], bench: Bench, operation: Operation) -> impl Iterator<Item = &Record> {
    records.iter().filter(move |record| (record.label.bench, record.label.operation) == (bench, operation))
}

/// The first record with such a label, if there is one.
pub fn find(records: &[Record], has: impl Fn(&Label) -> bool) -> Option<&Record> {
    records.iter().find(|record| has(&record.label))
}

/// What the labels of some records vary in, ascending.
pub fn values(records: &[Record], of: impl Fn(&Label) -> Option<usize>) -> Vec<usize> {
    let mut values: Vec<_> = records.iter().filter_map(|record| of(&record.label)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// In words: `64 B`, or `flag only`.
pub fn size(bytes: usize) -> String {
    if bytes == 0 { "flag only".to_owned() } else { Bytes(bytes as u64).to_string() }
}

/// Minimum, median and maximum as cells.
pub fn figures(summary: Summary) -> [String; 3] {
    [summary.min, summary.median, summary.max].map(figure)
}

/// The median as a cell, empty if there is no such record.
pub fn median(record: Option<&Record>) -> String {
    record.map_or(String::new(), |record| figure(record.summary.median))
}

/// The ratio of the medians of two records as a cell, empty if there is none.
pub fn ratio(of: Option<&Record>, to: Option<&Record>) -> String {
    let ratio = of.zip(to).map(|(of, to)| of.summary.median / to.summary.median);
    ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"))
}

#[cfg(test)]
pub mod tests {
    use crate::measure::Unit;

    use super::*;

    /// A record with this median.
    pub fn record(label: Label, unit: Unit, median: f64) -> Record {
        Record::of(label, unit, &[median / 2.0, median, median * 10.0])
    }

    #[test]
    fn cells_of_what_is_not_there_are_empty() {
        let label = Label::new(2, Bench::Barrier, Operation::Barrier, 0);
        let (slow, fast) = (record(label, Unit::Nanoseconds, 300.0), record(label, Unit::Nanoseconds, 200.0));
        assert_eq!(
            (ratio(Some(&slow), Some(&fast)).as_str(), median(Some(&slow)).as_str()),
            ("1.500", "300")
        );
        assert_eq!((ratio(Some(&slow), None).as_str(), median(None).as_str()), ("", ""));
    }

    #[test]
    fn the_fabric_is_named_if_there_is_one() {
        let label = Label::new(2, Bench::Barrier, Operation::Barrier, 0);
        let mapped = record(label, Unit::Nanoseconds, 300.0);
        assert_eq!(over(std::slice::from_ref(&mapped)), "");
        let far = mapped.clone().over(Some("ofi (tcp;ofi_rxm on eth0)"));
        assert_eq!(
            over(&[far.clone(), mapped, far]),
            "No PE maps another one's memory: all goes over ofi (tcp;ofi_rxm on eth0)\n"
        );
    }

    #[test]
    fn what_varies_is_listed_once_and_in_order() {
        let label = Label::new(2, Bench::Flood, Operation::Put, 8);
        let records = [64, 1, 64].map(|window| record(label.with_window(window), Unit::Nanoseconds, 1.0));
        assert_eq!(values(&records, |label| label.window), [1, 64]);
        assert_eq!(values(&records, |label| label.threads), [0; 0]);
    }
}
