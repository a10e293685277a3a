//! `pelago paper`: the tables and figures of the papers that this runtime was built from, repeated here and
//! printed beside the papers' values, with a verdict on the shape.
//!
//! Invariant: the papers are data (`claim.rs`), one file a paper; an experiment uses the measurements of
//! `topics/` and of the applications (`lab.rs`), and has no measurement of its own where there is one. A
//! verdict states its numbers; "does not hold here" is a result and no error.

mod bandwidth;
mod claim;
mod counts;
mod ft_runs;
mod gasnet_bgp;
mod lab;
mod mpt;
mod sfi;
mod shapes;
mod show;
mod sync_memory;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use pelago_apps::nearest;
use pelago_boot::{out, outln};

use self::claim::{Claim, Experiment, Paper};
use self::lab::Lab;
use self::show::Found;
use crate::base::topic::two_or_more;

/// The papers, by number.
static PAPERS: [&Paper; 5] =
    [&gasnet_bgp::PAPER, &sync_memory::PAPER, &bandwidth::PAPER, &mpt::PAPER, &sfi::PAPER];

/// Repeat the tables and figures of the papers, beside the papers' values
///
/// Each figure is measured on this machine, simulated in virtual time (the same on every machine), counted
/// without a clock, or computed from the paper's numbers, and ends with a verdict on its shape. Claims
/// that need a model of the paper's machine are listed as such.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PaperCommand {
    /// The paper, by name or number, or `all`; without it, or with `list`, the papers are listed
    #[arg(value_name = "PAPER")]
    paper: Option<String>,
    /// Its figures; default: all
    #[arg(value_name = "FIGURE", requires = "paper")]
    figures: Vec<String>,
    /// List the claims and figures instead of repeating them
    #[arg(long)]
    list: bool,
    /// Maximum number of PEs of a measurement on this machine
    #[arg(short, value_name = "N", default_value_t = 4, value_parser = two_or_more,
        allow_negative_numbers = true)]
    n: usize,
    /// Measure for a short time only: measured times are then not reliable
    #[arg(long)]
    quick: bool,
    /// Print one JSON object a line for each figure and each missing part, instead of tables
    #[arg(long)]
    json: bool,
    /// Write one page of charts and tables to this file as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  pelago paper                            the papers, by name
  pelago paper mpt --list                 what this one claims, and what of it can be repeated here
  pelago paper gasnet-bgp latency         one figure: put and get beside messages
  pelago paper sfi                        a whole paper, by name; or by its number, 004
  pelago paper all --html papers.html     everything, with charts: takes some minutes
  pelago paper all --quick --json         for programs, one object a figure";

impl PaperCommand {
    /// Lists or repeats figures.
    ///
    /// # Errors
    /// If there is no such paper or figure, if a measurement fails, or if the results cannot be written.
    pub fn execute(self) -> Result<ExitCode> {
        let Some(name) = self.paper.as_ref().filter(|name| *name != "list") else {
            if (self.json && !self.list) || self.html.is_some() || !self.figures.is_empty() {
                bail!("which paper? `pelago paper all` repeats all of them ({})", names());
            }
            match self.list {
                true => self.list(&PAPERS)?,
                false => out!("{}", show::papers(&PAPERS))?,
            }
            return Ok(ExitCode::SUCCESS);
        };
        let papers = find(name)?;
        let chosen = choose(&papers, &self.figures)?;
        if self.list {
            self.list(&papers)?;
            return Ok(ExitCode::SUCCESS);
        }
        self.repeat(&chosen)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints the claims and figures of papers.
    fn list(&self, papers: &[&Paper]) -> Result<()> {
        match self.json {
            true => papers
                .iter()
                .flat_map(|paper| show::json_listing(paper))
                .try_for_each(|line| outln!("{line}"))?,
            false => papers.iter().try_for_each(|paper| out!("{}", show::listing(paper)))?,
        }
        Ok(())
    }

    /// Runs the experiments and prints each when it is done.
    fn repeat(&self, chosen: &[Chosen]) -> Result<()> {
        // The file is created before the measurements, which take minutes.
        let create = |path: &PathBuf| {
            File::create(path).with_context(|| format!("creating the page {}", path.display()))
        };
        let page = self.html.as_ref().map(create).transpose()?;
        let lab = Lab::new(self.n, self.quick);
        let experiments = chosen.iter().map(|chosen| chosen.experiments.len()).sum::<usize>();
        let bar = progress_bar(experiments)?;
        let mut found = Vec::new();
        for Chosen { paper, claim, experiments, is_whole } in chosen {
            for experiment in experiments {
                bar.set_message(format!("{} {}", paper.id, experiment.figure));
                let what = || format!("{}, figure {}", paper.id, experiment.figure);
                let evidence = (experiment.run)(&lab).with_context(what)?;
                let new = Found::Seen { paper, claim, experiment, evidence };
                bar.suspend(|| self.print(&new))?;
                found.push(new);
                bar.inc(1);
            }
            if let (Some(rest), true) = (claim.rest, is_whole) {
                let new = Found::Missing { paper, claim, rest };
                bar.suspend(|| self.print(&new))?;
                found.push(new);
            }
        }
        bar.finish_and_clear();
        if !self.json {
            out!("{}", show::summary(&found))?;
        }
        if let Some(mut page) = page {
            let html = show::page(&found, &lab);
            page.write_all(html.as_bytes()).context("writing the page")?;
        }
        Ok(())
    }

    fn print(&self, found: &Found<'_>) -> Result<()> {
        match self.json {
            true => outln!("{}", found.json())?,
            false => out!("{found}\n")?,
        }
        Ok(())
    }
}

/// A claim, and the experiments of it that were asked for.
struct Chosen {
    paper: &'static Paper,
    claim: &'static Claim,
    experiments: Vec<&'static Experiment>,
    /// Whether no figure was named, so that the missing part is of interest.
    is_whole: bool,
}

fn names() -> String {
    PAPERS.map(|paper| paper.id).join(", ")
}

/// The papers of a name, a number, or `all`.
fn find(name: &str) -> Result<Vec<&'static Paper>> {
    if name == "all" {
        return Ok(PAPERS.to_vec());
    }
    match PAPERS.iter().find(|paper| paper.id == name || paper.number == name) {
        Some(paper) => Ok(vec![*paper]),
        None => {
            let known = PAPERS.iter().map(|paper| paper.id).chain(["all"]);
            let nearest = nearest(name, known).unwrap_or_default();
            bail!("there is no paper {name:?}; did you mean {nearest}? (there are {}, all)", names())
        }
    }
}

/// The experiments of these figures, or everything if there are none.
fn choose(papers: &[&'static Paper], figures: &[String]) -> Result<Vec<Chosen>> {
    let all = || papers.iter().flat_map(|paper| paper.claims).flat_map(|claim| claim.experiments);
    for figure in figures {
        if all().all(|experiment| experiment.figure != figure) {
            let nearest = nearest(figure, all().map(|experiment| experiment.figure)).unwrap_or_default();
            let of = if let [paper] = papers { paper.id } else { "all" };
            bail!(
                "{of} has no figure {figure:?}; did you mean {nearest}? (`pelago paper {of} --list` shows \
                 all)"
            );
        }
    }
    let is_whole = figures.is_empty();
    let is_asked =
        |experiment: &&Experiment| is_whole || figures.iter().any(|name| name == experiment.figure);
    let of_paper = |paper: &'static Paper| {
        paper.claims.iter().map(move |claim| {
            let experiments = claim.experiments.iter().filter(is_asked).collect();
            Chosen { paper, claim, experiments, is_whole }
        })
    };
    let mut chosen: Vec<_> = papers.iter().flat_map(|paper| of_paper(paper)).collect();
    chosen.retain(|chosen| is_whole || !chosen.experiments.is_empty());
    Ok(chosen)
}

fn progress_bar(experiments: usize) -> Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("papers [{bar:40}] {pos}/{len} {msg}")?;
    Ok(ProgressBar::new(experiments as u64).with_style(style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_covered_once_by_a_figure_or_a_reason() {
        for (paper, claims) in PAPERS.iter().zip([17, 4, 8, 6, 6]) {
            let number: usize = paper.number.parse().unwrap();
            let rows: Vec<_> = paper.claims.iter().map(|claim| claim.row).collect();
            let expected: Vec<_> = (1..=claims).map(|row| format!("{number}.{row}")).collect();
            assert_eq!(rows, expected, "{}", paper.id);
            let is_covered = |claim: &Claim| !claim.experiments.is_empty() || claim.rest.is_some();
            assert!(paper.claims.iter().all(is_covered), "{}", paper.id);
        }
    }

    #[test]
    fn papers_and_figures_are_found_by_name() {
        for paper in PAPERS {
            for name in [paper.id, paper.number] {
                assert!(find(name).is_ok_and(|found| found.len() == 1 && found[0].id == paper.id), "{name}");
            }
        }
        assert_eq!(find("all").unwrap().len(), PAPERS.len());
        let mpt = find("mpt").unwrap();
        let chosen = choose(&mpt, &["2".to_owned(), "events".to_owned()]).unwrap();
        let figures: Vec<_> =
            chosen.iter().flat_map(|chosen| chosen.experiments.iter().map(|found| found.figure)).collect();
        assert_eq!(figures, ["events", "2", "2"]);
        assert!(chosen.iter().all(|chosen| !chosen.is_whole));
        assert_eq!(choose(&mpt, &[]).unwrap().len(), mpt[0].claims.len());
        let refused = |figure: &str| choose(&mpt, &[figure.to_owned()]).err().unwrap().to_string();
        assert!(refused("evnts").contains("did you mean events?"));
        assert!(find("mtp").err().unwrap().to_string().contains("did you mean mpt?"));
    }
}
