//! The conformance suite on the simulated network: without faults, and under many seeds that reorder, delay
//! and refuse operations. `PELAGO_SIM_SEED` selects one seed.

use pelago_fabric::sim::{Sim, SimParams};
use pelago_fabric::{Net, Provider, ProviderInfo};
use pelago_fabric_testkit::conformance;
use pelago_fabric_testkit::conformance::{Group, Harness};
use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind};

struct SimModel;
struct SimChaos;
struct Dispatched;

fn group(n_pes: usize, params: SimParams) -> Group<Sim> {
    let mut endpoints = Sim::open(n_pes, params);
    endpoints.iter_mut().for_each(|e| e.connect(&mut |_| unreachable!("no address is needed")).unwrap());
    Group::of_connected(endpoints)
}

impl Harness for SimModel {
    type Endpoint = Sim;

    fn open(n_pes: usize) -> Group<Sim> {
        group(n_pes, SimParams::default())
    }
}

thread_local! {
    /// The seed of the run in progress.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

const SEEDS: u64 = if cfg!(feature = "full") { 1000 } else { 20 };

impl Harness for SimChaos {
    type Endpoint = Sim;

    const CASES: u32 = 2;

    fn open(n_pes: usize) -> Group<Sim> {
        group(n_pes, SimParams::chaos(SEED.get()))
    }

    fn run(rule: fn()) {
        let chosen =
            std::env::var("PELAGO_SIM_SEED").ok().map(|seed| seed.parse().expect("a seed is a number"));
        let seeds = chosen.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
        for seed in seeds {
            SEED.set(seed);
            if let Err(panic) = catch_unwind(rule) {
                eprintln!("again with: PELAGO_SIM_SEED={seed} ({:?})", SimParams::chaos(seed));
                resume_unwind(panic);
            }
        }
    }
}

/// Through the enum that the layers above use.
impl Harness for Dispatched {
    type Endpoint = Net;

    fn open(n_pes: usize) -> Group<Net> {
        let group = SimModel::open(n_pes).map(Net::Sim);
        assert!(group.endpoints().iter().all(|net| net.name() == Sim::NAME));
        assert!(ProviderInfo::named(Sim::NAME).is_some_and(|provider| provider.open.is_none()));
        group
    }
}

conformance! {
    sim_model: SimModel,
    sim_chaos: SimChaos,
    dispatched: Dispatched,
}
