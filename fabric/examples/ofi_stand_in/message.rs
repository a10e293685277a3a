//! Messages and the buffers for them: `fi_msg(3)`.
//!
//! Invariant: a buffer that was posted is the library's until an entry gives it back; one that may not be
//! used is given back at once, as an error.

use crate::endpoint::Receive;
use crate::engine::{note_post, wake};
use crate::object::enter;
use crate::operation::{Action, Flags, Local, Request, mark_context, start};
use crate::profile::{RECEIVES_COUNT, RX_FLAGS};
use crate::queue::Entry;
use crate::refusal::Table;
use crate::region::check_local;
use crate::world::at;
use libc::c_void;
use pelago_fabric::ofi::sys::*;

/// The table.
pub(crate) static OPS: fi_ops_msg = fi_ops_msg {
    recv: Some(receive),
    recvmsg: Some(receive_message),
    send: Some(send),
    sendmsg: Some(send_message),
    inject: Some(inject),
    ..fi_ops_msg::EMPTY
};

fn sending(source: Local) -> Request {
    Request { source, ..Request::new(Action::Message) }
}

/// The buffer of a call; none if there are more than there may be.
///
/// # Safety
/// The arrays are as long as the call says.
unsafe fn buffer(message: &fi_msg) -> Option<Local> {
    match message.iov_count {
        0 => Some(Local::default()),
        // SAFETY: the caller vouches for the arrays.
        1 => unsafe {
            let iovec { iov_base, iov_len } = *message.msg_iov;
            Some(Local::of(iov_base, iov_len, message.desc, 0))
        },
        _ => None,
    }
}

unsafe extern "C" fn send(
    ep: *mut fid_ep,
    buffer: *const c_void,
    bytes: usize,
    descriptor: *mut c_void,
    peer: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let request = sending(Local::new(buffer, bytes, descriptor));
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_msg(3)` asks.
    unsafe { start(ep, peer, Flags::Default, context, request) }
}

unsafe extern "C" fn inject(ep: *mut fid_ep, buffer: *const c_void, bytes: usize, peer: fi_addr_t) -> isize {
    let null = std::ptr::null_mut();
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_msg(3)` asks.
    unsafe { start(ep, peer, Flags::Injected, null, sending(Local::new(buffer, bytes, null))) }
}

unsafe extern "C" fn send_message(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_msg(3)` asks.
    unsafe {
        let message = &*message;
        let Some(source) = buffer(message) else { return -(FI_EINVAL as isize) };
        start(ep, message.addr, Flags::Given(flags), message.context, sending(source))
    }
}

unsafe extern "C" fn receive(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    peer: fi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_msg(3)` asks.
    unsafe { post(ep, Local::new(buffer, bytes, descriptor), peer, context, 0) }
}

unsafe extern "C" fn receive_message(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_msg(3)` asks.
    unsafe {
        let message = &*message;
        let Some(local) = buffer(message) else { return -(FI_EINVAL as isize) };
        post(ep, local, message.addr, message.context, flags)
    }
}

/// Posts a buffer.
///
/// # Safety
/// The endpoint is an object of this library; the caller leaves buffer and context alone until an entry gives
/// them back.
unsafe fn post(ep: *mut fid_ep, local: Local, peer: fi_addr_t, context: *mut c_void, flags: u64) -> isize {
    // SAFETY: the caller vouches for the endpoint.
    let (mut world, id) = unsafe { enter(ep) };
    let endpoint = at(&mut world.endpoints, id);
    if !endpoint.is_enabled {
        return -(FI_EOPBADSTATE as isize);
    }
    if flags & !RX_FLAGS != 0 {
        return -(FI_EBADFLAGS as isize);
    }
    // Only who asks for directed receives may name a sender, and nobody is offered them.
    if peer != FI_ADDR_UNSPEC && flags & FI_MULTI_RECV != 0 || context.is_null() && endpoint.profile.mode != 0
    {
        return -(FI_EINVAL as isize);
    }
    if endpoint.receives.len() >= RECEIVES_COUNT {
        return -(FI_EAGAIN as isize);
    }
    let (domain, mode) = (endpoint.domain, endpoint.profile.mode);
    let (queue, _) = endpoint.receives_at.expect("it is bound before it is enabled");
    let (context, takes_several) = (context.expose_provenance(), flags & FI_MULTI_RECV != 0);
    // SAFETY: with such a mode the caller gives room in the context.
    unsafe { mark_context(context, mode) };
    match check_local(&world, domain, &local, FI_RECV) {
        Ok(()) => {
            let receive = Receive { local, context, takes_several, used_bytes: 0, is_over: false };
            at(&mut world.endpoints, id).receives.push_back(receive);
        }
        Err(fault) => {
            fault.log("posting a buffer for messages");
            let entry = Entry { context, flags: FI_MSG | FI_RECV, fault: Some(fault), ..Entry::default() };
            at(&mut world.queues, queue).push(entry);
            wake(&world, id);
        }
    }
    note_post(&mut world, id);
    0
}
