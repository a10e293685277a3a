//! A PE that is about to sleep.

use pelago::prelude::*;
use std::time::{Duration, Instant};

const ROUNDS: u64 = 20;
const WORDS: usize = 64;
const LIMIT: Duration = Duration::from_secs(100);

/// The look whether operations are outstanding may receive the reply of the last one. Then there is something
/// to do. Without a service thread nobody else takes the reply.
#[test]
fn a_pe_does_not_sleep_over_a_reply_that_it_has_received() {
    let nodes = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp"), ("PELAGO_SERVICE_THREAD", "off")];
    let report = pelago::try_processes!(2, nodes, |world: &World| {
        let data = world.alloc_zeroed::<u64>(WORDS).unwrap();
        let is_over = world.alloc_zeroed::<u64>(1).unwrap();
        data.local().write(0, &[7; WORDS]);
        world.barrier();
        if world.my_pe() == 0 {
            for round in 0..ROUNDS {
                let reply = data.get_nb(1, 0, vec![0; WORDS]).unwrap();
                assert!(pelago::testing::is_idle_when_it_may_sleep(world), "round {round}");
                assert_eq!(reply.wait(), [7; WORDS]);
            }
            is_over.p(1, 0, 1).unwrap();
            world.quiet();
        } else {
            let since = Instant::now();
            while is_over.local().get(0) == 0 {
                world.progress();
                assert!(since.elapsed() < LIMIT, "waited for the end of the gets of PE 0");
            }
        }
        world.barrier();
    });
    pelago::testing::expect_success(&report);
}

/// A PE that polls may receive a put before its service thread, which has slept, sees it.
#[test]
fn a_pe_that_computes_owes_no_acknowledgement() {
    const COMPUTES: Duration = Duration::from_millis(500);
    let nodes = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")];
    let report = pelago::try_processes!(2, nodes, |world: &World| {
        let word = world.alloc_zeroed::<u64>(1).unwrap();
        for round in 1..=5 {
            world.barrier();
            if world.my_pe() == 0 {
                std::thread::sleep(COMPUTES / 5);
                word.p(1, 0, round).unwrap();
                let since = Instant::now();
                world.quiet();
                let took = since.elapsed();
                assert!(took < COMPUTES / 2, "round {round}: the quiet took {took:?}");
            } else {
                // The service thread goes to sleep meanwhile.
                std::thread::sleep(COMPUTES / 10);
                let since = Instant::now();
                while word.local().get(0) < round {
                    world.progress();
                    assert!(since.elapsed() < LIMIT, "waited for the put of PE 0");
                }
                std::thread::sleep(COMPUTES);
            }
        }
        world.barrier();
    });
    pelago::testing::expect_success(&report);
}
