//! Runs a litmus test on threads, on processes and on simulated networks, with its ordering call or
//! without.
//!
//! Invariant: a round uses one slot of the arrays, or writes one of a series of values, and between two
//! barriers (a *batch*) each slot and each value is used once. So the rounds of a batch may overlap, and only
//! the operations of the test order them.

use pelago::sim::SimParams;
use pelago::{Spmd, World};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const IS_FULL: bool = cfg!(feature = "full");
/// Rounds between PEs that map each other.
const ROUNDS: u64 = if IS_FULL { 1_000_000 } else { 20_000 };
/// Rounds over the network although memory is mapped, where each put is a call of the provider.
const ROUNDS_NET: u64 = ROUNDS / 10;
/// Simulated networks on which the forbidden outcome must not be seen.
const SEEDS: u64 = if IS_FULL { 10_000 } else { 150 };
/// Simulated networks among which one must show the forbidden outcome without the ordering call.
const SEEDS_WITHOUT_ORDER: u64 = 1000;
/// Slots between PEs that map each other: enough to make the barriers cheap, and a divisor of the rounds.
const SLOTS: usize = 50;
/// Slots and batches on one simulated network: few, because each network is a different one.
const SLOTS_SIMULATED: usize = 2;
const BATCHES_SIMULATED: u64 = 2;
/// Heap of a PE of a simulation, which is created and freed once for each seed.
const HEAP_BYTES_SIMULATED: usize = 64 << 10;
/// No wait takes longer.
const WAIT_LIMIT: Duration = Duration::from_secs(60);
/// The same for processes, as a variable.
pub const LIMIT: (&str, &str) = ("PELAGO_WAIT_LIMIT", "60");
/// A run of this test program with this variable repeats only one simulation.
const SEED_VARIABLE: &str = "PELAGO_SIM_SEED";

/// A litmus test: the code of one PE, which returns the outcomes that it has seen.
pub type Body = fn(&World, &Trial) -> Sightings;

/// How a litmus test is run.
pub struct Trial {
    is_ordered: bool,
    batches: u64,
    /// Instances of the test in one batch.
    pub slots: usize,
}

/// The forbidden outcomes that a PE has seen.
#[derive(Default)]
pub struct Sightings {
    count: u64,
    first: Option<String>,
}

impl Trial {
    fn mapped(rounds: u64) -> Trial {
        Trial { is_ordered: true, batches: rounds / SLOTS as u64, slots: SLOTS }
    }

    fn simulated(is_ordered: bool) -> Trial {
        Trial { is_ordered, batches: BATCHES_SIMULATED, slots: SLOTS_SIMULATED }
    }

    /// Makes the ordering call of the test, unless the test is run without.
    pub fn order(&self, call: impl FnOnce()) {
        if self.is_ordered {
            call();
        }
    }

    /// Whether the test is run without its ordering call, for calls that order by waiting.
    pub fn is_without_order(&self) -> bool {
        !self.is_ordered
    }

    /// The numbers of the batches, which are the values that a test writes in them: 1 and up, over the zeros
    /// of a new array.
    pub fn batches(&self) -> Range<u64> {
        1..self.batches + 1
    }

    /// As many numbers as a batch has rounds, which go on rising from batch to batch.
    pub fn values(&self, batch: u64) -> Range<u64> {
        let slots = self.slots as u64;
        (batch - 1) * slots + 1..batch * slots + 1
    }

    /// Runs the rounds, with a slot and the number of the batch, and a barrier after each batch.
    pub fn rounds(&self, world: &World, mut round: impl FnMut(usize, u64)) {
        for batch in self.batches() {
            (0..self.slots).for_each(|slot| round(slot, batch));
            world.barrier();
        }
    }
}

impl Sightings {
    /// Records a forbidden outcome, if it is one.
    pub fn forbid(&mut self, is_seen: bool, words: impl FnOnce() -> String) {
        if is_seen {
            self.count += 1;
            self.first.get_or_insert_with(words);
        }
    }

    /// Records data of which a part differs from the written value.
    pub fn forbid_other_than(&mut self, wanted: u64, data: &[u64], slot: usize) {
        let is_seen = data.iter().any(|&word| word != wanted);
        self.forbid(is_seen, || format!("slot {slot}, batch {wanted}: the data are {data:?}"));
    }
}

/// Polls until the condition is true.
pub fn poll(mut question: impl FnMut() -> bool) {
    let since = Instant::now();
    for asked in 1u64.. {
        if question() {
            return;
        }
        if asked.is_multiple_of(64) {
            std::thread::yield_now();
            assert!(since.elapsed() < WAIT_LIMIT, "asked {asked} times in vain");
        }
    }
}

/// A job of threads.
pub fn run_threads(n_pes: usize, body: Body) {
    let job = Spmd::new(n_pes).wait_limit(WAIT_LIMIT);
    job.run(|world| expect_none(world, body, ROUNDS)).unwrap();
}

/// One of several processes.
pub fn run_process(world: &World, body: Body) {
    expect_none(world, body, ROUNDS);
}

/// One of several processes that communicate over the network.
pub fn run_net(world: &World, body: Body) {
    expect_none(world, body, ROUNDS_NET);
}

fn expect_none(world: &World, body: Body, rounds: u64) {
    let Sightings { count, first } = body(world, &Trial::mapped(rounds));
    if let Some(first) = first {
        panic!(
            "PE {} has seen {count} forbidden outcomes in {rounds} rounds, the first: {first}",
            world.my_pe()
        );
    }
}

/// The forbidden outcome is seen on none of many simulated networks.
pub fn run_simulated(n_pes: usize, body: Body) {
    let _core = Core::take();
    let one = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    for seed in one.map_or(0..SEEDS, |seed: u64| seed..seed + 1) {
        if let Some(first) = first_sighting(n_pes, body, seed, true) {
            let test = std::thread::current().name().unwrap_or("").to_owned();
            panic!(
                "on the simulated network of seed {seed} a forbidden outcome is seen, {first}\nrepeat with \
                 {SEED_VARIABLE}={seed} cargo test -p pelago-tests --test operations -- --exact {test}"
            );
        }
    }
}

/// Without the ordering call the forbidden outcome is seen on some simulated network.
pub fn run_without_order(n_pes: usize, body: Body) {
    let _core = Core::take();
    let seen = (0..SEEDS_WITHOUT_ORDER).any(|seed| first_sighting(n_pes, body, seed, false).is_some());
    assert!(
        seen,
        "without its ordering call the test sees no forbidden outcome on the simulated networks of the seeds \
         below {SEEDS_WITHOUT_ORDER}, so it could not fail: does the network still reorder?"
    );
}

/// The first forbidden outcome of the lowest PE that has seen one, with the number of this PE.
fn first_sighting(n_pes: usize, body: Body, seed: u64, is_ordered: bool) -> Option<String> {
    let job = Spmd::new(n_pes).heap_bytes(HEAP_BYTES_SIMULATED).wait_limit(WAIT_LIMIT);
    let outcome = job.sim(SimParams::chaos(seed)).run(|world| body(world, &Trial::simulated(is_ordered)));
    let sightings = outcome.unwrap_or_else(|error| {
        panic!("on the simulated network of seed {seed}: {error}\nrepeat with {SEED_VARIABLE}={seed}")
    });
    let firsts = sightings.into_iter().enumerate().map(|(pe, seen)| Some((pe, seen.first?)));
    firsts.flatten().next().map(|(pe, words)| format!("by PE {pe}: {words}"))
}

/// A core that this thread has reserved, for itself and the threads that it starts. In a simulated job one PE
/// runs at a time, and a hand-over within a core is several times as fast as one between two.
struct Core {
    core: usize,
    before: CpuSet,
}

/// The cores that tests of this process have reserved, as bits.
static TAKEN: Mutex<u128> = Mutex::new(0);

impl Core {
    /// `None` if all cores are reserved or the system does not permit a choice: then the test takes longer.
    fn take() -> Option<Core> {
        let before = sched_getaffinity(None).ok()?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let core = (0..128).find(|&core| before.is_set(core) && *taken & 1 << core == 0)?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).ok()?;
        *taken |= 1 << core;
        Some(Core { core, before })
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << self.core);
        // Restores the previous mask; if that fails, the next tests take longer.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// `litmus! { name(4): body; ... }` makes tests `name::threads`, `name::processes`, `name::net`,
/// `name::sim` and `name::without_order` of the [`Body`] named `body`.
macro_rules! litmus {
    ($($name:ident($n_pes:expr): $body:ident;)+) => {
        $(mod $name {
            use crate::litmus::harness;

            #[test]
            fn threads() {
                harness::run_threads($n_pes, super::$body);
            }

            #[test]
            fn processes() {
                let report = pelago::try_processes!($n_pes, [harness::LIMIT], |world| {
                    harness::run_process(world, super::$body)
                });
                pelago::testing::expect_success(&report);
            }

            #[test]
            fn net() {
                let net = ("PELAGO_ROUTE", "net");
                let report = pelago::try_processes!($n_pes, [harness::LIMIT, net], |world| {
                    harness::run_net(world, super::$body)
                });
                pelago::testing::expect_success(&report);
            }

            #[test]
            fn sim() {
                harness::run_simulated($n_pes, super::$body);
            }

            #[test]
            fn without_order() {
                harness::run_without_order($n_pes, super::$body);
            }
        })+
    };
}
