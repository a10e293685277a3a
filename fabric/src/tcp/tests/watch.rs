//! The only connection, which the poller need not watch.

use super::super::domain::{Domain, Tag};
use super::super::socket::Interest;
use super::super::watch::ARRIVALS;
use super::*;
use crate::sync::Ordering;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;

/// Whether the poller of a domain has the socket of a peer.
fn is_watched(domain: &Domain, peer: usize) -> bool {
    let socket = domain.peer(peer).socket().expect("there is a connection");
    domain.poller.change(socket, Tag::Peer(peer).code(), Interest::Input).is_ok()
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
}

/// Lets puts arrive at PE 0 one after another until its poller does not watch the connection to PE 1.
fn stop_watching(job: &Job) {
    let domain = &job.endpoints[0].domain;
    for value in 0..=2 * u64::from(ARRIVALS) {
        job.put(1, 0, value);
    }
    assert!(domain.watch.is_off() && !is_watched(domain, 1), "the poller does not watch the connection");
}

#[test]
fn a_thread_that_sleeps_hears_of_arrivals_after_many_that_it_has_polled_for() {
    for each in [1, 2] {
        let job = Job::with_several(2 * each, each);
        let pe = &job.endpoints[0];
        let descriptor = pe.wait_descriptor().unwrap();
        job.put(each, 0, 1);
        assert!(is_watched(&pe.domain, 1), "one arrival is not enough");
        for value in 0..=2 * u64::from(ARRIVALS) {
            job.put(each, 0, value);
        }
        assert_eq!(is_watched(&pe.domain, 1), each > 1, "{each} PEs in the process");
        assert!(each > 1 || is_readable(&descriptor), "a thread that sleeps already is woken");
        job.until("rest", || pe.may_sleep() && !is_readable(&descriptor));
        assert!(is_watched(&pe.domain, 1) && !pe.domain.watch.is_off());
        job.start_put(each, 0, 7);
        let until = Instant::now() + Duration::from_secs(20);
        while !is_readable(&descriptor) {
            assert!(Instant::now() < until, "waited in vain for the descriptor to tell of a put");
        }
    }
}

#[test]
fn with_a_second_connection_both_are_watched() {
    let job = Job::open(3);
    stop_watching(&job);
    let domain = &job.endpoints[0].domain;
    job.put(2, 0, 5);
    job.put(1, 0, 6);
    assert!(!domain.watch.is_off() && is_watched(domain, 1) && is_watched(domain, 2));
    for value in 0..4 * u64::from(ARRIVALS) {
        job.put(1, 0, value);
    }
    assert!(is_watched(domain, 1), "it is not the only one any more");
}

#[test]
fn a_connection_that_is_not_watched_is_served_although_another_was_active_last() {
    let job = Job::open(3);
    stop_watching(&job);
    // As after a connection to PE 2 that was opened and closed between two rounds.
    job.endpoints[0].domain.last_active.store(2, Ordering::Relaxed);
    job.put(1, 0, 5);
    assert!(is_watched(&job.endpoints[0].domain, 1));
}

#[test]
fn a_connection_that_is_not_watched_is_watched_when_it_has_no_room() {
    let job = Job::open(2);
    stop_watching(&job);
    let (pe, source) = (&job.endpoints[0], vec![1_u8; REGION_BYTES]);
    let target = Remote { key: KEY, offset_bytes: 0 };
    let put = || {
        let (start, bytes, completion) = (source.as_ptr(), source.len(), Completion::Counted);
        // SAFETY: the source is kept until all puts are complete, and the target is the region.
        unsafe { pe.put(Put { pe: 1, target, source: start, bytes, completion }) }
    };
    let before = pe.completions().puts;
    // The other side receives nothing meanwhile, so the system's buffers are full at some time.
    let puts = (0..10_000).take_while(|_| {
        let has_room = !pe.domain.peer(1).send_queue().watches_room;
        has_room && put() == Status::Pending
    });
    let puts = puts.count() as u64;
    assert!(pe.domain.peer(1).send_queue().watches_room, "{puts} puts have room");
    assert!(!pe.domain.watch.is_off(), "the poller tells of room");
    job.until("the puts", || pe.completions().puts == before + puts);
}

#[test]
fn a_connection_that_is_not_watched_is_opened_again_after_a_reset() {
    let job = Job::open(2);
    stop_watching(&job);
    let domain = &job.endpoints[0].domain;
    let first = domain.peer(1).socket().unwrap();
    resume::reset_socket(first);
    job.put(0, 1, 1);
    job.put(1, 0, 2);
    assert!(domain.peer(1).socket() != Some(first) && !domain.watch.is_off());
    assert!(is_watched(domain, 1));
    let descriptor = job.endpoints[0].wait_descriptor().unwrap();
    job.until("rest", || job.endpoints[0].may_sleep() && !is_readable(&descriptor));
    assert_eq!(domain.links.load(Ordering::Relaxed), 1);
}
