//! The contract of a provider, rule by rule, on every provider.
//!
//! A rule is a function generic over a [`Harness`], which opens endpoints; `conformance!` makes a test of
//! every rule for every harness. One thread drives all endpoints, so that a provider that moves only in
//! `progress` is tested as hard as one that moves at once. The simulated network runs each rule under many
//! seeds; `PELAGO_SIM_SEED` chooses one.

mod atomics;
mod events;
mod signals;

use crate::stand_in;
use atomics::{every_atomic_does_what_the_model_says, no_update_of_several_pes_is_lost};
use events::{
    a_rest_returns, an_injected_get_is_a_get, an_injected_put_is_a_put, contexts_complete_apart,
    each_token_comes_back_as_promised, messages_stay_behind_puts, the_bell_rings, what_is_sent_may_change,
};
use pelago_fabric::ofi::{Choice, Ofi};
use pelago_fabric::shm::{Layout, Shm};
use pelago_fabric::sim::{Sim, SimParams};
use pelago_fabric::tcp::{Tcp, TcpChoice};
use pelago_fabric::template::Template;
use pelago_fabric::{
    Completion, Event, FabricResult, Get, Key, Net, Pe, Provider, Put, Remote, Secret, Status, Token,
};
use proptest::prelude::*;
use signals::{
    a_flush_tells_of_unreported_puts, a_signal_comes_after_its_data, an_unreported_put_arrives,
    signals_come_in_order,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::time::Duration;

const KEY: Key = 7;
const REGION_BYTES: usize = 3 << 20;
/// Endpoints of one provider, connected, each with a zeroed region that the provider can expose.
trait Harness {
    type Endpoint: Provider;

    fn open(n_pes: usize) -> Fabric<Self::Endpoint>;

    /// Runs a rule as often as this provider needs.
    fn run(rule: fn()) {
        rule();
    }

    /// How many random cases a run of a rule tries.
    const CASES: u32 = 24;

    /// Whether a transfer moves only while its target calls `progress` too.
    const TARGET_MUST_CALL: bool = false;

    /// Whether an injected put can be asked for after it was taken.
    const REMEMBERS_PUTS: bool = true;
}

/// Connected endpoints, their regions, and whatever keeps the regions alive.
struct Fabric<P> {
    endpoints: Vec<P>,
    regions: Vec<NonNull<u8>>,
    /// Rounds of progress after which whatever can happen has happened.
    rounds: usize,
    /// What `progress_all` was told of operations: whose endpoint, which token, and whether it was `Sent`.
    told: RefCell<Vec<(Pe, Token, bool)>>,
    _memory: Vec<Vec<u64>>,
}

impl<P: Provider> Fabric<P> {
    fn new(mut endpoints: Vec<P>, regions: Vec<NonNull<u8>>, memory: Vec<Vec<u64>>) -> Fabric<P> {
        for (endpoint, region) in endpoints.iter_mut().zip(&regions) {
            endpoint.register(KEY, *region, REGION_BYTES).unwrap();
        }
        let mut fabric =
            Fabric { endpoints, regions, rounds: 10_000, told: RefCell::default(), _memory: memory };
        fabric.exchange_keys();
        fabric
    }

    /// Tells everybody what must be known to reach the memory that was registered: to be called whenever
    /// something was, where keys do not say it all.
    fn exchange_keys(&mut self) {
        let exposed: Vec<_> = self.endpoints.iter().map(Provider::exposed).collect();
        if exposed.iter().all(|told| !told.is_empty()) {
            for endpoint in &mut self.endpoints {
                endpoint.reach(&mut |pe| Ok(exposed[pe].clone())).unwrap();
            }
        }
    }

    /// A copy of a PE's region.
    fn region(&self, pe: Pe) -> Vec<u8> {
        // SAFETY: the region has this length and, as one thread drives everything, nobody writes it now.
        unsafe { std::slice::from_raw_parts(self.regions[pe].as_ptr(), REGION_BYTES).to_vec() }
    }

    fn progress_all(&self) -> Vec<(Pe, Pe, u64, Vec<u8>)> {
        let mut arrived = Vec::new();
        for (to, endpoint) in self.endpoints.iter().enumerate() {
            let mut count = 0;
            let mut handle = |event: Event<'_>| {
                count += 1;
                match event {
                    Event::Message { from, header, payload } => {
                        arrived.push((to, from, header, payload.to_vec()));
                    }
                    Event::Sent(token) => self.told.borrow_mut().push((to, token, true)),
                    Event::Done(token) => self.told.borrow_mut().push((to, token, false)),
                }
            };
            assert!(endpoint.progress(&mut handle).unwrap() >= count, "as many events as were counted");
        }
        arrived
    }

    /// Puts and waits for completion; retries on `Again`.
    fn put(&self, from: Pe, to: Pe, source: &[u8], offset_bytes: usize) {
        let remote = Remote { key: KEY, offset_bytes };
        let before = self.endpoints[from].completions().puts;
        // SAFETY: the source lives until the loop below has seen completion; tests stay inside the region.
        self.accepted(|| unsafe {
            self.endpoints[from].put(Put {
                pe: to,
                source: source.as_ptr(),
                bytes: source.len(),
                target: remote,
                completion: Completion::Counted,
            })
        });
        self.until(|| self.endpoints[from].completions().puts == before + 1, "a put to complete");
    }

    fn get(&self, me: Pe, from: Pe, bytes: usize, offset_bytes: usize) -> Vec<u8> {
        let mut target = vec![0xEE; bytes];
        let remote = Remote { key: KEY, offset_bytes };
        let before = self.endpoints[me].completions().gets;
        let address = target.as_mut_ptr();
        // SAFETY: the target lives until the loop below has seen completion; tests stay inside the region.
        self.accepted(|| unsafe {
            self.endpoints[me].get(Get {
                pe: from,
                target: address,
                bytes,
                source: remote,
                completion: Completion::Counted,
            })
        });
        self.until(|| self.endpoints[me].completions().gets == before + 1, "a get to complete");
        target
    }

    fn accepted(&self, mut call: impl FnMut() -> Status) {
        self.until(|| call() != Status::Again, "an operation to be accepted");
    }

    /// Nothing arrives any more.
    fn stays_quiet(&self) {
        (0..1000).for_each(|_| assert!(self.progress_all().is_empty(), "a message nobody sent"));
    }

    /// Makes progress until `done`, within a bound.
    fn until(&self, mut done: impl FnMut() -> bool, what: &str) {
        for _ in 0..self.rounds {
            if done() {
                return;
            }
            assert!(self.progress_all().is_empty(), "a message nobody sent");
        }
        panic!("waited in vain for {what}");
    }
}

struct ShmThreads;
struct ShmProcesses;
struct TemplateHub;
struct Dispatched;
struct SimModel;
struct SimChaos;

fn shm_fabric(endpoints: Vec<Shm>) -> Fabric<Shm> {
    let regions = (0..endpoints.len()).map(|pe| endpoints[pe].segment().heap(pe)).collect();
    Fabric::new(endpoints, regions, Vec::new())
}

impl Harness for ShmThreads {
    type Endpoint = Shm;

    fn open(n_pes: usize) -> Fabric<Shm> {
        let mut endpoints = Shm::threads(Layout::new(n_pes, REGION_BYTES, 8192)).unwrap();
        endpoints
            .iter_mut()
            .for_each(|e| e.connect(&mut |_| unreachable!("threads need no address")).unwrap());
        shm_fabric(endpoints)
    }
}

/// As between processes: one endpoint makes the memory and hands it out over a socket, the others map it
/// anew.
impl Harness for ShmProcesses {
    type Endpoint = Shm;

    fn open(n_pes: usize) -> Fabric<Shm> {
        let open =
            |me| Shm::open(me, Layout::new(n_pes, REGION_BYTES, 8192), Duration::from_secs(60)).unwrap();
        let endpoints: Vec<Shm> = (0..n_pes).map(open).collect();
        let address = endpoints[0].address().unwrap();
        let connect = |mut endpoint: Shm| {
            let address = address.clone();
            std::thread::spawn(move || {
                endpoint.connect(&mut |_| Ok(address.clone())).unwrap();
                endpoint
            })
        };
        let threads: Vec<_> = endpoints.into_iter().map(connect).collect();
        shm_fabric(threads.into_iter().map(|thread| thread.join().unwrap()).collect())
    }
}

impl Harness for TemplateHub {
    type Endpoint = Template;

    fn open(n_pes: usize) -> Fabric<Template> {
        let mut endpoints = Template::open(n_pes);
        let addresses: Vec<Vec<u8>> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
        endpoints.iter_mut().for_each(|e| e.connect(&mut |pe| Ok(addresses[pe].clone())).unwrap());
        own_memory(endpoints)
    }
}

/// For providers that expose any memory.
fn own_memory<P: Provider>(endpoints: Vec<P>) -> Fabric<P> {
    let mut memory: Vec<Vec<u64>> = endpoints.iter().map(|_| vec![0; REGION_BYTES / 8]).collect();
    let regions = memory.iter_mut().map(|m| NonNull::new(m.as_mut_ptr().cast()).unwrap()).collect();
    Fabric::new(endpoints, regions, memory)
}

fn sim_fabric(n_pes: usize, params: SimParams) -> Fabric<Sim> {
    let mut endpoints = Sim::open(n_pes, params);
    endpoints.iter_mut().for_each(|e| e.connect(&mut |_| unreachable!("no address is needed")).unwrap());
    own_memory(endpoints)
}

impl Harness for SimModel {
    type Endpoint = Sim;

    fn open(n_pes: usize) -> Fabric<Sim> {
        sim_fabric(n_pes, SimParams::default())
    }
}

thread_local! {
    /// The seed of the run in progress.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

const SEEDS: u64 = if cfg!(feature = "full") { 1000 } else { 20 };

impl Harness for SimChaos {
    type Endpoint = Sim;

    fn open(n_pes: usize) -> Fabric<Sim> {
        sim_fabric(n_pes, SimParams::chaos(SEED.get()))
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

    const CASES: u32 = 2;
}

/// Over a network of libfabric's: the system's library, or that of the setting; as it moves by itself, or as
/// it moves where somebody calls it.
#[cfg(feature = "full")]
struct OverLibfabric<const SERVED: bool>;
#[cfg(feature = "full")]
type Libfabric = OverLibfabric<false>;
#[cfg(feature = "full")]
type LibfabricServed = OverLibfabric<true>;

#[cfg(feature = "full")]
impl<const SERVED: bool> Harness for OverLibfabric<SERVED> {
    type Endpoint = Ofi;

    const TARGET_MUST_CALL: bool = SERVED;

    fn open(n_pes: usize) -> Fabric<Ofi> {
        let set = |variable: &str| std::env::var(variable).ok();
        let choice = Choice {
            library: set("PELAGO_OFI_LIBRARY"),
            providers: vec![set("PELAGO_OFI_PROVIDER").unwrap_or_else(|| "tcp;ofi_rxm".to_owned())],
            interface: set("PELAGO_OFI_INTERFACE"),
            is_served: SERVED,
            is_local: false,
        };
        // Packets take their time.
        Fabric { rounds: 20_000_000, ..ofi_fabric(n_pes, &choice) }
    }

    const CASES: u32 = 4;
}

fn ofi_fabric(n_pes: usize, choice: &Choice) -> Fabric<Ofi> {
    let secret = Secret::draw().unwrap();
    let mut endpoints: Vec<_> = (0..n_pes).map(|me| Ofi::open(me, n_pes, choice, secret).unwrap()).collect();
    let addresses: Vec<Vec<u8>> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
    endpoints.iter_mut().for_each(|e| e.connect(&mut |pe| Ok(addresses[pe].clone())).unwrap());
    own_memory(endpoints)
}

/// Over a provider of the stand-in for libfabric.
fn stand_in_fabric(n_pes: usize, provider: &str) -> Fabric<Ofi> {
    let (library, providers) = (Some(stand_in::library()), vec![provider.to_owned()]);
    let fabric = ofi_fabric(n_pes, &Choice { library, providers, ..Choice::default() });
    assert!(fabric.endpoints.iter().all(|endpoint| endpoint.description().contains(provider)));
    fabric
}

/// The provider `tcp` on the loopback interface, with `EACH` PEs a process, plain or encrypted.
struct OverTcp<const EACH: usize, const ENCRYPTS: bool>;
type TcpProcesses = OverTcp<1, false>;
type TcpThreads = OverTcp<2, false>;
#[cfg(feature = "encrypt")]
type TcpEncrypted = OverTcp<1, true>;
#[cfg(feature = "encrypt")]
type TcpEncryptedThreads = OverTcp<2, true>;

impl<const EACH: usize, const ENCRYPTS: bool> Harness for OverTcp<EACH, ENCRYPTS> {
    type Endpoint = Tcp;

    const TARGET_MUST_CALL: bool = true;

    const REMEMBERS_PUTS: bool = false;

    fn open(n_pes: usize) -> Fabric<Tcp> {
        let secret = Secret::draw().unwrap();
        let choice = TcpChoice { is_local: true, encrypts: ENCRYPTS, ..TcpChoice::default() };
        let open = |process| Tcp::open(process, EACH, n_pes, &choice, secret).unwrap();
        let mut endpoints: Vec<Tcp> = (0..n_pes.div_ceil(EACH)).flat_map(open).collect();
        let addresses: Vec<Vec<u8>> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
        endpoints.iter_mut().for_each(|e| e.connect(&mut |pe| Ok(addresses[pe].clone())).unwrap());
        // Packets take their time.
        Fabric { rounds: 20_000_000, ..own_memory(endpoints) }
    }

    const CASES: u32 = 8;
}

/// Through the enum that the layers above hold.
impl Harness for Dispatched {
    type Endpoint = Net;

    fn open(n_pes: usize) -> Fabric<Net> {
        let Fabric { endpoints, regions, rounds, told, _memory } = TemplateHub::open(n_pes);
        let endpoints: Vec<Net> = endpoints.into_iter().map(Net::Template).collect();
        assert!(endpoints.iter().all(|net| Net::NAMES.contains(&net.name()) && net.name() == Template::NAME));
        Fabric { endpoints, regions, rounds, told, _memory }
    }
}

fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

fn puts_of_all_sizes_arrive_and_touch_nothing_else<H: Harness>() {
    let fabric = H::open(2);
    let mut model = vec![0u8; REGION_BYTES];
    let sizes = [0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 4095, 4096, 65537, 1 << 20];
    for (i, bytes) in sizes.into_iter().enumerate() {
        let offset = 1 + i * 100_003 % (REGION_BYTES - (1 << 20) - 1);
        let source = pattern(bytes, i as u8 + 1);
        fabric.put(0, 1, &source, offset);
        model[offset..offset + bytes].copy_from_slice(&source);
        assert!(fabric.region(1) == model, "after {bytes} bytes at {offset}");
    }
    assert!(fabric.region(0).iter().all(|&byte| byte == 0), "the sender's own region was written");
}

fn gets_bring_what_is_there<H: Harness>() {
    let fabric = H::open(3);
    let data = pattern(200_000, 9);
    fabric.put(0, 2, &data, 77);
    for (bytes, at) in [(0, 77), (1, 78), (8, 80), (4096, 100), (200_000, 77)] {
        assert_eq!(fabric.get(1, 2, bytes, at), data[at - 77..at - 77 + bytes]);
    }
}

fn a_pe_reaches_itself<H: Harness>() {
    let fabric = H::open(1);
    fabric.put(0, 0, b"to myself", 1000);
    assert_eq!(fabric.get(0, 0, 9, 1000), b"to myself");
}

fn injected_sources_are_free_at_return<H: Harness>() {
    let fabric = H::open(2);
    let bytes = fabric.endpoints[0].limits().inject_bytes.min(4096);
    let mut source = pattern(bytes, 3);
    let remote = Remote { key: KEY, offset_bytes: 8 };
    let before = fabric.endpoints[0].completions().puts;
    // SAFETY: up to the inject size the source need only live until return.
    fabric.accepted(|| unsafe {
        fabric.endpoints[0].put(Put {
            pe: 1,
            source: source.as_ptr(),
            bytes,
            target: remote,
            completion: Completion::Counted,
        })
    });
    source.fill(0);
    fabric.until(|| fabric.endpoints[0].completions().puts == before + 1, "the put to complete");
    assert_eq!(fabric.get(0, 1, bytes, 8), pattern(bytes, 3));
}

fn every_operation_completes_exactly_once<H: Harness>() {
    let fabric = H::open(2);
    let (source, mut target) = (pattern(100_000, 1), vec![0; 1000]);
    let endpoint = &fabric.endpoints[0];
    let address = target.as_mut_ptr();
    for i in 0..50 {
        let remote = Remote { key: KEY, offset_bytes: i * 16 };
        // SAFETY: source and target outlive the loop that waits for completion; both ranges lie in the
        // region.
        fabric.accepted(|| unsafe {
            endpoint.put(Put {
                pe: 1,
                source: source.as_ptr(),
                bytes: 100_000,
                target: remote,
                completion: Completion::Counted,
            })
        });
        // SAFETY: source and target outlive the loop that waits for completion; the range lies in the region.
        fabric.accepted(|| unsafe {
            endpoint.get(Get {
                pe: 1,
                target: address,
                bytes: 1000,
                source: remote,
                completion: Completion::Counted,
            })
        });
    }
    fabric
        .until(|| endpoint.completions().puts >= 50 && endpoint.completions().gets >= 50, "100 completions");
    fabric.progress_all();
    let done = endpoint.completions();
    assert_eq!((done.puts, done.gets), (50, 50));
    assert_eq!(fabric.endpoints[1].completions().puts, 0, "completions belong to the initiator");
}

fn what_was_answered_again_has_not_happened<H: Harness>() {
    let fabric = H::open(2);
    let sources: Vec<Vec<u8>> = (0..64).map(|i| vec![i + 1; 512]).collect();
    let mut accepted = vec![false; sources.len()];
    for (i, source) in sources.iter().enumerate() {
        let remote = Remote { key: KEY, offset_bytes: i * 512 };
        // SAFETY: the sources outlive the wait below; the range lies in the region.
        let status = unsafe {
            fabric.endpoints[0].put(Put {
                pe: 1,
                source: source.as_ptr(),
                bytes: 512,
                target: remote,
                completion: Completion::Counted,
            })
        };
        accepted[i] = status != Status::Again;
    }
    let expected = accepted.iter().filter(|&&yes| yes).count() as u64;
    fabric.until(|| fabric.endpoints[0].completions().puts == expected, "the accepted puts to complete");
    let region = fabric.region(1);
    for (i, &was_accepted) in accepted.iter().enumerate() {
        let byte = if was_accepted { i as u8 + 1 } else { 0 };
        assert!(
            region[i * 512..(i + 1) * 512].iter().all(|&b| b == byte),
            "put {i}, accepted: {was_accepted}"
        );
    }
}

fn messages_arrive_once_in_order_and_whole<H: Harness>() {
    let fabric = H::open(3);
    let limit = fabric.endpoints[0].limits().message_bytes;
    assert!(limit >= 64, "a message of 64 bytes fits");
    let sizes = [0, 1, 7, 8, 40, 41, 64, 65, 200, limit - 1, limit];
    let mut expected: Vec<VecDeque<(u64, Vec<u8>)>> = vec![VecDeque::new(); 2];
    let check = |fabric: &Fabric<H::Endpoint>, expected: &mut Vec<VecDeque<(u64, Vec<u8>)>>| {
        for (to, from, header, payload) in fabric.progress_all() {
            assert_eq!(to, 2);
            assert_eq!(
                expected[from].pop_front(),
                Some((header, payload)),
                "the next message from PE {from}"
            );
        }
    };
    for round in 0..200u64 {
        for from in 0..2 {
            let payload = pattern(sizes[(round as usize * 3 + from) % sizes.len()], round as u8);
            let header = u64::MAX - round;
            for attempt in 0.. {
                assert!(attempt < fabric.rounds, "no room for a message");
                match fabric.endpoints[from].send(2, header, &payload) {
                    Status::Done => break,
                    Status::Again => check(&fabric, &mut expected),
                    Status::Pending => panic!("a message's payload is reusable at return"),
                }
            }
            expected[from].push_back((header, payload));
        }
    }
    let all_arrived = |expected: &[VecDeque<_>]| expected.iter().all(VecDeque::is_empty);
    for round in 0.. {
        if all_arrived(&expected) {
            break;
        }
        assert!(round < fabric.rounds, "messages lost");
        check(&fabric, &mut expected);
    }
    fabric.stays_quiet();
}

/// More than all buffers hold that a provider may have for messages.
fn long_messages_arrive_without_end<H: Harness>() {
    let fabric = H::open(2);
    let bytes = fabric.endpoints[0].limits().message_bytes;
    let count = ((3 << 20) / bytes).min(600) as u64;
    let (mut sent, mut arrived, mut rounds) = (0, 0, 0);
    while arrived < count {
        let payload = pattern(bytes, sent as u8);
        match sent < count && fabric.endpoints[0].send(1, sent, &payload) == Status::Done {
            true => sent += 1,
            false => rounds += 1,
        }
        assert!(rounds < fabric.rounds, "{arrived} of {count} messages have arrived, {sent} were accepted");
        for (to, from, header, payload) in fabric.progress_all() {
            assert_eq!((to, from, header), (1, 0, arrived));
            assert!(payload == pattern(bytes, arrived as u8), "message {arrived}");
            arrived += 1;
        }
    }
    fabric.stays_quiet();
}

fn a_flood_of_messages_is_refused_but_not_lost<H: Harness>() {
    let fabric = H::open(2);
    // The first one may have to find its way.
    fabric.accepted(|| fabric.endpoints[0].send(1, 0, &[1, 2, 3]));
    let (mut sent, mut refused) = (1u64, 0);
    while refused < 100 {
        match fabric.endpoints[0].send(1, sent, &[1, 2, 3]) {
            Status::Done => (sent, refused) = (sent + 1, 0),
            _ => refused += 1,
        }
        assert!(sent < 1_000_000, "a flood must end in Again: memory is bounded");
    }
    let mut headers = Vec::new();
    for round in 0.. {
        if headers.len() as u64 >= sent {
            break;
        }
        assert!(round < fabric.rounds, "messages lost");
        headers.extend(fabric.progress_all().into_iter().map(|(_, _, header, _)| header));
    }
    fabric.stays_quiet();
    assert_eq!(headers, (0..sent).collect::<Vec<_>>());
    fabric.accepted(|| fabric.endpoints[0].send(1, 0, &[]));
}

fn a_key_names_one_region<H: Harness>() {
    let mut fabric = H::open(1);
    let region = fabric.regions[0];
    assert!(fabric.endpoints[0].register(KEY, region, 64).is_err(), "the key is taken");
    // SAFETY: the region is longer than a MiB.
    let inside = unsafe { region.add(1 << 20) };
    let result: FabricResult<()> = fabric.endpoints[0].register(KEY + 1, inside, 4096);
    result.unwrap();
    fabric.exchange_keys();
    let before = fabric.endpoints[0].completions().puts;
    let remote = Remote { key: KEY + 1, offset_bytes: 5 };
    // SAFETY: a static source; the range lies in the second region.
    fabric.accepted(|| unsafe {
        fabric.endpoints[0].put(Put {
            pe: 0,
            source: b"second".as_ptr(),
            bytes: 6,
            target: remote,
            completion: Completion::Counted,
        })
    });
    fabric.until(|| fabric.endpoints[0].completions().puts == before + 1, "the put to complete");
    assert_eq!(fabric.get(0, 0, 6, (1 << 20) + 5), b"second");
}

fn nothing_happens_without_traffic<H: Harness>() {
    let fabric = H::open(2);
    assert!(fabric.progress_all().is_empty());
    assert_eq!(fabric.endpoints[0].completions(), Default::default());
}

/// Random puts and gets of random PEs against plain arrays.
fn random_transfers_equal_the_model<H: Harness>() {
    let transfer = (0usize..3, 0usize..3, 0usize..5000, 0usize..3000, any::<u8>(), any::<bool>());
    let transfers = prop::collection::vec(transfer, 1..40);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(H::CASES));
    let outcome = runner.run(&transfers, |transfers| {
        let fabric = H::open(3);
        let mut model = vec![vec![0u8; 8192]; 3];
        for (from, to, at, bytes, seed, is_put) in transfers {
            if is_put {
                let source = pattern(bytes, seed);
                fabric.put(from, to, &source, at);
                model[to][at..at + bytes].copy_from_slice(&source);
            } else {
                prop_assert_eq!(&fabric.get(from, to, bytes, at)[..], &model[to][at..at + bytes]);
            }
        }
        for (pe, model) in model.iter().enumerate() {
            prop_assert_eq!(&fabric.region(pe)[..8192], &model[..]);
        }
        Ok(())
    });
    outcome.unwrap();
}

macro_rules! conformance {
    ($($module:ident: $harness:ident),+ $(,)?) => {
        $(conformance!(@rules $module $harness:
            puts_of_all_sizes_arrive_and_touch_nothing_else
            gets_bring_what_is_there
            a_pe_reaches_itself
            injected_sources_are_free_at_return
            every_operation_completes_exactly_once
            what_was_answered_again_has_not_happened
            messages_arrive_once_in_order_and_whole
            long_messages_arrive_without_end
            a_flood_of_messages_is_refused_but_not_lost
            a_key_names_one_region
            nothing_happens_without_traffic
            random_transfers_equal_the_model
            every_atomic_does_what_the_model_says
            no_update_of_several_pes_is_lost
            each_token_comes_back_as_promised
            what_is_sent_may_change
            an_injected_put_is_a_put
            an_injected_get_is_a_get
            messages_stay_behind_puts
            a_signal_comes_after_its_data
            signals_come_in_order
            an_unreported_put_arrives
            a_flush_tells_of_unreported_puts
            the_bell_rings
            contexts_complete_apart
            a_rest_returns
        );)+
    };
    (@rules $module:ident $harness:ident: $($rule:ident)+) => {
        mod $module {
            use super::{Harness, $harness};

            $(#[test]
            fn $rule() {
                <$harness>::run(super::$rule::<$harness>);
            })+
        }
    };
}

#[cfg(feature = "full")]
conformance! {
    libfabric: Libfabric,
    libfabric_served: LibfabricServed,
}

conformance! {
    shm_threads: ShmThreads,
    shm_processes: ShmProcesses,
    template: TemplateHub,
    dispatched: Dispatched,
    sim_model: SimModel,
    sim_chaos: SimChaos,
    tcp_processes: TcpProcesses,
    tcp_threads: TcpThreads,
}

#[cfg(feature = "encrypt")]
conformance! {
    tcp_encrypted: TcpEncrypted,
    tcp_encrypted_threads: TcpEncryptedThreads,
}

/// Harnesses over the stand-in for libfabric, and their tests: one line a provider, and whether its targets
/// must call.
macro_rules! stand_ins {
    ($($module:ident: $harness:ident($provider:literal, $target_must_call:literal)),+ $(,)?) => {
        $(struct $harness;

        impl Harness for $harness {
            type Endpoint = Ofi;
            const TARGET_MUST_CALL: bool = $target_must_call;

            fn open(n_pes: usize) -> Fabric<Ofi> {
                stand_in_fabric(n_pes, $provider)
            }
        }

        conformance! {
            $module: $harness,
        })+
    };
}

stand_ins! {
    ofi_stand_in_plain: StandInPlain("plain", false),
    ofi_stand_in_verbs: StandInVerbs("like-verbs", true),
    ofi_stand_in_cxi: StandInCxi("like-cxi", true),
}
