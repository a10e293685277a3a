//! How a comparison ends: the table on the terminal, the files that were asked for, and the verdict.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::page;
use super::rows::{Gate, Row};

/// The files that a comparison writes besides its table.
#[derive(clap::Args)]
pub struct Files {
    /// Write rows and gates to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page of curves to this file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// What a comparison has found.
pub struct Report<'a> {
    /// The heading of the page.
    pub title: &'a str,
    /// All that was measured.
    pub rows: &'a [Row],
    /// What is judged.
    pub gates: &'a [Gate],
    /// The table, as the terminal shows it.
    pub text: &'a str,
}

impl Report<'_> {
    /// Prints the table and writes the files; fails if a row is not within its bound.
    pub fn finish(&self, files: &Files) -> Result<()> {
        let Report { title, rows, gates, text } = *self;
        print!("{text}");
        if let Some(path) = &files.json {
            let json = serde_json::to_string(&serde_json::json!({ "rows": rows, "gates": gates }))?;
            fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(path) = &files.plot {
            fs::write(path, page::html(title, rows, text))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let missed = gates.iter().filter(|gate| !gate.is_kept()).count();
        ensure!(missed == 0, "rows that are not within their bounds: {missed} of {}", gates.len());
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use clap::Parser;

    use super::*;

    /// A subcommand alone.
    #[derive(Parser)]
    struct Cli<A: clap::Args> {
        #[command(flatten)]
        args: A,
    }

    /// The arguments as a command line has them; the first word is the command.
    pub fn args<A: clap::Args>(words: &str) -> A {
        Cli::<A>::try_parse_from(words.split_whitespace()).unwrap_or_else(|error| panic!("{error}")).args
    }

    #[test]
    fn files_are_written_and_missed_bounds_are_told() {
        let folder = std::env::temp_dir().join(format!("report-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let of = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (json, plot) = (of("json"), of("html"));
        let files: Files = args(&format!("compare --json {json} --plot {plot}"));
        let rows = crate::compare::rows::tests::examples();
        let gate = |ratio| Gate { name: "barrier".to_owned(), ratio, bound: 1.0 };
        let report = |gates: &[Gate]| Report { title: "calls", rows: &rows, gates, text: "" }.finish(&files);
        report(&[gate(0.9)]).unwrap();
        let read: serde_json::Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(read["gates"][0]["name"], "barrier");
        assert_eq!(read["rows"].as_array().map(Vec::len), Some(rows.len()));
        assert!(fs::read_to_string(&plot).unwrap().contains("<svg"));
        let said = report(&[gate(0.9), gate(1.1)]).unwrap_err().to_string();
        assert!(said.ends_with("1 of 2"), "{said}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
