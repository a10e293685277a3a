//! Peers are made at the first contact, and addresses looked up then.

use super::*;
use crate::sync::{AtomicUsize, Ordering};
use std::sync::Arc;

/// `n` processes that look up addresses when they connect, and how often they have. The address of the last
/// process is not found.
fn job_that_looks_up(n: usize) -> (Job, Arc<AtomicUsize>) {
    let secret = Secret::draw().unwrap();
    let choice =
        TcpChoice { is_local: true, insists_on_goodbye: true, datagrams: true, ..TcpChoice::default() };
    let mut endpoints: Vec<Tcp> =
        (0..n).flat_map(|process| Tcp::open(process, 1, n, &choice, secret).unwrap()).collect();
    let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
    let looks = Arc::new(AtomicUsize::new(0));
    let lookup: crate::Lookup = {
        let (looks, cards) = (Arc::clone(&looks), cards.clone());
        Arc::new(move |pe| {
            looks.fetch_add(1, Ordering::Relaxed);
            let missing = || FabricError::Foreign { pe, what: "the launcher does not know it".to_owned() };
            cards[..n - 1].get(pe).cloned().ok_or_else(missing)
        })
    };
    // The first lookup holds.
    endpoints.iter_mut().for_each(|endpoint| endpoint.connect_later(&lookup).unwrap());
    (Job::of(endpoints, &cards, secret), looks)
}

#[test]
fn a_ring_makes_two_peers_a_process_and_looks_up_one_address() {
    const N: usize = 8;
    let (job, looks) = job_that_looks_up(N + 1);
    assert!(job.endpoints.iter().all(|endpoint| endpoint.contacts() == Some(0)));
    for round in 0..3 {
        (0..N).for_each(|pe| job.put(pe, (pe + 1) % N, 10 * round + pe as u64));
    }
    let contacts = |pe: usize| job.endpoints[pe].contacts().unwrap();
    assert_eq!((0..N).map(contacts).collect::<Vec<_>>(), [2; N], "the neighbours");
    assert_eq!(contacts(N), 0);
    assert_eq!(looks.load(Ordering::Relaxed), N);
}

#[test]
fn an_address_that_is_not_found_ends_the_job_and_says_why() {
    let (job, _) = job_that_looks_up(3);
    job.start_put(0, 2, 7);
    let fault = job.fault();
    assert!(fault.contains("PE 2") && fault.contains("the launcher does not know it"), "{fault}");
}

#[test]
fn puts_that_are_not_reported_are_flushed_to_their_targets_alone() {
    let (job, _) = job_that_looks_up(6);
    let value = GUARD;
    let (start, completion) = ((&raw const value).cast(), Completion::Unreported);
    let target = Remote { key: KEY, offset_bytes: 8 };
    for pe in [4, 1, 4] {
        let put = Put { pe, target, source: start, bytes: 8, completion };
        // SAFETY: the value is copied, and its place lies in the region.
        assert_eq!(unsafe { job.endpoints[0].put(put) }, Status::Pending);
    }
    let before = job.endpoints[0].completions().puts;
    assert_eq!(job.endpoints[0].flush(), 2);
    job.until("the flush", || job.endpoints[0].completions().puts == before + 2);
    assert_eq!((job.endpoints[0].flush(), job.endpoints[0].contacts()), (0, Some(2)));
}

/// A process that ends sends what waits for a connection.
#[test]
fn what_is_sent_right_before_the_end_arrives() {
    let mut job = Job::open(2);
    assert_eq!(job.endpoints[0].send(1, 5, b"last words"), Status::Done);
    let (first, last) = (job.endpoints.remove(0), job.endpoints.remove(0));
    let ends = std::thread::spawn(move || drop(first));
    let (mut has_come, until) = (false, Instant::now() + Duration::from_secs(20));
    while !has_come {
        assert!(Instant::now() < until, "waited in vain for the message");
        last.progress(&mut |event| has_come |= matches!(event, Event::Message { header: 5, .. })).unwrap();
    }
    ends.join().unwrap();
    // Nobody listens any more, and nothing is lost.
    while last.domain.links.load(Ordering::Relaxed) > 0 {
        assert!(Instant::now() < until, "waited in vain for the goodbye");
        last.progress(&mut |_| ()).unwrap();
    }
}
