//! Runs a body in every kind of job: PEs as threads, as processes and as threads of several processes, over
//! mapped memory, over the network although memory is mapped, over both at the same time, and over many
//! simulated networks that misbehave.

use pelago::sim::SimParams;
use pelago::{Spmd, World};
use pelago_fabric_testkit::fake_libfabric;

/// Simulated networks that each body runs on.
const SEEDS: u64 = if cfg!(feature = "full") { 1000 } else { 12 };
/// A run of this test program with this variable repeats only one simulation.
const SEED_VARIABLE: &str = "PELAGO_SIM_SEED";

/// Providers of the fake libfabric. They differ in who chooses keys, and in what they keep in order.
pub const FAKE_PROVIDERS: [&str; 3] = ["plain", "like-verbs", "like-cxi"];

/// `everywhere! { name(4): body; ... }` makes tests `name::threads`, `name::processes`,
/// `name::threads_of_processes`, `name::net`, `name::fake_libfabric`, `name::tcp`, `name::sim` and
/// `name::hybrid` of the function `body(&World)`; in the full tier also `name::ofi`, over libfabric, and
/// `name::nodes` and `name::threads_of_nodes`, on two nodes with libfabric between them.
#[macro_export]
macro_rules! everywhere {
    ($($name:ident($n_pes:expr): $body:ident;)+) => {
        $(mod $name {
            /// One type for all bodies, so that the code that runs them is compiled once for each test
            /// program.
            const BODY: fn(&pelago::World) = super::$body;

            #[test]
            fn threads() {
                pelago::spmd($n_pes, BODY).unwrap();
            }

            #[test]
            fn processes() {
                pelago::processes!($n_pes, BODY);
            }

            #[test]
            fn threads_of_processes() {
                let each = $crate::pes_per_process($n_pes);
                let threads = [("PELAGO_PES_PER_PROCESS", &*each)];
                let report = pelago::try_processes!($n_pes, threads, BODY);
                pelago::testing::expect_success(&report);
            }

            #[cfg(feature = "full")]
            #[test]
            fn threads_of_nodes() {
                let each = $crate::pes_per_process($n_pes);
                let [nodes, fabric] = $crate::NODES_OVER_LIBFABRIC;
                let nodes = [("PELAGO_PES_PER_PROCESS", &*each), nodes, fabric];
                let report = pelago::try_processes!($n_pes, nodes, BODY);
                pelago::testing::expect_success(&report);
            }

            #[test]
            fn net() {
                let report = pelago::try_processes!($n_pes, [("PELAGO_ROUTE", "net")], BODY);
                pelago::testing::expect_success(&report);
            }

            #[test]
            fn fake_libfabric() {
                let one_process = $n_pes.to_string();
                for provider in $crate::FAKE_PROVIDERS {
                    let settings = $crate::over_fake_libfabric(&one_process, provider);
                    let report = pelago::try_processes!($n_pes, settings, BODY);
                    pelago::testing::expect_success(&report);
                }
            }

            #[test]
            fn tcp() {
                let each = $crate::pes_per_process($n_pes);
                for way in $crate::ways_over_tcp(&each) {
                    let report = pelago::try_processes!($n_pes, way, BODY);
                    pelago::testing::expect_success(&report);
                }
            }

            #[cfg(feature = "full")]
            #[test]
            fn ofi() {
                let over_libfabric = [("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi")];
                let report = pelago::try_processes!($n_pes, over_libfabric, BODY);
                pelago::testing::expect_success(&report);
            }

            #[cfg(feature = "full")]
            #[test]
            fn nodes() {
                let report = pelago::try_processes!($n_pes, $crate::NODES_OVER_LIBFABRIC, BODY);
                pelago::testing::expect_success(&report);
            }

            #[test]
            fn sim() {
                $crate::over_seeds($n_pes, BODY);
            }

            #[test]
            fn hybrid() {
                $crate::over_nodes($n_pes, BODY);
            }
        })+
    };
}

/// Settings of one process with all PEs, over the fake libfabric, which knows no other process.
pub fn over_fake_libfabric<'a>(n_pes: &'a str, provider: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("PELAGO_PES_PER_PROCESS", n_pes),
        ("PELAGO_ROUTE", "net"),
        ("PELAGO_FABRIC", "ofi"),
        ("PELAGO_OFI_LIBRARY", fake_libfabric::install().path()),
        ("PELAGO_OFI_PROVIDER", provider),
    ]
}

/// Two nodes, and libfabric between them.
#[cfg(feature = "full")]
pub const NODES_OVER_LIBFABRIC: [(&str, &str); 2] = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "ofi")];

/// Whether jobs over TCP with several PEs a process are encrypted.
const ENCRYPT: &str = if cfg!(feature = "encrypt") { "on" } else { "off" };

/// Settings of jobs over TCP: between two nodes, in the full tier also with several PEs a process, encrypted
/// where the build can, and between all PEs.
pub fn ways_over_tcp(each: &str) -> Vec<Vec<(&str, &str)>> {
    let (tcp, nodes) = (("PELAGO_FABRIC", "tcp"), ("PELAGO_SIM_NODES", "2"));
    let all = [
        vec![tcp, nodes],
        vec![tcp, nodes, ("PELAGO_PES_PER_PROCESS", each), ("PELAGO_TCP_ENCRYPT", ENCRYPT)],
        vec![tcp, ("PELAGO_ROUTE", "net")],
    ];
    all.into_iter().take(if cfg!(feature = "full") { 3 } else { 1 }).collect()
}

/// The number of PEs of a process in jobs with several PEs for each process: the smallest possible. A prime
/// number of PEs is one process.
pub fn pes_per_process(n_pes: usize) -> String {
    let divides = |each: &usize| n_pes.is_multiple_of(*each);
    (2..n_pes).find(divides).unwrap_or(n_pes).to_string()
}

/// Runs a body over simulated networks of all seeds; a failure reports how to repeat it.
pub fn over_seeds(n_pes: usize, body: impl Fn(&World) + Sync) {
    simulate(n_pes, SEEDS, SimParams::chaos, body);
}

/// The same between two nodes, whose PEs map each other's memory: one after the other on a node, or in turn.
pub fn over_nodes(n_pes: usize, body: impl Fn(&World) + Sync) {
    let nodes = |seed| {
        let params = SimParams { maps_nodes: true, ..SimParams::chaos(seed) };
        match seed % 2 {
            0 => params.on_nodes(n_pes, 2),
            _ => SimParams { nodes: (0..n_pes as u32).map(|pe| pe % 2).collect(), ..params },
        }
    };
    simulate(n_pes, SEEDS / 2, nodes, body);
}

/// Runs a body with the settings of `spmd` over a few simulated networks.
pub fn over_seeds_with(spmd: &Spmd, seeds: u64, body: impl Fn(&World) + Sync) {
    for seed in 0..seeds {
        if let Err(error) = spmd.clone().sim(SimParams::chaos(seed)).run(&body) {
            panic!("on the simulated network of seed {seed}: {error}");
        }
    }
}

fn simulate(n_pes: usize, seeds: u64, params: impl Fn(u64) -> SimParams, body: impl Fn(&World) + Sync) {
    let one = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..seeds, |seed: u64| seed..seed + 1);
    for seed in seeds {
        if let Err(error) = Spmd::new(n_pes).sim(params(seed)).run(&body) {
            panic!("on the simulated network of seed {seed}: {error}\nrepeat with {SEED_VARIABLE}={seed}");
        }
    }
}

/// The number of repetitions: many between PEs that map each other, and a few on each of many simulated
/// networks, and on a real network, where operations wait.
pub fn rounds(world: &World, mapped: u64, simulated: u64) -> u64 {
    let is_far = world.fabric().is_some_and(|fabric| fabric.starts_with("ofi") || fabric.starts_with("tcp"));
    if world.is_simulated() || is_far { simulated } else { mapped }
}
