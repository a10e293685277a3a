//! The state of two-sided messages of a PE.
//!
//! Invariant: one lock protects all of it, and no call of the network is made while it is held: the network
//! delivers messages under its own lock, and takes this one then.

use super::cma::{self, Cma};
use super::envelope::Envelope;
use super::matching::Matching;
use super::peers::Peers;
use super::request::{Phase, Request, RequestId, Requests, Status};
use super::wire::{Announcement, Kind, Target, eager_words};
use crate::Pe;
use crate::coll::teams::Teams;
use pelago_boot::Settings;
use pelago_fabric::biased::BiasedLock;
use pelago_fabric::lazy::LazyTable;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::cooperative::SharedCopy;
use pelago_fabric::shm::doorbell::Doorbell;
use pelago_fabric::shm::fifo::{Consumer, INLINE_BYTES, Producer, Words};
use pelago_fabric::sync::{self, AtomicU64, Ordering};
use pelago_fabric::{copy, fence};
use std::collections::VecDeque;
use std::mem::transmute;
use std::sync::{Arc, OnceLock};

/// Bytes of the longest eager message, unless a setting says otherwise.
const EAGER_BYTES: usize = 16 << 10;
/// The same on a node where reads of another process's memory are slow. Messages that are longer than
/// [`EAGER_BYTES`] and find no room in the FIFO are announced.
const LONG_EAGER_BYTES: usize = 32 << 10;
/// The same over a network, where the answer that a longer message waits for takes longer than a copy.
const NET_EAGER_BYTES: usize = 64 << 10;
/// Bytes of a unit in which the memory for unexpected messages is counted. A message without data takes one:
/// its envelope, and its places in the queues.
const UNIT_BYTES: usize = 128;
/// Looks for the next chunk of a message that is being written. Its sender may have lost its core.
const CHUNK_LOOKS: u32 = 200;
/// The least number of units that a PE keeps of each other one.
const KEPT_MIN: u64 = 8;

/// The units of an unsolicited message with as many bytes of data. Sender and receiver count alike.
pub(super) fn units(bytes: usize) -> u64 {
    1 + (bytes / UNIT_BYTES) as u64
}

/// The messages of a PE, once it has sent or received one.
pub struct MsgState {
    state: OnceLock<BiasedLock<State>>,
    pub(super) limits: Limits,
}

/// The thresholds of the protocols.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the longest eager message, if a setting says it.
    pub eager_limit: Option<usize>,
    /// Bytes of the messages that a PE keeps at most before a receive asks for them.
    pub unexpected_bytes: usize,
    /// Whether the memory of other processes is read by a system call; `None`: where that is faster.
    pub single_copy: Option<bool>,
}

/// Bytes of the longest eager messages: to other processes of the node, over a network, and within the
/// process. The last holds for messages to other processes as well that have found no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct EagerBytes {
    pub(super) node: usize,
    pub(super) net: usize,
    pub(super) process: usize,
}

impl EagerBytes {
    /// Those of a PE, which may exchange messages with other processes of its node.
    fn new(limits: Limits, has_others: bool) -> EagerBytes {
        if let Some(bytes) = limits.eager_limit {
            return EagerBytes { node: bytes, net: bytes, process: bytes };
        }
        // Nothing is read if the settings forbid it.
        let are_slow = || limits.single_copy == Some(false) || cma::are_reads_slow(LONG_EAGER_BYTES);
        let node = if has_others && are_slow() { LONG_EAGER_BYTES } else { EAGER_BYTES };
        EagerBytes { node, net: NET_EAGER_BYTES, process: EAGER_BYTES }
    }
}

impl MsgState {
    /// Bytes that the tables of peers reserve in a job of `n_pes` PEs, from the first message on.
    pub const fn reserved_bytes(n_pes: usize) -> usize {
        LazyTable::<Peer>::reserved_bytes(n_pes) + LazyTable::<Inputs>::reserved_bytes(n_pes)
    }

    /// Bytes of a peer, from the first message to it or from it on; bytes for each PE of the node, from the
    /// first message of this PE on: the FIFOs in which it receives, and a place in the list of those PEs.
    pub const fn peer_bytes() -> [usize; 2] {
        let of_node = LazyTable::<Inputs>::entry_bytes() + size_of::<(Pe, usize)>() + size_of::<Pe>();
        [LazyTable::<Peer>::entry_bytes(), of_node]
    }

    /// The number of PEs to which or from which a message has been under way.
    pub fn n_contacts(&self) -> usize {
        self.state.get().map_or(0, |state| state.lock().exchange.peers.made())
    }

    pub fn new(settings: &Settings) -> MsgState {
        let limits = Limits {
            eager_limit: settings.eager_limit,
            unexpected_bytes: settings.unexpected_memory,
            single_copy: settings.single_copy,
        };
        // To register the process for it takes least now, before the job has threads.
        fence::is_available();
        MsgState { state: OnceLock::new(), limits }
    }

    /// The state, which is made when it is first asked for.
    #[inline]
    pub(super) fn get(&self, world: &Teams) -> &BiasedLock<State> {
        self.state.get_or_init(|| {
            let state = BiasedLock::new(State::new(world, self.limits));
            // From now on waits make progress on messages.
            world.uses_messages.store(true, Ordering::Relaxed);
            state
        })
    }

    /// The state, if it was made.
    #[inline]
    pub(super) fn get_if_open(&self) -> Option<&BiasedLock<State>> {
        self.state.get()
    }
}

/// All of it.
pub(super) struct State {
    /// The FIFOs in which this PE receives from each PE that is mapped: unsolicited and solicited messages.
    pub(super) inputs: LazyTable<Inputs>,
    /// The mapped PEs that have sent something.
    pub(super) senders: Vec<Pe>,
    contacts: Contacts,
    pub(super) exchange: Exchange,
}

/// The exchange with the other PEs, but for the FIFOs in which this PE receives.
pub(super) struct Exchange {
    pub(super) me: Pe,
    pub(super) matching: Matching<RequestId, Unexpected>,
    pub(super) requests: Requests,
    pub(super) peers: Peers,
    /// The peers for which something waits to be sent.
    pub(super) busy: VecDeque<Pe>,
    /// Whether a thread sends over the network what waits for it.
    pub(super) is_flushing: bool,
    /// Bytes of the longest eager message to a PE of the node that has found no room.
    pub(super) queued_eager_bytes: usize,
    /// Which long messages are read from the memory of their sender's process.
    pub(super) cma: Cma,
    /// The state of copies that their senders share, unless PEs of this node share cores; and their number.
    pub(super) own_copy: Option<&'static SharedCopy>,
    pub(super) copies: u32,
    /// The last long send that was announced.
    pub(super) announced: Option<RequestId>,
    /// The parts of its messages that this PE has written to their receivers.
    pub(super) helped_parts: u64,
    /// Sends whose data are being put, and receives whose buffers are to be concealed.
    pub(super) putting: Vec<RequestId>,
    pub(super) written: Vec<RequestId>,
    /// PEs of the network that may send nothing more, perhaps.
    pub(super) stalled: Vec<Pe>,
    /// Requests that have completed, and messages that have arrived, so far.
    pub(super) completed: u64,
    pub(super) arrived: u64,
    /// The units of unsolicited messages that this PE keeps of each other one.
    pub(super) kept_max: u64,
    /// This PE's part of symmetric memory: its start and its length in bytes.
    pub(super) region: Region,
    /// Bytes of a piece of a long message over the network.
    pub(super) piece_bytes: usize,
    /// Bytes of the longest put.
    pub(super) transfer_bytes: usize,
    /// Where a message for the network is put together.
    pub(super) scratch: Vec<u8>,
    _segment: Arc<Segment>,
}

/// The range of this PE's region; it is only compared with.
#[derive(Clone, Copy)]
pub(super) struct Region(pub(super) *mut u8, pub(super) usize);

// SAFETY: the address is never accessed.
unsafe impl Send for Region {}

/// The FIFOs of unsolicited and of solicited messages from a PE.
pub(super) type Inputs = [Consumer<'static>; 2];

/// Which PEs of the node have sent something through a FIFO.
struct Contacts {
    words: &'static [AtomicU64],
    seen: Box<[u64]>,
    /// The PE of each slot of the node.
    pes: Box<[Pe]>,
}

/// Another PE, or this one.
pub(super) struct Peer {
    /// The FIFOs to it, if it is mapped.
    pub(super) out: Option<Out>,
    /// Bytes of the longest eager message to it.
    pub(super) eager_bytes: usize,
    /// Messages of fewer bytes take the fast path: none, while messages are recorded.
    pub(super) fast_below: usize,
    /// Unsolicited messages to it, and from it, that were recorded.
    pub(super) recorded: u64,
    pub(super) recorded_arrivals: u64,
    /// Whether its memory can be read by a system call, as far as is known.
    pub(super) is_readable: bool,
    /// Whether it can write this PE's memory by a system call, as far as is known.
    pub(super) is_writable: bool,
    /// Sends whose first message waits for room, in order.
    pub(super) waiting: VecDeque<RequestId>,
    /// Solicited messages that wait for room.
    pub(super) answers: VecDeque<Answer>,
    /// Sends whose data are being sent in pieces.
    pub(super) pushing: VecDeque<RequestId>,
    pub(super) is_busy: bool,
    /// Units of the unsolicited messages that have come from it, and of those that are not kept any more. On
    /// a node, messages that are never kept count as one each.
    pub(super) arrived: u64,
    pub(super) matched: u64,
    /// Over a network: units of the unsolicited messages that were sent to it, and how many may be; and how
    /// many it may send, as it was told. A message that begins below the limit may exceed it.
    pub(super) sent: u64,
    pub(super) allowed: u64,
    pub(super) told: u64,
    /// Receives that have a message of it, whose data are to come in pieces.
    pub(super) arriving: usize,
    /// Whether it was asked to say that it has sent all, and whether it has said so.
    pub(super) is_asked: bool,
    pub(super) has_sent_all: bool,
}

/// A short solicited message.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) words: Words,
    payload: [u64; 3],
    len: u8,
    /// The receive whose buffer is to be exposed before it is sent.
    pub(super) exposes: Option<RequestId>,
}

impl Answer {
    /// A message without a payload.
    pub(super) fn new(kind: Kind, value: u64, second: u64) -> Answer {
        Answer { words: [kind.with(value), second], payload: [0; 3], len: 0, exposes: None }
    }

    /// The acceptance of an announced message.
    pub(super) fn accept(send: u64, receive: RequestId, wanted: usize, target: Target) -> Answer {
        let [key, offset] = target.words();
        let words = [Kind::Accept.with(send), receive.code()];
        Answer { words, payload: [wanted as u64, key, offset], len: 3, exposes: None }
    }

    /// A request for help with the copy of a message to this place.
    pub(super) fn share(send: u64, (target, bytes): (*mut u8, usize), round: u32) -> Answer {
        let payload = [bytes as u64, target as u64, round.into()];
        Answer { words: [Kind::Share.with(send), 0], payload, len: 3, exposes: None }
    }

    /// Names the memory in which the data of an accepted message are wanted.
    pub(super) fn set_target(&mut self, target: Target) {
        self.payload[1..].copy_from_slice(&target.words());
        self.exposes = None;
    }

    pub(super) fn payload(&self) -> &[u64] {
        &self.payload[..usize::from(self.len)]
    }
}

/// The FIFOs to a PE.
pub(super) struct Out {
    pub(super) fifos: [Producer<'static>; 2],
    doorbell: &'static Doorbell,
    /// The state of the copies of messages to it.
    pub(super) copy: &'static SharedCopy,
    /// This PE's bit in the peer's set of contacts.
    contact: (&'static AtomicU64, u64),
    has_sent: bool,
}

/// The numbers of the two FIFOs.
pub(super) const UNSOLICITED: usize = 0;
pub(super) const SOLICITED: usize = 1;

impl Out {
    /// The FIFOs to the PE in the slot `to` of the node's memory, from that in the slot `own`.
    pub(super) fn new(segment: &'static Segment, to: usize, own: usize) -> Out {
        let mut fifos = segment.fifos(own, to).map(|fifo| fifo.producer());
        fifos[UNSOLICITED].set_reverse(segment.fifos(to, own)[UNSOLICITED]);
        Out {
            fifos,
            doorbell: &segment.blocks()[to].doorbell,
            copy: &segment.blocks()[to].copy,
            contact: (&segment.contacts(to)[own / 64], 1 << (own % 64)),
            has_sent: false,
        }
    }

    /// Lets the receiver know that this PE sends something.
    #[inline(always)]
    pub(super) fn greet(&mut self) -> &'static Doorbell {
        if !self.has_sent {
            self.has_sent = true;
            self.contact.0.fetch_or(self.contact.1, Ordering::Relaxed);
        }
        self.doorbell
    }

    /// Wakes the peer, if it sleeps because a FIFO in which this PE receives had no room for its messages.
    #[cold]
    pub(super) fn wake(&self) {
        // SYNC POINT doorbell: orders the freed room before the look at the sender's announcement.
        sync::fence(Ordering::SeqCst);
        self.doorbell.ring_all();
    }

    /// Wakes the receiver of a message that was sent if it sleeps. One that is just about to sleep may miss
    /// it: there is no fence.
    pub(super) fn hint(&mut self) {
        self.greet();
        if self.doorbell.has_sleepers() {
            self.doorbell.ring_all();
        }
    }

    /// Makes a message that was sent known to its receiver.
    pub(super) fn notify(&mut self) {
        self.greet();
        // SYNC POINT doorbell: orders the message before the look at the receiver's announcement.
        sync::fence(Ordering::SeqCst);
        if self.doorbell.has_sleepers() {
            self.doorbell.ring_all();
        }
    }
}

/// A message that no receive has asked for yet.
pub enum Unexpected {
    /// Its data, and the sender's request if the sender waits for the match.
    Eager { data: Kept, send: Option<u64> },
    /// Its data are still at the sender.
    Announced(Announcement),
}

/// The data of an unexpected message.
pub enum Kept {
    Short([u8; INLINE_BYTES], usize),
    Long(Box<[u8]>),
}

impl Kept {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Kept::Short(bytes, len) => &bytes[..*len],
            Kept::Long(bytes) => bytes,
        }
    }
}

impl Unexpected {
    /// The units that keep it.
    pub(super) fn units(&self) -> u64 {
        match self {
            Unexpected::Eager { data, .. } => units(data.bytes().len()),
            Unexpected::Announced(_) => units(0),
        }
    }

    /// The length of the message in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Unexpected::Eager { data, .. } => data.bytes().len(),
            Unexpected::Announced(announcement) => announcement.bytes,
        }
    }
}

/// Whether the PEs with these slots are threads of one process.
pub(super) fn are_of_one_process(segment: &Segment, slots: [usize; 2]) -> bool {
    let [left, right] =
        slots.map(|slot| segment.blocks()[slot].process.each_ref().map(|word| word.load(Ordering::Relaxed)));
    left == right
}

impl State {
    fn new(world: &Teams, limits: Limits) -> State {
        let (memory, me, n_pes) = (&world.memory, world.my_pe(), world.n_pes());
        let segment = Arc::clone(memory.segment());
        // SAFETY: only the lifetime changes: the segment is kept beside what borrows from it.
        let shared = unsafe { transmute::<&Segment, &'static Segment>(&*segment) };
        let own = memory.slot(me);
        let mut pes = vec![0; memory.blocks().len()];
        for (pe, slot) in (0..n_pes).filter_map(|pe| Some((pe, memory.slot(pe)?))) {
            pes[slot] = pe;
        }
        let mapped = (0..).zip(&pes).filter(|&(_, &pe)| memory.is_mapped(pe));
        let mapped: Box<[(Pe, usize)]> = mapped.map(|(slot, &pe)| (pe, slot)).collect();
        let inputs = LazyTable::new(n_pes);
        for &(pe, from) in mapped.iter().filter(|&&(pe, _)| pe != me) {
            let to = own.expect("a PE that maps others has a slot beside theirs");
            inputs.get_or_make(pe, |_| shared.fifos(from, to).map(|fifo| fifo.consumer()));
        }
        let is_other = |slot: usize| own.is_some_and(|own| !are_of_one_process(shared, [slot, own]));
        let eager_bytes = EagerBytes::new(limits, mapped.iter().any(|&(_, slot)| is_other(slot)));
        let kept = limits.unexpected_bytes / n_pes / UNIT_BYTES;
        let kept_max = (kept as u64).max(KEPT_MIN);
        let has_own_core = memory.blocks().len() <= world.cores;
        let words = own.map_or(&[][..], |own| shared.contacts(own));
        State {
            inputs,
            senders: Vec::new(),
            contacts: Contacts { words, seen: vec![0; words.len()].into(), pes: pes.into() },
            exchange: Exchange {
                me,
                matching: Matching::default(),
                requests: Requests::default(),
                peers: Peers::new(world, shared, mapped, (limits, eager_bytes)),
                busy: VecDeque::new(),
                is_flushing: false,
                queued_eager_bytes: eager_bytes.process,
                cma: Cma::new(limits.single_copy),
                own_copy: own.filter(|_| has_own_core).map(|own| &*shared.blocks()[own].copy),
                copies: 0,
                announced: None,
                helped_parts: 0,
                putting: Vec::new(),
                written: Vec::new(),
                stalled: Vec::new(),
                completed: 0,
                arrived: 0,
                kept_max,
                region: Region(memory.heap(me), memory.region_bytes()),
                piece_bytes: world.net.as_ref().map_or(0, |net| net.message_bytes()),
                transfer_bytes: world.net.as_ref().map_or(0, |net| net.limits.transfer_bytes),
                scratch: Vec::new(),
                _segment: segment,
            },
        }
    }

    /// Takes note of PEs that have sent their first message.
    #[inline]
    pub(super) fn note_contacts(&mut self) {
        for (word, seen) in self.contacts.words.iter().zip(&self.contacts.seen) {
            if word.load(Ordering::Relaxed) != *seen {
                return self.add_senders();
            }
        }
    }

    #[cold]
    fn add_senders(&mut self) {
        let Contacts { words, seen, pes } = &mut self.contacts;
        for (i, word) in words.iter().enumerate() {
            let now = word.load(Ordering::Relaxed);
            let mut new = now & !std::mem::replace(&mut seen[i], now);
            while new != 0 {
                let slot = 64 * i + new.trailing_zeros() as usize;
                new &= new - 1;
                // Any PE can write any bit.
                let pe = pes.get(slot).copied().filter(|&pe| self.inputs.get(pe).is_some());
                self.senders.extend(pe.filter(|pe| !self.senders.contains(pe)));
            }
        }
    }

    /// Whether solicited messages have come, or something waits to be sent.
    #[inline(always)]
    pub(super) fn has_other_work(&self) -> bool {
        let is_solicited =
            |&pe: &Pe| self.inputs.get(pe).is_some_and(|[_, solicited]| solicited.has_message());
        !self.exchange.busy.is_empty() || self.senders.iter().any(is_solicited)
    }

    /// Whether a message lies in a FIFO that this PE would take.
    pub(super) fn has_arrivals(&mut self) -> bool {
        self.note_contacts();
        self.senders.iter().any(|&pe| {
            let Some([unsolicited, solicited]) = self.inputs.get(pe) else { return false };
            solicited.has_message() || unsolicited.has_message() && self.exchange.takes(pe, false)
        })
    }
}

/// The outcome of a look for a message at the head of a FIFO.
pub(super) enum Direct {
    Done(Status),
    /// Nothing has come: the next message's stamp, and the value of its upper half once it has come.
    Later(&'static AtomicU64, u32),
    /// A part of the message is in the buffer, and its sender does not go on: the receive is to be posted
    /// before another one can get the message.
    Begun,
    /// Another message comes first, or there is no such FIFO.
    Other,
}

impl State {
    /// Receives an eager message from the head of its source's FIFO, if the receive can get no other one.
    ///
    /// # Safety
    /// The buffer is valid for writes of `room` bytes.
    #[inline(always)]
    pub(super) unsafe fn receive_directly(
        &mut self,
        envelope: &Envelope,
        (buffer, room): (*mut u8, usize),
    ) -> Direct {
        let State { inputs, exchange, .. } = self;
        let Some([fifo, _]) = inputs.get_mut(envelope.source as usize) else { return Direct::Other };
        if !exchange.matching.is_clear(envelope) {
            return Direct::Other;
        }
        match fifo.oldest() {
            Ok(Some((words, payload))) if words == eager_words(envelope.tag, envelope.context) => {
                let bytes = payload.len();
                // SAFETY: the caller guarantees the buffer, and the payload has as many bytes.
                unsafe { payload.copy_to(buffer, 0, bytes.min(room)) };
                fifo.release(bytes);
                exchange.arrived += 1;
                if fifo.has_freed_part() {
                    exchange.wake(envelope.source as Pe);
                }
                Direct::Done(Status::of(envelope, bytes))
            }
            Ok(None) => {
                let (stamp, expected) = fifo.next_stamp();
                Direct::Later(stamp, expected)
            }
            _ => Direct::Other,
        }
    }

    /// Receives the eager message at the head of its source's FIFO while the sender still writes it. Only for
    /// a receive that waits and does nothing else: to read what is being written slows the sender down.
    ///
    /// # Safety
    /// As [`receive_directly`](State::receive_directly).
    pub(super) unsafe fn follow(&mut self, envelope: &Envelope, (buffer, room): (*mut u8, usize)) -> Direct {
        let State { inputs, exchange, .. } = self;
        let from = envelope.source as Pe;
        let Some([fifo, _]) = inputs.get_mut(from) else { return Direct::Other };
        if !exchange.matching.is_clear(envelope) {
            return Direct::Other;
        }
        let words = eager_words(envelope.tag, envelope.context);
        let mut has_begun = false;
        let received = fifo.follow(words, CHUNK_LOOKS, |data, range| {
            has_begun = true;
            let copied = range.end.min(room).saturating_sub(range.start);
            // SAFETY: the caller guarantees the buffer, and the FIFO the data.
            unsafe { copy::transfer(buffer.wrapping_add(range.start), data, copied) };
        });
        let Some(bytes) = received else { return if has_begun { Direct::Begun } else { Direct::Other } };
        fifo.release(bytes);
        exchange.arrived += 1;
        if fifo.has_freed_part() {
            exchange.wake(from);
        }
        Direct::Done(Status::of(envelope, bytes))
    }
}

impl Exchange {
    /// Whether this PE takes unsolicited messages of a PE now: if a probe or a posted receive wants them, and
    /// else while it has room to keep them.
    #[inline(always)]
    pub(super) fn takes(&self, from: Pe, is_wanted: bool) -> bool {
        let peer = &self.peers[from];
        peer.arrived - peer.matched < self.kept_max || is_wanted || self.matching.has_posted()
    }

    /// A part of a FIFO has become free in which this PE receives from a PE.
    #[cold]
    pub(super) fn wake(&self, from: Pe) {
        if let Some(out) = &self.peers[from].out {
            out.wake();
        }
    }

    /// Notes that something waits to be sent to a PE.
    pub(super) fn note_busy(&mut self, pe: Pe) {
        let peer = &mut self.peers[pe];
        if !std::mem::replace(&mut peer.is_busy, true) {
            self.busy.push_back(pe);
        }
    }

    /// Completes a request. A buffered send is freed, as nobody waits for it.
    pub(super) fn complete(&mut self, id: RequestId) {
        self.completed += 1;
        let request = self.requests.get(id);
        request.finish();
        if request.owned.is_some() {
            self.requests.free(id);
        }
    }

    /// A request of a receive with this pattern.
    pub(super) fn receive_request(pattern: Envelope, buffer: *mut u8, room: usize) -> Request {
        Request {
            phase: Phase::Arriving,
            pe: pattern.source as Pe,
            envelope: pattern,
            buffer,
            packing: None,
            room,
            bytes: 0,
            moved: 0,
            asked: 0,
            is_synchronous: false,
            partner: 0,
            target: Target::Pieces,
            puts: None,
            owned: None,
            is_cancelled: false,
            watch: None,
        }
    }
}

impl Peer {
    /// A peer to which no message has been under way. Messages of fewer bytes than `fast_below` take the fast
    /// path.
    pub(super) fn new(out: Option<Out>, (eager_bytes, fast_below): (usize, usize), limits: Limits) -> Peer {
        Peer {
            out,
            eager_bytes,
            fast_below,
            recorded: 0,
            recorded_arrivals: 0,
            is_readable: limits.single_copy != Some(false),
            is_writable: true,
            waiting: VecDeque::new(),
            answers: VecDeque::new(),
            pushing: VecDeque::new(),
            is_busy: false,
            arrived: 0,
            matched: 0,
            sent: 0,
            allowed: KEPT_MIN,
            told: KEPT_MIN,
            arriving: 0,
            is_asked: false,
            has_sent_all: false,
        }
    }

    /// Whether nothing waits to be sent to it.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.answers.is_empty() && self.pushing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eager_bytes(eager_limit: Option<usize>, single_copy: Option<bool>, has_others: bool) -> [usize; 3] {
        let limits = Limits { eager_limit, unexpected_bytes: 0, single_copy };
        let EagerBytes { node, net, process } = EagerBytes::new(limits, has_others);
        [node, net, process]
    }

    #[test]
    fn eager_messages_are_longer_where_nothing_is_read_and_a_setting_limits_all() {
        for has_others in [false, true] {
            assert_eq!(eager_bytes(Some(5), None, has_others), [5; 3]);
        }
        assert_eq!(eager_bytes(None, Some(false), true), [LONG_EAGER_BYTES, NET_EAGER_BYTES, EAGER_BYTES]);
        assert_eq!(eager_bytes(None, None, false), [EAGER_BYTES, NET_EAGER_BYTES, EAGER_BYTES]);
        let node = eager_bytes(None, None, true)[0];
        assert!([EAGER_BYTES, LONG_EAGER_BYTES].contains(&node), "{node}: as the machine's reads are");
    }
}
