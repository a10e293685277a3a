//! The records of a job: `pelago run --trace` and `--stats`, and the commands that read what PEs have left
//! under other launchers.
//!
//! Each PE leaves a file in a folder (`core/src/base/trace`); at the end they are read, one record after the
//! other, and become one timeline and one table.

mod page;
mod perfetto;
mod statistics;
mod timeline;

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use pelago_boot::{HeldSignals, launcher_seen, print, raise_open_files, tell};
use pelago_core::base::trace::reader::{PeStatistics, TimelineReader};

use self::statistics::JobStatistics;
use crate::whole_file::WholeFile;

/// The settings that name the folders of the timelines and of the statistics.
const VARIABLES: [&str; 2] = ["PELAGO_TRACE", "PELAGO_STATS"];

/// The options of `pelago run` for records.
#[derive(Args)]
pub struct Records {
    /// Write a timeline of all PEs to this file, which Perfetto's user interface shows; or a page, if its
    /// name ends with .html, for jobs with few operations. With --hosts, all hosts must share its folder
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print statistics of all PEs' operations at the end; with a file, write them there, as a page (.html)
    /// or for a program to read (.json)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    stats: Option<Option<PathBuf>>,
}

/// The folder of a job's records, which goes when this is dropped, unless they could not be joined.
///
/// Invariant: a file of the user keeps its contents until the job has ended and the new ones are complete,
/// and files that were made for a job that did not start are removed. This also holds if a signal ends the
/// command.
pub struct Recording {
    folder: Option<PathBuf>,
    /// The files that did not exist before.
    made: Vec<PathBuf>,
    trace: Option<PathBuf>,
    stats: Option<Option<PathBuf>>,
    /// Held back until the files are complete or removed, which the last field is for.
    pub signals: HeldSignals,
}

impl Records {
    /// Makes the folder for the records, if any are wanted; `is_spread` if the PEs are on several hosts,
    /// which must all see it.
    ///
    /// # Errors
    /// If the folder or a file cannot be made.
    pub fn begin(self, is_spread: bool) -> anyhow::Result<Recording> {
        let Records { trace, stats } = self;
        let signals = HeldSignals::hold().context("blocking signals")?;
        let mut recording = Recording { folder: None, made: Vec::new(), trace, stats, signals };
        if recording.trace.is_none() && recording.stats.is_none() {
            return Ok(recording);
        }
        if let Some(Some(file)) = &recording.stats {
            statistics::Form::of(file)?;
        }
        recording.try_files()?;
        let trace = &recording.trace;
        let beside = trace.as_deref().and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
        let parent = match (beside, trace.is_some() || is_spread) {
            (Some(parent), _) => parent.to_owned(),
            (None, true) => PathBuf::from("."),
            (None, false) => std::env::temp_dir(),
        };
        recording.folder = Some(new_folder(&std::path::absolute(parent)?)?);
        Ok(recording)
    }
}

/// A new folder for records. A launcher with the same number, on another host or before, may have left one.
fn new_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("pelago-records-{}", std::process::id());
    let names = (1..100).map(|i| if i == 1 { name.clone() } else { format!("{name}-{i}") });
    let mut folders = names.map(|name| parent.join(name));
    let found = folders.find_map(|folder| match std::fs::create_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
        made => Some(made.map(|()| folder.clone()).with_context(|| format!("making {}", folder.display()))),
    });
    found.with_context(|| format!("{} has many folders {name}; remove them", parent.display()))?
}

impl Recording {
    /// The variables of this process that its PEs do not get from it: where it is a PE itself, these name
    /// the folders of the job around it.
    pub fn without() -> Vec<OsString> {
        // A launcher that Pelago does not speak to is one too.
        let is_pe = !matches!(launcher_seen(), Ok(None));
        if is_pe { VARIABLES.map(OsString::from).to_vec() } else { Vec::new() }
    }

    /// Refuses files that cannot be written, before the job starts.
    fn try_files(&mut self) -> anyhow::Result<()> {
        for file in [&self.trace, &self.stats.clone().flatten()].into_iter().flatten() {
            let is_new = std::fs::symlink_metadata(file).is_err();
            let opened = File::options().write(true).create(true).truncate(false).open(file);
            opened.with_context(|| format!("writing {}", file.display()))?;
            if is_new {
                self.made.push(file.clone());
            }
        }
        Ok(())
    }

    /// The settings that let the PEs leave their files.
    pub fn settings(&self) -> Vec<(OsString, OsString)> {
        let folder = |variable: &str| self.folder.clone().map(|folder| (variable.into(), folder.into()));
        let trace = self.trace.as_ref().and_then(|_| folder(VARIABLES[0]));
        trace.into_iter().chain(self.stats.as_ref().and_then(|_| folder(VARIABLES[1]))).collect()
    }

    /// Reads the records when the job has ended, and says what has become of them. If a file cannot be read
    /// or written, the records of the PEs stay.
    ///
    /// # Errors
    /// If a file cannot be read or written, or if a signal has come.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let timeline = self.join_timeline(folder).map_err(|error| ("trace", error));
        let joined = timeline.and_then(|()| self.add_statistics(folder).map_err(|error| ("stats", error)));
        let Err((command, error)) = joined else { return Ok(()) };
        let has_records = files(folder, command).is_ok_and(|files| !files.is_empty());
        if has_records
            && !self.signals.has_come()
            && let Some(folder) = self.folder.take()
        {
            let folder = folder.display();
            tell(&format!(
                "pelago run: the records of the PEs stay in {folder}: pelago {command} {folder}\n"
            ));
        }
        Err(error)
    }

    fn join_timeline(&self, folder: &Path) -> anyhow::Result<()> {
        if let Some(file) = &self.trace {
            tell(&format!("pelago run: {}\n", write_timeline(folder, file, &self.signals)?));
        }
        Ok(())
    }

    fn add_statistics(&self, folder: &Path) -> anyhow::Result<()> {
        let signals = &self.signals;
        match &self.stats {
            None => {}
            Some(None) => tell(&JobStatistics::read(folder, signals)?.to_string()),
            Some(Some(file)) => {
                let text = JobStatistics::read(folder, signals)?.in_form(file)?;
                WholeFile::create(file)?.finish(&text)?;
                tell(&format!("pelago run: statistics: {}\n", file.display()));
            }
        }
        Ok(())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
        for file in &self.made {
            if std::fs::metadata(file).is_ok_and(|file| file.is_file() && file.len() == 0) {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

/// Join the timelines that the PEs of a job have left into one file for Perfetto's user interface
///
/// Under `pelago run --trace` this is done at the end. Under another launcher, the PEs leave their timelines
/// in the folder that PELAGO_TRACE names, which all hosts must share.
#[derive(Args)]
#[command(after_help = TRACE_EXAMPLES)]
pub struct Trace {
    /// The folder with the timelines
    folder: PathBuf,
    /// The file to write; a page if its name ends with .html
    #[arg(short, long, value_name = "FILE", default_value = "pelago.pftrace")]
    output: PathBuf,
}

const TRACE_EXAMPLES: &str = "\
Examples:
  pelago run -n 4 --trace ft.pftrace ft --class S       the usual way: one command
  mkdir t; PELAGO_TRACE=$PWD/t mpiexec.hydra -n 4 ./mine; pelago trace t -o mine.pftrace";

/// Print the statistics that the PEs of a job have left
///
/// Under `pelago run --stats` this is done at the end. Under another launcher, the PEs leave their
/// statistics in the folder that PELAGO_STATS names, which all hosts must share.
#[derive(Args)]
#[command(after_help = STATS_EXAMPLES)]
pub struct Stats {
    /// The folder with the statistics
    folder: PathBuf,
    /// Write a page with the communication matrix as a picture to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON, for a program to read
    #[arg(long)]
    json: bool,
}

const STATS_EXAMPLES: &str = "\
Examples:
  pelago run -n 4 --stats ft --class S                  the usual way: one command
  pelago run -n 4 --stats=ft.html ft --class S          as a page, with the matrix as a picture
  mkdir s; PELAGO_STATS=$PWD/s mpiexec.hydra -n 4 ./mine; pelago stats s";

impl Trace {
    pub fn execute(&self) -> anyhow::Result<ExitCode> {
        let signals = HeldSignals::hold().context("blocking signals")?;
        let text = write_timeline(&self.folder, &self.output, &signals)?;
        drop(signals);
        print(&format!("{text}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Stats {
    pub fn execute(&self) -> anyhow::Result<ExitCode> {
        let signals = HeldSignals::hold().context("blocking signals")?;
        let statistics = JobStatistics::read(&self.folder, &signals)?;
        if let Some(file) = &self.html {
            let page = page::page(&statistics);
            WholeFile::create(file)?.finish(&page)?;
        }
        drop(signals);
        match self.json {
            true => print(&(statistics.json()? + "\n"))?,
            false => print(&statistics.to_string())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The files of a folder that end so, in order.
fn files(folder: &Path, end: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        if path.extension().is_some_and(|of| of == end) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The open files of a command beside those of the PEs.
const BESIDES: u64 = 64;

/// Refuses records of PEs of jobs with different numbers of PEs.
fn check_one_job(folder: &Path, mut n_pes: impl Iterator<Item = usize>) -> anyhow::Result<()> {
    let Some(first) = n_pes.next() else { return Ok(()) };
    if let Some(other) = n_pes.find(|n| *n != first) {
        bail!(
            "{} has records of a job of {first} PEs and of one of {other}. Give each job an empty folder",
            folder.display()
        );
    }
    Ok(())
}

/// Joins the timelines of a folder in a file: a sentence about it.
fn write_timeline(folder: &Path, file: &Path, signals: &HeldSignals) -> anyhow::Result<String> {
    let (mut readers, paths) = (Vec::new(), files(folder, "trace")?);
    raise_open_files(paths.len() as u64 + BESIDES);
    for path in paths {
        match TimelineReader::open(&path) {
            // The PE was killed before it had recorded anything.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            reader => readers.push(reader.with_context(|| format!("reading {}", path.display()))?),
        }
    }
    check_one_job(folder, readers.iter().map(|reader| reader.n_pes))?;
    if readers.is_empty() {
        bail!(
            "no PE has left a timeline in {}. Compile the program with Pelago, and name a folder that all \
             hosts share",
            folder.display()
        );
    }
    let missing = missing(readers[0].n_pes, readers.iter().map(|reader| reader.pe));
    let name = file.display();
    if file.extension().is_some_and(|end| end == "html") {
        let (page, events) = timeline::page(readers, signals).with_context(|| format!("drawing {name}"))?;
        WholeFile::create(file)?.finish(&page)?;
        return Ok(format!("timeline: {name}, {events} events, as a page{missing}"));
    }
    let output = WholeFile::create(file)?;
    let events =
        perfetto::write(readers, output.file(), signals).with_context(|| format!("writing {name}"))?;
    output.keep()?;
    let how = "open it in Perfetto's user interface, https://ui.perfetto.dev";
    Ok(format!("timeline: {name}, {events} events; {how}{missing}"))
}

/// Reads the statistics of a folder.
fn read_statistics(folder: &Path, signals: &HeldSignals) -> anyhow::Result<Vec<PeStatistics>> {
    let mut all = Vec::new();
    for path in files(folder, "stats")? {
        signals.check()?;
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let of = PeStatistics::parse(&text);
        all.push(of.with_context(|| format!("{} is not the statistics of a PE", path.display()))?);
    }
    check_one_job(folder, all.iter().map(|of: &PeStatistics| of.n_pes))?;
    if all.is_empty() {
        bail!(
            "no PE has left statistics in {}. Compile the program with Pelago, let it leave the job at its \
             end (finalize), and name a folder that all hosts share",
            folder.display()
        );
    }
    Ok(all)
}

/// A remark about PEs of which there is no record.
fn missing(n_pes: usize, have: impl Iterator<Item = usize>) -> String {
    let mut is_there = vec![false; n_pes];
    have.filter(|&pe| pe < n_pes).for_each(|pe| is_there[pe] = true);
    let missing: Vec<_> = (0..n_pes).filter(|&pe| !is_there[pe]).map(|pe| pe.to_string()).collect();
    match missing.len() {
        0 => String::new(),
        1..=8 => format!("; there is no record of PE {}", missing.join(", ")),
        n => format!("; there is no record of {n} PEs, PE {} among them", missing[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_records_are_named() {
        assert_eq!(missing(3, [0, 1, 2].into_iter()), "");
        assert_eq!(missing(3, [1].into_iter()), "; there is no record of PE 0, 2");
        assert_eq!(missing(20, [0].into_iter()), "; there is no record of 19 PEs, PE 1 among them");
    }
}
