//! The file of counts that `pelago paper` prints: `bench/src/paper/counts.json`. Invariant: where the
//! compiler is that of the file, the file has exactly the counts of all probes of one process that have a
//! budget.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::Row;
use crate::workspace::root;

/// Where it is.
const PATH: &str = "bench/src/paper/counts.json";

/// The ends of the names of probes in jobs of several processes.
const JOBS: [&str; 2] = [" (two nodes)", " (over TCP)"];

/// Its contents.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
struct Record {
    compiler: String,
    counts: BTreeMap<String, u64>,
}

/// Writes the counts to the file, or compares it with them: an error names the probes that differ. Counts of
/// another compiler are not compared; then a line says so.
pub fn keep(rows: &[Row], is_to_write: bool) -> Result<()> {
    let new = Record { compiler: compiler()?, counts: counts(rows) };
    let path = root().join(PATH);
    if is_to_write {
        let text = serde_json::to_string_pretty(&new)? + "\n";
        return fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()));
    }
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let known: Record = serde_json::from_str(&text).with_context(|| format!("cannot read {PATH}"))?;
    if known.compiler != new.compiler {
        eprintln!("budget: {PATH} is of {}, this is {}: not compared", known.compiler, new.compiler);
        return Ok(());
    }
    let different = different(&known.counts, &new.counts);
    ensure!(
        different.is_empty(),
        "{PATH}, which `pelago paper` prints, has other counts of {}: cargo xtask budget --record",
        different.join(", ")
    );
    Ok(())
}

/// The counts of the probes that have a budget. Those of jobs are left out: a message of another process may
/// arrive during a count.
fn counts(rows: &[Row]) -> BTreeMap<String, u64> {
    let is_of_job = |row: &Row| JOBS.iter().any(|job| row.name.ends_with(job));
    let with_budget = rows.iter().filter(|row| row.budget.is_some() && !is_of_job(row));
    with_budget.filter_map(|row| Some((row.name.clone(), row.counted?))).collect()
}

/// The names that have another count, or are in one of the two only.
fn different(known: &BTreeMap<String, u64>, new: &BTreeMap<String, u64>) -> Vec<String> {
    let mut names: Vec<_> = known.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| known.get(*name) != new.get(*name));
    names.into_iter().cloned().collect()
}

/// The version of the compiler that cargo uses.
fn compiler() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().context("cannot run rustc --version")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn row(name: &str, counted: Option<u64>, budget: Option<u64>) -> Row {
        Row { name: name.to_owned(), counted, budget, verdict: Verdict::Within, what: "" }
    }

    #[test]
    fn counts_with_a_budget_are_kept_and_differences_named() {
        let rows = [
            row("a", Some(1), Some(2)),
            row("b", Some(3), None),
            row("c", None, Some(4)),
            row("a (two nodes)", Some(1), Some(2)),
        ];
        let known = counts(&rows);
        assert_eq!(known, BTreeMap::from([("a".to_owned(), 1)]));
        let new = BTreeMap::from([("a".to_owned(), 2), ("d".to_owned(), 1)]);
        assert_eq!(different(&known, &new), ["a", "d"]);
        assert_eq!(different(&known, &known), [""; 0]);
    }

    #[test]
    fn the_file_is_read() {
        let text = fs::read_to_string(root().join(PATH)).unwrap();
        let record: Record = serde_json::from_str(&text).unwrap();
        assert!(record.compiler.starts_with("rustc ") && record.counts.len() > 20, "{record:?}");
    }
}
