//! The programs that are compared: how they are built and started, and how their output is parsed.
//!
//! Invariant: all programs print lines of the same format. If every PE has a core, PEs are bound to cores;
//! otherwise none is bound, and Open MPI is told to yield while it waits, as its documentation advises.
//! MPICH's device (ch4) never yields.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::workspace::{DIST, cargo, metadata, output_of, root};

/// A library, this runtime, or a lower bound that no library is expected to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// This runtime.
    #[value(skip)]
    Pelago,
    /// MPI of Open MPI
    OpenMpi,
    /// MPICH
    Mpich,
    /// OpenSHMEM of Open MPI
    Oshmem,
    /// Libfabric alone.
    #[value(skip)]
    Libfabric,
    /// This runtime over libfabric.
    #[value(skip)]
    OverLibfabric,
    /// A raw TCP socket.
    #[value(skip)]
    Socket,
    /// Plain copies of the data of an operation, by all PEs at the same time, in the processes of this
    /// runtime.
    #[value(skip)]
    Copies,
}

impl Side {
    /// All sides, in the order of legends.
    pub const ALL: [Side; 8] = {
        use Side::*;
        [Pelago, OverLibfabric, OpenMpi, Mpich, Oshmem, Libfabric, Socket, Copies]
    };

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Pelago => "Pelago",
            Side::OpenMpi => "Open MPI",
            Side::Mpich => "MPICH",
            Side::Oshmem => "OSHMEM",
            Side::Libfabric => "libfabric",
            Side::OverLibfabric => "over libfabric",
            Side::Socket => "socket",
            Side::Copies => "copies",
        }
    }

    /// The colour, which colour-blind people can distinguish from the others.
    pub const fn colour(self) -> &'static str {
        match self {
            Side::Pelago => "#0072b2",
            Side::OpenMpi => "#d55e00",
            Side::Mpich => "#009e73",
            Side::Oshmem => "#aa4499",
            Side::Libfabric => "#e69f00",
            Side::Copies => "#767676",
            Side::OverLibfabric => "#117733",
            Side::Socket => "#882255",
        }
    }

    /// Whether this is another library.
    pub const fn is_other(self) -> bool {
        !matches!(self, Side::Pelago | Side::Copies | Side::OverLibfabric | Side::Socket)
    }

    /// Its compiler and its launcher: those of Debian's packages, or of another version in a folder that a
    /// variable names.
    ///
    /// # Errors
    /// If they are not there. The message names the packages, or the variable.
    pub fn tools(self) -> Result<Tools> {
        let Some(Needs { prefix, programs, other_names, packages }) = self.needs() else {
            bail!("{} has no compiler and no launcher", self.name())
        };
        let prefix_folder = std::env::var_os(prefix).filter(|folder| !folder.is_empty());
        let [compiler, launcher] = match prefix_folder {
            Some(folder) => other_names.map(|name| Path::new(&folder).join("bin").join(name)),
            None => {
                let find = |name| tool(&[name], packages).with_context(|| self.name());
                [find(programs[0])?, find(programs[1])?]
            }
        };
        for program in [&compiler, &launcher] {
            ensure!(program.is_file(), "{prefix} names a folder without {}", program.display());
        }
        Ok(Tools { compiler, launcher })
    }

    fn needs(self) -> Option<Needs> {
        Some(match self {
            Side::OpenMpi => Needs {
                prefix: OPEN_MPI_PREFIX,
                programs: ["mpicc.openmpi", "mpirun.openmpi"],
                other_names: ["mpicc", "mpirun"],
                packages: "openmpi-bin libopenmpi-dev",
            },
            Side::Mpich => Needs {
                prefix: "MPICH_PREFIX",
                programs: ["mpicc.mpich", "mpiexec.mpich"],
                other_names: ["mpicc", "mpiexec"],
                packages: "mpich libmpich-dev",
            },
            Side::Oshmem => Needs {
                prefix: OPEN_MPI_PREFIX,
                programs: ["oshcc", "oshrun"],
                other_names: ["oshcc", "oshrun"],
                packages: "openmpi-bin libopenmpi-dev",
            },
            _ => return None,
        })
    }
}

/// The variable with the folder of another Open MPI than Debian's.
const OPEN_MPI_PREFIX: &str = "OPEN_MPI_PREFIX";

/// The requirements of another library.
struct Needs {
    /// The variable that names the folder of another version.
    prefix: &'static str,
    /// Compiler and launcher, in Debian's packages and in such a folder.
    programs: [&'static str; 2],
    other_names: [&'static str; 2],
    packages: &'static str,
}

/// The compiler and the launcher of a library.
pub struct Tools {
    compiler: PathBuf,
    pub launcher: PathBuf,
}

/// The folder of the programs of comparisons.
pub fn folder() -> Result<PathBuf> {
    let folder = metadata()?.target_directory.join("compare");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Builds `pelago` in the profile of installations.
pub fn pelago() -> Result<PathBuf> {
    let status = cargo(&["build", "--profile", DIST, "-p", "pelago-cli", "--features", "pelago-cli/bench"])
        .status()?;
    ensure!(status.success(), "cannot build pelago: {status}");
    Ok(metadata()?.target_directory.join(DIST).join("pelago"))
}

/// Installs our OpenSHMEM library, its compiler wrapper and its launchers into this part of the folder.
pub fn install(name: &str) -> Result<PathBuf> {
    let prefix = folder()?.join(name);
    let status = cargo(&["xtask", "install", "--prefix"]).arg(&prefix).status()?;
    ensure!(status.success(), "cannot install Pelago: {status}");
    Ok(prefix)
}

/// The first of these programs that is in PATH; the error names the packages to install.
pub fn tool(names: &[&str], packages: &str) -> Result<PathBuf> {
    let found = find_program(names);
    found.with_context(|| format!("there is no {} here: sudo apt-get install {packages}", names.join(", ")))
}

fn find_program(names: &[&str]) -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&search_path).collect();
    names
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file()))
}

/// Builds the program of a side from one of our C files (`c/`).
pub fn compile(compiler: &Path, source: &str, side: &str, libraries: &[&str]) -> Result<PathBuf> {
    let stem = source.split(['_', '.']).next().unwrap_or(source);
    let program = folder()?.join(format!("{stem}-{}", side.replace(' ', "-").to_lowercase()));
    let mut command = Command::new(compiler);
    // The compiler takes MPI_STATUSES_IGNORE of MPICH for an array without elements.
    command.args(["-Wall", "-Wextra", "-Wno-stringop-overflow"]);
    command.args(["-std=gnu11", "-O3", "-march=native", "-o"]).arg(&program);
    output_of(command.arg(root().join("bench/c").join(source)).args(libraries))?;
    Ok(program)
}

/// The same with the compiler wrapper of a library.
pub fn compile_by(side: Side, source: &str, libraries: &[&str]) -> Result<PathBuf> {
    compile(&side.tools()?.compiler, source, side.name(), libraries).with_context(|| side.name())
}

/// The command that starts a program by the launcher of a library.
pub fn launcher(side: Side, pes: usize, is_crowded: bool, program: &Path) -> Result<Command> {
    let mut command = Command::new(side.tools()?.launcher);
    let binding = if is_crowded { "none" } else { "core" };
    if side == Side::Mpich {
        command.args(["-bind-to", binding]);
    } else {
        command.args(geteuid().is_root().then_some("--allow-run-as-root")).args(["--bind-to", binding]);
        if is_crowded {
            command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        }
        // Debian's Open MPI and UCX have conflicting memory hooks: without this setting, programs crash at
        // exit.
        command.env("OMPI_MCA_opal_common_ucx_opal_mem_hooks", "0");
        command.env("SHMEM_SYMMETRIC_HEAP_SIZE", "512M");
    }
    command.args(["-n", &pes.to_string()]).arg(program);
    Ok(command)
}

/// The command that starts one of our applications, or a program, with its arguments by `pelago run`.
pub fn run_of(pelago: &Path, pes: usize, is_crowded: bool, words: &[&str]) -> Command {
    let mut command = Command::new(pelago);
    command.arg("run").args((!is_crowded).then_some("--bind")).args(["-n", &pes.to_string()]).args(words);
    command
}

/// The effort options of the programs: if PEs share cores, a block lasts for many time slices of the
/// scheduler.
pub fn effort(is_crowded: bool) -> [&'static str; 6] {
    let [block_us, blocks, budget_ms] = if is_crowded { ["5000", "21", "150"] } else { ["200", "101", "30"] };
    ["--block-us", block_us, "--blocks", blocks, "--budget-ms", budget_ms]
}

/// One line of a program: the times of an operation in nanoseconds, over the blocks of one run.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Printed {
    /// The kind of the measurement.
    #[serde(default)]
    pub bench: String,
    /// The operation.
    pub operation: String,
    /// Bytes of a block.
    pub bytes: usize,
    /// The fabric, if the line names it.
    pub fabric: Option<String>,
    /// The number of blocks, if the line has it.
    pub samples: Option<usize>,
    /// The unit of the numbers; after parsing, nanoseconds.
    unit: Option<String>,
    /// The shortest block.
    pub min: f64,
    /// The median block.
    pub median: f64,
    #[serde(default)]
    max: f64,
    /// The mean of all blocks, if the line has it.
    pub mean: Option<f64>,
}

impl Printed {
    /// Parses a line, and converts its numbers to nanoseconds per operation.
    pub fn read(line: &str) -> Result<Printed> {
        let mut printed: Printed =
            serde_json::from_str(line).with_context(|| format!("cannot read {line:?}"))?;
        let of_rate = match printed.unit.take().as_deref() {
            None | Some("ns") => None,
            Some("M/s") => Some(1e3),
            Some("GB/s") => Some(printed.bytes as f64),
            Some(other) => bail!("cannot read the unit {other:?} in {line:?}"),
        };
        if let Some(work) = of_rate {
            (printed.min, printed.median) = (work / printed.max, work / printed.median);
        }
        let Printed { min, median, .. } = printed;
        let is_mean = |mean: f64| min <= mean && mean.is_finite();
        let is_valid = 0.0 < min && min <= median && median.is_finite() && printed.mean.is_none_or(is_mean);
        ensure!(is_valid, "not the figures of blocks: {line:?}");
        Ok(printed)
    }

    /// Runs a program, and parses its lines.
    pub fn of(command: &mut Command) -> Result<Vec<Printed>> {
        let text = output_of(command)?;
        text.lines().filter(|line| line.starts_with('{')).map(Printed::read).collect()
    }

    /// The side of these results, in a run of `side`.
    pub fn side(&self, side: Side) -> Side {
        if self.bench == "collective-copies" { Side::Copies } else { side }
    }

    /// The result of the run: if each PE has a core, its shortest block, which other load has disturbed
    /// least; otherwise the median, because the shortest block depends on the scheduler.
    pub fn figure_ns(&self, pes: usize, cores: usize) -> f64 {
        if pes <= cores { self.min } else { self.median }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowded_programs_measure_in_longer_blocks() {
        assert_eq!(effort(true).join(" "), "--block-us 5000 --blocks 21 --budget-ms 150");
        assert_eq!(effort(false).join(" "), "--block-us 200 --blocks 101 --budget-ms 30");
    }

    #[test]
    fn lines_are_read_and_nonsense_is_refused() {
        let line =
            r#"{"bench":"collective","operation":"reduce","bytes":8,"min":2.5,"median":3.0,"max":4.0}"#;
        let printed = Printed::read(line).unwrap();
        let copies = Printed::read(&line.replace("collective", "collective-copies")).unwrap();
        assert_eq!([printed.side(Side::Mpich), copies.side(Side::Pelago)], [Side::Mpich, Side::Copies]);
        assert_eq!((printed.figure_ns(2, 2), printed.figure_ns(3, 2)), (2.5, 3.0));
        for (from, to) in [("2.5", "0.0"), ("2.5", "3.5"), ("8", "\"8\""), ("min", "max")] {
            assert!(Printed::read(&line.replace(from, to)).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn only_crowded_jobs_are_unbound() {
        let words = |pes, is_crowded| {
            let command = run_of(Path::new("pelago"), pes, is_crowded, &["app:perf"]);
            command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(2, false), "run --bind -n 2 app:perf");
        assert_eq!(words(4, true), "run -n 4 app:perf");
    }

    #[test]
    fn programs_are_found_in_their_order() {
        assert!(find_program(&["no-such-program", "sh"]).is_some_and(|program| program.ends_with("sh")));
        assert_eq!(find_program(&["no-such-program"]), None);
        let said = tool(&["no-such-program"], "some-package").unwrap_err().to_string();
        assert!(said.contains("no-such-program") && said.ends_with("install some-package"), "{said}");
    }
}
