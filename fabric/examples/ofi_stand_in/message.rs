//! Messages: `fi_msg(3)`.
//!
//! Invariant: a message is complete when it has left; what becomes of it at its target is the receiver's.

use crate::operation::{Action, Flags, Local, Request, start};
use crate::receive::{receive, receive_message};
use crate::refusal::Table;
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
pub(crate) unsafe fn buffer(message: &fi_msg) -> Option<Local> {
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
