//! Processes that have no descriptor left.

use super::super::domain::Domain;
use super::*;
use crate::sync::Ordering;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::process::Command;

/// More than the time for which a process waits for a descriptor.
const LONG: Duration = Duration::from_secs(100);

/// Runs a test in a copy of this program, as the limit of descriptors holds for a whole process.
fn in_a_copy(name: &str, test: fn()) {
    const COPY: &str = "PELAGO_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(COPY).is_some() {
        return test();
    }
    let mut copy = Command::new(std::env::current_exe().unwrap());
    let name = format!("tcp::tests::descriptors::{name}");
    let output = copy.args(["--exact", &name, "--nocapture"]).env(COPY, "yes").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Sets the soft limit of descriptors.
fn limit_descriptors(current: Option<u64>) {
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current, ..limits }).unwrap();
}

/// A job in which a connection waits at PE 0, PE 1 is to connect to PE 0, and no descriptor is free. The
/// standard streams are open, so none below 3 is.
fn job_without_descriptors() -> (Job, TcpStream) {
    let job = Job::open(2);
    let stranger = TcpStream::connect(job.address(0)).unwrap();
    limit_descriptors(Some(3));
    job.start_put(1, 0, 7);
    let (accepting, connecting) = (&job.endpoints[0].domain, &job.endpoints[1].domain);
    job.until("both to lack a descriptor", || {
        accepting.is_short.load(Ordering::Relaxed) && waits(connecting)
    });
    (job, stranger)
}

/// Whether a process pauses between two attempts to connect to PE 0 for which it had no descriptor.
fn waits(domain: &Domain) -> bool {
    matches!(&*domain.peer(0).link(), Link::Waiting(_, history) if history.lacks_descriptors)
}

#[test]
fn connections_wait_for_a_descriptor() {
    in_a_copy("connections_wait_for_a_descriptor", || {
        let before = getrlimit(Resource::Nofile).current;
        let (job, stranger) = job_without_descriptors();
        let domain = &job.endpoints[0].domain;
        // A thread that sleeps there would be woken all the time.
        let is_woken = || {
            // SAFETY: the domain has the descriptor for as long as this borrows it.
            let poller = unsafe { std::os::fd::BorrowedFd::borrow_raw(domain.poller.as_raw()) };
            poll(&mut [PollFd::new(&poller, PollFlags::IN)], Some(&Timespec::default())).unwrap() > 0
        };
        for _ in 0..100 {
            assert!(!is_woken() && !job.endpoints[0].may_sleep());
            job.endpoints.iter().for_each(|endpoint| assert!(endpoint.progress(&mut |_| ()).is_ok()));
        }
        limit_descriptors(before);
        job.until("the put", || job.endpoints[1].completions().puts == 1);
        drop(stranger);
        job.until("rest", || domain.n_incoming.load(Ordering::Relaxed) == 0);
        assert!(!domain.is_short.load(Ordering::Relaxed) && domain.shortage.lock().is_none());
        let _other = TcpStream::connect(job.address(0)).unwrap();
        job.until("another connection", || domain.n_incoming.load(Ordering::Relaxed) == 1);
    });
}

#[test]
fn a_process_that_has_no_descriptor_for_a_long_time_ends_the_job() {
    in_a_copy("a_process_that_has_no_descriptor_for_a_long_time_ends_the_job", || {
        let (job, _stranger) = job_without_descriptors();
        let [accepting, connecting] = [0, 1].map(|pe| &job.endpoints[pe].domain);
        accepting.shortage.lock().as_mut().unwrap().since -= LONG;
        let text = job.fault();
        assert!(text.contains("accepting a connection failed: Too many open files"), "{text}");
        assert!(text.contains("`ulimit -n`"), "{text}");
        match &mut *connecting.peer(0).link() {
            Link::Waiting(_, history) => history.since -= LONG,
            _ => panic!("it waits"),
        }
        let text = job.fault_of(1);
        assert!(text.contains("opening a connection failed: ") && text.contains("`ulimit -n`"), "{text}");
        assert!(text.contains("Too many open files"), "{text}");
    });
}
