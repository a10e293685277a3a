//! Tables as text. Invariant: a column is as wide as its widest cell; words are left-aligned, numbers
//! right-aligned. Every table names its unit, and shows a ratio with its two values.

use std::fmt;

use pelago_apps::Bytes;

use super::record::Record;
use super::stats::Summary;

/// A title, the names of columns, and rows.
pub struct Table {
    title: String,
    /// The number of columns of words, from the left.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows. The names of its columns are one text, separated by `|`; the first `words`
    /// columns contain words. The title and the names tell the meaning and the unit of the other columns.
    pub fn new(title: impl Into<String>, words: usize, names: &str) -> Self {
        Table { title: title.into(), words, rows: vec![names.split('|').map(str::to_owned).collect()] }
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: impl Cells) {
        let mut row = Vec::with_capacity(self.rows[0].len());
        cells.add_to(&mut row);
        debug_assert_eq!(row.len(), self.rows[0].len(), "{}: {row:?}", self.title);
        self.rows.push(row);
    }

    /// Whether no row was added.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<_> = (0..self.rows[0].len()).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column < self.words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            let line = cells.collect::<Vec<_>>().join("   ");
            writeln!(f, "  {}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The contents of one or several cells of a row.
pub trait Cells {
    /// Adds the cells.
    fn add_to(self, row: &mut Vec<String>);
}

impl Cells for String {
    fn add_to(self, row: &mut Vec<String>) {
        row.push(self);
    }
}

impl Cells for &str {
    fn add_to(self, row: &mut Vec<String>) {
        row.push(self.to_owned());
    }
}

impl Cells for usize {
    fn add_to(self, row: &mut Vec<String>) {
        row.push(self.to_string());
    }
}

/// A measured [`figure`].
impl Cells for f64 {
    fn add_to(self, row: &mut Vec<String>) {
        row.push(figure(self));
    }
}

/// Minimum, median and maximum.
impl Cells for Summary {
    fn add_to(self, row: &mut Vec<String>) {
        [self.min, self.median, self.max].add_to(row);
    }
}

/// The same for an optional summary; `None` makes three empty cells.
impl Cells for Option<Summary> {
    fn add_to(self, row: &mut Vec<String>) {
        self.map_or([const { String::new() }; 3], |of| [of.min, of.median, of.max].map(figure)).add_to(row);
    }
}

/// The median; an empty cell if there is no record.
impl Cells for Option<&Record> {
    fn add_to(self, row: &mut Vec<String>) {
        row.push(self.map_or(String::new(), |record| figure(record.summary.median)));
    }
}

impl<T: Cells, const N: usize> Cells for [T; N] {
    fn add_to(self, row: &mut Vec<String>) {
        self.into_iter().for_each(|cells| cells.add_to(row));
    }
}

impl<T: Cells> Cells for Vec<T> {
    fn add_to(self, row: &mut Vec<String>) {
        self.into_iter().for_each(|cells| cells.add_to(row));
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))+) => {$(
        impl<$($name: Cells),+> Cells for ($($name,)+) {
            fn add_to(self, row: &mut Vec<String>) {
                #[allow(non_snake_case)]
                let ($($name,)+) = self;
                $($name.add_to(row);)+
            }
        }
    )+};
}
tuples! { (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// The tables that have rows, one after the other.
pub fn joined(tables: &[Table]) -> String {
    let shown = tables.iter().filter(|table| !table.is_empty());
    shown.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A measured value with three significant digits, or all digits before the point: `0.263`, `5.44`, `25661`.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        0.0..0.9995 => 3,
        0.9995..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A size as text: `64 B`, or `flag only`.
pub fn size(bytes: usize) -> String {
    if bytes == 0 { "flag only".to_owned() } else { Bytes(bytes as u64).to_string() }
}

/// The ratio of the medians of two records as a cell, empty if there is none.
pub fn ratio(of: Option<&Record>, to: Option<&Record>) -> String {
    let ratio = of.zip(to).map(|(of, to)| of.summary.median / to.summary.median);
    ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record::tests::record;
    use crate::base::record::{Bench, Label, Operation, Unit};

    #[test]
    fn columns_stand_in_line() {
        let mut table = Table::new("Title, ns", 1, "size|median");
        assert!(table.is_empty());
        table.row(("64 B", 5));
        table.row(["16 MiB", "1234567"]);
        let expected = "Title, ns\n  size      median\n  64 B           5\n  16 MiB   1234567\n";
        assert_eq!(table.to_string(), expected);
        assert!(!table.is_empty());
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [0.0, 0.26274, 0.99951, 5.4391, 9.999, 51.04, 99.97, 138.05, 25661.3].map(figure);
        assert_eq!(shown, ["0.000", "0.263", "1.00", "5.44", "10.0", "51.0", "100", "138", "25661"]);
    }

    #[test]
    fn cells_of_what_is_not_there_are_empty() {
        let label = Label::new(2, Bench::Barrier, Operation::Barrier, 0);
        let (slow, fast) = (record(label, Unit::Nanoseconds, 300.0), record(label, Unit::Nanoseconds, 200.0));
        let mut cells = Vec::new();
        (Some(&slow), None::<&Record>, slow.summary).add_to(&mut cells);
        assert_eq!(cells, ["300", "", "150", "300", "3000"]);
        assert_eq!(
            (ratio(Some(&slow), Some(&fast)).as_str(), ratio(Some(&slow), None).as_str()),
            ("1.500", "")
        );
    }
}
