//! A topic of `pelago bench`: the jobs that measure it, and the tables and curves that show it. Invariant:
//! the records of all jobs are shown together, with the fabric that they name, and a page that cannot be
//! written is reported before a job starts.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use pelago_boot::{out, outln};
use pelago_report::page::Figure;
use pelago_report::{Table, joined, page};

use super::job;
use super::record::Record;

/// The measurements and the output of a subcommand.
pub struct Topic {
    /// The title of its page.
    pub title: &'static str,
    /// The jobs, for a maximum number of PEs.
    pub jobs: fn(usize) -> Vec<Job>,
    /// Its tables; empty ones are left out.
    pub tables: fn(&[Record]) -> Vec<Table>,
    /// Its curves; empty ones are left out.
    pub figures: fn(&[Record]) -> Vec<Figure>,
}

/// A job that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of PEs.
    pub pes: usize,
    /// The subcommand of the application `perf`.
    pub suite: &'static str,
}

/// The options of a topic that is measured on several numbers of PEs.
#[derive(Args)]
pub struct UpTo {
    /// Maximum number of PEs; default: the number of cores that this command may use, at least 2
    #[arg(short, value_name = "N", value_parser = two_or_more, allow_negative_numbers = true)]
    n: Option<usize>,
    #[command(flatten)]
    binding: Binding,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    output: Output,
}

/// The options of a topic between two PEs.
#[derive(Args)]
pub struct Between {
    #[command(flatten)]
    size: Size,
    #[command(flatten)]
    binding: Binding,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    output: Output,
}

/// The options of a topic that places its threads itself.
#[derive(Args)]
pub struct Unbound {
    #[command(flatten)]
    size: Size,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Size {
    /// Number of PEs of the job; all but the first two wait
    #[arg(short, value_name = "N", default_value_t = 2, value_parser = two_or_more,
        allow_negative_numbers = true)]
    n: usize,
}

#[derive(Args)]
struct Length {
    /// Measure for a short time only, as a test: the results are not reliable
    #[arg(long)]
    quick: bool,
}

impl UpTo {
    /// Measures the topic and prints the results.
    ///
    /// # Errors
    /// If a job fails, or the page cannot be written.
    pub fn measure(&self, topic: &Topic) -> anyhow::Result<()> {
        let n = self.n.unwrap_or(pelago_boot::cores().max(2));
        topic.measure(n, &self.binding, self.length.quick, &self.output)
    }
}

impl Between {
    /// As [`UpTo::measure`].
    pub fn measure(&self, topic: &Topic) -> anyhow::Result<()> {
        topic.measure(self.size.n, &self.binding, self.length.quick, &self.output)
    }
}

impl Unbound {
    /// As [`UpTo::measure`].
    pub fn measure(&self, topic: &Topic) -> anyhow::Result<()> {
        let binding = Binding { bind: false, no_bind: true, fabric: None };
        topic.measure(self.size.n, &binding, self.length.quick, &self.output)
    }
}

/// Reads a number of PEs of which two communicate.
pub fn two_or_more(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| *number >= 2);
    number.ok_or_else(|| "this is not a number of PEs of 2 or more".to_owned())
}

/// The placement of the PEs of a job: whether they are bound to cores, and the fabric between them.
#[derive(Args)]
struct Binding {
    /// Bind PEs to separate cores, or in turn if there are too few; the default if there are enough cores
    #[arg(long, conflicts_with = "no_bind")]
    bind: bool,
    /// Let the system move the PEs
    #[arg(long)]
    no_bind: bool,
    /// Use this fabric between the PEs, in place of mapped memory (PELAGO_ROUTE=net, PELAGO_FABRIC)
    #[arg(long, value_enum)]
    fabric: Option<Fabric>,
}

/// A fabric between PEs of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fabric {
    /// Shared memory, as an ordinary provider
    Shm,
    /// TCP
    Tcp,
    /// Libfabric; `pelago info --fabrics` shows which of its providers
    Ofi,
}

impl Binding {
    /// The environment variables of the jobs.
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

/// The output options.
#[derive(Args)]
pub struct Output {
    /// Print the measurements, one JSON object a line, instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write a page of curves to this file as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The results in printable form.
pub struct Shown {
    pub title: &'static str,
    pub heading: String,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
    /// Drawings below the curves, as markup.
    pub further: String,
}

impl Output {
    /// Prints the tables, unless JSON lines were requested, which `measure` prints itself; and writes the
    /// page.
    ///
    /// # Errors
    /// Errors of `measure`, and if the page cannot be written.
    pub fn show(&self, measure: impl FnOnce() -> anyhow::Result<Shown>) -> anyhow::Result<()> {
        // The file is created before the measurements, which take minutes.
        let create = |path: &PathBuf| {
            File::create(path).with_context(|| format!("creating the page {}", path.display()))
        };
        let page = self.html.as_ref().map(create).transpose()?;
        let Shown { title, heading, tables, figures, further } = measure()?;
        let tables = joined(&tables);
        if !self.json {
            out!("{heading}\n{tables}")?;
        }
        if let Some(mut page) = page {
            let html = page::html(title, &heading, &tables, &figures, &further);
            page.write_all(html.as_bytes()).context("writing the page of curves")?;
        }
        Ok(())
    }
}

impl Topic {
    /// Runs the jobs, for at most `n` PEs, and prints their measurements.
    fn measure(&self, n: usize, binding: &Binding, quick: bool, output: &Output) -> anyhow::Result<()> {
        let cores = pelago_boot::cores();
        output.show(|| {
            let mut records = Vec::<Record>::new();
            // The largest job runs first, so that too many PEs are reported at once.
            for Job { pes, suite } in (self.jobs)(n).into_iter().rev() {
                let args: Vec<_> = [suite].into_iter().chain(quick.then_some("--quick")).collect();
                let lines = job::perf(pes, binding.binds(pes, cores), binding.variables(), &args)?;
                if output.json {
                    lines.iter().try_for_each(|line| outln!("{line}"))?;
                }
                records.extend(job::parse::<Record>(&lines)?);
            }
            records.sort_by_key(|record| record.label.pes);
            Ok(Shown {
                title: self.title,
                heading: heading(cores) + &over(&records),
                tables: (self.tables)(&records),
                figures: (self.figures)(&records),
                further: String::new(),
            })
        })
    }
}

/// The description of the measurement, in two lines.
fn heading(cores: usize) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    format!(
        "pelago {} on {model}, {cores} cores for this command\n\
         Minimum, median and maximum over many short blocks of operations; GB = 10^9 bytes\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// A line with the fabrics that the records name; empty if all PEs mapped each other.
fn over(records: &[Record]) -> String {
    let mut fabrics: Vec<_> = records.iter().filter_map(|record| record.fabric.as_deref()).collect();
    fabrics.sort_unstable();
    fabrics.dedup();
    match fabrics[..] {
        [] => String::new(),
        _ => format!("No PE maps another one's memory: all goes over {}\n", fabrics.join(" and ")),
    }
}

/// Powers of two from `from` on below `most`, and `most`.
pub fn doublings(from: usize, most: usize) -> impl Iterator<Item = usize> {
    let powers = std::iter::successors(Some(from), |count| count.checked_mul(2));
    powers.take_while(move |count| *count < most).chain([most])
}

#[cfg(test)]
pub mod tests {
    use pelago_report::check::{assert_balanced, assert_stands_alone};

    use super::*;
    use crate::base::record::tests::record;
    use crate::base::record::{Bench, Label, Operation, Unit};

    /// The tables of the records, and the page; checks that the page is well formed, has `charts` charts and
    /// is self-contained.
    pub fn shown(topic: &Topic, records: &[Record], charts: usize) -> (String, String) {
        let tables = joined(&(topic.tables)(records));
        let page = page::html(topic.title, "heading & <more>\n", &tables, &(topic.figures)(records), "");
        let names = assert_balanced(&page, &["meta"]);
        assert_eq!(names.iter().filter(|name| **name == "svg").count(), charts, "{page}");
        assert_stands_alone(&page);
        assert!(page.contains("heading &amp; &lt;more&gt;"));
        let widths = |table: &str| table.lines().skip(1).map(|line| line.chars().count()).max();
        assert!(tables.split("\n\n").all(|table| widths(table) < Some(140)), "{tables}");
        (tables, page)
    }

    /// Checks that a line of the tables has exactly these cells.
    pub fn assert_row(tables: &str, cells: &[&str]) {
        let has_cells = |line: &str| {
            line.trim().split("   ").map(str::trim).filter(|c| !c.is_empty()).eq(cells.iter().copied())
        };
        assert!(tables.lines().any(has_cells), "no line {cells:?} in\n{tables}");
    }

    /// Checks that the topic prints nothing without records.
    pub fn assert_nothing_shown(topic: &Topic) {
        let (tables, page) = shown(topic, &[], 0);
        assert!(tables.is_empty() && page.contains(topic.title));
    }

    #[test]
    fn pes_with_a_core_each_are_bound_unless_asked_otherwise() {
        let binds = |bind, no_bind, pes| Binding { bind, no_bind, fabric: None }.binds(pes, 2);
        assert!(binds(false, false, 2) && !binds(false, false, 3));
        assert!(binds(true, false, 3) && !binds(false, true, 2) && !binds(false, true, 1));
    }

    #[test]
    fn fewer_than_two_pes_are_refused() {
        assert_eq!(two_or_more("2"), Ok(2));
        for text in ["1", "0", "-2", "two", ""] {
            assert!(two_or_more(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_fabric_is_named_if_there_is_one() {
        let label = Label::new(2, Bench::Barrier, Operation::Barrier, 0);
        let mapped = record(label, Unit::Nanoseconds, 300.0);
        assert_eq!(over(std::slice::from_ref(&mapped)), "");
        let far = mapped.clone().over(Some("ofi (tcp;ofi_rxm on eth0)"));
        assert_eq!(
            over(&[far.clone(), mapped, far]),
            "No PE maps another one's memory: all goes over ofi (tcp;ofi_rxm on eth0)\n"
        );
    }

    #[test]
    fn numbers_double_up_to_the_most() {
        let of = |from, most| doublings(from, most).collect::<Vec<_>>();
        assert_eq!((of(2, 2), of(2, 6), of(1, 8)), (vec![2], vec![2, 4, 6], vec![1, 2, 4, 8]));
    }
}
