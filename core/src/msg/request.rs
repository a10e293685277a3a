//! The requests of a PE: sends and receives that are under way, or complete and not yet waited for.
//!
//! Invariant: a request belongs to the caller that started it until that caller frees it, by a wait or a
//! test. Its generation changes then, so that an old identifier finds nothing.

use super::envelope::{Envelope, Tag};
use super::packing::Packing;
use super::queue::Place;
use super::wire::Target;
use crate::Pe;
use crate::endpoint::completion_counter::CompletionCounter;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::sync::Arc;

/// Identifies a request of this PE. It also travels to the other end of a long message, and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    slot: u32,
    generation: u16,
}

impl RequestId {
    /// The identifier as a number of 48 bits.
    pub fn code(self) -> u64 {
        u64::from(self.slot) << 16 | u64::from(self.generation)
    }

    /// The identifier that has this code.
    pub fn from_code(code: u64) -> RequestId {
        RequestId { slot: (code >> 16) as u32, generation: code as u16 }
    }
}

/// The outcome of a receive, or of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The PE that has sent the message.
    pub source: Pe,
    /// Its tag.
    pub tag: Tag,
    /// Its length in bytes. If that exceeds the room of the receive, the rest of it is lost.
    pub bytes: usize,
    /// Whether the receive was cancelled: then there is no message.
    pub is_cancelled: bool,
}

/// The stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A receive that waits for a message.
    Posted(Place),
    /// A receive that has its message, whose data are still to come.
    Arriving,
    /// A send whose first message waits for room.
    Queued,
    /// A send whose message has left: it waits until the receiver has it.
    Sent,
    /// A send whose data the receiver has asked for.
    Pushing,
    /// A send whose data are being put, or a receive whose data were put and whose buffer is exposed.
    Put,
    /// Complete.
    Done,
}

/// A send or a receive.
pub struct Request {
    pub phase: Phase,
    /// The destination; or the source of the message that a receive has.
    pub pe: Pe,
    /// The message's envelope; or the pattern of a receive without a message.
    pub envelope: Envelope,
    /// The data of a send, or the place of those of a receive, if they lie in one piece.
    pub buffer: *mut u8,
    /// Where they lie otherwise.
    pub packing: Option<Box<dyn Packing>>,
    /// The length of a send's data, or the room of a receive.
    pub room: usize,
    /// The length of the message.
    pub bytes: usize,
    /// Bytes that have been sent or received in pieces.
    pub moved: usize,
    /// Bytes to be sent in pieces.
    pub asked: usize,
    /// Whether a send completes only when a receive has matched it.
    pub is_synchronous: bool,
    /// The request at the other end.
    pub partner: u64,
    /// Where the receiver of a send wants its data; or the key under which a receive's buffer is exposed.
    pub target: Target,
    /// Counts the puts of a send's data.
    pub puts: Option<CompletionCounter>,
    /// The data of a buffered send, which nobody waits for.
    pub owned: Option<Box<[u8]>>,
    pub is_cancelled: bool,
    /// Set when the request is complete, if somebody looks at it without the lock of the state.
    pub watch: Option<Arc<Completed>>,
}

/// Whether a request is complete, and the PE without which it cannot be, as far as that is known.
pub struct Completed {
    is_complete: AtomicBool,
    pub pe: Option<Pe>,
}

impl Completed {
    pub fn new(is_complete: bool, pe: Option<Pe>) -> Completed {
        Completed { is_complete: AtomicBool::new(is_complete), pe }
    }

    pub fn is_complete(&self) -> bool {
        // SYNC POINT message event: acquires the data of the message; see `note`.
        self.is_complete.load(Ordering::Acquire)
    }

    #[cold]
    fn note(&self) {
        // SYNC POINT message event: releases the data of the message; see `is_complete`.
        self.is_complete.store(true, Ordering::Release);
    }
}

// SAFETY: the buffer is accessed by the thread that has the state of messages locked; the caller that made
// the request keeps it valid until the request is complete.
unsafe impl Send for Request {}

impl Status {
    /// That of a message of `bytes` bytes with this envelope.
    pub fn of(envelope: &Envelope, bytes: usize) -> Status {
        Status { source: envelope.source as Pe, tag: envelope.tag, bytes, is_cancelled: false }
    }
}

impl Request {
    /// Completes it.
    #[inline]
    pub fn finish(&mut self) {
        self.phase = Phase::Done;
        if let Some(watch) = &self.watch {
            watch.note();
        }
    }

    /// The outcome, once the request is done.
    pub fn status(&self) -> Status {
        Status { is_cancelled: self.is_cancelled, ..Status::of(&self.envelope, self.bytes) }
    }
}

/// All requests of a PE.
#[derive(Default)]
pub struct Requests {
    slots: Vec<(u16, Option<Request>)>,
    free: Vec<u32>,
}

impl Requests {
    pub fn add(&mut self, request: Request) -> RequestId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let (generation, place) = &mut self.slots[slot as usize];
        *place = Some(request);
        RequestId { slot, generation: *generation }
    }

    /// The request with this identifier, if there is one.
    #[inline]
    pub fn find(&mut self, id: RequestId) -> Option<&mut Request> {
        let (generation, request) = self.slots.get_mut(id.slot as usize)?;
        if *generation == id.generation { request.as_mut() } else { None }
    }

    /// The request with this identifier, which exists.
    #[inline]
    pub fn get(&mut self, id: RequestId) -> &mut Request {
        self.find(id).expect("a request exists until it is freed")
    }

    /// Frees a request if it is done: its outcome.
    #[inline]
    pub fn free_if_done(&mut self, id: RequestId) -> Option<Status> {
        let request = self.get(id);
        if request.phase != Phase::Done {
            return None;
        }
        let status = request.status();
        self.forget(id);
        Some(status)
    }

    /// Frees a request, and drops it where it lies.
    #[inline]
    fn forget(&mut self, id: RequestId) {
        let (generation, place) = &mut self.slots[id.slot as usize];
        *generation = generation.wrapping_add(1);
        *place = None;
        self.free.push(id.slot);
    }

    /// Frees a request.
    pub fn free(&mut self, id: RequestId) -> Request {
        let (generation, place) = &mut self.slots[id.slot as usize];
        debug_assert_eq!(*generation, id.generation, "the request was freed before");
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        place.take().expect("a request exists until it is freed")
    }
}
