//! Tests of several processes, as easy as unit tests.
//!
//! [`processes!`](crate::processes) runs a body on n PEs, each a process of its own: it starts this very test
//! program n times, by the launcher that `pelago run` is made of, and each copy runs just the body. If the
//! environment sets `PELAGO_PES_PER_PROCESS`, there are fewer copies with several PEs each.
//!
//! ```
//! # if false { // a test program is needed to start
//! pelago::processes!(4, |world| {
//!     world.barrier();
//! });
//! # }
//! ```

use crate::world::World;
use pelago_boot::{Settings, launch};
use pelago_core::msg::process;
use pelago_core::wait::stall;
use pelago_fabric::Provider;
use std::time::{Duration, Instant};

#[doc(hidden)]
pub use pelago_boot::{JobReport, JobSpec};

/// A job that takes longer than this fails its test. The limit of waits in the tiers of tests is shorter, so
/// that a wait without end is named.
const LIMIT: Duration = Duration::from_secs(150);

/// Runs a body on n processes inside a `#[test]`: `processes!(n, |world| ...)`. The test fails if a PE fails;
/// it then shows the output of the PEs.
#[macro_export]
macro_rules! processes {
    ($n_pes:expr, $body:expr $(,)?) => {
        $crate::testing::expect_success(&$crate::try_processes!($n_pes, [], $body))
    };
}

/// As [`processes!`](crate::processes), with variables for the PEs, `[("NAME", "value"), ...]`, and the
/// report of the job as its value: for tests of jobs that are to fail.
#[macro_export]
macro_rules! try_processes {
    ($n_pes:expr, $env:expr, $body:expr $(,)?) => {{
        fn here() {}
        let place = $crate::testing::Place { function: std::any::type_name_of_val(&here), line: line!() };
        let set_variables = |spec: &mut $crate::testing::JobSpec| {
            let pairs: &[(&str, &str)] = &$env;
            spec.env.extend(pairs.iter().map(|(name, value)| (name.into(), value.into())));
        };
        $crate::testing::run(&place, $n_pes, set_variables, $body)
    }};
}

/// Loses the next `count` reports to other PEs of how many of their requests were executed.
#[doc(hidden)]
pub fn lose_window_reports(world: &World, count: u32) {
    world.core().lose_window_reports(count);
}

/// Looks as a PE does that is about to sleep, until it may sleep. Returns whether there was nothing to do
/// then.
#[doc(hidden)]
pub fn is_idle_when_it_may_sleep(world: &World) -> bool {
    let core = world.core();
    let net = core.net.as_ref().expect("the job has a network");
    let since = Instant::now();
    loop {
        let activity = net.activity();
        if core.may_sleep(net, activity) {
            core.progress();
            return net.activity() == activity;
        }
        assert!(since.elapsed() < LIMIT, "waited for operations to complete");
    }
}

/// Lets the other processes of the job access this one's memory by system calls.
#[doc(hidden)]
pub fn permit_access() {
    process::permit_access();
}

/// Whether a word at this address of the process of another PE can be read.
#[doc(hidden)]
pub fn reads_memory(world: &World, pe: usize, address: u64) -> bool {
    let Some(pid) = world.core().pid_of(pe) else { return false };
    let mut word = 0_u64;
    // SAFETY: the word is valid for writes, and the system checks the address in the other process.
    unsafe { process::read(pid, address, (&raw mut word).cast(), size_of::<u64>()) }
}

/// The parts of its long messages that this PE has copied to their receivers.
#[doc(hidden)]
pub fn helped_parts(world: &World) -> u64 {
    world.core().helped_parts()
}

/// The number of PEs for which a message, or an answer to one, counts as waiting to be sent.
#[doc(hidden)]
pub fn busy_peers(world: &World) -> usize {
    world.core().busy_peers()
}

/// Looks whether all operations are complete, as a test of that does, but without a round of progress before.
#[doc(hidden)]
pub fn tests_quiet(world: &World) -> bool {
    let core = world.core();
    core.net.as_ref().is_none_or(|net| net.tests_quiet(core))
}

/// Leaves the job, and looks at all connections when `await_others` has returned: the others may be gone
/// then.
#[doc(hidden)]
pub fn look_after_leaving(world: &World, await_others: impl FnOnce()) {
    let core = world.core();
    // The launcher lets a process that has left end without a further word.
    std::mem::forget(core.end(|| ()));
    await_others();
    // One round in some looks at all connections.
    (0..100).for_each(|_| core.progress());
}

/// The states that a PE has of others, each made at the first contact.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Contacts {
    /// Processes, if the provider of the network makes their states in this way.
    pub processes: Option<usize>,
    /// PEs, of two-sided messages and of active messages.
    pub two_sided: usize,
    pub active: usize,
}

/// The states that this PE has of others.
#[doc(hidden)]
pub fn contacts(world: &World) -> Contacts {
    let core = world.core();
    Contacts {
        processes: core.net.as_ref().and_then(|net| net.call(Provider::contacts)),
        two_sided: core.msg.n_contacts(),
        active: core.am.n_contacts(),
    }
}

/// The place of a body in the source: it tells the copies of the test program which body to run.
#[doc(hidden)]
#[derive(Debug)]
pub struct Place {
    /// Path of a function inside the test, crate included.
    pub function: &'static str,
    /// Line of the macro's call.
    pub line: u32,
}

impl Place {
    /// The name by which the test program knows the test.
    fn test(&self) -> String {
        let names = self.function.split("::").filter(|name| !name.starts_with('{'));
        let names: Vec<&str> = names.collect();
        names[1..names.len() - 1].join("::")
    }

    fn key(&self) -> String {
        format!("{}:{}", self.test(), self.line)
    }
}

/// In the test: starts the job, as `configure` changes it, and returns its report. In a copy: runs the body
/// on its PE, or PEs, and ends.
#[doc(hidden)]
pub fn run(
    place: &Place,
    n_pes: usize,
    configure: impl FnOnce(&mut JobSpec),
    body: impl Fn(&World) + Sync,
) -> JobReport {
    let wanted = Settings::from_env().expect("the environment is valid").test_body;
    match wanted {
        None => {
            let mut spec = job_of_copies(place, n_pes);
            configure(&mut spec);
            launch(&spec).expect("the test program can be started")
        }
        Some(key) if key == place.key() => be_pes(body),
        Some(_) => JobReport { status: 0, failures: Vec::new(), output: Vec::new() },
    }
}

/// Puts a shell between the launcher and each PE, which runs `setup` first: for PEs that are to differ.
#[doc(hidden)]
pub fn through_shell(spec: &mut JobSpec, setup: &str) {
    let arguments: Vec<_> = spec.args.iter().map(|argument| argument.to_string_lossy()).collect();
    let line = format!("{setup}; exec {} {}", spec.program.display(), arguments.join(" "));
    spec.args = vec!["-c".into(), line.into()];
    spec.program = "/bin/sh".into();
}

fn job_of_copies(place: &Place, n_pes: usize) -> JobSpec {
    let program = std::env::current_exe().expect("the test program has a path");
    let mut spec = JobSpec::new(n_pes, program);
    spec.args = ["--exact", &place.test(), "--nocapture", "--test-threads=1"].map(Into::into).into();
    spec.env = vec![("PELAGO_TEST_BODY".into(), place.key().into())];
    spec.timeout = Some(LIMIT);
    spec.capture = true;
    spec
}

fn be_pes(body: impl Fn(&World) + Sync) -> ! {
    // The threads of the test harness wait for this one.
    stall::others_are_bystanders();
    let outcome = crate::run(body).map(drop);
    outcome.unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1);
    });
    std::process::exit(0);
}

/// Fails the test if the job failed.
#[doc(hidden)]
#[track_caller]
pub fn expect_success(report: &JobReport) {
    if report.status == 0 && report.failures.is_empty() {
        return;
    }
    for (process, output) in report.output.iter().enumerate() {
        eprintln!("--- process {process} wrote ---\n{}{}", output.stdout, output.stderr);
    }
    let reasons: Vec<&str> = report.failures.iter().map(|failure| failure.text.as_str()).collect();
    panic!("the job ended with status {}: {}", report.status, reasons.join("; "));
}
