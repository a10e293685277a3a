//! Tests of the launcher with PEs that are real processes.

mod bodies;
#[cfg(feature = "full")]
mod hydra;
#[cfg(feature = "full")]
mod mpirun;
mod orphans;
#[cfg(feature = "full")]
mod set_user_id;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use pelago_boot::{Cause, JobReport, JobSpec, LaunchError, cpus, launch};

/// Not a test: the entry point of this program when it is started again as a PE.
#[test]
fn pe() {
    bodies::run_if_asked();
}

/// This program with the arguments that select the entry point of PEs.
fn this_program() -> (PathBuf, Vec<OsString>) {
    let args = ["pe", "--exact", "--nocapture", "--test-threads=1"];
    (std::env::current_exe().unwrap(), args.map(OsString::from).to_vec())
}

/// `n` PEs that run `body`.
fn pes(n: usize, body: &str) -> JobSpec {
    let (program, args) = this_program();
    let env = vec![("PELAGO_TEST_BODY".into(), body.into())];
    JobSpec { args, env, capture: true, timeout: Some(Duration::from_secs(60)), ..JobSpec::new(n, program) }
}

/// `n` PEs that run a line of shell code.
fn shells(n: usize, line: &str) -> JobSpec {
    let args = vec!["-c".into(), line.into()];
    JobSpec { args, capture: true, timeout: Some(Duration::from_secs(60)), ..JobSpec::new(n, "/bin/sh") }
}

fn run(spec: &JobSpec) -> JobReport {
    launch(spec).unwrap()
}

/// Runs a job that fails; returns the report after checking that it has one failure and that no process is
/// left.
fn fails(spec: &JobSpec, status: i32, pe: Option<usize>, cause: Cause, text: &str) -> JobReport {
    let report = run(spec);
    let [failure] = &report.failures[..] else { panic!("not one failure: {report:#?}") };
    assert_eq!((&failure.cause, failure.pe, report.status), (&cause, pe, status), "{report:#?}");
    assert!(failure.text.contains(text), "{:?} does not say {text:?}", failure.text);
    for pid in pids(&report) {
        assert!(rustix::process::test_kill_process(pid).is_err(), "{pid:?} is still there: {report:#?}");
    }
    report
}

/// The processes that have printed their process id.
fn pids(report: &JobReport) -> Vec<rustix::process::Pid> {
    let lines = report.output.iter().flat_map(|output| output.stdout.lines());
    let numbers = lines.filter_map(|line| line.strip_prefix("pid ")?.parse().ok());
    numbers.filter_map(rustix::process::Pid::from_raw).collect()
}

#[test]
fn pes_exchange_values_and_leave() {
    for n in [1, 4] {
        let report = run(&pes(n, "exchange"));
        assert_eq!((report.status, &report.failures[..]), (0, &[][..]), "{report:#?}");
        for (pe, output) in report.output.iter().enumerate() {
            let line = format!("PE {pe} of {n} has seen all under Pelago");
            assert!(output.stdout.lines().any(|found| found == line), "no {line:?} in {report:#?}");
        }
    }
}

#[test]
fn large_values_travel_in_rounds() {
    let report = run(&pes(3, "large"));
    assert_eq!((report.status, &report.failures[..]), (0, &[][..]), "{report:#?}");
}

#[test]
fn programs_that_never_join_are_fine() {
    let report = run(&shells(3, "echo $PMI_RANK of $PMI_SIZE; echo problem >&2"));
    assert_eq!(report.status, 0, "{report:#?}");
    for (pe, output) in report.output.iter().enumerate() {
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (&*format!("{pe} of 3\n"), "problem\n"));
    }
}

#[test]
fn a_status_other_than_0_ends_the_job() {
    let report = fails(&pes(4, "exit"), 3, Some(1), Cause::Exit(3), "PE 1 exited with status 3");
    assert_eq!(pids(&report).len(), 4);
    fails(&shells(2, "test $PMI_RANK = 0 && exit 9; exec sleep 60"), 9, Some(0), Cause::Exit(9), "status 9");
}

#[test]
fn a_panic_is_reported_with_its_message() {
    let text = "PE 1 exited with status 101: panicked: the sky fell";
    let report = fails(&pes(3, "panic"), 101, Some(1), Cause::Exit(101), text);
    assert_eq!(report.failures[0].note.as_deref(), Some("panicked: the sky fell"));
}

#[test]
fn a_signal_ends_the_job() {
    fails(&pes(3, "kill"), 137, Some(1), Cause::Signal(9), ") was killed by signal 9 (SIGKILL)");
    fails(&pes(3, "kill-other"), 137, Some(2), Cause::Signal(9), "PE 2 (pid ");
    fails(&shells(1, "kill -SEGV $$"), 139, Some(0), Cause::Signal(11), "SIGSEGV");
}

#[test]
fn a_pe_that_leaves_the_others_behind_ends_the_job() {
    fails(&pes(3, "leave"), 1, Some(1), Cause::NotFinalized, "PE 1 exited with status 0 before it had left");
}

/// They may have work to do that needs no other PE.
#[test]
fn a_failure_after_the_job_leaves_the_others_to_end_by_themselves() {
    let text = "PE 1 exited with status 4 after it had left the job";
    let report = fails(&pes(3, "finalize-then-fail"), 4, Some(1), Cause::ExitAfterLeaving(4), text);
    for pe in [0, 2] {
        assert!(report.output[pe].stdout.contains(&format!("PE {pe} still works: true\n")), "{report:#?}");
    }
}

/// The status stays that of the first failure; what ends the job is reported, too.
#[test]
fn a_job_whose_first_failure_did_not_end_it() {
    let spec = JobSpec { timeout: Some(Duration::from_secs(1)), ..pes(2, "finalize-then-stay") };
    let report = run(&spec);
    let causes: Vec<_> = report.failures.iter().map(|failure| &failure.cause).collect();
    assert_eq!((report.status, &causes[..]), (4, &[&Cause::ExitAfterLeaving(4), &Cause::Timeout][..]));
}

#[test]
fn a_pe_that_never_joins_while_others_do_ends_the_job() {
    fails(&pes(3, "stranger"), 1, Some(1), Cause::NotJoined, "PE 1 exited with status 0 without joining");
}

#[test]
fn a_pe_that_is_late_is_named() {
    let mut spec = pes(2, "late");
    spec.env.push(("PELAGO_INIT_TIMEOUT".into(), "0.3".into()));
    let text = "PE 1 did not join within 0.3 s of the first";
    fails(&spec, 1, None, Cause::Missing(vec![1]), text);
}

#[test]
fn a_pe_can_end_the_job() {
    fails(&pes(3, "abort"), 7, Some(1), Cause::Abort(7), "PE 1 aborted the job with status 7: had enough");
    // The system keeps eight bits of a status, and a failure is no success.
    fails(&pes(1, "abort-256"), 1, Some(0), Cause::Abort(256), "PE 0 aborted the job with status 256");
    let (program, args) = this_program();
    let mut alone = std::process::Command::new(program);
    let ended = alone.args(args).env("PELAGO_TEST_BODY", "abort-256").output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "without a launcher: {stderr}");
    assert!(stderr.contains("PE 0: had enough\n"), "{stderr}");
    let report = run(&pes(3, "abort-0"));
    assert_eq!((report.status, &report.failures[..]), (0, &[][..]), "{report:#?}");
}

/// The others initialise again, and meet in the launcher's barrier.
#[test]
fn a_pe_that_has_left_and_ended_is_missed_in_a_new_meeting() {
    let text = "PE 1 exited with status 4 after it had left the job";
    fails(&pes(3, "rest-then-fail"), 4, Some(1), Cause::ExitAfterLeaving(4), text);
    let text = "PE 1 exited with status 0 without joining the job";
    fails(&pes(3, "rest-then-end"), 1, Some(1), Cause::NotJoined, text);
}

/// An abort without a message is one of many, perhaps: all PEs have a moment to write their output.
#[test]
fn a_pe_that_ends_the_job_without_a_message_leaves_the_others_a_moment() {
    let text = "PE 1 aborted the job with status 6";
    let report = fails(&pes(2, "abort-quietly"), 6, Some(1), Cause::Abort(6), text);
    let told = &report.output[0].stdout;
    assert!(told.contains("PE 0 had 100 ms: true\n"), "{told}");
}

/// Two PEs per process, and twice as many PEs.
fn twice(spec: JobSpec) -> JobSpec {
    let mut env = spec.env;
    env.push(("PELAGO_PES_PER_PROCESS".into(), "2".into()));
    JobSpec { n: 2 * spec.n, env, ..spec }
}

#[test]
fn processes_with_several_pes_are_named_by_them() {
    let report = run(&twice(pes(3, "exchange")));
    assert_eq!((report.status, report.output.len()), (0, 3), "{report:#?}");
    assert!(report.output[2].stdout.contains("PE 2 of 3 has seen all"), "{report:#?}");
    let of_one = |body, status, cause, text| fails(&twice(pes(3, body)), status, Some(2), cause, text);
    of_one("kill", 137, Cause::Signal(9), ") were killed by signal 9 (SIGKILL)");
    of_one("panic", 101, Cause::Exit(101), "PEs 2-3 exited with status 101: panicked: the sky fell");
    of_one("leave", 1, Cause::NotFinalized, "PEs 2-3 exited with status 0 before they had left");
    of_one("abort", 7, Cause::Abort(7), "PE 2 aborted the job with status 7: had enough");
    of_one("abort-as-another", 7, Cause::Abort(7), "PEs 2-3 aborted the job with status 7: had enough");
    let mut late = twice(pes(2, "late"));
    late.env.push(("PELAGO_INIT_TIMEOUT".into(), "0.3".into()));
    fails(&late, 1, None, Cause::Missing(vec![2, 3]), "PEs 2-3 did not join within 0.3 s of the first");
}

#[test]
fn processes_with_several_pes_are_bound_to_the_processors_of_those() {
    let mut spec = twice(shells(2, "grep Cpus_allowed_list /proc/self/status; echo bind $PELAGO_BIND"));
    spec.bind = true;
    let (report, cpus) = (run(&spec), cpus());
    for (process, output) in report.output.iter().enumerate() {
        let words: Vec<_> = output.stdout.split_whitespace().collect();
        let [_, found, "bind", "on"] = words[..] else { panic!("{report:#?}") };
        let numbers = found.split(',').flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<usize>().unwrap()..=last.parse().unwrap()
        });
        let mut expected: Vec<_> = (0..2).map(|i| cpus[(2 * process + i) % cpus.len()]).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(numbers.collect::<Vec<_>>(), expected, "process {process} of {report:#?}");
    }
}

#[test]
fn a_pe_that_does_not_speak_pmi_ends_the_job() {
    fails(&pes(2, "garble"), 1, Some(1), Cause::Protocol, "PE 1 (pid ");
}

#[test]
fn pes_that_ignore_sigterm_are_killed() {
    let report = fails(&pes(2, "stubborn"), 3, Some(1), Cause::Exit(3), "status 3");
    assert_eq!(pids(&report).len(), 2);
}

#[test]
fn stopped_pes_are_killed() {
    // PE 0 stops itself; PE 1 fails when it sees that in the state of its sibling's process.
    let line = "if test $PMI_RANK = 0; then kill -STOP $$; else \
                siblings() { grep -ls '^PPid:.'$PPID'$' /proc/[0-9]*/status; }; \
                until grep -qs '^State:.T' $(siblings); do :; done; exit 5; fi";
    fails(&shells(2, line), 5, Some(1), Cause::Exit(5), "status 5");
}

#[test]
fn the_time_of_a_job_can_be_limited() {
    let mut spec = shells(2, "exec sleep 60");
    spec.timeout = Some(Duration::from_millis(200));
    fails(&spec, 124, None, Cause::Timeout, "the job was ended after 0.2 s");
}

#[test]
fn output_of_any_size_is_captured() {
    let report = run(&shells(2, "head -c 1000000 /dev/zero; head -c 300000 /dev/zero >&2"));
    assert_eq!(report.status, 0);
    for output in &report.output {
        assert_eq!((output.stdout.len(), output.stderr.len()), (1_000_000, 300_000));
    }
}

#[test]
fn only_pe_0_reads_standard_input() {
    let report = run(&shells(2, "test $PMI_RANK = 0 || readlink /proc/self/fd/0"));
    assert_eq!(report.output[1].stdout, "/dev/null\n");
}

#[test]
fn pes_are_bound_to_processors_in_turn() {
    let mut spec = shells(3, "grep Cpus_allowed_list /proc/self/status");
    spec.bind = true;
    let report = run(&spec);
    let cpus = cpus();
    for (pe, output) in report.output.iter().enumerate() {
        let found = output.stdout.split_whitespace().last().unwrap();
        assert_eq!(found, cpus[pe % cpus.len()].to_string(), "PE {pe} of {report:#?}");
    }
}

#[test]
fn variables_reach_the_pes() {
    let mut spec = shells(2, "echo $COLOUR");
    spec.env = vec![("COLOUR".into(), "deep blue".into())];
    assert!(run(&spec).output.iter().all(|output| output.stdout == "deep blue\n"));
}

#[test]
fn what_cannot_be_started_is_refused() {
    let refused = |n, program: &str| launch(&JobSpec::new(n, program)).unwrap_err();
    assert!(matches!(refused(2, "/no/such/program"), LaunchError::NotFound { searched: false, .. }));
    assert!(matches!(refused(2, "no-such-program"), LaunchError::NotFound { searched: true, .. }));
    assert!(matches!(refused(2, "/etc"), LaunchError::NotRunnable { .. }));
    assert!(matches!(refused(2, "/etc/passwd"), LaunchError::NotRunnable { .. }));
    assert!(matches!(refused(0, "/bin/true"), LaunchError::NoPes));
    assert!(matches!(refused(1_000_000, "/bin/true"), LaunchError::TooManyPes { .. }));
    let uneven = JobSpec { n: 5, ..twice(JobSpec::new(1, "/bin/true")) };
    assert!(matches!(launch(&uneven), Err(LaunchError::Uneven { n: 5, each: 2 })));
    let mut spec = JobSpec::new(1, "/bin/true");
    spec.env = vec![("PELAGO_HEAPSIZE".into(), "1g".into())];
    let text = launch(&spec).unwrap_err().to_string();
    assert!(text.contains("did you mean PELAGO_HEAP_SIZE?"), "{text}");
}

#[test]
fn many_pes_start_and_meet() {
    let report = run(&pes(64, "exchange"));
    assert_eq!(report.status, 0, "{report:#?}");
}
