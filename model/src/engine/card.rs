//! Sending: through the memory of a node, or through a network card and over links.
//!
//! Invariant: a card sends its messages in the order in which they came, one at a time; with packets it takes
//! one of each in turn, with flows it only keeps the gap between them.

use super::state::{Event, Kind, Message, NO_SIGNAL, Packet, State};
use crate::machine::Contention;
use crate::time::{Time, moving};

impl State<'_> {
    /// A new message, which comes to the card at once.
    pub(super) fn launch(&mut self, kind: Kind, (from, to): (u32, u32), bytes: u64, size: u64, key: u64) {
        let (tail, to_send, to_arrive) = (0, bytes, bytes);
        let head = self.now;
        let message = Message { kind, from, to, bytes, size, key, head, tail, to_send, to_arrive };
        let id = self.messages.add(message);
        self.counts.messages += 1;
        self.counts.bytes += bytes;
        let sender = &mut self.ranks[from as usize];
        (sender.unsent, sender.under_way) = (sender.unsent + 1, sender.under_way + 1);
        self.enter(id);
    }

    pub(super) fn put(&mut self, from: u32, to: u32, bytes: u64, key: u64) {
        let is_far = self.node(from) != self.node(to);
        let signal_follows = is_far && bytes > 0 && key != NO_SIGNAL && self.machine.protocol.signals_follow;
        if key == NO_SIGNAL || signal_follows {
            self.ranks[from as usize].open += 1;
        }
        let kind = if signal_follows { Kind::PutFirst } else { Kind::Put };
        self.launch(kind, (from, to), bytes, bytes, key);
    }

    pub(super) fn get(&mut self, from: u32, of: u32, bytes: u64) {
        self.ranks[from as usize].open += 1;
        self.launch(Kind::Request, (from, of), 0, bytes, NO_SIGNAL);
    }

    /// A message comes to the memory of the node, or to the card.
    fn enter(&mut self, id: u32) {
        let message = self.messages.get(id);
        if self.node(message.from) == self.node(message.to) {
            return self.copy_within_node(id, &message);
        }
        let card = self.card(message.from);
        self.cards[card].queue.push_back(id);
        if !self.cards[card].is_awaited {
            self.serve_card(card);
        }
    }

    /// The sender's processor copies the data; all copies of a node share its memory.
    fn copy_within_node(&mut self, id: u32, message: &Message) {
        let node = self.node(message.from);
        let memory = self.memories[node].max(self.now) + moving(message.bytes, self.rates.memory);
        self.memories[node] = memory;
        let end = memory.max(self.now + moving(message.bytes, self.rates.node));
        self.queue.push(end + self.machine.node.latency, Event::Deliver(id));
        if matches!(message.kind, Kind::Put | Kind::Eager | Kind::Data) {
            let sender = &mut self.ranks[message.from as usize];
            sender.clock = sender.clock.max(end);
        }
        self.sent(message, end);
    }

    /// A card sends what it can at this time.
    pub(super) fn serve_card(&mut self, card: usize) {
        self.cards[card].is_awaited = false;
        while let Some(&id) = self.cards[card].queue.front() {
            let free = self.cards[card].send_free;
            if free > self.now {
                self.cards[card].is_awaited = true;
                return self.queue.push(free, Event::Card(card as u32));
            }
            self.cards[card].queue.pop_front();
            // A rank that gets room may bring further messages to this card.
            self.cards[card].is_awaited = true;
            match self.machine.contention {
                Contention::None | Contention::Queue => self.start(card, id),
                Contention::Fluid => self.start_flow(card, id),
                Contention::Packets => self.start_packet(card, id),
            }
            self.cards[card].is_awaited = false;
        }
    }

    /// The overhead of a message that the card spends.
    fn card_overhead(&self, message: &Message) -> Time {
        let protocol = &self.machine.protocol;
        match message.kind {
            _ if !protocol.card_has_overhead => 0,
            Kind::Put | Kind::PutFirst | Kind::Request | Kind::Reply => self.machine.network.send_overhead,
            _ => protocol.message_send_overhead,
        }
    }

    fn start(&mut self, card: usize, id: u32) {
        let message = self.messages.get(id);
        let start = self.now + self.card_overhead(&message);
        let left = start + self.machine.network.gap + moving(message.bytes, self.rates.card);
        self.cards[card].send_free = left;
        self.busy_until(&message, left);
        let head = start + self.machine.network.latency;
        let (from, to) = (self.node(message.from), self.node(message.to));
        let arrival = match self.machine.contention {
            Contention::Queue => {
                // A card sends packets of all its messages in turn, so the links may serve this one from the
                // time at which it came to the card; its last byte leaves the card as late as it does.
                let came = message.head + (start - self.now) + self.machine.network.latency;
                let passage = self.links.carry(from, to, message.bytes, came);
                let waited = head - came;
                self.messages.get_mut(id).tail = passage.tail;
                passage.head + waited
            }
            _ => head + self.links.hops(from, to),
        };
        self.queue.push(arrival, Event::Arrive(id));
        self.sent(&message, left);
    }

    fn start_flow(&mut self, card: usize, id: u32) {
        self.messages.get_mut(id).head = Time::MAX;
        let message = self.messages.get(id);
        let start = self.now + self.card_overhead(&message);
        self.cards[card].send_free = start + self.machine.network.gap;
        let mut route = Vec::new();
        self.links.route(self.node(message.from), self.node(message.to), &mut route);
        route.iter().for_each(|link| self.links.count(*link, message.bytes));
        let first_card = self.links.count_all();
        route.push(first_card + card as u32);
        route.push(first_card + (self.cards.len() + self.card(message.to)) as u32);
        self.flows.add(id, message.bytes, route, self.now);
        self.request_share();
    }

    fn request_share(&mut self) {
        if !std::mem::replace(&mut self.flows.is_awaited, true) {
            self.queue.push(self.now, Event::Share);
        }
    }

    /// Flows have begun or ended at this time. After all other events of this time they share the links.
    pub(super) fn share(&mut self) {
        if !self.queue.is_quiet_until(self.now) {
            return self.queue.push(self.now, Event::Share);
        }
        self.flows.is_awaited = false;
        if let Some(end) = self.flows.share(self.now) {
            self.queue.push(end, Event::Flows(self.flows.version));
        }
    }

    pub(super) fn end_flows(&mut self, version: u32) {
        if version != self.flows.version {
            return;
        }
        let network = self.machine.network;
        for id in self.flows.take_ended(self.now) {
            let message = self.messages.get(id);
            let hops = self.links.hops(self.node(message.from), self.node(message.to));
            let overhead = self.card_overhead(&message);
            self.busy_until(&message, self.now + overhead);
            let arrival = self.now + overhead + network.gap + network.latency + hops;
            self.queue.push(arrival, Event::Deliver(id));
            self.sent(&message, self.now + overhead);
        }
        self.request_share();
    }

    /// Sends one packet of a message, and puts the message at the end of the queue if there are more.
    fn start_packet(&mut self, card: usize, id: u32) {
        let message = self.messages.get(id);
        let is_first = message.to_send == message.bytes;
        if is_first {
            self.messages.get_mut(id).head = Time::MAX;
            let index = id as usize;
            if self.routes.len() <= index {
                self.routes.resize_with(index + 1, Vec::new);
            }
            let mut route = std::mem::take(&mut self.routes[index]);
            self.links.route(self.node(message.from), self.node(message.to), &mut route);
            self.routes[index] = route;
        }
        let bytes = message.to_send.min(self.machine.protocol.packet_bytes);
        let network = &self.machine.network;
        let (start, gap) = match is_first {
            true => (self.now + self.card_overhead(&message), network.gap),
            false => (self.now, 0),
        };
        let head = start + network.latency;
        let left = start + gap + moving(bytes, self.rates.card);
        self.cards[card].send_free = left;
        let packet = self.packets.add(Packet { message: id, bytes, hop: 0, tail: 0 });
        self.queue.push(head, Event::Packet(packet));
        self.messages.get_mut(id).to_send -= bytes;
        self.busy_until(&message, left);
        match message.to_send > bytes {
            true => self.cards[card].queue.push_back(id),
            false => self.sent(&message, left),
        }
    }

    /// A packet comes to the next link of its route, or to the receiver's card.
    pub(super) fn pass_packet(&mut self, number: u32) {
        let packet = self.packets.get(number);
        if let Some(&link) = self.routes[packet.message as usize].get(packet.hop as usize) {
            let passage = self.links.pass(link, packet.bytes, self.now);
            let next = self.packets.get_mut(number);
            next.hop += 1;
            next.tail = passage.tail.max(packet.tail + self.machine.network.hop_latency);
            return self.queue.push(passage.head, Event::Packet(number));
        }
        self.packets.take(number);
        let message = self.messages.get(packet.message);
        let card = self.card(message.to);
        let gap = if message.to_arrive == message.bytes { self.machine.network.gap } else { 0 };
        let free = self.cards[card].receive_free.max(self.now) + gap + moving(packet.bytes, self.rates.card);
        self.cards[card].receive_free = free;
        let now = self.now;
        let message = self.messages.get_mut(packet.message);
        message.head = message.head.min(now);
        message.tail = message.tail.max(free).max(packet.tail);
        message.to_arrive -= packet.bytes;
        if message.to_arrive == 0 {
            let tail = message.tail;
            self.queue.push(tail, Event::Deliver(packet.message));
        }
    }

    /// The first byte of a message comes to the receiver's card.
    pub(super) fn arrive(&mut self, id: u32) {
        let message = self.messages.get(id);
        let card = self.card(message.to);
        let occupancy = self.machine.network.gap + moving(message.bytes, self.rates.card);
        self.messages.get_mut(id).head = self.now;
        let card = &mut self.cards[card];
        card.receive_free = card.receive_free.max(self.now) + occupancy;
        let at = card.receive_free.max(message.tail);
        self.queue.push(at, Event::Deliver(id));
    }

    /// A processor that moves data is busy until its message has left and its call returns.
    fn busy_until(&mut self, message: &Message, left: Time) {
        let carries = !matches!(message.kind, Kind::Reply | Kind::Announcement | Kind::ClearToSend);
        if carries && self.machine.protocol.processor_moves_data {
            let sender = &mut self.ranks[message.from as usize];
            sender.clock = sender.clock.max(left + self.machine.network.send_rest);
        }
    }

    /// The source of a message is free from `at` on.
    fn sent(&mut self, message: &Message, at: Time) {
        self.ranks[message.from as usize].unsent -= 1;
        self.settle(message.from, at);
    }
}
