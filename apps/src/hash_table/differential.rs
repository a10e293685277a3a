//! A differential test of the table against a map of the standard library: the same random operations on both
//! must give the same results.
//! Invariant: in a round each key belongs to one PE, which makes one change or one lookup of it, so the
//! results of a round are known; the results of additions of all PEs to the same keys are known as well, as
//! sums do not depend on the order.

use std::collections::{BTreeMap, HashMap};

use pelago::am::{HandlerLock, Handlers};
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{Result, Spmd};

use super::shard::Shard;
use super::table::{Found, Function, HashTable, Service};
use crate::splitmix::{SplitMix, mix};

/// Keys that belong to no PE: all PEs add to them, and at the end all PEs look them up.
const SHARED_KEYS: u64 = 10;

/// One PE's view of the test.
struct Differential<'a> {
    world: &'a World,
    random: SplitMix,
    /// The expected values of this PE's own keys.
    map: HashMap<u64, u64>,
    answers: &'a HandlerLock<BTreeMap<u64, Option<u64>>>,
}

impl Differential<'_> {
    /// A round on this PE's own keys: one operation on some of them, then a comparison of the values that
    /// were found.
    fn round(&mut self, table: &mut HashTable<'_>, keys: u64) -> Result<()> {
        let (me, pes) = (self.world.my_pe() as u64, self.world.n_pes() as u64);
        let mut expected = BTreeMap::new();
        for n in 0..keys {
            // Key 0, which marks free slots, is one of the keys of PE 0.
            let (key, operand) = (mix(n * pes + me), self.random.next());
            match self.random.below(8) {
                0 => {
                    table.remove(key)?;
                    self.map.remove(&key);
                }
                1..=4 => {
                    let function = Function::ALL[self.random.below(Function::ALL.len() as u64) as usize];
                    table.update(key, function, operand)?;
                    let value = function.apply(self.map.get(&key).copied(), operand);
                    self.map.insert(key, value);
                }
                5..=6 => {
                    table.find(key, operand)?;
                    expected.insert(operand, self.map.get(&key).copied());
                }
                _ => (),
            }
        }
        table.barrier()?;
        assert_eq!(std::mem::take(&mut *self.answers.lock()), expected, "PE {me}");
        Ok(())
    }

    /// All PEs add to the same keys, at the same time. Returns the amounts that this PE has added.
    fn add_to_shared(&mut self, table: &mut HashTable<'_>) -> Result<Vec<u64>> {
        let mut added = vec![0; SHARED_KEYS as usize];
        for _ in 0..20 * SHARED_KEYS {
            let (n, amount) = (self.random.below(SHARED_KEYS), 1 + self.random.below(1000));
            table.update(!n, Function::Add, amount)?;
            added[n as usize] += amount;
        }
        table.barrier()?;
        (0..SHARED_KEYS).try_for_each(|n| table.find(!n, n))?;
        table.barrier()?;
        Ok(added)
    }
}

/// The test on this PE: rounds of operations from a seed.
fn run(world: &World, seed: u64, rounds: u64, keys: u64) {
    let shard = HandlerLock::new(Shard::with_room(0));
    let answers = HandlerLock::new(BTreeMap::new());
    let receiver = |found: &[Found]| {
        let mut answers = answers.lock();
        for found in found {
            assert!(answers.insert(found.ticket, found.value()).is_none(), "two answers to one lookup");
        }
    };
    let mut handlers = Handlers::new();
    let service = Service::add(&mut handlers, &shard, &receiver);
    let random = SplitMix::new(mix(seed) ^ world.my_pe() as u64);
    let mut test = Differential { world, random, map: HashMap::new(), answers: &answers };
    let outcome = world.team().serve(handlers, |am| {
        let mut table = service.open(am);
        (0..rounds).try_for_each(|_| test.round(&mut table, keys))?;
        test.add_to_shared(&mut table)
    });
    let added = outcome.unwrap().unwrap();
    let own_keys = test.map.len() as u64;
    let sums = crate::collect::collect(world, &added).unwrap();
    let sum = |n: u64| sums.iter().map(|added| added[n as usize]).sum::<u64>();
    let answers = answers.into_inner();
    assert_eq!(answers.len() as u64, SHARED_KEYS, "answers at the end");
    // A key to which no PE has added anything is absent.
    for (n, value) in answers {
        assert_eq!(value.unwrap_or(0), sum(n), "shared key {n}");
    }
    let expected = crate::collect::sum(world, own_keys).unwrap();
    let found = crate::collect::sum(world, shard.into_inner().len() as u64).unwrap();
    let added_to = (0..SHARED_KEYS).filter(|&n| sum(n) > 0).count() as u64;
    assert_eq!(found, expected + added_to, "keys in the table");
}

#[test]
fn threads_find_what_a_map_finds() {
    for pes in [1, 2, 3, 4] {
        for seed in 0..4 {
            spmd(pes, |world| run(world, seed, 12, 1500)).unwrap();
        }
    }
}

#[test]
fn processes_find_what_a_map_finds() {
    pelago::processes!(1, |world| run(world, 20, 20, 3000));
    pelago::processes!(2, |world| run(world, 21, 20, 3000));
    pelago::processes!(3, |world| run(world, 22, 20, 3000));
    pelago::processes!(4, |world| run(world, 23, 20, 3000));
}

#[test]
fn processes_over_the_net_find_what_a_map_finds() {
    let report = pelago::try_processes!(3, [("PELAGO_ROUTE", "net")], |world| run(world, 24, 5, 500));
    pelago::testing::expect_success(&report);
}

#[test]
fn simulated_networks_change_no_answer() {
    for pes in [1, 2, 3, 4] {
        for seed in 0..6 {
            let job = Spmd::new(pes).sim(SimParams::chaos(seed));
            if let Err(error) = job.run(|world| run(world, seed, 4, 60)) {
                panic!("{pes} PEs on the simulated network of seed {seed}: {error}");
            }
        }
    }
}
