//! What can go wrong with an operation: as an error of libfabric's, and in words.
//!
//! Invariant: a fault has one number (`prov_errno` of an entry), by which `fi_cq_strerror` finds its words.

use libc::c_int;
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    NoDescriptor,
    DeadDescriptor,
    NotCovered,
    LocalAccess,
    WrongKey,
    Disabled,
    OtherEndpoint,
    OutsideRegion,
    RemoteAccess,
    Misaligned,
    Gone,
    Cancelled,
    Truncated,
    ContextSpoilt,
}

impl Fault {
    const ALL: [Fault; 14] = {
        use Fault::*;
        [
            NoDescriptor,
            DeadDescriptor,
            NotCovered,
            LocalAccess,
            WrongKey,
            Disabled,
            OtherEndpoint,
            OutsideRegion,
            RemoteAccess,
            Misaligned,
            Gone,
            Cancelled,
            Truncated,
            ContextSpoilt,
        ]
    };

    /// The number by which `of_code` finds it; not 0.
    pub(crate) fn code(self) -> c_int {
        self as c_int + 1
    }

    /// The fault of that number.
    pub(crate) fn of_code(code: c_int) -> Option<Fault> {
        Fault::ALL.into_iter().find(|fault| fault.code() == code)
    }

    /// As libfabric's users see it.
    pub(crate) fn error(self) -> c_int {
        match self {
            Fault::NoDescriptor | Fault::NotCovered | Fault::Misaligned => FI_EINVAL,
            Fault::DeadDescriptor | Fault::LocalAccess | Fault::RemoteAccess => FI_EACCES,
            Fault::WrongKey | Fault::Disabled | Fault::OtherEndpoint => FI_EKEYREJECTED,
            Fault::OutsideRegion => FI_EIO,
            Fault::Gone => FI_ECONNRESET,
            Fault::Cancelled => FI_ECANCELED,
            Fault::Truncated => FI_ETRUNC,
            Fault::ContextSpoilt => FI_EOTHER,
        }
    }

    /// In words.
    pub(crate) fn words(self) -> &'static CStr {
        match self {
            Fault::NoDescriptor => c"a local buffer has no descriptor, which FI_MR_LOCAL demands",
            Fault::DeadDescriptor => c"the descriptor of a local buffer is not that of an open region",
            Fault::NotCovered => c"the region of a local buffer's descriptor does not cover the buffer",
            Fault::LocalAccess => c"the region of a local buffer was not registered for such an operation",
            Fault::WrongKey => c"the target has no region of that key",
            Fault::Disabled => c"the target's region is not enabled, which FI_MR_ENDPOINT demands",
            Fault::OtherEndpoint => c"the target's region is bound to another endpoint (FI_MR_ENDPOINT)",
            Fault::OutsideRegion => c"the address lies outside the target's region",
            Fault::RemoteAccess => c"the target's region was not registered for such an operation",
            Fault::Misaligned => c"the word of an atomic is not at a multiple of its size",
            Fault::Gone => c"the endpoint at the other end was closed",
            Fault::Cancelled => c"the operation was cancelled",
            Fault::Truncated => c"the message is longer than the buffer that was posted for it",
            Fault::ContextSpoilt => c"the context was written to while its operation was under way",
        }
    }

    /// Says it on standard error, if libfabric's own setting asks for warnings.
    pub(crate) fn log(self, operation: &str) {
        let level = std::env::var("FI_LOG_LEVEL").unwrap_or_default().to_lowercase();
        if matches!(&*level, "warn" | "trace" | "info" | "debug") {
            eprintln!("ofi_stand_in: {operation} failed: {}", self.words().to_string_lossy());
        }
    }
}
