//! A PE that is about to sleep.

use pelago::prelude::*;
use pelago_boot::ProcessState;
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

/// Waits until it is so, without a call of the runtime.
fn await_outside(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < LIMIT, "waited {LIMIT:?} for {what}");
        std::thread::yield_now();
    }
}

/// A test whether operations are complete may receive a put before the service thread, which sleeps, sees it.
/// The PE then calls the runtime no more, until the quiet of the other PE is over, which needs the
/// acknowledgement. PE 1 has an operation that does not complete, so that each test looks at the network.
#[test]
fn a_pe_that_has_tested_for_quiet_owes_no_acknowledgement() {
    let settings = [("PELAGO_SIM_NODES", "3"), ("PELAGO_FABRIC", "tcp"), ("PELAGO_TEST_SLEEPS", "on")];
    let report = pelago::try_processes!(3, settings, |world: &World| {
        let job = rustix::process::getppid().expect("a PE has a launcher").as_raw_nonzero();
        let flag = |what: &str, round: u64| {
            std::env::temp_dir().join(format!("pelago-tested-for-quiet-{job}-{what}-{round}"))
        };
        let raise = |what: &str, round: u64| drop(std::fs::File::create(flag(what, round)).unwrap());
        let await_flag = |what: &str, round: u64| {
            await_outside(what, || flag(what, round).exists());
            std::fs::remove_file(flag(what, round)).unwrap();
        };
        // The second element has the process number of PE 2.
        let word = world.alloc_zeroed::<u64>(2).unwrap();
        match world.my_pe() {
            0 => {
                for round in 1..=ROUNDS {
                    await_flag("test", round);
                    word.p(1, 0, round).unwrap();
                    world.quiet();
                    raise("end", round);
                }
            }
            1 => {
                let pid = word.local().wait_until(1, |pid| pid != 0);
                let signal = |signal| assert_eq!(send_signal(pid, signal), 0);
                signal(libc::SIGSTOP);
                let is_stopped = || pelago_boot::process_state(pid as u32) == ProcessState::Stopped;
                await_outside("the stop of PE 2", is_stopped);
                word.p(2, 0, 1).unwrap();
                for round in 1..=ROUNDS {
                    raise("test", round);
                    await_outside("the put of PE 0", || {
                        assert!(!pelago::testing::tests_quiet(world), "PE 2 is stopped");
                        word.local().get(0) == round
                    });
                    await_flag("end", round);
                }
                signal(libc::SIGCONT);
            }
            _ => word.p(1, 1, u64::from(std::process::id())).unwrap(),
        }
        world.barrier();
    });
    pelago::testing::expect_success(&report);
}

/// Sends a signal to a process.
fn send_signal(pid: u64, signal: i32) -> i32 {
    // SAFETY: the call accesses no memory of this process.
    unsafe { libc::kill(pid as i32, signal) }
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
