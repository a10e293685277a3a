//! Remote memory access. Source: `fi_rma(3)`.
//!
//! Invariant: a remote address is an offset into the region of the key, or a virtual address where the
//! domain's `mr_mode` says `FI_MR_VIRT_ADDR`.

use super::layout::{structs, tables};
use super::{fi_addr_t, fid_ep, iovec};
use libc::c_void;

structs! {
    /// A range of remote memory, in bytes.
    fi_rma_iov {
        addr: u64,
        len: usize,
        key: u64,
    }
    /// A range of remote memory, in elements of an atomic.
    fi_rma_ioc {
        addr: u64,
        count: usize,
        key: u64,
    }
    /// A read or a write.
    fi_msg_rma {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        rma_iov: *const fi_rma_iov,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }
}

tables! {
    /// Reads and writes.
    fi_ops_rma in rma {
        read(
            ep: *mut fid_ep, buf: *mut c_void, len: usize, desc: *mut c_void, src_addr: fi_addr_t, addr: u64,
            key: u64, context: *mut c_void,
        ) -> isize => fi_read;
        readv(
            ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: usize, src_addr: fi_addr_t,
            addr: u64, key: u64, context: *mut c_void,
        ) -> isize => fi_readv;
        readmsg(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> isize => fi_readmsg;
        write(
            ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, dest_addr: fi_addr_t,
            addr: u64,
            key: u64, context: *mut c_void,
        ) -> isize => fi_write;
        writev(
            ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: usize, dest_addr: fi_addr_t,
            addr: u64, key: u64, context: *mut c_void,
        ) -> isize => fi_writev;
        writemsg(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> isize => fi_writemsg;
        inject(
            ep: *mut fid_ep, buf: *const c_void, len: usize, dest_addr: fi_addr_t, addr: u64, key: u64,
        ) -> isize => fi_inject_write;
        writedata(
            ep: *mut fid_ep, buf: *const c_void, len: usize, desc: *mut c_void, data: u64,
            dest_addr: fi_addr_t,
            addr: u64, key: u64, context: *mut c_void,
        ) -> isize => fi_writedata;
        injectdata(
            ep: *mut fid_ep, buf: *const c_void, len: usize, data: u64, dest_addr: fi_addr_t, addr: u64,
            key: u64,
        ) -> isize => fi_inject_writedata;
    }
}
