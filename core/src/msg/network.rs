//! Messages over the network: their flow control, and what waits to be sent.
//!
//! Invariant: a PE sends another one no more unsolicited messages than that one allows. The receiver allows
//! as many as it keeps, beyond those that it has received. The network is called without the lock of the
//! state.

use super::TwoSided;
use super::outgoing::First;
use super::request::{Phase, RequestId};
use super::state::{Answer, Exchange, Peer, State, units};
use super::wire::{Kind, Target};
use crate::Pe;
use crate::base::trace::{Category, Event};
use crate::endpoint::completion_counter::CompletionCounter;
use crate::progress::purpose::Purpose;
use pelago_fabric::Remote;
use pelago_fabric::biased::Held;
use pelago_fabric::shm::fifo::{Payload, Words};
use std::ptr::NonNull;

/// The data of a long message are put in parts: between two puts this PE takes what has arrived and answers
/// it. An answer that came behind all the data would delay the other direction's data by as much. A part is
/// as long as all before it, within these bounds in bytes: the longer the puts, the quicker they are.
const PUT_BYTES_MIN: usize = 256 << 10;
const PUT_BYTES_MAX: usize = 1 << 20;
/// Units of unsolicited messages that a PE allows beyond those that it keeps, at a time, while a receive
/// waits: 1 MiB.
const WANTED_MORE: u64 = 8 << 10;

/// Bytes of the longest next put of a message of which this number of bytes has left.
fn longest_put(moved: usize) -> usize {
    moved.clamp(PUT_BYTES_MIN, PUT_BYTES_MAX)
}

/// A message, or a put of data, that is about to leave over the network.
enum Item {
    Answer(Answer),
    /// Before the next answer leaves: a buffer is exposed.
    Expose {
        id: RequestId,
        start: *mut u8,
        bytes: usize,
    },
    Piece {
        id: RequestId,
        word: u64,
        data: *const u8,
        bytes: usize,
    },
    Put {
        id: RequestId,
        counter: CompletionCounter,
        target: Remote,
        data: *const u8,
        bytes: usize,
    },
    First {
        id: RequestId,
        first: First,
    },
}

impl TwoSided {
    /// Takes a message that has come over the network. `None` if no PE can have sent it.
    pub fn note_message(&self, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
        let (kind, _) = Kind::of(header)?;
        let (second, payload) = match kind {
            Kind::Data => (0, payload),
            _ => {
                let (second, rest) = payload.split_first_chunk()?;
                (u64::from_ne_bytes(*second), rest)
            }
        };
        let mut state = self.msg.get(&self.messaging.teams).lock();
        let exchange = &mut state.exchange;
        // A peer whose messages come through FIFOs sends none over the network.
        if from >= exchange.peers.len() {
            return None;
        }
        let peer = &mut exchange.peers[from];
        if peer.out.is_some() || kind.is_unsolicited() && peer.arrived >= peer.told {
            return None;
        }
        exchange.take(&self.messaging.teams, from, [header, second], &Payload::of(payload))?;
        exchange.allow(from, false);
        let is_stalled = kind.is_unsolicited() && exchange.peers[from].is_stalled();
        if is_stalled && !exchange.stalled.contains(&from) {
            exchange.stalled.push(from);
        }
        Some(())
    }

    /// Whether a PE that has left the job has sent all its messages, and no data of them are to come. If it
    /// is reached over the network, it is asked: its answer comes behind them.
    pub fn has_sent_all(&self, pe: Pe) -> bool {
        if pe == self.my_pe() {
            return true;
        }
        if self.memory.is_mapped(pe) {
            let Some(state) = self.msg.get_if_open() else { return true };
            let mut state = state.lock();
            // A long message that has not been taken may come in pieces.
            self.poll(&mut state, false);
            return state.exchange.peers[pe].arriving == 0;
        }
        let mut state = self.msg.get(&self.messaging.teams).lock();
        let exchange = &mut state.exchange;
        let peer = &mut exchange.peers[pe];
        let has_sent_all = peer.has_sent_all && peer.arriving == 0;
        if !std::mem::replace(&mut peer.is_asked, true) {
            exchange.answer(pe, Answer::new(Kind::Ask, 0, 0));
        }
        has_sent_all
    }

    /// Sends the first message of a send, if there is room: `false` if there is not.
    ///
    /// # Safety
    /// The data of the send are valid for reads.
    pub(super) unsafe fn try_first(&self, pe: Pe, first: &First, scratch: &mut Vec<u8>) -> bool {
        // SAFETY: the caller guarantees the data.
        let data = unsafe { std::slice::from_raw_parts(first.data, first.bytes) };
        self.try_message(pe, first.words, (first.head(), data), scratch)
    }

    fn try_message(
        &self,
        pe: Pe,
        [first, second]: Words,
        (head, data): (&[u64], &[u8]),
        scratch: &mut Vec<u8>,
    ) -> bool {
        let payload_bytes = size_of_val(&second) + size_of_val(head) + data.len();
        if head.is_empty() {
            return self.note_sent(pe, payload_bytes, || {
                let header = Purpose::Message.over(first);
                self.net_endpoint().try_send_with_word(pe, header, (second, data), scratch)
            });
        }
        scratch.clear();
        scratch.extend_from_slice(&second.to_ne_bytes());
        head.iter().for_each(|word| scratch.extend_from_slice(&word.to_ne_bytes()));
        scratch.extend_from_slice(data);
        self.try_send(pe, first, scratch)
    }

    /// Sends an eager message that [leaves at once](Exchange::leaves_at_once), without a request. If there is
    /// no room now, this returns the state, and the message is still to be sent.
    ///
    /// # Safety
    /// The data of the message are valid for reads.
    pub(super) unsafe fn send_at_once<'a>(
        &'a self,
        mut state: Held<'a, State>,
        pe: Pe,
        first: &First,
    ) -> Option<Held<'a, State>> {
        // Other threads put their messages behind this one.
        state.exchange.is_flushing = true;
        let mut scratch = std::mem::take(&mut state.exchange.scratch);
        drop(state);
        // SAFETY: the caller guarantees the data.
        let is_sent = unsafe { self.try_first(pe, first, &mut scratch) };
        let mut state = self.msg.get(&self.messaging.teams).lock();
        let exchange = &mut state.exchange;
        (exchange.scratch, exchange.is_flushing) = (scratch, false);
        if !is_sent {
            return Some(state);
        }
        exchange.peers[pe].sent += units(first.bytes);
        let has_work = exchange.has_net_work();
        drop(state);
        if has_work {
            self.flush_net();
        }
        None
    }

    /// Sends over the network what waits for room there, unless another thread does, and completes the
    /// requests whose data were put.
    pub(super) fn flush_net(&self) {
        let Some(state) = self.msg.get_if_open() else { return };
        let mut state = state.lock();
        if state.exchange.is_flushing || !state.exchange.has_net_work() {
            return;
        }
        state.exchange.is_flushing = true;
        let mut scratch = std::mem::take(&mut state.exchange.scratch);
        let keys = state.exchange.take_written();
        let is_ordered = self.net_endpoint().keeps_messages_behind_puts();
        state.exchange.complete_puts(is_ordered, |counter| self.completions.release(counter));
        // Each peer once; what is added meanwhile is sent the next time.
        for _ in 0..state.exchange.busy.len() {
            let Some(pe) = state.exchange.busy.pop_front() else { break };
            state.exchange.peers[pe].is_busy = false;
            while let Some(item) = state.exchange.next_item(pe, || self.completions.open()) {
                drop(state);
                // SAFETY: the caller of a send or a receive keeps its buffer valid until it is complete.
                let outcome = unsafe { self.try_item(pe, &item, &mut scratch) };
                state = self.msg.get(&self.messaging.teams).lock();
                let Some(target) = outcome else { break };
                let is_put = matches!(item, Item::Put { .. });
                state.exchange.was_sent((pe, is_ordered), item, target);
                if is_put && !state.exchange.peers[pe].pushing.is_empty() {
                    drop(state);
                    if let Some(net) = self.net.as_ref().filter(|net| !net.is_shut()) {
                        self.serve_others(net);
                    }
                    state = self.msg.get(&self.messaging.teams).lock();
                }
            }
            state.exchange.note_busy_or_idle(pe);
        }
        state.exchange.scratch = scratch;
        state.exchange.is_flushing = false;
        drop(state);
        if !keys.is_empty() {
            self.complete_written(keys);
        }
    }

    /// Conceals the buffers of receives whose data were put, and completes the receives.
    fn complete_written(&self, receives: Vec<(RequestId, Target)>) {
        for (_, target) in &receives {
            if let Target::Memory(Remote { key, .. }) = target {
                self.net_endpoint().conceal(*key);
            }
        }
        let mut state = self.msg.get(&self.messaging.teams).lock();
        receives.into_iter().for_each(|(id, _)| state.exchange.complete(id));
    }

    /// Sends an item. `None` if there is no room for it now; else the target, if it is one that the item asks
    /// for.
    ///
    /// # Safety
    /// The data of the item are valid for reads, and its buffer for writes.
    unsafe fn try_item(&self, pe: Pe, item: &Item, scratch: &mut Vec<u8>) -> Option<Target> {
        let is_sent = match item {
            Item::Answer(answer) => self.try_message(pe, answer.words, (answer.payload(), &[]), scratch),
            // SAFETY: the caller guarantees the data.
            Item::First { first, .. } => unsafe { self.try_first(pe, first, scratch) },
            Item::Piece { word, data, bytes, .. } => {
                // SAFETY: the caller guarantees the data.
                let data = unsafe { std::slice::from_raw_parts(*data, *bytes) };
                self.try_send(pe, *word, data)
            }
            // SAFETY: the caller guarantees the data, and the receiver the memory that it has named.
            Item::Put { counter, target, data, bytes, .. } => unsafe {
                let event = || Event::new(Category::Network, "put").detailed("message").with(pe, *bytes);
                self.tally.add_net(|counts| counts.net_puts += 1, event);
                self.net_endpoint().try_put((pe, *target), *data, *bytes, counter)
            },
            Item::Expose { start, bytes, .. } => {
                let start = NonNull::new(*start).expect("a buffer with room has an address");
                // SAFETY: the caller guarantees the buffer; the receive completes after it is concealed.
                let key = unsafe { self.net_endpoint().expose(start, *bytes) };
                let memory = |key| Target::Memory(Remote { key, offset_bytes: 0 });
                return Some(key.map_or(Target::Pieces, memory));
            }
        };
        is_sent.then_some(Target::Pieces)
    }

    /// Sends a message, and counts it.
    fn try_send(&self, pe: Pe, first: u64, payload: &[u8]) -> bool {
        self.note_sent(pe, payload.len(), || {
            self.net_endpoint().try_send(pe, Purpose::Message.over(first), payload)
        })
    }

    /// Counts a message, if it is sent.
    fn note_sent(&self, pe: Pe, bytes: usize, send: impl FnOnce() -> bool) -> bool {
        let is_sent = send();
        if is_sent {
            let event = || Event::new(Category::Network, "message").with(pe, bytes);
            self.tally.add_net(|counts| counts.net_messages += 1, event);
        }
        is_sent
    }
}

impl Exchange {
    /// Whether an eager message of this length may leave over the network before this call returns: the PE
    /// allows it, nothing waits to be sent to it, and no other thread sends.
    pub(super) fn leaves_at_once(&self, pe: Pe, bytes: usize) -> bool {
        let peer = &self.peers[pe];
        let is_reached_over_net = peer.out.is_none() && pe != self.me;
        is_reached_over_net
            && bytes <= peer.eager_bytes
            && peer.sent < peer.allowed
            && peer.is_idle()
            && !self.is_flushing
    }

    /// Notes whether something still waits to be sent to a PE. While an item was sent, another thread may
    /// have added one, which has left as well: a PE that counts as busy without need would never become idle.
    fn note_busy_or_idle(&mut self, pe: Pe) {
        if !self.peers[pe].is_idle() {
            self.note_busy(pe);
        } else if std::mem::take(&mut self.peers[pe].is_busy) {
            self.busy.retain(|&other| other != pe);
        }
    }

    /// The next item for a PE that is reached over the network. `open` opens a counter for the puts of a
    /// send.
    fn next_item(&mut self, pe: Pe, open: impl FnOnce() -> CompletionCounter) -> Option<Item> {
        let peer = &self.peers[pe];
        if peer.out.is_some() {
            return None;
        }
        if let Some(&answer) = peer.answers.front() {
            return Some(match answer.exposes {
                None => Item::Answer(answer),
                Some(id) => {
                    let request = self.requests.get(id);
                    Item::Expose { id, start: request.buffer, bytes: request.bytes.min(request.room) }
                }
            });
        }
        if let Some(&id) = peer.waiting.front().filter(|_| peer.sent < peer.allowed) {
            return Some(Item::First { id, first: self.first(id, pe, true) });
        }
        let &id = peer.pushing.front()?;
        let (piece_bytes, transfer_bytes) = (self.piece_bytes, self.transfer_bytes);
        let send = self.requests.get(id);
        let data = send.buffer.wrapping_add(send.moved).cast_const();
        let left = send.asked - send.moved;
        Some(match send.target {
            Target::Pieces => {
                let word = Kind::Data.with(send.partner);
                Item::Piece { id, word, data, bytes: left.min(piece_bytes) }
            }
            Target::Memory(Remote { key, offset_bytes }) => {
                let counter = send.puts.get_or_insert_with(open).clone();
                let target = Remote { key, offset_bytes: offset_bytes + send.moved };
                let bytes = left.min(transfer_bytes).min(longest_put(send.moved));
                Item::Put { id, counter, target, data, bytes }
            }
        })
    }

    /// Notes that an item has left, or that a buffer is exposed as a target. `is_ordered` if messages arrive
    /// behind earlier puts.
    fn was_sent(&mut self, (pe, is_ordered): (Pe, bool), item: Item, target: Target) {
        match item {
            Item::Answer(_) => drop(self.peers[pe].answers.pop_front()),
            Item::Expose { id, .. } => {
                self.requests.get(id).target = target;
                if let Some(answer) = self.peers[pe].answers.front_mut() {
                    answer.set_target(target);
                }
            }
            Item::Piece { id, bytes, .. } => self.has_pushed(pe, id, bytes),
            Item::Put { id, bytes, .. } => {
                let send = self.requests.get(id);
                send.moved += bytes;
                if send.moved == send.asked {
                    send.phase = Phase::Put;
                    let partner = send.partner;
                    self.peers[pe].pushing.pop_front();
                    self.putting.push(id);
                    if is_ordered {
                        self.answer(pe, Answer::new(Kind::Written, partner, 0));
                    }
                }
            }
            Item::First { id, first } => {
                self.peers[pe].sent += units(first.bytes);
                self.has_left(pe, id, &first);
            }
        }
    }

    /// Completes the sends whose puts are far enough: the data have left, if messages arrive behind them,
    /// else they have arrived, of which the receiver is told.
    fn complete_puts(&mut self, is_ordered: bool, mut release: impl FnMut(CompletionCounter)) {
        for id in std::mem::take(&mut self.putting) {
            let send = self.requests.get(id);
            let counter = send.puts.as_ref().expect("a send whose data are put has a counter");
            let is_enough = if is_ordered { counter.is_sent() } else { counter.is_done() };
            if !is_enough {
                self.putting.push(id);
                continue;
            }
            let (pe, partner) = (send.pe, send.partner);
            send.puts.take().into_iter().for_each(&mut release);
            if !is_ordered {
                self.answer(pe, Answer::new(Kind::Written, partner, 0));
            }
            self.complete(id);
        }
    }

    /// The receives whose data were put, with the targets that are to be concealed.
    fn take_written(&mut self) -> Vec<(RequestId, Target)> {
        let written = std::mem::take(&mut self.written);
        written.into_iter().map(|id| (id, self.requests.get(id).target)).collect()
    }

    /// Allows a PE more unsolicited messages, if that is worth a message to it; more than this PE would keep
    /// if a receive that has no message yet wants them.
    pub(super) fn allow(&mut self, pe: Pe, is_wanted: bool) {
        if pe == self.me {
            return;
        }
        let kept_max = self.kept_max;
        let peer = &mut self.peers[pe];
        let (mut allowed, mut least) = (peer.matched + kept_max, (kept_max / 4).max(1));
        if is_wanted && peer.is_stalled() {
            allowed = allowed.max(peer.arrived + WANTED_MORE);
            least = 1;
        }
        if peer.out.is_some() || allowed < peer.told + least {
            return;
        }
        peer.told = allowed;
        self.answer(pe, Answer::new(Kind::Allow, 0, allowed));
    }

    /// Allows the PEs that may send nothing more a few messages, which a probe or a posted receive wants.
    pub(super) fn allow_stalled(&mut self) {
        for pe in std::mem::take(&mut self.stalled) {
            self.allow(pe, true);
        }
    }
}

impl Peer {
    /// Whether it is reached over the network, and may send nothing more.
    fn is_stalled(&self) -> bool {
        self.out.is_none() && self.told <= self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_puts_of_a_long_message_grow_up_to_a_limit() {
        let mut moved = 0;
        let puts = [(); 6].map(|()| {
            let bytes = longest_put(moved);
            moved += bytes;
            bytes >> 10
        });
        assert_eq!(puts, [256, 256, 512, 1024, 1024, 1024], "KiB");
    }
}
