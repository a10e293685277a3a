//! The providers: the requirements and the capabilities of each.
//!
//! Invariant: a profile contains only data; the modules that check a requirement read it from there.

use libc::c_int;
use pelago_fabric::ofi::sys::*;

/// The inject size in bytes: small, so that callers use all their other paths.
pub(crate) const INJECT_BYTES: usize = 64;
/// The maximum number of outstanding operations of an endpoint, above which a call returns `-FI_EAGAIN`, and
/// of operations queued at a target, above which further ones wait.
pub(crate) const QUEUE_COUNT: usize = 64;
/// The maximum number of posted receive buffers.
pub(crate) const RECEIVES_COUNT: usize = 64;
/// The largest transfer, in bytes.
pub(crate) const TRANSFER_BYTES: usize = 1 << 30;

/// The kinds of access to memory, local and remote.
pub(crate) const ACCESS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
/// The directions of messages.
pub(crate) const DIRECTIONS: u64 = FI_SEND | FI_RECV;
/// The flags that operations of an endpoint may have.
pub(crate) const TX_FLAGS: u64 =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
/// The flags that receive buffers may have.
pub(crate) const RX_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV;

/// The fate of a multi-receive buffer when a message is too long for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truncation {
    /// It stays posted.
    Keeps,
    /// It is returned to the caller, and the error entry says so.
    Releases,
    /// It is returned to the caller, but the error entry does not say so, as with ofi_rxm of libfabric 1.17.
    ReleasesSilently,
}

/// A provider.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    /// The requirements on memory regions: `FI_MR_*`.
    pub(crate) mr_mode: c_int,
    /// The length of a key that the caller chooses, in bytes.
    pub(crate) mr_key_bytes: usize,
    /// The requirements on the context of an operation: `FI_CONTEXT`, `FI_CONTEXT2` or none.
    pub(crate) mode: u64,
    /// The progress model: with `FI_PROGRESS_MANUAL`, progress occurs only in calls on the endpoint
    /// concerned.
    pub(crate) progress: fi_progress,
    /// Whether a request for automatic progress gets an offer of manual progress, and not none, as with `efa`
    /// of libfabric 1.17 to 2.0.
    pub(crate) answers_auto: bool,
    /// The sizes of integers on which it executes atomics, in bytes.
    pub(crate) atomic_bytes: &'static [usize],
    /// The guaranteed orders: `FI_ORDER_*`.
    pub(crate) order: u64,
    /// Whether a separate entry returns a multi-receive buffer, instead of the entry of its last message.
    pub(crate) releases_apart: bool,
    pub(crate) truncation: Truncation,
    /// Whether writes, reads and atomics that request no entry only increment a counter.
    pub(crate) is_null: bool,
}

impl Profile {
    /// Whether the provider has this requirement on memory regions.
    pub(crate) fn demands(&self, mr_mode: c_int) -> bool {
        self.mr_mode & mr_mode != 0
    }

    /// The maximum length of writes that are executed in order, in bytes.
    pub(crate) fn ordered_write_bytes(&self) -> usize {
        if self.order & FI_ORDER_WAW != 0 { TRANSFER_BYTES } else { 0 }
    }

    /// Whether progress is manual.
    pub(crate) fn is_manual(&self) -> bool {
        self.progress == FI_PROGRESS_MANUAL
    }
}

/// The provider without requirements.
const PLAIN: Profile = Profile {
    name: "plain",
    mr_mode: 0,
    mr_key_bytes: 8,
    mode: 0,
    progress: FI_PROGRESS_AUTO,
    answers_auto: false,
    atomic_bytes: &[1, 2, 4, 8],
    order: FI_ORDER_SAS,
    releases_apart: false,
    truncation: Truncation::ReleasesSilently,
    is_null: false,
};

/// All providers, in the order in which they are offered.
pub(crate) static PROFILES: [Profile; 5] = [
    PLAIN,
    Profile {
        name: "like-verbs",
        mr_mode: FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
        mode: FI_CONTEXT2,
        progress: FI_PROGRESS_MANUAL,
        atomic_bytes: &[],
        order: FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW,
        truncation: Truncation::Keeps,
        ..PLAIN
    },
    Profile {
        name: "like-cxi",
        mr_mode: FI_MR_ENDPOINT | FI_MR_ALLOCATED,
        mr_key_bytes: 4,
        mode: FI_CONTEXT,
        progress: FI_PROGRESS_MANUAL,
        atomic_bytes: &[4, 8],
        releases_apart: true,
        truncation: Truncation::Releases,
        ..PLAIN
    },
    Profile { name: "null", is_null: true, ..PLAIN },
    Profile {
        name: "like-efa",
        mr_mode: FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
        progress: FI_PROGRESS_MANUAL,
        answers_auto: true,
        ..PLAIN
    },
];
