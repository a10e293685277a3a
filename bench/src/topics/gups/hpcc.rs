//! Random access by Debian's hpcc, which is linked with Open MPI: only the two sections that update one table
//! over MPI, which differ in the generator of random numbers.
//!
//! Invariant: a result counts only if the section reports the requested table size and a passed verification.
//! After both sections hpcc is stopped, because its further benchmarks (such as a linear system of the same
//! size) take minutes and are not used.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::base::peers::{Side, launcher, tool};

/// The Debian packages of hpcc and its launcher.
const PACKAGES: &str = "hpcc openmpi-bin";
/// The sections, as hpcc names them, in the order in which it runs them.
const SECTIONS: [&str; 2] = ["MPIRandomAccess", "MPIRandomAccess_LCG"];
/// The output file of hpcc.
const OUTPUT: &str = "hpccoutf.txt";
/// The file for the output of the launcher.
const MESSAGES: &str = "messages.txt";
/// The interval of polling the output of hpcc.
const LOOK: Duration = Duration::from_millis(20);
/// The time limit of a run; each section ends after a minute by itself.
const LIMIT: Duration = Duration::from_secs(600);
/// The time limit for the end of the launcher after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(20);

/// The path of hpcc, and the folder in which it runs.
pub struct Hpcc {
    program: PathBuf,
    folder: PathBuf,
}

/// The result of one section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section {
    /// The rate of all processes, in 10^9 updates per second.
    pub gups: f64,
    /// The number of updates; fewer than four per word if the time limit of a minute was reached.
    pub updates: u64,
}

impl Hpcc {
    /// Finds hpcc; installs nothing.
    ///
    /// # Errors
    /// If hpcc or its launcher is not installed, or if the folder cannot be created.
    pub fn find(folder: PathBuf) -> Result<Hpcc> {
        let program = tool(&["hpcc"], PACKAGES)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Hpcc { program, folder })
    }

    /// Runs both sections with a table of `2^table_log2` words on `processes` processes.
    ///
    /// # Errors
    /// If hpcc fails, takes too long, or reports a wrong result.
    pub fn run(&self, table_log2: u32, processes: usize, is_crowded: bool) -> Result<[Section; 2]> {
        let path = self.folder.join(OUTPUT);
        if path.exists() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        let order = matrix_order(table_log2);
        fs::write(self.folder.join("hpccinf.txt"), input(order, processes))
            .context("cannot write hpccinf.txt")?;
        let messages = File::create(self.folder.join(MESSAGES)).context("cannot make a file for messages")?;
        let mut command = launcher(Side::OpenMpi, processes, is_crowded, &self.program)?;
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(messages.try_clone()?).stderr(messages);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let text = self.until_measured(&mut Running(child), &path)?;
        read_sections(&text, table_log2).with_context(|| format!("hpcc said, in {}", path.display()))
    }

    /// Waits until both sections are written, and stops hpcc.
    fn until_measured(&self, running: &mut Running, path: &Path) -> Result<String> {
        let start = Instant::now();
        loop {
            let ended = running.0.try_wait().context("cannot wait for hpcc")?;
            // The output is read after the status, so that it is complete if hpcc has ended.
            let text = fs::read_to_string(path).unwrap_or_default();
            if SECTIONS.iter().all(|name| section_of(&text, name).is_some()) {
                running.end()?;
                return Ok(text);
            }
            if let Some(status) = ended {
                bail!("hpcc ended before it had measured anything ({status}):\n{}", self.messages());
            }
            ensure!(start.elapsed() < LIMIT, "hpcc has not measured within {LIMIT:?}:\n{}", self.messages());
            sleep(LOOK);
        }
    }

    fn messages(&self) -> String {
        fs::read_to_string(self.folder.join(MESSAGES)).unwrap_or_default()
    }
}

/// The launcher; it is sent SIGTERM when dropped, and then ends its processes.
struct Running(Child);

impl Running {
    fn end(&mut self) -> Result<ExitStatus> {
        let start = Instant::now();
        if let Some(status) = self.0.try_wait()? {
            return Ok(status);
        }
        let id = self.0.id();
        // The process is a child that was not waited for, as `try_wait` has just shown, so its id has not
        // been reused.
        kill_process(Pid::from_child(&self.0), Signal::TERM)?;
        while start.elapsed() < END_LIMIT {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            sleep(LOOK);
        }
        self.0.kill()?;
        bail!(
            "the launcher of hpcc, process {id}, did not end within {END_LIMIT:?}; are processes of it left?"
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("compare gups: {error:#}");
        }
    }
}

/// The order of the matrix for which hpcc chooses a table of `2^table_log2` words: the largest power of two
/// up to the square of the order.
fn matrix_order(table_log2: u32) -> u64 {
    (1u64 << table_log2).isqrt() + 1
}

/// The contents of hpcc's input file.
fn input(order: u64, processes: usize) -> String {
    format!(
        "HPLinpack benchmark input file\n\
         Innovative Computing Laboratory, University of Tennessee\n\
         HPL.out output file name\n\
         8 device out\n\
         1 number of problem sizes\n\
         {order} N\n\
         1 number of block sizes\n\
         80 NB\n\
         0 process mapping\n\
         1 number of process grids\n\
         1 P\n\
         {processes} Q\n\
         16.0 threshold\n\
         1 number of panel factorisations\n\
         2 PFACT\n\
         1 number of stopping criteria\n\
         4 NBMIN\n\
         1 number of panels in recursion\n\
         2 NDIV\n\
         1 number of recursive factorisations\n\
         1 RFACT\n\
         1 number of broadcasts\n\
         1 BCAST\n\
         1 number of lookahead depths\n\
         1 DEPTH\n\
         2 swap\n\
         64 swapping threshold\n\
         0 L1\n\
         0 U\n\
         1 equilibration\n\
         8 memory alignment\n\
         a line that is ignored\n\
         0 number of additional problem sizes of PTRANS\n\
         1200 N\n\
         0 number of additional block sizes of PTRANS\n\
         40 NB\n"
    )
}

/// The text between the first and the last line of a section, if both exist.
fn section_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("Begin of {name} section.\n"))?;
    Some(rest.split_once(&format!("End of {name} section.\n"))?.0)
}

fn read_sections(text: &str, table_log2: u32) -> Result<[Section; 2]> {
    let read = |name: &str| {
        let section = section_of(text, name).with_context(|| format!("there is no section {name}"))?;
        read_section(section, table_log2).with_context(|| format!("{name}:\n{section}"))
    };
    Ok([read(SECTIONS[0])?, read(SECTIONS[1])?])
}

fn read_section(section: &str, table_log2: u32) -> Result<Section> {
    let words = 1u64 << table_log2;
    let size = format!("Total Main table size = 2^{table_log2} = {words} words");
    ensure!(section.contains(&size), "the table is not the one asked for, of {words} words");
    ensure!(section.contains("(passed)"), "the verification has not passed");
    let executed = "Number of updates EXECUTED = ";
    let updates = section.split_once(executed).and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let rate_of_all = |line: &&str| line.ends_with("[GUP/s]") && !line.contains("/PE");
    let rate = section.lines().find(rate_of_all);
    let gups = rate.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    let gups = gups.filter(|gups| gups.is_finite() && *gups > 0.0);
    let (updates, gups) = updates.zip(gups).context("there is no rate or no number of updates")?;
    Ok(Section { gups, updates })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of a section, with artificial numbers.
    fn section(name: &str, gups: &str) -> String {
        format!(
            "Begin of {name} section.\n\
             Running on 2 processors (PowerofTwo)\n\
             Total Main table size = 2^20 = 1048576 words\n\
             PE Main table size = 2^19 = 524288 words/PE\n\
             Default number of updates (RECOMMENDED) = 4194304\n\
             Number of updates EXECUTED = 4194300 (for a TIME BOUND of 60.00 secs)\n\
             CPU time used = 0.5 seconds\n\
             {gups} Billion(10^9) Updates    per second [GUP/s]\n\
             7.0 Billion(10^9) Updates/PE per second [GUP/s]\n\
             Found 0 errors in 1048576 locations (passed).\n\n\
             End of {name} section.\n"
        )
    }

    #[test]
    fn both_sections_are_read() {
        let text = section(SECTIONS[0], "0.25") + "Begin of another.\n" + &section(SECTIONS[1], "0.5");
        let expected = [0.25, 0.5].map(|gups| Section { gups, updates: 4_194_300 });
        assert_eq!(read_sections(&text, 20).unwrap(), expected);
    }

    #[test]
    fn sections_that_are_missing_or_wrong_are_refused() {
        let text = section(SECTIONS[0], "0.25") + &section(SECTIONS[1], "0.5");
        let without = |part: &str, other: &str| read_sections(&text.replacen(part, other, 1), 20);
        for (part, other, why) in [
            ("End of MPIRandomAccess_LCG", "Still in", "no section MPIRandomAccess_LCG"),
            ("2^20", "2^21", "not the one asked for"),
            ("(passed)", "(failed)", "has not passed"),
            ("0.25", "nan", "no rate"),
            ("EXECUTED = 4194300", "EXECUTED = many", "no number of updates"),
        ] {
            let said = format!("{:#}", without(part, other).unwrap_err());
            assert!(said.contains(why), "{said}");
        }
        assert!(read_sections(&text, 19).is_err());
    }

    #[test]
    fn the_order_of_the_matrix_reaches_the_table_and_not_the_next() {
        for table_log2 in 10..=34 {
            let square = matrix_order(table_log2).pow(2);
            assert_eq!(square.ilog2(), table_log2, "{square}");
        }
    }

    #[test]
    fn the_input_has_its_lines_where_hpcc_looks_for_them() {
        let text = input(1025, 2);
        let lines: Vec<_> = text.lines().collect();
        let first_words = [5, 10, 11, 31, 32].map(|line| lines[line].split(' ').next().unwrap_or(""));
        assert_eq!((lines.len(), first_words), (36, ["1025", "1", "2", "a", "0"]));
    }
}
