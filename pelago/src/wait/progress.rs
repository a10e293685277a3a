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
    /// deferred operations. Every call that waits does so by itself. Between PEs that map each other no
    /// operation is ever outstanding, and this call does nothing.
    #[inline]
    #[track_caller]
    pub(crate) fn progress(&self) {
        if let Some(net) = &self.net {
            self.progress_net(net);
        }
        if self.is_busy() {
            self.drive_all();
        }
    }

    /// Whether operations need this PE's progress: collective operations, or active messages.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.has_active_operations() || self.has_open_handlers()
    }

    /// Makes progress on these operations.
    #[cold]
    #[track_caller]
    pub(crate) fn drive_all(&self) {
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
        if let Some(upper) = self.upper.get() {
            upper.wake();
        }
    }

    /// Progress without the user's code.
    #[track_caller]
    pub(crate) fn serve_others(&self, net: &Arc<Endpoint>) {
        self.progress_endpoint(net);
        if self.contexts.are_any() {
            self.contexts.all().iter().for_each(|context| self.progress_endpoint(context));
        }
        if !self.outbox.is_empty() {
            self.flush_outbox(net);
        }
    }

    /// Serves other PEs if that is still possible; errors are not reported.
    pub(crate) fn serve_if_possible(&self) {
        let Some(net) = self.net.as_ref().filter(|net| !net.is_shut()) else { return };
        if self.take_events(net, &self.receiver()).is_ok() && !self.outbox.is_empty() {
            self.flush_outbox(net);
        }
    }

    #[track_caller]
    fn progress_endpoint(&self, endpoint: &Endpoint) {
        match self.take_events(endpoint, &self.receiver()) {
            Ok(()) => {}
            Err(Trouble::Lost(reason)) => self.fail_after_loss(&reason),
            Err(Trouble::Other(reason)) => self.fail(&reason),
        }
    }

    /// Receives messages of all layers.
    fn receiver(&self) -> impl Fn(Pe, u64, &[u8]) -> Option<()> {
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

#[cfg(test)]
mod tests {
    use crate::Spmd;
    use crate::sim::SimParams;

    #[test]
    fn messages_that_make_no_sense_are_refused() {
        let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
            let region_bytes = world.memory.region_bytes() as u64;
            let receive = |purpose: u8, code: u16, words: &[u64], tail: &[u8]| {
                let header = u64::from(purpose) << 56 | u64::from(code) << 32 | 77;
                let payload: Vec<u8> =
                    tail.iter().copied().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect();
                world.receiver()(1 - world.my_pe(), header, &payload)
            };
            let entry = |offset: u64, bytes: u64| offset | bytes << 48;
            let (data, outside) = ([0; 8], entry(region_bytes - 7, 8));
            let twice = [entry(4096, 8) | 1 << 63, 8 | 2 << 48];
            let never = [entry(4096, 8) | 1 << 63, 8];
            let far = [entry(4096, 8) | 1 << 63, region_bytes | 2 << 48];
            let longest = [entry(4096, 32767) | 1 << 63, 1 | 0xFFFF << 48];
            let refused = [
                receive(0, 0, &[], &[]),
                receive(8, 0, &[], &[]),
                receive(10, 4, &[], &[]),
                receive(13, 0, &[], &[]),
                receive(3, 1, &[], &data),
                receive(3, 1, &[entry(4096, 8)], &data[..7]),
                receive(3, 1, &[entry(4096, 4)], &data),
                receive(3, 2, &[entry(4096, 8)], &data),
                receive(3, 1, &[entry(4096, 0)], &[]),
                receive(3, 1, &[outside], &data),
                receive(3, 2, &twice, &data),
                receive(3, 1, &twice[..1], &data),
                receive(3, 2, &never, &[]),
                receive(3, 2, &far, &[0; 16]),
                receive(4, 1, &[outside], &[]),
                receive(4, 0, &[entry(4096, 8)], &[]),
                receive(4, 1, &[entry(4096, 8)], &data),
                receive(4, 2, &longest, &[]),
                receive(4, 1, &[], &data[..7]),
                receive(5, 0, &[], &[]),
                receive(2, 0, &[0], &[]),
            ];
            // Three arguments that are missing, and flags that no PE sends.
            assert!(world.note_active(0, 3 << 48, &[]).is_none());
            assert!(world.note_active(0, 31 << 48, &[]).is_none());
            let nothing_noted = world.outbox.is_empty();
            (refused.iter().position(Option::is_some), nothing_noted)
        });
        assert_eq!(outcome.unwrap(), [(None, true); 2]);
    }
}
