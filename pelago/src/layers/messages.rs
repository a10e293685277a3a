//! Active messages that make no sense.

use crate::Spmd;
use crate::am::{Handler, Handlers};
use crate::sim::SimParams;
use pelago_core::Pe;
use pelago_core::messages::wire::Head;
use pelago_fabric::sync::AtomicU64;
use pelago_fabric::sync::Ordering;

/// How a job of two ends in which PE 0 sends this to PE 1, which has one endpoint with one handler.
fn end_of(header: u64, words: &[u64], data: &[u8]) -> String {
    let outcome = Spmd::new(2).run(|world| {
        let mut handlers = Handlers::new();
        handlers.add("only", |_| panic!("nobody meant this"));
        let _ = world.team().serve(handlers, |am| {
            if world.my_pe() == 0 {
                assert!(am.inner.peer(1).try_request(world.core(), header, words, data));
            }
        });
    });
    outcome.unwrap_err().to_string()
}

/// How a job of two ends in which PE 0 writes these words, as sender with length and as header, to the
/// next cell of PE 1's ring.
fn end_of_cell(words: [u64; 2]) -> String {
    let outcome = Spmd::new(2).run(|world| {
        let _ = world.team().serve(Handlers::new(), |am| {
            if world.my_pe() == 0 {
                let [ring, _] = am.inner.peer(1).peer_ring().unwrap().rings();
                let claim = ring.claim(8).unwrap();
                let first: *mut u64 = ring.place(&claim, 0).cast();
                // SAFETY: three words lie before the payload of a claimed cell, and no thread reads them
                // before the stamp, the first of them, is there.
                unsafe {
                    first.sub(2).write(words[0]);
                    first.sub(1).write(words[1]);
                    AtomicU64::from_ptr(first.sub(3)).store(claim.start() + 1, Ordering::Release);
                }
            }
        });
    });
    outcome.unwrap_err().to_string()
}

#[test]
fn a_corrupt_ring_ends_the_job_in_words() {
    let said = end_of_cell([(1 << 20) - 1, 7]);
    assert!(said.contains("of PE 1 is corrupt: the cell at position 0 claims a message of"), "{said}");
    assert!(said.contains("1048575 bytes from PE 0"), "{said}");
    let said = end_of_cell([u64::from(u32::MAX), u64::MAX]);
    assert!(said.contains("of PE 1 is corrupt") && said.contains("skip 18446744073709551615"), "{said}");
}

/// PEs 0 and 1 share a node, PE 2 is on another and cannot write to their rings.
#[test]
fn a_ring_names_only_senders_that_share_it() {
    for from in [2, 3, 77, u32::MAX as Pe] {
        let params = SimParams { maps_nodes: true, nodes: vec![0, 0, 1], ..SimParams::default() };
        let outcome = Spmd::new(3).sim(params).run(|world| {
            let mut handlers = Handlers::new();
            handlers.add("only", |_| panic!("nobody meant this"));
            let _ = world.team().serve(handlers, |am| {
                if world.my_pe() == 0 {
                    let head = Head::request(0, 0).pack();
                    assert!(am.inner.peer(1).peer_ring().unwrap().try_request(from, head, &[], &[]));
                }
            });
        });
        let said = outcome.unwrap_err().to_string();
        assert!(said.contains(&format!("PE 1: an active message of PE {from} names a sender")), "{said}");
        assert!(said.contains("does not share this PE's memory"), "{said}");
    }
}

/// The next poll executes messages that another thread of this PE, such as the service thread, has taken
/// from the network.
#[test]
fn a_message_that_was_noted_is_executed_by_the_next_poll() {
    let params = SimParams { maps_nodes: true, nodes: vec![0, 0, 1], ..SimParams::default() };
    let outcome = Spmd::new(3).sim(params).run(|world| {
        let count = AtomicU64::new(0);
        let mut handlers = Handlers::new();
        handlers.add("take", |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let seen = world.team().serve(handlers, |am| {
            if world.my_pe() != 0 {
                return 1;
            }
            // Counted as sent here, since PE 2 has not.
            am.inner.table.sent.fetch_add(1, Ordering::Relaxed);
            am.poll();
            assert_eq!(world.core().note_active(2, Head::request(0, 0).pack(), &[]), Some(()));
            let before = count.load(Ordering::Relaxed);
            am.poll();
            count.load(Ordering::Relaxed) - before
        });
        seen.unwrap()
    });
    assert_eq!(outcome.unwrap(), [1; 3]);
}

#[test]
fn messages_that_make_no_sense_are_refused_in_words() {
    let request = Head::request(0, 0);
    let long = Head { is_long: true, ..request };
    let cases: [(u64, &[u64], &[u8], &str); 7] = [
        (Head { handler: Handler(7), ..request }.pack(), &[], &[], "names handler 7, but its endpoint has 1"),
        (Head { endpoint: 9, ..request }.pack(), &[], &[], "is for an endpoint that is not open"),
        (Head { endpoint: u16::MAX, ..request }.pack(), &[], &[], "is for an endpoint that is not open"),
        (Head { args: 3, ..request }.pack(), &[1], &[], "makes no sense"),
        (request.pack() | 31 << 48, &[1; 16], &[], "makes no sense"),
        (long.pack(), &[0, 1], &[], "makes no sense"),
        (long.pack(), &[0, 1, u64::MAX - 3], &[5; 8], "brings data along"),
    ];
    for (header, words, data, why) in cases {
        let said = end_of(header, words, data);
        assert!(said.contains("PE 1: an active message of PE 0"), "{said}");
        assert!(said.contains(why), "{said} does not say {why:?}");
    }
}
