//! Progress: taking what the net has brought, serving what others ask for, and starting what waits its turn.
//!
//! Invariant: a handler of the provider's events only takes notes; whatever calls the provider again happens
//! after it, from the outbox. Every wait of this PE makes progress, so a PE that waits serves the others.
//!
//! Messages are requests for atomics on this PE's heap and their answers, which come for atomics that fetch
//! nothing as well, as their completion; and active messages, which are noted here and executed later.

use crate::Pe;
use crate::channel::{Channel, Target};
use crate::route::Executor;
use crate::tracker::Tracker;
use crate::world::World;
use pelago_fabric::amo::write_word;
use pelago_fabric::{Atomic, AtomicKind, Event, Status, Token};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a message is for: the upper byte of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    AtomicRequest = 1,
    AtomicAnswer = 2,
    /// An active message: see `am`.
    Active = 3,
    /// How many active messages of this PE were executed?
    ActiveAsk = 4,
    /// So many.
    ActiveTold = 5,
}

impl Purpose {
    /// A header of 56 bits, for this purpose.
    pub(crate) fn over(self, header: u64) -> u64 {
        (self as u64) << 56 | header
    }
}

/// Payload of a request: offset in the heap, operand, comparison; 8 bytes each.
const REQUEST_BYTES: usize = 24;

fn header(purpose: Purpose, code: u16, request: u32) -> u64 {
    purpose.over(u64::from(code) << 32 | u64::from(request))
}

/// An atomic that another PE's processor executes for this one.
struct Request {
    kind: AtomicKind,
    fetched: *mut u8,
    channel: Arc<Channel>,
    token: Option<Token>,
}

// SAFETY: `fetched` is written once, when the answer comes; whoever made the request keeps it valid till
// then.
unsafe impl Send for Request {}

/// Something to start when there is room, or when something else is complete.
enum Deferred {
    Message {
        pe: Pe,
        header: u64,
        payload: Vec<u8>,
    },
    Atomic {
        channel: Arc<Channel>,
        target: Target,
        atomic: Atomic,
        /// What must be complete first, until it is.
        after: Option<Tracker>,
        /// Counts the whole: what comes first as what is sent, this as what is done.
        token: Option<Token>,
    },
}

/// What this PE has to remember between two rounds of progress.
#[derive(Default)]
pub(crate) struct Agenda {
    requests: Mutex<Requests>,
    outbox: Mutex<Vec<Deferred>>,
    contexts: Mutex<Vec<Weak<Channel>>>,
}

/// The requests that wait for their answers, by number.
#[derive(Default)]
struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
}

impl Requests {
    fn add(&mut self, request: Request) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[number as usize] = Some(request);
        number
    }

    /// The request of that number, if there is one.
    fn take(&mut self, number: u32) -> Option<Request> {
        let request = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(request)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agenda {
    /// A context's channel, to be progressed for as long as it lives.
    pub(crate) fn add_context(&self, channel: &Arc<Channel>) {
        let mut contexts = locked(&self.contexts);
        contexts.retain(|context| context.strong_count() > 0);
        contexts.push(Arc::downgrade(channel));
    }

    fn contexts(&self) -> Vec<Arc<Channel>> {
        locked(&self.contexts).iter().filter_map(Weak::upgrade).collect()
    }
}

impl World {
    /// Moves what is under way: takes what has arrived, serves what other PEs ask of this one, starts what
    /// waits. Every call that waits does so by itself. Between PEs that map each other nothing is ever under
    /// way, and this does nothing.
    #[inline]
    pub fn progress(&self) {
        if let Some(net) = &self.net {
            self.progress_net(net);
        }
        if self.is_busy() {
            self.drive_all();
        }
    }

    /// Whether something is under way that this PE has to move: collective operations, or active messages.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.collectives.is_active() || self.am.is_open()
    }

    /// Moves it.
    #[cold]
    pub(crate) fn drive_all(&self) {
        if self.collectives.is_active() {
            self.drive();
        }
        if self.am.is_open() {
            self.execute_messages();
        }
    }

    #[cold]
    fn progress_net(&self, net: &Arc<Channel>) {
        if net.is_shut() {
            // Nothing moves any more; a destructor that runs because of that must not fail again.
            match std::thread::panicking() {
                true => return,
                false => self.give_up("progress after this PE has failed or given up"),
            }
        }
        self.progress_channel(net);
        for context in self.agenda.contexts() {
            self.progress_channel(&context);
        }
        self.flush_outbox(net);
    }

    fn progress_channel(&self, channel: &Channel) {
        let mut senseless = None;
        let outcome = channel.progress(&mut |event| match event {
            Event::Sent(token) => self.trackers.sent(token),
            Event::Done(token) => self.trackers.done(token),
            Event::Message { from, header, payload } => {
                if self.receive(from, header, payload).is_none() {
                    senseless = Some((from, header, payload.len()));
                }
            }
        });
        // Not before here: to fail shuts the channel, which is in use as long as events come.
        if let Err(error) = outcome {
            self.fail(&error.to_string());
        }
        if let Some((from, header, bytes)) = senseless {
            let me = self.my_pe();
            self.fail(&format!(
                "PE {me}: a message of PE {from} makes no sense here (header {header:#x}, {bytes} bytes). \
                 Are all PEs of the job the same build?"
            ));
        }
    }

    /// Does what a message asks for. `None` if it makes no sense.
    fn receive(&self, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
        let (code, request) = ((header >> 32) as u16, header as u32);
        let word = |i: usize| {
            payload.get(8 * i..8 * i + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
        };
        match (header >> 56) as u8 {
            p if p == Purpose::AtomicRequest as u8 => {
                let atomic = Atomic::from_code(code, word(1)?, word(2)?)?;
                self.serve(from, &atomic, word(0)?, request)
            }
            p if p == Purpose::AtomicAnswer as u8 => self.finish(request, word(0)?),
            p if p == Purpose::Active as u8 => {
                self.note_active(from, header, payload);
                Some(())
            }
            p if p == Purpose::ActiveAsk as u8 => {
                self.tell_executed(from);
                Some(())
            }
            p if p == Purpose::ActiveTold as u8 => {
                self.note_executed(from, word(0)?);
                Some(())
            }
            _ => None,
        }
    }

    /// Executes an atomic for another PE and notes the answer. `None` if there is no such word.
    fn serve(&self, from: Pe, atomic: &Atomic, offset: u64, request: u32) -> Option<()> {
        let (offset_bytes, bytes) = (usize::try_from(offset).ok()?, atomic.kind.bytes());
        let end = offset_bytes.checked_add(bytes)?;
        if !offset_bytes.is_multiple_of(bytes) || end > self.memory.region_bytes() {
            return None;
        }
        // SAFETY: the word lies in this PE's heap, aligned, as was checked.
        let old = unsafe { atomic.execute(self.memory.heap(self.my_pe()).add(offset_bytes)) };
        let header = header(Purpose::AtomicAnswer, 0, request);
        self.send_later(from, Purpose::AtomicAnswer, header, old.to_le_bytes().to_vec());
        Some(())
    }

    /// Notes a message that is sent when there is room.
    pub(crate) fn send_later(&self, pe: Pe, purpose: Purpose, header: u64, payload: Vec<u8>) {
        let header = purpose.over(header);
        locked(&self.agenda.outbox).push(Deferred::Message { pe, header, payload });
    }

    /// Takes the answer to a request. `None` if there is no such request.
    fn finish(&self, request: u32, old: u64) -> Option<()> {
        let request = locked(&self.agenda.requests).take(request)?;
        if !request.fetched.is_null() {
            // SAFETY: whoever made the request keeps the place of its result until it is complete.
            unsafe { write_word(request.kind, old, request.fetched) };
        }
        if let Some(token) = request.token {
            self.trackers.done(token);
        }
        request.channel.remove_follower();
        Some(())
    }

    /// Starts an atomic on a PE that is not mapped.
    ///
    /// # Safety
    /// The word lies in the heap, aligned. `fetched` is null, or aligned and valid for writes until the
    /// atomic is complete.
    pub(crate) unsafe fn start_atomic(
        &self,
        channel: &Arc<Channel>,
        target: Target,
        atomic: &Atomic,
        fetched: *mut u8,
        tracker: Option<&Tracker>,
    ) {
        channel.admit(self, target);
        if let Some(tracker) = tracker {
            tracker.begin(false);
        }
        let token = tracker.map(Tracker::token);
        // SAFETY: the caller vouches for the word and the place of the result.
        self.wait(target.room(), || unsafe { self.try_atomic(channel, target, atomic, fetched, token) });
        // A loop of atomics on the own memory must see what others ask for in between.
        self.progress();
    }

    /// Starts an atomic that fetches nothing as soon as `after` is complete. Its channel is quiet only after
    /// it; `tracker` counts both, `after` as sent.
    ///
    /// # Safety
    /// The word lies in the heap, aligned.
    pub(crate) unsafe fn start_atomic_after(
        &self,
        after: Tracker,
        channel: &Arc<Channel>,
        target: Target,
        atomic: Atomic,
        tracker: Option<&Tracker>,
    ) {
        channel.add_follower();
        if let Some(tracker) = tracker {
            tracker.begin(true);
        }
        let (channel, after, token) = (Arc::clone(channel), Some(after), tracker.map(Tracker::token));
        locked(&self.agenda.outbox).push(Deferred::Atomic { channel, target, atomic, after, token });
        self.progress();
    }

    /// Starts an atomic with whoever executes it; `false` if there is no room now.
    ///
    /// # Safety
    /// As `start_atomic`.
    unsafe fn try_atomic(
        &self,
        channel: &Arc<Channel>,
        target: Target,
        atomic: &Atomic,
        fetched: *mut u8,
        token: Option<Token>,
    ) -> bool {
        let status = match self.routes.executor(target.pe, atomic.kind, |kind| channel.executes(kind)) {
            // SAFETY: the caller vouches for the word and the place of the result.
            Executor::Fabric => unsafe { channel.try_atomic(target, atomic, fetched, token) },
            // SAFETY: the caller vouches for the place of the result.
            Executor::Target => return unsafe { self.try_request(channel, target, atomic, fetched, token) },
            Executor::Here => {
                // SAFETY: the caller vouches for the word and the place of the result.
                unsafe {
                    let old = atomic.execute(self.memory.heap(target.pe).add(target.offset_bytes));
                    if !fetched.is_null() {
                        write_word(atomic.kind, old, fetched);
                    }
                }
                Status::Done
            }
        };
        if let (Status::Done, Some(token)) = (status, token) {
            self.trackers.done(token);
        }
        status != Status::Again
    }

    /// Asks the target for an atomic; `false` if there is no room for the message now.
    ///
    /// # Safety
    /// `fetched` is null, or aligned and valid for writes until the answer has come.
    unsafe fn try_request(
        &self,
        channel: &Arc<Channel>,
        target: Target,
        atomic: &Atomic,
        fetched: *mut u8,
        token: Option<Token>,
    ) -> bool {
        let request = Request { kind: atomic.kind, fetched, channel: Arc::clone(channel), token };
        let number = locked(&self.agenda.requests).add(request);
        channel.add_follower();
        let mut payload = [0; REQUEST_BYTES];
        let words = [target.offset_bytes as u64, atomic.operand, atomic.compare];
        for (bytes, word) in payload.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let header = header(Purpose::AtomicRequest, atomic.code(), number);
        let is_sent = self.net_channel().try_send(target.pe, header, &payload);
        if !is_sent {
            locked(&self.agenda.requests).take(number);
            channel.remove_follower();
        }
        is_sent
    }

    /// Starts whatever of the outbox can be started now.
    fn flush_outbox(&self, net: &Channel) {
        let mut waiting = std::mem::take(&mut *locked(&self.agenda.outbox));
        waiting.retain_mut(|deferred| match deferred {
            Deferred::Message { pe, header, payload } => !net.try_send(*pe, *header, payload),
            Deferred::Atomic { after: Some(after), .. } if !after.is_done() => true,
            Deferred::Atomic { channel, target, atomic, after, token } => {
                if let Some(after) = after.take() {
                    self.trackers.release(after);
                    token.iter().for_each(|&token| self.trackers.sent(token));
                }
                let (target, null) = (*target, std::ptr::null_mut());
                // SAFETY: whoever deferred the atomic has vouched for the word; there is no result to place.
                let is_started = unsafe { self.try_atomic(channel, target, atomic, null, *token) };
                if is_started {
                    channel.remove_follower();
                }
                !is_started
            }
        });
        if !waiting.is_empty() {
            // What was added meanwhile stays behind what waits longer.
            let mut outbox = locked(&self.agenda.outbox);
            waiting.append(&mut outbox);
            *outbox = waiting;
        }
    }

    /// The world's own channel.
    ///
    /// # Panics
    /// If every PE is mapped, so that there is none.
    pub(crate) fn net_channel(&self) -> &Arc<Channel> {
        self.net.as_ref().expect("a PE that is not mapped is reached over the net")
    }

    /// Whether nothing of this PE is under way.
    pub(crate) fn is_all_quiet(&self) -> bool {
        self.net.as_ref().is_none_or(|net| {
            net.is_quiet() && self.agenda.contexts().iter().all(|context| context.is_quiet())
        })
    }

    /// Closes all channels: nothing that was started touches this PE's buffers any more.
    pub(crate) fn shut_channels(&self) {
        if let Some(net) = &self.net {
            self.agenda.contexts().iter().for_each(|context| context.shut());
            net.shut();
        }
    }

    /// Completes everything that this PE has started, on contexts as well.
    pub(crate) fn quiet_all(&self) {
        if let Some(net) = &self.net {
            net.quiet(self);
            for context in self.agenda.contexts() {
                context.quiet(self);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_their_parts_apart() {
        let header = header(Purpose::AtomicAnswer, 0xABCD, u32::MAX);
        assert_eq!(((header >> 56) as u8, (header >> 32) as u16, header as u32), (2, 0xABCD, u32::MAX));
    }
}
