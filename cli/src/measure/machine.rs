//! `pelago tune measure`: a machine file of `pelago model`, from measurements.
//!
//! Invariant: every value of the file says where it comes from; the measurements are those of `pelago bench`,
//! and the times of the model beside them are simulated.

mod file;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use pelago_bench::record::{Bench, Operation, Pair, Place, Way};
use pelago_bench::{Record, Summary, parse, perf_job, perf_job_on};
use pelago_boot::{HostSlots, Machines, outln, tell};
use pelago_model::Machine;
use pelago_model::fit::{Deviation, Observation, Probe, fit};
use pelago_model::machine::{Contention, Links};
use pelago_report::{Bytes, Table, figure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::hosts::Hosts;
use crate::whole_file::WholeFile;

/// Measure this machine, or two hosts, and write a machine file for `pelago model`
///
/// Measures round trips, floods, gets and the barrier of two PEs, one on each of the first two hosts, and
/// copies, reductions and signals within a node. Then latency, overheads, gap and bandwidths are fitted to
/// these times (least absolute deviations of their logarithms). The table shows both by size. Without
/// --hosts both PEs are on this machine and communicate over the fabric, as between nodes. Takes about a
/// minute; other programs disturb it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Measure {
    #[command(flatten)]
    hosts: Hosts,
    /// The fabric between the PEs; default: that of PELAGO_FABRIC
    #[arg(long, value_enum)]
    fabric: Option<Fabric>,
    /// PEs of a node of the machine; default: the cores that this command may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pes_per_node: Option<u32>,
    /// Name of the machine; default: the name of the file
    #[arg(long)]
    name: Option<String>,
    /// Path of the file to write
    #[arg(long, value_name = "FILE", default_value = "machine.toml")]
    output: PathBuf,
    /// Measure for a short time only, as a test: the values are not reliable
    #[arg(long)]
    quick: bool,
    /// Print one JSON object per measurement instead of the table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago tune measure --fabric tcp                       TCP between two PEs of this machine
  pelago tune measure --hosts a,b --output ab.toml       the network between two hosts
  pelago tune measure --hosts a,b --pes-per-node 64 --fabric ofi --output ab.toml
  pelago model compare --machine ab.toml --op all-reduce --pes 4096
  pelago tune simulate --machine ab.toml -n 64,4096 --output tuning.toml";

/// A fabric between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fabric {
    /// Shared memory, as an ordinary provider
    Shm,
    /// TCP
    Tcp,
    /// Libfabric
    Ofi,
}

/// The sizes whose copies are measured, in bytes.
const COPIES: [&str; 3] = ["4096", "65536", "1048576"];
/// The size of a reduction, and of the copies of all PEs at once, in bytes.
const REDUCED: usize = 64 << 10;
const COPIED: usize = 1 << 20;
/// The least bytes of a put whose flood tells the bandwidth of a fabric that gathers puts: shorter ones come
/// together.
const FLOOD_BYTES_MIN: usize = 128 << 10;

/// The measured times.
struct Measured {
    observations: Vec<Observation>,
    /// The fabric between nodes, by its own name.
    fabric: String,
    /// Of a put within a node, and of a broadcast of a word by a schedule between nodes, in nanoseconds.
    put_within_node: f64,
    broadcast: f64,
    /// In bytes per second: a copy, the reduction of two operands, the copies of both PEs at once.
    copy: f64,
    reduce: f64,
    memory: f64,
}

/// A measurement, for a program to read.
#[derive(Serialize)]
struct Line {
    measurement: String,
    bytes: u64,
    within_node: bool,
    fitted: bool,
    measured_ns: f64,
    modelled_ns: f64,
}

impl Measure {
    /// Measures, fits, prints the table, writes the file.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let output = WholeFile::create(&self.output)?;
        let measured = self.measure()?;
        let fitted = fit(&self.start(&measured)?, &measured.observations);
        let (between, within) = self.deviations(&fitted, &measured.observations);
        // The runtime's own work in a step that waits is not in the microbenchmarks.
        let one_way = Probe::OneWay { bytes: 8 }.nanoseconds(&fitted, false);
        let mut machine = fitted.clone();
        machine.network.wait_overhead = ((measured.broadcast - one_way).clamp(0.0, 1e6) * 1e3) as u64;
        output.finish(&file::text(&machine, &measured.fabric, &said(between, within)))?;
        match self.json {
            true => lines(&fitted, &measured.observations)
                .iter()
                .try_for_each(|line| outln!("{}", serde_json::to_string(line)?).context("writing")),
            false => {
                outln!("{}", table(&fitted, &measured.observations))?;
                outln!("Deviation of the fit: {}", said(between, within))?;
                let path = self.output.display();
                Ok(outln!("Written to {path}. To use it: pelago model compare --machine {path} ...")?)
            }
        }?;
        Ok(ExitCode::SUCCESS)
    }

    /// Of the times between nodes, and in a node.
    fn deviations(&self, machine: &Machine, all: &[Observation]) -> (Deviation, Deviation) {
        let of = |within: bool| all.iter().filter(|of| of.within_node == within).copied().collect::<Vec<_>>();
        (Deviation::of(machine, &of(false)), Deviation::of(machine, &of(true)))
    }

    /// The jobs: one PE on each of two hosts, or both on one.
    fn job<T: DeserializeOwned>(
        &self,
        hosts: Option<&Machines>,
        within_node: bool,
        args: &[&str],
    ) -> anyhow::Result<Vec<T>> {
        let fabric = self.fabric.and_then(|fabric| Some(fabric.to_possible_value()?.get_name().to_owned()));
        let mut variables = vec![("PELAGO_CHECK", "off"), ("PELAGO_COLL_FORM", "schedule")];
        variables.push(("PELAGO_COLL", "broadcast=binomial"));
        variables.extend((!within_node).then_some(("PELAGO_ROUTE", "net")));
        variables.extend(fabric.as_deref().map(|fabric| ("PELAGO_FABRIC", fabric)));
        let args = [args, if self.quick { &["--silent", "--quick"] } else { &["--silent"] }].concat();
        let bind = pelago_boot::cores() > 1;
        let lines = match hosts {
            None => perf_job(2, bind, &variables, &args)?,
            Some(machines) => {
                let slots = if within_node { 2 } else { 1 };
                let names = machines.hosts.iter().map(|host| host.name.clone());
                let hosts = names.map(|name| HostSlots { name, slots }).take(3 - slots).collect();
                perf_job_on(&Machines { hosts, ..machines.clone() }, bind, &variables, &args)?
            }
        };
        parse(&lines)
    }

    fn measure(&self) -> anyhow::Result<Measured> {
        let machines = self.hosts.machines()?;
        let hosts = machines.as_ref();
        ensure!(
            hosts.is_none_or(|machines| machines.hosts.len() > 1),
            "--hosts: name two hosts, such as a,b, to measure the network between them; without --hosts two \
             PEs of this machine communicate over the fabric"
        );
        let mut between: Vec<Record> = Vec::new();
        for suite in ["signals", "barrier", "ping", "links", "rate"] {
            tell(&format!("pelago tune measure: {suite} between nodes\n"));
            between.extend(self.job::<Record>(hosts, false, &[suite])?);
        }
        tell("pelago tune measure: within a node\n");
        let within: Vec<Record> = self.job(hosts, true, &["signals"])?;
        let put: Vec<Record> = self.job(hosts, true, &["fabric", "--rows", "put"])?;
        let words = ["coll", "--operations", "broadcast", "--sizes", "8"];
        let broadcast: Vec<Record> = self.job(hosts, false, &words)?;
        let broadcast = broadcast.first().context("no time of a broadcast")?.summary.median;
        let fabric = between.iter().find_map(|record| record.fabric.clone());
        let fabric = fabric.context("the PEs map each other's memory: name a fabric, or two hosts")?;
        let is_gathered = !fabric.starts_with("ofi");
        let observed = between.iter().filter_map(|record| observation(record, false, is_gathered));
        let observations: Vec<_> =
            observed.chain(within.iter().filter_map(|record| observation(record, true, true))).collect();
        let put_within_node = put.first().context("no time of a put")?.summary.median;
        let copy = self.copy_rate(hosts)?;
        let (reduce, memory) = (self.reduce_rate(hosts)?, self.memory_rate(hosts)?);
        Ok(Measured { observations, fabric, put_within_node, broadcast, copy, reduce, memory })
    }

    /// The rate of memcpy: the median of several sizes, as caches differ.
    fn copy_rate(&self, hosts: Option<&Machines>) -> anyhow::Result<f64> {
        let mut rates = Vec::new();
        for bytes in COPIES {
            let pairs: Vec<Pair> = self.job(hosts, true, &["pairs", "put", "--bytes", bytes])?;
            let times: Vec<_> = pairs.iter().map(|pair| pair.yardstick_ns).collect();
            rates.push(bytes.parse::<f64>()? / Summary::of(&times).median * 1e9);
        }
        Ok(Summary::of(&rates).median)
    }

    /// The rate of a loop over the sources of two PEs, without the barrier behind it.
    fn reduce_rate(&self, hosts: Option<&Machines>) -> anyhow::Result<f64> {
        let bytes = REDUCED.to_string();
        let loops: Vec<Pair> = self.job(hosts, true, &["pairs", "all-reduce", "--bytes", &bytes])?;
        let barriers: Vec<Record> = self.job(hosts, true, &["barrier"])?;
        let barrier = barriers.iter().find(|record| record.label.operation == Operation::Barrier);
        let barrier = barrier.map_or(0.0, |record| record.summary.median);
        let times: Vec<_> = loops.iter().map(|pair| pair.yardstick_ns).collect();
        let time = Summary::of(&times).median;
        Ok(REDUCED as f64 / (time - barrier).max(time / 2.0) * 1e9)
    }

    /// The rate at which two PEs copy together: each copies the blocks of both.
    fn memory_rate(&self, hosts: Option<&Machines>) -> anyhow::Result<f64> {
        let bytes = COPIED.to_string();
        let words = ["coll", "--operations", "all-gather", "--copies", "--sizes", &bytes];
        let records: Vec<Record> = self.job(hosts, true, &words)?;
        let copies = records.iter().find(|record| record.label.bench == Bench::CollectiveCopies);
        let time = copies.context("no copies were measured: the PEs of a node do not map each other")?;
        Ok(4.0 * COPIED as f64 / time.summary.median * 1e9)
    }

    /// The machine before the fit.
    fn start(&self, measured: &Measured) -> anyhow::Result<Machine> {
        let stem = self.output.file_stem().and_then(|stem| stem.to_str()).unwrap_or("machine");
        let mut machine = Machine::log_gp(1, 1, 0, 1e9);
        machine.name = self.name.clone().unwrap_or_else(|| stem.to_owned());
        machine.about = format!("measured by pelago tune measure over {}", measured.fabric);
        let cores = u32::try_from(pelago_boot::cores()).context("more cores than a node may have")?;
        machine.pes_per_node = self.pes_per_node.unwrap_or(cores.min(4096)) as usize;
        machine.node.overhead = (measured.put_within_node.min(1e6) * 1e3) as u64;
        machine.node.latency = machine.node.overhead;
        machine.node.bytes_per_second = measured.copy;
        machine.node.memory_bytes_per_second = measured.memory.max(measured.copy);
        machine.compute.copy_bytes_per_second = measured.copy;
        machine.compute.reduce_bytes_per_second = measured.reduce;
        machine.protocol.progresses_alone = false;
        (machine.protocol.outstanding, machine.protocol.packet_bytes) = (64, 4096);
        (machine.links, machine.contention) = (Links::Switch, Contention::None);
        Ok(machine)
    }
}

/// The observation of a record, if the model has its like. Small puts that no signal follows are gathered by
/// some fabrics; then the time of one tells nothing of a message.
fn observation(record: &Record, within_node: bool, is_gathered: bool) -> Option<Observation> {
    let (label, median) = (record.label, record.summary.median);
    let bytes = label.bytes as u64;
    let window = label.window.unwrap_or(1);
    let is_large = label.bytes >= FLOOD_BYTES_MIN;
    let (probe, is_fitted, nanoseconds) = match (label.bench, label.operation) {
        (Bench::Signal, Operation::PutSignal) => (Probe::OneWay { bytes }, true, median),
        (Bench::Barrier, Operation::Barrier) => (Probe::Exchange { bytes: 0 }, true, median),
        (Bench::Completed, Operation::Get) => (Probe::Get { bytes }, true, median),
        (Bench::Completed, Operation::Put) => (Probe::Flood { bytes, window: 1 }, !is_gathered, median),
        (Bench::Flood, Operation::Put) if label.place != Some(Place::Memory) => {
            (Probe::Flood { bytes, window }, is_large || !is_gathered, bytes as f64 / median)
        }
        (Bench::Rate, Operation::Put) if label.way == Some(Way::World) && (8..100).contains(&window) => {
            (Probe::Flood { bytes, window }, !is_gathered, 1e3 / median)
        }
        _ => return None,
    };
    let is_time = nanoseconds.is_finite() && nanoseconds > 0.0;
    is_time.then_some(Observation { probe, nanoseconds, within_node, is_fitted })
}

fn name(observation: &Observation) -> String {
    let name = match observation.probe {
        Probe::OneWay { .. } => "put with signal, one way".to_owned(),
        Probe::Exchange { .. } => "barrier of two PEs".to_owned(),
        Probe::Get { .. } => "get".to_owned(),
        Probe::Flood { window: 1, .. } => "put and quiet".to_owned(),
        Probe::Flood { window, .. } => format!("puts, {window} in a window"),
    };
    if observation.within_node { format!("{name}, in a node") } else { name }
}

fn lines(machine: &Machine, observations: &[Observation]) -> Vec<Line> {
    let line = |observation: &Observation| Line {
        measurement: name(observation),
        bytes: observation.probe.bytes(),
        within_node: observation.within_node,
        fitted: observation.is_fitted,
        measured_ns: observation.nanoseconds,
        modelled_ns: observation.nanoseconds * observation.ratio(machine),
    };
    observations.iter().map(line).collect()
}

fn table(machine: &Machine, observations: &[Observation]) -> Table {
    let title = "Measured times (medians) beside those of the fitted model, ns an operation";
    let mut table = Table::new(title, 2, "measurement|size|measured|modelled|deviation, %|in the fit");
    for line in lines(machine, observations) {
        let deviation = 100.0 * (line.modelled_ns / line.measured_ns - 1.0);
        table.row(vec![
            line.measurement,
            Bytes(line.bytes).to_string(),
            figure(line.measured_ns),
            figure(line.modelled_ns),
            format!("{deviation:+.0}"),
            if line.fitted { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

fn said(between: Deviation, within: Deviation) -> String {
    let percent =
        |of: Deviation| format!("median {:.1} %, worst {:.0} %", 100.0 * of.median, 100.0 * of.worst);
    format!("between nodes {}; in a node {}", percent(between), percent(within))
}
