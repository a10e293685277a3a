//! A topic of `pelago bench`: the jobs that measure it, and the tables and curves that show it. Invariant:
//! the records of all jobs are shown together, with the fabric that they say they were taken over, and a page
//! that cannot be written is known before anything runs.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::measure::Record;
use anyhow::Context;
use clap::{Args, ValueEnum};
use pelago_boot::{out, outln};

use super::page::{self, Figure};
use super::table::Table;
use super::{job, text};

/// What a subcommand measures and shows.
pub struct Topic {
    /// What its page is called.
    pub title: &'static str,
    /// The jobs, none with more than so many PEs.
    pub jobs: fn(usize) -> Vec<Job>,
    /// Its tables; empty ones are left out.
    pub tables: fn(&[Record]) -> Vec<Table>,
    /// Its curves; empty ones are left out.
    pub figures: fn(&[Record]) -> Vec<Figure>,
}

/// A job that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// How many PEs.
    pub pes: usize,
    /// What the application `perf` measures.
    pub suite: &'static str,
}

/// How the PEs of a job are placed: whether they keep to cores, and what is between them.
#[derive(Args)]
pub struct Binding {
    /// Keep PEs on cores of their own, or in turn if there are too few; the default where there are enough
    #[arg(long, conflicts_with = "no_bind")]
    bind: bool,
    /// Let the system move the PEs
    #[arg(long)]
    no_bind: bool,
    /// Put this fabric between the PEs, in place of memory that they map (PELAGO_ROUTE=net, PELAGO_FABRIC)
    #[arg(long, value_enum)]
    fabric: Option<Fabric>,
}

/// A fabric between PEs of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fabric {
    /// The node's memory, as a provider like any other
    Shm,
    /// TCP
    Tcp,
    /// Libfabric; `pelago info --fabrics` tells which of its providers
    Ofi,
}

impl Binding {
    /// The system moves the PEs.
    pub const fn none() -> Self {
        Binding { bind: false, no_bind: true, fabric: None }
    }

    /// What jobs find in their environment.
    fn variables(&self) -> &'static [(&'static str, &'static str)] {
        match self.fabric {
            None => &[],
            Some(Fabric::Shm) => &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "shm")],
            Some(Fabric::Tcp) => &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")],
            Some(Fabric::Ofi) => &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi")],
        }
    }

    fn binds(&self, pes: usize, cores: usize) -> bool {
        self.bind || (!self.no_bind && pes <= cores)
    }
}

/// How measurements are shown.
#[derive(Args)]
pub struct Output {
    /// Print the measurements, one JSON object a line, instead of tables
    #[arg(long)]
    json: bool,
    /// Measure for a moment only: to see that it works, not what it takes
    #[arg(long)]
    quick: bool,
    /// Write a page of curves to this file as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Topic {
    /// Runs the jobs, for at most `n` PEs, and shows what they have measured.
    ///
    /// # Errors
    /// If a job fails, or the page cannot be written.
    pub fn measure(&self, n: usize, binding: &Binding, output: &Output) -> anyhow::Result<()> {
        let cores = pelago_boot::cores();
        // Before minutes are spent, not after.
        let page = output
            .html
            .as_ref()
            .map(|path| File::create(path).with_context(|| format!("creating the page {}", path.display())));
        let page = page.transpose()?;
        let mut records = Vec::<Record>::new();
        // The most PEs first: if they are too many, it is said at once.
        for Job { pes, suite } in (self.jobs)(n).into_iter().rev() {
            let quick = output.quick.then_some("--quick");
            let args: Vec<_> = [suite].into_iter().chain(quick).collect();
            let lines = job::perf_with(pes, binding.binds(pes, cores), binding.variables(), &args)?;
            if output.json {
                lines.iter().try_for_each(|line| outln!("{line}"))?;
            }
            records.extend(job::parse::<Record>(&lines)?);
        }
        records.sort_by_key(|record| record.label.pes);
        let tables = text::joined(&(self.tables)(&records));
        let heading = text::heading(cores) + &text::over(&records);
        if !output.json {
            out!("{heading}\n{tables}")?;
        }
        if let Some(mut page) = page {
            let html = page::html(self.title, &heading, &tables, &(self.figures)(&records));
            page.write_all(html.as_bytes()).context("writing the page of curves")?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::plot::tests::assert_balanced;

    /// The tables of the records, and the page, which must be well formed, have so many charts and refer to
    /// nothing elsewhere.
    pub fn shown(topic: &Topic, records: &[Record], charts: usize) -> (String, String) {
        let tables = text::joined(&(topic.tables)(records));
        let page = page::html(topic.title, "heading & <more>\n", &tables, &(topic.figures)(records));
        let names = assert_balanced(&page, &["meta"]);
        assert_eq!(names.iter().filter(|name| **name == "svg").count(), charts, "{page}");
        for outside in ["http", "src=", "href", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(outside), "the page refers to something else by {outside}");
        }
        assert!(page.contains("heading &amp; &lt;more&gt;"));
        let widths = |table: &str| table.lines().skip(1).map(|line| line.chars().count()).max();
        assert!(tables.split("\n\n").all(|table| widths(table) < Some(140)), "{tables}");
        (tables, page)
    }

    /// Fails unless a line of the tables has these cells and no others.
    pub fn assert_row(tables: &str, cells: &[&str]) {
        let has_cells = |line: &str| {
            line.trim().split("   ").map(str::trim).filter(|c| !c.is_empty()).eq(cells.iter().copied())
        };
        assert!(tables.lines().any(has_cells), "no line {cells:?} in\n{tables}");
    }

    /// The topic without records.
    pub fn assert_nothing_shown(topic: &Topic) {
        let (tables, page) = shown(topic, &[], 0);
        assert!(tables.is_empty() && page.contains(topic.title));
    }

    #[test]
    fn pes_with_a_core_each_are_bound_unless_asked_otherwise() {
        let binds = |bind, no_bind, pes| Binding { bind, no_bind, fabric: None }.binds(pes, 2);
        assert!(binds(false, false, 2) && !binds(false, false, 3));
        assert!(binds(true, false, 3) && !binds(false, true, 2));
        assert!(!Binding::none().binds(1, 2));
    }
}
