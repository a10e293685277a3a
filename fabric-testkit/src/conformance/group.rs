//! A group of connected endpoints of one provider, with a region of memory for each. Every rule works on one.
//!
//! Invariant: one thread drives all endpoints, and every wait is bounded by a number of rounds of progress.
//! So a rule that waits in vain fails.

use super::{KEY, REGION_BYTES};
use pelago_fabric::{Completion, Event, Get, Pe, Provider, Put, Remote, Status, Token};
use std::cell::RefCell;
use std::ptr::NonNull;

/// Rounds of progress in which any provider within one process moves what is pending.
const ROUNDS: usize = 10_000;

/// Connected endpoints, their regions, and what keeps the regions alive.
pub struct Group<P> {
    pub(super) endpoints: Vec<P>,
    pub(super) regions: Vec<NonNull<u8>>,
    /// Rounds of progress after which whatever can happen has happened.
    pub(super) rounds: usize,
    /// The events of operations that `progress_all` was handed: the PE of the endpoint, the token, and
    /// whether it was `Sent`.
    pub(super) told: RefCell<Vec<(Pe, Token, bool)>>,
    _memory: Vec<Vec<u64>>,
}

impl<P: Provider> Group<P> {
    /// Connects endpoints, of which the first is that of PE 0, and gives each a region of its own. For
    /// providers that expose any memory and that one thread can connect one after the other.
    ///
    /// # Panics
    /// If the provider refuses anything.
    pub fn connect(mut endpoints: Vec<P>) -> Group<P> {
        let addresses: Vec<Vec<u8>> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
        for endpoint in &mut endpoints {
            endpoint.connect(&mut |pe| Ok(addresses[pe].clone())).unwrap();
        }
        Group::of_connected(endpoints)
    }

    /// The same of endpoints that are connected already.
    ///
    /// # Panics
    /// If the provider refuses the memory.
    pub fn of_connected(endpoints: Vec<P>) -> Group<P> {
        let mut memory: Vec<Vec<u64>> = endpoints.iter().map(|_| vec![0; REGION_BYTES / 8]).collect();
        let regions = memory.iter_mut().map(|m| NonNull::new(m.as_mut_ptr().cast()).unwrap()).collect();
        Group::new(endpoints, regions, memory)
    }

    /// The same where the provider itself has the memory that it exposes: a region for each PE.
    ///
    /// # Safety
    /// Each region has [`REGION_BYTES`] bytes, all zero and aligned to 8, which stay there as long as the
    /// endpoints, and which nobody but the providers accesses.
    ///
    /// # Panics
    /// If the provider refuses the memory.
    pub unsafe fn with_regions(endpoints: Vec<P>, regions: Vec<NonNull<u8>>) -> Group<P> {
        Group::new(endpoints, regions, Vec::new())
    }

    fn new(mut endpoints: Vec<P>, regions: Vec<NonNull<u8>>, memory: Vec<Vec<u64>>) -> Group<P> {
        for (endpoint, region) in endpoints.iter_mut().zip(&regions) {
            endpoint.register(KEY, *region, REGION_BYTES).unwrap();
        }
        let mut group =
            Group { endpoints, regions, rounds: ROUNDS, told: RefCell::default(), _memory: memory };
        group.exchange_keys();
        group
    }

    /// Sets how many rounds of progress a rule waits for something before it fails. The default is enough
    /// where data move inside the process; packets of a network take more, for instance 20 million.
    pub fn with_rounds(self, rounds: usize) -> Group<P> {
        Group { rounds, ..self }
    }

    /// The endpoints.
    pub fn endpoints(&self) -> &[P] {
        &self.endpoints
    }

    /// The same group with each endpoint in something else that is a provider, as in an enum that dispatches.
    pub fn map<Q: Provider>(self, wrap: impl FnMut(P) -> Q) -> Group<Q> {
        let Group { endpoints, regions, rounds, told, _memory } = self;
        let endpoints = endpoints.into_iter().map(wrap).collect();
        Group { endpoints, regions, rounds, told, _memory }
    }

    /// Tells everybody what must be known to reach the memory that was registered: to be called whenever
    /// something was, where keys do not say it all.
    pub(super) fn exchange_keys(&mut self) {
        let exposed: Vec<_> = self.endpoints.iter().map(Provider::exposed).collect();
        if exposed.iter().all(|told| !told.is_empty()) {
            for endpoint in &mut self.endpoints {
                endpoint.reach(&mut |pe| Ok(exposed[pe].clone())).unwrap();
            }
        }
    }

    /// A copy of a PE's region.
    pub(super) fn region(&self, pe: Pe) -> Vec<u8> {
        // SAFETY: the region has this length and, as one thread drives everything, nobody writes it now.
        unsafe { std::slice::from_raw_parts(self.regions[pe].as_ptr(), REGION_BYTES).to_vec() }
    }

    pub(super) fn progress_all(&self) -> Vec<(Pe, Pe, u64, Vec<u8>)> {
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
    pub(super) fn put(&self, from: Pe, to: Pe, source: &[u8], offset_bytes: usize) {
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

    pub(super) fn get(&self, me: Pe, from: Pe, bytes: usize, offset_bytes: usize) -> Vec<u8> {
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

    pub(super) fn accepted(&self, mut call: impl FnMut() -> Status) {
        self.until(|| call() != Status::Again, "an operation to be accepted");
    }

    /// Nothing arrives any more.
    pub(super) fn stays_quiet(&self) {
        (0..1000).for_each(|_| assert!(self.progress_all().is_empty(), "a message nobody sent"));
    }

    /// Makes progress until `done`, within a bound.
    pub(super) fn until(&self, mut done: impl FnMut() -> bool, what: &str) {
        for _ in 0..self.rounds {
            if done() {
                return;
            }
            assert!(self.progress_all().is_empty(), "a message nobody sent");
        }
        panic!("waited in vain for {what}");
    }
}

/// Bytes of which neighbours differ, other ones for each seed.
pub(super) fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}
