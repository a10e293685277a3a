//! Curves of experiments, and words for their ratios. Invariant: a chart has the numbers that the verdict was
//! made from; a dashed curve has the colour of the solid one before it.

use pelago_report::chart::{Axis, Chart, Line, Point, Scale, Series};
use pelago_report::figure;
use pelago_report::page::{BLUE, GREEN, ORANGE, PURPLE};

use crate::base::across::size;
use crate::base::record::Record;

const COLOURS: [&str; 6] = [BLUE, ORANGE, GREEN, PURPLE, "#e69f00", "#767676"];

/// The quantity of a horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Bytes of a message or block.
    Bytes,
    /// PEs, in powers of two.
    Pes,
    /// Megahertz.
    Megahertz,
}

impl Across {
    fn axis(self) -> Axis {
        match self {
            Across::Bytes => Axis { label: "size", scale: Scale::Bytes },
            Across::Pes => Axis { label: "PEs", scale: Scale::Doublings },
            Across::Megahertz => Axis { label: "clock of the core, MHz", scale: Scale::Count },
        }
    }

    /// A place on the axis, for people.
    pub fn words(self, x: f64) -> String {
        match self {
            Across::Bytes => size(x as usize),
            Across::Pes => format!("{x} PEs"),
            Across::Megahertz => format!("{x} MHz"),
        }
    }
}

/// A curve.
pub struct Curve {
    name: String,
    line: Line,
    points: Vec<(f64, f64)>,
}

/// A solid curve.
pub fn solid(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Curve {
    Curve { name: name.into(), line: Line::Solid, points: points.into_iter().collect() }
}

/// A dashed curve: the counterpart of the one before it.
pub fn dashed(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Curve {
    Curve { name: name.into(), line: Line::Dashed, points: points.into_iter().collect() }
}

/// A chart of the curves that have points.
pub fn chart(title: impl Into<String>, across: Across, y: Axis, curves: Vec<Curve>) -> Chart {
    let mut solids = 0;
    let series = curves.into_iter().filter(|curve| !curve.points.is_empty()).map(|curve| {
        solids += usize::from(curve.line == Line::Solid || solids == 0);
        let colour = COLOURS[(solids - 1) % COLOURS.len()];
        let note = |x, y| format!("{}, {}: {}", curve.name, across.words(x), figure(y));
        let points = curve.points.iter().map(|&(x, y)| Point { x, y, note: note(x, y) }).collect();
        Series { name: curve.name, colour, line: curve.line, points }
    });
    Chart { title: title.into(), x: across.axis(), y, series: series.collect() }
}

/// The medians of records by size.
pub fn by_bytes<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<(f64, f64)> {
    let point = |record: &Record| (record.label.bytes as f64, record.summary.median);
    records.into_iter().map(point).collect()
}

/// The smallest and the largest of ratios, for people: `1.20`, or `1.20 to 1.90`.
pub fn span(ratios: &[f64]) -> String {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [low, high] = [least, most].map(|ratio| format!("{ratio:.2}"));
    if low == high { low } else { format!("{low} to {high}") }
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Whether a function grows as another one: the ratio of the two at the last places differs from that in the
/// middle by at most a quarter.
pub fn grows_as(points: &[(f64, f64)], order: impl Fn(f64) -> f64) -> bool {
    let ratio = |&(x, y): &(f64, f64)| y / order(x);
    match (points.get(points.len() / 2), points.last()) {
        (Some(middle), Some(last)) => (ratio(last) / ratio(middle) - 1.0).abs() <= 0.25,
        _ => false,
    }
}

/// A percentage, for people.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::across::TIME;

    #[test]
    fn dashed_curves_have_the_colour_of_their_solid_ones() {
        let points = [(1.0, 2.0)];
        let curves = vec![
            solid("a", points),
            dashed("b", points),
            solid("c", points),
            dashed("d", points),
            solid("e", []),
        ];
        let chart = chart("t", Across::Bytes, TIME, curves);
        let colours: Vec<_> = chart.series.iter().map(|series| series.colour).collect();
        assert_eq!(colours, [BLUE, BLUE, ORANGE, ORANGE]);
        assert_eq!(chart.series[3].points[0].note, "d, 1 B: 2.00");
    }

    #[test]
    fn orders_are_told_apart() {
        let points = |of: fn(f64) -> f64| (1..10).map(|power| f64::from(1 << power)).map(move |n| (n, of(n)));
        let logarithm: Vec<_> = points(|n| 3.0 * n.log2() + 1.0).collect();
        let line: Vec<_> = points(|n| 2.0 * n).collect();
        assert!(grows_as(&logarithm, f64::log2) && !grows_as(&line, f64::log2) && grows_as(&line, |n| n));
        assert!(!grows_as(&[], f64::log2));
    }

    #[test]
    fn spans_and_means() {
        assert_eq!((span(&[1.0, 1.0]), span(&[2.0, 0.5])), ("1.00".to_owned(), "0.50 to 2.00".to_owned()));
        assert_eq!((mean(&[1.0, 3.0]), percent(0.245).as_str()), (2.0, "24 %"));
    }
}
