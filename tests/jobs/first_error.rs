//! The user reads the error that `?` returns from `main`, and not the error of a PE whose wait could not end.

use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{Collective, ReduceOp, Spmd, event, spmd};
use pelago_boot::{Cause, JobReport, JobSpec, launch};
use std::error::Error;
use std::time::Duration;

type Outcome = Result<(), Box<dyn Error>>;
/// A program of these tests, and its name.
type Program = (&'static str, fn() -> Outcome);

/// The variable that tells a copy of this test program which program to run.
const PROGRAM: &str = "TEST_FIRST_ERROR";
/// No job takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// Between PEs that map each other, over the net, and between nodes over TCP; in the full tier also over
/// libfabric, between PEs of one node and of several.
const ROUTES: &[&[(&str, &str)]] = &[
    &[("PELAGO_ROUTE", "auto")],
    &[("PELAGO_ROUTE", "net")],
    #[cfg(feature = "full")]
    &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi")],
    #[cfg(feature = "full")]
    &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "ofi")],
    &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")],
];
/// The text of the error of PE 0 in most programs here.
const WORDS: &str = "PE 0: put of 9 elements at index 0 on PE 1 lies outside the array";

/// In a copy of this test program that is a PE of a job, runs the job's program and ends.
fn be_asked(programs: &[Program]) {
    if let Ok(name) = std::env::var(PROGRAM) {
        let (_, program) = programs.iter().find(|(known, _)| *known == name).expect("a known program");
        be_main(program);
    }
}

/// The arguments of a copy of this test program that runs one test.
fn arguments(test: &str) -> [String; 3] {
    ["--exact".to_owned(), format!("first_error::{test}"), "--nocapture".to_owned()]
}

/// Runs the programs of a test as jobs of this test program, on several routes. The report of each job comes
/// with the name of its program and the route.
fn jobs(
    test: &str,
    n_pes: usize,
    settings: &[(&str, &str)],
    programs: &[Program],
    mut check: impl FnMut(&str, &JobReport),
) {
    be_asked(programs);
    for route in ROUTES {
        for (name, _) in programs {
            let mut spec = JobSpec::new(n_pes, std::env::current_exe().unwrap());
            spec.args = arguments(test).map(Into::into).into();
            // Strict sleeps delay the checks of PEs of other nodes, which these jobs rely on.
            let own = [(PROGRAM, *name), ("PELAGO_TEST_SLEEPS", "off")];
            let all = settings.iter().chain(route.iter()).chain(&own);
            spec.env = all.map(|(name, value)| (name.into(), value.into())).collect();
            (spec.timeout, spec.capture) = (Some(LIMIT), true);
            check(&format!("{name}, {route:?}"), &launch(&spec).unwrap());
        }
    }
}

/// Ends in the same way as a program whose `main` returns a result.
fn be_main(program: &fn() -> Outcome) -> ! {
    match program() {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("Error: {error:?}");
            std::process::exit(1)
        }
    }
}

/// The job failed because of this PE, whose process ended with status 1; its report and its process's
/// standard error contain this text, and no other PE has a reason of its own.
#[track_caller]
fn assert_blamed(name: &str, report: &JobReport, pe: usize, words: &str, reason: &str) {
    let [failure] = &report.failures[..] else { panic!("{name}: not one failure: {report:#?}") };
    assert_eq!((report.status, failure.pe), (1, Some(pe)), "{name}: {report:#?}");
    assert_eq!(failure.cause, Cause::Exit(1), "{name}: {report:#?}");
    assert!(failure.text.contains(reason), "{name}: the reason does not say {reason:?}: {report:#?}");
    let line = format!("Error: {words}");
    assert!(report.output[pe].stderr.contains(&line), "{name}: PE {pe} does not say {line:?}: {report:#?}");
    let mut others = report.output.iter().enumerate().filter(|(other, _)| *other != pe);
    let is_quiet =
        others.all(|(_, output)| !output.stderr.contains("panicked") || output.stderr.contains(words));
    assert!(is_quiet, "{name}: another PE has a reason of its own: {report:#?}");
}

/// PE 0 puts too much; the others wait in a barrier.
fn put_then_barrier(world: &World) -> pelago::Result<()> {
    let inbox = world.alloc_zeroed::<u64>(2)?;
    if world.my_pe() == 0 {
        inbox.put(1, 0, &[1; 9])?;
    }
    world.barrier();
    Ok(())
}

/// PE 0 puts too much; the others wait in a collective operation.
fn put_then_reduce(world: &World) -> pelago::Result<()> {
    let (sum, own) = (world.alloc_zeroed::<u64>(2)?, world.alloc_zeroed::<u64>(2)?);
    if world.my_pe() == 0 {
        own.put(1, 0, &[1; 9])?;
    }
    world.team().all_reduce(ReduceOp::Sum, &sum, &own)?;
    Ok(())
}

/// PE 0 puts too much; the last PE waits for its signal, and the others have left.
fn put_then_wait(world: &World) -> pelago::Result<()> {
    let inbox = world.alloc_zeroed::<u64>(2)?;
    match world.my_pe() {
        0 => inbox.put(1, 0, &[1; 9])?,
        pe if pe + 1 == world.n_pes() => {
            inbox.local().wait_until(0, |value| value != 0);
        }
        _ => {}
    }
    Ok(())
}

/// PE 0 puts too much; the others wait for an event.
fn put_then_event(world: &World) -> pelago::Result<()> {
    let (sum, own) = (world.alloc_zeroed::<u64>(2)?, world.alloc_zeroed::<u64>(2)?);
    if world.my_pe() == 0 {
        own.put(1, 0, &[1; 9])?;
    }
    let team = world.team();
    let reduction = team.nonblocking().all_reduce(ReduceOp::Sum, &sum, &own)?;
    event::wait_all(&[&reduction]);
    Ok(())
}

fn init(body: fn(&World) -> pelago::Result<()>) -> Outcome {
    Ok(body(&World::init()?)?)
}

fn run(body: impl Fn(&World) -> pelago::Result<()> + Sync) -> Outcome {
    Ok(pelago::run(body)?.into_iter().collect::<pelago::Result<()>>()?)
}

#[test]
fn the_error_that_main_returns_is_the_reason() {
    let programs: &[Program] = &[
        ("barrier", || init(put_then_barrier)),
        ("collective", || init(put_then_reduce)),
        ("element", || init(put_then_wait)),
        ("event", || init(put_then_event)),
        ("run", || run(put_then_barrier)),
    ];
    jobs("the_error_that_main_returns_is_the_reason", 3, &[], programs, |name, report| {
        assert_blamed(name, report, 0, WORDS, WORDS);
    });
}

/// The error is not one of the library.
#[test]
fn an_error_of_others_is_the_reason() {
    let program = || {
        let world = World::init()?;
        if world.my_pe() == 0 {
            Err(std::io::Error::other("the disk is full"))?;
        }
        world.barrier();
        Ok(())
    };
    jobs("an_error_of_others_is_the_reason", 3, &[], &[("io", program)], |name, report| {
        let words = "Custom { kind: Other, error: \"the disk is full\" }";
        assert_blamed(name, report, 0, words, "PE 0 exited with status 1");
    });
}

/// Two PEs fail, one of them first; the third waits.
#[test]
fn of_several_errors_one_is_the_reason() {
    let program = || {
        let world = World::init()?;
        let inbox = world.alloc_zeroed::<u64>(2)?;
        if world.my_pe() != 1 {
            inbox.put(1, 0, &[1; 9])?;
        }
        world.barrier();
        Ok(())
    };
    jobs("of_several_errors_one_is_the_reason", 3, &[], &[("two", program)], |name, report| {
        let pe = report.failures.first().and_then(|failure| failure.pe).expect("a PE is blamed");
        assert_ne!(pe, 1, "{name}: {report:#?}");
        let words = format!("PE {pe}: put of 9 elements at index 0 on PE 1 lies outside");
        assert_blamed(name, report, pe, &words, &words);
    });
}

/// A PE that ends successfully but too early is a mismatch, which the PE that waits for it reports: with the
/// error that was handled, if there was one.
#[test]
fn a_pe_that_leaves_well_too_early_is_missed() {
    let programs: &[Program] = &[
        ("mismatch", || {
            let world = World::init()?;
            if world.my_pe() != 0 {
                world.barrier();
            }
            Ok(())
        }),
        ("handled", || {
            if let Err(error) = init(put_then_barrier) {
                eprintln!("never mind: {error}");
            }
            Ok(())
        }),
    ];
    jobs("a_pe_that_leaves_well_too_early_is_missed", 3, &[], programs, |name, report| {
        let [failure] = &report.failures[..] else { panic!("{name}: not one failure: {report:#?}") };
        assert!(failure.pe.is_some_and(|pe| pe != 0) && report.status == 101, "{name}: {report:#?}");
        assert!(failure.text.contains("but PE 0 has left the job"), "{name}: {report:#?}");
        assert_eq!(failure.text.contains(WORDS), name.starts_with("handled"), "{name}: {report:#?}");
    });
}

/// An error that is handled has no consequences.
#[test]
fn a_handled_error_is_no_failure() {
    let program = || {
        let world = World::init()?;
        let inbox = world.alloc_zeroed::<u64>(2)?;
        assert!(inbox.put(1, 0, &[1; 9]).is_err());
        world.barrier();
        Ok(())
    };
    jobs("a_handled_error_is_no_failure", 3, &[], &[("handled", program)], |name, report| {
        assert!(report.status == 0 && report.failures.is_empty(), "{name}: {report:#?}");
    });
}

/// One PE of several in its process: the other PEs of the process keep `main` from continuing.
#[test]
fn the_error_of_one_of_several_pes_is_said() {
    let program = || run(put_then_barrier);
    let two_each = [("PELAGO_PES_PER_PROCESS", "2")];
    jobs("the_error_of_one_of_several_pes_is_said", 4, &two_each, &[("one", program)], |name, report| {
        let [failure] = &report.failures[..] else { panic!("{name}: not one failure: {report:#?}") };
        assert!(report.status != 0 && failure.text.contains(WORDS), "{name}: {report:#?}");
    });
}

/// All PEs of a process fail, so its `main` returns.
#[test]
fn the_errors_of_a_process_are_the_reason() {
    let program = || {
        run(|world| {
            let inbox = world.alloc_zeroed::<u64>(2)?;
            if world.my_pe() < 2 {
                inbox.put(1, 0, &[1; 9])?;
            }
            world.barrier();
            Ok(())
        })
    };
    let two_each = [("PELAGO_PES_PER_PROCESS", "2")];
    jobs("the_errors_of_a_process_are_the_reason", 4, &two_each, &[("both", program)], |name, report| {
        assert_blamed(name, report, 0, WORDS, "lies outside the array");
    });
}

/// Under launchers of others, the user reads the error that main returns, and no PE has another reason.
#[cfg(feature = "full")]
#[test]
fn the_error_is_said_under_other_launchers() {
    let programs: &[Program] = &[
        ("barrier", || init(put_then_barrier)),
        ("io", || {
            let world = World::init()?;
            if world.my_pe() == 0 {
                Err(std::io::Error::other("the disk is full"))?;
            }
            world.barrier();
            Ok(())
        }),
        ("mismatch", || {
            let world = World::init()?;
            if world.my_pe() != 0 {
                world.barrier();
            }
            Ok(())
        }),
    ];
    be_asked(programs);
    let launchers: [&[&str]; 2] = [
        &["mpiexec.hydra", "-n", "3"],
        &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3"],
    ];
    for launcher in launchers {
        for (name, words) in [
            ("barrier", "Error: PE 0: put of 9 elements at index 0 on PE 1 lies outside"),
            ("io", "the disk is full"),
            ("mismatch", "but PE 0 has left the job"),
        ] {
            let mut command = std::process::Command::new(launcher[0]);
            command.args(&launcher[1..]).arg(std::env::current_exe().unwrap());
            command.args(arguments("the_error_is_said_under_other_launchers")).env(PROGRAM, name);
            let output = command.output().expect("the launcher (mpich, openmpi-bin) runs");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && text.contains(words), "{launcher:?}, {name}: {text}");
            assert_eq!(text.contains("panicked"), name == "mismatch", "{launcher:?}, {name}: {text}");
        }
    }
}

#[test]
fn the_error_of_a_pe_as_a_thread_is_said() {
    for body in [put_then_barrier, put_then_reduce, put_then_wait, put_then_event] {
        let text = spmd(3, body).unwrap_err().to_string();
        assert!(text.contains("PE 0 has left the job") || text.contains("no other PE is left"), "{text}");
        assert!(text.contains(WORDS), "{text}");
    }
}

#[test]
fn the_error_of_a_simulated_pe_is_said() {
    for seed in 0..20 {
        let nodes = SimParams { maps_nodes: true, ..SimParams::chaos(seed) }.on_nodes(3, 2);
        for params in [SimParams::chaos(seed), nodes] {
            for body in [put_then_barrier, put_then_reduce, put_then_wait, put_then_event] {
                let text = Spmd::new(3).sim(params.clone()).run(body).unwrap_err().to_string();
                assert!(text.contains(WORDS), "seed {seed}: {text}");
            }
        }
    }
}
