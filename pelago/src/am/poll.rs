//! Executing what has arrived.

use super::Message;
use super::hub::{Inbox, Lanes, Watch, try_lock};
use super::table::Table;
use super::wire::Head;
use crate::Pe;
use crate::restricted::{self, Callback};
use crate::world::World;
use pelago_fabric::shm::ring::Ring;
use pelago_fabric::sync::{Ordering, fence};
use std::cell::Cell;
use std::sync::Arc;

/// Requests that are executed at once, so that a flood cannot hold a thread for ever.
const BATCH: usize = 64;

impl World {
    /// Executes what has arrived, unless another thread does, or this one must not now.
    #[cold]
    #[inline(never)]
    pub(crate) fn execute_messages(&self) {
        if restricted::may_run_handlers() {
            self.execute_some();
            self.wake_futures();
        }
    }

    #[inline(never)]
    fn execute_some(&self) {
        // Who polls in a loop has no other way to learn of it.
        if !self.is_launched() && self.has_failed().is_some() {
            self.give_up("active messages after the job has failed");
        }
        match self.am.lanes(self) {
            Some(lanes) => {
                self.execute_answers(lanes);
                let Some(mut inbox) = try_lock(&self.am.requests) else { return };
                let own = lanes.own()[0];
                let mut executed = 0;
                while executed < BATCH && self.execute_next(own, &mut inbox) {
                    executed += 1;
                    self.execute_answers(lanes);
                }
                drop(inbox);
                if executed > 0 {
                    self.tell_of_room();
                }
            }
            None => self.execute_arrived(BATCH),
        }
    }

    /// Wakes those who sleep until there is room in this PE's ring of requests.
    fn tell_of_room(&self) {
        // SYNC POINT doorbell: orders what was received before the look at the sleepers.
        fence(Ordering::SeqCst);
        self.ring_sleepers_for_data();
    }

    /// Executes the answers that have arrived, unless another thread does.
    #[inline]
    pub(super) fn execute_answers(&self, lanes: &Lanes) {
        let own = lanes.own()[1];
        if !own.0.is_empty()
            && let Some(mut inbox) = try_lock(&self.am.answers)
        {
            while self.execute_next(own, &mut inbox) {}
        }
    }

    /// Executes the oldest message of a ring, if there is one.
    fn execute_next(&self, (ring, watch): (&Ring<'static>, &Watch), inbox: &mut Inbox) -> bool {
        let Inbox { payload, tables } = inbox;
        let arrived = ring.receive(payload, |envelope, _| envelope);
        watch.set(ring);
        let Some(envelope) = arrived else { return false };
        self.execute(tables, envelope.from, envelope.header, payload.words(), payload.bytes().len());
        true
    }

    /// Runs the handler that a message names.
    pub(super) fn execute(
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
        if head.is_long && !message.data().is_empty() && self.net.is_none() {
            self.refuse(from, "brings data along, which messages between mapped PEs do not");
        }
        restricted::run(self, Callback::Handler { name: entry.name, from }, || (entry.function)(&message));
        // SYNC POINT am-end: releases what the handler did to whoever counts it as executed.
        table.executed.fetch_add(1, Ordering::Release);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&self, from: Pe, why: &str) -> ! {
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

    /// How a job of two ends in which PE 0 sends this to PE 1, which has one endpoint with one handler.
    fn end_of(header: u64, words: &[u64], data: &[u8]) -> String {
        let outcome = Spmd::new(2).run(|world| {
            let mut handlers = Handlers::new();
            handlers.add("only", |_| panic!("nobody meant this"));
            let _ = world.team().serve(handlers, |am| {
                if world.my_pe() == 0 {
                    assert!(am.lanes.unwrap().to(1).request(0, header, words, data));
                }
            });
        });
        outcome.unwrap_err().to_string()
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
