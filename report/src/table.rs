//! Tables as text. Invariant: a column is as wide as its widest cell; words are left-aligned, numbers
//! right-aligned. The title or the names of the columns tell the unit of the numbers.

use std::fmt;

/// A title, the names of columns, and rows.
pub struct Table {
    title: String,
    /// The number of spaces before a row, and between two columns.
    spaces: (usize, usize),
    /// Whether each column is right-aligned.
    is_right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows. The names of its columns are one text, separated by `|`. The first `words`
    /// columns contain words, the others numbers, unless the name begins with `<` (words) or `>` (numbers),
    /// which is not shown. A table without a title begins with the names.
    pub fn new(title: impl Into<String>, words: usize, names: &str) -> Self {
        let is_right = |(column, name): (usize, &str)| {
            name.starts_with('>') || column >= words && !name.starts_with('<')
        };
        let is_right = names.split('|').enumerate().map(is_right).collect();
        let names = names.split('|').map(|name| name.trim_start_matches(['<', '>']).to_owned()).collect();
        Table { title: title.into(), spaces: (2, 3), is_right, rows: vec![names] }
    }

    /// The same table with this many spaces before a row, and two between columns.
    pub fn dense(self, margin: usize) -> Self {
        Table { spaces: (margin, 2), ..self }
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
        if !self.title.is_empty() {
            writeln!(f, "{}", self.title)?;
        }
        let (margin, gap) = (" ".repeat(self.spaces.0), " ".repeat(self.spaces.1));
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let columns: Vec<_> =
            self.is_right.iter().enumerate().map(|(column, is_right)| (width(column), is_right)).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&columns).map(|(cell, &(width, is_right))| match is_right {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
            writeln!(f, "{}", format!("{margin}{}", cells.collect::<Vec<_>>().join(&gap)).trim_end())?;
        }
        Ok(())
    }
}

/// The contents of one or several cells of a row.
pub trait Cells {
    /// The number of cells, which stay empty where the value is missing.
    const COUNT: usize = 1;

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

/// A missing value leaves its cells empty.
impl<T: Cells> Cells for Option<T> {
    const COUNT: usize = T::COUNT;

    fn add_to(self, row: &mut Vec<String>) {
        match self {
            Some(cells) => cells.add_to(row),
            None => row.resize(row.len() + T::COUNT, String::new()),
        }
    }
}

impl<T: Cells, const N: usize> Cells for [T; N] {
    const COUNT: usize = N * T::COUNT;

    fn add_to(self, row: &mut Vec<String>) {
        self.into_iter().for_each(|cells| cells.add_to(row));
    }
}

/// Any number of cells; a missing `Vec` has none.
impl<T: Cells> Cells for Vec<T> {
    const COUNT: usize = 0;

    fn add_to(self, row: &mut Vec<String>) {
        self.into_iter().for_each(|cells| cells.add_to(row));
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))+) => {$(
        impl<$($name: Cells),+> Cells for ($($name,)+) {
            const COUNT: usize = 0 $(+ $name::COUNT)+;

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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_column_is_aligned_as_its_name_says() {
        let mut table = Table::new("", 1, "NAME|N|<NOTE");
        table.row(("a b", 1, "x"));
        table.row(("c", 22, ""));
        assert_eq!(table.dense(0).to_string(), "NAME   N  NOTE\na b    1  x\nc     22\n");
        let mut table = Table::new("Title", 2, ">n|name");
        table.row((5, "five"));
        table.row((10, "ten"));
        assert_eq!(table.dense(1).to_string(), "Title\n  n  name\n  5  five\n 10  ten\n");
    }

    #[test]
    fn cells_of_what_is_not_there_are_empty() {
        let mut cells = Vec::new();
        (Some(300.0), None::<f64>, Some([1.0, 2.5]), None::<(&str, [usize; 2])>).add_to(&mut cells);
        assert_eq!(cells, ["300", "", "1.00", "2.50", "", "", ""]);
    }
}
