//! PEs that are threads of several processes: the process of each PE, and how such jobs fail.

use pelago::testing::{JobReport, JobSpec, Place, expect_success, through_shell};
use pelago::{World, try_processes};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::process::Command;
use std::time::{Duration, Instant};

const TWO_EACH: (&str, &str) = ("PELAGO_PES_PER_PROCESS", "2");
/// The variable that tells a copy of this program which processors the test may use.
const CPUS: &str = "CPUS_OF_THE_TEST";

/// All output of a job and its PEs.
fn words_of(report: &JobReport) -> String {
    let reasons = report.failures.iter().map(|failure| failure.text.as_str());
    reasons.chain(report.output.iter().map(|output| output.stderr.as_str())).collect::<Vec<_>>().join("\n")
}

/// Fails unless the job ended with this status because of this PE, with a message that begins with `start`
/// and contains `part`.
#[track_caller]
fn assert_failed(report: &JobReport, status: i32, pe: usize, start: &str, part: &str) {
    let [failure] = &report.failures[..] else { panic!("not one failure: {report:#?}") };
    assert_eq!((report.status, failure.pe), (status, Some(pe)), "{report:#?}");
    assert!(failure.text.starts_with(start) && failure.text.contains(part), "{}", failure.text);
}

/// Computes without a call of the runtime, until the process is ended; but not for ever if that does not
/// happen.
fn compute() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(120) {
        std::hint::spin_loop();
    }
}

/// Each PE is in the process that its number implies, and maps all others.
fn processes_have_pes_in_order(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let processes = world.alloc_zeroed::<u64>(n).unwrap();
    let route_is_net = world.fabric().is_some();
    for pe in 0..n {
        processes.p(pe, me, std::process::id().into()).unwrap();
        assert_eq!(processes.ptr(pe).is_some(), !route_is_net, "PE {pe}");
    }
    world.barrier();
    let found: Vec<u64> = (0..n).map(|pe| processes.local().get(pe)).collect();
    let firsts: Vec<u64> = found.chunks(2).map(|process| process[0]).collect();
    assert!(found.chunks(2).all(|process| process[0] == process[1]), "{found:?}");
    assert!(firsts[0] != firsts[1] && firsts[1] != firsts[2] && firsts[0] != firsts[2], "{found:?}");
    assert_eq!(std::thread::current().name(), Some(&*format!("PE {me}")));
    world.barrier();
}

#[test]
fn pes_follow_one_another_in_their_processes() {
    for route in ["auto", "net"] {
        let report = try_processes!(6, [TWO_EACH, ("PELAGO_ROUTE", route)], processes_have_pes_in_order);
        expect_success(&report);
        assert_eq!(report.output.len(), 3, "processes");
    }
}

/// This thread's processors.
fn own_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

#[test]
fn bound_pes_have_a_processor_each() {
    let bind = |spec: &mut JobSpec| {
        let cpus: Vec<_> = pelago_boot::cpus().iter().map(usize::to_string).collect();
        spec.env.push((CPUS.into(), cpus.join(",").into()));
        spec.env.push((TWO_EACH.0.into(), TWO_EACH.1.into()));
        spec.bind = true;
    };
    let body = |world: &World| {
        let all: Vec<usize> =
            std::env::var(CPUS).unwrap().split(',').map(|cpu| cpu.parse().unwrap()).collect();
        assert_eq!(own_cpus(), [all[world.my_pe() % all.len()]], "PE {} of {all:?}", world.my_pe());
        assert_eq!(world.cores(), all.len().min(world.n_pes()));
    };
    fn here() {}
    let place = Place { function: std::any::type_name_of_val(&here), line: line!() };
    expect_success(&pelago::testing::run(&place, 6, bind, body));
}

#[test]
fn unbound_pes_may_run_anywhere() {
    let all: Vec<_> = pelago_boot::cpus().iter().map(usize::to_string).collect();
    let report = try_processes!(4, [TWO_EACH, (CPUS, &*all.join(","))], |_: &World| {
        let own: Vec<_> = own_cpus().iter().map(usize::to_string).collect();
        assert_eq!(own.join(","), std::env::var(CPUS).unwrap());
    });
    expect_success(&report);
}

/// A process that was not launched is a job of its own, with the configured number of PEs.
#[test]
fn results_come_in_the_order_of_the_pes() {
    if std::env::var_os(TWO_EACH.0).is_none() {
        let mut copy = Command::new(std::env::current_exe().unwrap());
        copy.args(["--exact", "run::results_come_in_the_order_of_the_pes", "--nocapture"]);
        let output = copy.env(TWO_EACH.0, "3").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("three PEs have run"), "{output:?}");
        return;
    }
    let results = pelago::run(|world| {
        world.barrier();
        (world.my_pe(), world.n_pes())
    });
    assert_eq!(results.unwrap(), [(0, 3), (1, 3), (2, 3)]);
    let again = pelago::run(|_| ()).unwrap_err().to_string();
    assert!(again.contains("has joined its job already"), "{again}");
    println!("three PEs have run");
}

#[test]
fn what_joins_as_one_pe_is_refused() {
    let error = pelago::binding::init_with(&[TWO_EACH]).unwrap_err().to_string();
    for part in ["PELAGO_PES_PER_PROCESS is 2", "pelago::run", "OpenSHMEM", "one PE a process"] {
        assert!(error.contains(part), "{error} does not say {part}");
    }
}

#[test]
fn processes_with_different_numbers_of_pes_are_told_apart_in_words() {
    // If the launcher reports one node, one business card is read, otherwise all.
    for nodes in ["", "export PELAGO_NODE_ID=x; "] {
        fn here() {}
        let place = Place { function: std::any::type_name_of_val(&here), line: line!() };
        let configure = |spec: &mut JobSpec| {
            spec.env.push((TWO_EACH.0.into(), TWO_EACH.1.into()));
            let fewer = "if [ $PMI_RANK = 1 ]; then export PELAGO_PES_PER_PROCESS=1; fi";
            through_shell(spec, &format!("{nodes}{fewer}"));
        };
        let report = pelago::testing::run(&place, 4, configure, |world: &World| world.barrier());
        let words = words_of(&report);
        let is_said =
            ["1 PEs, and process 0 of the job has 2", "2 PEs, and process 1 of the job has 1"].iter().any(
                |part| words.contains(&format!("this process has {part}. Set PELAGO_PES_PER_PROCESS alike")),
            );
        assert!(report.status != 0 && is_said, "{words}");
    }
}

/// A PE panics while the other of its process computes, and those of another process wait.
#[test]
fn a_panic_of_one_pe_ends_the_job_at_once() {
    let report = try_processes!(4, [TWO_EACH], |world: &World| {
        world.barrier();
        match world.my_pe() {
            3 => panic!("the matrix is singular"),
            2 => compute(),
            _ => world.barrier(),
        }
    });
    let start = "PE 3 aborted the job with status 101: panicked: the matrix is singular, ";
    assert_failed(&report, 101, 3, start, "run.rs:");
}

/// A panic that is caught ends no PE.
#[test]
fn a_caught_panic_ends_nothing() {
    expect_success(&try_processes!(4, [TWO_EACH], |world: &World| {
        let outcome = std::panic::catch_unwind(|| panic!("caught"));
        assert!(outcome.is_err());
        world.barrier();
    }));
}

#[test]
fn one_pe_can_end_the_job() {
    let report = try_processes!(4, [TWO_EACH], |world: &World| {
        world.barrier();
        match world.my_pe() {
            1 => world.abort(3, "enough"),
            _ => compute(),
        }
    });
    assert_failed(&report, 3, 1, "PE 1 aborted the job with status 3: enough", "");
}

/// A process that a signal kills is named with all its PEs.
#[test]
fn a_killed_process_is_named_by_its_pes() {
    use rustix::process::{Signal, getpid, kill_process};
    let report = try_processes!(4, [TWO_EACH], |world: &World| {
        world.barrier();
        match world.my_pe() {
            3 => kill_process(getpid(), Signal::KILL).unwrap(),
            _ => world.barrier(),
        }
    });
    assert_failed(&report, 137, 2, "PEs 2-3 (pid ", ") were killed by signal 9 (SIGKILL)");
}

#[test]
fn a_wait_for_a_pe_of_the_same_process_has_its_limit() {
    let report = try_processes!(4, [TWO_EACH, ("PELAGO_WAIT_LIMIT", "0.3")], |world: &World| {
        match world.my_pe() {
            1 => compute(),
            _ => world.barrier(),
        }
    });
    let [failure] = &report.failures[..] else { panic!("not one failure: {report:#?}") };
    assert!(report.status == 101 && failure.pe != Some(1), "{report:#?}");
    assert!(failure.text.contains("has waited 300ms for"), "{}", failure.text);
}

/// A PE that has left is reported by the other PEs of its process as well.
#[test]
fn a_pe_that_has_left_is_named() {
    let report = try_processes!(4, [TWO_EACH], |world: &World| {
        if world.my_pe() != 0 {
            world.barrier();
        }
    });
    assert!(report.status == 101 && words_of(&report).contains("PE 0 has left the job"), "{report:#?}");
}

/// An error that a PE detects when it joins is reported with its number.
#[test]
fn routes_that_differ_end_the_job() {
    fn here() {}
    let place = Place { function: std::any::type_name_of_val(&here), line: line!() };
    let configure = |spec: &mut JobSpec| {
        spec.env.push((TWO_EACH.0.into(), TWO_EACH.1.into()));
        through_shell(spec, "if [ $PMI_RANK = 0 ]; then export PELAGO_ROUTE=net; fi");
    };
    let report = pelago::testing::run(&place, 4, configure, |world: &World| world.barrier());
    let words = words_of(&report);
    assert!(report.status == 1 && words.contains("2 of 4 PEs go over the net"), "{report:#?}");
}
