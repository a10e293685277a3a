//! `cargo xtask compare net`: between nodes, over TCP. Pelago over its own provider and over libfabric, Open
//! MPI, MPICH, and a raw socket, between two network namespaces that simulate two hosts.
//!
//! Invariant: all are timed by the same loop (c/net_rows.h), run without binding, have different host names
//! and alternate run by run. A ratio is the median, over the rounds, of our time to theirs in the same round.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::base::hosts::{self, Host, namespaces};
use crate::base::peers::{self, Printed, Side};
use crate::base::rounds::{self, Files, Gate, Row, cores, gates_table};
use crate::base::workspace::{output_of, root};
use crate::topics::mpi::{SWEEP, Sweep};

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// The two network namespaces (`ip netns`), with a link and an IPv4 address each; needs root
    #[arg(long, value_name = "A,B", value_parser = namespaces)]
    netns: [String; 2],
    /// PEs in each namespace
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    ppn: u32,
    /// Number of rounds; in each, every side runs every row
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Run everything next to a process that computes, and compare the means of all blocks
    #[arg(long)]
    busy: bool,
    /// Let Open MPI yield its core while it waits (mpi_yield_when_idle); by default it does not
    #[arg(long)]
    r#yield: bool,
    /// Run Pelago's MPI library, with the program of the other libraries, instead of its OpenSHMEM library
    #[arg(long)]
    mpi: bool,
    /// Run the operations of `compare mpi --parts sweep`, with Pelago's MPI library; no row has a bound
    #[arg(long)]
    sweep: bool,
    #[command(flatten)]
    rows: Sweep,
    /// Leave Pelago over libfabric out
    #[arg(long)]
    no_libfabric: bool,
    /// The libraries to compare with: open-mpi, mpich
    #[arg(long, value_enum, value_delimiter = ',', default_value = "open-mpi,mpich")]
    against: Vec<Side>,
    #[command(flatten)]
    files: Files,
}

impl Compare {
    /// Builds the programs, runs all rounds, prints the comparison, and fails if a gate fails.
    pub fn run(&self) -> Result<()> {
        let programs = Programs::build(self)?;
        let _busy = self.busy.then(Busy::start).transpose()?;
        let (pes, cores) = (2 * self.ppn as usize, cores()?);
        let mut sides = vec![Side::Pelago];
        sides.extend((!self.no_libfabric).then_some(Side::OverLibfabric));
        // UCX cannot distinguish the simulated nodes, and the socket program has one process per node.
        sides.extend(self.against.iter().filter(|&&side| self.ppn == 1 || side != Side::Mpich));
        sides.extend((self.ppn == 1 && !self.sweep).then_some(Side::Socket));
        let figure_ns = |printed: &Printed| figure_ns(printed, self.busy, pes, cores);
        let run = |side, _: &str| Printed::of(&mut programs.command(side, self)?);
        let collected = rounds::measure("", self.rounds, &sides, &["all rows"], figure_ns, run)?;
        let rows = by_operation(collected.rows(pes));
        let gates: Vec<Gate> = rows.iter().filter(|_| !self.sweep).flat_map(|row| gates(row, self)).collect();
        let tables = [rounds::table(&heading(self), &rows), gates_table(&gates)];
        rounds::finish("Between two nodes over TCP", &rows, &gates, &tables, &self.files)
    }
}

/// The figure of a line. Next to a process that computes it is the mean of all blocks, because that process
/// did not run during the shortest block.
fn figure_ns(printed: &Printed, is_busy: bool, pes: usize, cores: usize) -> f64 {
    match is_busy {
        true => printed.mean.expect("the programs of this comparison print means"),
        false => printed.figure_ns(pes, cores),
    }
}

/// The rows in the order of charts: the sizes of an operation one after the other.
fn by_operation(mut rows: Vec<Row>) -> Vec<Row> {
    let order: Vec<String> = rows.iter().map(|row| row.operation.clone()).collect();
    rows.sort_by_key(|row| order.iter().position(|operation| *operation == row.operation));
    rows
}

fn heading(args: &Compare) -> String {
    let [first, second] = &args.netns;
    let beside = if args.busy { ", beside a process that computes (means of all blocks)" } else { "" };
    let waiting = if args.r#yield { "yields" } else { "spins" };
    let ours = if args.mpi || args.sweep { "MPI" } else { "OpenSHMEM" };
    format!(
        "{} a node, in the network namespaces {first} and {second}, not bound{beside}.\n\
         Pelago by its {ours} library. Open MPI {waiting} while it waits.\n\
         Microseconds an operation, the median over the rounds; in\n\
         brackets the median of the ratios (ours to theirs). half-round-trip: a put with signal each way,\n\
         or a message; bandwidth: one of 16 transfers; put-rate: one of 64 puts and a quiet. Of a socket,\n\
         barrier is an exchange of 8 bytes, put-quiet and get are a round trip.\n",
        if args.ppn == 1 { "One PE".to_owned() } else { format!("{} PEs", args.ppn) }
    )
}

/// The bounds of a row.
fn gates(row: &Row, args: &Compare) -> Vec<Gate> {
    let is_small = row.bytes <= 1024;
    let to_open_mpi = match (row.operation.as_str(), args.busy, args.ppn) {
        ("half-round-trip", true, _) => Some(0.8),
        ("half-round-trip", false, 1) => Some(0.7),
        ("bandwidth", ..) => Some(1.0),
        ("barrier" | "broadcast" | "all-reduce" | "all-to-all" | "all-gather", _, 1) => {
            Some(if is_small { 0.7 } else { 0.9 })
        }
        ("barrier" | "broadcast" | "all-reduce" | "all-to-all" | "all-gather", ..) => {
            Some(if is_small { 0.8 } else { 1.0 })
        }
        _ => None,
    };
    let to_socket = match row.operation.as_str() {
        "half-round-trip" | "put-quiet" | "get" => Some(1.4),
        "bandwidth" => Some(1.0 / 0.9),
        _ => None,
    };
    let to_libfabric = (row.operation == "put-rate").then_some(1.0 / 3.0);
    let bounds =
        [(Side::OpenMpi, to_open_mpi), (Side::Socket, to_socket), (Side::OverLibfabric, to_libfabric)];
    let gate = |(side, bound): (Side, Option<f64>)| {
        let name = format!("{}, {}", row.name(), side.name());
        Some(Gate { name, ratio: row.sides.get(&side)?.ratio?, bound: bound? })
    };
    bounds.into_iter().filter_map(gate).collect()
}

/// The compiled programs.
struct Programs {
    of: BTreeMap<Side, PathBuf>,
    pelago: PathBuf,
    /// The link of each namespace.
    hosts: [Host; 2],
}

impl Programs {
    fn build(args: &Compare) -> Result<Programs> {
        let prefix = peers::install("pelago")?;
        // A mean next to a process that computes needs blocks from many time slices.
        let flags: &[&str] = if args.busy { &["-DBLOCKS=60"] } else { &[] };
        let (wrapper, ours, theirs) = match (args.sweep, args.mpi) {
            (true, _) => ("mpicc", SWEEP, SWEEP),
            (false, true) => ("mpicc", "net_mpi.c", "net_mpi.c"),
            (false, false) => ("oshcc", "net_shmem.c", "net_mpi.c"),
        };
        let ours = peers::compile(&prefix.join("bin").join(wrapper), ours, Side::Pelago.name(), flags)?;
        let socket = peers::compile(Path::new("gcc"), "net_raw.c", Side::Socket.name(), flags)?;
        let mut of = BTreeMap::from([(Side::OverLibfabric, ours.clone()), (Side::Pelago, ours)]);
        of.insert(Side::Socket, socket);
        for &side in &args.against {
            of.insert(side, peers::compile_by(side, theirs, flags)?);
        }
        Ok(Programs { of, pelago: prefix.join("bin/pelago"), hosts: hosts::pair(&args.netns)? })
    }

    /// The command that runs a side's program.
    fn command(&self, side: Side, args: &Compare) -> Result<Command> {
        let [first, second] = self.hosts.each_ref().map(|host| &host.address);
        let (n, ppn) = ((2 * args.ppn).to_string(), args.ppn);
        let hosts = format!("{first}:{ppn},{second}:{ppn}");
        let script = root().join("cli/tests/command/remote.sh");
        let mut command = hosts::on_first(&self.hosts);
        command.env("REMOTE_FOLDER", peers::folder()?);
        let Some(program) = self.of.get(&side) else { bail!("{} has no program here", side.name()) };
        match side {
            Side::Pelago | Side::OverLibfabric => {
                let fabric = if side == Side::Pelago { "tcp" } else { "ofi" };
                command.arg(&self.pelago).arg("run").args(hosts::launch_words(&self.hosts, ppn as usize));
                command.args(["--env", &format!("PELAGO_FABRIC={fabric}")]);
                command.arg(program);
            }
            Side::OpenMpi => {
                command.args(["unshare", "--uts", "sh", "-c", "hostname launcher; exec \"$@\"", "sh"]);
                let launcher = side.tools()?.launcher;
                // The component that starts daemons has another name from Open MPI 5 on.
                let is_old = output_of(Command::new(&launcher).arg("--version"))?.contains(") 4.");
                let (starter, agent) =
                    if is_old { ("rsh", "plm_rsh_agent") } else { ("ssh", "plm_ssh_agent") };
                command.arg(launcher).args(["--allow-run-as-root", "--bind-to", "none"]);
                for (name, value) in [("pml", "ob1"), ("btl", "tcp,self,vader"), ("plm", starter)] {
                    command.args(["--mca", name, value]);
                }
                command.args(["--mca", agent]).arg(&script);
                if args.r#yield {
                    command.args(["--mca", "mpi_yield_when_idle", "1"]);
                }
                // Debian's Open MPI and UCX have conflicting memory hooks.
                command.args(["--mca", "opal_common_ucx_opal_mem_hooks", "0"]);
                command.env("OMPI_MCA_opal_common_ucx_opal_mem_hooks", "0");
                command.args(["-x", "OMPI_MCA_opal_common_ucx_opal_mem_hooks", "--host", &hosts, "-n", &n]);
                command.arg(program);
            }
            Side::Mpich => {
                command.arg(side.tools()?.launcher);
                command.args(["-localhost", first, "-launcher", "ssh", "-launcher-exec"]);
                command.arg(&script).args(["-hosts", &format!("{first},{second}"), "-ppn"]);
                command.args([&ppn.to_string(), "-n", &n]);
                // Debian's MPICH uses UCX, which would otherwise use shared memory.
                let devices = self.hosts.each_ref().map(|host| host.device.as_str()).join(",");
                command.args(["-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", &devices]);
                command.arg(program);
            }
            Side::Socket => {
                command = Command::new(program);
                command.arg(first).args(&args.netns);
            }
            _ => bail!("{} does not run between nodes", side.name()),
        }
        if args.sweep {
            command.args(args.rows.words(2 * ppn as usize > cores()?));
        }
        Ok(command)
    }
}

/// A background process that computes until this value is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Result<Busy> {
        let mut command = Command::new("sh");
        Ok(Busy(command.args(["-c", "while :; do :; done"]).spawn().context("cannot start sh")?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // The child only computes: an error because it is gone already is ignored.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rounds::tests::args;
    use crate::base::rounds::{Cell, Collected};

    #[test]
    fn next_to_a_process_that_computes_means_are_compared() {
        let line = r#"{"operation":"barrier","bytes":0,"min":1.0,"median":2.0,"mean":5.0}"#;
        let figure = |is_busy, pes| figure_ns(&Printed::read(line).unwrap(), is_busy, pes, 2);
        assert_eq!([figure(true, 2), figure(false, 2), figure(false, 4)], [5.0, 1.0, 2.0]);
        assert!(Printed::read(&line.replace("5.0", "0.5")).is_err(), "a mean below the minimum");
    }

    #[test]
    fn bounds_depend_on_size_and_crowding() {
        let bounds = |words: &str, operation: &str, bytes| {
            let mut collected = Collected::default();
            let figures = [(Side::Pelago, 1.0), (Side::OpenMpi, 2.0), (Side::Socket, 1.0)];
            for (side, ns) in figures.into_iter().chain([(Side::OverLibfabric, 4.0)]) {
                collected.add(Cell { operation: operation.to_owned(), bytes }, side, 0, ns, ns);
            }
            let rows = collected.rows(2);
            let found = gates(&rows[0], &args(&format!("net --netns a,b {words}")));
            found.iter().map(|gate| (gate.bound, gate.ratio)).collect::<Vec<_>>()
        };
        assert_eq!(bounds("", "half-round-trip", 8), [(0.7, 0.5), (1.4, 1.0)]);
        assert_eq!(bounds("--busy", "half-round-trip", 8), [(0.8, 0.5), (1.4, 1.0)]);
        assert_eq!(bounds("", "bandwidth", 65536), [(1.0, 0.5), (1.0 / 0.9, 1.0)]);
        assert_eq!(bounds("", "barrier", 0), [(0.7, 0.5)]);
        assert_eq!(bounds("", "all-reduce", 1 << 20), [(0.9, 0.5)]);
        assert_eq!(bounds("--ppn 2", "all-reduce", 1024), [(0.8, 0.5)]);
        assert_eq!(bounds("--ppn 2", "broadcast", 65536), [(1.0, 0.5)]);
        assert_eq!(bounds("", "put-rate", 8), [(1.0 / 3.0, 0.25)]);
    }
}
