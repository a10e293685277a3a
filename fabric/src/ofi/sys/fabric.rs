//! Objects of libfabric (`fid`), and the fabric, the one that holds all others. Source: `fi_fabric(3)`,
//! `fi_control(3)`.
//!
//! Invariant: every object begins with its `fid`, so a pointer to the object is one to its `fid`.

use super::layout::{opaque, structs, tables};
use super::{fi_info, fid_domain};
use libc::{c_char, c_int, c_void};

opaque! {
    /// A passive endpoint, of no use to connectionless ones.
    fid_pep;
    /// An event queue, not used here.
    fid_eq;
    /// The attributes of an event queue, not used here.
    fi_eq_attr;
    /// A wait set, not used here.
    fid_wait;
    /// The attributes of a wait set, not used here.
    fi_wait_attr;
}

structs! {
    /// The start of every object.
    fid {
        fclass: usize,
        context: *mut c_void,
        ops: *mut fi_ops,
    }
    /// A fabric.
    fid_fabric {
        fid: fid,
        ops: *mut fi_ops_fabric,
        api_version: u32,
    }
    /// Room for the provider that an operation's context begins with, where the mode says `FI_CONTEXT`.
    fi_context {
        internal: [*mut c_void; 4],
    }
    /// The same where the mode says `FI_CONTEXT2`.
    fi_context2 {
        internal: [*mut c_void; 8],
    }
}

tables! {
    /// The operations of every object.
    fi_ops in ops {
        close(fid: *mut fid) -> c_int => fi_close;
        bind(fid: *mut fid, bfid: *mut fid, flags: u64) -> c_int => fi_bind;
        control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int => fi_control;
        ops_open(
            fid: *mut fid, name: *const c_char, flags: u64, ops: *mut *mut c_void, context: *mut c_void,
        ) -> c_int;
        tostr(fid: *const fid, buf: *mut c_char, len: usize) -> c_int;
        ops_set(
            fid: *mut fid, name: *const c_char, flags: u64, ops: *mut c_void, context: *mut c_void,
        ) -> c_int;
    }
    /// The operations of a fabric.
    fi_ops_fabric in ops {
        domain(
            fabric: *mut fid_fabric, info: *mut fi_info, dom: *mut *mut fid_domain, context: *mut c_void,
        ) -> c_int => fi_domain;
        passive_ep(
            fabric: *mut fid_fabric, info: *mut fi_info, pep: *mut *mut fid_pep, context: *mut c_void,
        ) -> c_int;
        eq_open(
            fabric: *mut fid_fabric, attr: *mut fi_eq_attr, eq: *mut *mut fid_eq, context: *mut c_void,
        ) -> c_int;
        wait_open(fabric: *mut fid_fabric, attr: *mut fi_wait_attr, waitset: *mut *mut fid_wait) -> c_int;
        trywait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int => fi_trywait;
        domain2(
            fabric: *mut fid_fabric, info: *mut fi_info, dom: *mut *mut fid_domain, flags: u64,
            context: *mut c_void,
        ) -> c_int;
    }
}
