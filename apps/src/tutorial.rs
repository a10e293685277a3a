//! The parts that the tutorials `stencil` and `integer-sort` share: the variants of their communication, and
//! the report. Invariant: lines for people and the JSON object are written from the same `Report`.

use std::fmt;
use std::time::Duration;

use pelago::prelude::*;
use serde::Serialize;

use crate::choice::Named;
use crate::report::verdict;

/// How data cross the PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// By puts.
    OneSided,
    /// By messages.
    TwoSided,
}

impl Named for Variant {
    const NOUN: &str = "variant";
    const ALL: &[Variant] = &[Variant::OneSided, Variant::TwoSided];

    fn name(self) -> &'static str {
        match self {
            Variant::OneSided => "one-sided",
            Variant::TwoSided => "two-sided",
        }
    }
}

/// A run, as PE 0 reports it.
#[derive(Serialize)]
pub(crate) struct Report {
    app: &'static str,
    variant: &'static str,
    problem: String,
    pes: usize,
    seconds: f64,
    million_per_second: f64,
    wrong: u64,
    pub(crate) verified: bool,
    #[serde(skip)]
    noun: &'static str,
}

impl Report {
    /// The report of a run that has computed `count` of what `noun` names, of which `wrong` are wrong.
    pub(crate) fn new(
        world: &World,
        (app, variant): (&'static str, Variant),
        problem: String,
        (count, noun): (u64, &'static str),
        (time, wrong): (Duration, u64),
    ) -> Self {
        // A clock may be too coarse for a small problem.
        let seconds = time.max(Duration::from_nanos(1)).as_secs_f64();
        let million_per_second = count as f64 / seconds / 1e6;
        let (variant, pes, verified) = (variant.name(), world.n_pes(), wrong == 0);
        Report { app, variant, problem, pes, seconds, million_per_second, wrong, verified, noun }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { app, variant, problem, pes, seconds, million_per_second, wrong, verified, noun } = self;
        writeln!(f, "{app}, {variant}: {problem}; number of PEs {pes}\n")?;
        writeln!(f, "{:<20}  {seconds:.6} s", "time")?;
        writeln!(f, "{:<20}  {million_per_second:.1} M {noun}/s", "rate")?;
        writeln!(f, "{:<20}  {wrong}", "errors")?;
        writeln!(f, "Verification: {}", verdict(*verified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_tell_rate_and_verdict() {
        let told = spmd(2, |world| {
            let (kind, rate) = (("stencil", Variant::OneSided), (5_000_000, "points"));
            let report = |wrong| {
                Report::new(world, kind, "a grid".to_owned(), rate, (Duration::from_millis(500), wrong))
            };
            (report(0).to_string(), serde_json::to_value(report(3)).unwrap())
        });
        let (page, json) = &told.unwrap()[0];
        assert!(page.starts_with("stencil, one-sided: a grid; number of PEs 2\n"), "{page}");
        assert!(page.contains("rate                  10.0 M points/s\n"), "{page}");
        assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
        assert_eq!((&json["wrong"], &json["verified"]), (&3.into(), &false.into()));
        assert_eq!((&json["million_per_second"], &json["pes"]), (&10.0.into(), &2.into()));
    }
}
