//! Receive buffers, and the delivery of messages into them: `fi_msg(3)`.
//!
//! Invariant: the library owns a posted buffer until an entry returns it; an invalid buffer is returned at
//! once, with an error.

use super::buffer::{Local, Place, only};
use super::completion::{Entry, complete};
use super::context;
use super::endpoint::bound;
use super::engine::note_post;
use super::fault::Fault;
use super::object::enter;
use super::profile::{Profile, RECEIVES_COUNT, RX_FLAGS, Truncation};
use super::refusal::answer;
use super::region::check_local;
use super::world::{Id, World, at};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;

/// A message in flight.
pub(crate) struct Letter {
    pub(crate) payload: Vec<u8>,
}

/// A posted receive buffer.
pub(crate) struct Receive {
    local: Local,
    context: usize,
    takes_several: bool,
    used_bytes: usize,
    /// Whether the buffer has been returned to the caller.
    is_over: bool,
}

/// The flags of the entry of a received message.
const ENTRY_FLAGS: u64 = FI_MSG | FI_RECV;

impl Receive {
    /// Copies a message into the buffer; returns the entries for the queue.
    fn take(&mut self, letter: &Letter, least_room: usize, profile: &Profile) -> Vec<Entry> {
        let (bytes, room) = (letter.payload.len(), self.local.bytes - self.used_bytes);
        let mut entry = Entry { context: self.context, flags: ENTRY_FLAGS, bytes, ..Entry::default() };
        if bytes > room {
            self.is_over = !self.takes_several || profile.truncation != Truncation::Keeps;
            let tells = self.takes_several && profile.truncation == Truncation::Releases;
            entry.flags |= if tells { FI_MULTI_RECV } else { 0 };
            entry.fault = Some(Fault::Truncated);
            return vec![entry];
        }
        entry.buffer = self.local.address + self.used_bytes;
        let place = std::ptr::with_exposed_provenance_mut(entry.buffer);
        // SAFETY: the caller keeps the posted buffer valid until it is returned, and the message fits into
        // the rest of the buffer.
        unsafe { pelago_fabric::copy::transfer(place, letter.payload.as_ptr(), bytes) };
        self.used_bytes += bytes;
        self.is_over = !self.takes_several || room - bytes < least_room;
        let releases = self.takes_several && self.is_over;
        if releases && profile.releases_apart {
            let release = Entry { context: self.context, flags: FI_MULTI_RECV, ..Entry::default() };
            return vec![entry, release];
        }
        entry.flags |= if releases { FI_MULTI_RECV } else { 0 };
        vec![entry]
    }
}

pub(crate) unsafe extern "C" fn receive(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    peer: fi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_msg(3)`.
    unsafe { answer(post(ep, (buffer.cast_const(), bytes, descriptor), peer, context, 0)) }
}

pub(crate) unsafe extern "C" fn receive_message(
    ep: *mut fid_ep,
    message: *const fi_msg,
    flags: u64,
) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_msg(3)`.
    unsafe {
        let message = &*message;
        let buffer = only(message.msg_iov, message.desc, message.iov_count);
        answer(buffer.and_then(|buffer| post(ep, buffer, message.addr, message.context, flags)))
    }
}

/// Cancels a posted buffer: `fi_cancel`.
pub(crate) unsafe extern "C" fn cancel(fid: *mut fid, context: *mut c_void) -> isize {
    // SAFETY: only the table of endpoints contains this function.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_ep>()) };
    let endpoint = at(&mut world.endpoints, id);
    let found = endpoint.receives.iter().position(|receive| receive.context == context.addr());
    let (Some(found), Some((queue, _))) = (found, endpoint.receives_at) else {
        return answer(Err(FI_ENOENT));
    };
    endpoint.receives.remove(found);
    let context = context.expose_provenance();
    give_back(&mut world, id, queue, context, "a buffer for messages", Fault::Cancelled);
    0
}

/// Posts a buffer, or returns an error.
///
/// # Safety
/// The endpoint is an object of this library; the caller does not access buffer and context until an entry
/// returns them.
unsafe fn post(
    ep: *mut fid_ep,
    buffer: Place,
    peer: fi_addr_t,
    context: *mut c_void,
    flags: u64,
) -> Result<usize, c_int> {
    // SAFETY: the caller guarantees that the endpoint is valid.
    let (mut world, id) = unsafe { enter(ep) };
    let endpoint = at(&mut world.endpoints, id);
    if !endpoint.is_enabled {
        return Err(FI_EOPBADSTATE);
    }
    if flags & !RX_FLAGS != 0 {
        return Err(FI_EBADFLAGS);
    }
    // Naming a sender requires the capability of directed receives, which no provider offers.
    if peer != FI_ADDR_UNSPEC && flags & FI_MULTI_RECV != 0 || context.is_null() && endpoint.profile.mode != 0
    {
        return Err(FI_EINVAL);
    }
    if endpoint.receives.len() >= RECEIVES_COUNT {
        return Err(FI_EAGAIN);
    }
    let (domain, mode) = (endpoint.domain, endpoint.profile.mode);
    let (queue, _) = bound(endpoint.receives_at);
    let (context, takes_several) = (context.expose_provenance(), flags & FI_MULTI_RECV != 0);
    // SAFETY: with such a mode, the caller passes a context with the required space.
    unsafe { context::mark(context, mode) };
    let local = Local::new(buffer);
    match check_local(&world, domain, &local, FI_RECV) {
        Ok(()) => {
            let receive = Receive { local, context, takes_several, used_bytes: 0, is_over: false };
            at(&mut world.endpoints, id).receives.push_back(receive);
        }
        Err(fault) => give_back(&mut world, id, queue, context, "posting a buffer for messages", fault),
    }
    note_post(&mut world, id);
    Ok(0)
}

/// Delivers messages into posted buffers, while there are buffers and room for entries.
pub(crate) fn deliver(world: &mut World, id: Id) {
    loop {
        let endpoint = at(&mut world.endpoints, id);
        let Some((queue, _)) = endpoint.receives_at else { return };
        let (domain, profile) = (endpoint.domain, endpoint.profile);
        if endpoint.mail.is_empty() || endpoint.receives.is_empty() || !world.queues[&queue].has_room(2) {
            return;
        }
        let endpoint = at(&mut world.endpoints, id);
        let Some(mut receive) = endpoint.receives.pop_front() else { return };
        // SAFETY: with such a mode, the context of a posted buffer has the required space.
        let intact = unsafe { context::check(receive.context, profile.mode) };
        if let Err(fault) = check_local(world, domain, &receive.local, FI_RECV).and(intact) {
            give_back(world, id, queue, receive.context, "a buffer for messages", fault);
            continue;
        }
        let endpoint = at(&mut world.endpoints, id);
        let Some(letter) = endpoint.mail.pop_front() else { return };
        let entries = receive.take(&letter, endpoint.least_room, profile);
        if !receive.is_over {
            endpoint.receives.push_front(receive);
        }
        let counter = endpoint.counters.receives;
        complete(world, id, queue, counter, "receiving a message", &entries);
    }
}

/// Returns a buffer with an error.
fn give_back(world: &mut World, id: Id, queue: Id, context: usize, operation: &str, fault: Fault) {
    let entry = Entry { context, flags: ENTRY_FLAGS, fault: Some(fault), ..Entry::default() };
    complete(world, id, queue, None, operation, &[entry]);
}
