//! Keys of a machine file, each with its bounds.
//!
//! Invariant: an error names the file, the line, the key, the value and the remedy; a key that nothing has
//! read is an error as well.

use crate::time::{NANOSECOND, Time};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// An error in a machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The file, or the name of the built-in machine.
    pub file: String,
    /// The error: key, value and remedy.
    pub reason: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

impl std::error::Error for Defect {}

/// The times that a key may have, in nanoseconds.
const NANOSECONDS: RangeInclusive<f64> = 0.0..=1e9;
/// The bandwidths that a key may have, in bytes per second.
const BANDWIDTHS: RangeInclusive<f64> = 1e3..=1e16;

/// A table of the file.
pub(super) struct Section<'a> {
    file: &'a str,
    name: String,
    table: &'a Table,
    read: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Section<'a> {
    pub(super) fn root(file: &'a str, table: &'a Table) -> Section<'a> {
        Section { file, name: String::new(), table, read: RefCell::default() }
    }

    /// The table below this one with the name `key`, which must be there.
    pub(super) fn section(&self, key: &'static str) -> Result<Section<'a>, Defect> {
        match self.value(key) {
            Some(Value::Table(table)) => Ok(self.below(key.to_owned(), table)),
            Some(other) => Err(self.defect(format!("{key} = {other} is no table: write [{key}]"))),
            None => {
                Err(self.defect(format!("the table [{key}] is missing: add it (docs/model.md lists it)")))
            }
        }
    }

    /// The tables of an array, each of which must be one.
    pub(super) fn sections(&self, key: &'static str) -> Result<Vec<Section<'a>>, Defect> {
        let wanted = || format!("{} must be an array of tables, one for each level", self.full(key));
        let Some(Value::Array(values)) = self.value(key) else {
            return Err(self.defect(wanted()));
        };
        let tables = values.iter().enumerate().map(|(number, value)| match value {
            Value::Table(table) => Ok(self.below(format!("{}[{number}]", self.full(key)), table)),
            other => Err(self.defect(format!("{other} is no table: {}", wanted()))),
        });
        tables.collect()
    }

    fn below(&self, name: String, table: &'a Table) -> Section<'a> {
        Section { file: self.file, name, table, read: RefCell::default() }
    }

    pub(super) fn defect(&self, reason: String) -> Defect {
        Defect { file: self.file.to_owned(), reason }
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn value(&self, key: &'static str) -> Option<&'a Value> {
        self.read.borrow_mut().insert(key);
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn needed(&self, key: &'static str, wanted: &str) -> Result<&'a Value, Defect> {
        self.value(key).ok_or_else(|| self.defect(format!("{} is missing: give it {wanted}", self.full(key))))
    }

    fn wrong(&self, key: &str, value: &Value, wanted: &str) -> Defect {
        self.defect(format!("{} = {value} is not accepted: give it {wanted}", self.full(key)))
    }

    pub(super) fn text(&self, key: &'static str) -> Result<String, Defect> {
        let wanted = "a text in quotation marks that is not empty";
        match self.needed(key, wanted)? {
            Value::String(text) if !text.trim().is_empty() => Ok(text.clone()),
            other => Err(self.wrong(key, other, wanted)),
        }
    }

    /// One of several values, each with its name.
    pub(super) fn choice<T: Copy>(&self, key: &'static str, values: &[(&str, T)]) -> Result<T, Defect> {
        let names: Vec<_> = values.iter().map(|(name, _)| format!("{name:?}")).collect();
        let wanted = names.join(" or ");
        let value = self.needed(key, &wanted)?;
        let found = values.iter().find(|(name, _)| value.as_str() == Some(name));
        found.map(|(_, value)| *value).ok_or_else(|| self.wrong(key, value, &wanted))
    }

    /// A whole number in a range.
    pub(super) fn count(&self, key: &'static str, range: RangeInclusive<u64>) -> Result<u64, Defect> {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        let value = self.needed(key, &wanted)?;
        let count = value.as_integer().and_then(|count| u64::try_from(count).ok());
        count.filter(|count| range.contains(count)).ok_or_else(|| self.wrong(key, value, &wanted))
    }

    /// The sides of a torus.
    pub(super) fn shape(&self, key: &'static str) -> Result<Vec<usize>, Defect> {
        let wanted = "one to six whole numbers from 1 to 4096, with a product of at most 2^24";
        let value = self.needed(key, wanted)?;
        let side = |value: &Value| {
            let side = usize::try_from(value.as_integer()?).ok()?;
            (1..=4096).contains(&side).then_some(side)
        };
        let sides: Option<Vec<_>> = value.as_array().and_then(|sides| sides.iter().map(side).collect());
        let fits = |sides: &Vec<usize>| {
            let product = sides.iter().try_fold(1usize, |product, side| product.checked_mul(*side));
            (1..=6).contains(&sides.len()) && product.is_some_and(|product| product <= 1 << 24)
        };
        sides.filter(fits).ok_or_else(|| self.wrong(key, value, wanted))
    }

    fn number(&self, key: &'static str, range: RangeInclusive<f64>, wanted: &str) -> Result<f64, Defect> {
        let value = self.needed(key, wanted)?;
        let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
        number.filter(|number| range.contains(number)).ok_or_else(|| self.wrong(key, value, wanted))
    }

    /// A time, of which the key is in nanoseconds.
    pub(super) fn nanoseconds(&self, key: &'static str) -> Result<Time, Defect> {
        let number = self.number(key, NANOSECONDS, "nanoseconds from 0 to 1e9")?;
        Ok((number * NANOSECOND as f64).round() as Time)
    }

    /// A bandwidth in bytes per second.
    pub(super) fn bandwidth(&self, key: &'static str) -> Result<f64, Defect> {
        self.number(key, BANDWIDTHS, "bytes per second from 1e3 to 1e16")
    }

    /// Refuses the keys that were not read.
    pub(super) fn end(&self) -> Result<(), Defect> {
        let read = self.read.borrow();
        let Some(key) = self.table.keys().find(|key| !read.contains(key.as_str())) else {
            return Ok(());
        };
        let known = read.iter().copied().collect::<Vec<_>>().join(", ");
        let place = if self.name.is_empty() { "the file".to_owned() } else { format!("[{}]", self.name) };
        let value = &self.table[key];
        Err(self.defect(format!("{} = {value} is no key of {place}: it has {known}", self.full(key))))
    }
}
