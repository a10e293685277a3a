//! `pelago sim`: a built-in application over a simulated network, in virtual time.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use pelago::Spmd;
use pelago::sim::SimParams;
use pelago_boot::tell;

use crate::app;

/// Run a built-in application over a simulated network, in virtual time
///
/// The PEs are threads of this process, and one runs at a time. Virtual time passes by communication,
/// according to the LogGP model (latency, overhead, gap, bandwidth), and by the computation that the
/// application accounts for: ft, matmul, cholesky do (--simulated-gflops); in others computation takes none.
/// Times are those of this network, the same on every run and machine. perf measures in virtual time too;
/// only how often it repeats a block depends on the clock of this machine, unless --quick is given.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Sim {
    /// Number of PEs
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    n: u32,
    /// Latency from the sender's NIC to the receiver's
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = time)]
    latency: Duration,
    /// Overhead of the processor for each operation
    #[arg(long, value_name = "TIME", default_value = "100ns", value_parser = time)]
    overhead: Duration,
    /// Gap: time of the NIC for each message, besides that for its bytes
    #[arg(long, value_name = "TIME", default_value = "10ns", value_parser = time)]
    gap: Duration,
    /// Bandwidth of a NIC in bytes per second, such as 10G or 800M
    #[arg(long, value_name = "BYTES", default_value = "10G", value_parser = rate)]
    bandwidth: f64,
    /// Number of nodes, the first PEs on the first: PEs of a node share its NIC, and reach each other
    /// and themselves without it; default: each PE has a NIC, and reaches itself over it as well
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..=4096))]
    nodes: Option<u32>,
    /// Inject faults according to this seed instead: reorder, delay and refuse operations; times are then
    /// meaningless
    #[arg(long, value_name = "SEED")]
    chaos: Option<u64>,
    /// Name of the application, and its arguments
    #[arg(value_name = "NAME ARGS", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  pelago sim -n 8 ft --variant all                     exchange, slabs and pencils on 10 GB/s
  pelago sim -n 8 --bandwidth 500M --latency 5us ft --variant all
  pelago sim -n 4 --bandwidth 500M ft --grid 2x2 --variant all    packed slabs and slabs
  pelago sim -n 8 --nodes 4 --bandwidth 1G ft --variant all     two PEs on each of four nodes
  pelago sim -n 2 --latency 3us perf --quick messages    messages on that network
  pelago sim -n 4 --chaos 7 ft                         still verified on a network that reorders";

impl Sim {
    /// Runs the application; returns its exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        if let Some(nodes) = self.nodes.filter(|nodes| *nodes > self.n) {
            bail!("{} PEs cannot be on {nodes} nodes: --nodes takes at most the number of PEs", self.n);
        }
        let Some((name, args)) = self.words.split_first() else { bail!("no application was named") };
        let Some(app) = app::find(name) else {
            bail!("there is no built-in application {name:?}; {}", app::suggestion(name));
        };
        let outcomes = Spmd::new(self.n as usize).sim(self.params()).run(|world| {
            (app.run)(world, args).unwrap_or_else(|error| {
                // Written in one call, so that the messages of two PEs do not mix.
                let line = format!("{}: {error:#}\n", app.name);
                tell(&line);
                ExitCode::FAILURE
            })
        })?;
        let failed = outcomes.into_iter().find(|code| *code != ExitCode::SUCCESS);
        Ok(failed.unwrap_or(ExitCode::SUCCESS))
    }

    fn params(&self) -> SimParams {
        let params = self.network();
        match self.nodes {
            Some(nodes) => params.on_nodes(self.n as usize, nodes as usize),
            None => params,
        }
    }

    fn network(&self) -> SimParams {
        match self.chaos {
            Some(seed) => SimParams::chaos(seed),
            None => SimParams {
                latency: self.latency,
                overhead: self.overhead,
                gap: self.gap,
                bandwidth_bytes_per_second: self.bandwidth,
                ..SimParams::default()
            },
        }
    }
}

/// A number and its unit, one of `units`, each with its value.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let &(_, value) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<f64>().ok().map(|number| number * value)
}

fn time(text: &str) -> Result<Duration, String> {
    let nanos = quantity(text, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]);
    match nanos {
        Some(nanos) if nanos <= 1e12 => Ok(Duration::from_nanos(nanos.round() as u64)),
        _ => Err("a time is a number and ns, us, ms or s, up to 1000s, such as 1.5us".into()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let bytes = quantity(text, &[("", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)]);
    bytes.filter(|bytes| (1.0..=1e15).contains(bytes)).ok_or_else(|| {
        "a bandwidth is bytes a second, a number from 1 to 1000T with K, M, G or T after it if need be".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers_with_units() {
        assert_eq!(time("1.5us"), Ok(Duration::from_nanos(1500)));
        assert_eq!(time("0ns"), Ok(Duration::ZERO));
        assert_eq!((rate("10G"), rate("12.5M"), rate("3")), (Ok(10e9), Ok(12.5e6), Ok(3.0)));
        for bad in ["", "1", "us", "-1us", "1 us", "1e3ns", "1.2.3s", "2000s", "nan", "1h"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "G", "-1G", "1g", "10GB", "1e9", "inf", "2000T", "0.5"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}
