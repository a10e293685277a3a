//! The parameters of a machine, fitted to times that microbenchmarks took on it.
//!
//! Invariant: a fit is a function of the observations alone. Every time of the model comes from a simulation
//! of the microbenchmark, so a fit holds for all rules of the model and needs no formula of its own.
//!
//! Source: least absolute deviations, Boscovich 1757, of the logarithms of times, so that every size counts
//! alike and a few observations that the model cannot have do not move the rest; by pattern search, Hooke and
//! Jeeves 1961.

use crate::action::{Action, Skeleton};
use crate::engine::run;
use crate::machine::{Contention, Links, Machine, Node};
use crate::time::{NANOSECOND, Time};

/// A microbenchmark between ranks 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A put with a signal, of which the time is half a round trip.
    OneWay {
        /// The bytes of the put.
        bytes: u64,
    },
    /// Both put with a signal to each other and then wait, again and again.
    Exchange {
        /// The bytes of each put.
        bytes: u64,
    },
    /// A get.
    Get {
        /// Its bytes.
        bytes: u64,
    },
    /// Windows of puts, each complete before the next; the time is that of one put.
    Flood {
        /// The bytes of a put.
        bytes: u64,
        /// The puts of a window.
        window: usize,
    },
}

/// The repetitions in a simulated microbenchmark.
const ROUNDS: usize = 3;

impl Probe {
    /// The size of the transfer, in bytes.
    pub fn bytes(self) -> u64 {
        let (Probe::OneWay { bytes }
        | Probe::Exchange { bytes }
        | Probe::Get { bytes }
        | Probe::Flood { bytes, .. }) = self;
        bytes
    }

    /// The time of one operation on a machine, in nanoseconds, between two nodes or in one.
    pub fn nanoseconds(self, machine: &Machine, within_node: bool) -> f64 {
        let plain = Machine {
            pes_per_node: if within_node { 2 } else { 1 },
            cards_per_node: 1,
            contention: Contention::None,
            links: Links::Switch,
            ..machine.clone()
        };
        let (count, operations) = self.length();
        let skeleton = Skeleton::new(2, move |rank| self.actions(rank, count));
        // Two ranks on two nodes at a switch, and every wait has its signal: a run cannot fail.
        let time = run(&plain, &skeleton).map_or(f64::INFINITY, |outcome| outcome.time as f64);
        time / NANOSECOND as f64 / operations as f64
    }

    /// The rounds of a simulation, and the operations whose times it adds up.
    fn length(self) -> (usize, usize) {
        match self {
            Probe::OneWay { .. } => (ROUNDS, 2 * ROUNDS),
            Probe::Exchange { .. } | Probe::Get { .. } => (ROUNDS, ROUNDS),
            Probe::Flood { window, .. } => (ROUNDS, ROUNDS * window),
        }
    }

    fn actions(self, rank: usize, rounds: usize) -> Vec<Action> {
        let other = 1 - rank as u32;
        let round = match self {
            Probe::OneWay { bytes } => {
                let put = Action::Put { to: other, bytes, signal: Some(0) };
                let wait = Action::Wait { slot: 0 };
                if rank == 0 { vec![put, wait] } else { vec![wait, put] }
            }
            Probe::Exchange { bytes } => {
                vec![Action::Put { to: other, bytes, signal: Some(0) }, Action::Wait { slot: 0 }]
            }
            Probe::Get { bytes } if rank == 0 => vec![Action::Get { of: other, bytes }, Action::Complete],
            Probe::Flood { bytes, window } if rank == 0 => {
                let mut puts = vec![Action::Put { to: other, bytes, signal: None }; window];
                puts.push(Action::Complete);
                puts
            }
            // The target is in a call until all puts and gets that it must execute have come.
            Probe::Get { .. } | Probe::Flood { .. } => return Vec::new(),
        };
        std::iter::repeat_n(round, rounds).flatten().collect()
    }
}

/// The measured time of a microbenchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The microbenchmark.
    pub probe: Probe,
    /// The time of one operation, in nanoseconds; above 0.
    pub nanoseconds: f64,
    /// Whether both ranks were on one node.
    pub within_node: bool,
    /// Whether the fit uses it; otherwise it is only compared.
    pub is_fitted: bool,
}

impl Observation {
    /// The time of the model divided by what was measured.
    pub fn ratio(&self, machine: &Machine) -> f64 {
        self.probe.nanoseconds(machine, self.within_node) / self.nanoseconds
    }
}

/// The deviations of a machine from observations, in parts of the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// Half of the observations deviate by this or less.
    pub median: f64,
    /// The largest.
    pub worst: f64,
}

impl Deviation {
    /// Of the observations that were fitted.
    pub fn of(machine: &Machine, observations: &[Observation]) -> Deviation {
        let fitted = observations.iter().filter(|observation| observation.is_fitted);
        Deviation::among(fitted.map(|observation| (observation.ratio(machine) - 1.0).abs()).collect())
    }

    /// Of these deviations.
    pub fn among(mut deviations: Vec<f64>) -> Deviation {
        deviations.sort_by(f64::total_cmp);
        let last = deviations.len().saturating_sub(1);
        let at = |index: usize| deviations.get(index).copied().unwrap_or(0.0);
        Deviation { median: (at(last / 2) + at(last.div_ceil(2))) / 2.0, worst: at(last) }
    }
}

/// A parameter that the fit may change: its value in nanoseconds, or nanoseconds of a byte.
struct Parameter {
    get: fn(&Machine) -> f64,
    set: fn(&mut Machine, f64),
    /// The value at which it counts as none.
    least: f64,
}

fn picoseconds(nanoseconds: f64) -> Time {
    (nanoseconds * NANOSECOND as f64).round() as Time
}

macro_rules! parameters {
    ($($part:ident.$field:ident)+) => {
        [$(Parameter {
            get: |machine| machine.$part.$field as f64 / NANOSECOND as f64,
            set: |machine, value| machine.$part.$field = picoseconds(value),
            least: 1.0,
        }),+]
    };
}

macro_rules! rate {
    ($part:ident) => {
        Parameter {
            get: |machine| 1e9 / machine.$part.bytes_per_second,
            set: |machine, value| machine.$part.bytes_per_second = 1e9 / value,
            least: 1e-4,
        }
    };
}

const TIMES: [Parameter; 4] = parameters! {
    network.latency network.send_overhead network.send_rest network.receive_overhead
};
const GAP: [Parameter; 1] = parameters! { network.gap };
const RATE: [Parameter; 1] = [rate!(network)];
const NODE_LATENCY: [Parameter; 1] = parameters! { node.latency };
const NODE_RATE: [Parameter; 1] = [rate!(node)];

/// The shares of latency, overhead and rest of a send, and overhead of a receive in the shortest time, at the
/// beginnings of several searches: a fast network with slow processors, the other way round, and between.
const STARTS: [[f64; 4]; 3] = [[0.05, 0.2, 0.6, 0.7], [0.8, 0.1, 0.1, 0.1], [0.4, 0.3, 0.1, 0.3]];
/// The factors by which the search changes a value, from coarse to fine.
const FACTORS: [f64; 7] = [4.0, 2.0, 1.4, 1.15, 1.05, 1.02, 1.005];
/// The most passes over all parameters with one factor.
const PASSES: usize = 60;

/// Fits latency, overheads, gap and bandwidth of the network to the observations between nodes, latency and
/// bandwidth of a node to those in one, and decides whether the card or the processor moves data: whichever
/// deviates less. The other values of `start` stay as they are.
pub fn fit(start: &Machine, observations: &[Observation]) -> Machine {
    let by_card = network(start, observations, false);
    let by_processor = network(start, observations, true);
    let between: Vec<_> = observations.iter().filter(|of| of.is_fitted && !of.within_node).copied().collect();
    let is_better = misfit(&by_processor, &between) < misfit(&by_card, &between);
    let best = if is_better { by_processor } else { by_card };
    let within: Vec<_> = observations.iter().filter(|of| of.within_node).copied().collect();
    let memory = best.node.memory_bytes_per_second;
    // One PE that copies is limited by its own rate.
    let alone = Machine { node: Node { memory_bytes_per_second: f64::INFINITY, ..best.node }, ..best };
    let found = search(alone, &NODE_LATENCY.iter().chain(&NODE_RATE).collect::<Vec<_>>(), &within);
    let node = Node { memory_bytes_per_second: memory.max(found.node.bytes_per_second), ..found.node };
    Machine { node, ..found }
}

/// The mean of the logarithms' absolute deviations, over what is fitted.
fn misfit(machine: &Machine, observations: &[Observation]) -> f64 {
    let fitted = observations.iter().filter(|observation| observation.is_fitted);
    let logarithms: Vec<f64> = fitted.map(|observation| observation.ratio(machine).ln().abs()).collect();
    if logarithms.is_empty() { 0.0 } else { logarithms.iter().sum::<f64>() / logarithms.len() as f64 }
}

/// The best network in which the processor, or the card, moves data.
fn network(start: &Machine, observations: &[Observation], by_processor: bool) -> Machine {
    let between: Vec<_> = observations.iter().filter(|of| of.is_fitted && !of.within_node).copied().collect();
    let mut machine = start.clone();
    machine.protocol.processor_moves_data = by_processor;
    machine.protocol.has_hardware_puts = !by_processor;
    let shortest = between.iter().map(|of| of.nanoseconds).fold(f64::INFINITY, f64::min).clamp(1.0, 1e9);
    (GAP[0].set)(&mut machine, if by_processor { 0.0 } else { shortest / 10.0 });
    let fastest = between.iter().map(|of| of.probe.bytes() as f64 / of.nanoseconds);
    machine.network.bytes_per_second = 1e9 * fastest.fold(1e-3, f64::max);
    // A processor that moves data takes as long as a card with a gap.
    let gap: &[Parameter] = if by_processor { &[] } else { &GAP };
    let parameters: Vec<_> = TIMES.iter().chain(gap).chain(&RATE).collect();
    let from = |shares: [f64; 4]| {
        let mut start = machine.clone();
        TIMES.iter().zip(shares).for_each(|(time, share)| (time.set)(&mut start, shortest * share));
        let found = search(start, &parameters, &between);
        (misfit(&found, &between), found)
    };
    let found = STARTS.map(from).into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    found.map_or(machine, |(_, found)| found)
}

/// Changes one parameter after another, and pairs in opposite directions, as long as that reduces the misfit.
fn search(start: Machine, parameters: &[&Parameter], observations: &[Observation]) -> Machine {
    let mut best = (misfit(&start, observations), start);
    if !observations.iter().any(|of| of.is_fitted) {
        return best.1;
    }
    let singles = (0..parameters.len()).map(|index| (index, None));
    let pairs = (0..parameters.len()).flat_map(|a| (0..parameters.len()).map(move |b| (a, Some(b))));
    let moves: Vec<_> = singles.chain(pairs.filter(|(a, b)| Some(*a) != *b)).collect();
    for factor in FACTORS {
        for _ in 0..PASSES {
            let before = best.0;
            for &(index, other) in &moves {
                for factor in [factor, 1.0 / factor] {
                    let mut changed = best.1.clone();
                    scale(&mut changed, parameters[index], factor);
                    if let Some(other) = other {
                        scale(&mut changed, parameters[other], 1.0 / factor);
                    }
                    let found = misfit(&changed, observations);
                    if found < best.0 {
                        best = (found, changed);
                    }
                }
            }
            if best.0 >= before {
                break;
            }
        }
    }
    best.1
}

fn scale(machine: &mut Machine, parameter: &Parameter, factor: f64) {
    let value = ((parameter.get)(machine) * factor).max(parameter.least);
    // A bandwidth and a time have bounds in machine files.
    (parameter.set)(machine, value.min(1e6));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes() -> Vec<Probe> {
        let one_way = [0, 64, 1 << 10, 8 << 10, 64 << 10].map(|bytes| Probe::OneWay { bytes });
        let floods = [8 << 10, 128 << 10, 1 << 20].map(|bytes| Probe::Flood { bytes, window: 8 });
        let others = [Probe::Exchange { bytes: 0 }, Probe::Get { bytes: 8 }, Probe::Get { bytes: 64 << 10 }];
        [&one_way[..], &floods, &others].concat()
    }

    /// The times that a machine would have measured, a little off, and one time far off.
    fn observed(machine: &Machine, within_node: bool) -> Vec<Observation> {
        let observed = |(index, probe): (usize, Probe)| {
            let off = if index == 2 { 3.0 } else { 1.0 + 0.01 * (index % 3) as f64 };
            let nanoseconds = probe.nanoseconds(machine, within_node) * off;
            Observation { probe, nanoseconds, within_node, is_fitted: true }
        };
        probes().into_iter().enumerate().map(observed).collect()
    }

    fn start() -> Machine {
        Machine::log_gp(1_000, 1_000, 0, 1e9)
    }

    #[test]
    fn a_machine_is_found_again_in_spite_of_one_time_that_is_far_off() {
        for by_processor in [false, true] {
            let mut machine = Machine::log_gp(700_000, 900_000, 40_000, 3e9);
            machine.protocol.processor_moves_data = by_processor;
            machine.protocol.has_hardware_puts = !by_processor;
            machine.network.send_rest = 500_000;
            let observations = observed(&machine, false);
            let found = fit(&start(), &observations);
            assert_eq!(found.protocol.processor_moves_data, by_processor);
            let Deviation { median, worst } = Deviation::of(&found, &observations);
            assert!(median < 0.03, "median {median}: {:?}", found.network);
            assert!((0.6..0.7).contains(&worst), "the time that is off by 3: {worst}");
            let rate = found.network.bytes_per_second;
            assert!((2.8e9..3.2e9).contains(&rate), "{rate}");
        }
    }

    #[test]
    fn the_memory_of_a_node_is_fitted_apart() {
        let mut machine = start();
        (machine.node.latency, machine.node.overhead) = (80_000, 20_000);
        machine.node.bytes_per_second = 6e9;
        let start = Machine { node: Node { latency: 1, ..machine.node }, ..start() };
        let found = fit(&start, &observed(&machine, true));
        let (latency, rate) = (found.node.latency, found.node.bytes_per_second);
        assert!((75_000..85_000).contains(&latency) && (5.7e9..6.3e9).contains(&rate), "{:?}", found.node);
    }

    #[test]
    fn what_is_only_compared_changes_nothing() {
        let machine = Machine::log_gp(700_000, 900_000, 40_000, 3e9);
        let mut observations = observed(&machine, false);
        let fitted = fit(&start(), &observations);
        let probe = Probe::Flood { bytes: 8, window: 64 };
        observations.push(Observation { probe, nanoseconds: 1.0, within_node: false, is_fitted: false });
        assert_eq!(fit(&start(), &observations), fitted);
        assert_eq!(Deviation::of(&fitted, &observations), Deviation::of(&fitted, &observations[..11]));
    }

    #[test]
    fn deviations_of_few() {
        assert_eq!(Deviation::among(vec![]), Deviation { median: 0.0, worst: 0.0 });
        assert_eq!(Deviation::among(vec![3.0, 1.0]), Deviation { median: 2.0, worst: 3.0 });
        assert_eq!(Deviation::among(vec![3.0, 1.0, 9.0]), Deviation { median: 3.0, worst: 9.0 });
    }
}
