//! Progress: a PE processes the events of its endpoints, serves the other PEs and advances its own
//! operations.

use super::engine::Engine;
use crate::Pe;
use crate::endpoint::Endpoint;
use crate::progress::Trouble;
use crate::progress::purpose::Purpose;
use std::sync::Arc;

impl Engine {
    /// Makes progress: processes messages that have arrived, serves requests of other PEs, and starts
    /// deferred operations. Every call that waits does so by itself. Puts, gets and atomics between PEs that
    /// map each other need no progress; active messages, long two-sided messages and non-blocking collective
    /// operations do.
    #[inline]
    #[track_caller]
    pub fn progress(&self) {
        if let Some(net) = &self.net {
            self.progress_net(net);
        }
        if self.is_busy() {
            self.drive_all();
        }
    }

    /// Notes the result of a test of the program, and returns it. Where PEs share cores, some tests that fail
    /// yield the core: the PE for which the program waits may need it.
    #[inline]
    pub fn note_test(&self, succeeds: bool) -> bool {
        if !succeeds && self.vain_tests.yields_after(&self.policy) {
            std::thread::yield_now();
        }
        succeeds
    }

    /// Whether operations need this PE's progress: collective operations, active or two-sided messages.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.has_active_operations() || self.has_open_handlers() || self.uses_messages()
    }

    /// Makes progress on these operations.
    #[cold]
    #[track_caller]
    pub fn drive_all(&self) {
        if let Some(upper) = self.upper.get() {
            upper.advance();
        }
    }

    #[cold]
    #[track_caller]
    fn progress_net(&self, net: &Arc<Endpoint>) {
        if net.is_shut() {
            // No operation makes progress any more; a destructor that runs because of that must not fail
            // again.
            match std::thread::panicking() {
                true => return,
                false => {
                    // The thread that has closed the endpoints may not have recorded the reason yet.
                    let reason = self.memory.header().failure.read().map(|(_, reason)| reason);
                    self.give_up(reason.as_deref().unwrap_or("progress after this PE has given up"))
                }
            }
        }
        net.look();
        self.serve_others(net);
        self.service.hand_over(net);
        if let Some(upper) = self.upper.get() {
            upper.wake();
        }
    }

    /// Progress without the user's code.
    #[track_caller]
    pub fn serve_others(&self, net: &Arc<Endpoint>) {
        self.handle(self.take_events(|handle| net.progress(handle), &self.receiver()));
        if self.contexts.are_any() {
            for context in self.contexts.all().iter() {
                self.handle(self.take_events(|handle| context.drain(handle), &self.receiver()));
            }
        }
        if !self.outbox.is_empty() {
            self.flush_outbox(net);
        }
    }

    /// Serves other PEs if that is still possible; errors are not reported.
    pub fn serve_if_possible(&self) {
        let Some(net) = self.net.as_ref().filter(|net| !net.is_shut()) else { return };
        if self.take_events(|handle| net.progress(handle), &self.receiver()).is_ok()
            && !self.outbox.is_empty()
        {
            self.flush_outbox(net);
        }
    }

    #[track_caller]
    fn handle(&self, outcome: Result<(), Trouble>) {
        match outcome {
            Ok(()) => {}
            Err(Trouble::Lost(reason)) => self.fail_after_loss(&reason),
            Err(Trouble::Other(reason)) => self.fail(&reason),
        }
    }

    /// Receives messages of all layers.
    pub fn receiver(&self) -> impl Fn(Pe, u64, &[u8]) -> Option<()> {
        |from, header, payload| {
            let purpose = (header >> 56) as u8;
            match purpose {
                p if p == Purpose::MessageBarrier as u8 => {
                    self.note_message_barrier(from, (header >> 32) as u16)
                }
                p if p == Purpose::Missed as u8 => {
                    self.note_missed(from);
                    Some(())
                }
                p if p == Purpose::LastError as u8 => {
                    self.note_last_error(from, payload);
                    Some(())
                }
                p if p >= Purpose::Active as u8 => self.upper.get()?.receive(purpose, from, header, payload),
                _ => self.receive(from, header, payload),
            }
        }
    }
}
