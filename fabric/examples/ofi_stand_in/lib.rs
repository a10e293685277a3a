//! A stand-in for libfabric: a shared library with the functions of `libfabric.so.1` that the provider `ofi`
//! uses, and a network inside one process behind them.
//!
//! Tests open it instead of libfabric (`PELAGO_OFI_LIBRARY`). Its providers (`profile.rs`) make the demands
//! of networks that no test machine has, and hold their users to them: what real hardware answers by wrong
//! data or a crash is an error in words here. With `FI_LOG_LEVEL=warn` each error is said on standard error.
//!
//! Invariant: it promises what the manual pages of libfabric 1.17 promise and no more. What they leave open
//! comes as late as it may: writes overtake each other, local buffers are read when the data move. All state
//! lies behind one mutex (`world.rs`), so that any thread may call. Objects are never freed: one that is used
//! after it was closed ends the process in words.

#![allow(missing_docs, reason = "the functions are documented in libfabric's manual pages")]

mod address;
mod atomic;
mod buffer;
mod completion;
mod context;
mod counter;
mod domain;
mod endpoint;
mod engine;
mod fabric;
mod fault;
mod hollow;
mod info;
mod matching;
mod message;
mod object;
mod operation;
mod profile;
mod queue;
mod receive;
mod refusal;
mod region;
mod rma;
mod text;
mod wait;
mod world;

use libc::{c_char, c_int, c_void};
use pelago_fabric::ofi::sys::*;

/// The version of libfabric that this one looks like.
pub(crate) const VERSION: u32 = FI_VERSION(1, 17);

#[unsafe(no_mangle)]
extern "C" fn fi_version() -> u32 {
    VERSION
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fi_getinfo(
    version: u32,
    node: *const c_char,
    _service: *const c_char,
    _flags: u64,
    hints: *const fi_info,
    info: *mut *mut fi_info,
) -> c_int {
    // SAFETY: the caller gives hints that this library has made, or none, and a place for the list.
    unsafe { matching::list(version, node, hints, info) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fi_freeinfo(info: *mut fi_info) {
    // SAFETY: the caller lets go of a list that this library has made.
    unsafe { info::free(info) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fi_dupinfo(info: *const fi_info) -> *mut fi_info {
    // SAFETY: the caller gives an entry that this library has made, or null.
    unsafe { info::duplicate(info) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fi_fabric(
    attributes: *mut fi_fabric_attr,
    fabric: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller gives attributes of an entry that this library has made, and a place for the object.
    unsafe { fabric::open(attributes, fabric, context) }
}

#[unsafe(no_mangle)]
extern "C" fn fi_strerror(error: c_int) -> *const c_char {
    text::error(error).as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fi_tostr_r(
    buffer: *mut c_char,
    bytes: usize,
    data: *const c_void,
    kind: fi_type,
) -> *mut c_char {
    // SAFETY: the caller vouches for data of the kind that it names, and for the room.
    unsafe { text::write(buffer, bytes, &text::value(data, kind)) };
    buffer
}
