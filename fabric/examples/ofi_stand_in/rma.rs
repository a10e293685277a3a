//! Reads and writes: `fi_rma(3)`.
//!
//! Invariant: each function says what it asks for, and `operation::start` does the rest. One buffer at each
//! end, as the limits of the offers say.

use crate::operation::{Action, Flags, Local, Remote, Request, start};
use crate::refusal::Table;
use libc::c_void;
use pelago_fabric::ofi::sys::*;

/// The table.
pub(crate) static OPS: fi_ops_rma = fi_ops_rma {
    read: Some(read),
    readmsg: Some(read_message),
    write: Some(write),
    writemsg: Some(write_message),
    inject: Some(inject),
    ..fi_ops_rma::EMPTY
};

fn writing(source: Local, address: u64, key: u64) -> Request {
    let remote = Remote { address, bytes: source.bytes, key };
    Request { source, remote, ..Request::new(Action::Write) }
}

fn reading(result: Local, address: u64, key: u64) -> Request {
    let remote = Remote { address, bytes: result.bytes, key };
    Request { result, remote, ..Request::new(Action::Read) }
}

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
    let request = reading(Local::new(buffer, bytes, descriptor), address, key);
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_rma(3)` asks.
    unsafe { start(ep, peer, Flags::Default, context, request) }
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
    let request = writing(Local::new(buffer, bytes, descriptor), address, key);
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_rma(3)` asks.
    unsafe { start(ep, peer, Flags::Default, context, request) }
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    buffer: *const c_void,
    bytes: usize,
    peer: fi_addr_t,
    address: u64,
    key: u64,
) -> isize {
    let null = std::ptr::null_mut();
    let request = writing(Local::new(buffer, bytes, null), address, key);
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_rma(3)` asks.
    unsafe { start(ep, peer, Flags::Injected, null, request) }
}

/// The local buffer and the remote range of a call; none if there are not as many as there may be, or they
/// differ in length.
///
/// # Safety
/// The arrays are as long as the call says.
unsafe fn ends(message: &fi_msg_rma) -> Option<(Local, u64, u64)> {
    if message.rma_iov_count != 1 || message.iov_count > 1 {
        return None;
    }
    // SAFETY: the caller vouches for the arrays.
    let (local, remote) = unsafe {
        let local = match message.iov_count {
            0 => Local::default(),
            _ => {
                let iovec { iov_base, iov_len } = *message.msg_iov;
                Local::of(iov_base, iov_len, message.desc, 0)
            }
        };
        (local, *message.rma_iov)
    };
    (local.bytes == remote.len).then_some((local, remote.addr, remote.key))
}

/// As the table has it; also for what the hollow provider does in earnest.
pub(crate) unsafe extern "C" fn write_message(
    ep: *mut fid_ep,
    message: *const fi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_rma(3)` asks.
    unsafe {
        let message = &*message;
        let Some((local, address, key)) = ends(message) else { return -(FI_EINVAL as isize) };
        let request = writing(local, address, key);
        start(ep, message.addr, Flags::Given(flags), message.context, request)
    }
}

/// As the table has it; also for what the hollow provider does in earnest.
pub(crate) unsafe extern "C" fn read_message(
    ep: *mut fid_ep,
    message: *const fi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_rma(3)` asks.
    unsafe {
        let message = &*message;
        let Some((local, address, key)) = ends(message) else { return -(FI_EINVAL as isize) };
        let request = reading(local, address, key);
        start(ep, message.addr, Flags::Given(flags), message.context, request)
    }
}
