//! Arrival: the effects of messages, and the processors that some of them need.
//!
//! Invariant: a message that needs the processor of its receiver waits until that rank is in a call:
//! blocked, at the beginning of an action of communication, or at its end. Then it takes the processor's
//! time.

use super::state::{Blocked, Event, Kind, Message, NO_SIGNAL, State};
use crate::time::{Time, moving};

impl State<'_> {
    /// All of a message has arrived.
    pub(super) fn deliver(&mut self, id: u32) {
        let message = self.messages.get(id);
        let sender = &mut self.ranks[message.from as usize];
        sender.under_way -= 1;
        if sender.blocked == Blocked::Credit {
            self.wake(message.from, self.now, 0);
        }
        if !self.needs_processor(id) {
            return self.take_effect(id);
        }
        let rank = &mut self.ranks[message.to as usize];
        rank.deferred.push_back(id);
        if rank.blocked != Blocked::No {
            self.serve_deferred(message.to);
        }
    }

    fn needs_processor(&self, id: u32) -> bool {
        let (message, protocol) = (self.messages.get(id), &self.machine.protocol);
        let is_far = self.node(message.from) != self.node(message.to);
        match message.kind {
            Kind::Put | Kind::PutFirst | Kind::Request => is_far && !protocol.has_hardware_puts,
            // An announcement needs the processor only once its receive is posted: see `take_effect`.
            Kind::ClearToSend => !protocol.progresses_alone,
            Kind::Announcement => !protocol.progresses_alone && self.is_posted(id),
            Kind::Reply => is_far && protocol.processor_moves_data,
            Kind::Eager | Kind::Data => false,
            // These are never delivered: they take effect at once.
            Kind::Acknowledgement | Kind::Signal => false,
        }
    }

    /// A rank in a call executes the messages that have waited for it.
    pub(super) fn serve_deferred(&mut self, number: u32) {
        while let Some(id) = self.ranks[number as usize].deferred.pop_front() {
            let message = self.messages.get(id);
            let overhead = self.overhead_of(message.kind);
            let is_moved = matches!(message.kind, Kind::Put | Kind::PutFirst | Kind::Reply);
            let moves = is_moved && self.machine.protocol.processor_moves_data;
            let rank = &mut self.ranks[number as usize];
            rank.clock = match moves {
                // The processor moves the data while they come, if it is free.
                true => {
                    let start = rank.clock.max(message.head.min(self.now));
                    self.now.max(start + overhead + moving(message.bytes, self.rates.card))
                }
                false => rank.clock.max(self.now) + overhead,
            };
            let at = rank.clock;
            self.queue.push(at, Event::Effect(id));
        }
    }

    fn overhead_of(&self, kind: Kind) -> Time {
        match kind {
            Kind::Put | Kind::PutFirst | Kind::Request | Kind::Reply => self.machine.network.receive_overhead,
            Kind::Signal => self.machine.network.send_overhead,
            Kind::Announcement | Kind::ClearToSend => {
                self.machine.protocol.message_receive_overhead + self.machine.protocol.handshake_overhead
            }
            _ => self.machine.protocol.message_receive_overhead,
        }
    }

    /// Executes a message at its receiver.
    pub(super) fn take_effect(&mut self, id: u32) {
        let message = self.messages.take(id);
        let (from, to) = (message.from, message.to);
        match message.kind {
            Kind::Put if message.key == NO_SIGNAL => {
                let back = self.latency_between(to, from);
                self.ranks[from as usize].open -= 1;
                self.settle(from, self.now + back);
            }
            Kind::Put => self.signal(to, message.key),
            Kind::PutFirst => {
                let back = self.latency_between(to, from);
                let id = self.messages.add(Message { kind: Kind::Acknowledgement, ..message });
                self.queue.push(self.now + back, Event::Effect(id));
            }
            Kind::Acknowledgement => {
                let id = self.messages.add(Message { kind: Kind::Signal, ..message });
                let rank = &mut self.ranks[from as usize];
                rank.deferred.push_back(id);
                if rank.blocked != Blocked::No {
                    self.serve_deferred(from);
                }
            }
            Kind::Signal => {
                self.ranks[from as usize].open -= 1;
                self.launch(Kind::Put, (from, to), 0, 0, message.key);
            }
            Kind::Request => self.launch(Kind::Reply, (to, from), message.size, message.size, NO_SIGNAL),
            Kind::Reply => {
                self.ranks[to as usize].open -= 1;
                self.settle(to, self.now);
            }
            Kind::Eager => self.eager_arrives(&message),
            Kind::Announcement => self.announcement_arrives(&message),
            Kind::ClearToSend => {
                self.ranks[to as usize].two_sided.announced -= 1;
                self.launch(Kind::Data, (to, from), message.size, message.size, message.key);
            }
            Kind::Data => self.received(to),
        }
    }

    fn latency_between(&self, from: u32, to: u32) -> Time {
        let (a, b) = (self.node(from), self.node(to));
        if a == b { self.machine.node.latency } else { self.machine.network.latency + self.links.hops(a, b) }
    }
}
