//! A group of connected endpoints of one provider, with a region of memory for each. Every rule uses such a
//! group.
//!
//! Invariant: one thread drives all endpoints, and every wait is bounded by a number of rounds of progress.
//! So a rule fails if its wait is in vain.

use super::{KEY, REGION_BYTES};
use pelago_fabric::{Completion, Event, Get, Pe, Provider, Put, Remote, Status, Token};
use std::cell::RefCell;
use std::ptr::NonNull;

/// The number of rounds of progress in which any provider within one process completes all pending
/// operations.
const ROUNDS: usize = 10_000;

/// Connected endpoints, their regions, and the owner of the memory.
pub struct Group<P> {
    pub(super) endpoints: Vec<P>,
    pub(super) regions: Vec<NonNull<u8>>,
    /// The number of rounds of progress after which all possible events have occurred.
    pub(super) rounds: usize,
    /// The events of operations in `progress_all`: the PE of the endpoint, the token, and whether it was
    /// `Sent`.
    pub(super) told: RefCell<Vec<(Pe, Token, bool)>>,
    _memory: Vec<Vec<u64>>,
}

impl<P: Provider> Group<P> {
    /// Connects endpoints, in the order of the PEs, and allocates a region for each. For providers that can
    /// expose any memory, and whose endpoints one thread can connect one after the other.
    ///
    /// # Panics
    /// If the provider returns an error.
    pub fn connect(mut endpoints: Vec<P>) -> Group<P> {
        let addresses: Vec<Vec<u8>> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
        for endpoint in &mut endpoints {
            endpoint.connect(&mut |pe| Ok(addresses[pe].clone())).unwrap();
        }
        Group::of_connected(endpoints)
    }

    /// The same for endpoints that are connected already.
    ///
    /// # Panics
    /// If the provider refuses the memory.
    pub fn of_connected(endpoints: Vec<P>) -> Group<P> {
        let mut memory: Vec<Vec<u64>> = endpoints.iter().map(|_| vec![0; REGION_BYTES / 8]).collect();
        let regions = memory.iter_mut().map(|m| NonNull::new(m.as_mut_ptr().cast()).unwrap()).collect();
        Group::new(endpoints, regions, memory)
    }

    /// The same for a provider that allocates the memory that it exposes: a region for each PE.
    ///
    /// # Safety
    /// Each region has [`REGION_BYTES`] bytes, all zero and aligned to 8, which stay valid as long as the
    /// endpoints, and which only the providers access.
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

    /// Sets the number of rounds of progress after which a wait of a rule fails. The default suffices if data
    /// move inside the process; packets of a network need more, for instance 20 million.
    pub fn with_rounds(self, rounds: usize) -> Group<P> {
        Group { rounds, ..self }
    }

    /// The endpoints.
    pub fn endpoints(&self) -> &[P] {
        &self.endpoints
    }

    /// The same group with each endpoint wrapped in another provider, such as an enum that dispatches.
    pub fn map<Q: Provider>(self, wrap: impl FnMut(P) -> Q) -> Group<Q> {
        let Group { endpoints, regions, rounds, told, _memory } = self;
        let endpoints = endpoints.into_iter().map(wrap).collect();
        Group { endpoints, regions, rounds, told, _memory }
    }

    /// Exchanges the data that are needed to access registered memory: to be called after each registration,
    /// for providers where a key alone does not suffice.
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
        // SAFETY: the region has this length and, because one thread drives all endpoints, no write is in
        // progress.
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
        // SAFETY: the source lives until the loop below has seen the completion; tests stay inside the
        // region.
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

    /// Checks that no further message arrives.
    pub(super) fn stays_quiet(&self) {
        (0..1000).for_each(|_| assert!(self.progress_all().is_empty(), "a message nobody sent"));
    }

    /// Makes progress until `done` returns true, for a bounded number of rounds.
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

/// A pattern in which adjacent bytes differ, and which depends on the seed.
pub(super) fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}
