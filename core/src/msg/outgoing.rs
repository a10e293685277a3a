//! Messages that leave: at once where there is room, and else when there is.
//!
//! Invariant: the unsolicited messages to a PE leave in the order of the sends, and so do the solicited ones.

use super::envelope::{Context, Tag};
use super::request::{Phase, Request, RequestId};
use super::state::{Answer, Exchange, Out, Peer, Region, SOLICITED, UNSOLICITED};
use super::wire::{Announcement, Home, Kind, eager_words};
use crate::Pe;
use pelago_fabric::shm::fifo::Words;

/// Bytes of a piece of a long message in a FIFO: several fit in the caches that the two ends do not share.
const PIECE_BYTES: usize = 16 << 10;

/// The first message of a send.
pub(super) struct First {
    pub(super) words: Words,
    head: [u64; 4],
    heads: usize,
    /// The data that travel with it.
    pub(super) data: *const u8,
    pub(super) bytes: usize,
    /// Whether the send is complete when it has left.
    pub(super) is_all: bool,
}

impl First {
    /// An eager message, which nobody confirms.
    #[inline(always)]
    pub(super) fn eager(tag: Tag, context: Context, (data, bytes): (*const u8, usize)) -> First {
        First { words: eager_words(tag, context), head: [0; 4], heads: 0, data, bytes, is_all: true }
    }

    /// The first message of this send.
    pub(super) fn of(id: RequestId, send: &Request, eager_bytes: usize, home: Home) -> First {
        let (tag, context) = (u64::from(send.envelope.tag), send.envelope.context.0);
        let (data, bytes) = (send.buffer.cast_const(), send.room);
        if bytes > eager_bytes {
            let head = Announcement { send: id.code(), bytes, home }.words();
            let words = [Kind::Announce.with(tag), context];
            return First { words, head, heads: 4, data, bytes: 0, is_all: false };
        }
        if send.is_synchronous {
            let words = [Kind::Matched.with(tag), context];
            return First { words, head: [id.code(), 0, 0, 0], heads: 1, data, bytes, is_all: false };
        }
        First::eager(send.envelope.tag, send.envelope.context, (data, bytes))
    }

    /// Whether the data stay here until the receiver takes them.
    fn is_announcement(&self) -> bool {
        self.heads == 4
    }

    /// The words in front of the data.
    pub(super) fn head(&self) -> &[u64] {
        &self.head[..self.heads]
    }
}

impl Out {
    /// Sends an eager message through the FIFO; `false` if there is no room now.
    ///
    /// # Safety
    /// The data are valid for reads.
    #[inline(always)]
    pub(super) unsafe fn send_eager(&mut self, words: Words, (data, bytes): (*const u8, usize)) -> bool {
        // SAFETY: the caller guarantees the data.
        unsafe { self.fifos[UNSOLICITED].send(words, &[], data, bytes) }
    }

    /// Sends the first message of a send through the FIFO; `false` if there is no room now.
    ///
    /// # Safety
    /// The data of the send are valid for reads.
    pub(super) unsafe fn send_first(&mut self, first: &First) -> bool {
        // SAFETY: the caller guarantees the data.
        unsafe { self.fifos[UNSOLICITED].send(first.words, first.head(), first.data, first.bytes) }
    }

    pub(super) fn send_answer(&mut self, answer: &Answer) -> bool {
        let head = answer.payload();
        // SAFETY: the payload is the head: no bytes are read behind it.
        unsafe { self.fifos[SOLICITED].send(answer.words, head, std::ptr::dangling(), 0) }
    }
}

impl Exchange {
    /// Where a buffer lies: in this PE's region, or elsewhere.
    pub(super) fn home((buffer, bytes): (*mut u8, usize), Region(start, region_bytes): Region) -> Home {
        let start = start as usize;
        match (buffer as usize).checked_sub(start) {
            Some(offset) if offset.checked_add(bytes).is_some_and(|end| end <= region_bytes) => {
                Home::Symmetric(offset as u64)
            }
            _ => Home::Private(buffer as u64),
        }
    }

    /// Sends a solicited message, now or later.
    pub(super) fn answer(&mut self, pe: Pe, answer: Answer) {
        let peer = &mut self.peers[pe];
        if let Some(out) = peer.out.as_mut().filter(|_| peer.answers.is_empty())
            && out.send_answer(&answer)
        {
            return out.notify();
        }
        peer.answers.push_back(answer);
        self.note_busy(pe);
    }

    /// Sends through FIFOs what waits for room there.
    pub(super) fn flush_fifos(&mut self) {
        for _ in 0..self.busy.len() {
            let Some(pe) = self.busy.pop_front() else { return };
            self.peers[pe].is_busy = false;
            self.flush_or_note_busy(pe);
        }
    }

    /// Sends to a mapped PE what waits for room. If something still waits, for any PE, it is noted.
    pub(super) fn flush_or_note_busy(&mut self, pe: Pe) {
        if self.peers[pe].out.is_none() || !self.flush_fifo(pe) {
            self.note_busy(pe);
        }
    }

    /// Sends to a mapped PE what waits for room. Returns whether nothing waits any more.
    fn flush_fifo(&mut self, pe: Pe) -> bool {
        let mut has_sent = false;
        while let Some(answer) = self.peers[pe].answers.front().copied() {
            if !self.out(pe).send_answer(&answer) {
                break;
            }
            self.peers[pe].answers.pop_front();
            has_sent = true;
        }
        if self.peers[pe].answers.is_empty() {
            has_sent |= self.push_through_fifo(pe);
        }
        while let Some(&id) = self.peers[pe].waiting.front() {
            let mut first = self.first(id, pe, true);
            // SAFETY: the caller of the send keeps its data valid until it is complete.
            let mut has_left = unsafe { self.out(pe).send_first(&first) };
            if !has_left && first.bytes > self.queued_eager_bytes {
                first = self.first(id, pe, false);
                // SAFETY: the data are valid, as above.
                has_left = unsafe { self.out(pe).send_first(&first) };
            }
            if !has_left {
                break;
            }
            self.has_left(pe, id, &first);
            has_sent = true;
        }
        if has_sent {
            self.out(pe).notify();
        }
        self.peers[pe].is_idle()
    }

    fn out(&mut self, pe: Pe) -> &mut Out {
        self.peers[pe].out.as_mut().expect("only a mapped PE has a FIFO")
    }

    /// Sends pieces of long messages through a FIFO while there is room. Returns whether it has sent any.
    fn push_through_fifo(&mut self, pe: Pe) -> bool {
        let mut has_sent = false;
        while let Some(&id) = self.peers[pe].pushing.front() {
            let Exchange { requests, peers, .. } = self;
            let (send, Some(out)) = (requests.get(id), &mut peers[pe].out) else { break };
            // At most half of the longest message: one piece is copied while the next one is written.
            let piece_bytes = PIECE_BYTES.min(out.fifos[SOLICITED].message_bytes() / 2);
            let piece = (send.asked - send.moved).min(piece_bytes);
            // SAFETY: the caller of the send keeps its data valid until it is complete.
            if !unsafe { out.send_piece(send, piece) } {
                break;
            }
            has_sent = true;
            self.has_pushed(pe, id, piece);
        }
        has_sent
    }

    /// Notes that a piece of a long message has left.
    pub(super) fn has_pushed(&mut self, pe: Pe, id: RequestId, piece: usize) {
        let send = self.requests.get(id);
        send.moved += piece;
        if send.moved == send.asked {
            self.peers[pe].pushing.pop_front();
            self.complete(id);
        }
    }

    /// Bytes of the longest eager message to a PE that has found no room. A longer one is announced, which
    /// takes a cell only.
    pub(super) fn eager_bytes_without_room(&self, pe: Pe) -> usize {
        let Peer { eager_bytes, out, .. } = &self.peers[pe];
        if out.is_some() { self.queued_eager_bytes.min(*eager_bytes) } else { *eager_bytes }
    }

    /// The first message of a send, which is about to leave; without room for its data it is announced.
    pub(super) fn first(&mut self, id: RequestId, pe: Pe, has_room: bool) -> First {
        let without_room = self.eager_bytes_without_room(pe);
        let Peer { eager_bytes, out, .. } = &self.peers[pe];
        let send = self.requests.get(id);
        let eager_bytes = if has_room { *eager_bytes } else { without_room };
        // From now on the receiver may answer.
        send.phase = Phase::Sent;
        let home = match out {
            Some(_) if send.packing.is_some() => Home::Packed,
            Some(_) => Exchange::home((send.buffer, send.room), self.region),
            // No other node can read an address.
            None => Home::Private(0),
        };
        First::of(id, send, eager_bytes, home)
    }

    /// Notes that the first message of the oldest send that waits has left. The receiver may have answered it
    /// already, unless it is all of the message.
    pub(super) fn has_left(&mut self, pe: Pe, id: RequestId, first: &First) {
        let front = self.peers[pe].waiting.pop_front();
        debug_assert_eq!(front, Some(id), "sends leave in order");
        if first.is_all {
            self.complete(id);
        }
        if first.is_announcement() {
            self.announced = Some(id);
        }
    }

    /// Whether something waits to be sent over the network, and can be sent as far as is known.
    pub(super) fn has_net_work(&self) -> bool {
        let can_send = |peer: &Peer| {
            peer.out.is_none()
                && (!peer.answers.is_empty()
                    || !peer.pushing.is_empty()
                    || !peer.waiting.is_empty() && peer.sent < peer.allowed)
        };
        !self.putting.is_empty()
            || !self.written.is_empty()
            || self.busy.iter().any(|&pe| can_send(&self.peers[pe]))
    }
}
