//! Executing what has arrived.

use super::Message;
use super::hub::{Inbox, Lanes, Watch, try_lock};
use super::table::Table;
use super::wire::Head;
use crate::Pe;
use crate::restricted::{self, Callback};
use crate::world::World;
use pelago_fabric::CORRUPT_REMEDY;
use pelago_fabric::shm::ring::Ring;
use pelago_fabric::sync::{Ordering, fence};
use std::cell::Cell;
use std::fmt::Display;
use std::sync::Arc;

/// Requests that are executed at once, so that a flood cannot hold a thread for ever.
const BATCH: usize = 64;

impl World {
    /// Executes what has arrived, unless another thread does, or this one must not now.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn execute_messages(&self) {
        if restricted::may_run_handlers() {
            self.execute_some();
            self.wake_futures();
        }
    }

    #[inline(never)]
    #[track_caller]
    fn execute_some(&self) {
        // Who polls in a loop has no other way to learn of it.
        if !self.is_launched() && self.has_failed().is_some() {
            self.give_up("active messages after the job has failed");
        }
        match self.am.lanes(self) {
            Some(lanes) => {
                self.execute_answers(lanes);
                let Some(mut inbox) = try_lock(&self.am.requests) else { return };
                let run = self.am.executors[0].run();
                let own = lanes.own()[0];
                let mut executed = 0;
                while executed < BATCH && self.execute_next(own, &mut inbox) {
                    executed += 1;
                    self.execute_answers(lanes);
                }
                drop(run);
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
    #[track_caller]
    pub(super) fn execute_answers(&self, lanes: &Lanes) {
        let own = lanes.own()[1];
        if !own.0.is_empty()
            && let Some(mut inbox) = try_lock(&self.am.answers)
        {
            let _run = self.am.executors[1].run();
            while self.execute_next(own, &mut inbox) {}
        }
    }

    /// Executes the oldest message of a ring, if there is one.
    #[track_caller]
    fn execute_next(&self, (ring, watch): (&Ring<'static>, &Watch), inbox: &mut Inbox) -> bool {
        let Inbox { payload, tables } = inbox;
        let arrived = ring.receive(payload, |envelope, _| envelope);
        watch.set(ring);
        let envelope = match arrived {
            Ok(Some(envelope)) => envelope,
            Ok(None) => return false,
            Err(corrupt) => self.fail_corrupt(&corrupt),
        };
        self.execute(tables, envelope.from, envelope.header, payload.words(), payload.bytes().len());
        true
    }

    /// Runs the handler that a message names.
    #[track_caller]
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

    /// Ends the job: a ring of this PE holds what no PE sends.
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
    use pelago_fabric::sync::AtomicU64;

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

    /// How a job of two ends in which PE 0 writes these words, as sender with length and as header, to the
    /// next cell of PE 1's ring.
    fn end_of_cell(words: [u64; 2]) -> String {
        let outcome = Spmd::new(2).run(|world| {
            let _ = world.team().serve(Handlers::new(), |am| {
                if world.my_pe() == 0 {
                    let ring = am.lanes.unwrap().to(1).requests();
                    let claim = ring.claim(8).unwrap();
                    let first: *mut u64 = ring.place(&claim, 0).cast();
                    // SAFETY: three words lie before the payload of a claimed cell, and nobody reads them
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

    #[test]
    fn a_sender_that_the_job_does_not_have_is_refused() {
        let outcome = Spmd::new(2).run(|world| {
            let mut handlers = Handlers::new();
            let own = handlers.next();
            handlers.add("echo", move |message| {
                let _ = message.answer_short(own, &[]);
            });
            let _ = world.team().serve(handlers, |am| {
                if world.my_pe() == 0 {
                    let head = Head::request(0, 0).pack();
                    assert!(am.lanes.unwrap().to(1).request(77, head, &[], &[]));
                }
            });
        });
        let said = outcome.unwrap_err().to_string();
        assert!(said.contains("PE 1: an active message of PE 77"), "{said}");
        assert!(said.contains("names a sender that the job does not have"), "{said}");
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
