//! The send queue of a connection: frames to be sent, and operations that are not complete.
//!
//! Small frames are gathered by Nagle's rule (RFC 896). If fewer than [`AT_ONCE`] are unacknowledged, a
//! frame is sent at once. Otherwise it waits for others, and they are sent together: with the next progress,
//! or when they are [`BATCH_BYTES`] long. Messages wait on while the PE goes on sending messages. A put that
//! is not acknowledged is sent at once, as its receiver waits for it. Large data are sent from the source,
//! without a copy; what waits for others is copied up to a greater length. Frames with large data are
//! gathered too, up to [`PIECES_AT_ONCE`]: one call of the system takes less time than several.
//!
//! Invariant: bytes are sent in the order in which frames were pushed. The peer executes and acknowledges
//! puts and messages in the order in which they were started, and replies to gets and atomics in theirs. So a
//! count says which puts are complete, and a reply belongs to the oldest operation that expects one.

use super::completion_queue::{CompletionQueue, Entry};
use super::datagram::DatagramSender;
use super::frame::{HEADER_BYTES, Header, Kind, PADDING_MAX};
use super::local_pe::offset_in_page;
use super::socket::{self, Moved};
use super::stream::{self, Sealer};
use crate::amo::AtomicKind;
use crate::copy;
use crate::types::Token;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use series::Series;

mod datagrams;
mod series;

/// Puts and messages without an acknowledgement, the next one included, up to which it is sent at once: a
/// program that sends a few and then computes must not make their receiver wait for its next progress.
pub(super) const AT_ONCE: u32 = 4;
/// The shortest time between two looks for acknowledgements before a batch: ten sends.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_micros(10);
/// A batch of this length is sent at once.
pub(super) const BATCH_BYTES: usize = 32 << 10;
/// The longest data that are copied into a batch in any case.
pub(super) const GATHERED_BYTES: usize = 4 << 10;
/// The longest data of a frame that waits for others: a copy costs less than another call of the system.
pub(super) const WAITING_BYTES: usize = 16 << 10;
/// The most pieces that one call of the system sends. A frame with large data has two pieces: its header and
/// its data. Frames wait for others while there are fewer pieces than this.
pub(super) const PIECES_AT_ONCE: usize = 8;
/// Data of this length or more do not wait: a call of the system for them alone takes no longer.
pub(super) const ALONE_BYTES: usize = 128 << 10;
/// Frames of up to this length in front of large data are copied out of the batch, which keeps its memory.
const COPIED_BYTES: usize = 1 << 10;
/// Limits of a full queue: bytes and pieces to be sent, and the bytes that operations take until they are
/// complete, here or at the peer: [`OPERATION_BYTES`] each, and the data of replies that the peer copies.
const UNSENT_BYTES_MAX: usize = 4 << 20;
const UNSENT_PIECES_MAX: usize = 1 << 10;
pub(super) const OUTSTANDING_BYTES_MAX: usize = 4 << 20;
const OPERATION_BYTES: usize = 64;
/// The most memory that a part of the queue keeps when nothing is in it. A batch of frames that wait for
/// others takes less, also if a growing vector doubles, so it is not allocated anew each time.
pub(super) const KEPT_BYTES: usize = 2 * (BATCH_BYTES + WAITING_BYTES + (1 << 10));

/// A part of the bytes to be sent.
enum Piece {
    /// A copy.
    Copied { bytes: Vec<u8>, sent: usize },
    /// Frames that were sent in datagrams, behind a header that says which.
    Repeated { bytes: Vec<u8>, sent: usize },
    /// Data at their source. If there is an owner, it gets an event when they are sent.
    AtSource { start: *const u8, bytes: usize, owner: Option<(Arc<CompletionQueue>, Token)> },
}

impl Piece {
    /// Its bytes that are to be sent, and their number.
    fn unsent(&self) -> (*const u8, usize) {
        match self {
            Piece::Copied { bytes, sent } | Piece::Repeated { bytes, sent } => {
                (bytes[*sent..].as_ptr(), bytes.len() - *sent)
            }
            Piece::AtSource { start, bytes, .. } => (*start, *bytes),
        }
    }
}

/// Puts of one endpoint that were started one after another, or messages.
struct Run {
    /// Those that are not acknowledged.
    count: u32,
    /// `None` for messages.
    completions: Option<Arc<CompletionQueue>>,
    token: Option<Token>,
}

/// A get or a fetching atomic without a reply so far.
pub(super) struct PendingReply {
    pub(super) completions: Arc<CompletionQueue>,
    pub(super) token: Option<Token>,
    /// Null if the endpoint is closed: the data are dropped.
    pub(super) target: *mut u8,
    pub(super) bytes: usize,
    /// The kind of the word, for an atomic.
    pub(super) atomic: Option<AtomicKind>,
}

impl PendingReply {
    /// Bytes that it takes until it is complete. The peer copies short data into its batch. A long reply
    /// takes pieces there, which have a limit as well.
    fn outstanding_bytes(&self) -> usize {
        OPERATION_BYTES + self.bytes.min(GATHERED_BYTES)
    }
}

/// The data of a frame.
#[derive(Clone, Copy)]
pub(super) struct Data {
    pub(super) start: *const u8,
    pub(super) bytes: usize,
}

impl Data {
    pub(super) const NONE: Data = Data { start: std::ptr::dangling(), bytes: 0 };
}

/// How data are kept that cannot be sent at once.
pub(super) enum Source {
    /// As a copy.
    Copied,
    /// At the source, which stays valid until they are sent. If there is an owner, it gets an event then.
    Stays(Option<(Arc<CompletionQueue>, Token)>),
}

/// The send queue of a connection.
#[derive(Default)]
pub(super) struct SendQueue {
    /// The socket, once the connection is proved.
    pub(super) socket: Option<RawFd>,
    /// Encrypts what is sent, if the connection is encrypted.
    pub(super) sealer: Option<Box<Sealer>>,
    pieces: VecDeque<Piece>,
    /// Bytes of the copies in `pieces`.
    copied_bytes: usize,
    /// Gathered frames, which follow all pieces.
    batch: Vec<u8>,
    /// Bytes of the batch that are sent: after a flush no more than those that are not, or [`BATCH_BYTES`].
    sent: usize,
    /// Whether the batch begins in the middle of a frame.
    is_cut: bool,
    /// All bytes of frames that the system has taken, over all connections to the peer and in datagrams. What
    /// was repeated counts once.
    pub(super) sent_bytes: u64,
    /// Sends short frames in datagrams, once the peer has told where.
    pub(super) datagrams: Option<Box<DatagramSender>>,
    /// Puts and messages that were started, and those that are acknowledged.
    started: u32,
    acknowledged: u32,
    /// Those that were started before the connection has carried frames last.
    streamed: u32,
    runs: VecDeque<Run>,
    /// The last run. It may have no put that is not acknowledged.
    newest: Option<Run>,
    replies: VecDeque<PendingReply>,
    /// Bytes that the operations in `replies` take.
    reply_bytes: usize,
    /// Whether the peer is in the domain's list of those with unsent bytes.
    pub(super) is_listed: bool,
    /// Whether the peer is in the list of those for which messages are gathered.
    pub(super) is_gathering: bool,
    /// Whether the poller watches for room to send.
    pub(super) watches_room: bool,
    /// Whether the connection had no room for the rest of the last send.
    lacks_room: bool,
    /// When this PE has looked for acknowledgements last, to send a frame at once in place of a batch.
    looked: Option<Instant>,
    /// Decides whether the puts of a series wait for each other.
    series: Series,
}

// SAFETY: sources and targets are kept by the starter of the operation, and may be accessed from any thread.
unsafe impl Send for SendQueue {}

impl SendQueue {
    /// Whether no frame but the last one waits for others.
    #[inline]
    pub(super) fn begins_batch(&self) -> bool {
        !self.is_listed && !self.is_gathering
    }

    /// Whether this PE may look for acknowledgements before a batch begins. Frames that follow each other
    /// closely are gathered, even if the peer is quick to acknowledge them: to send one takes longer than to
    /// gather several.
    pub(super) fn may_look_for_acks(&mut self, now: Instant) -> bool {
        let was_long_ago = |last: Instant| now.duration_since(last) >= LOOK_INTERVAL;
        let may_look = self.looked.is_none_or(was_long_ago)
            && (self.pieces.is_empty() || self.series.last_sent().is_none_or(was_long_ago));
        if may_look {
            self.looked = Some(now);
        }
        may_look
    }

    /// Whether the queue takes no more frames now.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.runs.len() * OPERATION_BYTES + self.reply_bytes >= OUTSTANDING_BYTES_MAX
            || self.copied_bytes + self.batch.len() >= UNSENT_BYTES_MAX
            || self.pieces.len() >= UNSENT_PIECES_MAX
    }

    /// Whether the queue takes the put of a word now. A put that follows large data takes the general path.
    #[inline]
    pub(super) fn takes_word(&self) -> bool {
        self.pieces.is_empty() && self.batch.len() < UNSENT_BYTES_MAX
    }

    /// Forgets how long puts have waited.
    #[cfg(test)]
    pub(super) fn forget_series(&mut self) {
        self.series = Series::default();
    }

    /// Memory of the batch and of the lists, in bytes.
    #[cfg(test)]
    pub(super) fn allocated_bytes(&self) -> usize {
        let lists = self.pieces.capacity() * size_of::<Piece>() + self.runs.capacity() * size_of::<Run>();
        let run_bytes = self.datagrams.as_ref().map_or(0, |datagrams| datagrams.allocated_bytes());
        self.batch.capacity()
            + run_bytes
            + self.copied_bytes
            + lists
            + self.replies.capacity() * size_of::<PendingReply>()
    }

    /// Whether there are bytes to be sent.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.batch.len() || !self.pieces.is_empty()
    }

    /// Whether an operation is not complete that somebody waits for. Nobody waits for a message, and a peer
    /// that leaves takes none.
    pub(super) fn is_awaited(&self) -> bool {
        let is_put = |run: &Run| run.count > 0 && run.completions.is_some();
        !self.replies.is_empty() || self.runs.iter().chain(&self.newest).any(is_put)
    }

    /// Counts a put that is started, or, without a completion queue, a message.
    #[inline]
    pub(super) fn count(&mut self, completions: Option<&Arc<CompletionQueue>>, token: Option<Token>) {
        self.started = self.started.wrapping_add(1);
        if let Some(run) = &mut self.newest
            && token.is_none()
            && run.token.is_none()
            && run.completions.as_ref().map(Arc::as_ptr) == completions.map(Arc::as_ptr)
        {
            run.count += 1;
            return;
        }
        self.begin_run(completions, token);
    }

    #[cold]
    #[inline(never)]
    fn begin_run(&mut self, completions: Option<&Arc<CompletionQueue>>, token: Option<Token>) {
        let run = Run { count: 1, completions: completions.cloned(), token };
        give_back(&mut self.runs);
        self.runs.extend(self.newest.replace(run).filter(|before| before.count > 0));
    }

    /// Adds an operation that expects a reply.
    pub(super) fn expect_reply(&mut self, reply: PendingReply) {
        self.reply_bytes += reply.outstanding_bytes();
        self.replies.push_back(reply);
    }

    /// Removes the oldest operation that expects a reply.
    pub(super) fn pop_reply(&mut self) -> Option<PendingReply> {
        let reply = self.replies.pop_front()?;
        self.reply_bytes -= reply.outstanding_bytes();
        give_back(&mut self.replies);
        Some(reply)
    }

    /// The oldest operation that expects a reply.
    pub(super) fn next_reply(&self) -> Option<&PendingReply> {
        self.replies.front()
    }

    /// Takes the peer's count of executed puts and messages. Returns `false` if the count is impossible.
    pub(super) fn acknowledge(&mut self, acks: u32) -> bool {
        if acks.wrapping_sub(self.acknowledged) > self.started.wrapping_sub(self.acknowledged) {
            return false;
        }
        let mut newly = acks.wrapping_sub(self.acknowledged);
        self.acknowledged = acks;
        while newly > 0 {
            let oldest = self.runs.front_mut().or(self.newest.as_mut());
            let Some(run) = oldest.filter(|run| run.count > 0) else { break };
            let count = run.count.min(newly);
            if let Some(completions) = &run.completions {
                completions.count_puts(count.into());
                if let Some(token) = run.token {
                    completions.push(Entry::Done(token));
                }
            }
            newly -= count;
            run.count -= count;
            if run.count == 0 {
                self.runs.pop_front();
            }
        }
        true
    }

    /// Adds a frame. Large data that do not wait are sent at once as far as the connection has room. The
    /// operands of a message are the first words of its payload.
    ///
    /// # Safety
    /// The data are valid for reads as `source` says.
    #[inline]
    pub(super) unsafe fn push(
        &mut self,
        mut header: Header,
        operands: &[u64],
        data: Data,
        source: Source,
    ) -> io::Result<()> {
        let operand_bytes = size_of_val(operands);
        debug_assert!(operand_bytes == header.kind.operand_bytes() || header.kind == Kind::Message);
        let (start, mut fixed_bytes) = (self.batch.len(), HEADER_BYTES + operand_bytes);
        let mut operands_at = HEADER_BYTES;
        let is_large = data.bytes > GATHERED_BYTES && (data.bytes > WAITING_BYTES || self.is_due(&header));
        let copied_bytes = if is_large { 0 } else { data.bytes };
        if is_large {
            header.padding = self.padding(&header, HEADER_BYTES + operand_bytes, data.start);
            let padding_bytes = usize::from(header.padding) * size_of::<u64>();
            fixed_bytes += padding_bytes;
            // The payload of a message is in one piece.
            operands_at += if header.kind == Kind::Message { padding_bytes } else { 0 };
        }
        self.batch.reserve(fixed_bytes + copied_bytes);
        // SAFETY: the batch has room for all of it; the caller has promised the data.
        unsafe {
            let place = self.batch.as_mut_ptr().add(start);
            place.cast::<[u8; HEADER_BYTES]>().write(header.to_bytes());
            if is_large {
                place.add(HEADER_BYTES).write_bytes(0, fixed_bytes - HEADER_BYTES);
            }
            copy::transfer(place.add(operands_at), operands.as_ptr().cast(), operand_bytes);
            copy::transfer(place.add(fixed_bytes), data.start, copied_bytes);
            self.batch.set_len(start + fixed_bytes + copied_bytes);
        }
        if is_large {
            // SAFETY: the caller's promises are the same.
            return unsafe { self.push_large(&header, data, source) };
        }
        if let Source::Stays(Some((completions, token))) = source {
            completions.push(Entry::Sent(token));
        }
        Ok(())
    }

    /// The words of padding with which the kernel copies the data of a long frame quickly, from their source
    /// and to a target of a region. `before_bytes` are in front of the data. The kernel puts the first byte
    /// of what is sent at once at the start of a page, if nothing older is unacknowledged. It copies by the
    /// processor's string instruction: see [`copy::is_slow_distance`].
    #[cold]
    fn padding(&self, header: &Header, before_bytes: usize, source: *const u8) -> u8 {
        // The frames that wait lie in front of it, unless the connection has no room for it.
        let waiting_bytes = match self.pieces.len() {
            ..PIECES_AT_ONCE => self.pieces.iter().map(|piece| piece.unsent().1).sum(),
            _ => 0,
        };
        let first = waiting_bytes + self.batch.len() - self.sent + before_bytes;
        let target = offset_in_page(header.word, header.offset);
        let has_target = header.kind.is_put();
        let is_quick = |words: &u8| {
            let place = first + usize::from(*words) * size_of::<u64>();
            let slow_target = has_target && copy::is_slow_distance(target, place);
            !copy::is_slow_distance(place, source as usize) && !slow_target
        };
        (0..=PADDING_MAX).find(is_quick).unwrap_or(0)
    }

    /// Adds a put of the first bytes of a word, as many as its header says.
    #[inline]
    pub(super) fn push_word(&mut self, header: Header, word: u64) {
        let (start, bytes) = (self.batch.len(), header.bytes as usize);
        debug_assert!(bytes <= size_of_val(&word));
        self.batch.reserve(HEADER_BYTES + size_of_val(&word));
        // SAFETY: the batch has room for the header and the whole word.
        unsafe {
            let place = self.batch.as_mut_ptr().add(start);
            place.cast::<[u8; HEADER_BYTES]>().write(header.to_bytes());
            place.add(HEADER_BYTES).cast::<u64>().write_unaligned(word);
            self.batch.set_len(start + HEADER_BYTES + bytes);
        }
    }

    /// Whether a frame with this header makes the queue send its bytes now.
    #[inline]
    pub(super) fn is_due(&self, header: &Header) -> bool {
        let is_long = self.pieces.len() >= PIECES_AT_ONCE || self.lacks_room;
        !header.is_acknowledged() || self.is_word_due() || is_long
    }

    /// The same for the put of a word, before which no large data are.
    #[inline]
    pub(super) fn is_word_due(&self) -> bool {
        let are_few = self.started.wrapping_sub(self.acknowledged) <= AT_ONCE;
        are_few || self.batch.len() - self.sent >= BATCH_BYTES
    }

    /// Whether a frame with large data at their source waits for others.
    fn waits(&mut self, header: &Header, bytes: usize) -> bool {
        let is_behind_repeated = matches!(self.pieces.front(), Some(Piece::Repeated { .. }));
        if bytes >= ALONE_BYTES || self.socket.is_none() || is_behind_repeated {
            return false;
        }
        match header.kind {
            Kind::Put => !self.is_due(header) && self.series.waits(Instant::now()),
            // The replies to all gets that have come are sent together.
            Kind::Reply => self.pieces.len() < PIECES_AT_ONCE,
            _ => false,
        }
    }

    /// Adds the data of a frame whose header and operands were added.
    ///
    /// # Safety
    /// As [`push`](SendQueue::push).
    #[cold]
    unsafe fn push_large(&mut self, header: &Header, data: Data, source: Source) -> io::Result<()> {
        self.end_run();
        let waits = matches!(source, Source::Stays(_)) && self.waits(header, data.bytes);
        let (mut sent, mut outcome) = (0, Ok(()));
        // If there is no room, the caller tries again to send all of it.
        let socket = self.socket.filter(|_| !waits && !self.lacks_room);
        if let Some(socket) = socket {
            outcome = self.flush_pieces(socket).map(drop);
        }
        if let Some(socket) = socket.filter(|_| self.pieces.is_empty()) {
            self.streamed = self.started;
            let gathered = &self.batch[self.sent..];
            let parts =
                [socket::part(gathered.as_ptr(), gathered.len()), socket::part(data.start, data.bytes)];
            // SAFETY: the first part lies in the own batch, and the caller has promised the data.
            match unsafe { stream::send(socket, &mut self.sealer, &parts) } {
                Ok(Moved::Bytes(bytes)) => {
                    self.sent_bytes += bytes as u64;
                    if bytes < gathered.len() {
                        self.sent += bytes;
                    } else {
                        sent = bytes - gathered.len();
                        self.clear_batch();
                    }
                }
                Ok(Moved::Nothing | Moved::End) => {}
                // The data are queued all the same: another connection may take the place of this one.
                Err(error) => outcome = Err(error),
            }
            self.lacks_room = sent < data.bytes;
            self.series.has_sent(Instant::now());
        }
        // SAFETY: the rest lies inside the data, as no more of them than there are was sent.
        let (start, bytes) = unsafe { (data.start.add(sent), data.bytes - sent) };
        match source {
            Source::Stays(Some((completions, token))) if bytes == 0 => completions.push(Entry::Sent(token)),
            _ if bytes == 0 => {}
            Source::Stays(owner) => {
                self.close_batch();
                self.pieces.push_back(Piece::AtSource { start, bytes, owner });
            }
            Source::Copied => {
                let place = self.batch.len();
                self.is_cut |= place == 0;
                self.batch.reserve(bytes);
                // SAFETY: the batch has room for the rest of the data, which the caller has promised.
                unsafe {
                    copy::copy(self.batch.as_mut_ptr().add(place), start, bytes);
                    self.batch.set_len(place + bytes);
                }
            }
        }
        outcome
    }

    /// Makes the queue independent of the memory of an endpoint that closes: it copies unsent data, and drops
    /// the data of replies.
    pub(super) fn detach(&mut self, completions: &Arc<CompletionQueue>) {
        for piece in &mut self.pieces {
            let Piece::AtSource { start, bytes: left, owner } = piece else { continue };
            if owner.as_ref().is_none_or(|(owner, _)| Arc::ptr_eq(owner, completions)) {
                let mut bytes = vec![0; *left];
                // SAFETY: the source is kept until now.
                unsafe { copy::copy(bytes.as_mut_ptr(), *start, *left) };
                self.copied_bytes += bytes.len();
                *piece = Piece::Copied { bytes, sent: 0 };
            }
        }
        for reply in self.replies.iter_mut().filter(|reply| Arc::ptr_eq(&reply.completions, completions)) {
            reply.target = std::ptr::null_mut();
        }
    }

    #[inline]
    fn clear_batch(&mut self) {
        self.batch.clear();
        self.sent = 0;
        self.is_cut = false;
        if self.batch.capacity() > KEPT_BYTES {
            self.give_batch_back();
        }
    }

    #[cold]
    fn give_batch_back(&mut self) {
        self.batch = Vec::new();
    }

    /// Removes the sent bytes of a batch that the connection has no room for, unless more bytes would be
    /// moved than that.
    #[cold]
    fn drop_sent(&mut self) {
        if self.sent >= BATCH_BYTES.max(self.batch.len() / 2) {
            self.batch.drain(..std::mem::take(&mut self.sent));
            self.is_cut = true;
        }
    }

    /// Makes a piece of the batch.
    fn close_batch(&mut self) {
        if self.sent < self.batch.len() {
            let unsent = &self.batch[self.sent..];
            self.copied_bytes += unsent.len();
            let (bytes, sent) = match unsent.len() {
                ..=COPIED_BYTES => (unsent.to_vec(), 0),
                _ => (std::mem::take(&mut self.batch), self.sent),
            };
            self.pieces.push_back(Piece::Copied { bytes, sent });
        }
        self.clear_batch();
    }

    /// Sends as much as the connection has room for. Returns whether that is all.
    #[inline]
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let Some(socket) = self.socket else { return Ok(!self.has_unsent()) };
        if self.datagrams.is_some() && self.flush_datagram() {
            self.lacks_room = false;
            return Ok(true);
        }
        if !self.pieces.is_empty() && !self.flush_pieces(socket)? {
            return Ok(false);
        }
        while self.sent < self.batch.len() {
            let gathered = &self.batch[self.sent..];
            // SAFETY: the part lies in the own batch, which does not change meanwhile.
            match unsafe {
                stream::send(socket, &mut self.sealer, &[socket::part(gathered.as_ptr(), gathered.len())])
            }? {
                Moved::Bytes(bytes) => {
                    self.sent += bytes;
                    self.sent_bytes += bytes as u64;
                }
                Moved::Nothing | Moved::End => {
                    self.drop_sent();
                    return Ok(false);
                }
            }
        }
        self.clear_batch();
        self.lacks_room = false;
        self.streamed = self.started;
        Ok(true)
    }

    #[cold]
    fn flush_pieces(&mut self, socket: RawFd) -> io::Result<bool> {
        let is_full = self.pieces.len() >= PIECES_AT_ONCE;
        self.series.end(Instant::now(), is_full);
        while !self.pieces.is_empty() {
            let mut parts = [socket::part(std::ptr::dangling(), 0); PIECES_AT_ONCE];
            for (part, piece) in parts.iter_mut().zip(&self.pieces) {
                let (start, bytes) = piece.unsent();
                *part = socket::part(start, bytes);
            }
            let parts = &parts[..self.pieces.len().min(PIECES_AT_ONCE)];
            // SAFETY: a copy lies here, and the owner of a source keeps it until it is sent.
            let moved = unsafe { stream::send(socket, &mut self.sealer, parts) }?;
            self.series.has_sent(Instant::now());
            self.lacks_room = !matches!(moved, Moved::Bytes(_));
            let Moved::Bytes(count) = moved else { return Ok(false) };
            self.take_sent(count);
        }
        give_back(&mut self.pieces);
        Ok(true)
    }

    /// Removes this number of bytes from the first pieces.
    fn take_sent(&mut self, mut unnoted: usize) {
        while let Some(piece) = self.pieces.front_mut().filter(|_| unnoted > 0) {
            let length = piece.unsent().1;
            let count = unnoted.min(length);
            unnoted -= count;
            let is_new = !matches!(piece, Piece::Repeated { .. });
            self.sent_bytes += if is_new { count as u64 } else { 0 };
            match piece {
                Piece::Repeated { sent, .. } => *sent += count,
                Piece::Copied { sent, .. } => {
                    *sent += count;
                    self.copied_bytes -= count;
                }
                Piece::AtSource { start, bytes, .. } => {
                    // SAFETY: no more bytes were sent than there are.
                    *start = unsafe { start.add(count) };
                    *bytes -= count;
                }
            }
            if count == length
                && let Some(Piece::AtSource { owner: Some((completions, token)), .. }) =
                    self.pieces.pop_front()
            {
                completions.push(Entry::Sent(token));
            }
        }
    }
}

/// Gives the memory of an empty list back, if it is much.
fn give_back<T>(list: &mut VecDeque<T>) {
    if list.is_empty() && list.capacity() * size_of::<T>() > KEPT_BYTES {
        *list = VecDeque::new();
    }
}

#[cfg(test)]
mod tests;
