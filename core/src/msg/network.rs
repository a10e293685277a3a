//! Messages over the network: their flow control, and what waits to be sent.
//!
//! Invariant: a PE sends another one no more unsolicited messages than that one allows: as many as it keeps,
//! and those that it has received. The network is called without the lock of the state.

use super::TwoSided;
use super::outgoing::First;
use super::request::RequestId;
use super::state::{Answer, Exchange};
use super::wire::Kind;
use crate::Pe;
use crate::progress::purpose::Purpose;
use pelago_fabric::shm::fifo::{Payload, Words};

/// Unsolicited messages that a PE allows beyond those that it keeps, at a time, while a receive waits.
const WANTED_MORE: u64 = 16;

/// A message that is about to be sent over the network.
enum Item {
    Answer,
    Piece { id: RequestId, data: *const u8, bytes: usize },
    First { id: RequestId, first: First },
}

impl TwoSided {
    /// Takes a message that has come over the network. `None` if no PE can have sent it.
    pub fn note_message(&self, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
        let (kind, _) = Kind::of(header)?;
        let (second, payload) = match kind {
            Kind::Data => (0, payload),
            _ => {
                let (second, rest) = payload.split_first_chunk()?;
                (u64::from_le_bytes(*second), rest)
            }
        };
        let mut state = self.msg.get(&self.messaging.teams).lock();
        let exchange = &mut state.exchange;
        // A peer whose messages come through FIFOs sends none over the network.
        if exchange.peers.get(from)?.out.is_some() {
            return None;
        }
        if kind.is_unsolicited() && exchange.peers[from].arrived >= exchange.peers[from].told {
            return None;
        }
        exchange.take(&self.messaging.teams, from, [header, second], &Payload::of(payload))?;
        exchange.allow(from, false);
        Some(())
    }

    /// Whether a PE that has left the job has sent all its messages, and no data of them are to come. If it
    /// is reached over the network, it is asked: its answer comes behind them.
    pub fn has_sent_all(&self, pe: Pe) -> bool {
        if self.memory.is_mapped(pe) || pe == self.my_pe() {
            return true;
        }
        let mut state = self.msg.get(&self.messaging.teams).lock();
        let exchange = &mut state.exchange;
        let peer = &mut exchange.peers[pe];
        let has_sent_all = peer.has_sent_all && peer.arriving == 0;
        if !std::mem::replace(&mut peer.is_asked, true) {
            exchange.answer(pe, Answer { words: [Kind::Ask.with(0), 0], payload: None });
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
        scratch.clear();
        scratch.extend_from_slice(&second.to_le_bytes());
        head.iter().for_each(|word| scratch.extend_from_slice(&word.to_le_bytes()));
        scratch.extend_from_slice(data);
        self.tally.add(|counts| counts.net_messages += 1);
        self.net_endpoint().try_send(pe, Purpose::Message.over(first), scratch)
    }

    /// Sends over the network what waits for room there, unless another thread does.
    pub(super) fn flush_net(&self) {
        let Some(state) = self.msg.get_if_open() else { return };
        let mut state = state.lock();
        if state.exchange.is_flushing || !state.exchange.has_net_work() {
            return;
        }
        state.exchange.is_flushing = true;
        let mut scratch = std::mem::take(&mut state.exchange.scratch);
        // Each peer once; what is added meanwhile is sent the next time.
        for _ in 0..state.exchange.busy.len() {
            let Some(pe) = state.exchange.busy.pop_front() else { break };
            state.exchange.peers[pe].is_busy = false;
            while let Some((item, words, payload)) = state.exchange.next_item(pe) {
                drop(state);
                let is_sent = match &item {
                    Item::Answer => self.try_message(pe, words, (payload.as_slice(), &[]), &mut scratch),
                    // SAFETY: the caller of the send keeps its data valid until it is complete.
                    Item::First { first, .. } => unsafe { self.try_first(pe, first, &mut scratch) },
                    // SAFETY: the caller of the send keeps its data valid until it is complete.
                    Item::Piece { data, bytes, .. } => unsafe {
                        self.try_piece(pe, words[0], (*data, *bytes))
                    },
                };
                state = self.msg.get(&self.messaging.teams).lock();
                if !is_sent {
                    break;
                }
                state.exchange.was_sent(pe, item);
            }
            if !state.exchange.peers[pe].is_idle() {
                state.exchange.note_busy(pe);
            }
        }
        state.exchange.scratch = scratch;
        state.exchange.is_flushing = false;
    }

    /// Sends a piece of a long message, from where it lies.
    ///
    /// # Safety
    /// The data are valid for reads.
    unsafe fn try_piece(&self, pe: Pe, word: u64, (data, bytes): (*const u8, usize)) -> bool {
        // SAFETY: the caller guarantees the data.
        let data = unsafe { std::slice::from_raw_parts(data, bytes) };
        self.net_endpoint().try_send(pe, Purpose::Message.over(word), data)
    }
}

impl Exchange {
    /// The next message for a PE that is reached over the network: the item, its words and its payload.
    fn next_item(&mut self, pe: Pe) -> Option<(Item, Words, Option<u64>)> {
        let peer = &self.peers[pe];
        if peer.out.is_some() {
            return None;
        }
        if let Some(&Answer { words, payload }) = peer.answers.front() {
            return Some((Item::Answer, words, payload));
        }
        if let Some(&id) = peer.pushing.front() {
            let most = self.piece_bytes;
            let send = self.requests.get(id);
            let bytes = (send.asked - send.moved).min(most);
            let data = send.buffer.wrapping_add(send.moved).cast_const();
            return Some((Item::Piece { id, data, bytes }, [Kind::Data.with(send.partner), 0], None));
        }
        let &id = peer.waiting.front().filter(|_| peer.sent < peer.allowed)?;
        let first = self.first(id, pe);
        let words = first.words;
        Some((Item::First { id, first }, words, None))
    }

    /// Notes that a message has left.
    fn was_sent(&mut self, pe: Pe, item: Item) {
        match item {
            Item::Answer => drop(self.peers[pe].answers.pop_front()),
            Item::Piece { id, bytes, .. } => self.has_pushed(pe, id, bytes),
            Item::First { id, first } => {
                self.peers[pe].sent += 1;
                self.has_left(pe, id, &first);
            }
        }
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
        if is_wanted && peer.told == peer.arrived {
            allowed = allowed.max(peer.arrived + WANTED_MORE);
            least = 1;
        }
        if peer.out.is_some() || allowed < peer.told + least {
            return;
        }
        peer.told = allowed;
        self.answer(pe, Answer { words: [Kind::Allow.with(0), allowed], payload: None });
    }

    /// Allows the PEs that may send nothing more a few messages, as a receive that has no message yet wants
    /// them.
    pub(super) fn allow_wanted(&mut self, pattern: &super::envelope::Envelope) {
        let is_stalled = |peer: &super::state::Peer| peer.out.is_none() && peer.told == peer.arrived;
        let stalled: Vec<Pe> = match pattern.source {
            super::envelope::ANY_SOURCE => {
                (0..self.peers.len()).filter(|&pe| is_stalled(&self.peers[pe])).collect()
            }
            source => Some(source as Pe).filter(|&pe| is_stalled(&self.peers[pe])).into_iter().collect(),
        };
        stalled.into_iter().for_each(|pe| self.allow(pe, true));
    }
}
