//! A table of text, and times in it.

use std::time::Duration;

/// Lines with columns that are as wide as needed; columns of numbers are flush right.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |column: usize| rows.iter().map(move |row| row[column].as_str());
    let width = |column: usize| {
        cells(column).chain([heads[column]]).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let columns: Vec<_> =
        (0..heads.len()).map(|column| (width(column), cells(column).all(is_number))).collect();
    let line = |fields: &[&str]| {
        let padded = fields.iter().zip(&columns).map(|(field, (width, is_right))| match is_right {
            true => format!("{field:>width$}"),
            false => format!("{field:<width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let body = rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    line(heads) + &body.collect::<String>()
}

/// A time for a reader: `1.5 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_needed() {
        let rows = [["1", "a b", "x"], ["22", "c", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&["N", "NAME", "REST"], &rows), " N  NAME  REST\n 1  a b   x\n22  c\n");
    }

    #[test]
    fn times_are_short() {
        let of = |seconds| age(Duration::from_secs_f64(seconds));
        assert_eq!([of(1.26), of(12.9), of(61.0)], ["1.3 s", "12 s", "1 min 1 s"]);
        assert_eq!([of(7800.0), of(270_000.0)], ["2 h 10 min", "3 d 3 h"]);
    }
}
