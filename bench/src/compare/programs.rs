//! The programs that are compared: how they are built, started and understood.
//!
//! Invariant: all take the same arguments and print the same lines. Where every PE has a core they are bound
//! to cores; where not, none is, and Open MPI is told to yield while it waits, as its documentation advises.
//! MPICH's device (ch4) does not yield at all.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::compare::find_program;
use crate::workspace::{cargo, metadata, output_of, root};

/// A library, ours, or what no library can be expected to beat.
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
    /// Plain copies of what an operation writes at a PE, all PEs at the same time, in the process of ours.
    #[value(skip)]
    Copies,
}

impl Side {
    /// All of them, as legends name them.
    pub const ALL: [Side; 8] = {
        use Side::*;
        [Pelago, OverLibfabric, OpenMpi, Mpich, Oshmem, Libfabric, Socket, Copies]
    };

    /// As tables name it.
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

    /// Whether this is another library.
    pub const fn is_other(self) -> bool {
        !matches!(self, Side::Pelago | Side::Copies | Side::OverLibfabric | Side::Socket)
    }

    /// Compilers and launchers, the C program, and the Debian packages that have the former.
    fn needs(self) -> Option<Needs> {
        let needs =
            |compilers, launchers, source, packages| Some(Needs { compilers, launchers, source, packages });
        let open_mpi = "openmpi-bin libopenmpi-dev";
        match self {
            Side::Pelago | Side::Libfabric | Side::OverLibfabric | Side::Socket | Side::Copies => None,
            Side::OpenMpi => needs(&["mpicc.openmpi"], &["mpirun.openmpi"], "mpi.c", open_mpi),
            Side::Mpich => needs(&["mpicc.mpich"], &["mpiexec.mpich"], "mpi.c", "mpich libmpich-dev"),
            Side::Oshmem => needs(&["oshcc"], &["oshrun"], "oshmem.c", open_mpi),
        }
    }
}

struct Needs {
    compilers: &'static [&'static str],
    launchers: &'static [&'static str],
    source: &'static str,
    packages: &'static str,
}

/// What a run is to measure.
pub struct Asked<'a> {
    /// The operation.
    pub operation: &'a str,
    /// Bytes of a block.
    pub sizes: &'a [usize],
    /// Whether PE 0 is the root always.
    pub is_root_fixed: bool,
}

impl Asked<'_> {
    /// The arguments of all programs. Where PEs share cores, a block outlasts many turns of the scheduler.
    fn arguments(&self, is_crowded: bool) -> Vec<String> {
        let sizes: Vec<_> = self.sizes.iter().map(usize::to_string).collect();
        let [block_us, blocks, budget_ms] =
            if is_crowded { ["5000", "21", "150"] } else { ["200", "101", "30"] };
        let root = if self.is_root_fixed { "fixed" } else { "turn" };
        let pairs = [
            ("--operations", self.operation),
            ("--sizes", &sizes.join(",")),
            ("--root", root),
            ("--block-us", block_us),
            ("--blocks", blocks),
            ("--budget-ms", budget_ms),
        ];
        pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_owned()]).collect()
    }
}

/// One line of a program: nanoseconds of an operation, over the blocks of one run.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Printed {
    /// What was measured of it.
    pub bench: String,
    /// Which operation.
    pub operation: String,
    /// Bytes of a block.
    pub bytes: usize,
    /// The shortest block.
    pub min: f64,
    /// The middle one.
    pub median: f64,
}

impl Printed {
    /// Whose figures these are, of a run of `side`.
    pub fn side(&self, side: Side) -> Side {
        if self.bench == "collective-copies" { Side::Copies } else { side }
    }

    /// What the run counts as: where each PE has a core its shortest block, which least of what else the
    /// machine does has disturbed; else the middle one, as a block may be short by luck of the scheduler.
    pub fn figure_ns(&self, pes: usize, cores: usize) -> f64 {
        if pes <= cores { self.min } else { self.median }
    }
}

/// The programs, ready to run.
pub struct Programs {
    sides: Vec<Side>,
    pelago: PathBuf,
    folder: PathBuf,
}

impl Programs {
    /// Builds ours and those of `against`.
    pub fn build(against: &[Side]) -> Result<Programs> {
        let target = metadata()?.target_directory;
        let folder = target.join("compare");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut sides = vec![Side::Pelago];
        for &side in against {
            compile(side, &folder)?;
            sides.push(side);
        }
        let status = cargo(&["build", "--release", "-p", "pelago-cli"]).status()?;
        ensure!(status.success(), "cannot build pelago: {status}");
        Ok(Programs { sides, pelago: target.join("release/pelago"), folder })
    }

    /// Whom to compare: ours first.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }

    /// Runs a program; what it measured, by size. Nothing if the library has no such operation.
    pub fn run(&self, side: Side, pes: usize, cores: usize, asked: &Asked<'_>) -> Result<Vec<Printed>> {
        let is_crowded = pes > cores;
        let mut command = match side {
            Side::Pelago => self.pelago(pes, is_crowded, &["coll", "--copies"]),
            _ => launcher(side, pes, is_crowded)?,
        };
        if side != Side::Pelago {
            command.arg(program(side, &self.folder));
        }
        let text = output_of(command.args(asked.arguments(is_crowded)))?;
        let lines = text.lines().filter(|line| line.starts_with('{'));
        let printed = lines.map(parse).collect::<Result<Vec<_>>>()?;
        let is_other = |printed: &&Printed| printed.operation != asked.operation;
        ensure!(printed.iter().find(is_other).is_none(), "{}: another operation: {text}", side.name());
        Ok(printed)
    }

    /// Half a round trip of a flag of 8 bytes between PEs 0 and 1.
    pub fn one_way_ns(&self, pes: usize) -> Result<f64> {
        #[derive(Deserialize)]
        struct Pair {
            yardstick_ns: f64,
        }
        let text = output_of(&mut self.pelago(pes, false, &["pairs", "--count", "1", "barrier-one-way"]))?;
        let pair: Pair = serde_json::from_str(&text).with_context(|| format!("cannot read {text:?}"))?;
        Ok(pair.yardstick_ns)
    }

    fn pelago(&self, pes: usize, is_crowded: bool, what: &[&str]) -> Command {
        let mut command = Command::new(&self.pelago);
        command.arg("run").args((!is_crowded).then_some("--bind"));
        command.args(["-n", &pes.to_string(), "perf"]).args(what);
        command
    }
}

fn program(side: Side, folder: &Path) -> PathBuf {
    folder.join(format!("coll-{}", side.name().replace(' ', "-").to_lowercase()))
}

fn compile(side: Side, folder: &Path) -> Result<()> {
    let Some(needs) = side.needs() else { return Ok(()) };
    let help = || format!("{}: sudo apt-get install {}", side.name(), needs.packages);
    let compiler = find_program(needs.compilers).with_context(help)?;
    find_program(needs.launchers).with_context(help)?;
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-O3", "-march=native", "-Wall", "-Wextra", "-o"]);
    command.arg(program(side, folder)).arg(root().join("bench/src/compare/coll").join(needs.source));
    output_of(&mut command).with_context(help)?;
    Ok(())
}

/// The launcher of a library with its options, up to the program.
pub fn launcher(side: Side, pes: usize, is_crowded: bool) -> Result<Command> {
    let names = side.needs().map_or(&[][..], |needs| needs.launchers);
    let mut command = Command::new(find_program(names).context("the launcher is gone")?);
    let binding = if is_crowded { "none" } else { "core" };
    if side == Side::Mpich {
        command.args(["-bind-to", binding]);
    } else {
        // SAFETY: geteuid has no arguments and no preconditions, as POSIX promises.
        if unsafe { libc::geteuid() } == 0 {
            command.arg("--allow-run-as-root");
        }
        command.args(["--bind-to", binding]);
        if is_crowded {
            command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        }
        // Debian's Open MPI and UCX disagree about memory hooks: without this, programs crash at the end.
        command.env("OMPI_MCA_opal_common_ucx_opal_mem_hooks", "0");
        command.env("SHMEM_SYMMETRIC_HEAP_SIZE", "512M");
    }
    command.args(["-n", &pes.to_string()]);
    Ok(command)
}

/// A line of a program.
pub fn parse(line: &str) -> Result<Printed> {
    let printed: Printed = serde_json::from_str(line).with_context(|| format!("cannot read {line:?}"))?;
    ensure!(0.0 < printed.min && printed.min <= printed.median, "not the figures of blocks: {line:?}");
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_everything() {
        let asked = Asked { operation: "reduce", sizes: &[8, 4096], is_root_fixed: true };
        let words = asked.arguments(true).join(" ");
        let common = "--operations reduce --sizes 8,4096 --root fixed";
        assert_eq!(words, format!("{common} --block-us 5000 --blocks 21 --budget-ms 150"));
        assert!(asked.arguments(false).join(" ").ends_with("--block-us 200 --blocks 101 --budget-ms 30"));
    }

    #[test]
    fn lines_are_read_and_nonsense_is_refused() {
        let line =
            r#"{"bench":"collective","operation":"reduce","bytes":8,"min":2.5,"median":3.0,"max":4.0}"#;
        let printed = parse(line).unwrap();
        let copies = parse(&line.replace("collective", "collective-copies")).unwrap();
        assert_eq!([printed.side(Side::Mpich), copies.side(Side::Pelago)], [Side::Mpich, Side::Copies]);
        assert_eq!((printed.figure_ns(2, 2), printed.figure_ns(3, 2)), (2.5, 3.0));
        for (from, to) in [("2.5", "0.0"), ("2.5", "3.5"), ("8", "\"8\""), ("min", "max")] {
            assert!(parse(&line.replace(from, to)).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn only_crowded_jobs_are_unbound() {
        let words = |pes, is_crowded| {
            let programs = Programs { sides: vec![], pelago: "pelago".into(), folder: "folder".into() };
            let command = programs.pelago(pes, is_crowded, &["coll"]);
            command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(2, false), "run --bind -n 2 perf coll");
        assert_eq!(words(4, true), "run -n 4 perf coll");
    }
}
