//! The progress engine: moves operations from the queue of the initiator to that of the target, executes
//! them, and returns them to the initiator, which writes entries and counters.
//!
//! Invariant: each step occurs in a call on the endpoint that it concerns: sending and completion in calls on
//! the initiator, accesses to memory in calls on the target. With automatic progress, a call on the initiator
//! also makes the steps of the target, and a thread makes progress for endpoints that are not called.
//! Messages between two endpoints stay in order, and behind all operations that were started before them,
//! because some providers guarantee this; writes stay in order if the provider guarantees it. All other
//! operations are executed in reverse order, because nothing is guaranteed.

use super::completion::{self, Entry, wake};
use super::context;
use super::endpoint::{Endpoint, bound};
use super::fault::Fault;
use super::operation::{Action, Operation, check_locals};
use super::receive::{Letter, deliver};
use super::region::{check_local, find_remote};
use super::world::{Id, World, at, world};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::{Atomic, AtomicKind, copy};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, PoisonError};
use std::time::Duration;

/// The delay of automatic progress, for endpoints that are not called.
const LAZINESS: Duration = Duration::from_millis(1);

/// Notified when an operation may need automatic progress.
static POSTED: Condvar = Condvar::new();

/// Makes progress on an endpoint.
pub(crate) fn advance(world: &mut World, id: Id) {
    take_back(world, id);
    let targets = send_out(world, id);
    let is_auto = !at(&mut world.endpoints, id).profile.is_manual();
    if is_auto {
        targets.into_iter().for_each(|target| serve(world, target));
    }
    serve(world, id);
    if is_auto {
        take_back(world, id);
    }
}

/// Makes progress on all endpoints for which `concerns` returns true.
pub(crate) fn advance_all(world: &mut World, concerns: impl Fn(&Endpoint) -> bool) {
    world.endpoints_where(concerns).into_iter().for_each(|id| advance(world, id));
}

/// Whether `advance` would change something.
pub(crate) fn is_movable(world: &World, id: Id) -> bool {
    let endpoint = &world.endpoints[&id];
    let mut held = Vec::new();
    let leaves = |operation: &Operation| {
        let (action, target) = (operation.request.action, world.endpoints.get(&operation.to));
        let is_behind = action == Action::Message && held.contains(&operation.to);
        let leaves = target.is_none_or(|target| target.has_room(action) && !is_behind);
        held.extend((!leaves).then_some(operation.to));
        leaves
    };
    !endpoint.returned.is_empty()
        || !endpoint.incoming.is_empty()
        || !endpoint.mail.is_empty() && !endpoint.receives.is_empty()
        || endpoint.outgoing.iter().any(leaves)
}

/// To be called when an operation was posted to an endpoint.
pub(crate) fn note_post(world: &mut World, id: Id) {
    wake(world, id);
    if at(&mut world.endpoints, id).profile.is_manual() {
        return;
    }
    if !world.has_mover {
        world.has_mover = true;
        std::thread::spawn(move_for_others);
    }
    POSTED.notify_one();
}

/// The thread that makes automatic progress.
fn move_for_others() {
    let movable = |world: &World| -> Vec<Id> {
        let auto = world.endpoints_where(|endpoint| !endpoint.profile.is_manual());
        auto.into_iter().filter(|id| is_movable(world, *id)).collect()
    };
    let nobody = Condvar::new();
    let mut guard = world();
    loop {
        guard = POSTED
            .wait_while(guard, |world| movable(world).is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        (guard, _) = nobody.wait_timeout(guard, LAZINESS).unwrap_or_else(PoisonError::into_inner);
        movable(&guard).into_iter().for_each(|id| advance(&mut guard, id));
    }
}

/// Passes operations to their targets, as far as these have room; returns the targets.
fn send_out(world: &mut World, id: Id) -> Vec<Id> {
    let (mut held, mut targets) = (VecDeque::new(), Vec::new());
    while let Some(operation) = at(&mut world.endpoints, id).outgoing.pop_front() {
        let (to, is_message) = (operation.to, operation.request.action == Action::Message);
        let Some(target) = world.endpoints.get_mut(&to) else {
            give_back(world, operation, Err(Fault::Gone));
            continue;
        };
        // A full target stays full during this loop: no message overtakes an operation that is held back.
        let is_behind = || held.iter().any(|held: &Operation| held.to == to);
        if !target.has_room(operation.request.action) || is_message && is_behind() {
            held.push_back(operation);
            continue;
        }
        if is_message {
            post_letter(world, operation);
        } else {
            target.incoming.push_back(operation);
        }
        wake(world, to);
        if !targets.contains(&to) {
            targets.push(to);
        }
    }
    at(&mut world.endpoints, id).outgoing = held;
    targets
}

/// Sends a message; the send is complete when the message has left.
fn post_letter(world: &mut World, operation: Operation) {
    let outcome = check_locals(world, &operation);
    if outcome.is_ok() {
        // SAFETY: the sender keeps the buffer valid until its message is complete.
        let letter = Letter { payload: unsafe { operation.request.source.read() } };
        at(&mut world.endpoints, operation.to).mail.push_back(letter);
    }
    give_back(world, operation, outcome);
}

/// Executes the operations that have arrived at an endpoint, and wakes its senders, because there is room
/// again.
fn serve(world: &mut World, id: Id) {
    while let Some(mut operation) = take_next(at(&mut world.endpoints, id)) {
        let outcome = execute(world, id, &mut operation);
        give_back(world, operation, outcome);
    }
    // Messages are delivered after the operations that came before them.
    deliver(world, id);
    let waits = |endpoint: &Endpoint| endpoint.outgoing.iter().any(|operation| operation.to == id);
    world.endpoints_where(waits).into_iter().for_each(|sender| wake(world, sender));
}

/// The operation that is executed next: the last one, or if it is a write and writes are in order, the first
/// write.
fn take_next(target: &mut Endpoint) -> Option<Operation> {
    let is_write = |operation: &Operation| operation.request.action == Action::Write;
    let is_ordered = target.profile.ordered_write_bytes() > 0;
    let is_in_order = is_ordered && target.incoming.back().is_some_and(is_write);
    let first = if is_in_order { target.incoming.iter().position(is_write) } else { None };
    target.incoming.remove(first.unwrap_or(target.incoming.len().wrapping_sub(1)))
}

/// Executes an operation at its target.
fn execute(world: &mut World, id: Id, operation: &mut Operation) -> Result<(), Fault> {
    check_locals(world, operation)?;
    let request = &operation.request;
    let domain = at(&mut world.endpoints, id).domain;
    let remote = find_remote(world, id, domain, &request.remote, request.action.remote_access())?;
    let place = std::ptr::with_exposed_provenance_mut::<u8>(remote);
    // SAFETY: the owner of the region keeps its memory valid, and the range lies in it; the initiator keeps
    // its buffers valid until the operation is complete.
    unsafe {
        match request.action {
            Action::Message => unreachable!("messages go to the mail"),
            Action::Write => copy::transfer(place, request.source.read().as_ptr(), request.remote.bytes),
            Action::Read => {
                operation.fetched.resize(request.remote.bytes, 0);
                copy::transfer(operation.fetched.as_mut_ptr(), place, request.remote.bytes);
            }
            Action::Atomic { kind, op, .. } => {
                if !remote.is_multiple_of(kind.bytes()) {
                    return Err(Fault::Misaligned);
                }
                let operand = word(kind, &request.source.read());
                let compare = word(kind, &request.compare.read());
                let old = Atomic { kind, op, operand, compare }.execute(place);
                operation.fetched = bytes_of(kind, old);
            }
        }
    }
    Ok(())
}

/// The value of a word of this kind; 0 if there are no bytes.
fn word(kind: AtomicKind, bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[low(kind)][..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// The bytes of a word of this kind.
fn bytes_of(kind: AtomicKind, word: u64) -> Vec<u8> {
    word.to_ne_bytes()[low(kind)].to_vec()
}

/// The range of the bytes of such a word in a `u64`.
fn low(kind: AtomicKind) -> Range<usize> {
    if cfg!(target_endian = "big") { 8 - kind.bytes()..8 } else { 0..kind.bytes() }
}

/// Returns an operation to its initiator, with its outcome.
pub(crate) fn give_back(world: &mut World, mut operation: Operation, outcome: Result<(), Fault>) {
    operation.outcome = outcome;
    let from = operation.from;
    if let Some(endpoint) = world.endpoints.get_mut(&from) {
        endpoint.returned.push_back(operation);
        wake(world, from);
    }
}

/// Completes operations that have returned.
fn take_back(world: &mut World, id: Id) {
    while let Some(operation) = at(&mut world.endpoints, id).returned.pop_front() {
        complete(world, operation);
    }
}

/// Writes the fetched data, counts the operation and writes its entry.
fn complete(world: &mut World, mut operation: Operation) {
    let (id, action) = (operation.from, operation.request.action);
    let endpoint = at(&mut world.endpoints, id);
    endpoint.in_flight -= 1;
    endpoint.reserved -= usize::from(operation.completes);
    let (mode, domain, own_context) = (endpoint.profile.mode, endpoint.domain, endpoint.context);
    let counter = match action {
        Action::Message => endpoint.counters.sends,
        action if action.fetches() => endpoint.counters.reads,
        _ => endpoint.counters.writes,
    };
    let (queue, _) = bound(endpoint.transmits);
    // SAFETY: with such a mode, the context of every operation with an entry has the required space.
    let intact = unsafe { context::check(operation.context, mode) };
    let result = &operation.request.result;
    operation.outcome =
        operation.outcome.and(intact).and_then(|()| check_local(world, domain, result, FI_READ));
    if operation.outcome.is_ok() && result.bytes > 0 {
        let place = std::ptr::with_exposed_provenance_mut(result.address);
        // SAFETY: the initiator keeps the result buffer valid until the operation is complete, and its length
        // is that of the fetched data.
        unsafe { copy::transfer(place, operation.fetched.as_ptr(), result.bytes) };
    }
    let (completes, fault) = (operation.completes, operation.outcome.err());
    at(&mut world.queues, queue).release(usize::from(completes));
    let entry = (completes || fault.is_some()).then(|| {
        let context = if completes { operation.context } else { own_context };
        Entry { context, flags: action.entry_flags(), fault, ..Entry::default() }
    });
    completion::complete(world, id, queue, counter, action.name(), entry.as_slice());
}
