//! Faults of operations: the errors of libfabric, with messages.
//!
//! Invariant: a fault has one number (`prov_errno` of an entry), by which `fi_cq_strerror` finds its message.

use libc::c_int;
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;

/// The faults, each with its libfabric error and its message.
macro_rules! faults {
    ($($fault:ident: $error:ident, $words:literal;)*) => {
        /// Why an operation failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fault {
            $($fault,)*
        }

        impl Fault {
            const ALL: &'static [Fault] = &[$(Fault::$fault),*];

            /// The libfabric error of the fault.
            pub(crate) fn error(self) -> c_int {
                match self {
                    $(Fault::$fault => $error,)*
                }
            }

            /// The message of the fault.
            pub(crate) fn words(self) -> &'static CStr {
                match self {
                    $(Fault::$fault => $words,)*
                }
            }
        }
    };
}

faults! {
    NoDescriptor: FI_EINVAL, c"a local buffer has no descriptor, which FI_MR_LOCAL demands";
    DeadDescriptor: FI_EACCES, c"the descriptor of a local buffer is not that of an open region";
    NotCovered: FI_EINVAL, c"the region of a local buffer's descriptor does not cover the buffer";
    LocalAccess: FI_EACCES, c"the region of a local buffer was not registered for such an operation";
    WrongKey: FI_EKEYREJECTED, c"the target has no region of that key";
    Disabled: FI_EKEYREJECTED, c"the target's region is not enabled, which FI_MR_ENDPOINT demands";
    OtherEndpoint: FI_EKEYREJECTED, c"the target's region is bound to another endpoint (FI_MR_ENDPOINT)";
    OutsideRegion: FI_EIO, c"the address lies outside the target's region";
    RemoteAccess: FI_EACCES, c"the target's region was not registered for such an operation";
    Misaligned: FI_EINVAL, c"the word of an atomic is not at a multiple of its size";
    Gone: FI_ECONNRESET, c"the endpoint at the other end was closed";
    Cancelled: FI_ECANCELED, c"the operation was cancelled";
    Truncated: FI_ETRUNC, c"the message is longer than the buffer that was posted for it";
    ContextSpoilt: FI_EOTHER, c"the context was written to while its operation was under way";
}

impl Fault {
    /// The number of the fault for `of_code`; not 0.
    pub(crate) fn code(self) -> c_int {
        self as c_int + 1
    }

    /// The fault of this number.
    pub(crate) fn of_code(code: c_int) -> Option<Fault> {
        Fault::ALL.iter().copied().find(|fault| fault.code() == code)
    }

    /// Prints the fault on standard error, if libfabric's own setting enables warnings.
    pub(crate) fn log(self, operation: &str) {
        let level = std::env::var("FI_LOG_LEVEL").unwrap_or_default().to_lowercase();
        if matches!(&*level, "warn" | "trace" | "info" | "debug") {
            eprintln!("fake_libfabric: {operation} failed: {}", self.words().to_string_lossy());
        }
    }
}
