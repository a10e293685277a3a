//! The network: the transport of operations and messages, and their effects at the target.
//!
//! Invariant: an operation is in `State::ops` from its acceptance to its completion, and at least one of its
//! steps is pending. Memory is accessed in `deliver` and `leave` only, while a PE is inside a call of its
//! endpoint. Times follow LogGP, with two more rules: a network card also receives only one message at a
//! time, and PEs of one node do not use it to reach each other.

use super::engine::{Action, Finished, Letter, Local, Op, OpId, Packet, PortId, Standing, State, Step};
use crate::amo::write_word;
use crate::copy;
use crate::types::{FabricError, Pe};

/// A put or get of more bytes than this may travel in pieces in chaos.
const PIECE_BYTES: usize = 32;

impl State {
    /// Lets an accepted operation enter the network.
    pub(super) fn start(&mut self, mut op: Op) {
        let id = self.new_id();
        let (from, to) = (op.from, op.to);
        self.port(op.port).outstanding += 1;
        let pieces = self.pieces(&op);
        op.pieces_left = pieces.len();
        let carries = !matches!(op.action, Action::Get);
        self.ops.insert(id, op);
        for (start, bytes) in pieces {
            let packet = Packet::Request { op: id, start, bytes };
            let at = self.members[from].clock;
            self.transmit(from, to, if carries { bytes } else { 0 }, at, packet);
        }
    }

    /// Lets an accepted message enter the network.
    pub(super) fn post(&mut self, to: Pe, letter: Letter) {
        let (from, bytes) = (letter.from, letter.payload.len());
        let channel = self.channels.entry((from, to)).or_default();
        channel.in_flight.push_back(letter);
        channel.load += 1;
        let at = self.members[from].clock;
        self.transmit(from, to, bytes, at, Packet::Message { from, to });
    }

    /// Takes the next step; false if none is pending. In virtual time it is the earliest step, else any step.
    pub(super) fn step(&mut self) -> bool {
        let Some((time, step)) = self.pending.pop(&mut self.random) else {
            return false;
        };
        match step {
            Step::Enter { from, to, bytes, packet } => self.enter(from, to, bytes, time, packet),
            Step::Leave(op) => self.leave(op, time),
            Step::Arrive { to, occupancy, packet } => {
                let card = self.nodes.card(to);
                let received = card.receive_free.max(time) + occupancy;
                card.receive_free = received;
                self.pending.push(received, Step::Deliver(packet));
            }
            Step::Deliver(Packet::Request { op, start, bytes }) => self.deliver(op, start, bytes, time),
            Step::Deliver(Packet::Reply(op)) => self.bring_back(op, time),
            Step::Deliver(Packet::Message { from, to }) => self.deliver_message(from, to, time),
            Step::Complete(op) => self.complete(op, time),
        }
        true
    }

    /// Sends a packet at `at`. In virtual time it gets the network card when that time is reached: packets of
    /// other PEs, and replies, may be earlier.
    fn transmit(&mut self, from: Pe, to: Pe, bytes: usize, at: u64, packet: Packet) {
        match self.params.chaos {
            true => self.enter(from, to, bytes, at, packet),
            false => self.pending.push(at, Step::Enter { from, to, bytes, packet }),
        }
    }

    /// A packet gets the network card or the processor that moves it, as soon as that is free.
    fn enter(&mut self, from: Pe, to: Pe, bytes: usize, at: u64, packet: Packet) {
        let left = if self.nodes.is_local(from, to) {
            let sender = &mut self.members[from];
            let left = sender.move_free.max(at) + self.times.moving(bytes);
            sender.move_free = left;
            self.pending.push(left + self.times.local_latency, Step::Deliver(packet));
            left
        } else {
            let occupancy = self.times.occupancy(bytes);
            let card = self.nodes.card(from);
            let start = card.send_free.max(at);
            card.send_free = start + occupancy;
            let arrival = start + self.times.latency;
            match self.params.chaos {
                true => self.pending.push(arrival + occupancy, Step::Deliver(packet)),
                false => self.pending.push(arrival, Step::Arrive { to, occupancy, packet }),
            }
            start + occupancy
        };
        if let Packet::Request { op: id, start, bytes } = packet
            && self.ops.get(&id).is_some_and(|op| op.owes_sent && start + bytes == op.bytes)
        {
            self.pending.push(left, Step::Leave(id));
        }
    }

    /// The time from the moment a byte leaves a PE to its arrival at another.
    fn latency(&self, from: Pe, to: Pe) -> u64 {
        if self.nodes.is_local(from, to) { self.times.local_latency } else { self.times.latency }
    }

    /// The pieces of an operation: in chaos up to 4, whose ends are at multiples of 8 bytes in the target.
    fn pieces(&mut self, op: &Op) -> Vec<(usize, usize)> {
        if !self.params.chaos || op.bytes <= PIECE_BYTES || matches!(op.action, Action::Atomic(_)) {
            return vec![(0, op.bytes)];
        }
        let cuts = self.random.below(4);
        let mut ends: Vec<usize> = (0..cuts)
            .map(|_| {
                let end = op.remote.offset_bytes + self.random.below(op.bytes);
                (end & !7).saturating_sub(op.remote.offset_bytes)
            })
            .collect();
        ends.extend([0, op.bytes]);
        ends.sort_unstable();
        ends.dedup();
        ends.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect()
    }

    /// Reads the source of a put, which belongs to the caller again from now on.
    fn leave(&mut self, id: OpId, time: u64) {
        if self.is_cut_off(id) {
            return self.vanish(id);
        }
        let Some(op) = self.ops.get_mut(&id).filter(|op| op.owes_sent) else {
            return;
        };
        // SAFETY: the source belongs to the network until `Sent`, which is reported below.
        op.kept = Some(unsafe { read(op.local.0, op.bytes) });
        op.local = Local(std::ptr::null_mut());
        op.owes_sent = false;
        let (port, from, token) = (op.port, op.from, op.token);
        self.report(port, from, token.map(Finished::Sent), time);
    }

    /// Executes a request, or a piece of one, at its target.
    fn deliver(&mut self, id: OpId, start: usize, bytes: usize, time: u64) {
        if self.is_cut_off(id) {
            return self.vanish(id);
        }
        let Some(op) = self.ops.get(&id) else {
            return;
        };
        let remote = match self.locate(op) {
            Ok(remote) => remote,
            Err(error) => return self.fail(id, error, time),
        };
        let op = self.ops.get_mut(&id).expect("the operation was looked up above");
        // SAFETY: `locate` has checked the range against the region, which its owner keeps alive until it
        // leaves. The caller that has started the operation guarantees the local range until completion.
        unsafe { op.execute(remote, start, bytes) };
        op.pieces_left -= 1;
        let (from, to, whole) = (op.from, op.to, op.pieces_left == 0);
        let brings = op.brings();
        if !matches!(op.action, Action::Get) {
            self.touch(to, time);
        }
        match brings {
            _ if !whole => (),
            None => self.pending.push(time + self.latency(to, from), Step::Complete(id)),
            Some(bytes) => self.transmit(to, from, bytes, time, Packet::Reply(id)),
        }
    }

    /// The address of the operation's target in this process.
    fn locate(&self, op: &Op) -> Result<*mut u8, FabricError> {
        let member = &self.members[op.to];
        if member.standing == Standing::Gone {
            let operation = op.action.name();
            return Err(FabricError::PeerLost { pe: op.from, peer: op.to, operation });
        }
        let end = op.remote.offset_bytes.checked_add(op.bytes);
        let region = member.regions.get(&op.remote.key);
        match region.filter(|region| end.is_some_and(|end| end <= region.bytes)) {
            // SAFETY: the offset lies inside the region, as was just checked.
            Some(region) => Ok(unsafe { region.start.as_ptr().add(op.remote.offset_bytes) }),
            None => Err(FabricError::Foreign {
                pe: op.from,
                what: format!("{:?} + {} bytes is not registered by PE {}", op.remote, op.bytes, op.to),
            }),
        }
    }

    /// Copies the data of a get or a fetch to its origin.
    fn bring_back(&mut self, id: OpId, time: u64) {
        if self.is_cut_off(id) {
            return self.vanish(id);
        }
        let Some(op) = self.ops.get(&id) else {
            return;
        };
        let kept = op.kept.as_ref().expect("a reply follows the read");
        // SAFETY: the caller guarantees the local range until completion, which is reported afterwards.
        unsafe {
            match op.action {
                Action::Atomic(atomic) => {
                    let word = kept.as_slice().try_into().expect("a word is kept as 8 bytes");
                    write_word(atomic.kind, u64::from_ne_bytes(word), op.local.0);
                }
                _ => copy::transfer(op.local.0, kept.as_ptr(), op.bytes),
            }
        }
        if self.params.chaos {
            self.pending.push(time, Step::Complete(id));
        } else {
            self.complete(id, time);
        }
    }

    fn deliver_message(&mut self, from: Pe, to: Pe, time: u64) {
        let cut_off = self.lost.is_some_and(|lost| lost == from || lost == to);
        let gone = self.members[to].standing == Standing::Gone;
        let channel = self.channels.get_mut(&(from, to)).expect("a message under way has a channel");
        let letter = channel.in_flight.pop_front().expect("one step for each message");
        if cut_off || gone {
            channel.load -= 1;
            return;
        }
        self.members[to].inbox.push_back(letter);
        self.touch(to, time);
    }

    fn complete(&mut self, id: OpId, time: u64) {
        if self.is_cut_off(id) {
            return self.vanish(id);
        }
        let Some(op) = self.ops.remove(&id) else {
            return;
        };
        let sent = op.token.filter(|_| op.owes_sent).map(Finished::Sent);
        let finished = if op.brings().is_some() { Finished::Get(op.token) } else { Finished::Put(op.token) };
        self.report(op.port, op.from, sent.into_iter().chain([finished]), time);
        if let Some(port) = self.ports.get_mut(&op.port) {
            port.outstanding -= 1;
        }
    }

    /// Adds events for the next `progress` of a port. It does nothing if the port is closed.
    fn report(&mut self, port: PortId, pe: Pe, news: impl IntoIterator<Item = Finished>, time: u64) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.finished.extend(news);
            self.touch(pe, time);
        }
    }
}

impl Op {
    /// The number of bytes of the reply, if the operation fetches.
    pub(super) fn brings(&self) -> Option<usize> {
        match self.action {
            Action::Put => None,
            Action::Get => Some(self.bytes),
            Action::Atomic(_) => (!self.local.0.is_null()).then_some(self.bytes),
        }
    }

    /// Executes a piece of the operation on the memory at `remote`, where its target starts.
    ///
    /// # Safety
    /// The whole target lies in a live region; the local memory is valid as the contract of providers
    /// requires.
    unsafe fn execute(&mut self, remote: *mut u8, start: usize, bytes: usize) {
        // SAFETY: the caller guarantees both ends, and a piece lies inside its operation.
        unsafe {
            match self.action {
                Action::Put => {
                    let source = self.kept.as_ref().map_or(self.local.0.cast_const(), |kept| kept.as_ptr());
                    copy::transfer(remote.add(start), source.add(start), bytes);
                }
                Action::Get => {
                    let kept = self.kept.get_or_insert_with(|| vec![0; self.bytes]);
                    copy::transfer(kept.as_mut_ptr().add(start), remote.add(start), bytes);
                }
                Action::Atomic(atomic) => self.kept = Some(atomic.execute(remote).to_ne_bytes().to_vec()),
            }
        }
    }
}

impl Action {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Action::Put => "a put",
            Action::Get => "a get",
            Action::Atomic(_) => "an atomic",
        }
    }
}

/// Copies memory of a caller.
///
/// # Safety
/// `source` is valid for reads of `bytes` bytes.
pub(super) unsafe fn read(source: *const u8, bytes: usize) -> Vec<u8> {
    let mut kept = vec![0; bytes];
    // SAFETY: the caller guarantees the source; the vector has the same length.
    unsafe { copy::transfer(kept.as_mut_ptr(), source, bytes) };
    kept
}
