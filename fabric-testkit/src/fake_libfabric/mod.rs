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

use pelago_fabric::ofi::sys::FI_VERSION;

/// The version of libfabric that this one looks like.
pub(crate) const VERSION: u32 = FI_VERSION(1, 17);

#[unsafe(no_mangle)]
extern "C" fn fi_version() -> u32 {
    VERSION
}
