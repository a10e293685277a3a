//! Messages that have arrived: they are matched, received or kept, and answered.

use super::envelope::{Context, Envelope};
use super::request::{Phase, Request, RequestId};
use super::state::{Answer, Exchange, Kept, Peer, State, Unexpected, units};
use super::wire::{ANNOUNCE_WORDS, Announcement, Home, Kind, Target};
use crate::Pe;
use crate::base::trace::Event;
use crate::coll::teams::Teams;
use crate::endpoint::HEAP_KEY;
use pelago_fabric::shm::fifo::{Consumer, INLINE_BYTES, Payload, Words};
use pelago_fabric::{CORRUPT_REMEDY, Remote};

/// Unsolicited messages of one PE that are taken at once.
const BATCH: usize = 64;

impl State {
    /// Takes the messages that have arrived from mapped PEs, and sends what waits to be sent to them.
    /// `is_wanted` if a probe wants more than this PE would keep, as a posted receive does. Once all posted
    /// receives have their messages, the others stay in the FIFOs, where the next receives find them: what is
    /// taken now would be copied twice. The result is a description of a message that no PE can have sent, if
    /// there is one.
    pub(super) fn poll(&mut self, world: &Teams, is_wanted: bool) -> Result<(), String> {
        self.note_contacts();
        let State { inputs, senders, exchange, .. } = self;
        let has_posted = exchange.matching.has_posted();
        for &from in senders.iter() {
            let Some([unsolicited, solicited]) = inputs.get_mut(from) else { continue };
            // Waits look often, and find most FIFOs empty.
            if solicited.has_message() {
                while take_next(solicited, exchange, world, from)? {}
            }
            for _ in 0..BATCH {
                let are_served = has_posted && !exchange.matching.has_posted() && !is_wanted;
                let is_taken = !are_served
                    && unsolicited.has_message()
                    && exchange.takes(from, is_wanted)
                    && take_next(unsolicited, exchange, world, from)?;
                if !is_taken {
                    break;
                }
            }
        }
        if !exchange.busy.is_empty() {
            exchange.flush_fifos();
        }
        if is_wanted || exchange.matching.has_posted() {
            exchange.allow_stalled();
        }
        Ok(())
    }

    /// Takes the answers that have come from mapped PEs, and sends what waits to be sent to them. A message
    /// that a receive is about to take directly stays where it is.
    pub(super) fn poll_solicited(&mut self, world: &Teams) -> Result<(), String> {
        self.note_contacts();
        let State { inputs, senders, exchange, .. } = self;
        for &from in senders.iter() {
            let Some([_, solicited]) = inputs.get_mut(from) else { continue };
            while solicited.has_message() && take_next(solicited, exchange, world, from)? {}
        }
        if !exchange.busy.is_empty() {
            exchange.flush_fifos();
        }
        Ok(())
    }

    /// Takes messages of a mapped PE that have come, while receives are posted and there is room to keep
    /// them. After that a new receive often finds none posted before it, and need not be posted. A long
    /// message stays where it is until this PE makes progress: it would be copied now, before this PE has
    /// started its own sends, for which the other one waits.
    #[inline]
    pub(super) fn take_for_posted(&mut self, world: &Teams, from: Pe) -> Result<(), String> {
        let State { inputs, exchange, .. } = self;
        let Some([unsolicited, _]) = inputs.get_mut(from) else { return Ok(()) };
        for _ in 0..BATCH {
            let peer = &exchange.peers[from];
            let has_room = peer.arrived - peer.matched < exchange.kept_max;
            let goes_on = has_room && exchange.matching.has_posted() && !is_long_next(unsolicited);
            if !goes_on || !take_next(unsolicited, exchange, world, from)? {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the next message of a FIFO announces a long one.
#[inline]
fn is_long_next(fifo: &mut Consumer<'_>) -> bool {
    let Ok(Some(([first, _], _))) = fifo.oldest() else { return false };
    matches!(Kind::of(first), Some((Kind::Announce, _)))
}

/// Takes the next message of a PE's FIFO. Returns whether there was one.
fn take_next(
    fifo: &mut Consumer<'_>,
    exchange: &mut Exchange,
    world: &Teams,
    from: Pe,
) -> Result<bool, String> {
    let mut invalid = None;
    let taken = fifo.receive(|words, payload| {
        if exchange.take(world, from, words, payload).is_none() {
            invalid = Some(words);
        }
        true
    });
    match (taken, invalid) {
        (Err(corrupt), _) => Err(corrupt_text(from, &corrupt)),
        (_, Some(words)) => Err(invalid_text(from, words)),
        (Ok(is_taken), None) => {
            if is_taken && fifo.has_freed_part() {
                exchange.wake(from);
            }
            Ok(is_taken)
        }
    }
}

fn invalid_text(from: Pe, [first, second]: Words) -> String {
    format!("a message of PE {from} makes no sense here (words {first:#x} and {second:#x}). {CORRUPT_REMEDY}")
}

fn corrupt_text(from: Pe, what: &dyn std::fmt::Display) -> String {
    format!("the FIFO of messages of PE {from} is corrupt: {what}. {CORRUPT_REMEDY}")
}

impl Exchange {
    /// Takes a message. `None` if no PE can have sent it.
    pub(super) fn take(
        &mut self,
        world: &Teams,
        from: Pe,
        [first, second]: Words,
        payload: &Payload<'_>,
    ) -> Option<()> {
        self.arrived += 1;
        let (kind, value) = Kind::of(first)?;
        let envelope = || {
            let tag = u32::try_from(value).ok()?;
            Some(Envelope { context: Context(second), source: from as u32, tag })
        };
        match kind {
            Kind::Eager => {
                self.record(world, from, payload.len());
                self.take_eager(from, envelope()?, (payload, 0), None)
            }
            Kind::Matched => {
                self.record(world, from, payload.len().checked_sub(8)?);
                let [send] = payload.words::<1>();
                self.take_eager(from, envelope()?, (payload, 8), Some(send))
            }
            Kind::Announce => {
                let announcement = Announcement::from_words(payload.words::<ANNOUNCE_WORDS>())?;
                let envelope = envelope()?;
                self.record(world, from, announcement.bytes);
                let posted = self.matching.take_posted(&envelope);
                let peer = &mut self.peers[from];
                peer.arrived += units(0);
                match posted {
                    Some(id) => {
                        peer.matched += units(0);
                        self.receive_long(world, id, envelope, announcement)?;
                    }
                    None => self.matching.keep(envelope, Unexpected::Announced(announcement)),
                }
                Some(())
            }
            Kind::Accept => {
                let [room, key, offset] = payload.words::<3>();
                let target = Target::from_words([key, offset])?;
                self.note_accepted(from, RequestId::from_code(value), second, (room as usize, target))
            }
            Kind::Written => self.note_written(from, RequestId::from_code(value)),
            Kind::Data => self.take_piece(from, RequestId::from_code(value), payload),
            Kind::Finished => {
                let id = RequestId::from_code(value);
                self.requests.find(id).filter(|send| send.phase == Phase::Sent && send.pe == from)?;
                self.complete(id);
                Some(())
            }
            Kind::Ask => {
                self.answer(from, Answer::new(Kind::Last, 0, 0));
                Some(())
            }
            Kind::Last => {
                self.peers[from].has_sent_all = true;
                Some(())
            }
            Kind::Allow => {
                self.note_allowed(from, second);
                Some(())
            }
            Kind::Share => self.help(world, (from, RequestId::from_code(value)), payload.words::<3>()),
        }
    }

    /// Takes note of how many units of unsolicited messages a PE takes of this one in all.
    fn note_allowed(&mut self, from: Pe, count: u64) {
        let peer = &mut self.peers[from];
        peer.allowed = peer.allowed.max(count);
        if !peer.waiting.is_empty() {
            self.note_busy(from);
        }
    }

    /// Records the arrival of a message that counts as the next of its sender.
    #[inline]
    fn record(&mut self, world: &Teams, from: Pe, bytes: usize) {
        world.tally.note(|| {
            let peer = &mut self.peers[from];
            peer.recorded_arrivals += 1;
            Event::arrival("arrival", (from, self.me), peer.recorded_arrivals - 1, bytes)
        });
    }

    /// Records the arrival of a message that was received without this.
    #[cold]
    #[inline(never)]
    pub(super) fn record_direct(&mut self, world: &Teams, (from, bytes): (Pe, usize)) {
        self.record(world, from, bytes);
        let peer = &mut self.peers[from];
        peer.arrived += 1;
        peer.matched += 1;
    }

    /// Takes an eager message, whose data follow `skipped` bytes of the payload.
    #[inline]
    fn take_eager(
        &mut self,
        from: Pe,
        envelope: Envelope,
        (payload, skipped): (&Payload<'_>, usize),
        send: Option<u64>,
    ) -> Option<()> {
        let bytes = payload.len() - skipped;
        let posted = self.matching.take_posted(&envelope);
        let peer = &mut self.peers[from];
        peer.arrived += units(bytes);
        let Some(id) = posted else {
            self.keep(envelope, (payload, skipped), send);
            return Some(());
        };
        let request = self.requests.get(id);
        let copied = bytes.min(request.room);
        // SAFETY: the caller of the receive keeps its room valid, and the payload has as many bytes.
        unsafe { request.store_payload(0, payload, skipped, copied) };
        self.peers[from].matched += units(bytes);
        self.has_received(id, envelope, bytes);
        if let Some(send) = send {
            self.finish_send(from, send);
        }
        Some(())
    }

    /// A receive has the data of an eager message.
    #[inline(always)]
    fn has_received(&mut self, id: RequestId, envelope: Envelope, bytes: usize) {
        let request = self.requests.get(id);
        (request.envelope, request.bytes) = (envelope, bytes);
        request.finish();
        self.completed += 1;
    }

    /// Keeps an eager message that no receive has asked for.
    #[cold]
    fn keep(&mut self, envelope: Envelope, (payload, skipped): (&Payload<'_>, usize), send: Option<u64>) {
        let bytes = payload.len() - skipped;
        let data = if bytes <= INLINE_BYTES {
            let mut short = [0; INLINE_BYTES];
            // SAFETY: the array has room for a short message.
            unsafe { payload.copy_to(short.as_mut_ptr(), skipped, bytes) };
            Kept::Short(short, bytes)
        } else {
            let mut long = Vec::with_capacity(bytes);
            // SAFETY: the vector has room for the bytes, which are written before its length says so.
            unsafe {
                payload.copy_to(long.as_mut_ptr(), skipped, bytes);
                long.set_len(bytes);
            }
            Kept::Long(long.into())
        };
        self.matching.keep(envelope, Unexpected::Eager { data, send });
    }

    /// Receives an unexpected message, which no queue has any more. `None` if it is not valid.
    pub(super) fn receive_kept(
        &mut self,
        world: &Teams,
        id: RequestId,
        envelope: Envelope,
        message: Unexpected,
    ) -> Option<()> {
        let from = envelope.source as Pe;
        match message {
            Unexpected::Announced(announcement) => self.receive_long(world, id, envelope, announcement),
            Unexpected::Eager { data, send } => {
                let (bytes, request) = (data.bytes(), self.requests.get(id));
                let copied = bytes.len().min(request.room);
                // SAFETY: the caller of the receive keeps its room valid, and the message has as many bytes.
                unsafe { request.store(0, bytes.as_ptr(), copied) };
                let length = bytes.len();
                self.has_received(id, envelope, length);
                if let Some(send) = send {
                    self.finish_send(from, send);
                }
                Some(())
            }
        }
    }

    /// Receives an announced message: from the sender's memory if this PE can read it, else in pieces.
    fn receive_long(
        &mut self,
        world: &Teams,
        id: RequestId,
        envelope: Envelope,
        announcement: Announcement,
    ) -> Option<()> {
        let Announcement { send, bytes, home } = announcement;
        let from = envelope.source as Pe;
        let in_exchange = self.has_announced();
        self.cma.set_in_exchange(in_exchange);
        let request = self.requests.get(id);
        (request.envelope, request.bytes, request.pe) = (envelope, bytes, from);
        let wanted = bytes.min(request.room);
        // Nothing is read of a message that has no room.
        if wanted == 0 || self.read(world, (from, send), home, (id, wanted))? {
            self.complete(id);
            self.finish_send(from, send);
            return Some(());
        }
        let request = self.requests.get(id);
        (request.phase, request.moved) = (Phase::Arriving, 0);
        let is_packed = request.packing.is_some() || home == Home::Packed;
        let Peer { arriving, out, is_readable, .. } = &self.peers[from];
        let can_be_read = *is_readable && out.is_some() && world.pid_of(from).is_some();
        let is_alone = !is_packed && *arriving == 0 && can_be_read;
        self.cma.note_asked(id, wanted, is_alone);
        self.peers[from].arriving += 1;
        self.accept(from, (send, id), wanted);
        Some(())
    }

    /// Reads the data of an announced message from the sender's memory. Returns whether it could; `None` if
    /// the sender has no such memory.
    fn read(
        &mut self,
        world: &Teams,
        (from, send): (Pe, u64),
        home: Home,
        (id, bytes): (RequestId, usize),
    ) -> Option<bool> {
        let is_own = from == self.me;
        if !is_own && self.peers[from].out.is_none() {
            return Some(false);
        }
        match home {
            Home::Symmetric(offset) => {
                let offset = usize::try_from(offset).ok()?;
                offset.checked_add(bytes).filter(|&end| end <= world.memory.region_bytes())?;
                // SAFETY: the range lies in the sender's region, which is mapped here; the caller of the
                // receive keeps its room valid.
                unsafe { self.requests.get(id).store(0, world.memory.heap(from).add(offset), bytes) };
                Some(true)
            }
            Home::Packed => Some(false),
            Home::Private(address) => {
                let pid = if is_own { Some(std::process::id()) } else { world.pid_of(from) };
                if pid == Some(std::process::id()) {
                    // A sender that has failed is closed, and has perhaps freed its data. The job fails.
                    let Some(_reading) = world.read_private(from) else { return Some(false) };
                    // SAFETY: the sender is a thread of this process, or this PE. It keeps its data valid
                    // until it hears that they were read, and does not close during this copy; the caller of
                    // the receive keeps its room valid.
                    unsafe { self.requests.get(id).store(0, address as *const u8, bytes) };
                    return Some(true);
                }
                let peer = &self.peers[from];
                let Some(pid) = pid.filter(|_| peer.is_readable) else { return Some(false) };
                let request = self.requests.get(id);
                if !self.cma.reads(bytes, request.packing.is_none() && peer.arriving == 0) {
                    return Some(false);
                }
                let (target, packing) = (request.buffer, request.packing.take());
                // SAFETY: the caller of the receive keeps its room valid.
                let is_read = unsafe {
                    match &packing {
                        None => self.read_timed((from, send), (pid, address), (target, bytes)),
                        Some(packing) => self.read_and_unpack((pid, address), &**packing, bytes),
                    }
                };
                self.requests.get(id).packing = packing;
                self.peers[from].is_readable = is_read;
                Some(is_read)
            }
        }
    }

    /// As [`read_process`](Exchange::read_process). The first reads are timed.
    ///
    /// # Safety
    /// `target` is valid for writes of `bytes` bytes.
    unsafe fn read_timed(
        &mut self,
        message: (Pe, u64),
        from: (u32, u64),
        (target, bytes): (*mut u8, usize),
    ) -> bool {
        let start = self.cma.start_read(bytes);
        // SAFETY: the caller guarantees the target.
        let is_read = unsafe { self.read_process(message, from, (target, bytes)) };
        // A refusal says nothing about the speed.
        if is_read {
            self.cma.note_read(bytes, start);
        }
        is_read
    }

    /// Tells a sender that its message was received, or matched.
    fn finish_send(&mut self, pe: Pe, send: u64) {
        let answer = Answer::new(Kind::Finished, send, 0);
        if pe == self.me {
            let id = RequestId::from_code(send);
            if self.requests.find(id).is_some() {
                self.complete(id);
            }
            return;
        }
        self.answer(pe, answer);
    }

    /// The receiver of an announced message asks for its data.
    fn note_accepted(
        &mut self,
        from: Pe,
        id: RequestId,
        receive: u64,
        (room, target): (usize, Target),
    ) -> Option<()> {
        let send = self.requests.find(id).filter(|send| send.phase == Phase::Sent && send.pe == from)?;
        (send.partner, send.asked, send.moved, send.target) = (receive, room, 0, target);
        if room > send.room {
            return None;
        }
        if room == 0 {
            self.complete(id);
            return Some(());
        }
        send.phase = Phase::Pushing;
        self.peers[from].pushing.push_back(id);
        self.note_busy(from);
        Some(())
    }

    /// Asks for the data of an announced message: in pieces, or over a network in the buffer itself.
    fn accept(&mut self, from: Pe, (send, id): (u64, RequestId), wanted: usize) {
        let mut answer = Answer::accept(send, id, wanted, Target::Pieces);
        let request = self.requests.get(id);
        let (buffer, is_packed) = (request.buffer, request.packing.is_some());
        if self.peers[from].out.is_none() && !is_packed {
            match Exchange::home((buffer, wanted), self.region) {
                Home::Symmetric(offset) => {
                    let memory = Remote { key: HEAP_KEY, offset_bytes: offset as usize };
                    answer = Answer::accept(send, id, wanted, Target::Memory(memory));
                }
                // The buffer is exposed when the answer is sent.
                _ => answer.exposes = Some(id),
            }
        }
        self.answer(from, answer);
    }

    /// All data of a message were put to a receive's buffer, which is concealed if it was exposed.
    fn note_written(&mut self, from: Pe, id: RequestId) -> Option<()> {
        let is_open = |request: &&mut Request| request.phase == Phase::Arriving && request.pe == from;
        let request = self.requests.find(id).filter(is_open)?;
        self.peers[from].arriving -= 1;
        match request.target {
            Target::Pieces => self.complete(id),
            Target::Memory(_) => {
                request.phase = Phase::Put;
                self.written.push(id);
            }
        }
        Some(())
    }

    /// Takes the next piece of a message.
    fn take_piece(&mut self, from: Pe, id: RequestId, payload: &Payload<'_>) -> Option<()> {
        let is_open = |request: &&mut Request| request.phase == Phase::Arriving && request.pe == from;
        let request = self.requests.find(id).filter(is_open)?;
        let (wanted, bytes) = (request.bytes.min(request.room), payload.len());
        let moved = request.moved.checked_add(bytes).filter(|&moved| moved <= wanted)?;
        // SAFETY: the caller of the receive keeps its room valid, in which the piece lies.
        unsafe { request.store_payload(request.moved, payload, 0, bytes) };
        request.moved = moved;
        if moved == wanted {
            self.peers[from].arriving -= 1;
            self.cma.note_arrived(id);
            self.complete(id);
        }
        Some(())
    }
}
