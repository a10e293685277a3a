//! The bodies of the PEs of the tests. A PE is this test program again; `PELAGO_TEST_BODY` selects the body.
//!
//! Invariant: every wait in a body is bounded; a wait that exceeds its limit ends the PE with exit status 99.

use std::io::{PipeWriter, Write};
use std::process::exit;
use std::sync::OnceLock;
use std::time::Duration;

use pelago_boot::{BootError, Job, JobSpec, Launcher, Settings, launch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process, test_kill_process};

/// The variables that tell a body which is itself a launcher what to launch.
pub const LAUNCH_N: &str = "LAUNCH_N";
/// Program and arguments, one per line.
pub const LAUNCH_PROGRAM: &str = "LAUNCH_PROGRAM";

/// Runs the body that the environment names, and ends the process; returns at once in the test process
/// itself.
pub fn run_if_asked() {
    let settings = Settings::from_env().unwrap_or_else(|error| panic!("{error}"));
    let Some(body) = settings.test_body.clone() else { return };
    match body.as_str() {
        "exchange" => exchange(&settings),
        "launcher" => exit(nested_launcher()),
        "stranger" if std::env::var("PMI_RANK").unwrap() == "1" => exit(0),
        "late" if std::env::var("PMI_RANK").unwrap() == "1" => block(),
        // The short limit of this body is the launcher's to keep, not that of the PE which has joined.
        "missing" if std::env::var("PMIX_RANK").unwrap() == "1" => block(),
        "missing" => in_vain(&Job::join(&settings).unwrap()),
        "large" => {
            let job = Job::join(&settings).unwrap();
            large(&job);
            job.finalize().unwrap();
        }
        "late" => in_job("late", Job::join(&Settings::default()).unwrap()),
        body => in_job(body, Job::join(&settings).unwrap()),
    }
    exit(0)
}

/// Bodies that run after joining.
fn in_job(body: &str, job: Job) {
    let one = job.rank() == 1;
    if body == "stubborn" {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
    say(&format!("pid {}", getpid().as_raw_nonzero()));
    job.put(&format!("pid-{}", job.rank()), getpid().as_raw_nonzero().to_string().as_bytes()).unwrap();
    if body != "late" && body != "stranger" {
        job.barrier().unwrap();
    }
    match body {
        "exit" | "stubborn" if one => exit(3),
        "leave" if one => exit(0),
        "kill" if one => kill_process(getpid(), Signal::KILL).unwrap(),
        "kill-other" if one => {
            let pid = String::from_utf8(job.get(2, "pid-2").unwrap().unwrap()).unwrap();
            kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        }
        "panic" if one => {
            let notifier = job.notifier();
            std::panic::set_hook(Box::new(move |panic| {
                notifier
                    .note(&format!("panicked: {}", panic.payload().downcast_ref::<&str>().unwrap_or(&"?")));
            }));
            panic!("the sky fell");
        }
        "abort" if one => job.abort(job.first_pe(), 7, "had enough"),
        "abort-as-another" if one => job.abort(0, 7, "had enough"),
        "abort-256" => job.abort(job.first_pe(), 256, "had enough"),
        "abort-0" if one => job.abort(job.first_pe(), 0, ""),
        "garble" if one => {
            let fd: i32 = std::env::var("PMI_FD").unwrap().parse().unwrap();
            // SAFETY: PMI_FD is open, because `job` holds it to the end of this function.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
            rustix::io::write(fd, b"nonsense\n").unwrap();
        }
        "finalize-then-fail" | "finalize-then-stay" if one => {
            job.finalize().unwrap();
            exit(4);
        }
        "finalize-then-fail" => work_on(job),
        "rest-then-fail" | "rest-then-end" if one => {
            job.rest();
            exit(if body == "rest-then-fail" { 4 } else { 0 });
        }
        "rest-then-fail" | "rest-then-end" => job.barrier().unwrap(),
        "abort-quietly" => abort_quietly(&job),
        "watch" => {
            say("watching");
            for _ in 0..60_000 {
                if job.launcher_gone() {
                    exit(0);
                }
                rest(Duration::from_millis(1));
            }
        }
        _ => {}
    }
    block()
}

/// The pipe to which the handler of SIGTERM writes when it came.
static TOLD: OnceLock<PipeWriter> = OnceLock::new();

extern "C" fn note_time(_signal: i32) {
    let told = TOLD.get().expect("the pipe was opened before the handler was installed");
    let _ = rustix::io::write(told, &now().to_le_bytes());
}

fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// PE 1 ends the job, and PE 0 says whether it was told so at least 100 ms later.
fn abort_quietly(job: &Job) -> ! {
    let (reader, writer) = std::io::pipe().unwrap();
    TOLD.set(writer).unwrap();
    if job.rank() == 1 {
        job.put("begun", &now().to_le_bytes()).unwrap();
    } else {
        // SAFETY: the handler reads a clock and writes to a pipe.
        unsafe { libc::signal(libc::SIGTERM, note_time as extern "C" fn(i32) as usize) };
    }
    job.barrier().unwrap();
    let begun = job.get(1, "begun").unwrap().unwrap();
    let begun = u64::from_le_bytes(begun.try_into().unwrap());
    job.barrier().unwrap();
    if job.rank() == 1 {
        job.abort(job.first_pe(), 6, "");
    }
    let limit = Timespec::try_from(Duration::from_secs(60)).unwrap();
    let mut told = [PollFd::new(&reader, PollFlags::IN)];
    while matches!(poll(&mut told, Some(&limit)), Err(Errno::INTR)) {}
    if !told[0].revents().contains(PollFlags::IN) {
        exit(99);
    }
    let mut at = [0; 8];
    assert_eq!(rustix::io::read(&reader, &mut at), Ok(8));
    say(&format!("PE 0 had 100 ms: {}", u64::from_le_bytes(at) - begun >= 100_000_000));
    exit(0)
}

/// Works on until the launcher has noticed the end of PE 1, and asks it once more after that.
fn work_on(job: Job) -> ! {
    let pid = || String::from_utf8(job.get(1, "pid-1").unwrap().unwrap()).unwrap();
    let one = Pid::from_raw(pid().parse().unwrap()).unwrap();
    for _ in 0..60_000 {
        if test_kill_process(one).is_err() {
            say(&format!("PE {} still works: {}", job.rank(), pid().parse::<u32>().is_ok()));
            let status = if job.rank() == 0 { 0 } else { 5 };
            job.finalize().unwrap();
            exit(status);
        }
        rest(Duration::from_millis(1));
    }
    exit(99)
}

/// All exchanges between PEs through the launcher.
fn exchange(settings: &Settings) {
    let job = Job::join(settings).unwrap();
    let (me, n) = (job.rank(), job.size());
    assert!(matches!(Job::join(settings), Err(BootError::Twice)));
    assert!(!job.launcher_gone());
    job.note("not shown, because this PE does not die");
    let value = |pe: usize| vec![pe as u8; 700 * pe];
    job.put(&format!("value-{me}"), &value(me)).unwrap();
    job.barrier().unwrap();
    for pe in 0..n {
        assert_eq!(job.get(pe, &format!("value-{pe}")).unwrap(), Some(value(pe)), "the value of PE {pe}");
    }
    assert_eq!(job.get(n - 1, "nobody").unwrap(), None);
    let (local, launcher) = (job.local_ranks().unwrap(), job.launcher());
    let all = (launcher != Launcher::Pmix).then(|| (0..n).collect());
    assert_eq!(local, all, "one node holds all, where the launcher says");
    job.barrier().unwrap();
    job.finalize().unwrap();
    say(&format!("PE {me} of {n} has seen all under {launcher:?}"));
}

/// Values that exceed a single message of PMI-1, in two rounds.
fn large(job: &Job) {
    let (me, n) = (job.rank(), job.size());
    let value = |pe: usize| (0..100_000 + pe).map(|i| (i * (pe + 3) / 16) as u8).collect::<Vec<_>>();
    for round in 0..2 {
        let key = |pe: usize| format!("large-{round}-{pe}");
        job.put(&key(me), &value(me + round)).unwrap();
        job.put(&format!("empty-{round}-{me}"), &[]).unwrap();
        job.barrier().unwrap();
        for pe in 0..n {
            assert!(job.get(pe, &key(pe)).unwrap() == Some(value(pe + round)), "round {round}, PE {pe}");
            let empty = job.get(pe, &format!("empty-{round}-{pe}")).unwrap();
            assert_eq!(empty, Some(Vec::new()), "round {round}, PE {pe}");
            assert_eq!(job.get(pe, &format!("large-{}-{pe}", round + 1)).unwrap(), None, "not yet put");
        }
        job.barrier().unwrap();
    }
    assert_eq!(job.get(n, "large-0-0").unwrap(), None, "there is no such PE");
    say(&format!("PE {me} of {n} has seen all of 100 kB"));
}

/// A barrier that one PE never enters.
fn in_vain(job: &Job) -> ! {
    let error = job.barrier().expect_err("PE 1 is missing");
    say(&format!("PE {}: {error}", job.rank()));
    exit(6)
}

/// Calls `launch` in a separate process, which a test can kill.
fn nested_launcher() -> i32 {
    let text = std::env::var(LAUNCH_PROGRAM).unwrap();
    let mut words = text.lines();
    let mut spec = JobSpec::new(std::env::var(LAUNCH_N).unwrap().parse().unwrap(), words.next().unwrap());
    spec.args = words.map(Into::into).collect();
    spec.env = vec![("PELAGO_TEST_BODY".into(), "watch".into())];
    spec.tag_output = true;
    spec.timeout = Some(Duration::from_secs(60));
    // The test harness has left an incomplete line.
    say("launching");
    mask_signals(libc::SIG_UNBLOCK);
    let report = launch(&spec).unwrap();
    for failure in &report.failures {
        eprintln!("{}", failure.text);
    }
    report.status
}

/// Blocks or unblocks SIGINT and SIGTERM in this thread. A launcher has one thread, but this test program has
/// another one, to which the system could deliver the signals. So the test starts it with the signals blocked
/// in all threads, and only the thread that launches unblocks them.
pub fn mask_signals(how: i32) {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set, and the calls are async-signal-safe.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::pthread_sigmask(how, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Writes a separate line, because the test harness writes to the same stream.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Waits until the launcher kills this process.
fn block() -> ! {
    rest(Duration::from_secs(60));
    eprintln!("waited in vain for the launcher to end this PE");
    exit(99)
}

fn rest(time: Duration) {
    poll(&mut [], Some(&Timespec::try_from(time).unwrap())).unwrap();
}
