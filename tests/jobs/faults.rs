//! A job never hangs because one PE has failed, and reports which PE and why.

use pelago::prelude::*;
use pelago_boot::{Cause, JobReport};
use std::process::Command;
use std::time::{Duration, Instant};

/// The cause in the report of a job that must fail.
fn first_failure(report: &JobReport) -> (Option<usize>, &Cause, &str) {
    assert_ne!(report.status, 0, "the job must fail: {report:?}");
    let failure = report.failures.first().expect("a failed job says why");
    (failure.pe, &failure.cause, &failure.text)
}

/// The others wait for a PE that will never come.
fn wait_for_ever(world: &World) {
    loop {
        world.barrier();
    }
}

/// PE 2 computes and does not serve others meanwhile, so most of PE 0's put to it is not sent when PE 0
/// panics. The source is in memory that is freed with the PE.
#[test]
fn a_panic_with_a_large_put_under_way_is_told() {
    const WORDS: usize = 8 << 20;
    let nodes = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp"), ("PELAGO_SERVICE_THREAD", "off")];
    let report = pelago::try_processes!(3, nodes, |world: &World| {
        let array = world.alloc_zeroed::<u64>(2 * WORDS).unwrap();
        world.barrier();
        if world.my_pe() == 1 {
            wait_for_ever(world);
        }
        if world.my_pe() == 2 {
            let limit = Instant::now() + Duration::from_secs(60);
            while Instant::now() < limit {
                std::hint::spin_loop();
            }
            unreachable!("the job ends before");
        }
        let own = array.ptr(0).expect("the parts of a node are mapped");
        // SAFETY: no thread writes the source, and it lives as long as the world.
        unsafe { array.put_nbi(2, WORDS, std::slice::from_raw_parts(own, WORDS)).unwrap() };
        panic!("the matrix is singular");
    });
    let (pe, cause, text) = first_failure(&report);
    assert!(pe == Some(0) && !matches!(cause, Cause::Signal(_)), "{report:?}");
    assert!(text.contains("the matrix is singular"), "{text}");
}

#[test]
fn a_panic_names_pe_and_words() {
    let report = pelago::try_processes!(3, [], |world| {
        if world.my_pe() == 1 {
            panic!("the matrix is singular");
        }
        wait_for_ever(world);
    });
    let (pe, cause, text) = first_failure(&report);
    assert_eq!((pe, cause), (Some(1), &Cause::Exit(101)), "{text}");
    assert!(text.contains("the matrix is singular") && text.contains("faults.rs"), "{text}");
}

#[test]
fn an_abort_names_pe_and_signal() {
    let report = pelago::try_processes!(3, [], |world| {
        if world.my_pe() == 2 {
            std::process::abort();
        }
        wait_for_ever(world);
    });
    let (pe, cause, text) = first_failure(&report);
    assert_eq!((pe, cause, report.status), (Some(2), &Cause::Signal(6), 128 + 6), "{text}");
    assert!(text.contains("SIGABRT"), "{text}");
}

#[test]
fn an_early_exit_is_no_success() {
    fn exit_early(world: &World, status: i32) {
        if world.my_pe() == 0 {
            std::process::exit(status);
        }
        wait_for_ever(world);
    }
    // Both jobs before the first assertion: a copy of the test program skips the job that is not its own.
    let with_0 = pelago::try_processes!(3, [], |world| exit_early(world, 0));
    let with_7 = pelago::try_processes!(3, [], |world| exit_early(world, 7));
    let (pe, cause, text) = first_failure(&with_0);
    assert_eq!((pe, cause), (Some(0), &Cause::NotFinalized), "{text}");
    let (pe, cause, text) = first_failure(&with_7);
    assert_eq!((pe, cause, with_7.status), (Some(0), &Cause::Exit(7), 7), "{text}");
}

#[test]
fn a_pe_that_leaves_while_others_wait_is_named() {
    let report = pelago::try_processes!(3, [], |world| {
        if world.my_pe() != 2 {
            wait_for_ever(world);
        }
    });
    let (pe, _, text) = first_failure(&report);
    assert!(pe.is_some_and(|pe| pe < 2) && text.contains("PE 2 has left the job"), "{text}");
}

/// The others agree on a call over the network, which needs all members.
#[test]
fn a_pe_that_leaves_while_others_split_a_team_is_named() {
    const NET: [(&str, &str); 2] = [("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")];
    let report = pelago::try_processes!(3, NET, |world| {
        if world.my_pe() != 2 {
            let _ = world.team().split_by(Some(0), 0);
        }
    });
    let (pe, _, text) = first_failure(&report);
    assert!(pe.is_some_and(|pe| pe < 2) && text.contains("PE 2 has left the job"), "{text}");
}

/// A thread that blocks standard output does not keep a PE from ending the job. One PE without a launcher,
/// which would kill it, in a copy of this test program.
#[test]
fn an_abort_does_not_wait_for_standard_output() {
    const COPY: &str = "TEST_ABORTS_ALONE";
    if std::env::var_os(COPY).is_some() {
        let (locked, is_locked) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _output = std::io::stdout().lock();
            locked.send(()).unwrap();
            loop {
                std::thread::park();
            }
        });
        is_locked.recv().unwrap();
        World::init().unwrap().abort(43, "the disk is full");
    }
    let mut copy = Command::new(std::env::current_exe().unwrap());
    copy.args(["faults::an_abort_does_not_wait_for_standard_output", "--exact", "--nocapture"])
        .env(COPY, "1");
    let mut copy = copy.spawn().unwrap();
    let since = Instant::now();
    let status = loop {
        if let Some(status) = copy.try_wait().unwrap() {
            break status;
        }
        if since.elapsed() > Duration::from_secs(60) {
            copy.kill().unwrap();
        }
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(43), "{status}");
}

#[test]
fn an_abort_of_the_job_says_status_and_reason() {
    let report = pelago::try_processes!(2, [], |world| {
        if world.my_pe() == 1 {
            world.abort(42, "no convergence after 100 steps");
        }
        wait_for_ever(world);
    });
    let (pe, _, text) = first_failure(&report);
    assert_eq!((pe, report.status), (Some(1), 42), "{text}");
    assert!(text.contains("no convergence after 100 steps"), "{text}");
}

#[test]
fn wrong_settings_end_the_job_before_it_starts() {
    let wrong = [
        ("PELAGO_HEAP_SIZE", "lots", "PELAGO_HEAP_SIZE"),
        ("PELAGO_BARRIER", "quantum", "dissemination"),
        ("PELAGO_HEAPSIZE", "1m", "PELAGO_HEAP_SIZE"),
        ("PELAGO_RING_SIZE", "100", "power of two"),
        ("PELAGO_INIT_TIMEOUT", "-1", "seconds"),
    ];
    for (name, value, expected) in wrong {
        let pair = (name.to_owned(), value.to_owned());
        let error = pelago_boot::Settings::from_pairs([pair]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
}

#[test]
fn a_node_may_have_another_name() {
    let report = pelago::try_processes!(2, [("PELAGO_NODE_ID", "rack-7")], |world| world.barrier());
    pelago::testing::expect_success(&report);
}

#[test]
fn nodes_that_cannot_reach_each_other_are_named() {
    fn here() {}
    let place = pelago::testing::Place { function: std::any::type_name_of_val(&here), line: line!() };
    let by_shell = |spec: &mut pelago::testing::JobSpec| {
        pelago::testing::through_shell(spec, "export PELAGO_FABRIC=shm PELAGO_NODE_ID=node-$PMI_RANK");
    };
    let report = pelago::testing::run(&place, 2, by_shell, |_| unreachable!("init must fail"));
    let output: String = report.output.iter().map(|output| output.stderr.as_str()).collect();
    assert_ne!(report.status, 0);
    assert!(output.contains("node-0") && output.contains("node-1"), "{output}");
    assert!(output.contains("PELAGO_FABRIC=auto"), "{output}");
}

#[test]
fn fabrics_that_differ_are_named() {
    fn here() {}
    let place = pelago::testing::Place { function: std::any::type_name_of_val(&here), line: line!() };
    // Each process runs this test up to the job, and so knows the library as well.
    let library = pelago_fabric_testkit::fake_libfabric::install().path();
    let (one, other) = ("plain", "like-verbs");
    let settings = format!("PELAGO_ROUTE=net PELAGO_FABRIC=ofi PELAGO_OFI_LIBRARY='{library}'");
    let by_shell = |spec: &mut pelago::testing::JobSpec| {
        let provider = format!("$([ $PMI_RANK = 0 ] && echo {one} || echo {other})");
        let exports = format!("export {settings} PELAGO_OFI_PROVIDER={provider}");
        pelago::testing::through_shell(spec, &exports);
    };
    let report = pelago::testing::run(&place, 2, by_shell, |_| unreachable!("init must fail"));
    let output: String = report.output.iter().map(|output| output.stderr.as_str()).collect();
    assert_ne!(report.status, 0);
    for part in [one, &format!("{other}, keys told, data moved in calls"), "PELAGO_OFI_PROVIDER"] {
        assert!(output.contains(part), "{part}: {output}");
    }
}

/// A barrier loop in which one PE kills another one, somewhere.
fn kill_somewhere(world: &World, round: u64) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let pids = world.alloc_zeroed::<u32>(n).unwrap();
    (0..n).for_each(|pe| pids.p(pe, me, std::process::id()).unwrap());
    world.barrier();
    let killer = round as usize % n;
    let victim = (killer + 1 + round as usize % (n - 1)) % n;
    let data = world.alloc_zeroed::<u64>(4096).unwrap();
    for step in 0u64.. {
        data.put((me + 1) % n, 0, &[step; 4096]).unwrap();
        if me == killer && step == 3 + round * 7 % 40 {
            let pid = rustix::process::Pid::from_raw(pids.local().get(victim) as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        world.barrier();
    }
}

#[test]
fn fifty_kills_at_random_moments() {
    for round in 0..50u64 {
        let text = round.to_string();
        let report = pelago::try_processes!(4, [("ROUND", &text)], |world| {
            kill_somewhere(world, std::env::var("ROUND").unwrap().parse().unwrap());
        });
        let (pe, cause, text) = first_failure(&report);
        let killer = round as usize % 4;
        assert_eq!(cause, &Cause::Signal(9), "round {round}: {text}");
        assert_eq!(pe, Some((killer + 1 + round as usize % 3) % 4), "round {round}: {text}");
        assert!(text.contains("SIGKILL"), "{text}");
        assert_eq!(report.failures.len(), 1, "deaths that follow are not reported: {:?}", report.failures);
    }
    assert_eq!(leftovers(), Vec::<String>::new(), "in /dev/shm");
}

/// Files in /dev/shm that could be ours: there must be none, as the memory has no name.
fn leftovers() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    names.filter(|name| name.contains("pelago")).collect()
}

/// A library that installs signal handlers while it is loaded, as libinfinipath and libpsm2 do, and exits
/// with status 1 in them. The thread that loads it crashes then.
const TAKES_SIGNALS: &str = "
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(1); }
__attribute__((constructor)) static void take(void) {
    signal(SIGABRT, end);
    signal(SIGSEGV, end);
    CRASH;
}
";

/// A crash while libfabric is loaded is reported with its signal, regardless of the handlers that its
/// libraries install.
#[test]
fn a_crash_while_libfabric_is_loaded_has_its_signal() {
    for (signal, name, crash) in [(6, "abort", "raise(SIGABRT)"), (11, "fault", "*(volatile int *)0 = 1")] {
        let stem = std::env::temp_dir().join(format!("pelago-{name}-{}", std::process::id()));
        let (source, library) = (stem.with_extension("c"), stem.with_extension("so"));
        if std::env::var_os("PELAGO_TEST_BODY").is_none() {
            std::fs::write(&source, TAKES_SIGNALS).unwrap();
            let mut gcc = Command::new("gcc");
            gcc.args(["-shared", "-fPIC", &format!("-DCRASH={crash}"), "-o"]).arg(&library).arg(&source);
            let built = gcc.output().expect("gcc runs");
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        }
        let path = ("PELAGO_OFI_LIBRARY", library.to_str().unwrap());
        let settings = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "ofi"), path];
        let report = pelago::try_processes!(2, settings, |_| unreachable!("init must fail"));
        for file in [source, library] {
            std::fs::remove_file(file).unwrap();
        }
        let (_, cause, text) = first_failure(&report);
        assert_eq!(cause, &Cause::Signal(signal), "{text}");
    }
}
