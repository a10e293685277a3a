//! A PE has a state for those other PEs alone that it has had to do with.

use pelago::am::Handlers;
use pelago::prelude::*;
use pelago::sync::{AtomicUsize, Ordering::Relaxed};
use pelago::testing::{Contacts, contacts};

const PES: usize = 24;

/// Puts and messages of both kinds to the right neighbour, in a job whose processes reach each other by TCP.
/// Its barriers and agreements need partners at 1, 2, 4, 8 and 16 PEs in both directions, and by bits of the
/// number.
fn a_ring_makes_few_peers(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    let none = contacts(world);
    assert_eq!((none.two_sided, none.active), (0, 0), "nothing was sent");
    let inbox = world.alloc::<u64>(1).unwrap();
    inbox.put(right, 0, &[me as u64]).unwrap();
    world.barrier();
    assert_eq!(inbox.local().get(0), left as u64);
    let mut word = [0];
    world.team().send(right, 7, &[me]).unwrap();
    world.team().receive(left, 7, &mut word).unwrap();
    assert_eq!(word, [left]);
    let before = contacts(world).active;
    let executed = AtomicUsize::new(0);
    let mut handlers = Handlers::new();
    let count = handlers.add("count", |_| {
        executed.fetch_add(1, Relaxed);
    });
    world.team().serve(handlers, |am| am.short(right, count, &[1]).unwrap()).unwrap();
    assert_eq!((before, executed.load(Relaxed)), (0, 1));
    let Contacts { processes, two_sided, active } = contacts(world);
    assert!(processes.is_some_and(|count| (2..=16).contains(&count)), "{processes:?} of {PES} processes");
    assert_eq!((two_sided, active), (2, 2), "the neighbours");
}

#[test]
fn of_a_ring_over_tcp() {
    let settings = [("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")];
    let report = pelago::try_processes!(PES, settings, a_ring_makes_few_peers);
    pelago::testing::expect_success(&report);
}
