//! `cargo xtask compare fft`: one forward 3D FFT of complex doubles, by Pelago and by FFTW-MPI.
//!
//! Invariant: both transform the same data, are bound to the same number of cores, and are timed in the same
//! way: the time of the slowest rank after a barrier, after one untimed transform. Different spectra are an
//! error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use pelago_report::Table;
use serde::{Deserialize, Serialize};

use crate::base::peers::{self, Side};
use crate::base::stats::Summary;
use crate::base::workspace::output_of;

/// The Debian packages of FFTW-MPI and its launcher; Debian builds FFTW-MPI for Open MPI.
const PACKAGES: &str = "libfftw3-dev libfftw3-mpi-dev openmpi-bin libopenmpi-dev";
/// The maximum relative difference of the two checksums.
const TOLERANCE: f64 = 1e-12;
/// The name of the other side in the table.
const PEER: &str = "FFTW-MPI";

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of pairs of runs for each grid and number of ranks
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Timed transforms of each run, whose median is the result of the run
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Grids
    #[arg(long, value_delimiter = ',', default_value = "256x256x128,512x256x256")]
    size: Vec<String>,
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    ranks: Vec<usize>,
    /// Print one JSON array instead of the table
    #[arg(long)]
    json: bool,
}

/// The output of one run of one program.
#[derive(Debug, Deserialize)]
struct Printed {
    seconds: Vec<f64>,
    checksum: [f64; 2],
    /// Absent for the other side, which checks nothing itself.
    variant: Option<String>,
    verified: Option<bool>,
}

/// The results of one side for one grid and number of ranks.
#[derive(Debug, Serialize)]
struct Figures {
    /// The median of the runs.
    median_seconds: f64,
    /// The shortest of all timed transforms.
    min_seconds: f64,
    /// The ratio of the medians of this side and the other one: below 1, Pelago is faster.
    ratio: f64,
    /// The ratio of the shortest transforms.
    min_ratio: f64,
    /// The median of each run.
    runs: Vec<f64>,
}

/// The seconds of all timed transforms of a side, run by run.
type Runs = Vec<Vec<f64>>;

/// The comparison of one grid on one number of ranks; sides by name.
#[derive(Debug, Serialize)]
struct Row {
    size: String,
    ranks: usize,
    sides: BTreeMap<String, Figures>,
}

impl Compare {
    /// Builds both programs, runs them in pairs and prints the comparison.
    pub fn run(&self) -> Result<()> {
        let fftw = peers::compile_by(Side::OpenMpi, "fft.c", &["-lfftw3_mpi", "-lfftw3", "-lm"])
            .with_context(|| format!("does this help? sudo apt-get install {PACKAGES}"))?;
        let programs = Programs { pelago: peers::pelago()?, fftw, folder: peers::folder()? };
        let mut rows = Vec::new();
        for size in &self.size {
            for &ranks in &self.ranks {
                eprintln!("{size} on {ranks}: pairs of runs: {}", self.pairs);
                rows.push(programs.compare(size, ranks, self)?);
            }
        }
        match self.json {
            true => println!("{}", serde_json::to_string(&rows)?),
            false => print!("{}", table(&rows)),
        }
        Ok(())
    }
}

/// The two programs.
struct Programs {
    pelago: PathBuf,
    fftw: PathBuf,
    /// The folder of FFTW's plans, which are kept between runs.
    folder: PathBuf,
}

impl Programs {
    /// All pairs of one grid and number of ranks.
    fn compare(&self, size: &str, ranks: usize, args: &Compare) -> Result<Row> {
        self.run_fftw(size, ranks, 1).context("planning by FFTW failed")?;
        let mut runs = BTreeMap::<String, Runs>::new();
        for pair in 0..args.pairs {
            let (ours, theirs) = if pair % 2 == 0 {
                let ours = self.run_pelago(size, ranks, args.repeat)?;
                (ours, self.run_fftw(size, ranks, args.repeat)?)
            } else {
                let theirs = self.run_fftw(size, ranks, args.repeat)?;
                (self.run_pelago(size, ranks, args.repeat)?, theirs)
            };
            agree(&ours, &theirs)?;
            for printed in ours.into_iter().chain([theirs]) {
                let name = printed.variant.unwrap_or_else(|| PEER.to_owned());
                runs.entry(name).or_default().push(printed.seconds);
            }
        }
        Ok(row(size, ranks, runs))
    }

    /// Runs our program; returns one result per variant.
    fn run_pelago(&self, size: &str, ranks: usize, repeat: u32) -> Result<Vec<Printed>> {
        let repeat = repeat.to_string();
        let words = ["ft", "--transform", size, "--variant", "all", "--json", "--repeat", &repeat];
        let text = output_of(&mut peers::run_of(&self.pelago, ranks, false, &words))?;
        text.lines().map(parse).collect()
    }

    fn run_fftw(&self, size: &str, ranks: usize, repeat: u32) -> Result<Printed> {
        let wisdom = self.folder.join(format!("fft-{size}-{ranks}.wisdom"));
        let mut command = peers::launcher(Side::OpenMpi, ranks, false, &self.fftw)?;
        parse(&output_of(command.args(size.split('x')).arg(repeat.to_string()).arg(wisdom))?)
    }
}

fn parse(line: &str) -> Result<Printed> {
    let printed: Printed = serde_json::from_str(line).with_context(|| format!("cannot read {line:?}"))?;
    ensure!(!printed.seconds.is_empty(), "no transform was timed: {line:?}");
    Ok(printed)
}

/// Fails unless our results pass our own checks and all checksums are equal up to rounding.
fn agree(ours: &[Printed], theirs: &Printed) -> Result<()> {
    ensure!(!ours.is_empty(), "pelago printed no result");
    let [real, imaginary] = theirs.checksum;
    for printed in ours {
        let variant = printed.variant.as_deref().unwrap_or("?");
        let difference = (printed.checksum[0] - real).hypot(printed.checksum[1] - imaginary);
        let is_equal = difference <= TOLERANCE * real.hypot(imaginary);
        if printed.verified != Some(true) || !is_equal {
            bail!("{variant}: wrong spectrum: {printed:?}, where {PEER} has {theirs:?}");
        }
    }
    Ok(())
}

fn row(size: &str, ranks: usize, runs: BTreeMap<String, Runs>) -> Row {
    let medians = |runs: &Runs| runs.iter().map(|seconds| Summary::of(seconds).median).collect::<Vec<_>>();
    let peer =
        runs.get(PEER).map(|runs| (Summary::of(&medians(runs)).median, Summary::of(&runs.concat()).min));
    let (peer_median, peer_min) = peer.unwrap_or((f64::NAN, f64::NAN));
    let side = |runs: &Runs| {
        let (runs, min_seconds) = (medians(runs), Summary::of(&runs.concat()).min);
        let median_seconds = Summary::of(&runs).median;
        let (ratio, min_ratio) = (median_seconds / peer_median, min_seconds / peer_min);
        Figures { median_seconds, min_seconds, ratio, min_ratio, runs }
    };
    let sides = runs.iter().map(|(name, runs)| (name.clone(), side(runs))).collect();
    Row { size: size.to_owned(), ranks, sides }
}

/// The rows as a table, one line per side.
fn table(rows: &[Row]) -> Table {
    let title = "One forward 3D FFT: median of the runs, shortest transform, ratios to FFTW-MPI";
    let mut table = Table::new(title, 1, "grid|ranks|side|median, ms|ratio|min, ms|ratio");
    for row in rows {
        for (name, side) in &row.sides {
            let figures = [1e3 * side.median_seconds, side.ratio, 1e3 * side.min_seconds, side.min_ratio];
            table.row((row.size.as_str(), row.ranks, name.as_str(), figures.map(|of| format!("{of:.2}"))));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(line: &str) -> Vec<Printed> {
        vec![parse(line).unwrap()]
    }

    const OURS: &str =
        r#"{"app":"ft","variant":"slabs","verified":true,"seconds":[0.5,0.25],"checksum":[3.0,4.0]}"#;
    const THEIRS: &str = r#"{"seconds":[0.5],"checksum":[3.0,4.000000000000001]}"#;

    #[test]
    fn equal_spectra_agree_and_others_do_not() {
        let theirs = parse(THEIRS).unwrap();
        agree(&ours(OURS), &theirs).unwrap();
        for (from, to) in [("true", "false"), ("4.0", "4.00000001"), ("3.0", "null"), ("[0.5,0.25]", "[]")] {
            let line = OURS.replace(from, to);
            let refused = parse(&line).and_then(|printed| agree(&[printed], &theirs)).is_err();
            assert!(refused, "{line}");
        }
        assert!(agree(&[], &theirs).is_err());
    }

    #[test]
    fn the_table_has_aligned_lines_and_ratios() {
        let runs = [("slabs", vec![vec![0.5, 0.25, 0.125]]), (PEER, vec![vec![0.5], vec![0.5, 0.5]])];
        let runs = runs.into_iter().map(|(name, runs)| (name.to_owned(), runs)).collect();
        let text = table(&[row("256x256x128", 2, runs)]).to_string();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        let cells = [1, 2].map(|line| lines[line].split_whitespace().skip(2).collect::<Vec<_>>());
        assert_eq!(cells[0], ["FFTW-MPI", "500.00", "1.00", "500.00", "1.00"], "{text}");
        assert_eq!(cells[1], ["slabs", "250.00", "0.50", "125.00", "0.25"], "{text}");
    }
}
