//! The service of requests at their target: see `request.rs` for their form.
//!
//! Invariant: requests of one origin are executed in the order of their arrival, one after the other. A
//! request that cannot be executed now, because its data are still to come or others accumulate on the part,
//! holds up those behind it of the same origin only.

use super::apply::Update;
use super::arguments::Blocks;
use super::control::{Known, Peer};
use super::exclude::{Accumulators, Entry};
use super::request::{Action, DONE, FIRST_REPLY, Head, REQUEST};
use super::way::{gather, scatter};
use crate::abi::*;
use pelago_core::Pe;
use pelago_core::job::Job;
use pelago_core::msg::TwoSided;
use pelago_core::msg::envelope::{Context, Envelope};
use pelago_core::msg::hooks::ProgressHook;
use pelago_core::msg::operation::{Address, Mode};
use pelago_core::msg::request::RequestId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Bytes of requests that are taken at once.
const TAKEN_MAX: usize = 64 << 20;

/// The service of one window.
pub struct Service {
    context: Context,
    /// The memory of this process: null, of a dynamic window.
    base: *mut u8,
    bytes: usize,
    is_dynamic: bool,
    has_atomics: bool,
    peer: Peer,
    accumulators: Accumulators,
    known: Known,
    state: Mutex<State>,
}

// SAFETY: the memory is that of the window, which outlives the service.
unsafe impl Send for Service {}
// SAFETY: as for `Send`, for references as well.
unsafe impl Sync for Service {}

#[derive(Default)]
struct State {
    queues: HashMap<Pe, Origin>,
    /// Replies that have not left yet.
    sends: Vec<(RequestId, Box<[u8]>)>,
}

// SAFETY: the buffers of receives belong to the state.
unsafe impl Send for State {}

#[derive(Default)]
struct Origin {
    requests: VecDeque<Arrived>,
    /// The class of the error of a request without a reply since the last flush.
    error: c_int,
}

struct Arrived {
    /// Until the data have come.
    receive: Option<RequestId>,
    words: Box<[u64]>,
    bytes: usize,
}

/// The outcome of a request.
enum Done {
    Silent,
    Reply(Box<[u8]>),
    /// The request was refused.
    Refused,
    /// It must be tried again.
    Later,
}

impl Service {
    pub fn new(
        context: u64,
        (base, bytes): (*mut u8, usize),
        (is_dynamic, has_atomics): (bool, bool),
        (peer, accumulators): (Peer, Accumulators),
    ) -> Service {
        let context = Context(context);
        let (known, state) = (Known::default(), Mutex::default());
        Service { context, base, bytes, is_dynamic, has_atomics, peer, accumulators, known, state }
    }

    /// The state, unless a thread has it.
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether all replies have left.
    pub fn has_sent(&self) -> bool {
        self.state().is_some_and(|state| state.sends.is_empty())
    }

    /// Whether the blocks lie in the window.
    fn has(&self, blocks: &Blocks) -> bool {
        blocks.iter().all(|(offset, bytes)| match self.is_dynamic {
            true => bytes == 0 || self.peer.has_attached(&self.known, offset, bytes) == Some(true),
            false => offset <= self.bytes && bytes <= self.bytes - offset,
        })
    }

    /// Executes a request whose data have come.
    fn execute(&self, job: &Job, origin: &mut Origin, head: &Head, data: &[u8]) -> Done {
        if head.action == Action::Flush {
            let error = std::mem::replace(&mut origin.error, MPI_SUCCESS);
            return Done::Reply((error as u64).to_le_bytes().into());
        }
        if !self.has(&head.blocks) {
            return Done::Refused;
        }
        let bytes = head.blocks.bytes();
        match head.action {
            Action::Put if data.len() <= bytes => {
                // SAFETY: the blocks lie in the window, as was checked.
                unsafe { scatter(self.base, &head.blocks.first(data.len(), bytes), data.as_ptr()) };
                Done::Silent
            }
            Action::Get => {
                let mut reply = vec![0u8; bytes].into_boxed_slice();
                // SAFETY: the blocks lie in the window, as was checked.
                unsafe { gather(self.base, &head.blocks, reply.as_mut_ptr()) };
                Done::Reply(reply)
            }
            Action::Accumulate | Action::Fetch => self.accumulate(job, head, data, bytes),
            Action::Swap if data.len() == 2 * bytes => self.swap(job, head, data, bytes),
            _ => Done::Refused,
        }
    }

    fn entry<'a>(&'a self, job: &'a Job) -> Entry<'a> {
        Entry::Trying(job, &self.accumulators, &self.peer)
    }

    fn accumulate(&self, job: &Job, head: &Head, data: &[u8], bytes: usize) -> Done {
        let Ok(update) = Update::of_request(head.op, head.element) else { return Done::Refused };
        if data.len() > bytes || !update.are_whole(data.len()) {
            return Done::Refused;
        }
        let mut reply = vec![0u8; if head.action == Action::Fetch { bytes } else { 0 }].into_boxed_slice();
        let old = if reply.is_empty() { std::ptr::null_mut() } else { reply.as_mut_ptr() };
        let (part, operands) = ((self.base, self.has_atomics), (data.as_ptr(), data.len()));
        // SAFETY: the blocks lie in the window and have room for the data, as was checked.
        let is_done = unsafe { update.apply(part, &head.blocks, operands, old, self.entry(job)) };
        match (is_done, head.action) {
            (false, _) => Done::Later,
            (true, Action::Fetch) => Done::Reply(reply),
            (true, _) if head.reply >= FIRST_REPLY => Done::Reply([DONE].into()),
            (true, _) => Done::Silent,
        }
    }

    fn swap(&self, job: &Job, head: &Head, data: &[u8], bytes: usize) -> Done {
        let Blocks::One(offset, _) = head.blocks else { return Done::Refused };
        let Ok(update) = Update::of_request(MPI_REPLACE, head.element) else { return Done::Refused };
        let mut reply = vec![0u8; bytes].into_boxed_slice();
        let (new, compare) = data.split_at(bytes);
        let at = (self.base.wrapping_add(offset), self.has_atomics);
        let operands = (new.as_ptr(), compare.as_ptr());
        // SAFETY: the element lies in the window, as was checked.
        let is_done = unsafe { update.swap_at(at, operands, reply.as_mut_ptr(), self.entry(job)) };
        if is_done { Done::Reply(reply) } else { Done::Later }
    }

    /// Takes requests that have come, until they have [`TAKEN_MAX`] bytes.
    fn take(&self, world: &TwoSided, state: &mut State) {
        let (pattern, mut taken) = (Envelope::pattern(self.context, None, Some(REQUEST)), 0);
        while taken < TAKEN_MAX
            && let Some(matched) = world.match_arrived(&pattern)
        {
            let status = matched.status();
            taken += status.bytes;
            let mut words = vec![0u64; status.bytes.div_ceil(8)].into_boxed_slice();
            let room = (words.as_mut_ptr().cast(), status.bytes);
            // SAFETY: the words live until the receive is complete.
            let receive = Some(unsafe { world.start_receive_matched(matched, room, None) });
            let origin = state.queues.entry(status.source).or_default();
            origin.requests.push_back(Arrived { receive, words, bytes: status.bytes });
        }
    }

    /// Executes what can be executed of one origin's requests.
    fn serve(&self, world: &TwoSided, pe: Pe, origin: &mut Origin, sends: &mut Vec<(RequestId, Box<[u8]>)>) {
        while let Some(mut arrived) = origin.requests.pop_front() {
            if let Some(id) = arrived.receive {
                if world.look(id).is_none() {
                    return origin.requests.push_front(arrived);
                }
                arrived.receive = None;
            }
            let head = Head::read(&arrived.words);
            let (head, at) = head.expect("only this library sends messages in the context of a window");
            let start = arrived.words.as_ptr().cast::<u8>();
            let bytes = arrived.bytes.saturating_sub(at);
            // SAFETY: the words have as many bytes.
            let data = unsafe { std::slice::from_raw_parts(start.add(at.min(arrived.bytes)), bytes) };
            let reply = match self.execute(world, origin, &head, data) {
                Done::Later => return origin.requests.push_front(arrived),
                Done::Silent => continue,
                Done::Reply(reply) => reply,
                Done::Refused if head.reply >= FIRST_REPLY => Box::default(),
                Done::Refused => {
                    origin.error = MPI_ERR_RMA_RANGE;
                    continue;
                }
            };
            let to = Address { context: self.context, pe, tag: head.reply };
            // SAFETY: the reply lives until the send is complete.
            let sent = unsafe { world.start_send(to, (reply.as_ptr(), reply.len()), Mode::Standard) };
            if let Some(id) = sent.expect("the tag is not the wildcard") {
                sends.push((id, reply));
            }
        }
    }
}

impl ProgressHook for Service {
    fn advance(&self, world: &TwoSided) {
        let Some(mut state) = self.state() else { return };
        self.take(world, &mut state);
        let State { queues, sends } = &mut *state;
        sends.retain(|&(id, _)| world.look(id).is_none());
        for (&pe, origin) in queues.iter_mut().filter(|(_, origin)| !origin.requests.is_empty()) {
            self.serve(world, pe, origin, sends);
        }
    }
}
