//! Requests: operations that were started, and what completes them.
//!
//! Invariant: the program completes or frees a request in one thread at a time. A handle is freed when its
//! operation is complete, unless it is persistent: then it becomes inactive.

mod completion;
mod inquiry;
mod status;

pub use completion::*;
pub use inquiry::*;
pub use status::*;

use crate::abi::*;
use crate::chapters::comm::{Comm, KeptComm};
use crate::chapters::data::Data;
use crate::chapters::error::{Error, On, Result};
use crate::chapters::generalized::Generalized;
use crate::chapters::library::Mpi;
use crate::chapters::p2p::Channel;
use crate::table::{Kind, Table};
use pelago_core::base::awaited::Awaited;
use pelago_core::message_coll::Pending;
use pelago_core::msg::request::{RequestId, Status};
use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static REQUESTS: Table<Request> = Table::new(Kind::Request);

/// A request.
pub struct Request {
    state: UnsafeCell<State>,
    /// Of a generalised request, which another thread may complete.
    generalized: Option<Arc<Generalized>>,
    /// Of a partitioned request, whose partitions other threads use while one waits for it.
    channel: Option<Arc<Channel>>,
}

// SAFETY: the standard forbids programs to use a request in two threads at once.
unsafe impl Send for Request {}
// SAFETY: what holds for `Send` above holds for `Sync` as well.
unsafe impl Sync for Request {}

/// Starts the operation of a persistent request.
type Start = Box<dyn Fn(&Mpi) -> Result<Active>>;

struct State {
    active: Active,
    persistent: Option<Start>,
    /// The object whose handler gets errors of the operation.
    on: On,
}

/// An operation.
pub enum Active {
    /// None: the request is persistent and was not started.
    Inactive,
    /// It is complete.
    Done(Outcome),
    /// It is a receive that was complete when it was started, and is not persistent.
    Received(Received),
    Message(Message),
    Collective(Box<Collective>),
    Other(Box<dyn Operation>),
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub status: MPI_Status,
    /// The class of its error, or `MPI_SUCCESS`.
    pub error: c_int,
}

/// A message that was received.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// The rank of its sender.
    pub source: c_int,
    pub tag: c_int,
    /// Its length, which was not more than the room.
    pub bytes: u64,
}

/// A send or a receive.
pub struct Message {
    pub id: RequestId,
    /// Of a receive: the communicator, and the room in bytes.
    pub receive: Option<(KeptComm, usize)>,
    /// Data that live as long as the operation.
    pub kept: Option<Data>,
}

/// A collective operation.
pub struct Collective {
    pub pending: Arc<Pending>,
    /// The use of its result at the end.
    pub finish: Option<Box<dyn FnOnce() -> Result>>,
}

/// An operation of another kind.
pub trait Operation {
    /// Goes on as far as is possible now: the outcome, if it is complete.
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome>;

    /// Cancels it, where that is possible.
    fn cancel(&mut self, _mpi: &Mpi) -> Result {
        Ok(())
    }

    /// The request is freed before the operation is complete.
    fn detach(self: Box<Self>, _mpi: &Mpi, _on: On) {}
}

impl Request {
    /// A request that is not a generalised one.
    #[cold]
    fn new(state: State) -> Request {
        Request { state: UnsafeCell::new(state), generalized: None, channel: None }
    }
}

impl Outcome {
    /// Of an operation without a message: the empty status.
    pub const EMPTY: Outcome = Outcome { status: EMPTY_STATUS, error: MPI_SUCCESS };

    /// Whether the operation has succeeded with the empty status.
    fn is_empty(&self) -> bool {
        self.error == MPI_SUCCESS && self.status == EMPTY_STATUS
    }

    /// Of a collective operation: an error if members have given different sizes.
    pub fn of_collective(is_right: bool) -> Outcome {
        let error = if is_right { MPI_SUCCESS } else { MPI_ERR_TRUNCATE };
        Outcome { status: EMPTY_STATUS, error }
    }

    /// That of a receive.
    pub fn of_receive(comm: &Comm, status: Status, room: usize) -> Outcome {
        if status.is_cancelled {
            return Outcome { status: cancelled(), error: MPI_SUCCESS };
        }
        let error = if status.bytes > room { MPI_ERR_TRUNCATE } else { MPI_SUCCESS };
        Outcome { status: received(comm, &status, room), error }
    }
}

impl Active {
    /// Goes on as far as is possible now: the outcome, if it is complete.
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        match self {
            Active::Message(message) => {
                let status = mpi.core.test_message(message.id)?;
                Some(message.finish(status))
            }
            Active::Collective(_) => self.peek(mpi).or_else(|| {
                mpi.core.progress();
                self.peek(mpi)
            }),
            other => other.peek(mpi),
        }
    }

    /// The same where the caller makes progress: for functions that look at many requests.
    fn peek(&mut self, mpi: &Mpi) -> Option<Outcome> {
        match self {
            Active::Inactive => Some(Outcome::EMPTY),
            Active::Done(outcome) => Some(*outcome),
            Active::Received(received) => Some(Outcome { status: received.status(), error: MPI_SUCCESS }),
            Active::Message(message) => {
                let status = mpi.core.take_if_done(message.id)?;
                Some(message.finish(status))
            }
            Active::Collective(collective) => {
                let outcome = collective.pending.advance(&mpi.core)?;
                Some(collective.finish(outcome.is_ok()))
            }
            Active::Other(operation) => operation.poll(mpi),
        }
    }

    fn wait(&mut self, mpi: &Mpi) -> Outcome {
        match self {
            Active::Message(message) => {
                let status = mpi.core.wait_for_message(message.id);
                message.finish(status)
            }
            Active::Collective(collective) => {
                let outcome = collective.pending.wait(&mpi.core);
                collective.finish(outcome.is_ok())
            }
            other => {
                let mut outcome = other.poll(mpi);
                if outcome.is_none() {
                    mpi.core.wait(Awaited::Events { count: 1 }, || {
                        outcome = outcome.or_else(|| other.poll(mpi));
                        outcome.is_some()
                    });
                }
                outcome.expect("a wait ends when the operation is complete")
            }
        }
    }
}

impl Received {
    #[inline(always)]
    fn status(&self) -> MPI_Status {
        let mut status = MPI_Status { MPI_SOURCE: self.source, MPI_TAG: self.tag, ..EMPTY_STATUS };
        set_bytes(&mut status, self.bytes);
        status
    }
}

impl Message {
    fn finish(&mut self, status: Status) -> Outcome {
        let Some((comm, room)) = &self.receive else {
            let status = if status.is_cancelled { cancelled() } else { EMPTY_STATUS };
            return Outcome { status, error: MPI_SUCCESS };
        };
        Outcome::of_receive(comm, status, *room)
    }
}

impl Collective {
    fn finish(&mut self, is_right: bool) -> Outcome {
        let finished = self.finish.take().map_or(Ok(()), |finish| finish());
        match finished {
            Err(error) if is_right => Outcome { status: EMPTY_STATUS, error: error.code() },
            _ => Outcome::of_collective(is_right),
        }
    }
}

/// The request of a send that was complete when it was started. All such sends share it, because it has no
/// state.
pub const COMPLETE: MPI_Request = MPI_Request(0xff1);

/// A handle for an operation that was started.
pub fn started(active: Active, on: On) -> Result<MPI_Request> {
    if let Active::Done(outcome) = &active
        && outcome.is_empty()
    {
        return Ok(COMPLETE);
    }
    insert(State { active, persistent: None, on })
}

/// A handle of a receive that is complete.
#[inline(always)]
pub fn received_at_once(received: Received, on: On) -> Result<MPI_Request> {
    let refill = |request: &Request, received| {
        // SAFETY: the request was forgotten, so that no thread uses it; its operation is `Inactive`, which
        // needs no drop.
        unsafe {
            let state = request.state.get();
            (&raw mut (*state).active).write(Active::Received(received));
            (*state).on = on;
        }
    };
    let make = |received| Request::new(State { active: Active::Received(received), persistent: None, on });
    number(REQUESTS.reuse(received, refill, make))
}

/// The message of a receive that was complete when it was started; its request is forgotten.
///
/// # Safety
/// The thread uses the request alone.
#[inline(always)]
unsafe fn take_received(handle: MPI_Request) -> Option<Received> {
    let request = REQUESTS.get(handle.0)?;
    // SAFETY: the caller promises that its thread uses the request alone.
    let state = unsafe { &mut *request.state.get() };
    let Active::Received(received) = state.active else { return None };
    // SAFETY: the reference is valid for writes, and the old value needs no drop.
    unsafe { (&raw mut state.active).write(Active::Inactive) };
    REQUESTS.retire(handle.0);
    Some(received)
}

/// A handle of a persistent request, which is inactive.
pub fn persistent(on: On, start: impl Fn(&Mpi) -> Result<Active> + 'static) -> Result<MPI_Request> {
    insert(State { active: Active::Inactive, persistent: Some(Box::new(start)), on })
}

/// The same for a partitioned request.
pub fn partitioned(
    on: On,
    channel: Arc<Channel>,
    start: impl Fn(&Mpi) -> Result<Active> + 'static,
) -> Result<MPI_Request> {
    let state = State { active: Active::Inactive, persistent: Some(Box::new(start)), on };
    let request = Request { channel: Some(channel), ..Request::new(state) };
    number(REQUESTS.insert(Arc::new(request)))
}

fn insert(state: State) -> Result<MPI_Request> {
    let refill = |request: &Request, state| {
        // SAFETY: the request was forgotten, so that no thread uses it.
        unsafe { *request.state.get() = state };
    };
    number(REQUESTS.reuse(state, refill, Request::new))
}

/// A handle of a generalised request.
pub fn generalized(of: Arc<Generalized>) -> Result<MPI_Request> {
    let active = Active::Other(Box::new(Arc::clone(&of)));
    let state = State { active, persistent: None, on: On::Comm(MPI_COMM_SELF) };
    number(REQUESTS.insert(Arc::new(Request { generalized: Some(of), ..Request::new(state) })))
}

/// The generalised request with a handle.
pub fn find_generalized(handle: MPI_Request) -> Option<Arc<Generalized>> {
    REQUESTS.get(handle.0).and_then(|request| request.generalized.clone())
}

/// Forgets a request that is complete, or whose end nobody waits for.
pub fn forget(handle: MPI_Request) {
    let Some(request) = REQUESTS.get(handle.0) else { return };
    if request.generalized.is_some() || request.channel.is_some() {
        drop(REQUESTS.remove(handle.0));
        return;
    }
    // SAFETY: the program uses a request in one thread at a time, and this thread has it.
    let state = unsafe { &mut *request.state.get() };
    (state.active, state.persistent) = (Active::Inactive, None);
    REQUESTS.retire(handle.0);
}

fn number(handle: Option<usize>) -> Result<MPI_Request> {
    handle.map(MPI_Request).ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many requests"))
}

/// The state of a request.
///
/// # Safety
/// The thread uses the request alone, and one such reference at a time.
unsafe fn state(handle: MPI_Request) -> Result<&'static mut State> {
    let request = request_of(handle)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    Ok(unsafe { &mut *request.state.get() })
}

/// The request with a handle.
fn request_of(handle: MPI_Request) -> Result<&'static Request> {
    REQUESTS
        .get(handle.0)
        .ok_or_else(|| Error::new(MPI_ERR_REQUEST, "the request was freed, or never was one"))
}

/// Requests that the program has not completed or freed.
pub fn count() -> usize {
    REQUESTS.len()
}

/// Operations whose requests were freed, and which still need memory that the library keeps.
static DETACHED: Mutex<Vec<Detached>> = Mutex::new(Vec::new());

struct Detached {
    active: Active,
    /// The communicator, and the session that it comes from.
    comm: MPI_Comm,
    session: MPI_Session,
}

// SAFETY: the operation is moved on by one thread at a time, under the lock.
unsafe impl Send for Detached {}

impl Detached {
    fn is_receive(&self) -> bool {
        matches!(&self.active, Active::Message(message) if message.receive.is_some())
    }
}

fn detached() -> MutexGuard<'static, Vec<Detached>> {
    DETACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets an operation of an object go on without a request.
pub fn detach(mpi: &Mpi, active: Active, on: On) {
    drop(take_done(mpi));
    match active {
        Active::Inactive | Active::Done(_) | Active::Received(_) => {}
        Active::Other(operation) => operation.detach(mpi, on),
        active => {
            let comm = if let On::Comm(comm) = on { comm } else { MPI_COMM_NULL };
            let session = mpi.share_comm(comm).map_or(MPI_SESSION_NULL, |comm| comm.group.session);
            detached().push(Detached { active, comm, session });
        }
    }
}

/// Those that are complete. They are dropped without the lock, because what they own may let others go on.
fn take_done(mpi: &Mpi) -> Vec<Detached> {
    let mut detached = detached();
    let (mut done, mut i) = (Vec::new(), 0);
    while i < detached.len() {
        match detached[i].active.peek(mpi) {
            Some(_) => done.push(detached.swap_remove(i)),
            None => i += 1,
        }
    }
    done
}

/// Completes the operations without a request on a communicator.
pub fn finish_detached_on(mpi: &Mpi, comm: MPI_Comm) {
    finish(mpi, |detached| detached.comm == comm);
}

/// Completes the sends and collective operations without a request on communicators of a session, or of the
/// world. Receives stay: others may still send while they wait for the end.
pub fn finish_detached_of(mpi: &Mpi, session: MPI_Session) {
    finish(mpi, |detached| detached.session == session && !detached.is_receive());
}

/// Those of all.
pub fn finish_detached(mpi: &Mpi) {
    finish(mpi, |detached| !detached.is_receive());
}

fn finish(mpi: &Mpi, mut is_meant: impl FnMut(&mut Detached) -> bool) {
    loop {
        let next = {
            let mut detached = detached();
            let found = detached.iter_mut().position(&mut is_meant);
            found.map(|found| detached.swap_remove(found))
        };
        let Some(mut next) = next else { return };
        next.active.wait(mpi);
    }
}

/// Whether receives without a request wait for messages.
pub fn has_receives(mpi: &Mpi) -> bool {
    drop(take_done(mpi));
    !detached().is_empty()
}

/// Completes the receives without a request, when all processes leave the job and no more messages come: one
/// that has none is cancelled.
pub fn finish_receives(mpi: &Mpi) {
    let receives = std::mem::take(&mut *detached());
    for mut receive in receives {
        let is_cancelled = match &receive.active {
            Active::Message(message) => mpi.core.cancel_receive(message.id),
            _ => false,
        };
        if !is_cancelled {
            receive.active.wait(mpi);
        }
    }
}

/// Waits for an operation without a request.
pub fn complete(mpi: &Mpi, active: &mut Active) -> Outcome {
    active.wait(mpi)
}

/// Looks once whether an operation without a request is over.
pub fn poll_active(mpi: &Mpi, active: &mut Active) -> Option<Outcome> {
    active.poll(mpi)
}

/// The channel of a partitioned request.
pub fn channel(handle: MPI_Request) -> Result<Arc<Channel>> {
    let channel = request_of(handle)?.channel.clone();
    channel.ok_or_else(|| Error::new(MPI_ERR_REQUEST, "the request is not one of a partitioned operation"))
}
