//! The tools of the experiments: jobs of PEs on this machine, applications, and simulated networks.
//! Invariant: equal measurements are made once; what several figures share comes from the same run. Nothing
//! here compares or judges.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use pelago::sim::SimParams;
use pelago::{Spmd, World};
use serde_json::Value as Json;

use crate::base::effort::Effort;
use crate::base::job;
use crate::base::record::Record;
use crate::base::suite::Sink;

/// Jobs, applications and networks, and what they have returned so far.
pub struct Lab {
    /// The maximum number of PEs of a measurement.
    pub pes: usize,
    /// Whether to measure for a short time only.
    pub is_quick: bool,
    known: RefCell<BTreeMap<String, Rc<dyn Any>>>,
}

/// The connection between the PEs of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Mapped memory.
    Memory,
    /// TCP on this machine.
    Tcp,
    /// Mapped memory, and collective operations by messages from PE to PE.
    Schedules,
}

impl Between {
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Between::Memory => &[],
            Between::Tcp => &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")],
            Between::Schedules => &[("PELAGO_COLL_FORM", "schedule")],
        }
    }

    /// A number of PEs of this machine with this connection, for people.
    pub fn place(self, pes: usize) -> String {
        let (cores, name) = (pelago_boot::cores(), self.name());
        if pes > cores { format!("{pes} PEs on {cores} cores, {name}") } else { format!("{pes} PEs, {name}") }
    }

    /// The same for 2 PEs up to a number of them.
    pub fn places(self, pes: usize) -> String {
        if pes > 2 { format!("2 to {}", self.place(pes)) } else { self.place(pes) }
    }

    fn name(self) -> &'static str {
        match self {
            Between::Memory => "mapped memory",
            Between::Tcp => "TCP on this machine",
            Between::Schedules => "mapped memory, messages from PE to PE",
        }
    }
}

/// A simulated network, with its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Nanoseconds on the way.
    pub latency_ns: u64,
    /// Nanoseconds of a processor for a message.
    pub overhead_ns: u64,
    /// Bytes a second of a node's card.
    pub bandwidth: f64,
}

impl Network {
    /// The properties for the simulator, for PEs on a number of nodes.
    pub fn params(self, pes: usize, nodes: usize) -> SimParams {
        let params = SimParams {
            latency: Duration::from_nanos(self.latency_ns),
            overhead: Duration::from_nanos(self.overhead_ns),
            bandwidth_bytes_per_second: self.bandwidth,
            ..SimParams::default()
        };
        params.on_nodes(pes, nodes)
    }

    /// Its description.
    pub fn name(self) -> String {
        let [latency, overhead] = [self.latency_ns, self.overhead_ns].map(|ns| ns as f64 / 1e3);
        let bandwidth = self.bandwidth / 1e6;
        format!("simulated network, latency {latency} us, overhead {overhead} us, {bandwidth} MB/s a card")
    }

    /// The options of `pelago sim`.
    fn options(self) -> [String; 6] {
        let Network { latency_ns, overhead_ns, bandwidth } = self;
        [
            "--latency".to_owned(),
            format!("{latency_ns}ns"),
            "--overhead".to_owned(),
            format!("{overhead_ns}ns"),
            "--bandwidth".to_owned(),
            format!("{bandwidth}"),
        ]
    }
}

impl Lab {
    /// A laboratory for measurements of up to `pes` PEs.
    pub fn new(pes: usize, is_quick: bool) -> Self {
        Lab { pes, is_quick, known: RefCell::default() }
    }

    /// The maximum number of PEs that have a core each, two at least.
    pub fn pes_with_cores(&self) -> usize {
        self.pes.min(pelago_boot::cores()).max(2)
    }

    /// The value of this name, which `make` makes once.
    fn once<T: Any>(&self, name: String, make: impl FnOnce() -> Result<T>) -> Result<Rc<T>> {
        let known = self.known.borrow().get(&name).cloned();
        if let Some(known) = known {
            return known.downcast().map_err(|_| anyhow!("{name} has two meanings"));
        }
        let made = Rc::new(make()?);
        self.known.borrow_mut().insert(name, Rc::clone(&made) as Rc<dyn Any>);
        Ok(made)
    }

    /// The records of a suite of `perf` between processes, bound if each gets a core.
    ///
    /// # Errors
    /// If the job fails.
    pub fn perf(&self, between: Between, pes: usize, suite: &[&str]) -> Result<Rc<Vec<Record>>> {
        self.once(format!("perf {between:?} {pes} {suite:?}"), || {
            let quick: &[&str] = if self.is_quick { &["--quick"] } else { &[] };
            let args = [suite, &["--silent"], quick].concat();
            let is_bound = pes <= pelago_boot::cores();
            job::parse(&job::perf(pes, is_bound, between.variables(), &args)?)
        })
    }

    /// The JSON lines of an application between processes.
    ///
    /// # Errors
    /// If the job fails, or its result is not verified.
    pub fn app(&self, between: Between, pes: usize, words: &[&str]) -> Result<Rc<Vec<Json>>> {
        self.once(format!("app {between:?} {pes} {words:?}"), || {
            let pes = pes.to_string();
            let args = [&["run", "-n", &pes], words].concat();
            lines_of(&args, between.variables())
        })
    }

    /// The JSON lines of an application over a simulated network, with a node for each PE.
    ///
    /// # Errors
    /// If it fails, or its result is not verified.
    pub fn simulated_app(&self, network: Network, pes: usize, words: &[&str]) -> Result<Rc<Vec<Json>>> {
        self.once(format!("sim {network:?} {pes} {words:?}"), || {
            let pes = pes.to_string();
            let options = network.options();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let args = [&["sim", "-n", &pes, "--nodes", &pes], &options[..], words].concat();
            lines_of(&args, &[])
        })
    }

    /// The records of a suite over a simulated network, in virtual time. `name` names the suite.
    ///
    /// # Errors
    /// If a PE fails.
    pub fn suite(
        &self,
        name: &str,
        pes: usize,
        params: &SimParams,
        suite: impl Fn(&World, Effort, Sink<'_>) -> Result<()> + Sync,
    ) -> Result<Rc<Vec<Record>>> {
        self.once(format!("suite {name} {pes} {params:?}"), || {
            let outcomes = Spmd::new(pes).sim(params.clone()).run(|world| {
                let mut records = Vec::new();
                let done = suite(world, Effort::quick(), &mut |progress| {
                    records.extend_from_slice(progress.records);
                    Ok(())
                });
                done.map(|()| records).map_err(|error| format!("{error:#}"))
            })?;
            let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| anyhow!(e))?;
            Ok(outcomes.swap_remove(0))
        })
    }

    /// The virtual nanoseconds that `act` takes on the slowest PE, the mean of `times` calls after one more,
    /// each with the number of the call.
    ///
    /// # Errors
    /// If a PE fails.
    pub fn virtual_ns<'a, S>(
        &self,
        job: &Spmd,
        times: u32,
        set_up: impl Fn(&World) -> pelago::Result<S> + Sync,
        act: impl Fn(&World, &S, u32) -> pelago::Result<()> + Sync + 'a,
    ) -> Result<f64> {
        let outcomes = job.run(|world| {
            let state = set_up(world)?;
            act(world, &state, 0)?;
            world.barrier();
            let start = world.wtime();
            (1..=times).try_for_each(|call| act(world, &state, call))?;
            let elapsed = world.wtime() - start;
            world.barrier();
            Ok::<_, pelago::Error>(elapsed)
        })?;
        let slowest = outcomes.into_iter().collect::<pelago::Result<Vec<_>>>()?.into_iter().max();
        Ok(slowest.unwrap_or_default().as_nanos() as f64 / f64::from(times))
    }
}

/// Runs this command with arguments and variables; returns its lines of JSON, all of which are verified.
fn lines_of(args: &[&str], variables: &[(&str, &str)]) -> Result<Vec<Json>> {
    let this = std::env::current_exe().context("finding the path of this command")?;
    let what = || format!("pelago {}", args.join(" "));
    let mut command = Command::new(this);
    command.args(args).arg("--json").envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output().with_context(what)?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}: {}", what(), output.status, message.trim());
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| serde_json::from_str::<Json>(line).with_context(what));
    let lines = lines.collect::<Result<Vec<_>>>()?;
    ensure!(lines.iter().all(|line| line["verified"] == true), "{}: a result is wrong: {text}", what());
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::ping;

    #[test]
    fn equal_measurements_are_made_once() {
        let lab = Lab::new(2, true);
        let of = |make: u32| lab.once("x".to_owned(), || Ok(make));
        assert_eq!((*of(1).unwrap(), *of(2).unwrap()), (1, 1));
        assert!(lab.once("x".to_owned(), || Ok("a text")).is_err());
    }

    #[test]
    fn suites_and_calls_take_the_time_of_the_network() {
        let network = Network { latency_ns: 1000, overhead_ns: 100, bandwidth: 1e9 };
        let lab = Lab::new(2, true);
        let records = lab.suite("ping", 2, &network.params(2, 2), |world, effort, sink| {
            ping::all(world, &[8], effort, sink)
        });
        let put = ping::trip(&records.unwrap(), Operation::Put, 8).unwrap().summary;
        // Overhead, gap and bytes, twice the latency, polls.
        assert!((2100.0..2300.0).contains(&put.median), "{put:?}");
        let job = Spmd::new(2).sim(network.params(2, 2));
        let ns = lab.virtual_ns(
            &job,
            3,
            |_| Ok(()),
            |world, (), _| {
                world.simulate_compute(Duration::from_nanos(500));
                Ok(())
            },
        );
        assert_eq!(ns.unwrap(), 500.0);
        assert!(network.name().contains("latency 1 us, overhead 0.1 us, 1000 MB/s"));
    }

    use crate::base::record::Operation;
}
