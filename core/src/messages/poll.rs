//! Executes the messages that have arrived.

use super::Message;
use super::far::Arrived;
use super::message_state::{ANSWERS, Inbox, REQUESTS, try_lock};
use super::messaging::Messaging;
use super::peers::Peers;
use super::table::Table;
use super::wire::Head;
use crate::Pe;
use crate::base::trace::Event;
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
    pub fn execute_messages(&self) {
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
    pub fn serve_in_handler(&self) {
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
        if !peers.is_sender_of_ring(self, envelope.from) {
            self.refuse(envelope.from, "names a sender that does not share this PE's memory");
        }
        self.execute(tables, envelope.from, envelope.header, payload.words(), payload.bytes().len());
        true
    }

    #[track_caller]
    fn execute_arrived(&self, peers: &Peers, kind: usize, inbox: &Inbox) -> bool {
        let Some(Arrived { from, header, words, bytes }) = self.am.arrivals.pop(kind) else { return false };
        self.execute(&inbox.tables, from, header, &words, bytes);
        if kind == REQUESTS && peers.of(self, from).far().is_some_and(|far| far.count_executed()) {
            // A peer of which nothing is known was refused when the message came.
            let _ = self.tell_executed(from);
        }
        true
    }

    /// Runs the handler that a message names.
    #[track_caller]
    pub fn execute(&self, tables: &[Option<Arc<Table>>], from: Pe, header: u64, words: &[u64], bytes: usize) {
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
        let _span = self.tally.span(|| Event::handler(entry.name, from, bytes));
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
    pub fn refuse(&self, from: Pe, why: &str) -> ! {
        // A PE that has failed sends one without a meaning, to those that poll.
        if !self.is_launched() && self.has_failed().is_some() {
            self.give_up("active messages after the job has failed");
        }
        let me = self.my_pe();
        self.fail(&format!(
            "PE {me}: an active message of PE {from} {why}. Do all members run the same program, and is \
             nothing sent outside `serve`?"
        ))
    }
}
