//! Messages: `fi_msg(3)`.
//!
//! Invariant: a send is complete when the message has left; errors at its target are reported to the
//! receiver.

use super::buffer::{Local, Place, only};
use super::operation::{Action, Flags, Request, start};
use super::receive::{receive, receive_message};
use super::refusal::Table;
use libc::c_void;
use pelago_fabric::ofi::sys::*;
use std::ptr::null_mut;

/// The table of functions.
pub(crate) static OPS: fi_ops_msg = fi_ops_msg {
    recv: Some(receive),
    recvmsg: Some(receive_message),
    send: Some(send),
    sendmsg: Some(send_message),
    inject: Some(inject),
    ..fi_ops_msg::EMPTY
};

unsafe extern "C" fn send(
    ep: *mut fid_ep,
    buffer: *const c_void,
    bytes: usize,
    descriptor: *mut c_void,
    peer: fi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_msg(3)`.
    unsafe { start(ep, peer, Flags::Default, context, Ok(request((buffer, bytes, descriptor)))) }
}

unsafe extern "C" fn inject(ep: *mut fid_ep, buffer: *const c_void, bytes: usize, peer: fi_addr_t) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_msg(3)`.
    unsafe { start(ep, peer, Flags::Injected, null_mut(), Ok(request((buffer, bytes, null_mut())))) }
}

unsafe extern "C" fn send_message(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_msg(3)`.
    unsafe {
        let message = &*message;
        let request = only(message.msg_iov, message.desc, message.iov_count).map(request);
        start(ep, message.addr, Flags::Given(flags), message.context, request)
    }
}

fn request(source: Place) -> Request {
    Request { source: Local::new(source), ..Request::new(Action::Message) }
}
