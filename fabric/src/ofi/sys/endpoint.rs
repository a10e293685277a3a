//! Endpoints and messages. Source: `fi_endpoint(3)`, `fi_cm(3)`, `fi_msg(3)`, `fi_tagged(3)`.
//!
//! Invariant: a provider allocates of an endpoint only the tables that its capabilities need: the table of a
//! family that was not asked for may be absent.

use super::layout::{opaque, structs, tables};
use super::{
    FI_ENABLE, fi_addr_t, fi_bind, fi_control, fi_ops_atomic, fi_ops_rma, fi_rx_attr, fi_tx_attr, fid,
    fid_pep, iovec,
};
use libc::{c_int, c_void};

opaque! {
    /// The table of collective operations, not used here.
    fi_ops_collective;
    /// A multicast group, not used here.
    fid_mc;
}

structs! {
    /// A message to send, or the buffers to receive one.
    fi_msg {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        context: *mut c_void,
        data: u64,
    }
    /// A message with a tag.
    fi_msg_tagged {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        tag: u64,
        ignore: u64,
        context: *mut c_void,
        data: u64,
    }
    /// An endpoint.
    fid_ep {
        fid: fid,
        ops: *mut fi_ops_ep,
        cm: *mut fi_ops_cm,
        msg: *mut fi_ops_msg,
        rma: *mut fi_ops_rma,
        tagged: *mut fi_ops_tagged,
        atomic: *mut fi_ops_atomic,
        collective: *mut fi_ops_collective,
    }
}

tables! {
    /// The operations of an endpoint, other than transfers.
    fi_ops_ep in ops {
        cancel(fid: *mut fid, context: *mut c_void) -> isize;
        getopt(fid: *mut fid, level: c_int, optname: c_int, optval: *mut c_void, optlen: *mut usize) -> c_int;
        setopt(fid: *mut fid, level: c_int, optname: c_int, optval: *const c_void, optlen: usize) -> c_int;
        tx_ctx(
            sep: *mut fid_ep, index: c_int, attr: *mut fi_tx_attr, tx_ep: *mut *mut fid_ep,
            context: *mut c_void,
        ) -> c_int => fi_tx_context;
        rx_ctx(
            sep: *mut fid_ep, index: c_int, attr: *mut fi_rx_attr, rx_ep: *mut *mut fid_ep,
            context: *mut c_void,
        ) -> c_int => fi_rx_context;
        rx_size_left(ep: *mut fid_ep) -> isize;
        tx_size_left(ep: *mut fid_ep) -> isize;
    }
    /// The operations that name and connect an endpoint.
    fi_ops_cm in cm {
        setname(fid: *mut fid, addr: *mut c_void, addrlen: usize) -> c_int;
        getname(fid: *mut fid, addr: *mut c_void, addrlen: *mut usize) -> c_int;
        getpeer(ep: *mut fid_ep, addr: *mut c_void, addrlen: *mut usize) -> c_int;
        connect(ep: *mut fid_ep, addr: *const c_void, param: *const c_void, paramlen: usize) -> c_int;
        listen(pep: *mut fid_pep) -> c_int;
        accept(ep: *mut fid_ep, param: *const c_void, paramlen: usize) -> c_int;
        reject(pep: *mut fid_pep, handle: *mut fid, param: *const c_void, paramlen: usize) -> c_int;
        shutdown(ep: *mut fid_ep, flags: u64) -> c_int;
        join(
            ep: *mut fid_ep, addr: *const c_void, flags: u64, mc: *mut *mut fid_mc, context: *mut c_void,
        ) -> c_int;
    }
    /// Messages.
    fi_ops_msg in msg {
        recv(
            ep: *mut fid_ep, buf: *mut c_void, len: usize, desc: *mut c_void, src_addr: fi_addr_t,
            context: *mut c_void,
        ) -> isize => fi_recv;
        recvv(
            ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: usize, src_addr: fi_addr_t,
            context: *mut c_void,
        ) -> isize => fi_recvv;
        recvmsg(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> isize => fi_recvmsg;
        send(
            ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, dest_addr: fi_addr_t,
            context: *mut c_void,
        ) -> isize => fi_send;
        sendv(
            ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: usize, dest_addr: fi_addr_t,
            context: *mut c_void,
        ) -> isize => fi_sendv;
        sendmsg(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> isize => fi_sendmsg;
        inject(ep: *mut fid_ep, buf: *const c_void, len: usize, dest_addr: fi_addr_t) -> isize => fi_inject;
        senddata(
            ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, data: u64,
            dest_addr: fi_addr_t,
            context: *mut c_void,
        ) -> isize => fi_senddata;
        injectdata(
            ep: *mut fid_ep, buf: *const c_void, len: usize, data: u64, dest_addr: fi_addr_t,
        ) -> isize => fi_injectdata;
    }
    /// Messages with tags, not used here.
    fi_ops_tagged in tagged {
        recv(
            ep: *mut fid_ep, buf: *mut c_void, len: usize, desc: *mut c_void, src_addr: fi_addr_t, tag: u64,
            ignore: u64, context: *mut c_void,
        ) -> isize;
        recvv(
            ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: usize, src_addr: fi_addr_t,
            tag: u64,
            ignore: u64, context: *mut c_void,
        ) -> isize;
        recvmsg(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> isize;
        send(
            ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, dest_addr: fi_addr_t,
            tag: u64,
            context: *mut c_void,
        ) -> isize;
        sendv(
            ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: usize, dest_addr: fi_addr_t,
            tag: u64,
            context: *mut c_void,
        ) -> isize;
        sendmsg(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> isize;
        inject(ep: *mut fid_ep, buf: *const c_void, len: usize, dest_addr: fi_addr_t, tag: u64) -> isize;
        senddata(
            ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, data: u64,
            dest_addr: fi_addr_t,
            tag: u64, context: *mut c_void,
        ) -> isize;
        injectdata(
            ep: *mut fid_ep, buf: *const c_void, len: usize, data: u64, dest_addr: fi_addr_t, tag: u64,
        ) -> isize;
    }
}

/// Binds an endpoint to a queue, a counter or an address vector.
///
/// # Safety
/// Both objects are open.
pub unsafe fn fi_ep_bind(ep: *mut fid_ep, object: *mut fid, flags: u64) -> c_int {
    // SAFETY: the caller promises open objects; an endpoint begins with its fid.
    unsafe { fi_bind(ep.cast(), object, flags) }
}

/// Makes an endpoint ready for transfers.
///
/// # Safety
/// The endpoint is open and bound to what it needs.
pub unsafe fn fi_enable(ep: *mut fid_ep) -> c_int {
    // SAFETY: the caller promises an open endpoint, which begins with its fid; the command has no argument.
    unsafe { fi_control(ep.cast(), FI_ENABLE, std::ptr::null_mut()) }
}

/// Writes the address of an endpoint to `addr`, and its length to `addrlen`, which is the size of the buffer
/// before. Returns `-FI_ETOOSMALL` if the buffer is too small.
///
/// # Safety
/// The endpoint is enabled; `addrlen` is valid for reads and writes, and `addr` for writes of that many
/// bytes.
pub unsafe fn fi_getname(ep: *mut fid_ep, addr: *mut c_void, addrlen: *mut usize) -> c_int {
    // SAFETY: the caller promises an open endpoint, whose provider fills this table; it begins with its fid.
    unsafe { (*(*ep).cm).getname.unwrap_unchecked()(ep.cast(), addr, addrlen) }
}

/// Cancels the operation of this context, where the provider can.
///
/// # Safety
/// The endpoint is open.
pub unsafe fn fi_cancel(ep: *mut fid_ep, context: *mut c_void) -> isize {
    // SAFETY: the caller promises an open endpoint, whose provider fills this table; it begins with its fid.
    unsafe { (*(*ep).ops).cancel.unwrap_unchecked()(ep.cast(), context) }
}

/// Sets an option of an endpoint.
///
/// # Safety
/// The endpoint is open; `value` is valid for reads of `bytes` bytes, and of the type of the option.
pub unsafe fn fi_setopt(
    ep: *mut fid_ep,
    level: c_int,
    option: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller promises an open endpoint, whose provider fills this table; it begins with its fid.
    unsafe { (*(*ep).ops).setopt.unwrap_unchecked()(ep.cast(), level, option, value, bytes) }
}

/// Reads an option of an endpoint.
///
/// # Safety
/// The endpoint is open; `value` is valid for writes of `bytes` bytes.
pub unsafe fn fi_getopt(
    ep: *mut fid_ep,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller promises an open endpoint, whose provider fills this table; it begins with its fid.
    unsafe { (*(*ep).ops).getopt.unwrap_unchecked()(ep.cast(), level, option, value, bytes) }
}
