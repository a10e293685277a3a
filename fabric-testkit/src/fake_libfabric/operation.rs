//! Operations: the request of a call, and its acceptance.
//!
//! Invariant: an accepted operation has room for its entry, and the call itself accesses only the buffers of
//! injected operations.

use super::buffer::{Local, Remote};
use super::context;
use super::endpoint::bound;
use super::engine::{advance, give_back, note_post};
use super::fault::Fault;
use super::object::enter;
use super::profile::{INJECT_BYTES, QUEUE_COUNT, TRANSFER_BYTES, TX_FLAGS};
use super::refusal::answer;
use super::region::check_local;
use super::world::{Id, World, at};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::{AtomicKind, AtomicOp};

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Write,
    Read,
    Message,
    Atomic { kind: AtomicKind, op: AtomicOp, fetches: bool },
}

impl Action {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Action::Write => "a write",
            Action::Read => "a read",
            Action::Message => "a message",
            Action::Atomic { .. } => "an atomic",
        }
    }

    /// Whether data return to the initiator.
    pub(crate) fn fetches(self) -> bool {
        matches!(self, Action::Read | Action::Atomic { fetches: true, .. })
    }

    /// The access flags that the region of a source needs.
    pub(crate) fn source_access(self) -> u64 {
        if self == Action::Message { FI_SEND } else { FI_WRITE }
    }

    /// The access flags that the target's region needs.
    pub(crate) fn remote_access(self) -> u64 {
        match self {
            Action::Read | Action::Atomic { op: AtomicOp::Fetch, .. } => FI_REMOTE_READ,
            Action::Atomic { fetches: true, .. } => FI_REMOTE_READ | FI_REMOTE_WRITE,
            _ => FI_REMOTE_WRITE,
        }
    }

    /// The flags of its completion entry.
    pub(crate) fn entry_flags(self) -> u64 {
        match self {
            Action::Write => FI_RMA | FI_WRITE,
            Action::Read => FI_RMA | FI_READ,
            Action::Message => FI_MSG | FI_SEND,
            Action::Atomic { fetches: true, .. } => FI_ATOMIC | FI_READ,
            Action::Atomic { .. } => FI_ATOMIC | FI_WRITE,
        }
    }
}

/// The request of a call.
pub(crate) struct Request {
    pub(crate) action: Action,
    pub(crate) source: Local,
    pub(crate) compare: Local,
    pub(crate) result: Local,
    pub(crate) remote: Remote,
}

impl Request {
    /// A request of this kind, without buffers.
    pub(crate) fn new(action: Action) -> Request {
        let (source, compare, result, remote) = Default::default();
        Request { action, source, compare, result, remote }
    }

    /// The number of bytes that it moves.
    fn bytes(&self) -> usize {
        self.source.bytes.max(self.result.bytes)
    }
}

/// The flags of a call.
#[derive(Clone, Copy)]
pub(crate) enum Flags {
    /// The default flags of the endpoint.
    Default,
    /// Flags that the call passes.
    Given(u64),
    /// Injected, without an entry.
    Injected,
}

/// An operation that was accepted.
pub(crate) struct Operation {
    pub(crate) from: Id,
    pub(crate) to: Id,
    /// The context for its entry; 0 if it has no entry.
    pub(crate) context: usize,
    /// Whether success writes an entry.
    pub(crate) completes: bool,
    pub(crate) request: Request,
    pub(crate) outcome: Result<(), Fault>,
    /// The fetched data.
    pub(crate) fetched: Vec<u8>,
}

/// Starts an operation; returns the result of the function in the table.
///
/// # Safety
/// The endpoint is an object of this library, and the caller follows libfabric's rules for the operation.
pub(crate) unsafe fn start(
    ep: *mut fid_ep,
    peer: fi_addr_t,
    flags: Flags,
    context: *mut c_void,
    request: Result<Request, c_int>,
) -> isize {
    // SAFETY: the caller guarantees that the endpoint is valid, and follows libfabric's rules for the
    // operation.
    answer(request.and_then(|request| unsafe { accept(ep, peer, flags, context, request) }))
}

/// Accepts an operation, or returns an error.
///
/// # Safety
/// As for `start`.
unsafe fn accept(
    ep: *mut fid_ep,
    peer: fi_addr_t,
    flags: Flags,
    context: *mut c_void,
    mut request: Request,
) -> Result<usize, c_int> {
    // SAFETY: the caller guarantees that the endpoint is valid.
    let (mut world, from) = unsafe { enter(ep) };
    let endpoint = at(&mut world.endpoints, from);
    if !endpoint.is_enabled {
        return Err(FI_EOPBADSTATE);
    }
    let given = match flags {
        Flags::Default => endpoint.op_flags,
        Flags::Given(flags) => flags,
        Flags::Injected => FI_INJECT,
    };
    let injects = given & FI_INJECT != 0;
    if given & !(TX_FLAGS | FI_MORE) != 0 || injects && request.action == Action::Read {
        return Err(FI_EBADFLAGS);
    }
    let (mode, is_auto) = (endpoint.profile.mode, !endpoint.profile.is_manual());
    let (queue, is_selective) = bound(endpoint.transmits);
    let completes = !matches!(flags, Flags::Injected) && (!is_selective || given & FI_COMPLETION != 0);
    let vector = bound(endpoint.vector);
    let is_full = endpoint.in_flight >= QUEUE_COUNT;
    let Some(to) = at(&mut world.vectors, vector).endpoint(peer) else { return Err(FI_EINVAL) };
    if completes && mode != 0 && context.is_null() {
        return Err(FI_EINVAL);
    }
    if request.bytes() > TRANSFER_BYTES || injects && request.source.bytes > INJECT_BYTES {
        return Err(FI_EMSGSIZE);
    }
    if is_full || completes && !at(&mut world.queues, queue).reserve() {
        if is_auto {
            advance(&mut world, from);
        }
        return Err(FI_EAGAIN);
    }
    if injects {
        for local in [&mut request.source, &mut request.compare] {
            // SAFETY: the caller keeps injected buffers valid during the call.
            local.kept = Some(unsafe { local.read() });
        }
    }
    let context = if completes { context.expose_provenance() } else { 0 };
    // SAFETY: with such a mode, the context of every operation with an entry has the required space.
    unsafe { context::mark(context, mode) };
    let operation = Operation { from, to, context, completes, request, outcome: Ok(()), fetched: Vec::new() };
    post(&mut world, operation);
    Ok(0)
}

/// Queues an operation, or returns it at once if its buffers are not valid.
fn post(world: &mut World, operation: Operation) {
    let from = operation.from;
    let outcome = check_locals(world, &operation);
    let endpoint = at(&mut world.endpoints, from);
    endpoint.in_flight += 1;
    endpoint.reserved += usize::from(operation.completes);
    match outcome {
        Ok(()) => endpoint.outgoing.push_back(operation),
        Err(_) => give_back(world, operation, outcome),
    }
    note_post(world, from);
}

/// Whether all local buffers are valid for the operation.
pub(crate) fn check_locals(world: &World, operation: &Operation) -> Result<(), Fault> {
    // Closing an endpoint removes its operations, so the endpoint is open.
    let domain = world.endpoints[&operation.from].domain;
    let (request, access) = (&operation.request, operation.request.action.source_access());
    check_local(world, domain, &request.source, access)?;
    check_local(world, domain, &request.compare, access)?;
    check_local(world, domain, &request.result, FI_READ)
}
