//! Keys of a machine file, each with its bounds.
//!
//! Invariant: an error names the file, the line, the key, the value and the remedy; a key that nothing has
//! read is an error as well.

use crate::time::{NANOSECOND, Time};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use toml_span::Value;
use toml_span::value::{Table, ValueInner};

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
    table: &'a Table<'a>,
    read: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Section<'a> {
    pub(super) fn root(file: &'a str, table: &'a Table<'a>) -> Section<'a> {
        Section { file, name: String::new(), table, read: RefCell::default() }
    }

    /// The table below this one with the name `key`, which must be there.
    pub(super) fn section(&self, key: &'static str) -> Result<Section<'a>, Defect> {
        let Some(value) = self.value(key) else {
            return Err(self.defect(format!("the table [{key}] is missing: add it (docs/model.md lists it)")));
        };
        match value.as_table() {
            Some(table) => Ok(self.below(key.to_owned(), table)),
            None => Err(self.defect(format!("{key} = {} is no table: write [{key}]", shown(value)))),
        }
    }

    /// The tables of an array, each of which must be one.
    pub(super) fn sections(&self, key: &'static str) -> Result<Vec<Section<'a>>, Defect> {
        let wanted = || format!("{} must be an array of tables, one for each level", self.full(key));
        let Some(values) = self.value(key).and_then(Value::as_array) else {
            return Err(self.defect(wanted()));
        };
        let tables = values.iter().enumerate().map(|(number, value)| match value.as_table() {
            Some(table) => Ok(self.below(format!("{}[{number}]", self.full(key)), table)),
            None => Err(self.defect(format!("{} is no table: {}", shown(value), wanted()))),
        });
        tables.collect()
    }

    fn below(&self, name: String, table: &'a Table<'a>) -> Section<'a> {
        Section { file: self.file, name, table, read: RefCell::default() }
    }

    pub(super) fn defect(&self, reason: String) -> Defect {
        Defect { file: self.file.to_owned(), reason }
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn value(&self, key: &'static str) -> Option<&'a Value<'a>> {
        self.read.borrow_mut().insert(key);
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn needed(&self, key: &'static str, wanted: &str) -> Result<&'a Value<'a>, Defect> {
        self.value(key).ok_or_else(|| self.defect(format!("{} is missing: give it {wanted}", self.full(key))))
    }

    fn wrong(&self, key: &str, value: &Value<'_>, wanted: &str) -> Defect {
        let (key, value) = (self.full(key), shown(value));
        self.defect(format!("{key} = {value} is not accepted: give it {wanted}"))
    }

    pub(super) fn text(&self, key: &'static str) -> Result<String, Defect> {
        let wanted = "a text in quotation marks that is not empty";
        let value = self.needed(key, wanted)?;
        let text = value.as_str().filter(|text| !text.trim().is_empty());
        text.map(str::to_owned).ok_or_else(|| self.wrong(key, value, wanted))
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
        let side = |value: &Value<'_>| {
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
        let Some((key, value)) = self.table.iter().find(|(key, _)| !read.contains(&*key.name)) else {
            return Ok(());
        };
        let known = read.iter().copied().collect::<Vec<_>>().join(", ");
        let place = if self.name.is_empty() { "the file".to_owned() } else { format!("[{}]", self.name) };
        let (key, value) = (self.full(&key.name), shown(value));
        Err(self.defect(format!("{key} = {value} is no key of {place}: it has {known}")))
    }
}

/// A value as it may stand in a file.
fn shown(value: &Value<'_>) -> String {
    match value.as_ref() {
        ValueInner::String(text) => format!("{text:?}"),
        ValueInner::Integer(number) => number.to_string(),
        ValueInner::Float(number) => format!("{number:?}").to_lowercase(),
        ValueInner::Boolean(is_true) => is_true.to_string(),
        ValueInner::Array(values) => format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(", ")),
        ValueInner::Table(table) => {
            let entries = table.iter().map(|(key, value)| format!("{key} = {}", shown(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
