//! The providers: what each demands and what it can do.
//!
//! Invariant: a profile is data; what is done about it stands where the demand is checked.

use libc::c_int;
use pelago_fabric::ofi::sys::*;

/// Bytes that can be injected: few, so that users take all their other paths.
pub(crate) const INJECT_BYTES: usize = 64;
/// Operations of an endpoint that may be under way, and those that may wait at a target; one more is
/// `-FI_EAGAIN`, or waits.
pub(crate) const QUEUE_COUNT: usize = 64;
/// Buffers for messages that may be posted.
pub(crate) const RECEIVES_COUNT: usize = 64;
/// The largest transfer, in bytes.
pub(crate) const TRANSFER_BYTES: usize = 1 << 30;

/// What memory can be accessed for, by this side and by others.
pub(crate) const ACCESS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
/// The directions of messages.
pub(crate) const DIRECTIONS: u64 = FI_SEND | FI_RECV;
/// Flags that the operations of an endpoint may be given.
pub(crate) const TX_FLAGS: u64 =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
/// Flags that its buffers for messages may be given.
pub(crate) const RX_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV;

/// The fate of a multi-receive buffer when a message is too long for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truncation {
    /// It stays posted.
    Keeps,
    /// It is the caller's again, and the error says so.
    Releases,
    /// It is the caller's again, but the error does not say so, as with ofi_rxm of libfabric 1.17.
    ReleasesSilently,
}

/// A provider.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    /// What it demands of memory regions: `FI_MR_*`.
    pub(crate) mr_mode: c_int,
    /// Bytes of a key that the caller chooses.
    pub(crate) mr_key_bytes: usize,
    /// What it demands of the context of an operation: `FI_CONTEXT`, `FI_CONTEXT2` or nothing.
    pub(crate) mode: u64,
    /// Who makes progress: with `FI_PROGRESS_MANUAL` nothing moves but in calls of the side concerned.
    pub(crate) progress: fi_progress,
    /// Sizes of the integers on which it executes atomics, in bytes.
    pub(crate) atomic_bytes: &'static [usize],
    /// What it keeps in order: `FI_ORDER_*`.
    pub(crate) order: u64,
    /// Whether a buffer for several messages comes back by an entry of its own, not with its last message.
    pub(crate) releases_apart: bool,
    pub(crate) truncation: Truncation,
    /// Whether writes, reads and atomics that ask for no entry do nothing but count themselves.
    pub(crate) is_null: bool,
}

impl Profile {
    /// Whether a memory region has this demand.
    pub(crate) fn demands(&self, mr_mode: c_int) -> bool {
        self.mr_mode & mr_mode != 0
    }

    /// Writes of at most so many bytes are executed in their order.
    pub(crate) fn ordered_write_bytes(&self) -> usize {
        if self.order & FI_ORDER_WAW != 0 { TRANSFER_BYTES } else { 0 }
    }

    /// Whether nothing moves but in calls.
    pub(crate) fn is_manual(&self) -> bool {
        self.progress == FI_PROGRESS_MANUAL
    }
}

/// The provider that demands nothing.
const PLAIN: Profile = Profile {
    name: "plain",
    mr_mode: 0,
    mr_key_bytes: 8,
    mode: 0,
    progress: FI_PROGRESS_AUTO,
    atomic_bytes: &[1, 2, 4, 8],
    order: FI_ORDER_SAS,
    releases_apart: false,
    truncation: Truncation::ReleasesSilently,
    is_null: false,
};

/// All providers, in the order in which they are offered.
pub(crate) static PROFILES: [Profile; 4] = [
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
];
