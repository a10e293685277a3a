//! Jobs that fail with outstanding operations over the network, and waits that only look hopeless.

use pelago::sim::{Loss, SimParams};
use pelago::{AtomicOp, Collective, ReduceOp, Spmd, World};
use pelago_boot::ProcessState;
use std::time::{Duration, Instant};

/// Simulated networks that each test tries.
const SEEDS: u64 = if cfg!(feature = "full") { 1000 } else { 60 };
/// No job takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

everywhere! {
    alone(1): change_of_the_own_word;
    last_of_two(2): change_of_the_own_word;
}

/// PE 0 ends without a goodbye to PE 1, as by a signal, when both know that all have come to the end of the
/// job.
#[test]
fn a_connection_that_is_lost_after_all_have_come_to_the_end_is_no_failure() {
    let nodes = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")];
    let report = pelago::try_processes!(2, nodes, |world: &World| {
        let pids = world.alloc_zeroed::<u32>(2).unwrap();
        pids.p(1, world.my_pe(), std::process::id()).unwrap();
        world.barrier();
        let pid = pids.local().get(0);
        pelago::testing::look_after_leaving(world, || match world.my_pe() {
            // SAFETY: it has no precondition; it ends the process.
            0 => unsafe { libc::_exit(0) },
            _ => {
                let since = Instant::now();
                while pelago_boot::process_state(pid) != ProcessState::Gone {
                    assert!(since.elapsed() < LIMIT, "waited {LIMIT:?} for the end of PE 0");
                    std::thread::yield_now();
                }
            }
        });
    });
    pelago::testing::expect_success(&report);
}

/// Runs a job of three PEs that may fail, and returns its outcome. A job that hangs is a failure.
fn outcome(params: SimParams, body: impl Fn(&World) + Sync + Send + 'static) -> Result<(), String> {
    let (tell, told) = std::sync::mpsc::channel();
    let seed = params.seed;
    std::thread::spawn(move || {
        let outcome = Spmd::new(3).sim(params).run(body);
        tell.send(outcome.map(|_| ()).map_err(|error| error.to_string()))
    });
    told.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("the job of seed {seed} hangs"))
}

/// The last PE in the job waits for an operation that it has started itself, or that another of its threads
/// will start.
fn change_of_the_own_word(world: &World) {
    let (me, words) = (world.my_pe(), world.alloc_zeroed::<u64>(2).unwrap());
    if me != 0 {
        return;
    }
    words.p(me, 0, 1).unwrap();
    words.local().wait_until(0, |value| value == 1);
    if !world.is_simulated() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..20_000).for_each(|_| std::thread::yield_now());
                words.add(me, 1, 1).unwrap();
            });
            words.local().wait_until(1, |value| value == 1);
        });
    }
}

/// Three threads of each PE with contexts, regions and handles.
fn stress(world: &World) {
    let n = world.n_pes();
    let (counts, data) = (world.alloc_zeroed::<u64>(64).unwrap(), world.alloc_zeroed::<u64>(64).unwrap());
    let work = |thread: usize| {
        let context = world.context(Default::default()).unwrap();
        let through = data.via(&context);
        for i in 0..10usize {
            let pe = (i + thread) % n;
            counts.add(pe, thread, 1).unwrap();
            counts.via(&context).fetch_add(pe, thread + 8, 1).unwrap();
            through.put(pe, 16 * thread, &[i as u64; 16]).unwrap();
            drop(through.get_nb(pe, 16 * thread, vec![0; 16]).unwrap());
            assert!(counts.fetch_amo_nb(pe, 20, AtomicOp::Max, i as u64).unwrap().wait() < 10);
            let mut out = [0u64; 16];
            world.scope(|scope| {
                let region = scope.region();
                region.get(&data, pe, 16 * thread, &mut out).unwrap();
                scope.put(&data, pe, 48, &[1]).unwrap();
                region.wait();
            });
            context.quiet();
            world.quiet();
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || work(thread));
        }
    });
    world.barrier();
    let sum: u64 = (0..n).map(|pe| (0..3).map(|thread| counts.g(pe, thread).unwrap()).sum::<u64>()).sum();
    assert_eq!(sum, 30 * n as u64);
    world.barrier();
}

fn patient(seed: u64) -> SimParams {
    SimParams { hopeless_rounds: 100_000, ..SimParams::chaos(seed) }
}

#[test]
fn a_lost_pe_ends_the_job_with_words() {
    for seed in 0..SEEDS {
        let lose = Some(Loss { pe: seed as usize % 3, after_operations: seed * 37 % 1500 });
        if let Err(text) = outcome(SimParams { lose, ..patient(seed) }, stress) {
            assert!(text.contains("lost"), "seed {seed}: {text}");
        }
    }
}

#[test]
fn the_pe_that_panicked_is_blamed_whatever_is_under_way() {
    for seed in 0..SEEDS {
        let culprit = (seed % 3) as usize;
        let body = move |world: &World| {
            if world.my_pe() != culprit {
                return stress(world);
            }
            let array = world.alloc_zeroed::<u64>(64).unwrap();
            let context = world.context(Default::default()).unwrap();
            let through = array.via(&context);
            let mut buffer = [0; 64];
            let _get = through.get_nb(0, 0, vec![0; 64]).unwrap();
            let _put = array.put_nb(1, 0, vec![0; 64]).unwrap();
            world.scope(|scope| {
                scope.get(&array, 1, 0, &mut buffer).unwrap();
                scope.put(&through, 2, 0, &[1, 2]).unwrap();
                assert!(seed % 2 == 0, "the matrix is singular");
            });
            panic!("the matrix is singular");
        };
        let text = outcome(patient(seed), body).unwrap_err();
        let expected = format!("PE {culprit} panicked: the matrix is singular");
        assert!(text.starts_with(&expected), "seed {seed}: {text}");
    }
}

/// The panic in an exclusive phase is the reason, not the errors that the others detect when that PE closes.
#[test]
fn a_panic_in_a_phase_is_the_reason() {
    for seed in 0..SEEDS {
        let body = |world: &World| {
            let mut array = world.alloc_zeroed::<u64>(64).unwrap();
            let other = world.alloc_zeroed::<u64>(64).unwrap();
            let _ = array.exclusive(|_| {
                assert!(world.my_pe() != 0, "the matrix is singular");
                loop {
                    other.put(0, 0, &[1; 64]).unwrap();
                    world.quiet();
                }
            });
        };
        let text = outcome(SimParams::chaos(seed), body).unwrap_err();
        assert!(text.contains("PE 0 panicked: the matrix is singular"), "seed {seed}: {text}");
    }
}

#[test]
fn two_allocations_at_once_are_refused_or_equal() {
    for _ in 0..30 {
        let job = Spmd::new(2).heap_bytes(2 << 20).wait_limit(LIMIT);
        let outcome = job.run(|world| {
            let alloc = || world.alloc_zeroed::<u64>(8).map(|array| format!("{array:?}"));
            let both = match world.my_pe() {
                0 => std::thread::scope(|scope| {
                    let threads = [scope.spawn(alloc), scope.spawn(alloc)];
                    threads.map(|thread| thread.join().unwrap_or_else(|_| panic!("at the same time")))
                }),
                _ => [alloc(), alloc()],
            };
            both.map(|array| array.unwrap())
        });
        match outcome {
            Ok(arrays) => assert_eq!(arrays[0].len(), arrays[1].len()),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    ["at the same time", "PEs disagree"].iter().any(|part| text.contains(part)),
                    "{text}"
                );
            }
        }
    }
}

/// PE 1 does not arrive before a thread of PE 0 was refused, so the other thread still has the right to the
/// call.
#[test]
fn two_threads_in_an_operation_of_a_team_are_refused_under_checks() {
    let job = Spmd::new(2).setting("PELAGO_CHECK", "on").wait_limit(LIMIT);
    let outcome = job.run(|world| {
        let [words, sums] = [(); 2].map(|()| world.alloc_zeroed::<u64>(1).unwrap());
        let add = || world.team().all_reduce(ReduceOp::Sum, &sums, &words).unwrap();
        match world.my_pe() {
            0 => std::thread::scope(|scope| {
                // The thread that is refused panics, and the other thread gives up because of it.
                [scope.spawn(add), scope.spawn(add)].into_iter().for_each(|thread| drop(thread.join()));
            }),
            _ => {
                words.local().wait_until(0, |value| value == u64::MAX);
                unreachable!("nobody puts that");
            }
        };
    });
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("two threads make collective calls on one team"), "{text}");
}

/// Polling by the clock is no deadlock: time passes by polling as well.
#[test]
fn a_pe_may_poll_until_a_time() {
    let body = |world: &World| {
        if world.my_pe() == 0 {
            while world.wtime() < Duration::from_millis(5) {
                world.progress();
            }
        }
        world.barrier();
    };
    Spmd::new(2).sim(SimParams::default()).run(body).unwrap();
}

/// A stream of puts of another thread does not keep a quiet waiting for ever.
#[test]
fn a_quiet_ends_beside_a_stream_of_puts() {
    use pelago::sync::{AtomicBool, Ordering};
    for params in [SimParams::default(), SimParams::chaos(3)] {
        let params = SimParams { hopeless_rounds: 1_000_000, ..params };
        let body = |world: &World| {
            let array = world.alloc_zeroed::<u64>(64).unwrap();
            let (has_begun, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
            if world.my_pe() == 0 {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        for count in 0..3_000_000 {
                            array.p(1, 0, 1).unwrap();
                            has_begun.store(count > 100, Ordering::Relaxed);
                            if is_over.load(Ordering::Relaxed) {
                                return;
                            }
                        }
                        panic!("a quiet was kept waiting by three million puts");
                    });
                    while !has_begun.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    world.quiet();
                    is_over.store(true, Ordering::Relaxed);
                });
            }
            world.barrier();
        };
        Spmd::new(2).sim(params).run(body).unwrap();
    }
}

#[test]
fn routes_that_differ_are_found_at_the_start() {
    fn here() {}
    let place = pelago::testing::Place { function: std::any::type_name_of_val(&here), line: line!() };
    let configure = |spec: &mut pelago::testing::JobSpec| {
        spec.timeout = Some(LIMIT);
        pelago::testing::through_shell(spec, "if [ $PMI_RANK = 0 ]; then export PELAGO_ROUTE=net; fi");
    };
    let report = pelago::testing::run(&place, 3, configure, |world: &World| world.barrier());
    let words = report.output.iter().any(|output| output.stderr.contains("1 of 3 PEs go over the net"));
    assert!(words && report.status != 0, "{:?}", report.failures);
}
