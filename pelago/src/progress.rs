//! Progress: taking what the net has brought, serving what others ask for, and starting what waits its turn.
//!
//! Invariant: a handler of the provider's events only takes notes; whatever calls the provider again happens
//! after it, from the outbox. Every wait of this PE makes progress, so a PE that waits serves the others.
//!
//! Messages are requests for an atomic on this PE's heap, or to scatter or gather a parcel there
//! (`vis/parcel.rs`), and their answers, which come for what fetches nothing as well, as its completion; and
//! active messages (`am`), which are noted here and executed later.

mod outbox;

use self::outbox::Outbox;
use crate::Pe;
use crate::channel::{Channel, Target};
use crate::route::Executor;
use crate::tracker::Tracker;
use crate::vis::parcel::{self, Home, Parcel};
use crate::world::World;
use pelago_fabric::amo::write_word;
use pelago_fabric::sync::{AtomicBool, Ordering};
use pelago_fabric::{Atomic, AtomicKind, Event, FabricError, Status, Token, copy};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a message is for: the upper byte of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    AtomicRequest = 1,
    AtomicAnswer = 2,
    ScatterRequest = 3,
    GatherRequest = 4,
    ParcelAnswer = 5,
    /// An active message: see `am`.
    Active = 6,
    /// How many active messages of this PE were executed?
    ActiveAsk = 7,
    /// So many.
    ActiveTold = 8,
    /// The data that came with one are in their place.
    ActivePlaced = 9,
    /// PEs have come to a point: see `muster`.
    Muster = 10,
    /// A PE waits in vain for this one, which has left: see `departure`.
    Missed = 11,
    /// The last error of the sender, which has left.
    LastError = 12,
}

impl Purpose {
    /// A header of 56 bits, for this purpose.
    pub(crate) fn over(self, header: u64) -> u64 {
        (self as u64) << 56 | header
    }
}

/// Parcels of a PE that may be under way at a time. The answers that a PE owes, which wait in its outbox for
/// room, are bounded by this many from each of the others.
const PARCELS_MAX: usize = 64;

/// Payload of a request: offset in the heap, operand, comparison; 8 bytes each.
const REQUEST_BYTES: usize = 24;

fn header(purpose: Purpose, code: u16, request: u32) -> u64 {
    purpose.over(u64::from(code) << 32 | u64::from(request))
}

/// What another PE's processor does for this one.
struct Request {
    what: Asked,
    channel: Arc<Channel>,
    token: Option<Token>,
}

/// What to do with the answer.
enum Asked {
    /// An atomic; its old value goes there, unless that is null.
    Atomic { kind: AtomicKind, fetched: *mut u8 },
    /// A parcel; what was gathered goes to these places, one after the other. None for a scattered one.
    Parcel(Vec<Home>),
}

// SAFETY: `fetched` is written once, when the answer comes; whoever made the request keeps it valid till
// then.
unsafe impl Send for Request {}

/// Why progress cannot go on.
enum Trouble {
    /// Another PE was lost, which may be another one's failure.
    Lost(String),
    Other(String),
}

/// What this PE has to remember between two rounds of progress.
#[derive(Default)]
pub(crate) struct Agenda {
    requests: Mutex<Requests>,
    outbox: Outbox,
    contexts: Mutex<Vec<Arc<Channel>>>,
    /// Whether there are contexts.
    has_contexts: AtomicBool,
    /// Channels of contexts that are gone, for those to come: an endpoint of a fabric takes long to open.
    idle: Mutex<Vec<Arc<Channel>>>,
}

/// Channels without a context that are kept.
pub(crate) const IDLE_MAX: usize = 8;

impl Request {
    fn is_for_parcel(&self) -> bool {
        matches!(self.what, Asked::Parcel(_))
    }
}

/// The requests that wait for their answers, by number.
#[derive(Default)]
struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    /// How many of them are for parcels.
    parcels: usize,
}

impl Requests {
    fn add(&mut self, request: Request) -> u32 {
        self.parcels += usize::from(request.is_for_parcel());
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
        self.parcels -= usize::from(request.is_for_parcel());
        self.free.push(number);
        Some(request)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agenda {
    /// A context's channel, to be progressed until it is [removed](Agenda::remove_context).
    pub(crate) fn add_context(&self, channel: &Arc<Channel>) {
        locked(&self.contexts).push(Arc::clone(channel));
        self.has_contexts.store(true, Ordering::Relaxed);
    }

    /// The channel of a context that is gone. It is kept for the next one, unless something of the old one
    /// might still be under way.
    pub(crate) fn remove_context(&self, channel: &Arc<Channel>) {
        let mut contexts = locked(&self.contexts);
        contexts.retain(|context| !Arc::ptr_eq(context, channel));
        self.has_contexts.store(!contexts.is_empty(), Ordering::Relaxed);
        drop(contexts);
        let mut idle = locked(&self.idle);
        if idle.len() < IDLE_MAX && channel.is_settled() {
            idle.push(Arc::clone(channel));
        }
    }

    /// A channel that no context has.
    pub(crate) fn idle_channel(&self) -> Option<Arc<Channel>> {
        locked(&self.idle).pop()
    }

    fn contexts(&self) -> Vec<Arc<Channel>> {
        locked(&self.contexts).clone()
    }
}

impl World {
    /// Moves what is under way: takes what has arrived, serves what other PEs ask of this one, starts what
    /// waits. Every call that waits does so by itself. Between PEs that map each other nothing is ever under
    /// way, and this does nothing.
    #[inline]
    #[track_caller]
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
    #[track_caller]
    pub(crate) fn drive_all(&self) {
        if self.collectives.is_active() {
            self.drive();
        }
        if self.am.is_open() {
            self.execute_messages();
        }
        self.wake_futures();
    }

    #[cold]
    #[track_caller]
    fn progress_net(&self, net: &Arc<Channel>) {
        if net.is_shut() {
            // Nothing moves any more; a destructor that runs because of that must not fail again.
            match std::thread::panicking() {
                true => return,
                false => {
                    // The thread that has closed the channels may not have said why yet.
                    let reason = self.memory.header().failure.read().map(|(_, reason)| reason);
                    self.give_up(reason.as_deref().unwrap_or("progress after this PE has given up"))
                }
            }
        }
        net.look();
        self.serve_others(net);
        self.wake_futures();
    }

    /// Whether what was started through contexts is complete.
    pub(crate) fn are_contexts_quiet(&self) -> bool {
        self.agenda.contexts().iter().all(|context| context.is_shut() || context.is_quiet())
    }

    /// Progress without the user's code.
    #[track_caller]
    pub(crate) fn serve_others(&self, net: &Arc<Channel>) {
        self.progress_channel(net);
        if self.agenda.has_contexts.load(Ordering::Relaxed) {
            self.agenda.contexts().iter().for_each(|context| self.progress_channel(context));
        }
        if !self.agenda.outbox.is_empty() {
            self.flush_outbox(net);
        }
    }

    /// Serves others where that is possible still; what goes wrong is not reported.
    pub(crate) fn serve_if_possible(&self) {
        let Some(net) = self.net.as_ref().filter(|net| !net.is_shut()) else { return };
        if self.take_events(net).is_ok() && !self.agenda.outbox.is_empty() {
            self.flush_outbox(net);
        }
    }

    #[track_caller]
    fn progress_channel(&self, channel: &Channel) {
        match self.take_events(channel) {
            Ok(()) => {}
            Err(Trouble::Lost(reason)) => self.fail_after_loss(&reason),
            Err(Trouble::Other(reason)) => self.fail(&reason),
        }
    }

    /// Takes what the provider has brought.
    fn take_events(&self, channel: &Channel) -> Result<(), Trouble> {
        let mut senseless = None;
        let outcome = channel.progress(&mut |event| match event {
            Event::Sent(token) => self.trackers.sent(token),
            Event::Done(token) => self.trackers.done(token),
            Event::Message { from, header, payload } => {
                self.stall.note_message();
                if self.receive(from, header, payload).is_none() {
                    senseless = Some((from, header, payload.len()));
                }
            }
        });
        // To fail shuts the channel, which is in use as long as events come.
        match outcome {
            Ok(_) => {}
            Err(
                error @ (FabricError::Unreachable { .. }
                | FabricError::TransferLost { .. }
                | FabricError::PeerLost { .. }),
            ) => return Err(Trouble::Lost(error.to_string())),
            Err(error) => return Err(Trouble::Other(error.to_string())),
        }
        let Some((from, header, bytes)) = senseless else { return Ok(()) };
        let me = self.my_pe();
        Err(Trouble::Other(format!(
            "PE {me}: a message of PE {from} makes no sense here (header {header:#x}, {bytes} bytes). Are \
             all PEs of the job the same build?"
        )))
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
            p if p == Purpose::AtomicAnswer as u8 => self.finish_atomic(request, word(0)?),
            p if p == Purpose::ScatterRequest as u8 => self.scatter(from, code, payload, request),
            p if p == Purpose::GatherRequest as u8 => self.gather(from, code, payload, request),
            p if p == Purpose::ParcelAnswer as u8 => self.finish_parcel(request, payload),
            p if p == Purpose::Active as u8 => self.note_active(from, header, payload),
            p if p == Purpose::ActivePlaced as u8 => self.note_placed(),
            p if p == Purpose::Muster as u8 => self.note_muster(from, code),
            p if p == Purpose::Missed as u8 => {
                self.note_missed(from);
                Some(())
            }
            p if p == Purpose::LastError as u8 => {
                self.note_last_error(from, payload);
                Some(())
            }
            p if p == Purpose::ActiveAsk as u8 => self.tell_executed(from),
            p if p == Purpose::ActiveTold as u8 => self.note_executed(from, word(0)?),
            _ => None,
        }
    }

    /// Puts an answer into the outbox.
    fn answer(&self, pe: Pe, purpose: Purpose, request: u32, payload: Vec<u8>) {
        self.send_later(pe, purpose, request.into(), payload);
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
        self.answer(from, Purpose::AtomicAnswer, request, old.to_le_bytes().to_vec());
        Some(())
    }

    /// Writes what a parcel brings to where it says in this PE's heap. `None` if it makes no sense; nothing
    /// is written then.
    fn scatter(&self, from: Pe, words: u16, payload: &[u8], request: u32) -> Option<()> {
        let (data, list) = payload.split_at(payload.len().checked_sub(8 * usize::from(words))?);
        if parcel::total_bytes(list, self.memory.region_bytes())? != data.len() {
            return None;
        }
        let (heap, mut data) = (self.memory.heap(self.my_pe()), data.as_ptr());
        for (offset_bytes, bytes) in parcel::places(list) {
            // SAFETY: every place lies in this PE's heap, and the payload has their bytes, as was checked.
            unsafe {
                copy::transfer(heap.add(offset_bytes), data, bytes);
                data = data.add(bytes);
            }
        }
        self.answer(from, Purpose::ParcelAnswer, request, Vec::new());
        Some(())
    }

    /// Reads what a parcel asks for from this PE's heap, and notes the answer. `None` if it makes no sense.
    fn gather(&self, from: Pe, words: u16, payload: &[u8], request: u32) -> Option<()> {
        let bytes = parcel::total_bytes(payload, self.memory.region_bytes())?;
        if payload.len() != 8 * usize::from(words) || bytes > self.net_channel().message_bytes() {
            return None;
        }
        let mut data = vec![0; bytes];
        let (heap, mut next) = (self.memory.heap(self.my_pe()), data.as_mut_ptr());
        for (offset_bytes, bytes) in parcel::places(payload) {
            // SAFETY: every place lies in this PE's heap, as was checked; the data have room for them all.
            unsafe {
                copy::transfer(next, heap.add(offset_bytes), bytes);
                next = next.add(bytes);
            }
        }
        self.answer(from, Purpose::ParcelAnswer, request, data);
        Some(())
    }

    /// Takes the answer to an atomic. `None` if there is no such request.
    fn finish_atomic(&self, request: u32, old: u64) -> Option<()> {
        let request = locked(&self.agenda.requests).take(request)?;
        let Asked::Atomic { kind, fetched } = request.what else { return None };
        if !fetched.is_null() {
            // SAFETY: whoever made the request keeps the place of its result until it is complete.
            unsafe { write_word(kind, old, fetched) };
        }
        self.complete(request.token, &request.channel);
        Some(())
    }

    /// Takes the answer to a parcel. `None` if there is no such request, or it has asked for more or less.
    fn finish_parcel(&self, request: u32, payload: &[u8]) -> Option<()> {
        let request = locked(&self.agenda.requests).take(request)?;
        let Asked::Parcel(homes) = request.what else { return None };
        if homes.iter().map(|home| home.bytes).sum::<usize>() != payload.len() {
            return None;
        }
        let mut data = payload.as_ptr();
        for Home { start, bytes } in homes {
            // SAFETY: whoever made the request keeps the places of its data until it is complete; the payload
            // has the bytes of all, as was checked.
            unsafe {
                copy::transfer(start, data, bytes);
                data = data.add(bytes);
            }
        }
        self.complete(request.token, &request.channel);
        Some(())
    }

    /// What another PE has done for this one is complete.
    fn complete(&self, token: Option<Token>, channel: &Channel) {
        if let Some(token) = token {
            self.trackers.done(token);
        }
        channel.remove_follower();
    }

    /// Sends a parcel, when there is room and not too many are under way. The tracker counts it until the
    /// answer has come; what it carries is free when the call returns.
    ///
    /// # Safety
    /// What the parcel scatters or gathers lies in the heap. The homes of what it gathers are valid for
    /// writes until the tracker has counted it as done.
    #[track_caller]
    pub(crate) unsafe fn send_parcel(
        &self,
        channel: &Arc<Channel>,
        target: Target,
        parcel: Parcel,
        tracker: &Tracker,
    ) {
        channel.admit(self, target);
        tracker.begin(false);
        self.tally.add(|counts| counts.parcels += 1);
        let (purpose, words, payload, homes) = match parcel.sealed() {
            (words, payload, None) => (Purpose::ScatterRequest, words, payload, Vec::new()),
            (words, payload, Some(homes)) => (Purpose::GatherRequest, words, payload, homes),
        };
        let token = Some(tracker.token());
        let mut request = Some(Request { what: Asked::Parcel(homes), channel: Arc::clone(channel), token });
        self.wait(target.room(), || {
            if locked(&self.agenda.requests).parcels < PARCELS_MAX {
                request = request.take().and_then(|r| self.ask(target.pe, (purpose, words), &payload, r));
            }
            request.is_none()
        });
        // A loop of parcels must see what others ask for in between.
        self.progress();
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
        let what = Asked::Atomic { kind: atomic.kind, fetched };
        let request = Request { what, channel: Arc::clone(channel), token };
        let mut payload = [0; REQUEST_BYTES];
        let words = [target.offset_bytes as u64, atomic.operand, atomic.compare];
        for (bytes, word) in payload.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.ask(target.pe, (Purpose::AtomicRequest, atomic.code()), &payload, request).is_none()
    }

    /// Sends a request; hands it back if there is no room for the message now.
    fn ask(
        &self,
        pe: Pe,
        (purpose, code): (Purpose, u16),
        payload: &[u8],
        request: Request,
    ) -> Option<Request> {
        let channel = Arc::clone(&request.channel);
        let number = locked(&self.agenda.requests).add(request);
        channel.add_follower();
        if self.net_channel().try_send(pe, header(purpose, code, number), payload) {
            return None;
        }
        channel.remove_follower();
        locked(&self.agenda.requests).take(number)
    }

    /// Whether something was started through a context since that was last quiet.
    pub(crate) fn has_contexts_unquiet(&self) -> bool {
        self.agenda.has_contexts.load(Ordering::Relaxed)
            && self.agenda.contexts().iter().any(|context| context.is_marked())
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
            locked(&self.agenda.idle).clear();
            net.shut();
        }
    }

    /// Completes everything that this PE has started, on contexts as well.
    #[track_caller]
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
    use crate::Spmd;
    use crate::sim::SimParams;

    #[test]
    fn headers_keep_their_parts_apart() {
        let header = header(Purpose::AtomicAnswer, 0xABCD, u32::MAX);
        assert_eq!(((header >> 56) as u8, (header >> 32) as u16, header as u32), (2, 0xABCD, u32::MAX));
    }

    #[test]
    fn messages_that_make_no_sense_are_refused() {
        let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
            let region_bytes = world.memory.region_bytes() as u64;
            let receive = |purpose: u8, code: u16, words: &[u64], tail: &[u8]| {
                let header = u64::from(purpose) << 56 | u64::from(code) << 32 | 77;
                let payload: Vec<u8> =
                    tail.iter().copied().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect();
                world.receive(1 - world.my_pe(), header, &payload)
            };
            let entry = |offset: u64, bytes: u64| offset | bytes << 48;
            let (data, outside) = ([0; 8], entry(region_bytes - 7, 8));
            let twice = [entry(4096, 8) | 1 << 63, 8 | 2 << 48];
            let never = [entry(4096, 8) | 1 << 63, 8];
            let far = [entry(4096, 8) | 1 << 63, region_bytes | 2 << 48];
            let longest = [entry(4096, 32767) | 1 << 63, 1 | 0xFFFF << 48];
            let refused = [
                receive(0, 0, &[], &[]),
                receive(8, 0, &[], &[]),
                receive(10, 4, &[], &[]),
                receive(13, 0, &[], &[]),
                receive(3, 1, &[], &data),
                receive(3, 1, &[entry(4096, 8)], &data[..7]),
                receive(3, 1, &[entry(4096, 4)], &data),
                receive(3, 2, &[entry(4096, 8)], &data),
                receive(3, 1, &[entry(4096, 0)], &[]),
                receive(3, 1, &[outside], &data),
                receive(3, 2, &twice, &data),
                receive(3, 1, &twice[..1], &data),
                receive(3, 2, &never, &[]),
                receive(3, 2, &far, &[0; 16]),
                receive(4, 1, &[outside], &[]),
                receive(4, 0, &[entry(4096, 8)], &[]),
                receive(4, 1, &[entry(4096, 8)], &data),
                receive(4, 2, &longest, &[]),
                receive(4, 1, &[], &data[..7]),
                receive(5, 0, &[], &[]),
                receive(2, 0, &[0], &[]),
            ];
            // Three arguments that are not there, and flags that nobody sends.
            assert!(world.note_active(0, 3 << 48, &[]).is_none());
            assert!(world.note_active(0, 31 << 48, &[]).is_none());
            let nothing_noted = world.agenda.outbox.is_empty();
            (refused.iter().position(Option::is_some), nothing_noted)
        });
        assert_eq!(outcome.unwrap(), [(None, true); 2]);
    }

    #[test]
    fn parcels_under_way_are_bounded() {
        let outcome = Spmd::new(2).sim(SimParams { credits: 1000, ..SimParams::default() }).run(|world| {
            let array = world.alloc_zeroed::<u64>(4000).unwrap();
            let shape = crate::Strided { array_stride: 2, ..crate::Strided::elements(1000) };
            let mut most = 0;
            for _ in 0..world.n_pes() * 100 {
                array.put_strided(1 - world.my_pe(), 0, &[1; 1000], &shape).unwrap();
                most = most.max(locked(&world.agenda.requests).parcels);
            }
            world.quiet();
            (most, locked(&world.agenda.requests).parcels)
        });
        assert_eq!(outcome.unwrap(), [(PARCELS_MAX, 0); 2]);
    }

    #[test]
    fn answers_of_the_wrong_kind_or_length_are_refused() {
        let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
            let (net, mut room) = (world.net_channel(), [0u8; 8]);
            let ask = |what| {
                let request = Request { what, channel: Arc::clone(net), token: None };
                locked(&world.agenda.requests).add(request)
            };
            let home = Home { start: room.as_mut_ptr(), bytes: 8 };
            let answers = [
                world.finish_parcel(ask(Asked::Parcel(vec![home])), &[1; 7]),
                world.finish_parcel(ask(Asked::Parcel(vec![home])), &[1; 9]),
                world.finish_parcel(ask(Asked::Parcel(Vec::new())), &[1]),
                world.finish_atomic(ask(Asked::Parcel(vec![home])), 1),
                world.finish_parcel(
                    ask(Asked::Atomic { kind: AtomicKind::U64, fetched: std::ptr::null_mut() }),
                    &[1; 8],
                ),
            ];
            let parcels = locked(&world.agenda.requests).parcels;
            (answers.iter().position(Option::is_some), parcels, room)
        });
        assert_eq!(outcome.unwrap(), [(None, 0, [0; 8]); 2]);
    }
}
