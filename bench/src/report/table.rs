//! Tables for people. Invariant: a column is as wide as its widest cell; words stand left in it, numbers
//! right.

use std::fmt;

/// A title, names of columns, and rows of as many cells.
pub struct Table {
    title: String,
    /// How many columns, from the left, hold words.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows yet; the first `words` columns hold words. What the others mean and in what unit
    /// belongs into title and names.
    pub fn new<'a>(title: &str, words: usize, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().map(str::to_owned).collect();
        Table { title: title.to_owned(), words, rows: vec![names] }
    }

    /// Adds a row of as many cells as there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
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

/// A measured figure with three digits, or all that stand before the point: `0.263`, `5.44`, `25661`.
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
        let mut table = Table::new("Title, ns", 1, ["size", "median"]);
        assert!(table.is_empty());
        table.row(["64 B".to_owned(), "5".to_owned()]);
        table.row(["16 MiB".to_owned(), "1234567".to_owned()]);
        let expected = "Title, ns\n  size      median\n  64 B           5\n  16 MiB   1234567\n";
        assert_eq!(table.to_string(), expected);
        assert!(!table.is_empty());
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [0.0, 0.26274, 0.99951, 5.4391, 9.999, 51.04, 99.97, 138.05, 25661.3].map(figure);
        assert_eq!(shown, ["0.000", "0.263", "1.00", "5.44", "10.0", "51.0", "100", "138", "25661"]);
    }
}
