//! Buffers for messages, and the messages that go into them: `fi_msg(3)`.
//!
//! Invariant: a buffer that was posted is the library's until an entry gives it back; one that may not be
//! used is given back at once, as an error.

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

/// A message on its way.
pub(crate) struct Letter {
    pub(crate) payload: Vec<u8>,
}

/// A buffer for messages.
pub(crate) struct Receive {
    local: Local,
    context: usize,
    takes_several: bool,
    used_bytes: usize,
    /// Whether it is the caller's again.
    is_over: bool,
}

/// The flags of an entry that tells of a message.
const ENTRY_FLAGS: u64 = FI_MSG | FI_RECV;

impl Receive {
    /// Puts a message into the buffer; what the queue is told of it.
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
        // SAFETY: who posted the buffer keeps it until it is given back, and the message fits into its rest.
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
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_msg(3)` asks.
    unsafe { answer(post(ep, (buffer.cast_const(), bytes, descriptor), peer, context, 0)) }
}

pub(crate) unsafe extern "C" fn receive_message(
    ep: *mut fid_ep,
    message: *const fi_msg,
    flags: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_msg(3)` asks.
    unsafe {
        let message = &*message;
        let buffer = only(message.msg_iov, message.desc, message.iov_count);
        answer(buffer.and_then(|buffer| post(ep, buffer, message.addr, message.context, flags)))
    }
}

/// Takes a buffer back: `fi_cancel`.
pub(crate) unsafe extern "C" fn cancel(fid: *mut fid, context: *mut c_void) -> isize {
    // SAFETY: the table is that of endpoints.
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

/// Posts a buffer, or says why not.
///
/// # Safety
/// The endpoint is an object of this library; the caller leaves buffer and context alone until an entry gives
/// them back.
unsafe fn post(
    ep: *mut fid_ep,
    buffer: Place,
    peer: fi_addr_t,
    context: *mut c_void,
    flags: u64,
) -> Result<usize, c_int> {
    // SAFETY: the caller vouches for the endpoint.
    let (mut world, id) = unsafe { enter(ep) };
    let endpoint = at(&mut world.endpoints, id);
    if !endpoint.is_enabled {
        return Err(FI_EOPBADSTATE);
    }
    if flags & !RX_FLAGS != 0 {
        return Err(FI_EBADFLAGS);
    }
    // Only who asks for directed receives may name a sender, and nobody is offered them.
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
    // SAFETY: with such a mode the caller gives room in the context.
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

/// Puts messages into posted buffers, as far as there are some, and room for the entries.
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
        // SAFETY: with such a mode, who posts a buffer gives room in its context.
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

/// Gives a buffer back as an error.
fn give_back(world: &mut World, id: Id, queue: Id, context: usize, operation: &str, fault: Fault) {
    let entry = Entry { context, flags: ENTRY_FLAGS, fault: Some(fault), ..Entry::default() };
    complete(world, id, queue, None, operation, &[entry]);
}
