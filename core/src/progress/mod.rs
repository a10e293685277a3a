//! Progress: processing the provider's events, serving the requests of other PEs, and starting deferred
//! operations.
//!
//! Invariant: a handler of the provider's events only records work; operations that call the provider again
//! are started afterwards, from the outbox. Every wait of this PE makes progress, so a PE that waits serves
//! the others.
//!
//! Messages are requests for an atomic on this PE's heap, or to scatter or gather a parcel there
//! (`vis/parcel.rs`), and their replies, which are sent for operations that fetch nothing as well, as their
//! completion; and active messages (`am`), which are queued here and executed later.

pub mod departures;
pub mod meeting_points;
pub mod outbox;
pub mod purpose;
pub mod requests;
pub mod watch;

use self::outbox::Outbox;
use self::purpose::{Purpose, header};
use self::requests::{Asked, Request, Requests};
use crate::Pe;
use crate::base::locked::locked;
use crate::base::trace;
use crate::endpoint::parcel::{self, Home, Parcel};
use crate::endpoint::{Endpoint, RemoteAddress};
use crate::job::Job;
use crate::memory::route::Executor;
use pelago_fabric::amo::write_word;
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{Atomic, Event, FabricError, FabricResult, Status, Token, copy};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// The maximum number of outstanding parcels of a PE. It also bounds the replies that wait in the outbox of a
/// PE: at most this many for each of the other PEs.
pub const PARCELS_MAX: usize = 64;

/// Payload of a request: offset in the heap, operand, comparison; 8 bytes each.
const REQUEST_BYTES: usize = 24;

/// Receives a message from a PE, with header and payload. `None` if it is invalid.
pub type Receive<'a> = dyn Fn(Pe, u64, &[u8]) -> Option<()> + 'a;

/// A parcel that is ready to be sent.
pub struct SealedParcel {
    purpose: Purpose,
    words: u16,
    payload: Vec<u8>,
    request: Request,
}

impl SealedParcel {
    /// A parcel to be sent by this endpoint, counted by the token.
    pub fn new(parcel: Parcel, endpoint: &Arc<Endpoint>, token: Token) -> SealedParcel {
        let (purpose, words, payload, homes) = match parcel.sealed() {
            (words, payload, None) => (Purpose::ScatterRequest, words, payload, Vec::new()),
            (words, payload, Some(homes)) => (Purpose::GatherRequest, words, payload, homes),
        };
        let request =
            Request { what: Asked::Parcel(homes), endpoint: Arc::clone(endpoint), token: Some(token) };
        SealedParcel { purpose, words, payload, request }
    }
}

/// The reason why progress cannot continue.
pub enum Trouble {
    /// The connection to another PE was lost, perhaps because a PE has failed.
    Lost(String),
    Other(String),
}

/// The state of this PE's progress between two rounds.
pub struct ProgressState {
    pub job: Job,
    pub requests: Mutex<Requests>,
    pub outbox: Outbox,
    /// Messages that have arrived.
    messages: AtomicU64,
}

impl Deref for ProgressState {
    type Target = Job;

    #[inline(always)]
    fn deref(&self) -> &Job {
        &self.job
    }
}

impl ProgressState {
    pub fn new(job: Job) -> ProgressState {
        ProgressState {
            job,
            requests: Mutex::default(),
            outbox: Outbox::default(),
            messages: AtomicU64::new(0),
        }
    }

    /// Messages that have arrived so far.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Processes the events that `look` passes on from the provider. `receive` receives messages, and returns
    /// `None` for an invalid one.
    pub fn take_events(
        &self,
        look: impl FnOnce(&mut dyn FnMut(Event<'_>)) -> FabricResult<usize>,
        receive: &Receive<'_>,
    ) -> Result<(), Trouble> {
        let mut senseless = None;
        let outcome = look(&mut |event| match event {
            Event::Sent(token) => self.completions.sent(token),
            Event::Done(token) => {
                self.completions.done(token);
                self.tally.note(|| trace::Event::new(trace::Category::Network, "completion"));
            }
            Event::Message { from, header, payload } => {
                self.messages.fetch_add(1, Ordering::Relaxed);
                if receive(from, header, payload).is_none() {
                    senseless = Some((from, header, payload.len()));
                }
            }
        });
        // A failure shuts the endpoint, which is in use while events are processed.
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

    /// Serves a message of this layer. `None` if it is invalid, or for another layer.
    pub fn receive(&self, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
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
            _ => None,
        }
    }

    /// Puts a reply into the outbox.
    fn answer(&self, pe: Pe, purpose: Purpose, request: u32, payload: Vec<u8>) {
        self.send_later(pe, purpose, request.into(), payload);
    }

    /// Executes an atomic for another PE and queues the reply. `None` if the word does not exist.
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

    /// Writes the data of a parcel to the ranges that it lists in this PE's heap. `None` if it is invalid;
    /// nothing is written then.
    fn scatter(&self, from: Pe, words: u16, payload: &[u8], request: u32) -> Option<()> {
        let (data, list) = payload.split_at(payload.len().checked_sub(8 * usize::from(words))?);
        if parcel::total_bytes(list, self.memory.region_bytes())? != data.len() {
            return None;
        }
        let (heap, mut data) = (self.memory.heap(self.my_pe()), data.as_ptr());
        for (offset_bytes, bytes) in parcel::places(list) {
            // SAFETY: every range lies in this PE's heap, and the payload has their bytes, as was checked.
            unsafe {
                copy::transfer(heap.add(offset_bytes), data, bytes);
                data = data.add(bytes);
            }
        }
        self.answer(from, Purpose::ParcelAnswer, request, Vec::new());
        Some(())
    }

    /// Reads the ranges that a parcel lists from this PE's heap, and queues the reply. `None` if it is
    /// invalid.
    fn gather(&self, from: Pe, words: u16, payload: &[u8], request: u32) -> Option<()> {
        let bytes = parcel::total_bytes(payload, self.memory.region_bytes())?;
        if payload.len() != 8 * usize::from(words) || bytes > self.net_endpoint().message_bytes() {
            return None;
        }
        let mut data = vec![0; bytes];
        let (heap, mut next) = (self.memory.heap(self.my_pe()), data.as_mut_ptr());
        for (offset_bytes, bytes) in parcel::places(payload) {
            // SAFETY: every range lies in this PE's heap, as was checked; the buffer has space for all of
            // them.
            unsafe {
                copy::transfer(next, heap.add(offset_bytes), bytes);
                next = next.add(bytes);
            }
        }
        self.answer(from, Purpose::ParcelAnswer, request, data);
        Some(())
    }

    /// Processes the reply to an atomic. `None` if there is no such request.
    pub fn finish_atomic(&self, request: u32, old: u64) -> Option<()> {
        let request = locked(&self.requests).take(request)?;
        let Asked::Atomic { kind, fetched } = request.what else { return None };
        if !fetched.is_null() {
            // SAFETY: the caller that made the request keeps its result buffer valid until it is complete.
            unsafe { write_word(kind, old, fetched) };
        }
        self.complete(request.token, &request.endpoint);
        Some(())
    }

    /// Processes the reply to a parcel. `None` if there is no such request, or if its length differs.
    pub fn finish_parcel(&self, request: u32, payload: &[u8]) -> Option<()> {
        let request = locked(&self.requests).take(request)?;
        let Asked::Parcel(homes) = request.what else { return None };
        if homes.iter().map(|home| home.bytes).sum::<usize>() != payload.len() {
            return None;
        }
        let mut data = payload.as_ptr();
        for Home { start, bytes } in homes {
            // SAFETY: the caller that made the request keeps its local ranges valid until it is complete; the
            // payload has the bytes of all of them, as was checked.
            unsafe {
                copy::transfer(start, data, bytes);
                data = data.add(bytes);
            }
        }
        self.complete(request.token, &request.endpoint);
        Some(())
    }

    /// Records that an operation that another PE executed for this one is complete.
    fn complete(&self, token: Option<Token>, endpoint: &Endpoint) {
        if let Some(token) = token {
            self.completions.done(token);
        }
        endpoint.remove_follower();
    }

    /// Starts an atomic at its executor; `false` if a queue is full.
    ///
    /// # Safety
    /// As `start_atomic`.
    pub unsafe fn try_atomic(
        &self,
        endpoint: &Arc<Endpoint>,
        target: RemoteAddress,
        atomic: &Atomic,
        fetched: *mut u8,
        token: Option<Token>,
    ) -> bool {
        let status = match self.routes.executor(target.pe, atomic.kind, |kind| endpoint.executes(kind)) {
            // SAFETY: the caller guarantees that the word exists and that the result may be written.
            Executor::Fabric => unsafe { endpoint.try_atomic(target, atomic, fetched, token) },
            // SAFETY: the caller guarantees that the result may be written.
            Executor::Target => return unsafe { self.try_request(endpoint, target, atomic, fetched, token) },
            Executor::Here => {
                // SAFETY: the caller guarantees that the word exists and that the result may be written.
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
            self.completions.done(token);
        }
        status != Status::Again
    }

    /// Requests an atomic from the target; `false` if there is no space for the message now.
    ///
    /// # Safety
    /// `fetched` is null, or aligned and valid for writes until the reply has arrived.
    pub unsafe fn try_request(
        &self,
        endpoint: &Arc<Endpoint>,
        target: RemoteAddress,
        atomic: &Atomic,
        fetched: *mut u8,
        token: Option<Token>,
    ) -> bool {
        let what = Asked::Atomic { kind: atomic.kind, fetched };
        let request = Request { what, endpoint: Arc::clone(endpoint), token };
        let mut payload = [0; REQUEST_BYTES];
        let words = [target.offset_bytes as u64, atomic.operand, atomic.compare];
        for (bytes, word) in payload.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.ask(target.pe, (Purpose::AtomicRequest, atomic.code()), &payload, request).is_none()
    }

    /// Sends a request; returns it if there is no space for the message now.
    fn ask(
        &self,
        pe: Pe,
        (purpose, code): (Purpose, u16),
        payload: &[u8],
        request: Request,
    ) -> Option<Request> {
        let endpoint = Arc::clone(&request.endpoint);
        let number = locked(&self.requests).add(request);
        endpoint.add_follower();
        if self.net_endpoint().try_send(pe, header(purpose, code, number), payload) {
            return None;
        }
        endpoint.remove_follower();
        locked(&self.requests).take(number)
    }

    /// Sends a parcel, if there is space and not too many are outstanding; otherwise leaves it in `parcel`.
    ///
    /// # Safety
    /// The local ranges of a gather are valid for writes until the counter has counted the parcel as done.
    pub unsafe fn try_parcel(&self, pe: Pe, parcel: &mut Option<SealedParcel>) -> bool {
        if let Some(sealed) = parcel.take_if(|_| locked(&self.requests).parcels < PARCELS_MAX) {
            let SealedParcel { purpose, words, payload, request } = sealed;
            let request = self.ask(pe, (purpose, words), &payload, request);
            *parcel = request.map(|request| SealedParcel { purpose, words, payload, request });
        }
        parcel.is_none()
    }
}
