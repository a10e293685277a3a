//! Curves of measurements: their axes, and lines through the medians of records.

use pelago_report::chart::{Axis, Line, Point, Scale, Series};
use pelago_report::{Bytes, figure};

use super::record::Record;

/// Vertical axes.
pub const BANDWIDTH: Axis = Axis { label: "GB/s (10^9 bytes a second)", scale: Scale::Decades };
pub const TIME: Axis = Axis { label: "ns", scale: Scale::Decades };
pub const TIME_FROM_ZERO: Axis = Axis { label: "ns", scale: Scale::FromZero };

/// The quantity of the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    Bytes,
    Pes,
    Contenders,
    Threads,
    Windows,
}

impl Across {
    /// The horizontal axis.
    pub fn axis(self, label: &'static str) -> Axis {
        let scale = match self {
            Across::Bytes => Scale::Bytes,
            Across::Pes | Across::Threads => Scale::Count,
            Across::Contenders | Across::Windows => Scale::Doublings,
        };
        Axis { label, scale }
    }

    fn value(self, record: &Record) -> Option<usize> {
        match self {
            Across::Bytes => Some(record.label.bytes),
            Across::Pes => Some(record.label.pes),
            Across::Contenders => record.label.contenders,
            Across::Threads => record.label.threads,
            Across::Windows => record.label.window,
        }
    }

    fn words(self, value: usize) -> String {
        match self {
            Across::Bytes => size(value),
            Across::Pes | Across::Contenders => format!("{value} PEs"),
            Across::Threads => format!("{value} threads"),
            Across::Windows => format!("{value} outstanding"),
        }
    }

    /// A line through the medians of the records, if there are any.
    pub fn series<'a>(
        self,
        name: &str,
        colour: &'static str,
        line: Line,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Option<Series> {
        let point = |record: &Record| {
            let summary = record.summary;
            let [min, median, max] = [summary.min, summary.median, summary.max].map(figure);
            let value = self.value(record)?;
            let note = format!("{name}, {}: {median} (from {min} to {max})", self.words(value));
            Some(Point { x: value as f64, y: summary.median, note })
        };
        let points: Vec<_> = records.into_iter().filter_map(point).collect();
        (!points.is_empty()).then(|| Series { name: name.to_owned(), colour, line, points })
    }
}

/// A size as text: `64 B`, or `flag only`.
pub fn size(bytes: usize) -> String {
    if bytes == 0 { "flag only".to_owned() } else { Bytes(bytes as u64).to_string() }
}

#[cfg(test)]
mod tests {
    use pelago_report::page::BLUE;

    use super::*;
    use crate::base::record::tests::record;
    use crate::base::record::{Bench, Label, Operation, Unit};

    #[test]
    fn points_say_what_they_are() {
        let label = Label::new(2, Bench::Threads, Operation::FetchAdd, 8);
        let records = [1, 4].map(|threads| record(label.with_threads(threads), Unit::MillionsPerSecond, 7.0));
        let series = Across::Threads.series("a", BLUE, Line::Solid, &records).unwrap();
        let points: Vec<_> = series.points.iter().map(|point| (point.x, point.note.as_str())).collect();
        let [first, second] = ["1", "4"].map(|n| format!("a, {n} threads: 7.00 (from 3.50 to 70.0)"));
        assert_eq!(points, [(1.0, first.as_str()), (4.0, second.as_str())]);
        assert!(Across::Windows.series("a", BLUE, Line::Solid, &records).is_none());
    }
}
