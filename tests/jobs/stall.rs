//! Jobs in which PEs wait for an event that never occurs: they end and report the wait of each PE. And jobs
//! that only look like this: they continue, and the report names the PEs that compute or are stopped.
//!
//! Each job has processes of its own, because a thread of another test would count as computing.

use pelago::prelude::*;
use pelago::testing::{JobReport, JobSpec, Place, expect_success, through_shell};
use pelago::{Spmd, try_processes};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A short limit, so that the tests do not take long.
const SOON: (&str, &str) = ("PELAGO_STALL_REPORT", "0.2");
const OFF: (&str, &str) = ("PELAGO_STALL_REPORT", "off");
const CHECKED: (&str, &str) = ("PELAGO_CHECK", "on");
const TWO_EACH: (&str, &str) = ("PELAGO_PES_PER_PROCESS", "2");
const NET: (&str, &str) = ("PELAGO_ROUTE", "net");
const TWO_NODES: (&str, &str) = ("PELAGO_SIM_NODES", "2");
const SCHEDULES: (&str, &str) = ("PELAGO_COLL_FORM", "schedule");
/// No wait of a test for another process takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Jobs whose PEs are processes, or threads of processes, or are on two nodes.
const WAYS: [&[(&str, &str)]; 5] = [&[], &[TWO_EACH], &[NET], &[SCHEDULES], &[TWO_NODES]];

/// All output of a job and its PEs.
fn words_of(report: &JobReport) -> String {
    let reasons = report.failures.iter().map(|failure| failure.text.as_str());
    reasons.chain(report.output.iter().map(|output| output.stderr.as_str())).collect::<Vec<_>>().join("\n")
}

/// Fails unless the job has failed with a message that contains all these parts.
#[track_caller]
fn assert_ended(report: &JobReport, way: &[(&str, &str)], parts: &[&str]) {
    let words = words_of(report);
    assert_ne!(report.status, 0, "{way:?}: {words}");
    for part in parts {
        assert!(words.contains(part), "{way:?}: no {part:?} in {words}");
    }
}

/// PE 0 is in the barrier of all PEs, the others in an all-reduce of a team.
fn barrier_against_all_reduce(world: &World) {
    let words = world.alloc_zeroed::<u64>(1).unwrap();
    let team = world.team();
    match world.my_pe() {
        0 => world.barrier(),
        _ => team.all_reduce(ReduceOp::Sum, &words, &words).unwrap(),
    }
}

#[test]
fn a_barrier_against_a_team_is_told_with_checks() {
    for way in WAYS {
        let settings = [way, &[OFF, CHECKED]].concat();
        let report = try_processes!(2, settings, barrier_against_all_reduce);
        let parts = [
            "collective calls do not match",
            "in barrier",
            "all_reduce(sum of u64, blocks of 1 elements",
            "PEs 0-1",
        ];
        assert_ended(&report, way, &parts);
    }
}

#[test]
fn threads_in_calls_that_do_not_match_are_told_with_checks() {
    let report = try_processes!(1, [OFF, CHECKED], |_: &World| {
        let end = Spmd::new(3).run(|world| {
            let pair = world.team().split_strided(0, 1, 2).unwrap();
            match (world.my_pe(), pair) {
                (0, Some(pair)) => pair.barrier(),
                (1, _) => world.barrier(),
                // It delays the end of the barrier of all PEs, but not for ever.
                _ => world.barrier(),
            }
        });
        panic!("{}", end.unwrap_err());
    });
    let parts = ["do not match", "PE 0 waits for PE 1", "barrier(), call", "of the team of PEs 0-1"];
    assert_ended(&report, &[], &parts);
}

/// PE 0 waits for a word that no PE will write, the others for PE 0.
fn a_word_that_nobody_writes(world: &World) {
    let word = world.alloc_zeroed::<u64>(4).unwrap();
    match world.my_pe() {
        0 => drop(word.local().wait_until(3, |value| value == 1)),
        _ => world.barrier(),
    }
}

#[test]
fn a_job_in_which_no_pe_can_go_on_ends() {
    for way in WAYS {
        let report = try_processes!(4, [way, &[SOON]].concat(), a_word_that_nobody_writes);
        let parts = ["no PE can go on", "PE 0 waits for a change of element 3", "in barrier"];
        assert_ended(&report, way, &parts);
    }
}

/// Idle workers, as those of OpenMP or of a thread pool, can act only after this PE has continued.
#[test]
fn workers_that_sleep_do_not_keep_a_job_that_cannot_go_on() {
    for way in WAYS {
        let report = try_processes!(2, [way, &[SOON]].concat(), |world: &World| {
            std::thread::spawn(|| {
                loop {
                    std::thread::park();
                }
            });
            a_word_that_nobody_writes(world);
        });
        assert_ended(&report, way, &["no PE can go on", "PE 0 waits for a change of element 3"]);
    }
}

#[test]
fn a_job_continues_if_a_thread_computes_while_all_pes_wait() {
    fn here() {}
    let place = Place { function: std::any::type_name_of_val(&here), line: line!() };
    let (report, said) = said_by_all(&place, 2, &[], |world| {
        let word = world.alloc_zeroed::<u64>(1).unwrap();
        std::thread::scope(|scope| {
            if world.my_pe() == 0 {
                scope.spawn(|| {
                    await_words(&["while another thread of the process computes"]);
                    word.atomic_set(0, 0, 1).unwrap();
                });
                word.local().wait_until(0, |value| value == 1);
            }
            world.barrier();
        });
    });
    expect_success(&report);
    assert!(!said.contains("no PE can go on"), "{said}");
}

#[test]
fn a_job_of_threads_in_which_no_pe_can_go_on_ends() {
    let report = try_processes!(1, [SOON], |_: &World| {
        panic!("{}", Spmd::new(3).run(a_word_that_nobody_writes).unwrap_err());
    });
    assert_ended(&report, &[], &["no PE can go on", "PE 0 waits for a change of element 3"]);
}

#[test]
fn calls_that_do_not_match_end_the_job_without_checks() {
    for way in WAYS {
        let report = try_processes!(2, [way, &[SOON]].concat(), barrier_against_all_reduce);
        assert_ended(&report, way, &["no PE can go on", "in barrier", "in all_reduce of a team"]);
    }
}

/// A file to which the PEs write their standard error, so that others can read it.
fn file_of(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("pelago-stall-{test}-{}", std::process::id()))
}

/// The standard error of all PEs.
const SAID_VARIABLE: &str = "STALL_SAID";

/// Waits until a PE has reported one of these. It is PE 0, unless PE 0 has had no processor time for long.
fn await_words(parts: &[&str]) {
    let path = std::env::var(SAID_VARIABLE).unwrap();
    let start = Instant::now();
    loop {
        let said = std::fs::read_to_string(&path).unwrap_or_default();
        if parts.iter().any(|part| said.contains(part)) {
            return;
        }
        assert!(
            start.elapsed() < LIMIT,
            "waited {LIMIT:?} for a PE to say one of {parts:?}; they said: {said}"
        );
        std::thread::yield_now();
    }
}

/// Runs a job whose PEs write their standard error to a file; gives what they wrote.
fn said_by_all(place: &Place, n: usize, way: &[(&str, &str)], body: fn(&World)) -> (JobReport, String) {
    let path = file_of(&place.line.to_string());
    let _ = std::fs::remove_file(&path);
    let configure = |spec: &mut JobSpec| {
        spec.env.extend(way.iter().chain(&[SOON]).map(|(name, value)| (name.into(), value.into())));
        spec.env.push((SAID_VARIABLE.into(), path.clone().into()));
        through_shell(spec, &format!("exec 2>>{}", path.display()));
    };
    let report = pelago::testing::run(place, n, configure, body);
    let said = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    (report, said)
}

#[test]
fn a_pe_that_computes_is_named_and_not_ended() {
    fn here() {}
    let place = Place { function: std::any::type_name_of_val(&here), line: line!() };
    for way in [&[][..], &[NET], &[SCHEDULES]] {
        let (report, said) = said_by_all(&place, 3, way, |world| {
            if world.my_pe() == 1 {
                // All PEs that are not in a wait yet are named together.
                await_words(&["PE 1 computes", "PEs 0-1 compute", "PEs 1-2 compute"]);
            }
            world.barrier();
        });
        expect_success(&report);
        assert!(said.contains("in barrier"), "{said}");
        for pe in 0..3 {
            let begin = format!("PE {pe} has waited for");
            assert!(said.matches(&begin).count() <= 1, "it is said once: {said}");
        }
    }
}

#[test]
fn a_stopped_pe_is_named_and_goes_on_when_it_may() {
    fn here() {}
    let place = Place { function: std::any::type_name_of_val(&here), line: line!() };
    for way in [&[][..], &[NET], &[TWO_NODES]] {
        let (report, said) = said_by_all(&place, 3, way, |world| {
            let pids = world.alloc_zeroed::<u64>(3).unwrap();
            let own = u64::try_from(getpid().as_raw_nonzero().get()).unwrap();
            pids.p(1, world.my_pe(), own).unwrap();
            world.barrier();
            match world.my_pe() {
                // On two nodes it is alone on the second.
                2 => kill_process(getpid(), Signal::STOP).unwrap(),
                1 => {
                    await_words(&["PE 2 is stopped by a signal"]);
                    let pid = Pid::from_raw(pids.local().get(2) as i32).unwrap();
                    kill_process(pid, Signal::CONT).unwrap();
                }
                _ => {}
            }
            world.barrier();
        });
        expect_success(&report);
        assert!(said.contains("PE 2 is stopped by a signal"), "{said}");
    }
}

/// PEs that are in several teams wait for each other in a chain, whose end waits for a PE that computes: far
/// longer than it takes to detect a cycle.
#[test]
fn a_chain_of_teams_is_no_mismatch() {
    for way in [&[][..], &[NET], &[SCHEDULES]] {
        let report = try_processes!(4, [way, &[OFF, CHECKED]].concat(), |world: &World| {
            let me = world.my_pe();
            let pairs = [0, 1, 2].map(|first| world.team().split_strided(first, 1, 2).unwrap());
            for round in 0..20 {
                if me == 3 {
                    (0..20_000 * (round % 3)).for_each(|_| std::thread::yield_now());
                }
                // The highest pair synchronizes first.
                pairs.iter().rev().flatten().for_each(Team::barrier);
            }
            world.barrier();
        });
        expect_success(&report);
    }
}

/// Each thread of a PE is in the calls of a team of its own, one of which is kept waiting.
#[test]
fn threads_in_calls_of_several_teams_are_no_mismatch() {
    let program = |world: &World| {
        let all = || world.team().split_strided(0, 1, world.n_pes()).unwrap().unwrap();
        let (first, second, me) = (all(), all(), world.my_pe());
        let meet = |team: &Team<'_>, late: usize| {
            for round in 0..30 {
                if me == late {
                    (0..10_000 * (round % 3)).for_each(|_| std::thread::yield_now());
                }
                team.barrier();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| meet(&second, 0));
            meet(&first, 2);
        });
        world.barrier();
    };
    let report = try_processes!(3, [OFF, CHECKED], program);
    expect_success(&report);
}
