//! The claims of the papers as data: what a paper states, under which condition, and how it can be repeated
//! here. Invariant: a claim names a row of the list of claims that this project was built from, has at least
//! one experiment or the reason why it has none, and an experiment returns what was seen with its verdict.

use anyhow::Result;
use pelago_report::chart::Chart;
use serde::Serialize;

use super::lab::Lab;

/// A paper and what it claims.
pub struct Paper {
    /// The memorable name.
    pub id: &'static str,
    /// The number among the sources.
    pub number: &'static str,
    /// The authors, and where it was published.
    pub authors: &'static str,
    /// The title.
    pub title: &'static str,
    /// One line on what its figures show.
    pub about: &'static str,
    /// The claims, in the order of their rows.
    pub claims: &'static [Claim],
}

/// A claim.
pub struct Claim {
    /// Its row in the list of claims.
    pub row: &'static str,
    /// The statement of the paper, in one sentence.
    pub statement: &'static str,
    /// The machine and the conditions of the paper.
    pub condition: &'static str,
    /// The experiments that are made here.
    pub experiments: &'static [Experiment],
    /// The missing part.
    pub rest: Option<Rest>,
}

/// The part of a claim that is not repeated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It needs a model of the paper's machine; what of it.
    NeedsModel(&'static str),
    /// Neither this machine nor a model can repeat it; why.
    NotReproducible(&'static str),
}

/// One way to repeat a figure or a table.
pub struct Experiment {
    /// The name of the figure, for the command line.
    pub figure: &'static str,
    /// The comparison.
    pub title: &'static str,
    /// How.
    pub how: How,
    /// Does it.
    pub run: fn(&Lab) -> Result<Evidence>,
}

/// The source of an experiment's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// By a clock of this machine.
    Measured,
    /// In the virtual time of a simulated network: the same on every machine.
    Simulated,
    /// In the virtual time of a modelled machine, by events: the same on every machine.
    Modelled,
    /// Messages, words, instructions or lines, counted without a clock.
    Counted,
    /// From numbers of the paper by a formula.
    Computed,
}

impl How {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            How::Measured => "measured",
            How::Simulated => "simulated",
            How::Modelled => "modelled",
            How::Counted => "counted",
            How::Computed => "computed",
        }
    }
}

/// The result of an experiment.
pub struct Evidence {
    /// Where: the PEs and what is between them.
    pub place: String,
    /// The curves.
    pub charts: Vec<Chart>,
    /// Values beside those of the paper.
    pub values: Vec<Value>,
    /// Whether the shape of the claim is seen here.
    pub verdict: Verdict,
}

/// A value here, and that of the paper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Value {
    /// The quantity with its unit.
    pub what: String,
    /// The value here.
    pub here: String,
    /// The value of the paper; empty if its text has none.
    pub paper: String,
}

/// A row of the table of values.
pub fn value(what: impl Into<String>, here: impl Into<String>, paper: impl Into<String>) -> Value {
    Value { what: what.into(), here: here.into(), paper: paper.into() }
}

/// Whether the shape of a claim is seen here, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The outcome.
    pub verdict: Outcome,
    /// The reason, with numbers.
    pub because: String,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The shape is that of the paper.
    Holds,
    /// A part of it is.
    InPart,
    /// It is not.
    DoesNotHold,
}

impl Outcome {
    /// The words for people.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::InPart => "holds in part",
            Outcome::DoesNotHold => "does not hold here",
        }
    }

    /// The outcome for a number of conditions: all, some, none of them are met.
    pub fn of(conditions: &[bool]) -> Self {
        match conditions.iter().filter(|is_met| **is_met).count() {
            met if met == conditions.len() => Outcome::Holds,
            0 => Outcome::DoesNotHold,
            _ => Outcome::InPart,
        }
    }
}

/// The verdict for a number of conditions.
pub fn verdict(conditions: &[bool], because: impl Into<String>) -> Verdict {
    Verdict { verdict: Outcome::of(conditions), because: because.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_some_and_no_conditions() {
        let of = |conditions: &[bool]| verdict(conditions, "").verdict;
        assert_eq!(of(&[true, true]), Outcome::Holds);
        assert_eq!(of(&[true, false]), Outcome::InPart);
        assert_eq!(of(&[false]), Outcome::DoesNotHold);
    }
}
