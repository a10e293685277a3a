//! PEs as threads of one process: the same memory, flags, rings and doorbells as between processes.

use crate::Pe;
use crate::world::World;
use pelago_boot::{BarrierKind, MemorySize, RouteKind, Settings, cpus};
use pelago_core::Core;
use pelago_core::base::error::Result;
use pelago_core::base::locked::locked;
use pelago_core::base::panic_message::panic_text;
use pelago_core::job::GaveUp;
use pelago_core::job::nodes::Placement;
use pelago_core::join;
use pelago_core::memory::route::Reach;
use pelago_core::wait::stall;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::doorbell::Cause;
use pelago_fabric::sim::{Sim, SimParams};
use pelago_fabric::sync::{AtomicUsize, Ordering};
use pelago_fabric::{Net, Provider};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// The first failure of a PE of [`spmd`] or [`try_spmd`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpmdError {
    /// The job could not start.
    #[error(transparent)]
    Start(#[from] crate::Error),
    /// The system refused a thread.
    #[error("PE {pe} could not be started: {source}. Lower the number of PEs, or raise the limit of threads")]
    Thread {
        /// The first PE that could not be started.
        pe: Pe,
        /// The system's error.
        source: std::io::Error,
    },
    /// A PE panicked; the others have given up waiting for it.
    #[error("PE {pe} panicked: {message}")]
    Panicked {
        /// The PE that panicked first.
        pe: Pe,
        /// The panic's message.
        message: String,
    },
    /// The body of [`try_spmd`] returned an error; of several the one of the lowest PE.
    #[error("{error}")]
    Returned {
        /// The PE that returned it.
        pe: Pe,
        /// The error.
        error: crate::Error,
    },
}

/// Runs `body` once on each of `n_pes` PEs, each a thread, and returns their results, by PE. Settings come
/// from the environment; [`Spmd`] overrides them. A body that returns a [`Result`] is for [`try_spmd`]: here
/// its errors are results like others.
///
/// ```
/// let ranks = pelago::spmd(4, |world| world.my_pe())?;
/// assert_eq!(ranks, [0, 1, 2, 3]);
/// # Ok::<(), pelago::SpmdError>(())
/// ```
///
/// # Errors
/// If the job cannot start or a PE panics.
///
/// # Panics
/// If the number of PEs is 0.
#[track_caller]
pub fn spmd<R: Send>(n_pes: usize, body: impl Fn(&World) -> R + Sync) -> Result<Vec<R>, SpmdError> {
    Spmd::new(n_pes).run(body)
}

/// As [`spmd`], for a body that can fail: an error that it returns on a PE is the error of the job.
///
/// ```
/// let sums = pelago::try_spmd(3, |world| world.sum(world.my_pe()))?;
/// assert_eq!(sums, [3, 3, 3]);
/// # Ok::<(), pelago::SpmdError>(())
/// ```
///
/// # Errors
/// As [`spmd`], and if the body returns an error. Other PEs that wait for the PE with the error stop waiting.
///
/// # Panics
/// If the number of PEs is 0.
#[track_caller]
pub fn try_spmd<R: Send>(
    n_pes: usize,
    body: impl Fn(&World) -> Result<R> + Sync,
) -> Result<Vec<R>, SpmdError> {
    Spmd::new(n_pes).try_run(body)
}

/// A job of threads, with settings of its own.
#[derive(Clone, Debug)]
#[must_use = "the job is started by `run`"]
pub struct Spmd {
    n_pes: usize,
    heap_bytes: Option<usize>,
    counters: Option<bool>,
    barrier: Option<BarrierKind>,
    ring_bytes: Option<usize>,
    wait_limit: Option<Duration>,
    sim: Option<SimParams>,
    others: Vec<(String, String)>,
}

impl Spmd {
    /// A job of `n_pes` PEs.
    pub fn new(n_pes: usize) -> Spmd {
        Spmd {
            n_pes,
            heap_bytes: None,
            counters: None,
            barrier: None,
            ring_bytes: None,
            wait_limit: None,
            sim: None,
            others: Vec::new(),
        }
    }

    /// Sets the size of each PE's symmetric heap, in bytes (`PELAGO_HEAP_SIZE`).
    pub fn heap_bytes(mut self, bytes: usize) -> Spmd {
        self.heap_bytes = Some(bytes);
        self
    }

    /// Turns counting of operations on or off (`PELAGO_COUNTERS`).
    pub fn counters(mut self, on: bool) -> Spmd {
        self.counters = Some(on);
        self
    }

    /// Chooses the barrier's form (`PELAGO_BARRIER`).
    pub fn barrier(mut self, kind: BarrierKind) -> Spmd {
        self.barrier = Some(kind);
        self
    }

    /// Sets the size of each PE's message ring, in bytes (`PELAGO_RING_SIZE`).
    pub fn ring_bytes(mut self, bytes: usize) -> Spmd {
        self.ring_bytes = Some(bytes);
        self
    }

    /// Limits every wait for other PEs (`PELAGO_WAIT_LIMIT`).
    pub fn wait_limit(mut self, limit: Duration) -> Spmd {
        self.wait_limit = Some(limit);
        self
    }

    /// Sets any setting of the runtime as its variable in the environment would, such as
    /// `("PELAGO_COLL", "broadcast=chain")`.
    pub fn setting(mut self, variable: &str, value: &str) -> Spmd {
        self.others.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// Connects the PEs by a simulated network. It runs in virtual time or, with
    /// [`SimParams::chaos`], delays and reorders operations by a seed. One PE runs at a time, so that a run
    /// depends on the parameters and the program alone. A PE must wait for another PE only through the
    /// runtime then: a mutex, a channel of the standard library, or a loop over
    /// [`Local::get`](crate::Local::get) could wait for ever.
    pub fn sim(mut self, params: SimParams) -> Spmd {
        self.sim = Some(params);
        self
    }

    /// Runs `body` once on each PE; see [`spmd`].
    ///
    /// # Errors
    /// If the job cannot start or a PE panics.
    ///
    /// # Panics
    /// If the number of PEs is 0, or nodes are given for another number of them.
    #[track_caller]
    pub fn run<R: Send>(&self, body: impl Fn(&World) -> R + Sync) -> Result<Vec<R>, SpmdError> {
        assert!(self.n_pes > 0, "a job has at least one PE");
        let before = stall::before_job();
        let settings = self.settings()?;
        let (segment, _fd) =
            Segment::create(0, join::layout(&settings, self.n_pes)).map_err(crate::Error::from)?;
        let segment = Arc::new(segment);
        let network = self.network(&settings);
        let nodes = network.as_ref().map_or_else(Vec::new, |params| params.nodes.clone());
        let reach = match &network {
            None => Reach::All,
            Some(params) if params.maps_nodes => Reach::Nodes,
            Some(_) => Reach::None,
        };
        let nets = network.map(|params| Sim::threads(self.n_pes, params));
        let mut nets: VecDeque<Net> = nets.into_iter().flatten().map(Net::Sim).collect();
        let cpu = if nets.is_empty() { None } else { next_cpu() };
        let number = JOBS.fetch_add(1, Ordering::Relaxed);
        let outcomes = thread::scope(|scope| {
            let start = |pe| {
                let (segment, settings, body, before) = (Arc::clone(&segment), &settings, &body, &before);
                let placement = Placement {
                    net: nets.pop_front(),
                    reach,
                    nodes: nodes.clone(),
                    pids: Vec::new(),
                    number: 0,
                };
                let run = move || {
                    cpu.into_iter().for_each(stay_on);
                    stall::join_job(before);
                    run_pe((pe, self.n_pes), segment, placement, settings, body)
                };
                thread::Builder::new()
                    .name(thread_name(pe, number))
                    .spawn_scoped(scope, run)
                    .map_err(|source| SpmdError::Thread { pe, source })
            };
            let threads: Result<Vec<_>, _> = (0..self.n_pes).map(start).collect();
            let threads = threads.inspect_err(|error| {
                // The PEs that run must not wait for it, nor for the endpoints of PEs that never will run.
                segment.header().failure.record(0, &error.to_string());
                nets.clear();
            })?;
            Ok::<Vec<Option<R>>, SpmdError>(threads.into_iter().map(|t| t.join().ok().flatten()).collect())
        })?;
        match segment.header().failure.read() {
            Some((pe, message)) => Err(SpmdError::Panicked { pe, message }),
            None => Ok(outcomes.into_iter().map(|r| r.expect("who did not fail has a result")).collect()),
        }
    }

    /// Runs `body` once on each PE; see [`try_spmd`].
    ///
    /// # Errors
    /// As [`run`](Spmd::run), and if the body returns an error.
    ///
    /// # Panics
    /// As [`run`](Spmd::run).
    #[track_caller]
    pub fn try_run<R: Send>(&self, body: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>, SpmdError> {
        // Kept beside the results: the job fails if others wait for a PE that has returned an error.
        let first = Mutex::new(None::<(Pe, crate::Error)>);
        let outcome = self.run(|world| {
            body(world).inspect_err(|error| {
                let (pe, mut first) = (world.my_pe(), locked(&first));
                // An error after the failure of another PE is its consequence.
                let is_cause = world.core().has_failed().is_none();
                if is_cause && first.as_ref().is_none_or(|&(other, _)| pe < other) {
                    *first = Some((pe, error.clone()));
                }
            })
        });
        if let Some((pe, error)) = locked(&first).take() {
            return Err(SpmdError::Returned { pe, error });
        }
        let results = outcome?.into_iter().enumerate();
        results.map(|(pe, result)| result.map_err(|error| SpmdError::Returned { pe, error })).collect()
    }

    /// The simulated network, if there is to be one.
    fn network(&self, settings: &Settings) -> Option<SimParams> {
        let asked = (settings.route == RouteKind::Net).then(|| match settings.sim_seed {
            Some(seed) => SimParams::chaos(seed),
            None => SimParams::default(),
        });
        let params = self.sim.clone().or(asked)?;
        Some(match settings.sim_nodes {
            Some(nodes) if params.nodes.is_empty() => params.on_nodes(self.n_pes, nodes as usize),
            _ => params,
        })
    }

    fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::from_env()?;
        for (variable, value) in &self.others {
            settings.set(variable, value)?;
        }
        settings.heap = self.heap_bytes.map_or(settings.heap, MemorySize::Bytes);
        settings.counters = self.counters.unwrap_or(settings.counters);
        settings.barrier = self.barrier.unwrap_or(settings.barrier);
        settings.ring_bytes = self.ring_bytes.unwrap_or(settings.ring_bytes);
        settings.wait_limit = self.wait_limit.or(settings.wait_limit);
        Ok(settings)
    }
}

/// The jobs of threads that this process has started.
static JOBS: AtomicUsize = AtomicUsize::new(0);

/// The name of a PE's thread. Threads of one PE have the same name, by which a wait in vain is recognised, so
/// PEs of several jobs in a process must not. Linux keeps 15 bytes of it.
fn thread_name(pe: Pe, job: usize) -> String {
    if job == 0 { format!("PE {pe}") } else { format!("PE {pe} #{job}") }
}

/// A processor for the PEs of a simulation: of all that this process may use, the next in turn.
fn next_cpu() -> Option<usize> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let cpus = cpus();
    let cpu = cpus.get(TURN.fetch_add(1, Ordering::Relaxed) % cpus.len().max(1));
    cpu.copied().filter(|&cpu| cpu < CpuSet::MAX_CPU)
}

/// Keeps this thread on a processor: of a simulation, as its PEs run one at a time and a hand-over between
/// two processors would only take longer; of a job, if it is to be bound. Where the system refuses, it does.
pub(crate) fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    let _ = sched_setaffinity(None, &set);
}

/// One PE: a panic is recorded for all to see. `None` if it panicked or gave up.
fn run_pe<R>(
    (pe, n_pes): (Pe, usize),
    segment: Arc<Segment>,
    placement: Placement,
    settings: &Settings,
    body: &dyn Fn(&World) -> R,
) -> Option<R> {
    let kept = Arc::clone(&segment);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let world = match join((pe, n_pes), segment, placement, settings) {
            Ok(world) => world,
            Err(error) => panic!("{error}"),
        };
        catch_unwind(AssertUnwindSafe(|| body(&world))).unwrap_or_else(|payload| {
            // Recorded before the world would wait for the others to leave.
            record(pe, &kept, payload.as_ref());
            world.core().close();
            resume_unwind(payload)
        })
    }));
    outcome.map_err(|payload| record(pe, &kept, payload.as_ref())).ok()
}

fn join(
    me: (Pe, usize),
    segment: Arc<Segment>,
    mut placement: Placement,
    settings: &Settings,
) -> Result<World> {
    if let Some(net) = &mut placement.net {
        let own = net.address()?;
        net.connect(&mut |_| Ok(own.clone()))?;
        join::register_heap(net, &segment, me.0)?;
    }
    Ok(Core::assemble(me, segment, placement, None, settings)?.into())
}

fn record(pe: Pe, segment: &Segment, payload: &(dyn Any + Send)) {
    if payload.is::<GaveUp>() {
        return;
    }
    segment.header().failure.record(pe, panic_text(payload));
    for block in segment.blocks() {
        block.doorbell.ring(Cause::Meeting);
        block.doorbell.ring(Cause::Data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_the_body_returns_is_that_of_the_job() {
        let outcome = try_spmd(2, |world| world.alloc_zeroed::<u64>(1)?.put(0, 5, &[1]));
        let error = outcome.unwrap_err();
        assert!(matches!(error, SpmdError::Returned { pe: 0, .. }), "{error}");
        assert!(error.to_string().contains("PE 0: put"), "{error}");
    }

    #[test]
    fn an_error_of_a_pe_that_others_wait_for_is_that_of_the_job() {
        let outcome = try_spmd(2, |world| {
            let word = world.alloc_zeroed::<u64>(1)?;
            if world.my_pe() == 0 {
                word.put(0, 5, &[1])?;
            }
            world.barrier();
            Ok(())
        });
        let error = outcome.unwrap_err();
        assert!(matches!(error, SpmdError::Returned { pe: 0, .. }), "{error}");
    }
}
