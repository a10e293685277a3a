//! Domains, and their objects other than endpoints: address vectors and memory regions. Source:
//! `fi_domain(3)`, `fi_av(3)`, `fi_mr(3)`.
//!
//! Invariant: attributes are handed over with room behind them ([`super::Padded`]).

use super::layout::{opaque, structs, tables};
use super::{
    FI_ENOSYS, fi_addr_t, fi_atomic_attr, fi_av_type, fi_cntr_attr, fi_cq_attr, fi_datatype, fi_info, fi_op,
    fi_rx_attr, fi_tx_attr, fid, fid_cntr, fid_cq, fid_ep, iovec,
};
use libc::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// `enum fi_hmem_iface`: `FI_HMEM_*`.
pub type fi_hmem_iface = c_uint;
/// `enum fi_collective_op`, not used here.
pub type fi_collective_op = c_uint;
/// The number of a device, a union of integers in C.
pub type fi_mr_device = u64;

opaque! {
    /// The attributes of a set of addresses, not used here.
    fi_av_set_attr;
    /// A set of addresses, not used here.
    fid_av_set;
    /// The attributes of a poll set, not used here.
    fi_poll_attr;
    /// A poll set, not used here.
    fid_poll;
    /// A shared transmit context, not used here.
    fid_stx;
    /// The attributes of a collective operation, not used here.
    fi_collective_attr;
}

structs! {
    /// The attributes of an address vector.
    fi_av_attr {
        r#type: fi_av_type,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }
    /// An address vector.
    fid_av {
        fid: fid,
        ops: *mut fi_ops_av,
    }
    /// A memory region.
    fid_mr {
        fid: fid,
        mem_desc: *mut c_void,
        key: u64,
    }
    /// The attributes of a memory region.
    fi_mr_attr {
        mr_iov: *const iovec,
        iov_count: usize,
        access: u64,
        offset: u64,
        requested_key: u64,
        context: *mut c_void,
        auth_key_size: usize,
        auth_key: *mut u8,
        iface: fi_hmem_iface,
        device: fi_mr_device,
    }
    /// A domain.
    fid_domain {
        fid: fid,
        ops: *mut fi_ops_domain,
        mr: *mut fi_ops_mr,
    }
}

tables! {
    /// The operations of an address vector.
    fi_ops_av in ops {
        insert(
            av: *mut fid_av, addr: *const c_void, count: usize, fi_addr: *mut fi_addr_t, flags: u64,
            context: *mut c_void,
        ) -> c_int => fi_av_insert;
        insertsvc(
            av: *mut fid_av, node: *const c_char, service: *const c_char, fi_addr: *mut fi_addr_t, flags: u64,
            context: *mut c_void,
        ) -> c_int => fi_av_insertsvc;
        insertsym(
            av: *mut fid_av, node: *const c_char, nodecnt: usize, service: *const c_char, svccnt: usize,
            fi_addr: *mut fi_addr_t, flags: u64, context: *mut c_void,
        ) -> c_int;
        remove(av: *mut fid_av, fi_addr: *mut fi_addr_t, count: usize, flags: u64) -> c_int => fi_av_remove;
        lookup(
            av: *mut fid_av, fi_addr: fi_addr_t, addr: *mut c_void, addrlen: *mut usize,
        ) -> c_int => fi_av_lookup;
        straddr(
            av: *mut fid_av, addr: *const c_void, buf: *mut c_char, len: *mut usize,
        ) -> *const c_char => fi_av_straddr;
        av_set(
            av: *mut fid_av, attr: *mut fi_av_set_attr, av_set: *mut *mut fid_av_set, context: *mut c_void,
        ) -> c_int;
    }
    /// The operations of a domain.
    fi_ops_domain in ops {
        av_open(
            domain: *mut fid_domain, attr: *mut fi_av_attr, av: *mut *mut fid_av, context: *mut c_void,
        ) -> c_int => fi_av_open;
        cq_open(
            domain: *mut fid_domain, attr: *mut fi_cq_attr, cq: *mut *mut fid_cq, context: *mut c_void,
        ) -> c_int => fi_cq_open;
        endpoint(
            domain: *mut fid_domain, info: *mut fi_info, ep: *mut *mut fid_ep, context: *mut c_void,
        ) -> c_int => fi_endpoint;
        scalable_ep(
            domain: *mut fid_domain, info: *mut fi_info, sep: *mut *mut fid_ep, context: *mut c_void,
        ) -> c_int => fi_scalable_ep;
        cntr_open(
            domain: *mut fid_domain, attr: *mut fi_cntr_attr, cntr: *mut *mut fid_cntr, context: *mut c_void,
        ) -> c_int => fi_cntr_open;
        poll_open(domain: *mut fid_domain, attr: *mut fi_poll_attr, pollset: *mut *mut fid_poll) -> c_int;
        stx_ctx(
            domain: *mut fid_domain, attr: *mut fi_tx_attr, stx: *mut *mut fid_stx, context: *mut c_void,
        ) -> c_int => fi_stx_context;
        srx_ctx(
            domain: *mut fid_domain, attr: *mut fi_rx_attr, rx_ep: *mut *mut fid_ep, context: *mut c_void,
        ) -> c_int;
        query_atomic(
            domain: *mut fid_domain, datatype: fi_datatype, op: fi_op, attr: *mut fi_atomic_attr, flags: u64,
        ) -> c_int;
        query_collective(
            domain: *mut fid_domain, coll: fi_collective_op, attr: *mut fi_collective_attr, flags: u64,
        ) -> c_int;
        endpoint2(
            domain: *mut fid_domain, info: *mut fi_info, ep: *mut *mut fid_ep, flags: u64,
            context: *mut c_void,
        ) -> c_int;
    }
    /// The operations of a domain that register memory. The object is the domain.
    fi_ops_mr in ops {
        reg(
            fid: *mut fid, buf: *const c_void, len: usize, access: u64, offset: u64, requested_key: u64,
            flags: u64, mr: *mut *mut fid_mr, context: *mut c_void,
        ) -> c_int;
        regv(
            fid: *mut fid, iov: *const iovec, count: usize, access: u64, offset: u64, requested_key: u64,
            flags: u64, mr: *mut *mut fid_mr, context: *mut c_void,
        ) -> c_int;
        regattr(fid: *mut fid, attr: *const fi_mr_attr, flags: u64, mr: *mut *mut fid_mr) -> c_int;
    }
}

/// Registers `len` bytes from `buf`.
///
/// # Safety
/// The domain is open, the memory stays mapped until the region is closed, `mr` is valid for a write.
pub unsafe fn fi_mr_reg(
    domain: *mut fid_domain,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller promises an open domain, whose provider fills this table; a domain begins with its
    // fid.
    unsafe {
        let reg = (*(*domain).mr).reg.unwrap_unchecked();
        reg(domain.cast(), buf, len, access, offset, requested_key, flags, mr, context)
    }
}

/// Registers memory with all its attributes.
///
/// # Safety
/// The domain is open, `attr` has room for appended fields, its memory stays mapped until the region is
/// closed, `mr` is valid for a write.
pub unsafe fn fi_mr_regattr(
    domain: *mut fid_domain,
    attr: *const fi_mr_attr,
    flags: u64,
    mr: *mut *mut fid_mr,
) -> c_int {
    // SAFETY: the caller promises an open domain, whose provider fills this table; a domain begins with its
    // fid.
    unsafe { (*(*domain).mr).regattr.unwrap_unchecked()(domain.cast(), attr, flags, mr) }
}

/// The descriptor of a region, for the calls that use its memory.
///
/// # Safety
/// The region is open.
pub unsafe fn fi_mr_desc(mr: *mut fid_mr) -> *mut c_void {
    // SAFETY: the caller promises that the region is open, so its object is valid.
    unsafe { (*mr).mem_desc }
}

/// The key of a region, for its peers.
///
/// # Safety
/// The region is open.
pub unsafe fn fi_mr_key(mr: *mut fid_mr) -> u64 {
    // SAFETY: the caller promises that the region is open, so its object is valid.
    unsafe { (*mr).key }
}

/// Binds a region to an endpoint or a counter.
///
/// # Safety
/// Both objects are open.
pub unsafe fn fi_mr_bind(mr: *mut fid_mr, object: *mut fid, flags: u64) -> c_int {
    // SAFETY: the caller promises open objects; a region begins with its fid.
    unsafe { super::fi_bind(mr.cast(), object, flags) }
}

/// Makes a region usable that was registered to be bound first (`FI_MR_ENDPOINT`).
///
/// # Safety
/// The region is open.
pub unsafe fn fi_mr_enable(mr: *mut fid_mr) -> c_int {
    // SAFETY: the caller promises an open region, which begins with its fid; the command has no argument.
    unsafe { super::fi_control(mr.cast(), super::FI_ENABLE, std::ptr::null_mut()) }
}

/// Asks whether a domain executes an atomic, and how many elements at a time; returns `-FI_ENOSYS` if the
/// provider has no such query.
///
/// # Safety
/// The domain is open, `attr` has room for appended fields.
pub unsafe fn fi_query_atomic(
    domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    // SAFETY: the caller promises an open domain, so its table is valid up to its size.
    unsafe {
        let table = (*domain).ops;
        if (*table).size <= offset_of!(fi_ops_domain, query_atomic) {
            return -FI_ENOSYS;
        }
        (*table).query_atomic.map_or(-FI_ENOSYS, |query| query(domain, datatype, op, attr, flags))
    }
}
