//! Executes the messages that have arrived.

use super::Message;
use super::far::Arrived;
use super::message_state::{ANSWERS, Inbox, REQUESTS, try_lock};
use super::messaging::Messaging;
use super::peers::Peers;
use super::table::Table;
use super::wire::Head;
use crate::Pe;
use crate::job::callback::{self, Callback};
use pelago_fabric::CORRUPT_REMEDY;
use pelago_fabric::sync::{Ordering, fence};
use std::cell::Cell;
use std::fmt::Display;
use std::sync::Arc;

/// Requests that are executed at once, so that a flood cannot hold a thread for ever.
const BATCH: usize = 64;

impl Messaging {
    /// Executes the messages that have arrived, unless another thread does, or this one must not now.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn execute_messages(&self) {
        if callback::may_run_handlers() {
            self.execute_some();
            if let Some(upper) = self.upper.get() {
                upper.wake();
            }
        }
    }

    #[inline(never)]
    #[track_caller]
    fn execute_some(&self) {
        // A program that polls in a loop has no other way to learn of it.
        if !self.is_launched() && self.has_failed().is_some() {
            self.give_up("active messages after the job has failed");
        }
        let peers = self.am.peers(self);
        self.execute_answers(peers);
        let Some(mut inbox) = try_lock(&self.am.inboxes[REQUESTS]) else { return };
        let run = self.executors.0[REQUESTS].run();
        let (mut from_ring, mut from_net) = (0, 0);
        while from_ring + from_net < BATCH {
            // By turns, so that neither holds up the other.
            let [is_from_ring, is_from_net] = self.execute_pair(peers, REQUESTS, &mut inbox);
            if !is_from_ring && !is_from_net {
                break;
            }
            from_ring += usize::from(is_from_ring);
            from_net += usize::from(is_from_net);
            self.execute_answers(peers);
        }
        drop(run);
        drop(inbox);
        if from_ring > 0 {
            self.tell_of_room();
        }
        if from_net > 0 {
            // Answers must not wait until this PE comes here again.
            self.flush_outbox(self.net_endpoint());
        }
    }

    /// Wakes the senders that sleep until there is room in this PE's ring of requests.
    fn tell_of_room(&self) {
        // SYNC POINT doorbell: orders the received messages before the look at the sleepers.
        fence(Ordering::SeqCst);
        self.ring_sleepers_for_data();
    }

    /// Executes the replies that have arrived, unless another thread does.
    #[inline]
    #[track_caller]
    fn execute_answers(&self, peers: &Peers) {
        let is_empty =
            self.am.arrivals.count(ANSWERS) == 0 && peers.ring(ANSWERS).is_none_or(|ring| ring.is_empty());
        if !is_empty && let Some(mut inbox) = try_lock(&self.am.inboxes[ANSWERS]) {
            let _run = self.executors.0[ANSWERS].run();
            while self.execute_pair(peers, ANSWERS, &mut inbox).contains(&true) {}
        }
    }

    /// Makes progress for a handler that waits for room for its reply: executes replies, whose handlers send
    /// nothing, and progresses the network, without running any other code of the user.
    #[track_caller]
    pub(crate) fn serve_in_handler(&self) {
        self.execute_answers(self.am.peers(self));
        if let Some(net) = self.net.as_ref().filter(|net| !net.is_shut()) {
            net.look();
            self.serve_others(net);
        }
    }

    /// Executes the oldest message of a kind in this PE's ring, and the oldest that has come over the
    /// network: whether there was one.
    #[inline]
    #[track_caller]
    fn execute_pair(&self, peers: &Peers, kind: usize, inbox: &mut Inbox) -> [bool; 2] {
        [self.execute_next(peers, kind, inbox), self.execute_arrived(peers, kind, inbox)]
    }

    #[track_caller]
    fn execute_next(&self, peers: &Peers, kind: usize, inbox: &mut Inbox) -> bool {
        let Some(ring) = peers.ring(kind) else { return false };
        let Inbox { payload, tables } = inbox;
        let arrived = ring.receive(payload, |envelope, _| envelope);
        peers.polls.watch(kind, ring);
        let envelope = match arrived {
            Ok(Some(envelope)) => envelope,
            Ok(None) => return false,
            Err(corrupt) => self.fail_corrupt(&corrupt),
        };
        if !peers.is_sender_of_ring(envelope.from) {
            self.refuse(envelope.from, "names a sender that does not share this PE's memory");
        }
        self.execute(tables, envelope.from, envelope.header, payload.words(), payload.bytes().len());
        true
    }

    #[track_caller]
    fn execute_arrived(&self, peers: &Peers, kind: usize, inbox: &Inbox) -> bool {
        let Some(Arrived { from, header, words, bytes }) = self.am.arrivals.pop(kind) else { return false };
        self.execute(&inbox.tables, from, header, &words, bytes);
        if kind == REQUESTS && peers.of(from).far().is_some_and(|far| far.count_executed()) {
            // A peer of which nothing is known was refused when the message came.
            let _ = self.tell_executed(from);
        }
        true
    }

    /// Runs the handler that a message names.
    #[track_caller]
    pub(crate) fn execute(
        &self,
        tables: &[Option<Arc<Table>>],
        from: Pe,
        header: u64,
        words: &[u64],
        bytes: usize,
    ) {
        let head = Head::unpack(header).filter(|head| 8 * head.words() <= bytes);
        let Some(head) = head else { self.refuse(from, "makes no sense") };
        let table = tables.get(usize::from(head.endpoint)).and_then(Option::as_deref);
        let Some(table) = table else { self.refuse(from, "is for an endpoint that is not open") };
        let Some(entry) = table.entry(head.handler) else {
            let (number, count) = (head.handler.0, table.entries.len());
            self.refuse(from, &format!("names handler {number}, but its endpoint has {count}"));
        };
        let message = Message { world: self, table, head, from, words, bytes, is_answered: Cell::new(false) };
        if head.is_long && !message.data().is_empty() && self.memory.is_mapped(from) {
            self.refuse(from, "brings data along, which messages between mapped PEs do not");
        }
        callback::run(self, Callback::Handler { name: entry.name, from }, || (entry.function)(&message));
        // SYNC POINT am-end: releases the handler's stores to any PE that counts it as executed.
        table.executed.fetch_add(1, Ordering::Release);
    }

    /// Ends the job: a ring of this PE holds data that no PE sends.
    #[cold]
    #[inline(never)]
    fn fail_corrupt(&self, what: &dyn Display) -> ! {
        let me = self.my_pe();
        self.fail(&format!(
            "PE {me}: a ring for active messages of PE {me} is corrupt: {what}. {CORRUPT_REMEDY}"
        ))
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn refuse(&self, from: Pe, why: &str) -> ! {
        let me = self.my_pe();
        self.fail(&format!(
            "PE {me}: an active message of PE {from} {why}. Do all members run the same program, and is \
             nothing sent outside `serve`?"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Handler, Handlers};
    use super::*;
    use crate::Spmd;
    use crate::sim::SimParams;
    use pelago_fabric::sync::AtomicU64;

    /// How a job of two ends in which PE 0 sends this to PE 1, which has one endpoint with one handler.
    fn end_of(header: u64, words: &[u64], data: &[u8]) -> String {
        let outcome = Spmd::new(2).run(|world| {
            let mut handlers = Handlers::new();
            handlers.add("only", |_| panic!("nobody meant this"));
            let _ = world.team().serve(handlers, |am| {
                if world.my_pe() == 0 {
                    assert!(am.peer(1).try_request(world, header, words, data));
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
                    let [ring, _] = am.peer(1).peer_ring().unwrap().rings();
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
                        assert!(am.peer(1).peer_ring().unwrap().try_request(from, head, &[], &[]));
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
                am.table.sent.fetch_add(1, Ordering::Relaxed);
                am.poll();
                assert_eq!(world.note_active(2, Head::request(0, 0).pack(), &[]), Some(()));
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
            (
                Head { handler: Handler(7), ..request }.pack(),
                &[],
                &[],
                "names handler 7, but its endpoint has 1",
            ),
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
}
