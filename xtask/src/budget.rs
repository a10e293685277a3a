//! `cargo xtask budget`: instructions of the hot operations, counted one by one, against their budgets.
//!
//! Invariant: a count is exact and the same on every run and machine with the same compiler, however busy
//! the machine is; a budget without a probe fails as an exceeded one does, and so does a probe without a
//! budget. `tracer.rs` has the protocol that a probe program speaks.
//!
//! The probes stand in `pelago/examples/budget_probe.rs`. A new one takes a function there and a row in
//! `BUDGETS` here.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tracer;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::workspace::cargo;

/// The most instructions that a probe may execute, from its function's first to its `ret`.
struct Budget {
    probe: &'static str,
    instructions: u64,
    what: &'static str,
}

const BUDGETS: [Budget; 2] = [
    Budget { probe: "put_checked", instructions: 10, what: "put of one element, PE and index checked" },
    Budget { probe: "put_bound", instructions: 6, what: "put of one element through a handle bound to a PE" },
];

/// Seconds of real time that the probe program may take, preparation included.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
const DEADLINE_SECONDS: u32 = 60;

/// What was counted for one probe.
#[derive(Debug, PartialEq, Eq)]
pub struct Count {
    pub probe: String,
    pub instructions: u64,
}

/// One line of the result.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Row {
    name: String,
    counted: Option<u64>,
    budget: Option<u64>,
    within: bool,
    what: &'static str,
}

/// Builds and counts the probes as the release profile has them, and prints the result: a table, or with
/// `json` one array of objects `{name, counted, budget, within, what}`. Fails if a row is not within.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn run(json: bool) -> Result<()> {
    let program = build_probes("pelago", "budget_probe", "release")?;
    let rows = judge(&BUDGETS, &tracer::count(Command::new(program), DEADLINE_SECONDS)?);
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    let breaches: Vec<_> = rows.iter().filter(|row| !row.within).map(|row| row.name.as_str()).collect();
    ensure!(breaches.is_empty(), "not within the budget of instructions: {}", breaches.join(", "));
    Ok(())
}

/// Says that nothing is counted here, and succeeds.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn run(_json: bool) -> Result<()> {
    eprintln!("budget: instructions are counted on x86-64 Linux only, nothing was checked");
    Ok(())
}

/// Builds an example of a package under `profile`; the path of its program.
fn build_probes(package: &str, example: &str, profile: &str) -> Result<PathBuf> {
    let output = cargo(&["build", "--package", package, "--example", example, "--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(output.status.success(), "cannot build the example `{example}` of `{package}`, see above");
    let messages = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    for message in messages {
        let message = message.context("cannot read the messages of cargo build")?;
        if let (Some(path), true) = (message["executable"].as_str(), message["target"]["name"] == example) {
            return Ok(path.into());
        }
    }
    bail!("cargo build named no program for the example `{example}` of `{package}`")
}

/// A row for each budget, then one for each probe that has none.
fn judge(budgets: &[Budget], counts: &[Count]) -> Vec<Row> {
    let count_of = |probe| counts.iter().find(|count| count.probe == probe).map(|count| count.instructions);
    let with_budget = budgets.iter().map(|budget| Row {
        name: budget.probe.to_string(),
        counted: count_of(budget.probe),
        budget: Some(budget.instructions),
        within: count_of(budget.probe).is_some_and(|counted| counted <= budget.instructions),
        what: budget.what,
    });
    let without = counts.iter().filter(|count| budgets.iter().all(|budget| budget.probe != count.probe));
    let without = without.map(|count| Row {
        name: count.probe.clone(),
        counted: Some(count.instructions),
        budget: None,
        within: false,
        what: "give it a row in xtask/src/budget.rs",
    });
    with_budget.chain(without).collect()
}

fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("probe".len());
    let number = |number: Option<u64>| number.map_or("-".to_string(), |number| number.to_string());
    let mut table = format!("{:<width$}  counted  budget  {:<10}  what\n", "probe", "verdict");
    for row in rows {
        let verdict = match (row.counted, row.budget) {
            (Some(counted), Some(budget)) if counted > budget => format!("OVER by {}", counted - budget),
            (Some(_), Some(_)) => "within".to_string(),
            (None, _) => "NO PROBE".to_string(),
            (_, None) => "NO BUDGET".to_string(),
        };
        let (counted, budget) = (number(row.counted), number(row.budget));
        table += &format!("{:<width$}  {counted:>7}  {budget:>6}  {verdict:<10}  {}\n", row.name, row.what);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [Budget; 2] = [
        Budget { probe: "a", instructions: 10, what: "first" },
        Budget { probe: "bound", instructions: 6, what: "second" },
    ];

    fn rows(counts: &[(&str, u64)]) -> Vec<Row> {
        let counts: Vec<_> = counts
            .iter()
            .map(|(probe, instructions)| Count { probe: probe.to_string(), instructions: *instructions })
            .collect();
        judge(&TWO, &counts)
    }

    fn within(counts: &[(&str, u64)]) -> Vec<bool> {
        rows(counts).iter().map(|row| row.within).collect()
    }

    #[test]
    fn a_count_at_its_budget_passes_and_one_more_fails() {
        assert_eq!(within(&[("a", 10), ("bound", 3)]), [true, true]);
        assert_eq!(within(&[("a", 11), ("bound", 6)]), [false, true]);
    }

    #[test]
    fn a_missing_probe_and_one_without_budget_fail() {
        assert_eq!(within(&[("bound", 6)]), [false, true]);
        assert_eq!(within(&[("a", 1), ("bound", 1), ("new", 1)]), [true, true, false]);
    }

    #[test]
    fn the_table_is_aligned_and_says_why() {
        let expected = "probe  counted  budget  verdict     what\n\
                        a           12      10  OVER by 2   first\n\
                        bound        -       6  NO PROBE    second\n\
                        new          1       -  NO BUDGET   give it a row in xtask/src/budget.rs\n";
        assert_eq!(table(&rows(&[("a", 12), ("new", 1)])), expected);
    }

    #[test]
    fn budgets_have_distinct_names() {
        for (index, budget) in BUDGETS.iter().enumerate() {
            assert!(BUDGETS[..index].iter().all(|other| other.probe != budget.probe), "{}", budget.probe);
        }
    }
}
