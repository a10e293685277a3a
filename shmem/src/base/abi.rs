//! The handles, constants and types that C and Rust share, as in `include/shmem.h`.

#![allow(non_camel_case_types, reason = "the table of the interface speaks the words of C")]

pub(crate) use libc::{c_char, c_int, c_long, c_void, ptrdiff_t, size_t};
pub(crate) use num_complex::Complex;
use pelago::Element;

/// C's `long double`, as bytes.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct LongDouble([u8; 16]);

impl LongDouble {
    /// The number 0.
    pub(crate) const ZERO: LongDouble = LongDouble([0; 16]);
}

// SAFETY: plain bytes, as many as the alignment: there is no padding that Rust would leave unwritten, and no
// pointer.
unsafe impl Element for LongDouble {}

/// A context. Handles of predefined objects are small numbers, so that they are constants of C; the others
/// are addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Ctx(pub(crate) usize);

impl Ctx {
    pub(crate) const INVALID: Ctx = Ctx(0);
    pub(crate) const DEFAULT: Ctx = Ctx(1);
}

/// A team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct TeamHandle(pub(crate) usize);

impl TeamHandle {
    pub(crate) const INVALID: TeamHandle = TeamHandle(0);
    pub(crate) const WORLD: TeamHandle = TeamHandle(1);
    pub(crate) const SHARED: TeamHandle = TeamHandle(2);
    pub(crate) const NODE: TeamHandle = TeamHandle(3);
}

/// A function of the program that returns the number of the calling thread.
pub(crate) type ThreadNumber = Option<unsafe extern "C-unwind" fn() -> u64>;

/// A collective operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Request(pub(crate) usize);

impl Request {
    pub(crate) const INVALID: Request = Request(0);
}

/// A space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct SpaceHandle(pub(crate) usize);

impl SpaceHandle {
    pub(crate) const INVALID: SpaceHandle = SpaceHandle(0);
}

/// `shmemx_ct_t`: the address of a symmetric word.
pub(crate) type Counter = *mut u64;

/// `shmemx_pcntr_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ContextCounts {
    pub(crate) pending_put: u64,
    pub(crate) pending_get: u64,
    pub(crate) completed_put: u64,
    pub(crate) completed_get: u64,
    pub(crate) target: u64,
}

/// `shmem_team_config_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TeamConfig {
    pub(crate) num_contexts: c_int,
}

/// `shmem_ctx_session_config_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct SessionConfig {
    pub(crate) total_ops: size_t,
}

/// Bits of a mask of team configurations.
pub(crate) const TEAM_NUM_CONTEXTS: c_long = 1;

/// Options of contexts.
pub(crate) const CTX_PRIVATE: c_long = 1;
pub(crate) const CTX_SERIALIZED: c_long = 1 << 1;
pub(crate) const CTX_NOSTORE: c_long = 1 << 2;
/// An extension; the library ignores it.
pub(crate) const CTX_BOUNCE_BUFFER: c_long = 1 << 3;

/// A bit of a mask of the configurations of sessions.
pub(crate) const CTX_SESSION_TOTAL_OPS: c_long = 1;

/// `SHMEMX_PROGRESS_MPI`.
pub(crate) const PROGRESS_MPI: c_int = 1;

/// Levels of thread support.
pub(crate) const THREAD_SINGLE: c_int = 0;
pub(crate) const THREAD_MULTIPLE: c_int = 3;

/// Signal operators.
pub(crate) const SIGNAL_SET: c_int = 0;
pub(crate) const SIGNAL_ADD: c_int = 1;

/// Comparison operators.
pub(crate) const CMP_EQ: c_int = 1;
pub(crate) const CMP_NE: c_int = 2;
pub(crate) const CMP_GT: c_int = 3;
pub(crate) const CMP_GE: c_int = 4;
pub(crate) const CMP_LT: c_int = 5;
pub(crate) const CMP_LE: c_int = 6;

/// The value of a word of `pSync` before and after each use.
pub(crate) const SYNC_VALUE: c_long = 0;

/// The version of the standard.
pub(crate) const VERSION: (c_int, c_int) = (1, 6);
/// `SHMEM_VENDOR_STRING`.
pub(crate) const VENDOR: &std::ffi::CStr = c"Pelago";
