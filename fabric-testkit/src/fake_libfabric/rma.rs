//! Reads and writes: `fi_rma(3)`.
//!
//! Invariant: each function makes a request, and `operation::start` does the rest.

use super::buffer::{Local, Remote, only};
use super::null;
use super::operation::{Action, Flags, Request, start};
use super::refusal::Table;
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use std::ptr::null_mut;

/// The table of functions.
pub(crate) static OPS: fi_ops_rma = fi_ops_rma {
    read: Some(read),
    readmsg: Some(message::<true, false>),
    write: Some(write),
    writemsg: Some(message::<false, false>),
    inject: Some(inject::<false>),
    ..fi_ops_rma::EMPTY
};

/// The table of the null provider.
pub(crate) static NULL: fi_ops_rma = fi_ops_rma {
    readmsg: Some(message::<true, true>),
    writemsg: Some(message::<false, true>),
    inject: Some(inject::<true>),
    ..fi_ops_rma::EMPTY
};

unsafe extern "C" fn read(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    peer: fi_addr_t,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let local = Local::new((buffer, bytes, descriptor));
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_rma(3)`.
    unsafe { start(ep, peer, Flags::Default, context, Ok(request(Action::Read, local, address, key))) }
}

unsafe extern "C" fn write(
    ep: *mut fid_ep,
    buffer: *const c_void,
    bytes: usize,
    descriptor: *mut c_void,
    peer: fi_addr_t,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let local = Local::new((buffer, bytes, descriptor));
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_rma(3)`.
    unsafe { start(ep, peer, Flags::Default, context, Ok(request(Action::Write, local, address, key))) }
}

unsafe extern "C" fn inject<const NULL: bool>(
    ep: *mut fid_ep,
    buffer: *const c_void,
    bytes: usize,
    peer: fi_addr_t,
    address: u64,
    key: u64,
) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_rma(3)`.
    unsafe {
        if NULL {
            return null::count(ep, false);
        }
        let local = Local::new((buffer, bytes, null_mut()));
        start(ep, peer, Flags::Injected, null_mut(), Ok(request(Action::Write, local, address, key)))
    }
}

#[inline(never)]
unsafe extern "C" fn message<const READS: bool, const NULL: bool>(
    ep: *mut fid_ep,
    message: *const fi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_rma(3)`.
    unsafe {
        if NULL {
            return null::count_or(ep, flags, READS, || self::message::<READS, false>(ep, message, flags));
        }
        let message = &*message;
        let request = request_of(if READS { Action::Read } else { Action::Write }, message);
        start(ep, message.addr, Flags::Given(flags), message.context, request)
    }
}

/// The request of a message structure; an error if the number of buffers is not supported, or if their
/// lengths differ.
///
/// # Safety
/// The arrays have the lengths that the message states.
unsafe fn request_of(action: Action, message: &fi_msg_rma) -> Result<Request, c_int> {
    // SAFETY: the caller guarantees that the arrays are valid.
    let local = Local::new(unsafe { only(message.msg_iov, message.desc, message.iov_count)? });
    if message.rma_iov_count != 1 {
        return Err(FI_EINVAL);
    }
    // SAFETY: the caller guarantees that the array is valid; it has one element.
    let fi_rma_iov { addr, len, key } = unsafe { *message.rma_iov };
    if local.bytes == len { Ok(request(action, local, addr, key)) } else { Err(FI_EINVAL) }
}

fn request(action: Action, local: Local, address: u64, key: u64) -> Request {
    let remote = Remote { address, bytes: local.bytes, key };
    match action {
        Action::Read => Request { result: local, remote, ..Request::new(action) },
        _ => Request { source: local, remote, ..Request::new(action) },
    }
}
